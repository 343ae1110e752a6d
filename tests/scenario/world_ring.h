/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All-reduce as NCCL does it over RDMA: four hosts, two at each site, a sum of 64-bit words,
 * checked by content. A host's data is a formula, so each host knows at any time what it must hold.
 *
 *	ring	0 -> 1 => 2 -> 3 => 0; => crosses the WAN. Each host sends a chunk, then adds its
 *		own to what comes and passes that on, until all have all
 *	tree	the hosts of one site send their sum to the other site, which sends back the total;
 *		every second channel the other way round
 *
 * A channel has queue pairs of its own. A message (slice) is cut over them: each gets a WRITE with
 * its part and behind it a WRITE_WITH_IMM of 0 bytes, the flag. The receiver writes a credit into
 * the sender's memory, on the first queue pair in the other direction, when it has room for one
 * more. What a flag tells of must be there when the flag comes.
 */
#ifndef SCENARIO_WORLD_RING_H
#define SCENARIO_WORLD_RING_H

#include "tests/scenario/world.h"

#define RING_HOSTS    4u
#define RING_CHANNELS 4u
#define RING_QPS      8u

/** enum ring_psns - with which PSNs queue pairs begin: each its own; all with 0, in step, as
 * NCCL's; each its own, told by the connection manager. */
enum ring_psns {
	RING_PSN_OWN,
	RING_PSN_0,
	RING_CM,
};

/**
 * struct ring_config
 * @channels, @qps: of each channel, in each direction
 * @buffer:   bytes of a channel's buffer (NCCL_BUFFSIZE): what one may have under way
 * @tree:     not a ring
 * @flag_apart: NCCL does not do that: one flag, on a queue pair of its own, posted when the sender
 *            was told that all the data is there
 * @timeout_exp: of the queue pairs (NCCL_IB_TIMEOUT)
 */
struct ring_config {
	uint32_t channels, qps, buffer;
	bool tree, flag_apart;
	enum ring_psns psns;
	uint8_t timeout_exp;
};

struct ring;

void ring_defaults(struct ring_config *c);
struct ring *ring_create(struct world *w, const struct ring_config *c);
void ring_destroy(struct ring *r);

/** ring_reduce - all-reduce of @bytes, a multiple of 64 KiB; returns how long it took, 0 when a
 * queue pair failed or it was not done by @until. */
uint64_t ring_reduce(struct ring *r, uint64_t bytes, uint64_t until);

/** ring_early_flags - parts that came after the flag that tells of them; ring_wrong - words of
 *  results that are wrong. */
uint64_t ring_early_flags(const struct ring *r);
uint64_t ring_wrong(const struct ring *r);
/** ring_held - whether the appliances hold all lanes. */
bool ring_held(const struct ring *r);

#endif
