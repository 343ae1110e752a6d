// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Responses to requests from before the handover: they are the host's own.
 */
#include "engine/fault/fault.h"
#include "engine/owner/owner.h"
#include "engine/near/near.h"
#include "engine/prefetch/prefetch.h"

/* A response to a request from before the handover passes to the requester; learn from it. */
void near_old_response(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	uint8_t s = f->aeth ? frame_aeth_syndrome(f) : 0;
	/* host and wire number alike there, as checked first */
	struct wire_psn next = psn_add(wire_psn_of(f), 1);
	struct wire_mark m = {.psn = wire_psn_of(f), .msn = f->aeth ? frame_aeth_msn(f) : 0};

	if (psn_map_strange(e, l))
		return; /* it bears numbers that the host does not know */
	engine_pass(e, fl, other_port(fl->side), f);
	if (lane_keeps(l) && f->opcode != OP_ACK)
		near_resp_repeated(e, fl, psn_same_host(wire_psn_of(f)));
	if (!lane_keeps(l) || f->opcode != OP_ACK || !icrc_ok(f))
		return;
	if (aeth_is_ack(s) && !psn_before(next, l->start)) {
		/* what the host cannot have sent nobody has acknowledged */
		if (psn_after(next, lane_sent_before(l)))
			return;
		psn_raise(&l->near.told, psn_same_host(next));
		l->start_acked = true;
		flow_headers(e, fl, f);
		ack_list(e, fl);
	} else if (s == AETH_NAK_SEQ && !l->start_acked && psn_before(wire_psn_of(f), l->start) &&
		   psn_diff(l->start, wire_psn_of(f)) < HOST_WINDOW) {
		uint8_t credit = l->credit;

		lane_close(e, fl, REASON_EARLIER_LOSS, true);
		flow_open_at(fl, e->now);
		mark_una(l, &m);
		l->una_sure = true;
		l->credit = credit;
	} else if (l->start_acked && psn_before(wire_psn_of(f), l->una.psn)) {
		owner_answered(e, fl, f);
	}
}
