// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Responses that do not come (role OPENER).
 *
 * Should the acceptor have lost a response (it had no room, or it was restarted), the timer asks
 * the responder again, with a READ for the rest of the range under the PSNs of the first, which is
 * what a host would do (spec: IBTA 9.7.5.1.1). Its response begins with a FIRST of its own in the
 * middle of the range: the opcode that the host must see is made anew then. A responder keeps only
 * few responses to repeat, though, and guesses run ahead by many: what is not answered is asked
 * under new PSNs.
 *
 * That goes on for a while after the host has asked, and again when it asks again. No longer: its
 * queue pair may be gone, and its number the next owner's, whose responder would execute it.
 */
#include "engine/reads/reads.h"

/* So many times as long as a response may be overdue the host is believed to wait for it. */
#define WAITS_FOR     8u
/* So many at a time; the response to one more wakes us again. */
#define OVERDUE_BATCH 16u
/* How much a host has under way when its lane begins (but one long READ), and how long. */
#define BEFORE_PSNS   256u
/* Of the pool, in percent: with more than that a response may have found no room. */
#define POOL_SHORT    40u
#define BEFORE_NS     (60 * NSEC_PER_SEC)

/* Whether the host had @psn under way when the lane began, and may wait for it still. */
static bool from_before(const struct engine *e, const struct lane *l, struct host_psn psn)
{
	/* the numbers agree there */
	return psn_in(psn_same_wire(psn), psn_sub(l->start, BEFORE_PSNS), l->overlap) &&
	       e->now - l->opened < BEFORE_NS;
}

/*
 * The host asks again for a READ that is not held (any more). Where guesses were made the responder
 * has forgotten it, maybe, also one from before the handover: it is asked for anew, under other
 * PSNs, and given when the host asks once more. False when there is no place for a READ: the host
 * has gone back from the middle of a message, and goes on with it only when it has its response.
 *
 * Anybody can send such a request, and a READ of what the responder has opened to nobody would be
 * the end of the queue pair. So it must ask for what is known to have been asked under this PSN, or
 * for what has been read with success, or is @offered as who calls knows, or be from when the lane
 * began; of anything else the responder is asked under the old PSN.
 */
bool resp_renew(struct engine *e, struct flow *fl, const struct frame *f, bool offered)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	struct read_range what = range_of(f);
	struct read_rec *r = reads_find(e, &x->kept, host_psn_of(f)), renewed = {0};
	/* else it has only passed by, see resp_wire_psn(), or is another one */
	bool known = r && r->what.length && reads_part(fl, r, f);
	struct wire_psn wire;

	/* its response is on its way, and repaired where need be; or it is here, and the
	 * responder's word is missing whether it is for this host (owner/owner.c) */
	if (reads_find(e, &fl->lane.reads, host_psn_of(f)))
		return !owner_unsure(&fl->lane);
	if (r && fetch_find(e, x, r->wire) != MQ_NONE)
		return true;
	if (!known && !offered && !ranges_allow(e, fl, x, &what) &&
	    !from_before(e, &fl->lane, host_psn_of(f)))
		return false;
	if (fl->lane.state != LANE_HELD || fl->lane.no_mtu)
		return false; /* no PSNs may be added */
	if (resp_long(frame_span(f, flow_mtu(fl))) || !own_request_anew(e, fl, &what, &wire))
		return fl->lane.near.msg == MSG_NONE;
	COUNT(e, READS_RENUMBERED);
	r = reads_find(e, &x->kept, host_psn_of(f)); /* it may have had to make room */
	if (r) {
		/* the same READ, or a part of one; what was held of it is too old, or not all */
		if (!r->empty)
			resp_drop(e, x, r->wire, psn_add(r->wire, r->span));
		r->at.psn = host_psn_of(f);
	} else {
		renewed.at.psn = host_psn_of(f);
		renewed.at.msn = psn_sub(x->map.asked.msn, 1);
		r = &renewed;
	}
	r->span = frame_span(f, flow_mtu(fl));
	r->opcode = f->opcode;
	r->what = what;
	r->wire = wire;
	r->moved = r->done = r->renewed = true;
	r->asked = r->given = e->now;
	r->again = r->empty = false;
	if (r == &renewed)
		resp_keep(e, fl, r);
	return true;
}

