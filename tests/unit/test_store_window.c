// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The window of a lane's packets: the wrap of the PSN, the cap, random operations and a model. */
#include "tests/unit/store_test.h"

#include "store/window.h"
#include "wire/psn.h"

#define MIB (1ull << 20)

static struct arena arena;
static const unsigned int half[POOL_CLASSES] = {50, 50};

static struct pool *make(uint64_t bytes)
{
	struct pool *p;

	assert_int_equal(arena_init(&arena, pool_arena_size(bytes)), 0);
	p = pool_create(&arena, bytes, 0, half);
	assert_non_null(p);
	return p;
}

static void done(struct pool *p, const struct window *w)
{
	for (uint32_t i = 0; i < WINDOW_DIRS; i++)
		assert_int_equal(w->dir[i], POOL_NONE);
	assert_int_equal(w->pages, 0);
	assert_int_equal(w->leaves, 0);
	assert_int_equal(pool_used(p, POOL_CUSTODY), 0);
	assert_true(pool_check(p));
	arena_exit(&arena);
}

static void test_basic(void **state)
{
	struct pool *p = make(4 * MIB);
	struct pkt *k, zero = {.flags = PKT_USED};
	struct window w;
	uint32_t found;

	(void)state;
	window_init(&w);
	assert_null(window_get(&w, p, 5));
	assert_null(window_next(&w, p, 0, 100, &found));
	window_del(&w, p, 5);
	k = window_put(&w, p, POOL_CUSTODY, 5);
	assert_non_null(k);
	assert_memory_equal(k, &zero, sizeof(zero));
	memset(k, 0xff, sizeof(*k));
	assert_ptr_equal(window_get(&w, p, 5), k);
	assert_null(window_get(&w, p, 4));
	assert_null(window_get(&w, p, 6));
	assert_null(window_get(&w, p, 5 + 256));
	/* what stands there stays */
	assert_null(window_put(&w, p, POOL_CUSTODY, 5));
	assert_int_equal(k->loc, 0xffffffff);
	assert_null(window_next(&w, p, 5, 5, &found));
	assert_null(window_next(&w, p, 0, 5, &found));
	assert_null(window_next(&w, p, 6, 0x1000, &found));
	assert_ptr_equal(window_next(&w, p, 5, 6, &found), k);
	assert_int_equal(found, 5);
	assert_ptr_equal(window_next(&w, p, 0, 0x1000, &found), k);
	window_del(&w, p, 6);
	assert_ptr_equal(window_get(&w, p, 5), k);
	window_del(&w, p, 5);
	assert_null(window_get(&w, p, 5));
	/* deleted and put again: nothing of the old one is left */
	k = window_put(&w, p, POOL_CUSTODY, 5);
	assert_memory_equal(k, &zero, sizeof(zero));
	window_del(&w, p, 5);
	done(p, &w);
}

/* Across 2^24, from 0xfffff0 on: found by exact PSN, walked in order, deleted in order. */
static void test_wrap(void **state)
{
	struct pool *p = make(4 * MIB);
	const uint32_t base = 0xfffff0;
	struct window w;
	uint32_t found, n;

	(void)state;
	window_init(&w);
	for (n = 0; n < 1000; n += 1 + n % 3) {
		struct pkt *k = window_put(&w, p, POOL_CUSTODY, psn_add(base, n));

		assert_non_null(k);
		k->loc = n;
		k->span = 0x7fffff;
	}
	assert_int_equal(w.pages, 5);
	n = 0;
	for (uint32_t at = base;; at = psn_add(found, 1)) {
		struct pkt *k = window_next(&w, p, at, psn_add(base, 1000), &found);

		if (!k)
			break;
		assert_int_equal(found, psn_add(base, n));
		assert_int_equal(k->loc, n);
		assert_int_equal(k->span, 0x7fffff);
		assert_ptr_equal(window_get(&w, p, found), k);
		n += 1 + n % 3;
	}
	assert_true(n >= 1000);
	assert_null(window_next(&w, p, psn_sub(base, 5), base, &found));
	assert_non_null(window_next(&w, p, psn_sub(base, 5), 3, &found));
	assert_int_equal(found, base);
	for (n = 0; n < 1000; n++)
		window_del(&w, p, psn_add(base, n));
	done(p, &w);
}

