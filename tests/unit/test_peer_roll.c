// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Two keys at a time: a key is rolled and nobody notices; what was taken away opens nothing. */
#include "peer_net.h"

static const uint8_t key[3][PEER_KEY_LEN] = {
	"an example, not secret at all!!",
	"another one, as little secret!!",
	"a third, of no use to the others",
};

/* Node @id has these keys from now on: indices in @key, "01" for the first and the second. */
static void keys(struct net *n, int id, const char *which)
{
	uint8_t list[SESSION_KEYS][PEER_KEY_LEN];
	unsigned int nkeys = (unsigned int)strlen(which);

	assert_in_range(nkeys, 1, SESSION_KEYS);
	for (unsigned int i = 0; i < nkeys; i++)
		memcpy(list[i], key[which[i] - '0'], PEER_KEY_LEN);
	assert_int_equal(session_peer_keys(n->node[id].s, PEER, (const void *)list, nkeys,
					   n->now + n->node[id].offset),
			 0);
	flush(n, id);
}

static void assert_never_down(struct net *n)
{
	assert_int_equal(n->node[A].down + n->node[B].down, 0);
	assert_int_equal(n->node[A].restarted + n->node[B].restarted, 0);
}

/* Run for @ns with a report from each side every 5 ms: each one arrives, but for @lost of them. */
static void talk_for(struct net *n, uint64_t ns, unsigned int lost)
{
	unsigned int sent = 0, before = n->node[A].reports + n->node[B].reports;
	static uint32_t seq;

	for (uint64_t end = n->now + ns; n->now < end; sent += 2) {
		for (int id = A; id <= B; id++) {
			struct report r = progress(5, ++seq, 1);

			assert_int_equal(report(n, id, &r), 0);
			flush(n, id);
		}
		run(n, 5 * MS);
	}
	run(n, 100 * MS);
	assert_in_range(n->node[A].reports + n->node[B].reports - before, sent - lost, sent);
}

/* The three steps of a roll, either side first, while reports go on: none is lost. */
static void rolled(void **state)
{
	static const char *const steps[] = {"01", "10", "1"};

	(void)state;
	for (unsigned int seed = 0; seed < 32; seed++) {
		struct net *n = net_up(700 + seed);

		for (int i = 0; i < 3; i++) {
			keys(n, (seed >> i) & 1, steps[i]);
			talk_for(n, 700 * MS + rnd(n) % 500 * MS, 0);
			keys(n, !((seed >> i) & 1), steps[i]);
			talk_for(n, seed < 8 ? 12 * SEC : 700 * MS, 0);
		}
		assert_never_down(n);
		assert_int_equal(info(n, A).key, 0);
		assert_int_equal(info(n, B).key, 0);
		/* one session for the first key and one for the second; not one more and more */
		assert_in_range(info(n, A).sessions, 2, 3);
		assert_in_range(info(n, B).sessions, 2, 3);
		/* the key of before opens nothing: a process that has it alone stays outside */
		start_with(n, B, key[0]);
		run(n, 10 * SEC);
		assert_false(both_up(n));
		net_free(n);
	}
}

/* The same over a network that loses, repeats and delays: nobody is down for it. */
static void rolled_in_disorder(void **state)
{
	static const char *const steps[] = {"01", "10", "1"};

	(void)state;
	for (unsigned int seed = 0; seed < 40; seed++) {
		struct net *n = net_up(800 + seed);

		n->loss = 10;
		n->dup = 10;
		n->jitter = 60 * MS;
		for (int i = 0; i < 3; i++) {
			keys(n, seed & 1, steps[i]);
			run(n, 6 * SEC);
			keys(n, !(seed & 1), steps[i]);
			/* the SEEK or its ANSWER may be lost: it is tried each 5 s */
			run(n, 30 * SEC);
		}
		n->loss = n->dup = 0;
		n->jitter = 0;
		assert_never_down(n);
		run(n, SEC);
		assert_talk(n);
		net_free(n);
	}
}

/* The new key is there on one side alone, and first: the session goes on under the old one. */
static void too_early(void **state)
{
	struct net *n = net_up(1);

	(void)state;
	keys(n, A, "10");
	talk_for(n, 20 * SEC, 0);
	assert_never_down(n);
	assert_int_equal(info(n, A).key, 1);
	assert_int_equal(info(n, A).sessions, 1);
	assert_true(counter(n, B, SC_BAD_AUTH) <= 5);
	/* and the other side follows */
	keys(n, B, "01");
	talk_for(n, 12 * SEC, 0);
	assert_int_equal(info(n, A).key, 0);
	assert_int_equal(info(n, B).key, 1);
	assert_never_down(n);
	net_free(n);
}

