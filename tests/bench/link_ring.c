// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What all-reduce gains (world_ring.h): 2 channels of 4 queue pairs, 10 Gb/s, path MTU 4096, bare
 * and with two appliances under early with `order = hosts`, honest, and early alone.
 *
 *	ring, tree	MiB to reduce, round trip in ms, share of lost packets, in 1/1000
 *	... 64MiB	a channel's buffer; else 4 MiB, NCCL's default
 *	... apart	not NCCL's: one flag, on a queue pair of its own
 *	... zero	all queue pairs begin with PSN 0, in step; *: appliances did not hold all
 *
 * Before a cell is measured smaller ones are reduced until the appliances hold all lanes. MB/s are
 * of bus bandwidth: bytes a second that each host sends, 1.5 times what is reduced; of the mean
 * time over all seeds. Gains are those of the mean, in which timeouts of bare hosts weigh most,
 * and of the median. Bytes are compared at every flag and at the end: `early-flags` counts the
 * parts that came after their flag under early alone. Elsewhere such a part, or a wrong word, is a
 * death.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/bench/link_bench.h"
#include "tests/scenario/world_ring.h"

#define TEN_G	   10000000000ull
#define LIMIT_NS   (4000000 * MS)
#define WARM	   (1u << 20)
#define WARM_MOST  40u
#define SEEDS_MOST 64u

enum side {
	EARLY_ORDER,
	HONEST,
	EARLY,
	BARE,
	SIDES,
};

struct cell {
	const char *name;
	uint32_t mib, rtt_ms, seeds;
	double loss;
	bool tree, apart;
	enum ring_psns psns;
	uint32_t buffer_mib;
};

/* What one cell was under one policy, over all seeds. */
struct sum {
	double times[SEEDS_MOST], mean, median;
	uint64_t early_flags, wrong;
	uint32_t unheld, dead;
};

static const struct options *opt;

static struct world *make(const struct cell *c, enum side side, uint64_t seed)
{
	struct world_config wc;

	world_defaults(&wc);
	wc.seed = seed;
	wc.appliance[0] = wc.appliance[1] = side != BARE;
	wc.policy = side == HONEST ? POLICY_HONEST : POLICY_EARLY;
	wc.actors.order = side == EARLY_ORDER;
	wc.wan.delay_ns = c->rtt_ms * MS / 2;
	wc.wan.rate_bps = TEN_G;
	wc.wan.queue_bytes = TEN_G / 8 / 1000 * c->rtt_ms;
	wc.wan.store_bytes = 256u << 20;
	wc.wan.loss = c->loss;
	wc.lan.rate_bps = 2 * TEN_G;
	wc.lan.store_bytes = 64u << 20;
	wc.reports_in_band = true;
	wc.engine.pool_bytes = 256u << 20;
	wc.engine.wan_auto = true;
	return world_create(&wc);
}

static void run_once(const struct cell *c, enum side side, uint64_t seed, struct sum *out)
{
	struct world *w = make(c, side, seed);
	struct ring_config rc;
	struct ring *r;
	uint64_t ns = 1;

	ring_defaults(&rc);
	rc.tree = c->tree;
	rc.flag_apart = c->apart;
	rc.psns = c->psns;
	if (c->buffer_mib)
		rc.buffer = c->buffer_mib << 20;
	r = ring_create(w, &rc);
	for (uint32_t i = 0; i < WARM_MOST && ns && (i < 3 || (side != BARE && !ring_held(r))); i++)
		ns = ring_reduce(r, WARM, w->now + LIMIT_NS);
	out->unheld += side != BARE && !ring_held(r);
	if (ns)
		ns = ring_reduce(r, (uint64_t)c->mib << 20, w->now + LIMIT_NS);
	out->dead += !ns;
	out->times[seed - 1] = (double)ns / 1e9;
	out->early_flags += ring_early_flags(r);
	out->wrong += ring_wrong(r);
	if (w->violation)
		printf("# %s: %s\n", c->name, w->violation);
	ring_destroy(r);
	world_destroy(w);
}

