/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the files of the model share. A queue pair is owned by its host; its requester
 * (rc_requester.c) and responder (rc_responder.c) touch only their own half, but that an error
 * stops both.
 *
 * Scheduling (rc_host.c): a queue pair that may have something to send is in the host's active
 * list; one with a deadline is in its heap. The heap's key may be earlier than the true deadline:
 * when it comes up the true one is looked at, so that re-arming a timer to later, the common case,
 * costs nothing.
 */
#ifndef LAB_RC_INTERNAL_H
#define LAB_RC_INTERNAL_H

#include <stddef.h>

#include "tests/lab/model/pattern.h"
#include "tests/lab/model/rc_frame.h"
#include "tests/lab/model/rc_host.h"
#include "wire/psn.h"

#define RC_WRITE_LOG 256u
#define RC_HEAP_NONE UINT32_MAX

/**
 * struct rc_wqe - a queued request.
 * @key:       of the pattern it carries (SEND, WRITE)
 * @number:    place among the SENDs and WRITEs, or among the atomics
 * @ssn:       place among all requests, from 1: compares with the MSN
 * @expect:    atomics: the value to come back
 * @write_seq: writes logged when it was posted (READ)
 * @npsn:      PSNs from @first_psn on
 * @rd_got:    response packets taken, in order
 * @rd_start:  packet at which the latest READ request began
 * @rd_open:   a response has been taken, so that MIDDLE and LAST may follow
 */
struct rc_wqe {
	struct rc_wr wr;
	uint64_t key, number, ssn, expect, value, write_seq, posted_at;
	uint32_t first_psn, npsn;
	uint32_t rd_got, rd_start;
	bool rd_open, unchecked, bad;
};

struct rc_write_log {
	uint64_t va, end;
};

struct rc_requester {
	struct rc_wqe *sq;
	/* Counters of requests: done < head <= cur <= tail; the cursor is at packet cur_pkt of
	 * sq[cur]. */
	uint64_t head, cur, tail;
	uint32_t cur_pkt;
	uint32_t una, nxt, sent_end, post_psn;
	uint32_t rd_out;
	uint32_t since_ackreq;
	uint64_t ssn;
	uint8_t retry_left, rnr_left, hw_step;
	bool started_retry, implied, ack_soon;
	uint32_t implied_until;
	uint64_t retry_at, hw_at, rnr_at;
	/* Credits: requests up to this number may go. */
	bool credits_unlimited, credits_seen;
	uint64_t credit_limit;
	/* Data */
	uint64_t data_posted, order_hash;
	uint64_t *journal;
	uint64_t atomics_posted, atomic_hash;
	uint64_t *atomic_journal;
	uint8_t *shadow;
	struct rc_write_log *writes;
	uint64_t write_seq;
};

/* A READ or atomic executed, kept for duplicates. */
struct rc_saved {
	bool used, atomic;
	uint32_t first_psn, npsn;
	uint64_t va;
	uint32_t length;
	uint64_t value;
};

/* An answer under way: of a READ the packets from @sent on. */
struct rc_reply {
	bool atomic, fresh;
	uint32_t psn, npsn, sent;
	uint64_t va;
	uint32_t length, msn;
	uint64_t value;
};

enum rc_open {
	RC_OPEN_NONE,
	RC_OPEN_SEND,
	RC_OPEN_WRITE,
};

struct rc_responder {
	uint32_t epsn;
	uint32_t ack_psn; /* of the last SEND or WRITE packet executed */
	uint64_t msn;	  /* wide; 24 bits go on the wire */
	bool gap_nak_sent, rnr_sent;
	/* The message under way */
	enum rc_open open;
	uint32_t offset, length;
	uint64_t va, key;
	bool bad;
	uint64_t data_done, atomics_done, order_hash, atomic_hash;
	uint8_t *recv_buf;
	/* Owed to the requester: one of a NAK and an ACK */
	uint8_t nak;
	uint32_t nak_psn;
	bool ack_due;
	uint32_t ack_asked;
	uint64_t ack_at;
	/* READs and atomics */
	struct rc_saved *saved;
	uint32_t saved_next;
	struct rc_reply *replies;
	uint32_t reply_head, reply_count, reply_max, fresh;
	uint64_t reply_at; /* the next packet of an answer not before */
	/* Receives */
	uint32_t recv_avail;
	bool credits_out; /* the last answer told of no receive */
	uint64_t recv_last;
	/* Faults asked for */
	uint8_t refuse;
	uint32_t refuse_skip;
	uint8_t *mr;
};

