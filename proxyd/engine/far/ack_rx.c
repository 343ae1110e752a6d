// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the responder says, to who stands in for the requester: ACKs, NAKs, responses with data.
 *
 * What the host had sent by itself before the lane opened (below @overlap) may have been executed
 * and answered long ago; the responder need not keep such responses. So there an ACK past a READ or
 * ATOMIC settles it: if the response was lost, the host asks again.
 *
 * An ACK below una answers a repeat. If the host's was passed on (duplicate.c), so is the answer.
 *
 * Responses with data travel on to the requester's side as they come, in order. An acceptor drops
 * what is ahead of a missing response packet and asks the whole READ again; what it has passed on
 * already is not passed on twice. In single mode what the host can have asked for passes.
 *
 * row: NTT-1, ENG-3, ENG-6
 */
#include "engine/announce/announce.h"
#include "engine/far/far_priv.h"
#include "engine/owner/owner.h"
#include "engine/link/link.h"
#include "engine/reads/reads.h"

/* So far ahead of what was sent from here an ACK is taken for one of the same QP. */
#define BEYOND_MAX	   65536
/* At least so long after a READ was asked it is not asked again. */
#define ASK_AGAIN_US	   1000u
/* So long after its READ came a response that finds no room is refused. */
#define NO_ROOM_NS	   (500 * NSEC_PER_MSEC)
/* An ACK that comes later than this, after a probe, may answer it: earlier ones were lost. */
#define ROUND_TRIP_MOST_US 500000u
/* Packets whose messages are counted to see whether an ACK fits. */
#define COUNTED_MOST	   256
/* An RNR budget is not used up by fewer NAKs than this: hosts' own is up to seven. */
#define RNR_LEAST	   8u

/* ACCEPTOR: the opener's host waits for the true ACK of the message that ends with @d. */
static bool host_waits(const struct lane *l, const struct pkt *d)
{
	return d && (d->flags & PKT_EOM) && l->policy != POLICY_EARLY;
}

/* The responder has truly acknowledged everything below @m. */
static void true_ack(struct engine *e, struct flow *fl, const struct wire_mark *m)
{
	struct lane *l = &fl->lane;
	bool urgent;
	struct pkt *d;

	if (!psn_after(m->psn, l->una.psn))
		return;
	d = lane_pkt(e, l, psn_sub(m->psn, 1));
	urgent = host_waits(l, d);
	if (d && (d->flags & PKT_SENT) && !(d->flags & PKT_RETX)) {
		rtt_sample(e, &l->rtt, now_us(e) - d->xmit);
		l->backoff = 0;
	} else if (l->backoff > 1) {
		l->backoff = 1; /* it moves, but how fast it answers is not known yet */
	}
	far_widen(l, psn_past(m->psn, l->una.psn));
	l->far.rnr_run = 0;
	if (l->role == ROLE_SINGLE) {
		lane_true_ack(e, fl, m);
		pace_run(e, fl);
	} else {
		struct wire_psn from = l->epsn.psn;

		stream_rx_settle(e, l);
		lane_skip(e, fl, m);
		(void)lane_marks_must(e, l);
		if (psn_before(from, m->psn))
			stream_rx_skipped(e, fl, from, m->psn);
		progress_due(e, fl, urgent || psn_is(l->una.psn, l->epsn.psn));
		lane_check_drained(e, fl);
		if (l->role == ROLE_NONE)
			return;
		pace_run(e, fl); /* there may be more in flight now */
	}
	if (l->ordered)
		order_moved(e, fl);
	far_arm(e, fl);
}

/* A READ at the true ACK that ends here is done when all before it is. */
void far_settle_absorbed(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct wire_mark m = l->una;
	const struct read_rec *r = reads_head(e, l);

	if (!r || !r->absorbed || !r->done || !psn_is(r->wire, l->una.psn) ||
	    !psn_before(l->una.psn, l->nxt.psn))
		return;
	reads_trim(e, l, &m);
	true_ack(e, fl, &m);
}

