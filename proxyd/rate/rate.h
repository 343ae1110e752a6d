/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How fast the link to one peer may be filled, for all lanes. Pure: samples in, a pace out.
 */
#ifndef LONGHAUL_RATE_RATE_H
#define LONGHAUL_RATE_RATE_H

#include <stdbool.h>
#include <stdint.h>

#define RATE_SAMPLES 64u

/** enum rate_share - what of a link that others use, too, is wanted. */
enum rate_share {
	SHARE_FAIR,	  /* as much as each of them */
	SHARE_MOST,	  /* what can be had */
	SHARE_BACKGROUND, /* what they leave */
	RATE_SHARES,
};

/** enum rate_phase - what the controller is doing. */
enum rate_phase {
	RATE_OPEN,   /* nothing has shown a limit yet */
	RATE_CRUISE, /* at what the link was found to carry */
	RATE_UP,     /* more, round by round: does the link carry more? */
	RATE_DOWN,   /* less: until the queue is gone, and to see what is lost then */
	RATE_PHASES,
};

/** enum rate_cause - what showed the latest limit. */
enum rate_cause {
	RATE_NOTHING,
	RATE_LOSS,  /* more than noise explains */
	RATE_QUEUE, /* one-way delay above its least */
	RATE_MARKS, /* ECN */
	RATE_BOX,   /* the peer's receive rings overflow: its process reads less than arrives */
	RATE_CAUSES,
};

const char *rate_share_name(enum rate_share v);
const char *rate_phase_name(enum rate_phase v);
const char *rate_cause_name(enum rate_cause v);

/**
 * struct rate_sample - one METER and what its echo says.
 * @sent_at, @sent:  when it left, ns by our clock, and the bytes that we had sent by then
 * @got_at, @got:    when the peer got it, ns by the peer's clock, and the bytes that it had got
 * @packets, @marked: that the peer had got by then, and those of them with a congestion mark
 * @waited: how long it waited in the peer's socket before it was read, ns (@got_at is after that)
 * @unread: bytes, at most, that arrived before it and are not in @got yet
 * @early:  bytes of @got, at most, that arrived after it
 * @overrun: packets that the peer's receive rings had lost by then
 */
struct rate_sample {
	uint64_t sent_at, sent;
	uint64_t got_at, got;
	uint64_t packets, marked;
	uint64_t waited, unread, early, overrun;
};

/**
 * struct rate
 * @limit:     bytes per second that are never exceeded, 0: none
 * @share:     what is wanted of a link that is shared
 * @pace:      bytes per second, 0: nothing has shown a limit yet
 * @base:      pace of the phase, before it is trimmed by the queue
 * @best:      bytes per second that arrived when the link was last seen to be full
 * @most:      bytes per second that it may carry, if the latest sign was not one of the link
 * @doubt:     which is believed until the link was full once more
 * @noise:     share of the bytes that is lost whatever the pace
 * @step:      by which share the next round of RATE_UP is faster
 * @tried, @tried_loss: bytes per second, and the share lost, when the link was last seen to be full
 * @rtt:       least round trip, ns; follows slowly when it grows
 * @delay, @least: one way, ns, up to the difference of the clocks: latest, least
 * @changed_at: what was sent before tells of another pace
 * @yield:     others share the link, and are left a part of it
 * @forced:    it was full when more than the pace was sent, because hosts' packets passed by
 * @flood_at, @flood_from: when that was the case, latest and first, 0: never
 * @rivals:    for so many rounds more it is believed that others share the link
 * @standing:  their queue stays however slow we are: it says nothing
 * @starting:  nothing but a queue has been a sign so far
 * @delivered, @lost: of the latest window: bytes per second, share
 * @late:      how late the peer's process read what had arrived, ns: the longest, which fades
 * @begun:     bytes that were sent by the first of these samples
 */
struct rate {
	uint64_t limit;
	enum rate_share share;
	enum rate_phase phase;
	enum rate_cause cause;
	double pace, base, best, most, noise, step, tried, tried_loss;
	uint64_t rtt;
	int64_t delay, least, least_next;
	uint64_t flood_at, flood_from;
	uint64_t least_at, changed_at, round_at, heard_at;
	uint32_t rounds, cruise, rivals;
	bool yield, forced, standing, starting, doubt;
	uint64_t cuts;
	double delivered, lost;
	uint64_t begun, late;
	struct rate_sample sample[RATE_SAMPLES];
	uint32_t head, count;
};

/** rate_init - @limit: bytes per second, 0: none. */
void rate_init(struct rate *r, uint64_t limit, enum rate_share share);

/** rate_forget - the peer counts anew: samples from before cannot be compared with those after. */
void rate_forget(struct rate *r);

/** rate_heard - one more sample, and the round trip that it took. @now: ns by our clock. */
void rate_heard(struct rate *r, const struct rate_sample *s, uint64_t rtt_ns, uint64_t now);

/** rate_flooded - whether packets that are not paced have filled the link for long, and lately. */
bool rate_flooded(const struct rate *r, uint64_t now);

/** rate_carried - bytes per second that arrived when the link was last seen to be full. */
uint64_t rate_carried(const struct rate *r);

/** rate_pace - bytes per second, 0: no limit. */
uint64_t rate_pace(const struct rate *r);

/** rate_late_ns - how late the peer's process may read what has arrived there; 0 where that is not
 *  known. A packet is not overdue before a round trip and this time have passed. */
uint64_t rate_late_ns(const struct rate *r);

/** rate_queue_ns - how much longer than at best the latest sample was under way. */
uint64_t rate_queue_ns(const struct rate *r);

#endif