struct rc_qp {
	struct rc_host *h;
	struct rc_qp_config cfg;
	void *user;
	struct rc_header header;
	struct rc_stats stats;
	bool error, active;
	struct rc_qp *next_active, *next_hash;
	uint32_t heap_pos;
	uint64_t heap_key;
	uint32_t mtu_shift;
	struct rc_requester req;
	struct rc_responder resp;
};

struct rc_host {
	struct rc_host_config cfg;
	struct rc_host_ops ops;
	void *ctx;
	struct prng prng;
	struct rc_host_stats stats;
	struct rc_stats gone;
	struct rc_qp **buckets;
	uint32_t bucket_mask, qps;
	struct rc_qp **heap;
	uint32_t heap_len;
	struct rc_qp *active_head, *active_tail;
	bool blocked;
	uint64_t now, link_free;
};

/* rc_host.c */
void rc_activate(struct rc_qp *qp);
void rc_arm(struct rc_qp *qp, uint64_t at);
/** rc_fail - error state: the oldest request ends with @why, the rest is flushed. */
void rc_fail(struct rc_qp *qp, uint64_t now, enum rc_status why);
uint64_t rc_order_hash(uint64_t prev, enum rc_op op, uint32_t length, uint64_t va, uint32_t imm);
/* @data: SENDs and WRITEs before it */
uint64_t rc_atomic_hash(uint64_t prev, enum rc_op op, uint64_t data, uint64_t va, uint64_t swap_add,
			uint64_t compare);
uint8_t *rc_tx_buf(struct rc_host *h);
void rc_tx(struct rc_host *h, uint8_t *buf, uint32_t len);
bool rc_tx_ready(const struct rc_host *h);

static inline bool rc_op_answered(enum rc_op op)
{
	return op >= RC_READ;
}

static inline bool rc_op_has_imm(enum rc_op op)
{
	return op == RC_SEND_IMM || op == RC_SEND_INV || op == RC_WRITE_IMM;
}

/* What one step of a half led to. */
enum rc_step {
	RC_IDLE,    /* nothing to send now */
	RC_SENT,    /* one frame sent */
	RC_BLOCKED, /* no buffer */
};

/* rc_requester.c */
int rc_requester_init(struct rc_qp *qp);
void rc_requester_exit(struct rc_qp *qp);
void rc_requester_rx(struct rc_qp *qp, uint64_t now, const struct frame *f);
enum rc_step rc_requester_step(struct rc_qp *qp, uint64_t now);
void rc_requester_timer(struct rc_qp *qp, uint64_t now);
uint64_t rc_requester_deadline(const struct rc_qp *qp);
void rc_requester_flush(struct rc_qp *qp, uint64_t now, enum rc_status why);
void rc_requester_goback(struct rc_qp *qp, uint32_t psn);

/* rc_completer.c: responses, by the two personalities */
void rc_response_strict(struct rc_qp *qp, uint64_t now, const struct frame *f);
void rc_response_permissive(struct rc_qp *qp, uint64_t now, const struct frame *f);
void rc_complete_head(struct rc_qp *qp, uint64_t now, enum rc_status status);
void rc_progress(struct rc_qp *qp, uint64_t now);
void rc_take_read(struct rc_qp *qp, struct rc_wqe *w, uint32_t packet, const struct frame *f);
bool rc_read_fits(const struct rc_qp *qp, const struct rc_wqe *w, uint32_t packet,
		  const struct frame *f);
void rc_take_atomic(struct rc_qp *qp, struct rc_wqe *w, const struct frame *f);

/* rc_responder.c */
int rc_responder_init(struct rc_qp *qp);
void rc_responder_exit(struct rc_qp *qp);
void rc_responder_rx(struct rc_qp *qp, uint64_t now, const struct frame *f);
enum rc_step rc_responder_step(struct rc_qp *qp, uint64_t now);
uint64_t rc_responder_deadline(const struct rc_qp *qp);

static inline struct rc_wqe *rc_wqe(const struct rc_qp *qp, uint64_t i)
{
	return &qp->req.sq[i & (qp->cfg.depth - 1)];
}

#endif
