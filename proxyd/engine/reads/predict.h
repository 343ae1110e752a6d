/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which READ will come next? A predictor sees the READs of one lane in the order in which the host
 * asks and names those to come. It knows nothing of lanes, PSNs or windows; whether a guess may be
 * asked for is prefetch.c's business. Others may have the same four functions.
 *
 * The one here looks for a period: READ k is like READ k - P (same rkey and length) and lies as far
 * from it as that one from READ k - 2P. P = 1 is a plain stride, also stride 0; P = n a ring of n
 * buffers, or n streams asked in turn. The smallest P wins that held for MATCHES READs.
 *
 * A long ring is a stride that begins again: where it did so once, it is expected to do so again.
 */
#ifndef LONGHAUL_ENGINE_READS_PREDICT_H
#define LONGHAUL_ENGINE_READS_PREDICT_H

#include <stdbool.h>
#include <stdint.h>

#define PREDICT_PERIOD_MAX 16u
#define PREDICT_HISTORY	   (2 * PREDICT_PERIOD_MAX)
#define PREDICT_MATCHES	   4u

/** struct read_range - what a READ names: @length bytes at @va under @rkey. */
struct read_range {
	uint64_t va;
	uint32_t rkey, length;
};

/** struct predictor - zero is a good start. */
struct predictor {
	struct read_range past[PREDICT_HISTORY]; /* @past[k % HISTORY] is READ k */
	uint32_t seen;				 /* READs so far */
	uint8_t run[PREDICT_PERIOD_MAX + 1];	 /* READs for which period P has held, saturating */
	/* the guess: what comes next, slot by slot, and how far the slots move at each turn */
	uint8_t period, slot; /* period 0: no guess */
	bool assumed;	      /* by predict_assume(), and no pattern was seen since */
	struct read_range next[PREDICT_PERIOD_MAX];
	int64_t step[PREDICT_PERIOD_MAX];
	/* a stride that ended at @ring_end and began anew at @ring_start */
	uint64_t ring_start, ring_end;
	uint32_t ring_rkey;
	int64_t ring_step;
};

/** predict_asked - the host asked for @r. @as_guessed: it was the oldest guess not asked for so
 * far, so the series goes on; else guessing begins anew when a pattern is seen. */
void predict_asked(struct predictor *p, const struct read_range *r, bool as_guessed);

/** predict_assume - unless a pattern is known: the host goes on where its latest READ ends. That is
 * assumed once, and once more each time that a pattern was seen. */
void predict_assume(struct predictor *p);

/** predict_peek - the READ to come after all that were asked or taken; false: unknown. */
bool predict_peek(const struct predictor *p, struct read_range *out);

/** predict_take - count what predict_peek() told as guessed. */
void predict_take(struct predictor *p);

/** predict_stop - forget the pattern; the next READs have to show it again. */
void predict_stop(struct predictor *p);

#endif
