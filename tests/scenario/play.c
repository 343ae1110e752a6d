// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Running a plan: the world is made, each incident happens when its share of the work is done, and
 * the end is judged (judge.c).
 */
#include <stdlib.h>
#include <string.h>

#include "tests/scenario/judge.h"
#include "tests/scenario/plan.h"
#include "tests/scenario/scenario.h"
#include "tests/scenario/world_storage.h"
#include "wire/psn.h"

/* Without progress for so long, the next incident happens anyway. */
#define STALL_NS     (5 * SEC)
#define LIMIT_NS     (3000 * SEC)
/* How long a queue pair that lost acknowledged requests gets to find out. */
#define PROBE_NS     (100 * SEC)
/* A QPN is not used again before packets to its former owner have left the network. */
#define TIME_WAIT_NS (1500 * MS)
/* How long a queue pair whose custody was lost may seem to be well. */
#define FAULT_NS     (60 * SEC)
/* How long an engine may take to deliver its custody. */
#define DRAIN_NS     (100 * SEC)
/* How long nothing may end, where there is an attack: longer than any patience of an engine. */
#define STANDS_NS    (300 * SEC)

struct play {
	const struct plan *p;
	struct world *w;
	uint64_t total;			 /* requests to be posted in all */
	uint64_t end_at[PLAN_INCIDENTS]; /* of those under way, 0: not */
	uint64_t drain_until[2];	 /* engines that drain, 0: not */
	bool may_fail[PLAN_QPS];
	uint32_t left_off[2]; /* latest PSNs of the queue pair to be reused */
};

static uint64_t min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The rules name what all queue pairs may read. */
static void name_range(const struct plan *p, struct world_config *c)
{
	struct rc_qp_config qc;
	uint32_t kib = UINT32_MAX;

	scenario_qp(&qc, 0, p->qp[0].mtu, RC_STRICT);
	for (uint32_t i = 0; i < p->nqps; i++)
		kib = p->qp[i].mr_kib < kib ? p->qp[i].mr_kib : kib;
	c->read_from = qc.rmr_va;
	c->read_end = qc.rmr_va + ((uint64_t)kib << 10);
}

static void world_of(const struct plan *p, struct world_config *c)
{
	world_defaults(c);
	c->seed = p->seed;
	c->appliance[0] = p->appliance0;
	c->appliance[1] = p->appliance1;
	c->cores[0] = p->cores0;
	c->cores[1] = p->cores1;
	c->single = p->single;
	c->policy = p->policy;
	c->atomic = (enum atomic_mode)p->atomic;
	/* where appliances renumber, they need seals */
	c->unsealed = p->unchecked && !p->prefetch && !p->announce && p->atomic != ATOMIC_PREFETCH;
	c->prefetch = p->prefetch;
	c->prefetch_responder = p->prefetch && p->prefetch_responder;
	c->proved = p->proved;
	if (c->prefetch_responder)
		name_range(p, c);
	c->announce = c->storage = p->announce;
	c->prefetch_max_age_ns = p->read_age_ms * MS;
	c->check_every = 16001;
	c->check_custody = true;
	c->check_range = true;
	c->frames_max = 16000000;
	c->wan.delay_ns = p->delay_ns;
	c->wan.rate_bps = p->rate_bps;
	c->wan.queue_bytes = p->queue_bytes;
	c->wan.dup = p->dup;
	c->wan.reorder = p->reorder;
	c->wan.reorder_ns = p->reorder_ns;
	c->wan.corrupt = p->corrupt;
	c->wan.burst_start = p->burst;
	c->wan.burst_end = p->burst_length ? 1.0 / p->burst_length : 0.1;
	c->wan.burst_loss = p->burst_length ? 1 : 0.5;
	c->wan.loss_by_length = p->by_length;
	c->wan.loss_swing = p->swing;
	c->wan.loss_swing_ns = p->swing_ms * MS;
	c->lan.loss = p->lan_loss;
	c->lan.dup = p->lan_dup;
	c->lan.reorder = p->lan_reorder;
	c->lan.reorder_ns = 50000;
	c->lan.corrupt = p->lan_corrupt;
	c->report_loss = p->report_loss;
	c->report_reorder = p->report_reorder;
	c->report_replay = p->report_replay;
	c->report_forge = p->report_forge;
	c->actors = p->actors;
	c->engine.pool_bytes = p->pool_bytes;
	c->engine.lane_span = (uint32_t)p->lane_span;
	c->engine.wan_rate = p->wan_rate;
	c->engine.wan_auto = p->wan_auto;
	c->reports_in_band = p->in_band;
}

