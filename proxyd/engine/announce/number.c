// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What goes to the responder and comes from it passes the door between the two numberings
 * (number/far_map.h) here, with the ICRC patched by the difference. READs of ours have numbers
 * that only the responder knows, absorbed ones have numbers that only the wire knows.
 */
#include "engine/announce/announce.h"

struct wire_psn announce_last(struct engine *e, struct lane *l, struct wire_psn psn)
{
	const struct lane_announce *y = announce_of(e, l);
	struct wire_psn last = psn, at = psn;
	struct pkt *d;

	while ((d = lane_pkt_next(e, l, at, y->far.asked.psn, &at))) {
		const struct read_rec *r =
			d->flags & PKT_ANSWERED ? reads_find_wire(e, &l->reads, at) : NULL;

		if (!r || !r->absorbed)
			last = at;
		at = psn_add(at, d->span);
		if (!psn_before(at, y->far.asked.psn))
			break;
	}
	return last;
}

void announce_sent(struct engine *e, struct lane *l, const struct pkt *d, bool absorbed)
{
	struct lane_announce *y = announce_of(e, l);
	bool eom = d->flags & PKT_EOM, ackable = !(d->flags & PKT_ANSWERED);
	struct read_rec *r;

	if (!y || psn_before(l->nxt.psn, y->far.asked.psn))
		return;
	/* its place is where it goes, not where it had its turn: ours may go before it */
	r = d->flags & PKT_ANSWERED && !absorbed ? reads_find_wire(e, &l->reads, l->nxt.psn) : NULL;
	if (r && !r->given)
		r->given = ++y->issued;
	y->inside = !eom;
	far_map_sent(e, &y->far, &l->nxt, d->span, eom, ackable, absorbed);
}

/* What came for a READ of ours. */
static enum announce_answer ours(struct engine *e, struct flow *fl, struct own_read *r,
				 const struct frame *f)
{
	struct lane_announce *y = announce_of(e, &fl->lane);
	uint8_t s = f->aeth ? frame_aeth_syndrome(f) : AETH_ACK_UNLIMITED;

	if (f->opcode != OP_ACK) {
		if (!(f->op->flags & OPF_READ))
			return ANSWER_DROP;
		flow_headers(e, fl, f);
		own_answer(e, fl, r, f);
		return ANSWER_TAKEN;
	}
	if (aeth_is_ack(s) || aeth_is_rnr(s))
		return ANSWER_DROP;
	if (s != AETH_NAK_SEQ)
		return ANSWER_REFUSED;
	mq_each (struct own_read, one, e->reads, &y->own)
		if (!psn_before(one->psn, r->psn))
			one->again = true;
	return ANSWER_MISSING;
}

static struct own_read *own_find(struct engine *e, const struct lane_announce *y,
				 struct far_psn psn)
{
	mq_each (struct own_read, r, e->reads, &y->own)
		if (psn_in(psn, r->psn, psn_add(r->psn, r->span)))
			return r;
	return NULL;
}

/* An ACK of what stands before @m, on the wire. READs that were absorbed have no number near the
 * responder, so it seems to acknowledge those, too, that end there. But an ACK must not bear the
 * PSN of a READ: a requester that lacks the response would take the READ for done. */
static void step_back(struct engine *e, const struct lane *l, struct wire_mark *m)
{
	const struct read_rec *r;
	uint32_t id;

	do {
		for (id = l->reads.head; id != MQ_NONE; id = mq_next(e->reads, id)) {
			r = read_at(e, id);
			if (r->absorbed && psn_is(psn_add(r->wire, r->span), m->psn))
				break;
		}
		if (id != MQ_NONE)
			*m = read_mark(r);
	} while (id != MQ_NONE);
}

enum announce_answer announce_answer(struct engine *e, struct flow *fl, const struct frame *f,
				     struct frame *g, uint8_t *buf, struct wire_mark *m)
{
	struct lane *l = &fl->lane;
	struct lane_announce *y = announce_of(e, l);
	struct far_mark told = {.psn = far_psn_of(f), .msn = f->aeth ? frame_aeth_msn(f) : 0};
	bool ack = f->opcode == OP_ACK && aeth_is_ack(frame_aeth_syndrome(f));
	struct wire_mark at;
	struct own_read *r;

	if (!y || !y->far.numbered) {
		*g = *f;
		return ANSWER_PASS;
	}
	if (icrc_wrong(e, f))
		return ANSWER_DROP;
	r = own_find(e, y, far_psn_of(f));
	if (r) {
		*m = r->before;
		return ours(e, fl, r, f);
	}
	far_map_trim(&y->far, l->una.psn);
	/* what is older has no number any more, and nobody waits for it */
	if (psn_before(far_psn_of(f), psn_sub(psn_to_far(&y->far, l->una.psn), 1)) ||
	    psn_after(far_psn_of(f), y->far.next.psn)) {
		COUNT(e, STALE_ACK);
		return ANSWER_DROP;
	}
	told.psn = psn_add(told.psn, ack);
	at = far_to_wire(&y->far, &told);
	if (ack)
		step_back(e, l, &at);
	if (f->opcode != OP_ACK) {
		/* a READ of ours is answered twice now and then: that completes nothing */
		const struct read_rec *rec = reads_find_wire(e, &l->reads, at.psn);

		if (!rec || rec->absorbed || !psn_is(psn_to_far(&y->far, at.psn), far_psn_of(f))) {
			COUNT(e, STRAY_RESPONSE);
			return ANSWER_DROP;
		}
	}
	frame_parse(buf, psn_map_frame(buf, f, psn_sub(at.psn, ack).v, at.msn), g);
	g->icrc_right = true;
	return ANSWER_PASS;
}
