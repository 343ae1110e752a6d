// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which READ is expected next (engine/reads/predict.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/reads/predict.h"

#define LEN   0x1000u
#define SLOTS 40u /* longer than any period */

static uint64_t place(unsigned int i)
{
	return 0x100000 + (uint64_t)(i % SLOTS) * LEN;
}

static void ask(struct predictor *p, unsigned int i)
{
	const struct read_range r = {.va = place(i), .rkey = 7, .length = LEN};

	predict_asked(p, &r, false);
}

/* A long ring: once the host has begun it again, that is expected at its end. */
static void test_ring(void **state)
{
	struct predictor p = {0};
	struct read_range next;

	(void)state;
	for (unsigned int i = 0; i < 2 * SLOTS - 1; i++)
		ask(&p, i);
	for (unsigned int i = 2 * SLOTS - 1; i < 4 * SLOTS; i++) {
		assert_true(predict_peek(&p, &next));
		assert_int_equal(next.va, place(i));
		predict_take(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ring),
	};

	return cmocka_run_group_tests_name("unit/predict", tests, NULL, NULL);
}
