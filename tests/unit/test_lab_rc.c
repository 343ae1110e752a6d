// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The host model against itself, in virtual time: all operations, both personalities, through every
 * kind of bad link. What one side completes the other must have executed, once, in order, intact.
 */
#include <stdlib.h>

#include "tests/unit/lab_load.h"

#define MS     1000000ull
#define SECOND (1000 * MS)

static const struct wan_config lan = {.delay_ns = 5000, .rate_bps = 10000000000ull, .seed = 1};

static void run(const struct wan_config *link, struct rc_qp_config *cfg, enum rc_personality other,
		uint64_t count, uint64_t seed)
{
	struct load l;

	load_init(&l, link, cfg, other, seed);
	l.count = count;
	load_run_all(&l, 10000 * SECOND);
	rc_pair_exit(&l.pair);
}

static void every_op(void **state)
{
	(void)state;
	for (int p = 0; p < 2; p++) {
		for (uint32_t op = 0; op < RC_OPS; op++) {
			for (uint32_t mtu = 256; mtu <= 4096; mtu *= 2) {
				struct rc_qp_config cfg;
				struct load l;

				rc_qp_defaults(&cfg, (enum rc_personality)p);
				cfg.mtu = mtu;
				load_init(&l, &lan, &cfg, (enum rc_personality)p, op + mtu);
				l.ops = 1u << op;
				l.count = 300;
				load_run_all(&l, 1000 * SECOND);
				assert_int_equal(rc_qp_stats(l.qp[0])->retransmits, 0);
				assert_int_equal(rc_qp_stats(l.qp[0])->timeouts, 0);
				assert_int_equal(l.unchecked, 0);
				rc_pair_exit(&l.pair);
			}
		}
	}
}

static void mixed_clean(void **state)
{
	(void)state;
	for (int p = 0; p < 4; p++) {
		struct rc_qp_config cfg;

		rc_qp_defaults(&cfg, (enum rc_personality)(p & 1));
		cfg.sq_psn = 0xfffff0; /* wraps at once */
		cfg.rq_psn = 0xffff00;
		run(&lan, &cfg, (enum rc_personality)(p >> 1), 3000, 77 + (uint64_t)p);
	}
}

static void bad_links(void **state)
{
	static const struct wan_config links[] = {
		{.delay_ns = 1 * MS, .loss = 0.01, .seed = 3},
		{.delay_ns = 1 * MS, .dup = 0.05, .seed = 4},
		{.delay_ns = 1 * MS, .reorder = 0.01, .reorder_ns = 100000, .seed = 5},
		{.delay_ns = 1 * MS, .corrupt = 0.01, .seed = 6},
		{.delay_ns = 1 * MS, .rate_bps = 1000000000, .queue_bytes = 100000, .seed = 7},
		{.delay_ns = 1 * MS,
		 .burst_start = 0.001,
		 .burst_end = 0.1,
		 .burst_loss = 0.5,
		 .seed = 8},
		{.delay_ns = 3 * MS,
		 .rate_bps = 5000000000,
		 .queue_bytes = 300000,
		 .loss = 0.005,
		 .dup = 0.01,
		 .reorder = 0.01,
		 .reorder_ns = 300000,
		 .corrupt = 0.005,
		 .seed = 9},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		for (int p = 0; p < 4; p++) {
			struct rc_qp_config cfg;

			rc_qp_defaults(&cfg, (enum rc_personality)(p & 1));
			cfg.timeout_exp = 11; /* 8.4 ms */
			cfg.sq_psn = 0xffff80;
			cfg.mtu = 1024u << (i & 1);
			/* Few in flight: go-back-N through loss is slow, and a finite budget must
			 * hold. */
			cfg.depth = 8;
			run(&links[i], &cfg, (enum rc_personality)(p >> 1), 1000,
			    1000 * i + (uint64_t)p);
		}
	}
}

static void receiver_not_ready(void **state)
{
	(void)state;
	for (int p = 0; p < 4; p++) {
		struct rc_qp_config cfg;
		struct load l;

		rc_qp_defaults(&cfg, (enum rc_personality)(p & 1));
		cfg.rnr_p = 0.02;
		cfg.min_rnr_timer = 4;
		load_init(&l, &lan, &cfg, (enum rc_personality)(p >> 1), 5);
		l.count = 2000;
		load_run_all(&l, 1000 * SECOND);
		assert_true(rc_qp_stats(l.qp[0])->rx_rnr > 5);
		rc_pair_exit(&l.pair);

		rc_qp_defaults(&cfg, (enum rc_personality)(p & 1));
		cfg.recv_auto = false;
		cfg.recv_depth = 4;
		cfg.recv_interval = 50000;
		cfg.credits = p & 1;
		cfg.honor_credits = p & 1;
		load_init(&l, &lan, &cfg, (enum rc_personality)(p >> 1), 6);
		l.count = 2000;
		load_run_all(&l, 1000 * SECOND);
		rc_pair_exit(&l.pair);
	}
}

