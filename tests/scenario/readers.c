// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "tests/scenario/readers.h"

#include <stdlib.h>
#include <string.h>

#include "tests/lab/model/versions.h"
#include "tests/scenario/world.h"

#define STREAMS_MAX 8u
#define ASKED	    1024u  /* more than READs outstanding */
#define TOLD	    65536u /* more than messages under way */
/* Share of changes that the owner announces to the other host, and of messages after which it
 * changes something. */
#define P_SIGNAL    0.5
#define P_REACT	    0.5

struct stream {
	uint64_t base; /* offset in the region */
	uint32_t length, stride, range, at;
	bool random;
};

/* What the reader knew when it posted a READ. */
struct asked {
	uint64_t floor, messages;
};

/**
 * struct readers - one end of a queue pair.
 * @memory: own memory that changes
 * @told, @told_atomic: own latest change when the message, the atomic of that number was posted
 * @reacted: own latest change after the message of that number had been received
 */
struct readers {
	struct stream stream[STREAMS_MAX];
	uint32_t turn;
	bool started;
	struct asked asked[ASKED];
	struct versions *memory;
	uint64_t period, next, atomics;
	uint64_t over; /* nothing changes any more from then on, 0: not known yet */
	uint64_t told[TOLD], told_atomic[TOLD], reacted[TOLD];
};

static struct readers *get(struct world_qp *q, int side)
{
	if (!q->side[side].readers)
		q->side[side].readers = calloc(1, sizeof(struct readers));
	return q->side[side].readers;
}

/* ---- streams ---- */

static uint64_t below(struct prng *r, uint64_t n)
{
	return n ? prng_next(r) % n : 0;
}

/* Somewhere in the part of the region that the work is about; often up to its very end. */
static void stream_begin(struct world_qp *q, int side, struct stream *s)
{
	const struct work *k = &q->side[side].work;
	const struct rc_qp_config *c = rc_qp_config(q->side[side].qp);
	uint64_t from = k->changing ? c->rmr_fixed : 0;
	uint64_t size = (c->rmr_fixed && !k->changing ? c->rmr_fixed : c->rmr_size) - from, pieces;
	struct prng *r = &q->side[side].rng;

	s->length = k->stream_len < size ? k->stream_len : (uint32_t)size;
	s->random = prng_hit(r, 0.1);
	s->stride = prng_hit(r, 0.15) ? 0 : s->length * (prng_hit(r, 0.8) ? 1 : 2);
	pieces = 1 + below(r, prng_hit(r, 0.5) ? 32 : 1024);
	if (s->stride && pieces > size / s->stride)
		pieces = size / s->stride;
	if (!pieces)
		pieces = 1;
	s->range = s->stride ? (uint32_t)(pieces * s->stride) : s->length;
	if (s->range > size)
		s->range = (uint32_t)size;
	if (k->ring) {
		*s = (struct stream){.base = from,
				     .length = s->length,
				     .stride = s->length,
				     .range = (uint32_t)(size / s->length * s->length)};
		return;
	}
	s->base = from +
		  (prng_hit(r, 0.4) ? size - s->range : below(r, size - s->range + 1) & ~63ull);
	s->at = 0;
}

void readers_read(struct world_qp *q, int side, struct rc_wr *wr)
{
	struct work *k = &q->side[side].work;
	const struct rc_qp_config *c = rc_qp_config(q->side[side].qp);
	struct prng *r = &q->side[side].rng;
	struct readers *x = get(q, side);
	uint32_t n = k->streams < STREAMS_MAX ? k->streams : STREAMS_MAX;
	struct stream *s;

	if (!x->started)
		for (uint32_t i = 0; i < n; i++)
			stream_begin(q, side, &x->stream[i]);
	x->started = true;
	s = &x->stream[x->turn++ % n];
	if (prng_hit(r, k->break_p))
		stream_begin(q, side, s);
	if (s->random)
		s->at = (uint32_t)below(r, s->range - s->length + 1) & ~63u;
	wr->length = s->length;
	wr->va = c->rmr_va + s->base + s->at;
	s->at += s->stride;
	if (s->at + s->length > s->range)
		s->at = 0;
}

