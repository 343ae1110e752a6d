// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "shards/inbox.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define SLOT (INBOX_FRAMES - 1)

_Static_assert(!(INBOX_FRAMES & SLOT), "a power of two");

struct slot {
	uint32_t len;
	uint16_t shard, port;
	uint8_t data[FRAME_MAX];
};

/* What the two threads write is not in one cache line. */
struct inbox {
	_Alignas(64) atomic_uint put;
	_Alignas(64) atomic_uint taken;
	_Alignas(64) struct slot slot[INBOX_FRAMES];
};

uint64_t inbox_size(void)
{
	return sizeof(struct inbox);
}

struct inbox *inbox_new(void)
{
	struct inbox *b = aligned_alloc(_Alignof(struct inbox), sizeof(*b));

	if (!b)
		return NULL;
	atomic_init(&b->put, 0);
	atomic_init(&b->taken, 0);
	return b;
}

void inbox_free(struct inbox *b)
{
	free(b);
}

static uint32_t frames(const struct inbox *b)
{
	return atomic_load_explicit(&b->put, memory_order_acquire) -
	       atomic_load_explicit(&b->taken, memory_order_acquire);
}

uint32_t inbox_room(const struct inbox *b)
{
	return INBOX_FRAMES - frames(b);
}

uint32_t inbox_frames(const struct inbox *b)
{
	return frames(b);
}

bool inbox_put(struct inbox *b, unsigned int shard, enum engine_port port, const uint8_t *data,
	       uint32_t len)
{
	unsigned int at = atomic_load_explicit(&b->put, memory_order_relaxed);
	struct slot *s = &b->slot[at & SLOT];

	if (!inbox_room(b) || len > sizeof(s->data))
		return false;
	s->len = len;
	s->shard = (uint16_t)shard;
	s->port = (uint16_t)port;
	memcpy(s->data, data, len);
	atomic_store_explicit(&b->put, at + 1, memory_order_release);
	return true;
}

struct inbox_frame inbox_first(struct inbox *b)
{
	struct slot *s = &b->slot[atomic_load_explicit(&b->taken, memory_order_relaxed) & SLOT];

	return (struct inbox_frame){.data = s->data,
				    .len = s->len,
				    .port = (enum engine_port)s->port,
				    .shard = s->shard};
}

void inbox_done(struct inbox *b)
{
	atomic_fetch_add_explicit(&b->taken, 1, memory_order_release);
}

uint64_t inbox_bytes(const struct inbox *b, enum engine_port port)
{
	uint32_t at = atomic_load_explicit(&b->taken, memory_order_relaxed);
	uint64_t sum = 0;

	for (uint32_t n = frames(b); n; n--, at++)
		sum += b->slot[at & SLOT].port == (uint16_t)port ? b->slot[at & SLOT].len : 0;
	return sum;
}
