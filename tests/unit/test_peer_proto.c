// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Messages of the peer protocol: what goes in comes out, and bytes that are no message do not come
 * in.
 */
#include "tests/unit/proto_encode.h"
#include "tests/unit/proto_samples.h"

static uint64_t rng = 0x9e3779b97f4a7c15;

static uint32_t rnd(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (uint32_t)(rng >> 16);
}

/* One message of every type, in turn; 0 when @i is past the last. */
static int sample(unsigned int i, uint8_t *buf, size_t room)
{
	struct proto_challenge c = {.seek = true};
	struct proto_heartbeat hb = {.sent = 1, .echo = UINT64_MAX, .held_us = 0x01020304};
	struct proto_hello h = sample_hello();
	struct report r = {.type = REPORT_ACCEPT, .lane = 1, .gen = 2};

	switch (i) {
	case 0:
		memset(c.salt, 0xa5, sizeof(c.salt));
		memset(c.echo, 0x5a, sizeof(c.echo));
		return proto_put_challenge(buf, room, &c);
	case 1:
		return proto_put_hello(buf, room, &h);
	case 2:
		return proto_put_heartbeat(buf, room, &hb);
	case 3:
		return proto_put_bye(buf, room, BYE_REMOVED);
	case 4:
		r = sample_open();
		break;
	case 5:
		break;
	case 6:
		r.type = REPORT_REFUSE;
		r.reason = REASON_ONE_WAY;
		break;
	case 7:
		r = sample_progress(0);
		break;
	case 8:
		r = sample_progress(REPORT_HOLES);
		break;
	case 9:
		r = sample_close();
		break;
	case 10:
		r = sample_open();
		r.ordered = true;
		r.log = 1023;
		r.birth = 0x89abcdef;
		r.clear = 0xffffff;
		break;
	case 11:
		r = sample_order();
		break;
	case 12:
		r = (struct report){.type = REPORT_ORDER, .seq = 9, .base = 7, .step_us = 50};
		r.again_all = true;
		break;
	case 13:
		r = sample_meter();
		break;
	case 14:
		r = sample_open();
		r.sealed = true;
		r.seal_key[0] = 0x0123456789abcdef;
		r.seal_key[1] = 0xfedcba9876543210;
		break;
	case 15:
		r = sample_answers();
		break;
	case 16:
		r = sample_meter_by_box();
		break;
	case 17:
		return proto_put_site(
			buf, room,
			&(struct proto_site){.mtu = {4300, 1500},
					     .longest = 4156,
					     .down = {true, false},
					     .more = true,
					     .nwanted = 2,
					     .wanted = {{.addr = v4(0), .len = 96 + 24},
							{.addr = v6(0), .len = 64}}});
	case 18:
		r = sample_ahead();
		break;
	case 19:
		return proto_put_probe(buf, room,
				       &(struct proto_probe){.number = 0xfedcba98,
							     .size = 576,
							     .carried = 1500,
							     .refused = 1501,
							     .longest = 4156,
							     .padding = 300,
							     .last = true});
	case 20:
		return proto_put_probed(
			buf, room, &(struct proto_probed){.number = 1, .size = 4188, .last = true});
	default:
		return 0;
	}
	return proto_put_report(buf, room, &r);
}

/* What any sequence of bytes must obey: the loop ends, and what is accepted is what its encoder
 * writes. */
static unsigned int walk(const uint8_t *data, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1), again[2048];
	unsigned int accepted = 0;
	struct proto_message m;
	enum proto_verdict v;
	size_t pos = 0, before = 0;

	assert_non_null(copy);
	memcpy(copy, data, len);
	while ((v = proto_next(copy, len, &pos, &m)) != PROTO_END && v != PROTO_BROKEN) {
		assert_true(pos > before && pos <= len);
		if (v == PROTO_OK) {
			int n = proto_encode(again, sizeof(again), &m);

			assert_int_equal(n, pos - before);
			if (m.type == PROTO_LANE_OPEN)
				copy[before + 1] &= (uint8_t)~0x14; /* of old versions */
			assert_memory_equal(again, copy + before, n);
			accepted++;
		}
		before = pos;
	}
	free(copy);
	return accepted;
}

/* ---- tests ---- */

