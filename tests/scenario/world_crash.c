// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Appliances that are killed at any instruction, and whose memory the next one adopts.
 *
 * A kill is a timer's signal amid a call of an engine, one of so many calls. siglongjmp() leaves
 * the call, and the engine's file then has what a killed process would leave: every store up to
 * that instruction and none after it. The output of the batch is dropped, like a daemon's output
 * that has not been handed to the kernel. The next engine maps the file and goes on; frames of the
 * batch are lost with it. All invariants of a world without kills hold, and no lane may end in
 * FAULT by a kill. The instant of a kill is not repeatable.
 *
 * Besides, for one batch in WATCH_EVERY it is checked that an undo would restore every byte that is
 * referred to (tests/lab/model/undone.h).
 */
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "engine/core/state.h"
#include "store/pool_priv.h"
#include "tests/lab/model/undone.h"
#include "tests/scenario/world_priv.h"

#define WATCH_EVERY 50u
#define KILL_US	    300 /* a kill that is due comes within this */

uint64_t world_crash_calls, world_kills, world_adopted, world_faulted, world_watched;

static sigjmp_buf killed;
static volatile sig_atomic_t armed, busy;

/* ---- what a batch says ---- */

enum said { SAID_TX, SAID_REPORT, SAID_EVENT };

struct said_head {
	uint32_t kind, port, len;
};

struct crash_side {
	int fd;
	uint8_t *said;
	size_t len, room;
	uint8_t *after; /* a copy of the arena, in which the batch is undone */
	size_t size;	/* of it */
};

struct crash {
	struct crash_side side[2];
	uint64_t batches;
};

static void say(struct crash_side *c, enum said kind, uint32_t port, const void *data, uint32_t len)
{
	struct said_head h = {kind, port, len};

	busy = 1;
	if (c->len + sizeof(h) + len > c->room) {
		c->room = 2 * (c->len + sizeof(h) + len);
		c->said = realloc(c->said, c->room);
	}
	memcpy(c->said + c->len, &h, sizeof(h));
	memcpy(c->said + c->len + sizeof(h), data, len);
	c->len += sizeof(h) + len;
	busy = 0;
}

bool world_crash_tx(struct world *w, int side, uint32_t port, const uint8_t *data, uint32_t len,
		    uint32_t seal)
{
	uint8_t frame[WAN_FRAME_MAX + 4];

	if (w->crash) {
		memcpy(frame, data, len);
		put_le32(frame + len, seal);
		say(&w->crash->side[side], SAID_TX, port, frame, len + 4);
	}
	return w->crash;
}

bool world_crash_report(struct world *w, int side, unsigned int peer, const struct report *r)
{
	if (w->crash)
		say(&w->crash->side[side], SAID_REPORT, peer, r, sizeof(*r));
	return w->crash;
}

bool world_crash_event(struct world *w, int side, const struct engine_event *ev)
{
	if (w->crash)
		say(&w->crash->side[side], SAID_EVENT, 0, ev, sizeof(*ev));
	return w->crash;
}

/* The batch has happened: what it says leaves. */
static void leave(struct world *w, int side)
{
	struct crash_side *c = &w->crash->side[side];
	struct crash *crash = w->crash;
	struct said_head h;

	w->crash = NULL; /* straight through the sinks now */
	for (size_t at = 0; at < c->len; at += sizeof(h) + h.len) {
		memcpy(&h, c->said + at, sizeof(h));
		world_said(w, side, (int)h.kind, h.port, c->said + at + sizeof(h), h.len);
	}
	w->crash = crash;
	c->len = 0;
}

/* ---- kills ---- */

/* Calls of engines until the next one may be killed, as many on the average as was wanted: however
 * busy the machine is, the world goes on meanwhile. */
static uint64_t calls;

static void rearm(void)
{
	struct itimerval t = {.it_value.tv_usec = 1 + rand() % KILL_US};

	setitimer(ITIMER_REAL, &t, NULL);
}

static void on_alarm(int signo)
{
	(void)signo;
	if (armed && !busy)
		siglongjmp(killed, 1);
	rearm();
}

static void next_kill(void)
{
	calls = 1 + (uint64_t)rand() % (2 * world_crash_calls);
}

/* Lanes of @n flows in state @in, or (@in LANE_STATES) held ones. */
static uint32_t lanes(const struct flow *flows, uint32_t n, uint8_t in)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < n; i++)
		count += flows[i].used && flows[i].lane.role != ROLE_NONE &&
			 (in == LANE_STATES || flows[i].lane.state == in);
	return count;
}

/* What is in use of the arena; the rest of @to is not looked at. */
static void copy(uint8_t *to, const struct engine *e)
{
	const uint8_t *base = e->arena.base;
	size_t log = (size_t)((uint8_t *)e->undo - base) + sizeof(struct undo);
	size_t data = (size_t)((uint8_t *)e->pool - base) + e->pool->data;

	memcpy(to, base, log + e->undo->used);
	log += e->undo->size;
	memcpy(to + log, base + log, data + (size_t)e->pool->fresh * POOL_BLOCK - log);
}

