// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * No seal, or a wrong one: packets miss one of the two appliances (link/seal_rx.c).
 *
 * Packets may have passed the peer on their way just before it took the lane over, so a native
 * frame in the first second shows nothing. Later ones are counted, and where nothing but natives
 * comes for BYPASS_MS, the hosts' packets miss the peer: that is told (EVENT_BYPASS), and a lane of
 * one numbering is let go as soon as it owes nothing, so that the connection goes on as without us.
 * Whoever forges such frames costs a connection its speed, and no byte.
 *
 * row: ENG-19
 */
#include "engine/core/core.h"

/* A packet is on its way for less than this. */
#define BEGINS_NS NSEC_PER_SEC
#define BYPASS_MS 200u

void seal_bypass(struct engine *e, struct flow *fl, enum path_miss how, bool let_go)
{
	struct lane *l = &fl->lane;

	if (!l->bypassed) {
		l->bypassed = how;
		engine_event(e, EVENT_BYPASS, fl, 0, 0);
	}
	if (let_go && l->role == ROLE_OPENER && !l->renumbered && !psn_map_differs(e, l))
		lane_drain(e, fl, REASON_BYPASS);
}

/* A frame came that is no packet which the peer has sent for the lane of @fl. */
static void native(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	if (e->now - l->opened < BEGINS_NS) {
		COUNT(e, DUP_STREAM);
		return;
	}
	COUNT(e, UNSEALED);
	if (!l->seal.native_ms)
		l->seal.native_ms = some_ms(e);
	else if (ms_of(e->now) - l->seal.native_ms >= BYPASS_MS + 4 * l->rtt.srtt_us / 1000)
		seal_bypass(e, fl, MISS_FROM, true);
	/* an opener that has no such lane any more says so again */
	if (l->role == ROLE_ACCEPTOR)
		progress_due(e, fl, false);
}

bool seal_came_native(const struct frame *f)
{
	return icrc_compute(f) == (get_le32(f->data + f->icrc) ^ f->seal);
}

void seal_failed(struct engine *e, struct flow *fl, const struct frame *f)
{
	if (seal_came_native(f)) {
		native(e, fl);
		return;
	}
	COUNT(e, SEAL_WRONG);
	engine_pass_as_came(e, PORT_WAN, f);
}

void seal_right(struct lane *l)
{
	l->seal.native_ms = 0;
	if (l->bypassed == MISS_FROM || l->bypassed == MISS_PAST)
		l->bypassed = MISS_NONE;
}
