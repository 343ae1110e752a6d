// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Custody is lost: an ACK told the application that data is safe, and it is not. The application
 * must see its QP fail, even if it never sends again. Three remedies:
 *
 *	TELL	Whoever asks gets a fatal NAK (told.c).
 *	BREAK	An idle requester ignores NAKs: its host gets a request that it must refuse, which
 *		puts its QP into the error state (broken.c).
 *	OVER	The connection manager's disconnect, and the end of the lane (over.c).
 *
 * A connection that both hosts have given up has no application left that could be told. The far
 * queue pair is gone, for its host answers and it does not (far/pseudo_requester.c): the lane comes
 * here with REASON_DISCONNECT, and is *undecided*. Where its own queue pair says nothing while its
 * host answers, that is *gone*, too, and what was in custody is abandoned: counted, logged, and no
 * alarm. Where neither answers, or the queue pair gives a sign later, it is a fault.
 *
 * Here is how a lane gets into FAULT, and who is asked when its timer fires. Nothing is let through
 * in either direction, and whatever the host replies ends here: the far host has asked nothing.
 *
 * A connection that a former engine held may be idle for hours. Unless the headers of packets to
 * its requester were kept, nobody knows how to speak to it until it asks (*unheard*), and its
 * silence says nothing. It stays in FAULT for as long as that takes, for the first request would
 * else pass in numbers that mean another one to the responder. The far host, which may ask
 * meanwhile, is not made to wait for that: its packets show how to speak to its peer, which is
 * broken; but silence still says nothing. A stop does not wait for it: it stays fenced.
 *
 * row: ENG-6, CONV-8
 */
#include "engine/fault/fault_priv.h"

/* What the far host's requests have reached, as far as it is known here. */
static struct far_psn expected_psn(struct engine *e, const struct flow *fl)
{
	const struct lane *in = fl->partner == FLOW_NONE ? NULL : &e->flows[fl->partner].lane;

	if (!in)
		return (struct far_psn){0};
	if (in->role == ROLE_ACCEPTOR)
		return psn_same_far(in->high); /* or near it, if READs of ours have gone there */
	if (psn_known(in->epsn.psn))
		return psn_same_far(in->epsn.psn);
	return psn_known(in->una.psn) ? psn_same_far(in->una.psn) : (struct far_psn){0};
}

/* Whether the host of @l may have been told of more than is done. Where the marks are not to be
 * trusted it may; but not before all below the start is done, and a NAK would say that it is. */
static bool promised(struct engine *e, const struct lane *l)
{
	if (!l->start_acked || l->broken)
		return l->start_acked && l->state != LANE_OPENING;
	return psn_before(psn_to_host(e, l, &l->una).psn, l->near.frontier.psn);
}

void lane_fault(struct engine *e, struct flow *fl, enum lane_reason why, uint8_t syndrome)
{
	struct lane *l = &fl->lane;
	struct flow *back = flow_partner(e, fl);
	uint32_t packets = l->held.packets;
	uint64_t bytes = l->held.bytes;
	bool renumbers, done;

	if (l->state == LANE_FAULT || !lane_keeps(l))
		return;
	renumbers = psn_map_differs(e, l);
	done = !promised(e, l);
	/* where the numbers differ the two ends cannot go on without us */
	if (l->gone || (done && !renumbers)) {
		/* nobody is left to be told; or all that was promised is true */
		lane_close(e, fl, why, true);
		return;
	}
	l->reason = (uint8_t)why;
	l->refusal = syndrome;
	lane_send_close(e, fl);
	lane_set_state(l, LANE_FAULT);
	e->in_fault++;
	lane_drop_all(e, fl);
	marks_drop(l);
	timer_cancel(e, fl, TIMER_LOSS);

	l->fault = (struct lane_fault){
		.done = done, .packets = packets, .bytes = bytes, .said = FAR_NONE};
	fault_untold(e, fl);
	l->present = 0;
	if (why != REASON_DISCONNECT)
		lane_lost(e, fl, packets, bytes, false);
	l->fault.epsn = expected_psn(e, fl);
	l->fault.begins = HOST_NONE;
	l->fault.renumbers = renumbers || l->numbered;
	/* the far host's requests find no responder any more: their custody is lost as well */
	if (back && back->lane.role == ROLE_ACCEPTOR)
		lane_refused(e, back, back->lane.una.psn, AETH_NAK_OPERATION,
			     why == REASON_DISCONNECT ? why : REASON_FAULT);
	/* the page with the other numbers is gone: epsn counts as the host does now */
	if (psn_before(l->near.told, psn_same_host(l->epsn.psn))) {
		l->fault.stage = STAGE_TELL;
		ack_schedule(e, fl); /* something waits for an answer: answer it with the fault */
		l->near.ack_due = !l->near.quiet;
		fault_arm(e, fl, TELL_NS);
	} else {
		l->fault.stage = STAGE_BREAK;
		fault_arm(e, fl, 0);
	}
}

/* A former engine gave the packets of this lane numbers of its own, and is gone: neither end
 * understands the other any more. What its host waits for is not known before it asks. */
