// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Theory of operation
 *
 * All state is a table of 16-byte entries, one for each superblock, in front of the superblocks. A
 * superblock is
 *   FREE   on the free list, or beyond @fresh and never used
 *   OPEN   a log that some lane appends to; may be empty
 *   LOG    a log that its lane has left behind; has at least one live packet
 *   PAGES  at least one page in use; on the class's partial list unless all are
 *   SLOTS  the same with slots
 *
 * The free list is a stack: what was released last is still in the cache and is used first, and a
 * pool that is mostly empty touches little memory. Superblocks that were never used come last, so
 * that the kernel need not populate them before they are needed.
 *
 * Logs keep no list of their superblocks. A packet's location names its superblock, whose counts
 * say when the last packet has gone; so release needs no order and no search. Besides the packets,
 * the 16-byte units that they occupy are counted: a packet released twice makes the two counts
 * disagree when the superblock empties, unless all its packets have one length.
 *
 * Pages are zeroed when taken. Descriptor pages come back all zero by themselves (window.c), and a
 * lane with few packets takes and returns them all the time, so each superblock remembers which of
 * its pages are @dirty; this survives a stay on the free list, but not a life as log or slots.
 *
 * A slot superblock has 341 slots and 64 bytes over, which hold the map of those in use.
 */
#include "store/pool.h"

#include <assert.h>
#include <string.h>

#define UNIT_SHIFT  4
#define UNITS	    (POOL_BLOCK >> UNIT_SHIFT)
#define BLOCK_SHIFT 12 /* of a location: units in a superblock */
#define BLOCKS_MIN  64u
#define BLOCKS_MAX  ((1u << 20) - 1) /* one less than 64 GiB: POOL_NONE stays invalid */

#define PAGES	   (POOL_BLOCK / POOL_PAGE)
#define PAGES_ALL  0xffffu
#define SLOTS	   (POOL_BLOCK / POOL_SLOT)
#define SLOT_SHIFT 9 /* of a slot id */
#define SLOT_WORDS ((SLOTS + 63) / 64)
#define SLOT_MAP   (SLOTS * (uint64_t)POOL_SLOT) /* its offset in the superblock */

#define RESERVE_DIV 16
/* What a superblock surely holds of frames of 512 bytes and more, a share of a page superblock
 * taken off. The worst case is a frame just too long for sixteen to fit. */
#define BLOCK_SURE  (59 * 1024u)

enum block_use { BLOCK_FREE, BLOCK_OPEN, BLOCK_LOG, BLOCK_PAGES, BLOCK_SLOTS };
enum partial { PARTIAL_PAGES, PARTIAL_SLOTS, PARTIALS };

/**
 * struct block - what is known about a superblock.
 * @use:   enum block_use
 * @class: enum pool_class it is counted to, while not free
 * @live:  packets, pages or slots in use
 * @units: log: 16-byte units that live packets occupy
 * @pages: pages: map of those in use
 * @dirty: map of pages that may not be zero
 * @next, @prev: free list (next only), partial list
 */
struct block {
	uint8_t use;
	uint8_t class;
	uint16_t live;
	union {
		uint16_t units;
		uint16_t pages;
	};
	uint16_t dirty;
	uint32_t next, prev;
};

/**
 * struct pool - everything is relative to its own address.
 * @data:    offset of the first superblock
 * @blocks:  how many
 * @fresh:   first one that was never used
 * @free:    top of the stack of free ones
 * @cap, @reserve, @held: superblocks, per class
 * @partial: heads of the lists of page and slot superblocks with room
 */
struct pool {
	uint64_t data;
	uint32_t blocks;
	uint32_t fresh;
	uint32_t free;
	uint32_t cap[POOL_CLASSES];
	uint32_t reserve[POOL_CLASSES];
	uint32_t held[POOL_CLASSES];
	uint32_t partial[PARTIALS][POOL_CLASSES];
	struct block block[];
};

