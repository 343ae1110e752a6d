// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What an operator does to a running engine: release and bypass, and that nothing owed is lost by
 * it; other limits; and the meters of what came.
 */
#include "engine/core/core.h"
#include "tests/unit/engine_rig.h"

/* Two SENDs in custody, PSN 6 and 7, answered early; then the operator. */
static struct rig *owing(int8_t peer)
{
	struct rig *r = rig_held(NULL, peer, POLICY_EARLY, RIG_MTU);

	rig_rx(r, NEAR, SEND_ONLY("000006"));
	rig_rx(r, NEAR, SEND_ONLY("000007"));
	assert_int_equal(rig_conn(r).lane[LANE_OUT].custody.packets, 2);
	rig_forget(r);
	return r;
}

/* The far host's true ACK of all that is owed. */
static void settle(struct rig *r, int8_t peer)
{
	if (peer == PEER_NONE)
		rig_rx(r, FAR, ACK_TO_NEAR, 7, 8);
	else
		rig_progress(r, 8, 8, 8);
	rig_forget(r);
}

static void check_bypass(int8_t peer, enum bypass what)
{
	struct rig *r = owing(peer);
	uint32_t index = what == BYPASS_CONN ? rig_conn(r).id : 0;

	assert_true(engine_bypass(r->e, what, index, true, r->now));
	assert_true(rig_conn(r).bypassed);
	/* what was acknowledged is owed until the far host has it */
	assert_int_equal(rig_conn(r).lane[LANE_OUT].state, LANE_DRAIN);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].custody.packets, 2);
	settle(r, peer);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].state, LANE_WATCH);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].reason, REASON_OPERATOR);
	/* from now on packets pass, and no appliance acknowledges them, however long it takes */
	rig_pass(r, 3000 * RIG_MS);
	rig_forget(r);
	for (uint32_t psn = 8; psn < 14; psn++) {
		rig_rx(r, NEAR, SEND_ONLY("%06x"), psn);
		rig_expect(r, PORT_WAN, SEND_ONLY("%06x"), psn);
		rig_quiet(r);
		rig_rx(r, FAR, ACK_TO_NEAR, psn, psn + 1);
		rig_expect(r, PORT_LAN, ACK_TO_NEAR, psn, psn + 1);
	}
	assert_int_equal(rig_conn(r).lane[LANE_OUT].state, LANE_WATCH);
	/* and off again: it is taken with its next request */
	assert_true(engine_bypass(r->e, what, index, false, r->now));
	assert_false(rig_conn(r).bypassed);
	rig_rx(r, NEAR, SEND_ONLY("00000e"));
	assert_int_not_equal(rig_conn(r).lane[LANE_OUT].state, LANE_WATCH);
	rig_destroy(r);
}

static void test_bypass(void **state)
{
	static const enum bypass what[] = {BYPASS_ALL, BYPASS_RULE, BYPASS_CONN};

	(void)state;
	for (size_t i = 0; i < sizeof(what) / sizeof(what[0]); i++) {
		check_bypass(0, what[i]);
		check_bypass(PEER_NONE, what[i]);
	}
}

/* A peer's OPEN is refused while its connection is bypassed here. */
static void test_bypass_refuses(void **state)
{
	struct rig *r = rig_held(NULL, 0, POLICY_EARLY, RIG_MTU);
	struct report open = {.type = REPORT_OPEN, .lane = 7, .gen = 9, .path_mtu = RIG_MTU};

	(void)state;
	/* the far host's requests, as its appliance would say it */
	ip_addr_parse("10.2.0.1", &open.key.src);
	ip_addr_parse("10.1.0.1", &open.key.dst);
	open.key.dqpn = 0x11;
	open.key.vlan = FRAME_VLAN_NONE;
	open.lqpn = 0x22;
	assert_true(engine_bypass(r->e, BYPASS_RULE, 0, true, r->now));
	rig_forget(r);
	engine_rx_report(r->e, 0, &open, r->now);
	assert_int_equal(r->nrep, 1);
	assert_int_equal(r->rep[0].type, REPORT_REFUSE);
	assert_int_equal(r->rep[0].reason, REASON_OPERATOR);
	rig_destroy(r);
}

