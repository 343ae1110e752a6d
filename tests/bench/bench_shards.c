// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Whether two engines in two threads do twice the work of one. Each thread has a processor, a host
 * pair, engines and memory of its own (shard_load.h). `make bench-shards`; QUICK=1: only whether
 * all goes well, and under TSan whether anything is shared. Numbers then mean nothing.
 *
 *	opener	the engine of bench_engine with its frames, so ns must be the same
 *	pair	opener and acceptor of one host pair: WRITEs from the LAN of one to the LAN of the
 *		other, with the seal between, ACKs and reports
 *	copy	the same frames through CRC and copy alone, into a ring as large as custody: no
 *		more can be expected of the memory
 *	count	multiplications, no memory: no more can be expected of the processors. If the ratio
 *		is far below 2, they are two threads of one core, whatever the machine says
 *
 * Runs take turns: one thread, two, the other one, two, ... A thread alone leaves the other
 * processor to nobody. Numbers are medians. Mpps are packets per time in the engines; `wall` is the
 * ratio with what plays hosts and link in it; `again` counts runs that were repeated because a
 * thread lost its processor. Where much else runs (root):
 *
 *	setsid -w sh -c 'echo -20 >/proc/self/autogroup; nice -n -20 make bench-shards'
 *
 * handoff: a thread gives the other one frames, 32 at a time (handoff.h): ns a descriptor, and with
 * a header that one writes and the other reads. The last line:
 *
 *	shards: one=<Mpps> two=<Mpps> ratio=<x> handoff-ns=<n>
 *
 * of the pair with 8 MiB in custody, and of those frames, 4 KiB or 1 KiB, with the smaller ratio.
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/bench/handoff.h"
#include "tests/bench/shard_load.h"
#include "wire/bytes.h"

#define BATCH	32u
#define THREADS 2
#define ROUNDS	21
/* Percent of the time that a thread must have had its processor, or the run is repeated. */
#define ALONE	98
/* Frames that are handed over: as many as an AF_XDP ring has. */
#define FRAMES	2048u
#define FRAME	4096u
#define AT	64u /* of a frame, which is written and read */

enum job {
	JOB_CREATE,
	JOB_RUN,
	JOB_DESTROY,
	JOB_PUT,
	JOB_GET,
	JOB_END,
};

struct worker {
	_Alignas(128) pthread_t thread;
	int cpu;
	enum job job;
	bool works, alone;
	struct load *load;
	double mpps, wall;
	const char *wrong;
};

static struct worker workers[THREADS];
static pthread_barrier_t barrier;
static struct load_cell cell;
static uint64_t run_ns;
static _Atomic bool running; /* a thread alone: the other one keeps its processor */
static struct handoff ring;
static uint8_t *frames;
static uint32_t handed;
static bool headers;

