// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * FAST-6: what connections of one appliance may cost each other: memory of many small ones, the
 * share of one without progress, and what must not be forgotten when a port has no room for it.
 * What they cost in time is tests/bench/bench_scale.c's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/lab/model/crowd.h"

#define MS  1000000ull
#define SEC 1000000000ull
#define MIB (1ull << 20)

static void start(struct crowd *c, uint32_t n, uint64_t pool, int peer)
{
	assert_true(crowd_start(c, n, pool, PORT_LAN, peer));
	for (uint32_t i = 0; i < n; i++)
		crowd_learn(c, i);
	assert_int_equal(c->events[EVENT_PAIRED], n);
}

static void end(struct crowd *c)
{
	assert_null(engine_check(c->e));
	crowd_end(c);
}

/* 10,000 connections with one message of 64 bytes each, owed all at once: 16 MiB are enough. */
static void test_many_small(void **state)
{
	struct crowd c;
	uint32_t n = 10000;

	(void)state;
	start(&c, n, 16 * MIB, PEER_NONE);
	for (uint32_t i = 0; i < n; i++) {
		crowd_request(&c, i, 0);
		crowd_tick(&c, 200);
	}
	assert_int_equal(c.events[EVENT_HELD], n);
	assert_int_equal(engine_custody(c.e, -1, c.now).packets, n);
	assert_int_equal(engine_counter(c.e, EC_NO_ROOM), 0);
	assert_int_equal(engine_counter(c.e, EC_CNP_SENT), 0);
	assert_true(engine_counter(c.e, EC_PSEUDO_ACKS) >= n);
	end(&c);
}

/* Lane 0's responder is not ready, and its host goes on until the appliance takes no more of it. */
static void stand_still(struct crowd *c)
{
	uint64_t before = engine_counter(c->e, EC_NO_ROOM);

	c->payload = 1024;
	crowd_request(c, 0, 0);
	crowd_tick(c, 10000);
	crowd_answer(c, 0, CROWD_LEARN, AETH_RNR_NAK, CROWD_LEARN);
	for (uint32_t k = 0; k < 300000 && engine_counter(c->e, EC_NO_ROOM) == before; k++) {
		crowd_request(c, 0, 0);
		if (k % 32 == 0)
			crowd_tick(c, 10000);
	}
	/* else this is no test of a full one */
	assert_true(engine_counter(c->e, EC_NO_ROOM) > before);
	assert_true(engine_custody(c->e, -1, c->now).packets > 1000);
}

/* Lane @i, just learned, is held, and owes nothing. */
static void hold_idle(struct crowd *c, uint32_t i)
{
	crowd_request(c, i, 0);
	crowd_tick(c, MS);
	crowd_answer(c, i, CROWD_LEARN, AETH_ACK_UNLIMITED, CROWD_LEARN + 1);
}

/* FAST-6: a connection that was there, and does what it always did: 1,000 packets within a round
 * trip. */
static void test_stuck_lane_share(void **state)
{
	uint64_t before;
	struct crowd c;

	(void)state;
	start(&c, 2, 256 * MIB, PEER_NONE);
	hold_idle(&c, 1);
	crowd_tick(&c, MS);
	stand_still(&c);
	before = engine_custody(c.e, -1, c.now).packets;
	for (uint32_t k = 0; k < 1000; k++) {
		crowd_request(&c, 1, 0);
		if (k % 32 == 31)
			crowd_tick(&c, 10000);
	}
	crowd_tick(&c, 10000);
	assert_int_equal(engine_custody(c.e, -1, c.now).packets - before, 1000);
	/* and its host is told so */
	assert_int_equal(c.last.qpn, CROWD_LQPN + 1);
	assert_int_equal(c.last.msn, CROWD_LEARN + 1 + 1000);
	end(&c);
}

/* FAST-6: a connection that comes later begins like any other. */
static void test_stuck_lane_opening(void **state)
{
	uint64_t before;
	struct crowd c;

	(void)state;
	assert_true(crowd_start(&c, 2, 256 * MIB, PORT_LAN, PEER_NONE));
	crowd_learn(&c, 0);
	stand_still(&c);
	before = c.events[EVENT_HELD];
	crowd_learn(&c, 1);
	assert_int_equal(c.events[EVENT_HELD], before + 1);
	end(&c);
}

