// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The frontier: what the near requester is told (roles OPENER and SINGLE).
 *
 * It is the least of several limits, each a PSN together with what an ACK just below it would say:
 *
 *	- what is accepted (and thereby retained);
 *	- the first unanswered READ or its like (not ATOMICs answered here: atomic.c);
 *	- the handover PSN, until everything before it was truly acknowledged;
 *	- the true ACK, where the policy is `off`, where the peer has not agreed yet, while the lane
 *	  drains, and inside messages that do not fit the pool (row: POOL-3);
 *	- the last packet of the first message not truly acknowledged, where the policy is `honest`;
 *	- what was sent on, while the lane's share of the pool is nearly full, or the pool has no
 *	  room for what requesters send next (room.c): then they go at the pace of the WAN;
 *	- itself, or the true ACK, while next to nothing is left of that share: what the host was
 *	  not told of is what it can be told, step by step (ease.c). One that was told of all, and
 *	  whose next request is refused, gives up when its retries are used up;
 *	- what the latest barrier allows, with `order = hosts` (link/order_barrier.c);
 *	- itself, or the true ACK, while most of the lane's span of PSNs is in custody: at its end a
 *	  request would be refused until its host's retries are used up.
 *
 * A sequence NAK acknowledges what is before it just as an ACK does, so it can only be sent when
 * the frontier has come up to the gap. Until then it is due: a NAK at the frontier itself makes the
 * requester go back in vain, and a few of those use up its retries.
 *
 * An ACK never bears the PSN of a READ or ATOMIC: some requesters take it for the answer.
 *
 * What the port has no room for stays due: nothing is noted as said before it has left.
 */
#include "engine/fault/fault.h"
#include "engine/link/order.h"
#include "engine/near/near_priv.h"
#include "engine/owner/owner.h"
#include "engine/prefetch/prefetch.h"

/* What a packet takes besides its data. */
#define HEADERS_MOST 128u

static void limit(struct host_mark *m, const struct host_mark *by)
{
	if (psn_before(by->psn, m->psn))
		*m = *by;
}

/* The same by a mark in the numbers of the responder. */
static void limit_wire(struct engine *e, const struct lane *l, struct host_mark *m,
		       const struct wire_mark *wire)
{
	struct host_mark by = psn_to_host(e, l, wire);

	limit(m, &by);
}

/*
 * POLICY_HONEST: find the last packet of the first message that is not truly acknowledged. The
 * search goes on where it stopped, and begins anew only when the true ACK has passed what it found.
 */
static void honest_limit(struct engine *e, struct lane *l, struct host_mark *m)
{
	struct wire_mark *h = &l->near.honest;
	struct pkt *d;

	if (psn_before(h->psn, l->una.psn)) {
		*h = l->una;
		l->near.honest_found = false;
	}
	while (!l->near.honest_found && psn_before(h->psn, l->epsn.psn)) {
		struct wire_psn psn;

		d = lane_pkt_next(e, l, h->psn, l->epsn.psn, &psn);
		if (!d)
			return;
		h->psn = psn;
		if ((d->flags & PKT_EOM) && !(d->flags & PKT_ANSWERED)) {
			l->near.honest_found = true;
			break;
		}
		h->psn = psn_add(psn, d->span);
		h->ackable = !(d->flags & PKT_ANSWERED);
		if (d->flags & PKT_EOM)
			h->msn++;
	}
	if (l->near.honest_found)
		limit_wire(e, l, m, h);
}

/* A request out of sequence waits for a plain ACK: it is done when the true ACK passes it. */
void frontier_trim(struct engine *e, struct lane *l)
{
	struct read_rec *r;

	reads_trim(e, l, NULL);
	while ((r = reads_head(e, l)) && !(opcode_info(r->opcode)->flags & OPF_ANSWERED) &&
	       psn_before(r->wire, l->una.psn)) {
		r->done = true;
		reads_trim(e, l, NULL);
	}
}

/* Cut @m down to what safety demands, READs aside; limit_by_room() adds what a full pool does. */
static void limits(struct engine *e, struct lane *l, struct host_mark *m)
{
	if (!l->start_acked)
		limit(m, &l->near.frontier);
	if (l->state == LANE_OPENING || l->policy == POLICY_OFF || owner_unsure(l) ||
	    lane_carries_on(l))
		limit_wire(e, l, m, &l->una);
	if (l->policy == POLICY_HONEST)
		honest_limit(e, l, m);
}