/* "all off" is off for rules and single connections as well. */
static void test_all_off(void **state)
{
	struct rig *r = owing(0);
	uint32_t id = rig_conn(r).id;

	(void)state;
	assert_true(engine_bypass(r->e, BYPASS_RULE, 0, true, r->now));
	assert_true(engine_bypass(r->e, BYPASS_CONN, id, true, r->now));
	assert_true(engine_bypass(r->e, BYPASS_ALL, 0, false, r->now));
	assert_false(rig_conn(r).bypassed);
	rig_destroy(r);
}

/* After a reload rules have other places. Those that are bypassed are told as a whole, so that none
 * of another one is let go in between; what comes under one is. */
static void test_rules_moved(void **state)
{
	struct rig *r = owing(0);
	struct rule rules[2];

	(void)state;
	for (int i = 0; i < 2; i++)
		rules[i] = rig_rule(0, POLICY_EARLY, RIG_MTU);
	snprintf(rules[1].name, sizeof(rules[1].name), "other");
	ip_addr_parse("10.9.0.0", &rules[1].near[0].addr);
	engine_rules(r->e, rules, 2, r->now);
	assert_true(engine_bypass(r->e, BYPASS_RULE, 1, true, r->now));
	assert_int_equal(rig_conn(r).lane[LANE_OUT].state, LANE_HELD);
	/* the other one is the first now */
	rules[0].near[0].addr = rules[1].near[0].addr;
	rules[1] = rig_rule(0, POLICY_EARLY, RIG_MTU);
	engine_rules(r->e, rules, 2, r->now);
	engine_bypass_rules(r->e, 1u << 0, r->now);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].state, LANE_HELD);
	assert_false(rig_conn(r).bypassed);
	/* and wants this connection, too */
	rules[0].near[0] = rules[1].near[0];
	rules[1].near[0].addr.b[13] = 9;
	engine_rules(r->e, rules, 2, r->now);
	engine_bypass_rules(r->e, 1u << 0, r->now);
	assert_true(rig_conn(r).bypassed);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].state, LANE_DRAIN);
	engine_bypass_rules(r->e, 0, r->now);
	assert_false(rig_conn(r).bypassed);
	rig_destroy(r);
}

/* Where no rule keeps order or reads ahead any more, nothing is done for that. */
static void test_rules_gone(void **state)
{
	struct rig *r = owing(0);
	struct rule rules[2] = {rig_rule(0, POLICY_EARLY, RIG_MTU),
				rig_rule(0, POLICY_EARLY, RIG_MTU)};

	(void)state;
	rules[1].order = ORDER_HOSTS;
	rules[1].prefetch = PREFETCH_ON;
	engine_rules(r->e, rules, 2, r->now);
	assert_true(r->e->ordered && r->e->prefetch);
	engine_rules(r->e, rules, 1, r->now);
	assert_false(r->e->ordered || r->e->prefetch);
	rig_destroy(r);
}

/* Two rules overlap if both want packets between the same hosts, and in one VLAN. */
static void test_rules_overlap(void **state)
{
	struct rule a = rig_rule(0, POLICY_EARLY, RIG_MTU), b = a;

	(void)state;
	assert_true(rules_overlap(&a, &b));
	a.vlan = 1;
	assert_true(rules_overlap(&a, &b));
	b.vlan = 2;
	assert_false(rules_overlap(&a, &b));
	b.vlan = 1;
	b.far[0].addr.b[13] = 9;
	assert_false(rules_overlap(&a, &b));
	a.far[a.nfar++] = b.far[0];
	assert_true(rules_overlap(&a, &b));
	b.near[0].addr.b[13] = 9;
	assert_false(rules_overlap(&a, &b));
	a.near[0].len = 96 + 24;
	ip_addr_parse("10.1.0.9", &b.near[0].addr);
	b.near[0].len = 128;
	assert_true(rules_overlap(&a, &b));
	a.near[0].len = 96 + 29;
	assert_false(rules_overlap(&a, &b));
}

