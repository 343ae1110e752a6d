// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reports between peers: which of them arrive, in which order, and what wins.
 */
#include "peer_net.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reports_coalesce),
		cmocka_unit_test(newest_wins),
		cmocka_unit_test(newest_wins_random),
		cmocka_unit_test(report_from_callback),
		cmocka_unit_test(not_up),
		cmocka_unit_test(disorder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
