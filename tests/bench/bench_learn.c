// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Queue pairs in step from PSN 0 without the connection manager, in virtual time: how soon they are
 * learned, and whether rightly. `make bench-learn`; QUICK=1 takes a few seconds.
 *
 *	bench_learn [--quick] [--seed N] [--pairs-only | --apart]
 *
 *	rtts	round trips of 20 ms until the near appliance holds all of them; `never` after 10 s
 *	1s, 10s	of the bytes of the first second, of ten: what queue pairs completed while held, %
 *	pairs	that both appliances have learned; wrong: that do not exist. Hints do not count
 *
 * One message after the other is cut over all queue pairs, AHEAD at a time. After that come many
 * short worlds in which numbers, ports, loss and the number of queue pairs are drawn: these count
 * wrong pairs only. The last line sums up. With --apart each appliance sees one direction only of
 * every connection in these: there is no pair to be found, though PSNs say so of some: hints that
 * nothing proves.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/wanem/prng.h"
#include "tests/scenario/world.h"
#include "tests/scenario/world_priv.h"

#define SEC	       (1000 * MS)
#define RTT_NS	       (20 * MS)
#define AHEAD	       8u
#define STEP_NS	       MS
/* After so long a cell is looked at once in a round trip. */
#define EARLY_NS       (20 * RTT_NS)
/* A message, and the least part of it that one queue pair carries. */
#define MESSAGE	       (512u << 10)
#define CHUNK_LEAST    4096u
/* So long a message is on the link. */
#define BURST_NS       (2 * MS)
#define MTU	       4096u
#define DRAWN_MESSAGES 200u
#define PAIRS_GOAL     100000u

struct options {
	uint64_t seed;
	bool quick, pairs_only, apart;
};

struct totals {
	uint64_t pairs, wrong, hints, wrong_hints;
	int deaths;
};

/* What a cell found: round trips (0: never), and shares of bytes, %. */
struct learned {
	double rtts, first, ten;
};

static const char *const port_names[RC_PORTS] = {"constant", "by-qpns", "equal", "own-qpn",
						 "own-hash"};

static uint32_t chunk(uint32_t qps)
{
	return MESSAGE / qps > CHUNK_LEAST ? MESSAGE / qps : CHUNK_LEAST;
}

static struct world *make(uint64_t seed, uint64_t delay_ns, uint32_t qps)
{
	struct world_config wc;

	world_defaults(&wc);
	wc.seed = seed;
	wc.wan.delay_ns = delay_ns;
	wc.wan.rate_bps = chunk(qps) * 8ull * qps * SEC / BURST_NS;
	wc.wan.queue_bytes = 64u << 20;
	wc.engine.max_conns = qps * 2 + 16;
	wc.proved = true;
	return world_create(&wc);
}

static void qp_config(struct rc_qp_config *qc, enum rc_ports ports, uint32_t lqpn, uint32_t rqpn)
{
	rc_qp_defaults(qc, RC_STRICT);
	qc->lqpn = lqpn;
	qc->rqpn = rqpn;
	qc->ports = ports;
	qc->mtu = MTU;
	qc->depth = 16;
	qc->timeout_exp = 17;
	qc->journal = 64;
	qc->shadow = false;
	qc->no_verify = qc->no_land = true;
	qc->mr_size = qc->rmr_size = MESSAGE;
}

/* The pairs that both appliances know, against those that exist. */
static void count_pairs(struct world *w, struct totals *t)
{
	struct conn_info ci;

	for (int side = 0; side < 2; side++) {
		for (uint32_t from = 0; engine_conn_next(w->engine[side], from, w->now, &ci);
		     from = ci.id + 1) {
			bool right = false;

			if (!ci.paired)
				continue;
			for (uint32_t i = 0; i < w->nqps && !right; i++) {
				const struct rc_qp_config *c = &w->qp[i].cfg[side];

				right = ci.lqpn == c->lqpn && ci.rqpn == c->rqpn &&
					ip_addr_eq(&ci.lan_ip, &c->src) &&
					ip_addr_eq(&ci.wan_ip, &c->dst);
			}
			if (ci.learned_by == LEARNED_HINT) {
				t->hints++;
				t->wrong_hints += !right;
				continue;
			}
			t->pairs++;
			t->wrong += !right;
		}
	}
}

static bool held(struct world *w, const struct world_qp *q)
{
	struct conn_info ci;

	return world_conn(w, 0, q, &ci) && ci.lane[LANE_OUT].state == LANE_HELD;
}

/* How many pairs the appliances know, the one that knows fewer. */
static uint32_t learned(struct world *w)
{
	struct engine_memory m[2];

	for (int s = 0; s < 2; s++)
		engine_memory(w->engine[s], &m[s]);
	return m[0].conns < m[1].conns ? m[0].conns : m[1].conns;
}

