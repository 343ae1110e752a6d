// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The appliance near the requester has lost its memory (power, kernel), and with it what it had
 * told its host to be done and had not delivered. What had come here was delivered, then the lane
 * ended (acceptor, opener_gone()). What the host was told is not known here. But it shows: a host
 * that was not told goes back to what the responder lacks, at the latest when its timer runs out;
 * one that was told has nothing to go back to. It asks again and again from beyond.
 *
 * Then the promise is broken, and both ends must see it: the requester gets a fatal NAK to its
 * oldest request, the responder's queue pair is broken by force (broken.c). The true responder's
 * own NAK says nothing to a host that has done with that PSN, and may retry for ever.
 *
 * In WATCH, while lane.waits_ms: the responder has all below lane.near.acked; lane.reached: latest.
 */
#include "engine/fault/fault.h"

/* So many rounds of repeating from the same place beyond it are no loss of a single packet. */
#define ROUNDS	     3
/* So long after the end of the lane nobody asks again from that time. */
#define ABANDONED_MS 60000u

/* Whether @psn is the first of a round: the host goes back to it. One from below shows that where
 * the round seemed to begin was not its oldest: what came before was lost, or was overtaken. */
static bool round_begins(const struct engine *e, struct lane *l, struct host_psn psn)
{
	uint16_t now = (uint16_t)(e->now / NSEC_PER_MSEC);
	bool goes_on = l->rounds.run && psn_after(psn_same_wire(psn), l->reached),
	     below = l->rounds.run && psn_before(psn, l->rounds.psn);

	l->reached = psn_same_wire(psn);
	if (!below && (goes_on || (l->rounds.run && (uint16_t)(now - l->rounds.ms) < ROUND_MS)))
		return false;
	l->rounds.run = psn_is(psn, l->rounds.psn) ? l->rounds.run + 1 : 1;
	l->rounds.psn = psn;
	l->rounds.ms = now;
	return true;
}

/* The far requester's oldest request: it was told that what came before is done. */
static void refuse(struct engine *e, struct flow *fl)
{
	if (ack_send(e, fl, fl->lane.rounds.psn, AETH_NAK_OPERATION, fl->lane.near.acked.msn))
		COUNT(e, FATAL_NAKS);
}

bool fault_abandoned(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	struct flow *back = flow_partner(e, fl);
	int32_t beyond = psn_diff(host_psn_of(f), l->near.acked.psn);

	if (beyond > HOST_WINDOW || ms_of(e->now) - l->waits_ms > ABANDONED_MS || !back ||
	    back->lane.role == ROLE_SOLO) {
		l->waits_ms = 0;
		return false;
	}
	if (beyond <= 0) { /* it goes back, or the former appliance's repair was on its way */
		l->rounds.run = 0;
		return false;
	}
	if (!round_begins(e, l, host_psn_of(f)) || l->rounds.run < ROUNDS)
		return false;
	l->refusal = AETH_NAK_OPERATION;
	fault_broken_promise(e, back, psn_same_far(psn_same_wire(l->near.acked.psn)));
	refuse(e, fl);
	return true;
}

void fault_abandoned_again(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;

	if (l->role != ROLE_NONE || !icrc_ok(f))
		return;
	/* what a host asks whose numbers are lost tells nothing but that it goes on */
	if (fl->stranded && !l->refusal && round_begins(e, l, host_psn_of(f)) &&
	    l->rounds.run >= ROUNDS)
		l->refusal = AETH_NAK_OPERATION;
	if (l->refusal && psn_is(host_psn_of(f), l->rounds.psn))
		refuse(e, fl);
}

void fault_abandoned_ack(struct flow *req, const struct frame *f)
{
	struct lane *l = &req->lane;
	uint8_t syndrome = f->aeth ? frame_aeth_syndrome(f) : AETH_ACK_UNLIMITED;
	/* of a lane that is watched, whose numbers agree */
	struct host_psn has = psn_add(host_psn_of(f), aeth_is_ack(syndrome));

	if (l->refusal || !psn_after(has, l->near.acked.psn))
		return;
	l->near.acked.psn = has;
	if (f->aeth)
		l->near.acked.msn = frame_aeth_msn(f);
}
