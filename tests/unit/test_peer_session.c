// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Peers that come up, talk, fall silent, restart and leave, over all kinds of networks but hostile
 * ones.
 */
#include "peer_net.h"

/* ---- coming up ---- */

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
	net_free(n);

	/* The version is authenticated: changed back, it is not what was sealed. */
	n = net_up(6);
	for (size_t i = 0; i < n->nlog; i++)
		assert_int_equal(n->log[i].data[2], PROTO_VERSION);
	net_free(n);
}

/* ---- reports ---- */

static void reports_coalesce(void **state)
{
	struct net *n = net_up(10);
	uint64_t before = info(n, A).tx_datagrams;
	size_t first = n->nlog;

	(void)state;
	for (uint32_t lane = 0; lane < 500; lane++) {
		struct report r = progress(lane, 1, lane % 7);

		assert_int_equal(report(n, A, &r), 0);
	}
	flush(n, A);
	flush(n, A); /* nothing more to say */
	/* 500 * 37 bytes and 18 a cycle of holes: at least 18, and no waste beyond the last bit of
	 * each. */
	assert_in_range(info(n, A).tx_datagrams - before, 18, 22);
	for (size_t i = first; i + 1 < n->nlog; i++)
		assert_in_range(n->log[i].len, 1400 - 73, 1400);
	run(n, 100 * MS);
	assert_int_equal(n->node[B].reports, 500);
	assert_int_equal(n->node[B].last_report.lane, 499);
	assert_int_equal(info(n, A).tx_reports, 500);
	assert_int_equal(info(n, B).rx_reports, 500);
	net_free(n);
}

static void newest_wins(void **state)
{
	struct net *n = net_up(11);
	struct report r, other = progress(2, 77, 3), gen = progress(1, 5, 0);

	(void)state;
	/* Shorter, longer and as long as the one before; others around it stay whole. */
	for (uint32_t seq = 1; seq <= 50; seq++) {
		r = progress(1, seq, seq % 5);
		assert_int_equal(report(n, A, &r), 0);
		if (seq == 20) {
			gen.gen = 2;
			assert_int_equal(report(n, A, &other), 0);
			assert_int_equal(report(n, A, &gen), 0);
		}
	}
	flush(n, A);
	run(n, 100 * MS);
	assert_int_equal(n->node[B].reports, 3);
	assert_int_equal(n->node[B].last_report.seq, 50);
	assert_int_equal(counter(n, A, SC_SUPERSEDED), 49);
	assert_int_equal(counter(n, B, SC_MALFORMED), 0);
	assert_int_equal(info(n, A).tx_reports, 3);

	/* One that is sent already is not touched, and one that cannot be said replaces nothing. */
	n->node[B].reports = 0;
	r = progress(1, 51, 0);
	assert_int_equal(report(n, A, &r), 0);
	r.cum = 0xffffffff;
	assert_int_equal(report(n, A, &r), -EINVAL);
	flush(n, A);
	r = progress(1, 52, 0);
	assert_int_equal(report(n, A, &r), 0);
	flush(n, A);
	run(n, 100 * MS);
	assert_int_equal(n->node[B].reports, 2);
	assert_int_equal(counter(n, A, SC_BAD_REPORT), 1);
	net_free(n);
}

/* Superseding at random keeps every lane's newest, and nothing is damaged. */
static void newest_wins_random(void **state)
{
	struct net *n = net_up(12);

	(void)state;
	for (unsigned int round = 0; round < 200; round++) {
		unsigned int before = n->node[B].reports, sent = 0;
		uint64_t superseded = counter(n, A, SC_SUPERSEDED);

		for (unsigned int i = rnd(n) % 80; i; i--) {
			struct report r = progress(rnd(n) % 8, round * 100 + i, rnd(n) % 9);

			assert_int_equal(report(n, A, &r), 0);
			sent++;
		}
		flush(n, A);
		run(n, 50 * MS);
		assert_int_equal(n->node[B].reports - before,
				 sent - (counter(n, A, SC_SUPERSEDED) - superseded));
		assert_int_equal(counter(n, B, SC_MALFORMED), 0);
	}
	net_free(n);
}

