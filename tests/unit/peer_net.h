/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For tests of the peer session: two sessions and a network between them, in virtual time. The
 * network loses, delays, duplicates and keeps a copy of everything, which the attacker in it sends
 * again wherever he likes. NET_LOG=1 in the environment shows what the sessions say.
 */
#ifndef TESTS_UNIT_PEER_NET_H
#define TESTS_UNIT_PEER_NET_H

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

#define MS   1000000ull
#define SEC  1000000000ull
#define PEER 3 /* the index under which each side knows the other */
#define A    0
#define B    1

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
	void *memory;	 /* that the session is in, NULL: its own */
	uint64_t offset; /* its clock minus the net's */
	unsigned int up, down, restarted, again, logs;
	char last_log[256];
	unsigned int reports;
	struct report last_report;
	bool echo_reports; /* answer each report from inside the callback, as an engine may */
	bool says_again;   /* report when the peer hears again, as an engine does */
	bool seen_up;	   /* what the events say */
};

/* Of a session: a datagram for it, or a report to be sent. */
struct call {
	struct node *me;
	const uint8_t *data;
	size_t len;
	const struct report *report;
};

struct net {
	uint64_t now, rng, delay, jitter;
	unsigned int loss, dup; /* percent */
	bool cut[2];		/* cut[x]: nothing reaches node x */
	bool (*filter)(struct net *n, int to, const uint8_t *data, size_t len); /* false: lost */
	unsigned int filtered;
	struct datagram *queue;
	size_t nqueue, max_queue;
	struct datagram *log; /* everything ever sent */
	size_t nlog, max_log;
	void (*drawn)(struct net *n); /* before random numbers are */
	bool no_flush;		      /* of what lies queued at who receives */
	struct node node[2];
	/* A's calls go through it, which may leave them in the middle */
	void (*kill)(struct net *n, void (*fn)(struct call *c), struct call *c);
	volatile bool outside; /* of the session: in one of its ways out */
};

static const uint8_t psk[PEER_KEY_LEN] = "an example, not secret at all!!";

static inline uint32_t rnd(struct net *n)
{
	n->rng ^= n->rng << 13;
	n->rng ^= n->rng >> 7;
	n->rng ^= n->rng << 17;
	return (uint32_t)(n->rng >> 16);
}

/* ---- the network ---- */

static inline void keep(struct datagram **list, size_t *n, size_t *max, const struct datagram *d)
{
	if (*n == *max) {
		*max = *max ? *max * 2 : 64;
		*list = realloc(*list, *max * sizeof(**list));
		assert_non_null(*list);
	}
	(*list)[(*n)++] = *d;
}

static inline void enqueue(struct net *n, struct datagram *d)
{
	d->at = n->now + n->delay + (n->jitter ? rnd(n) % n->jitter : 0);
	keep(&n->queue, &n->nqueue, &n->max_queue, d);
}

static inline void on_send(void *ctx, unsigned int peer, const uint8_t *data, size_t len)
{
	struct node *me = ctx;
	struct net *n = me->net;
	struct datagram d = {.to = !me->id, .len = len};

	n->outside = true;
	assert_int_equal(peer, PEER);
	assert_true(len > 0 && len <= 1400);
	memcpy(d.data, data, len);
	keep(&n->log, &n->nlog, &n->max_log, &d);
	if (n->cut[d.to] || rnd(n) % 100 < n->loss) {
		/* lost */
	} else if (n->filter && !n->filter(n, d.to, data, len)) {
		n->filtered++;
	} else {
		enqueue(n, &d);
		if (rnd(n) % 100 < n->dup)
			enqueue(n, &d);
	}
	n->outside = false;
}

static inline void on_event(void *ctx, unsigned int peer, enum peer_event ev, uint64_t now)
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
	case PEER_AGAIN:
		assert_true(me->seen_up);
		me->again++;
		if (me->says_again) {
			struct report r = {.type = REPORT_ACCEPT, .lane = 7, .gen = me->again};

			session_report(me->s, PEER, &r);
		}
		break;
	}
}

static inline void on_report(void *ctx, unsigned int peer, const struct report *r, uint64_t now)
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

static inline void on_log(void *ctx, unsigned int peer, int prio, const char *line)
{
	struct node *me = ctx;

	(void)peer;
	(void)prio;
	assert_null(strchr(line, '\n'));
	me->logs++;
	if (getenv("NET_LOG"))
		print_message("%llu.%03llu %c %s\n", (unsigned long long)(me->net->now / SEC),
			      (unsigned long long)(me->net->now / MS % 1000), "AB"[me->id], line);
	snprintf(me->last_log, sizeof(me->last_log), "%s", line);
}

