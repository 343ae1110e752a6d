// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See world_ring.h. */
#include "tests/scenario/world_ring.h"

#include <stdlib.h>
#include <string.h>

#include "tests/lab/model/pattern.h"
#include "tests/scenario/world_priv.h"
#include "wire/psn.h"

#define ALL	   ((1u << RING_HOSTS) - 1)
/* Messages under way in a channel; a ring's are twice as long. */
#define SLOTS_RING 4u
#define SLOTS_TREE 8u
/* What is known of as many, those that a sender was told are done among them. */
#define NOTES	   32u
#define CREDITS	   256u
#define CREDIT_LEN 64u
#define LAST_STEP  (2 * RING_HOSTS - 2)
/* Between two hosts of a site. */
#define LOCAL_NS   5000u

/* What a message has: the sum of the hosts of @mask, from word @first on. */
struct note {
	uint64_t first;
	uint32_t words, mask;
};

/*
 * One way of a channel from a host to the next, numbers of messages counted from 0:
 * @produced: the sender's buffer has it; @posted; @done: it was told so, and its slot is free
 * @told:    @flag_apart: the flag is posted
 * @arrived, @consumed: by the receiver; @granted: credits
 * @wan:     over queue pairs from side @from; else the receiver reads the sender's buffer, @due
 */
struct edge {
	struct ring *r;
	bool wan;
	int from;
	struct world_qp *qp[RING_QPS + 1];
	uint64_t produced, posted, told, done, arrived, consumed, granted;
	struct note note[NOTES];
	uint64_t due[NOTES];
	uint64_t *send;
	uint8_t credit[CREDITS][CREDIT_LEN];
};

/* What a host does next in a channel: message @slice of @step with the chunks at @offset. */
struct program {
	uint64_t offset, left, chunk;
	uint32_t step, slice;
};

struct ring {
	struct world *w;
	struct ring_config cfg;
	uint32_t slots, slot_words, part_bytes;
	struct edge edge[RING_CHANNELS][RING_HOSTS];
	struct program program[RING_CHANNELS][RING_HOSTS];
	struct edge *of[WORLD_QPS];
	uint64_t *scratch, base, early_flags, wrong;
};

void ring_defaults(struct ring_config *c)
{
	*c = (struct ring_config){.channels = 2, .qps = 4, .buffer = 4u << 20, .timeout_exp = 20};
}

/* ---- content ---- */

static uint64_t sum_key(uint32_t mask)
{
	uint64_t key = 0;

	for (uint32_t h = 0; h < RING_HOSTS; h++)
		if (mask & 1u << h)
			key += splitmix64(h + 1);
	return key;
}

static void add(uint64_t *to, uint32_t mask, uint64_t first, uint32_t words)
{
	uint64_t step = PATTERN_STEP * (uint64_t)__builtin_popcount(mask);
	uint64_t v = sum_key(mask) + first * step;

	for (uint32_t i = 0; i < words; i++)
		to[i] += v + i * step;
}

static uint64_t differ(const uint64_t *is, uint32_t mask, uint64_t first, uint32_t words)
{
	uint64_t step = PATTERN_STEP * (uint64_t)__builtin_popcount(mask);
	uint64_t v = sum_key(mask) + first * step, n = 0;

	for (uint32_t i = 0; i < words; i++)
		n += is[i] != v + i * step;
	return n;
}

/* ---- messages ---- */

static uint64_t *send_slot(const struct edge *e, uint64_t n)
{
	return e->send + n % e->r->slots * e->r->slot_words;
}

/* Part @k of message @n in the receiver's memory. */
static uint64_t *part(const struct edge *e, uint32_t k, uint64_t n)
{
	uint8_t *mem = rc_qp_memory(e->qp[k]->side[!e->from].qp);

	return (uint64_t *)(mem + n % e->r->slots * e->r->part_bytes);
}

static void take(const struct edge *e, uint64_t *to)
{
	uint32_t words = e->note[e->consumed % NOTES].words, qps = e->r->cfg.qps;

	if (!e->wan) {
		memcpy(to, send_slot(e, e->consumed), words * 8ull);
		return;
	}
	for (uint32_t k = 0; k < qps; k++)
		memcpy(to + k * (words / qps), part(e, k, e->consumed), words / qps * 8ull);
}

/* A flag of message @n has come: part @k must be there. What is not is counted once: it is put in,
 * so that it spoils nothing else. */
static void check_part(struct edge *e, uint32_t k, uint64_t n)
{
	const struct note *t = &e->note[n % NOTES];
	uint32_t words = t->words / e->r->cfg.qps;
	uint64_t first = t->first + (uint64_t)k * words, *is = part(e, k, n);

	if (!differ(is, t->mask, first, words))
		return;
	e->r->early_flags++;
	memset(is, 0, words * 8ull);
	add(is, t->mask, first, words);
}

