// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The configuration file: what a right one means.
 */
#include "config/config_value.h"
#include "tests/unit/config_text.h"

static void test_defaults(void **state)
{
	(void)state;
	assert_int_equal(parse(HEAD RULE), 0);
	assert_string_equal(cfg.ifname[STEER_LAN], "l0");
	assert_string_equal(cfg.ifname[STEER_PORT(STEER_WAN, 0)], "w0");
	assert_string_equal(cfg.socket, "/run/longhaul/longhaul.sock");
	assert_int_equal(cfg.pool_bytes, 256 << 20);
	assert_int_equal(cfg.max_conns, 16384);
	assert_int_equal(cfg.cores, 1);
	assert_int_equal(cfg.mode, AFXDP_AUTO);
	assert_true(cfg.wan_rate == PACE_AUTO);
	assert_int_equal(cfg.share, SHARE_FAIR);
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
	assert_int_equal(cfg.rules[0].traffic, CLASS_DATA);
	assert_int_equal(cfg.rules[0].learn, LEARN_CM | LEARN_PSN);
	assert_int_equal(cfg.rules[0].cap, 0);
	assert_int_equal(cfg.rules[0].atomic, ATOMIC_ORDERED);
	assert_false(cfg.rules[0].prefetch);
	assert_int_equal(cfg.rules[0].announce, ANNOUNCE_MODE_OFF);
	assert_int_equal(cfg.rules[0].prefetch_max_age_ns, SEC);
	assert_int_equal(cfg.rules[0].read_depth, 0);
	assert_true(cfg.rules[0].seal);
	assert_true(cfg.rules[0].parity);
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
			       "mode = zero-copy\n"
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
			       "class = bulk\n"
			       "dscp = af41\n"
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
			       "port = 4799\n"
			       "key-file = /etc/longhaul/k\n"
			       "[peer edge-c]\n"
			       "address = 192.0.2.3\n"
			       "key-file = /etc/longhaul/k\n"),
			 0);
	assert_string_equal(cfg.ifname[STEER_LAN], "l0");
	assert_string_equal(cfg.ifname[STEER_PORT(STEER_WAN, 0)], "w0");
	assert_int_equal(cfg.key_line[STEER_WAN], 4);
	assert_int_equal(cfg.pool_bytes, 1 << 30);
	assert_int_equal(cfg.mode, AFXDP_ZERO_COPY);
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
	assert_int_equal(cfg.peers[0].port, 4799);
	assert_int_equal(cfg.peers[1].port, 5000);
	assert_int_equal(cfg.peers[0].key_line, 42);
	assert_int_equal(cfg.nrules, 2);
	assert_int_equal(cfg.rules[0].nnear, 2);
	assert_int_equal(cfg.rules[0].near[0].len, 48);
	assert_int_equal(cfg.rules[0].near[1].len, 128);
	assert_int_equal(cfg.rules[0].vlan, 17);
	assert_int_equal(cfg.rules[0].peer, 0);
	assert_int_equal(cfg.rules[0].policy, POLICY_HONEST);
	assert_int_equal(cfg.rules[0].traffic, CLASS_BULK);
	assert_int_equal(cfg.rules[0].dscp, RULE_DSCP | 34);
	assert_int_equal(cfg.rules[1].dscp, 0);
	assert_int_equal(cfg.rules[0].learn, LEARN_CM);
	assert_int_equal(cfg.rules[0].path_mtu, 1024);
	assert_int_equal(cfg.rules[0].cap, 64 << 20);
	assert_int_equal(cfg.rules[1].near[0].len, 128);
	assert_int_equal(cfg.rules[1].nfar, 2);
	assert_int_equal(cfg.rules[1].vlan, FRAME_VLAN_NONE);
}

/* ENG-21 */
static void test_busy_poll(void **state)
{
	(void)state;
	assert_int_equal(parse(HEAD RULE), 0);
	assert_int_equal(cfg.busy_poll_ns, 0);
	assert_int_equal(parse(HEAD "busy-poll = 50us\n" RULE), 0);
	assert_int_equal(cfg.busy_poll_ns, 50000);
	assert_int_equal(parse(HEAD "busy-poll = 10ms\n" RULE), 0);
}

