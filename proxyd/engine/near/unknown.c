// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Requests whose opcode has no row in the opcode table: vendors have some (OPENER and SINGLE).
 *
 * Nobody here knows how many PSNs such a request takes, whether it ends a message, what answers it.
 * So it cannot be carried, and nothing behind it can be. It must not kill the queue pair, and must
 * not overtake what is in custody either: its turn drains the lane (close.c), the host asks again,
 * as for any packet that was lost, and when all is delivered it passes like everything in WATCH.
 * The lane opens again a while after the last of them (lane_stay_watched()).
 *
 * Only the very next PSN drains: what stands anywhere else is not the host's next request, and
 * anybody on the segment can send it. Where the responder knows other PSNs than the host (requests
 * were asked ahead) the lane cannot be let go in time, and the queue pair fails.
 *
 * row: ENG-13
 */
#include "engine/fault/fault.h"
#include "engine/near/near.h"
#include "engine/owner/owner.h"

/* Near the next PSN: what is further away is none of the host's next requests. */
#define UNKNOWN_NEAR 65536

/* The next request of the host. */
static void in_turn(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;

	if (psn_map_differs(e, l)) {
		lane_fault(e, fl, REASON_OPCODE, AETH_NAK_OPERATION);
		return;
	}
	lane_drain(e, fl, REASON_OPCODE);
	if (lane_drained(l))
		near_tell(e, fl); /* the ACKs that are due come before its answer */
	if (l->role == ROLE_NONE)
		engine_pass(e, fl, fl->side, f);
}

void near_unknown(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	struct flow *back = flow_partner(e, fl);
	int32_t ahead;

	if (l->state == LANE_FAULT) {
		COUNT(e, FAULT_DROPPED);
		return;
	}
	if (icrc_wrong(e, f))
		return;
	ahead = psn_diff(host_psn_of(f), host_epsn(e, l).psn);
	if (ahead == 0) {
		in_turn(e, fl, f);
		return;
	}
	/* the answer to one that passed; or too far away; or a repeat from before the lane */
	if ((back && back->lane.role == ROLE_NONE && back->lane.reason == REASON_OPCODE) ||
	    ahead >= UNKNOWN_NEAR || ahead < -UNKNOWN_NEAR ||
	    psn_before(psn_same_wire(host_psn_of(f)), l->start) ||
	    (psn_before(psn_same_wire(host_psn_of(f)), l->una.psn) && !psn_map_differs(e, l))) {
		owner_passed_unknown(e, l);
		engine_pass(e, fl, fl->side, f);
	} else if (l->state == LANE_OPENING) {
		duplicate_passes(fl, f);
		engine_pass(e, fl, fl->side, f);
	} else {
		/* it would overtake; ahead of its turn it shows that something was lost before it,
		 * and in custody it is not what the host has sent under this PSN */
		if (ahead < 0)
			COUNT(e, FOREIGN);
		else
			COUNT(e, GAPS);
	}
}
