// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * NTT-7: what an appliance near the responder asks before the host does, and what it leaves alone.
 * The far host of the rig is the requester, the near one the responder. What single packets do is
 * in tests/scenario/scripts/solo.
 */
#include "engine/core/core.h"
#include "engine/prefetch/solo.h"
#include "tests/unit/engine_rig.h"

#define RTT (10 * RIG_MS)
#define VA  0x100000ull
#define LEN 256u

/* BTH to the near host, RETH */
#define READ   "0c 40ffff 00000011 80%06x %016llx 00000066 %08x"
/* READ response ONLY to the far host, AETH, data */
#define ANSWER "10 40ffff 00000022 00%06x 1f%06x 61*256"

static struct rig *make(uint8_t mode, uint32_t depth, uint64_t max_age)
{
	struct engine_config cfg = {.pool_bytes = 8 << 20, .max_conns = 16};
	struct rule rule = rig_rule(PEER_NONE, POLICY_EARLY, RIG_MTU);
	struct rig *r;

	rule.prefetch = mode;
	rule.read_depth = depth;
	rule.prefetch_max_age_ns = max_age;
	r = rig_create(&cfg, &rule);
	for (uint32_t i = 0; i < 5; i++) {
		rig_rx(r, FAR, "04 40ffff 00000011 80%06x 61*8", i);
		rig_rx(r, NEAR, "11 40ffff 00000022 00%06x 1f%06x", i, i + 1);
	}
	rig_forget(r);
	return r;
}

static uint64_t hits(struct rig *r)
{
	return rig_conn(r).lane[LANE_IN].reads.hits;
}

static uint64_t guesses(struct rig *r)
{
	return rig_conn(r).lane[LANE_IN].reads.guesses;
}

static uint64_t left[1024]; /* when the answer of each PSN left for the far host */

/* The responder answers every READ that was sent to it, at once. */
static void serve(struct rig *r)
{
	while (r->at < r->nout) {
		const struct rig_frame *f = &r->out[r->at++];
		uint32_t psn = get_be24(f->data + RIG_BTH + 9);

		if (f->port == PORT_WAN && f->data[RIG_BTH] == 0x10 && !left[psn])
			left[psn] = r->now;
		if (f->port == PORT_LAN && f->data[RIG_BTH] == 0x0c)
			rig_rx(r, NEAR, ANSWER, psn, psn + 1);
	}
}

/* @n READs from @psn on of a host that has @m outstanding, a round trip away. Returns the next PSN.
 * */
static uint32_t stream(struct rig *r, uint32_t psn, uint32_t n, uint32_t m)
{
	uint32_t first = psn;

	memset(left, 0, sizeof(left));
	while (psn < first + n) {
		while (psn < first + n &&
		       (psn < first + m || (left[psn - m] && r->now >= left[psn - m] + RTT))) {
			rig_rx(r, FAR, READ, psn, (unsigned long long)VA, LEN);
			serve(r);
			psn++;
		}
		rig_pass(r, RIG_MS / 8);
		serve(r);
	}
	return psn;
}

/* Nothing is asked ahead unless the rule says this word. */
static void test_off(void **state)
{
	static const uint8_t modes[] = {PREFETCH_OFF, PREFETCH_ON};

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct rig *r = make(modes[i], 16, 0);

		stream(r, 5, 80, 1);
		assert_int_equal(guesses(r), 0);
		assert_int_equal(engine_counter(r->e, EC_SOLO_READS), 0);
		assert_int_equal(rig_conn(r).lane[LANE_IN].state, LANE_WATCH);
		rig_destroy(r);
	}
}

/* As many as the responder takes, less what the host has outstanding; nothing where it takes no
 * more. */
static void test_depth(void **state)
{
	static const struct {
		uint32_t depth, m, ahead;
	} t[] = {{16, 1, 15}, {4, 1, 3}, {8, 4, 4}, {1, 1, 0}, {4, 4, 0}, {0, 2, 2}};

	(void)state;
	for (unsigned int i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct rig *r = make(PREFETCH_SINGLE, t[i].depth, 0);

		stream(r, 5, 96, t[i].m);
		/* the host stops; what may be asked is asked */
		for (uint32_t k = 0; k < 40; k++) {
			rig_pass(r, RIG_MS);
			serve(r);
		}
		if (rig_conn(r).lane[LANE_IN].reads.ahead != t[i].ahead * LEN)
			fail_msg("depth %u, %u outstanding: %llu bytes ahead", t[i].depth, t[i].m,
				 (unsigned long long)rig_conn(r).lane[LANE_IN].reads.ahead);
		rig_destroy(r);
	}
}

