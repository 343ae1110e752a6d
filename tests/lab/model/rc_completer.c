// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What responses do to the requester, in the two ways that matter (enum rc_personality).
 *
 * Strict: a response counts when its PSN is in [una, sent_end); anything else is a ghost and
 * changes nothing. An ACK or NAK releases SENDs and WRITEs before it, but never an unanswered READ
 * or atomic: that one is asked for again, once for each answer that jumped over it.
 *
 * Permissive: as soft-RoCE, a response is matched with the oldest request only. It trusts more: an
 * ACK beyond the oldest request completes it, and the next, up to whatever has been sent; and it
 * completes a one-packet READ on a bare ACK, without data. An appliance that relies on strict hosts
 * will show here.
 */
#include <string.h>

#include "tests/lab/model/rc_internal.h"

/* Credit codes, spec: IBTA table 46. */
static const uint16_t credit_table[31] = {0,	1,    2,    3,	   4,	  6,	 8,    12,
					  16,	24,   32,   48,	   64,	  96,	 128,  192,
					  256,	384,  512,  768,   1024,  1536,	 2048, 3072,
					  4096, 6144, 8192, 12288, 16384, 24576, 32768};

static void note_credits(struct rc_qp *qp, const struct frame *f)
{
	struct rc_requester *q = &qp->req;
	uint8_t syndrome = frame_aeth_syndrome(f);
	uint64_t limit;

	if (!qp->cfg.honor_credits)
		return;
	if (syndrome == AETH_ACK_UNLIMITED) {
		q->credits_unlimited = true;
		return;
	}
	/* The MSN is the low 24 bits of a count that lies within the requests posted. */
	limit = q->ssn - ((q->ssn - frame_aeth_msn(f)) & PSN_MASK) + credit_table[syndrome & 0x1f];
	if (!q->credits_seen || limit > q->credit_limit)
		q->credit_limit = limit;
	q->credits_seen = true;
}

void rc_complete_head(struct rc_qp *qp, uint64_t now, enum rc_status status)
{
	struct rc_requester *q = &qp->req;
	struct rc_wqe *w = rc_wqe(qp, q->head);
	struct rc_completion c = {.wr_id = w->wr.wr_id,
				  .op = w->wr.op,
				  .status = status,
				  .length = w->wr.length,
				  .number = w->number,
				  .posted_at = w->posted_at,
				  .completed_at = now,
				  .intact = true,
				  .value = w->value};

	if (status == RC_OK) {
		qp->stats.completed++;
		if (rc_op_answered(w->wr.op)) {
			c.checked = !w->unchecked && !qp->cfg.no_verify;
			c.intact = !w->bad || !c.checked;
			qp->stats.data_errors += !c.intact;
		}
	} else {
		qp->stats.failed++;
	}
	if (q->head < q->cur && rc_op_answered(w->wr.op) && q->rd_out)
		q->rd_out--;
	if (q->cur == q->head) {
		q->cur++;
		q->cur_pkt = 0;
		q->nxt = psn_add(w->first_psn, w->npsn);
	}
	q->head++;
	if (qp->h->ops.complete)
		qp->h->ops.complete(qp->h->ctx, qp, &c);
}

void rc_progress(struct rc_qp *qp, uint64_t now)
{
	struct rc_requester *q = &qp->req;

	q->retry_left = qp->cfg.retry_cnt;
	q->rnr_left = qp->cfg.rnr_retry;
	q->hw_step = 0;
	q->ack_soon = false;
	q->started_retry = false;
	q->retry_at = q->hw_at = RC_NEVER;
	if (q->una != q->sent_end) {
		if (qp->cfg.timeout_exp)
			q->retry_at = now + (4096ull << qp->cfg.timeout_exp);
		if (qp->cfg.resend != RC_RESEND_TIMEOUT)
			q->hw_at = now + 2000000;
		rc_arm(qp, q->retry_at < q->hw_at ? q->retry_at : q->hw_at);
	}
	rc_activate(qp);
}

/* READ and atomic data */

bool rc_read_fits(const struct rc_qp *qp, const struct rc_wqe *w, uint32_t packet,
		  const struct frame *f)
{
	uint32_t left = w->wr.length - (packet << qp->mtu_shift);
	bool last = packet + 1 == w->npsn;

	if (packet >= w->npsn)
		return false;
	switch (f->opcode) {
	case OP_READ_RESPONSE_FIRST:
		if (last || (packet != w->rd_start && packet != 0))
			return false;
		break;
	case OP_READ_RESPONSE_MIDDLE:
		if (last || !w->rd_open)
			return false;
		break;
	case OP_READ_RESPONSE_LAST:
		if (!last || !w->rd_open)
			return false;
		break;
	case OP_READ_RESPONSE_ONLY:
		if (!last || (packet != w->rd_start && packet != 0))
			return false;
		break;
	default:
		return false;
	}
	return f->payload_len == (last ? left : qp->cfg.mtu);
}