/*
 * Responders keep what they need to repeat a response for as many READs as they take at a time.
 * That is enough for hosts; but an acceptor that was restarted begins where the opener knows the
 * true ACK to be, and hosts and guesses may have gone on by more. What the responder does not
 * answer although it is known to have executed it cannot be had any more under its PSN. The opener
 * has it, or asks anew.
 */
static void give_up_reads(struct engine *e, struct lane *l, const struct wire_mark *m)
{
	struct read_rec *r = reads_head(e, l);

	if (l->role != ROLE_ACCEPTOR || !r || r->tries < ASKED_IN_VAIN || l->far.again)
		return;
	for (uint32_t id = l->reads.head; id != MQ_NONE; id = mq_next(e->reads, id)) {
		r = read_at(e, id);
		if (!(opcode_info(r->opcode)->flags & OPF_ANSWERED) ||
		    psn_after(psn_add(r->wire, r->span), m->psn))
			break;
		if (!r->done)
			COUNT(e, READS_GIVEN_UP);
		r->done = true;
	}
	/* not more: behind them may be the one just answered, which @m does not cover yet */
	reads_trim_to(e, l, m->psn);
}

/* Cut @m down to the first unanswered READ. Returns true when it was beyond one. */
static bool bound_by_read(struct engine *e, struct lane *l, struct wire_mark *m)
{
	struct read_rec *r;

	while ((r = reads_head(e, l)) && psn_before(r->wire, l->overlap) &&
	       !psn_after(psn_add(r->wire, r->span), m->psn) &&
	       (opcode_info(r->opcode)->flags & OPF_ANSWERED)) {
		r->done = true;
		reads_trim_to(e, l, m->psn);
	}
	/* an ATOMIC that was answered here: it is done, and its response is not needed */
	while ((r = reads_head(e, l)) && r->made && !psn_after(psn_add(r->wire, r->span), m->psn)) {
		r->done = true;
		reads_trim_to(e, l, m->psn);
	}
	give_up_reads(e, l, m);
	reads_trim_to(e, l, m->psn);
	r = reads_head(e, l);
	if (r && r->done && psn_is(r->wire, m->psn)) {
		/* its response had come before that of one ahead of it */
		reads_trim(e, l, m);
		return false;
	}
	if (!r || !psn_before(r->wire, m->psn) || !(opcode_info(r->opcode)->flags & OPF_ANSWERED))
		return false;
	*m = read_mark(r);
	return true;
}

/*
 * An ACK of @psn, the first after the loss timer's probe: is it the answer to the probe? It must be
 * if that packet had not asked for an ACK. Else it may answer what was sent before: the responder
 * had stood still, and more ACKs will follow. If none follow, the second is believed.
 */
static bool answers_probe(struct engine *e, struct lane *l, struct wire_psn psn)
{
	struct pkt *d;

	if (l->role != ROLE_ACCEPTOR)
		return true;
	d = lane_pkt(e, l, psn);
	return (psn_is(psn, l->una.psn) && l->doubt) ||
	       (d && !d->asked && !(d->flags & (PKT_ACKREQ | PKT_EOM)));
}

/* Whether the oldest packet was sent no later than @us. */
static bool sent_until(struct engine *e, struct lane *l, uint32_t us)
{
	struct pkt *d = NULL;

	if (psn_before(l->una.psn, l->nxt.psn))
		d = lane_pkt(e, l, l->una.psn);
	return d && (d->flags & PKT_SENT) && (int32_t)(d->xmit - us) <= 0;
}

/* The ACK @f, from beyond what was sent, comes after a long silence, counts another number of
 * messages than can have ended there, and answers another queue pair's request. */
