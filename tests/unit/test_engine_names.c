// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Names of READ responses, at the appliance near the requester. A READ that was asked twice has two
 * true answers with different ICRCs, and reports come in any order beside the packets. The host
 * gets one that is named, and no forger is counted.
 */
#include "tests/unit/engine_rig.h"

#define READ_ "0c 40ffff 00000022 80000006 | 0000000000001000 00000007 00000040"
/* The same data; the responder has done more since. */
#define A_    "10 40ffff 00000011 00000006 | 1f000007 | 72*64"
#define B_    "10 40ffff 00000011 00000006 | 1f000009 | 72*64"

/* A READ is under way, of which the responses must be named. */
static struct rig *asked(void)
{
	static const struct engine_config cfg = {.pool_bytes = 4 << 20, .max_conns = 16, .seed = 1};
	struct rule rule = rig_rule(0, POLICY_EARLY, 1024);
	struct rig *r;

	rule.wan_check = true;
	r = rig_create(&cfg, &rule);
	engine_peer_features(r->e, 0, PEER_FEATURE_NAMES_RESP);
	rig_learn(r, 0);
	rig_rx(r, NEAR, SEND_ONLY("000005"));
	assert_int_equal(r->rep[0].type, REPORT_OPEN);
	r->open = r->rep[0];
	rig_answer(r, REPORT_ACCEPT, REASON_NONE);
	rig_progress(r, 6, 6, 6);
	assert_true(rig_conn(r).lane[LANE_OUT].resp_checked);
	rig_rx(r, NEAR, READ_);
	rig_forget(r);
	return r;
}

static void named(struct rig *r, const char *response)
{
	struct report names = r->open;
	uint8_t data[FRAME_MAX];
	uint32_t len = rig_build(r, data, FAR, response);

	names.type = REPORT_NAMES;
	names.cum = 6;
	names.hi = 7;
	names.nnames = 1;
	names.name[0] = get_be32(data + len - ICRC_LEN);
	engine_rx_report(r->e, 0, &names, r->now);
	engine_tick(r->e, r->now);
}

/* What happens, as letters: A and B are responses that come, a and b their names. The host gets
 * @given with the last of them, and nothing before. */
static void sequence(const char *steps, const char *given, uint64_t dropped)
{
	struct rig *r = asked();

	for (const char *s = steps; *s; s++) {
		if (*s == 'A' || *s == 'B')
			rig_rx(r, FAR, *s == 'A' ? A_ : B_);
		else
			named(r, *s == 'a' ? A_ : B_);
		if (s[1])
			rig_quiet(r);
	}
	rig_expect(r, PORT_LAN, "%s", given);
	rig_quiet(r);
	assert_int_equal(engine_counter(r->e, EC_DUP_STREAM), dropped);
	assert_int_equal(engine_counter(r->e, EC_FORGED), 0);
	assert_int_equal(engine_counter(r->e, EC_UNNAMED), 0);
	rig_destroy(r);
}

static void test_one_answer(void **state)
{
	(void)state;
	sequence("Aa", A_, 0);
	sequence("aA", A_, 0);
}

static void test_two_answers(void **state)
{
	(void)state;
	/* both come before a name does */
	sequence("ABa", A_, 1);
	/* a name is late, or lost, and the other one's has come */
	sequence("AbB", B_, 1);
	sequence("ABbB", B_, 2);
	/* a response is lost */
	sequence("abB", B_, 0);
	sequence("aBb", B_, 0);
	sequence("baA", A_, 0);
}

/* A name is told again, once the other response was taken as a guess. */
static void test_named_again(void **state)
{
	(void)state;
	sequence("aBaA", A_, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_answer),
		cmocka_unit_test(test_two_answers),
		cmocka_unit_test(test_named_again),
	};

	return cmocka_run_group_tests_name("engine, names of responses", tests, NULL, NULL);
}