/* Give each queue pair its part of the messages that may be under way now. */
static void stripe(struct world *w, uint64_t *granted, uint64_t most, uint32_t size)
{
	uint64_t done = UINT64_MAX;

	for (uint32_t i = 0; i < w->nqps; i++)
		done = min64(done, w->qp[i].side[0].ok);
	if (done + AHEAD <= *granted || *granted >= most)
		return;
	for (uint32_t i = 0; i < w->nqps; i++) {
		struct work k = {.ops = 1u << RC_WRITE,
				 .min = size,
				 .max = size,
				 .left = w->qp[i].side[0].work.left + done + AHEAD - *granted};

		world_work(&w->qp[i], 0, &k);
	}
	*granted = done + AHEAD;
}

static uint32_t all_held(struct world *w, uint64_t *ok, uint64_t *accelerated)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->nqps; i++) {
		const struct world_qp *q = &w->qp[i];
		bool is = held(w, q);

		*accelerated += is ? q->side[0].ok - ok[i] : 0;
		ok[i] = q->side[0].ok;
		n += is;
	}
	return n;
}

static struct learned cell(enum rc_ports ports, uint32_t n, const struct options *o,
			   struct totals *t)
{
	static uint64_t ok[WORLD_QPS];
	struct world *w = make(o->seed + n, RTT_NS / 2, n);
	struct learned l = {0};
	struct rc_qp_config qc;
	uint64_t granted = 0, accelerated = 0, done, start = w->now,
		 end = start + (o->quick ? SEC : 10 * SEC);

	memset(ok, 0, sizeof(ok));
	for (uint32_t i = 0; i < n; i++) {
		/* numbers as cards give them, not in the same order at both hosts */
		qp_config(&qc, ports, 0x4000 + i * 67, 0x21000 + (i * 5 % n) * 133);
		world_connect(w, &qc, RC_STRICT);
	}
	while (w->now < end && !w->violation) {
		uint64_t until = w->now + (w->now < start + EARLY_NS ? STEP_NS : RTT_NS);

		while (w->now < until && !w->violation) {
			stripe(w, &granted, UINT64_MAX, chunk(n));
			w->pause_at = w->finished + n;
			world_run(w, until);
		}
		if (all_held(w, ok, &accelerated) == n && !l.rtts)
			l.rtts = (double)(w->now - start) / (double)RTT_NS;
		done = 0;
		for (uint32_t i = 0; i < n; i++)
			done += ok[i];
		if (done && w->now <= start + SEC)
			l.first = 100 * (double)accelerated / (double)done;
		if (done)
			l.ten = 100 * (double)accelerated / (double)done;
	}
	if (w->violation)
		printf("(%s) ", w->violation);
	t->deaths += w->violation != NULL;
	count_pairs(w, t);
	world_destroy(w);
	return l;
}

static void cells(const struct options *o, struct totals *t, struct learned of[RC_PORTS][5])
{
	static const uint32_t counts[] = {1, 4, 16, 64, 256};

	printf("%-10s %5s %8s %7s %7s\n", "ports", "qps", "rtts", "1s", "10s");
	for (int p = 0; p < RC_PORTS; p++) {
		for (int i = 0; i < 5; i++) {
			struct learned l = cell((enum rc_ports)p, counts[i], o, t);

			of[p][i] = l;
			printf("%-10s %5u ", port_names[p], counts[i]);
			if (l.rtts > 0)
				printf("%8.2f", l.rtts);
			else
				printf("%8s", "never");
			printf(" %7.1f %7.1f\n", l.first, o->quick ? 0 : l.ten);
		}
	}
}

/* A queue pair number of one of the ways in which hosts count. */
static uint32_t number(struct prng *r, uint32_t how, uint32_t base, uint32_t i)
{
	switch (how) {
	case 0:
		return base + i;
	case 1:
		return base + i * 64;
	case 2:
		return 0x4000 * (1 + i % 0x200) + i / 0x200;
	case 3:
		return (base << 12) + i;
	default:
		return 0x100 + prng_below(r, 0xfff000);
	}
}

static void draw_numbers(struct prng *r, uint32_t *of, uint32_t n, uint32_t how)
{
	uint32_t base = 0x11 + prng_below(r, prng_hit(r, 0.5) ? 2 : 0x200);

	for (uint32_t i = 0; i < n; i++) {
		bool again;

		do {
			again = false;
			of[i] = number(r, how, base, i);
			for (uint32_t k = 0; how > 3 && k < i; k++)
				again |= of[k] == of[i];
		} while (again);
	}
	if (!prng_hit(r, 0.7))
		return;
	for (uint32_t i = n; i > 1; i--) {
		uint32_t k = prng_below(r, i), swap = of[i - 1];

		of[i - 1] = of[k];
		of[k] = swap;
	}
}

