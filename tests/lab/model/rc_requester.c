// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The requester's sending side: the send queue, its window, and its timers. What responses do to it
 * is in rc_completer.c.
 *
 * Requests get their PSNs when they are posted. The cursor (cur, cur_pkt, nxt) walks through the
 * queue; going back moves it, and everything after it is sent again, byte for byte but for the
 * AckReq bit, the IPv4 identification and, for a READ already answered in part, a request for the
 * rest only. una never goes back; sent_end is the high-water mark of nxt.
 *
 * Three timers: the retry timer runs while anything is unacknowledged and starts afresh with
 * progress; the adaptive one of hardware (2, 4, 8, 16 ms) resends without consuming the retry
 * budget; the RNR timer holds all sending.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lab/model/rc_internal.h"

#define HW_FIRST_NS 2000000ull
#define HW_STEPS    4
/* Far below half of the PSN space. */
#define SPAN_MAX    (1u << 22)

int rc_requester_init(struct rc_qp *qp)
{
	struct rc_requester *q = &qp->req;

	q->sq = calloc(qp->cfg.depth, sizeof(*q->sq));
	q->journal = calloc(qp->cfg.journal, sizeof(*q->journal));
	q->atomic_journal = calloc(qp->cfg.journal, sizeof(*q->atomic_journal));
	q->writes = calloc(RC_WRITE_LOG, sizeof(*q->writes));
	if (!q->sq || !q->journal || !q->atomic_journal || !q->writes)
		return -ENOMEM;
	if (qp->cfg.shadow) {
		q->shadow = malloc(qp->cfg.rmr_size ? qp->cfg.rmr_size : 1);
		if (!q->shadow)
			return -ENOMEM;
		pattern_fill(q->shadow, pattern_key(qp->cfg.rmr_seed, 0), 0,
			     (uint32_t)qp->cfg.rmr_size);
	}
	q->una = q->nxt = q->sent_end = q->post_psn = qp->cfg.sq_psn;
	q->retry_left = qp->cfg.retry_cnt;
	q->rnr_left = qp->cfg.rnr_retry;
	q->retry_at = q->hw_at = q->rnr_at = RC_NEVER;
	return 0;
}

void rc_requester_exit(struct rc_qp *qp)
{
	free(qp->req.sq);
	free(qp->req.journal);
	free(qp->req.atomic_journal);
	free(qp->req.writes);
	free(qp->req.shadow);
}

/* Posting */

static bool in_region(const struct rc_qp *qp, uint64_t va, uint32_t len)
{
	return va >= qp->cfg.rmr_va && len <= qp->cfg.rmr_size &&
	       va - qp->cfg.rmr_va <= qp->cfg.rmr_size - len;
}

/* The peer's memory changes when the request is executed; the shadow changes now. */
static void log_write(struct rc_qp *qp, uint64_t va, uint32_t len)
{
	struct rc_write_log *l = &qp->req.writes[qp->req.write_seq++ % RC_WRITE_LOG];

	l->va = va;
	l->end = va + len;
}

static void shadow_write(struct rc_qp *qp, const struct rc_wqe *w)
{
	if (!w->wr.length || w->wr.rkey != qp->cfg.rmr_rkey ||
	    !in_region(qp, w->wr.va, w->wr.length))
		return;
	log_write(qp, w->wr.va, w->wr.length);
	if (!qp->req.shadow)
		return;
	if (w->wr.data)
		memcpy(qp->req.shadow + (w->wr.va - qp->cfg.rmr_va), w->wr.data, w->wr.length);
	else
		pattern_fill(qp->req.shadow + (w->wr.va - qp->cfg.rmr_va), w->key, 0, w->wr.length);
}

static void shadow_atomic(struct rc_qp *qp, struct rc_wqe *w)
{
	uint8_t *p;
	uint64_t v;

	w->unchecked = true;
	if (w->wr.rkey != qp->cfg.rmr_rkey || !in_region(qp, w->wr.va, 8))
		return;
	log_write(qp, w->wr.va, 8);
	if (!qp->req.shadow)
		return;
	p = qp->req.shadow + (w->wr.va - qp->cfg.rmr_va);
	memcpy(&v, p, 8);
	w->expect = v;
	w->unchecked = false;
	if (w->wr.op == RC_FETCH_ADD)
		v += w->wr.swap_add;
	else if (v == w->wr.compare)
		v = w->wr.swap_add;
	memcpy(p, &v, 8);
}

