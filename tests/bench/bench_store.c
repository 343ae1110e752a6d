// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bench_store - what the operations of proxyd/store cost, in ns each: hot (one lane, all in the
 * nearest caches) and with many lanes taking turns, as a loaded appliance sees them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "store/flow_table.h"
#include "store/mqueue.h"
#include "store/pool.h"
#include "store/wheel.h"
#include "store/window.h"
#include "wire/psn.h"

#define LANES 10000u
#define DEPTH 64u /* packets that a lane holds */
#define LEN   1098u

struct lane {
	struct pool_log log;
	struct window w;
	uint32_t head, tail;
};

static uint64_t rng_state = 1;

static uint32_t rnd(void)
{
	rng_state = rng_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(rng_state >> 33);
}

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void say(const char *what, double start, double count)
{
	printf("%-58s %8.2f ns\n", what, (now_ns() - start) / count);
}

static void *need(void *p)
{
	if (!p) {
		fprintf(stderr, "bench_store: no room\n");
		exit(1);
	}
	return p;
}

static struct lane *lanes_make(uint32_t n)
{
	struct lane *l = need(malloc(n * sizeof(*l)));

	for (uint32_t i = 0; i < n; i++) {
		pool_log_init(&l[i].log);
		window_init(&l[i].w);
		l[i].head = l[i].tail = rnd() & PSN_MASK;
	}
	return l;
}

static void lane_push(struct pool *p, struct lane *l)
{
	pool_loc loc = pool_append(p, POOL_CUSTODY, &l->log, LEN);
	struct pkt *k = need(window_put(&l->w, p, POOL_CUSTODY, l->tail));

	k->loc = loc;
	k->len = LEN;
	l->tail = psn_add(l->tail, 1);
}

static void lane_pop(struct pool *p, struct lane *l)
{
	struct pkt *k = need(window_get(&l->w, p, l->head));

	pool_release(p, &l->log, k->loc, k->len);
	window_del(&l->w, p, l->head);
	l->head = psn_add(l->head, 1);
}

static void bench_pool_ops(struct pool *p)
{
	const uint32_t n = 20000000, ring = 1000;
	pool_loc *loc = need(calloc(ring, sizeof(*loc)));
	struct pool_log log;
	double t;

	pool_log_init(&log);
	for (uint32_t i = 0; i < ring; i++)
		loc[i] = pool_append(p, POOL_CUSTODY, &log, LEN);
	t = now_ns();
	for (uint32_t i = 0, k = 0; i < n; i++, k = k + 1 == ring ? 0 : k + 1) {
		pool_release(p, &log, loc[k], LEN);
		loc[k] = pool_append(p, POOL_CUSTODY, &log, LEN);
	}
	say("pool_append + pool_release", t, n);
	for (uint32_t i = 0; i < ring; i++)
		pool_release(p, &log, loc[i], LEN);
	t = now_ns();
	for (uint32_t i = 0; i < n; i++) {
		pool_loc x = pool_append(p, POOL_CUSTODY, &log, LEN);

		pool_unappend(p, &log, x, LEN);
	}
	say("pool_append + pool_unappend", t, n);
	pool_log_close(p, &log);
	t = now_ns();
	for (uint32_t i = 0; i < n; i++)
		pool_slot_put(p, pool_slot_get(p, POOL_CUSTODY, POOL_SLOT, POOL_REQUEST));
	say("pool_slot_get + pool_slot_put", t, n);
	free(loc);
}

static void bench_window(struct pool *p)
{
	const uint32_t n = 20000000;
	uint64_t sum = 0;
	uint32_t found;
	struct window w;
	double t;

	window_init(&w);
	for (uint32_t i = 0; i < 1000; i++)
		window_put(&w, p, POOL_CUSTODY, i);
	t = now_ns();
	for (uint32_t i = 0; i < n; i++)
		sum += window_get(&w, p, i % 1000)->flags;
	say("window_get", t, n);
	t = now_ns();
	for (uint32_t i = 0; i < n; i++)
		sum += window_next(&w, p, i % 999, 1000, &found)->flags;
	say("window_next (the next PSN is there)", t, n);
	t = now_ns();
	for (uint32_t i = 0; i < n; i++) {
		window_put(&w, p, POOL_CUSTODY, (i + 1000) & PSN_MASK);
		window_del(&w, p, i & PSN_MASK);
	}
	say("window_put + window_del, sliding", t, n);
	for (uint32_t i = n; i < n + 1000; i++)
		window_del(&w, p, i & PSN_MASK);
	t = now_ns();
	for (uint32_t i = 0; i < n; i++) {
		window_put(&w, p, POOL_CUSTODY, i & PSN_MASK);
		window_del(&w, p, i & PSN_MASK);
	}
	say("window_put + window_del, one packet at a time", t, n);
	window_put(&w, p, POOL_CUSTODY, 0);
	t = now_ns();
	for (uint32_t i = 0; i < n / 100; i++)
		sum += !window_next(&w, p, 1, WINDOW_SPAN, &found);
	say("window_next over an empty span of 2^18", t, n / 100);
	window_del(&w, p, 0);
	if (sum == 1)
		puts("");
}

