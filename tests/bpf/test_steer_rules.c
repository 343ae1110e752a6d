// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The rules of the XDP program: changed, as many as there can be, and expanded (steer_rig.h). */
#include <errno.h>
#include <stdlib.h>

#include "tests/bpf/steer_rig.h"

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

static void most_prefixes(void **state)
{
	struct afxdp_prefix *p = calloc(STEER_PREFIXES + 1, sizeof(*p));
	const struct steer_frame last = {.src = "10.0.15.255", .dst = "10.0.0.0"},
				 beyond = {.src = "10.0.16.0", .dst = "10.0.0.0"};
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
		cmocka_unit_test_setup(most_prefixes, reset),
		cmocka_unit_test(expansion),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
