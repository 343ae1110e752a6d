/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One relocatable region of memory for everything that must outlive the process: a mapping of a
 * memfd or of a file in memory, filled once at start by bump allocation. References inside are
 * indices or offsets, never pointers, so that a restarted daemon can map it elsewhere.
 */
#ifndef LONGHAUL_STORE_ARENA_H
#define LONGHAUL_STORE_ARENA_H

#include <stddef.h>
#include <stdint.h>

/* The arena's own header fills its first page; the first allocation starts right after it. */
#define ARENA_FIRST 4096u

/**
 * struct arena - one mapping of the region; @used is also kept in the region itself.
 * @base: where it is mapped now
 * @size: bytes mapped, header included
 * @used: bytes taken, header included
 * @fd:   memfd, owned
 */
struct arena {
	uint8_t *base;
	size_t size, used;
	int fd;
};

/** arena_init - map room for @size bytes of allocations (rounded up to pages), zeroed, populated
 *  lazily. 0 or negative errno. */
int arena_init(struct arena *a, size_t size);

/** arena_init_file - likewise in the file @fd, for later processes; replaces its content and
 * allocates its memory at once, except for the last @bare bytes (arena_back()). @fd stays the
 * caller's. 0 or negative errno; the file is empty then. */
int arena_init_file(struct arena *a, int fd, size_t size, size_t bare);

/** arena_adopt - map the region that another process (or this one) made, at any free address, and
 *  go on with its allocations; the first allocation is at @base + ARENA_FIRST. Takes over @fd on
 *  success. 0, -EINVAL when @fd is no arena, or another negative errno. */
int arena_adopt(struct arena *a, int fd);

/** arena_lock - reserve its first @reserve bytes, and lock the pages in use. A file's were reserved
 *  when it was made, and what it has lent since is another's: 0 then. 0 or negative errno. */
int arena_lock(const struct arena *a, size_t reserve);

/** arena_back - reserve the memory of [@p, @p + @size), whole pages. 0 or negative errno. */
int arena_back(const struct arena *a, const void *p, size_t size);

/** arena_unback - give it back to the system; reads as zeroes from now on. */
void arena_unback(const struct arena *a, const void *p, size_t size);

/** arena_huge - keep [@p, @p + @size) in huge pages if the kernel can: random access has fewer TLB
 * misses. The memory of whole huge pages is allocated at once. */
void arena_huge(const struct arena *a, const void *p, size_t size);

/** arena_exit - unmap and close; the region is gone unless another process has its fd open. */
void arena_exit(struct arena *a);

/** arena_alloc - @size zeroed bytes aligned to @align (a power of two, at most 4096); NULL when
 *  full. */
void *arena_alloc(struct arena *a, size_t size, size_t align);

#endif
