// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Several engines that look like one: whose a frame, a report and a connection is; the link that
 * they have in common; the threads, and the frames that one hands to another.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "engine/core/core.h"
#include "shards/inbox.h"
#include "shards/shards.h"
#include "shards/team.h"
#include "tests/unit/no_sink.h"

#define NOW 1000000000ull
#define MS  1000000ull
#define N   3u

static const struct engine_config config = {.pool_bytes = 24 << 20, .max_conns = 300, .seed = 7};

static struct flow_key hosts(unsigned int near, unsigned int far)
{
	struct flow_key k = {.dqpn = 0x11, .vlan = FRAME_VLAN_NONE};
	const uint8_t a[4] = {10, 0, 1, (uint8_t)near}, b[4] = {10, 0, 2, (uint8_t)far};

	k.src = ip_addr_v4(a);
	k.dst = ip_addr_v4(b);
	return k;
}

static struct flow_key back_of(const struct flow_key *k)
{
	struct flow_key back = *k;

	back.src = k->dst;
	back.dst = k->src;
	return back;
}

/* Sites number their hosts alike; still their pairs are in many slices, and both ways in one. */
static void test_slices(void **state)
{
	unsigned int of[SLICES] = {0}, used = 0, most = 0;

	(void)state;
	for (unsigned int i = 0; i < 256; i++) {
		struct flow_key k = hosts(i, i), back = back_of(&k);

		assert_int_equal(flow_slice(&k), flow_slice(&back));
		of[flow_slice(&k)]++;
	}
	for (unsigned int i = 0; i < SLICES; i++) {
		used += of[i] != 0;
		most = of[i] > most ? of[i] : most;
	}
	assert_in_range(used, SLICES * 9 / 10, SLICES);
	assert_in_range(most, 1, 16);
}

static uint32_t frame_of(uint8_t *out, const struct flow_key *k, uint32_t qpn)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
	struct template t;
	struct build_spec s = {.t = &t, .opcode = OP_SEND_ONLY, .dqpn = qpn};

	template_make(&t, mac, mac, k->vlan, &k->src, &k->dst, 0xc001);
	return build_packet(out, &s);
}

/* Whatever the frame, it is of the shard that its addresses say, there and back. */
static void test_frames(void **state)
{
	struct shards *s = some_shards(N, &config, NOW);
	bool seen[N] = {false};
	uint8_t out[FRAME_MAX];

	(void)state;
	assert_non_null(s);
	for (unsigned int i = 0; i < 60; i++) {
		struct flow_key k = hosts(i, 200 - i), back;
		unsigned int shard;

		if (i % 3 == 1)
			k.vlan = 7;
		if (i % 3 == 2) {
			k.src.b[0] = k.dst.b[0] = 0xfd; /* IPv6 */
			k.src.b[10] = k.dst.b[10] = 0;
		}
		back = back_of(&k);
		shard = flow_slice(&k) % N;
		assert_int_equal(shards_of_frame(s, out, frame_of(out, &k, 5)), shard);
		assert_int_equal(shards_of_frame(s, out, frame_of(out, &back, 6)), shard);
		seen[shard] = true;
	}
	for (unsigned int i = 0; i < N; i++)
		assert_true(seen[i]);
	/* none of two hosts */
	memset(out, 0, sizeof(out));
	for (uint32_t len = 0; len < 64; len++)
		assert_int_equal(shards_of_frame(s, out, len), 0);
	shards_destroy(s);
}

/* The shards that have counted @c once more than @before. */
static unsigned int counted_by(const struct shards *s, enum engine_counter c, uint64_t before[N])
{
	unsigned int by = 0;

	for (unsigned int i = 0; i < N; i++) {
		uint64_t n = engine_counter(shards_engine(s, i), c);

		by |= (n != before[i]) << i;
		before[i] = n;
	}
	return by;
}

