// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Queue pairs without the connection manager: which of them belong together is proved by when
 * repeated requests are answered (learn/echo.c), whether PSNs have given a hint or they run in step
 * from PSN 0, and whatever their UDP ports are. NTT-3
 */
#include <string.h>

#include "tests/scenario/scenario.h"
#include "tests/scenario/world_priv.h"

#define QPS 6

static struct world *world_of(uint32_t qps, double loss, const struct rc_qp_config *like)
{
	struct world_config wc;
	struct rc_qp_config qc;
	struct world *w;

	world_defaults(&wc);
	wc.wan.delay_ns = 5 * MS;
	wc.wan.loss = loss;
	wc.proved = true;
	w = world_create(&wc);
	assert_non_null(w);
	for (uint32_t i = 0; i < qps; i++) {
		scenario_qp(&qc, i, 1024, RC_STRICT);
		qc.mr_size = qc.rmr_size = 65536;
		qc.sq_psn = qc.rq_psn = 0;
		if (like) {
			qc.ack_coalesce = like->ack_coalesce;
			qc.ack_delay = like->ack_delay;
		}
		assert_non_null(world_connect(w, &qc, RC_STRICT));
	}
	return w;
}

/* One message after the other over all queue pairs. */
static void in_step(struct world *w, uint32_t op, uint32_t rounds)
{
	for (uint32_t n = 1; n <= rounds; n++) {
		struct work k = {.ops = 1u << op, .min = 200, .max = 200, .left = 1};
		uint64_t end = w->now + SEC;
		bool done = false;

		for (uint32_t i = 0; i < w->nqps; i++)
			world_work(&w->qp[i], 0, &k);
		while (!done && w->now < end) {
			world_run(w, w->now + MS);
			assert_null(w->violation);
			done = true;
			for (uint32_t i = 0; i < w->nqps; i++)
				done &= !w->qp[i].side[0].work.left &&
					!rc_qp_queued(w->qp[i].side[0].qp);
		}
		assert_true(done);
	}
}

/* How many pairs the appliance at host @side has learned in the way @how. Each must exist,
 * unless it is a hint. */
static uint32_t pairs_at(struct world *w, int side, enum learn_source how)
{
	struct conn_info ci;
	uint32_t n = 0;

	for (uint32_t from = 0; engine_conn_next(w->engine[side], from, w->now, &ci);
	     from = ci.id + 1) {
		uint32_t i = 0;

		if (!ci.paired)
			continue;
		while (i < w->nqps &&
		       (ci.lqpn != w->qp[i].cfg[side].lqpn || ci.rqpn != w->qp[i].cfg[side].rqpn))
			i++;
		assert_true(i < w->nqps || ci.learned_by == LEARNED_HINT);
		n += ci.learned_by == how;
	}
	return n;
}

/* The same at host 1, whose appliance asks what host 0 has sent. */
static uint32_t pairs(struct world *w, enum learn_source how)
{
	return pairs_at(w, 1, how);
}

static bool held(struct world *w, uint32_t qp)
{
	struct conn_info ci;

	return world_conn(w, 0, &w->qp[qp], &ci) && ci.lane[LANE_OUT].state == LANE_HELD;
}

static uint64_t copies(const struct world *w)
{
	return engine_counter(w->engine[1], EC_LEARN_PROBES);
}

/* All but the last, which PSNs tell when it is alone. */
static void test_learned(void **state)
{
	struct world *w = world_of(QPS, 0, NULL);

	(void)state;
	in_step(w, RC_WRITE, 60);
	assert_true(pairs(w, LEARNED_ECHO) >= QPS - 1);
	assert_true(pairs_at(w, 0, LEARNED_PEER) >= QPS - 1);
	assert_true(copies(w) >= 19 * (QPS - 1));
	for (uint32_t i = 0; i < QPS - 1; i++)
		assert_true(w->qp[i].side[0].ok == 60 && held(w, i));
	scenario_finish(w, 10 * SEC);
}

/* Nothing is sent again once all are known. */
static void test_ends(void **state)
{
	struct world *w = world_of(QPS, 0, NULL);
	uint64_t n;

	(void)state;
	in_step(w, RC_WRITE, 300);
	assert_int_equal(pairs(w, LEARNED_ECHO) + pairs(w, LEARNED_PSN) + pairs(w, LEARNED_PEER),
			 QPS);
	n = copies(w);
	in_step(w, RC_WRITE, 20);
	assert_int_equal(copies(w), n);
	scenario_finish(w, 10 * SEC);
}