static bool beyond_of_other(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	uint32_t ended = psn_sub(frame_aeth_msn(f), l->nxt.msn);

	return lane_stalled(e, l) && !l->opaque && !announce_numbered(e, l) &&
	       ended > psn_past(wire_psn_of(f), l->nxt.psn) + 1 &&
	       owner_of_answer(e, fl, f) != VERDICT_SAME;
}

/* An ACK to a probe from beyond all that was sent: it is done below @m. False: that is nothing. */
static bool sent_is_done(struct engine *e, struct flow *fl, struct wire_mark m)
{
	struct lane *l = &fl->lane;

	bound_by_read(e, l, &m);
	if (!psn_after(m.psn, l->una.psn))
		return false;
	l->progress = e->now;
	l->probing = false;
	true_ack(e, fl, &m);
	return true;
}

/* The responder is further than what was sent from here. Returns true when nothing is left. */
static bool rx_beyond(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	struct wire_mark m = l->nxt;

	if (l->role != ROLE_ACCEPTOR || psn_before(wire_psn_of(f), l->high) ||
	    announce_differs(e, l))
		return false;
	if (l->state == LANE_DRAIN) {
		/* The opener is gone and the host's requests pass by. The responder has executed
		 * one that is beyond all that is held here, so all of that is done. What no host
		 * can have sent by then is anybody's: it passes, and shows nothing. */
		if (psn_diff(wire_psn_of(f), l->high) < BEYOND_MAX)
			lane_close(e, fl, l->reason, true);
		engine_pass(e, fl, other_port(fl->side), f);
		return true;
	}
	if (!l->probing || !aeth_is_ack(frame_aeth_syndrome(f)) || !psn_is(l->nxt.psn, l->high) ||
	    psn_diff(wire_psn_of(f), l->high) >= BEYOND_MAX)
		return false;
	if (beyond_of_other(e, fl, f))
		return true;
	/* the host's packets passed by while the daemons stood still, or in a former lane */
	m.msn = frame_aeth_msn(f);
	return sent_is_done(e, fl, m);
}

/* What @f, which bears an AETH, says of credits. A requester that had none is told soon. */
static void credits(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;

	if (!lane_credit(l, frame_aeth_syndrome(f), f->opcode != OP_ACK))
		return;
	if (l->role == ROLE_ACCEPTOR) {
		progress_due(e, fl, true);
	} else {
		l->near.ack_repeat = true;
		ack_list(e, fl);
	}
}

/* It acknowledges nothing that waits for an ACK; but the host may have asked for it past us. And a
 * responder that has credits again says so by repeating its latest ACK unasked. */
static void rx_stale(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	uint8_t s = frame_aeth_syndrome(f);

	COUNT(e, STALE_ACK);
	if (!announce_numbered(e, l) && owner_of_answer(e, fl, f) != VERDICT_SAME)
		return;
	if (psn_is(psn_add(wire_psn_of(f), 1), l->una.psn) && aeth_is_ack(s))
		credits(e, fl, f);
	if (announce_numbered(e, l))
		return; /* nobody has asked past us */
	if (!lane_asked_below(wire_psn_of(f), l->una.psn) ||
	    (!lane_asked(e, l) && (!aeth_is_nak(s) || s == AETH_NAK_SEQ)))
		return;
	engine_pass(e, fl, other_port(fl->side), f);
	owner_answered(e, fl, f);
}

/* The loss timer's probe ends with whatever comes after it. Returns true when @psn is its answer;
 * @sent: when the probe was sent, us. */
static bool end_probe(struct engine *e, struct lane *l, struct wire_psn psn, uint32_t *sent)
{
	struct pkt *d = l->probing ? lane_pkt(e, l, l->una.psn) : NULL;
	struct pkt *acked = d ? lane_pkt(e, l, psn) : NULL;
	bool answered = d && answers_probe(e, l, psn);

	if (answered)
		*sent = d->xmit;
	if (acked && (answered || now_us(e) - acked->xmit > ROUND_TRIP_MOST_US)) {
		engine_change(e, acked, sizeof(*acked));
		acked->flags |= PKT_RETX; /* its time tells nothing of the round trip */
	}
	l->doubt = d && !answered && psn_is(psn, l->una.psn);
	l->probing = false;
	return answered;
}

