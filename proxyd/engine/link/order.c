// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Order between the queue pairs of two hosts (rules with `order = hosts`).
 *
 * A host that was told that a WRITE on one queue pair is done may say so to the other host on
 * another queue pair. Without us the data is there by then. With early acknowledgements a packet
 * of it may still be under repair, so what is accepted later must not be delivered first.
 *
 * All lanes from one host to another share a *log*: records in an order that the appliance near the
 * requester (OPENER, SINGLE) decides, and that is carried out strictly one after the other where
 * packets are handed to the responder (order_rx.c), there (ACCEPTOR) or here (SINGLE):
 *
 *	CLEAR lane, psn	  the packets of this lane before psn may go to the responder
 *	WAIT lane, psn	  nothing goes on until the responder has truly acknowledged all before psn
 *
 * The host is told only at a *barrier*, of all its lanes at once: first what was accepted since the
 * one before is cleared, then there is a WAIT for each lane that is told of something new, and only
 * then it is told. So whatever it posts after it was told is cleared by a record behind that WAIT.
 * Where records are short a barrier is of some lanes only. A part of the records is the peers'.
 *
 * Nothing can wait for itself. A WAIT names packets that were accepted before it was written, and
 * the CLEAR of these stands before it in the log: the first record that is not carried out waits
 * for packets that are free to go, on one lane, which are delivered or end in FAULT. Barriers of
 * two lanes cannot wait for each other, because both follow the one order of acceptance.
 *
 * What it costs. A packet waits for the report that clears it. Without loss a WAIT finds its
 * packets delivered, or stops the log for the time that the far host takes to acknowledge. Barriers
 * closer together than that time would add up without end, so a barrier comes STEP after the one
 * before, at least, and STEP follows what the peer has measured (over the WAN in single mode,
 * which is why a single appliance gains little with order). A lane that is alone is not held up.
 *
 * Reports. Records are numbered; the peer answers with the number up to which it has them and the
 * number up to which they are carried out. They are sent again from the former after a timeout, or
 * at once when the peer tells of a gap. The last one is sent again, too, when what was waited for
 * is over and the peer has not said so: its answer was lost. Only what is carried out is forgotten
 * here: when the peer has lost its memory the lanes are agreed anew, the log gets another
 * generation and begins at the first record not carried out. While a lane is being agreed anew
 * nothing of its log is sent. The peer stops at a WAIT for a lane that it does not know. If that
 * lane has ended here, all delivered, a new generation has no such WAIT.
 *
 * FAULT. When the lane of a WAIT loses its custody, that WAIT will never be over. What stands
 * behind it must not be delivered: the application would act on data that is not there. So all
 * lanes of the log that have something undelivered are lost with it, by a fault of each.
 *
 * Not so when both hosts have taken the connection of that lane down, the responder's host has
 * asked for that, and the records wait for nothing that changes memory: it goes on without.
 *
 * Requests that no lane holds (queue pairs not learned yet, lanes that are opening) could overtake
 * custody, too. While a WAIT is open they are dropped, and their host repeats them; and while there
 * are such requests the host is told only what is true, so that this ends.
 *
 * A peer that knows nothing of barriers (features in HELLO) gets lanes with the policy `honest`.
 *
 * Here are the logs and the lanes that belong to them. Barriers are in order_barrier.c, what the
 * peer is sent, and the tick, in order_tx.c; records are carried out in order_rx.c.
 */
#include "engine/fault/fault.h"
#include "engine/link/order_priv.h"

uint64_t order_arena_size(uint32_t nflows)
{
	return sizeof(struct order) + (uint64_t)nflows * sizeof(struct order_lane) +
	       (uint64_t)nflows * sizeof(uint32_t) +
	       sizeof(struct order_log) * ORDER_LOGS * (PEER_MAX + 1) +
	       mqueue_arena_size(ORDER_RECORDS, sizeof(struct order_rec)) + 4096;
}