/* A responder without a receive buffer would answer each copy with an RNR NAK. */
static void test_sends(void **state)
{
	struct world *w = world_of(QPS, 0, NULL);

	(void)state;
	in_step(w, RC_SEND, 30);
	in_step(w, RC_WRITE_IMM, 30);
	assert_int_equal(copies(w), 0);
	assert_int_equal(pairs(w, LEARNED_ECHO), 0);
	scenario_finish(w, 10 * SEC);
}

/* What PSNs say of one that is alone is a hint, and is proved in two round trips. */
static void alone(uint32_t op)
{
	struct world *w = world_of(1, 0, NULL);

	in_step(w, op, 4);
	assert_int_equal(pairs(w, LEARNED_HINT), 1);
	assert_int_equal(copies(w), 0);
	in_step(w, op, 1);
	assert_int_equal(pairs(w, LEARNED_ECHO), 1);
	assert_true(copies(w) > 10 && copies(w) < 40);
	in_step(w, op, 2);
	assert_int_equal(pairs_at(w, 0, LEARNED_PEER), 1);
	assert_true(held(w, 0));
	scenario_finish(w, 10 * SEC);
}

static void test_alone(void **state)
{
	(void)state;
	alone(RC_WRITE);
	alone(RC_WRITE_IMM);
	alone(RC_SEND);
	alone(RC_SEND_IMM);
}

/* A READ is not asked again: its memory may be withdrawn. What follows it proves the pair. */
static void test_reads(void **state)
{
	struct world *w = world_of(1, 0, NULL);

	(void)state;
	in_step(w, RC_READ, 20);
	assert_int_equal(pairs(w, LEARNED_HINT), 1);
	assert_int_equal(copies(w), 0);
	assert_false(held(w, 0));
	in_step(w, RC_SEND, 1);
	assert_int_equal(pairs(w, LEARNED_ECHO), 1);
	scenario_finish(w, 10 * SEC);
}

/* For a responder that folds ACKs for longer than a slot the slots become longer. */
static void test_folded(void **state)
{
	struct rc_qp_config like = {.ack_coalesce = 16, .ack_delay = 2 * MS};
	struct world *w = world_of(QPS, 0, &like);

	(void)state;
	in_step(w, RC_WRITE, 5);
	assert_int_equal(pairs(w, LEARNED_ECHO), 0);
	assert_true(copies(w) > 0);
	in_step(w, RC_WRITE, 200);
	assert_int_equal(pairs(w, LEARNED_ECHO), QPS);
	scenario_finish(w, 10 * SEC);
}

/* One that folds ACKs for less than that does not disturb. */
static void test_folded_briefly(void **state)
{
	struct rc_qp_config like = {.ack_coalesce = 16, .ack_delay = 20000};
	struct world *w = world_of(QPS, 0, &like);

	(void)state;
	in_step(w, RC_WRITE, 60);
	assert_true(pairs(w, LEARNED_ECHO) >= QPS - 1);
	scenario_finish(w, 10 * SEC);
}

/* Of each connection the appliances see one direction only: that makes no pair. Of two it is the
 * requests of one and the answers of the other, and what their PSNs say is wrong. */
static void apart(uint32_t qps, uint32_t op)
{
	struct world *w = world_of(qps, 0, NULL);
	struct conn_info ci;
	uint32_t hints = 0;

	world_path(w, &(struct path){.miss = {MISS_FIRST | MISS_SECOND, MISS_FIRST | MISS_SECOND},
				     .times = 1,
				     .on = 100 * SEC,
				     .every = 100 * SEC,
				     .apart = true});
	in_step(w, op, 100);
	assert_true(copies(w) > 0 || op == RC_READ);
	for (int side = 0; side < 2; side++) {
		for (uint32_t from = 0; engine_conn_next(w->engine[side], from, w->now, &ci);
		     from = ci.id + 1) {
			hints += ci.paired && ci.learned_by == LEARNED_HINT;
			assert_true(!ci.paired || ci.learned_by == LEARNED_HINT);
			assert_int_not_equal(ci.lane[LANE_OUT].state, LANE_HELD);
		}
	}
	assert_true(hints == (qps == 2 ? 2 : 0));
	world_destroy(w);
}

