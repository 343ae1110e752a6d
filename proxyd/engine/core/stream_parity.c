// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Parity: packets of a stream that the WAN has lost are made from the others, not sent again.
 *
 * What is lost costs a round trip, and all behind it waits; unless the link is busy for longer with
 * what waits to be sent. So while a link loses packets (link_loss()), each group of PSNs near the
 * end of a stream is followed by two or three frames of parity: as many of it may be lost.
 *
 *	sender		if less waits than is under way (what the peer has not told of) it ends
 *			within a round trip: groups under way are added, the last if none waits
 *	receiver	if packets of the group are missing, those that are held are added. What
 *			went on to the responder and was acknowledged is not held any more: it was
 *			added on its way (struct parity_sum). link/parity_rx.c
 *
 * A group is 32 packets in a row. Where packets in a row get lost (link_depth()), it is each eighth
 * of a block of 256, so that a burst takes few from each of eight groups. The receiver adds in that
 * way, too, from the block on that follows the first frame which says so.
 *
 * Frame j of a group is the sum of its packets in GF(2^8), packet i times 2^(i j): the first is
 * their exclusive or. Of a packet all is added that its ICRC covers and that differs in a flow.
 *
 * That the ICRC of a packet which was made is right proves nothing: a CRC is linear, so it is right
 * as well where a packet that was added here was another one, if only a true one, than there (an
 * answer to a READ that was asked twice). So the frame has the exclusive or of keyed hashes of its
 * packets' ICRCs, too, which no other packets have. It bears the seal of the last packet of its
 * group, but for SEAL_PARITY (seal.c). A lane without a seal has no parity, and a packet so long
 * that its parity would not fit the link (IPv6, long headers) is in no group.
 *
 * Parity has a budget: a frame for each COST packets at most. Two must do while custody holds the
 * host back, for then little waits all the time. It is never sent again, and nothing waits for it.
 * The sums are a cache: what is wrong or lost there makes a packet that is not proved.
 */
#include <isa-l/erasure_code.h>

#include "engine/core/core.h"

/* COST packets pay for one frame. A stream saves at most SAVED_MAX packets for later groups, and
 * UINT8_MAX where groups are spread. A group that is not spread has ROWS_LEAST frames, or none. */
#define COST	    8u
#define SAVED_MAX   64u
#define ROWS_LEAST  2u
#define HEADERS_MAX 28u
#define HIGH_WATER  70u	  /* percent of its share of memory */
#define NEAR_US	    1000u /* a packet that is sent again is there as soon */

_Static_assert(PARITY_FIELDS + HEADERS_MAX + PAYLOAD_MAX <= PARITY_BYTES, "any fits");

static uint8_t factor(uint32_t i, uint32_t row)
{
	return i ? gf_mul(factor(i - 1, row), (uint8_t)(1u << row)) : 1;
}

/* The factors of all packets and rows as isa-l wants them; made before there are threads. */
static uint8_t factors[32 * PARITY_GROUP * PARITY_ROWS];

__attribute__((constructor)) static void make_factors(void)
{
	uint8_t a[PARITY_ROWS * PARITY_GROUP];

	for (uint32_t row = 0; row < PARITY_ROWS; row++)
		for (uint32_t i = 0; i < PARITY_GROUP; i++)
			a[row * PARITY_GROUP + i] = factor(i, row);
	ec_init_tables(PARITY_GROUP, PARITY_ROWS, a, factors);
}

void parity_include(struct parity *p, uint32_t i, uint8_t *what, uint32_t len)
{
	uint8_t *sums[PARITY_ROWS] = {p->sum[0], p->sum[1], p->sum[2]};
	uint32_t whole = (len + 31) & ~31u;

	memset(what + len, 0, whole - len);
	ec_encode_data_update((int)whole, PARITY_GROUP, PARITY_ROWS, (int)i, factors, what, sums);
	p->members |= 1u << i;
	p->len = MAX(p->len, len);
}

bool parity_solve(struct parity *p, uint32_t rows, const uint32_t *missing, uint32_t n,
		  uint8_t (*out)[PARITY_BYTES])
{
	uint8_t a[PARITY_ROWS * PARITY_ROWS], inverse[sizeof(a)], tables[32 * sizeof(a)];
	uint8_t *from[PARITY_ROWS], *to[PARITY_ROWS] = {out[0], out[1], out[2]};
	uint32_t got = 0;

	for (uint32_t row = 0; row < PARITY_ROWS && got < n; row++) {
		if (!(rows & 1u << row))
			continue;
		for (uint32_t k = 0; k < n; k++)
			a[got * n + k] = factor(missing[k], row);
		from[got++] = p->sum[row];
	}
	if (got < n || gf_invert_matrix(a, inverse, (int)n))
		return false;
	ec_init_tables((int)n, (int)n, inverse, tables);
	ec_encode_data(PARITY_BYTES, (int)n, (int)n, tables, from, to);
	return true;
}

uint64_t parity_proof(const struct lane *l, const struct frame *f)
{
	uint64_t what[2] = {(uint64_t)f->opcode << 32 | f->psn,
			    (uint64_t)SEAL_PARITY << 32 | get_le32(f->data + f->icrc)};

	return keyed_hash(l->seal.key, what, 2);
}

