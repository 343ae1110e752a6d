// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Prefetch: READs that the host has not asked for yet, asked for on its behalf, so that their
 * responses are here when it does (role OPENER, where the rule says `prefetch = on`, `responder`).
 *
 * A guess is a request of the lane like any other: built from the host's own headers, numbered at
 * the end of the lane, kept until it is answered. When the host asks for exactly that - rkey,
 * address, length - its own request ends here and takes over what the guess brought or will bring.
 * So a right guess costs the WAN nothing that the host's request would not have cost.
 *
 * What keeps it from doing harm:
 *
 *	- An address outside the memory that the host may read would be a fatal error of the queue
 *	  pair. Only ranges read with success by the same rkey, or named by the rule, are.
 *	- What a guess brings was read before the host asked. It must never be older than a signal
 *	  that the data has changed. Any request but a READ between the two hosts, on any of their
 *	  queue pairs, in either direction, may be that signal: it moves the pair's epoch, and what
 *	  was asked for in an older epoch is not given. Nor is older than prefetch-max-age.
 *	- A guess not asked for uses up PSNs (psn_map.c). Without room for a segment none is made.
 *	- What passed before the agreement has the host's numbers, and may be late.
 *	- Responders keep the responses of a few requests, READs and ATOMICs, to repeat them. A READ
 *	  can be asked for anew, an ATOMIC cannot; so nothing is guessed while the response to one
 *	  has not come, nor while the host may lack one from before the lane opened.
 *	- Nothing is guessed inside a message (a responder would refuse a READ between FIRST and
 *	  LAST), after requests not understood, in a pool that fills, or while the lane ends.
 *
 * The window. Guesses run ahead of the host by @window bytes. It doubles, once per round trip, when
 * the host asks for something that has not come yet, up to four times what arrived within the best
 * recent round trip: so it grows to what the WAN carries, and what is lost, and lost again, holds
 * nothing up. The acceptor holds back what the responder cannot take at a time (@depth).
 *
 * row: NTT-5, NTT-6, POOL-11
 */
#include "engine/prefetch/prefetch.h"

#define WINDOW_FIRST  (256u << 10)
#define WINDOW_SLACK  (1u << 20)
/* Guesses looked at for a match: hosts that ask in another order than expected do not stray far. */
#define LOOK	      16u
#define BATCH	      64u
#define POOL_BUSY     60u
#define DEPTH_DEFAULT 1u

static const struct rule *rule_of(const struct engine *e, const struct flow *fl)
{
	return fl->rule < 0 ? NULL : &e->rules[fl->rule];
}

static bool wanted(const struct engine *e, const struct flow *fl)
{
	const struct rule *r = rule_of(e, fl);

	return r && r->prefetch && fl->lane.role == ROLE_OPENER;
}

/* Whether the appliance near the responder makes the READs (link/ahead.c). */
static bool made_there(const struct engine *e, const struct flow *fl)
{
	return rule_of(e, fl)->prefetch == PREFETCH_RESPONDER;
}

static bool same(const struct read_range *a, const struct read_range *b)
{
	return a->va == b->va && a->rkey == b->rkey && a->length == b->length;
}

/* ---- what the host asks ---- */

static uint64_t round_trip(const struct lane *l)
{
	return (l->rtt.srtt_us ? l->rtt.srtt_us : 10000) * NSEC_PER_USEC;
}

static uint64_t window_most(const struct engine *e, const struct lane_reads *x)
{
	uint64_t most = 4 * MAX(x->rate_bytes, x->arrived_bytes) + WINDOW_SLACK;

	/* what comes must find a place while something before it is missing */
	return MIN(most, pool_cap_now(e->pool, POOL_TRANSIT) / 2);
}

static void grow(struct engine *e, const struct lane *l, struct lane_reads *x)
{
	if (e->now - x->grown < round_trip(l))
		return;
	x->grown = e->now;
	x->window *= 2;
	x->window = MIN(x->window, window_most(e, x));
}

