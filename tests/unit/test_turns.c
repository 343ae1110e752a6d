// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Whose packet leaves next over a link that many lanes want: lanes with little to send before those
 * with much, and the classes of the rules. Judged by what left in between, not by time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/lab/model/crowd.h"

#define MS	1000000ull
#define BULK	30u
#define PACKETS 120u /* of each bulk lane: several turns */
#define RATE	10000000ull
/* Packets of 1,024 bytes in a turn of 16 KiB. */
#define TURN	15u

/* What has left: how many of each lane, and of all until lane @until sent its next. */
struct seen {
	uint32_t of[2 * BULK], all, until, at;
	bool left;
};

static void sent(struct crowd *c, uint32_t i)
{
	struct seen *s = c->user;

	s->of[i]++;
	s->all++;
	if (i == s->until && !s->left) {
		s->left = true;
		s->at = s->all;
	}
}

/* @n lanes in custody, by classes if there are @vlans; nothing waits, and the link is slow. */
static void start(struct crowd *c, struct seen *s, uint32_t n, unsigned int vlans)
{
	struct engine_config limits = {.wan_rate = RATE};
	struct rule r[CLASSES] = {0};

	memset(s, 0, sizeof(*s));
	assert_true(crowd_start(c, n, 64u << 20, PORT_LAN, 0));
	c->vlans = vlans;
	for (unsigned int i = 0; i < vlans; i++) {
		r[i] = (struct rule){.nnear = 1, .nfar = 1, .vlan = (uint16_t)(1 + i)};
		r[i].learn = LEARN_ALONE;
		r[i].path_mtu = 1024;
		r[i].traffic = (uint8_t)i;
	}
	if (vlans)
		engine_rules(c->e, r, vlans, c->now);
	c->user = s;
	c->payload = 1024;
	for (uint32_t i = 0; i < n; i++) {
		crowd_learn(c, i);
		crowd_hold(c, i);
		crowd_progress(c, i);
		crowd_tick(c, MS);
	}
	assert_int_equal(c->events[EVENT_HELD], n);
	engine_limits(c->e, &limits, c->now);
	c->sent = sent;
}

static void fill(struct crowd *c, uint32_t i)
{
	for (uint32_t k = 0; k < PACKETS; k++)
		crowd_request(c, i, 0);
}

/* Until all lanes have had a turn and none is new. */
static void under_way(struct crowd *c)
{
	const struct seen *s = c->user;

	while (s->all < BULK * PACKETS / 4)
		crowd_tick(c, MS / 20);
}

/* Lanes below BULK have much to send, and lane BULK has nothing. */
static void start_busy(struct crowd *c, struct seen *s)
{
	start(c, s, BULK + 1, 0);
	for (uint32_t i = 0; i < BULK; i++)
		fill(c, i);
	under_way(c);
}

static void end(struct crowd *c)
{
	assert_null(engine_check(c->e));
	crowd_end(c);
}

/* Until the small message of lane @i has left; returns how many others left before it. */
static uint32_t small(struct crowd *c, uint32_t i)
{
	struct seen *s = c->user;
	uint32_t before = s->all;

	s->until = i;
	s->left = false;
	c->payload = 64;
	crowd_request(c, i, 0);
	c->payload = 1024;
	for (uint32_t k = 0; k < 100000 && !s->left; k++)
		crowd_tick(c, MS / 20);
	assert_true(s->left);
	return s->at - before - 1;
}

/* CONV-7, FAST-6. A small message does not wait for the turns of 30 lanes, but for the one that is
 * under way. */
static void test_small_first(void **state)
{
	struct crowd c;
	struct seen s;

	(void)state;
	start_busy(&c, &s);
	assert_true(small(&c, BULK) <= TURN);
	end(&c);
}

/* CONV-7. A report of the peer gives a lane a turn, in which it has nothing to send: the message
 * that comes thereupon is the first all the same. */
