// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The controller of a link's pace against a model of one (rate_model.h).
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/rate_model.h"

/* ---- tests ---- */

/* A link that is faster than the receiver, whose process runs a part of the time. */
static struct model *boxed(double rtt, double runs, double every, double offered)
{
	struct model *m = model((struct model){
		.rtt = rtt,
		.box = {.ring = 8e6, .runs = runs, .every = every, .rate = LINK},
		.link = offered > 0 ? offered : LINK * runs / every,
		.offered = offered,
		.seconds = 4,
		.warm = 2,
	});

	run(m);
	print_message(
		"%.1f ms, %.0f of %.0f ms: %.3f of what it reads, %.2f sent for each, %u cuts\n",
		rtt * 1e3, runs * 1e3, every * 1e3, share(m), m->s[0].sent_warm / m->s[0].delivered,
		(unsigned int)m->s[0].rate.cuts);
	return m;
}

static const double box_rtt[] = {0.0002, 0.002, 0.02, 0.1};

/* The pace is what the process reads, and its ring does not lose much more than that. */
static void slow_box(void **state)
{
	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct model *m = boxed(box_rtt[i], 0.001, 0.005, 0);

		assert_int_equal(m->s[0].rate.cause, RATE_BOX);
		assert_true(share(m) > 0.9);
		assert_true(m->s[0].sent_warm < 1.25 * m->s[0].delivered);
		free(m);
	}
}

/* Frames that wait for the process are neither lost nor a queue of the link: while it can read all
 * that hosts send, there is no limit. */
static void late_box(void **state)
{
	static const double every[] = {0.002, 0.006, 0.018};

	(void)state;
	for (size_t i = 0; i < 4; i++)
		for (size_t j = 0; j < 3; j++) {
			struct model *m = boxed(box_rtt[i], every[j] / 2, every[j], LINK / 3);

			assert_int_equal(m->s[0].rate.phase, RATE_OPEN);
			assert_int_equal(m->s[0].rate.cuts, 0);
			assert_true(share(m) > 0.99);
			free(m);
		}
}

/* A process that reads late still tells exactly what has arrived, so no others are seen in that. */
static void late_alone(void **state)
{
	static const double rtt[] = {0.002, 0.01, 0.04}, late[] = {0.0005, 0.004};

	(void)state;
	for (size_t i = 0; i < 3; i++)
		for (size_t j = 0; j < 2; j++) {
			struct model *m = model((struct model){.rtt = rtt[i],
							       .link = LINK / 20,
							       .queue = LINK / 20 * 0.05,
							       .late = late[j],
							       .seconds = 6,
							       .warm = 2});

			run(m);
			print_message("%.0f ms, read up to %.1f ms late: %.3f, %u cuts\n",
				      rtt[i] * 1e3, late[j] * 1e3, share(m),
				      (unsigned int)m->s[0].rate.cuts);
			assert_true(share(m) > 0.97);
			free(m);
		}
}

static void alone(void **state)
{
	static const double rtt[] = {0.005, 0.02, 0.1}, bdp[] = {0.1, 1, 10};

	(void)state;
	for (size_t i = 0; i < 3; i++)
		for (size_t j = 0; j < 3; j++) {
			struct model *m = model((struct model){.rtt = rtt[i],
							       .queue = LINK * rtt[i] * bdp[j],
							       .seconds = 4,
							       .warm = 2});

			run(m);
			assert_true(share(m) > 0.95);
			assert_true(bytes_per_byte(m) < 1.2); /* the first window included */
			free(m);
		}
}

/* Who has the link alone looks for more now and then, not all the time: each fills the queue. */
static void alone_and_at_rest(void **state)
{
	struct model *m =
		model((struct model){.rtt = 0.02, .queue = LINK * 0.02, .seconds = 9, .warm = 2});

	(void)state;
	run(m);
	print_message("%.3f of the link, %u cuts\n", share(m), (unsigned int)m->s[0].rate.cuts);
	assert_true(share(m) > 0.99);
	assert_true(m->s[0].rate.cuts <= 10); /* in 450 round trips */
	free(m);
}

