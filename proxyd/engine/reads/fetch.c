// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The list of fetches (role OPENER): all that was requested of the responder and is answered with
 * data, by the host or as a guess, in the order of wire PSNs: which response packets must come.
 *
 * Responses to guesses that were dropped, and to ATOMICs that were answered here, need not come.
 * Such a fetch stays in the list as FETCH_GONE until it is at the head; fetch_settle() moves @end
 * past it and fills its holes, so that the acceptor is not told that something of it is missing.
 *
 * Nothing is guessed without room for the answer: what the pool has free, less what the answers to
 * guesses of all lanes will take that have not come (e->reserved).
 *
 * row: POOL-11
 */
#include "engine/reads/reads.h"

static bool in_fetch(const struct fetch *g, struct wire_psn psn)
{
	return psn_in(psn, g->psn, psn_add(g->psn, g->span));
}

/* The fetch that the response packet @psn belongs to: mostly the latest one, or the next. */
uint32_t fetch_find(struct engine *e, struct lane_reads *x, struct wire_psn psn)
{
	uint32_t id = x->hint;

	for (int i = 0; i < 2 && id != MQ_NONE; i++, id = mq_next(e->reads, id))
		if (in_fetch(fetch_at(e, id), psn))
			return id;
	for (id = x->fetches.head; id != MQ_NONE; id = mq_next(e->reads, id))
		if (in_fetch(fetch_at(e, id), psn))
			return id;
	return MQ_NONE;
}

/* What a packet of an answer takes besides its payload, at most. */
#define PACKET_EXTRA 128u

static uint64_t room_for(const struct flow *fl, uint32_t span)
{
	return (uint64_t)span * (flow_mtu(fl) + PACKET_EXTRA);
}

/** fetch_fits - whether there is room for the answer, of @span packets, to one more guess. */
bool fetch_fits(struct engine *e, const struct flow *fl, uint32_t span)
{
	return e->reserved + room_for(fl, span) <= pool_room(e->pool, POOL_TRANSIT);
}

bool fetch_add(struct engine *e, struct flow *fl, const struct read_range *what, uint8_t opcode,
	       struct wire_psn psn, uint32_t span, enum fetch_state state)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	const struct fetch *last = fetch_at(e, x->fetches.tail);
	bool all = !last || !psn_before(x->end, psn_add(last->psn, last->span));
	uint32_t id = mq_push(e->reads, &x->fetches);
	struct fetch *g = fetch_at(e, id);

	if (!g)
		return false;
	*g = (struct fetch){
		.what = *what,
		.issued = e->now,
		.touched = e->now,
		.psn = psn,
		.span = span,
		.epoch = *pair_epoch(e, &fl->key),
		.opcode = opcode,
		.state = (uint8_t)state,
		.room = state == FETCH_GUESS ? room_for(fl, span) : 0,
	};
	e->reserved += g->room;
	x->unique += opcode != OP_READ_REQUEST;
	if (all)
		x->end = psn; /* no packet before it is awaited */
	if (x->hint == MQ_NONE)
		x->hint = id;
	if (!timer_armed(e, fl, TIMER_RESP)) {
		x->arrival = e->now;
		resp_arm(e, fl);
	}
	return true;
}

/* Two packets whose PSNs are a whole window apart have one place. So nothing is asked for until the
 * places of its response are free: what is kept is dropped, the rest must leave first. */
bool fetch_room(struct engine *e, struct flow *fl, struct wire_psn psn, uint32_t span)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	struct wire_psn at;

	while (held_next(e, &x->held, psn, psn_add(psn, span), &at))
		if (!resp_drop_kept(e, fl))
			return false;
	return true;
}

/* ---- what is not awaited any more ---- */

/** fetch_came - one more packet of @g has come. */
void fetch_came(struct engine *e, struct fetch *g)
{
	uint64_t room = g->room / (g->span - g->arrived++);

	e->reserved -= room;
	g->room -= room;
}

/** fetch_gone - nothing of @g is awaited any more. */
void fetch_gone(struct engine *e, struct lane_reads *x, struct fetch *g)
{
	x->gone += g->state != FETCH_GONE;
	g->state = FETCH_GONE;
	g->arrived = g->span;
	e->reserved -= g->room;
	g->room = 0;
}

