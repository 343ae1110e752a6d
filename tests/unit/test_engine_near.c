// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Toward the near requester, packet by packet: what is acknowledged, when, with which bytes, and
 * what is not. Behind the engine is a peer that says what the test lets it say.
 */
#include <unistd.h>

#include "engine/core/state.h"
#include "tests/unit/engine_rig.h"

#define HELD(policy) rig_held(NULL, 0, policy, RIG_MTU)
#define RETH	     "0000000000001000 00000007 %08x" /* va, rkey, length */

/* Sent on as it came, and acknowledged up to it at once. */
static void accepted(struct rig *r, const char *packet, uint32_t psn, uint32_t msn)
{
	rig_rx(r, NEAR, "%s", packet);
	rig_expect(r, PORT_WAN, "%s", packet);
	rig_expect(r, PORT_LAN, ACK_TO_NEAR, psn, msn);
	rig_quiet(r);
}

/* Sent on as it came, and not a word to the requester. */
static __attribute__((format(printf, 2, 3))) void unanswered(struct rig *r, const char *fmt, ...)
{
	char packet[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(packet, sizeof(packet), fmt, ap);
	va_end(ap);
	rig_rx(r, NEAR, "%s", packet);
	rig_expect(r, PORT_WAN, "%s", packet);
	rig_quiet(r);
}

/* NTT-1: the pseudo-ACK to the last byte: the responder's addresses, source port, TTL and P_Key,
 * the requester's QPN, MSN and credits, checksum and ICRC. */
static void test_pseudo_ack_bytes(void **state)
{
	struct rig *r = HELD(POLICY_EARLY);
	uint8_t want[128];
	uint32_t n = rig_hex(
		want, "020000000001 020000000002 080045 00 0030 0000 4000 40 11 26b9 0a020001 "
		      "0a010001c001 12b7 001c 000011 40ffff 00000011 000000061f 0000071bb15b41");
	struct rig_frame *f;

	(void)state;
	rig_rx(r, NEAR, SEND_ONLY("000006"));
	rig_expect(r, PORT_WAN, SEND_ONLY("000006"));
	f = rig_sent(r, PORT_LAN);
	assert_int_equal(f->len, n);
	assert_memory_equal(f->data, want, n);
	rig_quiet(r);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].custody.packets, 1);
	rig_destroy(r);
}

/* Who goes on after a crash tells the requester amid a message where to go back to; one whose
 * message has ended hears once more what is acknowledged. */
static void test_go_on(void **state)
{
	struct rig *r = HELD(POLICY_EARLY);

	(void)state;
	accepted(r, SEND_ONLY("000006"), 6, 7);
	engine_go_on(r->e, r->now);
	engine_tick(r->e, r->now);
	rig_expect(r, PORT_LAN, ACK_TO_NEAR, 6, 7);
	rig_quiet(r);
	unanswered(r, "00 40ffff 00000022 00000007 62*256");
	engine_go_on(r->e, r->now);
	engine_tick(r->e, r->now);
	rig_expect(r, PORT_LAN, "11 40ffff 00000011 00000008 60 000007"); /* sequence NAK */
	rig_quiet(r);
	rig_destroy(r);
}

/* A request from far away was dropped: the number may have another owner, and some hosts take an
 * ACK with a PSN that they have never sent for one of all that they have. So it is told nothing. */
static void test_go_on_of_another(void **state)
{
	struct rig *r = HELD(POLICY_EARLY);

	(void)state;
	accepted(r, SEND_ONLY("000006"), 6, 7);
	rig_progress(r, 7, 7, 7);
	rig_forget(r);
	rig_rx(r, NEAR, SEND_ONLY("a78350"));
	rig_quiet(r);
	engine_go_on(r->e, r->now);
	engine_tick(r->e, r->now);
	rig_quiet(r);
	rig_destroy(r);
}

/* Who goes on long afterwards tells nothing (still.c). A host that is still there repeats what it
 * waits for. */
static void test_go_on_late(void **state)
{
	char path[] = "/tmp/test_engine_near.XXXXXX";
	struct engine_config cfg = {.pool_bytes = 8 << 20, .max_conns = 16, .file = mkstemp(path)};
	struct rule rule = rig_rule(0, POLICY_EARLY, RIG_MTU);
	struct engine_sink sink;
	const char *why;
	uint64_t told;
	struct rig *r;

	(void)state;
	for (int amid = 0; amid < 2; amid++) {
		r = rig_held(&cfg, 0, POLICY_EARLY, RIG_MTU);
		accepted(r, SEND_ONLY("000006"), 6, 7);
		if (amid)
			unanswered(r, "00 40ffff 00000022 00000007 62*256");
		sink = r->e->sink;
		undone_watch(NULL);
		engine_destroy(r->e);
		r->now += 1001 * RIG_MS;
		r->e = engine_adopt(cfg.file, &cfg, &sink, r->now, &why);
		assert_non_null(r->e);
		engine_rules(r->e, &rule, 1, r->now);
		told = engine_counter(r->e, EC_TX_LAN);
		engine_go_on(r->e, r->now);
		engine_tick(r->e, r->now);
		assert_int_equal(engine_counter(r->e, EC_TX_LAN), told);
		rig_forget(r);
		rig_rx(r, NEAR, SEND_ONLY("000006"));
		rig_expect(r, PORT_LAN, ACK_TO_NEAR, 6 + amid, 7);
		rig_destroy(r);
	}
	close(cfg.file);
	unlink(path);
}

