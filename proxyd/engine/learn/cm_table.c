// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The places of the connection manager's handshakes and disconnects (cm.c), as many as there may be
 * connections.
 *
 * Any host can send a REQ in any host's name, so there may be any number of them; and when a link
 * comes back, thousands of hosts connect at once. A new one takes, in this order, a place that was
 * never used; that of the oldest one which is over; of an answered one which has waited for its RTU
 * for too long; and of the oldest one without an answer. That is one of its own source host, where
 * this has a quarter of the places (hosts that share a slot of the hash share that), else the
 * oldest of all. An answered handshake is never pushed out: only the other host can answer, for the
 * REP bears the REQ's comm id and comes from the other side.
 *
 * Each place is in one list, oldest first, and in one or two chains of a hash: by comm id, and
 * while it waits for a REP by QPN. Place 0 is number 1, and 0 is none: all is zero at the
 * beginning.
 */
#include "engine/learn/cm_table.h"
#include "engine/learn/learn.h"

#include <xxhash.h>

#define CM_LEAST   1024u
#define PENDING_NS (60 * NSEC_PER_SEC)
/* Nobody is believed who says that it takes longer. */
#define LONGEST_NS (3600 * NSEC_PER_SEC)

static uint32_t places(uint32_t conns)
{
	return conns > CM_LEAST ? conns : CM_LEAST;
}

static uint32_t heads(uint32_t conns)
{
	uint32_t n = 1;

	while (n < places(conns))
		n <<= 1;
	return n;
}

uint64_t cm_table_bytes(uint32_t conns)
{
	return sizeof(struct cm_table) + (uint64_t)places(conns) * sizeof(struct cm_pending) +
	       (uint64_t)heads(conns) * CM_CHAINS * sizeof(uint32_t);
}

struct cm_table *cm_table_create(struct arena *a, uint32_t conns)
{
	struct cm_table *t = arena_alloc(a, cm_table_bytes(conns), 64);

	if (t) {
		t->size = places(conns);
		t->mask = heads(conns) - 1;
	}
	return t;
}

/* The place of number @n, to be changed; NULL for 0. */
static struct cm_pending *place(struct engine *e, uint32_t n)
{
	struct cm_pending *p = n ? &e->cm->place[n - 1] : NULL;

	if (p)
		engine_change(e, p, sizeof(*p));
	return p;
}

static uint32_t number(const struct engine *e, const struct cm_pending *p)
{
	return (uint32_t)(p - e->cm->place) + 1;
}

static uint32_t hash(const struct engine *e, const struct cm_key *k, enum cm_kind kind)
{
	struct {
		struct ip_addr src, dst;
		uint32_t vlan, id, kind, zero;
	} x = {k->src, k->dst, k->vlan, k->id, kind, 0};

	return (uint32_t)XXH3_64bits_withSeed(&x, sizeof(x), e->cfg.seed) & e->cm->mask;
}

static unsigned int chain_of(enum cm_kind kind)
{
	return kind == CM_BY_QPN;
}

static uint32_t *head(struct engine *e, const struct cm_key *k, enum cm_kind kind)
{
	struct cm_table *t = e->cm;
	uint32_t *h = (uint32_t *)&t->place[t->size];

	return &h[chain_of(kind) * (t->mask + 1) + hash(e, k, kind)];
}

/* The key by which @p is in the chain of @kind. */
static struct cm_key key_of(const struct cm_pending *p, enum cm_kind kind)
{
	struct cm_key k = p->key;

	if (kind == CM_BY_QPN)
		k.id = p->lqpn;
	return k;
}

static void chain_add(struct engine *e, struct cm_pending *p, enum cm_kind kind)
{
	struct cm_key k = key_of(p, kind);
	uint32_t *h = head(e, &k, kind);

	engine_change(e, h, sizeof(*h));
	p->chain[chain_of(kind)] = *h;
	*h = number(e, p);
}

static void chain_del(struct engine *e, struct cm_pending *p, enum cm_kind kind)
{
	struct cm_key k = key_of(p, kind);
	uint32_t *at = head(e, &k, kind), me = number(e, p);

	while (*at && *at != me)
		at = &e->cm->place[*at - 1].chain[chain_of(kind)];
	if (!*at)
		return;
	engine_change(e, at, sizeof(*at));
	*at = p->chain[chain_of(kind)];
}

static enum cm_kind kind_of(const struct cm_pending *p)
{
	return p->leaving ? CM_BY_LEAVING_ID : CM_BY_ID;
}

static bool is(const struct cm_pending *p, const struct cm_key *k, enum cm_kind kind)
{
	struct cm_key own = key_of(p, kind);

	return own.id == k->id && own.vlan == k->vlan && ip_addr_eq(&own.src, &k->src) &&
	       ip_addr_eq(&own.dst, &k->dst) && (kind == CM_BY_QPN || kind_of(p) == kind);
}

