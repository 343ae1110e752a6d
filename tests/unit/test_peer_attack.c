/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What an attacker can do to a peer session: one who hears and sends everything without the key,
 * one who has the key and talks nonsense, and all of it at once with a bad network.
 */
#include "peer_net.h"

/* ---- attackers ---- */

struct calm {
	unsigned int up, down, restarted, reports;
	uint64_t sessions;
};

static struct calm calm(struct net *n, int id)
{
	struct node *me = &n->node[id];

	return (struct calm){me->up, me->down, me->restarted, me->reports, info(n, id).sessions};
}

static void assert_calm(struct net *n, int id, const struct calm *c)
{
	struct calm now = calm(n, id);

	assert_int_equal(now.up, c->up);
	assert_int_equal(now.down, c->down);
	assert_int_equal(now.restarted, c->restarted);
	assert_int_equal(now.reports, c->reports);
	assert_int_equal(now.sessions, c->sessions);
}

/* A long past: several processes on both sides, sessions, reports. All of it is in the log. */
static void past(struct net *n)
{
	for (unsigned int i = 0; i < 4; i++) {
		start(n, A);
		if (i != 2)
			start(n, B);
		run(n, 2 * SEC);
		assert_talk(n);
		n->cut[i % 2] = true; /* one side loses sight: new session of the same processes */
		run(n, 3200 * MS);
		n->cut[0] = n->cut[1] = false;
		run(n, 2 * SEC);
		assert_talk(n);
	}
}

/* Everything of former processes, to both sides, while they are up: nothing happens. */
static void replay_past_while_up(void **state)
{
	struct net *n = net_new(20);
	struct calm c[2];
	size_t old;

	(void)state;
	past(n);
	old = n->nlog;
	start(n, A);
	start(n, B);
	run(n, SEC);
	c[A] = calm(n, A);
	c[B] = calm(n, B);
	for (unsigned int pass = 0; pass < 3; pass++) {
		for (size_t i = 0; i < old; i++) {
			rx(n, n->log[i].to, n->log[i].data, n->log[i].len);
			if (pass == 1) /* back to where it came from */
				rx(n, !n->log[i].to, n->log[i].data, n->log[i].len);
			run(n, pass == 2 ? 10 * MS : MS);
		}
		assert_calm(n, A, &c[A]);
		assert_calm(n, B, &c[B]);
	}
	assert_true(counter(n, A, SC_NO_SESSION) > 100);
	assert_true(counter(n, A, SC_UNPROVEN) > 10);
	assert_talk(n);
	net_free(n);
}

/* Nor can the past be used to play the absent peer, or to keep the present one from coming up. */
static void replay_past_while_down(void **state)
{
	struct net *n = net_new(21);
	size_t old;

	(void)state;
	past(n);
	old = n->nlog;
	session_destroy(n->node[B].s);
	n->node[B].s = NULL;
	start(n, A);
	n->node[A].up = 0;
	for (size_t i = 0; i < old; i++) {
		rx(n, A, n->log[i].data, n->log[i].len);
		run(n, 5 * MS);
		assert_false(session_up(n->node[A].s, PEER));
	}
	assert_int_equal(n->node[A].up, 0);
	/* Answers are rationed: 20 a second and a few, besides the HELLOs of its own. */
	assert_true(info(n, A).tx_datagrams <= (old * 5 * MS / SEC + 1) * 35 + 10);

	/* Now the true one starts, in the midst of it. */
	start(n, B);
	for (size_t i = 0; i < 300; i++) {
		const struct datagram *d = &n->log[rnd(n) % old];

		rx(n, A, d->data, d->len);
		rx(n, B, d->data, d->len);
		run(n, MS);
	}
	assert_true(both_up(n));
	assert_int_equal(n->node[A].up, 1);
	assert_talk(n);
	net_free(n);
}