bool order_init(struct engine *e)
{
	struct order *o = arena_alloc(&e->arena, sizeof(*o), 64);

	if (!o)
		return false;
	o->lanes = arena_alloc(&e->arena, sizeof(*o->lanes) * e->nflows, 64);
	o->logs = arena_alloc(&e->arena, sizeof(*o->logs) * ORDER_LOGS * (PEER_MAX + 1), 64);
	o->heads = arena_alloc(&e->arena, sizeof(*o->heads) * e->nflows, 64);
	o->records = mqueue_create(&e->arena, ORDER_RECORDS, sizeof(struct order_rec));
	if (!o->lanes || !o->logs || !o->heads || !o->records)
		return false;
	o->at.lanes = (uint8_t *)o->lanes - (uint8_t *)o;
	o->at.logs = (uint8_t *)o->logs - (uint8_t *)o;
	o->at.heads = (uint8_t *)o->heads - (uint8_t *)o;
	o->at.records = (uint8_t *)o->records - (uint8_t *)o;
	o->due = LOG_NONE;
	e->order = o;
	return true;
}

void order_undo_by(struct order *o, struct undo *u)
{
	mqueue_undo_by(o->records, u);
}

void order_attach(struct order *o)
{
	o->lanes = (void *)((uint8_t *)o + o->at.lanes);
	o->logs = (void *)((uint8_t *)o + o->at.logs);
	o->heads = (void *)((uint8_t *)o + o->at.heads);
	o->records = (void *)((uint8_t *)o + o->at.records);
}

struct order_log *order_log_of(const struct engine *e, const struct flow_key *k)
{
	uint64_t h = 0;

	for (int i = 0; i < 16; i += 8)
		h = (h ^ get_be64(k->src.b + i)) * 0x9e3779b97f4a7c15u +
		    (get_be64(k->dst.b + i) ^ h >> 29) * 0xc2b2ae3d27d4eb4fu;
	h = (h ^ h >> 31) >> 32 & ((1u << LOG_SLICE) - 1);
	return log_ref(e, flow_slice(k) << LOG_SLICE | (uint32_t)h);
}

void order_due_at(struct engine *e, struct order_log *g, uint64_t when)
{
	engine_wake_at(e, when);
	if (g->listed)
		return;
	g->listed = true;
	order_change(e);
	g->next_due = e->order->due;
	e->order->due = (uint32_t)(g - e->order->logs);
}

void order_due(struct engine *e, struct order_log *g)
{
	order_due_at(e, g, e->now);
}

static void log_begin(struct engine *e, struct order_log *g)
{
	if (g->known)
		mq_flush(e->order->records, &g->records);
	mq_list_init(&g->records);
	if (!g->known)
		g->gen = ++e->gen;
	g->known = true;
	g->gen++;
	g->base = g->have = g->send = g->n = g->waits = 0;
	g->have_id = g->send_id = MQ_NONE;
	g->backoff = 0;
	g->probe_at = 0;
}

/* ---- lanes come and go ---- */

void order_join(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	const struct rule *r = &e->rules[fl->rule];
	struct order_lane *o = order_lane(e, fl);
	struct order_log *g = order_log_of(e, &fl->key);

	l->ordered = false;
	if (!r->order)
		return;
	if ((l->peer != PEER_NONE && !(e->peer_features[l->peer] & PEER_FEATURE_ORDER)) ||
	    (g->nmembers && g->peer != l->peer)) {
		if (l->policy == POLICY_EARLY)
			l->policy = POLICY_HONEST;
		return;
	}
	if (!g->nmembers) {
		if (!g->known || g->peer != l->peer)
			log_begin(e, g);
		g->peer = l->peer;
		g->members = g->fresh = g->alone = FLOW_NONE;
	}
	l->ordered = true;
	if (l->atomic == ATOMIC_DISCARD)
		l->atomic = ATOMIC_ORDERED;
	memset(o, 0, sizeof(*o));
	o->want = o->grant = l->near.frontier;
	o->log = (uint32_t)(g - e->order->logs);
	o->birth = l->gen;
	o->logged = o->waited = o->cleared = o->clear = l->start;
	o->wait_seq = g->base - 1;
	o->prev = FLOW_NONE;
	o->next = g->members;
	if (o->next != FLOW_NONE)
		lane_at(e, o->next)->prev = flow_index(e, fl);
	g->members = flow_index(e, fl);
	g->nmembers++;
}

/* All that is not carried out is sent once more, to a peer that may know nothing of it. */
void order_log_resume(struct engine *e, struct order_log *g)
{
	g->gen++;
	g->have = g->send = g->base;
	g->have_id = g->send_id = g->records.head;
	g->backoff = 0;
	g->probe_at = 0;
	order_due(e, g);
}

