// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Transfers through one and two appliances with everything a WAN does to packets. Each test ends
 * with the responder's memory and message order compared with what was posted, and with the
 * engines' invariants, which are also checked after every event (or every few, where a run is
 * long).
 */
#include "tests/scenario/scenario.h"

#include <string.h>

#include "wire/psn.h"

static struct world *make(struct world_config *c)
{
	struct world *w = world_create(c);

	assert_non_null(w);
	return w;
}

static void transfer(struct world_config *c, uint32_t mtu, uint32_t ops, uint32_t min, uint32_t max,
		     uint64_t n, bool both, bool must_hold)
{
	static const enum rc_personality who[] = {RC_STRICT, RC_PERMISSIVE};

	for (int p = 0; p < 2; p++) {
		struct world *w = make(c);
		struct rc_qp_config qc;
		struct world_qp *q;
		struct work k = {.ops = ops, .min = min, .max = max, .left = n};

		scenario_qp(&qc, 1, mtu, who[p]);
		q = world_connect(w, &qc, who[p]);
		world_work(q, 0, &k);
		if (both)
			world_work(q, 1, &k);
		scenario_finish(w, 600 * SEC);
		if (must_hold)
			scenario_held(w, q, 0);
		world_destroy(w);
	}
}

/* As transfer(), where a strict host may run out of retries as it would without appliances: then
 * what was executed must still be an exact prefix. A permissive one retries for ever and must get
 * through. */
static void transfer_safe(struct world_config *c, uint32_t mtu, uint32_t ops, uint32_t min,
			  uint32_t max, uint64_t n)
{
	for (int p = 0; p < 2; p++) {
		struct world *w = make(c);
		struct rc_qp_config qc;
		struct world_qp *q;
		struct work k = {.ops = ops, .min = min, .max = max, .left = n};

		scenario_qp(&qc, 1, mtu, p ? RC_PERMISSIVE : RC_STRICT);
		q = world_connect(w, &qc, p ? RC_PERMISSIVE : RC_STRICT);
		world_work(q, 0, &k);
		world_work(q, 1, &k);
		if (p)
			scenario_finish(w, 600 * SEC);
		else
			scenario_safe(w, 600 * SEC);
		world_destroy(w);
	}
}

/* NTT-1, CONV-1: two appliances, nothing lost: all request kinds, both hosts, every path MTU. */
static void test_pair_plain(void **state)
{
	(void)state;
	for (uint32_t mtu = 256; mtu <= 4096; mtu *= 2) {
		struct world_config c;

		world_defaults(&c);
		c.check_every = 97;
		c.seed = mtu;
		transfer(&c, mtu, OPS_WRITE_SEND | 1u << RC_SEND_INV, 0, 20000, 300, true, true);
	}
}

/* NTT-1: at distance the appliances make it faster; five times at least at this depth. */
static void test_pair_gain(void **state)
{
	uint64_t took[2];

	(void)state;
	for (int on = 0; on < 2; on++) {
		struct world_config c;
		struct world *w;
		struct rc_qp_config qc;
		struct world_qp *q;
		struct work k = {.ops = 1u << RC_WRITE,
				 .min = 65536,
				 .max = 65536,
				 .left = 2000,
				 .outstanding = 16};

		world_defaults(&c);
		c.appliance[0] = c.appliance[1] = on;
		c.check_every = 997;
		c.wan.delay_ns = 25 * MS;
		w = make(&c);
		scenario_qp(&qc, 1, 4096, RC_STRICT);
		q = world_connect(w, &qc, RC_STRICT);
		took[on] = w->now;
		world_work(q, 0, &k);
		scenario_finish(w, 600 * SEC);
		took[on] = q->side[0].last_ok_at - took[on];
		world_destroy(w);
	}
	assert_true(took[0] > 5 * took[1]);
}

/*
 * The link carries a part of what is sent for a while, so most is lost, with the names of what
 * came, and there are more holes than the far appliance can note. What comes beyond them is
 * refused, and must not be sent before what is missing. As soon as the link is good again, so is
 * the transfer.
 */
