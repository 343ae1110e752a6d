/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A feed: lines of JSON that clients of the control socket read as they are written. The writer
 * never waits: lines go into a ring in which each reader has its own position. A reader that is too
 * slow loses the lines that were overwritten and is told how many. Without readers no line is made.
 */
#ifndef LONGHAUL_CONTROL_FEED_H
#define LONGHAUL_CONTROL_FEED_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FEED_LINE_MAX 32768 /* a longer one is dropped and counted as lost */

/** struct feed - set @size, all else zero, to begin with. Positions count bytes since the first. */
struct feed {
	size_t size;
	char *ring, *line;
	uint64_t head, lines;
	unsigned int readers;
};

/** struct feed_reader - the next byte that it has not seen, and lines before that. */
struct feed_reader {
	uint64_t pos, lines;
};

/** feed_wanted - whether there are readers: else no line need be made. */
static inline bool feed_wanted(const struct feed *f)
{
	return f && f->readers;
}

/** feed_put - a line for all readers; the reference is taken over. */
void feed_put(struct feed *f, json_t *o);

/** feed_join - read from now on. 0 or -ENOMEM. */
int feed_join(struct feed *f, struct feed_reader *r);

/** feed_leave - read no more. */
void feed_leave(struct feed *f);

/** feed_pending - whether there is anything to read. */
bool feed_pending(const struct feed *f, const struct feed_reader *r);

/** feed_read - whole lines into @buf, FEED_LINE_MAX bytes at least. Returns how many bytes. */
size_t feed_read(const struct feed *f, struct feed_reader *r, char *buf, size_t len);

#endif
