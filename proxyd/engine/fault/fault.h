/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Custody is lost: put the queue pair into the error state, so that its application sees it. */
#ifndef LONGHAUL_ENGINE_FAULT_FAULT_H
#define LONGHAUL_ENGINE_FAULT_FAULT_H

#include "engine/core/core.h"

void lane_fault(struct engine *e, struct flow *fl, enum lane_reason why, uint8_t syndrome);
void fault_orphan(struct engine *e, struct flow *fl);
void fault_moved(struct engine *e, struct flow *fl, enum engine_port port);
void fault_solo(struct engine *e, struct flow *fl, const struct frame *f);
void fault_request(struct engine *e, struct flow *fl, const struct frame *f);
void fault_answer(struct engine *e, struct flow *fl);
void fault_response(struct engine *e, struct flow *fl, const struct frame *f);
void fault_timer(struct engine *e, struct flow *fl);
bool fault_pending(const struct lane *l);

#endif