static void round_trip_hello(void **state)
{
	struct proto_hello h = sample_hello();
	struct proto_message m;
	uint8_t buf[PROTO_HELLO_MAX];
	int n = proto_put_hello(buf, sizeof(buf), &h);

	(void)state;
	assert_true(n > 0);
	assert_int_equal(first(buf, (size_t)n, &m), PROTO_OK);
	assert_int_equal(m.type, PROTO_HELLO);
	assert_int_equal(m.hello.version, h.version);
	assert_true(m.hello.boot == h.boot);
	assert_int_equal(m.hello.features, h.features);
	assert_int_equal(m.hello.window, h.window);
	assert_string_equal(m.hello.name, h.name);
	assert_int_equal(m.hello.nprefix, h.nprefix);
	assert_true(m.hello.more);
	for (unsigned int i = 0; i < h.nprefix; i++) {
		assert_int_equal(m.hello.prefix[i].len, h.prefix[i].len);
		assert_memory_equal(&m.hello.prefix[i].addr, &h.prefix[i].addr, 16);
	}

	/* The longest one fills its buffer to the byte. */
	h.nprefix = PROTO_PREFIXES;
	memset(h.name, 'x', PROTO_NAME - 1);
	assert_int_equal(proto_put_hello(buf, sizeof(buf), &h), PROTO_HELLO_MAX);
}

static void round_trip_small(void **state)
{
	struct proto_challenge c = {.established = true};
	struct proto_heartbeat hb = {.sent = 0x1122334455667788, .echo = 42, .held_us = 0xfffffffe};
	struct proto_message m;
	uint8_t buf[128];
	int n;

	(void)state;
	for (unsigned int i = 0; i < PROTO_SALT; i++) {
		c.salt[i] = (uint8_t)i;
		c.echo[i] = (uint8_t)(255 - i);
	}
	n = proto_put_challenge(buf, sizeof(buf), &c);
	assert_int_equal(first(buf, (size_t)n, &m), PROTO_OK);
	assert_int_equal(m.type, PROTO_CHALLENGE);
	assert_memory_equal(m.challenge.salt, c.salt, PROTO_SALT);
	assert_memory_equal(m.challenge.echo, c.echo, PROTO_SALT);
	assert_false(m.challenge.seek);
	assert_true(m.challenge.established);

	n = proto_put_heartbeat(buf, sizeof(buf), &hb);
	assert_int_equal(first(buf, (size_t)n, &m), PROTO_OK);
	assert_int_equal(m.type, PROTO_HEARTBEAT);
	assert_true(m.heartbeat.sent == hb.sent);
	assert_true(m.heartbeat.echo == hb.echo);
	assert_int_equal(m.heartbeat.held_us, hb.held_us);

	n = proto_put_bye(buf, sizeof(buf), BYE_SHUTDOWN);
	assert_int_equal(first(buf, (size_t)n, &m), PROTO_OK);
	assert_int_equal(m.type, PROTO_BYE);
	assert_int_equal(m.bye, BYE_SHUTDOWN);
}

static void same_open(const struct report *g, const struct report *r)
{
	assert_int_equal(g->lqpn, r->lqpn);
	assert_int_equal(g->start_psn, r->start_psn);
	assert_int_equal(g->start_msn, r->start_msn);
	assert_int_equal(g->path_mtu, r->path_mtu);
	assert_int_equal(g->policy, r->policy);
	assert_int_equal(g->resume, r->resume);
	assert_int_equal(g->one_read, r->one_read);
	assert_int_equal(g->own, r->own);
	assert_int_equal(g->sealed, r->sealed);
	assert_true(g->seal_key[0] == r->seal_key[0]);
	assert_true(g->seal_key[1] == r->seal_key[1]);
	assert_int_equal(g->offer, r->offer);
	assert_int_equal(g->counted, r->counted);
	assert_int_equal(g->ordered, r->ordered);
	assert_int_equal(g->log, r->log);
	assert_int_equal(g->birth, r->birth);
	assert_int_equal(g->clear, r->clear);
}

