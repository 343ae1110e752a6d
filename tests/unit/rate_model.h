/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A model of a link for the controller of its pace: a drop-tail queue before a bottleneck, random
 * loss, traffic of others, processes that do not run all the time. Virtual time; every run is the
 * same.
 */
#ifndef LONGHAUL_TESTS_UNIT_RATE_MODEL_H
#define LONGHAUL_TESTS_UNIT_RATE_MODEL_H

#include <math.h>
#include <stdlib.h>

#include "rate/rate.h"
#include "cli/wanem/prng.h"

#define PACKET	   4200.0
#define GAP_S	   0.003
#define STEP_S	   2e-6
#define METERS	   1024u
#define LAN	   3.125e9 /* bytes per second */
#define LINK	   1.25e9
#define SENDERS	   2
#define ROUND_S	   1e-4
#define SLICES_RUN 0.8

/* A METER that left and whose echo is not back yet. */
struct meter_sent {
	struct rate_sample s;
	double back;
};

/**
 * struct box - a receiver that is slower than the link: its process runs @runs s of each @every,
 * and reads @rate bytes per second then, in rounds of ROUND_S: frames, then METERs.
 * @ring:   bytes that wait for it at most; 0: there is no such receiver
 * @unread: bytes that wait; @next: s, of its next round; @overrun: packets lost
 */
struct box {
	double ring, runs, every, rate;
	double unread, next;
	uint64_t overrun;
};

struct sender {
	struct rate rate;
	double tokens, next, delivered, sent_warm;
	uint64_t sent, got, packets, marked;
	struct meter_sent meter[METERS];
	uint32_t head, tail;
};

/**
 * struct model
 * @link:   bytes per second; from @changes on (s, 0: never) @later
 * @rtt:    s; @queue: of the bottleneck, in bytes; @noise: share lost at random, from @calm on, s
 * @marks:  bytes in the queue above which packets are marked (ECN), 0: never
 * @others: bytes per second that never slow down
 * @second: s, when the second sender begins
 * @still:  s, from when on the receiver stands still for @still_for, and again after each
 *          @still_every
 * @slice:  s, the link stands still for so long on average, and runs SLICES_RUN of the time
 * @late:   s, METERs are read so late at most, before the frames that came meanwhile
 * @passed: bytes per second that pass by unpaced, besides, on the first sender's side, for
 *          @passed_for s from each half second of the first three on
 * @begins: until then it has little to send
 * @seed:   of what happens by chance
 * @gap:    s, from when on nothing arrives for GAP_S
 * @box:    the first sender's receiver, instead of a link
 * @offered: bytes per second that hosts have to send at most, 0: any number
 * @busy:   share of the time in which hosts have something to send, in turns of 0.2 s
 */
struct model {
	double link, rtt, queue, noise, marks, others, changes, later, busy, second;
	double calm, still, still_for, still_every, slice, late, passed, passed_for, begins, gap;
	struct box box;
	double offered;
	unsigned int senders, seed;
	enum rate_share share[SENDERS];
	double seconds, warm;
	uint64_t limit;
	/* what comes of it */
	double queued, others_tokens, others_lost, others_sent, slice_from, slice_to;
	struct prng rng;
	struct sender s[SENDERS];
};

/* For how long what is on the way will not run yet, s. */
static double slice_left(struct model *m, double t)
{
	double still = 2 * m->slice, runs = still * SLICES_RUN / (1 - SLICES_RUN);

	if (t >= m->slice_to) {
		m->slice_from = t + runs * prng_below(&m->rng, 1000) / 1000;
		m->slice_to = m->slice_from + still * prng_below(&m->rng, 1000) / 1000;
	}
	return t >= m->slice_from ? m->slice_to - t : 0;
}

/* For how long it will stand still yet, s. */
static double stands_still(struct model *m, double t)
{
	double since = t - m->still;

	if (m->slice > 0)
		return slice_left(m, t);
	if (since >= 0 && m->still_every > 0)
		since = fmod(since, m->still_every);
	return since >= 0 ? fmax(0, m->still_for - since) : 0;
}

/* Near the brim who finds room is chance. */
static bool enters(struct model *m)
{
	double room = m->queue - m->queued;

	if (room < PACKET || (room < 8 * PACKET && prng_hit(&m->rng, 0.5 - room / 16 / PACKET)))
		return false;
	m->queued += PACKET;
	return true;
}

static void box_rx(struct box *b)
{
	if (b->unread + PACKET > b->ring)
		b->overrun++;
	else
		b->unread += PACKET;
}

/* Its clock is half a round trip behind the sender's, so that what is sent is there at once. */
static void box_round(struct model *m, struct sender *s, double t)
{
	struct box *b = &m->box;
	double n = floor(fmin(b->unread, b->rate * ROUND_S) / PACKET);
	uint32_t i;

	if (t < b->next || fmod(t, b->every) > b->runs)
		return;
	b->next = t + ROUND_S;
	b->unread -= n * PACKET;
	s->got += (uint64_t)(n * PACKET);
	s->packets += (uint64_t)n;
	s->delivered += t > m->warm ? n * PACKET : 0;
	for (i = s->tail; i != s->head; i++) {
		struct meter_sent *x = &s->meter[i % METERS];

		if (x->back < INFINITY)
			continue;
		x->s.got_at = (uint64_t)((t + m->rtt / 2) * 1e9) + 12345678;
		x->s.got = s->got;
		x->s.packets = s->packets;
		x->s.waited = (uint64_t)(t * 1e9) + 1 - x->s.sent_at;
		x->s.unread = (uint64_t)b->unread;
		x->s.early = (uint64_t)(n * PACKET);
		x->s.overrun = b->overrun;
		x->back = t + m->rtt;
	}
}