/* The responder has answered the request at @psn. It does that in the order in which it is sent
 * them: what is not behind the latest answers a repeat. */
static void answers(struct lane *l, struct wire_psn psn)
{
	l->far.again &= psn_after(psn, (struct wire_psn){l->far.answered});
	l->far.answered = psn.v;
}

/* Of the oldest READ's answer, packets are lost, or (@past) the responder has answered what comes
 * after it: it is asked again, with all that comes after it. False: that was done just now, or the
 * responder has not come to it yet, which may take it long. */
static bool ask_oldest_again(struct engine *e, struct flow *fl, bool past)
{
	struct lane *l = &fl->lane;
	struct read_rec *r = reads_head(e, l);
	const struct pkt *d = lane_pkt(e, l, r->wire);

	if (l->far.again || r->asked + (l->rtt.srtt_us + ASK_AGAIN_US) * NSEC_PER_USEC >= e->now ||
	    (d && now_us(e) - d->xmit <= l->rtt.srtt_us + ASK_AGAIN_US))
		return false;
	r->asked = e->now;
	far_asks_again(l, r, past);
	far_resume_at(e, fl, r->wire);
	return true;
}

/* An ACK. @answered: it answers the probe that was sent at @sent. */
static void rx_true_ack(struct engine *e, struct flow *fl, const struct frame *f, bool answered,
			uint32_t sent)
{
	struct lane *l = &fl->lane;
	struct wire_mark m = {
		.psn = psn_add(wire_psn_of(f), 1), .msn = frame_aeth_msn(f), .ackable = 1};
	bool past;

	credits(e, fl, f);
	l->count.true_acks++;
	COUNT(e, TRUE_ACKS);
	answers(l, wire_psn_of(f));
	past = bound_by_read(e, l, &m);
	true_ack(e, fl, &m);
	if (past && l->role != ROLE_NONE && ask_oldest_again(e, fl, true))
		return;
	if (answered && l->role != ROLE_NONE && sent_until(e, l, sent)) {
		/* all before the probe has come or is lost: the responder lacks the rest */
		far_lost_one(e, l);
		far_resume_at(e, fl, l->una.psn);
	}
}

/* The responder is not ready for the packet at @m. */
static void rx_rnr(struct engine *e, struct flow *fl, const struct wire_mark *m, uint8_t syndrome)
{
	struct lane *l = &fl->lane;

	l->count.rnr++;
	COUNT(e, RNR);
	if (l->rnr_wait)
		return;
	if (!l->far.rnr_run)
		l->far.rnr_us = now_us(e);
	l->far.rnr_run += l->far.rnr_run < RNR_LEAST;
	if (l->far.rnr_run == RNR_LEAST &&
	    now_us(e) - l->far.rnr_us >= e->cfg.rnr_timeout_ns / NSEC_PER_USEC) {
		lane_refused(e, fl, m->psn, AETH_NAK_OPERATION, REASON_NOT_READY);
		return;
	}
	l->rnr_wait = true;
	far_resume_at(e, fl, m->psn);
	timer_arm(e, fl, TIMER_AUX, e->now + aeth_rnr_ns(syndrome & 0x1f));
}

