// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Ports that are overloaded for a time, as a machine's are whose rings are too short for what
 * comes: nothing more can be sent, frames come late and many at once, or, where a ring has gone
 * wrong, an earlier frame comes again in the place of another.
 */
#include "tests/scenario/world_priv.h"

#include <stdlib.h>
#include <string.h>

int world_overload_init(struct world *w)
{
	if (!(w->cfg.actors.overload & (OVERLOAD_TX | OVERLOAD_BURST | OVERLOAD_STALE)))
		return 0;
	w->overload = calloc(1, sizeof(*w->overload));
	if (!w->overload)
		return -1;
	for (int i = 0; i < 6; i++) {
		w->overload->last[i] = malloc(FRAME_MAX);
		if (!w->overload->last[i])
			return -1;
	}
	return 0;
}

void world_overload_exit(struct world *w)
{
	for (int i = 0; w->overload && i < 6; i++)
		free(w->overload->last[i]);
	free(w->overload);
}

void world_overload_run(struct world *w)
{
	const struct actors_config *c = &w->cfg.actors;
	struct overload *o = w->overload;
	uint32_t kind, link;
	uint64_t until, *end;

	if (!o || !prng_hit(&w->rng, 1.0 / (1 + c->overload_every)))
		return;
	do
		kind = 1u << prng_below(&w->rng, 3);
	while (!(c->overload & kind));
	link = prng_below(&w->rng, 6);
	until = w->now + 1 + prng_below(&w->rng, 2 * c->overload_us) * 1000ull;
	end = kind == OVERLOAD_TX ? &o->full_until[link & 1][link >> 1 & 1] : &o->held_until[link];
	/* that stands still for ever nothing gets past */
	if (*end && w->now < *end + c->overload_us * 1000ull)
		return;
	*end = until;
	if (kind == OVERLOAD_STALE)
		*(c->overload & OVERLOAD_FULL ? &o->spoils[link] : &o->stale[link]) = true;
}

bool world_overload_holds(struct world *w, int link, uint64_t first)
{
	struct overload *o = w->overload;

	if (!o)
		return false;
	if (w->now < o->held_until[link])
		return true;
	/* a ring goes wrong when it was full: where nothing came it is as it was */
	if (o->spoils[link] && first < o->held_until[link])
		o->stale[link] = true;
	o->spoils[link] = false;
	return false;
}

uint64_t world_overload_next(const struct world *w)
{
	const struct overload *o = w->overload;
	uint64_t t = UINT64_MAX;

	for (int s = 0; s < 2; s++)
		for (int p = 0; p < 2; p++)
			if (o->full_until[s][p] > w->now)
				t = min64(t, o->full_until[s][p]);
	return t;
}

void world_overload_forget(struct world *w)
{
	for (int i = 0; w->overload && i < 6; i++)
		w->overload->last_len[i] = 0;
}

const uint8_t *world_overload_swap(struct world *w, int link, const uint8_t *data, uint32_t *len)
{
	struct overload *o = w->overload;
	uint32_t n = *len;

	/* for some frames after the burst, then the ring is right again */
	if (o->stale[link] && o->last_len[link] && prng_hit(&w->rng, 0.5)) {
		*len = o->last_len[link];
		o->stale[link] = prng_hit(&w->rng, 0.8);
		return o->last[link];
	}
	o->last_len[link] = 0;
	if (n <= FRAME_MAX) {
		memcpy(o->last[link], data, n);
		o->last_len[link] = n;
	}
	return data;
}
