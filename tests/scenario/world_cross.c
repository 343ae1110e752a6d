// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Others on the WAN, who send at their own rate and never slow down: for a part of each second,
 * in both directions. They fill the link's queue as our packets do, and are lost as these are.
 */
#include "tests/scenario/world_priv.h"

#include "wire/bytes.h"

#define CROSS_LEN 1514u
#define SECOND	  1000000000ull
/* Then they are done, so that a world that waits for much is soon told from one that waits for
 * ever. */
#define CROSS_FOR (20 * SECOND)

static bool sends(const struct actors_config *a, uint64_t at)
{
	return at % SECOND < a->cross_ms * MS;
}

uint64_t world_cross_next(const struct world *w)
{
	return w->cfg.actors.cross_bps && w->cross_at < CROSS_FOR ? w->cross_at : UINT64_MAX;
}

void world_cross_run(struct world *w)
{
	const struct actors_config *a = &w->cfg.actors;
	uint8_t data[CROSS_LEN] = {0};

	put_be16(data + 12, WORLD_TYPE_OTHER);
	while (world_cross_next(w) <= w->now) {
		for (int from = 0; from < 2 && sends(a, w->cross_at); from++)
			world_link_send(w, WORLD_WAN(from), data, CROSS_LEN);
		if (sends(a, w->cross_at))
			w->cross_at += CROSS_LEN * 8 * SECOND / a->cross_bps;
		else
			w->cross_at += SECOND - w->cross_at % SECOND;
	}
}
