// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Pools that lend each other memory: their size, what they keep for themselves, the memory that the
 * system has, and that an undone batch changes nothing.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/undo.h"
#include "tests/unit/pool_rig.h"

#define OWN  (16 * MIB)
#define MOST (64 * MIB)
#define MANY 4096

/**
 * struct rig - a pool, and the packets in it
 */
struct rig {
	struct arena a;
	struct undo *u;
	struct pool *p;
	struct pool_log log;
	pool_loc packet[MANY];
	uint32_t n;
};

static const unsigned int lends[POOL_CLASSES] = {75, 75};

static void rig_make(struct rig *r, int file)
{
	uint64_t bare = pool_bare_size(OWN, MOST), size = pool_arena_size(MOST) + (4 << 20);

	assert_int_equal(bare, MOST - OWN);
	r->n = 0;
	assert_int_equal(file ? arena_init_file(&r->a, file, size, bare) : arena_init(&r->a, size),
			 0);
	r->u = undo_create(&r->a, 3 << 20);
	r->p = pool_create(&r->a, OWN, MOST, lends);
	assert_non_null(r->p);
	pool_undo_by(r->p, r->u);
	pool_log_init(&r->log);
}

static void commit(struct rig *r)
{
	pool_batch_end(r->p);
	undo_commit(r->u);
	assert_true(pool_check(r->p));
}

/* As many packets as there is room for, @most at most. */
static void load(struct rig *r, uint32_t most)
{
	while (r->n < most && r->n < MANY) {
		pool_loc loc = pool_append(r->p, POOL_CUSTODY, &r->log, POOL_BLOCK / 2);

		if (loc == POOL_NONE)
			break;
		memset(pool_ptr(r->p, loc), (int)r->n & 0xff, POOL_BLOCK / 2);
		r->packet[r->n++] = loc;
	}
	commit(r);
}

static void check_bytes(struct rig *r)
{
	for (uint32_t i = 0; i < r->n; i++) {
		const uint8_t *b = pool_ptr(r->p, r->packet[i]);

		assert_int_equal(b[0], i & 0xff);
		assert_int_equal(b[POOL_BLOCK / 2 - 1], i & 0xff);
	}
}

static void empty(struct rig *r, uint32_t left)
{
	while (r->n > left)
		pool_release(r->p, &r->log, r->packet[--r->n], POOL_BLOCK / 2);
	if (!left)
		pool_log_close(r->p, &r->log);
	commit(r);
}

/* Lend up to @bytes, as engine_lend() does. */
static uint64_t shrink(struct rig *r, uint64_t bytes)
{
	bytes = pool_shrink(r->p, bytes);
	commit(r);
	pool_give_back(r->p, &r->a, bytes);
	return bytes;
}

