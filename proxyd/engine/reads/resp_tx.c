// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Responses on their way over the WAN, sending end (role ACCEPTOR): what the near responder gave
 * stays here until the opener has it, so that a loss on the WAN is repaired from here.
 *
 * Packets go out in the order of their PSNs, which is the order in which pseudo_requester.c lets
 * the responder answer. The opener reports what it has and names what is missing (REPORT_RESP). A
 * packet that is named is sent again when its latest transmission is older than the round trip and
 * a reordering margin, so a retransmission is judged by the same rule as the first one. The timer
 * serves the tail.
 *
 * A response can be asked for again; so memory is no reason to stop the responder. What finds no
 * room is passed on without being kept, and if the WAN loses it the opener asks again (resp_ask.c).
 */
#include "engine/reads/reads.h"

#define REO_MIN_US   500u
#define RTO_MIN_US   10000u
#define RTO_FIRST_US 200000u
/* In percent. */
#define POOL_SHORT   40u

static void arm(struct engine *e, struct flow *fl)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	uint64_t us = x->rtt.srtt_us ? x->rtt.srtt_us + 4ull * x->rtt.rttvar_us : RTO_FIRST_US;

	if (!x->held.packets || psn_is(x->una, x->nxt)) {
		timer_cancel(e, fl, TIMER_RESP);
		return;
	}
	us = MAX(us, RTO_MIN_US);
	us = rtt_capped_us(&x->rtt, (us + peer_late_us(e, &fl->lane)) << x->backoff);
	timer_arm(e, fl, TIMER_RESP, e->now + us * NSEC_PER_USEC);
}

static void release(struct engine *e, struct lane_reads *x, struct wire_psn to)
{
	resp_drop(e, x, x->una, to);
	x->una = to;
	psn_raise(&x->nxt, to);
	psn_raise(&x->end, to);
	psn_raise(&x->held.lost_from, to);
}

/* The first response packet that may still come, should nothing be held: an earlier response may
 * have been lost, and is asked for again while later ones come. */
static struct wire_psn first_to_come(struct engine *e, const struct lane *l, struct wire_psn psn)
{
	const struct read_rec *r = reads_head(e, l);

	return r && psn_before(psn_add(r->wire, r->got), psn) ? psn_add(r->wire, r->got) : psn;
}

/* @f goes over the WAN without being kept. */
static void pass(struct engine *e, struct flow *fl, const struct frame *f)
{
	engine_tx(e, fl, fl->side, f->data, f->len);
}

/* Nothing is held, and @psn is the first that is kept. What the opener lacks before it stays known:
 * it was passed on, lost, and will be asked for again. */
static void begin(struct lane_reads *x, struct wire_psn psn)
{
	if (!psn_in(x->una, psn_sub(psn, WINDOW_SPAN / 2), psn))
		x->una = psn;
	x->nxt = x->end = x->held.lost_from = psn;
}

/* @f, the next packet of a response, is kept, and sent in its turn. False without room. */
static bool keep(struct engine *e, struct flow *fl, struct lane_reads *x, const struct frame *f)
{
	struct wire_psn psn = wire_psn_of(f);
	struct pkt *d;

	if (!x->held.packets)
		begin(x, first_to_come(e, &fl->lane, psn));
	if (held_pkt(e, &x->held, psn) || psn_diff(psn, x->una) >= (int32_t)WINDOW_SPAN)
		return false;
	d = held_add(e, &x->held, f->psn, f->data, f->len);
	if (!d)
		return false;
	if (!psn_before(psn, x->end))
		x->end = psn_add(psn, 1);
	else if (psn_before(psn, x->nxt))
		held_lose(e, &x->held, d, psn); /* its turn has passed already */
	pace_run(e, flow_partner(e, fl));
	return true;
}

bool resp_tx_keep(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane_reads *x = reads_of(e, &fl->lane);

	if (!x)
		return false;
	if (x->held.packets && psn_before(wire_psn_of(f), x->una) &&
	    psn_diff(x->una, wire_psn_of(f)) <= (int32_t)WINDOW_SPAN)
		return true; /* of no use any more */
	return keep(e, fl, x, f);
}

void resp_tx_add(struct engine *e, struct flow *fl, const struct frame *f)
{
	if (!resp_tx_keep(e, fl, f))
		pass(e, fl, f);
}

/*
 * The response @f was made here, and its bytes are on their way to the opener, or have come there
 * (announce/): it is kept as if it had been sent at @xmit. Should the opener miss it, it is sent.
 */
