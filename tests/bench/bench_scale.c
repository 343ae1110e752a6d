// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What many connections cost: the same engine with 1 to 16,384 lanes, all active, in random order.
 * Nothing may cost more because there are more lanes than what the processor's caches make of it.
 *
 *	ns		a packet in at the LAN port, verified, retained, out at the WAN port and
 *			acknowledged, its share of the tick after each 32
 *	tick-ns		a tick with nothing due: lanes that owe nothing; that each owe a
 *			packet; near the responder, each with a packet missing
 *	close-us	a CLOSE from the peer
 *	report-us	a report that names a hole of 100,000 packets
 *	bytes		of an idle lane, as the engine counts it; and of one with a SEND of
 *			64 bytes in custody, all told
 *
 * Each number is the median of several runs, the first of which is for warming up and not counted;
 * time is the processor's, in this thread. The ratio is to one lane, measured in turn with it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/lab/model/crowd.h"
#include "cli/wanem/prng.h"

#define BATCH	     32u
#define RUNS	     7
#define PACKETS	     50000u
#define TICKS	     2000u
#define CLOSES_MAX   500u
#define HOLE	     100000u
#define HOLE_REPORTS 100u
#define POOL	     (3ull << 30)
#define THE_LANES    10000u /* of the last line */

struct row {
	uint32_t lanes, idle_bytes;
	double ns, ratio, tick_idle, tick_owing, tick_holes, close_us, small_bytes;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	/* of this thread: what else the machine does is not the engine's */
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static int cmp(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Of all runs but the first. */
static double median(double *runs)
{
	qsort(runs + 1, RUNS - 1, sizeof(*runs), cmp);
	return runs[1 + (RUNS - 1) / 2];
}

static void must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "bench_scale: %s\n", what);
	exit(1);
}

static void shuffle(struct prng *r, uint32_t *order, uint32_t n)
{
	for (uint32_t i = n; i > 1; i--) {
		uint32_t k = prng_below(r, i), swap = order[i - 1];

		order[i - 1] = order[k];
		order[k] = swap;
	}
}

static uint32_t *new_order(uint32_t n)
{
	uint32_t *order = malloc(n * sizeof(*order));

	must(order, "no memory");
	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	return order;
}

/* @n lanes, all of them held. */
static void hold_all(struct crowd *c, uint32_t n, enum engine_port from)
{
	must(crowd_start(c, n, POOL, from, 0), "no memory for the engine");
	c->payload = 1024;
	must(crowd_hold_all(c), "not all lanes are held");
}

/* Nanoseconds for each of @packets. The far side has them before the next batch. */
static double packets_run(struct crowd *c, struct prng *r, uint32_t *order)
{
	static uint8_t ring[BATCH][FRAME_MAX + 64];
	uint64_t spent = 0, packets = 0;
	uint32_t at = c->n;

	while (packets < PACKETS) {
		uint32_t len[BATCH], lane[BATCH];
		uint64_t t0;

		for (uint32_t i = 0; i < BATCH; i++) {
			if (at == c->n) {
				shuffle(r, order, c->n);
				at = 0;
			}
			lane[i] = order[at++];
			len[i] = crowd_frame(c, lane[i], ring[i]);
		}
		c->now += 10000;
		t0 = now_ns();
		/* as a port hands frames over */
		for (uint32_t i = 0; i < ENGINE_SOON; i++)
			engine_rx_soon(c->e, ring[i], len[i]);
		for (uint32_t i = 0; i < BATCH; i++) {
			bool more = i + ENGINE_SOON < BATCH;

			engine_rx_soon(c->e, more ? ring[i + ENGINE_SOON] : NULL,
				       more ? len[i + ENGINE_SOON] : 0);
			engine_rx(c->e, PORT_LAN, ring[i], len[i], c->now);
		}
		engine_tick(c->e, c->now);
		spent += now_ns() - t0;
		packets += BATCH;
		for (uint32_t i = 0; i < BATCH; i++)
			crowd_progress(c, lane[i]);
		crowd_tick(c, 10000);
	}
	return (double)spent / (double)packets;
}

static double tick_run(struct crowd *c)
{
	uint64_t reports = c->reports, tx = c->tx[PORT_LAN] + c->tx[PORT_WAN], t0;
	double ns;

	t0 = now_ns();
	for (uint32_t k = 0; k < TICKS; k++)
		crowd_tick(c, 100);
	ns = (double)(now_ns() - t0) / TICKS;
	/* else something was due, and this measured that */
	must(reports == c->reports && tx == c->tx[PORT_LAN] + c->tx[PORT_WAN],
	     "something was due in ticks that were to be idle");
	return ns;
}

static double ticks(struct crowd *c)
{
	double runs[RUNS];

	for (int k = 0; k < RUNS; k++)
		runs[k] = tick_run(c);
	return median(runs);
}

