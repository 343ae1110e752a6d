// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What may be on its way to a near responder at once: enough for any LAN, little enough not to
 * flood its switch when a hole closes and thousands of packets become due together. A host that
 * does not keep up loses some, and all behind it: then half is enough, and one more a round trip.
 *
 * Over the WAN (single mode) the responder cannot ask for single packets: a loss costs all that was
 * sent after it. So the packets on their way are limited by a window.
 *
 * Hosts ask for an ACK where their messages end, or their own windows, and these may be longer than
 * a window of ours: without any it ends with the loss timer. So there is always one asked for
 * within a quarter of the window, by the appliance where the host has not. A near responder's first
 * one is longer than hosts' own; where nothing in it asks for an ACK, none is waited for.
 *
 * The window doubles each round trip until something is lost (slow start). A loss at the flight F
 * leaves F / 2, and that is where slow start ends from then on, @thresh. Behind that a constant
 * part of it is added in each round trip, so the way back to F takes as many for any window. What
 * is beyond F was not tried before: there the excess doubles as well.
 *
 * A loss much below F says less of the link than of noise, or of others who began: the window is
 * halved all the same, but @thresh comes down by a sixteenth only, so slow start brings most of it
 * back. Others that stay are seen by one such loss after the other.
 *
 * A congestion notification of the responder (CNP) leaves three quarters of what is on its way, to
 * either kind of responder: it comes before anything is lost (spec: RFC 8511 has the same reason).
 * Its network card sends one each 50 us while packets come marked, so one in a round trip counts.
 * Who forges them gets a lane down to the least window, where it goes on.
 *
 * After a loss what was sent is on its way still, and sending begins anew with all of the window
 * free: at once it would fill the queue that has just been too short. So from the first loss on it
 * is paced, a little faster than a window for each round trip; in slow start twice as fast.
 *
 * row: ENG-20
 */
#include "engine/announce/announce.h"
#include "engine/far/far_priv.h"

#define FLIGHT_BYTES (2u << 20)
#define CWND_MIN     16u
#define CWND_MAX     65536u
/* So many packets of a window ask for an ACK, at least. */
#define CWND_ASKS    4u
/* A congestion notification leaves so much: ACCEPTOR, whose round trips are short; SINGLE. */
#define CNP_MIN_LAN  2u
#define CNP_MIN_WAN  CWND_MIN
#define CNP_US	     50u
/* Slow start goes up to this at least. */
#define THRESH_MIN   64u
/* Round trips from the half to the whole of what was lost at. */
#define ADD_ROUNDS   16u
/* So much of the threshold goes at a loss far below what it stands for. */
#define DOUBT	     16u
/* What may leave at once where packets are paced, and for how long a timer may be late. */
#define BURST	     16u
#define BURST_NS     (200 * NSEC_PER_USEC)
/* A timer for less would cost more than it spreads. */
#define PACE_NS	     (50 * NSEC_PER_USEC)

void far_arm(struct engine *e, struct flow *fl)
{
	if ((psn_is(fl->lane.una.psn, fl->lane.nxt.psn) && !announce_waits(e, &fl->lane)) ||
	    fl->lane.rnr_wait)
		timer_cancel(e, fl, TIMER_LOSS);
	else
		timer_arm(e, fl, TIMER_LOSS, e->now + lane_rto_ns(&fl->lane));
}

/* ACCEPTOR: as many packets as are enough for any LAN. */
static uint32_t enough(const struct flow *fl)
{
	return FLIGHT_BYTES / flow_mtu(fl);
}

bool far_flight_full(const struct flow *fl)
{
	const struct lane *l = &fl->lane;
	uint32_t full = l->far.cwnd / CWND_ONE;

	/* a READ of many PSNs goes alone, if need be */
	if (psn_is(l->nxt.psn, l->una.psn))
		return false;
	if (l->role == ROLE_SINGLE)
		return psn_past(l->nxt.psn, l->una.psn) >= full;
	full = MIN(full, enough(fl));
	return psn_past(l->nxt.psn, l->una.psn) >= full && far_asked(l);
}

bool far_unasked(const struct flow *fl, struct wire_psn next)
{
	const struct lane *l = &fl->lane;
	struct wire_psn from = far_asked(l) ? l->far.ackreq_end : l->una.psn;

	/* before anything was lost a near responder is given more than any window of its hosts */
	if (l->role == ROLE_ACCEPTOR && l->far.cwnd / CWND_ONE >= enough(fl))
		return false;
	return psn_diff(next, from) >= (int32_t)(l->far.cwnd / CWND_ONE / CWND_ASKS);
}