/* Reports find the engine of their lane, log or addresses. */
static void test_reports(void **state)
{
	struct shards *s = some_shards(N, &config, NOW);
	const struct engine_box box = {0};
	uint64_t refused[N] = {0}, bad[N] = {0};

	(void)state;
	shards_peer_event(s, 0, PEER_UP, NOW);
	for (unsigned int i = 0; i < 40; i++) {
		struct flow_key k = hosts(i, i);
		unsigned int shard = flow_slice(&k) % N;
		struct report r = {.type = REPORT_OPEN,
				   .key = k,
				   .lane = flow_slice(&k) << LANE_SLICE | i,
				   .gen = 1};

		shards_report(s, 0, &r, &box, NOW);
		assert_int_equal(counted_by(s, EC_REFUSALS, refused), 1u << shard);
		r.type = REPORT_PROGRESS;
		shards_report(s, 0, &r, &box, NOW);
		assert_int_equal(counted_by(s, EC_BAD_REPORT, bad), 1u << shard);
		/* logs, of which there are none of this number */
		r = (struct report){.type = REPORT_ORDER,
				    .by_opener = true,
				    .lane = (flow_slice(&k) | SLICES) << LOG_SLICE,
				    .gen = 1};
		shards_report(s, 0, &r, &box, NOW);
		assert_int_equal(counted_by(s, EC_BAD_REPORT, bad), 1u << shard);
		shards_tick(s, NOW);
	}
	shards_destroy(s);
}

/* Connections have numbers of their own, whichever shard they are in, and are found by them. */
static void test_connections(void **state)
{
	struct shards *s = some_shards(N, &config, NOW);
	struct conn_info ci;
	uint8_t out[FRAME_MAX];
	uint32_t n = 0, last = 0;

	(void)state;
	for (unsigned int i = 0; i < 50; i++) {
		struct flow_key k = hosts(i, i);
		uint32_t len = frame_of(out, &k, i + 1);

		engine_rx(shards_engine(s, shards_of_frame(s, out, len)), PORT_LAN, out, len, NOW);
	}
	for (uint32_t from = 0; shards_conn_next(s, from, NOW, &ci); from = ci.id + 1, n++) {
		struct flow_key k = {.src = ci.lan_ip, .dst = ci.wan_ip};
		struct conn_info again;

		assert_true(!n || ci.id > last);
		last = ci.id;
		assert_int_equal(shards_of_conn(s, ci.id), flow_slice(&k) % N);
		assert_true(shards_conn(s, ci.id, NOW, &again));
		assert_true(ip_addr_eq(&again.lan_ip, &ci.lan_ip));
	}
	assert_int_equal(n, 50);
	assert_false(shards_conn(s, last + N, NOW, &ci));
	shards_destroy(s);
}

/* All have room together, and what they have counts as one. */
static void test_sums(void **state)
{
	struct shards *s = some_shards(N, &config, NOW), *one = some_shards(1, &config, NOW);
	const struct rule rule = {.name = "r", .cap = 12 << 20, .peer = PEER_NONE};
	struct engine_memory all, alone;

	(void)state;
	shards_memory(s, &all);
	shards_memory(one, &alone);
	assert_in_range(all.pool_bytes, alone.pool_bytes * 9 / 10, alone.pool_bytes);
	assert_int_equal(all.pool_most, config.pool_bytes);
	/* so few connections one pair of hosts may have alone */
	assert_int_equal(all.flows_max, N * alone.flows_max);
	/* each has sums of parity of its own */
	assert_in_range(shards_bytes(&config, N), shards_bytes(&config, 1) / 2,
			2 * shards_bytes(&config, 1) + N * PARITY_SUMS * sizeof(struct parity_sum));
	shards_rules(s, &rule, 1, NOW);
	for (unsigned int i = 0; i < N; i++)
		assert_int_equal(shards_engine(s, i)->rules[0].cap, 12 << 20);
	COUNT(shards_engine(s, 0), FAULTS);
	COUNT(shards_engine(s, 2), FAULTS);
	assert_int_equal(shards_counter(s, EC_FAULTS), 2);
	assert_int_equal(shards_custody(s, -1, NOW).packets, 0);
	assert_true(shards_may_stop(s));
	assert_null(shards_check(s));
	shards_destroy(s);
	shards_destroy(one);
}

static uint64_t sizes(const struct shards *s, uint64_t size[N])
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < N; i++)
		sum += size[i] = pool_size(shards_engine(s, i)->pool);
	return sum;
}

