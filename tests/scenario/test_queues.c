// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Ports with several receive queues, as network cards have them (world_queues.c): packets of
 * different flows, and connection managers' packets, overtake each other between a port and the
 * engine. That is no loss, and must not be taken for one: all connections are learned and held,
 * nothing is sent again, and hosts see nothing of it.
 */
#include "tests/scenario/scenario.h"

#define RTT	 (20 * MS)
#define QPS	 8u
#define QUEUE_US 300u
#define SEEDS	 8u

static struct world *make(uint64_t seed, uint32_t queues, bool order)
{
	struct world_config c;
	struct world *w;

	world_defaults(&c);
	c.seed = seed;
	c.check_every = 101;
	c.check_custody = true;
	c.wan.delay_ns = RTT / 2;
	c.actors.queues = queues;
	c.actors.queue_us = QUEUE_US;
	c.actors.order = order;
	w = world_create(&c);
	assert_non_null(w);
	return w;
}

/* Each queue pair has a UDP port of its own, and every other one comes by the connection manager.
 */
static void live(struct world *w, struct world_qp **q)
{
	struct work work = {.ops = OPS_ALL, .min = 1, .max = 9000, .left = 200};
	struct rc_qp_config qc;

	for (uint32_t i = 0; i < QPS; i++) {
		scenario_qp(&qc, i + 1, 1024, RC_STRICT);
		qc.ports = RC_PORTS_BY_QPNS;
		q[i] = i % 2 ? world_connect_cm(w, &qc, RC_STRICT)
			     : world_connect(w, &qc, RC_STRICT);
		world_work(q[i], 0, &work);
		world_work(q[i], 1, &work);
	}
	scenario_finish(w, 100 * SEC);
}

static void quiet(uint32_t queues)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct world *w = make(seed, queues, false);
		struct world_qp *q[QPS];

		live(w, q);
		for (uint32_t i = 0; i < QPS; i++) {
			scenario_held(w, q[i], 0);
			scenario_held(w, q[i], 1);
		}
		for (int s = 0; s < 2; s++) {
			assert_int_equal(rc_host_totals(w->host[s]).retransmits, 0);
			assert_int_equal(rc_host_stats(w->host[s])->rx_bad_icrc, 0);
			assert_int_equal(shards_counter(w->shards[s], EC_RETX_WAN), 0);
		}
		world_destroy(w);
	}
}

/* While lanes open there are READs and ATOMICs on the way, whose answers come behind reports. */
static void test_one_queue(void **state)
{
	(void)state;
	quiet(0);
}

static void test_queues(void **state)
{
	(void)state;
	quiet(QUEUES_MAX);
}

/* Messages of hosts keep their causes though queues do not. */
static void test_order(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct world *w = make(seed, QUEUES_MAX, true);
		struct world_qp *q[QPS];

		live(w, q);
		assert_true(w->told[0] && w->told[1]);
		world_destroy(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_queue),
		cmocka_unit_test(test_queues),
		cmocka_unit_test(test_order),
	};

	return cmocka_run_group_tests_name("scenario/queues", tests, NULL, NULL);
}