/* Forget the fetches at the head that have come whole, but for guesses. */
void fetch_trim(struct engine *e, struct lane_reads *x)
{
	struct fetch *g;

	while ((g = fetch_at(e, x->fetches.head)) && g->arrived == g->span &&
	       g->state != FETCH_GUESS) {
		if (x->hint == x->fetches.head)
			x->hint = mq_next(e->reads, x->hint);
		x->gone -= g->state == FETCH_GONE;
		mq_pop(e->reads, &x->fetches);
	}
}

/* Nothing of fetches in state FETCH_GONE is missing: move @end past them, and fill their holes. */
void fetch_settle(struct engine *e, struct lane_reads *x)
{
	uint32_t n = x->gone;

	for (uint32_t id = x->fetches.head; n && id != MQ_NONE; id = mq_next(e->reads, id)) {
		const struct fetch *g = fetch_at(e, id), *next = fetch_at(e, mq_next(e->reads, id));
		struct wire_psn end = next ? next->psn : psn_add(g->psn, g->span);

		if (g->state != FETCH_GONE)
			continue;
		n--;
		if (in_fetch(g, x->end)) {
			/* some of it came, and not all of that */
			if (x->gaps.holes != POOL_NONE && !psn_is(g->psn, x->end))
				holes_fill(e->pool, &x->gaps.holes, g->psn, x->end);
			x->end = end;
		} else if (x->gaps.holes != POOL_NONE &&
			   holes_room(e->pool, &x->gaps.holes, x->end, g->psn, end)) {
			holes_fill(e->pool, &x->gaps.holes, g->psn, end);
		}
	}
}

/* Drop the guess @g with what came of it. Call fetch_forgotten() when all are dropped. */
void fetch_forget(struct engine *e, struct flow *fl, struct fetch *g)
{
	struct lane_reads *x = reads_of(e, &fl->lane);

	if (g->opcode != OP_READ_REQUEST) {
		x->unique -= g->arrived != g->span;
		x->info.atomics_unasked++;
		COUNT(e, ATOMICS_UNASKED);
	}
	fetch_gone(e, x, g);
	x->info.wasted_bytes += g->what.length;
	x->guessed -= g->what.length;
	x->guesses--;
	resp_drop(e, x, g->psn, psn_add(g->psn, g->span));
}

/* After fetch_forget(): the acceptor need not send it. */
void fetch_forgotten(struct engine *e, struct flow *fl)
{
	struct lane_reads *x = reads_of(e, &fl->lane);

	if (x->gone) {
		fetch_settle(e, x);
		resp_report_due(e, fl, true);
	}
	fetch_trim(e, x);
}

/* Drop all guesses; @why: the reason's counter. The next look forgets the pattern. */
void fetch_drop_guesses(struct engine *e, struct flow *fl, uint32_t *why)
{
	struct lane_reads *x = reads_of(e, &fl->lane);

	if (!x->guesses)
		return;
	(*why)++;
	/* the order does not matter */
	for (uint32_t id = x->fetches.head; id != MQ_NONE && x->guesses; id = mq_next(e->reads, id))
		if (fetch_at(e, id)->state == FETCH_GUESS)
			fetch_forget(e, fl, fetch_at(e, id));
	x->guesses = 0;
	x->guessed = 0;
	fetch_forgotten(e, fl);
	x->pattern_lost = true;
}

/* Nobody has a record any more of the READ that was asked for anew as @wire: its response need not
 * come. It is settled with the next report, for a packet of it may just be looked at. */
void fetch_abandon(struct engine *e, struct flow *fl, struct wire_psn wire)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	struct fetch *g = fetch_at(e, fetch_find(e, x, wire));

	if (!g || !psn_is(g->psn, wire) || g->state != FETCH_ASKED || g->arrived == g->span)
		return;
	fetch_gone(e, x, g);
	resp_report_due(e, fl, true);
}

/* The ATOMIC @wire was answered here. Its response need not come, and what came of it is dropped.
 */
void fetch_cancel(struct engine *e, struct flow *fl, struct wire_psn wire)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	struct fetch *g = fetch_at(e, fetch_find(e, x, wire));

	resp_drop(e, x, wire, psn_add(wire, g ? g->span : 1));
	if (!g || !psn_is(g->psn, wire) || g->state != FETCH_ASKED)
		return;
	x->unique -= g->arrived != g->span && g->opcode != OP_READ_REQUEST;
	fetch_gone(e, x, g);
	fetch_settle(e, x);
	fetch_trim(e, x);
	resp_report_due(e, fl, false);
}
