// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * POOL-4 in the engine: one queue pair's WRITEs have taken all the room that they can get. READ
 * requests are taken all the same, those of that queue pair, too; and another queue pair that holds
 * nothing yet has a minimum for itself. The far host acknowledges nothing meanwhile. And responses
 * from the WAN have taken all of it: the next that the host waits for gets through.
 */
#include "engine/near/near.h"
#include "engine/reads/reads.h"
#include "store/window.h"
#include "tests/unit/engine_rig.h"

#define WRITE_	"0a 40ffff 00000022 80%06x | 0000000000001000 00000007 00000400 | 61*1024"
#define READ_	"0c 40ffff 000000%02x 80%06x | 0000000000001000 00000007 00000008"
#define SEND2	"04 40ffff 00000023 80%06x 61*1024" /* of QP 0x12 to QP 0x23 */
#define SEND_TO "04 40ffff 000000%02x 80%06x 61*1024"

#define MORE  10u /* lanes besides the first */
#define READS 60u /* of each of these: more than a superblock has places for, of all */

static const struct engine_config little = {.pool_bytes = 4 << 20, .max_conns = 16, .seed = 1};

/* Lane @k of those: custody begins 5 behind this PSN; QP 0x12 + @k to QP 0x23 + @k. */
static uint32_t lane_psn(uint32_t k)
{
	return 0x6000 + 0x40000 * k;
}

static void lane(struct rig *r, uint32_t k)
{
	uint32_t at = lane_psn(k);
	struct report open, p = {.type = REPORT_PROGRESS,
				 .cum = at + 6,
				 .hi = at + 6,
				 .room = at + 0x8000,
				 .una = at + 6,
				 .una_msn = 6,
				 .una_ackable = true,
				 .credit = 0x1f,
				 .seq = 1};
	struct report accept = {.type = REPORT_ACCEPT};

	r->nrep = 0;
	for (uint32_t n = 0; n < 5; n++) {
		rig_rx(r, NEAR, SEND_TO, 0x23 + k, at + n);
		rig_rx(r, FAR, "11 40ffff 000000%02x 00%06x 1f%06x", 0x12 + k, at + n, n + 1);
	}
	r->nrep = 0;
	rig_rx(r, NEAR, SEND_TO, 0x23 + k, at + 5);
	assert_int_equal(r->nrep, 1);
	open = r->rep[0];
	assert_int_equal(open.type, REPORT_OPEN);
	accept.lane = p.lane = open.lane;
	accept.gen = p.gen = open.gen;
	engine_rx_report(r->e, 0, &accept, r->now);
	engine_rx_report(r->e, 0, &p, r->now);
	engine_tick(r->e, r->now);
	assert_int_equal(r->events[EVENT_HELD], 2 + k);
	rig_forget(r);
}

/* WRITEs of the first lane until one finds no room: returns its PSN. */
static uint32_t fill(struct rig *r)
{
	uint32_t psn = 6;

	for (; !engine_counter(r->e, EC_NO_ROOM); psn++) {
		assert_true(psn < 9000);
		rig_forget(r);
		rig_rx(r, NEAR, WRITE_, psn);
	}
	rig_forget(r);
	return psn - 1;
}

/* The engine takes what comes next: it is sent on, and nothing was refused since fill(). */
static void taken(struct rig *r, const char *fmt, uint32_t a, uint32_t b)
{
	char text[128];

	snprintf(text, sizeof(text), fmt, a, b);
	rig_rx(r, NEAR, "%s", text);
	rig_expect(r, PORT_WAN, "%s", text);
	assert_int_equal(engine_counter(r->e, EC_NO_ROOM), 1);
	rig_forget(r); /* whether it is acknowledged early is not asked here */
}

/* POOL-4: a READ in the very place where a WRITE found no room, and more of them. */
static void test_read_where_write_has_no_room(void **state)
{
	struct rig *r = rig_held(&little, 0, POLICY_EARLY, 1024);
	uint32_t psn;

	(void)state;
	rig_rx(r, NEAR, READ_, 0x22, 6); /* it has had READs before */
	rig_rx(r, FAR, "10 40ffff 00000011 00000006 1f000007 72*8");
	rig_progress(r, 7, 7, 7);
	rig_forget(r);
	for (psn = 7; !engine_counter(r->e, EC_NO_ROOM); psn++) {
		assert_true(psn < 9000);
		rig_forget(r);
		rig_rx(r, NEAR, WRITE_, psn);
	}
	rig_forget(r);
	psn--;
	for (uint32_t n = 0; n < 200; n++)
		taken(r, READ_, 0x22, psn + n);
	rig_rx(r, NEAR, WRITE_, psn + 200); /* a WRITE still finds none */
	assert_int_equal(engine_counter(r->e, EC_NO_ROOM), 2);
	rig_destroy(r);
}