static uint64_t memory(const struct rig *r)
{
	struct stat st;

	assert_int_equal(fstat(r->a.fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

/* One that is short grows as far as its table goes, and then holds more. */
static void test_grows(void **state)
{
	struct rig r;
	uint32_t had;

	(void)state;
	rig_make(&r, 0);
	assert_false(pool_short(r.p));
	load(&r, 64); /* 2 MiB */
	assert_false(pool_short(r.p));
	load(&r, MANY);
	had = r.n;
	assert_true(pool_short(r.p));
	assert_in_range(pool_used(r.p, POOL_CUSTODY), OWN / 2, OWN * 3 / 4);
	assert_int_equal(pool_grow(r.p, &r.a, MIB), MIB);
	commit(&r);
	assert_int_equal(pool_size(r.p), OWN + MIB);
	assert_int_equal(pool_grow(r.p, &r.a, UINT64_MAX), MOST - OWN - MIB);
	commit(&r);
	assert_int_equal(pool_size(r.p), MOST);
	assert_int_equal(pool_grow(r.p, &r.a, MIB), 0);
	assert_false(pool_short(r.p));
	load(&r, MANY);
	assert_in_range(r.n, 3 * had, 5 * had);
	assert_false(pool_short(r.p)); /* nothing would help */
	check_bytes(&r);
	empty(&r, 0);
	arena_exit(&r.a);
}

/* It keeps twice what it holds, and some when it holds nothing; no packet is touched, and both
 * classes have a place. */
static void test_shrinks(void **state)
{
	struct rig r;

	(void)state;
	rig_make(&r, 0);
	for (uint32_t held = 0; held < 400; held += 23) {
		uint64_t size = pool_size(r.p), can = pool_spare(r.p), gave;

		load(&r, held);
		can = pool_spare(r.p);
		gave = shrink(&r, UINT64_MAX);
		assert_int_equal(gave, can);
		assert_int_equal(pool_size(r.p), size - gave);
		assert_int_equal(shrink(&r, UINT64_MAX), 0);
		assert_true(pool_size(r.p) >= OWN / 4);
		if (gave) {
			assert_true(pool_size(r.p) >= 2 * pool_used(r.p, POOL_CUSTODY));
			assert_true(pool_room(r.p, POOL_CUSTODY));
		}
		assert_true(pool_room(r.p, POOL_TRANSIT));
		check_bytes(&r);
		assert_int_equal(pool_grow(r.p, &r.a, size - pool_size(r.p)), gave);
		commit(&r);
	}
	empty(&r, 0);
	arena_exit(&r.a);
}

/* What never had memory has none, and what is lent takes its memory along. */
static void test_memory(void **state)
{
	char path[] = "/dev/shm/lend.XXXXXX";
	int fd = mkstemp(path);
	uint64_t first;
	struct rig r;

	(void)state;
	assert_true(fd >= 0);
	unlink(path);
	rig_make(&r, fd);
	first = memory(&r);
	assert_in_range(first, OWN, OWN + 8 * MIB);
	assert_int_equal(pool_grow(r.p, &r.a, 10 * MIB), 10 * MIB);
	commit(&r);
	/* the end of the arena had some */
	assert_in_range(memory(&r), first + 6 * MIB, first + 10 * MIB);
	load(&r, MANY);
	empty(&r, 10);
	first = memory(&r);
	assert_int_equal(pool_shrink(r.p, 20 * MIB), 20 * MIB);
	assert_int_equal(memory(&r), first); /* this batch may be undone yet */
	commit(&r);
	pool_give_back(r.p, &r.a, 20 * MIB);
	assert_int_equal(memory(&r), first - 20 * MIB);
	(void)arena_lock(&r.a, 0); /* a successor's */
	assert_int_equal(memory(&r), first - 20 * MIB);
	check_bytes(&r);
	empty(&r, 0);
	arena_exit(&r.a);
	close(fd);
}

/* A batch that is undone has lent nothing. */
static void test_undone(void **state)
{
	struct rig r;

	(void)state;
	rig_make(&r, 0);
	load(&r, 200);
	empty(&r, 100);
	assert_int_equal(pool_shrink(r.p, 3 * MIB), 3 * MIB);
	assert_true(undo_apply(r.u));
	pool_adopted(r.p);
	assert_int_equal(pool_size(r.p), OWN);
	assert_true(pool_check(r.p));
	assert_int_equal(shrink(&r, 3 * MIB), 3 * MIB);
	assert_int_equal(pool_grow(r.p, &r.a, 5 * MIB), 5 * MIB);
	assert_true(undo_apply(r.u));
	pool_adopted(r.p);
	assert_int_equal(pool_size(r.p), OWN - 3 * MIB);
	assert_true(pool_check(r.p));
	assert_int_equal(pool_grow(r.p, &r.a, 5 * MIB), 5 * MIB);
	commit(&r);
	load(&r, MANY);
	check_bytes(&r);
	empty(&r, 0);
	arena_exit(&r.a);
}

/* What a batch has freed can be needed by its undo: its memory is not lent in that batch. */
static void test_limbo(void **state)
{
	struct rig r;
	uint32_t n;

	(void)state;
	rig_make(&r, 0);
	load(&r, MANY);
	n = r.n;
	while (r.n > 8)
		pool_release(r.p, &r.log, r.packet[--r.n], POOL_BLOCK / 2);
	assert_true(pool_shrink(r.p, UINT64_MAX) < pool_used(r.p, POOL_CUSTODY) + OWN / 2);
	assert_true(undo_apply(r.u));
	pool_adopted(r.p);
	r.n = n;
	check_bytes(&r);
	assert_true(pool_check(r.p));
	empty(&r, 0);
	arena_exit(&r.a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grows),  cmocka_unit_test(test_shrinks),
		cmocka_unit_test(test_memory), cmocka_unit_test(test_undone),
		cmocka_unit_test(test_limbo),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
