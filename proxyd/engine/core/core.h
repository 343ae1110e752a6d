/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What every room of the engine may call: flows, custody, states, marks, what is due, what leaves.
 */
#ifndef LONGHAUL_ENGINE_CORE_CORE_H
#define LONGHAUL_ENGINE_CORE_CORE_H

#include "engine/core/marks.h"
#include "engine/core/holes.h"
#include "engine/core/must.h"
#include "engine/number/psn_map.h"
#include "engine/core/state.h"
#include "engine/core/stream.h"

/* out.c: what leaves the engine */
int engine_tx(struct engine *e, const struct flow *fl, enum engine_port port, const uint8_t *data,
	      uint32_t len);
int engine_tx_kept(struct engine *e, const struct flow *fl, enum engine_port port,
		   const uint8_t *data, uint32_t len);
/** engine_tx_own - OPENER: the same for a request that it has added, to its peer. */
int engine_tx_own(struct engine *e, const struct flow *fl, const uint8_t *data, uint32_t len);
/** engine_tx_parity - a frame of parity of the lane of @fl, to its peer. */
int engine_tx_parity(struct engine *e, const struct flow *fl, const uint8_t *data, uint32_t len);
uint64_t engine_port_again(const struct engine *e, enum engine_port port);
void engine_pass(struct engine *e, const struct flow *fl, enum engine_port from,
		 const struct frame *f);
/** engine_pass_as_came - pass on @f with the seal that it came with. */
void engine_pass_as_came(struct engine *e, enum engine_port from, const struct frame *f);
void engine_wake_at(struct engine *e, uint64_t when);
void engine_event(struct engine *e, enum engine_event_type type, const struct flow *fl,
		  uint32_t packets, uint64_t bytes);
void engine_event_must(struct engine *e, const struct flow *fl, const struct engine_must *m);
bool ack_send(struct engine *e, struct flow *fl, struct host_psn psn, uint8_t syndrome,
	      uint32_t msn);

/* seal.c: what crosses the WAN of a held lane is sealed */
#define HASH_WORDS 3u
/** keyed_hash - SipHash-2-4 of at most HASH_WORDS words; words and key are little-endian. */
uint64_t keyed_hash(const uint64_t key[2], const uint64_t *words, uint32_t n);
/* What the seal of a request of the opener's own is XORed with as well. */
#define SEAL_OWN    0x9e3779b9u
/* And of a frame of parity (stream_parity.c). */
#define SEAL_PARITY 0x7f4a7c15u
/** seal_possible - the rule does without seals, or its peer knows them. */
bool seal_possible(const struct engine *e, const struct rule *r);
/** seal_begin - OPENER: the lane's marks have begun, in a new generation: draw a key. */
void seal_begin(struct engine *e, struct flow *fl);
/** seal_tell - OPENER: what the OPEN @r says of that; seal_agree - ACCEPTOR: take it from there. */
void seal_tell(const struct lane *l, struct report *r);
void seal_agree(struct lane *l, const struct report *r);
/** seal_same - ACCEPTOR: the OPEN @r bears the key of the lane. */
bool seal_same(const struct lane *l, const struct report *r);
/** seal_leave - the lane @was was let go: @l, which watches, opens what the peer had sent. */
void seal_leave(struct lane *l, const struct lane *was);
/** seal_tag - that of the packet @psn; 0: it has none. */
uint32_t seal_tag(struct engine *e, const struct lane *l, bool response, struct wire_psn psn);
/** seal_of - what the ICRC of the frame @data is XORed with on the WAN, little-endian, or 0. */
uint32_t seal_of(struct engine *e, const struct lane *l, const uint8_t *data);
/** seal_right, seal_failed - the ICRC without the seal is right, or wrong. */
void seal_right(struct lane *l);
void seal_failed(struct engine *e, struct flow *fl, const struct frame *f);
/** seal_came_native - the ICRC of @f was right before the seal was taken off. */
bool seal_came_native(const struct frame *f);
/** seal_bypass - packets of the lane of @fl miss one of the two appliances, and have for a while;
 * @let_go: so that the lane is to end as soon as it owes nothing. */
