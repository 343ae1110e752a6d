// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Addresses that a host has read with success, under which rkey: nothing outside of them, or of
 * what the rule names, is ever asked for without the host's asking.
 */
#include "engine/reads/reads.h"

static bool inside(const struct read_range *r, uint64_t from, uint64_t end)
{
	return r->va >= from && r->va < end && end - r->va >= r->length;
}

/** ranges_named - whether the rule names a range that @r is in. */
bool ranges_named(const struct rule *rule, const struct read_range *r)
{
	for (uint32_t i = 0; i < rule->nread_ranges; i++)
		if (inside(r, rule->read_range[i].from, rule->read_range[i].end))
			return true;
	return false;
}

/** ranges_allow - whether the host may read @r for all that is known. */
bool ranges_allow(const struct engine *e, const struct flow *fl, const struct lane_reads *x,
		  const struct read_range *r)
{
	for (uint32_t i = 0; i < GOOD_RANGES; i++)
		if (x->good[i].end && x->good[i].rkey == r->rkey &&
		    inside(r, x->good[i].from, x->good[i].end))
			return true;
	return ranges_named(&e->rules[fl->rule], r);
}

/** ranges_note - the host has read this with success. */
void ranges_note(struct engine *e, struct flow *fl, const struct read_range *r)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	uint64_t from = r->va, end = r->va + r->length;
	struct good_range *to = NULL;

	if ((fl->lane.role == ROLE_OPENER &&
	     (fl->rule < 0 ||
	      (!e->rules[fl->rule].prefetch && fl->lane.atomic != ATOMIC_PREFETCH))) ||
	    end <= from)
		return;
	x->good_clock++;
	for (uint32_t i = 0; i < GOOD_RANGES; i++) {
		struct good_range *g = &x->good[i];

		if (!g->end || g->rkey != r->rkey || g->from > end || g->end < from)
			continue;
		/* it touches this one; what it joins together becomes one range */
		from = g->from < from ? g->from : from;
		end = g->end > end ? g->end : end;
		if (to)
			to->end = 0;
		to = g;
	}
	for (uint32_t i = 0; !to && i < GOOD_RANGES; i++)
		if (!x->good[i].end)
			to = &x->good[i];
	if (!to) {
		to = &x->good[0];
		for (uint32_t i = 1; i < GOOD_RANGES; i++)
			if (x->good_clock - x->good[i].used > x->good_clock - to->used)
				to = &x->good[i];
	}
	*to = (struct good_range){.from = from, .end = end, .rkey = r->rkey, .used = x->good_clock};
}
