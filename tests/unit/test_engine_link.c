// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What an opener and its peer tell each other about a lane, report by report, where it takes an
 * offer or a long time, which packet scripts do not have.
 */
#include "engine/core/core.h"
#include "tests/unit/engine_rig.h"

#define HOUR (3600 * 1000 * RIG_MS)

static const struct engine_config small = {.pool_bytes = 8 << 20, .max_conns = 16, .seed = 1};

/* The last OPEN that was told becomes @r->open. */
static void opened_again(struct rig *r)
{
	for (unsigned int i = 0; i < r->nrep; i++)
		if (r->rep[i].type == REPORT_OPEN)
			r->open = r->rep[i];
	rig_forget(r);
}

/* The peer will agree to a lane of the rig's requests. */
static struct report offered(void)
{
	struct report offer = {
		.type = REPORT_OPEN, .offer = true, .lqpn = 0x11, .path_mtu = RIG_MTU};

	ip_addr_parse("10.1.0.1", &offer.key.src);
	ip_addr_parse("10.2.0.1", &offer.key.dst);
	offer.key.dqpn = 0x22;
	offer.key.vlan = FRAME_VLAN_NONE;
	return offer;
}

/* A peer that offered to agree and then refuses, whatever it is asked: what was acknowledged on the
 * strength of the offer is owed, and nobody takes it. That ends with peer-timeout, also where the
 * refusals come sooner than the next OPEN is due. */
static void test_refuses_what_it_offered(void **state)
{
	struct rule rule = rig_rule(0, POLICY_EARLY, RIG_MTU);
	struct rig *r = rig_create(&small, &rule);
	struct report offer = offered();
	uint64_t from;

	(void)state;
	rig_learn(r, 0);
	engine_rx_report(r->e, 0, &offer, r->now);
	rig_rx(r, NEAR, SEND_ONLY("000005"));
	rig_expect(r, PORT_WAN, SEND_ONLY("000005"));
	rig_expect(r, PORT_LAN, ACK_TO_NEAR, 5, 6);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].state, LANE_HELD);
	from = r->now;
	while (r->now - from < 70000 * RIG_MS && !r->events[EVENT_FAULT]) {
		opened_again(r);
		rig_answer(r, REPORT_REFUSE, REASON_NO_RULE);
		opened_again(r);
		rig_pass(r, 10 * RIG_MS);
	}
	assert_int_equal(r->events[EVENT_FAULT], 1);
	assert_true(r->now - from >= 60000 * RIG_MS);
	assert_true(r->now - from < 61000 * RIG_MS);
	rig_destroy(r);
}

/* The peer has what comes before @end, but for what begins with PSN 26 and ends before @from. */
static void all_but(struct rig *r, uint32_t from, uint32_t end)
{
	struct report p = r->open;

	p.type = REPORT_PROGRESS;
	p.seq = ++r->seq;
	p.cum = p.una = p.una_msn = 26;
	p.hi = end;
	p.room = 10000;
	p.una_ackable = true;
	p.credit = 0x1f;
	p.nholes = 1;
	p.hole[0] = (struct psn_range){26, from};
	engine_rx_report(r->e, 0, &p, r->now);
	engine_tick(r->e, r->now);
	rig_check(r);
}

/* A lane that was idle for so long that times of 32 bits have come half round: what is missing is
 * sent again once, not at each report that says so. */
static void test_idle_for_long(void **state)
{
	struct engine_config cfg = small;
	struct rig *r;

	(void)state;
	cfg.idle_ns = 24 * HOUR;
	r = rig_held(&cfg, 0, POLICY_EARLY, RIG_MTU);
	for (uint32_t psn = 6; psn < 26; psn++) { /* the round trip is 1 ms */
		rig_rx(r, NEAR, "04 40ffff 00000022 80%06x 61*8", psn);
		rig_pass(r, RIG_MS);
		rig_progress(r, psn + 1, psn + 1, psn + 1);
	}
	r->now += 3 * HOUR / 4;
	engine_tick(r->e, r->now);
	rig_forget(r);
	for (uint32_t psn = 26; psn < 29; psn++) {
		rig_rx(r, NEAR, "04 40ffff 00000022 80%06x 61*8", psn);
		rig_pass(r, RIG_MS / 4);
	}
	rig_forget(r);
	rig_pass(r, RIG_MS / 2);
	all_but(r, 27, 29);
	rig_expect(r, PORT_WAN, SEND_ONLY("00001a"));
	rig_quiet(r);
	for (unsigned int i = 0; i < 2; i++) {
		rig_pass(r, RIG_MS);
		all_but(r, 27, 29);
		rig_quiet(r);
	}
	rig_destroy(r);
}