/* A short world in which all but the step is drawn. */
static void drawn(uint64_t seed, const struct options *o, struct totals *t)
{
	static uint32_t a[WORLD_QPS], b[WORLD_QPS];
	struct prng r;
	struct rc_qp_config qc;
	uint32_t n, ways;
	enum rc_ports ports;
	uint64_t granted = 0;
	struct world *w;

	prng_init(&r, seed);
	n = 1u << prng_below(&r, 7);
	n += prng_below(&r, n + 1);
	ways = prng_below(&r, 5);
	w = make(seed, (1 + prng_below(&r, 5)) * MS, n);
	ports = (enum rc_ports)prng_below(&r, RC_PORTS);
	draw_numbers(&r, a, n, ways);
	draw_numbers(&r, b, n, prng_hit(&r, 0.7) ? ways : prng_below(&r, 5));
	if (prng_hit(&r, 0.3)) {
		struct wan_config c = *wan_config(w->link[WORLD_WAN(0)]);

		c.loss = 0.001;
		world_set_wan(w, 0, &c);
		world_set_wan(w, 1, &c);
	}
	for (uint32_t i = 0; i < n; i++) {
		enum rc_ports p =
			prng_hit(&r, 0.02) ? (enum rc_ports)prng_below(&r, RC_PORTS) : ports;

		qp_config(&qc, p, a[i], b[i]);
		/* here and there one port for several, as few entropy bits give */
		qc.sport = (uint16_t)(0xc000 + (prng_hit(&r, 0.5) ? 0 : i));
		world_connect(w, &qc, RC_STRICT);
	}
	if (o->apart)
		world_path(w, &(struct path){
				      .miss = {MISS_FIRST | MISS_SECOND, MISS_FIRST | MISS_SECOND},
				      .times = 1,
				      .on = SEC,
				      .every = SEC,
				      .apart = true});
	for (uint64_t end = w->now + 200 * MS; w->now < end && !w->violation && learned(w) < n;) {
		stripe(w, &granted, DRAWN_MESSAGES, 64);
		w->pause_at = w->finished + n;
		world_run(w, min64(end, w->now + STEP_NS));
	}
	if (w->violation)
		printf("seed %" PRIu64 ": %s\n", seed, w->violation);
	t->deaths += w->violation != NULL;
	count_pairs(w, t);
	world_destroy(w);
}

static void rtts(const char *name, double v)
{
	if (v > 0)
		printf(" %s=%.1f", name, v);
	else
		printf(" %s=never", name);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"quick", no_argument, NULL, 'q'},
						{"seed", required_argument, NULL, 's'},
						{"pairs-only", no_argument, NULL, 'p'},
						{"apart", no_argument, NULL, 'a'},
						{0}};
	struct options o = {.seed = 1};
	struct learned of[RC_PORTS][5] = {0};
	struct totals t = {0};
	uint64_t goal, seed;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'q')
			o.quick = true;
		else if (c == 'p')
			o.pairs_only = true;
		else if (c == 'a')
			o.apart = o.pairs_only = true;
		else if (c == 's')
			o.seed = strtoull(optarg, NULL, 0);
		else
			return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!o.pairs_only)
		cells(&o, &t, of);
	goal = o.quick ? PAIRS_GOAL / 20 : PAIRS_GOAL;
	for (seed = o.seed * 1000000;
	     (o.apart ? t.hints : t.pairs) < goal && seed < o.seed * 1000000 + 20000; seed++) {
		uint64_t wrong = t.wrong;

		drawn(seed, &o, &t);
		if (t.wrong > wrong)
			printf("seed %" PRIu64 ": %" PRIu64 " wrong\n", seed, t.wrong - wrong);
	}
	printf("hints, not believed: pairs=%" PRIu64 " wrong=%" PRIu64 "\n", t.hints,
	       t.wrong_hints);
	printf("learn: pairs=%" PRIu64 " wrong=%" PRIu64, t.pairs, t.wrong);
	rtts("symmetric-64", of[RC_PORTS_BY_QPNS][3].rtts);
	rtts("equal-64", of[RC_PORTS_EQUAL][3].rtts);
	rtts("constant-16", of[RC_PORTS_GIVEN][2].rtts);
	printf(" held-share-1s=%.1f\n", of[RC_PORTS_BY_QPNS][3].first);
	return t.wrong || t.deaths || (o.apart ? t.hints : t.pairs) < goal;
}
