// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "shards/shards.h"

#include <stdlib.h>
#include <string.h>

#include "store/pool.h"

/** struct freed - a connection that is to be held no more. */
struct freed {
	struct flow_key requests;
	uint32_t lqpn;
};

/**
 * struct shard
 * @of, @index: whose sink it is, and which one of them
 * @freed: @nfreed in this batch, of @room at most
 */
struct shard {
	struct shards *of;
	unsigned int index;
	struct freed *freed;
	uint32_t nfreed, room;
};

struct shards {
	struct shards_sink sink;
	unsigned int n;
	bool borrowed; /* the engine is the caller's */
	struct shard shard[SHARDS_MAX];
	struct engine *engine[SHARDS_MAX];
	uint32_t expected[SHARDS_MAX]; /* connections of each, see shards_expect() */
	uint64_t lend_at;	       /* memory of the pool, not before */
	unsigned int lent;	       /* to this one last */
};

/* A round lends so much: the system needs some 0.3 ms for it. */
#define LEND_MOST     (1u << 20)
/* When the system had no memory. */
#define LEND_AGAIN_NS 1000000000u
/* One pair of hosts may have all connections, and they are not lent. */
#define CONNS_LEAST   4096u

#define shard_each(s, e)                                                                           \
	for (unsigned int k_ = 0; k_ < (s)->n; k_++)                                               \
		for (struct engine *e = (s)->engine[k_]; e; e = NULL)

/* ---- the sink of each engine ---- */

static int sink_tx(void *ctx, enum engine_port port, const uint8_t *data, uint32_t len,
		   uint32_t seal)
{
	const struct shard *sh = ctx;

	return sh->of->sink.tx(sh->of->sink.ctx, sh->index, port, data, len, seal);
}

static void sink_report(void *ctx, unsigned int peer, const struct report *r)
{
	const struct shard *sh = ctx;

	sh->of->sink.report(sh->of->sink.ctx, sh->index, peer, r);
}

static void sink_event(void *ctx, const struct engine_event *ev)
{
	const struct shard *sh = ctx;
	struct engine_event out = *ev;

	out.conn = ev->conn * sh->of->n + sh->index;
	sh->of->sink.event(sh->of->sink.ctx, sh->index, &out);
}

static int hold(const struct shard *sh, const struct flow_key *requests, uint32_t lqpn,
		const struct template *headers, bool on)
{
	return sh->of->sink.hold(sh->of->sink.ctx, sh->index, requests, lqpn, headers, on);
}

static bool free_later(struct shard *sh, const struct flow_key *requests, uint32_t lqpn)
{
	if (sh->nfreed == sh->room)
		return false;
	sh->freed[sh->nfreed++] = (struct freed){.requests = *requests, .lqpn = lqpn};
	return true;
}

/* It is held again, in the same batch. As another connection it is freed first. */
static void not_later(struct shard *sh, const struct flow_key *requests, uint32_t lqpn)
{
	for (uint32_t i = sh->nfreed; i--;) {
		struct freed f = sh->freed[i];

		if (memcmp(&f.requests, requests, sizeof(*requests)))
			continue;
		sh->freed[i] = sh->freed[--sh->nfreed];
		if (f.lqpn != lqpn)
			(void)hold(sh, requests, f.lqpn, NULL, false);
	}
}

/* A batch that does not end is undone, and the lane is held as before. So its packets must not pass
 * before the batch has ended. */
static int sink_hold(void *ctx, const struct flow_key *requests, uint32_t lqpn,
		     const struct template *headers, bool on)
{
	struct shard *sh = ctx;

	if (on)
		not_later(sh, requests, lqpn);
	else if (free_later(sh, requests, lqpn))
		return 0;
	return hold(sh, requests, lqpn, headers, on);
}

/* ---- making them ---- */

struct shards *shards_new(unsigned int n, const struct shards_sink *sink)
{
	struct shards *s = n && n <= SHARDS_MAX ? calloc(1, sizeof(*s)) : NULL;