/* What rule 0 may hold, in place of what crowd_start() has said. */
static void rule_cap(struct crowd *c, uint64_t cap)
{
	struct rule r = {.nnear = 1,
			 .nfar = 1,
			 .vlan = RULE_ANY_VLAN,
			 .learn = LEARN_ALONE,
			 .peer = PEER_NONE,
			 .path_mtu = 1024,
			 .policy = POLICY_EARLY,
			 .cap = cap};

	engine_rules(c->e, &r, 1, c->now);
}

/* Lane @i sends until what the rule may hold is full. */
static void fill(struct crowd *c, uint32_t i)
{
	uint64_t before = engine_counter(c->e, EC_NO_ROOM);

	for (uint32_t k = 0; k < 1000 && engine_counter(c->e, EC_NO_ROOM) == before; k++) {
		crowd_request(c, i, 0);
		crowd_tick(c, 1000);
	}
	assert_true(engine_counter(c->e, EC_NO_ROOM) > before);
	c->lane[i].psn--; /* the last one was not taken */
	c->lane[i].msn--;
}

/* Lane @i asks again for its latest request, which was refused. */
static void repeat(struct crowd *c, uint32_t i)
{
	crowd_request(c, i, 0);
	crowd_tick(c, 1000);
	c->lane[i].psn--;
	c->lane[i].msn--;
}

/* FAST-7: room that comes is a neighbour's before a host can use it, again and again: its host is
 * not asked so often that it gives up. What it asks for later is taken when there is room. */
static void test_room_taken(void **state)
{
	const uint32_t rounds = 8;
	uint64_t naks;
	struct crowd c;

	(void)state;
	start(&c, 2, 64 * MIB, PEER_NONE);
	hold_idle(&c, 1);
	rule_cap(&c, 64 * 1024);
	c.payload = 1024;
	fill(&c, 0);
	repeat(&c, 1);
	naks = engine_counter(c.e, EC_NAKS_SENT);
	for (uint32_t k = 0; k < rounds; k++) {
		crowd_answer(&c, 0, c.lane[0].msn - 1, AETH_ACK_UNLIMITED, c.lane[0].msn);
		crowd_tick(&c, 10 * MS);
		assert_int_equal(engine_custody(c.e, -1, c.now).packets, 0);
		fill(&c, 0);
		repeat(&c, 1);
	}
	/* lane 0 was asked in each round, and went on */
	assert_in_range(engine_counter(c.e, EC_NAKS_SENT) - naks, rounds, rounds + 2);
	crowd_answer(&c, 0, c.lane[0].msn - 1, AETH_ACK_UNLIMITED, c.lane[0].msn);
	crowd_tick(&c, 10 * MS);
	crowd_request(&c, 1, 0);
	crowd_tick(&c, MS);
	assert_int_equal(engine_custody(c.e, -1, c.now).packets, 1);
	assert_int_equal(c.last.qpn, CROWD_LQPN + 1);
	assert_int_equal(c.last.msn, c.lane[1].msn);
	end(&c);
}

/* Waiting for a responder that is never ready has an end, and the memory comes back. */
static void test_rnr_budget(void **state)
{
	struct crowd c;

	(void)state;
	start(&c, 1, 64 * MIB, PEER_NONE);
	stand_still(&c);
	for (int s = 0; s < 600 && !c.events[EVENT_FAULT]; s++) {
		crowd_answer(&c, 0, CROWD_LEARN, AETH_RNR_NAK, CROWD_LEARN);
		for (int k = 0; k < 10; k++)
			crowd_tick(&c, 100 * MS);
	}
	assert_int_equal(c.events[EVENT_FAULT], 1);
	assert_int_equal(engine_custody(c.e, -1, c.now).packets, 0);
	end(&c);
}

