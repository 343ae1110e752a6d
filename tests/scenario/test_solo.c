// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * NTT-7: one appliance, near the responder, asks for READs before their host does
 * (proxyd/engine/prefetch/solo.c). What the packets are is in scripts/solo; here are hosts that
 * live on them.
 */
#include "tests/scenario/scenario.h"

#include <stdlib.h>
#include <string.h>

#include "cli/wanem/prng.h"
#include "tests/scenario/readers.h"
#include "wire/psn.h"

static void config(struct world_config *c, uint64_t delay_ns, bool on)
{
	world_defaults(c);
	c->appliance[0] = false;
	c->appliance[1] = on;
	c->single = true;
	c->prefetch_single = true;
	c->read_depth = 16;
	c->check_every = 7;
	c->wan.delay_ns = delay_ns;
}

static struct world_qp *connect(struct world *w, enum rc_personality who)
{
	struct rc_qp_config qc;

	scenario_qp(&qc, 1, 4096, who);
	qc.timeout_exp = 18;
	return world_connect(w, &qc, who);
}

/* READs of 64 KiB, one behind the other. */
static void stream(struct world_qp *q, uint64_t n, uint32_t outstanding)
{
	struct work k = {.ops = 1u << RC_READ,
			 .min = 65536,
			 .max = 65536,
			 .left = n,
			 .outstanding = outstanding,
			 .streams = 1,
			 .stream_len = 65536,
			 .ring = true};

	world_work(q, 0, &k);
}

/* A lane that nobody has learned yet learns from READs, too, but only in turns that its MSNs show.
 * */
static void warm(struct world *w, struct world_qp *q)
{
	struct work k = {.ops = 1u << RC_WRITE, .min = 64, .max = 64, .left = 20, .outstanding = 1};

	world_work(q, 0, &k);
	scenario_finish(w, 600 * SEC);
}

/* After a restart of the appliance that renumbered, the two hosts' numbers do not agree any more.
 */
static void warm_fails(struct world *w, struct world_qp *q)
{
	struct work k = {.ops = 1u << RC_SEND, .min = 64, .max = 64, .left = 5, .outstanding = 1};

	world_work(q, 0, &k);
	world_run_done(w, w->now + 60 * SEC);
	assert_null(w->violation);
	assert_true(rc_qp_in_error(q->side[0].qp));
}

static uint64_t took(uint64_t delay_ns, uint32_t outstanding, uint64_t n, bool on,
		     enum rc_personality who)
{
	struct world_config c;
	struct world *w;
	struct world_qp *q;
	uint64_t t;

	config(&c, delay_ns, on);
	w = world_create(&c);
	assert_non_null(w);
	q = connect(w, who);
	warm(w, q);
	t = w->now;
	stream(q, n, outstanding);
	scenario_finish(w, 6000 * SEC);
	t = q->side[0].last_ok_at - t;
	if (on) {
		struct conn_info ci;

		assert_true(world_conn(w, 1, q, &ci));
		assert_true(ci.lane[LANE_IN].reads.hits > n / 10 * 9);
		assert_int_equal(rc_qp_stats(q->side[0].qp)->timeouts, 0);
	}
	world_destroy(w);
	return t;
}

/* When all WRITEs of one queue pair and all READs of another are done; @on: an appliance alone
 * stands at each side, one for each kind. */
static void took_both(bool on, uint64_t ns[2])
{
	struct world_config c;
	struct world *w;
	struct world_qp *q[2];

	config(&c, 20 * MS, on);
	c.appliance[0] = on;
	w = world_create(&c);
	assert_non_null(w);
	for (int i = 0; i < 2; i++) {
		struct rc_qp_config qc;

		scenario_qp(&qc, 1 + (uint32_t)i, 4096, RC_STRICT);
		qc.timeout_exp = 18;
		q[i] = world_connect(w, &qc, RC_STRICT);
		warm(w, q[i]);
	}
	ns[0] = ns[1] = w->now;
	world_work(q[0], 0,
		   &(struct work){.ops = 1u << RC_WRITE,
				  .min = 65536,
				  .max = 65536,
				  .left = 2000,
				  .outstanding = 2});
	stream(q[1], 2000, 2);
	scenario_finish(w, 6000 * SEC);
	for (int i = 0; i < 2; i++)
		ns[i] = q[i]->side[0].last_ok_at - ns[i];
	world_destroy(w);
}

/* NTT-12: WRITEs are answered near their requester, READs are asked ahead near their responder, by
 * two appliances that do not know each other. */
static void test_each_side(void **state)
{
	uint64_t bare[2], ours[2];

	(void)state;
	took_both(false, bare);
	took_both(true, ours);
	for (int i = 0; i < 2; i++) {
		print_message("# %s: %.1f times bare\n", i ? "READ" : "WRITE",
			      (double)bare[i] / (double)ours[i]);
		assert_true(bare[i] > 5 * ours[i]);
	}
}