/* The WAN as the plan has it, before and after incidents. */
static void wan_of(const struct play *x, int from, struct wan_config *c)
{
	*c = *wan_config(x->w->link[WORLD_WAN(from)]);
	c->loss = from ? x->p->loss1 : x->p->loss0;
	c->down = false;
}

/* What only some network cards do. */
static void nic_of(const struct plan_qp *pq, struct rc_qp_config *c)
{
	c->prio = (uint8_t)pq->prio0;
	c->rprio = (uint8_t)pq->prio1;
	c->ack_coalesce = pq->coalesce;
	c->ack_delay = pq->ack_us * 1000ull;
	c->reply_interval = pq->reply_us * 1000ull;
	if (pq->ackreq_every)
		c->ackreq_every = pq->ackreq_every;
	if (!pq->recv_us)
		return;
	c->recv_auto = false;
	c->recv_depth = 16;
	c->recv_interval = pq->recv_us * 1000ull;
	c->credits = c->honor_credits = c->credit_updates = true;
}

/* Whether all owners of its numbers come and go by the book. */
static bool told(const struct plan_qp *pq)
{
	return pq->cm && pq->reuse_cm == (REUSE_DREQ | REUSE_REQ);
}

static void reuse_of(const struct play *x, struct world_qp *q, const struct plan_qp *pq)
{
	q->reuse = (struct reuse){.left = pq->reuse,
				  .psn = pq->reuse_psn,
				  .after = pq->reuse_after,
				  .other = pq->reuse_other,
				  .by_cm = pq->reuse_cm,
				  /* with order between queue pairs a fault of one is others' */
				  .must = told(pq) && !pq->strict && !x->p->nincidents &&
					  !x->p->actors.order,
				  .pause_ns = TIME_WAIT_NS + pq->reuse_ms * MS,
				  .first = {pq->sq_psn, pq->rq_psn}};
}

static struct storage_config storage_of(const struct plan_qp *pq)
{
	return (struct storage_config){.min = pq->st_min,
				       .max = pq->st_max,
				       .depth = pq->st_depth,
				       .split = pq->st_split,
				       .reads = pq->st_reads,
				       .inlined = pq->st_inlined,
				       .refused = pq->st_refused,
				       .form = pq->st_protocol,
				       .parts = pq->st_parts,
				       .chatter = pq->st_chatter,
				       .count = pq->storage,
				       .one_key = pq->st_form & 1,
				       .odd = pq->st_form & 2};
}

static void work(struct play *x, struct world_qp *q, const struct plan_qp *pq)
{
	const struct storage_config sc = storage_of(pq);

	for (int s = 0; s < 2; s++) {
		const struct plan_work *pk = &pq->work[s];
		struct work k = {.ops = pk->ops,
				 .min = pk->min,
				 .max = pk->max,
				 .left = pk->count,
				 .outstanding = pk->outstanding,
				 .streams = pk->streams,
				 .stream_len = pk->stream_len,
				 .break_p = pk->break_permille / 1000.0,
				 .counter = pk->counter,
				 .unsignaled = pk->unsignaled,
				 .changing = pk->changing && pq->change_us};

		x->total += pk->count;
		if (pk->count)
			world_work(q, s, &k);
	}
	/* capsule, READ, response */
	x->total += 3 * pq->storage;
	if (pq->storage)
		storage_begin(q, &sc);
}

