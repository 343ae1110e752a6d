// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The configuration file: what is said about each wrong one, on which line.
 */
#include "tests/unit/config_text.h"

static const struct {
	const char *text, *error;
} wrong[] = {
	/* what is missing */
	{"", "t.conf: no [longhaul] section"},
	{"# nothing\n\n", "t.conf: no [longhaul] section"},
	{HEAD, "t.conf: no [rule NAME] section"},
	{"[longhaul]\nlan = l0\n" RULE, "t.conf:1: [longhaul] has no 'wan'"},
	{"[longhaul]\n" RULE, "t.conf:1: [longhaul] has no 'lan'"},
	{HEAD "[rule r]\nlan = any\n", "t.conf:4: [rule r] has no 'wan'"},
	{HEAD "[rule r]\nwan = any\n", "t.conf:4: [rule r] has no 'lan'"},
	{HEAD BARE,
	 "t.conf:4: [rule r] has no 'policy', and only you know what a completion must mean: add "
	 "'policy = honest' (the far host has the data), 'policy = early' (this appliance has it: "
	 "fastest; longhaul.conf(5), POLICIES, says for whom it is exact) or 'policy = off'"},
	{HEAD RULE "[peer p]\naddress = 192.0.2.1\n", "t.conf:8: [peer p] has no 'key-file'"},
	{HEAD RULE "[peer p]\nkey-file = /k\n", "t.conf:8: [peer p] has no 'address'"},
	{HEAD RULE "[peer p]\naddress = ::1\nkey-file = /k, /l, /m\n",
	 "t.conf:10: key-file '/k, /l, /m' are too many; name the key file in use"},
	{HEAD RULE "[peer p]\naddress = ::1\nkey-file = /k,\n",
	 "t.conf:10: key-file '/k,' is empty"},
	/* syntax */
	{"lan = l0\n" HEAD RULE, "t.conf:1: 'lan' stands before any section"},
	{HEAD "rubbish\n" RULE, "t.conf:4: is neither '[section]' nor 'key = value'"},
	{HEAD "[rule r\nlan = any\nwan = any\n", "t.conf:4: section without ']'"},
	{HEAD "pool =\n" RULE, "t.conf:4: pool '' is no size"},
	/* unknown words, with a hint */
	{HEAD "polcy = early\n" RULE, "t.conf:4: unknown key 'polcy' in [longhaul]"},
	{HEAD RULE "polcy = early\n",
	 "t.conf:8: unknown key 'polcy' in [rule r]; did you mean 'policy'?"},
	{HEAD RULE "banana = 1\n", "t.conf:8: unknown key 'banana' in [rule r]; longhaul.conf(5)"},
	{HEAD RULE "[ruel x]\n", "t.conf:8: unknown section [ruel x]; did you mean 'rule'?"},
	{HEAD RULE "[]\n", "t.conf:8: unknown section []"},
	{HEAD RULE "[rule]\n", "t.conf:8: section [rule] needs one name"},
	{HEAD RULE "[rule a b]\n", "t.conf:8: section [rule a b] needs one name"},
	{HEAD RULE "[longhaul x]\n", "t.conf:8: section [longhaul] takes no name"},
	/* twice */
	{HEAD "wan = w1\n" RULE, "t.conf:4: second 'wan' in [longhaul]"},
	{HEAD RULE HEAD, "t.conf:8: second [longhaul] section, the first is on line 1"},
	{HEAD RULE "[rule r]\nlan = any\n", "t.conf:8: second rule 'r', the first is on line 4"},
	{HEAD RULE "[peer p]\naddress = ::1\nkey-file = /k\n[peer p]\n",
	 "t.conf:11: second peer 'p', the first is on line 8"},
	{HEAD RULE
	 "[peer p]\naddress = ::1\nkey-file = /k\n[peer q]\naddress = ::1\nkey-file = /k\n",
	 "t.conf:11: peer 'q' has the address and port of peer 'p' (line 8)"},
	/* values */
	{HEAD "pool = 12X\n" RULE, "t.conf:4: pool '12X' is no size"},
	{HEAD "pool = 1M\n" RULE,
	 "t.conf:4: pool '1M' is out of range; write a size from 8M to 64G"},
	{HEAD "pool = 99999999999G\n" RULE, "t.conf:4: pool"},
	{HEAD "pool = -1\n" RULE, "t.conf:4: pool '-1' is no size"},
	{HEAD "max-connections = 0\n" RULE, "t.conf:4: max-connections '0' is out of range"},
	{HEAD "max-connections = 1e3\n" RULE, "t.conf:4: max-connections '1e3' is no whole number"},
	{HEAD "cores = 0\n" RULE,
	 "t.conf:4: cores '0' is no number to be used here; write auto, or a number from 1 to 16"},
	{HEAD "cores = 17\n" RULE, "t.conf:4: cores '17' is no number to be used here"},
	{HEAD "cores = automatic\n" RULE, "t.conf:4: cores 'automatic' is no number to be used"},
	{HEAD "cores = 2 or auto\n" RULE, "t.conf:4: cores '2 or auto' is no number to be used"},
	{HEAD "cores =\n" RULE, "t.conf:4: cores '' is no number to be used here"},
	{HEAD "mode = fast\n" RULE,
	 "t.conf:4: mode 'fast' is not known; write auto, native, generic or zero-copy"},
	{HEAD "wan-rate = fast\n" RULE, "t.conf:4: wan-rate 'fast' is no rate"},
	{HEAD "wan-rate = 10\n" RULE, "t.conf:4: wan-rate '10' is too slow"},
	{HEAD "wan-rate = auto up to x\n" RULE, "t.conf:4: wan-rate 'auto up to x' is no rate"},
	{HEAD "wan-rate = automatic\n" RULE, "t.conf:4: wan-rate 'automatic' is no rate"},
	{HEAD "max-path-mtu = 1500\n" RULE, "t.conf:4: max-path-mtu '1500' is no path MTU"},
	{HEAD "max-path-mtu = 512\n" RULE, "t.conf:4: max-path-mtu '512' is no path MTU"},
	{HEAD "port = 4791\n" RULE, "t.conf:4: port 4791 is that of RoCEv2 itself; write another"},
	{HEAD RULE "[peer p]\naddress = ::1\nkey-file = /k\nport = 4791\n",
	 "t.conf:8: port 4791 is that of RoCEv2 itself"},
	{HEAD RULE "[peer p]\naddress = edge_b\nkey-file = /k\n",
	 "t.conf:9: address 'edge_b' is no IPv4 or IPv6 address and no host name"},
	{HEAD RULE "[peer p]\naddress = 192.0.2.300\nkey-file = /k\n",
	 "t.conf:9: address '192.0.2.300' is no IPv4 or IPv6 address; write one"},
	{HEAD RULE "[peer p]\naddress = 192.0.2.0/24\nkey-file = /k\n",
	 "t.conf:9: address '192.0.2.0/24' is no IPv4 or IPv6 address"},
	{HEAD RULE "[peer p]\naddress = ::\nkey-file = /k\n",
	 "t.conf:9: address '::' is of no single host that can be reached; write one, such as"},
	{HEAD RULE "[peer p]\naddress = 0.0.0.0\nkey-file = /k\n",
	 "t.conf:9: address '0.0.0.0' is of no single host"},
	{HEAD RULE "[peer p]\naddress = ::ffff:0.0.0.0\nkey-file = /k\n",
	 "t.conf:9: address '::ffff:0.0.0.0' is of no single host"},
	{HEAD RULE "[peer p]\naddress = febf::1\nkey-file = /k\n",
	 "t.conf:9: address 'febf::1' is of no single host"},
	{HEAD RULE "[peer p]\naddress = ff02::1\nkey-file = /k\n",
	 "t.conf:9: address 'ff02::1' is of no single host"},
	{HEAD RULE "[peer p]\naddress = 224.0.0.1\nkey-file = /k\n",
	 "t.conf:9: address '224.0.0.1' is of no single host"},
	{HEAD RULE "[peer p]\naddress = 255.255.255.255\nkey-file = /k\n",
	 "t.conf:9: address '255.255.255.255' is of no single host"},
	{HEAD RULE "[peer p]\naddress = b.example\nkey-file = /k\n"
		   "[peer q]\naddress = b.example\nkey-file = /k\n",
	 "t.conf:11: peer 'q' has the address and port of peer 'p'"},
	{HEAD "listen = host\n" RULE, "t.conf:4: listen 'host' is no IPv4 or IPv6 address"},
	{HEAD "port = 65536\n" RULE, "t.conf:4: port '65536' is out of range"},
	{HEAD "node = a b\n" RULE, "t.conf:4: node 'a b' holds characters"},
	{HEAD "peer-timeout = 60\n" RULE,
	 "t.conf:4: peer-timeout '60' has no unit; write 60s or 60ms"},
	{HEAD "peer-timeout = 60d\n" RULE, "t.conf:4: peer-timeout '60d' has an unknown unit"},
	{HEAD "peer-timeout = 10ms\n" RULE, "t.conf:4: peer-timeout '10ms' is out of range"},
	{HEAD "log-level = loud\n" RULE, "t.conf:4: log-level 'loud' is not known"},
	{HEAD "sandbox = yes\n" RULE, "t.conf:4: sandbox 'yes' is neither on nor off"},
	{HEAD "socket = x.sock\n" RULE, "t.conf:4: socket 'x.sock' is no absolute path"},
	{"[longhaul]\nlan = averyverylonginterface\nwan = w0\n" RULE,
	 "t.conf:2: lan 'averyverylonginterface' is too long"},
	{"[longhaul]\nlan = l0\nwan = l0\n" RULE, "t.conf:3: lan and wan are the same interface"},
	{"[longhaul]\nlan = l0, l1\nwan = w0 l1\n" RULE,
	 "t.conf:3: lan and wan are the same interface 'l1'"},
	{"[longhaul]\nlan = l0 l1 l0\nwan = w0\n" RULE, "t.conf:2: interface 'l0' is named twice"},
	{"[longhaul]\nlan = l0 l1 l2 l3 l4\nwan = w0\n" RULE, "name at most 4 interfaces"},
	{"[longhaul]\nlan = l0 interface-of-16b\nwan = w0\n" RULE, "is too long for an interface"},
	{"[longhaul]\nlan = ,\nwan = w0\n" RULE, "t.conf:2: lan ',' is empty"},
	/* rules */
	{HEAD "[rule r]\nlan = 10.1.0.0/33\nwan = any\n",
	 "t.conf:5: lan '10.1.0.0/33' holds '10.1.0.0/33' with a bad prefix length; write 0 to 32"},
	{HEAD "[rule r]\nlan = 2001:db8::/129\nwan = any\n",
	 "with a bad prefix length; write 0 to 128"},
	{HEAD "[rule r]\nlan = 10.1.0.5/16\nwan = any\n",
	 "holds '10.1.0.5/16' with host bits set; write 10.1.0.0/16"},
	{HEAD "[rule r]\nlan = 2001:db8::1/32\nwan = any\n",
	 "holds '2001:db8::1/32' with host bits set; write 2001:db8::/32"},
	{HEAD "[rule r]\nlan = host\nwan = any\n", "holds 'host', which is no IPv4 or IPv6 prefix"},
	{HEAD "[rule r]\nlan = ,\nwan = any\n", "t.conf:5: lan ',' is empty"},
	{HEAD RULE "vlan = 4095\n", "t.conf:8: vlan '4095' is no VLAN"},
	{HEAD RULE "vlan = 0\n", "t.conf:8: vlan '0' is no VLAN"},
	{HEAD BARE "policy = always\n",
	 "t.conf:7: policy 'always' is not known; write early, honest or off"},
	{HEAD RULE "class = fast\n",
	 "t.conf:8: class 'fast' is not known; write data, control or bulk"},
	{HEAD RULE "dscp = 64\n",
	 "t.conf:8: dscp '64' is no DSCP; write keep, 0 to 63, cs0 to cs7, af11 to af43, ef or le"},
	{HEAD RULE "dscp = cs8\n", "t.conf:8: dscp 'cs8' is no DSCP"},
	{HEAD RULE "dscp = af14\n", "t.conf:8: dscp 'af14' is no DSCP"},
	{HEAD RULE "dscp = -1\n", "t.conf:8: dscp '-1' is no DSCP"},
	{HEAD RULE "dscp = 7x\n", "t.conf:8: dscp '7x' is no DSCP"},
	{HEAD RULE "order = strict\n",
	 "t.conf:8: order 'strict' is not known; write queue-pair or hosts"},
	{HEAD RULE "order = hosts\natomic = discard-result\n",
	 "t.conf:9: atomic = discard-result in rule 'r', whose order is hosts"},
	{HEAD RULE "learn = cm, magic\n",
	 "t.conf:8: learn 'cm, magic' is not known; write cm, psn, immediate or psn-alone"},
	{HEAD RULE "learn = ,\n", "t.conf:8: learn ',' is empty"},
	{HEAD RULE "path-mtu = 9000\n", "t.conf:8: path-mtu '9000' is no path MTU"},
	{HEAD "max-path-mtu = 1024\n" RULE "path-mtu = 4096\n",
	 "t.conf:9: path-mtu of rule 'r' is above max-path-mtu"},
	{HEAD "pool = 8M\n" RULE "pool = 16M\n", "t.conf:9: pool of rule 'r' is above the pool"},
	{HEAD RULE "announce = auto\n",
	 "t.conf:8: announce = auto in rule 'r', which has no peer: no appliance would keep the "
	 "data; add peer = NAME, or set announce = off"},
	{HEAD PEER PAIR "announce = nvme\nprefetch = on\n",
	 "t.conf:12: announce = nvme in rule 'r' goes only with prefetch = off; set that, or "
	 "announce "
	 "= off"},
	{HEAD PEER PAIR "announce = smb\n",
	 "t.conf:12: announce 'smb' is not known; write off, auto, nvme, iser or nfs"},
	{HEAD PEER PAIR "prefetch = yes\n",
	 "t.conf:12: prefetch 'yes' is not known; write off, on, single or responder"},
	{HEAD RULE "prefetch = on\n",
	 "t.conf:8: prefetch = on in rule 'r', which has no peer: an appliance alone cannot keep "
	 "answers near the host; add peer = NAME, or set prefetch = off"},
	{HEAD RULE "prefetch = responder\n",
	 "t.conf:8: prefetch = responder in rule 'r', which has no peer: an appliance alone cannot "
	 "keep answers near the host; add peer = NAME, or set prefetch = off (or single, see "
	 "longhaul.conf(5))"},
	{HEAD PEER PAIR "prefetch = single\n",
	 "t.conf:12: prefetch = single in rule 'r', which has a peer: that is for one appliance "
	 "alone; set prefetch = on"},
	{HEAD PEER PAIR "atomic = discard\n", "t.conf:12: atomic 'discard'"},
	{HEAD BARE "policy = honest\natomic = discard-result\n",
	 "t.conf:8: atomic = discard-result in rule 'r', whose policy is honest: it tells that "
	 "something is done before it is; set policy = early, or atomic = ordered"},
	{HEAD RULE "atomic = prefetch\n",
	 "t.conf:8: atomic = prefetch in rule 'r', which has no peer: an appliance alone cannot "
	 "keep "
	 "answers near the host; add peer = NAME, or set atomic = ordered"},
	{HEAD PEER PAIR "prefetch-max-age = 100\n",
	 "t.conf:12: prefetch-max-age '100' has no unit; write 100s or 100ms"},
	{HEAD "busy-poll = 10001us\n" RULE,
	 "busy-poll '10001us' is out of range; write a duration from 0s to 10ms"},
	{HEAD PEER PAIR "prefetch-max-age = 2h\n",
	 "t.conf:12: prefetch-max-age '2h' is out of range; write a duration from 0s to 3600s"},
	{HEAD PEER PAIR "prefetch-max-age = -1s\n",
	 "t.conf:12: prefetch-max-age '-1s' is no duration"},
	{HEAD PEER PAIR "read-depth = 0\n", "t.conf:12: read-depth '0' is no number to be used "
					    "here; write auto, or a number from 1 to 255"},
	{HEAD PEER PAIR "read-depth = 256\n",
	 "t.conf:12: read-depth '256' is no number to be used here"},
	{HEAD PEER PAIR "read-depth = many\n",
	 "t.conf:12: read-depth 'many' is no number to be used here"},
	{HEAD PEER PAIR "seal = yes\n", "t.conf:12: seal 'yes' is neither on nor off"},
	{HEAD PEER PAIR "wan-check = yes\n", "t.conf:12: wan-check 'yes' is neither on nor off"},
	{HEAD PEER PAIR "seal = on\nwan-check = off\n", "t.conf:13: second 'seal' in [rule r]"},
	{HEAD PEER PAIR "wan-check = off\nseal = on\n", "t.conf:13: second 'seal' in [rule r]"},
	{HEAD PEER PAIR "wan-check = off\natomic = prefetch\n",
	 "t.conf:12: seal = off in rule 'r', which has atomic = prefetch; "},
	{HEAD PEER PAIR "announce = auto\nseal = off\n",
	 "t.conf:13: seal = off in rule 'r', which has announce; packets that take another way "
	 "would "
	 "be executed under wrong numbers; set seal = on, or announce = off"},
	{HEAD PEER PAIR "seal = off\nprefetch = on\n",
	 "t.conf:12: seal = off in rule 'r', which has prefetch; packets that take another way "
	 "would "
	 "be executed under wrong numbers; set seal = on, or prefetch = off"},
	{HEAD PEER PAIR "prefetch-range = 0x1000\n",
	 "t.conf:12: prefetch-range '0x1000' holds '0x1000', which is no range; write FROM-END"},
	{HEAD PEER PAIR "prefetch-range = 0x1000 - 0x2000\n", "holds '0x1000', which is no range"},
	{HEAD PEER PAIR "prefetch-range = 0x-0x10\n", "holds '0x-0x10', which is no range"},
	{HEAD PEER PAIR "prefetch-range = 1-2-3\n", "holds '1-2-3', which is no range"},
	{HEAD PEER PAIR "prefetch-range = 0-0x10000000000000000\n",
	 "holds '0-0x10000000000000000', which is no range"},
	{HEAD PEER PAIR "prefetch-range = 5-6, 0x2000-0x1000\n",
	 "holds '0x2000-0x1000', which is empty"},
	{HEAD PEER PAIR "prefetch-range = 7-7\n", "holds '7-7', which is empty"},
	{HEAD PEER PAIR "prefetch-range = ,\n", "t.conf:12: prefetch-range ',' is empty"},
	{HEAD PEER PAIR "prefetch-range = 1-2,2-3,3-4,4-5,5-6,6-7,7-8,8-9,9-10\n",
	 "holds too many ranges; write at most 8 in one rule, or join them"},
	{HEAD PEER PAIR "prefetsh = on\n",
	 "t.conf:12: unknown key 'prefetsh' in [rule r]; did you mean 'prefetch'?"},
	{HEAD RULE "peer = q\nprefetch = on\n", "t.conf:8: no peer 'q'"},
	{HEAD RULE "peer = edge-b\n", "t.conf:8: no peer 'edge-b'; add a section"},
	{HEAD RULE "peer = edge-c\n[peer edge-b]\naddress = ::1\nkey-file = /k\n",
	 "t.conf:8: no peer 'edge-c'; did you mean 'edge-b'?"},
	{HEAD RULE "[rule s]\nlan = 10.1.2.0/24\nwan = 10.2.0.0/15\n",
	 "t.conf:8: rule 's' overlaps rule 'r' (line 4)"},
	{HEAD RULE "[rule s]\nlan = any\nwan = 10.0.0.0/8\nvlan = 5\npolicy = off\n",
	 "t.conf:8: rule 's' overlaps rule 'r' (line 4)"},
	/* a host on both sides of the link */
	{HEAD "[rule s]\nlan = 10.1.0.0/16\nwan = 10.0.0.0/8\npolicy = off\n",
	 "t.conf:4: wan of rule 's' has hosts that its lan has, too (10.0.0.0/8): a host is on one "
	 "side of the link; name other prefixes, or 'any' for all other hosts"},
	{HEAD "[rule s]\nlan = 10.1.0.0/16, 10.2.0.7\nwan = 10.3.0.0/16, 10.2.0.0/16\n"
	      "policy = off\n",
	 "t.conf:4: wan of rule 's' has hosts that its lan has, too (10.2.0.0/16)"},
	{HEAD "[rule s]\nlan = 2001:db8::/32\nwan = 2001:db8:1::/48\npolicy = off\n",
	 "its lan has, too (2001:db8:1::/48)"},
	{HEAD "[rule s]\nlan = any\nwan = any\npolicy = off\n", "its lan has, too ("},
	{HEAD "[rule s]\nlan = ::/0\nwan = 0.0.0.0/0\npolicy = off\n",
	 "its lan has, too (0.0.0.0/0)"},
	{HEAD "[rule averyveryverylongnameofarulethatdoesnotfit]\n",
	 "t.conf:4: rule name 'averyvery"},
	{HEAD "[rule a/b]\n", "t.conf:4: rule name 'a/b' holds characters"},
};