static void received(struct world *w, struct world_qp *q, int side)
{
	struct ring *r = w->user;
	struct edge *e = r->of[q->id];
	uint64_t n = rc_messages(q->side[side].qp);
	uint32_t k = 0;

	w->pause_at = w->finished;
	if (side == e->from)
		return; /* a credit */
	while (e->qp[k] != q)
		k++;
	if (!r->cfg.flag_apart && n % 2 == 0)
		check_part(e, k, n / 2 - 1);
	if (r->cfg.flag_apart && k == r->cfg.qps)
		for (uint32_t i = 0; i < r->cfg.qps; i++)
			check_part(e, i, n - 1);
}

static bool post(struct edge *e, uint32_t k, int side, struct rc_wr wr)
{
	struct rc_qp *qp = e->qp[k]->side[side].qp;

	wr.va += rc_qp_config(qp)->rmr_va;
	return !rc_post(qp, e->r->w->now, &wr);
}

static bool has_credit(const struct edge *e)
{
	const uint8_t *mem = rc_qp_memory(e->qp[0]->side[e->from].qp);
	uint64_t is;

	memcpy(&is, mem + e->r->slots * e->r->part_bytes + e->posted % CREDITS * CREDIT_LEN,
	       sizeof(is));
	return is == e->posted + 1;
}

static bool post_flag(struct edge *e, uint32_t k)
{
	return post(e, k, e->from, (struct rc_wr){.op = RC_WRITE_IMM, .imm = (uint32_t)e->posted});
}

static void post_message(struct edge *e)
{
	uint64_t n = e->posted, *from = send_slot(e, n);
	uint32_t qps = e->r->cfg.qps, words = e->note[n % NOTES].words / qps;

	for (uint32_t k = 0; k < qps; k++) {
		post(e, k, e->from,
		     (struct rc_wr){.op = RC_WRITE,
				    .length = words * 8,
				    .va = n % e->r->slots * e->r->part_bytes,
				    .unsignaled = !e->r->cfg.flag_apart,
				    .data = (uint8_t *)(from + k * words)});
		if (!e->r->cfg.flag_apart)
			post_flag(e, k);
	}
	e->posted++;
}

/* Messages of which every part has so many requests completed, or executed at the other end. */
static uint64_t least(const struct edge *e, bool executed, uint32_t each)
{
	uint64_t n = UINT64_MAX;

	for (uint32_t k = 0; k < e->r->cfg.qps; k++)
		n = min64(n, executed ? rc_messages(e->qp[k]->side[!e->from].qp)
				      : e->qp[k]->side[e->from].ok);
	return n / each;
}

static void run_wan(struct edge *e)
{
	uint32_t apart = e->r->cfg.qps;

	while (e->posted < e->produced && has_credit(e))
		post_message(e);
	if (e->r->cfg.flag_apart) {
		for (uint64_t n = least(e, false, 1); e->told < n; e->told++)
			post_flag(e, apart);
		e->done = e->qp[apart]->side[e->from].ok;
		e->arrived = rc_messages(e->qp[apart]->side[!e->from].qp);
	} else {
		e->done = least(e, false, 2);
		e->arrived = least(e, true, 2);
	}
	for (; e->granted < e->consumed + e->r->slots; e->granted++) {
		uint64_t at = e->granted % CREDITS, number = e->granted + 1;

		memcpy(e->credit[at], &number, sizeof(number));
		if (!post(e, 0, !e->from,
			  (struct rc_wr){.op = RC_WRITE,
					 .length = CREDIT_LEN,
					 .va = e->r->slots * e->r->part_bytes + at * CREDIT_LEN,
					 .data = e->credit[at]}))
			return;
	}
}

/* The time when the next message of a way within a site comes. */
static uint64_t run_local(struct edge *e)
{
	uint64_t now = e->r->w->now, bps = e->r->w->cfg.lan.rate_bps;

	for (; e->posted < e->produced; e->posted++) {
		uint64_t from = e->posted ? e->due[(e->posted - 1) % NOTES] - LOCAL_NS : 0;

		e->due[e->posted % NOTES] =
			(from > now ? from : now) + LOCAL_NS +
			e->note[e->posted % NOTES].words * 64ull * 1000 * MS / bps;
	}
	while (e->arrived < e->posted && e->due[e->arrived % NOTES] <= now)
		e->arrived++;
	e->done = e->consumed;
	return e->arrived < e->posted ? e->due[e->arrived % NOTES] : UINT64_MAX;
}

/* ---- programs ---- */