/* Everything of the session that runs, again: each datagram counts once. */
static void replay_present(void **state)
{
	struct net *n = net_up(22);
	struct calm c[2];
	size_t old;

	(void)state;
	for (unsigned int i = 0; i < 20; i++)
		assert_talk(n);
	run(n, SEC);
	old = n->nlog;
	c[A] = calm(n, A);
	c[B] = calm(n, B);
	for (unsigned int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < old; i++) {
			rx(n, pass ? n->log[i].to : !n->log[i].to, n->log[i].data, n->log[i].len);
			run(n, 3 * MS);
		}
	assert_calm(n, A, &c[A]);
	assert_calm(n, B, &c[B]);
	assert_true(counter(n, A, SC_REPLAYED) > 50);
	assert_true(counter(n, A, SC_REFLECTED) > 50);
	assert_talk(n);
	net_free(n);
}

/* Replays keep nobody alive who is gone. */
static void replay_keeps_nobody_alive(void **state)
{
	struct net *n = net_up(23);
	size_t old;

	(void)state;
	run(n, 2 * SEC);
	old = n->nlog;
	session_destroy(n->node[B].s);
	n->node[B].s = NULL;
	for (unsigned int i = 0; i < 400; i++) {
		const struct datagram *d = &n->log[rnd(n) % old];

		rx(n, A, d->data, d->len);
		run(n, 10 * MS);
	}
	assert_int_equal(n->node[A].down, 1);
	assert_int_equal(n->node[A].up, 1);
	net_free(n);
}

/* Our own words, thrown back, with and without a true peer. */
static void reflection(void **state)
{
	struct net *n = net_new(24);
	struct calm c;

	(void)state;
	start(n, A);
	for (unsigned int i = 0; i < 200; i++) {
		for (size_t j = n->nlog > 5 ? n->nlog - 5 : 0, end = n->nlog; j < end; j++)
			rx(n, A, n->log[j].data, n->log[j].len);
		run(n, 100 * MS);
	}
	assert_int_equal(n->node[A].up, 0);
	assert_int_equal(counter(n, A, SC_UNPROVEN), 0);
	assert_true(counter(n, A, SC_REFLECTED) > 100);
	assert_non_null(strstr(n->node[A].last_log, "came back"));
	net_free(n);

	n = net_up(25);
	c = calm(n, A);
	for (unsigned int i = 0; i < 2000; i++) {
		size_t j = rnd(n) % n->nlog;

		if (n->log[j].to == B)
			rx(n, A, n->log[j].data, n->log[j].len);
		run(n, 2 * MS);
	}
	assert_calm(n, A, &c);
	assert_talk(n);
	net_free(n);
}

/* One key for two peers of one node: its words to one are no words of the other. */
struct mirror {
	struct session *s;
	uint64_t now;
	unsigned int up;
	struct datagram out[64];
	unsigned int nout;
};

static void mirror_send(void *ctx, unsigned int peer, const uint8_t *data, size_t len)
{
	struct mirror *m = ctx;
	struct datagram *d = &m->out[m->nout++ % 64];

	d->to = (int)!peer; /* as if the other peer had sent it */
	d->len = len;
	memcpy(d->data, data, len);
}

static void mirror_event(void *ctx, unsigned int peer, enum peer_event ev, uint64_t now)
{
	(void)peer;
	(void)ev;
	(void)now;
	((struct mirror *)ctx)->up++;
}

static void mirror_report(void *ctx, unsigned int peer, const struct report *r, uint64_t now)
{
	(void)ctx;
	(void)peer;
	(void)r;
	(void)now;
}

static void mirror_log(void *ctx, unsigned int peer, int prio, const char *line)
{
	(void)ctx;
	(void)peer;
	(void)prio;
	(void)line;
}

static void reflection_across_peers(void **state)
{
	struct mirror *m = calloc(1, sizeof(*m));
	struct session_config cfg = {.local = {.name = "x"}};
	struct session_sink sink = {m, mirror_send, mirror_event, mirror_report, mirror_log};
	unsigned int done = 0;

	(void)state;
	assert_non_null(m);
	m->s = session_create(&cfg, &sink, 0);
	assert_non_null(m->s);
	session_peer_add(m->s, 0, "p", psk, 0);
	session_peer_add(m->s, 1, "q", psk, 0);
	for (m->now = 0; m->now < 20 * SEC; m->now += 50 * MS) {
		session_tick(m->s, m->now);
		while (done < m->nout) {
			struct datagram d = m->out[done++ % 64];

			session_rx(m->s, (unsigned int)d.to, d.data, d.len, m->now);
		}
	}
	assert_true(m->nout > 40);
	assert_int_equal(m->up, 0);
	session_destroy(m->s);
	free(m);
}

