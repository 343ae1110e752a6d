// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A configuration that is read anew: what of it a running daemon can take, and where its peers are.
 */
#include "config/config_value.h"
#include "tests/unit/config_text.h"

static void test_restart_needed(void **state)
{
	static struct config was;

	(void)state;
	assert_int_equal(parse(HEAD RULE "[peer p]\naddress = ::1\nkey-file = /k\n"), 0);
	was = cfg;
	assert_int_equal(parse(HEAD
			       "log-level = debug\ndrain-timeout = 1s\nwan-rate = auto up to "
			       "1G\nshare = most\nwan-burst = 1M\nnode = n2\npeer-timeout = 2s\n"
			       "responder-timeout = 3s\nrnr-timeout = 4s\nidle-timeout = 5s\n" RULE
			       "read-depth = 4\n"
			       "[peer p]\naddress = ::1\nkey-file = /k\n"),
			 0);
	assert_null(config_restart_needed(&was, &cfg));
	config_take(&was, &cfg);
	assert_int_equal(was.log_level, LOG_DEBUG);
	assert_int_equal(was.drain_ns, SEC);
	assert_true(was.wan_rate == (PACE_AUTO | 125000000));
	assert_int_equal(was.share, SHARE_MOST);
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

/* ENG-21: what auto chose at the start is nothing that a reload compares with. */
static void test_cores(void **state)
{
	static struct config was;

	(void)state;
	assert_int_equal(parse(HEAD "cores = auto\n" RULE), 0);
	was = cfg;
	assert_int_equal(parse(HEAD "cores = auto\n" RULE), 0);
	assert_null(config_restart_needed(&was, &cfg));
	assert_int_equal(parse(HEAD "cores = 2\n" RULE), 0);
	assert_string_equal(config_restart_needed(&was, &cfg), "cores");
	assert_string_equal(config_restart_needed(&cfg, &was), "cores");
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
		cmocka_unit_test(test_restart_needed),
		cmocka_unit_test(test_cores),
		cmocka_unit_test(test_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
