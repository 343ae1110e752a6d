// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The seal (engine/core/seal.c): tags, what a recorded or guessed one is worth, and what becomes of
 * a frame without one.
 */
#include "engine/core/core.h"
#include "tests/unit/seal_guess.h"

#define GUESSES 1000000u

static const struct engine_config small = {.pool_bytes = 4 << 20, .max_conns = 16, .seed = 1};

/* An appliance near the responder, with a sealed lane from PSN 5 on. */
static struct rig *accepting(void)
{
	struct rule rule = rig_rule(0, POLICY_EARLY, 1024);
	struct report open = rig_open(5, 5, 1024);
	struct rig *r;

	rule.seal = true;
	r = rig_create(&small, &rule);
	rig_learn(r, 0);
	open.sealed = true;
	open.seal_key[0] = 0x0123456789abcdef;
	open.seal_key[1] = 0xfedcba9876543210;
	engine_rx_report(r->e, 0, &open, r->now);
	engine_tick(r->e, r->now);
	assert_true(rig_conn(r).lane[LANE_IN].sealed);
	rig_pass(r, 2000 * RIG_MS); /* packets from before it are no excuse any more */
	rig_forget(r);
	return r;
}

/* ENG-19: a million frames with guessed tags: what passes the hosts drop, and nothing is taken. */
static void test_guesses(void **state)
{
	struct rig *r = accepting();

	(void)state;
	seal_guess(r, "04 40ffff 00000011 80000005 61*8", GUESSES, 19);
	assert_int_equal(rig_conn(r).lane[LANE_IN].transit.packets, 0);
	assert_int_equal(rig_conn(r).lane[LANE_IN].epsn, 5);
	rig_rx(r, FAR, "04 40ffff 00000011 80000005 61*8");
	rig_expect(r, PORT_LAN, "04 40ffff 00000011 80000005 61*8");
	rig_destroy(r);
}

/* A large frame is opened while it is copied; the same holds for it. */
static void test_large(void **state)
{
	struct rig *r = accepting();
	const char *text = "04 40ffff 00000011 80000005 61*1024";

	(void)state;
	r->native = true;
	rig_rx(r, FAR, "%s", text);
	assert_int_equal(engine_counter(r->e, EC_UNSEALED), 1);
	assert_int_equal(rig_conn(r).lane[LANE_IN].transit.packets, 0);
	r->native = false;
	rig_rx(r, FAR, "%s", text);
	rig_expect(r, PORT_LAN, "%s", text);
	assert_int_equal(engine_counter(r->e, EC_SEAL_WRONG), 0);
	rig_destroy(r);
}

static struct lane lane_of(uint64_t key, uint32_t from, uint32_t una, uint32_t turns)
{
	struct lane l = {.sealed = true};

	l.una.psn.v = una;
	l.seal = (struct seal){.key = {key, key}, .from = {from}, .turns = turns};
	return l;
}

static uint32_t tag_of(struct engine *e, const struct lane *l, bool response, uint32_t psn)
{
	return seal_tag(e, l, response, (struct wire_psn){psn});
}

/* A tag is of one packet: of its direction, its PSN in its turn of the circle, its generation. */
static void test_tags(void **state)
{
	struct engine *e = calloc(1, sizeof(*e));
	struct lane now = lane_of(7, 3, 100, 0), ahead = lane_of(7, 3, 0xfffff0, 0),
		    behind = lane_of(7, 3, 2, 1), other = lane_of(8, 3, 100, 0);
	uint32_t tag;

	(void)state;
	assert_non_null(e);
	tag = tag_of(e, &now, false, 5);
	assert_int_not_equal(tag, 0);
	assert_int_not_equal(tag, tag_of(e, &now, true, 5));
	assert_int_not_equal(tag, tag_of(e, &now, false, 4));
	assert_int_not_equal(tag, tag_of(e, &other, false, 5));
	assert_int_equal(tag_of(e, &now, false, 2), 0); /* before the handover */
	/* one circle later, before and after the true ACK has come round */
	assert_int_equal(tag_of(e, &ahead, false, 5), tag_of(e, &behind, false, 5));
	assert_int_not_equal(tag_of(e, &behind, false, 5), tag);
	assert_int_equal(tag_of(e, &behind, false, 0xfffff5), tag_of(e, &ahead, false, 0xfffff5));
	free(e);
}

