// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Messages of the peer protocol whose fields cannot be true: the encoder does not write them, and
 * the decoder does not take them.
 */
#include "tests/unit/proto_samples.h"

#define REFUSED(r) assert_int_equal(proto_put_report(buf, sizeof(buf), &(r)), -EINVAL)

static void bad_reports(void **state)
{
	static const uint32_t mtus[] = {1, 255, 257, 1500, 4095, 4097, 8192, 65536, 65536 + 256};
	uint8_t buf[PROTO_REPORT_MAX];
	struct report r;

	(void)state;
	r = sample_open();
	r.key.dqpn = 0x1000000;
	REFUSED(r);
	r = sample_open();
	r.key.vlan = 0x1000;
	REFUSED(r);
	r = sample_open();
	r.key.vlan = 0xfffe;
	REFUSED(r);
	r = sample_open();
	r.key.dst = v6(1); /* the two ends of a packet are of one family */
	REFUSED(r);
	r = sample_open();
	r.lqpn = PSN_NONE;
	REFUSED(r);
	r = sample_open();
	r.start_psn = PSN_NONE;
	REFUSED(r);
	r = sample_open();
	r.start_msn = 0x1000000;
	REFUSED(r);
	r = sample_open();
	r.policy = POLICIES;
	REFUSED(r);
	for (unsigned int i = 0; i < sizeof(mtus) / sizeof(mtus[0]); i++) {
		r = sample_open();
		r.path_mtu = mtus[i];
		REFUSED(r);
	}
	r = sample_close();
	r.reason = REASONS;
	REFUSED(r);
	r = (struct report){.type = REPORT_REFUSE, .reason = REASONS};
	REFUSED(r);
	r = (struct report){.type = 0};
	REFUSED(r);
	r.type = REPORT_AHEAD + 1;
	REFUSED(r);
	r = sample_open();
	r.ordered = true;
	r.clear = PSN_NONE;
	REFUSED(r);
	r = sample_order();
	r.order[3].kind = ORDER_KINDS;
	REFUSED(r);
	r = sample_order();
	r.order[0].kind = 0;
	REFUSED(r);
	r = sample_order();
	r.norder = REPORT_ORDER_RECS + 1;
	REFUSED(r);
	r = sample_order();
	r.by_opener = false; /* who answers has no records */
	REFUSED(r);
	r = sample_order();
	r.again_all = true;
	REFUSED(r);
}

static void bad_ahead(void **state)
{
	uint8_t buf[PROTO_REPORT_MAX];
	struct report r;

	(void)state;
#define AHEAD_WITH(field, value)                                                                   \
	do {                                                                                       \
		r = sample_ahead();                                                                \
		r.reads.field = value;                                                             \
		REFUSED(r);                                                                        \
	} while (0)
	AHEAD_WITH(psn, 0x1000000);
	AHEAD_WITH(end, PSN_NONE);
	AHEAD_WITH(count, 0);
	AHEAD_WITH(count, REPORT_READS + 1);
	AHEAD_WITH(count, REPORT_READS - 1); /* not as many PSNs for each */
	AHEAD_WITH(length, 0);
	AHEAD_WITH(end, r.reads.psn);
	AHEAD_WITH(end, psn_add(r.reads.psn, 1u << 23)); /* beyond comparison */
	AHEAD_WITH(end, psn_add(r.reads.end, 1));
#undef AHEAD_WITH
}

static void bad_progress(void **state)
{
	static const uint8_t credits[] = {0x20, 0x60, 0x80, 0xfe};
	static const uint8_t refusals[] = {0x01, 0x1f, 0x20, 0x60, 0x80, 0xe1, 0xff};
	uint8_t buf[PROTO_REPORT_MAX];
	struct report r;

	(void)state;
#define PROGRESS_WITH(field, value)                                                                \
	do {                                                                                       \
		r = sample_progress(4);                                                            \
		r.field = (value);                                                                 \
		REFUSED(r);                                                                        \
	} while (0)
	PROGRESS_WITH(cum, PSN_NONE);
	PROGRESS_WITH(room, 0x1000000);
	PROGRESS_WITH(una, PSN_NONE);
	PROGRESS_WITH(una_msn, 0x1000000);
	PROGRESS_WITH(hi, 0x1000000);
	PROGRESS_WITH(refusal_psn, 0x1000000);
	PROGRESS_WITH(hi, psn_sub(r.cum, 1));	     /* before cum */
	PROGRESS_WITH(hi, psn_add(r.cum, 1u << 23)); /* beyond comparison */
	PROGRESS_WITH(nholes, REPORT_HOLES + 1);
	PROGRESS_WITH(hole[2].from, 0x1000000);
	PROGRESS_WITH(hole[2].end, PSN_NONE);
	PROGRESS_WITH(hole[2].end, r.hole[2].from); /* empty */
	PROGRESS_WITH(hole[2].from, r.hole[2].end); /* empty */
	PROGRESS_WITH(hole[0].from, psn_sub(r.cum, 1));
	PROGRESS_WITH(hole[3].end, psn_add(r.hi, 1)); /* beyond what was received */
	for (unsigned int i = 0; i < sizeof(credits); i++)
		PROGRESS_WITH(credit, credits[i]);
	for (unsigned int i = 0; i < sizeof(refusals); i++)
		PROGRESS_WITH(refusal, refusals[i]);
	PROGRESS_WITH(reason, REASONS);
	PROGRESS_WITH(nagain, REPORT_AGAIN + 1);
	r = sample_progress(4);
	r.nagain = 2;
	r.again[1] = PSN_NONE;
	REFUSED(r);
#undef PROGRESS_WITH

	/* Nothing missing, but a hole. */
	r = sample_progress(1);
	r.hi = r.cum;
	REFUSED(r);
}