/* What passes by unpaced fills the link, too. That is nobody else's doing: nothing is left to
 * others afterwards. */
static void flooded_by_what_passes(void **state)
{
	struct model *m = model((struct model){.rtt = 0.02,
					       .queue = LINK * 0.02,
					       .passed = LAN,
					       .passed_for = 0.1,
					       .seconds = 3,
					       .warm = 2});

	(void)state;
	run(m);
	assert_true(m->s[0].rate.forced);
	assert_int_equal(m->s[0].rate.rivals, 0);
	assert_false(m->s[0].rate.yield);
	free(m);
}

/* Noise, met by who has only begun, is no full link, and what fills it later is mostly nobody
 * else's: chance can have the noise guessed too high, and then we fill the link at rest. */
static void noise_at_first(void **state)
{
	unsigned int others = 0;

	(void)state;
	for (unsigned int seed = 0; seed < 10; seed++) {
		struct model *m = model((struct model){.rtt = 0.02,
						       .queue = LINK * 0.02,
						       .noise = 0.03,
						       .begins = 0.2,
						       .seconds = 4,
						       .warm = 2,
						       .seed = seed});

		run(m);
		others += m->s[0].rate.rivals > 0;
		assert_true(share(m) > 0.92);
		free(m);
	}
	print_message("taken for others: %u of 10\n", others);
	assert_true(others <= 3);
}

/* Such packets flood the link when they still do so after 300 ms, and for a while after. */
static bool flooded(double seconds, double later)
{
	struct model *m = model((struct model){.rtt = 0.02,
					       .queue = LINK * 0.02,
					       .passed = LAN,
					       .passed_for = 0.1,
					       .seconds = seconds,
					       .warm = seconds / 2});
	bool is;

	run(m);
	is = rate_flooded(&m->s[0].rate, (uint64_t)((seconds + later) * 1e9));
	free(m);
	return is;
}

static void a_flood_that_lasts(void **state)
{
	(void)state;
	assert_false(flooded(0.25, 0));
	assert_true(flooded(1.3, 0));
	assert_true(flooded(3, 0.3));
	assert_false(flooded(3, 2));
}

/* Switches that mark at half a millisecond keep the queue far below the tenth of a round trip at
 * which it would be a sign itself, and nothing is lost. */
static void marks_of_a_queue(void **state)
{
	struct model *m = model((struct model){
		.rtt = 0.1, .queue = LINK, .marks = LINK * 0.0005, .seconds = 6, .warm = 3});

	(void)state;
	run(m);
	print_message("%.3f of the link, queue %.1f ms\n", share(m), m->queued / LINK * 1e3);
	assert_int_equal(m->s[0].rate.cause, RATE_MARKS);
	assert_true(share(m) > 0.85);
	assert_true(m->queued < LINK * 0.01);
	assert_int_equal(m->s[0].sent, m->s[0].got);
	free(m);
}

/* Before the link has shown that it is full, twice as much may leave in each round trip as in the
 * one before, 256 MiB in the first; after silence it begins anew. */
static void a_link_that_is_not_known(void **state)
{
	const uint64_t rtt = 200000000, first = 256u << 20;
	struct rate_sample s = {0};
	struct rate r;

	(void)state;
	rate_init(&r, 0, SHARE_FAIR);
	assert_int_equal(rate_pace(&r), 0);
	for (uint64_t i = 0; i < 3; i++) {
		s.sent_at = (i + 1) * rtt;
		s.got_at = s.sent_at + rtt / 2;
		s.sent = s.got = first * ((1u << i) - 1);
		rate_heard(&r, &s, rtt, s.got_at + rtt / 2);
		assert_int_equal(rate_pace(&r), (first << i) * 5);
	}
	assert_int_equal(r.phase, RATE_OPEN);
	s.sent_at += 10000000000ull;
	s.got_at += 10000000000ull;
	s.sent += 1;
	s.got += 1;
	rate_heard(&r, &s, rtt, s.got_at + rtt / 2);
	assert_int_equal(rate_pace(&r), first * 5);
}

