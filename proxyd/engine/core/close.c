// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How a lane ends.
 *
 * Closing is abrupt where nothing was promised (OPENING), else through DRAIN, until the responder
 * has acknowledged all that was promised. Where an operator wants it (a stop, a rule that is gone,
 * a release, the peer's wish for such reasons), or packets take another way, no request is dropped
 * meanwhile: they are carried as before, but acknowledged by the true responder only, and as soon
 * as that has made all promises true the lane is let go (near/let_go.c). Else new requests are
 * dropped, which hosts repair by themselves: they are another owner's, or such that no lane can
 * hold. What a role has to say about it stands in its table (roles.h).
 */
#include "engine/core/roles.h"
#include "engine/core/core.h"

#define CLOSED_RETRY_NS	 (100 * NSEC_PER_MSEC)
/* Requests that nobody here knows come in numbers: each costs the host a timeout if the lane is
 * held and owes something. So do packets that take another way. */
#define LONG_RETRY_NS	 (10 * NSEC_PER_SEC)
/* A refusal is told again after this. */
#define REFUSED_AGAIN_NS (100 * NSEC_PER_MSEC)
/* So is a question, this and two round trips later. */
#define DISPUTE_AGAIN_NS (100 * NSEC_PER_MSEC)
/* A connection that its hosts took down keeps its place for this, for late packets. */
#define LEFT_NS		 (100 * NSEC_PER_MSEC)

static void send_close(struct engine *e, struct flow *fl, enum lane_reason why)
{
	struct lane *l = &fl->lane;
	struct report r = {
		.type = REPORT_CLOSE,
		.lane = l->role == ROLE_ACCEPTOR ? l->acceptor.peer_lane : lane_number(e, fl),
		.gen = l->gen,
		.key = fl->key,
		.by_opener = l->role == ROLE_OPENER,
		.reason = (uint8_t)lane_reason_told(why),
	};

	if (l->peer != PEER_NONE)
		e->sink.report(e->sink.ctx, (unsigned int)l->peer, &r);
}

void lane_send_close(struct engine *e, struct flow *fl)
{
	send_close(e, fl, fl->lane.reason);
}

/* OPENER: ask the peer whether it has heard another owner of the number, too (owner.c). */
void lane_ask_owner(struct engine *e, struct flow *fl)
{
	send_close(e, fl, REASON_DISPUTED);
	timer_arm(e, fl, TIMER_AUX,
		  e->now + DISPUTE_AGAIN_NS + 2ull * fl->lane.rtt.srtt_us * NSEC_PER_USEC);
}

/* Do not open it again for a while. */
void lane_stay_watched(struct engine *e, struct flow *fl, enum lane_reason why)
{
	bool long_while = why == REASON_OPCODE || why == REASON_BYPASS;

	flow_open_at(fl, e->now + (long_while ? LONG_RETRY_NS : CLOSED_RETRY_NS));
}

static void leave_later(struct engine *e, struct flow *fl)
{
	timer_arm(e, fl, TIMER_REPORT, e->now + LEFT_NS);
}

/* What was promised of the lane and is not truly acknowledged will not be delivered. @abandoned: no
 * application is left to be told, for both hosts have given the connection up. */
void lane_lost(struct engine *e, struct flow *fl, uint32_t packets, uint64_t bytes, bool abandoned)
{
	e->counters[abandoned ? EC_ABANDONED : EC_FAULTS]++;
	e->counters[abandoned ? EC_ABANDONED_PACKETS : EC_LOST_PACKETS] += packets;
	e->counters[abandoned ? EC_ABANDONED_BYTES : EC_LOST_BYTES] += bytes;
	engine_event(e, abandoned ? EVENT_ABANDONED : EVENT_FAULT, fl, packets, bytes);
}

/* End it now. What was promised and not truly acknowledged is lost thereby; callers do this when
 * no application is left to be told (the queue pair was taken down or reused). It is counted and
 * logged as a fault, unless the responder's host has asked for that, and its peer has agreed. */
void lane_close(struct engine *e, struct flow *fl, enum lane_reason why, bool tell)
{
	struct lane *l = &fl->lane;
	bool gone, undecided = l->state == LANE_FAULT && l->reason == REASON_DISCONNECT &&
			       !l->fault.gone;

	if (l->role == ROLE_NONE)
		return;
	l->reason = (uint8_t)why;
	if (tell)
		lane_send_close(e, fl);
	if (lane_keeps(l) && l->state != LANE_FAULT &&
	    psn_before(psn_to_host(e, l, &l->una).psn, l->near.frontier.psn))
		lane_lost(e, fl, l->held.packets, l->held.bytes, l->gone && l->far_left);
	if (undecided)
		lane_lost(e, fl, l->fault.packets, l->fault.bytes, false);
	engine_event(e, EVENT_CLOSED, fl, 0, 0);
	gone = l->gone;
	fl->stranded = !gone && role_of(e, l)->strands && role_of(e, l)->strands(e, fl);
	fl->cut = false;
	lane_reset(e, fl);
	fl->left |= gone;
	if (fl->left)
		leave_later(e, fl);
	flow_match_rule(e, fl); /* the rules may have changed while it was held */
	lane_stay_watched(e, fl, why);
}

/* Finish what is owed, then WATCH. */
void lane_drain(struct engine *e, struct flow *fl, enum lane_reason why)
{
	struct lane *l = &fl->lane;

	if (l->role == ROLE_NONE || l->state == LANE_DRAIN || l->state == LANE_FAULT)
		return;
	if (role_of(e, l)->drain && role_of(e, l)->drain(e, fl, why))
		return;
	l->reason = (uint8_t)why;
	if (l->state == LANE_OPENING) {
		if (why == REASON_OPERATOR && !l->ordered)
			lane_send_rest(e, fl);
		lane_close(e, fl, why, true); /* nothing was promised */
		return;
	}
	lane_set_state(l, LANE_DRAIN);
	if (lane_keeps(l))
		l->near.eased = l->una.psn;
	lane_check_drained(e, fl);
	if (lane_carries_on(l))
		ack_list(e, fl); /* there may be nothing but true ACKs behind it as it is */
}

bool lane_carries_on(const struct lane *l)
{
	return l->state == LANE_DRAIN && lane_keeps(l) && !l->gone &&
	       (l->reason == REASON_OPERATOR || l->reason == REASON_BYPASS);
}

/*
 * Both hosts have said that the connection is down. What is owed is offered to the far queue pair
 * for a little longer (far_timeout()). Then no application is left to be told. What a responder
 * does not take is abandoned if its own host has asked for the end. But a requester may ask for the
 * end because it was told that all is done, and its request may have overtaken what the WAN lost:
 * what is lost then is a fault. @asked: from these sides (bits) the end was asked for.
 */
void lanes_gone(struct engine *e, struct flow *fl, struct flow *other, unsigned int asked)
{
	fl->lane.far_left = asked >> other->side & 1;
	other->lane.far_left = asked >> fl->side & 1;
	fl->lane.gone = fl->lane.role != ROLE_NONE;
	other->lane.gone = other->lane.role != ROLE_NONE;
	fl->comm_id = other->comm_id = 0;
	fl->left = !fl->lane.gone;
	other->left = !other->lane.gone;
	if (fl->left)
		leave_later(e, fl);
	if (other->left)
		leave_later(e, other);
	lane_drain(e, fl, REASON_DISCONNECT);
	lane_drain(e, other, REASON_DISCONNECT);
	lane_check_drained(e, fl);
	lane_check_drained(e, other);
}

void flow_leave(struct engine *e, struct flow *fl)
{
	const struct flow *other = flow_partner(e, fl);

	/* a lane of the other direction asks again when it ends */
	if (fl->left && (!other || other->lane.role == ROLE_NONE))
		flow_forget(e, fl);
}

/* Send nothing for @ns: as after an RNR NAK. */
void lane_hold_back(struct engine *e, struct flow *fl, uint64_t ns)
{
	if (fl->lane.state == LANE_FAULT || fl->lane.refusal ||
	    (fl->lane.role != ROLE_ACCEPTOR && fl->lane.role != ROLE_SINGLE))
		return;
	fl->lane.rnr_wait = fl->lane.owner.held_back = true;
	timer_cancel(e, fl, TIMER_LOSS);
	timer_arm(e, fl, TIMER_AUX, e->now + ns);
}

/* The host has asked for all that was guessed: both numberings are the same, and it may drain. */
void lane_settled(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	if (flow_let_go(e, fl) && lane_keeps(l) && l->state == LANE_HELD && !psn_map_differs(e, l))
		lane_drain(e, fl, REASON_OPERATOR);
}

bool lane_drained(const struct lane *l)
{
	return l->state == LANE_DRAIN && psn_is(l->una.psn, l->epsn.psn) &&
	       !(lane_keeps(l) && l->held.packets);
}

void lane_part(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane, was = *l;
	bool same = lane_keeps(l) && !l->gone && !psn_map_differs(e, l);

	lane_close(e, fl, l->reason, true);
	if (same)
		seal_leave(l, &was);
}

/* Close what is owed nothing more. Of a lane that keeps custody the requester is told first what it
 * may know, and its numbers must be those of the responder: the tick sees to both (near/ack_tx.c).
 */
void lane_check_drained(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	if (!lane_drained(l))
		return;
	if (lane_keeps(l) && (l->near.ack_due || l->near.nak_due || l->listed.ack || l->nreads ||
			      psn_map_differs(e, l)))
		ack_list(e, fl);
	else
		lane_part(e, fl);
}

/* The responder refuses the request @psn, or is gone. An acceptor tells its opener. Where custody
 * is kept the tick judges what that means to the requester (near/ack_tx.c). */
void lane_refused(struct engine *e, struct flow *fl, struct wire_psn psn, uint8_t syndrome,
		  enum lane_reason why)
{
	struct lane *l = &fl->lane;

	if (l->refusal || l->state == LANE_FAULT)
		return;
	if (!lane_keeps(l) && l->state == LANE_DRAIN) {
		/* the opener is gone: nobody is left to be told */
		lane_close(e, fl, numbers_lost(l) ? (enum lane_reason)l->reason : why, true);
		return;
	}
	l->refusal = syndrome;
	l->refusal_psn = psn;
	l->reason = (uint8_t)why;
	if (lane_keeps(l)) {
		ack_list(e, fl);
		return;
	}
	timer_cancel(e, fl, TIMER_LOSS);
	timer_arm(e, fl, TIMER_AUX, e->now + REFUSED_AGAIN_NS);
	progress_due(e, fl, true);
}
