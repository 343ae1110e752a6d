// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Which packets a link carries (peer/probe.c): two sessions, and between them a link that drops
 * what is too long, and some of the rest.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "peer/session_priv.h"

#define WANT	 4188
#define OVERHEAD 28
#define SLOTS	 4096
#define A	 0
#define B	 1

struct datagram {
	uint64_t at;
	int to;
	size_t len;
	uint8_t data[SESSION_PROBE_MAX];
};

/**
 * struct node - @limit: longest packet that arrives there; @own: longest that it can send
 * @probes, @bytes: sent by it as probes
 */
struct node {
	struct rig *rig;
	int id;
	struct session *s;
	unsigned int limit, own, probes;
};

struct rig {
	uint64_t now, delay, jitter;
	unsigned int loss; /* percent */
	unsigned int end;  /* no slot from here on has a datagram */
	uint32_t rng;
	struct node node[2];
	struct datagram slot[SLOTS];
};

static struct rig r;

static uint32_t rnd(void)
{
	r.rng = r.rng * 1664525 + 1013904223;
	return r.rng >> 8;
}

static void put(const struct node *from, const uint8_t *data, size_t len)
{
	const struct node *to = &r.node[!from->id];

	if (len + OVERHEAD > to->limit || rnd() % 100 < r.loss)
		return;
	for (unsigned int i = 0; i < SLOTS; i++) {
		struct datagram *d = &r.slot[i];

		if (d->len)
			continue;
		d->at = r.now + r.delay + (r.jitter ? rnd() % r.jitter : 0);
		d->to = to->id;
		d->len = len;
		memcpy(d->data, data, len);
		r.end = i < r.end ? r.end : i + 1;
		return;
	}
	fail_msg("no slot");
}

static void on_send(void *ctx, unsigned int peer, const uint8_t *data, size_t len)
{
	(void)peer;
	assert_true(len <= SESSION_DATAGRAM_MAX);
	put(ctx, data, len);
}

static bool on_probe(void *ctx, unsigned int peer, const uint8_t *data, size_t len)
{
	struct node *me = ctx;

	(void)peer;
	me->probes++;
	if (len + OVERHEAD > me->own)
		return false;
	put(me, data, len);
	return true;
}

static void on_event(void *ctx, unsigned int peer, enum peer_event ev, uint64_t now)
{
	(void)ctx, (void)peer, (void)ev, (void)now;
}

static void on_report(void *ctx, unsigned int peer, const struct report *rep, uint64_t now)
{
	(void)ctx, (void)peer, (void)rep, (void)now;
}

static void on_log(void *ctx, unsigned int peer, int prio, const char *line)
{
	(void)ctx, (void)peer, (void)prio, (void)line;
}

/* The first datagram that is due, NULL: none. */
static struct datagram *due(void)
{
	struct datagram *first = NULL;

	while (r.end && !r.slot[r.end - 1].len)
		r.end--;
	for (unsigned int i = 0; i < r.end; i++)
		if (r.slot[i].len && r.slot[i].at <= r.now && (!first || r.slot[i].at < first->at))
			first = &r.slot[i];
	return first;
}

static void run(uint64_t ns)
{
	struct datagram *d;

	for (uint64_t end = r.now + ns; r.now < end; r.now += MS) {
		while ((d = due())) {
			struct datagram c = *d;

			d->len = 0;
			session_rx(r.node[c.to].s, 0, c.data, c.len, r.now);
		}
		for (int i = 0; i < 2; i++) {
			if (r.now >= session_deadline(r.node[i].s))
				session_tick(r.node[i].s, r.now);
			session_flush(r.node[i].s);
		}
	}
}

static struct session_reach reach(int node, int direction)
{
	struct session_reach both[2];

	assert_true(session_reach(r.node[node].s, 0, both));
	return both[direction];
}

static void want(uint16_t bytes)
{
	for (int i = 0; i < 2; i++)
		session_path(r.node[i].s, 0, bytes, 4156, OVERHEAD);
}

/* Two sessions that are up. */
static int rig_up(void **state)
{
	static const uint8_t key[PEER_KEY_LEN] = "an example, not secret at all!!";

	(void)state;
	memset(&r, 0, sizeof(r));
	r.now = SEC;
	r.delay = 10 * MS;
	r.rng = 1;
	for (int i = 0; i < 2; i++) {
		struct node *n = &r.node[i];
		struct session_config cfg = {.local = {.name = i ? "b" : "a"}};
		struct session_sink sink = {n, on_send, on_event, on_report, on_log, on_probe};

		*n = (struct node){.rig = &r, .id = i, .limit = 9000, .own = 9000};
		n->s = session_create(&cfg, &sink, r.now);
		assert_non_null(n->s);
		assert_int_equal(session_peer_add(n->s, 0, "other", key, r.now), 0);
	}
	run(SEC);
	assert_true(session_up(r.node[A].s, 0) && session_up(r.node[B].s, 0));
	return 0;
}