int rc_post(struct rc_qp *qp, uint64_t now, const struct rc_wr *wr)
{
	struct rc_requester *q = &qp->req;
	struct rc_wqe *w;
	uint32_t npsn;

	if (qp->error)
		return -EIO;
	if (wr->op >= RC_OPS || wr->length > 1u << 31)
		return -EINVAL;
	if (q->tail - q->head >= qp->cfg.depth)
		return -EAGAIN;
	npsn = wr->length && wr->op < RC_CMP_SWAP ? (wr->length - 1 + qp->cfg.mtu) >> qp->mtu_shift
						  : 1;
	if (((q->post_psn - q->una) & PSN_MASK) + npsn > SPAN_MAX)
		return -EAGAIN;
	w = rc_wqe(qp, q->tail);
	*w = (struct rc_wqe){.wr = *wr, .first_psn = q->post_psn, .npsn = npsn, .posted_at = now};
	if (!w->wr.rkey)
		w->wr.rkey = qp->cfg.rmr_rkey;
	if (rc_op_answered(wr->op)) {
		if (wr->op != RC_READ)
			w->wr.length = 8;
		w->write_seq = q->write_seq;
	}
	if (wr->op > RC_READ) {
		w->number = q->atomics_posted++;
		q->atomic_hash =
			rc_atomic_hash(q->atomic_hash, wr->op, q->data_posted, wr->va, wr->swap_add,
				       wr->op == RC_CMP_SWAP ? wr->compare : 0);
		q->atomic_journal[w->number & (qp->cfg.journal - 1)] = q->atomic_hash;
	} else if (wr->op < RC_READ) {
		w->number = q->data_posted++;
		w->key = pattern_key(qp->cfg.tx_seed, w->number);
		q->order_hash = rc_order_hash(q->order_hash, wr->op, wr->length, wr->va, wr->imm);
		q->journal[w->number & (qp->cfg.journal - 1)] = q->order_hash;
	}
	if (wr->op == RC_WRITE || wr->op == RC_WRITE_IMM)
		shadow_write(qp, w);
	else if (wr->op > RC_READ)
		shadow_atomic(qp, w);
	w->ssn = ++q->ssn;
	q->post_psn = psn_add(q->post_psn, npsn);
	q->tail++;
	qp->stats.posted++;
	rc_activate(qp);
	return 0;
}

/* Sending */

static enum rc_op_base { BASE_SEND, BASE_WRITE } base_of(enum rc_op op)
{
	return op <= RC_SEND_INV ? BASE_SEND : BASE_WRITE;
}

static uint8_t data_opcode(const struct rc_wqe *w, bool first, bool last)
{
	enum rc_op op = w->wr.op;

	if (base_of(op) == BASE_SEND) {
		if (!last)
			return first ? OP_SEND_FIRST : OP_SEND_MIDDLE;
		if (op == RC_SEND_INV)
			return first ? OP_SEND_ONLY_INV : OP_SEND_LAST_INV;
		return (uint8_t)((first ? OP_SEND_ONLY : OP_SEND_LAST) + (op == RC_SEND_IMM));
	}
	if (!last)
		return first ? OP_WRITE_FIRST : OP_WRITE_MIDDLE;
	return (uint8_t)((first ? OP_WRITE_ONLY : OP_WRITE_LAST) + (op == RC_WRITE_IMM));
}

static void put_reth(struct rc_frame_spec *s, uint64_t va, uint32_t rkey, uint32_t length)
{
	put_be64(s->ext, va);
	put_be32(s->ext + 8, rkey);
	put_be32(s->ext + 12, length);
	s->ext_len = 16;
}

static void start_timers(struct rc_qp *qp, uint64_t now)
{
	struct rc_requester *q = &qp->req;

	if (q->retry_at == RC_NEVER && qp->cfg.timeout_exp)
		q->retry_at = now + (4096ull << qp->cfg.timeout_exp);
	if (q->hw_at == RC_NEVER && qp->cfg.resend != RC_RESEND_TIMEOUT && q->hw_step < HW_STEPS)
		q->hw_at = now + (HW_FIRST_NS << q->hw_step);
	rc_arm(qp, q->retry_at < q->hw_at ? q->retry_at : q->hw_at);
}

static void sent(struct rc_qp *qp, uint64_t now, uint32_t psns, uint32_t len)
{
	struct rc_requester *q = &qp->req;

	if (psn_before(q->nxt, q->sent_end))
		qp->stats.retransmits++;
	q->nxt = psn_add(q->nxt, psns);
	if (psn_after(q->nxt, q->sent_end))
		q->sent_end = q->nxt;
	qp->stats.tx_requests++;
	qp->stats.tx_bytes += len;
	start_timers(qp, now);
}

