// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Pushes: what was READ ahead of a target, on its way over the WAN.
 *
 * A push is a packet of one command, with the BTH of a packet to the target but for the opcode, and
 *
 *	0	PSN of the command's capsule (3), protocol and number of the buffer (part_of())
 *	4	number of the packet in the command (2), packets of the command (2)
 *	8	tag (8)
 *
 * and then a path MTU of data, or in the last what is left. So each says by itself what it is; they
 * come in any order, before their command or after it, and what is lost the target's READ brings.
 *
 * The tag is a keyed hash of those fields, the lane's generation and the data's CRC; the key is in
 * the opener's consent, which only its peer can read. That is what a seal is to other packets
 * (core/seal.c). A push has a header of its own to bear it, and no PSN of the lane.
 *
 * Both ends keep packets by numbers of their own: A to push them, both to make answers of them.
 */
#include "engine/announce/announce.h"
#include "wire/crc32.h"

/* A command that has not come yet is at most so far ahead. */
#define AHEAD_PSNS 65536
/* All packets that are kept lie within this. */
#define SPAN	   (WINDOW_SPAN / 2)

uint64_t push_tag(const struct lane *l, const struct lane_reads *x, const uint8_t *hdr,
		  const uint8_t *data, uint32_t len, bool parity)
{
	uint64_t m[3] = {get_be64(hdr),
			 (uint64_t)l->gen << 32 | crc32_update(CRC32_INIT, data, len),
			 parity ? get_be64(hdr + PUSH_HDR) : 0};

	return keyed_hash(x->announce_key, m, parity ? 3 : 2);
}

void push_header(uint8_t *hdr, const struct command *c, uint32_t i)
{
	put_be24(hdr, c->psn.v);
	hdr[3] = c->part;
	put_be16(hdr + 4, (uint16_t)i);
	put_be16(hdr + 6, (uint16_t)c->count);
}

bool push_numbers(struct engine *e, struct lane_announce *y, struct command *c, uint32_t count)
{
	uint32_t all = count + parity_groups(count) * PARITY_ROWS;

	mq_each (const struct command, k, e->reads, &y->commands) {
		if (!k->count || k->over)
			continue;
		if (psn_sub(y->end, k->base) + all > SPAN)
			return false;
		break;
	}
	c->base = y->end;
	c->count = count;
	y->end = psn_add(y->end, all);
	return count <= UINT16_MAX;
}

struct pkt *push_store(struct engine *e, struct lane_announce *y, uint32_t n, const uint8_t *data,
		       uint32_t len, uint32_t busy)
{
	if (pool_fill(e->pool, POOL_TRANSIT) >= busy || window_get(&y->held.win, e->pool, n))
		return NULL;
	return held_add(e, &y->held, n, data, len);
}

/* ---- A ---- */

bool push_keep(struct engine *e, struct flow *fl, struct command *c, uint32_t i,
	       const struct frame *f)
{
	struct flow *back = flow_partner(e, fl);
	struct lane *l = &fl->lane;
	struct lane_announce *y = announce_of(e, l);
	uint8_t hdr[PUSH_HDR] = {0}, out[FRAME_MAX];
	struct build_spec s = {.t = &back->tmpl,
			       .opcode = OP_PUSH,
			       .dqpn = back->key.dqpn,
			       .psn = i,
			       .push = hdr,
			       .payload = f->data + f->payload,
			       .payload_len = f->payload_len};
	uint32_t n = psn_add(c->base, i);

	push_header(hdr, c, i);
	put_be64(hdr + 8, push_tag(l, reads_of(e, l), hdr, s.payload, s.payload_len, false));
	if (!push_store(e, y, n, out, build_packet(out, &s), PUSH_BUSY_A))
		return false;
	pace_run(e, back);
	return true;
}

bool push_run(struct engine *e, struct flow *fl, uint32_t quantum)
{
	struct lane_announce *y = announce_of(e, &fl->lane);
	uint32_t budget = quantum, n;
	struct pkt *d;

	if (!y || !y->held.packets)
		return false;
	while (psn_before(y->nxt, y->end) &&
	       (d = window_next(&y->held.win, e->pool, y->nxt, y->end, &n))) {
		if (d->flags & PKT_SENT) { /* in an answer (push_spare()) */
			y->nxt = psn_add(n, 1);
			continue;
		}
		/* each is sent once, and bears no seal */
		if (!budget || !pace_may_send(e) || !stream_send(e, NULL, &y->held, d, fl->side))
			return true;
		budget -= d->len < budget ? d->len : budget;
		y->nxt = psn_add(n, 1);
	}
	return false;
}

bool push_bytes(struct engine *e, const struct flow *fl, const struct lane_announce *y,
		const struct command *c, uint32_t at, uint32_t len, uint8_t *out, uint32_t *xmit)
{
	while (len) {
		uint32_t i = at / flow_mtu(fl), skip = at % flow_mtu(fl), n;
		struct pkt *d = i < c->count
					? window_get(&y->held.win, e->pool, psn_add(c->base, i))
					: NULL;
		struct frame f;

		if (!d || frame_parse(pool_ptr(e->pool, d->loc), d->len, &f) != FRAME_OK ||
		    f.payload_len <= skip)
			return false;
		n = f.payload_len - skip < len ? f.payload_len - skip : len;
		memcpy(out, f.data + f.payload + skip, n);
		*xmit = d->flags & PKT_SENT ? d->xmit : now_us(e);
		out += n;
		at += n;
		len -= n;
	}
	return true;
}

