// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The pace of a shared link, found by a model of it and not by halving at each loss. doc/rate.md
 * says where the model comes from.
 *
 * The peer counts what arrives, by its own clock. So over any window of samples it is known how
 * fast was sent, how fast it arrived, which share was lost and how long the queue was (by the
 * one-way delay, up to the difference of the clocks). A window is half a round trip at least, and
 * begins after the latest change of the pace: what is seen is what this pace does.
 *
 * A link that is full shows it by loss beyond noise, by a queue, or by ECN marks; and then what
 * arrives is what it carries (@best). Random loss is no such sign: it does not depend on the pace.
 * So after loss the pace goes down, below what arrived. If as much is lost as before, and less
 * arrives in proportion, it is noise: remembered, and the pace goes back up. Noise is learned only
 * where there is no queue, so that loss of our own making is not taken for it.
 *
 *	OPEN --full--> DOWN --queue gone--> CRUISE --rounds--> UP --full--> DOWN
 *	                                       \--full--> DOWN
 *
 * OPEN: as much in a round trip as FIRST_BYTES and what has come since the first sample, so twice
 * as much in each of them: hosts would send like that without us, or less, and a long link is not
 * flooded at the speed of the LAN before it can say that it is full. One window of a full link is
 * enough to know it. CRUISE is as fast as the link carries, trimmed so that the queue stays short.
 * UP takes steps that double, so a link that has become faster is found in a few round trips.
 *
 * A receiver that was not let run for a while, or a burst that met a full ring, loses nearly all of
 * a window, and what arrives of that says nothing about the link. So a window that lost most,
 * without a queue, and of which much less arrived than the link has carried before, is answered
 * like any other but not believed: as soon as nothing is lost any more, the pace is doubled in each
 * round until the link is full again. If what then arrives is not more, it is believed. Nor is a
 * window believed in which hosts sent much less than they might, and nothing waited on the way.
 *
 * The peer's process reads frames from a ring and METERs from a socket, and may be late with
 * either. So when it reads a METER, frames that came before it may be unread, and frames that came
 * after it may be counted. The peer says how many bytes that can be (@unread, @early), and they are
 * never taken for lost: a window shows the loss that remains if all of them arrived, and is
 * extended until they are a small part of it. How fast it arrives is told by what was read and what
 * waits together. The delay ends when the METER arrived. The peer counts the packets that its rings
 * lost (@overrun). Then the receiver is the bottleneck, and the pace goes down to what it reads.
 *
 * Somebody else shares the link when it is full although we did not go faster, or carries another
 * share of it than last time. Then each sign of a full link costs a part of the pace and what is
 * added in a round is a constant, so that two such controllers, or this one and TCP, come to shares
 * that are alike; what is more than was had when the link was last full is taken fast. A queue that
 * stays however slow we are is filled by others on purpose: then only loss and marks count.
 *
 * That is for who wants a fair share. Who wants the most of it leaves nothing to others: after the
 * queue is gone it goes on at what it had. Who is in the background leaves half at each sign, comes
 * back slowly, and a queue that stays is a reason to go slower still.
 */
#include "rate/rate.h"

#include <math.h>
#include <string.h>

#include "store/wheel.h" /* NSEC_PER_* */
#include "wire/names.h"

