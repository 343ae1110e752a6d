// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Only responses that the acceptor has named are delivered (with wan-check), as it is with requests
 * (link/names_tx.c says what a name is, and why).
 *
 * The acceptor names what it sends: in the tick behind the packets, and what it sends again at
 * once. It names what it passes on without keeping it, too.
 *
 * The opener knows from its fetches which responses must come (fetch.c). One that comes before its
 * name is held as a guess: it has not arrived yet, is not reported and not given to the host. One
 * that is not of the name is dropped, and its place is free for the true one. A forger can take
 * only places of responses that are awaited, until the next name comes.
 *
 * A response without the right name is no sign of a forger: a responder that is asked twice answers
 * twice, each time with another IP identification and perhaps another MSN, and the names of both
 * come in any order, or not at all. So what is dropped here counts as a duplicate.
 *
 * There is no report of names that are missing. A response without a name is missing itself: it is
 * sent again, and named again.
 *
 * Without names the opener takes what comes while the acceptor does not know the lane: while the
 * peer is down, or has yet to agree to the lane once more.
 */
#include "engine/reads/reads.h"

/* ---- acceptor ---- */

static struct report begin(const struct flow *fl)
{
	return (struct report){.type = REPORT_NAMES,
			       .lane = fl->lane.peer_lane,
			       .gen = fl->lane.gen,
			       .key = fl->key};
}

static void tell(struct engine *e, const struct flow *fl, const struct report *r)
{
	e->sink.report(e->sink.ctx, (unsigned int)fl->lane.peer, r);
}

static uint32_t name_of(struct engine *e, const struct pkt *d)
{
	return get_be32((const uint8_t *)pool_ptr(e->pool, d->loc) + d->len - ICRC_LEN);
}

/** resp_name_one - @f went over the WAN and is not kept. */
void resp_name_one(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct report r = begin(fl);

	if (fl->lane.role != ROLE_ACCEPTOR || !fl->lane.naming)
		return;
	r.cum = f->psn;
	r.hi = psn_add(f->psn, 1);
	r.name[r.nnames++] = get_be32(f->data + f->icrc);
	tell(e, fl, &r);
}

static bool to_be_named(const struct pkt *d, bool now, uint32_t now_us)
{
	return (d->flags & PKT_SENT) && (!now || d->xmit == now_us);
}

/* Name responses of consecutive PSNs that were sent (@now: in this turn), the first at or after
 * @psn, all before @end. Returns where to go on. */
static uint32_t name_some(struct engine *e, struct flow *fl, uint32_t psn, uint32_t end, bool now)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	struct report r = begin(fl);
	struct pkt *d;

	while ((d = window_next(&x->win, e->pool, psn, end, &psn)) &&
	       !to_be_named(d, now, now_us(e)))
		if ((psn = psn_add(psn, 1)) == end)
			return end;
	if (!d)
		return end;
	r.cum = psn;
	while (d && to_be_named(d, now, now_us(e)) && r.nnames < REPORT_NAMED) {
		r.name[r.nnames++] = name_of(e, d);
		psn = psn_add(psn, 1);
		if (!psn_before(psn, end))
			break;
		d = window_follow(&x->win, e->pool, d, psn);
	}
	r.hi = psn;
	tell(e, fl, &r);
	return psn;
}

/** resp_name_again - name what was sent again in this turn. */
void resp_name_again(struct engine *e, struct flow *fl)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	uint32_t psn = x->again_from;

	while (fl->lane.naming && psn_before(psn, x->again_end))
		psn = name_some(e, fl, psn, x->again_end, true);
	x->again_from = x->again_end;
}

void resp_names_due(struct engine *e, struct flow *fl)
{
	struct lane_reads *x = reads_of(e, &fl->lane);

	if (fl->lane.naming && psn_before(x->named, x->nxt))
		report_schedule(e, fl, &x->clock, false);
}

/** resp_names_report - name what was sent. Returns when it wants to be called again, 0: never. */
uint64_t resp_names_report(struct engine *e, struct flow *fl)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	uint32_t told = 0;
	bool now;

	if (!x || !fl->lane.naming || !e->peer_up[fl->lane.peer])
		return 0;
	now = e->now - x->clock.last >= NAMES_NS;
	if (psn_before(x->named, x->una))
		x->named = x->una;
	while (psn_before(x->named, x->nxt) && told < NAMES_ONCE &&
	       (now || psn_diff(x->nxt, x->named) >= (int32_t)REPORT_NAMED)) {
		x->named = name_some(e, fl, x->named, x->nxt, false);
		told++;
	}
	if (told)
		report_told(e, &x->clock);
	if (!psn_before(x->named, x->nxt))
		return 0;
	return told < NAMES_ONCE ? x->clock.last + NAMES_NS : e->now;
}

