// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What must hold, and what becomes of a lane of which it does not (engine/core/must.h), or of the
 * process (wire/must.h). scenario/test_must breaks each invariant in whole worlds.
 */
#define NDEBUG /* as in a release */
#include "wire/must.h"

#include "tests/unit/engine_rig.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/core/core.h"

/* @what ends the process, which tells that it was in @file. */
static void ends(void (*what)(void *), void *arg, const char *file)
{
	int says[2], status;
	char text[512];
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(says), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(says[1], STDERR_FILENO);
		signal(SIGABRT, SIG_DFL);
		what(arg);
		_exit(0);
	}
	close(says[1]);
	n = read(says[0], text, sizeof(text) - 1);
	assert_true(n > 0);
	text[n] = 0;
	close(says[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	assert_non_null(strstr(text, file));
}

static void must_not(void *arg)
{
	must(arg == NULL);
}

/* must() ends the process also with NDEBUG, and tells where. */
static void test_must_ends_process(void **state)
{
	int here;

	(void)state;
	must_not(NULL);
	ends(must_not, &here, "test_must.c");
}

/* The lane of the near host's requests. */
static struct lane *lane_of(struct rig *r)
{
	for (uint32_t i = 0; i < r->e->nflows; i++)
		if (r->e->flows[i].used && r->e->flows[i].lane.role != ROLE_NONE)
			return &r->e->flows[i].lane;
	fail_msg("no lane is held");
	return NULL;
}

static void ack(struct rig *r, uint32_t psn)
{
	uint8_t data[FRAME_MAX];
	char text[64];

	snprintf(text, sizeof(text), ACK_TO_NEAR, psn, psn + 1);
	rig_rx_raw(r, FAR, data, rig_build(r, data, FAR, text));
}

static void in_fault(struct rig *r, const char *file)
{
	const struct lane_info *l;
	struct conn_info ci = rig_conn(r);

	l = &ci.lane[LANE_OUT];
	assert_int_equal(l->state, LANE_FAULT);
	assert_int_equal(l->reason, REASON_INVARIANT);
	assert_int_equal(l->custody.packets, 0);
	assert_int_equal(r->events[EVENT_INVARIANT], 1);
	assert_int_equal(r->events[EVENT_FAULT], 1);
	assert_int_equal(engine_counter(r->e, EC_INVARIANTS), 1);
	assert_int_equal(engine_counter(r->e, EC_FAULTS), 1);
	assert_non_null(strstr(r->must.file, file));
	assert_true(r->must.line > 0 && strlen(r->must.what) > 0);
	rig_check(r);
}

/* A single appliance with three SENDs in custody, told to be done. */
static struct rig *three(void)
{
	struct rig *r = rig_held(NULL, PEER_NONE, POLICY_EARLY, RIG_MTU);

	for (uint32_t psn = 6; psn < 9; psn++)
		rig_rx(r, NEAR, SEND_ONLY("%06x"), psn);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].custody.packets, 3);
	rig_forget(r);
	r->breaks = true;
	return r;
}

static void tick(void *arg)
{
	struct rig *r = arg;

	engine_tick(r->e, r->now);
}

/* A lane stands in a list, and does not say so: what a list of lanes says cannot be believed. */
static void test_lists_wrong(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		struct rig *r = three();
		struct lane *l = lane_of(r);
		struct flow *fl = (struct flow *)((uint8_t *)l - offsetof(struct flow, lane));

		undone_watch(NULL); /* changed by hand */
		if (i == 0)
			ack_list(r->e, fl);
		else if (i == 1)
			ack_again_later(r->e, fl);
		else
			report_list(r->e, fl);
		l->listed.ack = l->listed.report = false;
		ends(tick, r, "engine/core/due.c");
		rig_destroy(r);
	}
}

/* The books of custody do not add up when a true ACK ends it. The queue pair fails, for who knows
 * what else is wrong; what is held all goes back to the pool, and nothing faults twice. */
static void test_books_wrong(void **state)
{
	static const int wrong[] = {-1, 1, 1000};

	(void)state;
	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct rig *r = three();

		lane_of(r)->held.packets += (uint32_t)wrong[i];
		ack(r, 7);
		ack(r, 8);
		in_fault(r, "engine/core/custody.c");
		rig_pass(r, 20000 * RIG_MS);
		rig_only_probes(r);
		assert_int_equal(r->events[EVENT_INVARIANT], 1);
		assert_int_equal(pool_used(r->e->pool, POOL_CUSTODY), 0);
		rig_destroy(r);
	}
}

