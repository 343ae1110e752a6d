// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Toward the responder, packet by packet: what is released, what is sent again, when, and what ends
 * it. First in single mode (NTT-2), where the responder is the far host; then as the appliance at
 * the responder's side, where requests come out of order from the WAN and the responder is the near
 * host.
 */
#include "engine/core/core.h"
#include "engine/reads/reads.h"
#include "store/window.h"
#include "tests/unit/engine_rig.h"

#define HELD() rig_held(NULL, PEER_NONE, POLICY_EARLY, RIG_MTU)
#define TAGGED                                                                                     \
	"04 40ffff 00000022 80%06x 61*8 %02x*4" /* a SEND that shows its PSN in the payload */
#define NAK_SEQ "11 40ffff 00000011 00%06x 60%06x"

/* SENDs with PSN [@from, @end), each sent on and answered at once. */
static void sends(struct rig *r, uint32_t from, uint32_t end)
{
	for (uint32_t psn = from; psn < end; psn++) {
		rig_rx(r, NEAR, TAGGED, psn, psn);
		rig_expect(r, PORT_WAN, TAGGED, psn, psn);
		rig_expect(r, PORT_LAN, ACK_TO_NEAR, psn, psn + 1);
	}
	rig_quiet(r);
}

static uint64_t in_custody(struct rig *r)
{
	return rig_conn(r).lane[LANE_OUT].custody.packets;
}

/* ENG-2, ENG-3: a cumulative ACK releases exactly what it covers; below the oldest unacknowledged
 * PSN, or at and above the next one, it changes nothing. */
static void test_cumulative_release(void **state)
{
	struct rig *r = HELD();

	(void)state;
	sends(r, 6, 12);
	assert_int_equal(in_custody(r), 6);
	rig_rx(r, FAR, ACK_TO_NEAR, 7, 8);
	assert_int_equal(in_custody(r), 4);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].una, 8);
	rig_quiet(r);
	rig_rx(r, FAR, ACK_TO_NEAR, 7, 8);		 /* again */
	rig_rx(r, FAR, ACK_TO_NEAR, 6, 7);		 /* late */
	rig_forget(r);					 /* the requester may hear them: it knows */
	rig_rx(r, FAR, ACK_TO_NEAR, 12, 13);		 /* never sent */
	rig_rx(r, FAR, ACK_TO_NEAR, 0x100000, 0x100001); /* far beyond */
	assert_int_equal(in_custody(r), 4);
	assert_int_equal(engine_counter(r->e, EC_STALE_ACK), 4);
	rig_rx(r, FAR, ACK_TO_NEAR, 11, 12);
	assert_int_equal(in_custody(r), 0);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].true_acks, 3); /* that of PSN 5, too */
	rig_quiet(r);
	rig_destroy(r);
}

/* ENG-3, ENG-8, POOL-8: an ACK past an unanswered READ says that its answer was lost: what is
 * before the READ is released, the READ is not, and sending resumes with it. */
static void test_ack_past_read(void **state)
{
	struct rig *r = HELD();
	static const char read[] =
		"0c 40ffff 00000022 80000008 | 0000000000001000 00000007 00000008";

	(void)state;
	sends(r, 6, 8);
	rig_rx(r, NEAR, "%s", read);
	rig_expect(r, PORT_WAN, "%s", read);
	rig_rx(r, NEAR, TAGGED, 9, 9);
	rig_expect(r, PORT_WAN, TAGGED, 9, 9);
	rig_quiet(r); /* nothing behind a READ is acknowledged */
	rig_pass(r, 5 * RIG_MS);
	rig_rx(r, FAR, ACK_TO_NEAR, 9, 10);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].una, 8);
	assert_int_equal(in_custody(r), 2);
	rig_expect(r, PORT_WAN, "%s", read);
	rig_expect(r, PORT_WAN, TAGGED, 9, 9);
	rig_quiet(r);
	/* now it is answered: the answer passes, and releases the READ */
	rig_rx(r, FAR, "10 40ffff 00000011 00000008 1f000009 72*8");
	rig_expect(r, PORT_LAN, "10 40ffff 00000011 00000008 1f000009 72*8");
	rig_expect(r, PORT_LAN, ACK_TO_NEAR, 9, 10);
	assert_int_equal(in_custody(r), 1);
	rig_rx(r, FAR, ACK_TO_NEAR, 9, 10);
	assert_int_equal(in_custody(r), 0);
	rig_quiet(r);
	rig_destroy(r);
}