/* What the transmit ring refuses is due still: the ACK leaves when there is room. */
static void test_ack_after_full_ring(void **state)
{
	struct crowd c;

	(void)state;
	start(&c, 1, 64 * MIB, PEER_NONE);
	c.refuse = 1u << PORT_LAN;
	crowd_request(&c, 0, 0);
	crowd_tick(&c, 1000);
	assert_int_equal(c.events[EVENT_HELD], 1);
	assert_true(c.refused > 0);
	c.refuse = 0;
	for (int k = 0; k < 100; k++)
		crowd_tick(&c, MS);
	assert_int_equal(c.last.syndrome, AETH_ACK_UNLIMITED);
	assert_int_equal(c.last.msn, CROWD_LEARN + 1);
	end(&c);
}

/* So does the NAK of a gap, although it is sent once only. */
static void test_nak_after_full_ring(void **state)
{
	struct crowd c;

	(void)state;
	start(&c, 1, 64 * MIB, PEER_NONE);
	crowd_request(&c, 0, 0);
	crowd_tick(&c, 1000);
	assert_int_equal(c.last.msn, CROWD_LEARN + 1);
	c.refuse = 1u << PORT_LAN;
	crowd_request(&c, 0, 2); /* two are missing */
	crowd_tick(&c, 1000);
	assert_true(c.refused > 0);
	c.refuse = 0;
	for (int k = 0; k < 50; k++) {
		crowd_request(&c, 0, 0);
		crowd_tick(&c, MS);
	}
	assert_int_equal(c.last.syndrome, AETH_NAK_SEQ);
	assert_int_equal(c.last.psn, c.lane[0].psn - 50 - 1 - 2);
	end(&c);
}

/* So does the NAK that tells of a fault. */
static void test_fault_after_full_ring(void **state)
{
	struct crowd c;

	(void)state;
	start(&c, 1, 64 * MIB, PEER_NONE);
	crowd_request(&c, 0, 0);
	crowd_tick(&c, 1000);
	c.refuse = 1u << PORT_LAN;
	crowd_answer(&c, 0, CROWD_LEARN, AETH_NAK_ACCESS, CROWD_LEARN);
	crowd_request(&c, 0, 0);
	crowd_tick(&c, 1000);
	assert_int_equal(c.events[EVENT_FAULT], 1);
	assert_true(c.refused > 0);
	c.refuse = 0;
	for (int k = 0; k < 50; k++)
		crowd_tick(&c, MS);
	assert_int_equal(c.last.syndrome, AETH_NAK_ACCESS);
	end(&c);
}

/* A request that the WAN's ring refuses is in custody, and leaves when there is room. */
static void test_request_after_full_ring(void **state)
{
	struct crowd c;
	uint64_t before;

	(void)state;
	start(&c, 1, 64 * MIB, PEER_NONE);
	before = c.tx[PORT_WAN];
	c.refuse = 1u << PORT_WAN;
	crowd_request(&c, 0, 0);
	crowd_tick(&c, 1000);
	assert_int_equal(engine_custody(c.e, -1, c.now).packets, 1);
	assert_int_equal(c.tx[PORT_WAN], before);
	c.refuse = 0;
	for (int k = 0; k < 100; k++)
		crowd_tick(&c, MS);
	assert_true(c.tx[PORT_WAN] > before);
	end(&c);
}

/* Time goes on until @until, and the engine is called when it wants to be. How often that was. */
static unsigned int calls_until(struct crowd *c, uint64_t until)
{
	unsigned int n = 0;

	while (c->now < until && n < 1000000) {
		uint64_t next = engine_deadline(c->e);

		crowd_tick(c, next < c->now ? 0 : (next < until ? next : until) - c->now);
		n++;
	}
	return n;
}

/* While ports have no room the engine waits, and looks again only now and then. */
static void test_full_ring_waits(void **state)
{
	uint64_t before;
	struct crowd c;

	(void)state;
	start(&c, 2, 64 * MIB, PEER_NONE);
	before = engine_counter(c.e, EC_PSEUDO_ACKS);
	c.refuse = 1u << PORT_LAN | 1u << PORT_WAN;
	crowd_request(&c, 0, 0);
	crowd_request(&c, 1, 0);
	crowd_tick(&c, 1000);
	assert_int_equal(engine_custody(c.e, -1, c.now).packets, 2);
	assert_true(calls_until(&c, c.now + SEC) < 3000);
	c.refuse = 0;
	calls_until(&c, c.now + 10 * MS);
	assert_int_equal(c.last.msn, CROWD_LEARN + 1);
	assert_int_equal(engine_counter(c.e, EC_PSEUDO_ACKS) - before, 2);
	end(&c);
}

