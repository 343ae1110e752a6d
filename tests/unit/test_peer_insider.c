// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a peer that has the key and talks nonsense can do to a session; the rules of the handshake
 * and of the keys, one by one.
 */
#include "peer_net.h"

/* ---- one who knows the key, and talks nonsense ---- */

struct hand {
	struct net *n;
	struct seal_psk psk;
	struct seal_session keys;
	uint8_t salt[PROTO_SALT];
	uint64_t boot;
};

static void hand_hello(struct hand *h, const uint8_t *echo, bool seek, bool established)
{
	uint8_t buf[SESSION_DATAGRAM_MAX], nonce[24] = {1};
	struct proto_challenge c = {.seek = seek, .established = established};
	struct proto_hello hello = {.version = 1, .boot = h->boot, .name = "hand"};
	int len;

	memcpy(c.salt, h->salt, PROTO_SALT);
	if (echo)
		memcpy(c.echo, echo, PROTO_SALT);
	len = proto_put_challenge(buf + SEAL_HELLO_HDR, 500, &c);
	len += proto_put_hello(buf + SEAL_HELLO_HDR + len, 500, &hello);
	rx(h->n, A, buf, seal_hello(&h->psk, buf, (size_t)len, nonce));
}

/* B is the test itself; A is up with it afterwards. */
static void hand_up(struct hand *h, struct net *n, uint8_t salt)
{
	struct proto_challenge c;

	h->n = n;
	h->boot = 4711;
	memset(h->salt, salt, sizeof(h->salt));
	seal_psk_init(&h->psk, psk);
	start(n, A);
	run(n, 100 * MS);
	hand_hello(h, NULL, true, false);
	assert_true(opens_with(n->log[n->nlog - 1].data, n->log[n->nlog - 1].len, psk, &c));
	assert_memory_equal(c.echo, h->salt, PROTO_SALT);
	hand_hello(h, c.salt, true, false);
	assert_true(session_up(n->node[A].s, PEER));
	assert_int_equal(seal_session_init(&h->keys, &h->psk, h->salt, c.salt), 0);
}

static void hand_data(struct hand *h, const uint8_t *messages, size_t len)
{
	uint8_t buf[SESSION_DATAGRAM_MAX];

	if (len)
		memcpy(buf + SEAL_DATA_HDR, messages, len);
	rx(h->n, A, buf, seal_data(&h->keys, buf, len));
}

