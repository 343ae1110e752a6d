// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What is asked before the host asks, and when (solo.c). */
#include "engine/prefetch/solo.h"

/* Most READs outstanding that are told apart. Before a host is made to stall twice as many and a
 * few more must have been seen: the longest time between two of them shows but once in a turn of
 * all that are outstanding, and the very longest is not believed. */
#define BEHIND_MAX     32u
#define RUN_MORE       4u
#define STALL_SLACK_NS (5 * NSEC_PER_MSEC)
#define STALL_MAX_NS   (500 * NSEC_PER_MSEC)
/* So long after a measure, or after a contradiction, the next one is taken. */
#define MEASURE_OLD_NS (60 * NSEC_PER_SEC)
#define AGAIN_NS       (1 * NSEC_PER_SEC)
#define AGAIN_MAX      6u
/* READs that must agree with what was measured before anything is asked ahead. */
#define SAMPLES_MIN    4u
#define SAMPLES_BAD    8u
/* Distance between the response that a host waits for and the one that it will ask for. */
#define FOLLOW_MIN_NS  (500 * NSEC_PER_USEC)
/* READs without a repeat after which that is halved; four times as many each next time. */
#define READS_CALM     64u

/* ---- the pattern ---- */

/* The pattern is broken, or must show again; what was asked ahead is no part of the next one. */
void solo_stop(struct lane_reads *x)
{
	predict_stop(&x->predictor);
	x->solo.broken = x->guesses;
}

/* What was measured does not hold, or was not to be had: not again for a while. */
void solo_forget(struct engine *e, struct lane_reads *x)
{
	x->solo.phase = PHASE_PASS;
	x->solo.run = 0;
	x->solo.again_at = e->now + (AGAIN_NS << x->solo.failures);
	if (x->solo.failures < AGAIN_MAX)
		x->solo.failures++;
	solo_stop(x);
}

bool solo_pattern(struct engine *e, struct flow *fl)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	uint32_t epoch = *pair_epoch(e, &fl->key);

	if (epoch != x->epoch) {
		solo_stop(x);
		x->epoch = epoch;
	}
	return x->predictor.period;
}

/* What has not left yet must not, because data may have changed or is too old. */
void solo_void(struct engine *e, struct lane_reads *x)
{
	mq_each (struct solo_read, r, e->reads, &x->fetches)
		if (r->state == READ_EARLY)
			r->state = READ_VOID;
	solo_stop(x);
}

/* The host waits for something before all that was asked ahead, so it throws the responses away. */
void solo_stale(struct engine *e, struct lane_reads *x)
{
	mq_each (struct solo_read, r, e->reads, &x->fetches)
		r->stale = r->state == READ_EARLY;
}

/* How long after the response that a host waits for the one leaves that it will ask for then: what
 * the host needs to think varies, and so does the WAN. Only the unknown share is doubled. */
static uint64_t follow_ns(const struct engine *e, const struct lane *l, const struct lane_reads *x,
			  uint32_t length)
{
	uint64_t ns = 4ull * l->rtt.rttvar_us * US;

	ns = MIN(ns, solo_round_trip(l) / 4);
	if (ns < solo_round_trip(l) / 32)
		ns = solo_round_trip(l) / 32;
	ns = MAX(ns, FOLLOW_MIN_NS);
	ns <<= x->solo.slow;
	ns = MIN(ns, solo_round_trip(l) / 2);
	return ns + (e->cfg.wan_rate ? length * NSEC_PER_SEC / e->cfg.wan_rate : 0);
}

/* ---- toward the responder ---- */

void solo_ask(struct engine *e, struct flow *fl, struct solo_read *r)
{
	r->asked = e->now;
	if (r->state == READ_HELD)
		r->state = READ_ASKED;
	read_ask(e, fl, r->wire.v, &r->what, 0);
}

/* The next READ of the lane, in both numberings. */
struct solo_read *solo_append(struct engine *e, struct flow *fl, const struct read_range *what,
			      uint32_t span, enum solo_state state)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	struct solo_read *r = mq_at(e->reads, mq_push(e->reads, &x->fetches));

	if (!r)
		return NULL;
	*r = (struct solo_read){
		.what = *what,
		.asked = e->now,
		.wire = l->epsn.psn,
		.next = l->epsn.psn,
		.host = x->solo.end.psn,
		.span = span,
		.seq = x->solo.seq++,
		.epoch = x->epoch,
		.state = (uint8_t)state,
		.guessed = state == READ_EARLY,
	};
	x->solo.left[r->seq % SOLO_RING] = 0;
	mark_accepted(l, span, true, l->epsn.ackable);
	x->solo.end.psn = psn_add(x->solo.end.psn, span);
	x->solo.end.msn = psn_add(x->solo.end.msn, 1);
	return r;
}

