/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the two streams of a lane share: theory in stream.c. */
#ifndef LONGHAUL_ENGINE_CORE_STREAM_H
#define LONGHAUL_ENGINE_CORE_STREAM_H

#include "engine/core/state.h"
#include "engine/report.h"

/** held_pkt - the packet that begins at @psn, or NULL; held_next - the first in [@from, @end). */
static inline struct pkt *held_pkt(struct engine *e, const struct held *h, struct wire_psn psn)
{
	return window_get(&h->win, e->pool, psn.v);
}

static inline struct pkt *held_next(struct engine *e, const struct held *h, struct wire_psn from,
				    struct wire_psn end, struct wire_psn *at)
{
	return window_next(&h->win, e->pool, from.v, end.v, &at->v);
}

void held_init(struct held *h);
/** held_add - keep the @len bytes at @data as number @n; NULL without room. held_add_checked - the
 * same of the response @f, NULL also if its ICRC is wrong (@bad). */
struct pkt *held_add(struct engine *e, struct held *h, uint32_t n, const uint8_t *data,
		     uint32_t len);
struct pkt *held_add_checked(struct engine *e, struct held *h, const struct frame *f, bool *bad);
/** held_del - the packet @d, number @n, goes; held_drop - all in [@from, @end), of one PSN each. */
void held_del(struct engine *e, struct held *h, struct pkt *d, uint32_t n);
void held_drop(struct engine *e, struct held *h, uint32_t from, uint32_t end);
/** held_lose - the packet @d at @psn is lost. */
void held_lose(struct engine *e, struct held *h, struct pkt *d, struct wire_psn psn);

/** stream_sent - the packet @d of @h has left, @wan: over the WAN. */
void stream_sent(struct engine *e, struct flow *fl, struct held *h, struct pkt *d, bool wan);
/** stream_tx_pkt - send @d as it is kept; as engine_tx(). */
int stream_tx_pkt(struct engine *e, struct flow *fl, const struct pkt *d, enum engine_port to);
/** stream_send - send @d over the WAN, by the port @to. False when that has no room. */
bool stream_send(struct engine *e, struct flow *fl, struct held *h, struct pkt *d,
		 enum engine_port to);
/** stream_send_lost - send what is lost of [@from, @end), oldest first. False: stop sending. */
bool stream_send_lost(struct engine *e, struct flow *fl, struct held *h, struct wire_psn from,
		      struct wire_psn end, enum engine_port to, uint32_t *budget);

/** gaps_sane - whether the missing ranges of the report @r lie where they can. */
bool gaps_sane(const struct report *r);
/** gaps_tell - the report @r says what is missing between its @cum and its @hi, and leaves now. */
void gaps_tell(struct engine *e, struct gaps *g, struct report *r);

#endif
