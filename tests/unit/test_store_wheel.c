// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The timer wheel against a plain list of deadlines. ENG-15: 16,384 connections with two timers
 * each; ENG-7 needs them armed and cancelled at every step.
 */
#include "tests/unit/store_test.h"

#include <time.h>

#include "store/wheel.h"

#define TIMERS 32768u
#define TICK   (1ull << WHEEL_TICK_SHIFT)
#define MS     1000000ull
#define SEC    (1000 * MS)
#define HOUR   (3600 * SEC)

static struct arena arena;

static struct wheel *make(uint32_t timers, uint64_t now)
{
	struct wheel *w;

	assert_int_equal(arena_init(&arena, wheel_arena_size(timers)), 0);
	w = wheel_create(&arena, timers, now);
	assert_non_null(w);
	return w;
}

/* The model: @when per timer, WHEEL_NEVER when not armed. */
struct model {
	struct wheel *w;
	uint64_t *when;
	uint32_t timers;
	uint64_t now;
	uint64_t last_tick; /* of what fired in this call */
	uint32_t fired;
	struct rng *rng;
	bool meddle;   /* callbacks arm and cancel */
	uint8_t *late; /* armed for the past in this call: must not fire in it */
};

static uint64_t tick_of(uint64_t when)
{
	return (when + TICK - 1) / TICK;
}

static uint64_t random_delay(struct rng *r)
{
	switch (rng_below(r, 8)) {
	case 0:
		return rng_below(r, 3 * TICK);
	case 1:
		return rng_below(r, 10 * MS);
	case 2:
		return rng_below(r, 200 * MS);
	case 3:
		return (uint64_t)rng_below(r, 5000) * MS;
	case 4:
		return (uint64_t)rng_below(r, 600000) * MS;
	case 5: /* on and around the borders of the levels */
		return (TICK << 8 * (1 + rng_below(r, 3))) + rng_below(r, 5 * TICK) - 2 * TICK;
	case 6:
		return (uint64_t)rng_below(r, 20 * 3600) * SEC;
	default:
		return (uint64_t)rng_below(r, 400) * HOUR; /* beyond the range too */
	}
}

static void on_fire(void *ctx, uint32_t id)
{
	struct model *m = ctx;

	assert_true(id < m->timers);
	assert_true(m->when[id] != WHEEL_NEVER); /* was armed */
	assert_true(m->when[id] <= m->now);	 /* not early */
	assert_false(wheel_armed(m->w, id));	 /* disarmed first */
	assert_true(!m->late || !m->late[id]);	 /* armed for the past: next call */
	m->fired++;
	if (!m->late) {
		assert_true(tick_of(m->when[id]) >= m->last_tick);
		m->last_tick = tick_of(m->when[id]);
	}
	m->when[id] = WHEEL_NEVER;
	if (m->meddle && rng_below(m->rng, 4) == 0) {
		uint32_t other = rng_below(m->rng, m->timers);

		if (rng_below(m->rng, 2)) {
			wheel_cancel(m->w, other);
			m->when[other] = WHEEL_NEVER;
		} else {
			m->when[other] = m->now + random_delay(m->rng);
			if (rng_below(m->rng, 3) == 0)
				m->when[other] = m->now - rng_below(m->rng, 5 * MS);
			m->late[other] = tick_of(m->when[other]) <= m->now / TICK;
			wheel_arm(m->w, other, m->when[other]);
		}
	}
}

/* Everything due has fired, nothing else has, and wheel_next() is neither late nor idle. */
static void verify(struct model *m)
{
	uint64_t first = WHEEL_NEVER, next = wheel_next(m->w);

	for (uint32_t i = 0; i < m->timers; i++) {
		assert_int_equal(wheel_armed(m->w, i), m->when[i] != WHEEL_NEVER);
		if (m->when[i] == WHEEL_NEVER)
			continue;
		if (!m->late || !m->late[i])
			assert_true(tick_of(m->when[i]) > m->now / TICK);
		if (m->when[i] < first)
			first = m->when[i];
	}
	if (first == WHEEL_NEVER) {
		assert_true(next == WHEEL_NEVER);
	} else if (tick_of(first) <= m->now / TICK) {
		assert_true(next <= m->now);
	} else {
		assert_true(next <= tick_of(first) * TICK);
		assert_true(next > m->now);
	}
}

static void expire(struct model *m, uint64_t now)
{
	m->now = now;
	m->last_tick = 0;
	m->fired = 0;
	if (m->late)
		memset(m->late, 0, m->timers);
	wheel_expire(m->w, now, on_fire, m);
}

static void model_init(struct model *m, uint32_t timers, uint64_t now, struct rng *r, bool meddle)
{
	*m = (struct model){.w = make(timers, now), .timers = timers, .now = now, .rng = r};
	m->when = malloc(timers * sizeof(*m->when));
	assert_non_null(m->when);
	memset(m->when, 0xff, timers * sizeof(*m->when));
	m->meddle = meddle;
	if (meddle) {
		m->late = calloc(timers, 1);
		assert_non_null(m->late);
	}
}

static void model_exit(struct model *m)
{
	free(m->when);
	free(m->late);
	arena_exit(&arena);
}

