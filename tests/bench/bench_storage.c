// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Storage writes over distance, in virtual time: `make bench-storage`.
 *
 *	bench_storage [--quick] [--block BYTES] [--depth N] [--rtt MS] [--loss P] [--off]
 *	              [--verbose]
 *
 * One NVMe over RDMA queue pair (tests/scenario/world_storage.h): the initiator's write capsule,
 * the target's READs of 120 KiB at most, its response. Path MTU 4096, a WAN of 10 Gb/s between LANs
 * of 25 Gb/s, with two appliances and with a wire in their place. The seed is fixed, so every
 * number is the same in every run.
 *
 * - bare, longhaul: time per write (capsule to response, in the mean), in round trips; or, at a
 *   depth above 1, the payload rate.
 * - limit: a round trip and the time that the block takes on the link; or what link and depth
 *   allow: the payload ceiling, or depth blocks in that time, whatever is less.
 * - unused: of all bytes that were pushed in all cells, how many answered no READ of the target:
 *   their command was over when they came, or another answer had come before them, or nobody asked.
 * - The clock starts after WARM_UP commands, in which the appliances learn.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/bench_qp.h"
#include "tests/scenario/world_storage.h"

#define MS		  1000000ull
#define LINK_BPS	  10000000000ull
#define WAN_RATE_PERMILLE 995u
#define LAN_BPS		  25000000000ull
#define MTU		  4096u
#define SPLIT		  (120u << 10)
#define READ_DEPTH	  16u
#define WARM_UP		  64u
#define FRAME_BYTES	  (14u + 20 + 8 + 12 + 4)

struct cell {
	uint32_t block, depth, rtt_ms;
	double loss;
	bool appliances;
};

struct result {
	double each_ns, bps;
	uint64_t pushed, unused;
	const char *bad;
};

static bool verbose, off;

static double link_ns(uint32_t bytes)
{
	uint32_t packets = (bytes + MTU - 1) / MTU;

	return (double)(bytes + packets * FRAME_BYTES) * 8e9 / (double)LINK_BPS;
}

/* What nobody can be better than: time of a command, and payload rate. */
static double limit_ns(const struct cell *c)
{
	return (double)c->rtt_ms * MS + link_ns(c->block);
}

static double limit_bps(const struct cell *c)
{
	double link = (double)LINK_BPS * c->block / (link_ns(c->block) * LINK_BPS / 8e9),
	       depth = 8e9 * c->block * c->depth / limit_ns(c);

	return link < depth ? link : depth;
}

static uint64_t commands(const struct cell *c)
{
	uint64_t n = c->depth > 1 ? 40ull * c->depth : 60;

	return c->loss > 0 ? 8 * n : n;
}

static void hosts(const struct cell *c, struct world_config *wc, struct rc_qp_config *qc,
		  struct storage_config *sc)
{
	world_defaults(wc);
	wc->appliance[0] = wc->appliance[1] = c->appliances;
	wc->storage = true;
	wc->announce = !off;
	wc->wan.delay_ns = c->rtt_ms * MS / 2;
	wc->wan.rate_bps = LINK_BPS;
	wc->wan.store_bytes = (LINK_BPS / 8 * c->rtt_ms / 1000) + (64u << 20);
	wc->wan.queue_bytes = 16 << 20;
	wc->lan.rate_bps = LAN_BPS;
	wc->lan.store_bytes = 64 << 20;
	wc->report_loss = c->loss;
	wc->engine.pool_bytes = 512u << 20;
	wc->engine.wan_rate = LINK_BPS / 8 * WAN_RATE_PERMILLE / 1000;
	wc->path_mtu = MTU;

	*sc = (struct storage_config){.min = c->block,
				      .max = c->block,
				      .depth = c->depth,
				      .split = SPLIT,
				      .count = WARM_UP + commands(c)};
	*qc = bench_qp(MTU);
	qc->max_rd = qc->resp_rd = READ_DEPTH;
	storage_qp(qc, sc);
}

static struct result run(const struct cell *c)
{
	struct world_config wc;
	struct rc_qp_config qc;
	struct storage_config sc;
	struct storage_stats warm = {0};
	struct result res = {0};
	struct world_qp *q;
	struct world *w;
	uint64_t warm_at = 0, end;
	struct conn_info ci;

	hosts(c, &wc, &qc, &sc);
	w = world_create(&wc);
	wc.wan.loss = c->loss;
	for (int i = 0; i < 2; i++)
		world_set_wan(w, i, &wc.wan);
	q = world_connect(w, &qc, RC_STRICT);
	if (!q || !storage_begin(q, &sc)) {
		world_destroy(w);
		res.bad = "no memory";
		return res;
	}
	end = w->now + 600000 * MS;
	while (!w->violation && !storage_done(q) && w->now < end &&
	       !rc_qp_in_error(q->side[0].qp) && !rc_qp_in_error(q->side[1].qp)) {
		world_run(w, w->now + 20000);
		if (warm_at || storage_stats(q)->done < WARM_UP)
			continue;
		warm_at = w->now;
		warm = *storage_stats(q);
	}
	res.each_ns = (double)(storage_stats(q)->sum - warm.sum) /
		      (double)(storage_stats(q)->done - warm.done);
	res.bps = 8e9 * (double)(storage_stats(q)->bytes - warm.bytes) /
		  (double)(storage_stats(q)->last - warm_at);
	if (w->violation)
		res.bad = w->violation;
	else if (!storage_done(q))
		res.bad = "not done";
	/* the target's requests, near the target */
	if (c->appliances && world_conn(w, 1, q, &ci)) {
		const struct announce_info *a = &ci.lane[LANE_OUT].announce;

		res.pushed = a->bytes + a->late;
		res.unused = a->unused + a->late;
	}
	if (verbose && c->appliances)
		world_dump(w, stdout);
	world_destroy(w);
	return res;
}

