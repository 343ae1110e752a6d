// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Connections that come and go, each with numbers of its own. Their places are free again soon
 * after their hosts have said goodbye, and after ten idle seconds where others find none
 * (test_places has the rules of that). CHURN=100000: so many connections in test_many.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/scenario/scenario.h"
#include "tests/scenario/world_priv.h"
#include "wire/psn.h"

/* How many connections are under way at the same time. */
#define SEATS 16

/**
 * struct churn - @seat: queue pairs, each used for one connection after the other
 * @made, @held, @done: connections so far; of them held at the end of their work; whose work ended
 */
struct churn {
	struct world *w;
	struct world_qp *seat[SEATS];
	uint32_t seats, made, held, done;
};

static const struct work some = {
	.ops = OPS_WRITE_SEND | 1u << RC_READ, .min = 1, .max = 2000, .left = 4};

static void next_numbers(struct churn *c, struct rc_qp_config *q)
{
	uint32_t i = c->made++;

	q->lqpn = 0x100 + i * 7919u % 0xfffe00;
	q->rqpn = 0x200 + i * 104729u % 0xfffd00;
}

static void begin(struct world_qp *q)
{
	world_work(q, 0, &some);
	world_work(q, 1, &some);
}

static void start(struct churn *c, uint32_t seats, uint32_t places)
{
	struct world_config wc;
	struct rc_qp_config qc;

	memset(c, 0, sizeof(*c));
	c->seats = seats;
	world_defaults(&wc);
	wc.wan.delay_ns = 100000;
	wc.engine.max_conns = places;
	c->w = world_create(&wc);
	assert_non_null(c->w);
	for (uint32_t i = 0; i < seats; i++) {
		scenario_qp(&qc, i, 1024, RC_STRICT);
		qc.mr_size = qc.rmr_size = 65536;
		qc.journal = 64;
		next_numbers(c, &qc);
		c->seat[i] = world_connect_cm(c->w, &qc, RC_STRICT);
		begin(c->seat[i]);
	}
}

/* Whether the work of @q is done, and the true ACKs of all of it are there: a host that disconnects
 * before that has lost something. */
static bool worked(struct world_qp *q)
{
	struct conn_info ci;

	for (int s = 0; s < 2; s++)
		if (!q->up || q->side[s].work.left || q->pending[s].left ||
		    rc_qp_queued(q->side[s].qp) ||
		    (world_conn(q->w, s, q, &ci) && ci.lane[LANE_OUT].custody.packets))
			return false;
	return true;
}

/* The connection of @q has done its work: count it, and take it down. */
static void leave(struct churn *c, struct world_qp *q, bool tell)
{
	struct conn_info ci;

	c->done++;
	c->held += world_conn(c->w, 0, q, &ci) && ci.lane[LANE_OUT].state == LANE_HELD &&
		   ci.lane[LANE_IN].state == LANE_HELD;
	world_disconnect(q, tell);
}

/* Until @count connections have been there, each of which ends with a DREQ where @tell says so. */
static void churn(struct churn *c, uint32_t count, bool tell)
{
	while (c->done < count) {
		assert_null(c->w->violation);
		world_run(c->w, c->w->now + MS / 2);
		for (uint32_t i = 0; i < c->seats; i++) {
			struct world_qp *q = c->seat[i];

			if (q->up && worked(q)) {
				leave(c, q, tell);
			} else if (!q->up && !q->shaking && c->made < count) {
				next_numbers(c, &q->cfg[0]);
				world_reconnect(q, c->made * 2654435761u & PSN_MASK,
						c->made * 40503u & PSN_MASK, true);
				begin(q);
			}
		}
	}
}

static uint32_t conns(const struct churn *c, int side)
{
	struct engine_memory m;

	engine_memory(c->w->engine[side], &m);
	return m.conns;
}

static void finish(struct churn *c)
{
	assert_null(c->w->violation);
	for (int s = 0; s < 2; s++) {
		assert_null(engine_check(c->w->engine[s]));
		assert_int_equal(engine_custody(c->w->engine[s], -1, c->w->now).packets, 0);
	}
	world_destroy(c->w);
}

