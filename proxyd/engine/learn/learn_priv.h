/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of learning share. */
#ifndef LONGHAUL_ENGINE_LEARN_LEARN_PRIV_H
#define LONGHAUL_ENGINE_LEARN_LEARN_PRIV_H

#include "engine/learn/learn.h"
#include "engine/owner/notes.h"

/* match.c */
/* match_foreign - the response @psn in @ack is not to what the partner of @ack has asked. */
bool match_foreign(struct engine *e, struct flow *ack, uint32_t psn);
/* match_ack - an ACK in @ack, unpaired or foreign, with @msn. Returns true if it is known whose
 * request it answers. */
bool match_ack(struct engine *e, struct flow *ack, uint32_t psn, uint32_t msn);
void match_note_nak(struct engine *e, const struct flow *ack, uint32_t psn, uint32_t msn);
void match_went_back(struct engine *e, struct flow *fl, const struct frame *f);
void match_immediate(struct engine *e, struct flow *fl, const struct frame *f);

/* echo.c */
/* echo_heard - an ACK of @psn in @ack. */
void echo_heard(struct engine *e, struct flow *ack, uint32_t psn);

/* No packet is remembered whose ACK would tell the MSN. */
static inline void probes_clear(struct lane *l)
{
	for (int i = 0; i < LANE_PROBES; i++)
		l->learn.probe[i].psn = WIRE_NONE;
}

/* Copies of what passed may be under way (echo.c): only what passes from here on tells the MSN. */
static inline void probes_forget(struct lane *l)
{
	l->calibrated = false;
	l->learn.offset_run = 0;
	probes_clear(l);
}

/* Everything below @psn is truly acknowledged; @sure: @msn is the count of messages just there. */
static inline void una_heard(struct lane *l, struct wire_psn psn, uint32_t msn, bool sure)
{
	mark_una(l, &(struct wire_mark){.psn = psn, .msn = msn});
	l->begins = false;
	l->una_sure = sure;
}

#endif
