// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The receiving end of a stream: requests on their way to the near responder (role ACCEPTOR).
 *
 * Every packet is verified and retained on arrival, in any order: its seal shows that the opener
 * has sent it (core/seal.c). What is contiguous is handed to pseudo_requester.c, and stays until
 * the responder truly acknowledges it: this appliance alone repairs loss on this side's LAN. What
 * is missing between the contiguous part and the highest packet is kept as holes (holes.c). One
 * hole too many is refused.
 *
 * The opener is told (PROGRESS) soon after anything changed: at once when a hole appears or closes
 * or when a duplicate arrives (the opener does not know then that the packet had arrived),
 * otherwise after a while. While something is missing the report is repeated, at growing intervals,
 * since time alone makes a missing packet a lost one and reports get lost too; see core/due.c.
 * Reports show holes in turn if not all fit.
 *
 * Requests below the handover PSN, and duplicate READs of a host, pass to the responder.
 */
#include "engine/announce/announce.h"
#include "engine/fault/fault.h"
#include "engine/learn/learn.h"
#include "engine/link/link.h"
#include "engine/reads/reads.h"

/* A true ACK is repeated for so long at most. */
#define LATE_NS	       (500 * NSEC_PER_MSEC)
/* So many tell what the next ones will be like. */
#define ENOUGH_PACKETS 256u
#define HOLES_SPARE    64u /* what closes a part of a hole splits it */

/* Let go of what is held in [@from, @end), as if it had not come. */
static void give_up(struct engine *e, struct flow *fl, struct wire_psn from, struct wire_psn end)
{
	struct lane *l = &fl->lane;
	struct wire_psn psn = from;
	struct pkt *d;

	while (psn_before(psn, end) && (d = lane_pkt_next(e, l, psn, end, &psn))) {
		uint32_t span = d->span;

		lane_forget(e, fl, d, psn);
		psn = psn_add(psn, span);
	}
}

/* What a packet of the lane takes, bytes: as they were in the mean so far, and an eighth more. For
 * full ones there would be room for few; larger ones than expected are refused, and come again. */
static uint32_t packet_bytes(const struct flow *fl)
{
	const struct flow_meter *m = &fl->meter;
	uint32_t full = flow_mtu(fl) + 128u, mean;

	if (m->packets < ENOUGH_PACKETS)
		return full;
	mean = (uint32_t)(m->bytes / m->packets);
	mean += mean / 8 + 64;
	return mean < full ? mean : full;
}

/* PSN before which packets can be taken: what the pool is likely to hold. */
static struct wire_psn room(struct engine *e, const struct flow *fl)
{
	const struct lane *l = &fl->lane;
	const struct holes *hs = holes_at(e->pool, l->acceptor.gaps.holes);
	uint64_t packets = pool_log_room(e->pool, POOL_TRANSIT, &l->held.log, l->held.bytes) /
			   packet_bytes(fl);
	uint32_t held = psn_past(l->end, l->una.psn), most = WINDOW_SPAN;
	uint32_t due = holes_packets(hs); /* what is missing needs room too */

	/* beyond the end everything might make a hole; what is missing comes first */
	if (holes_left(hs) <= HOLES_SPARE)
		return l->end;
	if (held >= most || packets <= due)
		return l->end;
	packets -= due;
	packets = MIN(packets, most - held);
	return psn_add(l->end, (uint32_t)packets);
}

/* A packet that came and could not be kept: the next report, which is due at once, asks the opener
 * for it again (row: FAST-1). If the list is full, the opener takes the packet for lost in its
 * time. A damaged packet may name a wrong PSN; then something is sent in vain. */
void stream_rx_refuse(struct engine *e, struct flow *fl, struct wire_psn psn)
{
	if (e->nrefused < REFUSED_MAX) {
		e->refused[e->nrefused].flow = flow_index(e, fl);
		e->refused[e->nrefused++].psn = psn.v;
	}
	progress_due(e, fl, true);
}

/* Take what was refused of flow @flow out of the list. */
static uint8_t refused(struct engine *e, uint32_t flow, uint32_t *out)
{
	uint32_t kept = 0;
	uint8_t n = 0;

	for (uint32_t i = 0; i < e->nrefused; i++) {
		if (e->refused[i].flow != flow)
			e->refused[kept++] = e->refused[i];
		else if (n < REPORT_AGAIN)
			out[n++] = e->refused[i].psn;
	}
	e->nrefused = kept;
	return n;
}

