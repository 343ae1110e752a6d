// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Order between the queue pairs of two hosts (link/order.c), where it takes long: lanes that live
 * on for half of all PSNs, weeks after a fault, and more records than there are.
 */
#include "engine/core/core.h"
#include "engine/link/order_priv.h"
#include "tests/unit/engine_rig.h"

#define SEND   "04 40ffff 00%06x 80%06x 61*8" /* far QP, PSN */
#define ACK    "11 40ffff 00%06x 00%06x 1f%06x"
#define HOUR   (3600 * 1000 * RIG_MS)
#define STRIDE 60000u /* less than a host may be ahead */

/* One lane from the near host, which knows of MSNs what its peer says. */
struct lane_test {
	uint32_t far, near, psn, msn;
	struct report open;
};

static struct rig *start(enum ack_policy policy)
{
	static const struct engine_config cfg = {
		.pool_bytes = 128 << 20, .max_conns = 16, .seed = 1};
	struct rule rule = rig_rule(0, policy, RIG_MTU);
	struct rig *r;

	rule.order = ORDER_HOSTS;
	r = rig_create(&cfg, &rule);
	engine_peer_features(r->e, 0, PEER_FEATURE_SEAL | PEER_FEATURE_ORDER);
	return r;
}

static void progress(struct rig *r, struct lane_test *t)
{
	r->open = t->open;
	rig_progress(r, t->psn, t->psn, t->msn);
}

/* The peer has carried out the records that it was told of. */
static void carried_out(struct rig *r)
{
	for (unsigned int i = 0, n = r->nrep; i < n; i++) {
		const struct report *p = &r->rep[i];
		struct report a = {.type = REPORT_ORDER, .lane = p->lane, .gen = p->gen};

		if (p->type != REPORT_ORDER || !p->by_opener)
			continue;
		a.base = a.seq = p->seq + p->norder;
		engine_rx_report(r->e, 0, &a, r->now);
	}
	rig_forget(r);
}

/* The pair @far, @near is learned, and its lane agreed upon just now; nothing is in custody. */
static struct lane_test agreed(struct rig *r, uint32_t far, uint32_t near, uint32_t psn)
{
	struct lane_test t = {.far = far, .near = near, .psn = psn};

	while (t.msn < 5) {
		rig_rx(r, NEAR, SEND, far, t.psn);
		rig_rx(r, FAR, ACK, near, t.psn++, ++t.msn);
	}
	rig_forget(r);
	rig_rx(r, NEAR, SEND, far, t.psn++);
	assert_int_equal(r->rep[0].type, REPORT_OPEN);
	assert_true(r->rep[0].ordered);
	r->open = t.open = r->rep[0];
	rig_answer(r, REPORT_ACCEPT, REASON_NONE);
	t.msn++;
	progress(r, &t);
	return t;
}

/* And the peer has carried out what it was told. */
static struct lane_test held(struct rig *r, uint32_t far, uint32_t near, uint32_t psn)
{
	struct lane_test t = agreed(r, far, near, psn);

	rig_pass(r, 200 * RIG_MS); /* what passed counts no more */
	carried_out(r);
	return t;
}

/* How many ACKs the near QP @near was sent. */
static unsigned int acks(const struct rig *r, uint32_t near)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < r->nout; i++)
		n += r->out[i].port == PORT_LAN && r->out[i].data[RIG_BTH] == 0x11 &&
		     get_be24(r->out[i].data + RIG_BTH + 5) == near;
	return n;
}

/* Nothing is due, and nothing checked. */
static void send_unchecked(struct rig *r, uint32_t far, uint32_t psn)
{
	uint8_t data[FRAME_MAX];
	char text[64];

	snprintf(text, sizeof(text), SEND, far, psn);
	engine_rx(r->e, PORT_LAN, data, rig_build(r, data, NEAR, text), r->now);
}

/* All that the lane sends is truly acknowledged at once, for more than half of all PSNs. (The
 * responder has had many packets past us: each report skips.) */
