// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * CONV-8: how the QP of a requester is broken whose data was lost (fault/), against hosts of
 * several habits: one that tells what it expects, one that has said so already, one whose ACKs are
 * of an older date, one that takes anything, one that is dead, one that will not fail.
 */
#include "engine/core/core.h"
#include "tests/unit/engine_rig.h"

#include "wire/cm.h"

/* The near host's responder. */
struct habit {
	uint32_t expects;
	uint32_t stale; /* PSN that its ACKs to duplicates bear, if not the one before @expects */
	bool is_stale;
	bool nak_spent; /* silent to what is ahead */
	bool in_send;	/* in the middle of a SEND, and does not look at lengths */
	bool dead, immortal;
	uint32_t forged; /* so many probes are refused in its name */
	uint32_t probes, executed;
	bool failed;
};

/* fault/broken.c, CONFIRM_MAX */
#define CONFIRM 12

static uint64_t count(struct rig *r, enum engine_counter c)
{
	return engine_counter(r->e, c);
}

static uint8_t state(struct rig *r)
{
	return rig_conn(r).lane[LANE_OUT].state;
}

static void answer(struct rig *r, uint32_t psn, uint8_t syndrome)
{
	rig_rx(r, NEAR, "11 40ffff 00000022 00%06x %02x000000", psn, syndrome);
}

static void request(struct rig *r, struct habit *h, const struct frame *f)
{
	int32_t ahead = psn_diff(f->psn, h->expects);

	/* nothing that could be executed as data, ever */
	assert_true(f->opcode == OP_SEND_MIDDLE || f->opcode == OP_WRITE_MIDDLE);
	assert_int_equal(f->payload_len, 0);
	assert_int_equal(f->dqpn, 0x11);
	assert_true(f->ackreq);
	h->probes++;
	if (h->forged) {
		h->forged--;
		answer(r, f->psn, AETH_NAK_INVALID);
	}
	if (h->dead || h->failed)
		return;
	if (h->immortal) {
		answer(r, f->psn, 0x1f);
	} else if (ahead > 0) {
		if (!h->nak_spent)
			answer(r, h->expects, AETH_NAK_SEQ);
		h->nak_spent = true;
	} else if (ahead < 0) {
		answer(r, h->is_stale ? h->stale : psn_sub(h->expects, 1), 0x1f);
	} else if (h->in_send && f->opcode == OP_SEND_MIDDLE) {
		h->executed++;
		answer(r, h->expects, 0x1f);
		h->expects = psn_add(h->expects, 1);
	} else {
		h->failed = true;
		answer(r, h->expects, AETH_NAK_INVALID);
	}
}

/* Lets @ns pass; the host answers what comes. Nothing may reach the far host. */
static void live(struct rig *r, struct habit *h, uint64_t ns)
{
	uint64_t end = r->now + ns;

	while (r->now < end) {
		rig_pass(r, RIG_MS);
		while (r->at < r->nout) {
			const struct rig_frame *o = rig_sent(r, PORT_LAN);
			struct frame f;

			assert_int_equal(frame_parse(o->data, o->len, &f), FRAME_OK);
			assert_true(icrc_ok(&f));
			if (f.op->flags & OPF_REQUEST)
				request(r, h, &f);
		}
		rig_forget(r);
	}
}

/* The peer says that the responder refused what was acknowledged. */
static void refuse(struct rig *r, uint32_t psn, uint8_t syndrome)
{
	struct report p = r->open;

	p.type = REPORT_PROGRESS;
	p.seq = ++r->seq;
	p.cum = p.hi = p.una = psn;
	p.room = psn_add(psn, 100);
	p.una_msn = psn;
	p.una_ackable = true;
	p.credit = 0x1f;
	p.refusal = syndrome;
	p.refusal_psn = psn;
	p.reason = REASON_NAK;
	engine_rx_report(r->e, 0, &p, r->now);
	engine_tick(r->e, r->now); /* it judges what was refused */
	rig_check(r);
}

/* An idle requester: PSN 6 is told to be done, and then refused. */
static struct rig *idle_fault(const struct engine_config *cfg)
{
	struct rig *r = rig_held(cfg, 0, POLICY_EARLY, RIG_MTU);

