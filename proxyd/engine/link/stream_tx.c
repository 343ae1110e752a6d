// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The sending end of a stream: requests in custody, over the WAN, until the far appliance has them
 * (role OPENER).
 *
 * Packets go out in PSN order as pacing and the peer's room allow; retransmissions go before new
 * ones. The peer reports what is missing (report.h), and goes on to report while something is.
 * Whether a missing packet is lost or only late is decided by time, not by counting: the
 * transmission time of the newest packet known to have arrived is kept (@rack_us), and a missing
 * packet whose own latest transmission is older than that by more than a reordering window is lost.
 * A retransmission gets a new time, so it is judged by the same rule, and so is its retransmission.
 * What the peer says it has refused needs no such judgement: it is sent again at once (FAST-1).
 *
 * The reordering window is a quarter of the shortest round trip seen, at least REO_MIN_US. Where
 * loss after loss proves to be one and nothing is late, waiting is in vain: it shrinks to a
 * sixteenth. As soon as a packet is late (it was not sent again, and arrives after younger ones; or
 * it was, and is reported sooner than its second transmission can have arrived) it is a quarter
 * again, or longer, up to a whole round trip, if it was later than that. Beyond the quarter it
 * fades with time (LATE_DECAY_RTTS).
 *
 * What no later packet can tell, the tail of a burst, is served by a timer, a little more than a
 * round trip after the latest progress: few packets are sent again at once, of many the last one
 * only, whose arrival makes the peer tell what it lacks. When the timer fires in vain it backs off,
 * and sends the oldest packet that the peer is not known to have; the budget is peer_timeout and is
 * renewed by progress only. A report that comes after silence condemns everything that had time to
 * arrive before it and did not.
 *
 * What the peer has is not released: only a true ACK of the responder releases custody, since the
 * peer may lose its memory at any time. After a restart everything from the last true ACK on is
 * sent again.
 */
#include "engine/fault/fault.h"
#include "engine/link/link.h"
#include "engine/reads/reads.h"

/* A peer that is there and says nothing about the lane for so long has lost it. */
#define DEAF_NS (10 * NSEC_PER_SEC)

#define REO_MIN_US	500u
#define LATE_MAX_US	0xffffffu
/* What the peer's reports wait at most for company, see engine.c. */
#define REPORT_WAIT_US	250u
/* The tail's timer: at least so much longer than the round trip (the peer's reports wait 200 us).
 * */
#define TAIL_MIN_US	2000u
/* A tail of so many PSNs is sent again as a whole: with more, losing all of them and all reports is
 * an outage. */
#define TAIL_PSNS	32u
/* Lateness once seen is believed for so many round trips; then it fades. */
#define LATE_DECAY_RTTS 16u
/* After so many true losses without a late packet the window is halved, and once more. */
#define CALM_LOSSES	16u
/* More than any host has outstanding. */
#define HOST_WINDOW	65536u

static uint64_t max64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint32_t max32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* How much later than younger packets a packet may come, us. */
static uint32_t reo_window(const struct lane *l)
{
	uint32_t base = l->rtt.minrtt_us / (l->true_losses < CALM_LOSSES       ? 4
					    : l->true_losses < 2 * CALM_LOSSES ? 8
									       : 16);

	return max32(max32(base, REO_MIN_US), l->late_us);
}

/* How long after its transmission a packet is reported, if it is not lost; us, 0 when not known
 * yet. */
static uint32_t overdue_us(const struct lane *l)
{
	if (!l->rtt.srtt_us)
		return 0;
	return l->rtt.srtt_us + max32(max32(reo_window(l), 4 * l->rtt.rttvar_us), TAIL_MIN_US);
}

static uint64_t patience_ns(const struct lane *l)
{
	/* a first timeout comes early; not while the peer has all, and only its responder is
	 * awaited */
	if (l->rtt.srtt_us && !l->backoff && psn_before(l->reached, l->nxt.psn))
		return overdue_us(l) * NSEC_PER_USEC;
	return lane_rto_ns(l);
}

static void arm(struct engine *e, struct flow *fl)
{
	uint32_t id = TIMER_ID(flow_index(e, fl), TIMER_LOSS);

	/* also when nothing is under way for want of room at the peer: it may not say when there is
	 * some */
	if (fl->lane.una.psn == fl->lane.nxt.psn && fl->lane.nxt.psn == fl->lane.epsn.psn)
		wheel_cancel(e->wheel, id);
	else
		wheel_arm(e->wheel, id, e->now + patience_ns(&fl->lane));
}

