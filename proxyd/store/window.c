// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Without pages, the leaves are searched one by one. The first packet that fits into none of four
 * leaves makes the window grow: all descriptors move to pages, and it keeps pages until it is
 * empty.
 *
 * Then two steps lead to a descriptor: directory page, descriptor page. A directory entry is 0
 * while the page is absent, else
 *
 *	bits 31..8 page id + 1 bits 7..0 packets in it - 1 (an empty page is returned at once)
 *
 * Both kinds of page are all zero when the last packet leaves them, since window_del() clears what
 * it deletes; so the pool need not zero them for the next user. That matters for a lane with widely
 * spread packets.
 */
#include "store/window.h"
#include "store/pool_priv.h"

#include <string.h>

#include "wire/psn.h"

_Static_assert(WINDOW_PAGE_PSNS * sizeof(struct pkt) == POOL_PAGE, "descriptors fill a page");
_Static_assert(WINDOW_PAGES * sizeof(uint32_t) == POOL_PAGE, "the directory is one page");
_Static_assert((PSN_MASK + 1) % WINDOW_SPAN == 0, "the PSN wraps at a multiple of the span");

#define LEAF_BYTES (WINDOW_LEAF_PSNS * (uint32_t)sizeof(struct pkt))

/* Pages that a lane may take from the reserve: a few packets may need two. */
#define FIRST_PAGES 2

/* @len bytes at @at are about to change (undo.h). */
static inline void note(struct pool *p, const void *at, uint32_t len)
{
	undo_note(pool_undo(p), at, len);
}

static inline uint32_t dir_of(uint32_t psn)
{
	return psn / WINDOW_DIR_PSNS % WINDOW_DIRS;
}

/* The directory must be there. */
static inline uint32_t *entry_of(const struct window *w, struct pool *p, uint32_t psn)
{
	uint32_t *dir = pool_page_ptr(p, w->dir[dir_of(psn)]);

	return dir + psn / WINDOW_PAGE_PSNS % WINDOW_PAGES;
}

static inline struct pkt *page_of(struct pool *p, uint32_t entry)
{
	return pool_page_ptr(p, (entry >> 8) - 1);
}

void window_init(struct window *w)
{
	*w = (struct window){0};
	for (uint32_t i = 0; i < WINDOW_DIRS; i++)
		w->dir[i] = POOL_NONE;
}

static void put_dir(struct window *w, struct pool *p, uint32_t dir)
{
	pool_page_put_zero(p, w->dir[dir]);
	w->dir[dir] = POOL_NONE;
}

/* A descriptor page for the absent @psn, with a directory if that is missing too. */
static struct pkt *page_add(struct window *w, struct pool *p, enum pool_class c, uint32_t psn)
{
	uint32_t page, dir = dir_of(psn);
	bool first = w->pages < FIRST_PAGES;

	if (w->dir[dir] == POOL_NONE) {
		w->dir[dir] = first ? pool_page_get_first(p, c) : pool_page_get(p, c);
		if (w->dir[dir] == POOL_NONE)
			return NULL;
	}
	page = first ? pool_page_get_first(p, c) : pool_page_get(p, c);
	if (page == POOL_NONE) {
		if (!w->in[dir])
			put_dir(w, p, dir);
		return NULL;
	}
	w->in[dir]++;
	w->pages++;
	note(p, entry_of(w, p, psn), sizeof(uint32_t));
	*entry_of(w, p, psn) = (page + 1) << 8;
	return pool_page_ptr(p, page);
}

/* Claim the descriptor at @psn and count it; NULL if it holds a packet. */
static struct pkt *big_claim(struct window *w, struct pool *p, enum pool_class c, uint32_t psn)
{
	uint32_t *entry = w->dir[dir_of(psn)] == POOL_NONE ? NULL : entry_of(w, p, psn);
	struct pkt *pkt;

	if (entry && *entry) {
		pkt = page_of(p, *entry) + psn % WINDOW_PAGE_PSNS;
		if (pkt->flags & PKT_USED)
			return NULL;
		note(p, entry, sizeof(*entry));
		(*entry)++;
	} else {
		pkt = page_add(w, p, c, psn);
		if (!pkt)
			return NULL;
		pkt += psn % WINDOW_PAGE_PSNS;
	}
	return pkt;
}

static struct pkt *big_slot(const struct window *w, struct pool *p, uint32_t psn)
{
	uint32_t entry;

	if (w->dir[dir_of(psn)] == POOL_NONE)
		return NULL;
	entry = *entry_of(w, p, psn);
	return entry ? page_of(p, entry) + psn % WINDOW_PAGE_PSNS : NULL;
}