	rig_rx(r, NEAR, SEND_ONLY("000006"));
	rig_expect(r, PORT_WAN, SEND_ONLY("000006"));
	rig_expect(r, PORT_LAN, ACK_TO_NEAR, 6, 7);
	refuse(r, 6, AETH_NAK_ACCESS);
	assert_int_equal(state(r), LANE_FAULT);
	assert_int_equal(count(r, EC_FAULTS), 1);
	assert_int_equal(count(r, EC_LOST_PACKETS), 1);
	rig_forget(r);
	return r;
}

/* With at most @most probes, and as many that find it silent. */
static void broken(struct rig *r, struct habit *h, uint32_t most)
{
	live(r, h, 3000 * RIG_MS);
	assert_true(h->failed);
	assert_in_range(h->probes, 1 + CONFIRM, most + CONFIRM);
	assert_int_equal(count(r, EC_FAULT_PROBES), h->probes);
	assert_int_equal(count(r, EC_FAULT_BROKEN), 1);
	assert_int_equal(count(r, EC_FAULT_SILENT), 0);
	live(r, h, 20000 * RIG_MS);
	assert_int_equal(count(r, EC_FAULT_PROBES), h->probes);
	assert_int_equal(state(r), LANE_WATCH); /* its QP is quiet: let go */
}

/* The byte layout of a probe. */
static void test_probe(void **state_)
{
	struct rig *r = idle_fault(NULL);

	(void)state_;
	rig_pass(r, RIG_MS);
	rig_expect(r, PORT_LAN, "01 40ffff 00000011 80000000"); /* no PSN known */
	rig_quiet(r);
	answer(r, 0x777, AETH_NAK_SEQ);
	rig_quiet(r); /* nothing of it leaks */
	rig_pass(r, RIG_MS);
	rig_expect(r, PORT_LAN, "01 40ffff 00000011 80000777");
	answer(r, 0x777, AETH_NAK_INVALID);
	rig_quiet(r);
	/* whoever said that: it is in error if it answers nothing any more */
	for (uint32_t i = 1; i <= CONFIRM; i++) {
		rig_pass(r, 200 * RIG_MS);
		rig_expect(r, PORT_LAN, "01 40ffff 00000011 80%06x",
			   (0x777 + (i & 3) * 0x400000) & PSN_MASK);
	}
	rig_pass(r, 5000 * RIG_MS);
	rig_quiet(r);
	assert_int_equal(state(r), LANE_FAULT);
	assert_int_equal(count(r, EC_FAULT_DROPPED), 2);
	rig_destroy(r);
}

/* Wherever on the circle the host stands. */
static void test_learns_psn(void **state_)
{
	(void)state_;
	for (uint32_t psn = 0; psn < 1u << 24; psn += 0x1fffff) {
		struct rig *r = idle_fault(NULL);

		broken(r, &(struct habit){.expects = psn}, 4);
		rig_destroy(r);
		r = idle_fault(NULL);
		broken(r, &(struct habit){.expects = psn, .nak_spent = true}, 8);
		rig_destroy(r);
	}
}

/* ACKs to duplicates that say an older PSN than is expected now, and no more NAKs. */
static void test_stale_ack(void **state_)
{
	struct rig *r = idle_fault(NULL);

	(void)state_;
	broken(r,
	       &(struct habit){
		       .expects = 0x779, .is_stale = true, .stale = 0x774, .nak_spent = true},
	       40);
	rig_destroy(r);
}

/* What has passed from the far host is known. */
static void test_known_psn(void **state_)
{
	struct rig *r = rig_held(NULL, 0, POLICY_EARLY, RIG_MTU);

	(void)state_;
	rig_rx(r, FAR, "04 40ffff 00000011 80123456 61*8");
	rig_rx(r, NEAR, "11 40ffff 00000022 00123456 1f000001");
	rig_rx(r, NEAR, SEND_ONLY("000006"));
	refuse(r, 6, AETH_NAK_ACCESS);
	rig_forget(r);
	broken(r, &(struct habit){.expects = 0x123457}, 1);
	rig_destroy(r);
}

/* Somebody else refuses the first probes, in the name of a host that lives. */
static void test_forged_nak(void **state_)
{
	(void)state_;
	for (uint32_t psn = 0; psn < 1u << 24; psn += 0x1fffff) {
		struct rig *r = idle_fault(NULL);

		broken(r, &(struct habit){.expects = psn, .forged = 3}, 8);
		rig_destroy(r);
		r = idle_fault(NULL);
		broken(r, &(struct habit){.expects = psn, .forged = 3, .nak_spent = true}, 12);
		rig_destroy(r);
	}
}