static inline void net_random(void *ctx, void *buf, size_t len)
{
	struct net *n = ctx;
	uint8_t *p = buf;

	if (n->drawn)
		n->drawn(n);
	while (len--)
		*p++ = (uint8_t)rnd(n);
}

static inline void start_with(struct net *n, int id, const uint8_t *key)
{
	struct node *me = &n->node[id];
	static const struct prefix served = {
		.addr = {{[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 9}}, .len = 96 + 24};
	struct session_config cfg = {
		.local = {.name = id == A ? "alpha" : "beta",
			  .window = 1000 + (uint32_t)id,
			  .prefix = &served,
			  .nprefix = 1},
		.memory = me->memory,
		.random = net_random,
		.random_ctx = n,
	};
	struct session_sink sink = {me, on_send, on_event, on_report, on_log, NULL};

	session_destroy(me->s);
	me->net = n;
	me->id = id;
	me->seen_up = false;
	me->s = session_create(&cfg, &sink, n->now + me->offset);
	assert_non_null(me->s);
	assert_int_equal(
		session_peer_add(me->s, PEER, id == A ? "b" : "a", key, n->now + me->offset), 0);
}

static inline void start(struct net *n, int id)
{
	start_with(n, id, psk);
}

static inline struct net *net_new(uint64_t seed)
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

static inline void net_free(struct net *n)
{
	session_destroy(n->node[A].s);
	session_destroy(n->node[B].s);
	free(n->queue);
	free(n->log);
	free(n);
}

static inline void call(struct net *n, void (*fn)(struct call *c), struct call c)
{
	if (n->kill && c.me->id == A)
		n->kill(n, fn, &c);
	else
		fn(&c);
}

static inline void call_rx(struct call *c)
{
	struct net *n = c->me->net;

	session_rx(c->me->s, PEER, c->data, c->len, n->now + c->me->offset);
	if (!n->no_flush)
		session_flush(c->me->s);
}

static inline void call_tick(struct call *c)
{
	session_tick(c->me->s, c->me->net->now + c->me->offset);
}

static inline void call_report(struct call *c)
{
	session_report(c->me->s, PEER, c->report);
	session_flush(c->me->s);
}

static inline void rx(struct net *n, int to, const uint8_t *data, size_t len)
{
	struct node *me = &n->node[to];
	uint8_t *copy =
		malloc(len ? len : 1); /* exactly so long: a sanitizer sees what reads beyond */

	assert_non_null(copy);
	memcpy(copy, data, len);
	if (me->s)
		call(n, call_rx, (struct call){.me = me, .data = copy, .len = len});
	free(copy);
}

/* Run events until @until, one after the other in order of time. */
static inline void run_to(struct net *n, uint64_t until)
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
			call(n, call_tick, (struct call){.me = whose});
			/* Asking again at once must be for nothing, or a loop would spin. */
			assert_true(n->kill || session_deadline(whose->s) > n->now + whose->offset);
			continue;
		}
		d = n->queue[first];
		memmove(&n->queue[first], &n->queue[first + 1],
			(n->nqueue - first - 1) * sizeof(d));
		n->nqueue--;
		rx(n, d.to, d.data, d.len);
	}
	n->now = until;
}

static inline void run(struct net *n, uint64_t ns)
{
	run_to(n, n->now + ns);
}

static inline bool both_up(struct net *n)
{
	return session_up(n->node[A].s, PEER) && session_up(n->node[B].s, PEER);
}

static inline struct session_info info(struct net *n, int id)
{
	struct session_info i;

	assert_true(session_info(n->node[id].s, PEER, n->now + n->node[id].offset, &i));
	return i;
}

static inline struct net *net_up(uint64_t seed)
{
	struct net *n = net_new(seed);

	start(n, A);
	start(n, B);
	run(n, SEC);
	assert_true(both_up(n));
	return n;
}

static inline struct report progress(uint32_t lane, uint32_t seq, unsigned int nholes)
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

static inline int report(struct net *n, int id, const struct report *r)
{
	return session_report(n->node[id].s, PEER, r);
}

static inline void flush(struct net *n, int id)
{
	session_flush(n->node[id].s);
}

/* A report from each side arrives at the other. */
static inline void assert_talk(struct net *n)
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

static inline uint64_t counter(struct net *n, int id, enum session_counter c)
{
	return info(n, id).counter[c];
}

static inline bool is_hello(const uint8_t *data)
{
	return data[3] == SEAL_HELLO;
}

static inline bool opens_with(const uint8_t *data, size_t len, const uint8_t *key,
			      struct proto_challenge *c)
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
	if (n < 0 || proto_next(plain, (size_t)n, &pos, &m) != PROTO_OK ||
	    m.type != PROTO_CHALLENGE)
		return false;
	*c = m.challenge;
	return true;
}

#endif
