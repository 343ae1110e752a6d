// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <string.h>

#include "engine/reads/predict.h"

static const struct read_range *past(const struct predictor *p, uint32_t back)
{
	return &p->past[(p->seen - back) % PREDICT_HISTORY];
}

static bool alike(const struct read_range *a, const struct read_range *b)
{
	return a->rkey == b->rkey && a->length == b->length;
}

/* Whether @r, not counted yet, goes on with period @n. */
static bool goes_on(const struct predictor *p, const struct read_range *r, uint32_t n)
{
	const struct read_range *a, *b;

	if (p->seen < 2 * n)
		return false;
	a = past(p, n);
	b = past(p, 2 * n);
	return alike(r, a) && alike(a, b) && r->va - a->va == a->va - b->va;
}

/* Has a stride ended, and does the host start at its beginning again? */
static void note_ring(struct predictor *p, const struct read_range *r)
{
	const struct read_range *last = past(p, 1);

	if (p->run[1] < PREDICT_MATCHES || !alike(r, last))
		return;
	int64_t step = (int64_t)(last->va - past(p, 2)->va);

	if (!step || r->va == last->va + (uint64_t)step || (step > 0) != (r->va < last->va))
		return;
	p->ring_start = r->va;
	p->ring_end = last->va + (uint64_t)step;
	p->ring_rkey = r->rkey;
	p->ring_step = step;
}

static void begin(struct predictor *p, uint32_t period)
{
	p->period = (uint8_t)period;
	p->slot = 0;
	for (uint32_t i = 0; i < period; i++) {
		const struct read_range *a = past(p, period - i);

		p->step[i] = (int64_t)(a->va - past(p, 2 * period - i)->va);
		p->next[i] = *a;
		p->next[i].va += (uint64_t)p->step[i];
	}
	if (period == 1 && p->ring_step == p->step[0] && p->ring_rkey == p->next[0].rkey &&
	    p->next[0].va == p->ring_end)
		p->next[0].va = p->ring_start;
}

void predict_asked(struct predictor *p, const struct read_range *r, bool as_guessed)
{
	uint32_t best = 0;

	note_ring(p, r);
	for (uint32_t n = 1; n <= PREDICT_PERIOD_MAX; n++) {
		if (!goes_on(p, r, n))
			p->run[n] = 0;
		else if (p->run[n] < UINT8_MAX)
			p->run[n]++;
		/* the first READs of a run are those that it was found with */
		if (!best && p->run[n] && p->run[n] + 2u >= PREDICT_MATCHES && p->run[n] >= n)
			best = n;
	}
	p->past[p->seen % PREDICT_HISTORY] = *r;
	if (++p->seen == UINT32_MAX)
		p->seen = 2 * PREDICT_HISTORY +
			  p->seen % PREDICT_HISTORY; /* same place in the history */
	p->assumed &= !best;
	if (as_guessed && p->period)
		return;
	p->period = 0;
	if (best)
		begin(p, best);
}

void predict_assume(struct predictor *p)
{
	if (p->period || p->assumed)
		return;
	p->assumed = true;
	p->period = 1;
	p->slot = 0;
	p->next[0] = *past(p, 1);
	p->step[0] = p->next[0].length;
	p->next[0].va += p->next[0].length;
}

bool predict_peek(const struct predictor *p, struct read_range *out)
{
	if (!p->period)
		return false;
	*out = p->next[p->slot];
	return true;
}

void predict_take(struct predictor *p)
{
	struct read_range *r = &p->next[p->slot];

	r->va += (uint64_t)p->step[p->slot];
	if (p->period == 1 && p->ring_step == p->step[0] && p->ring_rkey == r->rkey &&
	    r->va == p->ring_end)
		r->va = p->ring_start;
	p->slot = (uint8_t)((p->slot + 1) % p->period);
}

void predict_stop(struct predictor *p)
{
	p->period = 0;
	memset(p->run, 0, sizeof(p->run));
}
