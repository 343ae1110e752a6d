// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One appliance, near the responder, for READs that come over the WAN (role SOLO; only where a rule
 * without a peer says `prefetch = single`). Nothing is kept, nothing is acknowledged early. When
 * the appliance can predict the READ that its host will ask next, it asks it here, under the PSN
 * that the host's own READ will bear, and so early that the response arrives just after the host
 * has asked. The host's own READ comes a round trip later, and ends here.
 *
 *	host                        WAN                       appliance      responder
 *	 | <-------------- response n leaves --------------------- | <------------ |
 *	 | READ n+1 ------------------\                 wait a bit | - READ n+1 -> |
 *	 | <---------------------------\-- response n+1 ---------- | <------------ |
 *	 |                              \-----------------> is it that? drop it    |
 *
 * When. A host that has m READs outstanding asks for READ k when response k - m has come. So
 * response k may follow response k - m at a little distance; sooner, the host has not asked yet and
 * throws it away. Neither m nor the round trip can be seen from passing packets: four READs in
 * turns over 100 ms look like one over 25 ms. So both are measured, once, when a pattern stands:
 * the host's READs are held back (STALL) until no more come. Then the host waits for all that it
 * has outstanding, which is m; they go on, and the next READ comes a round trip, and what the host
 * needs to think, after the first response has left (MEASURE). For a host that reads by a clock,
 * which never stalls or contradicts what was measured, nothing is asked ahead.
 *
 * How many. A responder keeps what it needs to repeat a response for as many READs as it takes at a
 * time. Until the host asks for READ k it may lack response k - m; so what was asked for ahead and
 * not met by the host yet is no more than the responder's depth less m. Unknown, it is m.
 *
 * Two numberings. As long as the host asks for what was foreseen both ends number alike, and
 * packets pass as they are. A READ that was asked here and is not asked by the host has consumed
 * PSNs at the responder; from there on psn_map.c translates. Such a connection depends on us
 * (lane_fence()), and it does so from the first READ that is asked ahead.
 *
 * Wrong data. A host that asks for something else under that PSN while the response is on its way
 * takes it for its own. That is seen when its request arrives: if it may have been outstanding when
 * the response arrived (it came within a round trip and a margin after the response left), the
 * appliance puts the queue pair into the error state. If it came later, the host had not asked yet
 * and has thrown the response away. A request that is lost on the WAN is never seen. So when the
 * host goes on beyond it, and it does not come within the same time, the appliance puts the queue
 * pair into the error state as well: a later response acknowledges the lost request.
 *
 * Not seen at all: a host's last request is lost, and was not foreseen. So `single` is a switch.
 *
 * Lost responses. A host that asks again waits for that, and throws away what was asked ahead of it
 * (stale): the responder repeats it, and what comes behind is asked once more when its turn comes,
 * under the PSNs that it has. If that goes on, they may be too early, and the distance grows.
 *
 * Old data. Any request but a READ between the two hosts (prefetch.c, epoch) may tell that data has
 * changed: what was asked for before and has not left is thrown away, and asked for again when the
 * host does (VOID). What has left travels ahead of that request and finds the host not asking.
 *
 * row: NTT-7, NTT-12
 */
#include "engine/fault/fault.h"
#include "engine/learn/learn.h"
#include "engine/prefetch/solo.h"

/* Fewer READs between two repeats double the distance, so often at most. */
#define READS_FEW  8u
#define SLOW_MAX   4u
#define STRUCK_MAX 6u
/* Pauses of the host, one after the other, that end it. */
#define LATE_MAX   4u
/* So far from what is expected, so often, is another queue pair. */
#define JUMP_AHEAD 65536
#define JUMP_RUN   3u

/* ---- what the host asks ---- */

static struct solo_read *find_host(struct engine *e, struct lane_reads *x, struct host_psn psn)
{
	mq_each (struct solo_read, r, e->reads, &x->fetches)
		if (r->state != READ_GONE && psn_in(psn, r->host, psn_add(r->host, r->span)))
			return r;
	return NULL;
}

