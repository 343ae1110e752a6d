/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Order between the queue pairs of two hosts (rules with `order = hosts`); order.c has the theory.
 */
#ifndef LONGHAUL_ENGINE_LINK_ORDER_H
#define LONGHAUL_ENGINE_LINK_ORDER_H

#include "engine/core/core.h"

/** order_arena_size, order_init - memory for @nflows lanes. False when the arena is too small. */
uint64_t order_arena_size(uint32_t nflows);
bool order_init(struct engine *e);
/** order_attach - it is mapped at another place now. */
void order_attach(struct order *o);
struct undo;
/** order_undo_by - what changes is noted in @u from here on. */
void order_undo_by(struct order *o, struct undo *u);

/* ---- order.c: the lanes of a log (OPENER, SINGLE) ---- */

/** order_join - the lane is held to its hosts' order if its rule says so, or is `honest`. */
void order_join(struct engine *e, struct flow *fl);
/** order_abandon - both hosts have given up what it holds: others wait where it changes memory. */
void order_abandon(struct engine *e, struct flow *fl);
/** order_leave - it ends. */
void order_leave(struct engine *e, struct flow *fl);
/** order_resume, order_resumed - the lane is to be agreed anew; it is. */
void order_resume(struct engine *e, struct flow *fl);
void order_resumed(struct engine *e, struct flow *fl);
/** order_open - what OPEN says of it. */
void order_open(const struct engine *e, const struct flow *fl, struct report *r);

/* ---- order_barrier.c: barriers (OPENER, SINGLE) ---- */

/** order_want - its host may be told of all before @m (numbers of the host) but for the barrier. */
void order_want(struct engine *e, struct flow *fl, const struct host_mark *m);
/** order_limit - cut @m down to what a barrier lets the host be told. */
void order_limit(struct engine *e, const struct lane *l, struct host_mark *m);
/** order_accepted - something of the lane may have been accepted. */
void order_accepted(struct engine *e, struct flow *fl);
/** order_may_pass - whether a request that no lane holds may pass to the other host. */
bool order_may_pass(struct engine *e, struct flow *fl);
/** order_waits - whether a barrier of the lane's hosts waits for a delivery. */
bool order_waits(const struct engine *e, const struct flow *fl);

/* ---- order_tx.c: the tick, and what the peer is sent of our logs (OPENER) ---- */

/** order_tick - barriers that are due, reports of them. */
void order_tick(struct engine *e);

/* ---- order_rx.c: who carries barriers out (ACCEPTOR, SINGLE) ---- */

/** order_accept - the peer opens the lane with @r. */
void order_accept(struct engine *e, struct flow *fl, const struct report *r);
/** order_end - an ACCEPTOR lane ends. */
void order_end(struct engine *e, struct flow *fl);
/** order_held - whether the packet at @psn of the lane stands behind a barrier. */
bool order_held(const struct engine *e, const struct flow *fl, struct wire_psn psn);
/** order_moved - the responder has acknowledged something of the lane. */
void order_moved(struct engine *e, struct flow *fl);
/** order_rx - ORDER from the peer, of its barriers or about ours. */
void order_rx(struct engine *e, unsigned int peer, const struct report *r);
/** order_forget - the peer is another process now: nothing that its former one said holds. */
void order_forget(struct engine *e, unsigned int peer);

#endif