/* Anything with anything: LAB_SEEDS says how many worlds, LAB_SEED with which to start. */
static void random_worlds(void **state)
{
	const char *n = getenv("LAB_SEEDS"), *first = getenv("LAB_SEED");
	uint64_t seed = first ? strtoull(first, NULL, 0) : 1;
	uint64_t end = seed + (n ? strtoull(n, NULL, 0) : 40);

	(void)state;
	for (; seed < end; seed++) {
		struct wan_config link = {.seed = seed};
		struct rc_qp_config cfg;
		struct prng r;
		struct load l;

		prng_init(&r, seed);
		link.delay_ns = 1000 << prng_below(&r, 12);
		if (prng_below(&r, 2))
			link.rate_bps = 100000000ull << prng_below(&r, 8);
		if (prng_below(&r, 2))
			link.loss = 0.0001 * (1 << prng_below(&r, 7));
		if (prng_below(&r, 2))
			link.dup = 0.0001 * (1 << prng_below(&r, 10));
		if (prng_below(&r, 2))
			link.corrupt = 0.0001 * (1 << prng_below(&r, 6));
		if (prng_below(&r, 2)) {
			link.reorder = 0.0001 * (1 << prng_below(&r, 6));
			link.reorder_ns = 1000 << prng_below(&r, 10);
		}
		rc_qp_defaults(&cfg, (enum rc_personality)prng_below(&r, 2));
		cfg.mtu = 256u << prng_below(&r, 5);
		cfg.depth = 1u << prng_below(&r, 6);
		cfg.sq_psn = prng_below(&r, 1 << 24);
		cfg.rq_psn = prng_below(&r, 1 << 24);
		cfg.max_rd = 1 + prng_below(&r, cfg.resp_rd);
		cfg.rnr_p = prng_below(&r, 3) ? 0 : 0.01;
		cfg.min_rnr_timer = 1 + prng_below(&r, 10);
		cfg.timeout_exp = 13;
		cfg.credits = cfg.honor_credits = prng_below(&r, 2);
		cfg.resend = (enum rc_resend)prng_below(&r, 3);
		cfg.ack_coalesce = prng_below(&r, 4);
		cfg.ack_delay = 20000;
		load_init(&l, &link, &cfg, (enum rc_personality)prng_below(&r, 2), seed);
		/* A finite budget may end a connection on a bad link; that is not what is tested
		 * here. */
		l.may_fail = true;
		l.max_length = 1u << prng_below(&r, 16);
		l.count = 300;
		load_seed = seed;
		load_run_all(&l, 100000 * SECOND);
		rc_pair_exit(&l.pair);
	}
}

/* Hardware that resends after 2, 4, 8, 16 ms although the answer is only far away. */
static void impatient_hardware(void **state)
{
	const struct wan_config far = {.delay_ns = 20 * MS, .rate_bps = 10000000000ull, .seed = 2};
	struct rc_qp_config cfg;
	struct load l;

	(void)state;
	rc_qp_defaults(&cfg, RC_STRICT);
	cfg.timeout_exp = 18;
	cfg.resend = RC_RESEND_HW_READS;
	load_init(&l, &far, &cfg, RC_STRICT, 9);
	l.ops = 1u << RC_READ;
	l.count = 200;
	load_run_all(&l, 1000 * SECOND);
	assert_true(rc_qp_stats(l.qp[0])->hw_resends >= 4);
	assert_int_equal(rc_qp_stats(l.qp[0])->timeouts, 0);
	assert_true(rc_qp_stats(l.qp[1])->duplicates > 100);
	rc_pair_exit(&l.pair);
}

/* Without answers a strict requester gives up after its retries, a permissive one with 7 never
 * does. */
static void gives_up(void **state)
{
	(void)state;
	for (int p = 0; p < 2; p++) {
		struct wan_config dead = {.delay_ns = 1000, .down = true};
		struct rc_qp_config cfg;
		struct load l;

		rc_qp_defaults(&cfg, (enum rc_personality)p);
		cfg.timeout_exp = 10; /* 4.2 ms */
		load_init(&l, &dead, &cfg, (enum rc_personality)p, 1);
		l.count = 4;
		load_post(&l, 0);
		rc_pair_run(&l.pair, SECOND);
		assert_int_equal(l.completed[0], 0);
		if (p == RC_STRICT) {
			assert_int_equal(l.failed[0], 4);
			assert_int_equal(l.last_error, RC_RETRY_EXCEEDED);
			assert_int_equal(rc_qp_stats(l.qp[0])->timeouts, 8);
			assert_true(rc_qp_in_error(l.qp[0]));
		} else {
			assert_int_equal(l.failed[0], 0);
			assert_true(rc_qp_stats(l.qp[0])->timeouts > 200);
			/* The link heals: so does the connection. */
			for (int i = 0; i < 2; i++)
				wan_set(l.pair.side[i].out, &lan);
			rc_pair_run(&l.pair, 2 * SECOND);
			assert_int_equal(l.completed[0], 4);
		}
		rc_pair_exit(&l.pair);
	}
}