/* Whether @f asks for @r, or for the rest of it, as a host may that lacks the response's end. */
static bool same(const struct solo_read *r, const struct frame *f, uint32_t mtu)
{
	uint32_t had = psn_past(host_psn_of(f), r->host) * mtu;

	return f->opcode == OP_READ_REQUEST && r->what.va + had == frame_reth_va(f) &&
	       r->what.rkey == frame_reth_rkey(f) && r->what.length - had == frame_reth_length(f);
}

static void pass_request(struct engine *e, struct flow *fl, const struct frame *f,
			 struct wire_psn wire)
{
	solo_pass(e, fl->side, f, wire.v, PSN_NONE);
}

/* Something from before it is missing: go back. */
static void go_back(struct engine *e, struct flow *fl)
{
	struct lane_reads *x = reads_of(e, &fl->lane);

	COUNT(e, GAPS);
	COUNT(e, NAKS_SENT);
	x->solo.beyond |= x->solo.left_early != 0;
	solo_marks(e, fl);
	ack_send(e, fl, x->map.asked.psn, AETH_NAK_SEQ, x->map.asked.msn);
}

/* The predictor sees what the host asks in the order in which it asked. */
static void tell(struct engine *e, struct lane_reads *x)
{
	mq_each (struct solo_read, r, e->reads, &x->fetches) {
		if (solo_unmet(r))
			break;
		if (!r->told && r->state != READ_GONE)
			predict_asked(&x->predictor, &r->what, r->guessed && !x->solo.broken);
		r->told = true;
	}
}

/* The host asks for what was asked before it. */
static void meet(struct engine *e, struct flow *fl, struct solo_read *r, const struct frame *f)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	bool late = e->now - r->asked > solo_round_trip(l);
	bool gone = r->stale || r->state == READ_VOID || !psn_is(host_psn_of(f), r->host);

	if (r->state == READ_VOID && !psn_is(r->host, x->map.asked.psn)) {
		/* no response may pass before what is missing: it would acknowledge that */
		go_back(e, fl);
		return;
	}
	r->state = READ_ASKED;
	r->stale = false;
	x->solo.wait -= x->solo.wait > 0;
	x->info.hits++;
	COUNT(e, SOLO_MET);
	solo_gap(e, x);
	solo_measure(e, fl, r->seq);
	if (late || gone) {
		/* the response was gone before the host had asked */
		x->info.late++;
		r->next = psn_add(r->wire, psn_past(host_psn_of(f), r->host));
		r->again = true;
		x->solo.left[r->seq % SOLO_RING] = 0;
		pass_request(e, fl, f, r->next);
		if (!gone && ++x->solo.late >= LATE_MAX) {
			solo_forget(e, x);
			x->solo.late = 0;
		} else if (!gone) {
			/* it had paused: the pattern has to show itself again */
			x->solo.wait = PREDICT_MATCHES;
			solo_stale(e, x);
		}
	} else {
		x->solo.late = 0;
	}
	tell(e, x);
	solo_marks(e, fl);
	solo_run(e, fl);
}

/* The host asks for something else under the PSN of our READ. True: it goes on, renumbered. */
static bool differs(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	struct wire_mark next;

	if (x->solo.skipped ||
	    (x->solo.left_early && e->now <= x->solo.left_early + solo_limit_ns(l))) {
		solo_fail(e, fl, psn_is(host_psn_of(f), x->map.asked.psn) ? f : NULL);
		return false;
	}
	if (!psn_is(host_psn_of(f), x->map.asked.psn)) {
		go_back(e, fl);
		return false;
	}
	mq_each (struct solo_read, r, e->reads, &x->fetches) {
		if (solo_unmet(r)) {
			r->state = READ_GONE;
			x->info.wasted_bytes += r->what.length;
		}
	}
	x->info.flushed_pattern++;
	x->solo.seq -= x->guesses;
	x->solo.end = x->map.asked;
	/* only READs that the host asked count: it waits for no other responses */
	solo_stop(x);
	solo_marks(e, fl);
	next = l->epsn;
	psn_map_note(e, &x->map, &next);
	return true;
}

