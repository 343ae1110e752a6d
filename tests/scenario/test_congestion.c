// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How fast an appliance sends where nobody counts what arrives: over the WAN in single mode, in a
 * window. Time is virtual, and each world the same in every run.
 */
#include "tests/scenario/scenario.h"

#include <string.h>

#define MIB   (1ull << 20)
#define RTT   (20 * MS)
#define MTU   1024u
#define LAN_G 25000000000ull

/* One appliance, near the requester; the WAN carries @bps and queues @queue bytes at most. */
static struct world *single(uint64_t bps, uint64_t queue)
{
	struct world_config c;
	struct world *w;

	world_defaults(&c);
	c.single = true;
	c.appliance[1] = false;
	c.check_every = 997;
	c.path_mtu = MTU;
	c.wan.delay_ns = RTT / 2;
	c.wan.rate_bps = bps;
	c.wan.queue_bytes = queue;
	c.wan.store_bytes = 256 * MIB;
	c.lan.rate_bps = LAN_G;
	c.lan.store_bytes = 64 * MIB;
	c.engine.pool_bytes = 256 * MIB;
	w = world_create(&c);
	assert_non_null(w);
	return w;
}

/* A queue pair whose lane is held already, and small. */
static struct world_qp *hold(struct world *w, uint32_t ackreq_every)
{
	struct work k = {.ops = 1u << RC_SEND, .min = 64, .max = 64, .left = 64, .outstanding = 1};
	struct rc_qp_config qc;
	struct world_qp *q;

	scenario_qp(&qc, 1, MTU, RC_STRICT);
	qc.ackreq_every = ackreq_every;
	qc.timeout_exp = 17;
	q = world_connect(w, &qc, RC_STRICT);
	world_work(q, 0, &k);
	scenario_finish(w, 60 * SEC);
	scenario_held(w, q, 0);
	return q;
}

/* NTT-2: a host that asks for an ACK at the end of its messages only, and these are 4 MiB long: no
 * window of the appliance is over by a timeout. */
static void test_window_asks(void **state)
{
	struct work k = {.ops = 1u << RC_SEND, .min = 4 * MIB, .max = 4 * MIB, .left = 16};
	struct world *w = single(10000000000ull, 0);
	struct world_qp *q = hold(w, 0);
	uint64_t began = w->now, before = engine_counter(w->engine[0], EC_TIMEOUTS);

	(void)state;
	world_work(q, 0, &k);
	scenario_finish(w, 60 * SEC);
	assert_int_equal(engine_counter(w->engine[0], EC_TIMEOUTS), before);
	assert_true(w->now - began < 15 * RTT);
	world_destroy(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_window_asks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
