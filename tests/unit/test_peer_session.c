// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Peers that restart, fall silent, are cut off and leave, over all kinds of networks but hostile
 * ones.
 */
#include "peer_net.h"

static void restart_one(void **state)
{
	struct net *n = net_up(40);

	(void)state;
	for (unsigned int i = 1; i <= 10; i++) {
		start(n, B);
		/* HELLO there, answer back, confirmation there: one and a half round trips. */
		run(n, 3 * n->delay);
		assert_true(both_up(n));
		assert_int_equal(n->node[A].restarted, i);
		assert_int_equal(n->node[A].down, 0);
		assert_int_equal(n->node[B].restarted, 0);
		assert_talk(n);
		run(n, rnd(n) % (5 * SEC));
	}
	assert_int_equal(n->node[A].up, 1);
	assert_int_equal(info(n, A).restarts, 10);
	assert_true(info(n, A).boot == session_boot(n->node[B].s));

	net_free(n);
}

static bool lose_first(struct net *n, int to, const uint8_t *data, size_t len)
{
	(void)len;
	return to == B || !is_hello(data) || n->filtered > 0;
}

/* The first HELLO is lost, but heartbeats of the other side show that it has not noticed. */
static void restart_prompted(void **state)
{
	struct net *n = net_up(48);

	(void)state;
	n->filter = lose_first;
	start(n, B);
	run(n, 400 * MS); /* the next HELLO's turn would be after 500 */
	assert_int_equal(n->filtered, 1);
	assert_true(both_up(n));
	net_free(n);
}

static bool lose_answers(struct net *n, int to, const uint8_t *data, size_t len)
{
	(void)n;
	(void)len;
	return !(to == B && is_hello(data));
}

/* A claim to be the restarted peer, without proof, changes nothing. */
static void restart_needs_proof(void **state)
{
	struct net *n = net_up(41);
	struct session_info before = info(n, A), after;
	struct session *running = n->node[B].s;

	(void)state;
	/* An impostor with recorded HELLOs is covered above; here the true new process, which A's
	 * words do not reach, so that it cannot answer the challenge. The old one keeps running
	 * beside it. */
	n->filter = lose_answers;
	n->node[B].s = NULL;
	start(n, B);
	for (unsigned int i = 0; i < 8; i++) { /* nor does the old one hear A */
		struct session *new = n->node[B].s;

		run(n, 100 * MS);
		/* The old process's turn. */
		n->node[B].s = running;
		session_tick(running, n->now + n->node[B].offset);
		n->node[B].s = new;
	}
	after = info(n, A);
	assert_int_equal(after.sessions, before.sessions);
	assert_true(after.boot == before.boot);
	assert_int_equal(n->node[A].restarted + n->node[A].down, 0);
	assert_true(after.counter[SC_UNPROVEN] > before.counter[SC_UNPROVEN] + 3);

	n->filter = NULL;
	run(n, SEC);
	assert_int_equal(n->node[A].restarted, 1);
	assert_talk(n);
	session_destroy(running);
	net_free(n);
}

static void restart_both(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 50; i++) {
		struct net *n = net_up(300 + i);

		start(n, A);
		run(n, i * 3 * MS);
		start(n, B);
		run(n, SEC);
		assert_true(both_up(n));
		assert_int_equal(n->node[A].down, 0);
		assert_talk(n);
		net_free(n);
	}
}

/* What one side says while the other one has lost sight of it comes to nothing, and it has not seen
 * the other one to be away: it hears that it must say it again, and the other one hears that. */
static void lost_sight(void **state)
{
	struct net *n = net_up(43);

	(void)state;
	n->node[B].says_again = true;
	n->cut[A] = true;
	run(n, 960 * MS);
	assert_int_equal(n->node[A].down, 1);
	n->cut[A] = false;
	run(n, 600 * MS);
	assert_int_equal(n->node[A].up, 2);
	assert_int_equal(n->node[B].up, 1);
	assert_int_equal(n->node[B].down, 0);
	assert_int_equal(n->node[A].again, 0);
	assert_int_equal(n->node[B].again, 1);
	assert_int_equal(n->node[A].reports, 1);
	assert_int_equal(n->node[A].last_report.lane, 7);
	assert_talk(n);
	net_free(n);
}

static void partition(void **state)
{
	struct net *n = net_up(42);
	uint64_t t;

	(void)state;
	n->cut[A] = n->cut[B] = true;
	t = n->now;
	run(n, 840 * MS);
	assert_int_equal(n->node[A].down + n->node[B].down, 0);
	run(n, 100 * MS); /* with 20 ms on the way: within a second */
	assert_int_equal(n->node[A].down, 1);
	assert_int_equal(n->node[B].down, 1);
	assert_non_null(strstr(n->node[A].last_log, "nothing heard"));
	run_to(n, t + 60 * SEC);
	assert_int_equal(n->node[A].down + n->node[A].up, 2);

	n->cut[A] = n->cut[B] = false;
	run(n, 600 * MS);
	assert_true(both_up(n));
	assert_int_equal(n->node[A].up, 2);
	assert_int_equal(n->node[B].up, 2);
	assert_int_equal(n->node[A].restarted + n->node[B].restarted, 0);
	assert_int_equal(info(n, A).downs, 1);
	assert_talk(n);
	net_free(n);
}