static uint32_t send_answered(struct rc_qp *qp, struct rc_wqe *w, uint8_t *buf, uint64_t now)
{
	struct rc_requester *q = &qp->req;
	struct rc_frame_spec s = {.dqpn = qp->cfg.rqpn, .psn = q->nxt, .ackreq = true};
	uint32_t off, crc, len, skip = q->cur_pkt;

	if (w->wr.op == RC_READ) {
		s.opcode = OP_READ_REQUEST;
		put_reth(&s, w->wr.va + ((uint64_t)skip << qp->mtu_shift), w->wr.rkey,
			 w->wr.length - (skip << qp->mtu_shift));
		w->rd_start = skip;
	} else {
		s.opcode = w->wr.op == RC_CMP_SWAP ? OP_CMP_SWAP : OP_FETCH_ADD;
		put_be64(s.ext, w->wr.va);
		put_be32(s.ext + 8, w->wr.rkey);
		put_be64(s.ext + 12, w->wr.swap_add);
		put_be64(s.ext + 20, w->wr.compare);
		s.ext_len = 28;
	}
	off = rc_frame_head(buf, &qp->header, &s, &crc);
	len = rc_frame_tail(buf, off, 0, crc);
	q->rd_out++;
	q->cur++;
	q->cur_pkt = 0;
	q->since_ackreq = 0;
	sent(qp, now, w->npsn - skip, len);
	return len;
}

/* The last packet of a message asks, and every so many; and the one after which the window is full,
 * or the requester would wait for its own timer. */
static bool wants_ack(struct rc_qp *qp, const struct rc_wqe *w, bool last)
{
	struct rc_requester *q = &qp->req;

	if (last && (!w->wr.unsignaled || q->cur + 1 == q->tail || q->ack_soon))
		return true;
	if (qp->cfg.ackreq_every && ++q->since_ackreq > qp->cfg.ackreq_every)
		return true;
	return qp->cfg.max_unacked && psn_diff(q->nxt, q->una) + 1 >= (int32_t)qp->cfg.max_unacked;
}

static uint32_t send_data(struct rc_qp *qp, struct rc_wqe *w, uint8_t *buf, uint64_t now)
{
	struct rc_requester *q = &qp->req;
	uint32_t at = q->cur_pkt << qp->mtu_shift;
	bool first = q->cur_pkt == 0, last = q->cur_pkt + 1 == w->npsn;
	uint32_t n = last ? w->wr.length - at : qp->cfg.mtu;
	struct rc_frame_spec s = {.opcode = data_opcode(w, first, last),
				  .dqpn = qp->cfg.rqpn,
				  .psn = q->nxt,
				  .payload_len = n};
	uint32_t off, crc, len;

	s.ackreq = wants_ack(qp, w, last);
	if (s.ackreq)
		q->since_ackreq = 0;
	if (first && base_of(w->wr.op) == BASE_WRITE)
		put_reth(&s, w->wr.va, w->wr.rkey, w->wr.length);
	if (last && rc_op_has_imm(w->wr.op)) {
		put_be32(s.ext + s.ext_len, w->wr.imm);
		s.ext_len += 4;
	}
	off = rc_frame_head(buf, &qp->header, &s, &crc);
	if (w->wr.data) {
		crc = crc32_copy(crc, buf + off, w->wr.data + at, n);
	} else {
		pattern_fill(buf + off, w->key, at, n);
		crc = crc32_update(crc, buf + off, n);
	}
	len = rc_frame_tail(buf, off, n, crc);
	if (last) {
		q->cur++;
		q->cur_pkt = 0;
	} else {
		q->cur_pkt++;
	}
	sent(qp, now, 1, len);
	return len;
}

/* Out of credits a requester may still send the one message that is next, to learn of new ones. */
static bool credit_allows(const struct rc_qp *qp, const struct rc_wqe *w)
{
	const struct rc_requester *q = &qp->req;

	if (!qp->cfg.honor_credits || !q->credits_seen || q->credits_unlimited)
		return true;
	if (base_of(w->wr.op) == BASE_WRITE && w->wr.op != RC_WRITE_IMM)
		return true;
	return w->ssn <= q->credit_limit || q->cur == q->head;
}

enum rc_step rc_requester_step(struct rc_qp *qp, uint64_t now)
{
	struct rc_requester *q = &qp->req;
	struct rc_wqe *w;
	uint8_t *buf;
	uint32_t len;

	if (qp->error || q->cur == q->tail || q->rnr_at != RC_NEVER)
		return RC_IDLE;
	w = rc_wqe(qp, q->cur);
	if (qp->cfg.max_unacked && psn_diff(q->nxt, q->una) >= (int32_t)qp->cfg.max_unacked)
		return RC_IDLE;
	if (rc_op_answered(w->wr.op) && q->rd_out >= qp->cfg.max_rd)
		return RC_IDLE;
	if (q->cur_pkt == 0 && !credit_allows(qp, w))
		return RC_IDLE;
	buf = rc_tx_buf(qp->h);
	if (!buf)
		return RC_BLOCKED;
	len = rc_op_answered(w->wr.op) ? send_answered(qp, w, buf, now)
				       : send_data(qp, w, buf, now);
	rc_tx(qp->h, buf, len);
	return RC_SENT;
}