static void send(struct model *m, struct sender *s, double t)
{
	double pace = (double)rate_pace(&s->rate);
	bool idle = m->busy > 0 && fmod(t, 0.2) > 0.2 * m->busy;

	if (pace <= 0 || pace > LAN)
		pace = LAN;
	if (t < m->begins)
		pace = fmin(pace, LINK / 10);
	if (m->offered > 0)
		pace = fmin(pace, m->offered);
	s->tokens = idle ? 0 : fmin(s->tokens + pace * STEP_S, 65536);
	if (s == &m->s[0] && t < 3 && fmod(t, 0.5) < m->passed_for)
		s->tokens += m->passed * STEP_S;
	for (; s->tokens >= PACKET; s->tokens -= PACKET) {
		s->sent += (uint64_t)PACKET;
		s->sent_warm += t > m->warm ? PACKET : 0;
		if (m->box.ring > 0) {
			box_rx(&m->box);
			continue;
		}
		if (!enters(m) || (t >= m->calm && prng_hit(&m->rng, m->noise)) ||
		    (m->gap > 0 && t >= m->gap && t < m->gap + GAP_S))
			continue;
		s->got += (uint64_t)PACKET;
		s->packets++;
		s->marked += m->marks > 0 && m->queued > m->marks;
		s->delivered += t > m->warm ? PACKET : 0;
	}
}

static void meter(struct model *m, struct sender *s, double t)
{
	double way = stands_still(m, t) + m->queued / m->link + m->rtt / 2;
	double jitter = prng_below(&m->rng, 50) * 1e-6, pace = (double)rate_pace(&s->rate);
	double late = m->late > 0 ? m->late * prng_below(&m->rng, 1000) / 1000 : 0;

	while (s->tail != s->head && s->meter[s->tail % METERS].back <= t) {
		const struct meter_sent *x = &s->meter[s->tail++ % METERS];
		uint64_t now = (uint64_t)(t * 1e9) + 1;

		rate_heard(&s->rate, &x->s, now - x->s.sent_at - x->s.waited, now);
	}
	if (t < s->next)
		return;
	s->next = t + (pace > 0 ? fmax(m->rtt / 8, 180 * 100 / pace) : m->rtt / 8);
	s->meter[s->head++ % METERS] = (struct meter_sent){
		.s = {.sent_at = (uint64_t)(t * 1e9) + 1,
		      .sent = s->sent,
		      .got_at = (uint64_t)((t + way + jitter + late) * 1e9) + 12345678,
		      .waited = (uint64_t)(late * 1e9),
		      .unread = (uint64_t)(late * m->link),
		      .got = s->got,
		      .packets = s->packets,
		      .marked = s->marked},
		.back = m->box.ring > 0 ? INFINITY : t + way + m->rtt / 2 + jitter + late,
	};
	s->head -= stands_still(m, t) > 0 && m->queue - m->queued < PACKET; /* lost */
}

static void run(struct model *m)
{
	prng_init(&m->rng, 7 + m->seed);
	for (unsigned int i = 0; i < m->senders; i++)
		rate_init(&m->s[i].rate, m->limit, m->share[i]);
	for (double t = 0; t < m->seconds; t += STEP_S) {
		if (m->changes > 0 && t >= m->changes)
			m->link = m->later;
		if (stands_still(m, t) <= 0)
			m->queued = fmax(0, m->queued - m->link * STEP_S);
		m->others_tokens += m->others * STEP_S;
		for (; m->others_tokens >= PACKET; m->others_tokens -= PACKET) {
			m->others_sent += t > m->warm;
			m->others_lost += !enters(m) && t > m->warm;
		}
		for (unsigned int i = 0; i < m->senders; i++) {
			unsigned int n = prng_hit(&m->rng, 0.5) ? i : m->senders - 1 - i;

			if (!n && m->box.ring > 0)
				box_round(m, &m->s[0], t);
			if (!n || t >= m->second)
				send(m, &m->s[n], t);
			if (!i || t >= m->second)
				meter(m, &m->s[i], t);
		}
	}
}

/* Share of the link that the first sender got after @warm. */
static double share(const struct model *m)
{
	return m->s[0].delivered / (m->seconds - m->warm) / m->link;
}

static double bytes_per_byte(const struct model *m)
{
	return (double)m->s[0].sent / (double)m->s[0].got;
}

static struct model *model(struct model m)
{
	struct model *out = malloc(sizeof(m));

	assert_non_null(out);
	*out = m;
	out->link = out->link > 0 ? out->link : LINK;
	out->senders = out->senders ? out->senders : 1;
	return out;
}

#endif
