// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Pairs learned from immediate data (NTT-4), and what the connection manager tells besides the
 * pair: the comm ids and how many READs a responder takes.
 */
#include "tests/unit/engine_rig.h"

#include "engine/core/core.h"
#include "engine/owner/notes.h"

static const struct engine_config small = {.pool_bytes = 8 << 20, .max_conns = 16, .seed = 1};

static struct rig *start(uint8_t learn)
{
	struct rule rule = rig_rule(PEER_NONE, POLICY_EARLY, RIG_MTU);

	rule.learn = learn;
	return rig_create(&small, &rule);
}

/* A SEND ONLY with immediate to @rqpn at the far host. */
static void send_imm(struct rig *r, uint32_t rqpn, uint32_t psn, uint32_t imm)
{
	rig_rx(r, NEAR, "05 40ffff 00%06x 80%06x %08x 61*8", rqpn, psn, imm);
	rig_forget(r);
}

static void write_imm(struct rig *r, uint32_t rqpn, uint32_t psn, uint32_t imm)
{
	rig_rx(r, NEAR, "0b 40ffff 00%06x 80%06x 00*8 00000055 00000008 %08x 61*8", rqpn, psn, imm);
	rig_forget(r);
}

static void ack(struct rig *r, uint32_t lqpn, uint32_t psn, uint32_t msn)
{
	rig_rx(r, FAR, "11 40ffff 00%06x 00%06x 1f%06x", lqpn, psn, msn);
	rig_forget(r);
}

/* NTT-4: the immediate names the sender, the ACK confirms it; a pseudo-ACK goes to the QP that was
 * named. */
static void test_ntt4_pair(void **state)
{
	struct rig *r = start(LEARN_IMMEDIATE);
	struct conn_info ci;

	(void)state;
	send_imm(r, 0x22, 5, 0x11);
	ack(r, 0x11, 5, 1);
	assert_int_equal(rig_pairs(r), 0); /* once is not enough */
	ack(r, 0x11, 5, 1);
	assert_int_equal(rig_pairs(r), 0); /* nor is the same again */
	write_imm(r, 0x22, 6, 0x11);
	ack(r, 0x11, 6, 2);
	assert_int_equal(rig_pairs(r), 1);
	ci = rig_conn(r);
	assert_int_equal(ci.learned_by, LEARNED_IMMEDIATE);
	assert_string_equal(learn_source_name(ci.learned_by), "immediate");
	assert_int_equal(ci.lqpn, 0x11);
	assert_int_equal(ci.rqpn, 0x22);
	send_imm(r, 0x22, 7, 0x11);
	ack(r, 0x11, 7, 3);
	rig_rx(r, NEAR, "05 40ffff 00000022 80000008 00000011 61*8");
	rig_expect(r, PORT_WAN, "05 40ffff 00000022 80000008 00000011 61*8");
	rig_expect(r, PORT_LAN, ACK_TO_NEAR, 8, 4);
	rig_destroy(r);
}

/* NTT-4: QPs of one host pair that run in step, all from PSN 0, cannot be told apart by PSNs; by
 * immediates they can. */
static void test_ntt4_in_step(void **state)
{
	(void)state;
	for (int imm = 0; imm < 2; imm++) {
		struct rig *r = start(imm ? LEARN_ALONE | LEARN_IMMEDIATE : LEARN_ALONE);
		struct conn_info ci;

		for (uint32_t psn = 0; psn < 8; psn++) {
			for (uint32_t n = 1; n <= 3; n++)
				send_imm(r, 0x20 + n, psn, 0x10 + n);
			for (uint32_t n = 1; n <= 3; n++)
				ack(r, 0x10 + n, psn, psn + 1);
		}
		assert_int_equal(rig_pairs(r), imm ? 3 : 0);
		for (uint32_t from = 0; engine_conn_next(r->e, from, r->now, &ci); from = ci.id + 1)
			if (ci.paired)
				assert_int_equal(ci.rqpn - ci.lqpn, 0x10);
		rig_destroy(r);
	}
}

