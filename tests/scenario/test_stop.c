// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One of two appliances is stopped in order, for good (SIGTERM: a drain, then the kernel bridges).
 * The hosts go on over the bridge: nothing fails, on either side, since the other appliance has
 * released what only both can serve.
 */
#include <unistd.h>

#include "tests/scenario/scenario.h"

#define WATCHDOG_S 240
#define DRAIN_NS   (10 * SEC)

static void bridge(struct world *w, int side)
{
	world_end(w, side);
	world_peer(w, !side, PEER_DOWN);
}

static void stop(uint64_t seed, int side, double loss)
{
	struct work k = {.ops = OPS_WRITE_SEND | 1u << RC_READ,
			 .min = 1,
			 .max = 20000,
			 .left = 2000,
			 .outstanding = 8};
	struct world_config c;
	struct rc_qp_config qc;
	struct world_qp *q;
	struct world *w;
	uint64_t until;

	world_defaults(&c);
	c.seed = seed;
	c.check_every = 211;
	c.check_custody = true;
	c.wan.delay_ns = 5 * MS;
	c.wan.loss = c.report_loss = loss;
	c.appliance[0] = c.appliance[1] = true;
	c.engine.pool_bytes = 16 << 20;
	w = world_create(&c);
	assert_non_null(w);
	alarm(WATCHDOG_S);
	scenario_qp(&qc, 1, 1024, seed & 1 ? RC_PERMISSIVE : RC_STRICT);
	q = world_connect(w, &qc, RC_STRICT);
	world_work(q, 0, &k);
	world_work(q, 1, &k);
	world_run(w, w->now + 300 * MS);
	scenario_held(w, q, 0);
	engine_drain(w->engine[side], w->now);
	until = w->now + DRAIN_NS;
	while (!w->violation && w->now < until && !engine_may_stop(w->engine[side]))
		world_run(w, w->now + MS);
	if (!engine_may_stop(w->engine[side]))
		fail_msg("seed %u: side %d does not come to an end", (unsigned int)seed, side);
	bridge(w, side);
	scenario_finish(w, 600 * SEC);
	if (w->faults[0] || w->faults[1])
		fail_msg("seed %u: side %d stopped, and something was broken by it",
			 (unsigned int)seed, side);
	world_destroy(w);
	alarm(0);
}

static void test_near_requester(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 5; seed++)
		stop(seed, 0, seed & 2 ? 0.002 : 0);
}

static void test_near_responder(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 5; seed++)
		stop(seed, 1, seed & 2 ? 0.002 : 0);
}

/* CONV-8: the WAN delivers nothing while one is to stop, and the host has nothing to wait for any
 * more: what was told to be done is lost, and its queue pair fails before the end. */
static void test_time_is_over(void **state)
{
	(void)state;
	for (int strict = 0; strict < 2; strict++) {
		struct world_config c;
		struct rc_qp_config qc;
		struct world_qp *q;
		struct world *w;
		uint64_t until;

		world_defaults(&c);
		c.wan.delay_ns = 5 * MS;
		c.appliance[0] = c.appliance[1] = true;
		w = world_create(&c);
		assert_non_null(w);
		scenario_qp(&qc, 1, 1024, strict ? RC_STRICT : RC_PERMISSIVE);
		q = world_connect(w, &qc, RC_STRICT);
		for (int i = 0; i < 2; i++) {
			world_work(q, 0,
				   &(struct work){.ops = OPS_WRITE_SEND, .max = 20000, .left = 50});
			scenario_finish(w, 60 * SEC);
		}
		scenario_held(w, q, 0);
		c.wan.loss = 1;
		world_set_wan(w, 0, &c.wan);
		world_set_wan(w, 1, &c.wan);
		world_work(q, 0, &(struct work){.ops = OPS_WRITE_SEND, .max = 20000, .left = 10});
		world_run(w, w->now + SEC);
		assert_int_equal(q->side[0].ok, 110);
		engine_drain(w->engine[0], w->now);
		world_run(w, w->now + DRAIN_NS);
		assert_false(engine_may_stop(w->engine[0]));
		assert_int_equal(engine_give_up(w->engine[0], w->now), 1);
		q->side[0].lost = true;
		until = w->now + 6 * SEC;
		while (w->now < until && !engine_may_stop(w->engine[0]))
			world_run(w, w->now + MS);
		assert_true(engine_may_stop(w->engine[0]));
		assert_true(rc_qp_in_error(q->side[0].qp));
		world_destroy(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_near_requester),
		cmocka_unit_test(test_near_responder),
		cmocka_unit_test(test_time_is_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
