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
 * lane has ended here, everything delivered, the log gets another generation, too, without that
 * WAIT.
 *
 * FAULT. When the lane of a WAIT loses its custody, that WAIT will never be over. What stands
 * behind it must not be delivered: the application would act on data that is not there. So all
 * lanes of the log that have something undelivered are lost with it, and their hosts are told by a
 * fault of each. Then the log begins anew.
 *
 * Requests that no lane holds (queue pairs not learned yet, lanes that are opening) could overtake
 * custody, too. While a WAIT is open they are dropped, and their host repeats them; and while there
 * are such requests the host is told only what is true, so that this ends.
 *
 * A peer that knows nothing of barriers (features in HELLO) gets lanes with the policy `honest`.
 */
#include "engine/fault/fault.h"
#include "engine/link/link.h"
#include "engine/link/order_priv.h"

#define STEP_NS	      (200 * NSEC_PER_USEC)
#define STEP_ALONE_NS (20 * NSEC_PER_USEC)
#define STEP_MAX_NS   (2 * NSEC_PER_MSEC) /* over a LAN */
#define STEP_SINGLE   (1 * NSEC_PER_SEC)
#define AGAIN_FIRST   (50 * NSEC_PER_MSEC)
#define AGAIN_MIN     (2 * NSEC_PER_MSEC)
/* After a request that no lane holds the host is told only what is true, for so long; and longer
 * if it was dropped, for its host repeats it after a timeout only. */
#define QUIET_NS      (100 * NSEC_PER_MSEC)
#define DROPPED_NS    (1 * NSEC_PER_SEC)
/* A peer that has just come up may have forgotten lanes whose packets are under way. */
#define FRESH_PEER_NS (300 * NSEC_PER_MSEC)

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

/* The log of the two hosts of @k, in this direction. */
static struct order_log *log_of(const struct engine *e, const struct flow_key *k)
{
	uint64_t h = 0;

	for (int i = 0; i < 16; i += 8)
		h = (h ^ get_be64(k->src.b + i)) * 0x9e3779b97f4a7c15u +
		    (get_be64(k->dst.b + i) ^ h >> 29) * 0xc2b2ae3d27d4eb4fu;
	return log_ref(e, (h ^ h >> 31) >> 32 & (ORDER_LOGS - 1));
}