static void live_long(struct rig *r, struct lane_test *t, uint32_t strange)
{
	for (uint32_t done = 0; done < (1u << 23) + 2 * STRIDE; done += STRIDE) {
		if (strange) /* a request that no lane holds */
			rig_rx(r, NEAR, SEND, strange, done);
		t->psn = psn_add(t->psn, STRIDE);
		t->msn++;
		progress(r, t);
		rig_rx(r, NEAR, SEND, t->far, t->psn++);
		rig_pass(r, 2 * RIG_MS);
		t->msn++;
		progress(r, t);
		rig_pass(r, 2 * RIG_MS);
		carried_out(r);
	}
}

/* A fault keeps the requests of its two hosts for a moment, and not again 25 days later. */
static void test_weeks_after_fault(void **state)
{
	struct rig *r = start(POLICY_EARLY);
	struct flow_key k = {.dqpn = 0x22, .vlan = FRAME_VLAN_NONE};

	(void)state;
	ip_addr_parse("10.1.0.1", &k.src);
	ip_addr_parse("10.2.0.1", &k.dst);
	pair_untold(r->e, &k, 1000);
	rig_rx(r, NEAR, SEND, 0x22, 5);
	rig_quiet(r);
	for (unsigned int days = 0; days < 60; days += 5) {
		r->now += days ? 5 * 24 * HOUR : 1001 * RIG_MS;
		engine_tick(r->e, r->now);
		rig_forget(r);
		rig_rx(r, NEAR, SEND, 0x22, 5);
		rig_expect(r, PORT_WAN, SEND, 0x22, 5);
	}
	rig_destroy(r);
}

/* Barriers that nobody answers use up our part of the records, and leave the peers theirs: each of
 * two appliances would wait for ever for the other to have room. */
static void test_records_of_peers(void **state)
{
	struct rig *r = start(POLICY_EARLY);
	struct lane_test t = held(r, 0x22, 0x11, 0);
	struct report p = {.type = REPORT_ORDER,
			   .by_opener = true,
			   .lane = 5,
			   .gen = 9,
			   .norder = 1,
			   .order[0] = {.lane = 1, .birth = 1, .psn = 1, .kind = ORDER_CLEAR}};
	bool taken = false;

	(void)state;
	engine_peer_event(r->e, 0, PEER_DOWN, r->now);
	for (unsigned int i = 0; i < ORDER_RECORDS / 2 + 10; i++) {
		send_unchecked(r, t.far, t.psn++);
		engine_tick(r->e, r->now += 25000);
		rig_forget(r);
	}
	rig_check(r);
	assert_true(mq_free_count(r->e->order->records) < ORDER_RECORDS / 2);
	engine_peer_event(r->e, 0, PEER_UP, r->now);
	engine_rx_report(r->e, 0, &p, r->now);
	engine_tick(r->e, r->now);
	for (unsigned int i = 0; i < r->nrep; i++)
		taken |= r->rep[i].type == REPORT_ORDER && !r->rep[i].by_opener &&
			 r->rep[i].lane == 5 && r->rep[i].seq == 1;
	assert_true(taken);
	rig_destroy(r);
}

/* Where there are records for one lane only, there is a barrier of one after the other. */
static void test_barrier_of_some(void **state)
{
	struct rig *r = start(POLICY_EARLY);
	struct lane_test a = held(r, 0x22, 0x11, 0), b = held(r, 0x44, 0x33, 0x500000);
	struct mqueue *records = r->e->order->records;
	struct mq_list taken;

	(void)state;
	mq_list_init(&taken);
	while (mq_free_count(records) > ORDER_RECORDS / 4 + 3)
		mq_push(records, &taken);
	send_unchecked(r, a.far, a.psn);
	send_unchecked(r, b.far, b.psn);
	for (unsigned int i = 0; i < 10; i++)
		engine_tick(r->e, r->now += RIG_MS);
	assert_int_equal(acks(r, a.near) + acks(r, b.near), 1);
	assert_int_equal(acks(r, a.near), 1); /* it was first */
	mq_flush(records, &taken);
	rig_check(r);
	rig_pass(r, 5 * RIG_MS);
	assert_int_equal(acks(r, a.near), 1);
	assert_int_equal(acks(r, b.near), 1);
	rig_destroy(r);
}

