// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A storage initiator and its target over a WAN that loses, bare and through two appliances: every
 * byte is that of its command, and no buffer is READ that is not offered.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/scenario/scenario.h"
#include "tests/scenario/world_storage.h"

static const struct storage_config kinds[] = {
	/* as Linux does it: a key for each command, 120 KiB at a time */
	{.min = 4096, .max = 300000, .depth = 8, .split = 120 << 10},
	/* as SPDK does it: one key, the same buffers again */
	{.min = 512, .max = 131072, .depth = 16, .split = 128 << 10, .one_key = true},
	/* buffers and pieces that begin anywhere; reads, data in capsules, refusals */
	{.min = 1,
	 .max = 60000,
	 .depth = 16,
	 .split = 5000,
	 .odd = true,
	 .reads = 300,
	 .inlined = 200,
	 .refused = 50},
	/* SPDK with lists of descriptors */
	{.min = 4096, .max = 131072, .depth = 8, .one_key = true, .parts = 4, .odd = true},
	{.min = 1, .max = 60000, .depth = 8, .split = 9000, .parts = 4, .reads = 200},
	/* iSER, with immediate data, and with a target that says other things in between */
	{.min = 4096, .max = 300000, .depth = 8, .form = FORM_ISER},
	{.min = 1,
	 .max = 60000,
	 .depth = 16,
	 .split = 5000,
	 .form = FORM_ISER,
	 .one_key = true,
	 .odd = true,
	 .reads = 200,
	 .inlined = 400,
	 .refused = 50,
	 .chatter = 20},
	/* NFS: read lists of several segments, each with its key; calls of the server */
	{.min = 4096, .max = 300000, .depth = 8, .split = 20 << 10, .form = FORM_NFS},
	{.min = 1,
	 .max = 60000,
	 .depth = 16,
	 .form = FORM_NFS,
	 .odd = true,
	 .parts = 4,
	 .reads = 200,
	 .inlined = 200,
	 .refused = 50,
	 .chatter = 100},
};

static void play(const struct storage_config *kind, bool appliances, bool announce, uint32_t mtu,
		 uint64_t seed)
{
	struct storage_config sc = *kind;
	struct world_config wc;
	struct rc_qp_config qc;
	struct conn_info ci;
	struct world_qp *q;
	struct world *w;

	world_defaults(&wc);
	wc.seed = seed;
	wc.storage = true;
	wc.announce = announce;
	wc.appliance[0] = wc.appliance[1] = appliances;
	wc.wan.delay_ns = 3 * MS;
	wc.wan.loss = 0.002;
	wc.lan.loss = 0.0005;
	wc.report_loss = 0.01;
	wc.check_custody = appliances;
	wc.check_every = 101;
	w = world_create(&wc);
	scenario_qp(&qc, 0, mtu, RC_PERMISSIVE);
	storage_qp(&qc, &sc);
	sc.count = 400;
	q = world_connect(w, &qc, seed % 2 ? RC_STRICT : RC_PERMISSIVE);
	assert_non_null(q);
	assert_true(storage_begin(q, &sc));
	scenario_finish(w, 1000 * SEC);
	assert_int_equal(storage_stats(q)->done, sc.count);
	if (announce) {
		assert_true(world_conn(w, 1, q, &ci));
		assert_string_equal(ci.lane[LANE_OUT].announce.phase, "on");
		assert_true(ci.lane[LANE_OUT].announce.served);
	}
	world_destroy(w);
}

static void test_bare(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		play(&kinds[i], false, false, 1024, 1 + i);
}

static void test_through_appliances(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		for (uint32_t mtu = 1024; mtu <= 4096; mtu *= 4)
			play(&kinds[i], true, false, mtu, 20 + i);
}

/* CONV-5: commands are READ in other pieces than they were READ ahead. */
static void test_announced(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		for (uint32_t mtu = 1024; mtu <= 4096; mtu *= 4)
			for (uint64_t seed = 0; seed < 4; seed++)
				play(&kinds[i], true, true, mtu, 10 + 10 * i + seed);
}

/*
 * An initiator whose port is slow: what is READ of it ahead takes many times what its
 * acknowledgements do. As long as answers come nothing is asked again, or it would have to say all
 * of it once more.
 */
static void test_slow_initiator(void **state)
{
	struct storage_config sc = {.min = 1 << 20, .max = 1 << 20, .depth = 4, .split = 128 << 10};
	struct world_config wc;
	struct rc_qp_config qc;
	struct world_qp *q;
	struct world *w;

	(void)state;
	world_defaults(&wc);
	wc.storage = true;
	wc.announce = true;
	wc.lan.rate_bps = 100000000;
	wc.wan.delay_ns = 10 * MS;
	wc.check_custody = true;
	w = world_create(&wc);
	scenario_qp(&qc, 0, 4096, RC_PERMISSIVE);
	storage_qp(&qc, &sc);
	sc.count = 40;
	q = world_connect(w, &qc, RC_PERMISSIVE);
	assert_non_null(q);
	assert_true(storage_begin(q, &sc));
	scenario_finish(w, 1000 * SEC);
	assert_int_equal(storage_stats(q)->done, sc.count);
	/* before anything was answered it is not known how slow it is */
	assert_in_range(engine_counter(w->engine[0], EC_RETX_LAN), 0, 2);
	world_destroy(w);
}

