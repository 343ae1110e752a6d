// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the control groups of a process allow it: the least that its group and those above it do.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "host/host.h"

/* Version 1 means no limit of memory by a number a little below 2^63. */
#define LIMIT_NO (1ull << 60)

/**
 * struct limit - where a limit is.
 * @controller, @root: of version 1, and where its groups are
 * @file, @unified: of a group in version 1, in version 2
 */
struct limit {
	const char *controller, *root, *file, *unified;
	uint64_t (*read)(FILE *f);
};

static uint64_t read_bytes(FILE *f)
{
	uint64_t v;

	return fscanf(f, "%" SCNu64, &v) == 1 && v < LIMIT_NO ? v : 0;
}

/* "max 100000", or processor time and the period in which it may be used. */
static uint64_t read_processors(FILE *f)
{
	uint64_t quota, period;

	return fscanf(f, "%" SCNu64 " %" SCNu64, &quota, &period) == 2 && period
		       ? quota * 1000 / period
		       : 0;
}

/* The least limit of @group and its parents below @root, from @file of each. */
static uint64_t least_of(const char *root, char *group, const char *file, uint64_t (*read)(FILE *f))
{
	uint64_t least = 0, v;
	char path[512], *last;
	FILE *f;

	for (;;) {
		snprintf(path, sizeof(path), "%s%s/%s", root, group, file);
		f = fopen(path, "re");
		v = f ? read(f) : 0;
		if (f)
			fclose(f);
		if (v && (!least || v < least))
			least = v;
		last = strrchr(group, '/');
		if (!last)
			return least;
		*last = '\0';
	}
}

static uint64_t limit_of(FILE *groups, const char *unified_root, const struct limit *l)
{
	char line[512], *group;
	uint64_t v, least = 0;

	while (fgets(line, sizeof(line), groups)) {
		bool unified = !strncmp(line, "0::", 3);

		line[strcspn(line, "\n")] = '\0';
		group = strchr(line, ':');
		group = group ? strchr(group + 1, ':') : NULL;
		if (!group || (!unified && (!l->root || !strstr(line, l->controller))))
			continue;
		v = unified ? least_of(unified_root, group + 1, l->unified, l->read)
			    : least_of(l->root, group + 1, l->file, l->read);
		if (v && (!least || v < least))
			least = v;
	}
	return least;
}

uint64_t host_memory_limit(FILE *groups)
{
	static const struct limit memory = {":memory:", "/sys/fs/cgroup/memory",
					    "memory.limit_in_bytes", "memory.max", read_bytes};

	return limit_of(groups, HOST_GROUPS, &memory);
}

uint64_t host_processor_limit(FILE *groups, const char *root)
{
	/* version 1 has it in two files, and systemd of today does not use it */
	static const struct limit processors = {.unified = "cpu.max", .read = read_processors};

	return limit_of(groups, root, &processors);
}
