// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Peers that come up, over all kinds of networks but hostile ones.
 */
#include "peer_net.h"

static void comes_up(void **state)
{
	struct net *n = net_new(1);
	struct session_info i;

	(void)state;
	start(n, A);
	start(n, B);
	assert_false(session_up(n->node[A].s, PEER));
	run(n, 3 * n->delay); /* one and a half round trips, first word included */
	assert_true(both_up(n));
	assert_int_equal(n->node[A].up, 1);
	assert_int_equal(n->node[B].up, 1);

	run(n, 10 * SEC);
	assert_int_equal(n->node[A].up + n->node[B].up, 2);
	assert_int_equal(n->node[A].down + n->node[B].down, 0);
	assert_int_equal(n->node[A].restarted + n->node[B].restarted, 0);

	i = info(n, A);
	assert_int_equal(i.state, SESSION_UP);
	assert_string_equal(i.name, "b");
	assert_string_equal(i.node, "beta");
	assert_true(i.boot == session_boot(n->node[B].s));
	assert_int_equal(i.version, 1);
	assert_int_equal(i.window, 1001);
	assert_int_equal(i.nprefix, 1);
	assert_int_equal(i.prefix[0].len, 120);
	assert_int_equal(i.prefix[0].addr.b[12], 10);
	assert_int_equal(i.prefix[0].addr.b[15], 0); /* beyond its length */
	assert_int_equal(i.sessions, 1);
	assert_true(i.heard && i.heard_ns <= 50 * MS);
	assert_in_range(i.rtt_samples, 190, 210);
	assert_true(i.srtt_ns >= 40 * MS && i.srtt_ns < 41 * MS);
	assert_true(i.rtt_min_ns >= 40 * MS && i.rtt_min_ns < 41 * MS);
	assert_true(i.jitter_ns == 0 && i.owd_above_ns == 0);
	for (unsigned int c = 0; c < SC_COUNT; c++)
		if (c != SC_UNPROVEN && c != SC_NO_SESSION)
			assert_int_equal(i.counter[c], 0);
	assert_talk(n);
	net_free(n);
}

/* One starts long after the other, at any phase of the other's HELLOs. */
static void late_start(void **state)
{
	(void)state;
	for (unsigned int phase = 0; phase < 50; phase++) {
		struct net *n = net_new(100 + phase);

		start(n, phase & 1);
		run(n, 20 * SEC + phase * 10 * MS);
		start(n, !(phase & 1));
		run(n, 4 * n->delay);
		assert_true(both_up(n));
		assert_talk(n);
		net_free(n);
	}
}

static void lossy_start(void **state)
{
	(void)state;
	for (unsigned int seed = 0; seed < 50; seed++) {
		struct net *n = net_new(200 + seed);

		n->loss = 50;
		n->dup = 30;
		n->jitter = 300 * MS;
		start(n, A);
		start(n, B);
		for (int i = 0; i < 600 && !both_up(n); i++)
			run(n, 100 * MS);
		assert_true(both_up(n));
		n->loss = n->dup = 0;
		n->jitter = 0;
		run(n, 4 * SEC);
		assert_talk(n);
		net_free(n);
	}
}

/*
 * Delays so long and so uneven that salts are replaced while they travel, and words overtake each
 * other: the two sides must agree on one session in the end, and nobody goes down on the way there.
 */
static void slow_start(void **state)
{
	(void)state;
	for (unsigned int seed = 0; seed < 300; seed++) {
		struct net *n = net_new(600 + seed);

		n->delay = rnd(n) % 800 * MS;
		n->jitter = (rnd(n) % 600 + 1) * MS;
		start(n, A);
		run(n, rnd(n) % (20 * SEC));
		start(n, B);
		run(n, 60 * SEC);
		if (n->node[A].down || n->node[B].down || !both_up(n))
			print_message("seed %u\n", 600 + seed);
		assert_true(both_up(n));
		assert_int_equal(n->node[A].down + n->node[B].down, 0);
		n->delay = 20 * MS;
		n->jitter = 0;
		run(n, 10 * SEC);
		assert_talk(n);
		net_free(n);
	}
}

static bool lose_confirms(struct net *n, int to, const uint8_t *data, size_t len)
{
	struct proto_challenge c;

	(void)to;
	return !(n->filtered < 5 && opens_with(data, len, psk, &c) && c.established);
}