_Static_assert(sizeof(struct block) == 16, "one superblock entry is 16 bytes");
_Static_assert(SLOT_MAP + SLOT_WORDS * 8 <= POOL_BLOCK, "the slot map fits behind the slots");
_Static_assert(UNITS == 1u << BLOCK_SHIFT, "a location is a superblock and a unit in it");
_Static_assert(SLOTS <= 1u << SLOT_SHIFT, "a slot id is a superblock and a slot in it");

static uint8_t *block_ptr(const struct pool *p, uint32_t b)
{
	return (uint8_t *)p + p->data + (uint64_t)b * POOL_BLOCK;
}

static uint32_t blocks_of(uint64_t bytes)
{
	uint64_t blocks = bytes / POOL_BLOCK;

	if (blocks < BLOCKS_MIN)
		return BLOCKS_MIN;
	return blocks > BLOCKS_MAX ? BLOCKS_MAX : (uint32_t)blocks;
}

/* The table, rounded so that superblocks start on a page of the arena. */
static uint64_t head_size(uint32_t blocks)
{
	uint64_t size = sizeof(struct pool) + (uint64_t)blocks * sizeof(struct block);

	return (size + 4095) & ~4095ull;
}

uint64_t pool_arena_size(uint64_t bytes)
{
	uint32_t blocks = blocks_of(bytes);

	return head_size(blocks) + (uint64_t)blocks * POOL_BLOCK + 4096;
}

struct pool *pool_create(struct arena *a, uint64_t bytes, const unsigned int share[POOL_CLASSES])
{
	uint32_t blocks = blocks_of(bytes);
	uint64_t data = head_size(blocks), sum = 0;
	struct pool *p;

	for (int c = 0; c < POOL_CLASSES; c++)
		sum += share[c];
	if (sum > 100)
		return NULL;
	p = arena_alloc(a, data + (uint64_t)blocks * POOL_BLOCK, 4096);
	if (!p)
		return NULL;

	p->data = data;
	p->blocks = blocks;
	p->free = POOL_NONE;
	for (int c = 0; c < POOL_CLASSES; c++) {
		p->cap[c] = (uint32_t)((uint64_t)blocks * share[c] / 100);
		p->reserve[c] = (p->cap[c] + RESERVE_DIV - 1) / RESERVE_DIV;
		for (int k = 0; k < PARTIALS; k++)
			p->partial[k][c] = POOL_NONE;
	}
	return p;
}

/* Superblocks */

/* One more superblock for class @c, which must not hold more than @limit with it. */
static uint32_t block_take(struct pool *p, enum pool_class c, uint32_t limit, enum block_use use)
{
	struct block *b;
	uint32_t i;

	if (p->held[c] >= limit)
		return POOL_NONE;
	if (p->free != POOL_NONE) {
		i = p->free;
		p->free = p->block[i].next;
	} else if (p->fresh < p->blocks) {
		i = p->fresh++;
	} else {
		return POOL_NONE;
	}
	b = &p->block[i];
	assert(b->use == BLOCK_FREE);
	b->use = use;
	b->class = c;
	b->live = 0;
	b->units = 0;
	if (use != BLOCK_PAGES)
		b->dirty = PAGES_ALL;
	p->held[c]++;
	return i;
}

static void block_free(struct pool *p, uint32_t i)
{
	struct block *b = &p->block[i];

	p->held[b->class]--;
	b->use = BLOCK_FREE;
	b->next = p->free;
	p->free = i;
}

static void partial_add(struct pool *p, enum partial k, uint32_t i)
{
	struct block *b = &p->block[i];
	uint32_t *head = &p->partial[k][b->class];

	b->prev = POOL_NONE;
	b->next = *head;
	if (*head != POOL_NONE)
		p->block[*head].prev = i;
	*head = i;
}

static void partial_del(struct pool *p, enum partial k, uint32_t i)
{
	const struct block *b = &p->block[i];

	if (b->next != POOL_NONE)
		p->block[b->next].prev = b->prev;
	if (b->prev != POOL_NONE)
		p->block[b->prev].next = b->next;
	else
		p->partial[k][b->class] = b->next;
}

/* Logs */

