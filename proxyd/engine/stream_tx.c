/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The sending end of a stream: requests in custody, over the WAN, until the far appliance has them
 * (role OPENER).
 *
 * Packets go out in PSN order as pacing and the peer's room allow; retransmissions go before new ones.
 * The peer reports what is missing (report.h). Whether a missing packet is lost or only late is decided by
 * time, not by counting: the transmission time of the newest packet known to have arrived is kept
 * (@rack_us), and a missing packet whose own latest transmission is older than that by more than a
 * reordering window is lost. A retransmission gets a new time, so it is judged by the same rule, and so is
 * its retransmission.
 *
 * The reordering window is a quarter of the shortest round trip seen, at least REO_MIN_US.
 *
 * The loss timer serves what no later packet can tell: the tail of a burst, or a peer that is silent. It
 * sends the oldest packet that the peer is not known to have, and backs off; its budget is peer_timeout
 * and is renewed by progress only.
 *
 * What the peer has is not released: only a true ACK of the responder releases custody, since the peer may
 * lose its memory at any time. After a restart everything from the last true ACK on is sent again.
 */
#include "engine/internal.h"

#define REO_MIN_US 500u
/* More than any host has outstanding. */
#define HOST_WINDOW 65536u

static uint64_t max64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void arm(struct engine *e, struct flow *fl)
{
	uint32_t id = TIMER_ID(flow_index(e, fl), TIMER_LOSS);

	/* also when nothing is under way for want of room at the peer: it may not say when there is some */
	if (fl->lane.tack.psn == fl->lane.sent.psn && fl->lane.sent.psn == fl->lane.accept.psn)
		wheel_cancel(e->wheel, id);
	else
		wheel_arm(e->wheel, id, e->now + lane_rto_ns(&fl->lane));
}

/* Send the packet at @psn. False when the port has no room. */
static bool send(struct engine *e, struct flow *fl, struct pkt *d)
{
	if (engine_tx(e, other_port(fl->side), lane_packet(e, d), d->len))
		return false;
	pace_sent(e, d->len);
	d->xmit = now_us(e);
	if (d->tries++) {
		d->flags |= PKT_RETX;
		fl->lane.retx++;
		COUNT(e, RETX_WAN);
	}
	if (d->tries == 0)
		d->tries = UINT16_MAX;
	if (d->flags & PKT_LOST)
		fl->lane.lost--;
	d->flags = (d->flags | PKT_SENT) & ~PKT_LOST;
	return true;
}

/* Packets judged lost, oldest first. Returns false when sending must stop. */
static bool send_lost(struct engine *e, struct flow *fl, uint32_t *budget)
{
	struct lane *l = &fl->lane;
	uint32_t psn = l->lost_from;
	struct pkt *d;

	if (!l->lost)
		return true;
	if (psn_before(psn, l->tack.psn))
		psn = l->tack.psn;
	while (l->lost && psn_before(psn, l->sent.psn) &&
	       (d = window_next(&l->win, e->pool, psn, l->sent.psn, &psn))) {
		if (d->flags & PKT_LOST) {
			l->lost_from = psn;
			if (!*budget || !pace_may_send(e) || !send(e, fl, d))
				return false;
			*budget -= d->len < *budget ? d->len : *budget;
		}
		psn = psn_add(psn, d->span);
	}
	l->lost_from = l->sent.psn;
	return true;
}

bool stream_tx_run(struct engine *e, struct flow *fl, uint32_t quantum)
{
	struct lane *l = &fl->lane;
	uint32_t budget = quantum, before = l->sent.psn;
	bool idle = l->sent.psn == l->tack.psn, stopped;

	if (l->state == LANE_FAULT || l->reopen)
		return false;
	stopped = !send_lost(e, fl, &budget);
	while (!stopped && psn_before(l->sent.psn, l->accept.psn) &&
	       psn_before(l->sent.psn, l->room)) {
		struct pkt *d = window_get(&l->win, e->pool, l->sent.psn);

		if (!d) /* released already: acknowledged while waiting for its first transmission */
			break;
		if (!budget || !pace_may_send(e) || !send(e, fl, d)) {
			stopped = true;
			break;
		}
		budget -= d->len < budget ? d->len : budget;
		l->sent.psn = psn_add(l->sent.psn, d->span);
		l->sent.msn += !!(d->flags & PKT_EOM);
		l->sent.ackable = !(d->flags & PKT_ANSWERED);
	}
	if (l->sent.psn != before) {
		if (idle)
			l->progress = e->now;
		if (psn_after(l->sent.psn, l->high))
			l->high = l->sent.psn;
		if (idle || !wheel_armed(e->wheel, TIMER_ID(flow_index(e, fl), TIMER_LOSS)))
			arm(e, fl);
		responder_advance(e, fl); /* a front that waits for the WAN */
	} else if (idle && !stopped && psn_before(l->sent.psn, l->accept.psn) &&
		   !wheel_armed(e->wheel, TIMER_ID(flow_index(e, fl), TIMER_LOSS))) {
		arm(e, fl);
	}
	return stopped;
}

