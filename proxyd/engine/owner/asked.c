// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a lane knows of whose number it is: what was asked and promised, who is silent.
 */
#include "engine/owner/owner.h"

#define STALL_NS  (500 * NSEC_PER_MSEC)
/* A busy responder answers a repeat within this time and two round trips. */
#define REPEAT_MS 200u

/** lane_lately - whether what passed at @ms (0: never) may be answered yet. */
bool lane_lately(const struct engine *e, const struct lane *l, uint32_t ms)
{
	return ms && ms_of(e->now) - ms <= 2 * l->rtt.srtt_us / 1000 + REPEAT_MS;
}

/** lane_asked - whether a request of the host from below una has passed lately. */
bool lane_asked(const struct engine *e, const struct lane *l)
{
	return lane_lately(e, l, l->owner.passed_ms);
}

/** lane_repeats - what is answered with @psn, below una, has been asked again through the lane: who
 * else has asked with that PSN is not shown by the answer. */
bool lane_repeats(const struct engine *e, const struct lane *l, struct wire_psn psn)
{
	return lane_asked(e, l) && psn_known(l->owner.passed_from) &&
	       psn_in(psn, l->owner.passed_from, l->una.psn);
}

/** lane_holds_other - whether a SEND or WRITE is held under @psn, to which no response is true. */
bool lane_holds_other(struct engine *e, const struct lane *l, struct wire_psn psn)
{
	const struct pkt *d = psn_in(psn, l->una.psn, l->epsn.psn) ? lane_pkt(e, l, psn) : NULL;

	return d && !(d->flags & PKT_ANSWERED);
}

/** lane_may_await - whether the host can have asked for the response @psn past the lane. */
bool lane_may_await(struct engine *e, const struct lane *l, struct wire_psn psn)
{
	if (lane_holds_other(e, l, psn))
		return false;
	if (l->role == ROLE_ACCEPTOR || l->state == LANE_OPENING)
		return true;
	/* what it sent before and has gone back behind it asks for again, through the lane.
	 * @overlap is what anybody on the segment has sent in its name */
	if (lane_asked_below(psn, l->overlap) && psn_before(psn, l->epsn.psn))
		return true;
	return lane_asked_below(psn, l->una.psn) &&
	       (lane_asked(e, l) ||
		(psn_known(l->keeper.reasked_psn) &&
		 psn_in(psn_same_host(psn), l->keeper.reasked_psn, l->keeper.reasked_end)));
}

/** lane_owes - whether the requester was told of something that the responder has not done yet.
 * As long as that is so no request can end the lane, whatever it asks and however often: its ICRC
 * is no signature, anybody on the segment can send it. A queue pair that has really been replaced
 * is accepted when the old debt is delivered or has become a fault. */
bool lane_owes(struct engine *e, const struct lane *l)
{
	return lane_keeps(l) && l->state != LANE_FAULT &&
	       psn_before(psn_to_host(e, l, &l->una).psn, l->near.frontier.psn);
}

/** lane_stalled - the responder is silent although something is on its way to it, or was never
 * asked. An opener goes by the oldest in custody: its peer speaks for itself, too. */
bool lane_stalled(const struct engine *e, const struct lane *l)
{
	if (l->role == ROLE_OPENER)
		return ms_of(e->now) - l->waits_ms > ms_of(STALL_NS) + 2 * l->rtt.srtt_us / 1000;
	return e->now - l->progress > STALL_NS;
}
