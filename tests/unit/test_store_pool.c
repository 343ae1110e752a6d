// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The retention pool: POOL-1, POOL-2, CONV-6, pages, slots, misuse, and a long random run in which
 * every byte of every packet is compared. Its bounds: test_store_pool_bounds.c.
 */
#include "tests/unit/pool_rig.h"

#include "store/window.h"
#include "wire/psn.h"

static void test_create(void **state)
{
	const unsigned int over[] = {76, 25}, none[] = {0, 100}, wrap[] = {~0u, 2};
	struct pool_log log;
	struct pool *p;

	(void)state;
	assert_int_equal(arena_init(&arena, pool_arena_size(1)), 0);
	assert_null(pool_create(&arena, 1, 0, over));
	assert_null(pool_create(&arena, 1, 0, wrap));
	assert_null(pool_create(&arena, 100 * MIB, 0, half));
	p = pool_create(&arena, 1, 0, none);
	assert_non_null(p);
	assert_int_equal(pool_cap(p, POOL_CUSTODY), 0);
	assert_int_equal(pool_cap(p, POOL_TRANSIT), 64 * POOL_BLOCK);
	assert_int_equal(pool_room(p, POOL_CUSTODY), 0);
	assert_int_equal(pool_fill(p, POOL_CUSTODY), 100);
	assert_int_equal(pool_fill(p, POOL_TRANSIT), 0);
	pool_log_init(&log);
	assert_int_equal(pool_append(p, POOL_CUSTODY, &log, 100), POOL_NONE);
	assert_int_equal(pool_page_get(p, POOL_CUSTODY), POOL_NONE);
	assert_int_equal(pool_page_get_first(p, POOL_CUSTODY), POOL_NONE);
	assert_int_equal(pool_slot_get(p, POOL_CUSTODY, POOL_SLOT, POOL_REQUEST), POOL_NONE);
	pool_log_close(p, &log);
	done(p);
	/* the most: 64 GiB of address space, where it can be had, and nothing else */
	if (arena_init(&arena, pool_arena_size(UINT64_MAX)) == 0) {
		p = pool_create(&arena, UINT64_MAX, 0, half);
		assert_non_null(p);
		assert_int_equal(pool_cap(p, POOL_CUSTODY), 32768 * MIB - POOL_BLOCK);
		done(p);
	}
}

static void test_lengths(void **state)
{
	struct pool *p = make(4 * MIB, half);
	struct pool_log log;
	pool_loc loc, loc2;

	(void)state;
	pool_log_init(&log);
	assert_int_equal(pool_append(p, POOL_CUSTODY, &log, 0), POOL_NONE);
	assert_int_equal(pool_append(p, POOL_CUSTODY, &log, POOL_BLOCK + 1), POOL_NONE);
	assert_int_equal(pool_append(p, POOL_CUSTODY, &log, UINT32_MAX), POOL_NONE);
	assert_int_equal(log.block, POOL_NONE);
	loc = pool_append(p, POOL_CUSTODY, &log, POOL_BLOCK);
	assert_int_not_equal(loc, POOL_NONE);
	fill(pool_ptr(p, loc), POOL_BLOCK, 1);
	loc2 = pool_append(p, POOL_CUSTODY, &log, 1);
	assert_int_not_equal(loc2, POOL_NONE);
	fill(pool_ptr(p, loc2), 1, 2);
	assert_int_equal((uintptr_t)pool_ptr(p, loc2) % 16, 0);
	assert_int_equal(pool_used(p, POOL_CUSTODY), 2 * POOL_BLOCK);
	assert_true(same(pool_ptr(p, loc), POOL_BLOCK, 1));
	pool_release(p, &log, loc, POOL_BLOCK);
	pool_release(p, &log, loc2, 1);
	assert_int_equal(pool_used(p, POOL_CUSTODY), POOL_BLOCK);
	pool_log_close(p, &log);
	done(p);
}

