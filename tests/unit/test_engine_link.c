// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What an opener and its peer tell each other about a lane, report by report, where it takes an
 * offer or a long time, which packet scripts do not have.
 */
#include "tests/unit/engine_rig.h"

static const struct engine_config small = {.pool_bytes = 8 << 20, .max_conns = 16, .seed = 1};

/* The last OPEN that was told becomes @r->open. */
static void opened_again(struct rig *r)
{
	for (unsigned int i = 0; i < r->nrep; i++)
		if (r->rep[i].type == REPORT_OPEN)
			r->open = r->rep[i];
	rig_forget(r);
}

/* A peer that offered to agree and then refuses, whatever it is asked: what was acknowledged on the
 * strength of the offer is owed, and nobody takes it. That ends with peer-timeout, also where the
 * refusals come sooner than the next OPEN is due. */
static void test_refuses_what_it_offered(void **state)
{
	struct rule rule = rig_rule(0, POLICY_EARLY, RIG_MTU);
	struct rig *r = rig_create(&small, &rule);
	struct report offer = {
		.type = REPORT_OPEN, .offer = true, .lqpn = 0x11, .path_mtu = RIG_MTU};
	uint64_t from;

	(void)state;
	ip_addr_parse("10.1.0.1", &offer.key.src);
	ip_addr_parse("10.2.0.1", &offer.key.dst);
	offer.key.dqpn = 0x22;
	offer.key.vlan = FRAME_VLAN_NONE;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refuses_what_it_offered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