static uint32_t depth_of(const struct engine *e, const struct flow *fl)
{
	return solo_rule(e, fl) ? flow_read_depth(e, fl) : 1;
}

/* How many READs may be asked that the host has not asked for. */
static uint32_t most(const struct engine *e, const struct flow *fl, const struct lane_reads *x)
{
	uint32_t depth = depth_of(e, fl), m = x->solo.behind;
	uint32_t n = !depth ? m : depth > m ? depth - m : 0;

	return n + m < KEPT ? n : KEPT - m;
}

static struct solo_read *first_stale(struct engine *e, const struct lane_reads *x)
{
	mq_each (struct solo_read, r, e->reads, &x->fetches)
		if (r->state == READ_EARLY && r->stale)
			return r;
	return NULL;
}

static bool may_ask(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);

	return solo_rule(e, fl) && !flow_let_go(e, fl) && x->solo.phase == PHASE_GO &&
	       x->solo.samples >= SAMPLES_MIN && !x->stop && !x->solo.broken &&
	       l->near.msg == MSG_NONE && !x->solo.skipped && !x->solo.wait &&
	       !segments_full(&x->map.seg, 1) && e->now - x->solo.measured < MEASURE_OLD_NS &&
	       mq_free_count(e->reads) > SOLO_RING;
}

/* Ask for what the host will ask for next, as far as that may be now. */
void solo_run(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	struct read_range what;

	while (solo_pattern(e, fl) && may_ask(e, fl) && predict_peek(&x->predictor, &what)) {
		struct solo_read *r = first_stale(e, x);
		uint32_t seq = r ? r->seq : x->solo.seq, span;
		uint64_t left = x->solo.left[(seq - x->solo.behind) % SOLO_RING];

		if (!r && x->guesses >= most(e, fl, x))
			break;
		if (!left)
			break; /* goes on when that response has left */
		left += follow_ns(e, l, x, what.length);
		if (left > e->now) {
			timer_arm(e, fl, TIMER_LOSS, left);
			break;
		}
		if (e->now - x->solo.last > 4 * solo_limit_ns(l)) {
			solo_stop(x); /* the host has stopped */
			break;
		}
		if (r) {
			r->stale = false;
			r->again = true;
			r->next = r->wire;
			x->solo.left[seq % SOLO_RING] = 0;
			COUNT(e, SOLO_READS);
			solo_ask(e, fl, r);
			continue;
		}
		span = what.length ? (what.length - 1) / flow_mtu(fl) + 1 : 1;
		if (!what.length || span > SPAN_MAX || !ranges_allow(e, fl, x, &what))
			break;
		if (!l->numbered && !lane_fence(e, fl)) {
			solo_forget(e, x);
			break;
		}
		r = solo_append(e, fl, &what, span, READ_EARLY);
		if (!r)
			break;
		predict_take(&x->predictor);
		x->info.guesses++;
		COUNT(e, SOLO_READS);
		solo_marks(e, fl);
		solo_ask(e, fl, r);
	}
}

/* ---- how far apart the ends are ---- */

/* The second longest: somebody may have stood still. */
static uint64_t longest(const struct lane_reads *x)
{
	const uint64_t *a = x->solo.longest[0], *b = x->solo.longest[1];

	if (a[0] >= b[0])
		return a[1] > b[0] ? a[1] : b[0];
	return b[1] > a[0] ? b[1] : a[0];
}

/* READ @seq has come from the host. */
void solo_measure(struct engine *e, struct flow *fl, uint32_t seq)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	uint64_t left, ns;
	bool sooner, again = false;

	if (x->solo.phase != PHASE_MEASURE && x->solo.phase != PHASE_GO)
		return;
	if (x->solo.phase == PHASE_MEASURE && seq - x->solo.first != x->solo.behind)
		return;
	mq_each (const struct solo_read, r, e->reads, &x->fetches)
		if (r->seq == seq - x->solo.behind && r->state != READ_GONE)
			again = r->again;
	if (x->solo.phase == PHASE_MEASURE && again)
		solo_forget(e, x); /* the next will be another one */
	if (again)
		return;
	left = x->solo.left[(seq - x->solo.behind) % SOLO_RING];
	ns = e->now - left;
	sooner = x->solo.phase == PHASE_GO && ns < l->rtt.minrtt_us * US / 4 * 3;
	if (!left || (sooner && x->solo.samples >= SAMPLES_MIN)) {
		/* it cannot have waited for that */
		solo_forget(e, x);
		return;
	}
	if (x->solo.phase == PHASE_GO && x->solo.samples < SAMPLES_MIN &&
	    (sooner || ns / 4 * 3 > l->rtt.minrtt_us * US)) {
		if (++x->solo.bad > SAMPLES_BAD)
			solo_forget(e, x);
		if (!sooner)
			return;
		memset(&l->rtt, 0, sizeof(l->rtt));
		x->solo.samples = 0;
	}
	if (x->solo.phase == PHASE_MEASURE) {
		if (ns > 4 * longest(x) + STALL_SLACK_NS) {
			solo_forget(e, x);
			return;
		}
		memset(&l->rtt, 0, sizeof(l->rtt));
		x->solo.phase = PHASE_GO;
		x->solo.samples = x->solo.bad = 0;
	} else if (l->rtt.srtt_us && ns > 4 * solo_round_trip(l) + STALL_SLACK_NS) {
		return; /* the host has paused */
	}
	rtt_sample(e, &l->rtt, (uint32_t)(ns / US));
	x->solo.measured = e->now;
	if (x->solo.samples < SAMPLES_MIN && ++x->solo.samples == SAMPLES_MIN)
		x->solo.failures = 0;
}

