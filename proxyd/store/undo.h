/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All of a batch or nothing of it: before something in the arena changes, what stood there is
 * noted.
 *
 * Theory of operation
 *
 * A process can be killed between any two instructions, but the memory that it shares with a file
 * stays, and in it every store up to that point and none after it. So whoever maps it next finds
 * either an empty log, and all is as the last batch left it; or a log with what stood at each place
 * before this batch first changed it, and undo_apply() puts that back, from the last entry to the
 * first. Putting back twice, or after having been cut off amid putting back, comes to the same.
 *
 * The order is: the old bytes and where they stood, then @used, which makes them count, then the
 * change itself. Only the compiler could turn that round; undo_note() does not let it. Other
 * processors do not look.
 *
 * What is noted twice is put back twice, the oldest last: that costs room and is not wrong. For
 * what changes often there is @batch, another number for each batch: a thing that bears it is noted
 * already. No batch after an adoption has a number that one before it had.
 *
 * Bytes that nobody refers to need not be noted. Therefore what a batch frees must not be used
 * again before the batch is over, if its bytes are not noted (pool.h).
 *
 * A log that is full is @lost: the batch can then not be undone any more, and whoever finds it so
 * must not believe anything. undo_commit() ends a batch: from there on it has happened. What the
 * batch has to say may leave only then.
 */
#ifndef LONGHAUL_STORE_UNDO_H
#define LONGHAUL_STORE_UNDO_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "store/arena.h"

/**
 * struct undo
 * @size: bytes of @log, @used: with entries: old bytes, padded to 8, then offset << 16 | length
 * @batch: number of this batch, never 0; @lost: of the latest in which an entry found no room
 */
struct undo {
	uint64_t size, used;
	uint32_t batch, lost;
	uint8_t log[];
};

/** undo_create - a log of @size bytes; NULL when the arena is too small. What is noted must lie
 *  behind it in the arena. */
struct undo *undo_create(struct arena *a, uint64_t size);

/** undo_lose - this batch cannot be undone. */
static inline void undo_lose(struct undo *u)
{
	*(volatile uint32_t *)&u->lost = u->batch;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/** undo_note - @len bytes at @p (fewer than 64 Ki) are about to change. @u NULL: nobody cares. */
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

/** undo_commit - the batch has happened. */
void undo_commit(struct undo *u);

/** undo_apply - the batch has not happened. False when that cannot be had. */
bool undo_apply(struct undo *u);

/** undo_watch - for tests: called by undo_commit() before the log is emptied and after it. */
extern void (*undo_watch)(struct undo *u, bool before);

#endif
