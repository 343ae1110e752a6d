/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <string.h>

#include "engine/holes.h"
#include "wire/psn.h"

struct holes *holes_at(struct pool *p, uint32_t page)
{
	return page == POOL_NONE ? NULL : pool_page_ptr(p, page);
}

/* Index of the first hole that ends after @psn. */
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

static void take_out(struct holes *hs, uint32_t i)
{
	hs->n--;
	memmove(&hs->h[i], &hs->h[i + 1], (hs->n - i) * sizeof(hs->h[0]));
}

bool holes_room(struct pool *p, uint32_t *page, uint32_t stream_end, uint32_t from, uint32_t end)
{
	const struct holes *hs;
	uint32_t i;

	if (from == stream_end)
		return true;
	if (*page == POOL_NONE)
		*page = pool_page_get(p, POOL_TRANSIT);
	hs = holes_at(p, *page);
	if (!hs)
		return false;
	if (hs->n < HOLES_MAX)
		return true;
	if (psn_after(from, stream_end))
		return false;
	i = find(hs, from);
	return i < hs->n && (hs->h[i].from == from || hs->h[i].end == end);
}

void holes_open(struct pool *p, uint32_t page, uint32_t from, uint32_t end)
{
	struct holes *hs = holes_at(p, page);

	hs->h[hs->n++] = (struct psn_range){from, end};
}

void holes_fill(struct pool *p, uint32_t *page, uint32_t from, uint32_t end)
{
	struct holes *hs = holes_at(p, *page);
	uint32_t i;

	if (!hs)
		return;
	i = find(hs, from);
	while (i < hs->n && psn_before(hs->h[i].from, end)) {
		struct psn_range *h = &hs->h[i];

		if (psn_before(h->from, from) && psn_after(h->end, end)) {
			memmove(h + 1, h, (hs->n - i) * sizeof(*h));
			hs->n++;
			h[0].end = from;
			h[1].from = end;
			return;
		}
		if (psn_before(h->from, from)) {
			h->end = from;
			i++;
		} else if (psn_after(h->end, end)) {
			h->from = end;
			return;
		} else {
			take_out(hs, i);
		}
	}
	if (!hs->n)
		holes_drop(p, page);
}

bool holes_has(const struct holes *hs, uint32_t psn)
{
	uint32_t i = hs ? find(hs, psn) : 0;

	return hs && i < hs->n && !psn_before(psn, hs->h[i].from);
}

uint8_t holes_show(const struct holes *hs, uint32_t *cursor, struct psn_range *out)
{
	uint32_t n, at;

	if (!hs)
		return 0;
	n = hs->n < REPORT_HOLES ? hs->n : REPORT_HOLES;
	at = n == hs->n ? 0 : *cursor % hs->n;
	for (uint32_t i = 0; i < n; i++)
		out[i] = hs->h[(at + i) % hs->n];
	*cursor = at + n;
	return (uint8_t)n;
}

void holes_drop(struct pool *p, uint32_t *page)
{
	if (*page != POOL_NONE)
		pool_page_put(p, *page);
	*page = POOL_NONE;
}