static void report_from_callback(void **state)
{
	struct net *n = net_up(13);

	(void)state;
	n->node[B].echo_reports = true;
	for (uint32_t lane = 0; lane < 1000; lane++) {
		struct report r = progress(lane, 1, 0);

		assert_int_equal(report(n, A, &r), 0);
	}
	flush(n, A);
	run(n, 100 * MS);
	assert_int_equal(n->node[B].reports, 1000);
	assert_int_equal(n->node[A].reports, 1000);
	assert_int_equal(n->node[A].last_report.type, REPORT_ACCEPT);
	net_free(n);
}

static void not_up(void **state)
{
	struct net *n = net_new(14);
	struct report r = progress(1, 1, 0);

	(void)state;
	start(n, A);
	assert_int_equal(report(n, A, &r), -ENOTCONN);
	assert_int_equal(session_report(n->node[A].s, PEER_MAX, &r), -ENOTCONN);
	assert_int_equal(session_report(n->node[A].s, 0, &r), -ENOTCONN);
	run(n, SEC);
	for (size_t i = 0; i < n->nlog; i++)
		assert_true(is_hello(n->log[i].data));
	assert_int_equal(counter(n, A, SC_NOT_UP), 1);
	net_free(n);
}

/* Lost, reordered, doubled datagrams: what was sent arrives at most once. */
static void disorder(void **state)
{
	struct net *n = net_up(15);
	static uint8_t seen[20000];
	unsigned int last = 0;

	(void)state;
	memset(seen, 0, sizeof(seen));
	n->loss = 10;
	n->dup = 50;
	n->jitter = 200 * MS;
	for (uint32_t i = 0; i < sizeof(seen); i++) {
		struct report r = progress(i, i, 0);

		if (report(n, A, &r) == 0) {
			flush(n, A);
			last++;
		}
		run(n, MS);
		assert_true(n->node[B].reports <= last);
	}
	n->loss = 0;
	run(n, SEC);
	assert_int_equal(last, sizeof(seen));
	assert_in_range(n->node[B].reports, last * 85 / 100, last * 95 / 100);
	assert_true(counter(n, B, SC_REPLAYED) > last / 3);
	assert_int_equal(counter(n, B, SC_TOO_OLD),
			 0); /* 200 ms are 200 datagrams, well in the window */
	assert_int_equal(n->node[A].down + n->node[B].down, 0);
	net_free(n);
}

/* ---- restarts, partitions, goodbyes ---- */

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
	assert_int_equal(n->node[A].down,
			 0); /* new keys, and nothing that its engine should know */
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

/* ---- clocks and delays ---- */

static void clocks(void **state)
{
	static const uint64_t offsets[] = {0, 1, UINT64_MAX / 2, 1ull << 62};

	(void)state;
	for (unsigned int i = 0; i < 4; i++)
		for (unsigned int j = 0; j < 4; j++) {
			struct net *n = net_new(400 + i * 4 + j);

			n->now = i ? 1 : 10 * SEC; /* a clock that starts at nothing, too */
			n->node[A].offset = offsets[i];
			n->node[B].offset = offsets[j];
			n->jitter = 10 * MS;
			start(n, A);
			start(n, B);
			run(n, 20 * SEC);
			assert_true(both_up(n));
			assert_true(info(n, A).srtt_ns > 40 * MS && info(n, A).srtt_ns < 60 * MS);
			assert_true(info(n, A).rtt_min_ns >= 40 * MS &&
				    info(n, A).rtt_min_ns < 50 * MS);
			assert_true(info(n, B).jitter_ns > MS && info(n, B).jitter_ns < 8 * MS);
			assert_true(info(n, B).owd_above_ns < 10 * MS);
			net_free(n);
		}
}

/* A queue builds up in one direction only: one side sees it in its one-way delay. */
static bool slow_to_b(struct net *n, int to, const uint8_t *data, size_t len)
{
	struct datagram d = {.to = to, .len = len};

	if (to != B)
		return true;
	memcpy(d.data, data, len);
	n->delay += 30 * MS;
	enqueue(n, &d);
	n->delay -= 30 * MS;
	return false;
}

