/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether this host, its ports and its link can do what a configuration asks for. What is found is
 * one line each, with cause and mend: an error where longhauld cannot work, a warning where it
 * would, but not as it is meant.
 */
#ifndef LONGHAUL_HOST_H
#define LONGHAUL_HOST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "config/config.h"

/** host_check - look at this host. @patience_ms: how long peers have to answer a probe of the link;
 *  who has less than HOST_NAMES_MS does not wait for name servers either. 0, or -EINVAL when there
 *  are errors. */
#define HOST_NAMES_MS 1000u
int host_check(struct config *c, unsigned int patience_ms, struct config_errors *errs,
	       struct config_errors *warn);

/** host_wait - until both ports are there and up, for a minute at most; host_wait.c. */
void host_wait(const struct config *c);

/** host_pins - the directory for what must outlive the daemon. */
const char *host_pins(void);

/* The parts, each in a file of its own. */

/** host_check_memory - whether there is enough, and the control group allows it: host_memory.c. */
void host_check_memory(const struct config *c, struct config_errors *errs,
		       struct config_errors *warn);

/** host_memory_limit - what the control groups of a process allow it, in bytes; 0: no limit.
 *  @groups: its /proc/PID/cgroup. */
uint64_t host_memory_limit(FILE *groups);

/* The rest only add warnings. */

/** host_check_link - whether the link carries what the hosts send: host_link.c. */
void host_check_link(const struct config *c, unsigned int patience_ms, struct config_errors *warn);

/** host_check_sides - whether the ports are exchanged, from whom the bridge has seen behind which:
 *  host_sides.c. */
void host_check_sides(const struct config *c, struct config_errors *warn);

/* What they share. */

/** host_number - the number in /sys/class/net/@ifname/@file, -1 when there is none. */
long host_number(const char *ifname, const char *file);

/** host_bridge - name of the bridge, or other master, of @ifname into @name; false: it has none. */
bool host_bridge(const char *ifname, char name[IF_NAMESIZE]);

/** host_need_mtu - MTU that an interface needs for packets of @path_mtu. */
unsigned int host_need_mtu(unsigned int path_mtu);

/** host_path_mtu - the path MTU that the hosts are to have: what the file names, else the largest
 *  that ports of @port_mtu let through; 0 when not even the smallest one. @file, @line: where
 *  that is said, line 0: nowhere. */
unsigned int host_path_mtu(const struct config *c, unsigned int port_mtu, const char **file,
			   unsigned int *line);

#endif
