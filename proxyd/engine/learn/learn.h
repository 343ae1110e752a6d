/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which queue pairs belong together, and what their responders' MSN is. */
#ifndef LONGHAUL_ENGINE_LEARN_LEARN_H
#define LONGHAUL_ENGINE_LEARN_LEARN_H

#include "engine/core/core.h"

void learn_frame(struct engine *e, struct flow *fl, struct frame *f);
void learn_cm(struct engine *e, enum engine_port from, const struct frame *f);
void learn_request(struct engine *e, struct flow *fl, const struct frame *f);
void learn_response(struct engine *e, struct flow *fl, const struct frame *f);

#endif
