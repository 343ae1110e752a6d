// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Only what the opener has named is delivered (role ACCEPTOR, with wan-check).
 *
 * Anybody who reaches the WAN can send a request with the right addresses, queue pair and ICRC. So
 * the opener tells by reports, which are authenticated, the ICRC of each packet that it has sent
 * (names_tx.c). A PSN of the stream is in one of four states, which its descriptor shows:
 *
 *	nothing known		no PKT_USED, no PKT_NAMED
 *	held, without a name	PKT_USED: a guess. It is not delivered and not reported
 *	named, not here		PKT_NAMED: only the packet of that name is taken
 *	held and named		both: it is part of the stream, see stream_rx.c
 *
 * The stream's end and its holes count only what is held and named. So a forged packet far ahead
 * makes no hole, and one that takes the place of a true packet is found out when the name comes: it
 * is dropped, and the packet is asked for again at once, which then nothing else can stand in for.
 * A blind forger costs a round trip where he guesses right, and nothing else.
 *
 * Names come a little after their packets, and may come before them. Guesses are taken as far as
 * GUESS_AHEAD beyond the newest name. They are the first to go when memory is short, and go when no
 * name came for GUESS_NS. What names are missing is kept like what packets are missing, as holes,
 * between @epsn and @named, and the opener is told.
 *
 * Packets without names come from an opener, too, that has let go of the lane while its CLOSE was
 * lost: if guesses wait for longer than names need, a report goes out, which it answers. If it is
 * gone altogether, no name ever comes: a peer that was silent for PEER_GONE_NS is believed to be no
 * more, and what comes then passes, as it does where there is no appliance. Where the responder
 * knows other numbers (announce/) it must not pass, and an opener that lives still could not agree
 * anew: there the peer has as long as it waits itself before it gives up custody.
 */
#include "engine/announce/announce.h"
#include "engine/core/holes.h"
#include "engine/link/link.h"
#include "wire/bytes.h"
#include "wire/icrc.h"

/* So far beyond the newest name packets are held without one: what a fast link carries while a
 * report with names takes a slow path. */
#define GUESS_AHEAD   65536
/* Names are later than packets by less than this, but for loss. */
#define GUESS_LATE_US 2000u
#define GUESS_US      2000000u
#define PEER_GONE_NS  (10 * NSEC_PER_SEC)
/* A packet is on its way for less than this. */
#define BEGINS_NS     NSEC_PER_SEC

void names_begin_rx(struct lane *l, uint32_t start)
{
	l->named = start;
	l->unnamed = POOL_NONE;
	l->guesses = l->guess_us = 0;
}

static uint32_t icrc_bytes(const struct frame *f)
{
	return get_be32(f->data + f->icrc);
}

/* Whether the lane has begun so lately that packets may still be on their way that its host sent
 * past the opener before. The host has sent them again, with another IP identification, and only
 * those have a name. */
static bool begins(const struct engine *e, const struct lane *l)
{
	return e->now - l->opened < BEGINS_NS;
}

/* @f is not the packet that is, or will be, named: count it as @what where it shows a forger. */
static bool strange(struct engine *e, const struct lane *l, const struct frame *f,
		    enum engine_counter what)
{
	if (!icrc_ok(f)) {
		COUNT(e, BAD_ICRC);
		return false;
	}
	e->counters[begins(e, l) ? EC_DUP_STREAM : what]++;
	return true;
}

static bool peer_gone(struct engine *e, const struct lane *l)
{
	uint64_t after = PEER_GONE_NS;

	if (announce_numbered(e, l) && e->cfg.peer_timeout_ns > after)
		after = e->cfg.peer_timeout_ns;
	if (announce_numbered(e, l) && e->cfg.responder_timeout_ns > after)
		after = e->cfg.responder_timeout_ns;
	return !e->peer_up[l->peer] && e->now - e->peer_since[l->peer] >= after;
}