/* How many microseconds it takes until the near QP @near is sent an ACK. */
static unsigned int acked_after(struct rig *r, uint32_t near)
{
	uint64_t begin = r->now;

	while (!acks(r, near)) {
		assert_true(r->now - begin < 10 * RIG_MS);
		engine_tick(r->e, r->now += 5000);
	}
	return (unsigned int)(r->now - begin) / 1000;
}

/* Barriers follow each other quickly where each is of the same lane alone: there is nobody else who
 * could be spared one. */
static void test_barrier_of_one(void **state)
{
	struct rig *r = start(POLICY_EARLY);
	struct lane_test a = held(r, 0x22, 0x11, 0), b = held(r, 0x44, 0x33, 0x500000);

	(void)state;
	rig_rx(r, NEAR, SEND, a.far, a.psn++);
	acked_after(r, a.near);
	rig_forget(r);
	rig_rx(r, NEAR, SEND, a.far, a.psn++);
	assert_in_range(acked_after(r, a.near), 15, 30);
	rig_forget(r);
	rig_rx(r, NEAR, SEND, b.far, b.psn++);
	assert_in_range(acked_after(r, b.near), 195, 210);
	rig_forget(r);
	rig_rx(r, NEAR, SEND, a.far, a.psn++);
	rig_rx(r, NEAR, SEND, b.far, b.psn++);
	assert_in_range(acked_after(r, b.near), 195, 210);
	rig_destroy(r);
}

/* What is accepted behind a READ gets its barrier before the host may be told of it. When the READ
 * is answered there is another one, also where nothing new was accepted, or the host waits. */
static void test_barrier_behind_read(void **state)
{
	struct rig *r = start(POLICY_EARLY);
	struct lane_test a = held(r, 0x22, 0x11, 0);

	(void)state;
	rig_rx(r, NEAR, "0c 40ffff 00%06x 80%06x 00*8 00000007 00000040", a.far, a.psn);
	rig_rx(r, NEAR, SEND, a.far, a.psn + 1);
	rig_pass(r, 10 * RIG_MS);
	carried_out(r);
	rig_pass(r, 10 * RIG_MS);
	assert_int_equal(acks(r, a.near), 0);
	rig_rx(r, FAR, "10 40ffff 00%06x 00%06x 1f%06x 61*64", a.near, a.psn, a.msn + 1);
	rig_pass(r, 5 * RIG_MS);
	assert_int_equal(acks(r, a.near), 1);
	rig_destroy(r);
}

/* No record ever waited for an honest lane. When it ends, nothing of another one is lost. */
static void test_honest_ends(void **state)
{
	struct rig *r = start(POLICY_HONEST);
	struct lane_test a = held(r, 0x22, 0x11, 0), b = held(r, 0x44, 0x33, 0x500000);
	struct report close = {.type = REPORT_CLOSE,
			       .lane = a.open.lane,
			       .gen = a.open.gen,
			       .reason = REASON_IDLE};

	(void)state;
	live_long(r, &a, 0);
	rig_rx(r, NEAR, SEND, b.far, b.psn);
	close.key = a.open.key;
	engine_rx_report(r->e, 0, &close, r->now);
	engine_tick(r->e, r->now);
	rig_pass(r, 10 * RIG_MS);
	assert_int_equal(engine_counter(r->e, EC_ORDER_FAULTS), 0);
	b.psn++;
	b.msn++;
	progress(r, &b);
	rig_pass(r, 10 * RIG_MS);
	assert_int_equal(acks(r, b.near), 1);
	assert_int_equal(r->events[EVENT_FAULT], 0);
	rig_destroy(r);
}

/* The far host takes a connection down by its own DREQ and does not take the request @what. Returns
 * how many lanes are lost with that. */
