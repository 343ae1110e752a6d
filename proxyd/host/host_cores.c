// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How many cores `cores = auto` means on this host. row: ENG-21
 */
#include <sched.h>
#include <stdio.h>

#include "host/host.h"
#include "port/afxdp.h"
#include "shards/shards.h"

/* A pair of hosts has the memory of its shard only: with less it would have little on the way. */
#define SHARD_POOL (64ull << 20)

unsigned int host_cores_in(const struct host_room *r, char why[HOST_WHY])
{
	unsigned int n = SHARDS_MAX;

	snprintf(why, HOST_WHY, "what longhauld can use");
	if (r->members) {
		n = 1;
		snprintf(why, HOST_WHY, "several ports on a side");
	}
	if (r->processors < n) {
		n = r->processors;
		snprintf(why, HOST_WHY, "the processors it may use");
	}
	if (r->queues < n) {
		n = r->queues;
		snprintf(why, HOST_WHY, "the queues of %s", r->port);
	}
	if (r->pool_bytes / SHARD_POOL < n) {
		n = (unsigned int)(r->pool_bytes / SHARD_POOL);
		snprintf(why, HOST_WHY, "'pool', 64M for each");
	}
	return n ? n : 1;
}

/* 0 when unknown. A set of the library's own size is too small for the kernel of a large host. If
 * CPUQuota of the unit is less than a processor for each thread, all stand still in each period. */
static unsigned int processors(void)
{
	FILE *groups = fopen("/proc/self/cgroup", "re");
	uint64_t limit = groups ? host_processor_limit(groups, HOST_GROUPS) : 0;
	unsigned int n = 0;
	cpu_set_t set[8];

	if (groups)
		fclose(groups);
	if (!sched_getaffinity(0, sizeof(set), set))
		n = (unsigned int)CPU_COUNT_S(sizeof(set), set);
	return limit && limit / 1000 < n ? (unsigned int)(limit / 1000) : n;
}

/* The room for the cores of @c on this host. */
static unsigned int room(const struct config *c, uint64_t pool_bytes, char why[HOST_WHY])
{
	struct host_room r = {
		.processors = processors(), .queues = SHARDS_MAX, .pool_bytes = pool_bytes};

	for (unsigned int p = 0; p < STEER_PORTS; p++) {
		unsigned int n = *c->ifname[p] ? afxdp_most_parts(c->ifname[p]) : SHARDS_MAX;

		r.members |= *c->ifname[p] && p % STEER_MEMBERS;
		if (n >= r.queues)
			continue;
		r.queues = n;
		r.port = c->ifname[p];
	}
	return host_cores_in(&r, why);
}

unsigned int host_cores(const struct config *c, char why[HOST_WHY])
{
	why[0] = '\0';
	return c->cores ? c->cores : room(c, c->pool_bytes, why);
}

void host_check_cores(const struct config *c, struct config_errors *warn)
{
	char why[HOST_WHY];
	unsigned int n = room(c, UINT64_MAX, why);

	if (c->cores > n)
		config_error(warn, c->file, config_line(c, "cores"),
			     "cores = %u, and there is room for %u, limited by %s; lower 'cores', "
			     "or make room: ethtool -L PORT combined %u sets queues",
			     c->cores, n, why, c->cores);
}
