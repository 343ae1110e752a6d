/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A single host of the lab against frames made by hand: what it sends is recorded, what it is given
 * is built here. For the tests of the tables in the protocol notes.
 */
#ifndef LAB_SOLO_H
#define LAB_SOLO_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "tests/lab/model/pattern.h"
#include "tests/lab/model/rc_frame.h"
#include "tests/lab/model/rc_host.h"
#include "wire/icrc.h"
#include "wire/psn.h"

#define MS	 1000000ull
#define SENT_MAX 512
#define PSN0	 0xfffff8u /* our requests; wraps soon */
#define EPSN	 0x000100u /* the peer's */
#define MTU	 1024u

struct sent {
	uint8_t opcode, syndrome;
	bool ackreq;
	uint32_t psn, msn, length, payload;
	uint64_t va, value;
};

struct solo {
	struct rc_host *host;
	struct rc_qp *qp;
	struct rc_qp_config peer;
	struct rc_header header;
	uint64_t now;
	uint8_t buf[FRAME_MAX];
	struct sent sent[SENT_MAX];
	uint32_t n_sent, n_read;
	struct rc_completion done[SENT_MAX];
	uint32_t n_done;
	struct rc_message got[SENT_MAX];
	uint32_t n_got;
	uint32_t errors;
};

static inline uint8_t *solo_buf(void *ctx)
{
	return ((struct solo *)ctx)->buf;
}

static inline void solo_tx(void *ctx, uint8_t *buf, uint32_t len)
{
	struct solo *s = ctx;
	struct frame f;
	struct sent *t;

	assert_int_equal(frame_parse(buf, len, &f), FRAME_OK);
	assert_true(icrc_ok(&f));
	assert_true(s->n_sent < SENT_MAX);
	t = &s->sent[s->n_sent++];
	*t = (struct sent){
		.opcode = f.opcode, .ackreq = f.ackreq, .psn = f.psn, .payload = f.payload_len};
	if (f.aeth) {
		t->syndrome = frame_aeth_syndrome(&f);
		t->msn = frame_aeth_msn(&f);
	}
	if (f.reth) {
		t->va = frame_reth_va(&f);
		t->length = frame_reth_length(&f);
	}
	if (f.atomicack)
		t->value = get_be64(f.data + f.atomicack);
}

static inline void solo_complete(void *ctx, struct rc_qp *qp, const struct rc_completion *c)
{
	struct solo *s = ctx;

	(void)qp;
	s->done[s->n_done++] = *c;
}

static inline void solo_receive(void *ctx, struct rc_qp *qp, const struct rc_message *m)
{
	struct solo *s = ctx;

	(void)qp;
	s->got[s->n_got++] = *m;
}

static inline void solo_error(void *ctx, struct rc_qp *qp, enum rc_status why)
{
	(void)qp;
	(void)why;
	((struct solo *)ctx)->errors++;
}

static const struct rc_host_ops solo_ops = {.tx_buf = solo_buf,
					    .tx = solo_tx,
					    .complete = solo_complete,
					    .receive = solo_receive,
					    .error = solo_error};

static inline void solo_init(struct solo *s, enum rc_personality p,
			     void (*tweak)(struct rc_qp_config *))
{
	static const uint8_t ip_a[4] = {10, 1, 0, 1}, ip_b[4] = {10, 1, 0, 2};
	struct rc_host_config host = {.seed = 1};
	struct rc_qp_config cfg;

	memset(s, 0, sizeof(*s));
	rc_qp_defaults(&cfg, p);
	cfg.lqpn = 0x21;
	cfg.rqpn = 0x22;
	cfg.sq_psn = PSN0;
	cfg.rq_psn = EPSN;
	cfg.mtu = MTU;
	cfg.src = ip_addr_v4(ip_a);
	cfg.dst = ip_addr_v4(ip_b);
	if (tweak)
		tweak(&cfg);
	s->host = rc_host_create(&host, &solo_ops, s);
	s->qp = rc_qp_create(s->host, &cfg, s);
	assert_non_null(s->qp);
	rc_qp_mirror(&s->peer, &cfg);
	rc_header_init(&s->header, s->peer.smac, s->peer.dmac, FRAME_VLAN_NONE, &s->peer.src,
		       &s->peer.dst, 0xc123);
}

static inline void solo_exit(struct solo *s)
{
	rc_host_destroy(s->host);
}

static inline void post(struct solo *s, enum rc_op op, uint32_t length)
{
	struct rc_wr wr = {.op = op, .length = length, .va = s->peer.mr_va, .wr_id = 0};

	assert_int_equal(rc_post(s->qp, s->now, &wr), 0);
	rc_host_poll(s->host, s->now, 1000);
}

