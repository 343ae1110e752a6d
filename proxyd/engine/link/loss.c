// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Which packets of a stream are lost (role OPENER); stream_tx.c sends them again.
 *
 * Whether a missing packet is lost or only late is decided by time, not by counting: the
 * transmission time of the newest packet known to have arrived is kept (@rack_us), and a missing
 * packet whose own latest transmission is older than that by more than a reordering window is lost.
 * A retransmission gets a new time, so the same rule judges it, and its retransmission in turn.
 *
 * Where no packet was ever late, a long reordering window only costs time, for each loss: it is
 * next to nothing (REO_LEAST_US). As soon as one is late (it was not sent again, and arrives after
 * younger ones; or it was, and is reported sooner than its second transmission can have arrived)
 * the window is a quarter of the shortest round trip seen, at least REO_MIN_US, or longer, up to a
 * whole round trip, if the packet was later than that. It shrinks to a sixteenth while missing
 * packets prove to be lost and none is late. Lateness fades (LATE_DECAY_RTTS).
 */
#include "engine/link/link.h"

#define REO_MIN_US	500u
#define REO_LEAST_US	200u /* where no packet is ever late */
#define LATE_MAX_US	0xffffffu
/* How long the peer's reports wait at most for more to tell, see core/due.c. */
#define REPORT_WAIT_US	500u
/* A packet is overdue so much later than a round trip at least (the peer's reports wait). */
#define TAIL_MIN_US	2000u
/* More holes than that are not the last of a burst, but a link that is full. */
#define LAST_HOLES	32u
/* A late packet keeps the window long for so many round trips; then it shrinks. */
#define LATE_DECAY_RTTS 16u
/* What is longer ago counts as that long ago. */
#define TIME_TRAIL_US	(1u << 30)
/* After so many true losses without a late packet the window is halved, and once more. */
#define CALM_LOSSES	16u

/* How much later than younger packets a packet may come, us. */
static uint32_t reo_window(const struct lane *l)
{
	uint32_t base = l->rtt.minrtt_us / (l->opener.true_losses < CALM_LOSSES	      ? 4
					    : l->opener.true_losses < 2 * CALM_LOSSES ? 8
										      : 16);

	if (!l->opener.late_us)
		return MAX(l->rtt.minrtt_us / 64, REO_LEAST_US);
	return MAX(MAX(base, REO_MIN_US), l->opener.late_us);
}

uint32_t loss_overdue_us(const struct engine *e, const struct lane *l)
{
	uint32_t slack = MAX(MAX(reo_window(l), 4 * l->rtt.rttvar_us), TAIL_MIN_US);

	return l->rtt.srtt_us ? l->rtt.srtt_us + slack + peer_late_us(e, l) : 0;
}

/* ---- what a report tells ---- */

/* A packet came @us later than younger ones, and was not lost. */
static void seen_late(struct engine *e, struct lane *l, uint32_t us)
{
	uint32_t now;

	l->opener.true_losses = 0;
	if (us > l->rtt.minrtt_us)
		us = l->rtt.minrtt_us; /* what is later still is sent again in vain */
	us = MIN(us, LATE_MAX_US);
	now = l->opener.late_us;
	if (us > now)
		l->opener.late_us = now = us;
	if (us >= now - now / 4)
		l->opener.late_at = now_us(e);
}

/* Lateness that was not seen again for a while fades. */
static void forget_late(struct engine *e, struct lane *l)
{
	if (!l->opener.late_us || now_us(e) - l->opener.late_at < LATE_DECAY_RTTS * l->rtt.srtt_us)
		return;
	l->opener.late_us -= l->opener.late_us / 4 + 1;
	l->opener.late_at = now_us(e);
}

/* No round trip is shorter. Samples include the time that a report waits, if it is not urgent. */
static uint32_t least_rtt_us(const struct lane *l)
{
	uint32_t slack = l->rtt.minrtt_us / 16 + REPORT_WAIT_US;

	return l->rtt.minrtt_us > slack ? l->rtt.minrtt_us - slack : 0;
}

/* Whether an earlier transmission of @d arrived: no report comes within the shortest round trip. */
static bool spurious(struct engine *e, const struct lane *l, const struct pkt *d)
{
	return (d->flags & PKT_RETX) && now_us(e) - d->xmit < least_rtt_us(l);
}

/* The first packet that was missing has just arrived. */
static void gap_closed(struct engine *e, struct lane *l, const struct pkt *d)
{
	int32_t late = (int32_t)(l->opener.rack_us - d->xmit);

	if (!(d->flags & PKT_SENT))
		return;
	if (spurious(e, l, d)) {
		/* its first transmission time is gone; the window was too short */
		COUNT(e, RETX_SPURIOUS);
		seen_late(e, l, reo_window(l) + l->rtt.minrtt_us / 8);
	} else if (d->flags & PKT_RETX) {
		l->opener.true_losses += l->opener.true_losses < UINT8_MAX;
	} else if (late > 0) {
		seen_late(e, l, (uint32_t)late + (uint32_t)late / 4);
	}
}

