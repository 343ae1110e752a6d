// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A requester that is held back is told a little at a time.
 *
 * A requester is held back while memory or its span of PSNs is short (ack_tx.c), and while its
 * lane drains (let_go.c). Much that it was told of may then still wait for the WAN: a queue of up
 * to the lane's share of the pool, which may take longer than the requester's timer. The timer
 * starts afresh only with an ACK of something new, and a requester with the retry count 0 gives up
 * when it fires for the first time. What its timer and its retry count are is not known here. So:
 *
 *	- for each EASE packets that the responder acknowledges the requester is told of one more.
 *	  What is promised, and what is retained, grows less all the same;
 *	- where the responder acknowledges nothing, or too slowly for that, a requester that is
 *	  short of room is told of one packet after TELL_US without an ACK of something new, as long
 *	  as there is memory for what it sends in return. That is shorter than any host's timer;
 *	- of the memory that is then left each packet goes to a requester whose timer has fired.
 *
 * What a step covers is retained like everything else.
 */
#include "engine/link/order.h"
#include "engine/near/near.h"

#define EASE	4
#define TELL_US 2000u

/* How long a requester waits for a step, by the sixteenths of its share that are left. */
static const uint32_t wait_us[] = {UINT32_MAX, 8 * TELL_US, 2 * TELL_US, 2 * TELL_US, TELL_US};
#define PLENTY_LEFT 4u

bool near_promised(struct engine *e, const struct lane *l)
{
	return psn_before(psn_to_host(e, l, &l->una).psn, l->near.frontier.psn);
}

/* Whether the requester waits for memory or for PSNs. */
static bool short_of_room(struct engine *e, const struct lane *l)
{
	return psn_before(l->near.frontier.psn, host_epsn(e, l).psn) &&
	       (pool_pressed(e, l) || span_pressed(e, l) || psn_known(l->keeper.guard.psn) ||
		!window_fits(e, l));
}

/* The requester may be told of one packet more, if no answer or true ACK must come before. */
static bool step(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	const struct read_rec *r = reads_waiting(e, l);
	struct host_mark m = l->near.frontier;
	struct wire_psn wire;
	const struct pkt *d;

	if (!l->start_acked || owner_unsure(l) || l->state == LANE_OPENING ||
	    l->policy == POLICY_OFF || (r && psn_is(r->at.psn, m.psn)))
		return false;
	wire = psn_to_wire(x ? &x->map : NULL, m.psn);
	d = psn_known(wire) ? lane_pkt(e, l, wire) : NULL;
	if (!d || (d->flags & PKT_ANSWERED) || ((d->flags & PKT_EOM) && l->policy == POLICY_HONEST))
		return false;
	mark_step(&m, 1, d->flags & PKT_EOM, true);
	if (l->ordered) {
		order_want(e, fl, &m); /* then the next step is allowed */
		order_limit(e, l, &m);
		if (!psn_after(m.psn, l->near.frontier.psn))
			return false;
	}
	mark_frontier(l, &m);
	return true;
}

/* Whether the requester, who was told of more than is true, hears of the next true ACKs so. */
static bool may_ease(struct engine *e, const struct lane *l)
{
	if (!lane_carries_on(l))
		return near_promised(e, l) && short_of_room(e, l);
	return !l->ordered && psn_after(l->near.frontier.psn, psn_to_host(e, l, &l->nxt).psn);
}

void near_ease(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	int32_t acked = psn_diff(l->una.psn, l->near.eased) / EASE;

	if (!may_ease(e, l))
		l->near.eased = l->una.psn;
	else if (acked > 0)
		l->near.eased = psn_add(l->near.eased, (uint32_t)acked * EASE);
	while (acked-- > 0 && may_ease(e, l) && step(e, fl))
		;
	if (!lane_carries_on(l) && short_of_room(e, l) && !timer_armed(e, fl, TIMER_EASE))
		timer_arm(e, fl, TIMER_EASE, e->now + TELL_US * NSEC_PER_USEC);
}

void near_ease_one(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	if (now_us(e) - l->keeper.told_us >= TELL_US &&
	    (lane_carries_on(l) ? near_promised(e, l) : short_of_room(e, l)) && step(e, fl))
		l->keeper.told_us = now_us(e);
}

void near_ease_timer(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	uint32_t left = MIN(share_left(e, l), span_left(e, l)),
		 told = now_us(e) - l->keeper.told_us;
	uint32_t wait = wait_us[MIN(left, PLENTY_LEFT)];

	if (l->state == LANE_FAULT || lane_carries_on(l) || !short_of_room(e, l) ||
	    wait == UINT32_MAX)
		return; /* near_ease() begins again */
	if (told >= wait && step(e, fl)) {
		l->near.ack_due = true;
		ack_list(e, fl);
	}
	timer_arm(e, fl, TIMER_EASE, e->now + (told < wait ? wait - told : wait) * NSEC_PER_USEC);
}
