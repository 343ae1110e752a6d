/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packet and message sequence numbers: 24 bits, compared modulo 2^24 with a window of 2^23
 * (spec: IBTA 9.7.2). Every function takes and returns values already reduced to 24 bits.
 *
 * row: ENG-2
 */
#ifndef LONGHAUL_WIRE_PSN_H
#define LONGHAUL_WIRE_PSN_H

#include <stdbool.h>
#include <stdint.h>

#define PSN_MASK 0xffffffu
#define PSN_NONE 0xffffffffu /* no PSN: outside the 24 bits, never compares */

static inline uint32_t psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & PSN_MASK;
}

static inline uint32_t psn_sub(uint32_t psn, uint32_t n)
{
	return (psn - n) & PSN_MASK;
}

/** psn_diff - signed distance from @b to @a, in -2^23 .. 2^23-1; positive when @a is later. */
static inline int32_t psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

static inline bool psn_before(uint32_t a, uint32_t b)
{
	return psn_diff(a, b) < 0;
}

static inline bool psn_after(uint32_t a, uint32_t b)
{
	return psn_diff(a, b) > 0;
}

/** psn_in - whether @psn lies in the half-open range [@from, @end). */
static inline bool psn_in(uint32_t psn, uint32_t from, uint32_t end)
{
	return ((psn - from) & PSN_MASK) < ((end - from) & PSN_MASK);
}

#endif
