// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Barriers (OPENER, SINGLE), see order.c: when there is one, what it writes into the log, and what
 * the host may be told after it; and the requests that no lane holds, which wait for them.
 */
#include "engine/link/order_priv.h"

#define STEP_NS	      (200 * NSEC_PER_USEC)
#define STEP_ALONE_NS (20 * NSEC_PER_USEC)
#define STEP_MAX_NS   (2 * NSEC_PER_MSEC) /* over a LAN */
#define STEP_SINGLE   (1 * NSEC_PER_SEC)
/* After a request that no lane holds the host is told only what is true, for so long. Longer if it
 * was dropped, for its host repeats it after a timeout only, of 4 s in NCCL; and such a time begins
 * anew with each further one, or hosts that send in bursts would wait for that timeout in each. */
#define QUIET_NS      (100 * NSEC_PER_MSEC)
#define DROPPED_NS    (10 * NSEC_PER_SEC)
/* A peer that has just come up may have forgotten lanes whose packets are under way. */
#define FRESH_PEER_NS (300 * NSEC_PER_MSEC)

uint64_t order_barrier_at(const struct order_log *g)
{
	uint64_t most = g->peer == PEER_NONE ? STEP_SINGLE : STEP_MAX_NS;
	uint64_t step = g->step_us * NSEC_PER_USEC * 3 / 2;

	if (g->nfresh == 1 && g->fresh == g->alone)
		return g->closed + STEP_ALONE_NS;
	step = MAX(step, STEP_NS);
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
	order_due_at(e, g, order_barrier_at(g));
}

/* ---- what the host may be told ---- */

/* Marks that nothing moves while una goes on for half of all PSNs would seem to be ahead of it: a
 * barrier would be taken for passed, or what is delivered for lost. They trail (custody.c). */
static void trail(struct engine *e, const struct lane *l, struct order_lane *o)
{
	struct wire_psn to = psn_sub(l->una.psn, MARK_TRAIL);
	struct host_psn host;

	if (psn_before(o->waited, to))
		o->waited = to;
	host = psn_sub(psn_to_host(e, l, &l->una).psn, MARK_TRAIL);
	if (psn_before(o->want.psn, host))
		o->want = (struct host_mark){.psn = host};
	if (psn_before(o->grant.psn, host))
		o->grant = (struct host_mark){.psn = host};
}

void order_want(struct engine *e, struct flow *fl, const struct host_mark *m)
{
	struct order_lane *o = order_lane(e, fl);
	const struct lane *l = &fl->lane;

	trail(e, l, o);
	if (psn_after(m->psn, o->want.psn))
		o->want = *m;
	if (l->state != LANE_OPENING && psn_after(o->want.psn, o->grant.psn))
		fresh(e, fl);
}

void order_limit(struct engine *e, const struct lane *l, struct host_mark *m)
{
	const struct flow *fl =
		(const struct flow *)((const char *)l - offsetof(struct flow, lane));
	struct host_mark una = psn_to_host(e, l, &l->una), grant = order_lane(e, fl)->grant;

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
		    struct wire_psn psn)
{
	uint32_t id = mq_push(e->order->records, &g->records);
	struct order_rec *r = log_record(e, id);

	r->lane = flow_index(e, fl);
	r->birth = order_lane(e, fl)->birth;
	r->psn = psn.v;
	r->kind = kind;
	g->n++;
	g->waits += kind == ORDER_WAIT;
	if (g->send_id == MQ_NONE)
		g->send_id = id;
	if (g->have_id == MQ_NONE)
		g->have_id = id;
}

/* The wire PSN before which the host is told, with @o->want. */
static struct wire_psn told_before(struct engine *e, const struct lane *l,
				   const struct order_lane *o)
{
	struct wire_psn psn = psn_same_wire(o->want.psn);

	if (psn_map_differs(e, l)) {
		psn = psn_to_wire(map_of(e, l), psn_sub(o->want.psn, 1));
		if (!psn_known(psn))
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
	struct wire_psn psn;

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

/* The lanes of a barrier: all but the @left that became fresh last. What of those was accepted
 * already is cleared behind what these wait for, which is later than it need be, and as good. */
static uint32_t take_oldest(struct engine *e, struct order_log *g, uint32_t left)
{
	uint32_t *at = &g->fresh, list;

	while (left--)
		at = &lane_at(e, *at)->next_fresh;
	list = *at;
	*at = FLOW_NONE;
	return list;
}

void order_barrier(struct engine *e, struct order_log *g, uint32_t most)
{
	uint32_t left = g->nfresh > most ? g->nfresh - most : 0;
	uint32_t list = take_oldest(e, g, left), i;
	bool grants = e->now >= g->quiet;

	g->alone = g->nfresh == 1 ? list : FLOW_NONE;
	g->nfresh = left;
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
	return order_log_of(e, &fl->key)->waits;
}

/* Whether a request that no lane holds, and that came over the WAN, may overtake. The peer passes
 * none while a barrier is open, and tells of the next one later: so one that comes while a barrier
 * is open here has missed the peer. Or the peer has forgotten what held it back. */
static bool escaped(struct engine *e, const struct flow *fl, int8_t peer)
{
	if (peer == PEER_NONE)
		return false;
	return order_peer_waits(e, fl, (unsigned int)peer) ||
	       (fl->lane.role == ROLE_NONE && e->now < e->peer_new_at[peer] + FRESH_PEER_NS);
}

bool order_may_pass(struct engine *e, struct flow *fl)
{
	const struct rule *r = fl->rule < 0 ? NULL : &e->rules[fl->rule];
	struct order_log *g = order_log_of(e, &fl->key);

	/* a lane that drains because no rule wants it any more keeps its order until then */
	if (r ? !r->order : fl->side == PORT_WAN)
		return true;
	if (fl->side == PORT_WAN) {
		if (!escaped(e, fl, r->peer))
			return true;
		COUNT(e, ORDER_DROPPED);
		return false;
	}
	if (!g->nmembers && !g->waits)
		return true;
	/* @e is never NULL: NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
	g->quiet = e->now + (g->waits || g->quiet > e->now + QUIET_NS ? DROPPED_NS : QUIET_NS);
	if (!g->waits)
		return true;
	COUNT(e, ORDER_DROPPED);
	return false;
}
