/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Standing in for the responder, toward the near requester (roles OPENER and SINGLE).
 *
 * Requests are taken in PSN order only. Each is verified and copied in one pass, described, and only then
 * counted in; the link (stream_tx.c or requester.c) sends it on from the copy. What the requester is told
 * is the front, and the front is the least of several limits, each a PSN together with what an ACK just
 * below it would say:
 *
 *	- what is accepted (and thereby retained);
 *	- the first unanswered READ or its like;
 *	- the handover PSN, until everything before it was truly acknowledged;
 *	- the true ACK, where the policy is `off`, where the peer has not agreed yet, and inside messages that
 *	  did not fit the pool when they began (POOL-3);
 *	- the last packet of the first message not truly acknowledged, where the policy is `honest`;
 *	- what was sent on, while the pool is nearly full: the requester then goes at the pace of the WAN.
 *
 * A sequence NAK acknowledges what is before it just as an ACK does, so it can only be sent when the front has
 * come up to the gap. Until then it is due: a NAK at the front itself would make the requester go back without
 * having got anywhere, and a few of those within one round trip use up its retries.
 *
 * An ACK never bears the PSN of a READ or ATOMIC: some requesters take it for the answer.
 *
 * A READ that is asked again after its answer had passed was lost between us and the requester. ACKs past it
 * would only make the requester start it again and again, at LAN speed, until its retries are used up; so
 * none is sent until the answer has passed once more.
 *
 * What looks wrong but has a right ICRC (opcode or length out of sequence) is not ours to judge: it goes to
 * the responder in its turn, unacknowledged, and so does everything after it until the responder has
 * spoken.
 */
#include "engine/answers.h"

/* Acknowledge at least every so many packets (engine.md). */
#define ACK_EVERY 64
/* Further from the expected PSN than any requester's window: another incarnation of the QP. */
#define JUMP_PSNS 65536
#define JUMP_RUN 3
#define JUMP_NEAR 1024
/* Rounds of repeating that begin behind what is missing, until it is believed. */
#define GONE_ON_ROUNDS 3
/* Above this share of the custody cap the front waits for the WAN. */
#define HIGH_WATER 70u
#define TRICKLE_US 2000u
/* A requester is asked to slow down at most once in this time (what NICs themselves keep to). */
#define CNP_US 50u
/* A requester resends all that it has outstanding within this time. */
#define AGAIN_US 20000u
/* Room that must be there before a requester is asked to try again. */
#define ROOM_AGAIN (256u << 10)
/* So long a requester may repeat what it was told to be done. */
#define STUCK_NS (10 * NSEC_PER_SEC)
/* A duplicate READ is sent on again when its answer is so much overdue, in eighths of the round trip. */
#define READ_OVERDUE_EIGHTHS 10u

static void list_ack(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	if (l->ack_listed)
		return;
	l->ack_listed = true;
	l->next_ack = e->ack_head;
	e->ack_head = flow_index(e, fl);
	engine_wake_at(e, e->now);
}

void responder_ack_due(struct engine *e, struct flow *fl)
{
	fl->lane.ack_due = true;
	list_ack(e, fl);
}

/* ---- the front ---- */

static void limit(struct mark *m, const struct mark *by)
{
	if (psn_before(by->psn, m->psn))
		*m = *by;
}

/* The same by a mark in the numbers of the responder. */
static void limit_wire(struct engine *e, const struct lane *l, struct mark *m, const struct mark *wire)
{
	struct mark by = shift_to_host(e, l, wire);

	limit(m, &by);
}

/* What was accepted from the requester, in its own numbers. */
static const struct mark *asked(struct engine *e, const struct lane *l)
{
	const struct lane_reads *x = reads_of(e, l);

	return x ? &x->asked : &l->accept;
}

/*
 * POLICY_HONEST: find the last packet of the first message that is not truly acknowledged. The search goes
 * on where it stopped, and begins anew only when the true ACK has passed what it found.
 */
static void honest_limit(struct engine *e, struct lane *l, struct mark *m)
{
	struct mark *h = &l->honest;
	struct pkt *d;

	if (psn_before(h->psn, l->tack.psn)) {
		*h = l->tack;
		l->honest_found = false;
	}
	while (!l->honest_found && psn_before(h->psn, l->accept.psn)) {
		uint32_t psn;

		d = window_next(&l->win, e->pool, h->psn, l->accept.psn, &psn);
		if (!d)
			return;
		h->psn = psn;
		if ((d->flags & PKT_EOM) && !(d->flags & PKT_ANSWERED)) {
			l->honest_found = true;
			break;
		}
		h->psn = psn_add(psn, d->span);
		h->ackable = !(d->flags & PKT_ANSWERED);
		if (d->flags & PKT_EOM)
			h->msn++;
	}
	if (l->honest_found)
		limit_wire(e, l, m, h);
}