static bool any_reuse(const struct plan *p)
{
	for (uint32_t i = 0; i < p->nqps; i++)
		if (p->qp[i].reuse)
			return true;
	return false;
}

/* What the engines of an appliance are to share is of several pairs of hosts. */
static void hosts_of(const struct plan *p, uint32_t i, struct rc_qp_config *c)
{
	ip_addr_parse(p->qp[i].ip6 ? "fd00:1::1" : "10.1.0.1", &c->src);
	ip_addr_parse(p->qp[i].ip6 ? "fd00:2::1" : "10.2.0.1", &c->dst);
	if (p->cores0 > 1 || p->cores1 > 1) {
		c->src.b[15] = (uint8_t)(1 + i % 6);
		c->dst.b[15] = (uint8_t)(1 + i % 3);
	}
}

static void connect(struct play *x)
{
	for (uint32_t i = 0; i < x->p->nqps; i++) {
		const struct plan_qp *pq = &x->p->qp[i];
		enum rc_personality kind = pq->strict ? RC_STRICT : RC_PERMISSIVE;
		const struct storage_config sc = storage_of(pq);
		struct rc_qp_config qc;
		struct world_qp *q;

		scenario_qp(&qc, i, pq->mtu, kind);
		qc.sq_psn = pq->sq_psn;
		qc.rq_psn = pq->rq_psn;
		qc.ports = (enum rc_ports)pq->ports;
		qc.depth = pq->depth;
		qc.max_rd = pq->max_rd;
		qc.resp_rd = pq->max_rd;
		qc.rnr_p = pq->rnr_p;
		qc.credits = pq->credits;
		qc.atomics_more = x->p->atomic == ATOMIC_PREFETCH;
		qc.shadow = !qc.atomics_more; /* the content cannot be known */
		qc.atomics_blank = x->p->atomic == ATOMIC_DISCARD;
		qc.resend = pq->resend;
		nic_of(pq, &qc);
		qc.mr_size = qc.rmr_size = (uint64_t)pq->mr_kib << 10;
		if (pq->change_us)
			qc.mr_fixed = qc.rmr_fixed = qc.mr_size / 2;
		hosts_of(x->p, i, &qc);
		if (pq->vlan)
			qc.vlan = (uint16_t)pq->vlan;
		if (pq->storage)
			storage_qp(&qc, &sc);
		q = pq->cm ? world_connect_cm(x->w, &qc, kind) : world_connect(x->w, &qc, kind);
		q->change_ns[0] = q->change_ns[1] = pq->change_us * 1000ull;
		work(x, q, pq);
		if (pq->reuse)
			reuse_of(x, q, pq);
		/* it has only seven retries; and an owner that comes without CM may find its number
		 * still in custody for the former one */
		x->may_fail[i] = pq->strict || (pq->reuse && !told(pq));
		/* READs ahead may have made the responder forget a response that an acceptor lost
		 * with its memory; or an overloaded LAN loses it each time */
		x->may_fail[i] |=
			x->p->atomic == ATOMIC_PREFETCH &&
			(x->p->report_forge > 0 || x->p->nincidents || x->p->actors.overload);
		/* a message that the former owner's responder had not taken is lost when the next
		 * owner comes, and with it all that must follow in order: their queue pairs fail */
		x->may_fail[i] |= x->p->actors.order && any_reuse(x->p);
	}
}

static void set_links(struct play *x, const struct plan_incident *i, bool on)
{
	struct wan_config c;

	for (int s = 0; s < 2; s++) {
		wan_of(x, s, &c);
		c.down = on && (i->what == INC_LINK_DOWN || s == (int)i->side);
		world_set_wan(x->w, s, &c);
	}
}