/* The whole span is usable at once, wherever it starts. */
static void test_full_span(void **state)
{
	const uint32_t bases[] = {0, 1, 0xfe0123, PSN_MASK};

	(void)state;
	for (uint32_t b = 0; b < 4; b++) {
		struct pool *p = make(128 * MIB);
		uint32_t base = bases[b], found;
		struct window w;

		window_init(&w);
		for (uint32_t n = 0; n < WINDOW_SPAN; n++) {
			struct pkt *k = window_put(&w, p, POOL_CUSTODY, psn_add(base, n));

			assert_non_null(k);
			k->loc = n;
		}
		assert_int_equal(w.pages, WINDOW_PAGES * WINDOW_DIRS);
		assert_null(window_put(&w, p, POOL_CUSTODY, psn_add(base, WINDOW_SPAN)));
		for (uint32_t n = 0; n < WINDOW_SPAN; n++)
			assert_int_equal(window_get(&w, p, psn_add(base, n))->loc, n);
		/* all but the last: the search goes round through everything */
		for (uint32_t n = 0; n < WINDOW_SPAN - 1; n++)
			window_del(&w, p, psn_add(base, n));
		assert_int_equal(w.pages, 1);
		assert_non_null(window_stamp(&w, p, psn_add(base, WINDOW_SPAN - 1)));
		assert_null(window_stamp(&w, p, psn_add(base, 1000)));
		assert_non_null(window_next(&w, p, base, psn_add(base, WINDOW_SPAN), &found));
		assert_int_equal(found, psn_add(base, WINDOW_SPAN - 1));
		assert_null(window_next(&w, p, base, found, &found));
		window_del(&w, p, psn_add(base, WINDOW_SPAN - 1));
		assert_null(window_next(&w, p, base, psn_sub(base, 1), &found));
		done(p, &w);
	}
}

/* At the cap a put fails and leaves nothing behind. */
static void test_cap(void **state)
{
	const uint32_t far = WINDOW_PAGE_PSNS;
	struct pool *p = make(4 * MIB);
	uint32_t page[32 * 16 + 1], n = 0;
	struct window w, w2;

	(void)state;
	window_init(&w);
	window_init(&w2);
	while ((page[n] = pool_page_get_first(p, POOL_CUSTODY)) != POOL_NONE)
		n++;
	/* no superblock for a leaf */
	assert_null(window_put(&w, p, POOL_CUSTODY, 1));
	assert_int_equal(w.leaves, 0);
	for (uint32_t k = 0; k < POOL_BLOCK / POOL_PAGE; k++)
		pool_page_put(p, page[--n]);
	/* the first leaf may come from the reserve, others may not */
	assert_non_null(window_put(&w, p, POOL_CUSTODY, 1));
	assert_non_null(window_put(&w, p, POOL_CUSTODY, 15));
	assert_null(window_put(&w, p, POOL_CUSTODY, 16));
	assert_non_null(window_put(&w2, p, POOL_CUSTODY, 16));
	while (n > 256)
		pool_page_put(p, page[--n]);
	for (uint32_t k = 1; k < WINDOW_LEAVES; k++)
		assert_non_null(window_put(&w, p, POOL_CUSTODY, k * far));
	while ((page[n] = pool_page_get_first(p, POOL_CUSTODY)) != POOL_NONE)
		n++;
	/* no page to grow to, or a directory only, or that and one of four pages */
	for (uint32_t k = 0; k < 3; k++) {
		assert_null(window_put(&w, p, POOL_CUSTODY, WINDOW_LEAVES * far));
		assert_int_equal(w.pages, 0);
		assert_int_equal(w.leaves, WINDOW_LEAVES);
		assert_non_null(window_get(&w, p, 15));
		assert_non_null(window_get(&w, p, 3 * far));
		assert_true(pool_check(p));
		pool_page_put(p, page[--n]);
	}
	assert_int_equal(w.leaves, WINDOW_LEAVES);
	while (n)
		pool_page_put(p, page[--n]);
	window_del(&w, p, 1);
	window_del(&w, p, 15);
	for (uint32_t k = 1; k < WINDOW_LEAVES; k++)
		window_del(&w, p, k * far);
	window_del(&w2, p, 16);
	done(p, &w);
}