/* 10 MB in each of 20 METERs, all of which arrives at once: no queue and no loss. */
static void hear_marked(struct rate *r, uint64_t of_hundred)
{
	struct rate_sample s = {0};

	rate_init(r, 0, SHARE_FAIR);
	for (uint64_t i = 1; i <= 20; i++) {
		s.sent_at = i * 10000000;
		s.got_at = s.sent_at + 5000000;
		s.sent = s.got = i * 10000000;
		s.packets = i * 2500;
		s.marked = i * 25 * of_hundred;
		rate_heard(r, &s, 10000000, s.got_at + 5000000);
		if (r->cuts)
			break;
	}
}

/* Marks are a sign by themselves, and the pace goes below what arrived; a few are not. */
static void marks_alone(void **state)
{
	struct rate r;

	(void)state;
	hear_marked(&r, 5);
	assert_int_equal(r.cuts, 0);
	assert_true(rate_pace(&r) > 20 * 1000000000ull);
	hear_marked(&r, 20);
	assert_int_equal(r.cuts, 1);
	assert_int_equal(r.cause, RATE_MARKS);
	assert_int_equal(r.phase, RATE_DOWN);
	assert_true(rate_pace(&r) > 900000000 && rate_pace(&r) < 1000000000);
}

/* What nobody can avoid by going slower is no reason to go slower. */
static void random_loss(void **state)
{
	static const double noise[] = {0.001, 0.01, 0.05};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct model *m = model((struct model){.rtt = 0.02,
						       .queue = LINK * 0.02,
						       .noise = noise[i],
						       .seconds = 3,
						       .warm = 1});

		run(m);
		assert_true(share(m) > 0.95 * (1 - noise[i]));
		free(m);
	}
}

/* Who has sent little so far knows the noise all the same, and takes it for no full link when there
 * is more to send. */
static void noise_later(void **state)
{
	static const double noise[] = {0.002, 0.01, 0.018};

	(void)state;
	for (unsigned int i = 0; i < 15; i++) {
		struct model *m = model((struct model){.rtt = 0.02,
						       .queue = LINK * 0.02,
						       .noise = noise[i / 5],
						       .begins = 1,
						       .seconds = 1.5,
						       .warm = 1,
						       .seed = i});

		run(m);
		print_message("noise %.3f: %.3f of the link\n", m->noise, share(m));
		assert_true(share(m) > 0.94);
		free(m);
	}
}

/* A link that begins to lose while the queue of its first filling goes is not taken for a full one.
 */
static void noise_suddenly(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 8; i++) {
		double from = 0.03 + 0.015 * i;
		struct model *m = model((struct model){.rtt = 0.025,
						       .queue = LINK * 0.025,
						       .noise = 0.01,
						       .calm = from,
						       .seconds = from + 0.3,
						       .warm = from,
						       .seed = i});

		run(m);
		print_message("noise from %.3f s: %.3f of the link\n", from, share(m));
		assert_true(share(m) > 0.83);
		free(m);
	}
}

/* Who sent little, and lost some of it where nothing waited, has not found a full link: it is as
 * fast as the link in a few round trips when there is more to send. */
static void lost_by_few(void **state)
{
	struct model *m = model((struct model){.rtt = 0.02,
					       .queue = LINK * 0.02,
					       .gap = 0.97,
					       .begins = 1,
					       .seconds = 1.5,
					       .warm = 1});

	(void)state;
	run(m);
	print_message("%.3f of the link\n", share(m));
	assert_true(m->s[0].rate.cuts > 0);
	assert_true(share(m) > 0.75);
	free(m);
}

static void a_limit_that_is_wrong(void **state)
{
	struct model *m = model((struct model){.rtt = 0.02,
					       .queue = LINK * 0.002,
					       .limit = (uint64_t)(2 * LINK),
					       .seconds = 2,
					       .warm = 1});

	(void)state;
	run(m);
	assert_true(share(m) > 0.95);
	free(m);

	m = model((struct model){.rtt = 0.02,
				 .queue = LINK * 0.002,
				 .limit = (uint64_t)(LINK / 4),
				 .seconds = 2,
				 .warm = 1});
	run(m);
	assert_true(share(m) > 0.24 && share(m) < 0.26);
	assert_int_equal(m->s[0].rate.cuts, 0);
	free(m);
}