static void test_fresh_after_report(void **state)
{
	struct crowd c;
	struct seen s;

	(void)state;
	start_busy(&c, &s);
	crowd_progress(&c, BULK);
	crowd_tick(&c, 5 * MS); /* a few turns */
	assert_true(small(&c, BULK) <= TURN);
	end(&c);
}

/* A lane that goes on and on, a packet at a time, does not keep the others from their turns. */
static void test_fresh_once(void **state)
{
	uint32_t had[BULK];
	struct crowd c;
	struct seen s;

	(void)state;
	start_busy(&c, &s);
	small(&c, BULK);
	for (uint32_t k = 0; k < 3; k++) {
		memcpy(had, s.of, sizeof(had));
		small(&c, BULK);
		small(&c, BULK);
		for (uint32_t i = 0; i < BULK; i++)
			assert_true(s.of[i] > had[i]);
	}
	end(&c);
}

/* CONV-9. Lane @i is of class i % CLASSES: it is the number of its VLAN, less one. */
static void test_classes(void **state)
{
	uint32_t had[CLASSES] = {0}, turns;
	struct crowd c;
	struct seen s;

	(void)state;
	start(&c, &s, CLASSES, CLASSES);
	for (uint32_t i = 0; i < CLASSES; i++)
		for (uint32_t k = 0; k < 4; k++)
			fill(&c, i);
	/* until the first has nothing more */
	while (s.of[CLASS_CONTROL] < 4 * PACKETS) {
		for (uint32_t i = 0; i < CLASSES; i++)
			had[i] = s.of[i];
		crowd_tick(&c, MS / 20);
	}
	turns = 4 * PACKETS / TURN;
	/* the others had one turn in sixteen, and the one before the first waits at all */
	assert_in_range(had[CLASS_DATA], TURN, (turns / 16 + 3) * TURN);
	assert_in_range(had[CLASS_BULK], TURN, (turns / 16 + 3) * TURN);
	while (s.of[CLASS_DATA] < 4 * PACKETS) {
		had[CLASS_BULK] = s.of[CLASS_BULK];
		crowd_tick(&c, MS / 20);
	}
	assert_in_range(had[CLASS_BULK], TURN, (2 * turns / 16 + 4) * TURN);
	while (s.of[CLASS_BULK] < 4 * PACKETS)
		crowd_tick(&c, MS / 20);
	end(&c);
}

/* CONV-7. Fresh or not, what is of a lower class waits. */
static void test_small_control_first(void **state)
{
	struct crowd c;
	struct seen s;

	(void)state;
	start(&c, &s, 2 * BULK, CLASSES);
	for (uint32_t i = 0; i < 2 * BULK; i++)
		if (i % CLASSES != CLASS_CONTROL)
			fill(&c, i);
	crowd_tick(&c, 5 * MS);
	/* again and again: a class of its own has no round to wait for */
	for (uint32_t k = 0; k < 10; k++)
		assert_true(small(&c, CLASS_CONTROL) <= TURN);
	end(&c);
}

static void fair(struct crowd *c, uint32_t i)
{
	struct seen *s = c->user;

	sent(c, i);
	for (uint32_t k = 0; k < 3; k++)
		assert_true(s->of[k] + TURN + 1 >= s->of[i] || s->of[k] == PACKETS);
}

/* FAST-6. Where nothing limits the rate a lane with much to send is no more than a turn ahead of
 * the others. */
static void test_no_limit(void **state)
{
	struct engine_config limits = {0};
	struct crowd c;
	struct seen s;

	(void)state;
	start(&c, &s, 3, 0);
	engine_limits(c.e, &limits, c.now);
	c.sent = fair;
	for (uint32_t i = 0; i < 3; i++)
		fill(&c, i);
	crowd_tick(&c, MS / 20);
	assert_int_equal(s.all, 3 * PACKETS);
	end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_limit),
		cmocka_unit_test(test_small_first),
		cmocka_unit_test(test_fresh_after_report),
		cmocka_unit_test(test_fresh_once),
		cmocka_unit_test(test_classes),
		cmocka_unit_test(test_small_control_first),
	};

	return cmocka_run_group_tests_name("unit/turns", tests, NULL, NULL);
}
