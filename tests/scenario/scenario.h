/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the scenario tests share: a standard QP pair, and one way to run and judge a world. */
#ifndef SCENARIO_SCENARIO_H
#define SCENARIO_SCENARIO_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/scenario/world.h"

#define MS	       1000000ull
#define SEC	       1000000000ull
#define OPS_WRITE_SEND (1u << RC_SEND | 1u << RC_SEND_IMM | 1u << RC_WRITE | 1u << RC_WRITE_IMM)
#define OPS_ALL	       ((1u << RC_OPS) - 1)

/** scenario_qp - QP number @n of host 0 with everything that can be checked switched on. */
void scenario_qp(struct rc_qp_config *c, uint32_t n, uint32_t mtu, enum rc_personality p);

/** scenario_finish - run to the end (at most @limit ns), then everything must be complete and
 * right. On
 *  failure the seed and the world are printed. */
void scenario_finish(struct world *w, uint64_t limit);

/** scenario_safe - as scenario_finish(), but queue pairs may have failed: nothing that was executed
 * or
 *  told may be wrong. */
void scenario_safe(struct world *w, uint64_t limit);

/** scenario_held - the lane of @q's requests from host @side is in custody there. */
void scenario_held(struct world *w, const struct world_qp *q, int side);

#endif