struct summary {
	double qd1_50ms, qd32_100ms, loss_20ms;
	uint64_t pushed, unused;
	unsigned int bad;
};

static void row(struct summary *s, struct cell c)
{
	double rtt = (double)c.rtt_ms * MS, share;
	struct result bare, with;

	c.appliances = false;
	bare = run(&c);
	c.appliances = true;
	with = run(&c);
	share = 100 * with.bps / limit_bps(&c);
	printf("nvme-write %5u KiB %4u %5u ms  %-6g", c.block >> 10, c.depth, c.rtt_ms, c.loss);
	if (c.depth == 1)
		printf("  %7.3f rtt  %7.3f rtt  %7.3f rtt  %5.3f x", bare.each_ns / rtt,
		       with.each_ns / rtt, limit_ns(&c) / rtt, with.each_ns / limit_ns(&c));
	else
		printf("  %6.3f Gb/s  %6.3f Gb/s  %6.3f Gb/s  %5.1f %%", bare.bps / 1e9,
		       with.bps / 1e9, limit_bps(&c) / 1e9, share);
	printf("%s%s\n", with.bad ? "  " : "", with.bad ? with.bad : "");
	fflush(stdout);
	s->bad += with.bad != NULL;
	s->pushed += with.pushed;
	s->unused += with.unused;
	if (c.depth == 1 && c.rtt_ms == 50 && c.loss == 0 && c.block == 64u << 10)
		s->qd1_50ms = with.each_ns / rtt;
	if (c.depth == 32 && c.rtt_ms == 100 && c.loss == 0 && c.block == 128u << 10)
		s->qd32_100ms = share;
	if (c.depth == 32 && c.rtt_ms == 20 && c.loss == 1e-3 && c.block == 128u << 10)
		s->loss_20ms = share;
}

static struct summary table(struct cell only, bool quick)
{
	static const struct {
		uint32_t block, depth;
	} loads[] = {{4u << 10, 1},    {64u << 10, 1},	{64u << 10, 4},
		     {128u << 10, 32}, {256u << 10, 1}, {1u << 20, 4}};
	static const uint32_t rtts[] = {1, 10, 20, 50, 100};
	struct summary s = {.qd1_50ms = -1, .qd32_100ms = -1, .loss_20ms = -1};

	printf("10 Gb/s, path MTU %u, one queue pair; limit: nobody can be better\n\n"
	       "protocol      block depth    rtt  loss           bare     longhaul        limit\n",
	       MTU);
	for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++)
		for (size_t t = 0; t < sizeof(rtts) / sizeof(rtts[0]); t++)
			for (int lossy = 0; lossy < 2; lossy++) {
				struct cell c = {.block = loads[i].block,
						 .depth = loads[i].depth,
						 .rtt_ms = rtts[t],
						 .loss = lossy ? 1e-3 : 0};

				if ((lossy && c.rtt_ms != 20) ||
				    (only.block && only.block != c.block) ||
				    (only.depth && only.depth != c.depth) ||
				    (only.rtt_ms && only.rtt_ms != c.rtt_ms) ||
				    (only.loss >= 0 && only.loss != c.loss) ||
				    (quick && c.rtt_ms != 20 && c.rtt_ms != 50))
					continue;
				row(&s, c);
			}
	return s;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"quick", no_argument, NULL, 'q'},	 {"block", required_argument, NULL, 'b'},
		{"depth", required_argument, NULL, 'd'}, {"rtt", required_argument, NULL, 't'},
		{"loss", required_argument, NULL, 'l'},	 {"off", no_argument, NULL, 'o'},
		{"verbose", no_argument, NULL, 'v'},	 {0},
	};
	struct cell only = {.loss = -1};
	struct summary s;
	bool quick = false;
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (o) {
		case 'q':
			quick = true;
			break;
		case 'b':
			only.block = (uint32_t)atoi(optarg);
			break;
		case 'd':
			only.depth = (uint32_t)atoi(optarg);
			break;
		case 't':
			only.rtt_ms = (uint32_t)atoi(optarg);
			break;
		case 'l':
			only.loss = atof(optarg);
			break;
		case 'o':
			off = true;
			break;
		case 'v':
			verbose = true;
			break;
		default:
			fprintf(stderr,
				"usage: bench_storage [--quick] [--block BYTES] [--depth N] "
				"[--rtt MS] [--loss P] [--off] [--verbose]\n");
			return 2;
		}
	}
	s = table(only, quick);
	printf("bench-storage: qd1-64k-50ms-rtts=%.3f qd32-128k-100ms=%.1f%% "
	       "loss-1e-3-20ms=%.1f%% unused=%.2f%%\n",
	       s.qd1_50ms, s.qd32_100ms, s.loss_20ms,
	       s.pushed ? 100 * (double)s.unused / (double)s.pushed : 0);
	return s.bad ? 1 : 0;
}
