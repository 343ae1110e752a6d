// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Prefetch: READs that the host has not asked for yet, asked for on its behalf (pseudo READ
 * requests), so that their answers are here when it does (role OPENER, pair mode, only where the
 * rule says `prefetch = on`).
 *
 * A guess is a request of the lane like any other: built from the host's own headers, numbered at
 * the end of the lane, kept until it is answered. When the host asks for exactly that - rkey,
 * address, length - its own request ends here and takes over what the guess brought or will bring.
 * So a right guess costs the WAN nothing that the host's request would not have cost.
 *
 * What keeps it from doing harm:
 *
 *	- An address outside the memory that the host may read would be a fatal error of the queue
 *	  pair. Only what lies inside ranges that were read with success under the same rkey, or
 *	  that the rule names, is guessed.
 *	- What a guess brings was read before the host asked. It must never be older than a signal
 *	  that the data has changed. Any request but a READ between the two hosts, on any of their
 *	  queue pairs, in either direction, may be that signal: it moves the pair's epoch, and what
 *	  was asked for in an older epoch is not given. Nor is what is older than the rule's
 *	  prefetch-max-age.
 *	- A guess that is not asked for has consumed PSNs (psn_map.c). While there is no room for
 *	  another segment nothing is guessed.
 *	- What passed before the lane was agreed upon bears the host's numbers, and may arrive late.
 *	  No guess gets one of those (lane.overlap).
 *	- Responders keep the answers of a few requests, READs and ATOMICs, to repeat them. A READ
 *	  can be asked for anew, an ATOMIC cannot; so nothing is guessed while the answer to one has
 *	  not come, nor while the host may lack one from before the lane opened.
 *	- Nothing is guessed inside a message (a responder would refuse a READ between FIRST and
 *	  LAST), after requests that were not understood, in a pool that is filling, or while the
 *	  lane is to end.
 *
 * The window. Guesses run ahead of the host by @window bytes. It doubles, once per round trip, when
 * the host asks for something that has not come yet, up to four times what arrived within the best
 * recent round trip: so it grows to what the WAN carries, and what is lost, and lost again, holds
 * nothing up. The responder is not asked for more at a time than it is known to stand: the acceptor
 * holds the others back (@depth).
 */
#include "engine/reads/reads.h"

#define WINDOW_FIRST  (256u << 10)
#define WINDOW_SLACK  (1u << 20)
/* Guesses looked at for a match: hosts that ask in another order than expected do not stray far. */
#define LOOK	      16u
#define BATCH	      64u
#define POOL_BUSY     60u
#define DEPTH_DEFAULT 1u

/** pair_epoch - of the two hosts of @k, in either direction. Hosts that share a slot flush each
 * other's guesses. */
uint32_t *pair_epoch(struct engine *e, const struct flow_key *k)
{
	uint64_t h = 0, v;

	for (int i = 0; i < 16; i += 8) {
		h ^= get_be64(k->src.b + i);
		memcpy(&v, k->dst.b + i, 8);
		h ^= get_be64(k->dst.b + i);
	}
	h *= 0x9e3779b97f4a7c15u;
	return &e->epoch[h >> 48 & (EPOCH_SLOTS - 1)];
}

static const struct rule *rule_of(const struct engine *e, const struct flow *fl)
{
	return fl->rule < 0 ? NULL : &e->rules[fl->rule];
}

static bool wanted(const struct engine *e, const struct flow *fl)
{
	const struct rule *r = rule_of(e, fl);

	return r && r->prefetch && fl->lane.role == ROLE_OPENER;
}

static bool same(const struct read_range *a, const struct read_range *b)
{
	return a->va == b->va && a->rkey == b->rkey && a->length == b->length;
}

static void flush(struct engine *e, struct flow *fl, uint32_t *why)
{
	struct lane_reads *x = reads_of(e, &fl->lane);

	if (!x->guesses)
		return;
	(*why)++;
	/* from the last to the first would be as good; each costs a walk to its successor at most
	 * */
	for (uint32_t id = x->fetches.head; id != MQ_NONE && x->guesses; id = mq_next(e->reads, id))
		if (fetch_at(e, id)->state == FETCH_GUESS)
			fetch_forget(e, fl, fetch_at(e, id));
	x->guesses = 0;
	x->guessed = 0;
	fetch_forgotten(e, fl);
	predict_stop(&x->predictor);
}

