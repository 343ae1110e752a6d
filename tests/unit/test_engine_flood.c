// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * FAST-6: what passes by while it floods the link (core/passing.c). A lane is let pass as a whole
 * or not at all, is called back once, and never comes back in vain twice.
 */
#include "tests/unit/engine_rig.h"

#include "engine/core/core.h"

static const struct engine_config small = {
	.pool_bytes = 8 << 20, .max_conns = 16, .seed = 1, .wan_auto = true};

/* The link of the rig's engine is flooded, and has carried nothing: there is no room at all. */
static struct rig *start(void)
{
	struct rule rule = rig_rule(PEER_NONE, POLICY_EARLY, RIG_MTU);
	struct rig *r;
	struct rate *rate;

	rule.learn = LEARN_PSN;
	r = rig_create(&small, &rule);
	rate = &r->e->link[r->e->via].rate;
	rate->flood_from = 1;
	rate->flood_at = r->now;
	rate->best = 0;
	return r;
}

/* Whether the packet of a message of three that has @psn passes: its first is 3 n. */
static bool passes(struct rig *r, uint32_t psn)
{
	static const uint8_t opcode[] = {0, 1, 2};
	uint32_t before = r->nout;

	rig_rx(r, NEAR, "%02x 00ffff 00000022 %02x%06x 61*256", opcode[psn % 3],
	       psn % 3 == 2 ? 0x80 : 0, psn);
	return r->nout > before;
}

static uint64_t dropped(struct rig *r)
{
	return r->e->counters[EC_FLOOD_DROPPED];
}

static void test_called_once(void **state)
{
	struct rig *r = start();

	(void)state;
	assert_false(passes(r, 0));
	assert_false(passes(r, 1));
	assert_true(passes(r, 2)); /* the responder will ask for 0 */
	assert_false(passes(r, 3));
	assert_false(passes(r, 4));
	assert_false(passes(r, 5));
	assert_int_equal(dropped(r), 5);
	rig_destroy(r);
}

static void test_in_vain_once(void **state)
{
	struct rig *r = start();

	(void)state;
	assert_false(passes(r, 0));
	assert_false(passes(r, 1));
	assert_false(passes(r, 0)); /* it came back */
	assert_false(passes(r, 1));
	assert_true(passes(r, 2)); /* and is called once more */
	assert_true(passes(r, 0)); /* and comes again */
	assert_false(passes(r, 1));
	assert_true(passes(r, 2));
	rig_destroy(r);
}

/* With room it passes, from where its host began or went back to. */
static void test_room(void **state)
{
	struct rig *r = start();
	struct wan_link *k = &r->e->link[r->e->via];

	(void)state;
	k->passing = 1 << 20;
	assert_true(passes(r, 0));
	assert_true(passes(r, 1));
	k->passing = 0;
	assert_false(passes(r, 2));
	k->passing = 1 << 20;
	assert_false(passes(r, 3)); /* in vain: 2 is missing */
	assert_false(passes(r, 4));
	assert_true(passes(r, 2));
	assert_true(passes(r, 3));
	assert_true(k->passing < 1 << 20);
	rig_destroy(r);
}

/* Requests without data pass, and what comes from the WAN, and all when the flood is over. */
static void test_not_of_the_flood(void **state)
{
	struct rig *r = start();
	uint32_t before;

	(void)state;
	assert_false(passes(r, 0));
	before = r->nout;
	rig_rx(r, NEAR, "0c 00ffff 00000022 80000003 00*8 00000055 00000100");
	assert_int_equal(r->nout, before + 1);
	rig_rx(r, FAR, "04 00ffff 00000033 80000003 61*8");
	assert_int_equal(r->nout, before + 2);
	assert_false(passes(r, 4));
	r->now += 2000000000;
	assert_true(passes(r, 6));
	assert_true(passes(r, 7));
	rig_destroy(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_called_once),
		cmocka_unit_test(test_in_vain_once),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_not_of_the_flood),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
