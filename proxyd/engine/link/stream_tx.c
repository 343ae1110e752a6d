// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The sending end of a stream: requests in custody, until the far appliance has them (role OPENER).
 *
 * Packets go out in PSN order as pacing and the peer's room allow; retransmissions go before new
 * ones. The peer reports what is missing (report.h), and goes on to report while something is;
 * loss.c judges which of the missing packets are lost. What it has refused is sent again at once
 * (row: FAST-1).
 *
 * A lost packet is noticed when a later one arrives. Nothing comes after the tail of a burst, so a
 * timer repairs it, a little more than a round trip after the latest progress: a few packets are
 * sent again at once, of many only the last one, whose arrival makes the peer report what is
 * missing. When the timer expires without progress it backs off, and sends the oldest packet that
 * the peer has not reported; the budget is peer_timeout, and only progress renews it. A report that
 * comes after silence shows as lost everything that had time to arrive before it and did not.
 *
 * What the peer has is not released: only a true ACK of the responder releases custody, since the
 * peer may lose its memory at any time. Then all from the last true ACK on is sent again.
 *
 * row: ENG-4, FAST-1
 */
#include "engine/announce/announce.h"
#include "engine/core/roles.h"
#include "engine/fault/fault.h"
#include "engine/link/link.h"
#include "engine/reads/reads.h"

/* A peer that answers, but for so long does not report on a lane that waits, has lost that lane. */
#define DEAF_NS		(10 * NSEC_PER_SEC)
/* A tail of so many PSNs is sent again as a whole: more, with all reports, is an outage. */
#define TAIL_PSNS	32u
/* What costs little to be sent twice. */
#define TWICE_BYTES	256u
/* What the peer says nothing of for so long, after so many timeouts, does not reach it. */
#define SILENT_TIMEOUTS 2u
#define SILENT_US	1000000u
#define UNHEARD_US	200000u
/* One that its host used less long ago keeps its place at the peer. */
#define PLACE_NS	(5 * NSEC_PER_SEC)

static uint64_t patience_ns(const struct engine *e, const struct lane *l)
{
	/* a first timeout comes early, unless only the responder's ACK is missing */
	if (l->rtt.srtt_us && !l->backoff && psn_before(l->reached, l->nxt.psn))
		return rtt_capped_us(&l->rtt, loss_overdue_us(e, l)) * NSEC_PER_USEC;
	return lane_rto_ns(l);
}

/* The oldest packet under way at or after *@from not reported by the peer; *@from: its place. */
static struct pkt *oldest(struct engine *e, const struct lane *l, struct wire_psn *from)
{
	struct wire_psn psn;

	*from = psn_after(l->reached, l->una.psn) ? l->reached : l->una.psn;
	return psn_before(*from, l->nxt.psn) ? lane_pkt_next(e, l, *from, l->nxt.psn, &psn) : NULL;
}

/* How long to wait from now on for news of the oldest packet under way: reports of others, which
 * came after it was sent, are no news of it. But the round trip may have become longer. */
static uint64_t wait_ns(struct engine *e, const struct lane *l)
{
	uint64_t patience = patience_ns(e, l), waited;
	struct wire_psn from;
	struct pkt *d = l->reopen || l->backoff ? NULL : oldest(e, l, &from);

	if (!d || !(d->flags & PKT_SENT) || (d->flags & PKT_LOST))
		return patience;
	waited = (uint64_t)(now_us(e) - d->xmit) * NSEC_PER_USEC;
	return MAX(waited < patience ? patience - waited : 0, patience / 8);
}

static void arm(struct engine *e, struct flow *fl)
{
	/* also when the peer has no room, and nothing is under way: its next report may get lost */
	if (psn_is(fl->lane.una.psn, fl->lane.nxt.psn) &&
	    psn_is(fl->lane.nxt.psn, fl->lane.epsn.psn))
		timer_cancel(e, fl, TIMER_LOSS);
	else
		timer_arm(e, fl, TIMER_LOSS, e->now + wait_ns(e, &fl->lane));
}

/* Storage commands, the target's READs and its responses are small, and each that is lost holds up
 * all behind it for a round trip. While packets get lost, those that were sent in this turn, from
 * @psn on, go a second time at once: whoever has the first drops it. */
static void send_twice(struct engine *e, struct flow *fl, struct wire_psn psn)
{
	struct lane *l = &fl->lane;
	struct pkt *d;

	if (!announce_lossy(e, fl))
		return;
	while (psn_before(psn, l->nxt.psn) && (d = lane_pkt_next(e, l, psn, l->nxt.psn, &psn))) {
		psn = psn_add(psn, d->span);
		if (d->len > TWICE_BYTES)
			continue;
		if (stream_tx_pkt(e, fl, d, PORT_WAN))
			return;
		pace_sent(e, d->len);
		COUNT(e, SENT_TWICE);
	}
}

