// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Appliances that read an OPEN behind the frames that were sent after it (world_late.c), as a
 * kernel shows them. The daemon waits for it (daemon/ask.h), so the frames are unsealed, and the
 * responder has nothing to drop for its ICRC. Without that it drops the first burst of a lane.
 */
#include "tests/scenario/scenario.h"
#include "wire/icrc.h"
#include "wire/psn.h"

#define RTT	(20 * MS)
#define WORLDS	20u
#define BOTH	(LATE_REPORTS(0) | LATE_REPORTS(1))
#define WAIT_US 200u /* the daemon waits as long */

static struct world *make(uint64_t seed, uint32_t late, uint32_t us, double loss)
{
	struct world_config c;
	struct world *w;

	world_defaults(&c);
	c.seed = seed;
	c.check_every = 101;
	c.check_custody = true;
	c.wan.delay_ns = RTT / 2;
	c.wan.loss = loss;
	c.actors.late = late;
	c.actors.late_us = us;
	w = world_create(&c);
	assert_non_null(w);
	return w;
}

/* A connection works in both directions until all is done. */
static void live(struct world *w, bool by_cm)
{
	struct work work = {.ops = OPS_WRITE_SEND, .min = 1, .max = 9000, .left = 200};
	struct rc_qp_config qc;
	struct world_qp *q;

	scenario_qp(&qc, 1, 1024, RC_STRICT);
	qc.depth = 128;
	q = by_cm ? world_connect_cm(w, &qc, RC_STRICT) : world_connect(w, &qc, RC_STRICT);
	world_work(q, 0, &work);
	world_work(q, 1, &work);
	scenario_finish(w, 100 * SEC);
}

/* What hosts dropped for its ICRC, in worlds without loss. */
static uint64_t dropped(uint32_t late, uint32_t us, uint64_t *waits)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < 2 * WORLDS; i++) {
		struct world *w = make(i + 1, late, us, 0);

		live(w, i % 2);
		n += rc_host_stats(w->host[0])->rx_bad_icrc +
		     rc_host_stats(w->host[1])->rx_bad_icrc;
		*waits += w->late_waits;
		world_destroy(w);
	}
	return n;
}

static void test_first_burst(void **state)
{
	uint64_t waits = 0;

	(void)state;
	assert_int_equal(dropped(BOTH, WAIT_US, &waits), 0);
	assert_true(waits > WORLDS / 2);
	assert_int_equal(dropped(BOTH | LATE_OPEN, WAIT_US, &waits), 0);
	assert_true(dropped(BOTH, 5000, &waits) > 0);
	/* reports before their frames cost nothing */
	waits = 0;
	assert_int_equal(dropped(LATE_FRAMES(0) | LATE_FRAMES(1), 5000, &waits), 0);
	assert_int_equal(waits, 0);
}

/* Frames with a wrong ICRC that reach a responder while its appliance has a lane that begins at
 * a later PSN, of which nothing is acknowledged yet. */
static uint64_t of_next_lane;

static bool look(struct world *w, int link, const uint8_t *data, uint32_t len)
{
	struct conn_info ci;
	struct frame f;

	if ((link != WORLD_LAN_OUT(0) && link != WORLD_LAN_OUT(1)) ||
	    frame_parse(data, len, &f) != FRAME_OK || !(f.op->flags & OPF_REQUEST) || icrc_ok(&f))
		return true;
	of_next_lane += world_conn(w, link & 1, &w->qp[0], &ci) &&
			ci.lane[LANE_IN].state == LANE_HELD &&
			psn_before(f.psn, ci.lane[LANE_IN].una);
	return true;
}

/* What came before a lane is lost, and the lane begins anew where its host goes back to. The peer
 * reads neither CLOSE nor OPEN before the frames. */
static void test_begins_anew(void **state)
{
	uint64_t opened = 0;

	(void)state;
	of_next_lane = 0;
	for (uint32_t i = 0; i < WORLDS; i++) {
		struct world *w = make(i + 1, BOTH, WAIT_US / 2, 0.02);

		w->filter = look;
		live(w, false);
		opened += w->opened[0] + w->opened[1];
		world_destroy(w);
	}
	assert_true(opened > 6 * WORLDS); /* each lane twice, at both ends, is 8 */
	assert_int_equal(of_next_lane, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_burst),
		cmocka_unit_test(test_begins_anew),
	};

	return cmocka_run_group_tests_name("scenario/late", tests, NULL, NULL);
}
