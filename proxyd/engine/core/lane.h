/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the engine's files share: the state of a flow and its lane, and who may call whom.
 *
 * A *flow* is one direction of packets to one QP (struct flow_key). Two flows that learned of each
 * other are a connection. A flow owns the *lane* of the requests that travel in its direction; the
 * responses to them travel in the partner flow. So a packet's lane is its flow's own (request) or
 * the partner's (response).
 *
 * The role of a lane tells which parts are at work in this appliance: the table is in roles.c.
 *
 * PSN marks of a lane (all modulo 2^24, half-open: the mark itself is the first not included). What
 * is held counts in wire numbers, what the host is told (in @near) in host numbers (number/psn.h):
 *
 *	wire	una	  released below: truly acknowledged by the responder. Everything in
 *			  [una, end) is retained (ACCEPTOR: but for holes)
 *		nxt	  sent on at least once below; goes back when something must be resent
 *		high	  highest nxt ever
 *		epsn	  accepted in order below: the next PSN expected by pseudo_responder.c or
 *			  stream_rx.c
 *		end	  end of the highest packet held; equals epsn but in an ACCEPTOR with holes
 *	host	acked	  acknowledged to the requester below by the latest ACK (OPENER, SINGLE)
 *		frontier  may be acknowledged to the requester below (OPENER, SINGLE)
 *		asked	  accepted from the requester below: host_epsn(), which is epsn in host
 *			  numbers
 *
 * These hold always (check.c):
 *
 *	una <= nxt <= high <= epsn <= end
 *	acked <= frontier <= asked
 *
 * So no ACK goes out of what is not accepted, and as accepted packets leave custody only in
 * lane_release(), below a true ACK, all that was acknowledged early is retained unless the lane
 * faults: psn_to_host(una) .. frontier. That range may be empty: a true ACK may run ahead of a
 * frontier that waits for a READ, so una <= frontier does not hold.
 */
#ifndef LONGHAUL_ENGINE_CORE_LANE_H
#define LONGHAUL_ENGINE_CORE_LANE_H

#include <string.h>
#include <sys/param.h> /* MIN, MAX */

#include "engine/engine.h"
#include "engine/number/psn.h"
#include "store/arena.h"
#include "store/flow_table.h"
#include "store/mqueue.h"
#include "store/pool.h"
#include "store/wheel.h"
#include "store/window.h"
#include "wire/build.h"
#include "wire/frame.h"
#include "wire/icrc.h"

/* How long a lane that the peer refused stays in WATCH before it is tried again. */
#define REFUSED_RETRY_NS (2 * NSEC_PER_SEC)

/* An OPEN is repeated after this, and twice the round trip. */
#define OPEN_RETRY_NS (100 * NSEC_PER_MSEC)

/* No lane holds a READ of more PSNs than this. */
#define SPAN_MAX    (1u << 22)
/* More PSNs than any host has outstanding. */
#define HOST_WINDOW 65536
/* Marks that nothing moves trail the true ACK so far: at 2^23 before would become after. */
#define MARK_TRAIL  (1u << 20)

enum lane_role {
	ROLE_NONE, /* WATCH */
	ROLE_OPENER,
	ROLE_ACCEPTOR,
	ROLE_SINGLE,
	ROLE_SOLO, /* requests come from the WAN; nothing is kept (solo.c) */
	ROLES,
};

/* Whether the queue pair number has another owner: owner/owner.c has how this changes. */
enum owner_state {
	OWNER_KNOWN,   /* no: it is the queue pair that the lane began with */
	OWNER_PROVED,  /* no, and the responder has just said so of what passed to it */
	OWNER_NAMED,   /* OPENER, SINGLE: maybe; the connection manager names another one, which
			* would ask elsewhere, and its RTU is missing */
	OWNER_SUSPECT, /* OPENER, SINGLE: maybe; the responder has not spoken yet */
	OWNER_ASKED,   /* OPENER: the responder says so; the peer is asked whether it heard that */
	OWNER_ASKED_PAIR, /* OPENER: likewise, and the two flows are no pair any more */
	OWNER_WAITS,	  /* ACCEPTOR: the responder has said so after a silence */
	OWNER_HEARD,	  /* ACCEPTOR: it has said so since its MSN last was the expected one */
	OWNER_STATES,
};

