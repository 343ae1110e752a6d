/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whose queue pair number it is: owner.c has the rules. */
#ifndef LONGHAUL_ENGINE_OWNER_OWNER_H
#define LONGHAUL_ENGINE_OWNER_OWNER_H

#include "engine/core/core.h"

/* owner.c */
void lane_doubt(struct engine *e, struct flow *fl);
void lane_passed(struct engine *e, struct flow *fl, uint32_t psn);
void lane_unpassed(struct lane *l);
void lane_passed_unknown(struct engine *e, struct lane *l);
bool lane_strange_ack(const struct engine *e, const struct lane *l, const struct frame *f);
void lane_sure(struct engine *e, struct flow *fl);
bool lane_replaced(struct engine *e, struct flow *fl);
void lane_answered(struct engine *e, struct flow *fl, const struct frame *f);
void lane_counts(struct engine *e, struct flow *fl, uint32_t msn);

/* asked.c */
bool lane_asked(const struct engine *e, const struct lane *l);
bool lane_repeats(const struct engine *e, const struct lane *l, uint32_t psn);
bool lane_owes(struct engine *e, const struct lane *l);
bool lane_stalled(const struct engine *e, const struct lane *l);
bool lane_holds_other(struct engine *e, const struct lane *l, uint32_t psn);
bool lane_may_await(struct engine *e, const struct lane *l, uint32_t psn);

/* notes.c: which queue pairs bear the same PSNs */
/** learn_passed - a repeat of the held @fl passes to the responder: who is answered? */
void learn_passed(struct engine *e, struct flow *fl, uint32_t psn);
/** learn_asker - the unpaired flow that an ACK of @psn in the paired flow @ack answers, or NULL. */
struct flow *learn_asker(struct engine *e, const struct flow *ack, uint32_t psn);

/* answers.c */
/** learn_no_pair - @fl, whose lane has ended, and its partner are no pair: another one answers. */
void learn_no_pair(struct engine *e, struct flow *fl);
/**
 * learn_answers_other - the response @f, which nobody on the lane of @fl waits for, is another
 * responder's: one that the requester has now. It has passed then.
 */
bool learn_answers_other(struct engine *e, struct flow *fl, const struct frame *f);

#endif