/* POOL-1: data in superblocks, requests in single slots, one order over both (the window's). */
static void test_order_across_both(void **state)
{
	struct pool *p = make(16 * MIB, half);
	const uint32_t count = 3000;
	uint32_t psn = 0xfff800, n = 0, slots = 0, first = psn;
	struct pool_log log;
	struct window w;
	struct rng r = rng_seeded("pool, order");

	(void)state;
	pool_log_init(&log);
	window_init(&w);
	for (uint32_t i = 0; i < count; i++) {
		struct pkt *k = window_put(&w, p, POOL_CUSTODY, psn);

		assert_non_null(k);
		if (rng_below(&r, 3)) {
			k->len = (uint16_t)(60 + rng_below(&r, 4100));
			k->span = 1;
			k->loc = pool_append(p, POOL_CUSTODY, &log, k->len);
			assert_int_not_equal(k->loc, POOL_NONE);
			fill(pool_ptr(p, k->loc), k->len, i);
		} else {
			k->len = 90;
			k->span = 1 + rng_below(&r, 30);
			k->flags |= PKT_ANSWERED;
			k->loc = pool_slot_get(p, POOL_CUSTODY, POOL_SLOT, POOL_REQUEST);
			assert_int_not_equal(k->loc, POOL_NONE);
			fill(pool_ptr(p, k->loc), k->len, i);
			slots++;
		}
		psn = psn_add(psn, k->span);
	}
	assert_true(slots > 341); /* more than one superblock of them */
	assert_true(pool_check(p));
	for (uint32_t at = first;;) {
		struct pkt *k = window_next(&w, p, at, psn, &at);

		if (!k)
			break;
		if (k->flags & PKT_ANSWERED) {
			assert_true(same(pool_ptr(p, k->loc), k->len, n));
			pool_slot_put(p, k->loc);
		} else {
			assert_true(same(pool_ptr(p, k->loc), k->len, n));
			pool_release(p, &log, k->loc, k->len);
		}
		n++;
		window_del(&w, p, at);
	}
	assert_int_equal(n, count);
	pool_log_close(p, &log);
	done(p);
}

/* POOL-2: cumulative release gives each superblock back with its last packet, not before and not
 * later. */
static void test_release_from_head(void **state)
{
	struct pool *p = make(8 * MIB, half);
	const uint32_t per = POOL_BLOCK / 4176, count = per * 20 + 3;
	pool_loc *loc = calloc(count, sizeof(*loc));
	struct pool_log log;

	(void)state;
	assert_non_null(loc);
	pool_log_init(&log);
	for (uint32_t i = 0; i < count; i++) {
		loc[i] = pool_append(p, POOL_CUSTODY, &log, FRAME_4096);
		assert_int_not_equal(loc[i], POOL_NONE);
	}
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(pool_used(p, POOL_CUSTODY), (21 - i / per) * POOL_BLOCK);
		pool_release(p, &log, loc[i], FRAME_4096);
	}
	/* the open one stays, rewound */
	assert_int_equal(pool_used(p, POOL_CUSTODY), POOL_BLOCK);
	assert_int_equal(log.used, 0);
	assert_int_equal(pool_append(p, POOL_CUSTODY, &log, 10) % (POOL_BLOCK / 16), 0);
	pool_log_close(p, &log);
	assert_int_not_equal(log.block, POOL_NONE); /* not while it holds something */
	pool_unappend(p, &log, (pool_loc)(log.block * (POOL_BLOCK / 16)), 10);
	pool_log_close(p, &log);
	assert_int_equal(log.block, POOL_NONE);
	pool_log_close(p, &log);
	free(loc);
	done(p);
}

/* What was freed last is used first. */
static void test_lifo(void **state)
{
	struct pool *p = make(8 * MIB, half);
	struct pool_log a, b;
	pool_loc la, lb;

	(void)state;
	pool_log_init(&a);
	pool_log_init(&b);
	la = pool_append(p, POOL_CUSTODY, &a, 100);
	lb = pool_append(p, POOL_TRANSIT, &b, 100);
	pool_release(p, &a, la, 100);
	pool_log_close(p, &a);
	assert_int_equal(pool_append(p, POOL_TRANSIT, &a, 100), la);
	pool_release(p, &a, la, 100);
	pool_release(p, &b, lb, 100);
	pool_log_close(p, &b);
	pool_log_close(p, &a);
	done(p);
}

/* POOL-5: the open message's tail, over several superblocks, is dropped packet by packet; what
 * stands before it does not notice, and the log goes on. */