/* An RNR or other NAK: it acknowledges what is before it. */
static void rx_nak(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	uint8_t s = frame_aeth_syndrome(f);
	struct pkt *d = lane_pkt(e, l, psn_sub(wire_psn_of(f), 1));
	struct read_rec *r;
	struct wire_mark m = {
		.psn = wire_psn_of(f),
		.msn = frame_aeth_msn(f),
		.ackable = d && !(d->flags & PKT_ANSWERED),
	};

	COUNT(e, TRUE_NAKS);
	bound_by_read(e, l, &m);
	true_ack(e, fl, &m);
	if (l->role == ROLE_NONE)
		return;
	r = reads_head(e, l);
	if (aeth_is_rnr(s)) {
		rx_rnr(e, fl, &m, s);
	} else if (s == AETH_NAK_SEQ) {
		if (r && psn_is(r->wire, wire_psn_of(f)))
			r->tries = 0; /* the READ has not reached the responder */
		far_lost_one(e, l);
		far_resume_at(e, fl, m.psn); /* or it is an unanswered READ before */
	} else if (aeth_is_nak(s)) {
		lane_refused(e, fl, wire_psn_of(f), s, REASON_NAK);
	}
}

/* Whether the ACK or NAK @f, of what is in custody, says as many messages as the responder that we
 * know has completed there. What answers a repeat may say more. */
static bool counts_as_known(struct engine *e, const struct lane *l, const struct frame *f)
{
	struct wire_psn psn = l->una.psn;
	uint32_t msn = l->una.msn;
	struct wire_psn end = psn_add(wire_psn_of(f), aeth_is_ack(frame_aeth_syndrome(f)));
	const struct pkt *d;

	for (int n = 0; n < COUNTED_MOST && psn_before(psn, end); n++) {
		d = lane_pkt(e, l, psn);
		if (!d)
			return true;
		msn = psn_add(msn, (d->flags & (PKT_EOM | PKT_ANSWERED)) != 0);
		psn = psn_add(psn, d->span);
	}
	return psn_before(psn, end) || msn == frame_aeth_msn(f);
}

/*
 * The ACK @f bears the PSN of what is in custody, but comes after a long silence, counts another
 * number of messages, and is one for what the requester's number has asked another queue pair: so
 * the number has another owner, and it is the owner's. Should it be ours it is said again.
 *
 * A NAK answers no repeat, so its count alone shows whose it is; what it names may never have come
 * here. Should it be ours, because we count wrong, the timer's next packet draws an ACK.
 */
static bool rx_of_other(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;

	if (!lane_stalled(e, l) || l->opaque || announce_numbered(e, l) || counts_as_known(e, l, f))
		return false;
	if (aeth_is_ack(frame_aeth_syndrome(f)))
		return owner_of_answer(e, fl, f) != VERDICT_SAME;
	engine_pass(e, fl, other_port(fl->side), f);
	return true;
}

/*
 * SINGLE: an ACK, to a probe, of what is in custody and has not been sent from here. The host had
 * sent it past the lane before that began, further than is known: its mark (@overlap) goes where
 * somebody else jumps to in its name, and is not there where nobody watched. The responder
 * acknowledges no less to any repeat, so without this nothing would ever go on. What was not sent
 * from here yet is not released, but sent in its turn. Returns true when that is all.
 */
static bool rx_unsent(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	uint32_t sent;

	if (l->role != ROLE_SINGLE || !l->probing || l->opaque ||
	    !psn_in(wire_psn_of(f), l->high, l->epsn.psn) || !aeth_is_ack(frame_aeth_syndrome(f)))
		return false;
	/* another owner's responder says that of a repeat, too, and has done fewer messages */
	if (psn_sub(frame_aeth_msn(f), l->nxt.msn) > psn_sub(l->epsn.msn, l->nxt.msn) ||
	    !counts_as_known(e, l, f))
		return false;
	(void)end_probe(e, l, psn_sub(l->nxt.psn, 1), &sent);
	return sent_is_done(e, fl, l->nxt);
}