/* A cut at any moment: both know within a second, whatever the distance, and once it is mended they
 * have found each other after one and a half round trips and the gap between two HELLOs. */
static void cut_is_noticed(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 60; i++) {
		struct net *n = net_new(500 + i);

		n->delay = (i % 4) * 25 * MS + MS;
		start(n, A);
		start(n, B);
		run(n, 3 * SEC + i * 7 * MS);
		assert_true(both_up(n));
		n->cut[A] = n->cut[B] = true;
		run(n, SEC + n->delay);
		assert_int_equal(n->node[A].down, 1);
		assert_int_equal(n->node[B].down, 1);
		run(n, rnd(n) % (3 * SEC));
		n->cut[A] = n->cut[B] = false;
		run(n, 110 * MS + 4 * n->delay);
		assert_int_equal(n->node[A].up, 2);
		assert_int_equal(n->node[B].up, 2);
		assert_talk(n);
		net_free(n);
	}
}

/* 30 % of all datagrams are lost, and the others come in disorder: nobody is given up. */
static void lossy_link(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		struct net *n = net_up(520 + i);

		n->loss = 30;
		n->jitter = 40 * MS;
		run(n, 600 * SEC);
		assert_int_equal(n->node[A].down + n->node[B].down, 0);
		assert_int_equal(info(n, A).sessions, 1);
		n->loss = 0;
		assert_talk(n);
		net_free(n);
	}
}

static struct datagram waiting[512];
static size_t nwaiting;

static bool waits_at_a(struct net *n, int to, const uint8_t *data, size_t len)
{
	struct datagram *d = &waiting[nwaiting];

	(void)n;
	if (to != A || nwaiting == sizeof(waiting) / sizeof(waiting[0]))
		return to != A;
	d->len = len;
	memcpy(d->data, data, len);
	nwaiting++;
	return false;
}

/* One stands still for longer than its peer waits, and goes on: it has noticed nothing, reads what
 * came meanwhile, and both go on with new keys. */
static void stands_still(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 20; i++) {
		struct net *n = net_up(540 + i);
		struct session *s = n->node[A].s;

		n->node[A].s = NULL;
		n->filter = waits_at_a;
		nwaiting = 0;
		run(n, 950 * MS + i * 100 * MS);
		assert_int_equal(n->node[B].down, 1);
		n->node[A].s = s;
		n->filter = NULL;
		for (size_t w = 0; w < nwaiting; w++)
			rx(n, A, waiting[w].data, waiting[w].len);
		run(n, 100 * MS + 4 * n->delay);
		assert_int_equal(n->node[A].down, 0);
		assert_int_equal(n->node[A].up, 1);
		assert_int_equal(n->node[B].up, 2);
		assert_int_equal(n->node[A].restarted + n->node[B].restarted, 0);
		assert_talk(n);
		net_free(n);
	}
}

/* Short breaks are no event, whatever was lost in them. */
static void short_break(void **state)
{
	struct net *n = net_up(43);

	(void)state;
	for (unsigned int i = 0; i < 20; i++) {
		n->cut[i & 1] = true;
		run(n, 500 * MS + i * 18 * MS);
		n->cut[i & 1] = false;
		run(n, 600 * MS);
	}
	assert_int_equal(n->node[A].down + n->node[B].down, 0);
	assert_int_equal(info(n, A).sessions, 1);
	assert_talk(n);
	net_free(n);
}

/* One direction breaks: one side goes down first and comes back first. */
static void one_way(void **state)
{
	struct net *n = net_up(44);

	(void)state;
	n->cut[B] = true;
	run(n, 960 * MS); /* B has heard nothing; A still has what B said until just now */
	assert_int_equal(n->node[B].down, 1);
	assert_int_equal(n->node[A].down, 0);
	n->cut[B] = false;
	run(n, SEC);
	assert_talk(n);
	assert_int_equal(n->node[A].down, 0); /* new keys, and nothing that operators should know */
	assert_int_equal(n->node[A].up, 1);
	assert_int_equal(info(n, A).sessions, 2);

	n->cut[B] = true;
	run(n, 60 * SEC);
	assert_int_equal(n->node[B].down, 2);
	assert_int_equal(n->node[A].down,
			 1); /* no flapping, although B's HELLOs arrive all the time */
	n->cut[B] = false;
	run(n, SEC);
	assert_talk(n);
	net_free(n);
}

