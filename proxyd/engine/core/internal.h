/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the engine's files share: the state of a flow and its lane, and who may call whom.
 *
 * A *flow* is one direction of packets to one QP (struct flow_key). Two flows that learned of each
 * other are a connection. A flow owns the *lane* of the requests that travel in its direction; the
 * responses to them travel in the partner flow. So a packet finds its flow by its key, and its lane
 * is the flow's own (request) or the partner's (response).
 *
 * The role of a lane tells which parts are at work in this appliance:
 *
 *	role		requests come from	pseudo_responder.c	link		pseudo_requester.c toward
 *	OPENER		LAN			yes		stream_tx.c	(the peer's)
 *	ACCEPTOR	WAN (stream_rx.c)	(the peer's)	stream_rx.c	LAN
 *	SINGLE		LAN			yes		call		WAN
 *
 * UNASKED is a role of requests that come from the WAN and pass; see solo.c.
 *
 * PSN marks of a lane, in order (all modulo 2^24, half-open: the mark itself is the first not
 * included):
 *
 *	una	released below: truly acknowledged by the responder. Everything in [una, end) is
 *	retained
 *		(ACCEPTOR: but for holes).
 *	front	acknowledged to the requester below (OPENER, SINGLE): F is front - 1
 *	nxt	sent on at least once below
 *	epsn	accepted in order below: pseudo_responder.c's or stream_rx.c's next expected PSN
 *	end	end of the highest packet held; equals epsn but in an ACCEPTOR with holes
 *
 * una <= nxt <= epsn <= end always; una <= front does not hold (true ACKs may run ahead of a front
 * that waits behind an unanswered READ), front <= epsn does. What is pseudo-acknowledged, [una,
 * front), is retained by construction: nothing but lane_release() removes packets, and only below a
 * true ACK, unless the lane faults.
 */
#ifndef LONGHAUL_ENGINE_CORE_INTERNAL_H
#define LONGHAUL_ENGINE_CORE_INTERNAL_H

#include <string.h>

#include "engine/engine.h"
#include "store/arena.h"
#include "store/flow_table.h"
#include "store/mqueue.h"
#include "store/pool.h"
#include "store/wheel.h"
#include "store/window.h"
#include "wire/build.h"
#include "wire/frame.h"
#include "wire/icrc.h"
#include "wire/psn.h"

#define NSEC_PER_USEC 1000ull
#define NSEC_PER_MSEC 1000000ull
#define NSEC_PER_SEC  1000000000ull

/* How long a lane that the peer refused stays in WATCH before it is tried again. */
#define REFUSED_RETRY_NS (2 * NSEC_PER_SEC)

/* An OPEN is repeated after this, and twice the round trip. */
#define OPEN_RETRY_NS (100 * NSEC_PER_MSEC)

/* A READ of more PSNs than this is nobody's to hold (invariant 6). */
#define SPAN_MAX   (1u << 22)
/* Marks that nothing moves follow the true ACK at this distance, so that they never come near the
 * 2^23 at which before turns into after. */
#define MARK_TRAIL (1u << 20)

enum lane_role {
	ROLE_NONE, /* WATCH */
	ROLE_OPENER,
	ROLE_ACCEPTOR,
	ROLE_SINGLE,
	ROLE_SOLO, /* requests come from the WAN; nothing is kept (solo.c) */
};

/* Which message is open, for the opcode sequence check. */
enum msg_kind {
	MSG_NONE,
	MSG_SEND,
	MSG_WRITE,
	MSG_UNKNOWN, /* packets were skipped: whatever comes next */
};

/* @msg_left of a WRITE that was under way when the lane opened */
#define MSG_LEFT_UNKNOWN UINT32_MAX

/* Probes that calibrate the MSN while a lane is watched: ends of messages whose ACK is awaited. */
#define LANE_PROBES 4

/** struct rtt - round trip, us, smoothed (RFC 6298), its mean deviation, and the least; 0 before
 * the first sample. */
struct rtt {
	uint32_t srtt_us, rttvar_us, minrtt_us;
};

/** struct mark - a PSN together with what an ACK just below it would say. */
struct mark {
	uint32_t psn;
	uint32_t msn : 24; /* messages completed below it */
	uint32_t
		ackable : 8; /* the packet just below is a SEND or WRITE: an ACK may bear its PSN */
};

/**
 * struct lane - one requester direction. Times are ns; PSN marks as in the theory above.
 *
 * @gen:        generation, new whenever the lane leaves WATCH; the opener's is the one both sides
 * use
 * @peer_lane:  ACCEPTOR: the opener's number of this lane
 * @msg:        enum msg_kind of the message that @accept is inside of; @msg_left: WRITE bytes still
 * due
 * @accept:     epsn with the MSN of what was accepted so far
 * @front:      see above
 * @una:       una with the responder's MSN there
 * @sent:       nxt with the MSN there; goes back when something must be resent
 * @high:       highest nxt ever
 * @start:      handover PSN; @start_acked: everything below it was truly acknowledged
 * @guard:      first PSN of a message that did not fit the pool when it began (POOL-3), PSN_NONE
 * when
 *              there is none; @guard_end: end of the last such message (so far). Nothing between is
 *              acknowledged early
 * @reasked_psn, @reasked_end: READs asked again after their answer had passed, @reasked_us: when;
 * PSN_NONE
 * @honest:     POLICY_HONEST: last packet of the first message not truly acknowledged (msn:
 * messages
 *              before it); @honest.psn == accept.psn when no message end is known beyond una
 * @opaque:     something not understood is in custody: the responder counts its messages, not we
 * @numbered:   OPENER: it may have been given numbers that the host does not know (lane_fence())
 * @room:       OPENER: the peer takes packets before this PSN
 * @reads:      requests that wait for an answer with data, struct read_rec
 * @acked:      front as told in the latest ACK that went out, for repeating it
 * @told:       next PSN that the requester cannot know to be acknowledged: the latest ACK, or an
 * answered READ
 * @holes:      ACCEPTOR: pool page with missing ranges, POOL_NONE without any
 * @rtt:        of the WAN; ACCEPTOR: of the LAN
 * @progress:   time of the latest progress: budget of the loss timer
 */
struct lane {
	uint8_t state, role, policy, reason;
	int8_t peer;
	uint8_t msg;
	uint8_t credit;	 /* syndrome of the responder's ACKs, 0xff: none seen */
	uint8_t refusal; /* fatal syndrome, 0: none */
	bool calibrated : 1, start_acked : 1, nak_sent : 1, room_wait : 1, ack_due : 1,
		ack_listed : 1, report_due : 1, report_urgent : 1, report_listed : 1,
		run_listed : 1, rnr_wait : 1, accepted : 1, reopen : 1, ack_repeat : 1,
		honest_found : 1, room_listed : 1, probing : 1, doubt : 1, ahead : 1, nak_due : 1,
		opaque : 1, numbered : 1, atomics : 1;
	uint8_t atomic : 2; /* enum atomic_mode */
	uint8_t most; /* SINGLE: READs and ATOMICs that the host was seen to wait for at one time */
	uint8_t jump_run;
	uint8_t unacked;
	uint8_t backoff;

	uint32_t gen, peer_lane;
	uint32_t msg_left;
	struct mark epsn, frontier, una, nxt, honest, acked;
	uint32_t end, high;
	uint32_t start, room, told;
	uint32_t lost; /* packets marked PKT_LOST */
	uint32_t refusal_psn;
	uint32_t report_seq, report_count, hole_cursor;
	uint32_t reached, reached_hi; /* OPENER: the peer has all below, the highest it has */
	uint32_t ackreq_end; /* ACCEPTOR: end of the last packet sent that asks for an ACK */
	uint32_t lost_from;  /* OPENER: no packet below is marked lost */
	bool closing;	     /* ACCEPTOR: the opener is asked to let go */
	uint32_t overlap; /* below this the host had sent it past us before, or may have (OPENER) */
	union {
		struct {
			/* SINGLE: packets that may be on the WAN; ACCEPTOR: on their way to the
			 * responder, in units of CWND_ONE (pseudo_requester.c). @cut_us: when it was
			 * halved */
			uint32_t cwnd;
			uint32_t cut_us;
		};
		struct {
			/* OPENER: so late packets were without being lost; @late_at: when */
			uint32_t late_us : 24;
			uint32_t true_losses : 8; /* since one was only late */
			uint32_t late_at;
		};
	};
	union {
		uint32_t rack_us; /* OPENER: latest transmission time known to have arrived, us */
		uint32_t repeats; /* ACCEPTOR: reports since something changed, while something is
				     missing */
		uint32_t made;	  /* SINGLE: of @reads, the last ATOMIC that was answered here
				     (atomic.c), or MQ_NONE */
	};
	uint32_t jump_psn;
	uint32_t holes;
	uint32_t next_ack, next_report, next_run, next_room;
	uint32_t reads_page; /* struct lane_reads (reads.h), POOL_NONE before the first READ */

	struct window win;
	struct pool_log log;
	struct mq_list reads;
	uint32_t nreads;

	uint32_t packets;  /* retained */
	uint32_t messages; /* message ends retained */
	uint64_t bytes;

	struct rtt rtt;
	uint32_t passed_us; /* when a repeat of what was truly acknowledged was last passed on; 0:
			       never */
	uint64_t progress, opened, last_report;

	union {
		/* WATCH */
		struct {
			struct {
				uint32_t psn, count;
			} probe[LANE_PROBES];
			uint32_t offset,
				offset_run; /* of MSNs in answers to READs from our count */
		};
		/* OPENER, SINGLE; lane_open() sets them up */
		struct {
			struct mark guard;
			uint32_t guard_end;
			uint32_t reasked_psn, reasked_end, reasked_us;
			uint32_t trickle_us; /* latest step of a front that waits for the WAN */
			uint32_t cnp_us;     /* latest CNP to the requester */
		};
		/* FAULT: fault.c */
		struct {
			uint32_t epsn;	/* what the host is thought to expect */
			uint32_t probe; /* PSN of the latest probe */
			uint32_t said;	/* what its latest ACK said that it expects */
			uint16_t step, tries;
			uint8_t stage, silent, tells, dreqs;
			bool write, alive, broken, strange, unsure;
		} fault;
	};

	uint32_t requests, pseudo_acks, true_acks, dup, retx, naks, timeouts, rnr;
};

/**
 * struct flow - one direction of packets to one QP. @key must be first (flow_table.h).
 * @partner:   flow of the other direction, FLOW_NONE while unpaired; @candidate: best guess so far
 * @side:      port that its packets come from
 * @tmpl:      headers of the latest packet seen, for cloning
 * @lqpn:      the sender's QPN when known (the partner's key has it), PSN_NONE else
 * @next:      free list, or hash chain of flows per host pair (unused now)
 * @comm_id:   the sender's CM comm id, 0 when not known
 * @read_depth: READs and ATOMICs that the responder of this flow's requests takes at a time, 0 when
 * not known
 */
struct flow {
	struct flow_key key;
	struct template tmpl;
	uint32_t partner, candidate;
	uint32_t comm_id;
	uint64_t seen;
	uint16_t matches, contradictions;
	uint32_t last_match_psn;
	uint16_t path_mtu;
	int8_t rule;
	uint8_t side;
	uint8_t learned;
	bool used;
	uint8_t tmpl_age;
	uint8_t read_depth;
	uint32_t next_free;
	uint64_t retry_open; /* not before this time */
	struct lane lane;
};

_Static_assert(sizeof(struct flow) <= 576, "state per lane");

/*
 * A request that waits for data from the responder: READ, ATOMIC, FLUSH, ATOMIC WRITE. @at,
 * @resp_next: as its requester numbers them; @wire: the PSN that it has toward the responder
 * (reads.h).
 */
struct read_rec {
	struct mark at;	    /* its first PSN, and what an ACK below it would say */
	uint32_t span;	    /* PSNs */
	uint32_t resp_next; /* next response PSN */
	uint64_t asked;	    /* when it was last sent on, or given, ns */
	uint64_t heard;	    /* when its host asked for it, ns */
	uint64_t given;	    /* when its answer was given for the first time, ns */
	uint64_t va;
	uint32_t length, rkey, wire;
	uint8_t opcode;
	uint8_t tries; /* ACCEPTOR: times that it was asked again in vain */
	bool done, gap;
	bool moved;   /* its MSN on the wire is another one */
	bool made;    /* an ATOMIC that was answered here */
	bool again;   /* answered, and asked again past us since */
	bool empty;   /* answered, and nothing of it is held */
	bool renewed; /* asked for anew because the host asked again; it will once more */
};

/* PSN matching: who sent a message end with this PSN lately? */
struct psn_match {
	uint32_t tag;  /* of host pair, VLAN and PSN */
	uint32_t flow; /* FLOW_NONE: several, no evidence */
	uint64_t when;
};

struct cm_pending {
	struct ip_addr src, dst;
	uint32_t local_id, lqpn, starting_psn, path_mtu;
	uint16_t vlan;
	uint8_t side;
	uint8_t read_depth; /* READs that its sender takes as a responder */
	uint64_t when;	    /* 0: unused */
};

/* Lanes that have something to send, by flow index, in the order of their turns. */
struct run_list {
	uint32_t head, tail;
};

#define MATCH_SLOTS 65536u
#define CM_SLOTS    1024u
#define READS_MAX   131072u
#define EPOCH_SLOTS 4096u
/* Refused packets that one batch of frames can name; more are found missing a little later. */
#define REFUSED_MAX 32u

struct engine {
	struct engine_sink sink;
	struct engine_config cfg;
	struct arena arena;
	uint64_t now;

	struct flow *flows;
	uint32_t nflows, free_flow, used_flows, conns;
	struct flow_table *table;
	struct pool *pool;
	struct wheel *wheel;
	struct mqueue *reads; /* struct read_rec and struct fetch */
	struct psn_match *match;
	struct cm_pending *cm;
	uint32_t cm_hand;

	struct rule rules[RULE_MAX];
	unsigned int nrules;
	bool peer_up[PEER_MAX];
	bool draining;
	uint32_t in_fault; /* lanes in FAULT */

	/* lists of lanes with something to do, by flow index */
	uint32_t ack_head, report_head, room_head;
	/* ACCEPTOR: what was refused since the latest report (FAST-1) */
	struct {
		uint32_t flow, psn;
	} refused[REFUSED_MAX];
	uint32_t nrefused;
	uint64_t rule_bytes[RULE_MAX]; /* custody per rule */
	struct run_list run[PORTS];
	bool port_full;	    /* the latest engine_tx() found no room */
	uint64_t tokens_at; /* pacing: tokens are whole at this time */
	int64_t tokens;	    /* bytes */
	uint64_t wake;	    /* earliest time that lists want to be looked at again */
	uint32_t sweep;
	uint64_t sweep_at;
	uint32_t gen;
	bool prefetch; /* some rule wants it, or ATOMICs ahead */
	uint32_t epoch
		[EPOCH_SLOTS]; /* of host pairs: moved by what may tell that data has changed */

	uint64_t counters[EC_COUNT];
};

/* Timers of a lane. */
#define TIMER_LOSS	      0u
#define TIMER_AUX	      1u /* ACCEPTOR, SINGLE: RNR; OPENER: OPEN retry */
#define TIMER_RESP	      2u /* answers on their way over the WAN */
#define TIMERS		      3u
#define TIMER_ID(flow, which) ((flow)*TIMERS + (which))

#define COUNT(e, c) ((e)->counters[EC_##c]++)

static inline uint32_t flow_index(const struct engine *e, const struct flow *fl)
{
	return (uint32_t)(fl - e->flows);
}

static inline struct flow *flow_partner(struct engine *e, const struct flow *fl)
{
	return fl->partner == FLOW_NONE ? NULL : &e->flows[fl->partner];
}

static inline enum engine_port other_port(enum engine_port p)
{
	return p == PORT_LAN ? PORT_WAN : PORT_LAN;
}

/** now_us - the engine's clock in us modulo 2^32, for packet descriptors. */
static inline uint32_t now_us(const struct engine *e)
{
	return (uint32_t)(e->now / NSEC_PER_USEC);
}

static inline struct read_rec *read_at(struct engine *e, uint32_t id)
{
	return id == MQ_NONE ? NULL : mq_ptr(e->reads, id);
}

/** lane_class - which share of the pool the lane's packets belong to. */
static inline enum pool_class lane_class(const struct lane *l)
{
	return l->role == ROLE_ACCEPTOR ? POOL_TRANSIT : POOL_CUSTODY;
}

static inline bool lane_keeps(const struct lane *l)
{
	return l->role == ROLE_OPENER || l->role == ROLE_SINGLE;
}

/* engine.c */
int engine_tx(struct engine *e, enum engine_port port, const uint8_t *data, uint32_t len);
void engine_pass(struct engine *e, enum engine_port from, const struct frame *f);
void engine_wake_at(struct engine *e, uint64_t when);
void engine_event(struct engine *e, enum engine_event_type type, const struct flow *fl,
		  uint32_t packets, uint64_t bytes);

/* learn.c: flows, pairs, calibration */
struct flow *flow_find(struct engine *e, const struct frame *f);
struct flow *flow_create(struct engine *e, const struct flow_key *key, enum engine_port side);
void flow_free(struct engine *e, struct flow *fl);
void flow_match_rule(struct engine *e, struct flow *fl);
void flow_key_of(struct flow_key *k, const struct frame *f);
bool flow_pair(struct engine *e, struct flow *a, struct flow *b, enum learn_source how);
void flow_unpair(struct engine *e, struct flow *fl);
void learn_frame(struct engine *e, struct flow *fl, const struct frame *f);
void learn_cm(struct engine *e, enum engine_port from, const struct frame *f);
void learn_request(struct engine *e, struct flow *fl, const struct frame *f);
void learn_response(struct engine *e, struct flow *fl, const struct frame *f);

/* custody.c: what lanes hold */
struct pkt *lane_retain(struct engine *e, struct flow *fl, const struct frame *f, uint32_t span,
			uint32_t psn, bool *bad);
void lane_forget(struct engine *e, struct flow *fl, struct pkt *d, uint32_t psn);
void lane_release(struct engine *e, struct flow *fl, uint32_t next);
void lane_skip(struct engine *e, struct flow *fl, const struct mark *m);
void lane_drop_all(struct engine *e, struct flow *fl);
uint8_t *lane_packet(struct engine *e, const struct pkt *d);

/* lane.c: states */
void lane_set_state(struct lane *l, enum lane_state s);
void lane_init(struct flow *fl);
void lane_reset(struct engine *e, struct flow *fl);
bool lane_may_open(struct engine *e, const struct flow *fl, const struct frame *f);
void lane_old_response(struct engine *e, struct flow *fl, const struct frame *f);
void lane_open(struct engine *e, struct flow *fl, const struct frame *f);
void lane_close(struct engine *e, struct flow *fl, enum lane_reason why, bool tell);
void lane_drain(struct engine *e, struct flow *fl, enum lane_reason why);
void lane_send_close(struct engine *e, struct flow *fl);
void lane_aux_timer(struct engine *e, struct flow *fl);
void lane_send_open(struct engine *e, struct flow *fl);
void rtt_sample(struct rtt *t, uint32_t us);
uint64_t lane_rto_ns(const struct lane *l);
void lane_check_drained(struct engine *e, struct flow *fl);
void lane_settled(struct engine *e, struct flow *fl);
bool lane_fence(struct engine *e, struct flow *fl, bool on);

/* fault.c: custody is lost */
void lane_fault(struct engine *e, struct flow *fl, enum lane_reason why, uint8_t syndrome);
void fault_orphan(struct engine *e, struct flow *fl);
void fault_moved(struct engine *e, struct flow *fl, enum engine_port port);
void fault_solo(struct engine *e, struct flow *fl, const struct frame *f);
void fault_request(struct engine *e, struct flow *fl, const struct frame *f);
void fault_answer(struct engine *e, struct flow *fl);
void fault_response(struct engine *e, struct flow *fl, const struct frame *f);
void fault_timer(struct engine *e, struct flow *fl);
bool fault_pending(const struct lane *l);

/* agreement.c: what the peer says about lanes */
void agreement_rx(struct engine *e, unsigned int peer, const struct report *r);

/* records.c: requests that wait for an answer */
enum read_verdict {
	READ_STRAY,    /* belongs to no pending request */
	READ_IN_ORDER, /* the next one */
	READ_COMPLETE, /* the next and last one */
	PREFETCH,      /* one before it is missing */
	READ_AGAIN,    /* had it already */
};
bool reads_add(struct engine *e, struct flow *fl, const struct frame *f, uint32_t span,
	       const struct mark *at, uint32_t wire);
enum read_verdict reads_response(struct engine *e, struct lane *l, const struct frame *f,
				 struct read_rec **rec);
struct read_rec *reads_find(struct engine *e, struct lane *l, uint32_t psn);
void reads_trim(struct engine *e, struct lane *l, struct mark *end);
void reads_trim_to(struct engine *e, struct lane *l, uint32_t psn);
struct read_rec *reads_head(struct engine *e, const struct lane *l);
struct read_rec *reads_tail(struct engine *e, const struct lane *l);
struct read_rec *reads_waiting(struct engine *e, const struct lane *l);

/* ack_tx.c: what the near requester is told */
const struct mark *host_epsn(struct engine *e, const struct lane *l);
bool pool_pressed(const struct engine *e);
bool span_pressed(const struct engine *e, const struct lane *l);
void frontier_limits(struct engine *e, struct lane *l, struct mark *m);
bool frontier_may_pass(struct engine *e, struct lane *l, const struct read_rec *r);
void frontier_trim(struct engine *e, struct lane *l);
void ack_list(struct engine *e, struct flow *fl);
void ack_send(struct engine *e, struct flow *fl, uint32_t psn, uint8_t syndrome, uint32_t msn);
void nak_send(struct engine *e, struct flow *fl);
void frontier_advance(struct engine *e, struct flow *fl);
void ack_schedule(struct engine *e, struct flow *fl);
void ack_flush(struct engine *e, struct flow *fl);

/* duplicate.c: requests that are not the next one */
void duplicate_request(struct engine *e, struct flow *fl, const struct frame *f);
bool duplicate_jumped(struct engine *e, struct flow *fl, const struct frame *f, bool first);
void duplicate_passes(struct flow *fl, const struct frame *f);
bool duplicate_gone_on(struct engine *e, struct flow *fl, const struct frame *f);

/* atomic.c: ATOMICs whose earlier content may be thrown away */
bool atomic_is(uint8_t opcode);
bool atomic_allowed(const struct rule *r, const struct frame *f);
bool atomic_discards(const struct lane *l);
struct read_rec *atomic_due(struct engine *e, struct lane *l);
bool atomic_make(struct engine *e, struct flow *fl);
bool atomic_again(struct engine *e, struct flow *fl, const struct frame *f);
const struct frame *atomic_blank(const struct lane *l, const struct frame *f, struct frame *g,
				 uint8_t *out);
void atomic_asked(struct engine *e, struct flow *fl);
bool atomic_depth_full(struct engine *e, const struct flow *fl);
bool atomic_dropped(struct engine *e, const struct lane *l, const struct frame *f);

/* prefetch_atomic.c: FetchAdds that the host has not asked yet */
bool prefetch_atomic_claim(struct engine *e, struct flow *fl, const struct frame *f,
			   uint32_t *wire);
void prefetch_atomic_seen(struct engine *e, struct flow *fl, const struct frame *f);
void prefetch_atomic_run(struct engine *e, struct flow *fl);

/* pseudo_responder.c: toward the near requester */
void near_request(struct engine *e, struct flow *fl, const struct frame *f);
void near_response(struct engine *e, struct flow *fl, const struct frame *f);
void near_refused(struct engine *e, struct flow *fl, uint32_t psn, uint8_t syndrome,
		  enum lane_reason why);
void near_resp_repeated(struct engine *e, struct flow *fl, const struct frame *f);
void near_room(struct engine *e);
void near_true_ack(struct engine *e, struct flow *fl, const struct mark *m);
void near_settled(struct engine *e, struct flow *fl);

/* pseudo_requester.c: toward the responder */
bool far_run(struct engine *e, struct flow *fl, uint32_t quantum);
void far_response(struct engine *e, struct flow *fl, const struct frame *f, enum engine_port from);
void far_timeout(struct engine *e, struct flow *fl);
void far_refused(struct engine *e, struct flow *fl, uint32_t psn, uint8_t syndrome,
		 enum lane_reason why);
void far_rnr_over(struct engine *e, struct flow *fl);
void requester_read_again(struct engine *e, struct flow *fl, const struct frame *f);

/* stream_tx.c, stream_rx.c: the WAN between two appliances */
bool stream_tx_run(struct engine *e, struct flow *fl, uint32_t quantum);
void stream_tx_progress(struct engine *e, struct flow *fl, const struct report *r);
void stream_tx_timeout(struct engine *e, struct flow *fl);
void stream_tx_restart(struct engine *e, struct flow *fl);
void stream_rx_request(struct engine *e, struct flow *fl, const struct frame *f);
void stream_rx_report_due(struct engine *e, struct flow *fl, bool urgent);
void stream_rx_skipped(struct engine *e, struct flow *fl, uint32_t from, uint32_t end);
void stream_rx_report(struct engine *e, struct flow *fl);

/* turns.c: turns and tokens */
void pace_run(struct engine *e, struct flow *fl);
void pace_tick(struct engine *e);
bool pace_may_send(struct engine *e);
void pace_sent(struct engine *e, uint32_t len);

#endif
