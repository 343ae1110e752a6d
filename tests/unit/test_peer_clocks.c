// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Clocks and delays of peers, and what else a session tells.
 */
#include "peer_net.h"

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

static void configuration(void **state)
{
	struct node m = {0};
	struct session_sink sink = {&m, on_send, on_event, on_report, on_log, NULL};
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
		cmocka_unit_test(clocks),
		cmocka_unit_test(one_way_delay),
		cmocka_unit_test(configuration),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
