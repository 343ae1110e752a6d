// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What health finds in an engine: connections known by half, packets that miss an appliance,
 * storage that announce would serve, what an operator has bypassed, and hosts that do not answer.
 */
#include <stdio.h>
#include <string.h>

#include "engine/core/state.h"
#include "tests/unit/control_data.h"
#include "tests/unit/engine_rig.h"
#include "tests/unit/health_rig.h"
#include "wire/bytes.h"
#include "wire/icrc.h"

/* From an engine's connections: half of them known for long, and in use. */
static void test_scan(void **state)
{
	struct health_source more = {0};
	struct view_source src;
	struct rule rules[2];
	uint64_t now = TEST_NOW;

	(void)state;
	memset(&h, 0, sizeof(h));
	control_data_open(&src, rules);
	for (int i = 0; i < 30; i++, now += SECOND / 2) {
		/* their owner goes on asking */
		shards_tick(src.shards, now);
		control_data_halves_at(src.shards, 3, now);
		health_tick(&h, &src, &more, now);
	}
	assert_int_equal(h.scan.half, 3);
	assert_true(is(HEALTH_HALF_KNOWN));
	assert_non_null(strstr(h.alarm[HEALTH_HALF_KNOWN].text, "qpn 0x100"));
	/* and when they are silent it is over */
	for (int i = 0; i < 60; i++, now += SECOND / 2)
		health_tick(&h, &src, &more, now);
	assert_int_equal(h.scan.half, 0);
	assert_false(is(HEALTH_HALF_KNOWN));
	shards_destroy(src.shards);
}

/* Ticks for @ms, with what an engine shows. */
static uint64_t look(const struct view_source *src, uint64_t now, unsigned int ms)
{
	struct health_source more = {0};

	for (unsigned int i = 0; i < ms / 100; i++, now += SECOND / 10)
		health_tick(&h, src, &more, now);
	return now;
}

/* Packets that miss an appliance: a lane shows it in the next look, an event without one. */
static void test_missed_scan(void **state)
{
	const char *text = h.alarm[HEALTH_MISSED].text;
	struct view_source src;
	struct rule rules[2];
	struct conn_info ci;
	uint64_t now = TEST_NOW;
	struct lane *l;

	(void)state;
	memset(&h, 0, sizeof(h));
	control_data_open(&src, rules);
	now = look(&src, now, 1200);
	assert_true(shards_conn_next(src.shards, 0, now, &ci));
	l = &shards_engine(src.shards, 0)->flows[ci.id].lane;
	health_missed(&h, &src, ci.id, now);
	assert_string_equal(h.missed, "");
	l->bypassed = MISS_US;
	health_missed(&h, &src, ci.id, now);
	l->bypassed = MISS_NONE;
	now = look(&src, now, 3200);
	assert_int_equal(h.scan.missed, 0);
	only(HEALTH_MISSED);
	assert_non_null(strstr(text, "miss this appliance (1 connection)"));
	now = look(&src, now, 36000);
	only(HEALTH_COUNT);
	/* idle, and owing nothing: its path may have been mended */
	l->bypassed = MISS_TO;
	now = look(&src, now, 4000);
	only(HEALTH_COUNT);
	shards_engine(src.shards, 0)->flows[ci.id].seen = now;
	now = look(&src, now, 4000);
	assert_int_equal(h.scan.missed, 1);
	only(HEALTH_MISSED);
	assert_non_null(strstr(text, "(1 connection)"));
	/* it is let go, and which way its packets took is not known any more */
	l->bypassed = MISS_NONE;
	l->reason = REASON_BYPASS;
	l->state = LANE_DRAIN;
	shards_engine(src.shards, 0)->flows[ci.id].seen = now;
	h.missed_at = 0;
	now = look(&src, now, 2000);
	assert_int_equal(h.scan.missed, 1);
	assert_non_null(strstr(text, "missed one of the two appliances"));
	shards_destroy(src.shards);
}

/* A connection to port 4420, of NVMe over RDMA. */
static void nvme_connects(struct engine *e, uint64_t now)
{
	struct pcap_data d = pcap_data_load("cm-rping");
	struct frame f;

	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(frame_parse(d.pkt[i], d.len[i], &f), FRAME_OK);
		if (!i)
			put_be64(d.pkt[i] + f.payload + 32, 0x0000000001061144);
		icrc_fill(d.pkt[i], &f);
		engine_rx(e, i == 1 ? PORT_WAN : PORT_LAN, d.pkt[i], d.len[i], now);
		engine_tick(e, now);
	}
	pcap_data_free(&d);
}

static const char *would_gain(const struct view_source *src)
{
	static char text[64];
	struct view_cursor cur = {0};
	const char *s;
	json_t *o;

	assert_int_equal(view_daemon(src, &cur, TEST_NOW, &o), VIEW_OBJECT);
	s = json_string_value(json_object_get(o, "announce-would-gain"));
	snprintf(text, sizeof(text), "%s", s ? s : "");
	json_decref(o);
	return text;
}

/* Storage connections that announce would serve are told of, where their rule may have it; that is
 * no alarm. */