/* Writes over a WAN of 10 Gb/s, of which the appliances know the rate: what becomes of them behind
 * the first ones, in which the appliances learn. */
struct pace {
	double bps, each_ns;
	uint64_t pushed_packets, wan_packets, parity, repaired;
};

static struct pace pace_of(uint32_t block, uint32_t depth, uint32_t rtt_ms, double loss)
{
	struct storage_config sc = {.min = block,
				    .max = block,
				    .depth = depth,
				    .split = 120 << 10,
				    .count = loss > 0 ? 4000 : 1000};
	struct storage_stats warm = {0};
	struct world_config wc;
	struct rc_qp_config qc;
	struct pace p = {0};
	struct world_qp *q;
	struct world *w;
	struct conn_info near, far;
	uint64_t at = 0;

	world_defaults(&wc);
	wc.storage = wc.announce = true;
	wc.report_loss = loss;
	wc.wan.delay_ns = rtt_ms * MS / 2;
	wc.wan.queue_bytes = 16 << 20;
	wc.lan.store_bytes = 64 << 20;
	wc.engine.pool_bytes = 256u << 20;
	wc.engine.wan_rate = 1243000000;
	wc.path_mtu = 4096;
	w = world_create(&wc);
	wc.wan.loss = loss;
	for (int i = 0; i < 2; i++)
		world_set_wan(w, i, &wc.wan);
	scenario_qp(&qc, 0, 4096, RC_STRICT);
	storage_qp(&qc, &sc);
	q = world_connect(w, &qc, RC_STRICT);
	assert_non_null(q);
	assert_true(storage_begin(q, &sc));
	while (storage_stats(q)->done < sc.count && w->now < 100 * SEC) {
		world_run(w, w->now + 20000);
		if (at || storage_stats(q)->done < 100)
			continue;
		at = w->now;
		warm = *storage_stats(q);
		p.wan_packets = engine_counter(w->engine[0], EC_TX_WAN);
	}
	assert_int_equal(storage_stats(q)->done, sc.count);
	p.bps = 8e9 * (double)(storage_stats(q)->bytes - warm.bytes) /
		(double)(storage_stats(q)->last - at);
	p.each_ns = (double)(storage_stats(q)->sum - warm.sum) /
		    (double)(storage_stats(q)->done - warm.done);
	p.wan_packets = engine_counter(w->engine[0], EC_TX_WAN) - p.wan_packets;
	assert_true(world_conn(w, 0, q, &near) && world_conn(w, 1, q, &far));
	p.parity = near.lane[LANE_IN].announce.parity;
	p.repaired = far.lane[LANE_OUT].announce.repaired;
	assert_int_equal(engine_counter(w->engine[1], EC_PUSH_DROPPED), 0);
	p.pushed_packets = (storage_stats(q)->bytes - warm.bytes) / 4096;
	world_destroy(w);
	return p;
}

/* Many at a time: what was pushed is not sent once more as an answer, also where some answers are
 * sent because their push had yet to wait for its turn. */
static void test_pushed_once(void **state)
{
	struct pace p = pace_of(128 << 10, 32, 1, 0);

	(void)state;
	assert_true(p.bps > 9.5e9);
	assert_in_range(p.wan_packets, p.pushed_packets, p.pushed_packets * 106 / 100);
}

/* A few large ones: a command does not wait until all that was READ for others has been pushed. */
static void test_command_among_pushes(void **state)
{
	(void)state;
	assert_true(pace_of(1 << 20, 4, 1, 0).bps > 9.5e9);
}

/* One at a time: the response is given to the initiator when it comes, not when it has been named
 * together with others. A round trip, and 64 KiB on the link, are 1053 us. */
static void test_response_named_soon(void **state)
{
	(void)state;
	assert_true(pace_of(64 << 10, 1, 1, 0).each_ns < 1.03 * 1053000);
}

/* Where a packet in a thousand is lost, most losses are repaired where the packet is missing; else
 * each would hold up all commands for a round trip. 32 commands of 128 KiB in 20.1 ms are 1.67
 * Gb/s, and 98 % of that without loss. */
static void test_lossy(void **state)
{
	struct pace p = pace_of(128 << 10, 32, 20, 1e-3), q = pace_of(128 << 10, 32, 20, 0);

	(void)state;
	assert_true(p.bps > 0.955 * 1.67e9);
	assert_true(p.repaired > 20);
	/* 3 of 32 more, and commands twice */
	assert_true(p.wan_packets < p.pushed_packets * 119 / 100);
	assert_int_equal(q.parity, 0);
}

/* Where it is one in a hundred, several are lost of many a command. */
static void test_very_lossy(void **state)
{
	(void)state;
	assert_true(pace_of(128 << 10, 32, 20, 1e-2).bps > 0.9 * 1.67e9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lossy),
		cmocka_unit_test(test_very_lossy),
		cmocka_unit_test(test_bare),
		cmocka_unit_test(test_through_appliances),
		cmocka_unit_test(test_announced),
		cmocka_unit_test(test_slow_initiator),
		cmocka_unit_test(test_pushed_once),
		cmocka_unit_test(test_command_among_pushes),
		cmocka_unit_test(test_response_named_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
