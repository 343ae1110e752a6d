/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A host with reliable-connection queue pairs: requester and responder, as a pure model. The lab's
 * own reading of the protocol; it shares only the header layer (proxyd/wire) with the product.
 *
 * No I/O and no clock. The owner hands in frames and the time, and gets frames back through
 * tx_buf()/tx():
 *
 *	rc_host_rx(h, now, data, len);		as often as there are frames
 *	rc_host_poll(h, now, budget);		timers, then sends what may be sent
 *	next = rc_host_next(h);			when to poll again, RC_NEVER: not by itself
 *
 * rc_host_rx() never sends; acknowledgements are therefore coalesced over the frames handed in
 * before the next rc_host_poll(). Time is in nanoseconds of any epoch and must not run backwards.
 *
 * Data. The n-th SEND or WRITE that a queue pair posts (n from 0) carries the pattern of
 * pattern_key(tx_seed, n), so the responder checks every payload byte as it arrives, without
 * knowing what was posted. Its memory region starts as the pattern of mr_seed; WRITEs land in it,
 * READs are served from it, atomics change it. The requester may keep a shadow of its peer's
 * region, updated as requests are posted: READ data and the values that atomics return are checked
 * against it.
 *
 * All tables of a queue pair are allocated when it is made; nothing is allocated per packet.
 */
#ifndef LAB_RC_HOST_H
#define LAB_RC_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/frame.h"

#define RC_NEVER	 UINT64_MAX
#define RC_RETRY_FOREVER 7

struct rc_host;
struct rc_qp;

/* Ways to be a host within what spec: IBTA 9.7 and spec: IBTA 9.9 leave open: that of
 * hardware, and of soft-RoCE. */
enum rc_personality {
	RC_STRICT,
	RC_PERMISSIVE,
};

enum rc_op {
	RC_SEND,
	RC_SEND_IMM,
	RC_SEND_INV,
	RC_WRITE,
	RC_WRITE_IMM,
	RC_READ,
	RC_CMP_SWAP,
	RC_FETCH_ADD,
	RC_OPS,
};

/* How a request ended. */
enum rc_status {
	RC_OK,
	RC_RETRY_EXCEEDED, /* no acknowledgement after all retries */
	RC_RNR_EXCEEDED,
	RC_REMOTE_INVALID,   /* NAK 0x61 */
	RC_REMOTE_ACCESS,    /* NAK 0x62 */
	RC_REMOTE_OPERATION, /* NAK 0x63 */
	RC_BAD_RESPONSE,     /* a response in the window that does not fit its request */
	RC_FLUSHED,	     /* queued behind an error */
	RC_STATUSES,
};

/* When a requester resends by time. */
enum rc_resend {
	RC_RESEND_TIMEOUT,  /* by the configured timeout only */
	RC_RESEND_HW_READS, /* also 2, 4, 8, 16 ms after progress while a READ or atomic is oldest
			     */
	RC_RESEND_HW_ALL,   /* the same for every request */
};

/**
 * struct rc_wr - a work request.
 * @wr_id:     the owner's, returned in the completion
 * @length:    bytes; 8 for atomics (ignored)
 * @va, @rkey: WRITE, READ, atomics. @rkey 0 means the peer's region
 * @imm:       immediate data, or the rkey to invalidate (RC_SEND_INV)
 * @unsignaled: its last packet asks for no ACK if another request is queued behind it; still
 *             completed through the callback
 * @data:      payload to carry instead of the pattern; must stay valid until the completion. The
 *             receiver reports such a message as not intact
 */
struct rc_wr {
	uint64_t wr_id;
	enum rc_op op;
	uint32_t length;
	uint64_t va;
	uint32_t rkey;
	uint32_t imm;
	uint64_t swap_add, compare;
	bool unsignaled;
	const uint8_t *data;
};