void seal_bypass(struct engine *e, struct flow *fl, enum path_miss how, bool let_go);
/** seal_sure - OPENER: the peer knows the lane, and seals what it sends of it. */
bool seal_sure(const struct lane *l);

/* flow.c */
struct flow *flow_at(struct engine *e, uint32_t index);
struct flow *flow_by_key(struct engine *e, const struct flow_key *k);
struct flow *flow_find(struct engine *e, const struct frame *f);
struct flow *flow_create(struct engine *e, const struct flow_key *key, enum engine_port side);
void flow_free(struct engine *e, struct flow *fl);
/** flow_forget - free @fl and its partner. */
void flow_forget(struct engine *e, struct flow *fl);
/** flow_unwanted - others find no place, and that of @fl is idle. It may hold packets. */
bool flow_unwanted(const struct engine *e, const struct flow *fl);
/** flow_idle - the connection of @fl may be forgotten, unless it has packets in custody. */
bool flow_idle(const struct engine *e, const struct flow *fl);
void flow_match_rule(struct engine *e, struct flow *fl);
uint32_t flow_read_depth(const struct engine *e, const struct flow *fl);
void flow_open_at(struct flow *fl, uint64_t when);
/** flow_headers - @f, whose ICRC is right, answers a request of @req: its sender's headers. */
void flow_headers(struct engine *e, struct flow *req, const struct frame *f);
void flow_macs(struct engine *e, struct flow *fl, const struct frame *f);
void flow_key_of(struct flow_key *k, const struct frame *f);
bool flow_pair(struct engine *e, struct flow *a, struct flow *b, enum learn_source how);
/** lane_in_order - the requests of the watched @l come in order: see struct lane_watch. */
static inline bool lane_in_order(const struct lane *l)
{
	return l->role == ROLE_NONE && psn_known(l->watch.since) &&
	       psn_is(l->watch.went_on, l->epsn.psn);
}

/** flow_offered - whether the peer will agree to the lane of @fl, as it is known now. */
bool flow_offered(struct engine *e, const struct flow *fl);
/** flow_proved - the pair of @fl, if it has one, is more than a hint: a lane may begin. */
static inline bool flow_proved(const struct flow *fl)
{
	return fl->learned != LEARNED_HINT;
}
void flow_unpair(struct engine *e, struct flow *fl);
/** flow_reversed - whether the two can be the two directions of one connection. */
bool flow_reversed(const struct flow *a, const struct flow *b);
uint32_t *pair_epoch(struct engine *e, const struct flow_key *k);
void pair_untold(struct engine *e, const struct flow_key *k, uint32_t ms);
bool pair_waits(const struct engine *e, const struct flow_key *k);
void pair_steps(struct engine *e, const struct flow_key *k, uint64_t ns);
bool pair_in_step(const struct engine *e, const struct flow_key *k);

/* half.c: flows of which one direction only is known */
uint32_t half_most(const struct engine_config *cfg);
void half_add(struct engine *e, struct flow *fl);
void half_del(struct engine *e, struct flow *fl);
/** half_seen - one more packet of the half-known @fl. */
void half_seen(struct engine *e, struct flow *fl);
/** half_meet - flow_create() for a packet that nothing else tells of; NULL: too many such. */
struct flow *half_meet(struct engine *e, const struct flow_key *key, enum engine_port side);
/** half_moves - whether @fl turns out to come from the port @port. */
bool half_moves(struct engine *e, struct flow *fl, enum engine_port port);
void half_expire(struct engine *e);

/* custody.c: what lanes hold */
struct pkt *lane_retain(struct engine *e, struct flow *fl, const struct frame *f, uint32_t span,
			struct wire_psn psn, bool *bad);
void lane_forget(struct engine *e, struct flow *fl, struct pkt *d, struct wire_psn psn);
void lane_skip(struct engine *e, struct flow *fl, const struct wire_mark *m);
void lane_true_ack(struct engine *e, struct flow *fl, const struct wire_mark *m);
void lane_drop_all(struct engine *e, struct flow *fl);
/** lane_send_rest - what is held and was not sent leaves; from here on it is the hosts' own. */
void lane_send_rest(struct engine *e, struct flow *fl);
uint8_t *lane_packet(struct engine *e, const struct pkt *d);
/** lane_pkt - the packet at @psn, or NULL; lane_pkt_next - the first in [@from, @end). */
static inline struct pkt *lane_pkt(struct engine *e, const struct lane *l, struct wire_psn psn)
{
	return held_pkt(e, &l->held, psn);
}

