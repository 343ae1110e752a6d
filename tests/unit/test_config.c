// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The configuration file: what a right one means, and what is said about each wrong one, on which
 * line.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include <cmocka.h>

#include "config.h"
#include "config_value.h"
#include "tests/unit/temp_dir.h"

#define SEC 1000000000ull

static struct config cfg;
static struct config_errors errs;

static int parse_bytes(const void *text, size_t len)
{
	FILE *f = tmpfile();
	int rc;

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	rewind(f);
	rc = config_parse(f, "t.conf", &cfg, &errs);
	fclose(f);
	return rc;
}

static int parse(const char *text)
{
	return parse_bytes(text, strlen(text));
}

/* Lines 1 to 3 of most cases, and a rule (lines 4 to 7) of others; its lines but for the policy. */
#define HEAD "[longhaul]\nlan = l0\nwan = w0\n"
#define BARE "[rule r]\nlan = 10.1.0.0/16\nwan = 10.2.0.0/16\n"
#define RULE BARE "policy = early\n"

static void test_defaults(void **state)
{
	(void)state;
	assert_int_equal(parse(HEAD RULE), 0);
	assert_string_equal(cfg.ifname[STEER_LAN], "l0");
	assert_string_equal(cfg.ifname[STEER_WAN], "w0");
	assert_string_equal(cfg.socket, "/run/longhaul/longhaul.sock");
	assert_int_equal(cfg.pool_bytes, 256 << 20);
	assert_int_equal(cfg.max_conns, 16384);
	assert_int_equal(cfg.mode, AFXDP_AUTO);
	assert_int_equal(cfg.wan_rate, 0);
	assert_int_equal(cfg.wan_burst, 0);
	assert_int_equal(cfg.max_path_mtu, 0);
	assert_int_equal(cfg.port, 4797);
	assert_int_equal(cfg.peer_timeout_ns, 60 * SEC);
	assert_int_equal(cfg.responder_timeout_ns, 30 * SEC);
	assert_int_equal(cfg.rnr_timeout_ns, 300 * SEC);
	assert_int_equal(cfg.idle_ns, 600 * SEC);
	assert_int_equal(cfg.drain_ns, 10 * SEC);
	assert_int_equal(cfg.log_level, LOG_INFO);
	assert_true(cfg.sandbox);
	assert_true(cfg.node[0]);
	assert_int_equal(cfg.npeers, 0);
	assert_int_equal(cfg.nrules, 1);
	assert_int_equal(cfg.rules[0].vlan, RULE_ANY_VLAN);
	assert_int_equal(cfg.rules[0].peer, PEER_NONE);
	assert_int_equal(cfg.rules[0].policy, POLICY_EARLY);
	assert_int_equal(cfg.rules[0].order, ORDER_QUEUE_PAIR);
	assert_int_equal(cfg.rules[0].learn, LEARN_CM | LEARN_PSN);
	assert_int_equal(cfg.rules[0].cap, 0);
	assert_int_equal(cfg.rules[0].atomic, ATOMIC_ORDERED);
	assert_false(cfg.rules[0].prefetch);
	assert_int_equal(cfg.rules[0].prefetch_max_age_ns, SEC);
	assert_int_equal(cfg.rules[0].read_depth, 0);
	assert_true(cfg.rules[0].wan_check);
	assert_int_equal(cfg.rules[0].nread_ranges, 0);
}