static int by_time(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static struct sum run(const struct cell *c, enum side side)
{
	uint32_t seeds = opt->quick ? (c->seeds + 3) / 4 : c->seeds;
	struct sum s = {0};

	for (uint32_t seed = 1; seed <= seeds; seed++) {
		run_once(c, side, seed, &s);
		s.mean += s.times[seed - 1] / seeds;
	}
	qsort(s.times, seeds, sizeof(s.times[0]), by_time);
	s.median = s.times[seeds / 2];
	return s;
}

static void cell(const struct cell *c, struct last *out)
{
	double mb = (double)(c->mib << 20) * 1.5 / 1e6;
	struct sum bare = run(c, BARE);

	printf("%-20s  %6.1f", c->name, mb / bare.mean);
	for (int p = 0; p < BARE; p++) {
		struct sum s = run(c, (enum side)p);
		double gain = bare.mean / s.mean;

		printf("  %6.1f %5.2f %5.2f%s", mb / s.mean, gain, bare.median / s.median,
		       s.unheld ? "*" : " ");
		out->deaths += s.dead > bare.dead || s.wrong || (p != EARLY && s.early_flags);
		if (!(gain >= out->ring))
			out->ring = gain;
		if (p == EARLY)
			printf(" %11" PRIu64, s.early_flags);
	}
	out->deaths += bare.early_flags || bare.wrong;
	printf("\n");
}

void link_ring(const struct options *o, struct last *out)
{
#define CELL(name_, ...)                                                                           \
	{                                                                                          \
		.name = name_, __VA_ARGS__                                                         \
	}
#define LOSS(name_, ...) CELL(name_, .rtt_ms = 50, .loss = 0.001, __VA_ARGS__)
	static const struct cell cells[] = {
		CELL("ring-1-20-0", .mib = 1, .rtt_ms = 20, .seeds = 1),
		CELL("ring-16-20-0", .mib = 16, .rtt_ms = 20, .seeds = 1),
		CELL("ring-128-20-0", .mib = 128, .rtt_ms = 20, .seeds = 1),
		CELL("tree-1-20-0", .mib = 1, .rtt_ms = 20, .seeds = 1, .tree = true),
		CELL("tree-16-20-0", .mib = 16, .rtt_ms = 20, .seeds = 1, .tree = true),
		CELL("tree-128-20-0", .mib = 128, .rtt_ms = 20, .seeds = 1, .tree = true),
		LOSS("ring-1-50-1", .mib = 1, .seeds = 40),
		LOSS("ring-16-50-1", .mib = 16, .seeds = 24),
		LOSS("ring-128-50-1", .mib = 128, .seeds = 3),
		LOSS("tree-1-50-1", .mib = 1, .seeds = 40, .tree = true),
		LOSS("tree-16-50-1", .mib = 16, .seeds = 24, .tree = true),
		LOSS("tree-128-50-1", .mib = 128, .seeds = 3, .tree = true),
		LOSS("ring-128-50-1-64MiB", .mib = 128, .seeds = 1, .buffer_mib = 64),
		LOSS("ring-16-50-1-apart", .mib = 16, .seeds = 4, .apart = true),
		LOSS("ring-16-50-1-zero", .mib = 16, .seeds = 8, .psns = RING_PSN_0),
	};
	bool any = false;

	opt = o;
	for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
		if (!wanted(opt, cells[i].name))
			continue;
		if (!any)
			printf("\n%-20s  %6s  %-19s   %-19s   %-19s   %s\n", "bus bandwidth, MB/s",
			       "bare", "early, order: gains", "honest: gains", "early: gains",
			       "early-flags");
		if (!any)
			out->ring = INFINITY;
		any = true;
		cell(&cells[i], out);
	}
}
