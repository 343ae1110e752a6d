// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Carrying out the records of a log (order.c), near the responder (ACCEPTOR), or alone (SINGLE).
 */
#include "engine/link/link.h"
#include "engine/link/order_priv.h"

#define ANSWER_NS (200 * NSEC_PER_USEC)
#define LOOK_MAX  256u /* records that are looked at from a WAIT on */

static struct order_log *peer_log(struct engine *e, unsigned int peer, uint32_t number)
{
	return number < ORDER_LOGS ? log_ref(e, ORDER_LOGS * (peer + 1) + number) : NULL;
}

/* ---- lanes by the opener's number ---- */

static uint32_t *chain_of(const struct engine *e, unsigned int peer, uint32_t lane)
{
	uint32_t *head = &e->order->heads[(lane * 0x9e3779b1u + peer) % e->nflows];

	undo_note(e->undo, head, sizeof(*head));
	return head;
}

/* The lane of a record, NULL when it has ended. */
static struct flow *lane_of(struct engine *e, const struct order_log *g, const struct order_rec *r)
{
	unsigned int peer = (unsigned int)g->peer;
	struct flow *fl;

	if (log_is_own(e, g)) {
		fl = r->lane < e->nflows ? flow_ref(e, r->lane) : NULL;
		return fl && fl->lane.ordered && order_lane(e, fl)->birth == r->birth ? fl : NULL;
	}
	/* numbers in chains begin at 1 */
	for (uint32_t i = *chain_of(e, peer, r->lane); i; i = lane_at(e, i - 1)->next) {
		fl = flow_ref(e, i - 1);
		if (fl->lane.peer == g->peer && fl->lane.acceptor.peer_lane == r->lane &&
		    order_lane(e, fl)->birth == r->birth)
			return fl;
	}
	return NULL;
}

void order_accept(struct engine *e, struct flow *fl, const struct report *r)
{
	struct lane *l = &fl->lane;
	struct order_lane *o = order_lane(e, fl);
	uint32_t *head = chain_of(e, (unsigned int)l->peer, l->acceptor.peer_lane);

	l->ordered = r->ordered && r->log < ORDER_LOGS;
	if (!l->ordered)
		return;
	memset(o, 0, sizeof(*o));
	o->log = ORDER_LOGS * ((unsigned int)l->peer + 1) + r->log;
	o->birth = r->birth;
	o->clear = (struct wire_psn){r->clear};
	o->next = *head;
	*head = flow_index(e, fl) + 1;
}

void order_end(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct order_lane *o = order_lane(e, fl);
	uint32_t *at;

	if (!l->ordered)
		return;
	l->ordered = false;
	at = chain_of(e, (unsigned int)l->peer, l->acceptor.peer_lane);
	while (*at && *at != flow_index(e, fl) + 1)
		at = &lane_at(e, *at - 1)->next;
	if (*at)
		*at = o->next;
}

bool order_peer_waits(struct engine *e, const struct flow *fl, unsigned int peer)
{
	uint32_t number = (uint32_t)(order_log_of(e, &fl->key) - e->order->logs);
	struct order_log *g = peer_log(e, peer, number);

	if (!g->known || !e->peer_up[peer])
		return false;
	mq_each (const struct order_rec, r, e->order->records, &g->records) {
		const struct flow *at = r->kind == ORDER_WAIT ? lane_of(e, g, r) : NULL;

		if (at && psn_before(at->lane.una.psn, (struct wire_psn){r->psn}))
			return true;
	}
	return false;
}

bool order_held(const struct engine *e, const struct flow *fl, struct wire_psn psn)
{
	return !psn_before(psn, order_lane(e, fl)->clear);
}

/* ---- records ---- */

static bool waits(const struct engine *e, struct order_log *g, const struct flow *fl,
		  const struct order_rec *r)
{
	if (r->kind != ORDER_WAIT)
		return false;
	if (!fl)
		return !log_is_own(e, g); /* until another generation tells */
	if (fl->lane.rtt.srtt_us > g->step_us)
		g->step_us = fl->lane.rtt.srtt_us;
	else
		g->step_us -= (g->step_us - fl->lane.rtt.srtt_us) / 8;
	return psn_before(fl->lane.una.psn, (struct wire_psn){r->psn});
}

/* A lane need not wait for itself: the responder executes its packets one after the other in any
 * case. So what is cleared behind WAITs of the one lane that the log stands at may go, too. */
