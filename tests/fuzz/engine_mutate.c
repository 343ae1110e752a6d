// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Mutation of the engine's inputs by whole records (engine_record.h). */
#include <string.h>

#include "tests/fuzz/engine_record.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed);

#define RECORDS 512

static uint32_t rnd(uint32_t *state, uint32_t n)
{
	*state = *state * 1664525 + 1013904223;
	return n ? (*state >> 8) % n : 0;
}

/* A record with little in it, for the mutations to come. */
static size_t make_record(uint8_t *out, uint32_t *state)
{
	uint8_t op = (uint8_t)rnd(state, RECS);
	size_t n = 1u + rec_size[op];

	out[0] = (uint8_t)(op | (rnd(state, 2) ? REC_FAR : 0) |
			   (rnd(state, 4) ? 0 : rnd(state, 16) << 4 & 0xb0));
	for (size_t i = 1; i < n; i++)
		out[i] = (uint8_t)(rnd(state, 2) ? rnd(state, 10) : rnd(state, 256));
	if (op == REC_RAW || op == REC_REPORT_RAW)
		out[n - 2] = out[n - 1] = 0;
	return n;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	uint32_t state = seed, n = 0, a, b, way = rnd(&state, 8);
	size_t at[RECORDS + 1], pos = SETUP, len;
	uint8_t buf[4096];

	if (size <= SETUP || way == 0)
		return LLVMFuzzerMutate(data, size, max);
	while (pos < size && n < RECORDS) {
		at[n++] = pos;
		pos += rec_len(data + pos, size - pos);
	}
	at[n] = pos;
	a = rnd(&state, n);
	b = rnd(&state, n);
	switch (way) {
	case 1: /* some records less */
		b = a + 1 + rnd(&state, 4);
		b = b > n ? n : b;
		memmove(data + at[a], data + at[b], size - at[b]);
		return size - (at[b] - at[a]);
	case 2: /* one more, from elsewhere */
	case 3: /* or a new one */
		len = at[b + 1] - at[b];
		if (way == 2 && len <= sizeof(buf))
			memcpy(buf, data + at[b], len);
		else
			len = make_record(buf, &state);
		if (size + len > max)
			return LLVMFuzzerMutate(data, size, max);
		memmove(data + at[a] + len, data + at[a], size - at[a]);
		memcpy(data + at[a], buf, len);
		return size + len;
	case 4: /* one at the end, where the state is deepest */
		len = make_record(buf, &state);
		if (size + len > max)
			return LLVMFuzzerMutate(data, size, max);
		memcpy(data + size, buf, len);
		return size + len;
	default: /* one changed in place, its length kept */
		len = at[a + 1] - at[a];
		LLVMFuzzerMutate(data + at[a], len, len);
		return size;
	}
}