/* ENG-4: a sequence NAK releases what is before its PSN; from there to the last PSN sent all goes
 * out again in order, byte for byte as the host sent it. */
static void test_sequence_nak(void **state)
{
	struct rig *r = HELD();

	(void)state;
	sends(r, 6, 12);
	rig_rx(r, FAR, NAK_SEQ, 8, 8);
	assert_int_equal(in_custody(r), 4);
	for (uint32_t psn = 8; psn < 12; psn++)
		rig_expect(r, PORT_WAN, TAGGED, psn, psn);
	rig_quiet(r);
	assert_int_equal(engine_counter(r->e, EC_RETX_WAN), 4);
	/* and new ones follow after them */
	sends(r, 12, 13);
	rig_rx(r, FAR, ACK_TO_NEAR, 12, 13);
	assert_int_equal(in_custody(r), 0);
	rig_destroy(r);
}

/* ENG-5: RNR. Nothing leaves before the time that the responder asks for, neither by the loss timer
 * nor because the requester asks again or goes on; then sending resumes where it stopped. */
static void test_rnr(void **state)
{
	struct rig *r = HELD();

	(void)state;
	sends(r, 6, 9);
	rig_rx(r, FAR, "11 40ffff 00000011 00000007 20 000007"); /* RNR NAK, code 0: 655.36 ms */
	assert_int_equal(in_custody(r), 2);
	rig_rx(r, NEAR, TAGGED, 7, 7);
	rig_expect(r, PORT_LAN, ACK_TO_NEAR, 8, 9);
	rig_rx(r, NEAR, TAGGED, 9, 9);
	rig_expect(r, PORT_LAN, ACK_TO_NEAR, 9, 10);
	rig_rx(r, FAR, "11 40ffff 00000011 00000007 20 000007"); /* said again */
	rig_pass(r, 655 * RIG_MS);
	rig_quiet(r);
	rig_pass(r, RIG_MS);
	for (uint32_t psn = 7; psn < 10; psn++)
		rig_expect(r, PORT_WAN, TAGGED, psn, psn);
	rig_quiet(r);
	assert_int_equal(engine_counter(r->e, EC_RNR), 2);
	assert_int_equal(engine_counter(r->e, EC_TIMEOUTS), 0);
	rig_destroy(r);
}

/* ENG-6, CONV-8: a fatal NAK in custody. What is before it was executed; the rest is flushed and
 * counted, nothing is sent again, and no success is told any more. */
static void test_fatal_nak(void **state)
{
	static const uint8_t syndrome[] = {AETH_NAK_INVALID, AETH_NAK_ACCESS, AETH_NAK_OPERATION};

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct rig *r = HELD();

		sends(r, 6, 10);
		rig_rx(r, FAR, "11 40ffff 00000011 00000007 %02x 000007", syndrome[i]);
		assert_int_equal(r->events[EVENT_FAULT], 1);
		assert_int_equal(r->last.packets, 3);
		assert_int_equal(engine_counter(r->e, EC_LOST_PACKETS), 3);
		assert_int_equal(engine_counter(r->e, EC_LOST_BYTES), r->last.bytes);
		assert_int_equal(in_custody(r), 0);
		rig_pass(r, 2000 * RIG_MS);
		rig_only_probes(r);
		rig_rx(r, NEAR, TAGGED, 10, 10);
		rig_expect(r, PORT_LAN, "11 40ffff 00000011 0000000a %02x 00000a", syndrome[i]);
		rig_rx(r, FAR, ACK_TO_NEAR, 9, 10);
		rig_quiet(r);
		rig_destroy(r);
	}
}

/* ENG-7: the loss timer runs only while something is outstanding, resends the oldest packet alone,
 * waits longer each time, and what it learns by that is used at once. */
