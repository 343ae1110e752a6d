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

/* stream_parity.c */
/* PSNs of a group; what is added of a packet before all that is behind its BTH: IP identification,
 * length from the BTH on, UDP source port, the first four bytes of the BTH, its AckReq. */
#define PARITY_GROUP	  32u
#define PARITY_FIELDS	  11u
/* What a frame of parity has behind its BTH: the members (4), the row (1), the proof (8), and from
 * PARITY_SUM_AT on the beginning of the sum. */
#define STREAM_PARITY_HDR 48u
#define PARITY_SUM_AT	  13u

/** parity_block - where the @depth groups begin that @psn is in. Packets in a row are of different
 * groups: packet i of group g is @depth i + g behind that. */
static inline struct wire_psn parity_block(struct wire_psn psn, uint32_t depth)
{
	return (struct wire_psn){psn.v & ~(PARITY_GROUP * depth - 1)};
}

/** parity_include - add packet @i of a group to @p: @len bytes at @what, with room for 31 more. */
void parity_include(struct parity *p, uint32_t i, uint8_t *what, uint32_t len);
/** parity_solve - make the @n packets @missing of their sums @rows (bits) in @p. False: too few. */
bool parity_solve(struct parity *p, uint32_t rows, const uint32_t *missing, uint32_t n,
		  uint8_t (*out)[PARITY_BYTES]);
/** parity_proof - what proves @f, a request of the lane @l, or an answer to one. */
uint64_t parity_proof(const struct lane *l, const struct frame *f);
/** parity_add - add that packet of @l, the @len bytes at @data, to @p, one of @depth groups. False
 * if it is none. */
bool parity_add(const struct lane *l, struct parity *p, uint32_t depth, const uint8_t *data,
		uint32_t len);
/** stream_parity_on - parity is made of the lane now, if its rule wants it. */
bool stream_parity_on(const struct engine *e, const struct lane *l);
/** stream_parity_tx - at the end of a turn, send the parity of one group, if it is due. Returns
 * whether that of another one is. Of what @h has, the packets before @nxt have been sent, the peer
 * has told of those before @told, and @wait more wait: requests of @fl (then @to is @fl), or
 * answers to them, in the flow @to. */
bool stream_parity_tx(struct engine *e, struct flow *fl, struct flow *to, struct held *h,
		      struct wire_psn told, struct wire_psn nxt, uint32_t wait);

#endif
