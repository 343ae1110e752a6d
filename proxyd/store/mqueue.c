// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Elements are numbered along their list when pushed. As a list changes only at its ends, the
 * numbers stay consecutive: their difference is the length of the list, which mq_flush() needs to
 * keep the free count right without walking.
 *
 * Elements that were never in a list end the list of free ones, in their order. Their links are
 * not written, or a new queue would touch all of them.
 */
#include "store/mqueue.h"
#include "store/undo.h"
#include "wire/must.h"

#include <stdlib.h>
#include <string.h>

/* @noted: number of the batch in which it and its element were noted (undo.h) */
struct link {
	uint32_t next;
	uint32_t seq;
	uint32_t noted;
};

/**
 * struct mqueue - links, then elements.
 * @data:   offset of the first element from this struct
 * @stride: bytes from one to the next
 * @fresh:  from here on elements were never in a list
 */
struct mqueue {
	int64_t undo;
	uint64_t data;
	uint32_t count;
	uint32_t stride;
	uint32_t free;
	uint32_t free_count;
	uint32_t fresh;
	uint32_t noted;
	struct link link[];
};

static struct undo *undo_of(const struct mqueue *q)
{
	return q->undo ? (struct undo *)((uint8_t *)q + q->undo) : NULL;
}

/* The list of free elements is about to change. */
static void change(struct mqueue *q)
{
	undo_once(undo_of(q), &q->noted, q, sizeof(*q));
}

/* Element @id or its link is about to change. */
static void change_one(struct mqueue *q, uint32_t id)
{
	struct undo *u = undo_of(q);

	if (!u || q->link[id].noted == u->batch)
		return;
	undo_note(u, &q->link[id], sizeof(q->link[id]));
	undo_note(u, (uint8_t *)q + q->data + (uint64_t)id * q->stride, q->stride);
	q->link[id].noted = u->batch;
}

/* Behind @id in the list of free elements. */
static uint32_t next_free(const struct mqueue *q, uint32_t id)
{
	if (id < q->fresh)
		return q->link[id].next;
	return id + 1 < q->count ? id + 1 : MQ_NONE;
}

static uint64_t data_offset(uint32_t count)
{
	return (sizeof(struct mqueue) + (uint64_t)count * sizeof(struct link) + 63) & ~63ull;
}

static uint64_t stride_of(uint32_t size)
{
	return ((uint64_t)size + 7) & ~7ull;
}

uint64_t mqueue_arena_size(uint32_t count, uint32_t size)
{
	return data_offset(count) + count * stride_of(size) + 64;
}

struct mqueue *mqueue_create(struct arena *a, uint32_t count, uint32_t size)
{
	uint64_t stride = stride_of(size);
	struct mqueue *q;

	if (count == MQ_NONE || stride > UINT32_MAX)
		return NULL;
	q = arena_alloc(a, data_offset(count) + count * stride, 64);
	if (!q)
		return NULL;
	q->data = data_offset(count);
	q->count = count;
	q->stride = (uint32_t)stride;
	q->free = count ? 0 : MQ_NONE;
	q->free_count = count;
	return q;
}

void mqueue_undo_by(struct mqueue *q, struct undo *u)
{
	q->undo = (uint8_t *)u - (uint8_t *)q;
}

void mq_list_init(struct mq_list *l)
{
	l->head = MQ_NONE;
	l->tail = MQ_NONE;
}

uint32_t mq_push(struct mqueue *q, struct mq_list *l)
{
	uint32_t id = q->free;

	if (id == MQ_NONE)
		return MQ_NONE;
	change(q);
	change_one(q, id);
	q->free = next_free(q, id);
	q->fresh += id == q->fresh;
	q->free_count--;
	q->link[id].next = MQ_NONE;
	if (l->head == MQ_NONE) {
		q->link[id].seq = 0;
		l->head = id;
	} else {
		change_one(q, l->tail);
		q->link[id].seq = q->link[l->tail].seq + 1;
		q->link[l->tail].next = id;
	}
	l->tail = id;
	memset(mq_ptr(q, id), 0, q->stride);
	return id;
}

void mq_pop(struct mqueue *q, struct mq_list *l)
{
	uint32_t id = l->head;

	if (id == MQ_NONE)
		return;
	must(id < q->count);
	change(q);
	change_one(q, id);
	l->head = q->link[id].next;
	if (l->head == MQ_NONE)
		l->tail = MQ_NONE;
	q->link[id].next = q->free;
	q->free = id;
	q->free_count++;
}

uint32_t mq_len(const struct mqueue *q, const struct mq_list *l)
{
	if (l->head == MQ_NONE)
		return 0;
	return q->link[l->tail].seq - q->link[l->head].seq + 1;
}

void mq_flush(struct mqueue *q, struct mq_list *l)
{
	if (l->head == MQ_NONE)
		return;
	must(l->head < q->count && l->tail < q->count);
	change(q);
	change_one(q, l->tail);
	q->free_count += mq_len(q, l);
	q->link[l->tail].next = q->free;
	q->free = l->head;
	mq_list_init(l);
}

uint32_t mq_next(const struct mqueue *q, uint32_t id)
{
	must(id < q->count);
	return q->link[id].next;
}

void *mq_ptr(struct mqueue *q, uint32_t id)
{
	must(id < q->count);
	change_one(q, id);
	return (uint8_t *)q + q->data + (uint64_t)id * q->stride;
}

void *mq_first(struct mqueue *q, const struct mq_list *l)
{
	return mq_at(q, l->head);
}

void *mq_after(struct mqueue *q, const void *p)
{
	uint64_t at = (uint64_t)((const uint8_t *)p - (const uint8_t *)q) - q->data;
	uint32_t id = mq_next(q, (uint32_t)at / q->stride);

	return mq_at(q, id);
}

uint32_t mq_free_count(const struct mqueue *q)
{
	return q->free_count;
}

/* Follow a chain from @id, marking what it reaches; false when something was reached before, or is
 * in a list (@used) and was never taken. */
static bool walk(const struct mqueue *q, uint8_t *seen, uint32_t id, bool used, uint32_t *last,
		 uint32_t *n)
{
	*n = 0;
	*last = MQ_NONE;
	for (; id != MQ_NONE; id = next_free(q, id)) {
		if (id >= (used ? q->fresh : q->count) || seen[id])
			return false;
		seen[id] = 1;
		*last = id;
		(*n)++;
	}
	return true;
}

bool mq_check(const struct mqueue *q, const struct mq_list *lists, uint32_t nlists)
{
	uint8_t *seen = calloc(q->count + 1ul, 1);
	uint32_t last, n, total;
	bool ok;

	if (!seen)
		return false;
	ok = walk(q, seen, q->free, false, &last, &n) && n == q->free_count;
	total = n;
	for (uint32_t i = 0; ok && i < nlists; i++) {
		ok = walk(q, seen, lists[i].head, true, &last, &n) && last == lists[i].tail &&
		     n == mq_len(q, &lists[i]);
		total += n;
	}
	free(seen);
	return ok && total == q->count;
}
