// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The loops run over blocks of eight words kept as an arithmetic progression in vector registers,
 * so no multiplication is left inside; heads and tails that are not whole words go through a byte
 * path.
 */
#include <string.h>

#include "tests/lab/model/pattern.h"

#define LANES 8
typedef uint64_t lanes __attribute__((vector_size(8 * LANES)));

static uint8_t byte_at(uint64_t key, uint64_t off)
{
	return (uint8_t)((key + (off >> 3) * PATTERN_STEP) >> (8 * (off & 7)));
}

/* By pointer: a vector of this width as a return value would depend on the instruction set. */
static void block_at(lanes *v, uint64_t word)
{
	for (int i = 0; i < LANES; i++)
		(*v)[i] = word + (uint64_t)i * PATTERN_STEP;
}

void pattern_fill(uint8_t *dst, uint64_t key, uint64_t off, uint32_t len)
{
	uint64_t word;
	uint32_t i = 0;

	for (; i < len && ((off + i) & 7); i++)
		dst[i] = byte_at(key, off + i);
	word = key + ((off + i) >> 3) * PATTERN_STEP;
	if (len - i >= sizeof(lanes)) {
		lanes v;

		block_at(&v, word);
		for (; len - i >= sizeof(lanes); i += sizeof(lanes)) {
			memcpy(dst + i, &v, sizeof(v));
			v += LANES * PATTERN_STEP;
		}
		word = key + ((off + i) >> 3) * PATTERN_STEP;
	}
	for (; len - i >= 8; i += 8, word += PATTERN_STEP)
		memcpy(dst + i, &word, 8);
	for (; i < len; i++)
		dst[i] = byte_at(key, off + i);
}

/* Where exactly, once it is known that something differs. */
static uint32_t first_wrong(const uint8_t *src, uint64_t key, uint64_t off, uint32_t from,
			    uint32_t len)
{
	for (uint32_t i = from; i < len; i++)
		if (src[i] != byte_at(key, off + i))
			return i;
	return len;
}

uint32_t pattern_check(const uint8_t *src, uint64_t key, uint64_t off, uint32_t len)
{
	uint64_t word, wrong = 0;
	uint32_t i = 0;

	for (; i < len && ((off + i) & 7); i++)
		wrong |= src[i] ^ byte_at(key, off + i);
	word = key + ((off + i) >> 3) * PATTERN_STEP;
	if (len - i >= sizeof(lanes)) {
		lanes v, w, diff = {0};

		block_at(&v, word);
		for (; len - i >= sizeof(lanes); i += sizeof(lanes)) {
			memcpy(&w, src + i, sizeof(w));
			diff |= w ^ v;
			v += LANES * PATTERN_STEP;
		}
		for (int j = 0; j < LANES; j++)
			wrong |= diff[j];
		word = key + ((off + i) >> 3) * PATTERN_STEP;
	}
	for (; len - i >= 8; i += 8, word += PATTERN_STEP) {
		uint64_t w;

		memcpy(&w, src + i, 8);
		wrong |= w ^ word;
	}
	for (; i < len; i++)
		wrong |= src[i] ^ byte_at(key, off + i);
	return wrong ? first_wrong(src, key, off, 0, len) : len;
}
