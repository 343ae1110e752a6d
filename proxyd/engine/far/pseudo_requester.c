// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * In the requester's stead, toward the responder: the acceptor over its LAN, or alone over the WAN.
 *
 * What RC gives a requester is used as spec: IBTA 9.7.5 and spec: IBTA 9.7.7 lay it down: packets
 * are sent in PSN order; a cumulative ACK releases exactly what it covers; an ACK below una or at
 * or above nxt changes nothing; a sequence NAK at p releases below p and resends from p; RNR waits
 * by its own timer and resumes at p; a fatal NAK ends it. An ACK past an unanswered READ means that
 * the response was lost: release below the READ, ask it again.
 *
 * The loss timer resends the oldest packet only, as a probe: the ACK that follows tells how far the
 * responder is, and what was sent before the probe and is not covered by it is lost, so sending
 * resumes there. (A sequence NAK says the same, but only once.) A near responder that is only slow
 * answers what it was sent before, too, and does not like to get all of it again: an ACK that it
 * may have sent without the probe says nothing about what comes after it. The budget of the timer
 * is time without progress (responder_timeout), so RNR waits and long outages of a busy responder
 * do not add up. RNR has a budget of its own: rnr_timeout for the same packet.
 *
 * row: NTT-2, ENG-3, ENG-4, ENG-5, ENG-7, ENG-8, ENG-16
 */
#include "engine/announce/announce.h"
#include "engine/far/far_priv.h"
#include "engine/link/order.h"
#include "engine/owner/owner.h"
#include "engine/reads/reads.h"

/* A queue pair that both hosts have said to be down is offered the rest so long without progress,
 * and asked that often; so is one whose opener has no such lane any more, and has not lost it: a
 * responder that comes back later with the same number may well have another owner. */
#define GONE_NS	     (500 * NSEC_PER_MSEC)
#define GONE_BACKOFF 2
/* One that is silent for so long has its host asked for; and is gone when it has been silent for so
 * long, and to so many repeats, while its host has answered. */
#define ASK_HOST_NS  (1 * NSEC_PER_SEC)
#define GONE_SURE_NS (4 * NSEC_PER_SEC)
#define GONE_TRIES   4

/* @d may bear another number to the responder than on the wire (announce/). @ask: for an ACK. */
static bool tx(struct engine *e, struct flow *fl, const struct pkt *d, bool ask)
{
	struct lane_announce *y = announce_of(e, &fl->lane);
	const uint8_t *data = lane_packet(e, d);
	uint8_t out[FRAME_MAX];
	struct frame f;

	if (y && y->far.numbered && frame_parse(data, d->len, &f) == FRAME_OK) {
		uint32_t psn = psn_to_far(&y->far, wire_psn_of(&f)).v;

		if (psn != f.psn) {
			psn_map_frame(out, &f, psn, PSN_NONE);
			data = out;
		}
	}
	if (ask && frame_parse(data, d->len, &f) == FRAME_OK)
		data = icrc_with_ackreq(out, &f);
	return !engine_tx_kept(e, fl, other_port(fl->side), data, d->len);
}

/* Whether the host has asked for no answer to @d. */
static bool unasked(const struct pkt *d)
{
	return !(d->flags & (PKT_ACKREQ | PKT_ANSWERED));
}

/* Whether the packet @d must ask for an ACK, for what comes after it at @next may wait for that:
 * a barrier stands there, or the window ends with too little in it that asks. */
static bool must_ask(const struct engine *e, const struct flow *fl, const struct pkt *d,
		     struct wire_psn next)
{
	return unasked(d) &&
	       ((fl->lane.ordered && order_held(e, fl, next)) || far_unasked(fl, next));
}

/* The same of a probe. Over the WAN it is sent for its answer only. */
static bool probe_asks(const struct engine *e, const struct flow *fl, const struct pkt *d)
{
	return (fl->lane.role == ROLE_SINGLE && unasked(d)) || must_ask(e, fl, d, fl->lane.nxt.psn);
}