static bool can_take(const struct edge *e)
{
	return e->consumed < e->arrived;
}

static bool can_make(const struct edge *e)
{
	return e->produced - e->done < e->r->slots;
}

/* One message more: of @in, or NULL, with the words of the hosts of @own, to @out, or NULL. */
static void move(struct ring *r, struct edge *in, struct edge *out, struct note t, uint32_t own)
{
	uint64_t *to = out ? send_slot(out, out->produced) : r->scratch;

	if (in) {
		r->wrong += in->note[in->consumed % NOTES].first != t.first;
		t.mask = in->note[in->consumed % NOTES].mask;
		take(in, to);
		in->consumed++;
	} else {
		memset(to, 0, t.words * 8ull);
	}
	add(to, own, t.first, t.words);
	t.mask |= own;
	if (t.mask == ALL)
		r->wrong += differ(to, ALL, t.first, t.words);
	if (out)
		out->note[out->produced++ % NOTES] = t;
}

/* Chunks of half a buffer, and less where there is not so much left; two messages each. */
static void next_chunks(const struct ring *r, struct program *p)
{
	uint64_t even = p->left / RING_HOSTS, most = r->cfg.buffer / 2 / 8;

	p->chunk = even < most ? even : most;
	p->step = p->slice = 0;
}

static bool ring_step(struct ring *r, uint32_t c, uint32_t h)
{
	struct program *p = &r->program[c][h];
	struct edge *in = p->step > 0 ? &r->edge[c][(h + RING_HOSTS - 1) % RING_HOSTS] : NULL;
	struct edge *out = p->step < LAST_STEP ? &r->edge[c][h] : NULL;
	uint32_t chunk = (h + 2 * RING_HOSTS - 1 - p->step) % RING_HOSTS;
	struct note t = {.words = (uint32_t)p->chunk / 2};

	if (!p->left || (in && !can_take(in)) || (out && !can_make(out)))
		return false;
	t.first = r->base + p->offset + chunk * p->chunk + p->slice * t.words;
	move(r, in, out, t, p->step < RING_HOSTS ? 1u << h : 0);
	if (++p->slice < 2)
		return true;
	p->slice = 0;
	if (++p->step <= LAST_STEP)
		return true;
	p->offset += p->chunk * RING_HOSTS;
	p->left -= p->chunk * RING_HOSTS;
	next_chunks(r, p);
	return true;
}

/* @part: 0 sends the sum of its site, 1 the total, 2 gets that. */
static bool tree_step(struct ring *r, uint32_t c, uint32_t part)
{
	struct program *p = &r->program[c][part];
	uint32_t up = c % 2, site[2] = {3, 12};
	struct edge *in = !part ? NULL : &r->edge[c][(part == 1) == (up == 0) ? 1 : 3];
	struct edge *out = part == 2 ? NULL : &r->edge[c][(part == 0) == (up == 0) ? 1 : 3];
	struct note t = {.first = r->base + p->offset, .words = (uint32_t)p->chunk};

	if (part > 2 || !p->left || (in && !can_take(in)) || (out && !can_make(out)))
		return false;
	move(r, in, out, t, part == 2 ? 0 : site[part == 0 ? up : !up]);
	p->offset += p->chunk;
	p->left -= p->chunk;
	return true;
}

static uint64_t run_channel(struct ring *r, uint32_t c)
{
	uint64_t next = UINT64_MAX;
	bool more = true;

	while (more) {
		more = false;
		next = UINT64_MAX;
		for (uint32_t h = 0; h < RING_HOSTS; h++)
			if (r->edge[c][h].wan)
				run_wan(&r->edge[c][h]);
			else
				next = min64(next, run_local(&r->edge[c][h]));
		for (uint32_t h = 0; h < RING_HOSTS; h++)
			more |= r->cfg.tree ? tree_step(r, c, h) : ring_step(r, c, h);
	}
	return next;
}

/* ---- all of it ---- */

static bool alive(const struct ring *r)
{
	for (uint32_t i = 0; i < r->w->nqps; i++)
		for (int s = 0; s < 2; s++)
			if (r->w->qp[i].up && rc_qp_in_error(r->w->qp[i].side[s].qp))
				return false;
	return !r->w->violation;
}

static void begin(struct ring *r, uint64_t words)
{
	uint64_t each = words / r->cfg.channels;

	r->base += 1ull << 32; /* nothing of the last one is right in this one */
	for (uint32_t c = 0; c < r->cfg.channels; c++)
		for (uint32_t h = 0; h < RING_HOSTS - r->cfg.tree; h++) {
			struct program *p = &r->program[c][h];

			*p = (struct program){.offset = c * each, .left = each};
			next_chunks(r, p);
			if (r->cfg.tree)
				p->chunk = min64(each / 8, r->cfg.buffer / 8 / 8);
		}
}