/* Clear @pkt, the descriptor of @psn. */
static void big_clear(struct window *w, struct pool *p, struct pkt *pkt, uint32_t psn)
{
	uint32_t *entry = entry_of(w, p, psn);

	note(p, entry, sizeof(*entry));
	note(p, pkt, sizeof(*pkt));
	memset(pkt, 0, sizeof(*pkt));
	if (*entry & 0xff) {
		(*entry)--;
		return;
	}
	pool_page_put_zero(p, (*entry >> 8) - 1);
	*entry = 0;
	w->pages--;
	if (!--w->in[dir_of(psn)])
		put_dir(w, p, dir_of(psn));
}

/* The first packet in [@first, @first + @n), which lies within one directory that is there; not
 * reduced modulo 2^24. */
static struct pkt *next_in(const struct window *w, struct pool *p, uint32_t first, uint32_t n,
			   uint32_t *found)
{
	const uint32_t *dir = pool_page_ptr(p, w->dir[dir_of(first)]);
	uint32_t last = first + n - 1;

	for (uint32_t i = first / WINDOW_PAGE_PSNS; i <= last / WINDOW_PAGE_PSNS; i++) {
		uint32_t entry = dir[i % WINDOW_PAGES], at = i * WINDOW_PAGE_PSNS;
		uint32_t stop = at + WINDOW_PAGE_PSNS - 1;
		struct pkt *page;

		if (!entry)
			continue;
		page = page_of(p, entry);
		if (at < first)
			at = first;
		if (stop > last)
			stop = last;
		for (; at <= stop; at++) {
			if (page[at % WINDOW_PAGE_PSNS].flags & PKT_USED) {
				*found = at & PSN_MASK;
				return &page[at % WINDOW_PAGE_PSNS];
			}
		}
	}
	return NULL;
}

static struct pkt *big_next(const struct window *w, struct pool *p, uint32_t psn, uint32_t left,
			    uint32_t *found)
{
	for (uint32_t n; left; left -= n, psn = psn_add(psn, n)) {
		struct pkt *d;

		n = WINDOW_DIR_PSNS - psn % WINDOW_DIR_PSNS;
		n = n < left ? n : left;
		if (w->dir[dir_of(psn)] == POOL_NONE)
			continue;
		d = next_in(w, p, psn & PSN_MASK, n, found);
		if (d)
			return d;
	}
	return NULL;
}

/* ---- leaves ---- */

static struct pkt *leaf_ptr(struct pool *p, const struct window *w, uint32_t i)
{
	return pool_ptr(p, w->leaf[i]);
}

/* The leaf of @psn, or @w->leaves. */
static uint32_t leaf_of(const struct window *w, uint32_t psn)
{
	uint32_t base = (psn & PSN_MASK) / WINDOW_LEAF_PSNS, i = 0;

	while (i < w->leaves && w->base[i] != base)
		i++;
	return i;
}

static struct pkt *small_slot(const struct window *w, struct pool *p, uint32_t psn)
{
	uint32_t i = leaf_of(w, psn);

	return i == w->leaves ? NULL : leaf_ptr(p, w, i) + psn % WINDOW_LEAF_PSNS;
}

static bool leaf_add(struct window *w, struct pool *p, enum pool_class c, uint32_t psn)
{
	uint32_t i = w->leaves;
	pool_loc leaf = pool_slot_get(p, c, LEAF_BYTES, i ? POOL_MORE : POOL_FIRST);

	if (leaf == POOL_NONE)
		return false;
	w->leaf[i] = leaf;
	w->base[i] = (psn & PSN_MASK) / WINDOW_LEAF_PSNS;
	w->held[i] = 0;
	w->leaves++;
	note(p, leaf_ptr(p, w, i), LEAF_BYTES);
	memset(leaf_ptr(p, w, i), 0, LEAF_BYTES);
	return true;
}

static struct pkt *small_claim(struct window *w, struct pool *p, enum pool_class c, uint32_t psn,
			       uint32_t i)
{
	struct pkt *pkt;

	if (i == w->leaves && !leaf_add(w, p, c, psn))
		return NULL;
	pkt = leaf_ptr(p, w, i) + psn % WINDOW_LEAF_PSNS;
	if (pkt->flags & PKT_USED)
		return NULL;
	w->held[i]++;
	return pkt;
}

static void small_clear(struct window *w, struct pool *p, struct pkt *pkt, uint32_t psn)
{
	uint32_t i = leaf_of(w, psn), last;

	note(p, pkt, sizeof(*pkt));
	memset(pkt, 0, sizeof(*pkt));
	if (--w->held[i])
		return;
	pool_slot_put(p, w->leaf[i]);
	last = --w->leaves;
	w->leaf[i] = w->leaf[last];
	w->base[i] = w->base[last];
	w->held[i] = w->held[last];
	if (!w->leaves)
		window_init(w);
}