/* A frame from the peer. @payload is the pattern at @key, @off. */
static inline void give(struct solo *s, struct rc_frame_spec spec, uint64_t key, uint64_t off)
{
	uint8_t out[FRAME_MAX];
	uint32_t crc, at;

	spec.dqpn = s->peer.rqpn;
	at = rc_frame_head(out, &s->header, &spec, &crc);
	pattern_fill(out + at, key, off, spec.payload_len);
	crc = crc32_update(crc, out + at, spec.payload_len);
	rc_host_rx(s->host, s->now, out, rc_frame_tail(out, at, spec.payload_len, crc));
	rc_host_poll(s->host, s->now, 1000);
}

static inline void give_ack(struct solo *s, uint32_t psn, uint8_t syndrome)
{
	struct rc_frame_spec spec = {.opcode = OP_ACK, .psn = psn & PSN_MASK, .ext_len = 4};

	spec.ext[0] = syndrome;
	give(s, spec, 0, 0);
}

/* READ response of packet @packet of a READ from the region's start. */
static inline void give_read(struct solo *s, uint8_t opcode, uint32_t psn, uint32_t packet,
			     uint32_t n)
{
	struct rc_frame_spec spec = {.opcode = opcode, .psn = psn & PSN_MASK, .payload_len = n};

	if (opcode != OP_READ_RESPONSE_MIDDLE) {
		spec.ext[0] = AETH_ACK_UNLIMITED;
		spec.ext_len = 4;
	}
	give(s, spec, pattern_key(rc_qp_config(s->qp)->rmr_seed, 0), packet * MTU);
}

static inline void give_data(struct solo *s, uint8_t opcode, uint32_t psn, uint32_t message,
			     uint32_t off, uint32_t n, uint32_t reth_len)
{
	struct rc_frame_spec spec = {
		.opcode = opcode, .psn = psn & PSN_MASK, .payload_len = n, .ackreq = true};

	if (opcode == OP_WRITE_FIRST || opcode == OP_WRITE_ONLY) {
		put_be64(spec.ext, s->peer.rmr_va);
		put_be32(spec.ext + 8, s->peer.rmr_rkey);
		put_be32(spec.ext + 12, reth_len);
		spec.ext_len = 16;
	}
	give(s, spec, pattern_key(s->peer.tx_seed, message), off);
}

static inline void give_read_request(struct solo *s, uint32_t psn, uint64_t va_off, uint32_t rkey,
				     uint32_t length)
{
	struct rc_frame_spec spec = {
		.opcode = OP_READ_REQUEST, .psn = psn & PSN_MASK, .ackreq = true, .ext_len = 16};

	put_be64(spec.ext, s->peer.rmr_va + va_off);
	put_be32(spec.ext + 8, rkey);
	put_be32(spec.ext + 12, length);
	give(s, spec, 0, 0);
}

static inline void give_fetch_add(struct solo *s, uint32_t psn, uint64_t add)
{
	struct rc_frame_spec spec = {.opcode = OP_FETCH_ADD, .psn = psn & PSN_MASK, .ext_len = 28};

	put_be64(spec.ext, s->peer.rmr_va);
	put_be32(spec.ext + 8, s->peer.rmr_rkey);
	put_be64(spec.ext + 12, add);
	give(s, spec, 0, 0);
}

/* What was sent since the last look. */
static inline const struct sent *next_sent(struct solo *s)
{
	return s->n_read < s->n_sent ? &s->sent[s->n_read++] : NULL;
}

static inline void expect_sent(struct solo *s, uint8_t opcode, uint32_t psn)
{
	const struct sent *t = next_sent(s);

	assert_non_null(t);
	assert_int_equal(t->opcode, opcode);
	assert_int_equal(t->psn, psn & PSN_MASK);
}

static inline void expect_answer(struct solo *s, uint8_t syndrome, uint32_t psn, uint32_t msn)
{
	const struct sent *t = next_sent(s);

	assert_non_null(t);
	assert_int_equal(t->opcode, OP_ACK);
	assert_int_equal(t->syndrome, syndrome);
	assert_int_equal(t->psn, psn & PSN_MASK);
	assert_int_equal(t->msn, msn);
}

static inline void expect_silence(struct solo *s)
{
	assert_null(next_sent(s));
}

static inline void later(struct solo *s, uint64_t ns)
{
	s->now += ns;
	rc_host_poll(s->host, s->now, 1000);
}

#define EACH_PERSONALITY(p) for (enum rc_personality p = RC_STRICT; p <= RC_PERMISSIVE; p++)

#endif
