// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Whether there is the memory that a configuration asks for. longhauld reserves all memory for
 * custody at its start; if a control group allows less, the kernel kills it without a message.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/engine.h"
#include "host/host.h"
#include "port/afxdp.h"
#include "shards/inbox.h"
#include "shards/shards.h"

/* The program itself, and small allocations. */
#define BESIDES (32ull << 20)

/* A figure of /proc/meminfo in bytes, 0 when absent. */
static uint64_t meminfo(const char *what)
{
	FILE *f = fopen("/proc/meminfo", "re");
	unsigned long long kib;
	char line[128];
	uint64_t v = 0;

	while (f && !v && fgets(line, sizeof(line), f))
		if (!strncmp(line, what, strlen(what)) &&
		    sscanf(line + strlen(what), ": %llu kB", &kib) == 1)
			v = kib << 10;
	if (f)
		fclose(f);
	return v;
}

static void check_limit(const struct config *c, struct config_errors *errs,
			struct config_errors *warn)
{
	const struct engine_config ec = {
		.pool_bytes = c->pool_bytes, .max_conns = c->max_conns, .undo = true};
	FILE *groups = fopen("/proc/self/cgroup", "re");
	uint64_t limit = groups ? host_memory_limit(groups) : 0;
	char why[HOST_WHY];
	unsigned int n = host_cores(c, why);
	uint64_t need = shards_bytes(&ec, n) + AFXDP_FRAMES * AFXDP_CHUNK +
			(n > 1 ? inbox_size() * n * n : 0);
	bool bad = limit < need;

	if (groups)
		fclose(groups);
	if (!limit || limit >= need + BESIDES)
		return;
	config_error(bad ? errs : warn, c->file, config_line(c, "pool"),
		     "a pool of %" PRIu64 " MiB takes %" PRIu64
		     " MiB with tables and ports, and the "
		     "control group of this process allows %" PRIu64 " in all: longhauld %s be "
		     "killed; lower 'pool', or raise MemoryMax of the unit",
		     c->pool_bytes >> 20, need >> 20, limit >> 20, bad ? "would" : "may");
}

void host_check_memory(const struct config *c, struct config_errors *errs,
		       struct config_errors *warn)
{
	uint64_t total = meminfo("MemTotal"), free_ = meminfo("MemAvailable");

	if (total && c->pool_bytes >= total)
		config_error(errs, c->file, config_line(c, "pool"),
			     "a pool of %" PRIu64 " MiB on a host with %" PRIu64
			     " MiB of memory; lower 'pool'",
			     c->pool_bytes >> 20, total >> 20);
	else if (free_ && c->pool_bytes > free_)
		config_error(warn, c->file, config_line(c, "pool"),
			     "a pool of %" PRIu64 " MiB and only %" PRIu64
			     " MiB of memory are free: longhauld may be killed when custody grows; "
			     "lower 'pool', or end something else",
			     c->pool_bytes >> 20, free_ >> 20);
	else
		check_limit(c, errs, warn);
}
