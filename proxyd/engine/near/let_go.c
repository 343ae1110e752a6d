// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A lane that carries on while it drains (core/close.c), and its end.
 *
 * A requester that is never idle always has something under way, so such a lane would never be
 * empty. It need not be: its host is told nothing any more but what the responder has truly
 * acknowledged, so as soon as the true ACK has come up to what was told before, nothing is
 * promised. What is still in custody then the host has itself, as it has every packet that no ACK
 * covers. So it may leave: what was not sent yet goes out at once, and what is lost of it the host
 * repairs.
 *
 * Until then it may take long: there may be much in custody that was told and is not even sent yet.
 * Meanwhile the host is told a little more (ease.c): what is promised grows less all the same.
 *
 * Not so where the host's numbers are not those of the responder (prefetch): a host that goes
 * on alone would be misunderstood. That holds for the lane as a whole (psn_map_differs()), and
 * for a READ that was asked ahead under another number than the host gave it: until its answer
 * has been given, the host may ask for it again. Nor while a barrier of its hosts is open
 * (order = hosts): what passes could overtake what another lane has promised.
 *
 * A request that is missing between the host and us is asked for first: to a responder that has
 * seen nothing of what came behind it there is no gap, so the host would wait for its timer.
 */
#include "engine/link/order.h"
#include "engine/near/near.h"

/* Whether a READ or the like that the host waits for has another number at the responder. */
static bool waits_renumbered(struct engine *e, const struct lane *l)
{
	mq_each (struct read_rec, r, e->reads, &l->reads)
		if (r->wire.v != r->at.psn.v)
			return true;
	return false;
}

/* So long a host repeats what its responder, which has disconnected, does not answer. */
#define PATIENCE_NS (10 * NSEC_PER_SEC)

bool near_may_part(struct engine *e, const struct flow *fl)
{
	const struct lane *l = &fl->lane;

	return l->gone || (l->reason == REASON_DISCONNECT && e->now - fl->seen > PATIENCE_NS) ||
	       !(psn_map_differs(e, l) || waits_renumbered(e, l));
}

/** near_let_go - end the lane, if all that its host was told is true by now. */
void near_let_go(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	bool moved = false;

	(void)resp_deliver(e, fl, UINT32_MAX, &moved);
	if (moved)
		return; /* what that allows to be told is told first */
	if (near_promised(e, l) || psn_map_differs(e, l) || waits_renumbered(e, l) ||
	    l->near.nak_due || (l->ordered && order_waits(e, fl)))
		return;
	lane_send_rest(e, fl);
	lane_part(e, fl);
}