/* SINGLE: the READ @d is sent again, and its host has the beginning of the answer: the rest is
 * asked for, as a host does. A link that has no room for all of a long answer at once would drop
 * the end of it for ever. Returns false when all of it is to be asked for. */
static bool rest_of_read(struct engine *e, struct flow *fl, const struct pkt *d, uint8_t *out,
			 uint32_t *len)
{
	struct template t = {0};
	struct build_spec s = {.t = &t, .opcode = OP_READ_REQUEST};
	const struct read_rec *r;
	struct frame f;

	if (fl->lane.role != ROLE_SINGLE || !(d->flags & PKT_SENT) || !(d->flags & PKT_ANSWERED) ||
	    frame_parse(lane_packet(e, d), d->len, &f) != FRAME_OK || f.opcode != OP_READ_REQUEST)
		return false;
	r = reads_find_wire(e, &fl->lane.reads, wire_psn_of(&f));
	if (!r || r->done || r->wire.v != f.psn || !r->got)
		return false;
	template_learn(&t, &f);
	s.dqpn = f.dqpn;
	s.ackreq = f.ackreq;
	s.psn = psn_add(r->wire, r->got).v;
	s.va = r->what.va + (uint64_t)r->got * flow_mtu(fl);
	s.rkey = r->what.rkey;
	s.length = r->what.length - r->got * flow_mtu(fl);
	*len = build_packet(out, &s);
	return true;
}

static bool send(struct engine *e, struct flow *fl, struct pkt *d, bool ask)
{
	struct lane *l = &fl->lane;
	uint8_t out[FRAME_MAX];
	uint32_t len;

	if (rest_of_read(e, fl, d, out, &len) ? engine_tx(e, fl, other_port(fl->side), out, len)
					      : !tx(e, fl, d, ask))
		return false;
	if (l->role == ROLE_SINGLE)
		pace_sent(e, d->len);
	stream_sent(e, fl, &l->held, d, l->role == ROLE_SINGLE);
	return true;
}

/* SINGLE: whether the responder has as many of them as it may have. */
static bool atomic_depth_full(struct engine *e, const struct flow *fl)
{
	const struct lane *l = &fl->lane;
	uint32_t depth = flow_read_depth(e, fl), n = 0;

	if (l->role != ROLE_SINGLE || !l->atomic)
		return false;
	if (!depth)
		depth = l->single.most ? l->single.most : 1;
	for (uint32_t id = l->reads.head; id != MQ_NONE; id = mq_next(e->reads, id)) {
		if (!psn_before(read_at(e, id)->wire, l->nxt.psn))
			break;
		if (++n >= depth)
			return true;
	}
	return false;
}

/* Whether an ATOMIC waits for its answer that was given here, or may have been by the opener. Its
 * host may have held back what comes next until then (a fence), and a responder executes a SEND or
 * WRITE without waiting for an ATOMIC (spec: IBTA 1.6 10.8.3.3). row: ENG-18 */
static bool behind_atomic(struct engine *e, const struct lane *l)
{
	mq_each (struct read_rec, r, e->reads, &l->reads) {
		if (!psn_before(r->wire, l->nxt.psn))
			break;
		if (!r->done && opcode_info(r->opcode)->flags & OPF_ATOMIC &&
		    (r->made || l->role != ROLE_SINGLE))
			return true;
	}
	return false;
}

