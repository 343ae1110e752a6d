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

static uint32_t be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void check_iser(const struct storage_send *s, const struct storage_command *c)
{
	const uint8_t *p = s->p;

	NEED(s->len >= 76 && p[0] == 0x18 && (p[28] & 0xbf) == 1 && (p[29] & 0xe0) == 0xa0);
	NEED(c->count == 1 && c->id == be32(p + 44) && c->buffer[0].rkey == be32(p + 4));
	NEED(c->buffer[0].va == ((uint64_t)be32(p + 8) << 32 | be32(p + 12)));
	NEED((uint64_t)c->buffer[0].length + (be32(p + 32) & 0xffffff) == be32(p + 48));
}

/* The read list once more, the simple way. */
static void check_nfs(const struct storage_send *s, const struct storage_command *c)
{
	uint64_t sum = 0, said = 0;
	uint32_t at = 16;

	NEED(s->len >= 28 && c->id == be32(s->p) && be32(s->p + 4) == 1 && be32(s->p + 12) < 2);
	for (; be32(s->p + at); at += 24) {
		NEED(be32(s->p + at) == 1 && at + 28 <= s->len);
		said += be32(s->p + at + 12);
	}
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
	else if (p == STORAGE_ISER)
		check_iser(s, &c);
	else
		check_nfs(s, &c);
}

static void check_answer(enum storage_protocol p, const struct storage_send *s)
{
	uint32_t id;

	if (storage_answer(p, s, &id) != STORAGE_DONE)
		return;
	if (p == STORAGE_NVME)
		NEED(s->len == 16 && id == (uint32_t)(s->p[12] | s->p[13] << 8));
	else if (p == STORAGE_ISER)
		NEED(s->len >= 76 && (s->p[28] & 0x3f) == 0x21 && id == be32(s->p + 44));
	else
		NEED(s->len >= 16 && id == be32(s->p));
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
