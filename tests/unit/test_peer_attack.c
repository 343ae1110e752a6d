// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What an attacker without the key, who hears and sends everything, can do to a peer session; alone
 * and together with a bad network.
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
	struct session_sink sink = {m, mirror_send, mirror_event, mirror_report, mirror_log, NULL};
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
		cmocka_unit_test(storm),
		cmocka_unit_test(replay_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