/* POOL-4: the same where the lane has not seen a READ yet; in a pool of 7 MiB, too, where the
 * WRITEs leave no page over. */
static void test_first_read_where_write_has_no_room(void **state)
{
	struct engine_config cfg = little;

	(void)state;
	for (; cfg.pool_bytes <= 7 << 20; cfg.pool_bytes += 3 << 20) {
		struct rig *r = rig_held(&cfg, 0, POLICY_EARLY, 1024);
		uint32_t psn = fill(r);

		for (uint32_t n = 0; n < 50; n++)
			taken(r, READ_, 0x22, psn + n);
		rig_destroy(r);
	}
}

/* POOL-4: the other queue pair begins, and goes on for as much as one superblock, less what packets
 * of this length leave over at its end; its READs are taken, too. */
static void test_minimum_of_another(void **state)
{
	struct rig *r = rig_held(&little, 0, POLICY_EARLY, 1024);
	uint32_t psn = 0x6006, first;

	(void)state;
	lane(r, 0);
	first = fill(r);
	for (uint32_t n = 0; n < 50; n++)
		taken(r, SEND2, psn++, 0);
	for (uint32_t n = 0; n < 50; n++)
		taken(r, READ_, 0x23, psn++);
	/* the first has not got a byte more by that */
	rig_rx(r, NEAR, WRITE_, first);
	assert_int_equal(engine_counter(r->e, EC_NO_ROOM), 2);
	rig_destroy(r);
}

static uint64_t used(const struct rig *r)
{
	struct engine_memory m;

	engine_memory(r->e, &m);
	return m.custody_used;
}

/* POOL-1, CONV-6: small packets of many queue pairs share a superblock. */
static void test_small_packets_share(void **state)
{
	struct rig *r = rig_held(&little, 0, POLICY_EARLY, 1024);
	uint64_t two;

	(void)state;
	for (uint32_t k = 0; k < MORE; k++)
		lane(r, k);
	for (uint32_t k = 0; k < 2; k++)
		rig_rx(r, NEAR, SEND_TO, 0x23 + k, lane_psn(k) + 6);
	two = used(r);
	for (uint32_t k = 2; k < MORE; k++)
		rig_rx(r, NEAR, SEND_TO, 0x23 + k, lane_psn(k) + 6);
	assert_in_range(used(r), two, two + POOL_BLOCK);
	rig_destroy(r);
}

/* POOL-4: the WRITEs of many queue pairs have taken all the room that they can get. READs of each
 * are taken all the same, more of them than what is open by chance has places for. */
static void test_many_reads_where_writes_have_no_room(void **state)
{
	struct rig *r = rig_held(&little, 0, POLICY_EARLY, 1024);
	uint32_t psn[MORE];

	(void)state;
	for (uint32_t k = 0; k < MORE; k++) {
		lane(r, k);
		psn[k] = lane_psn(k) + 6;
		rig_rx(r, NEAR, READ_, 0x23 + k, psn[k]++); /* it has a page for READs */
	}
	for (uint32_t k = 0; k < MORE; k++) {
		uint64_t refused = engine_counter(r->e, EC_NO_ROOM);

		for (; engine_counter(r->e, EC_NO_ROOM) == refused; psn[k]++) {
			assert_true(psn[k] < lane_psn(k) + 9000);
			rig_rx(r, NEAR, SEND_TO, 0x23 + k, psn[k]);
			rig_forget(r);
		}
		psn[k]--;
	}
	for (uint32_t n = 0; n < READS; n++) {
		for (uint32_t k = 0; k < MORE; k++) {
			rig_rx(r, NEAR, READ_, 0x23 + k, psn[k]++);
			rig_forget(r);
		}
	}
	assert_int_equal(engine_counter(r->e, EC_NO_ROOM), MORE);
	rig_destroy(r);
}

