// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The places of the connection manager's handshakes: how many there are, who is pushed out, and
 * what one costs among many. What the datagrams say is the scripts' business.
 */
#include "tests/unit/engine_rig.h"
#include "tests/unit/step.h"

#define MANY 3000u
#define FEW  10u

static const struct engine_config many = {.pool_bytes = 8 << 20, .max_conns = MANY, .seed = 1};
static const struct engine_config least = {.pool_bytes = 8 << 20, .max_conns = 64, .seed = 1};

#define CM_HEAD	 "64 40ffff 00000001 00000001 | 80010000 00000001 | 01070203 00*4 00000000000000aa"
/* Attribute, local comm id; QPN of the sender, starting PSN, path MTU 1024 */
#define CM_REQ_	 CM_HEAD "0010 0000 00*4 | %08x 00*28 %06x 00*8 01 %06x 00*3 30 00*181"
/* Attribute, local and remote comm id; QPN of the sender, starting PSN */
#define CM_REP_	 CM_HEAD "0013 0000 00*4 | %08x %08x 00*4 %06x 00*5 %06x 00*3 01 00*205"
#define CM_RTU_	 CM_HEAD "0014 0000 00*4 | %08x %08x 00*224"
#define CM_DREQ_ CM_HEAD "0015 0000 00*4 | %08x %08x %06x 00*221"
#define CM_DREP_ CM_HEAD "0016 0000 00*4 | %08x %08x 00*224"

/* The comm ids of handshake @i; ids are never near each other. */
static uint32_t active(uint32_t i)
{
	return 0x10000000u + i * 7;
}

static uint32_t passive(uint32_t i)
{
	return 0x20000000u + i * 7;
}

/* @from sends a datagram; not every invariant is looked at each time. */
static __attribute__((format(printf, 3, 4))) void says(struct rig *r, enum rig_host from,
						       const char *fmt, ...)
{
	va_list ap;

	r->now += 1000;
	va_start(ap, fmt);
	rig_arrives(r, from, fmt, ap);
	va_end(ap);
	engine_tick(r->e, r->now);
	rig_forget(r);
}

static void req(struct rig *r, uint32_t i, uint32_t qpn)
{
	says(r, NEAR, CM_REQ_, active(i), qpn, 0x700u);
}

static void rep(struct rig *r, uint32_t i, uint32_t qpn)
{
	says(r, FAR, CM_REP_, passive(i), active(i), qpn, 0x900u);
}

static void rtu(struct rig *r, uint32_t i)
{
	says(r, NEAR, CM_RTU_, active(i), passive(i));
}

static struct rig *start(const struct engine_config *cfg)
{
	struct rule rule = rig_rule(PEER_NONE, POLICY_EARLY, 1024);

	return rig_create(cfg, &rule);
}

static void end(struct rig *r)
{
	rig_check(r);
	rig_destroy(r);
}

/* A link comes back, and all its hosts connect at once; then once more, by new queue pairs. */
static void test_all_at_once(void **state)
{
	struct rig *r = start(&many);

	(void)state;
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < MANY; i++)
			req(r, round * MANY + i, 0x1000 + i);
		for (uint32_t i = 0; i < MANY; i++)
			rep(r, round * MANY + i, 0x9000 + i);
		for (uint32_t i = 0; i < MANY; i++)
			rtu(r, round * MANY + i);
		assert_int_equal(r->events[EVENT_PAIRED], (round + 1) * MANY);
		assert_int_equal(rig_pairs(r), MANY);
	}
	/* and disconnect at once */
	for (uint32_t i = 0; i < MANY; i++)
		says(r, NEAR, CM_DREQ_, active(MANY + i), passive(MANY + i), 0x9000 + i);
	for (uint32_t i = 0; i < MANY; i++)
		says(r, FAR, CM_DREP_, passive(MANY + i), active(MANY + i));
	for (uint32_t i = 0; i < MANY; i++) /* the numbers are free: who sends is another one */
		says(r, NEAR, "04 40ffff 00%06x 80000005 61*8", 0x9000 + i);
	assert_int_equal(rig_pairs(r), 0);
	end(r);
}

/* What is owed under a number that is given again waits for the RTU. One in the requester's name
 * that comes from the responder's side is another's, and changes nothing. */
static void test_rtu_from_other_side(void **state)
{
	struct rig *r = rig_held(NULL, PEER_NONE, POLICY_EARLY, 1024);
	uint8_t frame[FRAME_MAX];
	char text[1024];

	(void)state;
	rig_rx(r, NEAR, "%s", SEND_ONLY("000006"));
	req(r, 0, 0x11);
	rep(r, 0, 0x22);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].custody.packets, 1);
	snprintf(text, sizeof(text), CM_RTU_, active(0), passive(0));
	engine_rx(r->e, PORT_WAN, frame, rig_build(r, frame, NEAR, text), r->now);
	engine_tick(r->e, r->now);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].custody.packets, 1);
	assert_int_equal(r->events[EVENT_INCARNATION], 0);
	rtu(r, 0);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].custody.packets, 0);
	end(r);
}

