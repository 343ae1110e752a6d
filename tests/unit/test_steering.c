// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * From rules to what the XDP program matches: a packet that a rule takes has that rule's bit in the
 * near prefix, the far prefix and the VLAN, and no packet has a bit in all three that the rule
 * would not take.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/steering.h"

static struct rule rules[RULE_MAX];
static struct steering st;

static struct prefix prefix_of(const char *text, unsigned int len)
{
	struct prefix p = {.len = (uint8_t)len};

	assert_int_equal(ip_addr_parse(text, &p.addr), 0);
	return p;
}

static void make_rule(unsigned int i, const char *near, unsigned int nlen, const char *far,
		      unsigned int flen, uint16_t vlan)
{
	memset(&rules[i], 0, sizeof(rules[i]));
	rules[i].near[0] = prefix_of(near, nlen);
	rules[i].far[0] = prefix_of(far, flen);
	rules[i].nnear = rules[i].nfar = 1;
	rules[i].vlan = vlan;
}

/* What the program would see: the bits of all prefixes that hold @a (the port expands nested ones).
 */
static uint64_t bits_of(const struct afxdp_prefix *list, size_t n, const struct ip_addr *a)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < n; i++) {
		struct prefix p = {.len = list[i].plen};

		memcpy(p.addr.b, list[i].addr, sizeof(p.addr.b));
		if (prefix_has(&p, a))
			bits |= list[i].rules;
	}
	return bits;
}

static void test_agrees_with_rules(void **state)
{
	static const char *const hosts[] = {"10.1.0.5", "10.1.9.9",	 "10.2.0.7",
					    "10.3.0.1", "2001:db8:1::5", "2001:db8:2::7"};
	static const uint16_t vlans[] = {1, 5, 17, 4094, FRAME_VLAN_NONE};
	unsigned int taken = 0;

	(void)state;
	make_rule(0, "10.1.0.0", 96 + 16, "10.2.0.0", 96 + 16, 5);
	make_rule(1, "10.1.0.0", 96 + 24, "10.2.0.0", 96 + 16, FRAME_VLAN_NONE);
	make_rule(2, "10.3.0.0", 96 + 16, "0.0.0.0", 96, RULE_ANY_VLAN);
	make_rule(3, "2001:db8:1::", 48, "2001:db8:2::", 48, 17);
	steering_init(&st, rules, 4);
	assert_int_equal(st.nnear, 4);
	assert_int_equal(st.nfar, 4);
	for (size_t n = 0; n < 6; n++) {
		for (size_t f = 0; f < 6; f++) {
			for (size_t v = 0; v < 5; v++) {
				struct ip_addr near, far;
				uint64_t bits;
				int rule;

				ip_addr_parse(hosts[n], &near);
				ip_addr_parse(hosts[f], &far);
				bits = bits_of(st.near, st.nnear, &near) &
				       bits_of(st.far, st.nfar, &far) &
				       st.vlan[vlans[v] == FRAME_VLAN_NONE ? STEER_UNTAGGED
									   : vlans[v]];
				rule = rule_match(rules, 4, &near, &far, vlans[v]);
				assert_int_equal(bits, rule < 0 ? 0 : 1ull << rule);
				taken += rule >= 0;
			}
		}
	}
	assert_true(taken > 10);
}

/* What old rules wanted is taken as well, even when the new ones use all bits. */
static void test_add(void **state)
{
	static struct rule old[2];
	struct ip_addr near, far;
	uint64_t bits;

	(void)state;
	make_rule(0, "10.1.0.0", 96 + 16, "10.2.0.0", 96 + 16, 5);
	make_rule(1, "2001:db8:1::", 48, "2001:db8:2::", 48, FRAME_VLAN_NONE);
	memcpy(old, rules, sizeof(old));
	for (unsigned int n = 0; n <= RULE_MAX; n += RULE_MAX) {
		for (unsigned int i = 0; i < n; i++)
			make_rule(i, "10.8.0.0", 96 + 16, "10.9.0.0", 96 + 16, (uint16_t)(i + 100));
		steering_init(&st, rules, n);
		steering_add(&st, old, 2);
		ip_addr_parse("10.1.0.5", &near);
		ip_addr_parse("10.2.0.7", &far);
		bits = bits_of(st.near, st.nnear, &near) & bits_of(st.far, st.nfar, &far);
		assert_true(bits & st.vlan[5]);
		ip_addr_parse("2001:db8:1::5", &near);
		ip_addr_parse("2001:db8:2::7", &far);
		bits = bits_of(st.near, st.nnear, &near) & bits_of(st.far, st.nfar, &far);
		assert_true(bits & st.vlan[STEER_UNTAGGED]);
		/* and the new ones are, as before */
		ip_addr_parse("10.8.0.5", &near);
		ip_addr_parse("10.9.0.7", &far);
		bits = bits_of(st.near, st.nnear, &near) & bits_of(st.far, st.nfar, &far);
		for (unsigned int i = 0; i < n; i++)
			assert_true(bits & st.vlan[i + 100]);
	}
	steering_init(&st, rules, 0);
	steering_add_all(&st);
	assert_true(bits_of(st.near, st.nnear, &near) & bits_of(st.far, st.nfar, &far) &
		    st.vlan[77]);
}

/* All rules with all prefixes fit. */
static void test_full(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < RULE_MAX; i++) {
		make_rule(i, "10.1.0.0", 96 + 16, "10.2.0.0", 96 + 16, (uint16_t)(i + 1));
		for (unsigned int k = 0; k < RULE_PREFIXES; k++)
			rules[i].near[k] = rules[i].far[k] = rules[i].near[0];
		rules[i].nnear = rules[i].nfar = RULE_PREFIXES;
	}
	steering_init(&st, rules, RULE_MAX);
	assert_int_equal(st.nnear, RULE_MAX * RULE_PREFIXES);
	assert_int_equal(st.vlan[RULE_MAX], 1ull << (RULE_MAX - 1));
	steering_init(&st, rules, 0);
	assert_int_equal(st.nnear, 0);
	assert_int_equal(st.vlan[1], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_agrees_with_rules),
		cmocka_unit_test(test_add),
		cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
