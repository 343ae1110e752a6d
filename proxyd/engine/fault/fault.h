/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Custody is lost: put the queue pair into the error state, so that its application sees it. */
#ifndef LONGHAUL_ENGINE_FAULT_FAULT_H
#define LONGHAUL_ENGINE_FAULT_FAULT_H

#include "engine/core/core.h"

void lane_fault(struct engine *e, struct flow *fl, enum lane_reason why, uint8_t syndrome);
/** fault_broken - put the lanes of which an invariant does not hold (core/must.h) into FAULT. Only
 * to be called between two events, or between the steps of a tick. */
void fault_broken(struct engine *e);
void fault_orphan(struct engine *e, struct flow *fl);
void fault_moved(struct engine *e, struct flow *fl, enum engine_port port);
void fault_solo(struct engine *e, struct flow *fl, const struct frame *f);
void fault_request(struct engine *e, struct flow *fl, const struct frame *f);
void fault_answer(struct engine *e, struct flow *fl);
void fault_response(struct engine *e, struct flow *fl, const struct frame *f);
void fault_timer(struct engine *e, struct flow *fl);
/** fault_broken_promise - what was promised of the requests to the near host of @fl is lost with
 * somebody else's memory; it lacks @psn. Its queue pair is broken. */
void fault_broken_promise(struct engine *e, struct flow *fl, struct far_psn psn);

/* abandoned.c: promises of a peer that has lost its memory */

/** fault_abandoned - the request @f comes past the lane that has ended. True when it shows that
 * what the responder lacks was promised; it is dealt with then. */
bool fault_abandoned(struct engine *e, struct flow *fl, const struct frame *f);
/** fault_abandoned_again - it comes once more, after that. */
void fault_abandoned_again(struct engine *e, struct flow *fl, const struct frame *f);
/** fault_abandoned_ack - the responder of @req says @f: it has more. */
void fault_abandoned_ack(struct flow *req, const struct frame *f);

bool fault_pending(const struct lane *l);
void fault_far_request(struct flow *fl, const struct frame *f);
/** fault_unheard - a former engine held it, and its host has not asked since. */
bool fault_unheard(const struct lane *l);

#endif