bool push_spare(struct engine *e, const struct flow *fl, struct lane_announce *y,
		const struct command *c, uint32_t at, uint32_t len)
{
	uint32_t i = at / flow_mtu(fl);
	bool whole = at % flow_mtu(fl) == 0 && (len == flow_mtu(fl) || at + len == c->length);
	struct pkt *d = whole ? window_get(&y->held.win, e->pool, psn_add(c->base, i)) : NULL;

	if (!d || (d->flags & PKT_SENT))
		return false;
	engine_change(e, d, sizeof(*d));
	d->flags |= PKT_SENT;
	d->xmit = now_us(e);
	return true;
}

/* ---- B ---- */

struct command *push_known(struct engine *e, struct lane_announce *y, const uint8_t *hdr)
{
	struct command *c = mq_at(e->reads, y->hint);
	struct wire_psn psn = {get_be24(hdr)};

	if (c && !c->over && psn_is(c->psn, psn) && c->part == hdr[3])
		return c;
	for (uint32_t i = y->commands.head; i != MQ_NONE; i = mq_next(e->reads, i)) {
		c = mq_at(e->reads, i);
		if (c->over || !psn_is(c->psn, psn) || c->part != hdr[3])
			continue;
		y->hint = i;
		return c;
	}
	return NULL;
}

/* The buffer of a command of which the push with @hdr is, which has not come yet, or is over. */
static struct command *to_come(struct engine *e, struct flow *fl, struct lane_announce *y,
			       const uint8_t *hdr)
{
	struct wire_psn next = flow_partner(e, fl)->lane.epsn.psn, psn = {get_be24(hdr)};
	uint32_t i;
	struct command *c;

	if (!psn_in(psn, next, psn_add(next, AHEAD_PSNS)) || mq_len(e->reads, &y->commands) >= 1024)
		return NULL;
	i = mq_push(e->reads, &y->commands);
	c = mq_at(e->reads, i);
	if (!c)
		return NULL;
	c->psn = psn;
	c->part = hdr[3];
	c->state = COMMAND_PENDING;
	y->hint = i;
	return c;
}

/* The buffer of a command of which the push with @hdr is; @count packets are to come. */
static struct command *command_of(struct engine *e, struct flow *fl, struct lane_announce *y,
				  const uint8_t *hdr, uint32_t count)
{
	struct command *c = push_known(e, y, hdr);

	if (!c)
		c = to_come(e, fl, y, hdr);
	if (!c || c->count)
		return c;
	if (!push_numbers(e, y, c, count)) {
		c->count = 0;
		return NULL;
	}
	y->info.commands++;
	return c;
}

static bool sane(const struct flow *fl, const struct frame *f, uint32_t i, uint32_t count)
{
	return count && i < count && f->payload_len &&
	       (i + 1 == count ? f->payload_len <= flow_mtu(fl) : f->payload_len == flow_mtu(fl));
}

bool push_proven(struct engine *e, const struct flow *fl, const struct frame *f, bool sane)
{
	const struct lane *l = &fl->lane;
	const uint8_t *hdr = f->data + f->ext;

	if (sane && announce_of(e, l) && l->role == ROLE_OPENER && l->state == LANE_HELD &&
	    l->renumbered && icrc_ok(f) &&
	    get_be64(hdr + 8) == push_tag(l, reads_of(e, l), hdr, f->data + f->payload,
					  f->payload_len, f->opcode == OP_PARITY))
		return true;
	COUNT(e, PUSH_DROPPED);
	return false;
}

static void came(struct engine *e, struct flow *fl, struct command *c, uint32_t i,
		 const struct frame *f)
{
	struct lane_announce *y = announce_of(e, &fl->lane);
	uint32_t at = i * flow_mtu(fl);

	if (window_get(&y->held.win, e->pool, psn_add(c->base, i)))
		return; /* it came before */
	y->info.bytes += f->payload_len;
	if (!push_store(e, y, psn_add(c->base, i), f->data, f->len, PUSH_BUSY_B)) {
		COUNT(e, NO_ROOM);
		y->info.unused += f->payload_len;
		return;
	}
	c->got++;
	if (c->state == COMMAND_LIVE)
		answer_push(e, fl, c, at, at + f->payload_len);
}

void push_rx(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane_announce *y = announce_of(e, &fl->lane);
	const uint8_t *hdr = f->data + f->ext;
	uint32_t i = get_be16(hdr + 4), count = get_be16(hdr + 6);
	struct command *c;

	if (!push_proven(e, fl, f, sane(fl, f, i, count)))
		return;
	c = command_of(e, fl, y, hdr, count);
	if (c && c->count == count && c->state != COMMAND_LOOSE)
		came(e, fl, c, i, f);
	else
		y->info.late += f->payload_len;
}