static bool pool_high(const struct engine *e)
{
	return pool_fill(e->pool, POOL_CUSTODY) > HIGH_WATER;
}

/* Requests that were taken without understanding them are answered by a plain ACK. */
static void trim_answered(struct engine *e, struct lane *l)
{
	struct read_rec *r;

	reads_trim(e, l, NULL);
	while ((r = reads_head(e, l)) && !(opcode_info(r->opcode)->flags & OPF_ANSWERED) &&
	       psn_before(r->wire, l->tack.psn)) {
		r->done = true;
		reads_trim(e, l, NULL);
	}
}

/* Cut @m down to what safety demands; what a filling pool demands is responder_advance()'s business. */
static void limits(struct engine *e, struct lane *l, struct mark *m)
{
	struct read_rec *r = reads_head(e, l);

	if (!l->start_acked)
		limit(m, &l->front);
	if (r)
		limit(m, &r->at);
	if (l->state == LANE_OPENING || l->policy == POLICY_OFF)
		limit_wire(e, l, m, &l->tack);
	if (l->policy == POLICY_HONEST)
		honest_limit(e, l, m);
	if (l->guard.psn != PSN_NONE && !psn_before(l->tack.psn, l->guard_end))
		l->guard.psn = PSN_NONE;
	if (l->guard.psn != PSN_NONE)
		limit_wire(e, l, m, psn_after(l->tack.psn, l->guard.psn) ? &l->tack : &l->guard);
}

void responder_advance(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct mark m = *asked(e, l), tack, sent;

	if (l->state == LANE_FAULT || !l->start_acked)
		return;
	limits(e, l, &m);
	tack = shift_to_host(e, l, &l->tack);
	sent = shift_to_host(e, l, &l->sent);
	if (psn_after(m.psn, l->front.psn) && pool_high(e) && psn_after(m.psn, sent.psn)) {
		COUNT(e, HELD_BACK);
		/* a true ACK may be ahead of what this lane sent itself only after a restart */
		limit(&m, psn_after(tack.psn, sent.psn) ? &tack : &sent);
	}
	if (!psn_after(m.psn, l->front.psn))
		return;
	/* the true ACK knows better what stands just below it when we have not understood that. Else our own
	 * count is the better one: an ACK to a duplicate bears an older PSN with today's MSN. */
	if (m.psn == tack.psn && !m.ackable && tack.ackable)
		m = tack;
	l->front = m;
	if (l->ack_due || l->nak_due)
		list_ack(e, fl);
}

/* ---- what the requester is told ---- */

static void answer(struct engine *e, struct flow *fl, uint32_t psn, uint8_t syndrome, uint32_t msn)
{
	struct flow *back = flow_partner(e, fl);
	uint8_t buf[BUILD_MAX];
	uint32_t len;

	if (!back || !back->tmpl.len)
		return;
	len = build_ack(buf, &back->tmpl, back->key.dqpn, psn, syndrome, msn);
	engine_tx(e, fl->side, buf, len);
}

static void nak(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	responder_advance(e, fl);
	l->nak_due = !l->start_acked || l->front.psn != asked(e, l)->psn || l->again_psn != PSN_NONE;
	if (l->nak_due)
		return;
	answer(e, fl, l->front.psn, AETH_NAK_SEQ, l->front.msn);
	l->nak_sent = true;
	l->naks++;
	COUNT(e, NAKS_SENT);
}

void responder_flush_ack(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct mark m;

	if (l->state == LANE_FAULT) {
		fault_answer(e, fl);
		return;
	}
	responder_advance(e, fl);
	if (l->again_psn != PSN_NONE)
		return;
	m = l->front.ackable ? l->front : l->acked;
	if (m.ackable && (l->ack_again || (l->ack_due && psn_after(m.psn, l->acked.psn)))) {
		answer(e, fl, psn_sub(m.psn, 1), l->credit == 0xff ? AETH_ACK_UNLIMITED : l->credit,
		       m.msn);
		l->acked = m;
		if (psn_after(m.psn, l->told))
			l->told = m.psn;
		l->pseudo_acks++;
		l->unacked = 0;
		COUNT(e, PSEUDO_ACKS);
	}
	l->ack_again = false;
	if (l->front.psn == asked(e, l)->psn)
		l->ack_due = false;
	if (l->nak_due)
		nak(e, fl);
}