static void rounds(struct shards *s, unsigned int n, uint64_t now)
{
	while (n--) {
		shards_begin(s, now);
		shards_tick(s, now);
		shards_end(s, now);
	}
}

#define PACKETS 4096u

/* Fill custody of shard @i as far as it goes, a packet's length a round. */
static uint32_t load(struct shards *s, unsigned int i, struct pool_log *log, pool_loc at[PACKETS])
{
	struct pool *p = shards_engine(s, i)->pool;
	uint32_t n = 0;

	while (n < PACKETS) {
		at[n] = pool_append(p, POOL_CUSTODY, log, 32 << 10);
		if (at[n] == POOL_NONE)
			break;
		n++;
		rounds(s, 1, NOW);
	}
	return n;
}

/* One busy pair of hosts gets most of the pool, and another one its part again when there is room.
 * There is never more than the pool has. */
static void test_lends(void **state)
{
	static pool_loc at[PACKETS], other[PACKETS];
	struct engine_config c = config;
	struct pool_log log, log2;
	uint64_t size[N], all;
	struct shards *s;
	uint32_t n;

	(void)state;
	c.pool_bytes = 96 << 20;
	s = some_shards(N, &c, NOW);
	all = sizes(s, size);
	assert_int_equal(all, c.pool_bytes);
	rounds(s, 5, NOW);
	assert_int_equal(sizes(s, size), all);
	assert_true(size[0] == size[1] && size[1] == size[2]); /* nobody is short */
	pool_log_init(&log);
	n = load(s, 1, &log, at);
	assert_true(sizes(s, size) == all);
	assert_in_range(size[1], all * 8 / 10, all);
	assert_in_range(n * (32ull << 10), all / 2, all);
	/* the others have something left, and when there is room they have what they need */
	pool_log_init(&log2);
	assert_in_range(load(s, 0, &log2, other), (4 << 20) / (32 << 10), PACKETS);
	while (n > 0)
		pool_release(shards_engine(s, 1)->pool, &log, at[--n], 32 << 10);
	rounds(s, 2, NOW);
	(void)load(s, 0, &log2, other);
	assert_int_equal(sizes(s, size), all);
	assert_in_range(size[0], all / 2, all);
	for (unsigned int i = 0; i < N; i++)
		assert_true(pool_check(shards_engine(s, i)->pool));
	shards_destroy(s);
}

/* What was lost between two pools, for a process was killed, is had by whoever is short. */
static void test_lends_what_nobody_has(void **state)
{
	static pool_loc at[PACKETS];
	struct engine_config c = config;
	struct pool_log log;
	uint64_t size[N], all;
	struct shards *s;
	struct engine *e;

	(void)state;
	c.pool_bytes = 48 << 20;
	s = some_shards(N, &c, NOW);
	all = sizes(s, size);
	e = shards_engine(s, 0);
	assert_int_equal(pool_shrink(e->pool, 4 << 20), 4 << 20);
	e = shards_engine(s, 2);
	assert_int_equal(pool_shrink(e->pool, 12 << 20), 12 << 20);
	pool_log_init(&log);
	(void)load(s, 1, &log, at);
	assert_int_equal(sizes(s, size), all);
	assert_int_equal(size[1], all - (8 << 20));
	shards_destroy(s);
}

/* The system has no memory: one step is lost until it has, not more, and it is tried seldom. */
static void test_lends_in_vain(void **state)
{
	static pool_loc at[PACKETS];
	struct engine_config c = config;
	struct engine_memory m;
	struct pool_log log;
	uint64_t size[N], all;
	struct shards *s;
	struct engine *e;
	int fd;

	(void)state;
	c.pool_bytes = 48 << 20;
	s = some_shards(N, &c, NOW);
	all = sizes(s, size);
	e = shards_engine(s, 1);
	fd = e->arena.fd;
	e->arena.fd = -1;
	pool_log_init(&log);
	(void)load(s, 1, &log, at);
	rounds(s, 100, NOW + 100 * MS);
	assert_int_equal(sizes(s, size), all - (1 << 20));
	rounds(s, 100, NOW + 3000 * MS);
	shards_memory(s, &m);
	assert_int_equal(m.pool_bytes, all - (1 << 20));
	assert_int_equal(m.pool_most, all);
	assert_int_equal(shards_lacking(s), 1 << 20);
	e->arena.fd = fd;
	rounds(s, 1, NOW + 3900 * MS);
	assert_int_equal(sizes(s, size), all - (1 << 20));
	rounds(s, 100, NOW + 4100 * MS);
	assert_int_equal(sizes(s, size), all);
	assert_in_range(size[1], all / 3 + 1, all);
	assert_int_equal(shards_lacking(s), 0);
	shards_destroy(s);
}