/* Returns true when there is more to send but it had to stop. */
bool far_run(struct engine *e, struct flow *fl, uint32_t quantum)
{
	struct lane *l = &fl->lane;
	struct wire_psn before = l->nxt.psn;
	uint32_t budget = quantum;
	enum announce_turn turn = ANNOUNCE_SEND;
	bool stopped = false, ask, asked = far_asked(l);
	struct pkt was;

	if (l->rnr_wait || l->refusal || l->state == LANE_FAULT)
		return false;
	while (!(stopped = announce_run(e, fl)) && psn_before(l->nxt.psn, l->epsn.psn)) {
		struct pkt *d = lane_pkt(e, l, l->nxt.psn);

		if (!lane_must(e, l, !psn_before(l->nxt.psn, l->una.psn) && (!d || d->span),
			       l->nxt.psn.v, l->una.psn.v))
			break;
		if (d)
			turn = announce_turn(e, fl, d);
		if (d && turn == ANNOUNCE_SKIP) {
			announce_sent(e, l, d, true);
			mark_sent(l, d->span, true, false);
			continue;
		}
		if (!d || turn == ANNOUNCE_WAIT || far_flight_full(fl) ||
		    (l->ordered && order_held(e, fl, l->nxt.psn)))
			break;
		if (d->flags & PKT_ANSWERED
			    ? resp_depth_left(e, fl, l->nxt.psn) <= 0 || atomic_depth_full(e, fl)
			    : behind_atomic(e, l))
			break; /* its turn comes with the end of a response */
		if (far_paced(e, fl))
			break;
		ask = must_ask(e, fl, d, psn_add(l->nxt.psn, d->span));
		was = *d; /* as in stream_tx_run() */
		if (!budget || (l->role == ROLE_SINGLE && !pace_may_send(e)) ||
		    !send(e, fl, d, ask)) {
			stopped = true;
			break;
		}
		d->asked = ask;
		far_pay(e, l);
		budget -= was.len < budget ? was.len : budget;
		announce_sent(e, l, &was, false);
		mark_sent(l, was.span, was.flags & PKT_EOM, !(was.flags & PKT_ANSWERED));
		if (ask || was.flags & (PKT_ACKREQ | PKT_ANSWERED))
			l->far.ackreq_end = l->nxt.psn;
	}
	if (!psn_is(l->nxt.psn, before)) {
		if (psn_is(l->una.psn, before))
			l->progress = e->now; /* the oldest begins to wait now */
		mark_high(l, l->nxt.psn);
		(void)lane_marks_must(e, l);
		if (l->role == ROLE_SINGLE)
			ack_list(e, fl); /* a frontier that waits for the WAN */
	}
	/* also when nothing could be sent: the response is still awaited that what follows has to
	 * wait for. Before something asked for an ACK none could come */
	if (asked != far_asked(l) || !timer_armed(e, fl, TIMER_LOSS))
		far_arm(e, fl);
	far_settle_absorbed(e, fl);
	return stopped;
}

/* The request at @at, or the one before it: the responder must not execute just one request more
 * than it keeps answers of. It would forget the answer to the oldest, which has not come here. What
 * is behind that one draws a NAK, as long as the responder remembers the oldest. */
static struct wire_psn keeps_oldest(struct engine *e, struct flow *fl, struct wire_psn at)
{
	struct lane *l = &fl->lane;
	const struct pkt *d = lane_pkt(e, l, at);
	const struct read_rec *r;

	if (!d || !(d->flags & PKT_ANSWERED) || resp_depth_left(e, fl, at))
		return at;
	at = psn_sub(at, 1);
	r = reads_find_wire(e, &l->reads, at);
	return r ? r->wire : at;
}

/*
 * The READ at @psn, the oldest, was asked again. Should it remain without a response, then
 * something from beyond it tells how far the responder is, whether it is executed in its turn or
 * draws a NAK: the newest request, then, as responders speak of a gap once, one after the other.
 */
static void probe_ahead(struct engine *e, struct flow *fl, struct wire_psn psn)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	struct read_rec *r = reads_head(e, l), *last = reads_tail(e, l);
	struct wire_psn at = psn_sub(l->epsn.psn, 1);
	struct pkt *d;

	if (l->role != ROLE_ACCEPTOR || !r || !psn_is(r->wire, psn) || r->absorbed)
		return;
	far_asks_again(l, r, true);
	if (r->tries < ASKED_IN_VAIN)
		return;
	if (x && r->tries >= 2 * ASKED_IN_VAIN) {
		at = psn_in(x->probe, psn, l->epsn.psn) ? psn_add(x->probe, 1)
							: psn_add(psn, r->span);
		l->backoff = 0;
		if (!lane_pkt_next(e, l, at, l->epsn.psn, &at))
			at = psn;
		x->probe = at;
	} else if (psn_in(at, last->wire, psn_add(last->wire, last->span))) {
		at = last->wire;
	}
	if (announce_numbered(e, l))
		at = announce_last(e, l, psn); /* what was not sent has no number yet */
	at = keeps_oldest(e, fl, at);
	d = lane_pkt(e, l, at);
	if (!d || psn_is(at, psn) || (l->ordered && order_held(e, fl, at)))
		return;
	if (!announce_numbered(e, l))
		mark_high(l, l->epsn.psn);
	send(e, fl, d, false);
}