void resp_tx_given(struct engine *e, struct flow *fl, const struct frame *f, uint32_t xmit)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	struct pkt *d;

	if (!x || psn_in(wire_psn_of(f), psn_sub(x->una, WINDOW_SPAN), x->una))
		return; /* it has said so already */
	resp_tx_add(e, fl, f);
	d = x->held.packets ? held_pkt(e, &x->held, wire_psn_of(f)) : NULL;
	if (!d || psn_before(wire_psn_of(f), x->nxt))
		return; /* there is no room for it, or its turn has passed */
	/* where memory is short the opener may have no room for a push either, and must ask */
	if (!psn_is(x->nxt, wire_psn_of(f)) && pool_fill(e->pool, POOL_TRANSIT) >= POOL_SHORT)
		return;
	engine_change(e, d, sizeof(*d));
	d->flags |= PKT_SENT | PKT_RETX; /* its time tells nothing of the round trip */
	d->xmit = xmit;
	if (!psn_is(x->nxt, wire_psn_of(f)))
		return; /* others are to be sent before it, and then it is passed over */
	x->nxt = psn_add(wire_psn_of(f), 1);
	if (!timer_armed(e, fl, TIMER_RESP))
		arm(e, fl);
}

void resp_tx_again(struct engine *e, struct flow *fl, const struct frame *f)
{
	const struct lane_reads *x = reads_of(e, &fl->lane);

	/* what was not kept may be missing still although later ones are held */
	if (x && x->held.packets && psn_before(wire_psn_of(f), x->una))
		pass(e, fl, f);
	else
		resp_tx_add(e, fl, f);
}

bool resp_tx_comes(struct engine *e, const struct flow *fl, const struct frame *f)
{
	const struct lane_reads *x = reads_of(e, &fl->lane);
	struct wire_psn psn = wire_psn_of(f), end = psn_add(psn, frame_span(f, flow_mtu(fl)));

	if (!x || !psn_in(psn, x->una, x->end) || psn_after(end, x->end))
		return false;
	while (psn_before(psn, end) && held_pkt(e, &x->held, psn))
		psn = psn_add(psn, 1);
	return psn_is(psn, end);
}

/* A turn on the WAN. Returns true when there is more to send but it had to stop. */
bool resp_tx_run(struct engine *e, struct flow *fl, uint32_t quantum)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	struct wire_psn psn = {0};
	uint32_t budget = quantum;
	bool idle, stopped;
	struct pkt *d;

	if (!x || !x->held.packets)
		return false;
	idle = psn_is(x->nxt, x->una);
	stopped = x->held.lost &&
		  !stream_send_lost(e, fl, &x->held, x->una, x->nxt, fl->side, &budget);
	while (!stopped && psn_before(x->nxt, x->end) &&
	       (d = held_next(e, &x->held, x->nxt, x->end, &psn))) {
		if (d->flags & PKT_SENT) { /* resp_tx_given() */
			x->nxt = psn_add(psn, 1);
			continue;
		}
		if (!budget || !pace_may_send(e) || !stream_send(e, fl, &x->held, d, fl->side)) {
			stopped = true;
			break;
		}
		budget -= d->len < budget ? d->len : budget;
		x->nxt = psn_add(psn, 1);
	}
	if (idle || !timer_armed(e, fl, TIMER_RESP))
		arm(e, fl);
	if (x->announce) /* what was pushed has parity of its own */
		return stopped;
	/* of a READ that is to come nothing is known: only when none waits they may end */
	return stream_parity_tx(e, fl, flow_partner(e, fl), &x->held, x->una, x->nxt,
				psn_is(x->nxt, x->end) ? 0 : UINT32_MAX) ||
	       stopped;
}

/* What is missing and was sent @age us ago or earlier is lost, if something that was sent after it,
 * at @latest, has come. Else it has half as much time again. */
static void mark_lost(struct engine *e, struct lane_reads *x, struct wire_psn from,
		      struct wire_psn end, uint32_t age, uint32_t latest)
{
	struct wire_psn psn = from;
	struct pkt *d;

	while (psn_before(psn, end) && (d = held_next(e, &x->held, psn, end, &psn))) {
		if ((d->flags & (PKT_SENT | PKT_LOST)) == PKT_SENT && now_us(e) - d->xmit >= age &&
		    ((int32_t)(latest - d->xmit) >= 0 || now_us(e) - d->xmit >= age + age / 2))
			held_lose(e, &x->held, d, psn);
		psn = psn_add(psn, 1);
	}
}

/* The opener has what lies between two holes. Where memory is short that goes, too: what is missing
 * must find room when it is asked for again, or both might be full for ever. */
