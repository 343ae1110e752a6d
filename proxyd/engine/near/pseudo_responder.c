// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Standing in for the responder, toward the near requester (roles OPENER and SINGLE).
 *
 * Requests are accepted in PSN order only. Each is verified and copied in one pass, then described
 * by a descriptor and records, and only then do the marks move past it; the link (stream_tx.c or
 * pseudo_requester.c) sends it on from the copy. ack_tx.c tells the requester how far it is
 * acknowledged, up to the frontier. duplicate.c handles requests that are not the next one, room.c
 * those that find no room.
 *
 * A request with a right ICRC whose opcode or length is out of sequence is for the responder to
 * judge: it goes there in its turn, unacknowledged, and so does everything after it until the
 * responder has spoken.
 */
#include "engine/fault/fault.h"
#include "engine/learn/learn.h"
#include "engine/near/near.h"
#include "engine/prefetch/prefetch.h"

/* Acknowledge at least every so many packets. */
#define ACK_EVERY 64
/* Further from the expected PSN than any requester's window: another incarnation of the QP. */
#define JUMP_PSNS 65536

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

/*
 * POOL-3: a message that does not fit is not acknowledged early. A WRITE tells its length in its
 * first packet.
 */
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
		l->guard = l->epsn;
	l->guard_end = psn_add(l->epsn.psn, (uint32_t)((length + mtu - 1) / mtu));
}

static void step(struct mark *m, uint32_t span, bool eom, bool ackable)
{
	m->psn = psn_add(m->psn, span);
	m->msn += eom;
	m->ackable = ackable;
}

/* @f was accepted: what waited for it is over, and an ACK may be due. */
static void request_accepted(struct engine *e, struct flow *fl, const struct frame *f, bool eom)
{
	struct lane *l = &fl->lane;

	l->nak_sent = l->nak_due = false;
	l->room_wait = false;
	if (reads_of(e, l))
		reads_of(e, l)->stuck = 0;
	if (l->atomic == ATOMIC_PREFETCH && reads_of(e, l))
		prefetch_atomic_seen(e, fl, f);
	if (f->ackreq || eom || ++l->unacked >= ACK_EVERY)
		ack_schedule(e, fl);
}

/* Add the records of a request that waits for its answer: in the order of host and of wire. */
static void record_request(struct engine *e, struct flow *fl, const struct frame *f, uint32_t span,
			   uint32_t wire)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	struct read_range what = {0};

	if (f->reth)
		what = (struct read_range){frame_reth_va(f), frame_reth_rkey(f),
					   frame_reth_length(f)};
	reads_add(e, fl, f, span, host_epsn(e, l), wire);
	if (l->atomic)
		atomic_asked(e, fl);
	if (!x)
		return;
	reads_tail(e, l)->moved = x->map.asked.msn != l->epsn.msn;
	if (f->op->flags & OPF_ANSWERED)
		fetch_add(e, fl, &what, f->opcode, wire, span, FETCH_ASKED);
}

/* The answer to this request was asked for ahead, as @wire: the request itself goes no further. */
static void claim_prefetched(struct engine *e, struct flow *fl, const struct frame *f,
			     uint32_t span, uint32_t wire)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);

	reads_add(e, fl, f, span, &x->map.asked, wire);
	reads_tail(e, l)->moved = true;
	step(&x->map.asked, span, true, false);
	request_accepted(e, fl, f, true);
	if (f->opcode == OP_READ_REQUEST)
		prefetch_asked(e, fl, f, true);
	pace_run(e, flow_partner(e, fl));
}

static void request_in_order(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	uint32_t mtu = fl->path_mtu, span = frame_span(f, mtu);
	bool waits = f->op->flags & OPF_ANSWERED, sane = in_sequence(l, f, mtu), bad;
	struct lane_reads *x = reads_of(e, l);
	uint32_t wire = l->epsn.psn;
	uint8_t flags;
	struct pkt *d;

	if (l->state == LANE_OPENING)
		l->atomics |= (f->op->flags & OPF_ATOMIC) != 0; /* it passes by, too */
	if (l->state == LANE_DRAIN)
		return; /* the requester asks again, and WATCH will pass it */
	if (span > SPAN_MAX) {
		if (psn_map_differs(e, l)) {
			lane_fault(e, fl, REASON_LONG_READ, AETH_NAK_OPERATION);
			return;
		}
		lane_drain(e, fl, REASON_LONG_READ);
		if (l->role == ROLE_NONE)
			engine_pass(e, fl->side, f);
		return;
	}
	if (l->state == LANE_OPENING && (pool_pressed(e) || span_pressed(e, l))) {
		/* nothing is promised yet: this is no time to begin */
		lane_close(e, fl, REASON_POOL_FULL, true);
		engine_pass(e, fl->side, f);
		return;
	}
	if (pool_pressed(e) || span_pressed(e, l))
		send_cnp(e, fl);
	/* a READ longer than the window goes alone */
	if (l->una.psn != l->epsn.psn &&
	    psn_diff(psn_add(l->epsn.psn, span), l->una.psn) >= (int32_t)e->cfg.lane_span) {
		wait_for_room(e, fl);
		return;
	}
	if ((waits || !sane) && mq_free_count(e->reads) < 2) {
		wait_for_room(e, fl);
		return;
	}
	if (waits && !x && l->role == ROLE_OPENER && !(x = reads_begin(e, fl))) {
		wait_for_room(e, fl);
		return;
	}
	if (x && sane && (f->opcode == OP_READ_REQUEST || f->opcode == OP_FETCH_ADD) &&
	    x->guesses) {
		if (!icrc_ok(f)) {
			COUNT(e, BAD_ICRC);
			return;
		}
		if (f->opcode == OP_READ_REQUEST ? prefetch_claim(e, fl, f, &wire)
						 : prefetch_atomic_claim(e, fl, f, &wire)) {
			claim_prefetched(e, fl, f, span, wire);
			lane_settled(e, fl);
			return;
		}
	}
	if (over_rule_cap(e, fl, f->len) || (waits && x && !fetch_room(e, fl, wire, span))) {
		wait_for_room(e, fl);
		return;
	}
	if (sane)
		reserve(e, l, f, mtu);
	d = lane_retain(e, fl, f, span, wire, &bad);
	if (!d) {
		if (!bad)
			wait_for_room(e, fl);
		return;
	}
	flags = d->flags;
	if (x) {
		if (f->opcode != OP_READ_REQUEST)
			prefetch_signal(e, fl);
		psn_map_note(&x->map, l);
	}
	if (!sane) {
		COUNT(e, BAD_SEQUENCE);
		l->opaque = true;
	}
	if (waits || !sane)
		record_request(e, fl, f, span, wire);
	if (l->una.psn == l->epsn.psn)
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
	step(&l->epsn, span, flags & PKT_EOM, !waits && sane);
	if (x)
		step(&x->map.asked, span, flags & PKT_EOM, !waits && sane);
	l->end = l->epsn.psn;
	if (x && waits && f->opcode == OP_READ_REQUEST)
		prefetch_asked(e, fl, f, false);
	pace_run(e, fl);
	request_accepted(e, fl, f, flags & PKT_EOM);
}

