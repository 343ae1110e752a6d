// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The event loop: work runs once per turn, deadlines are kept to far less than a millisecond,
 * descriptors and signals wake it.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/loop.h"

struct ctx {
	struct loop *loop;
	unsigned int turns, fds, signals, left;
	uint64_t wait_ns, wanted, worst_late, early, left_till;
	int fd;
};

static uint64_t busy(void *arg)
{
	struct ctx *c = arg;

	if (++c->turns == 1000)
		loop_stop(c->loop);
	return 0;
}

/* As long as work wants to go on at once, it does. */
static void test_busy(void **state)
{
	struct ctx c = {.loop = loop_create()};

	(void)state;
	assert_non_null(c.loop);
	loop_run(c.loop, busy, &c);
	assert_int_equal(c.turns, 1000);
	loop_destroy(c.loop);
}

static uint64_t timed(void *arg)
{
	struct ctx *c = arg;
	uint64_t now = loop_now();

	c->turns++;
	if (c->wanted) {
		if (now < c->wanted)
			c->early++;
		else if (now - c->wanted > c->worst_late)
			c->worst_late = now - c->wanted;
	}
	if (!c->left--)
		loop_stop(c->loop);
	c->wanted = now + c->wait_ns;
	return c->wanted;
}

/*
 * A sleep of 200 us takes 200 us, not the millisecond of epoll's own timeout, nor less. Any may
 * take longer on a busy machine: one that does not will come, unless the loop cannot.
 */
static void test_deadline(void **state)
{
	uint64_t start, took, end = loop_now() + 30000000000u;

	(void)state;
	do {
		struct ctx c = {.loop = loop_create(), .wait_ns = 200000, .left = 5};

		assert_non_null(c.loop);
		start = loop_now();
		loop_run(c.loop, timed, &c);
		took = loop_now() - start;
		assert_int_equal(c.turns, 6);
		assert_int_equal(c.early, 0);
		assert_true(took >= 5 * c.wait_ns);
		loop_destroy(c.loop);
	} while (took > 3500000 && start < end);
	/* five sleeps */
	assert_true(took <= 3500000);
}

/* While it waits it does not spin. */
static void test_sleeps(void **state)
{
	struct ctx c = {.loop = loop_create(), .wait_ns = 50000000, .left = 2};
	struct rusage before, after;

	(void)state;
	getrusage(RUSAGE_SELF, &before);
	loop_run(c.loop, timed, &c);
	getrusage(RUSAGE_SELF, &after);
	assert_int_equal(c.turns, 3);
	assert_true((after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1000000 +
			    after.ru_utime.tv_usec - before.ru_utime.tv_usec <
		    20000);
	loop_destroy(c.loop);
}

static void on_fd(void *arg, int fd)
{
	struct ctx *c = arg;
	uint64_t v;

	assert_int_equal(read(fd, &v, sizeof(v)), sizeof(v));
	c->fds++;
	loop_del_fd(c->loop, fd);
}

static void on_signal(void *arg, int signo)
{
	struct ctx *c = arg;

	assert_int_equal(signo, SIGUSR1);
	c->signals++;
	loop_stop(c->loop);
}

static uint64_t provoke(void *arg)
{
	struct ctx *c = arg;
	uint64_t one = 1;

	switch (c->turns++) {
	case 0:
		assert_int_equal(write(c->fd, &one, sizeof(one)), sizeof(one));
		break;
	case 1:
		assert_int_equal(c->fds, 1);
		/* no longer watched: must not be called again */
		assert_int_equal(write(c->fd, &one, sizeof(one)), sizeof(one));
		kill(getpid(), SIGUSR1);
		break;
	}
	return LOOP_NEVER;
}

/* With no deadline at all, descriptors and signals still wake it. */
static void test_wakes(void **state)
{
	struct ctx c = {.loop = loop_create(), .fd = eventfd(0, EFD_NONBLOCK)};

	(void)state;
	assert_int_equal(loop_add_fd(c.loop, c.fd, on_fd, &c), 0);
	assert_int_equal(loop_on_signal(c.loop, SIGUSR1, on_signal, &c), 0);
	loop_run(c.loop, provoke, &c);
	assert_int_equal(c.fds, 1);
	assert_int_equal(c.signals, 1);
	loop_destroy(c.loop);
	close(c.fd);
}

static uint64_t resting(void *arg)
{
	struct ctx *c = arg;
	uint64_t one = 1, now = loop_now();

	if (c->turns++) {
		c->early += now < c->wanted;
		c->left = (unsigned int)(now < c->left_till);
		loop_stop(c->loop);
		return LOOP_NEVER;
	}
	assert_int_equal(write(c->fd, &one, sizeof(one)), sizeof(one));
	c->wanted = now + (c->wait_ns < 20000000 ? c->wait_ns : 20000000);
	c->left_till = now + 20000000;
	loop_rest(c->loop, 20000000);
	return now + c->wait_ns;
}

/* A rest holds although a descriptor is ready, and ends where work wants the next turn. */
static void test_rest(void **state)
{
	const uint64_t waits[] = {LOOP_NEVER / 2, 1000000};
	uint64_t end = loop_now() + 30000000000u;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct ctx c = {.wait_ns = waits[i], .fd = eventfd(0, EFD_NONBLOCK)};

		do { /* a busy machine may make any turn late */
			c.turns = 0;
			c.loop = loop_create();
			assert_int_equal(loop_add_fd(c.loop, c.fd, on_fd, &c), 0);
			loop_run(c.loop, resting, &c);
			loop_destroy(c.loop);
			assert_int_equal(c.turns, 2);
			assert_int_equal(c.early, 0);
		} while (i == 1 && !c.left && loop_now() < end);
		assert_int_equal(c.left, i);
		close(c.fd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_busy),   cmocka_unit_test(test_deadline),
		cmocka_unit_test(test_sleeps), cmocka_unit_test(test_wakes),
		cmocka_unit_test(test_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