static inline uint32_t units_of(uint32_t len)
{
	return (len + (1u << UNIT_SHIFT) - 1) >> UNIT_SHIFT;
}

void pool_log_init(struct pool_log *log)
{
	log->block = POOL_NONE;
	log->used = 0;
}

/* A fresh superblock at the log's end. The old one stays open when there is none to be had: it may
 * be rewound later. */
static bool log_grow(struct pool *p, enum pool_class c, struct pool_log *log)
{
	bool first = log->block == POOL_NONE;
	uint32_t i = block_take(p, c, p->cap[c] - (first ? 0 : p->reserve[c]), BLOCK_OPEN);

	if (i == POOL_NONE)
		return false;
	if (!first) {
		/* An empty one is rewound and has room for any packet. */
		assert(p->block[log->block].live);
		p->block[log->block].use = BLOCK_LOG;
	}
	log->block = i;
	log->used = 0;
	return true;
}

pool_loc pool_append(struct pool *p, enum pool_class c, struct pool_log *log, uint32_t len)
{
	uint32_t units, unit;
	struct block *b;

	if (__builtin_expect(len - 1 >= POOL_BLOCK, 0))
		return POOL_NONE;
	units = units_of(len);
	unit = log->used >> UNIT_SHIFT;
	if (log->block == POOL_NONE || unit + units > UNITS) {
		if (!log_grow(p, c, log))
			return POOL_NONE;
		unit = 0;
	}
	b = &p->block[log->block];
	b->live++;
	b->units += units;
	log->used = (unit + units) << UNIT_SHIFT;
	return log->block << BLOCK_SHIFT | unit;
}

void pool_release(struct pool *p, struct pool_log *log, pool_loc loc, uint32_t len)
{
	uint32_t i = loc >> BLOCK_SHIFT, units = units_of(len);
	struct block *b = &p->block[i];

	assert(i < p->blocks && (b->use == BLOCK_LOG || b->use == BLOCK_OPEN));
	assert(b->live && b->units >= units);
	b->live--;
	b->units -= units;
	if (b->live)
		return;
	assert(!b->units);
	if (i == log->block) {
		log->used = 0;
	} else {
		assert(b->use == BLOCK_LOG);
		block_free(p, i);
	}
}

void pool_unappend(struct pool *p, struct pool_log *log, pool_loc loc, uint32_t len)
{
	uint32_t unit = loc & (UNITS - 1);

	if (loc >> BLOCK_SHIFT == log->block && unit + units_of(len) == log->used >> UNIT_SHIFT)
		log->used = unit << UNIT_SHIFT;
	pool_release(p, log, loc, len);
}

void pool_log_close(struct pool *p, struct pool_log *log)
{
	if (log->block == POOL_NONE || p->block[log->block].live)
		return;
	assert(p->block[log->block].use == BLOCK_OPEN);
	block_free(p, log->block);
	pool_log_init(log);
}

void *pool_ptr(struct pool *p, pool_loc loc)
{
	assert(loc >> BLOCK_SHIFT < p->blocks);
	return block_ptr(p, 0) + ((uint64_t)loc << UNIT_SHIFT);
}

/* Pages */

static uint32_t page_get(struct pool *p, enum pool_class c, uint32_t limit)
{
	uint32_t i = p->partial[PARTIAL_PAGES][c], n;
	struct block *b;

	if (i == POOL_NONE) {
		i = block_take(p, c, limit, BLOCK_PAGES);
		if (i == POOL_NONE)
			return POOL_NONE;
		partial_add(p, PARTIAL_PAGES, i);
	}
	b = &p->block[i];
	n = (uint32_t)__builtin_ctz(~(uint32_t)b->pages);
	b->pages |= (uint16_t)(1u << n);
	if (++b->live == PAGES)
		partial_del(p, PARTIAL_PAGES, i);
	if (b->dirty & 1u << n)
		memset(block_ptr(p, i) + (size_t)n * POOL_PAGE, 0, POOL_PAGE);
	b->dirty |= (uint16_t)(1u << n);
	return i * PAGES + n;
}