/* Send the packet at @psn. False when the port has no room. */
static bool send(struct engine *e, struct flow *fl, struct pkt *d)
{
	if (engine_tx(e, other_port(fl->side), lane_packet(e, d), d->len))
		return false;
	pace_sent(e, d->len);
	d->xmit = now_us(e);
	if (d->tries++) {
		d->flags |= PKT_RETX;
		fl->lane.retx++;
		COUNT(e, RETX_WAN);
	}
	if (d->tries == 0)
		d->tries = UINT16_MAX;
	if (d->flags & PKT_LOST)
		fl->lane.lost--;
	d->flags = (d->flags | PKT_SENT) & ~PKT_LOST;
	return true;
}

/* Packets judged lost, oldest first, as far as the peer has room. Returns false when sending must
 * stop. */
static bool send_lost(struct engine *e, struct flow *fl, uint32_t *budget)
{
	struct lane *l = &fl->lane;
	uint32_t psn = l->lost_from, end;
	struct pkt *d;

	if (!l->lost)
		return true;
	if (psn_before(psn, l->una.psn))
		psn = l->una.psn;
	end = psn_before(l->room, l->nxt.psn) ? l->room : l->nxt.psn;
	while (l->lost && psn_before(psn, end) &&
	       (d = window_next(&l->win, e->pool, psn, end, &psn))) {
		if (d->flags & PKT_LOST) {
			l->lost_from = psn;
			if (!*budget || !pace_may_send(e) || !send(e, fl, d))
				return false;
			*budget -= d->len < *budget ? d->len : *budget;
		}
		psn = psn_add(psn, d->span);
	}
	l->lost_from = psn;
	return true;
}

bool stream_tx_run(struct engine *e, struct flow *fl, uint32_t quantum)
{
	struct lane *l = &fl->lane;
	uint32_t budget = quantum, before = l->nxt.psn;
	bool idle = l->nxt.psn == l->una.psn, stopped;

	if (l->state == LANE_FAULT || l->reopen)
		return false;
	stopped = !send_lost(e, fl, &budget);
	while (!stopped && psn_before(l->nxt.psn, l->epsn.psn) && psn_before(l->nxt.psn, l->room)) {
		struct pkt *d = window_get(&l->win, e->pool, l->nxt.psn);

		if (!d) /* released already: acknowledged while waiting for its first transmission
			 */
			break;
		if (!budget || !pace_may_send(e) || !send(e, fl, d)) {
			stopped = true;
			break;
		}
		budget -= d->len < budget ? d->len : budget;
		l->nxt.psn = psn_add(l->nxt.psn, d->span);
		l->nxt.msn += !!(d->flags & PKT_EOM);
		l->nxt.ackable = !(d->flags & PKT_ANSWERED);
	}
	if (l->nxt.psn != before) {
		if (idle)
			l->progress = e->now;
		if (psn_after(l->nxt.psn, l->high))
			l->high = l->nxt.psn;
		if (idle || !wheel_armed(e->wheel, TIMER_ID(flow_index(e, fl), TIMER_LOSS)))
			arm(e, fl);
		ack_list(e, fl); /* a front that waits for the WAN */
	} else if (idle && !stopped && psn_before(l->nxt.psn, l->epsn.psn) &&
		   !wheel_armed(e->wheel, TIMER_ID(flow_index(e, fl), TIMER_LOSS))) {
		arm(e, fl);
	}
	return stopped;
}

/* ---- what the peer tells ---- */

/* So late a packet may come without being lost. */
static void seen_late(struct engine *e, struct lane *l, uint32_t us)
{
	uint32_t now;

	l->true_losses = 0;
	if (us > l->rtt.minrtt_us)
		us = l->rtt.minrtt_us; /* there is no waiting for ever; what is later still is sent
					  again */
	if (us > LATE_MAX_US)
		us = LATE_MAX_US;
	now = l->late_us;
	if (us > now)
		l->late_us = now = us;
	if (us >= now - now / 4)
		l->late_at = now_us(e);
}

