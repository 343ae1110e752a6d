/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All of a batch or nothing of it: before bytes in the arena change, the old ones are noted.
 *
 * Theory of operation
 *
 * A process can be killed between any two instructions, but the memory that it shares with a file
 * stays, with every store up to that point and none after it. So the next process that maps it
 * finds one of two things. If the log is empty, all is as the last batch left it. Else the log has
 * the bytes of each place before this batch first changed them, and undo_apply() puts them back,
 * from the last entry to the first. Doing that twice, or again after being killed in the middle,
 * gives the same result.
 *
 * The order is: the old bytes and their place, then @used, which makes the entry valid, then the
 * change itself. Only the compiler could reorder that; undo_note() prevents it. No other processor
 * reads it.
 *
 * Bytes noted twice are put back twice, the oldest last: that costs room, but is right. For what
 * changes often there is @batch, a new number for each batch: a structure with this number has been
 * noted. No batch after an adoption has a number of one before it.
 *
 * Bytes without a reference need not be noted. Therefore memory that a batch frees must not be used
 * again before its end, unless its bytes are noted (pool.h).
 *
 * A log that is full is @lost: the batch cannot be undone any more, and a process that finds it so
 * must not use the memory. undo_commit() ends a batch. Only then may frames and reports of the
 * batch leave.
 */
#ifndef LONGHAUL_STORE_UNDO_H
#define LONGHAUL_STORE_UNDO_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "store/arena.h"

#define UNDO_FIRST 1u

/**
 * struct undo
 * @size: bytes of @log, @used: with entries: old bytes, padded to 8, then offset << 16 | length
 * @batch: number of this batch, never 0, UNDO_FIRST until one has ended; @lost: number of the
 *         latest batch with an entry that found no room
 */
struct undo {
	uint64_t size, used;
	uint32_t batch, lost;
	uint8_t log[];
};

/** undo_create - a log of @size bytes; NULL when the arena is too small. Only memory behind it in
 * the arena can be noted. */
struct undo *undo_create(struct arena *a, uint64_t size);

/** undo_lose - this batch cannot be undone. */
static inline void undo_lose(struct undo *u)
{
	*(volatile uint32_t *)&u->lost = u->batch;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/** undo_note - @len bytes at @p (fewer than 64 Ki) are about to change. @u NULL: does nothing. */
static inline void undo_note(struct undo *u, const void *p, uint32_t len)
{
	uint64_t used, need = ((len + 7) & ~7u) + 8;
	uint8_t *at;

	if (!u)
		return;
	used = u->used;
	if (__builtin_expect(u->size - used < need, 0)) {
		undo_lose(u);
		return;
	}
	at = u->log + used;
	memcpy(at, p, len);
	*(uint64_t *)(at + need - 8) = (uint64_t)((const uint8_t *)p - (uint8_t *)u) << 16 | len;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*(volatile uint64_t *)&u->used = used + need;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/** undo_once - the same, but only before the first change in a batch: @noted has the number of the
 *  batch in which those bytes were noted last. */
static inline void undo_once(struct undo *u, uint32_t *noted, const void *p, uint32_t len)
{
	if (!u || *noted == u->batch)
		return;
	undo_note(u, p, len);
	*noted = u->batch;
}

/** undo_commit - end the batch: it cannot be undone any more. */
void undo_commit(struct undo *u);

/** undo_apply - undo the batch. False when that is impossible. */
bool undo_apply(struct undo *u);

/** undo_watch - for tests: called by undo_commit() before the log is emptied and after it. */
extern void (*undo_watch)(struct undo *u, bool before);

#endif
