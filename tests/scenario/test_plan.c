// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What `longhaul plan' foretells (cli/plan_model.c), against what model hosts get over a link of 1
 * Gb/s and 50 ms: one queue pair, WRITEs. Time is virtual, and each world the same in every run.
 */
#include "tests/scenario/scenario.h"

#include <math.h>

#include "cli/plan_model.h"
#include "tests/scenario/world_priv.h"

#define BARE	POLICIES
#define KIB	1024u
#define MIB	(1ull << 20)
#define NO_CORE 1.0 /* ns a packet: no processor is the limit */

static const struct plan_link LINK = {.rate = 125e6, .rtt = 0.05, .mtu = 4096, .outstanding = 128};

/* Bytes per second that the far host gets, with a pool of @pool bytes and @policy, or BARE. */
static double goodput(const struct plan_link *l, uint32_t size, int policy, double pool)
{
	struct work k = {.ops = 1u << RC_WRITE,
			 .min = size,
			 .max = size,
			 .left = UINT64_MAX,
			 .outstanding = l->outstanding};
	uint64_t rtt = (uint64_t)(l->rtt * SEC), from, before;
	struct world_config c;
	struct rc_qp_config qc;
	struct world_qp *q;
	struct world *w;
	double got;

	world_defaults(&c);
	c.appliance[0] = c.appliance[1] = policy != BARE;
	c.policy = policy != BARE ? (enum ack_policy)policy : POLICY_EARLY;
	c.path_mtu = l->mtu;
	c.wan.delay_ns = rtt / 2;
	c.wan.rate_bps = (uint64_t)(l->rate * 8);
	c.wan.queue_bytes = (uint64_t)plan_bdp(l);
	c.wan.store_bytes = 64 * MIB;
	c.lan.rate_bps = c.wan.rate_bps * 5 / 2;
	c.lan.store_bytes = 64 * MIB;
	c.reports_in_band = true;
	c.engine.pool_bytes = (uint64_t)pool;
	c.engine.wan_rate = (uint64_t)(l->rate * 0.99);
	w = world_create(&c);
	assert_non_null(w);
	scenario_qp(&qc, 1, l->mtu, RC_STRICT);
	qc.depth = 128;
	qc.timeout_exp = 17;
	qc.shadow = false;
	qc.no_verify = qc.no_land = true;
	q = world_connect(w, &qc, RC_STRICT);
	world_work(q, 0, &k);
	world_run(w, w->now + 10 * rtt);
	c.wan.loss = l->loss;
	world_set_wan(w, 0, &c.wan);
	world_set_wan(w, 1, &c.wan);
	world_run(w, w->now + 10 * rtt);
	from = w->now;
	before = rc_qp_stats(q->side[1].qp)->rx_bytes;
	world_run(w, w->now + 60 * rtt);
	got = (double)(rc_qp_stats(q->side[1].qp)->rx_bytes - before) * SEC /
	      (double)(w->now - from);
	assert_null(w->violation);
	world_destroy(w);
	return got;
}

/* @got is @foretold, but for so much. */
static void near(const char *what, double got, double foretold, double least, double most)
{
	print_message("%s: %.1f Mb/s, foretold %.1f (%.2f)\n", what, got * 8e-6, foretold * 8e-6,
		      got / foretold);
	if (got < foretold * least || got > foretold * most)
		fail_msg("%s: %.1f Mb/s instead of %.1f", what, got * 8e-6, foretold * 8e-6);
}

static void cell(double loss, uint32_t size, uint32_t outstanding, uint32_t mtu)
{
	struct plan_link l = LINK;
	struct plan_goodput g;
	double pool;

	l.loss = loss;
	l.outstanding = outstanding;
	l.mtu = mtu;
	g = plan_goodput(&l, size, NO_CORE);
	pool = plan_want(&l);
	print_message("loss %g, %u x %u, path MTU %u, pool %.1f MB\n", loss, outstanding, size, mtu,
		      pool / 1e6);
	near("bare", goodput(&l, size, BARE, MIB * 8), g.bare, 0.7, 1.2);
	near("honest", goodput(&l, size, POLICY_HONEST, pool), g.honest, 0.85, 1.2);
	near("early", goodput(&l, size, POLICY_EARLY, pool), g.early, 0.975, 1.05);
}

static void test_no_loss(void **state)
{
	(void)state;
	cell(0, 16 * KIB, 128, 4096);
	cell(0, 1024 * KIB, 1, 4096);
}

static void test_loss(void **state)
{
	(void)state;
	cell(1e-3, 32 * KIB, 128, 4096);
	cell(1e-3, 64 * KIB, 16, 1024);
	cell(1e-2, 16 * KIB, 128, 4096);
}

/* The pool is not larger than it must be: with two thirds of it a part of the rate is missing. */
static void test_pool(void **state)
{
	static const double losses[] = {0, 1e-3, 1e-2};

	(void)state;
	for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++) {
		struct plan_link l = LINK;
		double most;

		l.loss = losses[i];
		most = plan_goodput(&l, 64 * KIB, NO_CORE).early;
		print_message("loss %g, pool %.1f MB\n", l.loss, plan_want(&l) / 1e6);
		near("pool", goodput(&l, 64 * KIB, POLICY_EARLY, plan_want(&l)), most, 0.975, 1.01);
		near("two thirds", goodput(&l, 64 * KIB, POLICY_EARLY, plan_want(&l) * 2 / 3), most,
		     0.3, 0.95);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_loss),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_pool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
