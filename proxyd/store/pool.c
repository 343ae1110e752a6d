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
 * say when the last packet has gone; so packets can be released in any order and without a search.
 * Besides the packets, the 16-byte units that they occupy are counted: a packet released twice
 * makes the two counts disagree when the superblock empties, unless all its packets have one
 * length.
 *
 * Pages are zeroed when taken. Descriptor pages are all zero when they are returned (window.c), and
 * a lane with few packets takes and returns them all the time. So each superblock notes which of
 * its pages are @dirty. The note stays valid on the free list, but not after use as log or slots.
 *
 * A slot superblock has slots of one size; the map of those in use is at its end (pool_slot.c).
 *
 * Each page has a stamp beside the table, for its user: 0 when the page is taken.
 *
 * The caps of the two classes may add up to more than the pool: one class may use what the other
 * does not. @least is what the other's cap leaves in any case. Of the free superblocks, each class
 * leaves to the other what that still lacks of its @least, but not less than its reserve. So there
 * is always a reserve.
 *
 * Size. Several pools can have one amount of memory in common: each has a table for all of it, and
 * memory for the superblocks that it may use now (pool_grow(), pool_shrink()). A superblock is on
 * the list of @bare ones before its memory goes, and has it again before it leaves that list. So a
 * process that is killed in between leaves too much memory, never too little: a superblock that may
 * be used and has none could not be written where the file system is full.
 *
 * Batches (undo.h). The table, maps of slots and what pages hold are noted before they change; the
 * bytes of packets are not. So a superblock or slot that a batch frees is in limbo until its end,
 * and an open superblock that it empties is not rewound. Until then the pool has a little less
 * room. And a superblock that it took when it is undone is free again with those bytes: after an
 * adoption none is known to be all zero.
 */
#include "store/pool_priv.h"
#include "wire/must.h"

#include <string.h>

#define RESERVE_DIV 16
/* A lane may hold so many times the free room. */
#define SHARE_FREE  8u
/* The most, in percent, that each cap may be if both add up to more than 100. */
#define CAP_LENDS   75u
/* Bytes of frames of 512 bytes and more that a superblock holds at least, less its share of a page
 * superblock. The worst case are frames just too long for sixteen to fit. */
#define BLOCK_SURE  (59 * 1024u)
/* A pool keeps so much of what it had at first, and this many times what it holds. */
#define KEEPS_DIV   4u
#define KEEPS_HELD  2u

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
	uint64_t size = sizeof(struct pool) + (uint64_t)blocks * sizeof(struct block) +
			(uint64_t)blocks * PAGES * sizeof(uint32_t) +
			(uint64_t)blocks * sizeof(uint32_t);

	return (size + 4095) & ~4095ull;
}

uint64_t pool_arena_size(uint64_t most)
{
	uint32_t blocks = blocks_of(most);

	return head_size(blocks) + (uint64_t)blocks * POOL_BLOCK + 4096;
}

uint64_t pool_bare_size(uint64_t bytes, uint64_t most)
{
	uint32_t blocks = blocks_of(bytes), all = blocks_of(most);

	return all > blocks ? (uint64_t)(all - blocks) * POOL_BLOCK : 0;
}

static enum pool_class other_class(enum pool_class c)
{
	return c == POOL_CUSTODY ? POOL_TRANSIT : POOL_CUSTODY;
}

static bool caps_fit(uint64_t a, uint64_t b)
{
	return a + b <= 100 || (a <= CAP_LENDS && b <= CAP_LENDS);
}

/* The caps of @blocks superblocks. */
static void set_size(struct pool *p, uint32_t blocks)
{
	p->blocks = blocks;
	for (int c = 0; c < POOL_CLASSES; c++) {
		p->cap[c] = (uint32_t)((uint64_t)blocks * p->share[c] / 100);
		p->reserve[c] = (p->cap[c] + RESERVE_DIV - 1) / RESERVE_DIV;
	}
	for (int c = 0; c < POOL_CLASSES; c++) {
		p->least[c] = blocks - p->cap[other_class((enum pool_class)c)];
		if (p->least[c] > p->cap[c])
			p->least[c] = p->cap[c];
	}
}

