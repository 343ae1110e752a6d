// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Whether the books of the pool balance: every superblock, page and slot is accounted for once.
 * Slow, for tests and the scenario runner.
 */
#include <string.h>

#include "store/pool_priv.h"

static bool page_is_zero(const uint8_t *page)
{
	return !page[0] && !memcmp(page, page + 1, POOL_PAGE - 1);
}

/* Bits without a slot are never free. */
static bool slots_check(const struct pool *p, uint32_t i)
{
	const struct block *b = &p->block[i];
	const uint64_t *map = slot_map(p, i);
	uint32_t n = 0, slots;

	if (b->size >= SLOT_SIZES)
		return false;
	slots = pool_slots_of(b->size);
	for (uint32_t w = 0; w < SLOT_WORDS; w++) {
		uint32_t below = slots > w * 64 ? slots - w * 64 : 0;
		uint64_t none = below >= 64 ? 0 : ~0ull << below;

		if (~map[w] & none)
			return false;
		n += (uint32_t)__builtin_popcountll(map[w] & ~none);
	}
	return b->live && b->live == n;
}

/* Pages, or slots of this size, in a superblock. */
static uint32_t places(uint32_t k)
{
	return k == PARTIAL_PAGES ? PAGES : pool_slots_of(k - PARTIAL_SLOTS);
}

static bool block_check(const struct pool *p, uint32_t i)
{
	const struct block *b = &p->block[i];
	uint32_t n;

	if (b->use > BLOCK_SLOTS || b->class >= POOL_CLASSES)
		return false;
	switch ((enum block_use)b->use) {
	case BLOCK_FREE:
		return true;
	case BLOCK_OPEN:
	case BLOCK_LOG:
		/* A packet has at least one unit, and only an open log may be empty. */
		return b->live <= b->units && b->units <= UNITS && !b->live == !b->units &&
		       (b->live || b->use == BLOCK_OPEN);
	case BLOCK_PAGES:
		for (n = 0; n < PAGES; n++) {
			if (!((b->pages | b->dirty) & 1u << n) &&
			    !page_is_zero(block_ptr(p, i) + (size_t)n * POOL_PAGE))
				return false;
		}
		return b->live && b->live == (uint32_t)__builtin_popcount(b->pages) &&
		       !(b->pages & ~b->dirty);
	case BLOCK_SLOTS:
		return slots_check(p, i);
	}
	return false;
}

/* The partial list has @want superblocks, all of them with room and of this use and class. A list
 * that ends has no member twice. */
static bool partial_check(const struct pool *p, uint32_t k, uint8_t class, uint32_t want)
{
	uint8_t use = k == PARTIAL_PAGES ? BLOCK_PAGES : BLOCK_SLOTS;
	uint32_t prev = POOL_NONE, n = 0;

	for (uint32_t i = p->partial[k][class]; i != POOL_NONE; i = p->block[i].next) {
		const struct block *b;

		if (i >= p->fresh || n++ == want)
			return false;
		b = &p->block[i];
		if (b->use != use || b->class != class || b->prev != prev || b->live >= places(k) ||
		    (use == BLOCK_SLOTS && b->size != k - PARTIAL_SLOTS))
			return false;
		prev = i;
	}
	return n == want;
}

bool pool_check(const struct pool *p)
{
	uint32_t held[POOL_CLASSES] = {0}, partial[PARTIALS][POOL_CLASSES] = {{0}};
	uint32_t free = 0, n = 0, bare = 0;

	if (p->fresh > p->solid || p->solid > p->most)
		return false;
	for (uint32_t i = 0; i < p->fresh; i++) {
		const struct block *b = &p->block[i];

		if (!block_check(p, i))
			return false;
		if (b->use == BLOCK_FREE)
			free++;
		else
			held[b->class]++;
		if (b->use == BLOCK_PAGES && b->live < PAGES)
			partial[PARTIAL_PAGES][b->class]++;
		if (b->use == BLOCK_SLOTS && b->live < pool_slots_of(b->size))
			partial[PARTIAL_SLOTS + b->size][b->class]++;
	}
	for (uint32_t i = p->limbo; i != POOL_NONE; i = p->block[i].next) {
		if (i >= p->fresh || p->block[i].use != BLOCK_FREE || n++ == free)
			return false;
	}
	for (uint32_t i = p->free; i != POOL_NONE; i = p->block[i].next) {
		if (i >= p->fresh || p->block[i].use != BLOCK_FREE || n++ == free)
			return false;
	}
	for (uint32_t i = p->bare; i != POOL_NONE; i = p->block[i].next) {
		if (i >= p->fresh || p->block[i].use != BLOCK_FREE || n++ == free)
			return false;
		bare++;
	}
	if (n != free || p->blocks != p->solid - bare)
		return false;
	for (uint32_t c = 0; c < POOL_CLASSES; c++) {
		if (held[c] != p->held[c] || held[c] > p->cap[c])
			return false;
		for (uint32_t k = 0; k < PARTIALS; k++) {
			if (!partial_check(p, k, c, partial[k][c]))
				return false;
		}
	}
	return true;
}