/* Before a hand-over: what a host sends is taken and sent on, but it is told nothing, so that it
 * falls silent. When it last sent something is known. */
static void test_hush(void **state)
{
	struct rig *r = HELD(POLICY_EARLY);
	uint64_t at, told = engine_counter(r->e, EC_TX_LAN) + 1;

	(void)state;
	accepted(r, SEND_ONLY("000006"), 6, 7);
	engine_hush(r->e, at = r->now);
	engine_tick(r->e, r->now);
	assert_int_equal(engine_taken_at(r->e), at);
	r->now += RIG_MS;
	unanswered(r, SEND_ONLY("000007"));
	assert_int_equal(engine_taken_at(r->e), at + RIG_MS);
	/* nor of what is missing */
	rig_rx(r, NEAR, SEND_ONLY("000009"));
	rig_pass(r, 4 * RIG_MS);
	assert_int_equal(engine_counter(r->e, EC_TX_LAN), told);
	assert_int_equal(engine_taken_at(r->e), at + RIG_MS);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].custody.packets, 2);
	/* what is not kept passes */
	rig_forget(r);
	rig_rx(r, FAR, "64 40ffff 00000001 00000000 | 80010000 00000001 | 61*8");
	rig_expect(r, PORT_LAN, "64 40ffff 00000001 00000000 | 80010000 00000001 | 61*8");
	rig_quiet(r);
	rig_destroy(r);
}

/* NTT-1: every kind of SEND and WRITE is answered at its end; an answer of the far host that
 * reaches this side all the same is not heard a second time. */
static void test_pseudo_ack_kinds(void **state)
{
	struct rig *r = HELD(POLICY_EARLY);

	(void)state;
	/* ONLY: SEND with immediate, SEND with invalidate, WRITE, WRITE with immediate (5 bytes,
	 * pad 3) */
	accepted(r, "05 40ffff 00000022 80000006 | 0000abcd | 61*8", 6, 7);
	accepted(r, "17 40ffff 00000022 80000007 | 00000055 | 61*8", 7, 8);
	accepted(r, "0a 40ffff 00000022 80000008 | 0000000000001000 00000007 00000008 | 61*8", 8,
		 9);
	accepted(r,
		 "0b 70ffff 00000022 80000009 | 0000000000001000 00000007 00000005 | 0000abcd | "
		 "61*5 00*3",
		 9, 10);
	/* FIRST, MIDDLE, LAST of a SEND; FIRST and LAST with immediate of a WRITE of 257 bytes */
	unanswered(r, "00 40ffff 00000022 0000000a 62*256");
	unanswered(r, "01 40ffff 00000022 0000000b 62*256");
	accepted(r, "02 40ffff 00000022 8000000c 62*4", 12, 11);
	unanswered(r, "06 40ffff 00000022 0000000d | 0000000000001000 00000007 00000101 | 63*256");
	accepted(r, "09 70ffff 00000022 8000000e | 0000abcd | 63 00*3", 14, 12);

	rig_rx(r, FAR, ACK_TO_NEAR, 14, 12);
	rig_rx(r, FAR, "11 40ffff 00000011 0000000e 60 00000b"); /* sequence NAK */
	rig_rx(r, FAR, "11 40ffff 00000011 0000000e 2e 00000b"); /* RNR NAK */
	rig_quiet(r);
	assert_int_equal(engine_counter(r->e, EC_STALE_ACK), 3);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].custody.packets, 9);
	rig_progress(r, 15, 15, 12);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].custody.packets, 0);
	rig_quiet(r);
	rig_destroy(r);
}

/* CONV-1: what is asked of the peer names the connection by both QPNs; what the peer says of it is
 * found by the lane's number, and nothing that names another lane or generation is believed. */