static int no_room(void *ctx, enum engine_port port, const uint8_t *data, uint32_t len,
		   uint32_t seal)
{
	(void)ctx, (void)port, (void)data, (void)len, (void)seal;
	return -1;
}

/* The port has no room when it is told what is lost: all of that leaves as soon as there is. */
static void test_lost_waits_for_room(void **state)
{
	struct rig *r = rig_held(&small, 0, POLICY_EARLY, RIG_MTU);

	(void)state;
	for (uint32_t psn = 6; psn < 30; psn++) { /* the round trip is 1 ms */
		rig_rx(r, NEAR, "04 40ffff 00000022 80%06x 61*8", psn);
		rig_pass(r, psn < 26 ? RIG_MS : RIG_MS / 4);
		if (psn < 26)
			rig_progress(r, psn + 1, psn + 1, psn + 1);
	}
	rig_forget(r);
	rig_pass(r, RIG_MS / 2);
	r->e->sink.tx = no_room;
	all_but(r, 29, 30);
	r->e->sink.tx = rig_sink_tx;
	rig_pass(r, RIG_MS / 4);
	for (uint32_t psn = 26; psn < 29; psn++)
		rig_expect(r, PORT_WAN, SEND_ONLY("%06x"), psn);
	rig_quiet(r);
	rig_destroy(r);
}

/* seal is switched on while a lane is held without it, and then the peer loses its memory. It
 * agrees to nothing that is not sealed; all that is in custody can be. */
static void test_sealed_from_restart(void **state)
{
	struct rule rule = rig_rule(0, POLICY_EARLY, RIG_MTU);
	struct rig *r = rig_held(&small, 0, POLICY_EARLY, RIG_MTU);

	(void)state;
	rig_rx(r, NEAR, SEND_ONLY("000006"));
	rig_forget(r);
	rule.seal = true;
	engine_rules(r->e, &rule, 1, r->now);
	engine_peer_event(r->e, 0, PEER_RESTARTED, r->now);
	assert_int_equal(r->rep[0].type, REPORT_OPEN);
	assert_true(r->rep[0].resume && r->rep[0].sealed);
	opened_again(r);
	rig_answer(r, REPORT_ACCEPT, REASON_NONE);
	rig_expect(r, PORT_WAN, SEND_ONLY("000006"));
	assert_int_not_equal(r->out[r->nout - 1].seal, 0);
	rig_destroy(r);
}

/* The peer resumes a lane here, after we have lost our memory. A frame that came before by the
 * wrong port, in the name of its host, shows nothing: the lane is served. */
static void test_resumed_from_wrong_side(void **state)
{
	struct rule rule = rig_rule(0, POLICY_EARLY, RIG_MTU);
	struct rig *r = rig_create(&small, &rule);
	struct report open = {
		.type = REPORT_OPEN, .resume = true, .gen = 7, .lqpn = 0x22, .path_mtu = RIG_MTU};
	struct flow_key *k = &open.key;
	uint8_t buf[FRAME_MAX];

	(void)state;
	rule.far[rule.nfar++] = rule.near[0]; /* the rule wants it from either side */
	rule.near[rule.nnear++] = rule.far[0];
	engine_rules(r->e, &rule, 1, r->now);
	ip_addr_parse("10.2.0.1", &k->src);
	ip_addr_parse("10.1.0.1", &k->dst);
	k->dqpn = 0x11;
	k->vlan = FRAME_VLAN_NONE;
	engine_rx(r->e, PORT_LAN, buf, rig_build(r, buf, FAR, "04 40ffff 00000011 80000005 61*8"),
		  r->now);
	engine_tick(r->e, r->now);
	rig_forget(r);
	engine_rx_report(r->e, 0, &open, r->now);
	engine_tick(r->e, r->now);
	assert_int_equal(r->rep[0].type, REPORT_ACCEPT);
	rig_rx(r, FAR, "04 40ffff 00000011 80000000 61*8");
	rig_expect(r, PORT_LAN, "04 40ffff 00000011 80000000 61*8");
	rig_destroy(r);
}

