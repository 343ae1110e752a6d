// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Standing in for the responder, toward the near requester (roles OPENER and SINGLE).
 *
 * Requests are accepted in PSN order only. Each is verified and copied in one pass, then described
 * by a descriptor and records, and only then do the marks move past it; the link (stream_tx.c or
 * pseudo_requester.c) sends it on from the copy. ack_tx.c tells the requester how far it is
 * acknowledged, up to the frontier. See also duplicate.c and room.c.
 *
 * A request with a right ICRC whose opcode or length is out of sequence is for the responder to
 * judge: it goes there in its turn, and nothing from it on is acknowledged before that speaks.
 *
 * row: NTT-1, ENG-10, ENG-12, FAST-2, POOL-6
 */
#include "engine/announce/announce.h"
#include "engine/fault/fault.h"
#include "engine/learn/learn.h"
#include "engine/near/near_priv.h"
#include "engine/prefetch/prefetch.h"

/* Acknowledge at least every so many packets. */
#define ACK_EVERY 64

/* ---- requests ---- */

/* The next request, and what is to be known of it before it is accepted. */
struct next_request {
	const struct frame *f;
	uint32_t span;	      /* its PSNs */
	struct wire_psn wire; /* its first PSN as the responder will see it */
	bool waits;	      /* for an answer with data */
	bool sane;	      /* opcode and length fit the message that is open */
};

/* Opcode and length against the message that is open (row: ENG-10, ENG-12). */
static bool in_sequence(const struct lane *l, const struct frame *f, uint32_t mtu)
{
	uint16_t fl = f->op->flags;
	uint32_t want;

	if (l->near.msg == MSG_UNKNOWN)
		return f->payload_len <= mtu;
	if (fl & OPF_ANSWERED)
		return l->near.msg == MSG_NONE;
	if (fl & (OPF_FIRST | OPF_ONLY)) {
		if (l->near.msg != MSG_NONE)
			return false;
	} else if (l->near.msg != ((fl & OPF_WRITE) ? MSG_WRITE : MSG_SEND)) {
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
	want = (fl & (OPF_FIRST | OPF_ONLY)) ? frame_reth_length(f) : l->near.msg_left;
	if (want == MSG_LEFT_UNKNOWN && !(fl & (OPF_FIRST | OPF_ONLY)))
		return true;
	return (fl & OPF_EOM) ? f->payload_len == want : f->payload_len < want;
}

/* A message that does not fit is not acknowledged early (row: POOL-3). RETH tells its length. */
static void reserve(struct engine *e, struct lane *l, const struct frame *f, uint32_t mtu)
{
	uint64_t length, need;

	if (!(f->op->flags & OPF_WRITE) || !(f->op->flags & OPF_FIRST))
		return;
	length = frame_reth_length(f);
	need = length + (length / mtu + 1) * (f->len - f->payload_len + 16);
	if (need <= pool_log_room(e->pool, POOL_CUSTODY, &l->held.log, l->held.bytes))
		return;
	if (!psn_known(l->keeper.guard.psn))
		l->keeper.guard = l->epsn;
	l->keeper.guard_end = psn_add(l->epsn.psn, (uint32_t)((length + mtu - 1) / mtu));
}

/* @f was accepted: what waited for it is over, and an ACK may be due. */
static void request_accepted(struct engine *e, struct flow *fl, const struct frame *f, bool eom)
{
	struct lane *l = &fl->lane;

	near_spoken(e, fl);
	e->taken_at = e->now;
	l->near.nak_sent = l->near.nak_due = false;
	l->near.room_wait = false;
	l->near.room_naks = 0;
	if (reads_of(e, l))
		reads_of(e, l)->stuck = 0;
	if (l->atomic == ATOMIC_PREFETCH && reads_of(e, l))
		prefetch_atomic_seen(e, fl, f);
	if (f->ackreq || eom || ++l->near.unacked >= ACK_EVERY)
		ack_schedule(e, fl);
}

/* Add the records of a request that waits for its answer: in the order of host and of wire. */
static void record_request(struct engine *e, struct flow *fl, const struct next_request *q)
{
	const struct frame *f = q->f;
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	const struct host_mark at = host_epsn(e, l);
	struct read_range what = {0};

	if (f->reth)
		what = range_of(f);
	if (!reads_add(e, fl, f, q->span, &at, q->wire))
		return;
	if (x)
		reads_tail(e, l)->moved = x->map.asked.msn != l->epsn.msn;
	if (x && q->waits)
		fetch_add(e, fl, &what, f->opcode, q->wire, q->span, FETCH_ASKED);
	if (l->atomic && q->waits)
		atomic_asked(e, fl);
}

/* The answer to @q was asked for ahead, as @q->wire: the request itself goes no further. */
static void claim_prefetched(struct engine *e, struct flow *fl, const struct next_request *q)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);

	if (!reads_add(e, fl, q->f, q->span, &x->map.asked, q->wire))
		return;
	reads_tail(e, l)->moved = true;
	mark_step(&x->map.asked, q->span, true, false);
	request_accepted(e, fl, q->f, true);
	if (q->f->opcode == OP_READ_REQUEST)
		prefetch_asked(e, fl, q->f, true);
	pace_run(e, flow_partner(e, fl));
}

