// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * FAST-2: the payload is read once, in the pass that copies it and checks its ICRC. Whoever reads
 * payloads in the engine does so through crc32_lead() or memcpy(); the linker puts the two below
 * before them (tests/Makefile.inc), and they count the reads of a packet of which as much as half
 * is looked at, be it in the buffer that it came in or in its copy.
 */
#include "tests/unit/engine_rig.h"

#include "wire/crc32.h"

#define PAYLOAD	   1024u
#define LONG	   (PAYLOAD / 2)
#define NEAR_ASKS  "04 40ffff 00000022 80%06x 61*1024"
#define FAR_ASKS   "04 40ffff 00000011 80%06x 61*1024"
#define NEAR_READS "0c 40ffff 00000022 80%06x 0000000000001000 00000005 00000400"
#define FAR_READS  "0c 40ffff 00000011 80%06x 0000000000001000 00000005 00000400"
#define FAR_GIVES  "10 40ffff 00000011 00%06x 1f000007 61*1024"
#define NEAR_GIVES "10 40ffff 00000022 00%06x 1f000006 61*1024"

static struct {
	bool on;
	unsigned int fused;  /* copied and checked in one pass */
	unsigned int checks; /* read by the CRC alone */
	unsigned int copies; /* by memcpy() alone */
} count;

uint32_t __real_crc32_lead(const uint8_t lead[64], void *dst, const void *src, size_t len);
uint32_t __wrap_crc32_lead(const uint8_t lead[64], void *dst, const void *src, size_t len);
void *__real_memcpy(void *dst, const void *src, size_t len);
void *__wrap_memcpy(void *dst, const void *src, size_t len);

uint32_t __wrap_crc32_lead(const uint8_t lead[64], void *dst, const void *src, size_t len)
{
	bool on = count.on;
	uint32_t crc;

	if (on && len >= LONG && dst)
		count.fused++;
	else if (on && len >= LONG)
		count.checks++;
	count.on = false; /* what it does inside is its own: wire/crc32.c */
	crc = __real_crc32_lead(lead, dst, src, len);
	count.on = on;
	return crc;
}

void *__wrap_memcpy(void *dst, const void *src, size_t len)
{
	count.copies += count.on && len >= LONG;
	return __real_memcpy(dst, src, len);
}

/* @from sends PAYLOAD bytes; what the engine does with them until it comes to rest is counted. */
static void packet(struct rig *r, enum rig_host from, const char *fmt, uint32_t psn, bool damaged)
{
	uint8_t data[FRAME_MAX];
	char text[128];
	uint32_t len;

	snprintf(text, sizeof(text), fmt, psn);
	len = rig_build(r, data, from, text);
	data[len - 100] ^= damaged;
	memset(&count, 0, sizeof(count));
	rig_forget(r);
	undone_watch(NULL); /* it copies, too */
	count.on = true;
	engine_rx(r->e, from == NEAR ? PORT_LAN : PORT_WAN, data, len, r->now);
	engine_tick(r->e, r->now);
	count.on = false;
	rig_check(r);
}

/* Since packet(): one pass, and @sent packets of that length, each of which the rig copies. */
static void one_pass(struct rig *r, unsigned int sent)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < r->nout; i++)
		n += r->out[i].len > PAYLOAD;
	assert_int_equal(n, sent);
	assert_int_equal(count.fused, 1);
	assert_int_equal(count.checks, 0);
	assert_int_equal(count.copies, sent);
}

/* FAST-2: near the requester. Taken, sent on and acknowledged: one pass; damaged: one pass, too,
 * and it passes. */
static void opener(int8_t peer)
{
	struct rig *r = rig_held(NULL, peer, POLICY_EARLY, PAYLOAD);

	packet(r, NEAR, NEAR_ASKS, 6, false);
	one_pass(r, 1);
	rig_expect(r, PORT_WAN, NEAR_ASKS, 6);
	rig_expect(r, PORT_LAN, ACK_TO_NEAR, 6, 7);
	packet(r, NEAR, NEAR_ASKS, 7, true);
	one_pass(r, 1); /* for its host to drop */
	assert_int_equal(engine_counter(r->e, EC_BAD_ICRC), 1);
	packet(r, NEAR, NEAR_ASKS, 7, false);
	one_pass(r, 1);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].custody.packets, 2);
	rig_destroy(r);
}

static void test_opener(void **state)
{
	(void)state;
	opener(0);
}

static void test_single(void **state)
{
	(void)state;
	opener(PEER_NONE);
}

