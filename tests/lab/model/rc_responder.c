// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The responder (spec: IBTA 9.7.5, spec: IBTA 9.9.3): takes requests in PSN order, executes each
 * once, and owes at any time at most one acknowledgement or NAK, and the answers of the READs and
 * atomics in the queue.
 *
 * Order of what it sends: answers go first, in the order of their requests; an ACK or NAK waits
 * until the queue is empty, because it would acknowledge (or, to a strict requester, refuse) READs
 * before it. A READ accepted while an ACK is due makes that ACK needless: its own response
 * acknowledges what came before. An ACK never bears the PSN of a READ or atomic: a permissive
 * requester would take it for the answer.
 *
 * An answer under way keeps the MSN of its request; a repeated one carries the present MSN.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lab/model/rc_internal.h"

static const uint16_t credit_codes[31] = {0,	1,    2,    3,	   4,	  6,	 8,    12,
					  16,	24,   32,   48,	   64,	  96,	 128,  192,
					  256,	384,  512,  768,   1024,  1536,	 2048, 3072,
					  4096, 6144, 8192, 12288, 16384, 24576, 32768};

int rc_responder_init(struct rc_qp *qp)
{
	struct rc_responder *r = &qp->resp;

	r->epsn = qp->cfg.rq_psn;
	r->ack_psn = psn_sub(r->epsn, 1);
	r->reply_max = 2 * qp->cfg.resp_rd + 16;
	r->saved = calloc(qp->cfg.resp_rd, sizeof(*r->saved));
	r->replies = calloc(r->reply_max, sizeof(*r->replies));
	r->mr = malloc(qp->cfg.mr_size ? qp->cfg.mr_size : 1);
	if (qp->cfg.recv_size)
		r->recv_buf = malloc(qp->cfg.recv_size);
	if (!r->saved || !r->replies || !r->mr || (qp->cfg.recv_size && !r->recv_buf))
		return -ENOMEM;
	pattern_fill(r->mr, pattern_key(qp->cfg.mr_seed, 0), 0, (uint32_t)qp->cfg.mr_size);
	r->recv_avail = qp->cfg.recv_depth;
	return 0;
}

void rc_responder_exit(struct rc_qp *qp)
{
	free(qp->resp.saved);
	free(qp->resp.replies);
	free(qp->resp.mr);
	free(qp->resp.recv_buf);
}

/* Receives */

static void refill_receives(struct rc_qp *qp, uint64_t now)
{
	struct rc_responder *r = &qp->resp;
	uint64_t n;

	if (!qp->cfg.recv_interval)
		return;
	n = (now - r->recv_last) / qp->cfg.recv_interval;
	r->recv_last += n * qp->cfg.recv_interval;
	n += r->recv_avail;
	r->recv_avail = n < qp->cfg.recv_depth ? (uint32_t)n : qp->cfg.recv_depth;
}

static bool take_receive(struct rc_qp *qp, uint64_t now)
{
	struct rc_responder *r = &qp->resp;

	if (prng_hit(&qp->h->prng, qp->cfg.rnr_p))
		return false;
	if (qp->cfg.recv_auto)
		return true;
	refill_receives(qp, now);
	if (!r->recv_avail)
		return false;
	r->recv_avail--;
	return true;
}

void rc_qp_post_recv(struct rc_qp *qp, uint64_t now, uint32_t n)
{
	refill_receives(qp, now);
	n += qp->resp.recv_avail;
	qp->resp.recv_avail = n < qp->cfg.recv_depth ? n : qp->cfg.recv_depth;
}

void rc_qp_set_recv(struct rc_qp *qp, uint64_t now, bool recv_auto, uint64_t interval, double rnr_p)
{
	qp->cfg.recv_auto = recv_auto;
	qp->cfg.recv_interval = interval;
	qp->cfg.rnr_p = rnr_p;
	qp->resp.recv_last = now;
}

static uint8_t ack_syndrome(struct rc_qp *qp)
{
	uint8_t code = 30;

	if (!qp->cfg.credits)
		return AETH_ACK_UNLIMITED;
	if (qp->cfg.recv_auto)
		return 24; /* 4,096: plenty */
	while (credit_codes[code] > qp->resp.recv_avail)
		code--;
	qp->resp.credits_out = !code;
	if (!code && qp->cfg.credit_updates && qp->cfg.recv_interval)
		rc_arm(qp, qp->resp.recv_last + qp->cfg.recv_interval);
	return code;
}