static void test_wrong(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		bool found = false;

		assert_int_not_equal(parse(wrong[i].text), 0);
		assert_true(errs.n > 0);
		for (unsigned int e = 0; e < errs.n && e < CONFIG_ERRORS; e++)
			found |= strstr(errs.text[e], wrong[i].error) != NULL;
		if (!found)
			fail_msg("case %zu: expected \"%s\", got \"%s\"", i, wrong[i].error,
				 errs.text[0]);
	}
}

/* One mistake is told once, not again as the consequences that it has. */
static void test_no_echo(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		parse(wrong[i].text);
		if (errs.n > 2)
			fail_msg("case %zu: %u errors for one mistake: %s | %s | %s", i, errs.n,
				 errs.text[0], errs.text[1], errs.text[2]);
	}
}

static void test_all_errors_are_told(void **state)
{
	(void)state;
	assert_int_not_equal(
		parse("[longhaul]\nlan = l0\npool = x\nport = y\nfoo = z\n[rule r]\nlan = bad\n"),
		0);
	/* pool, port, foo, no wan; lan, no wan, no policy */
	assert_int_equal(errs.n, 7);
	assert_non_null(strstr(errs.text[0], "t.conf:3:"));
	assert_non_null(strstr(errs.text[1], "t.conf:4:"));
	assert_non_null(strstr(errs.text[2], "t.conf:5:"));
}

