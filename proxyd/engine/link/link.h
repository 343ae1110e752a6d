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
void stream_tx_peer_back(struct engine *e, struct flow *fl);

/* loss.c: OPENER, which packets of the stream are lost; they are marked PKT_LOST */
/** loss_trail - the lane was idle, perhaps for as long as half of what its times hold. */
void loss_trail(struct engine *e, struct lane *l);
/** loss_overdue_us - how long after its transmission the peer reports a packet, at most, if it is
 * not lost; us, 0 while no round trip was measured. */
uint32_t loss_overdue_us(const struct engine *e, const struct lane *l);
/** loss_judge - by the report @r, which shows all before @cum as received (@cum is not beyond what
 * the lane has taken from the host). To be called before @l->reached moves there. */
void loss_judge(struct engine *e, struct lane *l, const struct report *r, uint32_t cum);
/** loss_give_up - of the packets in [@from, @end), those are lost that were sent @older us ago or
 * before. */
void loss_give_up(struct engine *e, struct lane *l, uint32_t from, uint32_t end, uint32_t older);

/* stream_rx.c: ACCEPTOR */
void stream_rx_request(struct engine *e, struct flow *fl, const struct frame *f);
void stream_rx_unknown(struct engine *e, struct flow *fl, const struct frame *f);
void stream_rx_skipped(struct engine *e, struct flow *fl, uint32_t from, uint32_t end);
uint64_t stream_rx_report(struct engine *e, struct flow *fl);
/** stream_rx_named - @d, held at @psn, is what the opener sent there. To be followed by
 * stream_rx_deliver(). */
void stream_rx_named(struct engine *e, struct flow *fl, struct pkt *d, uint32_t psn);
/** stream_rx_refuse - what came as @psn cannot be kept: the opener is asked for it again. */
void stream_rx_refuse(struct engine *e, struct flow *fl, uint32_t psn);
/** stream_rx_make_room - drop what is held without a name; if that is nothing and @more, what is
 * held out of order. False when there was nothing to drop. */
bool stream_rx_make_room(struct engine *e, struct flow *fl, bool more);
/** stream_rx_let_go - the opener has let go of what it had not promised: the lane ends. */
void stream_rx_let_go(struct engine *e, struct flow *fl);
/** stream_rx_deliver - hand what has become contiguous to the requester's stand-in. */
void stream_rx_deliver(struct engine *e, struct flow *fl);
/** stream_rx_go_on - the same where a READ waited for a record, if there is one now. */
void stream_rx_go_on(struct engine *e, struct flow *fl);

/* names_tx.c: OPENER */
/** names_begin - the lane is agreed on anew: everything is named from the true ACK on. */
void names_begin(struct engine *e, struct flow *fl);
/** names_due - packets were sent that have no name yet. */
void names_due(struct engine *e, struct flow *fl);
/** names_report - name them now or later. Returns when it wants to be called again, ns, 0 for
 * never. */
uint64_t names_report(struct engine *e, struct flow *fl);
/** names_heard - what the report @r says of names. */
void names_heard(struct engine *e, struct flow *fl, const struct report *r);
/** names_renamed - whether the name of the packet at @psn was lost, and was told again lately. */
bool names_renamed(const struct lane *l, uint32_t psn);
/** names_overdue - the peer is silent: name again what it is not known to know. */
void names_overdue(struct engine *e, struct flow *fl);

/* names_rx.c: ACCEPTOR */
enum names_verdict {
	NAMES_RIGHT, /* the opener has sent it */
	NAMES_LATER, /* that is not known yet: to be held, and not delivered */
	NAMES_WRONG, /* it is to be dropped */
};
/** names_begin_rx - a lane begins whose first packet has the PSN @start. */
void names_begin_rx(struct lane *l, uint32_t start);
/** names_judge - whether the stream packet @f may be what the opener sent. */
enum names_verdict names_judge(struct engine *e, struct flow *fl, const struct frame *f);
/** names_guess - one more is held without a name. */
void names_guess(struct engine *e, struct lane *l);
/** names_drop_guesses - of what is held in [@from, @end), drop what has no name. */
void names_drop_guesses(struct engine *e, struct flow *fl, uint32_t from, uint32_t end);
/** names_rx - the report @r, which names packets. */
void names_rx(struct engine *e, struct flow *fl, const struct report *r);
/** names_skipped - what is missing in [@from, @end) is not needed any more, nor are names. */
void names_skipped(struct engine *e, struct lane *l, uint32_t from, uint32_t end);
/** names_missing - names are missing, or packets wait for theirs for long. */
bool names_missing(const struct engine *e, const struct lane *l);
/** names_tell - what PROGRESS says of names, into @r: gaps in [@from, @to). Returns how far it
 * tells them all, @to at most. */
uint32_t names_tell(struct engine *e, const struct lane *l, struct report *r, uint32_t from,
		    uint32_t to);
/** names_wait - see to packets that wait for their name in vain. Returns when it wants to be called
 * again, ns, 0 for never. */
uint64_t names_wait(struct engine *e, struct flow *fl);
/** names_end - the lane ends. */
void names_end(struct engine *e, struct lane *l);

#endif
