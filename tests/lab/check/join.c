// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What left the requester against what reached the responder, and the answers the other way round.
 * By PSN; where an appliance has asked READs by itself (prefetch) the PSNs of the two sides
 * differ, and then SENDs and WRITEs are compared in their order, and answers by the address that
 * was read.
 */
#include <stdlib.h>

#include "tests/lab/check/view.h"
#include "wire/psn.h"

#define WRONG(v, rule, e, ...) judge_violation((v)->j, rule, (v)->t, e, (int)(v)->flow, __VA_ARGS__)

static bool held(const struct book *b, uint32_t x)
{
	for (uint32_t i = 0; i < b->nheld; i++)
		if (x >= b->held[i].from && x < b->held[i].end)
			return true;
	return false;
}

static int by_psn(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

void view_wan(struct view *v, const struct trace *from)
{
	uint32_t cap = 0;

	for (uint32_t i = 0; i < from->n; i++)
		if (from->ev[i].flow == v->flow && from->ev[i].kind == EVENT_REQUEST) {
			v->wan = grow(v->wan, v->nwan, &cap, sizeof(*v->wan));
			v->wan[v->nwan++] = from->ev[i].psn;
		}
	if (v->nwan)
		qsort(v->wan, v->nwan, sizeof(*v->wan), by_psn);
}

static uint32_t wan_below(const struct view *v, uint32_t psn)
{
	uint32_t lo = 0, hi = v->nwan;

	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (v->wan[mid] < psn)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* How often a request came; a READ asked again from its middle counts as the READ. */
static uint32_t wan_copies(const struct view *v, const struct line *l)
{
	uint32_t from = l->ev->psn, end = from + l->span,
		 n = wan_below(v, end) - wan_below(v, from);

	return end > PSN_MASK ? n + wan_below(v, end & PSN_MASK) : n;
}

/* Whether the far appliance has reported @n repeats of its own that are not accounted for yet. */
static bool told(struct judge *j, uint32_t n)
{
	if (j->told < n)
		return false;
	j->told -= n;
	return true;
}

static void doubled(struct view *far, const struct line *l, uint32_t by_host)
{
	uint32_t came = wan_copies(far, l), again;

	/* what came over the WAN again, be it before the responder had acknowledged it or after */
	came -= came && !far->j->parity;
	if (far->j->cfg->pass_repeats && came > by_host) {
		if (l->late > by_host)
			far->wan_again += (l->late < came ? l->late : came) - by_host;
		by_host = came;
	}
	again = l->late > by_host ? l->late - by_host : !by_host ? l->quick : 0;
	/* amid damage sealed frames are not counted */
	if (far->j->cfg->lan_loss || (far->j->cfg->damage && far->j->parity) || told(far->j, again))
		return;
	if (l->late > by_host)
		WRONG(far, RULE_DOUBLE, l->dbl,
		      "PSN %06x %u times again, after the responder had acknowledged it",
		      l->dbl->psn, l->late);
	else if (l->quick && !by_host)
		WRONG(far, RULE_DOUBLE, l->dbl, "PSN %06x again without a NAK or a timeout",
		      l->dbl->psn);
}

/* ---- by PSN ---- */

static void same_line(struct view *near, struct view *far, const struct line *a,
		      const struct line *b)
{
	if (!a->head && !b->head && (a->opcode != b->opcode || a->digest != b->digest))
		WRONG(far, RULE_BYTES, b->ev,
		      "PSN %06x (%s) is not what the requester sent in frame %u of %s", b->ev->psn,
		      opcode_info(b->opcode)->name, a->ev->no, near->t->name);
	if (!(a->flags & LINE_GOT))
		return;
	if (!(b->flags & LINE_GOT))
		WRONG(near, RULE_BYTES, a->ev, "PSN %06x: an answer that the responder never gave",
		      psn_add(a->ev->psn, a->head));
	else if (!(b->flags & LINE_CHANGED) && (a->answer != b->answer || a->answer2 != b->answer))
		WRONG(near, RULE_BYTES, a->ev,
		      "PSN %06x: the answer is not what the responder sent",
		      psn_add(a->ev->psn, a->head));
}

static void join_psns(struct view *near, struct view *far, struct book *a, struct book *b)
{
	int32_t shift = psn_diff(a->base, b->base);
	uint32_t lost = 0, first = 0;

	for (uint32_t i = 0; i < a->n; i++) {
		int64_t y = (int64_t)i + shift;

		if (y < 0)
			continue;
		if (y >= (int64_t)b->n) {
			if (i >= a->owed)
				break;
			if (!lost++)
				first = i;
			continue;
		}
		same_line(near, far, &a->line[i], &b->line[y]);
		if (b->line[y].dbl && held(a, i))
			doubled(far, &b->line[y], a->line[i - a->line[i].head].copies - 1);
	}
	if (lost && !a->fatal && !b->fatal)
		WRONG(near, RULE_LOST, a->line[first].ev,
		      "%u packets from PSN %06x on were acknowledged and never reached the "
		      "responder",
		      lost, psn_add(a->base, first & PSN_MASK));
	for (uint32_t y = 0; y < b->n; y++)
		if (!b->line[y].head && (int64_t)y - shift >= (int64_t)a->n) {
			WRONG(far, RULE_BYTES, b->line[y].ev,
			      "PSN %06x was never sent by the requester", b->line[y].ev->psn);
			break;
		}
}

/* ---- by order ---- */

struct got {
	uint64_t va, digest;
	uint32_t rkey;
};

static int by_place(const void *a, const void *b)
{
	const struct got *x = a, *y = b;

	if (x->va != y->va)
		return x->va < y->va ? -1 : 1;
	if (x->rkey != y->rkey)
		return x->rkey < y->rkey ? -1 : 1;
	return x->digest < y->digest ? -1 : x->digest > y->digest;
}

static struct got got_at(const struct view *v, const struct line *l, uint64_t digest)
{
	const struct line *head = l - l->head;

	return (struct got){.va = head->va + (uint64_t)l->head * v->mtu,
			    .rkey = head->ev->rkey,
			    .digest = digest};
}

static void join_answers(struct view *near, struct view *far, struct book *a, struct book *b)
{
	struct got *g = NULL;
	uint32_t n = 0, cap = 0;

	for (uint32_t y = 0; y < b->n; y++) {
		const struct line *l = &b->line[y];

		if (!(l->flags & LINE_GOT) || l->opcode != OP_READ_REQUEST)
			continue;
		for (int k = 0; k < 2; k++) {
			g = grow(g, n, &cap, sizeof(*g));
			g[n++] = got_at(far, l, k ? l->answer2 : l->answer);
		}
	}
	if (n)
		qsort(g, n, sizeof(*g), by_place);
	for (uint32_t i = 0; i < a->n; i++) {
		const struct line *l = &a->line[i];
		struct got want;

		if (!(l->flags & LINE_GOT) || l->opcode != OP_READ_REQUEST)
			continue;
		want = got_at(near, l, l->answer);
		if (!n || !bsearch(&want, g, n, sizeof(*g), by_place))
			WRONG(near, RULE_BYTES, l->ev,
			      "PSN %06x: not what the responder ever gave for this address",
			      psn_add(l->ev->psn, l->head));
	}
	free(g);
}

static uint32_t next_data(const struct book *b, uint32_t x)
{
	while (x < b->n && !(b->line[x].flags & LINE_DATA))
		x++;
	return x;
}

static void join_order(struct view *near, struct view *far, struct book *a, struct book *b)
{
	uint32_t i = next_data(a, 0), y = next_data(b, 0), by_host = 0, late = 0;
	const struct event *dbl = NULL;

	for (; i < a->n && y < b->n; i = next_data(a, i + 1), y = next_data(b, y + 1))
		if (a->line[i].opcode != b->line[y].opcode ||
		    a->line[i].digest != b->line[y].digest) {
			WRONG(far, RULE_BYTES, b->line[y].ev,
			      "PSN %06x (%s) is not the next that the requester sent (frame %u of "
			      "%s)",
			      b->line[y].ev->psn, opcode_info(b->line[y].opcode)->name,
			      a->line[i].ev->no, near->t->name);
			return;
		}
	if (i < a->owed && i < a->n && !a->fatal && !b->fatal)
		WRONG(near, RULE_LOST, a->line[i].ev,
		      "PSN %06x was acknowledged and never reached the responder",
		      a->line[i].ev->psn);
	if (y < b->n)
		WRONG(far, RULE_BYTES, b->line[y].ev, "PSN %06x was never sent by the requester",
		      b->line[y].ev->psn);
	join_answers(near, far, a, b);
	for (i = 0; i < a->n; i++)
		by_host += a->line[i].copies > 1 ? a->line[i].copies - 1 : 0;
	for (y = 0; y < b->n; y++)
		if (b->line[y].late || (b->line[y].quick && a->nheld)) {
			late += b->line[y].late + b->line[y].quick;
			dbl = dbl ? dbl : b->line[y].dbl;
		}
	if (late > by_host && !far->j->cfg->lan_loss && !told(far->j, late - by_host))
		WRONG(far, RULE_DOUBLE, dbl,
		      "PSN %06x and others, %u in all, again without a cause", dbl->psn, late);
}

void join_views(struct judge *j, struct view *near, struct view *far)
{
	uint32_t n;

	if (!far)
		return;
	for (uint32_t k = 0; !near && j->cfg->held && k < far->nbooks; k++)
		for (uint32_t y = 0; y < far->book[k].n; y++)
			if (far->book[k].line[y].dbl)
				doubled(far, &far->book[k].line[y], 0);
	if (!near)
		return;
	n = near->nbooks < far->nbooks ? near->nbooks : far->nbooks;
	for (uint32_t k = 0; k < n; k++) {
		if (j->cfg->prefetch)
			join_order(near, far, &near->book[k], &far->book[k]);
		else
			join_psns(near, far, &near->book[k], &far->book[k]);
	}
	if (far->nbooks > near->nbooks)
		WRONG(far, RULE_BYTES, far->book[n].line[0].ev,
		      "PSN %06x: the requester began no such sequence", far->book[n].base);
	for (uint32_t k = n; k < near->nbooks; k++)
		if (near->book[k].owed && !near->book[k].fatal)
			WRONG(near, RULE_LOST, near->book[k].line[0].ev,
			      "from PSN %06x on: acknowledged, and nothing of it reached the "
			      "responder",
			      near->book[k].base);
}