/**
 * struct rc_completion - the end of a request, in posting order.
 * @checked:    READ, atomics with RC_OK: the data could be compared with the shadow or the pattern
 *              (not so if a WRITE to the same bytes was posted while the READ was under way)
 * @intact:     it was what it had to be; true if not checked
 * @number:     place among the SENDs and WRITEs of this direction, or among the atomics, from 0
 * @value:      atomics: what the responder returned
 */
struct rc_completion {
	uint64_t wr_id;
	enum rc_op op;
	enum rc_status status;
	uint32_t length;
	uint64_t number;
	uint64_t posted_at, completed_at;
	bool checked, intact;
	uint64_t value;
};

/**
 * struct rc_message - a message received and executed: SEND or WRITE.
 * @number: its place among the SENDs and WRITEs of this direction, from 0
 * @intact: every payload byte was the pattern's (true if checking is off)
 * @imm:    immediate data or rkey to invalidate, valid with @has_imm
 * @data:   SEND with recv_size set: the payload, valid during the callback
 */
struct rc_message {
	uint64_t number;
	enum rc_op op;
	uint32_t length;
	uint64_t va;
	uint32_t imm;
	bool has_imm, intact;
	const uint8_t *data;
};

/**
 * struct rc_read_data - a response packet's worth of a READ, of memory that its owner changes
 * (rmr_fixed).
 * @offset: from the start of the peer's region
 */
struct rc_read_data {
	uint64_t wr_id, posted_at, offset;
	const uint8_t *data;
	uint32_t len;
};

/**
 * struct rc_host_ops - what the model asks of its owner. Callbacks may post requests and receives;
 * they must not destroy queue pairs.
 * @tx_buf:   a buffer of FRAME_MAX bytes for one frame, or NULL: no room, try again at the next
 *            poll. A buffer that was got but not sent is asked for again (the owner returns the
 *            same or another)
 * @tx:       send the frame in the buffer just got
 * @complete: a request ended
 * @receive:  a SEND or WRITE was executed; may be NULL
 * @error:    the queue pair went to the error state; may be NULL
 * @atomic:   an atomic was executed, the @number-th from 0; may be NULL
 * @read:     data of a READ beyond rmr_fixed; returns whether it is right. May be NULL
 * @offered:  whether a new READ may have this memory of the own region, whatever its key is; what
 *            is asked again is judged by the region only. NULL: by region and key
 */
struct rc_host_ops {
	uint8_t *(*tx_buf)(void *ctx);
	void (*tx)(void *ctx, uint8_t *buf, uint32_t len);
	void (*complete)(void *ctx, struct rc_qp *qp, const struct rc_completion *c);
	void (*receive)(void *ctx, struct rc_qp *qp, const struct rc_message *m);
	void (*error)(void *ctx, struct rc_qp *qp, enum rc_status why);
	void (*atomic)(void *ctx, struct rc_qp *qp, uint64_t number);
	bool (*read)(void *ctx, struct rc_qp *qp, const struct rc_read_data *d);
	bool (*offered)(void *ctx, struct rc_qp *qp, uint32_t rkey, uint64_t va, uint32_t len);
};

/** enum rc_ports - how hosts choose the UDP source port of a queue pair. */
enum rc_ports {
	RC_PORTS_GIVEN,	  /* as configured; in most tests it is one for all */
	RC_PORTS_BY_QPNS, /* from both numbers, the same at both ends: Linux without a flow label */
	RC_PORTS_EQUAL,	  /* a flow label that both applications have agreed on */
	RC_PORTS_OWN,	  /* the own number */
	RC_PORTS_OWN_HASH, /* a hash of that: soft-RoCE before Linux 5.18 */
	RC_PORTS,
};

/**
 * struct rc_host_config
 * @link_bps:  line rate at which frames leave, bits per second; 0: no limit
 * @seed:      for RNR probability
 * @qps_max:   queue pairs at the same time
 * @skip_icrc: do not check ICRCs of received frames
 */
