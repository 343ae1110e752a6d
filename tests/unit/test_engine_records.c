// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Records of READs, which all lanes share: what becomes of a lane that finds none.
 */
#include "engine/reads/reads.h"
#include "tests/unit/engine_rig.h"
#include "tests/unit/no_records.h"

#define READ  "0c 40ffff 00000011 80%06x | 0000000000001000 00000007 00000008"
#define SEND  "04 40ffff 00000011 80%06x 61*8"
#define FIRST 0x100u

/* The peer has opened the lane of the far host's requests, from FIRST on. */
static struct rig *acceptor(void)
{
	struct rig *r = rig_held(NULL, 0, POLICY_EARLY, RIG_MTU);
	struct report open = rig_open(FIRST, 0, RIG_MTU);

	engine_rx_report(r->e, 0, &open, r->now);
	engine_tick(r->e, r->now);
	assert_int_equal(rig_conn(r).lane[LANE_IN].state, LANE_HELD);
	rig_forget(r);
	return r;
}

/* A READ and what follows it came when there was no record; there are some again. */
static struct rig *waiting(void)
{
	struct rig *r = acceptor();
	struct mq_list taken;

	mq_list_init(&taken);
	records_take(r, &taken);
	records_rx(r, FAR, READ, FIRST);
	records_rx(r, FAR, SEND, FIRST + 1);
	engine_tick(r->e, r->now);
	rig_quiet(r);
	mq_flush(r->e->reads, &taken);
	rig_check(r);
	return r;
}

/* The opener asks once more: then it goes on, although that is a duplicate. */
static void test_asked_again(void **state)
{
	struct rig *r = waiting();

	(void)state;
	rig_rx(r, FAR, READ, FIRST);
	rig_expect(r, PORT_LAN, READ, FIRST);
	rig_expect(r, PORT_LAN, SEND, FIRST + 1);
	rig_quiet(r);
	rig_destroy(r);
}

/* And it goes on by itself, for the opener may know that all has arrived. */
static void test_goes_on(void **state)
{
	struct rig *r = waiting();

	(void)state;
	rig_pass(r, 50 * RIG_MS);
	rig_expect(r, PORT_LAN, READ, FIRST);
	rig_expect(r, PORT_LAN, SEND, FIRST + 1);
	rig_destroy(r);
}

/* What stands before such a READ does not wait. */
static void test_before(void **state)
{
	struct rig *r = acceptor();
	struct mq_list taken;

	(void)state;
	mq_list_init(&taken);
	records_take(r, &taken);
	records_rx(r, FAR, READ, FIRST + 1);
	engine_tick(r->e, r->now);
	records_rx(r, FAR, SEND, FIRST);
	engine_tick(r->e, r->now);
	rig_expect(r, PORT_LAN, SEND, FIRST);
	rig_quiet(r);
	mq_flush(r->e->reads, &taken);
	rig_destroy(r);
}

/* A lane has no more of them than a host can wait for, so it cannot take those of all others. What
 * is beyond waits as for any other room, and is asked for when there is some. */
static void test_part_of_a_lane(void **state)
{
	struct rig *r = rig_held(NULL, 0, POLICY_EARLY, RIG_MTU);
	uint32_t psn = 6;
	bool asked = false;

	(void)state;
	while (psn < 6 + 600)
		rig_rx(r, NEAR, "0c 40ffff 00000022 80%06x | 0000000000001000 00000007 00000008",
		       psn++);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].reads_pending, 512);
	for (unsigned int i = 0; i < 4; i++) { /* its host tries again */
		rig_pass(r, 10 * RIG_MS);
		rig_rx(r, NEAR, "0c 40ffff 00000022 80%06x | 0000000000001000 00000007 00000008",
		       6 + 512);
	}
	rig_forget(r);
	for (psn = 6; psn < 6 + 100; psn++)
		rig_rx(r, FAR, "10 40ffff 00000011 00%06x | 1f %06x | 72*8", psn, psn + 1);
	rig_pass(r, 10 * RIG_MS);
	for (unsigned int i = 0; i < r->nout; i++)
		asked |= r->out[i].port == PORT_LAN && r->out[i].data[RIG_BTH] == 0x11 &&
			 r->out[i].data[RIG_BTH + 12] == 0x60;
	assert_false(asked); /* the frontier is not there yet, and a NAK acknowledges */
	for (psn = 6 + 100; psn < 6 + 512; psn++)
		rig_rx(r, FAR, "10 40ffff 00000011 00%06x | 1f %06x | 72*8", psn, psn + 1);
	rig_pass(r, 10 * RIG_MS);
	for (unsigned int i = 0; i < r->nout; i++)
		asked |= r->out[i].port == PORT_LAN && r->out[i].data[RIG_BTH] == 0x11 &&
			 r->out[i].data[RIG_BTH + 12] == 0x60 &&
			 get_be24(r->out[i].data + RIG_BTH + 9) == 6 + 512;
	assert_true(asked);
	rig_rx(r, NEAR, "0c 40ffff 00000022 80%06x | 0000000000001000 00000007 00000008", 6 + 512);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].reads_pending, 1);
	rig_destroy(r);
}

/* A response that the host has is not kept where there is no record for it. */
static void test_not_kept(void **state)
{
	struct rig *r = rig_held(NULL, 0, POLICY_EARLY, RIG_MTU);
	struct mq_list taken;

	(void)state;
	mq_list_init(&taken);
	rig_rx(r, NEAR, "0c 40ffff 00000022 80000006 | 0000000000001000 00000007 00000008");
	records_rx(r, FAR, "10 40ffff 00000011 00000006 | 1f 000007 | 72*8");
	records_take(r, &taken);
	engine_tick(r->e, r->now);
	mq_flush(r->e->reads, &taken);
	rig_check(r);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].reads_pending, 0);
	rig_destroy(r);
}

/* Repeats that the host has stuck at are over when an answer gets through to it. */
static void test_stuck_no_more(void **state)
{
	struct rig *r = rig_held(NULL, 0, POLICY_EARLY, RIG_MTU);
	struct lane_reads *x;

	(void)state;
	rig_rx(r, NEAR, "0c 40ffff 00000022 80000006 | 0000000000001000 00000007 00000008");
	x = reads_of(r->e, &flow_ref(r->e, lane_index(r->open.lane))->lane);
	undone_watch(NULL); /* changed by hand */
	x->stuck = r->now;
	rig_rx(r, FAR, "10 40ffff 00000011 00000006 | 1f 000007 | 72*8");
	assert_int_equal(rig_conn(r).lane[LANE_OUT].reads_pending, 0);
	assert_int_equal(x->stuck, 0);
	rig_destroy(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_asked_again), cmocka_unit_test(test_goes_on),
		cmocka_unit_test(test_before),	    cmocka_unit_test(test_part_of_a_lane),
		cmocka_unit_test(test_not_kept),    cmocka_unit_test(test_stuck_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