static void test_both_identities(void **state)
{
	struct rig *r = HELD(POLICY_EARLY);
	struct report p = {.type = REPORT_PROGRESS,
			   .cum = 7,
			   .hi = 7,
			   .room = 100,
			   .una = 7,
			   .una_msn = 7,
			   .una_ackable = true,
			   .credit = 0xff,
			   .seq = 1000};
	struct ip_addr a, b;

	(void)state;
	ip_addr_parse("10.1.0.1", &a);
	ip_addr_parse("10.2.0.1", &b);
	assert_memory_equal(&r->open.key.src, &a, sizeof(a));
	assert_memory_equal(&r->open.key.dst, &b, sizeof(b));
	assert_int_equal(r->open.key.dqpn, 0x22);
	assert_int_equal(r->open.lqpn, 0x11);
	assert_int_equal(r->open.start_psn, 5);
	assert_int_equal(r->open.start_msn, 5);

	accepted(r, SEND_ONLY("000006"), 6, 7);
	for (int i = 0; i < 3; i++) {
		p.lane = i == 0 ? r->open.lane + 1 : r->open.lane;
		p.gen = i == 1 ? r->open.gen - 1 : r->open.gen;
		engine_rx_report(r->e, 0, &p, r->now);
		assert_int_equal(rig_conn(r).lane[LANE_OUT].custody.packets, i < 2 ? 1 : 0);
	}
	assert_int_equal(engine_counter(r->e, EC_BAD_REPORT), 2);
	rig_destroy(r);
}

/* Policy honest: the bytes of a message are acknowledged, its last packet waits for the far host.
 * */
static void test_honest(void **state)
{
	struct rig *r = HELD(POLICY_HONEST);

	(void)state;
	unanswered(r, "06 40ffff 00000022 00000006 | 0000000000001000 00000007 00000208 | 61*256");
	unanswered(r, "07 40ffff 00000022 00000007 61*256");
	accepted(r, "08 40ffff 00000022 80000008 61*8", 7, 6);
	unanswered(r, SEND_ONLY("000009"));
	rig_progress(r, 10, 9, 7);
	rig_expect(r, PORT_LAN, ACK_TO_NEAR, 8, 7);
	rig_progress(r, 10, 10, 8);
	rig_expect(r, PORT_LAN, ACK_TO_NEAR, 9, 8);
	rig_quiet(r);
	rig_destroy(r);
}

/* Policy off: only what the far host said. */
static void test_off(void **state)
{
	struct rig *r = HELD(POLICY_OFF);

	(void)state;
	unanswered(r, SEND_ONLY("000006"));
	unanswered(r, SEND_ONLY("000007"));
	rig_progress(r, 8, 6, 6);
	rig_quiet(r);
	rig_progress(r, 8, 7, 7);
	rig_expect(r, PORT_LAN, ACK_TO_NEAR, 6, 7);
	rig_quiet(r);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].custody.packets, 1);
	rig_destroy(r);
}

/* ENG-10: a request in custody that comes again is acknowledged again, with the latest frontier,
 * and goes no further. One that the responder has acknowledged is the responder's to answer. */
static void test_duplicates(void **state)
{
	struct rig *r = HELD(POLICY_EARLY);

	(void)state;
	accepted(r, SEND_ONLY("000006"), 6, 7);
	accepted(r, SEND_ONLY("000007"), 7, 8);
	rig_rx(r, NEAR, SEND_ONLY("000006"));
	rig_expect(r, PORT_LAN, ACK_TO_NEAR, 7, 8);
	rig_quiet(r);
	assert_int_equal(engine_counter(r->e, EC_DUP_REQUESTS), 1);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].dropped_duplicates, 1);
	rig_progress(r, 8, 7, 7);
	unanswered(r, SEND_ONLY("000006"));
	assert_int_equal(engine_counter(r->e, EC_DUP_PASSED), 1);
	rig_destroy(r);
}

/* ENG-10: one NAK for each gap, with the PSN that is missing. */
static void test_one_nak_per_gap(void **state)
{
	struct rig *r = HELD(POLICY_EARLY);

	(void)state;
	accepted(r, SEND_ONLY("000006"), 6, 7);
	rig_rx(r, NEAR, SEND_ONLY("000008"));
	rig_expect(r, PORT_LAN, "11 40ffff 00000011 00000007 60 000007");
	rig_rx(r, NEAR, SEND_ONLY("000009"));
	rig_rx(r, NEAR, SEND_ONLY("00000a"));
	rig_quiet(r);
	accepted(r, SEND_ONLY("000007"), 7, 8);
	rig_rx(r, NEAR, SEND_ONLY("000009"));
	rig_expect(r, PORT_LAN, "11 40ffff 00000011 00000008 60 000008");
	accepted(r, SEND_ONLY("000008"), 8, 9);
	assert_int_equal(engine_counter(r->e, EC_GAPS), 4);
	assert_int_equal(engine_counter(r->e, EC_NAKS_SENT), 2);
	rig_destroy(r);
}

