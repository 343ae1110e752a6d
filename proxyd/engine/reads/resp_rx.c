// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Responses from the WAN, receiving end (role OPENER): what comes is kept by its wire PSN until the
 * host has asked for it and got it, in the order in which the host asked.
 *
 * The list of fetches (fetch.c) tells exactly which response packets must come. @end is the first
 * of them that has not come and has nothing behind it that has; an arrival beyond it leaves a hole.
 * Wire PSNs between two fetches belong to other requests: a hole may span them.
 *
 * The acceptor is told (REPORT_RESP) what came and what is missing, at once when a hole opens or
 * closes, else after some packets or a short while, and again as long as something is missing.
 *
 * resp_deliver.c gives the host what it asked for; resp_ask.c asks again for what does not come.
 *
 * row: FAST-5
 */
#include "engine/owner/owner.h"
#include "engine/reads/reads.h"

#define OVERDUE_MIN_NS (200 * NSEC_PER_MSEC)

uint64_t resp_overdue_ns(const struct lane *l)
{
	return rtt_capped_us(&l->rtt, 4ull * l->rtt.srtt_us) * NSEC_PER_USEC + OVERDUE_MIN_NS;
}

/* A host's patience ends where the round trip seems long, or the responder was asked in vain. */
static uint64_t wait_ns(const struct lane *l, const struct lane_reads *x)
{
	uint64_t once = resp_overdue_ns(l), more = (once << x->backoff) / NSEC_PER_USEC;

	more = rtt_capped_us(&l->rtt, more) * NSEC_PER_USEC;
	return more > once ? more : once;
}

void resp_arm(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);

	if (x->fetches.head == MQ_NONE)
		timer_cancel(e, fl, TIMER_RESP);
	else if (!timer_armed(e, fl, TIMER_RESP))
		timer_arm(e, fl, TIMER_RESP, e->now + wait_ns(l, x));
}

/* ---- what is held ---- */

/* Retain the response packet @f; NULL when there is no room for it (or it is damaged: @bad). */
static struct pkt *retain(struct engine *e, struct flow *fl, const struct frame *f, bool *bad)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	struct pkt *d;

	do {
		d = held_add_checked(e, &x->held, f, bad);
	} while (!d && !*bad && (resp_drop_kept(e, fl) || resp_drop_given(e, fl)));
	return d;
}

/* ---- from the WAN ---- */

/* Whether no response of the lane can be on its way: all was answered and done long ago. */
static bool quiet(const struct engine *e, const struct lane *l, const struct lane_reads *x)
{
	return !l->nreads && psn_is(l->una.psn, l->high) && lane_stalled(e, l) &&
	       e->now - x->arrival > resp_overdue_ns(l) && !lane_lately(e, l, x->past_ms);
}

/*
 * @f came before, or (@unknown) belongs to no fetch: the host asked for it again, and that request
 * passed the lane by. What is held for the host comes from here. Where guesses were made, a
 * response that no known request waits for may belong to one, which the host must not see. But when
 * none can be on its way any more, and another queue pair was asked for just that, the number has
 * another owner, who waits for it. Returns the PSN under which @f was passed on, or HOST_NONE.
 */
static struct host_psn stray(struct engine *e, struct flow *fl, const struct frame *f, bool unknown)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	const struct read_rec *r = reads_find_wire(e, &x->kept, wire_psn_of(f));
	uint8_t out[FRAME_MAX], blank[FRAME_MAX];
	struct host_psn psn;
	struct frame g;

	COUNT(e, STRAY_RESPONSE);
	if (f->aeth && lane_lately(e, l, x->past_ms) && icrc_ok(f))
		owner_counts(e, fl, frame_aeth_msn(f));
	f = atomic_blank(l, f, &g, blank);
	if (!icrc_ok(f) || (!r && unknown && (!x->guessed_ever || quiet(e, l, x)) &&
			    owner_of_answer(e, fl, f) != VERDICT_SAME))
		return HOST_NONE;
	if (r && r->again) {
		psn = psn_add(r->at.psn, psn_past(wire_psn_of(f), r->wire));
		if (psn.v == f->psn && !r->moved)
			engine_tx(e, fl, fl->side, f->data, f->len);
		else
			engine_tx(e, fl, fl->side, out,
				  psn_map_frame(out, f, psn.v, psn_add(r->at.msn, 1)));
	} else if (r && r->made) {
		COUNT(e, ATOMICS_DROPPED);
		return HOST_NONE;
	} else if (!r && unknown && !x->guessed_ever &&
		   lane_asked_below(wire_psn_of(f), psn_same_wire(x->map.asked.psn)) &&
		   (owner_unsure(l) || !held_pkt(e, &x->held, wire_psn_of(f))) &&
		   !lane_holds_other(e, l, wire_psn_of(f)) && !atomic_dropped(e, l, f)) {
		psn = psn_same_host(wire_psn_of(f));
		engine_tx(e, fl, fl->side, f->data, f->len);
	} else {
		return HOST_NONE;
	}
	/* an answer to what is repeated, not to what is behind that and was not forgotten */
	if (!psn_after(psn, l->rounds.psn))
		x->stuck = 0;
	return psn;
}

