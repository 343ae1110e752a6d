// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a tick, a packet, a CLOSE and a report cost must not depend on how many lanes there are, or
 * on how large a hole is. Not by the clock: instructions are counted (step.h). How long they take
 * is tests/bench/bench_scale.c's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/lab/model/crowd.h"
#include "tests/unit/step.h"

#define MS    1000000ull
#define MIB   (1ull << 20)
#define FEW   10u
#define MANY  10000u
/* A call that needs so many has a loop over something. */
#define LIMIT 200000

#ifdef STEPS

struct call {
	struct crowd *c;
	uint32_t lane, n;
};

static long instructions(void (*fn)(void *arg), struct crowd *c, uint32_t lane, uint32_t n)
{
	struct call call = {c, lane, n};

	if (cut_off(fn, &call, LIMIT))
		fail_msg("more than %d instructions", LIMIT);
	return LIMIT - steps_left;
}

static void tick(void *arg)
{
	struct call *call = arg;

	crowd_tick(call->c, 100);
}

static void request(void *arg)
{
	struct call *call = arg;

	crowd_request(call->c, call->lane, 0);
}

static void close_one(void *arg)
{
	struct call *call = arg;

	crowd_close(call->c, call->lane);
}

static void report_hole(void *arg)
{
	struct call *call = arg;

	crowd_report_hole(call->c, call->lane, call->n);
}

/* Chains of a hash and levels of a wheel differ a little. */
static void alike(const char *what, long few, long many)
{
	print_message("# %s: %ld and %ld instructions\n", what, few, many);
	if (many > 2 * few + 500)
		fail_msg("%s: %ld instructions, and %ld with more of them", what, few, many);
}

static void hold(struct crowd *c, uint32_t n, enum engine_port from)
{
	assert_true(crowd_start(c, n, 256 * MIB, from, 0));
	assert_true(crowd_hold_all(c));
}

static void end(struct crowd *c)
{
	assert_null(engine_check(c->e));
	crowd_end(c);
}

/* Near the requester. Each lane owes a packet, and nothing is due. */
static void owing(uint32_t n, long *to_tick, long *to_take)
{
	struct crowd c;

	hold(&c, n, PORT_LAN);
	for (uint32_t i = 0; i < n; i++) {
		crowd_request(&c, i, 0);
		crowd_tick(&c, 10);
	}
	assert_int_equal(engine_custody(c.e, -1, c.now).packets, n);
	crowd_tick(&c, 10);
	*to_tick = instructions(tick, &c, 0, 0);
	*to_take = instructions(request, &c, n / 2, 0);
	crowd_tick(&c, 10);
	end(&c);
}

static void test_owing(void **state)
{
	long tick_few, tick_many, take_few, take_many;

	(void)state;
	owing(FEW, &tick_few, &take_few);
	owing(MANY, &tick_many, &take_many);
	alike("a tick, lanes that owe", tick_few, tick_many);
	alike("a request", take_few, take_many);
}

/* Near the responder. A packet is missing in each lane, and that has been said for long. */
static void missing(uint32_t n, long *to_tick, long *to_close, long *stale)
{
	struct crowd c;
	uint32_t gen;

	hold(&c, n, PORT_WAN);
	for (uint32_t i = 0; i < n; i++)
		crowd_request(&c, i, 1);
	for (int k = 0; k < 20; k++)
		crowd_tick(&c, 70 * MS);
	*to_tick = instructions(tick, &c, 0, 0);
	/* of a generation that is gone: nothing happens */
	gen = c.lane[n - 1].gen;
	c.lane[n - 1].gen = 5;
	*stale = instructions(close_one, &c, n - 1, 0);
	assert_int_equal(c.events[EVENT_CLOSED], 0);
	c.lane[n - 1].gen = gen;
	*to_close = instructions(close_one, &c, n - 1, 0);
	assert_int_equal(c.events[EVENT_CLOSED], 1);
	crowd_tick(&c, 10);
	end(&c);
}

static void test_missing(void **state)
{
	long tick_few, tick_many, close_few, close_many, stale_few, stale_many;

	(void)state;
	missing(FEW, &tick_few, &close_few, &stale_few);
	missing(MANY, &tick_many, &close_many, &stale_many);
	alike("a tick, lanes that lack a packet", tick_few, tick_many);
	alike("a CLOSE", close_few, close_many);
	alike("a stale CLOSE", stale_few, stale_many);
}

/* A report over a hole that was named before: a page of packets that were all sent lately is not
 * looked at again. */
static long report(uint32_t hole)
{
	struct crowd c;
	long n;

	hold(&c, 1, PORT_LAN);
	for (uint32_t i = 0; i < hole + 10; i++) {
		crowd_request(&c, 0, 0);
		if (i % 32 == 31)
			crowd_tick(&c, 1000);
		if (i % 2000 == 0)
			crowd_room(&c, 0, CROWD_LEARN + 1, 100000);
	}
	crowd_tick(&c, 1000 * MS);
	assert_int_equal(engine_custody(c.e, -1, c.now).packets, hole + 10);
	crowd_report_hole(&c, 0, 10);
	n = instructions(report_hole, &c, 0, 10);
	assert_int_equal(engine_counter(c.e, EC_BAD_REPORT), 0);
	crowd_tick(&c, 10);
	end(&c);
	return n;
}

static void test_report(void **state)
{
	(void)state;
	alike("a report over a hole", report(1000), report(20000));
}
#else
static void test_owing(void **state)
{
	(void)state;
	skip(); /* nothing counts instructions here */
}
#define test_missing test_owing
#define test_report  test_owing
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_owing),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_report),
	};

	return cmocka_run_group_tests_name("engine, cost", tests, NULL, NULL);
}