bool parity_add(const struct lane *l, struct parity *p, uint32_t depth, const uint8_t *data,
		uint32_t len)
{
	uint8_t what[PARITY_BYTES];
	struct frame f;
	uint32_t n;

	if (frame_parse(data, len, &f) != FRAME_OK)
		return false;
	n = PARITY_FIELDS + f.icrc - f.ext;
	if (f.bth - f.l3 + BTH_LEN + PARITY_SUM_AT + n + 3 + ICRC_LEN > FRAME_MTU(PAYLOAD_MAX))
		return false;
	put_be16(what, f.ip6 ? 0 : get_be16(data + f.l3 + 4));
	put_be16(what + 2, (uint16_t)(f.len - f.bth));
	put_be16(what + 4, f.sport);
	memcpy(what + 6, data + f.bth, 4);
	what[10] = data[f.bth + 8];
	memcpy(what + PARITY_FIELDS, data + f.ext, f.icrc - f.ext);
	parity_include(p, f.psn / depth % PARITY_GROUP, what, n);
	p->proof ^= parity_proof(l, &f);
	return true;
}

/* Frame @row of @p, one of @depth groups, whose last member is @last, for the flow @to. */
static void send(struct engine *e, const struct flow *fl, const struct flow *to,
		 const struct parity *p, uint32_t depth, uint32_t row, struct wire_psn last)
{
	uint8_t hdr[STREAM_PARITY_HDR] = {0}, out[FRAME_MAX];
	uint32_t first = MIN(p->len, STREAM_PARITY_HDR - PARITY_SUM_AT), len;
	struct build_spec s = {.t = &to->tmpl,
			       .opcode = fl == to ? OP_PARITY_REQUESTS : OP_PARITY_ANSWERS,
			       .dqpn = to->key.dqpn,
			       .psn = last.v,
			       .push = hdr,
			       .payload = p->sum[row] + first,
			       .payload_len = p->len - first};

	if (!to->tmpl.len)
		return;
	put_be32(hdr, p->members);
	hdr[4] = (uint8_t)((depth - 1) << 4 | row);
	put_be64(hdr + 5, p->proof);
	memcpy(hdr + PARITY_SUM_AT, p->sum[row], first);
	len = build_packet(out, &s);
	if (engine_tx_parity(e, fl, out, len))
		return;
	pace_sent(e, len);
	COUNT(e, PARITY_SENT);
}

/* @rows frames of what is held of the group at @from, one of @depth, before @end. Another request
 * of the appliance's own looks like a host's at the other end, so those are no members. */
static void send_group(struct engine *e, const struct flow *fl, const struct flow *to,
		       struct held *h, struct wire_psn from, struct wire_psn end, uint32_t depth,
		       uint32_t rows)
{
	struct parity p = {0};
	struct wire_psn last = from;

	for (struct wire_psn psn = from; psn_before(psn, end); psn = psn_add(psn, depth)) {
		struct pkt *d = held_pkt(e, h, psn);

		if (d && !(d->flags & PKT_OWN) &&
		    parity_add(&fl->lane, &p, depth, lane_packet(e, d), d->len))
			last = psn;
	}
	for (uint32_t row = 0; p.members && row < rows; row++)
		send(e, fl, to, &p, depth, row, last);
}

bool stream_parity_on(const struct engine *e, const struct lane *l)
{
	return l->sealed && l->state == LANE_HELD && !l->reopen &&
	       e->peer_features[l->peer] & PEER_FEATURE_REPAIR && link_loss(e, l) > 0 &&
	       e->link[l->peer].rtt_us - 1 >= NEAR_US - 1; /* 0: not known */
}

/* For want of memory; so it has more to send (near/pressed.c). */
static bool held_back(const struct engine *e, const struct lane *l)
{
	return l->held.bytes >
	       pool_share_most(e->pool, lane_class(l), l->held.bytes) / 100 * HIGH_WATER;
}

bool stream_parity_tx(struct engine *e, struct flow *fl, struct flow *to, struct held *h,
		      struct wire_psn told, struct wire_psn nxt, uint32_t wait)
{
	uint32_t depth = link_depth(e, &fl->lane), rows;
	struct wire_psn from = h->followed, at, next;

	if (!psn_before(told, nxt))
		return false; /* told of more than was sent: some passed before the lane was held */
	if (!psn_in(from, told, psn_add(nxt, 1)))
		from = told;
	at = parity_block(from, depth);
	next = psn_add(at, PARITY_GROUP * depth);
	if (!wait && psn_after(next, nxt))
		next = nxt;
	if (!psn_before(from, nxt) || psn_after(next, nxt) ||
	    (wait && wait >= psn_past(nxt, told)) || !to || fl->rule < 0 ||
	    !e->rules[fl->rule].parity || !stream_parity_on(e, &fl->lane))
		return false;
	h->saved = MIN(h->saved + psn_past(next, from), depth > 1 ? UINT8_MAX : SAVED_MAX);
	h->followed = next;
	rows = MIN(held_back(e, &fl->lane) ? ROWS_LEAST : PARITY_ROWS, h->saved / COST / depth);
	if (rows >= (depth > 1 ? 1 : ROWS_LEAST)) {
		h->saved -= rows * COST * depth;
		for (uint32_t i = 0; i < depth; i++)
			send_group(e, fl, to, h, psn_add(at, i), next, depth, rows);
	}
	return psn_before(next, nxt) &&
	       (!wait || !psn_after(psn_add(next, PARITY_GROUP * depth), nxt));
}