static void arm(struct model *m, uint32_t id, uint64_t when)
{
	m->when[id] = when;
	wheel_arm(m->w, id, when);
}

static void test_basic(void **state)
{
	struct model m;

	(void)state;
	model_init(&m, 4, 12345 * MS, NULL, false);
	verify(&m);
	expire(&m, m.now);
	arm(&m, 0, m.now + MS);
	arm(&m, 3, m.now + 2 * MS);
	verify(&m);
	arm(&m, 3, m.now + 3 * MS);
	expire(&m, m.now + 2 * MS + TICK);
	assert_int_equal(m.fired, 1);
	verify(&m);
	wheel_cancel(m.w, 3);
	wheel_cancel(m.w, 3);
	m.when[3] = WHEEL_NEVER;
	verify(&m);
	expire(&m, m.now + SEC);
	assert_int_equal(m.fired, 0);
	/* never is never */
	arm(&m, 1, m.now + MS);
	arm(&m, 1, WHEEL_NEVER);
	verify(&m);
	/* time that stands still or goes back does no harm */
	arm(&m, 2, m.now + MS);
	expire(&m, m.now);
	wheel_expire(m.w, 0, on_fire, &m);
	verify(&m);
	expire(&m, m.now + 2 * MS);
	assert_int_equal(m.fired, 1);
	model_exit(&m);
}

/* Not early by a nanosecond, not late by more than a tick, whatever the phase. */
static void test_precision(void **state)
{
	struct rng r = rng_seeded("wheel, precision");

	(void)state;
	for (uint32_t n = 0; n < 3000; n++) {
		uint64_t start = rng_next(&r) >> 8, when = start + 1 + random_delay(&r);
		struct model m;

		model_init(&m, 1, start, NULL, false);
		arm(&m, 0, when);
		expire(&m, when - 1);
		assert_true(m.fired == 0 || when % TICK == 0);
		assert_int_equal(m.fired, 0);
		verify(&m);
		expire(&m, when + TICK - 1);
		assert_int_equal(m.fired, 1);
		model_exit(&m);
	}
}

/* Armed for the past: at the next call, even at the very same time, and wheel_next() says so. */
static void test_past(void **state)
{
	struct model m;

	(void)state;
	model_init(&m, 2, 100 * SEC, NULL, false);
	arm(&m, 0, 5);
	assert_true(wheel_next(m.w) <= m.now);
	arm(&m, 1, m.now - TICK);
	wheel_cancel(m.w, 0);
	m.when[0] = WHEEL_NEVER;
	expire(&m, m.now);
	assert_int_equal(m.fired, 1);
	assert_true(wheel_next(m.w) == WHEEL_NEVER);
	model_exit(&m);
}

struct again {
	struct wheel *w;
	uint32_t fired;
	uint64_t when;
};

static void fire_again(void *ctx, uint32_t id)
{
	struct again *a = ctx;

	a->fired++;
	wheel_arm(a->w, id, a->when);
}

/* A callback that arms for the past, also for a time that the wheel has just jumped over, fires
 * once a call: no endless loop. */
static void test_rearm_in_callback(void **state)
{
	struct again a = {.w = make(1, 0), .when = 5 * SEC};

	(void)state;
	wheel_arm(a.w, 0, SEC);
	for (uint32_t n = 1; n < 10; n++) {
		wheel_expire(a.w, HOUR, fire_again, &a);
		assert_int_equal(a.fired, n);
		assert_true(wheel_next(a.w) <= HOUR);
	}
	a.when = HOUR + SEC;
	wheel_expire(a.w, HOUR, fire_again, &a);
	wheel_expire(a.w, HOUR, fire_again, &a);
	assert_int_equal(a.fired, 10);
	assert_true(wheel_next(a.w) > HOUR && wheel_next(a.w) <= HOUR + SEC + TICK);
	arena_exit(&arena);
}

static void cancel_next(void *ctx, uint32_t id)
{
	struct again *a = ctx;

	a->fired++;
	wheel_cancel(a->w, id ^ 1);
}

/* Of two that are due together, the first to fire cancels the other. */
static void test_cancel_in_callback(void **state)
{
	struct again a = {.w = make(2, 0)};

	(void)state;
	wheel_arm(a.w, 0, SEC);
	wheel_arm(a.w, 1, SEC);
	wheel_expire(a.w, 2 * SEC, cancel_next, &a);
	assert_int_equal(a.fired, 1);
	assert_true(wheel_next(a.w) == WHEEL_NEVER);
	arena_exit(&arena);
}

static void rearm_other(void *ctx, uint32_t id)
{
	struct again *a = ctx;

	a->fired++;
	wheel_arm(a->w, id ^ 1, SEC);
}

/* The same, when the first arms the other anew, for the very tick that is being fired. */
static void test_rearm_other_in_callback(void **state)
{
	struct again a = {.w = make(2, 0)};

	(void)state;
	wheel_arm(a.w, 0, SEC);
	wheel_arm(a.w, 1, SEC);
	for (uint32_t n = 1; n < 10; n++) {
		wheel_expire(a.w, 2 * SEC, rearm_other, &a);
		assert_int_equal(a.fired, n);
	}
	arena_exit(&arena);
}

