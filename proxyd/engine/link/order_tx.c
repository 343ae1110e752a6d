// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the peer is sent of our logs (OPENER), see order.c: records, until it answers that it has
 * them and has carried them out. And the tick, which does for each log what is due.
 */
#include "engine/link/order_priv.h"

#define AGAIN_FIRST (50 * NSEC_PER_MSEC)
#define AGAIN_MIN   (2 * NSEC_PER_MSEC)

/* Records that are kept free for what the peers tell. */
#define PEERS_RECORDS (ORDER_RECORDS / 4)

/* ---- reports ---- */

/* The record as the peer is told of it: for a lane that has ended, all delivered, nobody waits. */
static struct order_rec told_as(const struct engine *e, const struct order_rec *r)
{
	struct order_rec x = *r;

	if (!e->flows[r->lane].lane.ordered || lane_at(e, r->lane)->birth != r->birth)
		x.kind = ORDER_CLEAR;
	x.lane = lane_number(e, &e->flows[r->lane]);
	return x;
}

static void send_records(struct engine *e, struct order_log *g)
{
	while (g->send_id != MQ_NONE) {
		struct report r = {
			.type = REPORT_ORDER,
			.by_opener = true,
			.lane = (uint32_t)(g - e->order->logs),
			.gen = g->gen,
			.seq = g->send,
			.base = g->base,
		};

		if (g->send == g->have)
			g->sent = e->now;
		while (g->send_id != MQ_NONE && r.norder < REPORT_ORDER_RECS) {
			r.order[r.norder++] = told_as(e, log_record(e, g->send_id));
			g->send_id = mq_next(e->order->records, g->send_id);
			g->send++;
		}
		if (!g->probe_at) {
			g->probe_at = e->now;
			g->probe = g->send;
		}
		e->sink.report(e->sink.ctx, (unsigned int)g->peer, &r);
	}
}

static uint64_t again_at(const struct order_log *g)
{
	uint64_t rto = (g->rtt.srtt_us + 4ull * g->rtt.rttvar_us) * NSEC_PER_USEC;

	if (rto < AGAIN_MIN)
		rto = rto ? AGAIN_MIN : AGAIN_FIRST;
	return g->sent +
	       rtt_capped_us(&g->rtt, (rto << g->backoff) / NSEC_PER_USEC) * NSEC_PER_USEC;
}

static void send_again(struct engine *e, struct order_log *g)
{
	g->send = g->have;
	g->send_id = g->have_id;
	g->probe_at = 0;
	g->again = e->now;
}

/* Whether the oldest record, which the peer has, is carried out as far as we know. The peer says so
 * once, and that may be lost. Where nothing follows it would stay open for ever. */
static bool answer_lost(const struct engine *e, const struct order_log *g)
{
	struct order_rec r;

	if (!g->n || g->have != g->send || g->send != g->base + g->n)
		return false;
	r = told_as(e, log_record(e, g->records.head));
	return r.kind == ORDER_CLEAR ||
	       !psn_before(e->flows[lane_index(r.lane)].lane.una.psn, (struct wire_psn){r.psn});
}

void order_rx_answer(struct engine *e, unsigned int peer, const struct report *r)
{
	struct order_log *g = r->lane < ORDER_LOGS ? log_ref(e, r->lane) : NULL;

	if (!g || !g->known || g->peer != (int8_t)peer || g->resuming)
		return; /* of a log that is no more */
	if (g->gen != r->gen) {
		if ((int32_t)(r->gen - g->gen) <= 0)
			return;
		g->gen = r->gen; /* the peer believes in one that never was */
		order_log_resume(e, g);
		return;
	}
	if ((int32_t)(r->base - g->base) < 0)
		return; /* a later one has overtaken it */
	if (r->seq - g->base > g->n || r->base - g->base > r->seq - g->base) {
		COUNT(e, BAD_REPORT);
		return;
	}
	if (g->probe_at && (int32_t)(r->seq - g->probe) >= 0) {
		rtt_sample(e, &g->rtt, (uint32_t)((e->now - g->probe_at) / NSEC_PER_USEC));
		g->probe_at = 0;
	}
	while ((int32_t)(r->seq - g->have) > 0) {
		g->backoff = 0;
		g->sent = e->now;
		g->have++;
		g->have_id = mq_next(e->order->records, g->have_id);
	}
	if ((int32_t)(g->have - g->send) > 0) {
		g->send = g->have;
		g->send_id = g->have_id;
	}
	while (g->base != r->base) {
		const struct order_rec *x = log_record(e, g->records.head);
		struct order_lane *o = lane_at(e, x->lane);

		if (x->kind == ORDER_CLEAR && e->flows[x->lane].lane.ordered &&
		    o->birth == x->birth)
			o->cleared = (struct wire_psn){x->psn};
		g->waits -= x->kind == ORDER_WAIT;
		mq_pop(e->order->records, &g->records);
		g->base++;
		g->n--;
	}
	g->step_us = r->step_us;
	if (r->again_all && g->have != g->send &&
	    e->now >= g->again + g->rtt.minrtt_us * NSEC_PER_USEC)
		send_again(e, g);
	order_due(e, g);
}

/* ---- the tick ---- */

/* Lanes that a barrier has records for. The peers' part of them is not ours to use: two appliances
 * that have used up all would wait for each other to have room for what they tell. */
static uint32_t barrier_room(const struct engine *e)
{
	uint32_t left = mq_free_count(e->order->records);

	return left > PEERS_RECORDS ? (left - PEERS_RECORDS) / 2 : 0;
}

static uint64_t own_step(struct engine *e, struct order_log *g)
{
	uint64_t next = 0;

	if (g->broken)
		order_log_broken(e, g);
	if (g->resuming)
		return 0; /* order_resumed() */
	if (g->nfresh) {
		uint32_t room = barrier_room(e);

		if (!room)
			next = e->now + NSEC_PER_MSEC;
		else if (e->now >= order_barrier_at(g))
			order_barrier(e, g, room);
		if (g->nfresh && !next)
			next = order_barrier_at(g);
	}
	if (g->peer == PEER_NONE) {
		order_run(e, g);
		return next;
	}
	if (!e->peer_up[g->peer])
		return e->now + AGAIN_FIRST; /* what could be told is not lost */
	if ((g->have != g->send || answer_lost(e, g)) && e->now >= again_at(g)) {
		g->backoff += g->backoff < 6;
		if (g->have == g->send) { /* the newest: it is answered with what is carried out */
			g->have--;
			g->have_id = g->records.tail;
		}
		send_again(e, g);
	}
	send_records(e, g);
	if ((g->have != g->send || answer_lost(e, g)) && (!next || again_at(g) < next))
		next = again_at(g);
	if (!next && g->n)
		next = e->now + AGAIN_FIRST; /* answer_lost() */
	return next;
}

void order_tick(struct engine *e)
{
	struct order *o = e->order;
	uint32_t i = o->due, next;

	order_change(e);
	o->due = LOG_NONE;
	for (; i != LOG_NONE; i = next) {
		struct order_log *g = log_ref(e, i);
		uint64_t at;

		next = g->next_due;
		g->listed = false;
		at = log_is_own(e, g) ? own_step(e, g) : order_answer(e, g);
		if (at)
			order_due_at(e, g, at);
	}
}
