// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "peer/delay.h"

void delay_rtt(struct delay *d, uint64_t rtt_ns)
{
	d->rtt = rtt_ns;
	if (d->samples++ == 0) {
		d->srtt = d->rtt_min = rtt_ns;
		return;
	}
	/* Smoothing by 1/8, as TCP does (spec: RFC 6298). */
	if (rtt_ns > d->srtt)
		d->srtt += (rtt_ns - d->srtt) / 8;
	else
		d->srtt -= (d->srtt - rtt_ns) / 8;
	if (rtt_ns < d->rtt_min)
		d->rtt_min = rtt_ns;
}

void delay_oneway(struct delay *d, uint64_t sent, uint64_t now)
{
	/* The peer chooses @sent: a wrong value may give an odd delay, but no undefined behaviour,
	 * so all arithmetic is unsigned. */
	int64_t transit = (int64_t)(now - sent);

	if (!d->have_transit) {
		d->have_transit = true;
		d->transit = d->low = d->low_before = transit;
		d->bucket_end = now + DELAY_BUCKET_NS;
		return;
	}

	uint64_t change = transit > d->transit ? (uint64_t)transit - (uint64_t)d->transit
					       : (uint64_t)d->transit - (uint64_t)transit;

	/* Smoothing by 1/16, as RTP does (spec: RFC 3550 6.4.1). */
	if (change > d->jitter)
		d->jitter += (change - d->jitter) / 16;
	else
		d->jitter -= (d->jitter - change) / 16;
	d->transit = transit;

	if (now >= d->bucket_end) {
		d->low_before = d->low;
		d->low = transit;
		d->bucket_end = now + DELAY_BUCKET_NS;
	} else if (transit < d->low) {
		d->low = transit;
	}
}

uint64_t delay_above(const struct delay *d)
{
	int64_t low = d->low < d->low_before ? d->low : d->low_before;

	return d->have_transit ? (uint64_t)d->transit - (uint64_t)low : 0;
}
