// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Backpressure on the near requester (roles OPENER and SINGLE), in this order: a CNP slows down a
 * host that knows congestion notifications; then ACKs are withheld (ack_tx.c); then packets that
 * find no room are dropped, and asked for by a sequence NAK when there is room again.
 *
 * row: FAST-7
 */
#include "engine/near/near.h"

/* A requester is asked to slow down at most once in this time (what NICs themselves keep to). */
#define CNP_US	   50u
/* Lanes that wait for room are looked at in turn: so many in a tick, and again after this. */
#define LOOKS	   16u
#define LOOK_NS	   NSEC_PER_MSEC
/* Room that must be there before a requester is asked to try again. */
#define ROOM_AGAIN (256u << 10)
/* More requests that want an answer than any host has outstanding: the connection manager has 8
 * bits for their number. (ATOMICs that are answered early wait for the responder alone.) */
#define LANE_READS 512u

/* The first step of backpressure: hosts that know congestion notifications slow down. */
void send_cnp(struct engine *e, struct flow *fl)
{
	const struct flow *back = flow_partner(e, fl);
	uint8_t buf[BUILD_MAX];

	if (now_us(e) - fl->lane.keeper.cnp_us < CNP_US || !back || !back->tmpl.len)
		return;
	if (engine_tx(e, fl, fl->side, buf, build_cnp(buf, &back->tmpl, back->key.dqpn)))
		return; /* the next request brings another */
	fl->lane.keeper.cnp_us = now_us(e);
	COUNT(e, CNP_SENT);
}

static void list_last(struct engine *e, struct flow *fl)
{
	uint32_t i = flow_index(e, fl);

	fl->lane.listed.next_room = FLOW_NONE;
	if (e->room.tail == FLOW_NONE)
		e->room.head = i;
	else
		flow_ref(e, e->room.tail)->lane.listed.next_room = i;
	e->room.tail = i;
}

/* A request was dropped for want of room: near_room() asks the requester for it again. */
void wait_for_room(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	COUNT(e, NO_ROOM);
	if (l->near.room_wait)
		return;
	l->near.room_wait = true;
	if (l->listed.room)
		return;
	l->listed.room = true;
	list_last(e, fl);
}

bool over_reads(const struct lane *l)
{
	return l->nreads >= (l->atomic == ATOMIC_DISCARD ? READS_MAX / 8 : LANE_READS);
}

bool over_rule_cap(const struct engine *e, const struct flow *fl, uint32_t len)
{
	uint64_t cap = fl->rule < 0 ? 0 : e->rules[fl->rule].cap;

	return cap && e->rule_bytes[fl->rule] + e->cache.rule_others[fl->rule] + len > cap;
}

/*
 * The window of a host: what it sends beyond what it was told. How much that is shows only while it
 * is told nothing more. Told of all that was accepted it sends as much again at once, and if there
 * is no room for that, it sends it in vain, again and again. lane.near.window counts it in pages of
 * WINDOW_SHIFT bits, by the mean size of what is in custody.
 */

bool window_grows(const struct lane *l, struct host_psn end)
{
	uint64_t held = psn_past(l->epsn.psn, l->una.psn), sent = psn_past(end, l->near.told);

	return l->near.window < UINT16_MAX && psn_after(end, l->near.told) &&
	       sent * l->held.bytes >= ((uint64_t)(l->near.window + 1) << WINDOW_SHIFT) * held &&
	       held;
}

void window_seen(struct lane *l, struct host_psn end)
{
	uint64_t held = psn_past(l->epsn.psn, l->una.psn), sent = psn_past(end, l->near.told),
		 pages;

	if (!window_grows(l, end))
		return;
	pages = (sent * l->held.bytes / held) >> WINDOW_SHIFT;
	l->near.window = pages < UINT16_MAX ? (uint16_t)pages : UINT16_MAX;
}

/* Whether the rule's own cap, the lane's span, or records of READs keep it from accepting more. */
static bool short_of_more(const struct engine *e, const struct flow *fl)
{
	uint64_t want = fl->rule < 0 ? 0 : e->rules[fl->rule].cap / 8;

	want = want < ROOM_AGAIN ? want : ROOM_AGAIN;
	want = MAX(want, fl->path_mtu + 128u);
	return over_rule_cap(e, fl, (uint32_t)want) || mq_free_count(e->reads) < 2 ||
	       over_reads(&fl->lane) || span_pressed(e, &fl->lane);
}

/* Whether pool and share have room for more than a packet or two of the lane. */
static bool room_again(const struct engine *e, const struct lane *l)
{
	uint64_t want = pool_cap(e->pool, POOL_CUSTODY) / 8;

	want = want < ROOM_AGAIN ? want : ROOM_AGAIN;
	return pool_log_room(e->pool, POOL_CUSTODY, &l->held.log, l->held.bytes) >= want;
}

/* So often a requester is asked in vain; then it asks by itself, by its timer. */
#define ROOM_NAKS_MOST 2

/* There is room, also for what others hold back: who comes first has it. */
static void ask_again(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	l->near.room_wait = false;
	if (l->near.room_naks >= ROOM_NAKS_MOST) {
		l->near.nak_sent = true; /* nor is it asked for what it sends from beyond */
		return;
	}
	l->near.room_naks++;
	nak_send(e, fl);
}

/* Ask for what was dropped for want of room, when there is some. A requester that is asked too
 * early goes back in vain, and a few of those use up its retries. A few lanes in each tick. */
void near_room(struct engine *e)
{
	for (uint32_t n = 0; n < LOOKS && e->room.head != FLOW_NONE; n++) {
		struct flow *fl = flow_ref(e, e->room.head);
		struct lane *l = &fl->lane;
		bool waits =
			fl->used && lane_keeps(l) && l->near.room_wait && l->state != LANE_FAULT;

		e->room.head = l->listed.next_room;
		if (e->room.head == FLOW_NONE)
			e->room.tail = FLOW_NONE;
		if (waits && (!room_again(e, l) || short_of_more(e, fl))) {
			list_last(e, fl);
			continue;
		}
		l->listed.room = false;
		if (!waits)
			continue;
		ask_again(e, fl);
	}
	if (e->room.head != FLOW_NONE)
		engine_wake_at(e, e->now + LOOK_NS);
}
