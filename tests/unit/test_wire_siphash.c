// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* SipHash-2-4 against libsodium's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <sodium.h>

#include "wire/siphash.h"

static void test_as_the_library_says(void **state)
{
	uint64_t key[2] = {0x0706050403020100u, 0x0f0e0d0c0b0a0908u}, m[8], want;
	uint8_t out[crypto_shorthash_BYTES];

	(void)state;
	for (uint32_t n = 0; n <= 8; n++) {
		for (uint32_t i = 0; i < 8; i++)
			m[i] = (i + n) * 0x9e3779b97f4a7c15u;
		crypto_shorthash(out, (const uint8_t *)m, n * 8, (const uint8_t *)key);
		memcpy(&want, out, sizeof(want));
		assert_true(siphash(key, m, n) == want);
		key[n & 1] += 0x0123456789abcdefu;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_the_library_says)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
