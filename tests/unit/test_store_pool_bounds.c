// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the retention pool promises about memory: POOL-10 (occupancy, caps), POOL-4 and FAST-6 (the
 * reserve), and the room that it announces.
 */
#include "tests/unit/pool_rig.h"

#include "store/window.h"
#include "wire/psn.h"

struct lane {
	struct pool_log log;
	struct window w;
	uint32_t psn;
	uint64_t bytes;
};

static void lane_init(struct lane *l, uint32_t psn)
{
	pool_log_init(&l->log);
	window_init(&l->w);
	l->psn = psn;
	l->bytes = 0;
}

/* One more retained packet as the engine does it; false when there is no room. */
static bool lane_add(struct pool *p, enum pool_class c, struct lane *l, uint32_t len)
{
	pool_loc loc = pool_append(p, c, &l->log, len);
	struct pkt *k;

	if (loc == POOL_NONE)
		return false;
	k = window_put(&l->w, p, c, l->psn);
	if (!k) {
		pool_unappend(p, &l->log, loc, len);
		return false;
	}
	k->loc = loc;
	k->len = (uint16_t)len;
	l->psn = psn_add(l->psn, 1);
	l->bytes += len;
	return true;
}

/* Releases the oldest packet at or after @at; false when there is none. */
static bool lane_release(struct pool *p, struct lane *l, uint32_t *at)
{
	struct pkt *k = window_next(&l->w, p, *at, l->psn, at);

	if (!k)
		return false;
	l->bytes -= k->len;
	pool_release(p, &l->log, k->loc, k->len);
	window_del(&l->w, p, *at);
	return true;
}

static void lane_drain(struct pool *p, struct lane *l, uint32_t at)
{
	while (lane_release(p, l, &at))
		;
	assert_int_equal(l->w.dir[0], POOL_NONE);
	assert_int_equal(l->bytes, 0);
	pool_log_close(p, &l->log);
	assert_int_equal(l->log.block, POOL_NONE);
}

/* POOL-10: stored once, and the occupancy bound is known and kept: a full pool holds packets worth
 * at least its memory / 1.1, descriptors included, however many lanes share it. */
static void occupancy(uint32_t len, uint32_t lanes, uint64_t bytes)
{
	struct pool *p = make(bytes, half);
	struct lane *l = calloc(lanes, sizeof(*l));
	uint64_t sum = 0, used;
	uint32_t stuck = 0;

	assert_non_null(l);
	for (uint32_t i = 0; i < lanes; i++)
		lane_init(&l[i], 0xffff00 + i * 1000);
	while (stuck < lanes) {
		stuck = 0;
		for (uint32_t i = 0; i < lanes; i++)
			stuck += !lane_add(p, POOL_CUSTODY, &l[i], len);
	}
	for (uint32_t i = 0; i < lanes; i++)
		sum += l[i].bytes;
	used = pool_used(p, POOL_CUSTODY);
	print_message("  %u lanes of %u-byte frames: %.4f bytes of memory a byte\n", lanes, len,
		      (double)used / (double)sum);
	assert_true((double)used <= 1.1 * (double)sum);
	assert_true(used <= pool_cap(p, POOL_CUSTODY));
	/* and all but the reserve is used */
	assert_true(used + pool_cap(p, POOL_CUSTODY) / 16 + POOL_BLOCK >=
		    pool_cap(p, POOL_CUSTODY));
	assert_true(pool_fill(p, POOL_CUSTODY) >= 99);
	assert_int_equal(pool_used(p, POOL_TRANSIT), 0);
	assert_true(pool_check(p));
	for (uint32_t i = 0; i < lanes; i++)
		lane_drain(p, &l[i], (0xffff00 + i * 1000) & PSN_MASK);
	free(l);
	done(p);
}

static void test_occupancy(void **state)
{
	(void)state;
	occupancy(FRAME_4096, 1, 64 * MIB);
	occupancy(FRAME_1024, 1, 64 * MIB);
	occupancy(FRAME_4096, 20, 64 * MIB);
	occupancy(FRAME_1024, 20, 64 * MIB);
}