/* Returns true when @q ends here, because its answer was asked for ahead, or its ICRC is wrong. */
static bool ended_by_prefetch(struct engine *e, struct flow *fl, struct next_request *q)
{
	const struct lane_reads *x = reads_of(e, &fl->lane);
	const struct frame *f = q->f;
	bool read = f->opcode == OP_READ_REQUEST, found;

	if (!x || !x->guesses || !q->sane || (!read && f->opcode != OP_FETCH_ADD))
		return false;
	if (icrc_wrong(e, f))
		return true;
	found = read ? prefetch_claim(e, fl, f, &q->wire)
		     : prefetch_atomic_claim(e, fl, f, &q->wire);
	if (found) {
		claim_prefetched(e, fl, q);
		lane_settled(e, fl);
	}
	return found;
}

/* Whether the lane has PSNs and records for @q; the first READ of an OPENER gets its page here. */
static bool room_for_records(struct engine *e, struct flow *fl, const struct next_request *q)
{
	const struct lane *l = &fl->lane;

	/* a READ longer than the window goes alone */
	if (!psn_is(l->una.psn, l->epsn.psn) &&
	    psn_diff(psn_add(l->epsn.psn, q->span), l->una.psn) >= (int32_t)e->cfg.lane_span)
		return false;
	if ((q->waits || !q->sane) && (mq_free_count(e->reads) < 2 || over_reads(l)))
		return false;
	return !q->waits || l->role != ROLE_OPENER || reads_begin(e, fl);
}

/* Whether the rule's cap has room for @q, and the lane for its answer. */
static bool room_for_bytes(struct engine *e, struct flow *fl, const struct next_request *q)
{
	return !over_rule_cap(e, fl, q->f->len) &&
	       (!q->waits || !reads_of(e, &fl->lane) || fetch_room(e, fl, q->wire, q->span));
}

/* Verify and copy @q. Returns its descriptor, or NULL when it was dropped. */
static struct pkt *retain(struct engine *e, struct flow *fl, const struct next_request *q)
{
	struct pkt *d = NULL;
	bool bad = false;

	if (room_for_bytes(e, fl, q)) {
		if (q->sane)
			reserve(e, &fl->lane, q->f, flow_mtu(fl));
		d = lane_retain(e, fl, q->f, q->span, q->wire, &bad);
	}
	if (bad) /* damaged, or sealed by other appliances: hosts drop it, those open it */
		engine_pass(e, NULL, fl->side, q->f);
	if (!bad)
		flow_macs(e, fl, q->f); /* without room, too: nothing may arrive elsewhere */
	if (!d && !bad)
		wait_for_room(e, fl);
	return d;
}

/* Note which message is open behind @q, and how much of it is left; @eom: @q ends its message. */
static void follow_message(struct lane *l, const struct next_request *q, bool eom)
{
	const struct frame *f = q->f;
	uint16_t flags = f->op->flags;

	if (flags & OPF_WRITE && q->sane) {
		if (flags & (OPF_FIRST | OPF_ONLY))
			l->near.msg_left = frame_reth_length(f);
		if (l->near.msg_left != MSG_LEFT_UNKNOWN)
			l->near.msg_left -= f->payload_len;
	}
	if (eom)
		l->near.msg = MSG_NONE;
	else
		l->near.msg = (flags & OPF_WRITE) ? MSG_WRITE : MSG_SEND;
}

/* Whether the responder may come to know other numbers: then repeats must be known here. */
static bool may_differ(const struct lane *l, const struct lane_reads *x)
{
	return l->ahead || l->atomic == ATOMIC_PREFETCH || x->announce_page != POOL_NONE;
}

