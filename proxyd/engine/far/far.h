/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Standing in for the requester, toward the responder. */
#ifndef LONGHAUL_ENGINE_FAR_FAR_H
#define LONGHAUL_ENGINE_FAR_FAR_H

#include "engine/core/core.h"

bool far_run(struct engine *e, struct flow *fl, uint32_t quantum);
/** far_response - @f, from port @from. True when it was passed on for no known request (SINGLE). */
bool far_response(struct engine *e, struct flow *fl, const struct frame *f, enum engine_port from);
/** far_congested - the responder has sent a congestion notification. */
void far_congested(struct engine *e, struct flow *fl);
void far_timeout(struct engine *e, struct flow *fl);
void far_rnr_over(struct engine *e, struct flow *fl);

#endif