/* More than hosts have under way on most links, little beside what a long and fast one holds. */
#define FIRST_BYTES    268435456.0
#define WINDOW_NS      (4 * NSEC_PER_MSEC)
#define WINDOW_BYTES   (256u << 10)
/* Where that would take long: enough to tell loss from chance, if so many packets are lost. */
#define WINDOW_LEAST   (64u << 10)
#define LOST_LEAST     4.0
/* A window is extended while more than this part of it may have arrived without being counted. */
#define UNCOUNTED_MOST 0.002
/* The clocks drift, and routes change: the least delay is of the latest 10 to 20 s. */
#define LEAST_NS       (10 * NSEC_PER_SEC)
/* Samples further apart are not of one time. */
#define GAP_NS	       (2 * NSEC_PER_SEC)
/* Loss beyond noise that is a sign, and as many standard deviations of chance besides. */
#define LOSS_BEYOND    0.004
/* Without a queue there is no buffer that overflows: it takes more to be a sign. */
#define LOSS_NO_QUEUE  0.05
#define QUEUE_SOME_NS  (300 * NSEC_PER_USEC)
/* What is taken for noise without a test. */
#define NOISE_MOST     0.02
#define CHANCES	       4.5
#define PACKET_BYTES   4096.0
#define MARKS_MANY     0.1
/* Share of the packets that the peer's rings lose. */
#define OVERRUN_MANY   0.01
/* How late the peer's process was at most fades by this part with each sample. */
#define LATE_FADES     128u
#define LATE_MOST      (100 * NSEC_PER_MSEC)
/* A queue of a tenth of the round trip is a sign. What waits for a processor's turn is shorter. */
#define QUEUE_MIN_NS   (2 * NSEC_PER_MSEC)
#define CRUISE_MIN     8u
#define CRUISE_MAX     64u
#define STEP_MIN       0.01
#define STEP_MAX       1.0
#define TRIM_MAX       0.03
/* Below what arrived, so that a queue becomes shorter; how deep at most, and at once. */
#define BELOW	       0.97
#define BELOW_MOST     0.7
/* Loss of more, and less than that part of what arrived before, is doubted until two agree. */
#define DOUBT_LOSS     0.5
#define DOUBT_PART     0.5
#define AGREE	       0.25
#define CUT_MOST       8
/* Rounds of DOWN in which a queue of ours must have gone. */
#define DRAIN_ROUNDS   6u
/* What others are left, after loss and after a queue. */
#define YIELD_LOSS     0.85
#define YIELD_QUEUE    0.93
#define YIELD_BACK     0.5
#define RIVAL_ROUNDS   100u
#define RIVAL_REST     3u
#define RIVAL_SHIFT    0.02
/* So much more than the pace is sent only when packets pass by unpaced. */
#define BEYOND_PACE    1.1
/* What begins at once becomes held in a few round trips, or is told to go back, or waits for its
 * timer (537 ms at soft-RoCE's default). What fills the link FLOOD_LASTS after it did so first does
 * not end by itself. It has ended when it did not for FLOOD_ENDS. */
#define FLOOD_LASTS    (300 * NSEC_PER_MSEC)
#define FLOOD_ENDS     (1500 * NSEC_PER_MSEC)
#define START_GROWTH   1.5
/* So much more than what was had when the link was last full: it has become faster. */
#define BEYOND	       1.05
#define RIVAL_STEP     262144.0 /* bytes per round trip more in each round */
#define PACE_MIN       125000.0 /* bytes per second */
#define PACE_MAX       1e12

/* What the samples since the latest change tell. Rates in bytes per second, shares of 1. */
struct sight {
	double sent, delivered, loss, marks, overrun;
	double bytes;
	int64_t queue, longest; /* ns, at its shortest and longest */
};

NAMES(rate_share_name, enum rate_share, RATE_SHARES, "fair", "most", "background")
NAMES(rate_phase_name, enum rate_phase, RATE_PHASES, [RATE_OPEN] = "open", [RATE_CRUISE] = "cruise",
      [RATE_UP] = "up", [RATE_DOWN] = "down")
NAMES(rate_cause_name, enum rate_cause, RATE_CAUSES, [RATE_NOTHING] = "none", [RATE_LOSS] = "loss",
      [RATE_QUEUE] = "queue", [RATE_MARKS] = "marks", [RATE_BOX] = "receiver")

void rate_init(struct rate *r, uint64_t limit, enum rate_share share)
{
	memset(r, 0, sizeof(*r));
	r->share = share;
	r->limit = limit;
	r->step = STEP_MIN;
	r->cruise = CRUISE_MIN;
	r->starting = true;
	r->least = r->least_next = INT64_MAX;
}

void rate_forget(struct rate *r)
{
	r->count = 0;
	r->least = r->least_next = INT64_MAX;
}

/* What may be sent in a round trip of RATE_OPEN. */
static double first_bytes(const struct rate *r)
{
	return FIRST_BYTES + (double)(r->sample[r->head].sent - r->begun);
}

