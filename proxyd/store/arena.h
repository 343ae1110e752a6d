/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One relocatable region of memory for everything that must outlive the process: a memfd mapping, filled
 * once at start by bump allocation. What is stored inside refers to other things inside by index or
 * offset, never by pointer, so that a restarted daemon can map it elsewhere.
 */
#ifndef LONGHAUL_STORE_ARENA_H
#define LONGHAUL_STORE_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct arena {
	uint8_t *base;
	size_t size, used;
	int fd; /* memfd, owned */
};

/** arena_init - map @size bytes (rounded up to pages), zeroed, populated lazily. 0 or negative errno. */
int arena_init(struct arena *a, size_t size);
void arena_exit(struct arena *a);

/** arena_alloc - @size zeroed bytes aligned to @align (a power of two, at most 4096); NULL when full. */
void *arena_alloc(struct arena *a, size_t size, size_t align);

#endif