/* A request that was not seen before, at the end of the lane. */
static void in_order(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	struct wire_psn wire = l->epsn.psn;
	uint32_t span = frame_span(f, flow_mtu(fl));
	bool ends = f->op->flags & (OPF_EOM | OPF_ANSWERED), hold;
	struct read_range what;

	if (f->opcode == OP_READ_REQUEST && span <= SPAN_MAX) {
		what = range_of(f);
		solo_gap(e, x);
		x->solo.wait -= x->solo.wait > 0;
		hold = solo_stall(e, fl);
		solo_measure(e, fl, x->solo.seq);
		if (solo_append(e, fl, &what, span, hold ? READ_HELD : READ_ASKED)) {
			x->info.misses++;
			solo_pattern(e, fl);
			tell(e, x);
			solo_marks(e, fl);
			if (hold)
				timer_arm(e, fl, TIMER_LOSS, e->now + solo_stall_ns(x));
			else
				pass_request(e, fl, f, wire);
			solo_run(e, fl);
			return;
		}
	}
	if (x->solo.phase == PHASE_STALL)
		solo_forget(e, x);
	solo_release(e, fl);
	solo_stop(x);
	l->near.msg = ends ? MSG_NONE : MSG_UNKNOWN;
	mark_accepted(l, span, ends, l->epsn.ackable);
	x->solo.end.psn = psn_add(x->solo.end.psn, span);
	x->solo.end.msn = psn_add(x->solo.end.msn, ends);
	solo_marks(e, fl);
	pass_request(e, fl, f, wire);
}

static void repeated(struct engine *e, struct flow *fl, struct solo_read *r, const struct frame *f)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	struct wire_psn wire;

	if (x->solo.phase == PHASE_STALL) {
		solo_forget(e, x); /* it was held back for too long */
		solo_release(e, fl);
		return;
	}
	if (r && r->guessed) {
		COUNT(e, SOLO_REPEATED);
		/* lost, or too early; what is too early is so again and again */
		if (e->now - x->solo.repeat > 2 * solo_limit_ns(&fl->lane)) {
			if (x->solo.calm < READS_FEW) {
				x->solo.slow += x->solo.slow < SLOW_MAX;
				x->solo.struck += x->solo.struck < STRUCK_MAX;
			}
			x->solo.calm = 0;
		}
		x->solo.repeat = e->now;
	}
	solo_stale(e, x);
	if (r && f->opcode == OP_READ_REQUEST) {
		/* the rest of it, or all */
		r->next = psn_add(r->wire, psn_past(host_psn_of(f), r->host));
		r->again = true;
		x->solo.left[r->seq % SOLO_RING] = 0;
		pass_request(e, fl, f, r->next);
		return;
	}
	wire = psn_to_wire(&x->map, host_psn_of(f));
	if (psn_known(wire))
		pass_request(e, fl, f, wire);
}

/* So far from what is expected, again and again: another queue pair of that number, or somebody
 * else. As long as the two ends number differently nothing passes, for it would mean another
 * request to the responder; who goes on asking is told by a fault. */
static bool jumped(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	int32_t off = psn_diff(host_psn_of(f), x->solo.end.psn);

	if (off > -(int32_t)(SPAN_MAX + SEGMENTS_TRAIL) && off < JUMP_AHEAD) {
		l->rounds.run = 0;
		x->stuck = 0;
		return false;
	}
	COUNT(e, GAPS);
	if (psn_map_moved(&x->map, l)) {
		if (rounds_stuck(e, l, host_psn_of(f)))
			solo_fail(e, fl, NULL);
		return true;
	}
	rounds_begin(e, l, host_psn_of(f));
	if (!psn_is(host_psn_of(f), l->rounds.psn) || l->rounds.run < JUMP_RUN)
		return true;
	engine_event(e, EVENT_INCARNATION, fl, 0, 0);
	flow_unpair(e, fl); /* closes the lane */
	learn_request(e, fl, f);
	engine_pass(e, fl, fl->side, f);
	return true;
}

static void settled(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	bool wanted = solo_rule(e, fl) && !flow_let_go(e, fl);

	if (l->role != ROLE_SOLO || l->state == LANE_FAULT || (wanted && !x->stop))
		return;
	solo_release(e, fl);
	if (!psn_map_moved(&x->map, l))
		lane_close(e, fl, wanted ? l->reason : REASON_OPERATOR, false);
}

