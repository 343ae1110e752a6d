// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A lane whose numbers near the responder are not those of the wire, since READs of ours have gone
 * there: whatever becomes of its opener, nothing of it reaches the responder as it came, for there
 * it would be another request.
 */
#include "tests/unit/storage_rig.h"

#define RESPONSE "04 40ffff 00000011 80%06x | 00*12 %02x 00 0000"

/* Four commands prove what is READ, a fifth was READ ahead: the numbers differ. */
static struct storage numbered(bool check)
{
	struct storage s = begin_checked(ANNOUNCE_MODE_NVME, check);

	for (unsigned int id = 0; id < 4; id++) {
		tell(&s, id);
		assert_true(give(&s, fetch(&s, VA)));
		done(&s, id);
	}
	answers(&s, s.psn);
	tell(&s, 4);
	(void)give(&s, asked(&s));
	rig_pass(s.r, 10 * RIG_MS);
	rig_forget(s.r);
	return s;
}

static unsigned int sent_to_lan(const struct rig *r)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < r->nout; i++)
		n += r->out[i].port == PORT_LAN;
	return n;
}

static unsigned int sent_to_wan(const struct rig *r, uint8_t opcode)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < r->nout; i++)
		n += r->out[i].port == PORT_WAN && r->out[i].data[RIG_BTH] == opcode;
	return n;
}

static enum lane_state state(struct storage *s)
{
	return (enum lane_state)rig_conn(s->r).lane[LANE_IN].state;
}

static unsigned int told(const struct rig *r, enum report_type type)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < r->nrep; i++)
		n += r->rep[i].type == type;
	return n;
}

/* The session is cut, and packets come: the opener has custody for as long as it may be silent. */
static void test_peer_away(void **state_)
{
	struct storage s = numbered(true);

	(void)state_;
	engine_peer_event(s.r->e, 0, PEER_DOWN, s.r->now);
	rig_pass(s.r, 11000 * RIG_MS);
	s.r->native = true;
	rig_rx(s.r, FAR, RESPONSE, s.psn, 4);
	s.r->native = false;
	assert_int_equal(sent_to_lan(s.r), 0);
	assert_int_equal(state(&s), LANE_HELD);
	engine_peer_event(s.r->e, 0, PEER_UP, s.r->now);
	target(&s, RESPONSE, s.psn, 4);
	rig_pass(s.r, RIG_MS);
	assert_true(sent_to_lan(s.r) > 0);
	assert_int_equal(state(&s), LANE_HELD);
	rig_destroy(s.r);
}

/* It was silent for longer than that: it is believed to be no more, and nothing passes. */
static void test_peer_gone(void **state_)
{
	struct storage s = numbered(true);

	(void)state_;
	engine_peer_event(s.r->e, 0, PEER_DOWN, s.r->now);
	rig_pass(s.r, 61000 * RIG_MS);
	s.r->native = true;
	rig_rx(s.r, FAR, RESPONSE, s.psn, 4);
	assert_int_equal(sent_to_lan(s.r), 0);
	assert_int_equal(state(&s), LANE_WATCH);
	rig_destroy(s.r);
}

/* Its opener comes back without memory: nobody knows any more what its host's numbers mean to the
 * responder. The host goes on, and is told when it has asked three times from the same place. */
static void test_requester_is_told(void **state_)
{
	struct storage s = numbered(true);

	(void)state_;
	engine_peer_event(s.r->e, 0, PEER_RESTARTED, s.r->now);
	rig_pass(s.r, 2000 * RIG_MS);
	rig_forget(s.r);
	s.r->native = true;
	for (int i = 0; i < 3; i++) {
		rig_pass(s.r, 100 * RIG_MS);
		rig_rx(s.r, FAR, "04 40ffff 00000011 80%06x | 00*12 04 00 0000", s.psn);
	}
	assert_int_equal(sent_to_wan(s.r, 0x11), 1);
	assert_int_equal(state(&s), LANE_WATCH);
	rig_destroy(s.r);
}

/* The opener has lost the lane. What had come in order is delivered, and what comes since is not;
 * but whoever opened it hears that it has come. */
