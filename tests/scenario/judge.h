/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How the end of a world is judged. */
#ifndef LONGHAUL_TESTS_SCENARIO_JUDGE_H
#define LONGHAUL_TESTS_SCENARIO_JUDGE_H

#include "tests/scenario/world.h"

/**
 * judge - what is wrong with @w, or NULL; an excuse is noted in @w.
 * @may_fail: by queue pair: its plan gives a reason to fail
 * @single:   the appliances have no peer
 * @done:     all work has ended
 */
const char *judge(struct world *w, const bool *may_fail, bool single, bool done);

/** judge_silent - host @s of @q got ACKs for all its requests, although they were not executed, and
 * neither host can see it. */
bool judge_silent(struct world_qp *q, int s);

/** judge_died - a host of @q gave up, other than since its packets missed both appliances. */
bool judge_died(const struct world_qp *q);

#endif