uint64_t rate_pace(const struct rate *r)
{
	uint64_t pace = (uint64_t)r->pace;

	if (r->phase == RATE_OPEN && r->count && r->rtt)
		pace = (uint64_t)(first_bytes(r) * 1e9 / (double)r->rtt);
	return r->limit && (!pace || pace > r->limit) ? r->limit : pace;
}

/* What is sent at a new pace is seen after this time at the earliest. */
static uint64_t turn_ns(const struct rate *r)
{
	return r->rtt > WINDOW_NS ? r->rtt : WINDOW_NS;
}

uint64_t rate_queue_ns(const struct rate *r)
{
	return r->delay > r->least ? (uint64_t)(r->delay - r->least) : 0;
}

static void set_pace(struct rate *r, double pace, uint64_t now)
{
	r->pace = fmin(fmax(pace, PACE_MIN), PACE_MAX);
	if (r->limit)
		r->pace = fmin(r->pace, (double)r->limit);
	r->changed_at = r->round_at = now;
}

static int64_t delay_of(const struct rate_sample *s)
{
	return (int64_t)(s->got_at - s->waited - s->sent_at);
}

static const struct rate_sample *sample_at(const struct rate *r, uint32_t back)
{
	return &r->sample[(r->head + RATE_SAMPLES - back) % RATE_SAMPLES];
}

static void sample_delay(struct rate *r, int64_t delay, uint64_t now)
{
	r->delay = delay;
	if (now - r->least_at > LEAST_NS) {
		r->least = r->least_next;
		r->least_next = INT64_MAX;
		r->least_at = now;
	}
	r->least_next = delay < r->least_next ? delay : r->least_next;
	r->least = delay < r->least ? delay : r->least;
}

/* ---- what is seen ---- */

/* As many as take a few round trips at this pace. */
static uint64_t window_bytes(const struct rate *r)
{
	double some = r->pace * 4 * (double)r->rtt / 1e9;

	return r->pace > 0 ? (uint64_t)fmin(fmax(some, WINDOW_LEAST), WINDOW_BYTES) : WINDOW_BYTES;
}

/* Bytes sent between the two that the peer may have: unread at @last, or early at @first. */
static uint64_t uncounted(const struct rate_sample *first, const struct rate_sample *last)
{
	return last->unread + first->early;
}

/* The share of the packets that found no room in the peer's rings. A new process counts from 0. */
static double overrun(const struct rate_sample *first, const struct rate_sample *last)
{
	double lost;

	if (last->overrun <= first->overrun)
		return 0;
	lost = (double)(last->overrun - first->overrun);
	return lost / (lost + (double)(last->packets - first->packets));
}

/* False when there is too little to see yet. */
static bool look(const struct rate *r, struct sight *w)
{
	const struct rate_sample *last = sample_at(r, 0), *first = last;
	uint64_t want = r->rtt / 2 > WINDOW_NS ? r->rtt / 2 : WINDOW_NS, bytes = window_bytes(r);
	int64_t least = delay_of(last), most = least;

	for (uint32_t i = 1; i < r->count; i++) {
		double sent = (double)(last->sent - first->sent);

		if (last->got_at - first->got_at >= want && sent >= (double)bytes &&
		    (double)uncounted(first, last) < UNCOUNTED_MOST * sent)
			break;
		if (sample_at(r, i)->sent_at < r->changed_at)
			break;
		first = sample_at(r, i);
		least = delay_of(first) < least ? delay_of(first) : least;
		most = delay_of(first) > most ? delay_of(first) : most;
	}
	if (last->got_at - first->got_at < want || last->sent - first->sent < bytes)
		return false;
	w->bytes = (double)(last->sent - first->sent);
	w->sent = w->bytes * 1e9 / (double)(last->sent_at - first->sent_at);
	w->delivered = (double)(last->got - first->got);
	w->overrun = overrun(first, last);
	w->loss = 1 - (w->delivered + (double)uncounted(first, last)) / w->bytes;
	w->loss = fmax(0, w->loss - w->overrun);
	if (w->overrun <= OVERRUN_MANY) /* of a slow receiver it counts what is read */
		w->delivered = fmax(0, w->delivered + (double)last->unread - (double)first->unread);
	w->delivered *= 1e9 / (double)(last->got_at - first->got_at);
	w->marks = last->packets == first->packets
			   ? 0
			   : (double)(last->marked - first->marked) /
				     (double)(last->packets - first->packets);
	w->queue = least > r->least ? least - r->least : 0;
	w->longest = most > r->least ? most - r->least : 0;
	return true;
}

