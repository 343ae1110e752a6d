// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * True answers to ATOMICs whose earlier content may be thrown away (near/atomic.c answers them).
 */
#include "engine/reads/reads.h"

bool atomic_is(uint8_t opcode)
{
	return opcode == OP_CMP_SWAP || opcode == OP_FETCH_ADD;
}

/* Whether ATOMICs of this lane are answered here. */
bool atomic_discards(const struct lane *l)
{
	return l->atomic == ATOMIC_DISCARD && l->policy == POLICY_EARLY && lane_keeps(l) &&
	       (l->state == LANE_HELD || l->state == LANE_DRAIN);
}

/* The true response as the host may see it: without the earlier content. That is taken away where
 * it is given to the host and not before, for it is sealed as the responder said it (core/seal.c).
 * But masked ATOMICs want theirs, and an answer does not say its request. @out: FRAME_MAX bytes. */
const struct frame *atomic_blank(const struct lane *l, const struct frame *f, struct frame *g,
				 uint8_t *out)
{
	static const uint8_t zero[8];

	if (f->opcode != OP_ATOMIC_ACK || !atomic_discards(l) || l->near.masked)
		return f;
	*g = *f;
	memcpy(out, f->data, f->len);
	g->data = out;
	icrc_patch(out, g, f->atomicack, sizeof(zero), zero);
	return g;
}

/* Whether @f, which nothing waits for, ends here: the host has it, and has not asked again. */
bool atomic_dropped(struct engine *e, const struct lane *l, const struct frame *f)
{
	if (f->opcode != OP_ATOMIC_ACK || !atomic_discards(l))
		return false;
	if (psn_known(l->keeper.reasked_psn) &&
	    psn_in(psn_same_host(wire_psn_of(f)), l->keeper.reasked_psn, l->keeper.reasked_end))
		return false;
	COUNT(e, ATOMICS_DROPPED);
	return true;
}