/* Of a message that did not fit when it began: whether all of it is here, or the rest fits now. */
static bool fits_now(const struct engine *e, const struct lane *l)
{
	uint64_t packets;

	if (!psn_before(l->epsn.psn, l->keeper.guard_end))
		return true;
	if (l->near.msg != MSG_WRITE || l->near.msg_left == MSG_LEFT_UNKNOWN)
		return false;
	packets = psn_past(l->keeper.guard_end, l->epsn.psn);
	return l->near.msg_left + packets * HEADERS_MOST <=
	       pool_log_room(e->pool, POOL_CUSTODY, &l->held.log, l->held.bytes);
}

/* While room is short, and inside messages that did not fit, the WAN sets the pace. */
static void limit_by_room(struct engine *e, struct lane *l, struct host_mark *m)
{
	struct host_mark una, most = l->near.frontier;

	if (psn_known(l->keeper.guard.psn) && fits_now(e, l))
		l->keeper.guard.psn = WIRE_NONE;
	if (psn_known(l->keeper.guard.psn))
		limit_wire(e, l, m,
			   psn_after(l->una.psn, l->keeper.guard.psn) ? &l->una : &l->keeper.guard);
	if (!psn_after(m->psn, l->near.frontier.psn))
		return;
	if (!span_pressed(e, l) && !pool_full(e, l)) {
		if (!pool_pressed(e, l) && window_fits(e, l))
			return;
		most = psn_to_host(e, l, &l->nxt);
		if (!psn_after(m->psn, most.psn))
			return;
	}
	COUNT(e, HELD_BACK);
	una = psn_to_host(e, l, &l->una);
	/* a true ACK may be ahead of what this lane sent itself only after a restart */
	limit(m, psn_after(una.psn, most.psn) ? &una : &most);
}

/* Whether nothing but @r itself, at the frontier, keeps the frontier from going on. */
bool frontier_may_pass(struct engine *e, struct lane *l, const struct read_rec *r)
{
	struct host_mark m = host_epsn(e, l);

	if (l->state == LANE_FAULT || !l->start_acked || !psn_is(l->near.frontier.psn, r->at.psn))
		return false;
	limits(e, l, &m);
	limit_by_room(e, l, &m);
	return psn_after(m.psn, r->at.psn);
}

static void advance(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct host_mark m = host_epsn(e, l), una;
	const struct read_rec *r = reads_waiting(e, l);

	if (l->state == LANE_FAULT || !l->start_acked)
		return;
	if (r)
		limit(&m, &r->at);
	limits(e, l, &m);
	limit_by_room(e, l, &m);
	if (l->ordered) {
		order_want(e, fl, &m);
		order_limit(e, l, &m);
	}
	una = psn_to_host(e, l, &l->una);
	if (!psn_after(m.psn, l->near.frontier.psn))
		return;
	/* the true ACK knows better what stands just below it when we have not understood that.
	 * Else our count is better: an ACK to a duplicate has a newer MSN. */
	if (psn_is(m.psn, una.psn) && !m.ackable && una.ackable)
		m = una;
	mark_frontier(l, &m);
	if (l->renumbered && reads_head(e, l))
		pace_run(e, flow_partner(e, fl)); /* its response waited for that */
	if (l->near.ack_due || l->near.nak_due)
		ack_list(e, fl);
}

/* ---- what the requester is told ---- */

/* Whether the host may be told that all before @psn is done. */
static bool may_tell(struct engine *e, struct lane *l, struct host_psn psn)
{
	const struct read_rec *r = reads_waiting(e, l);
	struct host_psn end = host_epsn(e, l).psn;
	struct host_psn waits = r ? r->at.psn : end;
	struct host_psn start = psn_same_host(l->start); /* until all before it is acknowledged */

	return lane_must(e, l, l->state != LANE_FAULT && (l->start_acked || psn_is(psn, start)),
			 psn.v, start.v) &&
	       lane_must(e, l, !psn_after(psn, end), psn.v, end.v) &&
	       lane_must(e, l, !psn_after(psn, waits), psn.v, waits.v);
}

void nak_send(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	advance(e, fl);
	l->near.nak_due = !l->start_acked || !psn_is(l->near.frontier.psn, host_epsn(e, l).psn) ||
			  reasked_waits(l) || owner_unsure(l);
	if (l->near.nak_due)
		return;
	if (!may_tell(e, l, l->near.frontier.psn) ||
	    !ack_send(e, fl, l->near.frontier.psn, AETH_NAK_SEQ, l->near.frontier.msn)) {
		l->near.nak_due = true;
		ack_again_later(e, fl);
		return;
	}
	l->near.nak_sent = true;
	l->count.naks++;
	COUNT(e, NAKS_SENT);
}