static void nonsense(void **state)
{
	struct net *n = net_new(30);
	struct hand h = {0};
	struct proto_hello hello = {.version = 1, .boot = 4711, .name = "renamed", .window = 5};
	struct proto_challenge challenge = {.seek = true};
	struct report ok = {.type = REPORT_ACCEPT, .lane = 1, .gen = 1};
	uint8_t m[1000];
	int len;

	(void)state;
	hand_up(&h, n, 0x11);
	assert_string_equal(info(n, A).node, "hand");

	/* Malformed, unknown, good: each on its own. */
	memcpy(m, "\x04\x00\x00\x01\x00\xf0\x00\x00\x00", 9);
	len = 9 + proto_put_report(m + 9, 100, &ok);
	hand_data(&h, m, (size_t)len);
	assert_int_equal(n->node[A].reports, 1);
	assert_int_equal(counter(n, A, SC_MALFORMED), 1);
	assert_int_equal(counter(n, A, SC_UNKNOWN_TYPE), 1);

	/* A length that runs out ends the datagram, what stood before it counts. */
	len = proto_put_report(m, 100, &ok);
	memcpy(m + len, "\x11\x00\x00\x09", 4);
	hand_data(&h, m, (size_t)len + 4);
	assert_int_equal(n->node[A].reports, 2);
	assert_int_equal(counter(n, A, SC_MALFORMED), 2);
	hand_data(&h, m, 0); /* nothing at all: a sign of life */
	assert_int_equal(counter(n, A, SC_MALFORMED), 2);

	/* A challenge is no part of a session; nor does a session change its boot epoch. */
	len = proto_put_challenge(m, 100, &challenge);
	hand_data(&h, m, (size_t)len);
	assert_int_equal(counter(n, A, SC_MISPLACED), 1);
	hello.boot = 4712;
	len = proto_put_hello(m, 100, &hello);
	hand_data(&h, m, (size_t)len);
	assert_int_equal(counter(n, A, SC_MISPLACED), 2);
	assert_string_equal(info(n, A).node, "hand");
	hello.boot = 4711;
	len = proto_put_hello(m, 100, &hello);
	hand_data(&h, m, (size_t)len);
	assert_string_equal(info(n, A).node, "renamed");
	strcpy(hello.name, "later");
	len = proto_put_hello(m, 100, &hello);
	h.keys.tx_seq += 2;
	hand_data(&h, m, (size_t)len);
	strcpy(hello.name, "overtaken");
	len = proto_put_hello(m, 100, &hello);
	h.keys.tx_seq -= 2;
	hand_data(&h, m, (size_t)len);
	assert_string_equal(info(n, A).node, "later");

	/* Sequence numbers: a jump, the window's edge, zero. */
	len = proto_put_report(m, 100, &ok);
	h.keys.tx_seq = 100000;
	hand_data(&h, m, (size_t)len);
	h.keys.tx_seq = 100001 - REPLAY_WINDOW; /* the oldest that is still taken */
	hand_data(&h, m, (size_t)len);
	assert_int_equal(n->node[A].reports, 4);
	h.keys.tx_seq = 100000 - REPLAY_WINDOW;
	hand_data(&h, m, (size_t)len);
	assert_int_equal(counter(n, A, SC_TOO_OLD), 1);
	h.keys.tx_seq = UINT64_MAX; /* becomes 0 */
	hand_data(&h, m, (size_t)len);
	assert_int_equal(counter(n, A, SC_TOO_OLD), 2);
	h.keys.tx_seq = UINT64_MAX - 1;
	hand_data(&h, m, (size_t)len);
	assert_int_equal(n->node[A].reports, 5);
	net_free(n);
}

/* Time stamps of a liar: nothing but odd numbers comes of them. */
static void lying_heartbeats(void **state)
{
	static const uint64_t odd[] = {0, 1, UINT64_MAX, 1ull << 63, (1ull << 63) - 1};
	struct net *n = net_new(31);
	struct hand h = {0};
	uint8_t m[64];

	(void)state;
	hand_up(&h, n, 0x22);
	for (unsigned int i = 0; i < 5; i++)
		for (unsigned int j = 0; j < 6; j++)
			for (unsigned int k = 0; k < 3; k++) {
				uint64_t now = n->now + n->node[A].offset;
				struct proto_heartbeat b = {.sent = odd[i],
							    .echo = j < 5 ? odd[j] : now + 1,
							    .held_us = k ? UINT32_MAX - k : 0};

				hand_data(&h, m, (size_t)proto_put_heartbeat(m, sizeof(m), &b));
				run(n, MS);
			}
	assert_int_equal(info(n, A).rtt_samples, 0);

	/* An honest one counts: sent 50 ms ago, held for 20. */
	struct proto_heartbeat b = {
		.sent = 9, .echo = n->now + n->node[A].offset - 50 * MS, .held_us = 20000};

	hand_data(&h, m, (size_t)proto_put_heartbeat(m, sizeof(m), &b));
	assert_int_equal(info(n, A).rtt_samples, 1);
	assert_true(info(n, A).rtt_ns == 30 * MS);

	/* Held longer than it can have been; overtaken by a newer one. */
	b.held_us = 60000;
	hand_data(&h, m, (size_t)proto_put_heartbeat(m, sizeof(m), &b));
	assert_int_equal(info(n, A).rtt_samples, 1);
	b.held_us = 0;
	h.keys.tx_seq += 2;
	hand_data(&h, m, (size_t)proto_put_heartbeat(m, sizeof(m), &b));
	assert_int_equal(info(n, A).rtt_samples, 2);
	h.keys.tx_seq -= 2;
	hand_data(&h, m, (size_t)proto_put_heartbeat(m, sizeof(m), &b));
	assert_int_equal(info(n, A).rtt_samples, 2);
	net_free(n);
}

