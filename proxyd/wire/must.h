/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What must hold, in release builds, too: NDEBUG does not turn it off.
 *
 * must() is for what belongs to no lane (the pool, timers, lists of lanes): where that is wrong
 * nothing can be trusted, so the process ends. The next one adopts the memory as it was before the
 * batch (store/undo.h). For what belongs to a lane there is lane_must() (engine/core/must.h), which
 * ends that lane only.
 *
 * A packet or a report, whoever made it, must not be able to break one: what may come from outside
 * is judged, dropped and counted.
 */
#ifndef LONGHAUL_WIRE_MUST_H
#define LONGHAUL_WIRE_MUST_H

#undef NDEBUG
#include <assert.h>

/** must - @cond, or the process ends, with file, line and @cond on standard error. */
#define must(cond) assert(cond)

#endif