/* The same on the wire: a hostile sender writes what our encoder refuses to. */
static void bad_on_the_wire(void **state)
{
	struct proto_message m;
	uint8_t buf[2048];
	struct report r = sample_progress(2);
	int n = proto_put_report(buf, sizeof(buf), &r);
	uint8_t *body = buf + PROTO_HDR;

	(void)state;
	/* The count of holes does not fit the length, or the table. */
	for (unsigned int c = 0; c < 256; c++) {
		body[33] = (uint8_t)c;
		assert_int_equal(first(buf, (size_t)n, &m), c == 2 ? PROTO_OK : PROTO_MALFORMED);
	}
	/* The same for what is to be sent again; without any the flag must not be set. */
	r.nagain = 3;
	n = proto_put_report(buf, sizeof(buf), &r);
	for (unsigned int c = 0; c < 256; c++) {
		body[34 + 2 * 6] = (uint8_t)c;
		assert_int_equal(first(buf, (size_t)n, &m), c == 3 ? PROTO_OK : PROTO_MALFORMED);
	}
	memset(buf, 0, sizeof(buf));
	buf[0] = PROTO_LANE_PROGRESS;
	buf[2] = (34 + 6 * 65) >> 8;
	buf[3] = (uint8_t)(34 + 6 * 65);
	body[20] = 0x0f;
	body[33] = 65;
	assert_int_equal(first(buf, PROTO_HDR + 34 + 6 * 65, &m), PROTO_MALFORMED);

	for (unsigned int reason = 0; reason < 256; reason++) {
		uint8_t bye[] = {PROTO_BYE, 0, 0, 1, (uint8_t)reason};
		uint8_t refuse[] = {PROTO_LANE_REFUSE, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 1,
				    (uint8_t)reason};

		assert_int_equal(first(bye, sizeof(bye), &m),
				 reason && reason < BYE_REASONS ? PROTO_OK : PROTO_MALFORMED);
		assert_int_equal(first(refuse, sizeof(refuse), &m),
				 reason < REASONS ? PROTO_OK : PROTO_MALFORMED);
	}
}

static void bad_hello(void **state)
{
	static const char *const names[] = {"", "a b", "a\n", "a/b", "\x1b[2J", "t\xc3\xb6", "a%s"};
	uint8_t buf[PROTO_HELLO_MAX + 8];
	struct proto_message m;
	struct proto_hello h;
	int n;

	(void)state;
	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		h = sample_hello();
		memset(h.name, 0, sizeof(h.name));
		strcpy(h.name, names[i]);
		assert_int_equal(proto_put_hello(buf, sizeof(buf), &h), -EINVAL);
	}
	h = sample_hello();
	memset(h.name, 'a', sizeof(h.name)); /* no end */
	assert_int_equal(proto_put_hello(buf, sizeof(buf), &h), -EINVAL);
	h = sample_hello();
	h.boot = 0;
	assert_int_equal(proto_put_hello(buf, sizeof(buf), &h), -EINVAL);
	h = sample_hello();
	h.version = 0;
	assert_int_equal(proto_put_hello(buf, sizeof(buf), &h), -EINVAL);
	h = sample_hello();
	h.nprefix = PROTO_PREFIXES + 1;
	assert_int_equal(proto_put_hello(buf, sizeof(buf), &h), -EINVAL);
	h = sample_hello();
	h.prefix[0].len = 129;
	assert_int_equal(proto_put_hello(buf, sizeof(buf), &h), -EINVAL);
	for (unsigned int bit = 120; bit < 128; bit++) { /* a /24: its host part must be zero */
		h = sample_hello();
		h.prefix[0].addr.b[bit / 8] |= (uint8_t)(0x80 >> (bit % 8));
		assert_int_equal(proto_put_hello(buf, sizeof(buf), &h), -EINVAL);
	}
	h = sample_hello();
	h.prefix[0].len = 121;
	h.prefix[0].addr.b[15] = 0x80;
	assert_true(proto_put_hello(buf, sizeof(buf), &h) > 0);
	h.prefix[0].addr.b[15] = 0x40;
	assert_int_equal(proto_put_hello(buf, sizeof(buf), &h), -EINVAL);

	/* A zero byte inside a name, and lengths that lie about name and prefixes. */
	h = sample_hello();
	n = proto_put_hello(buf, sizeof(buf), &h);
	buf[PROTO_HDR + 19 + 3] = 0;
	assert_int_equal(first(buf, (size_t)n, &m), PROTO_MALFORMED);
	n = proto_put_hello(buf, sizeof(buf), &h);
	for (unsigned int c = 0; c < 256; c++) {
		buf[PROTO_HDR + 17] = (uint8_t)c;
		assert_int_equal(first(buf, (size_t)n, &m),
				 c == strlen(h.name) ? PROTO_OK : PROTO_MALFORMED);
	}
	/* The name, and nothing behind the fixed part. */
	buf[2] = 0;
	buf[3] = 19;
	buf[PROTO_HDR + 17] = PROTO_NAME - 1;
	assert_int_equal(first(buf, PROTO_HDR + 19, &m), PROTO_MALFORMED);
	n = proto_put_hello(buf, sizeof(buf), &h);
	for (unsigned int c = 0; c < 256; c++) {
		buf[PROTO_HDR + 18] = (uint8_t)c;
		assert_int_equal(first(buf, (size_t)n, &m),
				 c == h.nprefix ? PROTO_OK : PROTO_MALFORMED);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_reports),	cmocka_unit_test(bad_ahead),
		cmocka_unit_test(bad_progress), cmocka_unit_test(bad_on_the_wire),
		cmocka_unit_test(bad_hello),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