static void test_gain(void **state)
{
	static const uint64_t delay[] = {10 * MS, 50 * MS};
	static const uint32_t outstanding[] = {1, 4};

	(void)state;
	for (int i = 0; i < 2; i++)
		for (int k = 0; k < 2; k++)
			for (int who = 0; who < 2; who++) {
				enum rc_personality p = who ? RC_PERMISSIVE : RC_STRICT;
				uint64_t n = 2000 * outstanding[k];
				uint64_t bare = took(delay[i], outstanding[k], n, false, p);
				uint64_t ours = took(delay[i], outstanding[k], n, true, p);

				print_message(
					"# %u outstanding, round trip %u ms: %.1f times bare\n",
					outstanding[k], (unsigned)(2 * delay[i] / MS),
					(double)bare / (double)ours);
				assert_true(bare > 3 * ours);
			}
}

/* Host 0 has got what it asked for, or its queue pair has failed. Returns true when it has not
 * failed. */
static bool judged(struct world *w, struct world_qp *q)
{
	bool done = world_run_done(w, w->now + 600 * SEC), failed;
	const char *bad;

	world_run(w, w->now + 5 * SEC); /* until what it has asked was seen, and the end of it */
	failed = rc_qp_in_error(q->side[0].qp);
	bad = q->side[0].data_wrong && failed ? NULL : world_verify(w, done && !failed);

	if (w->violation)
		bad = w->violation;
	if (!done && !bad)
		bad = "not done in time";
	if (bad) {
		world_dump(w, stderr);
		fail_msg("seed %llu: %s", (unsigned long long)w->cfg.seed, bad);
	}
	return !failed;
}

/* What the WAN loses of answers the host asks for again, and gets. */
static void test_answers_lost(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct world_config c;
		struct wan_config lossy;
		struct conn_info ci;
		struct world *w;
		struct world_qp *q;

		config(&c, 10 * MS, true);
		c.seed = seed;
		lossy = c.wan;
		lossy.loss = 0.001;
		w = world_create(&c);
		assert_non_null(w);
		q = connect(w, seed & 1 ? RC_STRICT : RC_PERMISSIVE);
		warm(w, q);
		world_set_wan(w, 1, &lossy);
		stream(q, 1500, seed & 2 ? 4 : 1);
		scenario_finish(w, 6000 * SEC);
		assert_true(world_conn(w, 1, q, &ci));
		assert_true(ci.lane[LANE_IN].reads.hits > 1000);
		assert_true(engine_counter(w->engine[1], EC_SOLO_REPEATED) > 0);
		assert_int_equal(engine_counter(w->engine[1], EC_FAULTS), 0);
		world_destroy(w);
	}
}

/* No appliance sees a request that the WAN loses: either the host asks again, or its queue pair
 * fails. */
static void test_requests_lost(void **state)
{
	uint32_t failed = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 16; seed++) {
		struct world_config c;
		struct wan_config lossy;
		struct world *w;
		struct world_qp *q;

		config(&c, 10 * MS, true);
		c.seed = seed;
		lossy = c.wan;
		lossy.loss = 0.002;
		lossy.reorder = 0.01;
		lossy.reorder_ns = 2 * MS;
		w = world_create(&c);
		assert_non_null(w);
		q = connect(w, seed & 1 ? RC_STRICT : RC_PERMISSIVE);
		warm(w, q);
		world_set_wan(w, 0, &lossy);
		stream(q, 1500, seed & 2 ? 4 : 1);
		failed += !judged(w, q);
		world_destroy(w);
	}
	assert_true(failed > 4);
}

/* Requests only reordered: each is seen, and nothing fails. */
static void test_reordered(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct world_config c;
		struct world *w;
		struct world_qp *q;
		struct wan_config shaky;

		config(&c, 10 * MS, true);
		c.seed = seed;
		shaky = c.wan;
		shaky.reorder = 0.05;
		shaky.reorder_ns = 2 * MS;
		w = world_create(&c);
		assert_non_null(w);
		q = connect(w, seed & 1 ? RC_STRICT : RC_PERMISSIVE);
		warm(w, q);
		world_set_wan(w, 0, &shaky);
		stream(q, 1000, 4);
		scenario_finish(w, 6000 * SEC);
		assert_int_equal(engine_counter(w->engine[1], EC_FAULTS), 0);
		world_destroy(w);
	}
}

/* Streams, and between them, after a pause, everything else, in other numbers by then. And then a
 * restart. */
static void test_shifted(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct world_config c;
		struct conn_info ci;
		struct world *w;
		struct world_qp *q;

		config(&c, 10 * MS, true);
		c.seed = seed;
		c.check_every = 1;
		w = world_create(&c);
		assert_non_null(w);
		q = connect(w, seed & 1 ? RC_STRICT : RC_PERMISSIVE);
		warm(w, q);
		for (int i = 0; i < 4; i++) {
			struct work mix = {.ops = OPS_ALL, .min = 0, .max = 20000, .left = 60};

			stream(q, 300, seed & 2 ? 4 : 1);
			scenario_finish(w, 600 * SEC);
			world_run(w, w->now + 300 * MS);
			world_work(q, 0, &mix);
			mix.left = 20;
			world_work(q, 1, &mix);
			scenario_finish(w, 600 * SEC);
		}
		assert_true(world_conn(w, 1, q, &ci));
		assert_true(ci.lane[LANE_IN].reads.shift > 0);
		assert_true(ci.lane[LANE_IN].reads.hits > 100);
		assert_int_equal(engine_counter(w->engine[1], EC_FAULTS), 0);
		/* without it the two ends do not understand each other any more */
		engine_drain(w->engine[1], w->now);
		assert_false(engine_may_stop(w->engine[1]));
		world_restart(w, 1);
		warm_fails(w, q);
		world_destroy(w);
	}
}