static void test_loss_timer(void **state)
{
	struct rig *r = HELD();
	uint64_t before;

	(void)state;
	rig_pass(r, 5000 * RIG_MS);
	rig_quiet(r);
	assert_int_equal(engine_counter(r->e, EC_TIMEOUTS), 0);

	sends(r, 6, 9);
	before = r->now;
	while (engine_counter(r->e, EC_TIMEOUTS) < 1)
		rig_pass(r, RIG_MS);
	rig_expect(r, PORT_WAN, TAGGED, 6, 6);
	rig_quiet(r);
	before = r->now - before;
	rig_pass(r, before * 3 / 2);
	rig_quiet(r);
	rig_pass(r, before);
	rig_expect(r, PORT_WAN, TAGGED, 6, 6);
	rig_quiet(r);
	/* the probe is acknowledged, and the rest is not: it was lost as well */
	rig_rx(r, FAR, ACK_TO_NEAR, 6, 7);
	rig_expect(r, PORT_WAN, TAGGED, 7, 7);
	rig_expect(r, PORT_WAN, TAGGED, 8, 8);
	rig_quiet(r);
	rig_rx(r, FAR, ACK_TO_NEAR, 8, 9);
	rig_pass(r, 5000 * RIG_MS);
	rig_quiet(r);
	assert_int_equal(engine_counter(r->e, EC_TIMEOUTS), 2);
	rig_destroy(r);
}

/* ENG-7: the timer's budget is time without a sign of the responder, renewed by progress and by
 * nothing else: a NAK in between is one, any number of timeouts is not. Then it is given up, and
 * said. */
static void test_timer_budget(void **state)
{
	struct rig *r = HELD();
	uint64_t timeouts;

	(void)state;
	sends(r, 6, 9);
	for (int i = 0; i < 5; i++) { /* 125 s in all, and the default is 30 */
		rig_pass(r, 25000 * RIG_MS);
		rig_rx(r, FAR, ACK_TO_NEAR, 6, 7); /* news the first time, stale from then on */
		rig_forget(r);
		if (i == 0)
			rig_rx(r, FAR, NAK_SEQ, 7, 7);
		assert_int_equal(r->events[EVENT_FAULT], i < 2 ? 0 : 1);
	}
	timeouts = engine_counter(r->e, EC_TIMEOUTS);
	assert_true(timeouts > 10);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].reason, REASON_TIMEOUT);
	assert_int_equal(engine_counter(r->e, EC_LOST_PACKETS), 2);
	rig_destroy(r);
}

/* ---- the appliance near the responder ---- */

#define REQUEST	  "04 40ffff 00000011 80%06x 61*8 %02x*4"
#define NEAR_SAYS "11 40ffff 00000022 00%06x %02x%06x" /* PSN, syndrome, MSN */

/* Requests of the far host, QP 0x22, are a stream from PSN 5 on; the near host answers them. */
static struct rig *acceptor_of(uint32_t pool_bytes, uint32_t msn)
{
	struct engine_config cfg = {.pool_bytes = pool_bytes, .max_conns = 16, .seed = 1};
	struct rule rule = rig_rule(0, POLICY_EARLY, RIG_MTU);
	struct rig *r = rig_create(&cfg, &rule);
	struct report open = rig_open(5, msn + 5, RIG_MTU);

	for (uint32_t psn = 0; psn < 5; psn++) {
		rig_rx(r, FAR, REQUEST, psn, psn);
		rig_rx(r, NEAR, NEAR_SAYS, psn, 0x1f, msn + psn + 1);
	}
	rig_forget(r);
	engine_rx_report(r->e, 0, &open, r->now);
	assert_int_equal(r->rep[0].type, REPORT_ACCEPT);
	assert_int_equal(r->rep[0].lane, 77);
	assert_int_equal(r->rep[0].gen, 3);
	engine_tick(r->e, r->now);
	rig_forget(r);
	assert_int_equal(rig_conn(r).lane[LANE_IN].state, LANE_HELD);
	assert_int_equal(rig_conn(r).rule, 0);
	assert_int_equal(rig_conn(r).peer, 0);
	return r;
}

static struct rig *acceptor(void)
{
	return acceptor_of(8 << 20, 0);
}

/* Its pool is soon full: after each packet all that is in it is checked. */
static struct rig *acceptor_with_little_room(void)
{
	return acceptor_of(1 << 20, 0);
}

static const struct report *last_report(struct rig *r)
{
	assert_true(r->nrep > 0);
	assert_int_equal(r->rep[r->nrep - 1].type, REPORT_PROGRESS);
	assert_int_equal(r->rep[r->nrep - 1].lane, 77);
	return &r->rep[r->nrep - 1];
}

/* What the latest report asks for again at once. */
static bool asked_again(struct rig *r, uint32_t psn)
{
	const struct report *p = last_report(r);

	for (uint8_t i = 0; i < p->nagain; i++)
		if (p->again[i] == psn)
			return true;
	return false;
}