static void bench_lanes(struct pool *p, uint32_t lanes, const char *what)
{
	const uint32_t n = 10000000;
	struct lane *l = lanes_make(lanes);
	double t;

	for (uint32_t k = 0; k < DEPTH; k++)
		for (uint32_t i = 0; i < lanes; i++)
			lane_push(p, &l[i]);
	t = now_ns();
	for (uint32_t i = 0; i < n; i++) {
		struct lane *x = &l[lanes == 1 ? 0 : rnd() % lanes];

		lane_push(p, x);
		lane_pop(p, x);
	}
	say(what, t, n);
	for (uint32_t i = 0; i < lanes; i++) {
		while (l[i].head != l[i].tail)
			lane_pop(p, &l[i]);
		pool_log_close(p, &l[i].log);
	}
	free(l);
}

static void bench_flows(struct arena *a)
{
	const uint32_t n = 10000000;
	struct flow_table *t = need(flow_table_create(a, 2 * LANES, 42));
	struct {
		struct flow_key key;
		uint32_t rest[118]; /* a lane is about 512 bytes */
	} *f = need(calloc(2 * LANES, sizeof(*f)));
	uint64_t sum = 0;
	double start;

	for (uint32_t i = 0; i < 2 * LANES; i++) {
		f[i].key.dqpn = 0x11 + i;
		flow_table_insert(t, &f[i].key, i);
	}
	start = now_ns();
	for (uint32_t i = 0; i < n; i++)
		sum += flow_table_find(t, &f[i % 16].key, f, sizeof(*f));
	say("flow_table_find, 16 flows in turn", start, n);
	start = now_ns();
	for (uint32_t i = 0; i < n; i++) {
		struct flow_key k = {.dqpn = 0x11 + rnd() % (2 * LANES)};

		sum += flow_table_find(t, &k, f, sizeof(*f));
	}
	say("flow_table_find, 20,000 flows at random", start, n);
	start = now_ns();
	for (uint32_t i = 0; i < n; i++) {
		struct flow_key k = {.dqpn = 0xf00000 + rnd() % (2 * LANES)};

		sum += flow_table_find(t, &k, f, sizeof(*f));
	}
	say("flow_table_find, unknown flows", start, n);
	if (sum == 1)
		puts("");
	free(f);
}

static void count_fire(void *ctx, uint32_t id)
{
	(void)id;
	++*(uint64_t *)ctx;
}

static void bench_wheel(struct arena *a)
{
	const uint32_t n = 10000000, timers = 32768;
	struct wheel *w = need(wheel_create(a, timers, 0));
	uint64_t now = 1, fired = 0, sum = 0;
	double t;

	t = now_ns();
	for (uint32_t i = 0; i < n; i++)
		wheel_arm(w, i % 16, now + 10000000 + (uint64_t)i * 100000);
	say("wheel_arm, 16 timers in turn", t, n);
	t = now_ns();
	for (uint32_t i = 0; i < n; i++)
		wheel_arm(w, rnd() % timers, now + rnd() % 400000000);
	say("wheel_arm, 32,768 timers at random", t, n);
	t = now_ns();
	for (uint32_t i = 0; i < n; i++)
		sum += wheel_next(w);
	say("wheel_next", t, n);
	for (uint32_t i = 0; i < timers; i++)
		wheel_arm(w, i, now + rnd() % 400000000);
	t = now_ns();
	for (uint32_t i = 0; i < n; i++) {
		now += 1000;
		wheel_expire(w, now, count_fire, &fired);
	}
	say("wheel_expire, every us", t, n);
	t = now_ns();
	for (uint32_t k = 0; k < 100; k++) {
		for (uint32_t i = 0; i < timers; i++)
			wheel_arm(w, i, now + rnd() % 400000000);
		now += 500000000;
		wheel_expire(w, now, count_fire, &fired);
	}
	say("arm, cascade and fire, per timer", t, 100.0 * timers);
	if (sum == 1 || fired < timers)
		puts("");
}

static void bench_mqueue(struct arena *a)
{
	const uint32_t n = 20000000;
	struct mqueue *q = need(mqueue_create(a, 65536, 64));
	struct mq_list l;
	double t;

	mq_list_init(&l);
	for (uint32_t i = 0; i < 16; i++)
		mq_push(q, &l);
	t = now_ns();
	for (uint32_t i = 0; i < n; i++) {
		mq_push(q, &l);
		mq_pop(q, &l);
	}
	say("mq_push + mq_pop, 64-byte elements", t, n);
}

int main(void)
{
	const unsigned int share[POOL_CLASSES] = {90, 10};
	const uint64_t bytes = 2048ull << 20;
	struct arena a;
	struct pool *p;

	if (arena_init(&a, pool_arena_size(bytes) + (16 << 20))) {
		fprintf(stderr, "bench_store: no memory\n");
		return 1;
	}
	p = need(pool_create(&a, bytes, 0, share));
	bench_pool_ops(p);
	bench_window(p);
	bench_lanes(p, 1, "retain + release a packet, one lane");
	bench_lanes(p, LANES, "retain + release a packet, 10,000 lanes at random");
	bench_flows(&a);
	bench_wheel(&a);
	bench_mqueue(&a);
	if (!pool_check(p)) {
		fprintf(stderr, "bench_store: the pool is broken\n");
		return 1;
	}
	arena_exit(&a);
	return 0;
}