static void test_cores(void **state)
{
	(void)state;
	assert_int_equal(parse(HEAD "cores = 16\n" RULE), 0);
	assert_int_equal(cfg.cores, 16);
	assert_int_equal(parse(HEAD "cores = auto\n" RULE), 0);
	assert_int_equal(cfg.cores, 0);
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

/* "any" takes hosts of both families, an IPv4 prefix none of IPv6. */
/* Several ports a side. */
static void test_members(void **state)
{
	(void)state;
	assert_int_equal(parse("[longhaul]\nlan = l0 l1,l2\nwan = w0, interface-of-15\n" RULE), 0);
	for (int m = 0; m < STEER_MEMBERS; m++) {
		static const char *const lan[] = {"l0", "l1", "l2", ""};
		static const char *const wan[] = {"w0", "interface-of-15", "", ""};

		assert_string_equal(cfg.ifname[STEER_PORT(STEER_LAN, m)], lan[m]);
		assert_string_equal(cfg.ifname[STEER_PORT(STEER_WAN, m)], wan[m]);
	}
}

static void test_any(void **state)
{
	struct ip_addr v4, v6;

	(void)state;
	assert_int_equal(ip_addr_parse("10.9.9.9", &v4), 0);
	assert_int_equal(ip_addr_parse("2001:db8::9", &v6), 0);
	assert_int_equal(parse(HEAD "[rule r]\nlan = any\nwan = 10.0.0.0/8\npolicy = off\n"), 0);
	assert_int_equal(rule_match(cfg.rules, 1, &v4, &v4, 5), 0);
	assert_int_equal(rule_match(cfg.rules, 1, &v6, &v4, 5), 0);
	assert_int_equal(rule_match(cfg.rules, 1, &v4, &v6, 5), -1);
}

/* Rules that differ in hosts or VLAN stand beside each other. */
static void test_disjoint_rules(void **state)
{
	(void)state;
	assert_int_equal(
		parse(HEAD RULE "[rule s]\nlan = 10.3.0.0/16\nwan = 10.2.0.0/16\npolicy = off\n"),
		0);
	assert_int_equal(parse(HEAD RULE
			       "vlan = 5\n[rule s]\nlan = any\nwan = 10.0.0.0/8\nvlan = 6\n"
			       "policy = early\n"),
			 0);
	assert_int_equal(parse(HEAD RULE
			       "vlan = none\n[rule s]\nlan = 10.0.0.0/8\nwan = any\nvlan = 6\n"
			       "policy = early\n"),
			 0);
}

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

static void test_announce(void **state)
{
	(void)state;
	assert_int_equal(parse(HEAD PEER PAIR "announce = auto\n"), 0);
	assert_int_equal(cfg.rules[0].announce, ANNOUNCE_MODE_AUTO);
	assert_int_equal(parse(HEAD PEER PAIR "announce = nvme\n"), 0);
	assert_int_equal(cfg.rules[0].announce, ANNOUNCE_MODE_NVME);
	assert_int_equal(parse(HEAD PEER PAIR "announce = iser\n"), 0);
	assert_int_equal(cfg.rules[0].announce, ANNOUNCE_MODE_ISER);
	assert_string_equal(announce_mode_name(ANNOUNCE_MODE_ISER), "iser");
	assert_int_equal(parse(HEAD PEER PAIR "announce = nfs\n"), 0);
	assert_int_equal(cfg.rules[0].announce, ANNOUNCE_MODE_NFS);
	assert_string_equal(announce_mode_name(ANNOUNCE_MODE_NFS), "nfs");
	assert_int_equal(parse(HEAD RULE "announce = off\nprefetch = single\n"), 0);
	/* off where nothing is said: it is not safe on every network */
	assert_int_equal(parse(HEAD PEER PAIR), 0);
	assert_int_equal(cfg.rules[0].announce, ANNOUNCE_MODE_OFF);
	assert_false(config_wants_pins(&cfg, 0));
	assert_int_equal(parse(HEAD PEER PAIR "announce = auto\n"), 0);
	assert_true(config_wants_pins(&cfg, 0));
	assert_int_equal(parse(HEAD PEER PAIR "announce = off\n"), 0);
	assert_int_equal(cfg.rules[0].announce, ANNOUNCE_MODE_OFF);
	assert_false(config_wants_pins(&cfg, 0));
}

/* ENG-19: on where nothing is said; its name of before is read as well. */
static void test_seal(void **state)
{
	(void)state;
	assert_int_equal(parse(HEAD PEER PAIR), 0);
	assert_true(cfg.rules[0].seal);
	assert_int_equal(parse(HEAD PEER PAIR "seal = off\n"), 0);
	assert_false(cfg.rules[0].seal);
	assert_int_equal(parse(HEAD PEER PAIR "wan-check = off\n"), 0);
	assert_false(cfg.rules[0].seal);
	/* what makes two numberings is not there to be refused */
	assert_int_equal(parse(HEAD PEER PAIR "seal = off\natomic = discard-result\n"), 0);
	assert_false(cfg.rules[0].seal);
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
		      "seal = on\n"
		      "[rule s]\nlan = 10.3.0.0/16\nwan = any\npeer = p\npolicy = early\n"
		      "prefetch-max-age = 250ms\n"),
		0);
	assert_int_equal(cfg.rules[0].prefetch, PREFETCH_ON);
	assert_int_equal(cfg.rules[0].prefetch_max_age_ns, 0);
	assert_int_equal(cfg.rules[0].read_depth, 255);
	assert_true(cfg.rules[0].seal);
	assert_true(cfg.rules[1].seal);
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
	assert_int_equal(parse(HEAD PEER PAIR "prefetch = responder\nprefetch-range = 0-9\n"), 0);
	assert_int_equal(cfg.rules[0].prefetch, PREFETCH_RESPONDER);
	/* NTT-7: one appliance, by a word of its own */
	assert_int_equal(parse(HEAD RULE "prefetch = single\nread-depth = 16\n"), 0);
	assert_int_equal(cfg.rules[0].prefetch, PREFETCH_SINGLE);
	assert_int_equal(cfg.rules[0].peer, PEER_NONE);
}

static void test_byte_order_mark_and_dos_lines(void **state)
{
	(void)state;
	assert_int_equal(
		parse("\xef\xbb\xbf[longhaul]\r\nlan = l0\r\nwan = w0\r\n[rule r]\r\nlan = any\r\n"
		      "wan = ::1\r\npolicy = off\r\n"),
		0);
	assert_string_equal(cfg.ifname[STEER_PORT(STEER_WAN, 0)], "w0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_everything),
		cmocka_unit_test(test_busy_poll),
		cmocka_unit_test(test_cores),
		cmocka_unit_test(test_key_files),
		cmocka_unit_test(test_host_names),
		cmocka_unit_test(test_members),
		cmocka_unit_test(test_any),
		cmocka_unit_test(test_disjoint_rules),
		cmocka_unit_test(test_atomic),
		cmocka_unit_test(test_announce),
		cmocka_unit_test(test_prefetch),
		cmocka_unit_test(test_seal),
		cmocka_unit_test(test_byte_order_mark_and_dos_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