/* What is owed */

static void owe_ack(struct rc_qp *qp, uint64_t now)
{
	struct rc_responder *r = &qp->resp;

	if (!r->ack_due) {
		r->ack_due = true;
		r->ack_asked = 0;
		r->ack_at = now + qp->cfg.ack_delay;
	}
	r->ack_asked++;
	if (r->ack_asked < qp->cfg.ack_coalesce)
		rc_arm(qp, r->ack_at);
	else
		r->ack_at = now;
	rc_activate(qp);
}

static void owe_nak(struct rc_qp *qp, uint8_t syndrome)
{
	struct rc_responder *r = &qp->resp;

	r->nak = syndrome;
	r->nak_psn = r->epsn;
	r->ack_due = false; /* a NAK acknowledges what is before it */
	rc_activate(qp);
}

static void refuse(struct rc_qp *qp, uint64_t now, uint8_t syndrome)
{
	owe_nak(qp, syndrome);
	qp->stats.tx_fatal_naks++;
	rc_fail(qp, now, RC_FLUSHED);
	rc_activate(qp);
}

static struct rc_reply *push_reply(struct rc_responder *r)
{
	struct rc_reply *p;

	if (r->reply_count == r->reply_max)
		return NULL;
	p = &r->replies[(r->reply_head + r->reply_count++) % r->reply_max];
	memset(p, 0, sizeof(*p));
	return p;
}

/* Duplicates */

static struct rc_saved *find_saved(struct rc_qp *qp, uint32_t psn)
{
	for (uint32_t i = 0; i < qp->cfg.resp_rd; i++) {
		struct rc_saved *s = &qp->resp.saved[i];

		if (s->used && psn_in(psn, s->first_psn, psn_add(s->first_psn, s->npsn)))
			return s;
	}
	return NULL;
}

/* The same answer may already be on its way, when the requester was only impatient. */
static bool already_replying(const struct rc_responder *r, uint32_t psn)
{
	for (uint32_t i = 0; i < r->reply_count; i++) {
		const struct rc_reply *p = &r->replies[(r->reply_head + i) % r->reply_max];

		if (psn_in(psn, psn_add(p->psn, p->sent), psn_add(p->psn, p->npsn)))
			return true;
	}
	return false;
}

static void duplicate_read(struct rc_qp *qp, const struct frame *f)
{
	struct rc_responder *r = &qp->resp;
	const struct rc_saved *s = find_saved(qp, f->psn);
	uint64_t va = frame_reth_va(f);
	uint32_t length = frame_reth_length(f), skip;
	struct rc_reply *p;

	if (!s || s->atomic)
		goto drop;
	skip = (f->psn - s->first_psn) & PSN_MASK;
	if ((frame_reth_rkey(f) != qp->cfg.mr_rkey && !qp->h->ops.offered) ||
	    va != s->va + ((uint64_t)skip << qp->mtu_shift) || va + length != s->va + s->length)
		goto drop;
	if (already_replying(r, f->psn))
		return;
	p = push_reply(r);
	if (!p)
		goto drop;
	p->psn = f->psn;
	p->npsn = s->npsn - skip;
	p->va = va;
	p->length = length;
	rc_activate(qp);
	return;
drop:
	qp->stats.dup_reads_dropped++;
}

static void duplicate_atomic(struct rc_qp *qp, const struct frame *f)
{
	const struct rc_saved *s = find_saved(qp, f->psn);
	struct rc_reply *p;

	if (!s || !s->atomic || already_replying(&qp->resp, f->psn))
		return;
	p = push_reply(&qp->resp);
	if (!p)
		return;
	p->atomic = true;
	p->psn = f->psn;
	p->npsn = 1;
	p->value = s->value;
	rc_activate(qp);
}

