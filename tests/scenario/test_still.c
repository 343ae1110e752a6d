// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Appliances that stand still, as a process does that is stopped, or a guest whose host does not
 * let it run (world_port.c): what their ports do meanwhile, and numbers that get other owners while
 * nobody sees it. None of those may be told what was meant for the former one.
 */
#include <string.h>

#include "tests/scenario/plan.h"
#include "tests/scenario/scenario.h"

#define RTT   (20 * MS)
#define SEEDS 6u

/* A connection works in one direction, and its near appliance stands still for @ms. */
static struct world *pause_of(uint32_t still, uint32_t ms)
{
	struct work work = {.ops = OPS_WRITE_SEND, .min = 1, .max = 4000, .left = 10000000};
	struct world_config c;
	struct rc_qp_config qc;
	struct world_qp *q;
	struct world *w;

	world_defaults(&c);
	c.check_custody = true;
	c.wan.delay_ns = RTT / 2;
	c.wan.rate_bps = 200000000;
	c.engine.pool_bytes = 4 << 20;
	c.actors.still = still;
	w = world_create(&c);
	assert_non_null(w);
	scenario_qp(&qc, 1, 1024, RC_PERMISSIVE);
	q = world_connect_cm(w, &qc, RC_PERMISSIVE);
	world_work(q, 0, &work);
	world_run(w, w->now + 10 * RTT);
	scenario_held(w, q, 0);
	assert_true(world_stand_still(w, 0));
	world_run(w, w->now + ms * MS);
	world_go_on(w, 0);
	q->side[0].work.left = 0;
	scenario_finish(w, 100 * SEC);
	return w;
}

/* A short pause costs no frame: all wait in the rings. After half a second the port passes what
 * comes, but not what is held; and after more than one second what waited is dropped. */
static void test_port(void **state)
{
	struct world *w = pause_of(STILL_PORTS, 300);

	(void)state;
	assert_int_equal(w->passed, 0);
	assert_int_equal(w->passed, 0);
	assert_int_equal(rc_host_totals(w->host[0]).retransmits, 0);
	world_destroy(w);
	w = pause_of(STILL_PORTS, 2000);
	assert_true(w->passed > 0);
	assert_true(rc_host_totals(w->host[0]).retransmits > 0);
	world_destroy(w);
	w = pause_of(STILL_PORTS | STILL_HELD, 2000);
	assert_int_equal(w->passed, 0);
	assert_true(rc_host_totals(w->host[0]).retransmits > 0);
	world_destroy(w);
}

/* @pauses: lines of incidents */
static void live(uint32_t seed, uint32_t policy, const char *pauses)
{
	struct plan_result r;
	char text[1024];
	struct plan p;
	FILE *f;

	snprintf(text, sizeof(text),
		 "world seed %u appliance0 1 appliance1 1 policy %u delay-ns 5000000 "
		 "rate-bps 1000000000 queue-bytes 4194304 pool-bytes 67108864 loss0 0.01 "
		 "loss1 0.01 still %u still-ms 200\n"
		 "qp mtu 1024 depth 16 max-rd 4 sq-psn 256 rq-psn 4096 mr-kib 1024 cm 1 reuse 3 "
		 "reuse-psn 2 reuse-cm 3 reuse-after 100000\n"
		 "work side 0 ops 31 max 4000 count 3000\n"
		 "work side 1 ops 31 max 4000 count 3000\n%s",
		 seed, policy, STILL_PORTS | STILL_HELD, pauses);
	f = fmemopen(text, strlen(text), "r");
	assert_non_null(f);
	assert_int_equal(plan_read(&p, f), 0);
	fclose(f);
	plan_run(&p, &r, NULL, NULL);
	if (r.violation || r.excuse)
		fail_msg("%s\n%s", r.violation ? r.violation : "not judged", text);
	assert_true(r.passed > 0);
	assert_true(r.unseen > 0);
	assert_true(r.reused > 0);
}

/* One appliance, or both at a time. The hosts give up, and others have their numbers before it goes
 * on. */
static void test_unseen(void **state)
{
	static const char *const pauses[] = {
		"incident what still at 300 for-ms 4000\n",
		"incident what still at 300 for-ms 4000 side 1\n",
		"incident what still at 300 for-ms 4000\n"
		"incident what still at 300 for-ms 3000 side 1\n",
		"incident what still at 300 for-ms 2500\n"
		"incident what still at 300 for-ms 9000 side 1\n",
	};

	(void)state;
	for (uint32_t seed = 1; seed <= SEEDS; seed++)
		for (uint32_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++)
			live(seed, seed % 2 ? POLICY_EARLY : POLICY_HONEST, pauses[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_port),
		cmocka_unit_test(test_unseen),
	};

	return cmocka_run_group_tests_name("scenario/still", tests, NULL, NULL);
}
