/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two sessions and a network between them, in virtual time. The network loses, delays, duplicates and
 * keeps a copy of everything, which the attacker in it sends again wherever he likes.
 */
#include <errno.h>
#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include <cmocka.h>

#include "peer/seal.h"
#include "peer/session.h"
#include "wire/bytes.h"

#define MS 1000000ull
#define SEC 1000000000ull
#define PEER 3 /* the index under which each side knows the other */
#define A 0
#define B 1

struct datagram {
	uint64_t at;
	int to;
	size_t len;
	uint8_t data[SESSION_DATAGRAM_MAX];
};

struct net;

struct node {
	struct net *net;
	int id;
	struct session *s;
	uint64_t offset;      /* its clock minus the net's */
	unsigned int up, down, restarted, logs;
	char last_log[256];
	unsigned int reports;
	struct report last_report;
	bool echo_reports; /* answer each report from inside the callback, as an engine may */
	bool seen_up;	   /* what the events say */
};

struct net {
	uint64_t now, rng, delay, jitter;
	unsigned int loss, dup;	   /* percent */
	bool cut[2];		   /* cut[x]: nothing reaches node x */
	bool (*filter)(struct net *n, int to, const uint8_t *data, size_t len); /* false: lost */
	unsigned int filtered;
	struct datagram *queue;
	size_t nqueue, max_queue;
	struct datagram *log; /* everything ever sent */
	size_t nlog, max_log;
	bool no_log;
	struct node node[2];
};

static const uint8_t psk[PEER_KEY_LEN] = "an example, not secret at all!!";

static uint32_t rnd(struct net *n)
{
	n->rng ^= n->rng << 13;
	n->rng ^= n->rng >> 7;
	n->rng ^= n->rng << 17;
	return (uint32_t)(n->rng >> 16);
}

/* ---- the network ---- */

static void keep(struct datagram **list, size_t *n, size_t *max, const struct datagram *d)
{
	if (*n == *max) {
		*max = *max ? *max * 2 : 64;
		*list = realloc(*list, *max * sizeof(**list));
		assert_non_null(*list);
	}
	(*list)[(*n)++] = *d;
}

static void enqueue(struct net *n, struct datagram *d)
{
	d->at = n->now + n->delay + (n->jitter ? rnd(n) % n->jitter : 0);
	keep(&n->queue, &n->nqueue, &n->max_queue, d);
}

static void on_send(void *ctx, unsigned int peer, const uint8_t *data, size_t len)
{
	struct node *me = ctx;
	struct net *n = me->net;
	struct datagram d = {.to = !me->id, .len = len};

	assert_int_equal(peer, PEER);
	assert_true(len > 0 && len <= 1400);
	memcpy(d.data, data, len);
	if (!n->no_log)
		keep(&n->log, &n->nlog, &n->max_log, &d);
	if (n->cut[d.to] || rnd(n) % 100 < n->loss)
		return;
	if (n->filter && !n->filter(n, d.to, data, len)) {
		n->filtered++;
		return;
	}
	enqueue(n, &d);
	if (rnd(n) % 100 < n->dup)
		enqueue(n, &d);
}

static void on_event(void *ctx, unsigned int peer, enum peer_event ev, uint64_t now)
{
	struct node *me = ctx;

	(void)now;
	assert_int_equal(peer, PEER);
	assert_int_equal(session_up(me->s, PEER), ev != PEER_DOWN);
	switch (ev) {
	case PEER_UP:
		assert_false(me->seen_up);
		me->seen_up = true;
		me->up++;
		break;
	case PEER_DOWN:
		assert_true(me->seen_up);
		me->seen_up = false;
		me->down++;
		break;
	case PEER_RESTARTED:
		me->seen_up = true;
		me->restarted++;
		break;
	}
}

static void on_report(void *ctx, unsigned int peer, const struct report *r, uint64_t now)
{
	struct node *me = ctx;

	(void)now;
	assert_int_equal(peer, PEER);
	assert_true(session_up(me->s, PEER));
	me->reports++;
	me->last_report = *r;
	if (me->echo_reports) {
		struct report answer = {.type = REPORT_ACCEPT, .lane = r->lane, .gen = r->gen};

		session_report(me->s, PEER, &answer);
	}
}