/* The first packet of leaf @i that is less than @left PSNs from @psn on; @off: how many. */
static struct pkt *next_of_leaf(const struct window *w, struct pool *p, uint32_t i, uint32_t psn,
				uint32_t left, uint32_t *off)
{
	struct pkt *leaf = leaf_ptr(p, w, i);
	uint32_t first = psn_sub(w->base[i] * WINDOW_LEAF_PSNS, psn);

	if (first >= left && first <= PSN_MASK + 1 - WINDOW_LEAF_PSNS)
		return NULL;
	for (uint32_t k = 0; k < WINDOW_LEAF_PSNS; k++) {
		uint32_t away = psn_sub(w->base[i] * WINDOW_LEAF_PSNS + k, psn);

		if (away < left && (leaf[k].flags & PKT_USED)) {
			*off = away;
			return &leaf[k];
		}
	}
	return NULL;
}

static struct pkt *small_next(const struct window *w, struct pool *p, uint32_t psn, uint32_t left,
			      uint32_t *found)
{
	struct pkt *best = NULL;

	for (uint32_t i = 0; i < w->leaves; i++) {
		uint32_t off;
		struct pkt *pkt = next_of_leaf(w, p, i, psn, left, &off);

		if (!pkt)
			continue;
		/* now search only for a nearer one */
		best = pkt;
		left = off;
		*found = psn_add(psn, off);
	}
	return best;
}

/* ---- leaves or pages ---- */

/* Move what the leaves hold to pages. False if there is no room for these. */
static bool grow(struct window *w, struct pool *p, enum pool_class c)
{
	struct window big;
	bool good = true;

	window_init(&big);
	for (uint32_t i = 0; i < w->leaves * WINDOW_LEAF_PSNS && good; i++) {
		const struct pkt *pkt = leaf_ptr(p, w, i / WINDOW_LEAF_PSNS) + i % WINDOW_LEAF_PSNS;
		uint32_t psn =
			w->base[i / WINDOW_LEAF_PSNS] * WINDOW_LEAF_PSNS + i % WINDOW_LEAF_PSNS;
		struct pkt *to;

		if (!pkt->flags)
			continue;
		to = big_claim(&big, p, c, psn);
		if (to) {
			note(p, to, sizeof(*to));
			*to = *pkt;
		}
		good = to;
	}
	for (uint32_t i = 0; i < w->leaves * WINDOW_LEAF_PSNS && !good; i++) {
		uint32_t psn =
			w->base[i / WINDOW_LEAF_PSNS] * WINDOW_LEAF_PSNS + i % WINDOW_LEAF_PSNS;
		struct pkt *pkt = big_slot(&big, p, psn);

		if (pkt && pkt->flags)
			big_clear(&big, p, pkt, psn);
	}
	if (!good)
		return false;
	for (uint32_t i = 0; i < w->leaves; i++)
		pool_slot_put(p, w->leaf[i]);
	*w = big;
	return true;
}

/* Claim the descriptor at @psn and count it; NULL if it holds a packet. */
static struct pkt *claim(struct window *w, struct pool *p, enum pool_class c, uint32_t psn)
{
	if (!w->pages) {
		uint32_t i = leaf_of(w, psn);

		if (i < WINDOW_LEAVES)
			return small_claim(w, p, c, psn, i);
		if (!grow(w, p, c))
			return NULL;
	}
	return big_claim(w, p, c, psn);
}

static void clear(struct window *w, struct pool *p, struct pkt *pkt, uint32_t psn)
{
	if (w->pages)
		big_clear(w, p, pkt, psn);
	else
		small_clear(w, p, pkt, psn);
}

struct pkt *window_put(struct window *w, struct pool *p, enum pool_class c, uint32_t psn)
{
	struct pkt *pkt = claim(w, p, c, psn);

	if (pkt) {
		note(p, pkt, sizeof(*pkt));
		*pkt = (struct pkt){.flags = PKT_USED};
	}
	return pkt;
}

static struct pkt *slot(const struct window *w, struct pool *p, uint32_t psn)
{
	return w->pages ? big_slot(w, p, psn) : small_slot(w, p, psn);
}

struct pkt *window_get(const struct window *w, struct pool *p, uint32_t psn)
{
	struct pkt *pkt = slot(w, p, psn);

	return pkt && pkt->flags & PKT_USED ? pkt : NULL;
}

void window_del(struct window *w, struct pool *p, uint32_t psn)
{
	struct pkt *pkt = window_get(w, p, psn);

	if (pkt)
		clear(w, p, pkt, psn);
}

struct pkt *window_next(const struct window *w, struct pool *p, uint32_t psn, uint32_t end,
			uint32_t *found)
{
	uint32_t left = (end - psn) & PSN_MASK;

	if (left > WINDOW_SPAN)
		left = WINDOW_SPAN;
	return w->pages ? big_next(w, p, psn, left, found) : small_next(w, p, psn, left, found);
}

uint32_t *window_stamp(const struct window *w, struct pool *p, uint32_t psn)
{
	uint32_t entry;

	if (!w->pages || w->dir[dir_of(psn)] == POOL_NONE)
		return NULL;
	entry = *entry_of(w, p, psn);
	return entry ? pool_page_stamp(p, (entry >> 8) - 1) : NULL;
}