static void duplicate(struct rc_qp *qp, uint64_t now, const struct frame *f)
{
	qp->stats.duplicates++;
	if (f->opcode == OP_READ_REQUEST)
		duplicate_read(qp, f);
	else if (f->op->flags & OPF_ATOMIC)
		duplicate_atomic(qp, f);
	else if (!qp->resp.nak)
		owe_ack(qp, now);
}

/* New requests */

static bool in_region(const struct rc_qp *qp, uint64_t va, uint32_t len)
{
	return len <= qp->cfg.mr_size && va >= qp->cfg.mr_va &&
	       va - qp->cfg.mr_va <= qp->cfg.mr_size - len;
}

static bool region_ok(const struct rc_qp *qp, uint32_t rkey, uint64_t va, uint32_t len)
{
	return rkey == qp->cfg.mr_rkey && in_region(qp, va, len);
}

static bool may_read(struct rc_qp *qp, uint32_t rkey, uint64_t va, uint32_t len)
{
	if (!qp->h->ops.offered)
		return region_ok(qp, rkey, va, len);
	return in_region(qp, va, len) && qp->h->ops.offered(qp->h->ctx, qp, rkey, va, len);
}

static enum rc_op message_op(const struct frame *f)
{
	if (f->op->flags & OPF_SEND)
		return f->ieth ? RC_SEND_INV : f->immdt ? RC_SEND_IMM : RC_SEND;
	return f->immdt ? RC_WRITE_IMM : RC_WRITE;
}

static void message_done(struct rc_qp *qp, const struct frame *f)
{
	struct rc_responder *r = &qp->resp;
	struct rc_message m = {.number = r->data_done,
			       .op = message_op(f),
			       .length = r->offset,
			       .va = r->va,
			       .intact = !r->bad};

	if (f->immdt || f->ieth) {
		m.has_imm = true;
		m.imm = get_be32(f->data + (f->immdt ? f->immdt : f->ieth));
	}
	if (m.op <= RC_SEND_INV)
		m.data = r->recv_buf;
	r->order_hash = rc_order_hash(r->order_hash, m.op, m.length, m.va, m.imm);
	r->data_done++;
	r->msn++;
	r->open = RC_OPEN_NONE;
	qp->stats.rx_messages++;
	qp->stats.payload_errors += r->bad;
	if (qp->h->ops.receive)
		qp->h->ops.receive(qp->h->ctx, qp, &m);
}

static void place(struct rc_qp *qp, const struct frame *f)
{
	struct rc_responder *r = &qp->resp;
	const uint8_t *p = f->data + f->payload;
	uint32_t n = f->payload_len;

	if (!qp->cfg.no_verify && !r->bad)
		r->bad = pattern_check(p, r->key, r->offset, n) != n;
	if (r->open == RC_OPEN_WRITE) {
		if (n && !qp->cfg.no_land)
			memcpy(r->mr + (r->va - qp->cfg.mr_va) + r->offset, p, n);
	} else if (r->recv_buf) {
		memcpy(r->recv_buf + r->offset, p, n);
	}
	r->offset += n;
	qp->stats.rx_bytes += n;
}

/* Opcode sequence and length; 0 or the syndrome that refuses it. */
static uint8_t check_data(struct rc_qp *qp, const struct frame *f)
{
	struct rc_responder *r = &qp->resp;
	uint16_t fl = f->op->flags;
	bool first = fl & (OPF_FIRST | OPF_ONLY), last = fl & (OPF_LAST | OPF_ONLY);
	enum rc_open kind = fl & OPF_SEND ? RC_OPEN_SEND : RC_OPEN_WRITE;
	uint32_t n = f->payload_len;

	if (first != (r->open == RC_OPEN_NONE) || (!first && r->open != kind))
		return AETH_NAK_INVALID;
	if (last ? n > qp->cfg.mtu || (n == 0 && !first) : n != qp->cfg.mtu)
		return AETH_NAK_INVALID;
	if (kind == RC_OPEN_SEND) {
		uint32_t before = first ? 0 : r->offset;

		return qp->cfg.recv_size && before + n > qp->cfg.recv_size ? AETH_NAK_INVALID : 0;
	}
	if (first) {
		uint32_t length = frame_reth_length(f);

		if (last ? length != n : length <= n)
			return AETH_NAK_INVALID;
		if (length && !region_ok(qp, frame_reth_rkey(f), frame_reth_va(f), length))
			return AETH_NAK_ACCESS;
		return 0;
	}
	return (last ? r->offset + n != r->length : r->offset + n >= r->length) ? AETH_NAK_INVALID
										: 0;
}