/* ---- opener ---- */

static bool guess(const struct pkt *d)
{
	return (d->flags & (PKT_USED | PKT_NAMED)) == PKT_USED;
}

/** resp_names_sure - the acceptor knows the lane: it names what it sends. */
bool resp_names_sure(const struct engine *e, const struct lane *l)
{
	return e->peer_up[l->peer] && l->accepted && !l->reopen;
}

/** resp_names_judge - what to do with the response @f, which is awaited. */
enum resp_verdict resp_names_judge(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	uint32_t name = get_be32(f->data + f->icrc);
	const struct pkt *d;

	if (l->role != ROLE_OPENER || !l->check_resp)
		return RESP_RIGHT;
	d = window_slot(&x->win, e->pool, f->psn);
	if (d && guess(d)) {
		if (resp_names_sure(e, l)) {
			/* two for one place: which of them stays will be known by its name */
			COUNT(e, DUP_STREAM);
			return RESP_WRONG;
		}
		resp_drop(e, x, f->psn, psn_add(f->psn, 1));
		return RESP_RIGHT;
	}
	if (!resp_names_sure(e, l))
		return RESP_RIGHT;
	if (!d && x->spare[f->psn % SPARE_NAMES].psn == f->psn)
		return x->spare[f->psn % SPARE_NAMES].name == name ? RESP_RIGHT : RESP_LATER;
	if (!d || (d->flags & PKT_USED)) /* used: by one that is a window away */
		return RESP_LATER;
	if (d->name == name)
		return RESP_RIGHT;
	/* a responder that is asked again says the same with another IP identification */
	window_unname(&x->win, e->pool, f->psn, psn_add(f->psn, 1));
	return RESP_LATER;
}

/* The response @psn of the fetch @id, held as @d, is the true one. */
static void named(struct engine *e, struct flow *fl, uint32_t id, struct pkt *d, uint32_t psn)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	struct frame f;

	if (!resp_has_place(e, fl, psn) ||
	    frame_parse(pool_ptr(e->pool, d->loc), d->len, &f) != FRAME_OK) {
		resp_drop(e, x, psn, psn_add(psn, 1));
		return;
	}
	engine_change(e, d, sizeof(*d));
	d->flags |= PKT_NAMED;
	resp_arrived(e, fl, id, &f);
}

/*
 * There is no memory for the @name of @psn. The responses that the host gets next need none for
 * themselves (resp_rx.c), so that what waits behind them can go, and makes room: their names must
 * not fail for want of memory either.
 */
static void spare(struct engine *e, const struct lane *l, struct lane_reads *x, uint32_t psn,
		  uint32_t name)
{
	const struct read_rec *r = reads_head(e, l);

	if (!r || psn_sub(psn, psn_add(r->wire, psn_sub(r->resp_next, r->at.psn))) >= SPARE_NAMES)
		return;
	x->spare[psn % SPARE_NAMES].psn = psn;
	x->spare[psn % SPARE_NAMES].name = name;
}

/* The acceptor has sent the response @name as @psn. */
static void take(struct engine *e, struct flow *fl, uint32_t psn, uint32_t name)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	uint32_t id = fetch_find(e, x, psn);
	const struct fetch *g = fetch_at(e, id);
	struct pkt *d;

	if (!g || g->state == FETCH_GONE || !resp_awaited(e, x, psn) ||
	    psn_diff(psn, resp_missing_from(e, x)) >= (int32_t)WINDOW_SPAN)
		return;
	d = window_slot(&x->win, e->pool, psn);
	if (d && guess(d) && d->name == name) {
		named(e, fl, id, d, psn);
		return;
	}
	if (d && guess(d)) {
		COUNT(e, DUP_STREAM);
		resp_drop(e, x, psn, psn_add(psn, 1));
		d = window_slot(&x->win, e->pool, psn);
	}
	if (d && d->flags == PKT_NAMED) {
		engine_change(e, d, sizeof(*d));
		d->name = name; /* the responder was asked once more */
	} else if ((!d || !(d->flags & PKT_USED)) &&
		   !window_name(&x->win, e->pool, POOL_TRANSIT, psn, name)) {
		spare(e, &fl->lane, x, psn, name);
	}
}

/** resp_names_rx - the report @r names responses of the lane of @fl. */
void resp_names_rx(struct engine *e, struct flow *fl, const struct report *r)
{
	struct lane *l = &fl->lane;

	if (!reads_of(e, l) || !l->check_resp || l->state == LANE_FAULT)
		return;
	for (uint32_t i = 0; i < r->nnames; i++)
		take(e, fl, psn_add(r->cum, i), r->name[i]);
}
