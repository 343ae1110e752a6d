// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Whether a peer's prefixes can belong to the mirror image of a rule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "mirror.h"

static struct prefix v4(uint8_t a, uint8_t b, uint8_t len)
{
	return (struct prefix){.addr = {{[10] = 0xff, [11] = 0xff, [12] = a, [13] = b}},
			       .len = (uint8_t)(96 + len)};
}

static void test_missing(void **state)
{
	struct rule r = {.nfar = 1, .far = {v4(10, 2, 16)}};
	struct session_info peer = {.nprefix = 1, .prefix = {v4(10, 2, 16)}};

	(void)state;
	assert_null(mirror_missing(&r, &peer));
	peer.prefix[0] = v4(10, 1, 16);
	assert_ptr_equal(mirror_missing(&r, &peer), &r.far[0]);
	peer.nprefix = 0;
	assert_ptr_equal(mirror_missing(&r, &peer), &r.far[0]);
}

static void test_wider_and_narrower(void **state)
{
	struct rule r = {.nfar = 1, .far = {v4(10, 2, 16)}};
	struct session_info peer = {.nprefix = 1, .prefix = {v4(10, 0, 8)}};

	(void)state;
	assert_null(mirror_missing(&r, &peer));
	peer.prefix[0] = v4(10, 2, 24);
	assert_null(mirror_missing(&r, &peer));
	peer.prefix[0] = (struct prefix){.len = 0}; /* any */
	assert_null(mirror_missing(&r, &peer));
	r.far[0] = (struct prefix){.len = 0};
	peer.prefix[0] = v4(10, 9, 16);
	assert_null(mirror_missing(&r, &peer));
}

/* One prefix of two has no mirror image; a peer with more than it can name may well have it. */
static void test_several(void **state)
{
	struct rule r = {.nfar = 2, .far = {v4(10, 2, 16), v4(10, 3, 16)}};
	struct session_info peer = {.nprefix = 1, .prefix = {v4(10, 2, 16)}};

	(void)state;
	assert_ptr_equal(mirror_missing(&r, &peer), &r.far[1]);
	peer.more = true;
	assert_null(mirror_missing(&r, &peer));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_wider_and_narrower),
		cmocka_unit_test(test_several),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
