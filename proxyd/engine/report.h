/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What two engines tell each other about a lane. The *opener* is the appliance near the requester
 * (it keeps custody), the *acceptor* the one near the responder. The peer layer carries these
 * messages; the engine neither knows how nor relies on each arriving: every message says a whole
 * truth, newest wins, and what matters is repeated until the other side shows that it knows.
 */
#ifndef LONGHAUL_ENGINE_REPORT_H
#define LONGHAUL_ENGINE_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "store/flow_table.h"

#define REPORT_HOLES	  64
#define REPORT_AGAIN	  8
#define REPORT_ORDER_RECS 32
#define REPORT_READS	  64

/* All connections between two hosts belong to one slice, a hash of the addresses (flow_slice()).
 * Each lane number contains it from bit LANE_SLICE on, each log number from LOG_SLICE on: it tells
 * an appliance with several engines which of them a report is for. */
#define SLICES	   64u
#define LANE_SLICE 26u
#define LOG_SLICE  4u

/* What an appliance can do beyond version 1 of the protocol (features in HELLO). */
#define PEER_FEATURE_ORDER    0x2u    /* ORDER, and OPEN with a place in a log */
#define PEER_FEATURE_OFFER    0x8u    /* OPEN that is an offer */
#define PEER_FEATURE_ANNOUNCE 0x10u   /* ANSWERS that agree to announcements, PUSH */
#define PEER_FEATURE_PARITY   0x40u   /* PARITY */
#define PEER_FEATURE_DISPUTE  0x80u   /* CLOSE that asks (REASON_DISPUTED) */
#define PEER_FEATURE_SEAL     0x200u  /* OPEN with the key of a seal */
#define PEER_FEATURE_OWN      0x400u  /* requests of the opener's own bear a seal of their own */
#define PEER_FEATURE_AHEAD    0x800u  /* AHEAD */
#define PEER_FEATURE_REPAIR   0x2000u /* PARITY of streams */
#define PEER_FEATURE_SLICES   0x4000u /* slices in the numbers of lanes and logs */
#define PEER_FEATURE_SPREAD   0x8000u /* PARITY of streams with packets in a row in many groups */

enum report_type {
	REPORT_OPEN = 1,  /* opener: from this PSN on I keep custody, receive it as a stream */
	REPORT_ACCEPT,	  /* acceptor: agreed */
	REPORT_REFUSE,	  /* acceptor: not agreed, and why */
	REPORT_PROGRESS,  /* acceptor: what arrived, what the responder truly acknowledged */
	REPORT_CLOSE,	  /* either: the lane is no longer held */
	REPORT_RESP,	  /* opener: which answers arrived */
	REPORT_METER,	  /* either, about the link and no lane: what was sent, what was got */
	REPORT_ORDER = 9, /* opener: barriers between lanes; acceptor: which are carried out */
	REPORT_AHEAD,	  /* opener: READs that its host is going to ask, and the acceptor makes */
};