static uint64_t abandoned(const char *what)
{
	struct rig *r = start(POLICY_EARLY);
	uint64_t lost;
	/* that request stands across the end of the PSNs */
	struct lane_test a = held(r, 0x22, 0x11, 0xfffff9), b = held(r, 0x44, 0x33, 0x500000);
	struct report refusal = a.open;
	struct flow *fl = flow_ref(r->e, lane_index(a.open.lane));
	struct flow *other = flow_partner(r->e, fl);
	unsigned int waits = 0;

	assert_int_equal(a.psn, PSN_MASK);
	rig_rx(r, NEAR, what, a.far, a.psn);
	rig_pass(r, 5 * RIG_MS);
	rig_rx(r, NEAR, SEND, b.far, b.psn);
	rig_pass(r, 5 * RIG_MS);
	undone_watch(NULL); /* changed by hand */
	lanes_gone(r->e, fl, other, 1u << other->side);
	rig_forget(r);
	refusal.type = REPORT_PROGRESS;
	refusal.seq = r->seq + 1;
	refusal.cum = refusal.hi = psn_add(a.psn, 1);
	refusal.room = psn_add(refusal.cum, 10000);
	refusal.credit = 0x1f;
	refusal.una = refusal.refusal_psn = a.psn;
	refusal.una_msn = a.msn;
	refusal.refusal = AETH_NAK_OPERATION;
	refusal.reason = REASON_TIMEOUT;
	engine_rx_report(r->e, 0, &refusal, r->now);
	engine_tick(r->e, r->now);
	rig_pass(r, 5 * RIG_MS);
	assert_int_equal(r->events[EVENT_ABANDONED], 1);
	lost = engine_counter(r->e, EC_ORDER_FAULTS);
	assert_int_equal(r->events[EVENT_FAULT], lost);
	for (unsigned int i = 0; i < r->nrep; i++) {
		for (unsigned int k = 0; k < r->rep[i].norder; k++) {
			if (r->rep[i].order[k].kind != ORDER_WAIT)
				continue;
			assert_int_equal(r->rep[i].order[k].lane, b.open.lane);
			waits++;
		}
	}
	assert_true(lost || waits > 0);
	rig_destroy(r);
	return lost;
}

/* The peer is told of the records once more, and none waits for a request that changes no memory. A
 * flag of rsockets is a WRITE of nothing. */
static void test_abandoned_waits_not(void **state)
{
	(void)state;
	assert_int_equal(abandoned(SEND), 0);
	assert_int_equal(abandoned("0b 40ffff 00%06x 80%06x 00*8 00000007 00000000 00000001"), 0);
	assert_int_equal(abandoned("0a 40ffff 00%06x 80%06x 00*8 00000007 00000040 61*64"), 1);
}

/* While requests pass that no lane holds the hosts are told only what is true, however long that
 * goes on. */
static void test_quiet_for_long(void **state)
{
	struct rig *r = start(POLICY_EARLY);
	struct lane_test t = held(r, 0x22, 0x11, 0);

	(void)state;
	live_long(r, &t, 0x99);
	rig_rx(r, NEAR, SEND, 0x99, 0xffff);
	rig_rx(r, NEAR, SEND, t.far, t.psn++);
	rig_pass(r, 50 * RIG_MS);
	assert_int_equal(acks(r, t.near), 0);
	rig_pass(r, 100 * RIG_MS);
	assert_int_equal(acks(r, t.near), 1);
	rig_destroy(r);
}

/* Where one that no lane holds had to be dropped its host waits for a timeout. So hosts that send
 * in bursts, seconds apart, are told only what is true from then on. */