/* One bit changed anywhere, cut short anywhere, or a byte added. */
static void forgery(void **state)
{
	struct net *n = net_up(26);
	struct report r = progress(1, 1, 2);
	struct calm c;
	struct datagram data = {0}, hello = {0};

	(void)state;
	for (size_t i = 0; i < n->nlog; i++)
		if (n->log[i].to == B && is_hello(n->log[i].data))
			hello = n->log[i];
	n->cut[B] = true; /* kept from B, so that it would be new to it */
	assert_int_equal(report(n, A, &r), 0);
	flush(n, A);
	data = n->log[n->nlog - 1];
	assert_false(is_hello(data.data));
	n->cut[B] = false;
	c = calm(n, B);

	for (unsigned int pass = 0; pass < 2; pass++) {
		const struct datagram *orig = pass ? &hello : &data;
		struct datagram d = *orig;
		uint64_t before = info(n, B).rx_datagrams;

		for (size_t bit = 0; bit < 8 * orig->len; bit++) {
			d.data[bit / 8] ^= (uint8_t)(1 << (bit % 8));
			rx(n, B, d.data, d.len);
			d.data[bit / 8] ^= (uint8_t)(1 << (bit % 8));
		}
		for (size_t len = 0; len < orig->len; len++)
			rx(n, B, orig->data, len);
		d.data[d.len] = 0;
		rx(n, B, d.data, d.len + 1);
		assert_int_equal(info(n, B).rx_datagrams, before);
	}
	assert_calm(n, B, &c);
	assert_true(counter(n, B, SC_FOREIGN) > 0);
	assert_true(counter(n, B, SC_BAD_VERSION) > 0);
	assert_true(counter(n, B, SC_NO_SESSION) >= 64);
	assert_true(counter(n, B, SC_BAD_AUTH) > 100);

	/* The true one still counts, once. */
	rx(n, B, data.data, data.len);
	rx(n, B, data.data, data.len);
	assert_int_equal(n->node[B].reports, c.reports + 1);
	net_free(n);
}

/* Garbage draws no answer, whatever it looks like. */
static void garbage(void **state)
{
	struct net *n = net_up(27);
	struct calm c = calm(n, A);
	uint8_t buf[2000];
	size_t sent = n->nlog;

	(void)state;
	for (unsigned int i = 0; i < 20000; i++) {
		size_t len = rnd(n) % sizeof(buf);

		for (size_t j = 0; j < len; j += 4)
			put_be32(buf + j, rnd(n));
		if (i % 2)
			memcpy(buf, "LH\x01", 3);
		if (i % 4 == 3)
			buf[3] = (uint8_t)(1 + i / 4 % 2);
		rx(n, A, buf, len);
	}
	assert_int_equal(n->nlog, sent);
	assert_calm(n, A, &c);
	assert_true(counter(n, A, SC_FOREIGN) > 9000);
	assert_talk(n);

	/* Indices of nobody. */
	session_rx(n->node[A].s, PEER_MAX, n->log[0].data, n->log[0].len, n->now);
	session_rx(n->node[A].s, 0, n->log[0].data, n->log[0].len, n->now);
	net_free(n);
}

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

/* Both sides had proof, of different pairs of salts: who sees it seeks, and the other one answers. */
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
	assert_in_range(n->nlog - before, 20, 45);
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

/* ---- everything at once ---- */

static int by_nonce(const void *a, const void *b)
{
	const struct datagram *x = a, *y = b;

	return memcmp(x->data, y->data, SEAL_DATA_HDR);
}

/*
 * Loss, delay, duplicates, restarts, partitions, an attacker who sends again what he has heard, to
 * either side. The events make sense at any time (on_event), afterwards all is well, and in all
 * that was sent no nonce met a key twice.
 */