static void test_drop_open_tail(void **state)
{
	const uint32_t keep = 37, tail = 50;
	struct rng r = rng_seeded("pool, tail");

	(void)state;
	for (uint32_t round = 0; round < 200; round++) {
		struct pool *p = make(8 * MIB, half);
		pool_loc loc[87];
		uint32_t len[87];
		struct pool_log log;
		uint64_t used = 0;

		pool_log_init(&log);
		for (uint32_t i = 0; i < keep + tail; i++) {
			len[i] = 1 + rng_below(&r, 5000);
			loc[i] = pool_append(p, POOL_CUSTODY, &log, len[i]);
			assert_int_not_equal(loc[i], POOL_NONE);
			fill(pool_ptr(p, loc[i]), len[i], i);
			if (i == keep - 1)
				used = pool_used(p, POOL_CUSTODY);
		}
		for (uint32_t i = keep + tail; i-- > keep;) {
			assert_true(same(pool_ptr(p, loc[i]), len[i], i));
			pool_unappend(p, &log, loc[i], len[i]);
		}
		/* one more at most: the open one, empty */
		assert_true(pool_used(p, POOL_CUSTODY) <= used + POOL_BLOCK);
		assert_true(pool_check(p));
		for (uint32_t i = keep; i < keep + tail; i++) {
			len[i] = 1 + rng_below(&r, 5000);
			loc[i] = pool_append(p, POOL_CUSTODY, &log, len[i]);
			assert_int_not_equal(loc[i], POOL_NONE);
			fill(pool_ptr(p, loc[i]), len[i], 1000 + i);
		}
		for (uint32_t i = 0; i < keep + tail; i++) {
			assert_true(same(pool_ptr(p, loc[i]), len[i], i < keep ? i : 1000 + i));
			pool_release(p, &log, loc[i], len[i]);
		}
		pool_log_close(p, &log);
		done(p);
	}
}

/* A packet that fails its check is taken back at no cost: the next one stands in its place. */
static void test_unappend_rewinds(void **state)
{
	struct pool *p = make(8 * MIB, half);
	struct pool_log log;
	pool_loc a, b;

	(void)state;
	pool_log_init(&log);
	a = pool_append(p, POOL_CUSTODY, &log, 100);
	for (uint32_t i = 0; i < 100000; i++) {
		b = pool_append(p, POOL_CUSTODY, &log, FRAME_4096);
		assert_int_equal(b, a + 7);
		pool_unappend(p, &log, b, FRAME_4096);
	}
	assert_int_equal(pool_used(p, POOL_CUSTODY), POOL_BLOCK);
	/* the packet before has gone meanwhile: all of the superblock is free again */
	b = pool_append(p, POOL_CUSTODY, &log, 100);
	pool_release(p, &log, a, 100);
	pool_unappend(p, &log, b, 100);
	assert_int_equal(log.used, 0);
	/* one that is not the latest: only released */
	a = pool_append(p, POOL_CUSTODY, &log, 100);
	b = pool_append(p, POOL_CUSTODY, &log, 100);
	fill(pool_ptr(p, b), 100, 5);
	pool_unappend(p, &log, a, 100);
	assert_int_equal(log.used, 224);
	assert_true(same(pool_ptr(p, b), 100, 5));
	pool_release(p, &log, b, 100);
	pool_log_close(p, &log);
	done(p);
}

