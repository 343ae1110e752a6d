// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * An appliance that stands still for a while: its process is stopped, or the machine does not let
 * it run. What comes meanwhile waits in its rings and sockets as far as they go, the rest is lost,
 * or passes (world_port.c); then it is looked at, all at one moment. The other appliance takes it
 * for gone after a long silence, and sends SEEK: the answer gives the other one a new session, its
 * CONFIRM this one. Until then no reports pass: the one that took the other for gone sends none,
 * and those of the other have old keys (peer/handshake.c).
 */
#include "tests/lab/model/undone.h"
#include "tests/scenario/world_priv.h"

#define RING	2048u /* frames of a port, reports of a socket */
#define AWAY_NS 900000000ull
#define OLD_NS	1000000000ull /* frames that waited so long are dropped */
#define LINKS	6

/* How long a word takes from appliance @side to the other one. */
static uint64_t one_way(const struct world *w, int side)
{
	return wan_config(w->reports[side])->delay_ns + 1;
}

/* The appliance at the end of link @i, -1: a host is there. */
static int end_of(int i)
{
	return i < 2 ? i : i >= 4 ? !(i & 1) : -1;
}

bool world_still_holds(const struct world *w, int link)
{
	int side = end_of(link);

	return side >= 0 && w->still[side].since && !w->ports;
}

uint64_t world_still_next(const struct world *w)
{
	uint64_t t = UINT64_MAX;

	for (int s = 0; s < 2; s++) {
		bool deaf = w->still[!s].since;

		if (w->still[s].away && !deaf)
			t = min64(t, w->still[s].away);
		if (w->still[s].back && !deaf)
			t = min64(t, w->still[s].back);
		if (world_port_waits(w, s) && !world_late_waits(w, s))
			t = w->now;
	}
	return t;
}

void world_still_run(struct world *w)
{
	for (int s = 0; s < 2; s++) {
		struct still *x = &w->still[s];

		world_port_read(w, s);
		if (w->still[!s].since)
			continue; /* what it is to know it learns when it goes on */
		if (x->away && w->now >= x->away) {
			x->away = 0;
			x->told = true;
			world_peer(w, !s, PEER_DOWN);
		}
		if (!x->back || w->now < x->back)
			continue;
		if (x->told) {
			x->told = false;
			x->back = w->now + one_way(w, !s);
			world_peer(w, !s, PEER_UP);
		} else {
			x->back = 0;
			if (!w->still[!s].told)
				world_peer(w, s, PEER_AGAIN);
		}
	}
}

bool world_still_unheard(const struct world *w, int side)
{
	return w->still[side].back || w->still[!side].told;
}

bool world_still_drops(struct world *w, int link)
{
	int side = end_of(link);

	if (side < 0 || !w->still[side].full[link])
		return false;
	return w->still[side].was_long || ++w->still[side].took[link] > RING;
}

void world_still_seen(struct world *w, int link)
{
	if (end_of(link) >= 0)
		w->still[end_of(link)].full[link] = false;
}

bool world_stand_still(struct world *w, int side)
{
	struct still *s = &w->still[side];

	if (!w->engine[side] || s->since || s->back || (w->still[!side].since && !w->ports) ||
	    w->guest || w->cfg.reports_in_band)
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
	undone_cancel(); /* what changes now is right for a successor either way, and not noted */
	shards_stood_still(w->shards[side], s->since, w->now);
	s->was_long = w->now - s->since > OLD_NS;
	s->since = s->away = 0;
	s->went_on = w->now;
	for (int i = 0; i < LINKS; i++) {
		s->took[i] = 0;
		s->full[i] = !w->ports;
	}
	if (w->ports && s->was_long)
		world_queues_drop(w, side);
	if (s->told)
		s->back = w->now + one_way(w, side);
}
