// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Which two flows are one connection, and at which site each has its source.
 *
 * A flow's packets name the destination queue pair only. The connection manager names both, where
 * it was captured. Else every pair of flows between two hosts is tried: an answer speaks against a
 * pair when its PSN is outside of what the other flow had sent by then, and for it when such a
 * packet ended a message or asked for an ACK. Unlike the appliance, which must decide while packets
 * flow, this sees whole captures: one answer too early is enough to tell two queue pairs apart.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lab/check/trace.h"
#include "wire/psn.h"

#define RECENT 65536u /* PSNs: more than any requester has outstanding */

struct score {
	uint32_t flow;
	uint64_t against, exact, within;
};

/* [answers' flow][i]: what speaks for the i-th flow of requests that could be meant */
struct scores {
	struct score *s;
	uint32_t n, cap;
};

static bool opposite(const struct flow *a, const struct flow *b)
{
	return a->vlan == b->vlan && ip_addr_eq(&a->src, &b->dst) && ip_addr_eq(&a->dst, &b->src);
}

/* If unknown, the smallest between the two hosts: a READ may then seem longer than it was, which
 * does not count against any pair. */
static uint32_t likely_mtu(const struct judge *j, const struct flow *f)
{
	uint32_t mtu = 0;

	if (j->cfg->path_mtu)
		return j->cfg->path_mtu;
	for (uint32_t n = 0; n < j->nflows; n++) {
		const struct flow *g = &j->flow[n];

		if (g->mtu && (!mtu || g->mtu < mtu) &&
		    (opposite(f, g) || ip_addr_eq(&f->src, &g->src)))
			mtu = g->mtu;
	}
	return mtu;
}

static void note_request(struct judge *j, const struct event *e)
{
	struct flow *f = &j->flow[e->flow];
	uint32_t mtu = e->opcode == OP_READ_REQUEST ? likely_mtu(j, f) : 0;
	uint16_t fl = opcode_info(e->opcode)->flags;
	uint32_t span = e->opcode == OP_READ_REQUEST && mtu && e->length > mtu
				? (e->length - 1) / mtu + 1
				: 1;
	bool marked = e->ackreq || (fl & OPF_EOM);

	if (!f->psns)
		f->psns = calloc(RECENT, 1);
	if (!f->seen || psn_diff(e->psn, f->end) > (int32_t)RECENT ||
	    psn_diff(e->psn, f->end) < -(int32_t)(4 * RECENT)) {
		f->first = f->end = e->psn;
		f->seen = true;
	}
	for (uint32_t i = 0; i < span && i < RECENT; i++)
		f->psns[(e->psn + i) % RECENT] = (fl & OPF_ANSWERED) ? 2 : marked;
	if (psn_after(psn_add(e->psn, span), f->end))
		f->end = psn_add(e->psn, span);
}

static void note_answer(struct judge *j, struct scores *all, const struct event *e)
{
	struct scores *s = &all[e->flow];
	bool nak = e->opcode == OP_ACK && !aeth_is_ack(e->syndrome);

	for (uint32_t i = 0; i < s->n; i++) {
		struct flow *f = &j->flow[s->s[i].flow];
		/* a NAK may name what comes next */
		uint32_t psn = nak ? psn_sub(e->psn, 1) : e->psn;

		if (!f->seen || psn_in(psn_add(psn, 1), f->first, psn_add(f->first, 1)))
			continue;
		if (!psn_in(psn, f->first, f->end)) {
			s->s[i].against++;
		} else {
			uint8_t is = psn_diff(f->end, psn) <= (int32_t)RECENT
					     ? f->psns[psn % RECENT]
					     : 0;

			s->s[i].within++;
			s->s[i].exact += e->opcode == OP_ACK ? is == 1 : is == 2;
		}
	}
}

static struct score *score_of(struct scores *all, uint32_t answers, uint32_t requests)
{
	for (uint32_t i = 0; i < all[answers].n; i++)
		if (all[answers].s[i].flow == requests)
			return &all[answers].s[i];
	return NULL;
}

/* Both lanes of a would-be connection. */
static struct score joint(struct scores *all, uint32_t a, uint32_t b)
{
	struct score sum = {.flow = b};
	struct score *s[2] = {score_of(all, a, b), score_of(all, b, a)};

	for (int i = 0; i < 2; i++)
		if (s[i]) {
			sum.against += s[i]->against;
			sum.exact += s[i]->exact;
			sum.within += s[i]->within;
		}
	return sum;
}

/* Which of two scores is the better one: > 0 the first. Damage on the way may make a right pair
 * look wrong now and then, hence shares rather than a single word against. */
static int better(const struct score *a, const struct score *b)
{
	double wrong_a = (double)a->against / (double)(a->against + a->within + 1);
	double wrong_b = (double)b->against / (double)(b->against + b->within + 1);

	if (wrong_a < wrong_b - 1e-9)
		return 1;
	if (wrong_a > wrong_b + 1e-9)
		return -1;
	return a->exact > b->exact ? 1 : a->exact < b->exact ? -1 : 0;
}

