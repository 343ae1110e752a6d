// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Is a policy ever slower than no appliance at all? One queue pair, 20 ms, 10 Gb/s, path MTU 4096;
 * how long so many messages take until the host has its last completion and the far host the last
 * message, the first ones of a lane that nobody knows yet included, for early, honest and off,
 * early with order = hosts, and bare.
 *
 *	policy ... ping		a SEND of 64 bytes to and fro, the next one when the last has come
 *	policy ... 1, 16, 128	WRITEs, so many outstanding
 *	... slow		the hosts have 100 Mb/s, and take a millisecond to answer
 *	... loss		0.1 % of the packets are lost at random
 *
 * The last line has the least of bare / ours: below 1 an appliance costs time.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "tests/bench/link_bench.h"

#define RTT_NS	 (20 * MS)
#define LIMIT_NS (400000 * MS)
#define TEN_G	 10000000000ull

/* What a lost packet costs depends on which one it is: by as much as a host's timer. One run with
 * loss tells of its seed, not of the policy. */
#define SEEDS	    100u
#define SEEDS_QUICK 20u

/* What a cell is measured with: a policy, or one of these. */
enum { WITH_ORDER = POLICIES, BARE };

struct cell {
	const char *name;
	uint32_t size, outstanding, messages;
	bool ping, cm;
	double loss;
	uint64_t slow_ns;
};

static const struct options *opt;
static struct world_qp *pinged;
static uint32_t left; /* messages that have not come */

static void ping(struct world *w, int side)
{
	struct rc_wr wr = {.op = RC_SEND, .length = 64};

	rc_post(pinged->side[side].qp, w->now, &wr);
}

static void came(struct world *w, struct world_qp *q, int side)
{
	if (q != pinged)
		return;
	if (side == 0 && --left == 0)
		return;
	ping(w, side);
}

static void arrived(struct world *w, struct world_qp *q, int side)
{
	(void)w;
	(void)q;
	left -= side == 1;
}

static struct world *make(const struct cell *c, int policy, uint64_t seed)
{
	struct world_config wc;

	world_defaults(&wc);
	wc.seed = seed;
	wc.appliance[0] = wc.appliance[1] = policy != BARE;
	wc.actors.order = policy == WITH_ORDER;
	wc.policy = policy < POLICIES ? (enum ack_policy)policy : POLICY_EARLY;
	wc.wan.delay_ns = RTT_NS / 2;
	wc.wan.rate_bps = TEN_G;
	wc.wan.queue_bytes = TEN_G / 8 / 1000 * 20;
	wc.wan.store_bytes = 256u << 20;
	wc.wan.loss = c->loss;
	wc.lan.rate_bps = c->slow_ns ? TEN_G / 100 : 2 * TEN_G;
	wc.lan.store_bytes = 64u << 20;
	wc.lan.delay_ns = c->slow_ns / 2;
	wc.reports_in_band = true;
	wc.engine.pool_bytes = 256u << 20;
	wc.engine.wan_auto = true;
	return world_create(&wc);
}

/* Milliseconds; NAN when the queue pair died. */
static double run_once(const struct cell *c, int policy, uint64_t seed)
{
	struct world *w = make(c, policy, seed);
	struct work work = {.ops = 1u << RC_WRITE,
			    .min = c->size,
			    .max = c->size,
			    .left = c->messages,
			    .outstanding = c->outstanding};
	struct rc_qp_config qc;
	struct world_qp *q;
	uint64_t from;
	double ms;

	/* of a peer that has just come up nothing is known */
	world_run(w, w->now + 400 * MS);
	qc = link_qp();
	q = c->cm ? world_connect_cm(w, &qc, RC_STRICT) : world_connect(w, &qc, RC_STRICT);
	while (!q->up)
		world_run(w, w->now + 10000);
	from = w->now;
	left = c->messages;
	if (c->ping) {
		pinged = q;
		w->received = came;
		ping(w, 0);
		while (left && w->now < from + LIMIT_NS && !rc_qp_in_error(q->side[0].qp))
			world_run(w, w->now + RTT_NS / 200);
	} else {
		w->received = arrived;
		world_work(q, 0, &work);
		while ((q->side[0].ok < c->messages || left) && w->now < from + LIMIT_NS &&
		       !rc_qp_in_error(q->side[0].qp))
			world_run(w, w->now + RTT_NS / 200);
	}
	ms = rc_qp_in_error(q->side[0].qp) || w->violation ? NAN : (double)(w->now - from) / 1e6;
	world_destroy(w);
	return ms;
}

/* The mean of all seeds; NAN when one of the queue pairs died. */
static double run(const struct cell *c, int policy)
{
	unsigned int seeds = c->loss > 0 ? (opt->quick ? SEEDS_QUICK : SEEDS) : 1;
	double sum = 0;

	for (unsigned int seed = 1; seed <= seeds; seed++)
		sum += run_once(c, policy, seed);
	return sum / seeds;
}

static void cell(const struct cell *c, struct last *out)
{
	double bare = run(c, BARE);

	printf("%-22s", c->name);
	for (int p = 0; p < BARE; p++) {
		double ours = run(c, p);

		printf("  %9.2f", ours);
		out->deaths += isnan(ours) && !isnan(bare);
		if (!isnan(bare) && !(bare / ours >= out->policy))
			out->policy = bare / ours;
	}
	printf("  %9.2f\n", bare);
}

void link_policy(const struct options *o, struct last *out)
{
#define SLOW(name_, size_, outstanding_, messages_, ping_, cm_, loss_, slow_)                      \
	{                                                                                          \
		.name = "policy-" name_, .size = size_, .outstanding = outstanding_,               \
		.messages = messages_, .ping = ping_, .cm = cm_, .loss = loss_, .slow_ns = slow_   \
	}
#define CELL(...) SLOW(__VA_ARGS__, 0)
	static const struct cell cells[] = {
		CELL("ping", 64, 1, 50, true, false, 0),
		CELL("ping-cm", 64, 1, 50, true, true, 0),
		CELL("ping-loss", 64, 1, 2000, true, false, 0.001),
		CELL("64B-1", 64, 1, 50, false, false, 0),
		CELL("64B-16", 64, 16, 2000, false, false, 0),
		CELL("64B-128", 64, 128, 20000, false, false, 0),
		CELL("4K-1", 4096, 1, 50, false, false, 0),
		CELL("64K-1", 65536, 1, 50, false, false, 0),
		CELL("64K-16", 65536, 16, 800, false, false, 0),
		CELL("64K-16-cm", 65536, 16, 800, false, true, 0),
		CELL("64K-128", 65536, 128, 4000, false, false, 0),
		SLOW("4K-64-slow", 4096, 64, 3000, false, true, 0, MS),
		CELL("64K-1-loss", 65536, 1, 400, false, false, 0.001),
		CELL("64K-16-loss", 65536, 16, 800, false, false, 0.001),
		CELL("64K-128-loss", 65536, 128, 800, false, false, 0.001),
	};
	bool any = false;

	opt = o;
	for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
		if (!wanted(opt, cells[i].name))
			continue;
		if (!any)
			printf("\n%-22s  %9s  %9s  %9s  %9s  %9s\n", "all messages, ms", "early",
			       "honest", "off", "order", "bare");
		if (!any)
			out->policy = INFINITY;
		any = true;
		cell(&cells[i], out);
	}
}
