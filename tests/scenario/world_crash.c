// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Appliances that are killed at any instruction, and whose memory the next one adopts.
 *
 * A kill is a timer's signal amid a call of an engine, one of so many calls. siglongjmp() leaves
 * the call, and the engines' files then have what a killed process would leave: every store up to
 * that instruction and none after it. The output of the batch is dropped, like a daemon's output
 * that has not been handed to the kernel. The next process maps the files and goes on; frames of
 * the batch are lost with it. All invariants of a world without kills hold, and no lane may end in
 * FAULT by a kill. The instant of a kill is not repeatable.
 *
 * Where an appliance has several engines, each ends its batch in a thread of its own. So they tick
 * in any order, and every other process dies between two of them, above all when all were told
 * something (world_crash_soon()). What those have said that had ended their batch may have left.
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
#include "tests/lab/model/undone.h"
#include "tests/scenario/world_priv.h"

#define WATCH_EVERY 50u
#define KILL_US	    300 /* a kill that is due comes within this */

uint64_t world_crash_calls, world_kills, world_adopted, world_faulted, world_watched;
uint64_t world_parted, world_lent;

static sigjmp_buf killed;
static volatile sig_atomic_t armed, busy;

/* ---- what a batch says ---- */

enum said { SAID_TX, SAID_REPORT, SAID_EVENT };

struct said_head {
	uint32_t kind, shard, port, len;
};

/**
 * struct crash_side - one appliance.
 * @said: by its engines, @len bytes; of that, each has ended the batches of what is before @ended
 * @in_fault: lanes of each in FAULT when it ended a batch
 * @dies:  between two engines, when they tick next
 */
struct crash_side {
	int fd[SHARDS_MAX];
	uint8_t *said;
	size_t len, room;
	size_t ended[SHARDS_MAX];
	uint32_t in_fault[SHARDS_MAX];
	bool dies;
};

struct crash {
	struct crash_side side[2];
	uint64_t batches;
};