/* Which message is open, for the opcode sequence check. */
enum msg_kind {
	MSG_NONE,
	MSG_SEND,
	MSG_WRITE,
	MSG_UNKNOWN, /* packets were skipped: whatever comes next */
};

/* lane.near.msg_left of a WRITE that was under way when the lane opened */
#define MSG_LEFT_UNKNOWN UINT32_MAX

/* Probes that calibrate the MSN while a lane is watched: ends of messages whose ACK is awaited. */
#define LANE_PROBES 4

/** struct rtt - round trip, us: smoothed (spec: RFC 6298), mean deviation, least; 0: no sample. */
struct rtt {
	uint32_t srtt_us, rttvar_us, minrtt_us;
};

/** struct report_clock - when a lane's reports go out (due.c). @last: ns; @count: what has happened
 * since; @repeats: of the latest while something is missing. */
struct __attribute__((packed, aligned(4))) report_clock {
	uint64_t last;
	uint8_t count, repeats;
	bool due, urgent;
};

#define WITHIN	    16u	       /* the unit of lane.near.within */
#define CWND_ONE    256u       /* one packet, in units of lane.far.cwnd */
#define THRESH_NONE UINT32_MAX /* lane.single.thresh before the first loss */
#define PRESENT_MAX 2	       /* lane.present counts up to this */

/* ---- parts of a lane in any role ---- */

/**
 * struct lane_near - what the requester sends and is told. OPENER, SINGLE; in part SOLO, WATCH
 * @frontier:   see above; until @start_acked it is @start
 * @acked:      frontier as told in the latest ACK that went out, for repeating it
 * @honest:     POLICY_HONEST: last packet of the first message not truly acknowledged (msn: of
 *              messages before it); it is epsn when no message end is known beyond una
 * @within:     POLICY_EARLY: @held.bytes when its share was last enough, in units of WITHIN
 * @told:       next PSN that the requester cannot know to be acknowledged, by ACK or answer
 * @eased:      of true ACKs below the host had its share (ease.c)
 * @msg:        enum msg_kind of the message that @epsn is inside of; @msg_left: WRITE bytes to come
 * @window:     of the host (room.c)
 * @room_naks:  so often it was asked for what there had been no room for, and nothing was accepted
 * @masked:     masked ATOMICs were asked for, which are never answered here
 * @quiet:      the host is told nothing before it has spoken (still.c)
 */
struct lane_near {
	struct host_mark frontier; /* mark: core/marks.h */
	struct host_mark acked;
	union {
		struct wire_mark honest;
		uint32_t within;
	};
	struct host_psn told;
	struct wire_psn eased;
	uint32_t msg_left;
	uint16_t window;
	uint8_t unacked;
	uint8_t msg : 2, room_naks : 2;
	bool nak_sent : 1, nak_due : 1, room_wait : 1, ack_due : 1, ack_repeat : 1,
		honest_found : 1, masked : 1, quiet : 1;
};

/** struct held - packets that are kept (core/stream.h). @win finds them by wire PSN; @log has most
 * of their bytes; @lost: how many are marked PKT_LOST, none before @lost_from; @saved: packets that
 * have not been used up by parity (core/stream_parity.c), which has @followed those before. */
struct __attribute__((packed, aligned(4))) held {
	struct window win;
	struct pool_log log;
	uint32_t packets;
	uint64_t bytes;
	uint32_t lost : 24, saved : 8;
	struct wire_psn lost_from, followed;
};

/** struct gaps - what is missing at the receiving end of a stream. @holes: pool page with missing
 * ranges, or POOL_NONE; @cursor: where the next report, timed by @clock, goes on. */
struct gaps {
	uint32_t holes;
	struct wire_psn cursor;
	struct report_clock clock;
};

