// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Commands and responses. The input is the first packet of a SEND, as long as it is; each decoder
 * sees it, as a whole message and as the beginning of one.
 *
 * What is to be READ are buffers that the command names for data to the target, each once, and
 * never those of a read command; nothing is read outside of the payload (the sanitizer sees to
 * that).
 */
#include "tests/fuzz/input.h"
#include "wire/storage.h"

static void check_nvme(const struct storage_send *s, const struct storage_command *c)
{
	const uint8_t *p = s->p;
	uint32_t n = 0;
	uint64_t sum = 0, said = 0;

	NEED(s->whole && s->len >= 64 && s->len % 16 == 0);
	NEED(((p[0] == 0x7f ? p[4] : p[0]) & 3) == 1);
	for (uint32_t at = s->len == 64 ? 24 : 64; at < (s->len == 64 ? 40 : s->len); at += 16) {
		NEED(p[at + 15] == 0x40 || p[at + 15] == 0x4f);
		said += p[at + 8] | (uint32_t)p[at + 9] << 8 | (uint32_t)p[at + 10] << 16;
		n++;
	}
	NEED(n >= c->count);
	for (uint32_t i = 0; i < c->count; i++)
		sum += c->buffer[i].length;
	NEED(sum == said);
}

static void check_command(enum storage_protocol p, const struct storage_send *s)
{
	struct storage_command c;

	if (storage_command(p, s, &c) != STORAGE_FETCH)
		return;
	NEED(c.count && c.count <= STORAGE_BUFFERS);
	for (uint32_t i = 0; i < c.count; i++) {
		const struct storage_buffer *b = &c.buffer[i];

		NEED(b->length && b->va + b->length > b->va);
		for (uint32_t k = 0; k < i; k++)
			NEED(b->rkey != c.buffer[k].rkey ||
			     b->va >= c.buffer[k].va + c.buffer[k].length ||
			     c.buffer[k].va >= b->va + b->length);
	}
	if (p == STORAGE_NVME)
		check_nvme(s, &c);
}

static void check_answer(enum storage_protocol p, const struct storage_send *s)
{
	uint32_t id;

	if (storage_answer(p, s, &id) == STORAGE_DONE && p == STORAGE_NVME)
		NEED(s->len == 16 && id == (uint32_t)(s->p[12] | s->p[13] << 8));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *exact = malloc(size ? size : 1);

	if (!exact)
		return 0;
	if (size)
		memcpy(exact, data, size);
	for (unsigned int i = 0; i < 2 * STORAGE_PROTOCOLS; i++) {
		struct storage_send s = {.p = exact, .len = (uint32_t)size, .whole = i & 1};

		check_command(i / 2, &s);
		check_answer(i / 2, &s);
	}
	free(exact);
	return 0;
}
