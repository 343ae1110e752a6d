/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What one thread of bench_shards does. A load is made, run and ended by its own thread, and shares
 * nothing with another one.
 *
 * Frames are made once. From batch to batch only their PSN is patched, so that a thread is in the
 * engine nearly all of the time. Between the two engines of a pair a frame stays where it is: what
 * the first one sends is what it was given, and a seal.
 */
#ifndef BENCH_SHARD_LOAD_H
#define BENCH_SHARD_LOAD_H

#include <stdint.h>

enum load_kind {
	LOAD_OPENER, /* as in bench_engine */
	LOAD_PAIR,   /* opener and acceptor; host B acknowledges at once, reports come late */
	LOAD_COPY,   /* no engine: CRC and copy of the same frames into a ring of that size */
	LOAD_COUNT,  /* no memory: multiplications */
	LOADS,
};

/**
 * struct load_cell
 * @custody: bytes of packets that an opener has in custody, or of the ring of LOAD_COPY
 */
struct load_cell {
	enum load_kind kind;
	uint32_t mtu, custody;
};

struct load;

/** load_create - host pair @host. Runs until as much is in custody as shall be. */
struct load *load_create(const struct load_cell *c, uint8_t host);
void load_destroy(struct load *l);

/** load_batch - BATCH packets. Returns ns in the engines. */
uint64_t load_batch(struct load *l);

/** load_wrong - why the numbers mean nothing, or NULL. */
const char *load_wrong(struct load *l);

#endif