uint32_t pool_page_get(struct pool *p, enum pool_class c)
{
	return page_get(p, c, p->cap[c] - p->reserve[c]);
}

uint32_t pool_page_get_first(struct pool *p, enum pool_class c)
{
	return page_get(p, c, p->cap[c]);
}

void pool_page_put(struct pool *p, uint32_t page)
{
	uint32_t i = page / PAGES, bit = 1u << page % PAGES;
	struct block *b = &p->block[i];

	assert(i < p->blocks && b->use == BLOCK_PAGES && (b->pages & bit));
	b->pages &= (uint16_t)~bit;
	if (b->live-- == PAGES)
		partial_add(p, PARTIAL_PAGES, i);
	if (!b->live) {
		partial_del(p, PARTIAL_PAGES, i);
		block_free(p, i);
	}
}

void pool_page_put_zero(struct pool *p, uint32_t page)
{
	pool_page_put(p, page);
	p->block[page / PAGES].dirty &= (uint16_t) ~(1u << page % PAGES);
}

void *pool_page_ptr(struct pool *p, uint32_t page)
{
	assert(page / PAGES < p->blocks);
	return block_ptr(p, 0) + (uint64_t)page * POOL_PAGE;
}

/* Slots */

static uint64_t *slot_map(const struct pool *p, uint32_t i)
{
	return (uint64_t *)(block_ptr(p, i) + SLOT_MAP);
}

static uint32_t slots_take(struct pool *p, enum pool_class c)
{
	uint32_t i = block_take(p, c, p->cap[c] - p->reserve[c] / 2, BLOCK_SLOTS);
	uint64_t *map;

	if (i == POOL_NONE)
		return POOL_NONE;
	map = slot_map(p, i);
	memset(map, 0, SLOT_WORDS * sizeof(*map));
	map[SLOT_WORDS - 1] = ~0ull << SLOTS % 64; /* bits without a slot are never free */
	partial_add(p, PARTIAL_SLOTS, i);
	return i;
}

uint32_t pool_slot_get(struct pool *p, enum pool_class c)
{
	uint32_t i = p->partial[PARTIAL_SLOTS][c], w = 0, n;
	uint64_t *map;

	if (i == POOL_NONE) {
		i = slots_take(p, c);
		if (i == POOL_NONE)
			return POOL_NONE;
	}
	map = slot_map(p, i);
	while (map[w] == ~0ull)
		w++;
	n = w * 64 + (uint32_t)__builtin_ctzll(~map[w]);
	assert(n < SLOTS);
	map[w] |= 1ull << n % 64;
	if (++p->block[i].live == SLOTS)
		partial_del(p, PARTIAL_SLOTS, i);
	memset(block_ptr(p, i) + (size_t)n * POOL_SLOT, 0, POOL_SLOT);
	return i << SLOT_SHIFT | n;
}

void pool_slot_put(struct pool *p, uint32_t slot)
{
	uint32_t i = slot >> SLOT_SHIFT, n = slot & ((1u << SLOT_SHIFT) - 1);
	struct block *b = &p->block[i];
	uint64_t *word;

	assert(i < p->blocks && b->use == BLOCK_SLOTS && n < SLOTS);
	word = slot_map(p, i) + n / 64;
	assert(*word & 1ull << n % 64);
	*word &= ~(1ull << n % 64);
	if (b->live-- == SLOTS)
		partial_add(p, PARTIAL_SLOTS, i);
	if (!b->live) {
		partial_del(p, PARTIAL_SLOTS, i);
		block_free(p, i);
	}
}

void *pool_slot_ptr(struct pool *p, uint32_t slot)
{
	assert(slot >> SLOT_SHIFT < p->blocks);
	return block_ptr(p, slot >> SLOT_SHIFT) +
	       (size_t)(slot & ((1u << SLOT_SHIFT) - 1)) * POOL_SLOT;
}

/* Accounts */