/* ---- what the peer tells ---- */

/* A packet that ends at @end is known to have arrived; @just: just now, so that its age is a round trip. */
static void arrived(struct engine *e, struct lane *l, uint32_t end, bool just)
{
	struct pkt *d = window_get(&l->win, e->pool, psn_sub(end, 1));
	uint32_t age;

	if (!d || !(d->flags & PKT_SENT))
		return;
	age = now_us(e) - d->xmit;
	if (d->flags & PKT_RETX) {
		/* which transmission arrived? not the latest, if it would have been faster than light */
		if (age < l->minrtt_us) {
			COUNT(e, RETX_SPURIOUS);
			return;
		}
	} else if (just) {
		lane_rtt_sample(e, l, age);
	}
	if ((int32_t)(d->xmit - l->rack_us) > 0)
		l->rack_us = d->xmit;
}

/*
 * Packets in @hole are missing. Lost are those that were sent before one that has arrived, by more than the
 * reordering window, or so long ago that they would have arrived; the others get until then. In any case
 * those that were sent @older us ago or more.
 */
static void mark_lost(struct engine *e, struct lane *l, const struct psn_range *hole, uint32_t reo,
		      uint32_t older)
{
	uint32_t psn = hole->from, late = l->srtt_us + reo, now = now_us(e);
	struct pkt *d;

	while (psn_before(psn, hole->end) &&
	       (d = window_next(&l->win, e->pool, psn, hole->end, &psn))) {
		if (!(d->flags & PKT_LOST) && (d->flags & PKT_SENT) &&
		    (now - d->xmit >= older || (int32_t)(l->rack_us - d->xmit) > (int32_t)reo ||
		     (now - d->xmit > late && (int32_t)(l->rack_us - d->xmit) >= 0))) {
			d->flags |= PKT_LOST;
			if (!l->lost++ || psn_before(psn, l->lost_from))
				l->lost_from = psn;
		} else if (!(d->flags & PKT_LOST)) {
			l->undecided = true;
		}
		psn = psn_add(psn, d->span);
	}
}

/*
 * What arrived must lie within what the host can have sent. (Not: within what we accepted or sent, since while
 * the lane was opening all passed by: what waited here for its turn, and what came after something that we
 * missed.)
 */
static bool sane(const struct lane *l, const struct report *r)
{
	if (psn_after(r->tack, r->cum) || psn_before(r->hi, r->cum) ||
	    psn_diff(r->hi, l->accept.psn) > (int32_t)HOST_WINDOW)
		return false;
	if (psn_diff(r->room, r->cum) < 0 || psn_diff(r->room, r->cum) > (int32_t)WINDOW_SPAN)
		return false;
	for (uint8_t i = 0; i < r->nholes; i++)
		if (!psn_before(r->hole[i].from, r->hole[i].end) ||
		    psn_before(r->hole[i].from, r->cum) || psn_after(r->hole[i].end, r->hi))
			return false;
	return true;
}