static int64_t long_queue(const struct rate *r)
{
	uint64_t q = r->rtt / 10;

	return (int64_t)(q > QUEUE_MIN_NS ? q : QUEUE_MIN_NS);
}

/* Loss that noise does not explain. */
static double loss_limit(const struct rate *r, const struct sight *w)
{
	double packets = w->bytes / PACKET_BYTES;
	double beyond = w->longest < (int64_t)QUEUE_SOME_NS ? LOSS_NO_QUEUE : LOSS_BEYOND;

	beyond += r->noise + CHANCES * sqrt(fmax(r->noise, 0.0005) / packets);
	return w->bytes < WINDOW_BYTES ? fmax(beyond, LOST_LEAST / packets) : beyond;
}

/* Whether the link is full, and what shows it. */
static enum rate_cause full(const struct rate *r, const struct sight *w)
{
	if (w->loss > loss_limit(r, w))
		return RATE_LOSS;
	if (w->overrun > OVERRUN_MANY)
		return RATE_BOX;
	if (w->marks > MARKS_MANY)
		return RATE_MARKS;
	if (!r->standing && w->queue > long_queue(r))
		return RATE_QUEUE;
	return RATE_NOTHING;
}

/* ---- what is done about it ---- */

static void cruise(struct rate *r, double pace, uint64_t now)
{
	r->phase = RATE_CRUISE;
	r->rounds = 0;
	r->step = STEP_MIN;
	set_pace(r, pace, now);
	r->base = r->pace;
}

/* Whether hosts sent much less than they might, and nothing waited on the way. */
static bool unfilled(const struct rate *r, const struct sight *w)
{
	return w->longest < (int64_t)QUEUE_SOME_NS && w->sent < DOUBT_PART * (double)rate_pace(r);
}

/* Whether what arrived of a window says nothing about the link. */
static bool doubted(struct rate *r, const struct sight *w)
{
	bool agrees = r->best > 0 && fabs(w->delivered / r->best - 1) < AGREE;

	if (r->phase == RATE_OPEN)
		r->most = w->sent;
	if (unfilled(r, w))
		return true;
	if (agrees || w->loss < DOUBT_LOSS || w->queue > long_queue(r) ||
	    w->delivered > DOUBT_PART * r->most) {
		r->most = w->delivered;
		return false;
	}
	r->most /= 2;
	return true;
}

/* What passes by is not paced: then the queue is the work of hosts on our side. */
static bool beyond_pace(const struct rate *r, const struct sight *w)
{
	return w->sent > BEYOND_PACE * (r->pace > 0 ? r->pace : w->delivered);
}

static void seen_full(struct rate *r, const struct sight *w, uint64_t now)
{
	r->tried = w->sent;
	r->tried_loss = w->loss;
	r->best = w->delivered;
	r->forced = beyond_pace(r, w);
	if (!r->forced)
		return;
	if (!r->flood_at || now - r->flood_at > FLOOD_ENDS)
		r->flood_from = now;
	r->flood_at = now;
}

/* Whether the latest sign of a full link was noise, as is known now: then @best is what we sent. */
static bool was_noise(const struct rate *r)
{
	return r->cause == RATE_LOSS && r->tried_loss < 2 * r->noise;
}

/* Whether the sign @w of a full link tells of others: they fill it, or leave us another share. */
static bool shared(const struct rate *r, const struct sight *w)
{
	if (r->forced || beyond_pace(r, w))
		return false;
	return r->phase == RATE_CRUISE ||
	       (r->best > 0 && !was_noise(r) && fabs(w->delivered / r->best - 1) > RIVAL_SHIFT);
}