bool stream_tx_run(struct engine *e, struct flow *fl, uint32_t quantum)
{
	struct lane *l = &fl->lane;
	struct wire_psn before = l->nxt.psn;
	enum engine_port to = other_port(fl->side);
	uint32_t budget = quantum;
	bool idle = psn_is(l->nxt.psn, l->una.psn), stopped;
	/* Read before it is sent: that writes a part of it, and a read of more would wait until the
	 * copy of the packet has left the store buffer. */
	struct pkt was;

	if (l->state == LANE_FAULT || l->reopen || (l->ordered && l->state == LANE_OPENING))
		return false; /* until the peer holds it back, it would overtake others */
	stopped = l->held.lost &&
		  !stream_send_lost(e, fl, &l->held, l->una.psn,
				    psn_before(l->opener.room, l->nxt.psn) ? l->opener.room
									   : l->nxt.psn,
				    to, &budget);
	while (!stopped && psn_before(l->nxt.psn, l->epsn.psn) &&
	       psn_before(l->nxt.psn, l->opener.room)) {
		struct pkt *d = lane_pkt(e, l, l->nxt.psn);

		if (!lane_must(e, l, !psn_before(l->nxt.psn, l->una.psn) && (!d || d->span),
			       l->nxt.psn.v, l->una.psn.v))
			break;
		if (!d)
			break; /* acknowledged, and released, before its first transmission */
		if (ahead_tell(e, fl))
			continue;
		was = *d;
		if (!budget || !pace_may_send(e) || !stream_send(e, fl, &l->held, d, to)) {
			stopped = true;
			break;
		}
		budget -= was.len < budget ? was.len : budget;
		mark_sent(l, was.span, was.flags & PKT_EOM, !(was.flags & PKT_ANSWERED));
	}
	if (!psn_is(l->nxt.psn, before)) {
		send_twice(e, fl, before);
		if (idle) {
			l->progress = e->now;
			loss_trail(e, l);
		}
		mark_high(l, l->nxt.psn);
		(void)lane_marks_must(e, l);
		/* so far only the responder's ACK was waited for, longer */
		if (idle || (psn_is(l->reached, before) && !l->backoff) ||
		    !timer_armed(e, fl, TIMER_LOSS))
			arm(e, fl);
		ack_list(e, fl); /* the frontier may have waited for this transmission */
		order_accepted(e, fl);
	} else if (idle && !stopped && psn_before(l->nxt.psn, l->epsn.psn) &&
		   !timer_armed(e, fl, TIMER_LOSS)) {
		arm(e, fl);
	}
	return stream_parity_tx(e, fl, fl, &l->held, l->opener.reached_hi, l->nxt.psn,
				psn_past(l->epsn.psn, l->nxt.psn)) ||
	       stopped;
}

/* ---- what the peer tells ---- */

/*
 * Whether the report @r can be true: what arrived in order lies within what the host can have sent.
 * (That may be more than we accepted or sent, since while the lane was opening every packet passed:
 * those that waited here for their turn, too, and those that followed a packet that we missed.) Of
 * @hi nothing is demanded: somebody else's packet may lie there, at a peer that does not check.
 * Then what lies beyond what we have is not counted (loss.c).
 */
static bool sane(const struct lane *l, const struct report *r)
{
	if (psn_after(r->una, r->cum) || psn_before(r->hi, r->cum) ||
	    psn_diff((struct wire_psn){r->cum}, l->epsn.psn) > HOST_WINDOW)
		return false;
	if (psn_diff(r->room, r->cum) < 0 || psn_diff(r->room, r->cum) > (int32_t)WINDOW_SPAN)
		return false;
	return gaps_sane(r);
}

/* Whether the true ACK of @r is where a packet begins: a READ has many PSNs, and one answer. */
static bool una_begins_packet(struct engine *e, const struct lane *l, const struct report *r)
{
	const struct wire_psn una = {r->una};

	return !psn_after(una, l->una.psn) || !psn_before(una, l->end) || lane_pkt(e, l, una);
}

/* Whether the report @r is news of the lane, and can be true. */
static bool believed(struct engine *e, struct flow *fl, const struct report *r)
{
	struct lane *l = &fl->lane;

	/* the newest wins; a report from before a resumption is out of date */
	if (!l->accepted || l->reopen ||
	    (l->report_heard && (int32_t)(r->seq - l->report_seq) <= 0))
		return false;
	/* Who waits for what is released has lost its memory of the lane, and would not know its
	 * generation. One that says nothing better is as good as silent (stream_tx_timeout()). */
	if (psn_before((struct wire_psn){r->cum}, l->una.psn) || !sane(l, r) ||
	    !una_begins_packet(e, l, r)) {
		COUNT(e, BAD_REPORT);
		return false;
	}
	l->opener.reported_us = now_us(e);
	if (psn_diff((struct wire_psn){r->hi}, l->epsn.psn) > HOST_WINDOW)
		COUNT(e, BAD_REPORT); /* the rest of it may be true */
	l->report_seq = r->seq;
	l->report_heard = true;
	return true;
}