static bool finished(const struct ring *r)
{
	for (uint32_t c = 0; c < r->cfg.channels; c++)
		for (uint32_t h = 0; h < RING_HOSTS; h++)
			if (r->program[c][h].left)
				return false;
	return true;
}

uint64_t ring_reduce(struct ring *r, uint64_t bytes, uint64_t until)
{
	struct world *w = r->w;
	uint64_t from = w->now;

	begin(r, bytes / 8);
	while (alive(r) && w->now < until) {
		uint64_t next = until;

		for (uint32_t c = 0; c < r->cfg.channels; c++)
			next = min64(next, run_channel(r, c));
		if (finished(r))
			return w->now - from;
		w->pause_at = w->finished + 1;
		world_run(w, next);
	}
	return 0;
}

/* @side 0's end of queue pair @i of all; @h: the host that sends its data. */
static struct world_qp *connect(struct ring *r, uint32_t i, uint32_t h)
{
	struct rc_qp_config qc;

	rc_qp_defaults(&qc, RC_STRICT);
	qc.lqpn = 0x100 + i * 3;
	qc.rqpn = 0x900 + i * 5;
	if (r->cfg.psns != RING_PSN_0) {
		qc.sq_psn = (uint32_t)splitmix64(i * 7 + r->w->cfg.seed) & PSN_MASK;
		qc.rq_psn = (uint32_t)splitmix64(i * 11 + 5 + r->w->cfg.seed) & PSN_MASK;
	} else {
		qc.sq_psn = qc.rq_psn = 0;
	}
	ip_addr_parse(h == 1 ? "10.1.0.2" : "10.1.0.1", &qc.src);
	ip_addr_parse(h == 1 ? "10.2.0.1" : "10.2.0.2", &qc.dst);
	qc.mtu = 4096;
	qc.depth = 512;
	qc.timeout_exp = r->cfg.timeout_exp;
	qc.mr_size = qc.rmr_size = r->slots * r->part_bytes + CREDITS * CREDIT_LEN;
	qc.shadow = false;
	qc.no_verify = true;
	qc.journal = 1024;
	return r->cfg.psns == RING_CM ? world_connect_cm(r->w, &qc, RC_STRICT)
				      : world_connect(r->w, &qc, RC_STRICT);
}

static void make_edge(struct ring *r, uint32_t c, uint32_t h)
{
	struct edge *e = &r->edge[c][h];

	e->r = r;
	e->wan = h % 2;
	e->from = h == 3;
	e->send = calloc(r->slots, r->slot_words * 8ull);
	for (uint32_t k = 0; e->wan && k < r->cfg.qps + r->cfg.flag_apart; k++) {
		e->qp[k] = connect(r, r->w->nqps, h);
		r->of[e->qp[k]->id] = e;
		while (!e->qp[k]->up)
			world_run(r->w, r->w->now + 10000);
	}
}

struct ring *ring_create(struct world *w, const struct ring_config *c)
{
	struct ring *r = calloc(1, sizeof(*r));

	r->w = w;
	r->cfg = *c;
	r->slots = c->tree ? SLOTS_TREE : SLOTS_RING;
	r->slot_words = c->buffer / 8 / r->slots;
	r->part_bytes = r->slot_words * 8 / c->qps;
	r->scratch = calloc(r->slot_words, 8);
	w->finished++; /* so that it can be waited for a message before anything is completed */
	w->user = r;
	w->received = received;
	for (uint32_t i = 0; i < c->channels; i++)
		for (uint32_t h = 0; h < RING_HOSTS; h++)
			make_edge(r, i, h);
	return r;
}

void ring_destroy(struct ring *r)
{
	for (uint32_t c = 0; c < r->cfg.channels; c++)
		for (uint32_t h = 0; h < RING_HOSTS; h++)
			free(r->edge[c][h].send);
	free(r->scratch);
	free(r);
}

uint64_t ring_early_flags(const struct ring *r)
{
	return r->early_flags;
}

uint64_t ring_wrong(const struct ring *r)
{
	return r->wrong;
}

bool ring_held(const struct ring *r)
{
	for (uint32_t i = 0; i < r->w->nqps; i++)
		for (int s = 0; s < 2; s++) {
			struct lane_info l;

			/* only the first queue pair of a channel has credits */
			if (s != r->of[i]->from && &r->w->qp[i] != r->of[i]->qp[0])
				continue;
			if (!world_lane(&r->w->qp[i], s, &l) || l.state != LANE_HELD)
				return false;
		}
	return true;
}