/* The true ACK comes round to 0: what was recorded a circle ago is not taken. */
static void test_turns(void **state)
{
	struct lane l = lane_of(7, 0xfffffe, 0xfffffe, 0);
	struct wire_mark m = {.psn = {3}};

	(void)state;
	mark_una(&l, &m);
	assert_int_equal(l.seal.turns, 1);
	mark_una_psn(&l, (struct wire_psn){4});
	assert_int_equal(l.seal.turns, 1);
	m.psn.v = 0x700000;
	mark_una(&l, &m);
	m.psn.v = 0xd00000;
	mark_una(&l, &m);
	m.psn.v = 1;
	mark_una(&l, &m);
	assert_int_equal(l.seal.turns, 2);
}

/* An opener draws a key for each generation, and seals from the first packet on. */
static void test_opener(void **state)
{
	struct rule rule = rig_rule(0, POLICY_EARLY, 1024);
	struct report first;
	struct rig *r;

	(void)state;
	rule.seal = true;
	r = rig_create(&small, &rule);
	rig_learn(r, 0);
	rig_rx(r, NEAR, SEND_ONLY("000005"));
	assert_int_equal(r->rep[0].type, REPORT_OPEN);
	first = r->open = r->rep[0];
	assert_true(first.sealed && first.seal_key[0] && first.seal_key[0] != first.seal_key[1]);
	assert_int_not_equal(r->out[r->nout - 1].seal, 0);
	rig_answer(r, REPORT_ACCEPT, REASON_NONE);
	rig_forget(r);
	engine_peer_event(r->e, 0, PEER_RESTARTED, r->now);
	assert_int_equal(r->rep[0].type, REPORT_OPEN);
	assert_true(r->rep[0].sealed && r->rep[0].seal_key[0] != first.seal_key[0]);
	rig_destroy(r);
}

/* ENG-19: a peer that does not know seals is asked for nothing where the rule wants them. */
static void test_old_peer(void **state)
{
	struct rule rule = rig_rule(0, POLICY_EARLY, 1024);
	struct rig *r;

	(void)state;
	rule.seal = true;
	r = rig_create(&small, &rule);
	engine_peer_features(r->e, 0, 0);
	/* before its HELLO it is not known what it can */
	engine_peer_event(r->e, 0, PEER_DOWN, r->now);
	rig_learn(r, 0);
	rig_rx(r, NEAR, SEND_ONLY("000005"));
	rig_expect(r, PORT_WAN, SEND_ONLY("000005"));
	assert_int_equal(rig_conn(r).lane[LANE_OUT].reason, REASON_NONE);
	engine_peer_event(r->e, 0, PEER_UP, r->now);
	rig_rx(r, NEAR, SEND_ONLY("000005"));
	assert_int_equal(r->nrep, 0);
	rig_expect(r, PORT_WAN, SEND_ONLY("000005"));
	assert_int_equal(rig_conn(r).lane[LANE_OUT].state, LANE_WATCH);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].reason, REASON_UNSEALED);
	rig_destroy(r);
}

/* A lane that its hosts go on without is known by its seal for a while; one whose queue pair is
 * gone is not. */
static void test_left(void **state)
{
	struct rule rule = rig_rule(0, POLICY_EARLY, 1024);

	(void)state;
	rule.seal = true;
	for (int gone = 0; gone < 2; gone++) {
		struct rig *r = rig_create(&small, &rule);
		struct flow *fl;

		rig_learn(r, 0);
		rig_rx(r, NEAR, SEND_ONLY("000005"));
		r->open = r->rep[0];
		rig_answer(r, REPORT_ACCEPT, REASON_NONE);
		rig_progress(r, 6, 6, 6);
		undone_watch(NULL); /* changed by hand */
		fl = flow_ref(r->e, lane_index(r->open.lane));
		fl->lane.gone = gone;
		lane_part(r->e, fl);
		assert_int_equal(fl->lane.role, ROLE_NONE);
		assert_int_equal(fl->lane.seal.key[0] != 0, !gone);
		rig_destroy(r);
	}
}