static void release_between(struct engine *e, struct lane_reads *x, const struct report *r)
{
	if (pool_fill(e->pool, POOL_TRANSIT) < POOL_SHORT)
		return;
	/* behind the last of as many as fit there may be more */
	for (uint8_t i = 0; i < r->nholes && i + 1 < REPORT_HOLES; i++)
		resp_drop(e, x, (struct wire_psn){r->hole[i].end},
			  (struct wire_psn){i + 1 < r->nholes ? r->hole[i + 1].from : r->hi});
}

static bool sane(const struct lane *l, const struct report *r)
{
	if (psn_before(r->hi, r->cum) ||
	    psn_diff((struct wire_psn){r->hi}, l->epsn.psn) > (int32_t)WINDOW_SPAN ||
	    psn_diff(r->hi, r->cum) > (int32_t)WINDOW_SPAN)
		return false;
	return gaps_sane(r);
}

void resp_tx_progress(struct engine *e, struct flow *fl, const struct report *r)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	struct wire_psn cum = {r->cum}, newest = {r->latest};
	uint32_t reo, age, lost, latest = now_us(e);
	struct pkt *d;

	if (!x || (x->seq && (int32_t)(r->seq - x->seq) <= 0))
		return;
	if (!sane(l, r)) {
		COUNT(e, BAD_REPORT);
		return;
	}
	x->seq = r->seq;
	x->depth = r->depth;
	x->announce = r->announce;
	memcpy(x->announce_key, r->announce_key, sizeof(x->announce_key));
	d = psn_in(newest, x->una, x->nxt) ? held_pkt(e, &x->held, newest) : NULL;
	if (d && d->flags & PKT_SENT)
		latest = d->xmit;
	if (d && (d->flags & (PKT_SENT | PKT_RETX)) == PKT_SENT) {
		rtt_sample(e, &x->rtt, now_us(e) - d->xmit);
		engine_change(e, d, sizeof(*d));
		d->flags |= PKT_RETX; /* a sample is taken once */
	}
	if (psn_after(cum, x->una)) {
		release(e, x, cum);
		x->backoff = 0;
		arm(e, fl);
	}
	psn_raise(&x->held.followed, (struct wire_psn){r->hi});
	release_between(e, x, r);
	reo = x->rtt.minrtt_us / 4 > REO_MIN_US ? x->rtt.minrtt_us / 4 : REO_MIN_US;
	age = x->rtt.srtt_us ? x->rtt.srtt_us + reo : RTO_FIRST_US / 2;
	lost = x->held.lost;
	for (uint8_t i = 0; i < r->nholes; i++) {
		struct wire_psn from = {r->hole[i].from}, end = {r->hole[i].end};

		if (psn_before(from, x->una))
			from = x->una;
		if (psn_after(end, x->nxt))
			end = x->nxt;
		mark_lost(e, x, from, end, age, latest);
	}
	if (x->held.lost > lost)
		link_lost(e, l, &x->held, x->held.lost - lost, r);
	if (x->held.lost || psn_before(x->nxt, x->end))
		pace_run(e, flow_partner(e, fl));
	pace_run(e, fl); /* READs that waited for this one */
}

void resp_tx_timeout(struct engine *e, struct flow *fl)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	struct wire_psn psn, last;

	if (!x || !x->held.packets || psn_is(x->una, x->nxt))
		return;
	COUNT(e, TIMEOUTS);
	if (x->backoff < 8)
		x->backoff++;
	/* the oldest, and the newest, whose arrival makes the opener say what is missing */
	if (held_next(e, &x->held, x->una, x->nxt, &psn))
		mark_lost(e, x, psn, psn_add(psn, 1), 0, now_us(e));
	last = psn_sub(x->nxt, 1);
	if (held_pkt(e, &x->held, last))
		mark_lost(e, x, last, x->nxt, 0, now_us(e));
	pace_run(e, flow_partner(e, fl));
	arm(e, fl);
}

/* How many READs more the responder may have at a time before it is given the request at @psn; less
 * than none if another that it may not have comes before that. */
int32_t resp_depth_left(struct engine *e, const struct flow *fl, struct wire_psn psn)
{
	const struct lane *l = &fl->lane;
	const struct lane_reads *x = reads_of(e, l);
	int32_t left;

	if (!x || !x->depth)
		return INT32_MAX;
	left = (int32_t)x->depth;
	for (uint32_t id = l->reads.head; left >= 0 && id != MQ_NONE; id = mq_next(e->reads, id)) {
		const struct read_rec *r = mq_ptr(e->reads, id);

		if (!psn_before(r->wire, psn))
			break;
		/* also answered ones behind an unanswered one: the responder keeps no more */
		left -= !r->absorbed;
	}
	return left;
}
