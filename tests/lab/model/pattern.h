/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Data that gives itself away. A stream is an arithmetic progression of 8-byte words, key + i *
 * STEP (little-endian), with a key that depends on who sends it and on which message or memory it
 * is. A byte at the wrong place, of an older message, or from another queue pair therefore differs
 * from what the receiver expects there, and both sides need only the seed. Filling and checking
 * cost less than the CRC.
 */
#ifndef LAB_PATTERN_H
#define LAB_PATTERN_H

#include <stdint.h>

#include "cli/wanem/prng.h"

#define PATTERN_STEP 0x9e3779b97f4a7c15ull

/** pattern_key - the key of stream @number of @seed. */
static inline uint64_t pattern_key(uint64_t seed, uint64_t number)
{
	return splitmix64(splitmix64(seed) ^ number);
}

/** pattern_fill - write bytes @off .. @off + @len of stream @key to @dst. */
void pattern_fill(uint8_t *dst, uint64_t key, uint64_t off, uint32_t len);

/** pattern_check - compare @src with bytes @off .. @off + @len of stream @key; returns the number
 *  of bytes before the first wrong one, @len when all are right. */
uint32_t pattern_check(const uint8_t *src, uint64_t key, uint64_t off, uint32_t len);

#endif
