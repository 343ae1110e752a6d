// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Pages of one chain are sorted among each other too. Only the first one can be empty while others
 * are not used, and the last one, when it was taken for a hole that then did not come.
 */
#include <string.h>

#include "engine/core/holes.h"
#include "wire/psn.h"

struct holes *holes_at(struct pool *p, uint32_t page)
{
	return page == POOL_NONE ? NULL : pool_page_ptr(p, page);
}

/* A page is about to change, by one hole more at most. */
static void change(struct pool *p, const struct holes *hs)
{
	uint32_t len = (uint32_t)sizeof(*hs) + (hs->n + 1) * (uint32_t)sizeof(hs->h[0]);

	pool_note(p, hs, len < POOL_PAGE ? len : POOL_PAGE);
}

static struct holes *following(const struct holes *hs)
{
	return hs->next == POOL_NONE ? NULL : (struct holes *)((uintptr_t)hs + (uintptr_t)hs->off);
}

/* The page that a search for @psn ends in: with the first hole that ends after it, or the last. */
static struct holes *page_of(struct holes *hs, uint32_t psn)
{
	struct holes *next;

	while ((!hs->n || !psn_after(hs->h[hs->n - 1].end, psn)) && (next = following(hs)))
		hs = next;
	return hs;
}

/* Index of the first hole of a page that ends after @psn. */
static uint32_t find(const struct holes *hs, uint32_t psn)
{
	uint32_t lo = 0, hi = hs->n;

	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (psn_after(hs->h[mid].end, psn))
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/* A new page behind @after (NULL: the first one). */
static struct holes *take_page(struct pool *p, uint32_t *first, struct holes *after)
{
	uint32_t page = pool_page_get(p, POOL_TRANSIT);
	struct holes *hs = holes_at(p, page);

	if (!hs)
		return NULL;
	change(p, hs);
	hs->next = POOL_NONE;
	if (!after) {
		*first = page;
		return hs;
	}
	change(p, after);
	if (after->next != POOL_NONE) {
		hs->next = after->next;
		hs->off = (int64_t)((intptr_t)following(after) - (intptr_t)hs);
	}
	after->next = page;
	after->off = (int64_t)((intptr_t)hs - (intptr_t)after);
	return hs;
}

/* Give empty pages back, but for a first one that stands alone. */
static void prune(struct pool *p, uint32_t *first)
{
	struct holes *prev = NULL, *hs = holes_at(p, *first), *next;

	for (; hs; hs = next) {
		uint32_t page = prev ? prev->next : *first;

		next = following(hs);
		if (hs->n || (!prev && !next)) {
			prev = hs;
			continue;
		}
		if (!prev) {
			*first = hs->next;
		} else {
			change(p, prev);
			prev->next = hs->next;
			if (next)
				prev->off = (int64_t)((intptr_t)next - (intptr_t)prev);
		}
		pool_page_put(p, page);
	}
}

bool holes_room(struct pool *p, uint32_t *page, struct wire_psn stream_end, struct wire_psn from,
		struct wire_psn end)
{
	struct holes *hs, *at, *more;
	uint32_t i, pages = 1;

	if (psn_is(from, stream_end))
		return true;
	hs = *page == POOL_NONE ? take_page(p, page, NULL) : holes_at(p, *page);
	if (!hs)
		return false;
	at = page_of(hs, from.v);
	if (psn_after(from, stream_end))
		while ((more = following(at)))
			at = more;
	if (at->n < HOLES_PAGE)
		return true;
	i = find(at, from.v);
	if (!psn_after(from, stream_end) && i < at->n &&
	    (at->h[i].from == from.v || at->h[i].end == end.v))
		return true;
	for (more = hs; (more = following(more));)
		pages++;
	more = pages < HOLES_PAGES ? take_page(p, page, at) : NULL;
	if (!more)
		return false;
	if (!psn_after(from, stream_end)) {
		pool_note(p, more, POOL_PAGE);
		more->n = at->n / 2;
		at->n -= more->n;
		memcpy(more->h, &at->h[at->n], more->n * sizeof(more->h[0]));
	}
	return true;
}

void holes_open(struct pool *p, uint32_t page, struct wire_psn from, struct wire_psn end)
{
	struct holes *hs = holes_at(p, page), *next;

	while ((next = following(hs)))
		hs = next;
	change(p, hs);
	hs->h[hs->n++] = (struct psn_range){from.v, end.v};
}

void holes_fill(struct pool *p, uint32_t *page, struct wire_psn from, struct wire_psn end)
{
	struct holes *first = holes_at(p, *page), *hs;
	bool emptied = false;

	for (hs = first ? page_of(first, from.v) : NULL; hs; hs = following(hs)) {
		uint32_t i = find(hs, from.v), gone = i;

		change(p, hs);
		if (i < hs->n && psn_before(hs->h[i].from, from.v) &&
		    psn_after(hs->h[i].end, end.v)) {
			struct psn_range *h = &hs->h[i];

			memmove(h + 1, h, (hs->n - i) * sizeof(*h));
			hs->n++;
			h[0].end = from.v;
			h[1].from = end.v;
			return;
		}
		if (i < hs->n && psn_before(hs->h[i].from, from.v)) {
			hs->h[i].end = from.v;
			gone = ++i;
		}
		while (gone < hs->n && !psn_after(hs->h[gone].end, end.v))
			gone++;
		memmove(&hs->h[i], &hs->h[gone], (hs->n - gone) * sizeof(hs->h[0]));
		hs->n -= gone - i;
		emptied |= !hs->n;
		if (i < hs->n) {
			if (psn_before(hs->h[i].from, end.v))
				hs->h[i].from = end.v;
			break;
		}
	}
	if (!emptied)
		return;
	prune(p, page);
	if (!holes_at(p, *page)->n)
		holes_drop(p, page);
}

uint32_t holes_left(const struct holes *hs)
{
	uint32_t pages = HOLES_PAGES;

	for (const struct holes *more; hs && (more = following(hs)); hs = more)
		pages--;
	return hs ? pages * HOLES_PAGE - hs->n : pages * HOLES_PAGE;
}

uint32_t holes_packets(const struct holes *hs)
{
	uint32_t sum = 0;

	for (; hs; hs = following(hs))
		for (uint32_t i = 0; i < hs->n; i++)
			sum += (hs->h[i].end - hs->h[i].from) & PSN_MASK;
	return sum;
}

bool holes_has(const struct holes *hs, struct wire_psn psn)
{
	uint32_t i;

	if (!hs)
		return false;
	hs = page_of((struct holes *)(uintptr_t)hs, psn.v);
	i = find(hs, psn.v);
	return i < hs->n && !psn_before(psn.v, hs->h[i].from);
}

uint8_t holes_show(const struct holes *hs, struct wire_psn from, uint32_t most,
		   struct psn_range *out)
{
	uint32_t n = 0, i;

	if (!hs)
		return 0;
	hs = page_of((struct holes *)(uintptr_t)hs, from.v);
	i = find(hs, from.v);
	if (i < hs->n && psn_before(hs->h[i].from, from.v))
		i++;
	for (; hs && n < most; hs = following(hs), i = 0)
		while (i < hs->n && n < most)
			out[n++] = hs->h[i++];
	return (uint8_t)n;
}

void holes_drop(struct pool *p, uint32_t *page)
{
	while (*page != POOL_NONE) {
		uint32_t next = holes_at(p, *page)->next;

		pool_page_put(p, *page);
		*page = next;
	}
}
