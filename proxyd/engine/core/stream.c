// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the two streams of a lane share: its requests, and the responses to them. One end keeps
 * packets until they have arrived (struct held), the other reports what is missing (struct gaps).
 */
#include "engine/core/core.h"

/* Share of bytes lost from which on what is sent again goes twice. */
#define TWICE_FROM 2e-4

void held_init(struct held *h)
{
	window_init(&h->win);
	pool_log_init(&h->log);
}

/* The bytes at @loc, the latest of the log, are the packet number @n. */
static struct pkt *put(struct engine *e, struct held *h, pool_loc loc, uint32_t len, uint32_t n)
{
	struct pkt *d = window_put(&h->win, e->pool, POOL_TRANSIT, n);

	if (!d) {
		pool_unappend(e->pool, &h->log, loc, len);
		return NULL;
	}
	d->loc = loc;
	d->len = (uint16_t)len;
	d->span = 1;
	h->packets++;
	h->bytes += len;
	return d;
}

struct pkt *held_add(struct engine *e, struct held *h, uint32_t n, const uint8_t *data,
		     uint32_t len)
{
	pool_loc loc = pool_append(e->pool, POOL_TRANSIT, &h->log, len);

	if (loc == POOL_NONE)
		return NULL;
	memcpy(pool_ptr(e->pool, loc), data, len);
	return put(e, h, loc, len, n);
}

struct pkt *held_add_checked(struct engine *e, struct held *h, const struct frame *f, bool *bad)
{
	pool_loc loc = pool_append(e->pool, POOL_TRANSIT, &h->log, f->len);

	*bad = loc != POOL_NONE && !icrc_copy_ok(pool_ptr(e->pool, loc), f);
	if (*bad)
		pool_unappend(e->pool, &h->log, loc, f->len);
	return *bad || loc == POOL_NONE ? NULL : put(e, h, loc, f->len, f->psn);
}

void held_del(struct engine *e, struct held *h, struct pkt *d, uint32_t n)
{
	h->packets--;
	h->bytes -= d->len;
	h->lost -= !!(d->flags & PKT_LOST);
	if (d->flags & PKT_SLOT)
		pool_slot_put(e->pool, d->loc);
	else
		pool_release(e->pool, &h->log, d->loc, d->len);
	window_del(&h->win, e->pool, n);
}

void held_drop(struct engine *e, struct held *h, uint32_t from, uint32_t end)
{
	struct pkt *d;

	for (uint32_t n = from;
	     h->packets && psn_before(n, end) && (d = window_next(&h->win, e->pool, n, end, &n));
	     n = psn_add(n, 1))
		held_del(e, h, d, n);
	if (!h->packets)
		pool_log_close(e->pool, &h->log);
}

void held_lose(struct engine *e, struct held *h, struct pkt *d, struct wire_psn psn)
{
	if (d->flags & PKT_LOST)
		return;
	engine_change(e, d, sizeof(*d));
	d->flags |= PKT_LOST;
	if (!h->lost++ || psn_before(psn, h->lost_from))
		h->lost_from = psn;
}

/* ---- the sending end ---- */

void stream_sent(struct engine *e, struct flow *fl, struct held *h, struct pkt *d, bool wan)
{
	engine_change(e, d, sizeof(*d));
	d->xmit = now_us(e);
	if (d->flags & PKT_SENT) {
		d->flags |= PKT_RETX;
		fl->lane.count.retx++;
		e->counters[wan ? EC_RETX_WAN : EC_RETX_LAN]++;
	}
	h->lost -= !!(d->flags & PKT_LOST);
	d->flags = (d->flags | PKT_SENT) & ~PKT_LOST;
}

int stream_tx_pkt(struct engine *e, struct flow *fl, const struct pkt *d, enum engine_port to)
{
	const uint8_t *data = lane_packet(e, d);

	return d->flags & PKT_OWN ? engine_tx_own(e, fl, data, d->len)
				  : engine_tx_kept(e, fl, to, data, d->len);
}

bool stream_send(struct engine *e, struct flow *fl, struct held *h, struct pkt *d,
		 enum engine_port to)
{
	if (stream_tx_pkt(e, fl, d, to))
		return false;
	pace_sent(e, d->len);
	stream_sent(e, fl, h, d, true);
	return true;
}

bool stream_send_lost(struct engine *e, struct flow *fl, struct held *h, struct wire_psn from,
		      struct wire_psn end, enum engine_port to, uint32_t *budget)
{
	struct wire_psn psn = psn_before(h->lost_from, from) ? from : h->lost_from;
	/* should that be lost again, all behind it would wait for another round trip */
	bool twice = link_loss(e, &fl->lane) >= TWICE_FROM;
	struct pkt *d;

	while (h->lost && psn_before(psn, end) && (d = held_next(e, h, psn, end, &psn))) {
		if (d->flags & PKT_LOST) {
			h->lost_from = psn;
			if (!*budget || !pace_may_send(e) || !stream_send(e, fl, h, d, to))
				return false;
			if (twice && !stream_tx_pkt(e, fl, d, to)) {
				pace_sent(e, d->len);
				COUNT(e, SENT_TWICE);
			}
			*budget -= d->len < *budget ? d->len : *budget;
		}
		psn = psn_add(psn, d->span);
	}
	h->lost_from = psn;
	return true;
}

/* ---- the receiving end ---- */

bool gaps_sane(const struct report *r)
{
	for (uint8_t i = 0; i < r->nholes; i++)
		if (!psn_before(r->hole[i].from, r->hole[i].end) ||
		    psn_before(r->hole[i].from, r->cum) || psn_after(r->hole[i].end, r->hi))
			return false;
	return true;
}

void gaps_tell(struct engine *e, struct gaps *g, struct report *r)
{
	struct wire_psn from = {psn_in(g->cursor.v, r->cum, r->hi) ? g->cursor.v : r->cum};

	r->nholes = holes_show(holes_at(e->pool, g->holes), from, REPORT_HOLES, r->hole);
	/* where there are more than fit, the next report goes on behind these */
	g->cursor.v = r->nholes == REPORT_HOLES ? r->hole[r->nholes - 1].end : r->cum;
	g->clock.due = g->clock.urgent = false;
	g->clock.count = 0;
	g->clock.last = e->now;
}
