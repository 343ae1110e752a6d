// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * An appliance that stands still for a while: its process is stopped, or the machine does not let
 * it run. What comes meanwhile waits in its rings and sockets as far as they go, the rest is lost;
 * then it is looked at, all at one moment. The other appliance takes it for gone when it says
 * nothing for long, and hears of it again.
 */
#include "tests/scenario/world_priv.h"

#define RING	2048u /* frames of a port, reports of a socket */
#define AWAY_NS 900000000ull
#define LINKS	6

/* The appliance at the end of link @i, -1: a host is there. */
static int end_of(int i)
{
	return i < 2 ? i : i >= 4 ? !(i & 1) : -1;
}

bool world_still_holds(const struct world *w, int link)
{
	int side = end_of(link);

	return side >= 0 && w->still[side].since;
}

uint64_t world_still_next(const struct world *w)
{
	uint64_t t = UINT64_MAX;

	for (int s = 0; s < 2; s++)
		if (w->still[s].away)
			t = min64(t, w->still[s].away);
	return t;
}

void world_still_run(struct world *w)
{
	for (int s = 0; s < 2; s++)
		if (w->still[s].away && w->now >= w->still[s].away) {
			w->still[s].away = 0;
			w->still[s].told = true;
			world_peer(w, !s, PEER_DOWN);
		}
}

bool world_still_drops(struct world *w, int link)
{
	int side = end_of(link);

	if (side < 0 || !w->still[side].full[link])
		return false;
	return ++w->still[side].took[link] > RING;
}

void world_still_seen(struct world *w, int link)
{
	if (end_of(link) >= 0)
		w->still[end_of(link)].full[link] = false;
}

bool world_stand_still(struct world *w, int side)
{
	struct still *s = &w->still[side];

	if (!w->engine[side] || s->since || w->still[!side].since || w->guest ||
	    w->cfg.reports_in_band)
		return false;
	s->since = w->now;
	s->away = w->cfg.single ? 0 : w->now + AWAY_NS;
	s->told = false;
	return true;
}

void world_go_on(struct world *w, int side)
{
	struct still *s = &w->still[side];

	if (!s->since)
		return;
	engine_stood_still(w->engine[side], s->since, w->now);
	s->since = s->away = 0;
	for (int i = 0; i < LINKS; i++) {
		s->took[i] = 0;
		s->full[i] = true;
	}
	if (!s->told)
		return;
	world_peer(w, side, PEER_UP);
	world_peer(w, !side, PEER_UP);
}