	if (!s)
		return NULL;
	s->n = n;
	s->sink = *sink;
	for (unsigned int i = 0; i < n; i++)
		s->shard[i] = (struct shard){.of = s, .index = i};
	return s;
}

/* Of shard @i of @n, which is to have room for so many connections at least. */
static struct engine_config part_of(const struct engine_config *cfg, unsigned int n, unsigned int i,
				    const int *files, uint32_t conns)
{
	struct engine_config c = *cfg;

	c.pool_most = c.pool_bytes;
	c.pool_bytes /= n;
	c.max_conns = (c.max_conns + n - 1) / n;
	if (c.max_conns < CONNS_LEAST)
		c.max_conns = cfg->max_conns < CONNS_LEAST ? cfg->max_conns : CONNS_LEAST;
	c.max_conns = c.max_conns < conns ? conns : c.max_conns;
	c.shared = n > 1;
	c.file = files ? files[i] : 0;
	if (i)
		c.kept_bytes = 0;
	/* keys of lanes are made from it: two engines must not make the same ones */
	c.seed ^= i * 0x9e3779b97f4a7c15u;
	return c;
}

struct shards *shards_over(struct engine *e)
{
	const struct shards_sink none = {0};
	struct shards *s = e ? shards_new(1, &none) : NULL;

	if (!s)
		return NULL;
	s->engine[0] = e;
	s->borrowed = true;
	return s;
}

uint64_t shards_bytes(const struct engine_config *cfg, unsigned int n)
{
	struct engine_config c = part_of(cfg, n, 0, NULL, 0);

	return engine_bytes(&c) * n;
}

static void destroy_engines(struct shards *s)
{
	for (unsigned int i = 0; i < s->n; i++) {
		if (s->engine[i])
			engine_destroy(s->engine[i]);
		s->engine[i] = NULL;
		free(s->shard[i].freed);
		s->shard[i].freed = NULL;
		s->shard[i].nfreed = 0;
	}
}

/* Room to note all flows: a batch may unhold each of them. */
static bool room_of(struct shard *sh, const struct engine *e)
{
	struct engine_memory mem;

	engine_memory(e, &mem);
	sh->room = mem.flows_max;
	sh->freed = calloc(sh->room, sizeof(*sh->freed));
	return sh->freed;
}

static bool make(struct shards *s, const struct engine_config *cfg, const int *files,
		 uint64_t now_ns, const char **why)
{
	const struct engine_sink sink = {
		.tx = sink_tx,
		.report = sink_report,
		.event = sink_event,
		.hold = s->sink.hold ? sink_hold : NULL,
	};

	for (unsigned int i = 0; i < s->n; i++) {
		struct engine_config c = part_of(cfg, s->n, i, files, s->expected[i]);
		struct engine_sink own = sink;

		own.ctx = &s->shard[i];
		s->engine[i] = why ? engine_adopt(c.file, &c, &own, now_ns, why)
				   : engine_create(&c, &own, now_ns);
		if (!s->engine[i] || !room_of(&s->shard[i], s->engine[i])) {
			destroy_engines(s);
			return false;
		}
	}
	return true;
}

bool shards_create(struct shards *s, const struct engine_config *cfg, const int *files,
		   uint64_t now_ns)
{
	return make(s, cfg, files, now_ns, NULL);
}

bool shards_adopt(struct shards *s, const struct engine_config *cfg, const int *files,
		  uint64_t now_ns, const char **why)
{
	return make(s, cfg, files, now_ns, why);
}

void shards_destroy(struct shards *s)
{
	if (s && !s->borrowed)
		destroy_engines(s);
	free(s);
}

unsigned int shards_n(const struct shards *s)
{
	return s->n;
}

/* ---- whose something is ---- */

static unsigned int of_pair(const struct shards *s, const struct ip_addr *a,
			    const struct ip_addr *b)
{
	struct flow_key k = {.src = *a, .dst = *b};

	return s->n > 1 ? flow_slice(&k) % s->n : 0;
}