static void execute_data(struct rc_qp *qp, uint64_t now, const struct frame *f)
{
	struct rc_responder *r = &qp->resp;
	uint16_t fl = f->op->flags;
	bool first = fl & (OPF_FIRST | OPF_ONLY), last = fl & (OPF_LAST | OPF_ONLY);
	uint8_t syndrome = check_data(qp, f);

	if (syndrome) {
		refuse(qp, now, syndrome);
		return;
	}
	/* A SEND takes its receive at its start, a WRITE with immediate at its end. */
	if (((fl & OPF_SEND) ? first : last && f->immdt) && !take_receive(qp, now)) {
		r->rnr_sent = true;
		owe_nak(qp, (uint8_t)(AETH_RNR_NAK | qp->cfg.min_rnr_timer));
		return;
	}
	if (first) {
		r->open = fl & OPF_SEND ? RC_OPEN_SEND : RC_OPEN_WRITE;
		r->offset = 0;
		r->bad = false;
		r->key = pattern_key(qp->cfg.rx_seed, r->data_done);
		r->va = r->open == RC_OPEN_WRITE ? frame_reth_va(f) : 0;
		r->length = r->open == RC_OPEN_WRITE ? frame_reth_length(f) : 0;
	}
	place(qp, f);
	r->ack_psn = r->epsn;
	r->epsn = psn_add(r->epsn, 1);
	if (last)
		message_done(qp, f);
	if (f->ackreq && !qp->error)
		owe_ack(qp, now);
}

static void save(struct rc_qp *qp, const struct rc_reply *p)
{
	struct rc_responder *r = &qp->resp;
	struct rc_saved *s = &r->saved[r->saved_next++ % qp->cfg.resp_rd];

	*s = (struct rc_saved){.used = true,
			       .atomic = p->atomic,
			       .first_psn = p->psn,
			       .npsn = p->npsn,
			       .va = p->va,
			       .length = p->length,
			       .value = p->value};
}

static void accept_answered(struct rc_qp *qp, struct rc_reply *p)
{
	struct rc_responder *r = &qp->resp;

	r->msn++;
	r->fresh++;
	p->fresh = true;
	p->msn = (uint32_t)r->msn & PSN_MASK;
	p->psn = r->epsn;
	r->epsn = psn_add(r->epsn, p->npsn);
	r->ack_due = false;
	save(qp, p);
	rc_activate(qp);
}

static void execute_read(struct rc_qp *qp, uint64_t now, const struct frame *f)
{
	struct rc_reply *p;
	uint32_t length = frame_reth_length(f);

	if (length > 1u << 31) {
		refuse(qp, now, AETH_NAK_INVALID);
		return;
	}
	if (length && !may_read(qp, frame_reth_rkey(f), frame_reth_va(f), length)) {
		qp->stats.reads_out_of_range++;
		refuse(qp, now, AETH_NAK_ACCESS);
		return;
	}
	p = push_reply(&qp->resp);
	if (!p)
		return; /* full of repeated answers: as if it had been lost */
	p->va = frame_reth_va(f);
	p->length = length;
	p->npsn = length ? (length - 1 + qp->cfg.mtu) >> qp->mtu_shift : 1;
	accept_answered(qp, p);
}

