/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the daemon says at one moment, all views of it. It is asked at most once in SNAPSHOT_NS,
 * however many ask us: a thousand scrapers cost the daemon as much as one.
 */
#ifndef LONGHAUL_METRICS_SNAPSHOT_H
#define LONGHAUL_METRICS_SNAPSHOT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define SNAPSHOT_NS 500000000ull

/**
 * struct snapshot - arrays of objects, as the control socket gives them; NULL when the daemon did
 * not answer, @err says why then.
 * @time_ms: when it was taken, since 1970
 */
struct snapshot {
	const char *socket;
	uint64_t taken_ns, time_ms;
	json_t *stats, *peers, *rules, *qps, *alarms, *daemon;
	char err[256];
};

/** snapshot_take - renew @s if it is old. False when the daemon does not answer. */
bool snapshot_take(struct snapshot *s);

/** snapshot_exit - forget it. */
void snapshot_exit(struct snapshot *s);

#endif
