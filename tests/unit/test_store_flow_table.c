// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ENG-15: the flow table against a model, with the keys of 16,384 connections (both directions).
 */
#include "tests/unit/store_test.h"

#include <errno.h>

#include "store/flow_table.h"

#define FLOWS 32768u

struct flow {
	struct flow_key key;
	uint32_t state[3]; /* the key need not be all that a flow is */
};

static struct arena arena;

static struct flow_table *make(uint32_t capacity, uint64_t seed)
{
	struct flow_table *t;

	assert_int_equal(arena_init(&arena, flow_table_arena_size(capacity)), 0);
	t = flow_table_create(&arena, capacity, seed);
	assert_non_null(t);
	return t;
}

/* Keys as in real life: few addresses, QPNs one after the other, tenants that share all but the
 * VLAN. */
static void key_of(struct flow_key *k, uint32_t n)
{
	memset(k, 0, sizeof(*k));
	k->src.b[10] = k->src.b[11] = k->dst.b[10] = k->dst.b[11] = 0xff;
	k->src.b[12] = k->dst.b[12] = 10;
	k->src.b[15] = (uint8_t)(1 + n % 4);
	k->dst.b[15] = 9;
	k->dqpn = 0x11 + n / 8;
	k->vlan = n / 4 % 2 ? 100 : FRAME_VLAN_NONE;
}

static void test_basic(void **state)
{
	struct flow_table *t = make(4, 1);
	struct flow f[5];

	(void)state;
	memset(f, 0, sizeof(f));
	for (uint32_t i = 0; i < 5; i++)
		key_of(&f[i].key, i);
	assert_int_equal(flow_table_find(t, &f[0].key, f, sizeof(f[0])), FLOW_NONE);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(flow_table_insert(t, &f[i].key, i), 0);
	assert_int_equal(flow_table_insert(t, &f[4].key, 4), -ENOSPC);
	assert_int_equal(flow_table_count(t), 4);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(flow_table_find(t, &f[i].key, f, sizeof(f[0])),
				 i < 4 ? i : FLOW_NONE);
	/* not there; there under another number; then really */
	flow_table_remove(t, &f[4].key, 4);
	flow_table_remove(t, &f[0].key, 1);
	flow_table_remove(t, &f[0].key, FLOW_NONE);
	assert_int_equal(flow_table_count(t), 4);
	flow_table_remove(t, &f[0].key, 0);
	flow_table_remove(t, &f[0].key, 0);
	assert_int_equal(flow_table_count(t), 3);
	assert_int_equal(flow_table_find(t, &f[0].key, f, sizeof(f[0])), FLOW_NONE);
	assert_int_equal(flow_table_insert(t, &f[4].key, FLOW_NONE), -ENOSPC);
	assert_int_equal(flow_table_insert(t, &f[4].key, 4), 0);
	assert_int_equal(flow_table_find(t, &f[4].key, f, sizeof(f[0])), 4);
	arena_exit(&arena);
}