static int rig_down(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++)
		session_destroy(r.node[i].s);
	return 0;
}

/* Both ends know that of what @from sends packets of @limit bytes arrive, and no longer ones. */
static void assert_limit(int from, unsigned int limit)
{
	struct session_reach known[] = {reach(from, 0), reach(!from, 1)};

	for (int i = 0; i < 2; i++) {
		assert_int_equal(known[i].carried, limit);
		assert_int_equal(known[i].refused, limit == WANT ? 0 : limit + 1);
		assert_int_equal(known[i].longest, 4156);
	}
}

/* A wide link is known to be wide, at both ends, and costs little. */
static void wide(void **state)
{
	unsigned int probes;

	(void)state;
	want(WANT);
	run(SEC);
	assert_limit(A, WANT);
	assert_limit(B, WANT);
	probes = r.node[A].probes;
	run(10 * SEC);
	assert_in_range(r.node[A].probes - probes, 16, 22);
	assert_limit(A, WANT);
}

/* Any limit is found to the byte, within 2 s of the change, and so is its end. Nothing is said of
 * the other direction. */
static void narrow(void **state)
{
	static const unsigned int limits[] = {577,  600,  1280, 1420, 1492, 1499, 1500,
					      1501, 2047, 4000, 4155, 4156, 4186, 4187};

	(void)state;
	want(WANT);
	run(2 * SEC);
	for (unsigned int i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		r.node[B].limit = limits[i];
		run(2 * SEC);
		assert_limit(A, limits[i]);
		assert_limit(B, WANT);
		if (i % 2)
			continue;
		r.node[B].limit = 9000;
		run(SEC + 200 * MS);
		assert_limit(A, WANT);
	}
}

/* Over long and bad links the same; the latter must not be taken for narrow ones. */
static void bad(void **state)
{
	(void)state;
	r.delay = 100 * MS;
	r.jitter = 5 * MS; /* overtakes */
	r.loss = 10;
	want(WANT);
	for (int i = 0; i < 600; i++) {
		run(SEC);
		assert_int_equal(reach(A, 0).refused, 0);
		assert_int_equal(reach(B, 0).refused, 0);
	}
	assert_limit(A, WANT);
	r.node[B].limit = 1500;
	run(6 * SEC);
	assert_int_equal(reach(A, 0).carried, 1500);
	assert_int_equal(reach(A, 0).refused, 1501);
}

/* A link that is cut is not narrow. */
static void cut(void **state)
{
	(void)state;
	want(WANT);
	run(2 * SEC);
	for (int i = 0; i < 10; i++) {
		r.node[B].limit = 0;
		run(700 * MS);
		assert_int_equal(reach(A, 0).refused, 0);
		r.node[B].limit = 9000;
		run(300 * MS);
		assert_int_equal(reach(A, 0).refused, 0);
	}
	run(2 * SEC);
	assert_limit(A, WANT);
}

/* What the own interface cannot send tells nothing of the link. */
static void own_interface(void **state)
{
	(void)state;
	r.node[A].own = 1500;
	want(WANT);
	run(3 * SEC);
	assert_limit(B, WANT);
	assert_int_equal(reach(A, 0).refused, 0);
	assert_true(reach(A, 0).carried <= 1500);
	r.node[B].limit = 1400;
	run(5 * SEC);
	assert_int_equal(reach(A, 0).refused, 0);
}

/* A peer of a version that does not know probes gets none. */
static void older(void **state)
{
	(void)state;
	r.node[B].s->self.features &= ~PROTO_F_PROBE;
	run(6 * SEC); /* its next HELLO */
	want(WANT);
	run(5 * SEC);
	assert_int_equal(r.node[A].probes, 0);
	assert_int_equal(reach(A, 0).carried, 0);
	assert_limit(B, WANT);
}

/* A new session begins anew. */
static void again(void **state)
{
	(void)state;
	want(WANT);
	r.node[A].limit = r.node[B].limit = 1500;
	run(3 * SEC);
	assert_limit(A, 1500);
	r.loss = 100;
	run(2 * SEC);
	r.loss = 0;
	r.node[A].limit = r.node[B].limit = 9000;
	run(3 * SEC);
	assert_limit(A, WANT);
	assert_limit(B, WANT);
}

/* Numbers and sizes that the other side makes up change nothing. */
static void made_up(void **state)
{
	struct proto_probed m = {.number = 77, .size = 4000, .last = true};

	(void)state;
	want(WANT);
	run(2 * SEC);
	outbox_probed(r.node[B].s, &r.node[B].s->peer[0], &m);
	m = (struct proto_probed){.number = r.node[A].s->peer[0].link.probing.number, .size = 9000};
	outbox_probed(r.node[B].s, &r.node[B].s->peer[0], &m);
	run(2 * SEC);
	assert_limit(A, WANT);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_up, rig_down)
	const struct CMUnitTest tests[] = {
		T(wide),	  T(narrow), T(bad),   T(cut),
		T(own_interface), T(older),  T(again), T(made_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
