// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Pushes that are lost, repaired where they are missing.
 *
 * The target's READ asks again for what was lost, but that takes a round trip, and all READs of the
 * queue pair behind it wait, since they are answered in order. With a packet in a thousand lost,
 * and 32 commands of 32 packets under way, somebody always waits. So while packets get lost, the
 * pushes of a command are followed by parity, the sums of streams (core/stream_parity.c): a frame
 * for each group, or where little waits to be sent, up to three. The packets of a group, and its
 * frames, are as far apart as there are groups, so that losses in a row are of different ones.
 *
 * What is added of a push is its tag and its data. So what is made has the tag that it must have,
 * and only with data that this is the tag of it is taken, as if it had come.
 *
 *	0	PSN of the command's capsule (3), protocol and number of the buffer (part_of())
 *	4	row, from bit ROW_SHIFT on, and number of the group (2), packets of the command (2)
 *	8	tag (8): of this header, the data and what follows
 *	16	sum of the tags of the group's packets (8), and that of their data (a path MTU)
 */
#include "engine/announce/announce.h"

/* Of a command of fewer than GROUP_MIN parity would cost too much; a frame is for COST packets. */
#define GROUP_MIN 16u
#define COST	  8u
#define ROW_SHIFT 14u
#define TAG	  8u

uint32_t parity_groups(uint32_t count)
{
	return count < GROUP_MIN ? 0 : (count + PARITY_GROUP - 1) / PARITY_GROUP;
}

/* Whether packet @i of @c is here: @f. Behind them are the frames of parity. */
static bool held(struct engine *e, const struct lane_announce *y, const struct command *c,
		 uint32_t i, struct frame *f)
{
	const struct pkt *d = window_get(&y->held.win, e->pool, psn_add(c->base, i));

	return d && frame_parse(pool_ptr(e->pool, d->loc), d->len, f) == FRAME_OK;
}

/* Add what is here of group @g of @c to @p. */
static void add(struct engine *e, const struct lane_announce *y, const struct command *c,
		uint32_t g, struct parity *p)
{
	for (uint32_t i = g, k = 0; i < c->count; i += parity_groups(c->count), k++) {
		uint8_t what[PARITY_BYTES];
		struct frame f;

		if (!held(e, y, c, i, &f))
			continue;
		memcpy(what, f.data + f.ext + 8, TAG + f.payload_len);
		parity_include(p, k, what, TAG + f.payload_len);
	}
}

/* ---- A ---- */

void parity_keep(struct engine *e, struct flow *fl, const struct command *c)
{
	const struct lane *l = &fl->lane;
	const struct flow *back = flow_partner(e, fl);
	struct lane_announce *y = announce_of(e, l);
	uint32_t groups = parity_groups(c->count), wait = psn_sub(y->end, y->nxt);
	uint32_t rows = wait < y->held.packets / 4 ? PARITY_ROWS : 1;
	uint8_t hdr[PARITY_HDR], out[FRAME_MAX];
	struct build_spec s = {.t = &back->tmpl,
			       .opcode = OP_PARITY,
			       .dqpn = back->key.dqpn,
			       .push = hdr,
			       .payload_len = flow_mtu(fl)};

	if (!(e->peer_features[l->peer] & PEER_FEATURE_PARITY) || !announce_lossy(e, fl))
		return;
	for (uint32_t g = 0; g < groups; g++) {
		struct parity p = {0};

		add(e, y, c, g, &p);
		for (uint32_t row = 0; row < MIN(rows, c->count / groups / COST); row++) {
			push_header(hdr, c, row << ROW_SHIFT | g);
			memcpy(hdr + PUSH_HDR, p.sum[row], TAG);
			s.payload = p.sum[row] + TAG;
			put_be64(hdr + 8,
				 push_tag(l, reads_of(e, l), hdr, s.payload, s.payload_len, true));
			if (!push_store(e, y, psn_add(c->base, c->count + row * groups + g), out,
					build_packet(out, &s), PUSH_BUSY_A))
				return;
			y->info.parity++;
		}
	}
}

/* ---- B ---- */

/* Packet @i of @c is @what, if that has the tag that the peer gave it. @f is of the parity. */
static void made(struct engine *e, struct flow *fl, const struct command *c, uint32_t i,
		 const uint8_t *what, const struct frame *f)
{
	struct lane_announce *y = announce_of(e, &fl->lane);
	uint8_t hdr[PUSH_HDR], out[FRAME_MAX];
	struct template t = {0};
	struct build_spec s = {.t = &t,
			       .opcode = OP_PUSH,
			       .dqpn = f->dqpn,
			       .psn = i,
			       .push = hdr,
			       .payload = what + TAG,
			       .payload_len = flow_mtu(fl)};
	struct frame g;

	if (i + 1 == c->count) /* how long it is only the command tells */
		s.payload_len = c->state == COMMAND_LIVE ? c->length - i * flow_mtu(fl) : 0;
	if (!s.payload_len || s.payload_len > flow_mtu(fl))
		return;
	push_header(hdr, c, i);
	memcpy(hdr + 8, what, TAG);
	template_learn(&t, f);
	if (frame_parse(out, build_packet(out, &s), &g) == FRAME_OK)
		push_rx(e, fl, &g);
	y->info.repaired += held(e, y, c, i, &g);
}

void parity_rx(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane_announce *y = announce_of(e, &fl->lane);
	const uint8_t *hdr = f->data + f->ext;
	uint32_t at = get_be16(hdr + 4), row = at >> ROW_SHIFT, g = at & ((1u << ROW_SHIFT) - 1);
	uint32_t groups = parity_groups(get_be16(hdr + 6)), lost[PARITY_ROWS], n = 0, rows = 0;
	uint8_t out[PARITY_ROWS][PARITY_BYTES];
	struct parity p = {0};
	struct command *c;
	struct frame k;

	if (!push_proven(e, fl, f,
			 row < PARITY_ROWS && g < groups && f->payload_len == flow_mtu(fl)))
		return;
	c = push_known(e, y, hdr);
	if (!c || c->count != get_be16(hdr + 6) || c->state == COMMAND_LOOSE)
		return;
	for (uint32_t i = g, no = 0; i < c->count; i += groups, no++)
		if (!held(e, y, c, i, &k) && n++ < PARITY_ROWS)
			lost[n - 1] = no;
	if (!n || n > PARITY_ROWS)
		return;
	(void)push_store(e, y, psn_add(c->base, c->count + row * groups + g), f->data, f->len,
			 PUSH_BUSY_B);
	for (uint32_t r = 0; r < PARITY_ROWS; r++) {
		if (r == row)
			k = *f;
		else if (!held(e, y, c, c->count + r * groups + g, &k))
			continue;
		memcpy(p.sum[r], k.data + k.ext + PUSH_HDR, TAG + k.payload_len);
		rows |= 1u << r;
	}
	add(e, y, c, g, &p);
	if (!parity_solve(&p, rows, lost, n, out))
		return;
	for (uint32_t i = 0; i < n; i++)
		made(e, fl, c, g + lost[i] * groups, out[i], f);
}