/* ---- requests ---- */

/* Opcode and length against the message that is open (ENG-10, ENG-12). */
static bool in_sequence(const struct lane *l, const struct frame *f, uint32_t mtu)
{
	uint16_t fl = f->op->flags;
	uint32_t want;

	if (l->msg == MSG_UNKNOWN)
		return f->payload_len <= mtu;
	if (fl & OPF_ANSWERED)
		return l->msg == MSG_NONE;
	if (fl & (OPF_FIRST | OPF_ONLY)) {
		if (l->msg != MSG_NONE)
			return false;
	} else if (l->msg != ((fl & OPF_WRITE) ? MSG_WRITE : MSG_SEND)) {
		return false;
	}
	if (fl & (OPF_FIRST | OPF_MIDDLE)) {
		if (f->payload_len != mtu)
			return false;
	} else if (f->payload_len > mtu || ((fl & OPF_LAST) && !f->payload_len)) {
		return false;
	}
	if (!(fl & OPF_WRITE))
		return true;
	want = (fl & (OPF_FIRST | OPF_ONLY)) ? frame_reth_length(f) : l->msg_left;
	if (want == MSG_LEFT_UNKNOWN && !(fl & (OPF_FIRST | OPF_ONLY)))
		return true;
	return (fl & OPF_EOM) ? f->payload_len == want : f->payload_len < want;
}

/* POOL-3: what does not fit is not acknowledged early. A WRITE tells its length in its first packet. */
static void reserve(struct engine *e, struct lane *l, const struct frame *f, uint32_t mtu)
{
	uint64_t length, need;

	if (!(f->op->flags & OPF_WRITE) || !(f->op->flags & OPF_FIRST))
		return;
	length = frame_reth_length(f);
	need = length + (length / mtu + 1) * (f->len - f->payload_len + 16);
	if (need <= pool_log_room(e->pool, POOL_CUSTODY, &l->log))
		return;
	if (l->guard.psn == PSN_NONE)
		l->guard = l->accept;
	l->guard_end = psn_add(l->accept.psn, (uint32_t)((length + mtu - 1) / mtu));
}

/* The first step of backpressure: hosts that know congestion notifications slow down before anything is withheld
 * from them. */
static void slow_down(struct engine *e, struct flow *fl)
{
	const struct flow *back = flow_partner(e, fl);
	uint8_t buf[BUILD_MAX];

	if (now_us(e) - fl->lane.cnp_us < CNP_US || !back || !back->tmpl.len)
		return;
	fl->lane.cnp_us = now_us(e);
	engine_tx(e, fl->side, buf, build_cnp(buf, &back->tmpl, back->key.dqpn));
	COUNT(e, CNP_SENT);
}

static void no_room(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	COUNT(e, NO_ROOM);
	if (l->room_wait)
		return;
	l->room_wait = true;
	if (l->room_listed)
		return;
	l->room_listed = true;
	l->next_room = e->room_head;
	e->room_head = flow_index(e, fl);
}

static bool over_rule_cap(const struct engine *e, const struct flow *fl, uint32_t len)
{
	uint64_t cap = fl->rule < 0 ? 0 : e->rules[fl->rule].cap;

	return cap && e->rule_bytes[fl->rule] + len > cap;
}

static void step(struct mark *m, uint32_t span, bool eom, bool ackable)
{
	m->psn = psn_add(m->psn, span);
	m->msn += eom;
	m->ackable = ackable;
}

/* One more was accepted from the requester. */
static void taken(struct engine *e, struct flow *fl, const struct frame *f, bool eom)
{
	struct lane *l = &fl->lane;

	l->nak_sent = l->nak_due = false;
	l->room_wait = false;
	l->jump_run = 0;
	if (reads_of(e, l))
		reads_of(e, l)->stuck = 0;
	if (f->ackreq || eom || ++l->unacked >= ACK_EVERY)
		responder_ack_due(e, fl);
}