static uint64_t clock_ns(clockid_t c)
{
	struct timespec t;

	clock_gettime(c, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static int cmp(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, uint32_t n)
{
	qsort(v, n, sizeof(*v), cmp);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static void run(struct worker *w)
{
	uint64_t packets = 0, in = 0, cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID), t0 = now_ns(), t;

	do {
		in += load_batch(w->load);
		packets += BATCH;
		t = now_ns();
	} while (t - t0 < run_ns);
	w->mpps = (double)packets * 1e3 / (double)in;
	w->wall = (double)packets * 1e3 / (double)(t - t0);
	w->alone = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu > (t - t0) / 100 * ALONE;
}

static void put(void)
{
	struct handed h[BATCH];

	for (uint32_t n = 0; n < handed; n += BATCH) {
		for (uint32_t i = 0; i < BATCH; i++) {
			uint8_t *frame = frames + (size_t)((n + i) % FRAMES) * FRAME;

			if (headers)
				put_le32(frame + AT, n + i);
			h[i] = (struct handed){frame, n + i};
		}
		while (!handoff_put(&ring, h, BATCH))
			sched_yield();
	}
}

/* Every frame, in order, once. */
static void get(struct worker *w)
{
	struct handed h[BATCH];
	uint64_t t0 = now_ns();
	bool wrong = false;

	for (uint32_t n = 0, k; n < handed; n += k) {
		k = handoff_get(&ring, h, BATCH);
		if (!k)
			sched_yield();
		for (uint32_t i = 0; i < k; i++)
			wrong |=
				h[i].len != n + i || (headers && get_le32(h[i].data + AT) != n + i);
	}
	if (wrong)
		w->wrong = "frames were handed over in disorder";
	w->wall = (double)(now_ns() - t0) / handed;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)w->cpu, &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	for (;;) {
		pthread_barrier_wait(&barrier);
		if (w->job == JOB_END)
			return NULL;
		switch (w->works ? w->job : JOB_END) {
		case JOB_CREATE:
			w->load = load_create(&cell, (uint8_t)(1 + (w - workers)));
			break;
		case JOB_RUN:
			run(w);
			atomic_store_explicit(&running, false, memory_order_relaxed);
			break;
		case JOB_DESTROY:
			load_destroy(w->load);
			break;
		case JOB_PUT:
			put();
			break;
		case JOB_GET:
			get(w);
			break;
		case JOB_END:
			while (atomic_load_explicit(&running, memory_order_relaxed))
				;
			break;
		}
		pthread_barrier_wait(&barrier);
	}
}

/* The first thread does @a and the second @b, where their bits are set in @who. */
static void both(enum job a, enum job b, uint32_t who)
{
	workers[0].job = a;
	workers[1].job = b;
	for (uint32_t i = 0; i < THREADS; i++)
		workers[i].works = who >> i & 1;
	atomic_store_explicit(&running, who == 1 || who == 2, memory_order_relaxed);
	pthread_barrier_wait(&barrier);
	if (a != JOB_END)
		pthread_barrier_wait(&barrier);
}

static double measure(const struct load_cell *c, uint32_t rounds, double *one_out, double *two_out)
{
	static const char *const names[LOADS] = {"opener", "pair", "copy", "count"};
	double one[ROUNDS], two[ROUNDS], one_wall[ROUNDS], two_wall[ROUNDS], ratio;
	uint32_t again = 0;

	cell = *c;
	both(JOB_CREATE, JOB_CREATE, 3);
	for (uint32_t r = 0; r < rounds; r++) {
		struct worker *w = &workers[r % THREADS];
		bool alone;

		do {
			both(JOB_RUN, JOB_RUN, 1u << r % THREADS);
			one[r] = w->mpps;
			one_wall[r] = w->wall;
			alone = w->alone;
			both(JOB_RUN, JOB_RUN, 3);
			alone &= workers[0].alone && workers[1].alone;
		} while (!alone && again++ < 2 * rounds);
		two[r] = workers[0].mpps + workers[1].mpps;
		two_wall[r] = workers[0].wall + workers[1].wall;
	}
	for (uint32_t i = 0; i < THREADS; i++)
		if (!workers[i].wrong)
			workers[i].wrong = load_wrong(workers[i].load);
	both(JOB_DESTROY, JOB_DESTROY, 3);
	*one_out = median(one, rounds);
	*two_out = median(two, rounds);
	ratio = *two_out / *one_out;
	printf("%-6s mtu=%u custody-kib=%-6u ns=%-4.0f one=%.3f two=%.3f ratio=%.2f wall=%.2f "
	       "again=%u\n",
	       names[c->kind], c->mtu, c->custody >> 10, 1e3 / *one_out, *one_out, *two_out, ratio,
	       median(two_wall, rounds) / median(one_wall, rounds), again);
	return ratio;
}

static double handoff(bool look, uint32_t rounds)
{
	double ns[ROUNDS];

	headers = look;
	for (uint32_t r = 0; r < rounds; r++) {
		both(JOB_PUT, JOB_GET, 3);
		ns[r] = workers[1].wall;
	}
	return median(ns, rounds);
}

/* The first two processors that there are, and whether they are said to be of one core. */
static void choose(void)
{
	char path[96], list[64] = "unknown\n";
	uint32_t n = 0;
	cpu_set_t set;
	FILE *f;

	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	for (int i = 0; i < CPU_SETSIZE && n < THREADS; i++)
		if (CPU_ISSET((size_t)i, &set))
			workers[n++].cpu = i;
	if (n < THREADS) {
		printf("# one processor only: the ratio means nothing\n");
		workers[1].cpu = workers[0].cpu;
	}
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
		 workers[0].cpu);
	f = fopen(path, "r");
	if (f) {
		(void)!fgets(list, sizeof(list), f);
		fclose(f);
	}
	printf("processors: %d and %d; of the core of %d, says the machine: %s", workers[0].cpu,
	       workers[1].cpu, workers[0].cpu, list);
}

int main(int argc, char **argv)
{
	static const struct load_cell cells[] = {
		{LOAD_OPENER, 4096, 8 << 20},	{LOAD_PAIR, 4096, 8 << 20},
		{LOAD_COPY, 4096, 8 << 20},	{LOAD_OPENER, 1024, 8 << 20},
		{LOAD_PAIR, 1024, 8 << 20},	{LOAD_COPY, 1024, 8 << 20},
		{LOAD_OPENER, 4096, 128 << 20}, {LOAD_PAIR, 4096, 128 << 20},
		{LOAD_COPY, 4096, 128 << 20},	{LOAD_OPENER, 1024, 32 << 20},
		{LOAD_PAIR, 1024, 32 << 20},	{LOAD_COPY, 1024, 32 << 20},
		{LOAD_COUNT, 4096, 1 << 20},
	};
	bool quick = argc > 1 && !strcmp(argv[1], "--quick"), wrong = false;
	uint32_t rounds = quick ? 3 : ROUNDS;
	double one, two, least_one = 0, least_two = 0, least = 1e9, ns;

	run_ns = quick ? 2000000 : 30000000;
	handed = quick ? 1u << 14 : 1u << 20;
	frames = calloc(FRAMES, FRAME);
	if (!frames)
		return 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	choose();
	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (uint32_t i = 0; i < THREADS; i++)
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			return 1;
	for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
		struct load_cell c = cells[i];
		double ratio;

		if (quick && c.custody > 1 << 20)
			c.custody = 1 << 20;
		ratio = measure(&c, rounds, &one, &two);
		if (c.kind == LOAD_PAIR && cells[i].custody == 8 << 20 && ratio < least) {
			least = ratio;
			least_one = one;
			least_two = two;
		}
	}
	ns = handoff(false, rounds);
	printf("handoff batch=%u handoff-ns=%.1f headers-ns=%.1f\n", BATCH, ns,
	       handoff(true, rounds));
	both(JOB_END, JOB_END, 0);
	for (uint32_t i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		if (workers[i].wrong)
			printf("# wrong, and so the numbers: %s\n", workers[i].wrong);
		wrong |= workers[i].wrong != NULL;
	}
	free(frames);
	printf("shards: one=%.3f two=%.3f ratio=%.2f handoff-ns=%.1f\n", least_one, least_two,
	       least, ns);
	return wrong;
}