/* A receiver that was not let run for a while loses nearly all that comes: that says nothing about
 * what the link carries. */
static void a_receiver_that_stands_still(void **state)
{
	static const double still[] = {0.001, 0.02, 1};

	(void)state;
	for (size_t i = 0; i < 3; i++)
		for (int every = 0; every < 2; every++) {
			struct model *m = model((struct model){.link = LINK / 8,
							       .rtt = 0.01,
							       .queue = 3e5,
							       .still = still[i],
							       .still_for = 0.3,
							       .still_every = every,
							       .seconds = 3});

			run(m);
			assert_true(share(m) > (every ? 0.4 : 0.7));
			free(m);
		}
}

/* Processes on the way that run in slices let packets wait, and catch up: while they carry what
 * hosts send, that is no full link. 1 is all that hosts have to send. */
static void a_link_in_slices(void **state)
{
	static const struct {
		double rtt, slice, offered;
	} t[] = {{0.002, 0.001, 0.9}, {0.002, 0.002, 0.7}, {0.01, 0.001, 0.9}, {0.01, 0.002, 0.7}};
	double sum = 0;

	(void)state;
	for (unsigned int i = 0; i < 16; i++) {
		double offered = t[i / 4].offered * LINK * SLICES_RUN;
		struct model *m = model((struct model){.rtt = t[i / 4].rtt,
						       .queue = 1e7,
						       .slice = t[i / 4].slice,
						       .link = LINK,
						       .offered = offered,
						       .seed = i,
						       .seconds = 4,
						       .warm = 1});

		run(m);
		sum += share(m) * LINK / offered;
		free(m);
	}
	print_message("%.3f of what is offered\n", sum / 16);
	assert_true(sum / 16 > 0.965);
}

/* Others keep what they have, and we get what is left. */
static void constant_traffic(void **state)
{
	static const double bdp[] = {0.1, 1};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct model *m = model((struct model){.rtt = 0.02,
						       .queue = LINK * 0.02 * bdp[i],
						       .others = LINK / 2,
						       .seconds = 4,
						       .warm = 2});

		run(m);
		assert_true(share(m) > 0.4 && share(m) < 0.52);
		assert_true(m->others_lost < 0.02 * m->others_sent);
		free(m);
	}
}

/* Two senders share the link alike, and leave little of it. */
static void run_fair(struct model *m)
{
	double a, b;

	run(m);
	a = m->s[0].delivered;
	b = m->s[1].delivered;
	assert_true((a + b) * (a + b) / (2 * (a * a + b * b)) > 0.9); /* Jain */
	assert_true((a + b) / (m->seconds - m->warm) / LINK > 0.8);
	free(m);
}

static void two_of_them(void **state)
{
	static const double bdp[] = {0.1, 1};

	(void)state;
	for (size_t i = 0; i < 2; i++)
		run_fair(model((struct model){.rtt = 0.02,
					      .queue = LINK * 0.02 * bdp[i],
					      .senders = 2,
					      .seconds = 8,
					      .warm = 4}));
}

/* Who has had the link to itself for long rests for long, and must not stay that way. */
static void one_comes_later(void **state)
{
	(void)state;
	run_fair(model((struct model){.rtt = 0.02,
				      .queue = LINK * 0.02,
				      .senders = 2,
				      .second = 4,
				      .seconds = 12,
				      .warm = 8}));
}

static void shares(void **state)
{
	static const struct {
		enum rate_share of[SENDERS];
		double least, most; /* share of the link that the first gets */
	} as[] = {{{SHARE_MOST, SHARE_FAIR}, 0.6, 1},
		  {{SHARE_FAIR, SHARE_BACKGROUND}, 0.7, 1},
		  {{SHARE_BACKGROUND, SHARE_MOST}, 0, 0.2}};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct model *m = model((struct model){.rtt = 0.02,
						       .queue = LINK * 0.02,
						       .senders = 2,
						       .share = {as[i].of[0], as[i].of[1]},
						       .second = 1,
						       .seconds = 8,
						       .warm = 4});

		run(m);
		print_message("%zu: %.2f of %.2f\n", i, share(m),
			      share(m) + m->s[1].delivered / (m->seconds - m->warm) / LINK);
		assert_true(share(m) >= as[i].least && share(m) <= as[i].most);
		free(m);
	}
}