/* In the middle of a SEND, and it takes a MIDDLE of any length: nothing is executed, and then it
 * fails. */
static void test_open_send(void **state_)
{
	struct rig *r = idle_fault(NULL);
	struct habit h = {.expects = 0x500, .in_send = true};

	(void)state_;
	broken(r, &h, 6);
	assert_int_equal(h.executed, 1);
	rig_destroy(r);
}

static void test_dead(void **state_)
{
	struct rig *r = idle_fault(NULL);
	struct habit h = {.dead = true};

	(void)state_;
	live(r, &h, 6000 * RIG_MS);
	assert_int_equal(count(r, EC_FAULT_SILENT), 1);
	assert_in_range(h.probes, 8, 16);
	live(r, &h, 20000 * RIG_MS);
	assert_in_range(h.probes, 8, 16);
	assert_int_equal(state(r), LANE_WATCH);
	rig_destroy(r);
}

/* A host that answers and does not fail: it is asked with measure, and as long as it lives nothing
 * that it sends is told to be done. */
static void test_immortal(void **state_)
{
	struct rig *r = idle_fault(NULL);
	struct habit h = {.immortal = true};

	(void)state_;
	live(r, &h, 60000 * RIG_MS);
	assert_int_equal(state(r), LANE_FAULT);
	assert_true(count(r, EC_FAULT_UNBROKEN) >= 2);
	assert_in_range(h.probes, 64, 7 * 64);
	rig_rx(r, NEAR, SEND_ONLY("000007"));
	rig_expect(r, PORT_LAN, "11 40ffff 00000011 00000007 62000007");
	rig_quiet(r);
	rig_destroy(r);
}

/* Something waits: the NAK first, with the responder's syndrome, and a while for it to take effect.
 * */
static void test_tell_first(void **state_)
{
	struct rig *r = rig_held(NULL, 0, POLICY_HONEST, RIG_MTU);

	(void)state_;
	rig_rx(r, NEAR, "00 40ffff 00000022 80000006 61*256");
	rig_expect(r, PORT_WAN, "00 40ffff 00000022 80000006 61*256");
	rig_expect(r, PORT_LAN, ACK_TO_NEAR, 6, 6);
	rig_rx(r, NEAR, "02 40ffff 00000022 80000007 61*8");
	rig_forget(r);
	refuse(r, 6, AETH_NAK_OPERATION);
	rig_expect(r, PORT_LAN, "11 40ffff 00000011 00000007 63000006");
	rig_pass(r, 400 * RIG_MS);
	rig_quiet(r);
	/* it asks again, since the NAK was lost: the same once more, and more time */
	rig_rx(r, NEAR, "02 40ffff 00000022 80000007 61*8");
	rig_expect(r, PORT_LAN, "11 40ffff 00000011 00000007 63000006");
	rig_pass(r, 400 * RIG_MS);
	rig_quiet(r);
	rig_pass(r, 300 * RIG_MS);
	assert_int_equal(rig_sent(r, PORT_LAN)->data[RIG_BTH], OP_SEND_MIDDLE);
	rig_destroy(r);
}

/* Nothing from afar reaches the host meanwhile, and nothing of the host's answers the far one. */
static void test_frozen(void **state_)
{
	struct rig *r = idle_fault(NULL);

	(void)state_;
	rig_rx(r, FAR, "04 40ffff 00000011 80000000 61*8");
	rig_rx(r, FAR, ACK_TO_NEAR, 6, 7);
	rig_rx(r, NEAR, "10 40ffff 00000022 00000000 1f000000 61*8");
	while (r->at < r->nout)
		assert_int_equal(rig_sent(r, PORT_LAN)->data[RIG_BTH], OP_SEND_MIDDLE);
	assert_int_equal(count(r, EC_FAULT_DROPPED), 3);
	rig_destroy(r);
}

/* POOL-9: a QP in error sends nothing. What comes a while after is another one, and no business of
 * the fault. */