/* What pool_room() promises can be had, whatever the length, descriptors included. */
static void test_room_is_sure(void **state)
{
	struct rng r = rng_seeded("pool, room");

	(void)state;
	for (uint32_t round = 0; round < 120; round++) {
		struct pool *p = make(8 * MIB, half);
		uint32_t len = 512 + rng_below(&r, 4206 - 512 + 1), start = rng_below(&r, 1 << 24);
		uint32_t before = rng_below(&r, 64 * 15);
		uint64_t room, got = 0;
		struct lane l;

		if (round < 30) /* the worst: just too long */
			len = (const uint32_t[]){4097, 513, 3841}[round % 3];
		if (round < 3)
			before = 0;
		lane_init(&l, start);
		while (before-- && lane_add(p, POOL_TRANSIT, &l, 512 + rng_below(&r, 3600)))
			;
		room = pool_room(p, POOL_TRANSIT);
		/* one lane's share is a little less than all */
		assert_true(pool_log_room(p, POOL_TRANSIT, &l.log, l.bytes) >= room / 10 * 8);
		if (round % 2)
			room = pool_log_room(p, POOL_TRANSIT, &l.log, l.bytes);
		while (got + ((len + 15) & ~15u) <= room || (round % 2 == 0 && got + len <= room)) {
			assert_true(lane_add(p, POOL_TRANSIT, &l, len));
			got += round % 2 ? (len + 15) & ~15u : len;
		}
		lane_drain(p, &l, start);
		done(p);
	}
}

/* POOL-4, FAST-6: one lane takes all it can. Others still start, and go on with what they have got,
 * and READ requests find slots. The other class is not touched. */
static void test_reserve(void **state)
{
	struct pool *p = make(64 * MIB, half);
	const uint32_t reserve = 512 / 16;
	struct lane hog, late[64];
	uint32_t started = 0, slots = 0, slot[20000];
	uint64_t cap = pool_cap(p, POOL_CUSTODY);

	(void)state;
	lane_init(&hog, 7);
	while (lane_add(p, POOL_CUSTODY, &hog, FRAME_1024))
		;
	assert_int_equal(pool_used(p, POOL_CUSTODY), cap - reserve * POOL_BLOCK);
	assert_int_equal(pool_fill(p, POOL_CUSTODY), 100);
	assert_int_equal(pool_room(p, POOL_CUSTODY), 0);
	/* what the hog may announce is the rest of its own superblock */
	assert_int_equal(pool_log_room(p, POOL_CUSTODY, &hog.log, hog.bytes),
			 POOL_BLOCK - hog.log.used);
	for (uint32_t i = 0; i < 16; i++)
		(void)pool_page_get(p, POOL_CUSTODY); /* left-over pages of the hog's superblock */
	assert_int_equal(pool_page_get(p, POOL_CUSTODY), POOL_NONE);

	/* slots stop at half of the reserve */
	while (slots < 20000) {
		uint32_t s = pool_slot_get(p, POOL_CUSTODY, POOL_SLOT, POOL_REQUEST);

		if (s == POOL_NONE)
			break;
		slot[slots++] = s;
	}
	assert_int_equal(slots, reserve / 2 * 341);
	while (slots)
		pool_slot_put(p, slot[--slots]);

	for (started = 0; started < 64; started++) {
		uint64_t room;

		lane_init(&late[started], 0xffffff);
		room = pool_log_room(p, POOL_CUSTODY, &late[started].log, late[started].bytes);
		assert_true(room >= 14 * FRAME_4096 ||
			    pool_used(p, POOL_CUSTODY) + POOL_BLOCK >= cap);
		if (!lane_add(p, POOL_CUSTODY, &late[started], FRAME_4096))
			break;
	}
	assert_true(started >= reserve * 8 / 10 && started < 64);
	assert_int_equal(pool_used(p, POOL_CUSTODY), cap);
	pool_log_close(p, &late[started].log);
	/* none can take the superblock of another, each can go round in its own for ever */
	for (uint32_t i = 0; i < started; i++) {
		uint32_t at = 0xffffff, n = 1;

		for (uint32_t k = 0; k < 2000; k++) {
			if (lane_add(p, POOL_CUSTODY, &late[i], FRAME_4096)) {
				n++;
				assert_true(n <= 15);
			} else {
				assert_true(n >= 1);
				assert_true(lane_release(p, &late[i], &at));
				n--;
			}
		}
		assert_false(lane_add(p, POOL_CUSTODY, &hog, FRAME_1024));
		lane_drain(p, &late[i], at);
	}
	assert_true(pool_check(p));
	/* the other class has its cap to itself */
	lane_init(&late[0], 0);
	while (lane_add(p, POOL_TRANSIT, &late[0], FRAME_1024))
		;
	assert_int_equal(pool_fill(p, POOL_TRANSIT), 100);
	lane_drain(p, &late[0], 0);
	/* and the hog goes on after an acknowledgement */
	{
		uint32_t at = 7;

		for (uint32_t i = 0; i < 200; i++)
			assert_true(lane_release(p, &hog, &at));
		for (uint32_t i = 0; i < 100; i++)
			assert_true(lane_add(p, POOL_CUSTODY, &hog, FRAME_1024));
		lane_drain(p, &hog, at);
	}
	assert_true(pool_check(p));
	arena_exit(&arena);
}