/* The ACK of @m. Returns false when the port has no room for it. */
static bool ack_front(struct engine *e, struct flow *fl, const struct host_mark *m)
{
	struct lane *l = &fl->lane;

	if (!may_tell(e, l, m->psn) ||
	    !ack_send(e, fl, psn_sub(m->psn, 1), lane_syndrome(l), m->msn))
		return false;
	if (psn_after(m->psn, l->near.acked.psn))
		l->keeper.told_us = now_us(e);
	l->near.acked = *m;
	psn_raise(&l->near.told, m->psn);
	l->count.pseudo_acks++;
	l->near.unacked = 0;
	COUNT(e, PSEUDO_ACKS);
	return true;
}

static void flush(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct host_mark m;

	order_accepted(e, fl);
	advance(e, fl);
	near_ease(e, fl);
	if (reasked_waits(l) || owner_unsure(l) || l->near.quiet)
		return;
	while (atomic_make(e, fl))
		advance(e, fl);
	m = l->near.frontier.ackable ? l->near.frontier : l->near.acked;
	if (m.ackable &&
	    (l->near.ack_repeat || (l->near.ack_due && psn_after(m.psn, l->near.acked.psn))) &&
	    !ack_front(e, fl, &m)) {
		ack_again_later(e, fl);
		return;
	}
	l->near.ack_repeat = false;
	if (psn_is(l->near.frontier.psn, host_epsn(e, l).psn))
		l->near.ack_due = false;
	if (l->near.nak_due)
		nak_send(e, fl);
}

/* The responder has refused what lane_refused() noted. */
static void refused(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	const struct wire_mark at = {.psn = l->refusal_psn};
	struct host_mark m;
	enum lane_reason why = l->reason;
	uint8_t syndrome = l->refusal;

	if (l->gone) { /* nobody is left to be told */
		if (l->far_left)
			order_abandon(e, fl);
		lane_close(e, fl, REASON_DISCONNECT, true);
		return;
	}
	advance(e, fl);
	m = psn_to_host(e, l, &at);
	/* a guess was refused, numbers differ, or it would acknowledge another owner's */
	if (psn_before(m.psn, l->near.frontier.psn) || !l->start_acked || owner_unsure(l) ||
	    psn_map_differs(e, l) || l->near.quiet) {
		lane_fault(e, fl, why, syndrome);
		return;
	}
	/* nothing acknowledged is refused: the requester gets the NAK as it is */
	if (!ack_send(e, fl, psn_same_host(l->refusal_psn), syndrome, l->una.msn)) {
		ack_again_later(e, fl);
		return;
	}
	COUNT(e, FATAL_NAKS);
	lane_close(e, fl, why, true);
}

/* Nobody has read for a while what the requester sent, nor need it have what it was told last. Amid
 * a message it has more to send, so it is asked to go back without waiting for its timer. At the
 * end of a message we cannot know, and a NAK of a PSN that it never sent might do harm; so the
 * latest ACK is repeated. But not where a request from far away was the latest to come: the number
 * may have a new owner (incarnation.c), and soft-RoCE takes an ACK with a PSN beyond what it has
 * sent as an ACK of all that it has sent. */
void near_tell_again(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	if ((l->state != LANE_HELD && !lane_carries_on(l)) || l->refusal ||
	    (psn_known(l->rounds.psn) && near_far(e, l, l->rounds.psn)))
		return;
	l->near.nak_sent = false;
	if (l->near.msg == MSG_SEND || l->near.msg == MSG_WRITE)
		l->near.nak_due = true;
	else
		l->near.ack_repeat = l->near.acked.ackable;
	ack_list(e, fl);
}

void near_tell(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	if (l->state == LANE_FAULT) {
		fault_answer(e, fl);
		return;
	}
	if (l->refusal) {
		refused(e, fl);
		return;
	}
	frontier_trim(e, l);
	if (l->owner.state == OWNER_PROVED) {
		unseen_proved(e, fl);
		owner_judge(e, fl, EVIDENCE_TOLD);
	}
	flush(e, fl);
	if (l->listed.ack)
		return;
	if (lane_drained(l) && near_may_part(e, fl))
		lane_part(e, fl);
	else if (lane_carries_on(l))
		near_let_go(e, fl);
}