/* NTT-4: off unless the rule says so. */
static void test_ntt4_off(void **state)
{
	struct rig *r = start(LEARN_CM);

	(void)state;
	for (uint32_t psn = 0; psn < 20; psn++) {
		send_imm(r, 0x22, psn, 0x11);
		ack(r, 0x11, psn, psn + 1);
	}
	assert_int_equal(rig_pairs(r), 0);
	assert_int_equal(engine_counter(r->e, EC_PASSED), 40);
	rig_destroy(r);
}

/* NTT-4: what cannot be a QPN, or is one in the wrong byte order, or belongs to no pair, teaches
 * nothing. */
static void test_ntt4_no_qpn(void **state)
{
	static const uint32_t imm[] = {0, 1, 0x01000011, 0x11000000, 0xffffffff, 0x77};

	(void)state;
	for (size_t i = 0; i < sizeof(imm) / sizeof(imm[0]); i++) {
		struct rig *r = start(LEARN_IMMEDIATE);

		for (uint32_t psn = 0; psn < 20; psn++) {
			send_imm(r, 0x22, psn, imm[i]);
			ack(r, 0x11, psn, psn + 1);
		}
		assert_int_equal(rig_pairs(r), 0);
		assert_int_equal(engine_counter(r->e, EC_PASSED), 40);
		rig_destroy(r);
	}
}

/* NTT-4: an application uses immediates for something else, and one happens to be the number of a
 * QP that exists: the ACKs that go there do not bear this flow's PSNs, so nothing is taken. */
static void test_ntt4_accident(void **state)
{
	struct rig *r = start(LEARN_IMMEDIATE);

	(void)state;
	for (uint32_t m = 0; m < 20; m++) {
		send_imm(r, 0x22, 100 + m, 0x13);
		ack(r, 0x11, 100 + m, m + 1);
		rig_rx(r, NEAR, "04 40ffff 00000023 80%06x 61*8", 500 + m);
		ack(r, 0x13, 500 + m, m + 1);
	}
	assert_int_equal(rig_pairs(r), 0);
	rig_destroy(r);
}

/* NTT-4: contradictions. The count starts again; a pair that was believed and holds nothing is
 * taken back. */
static void test_ntt4_contradiction(void **state)
{
	struct rig *r = start(LEARN_IMMEDIATE);

	(void)state;
	for (uint32_t m = 0; m < 20;
	     m++) { /* now one, now the other: both are acknowledged alike */
		send_imm(r, 0x22, m, m & 1 ? 0x11 : 0x12);
		ack(r, 0x11, m, m + 1);
		ack(r, 0x12, m, m + 1);
	}
	assert_int_equal(rig_pairs(r), 0);
	assert_true(engine_counter(r->e, EC_LEARN_CONTRADICTIONS) > 0);
	for (uint32_t m = 20; m < 22; m++) {
		send_imm(r, 0x22, m, 0x11);
		ack(r, 0x11, m, m + 1);
	}
	assert_int_equal(rig_pairs(r), 1);
	send_imm(r, 0x22, 22, 0x12);
	assert_int_equal(rig_pairs(r), 0);
	rig_destroy(r);
}

/* NTT-4: two flows name the same QP. */
static void test_ntt4_two_claims(void **state)
{
	struct rig *r = start(LEARN_IMMEDIATE);

	(void)state;
	for (uint32_t m = 0; m < 20; m++) {
		send_imm(r, 0x22, m, 0x11);
		send_imm(r, 0x23, m, 0x11);
		ack(r, 0x11, m, m + 1);
	}
	assert_int_equal(rig_pairs(r), 0);
	rig_destroy(r);
}