struct rc_host_config {
	uint64_t link_bps;
	uint64_t seed;
	uint32_t qps_max;
	bool skip_icrc;
};

/**
 * struct rc_qp_config - everything about one queue pair; rc_qp_defaults() fills what has a default.
 * @lqpn, @rqpn:   own and peer's QPN. @sq_psn: first PSN we send. @rq_psn: first we expect
 * @mtu:           path MTU, 256 .. 4096
 * @smac .. @sport: header fields of what we send
 * @ports:         how @sport is chosen, see rc_qp_port()
 * @prio, @rprio:  without @vlan: what we, what the peer sends has a priority tag (VLAN 0) with this
 *                 priority, 0: none
 * @personality:   of both our requester and our responder
 *
 * Requester:
 * @depth:         work requests that may be queued (power of two)
 * @max_unacked:   PSNs sent and not acknowledged, 0: no limit (soft-RoCE: 128)
 * @max_rd:        READs and atomics outstanding
 * @timeout_exp:   timeout 4.096 us x 2^n; 0: none. @retry_cnt: 7 is forever for the permissive one,
 *                 7 times for the strict one; more than 7, which no host can be told, is for hosts
 *                 in real time, whose peer may have to wait for a processor. @rnr_retry: 7 is
 *                 forever
 * @resend:        see enum rc_resend
 * @ackreq_every:  ask for an ACK after so many packets within a message
 * @honor_credits: keep to the credits in ACKs until one says "unlimited"
 *
 * Responder:
 * @resp_rd:       READs and atomics accepted at once; a strict responder answers one more with 0x61
 * @min_rnr_timer: RNR timer code sent (0..31)
 * @recv_auto:     a receive is always posted, but for @rnr_p
 * @recv_depth:    without @recv_auto: receives posted at the start and the most that can be
 * @recv_interval: without @recv_auto: one more every so many ns; 0: only rc_qp_post_recv()
 * @rnr_p:         probability that a SEND finds no receive although there is one
 * @credits:       send real credit codes instead of 0x1f
 * @credit_updates: when the last answer told of no receive and there is one again, an ACK that
 *                 nobody asked for says so (@credits, no @recv_auto, a @recv_interval)
 * @ack_coalesce:  requests for an ACK folded into one ACK (0 and 1: each poll); @ack_delay: ns at
 *                 most
 * @reply_interval: ns at least from one packet of a READ's answer to the next; 0: no limit
 * @recv_size:     longest SEND accepted; 0: any, and the data is not kept
 *
 * Data:
 * @tx_seed:       of what we send; @rx_seed: of what the peer sends
 * @mr_va, @mr_size, @mr_rkey, @mr_seed: own memory region
 * @rmr_va, @rmr_size, @rmr_rkey, @rmr_seed: the peer's
 * @atomics_more:  the responder may execute atomics that were not posted
 * @atomics_blank: what an atomic returns may be 0 instead of what was there
 * @shadow:        keep a copy of the peer's region as it must be
 * @mr_fixed, @rmr_fixed: only that many bytes at the start of the region are changed by the
 *                 requests of this queue pair alone; the owner changes the others as it likes. 0:
 *                 all
 * @journal:       messages that rc_check_prefix() remembers (power of two)
 * @no_verify:     do not check received payload
 * @no_land:       do not copy WRITE payload into the region
 */
struct rc_qp_config {
	uint32_t lqpn, rqpn, sq_psn, rq_psn, mtu;
	uint8_t smac[6], dmac[6];
	uint16_t vlan, sport;
	uint8_t prio, rprio;
	struct ip_addr src, dst;
	enum rc_personality personality;
	enum rc_ports ports;

	uint32_t depth, max_unacked, max_rd;
	uint8_t timeout_exp, retry_cnt, rnr_retry;
	enum rc_resend resend;
	uint32_t ackreq_every;
	bool honor_credits;