static void same_order(const struct report *g, const struct report *r)
{
	assert_int_equal(g->base, r->base);
	assert_int_equal(g->step_us, r->step_us);
	assert_int_equal(g->again_all, r->again_all);
	assert_int_equal(g->norder, r->norder);
	for (unsigned int i = 0; i < r->norder; i++) {
		assert_int_equal(g->order[i].lane, r->order[i].lane);
		assert_int_equal(g->order[i].birth, r->order[i].birth);
		assert_int_equal(g->order[i].psn, r->order[i].psn);
		assert_int_equal(g->order[i].kind, r->order[i].kind);
	}
}

static void same_reads(const struct read_series *g, const struct read_series *s)
{
	assert_true(g->va == s->va);
	assert_true(g->step == s->step);
	assert_int_equal(g->rkey, s->rkey);
	assert_int_equal(g->length, s->length);
	assert_int_equal(g->psn, s->psn);
	assert_int_equal(g->end, s->end);
	assert_int_equal(g->count, s->count);
}

static void round_trip_report(const struct report *r, enum proto_type type)
{
	struct proto_message m;
	uint8_t buf[PROTO_REPORT_MAX];
	int n = proto_put_report(buf, sizeof(buf), r);
	const struct report *g = &m.report;

	assert_true(n > 0);
	assert_int_equal(first(buf, (size_t)n, &m), PROTO_OK);
	assert_int_equal(m.type, type);
	assert_int_equal(g->type, r->type);
	assert_int_equal(g->lane, r->lane);
	assert_int_equal(g->gen, r->gen);
	assert_memory_equal(&g->key, &r->key, sizeof(g->key));
	same_open(g, r);
	same_order(g, r);
	same_reads(&g->reads, &r->reads);
	assert_int_equal(g->bypassed, r->bypassed);
	assert_int_equal(g->by_opener, r->by_opener);
	assert_int_equal(g->reason, r->reason);
	assert_int_equal(g->cum, r->cum);
	assert_int_equal(g->room, r->room);
	assert_int_equal(g->una, r->una);
	assert_int_equal(g->una_msn, r->una_msn);
	assert_int_equal(g->credit, r->credit);
	assert_int_equal(g->refusal, r->refusal);
	assert_int_equal(g->refusal_psn, r->refusal_psn);
	assert_int_equal(g->una_ackable, r->una_ackable);
	assert_int_equal(g->seq, r->seq);
	assert_int_equal(g->hi, r->hi);
	assert_int_equal(g->latest, r->latest);
	assert_int_equal(g->depth, r->depth);
	assert_int_equal(g->announce, r->announce);
	assert_true(g->announce_key[0] == r->announce_key[0]);
	assert_true(g->announce_key[1] == r->announce_key[1]);
	assert_int_equal(g->announced, r->announced);
	assert_int_equal(g->differs, r->differs);
	assert_int_equal(g->resp_seq, r->resp_seq);
	assert_int_equal(g->nagain, r->nagain);
	assert_memory_equal(g->again, r->again, sizeof(g->again));
	assert_int_equal(g->nholes, r->nholes);
	assert_memory_equal(g->hole, r->hole, sizeof(g->hole));
	assert_memory_equal(&g->meter, &r->meter, sizeof(g->meter));
}

static void round_trip_open(void)
{
	struct report r = sample_open();

	round_trip_report(&r, PROTO_LANE_OPEN);
	r.resume = false;
	round_trip_report(&r, PROTO_LANE_OPEN);
	r.sealed = true;
	r.seal_key[0] = 0x0123456789abcdef;
	r.seal_key[1] = 0xfedcba9876543210;
	round_trip_report(&r, PROTO_LANE_OPEN);
	r.one_read = false;
	r.path_mtu = 0;
	r.key.vlan = FRAME_VLAN_NONE;
	round_trip_report(&r, PROTO_LANE_OPEN);

	r.ordered = true;
	r.log = 1023;
	r.birth = 0x89abcdef;
	r.clear = 0xfffffe;
	round_trip_report(&r, PROTO_LANE_OPEN);
	r.offer = true; /* it only wants that: there is no key yet */
	r.seal_key[0] = r.seal_key[1] = 0;
	round_trip_report(&r, PROTO_LANE_OPEN);
	r.counted = true; /* nor a lane that could be resumed */
	round_trip_report(&r, PROTO_LANE_OPEN);
}

