/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * READs in streams, of memory that changes while it is read: what prefetch lives on, and what it
 * must not get wrong. Used by world_qp.c, world_run.c and the callbacks in world.c.
 *
 * A stream asks for pieces of the same length at a constant distance, over a range and around
 * again; several of them take turns on one queue pair, and now and then one starts somewhere else.
 *
 * The upper half of a host's region may be one that its owner changes (tests/lab/model/versions.h).
 * What a READ of it may bring depends on what the reader can know of the changes:
 *
 *	- a message or atomic from the owner that it has received: whatever was changed before that
 *	  was posted, on any queue pair of the two hosts;
 *	- its own requests ahead of the READ on the same queue pair: the owner has received them
 *	  when the READ is executed, and what it changed thereupon must be seen;
 *	- time: what was changed before the READ was posted, or before that by as much as the rule
 *	  allows (world_config.prefetch_max_age_ns).
 */
#ifndef SCENARIO_READERS_H
#define SCENARIO_READERS_H

#include "tests/lab/model/rc_host.h"

struct world;
struct world_qp;
struct readers;

/** readers_start - host @owner of @q changes the upper half of its region every @period_ns as long
 * as the other
 *  host has work to do. Both ends were made with mr_fixed, rmr_fixed. */
int readers_start(struct world_qp *q, int owner, uint64_t period_ns);
void readers_exit(struct world_qp *q);

/** readers_read - the next READ of a stream of host @side, into @wr. */
void readers_read(struct world_qp *q, int side, struct rc_wr *wr);
/** readers_posting - host @side is about to post @wr; every request goes through here. */
void readers_posting(struct world_qp *q, int side, const struct rc_wr *wr);
/** readers_received, readers_atomic - host @side has executed a message, an atomic of the other's.
 * */
void readers_received(struct world_qp *q, int side, uint64_t number);
void readers_atomic(struct world_qp *q, int side, uint64_t number);
/** readers_check - data has come to host @side. NULL: right */
const char *readers_check(struct world_qp *q, int side, const struct rc_read_data *d);

/** readers_next, readers_run - the next change to memory, RC_NEVER when there is none; make those
 * that are due. */
uint64_t readers_next(const struct world *w);
void readers_run(struct world *w);

#endif