static void execute_atomic(struct rc_qp *qp, uint64_t now, const struct frame *f)
{
	const uint8_t *eth = f->data + f->atomiceth;
	uint64_t va = get_be64(eth), v, old;
	struct rc_reply *p;
	uint8_t *mem;

	if (va & 7) {
		refuse(qp, now, AETH_NAK_INVALID);
		return;
	}
	if (!region_ok(qp, get_be32(eth + 8), va, 8)) {
		refuse(qp, now, AETH_NAK_ACCESS);
		return;
	}
	p = push_reply(&qp->resp);
	if (!p)
		return;
	mem = qp->resp.mr + (va - qp->cfg.mr_va);
	memcpy(&old, mem, 8);
	v = old;
	if (f->opcode == OP_FETCH_ADD)
		v += get_be64(eth + 12);
	else if (v == get_be64(eth + 20))
		v = get_be64(eth + 12);
	memcpy(mem, &v, 8);
	qp->resp.atomic_hash = rc_atomic_hash(
		qp->resp.atomic_hash, f->opcode == OP_FETCH_ADD ? RC_FETCH_ADD : RC_CMP_SWAP,
		qp->resp.data_done, va, get_be64(eth + 12),
		f->opcode == OP_FETCH_ADD ? 0 : get_be64(eth + 20));
	if (qp->h->ops.atomic)
		qp->h->ops.atomic(qp->h->ctx, qp, qp->resp.atomics_done);
	qp->resp.atomics_done++;
	p->atomic = true;
	p->npsn = 1;
	p->value = old;
	accept_answered(qp, p);
}

static void execute(struct rc_qp *qp, uint64_t now, const struct frame *f)
{
	struct rc_responder *r = &qp->resp;
	bool answered = f->op->flags & (OPF_READ | OPF_ATOMIC);

	if (r->refuse && (!answered ? f->op->flags & (OPF_FIRST | OPF_ONLY) : true)) {
		if (!r->refuse_skip--) {
			refuse(qp, now, r->refuse);
			return;
		}
	}
	if (!answered) {
		execute_data(qp, now, f);
		return;
	}
	if (r->open != RC_OPEN_NONE) {
		refuse(qp, now, AETH_NAK_INVALID);
		return;
	}
	if (qp->cfg.personality == RC_STRICT && r->fresh >= qp->cfg.resp_rd) {
		refuse(qp, now, AETH_NAK_INVALID);
		return;
	}
	if (f->opcode == OP_READ_REQUEST)
		execute_read(qp, now, f);
	else
		execute_atomic(qp, now, f);
}

void rc_responder_rx(struct rc_qp *qp, uint64_t now, const struct frame *f)
{
	struct rc_responder *r = &qp->resp;
	int32_t ahead = psn_diff(f->psn, r->epsn);

	if (qp->error) {
		qp->stats.refused_in_error++;
		return;
	}
	qp->stats.rx_requests++;
	if (ahead < 0) {
		duplicate(qp, now, f);
		return;
	}
	if (ahead > 0) {
		qp->stats.out_of_seq++;
		/* After an RNR NAK hardware waits for the retry; soft-RoCE reports the gap as
		 * well. */
		if (r->gap_nak_sent || (r->rnr_sent && qp->cfg.personality == RC_STRICT))
			return;
		r->gap_nak_sent = true;
		if (!r->nak)
			owe_nak(qp, AETH_NAK_SEQ);
		return;
	}
	r->gap_nak_sent = false;
	r->rnr_sent = false;
	if (r->nak) {
		/* Overtaken before it was sent; it would have acknowledged what is before. */
		r->nak = 0;
		owe_ack(qp, now);
	}
	if (!(f->op->flags & (OPF_SEND | OPF_WRITE | OPF_READ | OPF_ATOMIC))) {
		refuse(qp, now, AETH_NAK_INVALID);
		return;
	}
	execute(qp, now, f);
}

/* Sending */

static void put_aeth(struct rc_frame_spec *s, uint8_t syndrome, uint32_t msn)
{
	s->ext[0] = syndrome;
	put_be24(s->ext + 1, msn);
	s->ext_len = 4;
}

static void finish_reply(struct rc_responder *r, const struct rc_reply *p)
{
	r->fresh -= p->fresh;
	r->reply_head = (r->reply_head + 1) % r->reply_max;
	r->reply_count--;
}

static enum rc_step send_reply(struct rc_qp *qp, uint64_t now)
{
	struct rc_responder *r = &qp->resp;
	struct rc_reply *p = &r->replies[r->reply_head];
	bool first = p->sent == 0, last = p->sent + 1 == p->npsn;
	struct rc_frame_spec s = {.dqpn = qp->cfg.rqpn, .psn = psn_add(p->psn, p->sent)};
	uint32_t at = p->sent << qp->mtu_shift, off, crc, len, n;
	uint8_t *buf = rc_tx_buf(qp->h);