static void test_quiet_after_drop(void **state)
{
	struct rig *r = start(POLICY_EARLY);
	struct lane_test t = held(r, 0x22, 0x11, 0);

	(void)state;
	rig_rx(r, NEAR, SEND, t.far, t.psn++);
	rig_pass(r, 5 * RIG_MS);
	assert_int_equal(acks(r, t.near), 1);
	rig_rx(r, NEAR, SEND, 0x99, 0);
	assert_int_equal(engine_counter(r->e, EC_ORDER_DROPPED), 1);
	for (uint32_t i = 0; i < 5; i++) {
		t.msn++;
		progress(r, &t);
		carried_out(r);
		rig_pass(r, 6000 * RIG_MS);
		rig_rx(r, NEAR, SEND, 0x99, i);
		rig_rx(r, NEAR, SEND, t.far, t.psn++);
		rig_pass(r, 500 * RIG_MS);
		assert_int_equal(acks(r, t.near), 0);
		rig_rx(r, NEAR, SEND, 0x99, 100 + i);
	}
	assert_int_equal(engine_counter(r->e, EC_ORDER_DROPPED), 1);
	t.msn++;
	progress(r, &t);
	rig_pass(r, 11000 * RIG_MS);
	carried_out(r);
	rig_rx(r, NEAR, SEND, t.far, t.psn++);
	rig_pass(r, 5 * RIG_MS);
	assert_int_equal(acks(r, t.near), 1);
	rig_destroy(r);
}

/* What was delivered before its barrier left no record. What is not must have one. */
static void test_waits_after_long(void **state)
{
	struct rig *r = start(POLICY_EARLY);
	struct lane_test t = held(r, 0x22, 0x11, 0);
	unsigned int waits = 0;

	(void)state;
	live_long(r, &t, 0x99);
	rig_pass(r, 200 * RIG_MS);
	carried_out(r);
	rig_rx(r, NEAR, SEND, t.far, t.psn++);
	rig_pass(r, 5 * RIG_MS);
	assert_int_equal(acks(r, t.near), 1);
	for (unsigned int i = 0; i < r->nrep; i++)
		for (unsigned int k = 0; r->rep[i].type == REPORT_ORDER && k < r->rep[i].norder;
		     k++)
			waits += r->rep[i].order[k].kind == ORDER_WAIT &&
				 r->rep[i].order[k].psn == t.psn;
	assert_true(waits > 0);
	rig_destroy(r);
}

/* What arrived waits for what its opener has not told yet. The opener stays away, and packets of
 * the far host come without it: what waits is given up. */
static void test_opener_gone(void **state)
{
	struct rig *r = start(POLICY_EARLY);
	struct report open = rig_open(0x100, 0, RIG_MTU);

	(void)state;
	(void)held(r, 0x22, 0x11, 0);
	open.sealed = open.ordered = true;
	open.seal_key[0] = 1;
	engine_rx_report(r->e, 0, &open, r->now);
	rig_rx(r, FAR, SEND, 0x11, 0x100);
	assert_int_equal(rig_conn(r).lane[LANE_IN].state, LANE_HELD);
	rig_quiet(r);
	engine_peer_event(r->e, 0, PEER_DOWN, r->now);
	rig_pass(r, 11000 * RIG_MS);
	rig_forget(r);
	r->native = true;
	rig_rx(r, FAR, SEND, 0x11, 0x100);
	rig_expect(r, PORT_LAN, SEND, 0x11, 0x100);
	assert_int_equal(rig_conn(r).lane[LANE_IN].state, LANE_WATCH);
	rig_destroy(r);
}

/* Whether the peer was told of the record @seq. */
static bool told_of(const struct rig *r, uint32_t seq)
{
	for (unsigned int i = 0; i < r->nrep; i++)
		if (r->rep[i].type == REPORT_ORDER && r->rep[i].by_opener && r->rep[i].seq == seq)
			return true;
	return false;
}

/* One SEND and its barrier each millisecond, none answered, until the peer is told of @seq once
 * more. How many. */
static unsigned int sends(struct rig *r, struct lane_test *t, uint32_t seq, unsigned int most)
{
	unsigned int n = 0;

	while (n < most && !told_of(r, seq)) {
		rig_forget(r);
		rig_rx(r, NEAR, SEND, t->far, t->psn++);
		rig_pass(r, RIG_MS);
		n++;
	}
	return n;
}

/* A record is lost, and others follow it all the time: it is sent again after a timeout, and as
 * soon as the peer tells of the gap. */
