/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory that its owner changes, so that a reader can tell the age of the data that it got. The
 * memory consists of blocks of 64 bytes. Every change has a number, counted per host; a block bears
 * the number of its latest change in its first word, and words that follow from seed, block and
 * number in the others. So a block shows its age, and one that was put together from two, or that
 * belongs elsewhere, shows that.
 *
 * What a reader may rely on is a number too, the floor: all changes up to it must be visible.
 */
#ifndef LAB_VERSIONS_H
#define LAB_VERSIONS_H

#include <stdbool.h>
#include <stdint.h>

#define VERSIONS_BLOCK 64u

/** struct versions_clock - the changes of one host, and when they were made (the latest
 * VERSIONS_TIMES). */
#define VERSIONS_TIMES 65536u
struct versions_clock {
	uint64_t latest;
	uint64_t *when;
};

enum versions_verdict {
	VERSIONS_RIGHT,
	VERSIONS_STALE,	  /* older than the floor demands */
	VERSIONS_WRONG,	  /* never was like that, or is not from here */
	VERSIONS_UNKNOWN, /* changed too often since to be told */
};

struct versions;

int versions_clock_init(struct versions_clock *c);
void versions_clock_exit(struct versions_clock *c);

/** versions_clock_at - the latest change that is not younger than @when. */
uint64_t versions_clock_at(const struct versions_clock *c, uint64_t when);

/** versions_create - @size bytes at @mem (not owned; a multiple of 64) become blocks with change 0.
 * */
struct versions *versions_create(struct versions_clock *c, uint8_t *mem, uint64_t size,
				 uint64_t seed);
void versions_destroy(struct versions *v);

/** versions_change - one change to @n blocks from @block on. Returns its number. */
uint64_t versions_change(struct versions *v, uint64_t now, uint32_t block, uint32_t n);

uint32_t versions_blocks(const struct versions *v);

/** versions_check - @len bytes read from offset @off of the memory, by somebody who may rely on
 * @floor. Blocks
 *  that are not whole in it are not judged. */
enum versions_verdict versions_check(const struct versions *v, uint64_t off, const uint8_t *data,
				     uint32_t len, uint64_t floor);

#endif