/* FAST-2: what is sent again comes from the copy, which is not read to judge it once more. */
static void test_sent_again(void **state)
{
	struct rig *r = rig_held(NULL, PEER_NONE, POLICY_EARLY, PAYLOAD);

	(void)state;
	packet(r, NEAR, NEAR_ASKS, 6, false);
	packet(r, NEAR, NEAR_ASKS, 7, false);
	rig_forget(r);
	memset(&count, 0, sizeof(count));
	count.on = true;
	rig_rx(r, FAR, "11 40ffff 00000011 00000006 60000006"); /* sequence NAK */
	count.on = false;
	rig_expect(r, PORT_WAN, NEAR_ASKS, 6);
	rig_expect(r, PORT_WAN, NEAR_ASKS, 7);
	assert_int_equal(count.fused + count.checks, 0);
	assert_int_equal(count.copies, 2);
	rig_destroy(r);
}

/* An appliance near the responder, with a lane from PSN 5 on. */
static struct rig *accepting(void)
{
	struct engine_config cfg = {.pool_bytes = 8 << 20, .max_conns = 16, .seed = 1};
	struct rule rule = rig_rule(0, POLICY_EARLY, PAYLOAD);
	struct rig *r = rig_create(&cfg, &rule);
	struct report open = rig_open(5, 5, PAYLOAD);

	for (uint32_t psn = 0; psn < 5; psn++) {
		rig_rx(r, FAR, FAR_ASKS, psn);
		rig_rx(r, NEAR, "11 40ffff 00000022 00%06x 1f%06x", psn, psn + 1);
	}
	engine_rx_report(r->e, 0, &open, r->now);
	assert_int_equal(rig_conn(r).lane[LANE_IN].state, LANE_HELD);
	return r;
}

/* FAST-2: near the responder, in order and out of order. */
static void test_acceptor(void **state)
{
	struct rig *r = accepting();

	(void)state;
	packet(r, FAR, FAR_ASKS, 5, false);
	one_pass(r, 1);
	packet(r, FAR, FAR_ASKS, 7, false);
	one_pass(r, 0);
	packet(r, FAR, FAR_ASKS, 6, true);
	one_pass(r, 0);
	packet(r, FAR, FAR_ASKS, 6, false);
	one_pass(r, 2);
	rig_expect(r, PORT_LAN, FAR_ASKS, 6);
	rig_expect(r, PORT_LAN, FAR_ASKS, 7);
	rig_destroy(r);
}

/* FAST-2: the answer to a READ is looked at once, too: in the pass that copies it for the host, */
static void test_answer_to_opener(void **state)
{
	struct rig *r = rig_held(NULL, 0, POLICY_EARLY, PAYLOAD);

	(void)state;
	rig_rx(r, NEAR, NEAR_READS, 6);
	packet(r, FAR, FAR_GIVES, 6, true);
	one_pass(r, 0);
	packet(r, FAR, FAR_GIVES, 6, false);
	one_pass(r, 1);
	rig_expect(r, PORT_LAN, FAR_GIVES, 6);
	rig_destroy(r);
}

/* before it is passed on by an appliance alone, */
static void test_answer_to_single(void **state)
{
	struct rig *r = rig_held(NULL, PEER_NONE, POLICY_EARLY, PAYLOAD);

	(void)state;
	rig_rx(r, NEAR, NEAR_READS, 6);
	packet(r, FAR, FAR_GIVES, 6, false);
	rig_expect(r, PORT_LAN, FAR_GIVES, 6);
	assert_int_equal(count.fused, 0);
	assert_int_equal(count.checks, 1);
	rig_destroy(r);
}

/* and before it is kept near the responder. */
static void test_answer_to_acceptor(void **state)
{
	struct rig *r = accepting();

	(void)state;
	rig_rx(r, FAR, FAR_READS, 5);
	packet(r, NEAR, NEAR_GIVES, 5, false);
	rig_expect(r, PORT_WAN, NEAR_GIVES, 5);
	assert_int_equal(count.fused, 0);
	assert_int_equal(count.checks, 1);
	rig_destroy(r);
}

/* What only passes, and is learned from, likewise. */
static void test_watched(void **state)
{
	struct engine_config cfg = {.pool_bytes = 8 << 20, .max_conns = 16, .seed = 1};
	struct rule rule = rig_rule(0, POLICY_EARLY, PAYLOAD);
	struct rig *r = rig_create(&cfg, &rule);

	(void)state;
	for (uint32_t psn = 0; psn < 100; psn++) {
		packet(r, NEAR, NEAR_ASKS, psn, false);
		assert_int_equal(count.fused, 0);
		assert_int_equal(count.checks, 1);
	}
	rig_destroy(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_opener),
		cmocka_unit_test(test_single),
		cmocka_unit_test(test_sent_again),
		cmocka_unit_test(test_acceptor),
		cmocka_unit_test(test_answer_to_opener),
		cmocka_unit_test(test_answer_to_single),
		cmocka_unit_test(test_answer_to_acceptor),
		cmocka_unit_test(test_watched),
	};

	return cmocka_run_group_tests_name("engine, one pass", tests, NULL, NULL);
}