static void test_lost_before_others(void **state)
{
	for (int gap = 0; gap < 2; gap++) {
		struct rig *r = start(POLICY_EARLY);
		struct lane_test t = held(r, 0x22, 0x11, 0);
		struct report answer = {.type = REPORT_ORDER, .again_all = true};

		(void)state;
		rig_rx(r, NEAR, SEND, t.far, t.psn++);
		rig_pass(r, RIG_MS);
		for (unsigned int i = 0; i < r->nrep; i++)
			if (r->rep[i].type == REPORT_ORDER)
				answer.lane = r->rep[i].lane, answer.gen = r->rep[i].gen,
				answer.base = answer.seq = r->rep[i].seq;
		rig_forget(r);
		if (gap) {
			assert_int_equal(sends(r, &t, answer.seq, 100), 100);
			engine_rx_report(r->e, 0, &answer, r->now);
			engine_tick(r->e, r->now);
			assert_true(told_of(r, answer.seq));
		} else {
			assert_in_range(sends(r, &t, answer.seq, 2000), 100, 1000);
		}
		rig_destroy(r);
	}
}

/* How many ms pass, at most 1000, until a record is told. */
static unsigned int until_told(struct rig *r)
{
	rig_forget(r);
	for (unsigned int ms = 0; ms < 1000; ms++) {
		for (unsigned int i = 0; i < r->nrep; i++)
			if (r->rep[i].type == REPORT_ORDER && r->rep[i].by_opener)
				return ms;
		rig_pass(r, RIG_MS);
	}
	return 1000;
}

/* The first record of all is lost, when no round trip has been measured. */
static void test_first_lost(void **state)
{
	struct rig *r = start(POLICY_EARLY);
	struct lane_test t = agreed(r, 0x22, 0x11, 0);

	(void)state;
	rig_rx(r, NEAR, SEND, t.far, t.psn++);
	assert_true(until_told(r) < 49);
	assert_in_range(until_told(r), 49, 51);
	rig_destroy(r);
}

/* The far host's SENDs stand behind barriers. A lane does not wait for its own ones, as its host
 * executes one packet after the other in any case; another one does. */
static void test_waits_not_for_itself(void **state)
{
	struct rig *r = start(POLICY_EARLY);
	struct report open = rig_open(0x100, 0, RIG_MTU);
	struct report log = {.type = REPORT_ORDER,
			     .by_opener = true,
			     .gen = 9,
			     .norder = 4,
			     .order = {{.kind = ORDER_CLEAR, .psn = 0x101},
				       {.kind = ORDER_WAIT, .psn = 0x101},
				       {.kind = ORDER_CLEAR, .psn = 0x102},
				       {.kind = ORDER_WAIT, .psn = 0x102}}};

	(void)state;
	(void)held(r, 0x22, 0x11, 0);
	open.sealed = open.ordered = true;
	open.seal_key[0] = open.birth = 1;
	open.clear = 0x100;
	engine_rx_report(r->e, 0, &open, r->now);
	for (int i = 0; i < 3; i++)
		rig_rx(r, FAR, SEND, 0x11, 0x100 + i);
	rig_quiet(r);
	for (int i = 0; i < 4; i++) {
		log.order[i].lane = open.lane;
		log.order[i].birth = 1;
	}
	engine_rx_report(r->e, 0, &log, r->now);
	rig_pass(r, RIG_MS);
	rig_expect(r, PORT_LAN, SEND, 0x11, 0x100);
	rig_expect(r, PORT_LAN, SEND, 0x11, 0x101);
	log.seq = 4;
	log.norder = 2;
	log.order[0].lane = log.order[1].lane = open.lane + 1; /* of a lane that is not known */
	log.order[0].psn = log.order[1].psn = 1;
	engine_rx_report(r->e, 0, &log, r->now);
	log.seq = 6;
	log.norder = 1;
	log.order[0].lane = open.lane;
	log.order[0].psn = 0x103;
	engine_rx_report(r->e, 0, &log, r->now);
	rig_pass(r, RIG_MS);
	rig_quiet(r);
	rig_rx(r, NEAR, ACK, 0x22, 0x101, 2);
	rig_quiet(r);
	rig_destroy(r);
}