/* Both prefer another key, whatever the other does: they do not change for ever. */
static void at_odds(void **state)
{
	struct net *n = net_up(2);
	uint64_t sessions;

	(void)state;
	keys(n, A, "01");
	keys(n, B, "10");
	run(n, 20 * SEC);
	sessions = info(n, A).sessions;
	run(n, 60 * SEC);
	assert_int_equal(info(n, A).sessions, sessions);
	assert_never_down(n);
	assert_talk(n);
	net_free(n);
}

/* Both begin at any time with two keys in either order, or one of them: they find each other. */
static void starts(void **state)
{
	static const char *const lists[] = {"01", "10", "0", "1", "20"};

	(void)state;
	for (unsigned int i = 0; i < 25 * 20; i++) {
		const char *a = lists[i % 5], *b = lists[i / 5 % 5];
		struct net *n = net_new(900 + i);

		if (!strpbrk(a, b)) {
			net_free(n);
			continue;
		}
		start(n, A);
		keys(n, A, a);
		run(n, rnd(n) % 3 ? 0 : rnd(n) % (2 * SEC));
		start(n, B);
		keys(n, B, b);
		run(n, 4 * SEC);
		if (!both_up(n))
			print_message("seed %u: keys %s and %s\n", 900 + i, a, b);
		assert_true(both_up(n));
		run(n, 12 * SEC);
		assert_never_down(n);
		assert_talk(n);
		net_free(n);
	}
}

/* A key is taken away: a session under it ends, and comes back under what is left. */
static void taken_away(void **state)
{
	struct net *n = net_up(3);

	(void)state;
	keys(n, B, "01");
	keys(n, A, "1");
	assert_int_equal(n->node[A].down, 1);
	assert_false(session_up(n->node[A].s, PEER));
	run(n, 4 * SEC);
	assert_talk(n);
	assert_int_equal(info(n, A).key, 0);
	assert_int_equal(info(n, B).key, 1);
	keys(n, A, "2");
	assert_int_equal(n->node[A].down, 2);
	run(n, 20 * SEC);
	assert_false(session_up(n->node[A].s, PEER));
	assert_false(session_up(n->node[B].s, PEER));
	assert_int_equal(info(n, A).key, -1);
	net_free(n);
}

/* All that was ever said, said again, after a roll: nothing of it has any effect. */
static void said_again(void **state)
{
	struct net *n = net_up(4);
	unsigned int reports;
	uint64_t sessions;
	size_t nlog;

	(void)state;
	keys(n, A, "01");
	keys(n, B, "01");
	keys(n, A, "10");
	talk_for(n, SEC, 0);
	keys(n, B, "10");
	talk_for(n, SEC, 0);
	reports = n->node[A].reports + n->node[B].reports;
	sessions = info(n, A).sessions + info(n, B).sessions;
	for (int round = 0; round < 2; round++) {
		nlog = n->nlog;
		for (size_t i = 0; i < nlog; i++) {
			struct datagram d = n->log[i];

			rx(n, d.to, d.data, d.len);
			rx(n, !d.to, d.data, d.len);
		}
		run(n, 12 * SEC); /* the session before is forgotten */
	}
	assert_int_equal(n->node[A].reports + n->node[B].reports, reports);
	assert_int_equal(info(n, A).sessions + info(n, B).sessions, sessions);
	assert_never_down(n);
	assert_talk(n);
	net_free(n);
}

static void wrong_calls(void **state)
{
	struct net *n = net_up(5);
	struct session *s = n->node[A].s;

	(void)state;
	assert_int_equal(session_peer_keys(s, PEER, key, 0, n->now), -EINVAL);
	assert_int_equal(session_peer_keys(s, PEER, key, 3, n->now), -EINVAL);
	assert_int_equal(session_peer_keys(s, PEER_MAX, key, 1, n->now), -EINVAL);
	assert_int_equal(session_peer_keys(s, PEER + 1, key, 1, n->now), -ENOENT);
	net_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rolled),     cmocka_unit_test(rolled_in_disorder),
		cmocka_unit_test(too_early),  cmocka_unit_test(at_odds),
		cmocka_unit_test(starts),     cmocka_unit_test(taken_away),
		cmocka_unit_test(said_again), cmocka_unit_test(wrong_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
