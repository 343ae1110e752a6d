// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Own addresses (own.h), checked each second, since they may change at any time. */
#include <errno.h>
#include <string.h>

#include "daemon/daemon_priv.h"
#include "host/log.h"

#define OWN_TEXT 256

static void tell(struct daemon *d)
{
	char text[OWN_TEXT];

	if (own_ruled(&d->own, d->cfg->rules, d->cfg->nrules, text, sizeof(text)))
		log_line(
			LOG_NOTICE,
			"own addresses of this host that rules cover: %s; RDMA to and from them is "
			"not taken",
			text);
	if (d->own.more)
		log_line(
			LOG_WARNING,
			"this host has more than %u addresses: RDMA on those beyond is taken where "
			"a rule covers them, and lost; let rules name hosts only",
			OWN_MAX);
}

void daemon_own(struct daemon *d)
{
	static struct own now;
	int rc = d->own_fd ? own_read(d->own_fd, &now) : -EBADF;

	if (rc || own_same(&now, &d->own))
		return;
	d->own = now;
	rc = d->port ? daemon_steer(d) : 0;
	if (rc) {
		d->own.n = 0; /* try again next time */
		log_line(LOG_ERR, "the XDP program does not take this host's addresses: %s",
			 strerror(-rc));
		return;
	}
	tell(d);
}

void daemon_own_open(struct daemon *d)
{
	int fd = own_open();

	if (fd < 0) {
		log_line(LOG_WARNING,
			 "the addresses of this host cannot be read: %s; RDMA on them is taken "
			 "where a rule covers them, and lost",
			 strerror(-fd));
		return;
	}
	d->own_fd = fd;
	d->view.own = &d->own;
	daemon_own(d);
}