/* The acceptor begins again at the true ACK. What is here, and old ATOMICs, are not asked again. */
void resp_prove(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	struct wire_mark m = {.msn = l->una.msn};

	/* PSNs come round again in seconds */
	if (!x || l->opaque || e->now - x->arrival > 2 * NSEC_PER_SEC)
		return;
	m.psn = x->map.proof;
	mq_each (const struct fetch, g, e->reads, &x->fetches)
		if (g->arrived != g->span && psn_before(g->psn, m.psn))
			m.psn = g->psn;
	if (psn_after(m.psn, l->una.psn) && !psn_after(m.psn, l->epsn.psn))
		lane_true_ack(e, fl, &m);
}

static uint32_t first_missing(struct engine *e, const struct lane_reads *x, const struct fetch *g)
{
	const struct holes *hs = holes_at(e->pool, x->gaps.holes);
	uint32_t i = 0;

	while (i + 1 < g->span && psn_before(psn_add(g->psn, i), x->end) &&
	       !holes_has(hs, psn_add(g->psn, i)))
		i++;
	return i;
}

/* Its response is lost for good. Returns false when that is for later. */
static bool renumber(struct engine *e, struct flow *fl, struct lane_reads *x, struct fetch *g)
{
	struct wire_psn wire;

	mq_each (struct read_rec, r, e->reads, &fl->lane.reads) {
		if (r->done || !psn_is(r->wire, g->psn) || r->opcode != OP_READ_REQUEST)
			continue;
		if (!own_request_anew(e, fl, &g->what, &wire))
			return false;
		COUNT(e, READS_RENUMBERED);
		resp_drop(e, x, g->psn, psn_add(g->psn, g->span));
		r->wire = wire;
		r->moved = true;
		break;
	}
	fetch_gone(e, x, g);
	return true;
}

/* The request of the host that waits for what @g brings; NULL if it was asked for ahead. */
static const struct read_rec *waits_for(struct engine *e, const struct lane *l,
					const struct fetch *g)
{
	mq_each (const struct read_rec, r, e->reads, &l->reads)
		if (psn_is(r->wire, g->psn) && !r->done)
			return r;
	return NULL;
}

/* Whether the host has asked lately for what @g brings. */
static bool host_waits(struct engine *e, const struct lane *l, const struct fetch *g)
{
	const struct read_rec *r = waits_for(e, l, g);

	return e->now - (r ? r->heard : g->issued) < WAITS_FOR * resp_overdue_ns(l);
}

/* Whether responses take a way past us: the peer has sent that of @g, the host and we have asked
 * for it again since, and nothing comes although there is room for it. */
static bool past_us(struct engine *e, const struct lane *l, const struct lane_reads *x,
		    const struct fetch *g)
{
	const struct read_rec *r = waits_for(e, l, g);

	return g->tries && r && r->heard > g->issued && seal_sure(l) && e->peer_up[l->peer] &&
	       e->now - x->arrival > 2 * resp_overdue_ns(l) &&
	       pool_fill(e->pool, POOL_TRANSIT) < POOL_SHORT;
}

void resp_overdue(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	uint32_t n = 0;

	if (!x || l->state == LANE_FAULT)
		return;
	for (uint32_t id = x->fetches.head; id != MQ_NONE && n < OVERDUE_BATCH;
	     id = mq_next(e->reads, id)) {
		struct fetch *g = fetch_at(e, id);
		uint32_t skip;

		if (g->arrived == g->span)
			continue;
		/* not executed yet, or not even there: the stream sees to it */
		if (!psn_before(g->psn, l->una.psn) || g->opcode != OP_READ_REQUEST)
			break;
		/* missing before what has come, or the next to come: it may just be slow */
		skip = first_missing(e, x, g);
		if (e->now - (psn_before(psn_add(g->psn, skip), x->end) ? g->touched : x->arrival) <
		    resp_overdue_ns(l))
			continue;
		if (g->state == FETCH_GUESS) {
			fetch_forget(e, fl, g);
			continue;
		}
		if (!host_waits(e, l, g)) {
			g->tries = 0;
			continue;
		}
		n++;
		if (past_us(e, l, x, g))
			seal_bypass(e, fl, MISS_PAST, true);
		if (x->guessed_ever && g->tries >= ASKED_IN_VAIN && renumber(e, fl, x, g))
			continue;
		/* also where it cannot be asked for anew: it may be that both were lost */
		g->tries += g->tries < UINT8_MAX;
		g->touched = e->now;
		COUNT(e, READS_ASKED_AGAIN);
		read_ask(e, fl, g->psn.v, &g->what, skip);
	}
	fetch_forgotten(e, fl);
	if (!n)
		x->backoff = 0;
	else if (x->backoff < 4)
		x->backoff++;
	resp_arm(e, fl);
}
