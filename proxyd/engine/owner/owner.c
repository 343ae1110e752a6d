// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Whose number is it? A queue pair number may get another owner at any time, at the same PSNs, and
 * without a word of the connection manager. What its requests look like proves nothing (anybody can
 * send them), but the true responder knows.
 *
 * A request from below the true ACK was told to be done; it passes to the responder. That is a host
 * that lacks an ACK, or another owner. Until the responder has spoken the lane is in @suspect: what
 * comes is kept and sent on as ever, and the requester is told nothing but what the responder says.
 * The answer decides:
 *
 *	ACK just below una, today's MSN	it has all that we know it to have, whoever asks
 *	a true ACK beyond una		likewise
 *	an MSN that was passed long ago	it counts anew: the queue pair is another one, and
 *	or an ACK to another requester	what the former one has not taken is lost
 *
 * The last two may be forged, on the WAN as well as on the LAN, and what was told to be done would
 * be dropped without a word to who was told. So an opener that owes something asks its peer, which
 * hears the responder from its own LAN, and whose word is authentic: the lane ends when that has
 * heard the same (@anew). An appliance alone has nobody to ask: its lane fails, so that the host
 * learns it. One whose peer is too old to be asked lets go.
 *
 * Where such a request must not pass, because a barrier is open (link/order.c), the lane is in
 * @suspect as well: nobody is asked by it, but who sent it would take an ACK of what follows for
 * one of this, too. Then a true ACK beyond una ends the doubt, or a repeat that passes later.
 *
 * Where responder and requester know other numbers (psn_map.c) nothing passes but a READ or ATOMIC
 * that is asked again, under the responder's number, and its answer ends the doubt if it counts as
 * we do; and only this lane makes the two understand each other, so that it counts as one that owes
 * something. A request whose opcode nobody here knows passes without a place among the
 * others: who answers what is not told by its PSN.
 *
 * A responder that has been silent for STALL_NS, with something on its way to it, may be gone. Then
 * a request from below the true ACK may be the first of a new owner, and nothing of the old custody
 * must be sent before it is answered: it would be executed in the new owner's name.
 */
#include "engine/owner/owner.h"

/* How long nothing is sent that way. */
#define UNSURE_NS  (1 * NSEC_PER_SEC)
/* Not so many messages are completed while an ACK is on its way. */
#define MSN_RECENT 65536u

/* Send nothing before the responder has spoken, or has had the time to: once for each silence, or
 * who repeats often enough would keep all in custody for ever. */
static void wait_for_word(struct engine *e, struct flow *fl)
{
	if (fl->lane.held_once)
		return;
	fl->lane.held_once = true;
	lane_hold_back(e, fl, UNSURE_NS);
}

/** lane_doubt - the responder may be another one from now on: nothing is sent to a silent one
 * before it has spoken. */
void lane_doubt(struct engine *e, struct flow *fl)
{
	/* nxt goes back to what is sent again */
	if (fl->lane.una.psn != fl->lane.high && lane_stalled(e, &fl->lane))
		wait_for_word(e, fl);
}

/** lane_passed - a request of the host, @psn from below una, passes to the responder. */
void lane_passed(struct engine *e, struct flow *fl, uint32_t psn)
{
	struct lane *l = &fl->lane;

	if (!lane_asked(e, l) || l->passed_from == PSN_NONE || psn_before(psn, l->passed_from))
		l->passed_from = psn;
	l->passed_us = some_us(e);
	l->suspect = lane_keeps(l);
	lane_doubt(e, fl);
}

/** lane_unpassed - a request of the host from below una was dropped: it would have overtaken. */
void lane_unpassed(struct lane *l)
{
	l->suspect = lane_keeps(l);
}

/** lane_passed_unknown - a request passes of which nobody here knows what answers it. */
void lane_passed_unknown(struct engine *e, struct lane *l)
{
	if (!lane_asked(e, l))
		l->passed_from = PSN_NONE;
	l->passed_us = some_us(e);
}