static void forget_late(struct engine *e, struct lane *l)
{
	if (!l->late_us || now_us(e) - l->late_at < LATE_DECAY_RTTS * l->rtt.srtt_us)
		return;
	l->late_us -= l->late_us / 4 + 1;
	l->late_at = now_us(e);
}

/* No round trip is shorter: samples include what a report waited for company, urgent ones do not.
 * */
static uint32_t least_rtt_us(const struct lane *l)
{
	uint32_t slack = l->rtt.minrtt_us / 16 + REPORT_WAIT_US;

	return l->rtt.minrtt_us > slack ? l->rtt.minrtt_us - slack : 0;
}

/*
 * Which transmission of @d was it that arrived? Not the latest, if it would have been faster than
 * light; then that one was not needed.
 */
static bool spurious(struct engine *e, const struct lane *l, const struct pkt *d)
{
	return (d->flags & PKT_RETX) && now_us(e) - d->xmit < least_rtt_us(l);
}

/* The first packet that was missing has just arrived. */
static void gap_closed(struct engine *e, struct lane *l, const struct pkt *d)
{
	int32_t late = (int32_t)(l->rack_us - d->xmit);

	if (!(d->flags & PKT_SENT))
		return;
	if (spurious(e, l, d)) {
		/* by how much it was late is forgotten, but the window was too short */
		COUNT(e, RETX_SPURIOUS);
		seen_late(e, l, reo_window(l) + l->rtt.minrtt_us / 8);
	} else if (d->flags & PKT_RETX) {
		l->true_losses += l->true_losses < UINT8_MAX;
	} else if (late > 0) {
		seen_late(e, l, (uint32_t)late + (uint32_t)late / 4);
	}
}

/* The packet that ends at @end; it begins at or after @from. A READ stands where its range begins.
 * */
static struct pkt *ending_at(struct engine *e, const struct lane *l, uint32_t from, uint32_t end)
{
	struct pkt *d = window_get(&l->win, e->pool, psn_sub(end, 1)), *found = NULL;

	if (d)
		return d;
	while (psn_before(from, end) && (d = window_next(&l->win, e->pool, from, end, &from))) {
		from = psn_add(from, d->span);
		found = from == end ? d : NULL;
	}
	return found;
}

/* A packet that ends at @end and begins at or after @from is known to have arrived; @just: just
 * now, so that its age is a round trip. */
static void arrived(struct engine *e, struct lane *l, uint32_t from, uint32_t end, bool just)
{
	struct pkt *d = ending_at(e, l, from, end);

	if (!d || !(d->flags & PKT_SENT) || spurious(e, l, d))
		return;
	if (!(d->flags & PKT_RETX) && just && psn_after(end, l->overlap))
		rtt_sample(&l->rtt, now_us(e) - d->xmit);
	if ((int32_t)(d->xmit - l->rack_us) > 0)
		l->rack_us = d->xmit;
}

static void condemn(struct lane *l, struct pkt *d, uint32_t psn)
{
	if (d->flags & PKT_LOST)
		return;
	d->flags |= PKT_LOST;
	if (!l->lost++ || psn_before(psn, l->lost_from))
		l->lost_from = psn;
}

/* Packets in @hole are missing. Lost are those that were sent before one that has arrived, by more
 * than the reordering window, or so long ago that they would have arrived. */
static void judge(struct engine *e, struct lane *l, const struct psn_range *hole, uint32_t reo)
{
	uint32_t psn = hole->from, late = l->rtt.srtt_us + reo, now = now_us(e);
	struct pkt *d;

	while (psn_before(psn, hole->end) &&
	       (d = window_next(&l->win, e->pool, psn, hole->end, &psn))) {
		int32_t younger = (int32_t)(l->rack_us - d->xmit);

		if ((d->flags & PKT_SENT) &&
		    (younger > (int32_t)reo || (younger >= 0 && now - d->xmit > late)))
			condemn(l, d, psn);
		psn = psn_add(psn, d->span);
	}
}

/* Of [@from, @end), all is lost that was sent @older us ago or before. */
static void give_up(struct engine *e, struct lane *l, uint32_t from, uint32_t end, uint32_t older)
{
	uint32_t psn = from;
	struct pkt *d;

	while (psn_before(psn, end) && (d = window_next(&l->win, e->pool, psn, end, &psn))) {
		if ((d->flags & PKT_SENT) && now_us(e) - d->xmit >= older)
			condemn(l, d, psn);
		psn = psn_add(psn, d->span);
	}
}

