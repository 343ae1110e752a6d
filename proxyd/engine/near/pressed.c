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

static uint32_t sixteenths_left(uint64_t most, uint64_t used)
{
	return used < most ? (uint32_t)((most - used) * 16 / most) : 0;
}

uint32_t share_left(const struct engine *e, const struct lane *l)
{
	return sixteenths_left(pool_share_most(e->pool, POOL_CUSTODY, l->held.bytes),
			       l->held.bytes);
}

uint32_t span_left(const struct engine *e, const struct lane *l)
{
	return sixteenths_left(e->cfg.lane_span, psn_past(l->epsn.psn, l->una.psn));
}

bool span_pressed(const struct engine *e, const struct lane *l)
{
	return psn_past(l->epsn.psn, l->una.psn) * 100ull > e->cfg.lane_span * (uint64_t)HIGH_SPAN;
}

bool window_fits(const struct engine *e, const struct lane *l)
{
	return pool_room(e->pool, POOL_CUSTODY) >=
	       WINDOWS_KEPT * ((uint64_t)l->near.window << WINDOW_SHIFT) * e->keepers;
}