/* The host asks for a READ: is it guessed? Then its response comes, or will come, at @wire. The
 * caller has checked the ICRC. Guesses that turn out to be wrong or too old are dropped. */
bool prefetch_claim(struct engine *e, struct flow *fl, const struct frame *f, struct wire_psn *wire)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	struct read_range what = range_of(f);
	const struct rule *r = rule_of(e, fl);
	struct fetch *g = NULL;
	uint32_t looked = 0;

	if (!x->guesses)
		return false;
	for (uint32_t id = x->fetches.head; id != MQ_NONE && looked < LOOK;
	     id = mq_next(e->reads, id)) {
		struct fetch *h = fetch_at(e, id);

		if (h->state != FETCH_GUESS)
			continue;
		looked++;
		if (h->opcode == OP_READ_REQUEST && same(&h->what, &what)) {
			g = h;
			break;
		}
	}
	if (!g) {
		fetch_drop_guesses(e, fl, &x->info.flushed_pattern);
		return false;
	}
	if (g->epoch != *pair_epoch(e, &fl->key)) {
		fetch_drop_guesses(e, fl, &x->info.flushed_signal);
		return false;
	}
	if (!r || !r->prefetch ||
	    (r->prefetch_max_age_ns && e->now - g->issued > r->prefetch_max_age_ns)) {
		fetch_drop_guesses(e, fl, &x->info.flushed_age);
		return false;
	}
	g->state = FETCH_ASKED;
	g->issued = e->now;
	x->guesses--;
	x->guessed -= g->what.length;
	x->info.hits++;
	*wire = g->psn;
	if (g->arrived != g->span) {
		x->info.late++;
		grow(e, l, x);
	}
	return true;
}

/* What was guessed has been dropped since: the pattern has to show again. */
static void forget_lost(struct lane_reads *x)
{
	if (x->pattern_lost)
		predict_stop(&x->predictor);
	x->pattern_lost = false;
}

/* How many READs the responder is given at a time: what the rule or the connection manager says,
 * else what its host was seen to ask for at once. The acceptor gives it one until it knows. */
void prefetch_depth(struct engine *e, struct flow *fl, struct lane_reads *x)
{
	uint32_t depth = flow_read_depth(e, fl);

	if (!depth)
		depth = x->most > DEPTH_DEFAULT ? x->most : DEPTH_DEFAULT;
	if (depth == x->depth)
		return;
	x->depth = depth;
	resp_report_due(e, fl, true);
}

/** prefetch_saw - the host of the lane @l has asked for one more: what it waits for now. Answers
 * that have come are not counted: they may not be for it (owner/owner.c). */
void prefetch_saw(struct engine *e, const struct lane *l, struct lane_reads *x)
{
	uint32_t n = 0;

	if (x->guesses || l->nreads <= x->most)
		return;
	mq_each (const struct fetch, g, e->reads, &x->fetches)
		n += g->state == FETCH_ASKED && g->arrived < g->span;
	x->most = MAX(x->most, n);
}

/** prefetch_asked - the host's READ @f was accepted; @claimed: it had been guessed. */
void prefetch_asked(struct engine *e, struct flow *fl, const struct frame *f, bool claimed)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	struct read_range what = range_of(f);

	prefetch_saw(e, l, x);
	if (!wanted(e, fl))
		return;
	prefetch_depth(e, fl, x);
	if (!claimed)
		x->info.misses++;
	forget_lost(x);
	predict_asked(&x->predictor, &what, claimed);
	if (made_there(e, fl) && ranges_named(rule_of(e, fl), &what))
		predict_assume(&x->predictor);
	prefetch_run(e, fl);
}

/** prefetch_idle - the host has asked nothing for long: answers to READs that are too old to be
 * given to it leave their room to others. A FetchAdd has no age. */
