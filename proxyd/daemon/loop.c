// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Turns of libev. The library's own timers are not used: they have the resolution of epoll,
 * milliseconds, and pacing needs microseconds. One timerfd, set to the absolute time that the work
 * function asks for, wakes the loop instead; an idle watcher keeps it from sleeping while there is
 * work left.
 */
#include "daemon/loop.h"

#include <errno.h>
#include <ev.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define LOOP_FDS     160
#define LOOP_SIGNALS 8
#define SLACK_NS     1000ul

struct fd_watch {
	ev_io io;
	loop_fd_fn fn;
	void *ctx;
	bool used;
};

struct signal_watch {
	ev_signal sig;
	loop_signal_fn fn;
	void *ctx;
};

struct loop {
	struct ev_loop *ev;
	ev_prepare prepare; /* runs before each sleep, at the end of a turn */
	ev_idle idle;
	ev_io timer;
	uint64_t armed; /* what the timerfd is set to, LOOP_NEVER when it is not */
	uint64_t rest;	/* loop_rest() of this turn */
	loop_work_fn work;
	void *ctx;
	bool stop;
	struct fd_watch fds[LOOP_FDS];
	struct signal_watch signals[LOOP_SIGNALS];
	unsigned int nsignals;
};

uint64_t loop_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + ts.tv_nsec;
}

static void arm(struct loop *l, uint64_t when)
{
	struct itimerspec its = {0};

	if (when == l->armed)
		return;
	l->armed = when;
	if (when != LOOP_NEVER) {
		its.it_value.tv_sec = when / 1000000000u;
		its.it_value.tv_nsec = when % 1000000000u;
	}
	timerfd_settime(l->timer.fd, TFD_TIMER_ABSTIME, &its, NULL);
}

static void on_timer(struct ev_loop *ev, ev_io *w, int events)
{
	struct loop *l = w->data;
	uint64_t expirations;

	(void)ev;
	(void)events;
	if (read(w->fd, &expirations, sizeof(expirations)) == sizeof(expirations))
		l->armed = LOOP_NEVER;
}

/* Nothing wakes it. A signal ends it early, which does no harm. */
static void rest(struct loop *l, uint64_t when)
{
	uint64_t now = loop_now(), ns = l->rest;
	struct timespec ts = {0};

	l->rest = 0;
	if (when <= now)
		return;
	ts.tv_nsec = (long)(when - now < ns ? when - now : ns);
	nanosleep(&ts, NULL);
}

static void on_prepare(struct ev_loop *ev, ev_prepare *w, int events)
{
	struct loop *l = w->data;
	uint64_t when;

	(void)events;
	if (l->stop)
		return;
	when = l->work(l->ctx);
	if (l->stop || when <= loop_now()) {
		l->rest = 0;
		ev_idle_start(ev, &l->idle);
		return;
	}
	ev_idle_stop(ev, &l->idle);
	if (l->rest)
		rest(l, when);
	arm(l, when);
}

static void on_idle(struct ev_loop *ev, ev_idle *w, int events)
{
	(void)ev;
	(void)w;
	(void)events;
}

static void on_fd(struct ev_loop *ev, ev_io *w, int events)
{
	struct fd_watch *f = w->data;

	(void)ev;
	(void)events;
	if (f->fn)
		f->fn(f->ctx, w->fd);
}

static void on_signal(struct ev_loop *ev, ev_signal *w, int events)
{
	struct signal_watch *s = w->data;

	(void)ev;
	(void)events;
	s->fn(s->ctx, w->signum);
}

struct loop *loop_create(void)
{
	struct loop *l = calloc(1, sizeof(*l));
	int tfd;

	if (!l)
		return NULL;
	tfd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	l->ev = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
	if (tfd < 0 || !l->ev) {
		if (tfd >= 0)
			close(tfd);
		if (l->ev)
			ev_loop_destroy(l->ev);
		free(l);
		return NULL;
	}
	/* a rest is shorter than what the kernel may add to it by default, 50 us */
	(void)prctl(PR_SET_TIMERSLACK, SLACK_NS, 0, 0, 0);
	l->armed = LOOP_NEVER;
	l->prepare.data = l->timer.data = l;
	ev_prepare_init(&l->prepare, on_prepare);
	ev_idle_init(&l->idle, on_idle);
	ev_io_init(&l->timer, on_timer, tfd, EV_READ);
	ev_io_start(l->ev, &l->timer);
	return l;
}

void loop_destroy(struct loop *l)
{
	if (!l)
		return;
	close(l->timer.fd);
	ev_loop_destroy(l->ev);
	free(l);
}

int loop_add_fd(struct loop *l, int fd, loop_fd_fn fn, void *ctx)
{
	for (unsigned int i = 0; i < LOOP_FDS; i++) {
		struct fd_watch *f = &l->fds[i];

		if (f->used)
			continue;
		f->used = true;
		f->fn = fn;
		f->ctx = ctx;
		ev_io_init(&f->io, on_fd, fd, EV_READ);
		f->io.data = f;
		ev_io_start(l->ev, &f->io);
		return 0;
	}
	return -ENOSPC;
}

void loop_del_fd(struct loop *l, int fd)
{
	for (unsigned int i = 0; i < LOOP_FDS; i++) {
		struct fd_watch *f = &l->fds[i];

		if (!f->used || f->io.fd != fd)
			continue;
		ev_io_stop(l->ev, &f->io);
		f->used = false;
	}
}

int loop_on_signal(struct loop *l, int signo, loop_signal_fn fn, void *ctx)
{
	struct signal_watch *s;

	if (l->nsignals == LOOP_SIGNALS)
		return -ENOSPC;
	s = &l->signals[l->nsignals++];
	s->fn = fn;
	s->ctx = ctx;
	ev_signal_init(&s->sig, on_signal, signo);
	s->sig.data = s;
	ev_signal_start(l->ev, &s->sig);
	return 0;
}

void loop_run(struct loop *l, loop_work_fn work, void *ctx)
{
	l->work = work;
	l->ctx = ctx;
	l->stop = false;
	ev_prepare_start(l->ev, &l->prepare);
	while (!l->stop)
		ev_run(l->ev, EVRUN_ONCE);
	ev_prepare_stop(l->ev, &l->prepare);
	ev_idle_stop(l->ev, &l->idle);
}

void loop_rest(struct loop *l, uint64_t ns)
{
	l->rest = ns;
}

void loop_stop(struct loop *l)
{
	l->stop = true;
	ev_break(l->ev, EVBREAK_ALL);
}