static void test_would_gain(void **state)
{
	struct health_source more = {0};
	struct view_source src;
	struct rule rules[2];
	uint64_t now = TEST_NOW;

	(void)state;
	memset(&h, 0, sizeof(h));
	control_data_open(&src, rules);
	src.health = &h;
	health_tick(&h, &src, &more, now);
	assert_string_equal(would_gain(&src), "");
	nvme_connects(shards_engine(src.shards, 0), now);
	for (int i = 0; i < 6; i++) {
		rules[0].peer = i ? 0 : PEER_NONE;
		rules[0].announce = i == 2 ? ANNOUNCE_MODE_NVME : ANNOUNCE_MODE_OFF;
		rules[0].prefetch = i == 3 ? PREFETCH_ON : PREFETCH_OFF;
		rules[0].atomic = i == 4 ? ATOMIC_DISCARD : ATOMIC_ORDERED;
		rules[0].order = i == 5 ? ORDER_HOSTS : ORDER_QUEUE_PAIR;
		for (int k = 0; k < 10; k++)
			health_tick(&h, &src, &more, now += SECOND / 10);
		assert_string_equal(would_gain(&src), i == 1 ? "nvme 1" : "");
		only(HEALTH_COUNT);
	}
	shards_destroy(src.shards);
}

/* What an operator lets pass shows at once, by the words that were asked with; so does its end. */
static void test_bypass(void **state)
{
	struct view_source src;
	struct rule rules[2];

	(void)state;
	control_data_open(&src, rules);
	assert_int_equal(shards_bypassed(src.shards), 0);
	shards_bypass(src.shards, BYPASS_RULE, 0, true, TEST_NOW);
	health_bypass(&h, &src, "rule storage", TEST_NOW);
	only(HEALTH_BYPASS);
	assert_string_equal(h.alarm[HEALTH_BYPASS].text,
			    "an operator has bypassed rule storage: 2 connections pass "
			    "unaccelerated");
	assert_string_equal(health_mend(&h, HEALTH_BYPASS),
			    "longhaul bypass off rule storage, when it is no longer needed");
	shards_bypass(src.shards, BYPASS_RULE, 0, false, TEST_NOW);
	health_bypass(&h, &src, NULL, TEST_NOW);
	only(HEALTH_COUNT);
	shards_bypass(src.shards, BYPASS_CONN, 0, true, TEST_NOW);
	health_bypass(&h, &src, NULL, TEST_NOW);
	only(HEALTH_BYPASS);
	assert_string_equal(h.alarm[HEALTH_BYPASS].text,
			    "an operator has bypassed 1 connection, so it passes unaccelerated");
	shards_destroy(src.shards);
}

/* So many seconds in which the peer reports the same each half second: all below @cum has come to
 * it, and the responder has done nothing from PSN 6 on. The link is up. */
static void reports(struct rig *r, const struct view_source *src, uint32_t cum, unsigned int s)
{
	struct health_source more = {0};

	for (unsigned int i = 0; i < 10 * s; i++) {
		rig_pass(r, SECOND / 10);
		if (i % 5 == 4)
			rig_progress(r, cum, 6, 6);
		h.links = 1; /* there is no session to ask */
		h.changed_at = 0;
		health_tick(&h, src, &more, r->now);
	}
}

/* However often the peer reports, the oldest in custody grows older. As long as the WAN has not
 * brought it, that is not the far host's silence; once it has, the alarm tells since when. */
static void test_silent(void **state)
{
	struct rig *r = rig_held(NULL, 0, POLICY_EARLY, RIG_MTU);
	struct rule rule = rig_rule(0, POLICY_EARLY, RIG_MTU);
	struct view_source src = {.shards = shards_over(r->e), .rules = &rule, .nrules = 1};
	const struct lane_info *l;
	struct conn_info ci;
	uint64_t from = r->now;

	(void)state;
	memset(&h, 0, sizeof(h));
	rig_rx(r, NEAR, SEND_ONLY("000006"));
	reports(r, &src, 6, 30);
	ci = rig_conn(r);
	l = &ci.lane[LANE_OUT];
	assert_in_range(l->custody.oldest_ns, r->now - from - RIG_MS, r->now - from + RIG_MS);
	assert_int_equal(l->silent_ns, 0);
	only(HEALTH_COUNT);
	/* it comes late: the host gets its time */
	reports(r, &src, 7, 5);
	only(HEALTH_COUNT);
	reports(r, &src, 7, 5);
	only(HEALTH_SILENT);
	ci = rig_conn(r);
	assert_in_range(l->custody.oldest_ns, r->now - from - RIG_MS, r->now - from + RIG_MS);
	assert_in_range(l->silent_ns, 9 * SECOND, 10 * SECOND);
	/* what it answers after the latest report nobody knows here */
	rig_pass(r, 5 * SECOND);
	assert_in_range(rig_conn(r).lane[LANE_OUT].silent_ns, 9 * SECOND, 10 * SECOND);
	rig_progress(r, 7, 7, 7);
	ci = rig_conn(r);
	assert_int_equal(l->custody.oldest_ns, 0);
	assert_int_equal(l->silent_ns, 0);
	rig_destroy(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scan),	   cmocka_unit_test(test_missed_scan),
		cmocka_unit_test(test_would_gain), cmocka_unit_test(test_bypass),
		cmocka_unit_test(test_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
