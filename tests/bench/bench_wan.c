// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Goodput over distance and loss, in virtual time: `make bench-wan`.
 *
 *	bench_wan [--cell NAME] [--quick] [--read] [--responder] [--seconds S] [--verbose]
 *
 * --cell NAME, `make bench-wan CELL=NAME': only rows whose name contains NAME. A name is the row's
 * operation, round trip and loss, `write-20-1e-3', `read-200-resend', or begins with `sequential'.
 * The last line then has only what was measured.
 *
 * One queue pair, 64 KiB messages, 128 outstanding, path MTU 4096, a WAN of 10 Gb/s between LANs of
 * 25 Gb/s, and that with two appliances (real engines, model hosts and links, see
 * tests/scenario/world.h) and with a wire in their place. The WAN drops packets at random in the
 * direction of the data and as many reports on their way back. The seed is fixed, so every number
 * is the same in every run.
 *
 * What is measured:
 *
 * - goodput: payload that the far host has taken in order, and what its appliance holds for it
 *   (READ: that came back in order), per time, in steady state. The clock starts after a ramp
 *   (learning, handover, the first round trips) of RAMP_RTTS round trips and RAMP_NS, and stops
 *   after at least MEASURE_RTTS round trips and MEASURE_NS. The host takes payload in leaps when
 *   something was lost: everything behind a hole is taken at once when it closes. What its
 *   appliance holds is counted so that the result does not depend on when the clock starts and
 *   stops.
 * - ceiling: the rate of the WAN less headers, with Ethernet frames counted as the WAN model counts
 *   them (from the destination address to the ICRC, without preamble, check sequence and gap).
 * - start: from the first request until goodput, over a slot of an eighth of a round trip (at least
 *   1 ms), reaches 90 % of the ceiling for the first time.
 * - WAN bytes: all bytes that entered the WAN both ways while the clock ran, reports with their
 *   UDP, IP and Ethernet headers included, over the bytes of the frames of new data in that time,
 *   each counted once.
 * - READ-4K: 4 KiB READs, which are bound by the host's way to its appliance before they are bound
 *   by the WAN. Their share is also told of what the same hosts reach without any distance between
 *   them (read-4k of the last line, the least).
 * - the rows `sequential': a READ stream once through a region that the rule names, 50 ms away,
 *   and what the appliances asked for in vain (wasted, in % of the payload); with `prefetch = on`,
 *   and with `responder', of which the last line says how long it takes of the time with `on', at
 *   most (responder-time).
 * - --responder: all READs with `prefetch = responder', in a region that the rule names.
 * - loss "0, resend": nothing is lost, but the host is one that resends everything after 2, 4, 8,
 *   16 ms without progress, whatever its timeout is.
 *
 * The pool of an appliance is sized by the distance (pool_bytes()).
 */
#include <ctype.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/bench/bench_qp.h"
#include "tests/scenario/world.h"
#include "wire/psn.h"

#define MS		  1000000ull
#define LINK_BPS	  10000000000ull
/* wan-rate: a little less than the link has, so that a queue that has formed goes away again */
#define WAN_RATE_PERMILLE 995u
#define LAN_BPS		  25000000000ull
#define MTU		  4096u
#define MESSAGE		  65536u
#define DEPTH		  128u
#define POOL_MIN	  (64ull << 20)
#define POOL_MAX	  (2500ull << 20)
#define READ_DEPTH	  16u
/* READs go over a region again and again, as storage with registered buffers does: it is read once
 * as by bare hosts. */
#define READ_REGION	  (4u << 20)
#define READ_RAMP_RTTS	  30u
#define READ_RAMP_NS                                                                               \
	(2000 *                                                                                    \
	 MS) /* with loss: bare hosts wait for their timers, 0.5 s here, until it is all    \
		       read once */
#define RAMP_RTTS	5u /* twice that with loss */
#define RAMP_NS		(50 * MS)
#define MEASURE_RTTS	4u /* twice that with loss */
#define MEASURE_NS	(250 * MS)
/* Where a goal is set the measurement is longer, so that its ends do not matter. */
#define MEASURE_GOAL_NS (1500 * MS)
/* Ethernet, IPv4, UDP, BTH, ICRC; RETH and AETH */
#define FRAME_BYTES	(14u + 20 + 8 + 12 + 4)
#define RETH_BYTES	16u
#define AETH_BYTES	4u

/**
 * struct op - a row's operation.
 * @mask:     bits of enum rc_op
 * @inbound:  the payload travels toward the requester
 * @message:  bytes of payload
 * @extra:    header bytes per message besides FRAME_BYTES per packet
 */
struct op {
	const char *name;
	uint32_t mask, outstanding, message, extra;
	bool inbound;
};

static const struct op ops[] = {
	{"WRITE", 1u << RC_WRITE, DEPTH, MESSAGE, RETH_BYTES, false},
	{"SEND", 1u << RC_SEND, DEPTH, MESSAGE, 0, false},
	{"READ", 1u << RC_READ, READ_DEPTH, MESSAGE, 2 * AETH_BYTES, true},
	{"READ-4K", 1u << RC_READ, READ_DEPTH, MTU, AETH_BYTES, true},
};
#define OP_SEND	   1
#define OP_READ	   2
#define OP_READ_4K 3

struct cell {
	const struct op *op;
	uint32_t rtt_ms;
	double loss;
	bool resend, appliances, responder;
};

/* Once through a region. */
static const struct sequence {
	const char *name;
	uint32_t bytes, outstanding;
	double loss;
} sequences[] = {{"sequential-0", 1u << 30, READ_DEPTH, 0},
		 {"sequential-1e-3", 1u << 28, READ_DEPTH, 1e-3},
		 {"sequential-one", 1u << 26, 1, 0}};

struct result {
	double goodput;	 /* bit/s */
	double start_ms; /* negative: never */
	double wan_bytes;
	const char *bad;
};

static double measure_seconds; /* 0: by default */
static bool verbose, all_responder;
static const char *only; /* NULL: all cells */

static bool wanted(const char *name)
{
	return !only || strstr(name, only);
}

static double message_bytes(const struct op *op)
{
	return op->message + op->message / MTU * FRAME_BYTES + op->extra;
}

static double ceiling(const struct op *op)
{
	return (double)LINK_BPS * op->message / message_bytes(op);
}

static uint64_t max64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Payload bytes that have arrived: where they belong, or one step before that. */
static uint64_t taken(struct world *w, const struct world_qp *q, const struct op *op)
{
	struct conn_info ci;
	uint64_t held = 0;

	if (op->inbound)
		return rc_qp_stats(q->side[0].qp)->rx_read_bytes;
	if (world_conn(w, 1, q, &ci))
		held = ci.lane[LANE_IN].transit.packets * MTU;
	return rc_qp_stats(q->side[1].qp)->rx_bytes + held;
}

/* The first PSN that was never sent on the WAN. */
static uint32_t sent_end(struct world *w, const struct world_qp *q, const struct cell *c)
{
	struct conn_info ci;

	if (c->appliances && !c->op->inbound && world_conn(w, 0, q, &ci) &&
	    ci.lane[LANE_OUT].state == LANE_HELD)
		return ci.lane[LANE_OUT].nxt;
	return rc_qp_sent_end(q->side[0].qp);
}

static uint64_t wan_bytes(const struct world *w)
{
	return wan_stats(w->link[WORLD_WAN(0)])->sent_bytes +
	       wan_stats(w->link[WORLD_WAN(1)])->sent_bytes + w->report_bytes[0] +
	       w->report_bytes[1];
}

/*
 * So much that memory is no limit: what is under way, and what waits behind a hole, for a packet
 * that was lost twice or three times, or was released by the far host and not reported yet. A far
 * appliance may fill 40 % of its pool. One lane holds 2^18 packets at most, so more than 2.5 GB
 * would be of no use.
 */
static uint64_t pool_bytes(const struct cell *c)
{
	uint64_t bdp = LINK_BPS / 8 * c->rtt_ms / 1000,
		 want = bdp *
			(c->loss >= 1e-3 || c->op->inbound ? 6
			 : c->loss > 0			   ? 4
							   : 2) *
			100 / 40;

	return want < POOL_MAX ? max64(POOL_MIN, want) : POOL_MAX;
}

/* The hosts, appliances and links of @c. */
static void hosts(const struct cell *c, struct world_config *wc, struct rc_qp_config *qc)
{
	uint64_t rtt = c->rtt_ms * MS;

	world_defaults(wc);
	wc->seed = 1;
	wc->appliance[0] = wc->appliance[1] = c->appliances;
	wc->wan.delay_ns = rtt / 2;
	wc->wan.rate_bps = LINK_BPS;
	wc->wan.store_bytes = (LINK_BPS / 8 * c->rtt_ms / 1000) + (64u << 20);
	wc->wan.queue_bytes = 16 << 20; /* twice what a bare host has outstanding */
	wc->lan.rate_bps = LAN_BPS;
	wc->lan.store_bytes = 64 << 20;
	wc->report_loss = c->loss;
	wc->engine.pool_bytes = pool_bytes(c);
	wc->engine.wan_rate = LINK_BPS / 8 * WAN_RATE_PERMILLE / 1000;
	wc->path_mtu = MTU;
	wc->prefetch = c->op->inbound && c->appliances;
	wc->prefetch_responder = wc->prefetch && (c->responder || all_responder);

	*qc = bench_qp(MTU);
	qc->depth = DEPTH;
	qc->shadow = false;
	if (c->op->inbound) {
		qc->rmr_size = READ_REGION;
		qc->max_rd = qc->resp_rd = READ_DEPTH;
	}
	if (c->op == &ops[OP_READ_4K] || wc->prefetch_responder) {
		/* 4 KiB: reading it once as bare hosts do would take minutes */
		wc->read_from = qc->rmr_va;
		wc->read_end = qc->rmr_va + READ_REGION;
	}
	qc->resend = c->resend ? RC_RESEND_HW_ALL : RC_RESEND_TIMEOUT;
}

static struct result run(const struct cell *c)
{
	struct world_config wc;
	struct rc_qp_config qc;
	struct world_qp *q;
	struct world *w;
	struct work work = {.ops = c->op->mask,
			    .min = c->op->message,
			    .max = c->op->message,
			    .left = UINT64_MAX,
			    .outstanding = c->op->outstanding};
	struct result res = {.start_ms = -1};
	uint64_t rtt = c->rtt_ms * MS, slot = max64(rtt / 8, MS), began, from, to, last = 0,
		 bytes = 0, sent = 0;
	uint64_t measure = measure_seconds > 0		    ? (uint64_t)(measure_seconds * 1e9)
			   : c->rtt_ms == 20 && c->loss > 0 ? MEASURE_GOAL_NS
							    : MEASURE_NS;
	uint32_t psn = 0;
	int dir = c->op->inbound;

	hosts(c, &wc, &qc);
	w = world_create(&wc);
	if (!w) {
		res.bad = "no memory";
		return res;
	}
	wc.wan.loss = c->loss;
	world_set_wan(w, dir, &wc.wan);

	if (dir) {
		work.streams = 1;
		work.stream_len = c->op->message;
		work.ring = true;
	}
	q = world_connect(w, &qc, RC_STRICT);
	began = w->now;
	world_work(q, 0, &work);

	from = began + (dir ? READ_RAMP_RTTS : RAMP_RTTS * (c->loss > 0 ? 2 : 1)) * rtt + RAMP_NS;
	if (dir && c->loss > 0)
		from += READ_RAMP_NS;
	to = from + max64(MEASURE_RTTS * rtt * (c->loss > 0 ? 2 : 1), measure);
	for (uint64_t t = began + slot; !w->violation && w->now < to; t += slot) {
		uint64_t now_taken;

		if (w->now < from && t >= from)
			t = from;
		world_run(w, t);
		now_taken = taken(w, q, c->op);
		if (res.start_ms < 0 &&
		    (double)(now_taken - last) * 8e9 / (double)slot >= 0.9 * ceiling(c->op))
			res.start_ms = (double)(w->now - began) / 1e6;
		last = now_taken;
		if (w->now == from) {
			bytes = now_taken;
			sent = wan_bytes(w);
			psn = sent_end(w, q, c);
		}
	}
	res.goodput = (double)(last - bytes) * 8e9 / (double)(w->now - from);
	res.wan_bytes = (double)(wan_bytes(w) - sent) /
			(psn_sub(sent_end(w, q, c), psn) / (double)(c->op->message / MTU) *
			 message_bytes(c->op));
	if (rc_qp_in_error(q->side[0].qp))
		res.bad = "queue pair failed";
	if (w->violation)
		res.bad = w->violation;
	if (verbose && c->appliances)
		world_dump(w, stdout);
	world_destroy(w);
	return res;
}

/* NAN: not measured */
struct summary {
	double lossless, at_1e3, at_1e2, bytes, read_100ms, read_1e3, read_4k, wasted, responder;
	unsigned int bad;
};

static void lower(double *v, double x)
{
	*v = fmin(*v, x);
}

static void higher(double *v, double x)
{
	*v = fmax(*v, x);
}

/* What bare hosts reach when there is no distance between them. */
static double zero_distance(const struct op *op)
{
	static double known;

	if (known == 0)
		known = run(&(struct cell){.op = op}).goodput;
	return known;
}

static void summarize(struct summary *s, const struct cell *c, const struct result *r, double share)
{
	if (c->op == &ops[OP_READ_4K]) {
		if (c->loss == 0 && !c->resend)
			lower(&s->read_4k, 100 * r->goodput / zero_distance(c->op));
		return;
	}
	if (c->op->inbound) {
		if (c->rtt_ms == 100 && c->loss == 0 && !c->resend)
			lower(&s->read_100ms, share);
		if (c->rtt_ms == 20 && c->loss == 1e-3)
			lower(&s->read_1e3, share);
		return;
	}
	if (c->loss == 0) {
		lower(&s->lossless, share);
		higher(&s->bytes, r->wan_bytes);
	}
	if (c->rtt_ms == 20 && c->loss == 1e-3)
		lower(&s->at_1e3, share);
	if (c->rtt_ms == 20 && c->loss == 1e-2)
		lower(&s->at_1e2, share);
}

static void row(struct summary *s, struct cell c)
{
	struct result bare, with;
	char loss[16], start[16];
	double top = ceiling(c.op), share;

	c.appliances = false;
	bare = run(&c);
	c.appliances = true;
	with = run(&c);
	share = 100 * with.goodput / top;
	summarize(s, &c, &with, share);
	if (c.resend)
		snprintf(loss, sizeof(loss), "0, resend");
	else
		snprintf(loss, sizeof(loss), "%g", c.loss);
	snprintf(start, sizeof(start), with.start_ms < 0 ? "never" : "%.0f", with.start_ms);
	printf("%-7s %4u ms  %-9s  %8.4f  %5.1f%%  %8.4f  %5.1f%%  %7s  %8.3f  %8.3f%s%s\n",
	       c.op->name, c.rtt_ms, loss, bare.goodput / 1e9, 100 * bare.goodput / top,
	       with.goodput / 1e9, share, start, bare.wan_bytes, with.wan_bytes,
	       with.bad ? "  " : "", with.bad ? with.bad : "");
	fflush(stdout);
	s->bad += with.bad != NULL;
}

/* Once through a region, from one end to the other. Returns how long it takes, ms. */
static double sequential(struct summary *s, const struct sequence *q, bool responder)
{
	struct cell c = {.op = &ops[OP_READ],
			 .rtt_ms = 50,
			 .loss = q->loss,
			 .appliances = true,
			 .responder = responder};
	struct work work = {.ops = 1u << RC_READ,
			    .min = MESSAGE,
			    .max = MESSAGE,
			    .left = q->bytes / MESSAGE,
			    .outstanding = q->outstanding,
			    .streams = 1,
			    .stream_len = MESSAGE,
			    .ring = true};
	struct conn_info ci = {0};
	struct world_config wc;
	struct rc_qp_config qc;
	struct world_qp *qp;
	uint64_t began, got;
	struct world *w;
	double ms;

	hosts(&c, &wc, &qc);
	qc.mr_size = qc.rmr_size = q->bytes;
	wc.read_from = qc.rmr_va;
	wc.read_end = qc.rmr_va + q->bytes;
	w = world_create(&wc);
	qp = w ? world_connect(w, &qc, RC_STRICT) : NULL;
	if (!qp) {
		printf("sequential: no memory\n");
		s->bad++;
		world_destroy(w);
		return 0;
	}
	wc.wan.loss = c.loss;
	/* READs and reports alike */
	world_set_wan(w, 0, &wc.wan);
	world_set_wan(w, 1, &wc.wan);
	began = w->now;
	world_work(qp, 0, &work);
	do {
		world_run(w, w->now + MS);
		got = rc_qp_stats(qp->side[0].qp)->rx_read_bytes;
	} while (!w->violation && got < q->bytes && w->now < began + 600000 * MS);
	ms = (double)(w->now - began) / 1e6;
	world_conn(w, 0, qp, &ci);
	higher(&s->wasted, 100.0 * (double)ci.lane[LANE_OUT].reads.wasted_bytes / q->bytes);
	printf("sequential: prefetch=%s bytes=%" PRIu64 " rtt-ms=%u loss=%g outstanding=%u ms=%.0f "
	       "Gb/s=%.3f hits=%" PRIu64 " misses=%" PRIu64 " wasted-bytes=%" PRIu64
	       " wan-bytes=%.4f%s%s\n",
	       responder ? "responder" : "on", got, c.rtt_ms, c.loss, q->outstanding, ms,
	       (double)got * 8 / (ms * 1e6), ci.lane[LANE_OUT].reads.hits,
	       ci.lane[LANE_OUT].reads.misses, ci.lane[LANE_OUT].reads.wasted_bytes,
	       (double)wan_bytes(w) / (q->bytes / MESSAGE * message_bytes(c.op)),
	       w->violation ? "  " : "", w->violation ? w->violation : "");
	s->bad += w->violation || got != q->bytes;
	world_destroy(w);
	return ms;
}

static void both_ways(struct summary *s)
{
	bool any = false;

	for (size_t i = 0; i < sizeof(sequences) / sizeof(sequences[0]); i++) {
		double on, there;

		if (!wanted(sequences[i].name))
			continue;
		if (!any)
			printf("\n");
		any = true;
		on = sequential(s, &sequences[i], false);
		there = sequential(s, &sequences[i], true);
		higher(&s->responder, 100 * there / on);
	}
	if (any)
		printf("\n");
}

/* @quick: 1 and 20 ms, no SEND, three losses. */
static bool cell_wanted(const struct cell *c, const char *loss, bool quick)
{
	char name[32];

	if (quick && ((c->rtt_ms != 1 && c->rtt_ms != 20) || c->op == &ops[OP_SEND] ||
		      (c->loss > 0 && c->loss < 1e-3)))
		return false;
	/* one loss is enough for it: repair is the same for all READs */
	if (c->op == &ops[OP_READ_4K] && c->loss > 0 && c->loss != 1e-3)
		return false;
	snprintf(name, sizeof(name), "%s-%u-%s", c->op->name, c->rtt_ms, loss);
	for (char *p = name; *p; p++)
		*p = (char)tolower(*p);
	return wanted(name);
}

static void grid(struct summary *s, const struct op *op, bool quick)
{
	static const uint32_t rtts[] = {1, 10, 20, 50, 100, 200};
	static const struct {
		const char *name;
		double loss;
		bool resend;
	} losses[] = {{"0", 0, false},	     {"resend", 0, true},   {"1e-5", 1e-5, false},
		      {"1e-4", 1e-4, false}, {"1e-3", 1e-3, false}, {"1e-2", 1e-2, false}};

	for (size_t t = 0; t < sizeof(rtts) / sizeof(rtts[0]); t++)
		for (size_t k = 0; k < sizeof(losses) / sizeof(losses[0]); k++) {
			struct cell c = {.op = op,
					 .rtt_ms = rtts[t],
					 .loss = losses[k].loss,
					 .resend = losses[k].resend};

			if (cell_wanted(&c, losses[k].name, quick))
				row(s, c);
		}
}

static void field(const char *name, double value, int digits, const char *unit)
{
	if (!isnan(value))
		printf(" %s=%.*f%s", name, digits, value, unit);
}

static int usage(void)
{
	fprintf(stderr, "usage: bench_wan [--cell NAME] [--quick] [--read] [--responder] "
			"[--seconds S] [--verbose]\n");
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"cell", required_argument, NULL, 'c'},
		{"quick", no_argument, NULL, 'q'},
		{"read", no_argument, NULL, 'r'},
		{"responder", no_argument, NULL, 'R'},
		{"seconds", required_argument, NULL, 's'},
		{"verbose", no_argument, NULL, 'v'},
		{0},
	};
	struct summary s = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, 0};
	bool quick = false, reads = false;
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (o) {
		case 'c':
			only = optarg;
			break;
		case 'q':
			quick = true;
			break;
		case 'r':
			reads = true;
			break;
		case 'R':
			all_responder = true;
			break;
		case 's':
			measure_seconds = atof(optarg);
			break;
		case 'v':
			verbose = true;
			break;
		default:
			return usage();
		}
	}
	if (optind != argc)
		return usage();
	printf("10 Gb/s, path MTU %u, one queue pair, %u KiB, %u outstanding (READ: %u); goodput "
	       "in Gb/s and in %% of the\n"
	       "payload ceiling (WRITE %.4f Gb/s), steady state; start: ms until 90 %% of the "
	       "ceiling; WAN bytes: over\n"
	       "payload and headers\n\n"
	       "                          bare hosts         with appliances             WAN "
	       "bytes\n"
	       "op        rtt  loss         Gb/s   share      Gb/s   share    start      bare      "
	       "with\n",
	       MTU, MESSAGE >> 10, DEPTH, READ_DEPTH, ceiling(&ops[0]) / 1e9);
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (i < OP_READ || reads || only)
			grid(&s, &ops[i], quick);
	if (only || (reads && !all_responder))
		both_ways(&s);
	printf("bench-wan:");
	field("worst-lossless", s.lossless, 2, "%");
	field("at-1e-3-20ms", s.at_1e3, 2, "%");
	field("at-1e-2-20ms", s.at_1e2, 2, "%");
	field("wan-bytes", s.bytes, 4, "");
	field("read-100ms", s.read_100ms, 2, "%");
	field("read-1e-3-20ms", s.read_1e3, 2, "%");
	field("read-4k", s.read_4k, 2, "%");
	field("wasted", s.wasted, 2, "%");
	field("responder-time", s.responder, 1, "%");
	printf("\n");
	return s.bad ? 1 : 0;
}