/* Record @q, which was retained, and move the marks past it; @eom: it ends its message. */
static void count_in(struct engine *e, struct flow *fl, const struct next_request *q, bool eom)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	bool ackable = !q->waits && q->sane;
	const struct wire_mark next = l->epsn;

	if (x) {
		/* what is no READ may tell the other side of changed data */
		if (q->f->opcode != OP_READ_REQUEST)
			fetch_drop_guesses(e, fl, &x->info.flushed_signal);
		psn_map_note(e, &x->map, &next);
		if (!q->waits && may_differ(l, x))
			reads_note_print(x, q->f);
	}
	if (!q->sane) {
		COUNT(e, BAD_SEQUENCE);
		l->opaque = true;
	}
	l->near.masked |= q->f->opcode == OP_MASKED_CMP_SWAP || q->f->opcode == OP_MASKED_FETCH_ADD;
	if (q->waits || !q->sane)
		record_request(e, fl, q);
	if (psn_is(l->una.psn, l->epsn.psn))
		l->progress = e->now;
	follow_message(l, q, eom);
	mark_accepted(l, q->span, eom, ackable);
	if (x)
		mark_step(&x->map.asked, q->span, eom, ackable);
	mark_held(l, l->epsn.psn);
	(void)lane_must(e, l, psn_past(l->end, l->una.psn) <= SPAN_MAX || l->held.packets == 1,
			l->una.psn.v, l->end.v);
	learn_held(fl, q->f);
	if (x && q->waits && q->f->opcode == OP_READ_REQUEST)
		prefetch_asked(e, fl, q->f, false);
	if (l->role == ROLE_OPENER && q->sane) {
		announce_asked(e, fl, q->f, q->wire);
		if (q->f->op->flags & OPF_SEND)
			announce_capsule(e, fl, q->f, q->wire);
	}
	window_seen(l, host_epsn(e, l).psn);
	pace_run(e, fl);
	request_accepted(e, fl, q->f, eom);
}

/* Take @q into custody, unless there is no room for it or its answer was asked for ahead. */
static void accept_request(struct engine *e, struct flow *fl, struct next_request *q)
{
	const struct pkt *d;

	if (pool_pressed(e, &fl->lane) || span_pressed(e, &fl->lane))
		send_cnp(e, fl);
	if (!room_for_records(e, fl, q)) {
		wait_for_room(e, fl);
	} else if (!ended_by_prefetch(e, fl, q)) {
		d = retain(e, fl, q);
		if (d)
			count_in(e, fl, q, d->flags & PKT_EOM);
	}
}

/* A READ that this lane cannot hold passes by, where the responder knows the same PSNs. */
static void let_read_pass(struct engine *e, struct flow *fl, const struct frame *f,
			  enum lane_reason why)
{
	struct lane *l = &fl->lane;

	if (psn_map_differs(e, l)) {
		lane_fault(e, fl, why, AETH_NAK_OPERATION);
		return;
	}
	lane_drain(e, fl, why);
	if (l->role == ROLE_NONE)
		engine_pass(e, fl, fl->side, f);
}

static void request_in_order(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	struct next_request q = {
		.f = f,
		.span = frame_span(f, flow_mtu(fl)),
		.wire = l->epsn.psn,
		.waits = f->op->flags & OPF_ANSWERED,
		.sane = in_sequence(l, f, flow_mtu(fl)),
	};

	if (l->state == LANE_OPENING)
		l->atomics |= (f->op->flags & OPF_ATOMIC) != 0; /* it passes by, too */
	if (l->state == LANE_DRAIN && !lane_carries_on(l))
		return; /* the requester asks again, and WATCH will pass it */
	if (q.span > SPAN_MAX) {
		let_read_pass(e, fl, f, REASON_LONG_READ);
	} else if (l->no_mtu && frame_span(f, PATH_MTU_MIN) > 1) {
		let_read_pass(e, fl, f, REASON_PATH_MTU);
	} else if (l->state == LANE_OPENING && (pool_pressed(e, l) || span_pressed(e, l))) {
		/* nothing is promised yet: this is no time to begin */
		lane_send_rest(e, fl);
		lane_close(e, fl, REASON_POOL_FULL, true);
		engine_pass(e, fl, fl->side, f);
	} else {
		accept_request(e, fl, &q);
	}
}

void near_request(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	int32_t ahead;

	l->count.requests++;
	if (!psn_known(l->epsn.psn)) {
		fault_request(e, fl, f); /* of a lane that a former engine held */
		return;
	}
	if (l->gone && l->state != LANE_FAULT)
		return; /* another owner of the number: it asks again when this is over */
	ahead = psn_diff(host_psn_of(f), host_epsn(e, l).psn);
	if (near_far(e, l, host_psn_of(f)) && !(l->state == LANE_FAULT && l->fault.renumbers)) {
		COUNT(e, GAPS);
		incarnation_jumped(e, fl, f, !near_far(e, l, l->rounds.psn));
		return;
	}
	if (ahead == 0)
		l->rounds.run = 0; /* it goes back to what is missing */
	if (l->state == LANE_FAULT) {
		fault_request(e, fl, f);
	} else if (ahead == 0) {
		request_in_order(e, fl, f);
	} else if (ahead < 0) {
		duplicate_request(e, fl, f);
	} else if (!icrc_ok(f)) {
		COUNT(e, BAD_ICRC);
		engine_pass(e, NULL, fl->side, f);
	} else {
		COUNT(e, GAPS);
		if (l->state == LANE_OPENING) {
			/* The peer may have agreed already: what is not in our hands must not get
			 * into its stream. It may not be our host's, which repeats. */
			return;
		} else if (incarnation_gone_on(e, fl, f))
			engine_pass(e, fl, fl->side, f);
		else if (!l->near.nak_sent && !l->near.nak_due && !l->near.room_wait &&
			 (l->state == LANE_HELD || lane_carries_on(l)) && icrc_ok(f))
			nak_send(e, fl);
		else if (l->near.room_wait && window_grows(l, host_psn_of(f)) && icrc_ok(f))
			window_seen(l, host_psn_of(f));
	}
}