static void strand(struct engine *e, struct flow *fl, enum lane_reason why)
{
	struct lane *l = &fl->lane;

	l->role = ROLE_OPENER;
	l->reason = (uint8_t)why;
	l->refusal = AETH_NAK_OPERATION;
	l->numbered = l->fenced = true;
	lane_set_state(l, LANE_FAULT);
	e->in_fault++;
	COUNT(e, FAULTS);
	engine_event(e, EVENT_FAULT, fl, 0, 0);
	memset(&l->fault, 0, sizeof(l->fault));
	l->fault.said = FAR_NONE;
	l->fault.strange = l->fault.renumbers = true;
	l->near.told = l->rounds.psn = l->fault.begins = HOST_NONE;
	mark_epsn_psn(l, WIRE_NONE);
	l->progress = fl->seen = e->now;
	l->fault.stage = STAGE_TELL;
	fault_arm(e, fl, ASK_TWICE_NS);
}

void fault_orphan(struct engine *e, struct flow *fl)
{
	const struct flow *back = flow_partner(e, fl);

	strand(e, fl, REASON_ORPHAN);
	fl->lane.fault.unheard = !back || !back->tmpl.len;
}

/* The host may have got, or may get, an answer to another request than it asked. @f: what it asks
 * now, when all before was seen, or NULL: it will tell by asking. */
void fault_solo(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;

	lane_drop_all(e, fl);
	marks_drop(l);
	timer_cancel(e, fl, TIMER_LOSS);
	strand(e, fl, REASON_SOLO);
	l->fault.epsn = expected_psn(e, fl);
	if (!f)
		return;
	fault_request(e, fl, f);
	l->fault.unsure = false;
	ack_schedule(e, fl);
}

/* Of an acceptor's lane the opener makes the FAULT: it has the promises. */
static void broken(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	if (l->role == ROLE_ACCEPTOR) {
		lane_refused(e, fl, l->una.psn, AETH_NAK_OPERATION, REASON_INVARIANT);
	} else if (l->role == ROLE_SOLO && l->state != LANE_FAULT) {
		lane_drop_all(e, fl);
		marks_drop(l);
		strand(e, fl, REASON_INVARIANT);
		l->fault.epsn = expected_psn(e, fl);
	} else if (l->role == ROLE_NONE) {
		l->broken = false;
	} else {
		lane_fault(e, fl, REASON_INVARIANT, AETH_NAK_OPERATION);
	}
}

void fault_broken(struct engine *e)
{
	while (e->broken) {
		e->broken = false;
		for (uint32_t i = 0; i < e->flows_end; i++)
			if (e->flows[i].used && e->flows[i].lane.broken)
				broken(e, flow_ref(e, i));
	}
}

void fault_broken_promise(struct engine *e, struct flow *fl, struct far_psn psn)
{
	lane_fault(e, fl, REASON_PEER_RESTARTED, AETH_NAK_OPERATION);
	if (fl->lane.state == LANE_FAULT)
		return;
	if (fl->lane.role != ROLE_NONE)
		lane_close(e, fl, REASON_PEER_RESTARTED, true);
	strand(e, fl, REASON_PEER_RESTARTED);
	fl->lane.numbered = fl->lane.fenced = false;
	/* which side it is on is known, and what it expects */
	fl->lane.fault.strange = fl->lane.fault.renumbers = false;
	fl->lane.fault.epsn = psn;
	fl->lane.fault.stage = STAGE_BREAK;
	fault_arm(e, fl, 0);
}

/** fault_far_request - the far host asks @f of a queue pair whose own lane, of @fl, is in FAULT.
 * Nothing reaches that host any more, so it must not wait for that lane to be used. */
void fault_far_request(struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;

	if (!l->fault.unheard || l->fault.broken || !icrc_ok(f))
		return;
	if (l->fault.stage == STAGE_TELL)
		l->fault.epsn = far_psn_of(f);
	else if (l->fault.stage == STAGE_OVER)
		l->fault.alive = true;
}

bool fault_unheard(const struct lane *l)
{
	return l->state == LANE_FAULT && l->fault.unheard;
}

/** fault_moved - a packet of @fl, which a former engine may have held, has come to @port. */
void fault_moved(struct engine *e, struct flow *fl, enum engine_port port)
{
	struct flow *other = flow_partner(e, fl);

	if (!other || !((fl->lane.state == LANE_FAULT && fl->lane.fault.strange) ||
			(other->lane.state == LANE_FAULT && other->lane.fault.strange)))
		return;
	fl->side = (uint8_t)port;
	other->side = (uint8_t)other_port(port);
	flow_match_rule(e, fl);
	flow_match_rule(e, other);
}

void fault_timer(struct engine *e, struct flow *fl)
{
	switch (fl->lane.fault.stage) {
	case STAGE_TELL:
		if (tell_timer(e, fl))
			break_begin(e, fl);
		return;
	case STAGE_BREAK:
		break_timer(e, fl);
		return;
	default:
		if (over_timer(e, fl))
			break_again(e, fl);
	}
}