/* The packet that ends at @end and begins at or after @from. A READ is kept by its first PSN. */
static struct pkt *ending_at(struct engine *e, const struct lane *l, struct wire_psn from,
			     struct wire_psn end)
{
	struct pkt *d = lane_pkt(e, l, psn_sub(end, 1)), *found = NULL;

	if (d)
		return d;
	while (psn_before(from, end) && (d = lane_pkt_next(e, l, from, end, &from))) {
		from = psn_add(from, d->span);
		found = psn_is(from, end) ? d : NULL;
	}
	return found;
}

/* A time that nothing moves for half of what 32 bits hold would seem to lie ahead: it trails. */
void loss_trail(struct engine *e, struct lane *l)
{
	if (now_us(e) - l->opener.rack_us > TIME_TRAIL_US)
		l->opener.rack_us = now_us(e) - TIME_TRAIL_US;
}

static void came(struct lane *l, const struct pkt *d)
{
	if ((int32_t)(d->xmit - l->opener.rack_us) > 0)
		l->opener.rack_us = d->xmit;
}

/* A packet that ends at @end and begins at or after @from has come; @just: just now. */
static void arrived(struct engine *e, struct lane *l, struct wire_psn from, struct wire_psn end,
		    bool just)
{
	struct pkt *d = ending_at(e, l, from, end);

	if (!d || !(d->flags & PKT_SENT) || spurious(e, l, d))
		return;
	if (!(d->flags & PKT_RETX) && just && psn_after(end, l->overlap))
		rtt_sample(e, &l->rtt, now_us(e) - d->xmit);
	came(l, d);
}

/* What was sent before @before is lost if missing; if sent again already, before @again. */
struct deadline {
	uint32_t before, again;
};

/* When what shows that @d, at @psn, is lost was sent: it, or the last of its group, which parity
 * follows that may make it (core/stream_parity.c). */
static uint32_t sent_at(struct engine *e, const struct lane *l, const struct pkt *d,
			struct wire_psn psn)
{
	const struct pkt *last;
	uint32_t end;

	if ((d->flags & PKT_RETX) || !stream_parity_on(e, l))
		return d->xmit;
	end = PARITY_GROUP * link_depth(e, l) - 1;
	last = lane_pkt(e, l, (struct wire_psn){psn.v | end});
	return last && (last->flags & (PKT_SENT | PKT_RETX)) == PKT_SENT ? last->xmit : d->xmit;
}

static bool too_old(const struct pkt *d, uint32_t sent, const struct deadline *t)
{
	return (int32_t)(sent - t->before) < 0 ||
	       ((d->flags & PKT_RETX) && (int32_t)(sent - t->again) < 0);
}

/* Packets in [@from, @end) that are too old are lost. Returns when the oldest other was sent. */
static uint32_t condemn_older(struct engine *e, struct lane *l, struct wire_psn from,
			      struct wire_psn end, const struct deadline *t, uint32_t none)
{
	struct wire_psn psn = from;
	uint32_t oldest = none;
	struct pkt *d;

	while (psn_before(psn, end) && (d = lane_pkt_next(e, l, psn, end, &psn))) {
		if ((d->flags & PKT_SENT) && !(d->flags & PKT_LOST)) {
			uint32_t sent = sent_at(e, l, d, psn);

			if (too_old(d, sent, t))
				held_lose(e, &l->held, d, psn);
			else if ((int32_t)(sent - oldest) < 0)
				oldest = sent;
		}
		psn = psn_add(psn, d->span);
	}
	return oldest;
}

/*
 * The same for as many packets as a report may name: of those on a page that lies within the range
 * as a whole the oldest is remembered, and until that one is lost the page is not looked at again.
 * So a report costs what it finds to be lost, and a moment for each 256 packets.
 */
static void condemn_range(struct engine *e, struct lane *l, struct wire_psn from,
			  struct wire_psn end, const struct deadline *t)
{
	struct wire_psn psn = from;
	uint32_t now = now_us(e);
	uint32_t latest = (int32_t)(t->again - t->before) > 0 ? t->again : t->before;

	while (psn_before(psn, end)) {
		struct wire_psn next = psn_add(psn, WINDOW_PAGE_PSNS - psn.v % WINDOW_PAGE_PSNS);
		uint32_t oldest;
		bool whole = psn.v % WINDOW_PAGE_PSNS == 0 && !psn_after(next, end);
		uint32_t *stamp = whole ? window_stamp(&l->held.win, e->pool, psn.v) : NULL;

		if (!stamp || !*stamp || (int32_t)(*stamp - latest) < 0) {
			if (psn_after(next, end))
				next = end;
			oldest = condemn_older(e, l, psn, next, t, now);
			if (stamp)
				engine_change(e, stamp, sizeof(*stamp));
			if (stamp)
				*stamp = oldest | 1; /* 0: not known */
		}
		psn = next;
	}
}