static void set_lan(struct play *x, uint32_t side, bool down)
{
	int link[2] = {WORLD_LAN_IN(side), WORLD_LAN_OUT(side)};

	for (int i = 0; i < 2; i++) {
		struct wan_config c = *wan_config(x->w->link[link[i]]);

		c.down = down;
		wan_set(x->w->link[link[i]], &c);
	}
}

static void set_reports(struct play *x, uint32_t side, bool down)
{
	struct wan *of[2] = {x->w->reports[side], x->w->opens[side]};

	for (int i = 0; i < 2 && of[i]; i++) {
		struct wan_config c = *wan_config(of[i]);

		c.down = down;
		wan_set(of[i], &c);
	}
}

/* With the memory of engine @side, the list of connections that it renumbered is lost. */
static void lose_orphans(struct world *w, int side)
{
	for (uint32_t i = 0; i < w->nqps; i++) {
		w->qp[i].side[side].stranded |= w->qp[i].side[side].numbered.dqpn != 0;
		w->qp[i].side[side].numbered = (struct flow_key){0};
	}
}

/* With order = hosts a fault of one queue pair is one of all others. */
static void one_fails(struct play *x, uint32_t qp)
{
	for (uint32_t n = 0; n < x->p->nqps; n++)
		x->may_fail[n] |= n == qp || x->p->actors.order;
}

/* Packets take another way, once or many times. */
static void take_path(struct play *x, const struct plan_incident *i)
{
	struct path p = {.times = i->times ? i->times : 1, .on = i->for_ms * MS};

	p.miss[i->side] = i->arg & 3;
	p.miss[!i->side] = i->arg >> 2 & 3;
	p.every = i->every_ms > i->for_ms ? i->every_ms * MS : p.on;
	world_path(x->w, &p);
}

/* How long @i lasts, when it has begun. */
static uint64_t lasts(const struct plan_incident *i)
{
	uint64_t every = i->every_ms > i->for_ms ? i->every_ms : i->for_ms;

	if (i->what == INC_PATH)
		return (i->times ? i->times : 1) * every * MS;
	return i->for_ms * MS + (i->what == INC_REUSE ? TIME_WAIT_NS : 0);
}

/* Returns whether it lasts. */
static bool begin(struct play *x, const struct plan_incident *i)
{
	struct world *w = x->w;
	struct world_qp *q = &w->qp[i->qp];
	struct wan_config c;

	if (w->still[i->side].since &&
	    (i->what == INC_DRAIN || i->what == INC_RESTART || i->what == INC_OPERATOR))
		return false;
	if (!q->up && (i->what == INC_RNR_STORM || i->what == INC_FATAL || i->what == INC_CLOCK ||
		       i->what == INC_REUSE))
		return false;
	switch (i->what) {
	case INC_LINK_DOWN:
	case INC_ONE_WAY_DOWN:
		set_links(x, i, true);
		return true;
	case INC_RATE:
	case INC_DELAY:
	case INC_LOSS:
		c = *wan_config(w->link[WORLD_WAN(i->side)]);
		if (i->what == INC_RATE)
			c.rate_bps = i->arg * 1000000ull;
		else if (i->what == INC_DELAY)
			c.delay_ns = i->arg * 1000ull;
		else
			c.loss = i->arg / 1e6;
		world_set_wan(w, (int)i->side, &c);
		return false;
	case INC_PEER_DOWN:
		world_peer(w, !i->side, PEER_DOWN);
		/* fall through */
	case INC_PEER_SILENT:
		set_reports(x, i->side, true);
		return true;
	case INC_DRAIN:
		if (w->engine[i->side]) {
			world_drain(w, (int)i->side);
			x->drain_until[i->side] = w->now + DRAIN_NS;
		}
		return false;
	case INC_RESTART:
		x->drain_until[i->side] = 0;
		if (i->arg)
			lose_orphans(w, (int)i->side);
		if (w->engine[i->side])
			world_restart(w, (int)i->side);
		for (uint32_t n = 0; n < w->nqps; n++)
			/* where appliances number, packets that were told are not counted */
			if (w->qp[n].side[i->side].lost || w->qp[n].side[i->side].stranded ||
			    (w->qp[n].side[i->side].holed && world_renumbers(w)) || x->p->announce)
				one_fails(x, n);
		return false;
	case INC_RNR_STORM:
		rc_qp_set_recv(q->side[i->side].qp, w->now, true, 0, 0.9);
		return true;
	case INC_FATAL:
		one_fails(x, i->qp);
		rc_qp_refuse_next(q->side[i->side].qp, (uint8_t)i->arg, i->for_ms % 50);
		return false;
	case INC_CLOCK:
		rc_qp_clock_jump(q->side[i->side].qp, w->now, i->arg * MS);
		return false;
	case INC_HOST_SILENT:
		set_lan(x, i->side, true);
		return true;
	case INC_STILL:
		return world_stand_still(w, (int)i->side);
	case INC_PATH:
		take_path(x, i);
		return true;
	case INC_OPERATOR:
		world_wish(w, (int)i->side, (enum world_wish)i->arg, true);
		return true;
	case INC_REUSE:
		x->left_off[0] = rc_qp_una(q->side[0].qp);
		x->left_off[1] = rc_qp_una(q->side[1].qp);
		memcpy(q->reuse.left_off, x->left_off, sizeof(x->left_off));
		world_disconnect(q, true);
		/* without CM an appliance with custody for it does not learn of the change */
		if (!x->p->qp[i->qp].cm || x->p->actors.order)
			one_fails(x, i->qp);
		return true;
	default:
		return false;
	}
}

