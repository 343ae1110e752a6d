// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Lanes that begin before anything was acknowledged: with the connection manager at the first
 * request, because the far appliance has offered to agree when the handshake passed; without a path
 * MTU, at a message of one packet. What was offered may be forgotten meanwhile; then there is
 * custody all the same, and nothing may be lost.
 */
#include "tests/scenario/scenario.h"

#define RTT  (40 * MS)
#define MANY 64u

static struct world *make(uint64_t seed, double loss)
{
	struct world_config c;
	struct world *w;

	world_defaults(&c);
	c.seed = seed;
	c.check_every = 101;
	c.check_custody = true;
	c.wan.delay_ns = RTT / 2;
	c.wan.rate_bps = 1000000000ull;
	c.wan.loss = c.report_loss = loss;
	w = world_create(&c);
	assert_non_null(w);
	return w;
}

static struct world_qp *by_cm(struct world *w, uint32_t n, bool credits)
{
	struct rc_qp_config qc;

	scenario_qp(&qc, n, 1024, RC_STRICT);
	qc.depth = 128;
	qc.credits = credits;
	qc.honor_credits = credits;
	return world_connect_cm(w, &qc, RC_STRICT);
}

static void up(struct world *w, const struct world_qp *q)
{
	while (!q->up)
		world_run(w, w->now + MS / 10);
}

/* The first requests are acknowledged at LAN speed, of both hosts. */
static void test_first_requests(void **state)
{
	struct world *w = make(1, 0);
	struct world_qp *q = by_cm(w, 1, false);
	struct work work = {.ops = OPS_WRITE_SEND, .min = 1, .max = 9000, .left = 100};

	(void)state;
	world_work(q, 0, &work);
	world_work(q, 1, &work);
	up(w, q);
	world_run(w, w->now + RTT / 4);
	assert_true(q->side[0].ok > 10);
	assert_int_equal(rc_messages(q->side[1].qp), 0); /* none can be there yet */
	scenario_finish(w, 100 * SEC);
	assert_int_equal(w->opened[0] + w->opened[1], 4); /* each lane once, at both ends */
	world_destroy(w);
}

/* A responder that gives credits must say how many before anybody is told. */
static void test_credits(void **state)
{
	struct world *w = make(2, 0);
	struct world_qp *q = by_cm(w, 1, true);
	struct work work = {.ops = OPS_WRITE_SEND, .min = 1, .max = 9000, .left = 100};

	(void)state;
	world_work(q, 0, &work);
	up(w, q);
	world_run(w, w->now + RTT / 4);
	assert_int_equal(q->side[0].ok, 0);
	scenario_finish(w, 100 * SEC);
	world_destroy(w);
}

/* The far appliance forgets what it has offered, before or after the lane began. */
static void test_forgotten(void **state)
{
	(void)state;
	for (uint32_t after = 0; after < 30; after++) {
		struct world *w = make(10 + after, 0);
		struct world_qp *q = by_cm(w, 1, false);
		struct work work = {.ops = OPS_WRITE_SEND, .min = 1, .max = 9000, .left = 300};

		world_work(q, 0, &work);
		world_run(w, w->now + RTT * 3 / 4 + after * RTT / 15);
		world_restart(w, 1);
		up(w, q);
		scenario_finish(w, 100 * SEC);
		assert_false(rc_qp_in_error(q->side[0].qp));
		world_destroy(w);
	}
}

/* Reports get lost, and packets of the handshake. */
static void test_losses(void **state)
{
	(void)state;
	for (uint64_t seed = 100; seed < 140; seed++) {
		struct world *w = make(seed, 0.1);
		struct work work = {.ops = OPS_WRITE_SEND, .min = 1, .max = 9000, .left = 200};

		for (uint32_t n = 1; n <= 4; n++) {
			struct world_qp *q = by_cm(w, n, false);

			world_work(q, 0, &work);
			world_work(q, 1, &work);
		}
		scenario_finish(w, 200 * SEC);
		world_destroy(w);
	}
}

/* Small messages first, and nothing has told the path MTU; then READs, which need one. */
static void test_no_mtu(void **state)
{
	(void)state;
	for (int loss = 0; loss < 2; loss++) {
		struct world *w = make(3, loss * 0.02);
		struct rc_qp_config qc;
		struct world_qp *q;

		scenario_qp(&qc, 1, 1024, RC_STRICT);
		qc.depth = 16;
		q = world_connect(w, &qc, RC_STRICT);
		world_work(q, 0,
			   &(struct work){.ops = OPS_WRITE_SEND, .min = 1, .max = 64, .left = 500});
		world_run(w, w->now + 20 * RTT);
		assert_int_equal(w->opened[0], 1);
		scenario_finish(w, 100 * SEC);
		world_work(q, 0,
			   &(struct work){.ops = OPS_ALL, .min = 1, .max = 9000, .left = 300});
		scenario_finish(w, 200 * SEC);
		scenario_held(w, q, 0);
		world_destroy(w);
	}
}

static uint32_t lanes_held(struct world *w, struct world_qp *const *q, uint32_t n)
{
	struct conn_info ci;
	uint32_t held = 0;

	for (uint32_t i = 0; i < n; i++)
		held += world_conn(w, 0, q[i], &ci) && ci.lane[LANE_OUT].state == LANE_HELD;
	return held;
}

/*
 * FAST-6: many begin at once, without the connection manager, at the rate of the LAN. What passes
 * floods the link, most of it is lost, and all send all of it again when their timers fire. Held
 * back to what the link carries, they become held some at a time; else none of them in 5 s.
 */
static void test_many_at_once(void **state)
{
	struct work work = {.ops = 1u << RC_WRITE, .min = 65536, .max = 65536, .left = UINT64_MAX};
	struct world_config c;
	struct world *w;
	struct world_qp *q[MANY];
	struct rc_qp_config qc;

	(void)state;
	world_defaults(&c);
	c.seed = 1;
	c.path_mtu = 4096;
	c.reports_in_band = true;
	c.engine.wan_auto = true;
	c.engine.max_conns = 2 * MANY;
	c.wan.delay_ns = 10 * MS;
	c.wan.rate_bps = 250000000;
	c.wan.store_bytes = 625000;
	c.lan.rate_bps = 625000000;
	c.lan.store_bytes = 256ull << 20;
	w = world_create(&c);
	assert_non_null(w);
	for (uint32_t i = 0; i < MANY; i++) {
		scenario_qp(&qc, i + 1, 4096, RC_PERMISSIVE);
		qc.depth = 16;
		qc.timeout_exp = 17;
		qc.sq_psn = qc.rq_psn = i * 0x10000 + 7;
		q[i] = world_connect(w, &qc, RC_PERMISSIVE);
		world_work(q[i], 0, &work);
	}
	world_run(w, w->now + 5 * SEC);
	assert_true(lanes_held(w, q, MANY) > MANY / 2);
	world_run(w, w->now + 5 * SEC);
	assert_int_equal(lanes_held(w, q, MANY), MANY);
	for (uint32_t i = 0; i < MANY; i++)
		assert_false(rc_qp_in_error(q[i]->side[0].qp));
	world_destroy(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_requests), cmocka_unit_test(test_credits),
		cmocka_unit_test(test_forgotten),      cmocka_unit_test(test_losses),
		cmocka_unit_test(test_no_mtu),	       cmocka_unit_test(test_many_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