/* All responses before this wire PSN have come. */
static struct wire_psn missing_from(struct engine *e, const struct lane_reads *x)
{
	const struct holes *hs = holes_at(e->pool, x->gaps.holes);

	return hs && hs->n ? (struct wire_psn){hs->h[0].from} : x->end;
}

/** resp_awaited - the response packet @psn, which a fetch waits for, has not come yet. */
bool resp_awaited(struct engine *e, const struct lane_reads *x, struct wire_psn psn)
{
	return !psn_before(psn, x->end) || holes_has(holes_at(e->pool, x->gaps.holes), psn);
}

/* Whether the window and the list of holes have a place for the response packet @psn. */
static bool has_place(struct engine *e, struct flow *fl, struct wire_psn psn)
{
	struct lane_reads *x = reads_of(e, &fl->lane);

	/* one window further on, a packet that is still missing has the same place */
	if (psn_diff(psn, missing_from(e, x)) >= (int32_t)WINDOW_SPAN) {
		COUNT(e, NO_ROOM);
		resp_report_due(e, fl, true);
		return false;
	}
	if (!holes_room(e->pool, &x->gaps.holes, x->end, psn, psn_add(psn, 1))) {
		COUNT(e, HOLES);
		resp_report_due(e, fl, true);
		return false;
	}
	return true;
}

/* There is no memory to keep @f, but the host can have it at once if it is the very next packet
 * that the host waits for. Where it would have to wait (resp_deliver()), it comes again. */
static bool give_next(struct engine *e, struct flow *fl, const struct frame *f)
{
	const struct lane *l = &fl->lane;
	struct read_rec *r = reads_head(e, l);
	uint32_t i = r ? r->got : 0;

	if (!r || owner_unsure(l) || !psn_is(psn_add(r->wire, i), wire_psn_of(f)) ||
	    (l->renumbered && psn_before(l->near.frontier.psn, r->at.psn)) ||
	    resp_give(e, fl, r, i, f->data, f->len)) {
		COUNT(e, NO_ROOM);
		resp_report_due(e, fl, true);
		return false;
	}
	r->got++;
	if (i + 1 == r->span)
		resp_through(e, fl, r);
	return true;
}

enum taken {
	TAKEN_NOT,   /* the packet is refused, and the acceptor is told */
	TAKEN_KEPT,  /* the packet is held until the host gets it */
	TAKEN_GIVEN, /* the host got the packet, and it is not held */
};

/* Keep @f, a packet of @g that has not come before. */
static enum taken take(struct engine *e, struct flow *fl, const struct fetch *g,
		       const struct frame *f)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	bool bad;

	while (has_place(e, fl, wire_psn_of(f))) {
		if (retain(e, fl, f, &bad)) {
			if (f->seal)
				seal_right(&fl->lane);
			if (g->state != FETCH_GONE)
				return TAKEN_KEPT;
			/* the record that it was for had to make room */
			resp_drop(e, x, wire_psn_of(f), psn_add(wire_psn_of(f), 1));
			return TAKEN_NOT;
		}
		if (g->state == FETCH_GONE)
			return TAKEN_NOT;
		if (bad || !icrc_ok(f)) {
			if (f->seal)
				seal_failed(e, fl, f);
			else
				COUNT(e, BAD_ICRC);
			resp_report_due(e, fl, true);
			return TAKEN_NOT;
		}
		if (!x->guesses || g->state == FETCH_GUESS)
			return give_next(e, fl, f) ? TAKEN_GIVEN : TAKEN_NOT;
		/* Guesses must not take the room of what the host waits for. Without them there is
		 * more room, but the holes are others: try again, once, for no guess is left. */
		fetch_drop_guesses(e, fl, &x->info.flushed_pattern);
	}
	return TAKEN_NOT;
}

/* Move @end or fill the hole: the packet @psn of the fetch @id has come. Returns true when that
 * opened or filled a hole, which the acceptor is to hear at once. */
static bool fill(struct engine *e, struct lane_reads *x, uint32_t id, struct wire_psn psn)
{
	const struct fetch *g = fetch_at(e, id), *next = fetch_at(e, mq_next(e->reads, id));
	struct wire_psn fill_end = psn_add(psn, 1);

	if (psn_is(fill_end, psn_add(g->psn, g->span)) && next)
		fill_end = next->psn;
	if (psn_before(psn, x->end)) {
		holes_fill(e->pool, &x->gaps.holes, psn, fill_end);
		return true;
	}
	if (psn_is(psn, x->end)) {
		x->end = fill_end;
		return false;
	}
	holes_open(e->pool, x->gaps.holes, x->end, psn);
	x->end = fill_end;
	return true;
}