static void most_lost(uint32_t part, uint64_t for_ns)
{
	struct world_config c;
	struct rc_qp_config qc;
	struct work k = {.ops = 1u << RC_WRITE, .min = 65536, .max = 65536, .left = 8000};
	struct world_qp *q;
	struct world *w;
	uint64_t good, left;

	world_defaults(&c);
	c.check_every = 9973;
	c.engine.pool_bytes = 1u << 29;
	c.engine.wan_rate = 1200000000;
	c.wan.store_bytes = 256u << 20;
	c.wan.queue_bytes = 25000000;
	c.reports_in_band = true;
	w = make(&c);
	scenario_qp(&qc, 1, 1024, RC_STRICT);
	qc.depth = 128;
	q = world_connect(w, &qc, RC_STRICT);
	world_work(q, 0, &k);
	world_run(w, w->now + 100 * MS);
	c.wan.rate_bps /= part;
	world_set_wan(w, 0, &c.wan);
	world_run(w, w->now + for_ns);
	c.wan.rate_bps *= part;
	world_set_wan(w, 0, &c.wan);
	good = w->now;
	left = k.left * k.max - rc_qp_stats(q->side[1].qp)->rx_bytes;
	scenario_finish(w, 600 * SEC);
	scenario_held(w, q, 0);
	assert_true((double)(w->now - good) / SEC < (double)left / 1.1e9 + 0.7);
	world_destroy(w);
}

static void test_pair_most_lost(void **state)
{
	(void)state;
	most_lost(2, 300 * MS);
	most_lost(4, 300 * MS);
}

/* NTT-2, NTT-10: one appliance near the requester. */
static void test_single_requester_side(void **state)
{
	struct world_config c;

	(void)state;
	world_defaults(&c);
	c.appliance[1] = false;
	c.single = true;
	c.check_every = 97;
	transfer(&c, 1024, OPS_WRITE_SEND, 0, 20000, 500, false, true);
	c.wan.loss = 0.01;
	c.wan.dup = 0.01;
	transfer(&c, 1024, OPS_WRITE_SEND, 0, 20000, 300, true, true);
}

/* NTT-10: one appliance near the responder: it must not disturb. */
static void test_single_responder_side(void **state)
{
	struct world_config c;

	(void)state;
	world_defaults(&c);
	c.appliance[0] = false;
	c.single = true;
	c.check_every = 97;
	transfer(&c, 1024, OPS_WRITE_SEND, 0, 20000, 300, false, false);
	c.wan.loss = 0.01;
	transfer(&c, 1024, OPS_ALL, 0, 20000, 300, true, false);
}

static void impaired(double loss, double dup, double reorder, double corrupt, uint32_t ops,
		     uint64_t seed)
{
	struct world_config c;

	world_defaults(&c);
	c.seed = seed;
	c.check_every = 997;
	c.wan.delay_ns = 3 * MS;
	c.wan.loss = loss;
	c.wan.dup = dup;
	c.wan.reorder = reorder;
	c.wan.reorder_ns = 2 * MS;
	c.wan.corrupt = corrupt;
	c.report_loss = loss;
	transfer(&c, seed & 1 ? 1024 : 4096, ops, 0, 40000, 400, true, true);
}

static void test_loss(void **state)
{
	(void)state;
	impaired(0.01, 0, 0, 0, OPS_WRITE_SEND, 1);
	impaired(0.05, 0, 0, 0, OPS_WRITE_SEND, 2);
	impaired(0.15, 0, 0, 0, OPS_WRITE_SEND, 3);
}

static void test_duplication(void **state)
{
	(void)state;
	impaired(0, 0.2, 0, 0, OPS_WRITE_SEND, 4);
}

static void test_reordering(void **state)
{
	(void)state;
	impaired(0, 0, 0.1, 0, OPS_WRITE_SEND, 5);
	impaired(0, 0, 0.5, 0, OPS_WRITE_SEND, 6);
}

/* FAST-2: nothing is acknowledged that failed its check. */
static void test_corruption(void **state)
{
	(void)state;
	impaired(0, 0, 0, 0.03, OPS_WRITE_SEND, 7);
}

static void test_everything(void **state)
{
	(void)state;
	for (uint64_t seed = 10; seed < 20; seed++)
		impaired(0.03, 0.03, 0.03, 0.01, seed % 3 ? OPS_WRITE_SEND : OPS_ALL, seed);
}

