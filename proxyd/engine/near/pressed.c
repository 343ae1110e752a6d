// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Whether memory or PSNs are short, so that a requester is held back (ack_tx.c, ease.c, room.c). */
#include "engine/near/near.h"

/* Above this part, in percent, of the lane's share of memory the frontier waits for the WAN. */
#define HIGH_WATER   70u
/* Above this part of that share, and of the span, ACKs are withheld. */
#define FULL_WATER   85u
#define HIGH_SPAN    75u
/* Room is kept for so many windows of each host: a refused packet costs its host a retry. */
#define WINDOWS_KEPT 2u

static bool share_filled(const struct engine *e, const struct lane *l, uint32_t percent)
{
	return l->held.bytes * 100 >
	       pool_share_most(e->pool, POOL_CUSTODY, l->held.bytes) * percent;
}

bool pool_full(const struct engine *e, const struct lane *l)
{
	return share_filled(e, l, FULL_WATER);
}

bool pool_pressed(const struct engine *e, const struct lane *l)
{
	return share_filled(e, l, HIGH_WATER);
}

uint32_t share_left(const struct engine *e, const struct lane *l)
{
	uint64_t most = pool_share_most(e->pool, POOL_CUSTODY, l->held.bytes);

	return l->held.bytes < most ? (uint32_t)((most - l->held.bytes) * 16 / most) : 0;
}

uint32_t span_left(const struct engine *e, const struct lane *l)
{
	uint64_t most = e->cfg.lane_span, used = psn_past(l->epsn.psn, l->una.psn);

	return used < most ? (uint32_t)((most - used) * 16 / most) : 0;
}

bool span_pressed(const struct engine *e, const struct lane *l)
{
	uint64_t used = psn_past(l->epsn.psn, l->una.psn);

	return used * 100 > (uint64_t)e->cfg.lane_span * HIGH_SPAN;
}

bool window_fits(const struct engine *e, const struct lane *l)
{
	return pool_room(e->pool, POOL_CUSTODY) >=
	       WINDOWS_KEPT * ((uint64_t)l->near.window << WINDOW_SHIFT) * e->keepers;
}