/* The peer has no place left for others. Without the lane it can give up this one. */
static bool gives_place(struct engine *e, struct flow *fl)
{
	if (e->now - fl->seen < PLACE_NS || role_of(e, &fl->lane)->owes(e, fl))
		return false;
	lane_close(e, fl, REASON_IDLE, true);
	return true;
}

/* What the report @r says of the lane's end, and of a refusal. Returns whether the lane goes on. */
static bool goes_on(struct engine *e, struct flow *fl, const struct report *r)
{
	if (!r->refusal && (r->reason == REASON_OPERATOR || r->reason == REASON_DISCONNECT)) {
		fl->offered = 0; /* it would refuse the next lane */
		lane_drain(e, fl, r->reason);
		if (fl->lane.role != ROLE_OPENER)
			return false;
	}
	if (!r->refusal && r->reason == REASON_IDLE && gives_place(e, fl))
		return false;
	if (r->refusal) {
		lane_refused(e, fl, (struct wire_psn){r->refusal_psn}, r->refusal,
			     r->reason ? r->reason : REASON_NAK);
		return false;
	}
	return true;
}

void stream_tx_progress(struct engine *e, struct flow *fl, const struct report *r)
{
	struct lane *l = &fl->lane;
	struct wire_mark una = {.psn = {r->una}, .msn = r->una_msn, .ackable = r->una_ackable};
	struct wire_psn cum = {r->cum};
	bool progress, had = psn_after(l->reached, l->una.psn);
	uint32_t lost;

	if (!believed(e, fl, r))
		return;
	if (psn_after(cum, l->epsn.psn))
		cum = l->epsn.psn;
	progress = psn_after(una.psn, l->una.psn);
	lost = l->held.lost;
	loss_judge(e, l, r, cum);
	if (l->held.lost > lost)
		link_lost(e, l, &l->held, l->held.lost - lost, r);
	if (psn_after(cum, l->reached)) {
		/* receipt is progress for the stream, though only a true ACK is for custody */
		l->reached = cum;
		l->backoff = 0;
		progress = true;
	}
	mark_room(l, (struct wire_psn){r->room});
	if (r->credit != 0xff && lane_credit(l, r->credit, false)) {
		l->near.ack_repeat = true;
		ack_list(e, fl);
	}
	if (psn_after(una.psn, l->una.psn)) {
		l->count.true_acks++;
		COUNT(e, TRUE_ACKS);
		lane_true_ack(e, fl, &una);
	}
	if (l->role != ROLE_OPENER)
		return;	      /* it was drained and closed by that */
	l->progress = e->now; /* the peer is there; it watches over its responder itself */
	if (!had)
		l->opener.had_ms = ms_of(e->now);
	if (progress)
		arm(e, fl);
	announce_heard(e, fl, r);
	if (r->bypassed)
		seal_bypass(e, fl, MISS_US, true);
	else if (l->bypassed == MISS_US || (l->bypassed == MISS_TO && progress))
		l->bypassed = MISS_NONE;
	if (l->role == ROLE_OPENER && goes_on(e, fl, r))
		pace_run(e, fl);
}

/* ---- the timer ---- */

/* Nothing is under way, for want of room at the peer: ask for room with the next packet. */
static void probe_room(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	if (psn_before(l->opener.room, psn_add(l->nxt.psn, 1)))
		mark_room(l, psn_add(l->nxt.psn, 1));
	l->progress = e->now;
	pace_run(e, fl);
	arm(e, fl);
}

/* Whether it is too early to miss @d, sent after the latest progress. Then the timer is armed. */
static bool too_early(struct engine *e, struct flow *fl, const struct pkt *d)
{
	uint64_t patience = patience_ns(e, &fl->lane);
	uint64_t waits = (now_us(e) - d->xmit) * NSEC_PER_USEC;

	if (waits + NSEC_PER_USEC >= patience)
		return false;
	timer_arm(e, fl, TIMER_LOSS, e->now + patience - waits);
	return true;
}