/* The same QPN again after a failure: a new life, with nothing of the old one. */
static void reincarnation(void **state)
{
	struct rc_qp_config cfg;
	struct load l;

	(void)state;
	rc_qp_defaults(&cfg, RC_STRICT);
	load_init(&l, &lan, &cfg, RC_STRICT, 21);
	for (int life = 0; life < 5; life++) {
		l.count = 500;
		memset(l.posted, 0, sizeof(l.posted));
		memset(l.completed, 0, sizeof(l.completed));
		memset(l.failed, 0, sizeof(l.failed));
		memset(l.received, 0, sizeof(l.received));
		if (life & 1) {
			load_post(&l, 0);
			load_post(&l, 1);
			rc_pair_run(&l.pair, l.pair.now + 300000); /* in the middle of it */
			assert_true(l.completed[0] < 500);
		} else {
			load_run_all(&l, l.pair.now + 100 * SECOND);
		}
		rc_qp_destroy(l.qp[0]);
		rc_qp_destroy(l.qp[1]);
		rc_pair_run(&l.pair, l.pair.now + SECOND);
		cfg.sq_psn = (cfg.sq_psn + 0x123456) & 0xffffff;
		cfg.tx_seed += 10;
		assert_int_equal(rc_pair_connect(&l.pair, &cfg, RC_STRICT, l.qp), 0);
	}
	rc_pair_exit(&l.pair);
}

/* Many queue pairs share a host's line, and none is left behind. */
static void many_qps(void **state)
{
	enum { QPS = 500 };
	struct rc_host_config host = {.link_bps = 10000000000ull, .qps_max = QPS};
	struct rc_qp *qp[QPS][2];
	struct rc_pair p;

	(void)state;
	assert_int_equal(rc_pair_init(&p, &host, &lan), 0);
	for (uint32_t i = 0; i < QPS; i++) {
		struct rc_qp_config cfg;

		rc_qp_defaults(&cfg, (enum rc_personality)(i & 1));
		cfg.mr_size = cfg.rmr_size = 65536;
		cfg.journal = 64;
		cfg.lqpn = 0x100 + i;
		cfg.rqpn = 0x20000 + 7 * i;
		cfg.tx_seed = i;
		cfg.timeout_exp = 17; /* the line is shared by 500 */
		assert_int_equal(rc_pair_connect(&p, &cfg, (enum rc_personality)(i & 1), qp[i]), 0);
		for (uint32_t n = 0; n < 20; n++) {
			struct rc_wr wr = {.op = n % 3 ? RC_WRITE : RC_READ,
					   .length = 30000,
					   .va = cfg.rmr_va + (n % 3 ? 0 : 32768)};

			assert_int_equal(rc_post(qp[i][0], 0, &wr), 0);
		}
	}
	rc_pair_run(&p, 100 * SECOND);
	for (uint32_t i = 0; i < QPS; i++) {
		assert_int_equal(rc_qp_stats(qp[i][0])->completed, 20);
		assert_int_equal(rc_qp_stats(qp[i][0])->data_errors, 0);
		assert_int_equal(rc_qp_stats(qp[i][1])->payload_errors, 0);
		assert_int_equal(rc_check_all(qp[i][0], qp[i][1]), 0);
		assert_int_equal(rc_check_memory(qp[i][0], qp[i][1]), -1);
	}
	rc_pair_exit(&p);
}

/* The checks themselves can fail: a region changed behind the requester's back shows. */
static void checks_can_fail(void **state)
{
	struct rc_qp_config cfg;
	struct rc_wr wr = {.op = RC_READ, .length = 5000, .va = 0x100000 + 77};
	struct load l;

	(void)state;
	rc_qp_defaults(&cfg, RC_STRICT);
	load_init(&l, &lan, &cfg, RC_STRICT, 1);
	rc_qp_memory(l.qp[1])[77 + 4999] ^= 1;
	assert_int_equal(rc_post(l.qp[0], 0, &wr), 0);
	rc_pair_run(&l.pair, SECOND);
	assert_int_equal(l.completed[0], 1);
	assert_int_equal(l.not_intact, 1);
	assert_int_equal(rc_check_memory(l.qp[0], l.qp[1]), 77 + 4999);
	rc_pair_exit(&l.pair);

	cfg.rx_seed = 99; /* the responder's idea of our data: mirrored, so ours of theirs */
	load_init(&l, &lan, &cfg, RC_STRICT, 1);
	wr.op = RC_SEND;
	wr.length = 9;
	wr.data = (const uint8_t *)"not what it should be";
	assert_int_equal(rc_post(l.qp[0], 0, &wr), 0);
	rc_pair_run(&l.pair, SECOND);
	assert_int_equal(l.not_intact, 1);
	assert_int_equal(rc_qp_stats(l.qp[1])->payload_errors, 1);
	rc_pair_exit(&l.pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_op),	      cmocka_unit_test(mixed_clean),
		cmocka_unit_test(bad_links),	      cmocka_unit_test(receiver_not_ready),
		cmocka_unit_test(impatient_hardware), cmocka_unit_test(gives_up),
		cmocka_unit_test(reincarnation),      cmocka_unit_test(many_qps),
		cmocka_unit_test(checks_can_fail),    cmocka_unit_test(random_worlds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