/* ENG-4, ENG-10: loss, reordering and corruption on the LANs too: sequence NAKs on both sides. */
static void test_lan_impaired(void **state)
{
	(void)state;
	for (uint64_t seed = 30; seed < 36; seed++) {
		struct world_config c;

		world_defaults(&c);
		c.seed = seed;
		c.check_every = 997;
		c.wan.delay_ns = 3 * MS;
		c.wan.loss = 0.01;
		c.lan.loss = 0.01;
		c.lan.dup = 0.01;
		c.lan.reorder = 0.01;
		c.lan.reorder_ns = 100000;
		c.lan.corrupt = 0.005;
		if (seed & 1)
			transfer(&c, 1024, OPS_WRITE_SEND, 0, 30000, 400, true, true);
		else
			transfer_safe(&c, 1024, OPS_ALL, 0, 30000, 400);
	}
}

/* ENG-2: PSNs wrap in the middle of custody. */
static void test_psn_wrap(void **state)
{
	(void)state;
	for (int p = 0; p < 2; p++) {
		struct world_config c;
		struct world *w;
		struct rc_qp_config qc;
		struct world_qp *q;
		struct work k = {.ops = OPS_WRITE_SEND, .min = 1, .max = 30000, .left = 400};

		world_defaults(&c);
		c.check_every = 97;
		c.wan.loss = 0.01;
		c.wan.delay_ns = 2 * MS;
		w = make(&c);
		scenario_qp(&qc, 1, 1024, p ? RC_PERMISSIVE : RC_STRICT);
		qc.sq_psn = 0xfffff0;
		qc.rq_psn = 0xffff00;
		q = world_connect(w, &qc, RC_STRICT);
		world_work(q, 0, &k);
		world_work(q, 1, &k);
		scenario_finish(w, 600 * SEC);
		scenario_held(w, q, 0);
		scenario_held(w, q, 1);
		world_destroy(w);
	}
}

/* ENG-5: a responder without receives: RNR NAKs are waited out near it, the requester never sees
 * one. */
static void test_rnr(void **state)
{
	struct world_config c;
	struct world *w;
	struct rc_qp_config qc;
	struct world_qp *q;
	struct work k = {.ops = 1u << RC_SEND, .min = 1, .max = 9000, .left = 500};
	struct conn_info ci;
	uint64_t before;

	(void)state;
	world_defaults(&c);
	c.check_every = 97;
	c.wan.loss = 0.005;
	w = make(&c);
	scenario_qp(&qc, 1, 1024, RC_STRICT);
	qc.rnr_p = 0.05;
	q = world_connect(w, &qc, RC_PERMISSIVE);
	k.left = 100;
	world_work(q, 0, &k);
	scenario_finish(w, 600 * SEC);
	scenario_held(w, q, 0);
	before = rc_qp_stats(q->side[0].qp)->rx_rnr;
	k.left = 400;
	world_work(q, 0, &k);
	scenario_finish(w, 600 * SEC);
	assert_int_equal(rc_qp_stats(q->side[0].qp)->rx_rnr, before);
	assert_true(world_conn(w, 1, q, &ci));
	assert_true(ci.lane[LANE_IN].rnr > 5);
	world_destroy(w);
}

/* Custody begins in the middle of a busy flow; the hosts see no difference but speed. */
static void test_midflow_join(void **state)
{
	(void)state;
	for (uint64_t seed = 50; seed < 52; seed++) {
		struct world_config c;
		struct world *w;
		struct rc_qp_config qc;
		struct world_qp *q;
		struct work k = {
			.ops = seed & 1 ? OPS_ALL : OPS_WRITE_SEND, .max = 30000, .left = 8000};

		world_defaults(&c);
		c.seed = seed;
		c.check_every = 4001;
		c.wan.delay_ns = 2 * MS;
		c.wan.loss = 0.002;
		c.appliance[0] = c.appliance[1] = true;
		w = make(&c);
		scenario_qp(&qc, 1, 1024, seed & 2 ? RC_PERMISSIVE : RC_STRICT);
		q = world_connect(w, &qc, RC_STRICT);
		world_work(q, 0, &k);
		world_work(q, 1, &k);
		world_run(w, w->now + 50 * MS);
		/* they let go of their lanes, and then forget everything */
		for (int s = 0; s < 2; s++)
			engine_drain(w->engine[s], w->now);
		world_run(w, w->now + 300 * MS);
		for (int s = 0; s < 2; s++)
			assert_int_equal(engine_custody(w->engine[s], -1, w->now).packets, 0);
		world_restart(w, 0);
		world_restart(w, 1);
		scenario_finish(w, 600 * SEC);
		scenario_held(w, q, 0);
		world_destroy(w);
	}
}

/* NTT-3, CONV-2: many QPs of one host pair that all start at PSN 0 in step with each other: pairs
 * are found or not found, but never wrong. */