static bool far(int32_t ahead)
{
	return ahead >= JUMP_PSNS || ahead < -JUMP_PSNS - (int32_t)WINDOW_SPAN;
}

void near_request(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	int32_t ahead;

	l->requests++;
	if (l->epsn.psn == PSN_NONE) {
		fault_request(e, fl, f); /* of a lane that a former engine held */
		return;
	}
	ahead = psn_diff(f->psn, host_epsn(e, l)->psn);
	if (far(ahead)) {
		COUNT(e, GAPS);
		duplicate_jumped(e, fl, f, !far(psn_diff(l->jump_psn, host_epsn(e, l)->psn)));
		return;
	}
	if (ahead <= 0)
		l->jump_run = 0; /* it goes back to what is missing */
	if (l->state == LANE_FAULT) {
		fault_request(e, fl, f);
	} else if (ahead == 0) {
		request_in_order(e, fl, f);
	} else if (ahead < 0) {
		duplicate_request(e, fl, f);
	} else {
		COUNT(e, GAPS);
		if (l->state == LANE_OPENING) {
			duplicate_passes(fl, f);
			engine_pass(e, fl->side, f);
		} else if (duplicate_gone_on(e, fl, f))
			engine_pass(e, fl->side, f);
		else if (!l->nak_sent && !l->nak_due && !l->room_wait && l->state != LANE_DRAIN &&
			 icrc_ok(f))
			nak_send(e, fl);
	}
}

/* @f is an answer to no pending request. Where it ends what was asked again, ACKs may go on. */
void near_resp_repeated(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;

	if (l->reasked_psn == PSN_NONE || psn_add(f->psn, 1) != l->reasked_end)
		return;
	l->reasked_psn = PSN_NONE;
	ack_list(e, fl);
}

/* ---- responses from the WAN that the peer did not consume (role OPENER) ---- */

static void native_ack(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;

	/* the lane is not agreed yet, or the PSN is below the handover PSN: pass it as it is */
	if (l->state == LANE_OPENING || psn_before(f->psn, l->start)) {
		near_old_response(e, fl, f);
		return;
	}
	if (psn_before(f->psn, l->una.psn) && !psn_map_differs(e, l) && icrc_ok(f)) {
		engine_pass(e, other_port(fl->side), f); /* to a duplicate that was passed on */
		return;
	}
	/* sent before the acceptor took over; it will hear the same again and report it */
	COUNT(e, STALE_ACK);
}

void near_response(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	uint8_t blank[FRAME_MAX];
	struct read_rec *r;
	struct frame g;

	if (l->state == LANE_FAULT)
		return; /* no success after a fault */
	if (f->opcode == OP_ACK) {
		native_ack(e, fl, f);
		return;
	}
	if (psn_before(f->psn, l->start)) {
		if (!psn_map_strange(e, l))
			engine_pass(e, other_port(fl->side), f);
		return;
	}
	f = atomic_blank(l, f, &g, blank);
	if (l->reads_page != POOL_NONE) {
		if (resp_rx(e, fl, f))
			near_resp_repeated(e, fl, f);
		return;
	}
	if (!icrc_ok(f)) {
		COUNT(e, BAD_ICRC);
		return;
	}
	switch (reads_response(e, l, f, &r)) {
	case READ_STRAY:
		if (atomic_dropped(e, l, f))
			return;
		COUNT(e, STRAY_RESPONSE);
		break;
	case READ_COMPLETE:
		if (psn_after(psn_add(r->at.psn, r->span), l->told))
			l->told = psn_add(r->at.psn, r->span);
		frontier_trim(e, l);
		break;
	default:
		break;
	}
	/* the data first, then whatever it allows to be acknowledged */
	engine_tx(e, fl->side, f->data, f->len);
	if (!r)
		near_resp_repeated(e, fl, f);
	ack_list(e, fl);
}
