/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Invariants that are also checked in release builds: NDEBUG does not turn them off.
 *
 * must() is for what belongs to no lane (the pool, timers, lists of lanes): if that is wrong,
 * nothing can be trusted, so the process ends. The next one adopts the memory as it was before the
 * batch (store/undo.h). For a lane there is lane_must() (engine/core/must.h), which ends that lane
 * only.
 *
 * No packet and no report, even a forged one, may be able to break an invariant: what comes from
 * outside is checked, dropped and counted.
 */
#ifndef LONGHAUL_WIRE_MUST_H
#define LONGHAUL_WIRE_MUST_H

#undef NDEBUG
#include <assert.h>

/** must - @cond, or the process ends, with file, line and @cond on standard error. */
#define must(cond) assert(cond)

#endif