static void report(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	enum lane_reason why = lane_reason_told(l->reason);
	struct report r = {
		.type = REPORT_PROGRESS,
		.lane = l->acceptor.peer_lane,
		.gen = l->gen,
		.seq = ++l->report_seq,
		.cum = l->epsn.psn.v,
		.hi = l->end.v,
		.room = room(e, fl).v,
		.una = l->una.psn.v,
		.una_msn = l->una.msn,
		.una_ackable = l->una.ackable,
		.credit = l->credit,
		.refusal = l->refusal,
		.refusal_psn = l->refusal_psn.v,
		.reason = l->refusal || l->closing ? why
			  : flow_unwanted(e, fl)   ? REASON_IDLE
						   : REASON_NONE,
	};

	gaps_tell(e, &l->acceptor.gaps, &r);
	if (!l->refusal && !lane_marks_must(e, l))
		return;
	r.bypassed = l->bypassed;
	r.repaired = l->repaired;
	l->repaired -= l->repaired > 0;
	r.nagain = refused(e, flow_index(e, fl), r.again);
	announce_tell(e, fl, &r);
	e->sink.report(e->sink.ctx, (unsigned int)l->peer, &r);
}

uint64_t stream_rx_report(struct engine *e, struct flow *fl)
{
	struct gaps *g = &fl->lane.acceptor.gaps;

	if (report_now(e, g))
		report(e, fl);
	return report_next(g);
}

/* The packet @d at epsn may be a storage command (announce/). */
static void look(struct engine *e, struct flow *fl, const struct pkt *d)
{
	struct frame f;

	if (fl->rule >= 0 && e->rules[fl->rule].announce &&
	    frame_parse(lane_packet(e, d), d->len, &f) == FRAME_OK && f.op->flags & OPF_SEND)
		announce_capsule(e, fl, &f, wire_psn_of(&f));
}

/* The packet @d is the far host's, and shows what its headers are. */
static void take_headers(struct engine *e, struct flow *fl, const struct pkt *d)
{
	struct frame f;

	if (learn_due(fl) && frame_parse(lane_packet(e, d), d->len, &f) == FRAME_OK)
		learn_held(fl, &f);
}

static void deliver(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct pkt *d;

	while (psn_before(l->epsn.psn, l->end) && (d = lane_pkt(e, l, l->epsn.psn))) {
		if (d->flags & PKT_ANSWERED) {
			/* what comes in over the WAN are wire numbers: the record has no others */
			const struct host_mark at = mark_same_host(l->epsn);
			struct frame f;

			/* if there is no page for it, the answer passes and is not kept */
			reads_begin(e, fl);
			if (frame_parse(lane_packet(e, d), d->len, &f) != FRAME_OK ||
			    !reads_add(e, fl, &f, d->span, &at, l->epsn.psn))
				break; /* no record: it waits here until one is free */
		} else {
			look(e, fl, d);
		}
		take_headers(e, fl, d);
		stream_parity_delivered(e, fl, d, l->epsn.psn);
		if (!lane_must(e, l, d->span && !psn_after(psn_add(l->epsn.psn, d->span), l->end),
			       l->epsn.psn.v, l->end.v))
			break;
		mark_accepted(l, d->span, d->flags & PKT_EOM, !(d->flags & PKT_ANSWERED));
	}
	pace_run(e, fl);
}

/* The packet at epsn may have waited for a record that is free by now. */
void stream_rx_go_on(struct engine *e, struct flow *fl)
{
	const struct lane *l = &fl->lane;

	if (l->state != LANE_FAULT && psn_before(l->epsn.psn, l->end) &&
	    lane_pkt(e, l, l->epsn.psn))
		deliver(e, fl);
}

/* What is missing in [@from, @end) is not needed any more: what waited behind it may go on. */
void stream_rx_skipped(struct engine *e, struct flow *fl, struct wire_psn from, struct wire_psn end)
{
	holes_fill(e->pool, &fl->lane.acceptor.gaps.holes, from, end);
	deliver(e, fl);
}

void stream_rx_settle(struct engine *e, struct lane *l)
{
	uint32_t rtt_us = e->link[l->peer].rtt_us;
	uint32_t since = now_us(e) - l->acceptor.settle_us;

	if (since < rtt_us)
		return;
	l->acceptor.settled = since < 2 * rtt_us ? l->acceptor.settling : l->una.psn;
	l->acceptor.settling = l->una.psn;
	l->acceptor.settle_us = now_us(e);
}

