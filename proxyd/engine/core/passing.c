// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What passes by when it floods the link.
 *
 * Requests of lanes that are not held yet pass as fast as their hosts send, at the rate of the LAN.
 * When many connections begin at once, or an engine begins anew, that is more than the link
 * carries: its queue is full, most of it is lost, what is held and paced waits behind it, and each
 * host sends all again when its timer fires. Hardly any lane hears the ACKs that learning needs.
 *
 * When that lasts (rate_flooded()), data passes at the rate that the link was seen to carry, at
 * half of the pace while held lanes wait for their turn. The rest is dropped, as the queue would
 * do, only without a queue. It is lanes that may pass, not packets: a responder takes what follows
 * a missing packet as little as the missing one. So of a lane with a gap nothing passes until its
 * host goes back, but for one packet that asks for an ACK: it makes the responder ask for what is
 * missing, and the host go back in a round trip, not at its timer. A lane that is just being sent
 * when there is no room is taken for one with a gap: most are.
 *
 * Who came back in vain once passes when he comes again, whatever the rate, so that no host's
 * retries are used up by us. Requests without data pass: they are small, and ask for something.
 */
#include "engine/core/roles.h"

/* lane.watch.passing; 0: nothing is known, because there was no flood. */
enum {
	PASSING_GAP = 1 << 0,	 /* something did not pass, and the host does not know it yet */
	PASSING_CALLED = 1 << 1, /* but will be asked to go back */
	PASSING_BACK = 1 << 2,	 /* the host has gone back to it */
	PASSING_VAIN = 1 << 3,	 /* it has done so before, and the packet did not pass */
	PASSING_WHOLE = 1 << 4,	 /* all has passed */
};

/* Whether the host begins with @f, or goes back to it. */
static bool goes_back(const struct lane *l, const struct frame *f)
{
	return !psn_known(l->epsn.psn) || psn_before(wire_psn_of(f), l->watch.went_on) ||
	       (l->una_sure && psn_is(l->una.psn, wire_psn_of(f)));
}

bool passing_gap(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;

	if (fl->side != PORT_LAN || !e->cfg.wan_auto || flow_let_go(e, fl) ||
	    !rate_flooded(&link_at(e, e->via)->rate, e->now)) {
		l->watch.passing = 0;
		return false;
	}
	if (goes_back(l, f)) {
		if (l->watch.passing & PASSING_GAP)
			l->watch.passing = PASSING_BACK | (l->watch.passing & PASSING_VAIN);
		else if (!l->watch.passing)
			l->watch.passing = PASSING_WHOLE;
		return false;
	}
	if (!l->watch.passing)
		l->watch.passing =
			passing_tokens(e, link_at(e, e->via)) > 0 ? PASSING_WHOLE : PASSING_GAP;
	return l->watch.passing & PASSING_GAP;
}

/* Whether @f, of a lane in a flood, passes. */
static bool passes(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct wan_link *k = link_at(e, e->via);
	struct lane *l = &fl->lane;

	if (l->watch.passing & PASSING_GAP) {
		if ((l->watch.passing & PASSING_CALLED) || !(f->ackreq || f->op->flags & OPF_EOM))
			return false;
		l->watch.passing |= PASSING_CALLED;
		return true;
	}
	if (passing_tokens(e, k) <= 0 && !(l->watch.passing & PASSING_VAIN)) {
		l->watch.passing =
			PASSING_GAP | (l->watch.passing & PASSING_BACK ? PASSING_VAIN : 0);
		return false;
	}
	k->passing -= f->len;
	l->watch.passing = PASSING_WHOLE;
	return true;
}

bool passing_may(struct engine *e, struct flow *fl, const struct frame *f)
{
	if (!fl->lane.watch.passing || !f->payload_len)
		return true;
	if (!passes(e, fl, f)) {
		COUNT(e, FLOOD_DROPPED);
		return false;
	}
	passing_sent(e, f->len);
	return true;
}