/* What leaves hold is found where it was when the window grows, and when it is small again. */
static void test_grow(void **state)
{
	struct pool *p = make(4 * MIB);
	const uint32_t base = 0xffffe8;
	struct window w;
	uint32_t found = 0;

	(void)state;
	window_init(&w);
	for (uint32_t n = 0; n < 80; n += 2) {
		struct pkt *k = window_put(&w, p, POOL_CUSTODY, psn_add(base, n));

		assert_non_null(k);
		k->loc = n;
		assert_null(window_put(&w, p, POOL_CUSTODY, psn_add(base, n)));
		assert_true(n < 56 ? w.leaves && !w.pages : w.pages);
		assert_true(!!window_stamp(&w, p, base) == !!w.pages);
		for (uint32_t i = 0; i <= n + 1; i++) {
			k = window_get(&w, p, psn_add(base, i));
			assert_int_equal(!!k, i % 2 == 0);
			assert_true(!k || k->loc == i);
			k = window_next(&w, p, psn_add(base, i), psn_add(base, 200), &found);
			assert_int_equal(!!k, i <= n);
			assert_true(!k || found == psn_add(base, (i + 1) & ~1u));
		}
	}
	*window_stamp(&w, p, base) = 7;
	for (uint32_t n = 0; n < 80; n += 2)
		window_del(&w, p, psn_add(base, n));
	assert_int_equal(w.pages, 0);
	assert_non_null(window_put(&w, p, POOL_CUSTODY, base));
	assert_int_equal(w.leaves, 1);
	window_del(&w, p, base);
	done(p, &w);
}

/* An idle lane costs nothing; a lane with a packet now and then reuses the same leaf. */
static void test_ping_pong(void **state)
{
	struct pool *p = make(4 * MIB);
	struct window w;

	(void)state;
	window_init(&w);
	for (uint32_t n = 0; n < 100000; n++) {
		struct pkt *k = window_put(&w, p, POOL_CUSTODY, n * 7 & PSN_MASK);

		assert_non_null(k);
		memset(k, 0xff, sizeof(*k));
		assert_int_equal(pool_used(p, POOL_CUSTODY), POOL_BLOCK);
		window_del(&w, p, n * 7 & PSN_MASK);
		assert_int_equal(pool_used(p, POOL_CUSTODY), 0);
		if (n % 1000 == 0)
			assert_true(pool_check(p));
	}
	done(p, &w);
}

/* A window that slides on and on, many times round 2^24, with random holes, against an array. Two
 * lanes share the pool; the arena moves now and then. */
struct model {
	uint32_t stamp[WINDOW_SPAN]; /* by PSN modulo the span; 0: empty */
	uint32_t base, end, held;
	struct window w;
};

static void model_slide(struct model *m, struct pool *p, uint32_t to)
{
	uint32_t at = m->base;
	struct pkt *k;

	while ((k = window_next(&m->w, p, at, to, &at))) {
		assert_int_equal(k->loc, m->stamp[at % WINDOW_SPAN]);
		m->stamp[at % WINDOW_SPAN] = 0;
		m->held--;
		window_del(&m->w, p, at);
		assert_null(window_get(&m->w, p, at));
	}
	m->base = to;
}