/* The records of a request that waits for its answer: in the host's order, and in that of the wire. */
static void waiting(struct engine *e, struct flow *fl, const struct frame *f, uint32_t span, uint32_t wire)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	struct read_range what = {0};

	if (f->reth)
		what = (struct read_range){frame_reth_va(f), frame_reth_rkey(f), frame_reth_length(f)};
	reads_add(e, fl, f, span, asked(e, l), wire);
	if (!x)
		return;
	reads_tail(e, l)->moved = x->asked.msn != l->accept.msn;
	if (f->op->flags & OPF_ANSWERED)
		answers_expect(e, fl, &what, f->opcode, wire, span, FETCH_ASKED);
}

/* A READ whose answer has been asked for already, as @wire: the request itself ends here. */
static void claimed(struct engine *e, struct flow *fl, const struct frame *f, uint32_t span, uint32_t wire)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);

	reads_add(e, fl, f, span, &x->asked, wire);
	reads_tail(e, l)->moved = true;
	step(&x->asked, span, true, false);
	taken(e, fl, f, true);
	ahead_asked(e, fl, f, true);
	pace_run(e, flow_partner(e, fl));
}

static void request_in_order(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	uint32_t mtu = fl->path_mtu, span = frame_span(f, mtu);
	bool waits = f->op->flags & OPF_ANSWERED, sane = in_sequence(l, f, mtu), bad;
	struct lane_reads *x = reads_of(e, l);
	uint32_t wire = l->accept.psn;
	uint8_t flags;
	struct pkt *d;

	if (l->state == LANE_DRAIN)
		return; /* the requester asks again, and WATCH will pass it */
	if (span > SPAN_MAX) {
		if (shift_differs(x, l)) {
			lane_fault(e, fl, REASON_LONG_READ, AETH_NAK_OPERATION);
			return;
		}
		lane_drain(e, fl, REASON_LONG_READ);
		if (l->role == ROLE_NONE)
			engine_pass(e, fl->side, f);
		return;
	}
	if (l->state == LANE_OPENING && pool_high(e)) {
		/* nothing is promised yet: this is no time to begin */
		lane_close(e, fl, REASON_POOL_FULL, true);
		engine_pass(e, fl->side, f);
		return;
	}
	if (pool_high(e))
		slow_down(e, fl);
	/* a READ longer than the window goes alone */
	if (l->tack.psn != l->accept.psn &&
	    psn_diff(psn_add(l->accept.psn, span), l->tack.psn) > (int32_t)(WINDOW_SPAN - 1)) {
		no_room(e, fl);
		return;
	}
	if ((waits || !sane) && mq_free_count(e->reads) < 2) {
		no_room(e, fl);
		return;
	}
	if (waits && !x && reads_wanted(e, fl) && !(x = reads_begin(e, fl))) {
		no_room(e, fl);
		return;
	}
	if (x && sane && f->opcode == OP_READ_REQUEST && x->guesses) {
		if (!icrc_ok(f)) {
			COUNT(e, BAD_ICRC);
			return;
		}
		if (ahead_claim(e, fl, f, &wire)) {
			claimed(e, fl, f, span, wire);
			lane_settled(e, fl);
			return;
		}
	}
	if (over_rule_cap(e, fl, f->len) || (waits && x && !answers_room(e, fl, wire, span))) {
		no_room(e, fl);
		return;
	}
	if (sane)
		reserve(e, l, f, mtu);
	d = lane_retain(e, fl, f, span, wire, &bad);
	if (!d) {
		if (!bad)
			no_room(e, fl);
		return;
	}
	flags = d->flags;
	if (x) {
		if (f->opcode != OP_READ_REQUEST)
			ahead_signal(e, fl);
		shift_note(x, l);
	}
	if (!sane) {
		COUNT(e, BAD_SEQUENCE);
		l->opaque = true;
	}
	if (waits || !sane)
		waiting(e, fl, f, span, wire);
	if (l->tack.psn == l->accept.psn)
		l->progress = e->now; /* the oldest in custody begins to wait now */

	if (f->op->flags & OPF_WRITE && sane) {
		if (f->op->flags & (OPF_FIRST | OPF_ONLY))
			l->msg_left = frame_reth_length(f);
		if (l->msg_left != MSG_LEFT_UNKNOWN)
			l->msg_left -= f->payload_len;
	}
	if (flags & PKT_EOM)
		l->msg = MSG_NONE;
	else
		l->msg = (f->op->flags & OPF_WRITE) ? MSG_WRITE : MSG_SEND;
	step(&l->accept, span, flags & PKT_EOM, !waits && sane);
	if (x)
		step(&x->asked, span, flags & PKT_EOM, !waits && sane);
	l->end = l->accept.psn;
	if (x && waits && f->opcode == OP_READ_REQUEST)
		ahead_asked(e, fl, f, false);
	pace_run(e, fl);
	taken(e, fl, f, flags & PKT_EOM);
}