/* NTT-4: what is held keeps its promises, whatever an immediate says then. */
static void test_ntt4_held(void **state)
{
	struct rig *r = start(LEARN_IMMEDIATE);

	(void)state;
	for (uint32_t m = 0; m < 3; m++) {
		send_imm(r, 0x22, m, 0x11);
		ack(r, 0x11, m, m + 1);
	}
	send_imm(r, 0x22, 3, 0x11);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].state, LANE_HELD);
	send_imm(r, 0x22, 4, 0x12);
	assert_int_equal(rig_pairs(r), 1);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].state, LANE_HELD);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].custody.packets, 2);
	rig_destroy(r);
}

#define CM_HEAD "64 40ffff 00000001 00000001 | 80010000 00000001 | 01070203 00*4 00000000000000aa"
/* Comm ids, QPNs, responder resources at 79 and 68 from the BTH on, initiator depth at 83 and 69 */
#define CM_REQ_                                                                                    \
	CM_HEAD "0010 0000 00*4 | 0000abcd 00*28 000011 09 000000 04 000000 00 000700 00*3 30 "    \
		"00*181"
#define CM_REP_ CM_HEAD "0013 0000 00*4 | 00001234 0000abcd 00*4 000022 00*5 000900 00 07 05 00*206"

static const struct flow *flow_to(struct rig *r, uint32_t dqpn)
{
	for (uint32_t i = 0; i < r->e->nflows; i++)
		if (r->e->flows[i].used && r->e->flows[i].key.dqpn == dqpn)
			return &r->e->flows[i];
	return NULL;
}

/* The first PSN from @psn on whose note the packet after it overwrites. */
static uint32_t overwritten(struct rig *r, uint32_t psn)
{
	const struct flow_key *k = &flow_to(r, 0x22)->key;
	uint32_t tag;

	while (match_slot(r->e, &k->src, &k->dst, k->vlan, psn, PSN_NONE, &tag) !=
	       match_slot(r->e, &k->src, &k->dst, k->vlan, psn + 1, PSN_NONE, &tag))
		psn++;
	return psn;
}

/* The note of a packet tells which number the responder has counted to. That of the next one, where
 * it has overwritten it, counts one more. */
static void test_note_overwritten(void **state)
{
	struct rig *r = start(LEARN_ALONE | LEARN_IMMEDIATE);
	uint32_t psn;

	(void)state;
	send_imm(r, 0x22, 5, 0x11);
	psn = overwritten(r, 6);
	rig_destroy(r);
	for (unsigned int i = 0; i < 2; i++, psn += 2) {
		r = start(LEARN_ALONE | LEARN_IMMEDIATE);
		send_imm(r, 0x22, psn - 1, 0x11);
		ack(r, 0x11, psn - 1, 1);
		rig_pass(r, RIG_MS);
		send_imm(r, 0x22, psn, 0x11);
		send_imm(r, 0x22, psn + 1, 0x11);
		ack(r, 0x11, psn, 2);
		assert_int_equal(rig_pairs(r), 1);
		assert_int_equal(flow_to(r, 0x22)->lane.calibrated, i);
		ack(r, 0x11, psn + 1, 3);
		assert_true(flow_to(r, 0x22)->lane.calibrated);
		rig_destroy(r);
	}
}

/* NTT-6, spec: IBTA 12.6: each flow knows what the responder of its requests takes at a
 * time. */
static void test_cm_read_depth(void **state)
{
	struct rig *r = start(LEARN_CM);
	const struct flow *out, *in;

	(void)state;
	rig_rx(r, NEAR, CM_REQ_);
	rig_rx(r, FAR, CM_REP_);
	assert_int_equal(rig_pairs(r), 1);
	out = flow_to(r, 0x22);
	in = flow_to(r, 0x11);
	assert_non_null(out);
	assert_non_null(in);
	assert_int_equal(out->read_depth, 7); /* the passive side's responder */
	assert_int_equal(in->read_depth, 9);
	assert_int_equal(out->comm_id, 0xabcd); /* who sends in this direction */
	assert_int_equal(in->comm_id, 0x1234);
	rig_destroy(r);
}

