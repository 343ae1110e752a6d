// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Two numberings, by whoever adds requests: near the requester (a guess that is not asked for),
 * near the responder (a READ ahead of what comes in, and later one that need not go on).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "engine/core/core.h"

/* Both numberings around the wrap. */
#define START 0xfffff0u

static struct engine engine; /* counts what finds no place */

struct rig {
	struct psn_map map;
	struct wire_mark next; /* of what goes on */
};

static void begin(struct rig *r)
{
	memset(r, 0, sizeof(*r));
	r->next = (struct wire_mark){.psn = {START}, .msn = 7, .ackable = 1};
	r->map.asked = mark_same_host(r->next);
}

/* A request comes in and goes on. */
static void through(struct rig *r, uint32_t span)
{
	psn_map_note(&engine, &r->map, &r->next);
	mark_step(&r->map.asked, span, true, true);
	mark_step(&r->next, span, true, true);
}

/* The mark @psn, @msn of what goes on, as it came in. */
static struct host_mark back(const struct rig *r, uint32_t psn, uint32_t msn)
{
	const struct plain_mark asked = {r->map.asked.psn.v, r->map.asked.msn, 1};
	struct plain_mark m = {.psn = psn, .msn = msn};

	m = segments_back(&r->map.seg, asked, m);
	return (struct host_mark){{m.psn}, m.msn, m.ackable};
}

/* One of our own goes on. */
static void own(struct rig *r, uint32_t span)
{
	mark_step(&r->next, span, true, false);
}

/* A request comes in and does not go on. */
static void absorbed(struct rig *r, uint32_t span)
{
	mark_step(&r->map.asked, span, true, false);
}

static void both(const struct rig *r, uint32_t in, uint32_t msn_in, uint32_t on, uint32_t msn_on)
{
	struct host_mark m = back(r, (START + on) & PSN_MASK, msn_on);

	assert_int_equal(m.psn.v, (START + in) & PSN_MASK);
	assert_int_equal(m.msn, msn_in);
	assert_int_equal(psn_to_wire(&r->map, m.psn).v, (START + on) & PSN_MASK);
}

static void test_own_ahead(void **state)
{
	struct rig r;

	(void)state;
	begin(&r);
	through(&r, 4);
	own(&r, 64);
	through(&r, 1);
	through(&r, 1);
	both(&r, 2, 7, 2, 7);
	both(&r, 5, 9, 69, 10);
	/* amid the own request: all that came in before it is done */
	assert_int_equal(back(&r, (START + 30) & PSN_MASK, 8).psn.v, (START + 4) & PSN_MASK);
}

static void test_met_by_one_that_does_not_go_on(void **state)
{
	struct rig r;

	(void)state;
	begin(&r);
	own(&r, 64);
	through(&r, 1);
	absorbed(&r, 64);
	through(&r, 1);
	both(&r, 0, 7, 64, 8);
	both(&r, 65, 9, 65, 9);
	assert_true(r.next.psn.v == r.map.asked.psn.v && r.next.msn == r.map.asked.msn);
	/* in pieces that end elsewhere more numbers come in than go on */
	own(&r, 64);
	absorbed(&r, 40);
	absorbed(&r, 40);
	through(&r, 1);
	both(&r, 146, 11, 130, 10);
}

static void test_old_ones_are_forgotten(void **state)
{
	struct rig r;

	(void)state;
	begin(&r);
	for (uint32_t i = 0; i < 10; i++) {
		own(&r, 3);
		through(&r, 1);
	}
	assert_int_equal(r.map.seg.n, 10);
	psn_map_trim(&r.map, (struct wire_psn){(START + 24) & PSN_MASK});
	assert_int_equal(r.map.seg.n, 5);
	both(&r, 9, 26, 39, 36);
	assert_int_equal(psn_to_wire(&r.map, (struct host_psn){START}).v, PSN_NONE);
}

/* Who adds requests must not let it come to that: it is counted, and found by engine_check(). */
static void test_full_is_counted(void **state)
{
	struct rig r;

	(void)state;
	begin(&r);
	for (uint32_t i = 0; i < SEGMENTS; i++) {
		own(&r, 3);
		through(&r, 1);
	}
	both(&r, SEGMENTS - 1, 6 + SEGMENTS, 4 * SEGMENTS - 1, 6 + 2 * SEGMENTS);
	assert_int_equal(engine.counters[EC_NUMBERS_FULL], 0);
	own(&r, 3);
	through(&r, 1);
	assert_int_equal(engine.counters[EC_NUMBERS_FULL], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_ahead),
		cmocka_unit_test(test_met_by_one_that_does_not_go_on),
		cmocka_unit_test(test_old_ones_are_forgotten),
		cmocka_unit_test(test_full_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