static void test_apart(void **state)
{
	(void)state;
	apart(2 * QPS, RC_WRITE);
	apart(2, RC_WRITE);
	apart(2, RC_SEND);
	apart(2, RC_READ);
}

/* Two connections exchange their responders amid learning: what the former owners of the numbers
 * were asked makes no pair. */
static void test_partners_change(void **state)
{
	(void)state;
	for (uint32_t us = 6000; us < 20000; us += 250) {
		struct world *w = world_of(QPS, 0, NULL);
		struct work k = {.ops = 1u << RC_WRITE, .min = 200, .max = 200, .left = 1};
		uint32_t rqpn;

		in_step(w, RC_WRITE, 1);
		/* the next owner may begin with that PSN */
		assert_int_equal(copies(w), 0);
		for (uint32_t i = 0; i < w->nqps; i++)
			world_work(&w->qp[i], 0, &k);
		world_run(w, w->now + us * 1000);
		if (pairs(w, LEARNED_ECHO)) { /* too late */
			assert_true(us > 8000 && copies(w) > 60);
			world_destroy(w);
			return;
		}
		for (uint32_t i = 0; i < 2; i++)
			world_disconnect(&w->qp[i], false);
		rqpn = w->qp[0].cfg[0].rqpn;
		w->qp[0].cfg[0].rqpn = w->qp[1].cfg[0].rqpn;
		w->qp[1].cfg[0].rqpn = rqpn;
		for (uint32_t i = 0; i < 2; i++)
			world_reconnect(&w->qp[i], 5, 5, false);
		in_step(w, RC_WRITE, 3);
		(void)pairs(w, LEARNED_ECHO);
		world_destroy(w);
	}
	fail();
}

/* Whoever starts anew has forgotten what was asked. */
static void test_restart(void **state)
{
	struct world *w = world_of(QPS, 0, NULL);

	(void)state;
	in_step(w, RC_WRITE, 1);
	world_restart(w, 1);
	in_step(w, RC_WRITE, 60);
	assert_true(pairs(w, LEARNED_ECHO) >= QPS - 1);
	scenario_finish(w, 10 * SEC);
}

/* Packets are lost from the beginning, so each flow has gaps, and goes back, in each round trip. */
static void test_lossy(void **state)
{
	static const double loss[] = {0.01, 0.03};
	struct work k = {
		.ops = 1u << RC_WRITE, .min = 65536, .max = 65536, .left = 1000, .outstanding = 8};

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		const uint32_t qps = i & 1 ? QPS : 1, most = qps > 1 ? qps - 1 : 1;
		struct world *w = world_of(qps, loss[i / 2], NULL);
		uint64_t end = w->now + SEC;

		for (uint32_t q = 0; q < qps; q++)
			world_work(&w->qp[q], 0, &k);
		while (pairs(w, LEARNED_ECHO) < most && w->now < end)
			world_run(w, w->now + MS);
		assert_null(w->violation);
		assert_true(pairs(w, LEARNED_ECHO) >= most);
		world_destroy(w);
	}
}

/* All are held within two round trips: half of one until the first packets are at the responder,
 * what the proof takes, half of one until the other appliance is told, and the host sends again. */
static void test_soon(void **state)
{
	(void)state;
	for (uint32_t outstanding = 4; outstanding <= 64; outstanding *= 4) {
		struct work k = {.ops = 1u << RC_WRITE,
				 .min = 1024,
				 .max = 1024,
				 .left = 10000,
				 .outstanding = outstanding};
		struct world *w = world_of(QPS, 0, NULL);
		uint32_t n = 0;

		for (uint32_t q = 0; q < QPS; q++)
			world_work(&w->qp[q], 0, &k);
		world_run(w, w->now + 22 * MS);
		assert_null(w->violation);
		for (uint32_t q = 0; q < QPS; q++)
			n += held(w, q);
		assert_true(n >= QPS - 1);
		world_destroy(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_learned),		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_sends),		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_reads),		cmocka_unit_test(test_folded),
		cmocka_unit_test(test_folded_briefly),	cmocka_unit_test(test_apart),
		cmocka_unit_test(test_partners_change), cmocka_unit_test(test_restart),
		cmocka_unit_test(test_lossy),		cmocka_unit_test(test_soon),
	};

	return cmocka_run_group_tests_name("scenario/echo", tests, NULL, NULL);
}