static void test_next_incarnation(void **state_)
{
	struct rig *r = idle_fault(NULL);
	struct habit h = {.expects = 0};

	(void)state_;
	live(r, &h, 100 * RIG_MS);
	assert_true(h.failed);
	rig_rx(r, NEAR, SEND_ONLY("000007")); /* was on its way */
	rig_expect(r, PORT_LAN, "11 40ffff 00000011 00000007 62000007");
	live(r, &h, 2000 * RIG_MS);
	rig_rx(r, NEAR, SEND_ONLY("000100"));
	rig_expect(r, PORT_WAN, SEND_ONLY("000100"));
	rig_quiet(r);
	assert_int_equal(state(r), LANE_WATCH);
	rig_rx(r, FAR, ACK_TO_NEAR, 0x100, 1);
	rig_expect(r, PORT_LAN, ACK_TO_NEAR, 0x100, 1);
	rig_destroy(r);
}

/* Where its host and the far one count differently, what goes on within a host's window of where it
 * stood would mean another request there, and is refused: it was silent, and has not failed. What
 * is further off comes from another one. */
static void test_goes_on_renumbered(void **state_)
{
	static const int32_t ahead[] = {HOST_WINDOW - 1, HOST_WINDOW, 1 - HOST_WINDOW,
					-HOST_WINDOW};

	(void)state_;
	for (int i = 0; i < 4; i++) {
		struct rig *r = idle_fault(NULL);
		struct habit h = {.expects = 0};

		undone_watch(NULL); /* changed by hand */
		flow_ref(r->e, lane_index(r->open.lane))->lane.fault.renumbers = true;
		live(r, &h, 2000 * RIG_MS);
		assert_true(h.failed);
		rig_rx(r, NEAR, SEND_ONLY("%06x"), psn_add(7, (uint32_t)ahead[i]));
		assert_int_equal(state(r), i & 1 ? LANE_WATCH : LANE_FAULT);
		rig_destroy(r);
	}
}

#define CM_HEAD "64 40ffff 00000001 00000001 | 80010000 00000001 | 01070203 00*4 00000000000000aa"
#define CM_REQ_ CM_HEAD "0010 0000 00*4 | 0000abcd 00*28 000011 00*8 01 000700 00*3 10 00*181"
#define CM_REP_ CM_HEAD "0013 0000 00*4 | 00001234 0000abcd 00*4 000022 00*5 000000 00*3 01 00*205"

/* The third remedy, where the connection manager made the connection. */
static void test_disconnect(void **state_)
{
	struct rule rule = rig_rule(PEER_NONE, POLICY_EARLY, RIG_MTU);
	struct engine_config cfg = {.pool_bytes = 8 << 20, .max_conns = 16, .seed = 1};
	struct rig *r = rig_create(&cfg, &rule);
	unsigned int dreqs = 0;

	(void)state_;
	rig_rx(r, NEAR, CM_REQ_);
	rig_rx(r, FAR, CM_REP_);
	rig_rx(r, NEAR, SEND_ONLY("000000"));
	rig_rx(r, FAR, ACK_TO_NEAR, 0, 1);
	rig_rx(r, NEAR, SEND_ONLY("000001"));
	assert_int_equal(state(r), LANE_HELD);
	rig_rx(r, FAR, "11 40ffff 00000011 00000001 62000001");
	assert_int_equal(state(r), LANE_FAULT);
	rig_forget(r);
	rig_pass(r, RIG_MS);
	rig_expect(r, PORT_LAN, "01 40ffff 00000011 80000000");
	rig_quiet(r); /* not before the QP has failed: a disconnect is no error to an application */
	answer(r, 0, AETH_NAK_INVALID);
	rig_pass(r, 2000 * RIG_MS);
	for (int i = 0; i < CONFIRM; i++)
		assert_int_equal(rig_sent(r, PORT_LAN)->data[RIG_BTH], OP_SEND_MIDDLE);
	while (r->at < r->nout) {
		const struct rig_frame *o = rig_sent(r, PORT_LAN);
		struct frame f;
		struct cm cm;

		assert_int_equal(frame_parse(o->data, o->len, &f), FRAME_OK);
		assert_true(icrc_ok(&f));
		assert_int_equal(cm_parse(&f, &cm), CM_DREQ);
		assert_int_equal(cm.local_id, 0x1234); /* as the far host would say it */
		assert_int_equal(cm.remote_id, 0xabcd);
		assert_int_equal(cm.rqpn, 0x11);
		dreqs++;
	}
	assert_int_equal(dreqs, 2);
	assert_int_equal(count(r, EC_FAULT_DREQS), 2);
	rig_destroy(r);
}