/* An RTU that names no REP makes no connection; the REP that follows does. */
static void test_rtu_without_rep(void **state)
{
	struct rig *r = start(&least);

	(void)state;
	req(r, 0, 0x11);
	says(r, NEAR, CM_RTU_, active(0), 0u);
	assert_int_equal(r->events[EVENT_PAIRED], 0);
	rep(r, 0, 0x22);
	assert_int_equal(rig_pairs(r), 1);
	assert_int_equal(rig_conn(r).rqpn, 0x22);
	end(r);
}

/* A handshake waits while thousands of others come to their end. */
static void test_over_make_room(void **state)
{
	struct rig *r = start(&least);

	(void)state;
	req(r, 0, 0x11);
	for (uint32_t i = 1; i < MANY; i++) {
		req(r, i, 0x12);
		rep(r, i, 0x22);
		rtu(r, i);
	}
	assert_int_equal(rig_pairs(r), 1);
	rep(r, 0, 0x33);
	assert_int_equal(rig_pairs(r), 2);
	end(r);
}

/* REQs of @i on in the name of @host. */
static void flood(struct rig *r, uint32_t i, uint8_t host)
{
	uint8_t me = r->host[NEAR];

	r->host[NEAR] = host;
	for (uint32_t n = 0; n < MANY; n++)
		req(r, i + n, 0x40);
	r->host[NEAR] = me;
}

/* A REQ needs no answer, so anybody can send any number in a host's name: that takes no place from
 * who waits in another's. */
static void test_flood_of_one(void **state)
{
	struct rig *r = start(&least);

	(void)state;
	req(r, 1, 0x11);
	flood(r, 1000, 2);
	rep(r, 1, 0x22);
	assert_int_equal(rig_pairs(r), 1);
	/* nor does it keep one out that begins later */
	req(r, 2, 0x12);
	flood(r, 1000 + MANY, 3);
	rep(r, 2, 0x23);
	assert_int_equal(rig_pairs(r), 2);
	end(r);
}

/* In the name of whole networks: it takes nothing from a handshake that was answered, and waits for
 * its RTU, since two REPs differ. */
static void test_flood_of_all(void **state)
{
	struct rig *r = start(&least);

	(void)state;
	req(r, 1, 0x11);
	rep(r, 1, 0x99);
	rep(r, 1, 0x22);
	assert_int_equal(rig_pairs(r), 0);
	for (uint32_t h = 1; h < 20; h++)
		flood(r, h * 10000, (uint8_t)h);
	rtu(r, 1);
	assert_int_equal(rig_pairs(r), 1);
	assert_int_equal(rig_conn(r).rqpn, 0x22);
	end(r);
}

/* A host that repeats its REQ is behind one that has given up. */
static void test_oldest_goes(void **state)
{
	struct rig *r = start(&least);

	(void)state;
	req(r, 1, 0x11);
	req(r, 2, 0x12);
	req(r, 1, 0x11);
	/* a quarter of the least there is, and one goes */
	for (uint32_t i = 3; i < 3 + 1024 - 1; i++)
		req(r, i, 0x40);
	rep(r, 1, 0x22);
	assert_int_equal(rig_pairs(r), 1);
	rep(r, 2, 0x23);
	assert_int_equal(rig_pairs(r), 1);
	end(r);
}

#ifdef STEPS

struct call {
	struct rig *r;
	enum rig_host from;
	uint8_t data[FRAME_MAX];
	uint32_t len;
};

static void arrives(void *arg)
{
	struct call *c = arg;

	engine_rx(c->r->e, c->from == NEAR ? PORT_LAN : PORT_WAN, c->data, c->len, c->r->now);
}

/* Instructions for the REP of one among @n handshakes. */
static long answer_among(uint32_t n)
{
	struct rig *r = start(&many);
	struct call c = {.r = r, .from = FAR};
	char text[1024];

	for (uint32_t i = 0; i < n; i++)
		req(r, i, 0x1000 + i);
	snprintf(text, sizeof(text), CM_REP_, passive(n / 2), active(n / 2), 0x22u, 0x900u);
	c.len = rig_build(r, c.data, FAR, text);
	if (cut_off(arrives, &c, 200000))
		fail_msg("a REP among %u takes more than 200000 instructions", n);
	assert_int_equal(rig_pairs(r), 1);
	end(r);
	return 200000 - steps_left;
}

static void test_cost(void **state)
{
	long few = answer_among(FEW), lots = answer_among(MANY);

	(void)state;
	print_message("# a REP: %ld and %ld instructions\n", few, lots);
	assert_true(lots <= 2 * few + 500);
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rtu_from_other_side),
		cmocka_unit_test(test_rtu_without_rep),
		cmocka_unit_test(test_all_at_once),
		cmocka_unit_test(test_over_make_room),
		cmocka_unit_test(test_flood_of_one),
		cmocka_unit_test(test_flood_of_all),
		cmocka_unit_test(test_oldest_goes),
#ifdef STEPS
		cmocka_unit_test(test_cost),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
