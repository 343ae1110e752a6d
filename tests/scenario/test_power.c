// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * CONV-8: the host of one appliance loses its power, and what it had in memory; it comes back
 * knowing nothing. Near the requester, acknowledged data that only this appliance had is lost: both
 * ends see it, although the requester would retransmit for ever, and what had come to the other
 * appliance is delivered. Near the responder nothing is lost, nor with a policy that acknowledges
 * nothing early. But if READs were asked ahead of the host, only this appliance knew what its
 * numbers mean to the responder, and both queue pairs fail.
 */
#include <unistd.h>

#include "tests/scenario/scenario.h"

#define WATCHDOG_S 240

static struct world *make(uint64_t seed, enum ack_policy policy, double loss, struct world_qp **q)
{
	struct work k = {
		.ops = OPS_WRITE_SEND, .min = 1, .max = 20000, .left = 3000, .outstanding = 16};
	struct world_config c;
	struct rc_qp_config qc;
	struct world *w;

	world_defaults(&c);
	c.seed = seed;
	c.check_every = 211;
	c.check_custody = true;
	c.wan.delay_ns = 10 * MS;
	c.wan.rate_bps = 400000000;
	c.wan.queue_bytes = 1 << 20; /* the link must not hold all that is in custody */
	c.wan.loss = c.report_loss = loss;
	c.appliance[0] = c.appliance[1] = true;
	c.policy = policy;
	c.prefetch = true;
	c.read_from = 0x10000; /* scenario_qp() */
	c.read_end = c.read_from + (1 << 20);
	c.engine.pool_bytes = 16 << 20;
	w = world_create(&c);
	assert_non_null(w);
	alarm(WATCHDOG_S);
	scenario_qp(&qc, 1, 1024, RC_PERMISSIVE);
	qc.timeout_exp = 14;
	qc.retry_cnt = 7; /* for ever */
	*q = world_connect(w, &qc, RC_STRICT);
	world_work(*q, 0, &k);
	world_run(w, w->now + 300 * MS);
	scenario_held(w, *q, 0);
	return w;
}

static void both_fail(struct world *w, const struct world_qp *q)
{
	uint64_t until = w->now + 3 * SEC;

	while (!w->violation && w->now < until &&
	       !(rc_qp_in_error(q->side[0].qp) && rc_qp_in_error(q->side[1].qp)))
		world_run(w, w->now + 10 * MS);
	if (!rc_qp_in_error(q->side[0].qp) || !rc_qp_in_error(q->side[1].qp))
		fail_msg("seed %u: requester %s, responder %s", (unsigned int)w->cfg.seed,
			 rc_qp_in_error(q->side[0].qp) ? "failed" : "waits",
			 rc_qp_in_error(q->side[1].qp) ? "failed" : "waits");
	assert_int_equal(w->faults[1], 1);
	scenario_safe(w, SEC);
	world_destroy(w);
	alarm(0);
}

static void test_near_requester(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 9; seed++) {
		struct world_qp *q;
		struct world *w = make(seed, POLICY_EARLY, seed & 1 ? 0.01 : 0, &q);

		world_restart(w, 0);
		assert_true(q->side[0].lost);
		both_fail(w, q);
	}
}

/* The appliance was ahead of the host, which was then idle. Nothing was promised. */
static void test_asked_ahead(void **state)
{
	struct work reads = {.ops = 1u << RC_READ,
			     .min = 4096,
			     .max = 4096,
			     .left = 150,
			     .outstanding = 4,
			     .streams = 1,
			     .stream_len = 4096,
			     .ring = true};
	struct work sends = {
		.ops = OPS_WRITE_SEND, .min = 1, .max = 20000, .left = 500, .outstanding = 16};

	(void)state;
	for (uint64_t seed = 1; seed < 13; seed++) {
		struct world_qp *q;
		struct world *w = make(seed, (enum ack_policy)(seed % 3), seed & 1 ? 0.01 : 0, &q);
		struct conn_info ci;

		scenario_finish(w, 600 * SEC);
		world_work(q, 0, &reads);
		scenario_finish(w, 600 * SEC);
		assert_true(world_conn(w, 0, q, &ci) && ci.lane[LANE_OUT].reads.hits);
		q->side[0].numbered =
			(struct flow_key){0}; /* what its host had noted is lost, too */
		world_restart(w, 0);
		world_work(q, 0, &sends);
		both_fail(w, q);
	}
}

static void unhurt(int side, enum ack_policy policy)
{
	for (uint64_t seed = 1; seed < 5; seed++) {
		struct world_qp *q;
		struct world *w = make(seed, policy, seed & 1 ? 0.01 : 0, &q);

		world_restart(w, side);
		scenario_finish(w, 600 * SEC);
		assert_int_equal(w->faults[0] + w->faults[1], 0);
		world_destroy(w);
		alarm(0);
	}
}

static void test_near_responder(void **state)
{
	(void)state;
	unhurt(1, POLICY_EARLY);
}

static void test_nothing_promised(void **state)
{
	(void)state;
	unhurt(0, POLICY_OFF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_near_requester),
		cmocka_unit_test(test_asked_ahead),
		cmocka_unit_test(test_near_responder),
		cmocka_unit_test(test_nothing_promised),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
