// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * ENG-2: PSN arithmetic modulo 2^24. Verdicts must be the same wherever a region lies, so every
 * property is checked around every edge (0, 2^23, 2^24) and compared with a reference in plain
 * integers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/psn.h"

#define MOD  (1 << 24)
#define HALF (1 << 23)

static const uint32_t bases[] = {0,	   1,	     2,	       100,	 HALF - 3, HALF - 2,
				 HALF - 1, HALF,     HALF + 1, HALF + 2, MOD - 3,  MOD - 2,
				 MOD - 1,  0x400000, 0xc00000, 0x123456};
#define BASES (sizeof(bases) / sizeof(bases[0]))

/* Distance by the definition: the representative of a - b modulo 2^24 in -2^23 .. 2^23 - 1. */
static int32_t ref_diff(uint32_t a, uint32_t b)
{
	int64_t d = (int64_t)a - (int64_t)b;

	while (d < -HALF)
		d += MOD;
	while (d >= HALF)
		d -= MOD;
	return (int32_t)d;
}

static void add_and_sub_wrap(void **state)
{
	(void)state;
	assert_int_equal(psn_add(PSN_MASK, 1), 0);
	assert_int_equal(psn_sub(0, 1), PSN_MASK);
	assert_int_equal(psn_add(0xfffff0, 0x20), 0x10);
	assert_int_equal(psn_sub(0x10, 0x20), 0xfffff0);
	for (size_t i = 0; i < BASES; i++) {
		for (size_t j = 0; j < BASES; j++) {
			uint32_t s = psn_add(bases[i], bases[j]);

			assert_int_equal(s, (bases[i] + bases[j]) % MOD);
			assert_int_equal(psn_sub(s, bases[j]), bases[i]);
		}
	}
}

/* Every distance of the whole space from a few bases: 2^24 each. */
static void diff_is_exact_over_the_whole_space(void **state)
{
	static const uint32_t some[] = {0, 1, HALF - 1, HALF, MOD - 1};
	uint32_t bad = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++)
		for (uint32_t a = 0; a < MOD; a++)
			bad += psn_diff(a, some[i]) != ref_diff(a, some[i]);
	assert_int_equal(bad, 0);
}

static void order_is_the_same_across_the_wrap(void **state)
{
	static const int32_t steps[] = {1, 2, 127, HALF - 2, HALF - 1};

	(void)state;
	for (size_t i = 0; i < BASES; i++) {
		uint32_t b = bases[i];

		assert_false(psn_before(b, b));
		assert_false(psn_after(b, b));
		for (size_t j = 0; j < sizeof(steps) / sizeof(steps[0]); j++) {
			uint32_t later = psn_add(b, (uint32_t)steps[j]);

			assert_int_equal(psn_diff(later, b), steps[j]);
			assert_int_equal(psn_diff(b, later), -steps[j]);
			assert_true(psn_after(later, b));
			assert_true(psn_before(b, later));
			assert_false(psn_before(later, b));
			assert_false(psn_after(b, later));
		}
		/* Exactly half way round is earlier, seen from either side: never both later. */
		assert_int_equal(psn_diff(psn_add(b, HALF), b), -HALF);
		assert_int_equal(psn_diff(b, psn_add(b, HALF)), -HALF);
	}
}

/* The regions of a requester (UPSN .. NPSN) and of a responder (EPSN) are half-open ranges. */
static void ranges_are_the_same_across_the_wrap(void **state)
{
	static const uint32_t widths[] = {0, 1, 2, 3, 64, HALF - 1, HALF, HALF + 1, MOD - 1};

	(void)state;
	for (size_t i = 0; i < BASES; i++) {
		uint32_t from = bases[i];

		for (size_t j = 0; j < sizeof(widths) / sizeof(widths[0]); j++) {
			uint32_t w = widths[j], end = psn_add(from, w);

			/* Around both edges, and around the far side of the circle. */
			for (int32_t d = -70; d <= 70; d++) {
				uint32_t at[] = {psn_add(from, (uint32_t)d),
						 psn_add(end, (uint32_t)d),
						 psn_add(from, HALF + (uint32_t)d)};

				for (size_t k = 0; k < 3; k++) {
					uint32_t dist = psn_sub(at[k], from);

					assert_int_equal(psn_in(at[k], from, end), dist < w);
				}
			}
		}
	}
}

/* Exhaustive on a small circle's worth of neighbours: all (psn, from, end) near the wrap. */
static void every_triple_near_the_wrap(void **state)
{
	(void)state;
	for (int32_t from = -12; from < 12; from++) {
		for (int32_t end = from; end < 24; end++) {
			for (int32_t p = -30; p < 30; p++) {
				bool want = p >= from && p < end;

				assert_int_equal(psn_in((uint32_t)p & PSN_MASK,
							(uint32_t)from & PSN_MASK,
							(uint32_t)end & PSN_MASK),
						 want);
			}
		}
	}
}

static void none_is_no_psn(void **state)
{
	(void)state;
	assert_true(PSN_NONE > PSN_MASK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(add_and_sub_wrap),
		cmocka_unit_test(diff_is_exact_over_the_whole_space),
		cmocka_unit_test(order_is_the_same_across_the_wrap),
		cmocka_unit_test(ranges_are_the_same_across_the_wrap),
		cmocka_unit_test(every_triple_near_the_wrap),
		cmocka_unit_test(none_is_no_psn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