static struct order_rec *record(const struct engine *e, uint32_t id)
{
	return id == MQ_NONE ? NULL : mq_ptr(e->order->records, id);
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

/* Not before this there may be another barrier. */
static uint64_t barrier_at(const struct order_log *g)
{
	uint64_t most = g->peer == PEER_NONE ? STEP_SINGLE : STEP_MAX_NS;
	uint64_t step = g->step_us * NSEC_PER_USEC * 3 / 2;

	if (g->nfresh == 1 && g->fresh == g->alone)
		return g->closed + STEP_ALONE_NS;
	if (step < STEP_NS)
		step = STEP_NS;
	return g->closed + (step < most ? step : most);
}

/* The next barrier has to look at the lane. */
static void keep_fresh(struct engine *e, struct flow *fl)
{
	struct order_lane *o = order_lane(e, fl);
	struct order_log *g = log_ref(e, o->log);

	if (o->fresh)
		return;
	o->fresh = true;
	o->next_fresh = g->fresh;
	g->fresh = flow_index(e, fl);
	g->nfresh++;
}

static void fresh(struct engine *e, struct flow *fl)
{
	struct order_log *g = log_ref(e, order_lane(e, fl)->log);

	keep_fresh(e, fl);
	order_due_at(e, g, barrier_at(g));
}

/* ---- lanes come and go ---- */

void order_join(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	const struct rule *r = &e->rules[fl->rule];
	struct order_lane *o = order_lane(e, fl);
	struct order_log *g = log_of(e, &fl->key);

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
	o->want = o->grant = l->frontier;
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
static void log_resume(struct engine *e, struct order_log *g)
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
		log_resume(e, g);
	if (psn_after(o->waited, l->una.psn))
		g->broken = true; /* what a record waits for will never be delivered */
	else if ((int32_t)(o->wait_seq - g->base) >= 0)
		log_resume(e, g); /* the peer must not wait for what it does not know any more */
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
		log_resume(e, g);
}

void order_open(const struct engine *e, const struct flow *fl, struct report *r)
{
	const struct order_lane *o = order_lane(e, fl);

	r->ordered = fl->lane.ordered;
	if (!r->ordered)
		return;
	r->log = o->log;
	r->birth = o->birth;
	r->clear = psn_before(o->cleared, r->start_psn) ? r->start_psn : o->cleared;
}

/* ---- what the host may be told ---- */

void order_want(struct engine *e, struct flow *fl, const struct mark *m)
{
	struct order_lane *o = order_lane(e, fl);
	const struct lane *l = &fl->lane;

	if (psn_after(m->psn, o->want.psn))
		o->want = *m;
	if (l->state != LANE_OPENING && psn_after(o->want.psn, o->grant.psn))
		fresh(e, fl);
}

void order_limit(struct engine *e, const struct lane *l, struct mark *m)
{
	const struct flow *fl =
		(const struct flow *)((const char *)l - offsetof(struct flow, lane));
	struct mark una = psn_to_host(e, l, &l->una), grant = order_lane(e, fl)->grant;

	if (psn_after(una.psn, grant.psn))
		grant = una; /* what is true may always be told */
	if (psn_before(grant.psn, m->psn))
		*m = grant;
}

void order_accepted(struct engine *e, struct flow *fl)
{
	const struct lane *l = &fl->lane;

	if (l->ordered && l->state != LANE_OPENING &&
	    psn_after(l->epsn.psn, order_lane(e, fl)->logged))
		fresh(e, fl);
}

static void log_add(struct engine *e, struct order_log *g, struct flow *fl, enum order_kind kind,
		    uint32_t psn)
{
	uint32_t id = mq_push(e->order->records, &g->records);
	struct order_rec *r = record(e, id);

	r->lane = flow_index(e, fl);
	r->birth = order_lane(e, fl)->birth;
	r->psn = psn;
	r->kind = kind;
	g->n++;
	g->waits += kind == ORDER_WAIT;
	if (g->send_id == MQ_NONE)
		g->send_id = id;
	if (g->have_id == MQ_NONE)
		g->have_id = id;
}

/* The wire PSN before which the host is told, with @o->want. */
static uint32_t told_before(struct engine *e, const struct lane *l, const struct order_lane *o)
{
	uint32_t psn = o->want.psn;

	if (psn_map_differs(e, l)) {
		psn = psn_to_wire(map_of(e, l), psn_sub(psn, 1));
		if (psn == PSN_NONE)
			return l->epsn.psn;
		psn = psn_add(psn, 1);
	}
	return psn_after(psn, o->logged) ? o->logged : psn;
}

/* Clear what was accepted on @fl since the barrier before. */
static void barrier_clear(struct engine *e, struct order_log *g, struct flow *fl)
{
	struct order_lane *o = order_lane(e, fl);

	if (!psn_after(fl->lane.epsn.psn, o->logged))
		return;
	o->logged = fl->lane.epsn.psn;
	log_add(e, g, fl, ORDER_CLEAR, o->logged);
}

/* Let its host be told, behind a record that waits for what it is told of. */
static void barrier_grant(struct engine *e, struct order_log *g, struct flow *fl)
{
	struct order_lane *o = order_lane(e, fl);
	struct lane *l = &fl->lane;
	uint32_t psn;

	if (!psn_after(o->want.psn, o->grant.psn))
		return;
	psn = told_before(e, l, o);
	if (l->policy == POLICY_EARLY && psn_after(psn, l->una.psn) && psn_after(psn, o->waited)) {
		o->waited = psn;
		o->wait_seq = g->base + g->n;
		log_add(e, g, fl, ORDER_WAIT, psn);
	}
	o->grant = o->want;
	ack_list(e, fl);
}

/* A barrier: the lanes that have news since the one before. */
static void barrier(struct engine *e, struct order_log *g)
{
	uint32_t list = g->fresh, i;
	bool grants = e->now >= g->quiet;

	g->alone = g->nfresh == 1 ? list : FLOW_NONE;
	g->fresh = FLOW_NONE;
	g->nfresh = 0;
	for (i = list; i != FLOW_NONE; i = lane_at(e, i)->next_fresh)
		barrier_clear(e, g, flow_ref(e, i));
	while ((i = list) != FLOW_NONE) {
		struct order_lane *o = lane_at(e, i);

		list = o->next_fresh;
		o->fresh = false;
		if (grants)
			barrier_grant(e, g, flow_ref(e, i));
		else if (psn_after(o->want.psn, o->grant.psn))
			keep_fresh(e, flow_ref(e, i));
	}
	g->closed = e->now;
}

/* ---- requests that no lane holds ---- */

bool order_waits(const struct engine *e, const struct flow *fl)
{
	return log_of(e, &fl->key)->waits;
}

bool order_may_pass(struct engine *e, struct flow *fl)
{
	const struct rule *r = &e->rules[fl->rule];
	struct order_log *g = log_of(e, &fl->key);

	if (!r->order)
		return true;
	if (fl->side == PORT_WAN) {
		if (r->peer != PEER_NONE && e->now < e->peer_new_at[r->peer] + FRESH_PEER_NS &&
		    fl->lane.role == ROLE_NONE) {
			COUNT(e, ORDER_DROPPED);
			return false;
		}
		return true;
	}
	if (!g->nmembers && !g->waits)
		return true;
	if (g->quiet < e->now + QUIET_NS)
		g->quiet = e->now + QUIET_NS;
	if (!g->waits)
		return true;
	g->quiet = e->now + DROPPED_NS;
	COUNT(e, ORDER_DROPPED);
	return false;
}

/* ---- custody is lost ---- */

/* What a record waits for is lost, and with it all that stands behind. */
static void log_broken(struct engine *e, struct order_log *g)
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
		if (fl->lane.una.psn == fl->lane.epsn.psn)
			continue;
		COUNT(e, ORDER_FAULTS);
		lane_fault(e, fl, REASON_FAULT, AETH_NAK_OPERATION);
	}
}