/* ---- memory that changes ---- */

int readers_start(struct world_qp *q, int owner, uint64_t period_ns)
{
	struct readers *x = get(q, owner);
	struct rc_qp *qp = q->side[owner].qp;
	const struct rc_qp_config *c = rc_qp_config(qp);
	struct versions_clock *clock = &q->w->changes[owner];

	if (!x || !get(q, !owner) || !c->mr_fixed || (!clock->when && versions_clock_init(clock)))
		return -1;
	versions_destroy(x->memory);
	x->memory = versions_create(clock, rc_qp_memory(qp) + c->mr_fixed, c->mr_size - c->mr_fixed,
				    q->w->cfg.seed + q->id * 2 + (uint64_t)owner);
	x->period = period_ns;
	x->next = q->w->now + period_ns;
	return x->memory ? 0 : -1;
}

void readers_exit(struct world_qp *q)
{
	for (int s = 0; s < 2; s++) {
		if (q->side[s].readers)
			versions_destroy(q->side[s].readers->memory);
		free(q->side[s].readers);
		q->side[s].readers = NULL;
	}
}

/* Mostly near to where the other host reads, ahead of it and behind. */
static void change(struct world_qp *q, int owner)
{
	struct readers *x = q->side[owner].readers, *reader = q->side[!owner].readers;
	const struct work *k = &q->side[!owner].work;
	const struct rc_qp_config *c = rc_qp_config(q->side[owner].qp);
	struct prng *r = &q->side[owner].rng;
	uint64_t blocks = versions_blocks(x->memory), block = below(r, blocks);

	if (reader->started && k->changing && prng_hit(r, 0.8)) {
		const struct stream *s = &reader->stream[prng_below(r, k->streams)];
		uint64_t at = s->at + (uint64_t)s->stride * prng_below(r, 16) + below(r, s->length);

		block = (s->base - c->mr_fixed + at % s->range) / VERSIONS_BLOCK;
	}
	versions_change(x->memory, q->w->now, (uint32_t)(block % blocks), 1 + prng_below(r, 4));
}

/* The owner tells the other host, in one of the ways there are. */
static void signal(struct world_qp *q, int owner)
{
	static const enum rc_op ops[] = {RC_SEND,      RC_SEND_IMM, RC_WRITE,
					 RC_WRITE_IMM, RC_CMP_SWAP, RC_FETCH_ADD};
	const struct rc_qp_config *c = rc_qp_config(q->side[owner].qp);
	const struct work *k = &q->side[owner].work;
	struct prng *r = &q->side[owner].rng;
	struct rc_wr wr = {
		.op = ops[prng_below(r, 6)], .length = prng_below(r, 256), .va = c->rmr_va};

	/* if it announced more than the WAN carries, its work would get no turn */
	if (!rc_qp_room(q->side[owner].qp) ||
	    (k->left && k->outstanding && rc_qp_queued(q->side[owner].qp) >= k->outstanding))
		return;
	readers_posting(q, owner, &wr);
	rc_post(q->side[owner].qp, q->w->now, &wr);
}

/* Changes go on for so long after the last READ was posted: announcements that cause announcements
 * must end. */
#define OVER_NS 2000000000ull

/* Whether there are still READs to come. */
static bool wanted(const struct world_qp *q, int owner)
{
	const struct rc_qp *reader = q->side[!owner].qp;
	const struct readers *x = q->side[owner].readers;

	return reader && q->side[owner].qp && !rc_qp_in_error(reader) &&
	       !rc_qp_in_error(q->side[owner].qp) &&
	       (q->side[!owner].work.left ||
		(rc_qp_queued(reader) && (!x->over || q->w->now < x->over)));
}