void prefetch_idle(struct engine *e, struct flow *fl)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	const struct rule *r = rule_of(e, fl);

	if (!x || !x->guesses || !r || !r->prefetch_max_age_ns)
		return;
	mq_each (const struct fetch, g, e->reads, &x->fetches) {
		if (g->state != FETCH_GUESS)
			continue;
		if (g->opcode != OP_READ_REQUEST || e->now - g->issued <= r->prefetch_max_age_ns)
			return;
	}
	fetch_drop_guesses(e, fl, &x->info.flushed_age);
}

/* ---- guessing ---- */

static bool can_guess(struct engine *e, const struct flow *fl, const struct lane_reads *x)
{
	const struct lane *l = &fl->lane;

	return !x->stop && l->state == LANE_HELD && l->start_acked && l->accepted && !l->reopen &&
	       !l->opaque && !l->refusal && l->near.msg == MSG_NONE &&
	       !segments_full(&x->map.seg, 1) && pool_fill(e->pool, POOL_TRANSIT) < POOL_BUSY &&
	       pool_fill(e->pool, POOL_CUSTODY) < POOL_BUSY && mq_free_count(e->reads) > BATCH * 4;
}

/* READs and ATOMICs that a host may have outstanding at most: no more can be agreed on. */
#define OUTSTANDING_MAX 255u

/** prefetch_has_all - whether the host must have had all its responses from before the lane opened,
 * since it has asked for as many as it may wait for at one time. */
bool prefetch_has_all(const struct engine *e, const struct flow *fl, const struct lane_reads *x)
{
	uint32_t most = flow_read_depth(e, fl);

	return x->since >= (most ? most : OUTSTANDING_MAX);
}

static bool may_guess(struct engine *e, const struct flow *fl, const struct lane_reads *x)
{
	return fl->lane.ahead && !x->unique && (!fl->lane.atomics || prefetch_has_all(e, fl, x)) &&
	       can_guess(e, fl, x);
}

/** prefetch_fetch_add - ask a FetchAdd ahead of the host; prefetch_atomic.c judges whether. */
bool prefetch_fetch_add(struct engine *e, struct flow *fl, const struct read_range *r, uint64_t add)
{
	struct lane_reads *x = reads_of(e, &fl->lane);

	return can_guess(e, fl, x) && own_request_add(e, fl, x, r, OP_FETCH_ADD, add, FETCH_GUESS);
}

static void measure(struct engine *e, const struct lane *l, struct lane_reads *x)
{
	if (e->now - x->rate_at < round_trip(l))
		return;
	x->rate_bytes =
		x->arrived_bytes > x->rate_bytes / 8 * 7 ? x->arrived_bytes : x->rate_bytes / 8 * 7;
	x->arrived_bytes = 0;
	x->rate_at = e->now;
}

/** prefetch_run - guess as far ahead as the window allows. */
void prefetch_run(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	struct read_range r;
	uint32_t n = 0;

	if (x && l->atomic == ATOMIC_PREFETCH)
		prefetch_atomic_run(e, fl);
	if (!x || !wanted(e, fl))
		return;
	measure(e, l, x);
	if (!x->window)
		x->window = WINDOW_FIRST;
	forget_lost(x);
	/* when the window has its full size, wait until one report can name many READs */
	if (made_there(e, fl) && x->window >= window_most(e, x) &&
	    x->guessed > x->window - x->window / 8)
		return;
	while (n < BATCH && predict_peek(&x->predictor, &r)) {
		if (!r.length ||
		    x->guessed + r.length > (x->window > r.length ? x->window : r.length) ||
		    !may_guess(e, fl, x) || !ranges_allow(e, fl, x, &r))
			break;
		if (!own_request_add(e, fl, x, &r, OP_READ_REQUEST, 0, FETCH_GUESS))
			break;
		predict_take(&x->predictor);
		n++;
	}
	if (n)
		pace_run(e, fl);
}