/* A responder that counts anew is another one. After its first packet it can have counted one, and
 * no more: what counts two is somebody else's answer. */
static void test_counts_anew(void **state)
{
	(void)state;
	for (uint32_t msn = 1; msn <= 2; msn++) {
		struct rig *r = acceptor_of(8 << 20, 0x100000);
		struct report disputed = rig_open(0, 0, 0);

		for (uint32_t psn = 5; psn < 9; psn++) {
			rig_rx(r, FAR, REQUEST, psn, psn);
			rig_rx(r, NEAR, NEAR_SAYS, psn, 0x1f, 0x100000 + psn + 1);
		}
		rig_pass(r, 100 * RIG_MS);
		rig_rx(r, FAR, REQUEST, 5, 77);
		rig_rx(r, NEAR, NEAR_SAYS, 5, 0x1f, msn);
		disputed.type = REPORT_CLOSE;
		disputed.by_opener = true;
		disputed.reason = REASON_DISPUTED;
		engine_rx_report(r->e, 0, &disputed, r->now);
		engine_tick(r->e, r->now);
		assert_int_equal(rig_conn(r).lane[LANE_IN].state,
				 msn == 1 ? LANE_WATCH : LANE_HELD);
		rig_destroy(r);
	}
}

/* The opener is gone, and what it promised is here alone: who is to stop delivers that first. */
static void test_stops_after_delivery(void **state)
{
	(void)state;
	for (int first = 0; first < 2; first++) {
		struct rig *r = acceptor();

		rig_rx(r, FAR, REQUEST, 5, 5);
		rig_expect(r, PORT_LAN, REQUEST, 5, 5);
		if (first)
			engine_drain(r->e, r->now);
		engine_peer_event(r->e, 0, PEER_RESTARTED, r->now);
		if (!first)
			engine_drain(r->e, r->now);
		engine_peer_event(r->e, 0, PEER_DOWN, r->now);
		engine_tick(r->e, r->now);
		assert_false(engine_may_stop(r->e));
		rig_rx(r, NEAR, NEAR_SAYS, 5, 0x1f, 6);
		assert_true(engine_may_stop(r->e));
		rig_destroy(r);
	}
}

/* What waits behind a gap grows old, and the responder is not to blame; once it has a request it
 * is, until it says something, as that it is not ready: the request is as old as before. */
static void test_age_and_silence(void **state)
{
	struct rig *r = acceptor();
	struct conn_info ci;
	const struct lane_info *l = &ci.lane[LANE_IN];
	uint64_t from;

	(void)state;
	rig_pass(r, 60000 * RIG_MS); /* idle: nobody waits */
	from = r->now;
	rig_rx(r, FAR, REQUEST, 6, 6);
	rig_pass(r, 6000 * RIG_MS);
	ci = rig_conn(r);
	assert_in_range(l->transit.oldest_ns, 5999 * RIG_MS, r->now - from + RIG_MS);
	assert_int_equal(l->silent_ns, 0);
	rig_rx(r, FAR, REQUEST, 5, 5);
	rig_pass(r, 6000 * RIG_MS);
	ci = rig_conn(r);
	assert_in_range(l->transit.oldest_ns, 11999 * RIG_MS, r->now - from + RIG_MS);
	assert_in_range(l->silent_ns, 5999 * RIG_MS, 6001 * RIG_MS);
	rig_rx(r, NEAR, NEAR_SAYS, 5, 0x2d, 5); /* RNR, 0.96 ms */
	rig_pass(r, 100 * RIG_MS);
	ci = rig_conn(r);
	assert_in_range(l->transit.oldest_ns, 12099 * RIG_MS, r->now - from + RIG_MS);
	assert_in_range(l->silent_ns, 0, 100 * RIG_MS);
	rig_rx(r, NEAR, NEAR_SAYS, 6, 0x1f, 7);
	ci = rig_conn(r);
	assert_int_equal(l->transit.oldest_ns, 0);
	assert_int_equal(l->silent_ns, 0);
	rig_destroy(r);
}

