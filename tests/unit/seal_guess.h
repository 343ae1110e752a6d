/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Frames with guessed seals. */
#ifndef LONGHAUL_TESTS_SEAL_GUESS_H
#define LONGHAUL_TESTS_SEAL_GUESS_H

#include "cli/wanem/prng.h"
#include "tests/unit/engine_rig.h"

/** seal_guess - ENG-19: none of @n guessed seals, drawn from @seed, opens a frame with @text. What
 * passes the hosts drop. */
static inline void seal_guess(struct rig *r, const char *text, uint32_t n, uint64_t seed)
{
	uint8_t frame[FRAME_MAX], guess[FRAME_MAX];
	uint32_t len = rig_build(r, frame, FAR, text), icrc = get_le32(frame + len - ICRC_LEN);
	uint64_t before = engine_counter(r->e, EC_SEAL_WRONG);
	struct prng p;

	prng_init(&p, seed);
	for (uint32_t i = 0; i < n; i++) {
		memcpy(guess, frame, len);
		put_le32(guess + len - ICRC_LEN, icrc ^ (uint32_t)prng_next(&p));
		engine_rx(r->e, PORT_WAN, guess, len, r->now);
		if (i % 64 == 63) /* a batch ends */
			engine_tick(r->e, r->now);
		for (; r->at < r->nout; r->at++)
			assert_int_not_equal(get_le32(r->out[r->at].data + len - ICRC_LEN), icrc);
		rig_forget(r);
	}
	assert_int_equal(engine_counter(r->e, EC_SEAL_WRONG) - before, n);
	rig_check(r);
}

#endif
