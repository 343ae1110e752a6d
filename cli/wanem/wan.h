/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One direction of a long link, as a pure model: a bottleneck with a drop-tail queue, a delay, and
 * everything that goes wrong on the way. Time comes from the caller; the same seed and input give
 * the same output. Two of these make a link, with the same or with different settings.
 *
 *	buf = wan_buf(w); ... build the frame there ...; wan_send(w, now, len);
 *	while ((data = wan_pop(w, now, &len)))
 *		deliver(data, len);
 *	next = wan_next(w);
 */
#ifndef LONGHAUL_CLI_WANEM_WAN_H
#define LONGHAUL_CLI_WANEM_WAN_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/wanem/prng.h"

#define WAN_NEVER     UINT64_MAX
/* Longest frame carried. */
#define WAN_FRAME_MAX 9216u

/**
 * struct wan_config
 * @delay_ns:     one way
 * @rate_bps:     bits per second of Ethernet frames; 0: no limit
 * @queue_bytes:  most that may wait for the bottleneck; 0: no limit
 * @loss, @dup, @reorder, @corrupt: probabilities per frame
 * @loss_by_length: @loss is that of a frame of 1 KiB; longer ones are lost more often (wan.c)
 * @loss_swing:   @loss is that of the worst time. It goes down to so many times less, and up again,
 *                in @loss_swing_ns; 0: it does not change. Where it begins depends on the seed
 * @reorder_ns:   extra delay of a reordered frame
 * @burst_start, @burst_end, @burst_loss: Gilbert-Elliott: probability to enter and to leave the bad
 *                state, per frame, and the loss in it
 * @mtu:          longer IP packets are dropped, without a word; 0: none are
 * @mark:         probability that a packet that knows ECN is marked with Congestion Experienced
 * @bleach:       the DSCP of all packets becomes 0, as some providers do
 * @only_roce:    impair only UDP to port 4791; other frames have delay, rate and MTU only
 * @down:         the link is cut: frames sent now are lost, those under way arrive
 * @seed:         used by wan_create() only
 * @store_bytes:  memory for frames under way; 0: 32 MiB. Frames beyond are lost and counted
 *                (no_room)
 */
struct wan_config {
	uint64_t delay_ns, rate_bps, queue_bytes;
	double loss, dup, reorder, corrupt, loss_swing;
	uint64_t loss_swing_ns;
	uint64_t reorder_ns;
	double burst_start, burst_end, burst_loss;
	uint64_t mtu;
	double mark;
	bool bleach, only_roce, down, loss_by_length;
	uint64_t seed;
	uint64_t store_bytes;
};

struct wan_stats {
	uint64_t sent, sent_bytes, delivered, delivered_bytes;
	uint64_t lost, lost_burst, lost_queue, lost_down, lost_mtu, no_room;
	uint64_t duplicated, reordered, corrupted, marked;
	uint64_t queue_peak_bytes, store_peak_bytes;
};

struct wan;

struct wan *wan_create(const struct wan_config *cfg);
void wan_destroy(struct wan *w);
/** wan_set - change everything but seed and store_bytes. Frames under way keep their arrival. */
void wan_set(struct wan *w, const struct wan_config *cfg);
const struct wan_config *wan_config(const struct wan *w);
const struct wan_stats *wan_stats(const struct wan *w);

/** wan_buf - room for one frame of WAN_FRAME_MAX bytes; NULL when the store is full (the caller may
 *  drop the frame with wan_no_room() or wait until something was popped). Valid until wan_send() or
 *  the next call. */
uint8_t *wan_buf(struct wan *w);
/** wan_send - the frame built in the last wan_buf() enters the link. */
void wan_send(struct wan *w, uint64_t now, uint32_t len);
/** wan_no_room - count a frame that found no buffer. */
void wan_no_room(struct wan *w);
/** wan_pop - the next frame that has arrived by @now, or NULL. Valid until the next wan_pop(). */
const uint8_t *wan_pop(struct wan *w, uint64_t now, uint32_t *len);
/** wan_next - arrival of the next frame, WAN_NEVER if none is under way. */
uint64_t wan_next(const struct wan *w);
/** wan_waiting - bytes that wait for the bottleneck. */
uint64_t wan_waiting(const struct wan *w, uint64_t now);
/** wan_is_roce - UDP to port 4791 over IPv4 or IPv6, up to two VLAN tags. */
bool wan_is_roce(const uint8_t *data, uint32_t len);

#endif