/* What arrives out of order is kept and reported, delivered in order and once. */
static void test_stream_in_order(void **state)
{
	struct rig *r = acceptor();

	(void)state;
	rig_rx(r, FAR, REQUEST, 5, 5);
	rig_expect(r, PORT_LAN, REQUEST, 5, 5);
	rig_rx(r, FAR, REQUEST, 8, 8);
	rig_rx(r, FAR, REQUEST, 7, 7);
	rig_quiet(r);
	assert_int_equal(last_report(r)->cum, 6);
	assert_int_equal(last_report(r)->hi, 9);
	assert_int_equal(last_report(r)->nholes, 1);
	assert_int_equal(last_report(r)->hole[0].from, 6);
	assert_int_equal(last_report(r)->hole[0].end, 7);
	rig_rx(r, FAR, REQUEST, 6, 6);
	for (uint32_t psn = 6; psn < 9; psn++)
		rig_expect(r, PORT_LAN, REQUEST, psn, psn);
	rig_rx(r, FAR, REQUEST, 7, 7);
	rig_quiet(r);
	assert_int_equal(engine_counter(r->e, EC_DUP_STREAM), 1);
	assert_int_equal(last_report(r)->cum, 9);
	assert_int_equal(last_report(r)->una, 5);
	rig_destroy(r);
}

/* Before a hand-over a host gets no more requests: its answer to them would be lost. */
static void test_hush(void **state)
{
	struct rig *r = acceptor();

	(void)state;
	rig_rx(r, FAR, REQUEST, 5, 5);
	rig_expect(r, PORT_LAN, REQUEST, 5, 5);
	engine_hush(r->e, r->now);
	rig_rx(r, FAR, REQUEST, 6, 6);
	rig_pass(r, 4 * RIG_MS);
	rig_quiet(r);
	assert_int_equal(last_report(r)->cum, 7);
	assert_int_equal(rig_conn(r).lane[LANE_IN].transit.packets, 2);
	rig_destroy(r);
}

/* NTT-1: the true answers - ACK, sequence NAK, RNR NAK - end at the appliance near the responder.
 * What they say is done here, and told to the peer. */
static void test_true_answers_consumed(void **state)
{
	struct rig *r = acceptor();

	(void)state;
	for (uint32_t psn = 5; psn < 10; psn++) {
		rig_rx(r, FAR, REQUEST, psn, psn);
		rig_expect(r, PORT_LAN, REQUEST, psn, psn);
	}
	rig_rx(r, NEAR, NEAR_SAYS, 5, 0x0a, 6); /* with credits */
	rig_pass(r, RIG_MS);
	rig_quiet(r);
	assert_int_equal(last_report(r)->una, 6);
	assert_int_equal(last_report(r)->una_msn, 6);
	assert_int_equal(last_report(r)->credit, 0x0a);
	rig_rx(r, NEAR, NEAR_SAYS, 7, 0x60, 7);
	for (uint32_t psn = 7; psn < 10; psn++)
		rig_expect(r, PORT_LAN, REQUEST, psn, psn);
	rig_rx(r, NEAR, NEAR_SAYS, 8, 0x2d, 8); /* RNR, 0.96 ms */
	rig_quiet(r);
	rig_pass(r, 2 * RIG_MS);
	rig_expect(r, PORT_LAN, REQUEST, 8, 8);
	rig_expect(r, PORT_LAN, REQUEST, 9, 9);
	rig_rx(r, NEAR, NEAR_SAYS, 9, 0x1f, 10);
	rig_pass(r, RIG_MS);
	rig_quiet(r);
	assert_int_equal(last_report(r)->una, 10);
	assert_int_equal(last_report(r)->una_msn, 10);
	assert_int_equal(rig_conn(r).lane[LANE_IN].transit.packets, 0);
	assert_int_equal(engine_counter(r->e, EC_RETX_LAN), 5);
	assert_int_equal(engine_counter(r->e, EC_RETX_WAN), 0);
	rig_destroy(r);
}

/* ENG-6: a fatal NAK is told to the peer, which has the custody, again and again until the lane is
 * closed; nothing is delivered after it. */
