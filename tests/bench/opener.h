/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The load of bench_engine and bench_shards: an engine that is the opener of one lane, between the
 * hosts 10.1.0.N and 10.2.0.N, and the WRITEs of 64 KiB that its host sends. The frames come from
 * memory; who shall answer is the caller's business, or is played here.
 */
#ifndef BENCH_OPENER_H
#define BENCH_OPENER_H

#include "engine/engine.h"
#include "wire/build.h"

#define BATCH	32u
#define MESSAGE 65536u
#define LQPN	0x11u
#define RQPN	0x22u

/**
 * struct opener
 * @to_far, @to_near: headers of its host's packets, and of those to it
 * @tx:   frames that its sink has dropped, by port
 * @last: the latest report to the peer
 */
struct opener {
	struct engine *e;
	struct template to_far, to_near;
	uint32_t mtu;
	uint64_t tx[PORTS];
	struct report last;
};

/** bench_engine_create - an engine with one rule for all, whose peer is up. */
struct engine *bench_engine_create(const struct engine_config *cfg, const struct engine_sink *sink,
				   uint32_t mtu);

/** opener_init - @host: N. @sink NULL: what it sends is counted and dropped. */
void opener_init(struct opener *o, uint8_t host, uint32_t mtu, uint64_t pool, bool undo,
		 const struct engine_sink *sink);

/** opener_frame - the host's packet @psn, in messages from 0 on. Returns its length. */
uint32_t opener_frame(const struct opener *o, uint8_t *out, uint32_t psn, const uint8_t *payload);

/** opener_hold - the lane is learned and opened, and the peer, which is played, agrees. Returns the
 *  next PSN. */
uint32_t opener_hold(struct opener *o, const uint8_t *payload);

/** opener_progress - the peer, which is played, says that all before @psn is acknowledged. */
void opener_progress(struct opener *o, uint32_t psn, uint32_t msn, uint32_t seq, uint64_t now);

#endif
