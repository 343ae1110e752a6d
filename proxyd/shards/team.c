// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "shards/team.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>

/* Looks before a thread sleeps, about 10 us. */
#define LOOKS 2000u

struct member {
	struct team *team;
	unsigned int index;
	pthread_t thread;
	sem_t go;
};

/**
 * struct team
 * @working: members that have not returned yet; the last one posts @done
 */
struct team {
	unsigned int n, started;
	team_fn fn;
	void *ctx;
	atomic_uint working;
	sem_t done;
	bool over;
	struct member member[TEAM_MAX];
};

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#endif
}

static void wait_for(sem_t *s)
{
	for (unsigned int i = 0; i < LOOKS; i++) {
		if (!sem_trywait(s))
			return;
		relax();
	}
	while (sem_wait(s) && errno == EINTR)
		;
}

static void *serve(void *arg)
{
	struct member *m = arg;
	struct team *t = m->team;

	(void)prctl(PR_SET_NAME, "longhauld-core", 0, 0, 0);
	sem_post(&t->done);
	for (;;) {
		wait_for(&m->go);
		if (t->over)
			return NULL;
		t->fn(t->ctx, m->index);
		if (atomic_fetch_sub(&t->working, 1) == 1)
			sem_post(&t->done);
	}
}

struct team *team_start(unsigned int n, team_fn fn, void *ctx)
{
	struct team *t = n && n <= TEAM_MAX ? calloc(1, sizeof(*t)) : NULL;
	const int own[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
	sigset_t all, was;
	int rc = 0;

	if (!t)
		return NULL;
	t->n = n;
	t->fn = fn;
	t->ctx = ctx;
	sem_init(&t->done, 0, 0);
	sigfillset(&all);
	/* what the thread itself does wrong has a handler */
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(&all, own[i]);
	pthread_sigmask(SIG_SETMASK, &all, &was);
	for (t->started = 1; t->started < n && !rc; t->started += !rc) {
		struct member *m = &t->member[t->started];

		m->team = t;
		m->index = t->started;
		sem_init(&m->go, 0, 0);
		rc = pthread_create(&m->thread, NULL, serve, m);
	}
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	/* a thread that has begun makes no system calls any more that the caller may forbid */
	for (unsigned int i = 1; i < t->started; i++)
		wait_for(&t->done);
	if (!rc)
		return t;
	team_stop(t);
	errno = rc;
	return NULL;
}

void team_stop(struct team *t)
{
	if (!t)
		return;
	t->over = true;
	for (unsigned int i = 1; i < t->started; i++) {
		sem_post(&t->member[i].go);
		pthread_join(t->member[i].thread, NULL);
		sem_destroy(&t->member[i].go);
	}
	sem_destroy(&t->done);
	free(t);
}

void team_run(struct team *t, uint32_t mask)
{
	unsigned int own = (unsigned int)__builtin_ctz(mask);
	uint32_t others = mask & (mask - 1);

	atomic_store(&t->working, (unsigned int)__builtin_popcount(others));
	for (uint32_t left = others; left; left &= left - 1)
		sem_post(&t->member[__builtin_ctz(left)].go);
	t->fn(t->ctx, own);
	if (others)
		wait_for(&t->done);
}