/*
 * A requester whose front waits for the WAN asks again by its timer. Let the front take one small step, so
 * that its retry counter starts anew: a withheld ACK must never become an error (engine.md). What the step
 * covers is retained like everything else.
 */
static void trickle(struct engine *e, struct lane *l)
{
	struct mark m = *asked(e, l);
	struct lane_reads *x = reads_of(e, l);
	struct pkt *d;

	if (!pool_high(e) || now_us(e) - l->trickle_us < TRICKLE_US)
		return;
	limits(e, l, &m);
	if (!psn_after(m.psn, l->front.psn))
		return;
	d = window_get(&l->win, e->pool, x ? shift_to_wire(x, l->front.psn) : l->front.psn);
	if (!d || (d->flags & PKT_ANSWERED))
		return;
	l->front.psn = psn_add(l->front.psn, 1);
	l->front.msn += !!(d->flags & PKT_EOM);
	l->front.ackable = 1;
	l->trickle_us = now_us(e);
}

/*
 * The same for a READ that the responder has executed and whose answer did not pass here since the lane
 * opened: it was sent before, and its answer passed before, or in a part that a host had asked for again.
 */
static void answered_unseen(struct engine *e, struct lane *l, uint32_t psn)
{
	struct read_rec *r = reads_head(e, l);
	uint32_t end = r ? psn_add(r->at.psn, r->span) : 0;

	if (!r || !psn_before(r->wire, l->overlap) || psn_before(psn, end) || psn_before(l->tack.psn, psn_add(r->wire, r->span)) ||
	    e->now - r->asked < (2 * l->srtt_us + AGAIN_US) * NSEC_PER_USEC)
		return;
	r->done = true;
	if (psn_after(end, l->told))
		l->told = end;
	trim_answered(e, l);
}

/* A READ or ATOMIC asked again whose answer is not here: the responder repeats it. */
static void ask_past(struct engine *e, struct flow *fl, const struct frame *f, bool moved)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	uint8_t out[FRAME_MAX];
	uint32_t wire;

	if (x && x->guessed_ever && f->opcode == OP_READ_REQUEST) {
		COUNT(e, DUP_READS);
		if (icrc_ok(f))
			answers_renew(e, fl, f);
		return;
	}
	wire = x ? answers_wire(e, fl, f) : f->psn;
	if (wire == PSN_NONE || (moved && !icrc_ok(f))) {
		COUNT(e, DUP_READS);
		return;
	}
	COUNT(e, DUP_READS_PASSED);
	if (wire == f->psn)
		engine_tx(e, other_port(fl->side), f->data, f->len);
	else
		engine_tx(e, other_port(fl->side), out, shift_frame(out, f, wire, PSN_NONE));
}

/* The QPN was given to another QP: what is held for the former one is nobody's. */
static void incarnation(struct engine *e, struct flow *fl, const struct frame *f)
{
	engine_event(e, EVENT_INCARNATION, fl, 0, 0);
	lane_close(e, fl, REASON_INCARNATION, true);
	flow_unpair(e, fl);
	learn_request(e, fl, f);
	engine_pass(e, fl->side, f);
}

/* Whether the READ @f, whose PSN is within those of @r, asks for something else than @r did. */
static bool other_read(const struct flow *fl, const struct read_rec *r, const struct frame *f)
{
	uint32_t skip = psn_sub(f->psn, r->at.psn) * fl->path_mtu;

	return r->opcode == OP_READ_REQUEST && f->opcode == OP_READ_REQUEST &&
	       (frame_reth_rkey(f) != r->rkey || frame_reth_va(f) != r->va + skip ||
		frame_reth_length(f) != r->length - skip);
}

/*
 * Whether @f bears the PSN of a packet in custody and is another request. The BTH may differ: a requester that repeats may
 * ask for an ACK where it did not at first. So may the payload: an application may change what it has not been told
 * to be sent.
 */
