// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The target's READs, answered from what was READ ahead. Any part of a command may be asked for, in
 * pieces of any size: the responses are cut anew at the path MTU, from the first byte of the READ
 * on, with the opcode, PSN and MSN that the READ's answer must have on the wire.
 *
 * B makes them as soon as both the READ and the bytes are there, packet by packet, and they count
 * as arrived (resp_serve()). A response acknowledges all before it, and these say nothing of the
 * initiator: so the target gets none before all that went before its READ may be acknowledged
 * (resp_deliver()). A makes the same ones when the READ has come to it, and keeps them as sent when
 * the pushes were (resp_tx_given()). Those whose push waits for its turn still go instead of it.
 *
 * When A had no room to keep one, and the WAN lost it, B asks again under the READ's PSN. The
 * initiator cannot repeat a READ that it never got, and anew, under another PSN, B cannot ask while
 * the target is amid a message. So A remembers what it answered (struct absorbed), and makes the
 * same packets once more as long as the command is under way: of the same command, for the same
 * bytes, with the same numbers, whatever the request that comes now may say.
 *
 * row: CONV-5
 */
#include "engine/announce/announce.h"

/* READs that the bytes of one push may belong to; what more there are A answers. */
#define AT_ONCE	       32u
/* READs that a target may have outstanding, and lack the answers; fewer when records are short. */
#define ABSORBED_MAX   256u
#define ABSORBED_SHORT 2u

/* A READ that comes again sooner than this is a copy (send_twice() in link/stream_tx.c). */
#define COPY_US 100000u

/**
 * struct absorbed - A: a READ that was answered here.
 * @at: where, on the wire; @seq: of its command; @us: when
 */
struct absorbed {
	struct read_range what;
	struct wire_mark at;
	uint32_t seq, us;
};

/* The response packet @i of the READ of @what, @wire, into @out. Its length; 0: not all is here.
 * @xmit: when sent. */
static uint32_t make(struct engine *e, struct flow *fl, const struct command *c,
		     const struct read_range *what, const struct wire_mark *wire, uint32_t i,
		     uint8_t *out, uint32_t *xmit)
{
	const struct flow *back = flow_partner(e, fl);
	uint32_t mtu = flow_mtu(fl), span = (what->length + mtu - 1) / mtu;
	uint32_t len = i + 1 < span ? mtu : what->length - i * mtu;
	uint8_t data[PAYLOAD_MAX];
	struct build_spec s = {
		.t = &back->tmpl,
		.opcode = resp_opcode(i, span),
		.dqpn = back->key.dqpn,
		.psn = psn_add(wire->psn, i).v,
		.syndrome = lane_syndrome(&fl->lane),
		.msn = psn_add(wire->msn, 1),
		.payload = data,
		.payload_len = len,
	};

	if (!push_bytes(e, fl, announce_of(e, &fl->lane), c, (uint32_t)(what->va - c->va) + i * mtu,
			len, data, xmit))
		return 0;
	return build_packet(out, &s);
}

/* The command that is @seq, and under way; NULL when it is over. */
static struct command *command_of(struct engine *e, const struct lane_announce *y, uint32_t seq)
{
	mq_each (struct command, c, e->reads, &y->commands)
		if (c->seq == seq && !c->over)
			return c;
	return NULL;
}

static void remember(struct engine *e, struct lane_announce *y, const struct absorbed *a)
{
	uint32_t most = mq_free_count(e->reads) < READS_MAX / 4 ? ABSORBED_SHORT : ABSORBED_MAX;
	struct absorbed *k;

	while ((k = mq_at(e->reads, y->absorbed.head)) &&
	       (mq_len(e->reads, &y->absorbed) >= most || !command_of(e, y, k->seq)))
		mq_pop(e->reads, &y->absorbed);
	k = mq_at(e->reads, mq_push(e->reads, &y->absorbed));
	if (k)
		*k = *a;
}

void answer_absorb(struct engine *e, struct flow *fl, struct command *c, const struct frame *f)
{
	struct read_range what = range_of(f);
	struct lane *l = &fl->lane;
	struct lane_announce *y = announce_of(e, l);
	struct read_rec *r = reads_find_wire(e, &l->reads, wire_psn_of(f));
	uint8_t out[FRAME_MAX];
	struct frame g;
	uint32_t xmit = 0;
	/* the opener asks for it under another PSN: it has lost what it had */
	bool anew = c->read > c->length;

	for (uint32_t i = 0; i < frame_span(f, flow_mtu(fl)); i++) {
		uint32_t len = make(e, fl, c, &what, &l->nxt, i, out, &xmit);
		uint32_t at = (uint32_t)(what.va - c->va) + i * flow_mtu(fl);

		if (!len || frame_parse(out, len, &g) != FRAME_OK)
			continue;
		if (push_spare(e, fl, y, c, at, g.payload_len) || anew)
			resp_tx_add(e, fl, &g);
		else
			resp_tx_given(e, fl, &g, xmit);
	}
	y->info.absorbed++;
	remember(e, y,
		 &(struct absorbed){.what = what, .at = l->nxt, .seq = c->seq, .us = now_us(e)});
	if (!r)
		return;
	r->absorbed = r->done = true;
	r->got = r->span;
}