/* ---- what the host asks ---- */

static uint64_t round_trip(const struct lane *l)
{
	return (l->rtt.srtt_us ? l->rtt.srtt_us : 10000) * NSEC_PER_USEC;
}

static void grow(struct engine *e, const struct lane *l, struct lane_reads *x)
{
	uint64_t most = 4 * (x->rate_bytes > x->arrived_bytes ? x->rate_bytes : x->arrived_bytes) +
			WINDOW_SLACK;
	uint64_t room = pool_cap(e->pool, POOL_TRANSIT) / 2;

	if (most > room)
		most = room; /* what comes must find a place while something before it is missing */
	if (e->now - x->grown < round_trip(l))
		return;
	x->grown = e->now;
	x->window *= 2;
	if (x->window > most)
		x->window = most;
}

/*
 * The host asks for a READ: is it guessed? Then its answer comes, or will come, at @wire. The
 * caller has checked the ICRC. Guesses that turn out to be wrong or too old are dropped.
 */
bool prefetch_claim(struct engine *e, struct flow *fl, const struct frame *f, uint32_t *wire)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	struct read_range what = {frame_reth_va(f), frame_reth_rkey(f), frame_reth_length(f)};
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
		flush(e, fl, &x->info.flushed_pattern);
		return false;
	}
	if (g->epoch != *pair_epoch(e, &fl->key)) {
		flush(e, fl, &x->info.flushed_signal);
		return false;
	}
	if (!r || !r->prefetch ||
	    (r->prefetch_max_age_ns && e->now - g->issued > r->prefetch_max_age_ns)) {
		flush(e, fl, &x->info.flushed_age);
		return false;
	}
	g->state = FETCH_ASKED;
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

/* How many READs the responder is given at a time: what the rule or the connection manager says,
 * else what its host was seen to ask for at once. The acceptor gives it one until it knows. */
void prefetch_depth(struct engine *e, struct flow *fl, struct lane_reads *x)
{
	uint32_t depth = fl->rule < 0 ? 0 : rule_of(e, fl)->read_depth;

	if (!depth)
		depth = fl->read_depth;
	if (!depth)
		depth = x->most > DEPTH_DEFAULT ? x->most : DEPTH_DEFAULT;
	if (depth == x->depth)
		return;
	x->depth = depth;
	resp_report_due(e, fl, true);
}

/** prefetch_asked - the host's READ @f was accepted; @claimed: it had been guessed. */
void prefetch_asked(struct engine *e, struct flow *fl, const struct frame *f, bool claimed)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	struct read_range what = {frame_reth_va(f), frame_reth_rkey(f), frame_reth_length(f)};

	if (!x->guesses && l->nreads > x->most)
		x->most = l->nreads;
	if (!wanted(e, fl))
		return;
	prefetch_depth(e, fl, x);
	if (!claimed)
		x->info.misses++;
	predict_asked(&x->predictor, &what, claimed);
	prefetch_run(e, fl);
}

/** prefetch_break - drop all guesses: the host asks for something else than the FetchAdds that were
 * asked ahead, or what it waits for finds no room beside them. Counted as a break of the pattern.
 * */
void prefetch_break(struct engine *e, struct flow *fl)
{
	struct lane_reads *x = reads_of(e, &fl->lane);

	flush(e, fl, &x->info.flushed_pattern);
}

/** prefetch_signal - something was accepted from the host that may tell the other side that data has
 * changed. */
void prefetch_signal(struct engine *e, struct flow *fl)
{
	struct lane_reads *x = reads_of(e, &fl->lane);

	flush(e, fl, &x->info.flushed_signal);
}

/* ---- where it is safe ---- */

static bool inside(const struct read_range *r, uint64_t from, uint64_t end)
{
	return r->va >= from && r->va < end && end - r->va >= r->length;
}

