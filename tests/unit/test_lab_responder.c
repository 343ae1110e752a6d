// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The rows of the table "How responders react", one by one, for both personalities.
 */
#include "tests/unit/lab_solo.h"

static void gap_is_reported_once(void **state)
{
	(void)state;
	EACH_PERSONALITY(p)
	{
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
	EACH_PERSONALITY(p)
	{
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
		assert_int_equal(
			pattern_check(rc_qp_memory(s.qp), pattern_key(s.peer.tx_seed, 1), 0, 10),
			10);
		solo_exit(&s);
	}
}

static void duplicate_reads(void **state)
{
	(void)state;
	EACH_PERSONALITY(p)
	{
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
	EACH_PERSONALITY(p)
	{
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
	EACH_PERSONALITY(p)
	{
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
	EACH_PERSONALITY(p)
	{
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
	EACH_PERSONALITY(p)
	{
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