static void test_same_psns(void **state)
{
	(void)state;
	for (uint64_t seed = 60; seed < 64; seed++) {
		struct world_config c;
		struct world *w;
		uint32_t n = seed & 1 ? 2 : 16, paired = 0;

		world_defaults(&c);
		c.seed = seed;
		c.check_every = 4001;
		c.wan.delay_ns = 1 * MS;
		c.wan.loss = seed & 2 ? 0.01 : 0;
		w = make(&c);
		for (uint32_t i = 0; i < n; i++) {
			struct rc_qp_config qc;
			struct world_qp *q;
			struct work k = {
				.ops = OPS_WRITE_SEND, .min = 100, .max = 9000, .left = 200};

			scenario_qp(&qc, i, 1024, RC_STRICT);
			qc.sq_psn = qc.rq_psn = 0;
			q = world_connect(w, &qc, RC_STRICT);
			world_work(q, 0, &k);
			world_work(q, 1, &k);
		}
		scenario_finish(w, 600 * SEC);
		for (int s = 0; s < 2; s++) {
			struct conn_info ci;
			uint32_t from = 0;

			while (engine_conn_next(w->engine[s], from, w->now, &ci)) {
				from = ci.id + 1;
				if (!ci.paired)
					continue;
				paired++;
				assert_int_equal((ci.lqpn ^ ci.rqpn) & 0xff, 0);
			}
		}
		assert_true(paired > 0);
		world_destroy(w);
	}
}

/* POOL-3, POOL-10, FAST-7: a pool far too small for the distance. */
static void test_full_pool(void **state)
{
	(void)state;
	for (uint64_t seed = 70; seed < 74; seed++) {
		struct world_config c;
		struct world *w;
		struct work k = {.ops = OPS_WRITE_SEND, .min = 1000, .max = 300000, .left = 50};

		world_defaults(&c);
		c.seed = seed;
		c.check_every = 4001;
		c.engine.pool_bytes = 4 << 20;
		c.wan.delay_ns = 10 * MS;
		c.wan.rate_bps = 1000000000ull;
		c.wan.loss = seed & 1 ? 0.01 : 0;
		w = make(&c);
		for (uint32_t i = 0; i < 4; i++) {
			struct rc_qp_config qc;
			struct world_qp *q;

			scenario_qp(&qc, i, 1024, i & 1 ? RC_STRICT : RC_PERMISSIVE);
			q = world_connect(w, &qc, RC_STRICT);
			world_work(q, 0, &k);
			world_work(q, 1, &k);
		}
		scenario_finish(w, 900 * SEC);
		world_destroy(w);
	}
}

/* The WAN is slower than the LAN and paced at its rate: nothing is dropped for want of room. */
static void test_paced(void **state)
{
	struct world_config c;
	struct world *w;
	struct rc_qp_config qc;
	struct world_qp *q;
	struct work k = {.ops = 1u << RC_WRITE, .min = 65536, .max = 65536, .left = 1000};

	(void)state;
	world_defaults(&c);
	c.check_every = 997;
	c.wan.rate_bps = 1000000000ull;
	c.wan.queue_bytes = 128 << 10;
	c.engine.wan_rate = 120000000;
	w = make(&c);
	scenario_qp(&qc, 1, 4096, RC_STRICT);
	qc.timeout_exp = 19;
	q = world_connect(w, &qc, RC_STRICT);
	world_work(q, 0,
		   &(struct work){.ops = 1u << RC_WRITE,
				  .min = 8192,
				  .max = 8192,
				  .left = 30,
				  .outstanding = 4});
	scenario_finish(w, 600 * SEC);
	world_work(q, 0, &k);
	scenario_finish(w, 600 * SEC);
	assert_int_equal(wan_stats(w->link[WORLD_WAN(0)])->lost_queue, 0);
	world_destroy(w);
}

static void test_policies(void **state)
{
	(void)state;
	for (int policy = 0; policy < POLICIES; policy++) {
		struct world_config c;

		world_defaults(&c);
		c.policy = policy;
		c.check_every = 97;
		c.wan.delay_ns = 2 * MS;
		c.wan.loss = 0.01;
		transfer(&c, 1024, OPS_WRITE_SEND, 0, 30000, 300, true, true);
		transfer(&c, 1024, OPS_ALL, 0, 30000, 300, true, true);
	}
}