/* SINGLE: slow start ends at @half of what was lost at. */
static void lower_thresh(struct lane *l, uint32_t half)
{
	uint32_t t = l->single.thresh;

	if (t != THRESH_NONE && half < t / 4 * 3)
		t = half > t - t / DOUBT ? half : t - t / DOUBT;
	else
		t = half;
	l->single.thresh = t > THRESH_MIN * CWND_ONE ? t : THRESH_MIN * CWND_ONE;
}

void far_lost_one(struct engine *e, struct lane *l)
{
	uint32_t flight = psn_past(l->nxt.psn, l->una.psn) * CWND_ONE;

	if (now_us(e) - l->far.cut_us < l->rtt.srtt_us)
		return;
	l->far.cut_us = now_us(e);
	l->far.cwnd = MIN(l->far.cwnd, flight);
	if (l->role == ROLE_SINGLE)
		lower_thresh(l, l->far.cwnd / 2);
	l->far.cwnd = l->far.cwnd / 2 > CWND_MIN * CWND_ONE ? l->far.cwnd / 2 : CWND_MIN * CWND_ONE;
}

void far_congested(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	uint32_t flight = psn_past(l->nxt.psn, l->una.psn) * CWND_ONE,
		 least = (l->role == ROLE_SINGLE ? CNP_MIN_WAN : CNP_MIN_LAN) * CWND_ONE,
		 rtt = l->rtt.srtt_us > CNP_US ? l->rtt.srtt_us : CNP_US;

	if (l->state == LANE_FAULT || !flight || now_us(e) - l->far.cut_us < rtt + rtt / 2)
		return;
	l->far.cut_us = now_us(e);
	l->far.cwnd = MIN(l->far.cwnd, flight);
	l->far.cwnd -= l->far.cwnd / 4;
	l->far.cwnd = MAX(l->far.cwnd, least);
	if (l->role == ROLE_SINGLE)
		l->single.thresh = l->far.cwnd;
	COUNT(e, CNP_HEEDED);
}

/* What is added to the window in a round trip. */
static uint32_t added(const struct lane *l)
{
	uint32_t thresh = l->single.thresh, add = thresh / ADD_ROUNDS;

	if (l->role != ROLE_SINGLE)
		return CWND_ONE;
	if (l->far.cwnd < thresh)
		return l->far.cwnd;
	if (l->far.cwnd / 2 > thresh)
		add += l->far.cwnd - 2 * thresh;
	return add > CWND_ONE ? add : CWND_ONE;
}

void far_widen(struct lane *l, uint32_t n)
{
	uint64_t most = (uint64_t)CWND_MAX * CWND_ONE, to;

	/* what was sent before the window became so little counts as one of today's */
	n = MIN(n, l->far.cwnd / CWND_ONE);
	to = l->far.cwnd + (uint64_t)n * CWND_ONE * added(l) / l->far.cwnd + 1;
	l->far.cwnd = (uint32_t)(to < most ? to : most);
}

bool far_paced(struct engine *e, struct flow *fl)
{
	uint64_t least = e->now + PACE_NS, at = fl->lane.single.paid_ns;

	if (fl->lane.role != ROLE_SINGLE || at <= e->now)
		return false;
	timer_arm(e, fl, TIMER_PACE, at > least ? at : least);
	return true;
}

void far_pay(struct engine *e, struct lane *l)
{
	uint64_t gap, idle;

	if (l->role != ROLE_SINGLE || l->single.thresh == THRESH_NONE)
		return;
	gap = (uint64_t)l->rtt.srtt_us * NSEC_PER_USEC * CWND_ONE / l->far.cwnd;
	gap = l->far.cwnd < l->single.thresh ? gap / 2 : gap * 9 / 10;
	idle = BURST * gap > BURST_NS ? BURST * gap : BURST_NS;
	if (l->single.paid_ns + idle < e->now)
		l->single.paid_ns = e->now - idle;
	l->single.paid_ns += gap;
}

void far_resume_at(struct engine *e, struct flow *fl, struct wire_psn psn)
{
	struct lane *l = &fl->lane;
	struct wire_psn at = l->una.psn;
	struct wire_mark m = l->una;
	struct pkt *d;

	/* the marks between are counted again, from the last true ACK on */
	while (psn_before(at, psn) && (d = lane_pkt(e, l, at))) {
		at = psn_add(at, d->span);
		m.msn += !!(d->flags & PKT_EOM);
		m.ackable = !(d->flags & PKT_ANSWERED);
		m.psn = at;
	}
	mark_resend(l, &m);
	if (psn_after(l->far.ackreq_end, m.psn))
		l->far.ackreq_end = m.psn; /* what asked for an ACK is to be sent again */
	announce_resume(e, l, m.psn);
	timer_cancel(e, fl, TIMER_LOSS);
	pace_run(e, fl);
}