/** prefetch_allowed - whether the host may read @r for all that is known. */
bool prefetch_allowed(const struct engine *e, const struct flow *fl, const struct lane_reads *x,
		      const struct read_range *r)
{
	const struct rule *rule = rule_of(e, fl);

	for (uint32_t i = 0; i < GOOD_RANGES; i++)
		if (x->good[i].end && x->good[i].rkey == r->rkey &&
		    inside(r, x->good[i].from, x->good[i].end))
			return true;
	for (uint32_t i = 0; i < rule->nread_ranges; i++)
		if (inside(r, rule->read_range[i].from, rule->read_range[i].end))
			return true;
	return false;
}

/** prefetch_good - the host has read this with success. */
void prefetch_good(struct engine *e, struct flow *fl, const struct read_range *r)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	uint64_t from = r->va, end = r->va + r->length;
	struct good_range *to = NULL;

	if ((!wanted(e, fl) && fl->lane.role != ROLE_SOLO) || end <= from)
		return;
	x->good_clock++;
	for (uint32_t i = 0; i < GOOD_RANGES; i++) {
		struct good_range *g = &x->good[i];

		if (!g->end || g->rkey != r->rkey || g->from > end || g->end < from)
			continue;
		/* it touches this one; what it joins together becomes one range */
		from = g->from < from ? g->from : from;
		end = g->end > end ? g->end : end;
		if (to)
			to->end = 0;
		to = g;
	}
	for (uint32_t i = 0; !to && i < GOOD_RANGES; i++)
		if (!x->good[i].end)
			to = &x->good[i];
	if (!to) {
		to = &x->good[0];
		for (uint32_t i = 1; i < GOOD_RANGES; i++)
			if (x->good_clock - x->good[i].used > x->good_clock - to->used)
				to = &x->good[i];
	}
	*to = (struct good_range){.from = from, .end = end, .rkey = r->rkey, .used = x->good_clock};
}

/* ---- guessing ---- */

static bool can_guess(struct engine *e, const struct flow *fl, const struct lane_reads *x)
{
	const struct lane *l = &fl->lane;

	return !x->stop && l->state == LANE_HELD && l->start_acked && l->accepted && !l->reopen &&
	       !l->opaque && !l->refusal && l->msg == MSG_NONE && x->nsegments + 1 < SEGMENTS &&
	       pool_fill(e->pool, POOL_TRANSIT) < POOL_BUSY &&
	       pool_fill(e->pool, POOL_CUSTODY) < POOL_BUSY && mq_free_count(e->reads) > BATCH * 4;
}

/* Where nobody says how many READs and ATOMICs a host may have outstanding: no more than that can
 * be agreed on. */
#define OUTSTANDING_MAX 255u

/** prefetch_has_all - whether the host must have had all its answers from before the lane opened,
 * since it has asked for as many as it may wait for at one time. */
bool prefetch_has_all(const struct engine *e, const struct flow *fl, const struct lane_reads *x)
{
	const struct rule *r = rule_of(e, fl);
	uint32_t most = r && r->read_depth ? r->read_depth
			: fl->read_depth   ? fl->read_depth
					   : OUTSTANDING_MAX;

	return x->since >= most;
}

static bool may_guess(struct engine *e, const struct flow *fl, const struct lane_reads *x)
{
	return fl->lane.ahead && !x->unique && (!fl->lane.atomics || prefetch_has_all(e, fl, x)) &&
	       can_guess(e, fl, x);
}

/* A request of our own at the end of the lane: a READ, or a FetchAdd of @add. */
static bool issue_any(struct engine *e, struct flow *fl, struct lane_reads *x,
		      const struct read_range *r, uint8_t opcode, uint64_t add,
		      enum fetch_state state)
{
	struct lane *l = &fl->lane;
	struct build_spec s = {
		.t = &fl->tmpl,
		.opcode = opcode,
		.dqpn = fl->key.dqpn,
		.psn = l->epsn.psn,
		.ackreq = true,
		.va = r->va,
		.rkey = r->rkey,
		.length = r->length,
		.swap_add = add,
	};
	const struct fetch *oldest = fetch_at(e, x->fetches.head);
	uint8_t out[FRAME_MAX];
	struct frame f;
	uint32_t span;
	int32_t most;
	bool bad;