/* The host leaves the pattern in the middle: what it asks for instead must not be taken for done.
 * */
static void test_pattern_broken(void **state)
{
	uint32_t failed = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 16; seed++) {
		struct world_config c;
		struct world *w;
		struct world_qp *q;
		struct work other = {.ops = seed & 4 ? 1u << RC_READ : OPS_WRITE_SEND,
				     .min = 65536,
				     .max = 65536,
				     .left = 1};

		config(&c, 10 * MS, true);
		c.seed = seed;
		w = world_create(&c);
		assert_non_null(w);
		q = connect(w, seed & 1 ? RC_STRICT : RC_PERMISSIVE);
		warm(w, q);
		stream(q, 300 + (uint64_t)seed, seed & 2 ? 4 : 1);
		while (q->side[0].work.left > 1)
			world_run(w, w->now + MS / 10);
		world_work(q, 0, &other);
		failed += !judged(w, q);
		world_destroy(w);
	}
	assert_true(failed > 8);
}

/*
 * Hosts that break the rule's conditions, on a WAN that loses requests and answers: none may end
 * with wrong data. (The last request of all is a SEND, for what is lost behind which nothing comes
 * is never seen.)
 */
static void test_storm(void **state)
{
	uint32_t fine = 0, failed = 0,
		 seeds = getenv("SEEDS") ? (uint32_t)atoi(getenv("SEEDS")) : 24;

	(void)state;
	for (uint64_t seed = 1; seed <= seeds; seed++) {
		struct world_config c;
		struct prng p;
		struct world *w;
		struct world_qp *q;
		struct work last = {
			.ops = 1u << RC_SEND, .min = 64, .max = 64, .left = 3, .outstanding = 1};
		struct wan_config bad;

		prng_init(&p, seed);
		config(&c, (1 + prng_below(&p, 20)) * MS, true);
		c.seed = seed;
		c.read_depth = prng_below(&p, 3) ? 16 : 0;
		w = world_create(&c);
		assert_non_null(w);
		q = connect(w, seed & 1 ? RC_STRICT : RC_PERMISSIVE);
		warm(w, q);
		bad = c.wan;
		bad.loss = (double)prng_below(&p, 4) * 0.0005;
		bad.reorder = (double)prng_below(&p, 3) * 0.01;
		bad.reorder_ns = MS;
		bad.dup = (double)prng_below(&p, 2) * 0.01;
		bad.corrupt = (double)prng_below(&p, 2) * 0.0005;
		world_set_wan(w, 0, &bad);
		if (prng_below(&p, 2))
			world_set_wan(w, 1, &bad);
		for (uint32_t i = 1 + prng_below(&p, 3); i; i--) {
			struct work mix = {
				.ops = OPS_ALL, .max = 70000, .left = prng_below(&p, 10)};
			struct work k = {.ops = 1u << RC_READ,
					 .min = 65536,
					 .max = 65536,
					 .left = 100 + prng_below(&p, 400),
					 .outstanding = 1 + prng_below(&p, 5),
					 .streams = 1 + prng_below(&p, 2),
					 .stream_len = 32768 << prng_below(&p, 2),
					 .ring = prng_below(&p, 2),
					 .break_p = (double)prng_below(&p, 3) * 0.003};

			world_work(q, 0, &k);
			world_run_done(w, w->now + 600 * SEC);
			if (prng_below(&p, 2))
				world_run(w, w->now + 300 * MS);
			world_work(q, 0, &mix);
			if (prng_below(&p, 2))
				world_work(q, 1, &mix);
			world_run_done(w, w->now + 600 * SEC);
		}
		world_run(w, w->now + 2 * SEC);
		world_set_wan(w, 0, &c.wan);
		world_set_wan(w, 1, &c.wan);
		if (!rc_qp_in_error(q->side[0].qp))
			world_work(q, 0, &last);
		if (judged(w, q))
			fine++;
		else
			failed++;
		world_destroy(w);
	}
	print_message("# %u fine, %u failed\n", fine, failed);
	assert_true(fine > 0);
	assert_true(failed > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gain),	       cmocka_unit_test(test_each_side),
		cmocka_unit_test(test_answers_lost),   cmocka_unit_test(test_requests_lost),
		cmocka_unit_test(test_reordered),      cmocka_unit_test(test_shifted),
		cmocka_unit_test(test_pattern_broken), cmocka_unit_test(test_storm),
	};

	return cmocka_run_group_tests_name("solo", tests, NULL, NULL);
}