/* The first in the chain from number @n on. */
static struct cm_pending *search(struct engine *e, uint32_t n, const struct cm_key *k,
				 enum cm_kind kind)
{
	for (; n; n = e->cm->place[n - 1].chain[chain_of(kind)])
		if (e->now < e->cm->place[n - 1].until && is(&e->cm->place[n - 1], k, kind))
			return place(e, n);
	return NULL;
}

struct cm_pending *cm_find(struct engine *e, const struct cm_key *k, enum cm_kind kind)
{
	return search(e, *head(e, k, kind), k, kind);
}

struct cm_pending *cm_next(struct engine *e, struct cm_pending *p)
{
	struct cm_key k = key_of(p, CM_BY_QPN);

	return search(e, p->chain[chain_of(CM_BY_QPN)], &k, CM_BY_QPN);
}

static void list_add(struct engine *e, struct cm_pending *p, unsigned int which)
{
	struct cm_list *l = &e->cm->list[which];
	struct cm_pending *last = place(e, l->tail);

	p->list = (uint8_t)which;
	p->before = l->tail;
	p->after = 0;
	l->tail = number(e, p);
	if (last)
		last->after = l->tail;
	else
		l->head = l->tail;
	l->n++;
}

static void list_del(struct engine *e, struct cm_pending *p)
{
	struct cm_list *l = &e->cm->list[p->list];
	struct cm_pending *before = place(e, p->before), *after = place(e, p->after);

	if (before)
		before->after = p->after;
	else
		l->head = p->after;
	if (after)
		after->before = p->before;
	else
		l->tail = p->before;
	l->n--;
}

/* The list of those from the source of @k that wait for an answer. */
static unsigned int source_list(const struct engine *e, const struct cm_key *k)
{
	return LIST_WAITING +
	       (unsigned int)(XXH3_64bits_withSeed(&k->src, sizeof(k->src), e->cfg.seed) %
			      CM_SOURCES);
}

/* The one without an answer whose place a new one in the list @which takes. */
static struct cm_pending *oldest_waiting(struct engine *e, unsigned int which)
{
	struct cm_table *t = e->cm;
	uint32_t n = t->list[which].n >= t->size / 4 ? t->list[which].head : 0;

	for (unsigned int i = LIST_WAITING; i < LISTS && t->list[which].n < t->size / 4; i++) {
		uint32_t h = t->list[i].head;

		if (h && (!n || t->place[h - 1].until < t->place[n - 1].until))
			n = h;
	}
	return place(e, n);
}

static struct cm_pending *free_place(struct engine *e, const struct cm_key *k)
{
	struct cm_table *t = e->cm;
	struct cm_pending *p;

	if (t->used < t->size)
		return place(e, ++t->used);
	p = place(e, t->list[LIST_OVER].head);
	if (!p) {
		p = place(e, t->list[LIST_ANSWERED].head);
		if (!p || e->now < p->until)
			p = oldest_waiting(e, source_list(e, k));
	}
	if (!p)
		return NULL;
	cm_forget(e, p);
	list_del(e, p);
	return p;
}

struct cm_pending *cm_begin(struct engine *e, const struct cm_pending *what)
{
	struct cm_pending *p;

	engine_change(e, e->cm, sizeof(*e->cm));
	p = free_place(e, &what->key);
	if (!p) {
		COUNT(e, TABLE_FULL);
		return NULL;
	}
	*p = *what;
	p->when = e->now;
	p->until = e->now + PENDING_NS;
	list_add(e, p, source_list(e, &p->key));
	chain_add(e, p, kind_of(p));
	if (!p->leaving)
		chain_add(e, p, CM_BY_QPN);
	return p;
}

static void move(struct engine *e, struct cm_pending *p, unsigned int to)
{
	engine_change(e, e->cm, sizeof(*e->cm));
	if (!p->leaving && p->list >= LIST_WAITING && to < LIST_WAITING)
		chain_del(e, p, CM_BY_QPN);
	list_del(e, p);
	list_add(e, p, to);
}

void cm_heard(struct engine *e, struct cm_pending *p, uint64_t ns)
{
	uint64_t until = e->now + PENDING_NS + (ns < LONGEST_NS ? ns : LONGEST_NS);

	if (p->until < until)
		p->until = until;
	move(e, p, p->rep.qpn && !p->leaving ? LIST_ANSWERED : p->list);
}

void cm_over(struct engine *e, struct cm_pending *p)
{
	move(e, p, LIST_OVER);
}

void cm_forget(struct engine *e, struct cm_pending *p)
{
	if (!p->until)
		return;
	chain_del(e, p, kind_of(p));
	move(e, p, LIST_OVER);
	p->until = 0;
}