/* The opener is no more. What came in order is still delivered. */
static void go_on_alone(struct engine *e, struct flow *fl, const struct frame *f)
{
	bool numbered = announce_numbered(e, &fl->lane);

	lane_drain(e, fl, REASON_PEER_LOST);
	if (numbered)
		COUNT(e, UNNAMED);
	else
		engine_pass(e, fl->side, f);
}

enum names_verdict names_judge(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	struct pkt *d;

	if (!l->check)
		return NAMES_RIGHT;
	d = window_slot(&l->win, e->pool, f->psn);
	if (d && d->flags & PKT_NAMED) {
		if (d->name == icrc_bytes(f))
			return NAMES_RIGHT;
		strange(e, l, f, EC_FORGED);
		return NAMES_WRONG;
	}
	if (d && d->flags & PKT_USED) {
		/* two for one PSN: which is the true one will be known when its name is */
		if (d->name == icrc_bytes(f)) {
			COUNT(e, DUP_STREAM);
		} else if (strange(e, l, f, EC_UNNAMED)) {
			engine_change(e, d, sizeof(*d));
			d->other = true; /* lane_send_rest() */
		}
		return NAMES_WRONG;
	}
	if (peer_gone(e, l)) {
		go_on_alone(e, fl, f);
		return NAMES_WRONG;
	}
	if (psn_diff(f->psn, l->named) >= GUESS_AHEAD) {
		COUNT(e, UNNAMED);
		/* an opener that has no such lane any more says so again */
		progress_due(e, fl, false);
		return NAMES_WRONG;
	}
	return NAMES_LATER;
}

void names_guess(struct engine *e, struct lane *l)
{
	if (!l->guesses++)
		l->guess_us = now_us(e);
}

void names_drop_guesses(struct engine *e, struct flow *fl, uint32_t from, uint32_t end)
{
	struct lane *l = &fl->lane;
	struct pkt *d;

	while (l->guesses && psn_before(from, end) &&
	       (d = window_next(&l->win, e->pool, from, end, &from))) {
		if (!(d->flags & PKT_NAMED)) {
			COUNT(e, UNNAMED);
			lane_forget(e, fl, d, from);
		}
		from = psn_add(from, 1);
	}
}

/* Remember the name of the packet at @psn, which is not here. False when there is no memory. */
static bool remember(struct engine *e, struct flow *fl, uint32_t psn, uint32_t name)
{
	struct lane *l = &fl->lane;

	if (psn_before(psn, l->end) && !holes_has(holes_at(e->pool, l->holes), psn))
		return true; /* inside of a READ's range */
	do {
		if (window_name(&l->win, e->pool, POOL_TRANSIT, psn, name))
			return true;
	} while (stream_rx_make_room(e, fl, psn == l->epsn.psn));
	return false;
}

/* The opener has sent the packet @name as @psn. False when that cannot be kept in mind. */
static bool take(struct engine *e, struct flow *fl, uint32_t psn, uint32_t name)
{
	struct lane *l = &fl->lane;
	struct pkt *d = window_slot(&l->win, e->pool, psn);

	if (!d || !(d->flags & PKT_USED))
		return remember(e, fl, psn, name);
	if (d->flags & PKT_NAMED)
		return true;
	if (d->name == name) {
		stream_rx_named(e, fl, d, psn);
		return true;
	}
	e->counters[begins(e, l) ? EC_DUP_STREAM : EC_FORGED]++;
	lane_forget(e, fl, d, psn);
	stream_rx_refuse(e, fl, psn);
	return remember(e, fl, psn, name);
}

/* Names of [@from, @end) are known from now on; there is room for that. */
static void known(struct engine *e, struct lane *l, uint32_t from, uint32_t end)
{
	uint32_t before = l->named;

	if (psn_after(end, before))
		l->named = end;
	if (psn_after(from, before))
		holes_open(e->pool, l->unnamed, before, from);
	else if (psn_before(from, before) && l->unnamed != POOL_NONE)
		holes_fill(e->pool, &l->unnamed, from, end);
}

