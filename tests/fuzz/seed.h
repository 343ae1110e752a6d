/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A seed in the making: bytes are added, then it is put into a file of its target's corpus
 * (make_seeds.c). */
#ifndef LONGHAUL_TESTS_FUZZ_SEED_H
#define LONGHAUL_TESTS_FUZZ_SEED_H

#include "tests/fuzz/input.h"
#include "wire/frame.h"

#define SEED_MAX 3600

extern uint8_t seed_data[SEED_MAX + 2 * FRAME_MAX];
extern size_t seed_len;

/* Write it, and begin the next one. */
void seed_put(const char *target, const char *name);

static inline void add(const void *data, size_t len)
{
	NEED(seed_len + len <= sizeof(seed_data));
	memcpy(seed_data + seed_len, data, len);
	seed_len += len;
}

static inline void add8(uint32_t v)
{
	uint8_t b = (uint8_t)v;

	add(&b, 1);
}

static inline void add16(uint32_t v)
{
	add8(v >> 8);
	add8(v);
}

static inline void add24(uint32_t v)
{
	add8(v >> 16);
	add16(v);
}

static inline void add32(uint32_t v)
{
	add16(v >> 16);
	add16(v);
}

/* Those of fuzz_peer. */
void peer_seeds(void);

#endif