/* Bytes that a request posted later than @w may already have changed cannot be judged. */
static bool overtaken(const struct rc_qp *qp, const struct rc_wqe *w, uint64_t va, uint32_t len)
{
	const struct rc_requester *q = &qp->req;
	uint64_t from = q->shadow ? w->write_seq : 0;

	if (q->write_seq - from > RC_WRITE_LOG)
		return true;
	for (uint64_t i = from; i < q->write_seq; i++) {
		const struct rc_write_log *l = &q->writes[i % RC_WRITE_LOG];

		if (l->va < va + len && va < l->end)
			return true;
	}
	return false;
}

void rc_take_read(struct rc_qp *qp, struct rc_wqe *w, uint32_t packet, const struct frame *f)
{
	uint64_t va = w->wr.va + ((uint64_t)packet << qp->mtu_shift);
	uint64_t off = va - qp->cfg.rmr_va;
	uint32_t n = f->payload_len;
	const uint8_t *p = f->data + f->payload;

	qp->stats.rx_read_packets++;
	qp->stats.rx_read_bytes += n;
	w->rd_got++;
	w->rd_open = true;
	if (qp->cfg.no_verify || w->unchecked || !n)
		return;
	if (va < qp->cfg.rmr_va || off + n > qp->cfg.rmr_size) {
		w->unchecked = true;
		return;
	}
	if (qp->cfg.rmr_fixed && off + n > qp->cfg.rmr_fixed) {
		struct rc_read_data d = {.wr_id = w->wr.wr_id,
					 .posted_at = w->posted_at,
					 .offset = off,
					 .data = p,
					 .len = n};

		if (qp->h->ops.read)
			w->bad |= !qp->h->ops.read(qp->h->ctx, qp, &d);
		return;
	}
	if (overtaken(qp, w, va, n)) {
		w->unchecked = true;
		return;
	}
	if (qp->req.shadow)
		w->bad |= memcmp(qp->req.shadow + off, p, n) != 0;
	else
		w->bad |= pattern_check(p, pattern_key(qp->cfg.rmr_seed, 0), off, n) != n;
}

void rc_take_atomic(struct rc_qp *qp, struct rc_wqe *w, const struct frame *f)
{
	w->value = get_be64(f->data + f->atomicack);
	w->rd_got = 1;
	if (!w->unchecked && w->value != w->expect && (!qp->cfg.atomics_blank || w->value))
		w->bad = true;
	qp->stats.rx_read_packets++;
}

static enum rc_status nak_status(uint8_t syndrome)
{
	switch (syndrome) {
	case AETH_NAK_INVALID:
		return RC_REMOTE_INVALID;
	case AETH_NAK_ACCESS:
		return RC_REMOTE_ACCESS;
	default:
		return RC_REMOTE_OPERATION;
	}
}

/* Strict */

/*
 * Everything before @end is acknowledged, but for READs and atomics without their answers. Returns
 * true if it stopped at one of those.
 */
static bool strict_release(struct rc_qp *qp, uint64_t now, uint32_t end)
{
	struct rc_requester *q = &qp->req;
	uint32_t before = q->una;
	uint64_t done = 0;
	bool stopped = false;

	/* First the PSNs, then the callbacks: they may post, and must see a settled window. */
	for (uint64_t i = q->head; i < q->tail && psn_before(q->una, end); i++) {
		const struct rc_wqe *w = rc_wqe(qp, i);
		uint32_t w_end = psn_add(w->first_psn, w->npsn);

		if (rc_op_answered(w->wr.op) && w->rd_got < w->npsn) {
			stopped = true;
			break;
		}
		if (psn_after(w_end, end)) {
			q->una = end;
			break;
		}
		q->una = w_end;
		done++;
	}
	if (q->una != before) {
		if (q->implied && psn_after(q->una, q->implied_until))
			q->implied = false;
		rc_progress(qp, now);
	}
	while (done--)
		rc_complete_head(qp, now, RC_OK);
	if (psn_before(q->nxt, q->una)) {
		/* What was to be sent again has been acknowledged meanwhile. */
		q->nxt = q->una;
		q->cur_pkt = (q->una - rc_wqe(qp, q->cur)->first_psn) & PSN_MASK;
	}
	return stopped;
}

static bool spend_retry(struct rc_qp *qp, uint64_t now)
{
	struct rc_requester *q = &qp->req;

	if (q->retry_left == 0) {
		rc_fail(qp, now, RC_RETRY_EXCEEDED);
		return false;
	}
	q->retry_left--;
	return true;
}

