/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Many FIFO lists in one pool of fixed-size elements: index links, one free list. It has the
 * records of outstanding READs and ATOMICs: each lane has a short list, and all lanes share the
 * elements.
 *
 * row: ENG-9
 */
#ifndef LONGHAUL_STORE_MQUEUE_H
#define LONGHAUL_STORE_MQUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "store/arena.h"

#define MQ_NONE 0xffffffffu

/** struct mq_list - head and tail of one list; {MQ_NONE, MQ_NONE} when empty (mq_list_init()). */
struct mq_list {
	uint32_t head, tail;
};

struct mqueue;

/** mqueue_create - @count elements of @size bytes each; NULL when the arena is too small. */
struct mqueue *mqueue_create(struct arena *a, uint32_t count, uint32_t size);

/** mqueue_undo_by - note changes in @u from here on (undo.h); elements are noted when mq_ptr()
 * returns them. */
struct undo;
void mqueue_undo_by(struct mqueue *q, struct undo *u);
uint64_t mqueue_arena_size(uint32_t count, uint32_t size);

void mq_list_init(struct mq_list *l);

/** mq_push - append a zeroed element to @l; MQ_NONE when the pool is empty. */
uint32_t mq_push(struct mqueue *q, struct mq_list *l);

/** mq_pop - free the first element of @l, if any. */
void mq_pop(struct mqueue *q, struct mq_list *l);

/** mq_flush - free all of @l in O(1). */
void mq_flush(struct mqueue *q, struct mq_list *l);

/** mq_next - the element after @id in its list; MQ_NONE at the end. */
uint32_t mq_next(const struct mqueue *q, uint32_t id);

/** mq_len - elements in @l, in O(1). */
uint32_t mq_len(const struct mqueue *q, const struct mq_list *l);

/** mq_ptr - the bytes of element @id, aligned to 8. */
void *mq_ptr(struct mqueue *q, uint32_t id);
/** mq_at - the same; NULL for MQ_NONE. */
static inline void *mq_at(struct mqueue *q, uint32_t id)
{
	return id == MQ_NONE ? NULL : mq_ptr(q, id);
}

/** mq_first, mq_after - the first element of @l, and that after @p; NULL at the end. mq_each - go
 * through @list by @p. What was passed may be popped meanwhile. */
void *mq_first(struct mqueue *q, const struct mq_list *l);
void *mq_after(struct mqueue *q, const void *p);
#define mq_each(type, p, q, list) for (type *p = mq_first(q, list); p; p = mq_after(q, p))

uint32_t mq_free_count(const struct mqueue *q);

/** mq_check - every element is on the free list or was reached through one of @lists exactly once.
 *  For tests: allocates. */
bool mq_check(const struct mqueue *q, const struct mq_list *lists, uint32_t nlists);

#endif