/** enum lane_reason - why a lane was refused, closed or faulted. */
enum lane_reason {
	REASON_NONE,
	REASON_UNKNOWN,	 /* the acceptor has seen no packet of this connection (asymmetric routing?)
			  */
	REASON_ONE_WAY,	 /* it sees only one direction (asymmetric routing) */
	REASON_MISMATCH, /* it learned another pair of QPs */
	REASON_NO_RULE,	 /* no rule of its own wants the connection */
	REASON_NO_ROOM,	 /* its tables are full */
	REASON_IDLE,
	REASON_DISCONNECT,  /* CM DREQ */
	REASON_INCARNATION, /* the QPN was reused, or its PSNs jumped */
	REASON_NAK,	    /* the responder refused what was already acknowledged */
	REASON_TIMEOUT,	    /* the responder stopped answering */
	REASON_PEER_LOST,   /* the other appliance stopped answering */
	REASON_PEER_RESTARTED,
	REASON_OPERATOR,     /* rule removed, shutdown, command */
	REASON_PATH_MTU,     /* a READ whose PSN range cannot be known */
	REASON_POOL_FULL,    /* no room to begin */
	REASON_EARLIER_LOSS, /* a packet from before the handover is lost: begin again there */
	REASON_LONG_READ,    /* a READ of more PSNs than can be told apart */
	REASON_FAULT,	     /* custody of the other direction was lost, and the connection with it;
			     or, with order = hosts, of another lane between the two hosts */
	REASON_ORPHAN,	     /* a former daemon numbered its packets anew and is gone */
	REASON_SOLO,	  /* a READ was answered before the host asked, and it asked for something
			    else, or may have */
	REASON_NOT_READY, /* the responder said RNR for longer than rnr-timeout */
	REASON_UNSEALED,  /* the opener does not seal what it sends, and the acceptor's rule wants
			    that */
	REASON_OPCODE,	  /* a request whose opcode nobody here knows */
	REASON_DISPUTED,  /* CLOSE by the opener: what it hears is of another owner of the number;
			     the acceptor closes if it has heard the same (owner.c) */
	REASON_BYPASS,	  /* its packets miss one of the two appliances */
	REASON_INVARIANT, /* what must hold of it does not (core/must.h) */
	REASONS,
};

const char *lane_reason_name(enum lane_reason r);

/** flow_slice - the slice of the two hosts of @k, the same in both directions and at both ends. */
static inline uint32_t flow_slice(const struct flow_key *k)
{
	return (uint32_t)(ip_pair_hash(&k->src, &k->dst) >> 58);
}

/** struct psn_range - [@from, @end). */
struct psn_range {
	uint32_t from, end;
};

enum order_kind {
	ORDER_CLEAR = 1, /* packets before the PSN may go to the responder */
	ORDER_WAIT,	 /* nothing goes on until the responder has acknowledged all before it */
	ORDER_KINDS,
};

/** struct order_rec - a record of a log (link/order.c): of the opener's @lane, begun as @birth. */
struct order_rec {
	uint32_t lane, birth;
	uint32_t psn : 24;
	uint32_t kind : 8;
};

/** struct read_series - @count READs of @length bytes under @rkey, the first at @va, each next one
 * @step further. They have the PSNs [@psn, @end), as many each. */
struct read_series {
	uint64_t va, step;
	uint32_t rkey, length, psn, end, count;
};

/**
 * struct meter - METER: what crossed the link to the peer (core/meter.c).
 * @sent_at, @sent: now, ns by the sender's clock; bytes that it has sent by now
 * @echo_at, @echo_sent: both of the latest METER that it heard, 0 when none
 * @got_at, @got, @packets, @marked: when that came, ns by the sender's clock; bytes and packets
 *             that it had got by then, and packets of those with a congestion mark
 * @held_us:   how long ago that was
 * @by_box:    the four below are known (an older version does not send them):
 * @waited_us: how long that METER had waited in the socket before it was read
 * @unread:    bytes then in the receive rings: they may have arrived before it, uncounted in @got
 * @early:     bytes of @got, at most, that may have arrived after it
 * @overrun:   packets from any peer that the receive rings had lost by then
 */
struct meter {
	uint64_t sent_at, sent;
	uint64_t echo_at, echo_sent;
	uint64_t got_at, got, packets, marked;
	uint32_t held_us;
	bool by_box;
	uint32_t waited_us, unread, early;
	uint64_t overrun;
};

