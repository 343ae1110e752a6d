// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * READs ahead of the host that the appliance near the responder makes (`prefetch = responder`).
 *
 *	host        opener                                 acceptor             responder
 *	 | READ 0 --->| ~~~~~~~~~~~~~~ READ 0 ~~~~~~~~~~~~~~~~>| READ 0 ---------->|
 *	 |            | ~~ AHEAD: 1, 2, 3, each 64 KiB on ~~~~~>| READ 1, 2, 3 --->|
 *	 |<-----------| <~~~~~~~~~~~~~ answers ~~~~~~~~~~~~~~~~~| <-------- answers |
 *	 | READ 1 --->| ends here: its answer is under way
 *
 * The opener decides which READs those are (prefetch/prefetch.c), and is the one that numbers them:
 * each is a request of its own in the lane (reads/own_request.c), in custody like the host's. It
 * does not send them, but reports them to the acceptor, which builds the packets and treats them as
 * received. So the rules for READs that were sent apply to these as well: their place among the
 * other requests, the age of an answer, the host's numbers.
 *
 * A report that is lost leaves a hole in the stream, and so does one of which the acceptor can make
 * nothing. It is repaired like any other: by the packets. Nor does a peer that does not know AHEAD,
 * or that has lost its memory, get anything else.
 *
 * row: NTT-5
 */
#include "engine/link/link.h"
#include "engine/reads/reads.h"

/* Whether the packet @d is a READ of our own that was never sent: *f. */
static bool untold(struct engine *e, const struct pkt *d, struct frame *f)
{
	return d && (d->flags & (PKT_OWN | PKT_SENT)) == PKT_OWN &&
	       frame_parse(lane_packet(e, d), d->len, f) == FRAME_OK &&
	       f->opcode == OP_READ_REQUEST && frame_reth_length(f);
}

/* Whether @f, of @span PSNs, is the next of the series @s. The second READ tells its step. */
static bool goes_on(struct read_series *s, const struct frame *f, uint32_t span)
{
	struct read_range r = range_of(f);

	if (!s->count) {
		*s = (struct read_series){.va = r.va,
					  .rkey = r.rkey,
					  .length = r.length,
					  .psn = f->psn,
					  .end = f->psn};
		return true;
	}
	if (s->count == 1)
		s->step = r.va - s->va;
	return s->count < REPORT_READS && r.rkey == s->rkey && r.length == s->length &&
	       r.va == s->va + s->count * s->step && psn_sub(s->end, s->psn) == s->count * span;
}

bool ahead_tell(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct read_series *s;
	struct report r;
	struct frame f;
	struct pkt *d;

	if (fl->rule < 0 || e->rules[fl->rule].prefetch != PREFETCH_RESPONDER ||
	    !(e->peer_features[l->peer] & PEER_FEATURE_AHEAD) || !l->accepted)
		return false;
	r = (struct report){.type = REPORT_AHEAD, .lane = lane_number(e, fl), .gen = l->gen};
	s = &r.reads;
	while (psn_before(l->nxt.psn, l->epsn.psn) && psn_before(l->nxt.psn, l->opener.room) &&
	       untold(e, d = lane_pkt(e, l, l->nxt.psn), &f) && goes_on(s, &f, d->span)) {
		s->count++;
		s->end = psn_add(s->end, d->span);
		stream_sent(e, fl, &l->held, d, true);
		mark_sent(l, d->span, d->flags & PKT_EOM, false);
	}
	if (!s->count)
		return false;
	e->counters[EC_READS_TOLD] += s->count;
	e->sink.report(e->sink.ctx, (unsigned int)l->peer, &r);
	return true;
}

void ahead_make(struct engine *e, struct flow *fl, const struct read_series *s)
{
	struct lane *l = &fl->lane;
	struct build_spec b = {.t = &fl->tmpl,
			       .opcode = OP_READ_REQUEST,
			       .dqpn = fl->key.dqpn,
			       .psn = s->psn,
			       .ackreq = true,
			       .va = s->va,
			       .rkey = s->rkey,
			       .length = s->length};
	uint8_t out[FRAME_MAX];
	struct frame f;

	if (l->state != LANE_HELD || !fl->tmpl.len)
		return;
	for (uint32_t i = 0; i < s->count && l->state == LANE_HELD; i++) {
		uint32_t span;

		if (frame_parse(out, build_packet(out, &b), &f) != FRAME_OK)
			return;
		span = frame_span(&f, flow_mtu(fl));
		/* else the two would not mean the same by a PSN */
		if (span * s->count != psn_sub(s->end, s->psn)) {
			COUNT(e, BAD_REPORT);
			return;
		}
		l->ahead = true; /* only the opener knows the host's numbers from here on */
		if (psn_before(wire_psn_of(&f), l->epsn.psn)) {
			progress_due(e, fl, true);
		} else {
			COUNT(e, READS_MADE);
			stream_rx_request(e, fl, &f);
		}
		b.psn = psn_add(b.psn, span);
		b.va += s->step;
	}
}