/* The packets in @hole of the report @r are missing. A packet is lost if it was sent by more than
 * the reordering window @reo before one that has arrived, or so long ago that it would have
 * arrived. Of the last holes of a burst those that were sent again have nothing behind them that
 * could arrive: they are lost when they are overdue, so that they are tried in each round trip. */
static void judge(struct engine *e, struct lane *l, const struct report *r,
		  const struct psn_range *hole, uint32_t reo)
{
	uint32_t late = now_us(e) - l->rtt.srtt_us - reo;
	struct deadline t = {.before = l->opener.rack_us - reo,
			     .again = now_us(e) - loss_overdue_us(e, l)};

	if ((int32_t)(late - l->opener.rack_us) > 0)
		late = l->opener.rack_us + 1;
	if ((int32_t)(late - t.before) > 0)
		t.before = late;
	if (!l->rtt.srtt_us || psn_before(l->nxt.psn, l->epsn.psn) || r->nholes > LAST_HOLES)
		t.again = t.before;
	condemn_range(e, l, (struct wire_psn){hole->from}, (struct wire_psn){hole->end}, &t);
}

void loss_give_up(struct engine *e, struct lane *l, struct wire_psn from, struct wire_psn end,
		  uint32_t older)
{
	struct deadline t = {.before = now_us(e) - older + 1};

	t.again = t.before;
	condemn_range(e, l, from, end, &t);
}

/* The packet at @psn arrived, and the peer could not keep it. That says nothing of the latest
 * transmission when it is too young: then the peer has refused an earlier one. Kept or not, it
 * came, so what was sent long before it and is missing still is lost. */
static void refused(struct engine *e, struct lane *l, struct wire_psn psn)
{
	struct pkt *d;

	if (psn_before(psn, l->una.psn) || !psn_before(psn, l->nxt.psn))
		return;
	d = lane_pkt(e, l, psn);
	if (!d || !(d->flags & PKT_SENT) || now_us(e) - d->xmit < least_rtt_us(l))
		return;
	came(l, d);
	held_lose(e, &l->held, d, psn);
}

/* The contiguous part of what the peer has grows up to @cum. What parity has @repaired
 * (stream_parity.c) was lost, and says nothing of how late packets may be. */
static void contiguous(struct engine *e, struct lane *l, struct wire_psn cum, bool repaired)
{
	struct pkt *first = lane_pkt(e, l, l->reached);

	if (first && !repaired)
		gap_closed(e, l, first);
	/* its last packet may have waited long for the one before it */
	arrived(e, l, l->reached, cum, false);
}

/* What is before a hole has come, perhaps just now: a repair amid others changes neither end. */
static void before_hole(struct engine *e, struct lane *l, struct wire_psn from)
{
	const struct pkt *d;

	if (!psn_after(from, l->reached) || !psn_before(from, l->nxt.psn))
		return;
	d = lane_pkt(e, l, psn_sub(from, 1));
	if (d && (d->flags & PKT_SENT) && !spurious(e, l, d))
		came(l, d);
}

void loss_judge(struct engine *e, struct lane *l, const struct report *r, struct wire_psn cum)
{
	/* what it has beyond that is no packet of the stream */
	struct wire_psn hi = {r->hi};

	if (psn_after(hi, l->epsn.psn))
		hi = l->epsn.psn;
	loss_trail(e, l);
	forget_late(e, l);
	if (psn_after(cum, l->reached))
		contiguous(e, l, cum, r->repaired);
	if (psn_after(hi, l->opener.reached_hi))
		arrived(e, l,
			psn_before(l->opener.reached_hi, l->una.psn) ? l->una.psn
								     : l->opener.reached_hi,
			hi, true);
	else if (psn_before(hi, l->opener.reached_hi))
		loss_give_up(e, l, hi, l->opener.reached_hi, 0); /* the peer released it */
	l->opener.reached_hi = hi;
	for (uint8_t i = 0; i < r->nholes; i++)
		before_hole(e, l, (struct wire_psn){r->hole[i].from});
	for (uint8_t i = 0; i < r->nholes; i++)
		judge(e, l, r, &r->hole[i], reo_window(l));
	for (uint8_t i = 0; i < r->nagain; i++)
		refused(e, l, (struct wire_psn){r->again[i]});
	/* Silence is over: what was sent long before this report would be in it. (Without silence
	 * this is not done: if the round trip had become longer, that would never end.) */
	if (l->backoff && l->rtt.srtt_us && psn_before(hi, l->nxt.psn))
		loss_give_up(e, l, hi, l->nxt.psn, loss_overdue_us(e, l));
}
