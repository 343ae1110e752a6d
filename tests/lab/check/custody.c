// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the near LAN tells about custody: which ACKs the appliance made, when custody began and
 * ended, and whether anything of the true responder's came through meanwhile.
 */
#include <stdlib.h>

#include "tests/lab/check/view.h"
#include "wire/psn.h"

#define WRONG(v, rule, e, ...) judge_violation((v)->j, rule, (v)->t, e, (int)(v)->flow, __VA_ARGS__)

static uint64_t key_of(const struct event *e)
{
	return (uint64_t)e->psn << 32 | (uint64_t)e->msn << 8 | e->syndrome;
}

static int by_key(const void *a, const void *b)
{
	const struct twin *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->t < y->t ? -1 : x->t > y->t;
}

/* The first of the sorted @r with @key, or where it would be. */
static uint32_t first_at(const struct twin *r, uint32_t n, uint64_t key)
{
	uint32_t lo = 0, hi = n;

	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (r[mid].key < key)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static uint64_t request_key(const struct event *e)
{
	return e->digest ^ (uint64_t)e->psn << 40;
}

/* The lane's requests in @t, sorted. */
static struct twin *requests_of(const struct view *v, const struct trace *t, uint32_t *n)
{
	struct twin *r = NULL;
	uint32_t cap = 0;

	*n = 0;
	for (uint32_t i = 0; i < t->n; i++) {
		const struct event *e = &t->ev[i];

		if (e->kind != EVENT_REQUEST || e->flow != v->flow)
			continue;
		r = grow(r, *n, &cap, sizeof(*r));
		r[(*n)++] = (struct twin){.key = request_key(e), .t = e->t};
	}
	if (*n)
		qsort(r, *n, sizeof(*r), by_key);
	return r;
}

/* What was sent twice cannot be told apart. */
static bool only_one(const struct twin *r, uint32_t n, uint32_t i)
{
	return i < n && (!i || r[i - 1].key != r[i].key) &&
	       (i + 1 == n || r[i + 1].key != r[i].key);
}

/*
 * How far @from's clock is ahead of the view's, the way included: the least that a request of the
 * lane took from one capture to the other. qemu's captures count from another start than the
 * kernel's.
 */
static int64_t clock_ahead(const struct view *v, const struct trace *from)
{
	uint32_t here, there;
	struct twin *a = requests_of(v, v->t, &here), *b = requests_of(v, from, &there);
	int64_t least = INT64_MAX;

	for (uint32_t i = 0; i < here; i++) {
		uint32_t at = first_at(b, there, a[i].key);

		if (only_one(a, here, i) && only_one(b, there, at) && b[at].key == a[i].key &&
		    (int64_t)(b[at].t - a[i].t) < least)
			least = (int64_t)(b[at].t - a[i].t);
	}
	free(a);
	free(b);
	return least == INT64_MAX ? 0 : least;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

void view_repairs(struct view *v, const struct trace *from)
{
	int64_t ahead = clock_ahead(v, from);
	uint32_t end = 0;
	bool any = false;

	for (uint32_t i = 0; i < from->n; i++) {
		const struct event *e = &from->ev[i];

		if (e->kind != EVENT_REQUEST || e->flow != v->flow)
			continue;
		if (any && psn_before(e->psn, end)) {
			v->again = grow(v->again, v->nagain, &v->again_cap, sizeof(*v->again));
			v->again[v->nagain++] = e->t - (uint64_t)ahead;
		} else {
			end = psn_add(e->psn, 1);
			any = true;
		}
	}
	if (v->nagain)
		qsort(v->again, v->nagain, sizeof(*v->again), by_number);
}

static bool repaired_lately(const struct view *v, uint64_t t)
{
	uint32_t lo = 0, hi = v->nagain;

	if (v->j->cfg->pass_repeats && v->j->parity)
		return true; /* what was made from parity comes again when it was only late */
	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (v->again[mid] <= t)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && t - v->again[lo - 1] <= v->j->cfg->grace_ns;
}

void view_twins(struct view *v, const struct trace *from, bool lenient, bool far_lan)
{
	int partner = v->j->flow[v->flow].partner;
	/* on the far LAN the way counts too, and there it must not be taken out */
	int64_t ahead = far_lan ? 0 : clock_ahead(v, from);
	uint32_t cap = 0;

	v->has_twins = true;
	v->lenient = lenient || far_lan;
	for (uint32_t i = 0; i < from->n; i++) {
		const struct event *e = &from->ev[i];

		if (e->kind != EVENT_ANSWER || (int)e->flow != partner || e->opcode != OP_ACK)
			continue;
		v->twin = grow(v->twin, v->ntwins, &cap, sizeof(*v->twin));
		v->twin[v->ntwins++] = (struct twin){.key = key_of(e), .t = e->t - (uint64_t)ahead};
	}
	if (v->ntwins)
		qsort(v->twin, v->ntwins, sizeof(*v->twin), by_key);
}

/* Whether this came over the WAN. Each twin stands for one. */
static bool passed(struct view *v, const struct event *e)
{
	uint64_t key = key_of(e);
	uint32_t lo;

	if (v->j->cfg->held && !v->has_twins)
		return false;
	if (!v->has_twins)
		return true;
	lo = first_at(v->twin, v->ntwins, key);
	for (; lo < v->ntwins && v->twin[lo].key == key; lo++) {
		if (v->twin[lo].used || v->twin[lo].t > e->t + v->j->cfg->skew_ns)
			continue;
		v->twin[lo].used = true;
		return true;
	}
	return false;
}

static void begin(struct book *b, uint32_t from)
{
	b->held = grow(b->held, b->nheld, &b->held_cap, sizeof(*b->held));
	b->held[b->nheld++] = (struct span){.from = from, .end = UINT32_MAX, .later = b->n};
	b->in_custody = true;
}

/* The line of a book that was asked in custody. */
static bool asked_in_custody(const struct view *v, uint32_t psn)
{
	for (uint32_t k = 0; k < v->nbooks; k++) {
		const struct book *b = &v->book[k];
		int64_t x = book_at(b, psn);

		for (uint32_t i = 0; i < b->nheld && x < (int64_t)b->n; i++)
			if (x >= (int64_t)b->held[i].later && x < (int64_t)b->held[i].end)
				return true;
	}
	return false;
}

/*
 * What the requester sent when its appliance had answered for a request already, and what answers
 * that, is sealed on the WAN. Not so where numbers differ there, or where the host may repeat,
 * after the end of custody, what it does not know to be acknowledged.
 */
void view_seals(struct view *v, const struct trace *from)
{
	int partner = v->j->flow[v->flow].partner;

	if (v->j->cfg->prefetch || v->j->cfg->lan_loss)
		return;
	for (uint32_t i = 0; i < from->n; i++) {
		const struct event *e = &from->ev[i];
		bool request = e->kind == EVENT_REQUEST && e->flow == v->flow;
		bool answer =
			e->kind == EVENT_ANSWER && (int)e->flow == partner && e->opcode != OP_ACK;

		if (e->native && (request || answer) && asked_in_custody(v, e->psn))
			judge_violation(v->j, RULE_ICRC, from, e, (int)v->flow,
					"%s of PSN %06x, in custody, has no seal",
					opcode_info(e->opcode)->name, e->psn);
	}
}

static void end_custody(struct book *b)
{
	b->held[b->nheld - 1].end = b->acked;
	b->in_custody = false;
}

static void made_ack(struct view *v, struct book *b, const struct event *e, uint32_t end,
		     bool asked)
{
	uint32_t open = book_open_read(b);

	v->made++;
	if (end <= b->acked) {
		if (!asked)
			WRONG(v, RULE_LEAK, e, "ACK of PSN %06x says nothing new and nobody asked",
			      e->psn);
		return;
	}
	if (open < end && open >= b->held[b->nheld - 1].from && !v->j->cfg->lan_loss)
		WRONG(v, RULE_EARLY, e, "ACK of PSN %06x, but the %s of PSN %06x is not answered",
		      e->psn, opcode_info(b->line[open].opcode)->name,
		      psn_add(b->base, open & PSN_MASK));
	if (b->line[end - 1].flags & LINE_ANSWERED)
		WRONG(v, RULE_EARLY, e, "ACK bears the PSN %06x of a %s", e->psn,
		      opcode_info(b->line[end - 1].opcode)->name);
	b->owed = end;
}

static void passed_answer(struct view *v, struct book *b, const struct event *e, uint32_t end,
			  bool asked)
{
	bool ack = aeth_is_ack(e->syndrome);
	/* an ACK of what is acknowledged is no news; a NAK there is */
	bool news = ack ? end > b->acked : end >= b->acked;

	if (news && !v->j->cfg->held) {
		end_custody(b);
		return;
	}
	if (!news && (end <= b->held[b->nheld - 1].from || asked || repaired_lately(v, e->t)))
		return; /* on its way since before, or the answer to a repeat that was passed on */
	WRONG(v, RULE_LEAK, e, "the responder's own %s of PSN %06x reached the requester",
	      ack ? "ACK" : "NAK", e->psn);
}

bool custody_answer(struct view *v, struct book *b, const struct event *e, uint32_t end)
{
	bool ack = aeth_is_ack(e->syndrome), came = passed(v, e);
	bool asked = b->repeat_at && e->t - b->repeat_at <= v->j->cfg->grace_ns;

	if (!b->in_custody && (came || !ack))
		return false; /* watched: the hosts' own business */
	if (!b->in_custody) {
		if (end <= b->acked)
			return false; /* said before: not a beginning */
		begin(b, end - 1);
	}
	if (came && v->lenient && ack && (end > b->acked || !asked))
		came = false; /* its own words, which happen to be those that it has heard before */
	if (came) {
		passed_answer(v, b, e, end, asked);
		return false;
	}
	if (ack) {
		made_ack(v, b, e, end, asked);
		return end > b->acked;
	}
	if (aeth_is_rnr(e->syndrome))
		WRONG(v, RULE_LEAK, e, "an RNR NAK of PSN %06x reached the requester", e->psn);
	else if (e->syndrome == AETH_NAK_SEQ && end < b->acked)
		WRONG(v, RULE_LEAK, e,
		      "a sequence NAK of PSN %06x, below what was acknowledged up to %06x", e->psn,
		      psn_add(b->base, (b->acked - 1) & PSN_MASK));
	return false;
}