/* Whether the lane can be at [@from, @end) now. */
static bool near(const struct lane *l, uint32_t from, uint32_t end)
{
	return psn_before(l->epsn.psn, end) && psn_diff(from, l->una.psn) > -(int32_t)WINDOW_SPAN &&
	       psn_diff(from, l->una.psn) < (int32_t)(WINDOW_SPAN - REPORT_NAMED) &&
	       psn_diff(end, from) > 0 && psn_diff(end, from) <= (int32_t)(SPAN_MAX + REPORT_NAMED);
}

void names_rx(struct engine *e, struct flow *fl, const struct report *r)
{
	struct lane *l = &fl->lane;
	uint32_t from = r->cum, end = r->hi;

	if (!l->check || l->state != LANE_HELD || l->refusal || !near(l, from, end))
		return;
	if (psn_before(from, l->epsn.psn))
		from = l->epsn.psn;
	if ((l->unnamed != POOL_NONE || psn_after(from, l->named)) &&
	    !holes_room(e->pool, &l->unnamed, l->named, from, end)) {
		COUNT(e, HOLES);
		return;
	}
	for (uint32_t i = (from - r->cum) & PSN_MASK; i < r->nnames; i++) {
		uint32_t psn = psn_add(r->cum, i);

		if (!take(e, fl, psn, r->name[i])) {
			end = psn;
			break;
		}
	}
	if (psn_before(from, end))
		known(e, l, from, end);
	if (l->unnamed != POOL_NONE && !holes_at(e->pool, l->unnamed)->n)
		holes_drop(e->pool, &l->unnamed); /* a gap was prepared for, and none came */
	l->guess_us = now_us(e);
	stream_rx_deliver(e, fl);
}

void names_skipped(struct engine *e, struct lane *l, uint32_t from, uint32_t end)
{
	if (!l->check)
		return;
	if (l->unnamed != POOL_NONE)
		holes_fill(e->pool, &l->unnamed, from, end);
	if (psn_before(l->named, end))
		l->named = end;
	window_unname(&l->win, e->pool, from, end);
}

static uint32_t waited_us(const struct engine *e, const struct lane *l)
{
	return l->guesses ? now_us(e) - l->guess_us : 0;
}

bool names_missing(const struct engine *e, const struct lane *l)
{
	return l->check && (l->unnamed != POOL_NONE || waited_us(e, l) >= GUESS_LATE_US);
}

uint32_t names_tell(struct engine *e, const struct lane *l, struct report *r, uint32_t from,
		    uint32_t to)
{
	uint8_t n;

	r->names = l->check;
	if (!l->check)
		return to;
	r->named = l->named;
	n = holes_show(holes_at(e->pool, l->unnamed), from, REPORT_UNNAMED, r->unnamed);
	if (n == REPORT_UNNAMED && psn_before(r->unnamed[n - 1].end, to))
		to = r->unnamed[n - 1].end;
	while (n && !psn_before(r->unnamed[n - 1].from, to))
		n--;
	r->nunnamed = n;
	return to;
}

uint64_t names_wait(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	uint32_t waited = waited_us(e, l);

	if (!l->check || !l->guesses)
		return 0;
	if (waited >= GUESS_US) {
		names_drop_guesses(e, fl, l->epsn.psn, psn_add(l->una.psn, WINDOW_SPAN));
		return 0;
	}
	return e->now +
	       ((waited < GUESS_LATE_US ? GUESS_LATE_US : GUESS_US) - waited) * NSEC_PER_USEC;
}

void names_end(struct engine *e, struct lane *l)
{
	if (!l->check)
		return;
	holes_drop(e->pool, &l->unnamed);
	if (psn_before(l->epsn.psn, l->named))
		window_unname(&l->win, e->pool, l->epsn.psn, l->named);
}