/* Each shard has a least size: of a small pool all have more than configured, nothing lacks. */
static void test_small_pool(void **state)
{
	struct engine_config c = config;
	struct engine_memory m;
	struct shards *s;

	(void)state;
	c.pool_bytes = 8 << 20;
	s = some_shards(N, &c, NOW);
	shards_memory(s, &m);
	assert_true(m.pool_bytes > m.pool_most);
	assert_int_equal(shards_lacking(s), 0);
	rounds(s, 3, NOW);
	assert_null(shards_check(s));
	shards_destroy(s);
}

/* The cap of a rule is of all engines together. */
static void test_caps(void **state)
{
	struct shards *s = some_shards(N, &config, NOW);
	const struct rule rule[] = {{.name = "q", .peer = PEER_NONE},
				    {.name = "r", .cap = 12 << 20, .peer = PEER_NONE}};

	(void)state;
	shards_rules(s, rule, 2, NOW);
	for (unsigned int i = 0; i < N; i++)
		shards_engine(s, i)->rule_bytes[0] = shards_engine(s, i)->rule_bytes[1] = 1000 << i;
	rounds(s, 1, NOW);
	for (unsigned int i = 0; i < N; i++) {
		assert_int_equal(shards_engine(s, i)->cache.rule_others[0], 0);
		assert_int_equal(shards_engine(s, i)->cache.rule_others[1], 7000 - (1000 << i));
	}
	shards_destroy(s);
}

/* What all have sent and got over a link is the first one's, once. */
static void test_link_counts(void **state)
{
	struct shards *s = some_shards(N, &config, NOW);
	struct wan_link *k[N];
	struct link_info li;

	(void)state;
	for (unsigned int i = 0; i < N; i++)
		k[i] = &shards_engine(s, i)->link[4];
	for (unsigned int round = 1; round <= 3; round++) {
		for (unsigned int i = 0; i < N; i++) {
			k[i]->sent += 1000 + i;
			k[i]->got += 10;
			k[i]->packets += 2;
			k[i]->marked++;
		}
		shards_begin(s, NOW);
		shards_end(s, NOW);
		assert_true(shards_link_info(s, 4, &li));
		assert_int_equal(li.sent, round * 3003);
		assert_int_equal(li.got, round * 30);
		assert_int_equal(k[0]->packets, round * 6);
		assert_int_equal(li.marked, round * 3);
	}
	/* what the first one finds, all have */
	k[0]->rate.pace = 5e6;
	k[0]->heard_at = NOW;
	shards_begin(s, NOW);
	for (unsigned int i = 0; i < N; i++)
		assert_int_equal(rate_pace(&k[i]->rate), rate_pace(&k[0]->rate));
	shards_destroy(s);
}

/* A process died when one shard knew that the peer is up and another one did not. */
static void test_settles(void **state)
{
	struct shards *s = some_shards(N, &config, NOW);

	(void)state;
	engine_peer_event(shards_engine(s, 1), 3, PEER_UP, NOW);
	shards_peer_settle(s, 3, true, NOW);
	for (unsigned int i = 0; i < N; i++)
		assert_true(engine_peer_is_up(shards_engine(s, i), 3));
	engine_peer_event(shards_engine(s, 0), 3, PEER_DOWN, NOW);
	shards_peer_settle(s, 3, false, NOW);
	for (unsigned int i = 0; i < N; i++)
		assert_false(engine_peer_is_up(shards_engine(s, i), 3));
	shards_destroy(s);
}

static int64_t tokens(const struct shards *s, bool even)
{
	int64_t sum = 0, first = shards_engine(s, 0)->tokens;

	for (unsigned int i = 0; i < N; i++) {
		int64_t t = shards_engine(s, i)->tokens;

		sum += t;
		assert_true(!even || (t >= first - (int64_t)N && t <= first + (int64_t)N));
	}
	return sum;
}

