// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The opener names what it sends (role OPENER), so that the peer can tell it from what somebody
 * else has sent in its name (names_rx.c).
 *
 * The name of a packet is its ICRC, as the four bytes stand on the wire. The ICRC covers all that
 * matters: addresses, queue pair, PSN, opcode, headers, payload. Packets can be forged, with a
 * right ICRC, by whoever reaches the WAN; a NAMES report cannot, since reports are authenticated.
 * (Who can also read the WAN can make another packet with the same ICRC: a CRC is no signature.
 * Against him the link itself must be protected.)
 *
 * Names go out in the tick, behind the packets: at once when there were none for a while, else
 * after REPORT_NAMED packets, or NAMES_NS, or NAMES_SOON_NS where somebody waits: at the end of a
 * message for whose true ACK the host does (policy honest or off; at once), or of a storage command
 * or its response. A report names packets of consecutive PSNs; a READ that
 * takes several PSNs ends it. As the packets are in custody, any of them can be named again at
 * any time.
 *
 * Reports get lost. PROGRESS tells gaps between the names that the peer has, some at a time from
 * the lowest to the highest, over and over. Packets in them are not judged lost (loss.c), they are
 * named again: each gap once in a round, which takes a little longer than a round trip, and not
 * before a report could have told that the names have arrived. A round begins at whatever gap is
 * told then (@renamed_from), and goes on from the lowest one after the highest (@renamed). If the
 * newest names are lost no gap shows it: the next report that comes a round trip later does, or the
 * stream's timer fires (names_overdue()).
 *
 * A peer that does not say in PROGRESS what names it has does not want any.
 */
#include "engine/announce/announce.h"
#include "engine/link/link.h"
#include "wire/bytes.h"

/* One report of so few names at a time costs more than the packets. */
#define NAMES_SOON_NS (20 * NSEC_PER_USEC)

/* Name packets of consecutive PSNs, the first at or after @psn, all before @end. Returns where to
 * go on. */
static uint32_t name_some(struct engine *e, struct flow *fl, uint32_t psn, uint32_t end)
{
	struct lane *l = &fl->lane;
	struct report r = {
		.type = REPORT_NAMES, .lane = flow_index(e, fl), .gen = l->gen, .key = fl->key};
	struct pkt *d = window_next(&l->win, e->pool, psn, end, &psn);

	if (!d)
		return end;
	r.cum = psn;
	while (d && r.nnames < REPORT_NAMED) {
		r.name[r.nnames++] = get_be32(lane_packet(e, d) + d->len - ICRC_LEN);
		psn = psn_add(psn, d->span);
		if (d->span != 1 || !psn_before(psn, end))
			break;
		d = window_follow(&l->win, e->pool, d, psn);
	}
	r.hi = psn;
	e->sink.report(e->sink.ctx, (unsigned int)l->peer, &r);
	return psn;
}

/* Name [@from, @end) again, as far as one step goes. Returns where it ended. */
static uint32_t name_again(struct engine *e, struct flow *fl, uint32_t from, uint32_t end)
{
	for (uint32_t i = 0; i < NAMES_ONCE && psn_before(from, end); i++) {
		uint32_t next = name_some(e, fl, from, end);

		e->counters[EC_NAMED_AGAIN] += (next - from) & PSN_MASK;
		from = next;
	}
	return from;
}

void names_begin(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	l->naming = l->check;
	l->named = l->named_heard = l->renamed = l->renamed_from = l->una.psn;
	l->renamed_us = now_us(e);
	names_due(e, fl);
}

void names_due(struct engine *e, struct flow *fl)
{
	if (fl->lane.naming && psn_before(fl->lane.named, fl->lane.nxt.psn))
		report_schedule(e, fl, &fl->lane.clock, false);
}

/* How long names may wait for more of them. Not at all when the host waits for the true ACK of the
 * message that was sent last, and nothing follows it; nor much when that message is a storage
 * command, or its response. */
static uint64_t names_wait_ns(struct engine *e, struct flow *fl)
{
	const struct lane *l = &fl->lane;
	const struct pkt *d = NULL;

	if (l->nxt.psn == l->epsn.psn)
		d = window_get(&l->win, e->pool, psn_sub(l->nxt.psn, 1));
	if (!d || !(d->flags & PKT_EOM))
		return NAMES_NS;
	if (l->policy != POLICY_EARLY)
		return 0;
	return !(d->flags & PKT_ANSWERED) && announce_on(e, fl) ? NAMES_SOON_NS : NAMES_NS;
}

/*
 * While packets of storage commands get lost, so do names, and a packet without a name waits for a
 * round trip. So what was named goes out once more, not in the same datagram: with the next names,
 * or NAMES_NS later. Returns when it wants to be called again, 0 for never.
 */