static void test_refusal_reported(void **state)
{
	struct rig *r = acceptor();
	struct report closed = {.type = REPORT_CLOSE,
				.lane = 77,
				.gen = 3,
				.by_opener = true,
				.reason = REASON_NAK};

	(void)state;
	rig_rx(r, FAR, REQUEST, 5, 5);
	rig_expect(r, PORT_LAN, REQUEST, 5, 5);
	rig_rx(r, NEAR, NEAR_SAYS, 5, 0x62, 5);
	rig_quiet(r);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(last_report(r)->refusal, 0x62);
		assert_int_equal(last_report(r)->refusal_psn, 5);
		rig_forget(r);
		rig_rx(r, FAR, REQUEST, 6, 6);
		rig_pass(r, 150 * RIG_MS);
		rig_quiet(r);
	}
	engine_rx_report(r->e, 0, &closed, r->now);
	assert_int_equal(rig_conn(r).lane[LANE_IN].state, LANE_WATCH);
	rig_destroy(r);
}

/* FAST-1, FAST-2: a damaged packet from the WAN is neither delivered nor reported as received, but
 * asked for again at once. */
static void test_stream_bad_icrc(void **state)
{
	struct rig *r = acceptor();
	uint8_t frame[FRAME_MAX];
	uint32_t len = rig_build(r, frame, FAR, "04 40ffff 00000011 80000005 61*8");

	(void)state;
	frame[RIG_BTH + 15] ^= 0x10;
	rig_rx_frame(r, FAR, frame, len);
	engine_tick(r->e, r->now);
	rig_quiet(r);
	assert_int_equal(engine_counter(r->e, EC_BAD_ICRC), 1);
	assert_int_equal(last_report(r)->cum, 5);
	assert_true(asked_again(r, 5));
	assert_int_equal(rig_conn(r).lane[LANE_IN].transit.packets, 0);
	rig_destroy(r);
}

/* FAST-1: a packet that came and finds no room is named to the peer at once, by a report that waits
 * for nothing else to come; when there is room and it comes again it is taken. */
static void test_no_room_asked_again(void **state)
{
	struct rig *r = acceptor_with_little_room();
	uint32_t psn = 5;

	(void)state;
	/* the near host answers nothing; what does not fit one packet's time needs no report */
	for (; !engine_counter(r->e, EC_NO_ROOM); psn++) {
		assert_true(psn < 50000);
		assert_false(r->nrep && asked_again(r, psn - 1));
		rig_forget(r);
		rig_rx(r, FAR, "04 40ffff 00000011 80%06x 61*252 %02x*4", psn, psn & 0xff);
	}
	psn--;
	assert_true(asked_again(r, psn));
	assert_int_equal(last_report(r)->nagain, 1);
	assert_int_equal(last_report(r)->hi, psn);
	rig_forget(r);
	rig_rx(r, FAR, "04 40ffff 00000011 80%06x 61*252 %02x*4", psn, psn & 0xff);
	assert_true(asked_again(r, psn)); /* as often as it comes in vain */
	rig_rx(r, NEAR, NEAR_SAYS, 1004, 0x1f, 1005);
	rig_forget(r);
	rig_rx(r, FAR, "04 40ffff 00000011 80%06x 61*252 %02x*4", psn, psn & 0xff);
	rig_pass(r, RIG_MS);
	assert_false(asked_again(r, psn));
	assert_int_equal(last_report(r)->cum, psn + 1);
	assert_int_equal(engine_counter(r->e, EC_NO_ROOM), 2);
	rig_destroy(r);
}

/* FAST-1: so is one that would make one hole too many. */
static void test_hole_too_many_asked_again(void **state)
{
	struct rig *r = acceptor();
	uint32_t psn = 6;

	(void)state;
	for (; !engine_counter(r->e, EC_HOLES); psn += 2) {
		assert_true(psn < 20000);
		assert_false(r->nrep && asked_again(r, psn - 2));
		rig_forget(r);
		rig_rx(r, FAR, REQUEST, psn, psn & 0xff);
	}
	psn -= 2;
	assert_true(asked_again(r, psn));
	assert_int_equal(last_report(r)->nagain, 1);
	rig_forget(r);
	rig_rx(r, FAR, REQUEST, psn - 3, (psn - 3) & 0xff); /* a hole less: a place for it */
	rig_rx(r, FAR, REQUEST, psn, psn & 0xff);
	assert_false(asked_again(r, psn));
	assert_int_equal(last_report(r)->hi, psn + 1);
	assert_int_equal(engine_counter(r->e, EC_HOLES), 1);
	rig_destroy(r);
}

