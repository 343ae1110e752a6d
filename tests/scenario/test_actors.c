// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The actors (actors.h) among hosts without appliances: what they do there must never be judged
 * wrong, or appliances would be blamed for risks of the hosts. And each checker must find what it
 * is for.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/scenario/plan.h"
#include "tests/scenario/scenario.h"

#define CALM "delay-ns 5000000 rate-bps 1000000000 queue-bytes 4194304 pool-bytes 67108864 "
#define LOSS "loss0 0.01 loss1 0.01 "
#define PAIR "appliance0 1 appliance1 1 "

static struct plan_result live(const char *text)
{
	struct plan_result r;
	struct plan p;
	FILE *f = fmemopen((void *)(uintptr_t)text, strlen(text), "r");

	assert_non_null(f);
	assert_int_equal(plan_read(&p, f), 0);
	fclose(f);
	plan_run(&p, &r, NULL, NULL);
	return r;
}

static void right(const char *text, const struct plan_result *r)
{
	if (r->violation)
		fail_msg("%s\n%s", r->violation, text);
}

static void wrong(const char *text, const struct plan_result *r, const char *what)
{
	if (!r->violation || !strstr(r->violation, what))
		fail_msg("expected: %s; found: %s\n%s", what,
			 r->violation ? r->violation : "nothing", text);
}

static void test_forger_bare(void **state)
{
	char text[1024];

	(void)state;
	for (uint32_t kind = 0; kind < FORGE_KINDS; kind++)
		for (uint32_t strict = 0; strict < 2; strict++) {
			struct plan_result r;

			/* what counts for nothing on the WAN is only between appliances */
			if (kind == FORGE_ANSWER_WAN || kind == FORGE_DATA_WAN)
				continue;
			snprintf(text, sizeof(text),
				 "world seed %u " CALM LOSS "forge %u forge-at 15 forge-every 8 "
				 "forge-max 200\n"
				 "qp mtu 1024 depth 16 max-rd 4 sq-psn 256 rq-psn 4096 mr-kib 1024 "
				 "cm 1 strict %u\n"
				 "work side 0 ops 255 max 8000 count 200\n"
				 "work side 1 ops 255 max 8000 count 100\n",
				 kind + 1, 1u << kind, strict);
			r = live(text);
			right(text, &r);
			assert_true(r.forged >= 50);
			if (!strict)
				assert_int_equal(r.acked, 300);
		}
}

static void test_reuser_bare(void **state)
{
	char text[1024];

	(void)state;
	for (uint32_t psn = 0; psn < REUSE_PSNS; psn++)
		for (uint32_t cm = 0; cm < 4; cm++)
			for (uint32_t other = 0; other < 3; other++) {
				struct plan_result r;

				snprintf(text, sizeof(text),
					 "world seed %u " CALM LOSS "\n"
					 "qp mtu 1024 depth 16 max-rd 4 sq-psn 256 rq-psn 4096 "
					 "mr-kib 1024 cm 1 reuse 5 reuse-psn %u reuse-cm %u "
					 "reuse-other %u reuse-after 20\n"
					 "work side 0 ops 255 max 4000 count 150 outstanding 5\n",
					 psn + 1, psn, cm, other);
				r = live(text);
				right(text, &r);
				assert_int_equal(r.reused, 5);
				/* each owner may leave some of its work undone */
				assert_true(r.acked >= 125);
			}
}

static void test_overload_bare(void **state)
{
	static const uint32_t kinds[] = {OVERLOAD_BURST, OVERLOAD_STALE,
					 OVERLOAD_BURST | OVERLOAD_STALE};
	char text[1024];

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		struct plan_result r;

		snprintf(text, sizeof(text),
			 "world seed 7 " CALM "overload %u overload-every 64 overload-us 1000\n"
			 "qp mtu 1024 depth 16 max-rd 4 mr-kib 1024\n"
			 "work side 0 ops 255 max 8000 count 400\n",
			 kinds[i]);
		r = live(text);
		right(text, &r);
		assert_int_equal(r.acked, 400);
	}
}

/* A ring goes wrong when it was full: one that nothing came to meanwhile must not, or a link that
 * is idle beside busy ones would swallow whatever is sent there, however seldom. */
