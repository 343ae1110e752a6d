// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Appliances with several engines, whose process dies again and again: amid a batch, and when some
 * engines have committed what all were told and others have not (world_crash.c). Peers go, come
 * back and restart meanwhile, operators change rules and limits, bypass and stop. The next process
 * goes on with all files, and every byte is delivered once, in order: no queue pair fails.
 *
 * row: ENG-21
 */
#include <stdlib.h>
#include <string.h>

#include "tests/scenario/plan.h"
#include "tests/scenario/scenario.h"

#define CALLS  4000 /* of engines between two kills */
#define WORLDS 2u
#define HEIRS  3u
#define IDLE   4u

/* What all engines are told, at both sides, with time to go on in between. */
static const struct plan_incident told[] = {
	{.what = INC_PEER_DOWN, .at = 50, .for_ms = 20},
	{.what = INC_OPERATOR, .at = 120, .for_ms = 30, .arg = WISH_NO_RULES},
	{.what = INC_PEER_DOWN, .at = 200, .for_ms = 40, .side = 1},
	{.what = INC_OPERATOR, .at = 260, .for_ms = 1, .arg = WISH_LIMITS, .side = 1},
	{.what = INC_DRAIN, .at = 330},
	{.what = INC_STILL, .at = 420, .for_ms = 1200},
	{.what = INC_OPERATOR, .at = 500, .for_ms = 30, .arg = WISH_BYPASS, .side = 1},
	{.what = INC_DRAIN, .at = 580, .side = 1},
	{.what = INC_STILL, .at = 650, .for_ms = 1500, .side = 1},
	{.what = INC_OPERATOR, .at = 720, .for_ms = 50, .arg = WISH_NO_RULES, .side = 1},
	{.what = INC_PEER_DOWN, .at = 800, .for_ms = 10},
	{.what = INC_PEER_DOWN, .at = 860, .for_ms = 10, .side = 1},
	{.what = INC_OPERATOR, .at = 900, .for_ms = 5, .arg = WISH_BYPASS},
};

static void plan_of(struct plan *p, uint32_t seed)
{
	const uint32_t n = sizeof(told) / sizeof(told[0]);

	*p = (struct plan){.seed = seed,
			   .appliance0 = 1,
			   .appliance1 = 1,
			   .cores0 = 2 + seed % 2,
			   .cores1 = 1 + seed % 3,
			   .policy = seed % 2 ? POLICY_EARLY : POLICY_HONEST,
			   .delay_ns = 2 * MS,
			   .rate_bps = 10000000000ull,
			   .queue_bytes = 4 << 20,
			   .loss0 = 0.001,
			   .loss1 = 0.001,
			   .report_loss = 0.01,
			   .pool_bytes = 12 << 20,
			   .nqps = PLAN_QPS,
			   .nincidents = n};
	memcpy(p->incident, told, sizeof(told));
	for (uint32_t i = 0; i < p->nqps; i++) {
		struct plan_qp *q = &p->qp[i];

		*q = (struct plan_qp){.mtu = 1024, .depth = 16, .max_rd = 8, .mr_kib = 1024};
		q->sq_psn = 0xffffff - 100 * i * seed;
		q->rq_psn = 0x1000 * i;
		q->cm = i % 2;
		for (int s = 0; s < 2; s++)
			q->work[s] = (struct plan_work){
				.ops = OPS_ALL, .max = 9000, .count = 150, .outstanding = 8};
	}
}

static void live(struct plan *p)
{
	struct plan_result r;
	char *text = NULL;
	size_t len = 0;
	FILE *dump = open_memstream(&text, &len);

	plan_run(p, &r, dump, NULL);
	fclose(dump);
	if (r.violation || r.excuse || (r.died && !world_heirs)) {
		plan_print(p, stderr);
		fputs(text, stderr);
		fail_msg("seed %llu: %s", (unsigned long long)p->seed,
			 r.violation ? r.violation : "not judged");
	}
	free(text);
	assert_int_equal(world_faulted, 0);
}

/* What was met since @kills and @parted were counted. */
static void met(uint64_t kills, uint64_t parted)
{
	print_message("kills %llu, between engines %llu\n",
		      (unsigned long long)(world_kills - kills),
		      (unsigned long long)(world_parted - parted));
	assert_true(world_kills - kills >= 10 * (uint64_t)WORLDS);
	assert_true(world_parted - parted >= 2 * (uint64_t)WORLDS);
}

static void test_transfers(void **state)
{
	uint64_t kills = world_kills, parted = world_parted;
	struct plan p;

	(void)state;
	for (uint32_t seed = 1; seed <= WORLDS; seed++) {
		plan_of(&p, seed);
		live(&p);
	}
	met(kills, parted);
}