/* Whether @f was truly acknowledged less than a round trip ago. The opener did not know that when
 * it sent this: it is late, or was sent again in vain, and is none that a host repeats. (For
 * answers that do not come the opener itself asks again, sooner.) */
static bool just_done(struct engine *e, struct lane *l, const struct frame *f)
{
	stream_rx_settle(e, l);
	return !(f->op->flags & OPF_ANSWERED) &&
	       psn_in(wire_psn_of(f), l->acceptor.settled, l->una.psn);
}

/* A request whose PSN was received before. */
static void again(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;

	if (numbers_lost(l))
		return; /* it may be new, and the responder would take it for done */
	if (just_done(e, l, f)) {
		l->count.dup++;
		COUNT(e, DUP_STREAM);
		progress_due(e, fl, true);
		return;
	}
	/* what the responder says to it is for the host, who may lack that it was done. (One from
	 * before the start may come first until una goes on.) Where numbers differ none passes */
	if (psn_before(wire_psn_of(f), l->una.psn) && !announce_numbered(e, l) &&
	    (psn_after(l->una.psn, l->start) || lane_stalled(e, l)))
		owner_passed(e, fl, wire_psn_of(f));
	if (psn_before(wire_psn_of(f), l->start) && !announce_numbered(e, l)) {
		if (l->state == LANE_DRAIN)
			owner_note(e, fl, f->psn);
		engine_pass(e, fl, fl->side, f);
		return;
	}
	l->count.dup++;
	progress_due(e, fl, true);
	if (announce_numbered(e, l)) {
		/* not known to the responder as such: answered here, or the opener asks anew */
		COUNT(e, DUP_STREAM);
		if (f->opcode == OP_READ_REQUEST && psn_before(wire_psn_of(f), l->una.psn))
			answer_anew(e, fl, f);
		return;
	}
	if ((f->op->flags & OPF_ANSWERED) && psn_before(wire_psn_of(f), l->una.psn) &&
	    !resp_tx_comes(e, fl, f)) {
		/* answered already, so a host (or the opener's timer) asks again; where the round
		 * trip is longer than that timer, another answer would make it longer still */
		COUNT(e, DUP_READS_PASSED);
		engine_tx(e, fl, PORT_LAN, f->data, f->len);
		return;
	}
	COUNT(e, DUP_STREAM);
	if (psn_before(wire_psn_of(f), l->una.psn) && !(f->op->flags & OPF_ANSWERED))
		/* perhaps a new incarnation, see near/incarnation.c */
		engine_tx(e, fl, PORT_LAN, f->data, f->len);
}

/* Memory is short. If the next packet in order finds no room because what is out of order has taken
 * it all, give that up: the opener has it still. False: there was nothing. */
static bool make_room(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	if (psn_is(l->epsn.psn, l->end))
		return false;
	give_up(e, fl, l->epsn.psn, l->end);
	mark_held(l, l->epsn.psn);
	holes_drop(e->pool, &l->acceptor.gaps.holes);
	return true;
}

/* Whether the request that takes [@f->psn, @end) can be of use. Otherwise it is dealt with. */
static bool wanted(struct engine *e, struct flow *fl, const struct frame *f, struct wire_psn end)
{
	struct lane *l = &fl->lane;

	if (l->state == LANE_DRAIN && (announce_numbered(e, l) || numbers_lost(l))) {
		/* the responder would take it for another request. An opener that lives sees that
		 * nothing is taken any more, and an end when all before it is done */
		progress_due(e, fl, true);
		return false;
	}
	if (l->state == LANE_DRAIN) {
		engine_pass(e, fl, fl->side, f); /* the hosts repair by themselves */
		return false;
	}
	if (l->refusal)
		return false; /* the responder's QP is in error */
	/* within the window; a READ longer than the window goes alone. No PSN before epsn comes
	 * here, but one may be ahead of una by more than half the circle */
	if (psn_past(wire_psn_of(f), l->una.psn) >= WINDOW_SPAN ||
	    (!psn_is(wire_psn_of(f), l->una.psn) && psn_past(end, l->una.psn) > WINDOW_SPAN)) {
		COUNT(e, OUT_OF_WINDOW);
		progress_due(e, fl, true);
		return false;
	}
	if (psn_before(wire_psn_of(f), l->end) &&
	    !holes_has(holes_at(e->pool, l->acceptor.gaps.holes), wire_psn_of(f))) {
		l->count.dup++;
		COUNT(e, DUP_STREAM);
		progress_due(e, fl, true);
		if (psn_is(wire_psn_of(f), l->epsn.psn))
			stream_rx_go_on(e, fl);
		return false;
	}
	return true;
}

