/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Round trip and one-way delay from heartbeats. The two clocks are not synchronized, so one-way
 * delay is known only up to a constant; only its changes count. The reference is the smallest value
 * of the last half to whole minute: long enough to have seen an empty queue, short enough for the
 * clocks' drift (50 ppm is 3 ms a minute) to stay small.
 */
#ifndef LONGHAUL_PEER_DELAY_H
#define LONGHAUL_PEER_DELAY_H

#include <stdbool.h>
#include <stdint.h>

#define DELAY_BUCKET_NS 30000000000ull

/** struct delay - zero is the initial state. Times in ns; transit is receiver's clock minus
 *  sender's. */
struct delay {
	uint64_t samples, rtt, srtt, rtt_min;
	bool have_transit;
	int64_t transit;	 /* latest */
	int64_t low, low_before; /* smallest of this bucket and of the one before */
	uint64_t bucket_end;
	uint64_t jitter;
};

/** delay_rtt - a round trip was measured. */
void delay_rtt(struct delay *d, uint64_t rtt_ns);

/** delay_oneway - a message sent at @sent by the peer's clock arrived at @now by ours, in order. */
void delay_oneway(struct delay *d, uint64_t sent, uint64_t now);

/** delay_above - by how much the latest transit exceeded the smallest. */
uint64_t delay_above(const struct delay *d);

#endif