/* A barrier waits for one lane. Of another, before whose start something is not acknowledged yet,
 * what is in custody is taken all the same; what comes from before its start is dropped. */
static void test_before_start_waits(void **state)
{
	struct rig *r = start(POLICY_EARLY);
	struct lane_test a = held(r, 0x22, 0x11, 0), b = {.psn = 0x500000};

	(void)state;
	for (; !r->nrep; b.psn++) {
		if (b.psn > 0x500001)
			rig_rx(r, FAR, ACK, 0x33, b.psn - 2, ++b.msn);
		rig_rx(r, NEAR, SEND, 0x44, b.psn);
	}
	assert_int_equal(r->rep[0].type, REPORT_OPEN);
	assert_int_equal(r->rep[0].start_psn, b.psn - 1);
	r->open = b.open = r->rep[0];
	rig_answer(r, REPORT_ACCEPT, REASON_NONE);
	rig_pass(r, 200 * RIG_MS); /* what passed counts no more */
	rig_rx(r, NEAR, SEND, a.far, a.psn);
	rig_pass(r, 5 * RIG_MS);
	rig_rx(r, NEAR, SEND, 0x44, b.psn);
	assert_int_equal(engine_counter(r->e, EC_ORDER_DROPPED), 0);
	assert_int_equal(flow_ref(r->e, lane_index(b.open.lane))->lane.held.packets, 2);
	rig_rx(r, NEAR, SEND, 0x44, b.psn - 2);
	assert_int_equal(engine_counter(r->e, EC_ORDER_DROPPED), 1);
	rig_destroy(r);
}

/* Lanes of a peer whose numbers fall into one chain are told apart. */
static void test_one_chain(void **state)
{
	struct rig *r = start(POLICY_EARLY);
	struct report open = rig_open(0x100, 0, RIG_MTU);
	struct report log = {.type = REPORT_ORDER, .by_opener = true, .gen = 9, .norder = 1};
	const uint32_t lane[2] = {77, 77 + r->e->nflows}; /* a power of two */

	(void)state;
	(void)held(r, 0x22, 0x11, 0);
	(void)held(r, 0x44, 0x33, 0x500000);
	open.sealed = open.ordered = true;
	open.seal_key[0] = open.birth = 1;
	open.clear = 0x100;
	for (uint32_t k = 0; k < 2; k++) {
		open.lane = lane[k];
		open.lqpn = 0x22 << k;
		open.key.dqpn = 0x11 * (1 + 2 * k);
		engine_rx_report(r->e, 0, &open, r->now);
		rig_rx(r, FAR, SEND, open.key.dqpn, 0x100);
	}
	rig_quiet(r);
	for (uint32_t k = 0; k < 2; k++) {
		log.order[0] = (struct order_rec){
			.lane = lane[k], .birth = 1, .psn = 0x101, .kind = ORDER_CLEAR};
		log.seq = k;
		engine_rx_report(r->e, 0, &log, r->now);
		rig_pass(r, RIG_MS);
		rig_expect(r, PORT_LAN, SEND, 0x11 * (1 + 2 * k), 0x100);
	}
	rig_quiet(r);
	rig_destroy(r);
}

/* What the peer was told of the log: its generation, 0 if nothing. */
static uint32_t log_told(const struct rig *r)
{
	uint32_t gen = 0;

	for (unsigned int i = 0; i < r->nrep; i++)
		if (r->rep[i].type == REPORT_ORDER && r->rep[i].by_opener && r->rep[i].norder)
			gen = r->rep[i].gen;
	return gen;
}