/* READs in streams, for which appliances READ ahead. */
static void plan_streams(struct plan *p)
{
	p->prefetch = 1;
	for (uint32_t i = 0; i < p->nqps; i++)
		for (int s = 0; s < 2; s++) {
			p->qp[i].work[s].ops = s ? OPS_ALL : 1u << RC_READ;
			p->qp[i].work[s].streams = 2;
			p->qp[i].work[s].stream_len = 4096;
		}
}

/* Numbers at the responder are others than the hosts'. */
static void test_ahead(void **state)
{
	uint64_t kills = world_kills, parted = world_parted;
	struct plan p;

	(void)state;
	for (uint32_t seed = 1; seed <= WORLDS; seed++) {
		plan_of(&p, seed);
		if (seed % 2)
			plan_announce(&p);
		else
			plan_streams(&p);
		live(&p);
	}
	met(kills, parted);
}

/* One pair of hosts, and later another one, has more on the way than its engine's share of the
 * pool. */
static void test_lends(void **state)
{
	uint64_t kills = world_kills, lent = world_lent;
	struct plan p;

	(void)state;
	for (uint32_t seed = 1; seed <= WORLDS; seed++) {
		plan_of(&p, seed);
		p.cores1 = 3;
		p.delay_ns = 10 * MS;
		p.nincidents = 0;
		p.nqps = 2;
		p.pool_bytes = 24 << 20;
		for (uint32_t i = 0; i < p.nqps; i++) {
			p.qp[i].mtu = 4096;
			p.qp[i].mr_kib = 4096;
			for (int s = 0; s < 2; s++)
				p.qp[i].work[s] = (struct plan_work){.ops = 1u << RC_WRITE,
								     .max = 1 << 20,
								     .count = 40 + 40 * i,
								     .outstanding = 16};
		}
		live(&p);
	}
	print_message("kills %llu, rounds with memory lent %llu\n",
		      (unsigned long long)(world_kills - kills),
		      (unsigned long long)(world_lent - lent));
	assert_true(world_kills - kills >= 5 * (uint64_t)WORLDS);
	assert_true(world_lent - lent >= 100 * (uint64_t)WORLDS);
}

/* Whoever follows may find unreadable what was left, and have fewer places. */
static void test_heirs(void **state)
{
	uint64_t unread = world_unread, stillborn = world_stillborn;
	struct plan p;

	(void)state;
	world_heirs = true;
	world_crash_calls = 4 * CALLS; /* a process takes time to begin */
	for (uint32_t seed = 1; seed <= HEIRS; seed++) {
		plan_of(&p, seed);
		if (seed % 3 == 1)
			plan_announce(&p);
		else if (seed % 3 == 2)
			plan_streams(&p);
		live(&p);
	}
	world_heirs = false;
	world_crash_calls = CALLS;
	print_message("unread %llu, stillborn %llu\n", (unsigned long long)(world_unread - unread),
		      (unsigned long long)(world_stillborn - stillborn));
	assert_true(world_unread - unread >= HEIRS);
	assert_true(world_stillborn - stillborn >= 2 * (uint64_t)HEIRS);
}

/* One queue pair fails, and while that is waited for processes die that hold the others, which have
 * done all their work: these may fail, too. */
static void test_heirs_idle(void **state)
{
	uint64_t unread = world_unread;
	struct plan p;

	(void)state;
	world_heirs = true;
	world_crash_calls = CALLS / 5;
	for (uint32_t seed = 1; seed <= IDLE; seed++) {
		plan_of(&p, seed);
		p.policy = POLICY_EARLY;
		p.nincidents = 1;
		p.incident[0] = (struct plan_incident){
			.what = INC_FATAL, .at = 500, .side = 1, .arg = AETH_NAK_INVALID};
		for (uint32_t i = 0; i < p.nqps; i++) {
			p.qp[i].cm = 1;
			p.qp[i].work[0] = (struct plan_work){
				.ops = 1u << RC_WRITE, .max = 200, .count = 20, .outstanding = 8};
			p.qp[i].work[1].count = 0;
		}
		live(&p);
	}
	world_heirs = false;
	world_crash_calls = CALLS;
	print_message("unread %llu\n", (unsigned long long)(world_unread - unread));
	assert_true(world_unread - unread >= IDLE);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_transfers),  cmocka_unit_test(test_ahead),
		cmocka_unit_test(test_lends),	   cmocka_unit_test(test_heirs),
		cmocka_unit_test(test_heirs_idle),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	world_crash_calls = CALLS;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