static inline struct pkt *lane_pkt_next(struct engine *e, const struct lane *l,
					struct wire_psn from, struct wire_psn end,
					struct wire_psn *at)
{
	return held_next(e, &l->held, from, end, at);
}

/* lane.c: states, clocks */
void lane_set_state(struct lane *l, enum lane_state s);
void lane_init(struct flow *fl);
void lane_reset(struct engine *e, struct flow *fl);
struct wire_psn lane_sent_before(const struct lane *l);
bool lane_may_repeat(const struct lane *l, struct wire_psn psn);
/** lane_accepted_add - the ACCEPTOR @fl is found by its opener's number until it is reset. */
void lane_accepted_add(struct engine *e, struct flow *fl);
/** lane_accepted_find - the lane @number of peer @peer, in generation @gen, or NULL. */
struct flow *lane_accepted_find(struct engine *e, int8_t peer, uint32_t number, uint32_t gen);
bool lane_fence(struct engine *e, struct flow *fl);
void lane_guard(struct engine *e, struct flow *fl);
void lane_guard_again(struct engine *e, struct flow *fl);
void lane_unfence(struct engine *e, struct flow *fl);
/* A round trip of @us that ends now; nothing is learned of one that began before this process last
 * stood still (engine_stood_still()), for nobody knows when it ended. */
void rtt_sample(const struct engine *e, struct rtt *t, uint32_t us);
/* A timer of @us, but no longer than hosts have patience: where the other side stood still, round
 * trips seemed to last as long as that, and what is lost next is missed as late. */
uint64_t rtt_capped_us(const struct rtt *t, uint64_t us);
/**
 * lane_credit - the responder has said @syndrome, in an ACK, or (@answer) with data. True: now the
 * requester has credits.
 */
bool lane_credit(struct lane *l, uint8_t syndrome, bool answer);
/** lane_syndrome - that of an ACK of ours. */
static inline uint8_t lane_syndrome(const struct lane *l)
{
	return l->credit == 0xff ? AETH_ACK_UNLIMITED : l->credit;
}
uint64_t lane_rto_ns(const struct lane *l);
/** lane_asked_below - whether an answer @psn can be to what a host asked below @mark. It has less
 * outstanding than SPAN_MAX. What is older may be ahead for the host. */
static inline bool lane_asked_below(struct wire_psn psn, struct wire_psn mark)
{
	return psn_in(psn, psn_sub(mark, SPAN_MAX), mark);
}

/* close.c: how a lane ends */
void lane_send_close(struct engine *e, struct flow *fl);
void lane_ask_owner(struct engine *e, struct flow *fl);
void lane_lost(struct engine *e, struct flow *fl, uint32_t packets, uint64_t bytes, bool abandoned);
void lane_close(struct engine *e, struct flow *fl, enum lane_reason why, bool tell);
void lane_stay_watched(struct engine *e, struct flow *fl, enum lane_reason why);
void lanes_gone(struct engine *e, struct flow *fl, struct flow *other, unsigned int asked);
/** flow_leave - a while after the hosts of @fl have taken the connection down: free its place. */
void flow_leave(struct engine *e, struct flow *fl);
void lane_hold_back(struct engine *e, struct flow *fl, uint64_t ns);
void lane_drain(struct engine *e, struct flow *fl, enum lane_reason why);
bool lane_drained(const struct lane *l);
/** lane_carries_on - it drains, and takes new requests all the same, without a promise. */
bool lane_carries_on(const struct lane *l);
/** lane_part - end the lane, which has nothing in custody, with its reason. Packets that the peer
 * has sealed may still arrive: their seals are removed, unless the hosts' numbers differ. */
