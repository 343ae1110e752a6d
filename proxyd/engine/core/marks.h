/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The marks of a lane and how they move. Rooms say what has happened; only the functions here write
 * a mark, so that the order una <= nxt <= high <= epsn <= end has one place to be looked at
 * (tests/lint/engine.sh holds that). They are inline: each packet moves three.
 *
 * row: ENG-14
 */
#ifndef LONGHAUL_ENGINE_CORE_MARKS_H
#define LONGHAUL_ENGINE_CORE_MARKS_H

#include "engine/core/lane.h"

/** marks_begin - @l begins at @m: nothing is held or was added: host and wire number alike. */
static inline void marks_begin(struct lane *l, const struct wire_mark *m)
{
	l->epsn = l->una = l->nxt = l->near.honest = *m;
	l->near.frontier = l->near.acked = mark_same_host(*m);
	l->start = l->end = l->high = l->seal.from = m->psn;
	l->seal.turns = l->seal.native_ms = 0;
}

/** marks_lost - nothing of the numbers of @l is known. */
static inline void marks_lost(struct lane *l)
{
	l->epsn.psn = l->una.psn = WIRE_NONE;
}

/** marks_drop - custody is gone: what was accepted counts as the end of everything. */
static inline void marks_drop(struct lane *l)
{
	l->una.psn = l->nxt.psn = l->high = l->end = l->epsn.psn;
}

/** mark_accepted - one more was accepted in order. */
static inline void mark_accepted(struct lane *l, uint32_t span, bool eom, bool ackable)
{
	mark_step(&l->epsn, span, eom, ackable);
}

/** mark_epsn - the next PSN expected is another than was thought (learning, a skip). */
static inline void mark_epsn(struct lane *l, const struct wire_mark *m)
{
	l->epsn = *m;
}

/** mark_epsn_psn, mark_epsn_msn - only one half of it is another. */
static inline void mark_epsn_psn(struct lane *l, struct wire_psn psn)
{
	l->epsn.psn = psn;
}

static inline void mark_epsn_msn(struct lane *l, uint32_t msn)
{
	l->epsn.msn = msn;
}

/** mark_held - the highest packet held ends at @end. */
static inline void mark_held(struct lane *l, struct wire_psn end)
{
	l->end = end;
}

/** mark_sent - the packet at nxt was sent on. */
static inline void mark_sent(struct lane *l, uint32_t span, bool eom, bool ackable)
{
	mark_step(&l->nxt, span, eom, ackable);
}

/** mark_resend - sending goes on at @m: back, or past what need not be sent. */
static inline void mark_resend(struct lane *l, const struct wire_mark *m)
{
	l->nxt = *m;
}

/** mark_high - everything below @psn was sent once. Never goes back. */
static inline void mark_high(struct lane *l, struct wire_psn psn)
{
	psn_raise(&l->high, psn);
}

/** mark_una_psn - released below @psn. Turns of the circle are counted: a seal bears them. */
static inline void mark_una_psn(struct lane *l, struct wire_psn psn)
{
	l->seal.turns += l->sealed && psn.v < l->una.psn.v && psn_after(psn, l->una.psn);
	l->una.psn = psn;
}

/** mark_una - everything below @m is truly acknowledged. */
static inline void mark_una(struct lane *l, const struct wire_mark *m)
{
	mark_una_psn(l, m->psn);
	l->una = *m;
}

/** mark_recount - @by messages fewer were done, and asked for, than was counted. */
static inline void mark_recount(struct lane *l, uint32_t by)
{
	l->una.msn = psn_sub(l->una.msn, by);
	l->nxt.msn = psn_sub(l->nxt.msn, by);
	l->epsn.msn = psn_sub(l->epsn.msn, by);
}

/** mark_frontier - everything below @m may be acknowledged to the requester. */
static inline void mark_frontier(struct lane *l, const struct host_mark *m)
{
	l->near.frontier = *m;
}

/** mark_start - the handover PSN, or what trails una. */
static inline void mark_start(struct lane *l, struct wire_psn psn)
{
	l->start = psn;
}

/** mark_room - the peer takes packets before @psn. */
static inline void mark_room(struct lane *l, struct wire_psn psn)
{
	l->opener.room = psn;
}

#endif