void shards_expect(struct shards *s, const struct flow_key *requests)
{
	s->expected[of_pair(s, &requests->src, &requests->dst)]++;
}

unsigned int shards_of_frame(const struct shards *s, const uint8_t *data, uint32_t len)
{
	struct ip_addr src, dst;

	return s->n > 1 && frame_hosts(data, len, &src, &dst) ? of_pair(s, &src, &dst) : 0;
}

unsigned int shards_of_conn(const struct shards *s, uint32_t conn)
{
	return conn % s->n;
}

static unsigned int of_report(const struct shards *s, const struct report *r)
{
	if (r->type == REPORT_METER)
		return 0;
	if (r->type == REPORT_OPEN && r->offer)
		return of_pair(s, &r->key.src, &r->key.dst);
	return (r->lane >> (r->type == REPORT_ORDER ? LOG_SLICE : LANE_SLICE)) % SLICES % s->n;
}

static struct engine *by_key(const struct shards *s, const struct flow_key *k)
{
	return s->engine[of_pair(s, &k->src, &k->dst)];
}

struct engine *shards_engine(const struct shards *s, unsigned int shard)
{
	return s->engine[shard];
}

/* ---- the round ---- */

void shards_begin(struct shards *s, uint64_t now_ns)
{
	if (s->n > 1)
		engine_follow(s->engine, s->n, now_ns);
}

uint64_t shards_lacking(const struct shards *s)
{
	struct engine_memory m;

	shards_memory(s, &m);
	/* each has a least size, so all may have more; and sizes are rounded down */
	return m.pool_most >= m.pool_bytes + POOL_BLOCK ? m.pool_most - m.pool_bytes : 0;
}

/* Shard @i is short of memory: it gets some that is lacking everywhere, else of the shard that can
 * spare most. */
static void lend(struct shards *s, unsigned int i, const struct engine_memory *m, uint64_t now_ns)
{
	struct engine *from = NULL;
	uint64_t lacking = shards_lacking(s), spare = lacking;

	for (unsigned int k = 0; k < s->n && !lacking; k++) {
		if (k == i || m[k].pool_spare <= spare)
			continue;
		from = s->engine[k];
		spare = m[k].pool_spare;
	}
	spare = spare < LEND_MOST ? spare : LEND_MOST;
	if (spare && !engine_lend(from, s->engine[i], spare, now_ns))
		s->lend_at = now_ns + LEND_AGAIN_NS;
}

/* In each round one shard that is short gets memory, all in turn. */
static void lend_pool(struct shards *s, uint64_t now_ns)
{
	struct engine_memory m[SHARDS_MAX];

	if (now_ns < s->lend_at)
		return;
	for (unsigned int i = 0; i < s->n; i++)
		engine_memory(s->engine[i], &m[i]);
	for (unsigned int k = 1; k <= s->n; k++) {
		unsigned int i = (s->lent + k) % s->n;

		if (!m[i].pool_short)
			continue;
		lend(s, i, m, now_ns);
		s->lent = i;
		return;
	}
}

void shards_end(struct shards *s, uint64_t now_ns)
{
	if (s->n == 1)
		return;
	lend_pool(s, now_ns);
	engine_caps(s->engine, s->n);
	engine_follow(s->engine, s->n, now_ns);
	engine_meter(s->engine[0], now_ns);
}

void shards_report(struct shards *s, unsigned int peer, const struct report *r,
		   const struct engine_box *box, uint64_t now_ns)
{
	struct engine *e = s->engine[of_report(s, r)];

	engine_box(e, box);
	engine_rx_report(e, peer, r, now_ns);
}

void shard_tick(struct shards *s, unsigned int shard, uint64_t now_ns)
{
	struct shard *sh = &s->shard[shard];

	engine_tick(s->engine[shard], now_ns);
	while (sh->nfreed) {
		const struct freed *f = &sh->freed[--sh->nfreed];

		(void)hold(sh, &f->requests, f->lqpn, NULL, false);
	}
}