static void model_verify(const struct model *m, struct pool *p)
{
	uint32_t pages = 0, held = 0;

	for (uint32_t i = 0; i < WINDOW_PAGES * WINDOW_DIRS; i++) {
		bool any = false;

		for (uint32_t j = 0; j < WINDOW_PAGE_PSNS; j++) {
			uint32_t low = i * WINDOW_PAGE_PSNS + j;
			/* the PSN of the span that ends in these 21 bits */
			uint32_t psn = psn_add(m->base, (low - m->base) % WINDOW_SPAN);
			const struct pkt *k = window_get(&m->w, p, psn);

			assert_int_equal(k ? k->loc : 0, m->stamp[low]);
			any |= !!k;
			held += !!k;
		}
		pages += any;
	}
	assert_int_equal(held, m->held);
	assert_true(!m->w.pages || pages == m->w.pages);
	assert_true(pool_check(p));
}

static void test_random(void **state)
{
	struct pool *p = make(40 * MIB);
	struct model *m = calloc(2, sizeof(*m));
	struct rng r = rng_seeded("window");
	uint32_t turns = 0;

	(void)state;
	assert_non_null(m);
	for (int i = 0; i < 2; i++) {
		window_init(&m[i].w);
		m[i].base = m[i].end = 0xfffff0;
	}
	for (uint32_t step = 1; step <= 600000; step++) {
		struct model *o = &m[rng_below(&r, 2)];
		uint32_t off = rng_below(&r, 4000), psn = psn_add(o->base, off), found;
		uint32_t low;
		struct pkt *k;

		if (rng_below(&r, 500) == 0) /* far off, up to the end of the span */
			psn = psn_add(o->base, rng_below(&r, WINDOW_SPAN));
		low = psn % WINDOW_SPAN;
		switch (rng_below(&r, 8)) {
		case 0:
		case 1:
		case 2:
			k = window_put(&o->w, p, POOL_CUSTODY, psn);
			assert_true(!k == !!o->stamp[low]);
			if (k) {
				k->loc = o->stamp[low] = step;
				o->held++;
			}
			break;
		case 3:
			window_del(&o->w, p, psn);
			o->held -= !!o->stamp[low];
			o->stamp[low] = 0;
			break;
		case 4:
		case 5:
			k = window_get(&o->w, p, psn);
			assert_int_equal(k ? k->loc : 0, o->stamp[low]);
			break;
		case 6:
			k = window_next(&o->w, p, psn, psn_add(psn, 300), &found);
			for (uint32_t i = 0; i < 300; i++) {
				uint32_t at = psn_add(psn, i);

				if (psn_diff(at, o->base) >= (int32_t)WINDOW_SPAN) {
					/* the far end meets the near one: not defined */
					break;
				}
				if (o->stamp[at % WINDOW_SPAN]) {
					assert_non_null(k);
					assert_int_equal(found, at);
					assert_int_equal(k->loc, o->stamp[at % WINDOW_SPAN]);
					break;
				}
				assert_true(!k || found != at);
			}
			break;
		default:
			if (rng_below(&r, 20) == 0) {
				uint32_t to = psn_add(o->base, rng_below(&r, 6000));

				if (rng_below(&r, 50) == 0)
					to = psn_add(o->base, rng_below(&r, WINDOW_SPAN));
				turns += to < o->base;
				model_slide(o, p, to);
			}
		}
		if (step % 60000 == 0) {
			model_verify(&m[0], p);
			model_verify(&m[1], p);
		}
		if (step % 200000 == 100000)
			p = (struct pool *)((uint8_t *)p + arena_move(&arena));
	}
	assert_true(turns >= 2);
	for (int i = 0; i < 2; i++) {
		model_slide(&m[i], p, psn_add(m[i].base, WINDOW_SPAN));
		assert_int_equal(m[i].held, 0);
		for (uint32_t j = 0; j < WINDOW_DIRS; j++)
			assert_int_equal(m[i].w.dir[j], POOL_NONE);
	}
	done(p, &m[0].w);
	free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_basic),	  cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_full_span), cmocka_unit_test(test_cap),
		cmocka_unit_test(test_grow),	  cmocka_unit_test(test_ping_pong),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests_name("store/window", tests, NULL, NULL);
}