/* Together they may send what the configuration says, not that each; what one has sent too much all
 * owe. */
static void test_tokens(void **state)
{
	struct engine_config c = config;
	struct shards *s;
	uint64_t now = NOW;
	int64_t had;

	(void)state;
	c.wan_rate = 10000000; /* 10 KB each millisecond, 64 KiB at once */
	s = some_shards(N, &c, now);
	for (unsigned int i = 0; i < N; i++)
		shards_engine(s, i)->tokens = i == 1 ? -90000 : 0;
	for (unsigned int ms = 0; ms < 12; ms++) {
		shards_engine(s, 2)->link[0].sent++; /* there is traffic */
		shards_begin(s, now);
		had = tokens(s, true);
		assert_in_range(had + 90000, ms * 10000, ms * 10000 + 2);
		shards_tick(s, now);
		assert_int_equal(tokens(s, true), had);
		shards_end(s, now);
		now += MS;
	}
	shards_destroy(s);
}

/* ---- what is held ---- */

struct hold_calls {
	struct shards *s;
	uint32_t freed, lqpn;
	bool early;
};

static int on_hold(void *ctx, unsigned int shard, const struct flow_key *requests, uint32_t lqpn,
		   const struct template *headers, bool on)
{
	struct hold_calls *h = ctx;

	(void)requests, (void)headers;
	h->freed += !on;
	h->lqpn = lqpn;
	h->early |= !on && shards_engine(h->s, shard)->undo->used;
	return 0;
}

/* Two flows of a pair of hosts, whose requester has the QPN @lqpn. */
static struct flow *pair(struct engine *e, uint32_t lqpn)
{
	struct flow_key k = hosts(1, 1), b = back_of(&k);
	struct flow *fl = flow_by_key(e, &k), *back;

	b.dqpn = lqpn;
	fl = fl ? fl : flow_create(e, &k, PORT_LAN);
	flow_unpair(e, fl);
	back = flow_create(e, &b, PORT_WAN);
	assert_true(flow_pair(e, fl, back, LEARNED_CM));
	return fl;
}

/* A process may die amid a batch, and the next one has the lane as it was before. So it must be
 * held until the batch has ended, unless it is held again. */
static void test_let_go(void **state)
{
	struct engine_config c = config;
	struct shards_sink sink = no_shards_sink;
	struct hold_calls h = {0};
	struct engine *e;
	struct flow *fl;

	(void)state;
	c.undo = c.fence = true;
	sink.ctx = &h;
	sink.hold = on_hold;
	h.s = shards_new(1, &sink);
	assert_true(shards_create(h.s, &c, NULL, NOW));
	e = shards_engine(h.s, 0);
	shards_tick(h.s, NOW);
	fl = pair(e, 0x22);
	lane_guard(e, fl);
	shards_tick(h.s, NOW);
	lane_unfence(e, fl);
	assert_int_equal(h.freed, 0);
	lane_guard(e, fl);
	shards_tick(h.s, NOW);
	assert_int_equal(h.freed, 0);
	lane_unfence(e, fl);
	shards_tick(h.s, NOW);
	assert_int_equal(h.freed, 1);
	assert_int_equal(h.lqpn, 0x22);
	shards_tick(h.s, NOW);
	assert_int_equal(h.freed, 1);
	assert_false(h.early);
	/* held again as another connection's: the entries of the former one must go first */
	lane_guard(e, fl);
	lane_unfence(e, fl);
	fl = pair(e, 0x23);
	lane_guard(e, fl);
	assert_int_equal(h.freed, 2);
	assert_int_equal(h.lqpn, 0x23);
	shards_tick(h.s, NOW);
	assert_int_equal(h.freed, 2);
	shards_destroy(h.s);
}

/* ---- threads ---- */

#define FRAMES 20000u

struct passing {
	struct inbox *b;
	uint32_t taken;
	bool wrong;
};

static uint8_t byte_of(uint32_t i, uint32_t at)
{
	return (uint8_t)(i * 31 + at * 7);
}

