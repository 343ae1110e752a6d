// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store/undo.h"

void (*undo_watch)(struct undo *u, bool before);

struct undo *undo_create(struct arena *a, uint64_t size)
{
	struct undo *u = arena_alloc(a, sizeof(*u) + size, 64);

	if (!u)
		return NULL;
	u->size = size & ~7ull;
	u->batch = UNDO_FIRST;
	return u;
}

static uint32_t next(const struct undo *u)
{
	return u->batch == UINT32_MAX ? UNDO_FIRST + 1 : u->batch + 1;
}

void undo_commit(struct undo *u)
{
	if (__builtin_expect(!!undo_watch, 0))
		undo_watch(u, true);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*(volatile uint64_t *)&u->used = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	/* a batch whose log was lost is committed by this, too */
	*(volatile uint32_t *)&u->batch = next(u);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(!!undo_watch, 0))
		undo_watch(u, false);
}

bool undo_apply(struct undo *u)
{
	/* the log has only some of the old bytes: to put back only these would be wrong */
	if (u->lost == u->batch)
		return false;
	if (u->used > u->size || u->used % 8)
		return false;
	while (u->used) {
		uint64_t head, at;
		uint32_t len, need;

		memcpy(&head, u->log + u->used - 8, 8);
		len = head & 0xffff;
		at = head >> 16;
		need = ((len + 7) & ~7u) + 8;
		if (need > u->used || at < sizeof(*u) + u->size)
			return false;
		memcpy((uint8_t *)u + at, u->log + u->used - need, len);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		*(volatile uint64_t *)&u->used = u->used - need;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	}
	u->batch = next(u);
	return true;
}
