/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For engines whose frames, reports and events nobody looks at. */
#ifndef LONGHAUL_TESTS_NO_SINK_H
#define LONGHAUL_TESTS_NO_SINK_H

#include "engine/engine.h"
#include "shards/shards.h"

static inline int no_tx(void *ctx, enum engine_port port, const uint8_t *data, uint32_t len,
			uint32_t seal)
{
	(void)ctx, (void)port, (void)data, (void)len, (void)seal;
	return 0;
}

static inline void no_report(void *ctx, unsigned int peer, const struct report *r)
{
	(void)ctx, (void)peer, (void)r;
}

static inline void no_event(void *ctx, const struct engine_event *ev)
{
	(void)ctx, (void)ev;
}

static const struct engine_sink no_sink = {.tx = no_tx, .report = no_report, .event = no_event};

static inline int no_shard_tx(void *ctx, unsigned int shard, enum engine_port port,
			      const uint8_t *data, uint32_t len, uint32_t seal)
{
	(void)shard;
	return no_sink.tx(ctx, port, data, len, seal);
}

static inline void no_shard_report(void *ctx, unsigned int shard, unsigned int peer,
				   const struct report *r)
{
	(void)shard;
	no_sink.report(ctx, peer, r);
}

static inline void no_shard_event(void *ctx, unsigned int shard, const struct engine_event *ev)
{
	(void)shard;
	no_sink.event(ctx, ev);
}

static const struct shards_sink no_shards_sink = {
	.tx = no_shard_tx, .report = no_shard_report, .event = no_shard_event};

/* @n shards whose output goes nowhere. */
static inline struct shards *some_shards(unsigned int n, const struct engine_config *cfg,
					 uint64_t now)
{
	struct shards *s = shards_new(n, &no_shards_sink);

	if (s && shards_create(s, cfg, NULL, now))
		return s;
	shards_destroy(s);
	return NULL;
}

#endif