struct pool *pool_create(struct arena *a, uint64_t bytes, uint64_t most,
			 const unsigned int share[POOL_CLASSES])
{
	uint32_t blocks = blocks_of(bytes), all = blocks_of(most);
	uint64_t data;
	struct pool *p;

	if (!caps_fit(share[POOL_CUSTODY], share[POOL_TRANSIT]))
		return NULL;
	all = all < blocks ? blocks : all;
	data = head_size(all);
	p = arena_alloc(a, data + (uint64_t)all * POOL_BLOCK, 4096);
	if (!p)
		return NULL;

	p->data = data;
	p->stamps = sizeof(*p) + (uint64_t)all * sizeof(struct block);
	p->notes = p->stamps + (uint64_t)all * PAGES * sizeof(uint32_t);
	p->own = p->solid = blocks;
	p->most = all;
	p->free = p->limbo = p->bare = POOL_NONE;
	for (int c = 0; c < POOL_CLASSES; c++) {
		p->share[c] = share[c];
		for (int k = 0; k < PARTIALS; k++)
			p->partial[k][c] = POOL_NONE;
	}
	set_size(p, blocks);
	return p;
}

void pool_undo_by(struct pool *p, struct undo *u)
{
	p->undo = (uint8_t *)u - (uint8_t *)p;
}

void pool_batch_end(struct pool *p)
{
	uint32_t i, next;

	if (p->limbo == POOL_NONE && !p->nslots)
		return;
	pool_change(p);
	while (p->nslots)
		slot_free(p, p->slot[--p->nslots]);
	for (i = p->limbo; i != POOL_NONE; i = next) {
		next = p->block[i].next;
		block_change(p, i);
		p->block[i].next = p->free;
		p->free = i;
	}
	p->limbo = POOL_NONE;
}

void pool_adopted(struct pool *p)
{
	for (uint32_t i = 0; i < p->most; i++)
		if (p->block[i].use != BLOCK_PAGES)
			p->block[i].dirty = PAGES_ALL;
}

/* Superblocks */

/* Free superblocks that only class @c may take. */
static uint32_t owed(const struct pool *p, enum pool_class c)
{
	uint32_t reserve = p->cap[c] - p->held[c], lacks = 0;

	if (reserve > p->reserve[c])
		reserve = p->reserve[c];
	if (p->least[c] > p->held[c])
		lacks = p->least[c] - p->held[c];
	return lacks > reserve ? lacks : reserve;
}

uint32_t block_limit(const struct pool *p, enum pool_class c, enum pool_need need)
{
	enum pool_class o = other_class(c);
	uint32_t limit = p->blocks - p->held[o] - owed(p, o);

	if (limit > p->cap[c])
		limit = p->cap[c];
	switch (need) {
	case POOL_FIRST:
		return limit;
	case POOL_REQUEST:
		return limit - p->reserve[c] / 2;
	default:
		return limit - p->reserve[c];
	}
}

/* Take one more superblock for class @c, which then holds at most @limit. */
uint32_t block_take(struct pool *p, enum pool_class c, uint32_t limit, enum block_use use)
{
	struct block *b;
	uint32_t i;

	if (p->held[c] >= limit)
		return POOL_NONE;
	pool_change(p);
	if (p->free != POOL_NONE) {
		i = p->free;
		p->free = p->block[i].next;
	} else if (p->fresh < p->solid) {
		i = p->fresh++;
	} else {
		return POOL_NONE;
	}
	b = &p->block[i];
	must(b->use == BLOCK_FREE);
	block_change(p, i);
	b->use = use;
	b->class = c;
	b->live = 0;
	b->units = 0;
	if (use != BLOCK_PAGES)
		b->dirty = PAGES_ALL;
	p->held[c]++;
	return i;
}