/* What the host has never read is never asked for, even where the stride leads there. */
static void test_never_beyond(void **state)
{
	struct rig *r = make(PREFETCH_SINGLE, 16, 0);
	uint32_t psn = 5;

	(void)state;
	for (uint32_t i = 0; i < 60; i++, psn++) {
		rig_rx(r, FAR, READ, psn, (unsigned long long)(VA + i * LEN), LEN);
		serve(r);
		rig_pass(r, RTT);
		serve(r);
	}
	assert_int_equal(guesses(r), 0);
	rig_destroy(r);
}

/* A host whose READs come by a clock waits for no answer: nothing can be measured, and nothing is
 * asked ahead. */
static void test_by_clock(void **state)
{
	struct rig *r = make(PREFETCH_SINGLE, 16, 0);
	uint32_t psn = 5;

	(void)state;
	for (uint32_t i = 0; i < 400; i++, psn++) {
		rig_rx(r, FAR, READ, psn, (unsigned long long)VA, LEN);
		for (int k = 0; k < 7; k++) {
			serve(r);
			rig_pass(r, RIG_MS);
		}
	}
	serve(r);
	assert_int_equal(guesses(r), 0);
	rig_destroy(r);
}

/* The rule is taken back: nothing new is asked, and the lane goes when the host has asked for what
 * was. */
static void test_taken_back(void **state)
{
	struct rig *r = make(PREFETCH_SINGLE, 4, 0);
	struct rule rule = rig_rule(PEER_NONE, POLICY_EARLY, RIG_MTU);
	uint32_t psn;

	(void)state;
	psn = stream(r, 5, 60, 1);
	assert_true(hits(r) > 4);
	assert_false(engine_may_stop(r->e));
	engine_rules(r->e, &rule, 1, r->now);
	for (int i = 0; i < 4; i++, psn++) {
		rig_rx(r, FAR, READ, psn, (unsigned long long)VA, LEN);
		serve(r);
	}
	assert_int_equal(rig_conn(r).lane[LANE_IN].state, LANE_WATCH);
	assert_true(engine_may_stop(r->e));
	rig_forget(r);
	rig_rx(r, FAR, READ, psn, (unsigned long long)VA, LEN);
	rig_expect(r, PORT_LAN, READ, psn, (unsigned long long)VA, LEN);
	rig_quiet(r);
	rig_destroy(r);
}

/* Too old to be given: the responder took its time. */
static void test_max_age(void **state)
{
	struct rig *r = make(PREFETCH_SINGLE, 4, 2 * RIG_MS);
	uint32_t psn = stream(r, 5, 17, 1);
	unsigned int before;

	(void)state;
	rig_forget(r);
	while (r->at == r->nout)
		rig_pass(r, RIG_MS);
	psn = get_be24(rig_sent(r, PORT_LAN)->data + RIG_BTH + 9);
	rig_pass(r, 3 * RIG_MS);
	before = r->nout;
	rig_rx(r, NEAR, ANSWER, psn, psn + 1);
	assert_int_equal(r->nout, before);
	assert_true(rig_conn(r).lane[LANE_IN].reads.flushed_age > 0);
	rig_destroy(r);
}

/* An engine after one that is gone: the requester is beyond the WAN, whatever the rules say by now.
 * */
static void test_stranded(void **state)
{
	static const uint8_t modes[] = {PREFETCH_SINGLE, PREFETCH_OFF};

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct engine_config cfg = {.pool_bytes = 8 << 20, .max_conns = 16};
		struct rule rule = rig_rule(PEER_NONE, POLICY_EARLY, RIG_MTU);
		struct flow_key requests = {.dqpn = 0x11, .vlan = FRAME_VLAN_NONE};
		struct rig *r;

		rule.prefetch = modes[i];
		cfg.fence = modes[i] == PREFETCH_SINGLE;
		r = rig_create(&cfg, &rule);
		ip_addr_parse("10.2.0.1", &requests.src);
		ip_addr_parse("10.1.0.1", &requests.dst);
		engine_fail_orphan(r->e, &requests, 0x22, NULL, r->now);
		/* nothing of either passes; the requester is told when it repeats the oldest */
		rig_rx(r, FAR, READ, 77, (unsigned long long)VA, LEN);
		rig_quiet(r);
		rig_pass(r, 10 * RIG_MS);
		rig_rx(r, FAR, READ, 77, (unsigned long long)VA, LEN);
		rig_expect(r, PORT_WAN, "11 40ffff 00000022 00%06x 63%06x", 77, 0);
		rig_quiet(r);
		rig_rx(r, NEAR, ANSWER, 80, 80);
		rig_quiet(r);
		rig_destroy(r);
	}
}