/* The responder is not ready: its time passes, if there is a retry left. */
static void wait_rnr(struct rc_qp *qp, uint64_t now, uint8_t syndrome)
{
	struct rc_requester *q = &qp->req;

	qp->stats.rx_rnr++;
	if (q->rnr_left == 0) {
		rc_fail(qp, now, RC_RNR_EXCEEDED);
		return;
	}
	if (q->rnr_left != RC_RETRY_FOREVER)
		q->rnr_left--;
	q->rnr_at = now + aeth_rnr_ns(syndrome & 0x1f);
	rc_arm(qp, q->rnr_at);
}

/* An answer to @psn came although the one at una did not: that one is lost. */
static void strict_implied_nak(struct rc_qp *qp, uint64_t now, uint32_t psn)
{
	struct rc_requester *q = &qp->req;

	if (q->implied || !psn_before(q->una, q->nxt))
		return;
	qp->stats.implied_naks++;
	if (q->head < q->tail && rc_op_answered(rc_wqe(qp, q->head)->wr.op))
		qp->stats.reads_restarted++;
	if (!spend_retry(qp, now))
		return;
	q->implied = true;
	q->implied_until = psn;
	rc_requester_goback(qp, q->una);
}

static void strict_nak(struct rc_qp *qp, uint64_t now, uint32_t psn, uint8_t syndrome)
{
	struct rc_requester *q = &qp->req;
	bool stopped = strict_release(qp, now, psn);

	if (qp->error)
		return;
	if (aeth_is_rnr(syndrome)) {
		wait_rnr(qp, now, syndrome);
	} else if (syndrome == AETH_NAK_SEQ) {
		qp->stats.rx_seq_naks++;
		if (stopped)
			qp->stats.reads_restarted++;
		if (!spend_retry(qp, now))
			return;
		q->implied = false;
		rc_requester_goback(qp, q->una);
	} else {
		qp->stats.rx_fatal_naks++;
		rc_fail(qp, now, nak_status(syndrome));
	}
}

static void strict_answer(struct rc_qp *qp, uint64_t now, const struct frame *f)
{
	struct rc_requester *q = &qp->req;
	bool stopped = strict_release(qp, now, f->psn);
	struct rc_wqe *w;
	uint32_t packet;

	if (qp->error)
		return;
	if (stopped) {
		w = rc_wqe(qp, q->head);
		if (psn_before(f->psn, psn_add(w->first_psn, w->npsn)) &&
		    (w->wr.op == RC_READ) != (f->opcode != OP_ATOMIC_ACK))
			rc_fail(qp, now, RC_BAD_RESPONSE);
		else
			strict_implied_nak(qp, now, f->psn);
		return;
	}
	w = rc_wqe(qp, q->head);
	packet = (f->psn - w->first_psn) & PSN_MASK;
	if (w->wr.op == RC_READ && f->opcode != OP_ATOMIC_ACK) {
		if (packet != w->rd_got || !rc_read_fits(qp, w, packet, f)) {
			rc_fail(qp, now, RC_BAD_RESPONSE);
			return;
		}
		rc_take_read(qp, w, packet, f);
	} else if (rc_op_answered(w->wr.op) && w->wr.op != RC_READ && f->opcode == OP_ATOMIC_ACK) {
		rc_take_atomic(qp, w, f);
	} else {
		rc_fail(qp, now, RC_BAD_RESPONSE);
		return;
	}
	if (w->rd_got == w->npsn) {
		strict_release(qp, now, psn_add(f->psn, 1));
		return;
	}
	q->una = psn_add(f->psn, 1);
	if (q->implied && psn_after(q->una, q->implied_until))
		q->implied = false;
	rc_progress(qp, now);
	/* The cursor stands at this READ to ask for more of it than is missing now. */
	if (psn_before(q->nxt, q->una)) {
		q->nxt = q->una;
		q->cur_pkt = w->rd_got;
	}
}

void rc_response_strict(struct rc_qp *qp, uint64_t now, const struct frame *f)
{
	struct rc_requester *q = &qp->req;
	uint8_t syndrome = f->aeth ? frame_aeth_syndrome(f) : AETH_ACK_UNLIMITED;

	if (!psn_in(f->psn, q->una, q->sent_end)) {
		qp->stats.rx_ghosts++;
		if (aeth_is_ack(syndrome) && f->aeth && f->opcode == OP_ACK)
			note_credits(qp, f);
		return;
	}
	if (f->opcode != OP_ACK) {
		if (!aeth_is_ack(syndrome))
			rc_fail(qp, now, RC_BAD_RESPONSE);
		else
			strict_answer(qp, now, f);
		return;
	}
	if (!aeth_is_ack(syndrome)) {
		strict_nak(qp, now, f->psn, syndrome);
		return;
	}
	qp->stats.rx_acks++;
	note_credits(qp, f);
	if (strict_release(qp, now, psn_add(f->psn, 1)) && !qp->error)
		strict_implied_nak(qp, now, f->psn);
}