void lane_part(struct engine *e, struct flow *fl);
void lane_check_drained(struct engine *e, struct flow *fl);
void lane_settled(struct engine *e, struct flow *fl);
void lane_refused(struct engine *e, struct flow *fl, struct wire_psn psn, uint8_t syndrome,
		  enum lane_reason why);

/* host.c: is the host there whose queue pair answers nothing? */
/** host_ask - ask the requester's host in FAULT, else the responder's (lane.present). */
void host_ask(struct engine *e, struct flow *fl);
/** host_answered - whether @f answers host_ask(). Such a frame is not passed on. */
bool host_answered(struct engine *e, enum engine_port from, const struct frame *f);

/* due.c: lists of what the tick has to do */
void ack_list(struct engine *e, struct flow *fl);
void ack_schedule(struct engine *e, struct flow *fl);
void ack_again_later(struct engine *e, struct flow *fl);
void due_acks(struct engine *e);
void report_list(struct engine *e, struct flow *fl);
void report_schedule(struct engine *e, struct flow *fl, struct gaps *g, bool urgent);

/* A request that comes again sooner than this is no repetition by a timer. */
#define ROUND_MS 4u

bool report_now(const struct engine *e, struct gaps *g);
uint64_t report_next(const struct gaps *g);
void progress_due(struct engine *e, struct flow *fl, bool urgent);
void due_reports(struct engine *e);

/* meter.c: what crosses the links */
void meter_init(struct engine *e);
unsigned int flow_link(const struct engine *e, const struct flow *fl);
/** link_lost - @packets like those of @h were lost on the link of @l, as the report @r tells;
 * link_lossy - not long ago. */
void link_lost(struct engine *e, const struct lane *l, const struct held *h, uint32_t packets,
	       const struct report *r);
bool link_lossy(const struct engine *e, const struct lane *l);
/** link_loss - share of the bytes that the link loses by noise, or 0. */
double link_loss(const struct engine *e, const struct lane *l);
/** link_depth - of so many groups packets in a row are, where parity is made of them: 1, or
 * PARITY_DEPTH where packets in a row get lost. */
uint32_t link_depth(const struct engine *e, const struct lane *l);
void meter_got(struct engine *e, const struct frame *f);
void meter_tick(struct engine *e);
void meter_rx(struct engine *e, unsigned int peer, const struct report *r);
/** peer_late_us - how late the peer of @l may read what has arrived there (rate_late_ns()). */
uint32_t peer_late_us(const struct engine *e, const struct lane *l);
/** meter_limits - e->cfg has another wan_rate or wan_auto; @was_auto: the one before. */
void meter_limits(struct engine *e, bool was_auto);
/** meter_forget - the peer has begun to count anew. */
void meter_forget(struct engine *e, unsigned int peer);

/* turns.c: turns and tokens */
void pace_init(struct engine *e);
/** pace_limits - e->cfg has another wan_rate, wan_auto or wan_burst. */
void pace_limits(struct engine *e);
void pace_run(struct engine *e, struct flow *fl);
void pace_tick(struct engine *e);

/** pace_pool - the @n engines, of which the first refills, share the tokens of @link and of all
 * links. pace_waits - whether a lane of @e wants to send over @link. */
void pace_pool(struct engine *const *e, unsigned int n, unsigned int link);
bool pace_waits(const struct engine *e, unsigned int link);
bool pace_may_send(struct engine *e);
void pace_sent(struct engine *e, uint32_t len);
/** passing_tokens - bytes that may pass by over link @k, which that floods; 0 or less: none. */
int64_t passing_tokens(struct engine *e, struct wan_link *k);
/** passing_sent - @len bytes have passed by in a flood: those who are paced have less. */
void passing_sent(struct engine *e, uint32_t len);

/* passing.c: WATCH */
/** passing_gap - whether the request @f of @fl, not yet counted as seen, follows one that did not
 * pass because the link is flooded. Such a one begins no lane. */
bool passing_gap(struct engine *e, struct flow *fl, const struct frame *f);
/** passing_may - whether @f, judged by passing_gap(), may pass by; counted when it may not. */
bool passing_may(struct engine *e, struct flow *fl, const struct frame *f);

#endif
