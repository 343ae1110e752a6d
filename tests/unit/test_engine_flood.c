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

	rule.learn = LEARN_ALONE;
	r = rig_create(&small, &rule);
	undone_watch(NULL); /* tests change links by hand */
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

#define STRANGERS 256u
#define STEP_NS	  100000u

/* Many that are not held, with one packet each and a timer of 500 ms, and one lane that is. */
struct crowd {
	struct rig *r;
	struct wan_link *link;
	uint32_t psn, msn; /* of the lane's next request */
	uint32_t next[STRANGERS];
	uint64_t again[STRANGERS];
	uint64_t passed, held; /* bytes to the WAN */
	bool asked;
};

/* @best, @pace: bytes per second of the link; @limit: what the operator allows, 0: any. */
static void crowd_begin(struct crowd *c, double best, double pace, uint64_t limit)
{
	struct engine_config cfg = small;
	struct rule rule = rig_rule(PEER_NONE, POLICY_EARLY, RIG_MTU);

	memset(c, 0, sizeof(*c));
	rule.learn = LEARN_ALONE;
	cfg.max_conns = 1024;
	cfg.wan_rate = limit;
	c->r = rig_create(&cfg, &rule);
	undone_watch(NULL);
	c->psn = rig_learn(c->r, 100);
	rig_rx(c->r, NEAR, SEND_ONLY("%06x"), c->psn);
	rig_rx(c->r, FAR, ACK_TO_NEAR, c->psn++, 6u);
	c->msn = 7;
	rig_pass(c->r, 100 * RIG_MS);
	rig_forget(c->r);
	c->link = &c->r->e->link[LINK_ALONE];
	c->link->rate.flood_from = 1;
	c->link->rate.best = best;
	c->link->rate.pace = pace;
	c->link->rate.phase = RATE_CRUISE;
	c->link->tokens = 0;
	c->link->tokens_at = c->r->now;
}

/* Count what went to the WAN; whether a packet of a stranger was among it. */
static bool crowd_count(struct crowd *c)
{
	bool stranger = false;

	for (uint32_t i = 0; i < c->r->nout; i++) {
		const struct rig_frame *f = &c->r->out[i];
		bool own = !f->data[RIG_BTH + 6];

		if (f->port != PORT_WAN)
			continue;
		*(own ? &c->held : &c->passed) += f->len;
		stranger |= !own;
		if (own) {
			rig_rx(c->r, FAR, ACK_TO_NEAR, c->psn++, c->msn++);
			c->asked = false;
		}
	}
	rig_forget(c->r);
	return stranger;
}

static void crowd_run(struct crowd *c, uint64_t ns, bool lane_sends)
{
	uint64_t end = c->r->now + ns;

	for (uint32_t i = 0; c->r->now < end; i = (i + 1) % STRANGERS) {
		c->link->rate.flood_at = c->r->now;
		if (lane_sends && !c->asked) {
			rig_rx(c->r, NEAR, "04 40ffff 00000022 80%06x 61*256", c->psn);
			c->asked = true;
		}
		engine_tick(c->r->e, c->r->now);
		crowd_count(c);
		if (c->r->now >= c->again[i]) {
			rig_rx(c->r, NEAR, "04 00ffff 00000%03x 80%06x 61*256", 0x100 + i,
			       5000 * i + c->next[i]);
			if (crowd_count(c))
				c->next[i]++;
			else
				c->again[i] = c->r->now + 500 * RIG_MS;
		}
		c->r->now += STEP_NS;
	}
}

/* A lane that begins to send in a flood does not pay for what has passed before. */
static void test_no_debts(void **state)
{
	struct crowd c;
	uint64_t before;

	(void)state;
	crowd_begin(&c, 1e6, 8e5, 0);
	crowd_run(&c, 3 * NSEC_PER_SEC, false);
	assert_true(c.passed > 2000000);
	before = c.held;
	crowd_run(&c, 500 * RIG_MS, true);
	assert_true(c.held > before);
	rig_destroy(c.r);
}

/* Nor does it starve, also where much more was carried once than may be sent now, and the limit is
 * kept. */
static void test_limit(void **state)
{
	struct crowd c;

	(void)state;
	crowd_begin(&c, 1e6, 250000, 250000);
	crowd_run(&c, 5 * NSEC_PER_SEC, true);
	assert_true(c.held > 5 * 250000 / 5);
	assert_true(c.passed + c.held < 5 * 250000 * 11 / 10);
	rig_destroy(c.r);
}

/* What the operator has let go passes as if nobody stood between. */
static void test_bypass(void **state)
{
	struct rig *r = start();

	(void)state;
	r->e->all_bypassed = true;
	for (uint32_t psn = 0; psn < 6; psn++)
		assert_true(passes(r, psn));
	assert_int_equal(dropped(r), 0);
	rig_destroy(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_called_once), cmocka_unit_test(test_in_vain_once),
		cmocka_unit_test(test_room),	    cmocka_unit_test(test_not_of_the_flood),
		cmocka_unit_test(test_no_debts),    cmocka_unit_test(test_limit),
		cmocka_unit_test(test_bypass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
