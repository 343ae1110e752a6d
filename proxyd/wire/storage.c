// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The storage protocols that are decoded, and what their decoders share. */
#include "wire/storage.h"

#include <stddef.h>

static const struct {
	const char *name;
	enum storage_verdict (*command)(const struct storage_send *s, struct storage_command *c);
	enum storage_answer (*answer)(const struct storage_send *s, uint32_t *id);
} decoders[STORAGE_PROTOCOLS] = {
	[STORAGE_NVME] = {"nvme", nvme_command, nvme_answer},
	[STORAGE_ISER] = {"iser", iser_command, iser_answer},
	[STORAGE_NFS] = {"nfs", rpcrdma_command, rpcrdma_answer},
};

const char *storage_name(enum storage_protocol p)
{
	return p > STORAGE_UNKNOWN && p < STORAGE_PROTOCOLS ? decoders[p].name : "";
}

enum storage_protocol storage_guess(const struct storage_send *s)
{
	enum storage_protocol found = STORAGE_UNKNOWN;
	struct storage_command c;

	for (unsigned int p = STORAGE_UNKNOWN + 1; p < STORAGE_PROTOCOLS; p++) {
		if (decoders[p].command(s, &c) != STORAGE_FETCH)
			continue;
		if (found != STORAGE_UNKNOWN)
			return STORAGE_UNKNOWN;
		found = p;
	}
	return found;
}

enum storage_verdict storage_command(enum storage_protocol p, const struct storage_send *s,
				     struct storage_command *c)
{
	return p == STORAGE_UNKNOWN ? STORAGE_NONE : decoders[p].command(s, c);
}

enum storage_answer storage_answer(enum storage_protocol p, const struct storage_send *s,
				   uint32_t *id)
{
	return p == STORAGE_UNKNOWN ? STORAGE_FOREIGN : decoders[p].answer(s, id);
}

bool storage_add(struct storage_command *c, uint64_t va, uint32_t length, uint32_t rkey)
{
	struct storage_buffer *last = c->count ? &c->buffer[c->count - 1] : NULL;

	if (!length)
		return true;
	if (va + length < va)
		return false;
	for (uint32_t i = 0; i < c->count; i++) {
		const struct storage_buffer *b = &c->buffer[i];

		if (b->rkey == rkey && va < b->va + b->length && b->va < va + length)
			return false;
	}
	if (last && last->rkey == rkey && last->va + last->length == va &&
	    length <= UINT32_MAX - last->length) {
		last->length += length;
		return true;
	}
	if (c->count == STORAGE_BUFFERS)
		return false;
	c->buffer[c->count++] = (struct storage_buffer){va, length, rkey};
	return true;
}