/* Undo the batch of @e in its copy @after. */
static bool undone(struct crash_side *c, const struct engine *e)
{
	if (!c->after) {
		c->size = e->arena.size;
		c->after = mmap(NULL, c->size, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	}
	if (c->after == MAP_FAILED)
		return false;
	copy(c->after, e);
	return undo_apply((struct undo *)(c->after + ((uint8_t *)e->undo - e->arena.base)));
}

static void adopt(struct world *w, int side)
{
	struct crash_side *c = &w->crash->side[side];
	struct engine *e = w->engine[side];
	uint32_t faulted = 0;
	const char *why;

	undone_cancel(); /* of either engine */
	if (undone(c, e))
		faulted = lanes((void *)(c->after + e->at.flows), e->nflows, LANE_FAULT);
	c->len = 0;
	world_late_drop(w, side);
	world_kills++;
	engine_destroy(e);
	e = w->engine[side] = world_adopt(w, side, c->fd, &why);
	if (!e) {
		w->violation = why;
		return;
	}
	e->stood = 0; /* nothing has passed meanwhile, so PSNs tell pairs as before */
	world_adopted += lanes(e->flows, e->nflows, LANE_STATES);
	/* by the adoption itself; what the worlds' own events break was broken before */
	world_faulted += lanes(e->flows, e->nflows, LANE_FAULT) - faulted;
}

/* What comes to an engine: a frame, a report of its peer, or (both NULL) time. */
struct arrival {
	enum engine_port port;
	const uint8_t *data;
	uint32_t len;
	unsigned int peer;
	const struct report *report;
	struct ask *ask; /* the frame may wait */
	bool waits;	 /* and does */
};

static void arrive(struct world *w, int side, struct arrival *a)
{
	uint8_t frame[WAN_FRAME_MAX];

	if (a->data) {
		memcpy(frame, a->data, a->len); /* should it be killed, it comes once more */
		if (a->ask)
			a->waits = !ask_rx(a->ask, w->engine[side], a->port, frame, a->len, w->now);
		else
			engine_rx(w->engine[side], a->port, frame, a->len, w->now);
	} else if (a->report)
		engine_rx_report(w->engine[side], a->peer, a->report, w->now);
	else
		engine_tick(w->engine[side], w->now);
}

/* False: the engine was killed amid it, and another one is there. */
static bool arrive_armed(struct world *w, int side, struct arrival *a)
{
	if (calls && --calls == 0)
		rearm();
	if (calls) {
		arrive(w, side, a);
		return true;
	}
	if (sigsetjmp(killed, 0)) {
		armed = 0;
		adopt(w, side);
		next_kill();
		return false;
	}
	armed = 1;
	arrive(w, side, a);
	armed = 0;
	return true;
}

void world_rx(struct world *w, int side, enum engine_port port, const uint8_t *data, uint32_t len)
{
	struct arrival a = {.port = port, .data = data, .len = len};

	if (w->crash)
		arrive_armed(w, side, &a);
	else
		arrive(w, side, &a);
}

bool world_rx_ask(struct world *w, int side, enum engine_port port, const uint8_t *data,
		  uint32_t len)
{
	struct arrival a = {.port = port, .data = data, .len = len, .ask = &w->ask[side]};

	if (w->crash)
		return !arrive_armed(w, side, &a) || !a.waits;
	arrive(w, side, &a);
	return !a.waits;
}

void world_rx_report(struct world *w, int side, unsigned int peer, const struct report *r)
{
	struct arrival a = {.peer = peer, .report = r};

	if (w->crash)
		arrive_armed(w, side, &a);
	else
		arrive(w, side, &a);
}

void world_tick(struct world *w, int side)
{
	struct arrival a = {0};

	if (!w->crash)
		arrive(w, side, &a);
	else if (arrive_armed(w, side, &a))
		leave(w, side);
}

/* ---- is everything noted? ---- */

static struct world *watched;

static void on_commit(struct undo *u, bool before)
{
	struct engine *e = NULL;
	int side;

	for (side = 0; watched && side < 2 && !e; side++)
		if (watched->engine[side] && watched->engine[side]->undo == u)
			e = watched->engine[side];
	if (!e)
		return;
	busy = 1;
	if (!before) {
		if (++watched->crash->batches % WATCH_EVERY == 0)
			world_watched += undone_begin(e);
	} else if (undone_looks(e)) {
		const char *bad = undone_end(e);

		if (bad && !watched->violation)
			watched->violation = bad;
		undone_cancel();
	}
	busy = 0;
}

/* ---- begin and end ---- */

void world_crash_init(struct world *w)
{
	struct sigaction sa = {.sa_handler = on_alarm, .sa_flags = SA_NODEFER};

	if (!world_crash_calls)
		return;
	w->crash = calloc(1, sizeof(*w->crash));
	w->crash->side[0].fd = w->crash->side[1].fd = -1;
	watched = w;
	undo_watch = on_commit;
	sigaction(SIGALRM, &sa, NULL);
	next_kill();
}

int world_crash_file(struct world *w, int side)
{
	struct crash_side *c = w->crash ? &w->crash->side[side] : NULL;

	if (!c)
		return 0;
	if (c->fd >= 0)
		close(c->fd);
	c->fd = memfd_create("crash", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return c->fd;
}

void world_crash_exit(struct world *w)
{
	struct itimerval none = {0};

	if (!w->crash)
		return;
	setitimer(ITIMER_REAL, &none, NULL);
	watched = NULL;
	undone_cancel();
	for (int s = 0; s < 2; s++) {
		close(w->crash->side[s].fd);
		free(w->crash->side[s].said);
		if (w->crash->side[s].after)
			munmap(w->crash->side[s].after, w->crash->side[s].size);
	}
	free(w->crash);
	w->crash = NULL;
}