/* A refusal of a lane that the peer has agreed to, as a late one may be, changes nothing. */
static void test_refused_late(void **state)
{
	struct rig *r = rig_held(&small, 0, POLICY_EARLY, RIG_MTU);

	(void)state;
	rig_rx(r, NEAR, SEND_ONLY("000006"));
	rig_forget(r);
	rig_answer(r, REPORT_REFUSE, REASON_NO_RULE);
	rig_quiet(r);
	assert_int_equal(r->nrep, 0);
	rig_progress(r, 7, 7, 7);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].una, 7);
	rig_destroy(r);
}

/* METERs of [0, nrep); the latest becomes *@m. */
static unsigned int meters(struct rig *r, struct meter *m)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < r->nrep; i++) {
		if (r->rep[i].type != REPORT_METER)
			continue;
		*m = r->rep[i].meter;
		n++;
	}
	r->nrep = 0;
	return n;
}

/* A peer of whose packets none comes is told so, once for all that it says to have sent: so both
 * ends know that nothing crosses. */
static void test_nothing_came(void **state)
{
	struct rule rule = rig_rule(0, POLICY_EARLY, RIG_MTU);
	struct engine_config cfg = small;
	struct report said = {.type = REPORT_METER, .meter = {.sent_at = 1, .sent = 5000}};
	struct link_info k;
	struct meter m;
	struct rig *r;

	(void)state;
	cfg.wan_auto = true;
	r = rig_create(&cfg, &rule);
	rig_pass(r, 1000 * RIG_MS);
	assert_int_equal(meters(r, &m), 0);
	engine_rx_report(r->e, 0, &said, r->now);
	rig_pass(r, 1000 * RIG_MS);
	assert_int_equal(meters(r, &m), 1);
	assert_int_equal(m.echo_sent, 5000);
	assert_int_equal(m.got, 0);
	said.meter.sent_at = 2; /* nothing more was sent */
	engine_rx_report(r->e, 0, &said, r->now);
	rig_pass(r, 1000 * RIG_MS);
	assert_int_equal(meters(r, &m), 0);
	said.meter.sent_at = 3;
	said.meter.sent = 6000;
	engine_rx_report(r->e, 0, &said, r->now);
	rig_pass(r, 1000 * RIG_MS);
	assert_int_equal(meters(r, &m), 1);
	assert_true(engine_link_info(r->e, 0, &k));
	assert_int_equal(k.in.sent, 6000);
	assert_int_equal(k.in.got, 0);
	assert_int_equal(k.out.sent, 0);
	/* the same in the other direction, as the peer tells it */
	rig_rx(r, NEAR, SEND_ONLY("000005"));
	rig_pass(r, 1000 * RIG_MS);
	assert_int_equal(meters(r, &m), 1);
	assert_true(m.sent > 0);
	said.meter.sent_at = 4;
	said.meter.echo_at = m.sent_at;
	said.meter.echo_sent = m.sent;
	engine_rx_report(r->e, 0, &said, r->now);
	assert_true(engine_link_info(r->e, 0, &k));
	assert_int_equal(k.out.sent, m.sent);
	assert_int_equal(k.out.got, 0);
	/* a session anew begins to count anew */
	engine_peer_event(r->e, 0, PEER_DOWN, r->now);
	engine_peer_event(r->e, 0, PEER_RESTARTED, r->now);
	assert_true(engine_link_info(r->e, 0, &k));
	assert_int_equal(k.out.sent + k.in.sent, 0);
	rig_destroy(r);
}

/* A peer that is another one than before has offered nothing, and what it had is noted first. */
static void test_offer_forgotten(void **state)
{
	struct rule rule = rig_rule(0, POLICY_EARLY, RIG_MTU);
	struct rig *r = rig_create(&small, &rule);
	struct report offer = offered();

	(void)state;
	rig_learn(r, 0);
	engine_rx_report(r->e, 0, &offer, r->now);
	assert_int_not_equal(flow_by_key(r->e, &offer.key)->offered, 0);
	engine_tick(r->e, r->now);
	engine_peer_event(r->e, 0, PEER_RESTARTED, r->now);
	assert_int_equal(flow_by_key(r->e, &offer.key)->offered, 0);
	engine_tick(r->e, r->now);
	rig_check(r);
	rig_destroy(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refuses_what_it_offered),
		cmocka_unit_test(test_offer_forgotten),
		cmocka_unit_test(test_refused_late),
		cmocka_unit_test(test_idle_for_long),
		cmocka_unit_test(test_lost_waits_for_room),
		cmocka_unit_test(test_sealed_from_restart),
		cmocka_unit_test(test_resumed_from_wrong_side),
		cmocka_unit_test(test_nothing_came),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