static uint64_t name_twice(struct engine *e, struct flow *fl, bool next)
{
	struct lane *l = &fl->lane;
	uint32_t *twice = announce_lossy(e, fl) ? announce_twice(e, fl) : NULL;

	if (!twice)
		return 0;
	if (!psn_in(*twice, l->una.psn, l->named))
		*twice = psn_before(*twice, l->una.psn) ? l->una.psn : l->named;
	if (*twice == l->named)
		return 0;
	if (!next && e->now - l->clock.last < NAMES_NS)
		return l->clock.last + NAMES_NS;
	*twice = name_again(e, fl, *twice, l->named);
	return 0;
}

uint64_t names_report(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	uint64_t wait = names_wait_ns(e, fl);
	bool now = e->now - l->clock.last >= wait;
	uint32_t told = 0;

	if (!l->naming || l->reopen || !e->peer_up[l->peer])
		return 0;
	if (psn_before(l->named, l->una.psn))
		l->named = l->una.psn;
	if (now && psn_before(l->named, l->nxt.psn))
		name_twice(e, fl, true);
	while (psn_before(l->named, l->nxt.psn) && told < NAMES_ONCE &&
	       (now || psn_diff(l->nxt.psn, l->named) >= (int32_t)REPORT_NAMED)) {
		l->named = name_some(e, fl, l->named, l->nxt.psn);
		told++;
	}
	if (told)
		report_told(e, &l->clock);
	if (!psn_before(l->named, l->nxt.psn))
		return name_twice(e, fl, false);
	return told < NAMES_ONCE ? l->clock.last + wait : e->now;
}

/* How long after packets were sent the peer knows their names, at most, if none are lost; us. */
static uint32_t overdue_us(const struct engine *e, const struct lane *l)
{
	uint32_t us = loss_overdue_us(e, l);

	return us ? us : (uint32_t)(lane_rto_ns(l) / NSEC_PER_USEC);
}

/* Whether the packets from @from on were sent so lately that the peer's report is older than what
 * it could say of them. */
static bool too_young(struct engine *e, const struct lane *l, uint32_t from, uint32_t end)
{
	struct pkt *d = window_next(&l->win, e->pool, from, end, &from);

	return !d || now_us(e) - d->xmit < l->rtt.minrtt_us;
}

void names_overdue(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	uint32_t from = psn_after(l->named_heard, l->una.psn) ? l->named_heard : l->una.psn;

	if (!l->naming || !psn_before(from, l->named))
		return;
	l->renamed_us = now_us(e);
	name_again(e, fl, from, l->named);
}

bool names_renamed(const struct lane *l, uint32_t psn)
{
	bool below = psn_before(psn, l->renamed), above = !psn_before(psn, l->renamed_from);

	return psn_before(l->renamed, l->renamed_from) ? below || above : below && above;
}

/* What of @gap has not been named again in this round. */
static struct psn_range not_renamed(const struct lane *l, struct psn_range gap)
{
	bool wrapped = psn_before(l->renamed, l->renamed_from);

	if ((wrapped || !psn_before(gap.from, l->renamed_from)) && psn_before(gap.from, l->renamed))
		gap.from = l->renamed;
	if ((wrapped || psn_before(gap.from, l->renamed_from)) &&
	    psn_after(gap.end, l->renamed_from))
		gap.end = l->renamed_from;
	return gap;
}

/* The peer lacks the names of @gap. */
static void gap_heard(struct engine *e, struct flow *fl, struct psn_range gap)
{
	struct lane *l = &fl->lane;
	bool below;

	if (l->renamed == l->renamed_from || now_us(e) - l->renamed_us > overdue_us(e, l)) {
		l->renamed_from = l->renamed = gap.from;
		l->renamed_us = now_us(e);
	}
	gap = not_renamed(l, gap);
	if (psn_after(gap.end, l->named))
		gap.end = l->named;
	if (!psn_before(gap.from, gap.end) || too_young(e, l, gap.from, gap.end))
		return;
	below = psn_before(gap.from, l->renamed_from);
	l->renamed = name_again(e, fl, gap.from, gap.end);
	if (below && l->renamed == l->renamed_from)
		l->renamed = psn_sub(l->renamed, 1); /* all round; the same would be: nothing yet */
}

void names_heard(struct engine *e, struct flow *fl, const struct report *r)
{
	struct lane *l = &fl->lane;

	l->naming = l->naming && r->names;
	if (!l->naming)
		return;
	l->named_heard = psn_after(r->named, l->named) ? l->named : r->named;
	for (uint8_t i = 0; i < r->nunnamed; i++)
		gap_heard(e, fl, r->unnamed[i]);
	/* the newest are lost, of which no gap tells; and nothing was named since */
	if (psn_before(l->named_heard, l->named) &&
	    e->now - l->clock.last > overdue_us(e, l) * NSEC_PER_USEC) {
		names_overdue(e, fl);
		report_told(e, &l->clock);
	}
}