static void slow_down(struct rate *r, const struct sight *w, enum rate_cause why, uint64_t now)
{
	double queue = (double)w->queue / (double)turn_ns(r);
	double pace = w->delivered * fmin(BELOW, fmax(BELOW_MOST, 1 - queue - STEP_MIN));

	r->doubt = doubted(r, w);
	if (r->phase == RATE_UP)
		r->cruise = r->cruise < CRUISE_MAX ? 2 * r->cruise : CRUISE_MAX;
	if (!r->doubt && shared(r, w))
		r->rivals = RIVAL_ROUNDS;
	r->yield = r->rivals && r->pace > 0;
	r->cause = why;
	r->cuts++;
	r->step = STEP_MIN;
	r->rounds = 0;
	r->phase = RATE_DOWN;
	r->starting &= why == RATE_QUEUE;
	seen_full(r, w, now);
	set_pace(r, fmax(pace, r->pace / CUT_MOST), now);
}

/* The pace was lowered for loss, and there is loss still. */
static void still_lost(struct rate *r, const struct sight *w, uint64_t now)
{
	double part = w->sent / r->tried;

	if (part > 0.8) {
		set_pace(r, r->pace * 0.9, now); /* too little to tell */
	} else if (w->loss > 0.7 * r->tried_loss && w->delivered < r->best * (1 + part) / 2 &&
		   (w->loss < NOISE_MOST || w->queue < long_queue(r))) {
		r->noise = w->loss;
		r->cuts--;
		cruise(r, r->tried, now);
	} else {
		seen_full(r, w, now);
		set_pace(r, w->delivered * BELOW, now);
	}
}

/* What of the pace is kept at a sign, so that others get the rest. */
static double kept(const struct rate *r)
{
	if (!r->yield || r->share == SHARE_MOST)
		return 1;
	if (r->share == SHARE_BACKGROUND)
		return YIELD_BACK;
	return r->cause == RATE_QUEUE ? YIELD_QUEUE : YIELD_LOSS;
}

/* There is a queue, so the link is full still, and what arrives is what it carries. But others get
 * more the slower we are. */
static double carried(const struct rate *r, const struct sight *w)
{
	if (!r->yield)
		return w->delivered;
	return r->share == SHARE_MOST ? r->best : (3 * r->best + w->delivered) / 4;
}

/* Others fill the queue, and nothing was ever lost: they have not noticed us. */
static bool unnoticed(const struct rate *r)
{
	return r->standing && r->starting;
}

static void speed_up(struct rate *r, uint64_t now)
{
	/* than others left us lately */
	bool more = r->base > BEYOND * r->best && r->share != SHARE_BACKGROUND;

	r->phase = RATE_UP;
	if (unnoticed(r))
		r->base *= START_GROWTH;
	else if (r->doubt)
		r->base *= 2;
	else if (r->rivals)
		r->base += fmin(r->base / 2,
				RIVAL_STEP * r->step / STEP_MIN * 1e9 / (double)turn_ns(r));
	else
		r->base *= 1 + r->step;
	if (r->rivals || r->delivered > BEYOND * r->best)
		r->cruise = CRUISE_MIN; /* the link has changed */
	r->step = fmin((r->rivals && !more ? 1.1 : 2) * r->step, STEP_MAX);
	set_pace(r, r->base, now);
}

/* A round of RATE_DOWN is over. If that was not for loss, what is lost now is noise unless it alone
 * shows a full link. */
static void lowered(struct rate *r, const struct sight *w, uint64_t now)
{
	bool back = r->share == SHARE_BACKGROUND;

	if (w->overrun > OVERRUN_MANY) {
		seen_full(r, w, now);
		set_pace(r, w->delivered * BELOW, now);
		return;
	}
	if (w->loss > (r->cause == RATE_LOSS ? r->noise + 2 * LOSS_BEYOND : loss_limit(r, w))) {
		still_lost(r, w, now);
		return;
	}
	r->noise += (w->loss - r->noise) / 4;
	r->standing = w->queue > long_queue(r) / 2;
	if (r->standing && (++r->rounds < DRAIN_ROUNDS || back)) {
		r->standing = false;
		r->best = carried(r, w);
		set_pace(r, r->pace * 0.92, now);
		return;
	}
	/* what noise takes must be sent, too */
	cruise(r, r->best * kept(r) / (1 - fmin(r->noise, 0.5)), now);
	if (!r->doubt)
		return;
	if (r->tried_loss < DOUBT_LOSS)
		r->best = 0; /* hosts sent little: what the link carries is not known */
	speed_up(r, now);
}