/* At the default size 1,000 connections a second are all held, and a second after the last goodbye
 * none of them is there any more. */
static void test_many(void **state)
{
	const char *n = getenv("CHURN");
	uint32_t count = n ? (uint32_t)atol(n) : 3000;
	struct churn c;
	uint64_t ns;

	(void)state;
	start(&c, SEATS, 0);
	ns = c.w->now;
	churn(&c, count, true);
	ns = c.w->now - ns;
	assert_true(count * SEC / ns >= 1000);
	assert_int_equal(c.held, count);
	world_run(c.w, c.w->now + SEC);
	for (int s = 0; s < 2; s++) {
		struct engine_memory m;

		engine_memory(c.w->engine[s], &m);
		assert_int_equal(m.conns, 0);
		assert_int_equal(m.flows, 0);
		assert_int_equal(m.custody_used + m.transit_used, 0);
		assert_int_equal(engine_counter(c.w->engine[s], EC_TABLE_FULL), 0);
	}
	finish(&c);
}

/* More connections than the table has places, one after the other. */
static void test_small_table(void **state)
{
	struct churn c;

	(void)state;
	start(&c, 1, 256);
	churn(&c, 600, true);
	assert_int_equal(c.held, 600);
	for (int s = 0; s < 2; s++)
		assert_int_equal(engine_counter(c.w->engine[s], EC_TABLE_FULL), 0);
	finish(&c);
}

/* Without a goodbye they keep their places as long as no other connection wants one; then, after
 * ten seconds, there is place for it at both ends. */
static void test_no_goodbye(void **state)
{
	struct churn c;

	(void)state;
	start(&c, 1, 32);
	churn(&c, 32, false);
	assert_int_equal(c.held, 32);
	world_run(c.w, c.w->now + 20 * SEC);
	assert_int_equal(conns(&c, 0), 32);
	churn(&c, 33, false); /* finds none, and says so */
	world_run(c.w, c.w->now + 3 * SEC);
	assert_in_range(conns(&c, 0), 1, 31);
	assert_in_range(conns(&c, 1), 1, 31);
	c.held = 0;
	churn(&c, 34, false);
	assert_int_equal(c.held, 1);
	finish(&c);
}

/* ---- the connection manager's places ---- */

/* Thousands of REQs in another host's name do not displace a handshake that is under way. */
static void test_flood_of_reqs(void **state)
{
	static const uint8_t smac[6] = {2, 0, 0, 0, 0, 0x77}, dmac[6] = {2, 0, 0, 0, 0, 2};
	struct rc_header h;
	struct cm req = {.type = CM_REQ, .rc = true, .path_mtu = 1024};
	uint8_t buf[CM_FRAME_MAX];
	struct ip_addr src, dst;
	struct conn_info ci;
	struct churn c;

	(void)state;
	start(&c, 1, 64);
	world_run(c.w, c.w->now + 50000); /* the REQ is on its way */
	assert_int_equal(c.seat[0]->cm[0].state, RC_CM_REQ_SENT);
	ip_addr_parse("10.1.0.77", &src);
	ip_addr_parse("10.2.0.1", &dst);
	rc_header_init(&h, smac, dmac, FRAME_VLAN_NONE, &src, &dst, 0xc000);
	for (uint32_t i = 0; i < 5000; i++) {
		req.local_id = 0x7000000 + i;
		req.lqpn = 0x70000 + i;
		engine_rx(c.w->engine[0], PORT_LAN, buf, cm_emit(buf, &h, &src, &dst, &req, i),
			  c.w->now);
		engine_tick(c.w->engine[0], c.w->now);
	}
	while (!worked(c.seat[0]))
		world_run(c.w, c.w->now + MS);
	assert_true(world_conn(c.w, 0, c.seat[0], &ci));
	assert_int_equal(ci.learned_by, LEARNED_CM);
	assert_int_equal(ci.lane[LANE_OUT].state, LANE_HELD);
	world_destroy(c.w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_small_table),
		cmocka_unit_test(test_no_goodbye),
		cmocka_unit_test(test_flood_of_reqs),
	};

	return cmocka_run_group_tests_name("scenario/churn", tests, NULL, NULL);
}
