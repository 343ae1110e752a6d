// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What crosses the link to each peer is counted at both ends, and METER reports compare the counts.
 *
 * A METER says: by now, by my clock, I have sent you so many bytes; and when your latest METER
 * came, which said so and so, by my clock, I had got so many. It travels on the link as the packets
 * do, so both counts are of one place in the stream. The two clocks and their difference never
 * matter: only time differences of one clock are taken, and the change of the one-way delay.
 *
 * METERs go out while packets cross in either direction, also when only the peer says so, a few in
 * a round trip and never so often that they take more than a hundredth of a link that is slow, and
 * much less of others. Lost ones cost precision only. A peer that does not know them leaves the
 * pace without a limit of its own.
 *
 * Counted are packets of connections that a rule gives to the peer, carried or only passed on.
 */
#include "engine/core/core.h"

#define INTERVAL_MIN   (1 * NSEC_PER_MSEC)
#define INTERVAL_MAX   (250 * NSEC_PER_MSEC)
#define PER_ROUND_TRIP 8u
/* A METER with all its headers is less than this: a hundredth of the pace is ... A longer interval
 * would cost more than it saves: a pace that is too low is found out by METERs only. */
#define METER_BYTES    200u
#define METER_SHARE    100u
/* METERs are answered for so long after the peer's latest one. */
#define LISTENS_NS     (5 * NSEC_PER_SEC)
#define ECN_CE	       3u

void meter_init(struct engine *e)
{
	for (unsigned int i = 0; i < LINKS; i++)
		rate_init(link_rate(e, i), e->cfg.wan_rate, e->cfg.share);
	e->via = LINK_ALONE;
}

void meter_limits(struct engine *e, bool was_auto)
{
	for (unsigned int i = 0; i < LINKS; i++) {
		struct rate *r = link_rate(e, i);

		/* what was found while nobody went by it is old */
		if (e->cfg.wan_auto && !was_auto)
			rate_init(r, e->cfg.wan_rate, e->cfg.share);
		r->limit = e->cfg.wan_rate;
		r->share = e->cfg.share;
	}
}

unsigned int flow_link(const struct engine *e, const struct flow *fl)
{
	int peer = fl->rule >= 0 ? e->rules[fl->rule].peer : fl->lane.peer;

	return peer < 0 || peer >= PEER_MAX ? LINK_ALONE : (unsigned int)peer;
}

uint32_t peer_late_us(const struct engine *e, const struct lane *l)
{
	if (l->peer == PEER_NONE)
		return 0;
	return (uint32_t)(rate_late_ns(&e->link[l->peer].rate) / NSEC_PER_USEC);
}

/* So long after a loss a link is believed to lose more. */
#define LOSSY_NS   (4 * NSEC_PER_SEC)
/* So many losses tell whether a link loses packets in a row: one and a half at a time, or more. */
#define RUNS	   4u
#define RUN_COUNTS 16u
/* A link that loses more is full, and would only lose more still. */
#define NOISE_MOST 0.05

/* How many packets in a row are missing, by the report @r of what is in @h. */
static void count_runs(struct engine *e, struct wan_link *k, const struct held *h,
		       const struct report *r)
{
	for (uint8_t i = 0; i < r->nholes; i++) {
		struct wire_psn psn = {r->hole[i].from}, end = {r->hole[i].end};

		k->runs++;
		for (uint32_t n = 0; n < RUN_COUNTS && held_next(e, h, psn, end, &psn); n++) {
			k->run_packets++;
			psn = psn_add(psn, 1);
		}
	}
	if (k->runs < RUNS)
		return;
	k->depth = k->run_packets >= k->runs + k->runs / 2 ? PARITY_DEPTH : 1;
	k->runs /= 2;
	k->run_packets /= 2;
}

void link_lost(struct engine *e, const struct lane *l, const struct held *h, uint32_t packets,
	       const struct report *r)
{
	struct wan_link *k = link_at(e, (unsigned int)l->peer);

	count_runs(e, k, h, r);
	if (!k->lossy || e->now - k->lost_since > LOSSY_NS) {
		k->lost_since = e->now;
		k->lost_sent = k->sent;
		k->lost = 0;
	}
	k->lossy = e->now;
	k->lost += packets * (h->bytes / MAX(h->packets, 1u));
}

bool link_lossy(const struct engine *e, const struct lane *l)
{
	const struct wan_link *k = &e->link[l->peer];

	return k->lossy && e->now - k->lossy < LOSSY_NS;
}

double link_loss(const struct engine *e, const struct lane *l)
{
	const struct wan_link *k = &e->link[l->peer];
	double told = (double)k->lost / (double)(k->sent - k->lost_sent + k->lost);
	/* what parity repairs is not told as lost, but METERs count what comes */
	double loss = MAX(k->rate.noise, told);

	return link_lossy(e, l) && loss <= NOISE_MOST ? loss : 0;
}

uint32_t link_depth(const struct engine *e, const struct lane *l)
{
	bool knows = l->sealed && e->peer_features[l->peer] & PEER_FEATURE_SPREAD;

	return knows ? MAX(e->link[l->peer].depth, 1u) : 1;
}

void meter_got(struct engine *e, const struct frame *f)
{
	struct wan_link *k = link_at(e, e->via);
	uint8_t ecn = f->ip6 ? f->data[f->l3 + 1] >> 4 : f->data[f->l3 + 1];

	k->got += f->len;
	k->packets++;
	k->marked += (ecn & 3) == ECN_CE;
}