/** lane_sure - the responder has all below una, and counts as we do. */
void lane_sure(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	l->disputed = l->anew = l->held_once = false;
	if (!l->suspect)
		return;
	l->suspect = false;
	ack_list(e, fl);
	if (l->reads_page != POOL_NONE)
		pace_run(e, flow_partner(e, fl)); /* answers that waited for this */
	if (!l->held_back)
		return;
	l->rnr_wait = l->held_back = false;
	wheel_cancel(e->wheel, TIMER_ID(flow_index(e, fl), TIMER_AUX));
	pace_run(e, fl);
}

/* OPENER: leave it to the peer. Returns false when that cannot be asked. */
static bool dispute(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	if (l->role != ROLE_OPENER || !(e->peer_features[l->peer] & PEER_FEATURE_DISPUTE))
		return false;
	/* while the two do not agree about the lane there is other evidence to come */
	if (l->disputed || !l->accepted || l->reopen)
		return true;
	l->disputed = l->suspect = true;
	lane_ask_owner(e, fl);
	return true;
}

/** lane_replaced - the number belongs to another owner, so says the responder. A lane that owes
 * something believes it only where the responder takes nothing more, now or later. Returns true
 * when the lane is gone. */
bool lane_replaced(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	l->anew = l->role == ROLE_ACCEPTOR;
	if (l->role == ROLE_ACCEPTOR && l->state == LANE_DRAIN && lane_stalled(e, l)) {
		/* no opener is left that could let go */
		engine_event(e, EVENT_INCARNATION, fl, 0, 0);
		lane_close(e, fl, REASON_INCARNATION, true);
		return true;
	}
	if (l->role == ROLE_ACCEPTOR && l->una.psn != l->high && lane_stalled(e, l)) {
		/* its opener hears the same, and lets go; until then this one keeps quiet */
		l->disputed = l->suspect = true;
		wait_for_word(e, fl);
		return false;
	}
	if (l->role == ROLE_ACCEPTOR)
		return false;
	/* an ACK that was late on its way looks the same: what was heard while the responder went
	 * on counts for nothing when it is silent later; then it is asked again */
	if ((lane_owes(e, l) || psn_map_differs(e, l)) && !lane_stalled(e, l))
		return false;
	if (l->refusal || (lane_owes(e, l) && dispute(e, fl)))
		return false;
	engine_event(e, EVENT_INCARNATION, fl, 0, 0);
	if (l->role == ROLE_SINGLE && lane_owes(e, l)) {
		lane_refused(e, fl, l->una.psn, AETH_NAK_OPERATION, REASON_INCARNATION);
		return false;
	}
	lane_close(e, fl, REASON_INCARNATION, true);
	return true;
}

/** lane_strange_ack - whether the ACK, NAK or answer @f, to what is in custody, comes from another
 * queue pair than what the responder said before: it was silent for long, and has done fewer
 * messages. */
bool lane_strange_ack(const struct engine *e, const struct lane *l, const struct frame *f)
{
	uint32_t behind = psn_sub(l->una.msn, frame_aeth_msn(f));

	return !l->opaque && behind && behind <= PSN_MASK / 2 && lane_stalled(e, l);
}

/** lane_answered - the responder answers @f, below una, to what has passed. */
void lane_answered(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	uint32_t msn = frame_aeth_msn(f), behind = psn_sub(l->una.msn, msn);

	if (l->opaque || psn_map_differs(e, l) || !lane_asked(e, l) || l->passed_from == PSN_NONE ||
	    psn_before(f->psn, l->passed_from))
		return;
	if (psn_sub(msn, l->una.msn) <= psn_sub(l->epsn.msn, l->una.msn)) {
		if (psn_add(f->psn, 1) == l->una.psn && aeth_is_ack(frame_aeth_syndrome(f))) {
			l->proved = l->suspect;
			lane_sure(e, fl);
		}
	} else if (behind < MSN_RECENT || msn <= psn_sub(f->psn, l->passed_from) + 1) {
		lane_replaced(e, fl);
	}
}

/** lane_counts - a READ or ATOMIC of the host that passed the lane under the responder's number
 * (reads/) is answered with @msn: where that is what we know, the responder is the one we know. */
void lane_counts(struct engine *e, struct flow *fl, uint32_t msn)
{
	struct lane *l = &fl->lane;

	if (!l->opaque && psn_sub(msn, l->una.msn) <= psn_sub(l->epsn.msn, l->una.msn))
		lane_sure(e, fl);
}