static void test_release(void **state)
{
	static const int8_t peers[] = {0, PEER_NONE};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct rig *r = owing(peers[i]);
		uint32_t id = rig_conn(r).id;

		assert_true(engine_release(r->e, id, r->now));
		assert_int_equal(rig_conn(r).lane[LANE_OUT].state, LANE_DRAIN);
		settle(r, peers[i]);
		assert_int_equal(rig_conn(r).lane[LANE_OUT].state, LANE_WATCH);
		assert_false(engine_release(r->e, id, r->now)); /* nothing is held */
		/* it is not bypassed: a while later one of the next requests begins anew */
		rig_pass(r, 3000 * RIG_MS);
		for (uint32_t psn = 8; rig_conn(r).lane[LANE_OUT].state == LANE_WATCH; psn++) {
			assert_true(psn < 16);
			rig_rx(r, NEAR, SEND_ONLY("%06x"), psn);
			if (rig_conn(r).lane[LANE_OUT].state == LANE_WATCH)
				rig_rx(r, FAR, ACK_TO_NEAR, psn, psn + 1);
		}
		rig_destroy(r);
	}
}

static void test_unknown(void **state)
{
	struct rig *r = owing(0);

	(void)state;
	assert_false(engine_bypass(r->e, BYPASS_RULE, 1, true, r->now));
	assert_false(engine_bypass(r->e, BYPASS_CONN, 31, true, r->now));
	assert_false(engine_bypass(r->e, BYPASS_CONN, UINT32_MAX, true, r->now));
	assert_false(engine_release(r->e, UINT32_MAX, r->now));
	rig_destroy(r);
}

static void test_meters(void **state)
{
	struct rule rule = rig_rule(0, POLICY_EARLY, RIG_MTU);
	struct rig *r = rig_create(
		&(struct engine_config){.pool_bytes = 8 << 20, .max_conns = 16, .seed = 1}, &rule);
	struct conn_info ci;

	(void)state;
	rig_learn(r, 0);
	ci = rig_conn(r);
	/* five SENDs of 8 bytes, five ACKs: headers and ICRC count */
	assert_int_equal(ci.from_lan.packets, 5);
	assert_int_equal(ci.from_lan.bytes, 5 * (RIG_BTH + 12 + 8 + ICRC_LEN));
	assert_int_equal(ci.from_wan.packets, 5);
	assert_int_equal(ci.from_wan.bytes, 5 * (RIG_BTH + 12 + 4 + ICRC_LEN));
	rig_destroy(r);
}

/* Behind the last place of a table that was full there is no connection, whatever lies there. */
static void test_last_place(void **state)
{
	struct rig *r = rig_held(NULL, 0, POLICY_EARLY, RIG_MTU);
	struct conn_info ci;
	uint32_t n = 0;

	(void)state;
	undone_watch(NULL); /* memory is changed by hand */
	r->e->flows_end = r->e->nflows;
	memset(&r->e->flows[r->e->nflows], 0xff, sizeof(*r->e->flows));
	for (uint32_t from = 0; engine_conn_next(r->e, from, r->now, &ci); from = ci.id + 1)
		n++;
	assert_int_equal(n, 1);
	rig_destroy(r);
}

