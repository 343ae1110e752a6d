/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of the pool share: its table of superblocks. Theory of operation: pool.c. */
#ifndef LONGHAUL_STORE_POOL_PRIV_H
#define LONGHAUL_STORE_POOL_PRIV_H

#include <stddef.h>

#include "store/pool.h"
#include "store/undo.h"

#define UNIT_SHIFT  4
#define UNITS	    (POOL_BLOCK >> UNIT_SHIFT)
#define BLOCK_SHIFT 12 /* bits of a location for the unit in a superblock */
#define BLOCKS_MIN  64u
#define BLOCKS_MAX  ((1u << 20) - 1) /* one less than 64 GiB: POOL_NONE stays invalid */

#define PAGES	    (POOL_BLOCK / POOL_PAGE)
#define PAGES_ALL   0xffffu
#define SLOT_SIZES  8
#define SLOT_WORDS  8 /* of the map of slots, which ends its superblock */
#define SLOT_BYTES  (POOL_BLOCK - SLOT_WORDS * 8u)
/* Slots that a batch may free; a batch that frees more cannot be undone. */
#define LIMBO_SLOTS 16384u

enum block_use { BLOCK_FREE, BLOCK_OPEN, BLOCK_LOG, BLOCK_PAGES, BLOCK_SLOTS };
/* Lists of superblocks with room: of pages, and of each size of slots. */
enum partial { PARTIAL_PAGES, PARTIAL_SLOTS, PARTIALS = PARTIAL_SLOTS + SLOT_SIZES };

/**
 * struct block - what is known about a superblock.
 * @use:   enum block_use
 * @class: enum pool_class it counts for, while not free
 * @live:  packets, pages or slots in use
 * @units: log: 16-byte units that live packets occupy
 * @pages: pages: map of those in use
 * @size:  slots: which size
 * @dirty: map of pages that may have bytes other than zero
 * @next, @prev: free list (next only), partial list
 */
struct block {
	uint8_t use;
	uint8_t class;
	uint16_t live;
	union {
		uint16_t units;
		uint16_t pages;
		uint16_t size;
	};
	uint16_t dirty;
	uint32_t next, prev;
};

/**
 * struct pool - all offsets are relative to its address.
 * @undo:    offset of the log, 0: none; @noted: number of the batch in which the bytes before @slot
 *           were noted
 * @data:    offset of the first superblock; @stamps: of the stamps of pages; @notes: of the numbers
 *           of batches in which superblocks were noted
 * @limbo:   superblocks that this batch has freed; @nslots: slots that it freed, in @slot
 * @share:   percent of the superblocks that a class may hold
 * @blocks:  how many have memory; @own: had it at first; @most: can have it, in the table
 * @fresh:   first superblock that was never used; @solid: first that never had memory
 * @free:    top of the stack of free ones; @bare: of those whose memory was given back
 * @cap, @least, @reserve, @held: superblocks, per class; @least: what the other's cap leaves it
 * @partial: heads of the lists of page and slot superblocks with room
 */
struct pool {
	int64_t undo;
	uint64_t data, stamps, notes;
	uint32_t noted, limbo, nslots;
	uint32_t share[POOL_CLASSES];
	uint32_t blocks, own, most;
	uint32_t fresh, solid;
	uint32_t free, bare;
	uint32_t cap[POOL_CLASSES];
	uint32_t least[POOL_CLASSES];
	uint32_t reserve[POOL_CLASSES];
	uint32_t held[POOL_CLASSES];
	uint32_t partial[PARTIALS][POOL_CLASSES];
	/* from here on noted piece by piece */
	pool_loc slot[LIMBO_SLOTS];
	struct block block[];
};

_Static_assert(sizeof(struct block) == 16, "one superblock entry is 16 bytes");
_Static_assert(UNITS == 1u << BLOCK_SHIFT, "a location is a superblock and a unit in it");

static inline uint8_t *block_ptr(const struct pool *p, uint32_t b)
{
	return (uint8_t *)p + p->data + (uint64_t)b * POOL_BLOCK;
}

static inline struct undo *pool_undo(const struct pool *p)
{
	return p->undo ? (struct undo *)((uint8_t *)p + p->undo) : NULL;
}

/** pool_change - note them: the pool's numbers and lists are about to change. */
static inline void pool_change(struct pool *p)
{
	undo_once(pool_undo(p), &p->noted, p, offsetof(struct pool, slot));
}

/** block_change - note it: the entry of superblock @i is about to change. */
static inline void block_change(struct pool *p, uint32_t i)
{
	uint32_t *noted = (uint32_t *)((uint8_t *)p + p->notes) + i;

	undo_once(pool_undo(p), noted, &p->block[i], sizeof(p->block[i]));
}

static inline uint64_t *slot_map(const struct pool *p, uint32_t i)
{
	return (uint64_t *)(block_ptr(p, i) + SLOT_BYTES);
}

/* Slots of size @k in a superblock. */
uint32_t pool_slots_of(uint32_t k);

/** slot_free - free the slot: not even an undo of this batch needs it. */
void slot_free(struct pool *p, pool_loc slot);

/** block_limit - superblocks that class @c may hold for this @need with what the other class holds
 * now. */
uint32_t block_limit(const struct pool *p, enum pool_class c, enum pool_need need);

/* pool.c: superblocks, and the lists of those with room */
uint32_t block_take(struct pool *p, enum pool_class c, uint32_t limit, enum block_use use);
void block_free(struct pool *p, uint32_t i);
void partial_add(struct pool *p, uint32_t k, uint32_t i);
void partial_del(struct pool *p, uint32_t k, uint32_t i);

#endif
