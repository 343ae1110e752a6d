// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Frames that will come in a moment (engine_rx_soon()).
 *
 * With thousands of connections that are busy at once, what a frame needs to know of its own lies
 * in memory that no cache has any more: one line after the other, each fetched only when the one
 * before tells where it is, took most of the time. The port knows its frames some ahead, so the
 * lines are asked for ahead, in steps: where the flow stands in the table; STEP frames later the
 * flow; STEP frames later its partner, which an ACK is cloned from, and its timers. Nothing is
 * believed that is found on the way: it is only brought near.
 *
 * Few connections are in the cache anyway; then this does nothing.
 */
#include "engine/core/core.h"

#define FLOWS_FEW 512u
#define LINE	  64u

_Static_assert(SOON_STEP * 3 <= ENGINE_SOON, "the last step comes before the frame");

static void fetch(const void *p, size_t from, size_t end)
{
	const uint8_t *to = (const uint8_t *)p + end, *at = (const uint8_t *)p + from;

	for (at -= (uintptr_t)at % LINE; at < to; at += LINE)
		__builtin_prefetch(at, 1);
}

/* An engine that somebody may go on with notes all of a flow before it changes (flow_change()). */
static size_t most(const struct engine *e, size_t needed)
{
	return e->undo ? sizeof(struct flow) : needed;
}

static void fetch_flow(struct engine *e, uint32_t hash)
{
	uint32_t i = flow_table_likely(e->table, hash);

	if (i == FLOW_NONE)
		return;
	fetch(&e->flows[i], 0, most(e, offsetof(struct flow, lane.count.true_acks)));
}

static void fetch_around(struct engine *e, uint32_t hash)
{
	uint32_t i = flow_table_likely(e->table, hash);
	uint32_t back = i == FLOW_NONE ? FLOW_NONE : e->flows[i].partner;

	if (back == FLOW_NONE)
		return;
	/* not flow_partner(): that would note it, and wait for all of it */
	fetch(&e->flows[back], 0, most(e, offsetof(struct flow, lane.epsn)));
	wheel_soon(e->wheel, TIMER_ID(i, TIMER_LOSS));
}

void engine_rx_soon(struct engine *e, const uint8_t *data, uint32_t len)
{
	struct soon *s = &e->soon;
	struct frame f;
	struct flow_key key;
	uint32_t k = s->at++ % SOON_RING;

	if (e->used_flows < FLOWS_FEW)
		return;
	s->some[k] = data && frame_parse(data, len, &f) == FRAME_OK;
	if (s->some[k]) {
		flow_key_of(&key, &f);
		s->hash[k] = flow_table_soon(e->table, &key);
	}
	k = (k - SOON_STEP) % SOON_RING;
	if (s->some[k])
		fetch_flow(e, s->hash[k]);
	k = (k - SOON_STEP) % SOON_RING;
	if (s->some[k])
		fetch_around(e, s->hash[k]);
}