/** solo_request - a request of the host. */
void solo_request(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	struct solo_read *r;

	l->count.requests++;
	if (icrc_wrong(e, f))
		return;
	if (jumped(e, fl, f))
		return;
	r = find_host(e, x, host_psn_of(f));
	if (r && solo_unmet(r)) {
		if (same(r, f, fl->path_mtu)) {
			meet(e, fl, r, f);
			goto out;
		}
		if (!differs(e, fl, f))
			goto out;
		r = NULL;
	}
	if (r || psn_before(host_psn_of(f), x->solo.end.psn)) {
		l->count.dup++;
		repeated(e, fl, r, f);
	} else if (!psn_is(host_psn_of(f), x->solo.end.psn)) {
		/* the responder says so itself, in its own numbers */
		COUNT(e, GAPS);
		if (x->solo.phase == PHASE_STALL)
			solo_forget(e, x);
		solo_release(e, fl);
		pass_request(e, fl, f,
			     psn_add(l->epsn.psn, psn_past(host_psn_of(f), x->solo.end.psn)));
	} else if (x->guesses && (f->opcode != OP_READ_REQUEST ||
				  find_host(e, x, x->map.asked.psn)->state == READ_VOID)) {
		go_back(e, fl);
	} else {
		in_order(e, fl, f);
	}
out:
	if (l->role != ROLE_SOLO)
		return;
	if (x->solo.skipped)
		timer_arm(e, fl, TIMER_LOSS, x->solo.skipped + solo_limit_ns(l));
	settled(e, fl);
}

/* ---- beginning and end ---- */

/** solo_may_begin - whether the watched @f, just counted by learn_request(), begins such a lane. */
bool solo_may_begin(const struct engine *e, const struct flow *fl, const struct frame *f)
{
	const struct flow *back = fl->partner == FLOW_NONE ? NULL : &e->flows[fl->partner];

	return fl->side == PORT_WAN && solo_rule(e, fl) && back && back->tmpl.len && fl->tmpl.len &&
	       fl->path_mtu && !flow_let_go(e, fl) && flow_proved(fl) && e->now >= fl->retry_open &&
	       f->opcode == OP_READ_REQUEST && fl->lane.near.msg == MSG_NONE &&
	       psn_is(fl->lane.epsn.psn, psn_add(wire_psn_of(f), frame_span(f, flow_mtu(fl))));
}

void solo_begin(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	struct wire_mark m = {.psn = wire_psn_of(f),
			      .msn = l->calibrated ? psn_sub(l->epsn.msn, 1) : l->una.msn};
	struct lane_reads *x;

	l->role = ROLE_SOLO;
	marks_begin(l, &m);
	l->near.told = host_psn_of(f);
	x = reads_begin(e, fl);
	if (!x) {
		lane_reset(e, fl);
		return;
	}
	l->count.requests--; /* it comes again through solo_request() */
	l->gen = ++e->gen;
	l->peer = PEER_NONE;
	l->policy = POLICY_OFF;
	l->near.msg = MSG_NONE;
	l->start_acked = true;
	l->opened = l->progress = e->now;
	lane_set_state(l, LANE_HELD);
	x->map.asked = x->solo.end = mark_same_host(m);
	x->epoch = *pair_epoch(e, &fl->key);
	x->solo.last = e->now - GAP_MAX_NS - 1;
}

/** solo_drain - ask nothing any more; let go as soon as both ends number alike. */
bool solo_drain(struct engine *e, struct flow *fl, enum lane_reason why)
{
	struct lane_reads *x = reads_of(e, &fl->lane);

	x->stop = true;
	if (fl->lane.reason != REASON_DISCONNECT)
		fl->lane.reason = (uint8_t)why;
	settled(e, fl);
	return true;
}

/** solo_owes - whether two ends that are connected would not understand each other without us. */
bool solo_owes(struct engine *e, const struct flow *fl)
{
	const struct lane *l = &fl->lane;

	return l->role == ROLE_SOLO && l->reason != REASON_DISCONNECT &&
	       l->reads_page != POOL_NONE && psn_map_moved(map_of(e, l), l);
}
