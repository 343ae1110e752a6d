// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * ENG-9: many lists in one pool, index links, free list: no leak, no double free, FIFO per list,
 * with 16,384 lists.
 */
#include "tests/unit/store_test.h"

#include "store/mqueue.h"

#define LISTS 16384u

struct rec {
	uint64_t stamp;
	uint32_t list;
	uint32_t zero;
};

static struct arena arena;

static struct mqueue *make(uint32_t count, uint32_t size)
{
	struct mqueue *q;

	assert_int_equal(arena_init(&arena, mqueue_arena_size(count, size)), 0);
	q = mqueue_create(&arena, count, size);
	assert_non_null(q);
	return q;
}

static void test_basic(void **state)
{
	struct mqueue *q = make(3, 13);
	struct mq_list l, empty;
	uint32_t a, b, c;

	(void)state;
	mq_list_init(&l);
	mq_list_init(&empty);
	mq_pop(q, &l);
	mq_flush(q, &l);
	assert_int_equal(mq_len(q, &l), 0);
	a = mq_push(q, &l);
	memset(mq_ptr(q, a), 0xff, 13);
	b = mq_push(q, &l);
	memset(mq_ptr(q, b), 0xee, 13);
	c = mq_push(q, &l);
	assert_true(a != b && b != c && c != a);
	assert_int_equal((uintptr_t)mq_ptr(q, b) % 8, 0);
	for (int i = 0; i < 13; i++) {
		assert_int_equal(((uint8_t *)mq_ptr(q, a))[i], 0xff);
		assert_int_equal(((uint8_t *)mq_ptr(q, c))[i], 0);
	}
	assert_int_equal(mq_push(q, &l), MQ_NONE);
	assert_int_equal(mq_push(q, &empty), MQ_NONE);
	assert_int_equal(empty.head, MQ_NONE);
	assert_int_equal(mq_len(q, &l), 3);
	assert_int_equal(l.head, a);
	assert_int_equal(mq_next(q, a), b);
	assert_int_equal(mq_next(q, c), MQ_NONE);
	assert_true(mq_check(q, &l, 1));
	mq_pop(q, &l);
	assert_int_equal(l.head, b);
	assert_int_equal(mq_push(q, &l), a);
	for (int i = 0; i < 13; i++)
		assert_int_equal(((uint8_t *)mq_ptr(q, a))[i], 0);
	mq_flush(q, &l);
	assert_int_equal(l.head, MQ_NONE);
	assert_int_equal(l.tail, MQ_NONE);
	assert_int_equal(mq_free_count(q), 3);
	assert_true(mq_check(q, &l, 1));
	arena_exit(&arena);
}

static void test_limits(void **state)
{
	struct mq_list l;
	struct mqueue *q;

	(void)state;
	q = make(0, 8);
	mq_list_init(&l);
	assert_int_equal(mq_push(q, &l), MQ_NONE);
	assert_true(mq_check(q, &l, 1));
	assert_null(mqueue_create(&arena, 10, 100000));
	assert_null(mqueue_create(&arena, 1, UINT32_MAX));
	assert_null(mqueue_create(&arena, MQ_NONE, 8));
	arena_exit(&arena);
}

/* The check itself must be able to fail: a lost element, a shared one, a wrong tail, a cycle. */
static void test_check_detects(void **state)
{
	struct mqueue *q = make(8, 8);
	struct mq_list l[3], bad;

	(void)state;
	for (int i = 0; i < 3; i++)
		mq_list_init(&l[i]);
	mq_push(q, &l[0]);
	mq_push(q, &l[0]);
	mq_push(q, &l[1]);
	assert_true(mq_check(q, l, 3));
	assert_false(mq_check(q, l, 1));
	l[2] = l[1];
	assert_false(mq_check(q, l, 3));
	mq_list_init(&l[2]);
	bad = l[0];
	l[0].tail = l[0].head;
	assert_false(mq_check(q, l, 3));
	l[0] = bad;
	/* a list popped through a stale copy */
	mq_pop(q, &bad);
	assert_false(mq_check(q, l, 3));
	arena_exit(&arena);
}

struct model {
	uint64_t first, next; /* stamps in the list: first .. next - 1 */
};

static void verify_list(struct mqueue *q, const struct mq_list *l, const struct model *m,
			uint32_t list)
{
	uint64_t stamp = m->first;
	uint32_t id;

	assert_int_equal(mq_len(q, l), m->next - m->first);
	for (id = l->head; id != MQ_NONE; id = mq_next(q, id), stamp++) {
		const struct rec *r = mq_ptr(q, id);

		assert_int_equal(r->stamp, stamp);
		assert_int_equal(r->list, list);
	}
	assert_int_equal(stamp, m->next);
}

/* ENG-9. Also moves the arena half-way: nothing inside may depend on its address. */
static void test_random_16384_lists(void **state)
{
	const uint32_t count = 100000, ops = 1500000;
	struct mqueue *q = make(count, sizeof(struct rec));
	struct mq_list *l = malloc(LISTS * sizeof(*l));
	struct model *m = calloc(LISTS, sizeof(*m));
	struct rng r = rng_seeded("mqueue");
	uint32_t held = 0, full = 0, flushed = 0;

	(void)state;
	assert_true(l && m);
	for (uint32_t i = 0; i < LISTS; i++)
		mq_list_init(&l[i]);
	for (uint32_t n = 0; n < ops; n++) {
		/* phases that fill and phases that drain, so that both ends of the pool are met */
		uint32_t i = rng_below(&r, LISTS), what = rng_below(&r, 1000);
		uint32_t push = n / 200000 % 2 ? 300 : 800;

		if (what < push) {
			uint32_t id = mq_push(q, &l[i]);
			struct rec *rec;

			if (held == count) {
				assert_int_equal(id, MQ_NONE);
				full++;
				continue;
			}
			assert_int_not_equal(id, MQ_NONE);
			rec = mq_ptr(q, id);
			assert_true(!rec->stamp && !rec->list && !rec->zero);
			*rec = (struct rec){m[i].next++, i, 0xdddddddd};
			held++;
		} else if (what < 997) {
			if (m[i].first < m[i].next) {
				const struct rec *rec = mq_ptr(q, l[i].head);

				assert_int_equal(rec->stamp, m[i].first);
				assert_int_equal(rec->list, i);
				m[i].first++;
				held--;
			} else {
				assert_int_equal(l[i].head, MQ_NONE);
			}
			mq_pop(q, &l[i]);
		} else {
			verify_list(q, &l[i], &m[i], i);
			held -= (uint32_t)(m[i].next - m[i].first);
			m[i].first = m[i].next;
			mq_flush(q, &l[i]);
			flushed++;
		}
		assert_int_equal(mq_free_count(q), count - held);
		if (n % 100000 == 0)
			assert_true(mq_check(q, l, LISTS));
		if (n == ops / 2)
			q = (struct mqueue *)((uint8_t *)q + arena_move(&arena));
	}
	assert_true(full > 0 && flushed > 0);
	for (uint32_t i = 0; i < LISTS; i++)
		verify_list(q, &l[i], &m[i], i);
	assert_true(mq_check(q, l, LISTS));
	for (uint32_t i = 0; i < LISTS; i++)
		mq_flush(q, &l[i]);
	assert_int_equal(mq_free_count(q), count);
	assert_true(mq_check(q, l, LISTS));
	free(l);
	free(m);
	arena_exit(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_basic),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_check_detects),
		cmocka_unit_test(test_random_16384_lists),
	};

	return cmocka_run_group_tests_name("store/mqueue", tests, NULL, NULL);
}