/**
 * struct report - one message about one lane.
 * @type:  enum report_type
 * @lane:  the opener's number of the lane
 * @gen:   the opener's generation of it; anything about another generation is ignored
 *
 * OPEN:
 * @key:       key of the lane's requests (dqpn: the responder's QPN)
 * @lqpn:      the requester's QPN
 * @start_psn: handover PSN: packets from here on are in custody
 * @start_msn: messages completed before it
 * @path_mtu:  bytes, 0 when not known yet
 * @policy:    enum ack_policy
 * @resume:    the acceptor lost its state; it need not have seen packets of the connection
 * @one_read:  answers are kept, and the responder gets one READ at a time until ANSWERS
 * @own:       the opener has added requests to the lane (PEER_FEATURE_OWN)
 * @sealed:    what either side sends of the lane is sealed with @seal_key (core/seal.c)
 * @offer:     it is the acceptor that speaks, of no lane yet: it knows both directions of the
 *             connection, and will agree to a lane of these requests. @sealed: if it is sealed.
 *             @counted: they have come in order, each once, since @start_psn, with @start_msn there
 * @ordered:   @log, @birth: its log, and its name there; @clear: packets before wait for no record
 *
 * REFUSE, CLOSE:
 * @reason:    enum lane_reason; CLOSE also bears @key, and @by_opener tells who closes
 *
 * PROGRESS:
 * @cum:       next PSN expected: all before it arrived
 * @room:      PSN before which packets can be taken
 * @una:      next PSN not truly acknowledged by the responder: all before it were
 * @una_msn:  the responder's MSN there
 * @una_ackable: the packet just below @una is a SEND or WRITE, so an ACK may bear its PSN
 * @reason:    why there is a refusal (REASON_NAK, REASON_TIMEOUT)
 * @credit:    its latest ACK syndrome (credit code), 0xff when none was seen
 * @refusal:   syndrome of a fatal NAK (0x61 .. 0x63) at @refusal_psn, 0 when there is none
 * @hi:        end of the highest packet received; equals @cum when nothing is missing
 * @hole:      @nholes ranges between @cum and @hi that are missing. Not all of them when there are
 *             more than fit: what is not named is not known to have arrived
 * @again:     @nagain packets that arrived since the latest report and were refused (wrong ICRC, no
 * room, one hole too many): to be sent again without waiting for what would show them to be lost
 * @bypassed:  for a while all requests came without a seal: they do not pass the opener
 * @repaired:  something that was missing was made from parity
 * @seq:       grows with every PROGRESS of a lane generation: an older one is ignored
 *
 * ANSWERS: also bears @key, @seq, @cum, @hi, @hole: of the answers to the lane's READs and ATOMICs,
 * by the PSNs of these. PSNs of other requests between count as arrived, or as missing
 *
 * ORDER: @lane is the number of a log, @gen its generation, @by_opener tells who speaks
 * @order:     by the opener: @norder records from number @seq on; @base: the oldest not carried out
 * @seq, @base: by the acceptor: it has all before, has carried out all before; @step_us: its
 *             responder takes so long to acknowledge; @again_all: records are missing from @seq on
 *
 * AHEAD:
 * @reads:     they are packets of the lane like others, and sent as such where this report is lost
 *
 * @latest:    of ANSWERS: the answer packet that arrived last
 * @depth:     READs that the responder is to be given at a time, 0: as they come
 * @announce:  of ANSWERS: the acceptor may READ ahead for storage commands, and number anew what
 *             goes to the responder; its pushes bear tags made with @announce_key
 * @announced: of PROGRESS: @differs: numbers at the responder may differ, as of ANSWERS @resp_seq
 */
struct report {
	uint8_t type;
	uint32_t lane, gen;
	struct flow_key key;
	uint32_t lqpn, start_psn, start_msn, path_mtu;
	uint8_t policy;
	bool resume, one_read, own, sealed, ordered, offer, counted, again_all, bypassed, repaired;
	uint64_t seal_key[2];
	uint32_t log, birth, clear;
	uint32_t base, step_us;
	bool by_opener;
	uint8_t reason;
	uint32_t cum, room, una, una_msn;
	bool una_ackable;
	uint8_t credit, refusal;
	uint32_t refusal_psn, seq, hi;
	uint32_t latest, depth, resp_seq;
	bool announce, announced, differs;
	uint64_t announce_key[2];
	uint8_t nholes;
	struct psn_range hole[REPORT_HOLES];
	uint8_t nagain;
	uint32_t again[REPORT_AGAIN];
	struct meter meter;
	struct read_series reads;
	uint8_t norder;
	struct order_rec order[REPORT_ORDER_RECS];
};

#endif
