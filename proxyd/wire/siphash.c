// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "wire/siphash.h"

struct state {
	uint64_t a, b, c, d;
};

static uint64_t turned(uint64_t v, unsigned int by)
{
	return v << by | v >> (64 - by);
}

static void rounds(struct state *s, unsigned int n)
{
	while (n--) {
		s->a += s->b;
		s->c += s->d;
		s->b = turned(s->b, 13) ^ s->a;
		s->d = turned(s->d, 16) ^ s->c;
		s->a = turned(s->a, 32) + s->d;
		s->c += s->b;
		s->d = turned(s->d, 21) ^ s->a;
		s->b = turned(s->b, 17) ^ s->c;
		s->c = turned(s->c, 32);
	}
}

static void take(struct state *s, uint64_t word)
{
	s->d ^= word;
	rounds(s, 2);
	s->a ^= word;
}

uint64_t siphash(const uint64_t key[2], const uint64_t *m, uint32_t n)
{
	struct state s = {
		.a = key[0] ^ 0x736f6d6570736575u,
		.b = key[1] ^ 0x646f72616e646f6du,
		.c = key[0] ^ 0x6c7967656e657261u,
		.d = key[1] ^ 0x7465646279746573u,
	};

	for (uint32_t i = 0; i < n; i++)
		take(&s, m[i]);
	take(&s, (uint64_t)n * 8 << 56);
	s.c ^= 0xff;
	rounds(&s, 4);
	return s.a ^ s.b ^ s.c ^ s.d;
}
