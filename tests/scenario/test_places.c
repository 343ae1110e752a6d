// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Which connection gives its place up where another one finds none: one that has been idle for ten
 * seconds and owes nothing, and no other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/lab/model/crowd.h"

#define MS  1000000ull
#define SEC 1000000000ull
#define MIB (1ull << 20)

static bool paired(struct crowd *c, uint32_t i, struct conn_info *out)
{
	for (uint32_t at = 0; engine_conn_next(c->e, at, c->now, out); at = out->id + 1)
		if (out->paired && out->rqpn == CROWD_RQPN + i)
			return true;
	return false;
}

/* Lane @i is used once, and owes nothing then. */
static void use(struct crowd *c, uint32_t i)
{
	crowd_request(c, i, 0);
	crowd_tick(c, 1000);
	crowd_answer(c, i, c->lane[i].msn - 1, AETH_ACK_UNLIMITED, c->lane[i].msn);
	crowd_tick(c, 1000);
}

static void wait(struct crowd *c, uint64_t ns)
{
	for (uint64_t end = c->now + ns; c->now < end;)
		crowd_tick(c, 10 * MS);
}

/* Lane 0 owes something, lane 1 is used now and then; all others are idle for 11 s. */
static void fill(struct crowd *c)
{
	assert_true(crowd_start_places(c, 32, 16, 16 * MIB, PORT_LAN, PEER_NONE));
	for (uint32_t i = 0; i < 16; i++) {
		crowd_learn(c, i);
		if (i)
			use(c, i);
		else
			crowd_request(c, i, 0);
	}
	assert_int_equal(c->events[EVENT_HELD], 16);
	for (int k = 0; k < 11; k++) {
		wait(c, SEC);
		use(c, 1);
	}
	assert_int_equal(engine_custody(c->e, -1, c->now).packets, 1);
}

static void test_who_stays(void **state)
{
	struct conn_info ci;
	struct crowd c;
	uint64_t closed;

	(void)state;
	fill(&c);
	closed = c.events[EVENT_CLOSED];
	wait(&c, 5 * SEC);
	assert_int_equal(c.events[EVENT_CLOSED], closed); /* no place is wanted */
	use(&c, 1);
	crowd_learn(&c, 16);
	assert_false(paired(&c, 16, &ci));
	wait(&c, SEC);
	crowd_learn(&c, 16);
	assert_true(paired(&c, 16, &ci));
	assert_true(paired(&c, 0, &ci));
	assert_int_equal(ci.lane[LANE_OUT].state, LANE_HELD);
	assert_int_equal(ci.lane[LANE_OUT].custody.packets, 1);
	assert_true(paired(&c, 1, &ci));
	assert_int_equal(ci.lane[LANE_OUT].state, LANE_HELD);
	assert_null(engine_check(c.e));
	crowd_end(&c);
}

/* A connection that is used within ten seconds stays, however many others come. */
static void test_none_idle(void **state)
{
	struct conn_info ci;
	struct crowd c;

	(void)state;
	fill(&c);
	for (uint32_t i = 2; i < 16; i++)
		use(&c, i);
	for (int k = 0; k < 9; k++) {
		for (uint32_t i = 16; i < 32; i++)
			crowd_learn(&c, i);
		wait(&c, SEC);
	}
	for (uint32_t i = 0; i < 16; i++) {
		assert_true(paired(&c, i, &ci));
		assert_int_equal(ci.lane[LANE_OUT].state, LANE_HELD);
	}
	assert_null(engine_check(c.e));
	crowd_end(&c);
}

/* Frames of one direction only, however many, free no place. */
static void test_half_known_want_none(void **state)
{
	struct crowd c;
	uint64_t closed;

	(void)state;
	fill(&c);
	closed = c.events[EVENT_CLOSED];
	for (int k = 0; k < 3000; k++) {
		crowd_request(&c, 16 + (uint32_t)k % 16, 0);
		crowd_tick(&c, MS);
	}
	assert_int_equal(c.events[EVENT_CLOSED], closed);
	crowd_end(&c);
}

/* The lanes of an acceptor are their openers' to let go. It asks. */
static void test_acceptor_asks(void **state)
{
	struct crowd c;

	(void)state;
	assert_true(crowd_start_places(&c, 32, 16, 16 * MIB, PORT_WAN, 0));
	for (uint32_t i = 0; i < 16; i++) {
		crowd_learn(&c, i);
		crowd_hold(&c, i);
	}
	assert_int_equal(c.events[EVENT_HELD], 16);
	wait(&c, 15 * SEC);
	assert_int_equal(c.asks_place, 0);
	crowd_learn(&c, 16);
	wait(&c, 3 * SEC);
	assert_in_range(c.asks_place, 16, 64);
	for (uint32_t i = 0; i < 4; i++)
		crowd_close(&c, i);
	wait(&c, SEC);
	crowd_learn(&c, 16);
	assert_int_equal(c.events[EVENT_PAIRED], 17);
	crowd_end(&c);
}

/* And an opener does, unless the lane is in use, or owes something. */
static void test_opener_gives(void **state)
{
	struct conn_info ci;
	struct crowd c;

	(void)state;
	assert_true(crowd_start(&c, 3, 16 * MIB, PORT_LAN, 0));
	assert_true(crowd_hold_all(&c));
	crowd_request(&c, 0, 0);
	wait(&c, 6 * SEC);
	crowd_request(&c, 1, 0);
	crowd_tick(&c, MS);
	crowd_report_hole(&c, 0, 1); /* without what was sent last */
	crowd_place(&c, 1);
	crowd_place(&c, 2);
	crowd_tick(&c, MS);
	assert_true(paired(&c, 0, &ci));
	assert_int_equal(ci.lane[LANE_OUT].state, LANE_HELD);
	assert_true(paired(&c, 1, &ci));
	assert_int_equal(ci.lane[LANE_OUT].state, LANE_HELD);
	assert_true(paired(&c, 2, &ci));
	assert_int_equal(ci.lane[LANE_OUT].state, LANE_WATCH);
	crowd_end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_stays),
		cmocka_unit_test(test_none_idle),
		cmocka_unit_test(test_half_known_want_none),
		cmocka_unit_test(test_acceptor_asks),
		cmocka_unit_test(test_opener_gives),
	};

	return cmocka_run_group_tests_name("scenario/places", tests, NULL, NULL);
}