static void storm(void **state)
{
	(void)state;
	for (unsigned int seed = 0; seed < 40; seed++) {
		struct net *n = net_new(1000 + seed);
		uint64_t end = n->now + 120 * SEC;
		size_t data = 0, hellos = 0;

		print_message("seed %u\n", 1000 + seed);
		start(n, A);
		start(n, B);
		n->jitter = rnd(n) % 100 * MS + 1;
		n->loss = rnd(n) % 40;
		n->dup = rnd(n) % 40;
		while (n->now < end) {
			uint32_t dice = rnd(n) % 1000;

			if (dice < 3)
				start(n, (int)(rnd(n) % 2));
			else if (dice < 10)
				n->cut[rnd(n) % 2] ^= 1;
			else if (dice < 30)
				n->cut[0] = n->cut[1] = false;
			for (unsigned int i = rnd(n) % 4; i && n->nlog; i--) {
				const struct datagram *d = &n->log[rnd(n) % n->nlog];

				rx(n, (int)(rnd(n) % 2), d->data, d->len);
			}
			for (int id = A; id <= B; id++) {
				struct report r = progress(rnd(n) % 4, rnd(n), rnd(n) % 4);

				report(n, id, &r);
				flush(n, id);
			}
			run(n, rnd(n) % 100 * MS);
		}
		n->cut[0] = n->cut[1] = false;
		n->loss = n->dup = 0;
		n->jitter = 0;
		run(n, 5 * SEC);
		assert_true(both_up(n));
		assert_true(n->node[A].seen_up && n->node[B].seen_up);
		assert_talk(n);
		assert_true(info(n, A).boot == session_boot(n->node[B].s));
		assert_true(info(n, B).boot == session_boot(n->node[A].s));

		for (size_t i = 0; i < n->nlog; i++)
			if (!is_hello(n->log[i].data))
				n->log[data++] = n->log[i];
			else
				hellos++;
		assert_true(data > 500 && hellos > 10);
		qsort(n->log, data, sizeof(*n->log), by_nonce);
		for (size_t i = 1; i < data; i++)
			assert_true(by_nonce(&n->log[i - 1], &n->log[i]) < 0);
		net_free(n);
	}
}

/* The window against a plain list of everything that was seen. */
static void replay_window(void **state)
{
	static bool seen[100000];
	struct net n = {.rng = 77};
	struct replay r = {0};
	uint64_t high = 0;

	(void)state;
	for (unsigned int i = 0; i < 200000; i++) {
		uint32_t dice = rnd(&n) % 100;
		uint64_t seq = high + 1;
		enum replay_verdict want = REPLAY_FRESH;

		if (dice < 40)
			seq = high > 1500 ? high - rnd(&n) % 1500 : rnd(&n) % (high + 1);
		else if (dice < 41)
			seq = high + rnd(&n) % 2500;
		else if (dice < 60)
			seq = high + rnd(&n) % 5;
		if (seq >= sizeof(seen))
			break;
		if (seq == 0 || (seq <= high && high - seq >= REPLAY_WINDOW))
			want = REPLAY_TOO_OLD;
		else if (seen[seq])
			want = REPLAY_SEEN;
		assert_int_equal(replay_check(&r, seq), want);
		if (want == REPLAY_FRESH && rnd(&n) % 8) {
			replay_mark(&r, seq);
			seen[seq] = true;
			high = seq > high ? seq : high;
		}
	}
	assert_true(high > 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replay_past_while_up),
		cmocka_unit_test(replay_past_while_down),
		cmocka_unit_test(replay_present),
		cmocka_unit_test(replay_keeps_nobody_alive),
		cmocka_unit_test(reflection),
		cmocka_unit_test(reflection_across_peers),
		cmocka_unit_test(forgery),
		cmocka_unit_test(garbage),
		cmocka_unit_test(nonsense),
		cmocka_unit_test(lying_heartbeats),
		cmocka_unit_test(salt_is_used_once),
		cmocka_unit_test(old_answer),
		cmocka_unit_test(other_session),
		cmocka_unit_test(old_answer_while_up),
		cmocka_unit_test(stolen_salt),
		cmocka_unit_test(no_zero_key),
		cmocka_unit_test(queue_dies_with_the_peer),
		cmocka_unit_test(keys),
		cmocka_unit_test(flood),
		cmocka_unit_test(storm),
		cmocka_unit_test(replay_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
