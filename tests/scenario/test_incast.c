// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What congestion near the responder does to an appliance: many queue pairs that meet at one host's
 * switch port (incast), and congestion notifications.
 */
#include "tests/scenario/scenario.h"

#define QPS   16u
#define QUEUE (512u << 10) /* what the port in front of the host holds */

static void to_host(struct world *w, uint64_t rate_bps)
{
	struct wan_config c = *wan_config(w->link[WORLD_LAN_OUT(1)]);

	c.rate_bps = rate_bps;
	c.queue_bytes = QUEUE;
	wan_set(w->link[WORLD_LAN_OUT(1)], &c);
}

static uint32_t held(struct world *w)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->nqps; i++) {
		struct conn_info ci;

		n += world_conn(w, 1, &w->qp[i], &ci) && ci.lane[LANE_IN].state == LANE_HELD;
	}
	return n;
}

/*
 * Twice as much comes over the WAN as the port in front of the host carries. Its buffer is small.
 * Some loss tells how small; from then on there is none, and the port is busy all the same.
 * Messages are of four packets: a lane may always go on to the next one that asks for an ACK.
 */
static void test_incast(void **state)
{
	struct world_config c = {
		.seed = 7,
		.appliance = {true, true},
		.wan = {.delay_ns = 5 * MS, .rate_bps = 20000000000ull},
		.lan = {.delay_ns = 5000},
		.engine = {.pool_bytes = 256 << 20},
		.qps_max = QPS,
	};
	struct world *w = world_create(&c);
	struct work k = {.ops = 1u << RC_WRITE, .min = 16384, .max = 16384, .left = 1000000};
	const struct wan_stats *port;
	uint64_t lost, bytes;

	(void)state;
	assert_non_null(w);
	port = wan_stats(w->link[WORLD_LAN_OUT(1)]);
	for (uint32_t i = 0; i < QPS; i++) {
		struct rc_qp_config qc;

		scenario_qp(&qc, i + 1, 4096, RC_STRICT);
		world_work(world_connect(w, &qc, RC_STRICT), 0, &k);
	}
	/* in custody first: what passes is no business of the appliance's */
	while (held(w) < QPS && !w->violation)
		world_run(w, w->now + MS);
	to_host(w, 10000000000ull);
	world_run(w, w->now + 200 * MS);
	assert_true(port->lost_queue > 0); /* else this is no test of a port that is too small */
	lost = port->lost_queue;
	bytes = port->delivered_bytes;
	world_run(w, w->now + 300 * MS);
	if (w->violation)
		fail_msg("%s", w->violation);
	/* none, but for what a limit that is tried anew may cost */
	assert_true((port->lost_queue - lost) * 4096 * 1000 <= port->delivered_bytes - bytes);
	/* 10 Gbit/s for 300 ms */
	assert_in_range((port->delivered_bytes - bytes) / 1000, 375000 * 8 / 10, 375000 * 11 / 10);
	world_destroy(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_incast),
	};

	return cmocka_run_group_tests_name("scenario/incast", tests, NULL, NULL);
}
