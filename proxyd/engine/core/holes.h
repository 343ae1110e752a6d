/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is missing of a stream: sorted ranges of PSNs in a short chain of pool pages, which exists
 * only while something is missing. So disorder costs state by holes, not by packets (row: FAST-4).
 *
 * The owner keeps the first page, POOL_NONE when nothing is missing; all are POOL_TRANSIT.
 */
#ifndef LONGHAUL_ENGINE_CORE_HOLES_H
#define LONGHAUL_ENGINE_CORE_HOLES_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/number/psn.h"
#include "engine/report.h"
#include "store/pool.h"

/**
 * struct holes - one page. If anything is missing at all, @h[0] of the first page is missing first.
 * @n:    holes here
 * @next: page of those that follow, POOL_NONE at the end; @off: where it is, from here
 */
struct holes {
	uint32_t n, next;
	int64_t off;
	struct psn_range h[];
};
#define HOLES_PAGE  ((uint32_t)((POOL_PAGE - sizeof(struct holes)) / sizeof(struct psn_range)))
/* A long link with bad loss: 10 Gb/s, 200 ms and 1 % have a thousand. */
#define HOLES_PAGES 8u

/** holes_at - the holes that begin in @page; NULL when there are none. */
struct holes *holes_at(struct pool *p, uint32_t page);

/**
 * holes_room - whether holes allow [@from, @end) to come in a stream whose highest packet ends at
 * @stream_end: beyond that it makes a hole, inside of a hole it makes two of it, at the edge of one
 * it costs nothing. Takes and splits pages so that there is room for it.
 */
bool holes_room(struct pool *p, uint32_t *page, struct wire_psn stream_end, struct wire_psn from,
		struct wire_psn end);

/** holes_open - one more at the end of the stream; the caller has asked holes_room(). */
void holes_open(struct pool *p, uint32_t page, struct wire_psn from, struct wire_psn end);

/** holes_fill - [@from, @end) is missing no longer. The caller has made room for a split. */
void holes_fill(struct pool *p, uint32_t *page, struct wire_psn from, struct wire_psn end);

/** holes_left - how many more can be opened at the end of the stream, but for want of memory. */
uint32_t holes_left(const struct holes *hs);

/** holes_packets - PSNs missing in all. */
uint32_t holes_packets(const struct holes *hs);

/** holes_has - whether @psn is missing. */
bool holes_has(const struct holes *hs, struct wire_psn psn);

/** holes_show - at most @most (up to 255) that begin at or after @from into @out; their number. */
uint8_t holes_show(const struct holes *hs, struct wire_psn from, uint32_t most,
		   struct psn_range *out);

/** holes_drop - forget them all. */
void holes_drop(struct pool *p, uint32_t *page);

#endif