/* Caps that add up to more than all: what one class does not use the other gets; what the other's
 * cap leaves is sure, and so is the reserve of each, whoever has the rest. */
static void test_lent(void **state)
{
	static const unsigned int lend[POOL_CLASSES] = {75, 75};
	struct pool *p = make(64 * MIB, lend);
	const uint64_t all = 1024, reserve = 768 / 16;
	struct lane hog[POOL_CLASSES], late[POOL_CLASSES];

	(void)state;
	assert_int_equal(pool_cap(p, POOL_CUSTODY), all / 4 * 3 * POOL_BLOCK);
	for (int first = 0; first < POOL_CLASSES; first++) {
		enum pool_class a = (enum pool_class)first, b = (enum pool_class) !first;
		uint32_t at = 0;

		for (int c = 0; c < POOL_CLASSES; c++) {
			lane_init(&hog[c], 0);
			lane_init(&late[c], 0);
		}
		while (lane_add(p, a, &hog[a], FRAME_1024))
			;
		assert_int_equal(pool_used(p, a), (all / 4 * 3 - reserve) * POOL_BLOCK);
		assert_int_equal(pool_fill(p, a), 100);
		assert_true(pool_room(p, b) > 0 && pool_fill(p, b) == 0);
		while (lane_add(p, b, &hog[b], FRAME_1024))
			;
		/* a quarter is sure; and both reserves are there, not only one's own */
		assert_int_equal(pool_used(p, b), (all / 4 - reserve) * POOL_BLOCK);
		assert_false(lane_add(p, a, &hog[a], FRAME_1024));
		assert_true(lane_add(p, a, &late[a], FRAME_1024));
		assert_true(lane_add(p, b, &late[b], FRAME_1024));
		assert_true(pool_cap_now(p, a) < pool_cap(p, a) + POOL_BLOCK);
		/* what is given back the other may have, up to its own cap */
		for (int n = 0; n < 30000; n++)
			assert_true(lane_release(p, &hog[a], &at));
		while (lane_add(p, b, &hog[b], FRAME_1024))
			;
		assert_true(pool_used(p, b) > all / 3 * POOL_BLOCK);
		assert_true(pool_used(p, a) + pool_used(p, b) <=
			    (all - 2 * reserve + 8) * POOL_BLOCK);
		lane_drain(p, &hog[a], at);
		while (lane_add(p, b, &hog[b], FRAME_1024))
			;
		assert_true(pool_used(p, b) >= (all / 4 * 3 - reserve) * POOL_BLOCK);
		assert_true(pool_used(p, b) <= pool_cap(p, b));
		lane_drain(p, &hog[b], 0);
		for (int c = 0; c < POOL_CLASSES; c++)
			lane_drain(p, &late[c], 0);
		assert_true(pool_check(p));
	}
	done(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_occupancy),
		cmocka_unit_test(test_room_is_sure),
		cmocka_unit_test(test_reserve),
		cmocka_unit_test(test_lent),
	};

	return cmocka_run_group_tests_name("store/pool, bounds", tests, NULL, NULL);
}