static void test_overload_idle(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	(void)state;
	assert_non_null(w);
	prng_init(&w->rng, 1);
	w->now = 1000;
	w->cfg.actors.overload = OVERLOAD_STALE | OVERLOAD_FULL;
	w->cfg.actors.overload_us = 1000;
	assert_int_equal(world_overload_init(w), 0);
	for (int i = 0; i < 100; i++)
		world_overload_run(w);
	for (int i = 0; i < 6; i++) {
		uint64_t end = w->overload->held_until[i], first = i & 1 ? end - 1 : end;

		assert_true(world_overload_holds(w, i, first));
		w->now = end;
		assert_false(world_overload_holds(w, i, first));
		assert_int_equal(w->overload->stale[i], i & 1);
		w->now = 1000;
	}
	world_overload_exit(w);
	free(w);
}

/* What network cards do that is odd, with a pair of appliances and with one alone on each side. */
static void test_nics(void **state)
{
	static const char *const nics[][3] = {
		{"lag 3", "", ""},
		{"", "prio0 3", ""},
		{"", "prio1 3", ""},
		{"", "coalesce 8 ack-us 100", ""},
		{"", "ackreq-every 1000", "unsignaled 900"},
		{"", "recv-us 100", ""},
		{"", "resend 2", ""},
	};
	char text[1024];

	(void)state;
	for (uint32_t i = 0; i < sizeof(nics) / sizeof(nics[0]); i++)
		for (uint32_t single = 0; single < 2; single++) {
			struct plan_result r;

			snprintf(text, sizeof(text),
				 "world seed %u " PAIR CALM LOSS "single %u %s\n"
				 "qp mtu 1024 depth 16 max-rd 4 mr-kib 1024 %s\n"
				 "work side 0 ops 255 max 8000 count 300 %s\n",
				 i + 1, single, nics[i][0], nics[i][1], nics[i][2]);
			r = live(text);
			right(text, &r);
			assert_int_equal(r.acked, 300);
		}
}

/* Messages of one queue pair that was told of overtake lost ones of another: early, not honest, and
 * not with order = hosts, also where the peer does not know it. */
static void test_order(void **state)
{
	static const char *const text = "world seed 3 " PAIR CALM "loss0 0.05 order %u policy %u\n"
					"qp mtu 1024 depth 16 max-rd 4 mr-kib 1024 cm 1\n"
					"work side 0 ops 15 max 100 count 1000\n"
					"qp mtu 1024 depth 16 max-rd 4 mr-kib 1024 cm 1\n"
					"work side 0 ops 15 max 100 count 1000\n";
	struct plan_result r;
	char buf[1024];

	(void)state;
	snprintf(buf, sizeof(buf), text, 2, POLICY_EARLY);
	r = live(buf);
	wrong(buf, &r, "overtook");
	snprintf(buf, sizeof(buf), text, 2, POLICY_HONEST);
	r = live(buf);
	right(buf, &r);
	assert_int_equal(r.acked, 2000);
	for (uint32_t order = 1; order <= 3; order += 2) {
		snprintf(buf, sizeof(buf), text, order, POLICY_EARLY);
		r = live(buf);
		right(buf, &r);
		assert_int_equal(r.acked, 2000);
	}
}

/* Two lanes over a long WAN: neither keeps to a thousandth of its share, both to all of it. */
static void test_share(void **state)
{
	static const char *const text = "world seed 3 " PAIR CALM "share %u\n"
					"qp mtu 1024 depth 64 max-rd 4 mr-kib 1024\n"
					"work side 0 ops 8 max 40000 count 300\n"
					"qp mtu 1024 depth 64 max-rd 4 mr-kib 1024\n"
					"work side 0 ops 8 max 40000 count 300\n";
	struct plan_result r;
	char buf[1024];

	(void)state;
	snprintf(buf, sizeof(buf), text, 1);
	r = live(buf);
	wrong(buf, &r, "share");
	snprintf(buf, sizeof(buf), text, 1000);
	r = live(buf);
	right(buf, &r);
	assert_int_equal(r.acked, 600);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forger_bare),   cmocka_unit_test(test_reuser_bare),
		cmocka_unit_test(test_overload_bare), cmocka_unit_test(test_overload_idle),
		cmocka_unit_test(test_nics),	      cmocka_unit_test(test_order),
		cmocka_unit_test(test_share),
	};

	return cmocka_run_group_tests_name("scenario/actors", tests, NULL, NULL);
}