/* Nothing that was sent asks for an answer, and what may ask has its turn yet to come: beside many
 * others, or at a port without room, that may take longer than any timer. */
static bool waits_for_turn(const struct lane *l)
{
	return l->listed.run && !l->probing && !far_asked(l);
}

/* When the timer of a lane is due that waits for answers to READs: a timeout after the latest of
 * them. One READ may take many times the round trip, and asked again it would be said once more. */
static uint64_t answers_until(struct engine *e, const struct lane *l)
{
	return reads_head(e, l) || announce_waits(e, l) ? l->progress + lane_rto_ns(l) : 0;
}

/* Nobody is left who would hear of an answer, or was told of what is offered. */
static bool for_nobody(const struct lane *l)
{
	return l->gone || (l->state == LANE_DRAIN && l->reason == REASON_NONE);
}

/* The responder has been silent for some time. Its host is asked whether it is there: if it is, the
 * queue pair was destroyed, or is in the error state, and will never answer. */
static bool responder_gone(struct engine *e, struct flow *fl)
{
	const struct flow *back = flow_partner(e, fl);
	const struct lane *l = &fl->lane;
	uint64_t heard = back && back->seen > l->progress ? back->seen : l->progress;

	if (e->now - heard < ASK_HOST_NS)
		return false;
	if (l->present == PRESENT_MAX && e->now - heard >= GONE_SURE_NS && l->backoff >= GONE_TRIES)
		return true;
	host_ask(e, fl);
	return false;
}

void far_timeout(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	uint64_t until = answers_until(e, l);
	struct wire_psn psn;
	struct pkt *d;

	if ((psn_is(l->una.psn, l->nxt.psn) && !announce_waits(e, l)) || l->rnr_wait ||
	    l->refusal || l->state == LANE_FAULT)
		return;
	if (until > e->now) {
		timer_arm(e, fl, TIMER_LOSS, until);
		return;
	}
	if (waits_for_turn(l)) {
		far_arm(e, fl);
		return;
	}
	announce_overdue(e, fl);
	l->count.timeouts++;
	COUNT(e, TIMEOUTS);
	if (e->now - l->progress > (for_nobody(l) ? GONE_NS : e->cfg.responder_timeout_ns)) {
		lane_refused(e, fl, l->una.psn, AETH_NAK_OPERATION, REASON_TIMEOUT);
		return;
	}
	if (responder_gone(e, fl)) {
		lane_refused(e, fl, l->una.psn, AETH_NAK_OPERATION, REASON_DISCONNECT);
		return;
	}
	if (l->backoff < (for_nobody(l) ? GONE_BACKOFF : 12))
		l->backoff++;
	if (l->role == ROLE_SINGLE)
		far_lost_one(e, l); /* a near responder may just be slow: its answer tells */
	d = lane_pkt_next(e, l, l->una.psn, l->nxt.psn, &psn);
	if (d && send(e, fl, d, probe_asks(e, fl, d)))
		l->probing = true;
	if (d) /* else READs of ours are all that waits */
		probe_ahead(e, fl, psn);
	far_arm(e, fl);
}

/* The auxiliary timer: the RNR delay is over, or a refusal must be told again. */
void far_rnr_over(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	if (l->refusal && l->role == ROLE_ACCEPTOR) {
		progress_due(e, fl, true);
		timer_arm(e, fl, TIMER_AUX, e->now + 100 * NSEC_PER_MSEC);
		return;
	}
	l->rnr_wait = l->owner.held_back = false;
	if (owner_judge(e, fl, EVIDENCE_SILENCE) == VERDICT_OTHER)
		return;
	pace_run(e, fl);
}