/*
 * The peer had this one in its hands and could not keep it. Said of the latest transmission, that
 * is: an older one may have been refused while the next was on its way.
 */
static void refused(struct engine *e, struct lane *l, uint32_t psn)
{
	struct pkt *d;

	if (psn_before(psn, l->una.psn) || !psn_before(psn, l->nxt.psn))
		return;
	d = window_get(&l->win, e->pool, psn);
	if (d && (d->flags & PKT_SENT) && now_us(e) - d->xmit >= least_rtt_us(l))
		condemn(l, d, psn);
}

/*
 * What arrived must lie within what the host can have sent. (Not: within what we accepted or sent,
 * since while the lane was opening all passed by: what waited here for its turn, and what came
 * after something that we missed.)
 */
static bool sane(const struct lane *l, const struct report *r)
{
	if (psn_after(r->una, r->cum) || psn_before(r->hi, r->cum) ||
	    psn_diff(r->hi, l->epsn.psn) > (int32_t)HOST_WINDOW)
		return false;
	if (psn_diff(r->room, r->cum) < 0 || psn_diff(r->room, r->cum) > (int32_t)WINDOW_SPAN)
		return false;
	for (uint8_t i = 0; i < r->nholes; i++)
		if (!psn_before(r->hole[i].from, r->hole[i].end) ||
		    psn_before(r->hole[i].from, r->cum) || psn_after(r->hole[i].end, r->hi))
			return false;
	return true;
}

void stream_tx_progress(struct engine *e, struct flow *fl, const struct report *r)
{
	struct lane *l = &fl->lane;
	struct mark una = {.psn = r->una, .msn = r->una_msn, .ackable = r->una_ackable};
	uint32_t cum = r->cum;
	bool progress;

	/* the newest wins; a report from before a resumption says what is no longer true */
	if (!l->accepted || l->reopen ||
	    (l->report_heard && (int32_t)(r->seq - l->report_seq) <= 0))
		return;
	l->last_report = e->now;
	if (psn_before(r->cum, l->una.psn)) {
		/* it waits for what is released already */
		stream_tx_restart(e, fl);
		return;
	}
	if (!sane(l, r)) {
		COUNT(e, BAD_REPORT);
		return;
	}
	if (psn_after(cum, l->epsn.psn))
		cum = l->epsn.psn;
	progress = psn_after(una.psn, l->una.psn);
	l->report_seq = r->seq;
	l->report_heard = true;
	forget_late(e, l);
	if (psn_after(cum, l->reached)) {
		struct pkt *first = window_get(&l->win, e->pool, l->reached);

		if (first)
			gap_closed(e, l, first);
		/* the contiguous part may end with a packet that has waited long for the one before
		 * it */
		arrived(e, l, l->reached, cum, false);
	}
	if (psn_after(r->hi, l->reached_hi))
		arrived(e, l, psn_before(l->reached_hi, l->una.psn) ? l->una.psn : l->reached_hi,
			r->hi, true);
	else if (psn_before(r->hi, l->reached_hi))
		give_up(e, l, r->hi, l->reached_hi, 0); /* the peer had it, and let it go */
	l->reached_hi = r->hi;
	for (uint8_t i = 0; i < r->nholes; i++)
		judge(e, l, &r->hole[i], reo_window(l));
	for (uint8_t i = 0; i < r->nagain; i++)
		refused(e, l, r->again[i]);
	/* Silence is over: what was sent long before this report would be in it. (Without silence
	 * it is not for this clock to judge: should the round trip have become longer, all would be
	 * sent again, nothing measured, and so on for ever.) */
	if (l->backoff && l->rtt.srtt_us)
		give_up(e, l, r->hi, l->nxt.psn, overdue_us(l));
	if (psn_after(cum, l->reached)) {
		/* receipt is progress for the stream, though only a true ACK is for custody */
		l->reached = cum;
		l->backoff = 0;
		progress = true;
	}
	l->room = r->room;
	if (r->credit != 0xff)
		l->credit = r->credit;
	if (psn_after(una.psn, l->una.psn)) {
		l->true_acks++;
		COUNT(e, TRUE_ACKS);
		lane_true_ack(e, fl, &una);
	}
	if (l->role != ROLE_OPENER)
		return;	      /* it was drained and closed by that */
	l->progress = e->now; /* the peer is there; how its responder does is its business */
	if (progress)
		arm(e, fl);
	if (!r->refusal && (r->reason == REASON_OPERATOR || r->reason == REASON_DISCONNECT)) {
		lane_drain(e, fl, r->reason);
		if (l->role != ROLE_OPENER)
			return;
	}
	if (r->refusal) {
		lane_refused(e, fl, r->refusal_psn, r->refusal, r->reason ? r->reason : REASON_NAK);
		return;
	}
	pace_run(e, fl);
}

