/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The retention pool: bytes of packets that may still be needed.
 *
 * One pool of 64 KiB superblocks. A superblock serves one of three purposes while it is taken:
 *   - log:  packets of one lane, appended one after the other at 16-byte alignment;
 *   - page: sixteen 4 KiB pages (packet descriptors and their directories, see window.h);
 *   - slot: slots of one size, of all lanes: packets of lanes that hold little, header-only packets
 *     (READ and ATOMIC requests), and few descriptors.
 * A log superblock counts its live packets and returns to the pool when the last one is released,
 * except the one that a lane appends to, which is rewound instead. So releases may come in any
 * order, and cumulative release from the head frees superblocks one by one.
 *
 * Pools of one process can lend each other memory: what one does not use, another one that is short
 * can have (pool_shrink(), pool_grow()). Each has places for all of it, most without memory.
 *
 * Two classes of use have caps of their own, so that packets in transit can never take all the room
 * that custody needs, nor the other way round: two appliances that wait for each other always make
 * progress. If the caps add up to more than the pool, a class can use what the other does not, and
 * always has what the other's cap leaves.
 *
 * The reserve. 1/16 of each class's cap (at least one superblock) is set aside for lanes that hold
 * nothing yet: only the first slots of a lane, the first superblock of a log and the first pages of
 * a window may come from all of it, slots of READ requests from half of it, nothing else may use
 * it. So a lane that gets acknowledgements makes progress, however slowly, whatever the others do.
 *
 * Shares. A lane may hold eight times as much as is free, the reserve not counted. One lane alone
 * gets eight ninths, two get 8/17 each, n get 8 / (8 n + 1): a new lane always finds room, what it
 * takes reduces what the others may hold, and lanes need not be counted. The caller checks
 * (pool_share()).
 *
 * Bounds. A frame of f bytes (16-byte aligned: a) takes POOL_BLOCK / floor(POOL_BLOCK / a) bytes,
 * and 16 for its descriptor: 1.052 f at path MTU 4096, 1.027 f at 1024. Besides, each lane has at
 * most one part-filled superblock and three pages.
 *
 * Locations are in units of 16 bytes from the pool's start: 32 bits reach 64 GiB.
 *
 * row: POOL-1, POOL-2, CONV-6, POOL-10
 */
#ifndef LONGHAUL_STORE_POOL_H
#define LONGHAUL_STORE_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "store/arena.h"

#define POOL_BLOCK 65536u
#define POOL_PAGE  4096u
#define POOL_SLOT  192u /* a header-only packet */
#define POOL_NONE  0xffffffffu

enum pool_class {
	POOL_CUSTODY, /* packets accepted from a near requester */
	POOL_TRANSIT, /* packets from the far appliance on their way to a near responder */
	POOL_CLASSES,
};

/** enum pool_need - how much of the reserve may be used. */
enum pool_need {
	POOL_MORE,    /* none */
	POOL_REQUEST, /* half of it: a request without data */
	POOL_FIRST,   /* all of it: for a lane that holds nothing */
};

typedef uint32_t pool_loc;

struct pool;

/**
 * struct pool_log - a lane's end of the pool; zero is not valid, pool_log_init() is.
 * @block: superblock to append to, POOL_NONE when none
 * @used:  bytes used in it
 */
struct pool_log {
	uint32_t block;
	uint32_t used;
};

/**
 * pool_create - a pool of @bytes inside @a, rounded down to superblocks: at least 64 of them, at
 * most 64 GiB less one. It can grow to @most bytes (0: it cannot): the last pool_bare_size() bytes
 * need no memory.
 * @share[class]: percent of the superblocks that the class may hold; if they add up to more than
 * 100, none is above 75. Pages and slots count for the class that takes them. NULL when the arena
 * is too small or the shares are too much.
 */
struct pool *pool_create(struct arena *a, uint64_t bytes, uint64_t most,
			 const unsigned int share[POOL_CLASSES]);

/** pool_arena_size - bytes of arena that pool_create() needs for a pool of @most bytes. */
uint64_t pool_arena_size(uint64_t most);
uint64_t pool_bare_size(uint64_t bytes, uint64_t most);

/** pool_size - bytes of superblocks that have memory. */
uint64_t pool_size(const struct pool *p);

/** pool_short - whether a class holds more than three quarters of what it may, and more memory
 * would help. */
bool pool_short(const struct pool *p);

/** pool_spare - bytes that the pool can do without: it keeps twice what it holds, of each class,
 * and a quarter of what it had at first. */
uint64_t pool_spare(const struct pool *p);

/** pool_shrink - use up to @bytes less, pool_spare() at most; how many. When this batch is
 * committed, pool_give_back(), and then another pool may have them. */
uint64_t pool_shrink(struct pool *p, uint64_t bytes);

/** pool_give_back - give the memory of the latest @bytes of pool_shrink() back to the system. */
void pool_give_back(const struct pool *p, const struct arena *a, uint64_t bytes);

