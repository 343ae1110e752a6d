/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which queue pairs belong together, and what their responders' MSN is. */
#ifndef LONGHAUL_ENGINE_LEARN_LEARN_H
#define LONGHAUL_ENGINE_LEARN_LEARN_H

#include "engine/owner/owner.h"

void learn_frame(struct engine *e, struct flow *fl, struct frame *f);
/** learn_held - the request @f, whose ICRC is right, was taken into custody: its sender's headers,
 * now and then; learn_due - it is time for that. */
bool learn_due(const struct flow *fl);
void learn_held(struct flow *fl, const struct frame *f);
/** learn_offered - the peer knows of the connection @r; here its handshake may not be over. */
void learn_offered(struct engine *e, const struct report *r);
/** cm_table_create, cm_table_bytes - places for the handshakes of @conns connections. */
struct cm_table *cm_table_create(struct arena *a, uint32_t conns);
uint64_t cm_table_bytes(uint32_t conns);
/** echo_create, echo_bytes - places for what learn/echo.c asks and hears; echo_forget - it is
 * another process's. */
struct echo *echo_create(struct arena *a);
uint64_t echo_bytes(void);
void echo_forget(struct engine *e);
/** echo_passed - the request @f of @fl has passed; echo_tick - send again what is due. */
void echo_passed(struct engine *e, struct flow *fl, const struct frame *f);
void echo_tick(struct engine *e);
void learn_cm(struct engine *e, enum engine_port from, const struct frame *f);
void learn_request(struct engine *e, struct flow *fl, const struct frame *f);
void learn_response(struct engine *e, struct flow *fl, const struct frame *f);

#endif