static void rx_ack(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	uint32_t sent = 0;
	bool answered;

	if (rx_beyond(e, fl, f))
		return;
	if (!psn_in(wire_psn_of(f), l->una.psn,
		    psn_after(l->overlap, l->high) ? l->overlap : l->high)) {
		if (!rx_unsent(e, fl, f))
			rx_stale(e, fl, f);
		return;
	}
	if (owner_strange(e, fl, f) != VERDICT_SAME)
		return;
	if (rx_of_other(e, fl, f))
		return;
	l->progress = e->now; /* whatever it says, the responder is there */
	flow_headers(e, fl, f);
	l->owner.held_once = false;
	if (l->opaque || psn_sub(frame_aeth_msn(f), l->una.msn) <= psn_sub(l->epsn.msn, l->una.msn))
		owner_judge(e, fl, EVIDENCE_COUNTS); /* it has more than was asked for again */
	answered = end_probe(e, l, wire_psn_of(f), &sent);
	if (aeth_is_ack(frame_aeth_syndrome(f)))
		rx_true_ack(e, fl, f, answered, sent);
	else
		rx_nak(e, fl, f);
}

/*
 * ACCEPTOR: the response @f of @r is kept until the opener has it. Without room it passes, and if
 * the WAN loses it the opener asks again; but where READs of ours have gone to the responder too,
 * that may be in vain (announce/). Then false is returned, and we ask again ourselves, for a while.
 */
static bool keep_answer(struct engine *e, struct flow *fl, struct read_rec *r,
			const struct frame *f)
{
	if (resp_tx_keep(e, fl, f))
		return true;
	if (!announce_numbered(e, &fl->lane) || e->now - r->heard >= NO_ROOM_NS) {
		resp_tx_add(e, fl, f);
		return true;
	}
	COUNT(e, NO_ROOM);
	r->got = psn_past(wire_psn_of(f), r->wire);
	r->done = false;
	r->tries = 0; /* the responder remembers it */
	fl->lane.progress = e->now;
	return false;
}

/* No request waits for the response @f; @r: the one that it may have been of. */
static bool stray_answer(struct engine *e, struct flow *fl, const struct read_rec *r,
			 const struct frame *f, enum engine_port from)
{
	struct lane *l = &fl->lane;

	if (atomic_dropped(e, l, f))
		return false;
	COUNT(e, STRAY_RESPONSE);
	if (announce_numbered(e, l) || (!r && owner_of_answer(e, fl, f) != VERDICT_SAME) ||
	    (!r && !lane_may_await(e, l, wire_psn_of(f))))
		return false;
	engine_pass(e, fl, from, f);
	return true;
}

/* SINGLE: the answer @f of @r for the host. Where only the rest was asked for again
 * (rest_of_read()) it begins anew; a host that did not ask so would fail of that. */
static void give_answer(struct engine *e, const struct read_rec *r, const struct frame *f,
			enum engine_port from)
{
	struct template t = {0};
	struct build_spec s = {.t = &t,
			       .opcode = f->opcode,
			       .dqpn = f->dqpn,
			       .psn = f->psn,
			       .payload = f->data + f->payload,
			       .payload_len = f->payload_len};
	uint8_t out[FRAME_MAX];

	if (r->opcode == OP_READ_REQUEST)
		s.opcode = resp_opcode(psn_past(wire_psn_of(f), r->wire), r->span);
	if (s.opcode == f->opcode) {
		engine_tx(e, NULL, other_port(from), f->data, f->len);
		return;
	}
	if (f->aeth) {
		s.syndrome = frame_aeth_syndrome(f);
		s.msn = frame_aeth_msn(f);
	}
	template_learn(&t, f);
	engine_tx(e, NULL, other_port(from), out, build_packet(out, &s));
}

/* ACCEPTOR: a READ was answered at @psn. Is something of the oldest one's answer missing? */
static void answered_past(struct engine *e, struct flow *fl, struct wire_psn psn)
{
	const struct lane *l = &fl->lane;
	const struct read_rec *r = reads_head(e, l);

	if (r && !r->absorbed && psn_before(r->wire, l->nxt.psn) &&
	    psn_after(psn, psn_add(r->wire, r->got)))
		ask_oldest_again(e, fl, !psn_before(psn, psn_add(r->wire, r->span)));
}