static void test_many_errors(void **state)
{
	char text[8192] = HEAD;

	(void)state;
	for (int i = 0; i < 100; i++)
		strcat(text, "nonsense = 1\n");
	assert_int_not_equal(parse(text), 0);
	assert_int_equal(errs.n, 100);
}

static void test_limits(void **state)
{
	static char text[65536];
	size_t used;

	(void)state;
	used = (size_t)sprintf(text, HEAD);
	for (int i = 0; i < RULE_MAX + 1; i++)
		used += (size_t)sprintf(text + used,
					"[rule r%d]\nlan = 10.%d.0.0/16\nwan = any\npolicy = off\n",
					i, i);
	assert_int_not_equal(parse(text), 0);
	assert_int_equal(errs.n, 1);
	assert_non_null(strstr(errs.text[0], "too many rules; at most 64"));

	used = (size_t)sprintf(text, HEAD RULE);
	for (int i = 0; i < PEER_MAX + 1; i++)
		used += (size_t)sprintf(text + used,
					"[peer p%d]\naddress = 10.9.0.%d\nkey-file = /k\n", i, i);
	assert_int_not_equal(parse(text), 0);
	assert_int_equal(errs.n, 1);
	assert_non_null(strstr(errs.text[0], "too many peers; at most 16"));

	used = (size_t)sprintf(text, HEAD "[rule r]\nwan = any\nlan = ");
	for (int i = 0; i < RULE_PREFIXES + 1; i++)
		used += (size_t)sprintf(text + used, "10.%d.0.0/16,", i);
	assert_int_not_equal(parse(text), 0);
	assert_non_null(strstr(errs.text[0], "t.conf:6: lan"));
	assert_non_null(strstr(errs.text[0], "at most 32"));

	used = (size_t)sprintf(text, HEAD "[rule r]\nwan = any\nlan = ");
	memset(text + used, 'x', 5000);
	text[used + 5000] = '\0';
	assert_int_not_equal(parse(text), 0);
	assert_non_null(strstr(errs.text[0], "t.conf:6: line of 5006 bytes"));
}

/* Bytes that are no text: told, on one line of printable characters. */
static void test_binary(void **state)
{
	static const char zero[] = HEAD "po\0ol = 1G\n" RULE;
	char noise[4096];

	(void)state;
	assert_int_not_equal(parse_bytes(zero, sizeof(zero) - 1), 0);
	assert_non_null(strstr(errs.text[0], "t.conf:4: holds a zero byte"));
	assert_int_not_equal(parse(HEAD "\033[31m = 1\n" RULE), 0);
	assert_null(strchr(errs.text[0], '\033'));
	srand(1);
	for (int round = 0; round < 200; round++) {
		for (size_t i = 0; i < sizeof(noise); i++)
			noise[i] = (char)rand();
		assert_int_not_equal(parse_bytes(noise, sizeof(noise)), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_no_echo),
		cmocka_unit_test(test_all_errors_are_told),
		cmocka_unit_test(test_many_errors),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_binary),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