/* The peer has restarted: it is told of the log when it has agreed to the lane, all of it anew. */
static void test_peer_restarts(void **state)
{
	struct rig *r = start(POLICY_EARLY);
	struct lane_test t = held(r, 0x22, 0x11, 0);
	uint32_t gen;

	(void)state;
	rig_rx(r, NEAR, SEND, t.far, t.psn);
	rig_pass(r, 5 * RIG_MS);
	gen = log_told(r);
	assert_int_not_equal(gen, 0);
	rig_forget(r);
	engine_peer_event(r->e, 0, PEER_RESTARTED, r->now);
	rig_pass(r, 1000 * RIG_MS);
	assert_int_equal(log_told(r), 0);
	assert_int_equal(r->rep[0].type, REPORT_OPEN);
	assert_true(r->rep[0].resume);
	r->open = r->rep[0];
	rig_answer(r, REPORT_ACCEPT, REASON_NONE);
	rig_pass(r, 5 * RIG_MS);
	assert_int_not_equal(log_told(r), 0);
	assert_int_not_equal(log_told(r), gen);
	rig_destroy(r);
}

/* Whether the peer's record @seq of its log @log, of generation @gen, was taken. */
static bool takes(struct rig *r, uint32_t log, uint32_t gen, uint32_t seq)
{
	struct report p = {.type = REPORT_ORDER,
			   .by_opener = true,
			   .lane = log,
			   .gen = gen,
			   .base = seq,
			   .seq = seq,
			   .norder = 1,
			   .order[0] = {.lane = 1, .birth = 1, .psn = 1, .kind = ORDER_WAIT}};

	rig_forget(r);
	engine_rx_report(r->e, 0, &p, r->now);
	rig_pass(r, RIG_MS);
	assert_int_equal(r->nrep, 1);
	assert_int_equal(r->rep[0].lane, log);
	return r->rep[0].gen == gen && r->rep[0].seq == seq + 1;
}

/* Another process of the peer may count its generations from less on: what its former one said of
 * any log is forgotten. */
static void test_peer_counts_anew(void **state)
{
	struct rig *r = start(POLICY_EARLY);
	static const uint32_t logs[] = {0, 1, ORDER_LOGS - 1};

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_true(takes(r, logs[i], 9, 100));
	for (int i = 0; i < 3; i++)
		assert_false(takes(r, logs[i], 3, 0));
	engine_peer_event(r->e, 0, PEER_RESTARTED, r->now);
	for (int i = 0; i < 3; i++)
		assert_true(takes(r, logs[i], 3, 0));
	rig_destroy(r);
}

/* A number that no log has is refused. It is not that of the next peer's first log, nor, in an
 * answer, that of a peer's own. */
static void test_no_such_log(void **state)
{
	struct rig *r = start(POLICY_EARLY);
	struct report p = {.type = REPORT_ORDER, .lane = ORDER_LOGS, .gen = 10};

	(void)state;
	assert_true(takes(r, 0, 9, 100));
	rig_forget(r);
	engine_rx_report(r->e, 0, &p, r->now);
	p.by_opener = true;
	engine_rx_report(r->e, 0, &p, r->now);
	engine_tick(r->e, r->now);
	assert_int_equal(engine_counter(r->e, EC_BAD_REPORT), 1);
	assert_int_equal(r->nrep, 0);
	assert_true(takes(r, 0, 9, 101));
	rig_destroy(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_weeks_after_fault),
		cmocka_unit_test(test_records_of_peers),
		cmocka_unit_test(test_barrier_of_some),
		cmocka_unit_test(test_barrier_of_one),
		cmocka_unit_test(test_barrier_behind_read),
		cmocka_unit_test(test_honest_ends),
		cmocka_unit_test(test_quiet_for_long),
		cmocka_unit_test(test_waits_after_long),
		cmocka_unit_test(test_abandoned_waits_not),
		cmocka_unit_test(test_opener_gone),
		cmocka_unit_test(test_lost_before_others),
		cmocka_unit_test(test_first_lost),
		cmocka_unit_test(test_waits_not_for_itself),
		cmocka_unit_test(test_quiet_after_drop),
		cmocka_unit_test(test_before_start_waits),
		cmocka_unit_test(test_one_chain),
		cmocka_unit_test(test_peer_restarts),
		cmocka_unit_test(test_peer_counts_anew),
		cmocka_unit_test(test_no_such_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