/* Far from @psn, in either direction: within the distance that a requester may go back or ahead,
 * one queue pair cannot be told from its successor, unless the connection manager says so. */
static uint32_t far_from(uint32_t psn, uint64_t random)
{
	return psn_add(psn, (1u << 22) + (uint32_t)(splitmix64(random) & 0x7fffff));
}

/* The QPNs again: from the PSNs of before, or from anywhere. */
static void reuse(struct play *x, const struct plan_incident *i)
{
	const struct plan_qp *pq = &x->p->qp[i->qp];
	uint32_t sq = pq->sq_psn, rq = pq->rq_psn;

	if (i->arg && pq->cm) {
		sq = (uint32_t)splitmix64(x->p->seed + i->at) & PSN_MASK;
		rq = (uint32_t)splitmix64(x->p->seed + i->at + 1) & PSN_MASK;
	} else if (i->arg) {
		sq = far_from(x->left_off[0], x->p->seed + i->at);
		rq = far_from(x->left_off[1], x->p->seed + i->at + 1);
	}
	x->w->qp[i->qp].debt = !pq->cm && world_owed(&x->w->qp[i->qp]);
	world_reconnect(&x->w->qp[i->qp], sq, rq, pq->cm);
}

/* Whether the appliance that is to be told of the end of @i stands still. */
static bool unheard(const struct world *w, const struct plan_incident *i)
{
	return (i->what == INC_OPERATOR && w->still[i->side].since) ||
	       (i->what == INC_PEER_DOWN && w->still[!i->side].since);
}

static void end(struct play *x, const struct plan_incident *i)
{
	struct world *w = x->w;

	switch (i->what) {
	case INC_LINK_DOWN:
	case INC_ONE_WAY_DOWN:
		set_links(x, i, false);
		break;
	case INC_PEER_DOWN:
		set_reports(x, i->side, false);
		world_peer(w, !i->side, PEER_UP);
		break;
	case INC_PEER_SILENT:
		set_reports(x, i->side, false);
		break;
	case INC_RNR_STORM:
		if (w->qp[i->qp].up)
			rc_qp_set_recv(w->qp[i->qp].side[i->side].qp, w->now, true, 0, 0);
		break;
	case INC_REUSE:
		reuse(x, i);
		break;
	case INC_STILL:
		world_go_on(w, (int)i->side);
		break;
	case INC_OPERATOR:
		world_wish(w, (int)i->side, (enum world_wish)i->arg, false);
		break;
	case INC_HOST_SILENT:
		world_forger_silent(x->w, (int)i->side);
		set_lan(x, i->side, false);
		break;
	default:
		break;
	}
}