/* At 1 Mbit/s SENDs wait for tokens; with another rate they leave at once, also those that wait. */
static void test_pace(void **state)
{
	struct engine_config cfg = {.pool_bytes = 8 << 20,
				    .max_conns = 16,
				    .wan_rate = 125000,
				    .wan_burst = 16 << 10,
				    .seed = 1};
	struct rig *r = rig_held(&cfg, 0, POLICY_EARLY, RIG_MTU);
	unsigned int waiting;

	(void)state;
	for (uint32_t psn = 6; psn < 6 + 300; psn++)
		rig_rx(r, NEAR, SEND_ONLY("%06x"), psn);
	for (waiting = 300; r->at < r->nout; r->at++)
		waiting -= r->out[r->at].port == PORT_WAN;
	assert_in_range(waiting, 50, 150);
	rig_forget(r);
	cfg.wan_rate = 0;
	engine_limits(r->e, &cfg, r->now);
	assert_true(engine_deadline(r->e) <= r->now);
	engine_tick(r->e, r->now);
	for (; waiting; waiting--)
		rig_sent(r, PORT_WAN);
	rig_destroy(r);
}

/* So does the pace that was found for the link to a peer. */
static void test_pace_found(void **state)
{
	struct engine_config cfg = {.pool_bytes = 8 << 20,
				    .max_conns = 16,
				    .wan_auto = true,
				    .wan_burst = 16 << 10,
				    .seed = 1};
	struct rig *r = rig_held(&cfg, 0, POLICY_EARLY, RIG_MTU);
	unsigned int waiting;

	(void)state;
	link_rate(r->e, 0)->pace = 125000;
	for (uint32_t psn = 6; psn < 6 + 300; psn++)
		rig_rx(r, NEAR, "04 40ffff 00000022 80%06x 61*%u", psn, RIG_MTU);
	for (waiting = 300; r->at < r->nout; r->at++)
		waiting -= r->out[r->at].port == PORT_WAN;
	assert_in_range(waiting, 190, 299);
	rig_destroy(r);
}

/* It outlives a change of other limits, but not a time in which nobody went by it. */
static void test_pace_reloaded(void **state)
{
	struct engine_config cfg = {
		.pool_bytes = 8 << 20, .max_conns = 16, .wan_auto = true, .seed = 1};
	struct rig *r = rig_held(&cfg, 0, POLICY_EARLY, RIG_MTU);

	(void)state;
	link_rate(r->e, 0)->pace = 125000;
	engine_limits(r->e, &cfg, r->now);
	assert_int_equal(link_rate(r->e, 0)->pace, 125000);
	for (int automatic = 0; automatic < 2; automatic++) {
		cfg.wan_auto = automatic;
		engine_limits(r->e, &cfg, r->now);
	}
	assert_int_not_equal(link_rate(r->e, 0)->pace, 125000);
	rig_destroy(r);
}

/* Lanes that are held go by the new policy of their rule at once. */
static void test_policy_reloaded(void **state)
{
	struct rig *r = owing(0);
	struct rule rule = rig_rule(0, POLICY_OFF, RIG_MTU);

	(void)state;
	engine_rules(r->e, &rule, 1, r->now);
	rig_rx(r, NEAR, SEND_ONLY("000008"));
	rig_expect(r, PORT_WAN, SEND_ONLY("000008"));
	rig_quiet(r);
	rule.policy = POLICY_EARLY;
	engine_rules(r->e, &rule, 1, r->now);
	rig_rx(r, NEAR, SEND_ONLY("000009"));
	rig_expect(r, PORT_WAN, SEND_ONLY("000009"));
	rig_expect(r, PORT_LAN, ACK_TO_NEAR, 9, 10);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].state, LANE_HELD);
	rig_destroy(r);
}

/* What left when there was no rate is no debt once there is one. */
static void test_pace_set(void **state)
{
	for (int automatic = 0; automatic < 2; automatic++) {
		struct engine_config cfg = {.pool_bytes = 8 << 20, .max_conns = 16, .seed = 1};
		struct rig *r = rig_held(&cfg, 0, POLICY_EARLY, RIG_MTU);
		uint32_t psn = 6;

		(void)state;
		for (; psn < 1000; psn++) {
			rig_forget(r);
			rig_rx(r, NEAR, "04 40ffff 00000022 80%06x 61*%u", psn, RIG_MTU);
		}
		cfg.wan_rate = 125000;
		cfg.wan_auto = automatic;
		engine_limits(r->e, &cfg, r->now);
		rig_forget(r);
		rig_rx(r, NEAR, SEND_ONLY("%06x"), psn);
		rig_expect(r, PORT_WAN, SEND_ONLY("%06x"), psn);
		rig_destroy(r);
	}
}