/* ENG-10: a NAK acknowledges what is before the gap, so it waits until that may be acknowledged. */
static void test_nak_waits_for_front(void **state)
{
	struct rig *r = HELD(POLICY_HONEST);

	(void)state;
	unanswered(r, SEND_ONLY("000006"));
	rig_rx(r, NEAR, SEND_ONLY("000008"));
	rig_quiet(r);
	rig_progress(r, 7, 7, 7);
	rig_expect(r, PORT_LAN, ACK_TO_NEAR, 6, 7);
	rig_expect(r, PORT_LAN, "11 40ffff 00000011 00000007 60 000007");
	rig_quiet(r);
	rig_destroy(r);
}

/*
 * ENG-10, ENG-12, ENG-13: opcode sequence and lengths, the length that a WRITE's first packet told
 * being counted down over the ones that follow. The last packet of each row is out of order: it is
 * the responder's to judge, so it is sent on, but nothing acknowledges it or what follows.
 */
static void test_opcode_sequence(void **state)
{
	static const struct {
		const char *what, *packet[4];
	} row[] = {
		{"MIDDLE with no message open", {"01 40ffff 00000022 80%06x 61*256"}},
		{"LAST with no message open", {"08 40ffff 00000022 80%06x 61*8"}},
		{"FIRST inside a message",
		 {"00 40ffff 00000022 00%06x 61*256", "00 40ffff 00000022 80%06x 61*256"}},
		{"SEND LAST of a WRITE",
		 {"06 40ffff 00000022 00%06x | 0000000000001000 00000007 00000108 | 61*256",
		  "02 40ffff 00000022 80%06x 61*8"}},
		{"READ inside a message",
		 {"00 40ffff 00000022 00%06x 61*256",
		  "0c 40ffff 00000022 80%06x | 0000000000001000 00000007 00000008"}},
		{"FIRST shorter than the path MTU", {"00 40ffff 00000022 80%06x 61*252"}},
		{"MIDDLE shorter than the path MTU",
		 {"00 40ffff 00000022 00%06x 61*256", "01 40ffff 00000022 80%06x 61*252"}},
		{"ONLY longer than the path MTU", {"04 40ffff 00000022 80%06x 61*260"}},
		{"LAST of no bytes",
		 {"00 40ffff 00000022 00%06x 61*256", "02 40ffff 00000022 80%06x"}},
		{"WRITE ONLY, 8 bytes of 12",
		 {"0a 40ffff 00000022 80%06x | 0000000000001000 00000007 0000000c | 61*8"}},
		{"WRITE LAST too early, 344 bytes of 600",
		 {"06 40ffff 00000022 00%06x | 0000000000001000 00000007 00000258 | 61*256",
		  "08 40ffff 00000022 80%06x 61*88"}},
		{"WRITE LAST too short, 599 bytes of 600",
		 {"06 40ffff 00000022 00%06x | 0000000000001000 00000007 00000258 | 61*256",
		  "07 40ffff 00000022 00%06x 61*256", "08 50ffff 00000022 80%06x 61*87 00"}},
		{"WRITE MIDDLE beyond the end, 768 bytes of 600",
		 {"06 40ffff 00000022 00%06x | 0000000000001000 00000007 00000258 | 61*256",
		  "07 40ffff 00000022 00%06x 61*256", "07 40ffff 00000022 80%06x 61*256"}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct rig *r = HELD(POLICY_EARLY);
		uint32_t psn = 6;
		char text[128];

		for (int k = 0; k < 4 && row[i].packet[k]; k++, psn++) {
			assert_int_equal(engine_counter(r->e, EC_BAD_SEQUENCE), 0);
			/* the format is the row's: one PSN */
			snprintf(text, sizeof(text), row[i].packet[k], psn);
			rig_rx(r, NEAR, "%s", text);
			rig_expect(r, PORT_WAN, "%s", text);
		}
		if (engine_counter(r->e, EC_BAD_SEQUENCE) != 1)
			fail_msg("not noticed: %s", row[i].what);
		/* at most what came before it is acknowledged */
		if (r->at != r->nout)
			rig_expect(r, PORT_LAN, ACK_TO_NEAR, psn - 2, 6u);
		unanswered(r, "04 40ffff 00000022 80%06x 61*8", psn);
		/* the responder found nothing wrong */
		rig_progress(r, psn + 1, psn + 1, 8);
		if (!strstr(row[i].what, "READ")) /* that would have been answered with data */
			rig_expect(r, PORT_LAN, ACK_TO_NEAR, psn, 8u);
		rig_quiet(r);
		rig_destroy(r);
	}
}

/* ENG-12: the same lengths, right: nothing is held against them. */
static void test_running_length(void **state)
{
	struct rig *r = HELD(POLICY_EARLY);

	(void)state;
	unanswered(r, "06 40ffff 00000022 00000006 | 0000000000001000 00000007 00000258 | 61*256");
	unanswered(r, "07 40ffff 00000022 00000007 61*256");
	accepted(r, "08 40ffff 00000022 80000008 61*88", 8, 7);
	/* exactly two packets; then the count starts anew */
	unanswered(r, "06 40ffff 00000022 00000009 | 0000000000001000 00000007 00000200 | 61*256");
	accepted(r, "08 40ffff 00000022 8000000a 61*256", 10, 8);
	accepted(r, "0a 40ffff 00000022 8000000b | 0000000000001000 00000007 00000000", 11, 9);
	assert_int_equal(engine_counter(r->e, EC_BAD_SEQUENCE), 0);
	rig_destroy(r);
}

/* FAST-2: a packet whose ICRC is wrong is not acknowledged, not kept, and draws no NAK; it passes,
 * for its host to drop; the undamaged one is taken when it comes. */
static void test_bad_icrc(void **state)
{
	struct rig *r = HELD(POLICY_EARLY);
	uint8_t frame[FRAME_MAX];
	uint32_t len = rig_build(r, frame, NEAR, SEND_ONLY("000006"));

	(void)state;
	for (uint32_t bit = 0; bit < 8; bit++) {
		frame[RIG_BTH + 12 + bit] ^= (uint8_t)(1u << bit);
		rig_rx_frame(r, NEAR, frame, len);
		frame[RIG_BTH + 12 + bit] ^= (uint8_t)(1u << bit);
	}
	engine_tick(r->e, r->now);
	/* ahead of its turn and damaged: perhaps it is not ahead at all */
	len = rig_build(r, frame, NEAR, SEND_ONLY("000008"));
	frame[RIG_BTH + 14] ^= 1;
	rig_rx_frame(r, NEAR, frame, len);
	engine_tick(r->e, r->now);
	for (; r->at < r->nout; r->at++)
		assert_int_equal(r->out[r->at].port, PORT_WAN);
	assert_int_equal(engine_counter(r->e, EC_BAD_ICRC), 9);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].custody.packets, 0);
	accepted(r, SEND_ONLY("000006"), 6, 7);
	rig_destroy(r);
}

