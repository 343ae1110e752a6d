// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The rows of the tables "How requesters react" and "How responders react", one by one: a single host against
 * frames made by hand.
 */
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

#define MS 1000000ull
#define SENT_MAX 512
#define PSN0 0xfffff8u /* our requests; wraps soon */
#define EPSN 0x000100u /* the peer's */
#define MTU 1024u

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

static uint8_t *solo_buf(void *ctx)
{
	return ((struct solo *)ctx)->buf;
}

static void solo_tx(void *ctx, uint8_t *buf, uint32_t len)
{
	struct solo *s = ctx;
	struct frame f;
	struct sent *t;

	assert_int_equal(frame_parse(buf, len, &f), FRAME_OK);
	assert_true(icrc_ok(&f));
	assert_true(s->n_sent < SENT_MAX);
	t = &s->sent[s->n_sent++];
	*t = (struct sent){.opcode = f.opcode, .ackreq = f.ackreq, .psn = f.psn, .payload = f.payload_len};
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

static void solo_complete(void *ctx, struct rc_qp *qp, const struct rc_completion *c)
{
	struct solo *s = ctx;

	(void)qp;
	s->done[s->n_done++] = *c;
}

static void solo_receive(void *ctx, struct rc_qp *qp, const struct rc_message *m)
{
	struct solo *s = ctx;

	(void)qp;
	s->got[s->n_got++] = *m;
}

static void solo_error(void *ctx, struct rc_qp *qp, enum rc_status why)
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

static void solo_init(struct solo *s, enum rc_personality p, void (*tweak)(struct rc_qp_config *))
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

static void solo_exit(struct solo *s)
{
	rc_host_destroy(s->host);
}

static void post(struct solo *s, enum rc_op op, uint32_t length)
{
	struct rc_wr wr = {.op = op, .length = length, .va = s->peer.mr_va, .wr_id = 0};

	assert_int_equal(rc_post(s->qp, s->now, &wr), 0);
	rc_host_poll(s->host, s->now, 1000);
}

/* A frame from the peer. @payload is the pattern at @key, @off. */
static void give(struct solo *s, struct rc_frame_spec spec, uint64_t key, uint64_t off)
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

static void give_ack(struct solo *s, uint32_t psn, uint8_t syndrome)
{
	struct rc_frame_spec spec = {.opcode = OP_ACK, .psn = psn & PSN_MASK, .ext_len = 4};

	spec.ext[0] = syndrome;
	give(s, spec, 0, 0);
}

/* READ response of packet @packet of a READ from the region's start. */
static void give_read(struct solo *s, uint8_t opcode, uint32_t psn, uint32_t packet, uint32_t n)
{
	struct rc_frame_spec spec = {.opcode = opcode, .psn = psn & PSN_MASK, .payload_len = n};

	if (opcode != OP_READ_RESPONSE_MIDDLE) {
		spec.ext[0] = AETH_ACK_UNLIMITED;
		spec.ext_len = 4;
	}
	give(s, spec, pattern_key(rc_qp_config(s->qp)->rmr_seed, 0), packet * MTU);
}

static void give_data(struct solo *s, uint8_t opcode, uint32_t psn, uint32_t message, uint32_t off,
		      uint32_t n, uint32_t reth_len)
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

static void give_read_request(struct solo *s, uint32_t psn, uint64_t va_off, uint32_t rkey, uint32_t length)
{
	struct rc_frame_spec spec = {
		.opcode = OP_READ_REQUEST, .psn = psn & PSN_MASK, .ackreq = true, .ext_len = 16};

	put_be64(spec.ext, s->peer.rmr_va + va_off);
	put_be32(spec.ext + 8, rkey);
	put_be32(spec.ext + 12, length);
	give(s, spec, 0, 0);
}

static void give_fetch_add(struct solo *s, uint32_t psn, uint64_t add)
{
	struct rc_frame_spec spec = {.opcode = OP_FETCH_ADD, .psn = psn & PSN_MASK, .ext_len = 28};

	put_be64(spec.ext, s->peer.rmr_va);
	put_be32(spec.ext + 8, s->peer.rmr_rkey);
	put_be64(spec.ext + 12, add);
	give(s, spec, 0, 0);
}

/* What was sent since the last look. */
static const struct sent *next_sent(struct solo *s)
{
	return s->n_read < s->n_sent ? &s->sent[s->n_read++] : NULL;
}

static void expect_sent(struct solo *s, uint8_t opcode, uint32_t psn)
{
	const struct sent *t = next_sent(s);

	assert_non_null(t);
	assert_int_equal(t->opcode, opcode);
	assert_int_equal(t->psn, psn & PSN_MASK);
}

static void expect_answer(struct solo *s, uint8_t syndrome, uint32_t psn, uint32_t msn)
{
	const struct sent *t = next_sent(s);

	assert_non_null(t);
	assert_int_equal(t->opcode, OP_ACK);
	assert_int_equal(t->syndrome, syndrome);
	assert_int_equal(t->psn, psn & PSN_MASK);
	assert_int_equal(t->msn, msn);
}

static void expect_silence(struct solo *s)
{
	assert_null(next_sent(s));
}

static void later(struct solo *s, uint64_t ns)
{
	s->now += ns;
	rc_host_poll(s->host, s->now, 1000);
}

#define EACH_PERSONALITY(p) for (enum rc_personality p = RC_STRICT; p <= RC_PERMISSIVE; p++)

/* Requesters */

static void ack_below_window(void **state)
{
	(void)state;
	EACH_PERSONALITY(p) {
		struct solo s;

		solo_init(&s, p, NULL);
		post(&s, RC_SEND, 10);
		post(&s, RC_SEND, 10);
		give_ack(&s, PSN0, 0x1f);
		assert_int_equal(s.n_done, 1);
		give_ack(&s, PSN0, 0x1f);
		give_ack(&s, PSN0 - 5, 0x1f);
		assert_int_equal(s.n_done, 1);
		assert_int_equal(rc_qp_una(s.qp), (PSN0 + 1) & PSN_MASK);
		assert_int_equal(s.errors, 0);
		solo_exit(&s);
	}
}

static void ack_beyond_sent(void **state)
{
	(void)state;
	EACH_PERSONALITY(p) {
		struct solo s;

		solo_init(&s, p, NULL);
		post(&s, RC_SEND, 10);
		post(&s, RC_WRITE, 3000);
		give_ack(&s, PSN0 + 40, 0x1f);
		assert_int_equal(s.n_done, p == RC_STRICT ? 0 : 2);
		solo_exit(&s);
	}
}

static void ack_past_pending_read(void **state)
{
	(void)state;
	EACH_PERSONALITY(p) {
		struct solo s;

		solo_init(&s, p, NULL);
		post(&s, RC_SEND, 10);
		post(&s, RC_READ, 3 * MTU);
		post(&s, RC_SEND, 10);
		s.n_read = s.n_sent;
		give_ack(&s, PSN0 + 4, 0x1f);
		assert_int_equal(s.n_done, 1); /* what is before the READ */
		expect_sent(&s, OP_READ_REQUEST, PSN0 + 1);
		expect_sent(&s, OP_SEND_ONLY, PSN0 + 4);
		expect_silence(&s);
		give_ack(&s, PSN0 + 4, 0x1f); /* once is enough */
		expect_silence(&s);
		give_read(&s, OP_READ_RESPONSE_FIRST, PSN0 + 1, 0, MTU);
		give_read(&s, OP_READ_RESPONSE_MIDDLE, PSN0 + 2, 1, MTU);
		give_read(&s, OP_READ_RESPONSE_LAST, PSN0 + 3, 2, MTU);
		give_ack(&s, PSN0 + 4, 0x1f);
		assert_int_equal(s.n_done, 3);
		assert_true(s.done[1].checked && s.done[1].intact);
		solo_exit(&s);
	}
}

static void bare_ack_on_read(void **state)
{
	(void)state;
	EACH_PERSONALITY(p) {
		struct solo s;

		solo_init(&s, p, NULL);
		post(&s, RC_READ, 100);
		s.n_read = s.n_sent;
		give_ack(&s, PSN0, 0x1f);
		if (p == RC_STRICT) {
			assert_int_equal(s.n_done, 0);
			expect_sent(&s, OP_READ_REQUEST, PSN0);
			give_read(&s, OP_READ_RESPONSE_ONLY, PSN0, 0, 100);
			assert_int_equal(s.n_done, 1);
			assert_true(s.done[0].intact);
		} else {
			/* Complete, and without data: the model says so. */
			assert_int_equal(s.n_done, 1);
			assert_int_equal(s.done[0].status, RC_OK);
			assert_false(s.done[0].intact);
		}
		solo_exit(&s);
	}
}

static void response_before_its_read(void **state)
{
	(void)state;
	EACH_PERSONALITY(p) {
		struct solo s;

		solo_init(&s, p, NULL);
		post(&s, RC_SEND, 10);
		give_read(&s, OP_READ_RESPONSE_ONLY, PSN0 + 1, 0, 100);
		assert_int_equal(s.n_done, p == RC_STRICT ? 0 : 1);
		assert_int_equal(s.errors, 0);
		post(&s, RC_READ, 100);
		give_read(&s, OP_READ_RESPONSE_ONLY, PSN0 + 1, 0, 100);
		assert_int_equal(s.n_done, 2);
		assert_true(s.done[1].intact);
		solo_exit(&s);
	}
}

static void response_with_wrong_opcode(void **state)
{
	(void)state;
	EACH_PERSONALITY(p) {
		struct solo s;

		solo_init(&s, p, NULL);
		post(&s, RC_READ, 3 * MTU);
		give_read(&s, OP_READ_RESPONSE_MIDDLE, PSN0, 0, MTU);
		assert_int_equal(s.errors, 1);
		assert_int_equal(s.n_done, 1);
		assert_int_equal(s.done[0].status, RC_BAD_RESPONSE);
		solo_exit(&s);

		solo_init(&s, p, NULL);
		post(&s, RC_WRITE, 10);
		give_read(&s, OP_READ_RESPONSE_ONLY, PSN0, 0, 10);
		assert_int_equal(s.done[0].status, RC_BAD_RESPONSE);
		solo_exit(&s);

		/* A length that does not fit. */
		solo_init(&s, p, NULL);
		post(&s, RC_READ, 3 * MTU);
		give_read(&s, OP_READ_RESPONSE_FIRST, PSN0, 0, MTU - 4);
		assert_int_equal(s.done[0].status, RC_BAD_RESPONSE);
		solo_exit(&s);
	}
}

static void nak_with_nothing_outstanding(void **state)
{
	(void)state;
	EACH_PERSONALITY(p) {
		struct solo s;

		solo_init(&s, p, NULL);
		for (uint8_t syndrome = 0x60; syndrome <= 0x63; syndrome++)
			give_ack(&s, PSN0, syndrome);
		give_ack(&s, PSN0, 0x2a);
		post(&s, RC_SEND, 10);
		give_ack(&s, PSN0, 0x1f);
		give_ack(&s, PSN0 + 1, 0x62);
		assert_int_equal(s.errors, 0);
		assert_int_equal(s.n_done, 1);
		solo_exit(&s);
	}
}

static void sequence_nak_goes_back(void **state)
{
	(void)state;
	EACH_PERSONALITY(p) {
		struct solo s;

		solo_init(&s, p, NULL);
		post(&s, RC_SEND, 10);
		post(&s, RC_WRITE, 4 * MTU);
		post(&s, RC_SEND, 10);
		s.n_read = s.n_sent;
		give_ack(&s, PSN0 + 3, AETH_NAK_SEQ);
		if (p == RC_PERMISSIVE) /* matched with the oldest request only: that one first */
			assert_int_equal(s.n_done, 1);
		assert_int_equal(s.n_done, 1);
		expect_sent(&s, OP_WRITE_MIDDLE, PSN0 + 3);
		expect_sent(&s, OP_WRITE_LAST, PSN0 + 4);
		expect_sent(&s, OP_SEND_ONLY, PSN0 + 5);
		expect_silence(&s);
		give_ack(&s, PSN0 + 5, 0x1f);
		assert_int_equal(s.n_done, 3);
		solo_exit(&s);
	}
}

static void rnr_waits_by_the_table(void **state)
{
	(void)state;
	EACH_PERSONALITY(p) {
		struct solo s;

		solo_init(&s, p, NULL);
		post(&s, RC_SEND, 10);
		post(&s, RC_SEND, 10);
		s.n_read = s.n_sent;
		give_ack(&s, PSN0, 0x20 | 14); /* 1.28 ms */
		expect_silence(&s);
		later(&s, 1280000 - 1);
		expect_silence(&s);
		assert_int_equal(rc_host_next(s.host), s.now + 1);
		later(&s, 1);
		expect_sent(&s, OP_SEND_ONLY, PSN0);
		expect_sent(&s, OP_SEND_ONLY, PSN0 + 1);
		give_ack(&s, PSN0 + 1, 0x1f);
		assert_int_equal(s.n_done, 2);
		solo_exit(&s);
	}
}

static void one_rnr_retry(struct rc_qp_config *c)
{
	c->rnr_retry = 1;
}

static void rnr_budget(void **state)
{
	(void)state;
	EACH_PERSONALITY(p) {
		struct solo s;

		solo_init(&s, p, one_rnr_retry);
		post(&s, RC_SEND, 10);
		give_ack(&s, PSN0, 0x20 | 1);
		later(&s, MS);
		assert_int_equal(s.errors, 0);
		give_ack(&s, PSN0, 0x20 | 1);
		assert_int_equal(s.errors, 1);
		assert_int_equal(s.done[0].status, RC_RNR_EXCEEDED);
		solo_exit(&s);
	}
}

static void fatal_naks(void **state)
{
	static const enum rc_status want[] = {RC_REMOTE_INVALID, RC_REMOTE_ACCESS, RC_REMOTE_OPERATION};

	(void)state;
	EACH_PERSONALITY(p) {
		for (uint8_t syndrome = 0x61; syndrome <= 0x63; syndrome++) {
			struct solo s;

			solo_init(&s, p, NULL);
			post(&s, RC_SEND, 10);
			post(&s, RC_SEND, 10);
			post(&s, RC_SEND, 10);
			give_ack(&s, PSN0 + 1, syndrome);
			assert_int_equal(s.n_done, 3);
			assert_int_equal(s.done[0].status, RC_OK);
			assert_int_equal(s.done[1].status, want[syndrome - 0x61]);
			assert_int_equal(s.done[2].status, RC_FLUSHED);
			assert_true(rc_qp_in_error(s.qp));
			solo_exit(&s);
		}
	}
}

static void read_resumes_where_it_broke(void **state)
{
	struct solo s;
	const struct sent *t;

	(void)state;
	solo_init(&s, RC_STRICT, NULL);
	post(&s, RC_READ, 4 * MTU + 5);
	s.n_read = s.n_sent;
	give_read(&s, OP_READ_RESPONSE_FIRST, PSN0, 0, MTU);
	give_read(&s, OP_READ_RESPONSE_MIDDLE, PSN0 + 1, 1, MTU);
	give_read(&s, OP_READ_RESPONSE_MIDDLE, PSN0 + 3, 3, MTU); /* 2 is missing */
	t = next_sent(&s);
	assert_non_null(t);
	assert_int_equal(t->opcode, OP_READ_REQUEST);
	assert_int_equal(t->psn, (PSN0 + 2) & PSN_MASK);
	assert_int_equal(t->va, s.peer.mr_va + 2 * MTU);
	assert_int_equal(t->length, 2 * MTU + 5);
	give_read(&s, OP_READ_RESPONSE_LAST, PSN0 + 4, 4, 5); /* still of the first request */
	expect_silence(&s);
	give_read(&s, OP_READ_RESPONSE_FIRST, PSN0 + 2, 2, MTU);
	give_read(&s, OP_READ_RESPONSE_MIDDLE, PSN0 + 3, 3, MTU);
	give_read(&s, OP_READ_RESPONSE_LAST, PSN0 + 4, 4, 5);
	assert_int_equal(s.n_done, 1);
	assert_true(s.done[0].checked && s.done[0].intact);
	solo_exit(&s);
}

static void window_of_soft_roce(void **state)
{
	struct solo s;

	(void)state;
	solo_init(&s, RC_PERMISSIVE, NULL);
	post(&s, RC_WRITE, 300 * MTU);
	assert_int_equal(s.n_sent, 128);
	assert_true(s.sent[64].ackreq && s.sent[127].ackreq);
	give_ack(&s, PSN0 + 64, 0x1f);
	assert_int_equal(s.n_sent, 128 + 65);
	solo_exit(&s);

	solo_init(&s, RC_STRICT, NULL);
	post(&s, RC_WRITE, 300 * MTU);
	assert_int_equal(s.n_sent, 300);
	solo_exit(&s);
}

static void sixteen_reads(void **state)
{
	(void)state;
	EACH_PERSONALITY(p) {
		struct solo s;

		solo_init(&s, p, NULL);
		for (int i = 0; i < 18; i++)
			post(&s, RC_READ, 100);
		assert_int_equal(s.n_sent, 16);
		give_read(&s, OP_READ_RESPONSE_ONLY, PSN0, 0, 100);
		assert_int_equal(s.n_sent, 17);
		solo_exit(&s);
	}
}

static void hardware_timer(struct rc_qp_config *c)
{
	c->resend = RC_RESEND_HW_READS;
	c->timeout_exp = 18; /* 1.07 s */
}

static void resends_at_2_4_8_16(void **state)
{
	static const uint64_t at[] = {2, 4, 8, 16};
	struct solo s;

	(void)state;
	solo_init(&s, RC_STRICT, hardware_timer);
	post(&s, RC_READ, 100);
	s.n_read = s.n_sent;
	for (int i = 0; i < 4; i++) {
		later(&s, at[i] * MS - 1);
		expect_silence(&s);
		later(&s, 1);
		expect_sent(&s, OP_READ_REQUEST, PSN0);
	}
	later(&s, 500 * MS);
	expect_silence(&s);
	assert_int_equal(s.errors, 0);
	solo_exit(&s);
}

/* Responders */

static void gap_is_reported_once(void **state)
{
	(void)state;
	EACH_PERSONALITY(p) {
		struct solo s;

		solo_init(&s, p, NULL);
		give_data(&s, OP_SEND_ONLY, EPSN, 0, 0, 10, 0);
		expect_answer(&s, 0x1f, EPSN, 1);
		give_data(&s, OP_SEND_ONLY, EPSN + 2, 2, 0, 10, 0);
		expect_answer(&s, AETH_NAK_SEQ, EPSN + 1, 1);
		give_data(&s, OP_SEND_ONLY, EPSN + 3, 3, 0, 10, 0);
		expect_silence(&s);
		give_data(&s, OP_SEND_ONLY, EPSN + 1, 1, 0, 10, 0);
		expect_answer(&s, 0x1f, EPSN + 1, 2);
		give_data(&s, OP_SEND_ONLY, EPSN + 5, 5, 0, 10, 0);
		expect_answer(&s, AETH_NAK_SEQ, EPSN + 2, 2);
		assert_int_equal(s.n_got, 2);
		assert_true(s.got[0].intact && s.got[1].intact);
		solo_exit(&s);
	}
}

static void duplicates_are_not_executed(void **state)
{
	(void)state;
	EACH_PERSONALITY(p) {
		struct solo s;

		solo_init(&s, p, NULL);
		give_data(&s, OP_SEND_ONLY, EPSN, 0, 0, 10, 0);
		give_data(&s, OP_WRITE_ONLY, EPSN + 1, 1, 0, 10, 10);
		s.n_read = s.n_sent;
		give_data(&s, OP_SEND_ONLY, EPSN, 7, 0, 10, 0); /* other content: must not show */
		expect_answer(&s, 0x1f, EPSN + 1, 2);
		give_data(&s, OP_WRITE_ONLY, EPSN + 1, 7, 0, 10, 10);
		expect_answer(&s, 0x1f, EPSN + 1, 2);
		assert_int_equal(s.n_got, 2);
		assert_int_equal(pattern_check(rc_qp_memory(s.qp), pattern_key(s.peer.tx_seed, 1), 0, 10),
				 10);
		solo_exit(&s);
	}
}

static void duplicate_reads(void **state)
{
	(void)state;
	EACH_PERSONALITY(p) {
		uint32_t rkey = 0x1234;
		struct solo s;

		solo_init(&s, p, NULL);
		give_read_request(&s, EPSN, 0, rkey, 3 * MTU);
		expect_sent(&s, OP_READ_RESPONSE_FIRST, EPSN);
		expect_sent(&s, OP_READ_RESPONSE_MIDDLE, EPSN + 1);
		expect_sent(&s, OP_READ_RESPONSE_LAST, EPSN + 2);
		assert_int_equal(s.sent[0].msn, 1);
		give_read_request(&s, EPSN + 1, MTU, rkey, 2 * MTU); /* its second half */
		expect_sent(&s, OP_READ_RESPONSE_FIRST, EPSN + 1);
		expect_sent(&s, OP_READ_RESPONSE_LAST, EPSN + 2);
		give_read_request(&s, EPSN, 0, rkey, 2 * MTU); /* does not end where it did */
		give_read_request(&s, EPSN, 0, rkey + 1, 3 * MTU);
		expect_silence(&s);
		assert_int_equal(rc_qp_epsn(s.qp), EPSN + 3);
		assert_int_equal(rc_qp_msn(s.qp), 1);
		assert_int_equal(s.errors, 0);
		solo_exit(&s);
	}
}

static void duplicate_atomic(void **state)
{
	(void)state;
	EACH_PERSONALITY(p) {
		uint64_t first, second;
		struct solo s;

		solo_init(&s, p, NULL);
		memcpy(&first, rc_qp_memory(s.qp), 8);
		give_fetch_add(&s, EPSN, 5);
		give_fetch_add(&s, EPSN + 1, 7);
		give_fetch_add(&s, EPSN, 5);
		give_fetch_add(&s, EPSN + 1, 7);
		memcpy(&second, rc_qp_memory(s.qp), 8);
		assert_int_equal(s.n_sent, 4);
		assert_int_equal(s.sent[0].value, first);
		assert_int_equal(s.sent[1].value, first + 5);
		assert_int_equal(s.sent[2].value, first);
		assert_int_equal(s.sent[3].value, first + 5);
		assert_int_equal(second, first + 12);
		solo_exit(&s);
	}
}

static void refusals(void **state)
{
	(void)state;
	EACH_PERSONALITY(p) {
		struct solo s;

		solo_init(&s, p, NULL);
		give_read_request(&s, EPSN, 0, 0x9999, 100);
		expect_answer(&s, AETH_NAK_ACCESS, EPSN, 0);
		assert_true(rc_qp_in_error(s.qp));
		give_data(&s, OP_SEND_ONLY, EPSN, 0, 0, 10, 0); /* an error state is silent */
		expect_silence(&s);
		solo_exit(&s);

		solo_init(&s, p, NULL);
		give_read_request(&s, EPSN, (1 << 20) - 99, 0x1234, 100);
		expect_answer(&s, AETH_NAK_ACCESS, EPSN, 0);
		solo_exit(&s);

		solo_init(&s, p, NULL);
		give_data(&s, OP_SEND_MIDDLE, EPSN, 0, 0, MTU, 0);
		expect_answer(&s, AETH_NAK_INVALID, EPSN, 0);
		solo_exit(&s);

		solo_init(&s, p, NULL);
		give_data(&s, OP_SEND_FIRST, EPSN, 0, 0, MTU, 0);
		expect_answer(&s, 0x1f, EPSN, 0);
		give_data(&s, OP_WRITE_LAST, EPSN + 1, 0, MTU, 10, 0);
		expect_answer(&s, AETH_NAK_INVALID, EPSN + 1, 0);
		assert_int_equal(s.n_got, 0);
		solo_exit(&s);

		solo_init(&s, p, NULL); /* FIRST must be full */
		give_data(&s, OP_SEND_FIRST, EPSN, 0, 0, MTU - 4, 0);
		expect_answer(&s, AETH_NAK_INVALID, EPSN, 0);
		solo_exit(&s);

		solo_init(&s, p, NULL); /* more than the RETH said */
		give_data(&s, OP_WRITE_FIRST, EPSN, 0, 0, MTU, MTU + 4);
		expect_answer(&s, 0x1f, EPSN, 0);
		give_data(&s, OP_WRITE_LAST, EPSN + 1, 0, MTU, 8, 0);
		expect_answer(&s, AETH_NAK_INVALID, EPSN + 1, 0);
		solo_exit(&s);

		solo_init(&s, p, NULL); /* on demand, with one request in between */
		rc_qp_refuse_next(s.qp, AETH_NAK_OPERATION, 1);
		give_data(&s, OP_SEND_ONLY, EPSN, 0, 0, 8, 0);
		expect_answer(&s, 0x1f, EPSN, 1);
		give_data(&s, OP_SEND_ONLY, EPSN + 1, 1, 0, 8, 0);
		expect_answer(&s, AETH_NAK_OPERATION, EPSN + 1, 1);
		assert_true(rc_qp_in_error(s.qp));
		solo_exit(&s);
	}
}

/* READs pile up while the line is busy: hardware has room for so many and no more. */
static void too_many_reads(void **state)
{
	struct rc_host_config host = {.link_bps = 1000000};
	uint8_t out[FRAME_MAX];
	struct solo s;

	(void)state;
	EACH_PERSONALITY(p) {
		struct rc_qp_config cfg;

		solo_init(&s, p, NULL);
		cfg = *rc_qp_config(s.qp);
		cfg.resp_rd = 4;
		rc_host_destroy(s.host);
		s.host = rc_host_create(&host, &solo_ops, &s);
		s.qp = rc_qp_create(s.host, &cfg, &s);
		for (uint32_t i = 0; i < 5; i++) {
			struct rc_frame_spec spec = {.opcode = OP_READ_REQUEST,
						     .dqpn = cfg.lqpn,
						     .psn = EPSN + i,
						     .ext_len = 16};
			uint32_t crc, at;

			put_be64(spec.ext, cfg.mr_va);
			put_be32(spec.ext + 8, cfg.mr_rkey);
			put_be32(spec.ext + 12, MTU);
			at = rc_frame_head(out, &s.header, &spec, &crc);
			rc_host_rx(s.host, 0, out, rc_frame_tail(out, at, 0, crc));
		}
		for (s.now = 0; s.now < 1000 * MS; s.now += 100000)
			rc_host_poll(s.host, s.now, 10);
		for (uint32_t i = 0; i < 4; i++)
			expect_sent(&s, OP_READ_RESPONSE_ONLY, EPSN + i);
		if (p == RC_STRICT) {
			expect_answer(&s, AETH_NAK_INVALID, EPSN + 4, 4);
			assert_int_equal(s.errors, 1);
		} else {
			expect_sent(&s, OP_READ_RESPONSE_ONLY, EPSN + 4);
			assert_int_equal(s.errors, 0);
		}
		solo_exit(&s);
	}
}

static void no_receives(struct rc_qp_config *c)
{
	c->recv_auto = false;
	c->recv_depth = 4;
	c->credits = true;
}

static void receiver_not_ready(void **state)
{
	(void)state;
	EACH_PERSONALITY(p) {
		struct solo s;

		solo_init(&s, p, no_receives);
		for (uint32_t i = 0; i < 4; i++)
			give_data(&s, OP_SEND_ONLY, EPSN + i, i, 0, 10, 0);
		assert_int_equal(s.sent[0].syndrome, 3); /* credits left, as codes */
		assert_int_equal(s.sent[3].syndrome, 0);
		s.n_read = s.n_sent;
		give_data(&s, OP_SEND_FIRST, EPSN + 4, 4, 0, MTU, 0);
		expect_answer(&s, 0x20 | 12, EPSN + 4, 4);
		give_data(&s, OP_SEND_LAST, EPSN + 5, 4, MTU, 10, 0);
		if (p == RC_PERMISSIVE)
			expect_answer(&s, AETH_NAK_SEQ, EPSN + 4, 4);
		expect_silence(&s);
		rc_qp_post_recv(s.qp, s.now, 1);
		give_data(&s, OP_SEND_FIRST, EPSN + 4, 4, 0, MTU, 0);
		give_data(&s, OP_SEND_LAST, EPSN + 5, 4, MTU, 10, 0);
		assert_int_equal(s.n_got, 5);
		assert_true(s.got[4].intact);
		assert_int_equal(s.got[4].length, MTU + 10);
		/* A WRITE needs none, one with immediate data does. */
		give_data(&s, OP_WRITE_ONLY, EPSN + 6, 5, 0, 10, 10);
		assert_int_equal(s.n_got, 6);
		solo_exit(&s);
	}
}

static void coalesced(struct rc_qp_config *c)
{
	c->ack_coalesce = 3;
	c->ack_delay = 1000000;
}

static void acks_coalesce(void **state)
{
	struct solo s;

	(void)state;
	solo_init(&s, RC_STRICT, coalesced);
	give_data(&s, OP_SEND_ONLY, EPSN, 0, 0, 10, 0);
	give_data(&s, OP_SEND_ONLY, EPSN + 1, 1, 0, 10, 0);
	expect_silence(&s);
	give_data(&s, OP_SEND_ONLY, EPSN + 2, 2, 0, 10, 0);
	expect_answer(&s, 0x1f, EPSN + 2, 3);
	give_data(&s, OP_SEND_ONLY, EPSN + 3, 3, 0, 10, 0);
	expect_silence(&s);
	assert_int_equal(rc_host_next(s.host), MS);
	later(&s, MS);
	expect_answer(&s, 0x1f, EPSN + 3, 4);
	solo_exit(&s);
}

static void damaged_is_ignored(void **state)
{
	struct rc_frame_spec spec = {.opcode = OP_SEND_ONLY, .psn = EPSN, .payload_len = 64};
	uint8_t out[FRAME_MAX];
	struct solo s;
	uint32_t at, crc, len;

	(void)state;
	solo_init(&s, RC_STRICT, NULL);
	spec.dqpn = s.peer.rqpn;
	at = rc_frame_head(out, &s.header, &spec, &crc);
	memset(out + at, 1, 64);
	len = rc_frame_tail(out, at, 64, crc32_update(crc, out + at, 64));
	for (uint32_t i = at; i < len; i++) {
		out[i] ^= 0x10;
		rc_host_rx(s.host, 0, out, len);
		out[i] ^= 0x10;
	}
	rc_host_poll(s.host, 0, 100);
	assert_int_equal(s.n_got, 0);
	assert_int_equal(s.n_sent, 0);
	assert_int_equal(rc_host_stats(s.host)->rx_bad_icrc, len - at);
	/* Nor is a frame for another address. */
	s.header.hdr[s.header.l3 + 15] ^= 1;
	s.header.ip_sum ^= 1;
	give_data(&s, OP_SEND_ONLY, EPSN, 0, 0, 10, 0);
	assert_int_equal(rc_host_stats(s.host)->rx_wrong_address, 1);
	solo_exit(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ack_below_window),
		cmocka_unit_test(ack_beyond_sent),
		cmocka_unit_test(ack_past_pending_read),
		cmocka_unit_test(bare_ack_on_read),
		cmocka_unit_test(response_before_its_read),
		cmocka_unit_test(response_with_wrong_opcode),
		cmocka_unit_test(nak_with_nothing_outstanding),
		cmocka_unit_test(sequence_nak_goes_back),
		cmocka_unit_test(rnr_waits_by_the_table),
		cmocka_unit_test(rnr_budget),
		cmocka_unit_test(fatal_naks),
		cmocka_unit_test(read_resumes_where_it_broke),
		cmocka_unit_test(window_of_soft_roce),
		cmocka_unit_test(sixteen_reads),
		cmocka_unit_test(resends_at_2_4_8_16),
		cmocka_unit_test(gap_is_reported_once),
		cmocka_unit_test(duplicates_are_not_executed),
		cmocka_unit_test(duplicate_reads),
		cmocka_unit_test(duplicate_atomic),
		cmocka_unit_test(refusals),
		cmocka_unit_test(too_many_reads),
		cmocka_unit_test(receiver_not_ready),
		cmocka_unit_test(acks_coalesce),
		cmocka_unit_test(damaged_is_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
