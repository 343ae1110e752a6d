/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether this host, its ports and its link can do what a configuration asks for. Each finding is
 * one line with cause and mend: an error if longhauld cannot work, a warning if it works, but not
 * as intended.
 */
#ifndef LONGHAUL_HOST_H
#define LONGHAUL_HOST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "config/config.h"

/** host_check - check this host. @patience_ms: how long peers have to answer a probe of the link;
 * below HOST_NAMES_MS, name servers are not asked. 0, or -EINVAL when there are errors. */
#define HOST_NAMES_MS 1000u
int host_check(struct config *c, unsigned int patience_ms, struct config_errors *errs,
	       struct config_errors *warn);

/** host_wait - wait until both ports are there and up, for a minute at most; host_wait.c. */
void host_wait(const struct config *c);

/**
 * struct host_room - what bounds the number of cores; host_cores.c.
 * @processors: that this process may run on, at once
 * @port, @queues: the port with the fewest receive or transmit queues
 * @members:    a side has several ports
 * @pool_bytes: of all shards
 */
struct host_room {
	unsigned int processors, queues;
	const char *port;
	bool members;
	uint64_t pool_bytes;
};

/** host_cores_in - how many cores there is room for, and what limits them, into @why. */
#define HOST_WHY 64
unsigned int host_cores_in(const struct host_room *r, char why[HOST_WHY]);

/** host_cores - the cores that @c wants: its number, and then @why is empty, or with auto as many
 * as this host has room for. */
unsigned int host_cores(const struct config *c, char why[HOST_WHY]);

/** host_check_cores - whether the cores that the operator wants can all be used; host_cores.c. */
void host_check_cores(const struct config *c, struct config_errors *warn);

/** host_pins - the directory for pins, which must outlive the daemon. */
const char *host_pins(void);

/* The parts, one file each. */

/** host_check_memory - whether there is enough memory, and the control group allows it:
 * host_memory.c. */
void host_check_memory(const struct config *c, struct config_errors *errs,
		       struct config_errors *warn);

/** host_memory_limit - memory limit of a process by its control groups, in bytes; 0: no limit.
 *  @groups: its /proc/PID/cgroup. Both: host_groups.c. */
uint64_t host_memory_limit(FILE *groups);
/** host_processor_limit - likewise of its processor time, in thousandths of a processor. @root:
 *  where groups are, HOST_GROUPS. */
#define HOST_GROUPS "/sys/fs/cgroup"
uint64_t host_processor_limit(FILE *groups, const char *root);

/* The rest only add warnings. */

/** host_check_link - whether the link carries the hosts' longest packets: host_link.c. */
void host_check_link(const struct config *c, unsigned int patience_ms, struct config_errors *warn);

/** host_check_sides - whether the ports are exchanged, by the addresses that the bridge has seen
 * behind each: host_sides.c. */
void host_check_sides(const struct config *c, struct config_errors *warn);

/* What they share. */

/** host_number - the number in /sys/class/net/@ifname/@file, -1 when there is none. */
long host_number(const char *ifname, const char *file);

/**
 * host_bridge - the bridge, of the kernel or of Open vSwitch, that @ifname or its bond is in, into
 * @name; false: it is in none.
 */
bool host_bridge(const char *ifname, char name[IF_NAMESIZE]);

/** host_need_mtu - MTU that an interface needs for @path_mtu. */
unsigned int host_need_mtu(unsigned int path_mtu);

/** host_path_mtu - the path MTU that the hosts should have: that of the file, else the largest that
 * fits through ports of @port_mtu; 0 if none does. @file, @line: its place in the file, line 0: not
 * there. */
unsigned int host_path_mtu(const struct config *c, unsigned int port_mtu, const char **file,
			   unsigned int *line);

#endif