/* What came behind a gap has taken all the room. It goes for what is missing, and comes again. */
static void test_gap_gets_room(void **state)
{
	struct rig *r = acceptor_with_little_room();
	uint32_t psn = 6;

	(void)state;
	undone_watch(NULL); /* memory is taken by hand */
	for (; !engine_counter(r->e, EC_NO_ROOM); psn++) {
		assert_true(psn < 50000);
		rig_rx(r, FAR, "04 40ffff 00000011 80%06x 61*252 %02x*4", psn, psn & 0xff);
		rig_forget(r);
	}
	while (pool_page_get(r->e->pool, POOL_TRANSIT) != POOL_NONE)
		;
	rig_rx(r, FAR, "04 40ffff 00000011 80000005 61*252 05*4");
	rig_expect(r, PORT_LAN, "04 40ffff 00000011 80000005 61*252 05*4");
	rig_quiet(r);
	assert_int_equal(rig_conn(r).lane[LANE_IN].transit.packets, 1);
	rig_destroy(r);
}

#define READ "0c 40ffff 00000011 80%06x 0000000000001000 00000007 00000100"
#define ONLY "10 40ffff 00000022 00%06x 1f000006 61*256"

/* An answer passes where there is no memory, and the WAN loses it. When there is memory again, and
 * others far beyond it are kept, it is asked for again: it passes once more, and is not kept. */
static void test_lacked_far_behind(void **state)
{
	static uint32_t page[8 << 8]; /* 8 MiB */
	const uint32_t beyond = 5 + WINDOW_SPAN / 2;
	struct rig *r = acceptor();
	struct flow *fl = flow_ref(r->e, rig_conn(r).id);
	uint8_t data[FRAME_MAX];
	uint32_t pages = 0;
	char text[64];
	struct frame f;

	(void)state;
	if (fl->lane.role != ROLE_ACCEPTOR)
		fl = flow_partner(r->e, fl);
	undone_watch(NULL); /* memory is taken by hand */
	rig_rx(r, FAR, READ, 5);
	while ((page[pages] = pool_page_get_first(r->e->pool, POOL_TRANSIT)) != POOL_NONE)
		pages++;
	rig_rx(r, NEAR, ONLY, 5);
	assert_int_equal(reads_of(r->e, &fl->lane)->held.packets, 0);
	while (pages)
		pool_page_put(r->e->pool, page[--pages]);
	snprintf(text, sizeof(text), ONLY, beyond);
	assert_int_equal(frame_parse(data, rig_build(r, data, NEAR, text), &f), FRAME_OK);
	resp_tx_add(r->e, fl, &f); /* not that many packets */
	engine_tick(r->e, r->now);
	rig_forget(r);
	rig_rx(r, FAR, READ, 5);
	rig_expect(r, PORT_LAN, READ, 5);
	rig_rx(r, NEAR, ONLY, 5);
	rig_expect(r, PORT_WAN, ONLY, 5);
	rig_destroy(r);
}

/*
 * FAST-4: what disorder costs is bounded by holes. Every second packet comes; from some number on
 * the ones that would make another hole are refused and counted, those that close one are not; in
 * the end all is there, in order and once, and no memory is taken for it any more.
 */
static void test_holes_bounded(void **state)
{
	struct rig *r = acceptor();
	const uint32_t end = 5 + 10000;
	uint64_t refused, used = pool_used(r->e->pool, POOL_TRANSIT);

	(void)state;
	for (uint32_t psn = 6; psn < end; psn += 2) {
		rig_rx(r, FAR, REQUEST, psn, psn & 0xff);
		r->nrep = 0;
	}
	rig_quiet(r); /* PSN 5 is missing */
	refused = engine_counter(r->e, EC_HOLES);
	assert_in_range(refused, 1, 4999);
	assert_int_equal(rig_conn(r).lane[LANE_IN].transit.packets, 5000 - refused);
	for (uint32_t psn = 5; psn < end; psn++) {
		rig_rx(r, FAR, REQUEST, psn, psn & 0xff);
		r->nrep = 0;
		if (psn % 100 == 0) { /* only so much is on its way to the near host at a time */
			rig_rx(r, NEAR, NEAR_SAYS, psn, 0x1f, psn + 1);
			r->nrep = 0;
		}
	}
	for (uint32_t psn = 5; psn < end; psn++)
		rig_expect(r, PORT_LAN, REQUEST, psn, psn & 0xff);
	rig_quiet(r);
	assert_int_equal(engine_counter(r->e, EC_HOLES), refused);
	rig_rx(r, NEAR, NEAR_SAYS, end - 1, 0x1f, end);
	assert_int_equal(pool_used(r->e->pool, POOL_TRANSIT), used);
	rig_destroy(r);
}

