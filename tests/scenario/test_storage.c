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
};

static void play(const struct storage_config *kind, bool appliances, bool announce, uint32_t mtu,
		 uint64_t seed)
{
	struct storage_config sc = *kind;
	struct world_config wc;
	struct rc_qp_config qc;
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
			play(&kinds[i], true, false, mtu, 10 + i);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bare),
		cmocka_unit_test(test_through_appliances),
		cmocka_unit_test(test_announced),
		cmocka_unit_test(test_slow_initiator),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