/* Who shares the link with nobody has all of it. */
static void alone_in_the_background(void **state)
{
	(void)state;
	for (unsigned int s = SHARE_MOST; s < RATE_SHARES; s++) {
		struct model *m = model((struct model){
			.rtt = 0.02, .queue = LINK * 0.02, .share = {s}, .seconds = 4, .warm = 2});

		run(m);
		print_message("%u: %.2f\n", s, share(m));
		assert_true(share(m) > 0.9);
		free(m);
	}
}

/* Three quarters of the link come back: most of them are had within 20 round trips. */
static void link_grows(void **state)
{
	struct model *m = model((struct model){.link = LINK / 4,
					       .rtt = 0.02,
					       .queue = LINK * 0.02,
					       .others = LINK / 10,
					       .changes = 2,
					       .later = LINK,
					       .seconds = 2.8,
					       .warm = 2.5});

	(void)state;
	run(m);
	assert_true(share(m) > 0.7);
	free(m);
}

static void link_changes(void **state)
{
	struct model *m = model((struct model){.rtt = 0.02,
					       .queue = LINK * 0.02,
					       .changes = 1,
					       .later = LINK / 4,
					       .seconds = 3,
					       .warm = 1.5});

	(void)state;
	run(m);
	assert_true(share(m) > 0.9);
	free(m);

	m = model((struct model){.link = LINK / 4,
				 .rtt = 0.02,
				 .queue = LINK * 0.02,
				 .changes = 1,
				 .later = LINK,
				 .seconds = 4,
				 .warm = 3});
	run(m);
	assert_true(share(m) > 0.9);
	free(m);
}

/* Who does not use the pace neither lowers nor raises it. */
static void little_to_send(void **state)
{
	struct model *m = model((struct model){
		.rtt = 0.02, .queue = LINK * 0.02, .busy = 0.5, .seconds = 3, .warm = 1});

	(void)state;
	run(m);
	assert_true(share(m) > 0.45);
	free(m);
}

/* A window of which nothing arrives; then everything does. */
static void nothing_arrived(void **state)
{
	struct rate_sample s = {.sent_at = 1000000, .got_at = 6000000};
	struct rate r;

	(void)state;
	rate_init(&r, 0, SHARE_FAIR);
	for (int i = 0; i < 200; i++) {
		double every = r.pace > 0 ? fmax(0.01, 180 * 100 / r.pace) : 0.01;
		uint64_t bytes = r.pace > 0 ? (uint64_t)(r.pace * every) : 1000000;

		s.sent_at += (uint64_t)(every * 1e9);
		s.got_at += (uint64_t)(every * 1e9);
		s.sent += bytes;
		s.got += r.phase == RATE_OPEN ? 0 : bytes;
		rate_heard(&r, &s, 10000000, s.got_at + 5000000);
	}
	assert_true(r.pace > 1e9);
}

/* We send half of what the link carried, and its queue stands: it carries less. Where others fill
 * it they may just have more of it, for we are slower: that is believed in part only, and not at
 * all by who wants the most. */
static void a_queue_that_stands(void **state)
{
	static const struct {
		enum rate_share share;
		bool yield;
		double best;
	} t[] = {{SHARE_FAIR, false, 0.5}, {SHARE_FAIR, true, 0.875}, {SHARE_MOST, true, 1}};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct rate_sample s = {.sent_at = 1000000000, .got_at = 1015000000};
		struct rate r;

		rate_init(&r, 0, t[i].share);
		r.phase = RATE_DOWN;
		r.pace = r.best = 1e9;
		r.yield = t[i].yield;
		r.least = 10000000;
		r.least_at = s.got_at;
		for (int ms = 0; ms < 100 && !r.rounds; ms++) {
			s.sent_at += 1000000, s.got_at += 1000000;
			s.sent += 500000, s.got += 500000;
			rate_heard(&r, &s, 20000000, s.got_at + 5000000);
		}
		assert_int_equal(r.rounds, 1);
		assert_true(fabs(r.best / 1e9 - t[i].best) < 0.01);
	}
}