/* The other direction's lane: its requests find no responder any more, and its opener must know. */
static void test_other_direction(void **state_)
{
	struct rig *r = rig_held(NULL, 0, POLICY_EARLY, RIG_MTU);
	struct report open = rig_open(0x100, 0, RIG_MTU);
	struct habit dead = {.dead = true};
	bool told = false;

	(void)state_;
	rig_rx(r, FAR, "04 40ffff 00000011 800000ff 61*8");
	engine_rx_report(r->e, 0, &open, r->now);
	assert_int_equal(rig_conn(r).lane[LANE_IN].state, LANE_HELD);
	rig_rx(r, FAR, "04 40ffff 00000011 80000100 61*8"); /* delivered, not acknowledged */
	rig_rx(r, NEAR, SEND_ONLY("000006"));
	rig_forget(r);
	refuse(r, 6, AETH_NAK_ACCESS);
	rig_pass(r, RIG_MS);
	for (unsigned int i = 0; i < r->nrep; i++)
		told |= r->rep[i].type == REPORT_PROGRESS && r->rep[i].lane == 77 &&
			r->rep[i].refusal && r->rep[i].refusal_psn == 0x100 &&
			r->rep[i].reason == REASON_FAULT;
	assert_true(told);
	/* the first guess is what was sent to the host, and that is right here */
	rig_expect(r, PORT_LAN, "01 40ffff 00000011 80000101");
	rig_rx(r, FAR, "04 40ffff 00000011 80000101 61*8");
	rig_quiet(r);
	/* it may not be opened again while the fault lasts */
	rig_forget(r);
	open.gen = 6;
	engine_rx_report(r->e, 0, &open, r->now);
	assert_int_equal(r->nrep, 1);
	assert_int_equal(r->rep[0].type, REPORT_REFUSE);
	assert_int_equal(r->rep[0].reason, REASON_FAULT);
	/* nor does it outlive the fault: its opener may be gone */
	assert_int_equal(rig_conn(r).lane[LANE_IN].state, LANE_HELD);
	live(r, &dead, 26000 * RIG_MS);
	assert_int_equal(state(r), LANE_WATCH);
	assert_int_equal(rig_conn(r).lane[LANE_IN].state, LANE_WATCH);
	rig_destroy(r);
}

enum end {
	SILENT,
	FAILS,
	FAILS_IT_SEEMS, /* and its next request comes */
};

/* A stop may come any time after the fault. The next engine would wait for ever for a queue pair
 * that has failed to ask; of one that is silent, or is still being told, nobody knows. */
static void test_fence(void **state_)
{
	const struct engine_config cfg = {
		.pool_bytes = 8 << 20, .max_conns = 16, .seed = 1, .fence = true};
	struct flow_key key = {.dqpn = 0x22, .vlan = FRAME_VLAN_NONE};
	struct rig *r;

	(void)state_;
	ip_addr_parse("10.1.0.1", &key.src);
	ip_addr_parse("10.2.0.1", &key.dst);
	for (int what = SILENT; what <= FAILS_IT_SEEMS; what++) {
		r = idle_fault(&cfg);
		assert_true(engine_holds(r->e, &key));
		rig_pass(r, RIG_MS);
		rig_forget(r);
		if (what != SILENT)
			answer(r, 0, AETH_NAK_INVALID);
		assert_false(engine_may_stop(r->e));
		for (int ms = 0; ms < 6000 && !engine_may_stop(r->e); ms++) {
			assert_true(engine_holds(r->e, &key));
			if (what == FAILS_IT_SEEMS && ms == 1000)
				rig_rx(r, NEAR, SEND_ONLY("000007"));
			rig_pass(r, RIG_MS);
		}
		assert_true(engine_may_stop(r->e));
		assert_int_equal(state(r), LANE_FAULT);
		assert_int_equal(engine_holds(r->e, &key), what != FAILS);
		rig_destroy(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_probe),
		cmocka_unit_test(test_learns_psn),
		cmocka_unit_test(test_stale_ack),
		cmocka_unit_test(test_known_psn),
		cmocka_unit_test(test_forged_nak),
		cmocka_unit_test(test_open_send),
		cmocka_unit_test(test_dead),
		cmocka_unit_test(test_immortal),
		cmocka_unit_test(test_tell_first),
		cmocka_unit_test(test_frozen),
		cmocka_unit_test(test_next_incarnation),
		cmocka_unit_test(test_goes_on_renumbered),
		cmocka_unit_test(test_disconnect),
		cmocka_unit_test(test_other_direction),
		cmocka_unit_test(test_fence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