/* Where flows are used up but for one, none of the two that are needed is a pair. */
static void test_stranded_no_place(void **state)
{
	struct engine_config cfg = {.pool_bytes = 8 << 20, .max_conns = 16};
	struct rule rule = rig_rule(PEER_NONE, POLICY_EARLY, RIG_MTU);
	struct flow_key requests = {.vlan = FRAME_VLAN_NONE};
	struct rig *r;

	(void)state;
	rule.prefetch = PREFETCH_SINGLE;
	r = rig_create(&cfg, &rule);
	ip_addr_parse("10.2.0.1", &requests.src);
	ip_addr_parse("10.1.0.1", &requests.dst);
	rig_rx(r, FAR, READ, 77, (unsigned long long)VA, LEN);
	for (requests.dqpn = 0x100; requests.dqpn < 0x180; requests.dqpn++) {
		engine_fail_orphan(r->e, &requests, requests.dqpn + 0x100, NULL, r->now);
		engine_tick(r->e, r->now);
	}
	assert_int_equal(rig_pairs(r), 16);
	rig_check(r);
	rig_destroy(r);
}

/* It may be idle for long: its first request fails all the same. A stop does not wait for it. */
static void test_stranded_idle(void **state)
{
	struct engine_config cfg = {.pool_bytes = 8 << 20, .max_conns = 16};
	struct rule rule = rig_rule(PEER_NONE, POLICY_EARLY, RIG_MTU);
	struct flow_key requests = {.dqpn = 0x11, .vlan = FRAME_VLAN_NONE};
	struct rig *r;

	(void)state;
	rule.prefetch = PREFETCH_SINGLE;
	r = rig_create(&cfg, &rule);
	ip_addr_parse("10.2.0.1", &requests.src);
	ip_addr_parse("10.1.0.1", &requests.dst);
	engine_fail_orphan(r->e, &requests, 0x22, NULL, r->now);
	for (unsigned int s = 0; s < 3600; s++)
		rig_pass(r, 1000 * RIG_MS);
	assert_true(engine_may_stop(r->e));
	rig_rx(r, FAR, READ, 77, (unsigned long long)VA, LEN);
	rig_quiet(r);
	assert_false(engine_may_stop(r->e));
	rig_pass(r, 10 * RIG_MS);
	rig_rx(r, FAR, READ, 77, (unsigned long long)VA, LEN);
	rig_expect(r, PORT_WAN, "11 40ffff 00000022 00%06x 63%06x", 77, 0);
	rig_destroy(r);
}

/* The connection @requests of a former engine, whose host has asked once and is being probed. */
static struct rig *probed(struct flow_key *requests)
{
	struct engine_config cfg = {.pool_bytes = 8 << 20, .max_conns = 16};
	struct rule rule = rig_rule(PEER_NONE, POLICY_EARLY, RIG_MTU);
	struct rig *r;

	rule.prefetch = PREFETCH_SINGLE;
	r = rig_create(&cfg, &rule);
	*requests = (struct flow_key){.dqpn = 0x11, .vlan = FRAME_VLAN_NONE};
	ip_addr_parse("10.2.0.1", &requests->src);
	ip_addr_parse("10.1.0.1", &requests->dst);
	engine_fail_orphan(r->e, requests, 0x22, NULL, r->now);
	rig_rx(r, FAR, READ, 77, (unsigned long long)VA, LEN);
	while (!engine_counter(r->e, EC_FAULT_PROBES))
		rig_pass(r, 100 * RIG_MS);
	return r;
}

static void silence(struct rig *r, unsigned int ms)
{
	for (; ms; ms -= 10)
		rig_pass(r, 10 * RIG_MS);
}

/* It goes on where it stood: refused, and not to pass while nobody is there either. */
static void goes_on(struct rig *r, const struct flow_key *requests)
{
	rig_forget(r);
	rig_rx(r, FAR, READ, 77, (unsigned long long)VA, LEN);
	rig_expect(r, PORT_WAN, "11 40ffff 00000022 00%06x 63%06x", 77, 0);
	rig_quiet(r);
	assert_true(engine_holds(r->e, requests));
	rig_destroy(r);
}