	if (psn_before(l->epsn.psn, l->overlap))
		return false; /* the host has sent packets of these numbers past us */
	if (!l->numbered && !lane_fence(e, fl, true)) {
		x->stop = true;
		return false;
	}
	if (frame_parse(out, build_packet(out, &s), &f) != FRAME_OK)
		return false;
	span = frame_span(&f, fl->path_mtu);
	/* both the requests and the answers must fit their windows; guesses leave room for what is
	 * waited for */
	most = state == FETCH_GUESS ? WINDOW_SPAN / 2 : WINDOW_SPAN - WINDOW_SPAN / 8;
	if (psn_diff(psn_add(l->epsn.psn, span), l->una.psn) > most ||
	    (oldest && psn_diff(psn_add(l->epsn.psn, span), oldest->psn) > most))
		return false;
	if (!fetch_room(e, fl, l->epsn.psn, span) ||
	    !lane_retain(e, fl, &f, span, l->epsn.psn, &bad))
		return false;
	if (!fetch_add(e, fl, r, opcode, l->epsn.psn, span, state)) {
		lane_forget(e, fl, window_get(&l->win, e->pool, l->epsn.psn), l->epsn.psn);
		return false;
	}
	if (l->una.psn == l->epsn.psn)
		l->progress = e->now;
	l->epsn.psn = psn_add(l->epsn.psn, span);
	l->epsn.msn = psn_add(l->epsn.msn, 1);
	l->epsn.ackable = 0;
	l->end = l->epsn.psn;
	x->guessed_ever = true;
	if (state == FETCH_GUESS) {
		x->guesses++;
		x->guessed += r->length;
		x->info.guesses += opcode == OP_READ_REQUEST;
	}
	return true;
}

static bool issue(struct engine *e, struct flow *fl, struct lane_reads *x,
		  const struct read_range *r, enum fetch_state state)
{
	return issue_any(e, fl, x, r, OP_READ_REQUEST, 0, state);
}

/** prefetch_fetch_add - a FetchAdd that the host has not asked; prefetch_atomic.c judges whether. */
bool prefetch_fetch_add(struct engine *e, struct flow *fl, const struct read_range *r, uint64_t add)
{
	struct lane_reads *x = reads_of(e, &fl->lane);

	return can_guess(e, fl, x) && issue_any(e, fl, x, r, OP_FETCH_ADD, add, FETCH_GUESS);
}

/*
 * The host waits for @r, the responder has executed it, and the answer is lost for good: a READ for
 * the same under a new PSN, @wire. What it brings is younger than what was lost, which is what a
 * READ that is repeated may bring anyway (InfiniBand vol. 1, 9.7.5.1.1).
 */
bool prefetch_anew(struct engine *e, struct flow *fl, const struct read_range *r, uint32_t *wire)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);

	*wire = l->epsn.psn;
	if ((l->state != LANE_HELD && l->state != LANE_DRAIN) || !l->start_acked || !l->accepted ||
	    l->reopen || l->opaque || l->refusal || l->msg != MSG_NONE ||
	    x->nsegments + 1 >= SEGMENTS || mq_free_count(e->reads) < 2)
		return false;
	if (!issue(e, fl, x, r, FETCH_ASKED)) {
		flush(e, fl, &x->info.flushed_pattern); /* guesses are in the way */
		return false;
	}
	pace_run(e, fl);
	return true;
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
	while (n < BATCH && predict_peek(&x->predictor, &r)) {
		if (!r.length ||
		    x->guessed + r.length > (x->window > r.length ? x->window : r.length) ||
		    !may_guess(e, fl, x) || !prefetch_allowed(e, fl, x, &r))
			break;
		if (!issue(e, fl, x, &r, FETCH_GUESS))
			break;
		predict_take(&x->predictor);
		n++;
	}
	if (n)
		pace_run(e, fl);
}
