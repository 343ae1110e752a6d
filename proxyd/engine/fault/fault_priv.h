/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the three remedies share: told.c, broken.c, over.c, in the order in which they are used. */
#ifndef LONGHAUL_ENGINE_FAULT_FAULT_PRIV_H
#define LONGHAUL_ENGINE_FAULT_FAULT_PRIV_H

#include "engine/fault/fault.h"

/* A host that is not known gets so long to ask twice: what comes again is its oldest request. */
#define ASK_TWICE_NS (2 * NSEC_PER_SEC)
/* So long what was told may take effect before the QP is broken by force. */
#define TELL_NS	     (500 * NSEC_PER_MSEC)
/* Packets on their way when the QP failed have arrived. Later ones are another owner's. */
#define BROKEN_NS    (1 * NSEC_PER_SEC)

enum fault_stage {
	STAGE_TELL,
	STAGE_BREAK,
	STAGE_OVER,
};

static inline void fault_arm(struct engine *e, struct flow *fl, uint64_t after)
{
	timer_arm(e, fl, TIMER_AUX, e->now + after);
}

/* told.c */
/** fault_untold - the host of the lane is about to be told. */
void fault_untold(struct engine *e, const struct flow *fl);
/** tell_timer - the host was told, or is to ask. True when it is time for the second remedy. */
bool tell_timer(struct engine *e, struct flow *fl);

/* broken.c */
/** break_begin - the first probe of the first round. */
void break_begin(struct engine *e, struct flow *fl);
/** break_again - the host lives on: another round. */
void break_again(struct engine *e, struct flow *fl);
/** break_timer - the last probe has had its time. */
void break_timer(struct engine *e, struct flow *fl);

/* over.c */
/** over_begin - the host has failed, answers no more, or fails by no means. */
void over_begin(struct engine *e, struct flow *fl);
/** over_timer - it was told all, or is silent. True when it lives on, for another round. */
bool over_timer(struct engine *e, struct flow *fl);
/** fault_lost - the host cannot be asked whether it has given the lane up. */
void fault_lost(struct engine *e, struct flow *fl);
/** fault_lives - the queue pair has said something. */
void fault_lives(struct engine *e, struct flow *fl);
/** over_others - the numbers have other owners. */
void over_others(struct engine *e, struct flow *fl);

#endif
