// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Processes that follow one that was killed, and cannot always go on with what it left.
 *
 * What the port holds (port/afxdp_fence.c) outlives processes (world_port.c). Now and then the next
 * process finds a file that it cannot read. It makes other engines: as many as it likes, with a
 * smaller pool, and configured for fewer connections than are held. Custody is lost then, and each
 * queue pair that lost some must fail: nothing that is held may be in no engine, since its packets
 * would pass.
 *
 * Some processes die as they begin. Each of those is a process, which a signal ends at any
 * instruction: amid an adoption, or when new engines know some of what is held.
 */
#include "tests/scenario/world_priv.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/core/state.h"
#include "engine/kept.h"

#define DAMAGE_EVERY 6	  /* kills */
#define BEGIN_US     2000 /* a process that begins takes no longer, at first */

bool world_heirs;
uint64_t world_unread, world_stillborn;

/** struct heirs - shared by all processes. @took_us: the latest one to begin */
struct heirs {
	uint64_t took_us;
};

void world_heirs_init(struct world *w)
{
	if (!world_heirs)
		return;
	w->heirs = mmap(NULL, sizeof(*w->heirs), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	if (w->heirs == MAP_FAILED)
		abort();
	w->heirs->took_us = BEGIN_US;
}

void world_heirs_exit(struct world *w)
{
	if (w->heirs)
		munmap(w->heirs, sizeof(*w->heirs));
	w->heirs = NULL;
}

/* ---- what the port holds ---- */

void world_heirs_expect(struct world *w, int side, struct shards *s)
{
	held_each (w, side, h)
		shards_expect(s, &h->requests);
}

static bool in_table(const struct world *w, int side, const struct flow_key *k)
{
	held_each (w, side, h) {
		if (!memcmp(&h->requests, k, sizeof(*k)))
			return true;
	}
	return false;
}

/* What an adopted engine takes for held passed until now. */
static bool passed(const struct world *w, int side)
{
	for (unsigned int i = 0; i < shards_n(w->shards[side]); i++) {
		const struct engine *e = shards_engine(w->shards[side], i);

		flow_each (const struct flow, fl, e)
			if (fl->lane.fenced && !in_table(w, side, &fl->key))
				return true;
	}
	return false;
}

void world_heirs_found(struct world *w, int side, bool adopted)
{
	struct shards *s = w->shards[side];

	if (w->heirs && adopted && passed(w, side))
		w->violation = "what an engine holds is not held while it is away";
	held_each (w, side, h) {
		if (adopted ? shards_holds(s, &h->requests)
			    : shards_fail_orphan(s, &h->requests, h->lqpn,
						 h->headers.len ? &h->headers : NULL, w->now)) {
			if (!shards_holds(s, &h->requests))
				w->violation = "what is held is in no engine, and passes";
		} else {
			world_port_hold(w, side, &h->requests, h->lqpn, NULL, false);
		}
	}
}

/* ---- one process after the other ---- */

/* Which queue pairs are to fail: those that were held. A far requester is held where numbers may
 * differ. */
static void lose(struct world *w, int side)
{
	held_each (w, side, h) {
		for (uint32_t n = 0; n < w->nqps; n++) {
			struct world_qp *q = &w->qp[n];
			bool near = q->cfg[side].lqpn == h->lqpn &&
				    q->cfg[side].rqpn == h->requests.dqpn,
			     far = q->cfg[!side].lqpn == h->lqpn &&
				   q->cfg[!side].rqpn == h->requests.dqpn;

			q->side[side].lost |= near;
			q->side[side].holed |= near;
			q->broken |= near || far;
		}
	}
}

/* What one process left, another one cannot read. */
static void damage(struct world *w, int side, const int *files)
{
	int fd = files[(unsigned int)rand() % world_cores(w, side)];
	struct engine_root root;

	if (pread(fd, &root, sizeof(root), ARENA_FIRST) != sizeof(root))
		abort();
	switch (rand() % 3) {
	case 0:
		root.layout ^= 1;
		break;
	case 1:
		root.ready = 0;
		break;
	default:
		root.kept = UINT64_MAX;
	}
	if (pwrite(fd, &root, sizeof(root), ARENA_FIRST) != sizeof(root))
		abort();
	world_unread++;
}

static void configure(struct world *w, int side)
{
	w->cfg.cores[side] = 1 + (uint32_t)rand() % 4;
	w->cfg.engine.max_conns = 1 + (uint32_t)rand() % 8;
	w->cfg.engine.pool_bytes = (uint64_t)(4 + rand() % 8) << 20;
}

/* A process begins. */
static void begin(struct world *w, int side, const int *files)
{
	if (world_adopt(w, side, files))
		world_replace(w, side, files);
}

/* Whether the next process can go on with @files. */
static bool readable(struct world *w, int side, const int *files)
{
	bool yes = !world_adopt(w, side, files);

	world_end(w, side);
	world_crash_unsaid(w, side);
	return yes;
}

/* One that is killed as it begins, or when its first round is over. */
static void stillborn(struct world *w, int side, const int *files)
{
	struct itimerval t = {.it_value.tv_usec = 1 + rand() % (long)(2 * w->heirs->took_us)};
	pid_t pid = fork();

	if (!pid) {
		undo_watch = NULL;
		signal(SIGALRM, SIG_DFL);
		setitimer(ITIMER_REAL, &t, NULL);
		begin(w, side, files);
		shards_begin(w->shards[side], w->now);
		shards_tick(w->shards[side], w->now);
		_exit(0);
	}
	/* were it still there, two processes would have the same memory */
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		abort();
	world_stillborn++;
}

static uint64_t clock_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

bool world_heirs_follow(struct world *w, int side, const int *files)
{
	bool lost = false;
	uint64_t at;

	if (rand() % DAMAGE_EVERY == 0)
		damage(w, side, files);
	for (int more = rand() % 2;; more--) {
		if (!readable(w, side, files)) {
			if (!lost)
				lose(w, side);
			lost = true;
			configure(w, side);
			files = world_crash_files(w, side);
		}
		if (more <= 0)
			break;
		stillborn(w, side, files);
	}
	at = clock_us();
	begin(w, side, files);
	w->heirs->took_us = clock_us() - at + 1;
	if (lost)
		world_peer(w, !side, PEER_RESTARTED);
	return !lost;
}
