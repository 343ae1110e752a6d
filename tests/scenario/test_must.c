// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What becomes of a lane with a broken invariant (engine/core/must.h). The engine here can report
 * an invariant as broken that holds: in each of some random worlds each check fails once, at its
 * first run or at one in the middle. Whatever the place: nothing dies, what hosts were told to be
 * done is done or their queue pair fails, the engine's books are right, and all other queue pairs
 * finish their work.
 *
 *	test_must [FIRST-SEED [WORLDS]]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/scenario/plan.h"

#define SITES	64
/* Larger worlds take too long for what they show. */
#define PACKETS 30000u

static struct site {
	const char *file;
	uint32_t line;
	uint64_t checks;
	unsigned int broken; /* so often, in all worlds */
} site[SITES];
static unsigned int nsites;
static const struct site *target;
static uint64_t turn;
static bool fired;

bool must_inject(const char *file, uint32_t line);

bool must_inject(const char *file, uint32_t line)
{
	unsigned int i = 0;

	while (i < nsites && (site[i].line != line || strcmp(site[i].file, file)))
		i++;
	if (i == SITES)
		abort();
	if (i == nsites)
		site[nsites++] = (struct site){.file = file, .line = line};
	site[i].checks++;
	if (fired || &site[i] != target || site[i].checks != turn)
		return false;
	fired = true;
	return true;
}

static const char *run(const struct plan *p, struct plan_result *r)
{
	for (unsigned int i = 0; i < nsites; i++)
		site[i].checks = 0;
	fired = false;
	plan_run(p, r, NULL, NULL);
	return r->violation;
}

/* Break the invariant of @s at its check number @at. */
static bool breaks(const struct plan *p, struct site *s, uint64_t at)
{
	const char *wrong, *file = strstr(s->file, "engine/");
	struct plan_result r;

	target = s;
	turn = at;
	wrong = run(p, &r);
	target = NULL;
	if (!wrong && !fired)
		wrong = "the check was not reached";
	if (!wrong && r.broken != 1)
		wrong = "it was not told once";
	s->broken++;
	if (wrong)
		printf("# seed %" PRIu64 ": %s:%u broken at check %" PRIu64 ": %s\n", p->seed, file,
		       s->line, at, wrong);
	return !wrong;
}

static bool all_places(const struct plan *p)
{
	uint64_t checks[SITES];
	bool right = true;

	for (unsigned int i = 0; i < nsites; i++)
		checks[i] = site[i].checks;
	for (unsigned int i = 0; i < nsites; i++) {
		if (!checks[i])
			continue;
		right &= breaks(p, &site[i], 1);
		if (checks[i] > 2)
			right &= breaks(p, &site[i], checks[i] / 2);
	}
	return right;
}

/* The world of @seed, of one kind after the other. */
static void plan_of(struct plan *p, uint64_t seed)
{
	plan_random(p, seed, seed % 4 == 1);
	if (seed % 4 == 2)
		plan_announce(p);
	p->nincidents = 0;
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	unsigned int worlds = argc > 2 ? (unsigned int)atoi(argv[2]) : 4, failed = 0;

	world_injects = true;
	printf("1..%u\n", worlds + 1);
	for (unsigned int n = 1; n <= worlds; seed++) {
		struct plan_result r;
		struct plan p;

		plan_of(&p, seed);
		if (run(&p, &r) || r.packets > PACKETS)
			continue;
		if (!all_places(&p)) {
			printf("not ");
			failed++;
		}
		printf("ok %u - seed %" PRIu64 ", %" PRIu64 " packets\n", n++, seed, r.packets);
		fflush(stdout);
	}
	for (unsigned int i = 0; i < nsites; i++)
		printf("# %s:%u %u\n", strstr(site[i].file, "engine/"), site[i].line,
		       site[i].broken);
	printf("%sok %u - invariants were checked at %u places\n", nsites < 12 ? "not " : "",
	       worlds + 1, nsites);
	return failed || nsites < 12;
}
