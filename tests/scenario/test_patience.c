// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * FAST-7: hosts with few retries, or none, and short timers, on links that lose nothing. A host
 * that lives without appliances lives with them, whatever holds its ACKs back: memory, the span of
 * PSNs, a WAN that is slower than the LAN. Each case runs without appliances first: a case in which
 * bare hosts die would show nothing.
 */
#include "tests/scenario/scenario.h"

#define HOSTS 6u

struct patience {
	uint32_t qps, mtu, retry, timeout_exp, ops, max, outstanding;
	uint64_t pool, span, rate_bps, delay_ns;
	enum ack_policy policy;
	bool single;
	uint64_t left;
};

static const struct patience plain = {
	.qps = HOSTS,
	.mtu = 1024,
	.timeout_exp = 14, /* 67 ms */
	.ops = OPS_WRITE_SEND,
	.max = 60000,
	.outstanding = 4,
	.pool = 64ull << 20,
	.rate_bps = 1000000000ull,
	.delay_ns = 2 * MS,
	.left = 400,
};

static struct world *make(const struct patience *p, bool bare)
{
	struct world_config c;
	struct rc_qp_config qc;
	struct world *w;

	world_defaults(&c);
	c.seed = 1;
	c.appliance[0] = !bare;
	c.appliance[1] = !bare && !p->single;
	c.single = p->single;
	c.policy = p->policy;
	c.wan.delay_ns = p->delay_ns;
	c.wan.rate_bps = p->rate_bps;
	c.wan.store_bytes = 64ull << 20;
	c.engine.pool_bytes = p->pool;
	if (p->span)
		c.engine.lane_span = p->span;
	c.engine.wan_rate = p->rate_bps / 8 * 97 / 100;
	w = world_create(&c);
	assert_non_null(w);
	for (uint32_t i = 0; i < p->qps; i++) {
		scenario_qp(&qc, i, p->mtu, RC_STRICT);
		qc.retry_cnt = (uint8_t)p->retry;
		qc.timeout_exp = (uint8_t)p->timeout_exp;
		world_work(world_connect(w, &qc, RC_STRICT), 0,
			   &(struct work){.ops = p->ops,
					  .min = 1,
					  .max = p->max,
					  .left = p->left,
					  .outstanding = p->outstanding});
	}
	return w;
}

/* Returns whether an appliance held anything back. */
static bool lives(const struct patience *p)
{
	bool held;

	for (int bare = 1; bare >= 0; bare--) {
		struct world *w = make(p, bare);

		scenario_finish(w, 600 * SEC);
		held = !bare && engine_counter(w->engine[0], EC_HELD_BACK) > 0;
		world_destroy(w);
	}
	return held;
}

/* The pool fills at the pace of the LAN, and the WAN empties it. */
static void test_pool(void **state)
{
	static const uint32_t exps[] = {12, 14}, retries[] = {0, 1};

	(void)state;
	for (uint32_t i = 0; i < 2; i++)
		for (uint32_t k = 0; k < 2; k++) {
			struct patience p = plain;

			p.timeout_exp = exps[i];
			p.retry = retries[k];
			assert_true(lives(&p));
		}
}

/* Where ACKs tell the truth the distance is there for both, and nothing more. */
static void test_policies(void **state)
{
	(void)state;
	for (uint32_t policy = POLICY_HONEST; policy < POLICIES; policy++) {
		struct patience p = plain;

		p.policy = (enum ack_policy)policy;
		lives(&p);
		p.timeout_exp = 10; /* 4.2 ms */
		p.delay_ns = 300000;
		p.outstanding = 1;
		lives(&p);
	}
}

/* The shortest timer that outlasts the WAN. */
static void test_short_timer(void **state)
{
	struct patience p = plain;

	(void)state;
	p.timeout_exp = 10;
	p.delay_ns = 300000;
	p.outstanding = 1;
	assert_true(lives(&p));
}

/* Little memory, few PSNs, one appliance. */
static void test_little_room(void **state)
{
	struct patience p = plain;

	(void)state;
	p.pool = 8ull << 20;
	assert_true(lives(&p));
	p = plain;
	p.span = 4096;
	assert_true(lives(&p));
	p = plain;
	p.single = true;
	assert_true(lives(&p));
}

/* The share of who came first shrinks when the others come: what it may still send is taken. */
static void test_share_shrinks(void **state)
{
	struct patience p = plain;

	(void)state;
	p.mtu = 4096;
	p.max = 200000;
	assert_true(lives(&p));
	p = plain;
	p.qps = 30;
	p.timeout_exp = 18;
	p.left = 150;
	assert_true(lives(&p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pool),	      cmocka_unit_test(test_policies),
		cmocka_unit_test(test_short_timer),   cmocka_unit_test(test_little_room),
		cmocka_unit_test(test_share_shrinks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