void shards_tick(struct shards *s, uint64_t now_ns)
{
	for (unsigned int i = 0; i < s->n; i++)
		shard_tick(s, i, now_ns);
}

uint64_t shards_deadline(const struct shards *s)
{
	uint64_t first = UINT64_MAX, t;

	shard_each (s, e) {
		t = engine_deadline(e);
		first = t < first ? t : first;
	}
	return first;
}

/* ---- connections by number ---- */

static bool conn_from(struct shards *s, unsigned int shard, uint32_t from, uint64_t now_ns,
		      struct conn_info *out)
{
	if (!engine_conn_next(s->engine[shard], from, now_ns, out))
		return false;
	out->id = out->id * s->n + shard;
	return true;
}

bool shards_conn_next(struct shards *s, uint32_t from, uint64_t now_ns, struct conn_info *out)
{
	struct conn_info ci;
	bool found = false;

	for (unsigned int i = 0; i < s->n; i++) {
		/* the first number of this shard that is not below @from */
		uint32_t own = from / s->n + (from % s->n > i);

		if (!conn_from(s, i, own, now_ns, &ci) || (found && ci.id >= out->id))
			continue;
		*out = ci;
		found = true;
	}
	return found;
}

bool shards_conn(struct shards *s, uint32_t conn, uint64_t now_ns, struct conn_info *out)
{
	return conn_from(s, conn % s->n, conn / s->n, now_ns, out) && out->id == conn;
}

/* ---- all of them ---- */

int shards_lock(const struct shards *s)
{
	int rc = 0;

	shard_each (s, e)
		rc = rc ? rc : engine_lock(e);
	return rc;
}

void shards_huge(const struct shards *s)
{
	shard_each (s, e)
		engine_huge(e);
}

void *shards_kept(const struct shards *s)
{
	return engine_kept(s->engine[0]);
}

void shards_stood_still(struct shards *s, uint64_t since, uint64_t now_ns)
{
	shard_each (s, e)
		engine_stood_still(e, since, now_ns);
}

uint64_t shards_left_at(const struct shards *s)
{
	uint64_t last = 0;

	shard_each (s, e)
		last = engine_left_at(e) > last ? engine_left_at(e) : last;
	return last;
}

bool shards_holds(struct shards *s, const struct flow_key *requests)
{
	return engine_holds(by_key(s, requests), requests);
}

void shards_hush(struct shards *s, uint64_t now_ns)
{
	shard_each (s, e)
		engine_hush(e, now_ns);
}

uint64_t shards_taken_at(const struct shards *s)
{
	uint64_t last = 0;

	shard_each (s, e)
		last = engine_taken_at(e) > last ? engine_taken_at(e) : last;
	return last;
}

void shards_go_on(struct shards *s, uint64_t now_ns)
{
	shard_each (s, e)
		engine_go_on(e, now_ns);
}

void shards_rules(struct shards *s, const struct rule *rules, unsigned int n, uint64_t now_ns)
{
	shard_each (s, e)
		engine_rules(e, rules, n, now_ns);
}

void shards_limits(struct shards *s, const struct engine_config *cfg, uint64_t now_ns)
{
	shard_each (s, e)
		engine_limits(e, cfg, now_ns);
}

void shards_peer_features(struct shards *s, unsigned int peer, uint32_t features)
{
	shard_each (s, e)
		engine_peer_features(e, peer, features);
}

void shards_peer_rtt(struct shards *s, unsigned int peer, uint64_t rtt_ns)
{
	shard_each (s, e)
		engine_peer_rtt(e, peer, rtt_ns);
}

void shards_peer_event(struct shards *s, unsigned int peer, enum peer_event ev, uint64_t now_ns)
{
	shard_each (s, e)
		engine_peer_event(e, peer, ev, now_ns);
}