/* A peer that asks for a lane is refused when its packets were not seen in both directions, when
 * the queue pairs are others than those learned, and when no rule names it. */
static void test_refuses_to_accept(void **state)
{
	struct engine_config cfg = {.pool_bytes = 8 << 20, .max_conns = 16, .seed = 1};
	struct rule rule = rig_rule(0, POLICY_EARLY, RIG_MTU);
	struct rig *r = rig_create(&cfg, &rule);
	struct report open = {
		.type = REPORT_OPEN, .lane = 1, .gen = 1, .lqpn = 0x22, .start_psn = 5};

	(void)state;
	ip_addr_parse("10.2.0.1", &open.key.src);
	ip_addr_parse("10.1.0.1", &open.key.dst);
	open.key.dqpn = 0x11;
	open.key.vlan = FRAME_VLAN_NONE;
	engine_rx_report(r->e, 0, &open, r->now);
	assert_int_equal(r->rep[0].type, REPORT_REFUSE);
	assert_int_equal(r->rep[0].reason, REASON_UNKNOWN);
	rig_rx(r, FAR, REQUEST, 0, 0);
	engine_rx_report(r->e, 0, &open, r->now);
	assert_int_equal(r->rep[1].reason, REASON_ONE_WAY);
	for (uint32_t psn = 0; psn < 5; psn++) {
		rig_rx(r, FAR, REQUEST, psn, psn);
		rig_rx(r, NEAR, NEAR_SAYS, psn, 0x1f, psn + 1);
	}
	rig_rx(r, NEAR, "04 40ffff 00000033 80000000 61*8"); /* there is another QP */
	open.lqpn = 0x33;
	engine_rx_report(r->e, 0, &open, r->now);
	assert_int_equal(r->rep[2].reason, REASON_MISMATCH);
	rule.peer = 1;
	engine_rules(r->e, &rule, 1, r->now);
	open.lqpn = 0x22;
	engine_rx_report(r->e, 0, &open, r->now);
	assert_int_equal(r->rep[3].reason, REASON_NO_RULE);
	assert_int_equal(engine_counter(r->e, EC_REFUSALS), 4);
	assert_int_equal(engine_counter(r->e, EC_OPENS), 0);
	rig_destroy(r);
}

/* A queue has grown on the way. Alone, all is sent again when the timer fires: so it is longer than
 * a round trip, also after a timeout. In pair mode what was longest at first limits it. */
static void test_timer_of_long_round_trip(void **state)
{
	struct lane l = {.role = ROLE_SINGLE,
			 .rtt = {.srtt_us = 3000000, .rttvar_us = 100000, .minrtt_us = 100000}};

	(void)state;
	for (l.backoff = 0; l.backoff < 3; l.backoff++) {
		l.role = ROLE_SINGLE;
		assert_int_equal(lane_rto_ns(&l), (l.backoff ? 6000 : 4500) * RIG_MS);
		l.role = ROLE_OPENER;
		assert_int_equal(lane_rto_ns(&l), 2000 * RIG_MS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cumulative_release),
		cmocka_unit_test(test_ack_past_read),
		cmocka_unit_test(test_sequence_nak),
		cmocka_unit_test(test_rnr),
		cmocka_unit_test(test_fatal_nak),
		cmocka_unit_test(test_loss_timer),
		cmocka_unit_test(test_timer_budget),
		cmocka_unit_test(test_counts_anew),
		cmocka_unit_test(test_age_and_silence),
		cmocka_unit_test(test_stream_in_order),
		cmocka_unit_test(test_hush),
		cmocka_unit_test(test_true_answers_consumed),
		cmocka_unit_test(test_refusal_reported),
		cmocka_unit_test(test_stream_bad_icrc),
		cmocka_unit_test(test_no_room_asked_again),
		cmocka_unit_test(test_gap_gets_room),
		cmocka_unit_test(test_hole_too_many_asked_again),
		cmocka_unit_test(test_holes_bounded),
		cmocka_unit_test(test_lacked_far_behind),
		cmocka_unit_test(test_stops_after_delivery),
		cmocka_unit_test(test_refuses_to_accept),
		cmocka_unit_test(test_timer_of_long_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