/* Somebody refused a probe in its name, while it was out of reach. */
static void test_stranded_lives(void **state)
{
	struct flow_key requests;
	struct rig *r = probed(&requests);

	(void)state;
	rig_rx(r, FAR, "11 40ffff 00000011 00000000 61000000");
	silence(r, 3000);
	assert_int_equal(engine_counter(r->e, EC_FAULT_BROKEN), 1);
	assert_false(engine_holds(r->e, &requests));
	goes_on(r, &requests);
}

/* It is out of reach for two minutes. A stop does not wait for it. */
static void test_stranded_silent(void **state)
{
	struct flow_key requests;
	struct rig *r = probed(&requests);

	(void)state;
	silence(r, 120 * 1000);
	assert_int_equal(engine_counter(r->e, EC_FAULT_SILENT), 1);
	assert_true(engine_holds(r->e, &requests));
	assert_true(engine_may_stop(r->e));
	goes_on(r, &requests);
}

/* But not for ever: it may have failed, and its number has another owner by and by. */
static void test_stranded_gone(void **state)
{
	struct flow_key requests;
	struct rig *r = probed(&requests);

	(void)state;
	silence(r, 180 * 1000);
	assert_int_equal(engine_counter(r->e, EC_FAULT_SILENT), 1);
	assert_false(engine_holds(r->e, &requests));
	rig_destroy(r);
}

/* The connection of a former engine, whose host says nothing, and how to speak to it is known. */
static struct rig *known(struct flow_key *requests)
{
	struct engine_config cfg = {.pool_bytes = 8 << 20, .max_conns = 16};
	struct rule rule = rig_rule(PEER_NONE, POLICY_EARLY, RIG_MTU);
	static const uint8_t mac[2][6] = {{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}};
	struct template t;
	struct rig *r;

	rule.prefetch = PREFETCH_SINGLE;
	r = rig_create(&cfg, &rule);
	*requests = (struct flow_key){.dqpn = 0x11, .vlan = FRAME_VLAN_NONE};
	ip_addr_parse("10.2.0.1", &requests->src);
	ip_addr_parse("10.1.0.1", &requests->dst);
	template_make(&t, mac[0], mac[1], FRAME_VLAN_NONE, &requests->dst, &requests->src, 0xc000);
	engine_fail_orphan(r->e, requests, 0x22, &t, r->now);
	return r;
}

/* An idle one is broken without being asked by it; the first probe that it refuses does so. */
static void test_stranded_known_idle(void **state)
{
	struct flow_key requests;
	struct rig *r = known(&requests);

	(void)state;
	while (!engine_counter(r->e, EC_FAULT_PROBES) && r->now < 60000 * RIG_MS)
		rig_pass(r, 100 * RIG_MS);
	rig_rx(r, FAR, "11 40ffff 00000011 00000000 61000000");
	silence(r, 3000);
	assert_int_equal(engine_counter(r->e, EC_FAULT_BROKEN), 1);
	silence(r, 12000);
	assert_false(engine_holds(r->e, &requests));
	assert_true(engine_may_stop(r->e));
	rig_destroy(r);
}

/* One that is gone ends as any other that is out of reach. */
static void test_stranded_known_gone(void **state)
{
	struct flow_key requests;
	struct rig *r = known(&requests);

	(void)state;
	silence(r, 120 * 1000);
	assert_true(engine_holds(r->e, &requests));
	silence(r, 60 * 1000);
	assert_false(engine_holds(r->e, &requests));
	rig_destroy(r);
}

static int refuse(void *ctx, const struct flow_key *requests, uint32_t lqpn,
		  const struct template *headers, bool on)
{
	(void)ctx;
	(void)headers;
	(void)requests;
	(void)lqpn;
	return on ? -1 : 0;
}

/* Where nobody can hold the packets while the daemon is away nothing is asked ahead. */
static void test_no_hold(void **state)
{
	struct rig *r = make(PREFETCH_SINGLE, 16, 0);
	struct engine_config cfg = {.pool_bytes = 8 << 20, .max_conns = 16};
	struct rule rule = rig_rule(PEER_NONE, POLICY_EARLY, RIG_MTU);
	struct engine_sink sink = {.ctx = r,
				   .tx = rig_sink_tx,
				   .report = rig_sink_report,
				   .event = rig_sink_event,
				   .hold = refuse};

	(void)state;
	rule.prefetch = PREFETCH_SINGLE;
	rule.read_depth = 16;
	engine_destroy(r->e);
	r->e = engine_create(&cfg, &sink, r->now);
	assert_non_null(r->e);
	engine_rules(r->e, &rule, 1, r->now);
	for (uint32_t i = 0; i < 5; i++) {
		rig_rx(r, FAR, "04 40ffff 00000011 80%06x 61*8", i);
		rig_rx(r, NEAR, "11 40ffff 00000022 00%06x 1f%06x", i, i + 1);
	}
	stream(r, 5, 80, 1);
	assert_int_equal(guesses(r), 0);
	assert_true(engine_may_stop(r->e));
	rig_destroy(r);
}

