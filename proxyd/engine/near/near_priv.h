/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files share that deal with requests that are not the next one (duplicate.c). */
#ifndef LONGHAUL_ENGINE_NEAR_NEAR_PRIV_H
#define LONGHAUL_ENGINE_NEAR_NEAR_PRIV_H

#include "engine/near/near.h"

/* A requester resends all that it has outstanding within this time. */
#define AGAIN_US  20000u
/* Further from the expected PSN than any requester's window: another incarnation of the QP. */
#define JUMP_PSNS 65536

/** near_far - whether @psn is so far from what its host is to send next. */
static inline bool near_far(struct engine *e, const struct lane *l, struct host_psn psn)
{
	int32_t ahead = psn_diff(psn, host_epsn(e, l).psn);

	return ahead >= JUMP_PSNS || ahead < -JUMP_PSNS - (int32_t)WINDOW_SPAN;
}

/* duplicate.c */
bool other_read(const struct flow *fl, const struct read_rec *r, const struct frame *f);

/* incarnation.c */
bool repeats_for_ever(struct engine *e, struct flow *fl, const struct frame *f,
		      enum lane_reason why);
void incarnation_gone(struct engine *e, struct flow *fl);
void incarnation_next(struct engine *e, struct flow *fl, const struct frame *f);
void incarnation_refuse(struct engine *e, struct flow *fl, const struct frame *f);

/* unseen.c */
/** unseen_told - the repeat @f tells of the oldest READ that is awaited. Returns true when the
 * responder knows more, to whom it is to be passed on. @moved: the responder knows other PSNs. */
bool unseen_told(struct engine *e, struct flow *fl, const struct frame *f, bool moved);

#endif
