// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * FAST-7, POOL-3: a lane has a span of PSNs as well as a pool, and small messages fill that first.
 * A full span must cost speed at most, never a queue pair: hosts here have ordinary timers (67 ms,
 * seven retries), so one that is left to repeat in vain dies within a second.
 */
#include "tests/scenario/scenario.h"

#define SPAN 1024u
/* Their windows, of 1 MiB each, have room in what custody may take of a pool of 64 MiB. */
#define MANY 30u

static struct world *make(uint64_t seed, double loss, uint32_t mtu, bool single)
{
	struct world_config c;
	struct world *w;

	world_defaults(&c);
	c.seed = seed;
	c.single = single;
	c.appliance[1] = !single;
	c.path_mtu = mtu; /* messages of one packet do not tell it */
	c.check_every = 101;
	c.check_custody = true;
	c.engine.lane_span = SPAN;
	c.wan.delay_ns = 10 * MS;
	c.wan.rate_bps = 1000000000ull;
	c.wan.loss = loss;
	w = world_create(&c);
	assert_non_null(w);
	return w;
}

static struct world_qp *connect(struct world *w, uint32_t n, uint32_t mtu, enum rc_personality who,
				uint32_t psn)
{
	struct rc_qp_config qc;

	scenario_qp(&qc, n, mtu, who);
	qc.sq_psn = psn;
	qc.depth = 128;
	qc.timeout_exp = 14;
	return world_connect(w, &qc, who);
}

/* Messages of one packet, as fast as the host can, over every path MTU and both kinds of host. */
static void test_small_messages(void **state)
{
	(void)state;
	for (uint32_t mtu = 256; mtu <= 4096; mtu *= 2)
		for (int p = 0; p < 2; p++) {
			struct world *w = make(mtu + (uint32_t)p, 0, mtu, false);
			struct world_qp *q =
				connect(w, 1, mtu, p ? RC_STRICT : RC_PERMISSIVE, 0xfffe00);

			world_work(q, 0,
				   &(struct work){.ops = OPS_WRITE_SEND, .max = 64, .left = 30000});
			scenario_finish(w, 600 * SEC);
			scenario_held(w, q, 0);
			/* it was full, and ACKs were withheld for it */
			assert_true(engine_counter(w->engine[0], EC_HELD_BACK) > 0);
			world_destroy(w);
		}
}

/* The same with loss, which lets custody grow while the frontier is repaired, and with long
 * messages between. */
static void test_with_loss(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct world *w = make(seed, 0.01, 1024, false);
		struct world_qp *q = connect(w, 1, 1024, seed & 1 ? RC_STRICT : RC_PERMISSIVE, 7);

		world_work(q, 0,
			   &(struct work){.ops = OPS_WRITE_SEND | 1u << RC_READ,
					  .max = 20000,
					  .left = 3000});
		world_work(q, 1, &(struct work){.ops = OPS_WRITE_SEND, .max = 100, .left = 3000});
		scenario_finish(w, 600 * SEC);
		world_destroy(w);
	}
}

static void cut(struct world *w, bool on)
{
	struct wan_config c = w->cfg.wan;

	c.loss = on;
	for (int side = 0; side < 2; side++)
		world_set_wan(w, side, &c);
}

/* The WAN stands still for ten seconds: far longer than a host repeats in vain. */
static void test_outage(void **state)
{
	(void)state;
	for (int p = 0; p < 2; p++) {
		struct world *w = make(9, 0, 1024, false);
		struct world_qp *q = connect(w, 1, 1024, p ? RC_STRICT : RC_PERMISSIVE, 7);

		world_work(q, 0, &(struct work){.ops = OPS_WRITE_SEND, .max = 64, .left = 2000});
		scenario_finish(w, 600 * SEC);
		scenario_held(w, q, 0);
		cut(w, true);
		world_work(q, 0, &(struct work){.ops = OPS_WRITE_SEND, .max = 64, .left = 5000});
		world_run(w, w->now + 10 * SEC);
		cut(w, false);
		scenario_finish(w, 600 * SEC);
		world_destroy(w);
	}
}

/* One appliance alone. */
static void test_single(void **state)
{
	(void)state;
	for (int p = 0; p < 2; p++) {
		struct world *w = make(3, 0, 1024, true);
		struct world_qp *q = connect(w, 1, 1024, p ? RC_STRICT : RC_PERMISSIVE, 7);

		world_work(q, 0, &(struct work){.ops = OPS_WRITE_SEND, .max = 64, .left = 20000});
		scenario_finish(w, 600 * SEC);
		scenario_held(w, q, 0);
		world_destroy(w);
	}
}

/* One strict queue pair in a world by @c, @depth outstanding, with work to do. */
static struct world_qp *lone(const struct world_config *c, uint32_t depth, uint8_t timeout_exp,
			     const struct work *work)
{
	struct world *w = world_create(c);
	struct rc_qp_config qc;
	struct world_qp *q;

	assert_non_null(w);
	scenario_qp(&qc, 1, 4096, RC_STRICT);
	qc.depth = depth;
	qc.timeout_exp = timeout_exp;
	q = world_connect(w, &qc, RC_STRICT);
	world_work(q, 0, work);
	return q;
}

/* A pool of 64 MiB before a WAN of 1 Gb/s: hosts fill it faster than the WAN empties it. */
static void small_pool(struct world_config *c, uint64_t seed)
{
	world_defaults(c);
	c->seed = seed;
	c->path_mtu = 4096;
	c->engine.pool_bytes = 64ull << 20;
	c->engine.wan_rate = 1000000000 / 8;
	c->wan.delay_ns = 5 * MS;
	c->wan.rate_bps = 1010000000ull;
}