/*
 * POOL-3: a WRITE that tells in its first packet that it will not fit is not acknowledged early,
 * not even its beginning, which does fit, until there is room for what is left of it; one that fits
 * is, before it and after it.
 */
static void test_reserve_before_commit(void **state)
{
	struct engine_config cfg = {.pool_bytes = 8 << 20, .max_conns = 16, .seed = 1};
	struct rig *r = rig_held(&cfg, 0, POLICY_EARLY, 4096);
	uint32_t psn = 6, packets = (6 << 20) / 4096, end = psn + 1 + packets, una = 7;
	bool early = false;

	(void)state;
	accepted(r, "0a 40ffff 00000022 80000006 | 0000000000001000 00000007 00000008 | 61*8", 6,
		 7);
	rig_progress(r, 7, 7, 7);
	psn++;
	for (uint32_t i = 0; i < packets; i++, psn++) {
		if (i == 0) /* 6 MiB, and custody has 75 % of 8 */
			rig_rx(r, NEAR, "06 40ffff 00000022 80%06x | " RETH " | 61*4096", psn,
			       6u << 20);
		else
			rig_rx(r, NEAR, "%s 40ffff 00000022 80%06x 61*4096",
			       i + 1 < packets ? "07" : "08", psn);
		rig_sent(r, PORT_WAN);
		/* until the rest fits; then it is acknowledged as it comes */
		if (i > 600)
			early |= r->at != r->nout;
		else
			rig_quiet(r);
		/* the far host is 300 packets behind */
		if (i > 300 && i % 100 == 0) {
			una = psn - 300;
			rig_progress(r, psn, una, 7);
			if (i <= 600)
				rig_expect(r, PORT_LAN, ACK_TO_NEAR, una - 1, 7u);
		}
		if (i > 600 || i % 100 == 0)
			rig_forget(r);
	}
	assert_true(early);
	assert_int_equal(psn, end);
	assert_true(una < end);
	rig_progress(r, end, end, 8);
	rig_quiet(r);
	rig_rx(r, NEAR, "06 40ffff 00000022 80%06x | " RETH " | 61*4096", psn, 1u << 20);
	rig_sent(r, PORT_WAN);
	rig_expect(r, PORT_LAN, ACK_TO_NEAR, psn, 8u);
	rig_quiet(r);
	assert_int_equal(engine_counter(r->e, EC_NO_ROOM), 0);
	rig_destroy(r);
}

/* Nothing at or behind a READ is acknowledged before its answer has passed, packet by packet and in
 * order. */