/**
 * struct seal - how what crosses the WAN of a lane is sealed (seal.c).
 * @key:       drawn by the opener for each generation, told in OPEN
 * @from:      the first PSN that is sealed; @turns: how often una has come round to 0 since
 * @native_ms: since then only unsealed frames have come, where sealed ones should; 0: not so
 * @una:       WATCH: that of the lane which was let go (seal_leave())
 */
struct seal {
	uint64_t key[2];
	struct wire_psn from;
	uint32_t turns;
	uint32_t native_ms;
	struct wire_psn una;
};

/**
 * struct lane_owner - what tells whether the queue pair number has another owner (owner/)
 * @passed_ms:  when a repeat of what was truly acknowledged was last passed on, 0: never
 * @passed_from: the lowest of those, or PSN_NONE: their opcodes are not known
 * @passed_msn: una's when the first of those was passed on: the answer counts no less
 * @state:      enum owner_state
 * @held_back:  nothing is sent before the responder speaks (and lane.rnr_wait); @held_once: it was
 */
struct lane_owner {
	struct wire_psn passed_from;
	uint32_t passed_ms, passed_msn : 24;
	uint8_t state : 3;
	bool held_back : 1, held_once : 1;
};

/** struct lane_rounds - @run rounds in which @psn was asked for in vain, the latest at @ms. */
struct lane_rounds {
	struct host_psn psn;
	uint16_t ms;
	uint8_t run;
};

/** struct lane_listed - the lists of the engine that the lane is in, and the next flow there. */
struct lane_listed {
	uint32_t next_ack, next_report, next_run, next_room;
	bool ack : 1, report : 1, run : 1, room : 1;
};

/** struct lane_counters - what is shown of the lane, in all its generations (info.c). The first two
 * count packets; the others lie beyond what each packet needs (soon.c). */
struct lane_counters {
	uint32_t requests, pseudo_acks;
	uint32_t true_acks, dup, retx, naks, timeouts, rnr;
};

/* ---- parts for one role, or two ---- */

/** struct lane_learn - WATCH: what calibrates the MSN (learn.c). @probe: ends of messages that wait
 * for an ACK, and our count there; @offset: the least of MSNs in answers to READs from our count;
 * @offset_run: how many said so. */
struct lane_learn {
	struct {
		struct wire_psn psn;
		uint32_t count;
	} probe[LANE_PROBES];
	uint32_t offset, offset_run;
};

/** struct lane_watch - WATCH: what has passed. @asked, @asked_end: READs and ATOMICs that may be
 * unanswered, or PSN_NONE; @went_on: PSN behind the latest request; @since: from there on requests
 * have come in order, each once, and ended @messages, or PSN_NONE; @passing: passing.c. */
struct lane_watch {
	struct wire_psn asked, asked_end, went_on, since;
	uint32_t messages;
	uint8_t passing;
};

/**
 * struct lane_keeper - OPENER, SINGLE: what keeps the host from being told of all that is held.
 * @guard:      first PSN of a message that did not fit the pool when it began (row: POOL-3),
 *              PSN_NONE when there is none; @guard_end: of the last such message. Nothing between
 *              is acknowledged early
 * @reasked_psn, @reasked_end: READs whose answer must pass before ACKs go out: asked again after
 *              it had passed, or asked before the handover. PSN_NONE: there are none;
 *              @reasked_us: since when; @reasked: rounds in which no answer has passed
 * @told_us:    when the host was last told of something new; @cnp_us: of the latest CNP to it
 */
struct lane_keeper {
	struct wire_mark guard;
	struct wire_psn guard_end;
	struct host_psn reasked_psn, reasked_end;
	uint32_t reasked_us, told_us, cnp_us;
	uint8_t reasked;
};

/**
 * struct lane_opener - OPENER: what is known of the stream at the peer (stream_tx.c, loss.c)
 * @rack_us:    latest transmission time known to have arrived
 * @reported_us: when the peer last said something of the lane
 * @had_ms:     since when it is known to have the oldest, whose true ACK is missing
 * @room:       the peer takes packets before this PSN; @reached_hi: the highest that it has
 * @late_us:    so late packets were without being lost; @late_at: when; @true_losses: since then
 */
