/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The invariants of a lane, checked where a packet enters a room or leaves it, in release builds,
 * too. They hold whatever hosts, peers or strangers send; what those may break is a counter's.
 *
 * A broken one is counted and logged, with file, line and two values, and its lane is put into
 * FAULT (fault/fault.c). Not at once: those who called the function that found it go on with
 * the lane. It happens before anything else does, when the engine is done with the frame, report or
 * timer, or with this lane's turn. Until then lane_must() is false, and whoever calls it does
 * without what it was about to do: a mark does not move, an ACK does not leave, a packet stays.
 */
#ifndef LONGHAUL_ENGINE_CORE_MUST_H
#define LONGHAUL_ENGINE_CORE_MUST_H

#include "engine/core/state.h"

bool lane_broken(struct engine *e, const struct lane *l, const struct engine_must *m)
	__attribute__((cold));

#ifdef LONGHAUL_INJECT
/* The tests' version, in which one that holds is taken for broken (tests/scenario/test_must.c). */
bool must_inject(const char *file, uint32_t line);
#define MUST_HOLDS(cond) ((cond) && !must_inject(__FILE__, __LINE__))
#else
#define MUST_HOLDS(cond) __builtin_expect(!!(cond), 1)
#endif

/** lane_reason_told - what the peer is told for @why: older ones do not know all. */
static inline enum lane_reason lane_reason_told(enum lane_reason why)
{
	return why == REASON_INVARIANT ? REASON_FAULT : why;
}

/** lane_must - @cond, which is an invariant of the lane @l. @x, @y: what shows why it broke. */
#define lane_must(e, l, cond, x, y)                                                                \
	(MUST_HOLDS(cond) ||                                                                       \
	 lane_broken(e, l, &(struct engine_must){__FILE__, #cond, __LINE__, x, y}))

static inline bool marks_in_order(const struct lane *l)
{
	return !psn_after(l->una.psn, l->nxt.psn) && !psn_after(l->nxt.psn, l->high) &&
	       !psn_after(l->high, l->epsn.psn) && !psn_after(l->epsn.psn, l->end);
}

/** lane_marks_must - una <= nxt <= high <= epsn <= end of @l. */
#define lane_marks_must(e, l)                                                                      \
	lane_must(e, l, marks_in_order(l), (uint64_t)(l)->una.psn.v << 32 | (l)->nxt.psn.v,        \
		  (uint64_t)(l)->epsn.psn.v << 32 | (l)->end.v)

#endif
