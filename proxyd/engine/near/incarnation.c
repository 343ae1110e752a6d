// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Whether another owner of a queue pair number asks (roles OPENER and SINGLE). Its PSNs begin
 * anywhere: far from those of the former one (jumps), or among them, where only the content tells,
 * and anybody can send a request with any content. What shows another owner is that it begins again
 * at the same place, round after round, while nothing is owed to the former one.
 *
 * row: POOL-9
 */
#include "engine/announce/announce.h"
#include "engine/fault/fault.h"
#include "engine/learn/learn.h"
#include "engine/near/near_priv.h"

/* So many rounds of repeating that begin at the same place far away mean another incarnation. */
#define JUMP_RUN       3
/* Rounds of repeating that begin behind what is missing, until it is believed. */
#define GONE_ON_ROUNDS 3

/*
 * The requester repeats for ten seconds, round after round, what it was told to be done, and the
 * responder, which would know more, cannot be asked: it knows other PSNs, or may have forgotten the
 * answer. The requester is another incarnation of the QP, or does not get what we send. Two repeats
 * with a long silence between them, or of this and that, show nothing. True: it has faulted.
 */
bool repeats_for_ever(struct engine *e, struct flow *fl, const struct frame *f,
		      enum lane_reason why)
{
	if (!icrc_ok(f) || !rounds_stuck(e, &fl->lane, host_psn_of(f)))
		return false;
	lane_fault(e, fl, why, AETH_NAK_OPERATION);
	return true;
}

/* The QPN was given to another QP: nobody will ask for what is held for the former one. Where only
 * we know the numbers of the other direction (announce/), its own lane finds out: an end of that
 * one is a FAULT, and anybody can send what shows another owner here. */
void incarnation_gone(struct engine *e, struct flow *fl)
{
	const struct flow *back = flow_partner(e, fl);

	engine_event(e, EVENT_INCARNATION, fl, 0, 0);
	lane_close(e, fl, REASON_INCARNATION, true);
	if (!back || !announce_numbered(e, &back->lane))
		flow_unpair(e, fl);
}

void incarnation_next(struct engine *e, struct flow *fl, const struct frame *f)
{
	incarnation_gone(e, fl);
	learn_request(e, fl, f);
	engine_pass(e, fl, fl->side, f);
}

/* Whether another owner of the number asks @f: asked for again and again, while nothing is owed.
 * Where the responder knows other numbers, the lane fails when that goes on. */
static bool may_be_another(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;

	if (lane_owes(e, l)) {
		COUNT(e, FOREIGN);
		rounds_forget(e, l);
		return false;
	}
	if (psn_map_differs(e, l)) {
		COUNT(e, FOREIGN);
		(void)repeats_for_ever(e, fl, f, REASON_INCARNATION);
		return false;
	}
	rounds_begin(e, l, host_psn_of(f));
	return psn_is(host_psn_of(f), l->rounds.psn) && l->rounds.run >= JUMP_RUN;
}

/* A requester repeats what it asked: another request with the same PSN comes from another QP. */
void incarnation_refuse(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;

	if (icrc_wrong(e, f))
		return;
	/* should it be another owner, it must not take our word for its responder's */
	if (lane_stalled(e, l))
		owner_judge(e, fl, EVIDENCE_REQUEST);
	if (may_be_another(e, fl, f))
		incarnation_next(e, fl, f);
}

/*
 * @f is far ahead of or behind all that this QP should have outstanding; @first: the request before
 * it was not. A requester that has lost a packet on its way here, or finds no room, may run on for
 * long, and a single READ may take 2^21 PSNs. Such a requester goes back to what is missing as soon
 * as a NAK or its timer says so, whereas another incarnation begins again where it began. Returns
 * true when another incarnation was found; it then passes through WATCH.
 */
bool incarnation_jumped(struct engine *e, struct flow *fl, const struct frame *f, bool first)
{
	struct lane *l = &fl->lane;
	if (icrc_wrong(e, f))
		return false;
	if (first)
		rounds_forget(e, l);
	if (!may_be_another(e, fl, f))
		return false;
	incarnation_next(e, fl, f);
	return true;
}

/*
 * A requester that repeats from beyond what is missing here, round after round, knows by another
 * way that all before it is done: its packets missed us; or it is the next owner of the number.
 * The lane is released where nothing is promised. Where the responder knows other PSNs it fails
 * instead, since only we could answer. Returns true if the lane was released.
 */
bool incarnation_gone_on(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;

	if (!icrc_ok(f) || l->state != LANE_HELD || l->near.room_wait)
		return false;
	rounds_begin(e, l, host_psn_of(f));
	if (l->rounds.run <= GONE_ON_ROUNDS || lane_owes(e, l))
		return false;
	if (psn_map_differs(e, l)) {
		(void)repeats_for_ever(e, fl, f, REASON_INCARNATION);
		return false;
	}
	lane_close(e, fl, REASON_INCARNATION, true);
	return true;
}
