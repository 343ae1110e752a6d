/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the fuzz targets share: a cursor over the input that reads zeros past the end, and NEED(),
 * which makes a property that does not hold a finding.
 */
#ifndef LONGHAUL_TESTS_FUZZ_INPUT_H
#define LONGHAUL_TESTS_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEED(cond)                                                                                 \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                 \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *p;
	size_t left;
};

static inline uint8_t next8(struct input *in)
{
	if (!in->left)
		return 0;
	in->left--;
	return *in->p++;
}

static inline uint16_t next16(struct input *in)
{
	uint8_t high = next8(in);

	return (uint16_t)(high << 8 | next8(in));
}

static inline uint32_t next24(struct input *in)
{
	uint32_t high = next8(in);

	return high << 16 | next16(in);
}

static inline uint32_t next32(struct input *in)
{
	uint32_t high = next16(in);

	return high << 16 | next16(in);
}

static inline uint64_t next64(struct input *in)
{
	uint64_t high = next32(in);

	return high << 32 | next32(in);
}

/** next_bytes - up to *@len bytes; fewer, and *@len is set, when there are no more. */
static inline const uint8_t *next_bytes(struct input *in, size_t *len)
{
	const uint8_t *p = in->p;

	if (*len > in->left)
		*len = in->left;
	in->p += *len;
	in->left -= *len;
	return p;
}

/** block_of - @len bytes in a block of exactly that size, so that a read beyond them is seen. The
 * caller
 *  frees it. */
static inline uint8_t *block_of(const uint8_t *data, size_t len)
{
	uint8_t *b = malloc(len ? len : 1);

	NEED(b);
	if (len)
		memcpy(b, data, len);
	return b;
}

#endif