/* Permissive */

static void permissive_retry(struct rc_qp *qp, uint64_t now)
{
	struct rc_requester *q = &qp->req;

	if (q->started_retry)
		return;
	if (q->retry_left == 0) {
		rc_fail(qp, now, RC_RETRY_EXCEEDED);
		return;
	}
	if (q->retry_left != RC_RETRY_FOREVER)
		q->retry_left--;
	if (psn_after(q->nxt, q->una)) {
		q->started_retry = true;
		qp->stats.implied_naks++;
		rc_requester_goback(qp, q->una);
	}
}

static void permissive_advance(struct rc_qp *qp, uint32_t psn)
{
	if (!psn_before(psn, qp->req.una))
		qp->req.una = psn_add(psn, 1);
}

static void permissive_nak(struct rc_qp *qp, uint64_t now, const struct frame *f, uint8_t syndrome)
{
	struct rc_requester *q = &qp->req;

	if (aeth_is_rnr(syndrome)) {
		wait_rnr(qp, now, syndrome);
	} else if (syndrome == AETH_NAK_SEQ) {
		qp->stats.rx_seq_naks++;
		if (psn_after(f->psn, q->una))
			q->una = f->psn;
		permissive_retry(qp, now);
	} else {
		qp->stats.rx_fatal_naks++;
		rc_fail(qp, now, nak_status(syndrome));
	}
}

/* An answer with data at the PSN waited for. Returns true if the request is complete. */
static bool permissive_answer(struct rc_qp *qp, uint64_t now, struct rc_wqe *w,
			      const struct frame *f)
{
	if (f->opcode == OP_ATOMIC_ACK) {
		if (!rc_op_answered(w->wr.op) || w->wr.op == RC_READ) {
			rc_fail(qp, now, RC_BAD_RESPONSE);
			return false;
		}
		rc_take_atomic(qp, w, f);
		return true;
	}
	if (w->wr.op != RC_READ || !rc_read_fits(qp, w, w->rd_got, f)) {
		rc_fail(qp, now, RC_BAD_RESPONSE);
		return false;
	}
	rc_take_read(qp, w, w->rd_got, f);
	return w->rd_got == w->npsn;
}

static void permissive_complete(struct rc_qp *qp, uint64_t now, uint32_t last)
{
	struct rc_wqe *w = rc_wqe(qp, qp->req.head);

	permissive_advance(qp, last);
	rc_progress(qp, now);
	/* Completed without its data, it must not be taken for checked. */
	if (rc_op_answered(w->wr.op) && w->rd_got < w->npsn)
		w->bad = true;
	rc_complete_head(qp, now, RC_OK);
}

void rc_response_permissive(struct rc_qp *qp, uint64_t now, const struct frame *f)
{
	struct rc_requester *q = &qp->req;
	uint8_t syndrome = f->aeth ? frame_aeth_syndrome(f) : AETH_ACK_UNLIMITED;

	for (;;) {
		struct rc_wqe *w = rc_wqe(qp, q->head);
		bool pending = q->cur > q->head; /* wholly sent, not only begun */
		uint32_t last = psn_add(w->first_psn, w->npsn - 1);
		int32_t ahead;

		if (qp->error)
			return;
		if (q->head == q->tail || (!pending && q->cur_pkt == 0)) {
			qp->stats.rx_ignored++;
			return;
		}
		if (psn_after(f->psn, last)) {
			if (!pending) {
				qp->stats.rx_ignored++;
				return;
			}
			if (rc_op_answered(w->wr.op)) {
				permissive_retry(qp, now);
				return;
			}
			permissive_complete(qp, now, last);
			continue;
		}
		ahead = psn_diff(f->psn, q->una);
		if (ahead < 0) {
			if (f->psn == last)
				permissive_complete(qp, now, last);
			else
				qp->stats.rx_ghosts++;
			return;
		}
		if (ahead > 0 && rc_op_answered(w->wr.op)) {
			qp->stats.rx_ignored++;
			return;
		}
		if (f->opcode != OP_ACK) {
			if (!aeth_is_ack(syndrome)) {
				rc_fail(qp, now, RC_BAD_RESPONSE);
				return;
			}
			if (permissive_answer(qp, now, w, f)) {
				permissive_complete(qp, now, last);
			} else if (!qp->error) {
				permissive_advance(qp, f->psn);
				rc_progress(qp, now);
			}
			return;
		}
		if (!aeth_is_ack(syndrome)) {
			permissive_nak(qp, now, f, syndrome);
			return;
		}
		qp->stats.rx_acks++;
		note_credits(qp, f);
		if (pending && f->psn == last) {
			permissive_complete(qp, now, last);
		} else {
			permissive_advance(qp, f->psn);
			rc_progress(qp, now);
		}
		return;
	}
}