static void test_front_stops_at_read(void **state)
{
	struct rig *r = HELD(POLICY_EARLY);

	(void)state;
	accepted(r, SEND_ONLY("000006"), 6, 7);
	unanswered(r,
		   "0c 40ffff 00000022 80000007 | 0000000000001000 00000007 00000258"); /* PSN 7, 8,
											   9 */
	unanswered(r, SEND_ONLY("00000a"));
	rig_rx(r, FAR, "0d 40ffff 00000011 00000007 1f000008 72*256");
	rig_expect(r, PORT_LAN, "0d 40ffff 00000011 00000007 1f000008 72*256");
	rig_rx(r, FAR, "0e 40ffff 00000011 00000008 72*256");
	rig_expect(r, PORT_LAN, "0e 40ffff 00000011 00000008 72*256");
	rig_quiet(r);
	rig_rx(r, FAR, "0f 40ffff 00000011 00000009 1f000008 72*88");
	rig_expect(r, PORT_LAN, "0f 40ffff 00000011 00000009 1f000008 72*88");
	rig_expect(r, PORT_LAN, ACK_TO_NEAR, 10, 9);
	/* the answer itself acknowledges a READ; an ACK with its PSN would be taken for the answer
	 * */
	unanswered(r, "0c 40ffff 00000022 8000000b | 0000000000001000 00000007 00000008");
	rig_rx(r, FAR, "10 40ffff 00000011 0000000b 1f00000a 72*8");
	rig_expect(r, PORT_LAN, "10 40ffff 00000011 0000000b 1f00000a 72*8");
	rig_quiet(r);
	rig_destroy(r);
}

/* CONV-4: an answer counts only with the opcode and the length that its place in the READ's range
 * demands. Another one is not given to the host, and nothing behind the READ is acknowledged by it.
 * */
static void test_answer_must_fit(void **state)
{
	static const char *const bad[] = {
		"10 40ffff 00000011 00000006 1f000007 72*256", /* ONLY, and there is more to come */
		"0d 40ffff 00000011 00000006 1f000007 72*252", /* FIRST, but not full */
		"0e 40ffff 00000011 00000006 72*256",	       /* MIDDLE at the beginning */
		"12 40ffff 00000011 00000006 1f000007 00*8",   /* of an ATOMIC */
	};
	static const char *const bad_last[] = {
		"0f 40ffff 00000011 00000007 1f000007 72*240", /* 8 bytes short */
		"0f 40ffff 00000011 00000007 1f000007 72*256", /* 8 too many */
		"0e 40ffff 00000011 00000007 72*256",	       /* as if it went on */
	};
	struct rig *r = HELD(POLICY_EARLY);
	static const char first[] = "0d 40ffff 00000011 00000006 1f000007 72*256";
	static const char last[] = "0f 40ffff 00000011 00000007 1f000007 72*248";

	(void)state;
	unanswered(r,
		   "0c 40ffff 00000022 80000006 | 0000000000001000 00000007 000001f8"); /* 504: PSN
											   6, 7 */
	unanswered(r, SEND_ONLY("000008"));
	for (int i = 0; i < 4; i++) {
		rig_rx(r, FAR, "%s", bad[i]);
		rig_quiet(r);
	}
	rig_rx(r, FAR, first);
	rig_expect(r, PORT_LAN, first);
	for (int i = 0; i < 3; i++) {
		rig_rx(r, FAR, "%s", bad_last[i]);
		rig_quiet(r);
	}
	assert_int_equal(engine_counter(r->e, EC_STRAY_RESPONSE), 7);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].reads_pending, 1);
	rig_rx(r, FAR, last);
	rig_expect(r, PORT_LAN, last);
	rig_expect(r, PORT_LAN, ACK_TO_NEAR, 8, 8);
	rig_quiet(r);
	rig_destroy(r);
}

/* ENG-4: what the peer lacks is sent again, that alone, and byte for byte. */
static void test_selective_repair(void **state)
{
	struct rig *r = HELD(POLICY_EARLY);
	struct report p = r->open;

	uint64_t before;
	(void)state;
	for (uint32_t psn = 6; psn < 12; psn++, rig_pass(r, RIG_MS))
		rig_rx(r, NEAR, "04 40ffff 00000022 80%06x 61*8 %02x*4", psn, psn);
	rig_forget(r);
	before = engine_counter(r->e, EC_RETX_WAN); /* a silent peer's tail */
	p.type = REPORT_PROGRESS;
	p.seq = ++r->seq;
	p.cum = 7;
	p.hi = 12;
	p.room = 1000;
	p.una = 7;
	p.una_msn = 7;
	p.una_ackable = true;
	p.credit = 0x1f;
	p.nholes = 2;
	p.hole[0] = (struct psn_range){7, 8};
	p.hole[1] = (struct psn_range){9, 10};
	engine_rx_report(r->e, 0, &p, r->now);
	engine_tick(r->e, r->now);
	rig_expect(r, PORT_WAN, "04 40ffff 00000022 80000007 61*8 07*4");
	rig_expect(r, PORT_WAN, "04 40ffff 00000022 80000009 61*8 09*4");
	rig_quiet(r);
	assert_int_equal(engine_counter(r->e, EC_RETX_WAN), before + 2);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].custody.packets, 5);
	rig_destroy(r);
}