static uint64_t interval(const struct wan_link *k)
{
	uint64_t pace = rate_pace(&k->rate), t = k->rate.rtt / PER_ROUND_TRIP;

	if (pace && t < (uint64_t)METER_BYTES * METER_SHARE * NSEC_PER_SEC / pace)
		t = (uint64_t)METER_BYTES * METER_SHARE * NSEC_PER_SEC / pace;
	return t < INTERVAL_MIN ? INTERVAL_MIN : t > INTERVAL_MAX ? INTERVAL_MAX : t;
}

static void tell(struct engine *e, unsigned int peer)
{
	struct wan_link *k = link_at(e, peer);
	uint64_t held = (e->now - k->heard_at) / NSEC_PER_USEC;
	struct report r = {.type = REPORT_METER, .meter = k->heard};

	r.meter.sent_at = e->now;
	r.meter.sent = k->sent;
	r.meter.held_us = held < UINT32_MAX ? (uint32_t)held : UINT32_MAX;
	k->told_at = e->now;
	k->told_sent = k->sent;
	k->told_got = k->got;
	k->told_heard = k->heard.echo_sent;
	e->sink.report(e->sink.ctx, peer, &r);
}

void meter_tick(struct engine *e)
{
	for (unsigned int i = 0; i < PEER_MAX; i++) {
		const struct wan_link *k = &e->link[i];
		bool listens;

		if (!e->peer_up[i])
			continue;
		listens = k->heard_at && e->now - k->heard_at < LISTENS_NS;
		if ((!e->cfg.wan_auto && !listens) ||
		    (k->sent == k->told_sent && k->got == k->told_got &&
		     k->heard.echo_sent == k->told_heard))
			continue;
		if (e->now - k->told_at >= interval(k))
			tell(e, i);
		else
			engine_wake_at(e, k->told_at + interval(k));
	}
}

/* What @e has sent and got over link @i is told as @lead's; the pace is what @lead has found. */
static void follow(struct engine *lead, struct engine *e, unsigned int i)
{
	struct wan_link *k = link_at(e, i), *l = link_at(lead, i);

	l->sent += k->sent - k->told_sent;
	l->got += k->got - k->told_got;
	l->packets += k->packets;
	l->marked += k->marked;
	k->told_sent = k->sent;
	k->told_got = k->got;
	k->packets = k->marked = 0;
	if (k->heard_at == l->heard_at)
		return;
	k->heard_at = l->heard_at;
	*link_rate(e, i) = l->rate;
}

void engine_follow(struct engine *const *e, unsigned int n, uint64_t now_ns)
{
	for (unsigned int k = 0; k < n; k++)
		batch_begin(e[k], now_ns);
	for (unsigned int i = 0; i < LINKS; i++) {
		bool busy = pace_waits(e[0], i);

		for (unsigned int k = 1; k < n; k++) {
			const struct wan_link *own = &e[k]->link[i];
			bool told = own->sent == own->told_sent && own->got == own->told_got;

			busy |= !told || pace_waits(e[k], i);
			if (!told || own->heard_at != e[0]->link[i].heard_at)
				follow(e[0], e[k], i);
		}
		if (busy)
			pace_pool(e, n, i);
	}
}

void engine_meter(struct engine *e, uint64_t now_ns)
{
	batch_begin(e, now_ns);
	meter_tick(e);
	batch_end(e);
}

void meter_forget(struct engine *e, unsigned int peer)
{
	struct wan_link *k = link_at(e, peer);

	memset(&k->heard, 0, sizeof(k->heard));
	k->out = (struct link_count){0};
	k->heard_at = k->told_heard = 0;
	rate_forget(link_rate(e, peer));
}

static uint32_t clamp32(uint64_t n)
{
	return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

static void heard_by_box(const struct engine *e, struct meter *m)
{
	m->by_box = true;
	m->waited_us = clamp32(e->box.waited_ns / NSEC_PER_USEC);
	m->unread = clamp32(e->box.unread);
	m->early = clamp32(e->box.early);
	m->overrun = e->box.overrun;
}

void meter_rx(struct engine *e, unsigned int peer, const struct report *r)
{
	const struct meter *m = &r->meter;
	struct wan_link *k = link_at(e, peer);
	uint64_t held = (uint64_t)m->held_us * NSEC_PER_USEC;
	struct rate_sample s = {
		.sent_at = m->echo_at,
		.sent = m->echo_sent,
		.got_at = m->got_at,
		.got = m->got,
		.packets = m->packets,
		.marked = m->marked,
		.waited = (uint64_t)m->waited_us * NSEC_PER_USEC,
		.unread = m->unread,
		.early = m->early,
		.overrun = m->overrun,
	};

	if (m->echo_at > e->now || m->echo_sent > k->sent) {
		COUNT(e, BAD_REPORT);
		return;
	}
	if (k->heard_at && m->sent_at <= k->heard.echo_at)
		return; /* the newest wins */
	k->heard = (struct meter){
		.echo_at = m->sent_at,
		.echo_sent = m->sent,
		.got_at = e->now,
		.got = k->got,
		.packets = k->packets,
		.marked = k->marked,
	};
	k->heard_at = e->now;
	k->out = (struct link_count){.sent = m->echo_sent, .got = m->got};
	heard_by_box(e, &k->heard);
	held += (uint64_t)m->waited_us * NSEC_PER_USEC + e->box.waited_ns;
	if (e->cfg.wan_auto && m->echo_at && e->now - m->echo_at >= held)
		rate_heard(link_rate(e, peer), &s, e->now - m->echo_at - held, e->now);
}