void shards_peer_settle(struct shards *s, unsigned int peer, bool up, uint64_t now_ns)
{
	shard_each (s, e)
		if (engine_peer_is_up(e, peer) != up)
			engine_peer_event(e, peer, up ? PEER_UP : PEER_DOWN, now_ns);
}

void shards_peer_forget(struct shards *s, unsigned int peer, uint64_t now_ns)
{
	shard_each (s, e)
		engine_peer_forget(e, peer, now_ns);
}

bool shards_peer_is_up(const struct shards *s, unsigned int peer)
{
	return engine_peer_is_up(s->engine[0], peer);
}

void shards_drain(struct shards *s, uint64_t now_ns)
{
	shard_each (s, e)
		engine_drain(e, now_ns);
}

uint32_t shards_give_up(struct shards *s, uint64_t now_ns)
{
	uint32_t failing = 0;

	shard_each (s, e)
		failing += engine_give_up(e, now_ns);
	return failing;
}

bool shards_may_stop(struct shards *s)
{
	shard_each (s, e)
		if (!engine_may_stop(e))
			return false;
	return true;
}

bool shards_bypass(struct shards *s, enum bypass what, uint32_t index, bool on, uint64_t now_ns)
{
	bool done = false;

	if (what == BYPASS_CONN)
		return engine_bypass(s->engine[index % s->n], what, index / s->n, on, now_ns);
	shard_each (s, e)
		done |= engine_bypass(e, what, index, on, now_ns);
	return done;
}

uint32_t shards_bypassed(const struct shards *s)
{
	uint32_t n = 0;

	shard_each (s, e)
		n += engine_bypassed(e);
	return n;
}

void shards_bypass_rules(struct shards *s, uint64_t rules, uint64_t now_ns)
{
	shard_each (s, e)
		engine_bypass_rules(e, rules, now_ns);
}

bool shards_release(struct shards *s, uint32_t conn, uint64_t now_ns)
{
	return engine_release(s->engine[conn % s->n], conn / s->n, now_ns);
}

bool shards_fail_orphan(struct shards *s, const struct flow_key *requests, uint32_t lqpn,
			const struct template *headers, uint64_t now_ns)
{
	return engine_fail_orphan(by_key(s, requests), requests, lqpn, headers, now_ns);
}

struct ledger shards_custody(struct shards *s, int rule, uint64_t now_ns)
{
	struct ledger sum = {0};

	shard_each (s, e) {
		struct ledger l = engine_custody(e, rule, now_ns);

		sum.messages += l.messages;
		sum.packets += l.packets;
		sum.bytes += l.bytes;
		sum.oldest_ns = l.oldest_ns > sum.oldest_ns ? l.oldest_ns : sum.oldest_ns;
	}
	return sum;
}

uint64_t shards_counter(const struct shards *s, enum engine_counter c)
{
	uint64_t n = 0;

	shard_each (s, e)
		n += engine_counter(e, c);
	return n;
}

void shards_memory(const struct shards *s, struct engine_memory *out)
{
	struct engine_memory sum = {0}, m;

	shard_each (s, e) {
		engine_memory(e, &m);
		sum.pool_bytes += m.pool_bytes;
		sum.pool_most = m.pool_most;
		sum.custody_used += m.custody_used;
		sum.custody_cap += m.custody_cap;
		sum.transit_used += m.transit_used;
		sum.transit_cap += m.transit_cap;
		sum.flows += m.flows;
		sum.flows_max += m.flows_max;
		sum.conns += m.conns;
		sum.lane_bytes = m.lane_bytes;
	}
	*out = sum;
}

bool shards_link_info(const struct shards *s, unsigned int peer, struct link_info *out)
{
	return engine_link_info(s->engine[0], peer, out);
}

const char *shards_check(struct shards *s)
{
	const char *broken = NULL;

	shard_each (s, e)
		broken = broken ? broken : engine_check(e);
	return broken;
}