/* FAST-2: a packet that failed its check leaves nothing behind, in a lane with little in custody
 * and in one with much. */
static void test_damaged_leaves_nothing(void **state)
{
	struct rig *r = rig_held(&little, 0, POLICY_EARLY, 1024);
	uint8_t frame[FRAME_MAX];
	uint32_t psn = 6, len;
	char text[128];
	uint64_t had;

	(void)state;
	for (uint32_t much = 0; much < 2; much++) {
		for (uint32_t n = 0; n < 1 + 20 * much; n++)
			rig_rx(r, NEAR, WRITE_, psn++);
		had = used(r);
		snprintf(text, sizeof(text), WRITE_, psn);
		len = rig_build(r, frame, NEAR, text);
		frame[len - 5] ^= 1;
		for (uint32_t n = 0; n < 2000; n++) {
			rig_rx_frame(r, NEAR, frame, len);
			engine_tick(r->e, r->now);
			rig_forget(r);
		}
		assert_int_equal(engine_counter(r->e, EC_NO_ROOM), 0);
		assert_in_range(used(r), had, had + 1);
	}
	rig_progress(r, psn, psn, psn);
	assert_int_equal(used(r), 0);
	rig_destroy(r);
}

/* Memory runs short before the peer has answered OPEN. Nothing is promised yet, so the lane closes;
 * the peer may not understand seals, so all that was not answered leaves once more as the host sent
 * it, in its order, and what comes now behind it. */
static void test_opening_without_room(void **state)
{
	struct rule rule = rig_rule(0, POLICY_EARLY, 1024);
	uint32_t psn = 5, next = 5;
	struct rig *r;

	(void)state;
	rule.seal = true;
	r = rig_create(&little, &rule);
	rig_learn(r, 0);
	do {
		assert_true(psn < 3000);
		rig_forget(r);
		rig_rx(r, NEAR, WRITE_, psn++);
	} while (rig_conn(r).lane[LANE_OUT].state == LANE_OPENING);
	for (uint32_t i = 0; i < r->nout; i++)
		if (r->out[i].port == PORT_WAN)
			assert_int_equal(get_be24(r->out[i].data + RIG_BTH + 9), next++);
	assert_int_equal(next, psn);
	assert_int_equal(used(r), 0);
	rig_destroy(r);
}

/* A guess at the host's next READ may take all that is free, and no more. */
static void test_guess_takes_the_rest(void **state)
{
	struct rig *r = rig_held(&little, 0, POLICY_EARLY, 1024);
	const struct flow *fl = flow_ref(r->e, lane_index(r->open.lane));
	uint64_t room = pool_room(r->e->pool, POOL_TRANSIT), most[2];

	(void)state;
	undone_watch(NULL); /* changed by hand */
	for (uint32_t packets = 1; packets <= 2; packets++) {
		r->e->reserved = room;
		while (!fetch_fits(r->e, fl, packets))
			r->e->reserved--;
		most[packets - 1] = r->e->reserved;
	}
	assert_true(room - most[0] >= 1024);
	assert_int_equal(most[0] - most[1], room - most[0]); /* a packet more takes as much again */
	r->e->reserved = 0;
	rig_destroy(r);
}

/* What a host sends beyond what it was told counts in whole pages. */
static void test_window_pages(void **state)
{
	struct lane l = {.epsn.psn = {64}, .held.bytes = 64 << (WINDOW_SHIFT - 2)};

	(void)state;
	for (uint32_t n = 1; n < 64; n++) { /* four packets a page */
		assert_int_equal(window_grows(&l, (struct host_psn){n}), n % 4 == 0);
		window_seen(&l, (struct host_psn){n});
		assert_int_equal(l.near.window, n / 4);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_window_pages),
		cmocka_unit_test(test_guess_takes_the_rest),
		cmocka_unit_test(test_small_packets_share),
		cmocka_unit_test(test_many_reads_where_writes_have_no_room),
		cmocka_unit_test(test_damaged_leaves_nothing),
		cmocka_unit_test(test_opening_without_room),
		cmocka_unit_test(test_read_where_write_has_no_room),
		cmocka_unit_test(test_first_read_where_write_has_no_room),
		cmocka_unit_test(test_minimum_of_another),
	};

	return cmocka_run_group_tests_name("engine, room", tests, NULL, NULL);
}