/* Returns true when it was passed on although no request that waits for it is known. */
static bool rx_answer(struct engine *e, struct flow *fl, const struct frame *f,
		      enum engine_port from)
{
	struct lane *l = &fl->lane;
	struct read_rec *r = reads_find_wire(e, &l->reads, wire_psn_of(f));
	enum read_verdict v = READ_STRAY; /* no request waits for it until its READ was sent */
	uint8_t blank[FRAME_MAX];
	struct frame g;
	struct wire_mark m;

	f = atomic_blank(l, f, &g, blank);
	if (r && psn_in(r->wire, l->una.psn, l->high)) {
		if (f->aeth && owner_strange(e, fl, f) != VERDICT_SAME)
			return false;
		v = reads_response(e, l, f, &r);
	}
	if (v == READ_STRAY)
		return stray_answer(e, fl, r, f, from);
	answers(l, wire_psn_of(f));
	if (v == READ_AGAIN || v == READ_GAP) {
		if (l->role == ROLE_ACCEPTOR) {
			far_arm(e, fl); /* the responder is busy answering */
			answered_past(e, fl, wire_psn_of(f));
		} else if (!r->made) {
			give_answer(e, r, f, from);
		}
		return false;
	}
	if (l->role == ROLE_ACCEPTOR) {
		if (!keep_answer(e, fl, r, f))
			return false;
	} else if (r->made) {
		COUNT(e, ATOMICS_DROPPED);
	} else {
		give_answer(e, r, f, from);
	}
	flow_headers(e, fl, f);
	if (f->aeth)
		credits(e, fl, f);
	/* a response acknowledges all that was asked before it */
	m = read_mark(r);
	r->tries = 0;	 /* the responder remembers it */
	r->done = false; /* what is settled before it goes, and that stays until it is counted */
	if (psn_after(m.psn, l->una.psn))
		bound_by_read(e, l, &m);
	r->done = v == READ_COMPLETE;
	if (v == READ_COMPLETE && reads_head(e, l) == r) {
		/* responses to later ones may be complete already: it is their turn now */
		reads_trim(e, l, &m);
	}
	l->progress = e->now;
	true_ack(e, fl, &m);
	if (l->role == ROLE_ACCEPTOR)
		answered_past(e, fl, wire_psn_of(f));
	return false;
}

/* @f was about a READ of ours, and says something of all before @m. */
static void own_answered(struct engine *e, struct flow *fl, const struct frame *f,
			 const struct wire_mark *before, enum announce_answer what)
{
	struct lane *l = &fl->lane;
	struct wire_mark m = *before;

	l->progress = e->now;
	l->backoff = 0;
	if (f->aeth && what == ANSWER_TAKEN)
		credits(e, fl, f);
	bound_by_read(e, l, &m);
	true_ack(e, fl, &m);
	if (l->role == ROLE_NONE)
		return;
	if (what == ANSWER_MISSING) {
		far_lost_one(e, l);
		far_resume_at(e, fl, m.psn);
	} else if (what == ANSWER_REFUSED) {
		lane_refused(e, fl, before->psn, frame_aeth_syndrome(f), REASON_NAK);
	} else {
		far_settle_absorbed(e, fl);
	}
}

bool far_response(struct engine *e, struct flow *fl, const struct frame *f, enum engine_port from)
{
	struct lane *l = &fl->lane;
	enum announce_answer what;
	uint8_t buf[FRAME_MAX];
	struct frame g;
	struct wire_mark m;

	if (l->state == LANE_FAULT)
		return false;
	what = announce_answer(e, fl, f, &g, buf, &m);
	if (what == ANSWER_DROP)
		return false;
	if (what != ANSWER_PASS) {
		own_answered(e, fl, f, &m, what);
		return false;
	}
	f = &g;
	if (icrc_wrong(e, f))
		return false;
	if (f->opcode != OP_ACK)
		return rx_answer(e, fl, f, from);
	rx_ack(e, fl, f);
	return false;
}