static void opener(struct row *row, struct prng *r)
{
	uint32_t *order = new_order(row->lanes), only = 0;
	struct engine_memory before, after;
	double runs[RUNS], ratios[RUNS];
	struct crowd c, one;

	hold_all(&one, 1, PORT_LAN);
	hold_all(&c, row->lanes, PORT_LAN);
	for (int k = 0; k < RUNS; k++) {
		/* side by side: a machine has fast and slow minutes */
		double alone = packets_run(&one, r, &only);

		runs[k] = packets_run(&c, r, order);
		ratios[k] = runs[k] / alone;
	}
	row->ns = median(runs);
	row->ratio = median(ratios);
	crowd_end(&one);
	/* whatever is due once after that has been done */
	for (int k = 0; k < 10; k++)
		crowd_tick(&c, 1000000);
	row->tick_idle = ticks(&c);
	must(!engine_counter(c.e, EC_BAD_REPORT), "the engine does not take these reports");

	engine_memory(c.e, &before);
	c.payload = 64;
	for (uint32_t i = 0; i < c.n; i++) {
		crowd_request(&c, i, 0);
		if (i % BATCH == BATCH - 1)
			crowd_tick(&c, 10);
	}
	crowd_tick(&c, 10);
	engine_memory(c.e, &after);
	must(engine_custody(c.e, -1, c.now).packets == c.n, "not all lanes owe a packet");
	row->idle_bytes = after.lane_bytes;
	row->small_bytes =
		after.lane_bytes + (double)(after.custody_used - before.custody_used) / (double)c.n;
	row->tick_owing = ticks(&c);
	crowd_end(&c);
	free(order);
}

static void acceptor(struct row *row, struct prng *r)
{
	uint32_t *order = new_order(row->lanes);
	uint32_t closes = row->lanes / 20 / RUNS;
	double runs[RUNS];
	struct crowd c;

	hold_all(&c, row->lanes, PORT_WAN);
	for (uint32_t i = 0; i < c.n; i++)
		crowd_request(&c, i, 1);
	/* what is said of a hole, and said again, has been said */
	for (int k = 0; k < 20; k++)
		crowd_tick(&c, 70000000);
	row->tick_holes = ticks(&c);

	shuffle(r, order, c.n);
	closes = closes > CLOSES_MAX ? CLOSES_MAX : closes;
	for (int k = 0; closes && k < RUNS; k++) {
		uint64_t t0 = now_ns();

		for (uint32_t i = 0; i < closes; i++)
			crowd_close(&c, order[(uint32_t)k * closes + i]);
		runs[k] = (double)(now_ns() - t0) / closes / 1000;
	}
	must(c.events[EVENT_CLOSED] == (uint64_t)closes * RUNS, "not all were closed");
	row->close_us = closes ? median(runs) : 0;
	crowd_end(&c);
	free(order);
}

/* Microseconds for a report over a hole; nothing is sent again between them. */
static double hole(void)
{
	double runs[RUNS];
	struct crowd c;

	hold_all(&c, 1, PORT_LAN);
	c.payload = 256;
	for (uint32_t i = 0; i < HOLE + 10; i++) {
		crowd_request(&c, 0, 0);
		if (i % BATCH == BATCH - 1)
			crowd_tick(&c, 1000);
		if (i % 2000 == 0)
			crowd_room(&c, 0, CROWD_LEARN + 1, HOLE);
	}
	crowd_tick(&c, 1000000);
	must(engine_custody(c.e, -1, c.now).packets == HOLE + 10, "not all are in custody");
	for (int k = 0; k < RUNS; k++) {
		uint64_t t0 = now_ns();

		for (uint32_t i = 0; i < HOLE_REPORTS; i++)
			crowd_report_hole(&c, 0, 10);
		runs[k] = (double)(now_ns() - t0) / HOLE_REPORTS / 1000;
	}
	must(!engine_counter(c.e, EC_BAD_REPORT), "the engine does not take these reports");
	crowd_end(&c);
	return median(runs);
}

int main(void)
{
	struct row rows[] = {{.lanes = 1},
			     {.lanes = 100},
			     {.lanes = 1000},
			     {.lanes = THE_LANES},
			     {.lanes = 16384}};
	const struct row *the = NULL;
	double report_us, tick;
	struct prng r;

	prng_init(&r, 1);
	printf("%7s %8s %6s %10s %11s %10s %9s %10s %11s\n", "lanes", "ns", "ratio", "tick-idle",
	       "tick-owing", "tick-hole", "close-us", "idle-bytes", "small-bytes");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct row *row = &rows[i];

		opener(row, &r);
		acceptor(row, &r);
		if (row->lanes == THE_LANES)
			the = row;
		printf("%7u %8.0f %6.2f %10.0f %11.0f %10.0f ", row->lanes, row->ns, row->ratio,
		       row->tick_idle, row->tick_owing, row->tick_holes);
		if (row->close_us > 0)
			printf("%9.2f ", row->close_us);
		else
			printf("%9s ", "-"); /* too few to be measured */
		printf("%10u %11.0f\n", row->idle_bytes, row->small_bytes);
		fflush(stdout);
	}
	report_us = hole();
	printf("a report that names a hole of %u packets: %.1f us\n", HOLE, report_us);
	tick = the->tick_idle > the->tick_owing ? the->tick_idle : the->tick_owing;
	tick = tick > the->tick_holes ? tick : the->tick_holes;
	printf("scale: lanes=%u ns=%.0f ratio=%.2f tick-ns=%.0f close-us=%.2f report-us=%.1f "
	       "small-lane-bytes=%.0f\n",
	       the->lanes, the->ns, the->ratio, tick, the->close_us, report_us, the->small_bytes);
	return 0;
}