/* ENG-3, ENG-8, NTT-9 (its default), POOL-7, CONV-3: READs and ATOMICs pass in their order among
 * WRITEs in custody. */
static void test_reads_and_atomics(void **state)
{
	(void)state;
	for (uint64_t seed = 80; seed < 84; seed++) {
		struct world_config c;

		world_defaults(&c);
		c.seed = seed;
		c.check_every = 97;
		c.wan.delay_ns = 2 * MS;
		c.wan.loss = seed & 1 ? 0.02 : 0;
		transfer(&c, 1024, OPS_ALL, 0, 30000, 300, true, true);
	}
}

/* ENG-8, POOL-7, FAST-5: what the WAN loses of READ answers comes again from the appliance near the
 * responder: no host asks twice, and without a rule that reads ahead nothing is asked that no host
 * asked for. */
static void test_answers_repaired(void **state)
{
	(void)state;
	for (int strict = 0; strict < 2; strict++) {
		const struct rc_stats *near, *far;
		struct world_config c;
		struct world *w;
		struct rc_qp_config qc;
		struct world_qp *q;
		uint64_t again, done;

		world_defaults(&c);
		c.wan.delay_ns = 10 * MS;
		w = make(&c);
		scenario_qp(&qc, 1, 1024, strict ? RC_STRICT : RC_PERMISSIVE);
		qc.timeout_exp = 17; /* 0.5 s, and no answer takes so long */
		q = world_connect(w, &qc, strict ? RC_STRICT : RC_PERMISSIVE);
		for (int i = 0; i < 2; i++) {
			world_work(q, 0,
				   &(struct work){.ops = 1u << RC_READ, .max = 65536, .left = 20});
			scenario_finish(w, 60 * SEC);
		}
		scenario_held(w, q, 0);
		near = rc_qp_stats(q->side[0].qp);
		far = rc_qp_stats(q->side[1].qp);
		again = near->retransmits;
		done = far->rx_requests;

		c.wan.loss = 0.02;
		world_set_wan(w, 0, &c.wan);
		world_set_wan(w, 1, &c.wan);
		world_work(q, 0,
			   &(struct work){
				   .ops = 1u << RC_READ, .min = 65536, .max = 65536, .left = 300});
		scenario_finish(w, 60 * SEC);
		assert_int_equal(near->retransmits, again);
		assert_int_equal(far->rx_requests - done, 300);
		assert_true(engine_counter(w->engine[1], EC_RETX_WAN) +
				    engine_counter(w->engine[0], EC_PARITY_REPAIRED) >
			    200);
		world_destroy(w);
	}
}

/* Large messages: many times the pool's high water, MTU 256 so that PSNs run fast. */
static void test_large_messages(void **state)
{
	struct world_config c;
	struct world *w;
	struct rc_qp_config qc;
	struct world_qp *q;

	(void)state;
	world_defaults(&c);
	c.check_every = 5003;
	c.engine.pool_bytes = 16 << 20;
	w = make(&c);
	scenario_qp(&qc, 1, 256, RC_STRICT);
	q = world_connect(w, &qc, RC_STRICT);
	world_work(q, 0, &(struct work){.ops = OPS_WRITE_SEND, .max = 9000, .left = 200});
	scenario_finish(w, 600 * SEC);
	scenario_held(w, q, 0);
	world_work(
		q, 0,
		&(struct work){.ops = OPS_WRITE_SEND, .min = 500000, .max = 1000000, .left = 20});
	scenario_finish(w, 600 * SEC);
	world_destroy(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pair_plain),
		cmocka_unit_test(test_pair_gain),
		cmocka_unit_test(test_pair_most_lost),
		cmocka_unit_test(test_single_requester_side),
		cmocka_unit_test(test_single_responder_side),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_duplication),
		cmocka_unit_test(test_reordering),
		cmocka_unit_test(test_corruption),
		cmocka_unit_test(test_everything),
		cmocka_unit_test(test_lan_impaired),
		cmocka_unit_test(test_psn_wrap),
		cmocka_unit_test(test_rnr),
		cmocka_unit_test(test_midflow_join),
		cmocka_unit_test(test_same_psns),
		cmocka_unit_test(test_full_pool),
		cmocka_unit_test(test_paced),
		cmocka_unit_test(test_policies),
		cmocka_unit_test(test_reads_and_atomics),
		cmocka_unit_test(test_answers_repaired),
		cmocka_unit_test(test_large_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