static void test_everything(void **state)
{
	struct ip_addr a;

	(void)state;
	assert_int_equal(parse("# comment\n"
			       "[longhaul]\n"
			       "  lan = l0 ; indented, with a comment\n"
			       "  wan=w0 # and another\n"
			       "socket = /tmp/x.sock\n"
			       "pool = 1G\n"
			       "max-connections = 100\n"
			       "mode = generic\n"
			       "wan-rate = 10G\n"
			       "wan-burst = 2M\n"
			       "max-path-mtu = 4096\n"
			       "listen = 192.0.2.1\n"
			       "port = 5000\n"
			       "node = edge-a\n"
			       "peer-timeout = 2min\n"
			       "responder-timeout = 500ms\n"
			       "rnr-timeout = 20s\n"
			       "idle-timeout = 1h\n"
			       "drain-timeout = 0s\n"
			       "log-level = warning\n"
			       "sandbox = off\n"
			       "\n"
			       "[rule v6]\n"
			       "lan = 2001:db8:1::/48, 2001:db8:3::7\n"
			       "wan = 2001:db8:2::/48 \n"
			       "vlan = 17\n"
			       "peer = edge-b\n"
			       "policy = honest\n"
			       "learn = cm\n"
			       "path-mtu = 1024\n"
			       "pool = 64M\n"
			       "[rule other]\n"
			       "lan = 10.0.0.1\n"
			       "wan = any\n"
			       "policy = early\n"
			       "vlan = none\n"
			       "[peer edge-b]\n"
			       "address = 2001:db8::2\n"
			       "port = 4791\n"
			       "key-file = /etc/longhaul/k\n"
			       "[peer edge-c]\n"
			       "address = 192.0.2.3\n"
			       "key-file = /etc/longhaul/k\n"),
			 0);
	assert_string_equal(cfg.ifname[STEER_LAN], "l0");
	assert_string_equal(cfg.ifname[STEER_WAN], "w0");
	assert_int_equal(cfg.if_line[STEER_WAN], 4);
	assert_int_equal(cfg.pool_bytes, 1 << 30);
	assert_int_equal(cfg.mode, AFXDP_GENERIC);
	assert_int_equal(cfg.wan_rate, 1250000000);
	assert_int_equal(cfg.wan_burst, 2 << 20);
	assert_int_equal(cfg.max_path_mtu, 4096);
	assert_int_equal(ip_addr_parse("192.0.2.1", &a), 0);
	assert_true(ip_addr_eq(&a, &cfg.listen));
	assert_string_equal(cfg.node, "edge-a");
	assert_int_equal(cfg.peer_timeout_ns, 120 * SEC);
	assert_int_equal(cfg.responder_timeout_ns, SEC / 2);
	assert_int_equal(cfg.rnr_timeout_ns, 20 * SEC);
	assert_int_equal(cfg.idle_ns, 3600 * SEC);
	assert_int_equal(cfg.drain_ns, 0);
	assert_int_equal(cfg.log_level, LOG_WARNING);
	assert_false(cfg.sandbox);
	assert_int_equal(cfg.npeers, 2);
	assert_int_equal(cfg.peers[0].port, 4791);
	assert_int_equal(cfg.peers[1].port, 5000);
	assert_int_equal(cfg.peers[0].key_line, 40);
	assert_int_equal(cfg.nrules, 2);
	assert_int_equal(cfg.rules[0].nnear, 2);
	assert_int_equal(cfg.rules[0].near[0].len, 48);
	assert_int_equal(cfg.rules[0].near[1].len, 128);
	assert_int_equal(cfg.rules[0].vlan, 17);
	assert_int_equal(cfg.rules[0].peer, 0);
	assert_int_equal(cfg.rules[0].policy, POLICY_HONEST);
	assert_int_equal(cfg.rules[0].learn, LEARN_CM);
	assert_int_equal(cfg.rules[0].path_mtu, 1024);
	assert_int_equal(cfg.rules[0].cap, 64 << 20);
	assert_int_equal(cfg.rules[1].near[0].len, 128);
	assert_int_equal(cfg.rules[1].nfar, 2);
	assert_int_equal(cfg.rules[1].vlan, FRAME_VLAN_NONE);
}