void stream_tx_timeout(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	uint32_t from = psn_after(l->reached, l->una.psn) ? l->reached : l->una.psn, psn;
	uint64_t most = max64(e->cfg.peer_timeout_ns, e->cfg.responder_timeout_ns);
	struct pkt *d;
	int32_t tail;

	if (l->state == LANE_FAULT || l->una.psn == l->epsn.psn)
		return;
	if (l->una.psn == l->nxt.psn && !l->reopen) {
		/* probe for room with the next packet */
		if (psn_before(l->room, psn_add(l->nxt.psn, 1)))
			l->room = psn_add(l->nxt.psn, 1);
		l->progress = e->now;
		pace_run(e, fl);
		arm(e, fl);
		return;
	}
	d = l->reopen ? NULL : window_next(&l->win, e->pool, from, l->nxt.psn, &psn);
	if (d && (d->flags & PKT_SENT)) {
		/* the timer runs since the latest progress; this may have been sent after that */
		uint64_t patience = patience_ns(l), waits = (now_us(e) - d->xmit) * NSEC_PER_USEC;

		if (waits + NSEC_PER_USEC < patience) {
			wheel_arm(e->wheel, TIMER_ID(flow_index(e, fl), TIMER_LOSS),
				  e->now + patience - waits);
			return;
		}
	}
	l->timeouts++;
	COUNT(e, TIMEOUTS);
	if (!l->reopen && l->accepted && e->peer_up[l->peer] && e->now - l->last_report > DEAF_NS) {
		stream_tx_restart(e, fl);
		return;
	}
	if (e->now - l->progress > most && !l->reopen) {
		lane_fault(e, fl, REASON_PEER_LOST, AETH_NAK_OPERATION);
		return;
	}
	if (!l->reopen) {
		tail = psn_diff(l->nxt.psn, l->reached_hi);
		if (d && !l->backoff && l->rtt.srtt_us && tail > 0 && from == l->reached_hi) {
			/* nothing is missing before the tail; it is lost, or only the reports of it
			 * */
			if (tail <= (int32_t)TAIL_PSNS)
				give_up(e, l, l->reached_hi, l->nxt.psn, l->rtt.srtt_us);
			d = window_get(&l->win, e->pool, psn_sub(l->nxt.psn, 1));
			if (d && (d->flags & PKT_LOST))
				d = NULL;
		}
		/* the oldest that the peer is not known to have; if it has all, the latest, whose
		 * arrival makes it report again */
		if (!d && !l->lost)
			d = window_get(&l->win, e->pool, psn_sub(l->nxt.psn, 1));
		if (!d && !l->lost)
			d = window_next(&l->win, e->pool, l->una.psn, l->nxt.psn, &psn);
		if (d)
			send(e, fl, d);
		pace_run(e, fl);
	}
	if (l->backoff < 12)
		l->backoff++;
	arm(e, fl);
}

/* The peer lost its memory of the lane: agree anew from the last true ACK on. */
void stream_tx_restart(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	if (l->state == LANE_FAULT)
		return;
	if (l->state == LANE_OPENING) {
		lane_send_open(e, fl);
		return;
	}
	resp_prove(e, fl);
	if (l->role == ROLE_NONE)
		return; /* that was the last of a draining lane */
	l->gen = ++e->gen;
	l->reopen = true;
	l->report_heard = false;
	l->nxt = l->una;
	l->reached = l->reached_hi = l->una.psn;
	l->backoff = 0;
	l->room = psn_add(l->una.psn, 256);
	lane_send_open(e, fl);
}
