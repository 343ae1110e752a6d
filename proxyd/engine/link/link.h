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

/* loss.c: OPENER, which packets of the stream are lost; they are marked PKT_LOST */
/** loss_overdue_us - how long after its transmission the peer reports a packet, at most, if it is
 * not lost; us, 0 while no round trip was measured. */
uint32_t loss_overdue_us(const struct lane *l);
/** loss_judge - by the report @r, which shows all before @cum as received (@cum is not beyond what
 * the lane has taken from the host). To be called before @l->reached moves there. */
void loss_judge(struct engine *e, struct lane *l, const struct report *r, uint32_t cum);
/** loss_give_up - of the packets in [@from, @end), those are lost that were sent @older us ago or
 * before. */
void loss_give_up(struct engine *e, struct lane *l, uint32_t from, uint32_t end, uint32_t older);

/* stream_rx.c: ACCEPTOR */
void stream_rx_request(struct engine *e, struct flow *fl, const struct frame *f);
void stream_rx_skipped(struct engine *e, struct flow *fl, uint32_t from, uint32_t end);
uint64_t stream_rx_report(struct engine *e, struct flow *fl);

#endif