static bool other_request(struct engine *e, const struct flow *fl, const struct lane_reads *x, const struct frame *f)
{
	const struct lane *l = &fl->lane;
	uint32_t wire = x ? shift_to_wire(x, f->psn) : f->psn;
	const struct pkt *d;
	struct frame g;

	if (wire == PSN_NONE || !psn_in(wire, l->tack.psn, l->accept.psn))
		return false;
	d = window_get(&l->win, e->pool, wire);
	if (!d || frame_parse(lane_packet(e, d), d->len, &g) != FRAME_OK || (g.op->flags & OPF_ANSWERED))
		return false;
	return g.opcode != f->opcode || g.payload_len != f->payload_len || g.payload - g.ext != f->payload - f->ext ||
	       memcmp(g.data + g.ext, f->data + f->ext, g.payload - g.ext);
}

/*
 * It was told that this is done, long ago and again and again, and nothing may pass by to the true responder, who
 * would know more: it is another incarnation of the QP, or one that is beyond help.
 */
static bool stuck(struct engine *e, struct flow *fl, struct lane_reads *x, const struct frame *f)
{
	if (!x->stuck)
		x->stuck = e->now;
	if (e->now - x->stuck < STUCK_NS || !icrc_ok(f))
		return false;
	lane_fault(e, fl, REASON_INCARNATION, AETH_NAK_OPERATION);
	return true;
}

static void request_again(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	/* where the responder knows other numbers, nothing passes by */
	bool moved = x && (x->nsegments || x->trimmed || x->asked.psn != l->accept.psn);
	struct read_rec *r;
	struct mark tack;

	if (l->state == LANE_OPENING || (!l->start_acked && psn_before(f->psn, l->start))) {
		engine_pass(e, fl->side, f); /* not in custody: the requester's own business */
		return;
	}
	answered_unseen(e, l, f->psn);
	tack = shift_to_host(e, l, &l->tack);
	if (psn_before(f->psn, l->told) && psn_before(f->psn, tack.psn) &&
	    !(f->op->flags & OPF_ANSWERED) && !moved) {
		/* it was told that this is done, and does it again: that ACK was lost, or it is another
		 * incarnation of the QP. The true responder knows. */
		l->dup++;
		l->passed_us = now_us(e) | 1;
		COUNT(e, DUP_PASSED);
		engine_tx(e, other_port(fl->side), f->data, f->len);
		return;
	}
	if (!(f->op->flags & OPF_ANSWERED) && other_request(e, fl, x, f)) {
		if (icrc_ok(f))
			incarnation(e, fl, f);
		else
			COUNT(e, BAD_ICRC);
		return;
	}
	if (!(f->op->flags & OPF_ANSWERED)) {
		l->dup++;
		COUNT(e, DUP_REQUESTS);
		if (moved && psn_before(f->psn, l->told) && stuck(e, fl, x, f))
			return;
		trickle(e, l);
		/* it resends this, and has not asked for the READ again in the same round: it has the answer */
		if (l->again_psn != PSN_NONE && !psn_before(f->psn, l->again_end) &&
		    now_us(e) - l->again_us > 2 * l->srtt_us + AGAIN_US)
			l->again_psn = PSN_NONE;
		l->ack_again = true;
		list_ack(e, fl);
		return;
	}
	r = reads_find(e, l, f->psn);
	if (r && other_read(fl, r, f)) {
		/* a requester repeats what it asked */
		if (icrc_ok(f))
			incarnation(e, fl, f);
		else
			COUNT(e, BAD_ICRC);
		return;
	}
	if (x && icrc_ok(f) && answers_again(e, fl, f))
		return;
	/* without a record its answer has gone to the host, even if no true ACK has said so yet */
	if (r && (!psn_before(r->wire, l->tack.psn) ||
		  (!r->gap && e->now - r->asked < l->srtt_us * NSEC_PER_USEC * READ_OVERDUE_EIGHTHS / 8))) {
		/* the original is still on its way, or its answer is */
		l->dup++;
		COUNT(e, DUP_READS);
		return;
	}
	if (r) {
		r->asked = e->now;
		r->gap = false;
	} else {
		uint32_t end = psn_add(f->psn, frame_span(f, fl->path_mtu));

		if (l->again_psn == PSN_NONE || psn_before(f->psn, l->again_psn))
			l->again_psn = f->psn;
		if (l->again_psn == f->psn || psn_after(end, l->again_end))
			l->again_end = end;
		l->again_us = now_us(e);
	}
	ask_past(e, fl, f, moved);
}