/* Who sleeps by wheel_next() wakes a few times a timer, not once a tick. */
static void test_next_is_tight(void **state)
{
	struct rng r = rng_seeded("wheel, next");

	(void)state;
	for (uint32_t n = 0; n < 3000; n++) {
		uint64_t start = rng_next(&r) >> 8;
		uint64_t when = start + 1 + rng_next(&r) % (19 * HOUR);
		uint32_t wakes = 0;
		struct model m;

		model_init(&m, 1, start, NULL, false);
		arm(&m, 0, when);
		while (m.when[0] != WHEEL_NEVER) {
			expire(&m, wheel_next(m.w));
			assert_true(++wakes <= 4);
		}
		assert_int_equal(m.now, tick_of(when) * TICK);
		model_exit(&m);
	}
}

/* Every distance around every border of the levels, from every phase of the borders. */
static void test_borders(void **state)
{
	(void)state;
	for (uint32_t level = 1; level <= 4; level++) {
		uint64_t step = TICK << 8 * level;

		for (int64_t phase = -2; phase <= 2; phase++) {
			for (int64_t off = -2; off <= 2; off++) {
				uint64_t now = 3 * step + (uint64_t)(phase * (int64_t)TICK);
				uint64_t when = now + step + (uint64_t)(off * (int64_t)TICK);
				struct model m;

				model_init(&m, 2, now, NULL, false);
				arm(&m, 0, when);
				arm(&m, 1, when + 1);
				verify(&m);
				expire(&m, when - 1);
				assert_int_equal(m.fired, 0);
				verify(&m);
				expire(&m, when);
				assert_int_equal(m.fired, 1);
				verify(&m);
				expire(&m, when + TICK);
				assert_int_equal(m.fired, 1);
				verify(&m);
				model_exit(&m);
			}
		}
	}
}

static void random_run(struct model *m, struct rng *r, uint32_t steps, uint32_t arms)
{
	for (uint32_t n = 0; n < steps; n++) {
		uint64_t now = m->now;

		for (uint32_t k = rng_below(r, arms); k; k--) {
			uint32_t id = rng_below(r, m->timers);

			if (rng_below(r, 4) == 0) {
				wheel_cancel(m->w, id);
				m->when[id] = WHEEL_NEVER;
			} else {
				arm(m, id, now + TICK + random_delay(r));
			}
		}
		if (rng_below(r, 3) == 0 && wheel_next(m->w) != WHEEL_NEVER)
			now = wheel_next(m->w) > now ? wheel_next(m->w) : now;
		else
			now += random_delay(r) >> rng_below(r, 12);
		expire(m, now);
		verify(m);
		if (n == steps / 2)
			m->w = (struct wheel *)((uint8_t *)m->w + arena_move(&arena));
	}
	expire(m, m->now + 500 * HOUR);
	m->meddle = false;
	expire(m, m->now + 500 * HOUR);
	expire(m, m->now);
	assert_true(wheel_next(m->w) == WHEEL_NEVER);
	verify(m);
}

/* ENG-15: two timers for each of 16,384 connections; the arena moves half-way. */
static void test_random_32768(void **state)
{
	struct rng r = rng_seeded("wheel, 32768 timers");
	struct model m;

	(void)state;
	model_init(&m, TIMERS, 987654321, &r, false);
	for (uint32_t i = 0; i < TIMERS; i++)
		arm(&m, i, m.now + TICK + random_delay(&r));
	verify(&m);
	random_run(&m, &r, 600, 3000);
	model_exit(&m);
}

/* Few timers, many steps, callbacks that arm and cancel at random. */
static void test_random_meddling(void **state)
{
	struct rng r = rng_seeded("wheel, meddling");
	struct model m;

	(void)state;
	model_init(&m, 100, 77 * HOUR, &r, true);
	random_run(&m, &r, 100000, 12);
	model_exit(&m);
}

/* A virtual clock may jump far: 10,000 hours with one timer beyond the range take no time, of this
 * process. */
static void test_far_jump(void **state)
{
	struct timespec a, b;
	struct model m;

	(void)state;
	model_init(&m, 2, 0, NULL, false);
	arm(&m, 0, 10000 * HOUR);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
	expire(&m, 9999 * HOUR);
	assert_int_equal(m.fired, 0);
	verify(&m);
	expire(&m, 100000 * HOUR);
	assert_int_equal(m.fired, 1);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
	assert_true((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 < 100);
	model_exit(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_basic),
		cmocka_unit_test(test_precision),
		cmocka_unit_test(test_past),
		cmocka_unit_test(test_rearm_in_callback),
		cmocka_unit_test(test_cancel_in_callback),
		cmocka_unit_test(test_rearm_other_in_callback),
		cmocka_unit_test(test_next_is_tight),
		cmocka_unit_test(test_borders),
		cmocka_unit_test(test_random_32768),
		cmocka_unit_test(test_random_meddling),
		cmocka_unit_test(test_far_jump),
	};

	return cmocka_run_group_tests_name("store/wheel", tests, NULL, NULL);
}
