/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of this room share. */
#ifndef LONGHAUL_ENGINE_FAR_FAR_PRIV_H
#define LONGHAUL_ENGINE_FAR_FAR_PRIV_H

#include "engine/far/far.h"
#include "engine/reads/reads.h"

/** far_asks_again - the responder is asked for @r, the oldest READ, again; @vain: it seems not to
 * have answered it the last time. */
static inline void far_asks_again(struct lane *l, struct read_rec *r, bool vain)
{
	r->tries += vain && r->tries < UINT8_MAX;
	l->far.again = true;
	if (!psn_in((struct wire_psn){l->far.answered}, r->wire, l->high))
		l->far.answered = psn_sub(r->wire, 1).v;
}

/** far_asked - something on its way asks for an answer. */
static inline bool far_asked(const struct lane *l)
{
	return psn_after(l->far.ackreq_end, l->una.psn);
}

/* ---- flight.c ---- */

/** far_arm - the loss timer, where something is on its way. */
void far_arm(struct engine *e, struct flow *fl);
/** far_flight_full - as much as may be is on its way. */
bool far_flight_full(const struct flow *fl);
/** far_unasked - the packet that ends at @next must ask for an ACK, or none in the window may. */
bool far_unasked(const struct flow *fl, struct wire_psn next);
/** far_paced - the next packet has to wait (SINGLE), and its lane gets a turn then. */
bool far_paced(struct engine *e, struct flow *fl);
/** far_pay - a packet was sent: what comes next may have to wait. */
void far_pay(struct engine *e, struct lane *l);
/** far_lost_one - something on its way was lost. */
void far_lost_one(struct engine *e, struct lane *l);
/** far_widen - the responder has acknowledged @n packets. */
void far_widen(struct lane *l, uint32_t n);
/** far_resume_at - go back: what is sent next is the packet at @psn. */
void far_resume_at(struct engine *e, struct flow *fl, struct wire_psn psn);

/* ---- ack_rx.c ---- */

/** far_settle_absorbed - a READ at the true ACK that ends here is done when all before it is. */
void far_settle_absorbed(struct engine *e, struct flow *fl);

#endif