/* Count the packet @f of the fetch @id. */
static void count(struct engine *e, struct flow *fl, uint32_t id, const struct frame *f)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	struct fetch *g = fetch_at(e, id);
	struct wire_psn proof;

	x->hint = id;
	x->latest = wire_psn_of(f);
	x->arrival = e->now;
	x->backoff = 0;
	x->arrived_bytes += f->payload_len;
	if (f->aeth)
		lane_credit(&fl->lane, frame_aeth_syndrome(f), true);
	fetch_came(e, g);
	g->touched = e->now;
	g->tries = 0; /* the responder remembers it */
	proof = g->arrived == g->span ? psn_add(g->psn, g->span) : g->psn;
	psn_raise(&x->map.proof, proof);
	x->unique -= g->arrived == g->span && g->opcode != OP_READ_REQUEST;
}

/* The packet @f of the fetch @id is the true one, and held or given. */
static void arrived(struct engine *e, struct flow *fl, uint32_t id, const struct frame *f)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	bool urgent = fill(e, x, id, wire_psn_of(f));

	flow_headers(e, fl, f);
	count(e, fl, id, f);
	fetch_settle(e, x);
	fetch_trim(e, x);
	resp_arm(e, fl);
	resp_report_due(e, fl, urgent);
	pace_run(e, flow_partner(e, fl));
}

/** resp_rx - the response packet @f has come over the WAN. Returns the host's PSN of it when it was
 * passed on although no request that waits for it is known, else HOST_NONE. */
struct host_psn resp_rx(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	uint32_t id = fetch_find(e, x, wire_psn_of(f));
	const struct fetch *g = fetch_at(e, id);
	enum taken taken;

	if (!g || !reads_fit(g->opcode, psn_past(wire_psn_of(f), g->psn), g->span, g->what.length,
			     f, fl->path_mtu)) {
		if (psn_before(wire_psn_of(f), x->end))
			resp_report_due(e, fl, true); /* the report that it came was lost */
		return stray(e, fl, f, !g);
	}
	if (g->state == FETCH_GONE)
		return stray(e, fl, f, false);
	if (!resp_awaited(e, x, wire_psn_of(f))) {
		resp_report_due(e, fl, true);
		return stray(e, fl, f, false);
	}
	taken = take(e, fl, g, f);
	if (taken == TAKEN_NOT)
		return HOST_NONE;
	arrived(e, fl, id, f);
	if (taken == TAKEN_GIVEN)
		ack_list(e, fl);
	return HOST_NONE;
}

bool resp_serve(struct engine *e, struct flow *fl, const uint8_t *data, uint32_t len)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	struct wire_psn proof = x->map.proof;
	uint32_t id;
	struct frame f;
	bool bad;

	if (frame_parse(data, len, &f) != FRAME_OK)
		return false;
	id = fetch_find(e, x, wire_psn_of(&f));
	if (id == MQ_NONE || fetch_at(e, id)->state != FETCH_ASKED ||
	    !resp_awaited(e, x, wire_psn_of(&f)) || !has_place(e, fl, wire_psn_of(&f)))
		return false;
	if (!retain(e, fl, &f, &bad))
		return false;
	arrived(e, fl, id, &f);
	x->map.proof = proof; /* it says nothing of the responder */
	return true;
}

/* ---- what the acceptor is told ---- */

void resp_report_due(struct engine *e, struct flow *fl, bool urgent)
{
	if (fl->lane.peer != PEER_NONE)
		report_schedule(e, fl, &reads_of(e, &fl->lane)->gaps, urgent);
}

static void report(struct engine *e, struct flow *fl, struct lane_reads *x)
{
	struct lane *l = &fl->lane;
	struct report r = {
		.type = REPORT_RESP,
		.lane = lane_number(e, fl),
		.gen = l->gen,
		.key = fl->key,
		.seq = ++x->seq,
		.cum = missing_from(e, x).v,
		.hi = x->end.v,
		.latest = x->latest.v,
		.depth = x->depth,
		.announce = x->announce,
	};

	if (x->announce)
		memcpy(r.announce_key, x->announce_key, sizeof(r.announce_key));
	gaps_tell(e, &x->gaps, &r);
	e->sink.report(e->sink.ctx, (unsigned int)l->peer, &r);
}

uint64_t resp_report(struct engine *e, struct flow *fl)
{
	struct lane_reads *x = reads_of(e, &fl->lane);

	/* an acceptor that does not know the lane yet would say that it has forgotten it */
	if (!x || fl->lane.state == LANE_FAULT || !fl->lane.accepted || fl->lane.reopen)
		return 0;
	if (report_now(e, &x->gaps)) {
		if (x->gone) { /* fetch_abandon() */
			fetch_settle(e, x);
			fetch_trim(e, x);
		}
		report(e, fl, x);
	}
	return report_next(&x->gaps);
}