/* One bit of difference anywhere in the key is another flow. */
static void test_every_bit_counts(void **state)
{
	struct flow_table *t = make(16, 7);
	struct flow f;

	(void)state;
	memset(&f, 0, sizeof(f));
	key_of(&f.key, 3);
	assert_int_equal(flow_table_insert(t, &f.key, 0), 0);
	for (uint32_t bit = 0; bit < 8 * sizeof(f.key); bit++) {
		struct flow_key k = f.key;

		((uint8_t *)&k)[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_equal(flow_table_find(t, &k, &f, sizeof(f)), FLOW_NONE);
	}
	assert_int_equal(flow_table_find(t, &f.key, &f, sizeof(f)), 0);
	arena_exit(&arena);
}

static void test_too_small(void **state)
{
	struct flow_table *t = make(64, 0);

	(void)state;
	assert_int_equal(flow_table_count(t), 0);
	assert_null(flow_table_create(&arena, 4096, 0));
	assert_null(flow_table_create(&arena, 1u << 31, 0));
	arena_exit(&arena);
}

/* Backward shift where it is hard: a table small enough that runs cross its end all the time. */
static void test_small_random(void **state)
{
	struct rng r = rng_seeded("flow table, small");
	struct flow f[64];
	bool in[64];

	(void)state;
	for (uint32_t round = 0; round < 300; round++) {
		struct flow_table *t = make(8, rng_next(&r)); /* 16 buckets */
		uint32_t held = 0;

		memset(in, 0, sizeof(in));
		for (uint32_t i = 0; i < 64; i++)
			key_of(&f[i].key, rng_below(&r, 1000) * 64 + i);
		for (uint32_t n = 0; n < 300; n++) {
			uint32_t i = rng_below(&r, 64), a = rng_below(&r, 64);

			/* the number of one with the key of another: neither goes */
			flow_table_remove(t, &f[a].key, (a + 1 + rng_below(&r, 63)) % 64);
			if (in[i]) {
				flow_table_remove(t, &f[i].key, i);
				in[i] = false;
				held--;
			} else {
				assert_int_equal(flow_table_insert(t, &f[i].key, i),
						 held < 8 ? 0 : -ENOSPC);
				if (held < 8) {
					in[i] = true;
					held++;
				}
			}
			for (uint32_t j = 0; j < 64; j++)
				assert_int_equal(flow_table_find(t, &f[j].key, f, sizeof(f[0])),
						 in[j] ? j : FLOW_NONE);
		}
		arena_exit(&arena);
	}
}

/* ENG-15: 16,384 connections, both directions of each; the arena moves half-way. */
static void test_random_16384_connections(void **state)
{
	struct flow_table *t = make(FLOWS, 0x1234567);
	struct flow *f = calloc(2 * FLOWS, sizeof(*f));
	bool *in = calloc(2 * FLOWS, sizeof(*in));
	struct rng r = rng_seeded("flow table");
	uint32_t held = 0, full = 0;

	(void)state;
	assert_true(f && in);
	for (uint32_t i = 0; i < 2 * FLOWS; i++)
		key_of(&f[i].key, i);
	for (uint32_t n = 0; n < 1000000; n++) {
		uint32_t i = rng_below(&r, 2 * FLOWS);

		assert_int_equal(flow_table_find(t, &f[i].key, f, sizeof(*f)),
				 in[i] ? i : FLOW_NONE);
		if (in[i] && rng_below(&r, 3) == 0) {
			flow_table_remove(t, &f[i].key, i);
			in[i] = false;
			held--;
		} else if (!in[i] && held < FLOWS) {
			assert_int_equal(flow_table_insert(t, &f[i].key, i), 0);
			in[i] = true;
			held++;
		} else if (!in[i]) {
			assert_int_equal(flow_table_insert(t, &f[i].key, i), -ENOSPC);
			full++;
		}
		assert_int_equal(flow_table_count(t), held);
		if (n == 500000)
			t = (struct flow_table *)((uint8_t *)t + arena_move(&arena));
	}
	assert_true(full > 0);
	for (uint32_t i = 0; i < 2 * FLOWS; i++)
		assert_int_equal(flow_table_find(t, &f[i].key, f, sizeof(*f)),
				 in[i] ? i : FLOW_NONE);
	for (uint32_t i = 0; i < 2 * FLOWS; i++)
		flow_table_remove(t, &f[i].key, i);
	assert_int_equal(flow_table_count(t), 0);
	for (uint32_t i = 0; i < 2 * FLOWS; i++)
		assert_int_equal(flow_table_find(t, &f[i].key, f, sizeof(*f)), FLOW_NONE);
	free(f);
	free(in);
	arena_exit(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_basic),
		cmocka_unit_test(test_every_bit_counts),
		cmocka_unit_test(test_too_small),
		cmocka_unit_test(test_small_random),
		cmocka_unit_test(test_random_16384_connections),
	};

	return cmocka_run_group_tests_name("store/flow_table", tests, NULL, NULL);
}