/* What a port can never send is no reason to try for ever. */
static void test_impossible_frame(void **state)
{
	struct crowd c;

	(void)state;
	start(&c, 1, 64 * MIB, PEER_NONE);
	c.impossible = 1u << PORT_WAN;
	crowd_request(&c, 0, 0);
	crowd_tick(&c, 1000);
	assert_true(engine_counter(c.e, EC_TX_IMPOSSIBLE) > 0);
	assert_int_equal(engine_counter(c.e, EC_TX_FULL), 0);
	/* it is as if the WAN had lost it: sent again now and then, a fault in the end */
	assert_true(calls_until(&c, c.now + 60 * SEC) < 60000);
	assert_true(engine_counter(c.e, EC_TX_IMPOSSIBLE) < 200);
	assert_int_equal(c.events[EVENT_FAULT], 1);
	end(&c);
}

/* A report over one large hole, said many times: only what is missing is sent again, and once. */
static void test_large_hole(void **state)
{
	uint32_t n = 20000, have = 10;
	uint64_t before;
	struct crowd c;

	(void)state;
	start(&c, 1, 256 * MIB, 0);
	crowd_hold(&c, 0);
	crowd_progress(&c, 0);
	c.payload = 256;
	for (uint32_t k = 0; k < n; k++) {
		crowd_request(&c, 0, 0);
		if (k % 32 == 0) {
			crowd_tick(&c, 1000);
			crowd_room(&c, 0, CROWD_LEARN + 1, 100000);
		}
	}
	crowd_tick(&c, 1000);
	before = c.tx[PORT_WAN];
	for (int k = 0; k < 200; k++) {
		crowd_report_hole(&c, 0, have);
		crowd_tick(&c, 10000);
	}
	assert_int_equal(engine_counter(c.e, EC_BAD_REPORT), 0);
	assert_true(c.tx[PORT_WAN] - before <= n - have);
	crowd_progress(&c, 0);
	crowd_tick(&c, 1000);
	assert_int_equal(engine_custody(c.e, -1, c.now).packets, 0);
	end(&c);
}

/* A request to a queue pair that nobody has, from a host of @hosts. */
static void made_up(struct crowd *c, uint32_t i, uint32_t hosts)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 9};
	struct build_spec s = {.opcode = OP_SEND_ONLY, .dqpn = 0x800000 + i, .psn = i};
	uint8_t frame[FRAME_MAX];
	struct template t;
	struct ip_addr from, to;

	ip_addr_parse("10.1.0.1", &from);
	ip_addr_parse("10.2.0.1", &to);
	from.b[15] = (uint8_t)(from.b[15] + i % hosts);
	template_make(&t, mac, mac, FRAME_VLAN_NONE, &from, &to, 0xc001);
	s.t = &t;
	engine_rx(c->e, PORT_LAN, frame, build_packet(frame, &s), c->now);
}

/* Lane @i is known, held, and its host is answered. */
static void carried(struct crowd *c, uint32_t i)
{
	uint64_t acks = engine_counter(c->e, EC_PSEUDO_ACKS);

	crowd_request(c, i, 0);
	crowd_tick(c, MS);
	assert_true(engine_counter(c->e, EC_PSEUDO_ACKS) > acks);
	assert_int_equal(c->last.qpn, CROWD_LQPN + i);
	crowd_answer(c, i, c->lane[i].msn - 1, AETH_ACK_UNLIMITED, c->lane[i].msn);
	crowd_tick(c, MS);
}

/* Made-up queue pairs have no place of a connection: neither of one that is there, nor for long of
 * one to come, and a host that makes up many takes none from others. */