static void round_trip_progress(void)
{
	struct report r;

	for (unsigned int n = 0; n <= REPORT_HOLES; n++) {
		r = sample_progress(n);
		round_trip_report(&r, PROTO_LANE_PROGRESS);
	}
	for (unsigned int n = 1; n <= REPORT_AGAIN; n++) {
		r.again[n - 1] = psn_add(0xfffffe, n);
		r.nagain = (uint8_t)n;
		round_trip_report(&r, PROTO_LANE_PROGRESS);
	}
	r.bypassed = r.repaired = true;
	round_trip_report(&r, PROTO_LANE_PROGRESS);
	r.bypassed = r.repaired = false;
	r.nagain = 0;
	memset(r.again, 0, sizeof(r.again));
	r.refusal = 0;
	r.refusal_psn = 0;
	r.reason = REASON_NONE;
	r.una_ackable = false;
	r.credit = 0xff;
	round_trip_report(&r, PROTO_LANE_PROGRESS);

	r.announced = true;
	r.resp_seq = 0x89abcdef;
	round_trip_report(&r, PROTO_LANE_PROGRESS);
	r.differs = true;
	round_trip_report(&r, PROTO_LANE_PROGRESS);
}

static void round_trip_reports(void **state)
{
	struct report r;

	(void)state;
	round_trip_open();
	round_trip_progress();
	r = sample_meter();
	round_trip_report(&r, PROTO_METER);
	r = sample_meter_by_box();
	round_trip_report(&r, PROTO_METER);

	r = sample_order();
	round_trip_report(&r, PROTO_LANE_ORDER);
	r = (struct report){.type = REPORT_ORDER, .seq = 9, .base = 7, .step_us = 50};
	round_trip_report(&r, PROTO_LANE_ORDER);
	r.again_all = true;
	round_trip_report(&r, PROTO_LANE_ORDER);

	r = sample_ahead();
	round_trip_report(&r, PROTO_LANE_AHEAD);

	r = sample_answers();
	round_trip_report(&r, PROTO_LANE_ANSWERS);
	r.announce = true;
	r.announce_key[0] = 0x0123456789abcdef;
	r.announce_key[1] = 0xfedcba9876543210;
	round_trip_report(&r, PROTO_LANE_ANSWERS);

	r = (struct report){.type = REPORT_ACCEPT, .lane = 0x01020304, .gen = 0x05060708};
	round_trip_report(&r, PROTO_LANE_ACCEPT);

	for (unsigned int reason = 0; reason < REASONS; reason++) {
		r = (struct report){.type = REPORT_REFUSE, .lane = 1, .reason = (uint8_t)reason};
		round_trip_report(&r, PROTO_LANE_REFUSE);
	}

	r = sample_close();
	round_trip_report(&r, PROTO_LANE_CLOSE);
	r.by_opener = false;
	round_trip_report(&r, PROTO_LANE_CLOSE);
}

/* Cut short anywhere, with the outer length left as it was or made to fit: never accepted. */
static void truncation(void **state)
{
	uint8_t buf[2048];
	struct proto_message m;
	int n;

	(void)state;
	for (unsigned int i = 0; (n = sample(i, buf, sizeof(buf))) != 0; i++) {
		assert_true(n > 0);
		assert_int_equal(first(buf, 0, &m), PROTO_END);
		for (int len = 1; len < n; len++) {
			uint8_t cut[2048];

			assert_int_equal(first(buf, (size_t)len, &m), PROTO_BROKEN);
			if (len < PROTO_HDR)
				continue;
			memcpy(cut, buf, (size_t)len);
			cut[2] = (uint8_t)((len - PROTO_HDR) >> 8);
			cut[3] = (uint8_t)(len - PROTO_HDR);
			assert_int_equal(first(cut, (size_t)len, &m), PROTO_MALFORMED);
		}
		/* One byte too many inside the message. */
		buf[n] = 0;
		buf[2] = (uint8_t)((n + 1 - PROTO_HDR) >> 8);
		buf[3] = (uint8_t)(n + 1 - PROTO_HDR);
		assert_int_equal(first(buf, (size_t)n + 1, &m), PROTO_MALFORMED);
	}
}

