// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Links as the field has them, for random worlds: with a short queue, others who send, a rate that
 * the operator does not know or has told wrong, and lanes whose span fills. Loss in bursts, of long
 * packets more than of short ones, that varies. And appliances that read late what comes, have
 * several receive queues, or several engines.
 */
#include "tests/scenario/plan.h"

static uint64_t part(uint64_t of, uint32_t permille)
{
	return of * permille / 1000;
}

static void rate_told(struct plan *p, struct prng *r)
{
	uint64_t bytes = p->rate_bps / 8;

	p->wan_auto = prng_hit(r, 0.5);
	switch (prng_below(r, 4)) {
	case 0: /* not at all, or as if there were no limit */
		p->wan_rate = 0;
		break;
	case 1:
		p->wan_rate = part(bytes, 50 + prng_below(r, 800));
		break;
	case 2:
		p->wan_rate = part(bytes, 1050 + prng_below(r, 1000));
		break;
	default:
		p->wan_rate = bytes * (2 + prng_below(r, 20));
		break;
	}
}

/* Queue pairs whose PSNs are near each other, and of whose packets so many are lost that hardly one
 * becomes held: what comes back may seem to be of another. */
static void one_region(struct plan *p, struct prng *r)
{
	uint32_t base = (uint32_t)prng_next(r) & 0xffffff;

	if (!p->single)
		p->loss0 = p->loss1 = 0.03 * (1 + prng_below(r, 6));
	for (uint32_t i = 0; i < p->nqps; i++) {
		p->qp[i].cm = 0;
		p->qp[i].sq_psn = (base + prng_below(r, 64)) & 0xffffff;
		p->qp[i].rq_psn = (base + prng_below(r, 64)) & 0xffffff;
	}
}

/* Mostly as little as a kernel and a network card make it. */
void plan_late(struct plan *p)
{
	struct prng r;

	prng_init(&r, splitmix64(p->seed ^ 0x1a7e5));
	p->actors.late = 1 + prng_below(&r, 15);
	if (prng_hit(&r, 0.3))
		p->actors.late |= LATE_OPEN;
	p->actors.late_us = 1 + prng_below(&r, prng_hit(&r, 0.75) ? 200 : 5000);
}

/* As a process reads that has much to do elsewhere, or as a card moderates its interrupts. */
void plan_queues(struct plan *p)
{
	struct prng r;

	prng_init(&r, splitmix64(p->seed ^ 0x90e0e5));
	p->actors.queues = 2 + prng_below(&r, QUEUES_MAX - 1);
	p->actors.queue_us = 1 + prng_below(&r, prng_hit(&r, 0.75) ? 300 : 5000);
}

/* Hosts are several then, which this world takes for one where it looks at what one knows of
 * another's memory, at the order of their messages, and at shares of an appliance's memory. */
void plan_cores(struct plan *p)
{
	struct prng r;

	prng_init(&r, splitmix64(p->seed ^ 0xc04e5));
	p->cores0 = 1 + prng_below(&r, 3);
	p->cores1 = p->cores0 > 1 ? 1 + prng_below(&r, 3) : 2;
	p->actors.order = p->actors.share = 0;
	for (uint32_t i = 0; i < p->nqps; i++)
		p->qp[i].change_us = 0;
	for (uint32_t n = prng_below(&r, 5); n && p->nincidents < PLAN_INCIDENTS; n--)
		p->incident[p->nincidents++] =
			(struct plan_incident){.what = INC_OPERATOR,
					       .at = prng_below(&r, 950),
					       .for_ms = 1 + prng_below(&r, 300),
					       .side = prng_below(&r, 2),
					       .arg = prng_below(&r, WISHES)};
}

void plan_link(struct plan *p)
{
	struct prng r;
	uint64_t bdp;

	prng_init(&r, splitmix64(p->seed ^ 0x11a4c));
	p->in_band = 1;
	p->rate_bps = 20000000ull << prng_below(&r, 6);
	bdp = part(p->rate_bps / 8, (uint32_t)(2 * p->delay_ns / 1000000));
	p->queue_bytes = part(bdp, 100u << prng_below(&r, 6));
	if (p->queue_bytes < 32768)
		p->queue_bytes = 32768;
	rate_told(p, &r);
	if (prng_hit(&r, 0.6)) {
		p->actors.cross_bps = part(p->rate_bps, 100 + prng_below(&r, 850));
		p->actors.cross_ms = 1 + prng_below(&r, 1000);
		if (p->actors.cross_bps > 200000000)
			p->actors.cross_bps = 200000000;
	}
	if (!p->announce && prng_hit(&r, 0.4))
		p->lane_span = 512 + prng_below(&r, 4096);
	if (p->nqps > 1 && prng_hit(&r, 0.3))
		one_region(p, &r);
}

/* A world takes seconds, so what takes minutes in the field takes milliseconds to seconds here. */
void plan_field(struct plan *p)
{
	static const uint32_t lengths[] = {2, 4, 8, 16, 64};
	struct prng r;

	prng_init(&r, splitmix64(p->seed ^ 0xf1e1d));
	/* single mode goes back over the WAN: see random_appliances() */
	if (p->single || !prng_hit(&r, 0.2))
		return;
	if (prng_hit(&r, 0.5)) {
		p->burst_length = lengths[prng_below(&r, 5)];
		p->burst = (prng_hit(&r, 0.5) ? 0.001 : 0.01) / p->burst_length;
	}
	if (prng_hit(&r, 0.5)) {
		p->by_length = 1;
		p->loss0 = p->loss1 = prng_hit(&r, 0.5) ? 0.01 : 0.02;
	}
	if (prng_hit(&r, 0.5)) {
		p->swing = prng_hit(&r, 0.5) ? 100 : 1000;
		p->swing_ms = 1u << prng_below(&r, 14);
		if (p->loss0 < 0.001)
			p->loss0 = p->loss1 = 0.01;
	}
}

/* As a storage target that is busy, or whose disks are. */
void plan_slow(struct plan *p)
{
	struct prng r;

	prng_init(&r, splitmix64(p->seed ^ 0x510e));
	for (uint32_t i = 0; i < p->nqps; i++)
		if (prng_hit(&r, 0.2))
			p->qp[i].reply_us = 1 + prng_below(&r, prng_hit(&r, 0.75) ? 100 : 1000);
}