/* Send again what makes the peer report. @d, from @from on: the oldest not reported, or NULL. */
static void send_probe(struct engine *e, struct flow *fl, struct pkt *d, struct wire_psn from)
{
	struct lane *l = &fl->lane;
	int32_t tail = psn_diff(l->nxt.psn, l->opener.reached_hi);
	struct wire_psn psn;

	if (d && !l->backoff && tail > 0 && psn_is(from, l->opener.reached_hi)) {
		/* nothing is missing before the tail; it is lost, or only the reports of it */
		if (tail <= (int32_t)TAIL_PSNS && l->rtt.srtt_us)
			loss_give_up(e, l, l->opener.reached_hi, l->nxt.psn, l->rtt.srtt_us);
		d = lane_pkt(e, l, psn_sub(l->nxt.psn, 1));
		if (d && (d->flags & PKT_LOST))
			d = NULL;
	}
	/* the peer has all: the latest, whose arrival makes it report again */
	if (!d && !l->held.lost)
		d = lane_pkt(e, l, psn_sub(l->nxt.psn, 1));
	if (!d && !l->held.lost)
		d = lane_pkt_next(e, l, l->una.psn, l->nxt.psn, &psn);
	if (d)
		stream_send(e, fl, &l->held, d, other_port(fl->side));
	pace_run(e, fl);
}

/* How long the peer has said nothing of the lane in spite of repeats, but for a few round trips. */
static uint32_t silent_us(const struct engine *e, const struct lane *l)
{
	uint32_t us = now_us(e) - l->opener.reported_us, usual = 4 * l->rtt.srtt_us;

	if (!seal_sure(l) || !e->peer_up[l->peer] || l->backoff < SILENT_TIMEOUTS || us < usual)
		return 0;
	us -= usual;
	return e->now - e->peer_since[l->peer] > us * NSEC_PER_USEC ? us : 0;
}

/* Whether the peer was there for long, and has said nothing of the lane. Of one that was idle there
 * was nothing to report until it sent again (@progress). */
static bool deaf(const struct engine *e, const struct lane *l)
{
	return !l->reopen && l->accepted && e->peer_up[l->peer] &&
	       e->now - e->peer_since[l->peer] > DEAF_NS && e->now - l->progress > DEAF_NS &&
	       now_us(e) - l->opener.reported_us > DEAF_NS / NSEC_PER_USEC;
}

void stream_tx_timeout(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	uint64_t most = MAX(e->cfg.peer_timeout_ns, e->cfg.responder_timeout_ns);
	struct wire_psn from = l->reached;
	struct pkt *d;

	if (l->state == LANE_FAULT || psn_is(l->una.psn, l->epsn.psn))
		return;
	if (psn_is(l->una.psn, l->nxt.psn) && !l->reopen) {
		probe_room(e, fl);
		return;
	}
	d = l->reopen ? NULL : oldest(e, l, &from);
	if (d && (d->flags & PKT_SENT) && too_early(e, fl, d))
		return;
	l->count.timeouts++;
	COUNT(e, TIMEOUTS);
	if (deaf(e, l) && !l->renumbered) {
		stream_tx_restart(e, fl);
		return;
	}
	/* what is promised to nobody the host can repair by itself */
	if (d && silent_us(e, l) > SILENT_US)
		seal_bypass(e, fl, MISS_TO, false);
	if (d && silent_us(e, l) > UNHEARD_US && l->policy != POLICY_EARLY)
		seal_bypass(e, fl, MISS_TO, true);
	if (l->role != ROLE_OPENER)
		return;
	/* only the peer knows the responder's numbers: it says CLOSE or PROGRESS (rx_resp()) */
	if (deaf(e, l))
		resp_report_due(e, fl, true);
	if (e->now - l->progress > most && !l->reopen) {
		lane_fault(e, fl, REASON_PEER_LOST, AETH_NAK_OPERATION);
		return;
	}
	if (!l->reopen)
		send_probe(e, fl, d, from);
	if (l->backoff < 12)
		l->backoff++;
	arm(e, fl);
}

void stream_tx_repeated(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	if (l->role != ROLE_OPENER || l->backoff <= SILENT_TIMEOUTS)
		return;
	l->backoff = SILENT_TIMEOUTS;
	arm(e, fl);
}

/* The peer lost its memory of the lane: agree anew from the last true ACK on. */
void stream_tx_restart(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct wire_mark una;

	if (l->state == LANE_FAULT)
		return;
	if (l->state == LANE_OPENING) {
		lane_send_open(e, fl);
		return;
	}
	if (l->renumbered) {
		/* which numbers the responder expects only the peer has known */
		lane_fault(e, fl, REASON_PEER_RESTARTED, AETH_NAK_OPERATION);
		return;
	}
	resp_prove(e, fl);
	if (lane_drained(l))
		return; /* nothing is left to agree on: the tick closes it */
	l->gen = ++e->gen;
	l->reopen = true;
	order_resume(e, fl);
	l->report_heard = false;
	una = l->una;
	if (l->sealed || (fl->rule >= 0 && e->rules[fl->rule].seal))
		seal_begin(e, fl); /* also if the rule wants it only now */
	mark_resend(l, &una);
	l->reached = l->opener.reached_hi = l->una.psn;
	l->backoff = 0;
	mark_room(l, psn_add(l->una.psn, 256));
	lane_send_open(e, fl);
}