void solo_release(struct engine *e, struct flow *fl)
{
	struct lane_reads *x = reads_of(e, &fl->lane);

	mq_each (struct solo_read, r, e->reads, &x->fetches)
		if (r->state == READ_HELD)
			solo_ask(e, fl, r);
}

/* No READ has come for longer than ever between two: the host waits for what is held back. */
static void stalled(struct engine *e, struct flow *fl)
{
	struct lane_reads *x = reads_of(e, &fl->lane);

	x->solo.behind = x->solo.seq - x->solo.first;
	x->solo.phase = PHASE_MEASURE;
	if (x->solo.behind > BEHIND_MAX)
		solo_forget(e, x);
	solo_release(e, fl);
}

uint64_t solo_stall_ns(const struct lane_reads *x)
{
	return longest(x) + longest(x) / 4 + STALL_SLACK_NS;
}

/* A READ out of a pattern that stands: is it time to measure? Then it is held back. */
bool solo_stall(struct engine *e, struct flow *fl)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	uint32_t depth = depth_of(e, fl), seen = depth && depth < BEHIND_MAX ? depth : BEHIND_MAX;
	struct read_range what;

	if (x->solo.phase == PHASE_STALL)
		return true;
	if ((x->solo.phase != PHASE_PASS &&
	     (x->solo.phase != PHASE_GO || e->now - x->solo.measured < MEASURE_OLD_NS)) ||
	    x->solo.run < 2 * seen + RUN_MORE || solo_stall_ns(x) > STALL_MAX_NS ||
	    e->now < x->solo.again_at || x->guesses || x->stop || e->draining ||
	    !solo_pattern(e, fl) || !predict_peek(&x->predictor, &what) ||
	    !ranges_allow(e, fl, x, &what) || depth == 1)
		return false;
	mq_each (const struct solo_read, r, e->reads, &x->fetches)
		if (r->state == READ_ASKED && !psn_is(r->next, psn_add(r->wire, r->span)))
			return false; /* what is outstanding already would not be counted */
	x->solo.phase = PHASE_STALL;
	x->solo.first = x->solo.seq;
	return true;
}

/* Time between two READs of the host. */
void solo_gap(struct engine *e, struct lane_reads *x)
{
	uint64_t gap = e->now - x->solo.last;

	x->solo.last = e->now;
	if (++x->solo.calm >= READS_CALM << 2 * x->solo.struck) {
		x->solo.slow -= x->solo.slow > 0;
		x->solo.calm = 0;
	}
	if (gap > GAP_MAX_NS) {
		x->solo.run = 0;
		memset(x->solo.longest, 0, sizeof(x->solo.longest));
		return;
	}
	if (x->solo.run++ % (2 * BEHIND_MAX) == 0) {
		memcpy(x->solo.longest[1], x->solo.longest[0], sizeof(x->solo.longest[1]));
		memset(x->solo.longest[0], 0, sizeof(x->solo.longest[0]));
	}
	if (gap > x->solo.longest[0][0]) {
		x->solo.longest[0][1] = x->solo.longest[0][0];
		x->solo.longest[0][0] = gap;
	} else if (gap > x->solo.longest[0][1]) {
		x->solo.longest[0][1] = gap;
	}
}

void solo_timer(struct engine *e, struct flow *fl, unsigned int which)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);

	(void)which;
	if (x->solo.skipped && e->now >= x->solo.skipped + solo_limit_ns(l)) {
		solo_fail(e, fl, NULL);
		return;
	}
	if (x->solo.phase == PHASE_STALL) {
		if (e->now < x->solo.last + solo_stall_ns(x))
			timer_arm(e, fl, TIMER_LOSS, x->solo.last + solo_stall_ns(x));
		else
			stalled(e, fl);
	}
	solo_run(e, fl);
	if (x->solo.skipped)
		timer_arm(e, fl, TIMER_LOSS, x->solo.skipped + solo_limit_ns(l));
}
