// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Slots: packets of lanes that hold little, and other small things. All lanes share superblocks.
 *
 * A superblock has slots of one size; the map of those in use is at its end, and bits without a
 * slot are never free. A superblock with slots in use is filled before another one is taken: so
 * slots in use are close together, and in the cache.
 *
 * The reserve is for lanes that hold nothing yet. So free slots of a superblock from the reserve
 * are refused to others, too.
 *
 * row: POOL-1, CONV-6
 */
#include "store/pool_priv.h"
#include "wire/must.h"

/* For a frame with 64 bytes, READ requests, a leaf of a window (window.c), and frames of each path
 * MTU, over IPv6 and with a VLAN tag. */
#define SIZES(X) X(128) X(POOL_SLOT) X(256) X(384) X(640) X(1152) X(2176) X(4352)

static const uint16_t sizes[SLOT_SIZES] = {
#define X(size) size,
	SIZES(X)
#undef X
};

static const uint16_t slots_of[SLOT_SIZES] = {
#define X(size) SLOT_BYTES / size,
	SIZES(X)
#undef X
};

uint32_t pool_slots_of(uint32_t k)
{
	return slots_of[k];
}

static uint32_t size_for(uint32_t len)
{
	uint32_t k = 0;

	while (k < SLOT_SIZES && sizes[k] < len)
		k++;
	return k;
}

static uint32_t take_block(struct pool *p, enum pool_class c, uint32_t limit, uint32_t k)
{
	uint32_t i = block_take(p, c, limit, BLOCK_SLOTS), slots = pool_slots_of(k);
	uint64_t *map;

	if (i == POOL_NONE)
		return POOL_NONE;
	p->block[i].size = (uint16_t)k;
	map = slot_map(p, i);
	undo_note(pool_undo(p), map, SLOT_WORDS * sizeof(*map));
	for (uint32_t w = 0; w < SLOT_WORDS; w++)
		map[w] = slots >= (w + 1) * 64 ? 0 : slots <= w * 64 ? ~0ull : ~0ull << slots % 64;
	partial_add(p, PARTIAL_SLOTS + k, i);
	return i;
}

pool_loc pool_slot_get(struct pool *p, enum pool_class c, uint32_t len, enum pool_need need)
{
	uint32_t k = size_for(len), limit = block_limit(p, c, need), i, w = 0, n;
	uint64_t *map;

	if (k == SLOT_SIZES || p->held[c] > limit)
		return POOL_NONE;
	i = p->partial[PARTIAL_SLOTS + k][c];
	if (i == POOL_NONE) {
		i = take_block(p, c, limit, k);
		if (i == POOL_NONE)
			return POOL_NONE;
	}
	map = slot_map(p, i);
	while (map[w] == ~0ull)
		w++;
	n = w * 64 + (uint32_t)__builtin_ctzll(~map[w]);
	block_change(p, i);
	undo_note(pool_undo(p), &map[w], sizeof(map[w]));
	map[w] |= 1ull << n % 64;
	if (++p->block[i].live == pool_slots_of(k))
		partial_del(p, PARTIAL_SLOTS + k, i);
	return i << BLOCK_SHIFT | (n * sizes[k]) >> UNIT_SHIFT;
}

void slot_free(struct pool *p, pool_loc slot)
{
	uint32_t i = slot >> BLOCK_SHIFT, at = (slot & (UNITS - 1)) << UNIT_SHIFT, k, n;
	struct block *b = &p->block[i];
	uint64_t *word;

	must(i < p->most && b->use == BLOCK_SLOTS);
	k = b->size;
	n = at / sizes[k];
	must(n < pool_slots_of(k) && n * sizes[k] == at);
	word = slot_map(p, i) + n / 64;
	must(*word & 1ull << n % 64);
	block_change(p, i);
	undo_note(pool_undo(p), word, sizeof(*word));
	*word &= ~(1ull << n % 64);
	if (b->live-- == pool_slots_of(k))
		partial_add(p, PARTIAL_SLOTS + k, i);
	if (!b->live) {
		partial_del(p, PARTIAL_SLOTS + k, i);
		block_free(p, i);
	}
}

void pool_slot_put(struct pool *p, pool_loc slot)
{
	if (!p->undo) {
		slot_free(p, slot);
		return;
	}
	pool_change(p);
	if (p->nslots < LIMBO_SLOTS) {
		p->slot[p->nslots++] = slot;
		return;
	}
	undo_lose(pool_undo(p));
	slot_free(p, slot);
}
