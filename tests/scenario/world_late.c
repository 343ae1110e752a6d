// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Appliances that read reports behind frames that were sent after them, and the reverse. Reports
 * are datagrams of a socket, and frames wait in the rings of AF_XDP; a network card that moderates
 * its interrupts, a processor that is busy and two ways on the WAN delay one and not the other. So
 * what comes when nothing waits is read at once or some time later, and with it all that has come
 * by then. The engine is not told of it: what waits for an interrupt, or on the way, no daemon
 * sees.
 *
 * Besides, a frame that an OPEN may explain waits here as in the daemon (daemon/ask.h): until the
 * reports that come meanwhile explain it, or the time is over. The appliance does nothing else.
 */
#include "tests/scenario/world_priv.h"

#include <stdlib.h>
#include <string.h>

struct late {
	struct prng rng;
	struct late_hold {
		bool drawn;
		uint64_t until;
	} hold[2][LATE_WHATS];
	struct late_wait {
		uint32_t len; /* 0: no frame waits */
		uint64_t over;
		enum engine_port port;
		uint8_t frame[WAN_FRAME_MAX];
	} wait[2];
};

int world_late_init(struct world *w)
{
	if (!w->cfg.actors.late)
		return 0;
	w->late = calloc(1, sizeof(*w->late));
	if (!w->late)
		return -1;
	prng_init(&w->late->rng, splitmix64(w->cfg.seed ^ 0x1a7e));
	return 0;
}

void world_late_exit(struct world *w)
{
	free(w->late);
	w->late = NULL;
}

/* ---- what is read late ---- */

static bool may_be_late(const struct world *w, int side, enum late_what what)
{
	uint32_t late = w->cfg.actors.late;

	if (!w->late || !w->engine[side])
		return false;
	if (what == LATE_READS_FRAMES)
		return late & LATE_FRAMES(side);
	return late & LATE_REPORTS(side) && !(late & LATE_OPEN) == (what == LATE_READS_REPORTS);
}

bool world_late_holds(struct world *w, int side, enum late_what what, uint64_t first)
{
	struct late_hold *h;

	if (!may_be_late(w, side, what))
		return false;
	h = &w->late->hold[side][what];
	if (w->now < h->until)
		return true;
	if (first > w->now)
		return false;
	if (!h->drawn && prng_hit(&w->late->rng, 0.5))
		h->until = w->now + prng_below(&w->late->rng, w->cfg.actors.late_us * 1000 + 1);
	h->drawn = w->now < h->until;
	w->late_reads += h->drawn;
	return h->drawn;
}

uint64_t world_late_due(const struct world *w, int side, enum late_what what, uint64_t first)
{
	if (!may_be_late(w, side, what) || first > w->late->hold[side][what].until)
		return first;
	return w->late->hold[side][what].until;
}

/* ---- what waits for an OPEN ---- */

/* Whether it waits no longer. */
static bool tried(struct world *w, int side, enum engine_port port, const uint8_t *data,
		  uint32_t len)
{
	bool done = world_rx_ask(w, side, port, data, len);

	if (!done && ask_over(&w->ask[side], w->now))
		done = world_rx_ask(w, side, port, data, len);
	return done;
}

void world_late_rx(struct world *w, int side, enum engine_port port, const uint8_t *data,
		   uint32_t len)
{
	struct late_wait *x;

	if (!w->late) {
		world_rx(w, side, port, data, len);
		return;
	}
	x = &w->late->wait[side];
	if (tried(w, side, port, data, len))
		return;
	w->late_waits++;
	memcpy(x->frame, data, len);
	x->port = port;
	x->len = len;
	x->over = w->ask[side].until + 1;
}

bool world_late_waits(const struct world *w, int side)
{
	return w->late && w->late->wait[side].len;
}

void world_late_run(struct world *w)
{
	for (int s = 0; s < 2; s++) {
		struct late_wait *x;

		if (!world_late_waits(w, s) || w->still[s].since)
			continue;
		x = &w->late->wait[s];
		if (!tried(w, s, x->port, x->frame, x->len))
			continue;
		w->late_found += w->now < x->over;
		x->len = 0;
	}
}

uint64_t world_late_next(const struct world *w)
{
	uint64_t t = UINT64_MAX;

	for (int s = 0; s < 2; s++)
		if (world_late_waits(w, s) && !w->still[s].since)
			t = min64(t, w->late->wait[s].over);
	return t;
}

void world_late_drop(struct world *w, int side)
{
	if (w->late)
		w->late->wait[side].len = 0;
	w->ask[side] = (struct ask){0};
}