/** pool_grow - take up to @bytes more from the system; how many it had. */
uint64_t pool_grow(struct pool *p, const struct arena *a, uint64_t bytes);

void pool_log_init(struct pool_log *log);

/** pool_append - room for a packet of @len bytes (1 .. POOL_BLOCK) at the log's end; POOL_NONE when
 *  the class is at its cap. The bytes are the caller's to write through pool_ptr(). */
pool_loc pool_append(struct pool *p, enum pool_class c, struct pool_log *log, uint32_t len);

/** pool_unappend - take back the latest pool_append() of this log (a packet that failed its check).
 *  To drop an open message, take back its packets from the last to the first; those in a superblock
 *  before the open one are released. */
void pool_unappend(struct pool *p, struct pool_log *log, pool_loc loc, uint32_t len);

/** pool_release - one packet of @log is not needed any more. A second release, or one with another
 * log or length than in pool_append(), would free bytes that are still needed: it aborts where it
 * notices. */
void pool_release(struct pool *p, struct pool_log *log, pool_loc loc, uint32_t len);

/** pool_log_close - give the open superblock back when it holds nothing (idle lane). A lane that
 * ends releases its packets first. */
void pool_log_close(struct pool *p, struct pool_log *log);

void *pool_ptr(struct pool *p, pool_loc loc);

/* Pages: zeroed 4 KiB. Page ids are not locations; pool_page_ptr() maps them. They are below
 * 2^24 - 1. */
uint32_t pool_page_get(struct pool *p, enum pool_class c);
/** pool_page_get_first - as pool_page_get(), for a lane with few or no pages: may use the reserve.
 */
uint32_t pool_page_get_first(struct pool *p, enum pool_class c);
void pool_page_put(struct pool *p, uint32_t page);
/** pool_page_put_zero - as pool_page_put(), for a page that is all zeroes: the next pool_page_get()
 * need not clear it. */
void pool_page_put_zero(struct pool *p, uint32_t page);
void *pool_page_ptr(struct pool *p, uint32_t page);
/** pool_page_stamp - a number for the page's user, 0 when the page is taken. */
uint32_t *pool_page_stamp(struct pool *p, uint32_t page);

/** pool_slot_get - room for @len bytes outside of logs, not zeroed; POOL_NONE when there is none,
 * or no slot is so large. */
pool_loc pool_slot_get(struct pool *p, enum pool_class c, uint32_t len, enum pool_need need);
void pool_slot_put(struct pool *p, pool_loc slot);

/** pool_room - bytes of packets that the class can take for sure without its reserve, for frames of
 * 512 bytes and more. Alignment, ends of superblocks and descriptor pages are subtracted. */
uint64_t pool_room(const struct pool *p, enum pool_class c);

/** pool_share - bytes that one lane may hold now; one that holds more must not grow. */
uint64_t pool_share(const struct pool *p, enum pool_class c);

/** pool_share_most - bytes that a lane which holds @holds can reach if the others keep what they
 * hold: its share gets smaller as it grows. */
uint64_t pool_share_most(const struct pool *p, enum pool_class c, uint64_t holds);

/** pool_log_room - bytes for one lane that holds @holds: what it may announce or accept. It is
 * pool_room() within its share, but at least what is its own: the rest of its open superblock
 * (frames rounded up to 16 bytes), or one from the reserve if it holds nothing. */
uint64_t pool_log_room(const struct pool *p, enum pool_class c, const struct pool_log *log,
		       uint64_t holds);

/** pool_cap - bytes that the class may hold in all, its reserve included, if the other class holds
 * little. */
uint64_t pool_cap(const struct pool *p, enum pool_class c);

/** pool_cap_now - the same with what the other class holds now. */
uint64_t pool_cap_now(const struct pool *p, enum pool_class c);

/** pool_used - bytes of superblocks that the class holds now, packet bytes or not. */
uint64_t pool_used(const struct pool *p, enum pool_class c);

/** pool_fill - how full the class is, in percent of what it may hold without its reserve; above 100
 * when lanes use the reserve. From 100 on, a lane with a superblock gets no other. */
unsigned int pool_fill(const struct pool *p, enum pool_class c);

/** pool_undo_by - note changes in @u from here on (undo.h); call pool_batch_end() before each
 * undo_commit(). */
struct undo;
void pool_undo_by(struct pool *p, struct undo *u);
void pool_batch_end(struct pool *p);

/** pool_adopted - a batch may have been undone. */
void pool_adopted(struct pool *p);

/** pool_note - @len bytes at @at, of a page or a descriptor in a slot, are about to change. */
void pool_note(struct pool *p, const void *at, uint32_t len);

/** pool_check - walk all of it; true when every superblock, page and slot is accounted for once.
 *  For tests and the scenario runner. */
bool pool_check(const struct pool *p);

#endif