/* The distance that repeats have doubled is halved after 64 READs without one, and after four times
 * as many each time that it was doubled. The least one stays. */
static void test_calm(void **state)
{
	struct rig *r = make(PREFETCH_SINGLE, 16, 0);
	struct lane_reads least = {0};

	(void)state;
	for (uint32_t n = 0; n < 64; n++)
		solo_gap(r->e, &least);
	assert_int_equal(least.solo.slow, 0);
	for (uint8_t struck = 0; struck < 3; struck++) {
		struct lane_reads x = {.solo = {.slow = 2, .struck = struck}};

		for (uint32_t n = 1; n < 64u << 2 * struck; n++)
			solo_gap(r->e, &x);
		assert_int_equal(x.solo.slow, 2);
		solo_gap(r->e, &x);
		assert_int_equal(x.solo.slow, 1);
	}
	rig_destroy(r);
}

/* The flow of the host's requests. */
static struct flow *requests(struct rig *r)
{
	struct flow *fl = flow_ref(r->e, rig_conn(r).id);

	undone_watch(NULL); /* changed by hand */
	return fl->lane.role == ROLE_SOLO ? fl : flow_partner(r->e, fl);
}

/* Of what the host has read the latest ranges are kept in mind. */
static void test_ranges(void **state)
{
	struct rig *r = make(PREFETCH_SINGLE, 16, 0);
	struct read_range what = {.va = VA, .rkey = 0x66, .length = LEN};
	struct lane_reads *x;
	struct flow *fl;

	(void)state;
	stream(r, 5, 12, 1);
	fl = requests(r);
	x = reads_of(r->e, &fl->lane);
	for (unsigned int i = 0; i < GOOD_RANGES; i++) {
		assert_true(ranges_allow(r->e, fl, x, &what));
		what.va += 1 << 20;
		assert_false(ranges_allow(r->e, fl, x, &what));
		ranges_note(r->e, fl, &what);
	}
	assert_true(ranges_allow(r->e, fl, x, &what));
	what.va = VA;
	assert_false(ranges_allow(r->e, fl, x, &what));
	rig_destroy(r);
}

/* Behind a READ that went to the responder twice no round trip is measured: nobody knows which
 * response the host took. */
static void test_measures_not_twice(void **state)
{
	struct rig *r = make(PREFETCH_SINGLE, 16, 0);
	struct lane_reads *x;
	struct flow *fl;
	uint32_t seq;

	(void)state;
	stream(r, 5, 60, 1);
	fl = requests(r);
	x = reads_of(r->e, &fl->lane);
	seq = x->solo.seq - x->guesses; /* the host's next */
	assert_int_not_equal(x->solo.left[(seq - x->solo.behind) % SOLO_RING], 0);
	for (int again = 1; again >= 0; again--) {
		mq_each (struct solo_read, k, r->e->reads, &x->fetches)
			if (k->seq == seq - x->solo.behind)
				k->again = again;
		x->solo.measured = 0;
		solo_measure(r->e, fl, seq);
		assert_int_equal(x->solo.measured, again ? 0 : r->e->now);
	}
	rig_destroy(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_off),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_never_beyond),
		cmocka_unit_test(test_by_clock),
		cmocka_unit_test(test_taken_back),
		cmocka_unit_test(test_max_age),
		cmocka_unit_test(test_stranded),
		cmocka_unit_test(test_stranded_no_place),
		cmocka_unit_test(test_stranded_idle),
		cmocka_unit_test(test_stranded_lives),
		cmocka_unit_test(test_stranded_silent),
		cmocka_unit_test(test_stranded_known_idle),
		cmocka_unit_test(test_stranded_known_gone),
		cmocka_unit_test(test_stranded_gone),
		cmocka_unit_test(test_no_hold),
		cmocka_unit_test(test_calm),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_measures_not_twice),
	};

	return cmocka_run_group_tests_name("engine_solo", tests, NULL, NULL);
}
