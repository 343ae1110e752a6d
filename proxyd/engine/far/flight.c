// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What may be on its way to a near responder at once: enough for any LAN, little enough not to
 * flood its switch when a hole closes and thousands of packets become due together. A host that
 * does not keep up loses some, and with it all that was sent after it: then half of that is enough,
 * and from there on one packet more each round trip. Where nothing on its way asks for an ACK,
 * waiting for one would be for ever.
 *
 * Over the WAN (single mode) the responder cannot ask for single packets: a loss costs all that was
 * sent after it. So the packets on their way are limited by a window that grows with what is
 * acknowledged and is halved by each loss, once per round trip.
 *
 * Hosts ask for an ACK where their messages end, or their own windows, and these may be longer than
 * this one: a window without any ends with the loss timer. So there is always one asked for within
 * a quarter of the window, by the appliance where the host has not.
 */
#include "engine/announce/announce.h"
#include "engine/far/far_priv.h"

#define FLIGHT_BYTES (2u << 20)
#define CWND_MIN     16u
#define CWND_MAX     65536u
#define CWND_ONE     256u /* ACCEPTOR: one packet, in units of cwnd */
#define CWND_ASKS    4u	  /* SINGLE: packets that ask for an ACK, in a window, at least */

void far_arm(struct engine *e, struct flow *fl)
{
	if ((fl->lane.una.psn == fl->lane.nxt.psn && !announce_waits(e, &fl->lane)) ||
	    fl->lane.rnr_wait)
		wheel_cancel(e->wheel, far_timer(e, fl, TIMER_LOSS));
	else
		wheel_arm(e->wheel, far_timer(e, fl, TIMER_LOSS), e->now + lane_rto_ns(&fl->lane));
}

bool far_flight_full(const struct flow *fl)
{
	const struct lane *l = &fl->lane;
	uint32_t full = FLIGHT_BYTES / (fl->path_mtu ? fl->path_mtu : 4096u);

	/* a READ of many PSNs goes alone, if need be */
	if (l->nxt.psn == l->una.psn)
		return false;
	if (l->role == ROLE_SINGLE)
		return ((l->nxt.psn - l->una.psn) & PSN_MASK) >= l->cwnd;
	if (l->cwnd / CWND_ONE < full)
		full = l->cwnd / CWND_ONE;
	return ((l->nxt.psn - l->una.psn) & PSN_MASK) >= full &&
	       psn_after(l->ackreq_end, l->una.psn);
}

bool far_unasked(const struct lane *l, uint32_t next)
{
	uint32_t from = psn_after(l->ackreq_end, l->una.psn) ? l->ackreq_end : l->una.psn;

	return l->role == ROLE_SINGLE && psn_diff(next, from) >= (int32_t)(l->cwnd / CWND_ASKS);
}

void far_lost_one(struct engine *e, struct lane *l)
{
	uint32_t one = l->role == ROLE_SINGLE ? 1 : CWND_ONE,
		 flight = (l->nxt.psn - l->una.psn) & PSN_MASK;

	if (now_us(e) - l->cut_us < l->rtt.srtt_us)
		return;
	l->cut_us = now_us(e);
	if (l->role == ROLE_ACCEPTOR && l->cwnd > flight * one)
		l->cwnd = flight * one;
	l->cwnd = l->cwnd / 2 > CWND_MIN * one ? l->cwnd / 2 : CWND_MIN * one;
}

/* The responder has acknowledged @n packets. */
void far_widen(struct lane *l, uint32_t n)
{
	uint32_t max = CWND_MAX;

	if (l->role == ROLE_SINGLE) {
		l->cwnd += n;
	} else {
		l->cwnd += n * CWND_ONE * CWND_ONE / l->cwnd + 1;
		max *= CWND_ONE;
	}
	if (l->cwnd > max)
		l->cwnd = max;
}

/* Go back: what is sent next is the packet at @psn. */
void far_resume_at(struct engine *e, struct flow *fl, uint32_t psn)
{
	struct lane *l = &fl->lane;
	uint32_t at = l->una.psn;
	struct mark m = l->una;
	struct pkt *d;

	/* the marks between are counted again, from the last true ACK on */
	while (psn_before(at, psn) && (d = window_get(&l->win, e->pool, at))) {
		at = psn_add(at, d->span);
		m.msn += !!(d->flags & PKT_EOM);
		m.ackable = !(d->flags & PKT_ANSWERED);
		m.psn = at;
	}
	mark_resend(l, &m);
	if (psn_after(l->ackreq_end, m.psn))
		l->ackreq_end = m.psn; /* what asked for an ACK is to be sent again */
	announce_resume(e, l, m.psn);
	wheel_cancel(e->wheel, far_timer(e, fl, TIMER_LOSS));
	pace_run(e, fl);
}