/* A frame whose ICRC is wrong may be sealed by what an OPEN says that is not read yet: the caller
 * is asked to read it first. What no OPEN explains is never asked about. */
static void test_asks_for_an_open(void **state)
{
	const char *text = "04 40ffff 00000011 80000005 61*8";
	struct rule rule = rig_rule(0, POLICY_EARLY, 1024);
	struct report open = rig_open(5, 5, 1024);
	struct rig *r;
	uint8_t data[FRAME_MAX], copy[FRAME_MAX];
	uint32_t len;

	(void)state;
	rule.seal = true;
	r = rig_create(&small, &rule);
	rig_learn(r, 0);
	rig_forget(r);
	len = rig_build(r, data, FAR, text);
	data[len - 1] ^= 1;
	memcpy(copy, data, len);
	assert_false(engine_rx_ask(r->e, PORT_WAN, copy, len, r->now));
	assert_memory_equal(copy, data, len);
	assert_int_equal(r->nout, 0);
	assert_int_equal(engine_counter(r->e, EC_BAD_ICRC), 0);
	assert_true(engine_rx_ask(r->e, PORT_LAN, copy, len, r->now)); /* no peer seals that */
	engine_peer_event(r->e, 0, PEER_DOWN, r->now);
	assert_true(engine_rx_ask(r->e, PORT_WAN, copy, len, r->now));
	assert_int_equal(engine_counter(r->e, EC_BAD_ICRC), 2);
	engine_peer_event(r->e, 0, PEER_UP, r->now);
	rig_build(r, data, FAR, text);
	assert_true(engine_rx_ask(r->e, PORT_WAN, data, len, r->now));

	open.sealed = true;
	open.seal_key[0] = 1;
	engine_rx_report(r->e, 0, &open, r->now);
	engine_tick(r->e, r->now);
	rig_build(r, data, FAR, text);
	data[len - 1] ^= 1;
	assert_true(
		engine_rx_ask(r->e, PORT_WAN, data, len, r->now)); /* the lane is there: damaged */
	rig_destroy(r);
}

/* A lane ends because what came before it is lost, and begins anew at an earlier PSN: its frames
 * may come before the OPEN that says so is read. Once the responder acknowledges, none follow. */
static void test_asks_for_the_next_open(void **state)
{
	struct rig *r = accepting();
	uint8_t data[FRAME_MAX], copy[FRAME_MAX];
	uint32_t len = rig_build(r, data, FAR, "04 40ffff 00000011 80000003 61*8");

	(void)state;
	data[len - 1] ^= 1;
	memcpy(copy, data, len);
	assert_false(engine_rx_ask(r->e, PORT_WAN, copy, len, r->now));
	assert_memory_equal(copy, data, len);
	assert_int_equal(r->nout, 0);
	rig_build(r, data, FAR, "04 40ffff 00000011 80000003 61*8");
	assert_true(engine_rx_ask(r->e, PORT_WAN, data, len, r->now)); /* the host's own */

	rig_rx(r, FAR, "04 40ffff 00000011 80000005 61*8");
	rig_rx(r, NEAR, "11 40ffff 00000022 00000005 1f000006");
	memcpy(data, copy, len);
	assert_true(engine_rx_ask(r->e, PORT_WAN, data, len, r->now));
	assert_int_equal(engine_counter(r->e, EC_BAD_ICRC), 0);
	rig_destroy(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_guesses),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_tags),
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_opener),
		cmocka_unit_test(test_old_peer),
		cmocka_unit_test(test_left),
		cmocka_unit_test(test_asks_for_an_open),
		cmocka_unit_test(test_asks_for_the_next_open),
	};

	return cmocka_run_group_tests_name("engine, seal", tests, NULL, NULL);
}