/* "any" takes hosts of both families, an IPv4 prefix none of IPv6. */
static void test_any(void **state)
{
	struct ip_addr v4, v6;

	(void)state;
	assert_int_equal(ip_addr_parse("10.9.9.9", &v4), 0);
	assert_int_equal(ip_addr_parse("2001:db8::9", &v6), 0);
	assert_int_equal(parse(HEAD "[rule r]\nlan = any\nwan = 0.0.0.0/0\npolicy = off\n"), 0);
	assert_int_equal(rule_match(cfg.rules, 1, &v4, &v4, 5), 0);
	assert_int_equal(rule_match(cfg.rules, 1, &v6, &v4, 5), 0);
	assert_int_equal(rule_match(cfg.rules, 1, &v4, &v6, 5), -1);
}

#define PAIR	  RULE "peer = p\n"
#define BARE_PAIR BARE "peer = p\n"
#define PEER	  "[peer p]\naddress = ::1\nkey-file = /k\n"

/* Rules say apart from each other whether, how far and where READs may be guessed. */
/* NTT-8, NTT-9 */
static void test_atomic(void **state)
{
	(void)state;
	assert_int_equal(parse(HEAD PEER PAIR "atomic = discard-result\n"), 0);
	assert_int_equal(cfg.rules[0].atomic, ATOMIC_DISCARD);
	assert_int_equal(parse(HEAD RULE "atomic = discard-result\n"), 0);
	assert_int_equal(parse(HEAD PEER BARE_PAIR "policy = off\natomic = prefetch\n"), 0);
	assert_int_equal(cfg.rules[0].atomic, ATOMIC_PREFETCH);
	assert_int_equal(parse(HEAD BARE "policy = honest\natomic = ordered\n"), 0);
	assert_int_equal(cfg.rules[0].atomic, ATOMIC_ORDERED);
}