/* ---- reports ---- */

/* The record as the peer is told of it: for a lane that has ended, all delivered, nobody waits. */
static struct order_rec told_as(const struct engine *e, const struct order_rec *r)
{
	struct order_rec x = *r;

	if (!e->flows[r->lane].lane.ordered || lane_at(e, r->lane)->birth != r->birth)
		x.kind = ORDER_CLEAR;
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

		while (g->send_id != MQ_NONE && r.norder < REPORT_ORDER_RECS) {
			r.order[r.norder++] = told_as(e, record(e, g->send_id));
			g->send_id = mq_next(e->order->records, g->send_id);
			g->send++;
		}
		if (!g->probe_at) {
			g->probe_at = e->now;
			g->probe = g->send;
		}
		g->sent = e->now;
		e->sink.report(e->sink.ctx, (unsigned int)g->peer, &r);
	}
}

static uint64_t again_at(const struct order_log *g)
{
	uint64_t rto = (g->rtt.srtt_us + 4ull * g->rtt.rttvar_us) * NSEC_PER_USEC;

	if (!rto)
		rto = AGAIN_FIRST;
	if (rto < AGAIN_MIN)
		rto = AGAIN_MIN;
	return g->sent + (rto << g->backoff);
}

static void send_again(struct order_log *g)
{
	g->send = g->have;
	g->send_id = g->have_id;
	g->probe_at = 0;
}