uint64_t readers_next(const struct world *w)
{
	uint64_t t = RC_NEVER;

	for (uint32_t i = 0; i < w->nqps; i++)
		for (int s = 0; s < 2; s++) {
			const struct readers *x = w->qp[i].side[s].readers;

			if (x && x->period && x->next < t && wanted(&w->qp[i], s))
				t = x->next;
		}
	return t;
}

void readers_run(struct world *w)
{
	for (uint32_t i = 0; i < w->nqps; i++)
		for (int s = 0; s < 2; s++) {
			struct world_qp *q = &w->qp[i];
			struct readers *x = q->side[s].readers;

			if (!x || !x->period || x->next > w->now || !wanted(q, s))
				continue;
			x->next = w->now + x->period;
			if (!q->side[!s].work.left && !x->over)
				x->over = w->now + OVER_NS;
			change(q, s);
			if (prng_hit(&q->side[s].rng, P_SIGNAL))
				signal(q, s);
		}
}

/* ---- what a reader may rely on ---- */

void readers_posting(struct world_qp *q, int side, const struct rc_wr *wr)
{
	struct readers *x = q->side[side].readers;
	struct world *w = q->w;
	uint64_t now = w->changes[side].latest, messages = rc_messages_posted(q->side[side].qp);

	if (!x)
		return;
	if (wr->op < RC_READ) {
		x->told[messages % TOLD] = now;
	} else if (wr->op > RC_READ) {
		x->told_atomic[x->atomics++ % TOLD] = now;
	} else if (w->changes[!side].when) {
		uint64_t old = !w->cfg.prefetch		    ? 0
			       : w->cfg.prefetch_max_age_ns ? w->cfg.prefetch_max_age_ns
							    : w->now;
		uint64_t floor = versions_clock_at(&w->changes[!side],
						   w->now - (old < w->now ? old : w->now));

		if (floor < w->known[side])
			floor = w->known[side];
		x->asked[wr->wr_id % ASKED] = (struct asked){floor, messages};
	}
}

static void know(struct world *w, int side, uint64_t change_no)
{
	if (w->known[side] < change_no)
		w->known[side] = change_no;
}

void readers_received(struct world_qp *q, int side, uint64_t number)
{
	struct readers *x = q->side[side].readers, *other = q->side[!side].readers;

	if (!x || !other)
		return;
	know(q->w, side, other->told[number % TOLD]);
	if (x->memory && wanted(q, side) && prng_hit(&q->side[side].rng, P_REACT))
		change(q, side);
	x->reacted[number % TOLD] = q->w->changes[side].latest;
}

void readers_atomic(struct world_qp *q, int side, uint64_t number)
{
	const struct readers *other = q->side[!side].readers;

	if (other)
		know(q->w, side, other->told_atomic[number % TOLD]);
}

const char *readers_check(struct world_qp *q, int side, const struct rc_read_data *d)
{
	const struct readers *x = q->side[side].readers, *owner = q->side[!side].readers;
	const struct asked *a;
	uint64_t floor;

	if (!x || !owner || !owner->memory)
		return NULL;
	a = &x->asked[d->wr_id % ASKED];
	floor = a->floor;
	if (a->messages) {
		uint64_t after = owner->reacted[(a->messages - 1) % TOLD];

		if (rc_messages(q->side[!side].qp) < a->messages)
			return "stale: a READ was answered before what was posted ahead of it was "
			       "executed";
		if (floor < after)
			floor = after;
	}
	switch (versions_check(owner->memory, d->offset - rc_qp_config(q->side[side].qp)->rmr_fixed,
			       d->data, d->len, floor)) {
	case VERSIONS_STALE:
		return "stale: a READ brought what was no longer true when it was asked for";
	case VERSIONS_WRONG:
		return "a READ brought what never was there";
	default:
		return NULL;
	}
}