/* Going back and timers */

void rc_requester_goback(struct rc_qp *qp, uint32_t psn)
{
	struct rc_requester *q = &qp->req;
	uint64_t i = q->head;

	if (!psn_before(psn, q->nxt))
		return;
	q->rd_out = 0;
	for (; i < q->tail; i++) {
		const struct rc_wqe *w = rc_wqe(qp, i);

		if (psn_before(psn, psn_add(w->first_psn, w->npsn)))
			break;
		q->rd_out += rc_op_answered(w->wr.op);
	}
	if (i < q->tail && psn_before(psn, rc_wqe(qp, i)->first_psn))
		psn = rc_wqe(qp, i)->first_psn; /* cannot be: una is in the oldest request */
	q->cur = i;
	q->cur_pkt = i < q->tail ? (psn - rc_wqe(qp, i)->first_psn) & PSN_MASK : 0;
	q->nxt = psn;
	rc_activate(qp);
}

uint64_t rc_requester_deadline(const struct rc_qp *qp)
{
	const struct rc_requester *q = &qp->req;
	uint64_t at = q->retry_at < q->hw_at ? q->retry_at : q->hw_at;

	/* While the responder asks to wait, no answer is due. */
	if (q->rnr_at != RC_NEVER)
		return q->rnr_at;
	return at;
}

static void on_timeout(struct rc_qp *qp, uint64_t now)
{
	struct rc_requester *q = &qp->req;

	q->retry_at = RC_NEVER;
	if (q->head == q->tail || q->una == q->sent_end)
		return;
	qp->stats.timeouts++;
	if (q->retry_left == 0) {
		rc_fail(qp, now, RC_RETRY_EXCEEDED);
		return;
	}
	if (qp->cfg.personality == RC_STRICT || q->retry_left != RC_RETRY_FOREVER)
		q->retry_left--;
	q->ack_soon = true;
	q->implied = false;
	q->started_retry = true;
	rc_requester_goback(qp, q->una);
	q->retry_at = now + (4096ull << qp->cfg.timeout_exp);
}

static void on_hw_timer(struct rc_qp *qp)
{
	struct rc_requester *q = &qp->req;

	q->hw_at = RC_NEVER;
	if (q->head == q->tail || q->una == q->sent_end || q->hw_step >= HW_STEPS)
		return;
	if (qp->cfg.resend == RC_RESEND_HW_READS && !rc_op_answered(rc_wqe(qp, q->head)->wr.op))
		return;
	q->hw_step++;
	qp->stats.hw_resends++;
	q->implied = false;
	rc_requester_goback(qp, q->una);
	/* The next step is armed when this one's first packet goes out. */
}

void rc_requester_timer(struct rc_qp *qp, uint64_t now)
{
	struct rc_requester *q = &qp->req;

	if (q->rnr_at != RC_NEVER) {
		if (now < q->rnr_at)
			return;
		q->rnr_at = RC_NEVER;
		/* The wait does not count as silence of the responder. */
		if (q->retry_at != RC_NEVER)
			q->retry_at = now + (4096ull << qp->cfg.timeout_exp);
		q->hw_at = RC_NEVER;
		rc_requester_goback(qp, q->una);
		rc_activate(qp);
		return;
	}
	if (now >= q->retry_at)
		on_timeout(qp, now);
	if (!qp->error && now >= q->hw_at)
		on_hw_timer(qp);
}

void rc_qp_clock_jump(struct rc_qp *qp, uint64_t now, uint64_t late)
{
	struct rc_requester *q = &qp->req;

	if (q->retry_at != RC_NEVER)
		q->retry_at = late ? q->retry_at + late : now;
	if (q->hw_at != RC_NEVER)
		q->hw_at = late ? q->hw_at + late : now;
	rc_arm(qp, q->retry_at < q->hw_at ? q->retry_at : q->hw_at);
}

void rc_requester_flush(struct rc_qp *qp, uint64_t now, enum rc_status why)
{
	struct rc_requester *q = &qp->req;

	q->retry_at = q->hw_at = q->rnr_at = RC_NEVER;
	while (q->head != q->tail) {
		rc_complete_head(qp, now, why);
		why = RC_FLUSHED;
	}
	q->cur = q->tail;
	q->cur_pkt = 0;
	q->rd_out = 0;
}