static void test_pages(void **state)
{
	struct pool *p = make(4 * MIB, half);
	uint32_t page[32 * 16], n = 0;

	(void)state;
	for (int round = 0; round < 3; round++) {
		for (n = 0; n < 32 * 16; n++) {
			const uint8_t *b;

			page[n] = pool_page_get_first(p, POOL_TRANSIT);
			assert_int_not_equal(page[n], POOL_NONE);
			b = pool_page_ptr(p, page[n]);
			assert_int_equal((uintptr_t)b % POOL_PAGE, 0);
			assert_true(!b[0] && !memcmp(b, b + 1, POOL_PAGE - 1));
			fill(pool_page_ptr(p, page[n]), POOL_PAGE, n);
		}
		assert_int_equal(pool_page_get_first(p, POOL_TRANSIT), POOL_NONE);
		assert_int_equal(pool_used(p, POOL_TRANSIT), pool_cap(p, POOL_TRANSIT));
		assert_true(pool_check(p));
		for (n = 0; n < 32 * 16; n++)
			assert_true(same(pool_page_ptr(p, page[n]), POOL_PAGE, n));
		/* those with odd numbers first: no superblock empties on the way */
		for (n = 1; n < 32 * 16; n += 2)
			pool_page_put(p, page[n]);
		assert_int_equal(pool_used(p, POOL_TRANSIT), pool_cap(p, POOL_TRANSIT));
		assert_true(pool_check(p));
		for (n = 0; n < 32 * 16; n += 2) {
			memset(pool_page_ptr(p, page[n]), 0, POOL_PAGE);
			pool_page_put_zero(p, page[n]);
		}
		assert_true(pool_check(p));
		assert_int_equal(pool_used(p, POOL_TRANSIT), 0);
	}
	/* a life as a log makes every page dirty again */
	{
		struct pool_log log;
		pool_loc loc;

		pool_log_init(&log);
		loc = pool_append(p, POOL_CUSTODY, &log, POOL_BLOCK);
		fill(pool_ptr(p, loc), POOL_BLOCK, 3);
		pool_release(p, &log, loc, POOL_BLOCK);
		pool_log_close(p, &log);
		for (n = 0; n < 16; n++) {
			const uint8_t *b;

			page[n] = pool_page_get(p, POOL_CUSTODY);
			b = pool_page_ptr(p, page[n]);
			assert_true(!b[0] && !memcmp(b, b + 1, POOL_PAGE - 1));
		}
		for (n = 0; n < 16; n++)
			pool_page_put(p, page[n]);
	}
	done(p);
}

static void test_slots(void **state)
{
	struct pool *p = make(4 * MIB, half);
	const uint32_t count = 31 * 341; /* all but half of the reserve of two */
	uint32_t *slot = calloc(count, sizeof(*slot));
	struct rng r = rng_seeded("pool, slots");

	(void)state;
	assert_non_null(slot);
	for (int round = 0; round < 2; round++) {
		for (uint32_t n = 0; n < count; n++) {
			slot[n] = pool_slot_get(p, POOL_CUSTODY, POOL_SLOT, POOL_REQUEST);
			assert_int_not_equal(slot[n], POOL_NONE);
			fill(pool_ptr(p, slot[n]), POOL_SLOT, n);
		}
		assert_int_equal(pool_slot_get(p, POOL_CUSTODY, POOL_SLOT, POOL_REQUEST),
				 POOL_NONE);
		assert_true(pool_check(p));
		for (uint32_t n = count; n > 1; n--) {
			uint32_t k = rng_below(&r, n), t = slot[k];

			assert_true(same(pool_ptr(p, slot[n - 1]), POOL_SLOT, n - 1) || round ||
				    n < count);
			slot[k] = slot[n - 1];
			slot[n - 1] = t;
		}
		for (uint32_t n = 0; n < count; n++) {
			pool_slot_put(p, slot[n]);
			if (n % 1000 == 0)
				assert_true(pool_check(p));
		}
		assert_int_equal(pool_used(p, POOL_CUSTODY), 0);
	}
	free(slot);
	done(p);
}

/* Each of these would free bytes that are still owed to somebody. */
struct misuse {
	struct pool *p;
	struct pool_log log, other;
	pool_loc loc, loc2;
	uint32_t page, slot;
};

static void release_twice(void *arg)
{
	struct misuse *m = arg;

	pool_release(m->p, &m->log, m->loc, 100);
	pool_release(m->p, &m->log, m->loc, 100);
}

static void release_wrong_length(void *arg)
{
	struct misuse *m = arg;

	pool_release(m->p, &m->log, m->loc, 50);
}

static void release_wrong_log(void *arg)
{
	struct misuse *m = arg;

	pool_release(m->p, &m->other, m->loc, 100);
}

static void release_nowhere(void *arg)
{
	struct misuse *m = arg;

	pool_release(m->p, &m->log, POOL_NONE, 100);
}

static void release_after_close(void *arg)
{
	struct misuse *m = arg;

	pool_release(m->p, &m->log, m->loc, 100);
	pool_log_close(m->p, &m->log);
	pool_release(m->p, &m->log, m->loc, 100);
}