/*
 * POOL-3, the same for memory: a lane that is alone in a pool fills its share, faster than the WAN
 * empties it. It is held back in time; nothing of it is dropped, so that its host need not go back.
 */
static void test_share(void **state)
{
	struct world_config c;
	struct world_qp *q;

	(void)state;
	small_pool(&c, 4);
	q = lone(&c, 64, 17,
		 &(struct work){.ops = 1u << RC_WRITE, .min = 65536, .max = 65536, .left = 3000});
	scenario_finish(q->w, 600 * SEC);
	scenario_held(q->w, q, 0);
	assert_true(engine_counter(q->w->engine[0], EC_HELD_BACK) > 0);
	assert_int_equal(engine_counter(q->w->engine[0], EC_NO_ROOM), 0);
	world_destroy(q->w);
}

/*
 * POOL-3, FAST-7: many lanes that together could fill the pool at once, each with a window that is
 * far less than its share. Whoever is told of all that was accepted sends as much again, all of
 * them at the same time; so they are told only of what was sent on, in time, and go at the pace of
 * the WAN with nothing refused.
 */
static void test_share_of_many(void **state)
{
	struct world_config c;
	struct work work = {.ops = 1u << RC_WRITE, .min = 65536, .max = 65536, .left = UINT64_MAX};
	struct rc_qp_config qc;
	uint64_t refused, naks;
	struct world *w;

	(void)state;
	small_pool(&c, 7);
	c.lan.rate_bps = 2500000000ull;
	c.lan.store_bytes = 64ull << 20;
	w = world_create(&c);
	assert_non_null(w);
	for (uint32_t i = 1; i <= MANY; i++) {
		scenario_qp(&qc, i, 4096, RC_STRICT);
		qc.depth = 16;
		qc.timeout_exp = 17;
		world_work(world_connect(w, &qc, RC_STRICT), 0, &work);
	}
	world_run(w, w->now + 4 * SEC);
	refused = engine_counter(w->engine[0], EC_NO_ROOM);
	naks = engine_counter(w->engine[0], EC_NAKS_SENT);
	assert_true(engine_counter(w->engine[0], EC_HELD_BACK) > 0);
	world_run(w, w->now + 4 * SEC);
	refused = engine_counter(w->engine[0], EC_NO_ROOM) - refused;
	naks = engine_counter(w->engine[0], EC_NAKS_SENT) - naks;
	print_message("%u refused, %u asked for\n", (unsigned int)refused, (unsigned int)naks);
	assert_in_range(refused, 0, 2 * MANY);
	assert_in_range(naks, 0, 2 * MANY);
	world_destroy(w);
}

/*
 * FAST-1, POOL-3: the far appliance's share of its pool, filled by a lane that nothing paces while
 * a lost packet is repaired through the long queue that it makes. What room is announced is there:
 * what is refused is sent again at once, to be refused again, and the link carries nothing else.
 */
static void test_share_far(void **state)
{
	struct world_config c;
	struct world_qp *q;

	(void)state;
	world_defaults(&c);
	c.seed = 5;
	c.path_mtu = 4096;
	c.engine.pool_bytes = 96ull << 20;
	c.wan.delay_ns = 5 * MS;
	c.wan.rate_bps = 1200000000ull;
	c.wan.loss = 0.01;
	c.wan.store_bytes = 256ull << 20;
	c.lan.rate_bps = 1500000000ull;
	q = lone(&c, 16, 18,
		 &(struct work){.ops = 1u << RC_SEND, .min = 65536, .max = 65536, .left = 2000});
	scenario_finish(q->w, 600 * SEC);
	scenario_held(q->w, q, 0);
	assert_in_range(engine_counter(q->w->engine[0], EC_RETX_WAN), 1, 2000 * 16 / 5);
	world_destroy(q->w);
}

/* Small messages get as much of the far appliance's pool as they take, not what full packets would:
 * else a long link stands idle. */
static void test_small_room(void **state)
{
	struct world_config c;
	struct world_qp *q;
	uint64_t before;

	(void)state;
	world_defaults(&c);
	c.seed = 6;
	c.engine.pool_bytes = 16ull << 20;
	c.wan.delay_ns = 20 * MS;
	c.wan.rate_bps = 200000000ull;
	c.engine.wan_rate = c.wan.rate_bps / 8 * 95 / 100;
	q = lone(&c, 512, 18,
		 &(struct work){.ops = 1u << RC_WRITE, .min = 64, .max = 64, .left = 500000});
	world_run(q->w, q->w->now + SEC);
	before = rc_messages(q->side[1].qp);
	world_run(q->w, q->w->now + SEC);
	/* 138 bytes each on the WAN, and names */
	assert_in_range(rc_messages(q->side[1].qp) - before, c.wan.rate_bps / 8 / 142 * 80 / 100,
			c.wan.rate_bps / 8 / 138);
	assert_int_equal(engine_counter(q->w->engine[1], EC_NO_ROOM), 0);
	scenario_finish(q->w, 600 * SEC);
	world_destroy(q->w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_messages), cmocka_unit_test(test_with_loss),
		cmocka_unit_test(test_outage),	       cmocka_unit_test(test_single),
		cmocka_unit_test(test_share),	       cmocka_unit_test(test_share_far),
		cmocka_unit_test(test_share_of_many),  cmocka_unit_test(test_small_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
