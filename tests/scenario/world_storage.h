/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A storage initiator on host 0 and a target on host 1, over one queue pair: NVMe over RDMA, iSER
 * or NFS over RDMA as far as they can be seen on the cable (world_form.h). The initiator SENDs
 * commands that name buffers of its own; of a write command the target READs them, in pieces, of a
 * read command it WRITEs them; then it SENDs the response, after which the initiator uses the
 * buffers for something else.
 *
 * Every command has data of its own (pattern.h), so bytes of another command show. The buffer is
 * offered from the capsule until the response has reached the initiator: a READ of anything else is
 * a violation, by the target or by an appliance, and breaks the queue pair like a revoked key.
 */
#ifndef SCENARIO_WORLD_STORAGE_H
#define SCENARIO_WORLD_STORAGE_H

#include "tests/scenario/world_form.h"
#include "tests/scenario/world.h"

#define STORAGE_DEPTH 64u

/**
 * struct storage_config
 * @min, @max: bytes of a command's data
 * @depth:     commands at a time
 * @count:     commands in all
 * @split:     bytes that the target READs at a time, 0: all at once
 * @one_key:   all buffers have one key, which is never revoked, and commands use the same buffers
 *             again; else each command has a key of its own, and the response revokes it
 * @odd:       buffers begin anywhere
 * @reads:     so many thousandths of the commands read
 * @inlined:   so many of the write commands bring their data in the capsule; of iSER some of it
 * @refused:   so many of the write commands are answered without a look at their data
 * @form:      enum storage_form
 * @parts:     buffers of a command, at most; 0: one. iSER has one
 * @chatter:   before so many of the responses the target says something else
 */
struct storage_config {
	uint32_t min, max, depth, split, reads, inlined, refused, form, parts, chatter;
	uint64_t count;
	bool one_key, odd;
};

/** struct storage_stats - @done: commands, @bytes: of data; @first, @last: when the first began and
 * the last ended; @longest, @sum: ns from capsule to response. */
struct storage_stats {
	uint64_t done, bytes, first, last, longest, sum;
};

/** storage_qp - what the queue pair of the initiator must be like. */
void storage_qp(struct rc_qp_config *c, const struct storage_config *s);

/** storage_begin - let them work over @q, which world_connect() has made of storage_qp(). */
bool storage_begin(struct world_qp *q, const struct storage_config *s);
void storage_exit(struct world_qp *q);
bool storage_done(const struct world_qp *q);
const struct storage_stats *storage_stats(const struct world_qp *q);

/* From the hosts of the world. */
void storage_received(struct world_qp *q, int side, const struct rc_message *m);
void storage_completed(struct world_qp *q, int side, const struct rc_completion *c);
bool storage_read(struct world_qp *q, int side, const struct rc_read_data *d);
bool storage_offered(struct world_qp *q, int side, uint32_t rkey, uint64_t va, uint32_t len);

#endif
