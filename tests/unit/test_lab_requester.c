// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The rows of the table "How requesters react", one by one, for both personalities.
 */
#include "tests/unit/lab_solo.h"

static void ack_below_window(void **state)
{
	(void)state;
	EACH_PERSONALITY(p)
	{
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
	EACH_PERSONALITY(p)
	{
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
	EACH_PERSONALITY(p)
	{
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
	EACH_PERSONALITY(p)
	{
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
	EACH_PERSONALITY(p)
	{
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
	EACH_PERSONALITY(p)
	{
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
	EACH_PERSONALITY(p)
	{
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
	EACH_PERSONALITY(p)
	{
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
	EACH_PERSONALITY(p)
	{
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
	EACH_PERSONALITY(p)
	{
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
	static const enum rc_status want[] = {RC_REMOTE_INVALID, RC_REMOTE_ACCESS,
					      RC_REMOTE_OPERATION};

	(void)state;
	EACH_PERSONALITY(p)
	{
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
	EACH_PERSONALITY(p)
	{
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
