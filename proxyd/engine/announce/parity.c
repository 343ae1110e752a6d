// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A push that is lost, repaired where it is missing.
 *
 * The target's READ asks again for what was lost, but that takes a round trip, and all READs of the
 * queue pair behind it wait, since they are answered in order. With a packet in a thousand lost,
 * and 32 commands of 32 packets under way, somebody always waits. So while packets get lost, the
 * pushes of a command are followed by parity: the exclusive or of the data of its packets, in
 * groups of GROUP_MAX at most. Of a group that lacks one packet it makes that one. The packets of a
 * group are as far apart as there are groups, so that losses in a row are of different ones.
 *
 * A packet that was made so is not believed for being made: parity bears the exclusive or of the
 * tags of its group, too. That gives the tag that the lacking packet must have, and only with data
 * that this is the tag of it is taken, as if it had come. Parity itself bears a tag.
 *
 *	0	PSN of the command's capsule (3), protocol and number of the buffer (part_of())
 *	4	number of the group (2), packets of the command (2)
 *	8	tag (8): of this header, the data and what follows
 *	16	exclusive or of the tags of the group's packets (8)
 *
 * and then a path MTU of data. A packet that is shorter than that counts as filled with zero. B
 * keeps no parity: it comes last, and is of use at once or not at all.
 */
#include "engine/announce/announce.h"
#include "wire/crc32.h"

/* A group is of so many packets; of a command of fewer than GROUP_MIN parity would cost too much.
 */
#define GROUP_MAX 32u
#define GROUP_MIN 16u

uint32_t parity_groups(uint32_t count)
{
	return count < GROUP_MIN ? 0 : (count + GROUP_MAX - 1) / GROUP_MAX;
}

static uint64_t tag_of(const struct lane *l, const struct lane_reads *x, const uint8_t *hdr,
		       const uint8_t *data, uint32_t len)
{
	uint64_t m[3] = {get_be64(hdr),
			 (uint64_t)l->gen << 32 | crc32_update(CRC32_INIT, data, len),
			 get_be64(hdr + 16)};

	return keyed_hash(x->announce_key, m, 3);
}

/* Add what is here of group @g of @c to @data and @tags. Returns how many lack; @lacking: one. */
static uint32_t sum(struct engine *e, const struct lane_announce *y, const struct command *c,
		    uint32_t g, uint8_t *data, uint64_t *tags, uint32_t *lacking)
{
	uint32_t missing = 0;

	for (uint32_t i = g; i < c->count; i += parity_groups(c->count)) {
		const struct pkt *d = window_get(&y->held.win, e->pool, psn_add(c->base, i));
		struct frame f;

		if (!d || frame_parse(pool_ptr(e->pool, d->loc), d->len, &f) != FRAME_OK) {
			missing++;
			*lacking = i;
			continue;
		}
		xor_bytes(data, f.data + f.payload, f.payload_len);
		*tags ^= get_be64(f.data + f.ext + 8);
	}
	return missing;
}

/* ---- A ---- */

void parity_keep(struct engine *e, struct flow *fl, const struct command *c)
{
	const struct lane *l = &fl->lane;
	struct flow *back = flow_partner(e, fl);
	struct lane_announce *y = announce_of(e, l);
	uint32_t groups = parity_groups(c->count), lacking;

	if (!(e->peer_features[l->peer] & PEER_FEATURE_PARITY) || !announce_lossy(e, fl))
		return;
	for (uint32_t g = 0; g < groups; g++) {
		uint8_t hdr[PARITY_HDR] = {0}, data[PAYLOAD_MAX] = {0}, out[FRAME_MAX];
		struct build_spec s = {.t = &back->tmpl,
				       .opcode = OP_PARITY,
				       .dqpn = back->key.dqpn,
				       .psn = g,
				       .push = hdr,
				       .payload = data,
				       .payload_len = flow_mtu(fl)};
		uint64_t tags = 0;

		if (sum(e, y, c, g, data, &tags, &lacking))
			return;
		push_header(hdr, c, g);
		put_be64(hdr + 16, tags);
		put_be64(hdr + 8, tag_of(l, reads_of(e, l), hdr, data, flow_mtu(fl)));
		if (!push_store(e, y, psn_add(c->base, c->count + g), out, build_packet(out, &s),
				PUSH_BUSY_A))
			return;
		y->info.parity++;
	}
}

/* ---- B ---- */

/* Packet @i of @c has @data and the tag @tag, if the peer has sent it so. @f is the parity. */
static void made(struct engine *e, struct flow *fl, struct command *c, uint32_t i,
		 const uint8_t *data, uint64_t tag, const struct frame *f)
{
	struct lane_announce *y = announce_of(e, &fl->lane);
	bool last = i + 1 == c->count;
	uint32_t len = last ? c->length - i * flow_mtu(fl) : flow_mtu(fl);
	uint8_t hdr[PUSH_HDR] = {0}, out[FRAME_MAX];
	struct template t = {0};
	struct build_spec s = {.t = &t,
			       .opcode = OP_PUSH,
			       .dqpn = f->dqpn,
			       .psn = i,
			       .push = hdr,
			       .payload = data,
			       .payload_len = len};
	struct frame g;

	if (last &&
	    (c->state != COMMAND_LIVE || c->length <= i * flow_mtu(fl) || len > flow_mtu(fl)))
		return; /* how long it is only the command tells */
	push_header(hdr, c, i);
	put_be64(hdr + 8, tag);
	if (push_tag(&fl->lane, reads_of(e, &fl->lane), hdr, data, len) != tag) {
		COUNT(e, PUSH_DROPPED);
		return;
	}
	template_learn(&t, f);
	if (frame_parse(out, build_packet(out, &s), &g) != FRAME_OK)
		return;
	y->info.repaired++;
	push_came(e, fl, c, i, &g);
}

void parity_rx(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	struct lane_announce *y = announce_of(e, l);
	const uint8_t *hdr = f->data + f->ext;
	uint32_t g = get_be16(hdr + 4), count = get_be16(hdr + 6), lacking = 0;
	uint64_t tags = get_be64(hdr + 16);
	uint8_t data[PAYLOAD_MAX];
	struct command *c;

	if (!push_welcome(l, y) || g >= parity_groups(count) || f->payload_len != flow_mtu(fl) ||
	    !icrc_ok(f) ||
	    get_be64(hdr + 8) !=
		    tag_of(l, reads_of(e, l), hdr, f->data + f->payload, f->payload_len)) {
		COUNT(e, PUSH_DROPPED);
		return;
	}
	c = push_known(e, y, hdr);
	if (!c || c->count != count || c->state == COMMAND_LOOSE)
		return;
	memcpy(data, f->data + f->payload, f->payload_len);
	if (sum(e, y, c, g, data, &tags, &lacking) == 1)
		made(e, fl, c, lacking, data, tags, f);
}