/* NTT-5, NTT-6: what a rule may say of prefetch. */
static void test_prefetch(void **state)
{
	(void)state;
	assert_int_equal(
		parse(HEAD PEER PAIR
		      "prefetch = on\n"
		      "prefetch-max-age = 0s\n"
		      "prefetch-range = 0x7f0000000000-0x7f0040000000, 4096-8192\t0X10-0x1f\n"
		      "read-depth = 255\n"
		      "wan-check = off\n"
		      "[rule s]\nlan = 10.3.0.0/16\nwan = any\npeer = p\npolicy = early\n"
		      "prefetch-max-age = 250ms\n"),
		0);
	assert_int_equal(cfg.rules[0].prefetch, PREFETCH_ON);
	assert_int_equal(cfg.rules[0].prefetch_max_age_ns, 0);
	assert_int_equal(cfg.rules[0].read_depth, 255);
	assert_false(cfg.rules[0].wan_check);
	assert_true(cfg.rules[1].wan_check);
	assert_int_equal(cfg.rules[0].nread_ranges, 3);
	assert_true(cfg.rules[0].read_range[0].from == 0x7f0000000000);
	assert_true(cfg.rules[0].read_range[0].end == 0x7f0040000000);
	assert_int_equal(cfg.rules[0].read_range[1].from, 4096);
	assert_int_equal(cfg.rules[0].read_range[1].end, 8192);
	assert_int_equal(cfg.rules[0].read_range[2].from, 0x10);
	assert_int_equal(cfg.rules[0].read_range[2].end, 0x1f);
	assert_false(cfg.rules[1].prefetch);
	assert_int_equal(cfg.rules[1].prefetch_max_age_ns, SEC / 4);
	assert_int_equal(cfg.rules[1].nread_ranges, 0);
	/* the highest address that can be named; a leading 0 is no octal number */
	assert_int_equal(parse(HEAD PEER PAIR "prefetch-range = 010-0xffffffffffffffff\n"), 0);
	assert_int_equal(cfg.rules[0].read_range[0].from, 10);
	assert_true(cfg.rules[0].read_range[0].end == UINT64_MAX);
	/* what is off needs no peer, whatever else is written down for the day when it is on */
	assert_int_equal(
		parse(HEAD RULE "prefetch = off\nread-depth = auto\nprefetch-max-age = 1h\n"), 0);
	/* NTT-7: one appliance, by a word of its own */
	assert_int_equal(parse(HEAD RULE "prefetch = single\nread-depth = 16\n"), 0);
	assert_int_equal(cfg.rules[0].prefetch, PREFETCH_SINGLE);
	assert_int_equal(cfg.rules[0].peer, PEER_NONE);
}

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
	{HEAD "mode = fast\n" RULE,
	 "t.conf:4: mode 'fast' is not known; write auto, native or generic"},
	{HEAD "wan-rate = fast\n" RULE, "t.conf:4: wan-rate 'fast' is no rate"},
	{HEAD "wan-rate = 10\n" RULE, "t.conf:4: wan-rate '10' is too slow"},
	{HEAD "wan-rate = auto up to x\n" RULE, "t.conf:4: wan-rate 'auto up to x' is no rate"},
	{HEAD "wan-rate = automatic\n" RULE, "t.conf:4: wan-rate 'automatic' is no rate"},
	{HEAD "max-path-mtu = 1500\n" RULE, "t.conf:4: max-path-mtu '1500' is no path MTU"},
	{HEAD "max-path-mtu = 512\n" RULE, "t.conf:4: max-path-mtu '512' is no path MTU"},
	{HEAD RULE "[peer p]\naddress = edge_b\nkey-file = /k\n",
	 "t.conf:9: address 'edge_b' is no IPv4 or IPv6 address and no host name"},
	{HEAD RULE "[peer p]\naddress = 192.0.2.300\nkey-file = /k\n",
	 "t.conf:9: address '192.0.2.300' is no IPv4 or IPv6 address; write one"},
	{HEAD RULE "[peer p]\naddress = 192.0.2.0/24\nkey-file = /k\n",
	 "t.conf:9: address '192.0.2.0/24' is no IPv4 or IPv6 address"},
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
	{HEAD "socket = x.sock\n" RULE, "t.conf:1: socket 'x.sock' is no absolute path"},
	{"[longhaul]\nlan = averyverylonginterface\nwan = w0\n" RULE,
	 "t.conf:2: lan 'averyverylonginterface' is too long"},
	{"[longhaul]\nlan = l0\nwan = l0\n" RULE, "t.conf:3: lan and wan are the same interface"},
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
	{HEAD RULE "order = strict\n",
	 "t.conf:8: order 'strict' is not known; write queue-pair or hosts"},
	{HEAD RULE "order = hosts\natomic = discard-result\n",
	 "t.conf:9: atomic = discard-result in rule 'r', whose order is hosts"},
	{HEAD RULE "learn = cm, magic\n",
	 "t.conf:8: learn 'cm, magic' is not known; write cm, psn or immediate"},
	{HEAD RULE "learn = ,\n", "t.conf:8: learn ',' is empty"},
	{HEAD RULE "path-mtu = 9000\n", "t.conf:8: path-mtu '9000' is no path MTU"},
	{HEAD "max-path-mtu = 1024\n" RULE "path-mtu = 4096\n",
	 "t.conf:9: path-mtu of rule 'r' is above max-path-mtu"},
	{HEAD "pool = 8M\n" RULE "pool = 16M\n", "t.conf:9: pool of rule 'r' is above the pool"},
	{HEAD PEER PAIR "prefetch = yes\n",
	 "t.conf:12: prefetch 'yes' is not known; write off, on or single"},
	{HEAD RULE "prefetch = on\n",
	 "t.conf:8: prefetch = on in rule 'r', which has no peer: an appliance alone cannot keep "
	 "answers near the host; add peer = NAME, or set prefetch = off"},
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
	{HEAD PEER PAIR "prefetch-max-age = 2h\n",
	 "t.conf:12: prefetch-max-age '2h' is out of range; write a duration from 0s to 3600s"},
	{HEAD PEER PAIR "prefetch-max-age = -1s\n",
	 "t.conf:12: prefetch-max-age '-1s' is no duration"},
	{HEAD PEER PAIR "read-depth = 0\n",
	 "t.conf:12: read-depth '0' is no number of READs; write auto, or a number from 1 to 255"},
	{HEAD PEER PAIR "read-depth = 256\n", "t.conf:12: read-depth '256' is no number of READs"},
	{HEAD PEER PAIR "read-depth = many\n",
	 "t.conf:12: read-depth 'many' is no number of READs"},
	{HEAD PEER PAIR "wan-check = yes\n", "t.conf:12: wan-check 'yes' is neither on nor off"},
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
	{HEAD RULE "[rule s]\nlan = 10.1.2.0/24\nwan = 10.0.0.0/8\n",
	 "t.conf:8: rule 's' overlaps rule 'r' (line 4)"},
	{HEAD RULE "[rule s]\nlan = any\nwan = any\nvlan = 5\n",
	 "t.conf:8: rule 's' overlaps rule 'r' (line 4)"},
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