/* Restart engines that have drained. Returns whether one still drains. */
static bool drained(struct play *x)
{
	struct world *w = x->w;

	for (int s = 0; s < 2; s++) {
		if (!x->drain_until[s] || w->still[s].since)
			continue;
		world_drain(w, s); /* it may have been killed since */
		if (shards_may_stop(w->shards[s]))
			world_restart(w, s);
		else if (w->now < x->drain_until[s])
			continue;
		x->drain_until[s] = 0;
	}
	return x->drain_until[0] || x->drain_until[1];
}

/* All incidents, in the order of their turns; returns when the last is over. */
static void incidents(struct play *x)
{
	bool begun[PLAN_INCIDENTS] = {0};
	struct world *w = x->w;

	for (;;) {
		const struct plan_incident *next = NULL;
		uint64_t until = UINT64_MAX, due;
		uint32_t n = 0;

		for (uint32_t i = 0; i < x->p->nincidents; i++) {
			if (x->end_at[i])
				until = min64(until, x->end_at[i]);
			if (!begun[i] && (!next || x->p->incident[i].at < next->at)) {
				next = &x->p->incident[i];
				n = i;
			}
		}
		if (drained(x))
			until = min64(until, w->now + MS);
		if (w->violation || w->excuse || (!next && until == UINT64_MAX))
			return;
		w->pause_at = 0;
		due = next ? next->at * x->total / 1000 : 0;
		if (next && w->finished < due) {
			w->pause_at = due;
			until = min64(until, w->now + STALL_NS);
		}
		if (!next || w->finished < due)
			world_run(w, until);
		w->pause_at = 0;
		for (uint32_t i = 0; i < x->p->nincidents; i++)
			if (x->end_at[i] && w->now >= x->end_at[i]) {
				bool deaf = unheard(w, &x->p->incident[i]);

				if (!deaf)
					end(x, &x->p->incident[i]);
				x->end_at[i] = deaf ? w->now + MS : 0;
				next = NULL; /* its turn may have been put off by that */
			}
		if (!next)
			continue;
		begun[n] = true;
		if (begin(x, next))
			x->end_at[n] = w->now + lasts(next) + 1;
	}
}

/* Whether host @s is idle, and cannot see that its requests are not renumbered any more. */
static bool stands_stranded(struct world_qp *q, int s)
{
	struct rc_qp *req = q->side[s].qp;

	return q->up && q->side[s].stranded && !rc_qp_in_error(req) && !rc_qp_queued(req) &&
	       !rc_qp_in_error(q->side[!s].qp);
}

/*
 * An appliance that cannot deliver custody makes the queue pair fail, even an idle one; that takes
 * time. If the appliance lost its memory, an idle host may not be told. But its next request must
 * not succeed if the last ones were lost, and must not succeed without being executed if the
 * connection was renumbered.
 */
static void probe(struct play *x)
{
	struct world *w = x->w;
	bool any = false;

	if (w->faults[0] || w->faults[1])
		world_run(w, w->now + FAULT_NS);
	for (uint32_t i = 0; i < w->nqps; i++)
		for (int s = 0; s < 2; s++)
			if ((judge_silent(&w->qp[i], s) && w->qp[i].side[s].lost) ||
			    stands_stranded(&w->qp[i], s)) {
				struct work k = {
					.ops = 1u << RC_SEND, .min = 100, .max = 100, .left = 1};

				any = true;
				world_work(&w->qp[i], s, &k);
			}
	if (any)
		world_run_done(w, w->now + PROBE_NS);
}