	uint32_t resp_rd;
	uint8_t min_rnr_timer;
	bool recv_auto;
	uint32_t recv_depth;
	uint64_t recv_interval;
	double rnr_p;
	bool credits, credit_updates;
	uint32_t ack_coalesce;
	uint64_t ack_delay;
	uint64_t reply_interval;
	uint32_t recv_size;

	uint64_t tx_seed, rx_seed;
	uint64_t mr_va, mr_size, mr_seed;
	uint64_t rmr_va, rmr_size, rmr_seed;
	uint64_t mr_fixed, rmr_fixed;
	uint32_t mr_rkey, rmr_rkey;
	uint32_t journal;
	bool shadow, no_verify, no_land, atomics_blank, atomics_more;
};

/* Counters of a queue pair, and their sum over a host's life. */
struct rc_stats {
	/* requester */
	uint64_t posted, completed, failed, tx_requests, tx_bytes, retransmits, timeouts,
		hw_resends;
	uint64_t rx_acks, rx_seq_naks, rx_rnr, rx_fatal_naks, rx_ghosts, implied_naks,
		reads_restarted;
	uint64_t rx_read_packets, rx_read_bytes, data_errors, rx_ignored;
	/* responder */
	uint64_t rx_requests, rx_messages, rx_bytes, duplicates, out_of_seq, tx_acks, tx_seq_naks,
		tx_rnr;
	uint64_t tx_fatal_naks, tx_read_packets, payload_errors, dup_reads_dropped,
		refused_in_error, reads_out_of_range;
};

/* Frames that never reached a queue pair. */
struct rc_host_stats {
	uint64_t rx_frames, rx_bytes, tx_frames, tx_bytes;
	uint64_t rx_not_roce, rx_malformed, rx_bad_icrc, rx_no_qp, rx_wrong_address, rx_ud, rx_cnp;
	uint64_t rx_not_rc;
};

struct rc_host *rc_host_create(const struct rc_host_config *cfg, const struct rc_host_ops *ops,
			       void *ctx);
void rc_host_destroy(struct rc_host *h);

/** rc_host_rx - one received frame, Ethernet header on. @data is read during the call only. */
void rc_host_rx(struct rc_host *h, uint64_t now, const uint8_t *data, uint32_t len);

/** rc_host_poll - run timers, then send at most @budget frames; returns how many were sent. */
uint32_t rc_host_poll(struct rc_host *h, uint64_t now, uint32_t budget);

/** rc_host_next - when rc_host_poll() has work: a time not after the last one given means at once.
 *  After tx_buf() returned NULL only timers count; the owner polls when it has room. */
uint64_t rc_host_next(const struct rc_host *h);

const struct rc_host_stats *rc_host_stats(const struct rc_host *h);
/** rc_host_totals - counters of all queue pairs, destroyed ones included. */
struct rc_stats rc_host_totals(const struct rc_host *h);

/** rc_qp_defaults - sensible values for everything that does not name the other side. */
void rc_qp_defaults(struct rc_qp_config *c, enum rc_personality p);
/** rc_qp_mirror - what the peer of @c must be given: QPNs, PSNs, addresses, seeds, regions swapped,
 *  the rest copied. */
void rc_qp_mirror(struct rc_qp_config *peer, const struct rc_qp_config *c);

/** rc_qp_port - write @sport by @ports and both QPNs. */
void rc_qp_port(struct rc_qp_config *c);

/** rc_qp_create - ready to send and receive at once. NULL: QPN in use, table full, or no memory. */
struct rc_qp *rc_qp_create(struct rc_host *h, const struct rc_qp_config *cfg, void *user);
/** rc_qp_destroy - gone without a message, as when a process dies. Requests under way are not
 * completed. */
void rc_qp_destroy(struct rc_qp *qp);
struct rc_qp *rc_qp_find(struct rc_host *h, uint32_t qpn);

