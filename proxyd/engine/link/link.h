/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The WAN between two appliances: how they agree on a lane, and the stream of its requests. */
#ifndef LONGHAUL_ENGINE_LINK_LINK_H
#define LONGHAUL_ENGINE_LINK_LINK_H

#include "engine/core/core.h"
#include "engine/link/order.h"

/* handover.c: OPENER, SINGLE */
bool lane_may_open(struct engine *e, const struct flow *fl, const struct frame *f);
void lane_open(struct engine *e, struct flow *fl, const struct frame *f);
void lane_send_open(struct engine *e, struct flow *fl);
void handover_timer(struct engine *e, struct flow *fl);
/** handover_outrun - whether READs of the lane @l were answered past us before the peer agreed: the
 * responder may have forgotten them by the time that the peer asks it for them once more. */
bool handover_outrun(struct engine *e, const struct lane *l);

/* agreement.c: what the peer says about lanes */
void agreement_rx(struct engine *e, unsigned int peer, const struct report *r);

/* stream_tx.c: OPENER */
bool stream_tx_run(struct engine *e, struct flow *fl, uint32_t quantum);
void stream_tx_progress(struct engine *e, struct flow *fl, const struct report *r);
void stream_tx_timeout(struct engine *e, struct flow *fl);
void stream_tx_restart(struct engine *e, struct flow *fl);
/** stream_tx_repeated - the host repeats what it waits for: ask the peer without backoff. */
void stream_tx_repeated(struct engine *e, struct flow *fl);

/* loss.c: OPENER, which packets of the stream are lost; they are marked PKT_LOST */
/** loss_trail - the lane was idle, perhaps for as long as half of what its times hold. */
void loss_trail(struct engine *e, struct lane *l);
/** loss_overdue_us - how soon the peer reports a packet that is not lost; us, 0: not known. */
uint32_t loss_overdue_us(const struct engine *e, const struct lane *l);
/** loss_judge - by the report @r, which shows all before @cum as received (@cum is not beyond what
 * the lane has taken from the host). To be called before @l->reached moves there. */
void loss_judge(struct engine *e, struct lane *l, const struct report *r, struct wire_psn cum);
/** loss_give_up - packets in [@from, @end) that were sent @older us ago, or before, are lost. */
void loss_give_up(struct engine *e, struct lane *l, struct wire_psn from, struct wire_psn end,
		  uint32_t older);

/* stream_rx.c: ACCEPTOR */
void stream_rx_request(struct engine *e, struct flow *fl, const struct frame *f);
void stream_rx_unknown(struct engine *e, struct flow *fl, const struct frame *f);
void stream_rx_skipped(struct engine *e, struct flow *fl, struct wire_psn from,
		       struct wire_psn end);
uint64_t stream_rx_report(struct engine *e, struct flow *fl);
/** stream_rx_refuse - what came as @psn cannot be kept: the opener is asked for it again. */
void stream_rx_refuse(struct engine *e, struct flow *fl, struct wire_psn psn);
/** stream_rx_let_go - the opener has let go of what it had not promised: the lane ends. */
void stream_rx_let_go(struct engine *e, struct flow *fl);
/** stream_rx_go_on - the same where a READ waited for a record, if there is one now. */
void stream_rx_go_on(struct engine *e, struct flow *fl);

/* ahead.c */
/** ahead_tell - OPENER: tell the peer of the READs ahead of the host that are to be sent next, if
 * it is to make them. They count as sent. False: there are none. */
bool ahead_tell(struct engine *e, struct flow *fl);
/** ahead_make - ACCEPTOR: the peer has told of the READs @s. */
void ahead_make(struct engine *e, struct flow *fl, const struct read_series *s);

/* seal_rx.c */
/** seal_open - the frame @f has come over the WAN in flow @fl; its bytes stand at @data, where the
 * seal is taken off. False when the frame is not for its lane, and dealt with. */
bool seal_open(struct engine *e, struct flow *fl, struct frame *f, uint8_t *data);

/** stream_rx_settle - ACCEPTOR: the true ACK may go on: note where it was a round trip ago. */
void stream_rx_settle(struct engine *e, struct lane *l);

/* parity_rx.c */
/** stream_parity_delivered - ACCEPTOR: the request @d at @psn goes on to the responder. */
void stream_parity_delivered(struct engine *e, const struct flow *fl, const struct pkt *d,
			     struct wire_psn psn);
/** stream_parity_rx - the frame @f, at @data, has come in the flow @from: parity of the requests of
 * @fl, or of answers to them. */
void stream_parity_rx(struct engine *e, struct flow *fl, struct flow *from, const struct frame *f,
		      uint8_t *data);

#endif
