/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Standing in for the responder, toward the near requester (roles OPENER and SINGLE). */
#ifndef LONGHAUL_ENGINE_NEAR_NEAR_H
#define LONGHAUL_ENGINE_NEAR_NEAR_H

#include "engine/reads/reads.h"

/* pseudo_responder.c */
void near_request(struct engine *e, struct flow *fl, const struct frame *f);
void near_response(struct engine *e, struct flow *fl, const struct frame *f, enum engine_port from);
void near_old_response(struct engine *e, struct flow *fl, const struct frame *f);

/* unknown.c: packets whose opcode has no row */
void near_unknown(struct engine *e, struct flow *fl, const struct frame *f);

/* room.c: backpressure */
bool over_rule_cap(const struct engine *e, const struct flow *fl, uint32_t len);
/** over_reads - the lane has as many records of READs as one may have. */
bool over_reads(const struct lane *l);
void send_cnp(struct engine *e, struct flow *fl);
void wait_for_room(struct engine *e, struct flow *fl);
void near_room(struct engine *e);
/** window_seen - the host has sent up to @end untold; window_grows - more than before. */
void window_seen(struct lane *l, struct host_psn end);
bool window_grows(const struct lane *l, struct host_psn end);

/* pressed.c: whether memory or PSNs are short */
/* The unit of lane.near.window: up to 256 MiB. */
#define WINDOW_SHIFT 12
/** pool_pressed - little of the lane's share of the pool is left; pool_full - next to nothing. */
bool pool_pressed(const struct engine *e, const struct lane *l);
bool pool_full(const struct engine *e, const struct lane *l);
bool span_pressed(const struct engine *e, const struct lane *l);
/** share_left, span_left - sixteenths of its share of the pool, and of its span, that are left. */
uint32_t share_left(const struct engine *e, const struct lane *l);
uint32_t span_left(const struct engine *e, const struct lane *l);
/** window_fits - whether the pool has room for another window of each host with custody. */
bool window_fits(const struct engine *e, const struct lane *l);

/* ack_tx.c: what the near requester is told */
bool frontier_may_pass(struct engine *e, struct lane *l, const struct read_rec *r);
void frontier_trim(struct engine *e, struct lane *l);
void nak_send(struct engine *e, struct flow *fl);
void near_tell(struct engine *e, struct flow *fl);
void near_tell_again(struct engine *e, struct flow *fl);

/* let_go.c: the lane ends as soon as its host was told nothing but what is true */
void near_let_go(struct engine *e, struct flow *fl);
/** near_may_part - a drained lane may end: the host's numbers hold, or its responder is gone. */
bool near_may_part(struct engine *e, const struct flow *fl);

/* ease.c: the host is told a little at a time while it is held back */
/** near_ease - after true ACKs; near_ease_one - the host has repeated; near_ease_timer. */
void near_ease(struct engine *e, struct flow *fl);
void near_ease_one(struct engine *e, struct flow *fl);
void near_ease_timer(struct engine *e, struct flow *fl);
/** near_promised - the host was told more than the responder has acknowledged. */
bool near_promised(struct engine *e, const struct lane *l);

/* Anybody can ask for a READ again. So many rounds without an answer are taken for the host's. */
#define REASKED_MOST 3
/** reasked_waits - whether no ACK must go out before the answer to a READ has passed once more. */
static inline bool reasked_waits(const struct lane *l)
{
	return psn_known(l->keeper.reasked_psn) && l->keeper.reasked <= REASKED_MOST;
}

/* duplicate.c: requests that are not the next one. near_spoken - it is the host that speaks */
void near_spoken(struct engine *e, struct flow *fl);
void duplicate_request(struct engine *e, struct flow *fl, const struct frame *f);
void duplicate_passes(struct flow *fl, const struct frame *f);

/* incarnation.c: whether another owner of the number asks */
bool incarnation_jumped(struct engine *e, struct flow *fl, const struct frame *f, bool first);
bool incarnation_gone_on(struct engine *e, struct flow *fl, const struct frame *f);

/* unseen.c: READs whose answer has not passed here */
void unseen_proved(struct engine *e, struct flow *fl);

/* atomic.c: ATOMICs whose earlier content may be thrown away */
bool atomic_make(struct engine *e, struct flow *fl);
bool atomic_again(struct engine *e, struct flow *fl, const struct frame *f);
void atomic_asked(struct engine *e, struct flow *fl);

#endif
