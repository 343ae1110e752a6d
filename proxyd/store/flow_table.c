// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * At most half of the buckets are taken, so that a probe sequence stays within one or two cache
 * lines. A bucket has 32 bits of the hash: keys are compared only if those agree, and the backward
 * shift finds an entry's home without its key.
 */
#include "store/flow_table.h"
#include "store/undo.h"

#include <errno.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define CAPACITY_MAX (1u << 30)

/** struct bucket - @index: FLOW_NONE when empty. */
struct bucket {
	uint32_t hash;
	uint32_t index;
};

struct flow_table {
	int64_t undo;
	uint64_t seed;
	uint32_t mask; /* buckets - 1 */
	uint32_t capacity;
	uint32_t count;
	uint32_t pad;
	struct bucket bucket[];
};

static void change(struct flow_table *t, struct bucket *b)
{
	struct undo *u = t->undo ? (struct undo *)((uint8_t *)t + t->undo) : NULL;

	undo_note(u, &t->count, sizeof(t->count));
	undo_note(u, b, sizeof(*b));
}

void flow_table_undo_by(struct flow_table *t, struct undo *u)
{
	t->undo = (uint8_t *)u - (uint8_t *)t;
}

static uint64_t buckets_of(uint32_t capacity)
{
	uint64_t n = 16;

	while (n < 2ull * capacity)
		n *= 2;
	return n;
}

static inline uint32_t hash_of(const struct flow_table *t, const struct flow_key *key)
{
	return (uint32_t)XXH3_64bits_withSeed(key, sizeof(*key), t->seed);
}

uint64_t flow_table_arena_size(uint32_t capacity)
{
	return sizeof(struct flow_table) + buckets_of(capacity) * sizeof(struct bucket) + 64;
}

struct flow_table *flow_table_create(struct arena *a, uint32_t capacity, uint64_t seed)
{
	uint64_t n = buckets_of(capacity);
	struct flow_table *t;

	if (capacity > CAPACITY_MAX)
		return NULL;
	t = arena_alloc(a, sizeof(*t) + n * sizeof(struct bucket), 64);
	if (!t)
		return NULL;
	t->seed = seed;
	t->mask = (uint32_t)(n - 1);
	t->capacity = capacity;
	memset(t->bucket, 0xff, n * sizeof(struct bucket));
	return t;
}

uint32_t flow_table_find(const struct flow_table *t, const struct flow_key *key, const void *keys,
			 uint32_t stride)
{
	uint32_t hash = hash_of(t, key);

	for (uint32_t i = hash & t->mask;; i = (i + 1) & t->mask) {
		const struct bucket *b = &t->bucket[i];

		if (b->index == FLOW_NONE)
			return FLOW_NONE;
		if (b->hash == hash &&
		    !memcmp((const uint8_t *)keys + (uint64_t)b->index * stride, key, sizeof(*key)))
			return b->index;
	}
}

uint32_t flow_table_soon(const struct flow_table *t, const struct flow_key *key)
{
	uint32_t hash = hash_of(t, key);

	__builtin_prefetch(&t->bucket[hash & t->mask]);
	return hash;
}

uint32_t flow_table_likely(const struct flow_table *t, uint32_t hash)
{
	for (uint32_t n = 0; n < 4; n++) {
		const struct bucket *b = &t->bucket[(hash + n) & t->mask];

		if (b->index == FLOW_NONE || b->hash == hash)
			return b->index;
	}
	return FLOW_NONE;
}

int flow_table_insert(struct flow_table *t, const struct flow_key *key, uint32_t index)
{
	uint32_t hash = hash_of(t, key), i = hash & t->mask;

	if (t->count >= t->capacity || index == FLOW_NONE)
		return -ENOSPC;
	while (t->bucket[i].index != FLOW_NONE)
		i = (i + 1) & t->mask;
	change(t, &t->bucket[i]);
	t->bucket[i].hash = hash;
	t->bucket[i].index = index;
	t->count++;
	return 0;
}

void flow_table_remove(struct flow_table *t, const struct flow_key *key, uint32_t index)
{
	uint32_t hash = hash_of(t, key), hole = hash & t->mask;

	if (index == FLOW_NONE)
		return;
	while (t->bucket[hole].index != index || t->bucket[hole].hash != hash) {
		if (t->bucket[hole].index == FLOW_NONE)
			return;
		hole = (hole + 1) & t->mask;
	}
	/* Move the next entry that may be there into the hole, and so on up to the next gap. */
	for (uint32_t i = (hole + 1) & t->mask; t->bucket[i].index != FLOW_NONE;
	     i = (i + 1) & t->mask) {
		uint32_t home = t->bucket[i].hash & t->mask;

		if (((i - home) & t->mask) >= ((i - hole) & t->mask)) {
			change(t, &t->bucket[hole]);
			t->bucket[hole] = t->bucket[i];
			hole = i;
		}
	}
	change(t, &t->bucket[hole]);
	t->bucket[hole].index = FLOW_NONE;
	t->count--;
}

uint32_t flow_table_count(const struct flow_table *t)
{
	return t->count;
}
