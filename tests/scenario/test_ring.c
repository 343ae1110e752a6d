// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * All-reduce as NCCL does it (world_ring.h) over a link that loses packets: every host gets the
 * sum, and no flag comes before its data. For NCCL, whose flags are on the queue pairs of their
 * data, that holds under every policy; for flags on a queue pair of their own under early with
 * `order = hosts`, honest and off, and not under early alone.
 */
#include "tests/scenario/scenario.h"
#include "tests/scenario/world_ring.h"

#define BYTES (512u << 10)

struct run {
	enum ack_policy policy;
	uint32_t order;
	bool long_haul;
	struct ring_config ring;
};

static struct world *make(const struct run *c, uint64_t seed)
{
	struct world_config wc;

	world_defaults(&wc);
	wc.seed = seed;
	wc.policy = c->policy;
	wc.actors.order = c->order;
	wc.check_custody = true;
	wc.check_every = 1009;
	wc.wan.rate_bps = 1000000000ull;
	wc.wan.loss = 0.01;
	if (c->long_haul) {
		wc.wan.rate_bps = 10000000000ull;
		wc.wan.delay_ns = 25 * MS;
		wc.wan.loss = 0.001;
	}
	wc.engine.pool_bytes = 32 << 20;
	return world_create(&wc);
}

/* Three in a row; the first begins on lanes that are not held. Returns flags before their data. */
static uint64_t reduce(const struct run *c, uint64_t seed)
{
	struct world *w = make(c, seed);
	struct ring *r = ring_create(w, &c->ring);
	uint64_t early;

	for (int i = 0; i < 3; i++)
		assert_true(ring_reduce(r, BYTES, w->now + 100 * SEC) > 0);
	assert_null(w->violation);
	assert_int_equal(ring_wrong(r), 0);
	assert_int_equal(w->faults[0] + w->faults[1], 0);
	if (c->ring.psns != RING_PSN_0)
		assert_true(w->opened[0] >= 8 && w->opened[1] >= 8);
	early = ring_early_flags(r);
	ring_destroy(r);
	world_destroy(w);
	return early;
}

static struct run of(enum ack_policy policy, uint32_t order)
{
	struct run c = {.policy = policy, .order = order};

	ring_defaults(&c.ring);
	c.ring.buffer = 512 << 10;
	c.ring.timeout_exp = 16;
	return c;
}

static void test_flags_with_data(void **state)
{
	struct run runs[] = {of(POLICY_EARLY, 0), of(POLICY_EARLY, 1), of(POLICY_HONEST, 0),
			     of(POLICY_OFF, 0)};

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(reduce(&runs[i], i + 1), 0);
		runs[i].ring.psns = i % 2 ? RING_PSN_0 : RING_CM;
		assert_int_equal(reduce(&runs[i], i + 11), 0);
		runs[i].ring.tree = true;
		assert_int_equal(reduce(&runs[i], i + 21), 0);
	}
}

static void test_flags_apart(void **state)
{
	struct run runs[] = {of(POLICY_EARLY, 0), of(POLICY_EARLY, 1), of(POLICY_HONEST, 0),
			     of(POLICY_OFF, 0)};

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		uint64_t early;

		runs[i].ring.flag_apart = true;
		early = reduce(&runs[i], i + 1);
		if (i == 0)
			assert_true(early > 0);
		else
			assert_int_equal(early, 0);
	}
}

/* All queue pairs begin with PSN 0, and data is sent by requests that ask for no ACK: soon it is
 * known of each which one it belongs to. NTT-3 */
static void test_from_psn_0(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct run c = of(seed % 2 ? POLICY_HONEST : POLICY_EARLY, 0);
		struct world *w;
		struct ring *r;

		ring_defaults(&c.ring);
		c.ring.psns = RING_PSN_0;
		c.long_haul = true;
		w = make(&c, seed);
		r = ring_create(w, &c.ring);
		for (int i = 0; i < 20 && (i < 3 || !ring_held(r)); i++)
			assert_true(ring_reduce(r, 2 * BYTES, w->now + 100 * SEC) > 0);
		assert_true(ring_held(r));
		assert_null(w->violation);
		assert_int_equal(ring_wrong(r), 0);
		ring_destroy(r);
		world_destroy(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flags_with_data),
		cmocka_unit_test(test_flags_apart),
		cmocka_unit_test(test_from_psn_0),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
