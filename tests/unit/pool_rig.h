/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the tests of the retention pool share: a pool in an arena of its own. */
#ifndef LONGHAUL_TESTS_UNIT_POOL_RIG_H
#define LONGHAUL_TESTS_UNIT_POOL_RIG_H

#include "store/pool.h"
#include "tests/unit/store_test.h"

#define FRAME_4096 4170u /* a frame at path MTU 4096, and at 1024 */
#define FRAME_1024 1098u
#define MIB	   (1ull << 20)

static struct arena arena;
static const unsigned int half[POOL_CLASSES] = {50, 50};

static inline struct pool *make(uint64_t bytes, const unsigned int *share)
{
	struct pool *p;

	assert_int_equal(arena_init(&arena, pool_arena_size(bytes)), 0);
	p = pool_create(&arena, bytes, 0, share);
	assert_non_null(p);
	assert_true(pool_check(p));
	return p;
}

static inline void done(struct pool *p)
{
	assert_true(pool_check(p));
	for (int c = 0; c < POOL_CLASSES; c++)
		assert_int_equal(pool_used(p, (enum pool_class)c), 0);
	arena_exit(&arena);
}

#endif