static void test_drain(void **state_)
{
	struct storage s = numbered(false);

	(void)state_;
	target(&s, RESPONSE, s.psn++, 4);
	assert_int_equal(sent_to_lan(s.r), 1);
	engine_peer_event(s.r->e, 0, PEER_RESTARTED, s.r->now);
	assert_int_equal(state(&s), LANE_DRAIN);
	rig_forget(s.r);
	target(&s, RESPONSE, s.psn, 5);
	rig_rx(s.r, FAR, "1f 40ffff 00000011 80%06x | 00*12 05 00 0000", s.psn);
	assert_int_equal(sent_to_lan(s.r), 0);
	assert_true(told(s.r, REPORT_PROGRESS) > 0);
	rig_destroy(s.r);
}

/* The responder is silent while something is on its way to it. A repeat from below that does not
 * pass, for its number means another request there, raises no doubt whose the number is: nothing
 * waits for the responder's word. */
static void test_repeat_while_silent(void **state_)
{
	struct storage s = numbered(false);

	(void)state_;
	target(&s, RESPONSE, s.psn++, 4);
	rig_pass(s.r, 600 * RIG_MS);
	rig_rx(s.r, FAR, RESPONSE, psn_sub(s.psn, 2), 3);
	rig_forget(s.r);
	target(&s, RESPONSE, s.psn++, 5);
	assert_int_equal(sent_to_lan(s.r), 1);
	rig_destroy(s.r);
}

/* The opener asks what it knows of the lane, when it has heard nothing of it for long. */
static void test_asked(void **state_)
{
	struct storage s = numbered(false);

	(void)state_;
	answers(&s, s.psn);
	rig_pass(s.r, 2000 * RIG_MS);
	rig_forget(s.r);
	answers(&s, s.psn);
	assert_int_equal(told(s.r, REPORT_PROGRESS), 1);
	rig_pass(s.r, 100 * RIG_MS);
	rig_forget(s.r);
	answers(&s, s.psn); /* it was told just now */
	assert_int_equal(told(s.r, REPORT_PROGRESS), 0);
	rig_destroy(s.r);
}

/* Whether both queue pairs fail if a peer that has opened a lane as @open loses its memory. */
static bool fails_without(const struct report *open, uint32_t features)
{
	static const struct engine_config cfg = {.pool_bytes = 4 << 20, .max_conns = 16, .seed = 1};
	struct rig *r = rig_held(&cfg, 0, POLICY_EARLY, RIG_MTU);
	bool fails;

	engine_peer_features(r->e, 0, features);
	engine_rx_report(r->e, 0, open, r->now);
	rig_rx(r, FAR, "04 40ffff 00000011 80000100 61*8");
	rig_rx(r, NEAR, "11 40ffff 00000022 00000100 1f 000001");
	engine_peer_event(r->e, 0, PEER_RESTARTED, r->now);
	rig_pass(r, 100 * RIG_MS);
	fails = rig_conn(r).lane[LANE_OUT].state == LANE_FAULT;
	rig_destroy(r);
	return fails;
}

/* Whether the peer asked ahead before a resumption, its OPEN says; that of an older version this
 * side cannot see. In doubt the hosts' numbers differ. */
static void test_asked_ahead_in_doubt(void **state_)
{
	struct report open = rig_open(0x100, 0, RIG_MTU);

	(void)state_;
	open.sealed = true;
	open.seal_key[0] = 1;
	assert_false(fails_without(&open, PEER_FEATURE_SEAL));
	open.one_read = true;
	assert_false(fails_without(&open, PEER_FEATURE_SEAL | PEER_FEATURE_OWN));
	assert_true(fails_without(&open, PEER_FEATURE_SEAL));
	open.resume = true;
	assert_false(fails_without(&open, PEER_FEATURE_SEAL | PEER_FEATURE_OWN));
	open.own = true;
	assert_true(fails_without(&open, PEER_FEATURE_SEAL | PEER_FEATURE_OWN));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_peer_away),
		cmocka_unit_test(test_peer_gone),
		cmocka_unit_test(test_drain),
		cmocka_unit_test(test_repeat_while_silent),
		cmocka_unit_test(test_asked),
		cmocka_unit_test(test_requester_is_told),
		cmocka_unit_test(test_asked_ahead_in_doubt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
