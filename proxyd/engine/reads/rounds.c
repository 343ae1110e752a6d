// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Rounds of repeating: whether the same is asked for again and again, as where no answer comes.
 */
#include "engine/reads/reads.h"

/* A requester whose timer is longer is not recognized. A round may miss us. */
#define PLACE_MS 5000u

/*
 * Count the rounds of repeating that begin at @psn, the lowest one of them. A requester that gets
 * no answer begins each round there, when its timer fires. Who only knows the addresses does not
 * know where that is, and what it sends at once, however many, is one round.
 */
void rounds_begin(struct engine *e, struct lane *l, struct host_psn psn)
{
	uint16_t now = (uint16_t)(e->now / NSEC_PER_MSEC), ms = now - l->rounds.ms;
	struct lane_reads *x = reads_of(e, l);
	uint64_t since = x ? (e->now - x->round) / NSEC_PER_MSEC : ms;

	if (!l->rounds.run || since > PLACE_MS ||
	    (psn_before(psn, l->rounds.psn) && l->rounds.run == 1)) {
		l->rounds.run = 1;
		if (x)
			x->stuck = 0;
	} else if (!psn_is(psn, l->rounds.psn) || since < ROUND_MS) {
		return;
	} else if (l->rounds.run < UINT8_MAX) {
		l->rounds.run++;
	}
	l->rounds.psn = psn;
	l->rounds.ms = now;
	if (x)
		x->round = e->now;
}

/* What comes is the requester's own, or may be: nobody begins anew elsewhere. Not so while repeats
 * of the same are counted, between which anybody may send this. */
void rounds_forget(struct engine *e, struct lane *l)
{
	if (!reads_of(e, l) || !reads_of(e, l)->stuck)
		l->rounds.run = 0;
}

bool rounds_stuck(struct engine *e, struct lane *l, struct host_psn psn)
{
	struct lane_reads *x = reads_of(e, l);

	if (!x)
		return false;
	rounds_begin(e, l, psn);
	if (!x->stuck)
		x->stuck = e->now;
	return psn_is(psn, l->rounds.psn) && e->now - x->stuck >= STUCK_NS;
}
