/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The addresses of this host's own interfaces. RDMA to and from them is an application's on this
 * host, which sits above the bridge: what the ports took of it would leave by the other port and
 * never arrive. So it is not taken, whatever the rules say.
 */
#ifndef LONGHAUL_PORT_OWN_H
#define LONGHAUL_PORT_OWN_H

#include <stddef.h>

#include "rule/rule.h"

#define OWN_MAX 1024u

/** struct own - @more: there are more than OWN_MAX. */
struct own {
	struct ip_addr addr[OWN_MAX];
	unsigned int n;
	bool more;
};

/** own_open - a descriptor to ask the kernel by, or a negative errno. */
int own_open(void);

/** own_read - all of them into @o. 0, or a negative errno: ask again later. */
int own_read(int fd, struct own *o);

bool own_same(const struct own *a, const struct own *b);

/** own_ruled - those that a rule covers into @buf, "10.1.0.2 (rule a), ..."; returns how many. Not
 * those of the loopback and of one link only: nobody talks to them from afar. */
unsigned int own_ruled(const struct own *o, const struct rule *rules, unsigned int nrules,
		       char *buf, size_t size);

#endif
