// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Whoever adds requests of its own sends on more than came in, and gives what it sends on other
 * numbers. What came in bears PSN + s where it goes on, where s is constant over a *segment* and
 * changes from segment to segment by what was added, or left out, between them.
 *
 * A mark never translates to more than what has come in, nor to more than where the next segment
 * begins. Segments that lie wholly below the true ACK are forgotten; with a full table nothing is
 * added and nothing is left out, so that no segment can be needed.
 */
#include <string.h>

#include "engine/core/lane.h"
#include "engine/number/segments.h"

static uint32_t shift_of(const struct segment *s)
{
	return psn_sub(s->out, s->in);
}

static uint32_t msn_shift_of(const struct segment *s)
{
	return psn_sub(s->out_msn, s->in_msn);
}

bool segments_note(struct segments *t, struct plain_mark in, struct plain_mark out)
{
	const struct segment *s = t->n ? &t->segment[t->n - 1] : NULL;
	uint32_t shift = psn_sub(out.psn, in.psn), msn = psn_sub(out.msn, in.msn);

	/* is the distance another than that of the latest segment? */
	if (s ? shift == shift_of(s) && msn == msn_shift_of(s) : !shift && !msn)
		return true;
	if (t->n == SEGMENTS)
		return false;
	t->segment[t->n++] = (struct segment){
		.out = out.psn,
		.in = in.psn,
		.out_msn = out.msn,
		.in_msn = in.msn,
		.ackable = in.ackable,
	};
	return true;
}

void segments_trim(struct segments *t, uint32_t una)
{
	uint32_t n = 0;

	/* the one that @una lies in stays, moved up so that it is never half the circle behind */
	while (n + 1 < t->n && !psn_before(una, t->segment[n + 1].out))
		n++;
	if (n) {
		t->trimmed = true;
		t->n -= n;
		memmove(t->segment, t->segment + n, t->n * sizeof(t->segment[0]));
	}
	if (t->n && psn_diff(una, t->segment[0].out) > (int32_t)MARK_TRAIL) {
		struct segment *s = &t->segment[0];
		uint32_t by = psn_sub(psn_sub(una, MARK_TRAIL), s->out);

		s->out = psn_add(s->out, by);
		s->in = psn_add(s->in, by);
		t->trimmed = true;
	}
}

struct plain_mark segments_back(const struct segments *t, struct plain_mark most,
				struct plain_mark out)
{
	const struct segment *s = NULL, *next = NULL;
	struct plain_mark m = out;

	for (uint32_t i = 0; i < t->n; i++) {
		if (psn_after(t->segment[i].out, out.psn)) {
			next = &t->segment[i];
			break;
		}
		s = &t->segment[i];
	}
	if (s) {
		m.psn = psn_sub(m.psn, shift_of(s));
		m.msn = psn_sub(m.msn, msn_shift_of(s));
	}
	if (next)
		most = (struct plain_mark){
			.psn = next->in, .msn = next->in_msn, .ackable = next->ackable};
	return psn_after(m.psn, most.psn) ? most : m;
}

uint32_t segments_on(const struct segments *t, uint32_t in)
{
	uint32_t i = t->n;

	while (i > 0 && psn_after(t->segment[i - 1].in, in))
		i--;
	if (!i)
		return t->trimmed ? PSN_NONE : in;
	return psn_add(in, shift_of(&t->segment[i - 1]));
}

bool segments_differ(const struct segments *t, uint32_t in)
{
	for (uint32_t i = t->n; i > 0; i--) {
		const struct segment *s = &t->segment[i - 1];

		if (shift_of(s) || msn_shift_of(s))
			return true;
		if (!psn_after(s->in, in))
			break;
	}
	return false;
}

bool segments_asked(const struct segments *t, uint32_t out, uint32_t *in, uint32_t *msn_shift)
{
	uint32_t i = t->n;

	while (i > 0 && psn_after(t->segment[i - 1].out, out))
		i--;
	*in = out;
	*msn_shift = 0;
	if (i) {
		const struct segment *s = &t->segment[i - 1];

		*in = psn_sub(out, shift_of(s));
		*msn_shift = msn_shift_of(s);
	} else if (t->trimmed) {
		return false;
	}
	/* between two segments lies what never came in */
	return i == t->n || psn_before(*in, t->segment[i].in);
}