struct lane_opener {
	uint32_t rack_us, reported_us, had_ms;
	struct wire_psn room; /* mark: core/marks.h */
	struct wire_psn reached_hi;
	uint32_t late_us : 24, true_losses : 8, late_at;
};

/**
 * struct lane_far - ACCEPTOR, SINGLE: what is on its way to the responder (far/)
 * @ackreq_end: end of the last packet sent that asks for an ACK
 * @cwnd:       packets that may be on their way, in CWND_ONE (flight.c); @cut_us: when halved
 * @rnr_run:    RNR NAKs for the same packet, the first of them at @rnr_us
 * @answered:   PSN of the latest answer; @again: since requests were sent again, answers have only
 *              come in the order of PSNs, so to what the responder was sent before
 */
struct lane_far {
	struct wire_psn ackreq_end;
	uint32_t cwnd, cut_us, rnr_us;
	uint32_t rnr_run : 7, again : 1, answered : 24;
};

/**
 * struct lane_single - SINGLE: the window over the WAN (flight.c), and ATOMICs (near/atomic.c)
 * @paid_ns:    what was sent is paid for at this time
 * @thresh:     slow start ends there, in units of @cwnd
 * @made:       of @reads, the last ATOMIC that was answered here, or MQ_NONE
 * @most:       READs and ATOMICs that the host was seen to wait for at one time
 */
struct __attribute__((packed, aligned(4))) lane_single {
	uint64_t paid_ns;
	uint32_t thresh, made;
	uint8_t most;
};

/** struct lane_acceptor - ACCEPTOR (stream_rx.c). @peer_lane: the opener's number of this lane;
 * @next_accepted: of the lanes whose numbers have the same hash; @settled: una a round trip ago or
 * more; @settling: at @settle_us. */
struct lane_acceptor {
	uint32_t peer_lane, next_accepted;
	struct wire_psn settled, settling;
	uint32_t settle_us;
	struct gaps gaps;
};

/**
 * struct lane_fault - OPENER, SINGLE in FAULT (fault/)
 * @epsn:       what the host is thought to expect; @said: and by its latest ACK
 * @probe:      PSN of the latest probe; @mute: rounds of probes that drew nothing
 * @answered:   a probe of this round; @refused: a probe, it seems: so it must fall silent
 * @begins:     the lowest of the last but one round of resending; of the last: lane.rounds
 * @below:      it asks from before @told; @other: its peer's number has answered another requester
 * @renumbers:  only we know what its numbers mean to the far host
 * @gone:       it is silent, and its host is there (fault.c); @done: all is done that it was told
 * @packets, @bytes: what was in custody when it began
 */
struct lane_fault {
	struct far_psn epsn, probe, said;
	struct host_psn begins;
	uint16_t step, tries;
	uint8_t stage, silent, tells, dreqs, mute;
	bool write : 1, alive : 1, broken : 1, strange : 1, unsure : 1, unheard : 1, refused : 1,
		answered : 1, other : 1, below : 1, renumbers : 1, gone : 1, done : 1;
	uint32_t packets;
	uint64_t bytes;
};

/* ---- the lane ---- */