/* A salt of ours makes one session only, even for one who repeats his own. */
static void salt_is_used_once(void **state)
{
	struct net *n = net_new(32);
	struct hand h = {0};
	struct proto_challenge first, c;
	uint64_t sessions;
	size_t at;

	(void)state;
	hand_up(&h, n, 0x33);
	for (at = n->nlog; at-- > 0;)
		if (opens_with(n->log[at].data, n->log[at].len, psk, &first) && first.established)
			break;
	sessions = info(n, A).sessions;

	/* The proof of this very session, again: it is told that we know. */
	hand_hello(&h, first.salt, true, false);
	assert_int_equal(info(n, A).sessions, sessions);
	assert_true(opens_with(n->log[n->nlog - 1].data, n->log[n->nlog - 1].len, psk, &c));
	assert_true(c.established);
	assert_memory_equal(c.salt, first.salt, PROTO_SALT);
	assert_memory_equal(c.echo, h.salt, PROTO_SALT);
	/* Another salt of ours in between, then back to the first pair. */
	memset(h.salt, 0x34, sizeof(h.salt));
	hand_hello(&h, NULL, true, false);
	assert_true(opens_with(n->log[n->nlog - 1].data, n->log[n->nlog - 1].len, psk, &c));
	assert_memory_not_equal(c.salt, first.salt, PROTO_SALT);
	assert_false(c.established || c.seek);
	hand_hello(&h, c.salt, false, true);
	assert_int_equal(info(n, A).sessions, sessions + 1);
	memset(h.salt, 0x33, sizeof(h.salt));
	hand_hello(&h, first.salt, false, true);
	hand_hello(&h, first.salt, true, false);
	hand_hello(&h, c.salt, false, true);
	assert_int_equal(info(n, A).sessions, sessions + 1);
	net_free(n);
}

/* Both sides had proof, of different pairs of salts: who sees it seeks, and the other one answers.
 * */
static void other_session(void **state)
{
	struct net *n = net_new(39);
	struct hand h = {0};
	struct proto_challenge c;
	uint8_t lost[PROTO_SALT] = {1, 2, 3};
	size_t sent;

	(void)state;
	hand_up(&h, n, 0x7b);
	hand_hello(&h, lost, false, true); /* our salt, but not the one that is in its session */
	assert_true(opens_with(n->log[n->nlog - 1].data, n->log[n->nlog - 1].len, psk, &c));
	assert_true(c.seek && !c.established);
	assert_memory_equal(c.echo, h.salt, PROTO_SALT);
	h.salt[0]++;
	hand_hello(&h, c.salt, false, false);
	assert_int_equal(info(n, A).sessions, 2);
	assert_int_equal(n->node[A].down, 0);

	/* Once the session is confirmed, such words are old ones. */
	assert_true(opens_with(n->log[n->nlog - 2].data, n->log[n->nlog - 2].len, psk, &c));
	assert_true(c.established);
	assert_int_equal(seal_session_init(&h.keys, &h.psk, h.salt, c.salt), 0);
	hand_data(&h, NULL, 0);
	sent = n->nlog;
	hand_hello(&h, lost, false, true);
	assert_int_equal(n->nlog, sent);
	net_free(n);
}

/* An answer that the network held back for long is worth nothing. */
static void old_answer(void **state)
{
	struct net *n = net_new(33);
	struct hand h = {.n = n, .boot = 1};
	struct proto_challenge c;

	(void)state;
	seal_psk_init(&h.psk, psk);
	memset(h.salt, 0x44, sizeof(h.salt));
	start(n, A);
	run(n, MS);
	assert_true(opens_with(n->log[0].data, n->log[0].len, psk, &c));
	run(n, 30 * SEC);
	hand_hello(&h, c.salt, false, false);
	assert_false(session_up(n->node[A].s, PEER));
	assert_int_equal(counter(n, A, SC_UNPROVEN), 1);
	net_free(n);
}

