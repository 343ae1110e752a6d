// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One appliance, near the requester, and nobody who counts what arrives: what the window of each
 * lane makes of a link of 1 Gb/s, 20 ms, path MTU 4096 (610 packets to fill it), in WRITEs of
 * 64 KiB.
 *
 *	single-clean	no queue is too long
 *	single-Nbdp	the link's queue holds N times what fills the link
 *	single-noise-P	so much is lost at random
 *	...-lanes	eight lanes that begin 100 ms after each other
 *
 * share: of the payload that the link carries; resent: frames that the appliance sent once more, in
 * % of all it sent; dropped: by the link's queue, in % of what came to it.
 */
#include <inttypes.h>
#include <stdio.h>

#include "tests/bench/link_bench.h"

#define RTT_NS (20 * MS)
#define GBIT   1000000000ull
#define BDP    (GBIT / 8 / 50)
#define BULK   65536u
#define LANES  8u

struct cell {
	const char *name;
	uint32_t lanes;
	double bdp, loss;
};

struct seen {
	double share, resent, dropped, jain;
};

static struct world *make(const struct cell *c, bool bare, struct world_qp *q[])
{
	struct work work = {.ops = 1u << RC_WRITE,
			    .min = BULK,
			    .max = BULK,
			    .left = UINT64_MAX,
			    .outstanding = 128};
	struct rc_qp_config qc = link_qp();
	struct world_config wc;
	struct world *w;

	world_defaults(&wc);
	wc.seed = 1;
	wc.single = true;
	wc.appliance[0] = !bare;
	wc.appliance[1] = false;
	wc.path_mtu = qc.mtu;
	wc.wan.delay_ns = RTT_NS / 2;
	wc.wan.rate_bps = GBIT;
	wc.wan.queue_bytes = (uint64_t)(c->bdp * BDP);
	wc.wan.store_bytes = 256u << 20;
	wc.wan.loss = c->loss;
	wc.lan.rate_bps = 25 * GBIT;
	wc.lan.store_bytes = 256u << 20;
	wc.engine.pool_bytes = 256u << 20;
	w = world_create(&wc);
	if (!w)
		return NULL;
	for (uint32_t i = 0; i < c->lanes; i++) {
		qc.lqpn = 0x100 + i;
		qc.rqpn = 0x200 + i;
		qc.sq_psn = 0x1000 + 0x31000 * i;
		q[i] = world_connect(w, &qc, RC_STRICT);
		world_work(q[i], 0, &work);
		world_run(w, w->now + 100 * MS);
	}
	return w;
}

static struct seen measure(const struct options *o, const struct cell *c, bool bare,
			   struct last *out)
{
	struct world_qp *q[LANES];
	struct world *w = make(c, bare, q);
	uint64_t from, bytes[LANES], sent, lost, frames, again;
	const struct wan_stats *s;
	double sum = 0, squares = 0;
	struct seen v = {0};

	if (!w)
		return v;
	s = wan_stats(w->link[WORLD_WAN(0)]);
	world_run(w, w->now + (uint64_t)(o->seconds * 250) * MS);
	from = w->now;
	for (uint32_t i = 0; i < c->lanes; i++)
		bytes[i] = rc_qp_stats(q[i]->side[1].qp)->rx_bytes;
	sent = s->sent;
	lost = s->lost_queue;
	frames = bare ? 0 : engine_counter(w->engine[0], EC_TX_WAN);
	again = bare ? 0 : engine_counter(w->engine[0], EC_RETX_WAN);
	world_run(w, from + (uint64_t)(o->seconds * 1000) * MS);
	for (uint32_t i = 0; i < c->lanes; i++) {
		double got = (double)(rc_qp_stats(q[i]->side[1].qp)->rx_bytes - bytes[i]);

		sum += got;
		squares += got * got;
	}
	v.share = 100 * sum * 8 / (o->seconds * GBIT) * (4096 + 58.0) / 4096;
	v.jain = sum * sum / (c->lanes * squares);
	v.dropped = 100.0 * (double)(s->lost_queue - lost) / (double)(s->sent - sent);
	if (!bare)
		v.resent = 100.0 * (double)(engine_counter(w->engine[0], EC_RETX_WAN) - again) /
			   (double)(engine_counter(w->engine[0], EC_TX_WAN) - frames);
	for (uint32_t i = 0; i < c->lanes && !bare; i++)
		out->deaths += rc_qp_in_error(q[i]->side[0].qp);
	out->deaths += !bare && w->violation;
	if (o->verbose && !bare)
		world_dump(w, stdout);
	world_destroy(w);
	return v;
}

void link_single(const struct options *o, struct last *out)
{
	static const struct cell cells[] = {
		{"single-clean", 1, 100, 0},
		{"single-1bdp", 1, 1, 0},
		{"single-0.25bdp", 1, 0.25, 0},
		{"single-0.1bdp", 1, 0.1, 0},
		{"single-0.1bdp-lanes", LANES, 0.1, 0},
		{"single-1bdp-lanes", LANES, 1, 0},
		{"single-noise-1e-5", 1, 1, 1e-5},
		{"single-noise-1e-4", 1, 1, 1e-4},
		{"single-noise-1e-3", 1, 1, 1e-3},
		{"single-noise-1e-2", 1, 1, 1e-2},
	};
	bool any = false;

	for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
		const struct cell *c = &cells[i];
		struct seen v, b = {0};

		if (!wanted(o, c->name))
			continue;
		if (!any)
			printf("\n%-22s  %7s  %7s  %7s  %5s  %10s\n", "one appliance, %", "share",
			       "resent", "dropped", "jain", "bare share");
		any = true;
		v = measure(o, c, false, out);
		if (!o->ours)
			b = measure(o, c, true, out);
		printf("%-22s  %7.2f  %7.2f  %7.3f  %5.2f  %10.2f\n", c->name, v.share, v.resent,
		       v.dropped, v.jain, b.share);
	}
}