static void say(struct crash_side *c, struct said_head h, const void *data)
{
	uint32_t len = h.len;

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

bool world_crash_tx(struct world *w, int side, unsigned int shard, uint32_t port,
		    const uint8_t *data, uint32_t len, uint32_t seal)
{
	uint8_t frame[WAN_FRAME_MAX + 4];

	if (w->crash) {
		memcpy(frame, data, len);
		put_le32(frame + len, seal);
		say(&w->crash->side[side], (struct said_head){SAID_TX, shard, port, len + 4},
		    frame);
	}
	return w->crash;
}

bool world_crash_report(struct world *w, int side, unsigned int shard, unsigned int peer,
			const struct report *r)
{
	if (w->crash)
		say(&w->crash->side[side], (struct said_head){SAID_REPORT, shard, peer, sizeof(*r)},
		    r);
	return w->crash;
}

bool world_crash_event(struct world *w, int side, unsigned int shard, const struct engine_event *ev)
{
	if (w->crash)
		say(&w->crash->side[side], (struct said_head){SAID_EVENT, shard, 0, sizeof(*ev)},
		    ev);
	return w->crash;
}

/* Whether what stands @at there leaves although the process was killed: what has happened is known,
 * each core sends its frames itself, and reports wait for all. */
static bool left(const struct crash_side *c, size_t at, const struct said_head *h, bool frames)
{
	return at < c->ended[h->shard] && (h->kind == SAID_EVENT || (h->kind == SAID_TX && frames));
}

/* The batch has happened: what it says leaves. If the process @died amid it, what some engines did
 * has happened. */
static void leave(struct world *w, int side, bool died)
{
	struct crash_side *c = &w->crash->side[side];
	struct crash *crash = w->crash;
	bool frames = died && rand() % 2;
	struct said_head h;

	w->crash = NULL; /* straight through the sinks now */
	for (size_t at = 0; at < c->len; at += sizeof(h) + h.len) {
		memcpy(&h, c->said + at, sizeof(h));
		if (died && !left(c, at, &h, frames))
			continue;
		world_said(w, side, (int)h.kind, h.port, c->said + at + sizeof(h), h.len);
	}
	w->crash = crash;
	c->len = 0;
	memset(c->ended, 0, sizeof(c->ended));
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
	const struct itimerval none = {0};

	setitimer(ITIMER_REAL, &none, NULL);
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

/* Another process follows. */
static const char *follow(struct world *w, int side)
{
	struct crash_side *c = &w->crash->side[side];
	bool lost = w->heirs && !world_heirs_follow(w, side, c->fd);
	const char *why = w->heirs ? NULL : world_adopt(w, side, c->fd);

	for (unsigned int i = 0; !why && i < world_cores(w, side); i++) {
		struct engine *e = shards_engine(w->shards[side], i);

		if (w->heirs) /* others have begun before it */
			c->in_fault[i] = e->in_fault;
		if (!lost) /* nothing has passed meanwhile, so PSNs tell pairs as before */
			e->stood = 0;
	}
	return why;
}

void world_crash_unsaid(struct world *w, int side)
{
	w->crash->side[side].len = 0;
}

static void adopt(struct world *w, int side)
{
	struct crash_side *c = &w->crash->side[side];
	const char *why;

	next_kill(); /* no signal cuts a call of the kernel short while another process begins */
	undone_cancel(); /* of any engine */
	leave(w, side, true);
	world_late_drop(w, side);
	world_queues_drop(w, side);
	world_kills++;
	world_end(w, side);
	why = follow(w, side);
	if (!why)
		why = world_agree(w, side);
	if (why) {
		w->violation = why;
		return;
	}
	for (unsigned int i = 0; i < world_cores(w, side); i++) {
		struct engine *e = shards_engine(w->shards[side], i);

		world_adopted += lanes(e->flows, e->nflows, LANE_STATES);
		/* by the adoption itself; what the worlds' own events break was broken before */
		world_faulted += lanes(e->flows, e->nflows, LANE_FAULT) - c->in_fault[i];
	}
	/* and the next process may die amid its first batch */
	c->dies = rand() % 4 == 0;
}

/* What comes to an appliance: a frame, a report of its peer, or (both NULL) time. */
struct arrival {
	enum engine_port port;
	const uint8_t *data;
	uint32_t len;
	unsigned int peer;
	const struct report *report;
	struct ask *ask; /* the frame may wait */
	bool waits;	 /* and does */
};

static bool has_lent(const struct shards *s)
{
	struct engine_memory m;

	for (unsigned int i = 0; i < shards_n(s); i++) {
		engine_memory(shards_engine(s, i), &m);
		if (m.pool_bytes > m.pool_most / shards_n(s))
			return true;
	}
	return false;
}

/* All engines end their batches, in any order; but only @most of them, then the process dies. */
static void round_of(struct world *w, int side, unsigned int most)
{
	struct shards *s = w->shards[side];
	unsigned int n = shards_n(s), first = n > 1 ? prng_below(&w->rng, n) : 0;

	shards_begin(s, w->now);
	for (unsigned int i = 0; i < n && i < most; i++)
		shard_tick(s, (first + i) % n, w->now);
	if (most <= n)
		return;
	shards_end(s, w->now);
	if (n > 1 && has_lent(s)) /* not written by worlds of one core, which play in threads */
		world_lent++;
}

static void arrive(struct world *w, int side, struct arrival *a)
{
	struct shards *s = w->shards[side];
	uint8_t frame[WAN_FRAME_MAX];
	struct engine *e;

	if (a->data) {
		memcpy(frame, a->data, a->len); /* should it be killed, it comes once more */
		e = shards_engine(s, shards_of_frame(s, frame, a->len));
		if (a->ask)
			a->waits = !ask_rx(a->ask, e, a->port, frame, a->len, w->now);
		else
			engine_rx(e, a->port, frame, a->len, w->now);
	} else if (!a->report) {
		round_of(w, side, UINT32_MAX);
	} else if (shards_n(s) == 1 || shards_peer_is_up(s, a->peer)) {
		shards_report(s, a->peer, a->report, &w->box[side], w->now);
	}
}

/* The next one to be killed dies between two engines, or anywhere. */
static void kill_soon(struct world *w, int side)
{
	w->crash->side[side].dies = world_cores(w, side) > 1 && rand() % 2;
	if (!w->crash->side[side].dies)
		rearm();
}

void world_crash_soon(struct world *w, int side)
{
	if (w->crash && rand() % 4)
		w->crash->side[side].dies = true;
}

/* False: the process was killed amid it, and another one is there. */
static bool arrive_armed(struct world *w, int side, struct arrival *a)
{
	if (calls && --calls == 0)
		kill_soon(w, side);
	if (calls) {
		arrive(w, side, a);
		return true;
	}
	if (sigsetjmp(killed, 0)) {
		armed = 0;
		adopt(w, side);
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
	unsigned int n = world_cores(w, side), most;
	struct arrival a = {0};

	if (w->crash && w->crash->side[side].dies) {
		most = n > 1 ? 1 + (unsigned int)rand() % n : 0;
		round_of(w, side, most);
		world_parted += most && most < n;
		adopt(w, side);
		return;
	}
	if (!w->crash)
		arrive(w, side, &a);
	else if (arrive_armed(w, side, &a))
		leave(w, side, false);
	else
		return;
	w->peer[side].restarted = false;
}

/* ---- is everything noted? ---- */

static struct world *watched;

/* The engine with @u, whose number and side are told. */
static struct engine *engine_with(const struct undo *u, int *side, unsigned int *shard)
{
	for (*side = 0; watched && *side < 2; ++*side)
		for (*shard = 0; watched->shards[*side] && *shard < world_cores(watched, *side);
		     ++*shard) {
			struct engine *e = shards_engine(watched->shards[*side], *shard);

			if (e->undo == u)
				return e;
		}
	return NULL;
}

static void on_commit(struct undo *u, bool before)
{
	unsigned int shard;
	int side;
	struct engine *e = engine_with(u, &side, &shard);

	if (!e)
		return;
	busy = 1;
	if (!before) {
		watched->crash->side[side].ended[shard] = watched->crash->side[side].len;
		watched->crash->side[side].in_fault[shard] = e->in_fault;
		if (++watched->crash->batches % (WATCH_EVERY * world_cores(watched, side)) == 0)
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
	watched = w;
	undo_watch = on_commit;
	sigaction(SIGALRM, &sa, NULL);
	next_kill();
}

static void close_files(struct crash_side *c)
{
	for (unsigned int i = 0; i < SHARDS_MAX; i++)
		if (c->fd[i])
			close(c->fd[i]);
	memset(c->fd, 0, sizeof(c->fd));
}

const int *world_crash_files(struct world *w, int side)
{
	struct crash_side *c = w->crash ? &w->crash->side[side] : NULL;

	if (!c)
		return NULL;
	next_kill();
	close_files(c);
	memset(c->in_fault, 0, sizeof(c->in_fault));
	for (unsigned int i = 0; i < world_cores(w, side); i++)
		c->fd[i] = memfd_create("crash", MFD_CLOEXEC | MFD_ALLOW_SEALING);
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
		close_files(&w->crash->side[s]);
		free(w->crash->side[s].said);
	}
	free(w->crash);
	w->crash = NULL;
}
