// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How lanes end, and what outlives them: an appliance loses its memory, the operator takes a rule
 * away, hosts make their queue pairs anew. Each test begins with the sentence that says what it
 * guards against.
 */
#include "tests/scenario/invariant_rig.h"

/*
 * Guards against an atomic that the responder no longer remembers: the reports of many answered
 * atomics are lost, then the acceptor loses its memory. What was answered must not be sent from the
 * start again.
 */
static void test_atomics_over_restart(void **state)
{
	struct world_config c;
	struct world *w;
	struct rc_qp_config qc;
	struct world_qp *q;
	struct wan_config rep, lost;
	struct work k = {.ops = 1u << RC_FETCH_ADD, .left = 100000, .outstanding = 1};

	(void)state;
	world_defaults(&c);
	c.check_every = 1;
	c.wan.delay_ns = 1 * MS;
	c.unsealed = true; /* else no answer arrives without a report that names it */
	w = make(&c);
	scenario_qp(&qc, 1, 1024, RC_STRICT);
	q = world_connect(w, &qc, RC_STRICT);
	get_held(w, q);
	rep = lost = *wan_config(w->reports[1]);
	lost.loss = 1;
	wan_set(w->reports[1], &lost);
	world_work(q, 0, &k);
	world_run(w, w->now + 400 * MS);
	assert_true(q->side[0].ok > 60);
	q->side[0].work.left = 5;
	wan_set(w->reports[1], &rep);
	world_restart(w, 1);
	world_run_done(w, w->now + 100 * SEC);
	judge(w, w->faults[0] + w->faults[1] ? "custody was lost" : NULL);
	scenario_finish(w, 1 * SEC);
	finish(w);
}

/*
 * Guards against custody that is never delivered: during a transfer the operator removes the rule
 * at one end or the other. What was acknowledged must still arrive.
 */
static void test_rule_removed(void **state)
{
	(void)state;
	for (int side = 0; side < 2; side++) {
		struct world_config c;
		struct world *w;
		struct rc_qp_config qc;
		struct world_qp *q;

		world_defaults(&c);
		c.check_every = 101;
		c.wan.delay_ns = 10 * MS;
		c.wan.rate_bps = 1000000000;
		c.engine.wan_rate = 120000000;
		c.wan.loss = 0.01;
		w = make(&c);
		scenario_qp(&qc, 1, 1024, RC_PERMISSIVE);
		q = world_connect(w, &qc, RC_PERMISSIVE);
		get_held(w, q);
		world_work(
			q, 0,
			&(struct work){.ops = OPS_WRITE_SEND, .min = 1, .max = 60000, .left = 500});
		world_run(w, w->now + 50 * MS);
		rules(w, side, false, 0);
		scenario_finish(w, 200 * SEC);
		assert_int_equal(w->faults[0] + w->faults[1], 0);
		finish(w);
	}
}

/*
 * Guards against the loss of what one appliance still has when the other one loses its memory: a
 * message was acknowledged to the requester and has reached the acceptor whole; the responder has
 * no receive for it yet; then the opener starts anew.
 */
static void test_opener_restarts(void **state)
{
	struct world_config c;
	struct world *w;
	struct rc_qp_config qc;
	struct world_qp *q;
	uint64_t ok;

	(void)state;
	world_defaults(&c);
	c.check_every = 1;
	c.wan.delay_ns = 5 * MS;
	w = make(&c);
	scenario_qp(&qc, 1, 1024, RC_STRICT);
	qc.recv_depth = 1;
	q = world_connect(w, &qc, RC_STRICT);
	get_held(w, q);
	rc_qp_set_recv(q->side[1].qp, w->now, false, 0, 0);
	ok = q->side[0].ok;
	for (int i = 0; i < 40; i++)
		post(q, 0, RC_SEND, 3000);
	world_run(w, w->now + 100 * MS);
	assert_int_equal(q->side[0].ok, ok + 40);
	assert_true(rc_messages(q->side[1].qp) < ok + 40);
	rc_qp_set_recv(q->side[1].qp, w->now, false, 5 * MS, 0);
	world_restart(w, 0);
	/* it takes them slowly, so that reports and their answers cross while much is still to be
	 * delivered */
	world_run(w, w->now + 20 * SEC);
	judge(w, world_verify(w, true));
	rc_qp_set_recv(q->side[1].qp, w->now, true, 0, 0);
	/* the acceptor had it all, so nothing was lost after all, and the connection goes on */
	q->side[0].lost = false;
	for (int i = 0; i < 40; i++)
		post(q, 0, RC_SEND, 3000);
	scenario_finish(w, 100 * SEC);
	finish(w);
}

/*
 * POOL-9: guards against an acknowledgement for what another incarnation had sent: both hosts
 * make their queue pairs anew, by the same numbers and from the same PSN on, unseen by any
 * connection manager.
 */
static void test_same_psns_again(void **state)
{
	(void)state;
	for (int p = 0; p < 2; p++) {
		struct world_config c;
		struct world *w;
		struct rc_qp_config qc, cfg[2];
		struct world_qp *q;
		uint64_t ok;

		world_defaults(&c);
		c.check_every = 1;
		c.wan.delay_ns = 2 * MS;
		w = make(&c);
		scenario_qp(&qc, 1, 1024, p ? RC_PERMISSIVE : RC_STRICT);
		q = world_connect(w, &qc, p ? RC_PERMISSIVE : RC_STRICT);
		get_held(w, q);
		for (int i = 0; i < 2; i++)
			cfg[i] = *rc_qp_config(q->side[i].qp);
		for (int i = 0; i < 2; i++) {
			rc_qp_destroy(q->side[i].qp);
			q->side[i].qp = rc_qp_create(w->host[i], &cfg[i], q);
			assert_non_null(q->side[i].qp);
		}
		ok = q->side[0].ok;
		for (int i = 0; i < 10; i++)
			post(q, 0, RC_WRITE, 100);
		world_run(w, w->now + 60 * SEC);
		judge(w, world_verify(w, false));
		ok = q->side[0].ok - ok;
		if (ok > rc_messages(q->side[1].qp))
			judge(w, "told to be done, and never executed");
		judge(w, ok < 10 ? "the new connection does not work" : NULL);
		finish(w);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_atomics_over_restart),
		cmocka_unit_test(test_rule_removed),
		cmocka_unit_test(test_opener_restarts),
		cmocka_unit_test(test_same_psns_again),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