/* ENG-6, CONV-8: the responder refuses what was acknowledged. Nothing is sent again, what is lost
 * is counted, and from then on the requester hears the refusal and no success. */
static void test_fault(void **state)
{
	struct rig *r = HELD(POLICY_EARLY);
	struct report p = r->open;
	uint64_t bytes;

	(void)state;
	accepted(r, SEND_ONLY("000006"), 6, 7);
	accepted(r, SEND_ONLY("000007"), 7, 8);
	bytes = rig_conn(r).lane[LANE_OUT].custody.bytes;
	p.type = REPORT_PROGRESS;
	p.seq = ++r->seq;
	p.cum = p.hi = 8;
	p.room = 1000;
	p.una = 6;
	p.una_msn = 6;
	p.una_ackable = true;
	p.credit = 0xff;
	p.refusal = AETH_NAK_ACCESS;
	p.refusal_psn = 6;
	p.reason = REASON_NAK;
	engine_rx_report(r->e, 0, &p, r->now);
	engine_tick(r->e, r->now);
	assert_int_equal(r->events[EVENT_FAULT], 1);
	assert_int_equal(r->last.packets, 2);
	assert_int_equal(r->last.bytes, bytes);
	assert_int_equal(engine_counter(r->e, EC_FAULTS), 1);
	assert_int_equal(engine_counter(r->e, EC_LOST_PACKETS), 2);
	assert_int_equal(engine_counter(r->e, EC_LOST_BYTES), bytes);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].state, LANE_FAULT);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].reason, REASON_NAK);
	rig_pass(r, 3000 * RIG_MS);
	rig_only_probes(r);

	rig_rx(r, NEAR, SEND_ONLY("000008"));
	rig_expect(r, PORT_LAN, "11 40ffff 00000011 00000008 62 000008");
	rig_rx(r, NEAR, SEND_ONLY("000009"));
	rig_expect(r, PORT_LAN, "11 40ffff 00000011 00000008 62 000008");
	rig_rx(r, FAR, ACK_TO_NEAR, 9, 9);
	rig_quiet(r);
	assert_int_equal(engine_counter(r->e, EC_FATAL_NAKS), 2);

	/* the lane lets go when the QP has been silent for a while */
	rig_pass(r, 20000 * RIG_MS);
	rig_only_probes(r);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].state, LANE_WATCH);
	rig_destroy(r);
}

/* ENG-13, CONV-8: a refusal of what was not acknowledged is the requester's own business: it gets
 * it as it is. */
static void test_refusal_above_front(void **state)
{
	struct rig *r = HELD(POLICY_OFF);
	struct report p = r->open;

	(void)state;
	unanswered(r, SEND_ONLY("000006"));
	p.type = REPORT_PROGRESS;
	p.seq = ++r->seq;
	p.cum = p.hi = 7;
	p.room = 1000;
	p.una = 6;
	p.una_msn = 6;
	p.una_ackable = true;
	p.credit = 0xff;
	p.refusal = AETH_NAK_INVALID;
	p.refusal_psn = 6;
	engine_rx_report(r->e, 0, &p, r->now);
	engine_tick(r->e, r->now);
	rig_expect(r, PORT_LAN, "11 40ffff 00000011 00000006 61 000006");
	rig_quiet(r);
	assert_int_equal(r->events[EVENT_FAULT], 0);
	assert_int_equal(engine_counter(r->e, EC_LOST_PACKETS), 0);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].state, LANE_WATCH);
	rig_destroy(r);
}

/* While the peer has not agreed nothing is promised, and a refusal costs nothing. */
static void test_peer_refuses(void **state)
{
	struct engine_config cfg = {.pool_bytes = 8 << 20, .max_conns = 16, .seed = 1};
	struct rule rule = rig_rule(0, POLICY_EARLY, RIG_MTU);
	struct rig *r = rig_create(&cfg, &rule);

	(void)state;
	rig_learn(r, 0);
	unanswered(r, SEND_ONLY("000005"));
	assert_int_equal(rig_conn(r).lane[LANE_OUT].state, LANE_OPENING);
	assert_int_equal(r->rep[0].type, REPORT_OPEN);
	r->open = r->rep[0];
	rig_answer(r, REPORT_REFUSE, REASON_ONE_WAY);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].state, LANE_WATCH);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].reason, REASON_ONE_WAY);
	assert_int_equal(r->events[EVENT_REFUSED], 1);
	assert_int_equal(r->events[EVENT_FAULT], 0);
	/* as if there were no appliance */
	rig_rx(r, FAR, ACK_TO_NEAR, 5, 6);
	rig_expect(r, PORT_LAN, ACK_TO_NEAR, 5, 6);
	unanswered(r, SEND_ONLY("000006"));
	rig_destroy(r);
}