/* Keep the packet. NULL when there is no room or it is damaged. */
static struct pkt *keep(struct engine *e, struct flow *fl, const struct frame *f, uint32_t span)
{
	struct pkt *d;
	bool bad;

	do {
		d = lane_retain(e, fl, f, span, wire_psn_of(f), &bad);
	} while (!d && !bad && psn_is(wire_psn_of(f), fl->lane.epsn.psn) && make_room(e, fl));
	if (!bad)
		flow_macs(e, fl, f);
	if (d && f->seal)
		seal_right(&fl->lane);
	if (d)
		return d;
	if (bad && f->seal)
		seal_failed(e, fl, f);
	if (!bad)
		COUNT(e, NO_ROOM);
	stream_rx_refuse(e, fl, wire_psn_of(f));
	return NULL;
}

/* The packet of [@psn, @end) is kept: it ends the stream for now, opens a hole or fills one. */
static void note(struct engine *e, struct flow *fl, struct wire_psn psn, struct wire_psn end)
{
	struct lane *l = &fl->lane;
	struct wire_psn old_end = l->end;

	/* A host that asks for the rest of a READ, while the lane opens, sends a PSN within it. */
	if (psn_diff(end, psn) > 1 && psn_before(psn, old_end))
		give_up(e, fl, psn_add(psn, 1), psn_before(end, old_end) ? end : old_end);
	if (psn_after(end, old_end))
		mark_held(l, end);
	if (psn_is(psn, old_end)) {
		progress_due(e, fl, false);
		return;
	}
	if (psn_after(psn, old_end))
		holes_open(e->pool, l->acceptor.gaps.holes, old_end, psn);
	else
		holes_fill(e->pool, &l->acceptor.gaps.holes, psn, end);
	progress_due(e, fl, true);
}

/*
 * The opener has let go, and what was promised is done (near/let_go.c). What is held here is the
 * hosts' again: all of it goes on to the responder, as if it came just now. The latest true ACK
 * ended here and may not have come to the opener in time, so the requester is told it; but not
 * after LATE_NS, when it has asked again if it waits, and its number may have a new owner, which
 * must not take that ACK for its own.
 */
void stream_rx_let_go(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane, was;

	if (!l->refusal)
		lane_send_rest(e, fl);
	(void)resp_tx_run(e, fl, UINT32_MAX);
	if (l->una.ackable && l->credit != 0xff && psn_after(l->una.psn, l->start) &&
	    e->now - l->progress < LATE_NS)
		(void)ack_send(e, fl, psn_same_host(psn_sub(l->una.psn, 1)), l->credit, l->una.msn);
	was = *l;
	was.sealed &= !announce_numbered(e, l);
	lane_close(e, fl, REASON_OPERATOR, false);
	seal_leave(l, &was);
}

void stream_rx_request(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	uint32_t span = frame_span(f, flow_mtu(fl));
	struct wire_psn end;
	struct pkt *d;

	l->count.requests++;
	if (psn_before(wire_psn_of(f), l->epsn.psn)) {
		again(e, fl, f);
		return;
	}
	if (span > SPAN_MAX) {
		COUNT(e, OUT_OF_WINDOW);
		return;
	}
	end = psn_add(wire_psn_of(f), span);
	if (!wanted(e, fl, f, end))
		return;
	d = keep(e, fl, f, span);
	if (!d)
		return;
	if (!holes_room(e->pool, &l->acceptor.gaps.holes, l->end, wire_psn_of(f), end)) {
		COUNT(e, HOLES);
		lane_forget(e, fl, d, wire_psn_of(f));
		stream_rx_refuse(e, fl, wire_psn_of(f));
		return;
	}
	note(e, fl, wire_psn_of(f), end);
	deliver(e, fl);
}

/*
 * A packet whose opcode has no row. An opener lets it pass only when it owes nothing any more, and
 * closes the lane then; but what says so may come later than the packet, and is asked for. Where
 * something is held the packet is somebody else's, and would overtake.
 */
void stream_rx_unknown(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;

	if (icrc_wrong(e, f))
		return;
	progress_due(e, fl, true);
	if (announce_numbered(e, l) || numbers_lost(l) ||
	    (l->state != LANE_DRAIN && !psn_is(l->una.psn, l->end) &&
	     !psn_before(wire_psn_of(f), l->una.psn)))
		return;
	owner_passed_unknown(e, l);
	engine_pass(e, fl, fl->side, f);
}