static void page_twice(void *arg)
{
	struct misuse *m = arg;

	pool_page_put(m->p, m->page);
	pool_page_put(m->p, m->page);
}

static void slot_twice(void *arg)
{
	struct misuse *m = arg;

	pool_slot_put(m->p, m->slot);
	pool_slot_put(m->p, m->slot);
}

static void slot_out_of_range(void *arg)
{
	struct misuse *m = arg;

	pool_slot_put(m->p, m->slot | 4095);
}

static void test_misuse_aborts(void **state)
{
	struct misuse m = {.p = make(4 * MIB, half)};
	uint32_t page, slot;

	(void)state;
	pool_log_init(&m.log);
	pool_log_init(&m.other);
	m.loc = pool_append(m.p, POOL_CUSTODY, &m.log, 100);
	m.page = pool_page_get(m.p, POOL_CUSTODY);
	page = pool_page_get(m.p, POOL_CUSTODY);
	m.slot = pool_slot_get(m.p, POOL_CUSTODY, POOL_SLOT, POOL_REQUEST);
	slot = pool_slot_get(m.p, POOL_CUSTODY, POOL_SLOT, POOL_REQUEST);
	must_abort(release_twice, &m);
	must_abort(release_wrong_length, &m);
	must_abort(release_wrong_log, &m);
	must_abort(release_nowhere, &m);
	must_abort(release_after_close, &m);
	must_abort(page_twice, &m);
	must_abort(slot_twice, &m);
	must_abort(slot_out_of_range, &m);
	pool_page_put(m.p, page);
	pool_slot_put(m.p, slot);
	must_abort(page_twice, &m);
	must_abort(slot_twice, &m);
	arena_exit(&arena);
}

/* The check itself must be able to fail. */
static void test_check_detects(void **state)
{
	struct pool *p = make(4 * MIB, half);
	uint32_t slot[341], page, page2;
	uint8_t *last;

	(void)state;
	for (uint32_t n = 0; n < 341; n++)
		slot[n] = pool_slot_get(p, POOL_CUSTODY, POOL_SLOT, POOL_REQUEST);
	assert_true(pool_check(p));
	/* writing past the last slot hits the map */
	last = pool_ptr(p, slot[340]);
	last[POOL_SLOT] ^= 1;
	assert_false(pool_check(p));
	last[POOL_SLOT] ^= 1;
	assert_true(pool_check(p));
	/* a page returned as zero that is not */
	page = pool_page_get(p, POOL_CUSTODY);
	page2 = pool_page_get(p, POOL_CUSTODY);
	memset(pool_page_ptr(p, page2), 1, 1);
	pool_page_put_zero(p, page2);
	assert_false(pool_check(p));
	memset(pool_page_ptr(p, page2), 0, 1);
	assert_true(pool_check(p));
	pool_page_put(p, page);
	for (uint32_t n = 0; n < 341; n++)
		pool_slot_put(p, slot[n]);
	done(p);
}

/* Random lanes, packets, slots and pages in both classes against a model that knows every byte; the
 * arena moves now and then. */
#define LANES 24
#define KEEP  8000

struct kept {
	uint32_t at, len, stamp;
	uint8_t kind, class, lane; /* kind: 0 packet, 1 slot, 2 page */
};

static void *kept_ptr(struct pool *p, const struct kept *k)
{
	return k->kind == 0 ? pool_ptr(p, k->at)
			    : (k->kind == 1 ? pool_ptr(p, k->at) : pool_page_ptr(p, k->at));
}

static void kept_free(struct pool *p, struct pool_log *log, const struct kept *k)
{
	assert_true(same(kept_ptr(p, k), k->len, k->stamp));
	/* whoever still reads it must notice */
	memset(kept_ptr(p, k), 0xee, k->len);
	if (k->kind == 0)
		pool_release(p, log, k->at, k->len);
	else if (k->kind == 1)
		pool_slot_put(p, k->at);
	else
		pool_page_put(p, k->at);
}