static void choose(struct judge *j, struct scores *all)
{
	for (;;) {
		struct score best = {.flow = UINT32_MAX};
		uint32_t of = UINT32_MAX;

		for (uint32_t a = 0; a < j->nflows; a++) {
			struct score top = {.flow = UINT32_MAX}, next = top;

			if (j->flow[a].partner >= 0 || !all[a].n || !j->flow[a].answers)
				continue;
			for (uint32_t i = 0; i < all[a].n; i++) {
				struct score s = joint(all, a, all[a].s[i].flow);

				if (j->flow[s.flow].partner >= 0 || !s.within ||
				    s.against > s.within)
					continue;
				if (top.flow == UINT32_MAX || better(&s, &top) > 0) {
					next = top;
					top = s;
				} else if (next.flow == UINT32_MAX || better(&s, &next) > 0) {
					next = s;
				}
			}
			if (top.flow == UINT32_MAX)
				continue;
			/* the clearest first: it takes candidates away from the others */
			if (next.flow != UINT32_MAX && !better(&top, &next))
				continue;
			if (of == UINT32_MAX || better(&top, &best) > 0) {
				best = top;
				of = a;
			}
		}
		if (of == UINT32_MAX)
			return;
		j->flow[of].partner = (int)best.flow;
		j->flow[best.flow].partner = (int)of;
	}
}

static void pair(struct judge *j)
{
	struct scores *all = calloc(j->nflows ? j->nflows : 1, sizeof(*all));

	for (uint32_t a = 0; a < j->nflows; a++)
		for (uint32_t b = 0; b < j->nflows; b++)
			if (j->flow[a].answers && j->flow[b].requests && j->flow[a].partner < 0 &&
			    j->flow[b].partner < 0 && opposite(&j->flow[a], &j->flow[b])) {
				all[a].s = grow(all[a].s, all[a].n, &all[a].cap, sizeof(*all[a].s));
				all[a].s[all[a].n++] = (struct score){.flow = b};
			}
	for (unsigned int i = 0; i < j->ntraces; i++) {
		struct trace *t = &j->trace[i];

		for (uint32_t a = 0; a < j->nflows; a++)
			j->flow[a].seen = false;
		for (uint32_t k = 0; k < t->n; k++) {
			const struct event *e = &t->ev[k];

			if (e->kind == EVENT_REQUEST)
				note_request(j, e);
			else if (e->kind == EVENT_ANSWER)
				note_answer(j, all, e);
		}
	}
	choose(j, all);
	for (uint32_t a = 0; a < j->nflows; a++) {
		free(all[a].s);
		free(j->flow[a].psns);
		j->flow[a].psns = NULL;
	}
	free(all);
}

/* ---- sites ---- */

static bool is_local(const struct check_config *c, const struct ip_addr *a)
{
	for (unsigned int i = 0; i < c->nlocal; i++)
		if (ip_addr_eq(&c->local[i], a))
			return true;
	return false;
}

/* The first event of flow @n in @t, and the same one in @u: which was earlier? */
static int earlier(const struct trace *t, const struct trace *u, uint32_t n)
{
	for (uint32_t i = 0; i < t->n; i++) {
		const struct event *a = &t->ev[i];

		if (a->flow != n || a->kind != EVENT_REQUEST)
			continue;
		for (uint32_t k = 0; k < u->n; k++) {
			const struct event *b = &u->ev[k];

			if (b->flow == n && b->kind == a->kind && b->psn == a->psn &&
			    b->digest == a->digest)
				return a->t < b->t ? 1 : a->t > b->t ? -1 : 0;
		}
		return 0;
	}
	return 0;
}

static bool learn_sites(struct judge *j)
{
	for (uint32_t n = 0; n < j->nflows; n++) {
		struct flow *f = &j->flow[n];
		int votes = 0;

		if (j->cfg->nlocal) {
			f->site = is_local(j->cfg, &f->src) ? 0 : 1;
			continue;
		}
		/* files are in the order of the chain */
		for (unsigned int a = 0; a < j->ntraces; a++)
			for (unsigned int b = a + 1; b < j->ntraces && f->requests; b++)
				votes += earlier(&j->trace[a], &j->trace[b], n);
		if (votes)
			f->site = votes < 0;
	}
	/* a flow without requests has the site of its partner, or of another flow of the same host
	 */
	for (uint32_t n = 0; n < j->nflows; n++) {
		struct flow *f = &j->flow[n];

		if (f->site < 0 && f->partner >= 0 && j->flow[f->partner].site >= 0)
			f->site = !j->flow[f->partner].site;
		for (uint32_t k = 0; k < j->nflows && f->site < 0; k++)
			if (j->flow[k].site >= 0 && ip_addr_eq(&j->flow[k].src, &f->src))
				f->site = j->flow[k].site;
		if (f->site < 0 && f->requests) {
			fprintf(j->out, "pcapcheck: cannot tell at which site the hosts are: give "
					"--local\n");
			return false;
		}
	}
	return true;
}

bool pair_flows(struct judge *j)
{
	pair(j);
	for (uint32_t n = 0; n < j->nflows; n++) {
		struct flow *f = &j->flow[n], *g = f->partner >= 0 ? &j->flow[f->partner] : NULL;

		if (j->cfg->path_mtu)
			f->mtu = j->cfg->path_mtu;
		else if (g && g->mtu > f->mtu)
			f->mtu = g->mtu;
	}
	for (uint32_t n = 0; n < j->nflows; n++) {
		struct flow *f = &j->flow[n], *g = f->partner >= 0 ? &j->flow[f->partner] : NULL;

		if (g && g->mtu > f->mtu)
			f->mtu = g->mtu;
		if (f->requests && !g) {
			bool answered = false;

			for (uint32_t k = 0; k < j->nflows; k++)
				answered |= j->flow[k].answers && j->flow[k].partner < 0 &&
					    opposite(&j->flow[k], f);
			if (answered)
				judge_violation(j, RULE_PAIR, NULL, NULL, (int)n,
						"its answers cannot be told from those of other "
						"queue pairs");
		}
	}
	if (j->trace[0].place < 0 && !j->cfg->nlocal)
		return true;
	return learn_sites(j);
}
