/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How much may be on its way to a responder; flight.c has the theory. */
#ifndef LONGHAUL_ENGINE_FAR_FLIGHT_H
#define LONGHAUL_ENGINE_FAR_FLIGHT_H

#include "engine/core/core.h"

uint64_t flight_arena_size(uint32_t nflows);
bool flight_init(struct engine *e);

/** flight_full - no more may be sent now; the lane's next ACK changes that. */
bool flight_full(struct engine *e, struct flow *fl);
/** flight_moved - una or nxt has moved. */
void flight_moved(struct engine *e, struct flow *fl);
/** flight_acked - the responder has acknowledged @n packets. */
void flight_acked(struct engine *e, struct flow *fl, uint32_t n);
/** flight_lost - something was lost; @timeout: so much that nothing came back. */
void flight_lost(struct engine *e, struct flow *fl, bool timeout);
/** flight_end - the lane ends. */
void flight_end(struct engine *e, struct flow *fl);

#endif