/* Rules that differ in hosts or VLAN stand beside each other. */
static void test_disjoint_rules(void **state)
{
	(void)state;
	assert_int_equal(
		parse(HEAD RULE "[rule s]\nlan = 10.3.0.0/16\nwan = 10.2.0.0/16\npolicy = off\n"),
		0);
	assert_int_equal(
		parse(HEAD RULE
		      "vlan = 5\n[rule s]\nlan = any\nwan = any\nvlan = 6\npolicy = early\n"),
		0);
	assert_int_equal(
		parse(HEAD RULE
		      "vlan = none\n[rule s]\nlan = any\nwan = any\nvlan = 6\npolicy = early\n"),
		0);
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

static void test_byte_order_mark_and_dos_lines(void **state)
{
	(void)state;
	assert_int_equal(
		parse("\xef\xbb\xbf[longhaul]\r\nlan = l0\r\nwan = w0\r\n[rule r]\r\nlan = any\r\n"
		      "wan = any\r\npolicy = off\r\n"),
		0);
	assert_string_equal(cfg.ifname[STEER_WAN], "w0");
}

static void test_files(void **state)
{
	(void)state;
	assert_int_not_equal(config_load("/nonexistent/longhaul.conf", &cfg, &errs), 0);
	assert_string_equal(
		errs.text[0],
		"/nonexistent/longhaul.conf: cannot be opened: No such file or directory; name the "
		"file with -c, or copy the sample longhaul.conf there");
	assert_int_not_equal(config_load("/", &cfg, &errs), 0);
	assert_non_null(strstr(errs.text[0], "Is a directory"));
}

static void write_file(const char *name, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int load(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return config_load(path, &cfg, &errs);
}

/* The first message, without the folder. */
static const char *said(void)
{
	assert_int_equal(strncmp(errs.text[0], dir, strlen(dir)), 0);
	return errs.text[0] + strlen(dir) + 1;
}

#define EDGE_C "[peer c]\naddress = 192.0.2.3\nkey-file = /k\n"
#define TO_C   "[rule to-c]\nlan = 10.1.0.0/16\nwan = 10.3.0.0/16\npolicy = early\npeer = c\n"

/* Peers and rules in files of a folder beside, in the order of their names; each complaint names
 * the file that it is about. */
static void test_include(void **state)
{
	char sub[128];

	(void)state;
	snprintf(sub, sizeof(sub), "%s/conf.d", dir);
	assert_int_equal(mkdir(sub, 0700), 0);
	write_file("a.conf", HEAD "include = conf.d/*.conf\n" RULE);
	assert_int_equal(load("a.conf"), 0); /* an empty folder is fine */
	assert_int_equal(cfg.nrules, 1);
	/* the rule's peer stands in a later file */
	write_file("conf.d/1.conf", TO_C);
	write_file("conf.d/2.conf", EDGE_C);
	write_file("conf.d/2.conf.old", "nonsense");
	assert_int_equal(load("a.conf"), 0);
	assert_int_equal(cfg.nrules, 2);
	assert_string_equal(cfg.rules[1].name, "to-c");
	assert_int_equal(cfg.rules[1].peer, 0);
	assert_string_equal(cfg.peers[0].name, "c");

	write_file("conf.d/2.conf", EDGE_C "colour = blue\n");
	assert_int_not_equal(load("a.conf"), 0);
	assert_string_equal(said(), "conf.d/2.conf:4: unknown key 'colour' in [peer c]; "
				    "longhaul.conf(5) lists the keys");
	write_file("conf.d/2.conf", EDGE_C TO_C);
	assert_int_not_equal(load("a.conf"), 0);
	assert_non_null(strstr(said(), "conf.d/2.conf:4: second rule 'to-c', the first is at "));
	assert_non_null(strstr(said(), "conf.d/1.conf:1; rename or join them"));
	write_file("conf.d/2.conf", EDGE_C "[longhaul]\nwan-rate = 1G\n");
	assert_int_not_equal(load("a.conf"), 0);
	assert_non_null(strstr(said(), "conf.d/2.conf:4: [longhaul] in an included file"));
	/* what is known at the end only is said of the right file, too */
	write_file("conf.d/2.conf", "");
	assert_int_not_equal(load("a.conf"), 0);
	assert_string_equal(said(), "conf.d/1.conf:5: no peer 'c'; add a section [peer NAME] for "
				    "it, or leave 'peer' out");
	write_file("conf.d/2.conf", EDGE_C "[rule x]\nlan = 10.1.7.0/24\nwan = 10.2.7.0/24\n"
					   "policy = early\n");
	assert_int_not_equal(load("a.conf"), 0);
	assert_non_null(strstr(said(), "conf.d/2.conf:4: rule 'x' overlaps rule 'r' ("));
	assert_non_null(strstr(said(), "a.conf, line 5)"));
	write_file("conf.d/2.conf", EDGE_C "include = x\n");
	assert_int_not_equal(load("a.conf"), 0);

	/* a name without a pattern must be there */
	write_file("a.conf", HEAD "include = conf.d/3.conf\n" RULE);
	assert_int_not_equal(load("a.conf"), 0);
	assert_string_equal(said(), "a.conf:4: include 'conf.d/3.conf' names nothing that can be "
				    "read: there is no such file");
	/* a folder is no file */
	write_file("a.conf", HEAD "include = conf.d\n" RULE);
	assert_int_not_equal(load("a.conf"), 0);
	assert_string_equal(said(), "conf.d: cannot be read: it is no regular file");

	/* so many, and no more */
	write_file("a.conf", HEAD "include = conf.d/*.conf\n" RULE);
	write_file("conf.d/2.conf", EDGE_C);
	for (int i = 3; i <= CONFIG_FILES; i++) {
		snprintf(sub, sizeof(sub), "conf.d/x%d.conf", i);
		assert_int_equal(load("a.conf"), 0);
		write_file(sub, "");
	}
	assert_int_not_equal(load("a.conf"), 0);
	assert_string_equal(said(), "a.conf: more than 64 files are included; join some");

	for (int i = 1; i <= CONFIG_FILES; i++) {
		snprintf(sub, sizeof(sub), i < 3 ? "%s/conf.d/%d.conf" : "%s/conf.d/x%d.conf", dir,
			 i);
		assert_int_equal(unlink(sub), 0);
	}
	snprintf(sub, sizeof(sub), "%s/conf.d/2.conf.old", dir);
	assert_int_equal(unlink(sub), 0);
	snprintf(sub, sizeof(sub), "%s/conf.d", dir);
	assert_int_equal(rmdir(sub), 0);
	snprintf(sub, sizeof(sub), "%s/a.conf", dir);
	assert_int_equal(unlink(sub), 0);
}

static void test_sample(void **state)
{
	(void)state;
	if (config_load("conf/longhaul.conf", &cfg, &errs))
		fail_msg("%s", errs.text[0]);
	assert_int_equal(cfg.nrules, 1);
	assert_int_equal(cfg.rules[0].peer, 0);
	assert_int_equal(cfg.rules[0].policy, POLICY_EARLY);
}

/* The commented-out lines of the sample are right, too, and show the defaults. */
static void test_sample_defaults(void **state)
{
	static struct config plain;
	FILE *in = fopen("conf/longhaul.conf", "r"), *out = tmpfile();
	char line[256];

	(void)state;
	assert_non_null(in);
	assert_non_null(out);
	assert_int_equal(config_load("conf/longhaul.conf", &plain, &errs), 0);
	while (fgets(line, sizeof(line), in)) {
		/* "# key = value" with nothing else before the '=' */
		size_t key = strspn(line, "# "), end = key + strcspn(line + key, " ");

		if (line[0] == '#' && key == 2 && !strncmp(line + end, " = ", 3) &&
		    strncmp(line + key, "wan-", 4) && strncmp(line + key, "node", 4) &&
		    strncmp(line + key, "pool = 128M", 11) &&
		    strncmp(line + key, "prefetch-range", 14))
			fputs(line + key, out);
		else
			fputs(line, out);
	}
	fclose(in);
	rewind(out);
	if (config_parse(out, "sample", &cfg, &errs))
		fail_msg("%s", errs.text[0]);
	fclose(out);
	assert_null(config_restart_needed(&plain, &cfg));
	assert_int_equal(cfg.log_level, plain.log_level);
	assert_int_equal(cfg.drain_ns, plain.drain_ns);
	assert_memory_equal(cfg.rules, plain.rules, sizeof(cfg.rules));
}

static void test_restart_needed(void **state)
{
	static struct config was;

	(void)state;
	assert_int_equal(parse(HEAD RULE "[peer p]\naddress = ::1\nkey-file = /k\n"), 0);
	was = cfg;
	assert_int_equal(parse(HEAD
			       "log-level = debug\ndrain-timeout = 1s\nwan-rate = auto up to "
			       "1G\nwan-burst = 1M\nnode = n2\npeer-timeout = 2s\n"
			       "responder-timeout = 3s\nrnr-timeout = 4s\nidle-timeout = 5s\n" RULE
			       "read-depth = 4\n"
			       "[peer p]\naddress = ::1\nkey-file = /k\n"),
			 0);
	assert_null(config_restart_needed(&was, &cfg));
	config_take(&was, &cfg);
	assert_int_equal(was.log_level, LOG_DEBUG);
	assert_int_equal(was.drain_ns, SEC);
	assert_true(was.wan_rate == (PACE_AUTO | 125000000));
	assert_int_equal(was.wan_burst, 1 << 20);
	assert_string_equal(was.node, "n2");
	assert_int_equal(was.peer_timeout_ns, 2 * SEC);
	assert_int_equal(was.responder_timeout_ns, 3 * SEC);
	assert_int_equal(was.rnr_timeout_ns, 4 * SEC);
	assert_int_equal(was.idle_ns, 5 * SEC);
	assert_int_equal(was.rules[0].read_depth, 4);
	assert_int_equal(parse(HEAD "pool = 1G\n" RULE "[peer p]\naddress = ::1\nkey-file = /k\n"),
			 0);
	assert_string_equal(config_restart_needed(&was, &cfg), "pool");
	assert_int_equal(
		parse(HEAD "socket = /s\n" RULE "[peer p]\naddress = ::1\nkey-file = /k\n"), 0);
	assert_string_equal(config_restart_needed(&was, &cfg), "socket");
	assert_int_equal(parse(HEAD RULE "[peer q]\naddress = ::2\nkey-file = /k, /l\n"), 0);
	assert_null(config_restart_needed(&was, &cfg));
}

static void test_key_files(void **state)
{
	(void)state;
	assert_int_equal(parse(HEAD RULE "[peer p]\naddress = ::1\nkey-file = /a b/k\n"), 0);
	assert_int_equal(cfg.peers[0].nkeys, 1);
	assert_string_equal(cfg.peers[0].key_file[0], "/a b/k");
	assert_int_equal(parse(HEAD RULE "[peer p]\naddress = ::1\nkey-file = /new ,\t/old \n"), 0);
	assert_int_equal(cfg.peers[0].nkeys, 2);
	assert_string_equal(cfg.peers[0].key_file[0], "/new");
	assert_string_equal(cfg.peers[0].key_file[1], "/old");
}

static void test_host_names(void **state)
{
	static const struct ip_addr unknown;

	(void)state;
	assert_int_equal(parse(HEAD RULE "[peer p]\naddress = edge-b.example.net\nkey-file = /k\n"
					 "[peer q]\naddress = 2001:db8::1\nkey-file = /k\n"
					 "[peer r]\naddress = edge-b.example.net\nport = 5\n"
					 "key-file = /k\n"),
			 0);
	assert_string_equal(cfg.peers[0].host, "edge-b.example.net");
	assert_true(ip_addr_eq(&cfg.peers[0].addr, &unknown));
	assert_string_equal(cfg.peers[1].host, "");
	assert_false(ip_addr_eq(&cfg.peers[1].addr, &unknown));
}

/* Names of the peers at their places, "-" for an empty one, and which of them the rule has. */
static const char *places(void)
{
	static char text[PEER_MAX + 8];

	memset(text, 0, sizeof(text));
	for (unsigned int i = 0; i < cfg.npeers; i++)
		text[i] = cfg.peers[i].name[0] ? cfg.peers[i].name[0] : '-';
	snprintf(text + cfg.npeers, 8, " %d", cfg.rules[0].peer);
	return text;
}

static void peers(const char *names, const char *of_rule)
{
	char text[4096];
	int n = snprintf(text, sizeof(text), HEAD RULE "peer = %s\n", of_rule);

	/* an upper case name has the address of the lower case one */
	for (; *names; names++)
		n += snprintf(text + n, sizeof(text) - n,
			      "[peer %c]\naddress = 10.0.0.%d\nkey-file = /k\n", *names,
			      *names | 0x20);
	assert_int_equal(parse(text), 0);
}

/* A running engine knows a peer by its place: it keeps it, whatever order the file has. */
static void test_places(void **state)
{
	static struct config was;

	(void)state;
	peers("abc", "b");
	was = cfg;
	peers("cab", "b");
	assert_int_equal(config_places(&was, &cfg), 0);
	assert_string_equal(places(), "abc 1");
	/* one less, one more: the place of what was removed is not free yet */
	peers("dac", "d");
	assert_int_equal(config_places(&was, &cfg), 0);
	assert_string_equal(places(), "a-cd 3");
	/* another name for the same address */
	peers("Bca", "B");
	assert_int_equal(config_places(&was, &cfg), 0);
	assert_string_equal(places(), "aBc 1");
	/* an empty place is taken */
	peers("dac", "d");
	was.peers[1].name[0] = '\0';
	assert_int_equal(config_places(&was, &cfg), 0);
	assert_string_equal(places(), "adc 1");
	/* and when there is none */
	peers("abcdefghijklmnop", "a");
	was = cfg;
	peers("abcdefghijklmnox", "a");
	assert_int_equal(config_places(&was, &cfg), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_key_files),
		cmocka_unit_test(test_host_names),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_everything),
		cmocka_unit_test(test_any),
		cmocka_unit_test(test_atomic),
		cmocka_unit_test(test_prefetch),
		cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_no_echo),
		cmocka_unit_test(test_disjoint_rules),
		cmocka_unit_test(test_all_errors_are_told),
		cmocka_unit_test(test_many_errors),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_binary),
		cmocka_unit_test(test_byte_order_mark_and_dos_lines),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_include),
		cmocka_unit_test(test_sample),
		cmocka_unit_test(test_sample_defaults),
		cmocka_unit_test(test_restart_needed),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