static void goodbye(void **state)
{
	struct net *n = net_up(45);
	struct report r = progress(1, 9, 0);
	size_t sent, before;

	(void)state;
	run(n, 100 * MS);
	assert_int_equal(report(n, A, &r), 0); /* queued when the end comes: still said */
	session_bye(n->node[A].s, BYE_SHUTDOWN);
	before = n->nlog;
	assert_int_equal(session_deadline(n->node[A].s), UINT64_MAX);
	assert_int_equal(report(n, A, &r), -ENOTCONN);
	run(n, n->delay);
	assert_int_equal(n->node[B].down, 1);
	assert_int_equal(n->node[B].reports, 1);
	assert_non_null(strstr(n->node[B].last_log, "goodbye"));
	run(n, 400 * MS);
	for (size_t i = before; i < n->nlog; i++) /* no calling after one who is just leaving */
		assert_false(is_hello(n->log[i].data));
	sent = info(n, A).tx_datagrams;
	run(n, 5 * SEC);
	assert_int_equal(info(n, A).tx_datagrams, sent); /* whatever B says */
	assert_int_equal(info(n, A).state, SESSION_CLOSED);
	assert_int_equal(n->node[A].down, 0);

	start(n, A);
	run(n, SEC);
	assert_int_equal(n->node[B].restarted, 1);
	assert_talk(n);

	session_peer_remove(n->node[B].s, PEER);
	run(n, SEC);
	assert_int_equal(n->node[A].down, 1);
	assert_non_null(strstr(n->node[A].last_log, "configuration"));
	assert_false(session_up(n->node[B].s, PEER));
	assert_int_equal(session_peer_add(n->node[B].s, PEER, "a", psk, n->now + n->node[B].offset),
			 0);
	n->node[B].seen_up = false;
	run(n, SEC);
	assert_talk(n);
	net_free(n);
}

static void told_anew(void **state)
{
	struct net *n = net_up(46);
	static struct prefix many[40];
	struct session_local l = {.name = "alpha", .window = 7, .prefix = many, .nprefix = 2};

	(void)state;
	many[0] = (struct prefix){.addr = {{0xfd, 1, [15] = 3}}, .len = 9};
	assert_int_equal(session_local(n->node[A].s, &l, n->now + n->node[A].offset), 0);
	flush(n, A);
	run(n, 50 * MS);
	assert_int_equal(info(n, B).window, 7);
	assert_int_equal(info(n, B).nprefix, 2);
	assert_int_equal(info(n, B).prefix[0].addr.b[0], 0xfd);
	assert_int_equal(info(n, B).prefix[0].addr.b[1], 0); /* bit 10 on are no part of a /9 */

	/* Lost: said again within seconds. */
	n->cut[B] = true;
	l.nprefix = 40;
	assert_int_equal(session_local(n->node[A].s, &l, n->now + n->node[A].offset), 0);
	flush(n, A);
	n->cut[B] = false;
	run(n, 6 * SEC);
	assert_int_equal(info(n, B).nprefix, PROTO_PREFIXES);
	assert_true(info(n, B).more);

	l.name = "not a name";
	assert_int_equal(session_local(n->node[A].s, &l, n->now), -EINVAL);
	net_free(n);
}

/* What one tells of its ports and rules is known at the other soon, and again after a loss. */
static void told_of_site(void **state)
{
	struct net *n = net_up(47);
	struct proto_site site = {.mtu = {4300, 1500},
				  .longest = 4156,
				  .nwanted = 1,
				  .wanted = {{.addr = {{0xfd, 1, [15] = 3}}, .len = 9}}};

	(void)state;
	run(n, SEC);
	session_site(n->node[A].s, PEER, &site);
	flush(n, A);
	run(n, 50 * MS);
	assert_true(info(n, B).site_known);
	assert_int_equal(info(n, B).site.mtu[1], 1500);
	assert_int_equal(info(n, B).site.longest, 4156);
	assert_int_equal(info(n, B).site.wanted[0].addr.b[1], 0);
	n->cut[B] = true;
	site.down[0] = true;
	session_site(n->node[A].s, PEER, &site);
	flush(n, A);
	n->cut[B] = false;
	run(n, 6 * SEC);
	assert_true(info(n, B).site.down[0]);
	assert_int_equal(info(n, B).counter[SC_MALFORMED], 0);
	net_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(restart_one),
		cmocka_unit_test(restart_prompted),
		cmocka_unit_test(restart_needs_proof),
		cmocka_unit_test(restart_both),
		cmocka_unit_test(lost_sight),
		cmocka_unit_test(partition),
		cmocka_unit_test(cut_is_noticed),
		cmocka_unit_test(lossy_link),
		cmocka_unit_test(stands_still),
		cmocka_unit_test(short_break),
		cmocka_unit_test(one_way),
		cmocka_unit_test(goodbye),
		cmocka_unit_test(told_anew),
		cmocka_unit_test(told_of_site),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
