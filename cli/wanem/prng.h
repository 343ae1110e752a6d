/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Seeded pseudo-random numbers, also for the tests: the same seed gives the same run on every
 * machine.
 * splitmix64 turns any number into a well-mixed one; xoshiro256** is the stream.
 */
#ifndef LONGHAUL_CLI_WANEM_PRNG_H
#define LONGHAUL_CLI_WANEM_PRNG_H

#include <stdbool.h>
#include <stdint.h>

struct prng {
	uint64_t s[4];
};

/** splitmix64 - a bijection of 64 bits that scatters neighbours. */
static inline uint64_t splitmix64(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static inline void prng_init(struct prng *r, uint64_t seed)
{
	for (int i = 0; i < 4; i++)
		r->s[i] = splitmix64(seed + 0x632be59bd9b4e019ull * (uint64_t)(i + 1));
}

static inline uint64_t prng_rotl(uint64_t x, int k)
{
	return (x << k) | (x >> (64 - k));
}

static inline uint64_t prng_next(struct prng *r)
{
	uint64_t *s = r->s;
	uint64_t result = prng_rotl(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = prng_rotl(s[3], 45);
	return result;
}

/** prng_below - uniform in 0 .. @n-1 (@n up to 2^32; the bias of 2^-32 does not matter here). */
static inline uint32_t prng_below(struct prng *r, uint32_t n)
{
	return (uint32_t)(((prng_next(r) >> 32) * n) >> 32);
}

/** prng_hit - true with probability @p; draws nothing when @p is 0, so that unused knobs change no
 * run. */
static inline bool prng_hit(struct prng *r, double p)
{
	return p > 0 && (double)(prng_next(r) >> 11) * 0x1p-53 < p;
}

#endif
