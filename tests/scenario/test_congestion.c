// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How fast an appliance sends where nobody counts what arrives: over the WAN in single mode, in a
 * window. Time is virtual, and each world the same in every run.
 */
#include "tests/scenario/scenario.h"

#include <inttypes.h>

#define MIB   (1ull << 20)
#define RTT   (20 * MS)
#define MTU   1024u
#define GBIT  1000000000ull
#define LAN_G (25 * GBIT)

/* One appliance, near the requester; the WAN carries @bps and queues @queue bytes at most, 0: no
 * limit. */
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
	struct world *w = single(10 * GBIT, 0);
	struct world_qp *q = hold(w, 0);
	uint64_t began = w->now, before = engine_counter(w->engine[0], EC_TIMEOUTS);

	(void)state;
	world_work(q, 0, &k);
	scenario_finish(w, 60 * SEC);
	assert_int_equal(engine_counter(w->engine[0], EC_TIMEOUTS), before);
	assert_true(w->now - began < 15 * RTT);
	world_destroy(w);
}

struct usage {
	double share;	/* of what the link carries in a second */
	double dropped; /* by its queue, of what came to it */
};

/* A link of 1 Gb/s whose queue holds @queue bytes (0: any), in the second after the first one. */
static struct usage use(uint64_t queue)
{
	struct work k = {.ops = 1u << RC_WRITE,
			 .min = 65536,
			 .max = 65536,
			 .left = UINT64_MAX,
			 .outstanding = 64};
	struct world *w = single(GBIT, queue);
	struct world_qp *q = hold(w, 64);
	const struct wan_stats *s = wan_stats(w->link[WORLD_WAN(0)]);
	struct wan_stats before;
	struct usage u;
	uint64_t taken;

	world_work(q, 0, &k);
	world_run(w, w->now + SEC);
	before = *s;
	taken = rc_qp_stats(q->side[1].qp)->rx_bytes;
	world_run(w, w->now + SEC);
	assert_null(world_verify(w, false));
	u.share = (double)(rc_qp_stats(q->side[1].qp)->rx_bytes - taken) * 8 / GBIT;
	u.dropped = (double)(s->lost_queue - before.lost_queue) / (double)(s->sent - before.sent);
	print_message("queue %" PRIu64 ": %.1f %% of the link, %.2f %% dropped\n", queue,
		      100 * u.share, 100 * u.dropped);
	world_destroy(w);
	return u;
}

/* NTT-2: where the queue is short, the lane stays near what the link carries, and what it loses is
 * little; where it is long, the link is full. */
static void test_short_queue(void **state)
{
	struct usage u = use(GBIT / 8 / (SEC / RTT) / 10);

	(void)state;
	assert_true(u.share > 0.6);
	assert_true(u.dropped < 0.01);
	u = use(0);
	assert_true(u.share > 0.93); /* headers take 6 % */
	assert_true(u.dropped == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_window_asks),
		cmocka_unit_test(test_short_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
