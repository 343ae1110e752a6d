// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/metrics/snapshot.h"

#include <time.h>

#include "cli/client.h"

static uint64_t clock_of(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void snapshot_exit(struct snapshot *s)
{
	json_decref(s->stats);
	json_decref(s->peers);
	json_decref(s->rules);
	json_decref(s->qps);
	json_decref(s->alarms);
	json_decref(s->daemon);
	s->stats = s->peers = s->rules = s->qps = s->alarms = s->daemon = NULL;
}

bool snapshot_take(struct snapshot *s)
{
	const struct {
		const char *cmd;
		json_t **to;
	} views[] = {
		{"stats-show", &s->stats},   {"peer-show", &s->peers},	  {"rule-show", &s->rules},
		{"status-show", &s->alarms}, {"daemon-show", &s->daemon}, {"qp-show", &s->qps},
	};
	uint64_t now = clock_of(CLOCK_MONOTONIC);

	if (s->taken_ns && now - s->taken_ns < SNAPSHOT_NS)
		return s->qps != NULL;
	snapshot_exit(s);
	for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
		*views[i].to = client_collect(s->socket, views[i].cmd, s->err, sizeof(s->err));
		if (!*views[i].to) {
			snapshot_exit(s);
			break;
		}
	}
	s->taken_ns = clock_of(CLOCK_MONOTONIC);
	s->time_ms = clock_of(CLOCK_REALTIME) / 1000000;
	return s->qps != NULL;
}