/* ---- responses from the WAN that the peer did not consume ---- */

/* A response to a request from before the handover passes to the requester; learn from it. */
void near_old_response(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	uint8_t s = f->aeth ? frame_aeth_syndrome(f) : 0;
	/* host and wire number alike there, as checked first */
	struct wire_psn next = psn_add(wire_psn_of(f), 1);
	struct wire_mark m = {.psn = wire_psn_of(f), .msn = f->aeth ? frame_aeth_msn(f) : 0};

	if (psn_map_strange(e, l))
		return; /* it bears numbers that the host does not know */
	engine_pass(e, fl, other_port(fl->side), f);
	if (lane_keeps(l) && f->opcode != OP_ACK)
		resp_repeated(e, fl, psn_same_host(wire_psn_of(f)));
	if (!lane_keeps(l) || f->opcode != OP_ACK || !icrc_ok(f))
		return;
	if (aeth_is_ack(s) && !psn_before(next, l->start)) {
		/* an ACK of what the host cannot have sent is forged */
		if (psn_after(next, lane_sent_before(l)))
			return;
		psn_raise(&l->near.told, psn_same_host(next));
		l->start_acked = true;
		flow_headers(e, fl, f);
		ack_list(e, fl);
	} else if (s == AETH_NAK_SEQ && !l->start_acked && psn_before(wire_psn_of(f), l->start) &&
		   psn_diff(l->start, wire_psn_of(f)) < HOST_WINDOW) {
		uint8_t credit = l->credit;

		lane_close(e, fl, REASON_EARLIER_LOSS, true);
		flow_open_at(fl, e->now);
		mark_una(l, &m);
		l->una_sure = true;
		l->credit = credit;
	} else if (l->start_acked && psn_before(wire_psn_of(f), l->una.psn)) {
		owner_answered(e, fl, f);
	}
}

static void native_ack(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;

	/* the lane is not agreed yet, or the PSN is below the handover PSN: pass it as it is */
	if (l->state == LANE_OPENING || lane_asked_below(wire_psn_of(f), l->start)) {
		near_old_response(e, fl, f);
		return;
	}
	if (lane_asked_below(wire_psn_of(f), l->una.psn) && !psn_map_differs(e, l) && icrc_ok(f)) {
		engine_pass(e, fl, other_port(fl->side), f); /* to a duplicate that was passed on */
		owner_answered(e, fl, f);
		return;
	}
	if (owner_of_answer(e, fl, f) != VERDICT_SAME)
		return;
	/* sent before the acceptor took over; it will hear the same again and report it */
	COUNT(e, STALE_ACK);
}

void near_response(struct engine *e, struct flow *fl, const struct frame *f, enum engine_port from)
{
	struct lane *l = &fl->lane;
	const struct lane_reads *x = reads_of(e, l);
	struct host_psn passed;

	(void)from;
	if (l->state == LANE_FAULT)
		return; /* no success after a fault */
	if (f->opcode == OP_ACK) {
		native_ack(e, fl, f);
		return;
	}
	/* start follows una, which may have left a READ behind whose answer is missing */
	if (lane_asked_below(wire_psn_of(f), l->start) &&
	    !(x && resp_awaited(e, x, wire_psn_of(f)))) {
		near_old_response(e, fl, f);
		return;
	}
	if (x) {
		passed = resp_rx(e, fl, f);
		if (psn_known(passed))
			resp_repeated(e, fl, passed);
		return;
	}
	/* no READ or ATOMIC was ever held: the answer to one that passed before, or to nothing */
	if (icrc_wrong(e, f))
		return;
	COUNT(e, STRAY_RESPONSE);
	if (owner_of_answer(e, fl, f) != VERDICT_SAME || !lane_may_await(e, l, wire_psn_of(f)))
		return;
	if (f->aeth)
		lane_credit(l, frame_aeth_syndrome(f), true);
	engine_tx(e, fl, fl->side, f->data, f->len);
}
