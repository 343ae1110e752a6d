// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Two steps lead to a descriptor: directory page, descriptor page. A directory entry is 0 while the
 * page is absent, else
 *
 *	bits 31..8  page id + 1
 *	bits  7..0  packets in it - 1 (a page without packets is given back at once)
 *
 * Both kinds of page are all zero when the last packet leaves them, since window_del() clears what
 * it deletes; the pool is told, and need not zero them for the next user. That matters to a lane
 * which holds one packet at a time and takes two pages for each.
 */
#include "store/window.h"

#include <string.h>

#include "wire/psn.h"

_Static_assert(WINDOW_PAGE_PSNS * sizeof(struct pkt) == POOL_PAGE, "descriptors fill a page");
_Static_assert(WINDOW_PAGES * sizeof(uint32_t) == POOL_PAGE, "the directory is one page");
_Static_assert((PSN_MASK + 1) % WINDOW_SPAN == 0, "the PSN wraps at a multiple of the span");

/* Pages that a lane may take from the reserve: those two that a few packets may straddle. */
#define FIRST_PAGES 2

static inline uint32_t dir_of(uint32_t psn)
{
	return psn / WINDOW_DIR_PSNS % WINDOW_DIRS;
}

/* The caller knows that the directory is there. */
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
	*entry_of(w, p, psn) = (page + 1) << 8;
	return pool_page_ptr(p, page);
}

struct pkt *window_put(struct window *w, struct pool *p, enum pool_class c, uint32_t psn)
{
	uint32_t *entry = w->dir[dir_of(psn)] == POOL_NONE ? NULL : entry_of(w, p, psn);
	struct pkt *pkt;

	if (entry && *entry) {
		pkt = page_of(p, *entry) + psn % WINDOW_PAGE_PSNS;
		if (pkt->flags & PKT_USED)
			return NULL;
		(*entry)++;
	} else {
		pkt = page_add(w, p, c, psn);
		if (!pkt)
			return NULL;
		pkt += psn % WINDOW_PAGE_PSNS;
	}
	*pkt = (struct pkt){.flags = PKT_USED};
	return pkt;
}

struct pkt *window_get(const struct window *w, struct pool *p, uint32_t psn)
{
	uint32_t entry;
	struct pkt *pkt;

	if (w->dir[dir_of(psn)] == POOL_NONE)
		return NULL;
	entry = *entry_of(w, p, psn);
	if (!entry)
		return NULL;
	pkt = page_of(p, entry) + psn % WINDOW_PAGE_PSNS;
	return pkt->flags & PKT_USED ? pkt : NULL;
}

void window_del(struct window *w, struct pool *p, uint32_t psn)
{
	struct pkt *pkt = window_get(w, p, psn);
	uint32_t *entry;

	if (!pkt)
		return;
	memset(pkt, 0, sizeof(*pkt));
	entry = entry_of(w, p, psn);
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

struct pkt *window_next(const struct window *w, struct pool *p, uint32_t psn, uint32_t end,
			uint32_t *found)
{
	uint32_t left = (end - psn) & PSN_MASK;

	if (!w->pages)
		return NULL;
	if (left > WINDOW_SPAN)
		left = WINDOW_SPAN;
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