/* What overtook the sample before it, or left or came before that, is no news. */
static void late_samples(void **state)
{
	const struct rate_sample s = {
		.sent_at = 2000000, .sent = 20000, .got_at = 7000000, .got = 10000};
	struct rate_sample late[] = {s, s, s, s}, next = s;
	struct rate r;

	(void)state;
	rate_init(&r, 0, SHARE_FAIR);
	rate_heard(&r, &s, 10000000, 12000000);
	late[0].got_at++;
	late[1].sent_at++;
	late[2].sent_at++, late[2].got_at++, late[2].got--;
	late[3].sent_at++, late[3].got_at++, late[3].sent--;
	for (int i = 0; i < 4; i++) {
		rate_heard(&r, &late[i], 10000000, 12000000);
		assert_int_equal(r.count, 1);
	}
	next.sent_at++, next.got_at++;
	rate_heard(&r, &next, 10000000, 12000000);
	assert_int_equal(r.count, 2);
}

static void strange_samples(void **state)
{
	const struct rate_sample full = {.sent_at = 1, .got_at = 1, .unread = 1u << 30},
				 dropped = {.sent_at = 20000000,
					    .sent = 1 << 20,
					    .got_at = 20000000,
					    .got = 1 << 20};
	struct rate r;
	struct prng p;

	(void)state;
	rate_init(&r, 0, SHARE_FAIR);
	/* a peer that has dropped what waited in its rings */
	rate_heard(&r, &full, 1000000, 1000001);
	rate_heard(&r, &dropped, 1000000, 21000000);
	assert_true(r.delivered >= 0);
	prng_init(&p, 3);
	for (uint64_t now = 1; now < 2000000000; now += prng_below(&p, 2000000)) {
		struct rate_sample s = {.sent_at = prng_hit(&p, 0.5) ? now : prng_next(&p),
					.sent = prng_next(&p) >> prng_below(&p, 64),
					.got_at = prng_next(&p) >> prng_below(&p, 64),
					.got = prng_next(&p) >> prng_below(&p, 64),
					.packets = prng_next(&p),
					.marked = prng_next(&p)};

		rate_heard(&r, &s, prng_next(&p) >> prng_below(&p, 64), now);
		assert_true(isfinite(r.pace) && r.pace >= 0 && r.pace <= 1e12);
		assert_true(isfinite(r.noise) && r.noise >= 0 && r.noise <= 1);
		if (prng_hit(&p, 0.01))
			rate_forget(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(late_alone),
		cmocka_unit_test(alone),
		cmocka_unit_test(alone_and_at_rest),
		cmocka_unit_test(flooded_by_what_passes),
		cmocka_unit_test(a_flood_that_lasts),
		cmocka_unit_test(noise_at_first),
		cmocka_unit_test(noise_later),
		cmocka_unit_test(noise_suddenly),
		cmocka_unit_test(lost_by_few),
		cmocka_unit_test(marks_of_a_queue),
		cmocka_unit_test(a_link_that_is_not_known),
		cmocka_unit_test(marks_alone),
		cmocka_unit_test(random_loss),
		cmocka_unit_test(a_receiver_that_stands_still),
		cmocka_unit_test(a_link_in_slices),
		cmocka_unit_test(a_limit_that_is_wrong),
		cmocka_unit_test(constant_traffic),
		cmocka_unit_test(two_of_them),
		cmocka_unit_test(one_comes_later),
		cmocka_unit_test(link_grows),
		cmocka_unit_test(shares),
		cmocka_unit_test(alone_in_the_background),
		cmocka_unit_test(link_changes),
		cmocka_unit_test(little_to_send),
		cmocka_unit_test(nothing_arrived),
		cmocka_unit_test(a_queue_that_stands),
		cmocka_unit_test(late_samples),
		cmocka_unit_test(strange_samples),
		cmocka_unit_test(slow_box),
		cmocka_unit_test(late_box),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
