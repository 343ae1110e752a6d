// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Whether a peer's prefixes can belong to the mirror image of a rule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "control/mirror.h"

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

/* What each end says about two rules that do not mirror each other, from what the other tells. */
static void test_both_ends(void **state)
{
	const struct {
		const char *what, *a, *b; /* parts of what is said at A, and at B; NULL: nothing */
		struct rule at_b;
		int n;
	} cases[] = {
		{"mirrored",
		 NULL,
		 NULL,
		 {.near = {v4(10, 2, 16)}, .far = {v4(10, 1, 16)}, .nnear = 1, .nfar = 1},
		 1},
		{"none at B",
		 "rule r looks for hosts 10.2.0.0/16 at peer b, which has no rule",
		 "peer a has a rule for hosts 10.2.0.0/16 here, and no rule here",
		 {.nnear = 0},
		 0},
		{"exchanged",
		 "lan and wan are exchanged",
		 "lan and wan are exchanged",
		 {.near = {v4(10, 1, 16)}, .far = {v4(10, 2, 16)}, .nnear = 1, .nfar = 1},
		 1},
		{"other hosts near B",
		 "looks for hosts 10.2.0.0/16 at peer b",
		 "has hosts 10.3.0.0/16, which no rule of peer a looks for here",
		 {.near = {v4(10, 3, 16)}, .far = {v4(10, 1, 16)}, .nnear = 1, .nfar = 1},
		 1},
		{"other hosts near A",
		 "rule r has hosts 10.1.0.0/16, which no rule of peer b",
		 "looks for hosts 10.4.0.0/16 at peer a",
		 {.near = {v4(10, 2, 16)}, .far = {v4(10, 4, 16)}, .nnear = 1, .nfar = 1},
		 1},
		{"B's names another peer",
		 "rule r has hosts 10.1.0.0/16, which no rule of peer b",
		 "peer a has a rule for hosts 10.2.0.0/16 here",
		 {.near = {v4(10, 2, 16)},
		  .far = {v4(10, 1, 16)},
		  .nnear = 1,
		  .nfar = 1,
		  .peer = 5},
		 1},
	};
	struct rule at_a = {.name = "r",
			    .near = {v4(10, 1, 16)},
			    .far = {v4(10, 2, 16)},
			    .nnear = 1,
			    .nfar = 1};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct rule *b = &cases[i].at_b;
		struct session_info of_b = {.name = "b",
					    .state = SESSION_UP,
					    .known = true,
					    .site_known = true},
				    of_a = of_b;
		struct mirror_fault f;

		of_a.name[0] = 'a';
		of_b.nprefix = b->nnear;
		of_b.prefix[0] = b->near[0];
		of_a.nprefix = 1;
		of_a.prefix[0] = at_a.near[0];
		mirror_wanted(b, (unsigned int)cases[i].n, 0, &of_b.site);
		mirror_wanted(&at_a, 1, 0, &of_a.site);
		if (mirror_fault(&at_a, 1, 0, &of_b, &f) != !!cases[i].a ||
		    (cases[i].a && !strstr(f.text, cases[i].a)))
			fail_msg("%s, at A: %s", cases[i].what, cases[i].a ? f.text : "a fault");
		if (mirror_fault(b, (unsigned int)cases[i].n, 0, &of_a, &f) != !!cases[i].b ||
		    (cases[i].b && !strstr(f.text, cases[i].b)))
			fail_msg("%s, at B: %s", cases[i].what, cases[i].b ? f.text : "a fault");
	}
}

/* A peer of before SITE: only the hosts that it serves are known. */
static void test_older(void **state)
{
	struct rule r = {.near = {v4(10, 1, 16)}, .far = {v4(10, 2, 16)}, .nnear = 1, .nfar = 1};
	struct session_info peer = {
		.state = SESSION_UP, .known = true, .nprefix = 1, .prefix = {v4(10, 2, 16)}};
	struct mirror_fault f;

	(void)state;
	assert_false(mirror_fault(&r, 1, 0, &peer, &f));
	peer.nprefix = 0;
	assert_true(mirror_fault(&r, 1, 0, &peer, &f));
	peer.state = SESSION_DOWN;
	assert_false(mirror_fault(&r, 1, 0, &peer, &f));
}

/* A peer whose version does not seal, where a rule of its wants that. */
static void test_unsealed(void **state)
{
	struct session_info peer = {.state = SESSION_UP, .features = ~PEER_FEATURE_SEAL};
	struct rule r = {.peer = 1, .seal = true};

	(void)state;
	assert_true(mirror_unsealed(&r, 1, &peer));
	assert_false(mirror_unsealed(&r, 0, &peer));
	peer.state = SESSION_DOWN; /* it may have been updated meanwhile */
	assert_false(mirror_unsealed(&r, 1, &peer));
	peer.state = SESSION_UP;
	peer.features = PEER_FEATURE_SEAL;
	assert_false(mirror_unsealed(&r, 1, &peer));
	peer.features = 0;
	r.seal = false;
	assert_false(mirror_unsealed(&r, 1, &peer));
	r.seal = true;
	r.peer = PEER_NONE;
	assert_false(mirror_unsealed(&r, 1, &peer));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_missing), cmocka_unit_test(test_wider_and_narrower),
		cmocka_unit_test(test_several), cmocka_unit_test(test_both_ends),
		cmocka_unit_test(test_older),	cmocka_unit_test(test_unsealed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
