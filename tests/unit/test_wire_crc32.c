// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * CRC-32 and the fused copy: every kernel against the definition, bit by bit, at every length and
 * alignment that takes a path of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "tests/unit/wire_kernel.h"
#include "tests/unit/wire_util.h"

#define SRC_MAX 9000
#define GUARD	80

static uint8_t src[SRC_MAX + 64];
/* The definition's register after each prefix of src + offset, for one start value. */
static uint32_t want[SRC_MAX + 1];

static uint32_t ref_byte(uint32_t reg, uint8_t b)
{
	reg ^= b;
	for (int i = 0; i < 8; i++)
		reg = reg & 1 ? reg >> 1 ^ 0xedb88320u : reg >> 1;
	return reg;
}

static uint32_t ref(uint32_t reg, const uint8_t *p, size_t len)
{
	while (len--)
		reg = ref_byte(reg, *p++);
	return reg;
}

static int setup(void **state)
{
	(void)state;
	wire_fill(src, sizeof(src));
	return 0;
}

static void known_value(void **state)
{
	use(state);
	assert_int_equal(~crc32_update(CRC32_INIT, "123456789", 9), 0xcbf43926u);
	assert_int_equal(crc32_update(0x12345678, NULL, 0), 0x12345678);
}

static void every_length(void **state)
{
	static const uint32_t starts[] = {CRC32_INIT, 0, 0x80000001u};

	use(state);
	for (size_t s = 0; s < 3; s++) {
		want[0] = starts[s];
		for (size_t n = 0; n < SRC_MAX; n++)
			want[n + 1] = ref_byte(want[n], src[n]);
		for (size_t n = 0; n <= 4500; n++)
			assert_int_equal(crc32_update(starts[s], src, n), want[n]);
		assert_int_equal(crc32_update(starts[s], src, SRC_MAX), want[SRC_MAX]);
	}
}

static void copy_checked(size_t from, size_t to, size_t n)
{
	/* Nothing before or behind may be touched, and a read beyond the source is seen. */
	uint8_t *exact = wire_dup(src + from, (uint32_t)n);
	uint8_t *dst = malloc(GUARD + to + n + GUARD);

	memset(dst, 0xa5, GUARD + to + n + GUARD);
	assert_int_equal(crc32_copy(CRC32_INIT, dst + GUARD + to, exact, n),
			 ref(CRC32_INIT, src + from, n));
	assert_memory_equal(dst + GUARD + to, exact, n);
	for (size_t i = 0; i < GUARD + to; i++)
		assert_int_equal(dst[i], 0xa5);
	for (size_t i = 0; i < GUARD; i++)
		assert_int_equal(dst[GUARD + to + n + i], 0xa5);
	free(dst);
	free(exact);
}

static void copy_every_length_and_alignment(void **state)
{
	use(state);
	for (size_t n = 0; n < 1300; n++)
		copy_checked(n % 61, n % 67, n);
	for (size_t from = 0; from < 64; from += 3)
		for (size_t to = 0; to < 64; to += 5)
			copy_checked(from, to, 4 * (from + to) + 1040);
	for (size_t n = 4096; n < 4200; n += 4)
		copy_checked(0, 14, n);
	copy_checked(1, 2, 8999);
}

static void lead_is_a_prefix(void **state)
{
	use(state);
	for (size_t n = 0; n < 2400; n += 4) {
		uint8_t *lead = wire_dup(src + 7 * (n % 64), 64);
		uint8_t *rest = wire_dup(src + n, (uint32_t)n);
		uint8_t *dst = wire_dup(src, (uint32_t)n);
		uint32_t reg = ref(ref(0, lead, 64), rest, n);

		assert_int_equal(crc32_lead(lead, NULL, rest, n), reg);
		assert_int_equal(crc32_lead(lead, dst, rest, n), reg);
		assert_memory_equal(dst, rest, n);
		free(dst);
		free(rest);
		free(lead);
	}
}

/* Every single bit counts: the CRC of each unit vector of a 1 KiB block is that of the definition.
 */
static void every_bit_position(void **state)
{
	static uint8_t zero[1024];

	use(state);
	for (size_t i = 0; i < sizeof(zero); i++) {
		zero[i] = (uint8_t)(1u << i % 8);
		assert_int_equal(crc32_update(0, zero, sizeof(zero)),
				 ref(0, zero + i, sizeof(zero) - i));
		zero[i] = 0;
	}
}

static void shift_is_zeros(void **state)
{
	static const uint8_t zeros[4200];
	uint32_t reg = 0xdeadbeef, r = reg;

	use(state);
	for (size_t n = 0; n < sizeof(zeros); n++) {
		assert_int_equal(crc32_shift(reg, n), r);
		r = ref_byte(r, 0);
	}
	assert_int_equal(crc32_shift(0, 12345), 0);
	/* Beyond the tables, by the law of powers. */
	for (int i = 0; i < 1000; i++) {
		size_t a = wire_rand() >> wire_rand() % 31, b = wire_rand() >> wire_rand() % 31;

		reg = wire_rand();
		assert_int_equal(crc32_shift(crc32_shift(reg, a), b), crc32_shift(reg, a + b));
	}
	assert_int_equal(
		crc32_shift(reg, 70000),
		crc32_update(crc32_update(crc32_shift(reg, 61600), zeros, 4200), zeros, 4200));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(known_value),
		EACH(every_length),
		EACH(copy_every_length_and_alignment),
		EACH(lead_is_a_prefix),
		EACH(every_bit_position),
		EACH(shift_is_zeros),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
