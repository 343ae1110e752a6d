// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The rules of the XDP program: changed, as many as there can be, and expanded (steer_rig.h). */
#include <errno.h>
#include <stdlib.h>

#include "tests/bpf/steer_rig.h"

/* the sources of LAN4 and LAN6 */
#define OWN4 "10.1.2.3"
#define OWN6 "fd00:1::5"

/* Each change of rules takes effect, leaves nothing behind, or, when refused, changes nothing. */
static void rules(void **state)
{
	const struct steer_frame hit = {LAN4}, other = {.src = "10.7.0.1", .dst = "10.8.0.1"};
	struct afxdp_prefix n = prefix("10.7.0.0", 16, 1), f = prefix("10.8.0.0", 16, 1);
	struct afxdp_prefix bad[2] = {n, n};
	int i;

	(void)state;
	for (i = 0; i < 5; i++) {
		assert_int_equal(steer_prog_rules(&prog, &n, 1, &f, 1, vlans), 0);
		expect("new rule", STEER_LAN, &other, STEER_TAKEN);
		expect("old rule", STEER_LAN, &hit, STEER_NO_RULE);
		set_rules();
		expect("new rule", STEER_LAN, &other, STEER_NO_RULE);
		expect("old rule", STEER_LAN, &hit, STEER_TAKEN);
	}
	bad[1].plen = 129;
	assert_int_equal(steer_prog_rules(&prog, bad, 2, &f, 1, vlans), -EINVAL);
	assert_int_equal(steer_prog_rules(&prog, &n, 1, bad, 2, vlans), -EINVAL);
	expect("refused change", STEER_LAN, &other, STEER_NO_RULE);
	expect("refused change", STEER_LAN, &hit, STEER_TAKEN);
	assert_int_equal(steer_prog_rules(&prog, NULL, 0, NULL, 0, vlans), 0);
	expect("no rules", STEER_LAN, &hit, STEER_NO_RULE);
}

/* Own addresses are excluded, on either side and in either direction, also where a rule names just
 * them, and as long as they are there. */
static void own(void **state)
{
	static const struct {
		const char *name;
		enum steer_side side;
		struct steer_frame f;
		enum steer_counter want;
	} table[] = {
		{"to a near one", STEER_WAN, {WAN4}, STEER_NO_RULE},
		{"from a near one", STEER_LAN, {LAN4}, STEER_NO_RULE},
		{"its neighbour", STEER_LAN, {.src = "10.1.2.4", .dst = "10.2.200.1"}, STEER_TAKEN},
		{"to a far one", STEER_LAN, {.src = "10.1.9.9", .dst = "10.2.7.7"}, STEER_NO_RULE},
		{"from a far one",
		 STEER_WAN,
		 {.src = "10.2.7.7", .dst = "10.1.9.9"},
		 STEER_NO_RULE},
		{"one that is a rule's",
		 STEER_LAN,
		 {.src = "10.1.77.1", .dst = "10.2.0.1"},
		 STEER_NO_RULE},
		{"IPv6", STEER_LAN, {LAN6}, STEER_NO_RULE},
		{"IPv6, its neighbour",
		 STEER_LAN,
		 {.src = "fd00:1::6", .dst = "fd00:2:9::7"},
		 STEER_TAKEN},
	};
	struct afxdp_prefix n[8] = {prefix("10.1.0.0", 16, 1),	prefix("10.1.77.1", 32, 2),
				    prefix("fd00:1::", 32, 4),	prefix(OWN4, 32, 0),
				    prefix("10.1.77.1", 32, 0), prefix(OWN6, 128, 0),
				    prefix("10.2.7.7", 32, 0)},
			    f[8] = {prefix("10.2.0.0", 16, 3), prefix("fd00:2::", 32, 4),
				    prefix("10.2.7.7", 32, 0), prefix(OWN4, 32, 0)};

	(void)state;
	vlans[STEER_UNTAGGED] |= 2;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(steer_prog_rules(&prog, n, 7, f, 4, vlans), 0);
		for (size_t k = 0; k < sizeof(table) / sizeof(table[0]); k++)
			expect(table[k].name, table[k].side, &table[k].f, table[k].want);
		assert_int_equal(steer_prog_rules(&prog, n, 3, f, 2, vlans), 0);
		for (size_t k = 0; k < sizeof(table) / sizeof(table[0]); k++)
			expect(table[k].name, table[k].side, &table[k].f, STEER_TAKEN);
	}
}

static void most_prefixes(void **state)
{
	struct afxdp_prefix *p = calloc(STEER_PREFIXES + 1, sizeof(*p));
	const struct steer_frame last = {.src = "10.0.19.255", .dst = "10.0.0.0"},
				 beyond = {.src = "10.0.20.0", .dst = "10.0.0.0"};
	int i;

	(void)state;
	assert_non_null(p);
	for (i = 0; i <= STEER_PREFIXES; i++) {
		p[i] = prefix("10.0.0.0", 32, 1);
		p[i].addr[14] = (uint8_t)(i >> 8);
		p[i].addr[15] = (uint8_t)i;
	}
	for (i = 0; i < 3; i++) /* three: both sets are full, one of them for the second time */
		assert_int_equal(
			steer_prog_rules(&prog, p, STEER_PREFIXES, p, STEER_PREFIXES, vlans), 0);
	assert_int_equal(steer_prog_rules(&prog, p, STEER_PREFIXES + 1, p, 1, vlans), -E2BIG);
	expect("last of many", STEER_LAN, &last, STEER_TAKEN);
	expect("beyond many", STEER_LAN, &beyond, STEER_NO_RULE);
	free(p);
}

static bool has_prefix(const uint8_t *addr, const struct afxdp_prefix *p)
{
	unsigned int i;

	for (i = 0; i < p->plen; i++)
		if ((addr[i / 8] ^ p->addr[i / 8]) & 0x80 >> i % 8)
			return false;
	return true;
}

/* Longest match over expanded prefixes gives the rules of all prefixes that match. */
static void expansion(void **state)
{
	struct afxdp_prefix in[64], out[64];
	unsigned int round, k, b;
	long n, i, best;

	(void)state;
	srandom(4791);
	for (round = 0; round < 300; round++) {
		size_t count = 1 + (size_t)random() % 64;

		for (k = 0; k < count; k++) {
			/* two values a byte, lengths that nest: many duplicates, long chains */
			in[k] = (struct afxdp_prefix){.rules = 1ull << k};
			in[k].plen = (uint8_t)(random() % 4 ? random() % 41 : random() % 129);
			for (b = 0; b < 16; b++)
				in[k].addr[b] = random() & 1 ? 0x80 : 0;
		}
		n = steer_expand(in, count, out);
		assert_true(n > 0 && n <= (long)count);
		for (k = 0; k < 200; k++) {
			uint8_t addr[16];
			uint64_t want = 0;

			for (b = 0; b < 16; b++)
				addr[b] = random() & 1 ? 0x80 : 0;
			for (b = 0; b < count; b++)
				if (has_prefix(addr, &in[b]))
					want |= in[b].rules;
			for (i = 0, best = -1; i < n; i++)
				if (has_prefix(addr, &out[i]) &&
				    (best < 0 || out[i].plen > out[best].plen))
					best = i;
			assert_int_equal(best < 0 ? 0 : out[best].rules, want);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(rules, reset),
		cmocka_unit_test_setup(own, reset),
		cmocka_unit_test_setup(most_prefixes, reset),
		cmocka_unit_test(expansion),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