static void *put_all(void *arg)
{
	struct passing *p = arg;
	uint8_t data[FRAME_MAX];

	for (uint32_t i = 0; i < FRAMES;) {
		uint32_t len = 60 + i % 4000;

		data[0] = byte_of(i, 0);
		data[len - 1] = byte_of(i, len - 1);
		i += inbox_put(p->b, i % N, i % 2 ? PORT_WAN : PORT_LAN, data, len);
	}
	return NULL;
}

/* Another thread gets all frames, whole and in their order. */
static void test_inbox_threads(void **state)
{
	struct passing p = {.b = inbox_new()};
	pthread_t thread;

	(void)state;
	assert_non_null(p.b);
	assert_int_equal(pthread_create(&thread, NULL, put_all, &p), 0);
	while (p.taken < FRAMES) {
		for (uint32_t n = inbox_frames(p.b); n; n--, p.taken++) {
			struct inbox_frame f = inbox_first(p.b);
			uint32_t i = p.taken;

			p.wrong |= f.len != 60 + i % 4000 || f.shard != i % N ||
				   f.port != (i % 2 ? PORT_WAN : PORT_LAN) ||
				   f.data[0] != byte_of(i, 0) ||
				   f.data[f.len - 1] != byte_of(i, f.len - 1);
			inbox_done(p.b);
		}
	}
	pthread_join(thread, NULL);
	assert_false(p.wrong);
	inbox_free(p.b);
}

static void test_inbox_full(void **state)
{
	struct inbox *b = inbox_new();
	uint8_t data[FRAME_MAX + 1] = {0};

	(void)state;
	assert_false(inbox_put(b, 0, PORT_LAN, data, sizeof(data)));
	for (uint32_t i = 0; i < INBOX_FRAMES; i++) {
		assert_int_equal(inbox_room(b), INBOX_FRAMES - i);
		assert_true(inbox_put(b, 0, i % 4 ? PORT_WAN : PORT_LAN, data, 100));
	}
	assert_false(inbox_put(b, 0, PORT_LAN, data, 100));
	assert_int_equal(inbox_bytes(b, PORT_WAN), INBOX_FRAMES * 75);
	inbox_done(b);
	assert_int_equal(inbox_room(b), 1);
	assert_int_equal(inbox_bytes(b, PORT_LAN), INBOX_FRAMES * 25 - 100);
	inbox_free(b);
}

struct counts {
	uint64_t n[4];
	pthread_t thread[4];
};

static void count(void *ctx, unsigned int member)
{
	struct counts *c = ctx;

	c->n[member]++;
	c->thread[member] = pthread_self();
}

/* Each member that is to work does, once, in a thread of its own, and the caller sees it. */
static void test_team(void **state)
{
	struct counts c, want;
	struct team *t = team_start(4, count, &c);
	uint32_t rng = 1;

	(void)state;
	memset(&c, 0, sizeof(c));
	memset(&want, 0, sizeof(want));
	assert_non_null(t);
	for (int i = 0; i < 3000; i++) {
		uint32_t mask = 1 + (rng >> 8) % 15;

		rng = rng * 1103515245u + 12345u;
		team_run(t, mask);
		for (unsigned int k = 0; k < 4; k++) {
			want.n[k] += mask >> k & 1;
			assert_int_equal(c.n[k], want.n[k]);
		}
		assert_true(pthread_equal(c.thread[__builtin_ctz(mask)], pthread_self()));
	}
	team_run(t, 15);
	for (int i = 1; i < 4; i++)
		assert_false(pthread_equal(c.thread[i], c.thread[i - 1]));
	team_stop(t);
	assert_null(team_start(TEAM_MAX + 1, count, &c));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slices),
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_reports),
		cmocka_unit_test(test_connections),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_lends),
		cmocka_unit_test(test_lends_what_nobody_has),
		cmocka_unit_test(test_lends_in_vain),
		cmocka_unit_test(test_small_pool),
		cmocka_unit_test(test_caps),
		cmocka_unit_test(test_link_counts),
		cmocka_unit_test(test_tokens),
		cmocka_unit_test(test_inbox_threads),
		cmocka_unit_test(test_inbox_full),
		cmocka_unit_test(test_team),
		cmocka_unit_test(test_settles),
		cmocka_unit_test(test_let_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
