// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "engine/core/core.h"

/* The invariant @m of the lane @l does not hold. Only the first of a lane is told. Always false. */
bool lane_broken(struct engine *e, const struct lane *l, const struct engine_must *m)
{
	uint64_t at = (uint64_t)((const uint8_t *)l - (const uint8_t *)e->flows);
	struct flow *fl = flow_ref(e, (uint32_t)(at / sizeof(struct flow)));

	if (fl->lane.broken)
		return false;
	fl->lane.broken = true;
	e->broken |= fl->lane.role != ROLE_NONE && fl->lane.state != LANE_FAULT;
	engine_wake_at(e, e->now);
	COUNT(e, INVARIANTS);
	engine_event_must(e, fl, m);
	return false;
}