static void one_way_delay(void **state)
{
	struct net *n = net_up(47);

	(void)state;
	run(n, 10 * SEC);
	assert_true(info(n, B).owd_above_ns == 0);
	n->filter = slow_to_b;
	run(n, 5 * SEC);
	assert_true(info(n, B).owd_above_ns == 30 * MS);
	assert_true(info(n, A).owd_above_ns == 0);
	assert_true(info(n, A).rtt_ns == 70 * MS && info(n, A).rtt_min_ns == 40 * MS);
	run(n, 60 * SEC); /* the reference forgets */
	assert_true(info(n, B).owd_above_ns == 0);
	net_free(n);
}

/* ---- the rest ---- */

static void configuration(void **state)
{
	struct node m = {0};
	struct session_sink sink = {&m, on_send, on_event, on_report, on_log};
	struct session_config cfg = {.local = {.name = "x"}};
	struct session_info i;
	struct session *s;

	(void)state;
	cfg.datagram_max = SESSION_DATAGRAM_MIN - 1;
	assert_null(session_create(&cfg, &sink, 0));
	assert_int_equal(errno, EINVAL);
	cfg.datagram_max = SESSION_DATAGRAM_MAX + 1;
	assert_null(session_create(&cfg, &sink, 0));
	cfg.datagram_max = 0;
	cfg.local.name = "";
	assert_null(session_create(&cfg, &sink, 0));
	cfg.local.name = NULL;
	assert_null(session_create(&cfg, &sink, 0));
	cfg.local.name = "x";
	s = session_create(&cfg, &sink, 0);
	assert_non_null(s);
	assert_true(session_boot(s) != 0);
	assert_int_equal(session_deadline(s), UINT64_MAX);
	assert_int_equal(session_peer_add(s, PEER_MAX, "p", psk, 0), -EINVAL);
	assert_int_equal(session_peer_add(s, 0, "", psk, 0), -EINVAL);
	assert_int_equal(session_peer_add(s, 0, "p", psk, 0), 0);
	assert_int_equal(session_peer_add(s, 0, "p", psk, 0), -EEXIST);
	assert_false(session_info(s, 1, 0, &i));
	assert_false(session_info(s, PEER_MAX, 0, &i));
	assert_true(session_info(s, 0, 0, &i));
	assert_false(i.heard || i.known);
	session_peer_remove(s, 0);
	session_peer_remove(s, PEER_MAX);
	assert_false(session_info(s, 0, 0, &i));
	session_destroy(s);
	session_destroy(NULL);

	cfg.boot = 42;
	s = session_create(&cfg, &sink, 0);
	assert_true(session_boot(s) == 42);
	session_destroy(s);
}

static void names(void **state)
{
	(void)state;
	for (unsigned int c = 0; c < SC_COUNT; c++) {
		assert_true(strlen(session_counter_name(c)) > 2);
		assert_true(strlen(session_counter_help(c)) > 10);
		for (unsigned int d = 0; d < c; d++)
			assert_string_not_equal(session_counter_name(c), session_counter_name(d));
	}
	for (unsigned int st = 0; st < SESSION_STATES; st++)
		assert_true(strlen(session_state_name(st)) > 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(comes_up),
		cmocka_unit_test(late_start),
		cmocka_unit_test(lossy_start),
		cmocka_unit_test(slow_start),
		cmocka_unit_test(lost_confirm),
		cmocka_unit_test(wrong_key),
		cmocka_unit_test(wrong_version),
		cmocka_unit_test(reports_coalesce),
		cmocka_unit_test(newest_wins),
		cmocka_unit_test(newest_wins_random),
		cmocka_unit_test(report_from_callback),
		cmocka_unit_test(not_up),
		cmocka_unit_test(disorder),
		cmocka_unit_test(restart_one),
		cmocka_unit_test(restart_prompted),
		cmocka_unit_test(restart_needs_proof),
		cmocka_unit_test(restart_both),
		cmocka_unit_test(partition),
		cmocka_unit_test(cut_is_noticed),
		cmocka_unit_test(lossy_link),
		cmocka_unit_test(stands_still),
		cmocka_unit_test(short_break),
		cmocka_unit_test(one_way),
		cmocka_unit_test(goodbye),
		cmocka_unit_test(told_anew),
		cmocka_unit_test(clocks),
		cmocka_unit_test(one_way_delay),
		cmocka_unit_test(configuration),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