static void unfresh(struct engine *e, struct order_log *g, uint32_t flow)
{
	uint32_t *at = &g->fresh;

	while (*at != FLOW_NONE && *at != flow)
		at = &lane_at(e, *at)->next_fresh;
	if (*at == flow) {
		*at = lane_at(e, flow)->next_fresh;
		g->nfresh--;
	}
	lane_at(e, flow)->fresh = false;
}

void order_leave(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct order_lane *o = order_lane(e, fl);
	struct order_log *g = log_ref(e, o->log);

	if (!l->ordered)
		return;
	l->ordered = false;
	if (o->fresh)
		unfresh(e, g, flow_index(e, fl));
	if (o->prev == FLOW_NONE)
		g->members = o->next;
	else
		lane_at(e, o->prev)->next = o->next;
	if (o->next != FLOW_NONE)
		lane_at(e, o->next)->prev = o->prev;
	g->nmembers--;
	order_due(e, g);
	if (g->alone == flow_index(e, fl))
		g->alone = FLOW_NONE;
	if (o->resuming && !--g->resuming)
		order_log_resume(e, g);
	if (psn_after(o->waited, l->una.psn))
		g->broken = true; /* what a record waits for will never be delivered */
	else if ((int32_t)(o->wait_seq - g->base) >= 0)
		order_log_resume(e, g); /* the peer must not wait for what it knows no more */
}

/* Records wait for what the lane was told of, and its hosts have taken the connection down. An
 * undelivered SEND, or WRITE of nothing, shows at the responder only by a completion of that queue
 * pair, which its own host has given up. Others change memory of which queue pairs may speak. */
void order_abandon(struct engine *e, struct flow *fl)
{
	const struct lane *l = &fl->lane;
	struct order_lane *o = order_lane(e, fl);
	const struct pkt *d;
	struct frame f;

	if (!l->ordered)
		return;
	for (struct wire_psn psn = l->una.psn; psn_before(psn, o->waited);
	     psn = psn_add(psn, d->span)) {
		d = lane_pkt(e, l, psn);
		if (!d || frame_parse(lane_packet(e, d), d->len, &f) != FRAME_OK ||
		    !(f.op->flags & (f.payload_len ? OPF_SEND : OPF_SEND | OPF_WRITE)))
			return;
	}
	if (psn_after(o->waited, l->una.psn))
		o->waited = l->una.psn;
}

void order_resume(struct engine *e, struct flow *fl)
{
	struct order_lane *o = order_lane(e, fl);

	if (!fl->lane.ordered || o->resuming)
		return;
	o->resuming = true;
	log_ref(e, o->log)->resuming++;
}

void order_resumed(struct engine *e, struct flow *fl)
{
	struct order_lane *o = order_lane(e, fl);
	struct order_log *g = log_ref(e, o->log);

	if (!fl->lane.ordered || !o->resuming)
		return;
	o->resuming = false;
	if (!--g->resuming)
		order_log_resume(e, g);
}

void order_open(const struct engine *e, const struct flow *fl, struct report *r)
{
	const struct order_lane *o = order_lane(e, fl);

	r->ordered = fl->lane.ordered;
	if (!r->ordered)
		return;
	r->log = o->log;
	r->birth = o->birth;
	r->clear = psn_before(o->cleared, (struct wire_psn){r->start_psn}) ? r->start_psn
									   : o->cleared.v;
}

/* ---- custody is lost ---- */

void order_log_broken(struct engine *e, struct order_log *g)
{
	uint32_t i = g->members, next;

	g->broken = false;
	log_begin(e, g);
	for (; i != FLOW_NONE; i = next) {
		struct flow *fl = flow_ref(e, i);
		struct order_lane *o = order_lane(e, fl);

		next = o->next;
		o->logged = o->waited = o->cleared = o->clear = fl->lane.una.psn;
		o->wait_seq = g->base - 1;
		if (psn_is(fl->lane.una.psn, fl->lane.epsn.psn))
			continue;
		COUNT(e, ORDER_FAULTS);
		lane_fault(e, fl, REASON_FAULT, AETH_NAK_OPERATION);
	}
}
