/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The WAN between two appliances: how they agree on a lane, and the stream of its requests. */
#ifndef LONGHAUL_ENGINE_LINK_LINK_H
#define LONGHAUL_ENGINE_LINK_LINK_H

#include "engine/core/core.h"

/* handover.c: OPENER, SINGLE */
bool lane_may_open(struct engine *e, const struct flow *fl, const struct frame *f);
void lane_open(struct engine *e, struct flow *fl, const struct frame *f);
void lane_send_open(struct engine *e, struct flow *fl);
void handover_timer(struct engine *e, struct flow *fl);

/* agreement.c: what the peer says about lanes */
void agreement_rx(struct engine *e, unsigned int peer, const struct report *r);

/* stream_tx.c: OPENER */
bool stream_tx_run(struct engine *e, struct flow *fl, uint32_t quantum);
void stream_tx_progress(struct engine *e, struct flow *fl, const struct report *r);
void stream_tx_timeout(struct engine *e, struct flow *fl);
void stream_tx_restart(struct engine *e, struct flow *fl);

/* stream_rx.c: ACCEPTOR */
void stream_rx_request(struct engine *e, struct flow *fl, const struct frame *f);
void stream_rx_skipped(struct engine *e, struct flow *fl, uint32_t from, uint32_t end);
uint64_t stream_rx_report(struct engine *e, struct flow *fl);

#endif
