/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the tests of proxyd/store share: cmocka, a seeded generator whose seed is printed and can be
 * given (STORE_SEED=n), and "this must abort".
 */
#ifndef LONGHAUL_TESTS_UNIT_STORE_TEST_H
#define LONGHAUL_TESTS_UNIT_STORE_TEST_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/arena.h"

struct rng {
	uint64_t s;
};

static inline struct rng rng_seeded(const char *test)
{
	const char *text = getenv("STORE_SEED");
	struct rng r = {text ? strtoull(text, NULL, 0) : 20261121};

	print_message("%s: STORE_SEED=%llu\n", test, (unsigned long long)r.s);
	return r;
}

static inline uint64_t rng_next(struct rng *r)
{
	uint64_t z = r->s += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* 0 .. @n - 1 */
static inline uint32_t rng_below(struct rng *r, uint32_t n)
{
	return (uint32_t)((rng_next(r) >> 32) * n >> 32);
}

/* What a packet holds: told by its stamp. */
static inline void fill(void *to, uint32_t len, uint32_t stamp)
{
	uint8_t *b = to;

	for (uint32_t i = 0; i < len; i++)
		b[i] = (uint8_t)(stamp * 31 + i * 7 + (i >> 8));
}

static inline bool same(const void *at, uint32_t len, uint32_t stamp)
{
	const uint8_t *b = at;

	for (uint32_t i = 0; i < len; i++) {
		if (b[i] != (uint8_t)(stamp * 31 + i * 7 + (i >> 8)))
			return false;
	}
	return true;
}

static inline void must_abort(void (*f)(void *), void *arg)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		if (!freopen("/dev/null", "w", stderr))
			_exit(1);
		signal(SIGABRT, SIG_DFL);
		f(arg);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

/* The same arena at another address. The old one is wiped, so that stale pointers show. */
static inline ptrdiff_t arena_move(struct arena *a)
{
	struct arena b;
	uint8_t *old = a->base;

	assert_int_equal(arena_init(&b, a->size), 0);
	memcpy(b.base, a->base, a->size);
	memset(a->base, 0xa5, a->size);
	assert_int_equal(mprotect(a->base, a->size, PROT_NONE), 0);
	b.used = a->used;
	close(a->fd);
	*a = b;
	return b.base - old;
}

#endif