/* With "auto up to" a rate, what goes to no peer has no pace that is found, and that rate. */
static void test_pace_alone(void **state)
{
	struct engine_config cfg = {.pool_bytes = 8 << 20,
				    .max_conns = 16,
				    .wan_rate = 12500000,
				    .wan_auto = true,
				    .wan_burst = 16 << 10,
				    .seed = 1};
	struct rig *r = rig_held(&cfg, PEER_NONE, POLICY_EARLY, RIG_MTU);
	unsigned int waiting;

	(void)state;
	for (uint32_t psn = 6; psn < 6 + 60; psn++)
		rig_rx(r, NEAR, SEND_ONLY("%06x"), psn);
	for (uint32_t i = 0; i < 10; i++)
		rig_pass(r, RIG_MS);
	for (waiting = 60; r->at < r->nout; r->at++)
		waiting -= r->out[r->at].port == PORT_WAN;
	assert_int_equal(waiting, 0);
	rig_destroy(r);
}

/* The rule of a lane that waits for its turn gets another class: it waits there, and goes on. */
static void test_pace_class(void **state)
{
	struct engine_config cfg = {.pool_bytes = 8 << 20,
				    .max_conns = 16,
				    .wan_rate = 125000,
				    .wan_burst = 16 << 10,
				    .seed = 1};
	struct rule rule = rig_rule(0, POLICY_EARLY, RIG_MTU);
	struct rig *r = rig_held(&cfg, 0, POLICY_EARLY, RIG_MTU);
	uint32_t nxt;

	(void)state;
	for (uint32_t psn = 6; psn < 306; psn++)
		rig_rx(r, NEAR, SEND_ONLY("%06x"), psn);
	nxt = rig_conn(r).lane[LANE_OUT].nxt;
	assert_in_range(nxt, 7, 280);
	rule.traffic = CLASS_BULK;
	engine_rules(r->e, &rule, 1, r->now);
	rig_pass(r, 20 * RIG_MS);
	assert_in_range(rig_conn(r).lane[LANE_OUT].nxt, nxt + 10, 306);
	rig_destroy(r);
}

/* Custody waits for a peer that is silent as long as is allowed now, not as it was before. */
static void test_timeouts(void **state)
{
	struct engine_config cfg = {.pool_bytes = 8 << 20, .max_conns = 16, .seed = 1};
	struct rig *r = rig_held(&cfg, 0, POLICY_EARLY, RIG_MTU);

	(void)state;
	rig_rx(r, NEAR, SEND_ONLY("000006"));
	rig_forget(r);
	engine_peer_event(r->e, 0, PEER_DOWN, r->now);
	rig_pass(r, 40000 * RIG_MS);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].state, LANE_HELD);
	cfg.peer_timeout_ns = cfg.responder_timeout_ns = 5000 * RIG_MS;
	engine_limits(r->e, &cfg, r->now);
	rig_pass(r, 10000 * RIG_MS);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].state, LANE_FAULT);
	rig_destroy(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bypass),	      cmocka_unit_test(test_bypass_refuses),
		cmocka_unit_test(test_rules_moved),   cmocka_unit_test(test_all_off),
		cmocka_unit_test(test_release),	      cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_meters),	      cmocka_unit_test(test_last_place),
		cmocka_unit_test(test_pace),	      cmocka_unit_test(test_pace_found),
		cmocka_unit_test(test_pace_reloaded), cmocka_unit_test(test_pace_set),
		cmocka_unit_test(test_pace_alone),    cmocka_unit_test(test_timeouts),
		cmocka_unit_test(test_pace_class),    cmocka_unit_test(test_rules_gone),
		cmocka_unit_test(test_rules_overlap), cmocka_unit_test(test_policy_reloaded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