/* Far ahead of or behind all that this QP can have outstanding. Returns true when the flow was found to be
 * another incarnation, which then passes through WATCH. */
static bool jumped(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	uint32_t next = psn_add(f->psn, frame_span(f, fl->path_mtu));

	if (!icrc_ok(f)) {
		COUNT(e, BAD_ICRC);
		return false;
	}
	/* the next ones, or the same again: a requester may have only one request under way */
	if (l->jump_run && psn_diff(f->psn, l->jump_psn) <= 0 && psn_diff(f->psn, l->jump_psn) > -JUMP_NEAR)
		l->jump_run++;
	else
		l->jump_run = 1;
	if (l->jump_run == 1 || psn_after(next, l->jump_psn))
		l->jump_psn = next;
	if (l->jump_run < JUMP_RUN)
		return false;
	incarnation(e, fl, f);
	return true;
}

/* @f goes to the responder without being counted: its numbers are taken. */
static void passes(struct flow *fl, const struct frame *f)
{
	uint32_t end = psn_add(f->psn, frame_span(f, fl->path_mtu));

	if (psn_after(end, fl->lane.overlap))
		fl->lane.overlap = end;
}

/*
 * A requester that repeats from behind what is missing here, again and again, has been told by somebody else that it
 * is done: its packets passed by while we did not run (the XDP program passes everything when the daemon stands
 * still). Where nothing is in custody it is let go. Returns true when it was.
 */
static bool gone_on(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;

	if (!icrc_ok(f) || l->state != LANE_HELD || l->room_wait)
		return false;
	l->jump_run = l->jump_run && psn_after(f->psn, l->jump_psn) ? l->jump_run : l->jump_run + 1;
	l->jump_psn = f->psn;
	if (l->jump_run <= GONE_ON_ROUNDS || l->tack.psn != l->accept.psn || shift_differs(reads_of(e, l), l))
		return false;
	lane_close(e, fl, REASON_INCARNATION, true);
	return true;
}

void responder_request(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	int32_t ahead;

	l->requests++;
	if (l->accept.psn == PSN_NONE) {
		fault_request(e, fl, f); /* of a lane that a former engine held */
		return;
	}
	ahead = psn_diff(f->psn, asked(e, l)->psn);
	if (ahead >= JUMP_PSNS || ahead < -JUMP_PSNS - (int32_t)WINDOW_SPAN) {
		COUNT(e, GAPS);
		jumped(e, fl, f);
		return;
	}
	if (l->state == LANE_FAULT) {
		fault_request(e, fl, f);
	} else if (ahead == 0) {
		request_in_order(e, fl, f);
	} else if (ahead < 0) {
		request_again(e, fl, f);
	} else {
		COUNT(e, GAPS);
		if (l->state == LANE_OPENING) {
			passes(fl, f);
			engine_pass(e, fl->side, f);
		} else if (gone_on(e, fl, f))
			engine_pass(e, fl->side, f);
		else if (!l->nak_sent && !l->nak_due && !l->room_wait && l->state != LANE_DRAIN && icrc_ok(f))
			nak(e, fl);
	}
}

/* ---- true ACKs, whoever brings them ---- */

void responder_true_ack(struct engine *e, struct flow *fl, const struct mark *m)
{
	struct lane *l = &fl->lane;

	if (psn_after(m->psn, l->tack.psn)) {
		lane_skip(e, fl, m);
		l->backoff = 0;
	}
	if (psn_after(l->tack.psn, l->start))
		l->start_acked = true;
	if (l->reads_page != POOL_NONE)
		pace_run(e, flow_partner(e, fl)); /* what waited for something opaque before it */
	responder_settled(e, fl);
}

/* An answer has gone to the host, or the true ACK has moved. */
void responder_settled(struct engine *e, struct flow *fl)
{
	trim_answered(e, &fl->lane);
	responder_advance(e, fl);
	lane_check_drained(e, fl);
}

/* Whether the rule's own cap, or the records of READs, still keep the lane from taking a packet. */
static bool short_of_more(const struct engine *e, const struct flow *fl)
{
	uint64_t want = fl->rule < 0 ? 0 : e->rules[fl->rule].cap / 8;

	want = want < ROOM_AGAIN ? want : ROOM_AGAIN;
	if (want < fl->path_mtu + 128u)
		want = fl->path_mtu + 128u;
	return over_rule_cap(e, fl, (uint32_t)want) || mq_free_count(e->reads) < 2;
}

