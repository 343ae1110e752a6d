/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How two numberings differ, as both doors keep it (segments.c). What comes in bears *in* numbers,
 * what goes on bears *out* numbers; only psn_map.c and far_map.c know whose these are.
 */
#ifndef LONGHAUL_ENGINE_NUMBER_SEGMENTS_H
#define LONGHAUL_ENGINE_NUMBER_SEGMENTS_H

#include "engine/number/psn.h"

/** struct plain_mark - a mark of either numbering. */
struct plain_mark {
	uint32_t psn;
	uint32_t msn : 24;
	uint32_t ackable : 8;
};
#define plain(m) ((struct plain_mark){(m).psn.v, (m).msn, (m).ackable})

/** struct segment - from @out on the numbers differ by this pair's. @ackable: struct host_mark */
struct segment {
	uint32_t out, in;
	uint32_t out_msn, in_msn : 24, ackable : 8;
};
#define SEGMENTS 48u

/** struct segments - @trimmed: those of long ago are forgotten. */
struct segments {
	uint32_t n;
	struct segment segment[SEGMENTS];
	bool trimmed;
};

/** segments_note - what comes in next, as @in, goes on as @out. False: no place for a segment. */
bool segments_note(struct segments *s, struct plain_mark in, struct plain_mark out);
/** segments_trim - nothing below @una, an out number, is asked about any more. */
void segments_trim(struct segments *t, uint32_t una);
/** segments_back - the mark @out as an in number, at most @most: what has come in. */
struct plain_mark segments_back(const struct segments *t, struct plain_mark most,
				struct plain_mark out);
/** segments_on - the out PSN of what came in as @in; PSN_NONE when that is too long ago. */
uint32_t segments_on(const struct segments *t, uint32_t in);
/** segments_differ - something that came in as @in or later went on under another PSN or MSN. */
bool segments_differ(const struct segments *s, uint32_t in);
/** segments_asked - the in PSN of @out, and @msn_shift. False if @out never came in. */
bool segments_asked(const struct segments *s, uint32_t out, uint32_t *in, uint32_t *msn_shift);

/** segments_full - no request may be added: less than @spare segments would be left. */
static inline bool segments_full(const struct segments *s, uint32_t spare)
{
	return s->n + spare >= SEGMENTS;
}

#endif
