/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The retention pool: bytes of packets that somebody still may need.
 *
 * One pool of 64 KiB superblocks. A superblock serves one of three purposes while it is taken:
 *   - log:  packets of one lane, appended one after the other at 16-byte alignment;
 *   - page: sixteen 4 KiB pages (packet descriptors and their directories, see window.h);
 *   - slot: 192-byte slots for header-only packets (READ and ATOMIC requests), of all lanes.
 * A log superblock counts its live packets and returns to the pool when the last one is released,
 * except the one that a lane appends to, which is rewound instead. So releases may come in any order, and
 * cumulative release from the head frees superblocks one by one.
 *
 * Two classes of use have caps of their own, so that packets in transit can never take the room that
 * custody needs, nor the other way round: two appliances that wait for each other always make progress.
 * Each lane has a reserve of one superblock per class that others cannot take once the lane holds it.
 *
 * Locations are in units of 16 bytes from the pool's start: 32 bits reach 64 GiB.
 */
#ifndef LONGHAUL_STORE_POOL_H
#define LONGHAUL_STORE_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "store/arena.h"

#define POOL_BLOCK 65536u
#define POOL_PAGE 4096u
#define POOL_SLOT 192u
#define POOL_NONE 0xffffffffu

enum pool_class {
	POOL_CUSTODY, /* packets accepted from a near requester */
	POOL_TRANSIT, /* packets from the far appliance on their way to a near responder */
	POOL_CLASSES,
};

typedef uint32_t pool_loc;

struct pool;

/**
 * struct pool_log - a lane's end of the pool; zero is not valid, pool_log_init() is.
 * @block: superblock that is appended to, POOL_NONE when none
 * @used:  bytes used in it
 */
struct pool_log {
	uint32_t block;
	uint32_t used;
};

/**
 * pool_create - a pool of @bytes (rounded down to superblocks, at least 64 of them) inside @a.
 * @share[class]: percent of the superblocks that the class may hold; they may add up to at most 100.
 * Pages and slots are counted to the class that asks for them. NULL when the arena is too small.
 */
struct pool *pool_create(struct arena *a, uint64_t bytes, const unsigned int share[POOL_CLASSES]);

/** pool_arena_size - bytes of arena that pool_create(@bytes) needs. */
uint64_t pool_arena_size(uint64_t bytes);

void pool_log_init(struct pool_log *log);

/** pool_append - room for a packet of @len bytes (1 .. POOL_BLOCK) at the log's end; POOL_NONE when the
 *  class is at its cap. The bytes are the caller's to write through pool_ptr(). */
pool_loc pool_append(struct pool *p, enum pool_class c, struct pool_log *log, uint32_t len);

/** pool_unappend - take back the latest pool_append() of this log (a packet that failed its check). */
void pool_unappend(struct pool *p, struct pool_log *log, pool_loc loc, uint32_t len);

/** pool_release - one packet of a log is needed no longer. */
void pool_release(struct pool *p, struct pool_log *log, pool_loc loc, uint32_t len);

/** pool_log_close - give the open superblock back when it holds nothing (idle lane). */
void pool_log_close(struct pool *p, struct pool_log *log);

void *pool_ptr(struct pool *p, pool_loc loc);

/* Pages: zeroed 4 KiB. Page ids are not locations; pool_page_ptr() maps them. */
uint32_t pool_page_get(struct pool *p, enum pool_class c);
void pool_page_put(struct pool *p, uint32_t page);
void *pool_page_ptr(struct pool *p, uint32_t page);

/* Slots: POOL_SLOT bytes, zeroed. Slot ids are not locations. */
uint32_t pool_slot_get(struct pool *p, enum pool_class c);
void pool_slot_put(struct pool *p, uint32_t slot);
void *pool_slot_ptr(struct pool *p, uint32_t slot);

/** pool_room - bytes of packets that the class can surely still take (whole free superblocks). */
uint64_t pool_room(const struct pool *p, enum pool_class c);

/** pool_cap - bytes that the class may hold in all. */
uint64_t pool_cap(const struct pool *p, enum pool_class c);

/** pool_used - bytes of superblocks that the class holds now, packet bytes or not. */
uint64_t pool_used(const struct pool *p, enum pool_class c);

/** pool_check - walk everything; true when every superblock, page and slot is accounted for once. For
 *  tests and the scenario runner. */
bool pool_check(const struct pool *p);

#endif