static void test_random(void **state)
{
	const unsigned int share[] = {60, 35};
	struct pool *p = make(4 * MIB, share);
	struct kept *kept = calloc(KEEP, sizeof(*kept));
	struct pool_log log[LANES];
	struct rng r = rng_seeded("pool");
	uint32_t n = 0, refused[3] = {0}, rewound = 0, last_lane = LANES;

	(void)state;
	assert_non_null(kept);
	for (uint32_t i = 0; i < LANES; i++)
		pool_log_init(&log[i]);
	for (uint32_t step = 0; step < 200000; step++) {
		uint32_t what = rng_below(&r, 100), lane = rng_below(&r, LANES);
		bool growing = step / 20000 % 2 == 0;
		struct kept *k = &kept[n];

		if (what < (growing ? 60u : 40u) && n < KEEP) {
			enum pool_class c = lane % 2 ? POOL_CUSTODY : POOL_TRANSIT;

			/* every other time of growth is one of slots */
			k->kind = step / 40000 % 2 ? what % 8 != 1 : what % 4 == 0;
			if (what % 20 == 0)
				k->kind = 2;
			k->class = (uint8_t)c;
			k->lane = (uint8_t)lane;
			k->stamp = step;
			if (k->kind == 0) {
				k->len = rng_below(&r, 50) ? 1 + rng_below(&r, 4300)
							   : 1 + rng_below(&r, POOL_BLOCK);
				k->at = pool_append(p, c, &log[lane], k->len);
			} else if (k->kind == 1) {
				k->len = rng_below(&r, 2) ? POOL_SLOT : 1 + rng_below(&r, 4352);
				k->at = pool_slot_get(p, c, k->len, rng_below(&r, 3));
			} else {
				k->len = POOL_PAGE;
				k->at = what ? pool_page_get(p, c) : pool_page_get_first(p, c);
			}
			last_lane = LANES;
			if (k->at == POOL_NONE) {
				refused[k->kind]++;
				continue;
			}
			if (k->kind == 2) {
				const uint8_t *b = kept_ptr(p, k);

				assert_true(!b[0] && !memcmp(b, b + 1, k->len - 1));
				assert_int_equal(*pool_page_stamp(p, k->at), 0);
				*pool_page_stamp(p, k->at) = step;
			} else if (!k->kind) {
				last_lane = lane;
			}
			fill(kept_ptr(p, k), k->len, k->stamp);
			n++;
		} else if (what < 65 && last_lane < LANES) {
			k = &kept[--n];
			assert_true(same(pool_ptr(p, k->at), k->len, k->stamp));
			pool_unappend(p, &log[last_lane], k->at, k->len);
			rewound++;
			last_lane = LANES;
		} else if (what < 97 && n) {
			uint32_t i = rng_below(&r, n);

			kept_free(p, &log[kept[i].lane], &kept[i]);
			kept[i] = kept[--n];
			last_lane = LANES;
		} else {
			pool_log_close(p, &log[lane]);
			last_lane = LANES;
		}
		for (int c = 0; c < POOL_CLASSES; c++)
			assert_true(pool_used(p, (enum pool_class)c) <=
				    pool_cap(p, (enum pool_class)c));
		if (step % 50 == 0)
			assert_true(pool_check(p));
		if (step % 5000 == 0) {
			for (uint32_t i = 0; i < n; i++)
				assert_true(
					same(kept_ptr(p, &kept[i]), kept[i].len, kept[i].stamp));
		}
		if (step % 50000 == 25000)
			p = (struct pool *)((uint8_t *)p + arena_move(&arena));
	}
	print_message("  refused: %u packets, %u slots, %u pages\n", refused[0], refused[1],
		      refused[2]);
	assert_true(refused[0] && refused[1] && refused[2] && rewound);
	while (n) {
		n--;
		kept_free(p, &log[kept[n].lane], &kept[n]);
	}
	for (uint32_t i = 0; i < LANES; i++)
		pool_log_close(p, &log[i]);
	free(kept);
	done(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_create),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_order_across_both),
		cmocka_unit_test(test_release_from_head),
		cmocka_unit_test(test_lifo),
		cmocka_unit_test(test_drop_open_tail),
		cmocka_unit_test(test_unappend_rewinds),
		cmocka_unit_test(test_pages),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_misuse_aborts),
		cmocka_unit_test(test_check_detects),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests_name("store/pool", tests, NULL, NULL);
}