/*
 * Whether the oldest record, which the peer has, is carried out as far as we know. The peer says so
 * once, and that may be lost. Where nothing follows it would stay open for ever, and requests that
 * no lane holds would be dropped as long.
 */
static bool answer_lost(const struct engine *e, const struct order_log *g)
{
	struct order_rec r;

	if (!g->n || g->have != g->send || g->send != g->base + g->n)
		return false;
	r = told_as(e, record(e, g->records.head));
	return r.kind == ORDER_CLEAR || !psn_before(e->flows[r.lane].lane.una.psn, r.psn);
}

/* The newest record once more: the peer answers with what it has carried out. */
static void ask_again(struct order_log *g)
{
	g->have = g->send = g->base + g->n - 1;
	g->have_id = g->send_id = g->records.tail;
	g->probe_at = 0;
}

/* The peer tells what it has of our log, and what it has carried out. */
void order_rx_answer(struct engine *e, unsigned int peer, const struct report *r)
{
	struct order_log *g = r->lane < ORDER_LOGS ? log_ref(e, r->lane) : NULL;

	if (!g || !g->known || g->peer != (int8_t)peer || g->resuming)
		return; /* of a log that is no more */
	if (g->gen != r->gen) {
		if ((int32_t)(r->gen - g->gen) <= 0)
			return;
		g->gen = r->gen; /* the peer believes in one that never was */
		log_resume(e, g);
		return;
	}
	if ((int32_t)(r->base - g->base) < 0)
		return; /* a later one has overtaken it */
	if (r->seq - g->base > g->n || r->base - g->base > r->seq - g->base) {
		COUNT(e, BAD_REPORT);
		return;
	}
	if (g->probe_at && (int32_t)(r->seq - g->probe) >= 0) {
		rtt_sample(&g->rtt, (uint32_t)((e->now - g->probe_at) / NSEC_PER_USEC));
		g->probe_at = 0;
	}
	if ((int32_t)(r->seq - g->have) > 0)
		g->backoff = 0;
	while ((int32_t)(r->seq - g->have) > 0) {
		g->have++;
		g->have_id = mq_next(e->order->records, g->have_id);
	}
	if ((int32_t)(g->have - g->send) > 0) {
		g->send = g->have;
		g->send_id = g->have_id;
	}
	while (g->base != r->base) {
		const struct order_rec *x = record(e, g->records.head);
		struct order_lane *o = lane_at(e, x->lane);

		if (x->kind == ORDER_CLEAR && e->flows[x->lane].lane.ordered &&
		    o->birth == x->birth)
			o->cleared = x->psn;
		g->waits -= x->kind == ORDER_WAIT;
		mq_pop(e->order->records, &g->records);
		g->base++;
		g->n--;
	}
	g->step_us = r->step_us;
	if (r->again_all && g->have != g->send &&
	    e->now >= g->sent + g->rtt.minrtt_us * NSEC_PER_USEC)
		send_again(g);
	order_due(e, g);
}

/* ---- the tick ---- */

static uint64_t own_step(struct engine *e, struct order_log *g)
{
	uint64_t next = 0;

	if (g->broken)
		log_broken(e, g);
	if (g->resuming)
		return 0; /* order_resumed() */
	if (g->nfresh) {
		if (mq_free_count(e->order->records) < 2 * g->nfresh)
			next = e->now + NSEC_PER_MSEC;
		else if (e->now >= barrier_at(g))
			barrier(e, g);
		if (g->nfresh && !next)
			next = barrier_at(g);
	}
	if (g->peer == PEER_NONE) {
		order_run(e, g);
		return next;
	}
	if (!e->peer_up[g->peer])
		return e->now + AGAIN_FIRST; /* what could be told is not lost */
	if (g->have != g->send && e->now >= again_at(g)) {
		g->backoff += g->backoff < 6;
		send_again(g);
	} else if (answer_lost(e, g) && e->now >= again_at(g)) {
		g->backoff += g->backoff < 6;
		ask_again(g);
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
