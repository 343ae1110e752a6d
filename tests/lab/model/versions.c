// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A block's latest changes are kept in a ring of HISTORY numbers, oldest overwritten first: what a
 * reader must see at least is the latest of them that its floor covers.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lab/model/pattern.h"
#include "tests/lab/model/versions.h"

#define WORDS	(VERSIONS_BLOCK / 8)
#define HISTORY 8u

struct history {
	uint64_t change[HISTORY];
	uint32_t n; /* in all */
};

struct versions {
	struct versions_clock *clock;
	uint8_t *mem;
	uint32_t blocks;
	uint64_t seed;
	struct history *past;
};

int versions_clock_init(struct versions_clock *c)
{
	c->latest = 0;
	c->when = calloc(VERSIONS_TIMES, sizeof(*c->when));
	return c->when ? 0 : -1;
}

void versions_clock_exit(struct versions_clock *c)
{
	free(c->when);
}

uint64_t versions_clock_at(const struct versions_clock *c, uint64_t when)
{
	uint64_t lo = c->latest > VERSIONS_TIMES ? c->latest - VERSIONS_TIMES + 1 : 0,
		 hi = c->latest;

	/* the largest number with a time not after @when; what is no longer remembered is before
	 * all */
	while (lo < hi) {
		uint64_t mid = hi - (hi - lo) / 2;

		if (c->when[mid % VERSIONS_TIMES] <= when)
			lo = mid;
		else
			hi = mid - 1;
	}
	return lo;
}

static void make_block(const struct versions *v, uint64_t *w, uint32_t block, uint64_t change)
{
	uint64_t key = pattern_key(v->seed ^ change << 24, block);

	w[0] = change;
	for (uint32_t i = 1; i < WORDS; i++)
		w[i] = key + i * PATTERN_STEP;
}

struct versions *versions_create(struct versions_clock *c, uint8_t *mem, uint64_t size,
				 uint64_t seed)
{
	struct versions *v = calloc(1, sizeof(*v));
	uint64_t w[WORDS];

	if (!v)
		return NULL;
	v->clock = c;
	v->mem = mem;
	v->blocks = (uint32_t)(size / VERSIONS_BLOCK);
	v->seed = seed;
	v->past = calloc(v->blocks ? v->blocks : 1, sizeof(*v->past));
	if (!v->past) {
		free(v);
		return NULL;
	}
	for (uint32_t b = 0; b < v->blocks; b++) {
		make_block(v, w, b, 0);
		memcpy(mem + (uint64_t)b * VERSIONS_BLOCK, w, VERSIONS_BLOCK);
	}
	return v;
}

void versions_destroy(struct versions *v)
{
	if (v)
		free(v->past);
	free(v);
}

uint64_t versions_change(struct versions *v, uint64_t now, uint32_t block, uint32_t n)
{
	uint64_t change = ++v->clock->latest, w[WORDS];

	v->clock->when[change % VERSIONS_TIMES] = now;
	for (; n-- && block < v->blocks; block++) {
		struct history *h = &v->past[block];

		h->change[h->n++ % HISTORY] = change;
		make_block(v, w, block, change);
		memcpy(v->mem + (uint64_t)block * VERSIONS_BLOCK, w, VERSIONS_BLOCK);
	}
	return change;
}

uint32_t versions_blocks(const struct versions *v)
{
	return v->blocks;
}

static enum versions_verdict check_block(const struct versions *v, uint32_t block,
					 const uint8_t *data, uint64_t floor)
{
	const struct history *h = &v->past[block];
	uint64_t got[WORDS], want[WORDS];
	uint32_t n = h->n < HISTORY ? h->n : HISTORY;
	bool known = false;

	memcpy(got, data, sizeof(got));
	make_block(v, want, block, got[0]);
	if (memcmp(got, want, sizeof(got)) || got[0] > v->clock->latest)
		return VERSIONS_WRONG;
	for (uint32_t i = 1; i <= n; i++) {
		uint64_t change = h->change[(h->n - i) % HISTORY];

		known |= change == got[0];
		if (change <= floor)
			return got[0] < change ? VERSIONS_STALE : VERSIONS_RIGHT;
	}
	if (h->n <= HISTORY)
		return got[0] == 0 || known ? VERSIONS_RIGHT : VERSIONS_WRONG;
	return known ? VERSIONS_RIGHT : VERSIONS_UNKNOWN;
}

enum versions_verdict versions_check(const struct versions *v, uint64_t off, const uint8_t *data,
				     uint32_t len, uint64_t floor)
{
	uint64_t end = off + len, at = (off + VERSIONS_BLOCK - 1) / VERSIONS_BLOCK * VERSIONS_BLOCK;
	enum versions_verdict worst = VERSIONS_RIGHT;

	for (; at + VERSIONS_BLOCK <= end; at += VERSIONS_BLOCK) {
		enum versions_verdict one;

		if (at / VERSIONS_BLOCK >= v->blocks)
			break;
		one = check_block(v, (uint32_t)(at / VERSIONS_BLOCK), data + (at - off), floor);
		if (one == VERSIONS_WRONG)
			return one;
		if (one == VERSIONS_STALE || worst == VERSIONS_RIGHT)
			worst = one;
	}
	return worst;
}
