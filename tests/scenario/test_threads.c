// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Engines in two threads share nothing: random worlds of all kinds, two at a time, end as they do
 * alone, to the last packet. They play alone afterwards: what is made at its first use must not
 * have been made before. Under TSan (make check-tsan) whatever both touch shows.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/scenario/plan.h"

#define WORLDS 12u
#define SEED   7001u

static struct plan_result alone[WORLDS], beside[2][WORLDS];
static pthread_barrier_t barrier;

static void play(uint32_t i, struct plan_result *r)
{
	struct plan p;

	plan_random(&p, SEED + i, i % 4 == 1);
	if (i % 4 == 2)
		plan_announce(&p);
	if (i % 4 == 3)
		plan_attack(&p);
	plan_ports(&p);
	plan_link(&p);
	plan_field(&p);
	plan_run(&p, r, NULL, NULL);
}

/* Each thread in another order, so that each kind meets each. */
static void *thread(void *arg)
{
	uint32_t t = arg != NULL;

	for (uint32_t n = 0; n < WORLDS; n++) {
		uint32_t i = t ? (n * 5 + 3) % WORLDS : n;

		pthread_barrier_wait(&barrier);
		play(i, &beside[t][i]);
	}
	return NULL;
}

static bool same(const struct plan_result *a, const struct plan_result *b)
{
	return !a->violation == !b->violation && a->packets == b->packets &&
	       a->frames == b->frames && a->acked == b->acked && a->died == b->died &&
	       a->excuse == b->excuse && a->now == b->now && !a->broken && !b->broken;
}

int main(void)
{
	uint32_t failed = 0;
	pthread_t other;

	printf("1..%u\n", WORLDS);
	pthread_barrier_init(&barrier, NULL, 2);
	if (pthread_create(&other, NULL, thread, &barrier))
		return 1;
	thread(NULL);
	pthread_join(other, NULL);
	for (uint32_t i = 0; i < WORLDS; i++)
		play(i, &alone[i]);
	for (uint32_t i = 0; i < WORLDS; i++) {
		bool good = alone[i].packets && same(&alone[i], &beside[0][i]) &&
			    same(&alone[i], &beside[1][i]);

		printf("%s %u - world %u, %" PRIu64 " packets, ends beside another as alone\n",
		       good ? "ok" : "not ok", i + 1, SEED + i, alone[i].packets);
		failed += !good;
	}
	return failed != 0;
}