/* So it is where the peer tells of that ACK: before anything else happens. */
static void test_books_wrong_told(void **state)
{
	struct rig *r = rig_held(NULL, 0, POLICY_EARLY, RIG_MTU);
	struct report p = r->open;

	(void)state;
	rig_rx(r, NEAR, SEND_ONLY("000006"));
	undone_watch(NULL); /* changed by hand */
	r->breaks = true;
	lane_of(r)->held.packets++;
	p.type = REPORT_PROGRESS;
	p.seq = r->seq + 1;
	p.cum = p.hi = p.una = p.una_msn = 7;
	p.room = 1000;
	p.credit = 0x1f;
	engine_rx_report(r->e, 0, &p, r->now);
	in_fault(r, "engine/core/custody.c");
	rig_destroy(r);
}

/* A packet in custody is missing: nothing behind it is released as if it were there. */
static void test_packet_missing(void **state)
{
	struct rig *r = three();
	struct flow *fl = (struct flow *)((uint8_t *)lane_of(r) - offsetof(struct flow, lane));

	(void)state;
	lane_forget(r->e, fl, window_get(&fl->lane.held.win, r->e->pool, 7), (struct wire_psn){7});
	ack(r, 8);
	in_fault(r, "engine/core/custody.c");
	assert_int_equal(r->must.x, 8); /* what was found, and what was acknowledged */
	assert_int_equal(r->must.y, 9);
	rig_destroy(r);
}

/* The frontier is beyond what was accepted: no ACK tells that to the host. */
static void test_ack_beyond(void **state)
{
	struct rig *r = three();
	struct lane *l = lane_of(r);

	(void)state;
	undone_watch(NULL); /* changed by hand */
	l->near.frontier.psn.v = 20;
	l->near.frontier.ackable = true;
	l->near.ack_due = true;
	ack_list(r->e, (struct flow *)((uint8_t *)l - offsetof(struct flow, lane)));
	engine_tick(r->e, r->now);
	in_fault(r, "engine/near/ack_tx.c");
	assert_int_equal(r->must.x, 20);
	assert_int_equal(r->must.y, 9);
	rig_pass(r, 5000 * RIG_MS);
	while (r->at < r->nout) { /* probes, questions to the host, and NAKs that are fatal */
		const uint8_t *bth = rig_sent(r, PORT_LAN)->data + RIG_BTH;

		assert_true(bth[0] == 0x01 || bth[0] == 0x64 ||
			    (bth[0] == 0x11 && bth[12] == AETH_NAK_OPERATION));
	}
	rig_destroy(r);
}

/* Marks out of order: found where they are moved next. */
static void test_marks(void **state)
{
	struct rig *r = three();

	(void)state;
	lane_of(r)->high.v = 20;
	ack(r, 6);
	in_fault(r, "engine/core/custody.c");
	rig_destroy(r);
}

/* One that opens has promised nothing: it lets go, and the queue pair lives. */
static void test_opening_lets_go(void **state)
{
	static const struct engine_config small = {
		.pool_bytes = 8 << 20, .max_conns = 16, .seed = 1};
	struct rule rule = rig_rule(0, POLICY_EARLY, RIG_MTU);
	struct rig *r = rig_create(&small, &rule);

	(void)state;
	rig_learn(r, 0);
	rig_rx(r, NEAR, SEND_ONLY("000005"));
	assert_int_equal(rig_conn(r).lane[LANE_OUT].state, LANE_OPENING);
	r->breaks = true;
	undone_watch(NULL); /* changed by hand */
	assert_false(lane_must(r->e, lane_of(r), r->now == 0, 1, 2));
	engine_tick(r->e, r->now);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].state, LANE_WATCH);
	assert_int_equal(r->events[EVENT_INVARIANT], 1);
	assert_int_equal(r->events[EVENT_FAULT], 0);
	/* what an older peer does not know it is not told */
	assert_int_equal(r->rep[r->nrep - 1].type, REPORT_CLOSE);
	assert_int_equal(r->rep[r->nrep - 1].reason, REASON_FAULT);
	rig_check(r);
	rig_destroy(r);
}

/* In FAULT it is told, and nothing else changes; so it is in WATCH. */
static void test_in_fault_already(void **state)
{
	struct rig *r = three();
	struct lane *l = lane_of(r);

	(void)state;
	engine_give_up(r->e, r->now);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].state, LANE_FAULT);
	assert_false(lane_must(r->e, l, r->now == 0, 1, 2));
	assert_false(lane_must(r->e, l, r->now == 0, 1, 2));
	engine_tick(r->e, r->now);
	assert_int_equal(r->events[EVENT_INVARIANT], 1);
	assert_int_equal(r->events[EVENT_FAULT], 1);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].reason, REASON_OPERATOR);
	rig_check(r);
	rig_destroy(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_must_ends_process),
		cmocka_unit_test(test_lists_wrong),
		cmocka_unit_test(test_books_wrong),
		cmocka_unit_test(test_books_wrong_told),
		cmocka_unit_test(test_packet_missing),
		cmocka_unit_test(test_ack_beyond),
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_opening_lets_go),
		cmocka_unit_test(test_in_fault_already),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