void block_free(struct pool *p, uint32_t i)
{
	struct block *b = &p->block[i];
	uint32_t *list = p->undo ? &p->limbo : &p->free;

	pool_change(p);
	block_change(p, i);
	p->held[b->class]--;
	b->use = BLOCK_FREE;
	b->next = *list;
	*list = i;
}

void partial_add(struct pool *p, uint32_t k, uint32_t i)
{
	struct block *b = &p->block[i];
	uint32_t *head = &p->partial[k][b->class];

	pool_change(p);
	block_change(p, i);
	if (*head != POOL_NONE)
		block_change(p, *head);
	b->prev = POOL_NONE;
	b->next = *head;
	if (*head != POOL_NONE)
		p->block[*head].prev = i;
	*head = i;
}

void partial_del(struct pool *p, uint32_t k, uint32_t i)
{
	const struct block *b = &p->block[i];

	pool_change(p);
	if (b->next != POOL_NONE) {
		block_change(p, b->next);
		p->block[b->next].prev = b->prev;
	}
	if (b->prev != POOL_NONE) {
		block_change(p, b->prev);
		p->block[b->prev].next = b->next;
	} else {
		p->partial[k][b->class] = b->next;
	}
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

/* Add a superblock at the log's end. If there is none, the old one stays open: it may be rewound
 * later. */
static bool log_grow(struct pool *p, enum pool_class c, struct pool_log *log)
{
	bool first;
	uint32_t i;

	/* its packets were all released in this batch, so it cannot be rewound yet */
	if (log->block != POOL_NONE && !p->block[log->block].live)
		pool_log_close(p, log);
	first = log->block == POOL_NONE;
	i = block_take(p, c, block_limit(p, c, first ? POOL_FIRST : POOL_MORE), BLOCK_OPEN);
	if (i == POOL_NONE)
		return false;
	if (!first) {
		/* Else it was rewound, and has room for any packet. */
		must(p->block[log->block].live);
		block_change(p, log->block);
		p->block[log->block].use = BLOCK_LOG;
	}
	log->block = i;
	log->used = 0;
	return true;
}

/* Rewind an open superblock that has been empty since an earlier batch. Bytes released in this
 * batch must stay until it is committed. */
static void rewind_log(struct pool *p, struct pool_log *log)
{
	struct undo *u = pool_undo(p);
	const struct block *b;

	if (!u || log->block == POOL_NONE)
		return;
	b = &p->block[log->block];
	if (!b->live && b->next != u->batch)
		log->used = 0;
}

pool_loc pool_append(struct pool *p, enum pool_class c, struct pool_log *log, uint32_t len)
{
	uint32_t units, unit;
	struct block *b;

	if (__builtin_expect(len - 1 >= POOL_BLOCK, 0))
		return POOL_NONE;
	units = units_of(len);
	rewind_log(p, log);
	unit = log->used >> UNIT_SHIFT;
	if (log->block == POOL_NONE || unit + units > UNITS) {
		if (!log_grow(p, c, log))
			return POOL_NONE;
		unit = 0;
	}
	b = &p->block[log->block];
	block_change(p, log->block);
	b->live++;
	b->units += units;
	log->used = (unit + units) << UNIT_SHIFT;
	return log->block << BLOCK_SHIFT | unit;
}

void pool_release(struct pool *p, struct pool_log *log, pool_loc loc, uint32_t len)
{
	uint32_t i = loc >> BLOCK_SHIFT, units = units_of(len);
	struct block *b = &p->block[i];

	must(i < p->most && (b->use == BLOCK_LOG || b->use == BLOCK_OPEN));
	must(b->live && b->units >= units);
	block_change(p, i);
	b->live--;
	b->units -= units;
	if (b->live)
		return;
	must(!b->units);
	if (i == log->block) {
		if (p->undo)
			b->next = pool_undo(p)->batch; /* rewind_log() */
		else
			log->used = 0;
	} else {
		must(b->use == BLOCK_LOG);
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
	must(p->block[log->block].use == BLOCK_OPEN);
	block_free(p, log->block);
	pool_log_init(log);
}

void *pool_ptr(struct pool *p, pool_loc loc)
{
	must(loc >> BLOCK_SHIFT < p->most);
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
	block_change(p, i);
	b->pages |= (uint16_t)(1u << n);
	if (++b->live == PAGES)
		partial_del(p, PARTIAL_PAGES, i);
	if (b->dirty & 1u << n) {
		undo_note(pool_undo(p), block_ptr(p, i) + (size_t)n * POOL_PAGE, POOL_PAGE);
		memset(block_ptr(p, i) + (size_t)n * POOL_PAGE, 0, POOL_PAGE);
	}
	b->dirty |= (uint16_t)(1u << n);
	undo_note(pool_undo(p), pool_page_stamp(p, i * PAGES + n), sizeof(uint32_t));
	*pool_page_stamp(p, i * PAGES + n) = 0;
	return i * PAGES + n;
}

uint32_t pool_page_get(struct pool *p, enum pool_class c)
{
	return page_get(p, c, block_limit(p, c, POOL_MORE));
}

uint32_t pool_page_get_first(struct pool *p, enum pool_class c)
{
	return page_get(p, c, block_limit(p, c, POOL_FIRST));
}

void pool_page_put(struct pool *p, uint32_t page)
{
	uint32_t i = page / PAGES, bit = 1u << page % PAGES;
	struct block *b = &p->block[i];

	must(i < p->most && b->use == BLOCK_PAGES && (b->pages & bit));
	block_change(p, i);
	b->pages &= (uint16_t)~bit;
	if (b->live-- == PAGES)
		partial_add(p, PARTIAL_PAGES, i);
	if (!b->live) {
		partial_del(p, PARTIAL_PAGES, i);
		block_free(p, i);
	}
}

void pool_note(struct pool *p, const void *at, uint32_t len)
{
	undo_note(pool_undo(p), at, len);
}

void pool_page_put_zero(struct pool *p, uint32_t page)
{
	pool_page_put(p, page);
	p->block[page / PAGES].dirty &= (uint16_t) ~(1u << page % PAGES);
}

uint32_t *pool_page_stamp(struct pool *p, uint32_t page)
{
	return (uint32_t *)((uint8_t *)p + p->stamps) + page;
}

void *pool_page_ptr(struct pool *p, uint32_t page)
{
	must(page / PAGES < p->most);
	return block_ptr(p, 0) + (uint64_t)page * POOL_PAGE;
}

/* Accounts */

uint64_t pool_room(const struct pool *p, enum pool_class c)
{
	uint32_t limit = block_limit(p, c, POOL_MORE);

	/* One superblock may be needed for descriptor pages at once. */
	if (p->held[c] + 1 >= limit)
		return 0;
	return (uint64_t)(limit - p->held[c] - 1) * BLOCK_SURE;
}

uint64_t pool_share(const struct pool *p, enum pool_class c)
{
	uint32_t limit = block_limit(p, c, POOL_MORE);

	return p->held[c] >= limit ? 0 : (uint64_t)(limit - p->held[c]) * POOL_BLOCK * SHARE_FREE;
}

uint64_t pool_share_most(const struct pool *p, enum pool_class c, uint64_t holds)
{
	return (pool_share(p, c) + SHARE_FREE * holds) / (SHARE_FREE + 1);
}

uint64_t pool_log_room(const struct pool *p, enum pool_class c, const struct pool_log *log,
		       uint64_t holds)
{
	uint64_t room = pool_room(p, c), own = 0, share = pool_share_most(p, c, holds);

	/* pool_share_most() includes what the lane holds */
	share = share > holds ? share - holds : 0;
	room = room < share ? room : share;

	/* Not the sum: the rest of the open superblock may be too short for the next frame. */
	if (log->block != POOL_NONE && !p->block[log->block].live)
		own = POOL_BLOCK;
	else if (log->block != POOL_NONE)
		own = POOL_BLOCK - log->used;
	else if (!holds && p->held[c] + 2 <= block_limit(p, c, POOL_FIRST))
		own = BLOCK_SURE; /* a second one may be needed for descriptors */
	return room > own ? room : own;
}

uint64_t pool_cap(const struct pool *p, enum pool_class c)
{
	return (uint64_t)p->cap[c] * POOL_BLOCK;
}

uint64_t pool_cap_now(const struct pool *p, enum pool_class c)
{
	uint32_t limit = block_limit(p, c, POOL_FIRST);

	return (uint64_t)(limit > p->held[c] ? limit : p->held[c]) * POOL_BLOCK;
}

uint64_t pool_used(const struct pool *p, enum pool_class c)
{
	return (uint64_t)p->held[c] * POOL_BLOCK;
}

unsigned int pool_fill(const struct pool *p, enum pool_class c)
{
	uint32_t limit = block_limit(p, c, POOL_MORE);

	return limit ? (unsigned int)((uint64_t)p->held[c] * 100 / limit) : 100;
}

/* Size */

/* Superblocks that the pool can do without. */
static uint32_t spare(const struct pool *p)
{
	uint64_t keep = p->own / KEEPS_DIV, held = 0;

	keep = keep < BLOCKS_MIN ? BLOCKS_MIN : keep;
	for (int c = 0; c < POOL_CLASSES; c++) {
		uint64_t need = p->share[c] ? p->held[c] * KEEPS_HELD * 100ull / p->share[c] : 0;

		held += p->held[c];
		keep = need > keep ? need : keep;
	}
	keep = held * KEEPS_HELD > keep ? held * KEEPS_HELD : keep;
	return p->blocks > keep ? (uint32_t)(p->blocks - keep) : 0;
}

uint64_t pool_spare(const struct pool *p)
{
	return (uint64_t)spare(p) * POOL_BLOCK;
}

bool pool_short(const struct pool *p)
{
	for (int c = 0; c < POOL_CLASSES; c++) {
		uint32_t limit = block_limit(p, (enum pool_class)c, POOL_MORE);

		if (p->blocks < p->most && p->held[c] > limit - limit / 4)
			return true;
	}
	return false;
}

uint64_t pool_shrink(struct pool *p, uint64_t bytes)
{
	uint32_t can = spare(p), n = 0, i;

	if (bytes / POOL_BLOCK < can)
		can = (uint32_t)(bytes / POOL_BLOCK);
	pool_change(p);
	for (; n < can; n++) {
		if (p->fresh < p->solid) {
			i = p->fresh++;
		} else if (p->free != POOL_NONE) {
			i = p->free;
			p->free = p->block[i].next;
		} else {
			break;
		}
		block_change(p, i);
		p->block[i].next = p->bare;
		p->bare = i;
	}
	set_size(p, p->blocks - n);
	return (uint64_t)n * POOL_BLOCK;
}

void pool_give_back(const struct pool *p, const struct arena *a, uint64_t bytes)
{
	uint32_t i = p->bare;

	for (uint64_t n = bytes / POOL_BLOCK; n; n--, i = p->block[i].next)
		arena_unback(a, block_ptr(p, i), POOL_BLOCK);
}

uint64_t pool_grow(struct pool *p, const struct arena *a, uint64_t bytes)
{
	uint32_t n = 0;

	pool_change(p);
	for (; n < bytes / POOL_BLOCK; n++) {
		uint32_t i = p->bare != POOL_NONE ? p->bare : p->solid;

		if (i >= p->most || arena_back(a, block_ptr(p, i), POOL_BLOCK))
			break;
		if (i == p->solid) {
			p->solid++;
			continue;
		}
		p->bare = p->block[i].next;
		block_change(p, i);
		p->block[i].next = p->free;
		p->free = i;
	}
	set_size(p, p->blocks + n);
	return (uint64_t)n * POOL_BLOCK;
}

uint64_t pool_size(const struct pool *p)
{
	return (uint64_t)p->blocks * POOL_BLOCK;
}
