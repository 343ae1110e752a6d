/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For tests of the peer protocol: a good report of each kind, and a decoder that a sanitizer can
 * watch.
 */
#ifndef TESTS_UNIT_PROTO_SAMPLES_H
#define TESTS_UNIT_PROTO_SAMPLES_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "peer/proto.h"
#include "wire/frame.h"
#include "wire/psn.h"

/*
 * A field added to struct report must be said on the wire, or the peer never learns it:
 * proto_get.c, proto_put.c, these tests, doc/peer-protocol.md. A reason is sent as its number: new
 * ones go to the end, and into that text.
 */
_Static_assert(sizeof(struct report) == 1264, "struct report has changed: see above");
_Static_assert(REASON_PATH_MTU == 14, "the order of reasons has changed: see above");

static inline struct ip_addr v4(uint8_t last)
{
	struct ip_addr a = {{[10] = 0xff, [11] = 0xff, [12] = 10, [15] = last}};

	return a;
}

static inline struct ip_addr v6(uint8_t last)
{
	struct ip_addr a = {{0x20, 0x01, 0x0d, 0xb8, [15] = last}};

	return a;
}

static inline struct proto_hello sample_hello(void)
{
	struct proto_hello h = {
		.version = PROTO_VERSION,
		.boot = 0x0123456789abcdef,
		.features = 0x80000001,
		.window = 262144,
		.name = "tokyo-1.example",
		.nprefix = 3,
		.more = true,
		.prefix = {{.addr = v4(0), .len = 96 + 24}, {.addr = v6(0), .len = 64}, {.len = 0}},
	};

	return h;
}

static inline struct report sample_open(void)
{
	struct report r = {
		.type = REPORT_OPEN,
		.lane = 7,
		.gen = 0xdeadbeef,
		.key = {.src = v4(1), .dst = v4(2), .dqpn = 0x123456, .vlan = 4094},
		.lqpn = 0xffffff,
		.start_psn = 0xfffffe,
		.start_msn = 0x000001,
		.path_mtu = 4096,
		.policy = POLICY_HONEST,
		.resume = true,
		.one_read = true,
		.own = true,
	};

	return r;
}

static inline struct report sample_progress(unsigned int nholes)
{
	struct report r = {
		.type = REPORT_PROGRESS,
		.lane = 0xffffffff,
		.gen = 3,
		.seq = 0x80000000,
		.cum = 0xfffff0, /* the holes cross the wrap */
		.room = 0x010000,
		.una = 0xffffe0,
		.una_msn = 0xabcdef,
		.credit = 0x1f,
		.refusal = 0x62,
		.refusal_psn = 0xffffe0,
		.una_ackable = true,
		.reason = REASON_TIMEOUT,
		.hi = psn_add(0xfffff0, nholes * 3),
		.nholes = (uint8_t)nholes,
	};

	for (unsigned int i = 0; i < nholes; i++) {
		r.hole[i].from = psn_add(r.cum, i * 3);
		r.hole[i].end = psn_add(r.cum, i * 3 + 2);
	}
	return r;
}

static inline struct report sample_answers(void)
{
	struct report r = sample_progress(3);

	return (struct report){
		.type = REPORT_RESP,
		.lane = 11,
		.gen = 12,
		.key = {.src = v6(3), .dst = v6(4), .dqpn = 5, .vlan = 6},
		.seq = 0xfedcba98,
		.cum = r.cum,
		.hi = r.hi,
		.latest = 0xffffef,
		.depth = 0xfffe,
		.nholes = 3,
		.hole = {r.hole[0], r.hole[1], r.hole[2]},
	};
}

static inline struct report sample_close(void)
{
	struct report r = {
		.type = REPORT_CLOSE,
		.lane = 9,
		.gen = 10,
		.key = {.src = v6(1), .dst = v6(2), .dqpn = 2, .vlan = FRAME_VLAN_NONE},
		.reason = REASONS - 1,
		.by_opener = true,
	};

	return r;
}

static inline struct report sample_meter(void)
{
	struct report r = {
		.type = REPORT_METER,
		.meter = {.sent_at = 0x0102030405060708,
			  .sent = UINT64_MAX,
			  .echo_at = 1,
			  .echo_sent = 0x8000000000000000,
			  .got_at = 0xfffffffffffffffe,
			  .got = 42,
			  .packets = 0x1122334455667788,
			  .marked = 3,
			  .held_us = 0xfffffffe},
	};

	return r;
}

static inline struct report sample_meter_by_box(void)
{
	struct report r = sample_meter();

	r.meter.by_box = true;
	r.meter.waited_us = 0xfedcba98;
	r.meter.unread = 0x87654321;
	r.meter.early = 5;
	r.meter.overrun = 0x1020304050607080;
	return r;
}

static inline struct report sample_ahead(void)
{
	return (struct report){
		.type = REPORT_AHEAD,
		.lane = 11,
		.gen = 12,
		.reads = {.va = 0xfedcba9876543210,
			  .step = -(uint64_t)65536,
			  .rkey = 0x89abcdef,
			  .length = 65536,
			  .psn = 0xfffff0, /* they cross the wrap */
			  .end = psn_add(0xfffff0, REPORT_READS * 16),
			  .count = REPORT_READS},
	};
}

static inline struct report sample_order(void)
{
	struct report r = {.type = REPORT_ORDER, .by_opener = true, .lane = 1023, .gen = 4};

	r.seq = 0xfffffff0;
	r.base = 0xffffff00;
	for (r.norder = 0; r.norder < REPORT_ORDER_RECS; r.norder++)
		r.order[r.norder] =
			(struct order_rec){.lane = r.norder,
					   .birth = 0x80000000u + r.norder,
					   .psn = 0xffffe0 + r.norder,
					   .kind = r.norder % 2 ? ORDER_WAIT : ORDER_CLEAR};
	return r;
}

/* Decode a copy of exactly @len bytes, so that a sanitizer sees every read beyond them. */
static inline enum proto_verdict first(const uint8_t *data, size_t len, struct proto_message *m)
{
	uint8_t *copy = malloc(len ? len : 1);
	enum proto_verdict v;
	size_t pos = 0;

	assert_non_null(copy);
	memcpy(copy, data, len);
	v = proto_next(copy, len, &pos, m);
	assert_true(pos <= len);
	free(copy);
	return v;
}

#endif