void order_run(struct engine *e, struct order_log *g)
{
	const struct order_rec *r, *at = NULL;
	struct flow *fl;
	uint32_t id = g->known ? g->records.head : MQ_NONE, next;

	for (uint32_t n = 0; id != MQ_NONE && n < LOOK_MAX; n += at != NULL, id = next) {
		r = log_record(e, id);
		next = mq_next(e->order->records, id);
		if (at && (r->lane != at->lane || r->birth != at->birth))
			break;
		fl = lane_of(e, g, r);
		if (!at && waits(e, g, fl, r))
			at = r;
		if (r->kind == ORDER_CLEAR && fl &&
		    psn_after((struct wire_psn){r->psn}, order_lane(e, fl)->clear)) {
			order_lane(e, fl)->clear = (struct wire_psn){r->psn};
			pace_run(e, fl);
		}
		if (at)
			continue;
		e->counters[EC_ORDER_BARRIERS] += r->kind == ORDER_WAIT;
		g->waits -= r->kind == ORDER_WAIT && log_is_own(e, g);
		mq_pop(e->order->records, &g->records);
		g->base++;
		g->n--;
		g->answer = true;
	}
	if (log_is_own(e, g)) {
		g->have = g->send = g->base + g->n;
		g->have_id = g->send_id = MQ_NONE;
	}
}

void order_moved(struct engine *e, struct flow *fl)
{
	struct order_log *g = log_ref(e, order_lane(e, fl)->log);
	const struct order_rec *r = g->known ? log_record(e, g->records.head) : NULL;

	if (r && r->birth == order_lane(e, fl)->birth)
		order_due(e, g);
}

/* ---- reports ---- */

static void log_forget(struct engine *e, struct order_log *g)
{
	if (g->known)
		mq_flush(e->order->records, &g->records);
	mq_list_init(&g->records);
	g->known = g->gap = g->answer = false;
	g->n = 0;
}

void order_forget(struct engine *e, unsigned int peer)
{
	for (uint32_t i = 0; i < ORDER_LOGS; i++)
		if (peer_log(e, peer, i)->known)
			log_forget(e, peer_log(e, peer, i));
}

/* Take the record @r, number @seq. False when it has to come again. */
static bool take(struct engine *e, struct order_log *g, const struct order_rec *r, uint32_t seq)
{
	int32_t ahead = (int32_t)(seq - (g->base + g->n));
	uint32_t id;

	if (ahead < 0)
		return true;
	id = ahead ? MQ_NONE : mq_push(e->order->records, &g->records);
	if (id == MQ_NONE)
		return false;
	*(struct order_rec *)mq_ptr(e->order->records, id) = *r;
	g->n++;
	return true;
}

/* Records of a log of the peer's. */
static void rx_records(struct engine *e, unsigned int peer, const struct report *r)
{
	struct order_log *g = peer_log(e, peer, r->lane);

	if (!g || (g->known && (int32_t)(r->gen - g->gen) < 0)) {
		COUNT(e, BAD_REPORT);
		if (g) { /* only late, or its source must know which one is believed here */
			g->answer = true;
			order_due(e, g);
		}
		return;
	}
	if (!g->known || g->gen != r->gen) {
		log_forget(e, g);
		g->known = true;
		g->peer = (int8_t)peer;
		g->gen = r->gen;
		g->base = r->base;
	}
	for (uint32_t i = 0; i < r->norder; i++) {
		if (!take(e, g, &r->order[i], r->seq + i)) {
			g->gap = true;
			break;
		}
	}
	g->answer = true;
	order_due(e, g);
}

void order_rx(struct engine *e, unsigned int peer, const struct report *r)
{
	if (r->by_opener)
		rx_records(e, peer, r);
	else
		order_rx_answer(e, peer, r);
}

uint64_t order_answer(struct engine *e, struct order_log *g)
{
	struct report r = {
		.type = REPORT_ORDER,
		.lane = (uint32_t)(g - e->order->logs) % ORDER_LOGS,
	};

	if (!g->known)
		return 0;
	order_run(e, g);
	if (!g->answer)
		return 0;
	if (!g->gap && e->now - g->sent < ANSWER_NS)
		return g->sent + ANSWER_NS;
	r.gen = g->gen;
	r.base = g->base;
	r.seq = g->base + g->n;
	r.step_us = g->step_us;
	r.again_all = g->gap;
	g->gap = g->answer = false;
	g->sent = e->now;
	e->sink.report(e->sink.ctx, (unsigned int)g->peer, &r);
	return 0;
}