uint64_t pool_room(const struct pool *p, enum pool_class c)
{
	uint32_t limit = p->cap[c] - p->reserve[c];

	/* One may be needed for descriptor pages at once. */
	if (p->held[c] + 1 >= limit)
		return 0;
	return (uint64_t)(limit - p->held[c] - 1) * BLOCK_SURE;
}

uint64_t pool_log_room(const struct pool *p, enum pool_class c, const struct pool_log *log)
{
	uint64_t room = pool_room(p, c), own = 0;

	/* Not the sum: what is left of the open one may be too short for the next frame. */
	if (log->block != POOL_NONE)
		own = POOL_BLOCK - log->used;
	else if (p->held[c] + 2 <= p->cap[c]) /* one for packets, perhaps one for descriptors */
		own = BLOCK_SURE;
	return room > own ? room : own;
}

uint64_t pool_cap(const struct pool *p, enum pool_class c)
{
	return (uint64_t)p->cap[c] * POOL_BLOCK;
}

uint64_t pool_used(const struct pool *p, enum pool_class c)
{
	return (uint64_t)p->held[c] * POOL_BLOCK;
}

unsigned int pool_fill(const struct pool *p, enum pool_class c)
{
	uint32_t limit = p->cap[c] - p->reserve[c];

	return limit ? (unsigned int)((uint64_t)p->held[c] * 100 / limit) : 100;
}

static bool page_is_zero(const uint8_t *page)
{
	return !page[0] && !memcmp(page, page + 1, POOL_PAGE - 1);
}

static bool block_check(const struct pool *p, uint32_t i)
{
	const struct block *b = &p->block[i];
	const uint64_t *map;
	uint32_t n = 0;

	if (b->use > BLOCK_SLOTS || b->class >= POOL_CLASSES)
		return false;
	switch ((enum block_use)b->use) {
	case BLOCK_FREE:
		return true;
	case BLOCK_OPEN:
	case BLOCK_LOG:
		/* A packet has at least one unit, and nobody keeps an empty log but its lane. */
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
		map = slot_map(p, i);
		for (uint32_t w = 0; w < SLOT_WORDS; w++)
			n += (uint32_t)__builtin_popcountll(map[w]);
		return b->live && b->live + SLOT_WORDS * 64 - SLOTS == n &&
		       map[SLOT_WORDS - 1] >> SLOTS % 64 == ~0ull >> SLOTS % 64;
	}
	return false;
}

/* The partial list has @want superblocks, all of them with room and of this use and class. A list
 * that ends has no member twice. */
static bool partial_check(const struct pool *p, enum partial k, uint8_t class, uint32_t want)
{
	uint8_t use = k == PARTIAL_PAGES ? BLOCK_PAGES : BLOCK_SLOTS;
	uint32_t prev = POOL_NONE, n = 0;

	for (uint32_t i = p->partial[k][class]; i != POOL_NONE; i = p->block[i].next) {
		const struct block *b;

		if (i >= p->fresh || n++ == want)
			return false;
		b = &p->block[i];
		if (b->use != use || b->class != class || b->prev != prev ||
		    b->live >= (k == PARTIAL_PAGES ? PAGES : SLOTS))
			return false;
		prev = i;
	}
	return n == want;
}

bool pool_check(const struct pool *p)
{
	uint32_t held[POOL_CLASSES] = {0}, partial[PARTIALS][POOL_CLASSES] = {{0}};
	uint32_t free = 0, n = 0;

	if (p->fresh > p->blocks)
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
		if (b->use == BLOCK_SLOTS && b->live < SLOTS)
			partial[PARTIAL_SLOTS][b->class]++;
	}
	for (uint32_t i = p->free; i != POOL_NONE; i = p->block[i].next) {
		if (i >= p->fresh || p->block[i].use != BLOCK_FREE || n++ == free)
			return false;
	}
	if (n != free)
		return false;
	for (uint8_t c = 0; c < POOL_CLASSES; c++) {
		if (held[c] != p->held[c] || held[c] > p->cap[c])
			return false;
		for (int k = 0; k < PARTIALS; k++) {
			if (!partial_check(p, (enum partial)k, c, partial[k][c]))
				return false;
		}
	}
	return true;
}
