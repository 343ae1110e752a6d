// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a daemon notes of its peers for the next one, whose configuration is another by then.
 */
#include "daemon/daemon_kept.h"
#include "tests/unit/config_text.h"

static void peers(const char *names)
{
	char text[4096];
	int n = snprintf(text, sizeof(text), HEAD RULE "peer = %c\n", names[0]);

	for (; *names; names++)
		n += snprintf(text + n, sizeof(text) - n,
			      "[peer %c]\naddress = 10.0.0.%d\nkey-file = /k\n", *names, *names);
	assert_int_equal(parse(text), 0);
}

/* One that a reload has removed, and that is owed something yet, is missed by nobody. */
static void test_leaving(void **state)
{
	static struct config was;
	static struct kept k;

	(void)state;
	peers("abc");
	was = cfg;
	kept_note_peers(&k, &cfg, 0);
	peers("ac");
	assert_false(kept_places(&k, &cfg));
	kept_note_peers(&k, &was, 1u << 1);
	peers("dca");
	assert_true(kept_places(&k, &cfg));
	assert_int_equal(cfg.npeers, 4);
	assert_string_equal(cfg.peers[0].name, "a");
	assert_string_equal(cfg.peers[1].name, ""); /* its place is not given away */
	assert_string_equal(cfg.peers[2].name, "c");
	assert_string_equal(cfg.peers[3].name, "d");
	assert_int_equal(kept_leaving(&k, &cfg), 1u << 1);
	assert_string_equal(cfg.peers[1].name, "b");
	assert_int_equal(cfg.peers[1].port, was.peers[1].port);
	assert_memory_equal(&cfg.peers[1].addr, &was.peers[1].addr, sizeof(struct ip_addr));
	/* the others are missed as ever */
	peers("ad");
	assert_false(kept_places(&k, &cfg));
	/* it is configured again */
	peers("cba");
	assert_true(kept_places(&k, &cfg));
	assert_int_equal(kept_leaving(&k, &cfg), 0);
	assert_string_equal(cfg.peers[1].name, "b");
	/* the last one, behind all others */
	kept_note_peers(&k, &was, 1u << 2);
	peers("ab");
	assert_true(kept_places(&k, &cfg));
	assert_int_equal(kept_leaving(&k, &cfg), 1u << 2);
	assert_int_equal(cfg.npeers, 3);
	assert_string_equal(cfg.peers[2].name, "c");
}

/* The one place that a new peer could have is that of one that is leaving: it waits, and nothing of
 * the others is given up for it. */
static void test_no_place(void **state)
{
	static struct config was;
	static struct kept k;

	(void)state;
	peers("abcdefghijklmnop");
	was = cfg;
	kept_note_peers(&k, &was, 1u << 1);
	peers("acdefghiqjklmnop");
	assert_true(kept_places(&k, &cfg));
	assert_string_equal(cfg.peers[0].name, "a");
	assert_string_equal(cfg.peers[1].name, "");
	for (unsigned int i = 2; i < PEER_MAX; i++)
		assert_string_equal(cfg.peers[i].name, was.peers[i].name);
	assert_int_equal(cfg.nrules, 1);
	assert_int_equal(cfg.rules[0].peer, 0);
	assert_int_equal(kept_leaving(&k, &cfg), 1u << 1);
	/* and with it what would go by it */
	peers("qponmlkjihgfedca");
	assert_true(kept_places(&k, &cfg));
	assert_int_equal(cfg.npeers, PEER_MAX);
	assert_string_equal(cfg.peers[15].name, "p");
	assert_int_equal(cfg.nrules, 0);
	/* but one that is missed is missed */
	peers("acdefghiqjklmno");
	assert_false(kept_places(&k, &cfg));
}

/* The engine may know another process of the peer's than the session does. */
static void test_boots(void **state)
{
	static struct kept k;

	(void)state;
	peers("ab");
	kept_note_peers(&k, &cfg, 0);
	assert_int_equal(kept_event(&k, 1, PEER_UP, 7), PEER_UP); /* it knew none */
	k.peer[1].boot = 7;
	assert_int_equal(kept_event(&k, 1, PEER_UP, 7), PEER_UP);
	assert_int_equal(kept_event(&k, 1, PEER_UP, 8), PEER_RESTARTED);
	assert_int_equal(kept_event(&k, 0, PEER_UP, 8), PEER_UP);
	assert_int_equal(kept_event(&k, 1, PEER_RESTARTED, 8), PEER_RESTARTED);
	assert_int_equal(kept_event(&k, 1, PEER_DOWN, 8), PEER_DOWN);
	/* what comes to its place is another one */
	kept_note_peers(&k, &cfg, 1u << 1);
	assert_int_equal(k.peer[1].boot, 7);
	peers("a");
	kept_note_peers(&k, &cfg, 0);
	assert_int_equal(k.peer[1].boot, 0);
}

/* What ports are to have back goes by their names, in this boot of the host alone. */
static void test_ports(void **state)
{
	static struct kept k, later;
	const int no_file[] = {-1};

	(void)state;
	peers("a");
	kept_note(&k, &cfg, 1, no_file);
	assert_false(kept_strips(&k, &cfg, STEER_LAN));
	k.vlan_strip[STEER_LAN] = true;
	assert_true(kept_strips(&k, &cfg, STEER_LAN));
	assert_false(kept_strips(&k, &cfg, STEER_PORT(STEER_WAN, 0)));
	snprintf(cfg.ifname[STEER_LAN], IF_NAMESIZE, "w0");
	snprintf(cfg.ifname[STEER_PORT(STEER_WAN, 0)], IF_NAMESIZE, "l0");
	assert_false(kept_strips(&k, &cfg, STEER_LAN));
	assert_true(kept_strips(&k, &cfg, STEER_PORT(STEER_WAN, 0)));
	later = k;
	later.host_boot.bytes[0] ^= 1;
	assert_false(kept_strips(&later, &cfg, STEER_PORT(STEER_WAN, 0)));
}

/* ENG-21: whatever number of shards the former process had, auto goes on with it. */
static void test_cores(void **state)
{
	static struct kept k;
	const int no_files[SHARDS_MAX] = {-1, -1, -1};

	(void)state;
	peers("a");
	kept_note(&k, &cfg, 3, no_files);
	cfg.cores = 2;
	assert_true(kept_resized(&k, &cfg));
	cfg.cores = 3;
	assert_false(kept_resized(&k, &cfg));
	cfg.cores = 0;
	assert_false(kept_resized(&k, &cfg));
	cfg.pool_bytes /= 2;
	assert_true(kept_resized(&k, &cfg));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leaving), cmocka_unit_test(test_no_place),
		cmocka_unit_test(test_boots),	cmocka_unit_test(test_ports),
		cmocka_unit_test(test_cores),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