/* The word that makes the second side believe is lost, again and again: it is repeated. */
static void lost_confirm(void **state)
{
	struct net *n = net_new(3);

	(void)state;
	start(n, A);
	run(n, 600 * MS);
	n->filter = lose_confirms;
	start(n, B);
	run(n, 3 * SEC);
	assert_int_equal(n->filtered, 5);
	assert_talk(n);
	assert_int_equal(n->node[A].down + n->node[B].down, 0);

	/* And when a running side must change over, before it finds the one before silent. */
	n->filtered = 3;
	start(n, B);
	run(n, 3 * SEC);
	assert_int_equal(n->filtered, 5);
	assert_talk(n);
	assert_int_equal(n->node[A].down, 0);
	assert_int_equal(n->node[A].restarted, 1);
	net_free(n);
}

static void wrong_key(void **state)
{
	static const uint8_t other[PEER_KEY_LEN] = {1};
	struct net *n = net_new(4);

	(void)state;
	start(n, A);
	start_with(n, B, other);
	run(n, 50 * SEC);
	assert_int_equal(n->node[A].up + n->node[B].up, 0);
	assert_true(counter(n, A, SC_BAD_AUTH) > 50);
	assert_int_equal(n->node[A].logs, 1); /* once a minute */
	assert_non_null(strstr(n->node[A].last_log, "same key"));
	run(n, 30 * SEC);
	assert_int_equal(n->node[A].logs, 2);
	assert_int_equal(info(n, A).rx_datagrams, 0);
	assert_false(info(n, A).known);
	net_free(n);
}

static bool lose_all(struct net *n, int to, const uint8_t *data, size_t len)
{
	(void)n, (void)to, (void)data, (void)len;
	return false;
}

/* What was refused before a peer was there is not why it is not there any more. */
static void key_mended(void **state)
{
	static const uint8_t other[PEER_KEY_LEN] = {1};
	struct net *n = net_new(7);

	(void)state;
	start(n, A);
	start_with(n, B, other);
	run(n, 5 * SEC);
	assert_true(info(n, A).other_key);
	assert_false(info(n, A).other_version);
	start(n, B);
	run(n, 5 * SEC);
	assert_true(both_up(n));
	n->filter = lose_all;
	run(n, 5 * SEC);
	assert_int_equal(info(n, A).state, SESSION_DOWN);
	assert_true(counter(n, A, SC_BAD_AUTH) > 0);
	assert_false(info(n, A).other_key);
	n->filter = NULL;
	start_with(n, B, other);
	run(n, 5 * SEC);
	assert_true(info(n, A).other_key);
	/* the operator has read the file again */
	n->filter = lose_all;
	assert_int_equal(session_peer_keys(n->node[A].s, PEER, &other, 1, n->now), 0);
	run(n, 5 * SEC);
	assert_false(info(n, A).other_key);
	net_free(n);
}

static bool next_version(struct net *n, int to, const uint8_t *data, size_t len)
{
	struct datagram d = {.to = to, .len = len};

	memcpy(d.data, data, len);
	d.data[2]++;
	enqueue(n, &d);
	return false;
}

static void wrong_version(void **state)
{
	struct net *n = net_new(5);

	(void)state;
	n->filter = next_version;
	start(n, A);
	start(n, B);
	run(n, 30 * SEC);
	assert_int_equal(n->node[A].up + n->node[B].up, 0);
	assert_in_range(counter(n, A, SC_BAD_VERSION), 50, 70);
	assert_int_equal(n->node[A].logs, 1);
	assert_non_null(strstr(n->node[A].last_log, "version 2"));
	assert_int_equal(counter(n, A, SC_BAD_AUTH), 0);
	assert_true(info(n, A).other_version);
	assert_false(info(n, A).other_key);
	net_free(n);

	/* The version is authenticated: changed back, it is not what was sealed. */
	n = net_up(6);
	for (size_t i = 0; i < n->nlog; i++)
		assert_int_equal(n->log[i].data[2], PROTO_VERSION);
	net_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(comes_up),	cmocka_unit_test(late_start),
		cmocka_unit_test(lossy_start),	cmocka_unit_test(slow_start),
		cmocka_unit_test(lost_confirm), cmocka_unit_test(wrong_key),
		cmocka_unit_test(key_mended),	cmocka_unit_test(wrong_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