/* The peer comes back without memory: the lane is agreed anew from the last true ACK on, and
 * everything from there is sent again. The requester notices nothing. */
static void test_peer_restarts(void **state)
{
	struct rig *r = HELD(POLICY_EARLY);

	(void)state;
	for (uint32_t psn = 6; psn < 10; psn++)
		rig_rx(r, NEAR, "04 40ffff 00000022 80%06x 61*8", psn);
	rig_progress(r, 9, 7, 7);
	rig_forget(r);
	engine_peer_event(r->e, 0, PEER_DOWN, r->now);
	engine_peer_event(r->e, 0, PEER_RESTARTED, r->now);
	engine_tick(r->e, r->now);
	rig_quiet(r);
	assert_int_equal(r->nrep, 1);
	assert_int_equal(r->rep[0].type, REPORT_OPEN);
	assert_true(r->rep[0].resume);
	assert_int_equal(r->rep[0].start_psn, 7);
	assert_int_equal(r->rep[0].start_msn, 7);
	assert_int_not_equal(r->rep[0].gen, r->open.gen);
	r->open = r->rep[0];
	rig_answer(r, REPORT_ACCEPT, REASON_NONE);
	for (uint32_t psn = 7; psn < 10; psn++)
		rig_expect(r, PORT_WAN, "04 40ffff 00000022 80%06x 61*8", psn);
	rig_quiet(r);
	rig_progress(r, 10, 10, 10);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].custody.packets, 0);
	assert_int_equal(r->events[EVENT_FAULT], 0);
	rig_destroy(r);
}

/* ENG-2: half of all PSNs after the handover, what was behind it seems to be ahead, and the other
 * way round; a lane lives longer than that. (The responder has had many packets past us: each
 * report skips.) */
static void test_long_life(void **state)
{
	struct rig *r = HELD(POLICY_EARLY);
	uint32_t psn = 6, msn = 6;

	(void)state;
	for (uint32_t done = 0; done < 3 * (PSN_MASK / 4); done += 60000) {
		psn = psn_add(psn, 60000);
		rig_progress(r, psn, psn, ++msn);
		rig_forget(r);
		rig_rx(r, NEAR, "0c 40ffff 00000022 80%06x | 0000000000001000 00000007 00000008",
		       psn);
		rig_sent(r, PORT_WAN);
		rig_expect(r, PORT_LAN, ACK_TO_NEAR, psn_sub(psn, 1),
			   msn); /* all before the READ */
		unanswered(r, "04 40ffff 00000022 80%06x 61*8", psn_add(psn, 1));
		rig_rx(r, FAR, "10 40ffff 00000011 00%06x 1f%06x 72*8", psn, ++msn);
		rig_expect(r, PORT_LAN, "10 40ffff 00000011 00%06x 1f%06x 72*8", psn, msn);
		rig_expect(r, PORT_LAN, ACK_TO_NEAR, psn_add(psn, 1), ++msn);
		rig_rx(r, FAR, ACK_TO_NEAR, psn_add(psn, 1), msn);
		rig_quiet(r);
	}
	rig_destroy(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pseudo_ack_bytes),
		cmocka_unit_test(test_go_on),
		cmocka_unit_test(test_go_on_of_another),
		cmocka_unit_test(test_go_on_late),
		cmocka_unit_test(test_hush),
		cmocka_unit_test(test_pseudo_ack_kinds),
		cmocka_unit_test(test_both_identities),
		cmocka_unit_test(test_honest),
		cmocka_unit_test(test_off),
		cmocka_unit_test(test_duplicates),
		cmocka_unit_test(test_one_nak_per_gap),
		cmocka_unit_test(test_nak_waits_for_front),
		cmocka_unit_test(test_opcode_sequence),
		cmocka_unit_test(test_running_length),
		cmocka_unit_test(test_bad_icrc),
		cmocka_unit_test(test_reserve_before_commit),
		cmocka_unit_test(test_front_stops_at_read),
		cmocka_unit_test(test_answer_must_fit),
		cmocka_unit_test(test_selective_repair),
		cmocka_unit_test(test_fault),
		cmocka_unit_test(test_refusal_above_front),
		cmocka_unit_test(test_peer_refuses),
		cmocka_unit_test(test_peer_restarts),
		cmocka_unit_test(test_long_life),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