/**
 * struct lane - one requester direction. Times are ns; PSN marks as in the theory above.
 *
 * @credit:     syndrome of the responder's ACKs, 0xff: none seen; lane_credit()
 * @refusal:    fatal syndrome, 0: none; @refusal_psn: what it is for
 * @una_sure:   WATCH: una bears the responder's MSN, else it may count later messages as well;
 *              @begins: and the first request of all is the one there (learn/cm.c)
 * @start:      handover PSN; follows una at MARK_TRAIL; @start_acked: all below is done
 * @opaque:     something not understood is in custody: the responder counts its messages, not we
 * @ahead:      OPENER: READs may be asked ahead of the host; ACCEPTOR: the opener has asked for
 *              something that its host may not ask for, so only it knows the host's numbers
 * @numbered:   OPENER: it may have been given numbers that the host does not know (lane_fence());
 *              @renumbered: what the peer sends to the responder may bear others (announce/)
 * @fenced:     somebody else keeps its packets from passing should we be gone (lane_fence())
 * @ordered:    a log of its two hosts holds it to their order (link/order.c)
 * @sealed:     what crosses the WAN is sealed with @seal; @bypassed: enum path_miss
 * @gone:       both hosts said that the connection is down; @far_left: the responder's asked for it
 * @repaired:   ACCEPTOR: so many reports yet tell that something was made from parity
 * @closing:    ACCEPTOR: the opener is asked to end the lane
 * @no_mtu:     it began when no path MTU was known, so the peer may not know one: a READ whose span
 *              depends on it must pass, and the host's numbers stay the responder's
 * @broken:     an invariant of it does not hold (must.h)
 * @atomic:     enum atomic_mode
 * @present:    while the queue pair asked is silent: so often its host has answered (host.c)
 * @reads_page: struct lane_reads (reads.h), POOL_NONE before the first READ
 * @reads:      requests that wait for an answer with data, struct read_rec
 * @messages:   ends of messages among what is held
 * @progress:   time of the latest progress; @waits_ms: since when the oldest held is that
 * @rtt:        of the WAN; ACCEPTOR: of the LAN
 * @reached:    OPENER: the peer has all below; WATCH: fault/abandoned.c
 * @gen:        generation, new whenever the lane leaves WATCH; both sides use the opener's
 * @overlap:    what is below the host may have sent past us (OPENER), or to an earlier lane (WATCH)
 */
struct lane {
	uint8_t state : 3, role : 3, policy : 2;
	uint8_t reason, credit, refusal, backoff, repaired;
	int8_t peer;
	bool calibrated : 1, una_sure : 1, begins : 1, start_acked : 1, accepted : 1, reopen : 1,
		report_heard : 1, rnr_wait : 1, probing : 1, doubt : 1, ahead : 1, opaque : 1,
		numbered : 1, renumbered : 1, fenced : 1, atomics : 1, ordered : 1, sealed : 1,
		gone : 1, far_left : 1, closing : 1, no_mtu : 1, broken : 1;
	uint8_t atomic : 2, present : 2, bypassed : 3;

	/* up to @count.true_acks: what packets need, first what those of all roles do (soon.c) */
	struct wire_mark epsn; /* mark: core/marks.h */
	struct wire_mark una;  /* mark: core/marks.h */
	struct wire_mark nxt;  /* mark: core/marks.h */
	struct wire_psn end;   /* mark: core/marks.h: */
	struct wire_psn high;  /* mark: core/marks.h: */
	struct wire_psn start; /* mark: core/marks.h: */
	struct lane_near near;
	uint32_t reads_page;
	struct seal seal;
	struct held held;
	uint32_t messages;
	uint64_t progress;
	uint32_t waits_ms;
	struct mq_list reads;
	uint32_t nreads;
	struct lane_listed listed;
	struct lane_owner owner;
	struct lane_rounds rounds;

	union {
		struct lane_learn learn;       /* WATCH */
		struct lane_keeper keeper;     /* OPENER, SINGLE, but in FAULT */
		struct lane_acceptor acceptor; /* ACCEPTOR */
		struct lane_fault fault;       /* OPENER, SINGLE in FAULT */
	};
	struct rtt rtt;
	struct wire_psn reached;
	uint32_t gen;

	union {
		struct lane_watch watch;   /* WATCH */
		struct lane_opener opener; /* OPENER */
		struct {
			struct lane_far far;	   /* ACCEPTOR, SINGLE */
			struct lane_single single; /* SINGLE */
		};
	};
	uint32_t report_seq;
	struct wire_psn refusal_psn;

	struct lane_counters count;
	struct wire_psn overlap;
	uint64_t opened;
};

_Static_assert(LANE_STATES <= 8 && ROLES <= 8 && POLICIES <= 4 && MSG_UNKNOWN < 4,
	       "they have so many bits in struct lane");

#endif
