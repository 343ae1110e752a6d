/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which queue pairs belong together, and what their responders' MSN is. */
#ifndef LONGHAUL_ENGINE_LEARN_LEARN_H
#define LONGHAUL_ENGINE_LEARN_LEARN_H

#include "engine/core/core.h"

void learn_frame(struct engine *e, struct flow *fl, struct frame *f);
/** learn_held - the request @f, whose ICRC is right, was taken into custody: its sender's headers,
 * now and then; learn_due - it is time for that. */
bool learn_due(const struct flow *fl);
void learn_held(struct flow *fl, const struct frame *f);
/** learn_offered - the peer knows of the connection @r; here it may be in the middle of its
 * handshake. */
void learn_offered(struct engine *e, const struct report *r);
/** cm_table_create, cm_table_bytes - places for the handshakes of @conns connections. */
struct cm_table *cm_table_create(struct arena *a, uint32_t conns);
uint64_t cm_table_bytes(uint32_t conns);
void learn_cm(struct engine *e, enum engine_port from, const struct frame *f);
void learn_request(struct engine *e, struct flow *fl, const struct frame *f);
void learn_response(struct engine *e, struct flow *fl, const struct frame *f);

/* match.c: which queue pairs bear the same PSNs */
/** learn_passed - a repeat of the held @fl passes to the responder: who is answered? */
void learn_passed(struct engine *e, struct flow *fl, uint32_t psn);
/** learn_no_pair - @fl, whose lane has ended, and its partner are no pair: another one answers. */
void learn_no_pair(struct engine *e, struct flow *fl);
/** learn_asker - the unpaired flow that an ACK of @psn in the paired flow @ack answers, or NULL. */
struct flow *learn_asker(struct engine *e, const struct flow *ack, uint32_t psn);
/**
 * learn_answers_other - the response @f, which nobody on the lane of @fl waits for, is another
 * responder's: one that the requester has now. It has passed then.
 */
bool learn_answers_other(struct engine *e, struct flow *fl, const struct frame *f);

#endif