/* Nor is it while we are up, and nobody asks for a new salt. */
static void old_answer_while_up(void **state)
{
	struct net *n = net_new(35);
	struct hand h = {0};
	struct proto_challenge c;

	(void)state;
	hand_up(&h, n, 0x66);
	memset(h.salt, 0x67, sizeof(h.salt));
	hand_hello(&h, NULL, true, false);
	assert_true(opens_with(n->log[n->nlog - 1].data, n->log[n->nlog - 1].len, psk, &c));
	for (unsigned int i = 0; i < 30; i++) {
		run(n, SEC);
		hand_data(&h, NULL, 0);
	}
	assert_int_equal(n->node[A].down, 0);
	hand_hello(&h, c.salt, false, true);
	assert_int_equal(info(n, A).sessions, 1);
	net_free(n);
}

/* One of an older version beats each 250 ms, and is not given up before it has missed a dozen. */
static void beats_seldom(void **state)
{
	struct net *n = net_new(39);
	struct hand h = {0};

	(void)state;
	hand_up(&h, n, 0x70);
	for (unsigned int i = 0; i < 10; i++) {
		hand_data(&h, NULL, 0);
		run(n, 2900 * MS);
		assert_int_equal(n->node[A].down, 0);
	}
	run(n, 200 * MS);
	assert_int_equal(n->node[A].down, 1);
	net_free(n);
}

/* One who gives our own salt as his would make both directions one. */
static void stolen_salt(void **state)
{
	struct net *n = net_new(36);
	struct hand h = {0};
	struct proto_challenge c;

	(void)state;
	hand_up(&h, n, 0x77);
	memset(h.salt, 0x78, sizeof(h.salt));
	hand_hello(&h, NULL, true, false);
	assert_true(opens_with(n->log[n->nlog - 1].data, n->log[n->nlog - 1].len, psk, &c));
	memcpy(h.salt, c.salt, PROTO_SALT);
	hand_hello(&h, c.salt, true, false);
	assert_int_equal(info(n, A).sessions, 1);
	assert_int_equal(counter(n, A, SC_REFLECTED), 1);
	assert_true(session_up(n->node[A].s, PEER));
	net_free(n);
}

/* A session that is over leaves no key behind that anybody could know. */
static void no_zero_key(void **state)
{
	struct net *n = net_new(37);
	struct hand h = {0};
	struct report ok = {.type = REPORT_ACCEPT, .lane = 1, .gen = 1};
	uint8_t m[100];
	int len = proto_put_report(m, sizeof(m), &ok);

	(void)state;
	h.n = n;
	start(n, A);
	hand_data(&h, m, (size_t)len); /* never up; keys all zero */
	hand_up(&h, n, 0x79);
	run(n, 4 * SEC);
	assert_int_equal(n->node[A].down, 1);
	hand_data(&h, m, (size_t)len); /* with the keys of the session that was */
	memset(&h.keys, 0, sizeof(h.keys));
	h.keys.tx_seq = 1000;
	hand_data(&h, m, (size_t)len);
	assert_int_equal(n->node[A].reports, 0);
	assert_false(session_up(n->node[A].s, PEER));
	assert_true(counter(n, A, SC_NO_SESSION) >= 2);
	net_free(n);
}

/* What was queued for the process before is not told to the one after. */
static void queue_dies_with_the_peer(void **state)
{
	struct net *n = net_new(38);
	struct hand h = {0};
	struct report r = progress(1, 1, 0);
	struct proto_challenge c;
	size_t heartbeat;

	(void)state;
	hand_up(&h, n, 0x7a);
	heartbeat = n->log[n->nlog - 1].len;
	h.boot++;
	h.salt[0]++;
	hand_hello(&h, NULL, true, false);
	assert_true(opens_with(n->log[n->nlog - 1].data, n->log[n->nlog - 1].len, psk, &c));
	n->no_flush = true;
	assert_int_equal(report(n, A, &r), 0);
	hand_hello(&h, c.salt, false, true);
	assert_int_equal(n->node[A].restarted, 1);
	assert_int_equal(n->log[n->nlog - 1].len, heartbeat);
	/* But the same process with new keys gets it. */
	assert_int_equal(report(n, A, &r), 0);
	h.salt[0]++;
	hand_hello(&h, NULL, true, false);
	assert_true(opens_with(n->log[n->nlog - 1].data, n->log[n->nlog - 1].len, psk, &c));
	hand_hello(&h, c.salt, false, true);
	assert_int_equal(info(n, A).sessions, 3);
	assert_true(n->log[n->nlog - 1].len > heartbeat);
	net_free(n);
}