/* Into every buffer that is too small: an error, and not a byte beyond it. */
static void no_room(void **state)
{
	uint8_t whole[2048];
	int n;

	(void)state;
	for (unsigned int i = 0; (n = sample(i, whole, sizeof(whole))) != 0; i++) {
		for (int room = 0; room < n; room++) {
			uint8_t *buf = malloc(room ? (size_t)room : 1);

			assert_non_null(buf);
			assert_int_equal(sample(i, buf, (size_t)room), -ENOSPC);
			free(buf);
		}
		uint8_t *buf = malloc((size_t)n);

		assert_non_null(buf);
		assert_int_equal(sample(i, buf, (size_t)n), n);
		assert_memory_equal(buf, whole, n);
		free(buf);
	}
}

static void sequence(void **state)
{
	uint8_t buf[8192];
	struct proto_message m;
	size_t len = 0, pos = 0;
	unsigned int seen = 0;
	enum proto_verdict v;
	int n;

	(void)state;
	for (unsigned int i = 0; (n = sample(i, buf + len, sizeof(buf) - len)) != 0; i++) {
		len += (size_t)n;
		/* After each a stranger, with a body and without, and a broken one of a known type.
		 */
		memcpy(buf + len, "\xc8\xff\x00\x05hello\x00\x00\x00\x00", 13);
		len += 13;
		memcpy(buf + len, "\x04\x00\x00\x01\xee", 5);
		len += 5;
	}
	assert_int_equal(walk(buf, len), 21);
	while ((v = proto_next(buf, len, &pos, &m)) != PROTO_END) {
		static const enum proto_verdict want[] = {PROTO_OK, PROTO_UNKNOWN, PROTO_UNKNOWN,
							  PROTO_MALFORMED};

		assert_int_equal(v, want[seen++ % 4]);
	}
	assert_int_equal(seen, 84);
	assert_int_equal(pos, len);
}

static void unknown_flags(void **state)
{
	static const uint8_t known[] = {0x03, 0x01, 0,	  0,	0xb7, 0,    0,
					0x61, 0x61, 0x01, 0xbf, 0x01, 0x02, 0,
					0xd7, 0,    0x01, 0x01, 0,    0x01, 0x01};
	uint8_t buf[2048];
	struct proto_message m;
	int n;

	(void)state;
	for (unsigned int i = 0; (n = sample(i, buf, sizeof(buf))) != 0; i++) {
		uint8_t flags = buf[1];

		for (unsigned int bit = 0; bit < 8; bit++) {
			buf[1] = (uint8_t)(flags | 1u << bit);
			if (known[i] >> bit & 1)
				continue;
			assert_int_equal(first(buf, (size_t)n, &m), PROTO_MALFORMED);
		}
	}
	n = sample(0, buf, sizeof(buf));
	buf[1] = 0x03; /* seek and established together */
	assert_int_equal(first(buf, (size_t)n, &m), PROTO_MALFORMED);
}

/* Random bytes, and good messages with some bytes changed. */
static void noise(void **state)
{
	uint8_t buf[2048];
	unsigned int accepted = 0;

	(void)state;
	for (unsigned int round = 0; round < 20000; round++) {
		size_t len = rnd() % 600;

		for (size_t i = 0; i < len; i++)
			buf[i] = (uint8_t)rnd();
		/* Types that exist and lengths that fit get further in. */
		if (len >= 4 && round % 2) {
			buf[0] = (uint8_t)(1 + rnd() % 20);
			buf[1] &= 1;
			buf[2] = (uint8_t)((len - 4) >> 8);
			buf[3] = (uint8_t)(len - 4);
		}
		walk(buf, len);
	}
	for (unsigned int round = 0; round < 50000; round++) {
		size_t len = 0;

		for (unsigned int i = rnd() % 4 + 1; i; i--)
			len += (size_t)sample(rnd() % 10, buf + len, sizeof(buf) - len);
		for (unsigned int i = rnd() % 4; i; i--)
			buf[rnd() % len] = (uint8_t)rnd();
		accepted += walk(buf, len);
	}
	assert_true(accepted > 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip_hello),
		cmocka_unit_test(round_trip_small),
		cmocka_unit_test(round_trip_reports),
		cmocka_unit_test(truncation),
		cmocka_unit_test(no_room),
		cmocka_unit_test(sequence),
		cmocka_unit_test(unknown_flags),
		cmocka_unit_test(noise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