void stream_tx_progress(struct engine *e, struct flow *fl, const struct report *r)
{
	struct lane *l = &fl->lane;
	uint32_t reo = l->minrtt_us / 4 > REO_MIN_US ? l->minrtt_us / 4 : REO_MIN_US;
	struct mark tack = {.psn = r->tack, .msn = r->tack_msn, .ackable = r->tack_ackable};
	uint32_t cum = r->cum;
	bool progress;

	/* the newest wins; a report from before a resumption says what is no longer true */
	if (!l->accepted || l->reopen ||
	    (l->report_count && (int32_t)(r->seq - l->report_seq) <= 0))
		return;
	if (psn_before(r->cum, l->tack.psn)) {
		/* it waits for what is released already */
		stream_tx_restart(e, fl);
		return;
	}
	if (!sane(l, r)) {
		COUNT(e, BAD_REPORT);
		return;
	}
	if (psn_after(cum, l->accept.psn))
		cum = l->accept.psn;
	progress = psn_after(tack.psn, l->tack.psn);
	l->heard = true;
	l->report_seq = r->seq;
	l->report_count = 1;
	/* the contiguous part may end with a packet that has waited long for the one before it */
	if (psn_after(cum, l->reached))
		arrived(e, l, cum, false);
	if (psn_after(r->hi, l->reached_hi))
		arrived(e, l, r->hi, true);
	else if (psn_before(r->hi, l->reached_hi))
		mark_lost(e, l, &(struct psn_range){r->hi, l->reached_hi}, 0, 0); /* given up */
	l->reached_hi = r->hi;
	l->undecided = false;
	for (uint8_t i = 0; i < r->nholes; i++)
		mark_lost(e, l, &r->hole[i], reo, UINT32_MAX);
	if (psn_after(cum, l->reached)) {
		/* receipt is progress for the stream, though only a true ACK is for custody */
		l->reached = cum;
		l->backoff = 0;
		progress = true;
	}
	l->room = r->room;
	if (r->credit != 0xff)
		l->credit = r->credit;
	if (psn_after(tack.psn, l->tack.psn)) {
		l->true_acks++;
		COUNT(e, TRUE_ACKS);
		responder_true_ack(e, fl, &tack);
	}
	if (l->role != ROLE_OPENER)
		return; /* it was drained and closed by that */
	l->progress = e->now; /* the peer is there; how its responder does is its business */
	if (progress)
		arm(e, fl);
	if (l->undecided) {
		/* ask again when the time for a verdict has come */
		uint64_t verdict = e->now + reo * NSEC_PER_USEC;

		if (l->srtt_us && verdict < e->now + lane_rto_ns(l))
			wheel_arm(e->wheel, TIMER_ID(flow_index(e, fl), TIMER_LOSS), verdict);
	}
	if (!r->refusal && r->reason == REASON_OPERATOR) {
		lane_drain(e, fl, r->reason);
		if (l->role != ROLE_OPENER)
			return;
	}
	if (r->refusal) {
		responder_refused(e, fl, r->refusal_psn, r->refusal,
				  r->reason ? r->reason : REASON_NAK);
		return;
	}
	pace_run(e, fl);
}

void stream_tx_timeout(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	uint32_t from = psn_after(l->reached, l->tack.psn) ? l->reached : l->tack.psn, psn;
	uint64_t patience = max64(e->cfg.peer_timeout_ns, e->cfg.responder_timeout_ns);
	struct pkt *d;

	if (l->state == LANE_FAULT || l->tack.psn == l->accept.psn)
		return;
	if (l->tack.psn == l->sent.psn && !l->reopen) {
		/* probe for room with the next packet */
		if (psn_before(l->room, psn_add(l->sent.psn, 1)))
			l->room = psn_add(l->sent.psn, 1);
		l->progress = e->now;
		pace_run(e, fl);
		arm(e, fl);
		return;
	}
	l->timeouts++;
	COUNT(e, TIMEOUTS);
	if (e->now - l->progress > patience && !l->reopen) {
		lane_fault(e, fl, REASON_PEER_LOST, AETH_NAK_OPERATION);
		return;
	}
	if (l->undecided)
		l->undecided = false; /* this is not the silence that backing off is for */
	else if (l->backoff < 12)
		l->backoff++;
	if (!l->reopen) {
		/* the peer is there, and yet what lies beyond its highest has had all the time */
		if (l->heard)
			mark_lost(e, l, &(struct psn_range){l->reached_hi, l->sent.psn}, 0,
				  lane_rto_ns(l) / 2 / NSEC_PER_USEC);
		l->heard = false;
		pace_run(e, fl);
		/* the oldest that the peer is not known to have; if it has all, the latest, whose
		 * arrival makes it report again */
		d = window_next(&l->win, e->pool, from, l->sent.psn, &psn);
		if (!d && psn_before(l->tack.psn, l->sent.psn))
			d = window_get(&l->win, e->pool, psn_sub(l->sent.psn, 1));
		if (!d)
			d = window_next(&l->win, e->pool, l->tack.psn, l->sent.psn, &psn);
		if (d)
			send(e, fl, d);
	}
	arm(e, fl);
}

/* The peer lost its memory of the lane: agree anew from the last true ACK on. */
void stream_tx_restart(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	if (l->state == LANE_FAULT)
		return;
	if (l->state == LANE_OPENING) {
		lane_send_open(e, fl);
		return;
	}
	l->gen = ++e->gen;
	l->reopen = true;
	l->report_count = 0;
	l->sent = l->tack;
	l->reached = l->reached_hi = l->tack.psn;
	l->backoff = 0;
	l->room = psn_add(l->tack.psn, 256);
	lane_send_open(e, fl);
}