/* Worlds with reusers and forgers run for long, so the limit is time without progress. */
static bool run_to_end(struct play *x)
{
	struct world *w = x->w;
	uint64_t before;
	bool done;

	if (!w->cfg.actors.forge && !any_reuse(x->p))
		return world_run_done(w, w->now + LIMIT_NS);
	do {
		before = w->finished + w->reused;
		done = world_run_done(w, w->now + STANDS_NS);
	} while (!done && !w->violation && !w->excuse && w->finished + w->reused != before);
	return done;
}

static void live(const struct plan *p, struct plan_result *r, FILE *dump, FILE *trace)
{
	struct play x = {.p = p};
	struct world_config c;
	const char *bad;
	bool done;

	world_of(p, &c);
	c.trace = trace;
	x.w = world_create(&c);
	for (int s = 0; s < 2; s++) {
		struct wan_config wc;

		wan_of(&x, s, &wc);
		world_set_wan(x.w, s, &wc);
	}
	connect(&x);
	incidents(&x);
	done = run_to_end(&x);
	probe(&x);
	/* when all is over: processes are killed, and lose what they held, to the end */
	for (uint32_t i = 0; i < x.w->nqps; i++)
		if (x.w->qp[i].broken || x.w->qp[i].ever_unseen)
			one_fails(&x, i);
	bad = judge(x.w, x.may_fail, p->single, done);
	*r = (struct plan_result){.violation = x.w->excuse && !x.w->broken ? NULL : bad,
				  .packets = x.w->packets,
				  .forged = x.w->forged,
				  .reused = x.w->reused,
				  .paths = x.w->paths,
				  .late = x.w->late_reads,
				  .waits = x.w->late_waits,
				  .explained = x.w->late_found,
				  .passed = x.w->passed,
				  .unseen = x.w->unseen,
				  .broken = x.w->broken,
				  .excuse = x.w->excuse,
				  .frames = x.w->frames,
				  .now = x.w->now};
	for (uint32_t i = 0; i < x.w->nqps; i++) {
		r->acked += x.w->qp[i].side[0].ok + x.w->qp[i].side[1].ok;
		r->died += judge_died(&x.w->qp[i]);
	}
	if (dump)
		world_dump(x.w, dump);
	world_destroy(x.w);
}

/* Whether nothing happens in @p but that packets take another way, so that its hosts alone fare
 * the same each time. */
static bool only_paths(const struct plan *p)
{
	for (uint32_t i = 0; i < p->nincidents; i++)
		if (p->incident[i].what != INC_PATH)
			return false;
	return !(p->loss0 > 0 || p->loss1 > 0 || p->dup > 0 || p->reorder > 0 || p->corrupt > 0 ||
		 p->burst > 0 || p->lan_loss > 0 || p->lan_dup > 0 || p->lan_reorder > 0 ||
		 p->lan_corrupt > 0 || p->actors.forge || p->actors.overload ||
		 p->actors.cross_bps || any_reuse(p));
}

void plan_run(const struct plan *p, struct plan_result *r, FILE *dump, FILE *trace)
{
	struct plan bare = *p, straight = *p;
	struct plan_result alone;

	live(p, r, dump, trace);
	/* hosts with few retries may fail; but not where they live without appliances */
	if (r->violation || !r->paths || !r->died || !only_paths(p))
		return;
	bare.appliance0 = bare.appliance1 = 0;
	live(&bare, &alone, NULL, NULL);
	if (alone.died || alone.violation)
		return;
	/* nor is it the paths that kill it if it fails on a straight one as well, of a rate that
	 * the operator has told wrong, say */
	straight.nincidents = 0;
	live(&straight, &alone, NULL, NULL);
	if (!alone.died && !alone.violation)
		r->violation = "a queue pair failed that lives without appliances";
}