/* Two directions, two keys, two ids; the same pairs from both sides; other salts or key, other
 * everything. */
static void keys(void **state)
{
	static const uint8_t other_psk[PEER_KEY_LEN] = {9};
	uint8_t x[PROTO_SALT] = {1}, y[PROTO_SALT] = {2}, z[PROTO_SALT] = {3};
	struct seal_session a, b, c;
	struct seal_psk k, l;

	(void)state;
	seal_psk_init(&k, psk);
	seal_psk_init(&l, other_psk);
	assert_memory_not_equal(k.hello, k.root, SEAL_KEY);
	assert_memory_not_equal(k.hello, l.hello, SEAL_KEY);
	assert_memory_not_equal(k.root, psk, SEAL_KEY);
	memset(&a, 0xff, sizeof(a));
	assert_int_equal(seal_session_init(&a, &k, x, y), 0);
	assert_int_equal(seal_session_init(&b, &k, y, x), 0);
	assert_int_equal(seal_session_init(&c, &k, x, x), -EINVAL);
	assert_true(a.tx_seq == 0);
	assert_memory_equal(a.tx_key, b.rx_key, SEAL_KEY);
	assert_memory_equal(a.rx_key, b.tx_key, SEAL_KEY);
	assert_memory_equal(a.tx_id, b.rx_id, SEAL_ID);
	assert_memory_equal(a.rx_id, b.tx_id, SEAL_ID);
	assert_memory_not_equal(a.tx_key, a.rx_key, SEAL_KEY);
	assert_memory_not_equal(a.tx_id, a.rx_id, SEAL_ID);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(
			seal_session_init(&c, i == 2 ? &l : &k, i == 0 ? z : x, i == 1 ? z : y), 0);
		assert_memory_not_equal(a.tx_key, c.tx_key, SEAL_KEY);
		assert_memory_not_equal(a.rx_key, c.rx_key, SEAL_KEY);
		assert_memory_not_equal(a.tx_id, c.tx_id, SEAL_ID);
	}
}

/* A flood of questions is answered within bounds, and one with proof gets through. */
static void flood(void **state)
{
	struct net *n = net_new(34);
	struct hand h = {0};
	struct proto_challenge c;
	size_t before, sent;

	(void)state;
	hand_up(&h, n, 0x55);
	run(n, SEC);
	before = n->nlog;
	for (unsigned int i = 0; i < 10000; i++) {
		memset(h.salt, 0, sizeof(h.salt));
		put_be32(h.salt, i + 1);
		hand_hello(&h, NULL, true, false);
		if (i % 10 == 0)
			run(n, MS);
	}
	assert_in_range(n->nlog - before, 20, 60); /* 20 of them are heartbeats */
	assert_true(counter(n, A, SC_LIMITED) > 9900);
	/* Who is in the session and does not know it yet is answered all the same. */
	sent = n->nlog;
	memset(h.salt, 0x55, sizeof(h.salt));
	hand_hello(&h, NULL, true, false);
	assert_int_equal(n->nlog, sent + 1);
	for (size_t i = n->nlog; i-- > before;)
		if (opens_with(n->log[i].data, n->log[i].len, psk, &c) && !c.established)
			break;
	memset(h.salt, 0x56, sizeof(h.salt));
	hand_hello(&h, c.salt, true, false);
	assert_int_equal(info(n, A).sessions, 2);
	net_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nonsense),
		cmocka_unit_test(lying_heartbeats),
		cmocka_unit_test(salt_is_used_once),
		cmocka_unit_test(other_session),
		cmocka_unit_test(old_answer),
		cmocka_unit_test(old_answer_while_up),
		cmocka_unit_test(beats_seldom),
		cmocka_unit_test(stolen_salt),
		cmocka_unit_test(no_zero_key),
		cmocka_unit_test(queue_dies_with_the_peer),
		cmocka_unit_test(keys),
		cmocka_unit_test(flood),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