static void on_log(void *ctx, unsigned int peer, int prio, const char *line)
{
	struct node *me = ctx;

	(void)peer;
	(void)prio;
	assert_null(strchr(line, '\n'));
	me->logs++;
	if (getenv("NET_LOG"))
		print_message("%llu.%03llu %c %s\n", (unsigned long long)(me->net->now / SEC), (unsigned long long)(me->net->now / MS % 1000), "AB"[me->id], line);
	snprintf(me->last_log, sizeof(me->last_log), "%s", line);
}

static void net_random(void *ctx, void *buf, size_t len)
{
	uint8_t *p = buf;

	while (len--)
		*p++ = (uint8_t)rnd(ctx);
}

static void start_with(struct net *n, int id, const uint8_t *key)
{
	struct node *me = &n->node[id];
	static const struct prefix served = {.addr = {{[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 9}},
					     .len = 96 + 24};
	struct session_config cfg = {
		.local = {.name = id == A ? "alpha" : "beta",
			  .window = 1000 + (uint32_t)id,
			  .prefix = &served,
			  .nprefix = 1},
		.random = net_random,
		.random_ctx = n,
	};
	struct session_sink sink = {me, on_send, on_event, on_report, on_log};

	session_destroy(me->s);
	me->net = n;
	me->id = id;
	me->seen_up = false;
	me->s = session_create(&cfg, &sink, n->now + me->offset);
	assert_non_null(me->s);
	assert_int_equal(session_peer_add(me->s, PEER, id == A ? "b" : "a", key, n->now + me->offset), 0);
}

static void start(struct net *n, int id)
{
	start_with(n, id, psk);
}

static struct net *net_new(uint64_t seed)
{
	struct net *n = calloc(1, sizeof(*n));

	assert_non_null(n);
	n->rng = seed * 0x9e3779b97f4a7c15 + 1;
	n->now = 1000 * SEC;
	n->delay = 20 * MS;
	n->node[A].offset = 5 * SEC;
	n->node[B].offset = 77777 * SEC;
	return n;
}

static void net_free(struct net *n)
{
	session_destroy(n->node[A].s);
	session_destroy(n->node[B].s);
	free(n->queue);
	free(n->log);
	free(n);
}

static void rx(struct net *n, int to, const uint8_t *data, size_t len)
{
	struct node *me = &n->node[to];
	uint8_t *copy = malloc(len ? len : 1); /* exactly so long: a sanitizer sees what reads beyond */

	assert_non_null(copy);
	memcpy(copy, data, len);
	if (me->s) {
		session_rx(me->s, PEER, copy, len, n->now + me->offset);
		session_flush(me->s);
	}
	free(copy);
}

/* Run events until @until, one after the other in order of time. */
static void run_to(struct net *n, uint64_t until)
{
	for (;;) {
		uint64_t next = UINT64_MAX;
		struct node *whose = NULL; /* NULL: the network's */
		struct datagram d;
		size_t first = 0;

		for (size_t i = 0; i < n->nqueue; i++) {
			if (n->queue[i].at < next) {
				next = n->queue[i].at;
				first = i;
			}
		}
		for (int id = A; id <= B; id++) {
			struct node *me = &n->node[id];
			uint64_t t = me->s ? session_deadline(me->s) : UINT64_MAX;

			if (t == UINT64_MAX)
				continue;
			t = t > me->offset ? t - me->offset : 0;
			if (t < next) {
				next = t;
				whose = me;
			}
		}
		if (next > until)
			break;
		if (next > n->now)
			n->now = next;
		if (whose) {
			session_tick(whose->s, n->now + whose->offset);
			/* Asking again at once must be for nothing, or a loop would spin. */
			assert_true(session_deadline(whose->s) > n->now + whose->offset);
			continue;
		}
		d = n->queue[first];
		memmove(&n->queue[first], &n->queue[first + 1], (n->nqueue - first - 1) * sizeof(d));
		n->nqueue--;
		rx(n, d.to, d.data, d.len);
	}
	n->now = until;
}

static void run(struct net *n, uint64_t ns)
{
	run_to(n, n->now + ns);
}

static bool both_up(struct net *n)
{
	return session_up(n->node[A].s, PEER) && session_up(n->node[B].s, PEER);
}

static struct session_info info(struct net *n, int id)
{
	struct session_info i;

	assert_true(session_info(n->node[id].s, PEER, n->now + n->node[id].offset, &i));
	return i;
}

static struct net *net_up(uint64_t seed)
{
	struct net *n = net_new(seed);

	start(n, A);
	start(n, B);
	run(n, SEC);
	assert_true(both_up(n));
	return n;
}

static struct report progress(uint32_t lane, uint32_t seq, unsigned int nholes)
{
	struct report r = {.type = REPORT_PROGRESS,
			   .lane = lane,
			   .gen = 1,
			   .seq = seq,
			   .cum = 100,
			   .hi = 100 + 2 * nholes,
			   .credit = 0x1f,
			   .nholes = (uint8_t)nholes};

	for (unsigned int i = 0; i < nholes; i++)
		r.hole[i] = (struct psn_range){100 + 2 * i, 101 + 2 * i};
	return r;
}

static int report(struct net *n, int id, const struct report *r)
{
	return session_report(n->node[id].s, PEER, r);
}

static void flush(struct net *n, int id)
{
	session_flush(n->node[id].s);
}

/* A report from each side arrives at the other. */
static void assert_talk(struct net *n)
{
	static uint32_t seq = 1000;

	assert_true(both_up(n));
	for (int id = A; id <= B; id++) {
		unsigned int before = n->node[!id].reports;
		struct report r = progress(5, ++seq, 1);

		assert_int_equal(report(n, id, &r), 0);
		flush(n, id);
		run(n, 300 * MS);
		assert_int_equal(n->node[!id].reports, before + 1);
		assert_int_equal(n->node[!id].last_report.seq, seq);
	}
}

static uint64_t counter(struct net *n, int id, enum session_counter c)
{
	return info(n, id).counter[c];
}

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
	assert_true(i.heard && i.heard_ns <= 250 * MS);
	assert_in_range(i.rtt_samples, 35, 45);
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

static bool is_hello(const uint8_t *data)
{
	return data[3] == SEAL_HELLO;
}

static bool opens_with(const uint8_t *data, size_t len, const uint8_t *key, struct proto_challenge *c)
{
	uint8_t plain[SESSION_DATAGRAM_MAX];
	struct proto_message m;
	struct seal_psk k;
	size_t pos = 0;
	int n;

	if (!is_hello(data))
		return false;
	seal_psk_init(&k, key);
	n = seal_open_hello(&k, data, len, plain);
	if (n < 0 || proto_next(plain, (size_t)n, &pos, &m) != PROTO_OK || m.type != PROTO_CHALLENGE)
		return false;
	*c = m.challenge;
	return true;
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

	/* And when a running side must change over. */
	n->filtered = 0;
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
	/* 500 * 37 bytes and 18 a cycle of holes: at least 18, and no waste beyond the last bit of each. */
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
	assert_int_equal(counter(n, B, SC_TOO_OLD), 0); /* 200 ms are 200 datagrams, well in the window */
	assert_int_equal(n->node[A].down + n->node[B].down, 0);
	net_free(n);
}

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
	struct proto_heartbeat b = {.sent = 9, .echo = n->now + n->node[A].offset - 50 * MS, .held_us = 20000};

	hand_data(&h, m, (size_t)proto_put_heartbeat(m, sizeof(m), &b));
	assert_int_equal(info(n, A).rtt_samples, 1);
	assert_true(info(n, A).rtt_ns == 30 * MS);
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

/* A flood of questions is answered within bounds, and one with proof gets through. */
static void flood(void **state)
{
	struct net *n = net_new(34);
	struct hand h = {0};
	struct proto_challenge c;
	size_t before;

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
	for (size_t i = n->nlog; i-- > before;)
		if (opens_with(n->log[i].data, n->log[i].len, psk, &c) && !c.established)
			break;
	hand_hello(&h, c.salt, true, false);
	assert_int_equal(info(n, A).sessions, 2);
	net_free(n);
}

/* ---- restarts, partitions, goodbyes ---- */

static void restart_one(void **state)
{
	struct net *n = net_up(40);
	struct report r;

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

	/* What was queued for the process before is not told to the one after. */
	r = progress(1, 1, 0);
	assert_int_equal(report(n, A, &r), 0);
	start(n, B);
	n->node[B].reports = 0;
	run_to(n, n->now + 50 * MS); /* heartbeats flush: without one in between */
	(void)r;
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
	struct node saved = n->node[B];

	(void)state;
	/* An impostor with recorded HELLOs is covered above; here the true new process, which A's words do
	 * not reach, so that it cannot answer the challenge. The old one keeps running beside it. */
	n->filter = lose_answers;
	n->node[B].s = NULL;
	start(n, B);
	for (unsigned int i = 0; i < 20; i++) {
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
	(void)saved;
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
	run(n, 2700 * MS);
	assert_int_equal(n->node[A].down + n->node[B].down, 0);
	run(n, 500 * MS);
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

/* Short breaks are no event, whatever was lost in them. */
static void short_break(void **state)
{
	struct net *n = net_up(43);

	(void)state;
	for (unsigned int i = 0; i < 20; i++) {
		n->cut[i & 1] = true;
		run(n, 2 * SEC + i * 20 * MS);
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
	run(n, 3300 * MS); /* B has heard nothing; A still has what B said until just now */
	assert_int_equal(n->node[B].down, 1);
	assert_int_equal(n->node[A].down, 0);
	n->cut[B] = false;
	run(n, SEC);
	assert_talk(n);
	assert_int_equal(n->node[A].down, 0); /* new keys, and nothing that its engine should know */
	assert_int_equal(n->node[A].up, 1);
	assert_int_equal(info(n, A).sessions, 2);

	n->cut[B] = true;
	run(n, 60 * SEC);
	assert_int_equal(n->node[B].down, 2);
	assert_int_equal(n->node[A].down, 1); /* no flapping, although B's HELLOs arrive all the time */
	n->cut[B] = false;
	run(n, SEC);
	assert_talk(n);
	net_free(n);
}

static void goodbye(void **state)
{
	struct net *n = net_up(45);
	struct report r = progress(1, 9, 0);
	size_t sent;

	(void)state;
	assert_int_equal(report(n, A, &r), 0); /* queued when the end comes: still said */
	session_bye(n->node[A].s, BYE_SHUTDOWN);
	assert_int_equal(session_deadline(n->node[A].s), UINT64_MAX);
	assert_int_equal(report(n, A, &r), -ENOTCONN);
	run(n, n->delay);
	assert_int_equal(n->node[B].down, 1);
	assert_int_equal(n->node[B].reports, 1);
	assert_non_null(strstr(n->node[B].last_log, "goodbye"));
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
	assert_int_equal(session_peer_add(n->node[B].s, PEER, "a", psk, n->now + n->node[B].offset), 0);
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
			assert_true(info(n, A).rtt_min_ns >= 40 * MS && info(n, A).rtt_min_ns < 50 * MS);
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

/* ---- everything at once ---- */

static int by_nonce(const void *a, const void *b)
{
	const struct datagram *x = a, *y = b;

	return memcmp(x->data, y->data, SEAL_DATA_HDR);
}

/*
 * Loss, delay, duplicates, restarts, partitions, an attacker who sends again what he has heard, to either
 * side. The events make sense at any time (on_event), afterwards all is well, and in all that was sent no
 * nonce met a key twice.
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

/* ---- the rest ---- */

static void configuration(void **state)
{
	struct mirror m = {0};
	struct session_sink sink = {&m, mirror_send, mirror_event, mirror_report, mirror_log};
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
		cmocka_unit_test(comes_up), cmocka_unit_test(late_start),
		cmocka_unit_test(lossy_start), cmocka_unit_test(lost_confirm),
		cmocka_unit_test(wrong_key), cmocka_unit_test(wrong_version),
		cmocka_unit_test(reports_coalesce), cmocka_unit_test(newest_wins),
		cmocka_unit_test(newest_wins_random), cmocka_unit_test(report_from_callback),
		cmocka_unit_test(not_up), cmocka_unit_test(disorder),
		cmocka_unit_test(replay_past_while_up), cmocka_unit_test(replay_past_while_down),
		cmocka_unit_test(replay_present), cmocka_unit_test(replay_keeps_nobody_alive),
		cmocka_unit_test(reflection), cmocka_unit_test(reflection_across_peers),
		cmocka_unit_test(forgery), cmocka_unit_test(garbage),
		cmocka_unit_test(nonsense), cmocka_unit_test(lying_heartbeats),
		cmocka_unit_test(salt_is_used_once), cmocka_unit_test(old_answer),
		cmocka_unit_test(flood), cmocka_unit_test(restart_one),
		cmocka_unit_test(restart_needs_proof), cmocka_unit_test(restart_both),
		cmocka_unit_test(partition), cmocka_unit_test(short_break),
		cmocka_unit_test(one_way), cmocka_unit_test(goodbye),
		cmocka_unit_test(told_anew), cmocka_unit_test(clocks),
		cmocka_unit_test(one_way_delay), cmocka_unit_test(storm),
		cmocka_unit_test(configuration), cmocka_unit_test(names),
		cmocka_unit_test(replay_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