/** rc_post - queue a request. 0, -EAGAIN: queue full, -EIO: error state, -EINVAL: malformed.
 *  RC_OP length up to 2^31; the region is not checked here, the responder does that. */
int rc_post(struct rc_qp *qp, uint64_t now, const struct rc_wr *wr);
/** rc_qp_post_recv - @n more receives (recv_auto off); at most recv_depth in all. */
void rc_qp_post_recv(struct rc_qp *qp, uint64_t now, uint32_t n);

/** rc_qp_set_recv - change the receive policy of a running queue pair. */
void rc_qp_set_recv(struct rc_qp *qp, uint64_t now, bool recv_auto, uint64_t interval,
		    double rnr_p);

/** rc_qp_refuse_next - the next new request is refused with @syndrome (0x61 .. 0x63), after @skip
 *  others; the queue pair goes to the error state as it would for a true cause. */
void rc_qp_refuse_next(struct rc_qp *qp, uint8_t syndrome, uint32_t skip);
/** rc_qp_clock_jump - the requester's timers go off now (@late 0), or so many ns later than they
 * should. */
void rc_qp_clock_jump(struct rc_qp *qp, uint64_t now, uint64_t late);
/** rc_qp_fail - to the error state now, silently; what is queued is flushed. */
void rc_qp_fail(struct rc_qp *qp, uint64_t now);

const struct rc_qp_config *rc_qp_config(const struct rc_qp *qp);
const struct rc_stats *rc_qp_stats(const struct rc_qp *qp);
void *rc_qp_user(const struct rc_qp *qp);
bool rc_qp_in_error(const struct rc_qp *qp);
/** rc_qp_queued - requests posted and not completed. */
uint32_t rc_qp_queued(const struct rc_qp *qp);
/** rc_qp_room - requests that can be posted now. */
uint32_t rc_qp_room(const struct rc_qp *qp);
/** rc_qp_memory - own region (mr_size bytes). The owner may change it; then the peer's shadow
 * too. */
uint8_t *rc_qp_memory(struct rc_qp *qp);
/** rc_qp_shadow - the peer's region as it must be once all is executed; NULL without shadow. */
uint8_t *rc_qp_shadow(struct rc_qp *qp);

/* Requester and responder PSNs and MSN, for invariants: all 24 bits. */
uint32_t rc_qp_una(const struct rc_qp *qp);	 /* oldest PSN not acknowledged */
uint32_t rc_qp_sent_end(const struct rc_qp *qp); /* one past the last PSN ever sent */
uint32_t rc_qp_epsn(const struct rc_qp *qp);	 /* PSN that the responder expects */
uint32_t rc_qp_msn(const struct rc_qp *qp);	 /* messages that the responder has completed */

/**
 * rc_check_prefix - whether what @responder executed (SENDs and WRITEs: op, length, va, immediate,
 * in order; atomics: also their operands) is an exact prefix of what @requester posted. 0: yes;
 * -EBADMSG: no; -ERANGE: the requester is more than its journal ahead and it cannot be told.
 */
int rc_check_prefix(const struct rc_qp *requester, const struct rc_qp *responder);
/** rc_check_all - as rc_check_prefix(), and that nothing is missing (call it when all is
 * completed). */
int rc_check_all(const struct rc_qp *requester, const struct rc_qp *responder);
/** rc_check_memory - compare @responder's region with @requester's shadow; returns the offset of
 *  the first difference, -1 when they are equal. */
int64_t rc_check_memory(struct rc_qp *requester, struct rc_qp *responder);
/** rc_messages, rc_atomics - SENDs and WRITEs, atomics executed by the responder;
 * rc_messages_posted - posted here. */
uint64_t rc_messages(const struct rc_qp *qp);
uint64_t rc_atomics(const struct rc_qp *qp);
uint64_t rc_messages_posted(const struct rc_qp *qp);

const char *rc_op_name(enum rc_op op);
const char *rc_status_name(enum rc_status s);

#endif
