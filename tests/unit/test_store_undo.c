// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* POOL-6: the log of a batch: all of it or nothing, wherever it is cut off. */
#include "tests/unit/store_test.h"

#include "store/pool.h"
#include "store/undo.h"

#define N 64

struct rig {
	struct arena a;
	struct undo *u;
	uint32_t *v;
};

static void rig_make(struct rig *r, uint64_t log)
{
	assert_int_equal(arena_init(&r->a, 65536), 0);
	r->u = undo_create(&r->a, log);
	r->v = arena_alloc(&r->a, N * sizeof(*r->v), 8);
	for (uint32_t i = 0; i < N; i++)
		r->v[i] = i;
}

static void set(struct rig *r, uint32_t i, uint32_t value)
{
	undo_note(r->u, &r->v[i], sizeof(r->v[i]));
	r->v[i] = value;
}

static void untouched(const struct rig *r)
{
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(r->v[i], i);
}

static void test_undone(void **state)
{
	struct rig r;
	uint32_t batch;

	(void)state;
	rig_make(&r, 8192);
	batch = r.u->batch;
	assert_int_not_equal(batch, 0);
	/* also what changed twice, and in pieces of all lengths */
	for (uint32_t i = 0; i < N; i++)
		set(&r, i % 7, 1000 + i);
	for (uint32_t len = 1; len < 17; len++) {
		undo_note(r.u, r.v + 20, len);
		memset(r.v + 20, 0xee, len);
	}
	assert_true(undo_apply(r.u));
	untouched(&r);
	assert_int_not_equal(r.u->batch, batch); /* what was noted in it is noted no longer */
	assert_true(undo_apply(r.u));
	untouched(&r);
	arena_exit(&r.a);
}

static void test_committed(void **state)
{
	struct rig r;

	(void)state;
	rig_make(&r, 8192);
	set(&r, 3, 33);
	undo_commit(r.u);
	set(&r, 3, 34);
	set(&r, 4, 44);
	assert_true(undo_apply(r.u));
	assert_int_equal(r.v[3], 33);
	assert_int_equal(r.v[4], 4);
	undo_note(NULL, r.v, 4); /* nobody cares */
	arena_exit(&r.a);
}

/* What changes often is noted once in a batch, and again in the next. */
static void test_once(void **state)
{
	uint32_t noted = 0;
	struct rig r;
	uint64_t used;

	(void)state;
	rig_make(&r, 8192);
	undo_once(NULL, &noted, &r.v[1], 4);
	assert_int_equal(noted, 0);
	undo_once(r.u, &noted, &r.v[1], 4);
	used = r.u->used;
	assert_int_not_equal(used, 0);
	r.v[1] = 11;
	undo_once(r.u, &noted, &r.v[1], 4);
	assert_int_equal(r.u->used, used);
	assert_true(undo_apply(r.u));
	untouched(&r);
	undo_once(r.u, &noted, &r.v[1], 4);
	r.v[1] = 12;
	undo_commit(r.u);
	undo_once(r.u, &noted, &r.v[1], 4);
	r.v[1] = 13;
	assert_true(undo_apply(r.u));
	assert_int_equal(r.v[1], 12);
	arena_exit(&r.a);
}

/* Cut off before an entry counts, or after it and before the change; and amid putting back. */
static void test_cut_off(void **state)
{
	struct rig r;
	uint64_t used;

	(void)state;
	rig_make(&r, 8192);
	set(&r, 1, 11);
	used = r.u->used;
	undo_note(r.u, &r.v[2], 4);
	r.u->used = used;
	undo_note(r.u, &r.v[5], 4);
	set(&r, 6, 66);
	r.v[6] = 6; /* put back already, the entry not taken off yet */
	assert_true(undo_apply(r.u));
	untouched(&r);
	arena_exit(&r.a);
}

static void test_full(void **state)
{
	struct rig r;

	(void)state;
	rig_make(&r, 64);
	for (uint32_t i = 0; i < 5; i++)
		set(&r, i, 99);
	assert_false(undo_apply(r.u)); /* nothing is believed */
	undo_commit(r.u);
	assert_true(undo_apply(r.u));
	assert_int_equal(r.v[4], 99);
	undo_note(r.u, &r.v[0], 4);
	undo_lose(r.u);
	assert_false(undo_apply(r.u));
	arena_exit(&r.a);
}

static void test_damaged(void **state)
{
	struct rig r;

	(void)state;
	rig_make(&r, 8192);
	set(&r, 1, 11);
	r.u->used += 3;
	assert_false(undo_apply(r.u));
	r.u->used = r.u->size + 8;
	assert_false(undo_apply(r.u));
	r.u->used = 16;
	*(uint64_t *)(r.u->log + 8) = 8ull << 16 | 4; /* within the log */
	assert_false(undo_apply(r.u));
	*(uint64_t *)(r.u->log + 8) = 0xffff; /* longer than the log */
	assert_false(undo_apply(r.u));
	arena_exit(&r.a);
}

/* What a batch has taken for packets is free again when it is undone, with the packets' bytes: a
 * page that is taken there is zero all the same. */
static void test_pages_after(void **state)
{
	static const unsigned int half[POOL_CLASSES] = {50, 50};
	struct pool_log log;
	struct arena a;
	struct undo *u;
	struct pool *p;
	pool_loc loc;

	(void)state;
	assert_int_equal(arena_init(&a, pool_arena_size(1) + 65536), 0);
	u = undo_create(&a, 32768);
	p = pool_create(&a, 1, 0, half);
	pool_undo_by(p, u);
	for (int slot = 0; slot < 2; slot++) {
		uint32_t page, len = slot ? POOL_SLOT : POOL_BLOCK;

		pool_log_init(&log);
		loc = slot ? pool_slot_get(p, POOL_CUSTODY, len, POOL_FIRST)
			   : pool_append(p, POOL_CUSTODY, &log, len);
		memset(pool_ptr(p, loc), 0xee, len);
		assert_true(undo_apply(u));
		pool_adopted(p);
		page = pool_page_get(p, POOL_TRANSIT);
		for (uint32_t i = 0; i < POOL_PAGE; i++)
			assert_int_equal(((uint8_t *)pool_page_ptr(p, page))[i], 0);
		assert_true(pool_check(p));
		assert_true(undo_apply(u));
		pool_adopted(p);
		assert_true(pool_check(p));
	}
	arena_exit(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_undone),	    cmocka_unit_test(test_committed),
		cmocka_unit_test(test_once),	    cmocka_unit_test(test_cut_off),
		cmocka_unit_test(test_full),	    cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_pages_after),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