/* Keep the queue short without leaving the link idle. */
static double trim(const struct rate *r, const struct sight *w)
{
	int64_t beyond = w->queue - long_queue(r) / 8;
	double over = (double)beyond / (double)turn_ns(r) / 2;

	return 1 - fmin(TRIM_MAX, fmax(0, over));
}

/* Rounds until the next try to go faster. Who rests longer than others never gets its share. */
static uint32_t rest_rounds(const struct rate *r)
{
	if (!r->rivals)
		return r->cruise;
	return r->cause == RATE_LOSS || r->share == SHARE_BACKGROUND ? CRUISE_MIN : RIVAL_REST;
}

/* A round without a sign is over. */
static void round_over(struct rate *r, const struct sight *w, uint64_t now)
{
	if (r->phase == RATE_DOWN) {
		lowered(r, w, now);
		return;
	}
	r->most = fmax(r->most, w->delivered);
	if (w->loss < r->noise || (w->queue < long_queue(r) / 4 && w->loss < NOISE_MOST))
		r->noise += (w->loss - r->noise) / 8;
	r->round_at = now;
	if (r->phase == RATE_OPEN || w->sent < 0.9 * r->pace) {
		r->rounds = 0; /* the hosts have no more to send */
		return;
	}
	r->rivals -= r->rivals > 0;
	if (r->phase == RATE_CRUISE && !unnoticed(r) && ++r->rounds < rest_rounds(r))
		r->pace = r->base * trim(r, w);
	else
		speed_up(r, now);
}

/* How late a frame may be read by the peer's process, which waits, or reads what came before. */
static void sample_late(struct rate *r, const struct rate_sample *s)
{
	uint64_t late = s->waited;

	if (r->delivered > 0)
		late += (uint64_t)((double)s->unread * 1e9 / r->delivered);
	r->late -= r->late / LATE_FADES;
	r->late = late > r->late ? late : r->late;
	r->late = r->late < LATE_MOST ? r->late : LATE_MOST;
}

/* Returns false for a sample that is not news. */
static bool take_in(struct rate *r, const struct rate_sample *s, uint64_t rtt, uint64_t now)
{
	const struct rate_sample *last = sample_at(r, 0);

	if (r->count && now - r->heard_at > GAP_NS)
		r->count = 0;
	if (r->count && (s->sent_at <= last->sent_at || s->got_at <= last->got_at ||
			 s->got < last->got || s->sent < last->sent))
		return false;
	if (!r->count)
		r->begun = s->sent;
	r->heard_at = now;
	if (!r->rtt || rtt < r->rtt)
		r->rtt = rtt;
	else
		r->rtt += (rtt - r->rtt) / 64;
	r->head = (r->head + 1) % RATE_SAMPLES;
	r->sample[r->head] = *s;
	r->count += r->count < RATE_SAMPLES;
	sample_delay(r, delay_of(s), now);
	sample_late(r, s);
	return true;
}

void rate_heard(struct rate *r, const struct rate_sample *s, uint64_t rtt_ns, uint64_t now)
{
	enum rate_cause why;
	struct sight w;

	if (!take_in(r, s, rtt_ns, now) || !look(r, &w))
		return;
	r->delivered = w.delivered;
	r->lost = w.loss;
	why = full(r, &w);
	if (r->phase != RATE_DOWN && why)
		slow_down(r, &w, why, now);
	else if (now - r->round_at >= turn_ns(r))
		round_over(r, &w, now);
}

bool rate_flooded(const struct rate *r, uint64_t now)
{
	return r->flood_at && now - r->flood_at <= FLOOD_ENDS && now - r->flood_from >= FLOOD_LASTS;
}

uint64_t rate_late_ns(const struct rate *r)
{
	return r->count ? r->late : 0;
}

uint64_t rate_carried(const struct rate *r)
{
	return (uint64_t)(r->doubt ? r->most : r->best);
}