/* Ask for what was dropped for want of room, when there is some; asked too early a requester goes back in vain, and
 * a few of those use up its retries. */
void responder_room(struct engine *e)
{
	uint32_t later = FLOW_NONE, i;

	while ((i = e->room_head) != FLOW_NONE) {
		struct flow *fl = &e->flows[i];
		struct lane *l = &fl->lane;
		uint64_t want = pool_cap(e->pool, POOL_CUSTODY) / 8;

		if (pool_log_room(e->pool, POOL_CUSTODY, &l->log) < (want < ROOM_AGAIN ? want : ROOM_AGAIN))
			break;
		e->room_head = l->next_room;
		if (fl->used && lane_keeps(l) && l->room_wait && l->state != LANE_FAULT && short_of_more(e, fl)) {
			l->next_room = later;
			later = i;
			continue;
		}
		l->room_listed = false;
		if (!fl->used || !lane_keeps(l) || !l->room_wait || l->state == LANE_FAULT)
			continue;
		l->room_wait = false;
		nak(e, fl);
	}
	while ((i = later) != FLOW_NONE) {
		later = e->flows[i].lane.next_room;
		e->flows[i].lane.next_room = e->room_head;
		e->room_head = i;
	}
}

void responder_refused(struct engine *e, struct flow *fl, uint32_t psn, uint8_t syndrome,
		       enum lane_reason why)
{
	struct lane *l = &fl->lane;
	struct mark m = {.psn = psn};

	if (l->state == LANE_FAULT)
		return;
	responder_advance(e, fl);
	m = shift_to_host(e, l, &m);
	/* a guess was refused, or the numbers differ: only a fault can say so */
	if (psn_before(m.psn, l->front.psn) || !l->start_acked ||
	    shift_differs(reads_of(e, l), l)) {
		lane_fault(e, fl, why, syndrome);
		return;
	}
	/* nothing acknowledged is concerned: the requester learns it as if nobody stood between */
	answer(e, fl, psn, syndrome, l->tack.msn);
	COUNT(e, FATAL_NAKS);
	lane_close(e, fl, why, true);
}

/* An answer that belongs to no pending request has passed: was it waited for? */
void responder_repeated(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;

	if (l->again_psn == PSN_NONE || psn_add(f->psn, 1) != l->again_end)
		return;
	l->again_psn = PSN_NONE;
	list_ack(e, fl);
}

/* ---- responses from the WAN that the peer did not consume (role OPENER) ---- */

static void native_ack(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;

	/* Nothing is promised yet, or nothing of this: bit-exact pass-through. */
	if (l->state == LANE_OPENING || psn_before(f->psn, l->start)) {
		lane_old_response(e, fl, f);
		return;
	}
	if (psn_before(f->psn, l->tack.psn) && !shift_differs(reads_of(e, l), l) && icrc_ok(f)) {
		engine_pass(e, other_port(fl->side), f); /* to a duplicate that was passed on */
		return;
	}
	/* sent before the acceptor took over; it will hear the same again and report it */
	COUNT(e, STALE_ACK);
}

void responder_answer(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	struct read_rec *r;

	if (l->state == LANE_FAULT)
		return; /* no success after a fault */
	if (f->opcode == OP_ACK) {
		native_ack(e, fl, f);
		return;
	}
	if (psn_before(f->psn, l->start)) {
		if (!shift_strange(reads_of(e, l), l))
			engine_pass(e, other_port(fl->side), f);
		return;
	}
	if (l->reads_page != POOL_NONE) {
		answers_rx(e, fl, f);
		return;
	}
	if (!icrc_ok(f)) {
		COUNT(e, BAD_ICRC);
		return;
	}
	switch (reads_response(e, l, f, &r)) {
	case READ_STRAY:
		COUNT(e, STRAY_RESPONSE);
		break;
	case READ_COMPLETE:
		if (psn_after(psn_add(r->at.psn, r->span), l->told))
			l->told = psn_add(r->at.psn, r->span);
		trim_answered(e, l);
		break;
	default:
		break;
	}
	/* the data first, then whatever it allows to be acknowledged */
	engine_tx(e, fl->side, f->data, f->len);
	if (!r)
		responder_repeated(e, fl, f);
	responder_advance(e, fl);
	lane_check_drained(e, fl);
}