void answer_anew(struct engine *e, struct flow *fl, const struct frame *f)
{
	const struct lane_announce *y = announce_of(e, &fl->lane);
	uint32_t mtu = flow_mtu(fl), skip = 0, xmit;
	const struct absorbed *a = NULL;
	const struct command *c;
	uint8_t out[FRAME_MAX];
	struct frame g;

	mq_each (const struct absorbed, k, e->reads, &y->absorbed) {
		skip = psn_past(wire_psn_of(f), k->at.psn);
		if (skip < (k->what.length + mtu - 1) / mtu) {
			a = k;
			break;
		}
	}
	c = a ? command_of(e, y, a->seq) : NULL;
	/* it must ask for the end of the same, as hosts and openers do */
	if (!c || now_us(e) - a->us < COPY_US || !icrc_ok(f) ||
	    frame_reth_rkey(f) != a->what.rkey ||
	    frame_reth_va(f) != a->what.va + (uint64_t)skip * mtu ||
	    frame_reth_length(f) != a->what.length - skip * mtu)
		return;
	for (uint32_t i = skip; i * mtu < a->what.length; i++) {
		uint32_t len = make(e, fl, c, &a->what, &a->at, i, out, &xmit);

		if (len && frame_parse(out, len, &g) == FRAME_OK)
			resp_tx_again(e, fl, &g);
	}
}

/* Make the responses to @g that need bytes of [@from, @end) of @c. */
static void serve(struct engine *e, struct flow *fl, struct command *c, struct wire_psn wire,
		  const struct read_range *what, uint32_t from, uint32_t end)
{
	struct lane_announce *y = announce_of(e, &fl->lane);
	uint32_t mtu = flow_mtu(fl), begin = (uint32_t)(what->va - c->va);
	uint32_t i = from > begin ? (from - begin) / mtu : 0;
	uint8_t out[FRAME_MAX];
	const struct read_rec *r = reads_find_wire(e, &fl->lane.reads, wire);
	struct wire_mark at = {.psn = wire};

	if (!r)
		return;
	at.msn = r->at.msn;
	for (; i * mtu < what->length && begin + i * mtu < end; i++) {
		uint32_t xmit, len = make(e, fl, c, what, &at, i, out, &xmit);

		if (!len || !resp_serve(e, fl, out, len))
			continue;
		y->info.served++;
		c->used += what->length - i * mtu < mtu ? what->length - i * mtu : mtu;
	}
}

/* The host's READ at @wire is answered from what was pushed of @c, as far as that is here. */
static void answer_read(struct engine *e, struct flow *fl, struct command *c, struct wire_psn wire)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	const struct fetch *g = fetch_at(e, fetch_find(e, x, wire));
	struct read_range what;

	if (!g || !c->got || g->state != FETCH_ASKED)
		return;
	what = g->what;
	serve(e, fl, c, g->psn, &what, 0, c->length);
}

void answer_push(struct engine *e, struct flow *fl, struct command *c, uint32_t from, uint32_t end)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	struct wire_psn wire[AT_ONCE];
	uint32_t n = 0;

	for (uint32_t id = x->fetches.head; id != MQ_NONE && n < AT_ONCE;
	     id = mq_next(e->reads, id)) {
		const struct fetch *g = fetch_at(e, id);
		struct read_range what = g->what;

		if (g->state != FETCH_ASKED || g->opcode != OP_READ_REQUEST ||
		    g->arrived == g->span || what.rkey != c->rkey || what.va < c->va ||
		    what.va + what.length > c->va + c->length || what.va >= c->va + end ||
		    what.va + what.length <= c->va + from ||
		    announce_match(e, announce_of(e, &fl->lane), &what) != c)
			continue;
		wire[n++] = g->psn;
	}
	/* what is complete goes from the list at once */
	for (uint32_t i = 0; i < n; i++) {
		const struct fetch *g = fetch_at(e, fetch_find(e, x, wire[i]));
		struct read_range what;

		if (!g)
			continue;
		what = g->what;
		serve(e, fl, c, wire[i], &what, from, end);
	}
}

void announce_asked(struct engine *e, struct flow *fl, const struct frame *f, struct wire_psn wire)
{
	struct lane_announce *y = announce_of(e, &fl->lane);
	struct command *c;

	if (!y)
		return;
	if (f->opcode == OP_READ_REQUEST) {
		struct read_range what = range_of(f);

		c = announce_read(e, fl, &what);
		if (c)
			answer_read(e, fl, c, wire);
	} else if (f->op->flags & OPF_SEND) {
		announce_response(e, fl, f);
	}
}
