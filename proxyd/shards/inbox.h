/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames that one thread received and another one's shard is to have: copies, in their order. One
 * thread puts, one takes, at the same time.
 */
#ifndef LONGHAUL_SHARDS_INBOX_H
#define LONGHAUL_SHARDS_INBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"

#define INBOX_FRAMES 512u

struct inbox;

/** inbox_size - bytes that one takes. */
uint64_t inbox_size(void);

/** inbox_new - room for INBOX_FRAMES; NULL: no memory. */
struct inbox *inbox_new(void);
void inbox_free(struct inbox *b);

/** inbox_room - frames that can be put; the putting thread's. */
uint32_t inbox_room(const struct inbox *b);

/** inbox_put - a copy of the frame of shard @shard; false when there is no room, or it is too long.
 */
bool inbox_put(struct inbox *b, unsigned int shard, enum engine_port port, const uint8_t *data,
	       uint32_t len);

/** struct inbox_frame - @data: to be changed until inbox_done(). */
struct inbox_frame {
	uint8_t *data;
	uint32_t len;
	enum engine_port port;
	unsigned int shard;
};

/** inbox_frames - how many there are now; the taking thread's. */
uint32_t inbox_frames(const struct inbox *b);

/** inbox_first - the oldest; inbox_done - it was taken. There is one. */
struct inbox_frame inbox_first(struct inbox *b);
void inbox_done(struct inbox *b);

/** inbox_bytes - that came by @port and are in it, while no thread puts or takes. */
uint64_t inbox_bytes(const struct inbox *b, enum engine_port port);

#endif