/* NTT-6: the appliance near the responder, which gives it no more READs at a time, is told that. */
static void test_cm_read_depth_told(void **state)
{
	struct rule rule = rig_rule(0, POLICY_EARLY, RIG_MTU);
	struct rig *r;
	const struct report *last;

	(void)state;
	rule.prefetch = PREFETCH_ON;
	r = rig_create(&small, &rule);
	rig_rx(r, NEAR, CM_REQ_);
	rig_rx(r, FAR, CM_REP_);
	rig_rx(r, NEAR, SEND_ONLY("000005"));
	rig_rx(r, FAR, ACK_TO_NEAR, 5, 1);
	r->nrep = 0;
	rig_rx(r, NEAR, SEND_ONLY("000006"));
	assert_int_equal(r->nrep, 1);
	r->open = r->rep[0];
	rig_answer(r, REPORT_ACCEPT, REASON_NONE);
	rig_progress(r, 7, 7, 2);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].state, LANE_HELD);
	rig_forget(r);
	rig_rx(r, NEAR, "0c 40ffff 00000022 80000007 | 0000000000001000 00000007 00000008");
	assert_true(r->nrep > 0);
	last = &r->rep[r->nrep - 1];
	assert_int_equal(last->type, REPORT_RESP);
	assert_int_equal(last->depth, 7);
	rig_destroy(r);
}

/* NTT-6: not told, not known. */
static void test_no_read_depth(void **state)
{
	struct rig *r = start(LEARN_ALONE);

	(void)state;
	rig_learn(r, 0);
	assert_int_equal(rig_pairs(r), 1);
	assert_int_equal(flow_to(r, 0x22)->read_depth, 0);
	assert_int_equal(flow_to(r, 0x11)->comm_id, 0);
	rig_destroy(r);
}

/* The first step of the ladder: above 70 % of its share of the pool a requester gets CNPs, not too
 * many. */
static void test_cnp_when_pool_fills(void **state)
{
	static const struct engine_config little = {
		.pool_bytes = 2 << 20, .max_conns = 4, .seed = 1};
	struct rig *r = rig_held(&little, 0, POLICY_EARLY, RIG_MTU);
	uint64_t at_first = 0, cnps, full;
	uint32_t psn = 6;

	(void)state;
	/* the WAN is down: nothing is released. 10 us between packets */
	for (int i = 0; i < 10000 && !engine_counter(r->e, EC_NO_ROOM); i++, psn++) {
		struct engine_memory m;

		rig_rx(r, NEAR, "04 40ffff 00000022 80%06x 61*248", psn);
		engine_memory(r->e, &m);
		if (!engine_counter(r->e, EC_CNP_SENT)) {
			assert_true(m.custody_used <= m.custody_cap * 75 / 100);
		} else if (!at_first) {
			at_first = r->now;
			rig_expect(r, PORT_LAN, "81 00ffff 40000011 00000000 00*16");
		}
		rig_forget(r);
		r->now += 10000;
	}
	assert_true(at_first != 0);
	cnps = engine_counter(r->e, EC_CNP_SENT);
	full = r->now - at_first;
	assert_in_range(cnps, full / 100000, full / 50000 + 1);
	rig_destroy(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ntt4_pair),	 cmocka_unit_test(test_ntt4_in_step),
		cmocka_unit_test(test_ntt4_off),	 cmocka_unit_test(test_ntt4_no_qpn),
		cmocka_unit_test(test_ntt4_accident),	 cmocka_unit_test(test_ntt4_contradiction),
		cmocka_unit_test(test_ntt4_two_claims),	 cmocka_unit_test(test_ntt4_held),
		cmocka_unit_test(test_cm_read_depth),	 cmocka_unit_test(test_cm_read_depth_told),
		cmocka_unit_test(test_no_read_depth),	 cmocka_unit_test(test_cnp_when_pool_fills),
		cmocka_unit_test(test_note_overwritten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