	if (!buf)
		return RC_BLOCKED;
	if (first || last)
		put_aeth(&s, ack_syndrome(qp), p->fresh ? p->msn : (uint32_t)r->msn & PSN_MASK);
	if (p->atomic) {
		s.opcode = OP_ATOMIC_ACK;
		put_be64(s.ext + 4, p->value);
		s.ext_len = 12;
		n = 0;
	} else {
		s.opcode = first ? (last ? OP_READ_RESPONSE_ONLY : OP_READ_RESPONSE_FIRST)
				 : (last ? OP_READ_RESPONSE_LAST : OP_READ_RESPONSE_MIDDLE);
		n = last ? p->length - at : qp->cfg.mtu;
	}
	s.payload_len = n;
	off = rc_frame_head(buf, &qp->header, &s, &crc);
	if (n)
		crc = crc32_copy(crc, buf + off, r->mr + (p->va - qp->cfg.mr_va) + at, n);
	len = rc_frame_tail(buf, off, n, crc);
	p->sent++;
	if (last)
		finish_reply(r, p);
	r->reply_at = now + qp->cfg.reply_interval;
	qp->stats.tx_read_packets++;
	rc_tx(qp->h, buf, len);
	return RC_SENT;
}

static enum rc_step send_ack(struct rc_qp *qp, uint32_t psn, uint8_t syndrome)
{
	struct rc_responder *r = &qp->resp;
	struct rc_frame_spec s = {.opcode = OP_ACK, .dqpn = qp->cfg.rqpn, .psn = psn};
	uint32_t off, crc, len;
	uint8_t *buf = rc_tx_buf(qp->h);

	if (!buf)
		return RC_BLOCKED;
	put_aeth(&s, syndrome, (uint32_t)r->msn & PSN_MASK);
	off = rc_frame_head(buf, &qp->header, &s, &crc);
	len = rc_frame_tail(buf, off, 0, crc);
	rc_tx(qp->h, buf, len);
	return RC_SENT;
}

/* When there is a receive again, of which the requester does not know. */
static uint64_t credits_at(const struct rc_qp *qp)
{
	const struct rc_responder *r = &qp->resp;

	if (!r->credits_out || !qp->cfg.credit_updates || qp->cfg.recv_auto ||
	    !qp->cfg.recv_interval || qp->error)
		return RC_NEVER;
	return r->recv_last + qp->cfg.recv_interval;
}

static void update_credits(struct rc_qp *qp, uint64_t now)
{
	if (now < credits_at(qp))
		return;
	refill_receives(qp, now);
	qp->resp.credits_out = false;
	if (qp->resp.nak || qp->resp.ack_due)
		return;
	owe_ack(qp, now);
	qp->resp.ack_at = now;
}

enum rc_step rc_responder_step(struct rc_qp *qp, uint64_t now)
{
	struct rc_responder *r = &qp->resp;
	enum rc_step step;

	update_credits(qp, now);
	if (r->reply_count && now < r->reply_at) {
		rc_arm(qp, r->reply_at);
		return RC_IDLE;
	}
	if (r->reply_count)
		return send_reply(qp, now);
	if (r->nak) {
		step = send_ack(qp, r->nak_psn, r->nak);
		if (step == RC_SENT) {
			qp->stats.tx_seq_naks += r->nak == AETH_NAK_SEQ;
			qp->stats.tx_rnr += aeth_is_rnr(r->nak);
			r->nak = 0;
		}
		return step;
	}
	if (!r->ack_due || now < r->ack_at || qp->error)
		return RC_IDLE;
	step = send_ack(qp, r->ack_psn, ack_syndrome(qp));
	if (step == RC_SENT) {
		qp->stats.tx_acks++;
		r->ack_due = false;
	}
	return step;
}

uint64_t rc_responder_deadline(const struct rc_qp *qp)
{
	const struct rc_responder *r = &qp->resp;
	uint64_t at = credits_at(qp);

	if (r->reply_count)
		return r->reply_at < at ? r->reply_at : at;
	return r->ack_due && !qp->error && r->ack_at < at ? r->ack_at : at;
}