static void test_half_known(void **state)
{
	struct engine_memory m;
	struct crowd c;

	(void)state;
	assert_true(crowd_start(&c, 1000, 64 * MIB, PORT_LAN, PEER_NONE));
	for (uint32_t i = 0; i < 900; i++)
		crowd_learn(&c, i);
	assert_int_equal(c.events[EVENT_PAIRED], 900);
	for (uint32_t i = 0; i < 20000; i++) {
		made_up(&c, i, 200);
		if (i % 100 == 0) {
			crowd_tick(&c, 10000);
			carried(&c, i % 900);
		}
	}
	engine_memory(c.e, &m);
	assert_int_equal(m.conns, 900);
	assert_true(m.flows <= 2 * 900 + 2 * 1000);
	assert_true(engine_counter(c.e, EC_TABLE_FULL) > 10000);
	assert_int_equal(c.events[EVENT_CROWDED], 1);
	/* a new connection waits for a place, but not for long */
	for (uint32_t k = 0; k < 20 && c.events[EVENT_PAIRED] == 900; k++) {
		crowd_learn(&c, 900);
		crowd_tick(&c, 10 * MS);
	}
	assert_int_equal(c.events[EVENT_PAIRED], 901);
	carried(&c, 900);
	for (uint32_t k = 0; k < 1200; k++)
		crowd_tick(&c, 10 * MS);
	engine_memory(c.e, &m);
	assert_int_equal(m.flows, 2 * 901);
	/* one host alone */
	for (uint32_t i = 0; i < 20000; i++)
		made_up(&c, i, 1);
	engine_memory(c.e, &m);
	assert_true(m.flows <= 2 * 901 + 2 * 1000 / 4);
	assert_true(m.flows > 2 * 901 + 64);
	end(&c);
}

/* A place given to another flow: what the first one noted there speaks for nobody. */
static void test_half_known_again(void **state)
{
	struct crowd c;

	(void)state;
	assert_true(crowd_start(&c, 1000, 64 * MIB, PORT_LAN, PEER_NONE));
	for (uint32_t i = 0; i < 5000; i++) {
		made_up(&c, i, 200);
		crowd_tick(&c, MS);
	}
	assert_int_equal(engine_counter(c.e, EC_TABLE_FULL), 0);
	for (uint32_t i = 0; i < 100; i++)
		crowd_learn(&c, i);
	assert_int_equal(c.events[EVENT_PAIRED], 100);
	for (uint32_t i = 0; i < 100; i++)
		carried(&c, i);
	end(&c);
}

/* The first frame of a host came by the wrong port: nothing is settled by it. */
static void test_wrong_side(void **state)
{
	uint8_t frame[FRAME_MAX];
	struct crowd c;
	uint32_t len;

	(void)state;
	assert_true(crowd_start(&c, 1, 64 * MIB, PORT_LAN, PEER_NONE));
	len = crowd_frame(&c, 0, frame);
	engine_rx(c.e, PORT_WAN, frame, len, c.now);
	crowd_tick(&c, MS);
	crowd_learn(&c, 0);
	assert_int_equal(c.events[EVENT_PAIRED], 1);
	carried(&c, 0);
	/* and now it is */
	len = crowd_frame(&c, 0, frame);
	engine_rx(c.e, PORT_WAN, frame, len, c.now);
	c.lane[0].psn--;
	c.lane[0].msn--;
	crowd_tick(&c, 2 * SEC);
	carried(&c, 0);
	end(&c);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_small),
		cmocka_unit_test(test_stuck_lane_share),
		cmocka_unit_test(test_stuck_lane_opening),
		cmocka_unit_test(test_room_taken),
		cmocka_unit_test(test_rnr_budget),
		cmocka_unit_test(test_ack_after_full_ring),
		cmocka_unit_test(test_nak_after_full_ring),
		cmocka_unit_test(test_fault_after_full_ring),
		cmocka_unit_test(test_request_after_full_ring),
		cmocka_unit_test(test_full_ring_waits),
		cmocka_unit_test(test_impossible_frame),
		cmocka_unit_test(test_large_hole),
		cmocka_unit_test(test_half_known),
		cmocka_unit_test(test_half_known_again),
		cmocka_unit_test(test_wrong_side),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
