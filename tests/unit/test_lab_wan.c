// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The WAN model and the data pattern: each setting does what it says, and nothing else.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "tests/lab/model/pattern.h"
#include "cli/wanem/wan.h"
#include "wire/bytes.h"

#define MS     1000000ull
#define FRAMES 100000u

static void put(struct wan *w, uint64_t now, uint32_t id, uint32_t len)
{
	uint8_t *b = wan_buf(w);

	assert_non_null(b);
	memset(b, 0, len);
	put_be32(b, id);
	wan_send(w, now, len);
}

static uint32_t take(struct wan *w, uint64_t now)
{
	uint32_t len;
	const uint8_t *b = wan_pop(w, now, &len);

	return b ? get_be32(b) : UINT32_MAX;
}

struct seen {
	uint32_t count, late, twice, damaged;
};

/* FRAMES frames, 1 us apart, and what becomes of them. */
static struct seen stream(struct wan *w)
{
	static uint8_t times[FRAMES];
	struct seen s = {0};
	uint32_t highest = 0;
	uint64_t now;

	memset(times, 0, sizeof(times));
	for (now = 0; now / 1000 < FRAMES || wan_next(w) != WAN_NEVER; now += 1000) {
		const uint8_t *b;
		uint32_t len, id;

		if (now / 1000 < FRAMES)
			put(w, now, (uint32_t)(now / 1000), 100);
		while ((b = wan_pop(w, now, &len))) {
			assert_int_equal(len, 100);
			id = get_be32(b);
			assert_true(id < FRAMES);
			s.count++;
			s.late += id < highest;
			s.twice += times[id]++ != 0;
			highest = id > highest ? id : highest;
			for (uint32_t i = 4; i < len; i++) {
				if (b[i]) {
					assert_true(i >= 14);
					s.damaged++;
					break;
				}
			}
		}
	}
	return s;
}

static struct seen run(struct wan_config c, struct wan_stats *stats)
{
	struct wan *w = wan_create(&c);
	struct seen s;

	assert_non_null(w);
	s = stream(w);
	*stats = *wan_stats(w);
	assert_int_equal(stats->sent, FRAMES);
	wan_destroy(w);
	return s;
}

static void clean_is_clean(void **state)
{
	struct wan_config c = {.delay_ns = 3 * MS, .store_bytes = 1 << 20};
	struct wan_stats st;
	struct seen s = run(c, &st);

	(void)state;
	assert_int_equal(s.count, FRAMES);
	assert_int_equal(s.late + s.twice + s.damaged, 0);
	/* 3 ms of frames, each at most 192 bytes with its record. */
	assert_true(st.store_peak_bytes < 3010 * 192);
}

static void delay_and_rate(void **state)
{
	struct wan_config c = {.delay_ns = 10 * MS, .rate_bps = 8000000}; /* 1 byte per us */
	struct wan *w = wan_create(&c);

	(void)state;
	put(w, 0, 1, 1000);
	put(w, 0, 2, 500);
	put(w, 5 * MS, 3, 100);
	assert_int_equal(wan_next(w), 11 * MS);
	assert_int_equal(take(w, 11 * MS - 1), UINT32_MAX);
	assert_int_equal(take(w, 11 * MS), 1);
	assert_int_equal(wan_next(w), 11500000);
	assert_int_equal(take(w, 11500000), 2);
	assert_int_equal(wan_next(w), 15100000);
	/* A shorter delay does not reorder. */
	c.delay_ns = 0;
	wan_set(w, &c);
	put(w, 5100000, 4, 100);
	assert_int_equal(take(w, 15099999), UINT32_MAX);
	assert_int_equal(take(w, 15100000), 3);
	assert_int_equal(take(w, 15100000), 4);
	assert_int_equal(wan_next(w), WAN_NEVER);
	wan_destroy(w);
}

static void queue_drops_the_tail(void **state)
{
	struct wan_config c = {.rate_bps = 8000000, .queue_bytes = 5000};
	struct wan *w = wan_create(&c);

	(void)state;
	for (uint32_t i = 0; i < 10; i++)
		put(w, 0, i, 1000);
	assert_int_equal(wan_stats(w)->lost_queue, 5);
	assert_int_equal(wan_stats(w)->queue_peak_bytes, 5000);
	put(w, 1 * MS, 10, 1000); /* room for one again */
	put(w, 1 * MS, 11, 1000);
	assert_int_equal(wan_stats(w)->lost_queue, 6);
	wan_destroy(w);
}

/* What routers do: a packet that is too long vanishes, a DSCP is lost, and packets that know ECN
 * are marked. The header's checksum stays right. */
static void routers(void **state)
{
	static const uint8_t v4[20] = {0x45, 0xba, 0,  100, 0, 0, 0x40, 0, 64, 17,
				       0,    0,	   10, 1,   0, 1, 10,	2, 0,  1};
	struct wan_config c = {.mtu = 100, .mark = 1, .bleach = true};
	struct wan *w = wan_create(&c);
	uint32_t len, sum = 0;
	const uint8_t *got;

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		/* a whole one, one that is a byte too long, one without ECN, IPv6 */
		uint8_t *b = wan_buf(w);

		memset(b, 0, 128);
		put_be16(b + 12, i == 3 ? 0x86dd : 0x0800);
		memcpy(b + 14, v4, sizeof(v4));
		put_be16(b + 24, 0x25cb); /* the right checksum of the first one */
		b[15] &= i == 2 ? 0xfc : 0xff;
		if (i == 3)
			put_be32(b + 14, 0x6ba12345);
		wan_send(w, 0, 114 + (i == 1));
	}
	assert_int_equal(wan_stats(w)->lost_mtu, 1);
	assert_int_equal(wan_stats(w)->marked, 2);
	got = wan_pop(w, 0, &len);
	assert_int_equal(got[15], 3);
	for (int i = 0; i < 20; i += 2)
		sum += get_be16(got + 14 + i);
	assert_int_equal((sum & 0xffff) + (sum >> 16), 0xffff);
	assert_int_equal(wan_pop(w, 0, &len)[15], 0);
	assert_int_equal(get_be32(wan_pop(w, 0, &len) + 14), 0x60312345);
	assert_null(wan_pop(w, 0, &len));
	wan_destroy(w);
}

static void loss(void **state)
{
	struct wan_config c = {.loss = 0.01, .seed = 5};
	struct wan_stats st;
	struct seen s = run(c, &st);

	(void)state;
	assert_int_equal(s.count + st.lost, FRAMES);
	assert_in_range(st.lost, FRAMES / 100 * 85 / 100, FRAMES / 100 * 115 / 100);
	assert_int_equal(s.late + s.twice + s.damaged, 0);
}

static void burst_loss(void **state)
{
	/* In the bad state 1 % of the time, bursts of 20. */
	struct wan_config c = {
		.burst_start = 0.0005, .burst_end = 0.05, .burst_loss = 1, .seed = 5};
	struct wan_stats st;
	struct seen s = run(c, &st);

	(void)state;
	assert_int_equal(s.count + st.lost_burst, FRAMES);
	assert_in_range(st.lost_burst, FRAMES / 200, FRAMES / 50);
}

/* How many of @n frames of @len bytes, 1 us apart from @from on, are lost. */
static uint64_t lost_of(struct wan *w, uint64_t from, uint32_t n, uint32_t len)
{
	uint64_t before = wan_stats(w)->lost;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t now = from + i * 1000ull;

		put(w, now, i, len);
		take(w, now);
	}
	return wan_stats(w)->lost - before;
}

static void loss_by_length(void **state)
{
	struct wan_config c = {.loss = 0.01, .loss_by_length = true, .seed = 11};
	struct wan *w = wan_create(&c);

	(void)state;
	/* the two points that were measured, and what is as short as an ACK */
	assert_in_range(lost_of(w, 0, FRAMES, 1024), 850, 1150);
	assert_in_range(lost_of(w, 100 * MS, FRAMES, 8192), 9500, 10500);
	assert_in_range(lost_of(w, 200 * MS, FRAMES, 64), 20, 80);
	wan_destroy(w);
}

/* Whether the loss goes down by three orders and up again within a period, each order of which
 * lasts a third of the time; and not at the same time with another seed. */
static void loss_swings(void **state)
{
	struct wan_config c = {.loss = 0.1, .loss_swing = 1000, .loss_swing_ns = 1000 * MS};
	uint64_t lost[2][20];

	(void)state;
	for (int s = 0; s < 2; s++) {
		uint32_t high = 0, low = 0, turns = 0;
		struct wan *w;

		c.seed = 12 + (uint64_t)s;
		w = wan_create(&c);
		for (uint32_t i = 0; i < 20; i++)
			lost[s][i] = lost_of(w, i * 100 * MS, FRAMES, 100);
		wan_destroy(w);
		for (uint32_t i = 0; i < 10; i++) {
			uint64_t next = lost[s][(i + 1) % 10], this = lost[s][i];

			high += this > FRAMES / 100;
			low += this < FRAMES / 1000;
			turns += (next > this) != (this > lost[s][(i + 9) % 10]);
			/* the next period is the same, but for luck */
			assert_in_range(lost[s][i + 10], this / 2, this * 2 + 40);
		}
		assert_int_equal(turns, 2);
		assert_in_range(high, 2, 5);
		assert_in_range(low, 2, 5);
	}
	assert_memory_not_equal(lost[0], lost[1], sizeof(lost[0]));
}

static void duplication(void **state)
{
	struct wan_config c = {.delay_ns = 2 * MS, .dup = 0.02, .seed = 6};
	struct wan_stats st;
	struct seen s = run(c, &st);

	(void)state;
	assert_int_equal(s.count, FRAMES + st.duplicated);
	assert_int_equal(s.twice, st.duplicated);
	assert_in_range(st.duplicated, 1700, 2300);
	assert_int_equal(s.damaged, 0);
}

static void reordering(void **state)
{
	struct wan_config c = {.delay_ns = 2 * MS,
			       .reorder = 0.02,
			       .reorder_ns = 50000,
			       .seed = 7,
			       .store_bytes = 1 << 20};
	struct wan_stats st;
	struct seen s = run(c, &st);

	(void)state;
	assert_int_equal(s.count, FRAMES);
	assert_int_equal(s.late, st.reordered);
	assert_in_range(st.reordered, 1700, 2300);
	assert_int_equal(s.twice + s.damaged, 0);
}

static void corruption(void **state)
{
	struct wan_config c = {.corrupt = 0.02, .seed = 8};
	struct wan_stats st;
	struct seen s = run(c, &st);

	(void)state;
	assert_int_equal(s.count, FRAMES);
	/* Two flips may hit the same bit. */
	assert_in_range(s.damaged, st.corrupted - 10, st.corrupted);
	assert_in_range(st.corrupted, 1700, 2300);
}

static void everything_at_once_is_repeatable(void **state)
{
	struct wan_config c = {.delay_ns = 1 * MS,
			       .loss = 0.01,
			       .dup = 0.01,
			       .reorder = 0.01,
			       .reorder_ns = 77000,
			       .corrupt = 0.01,
			       .seed = 9,
			       .store_bytes = 1 << 20};
	struct wan_stats a, b;
	struct seen x = run(c, &a), y = run(c, &b);

	(void)state;
	assert_memory_equal(&a, &b, sizeof(a));
	assert_memory_equal(&x, &y, sizeof(x));
	c.seed = 10;
	x = run(c, &b);
	assert_memory_not_equal(&a, &b, sizeof(a));
}

static void down(void **state)
{
	struct wan_config c = {.delay_ns = 1 * MS};
	struct wan *w = wan_create(&c);

	(void)state;
	put(w, 0, 1, 60);
	c.down = true;
	wan_set(w, &c);
	put(w, 1000, 2, 60);
	c.down = false;
	wan_set(w, &c);
	put(w, 2000, 3, 60);
	assert_int_equal(take(w, 10 * MS), 1);
	assert_int_equal(take(w, 10 * MS), 3);
	assert_int_equal(take(w, 10 * MS), UINT32_MAX);
	assert_int_equal(wan_stats(w)->lost_down, 1);
	wan_destroy(w);
}

static void memory_is_bounded(void **state)
{
	struct wan_config c = {.delay_ns = 1000 * MS, .store_bytes = 256 * 1024};
	struct wan *w = wan_create(&c);
	uint32_t n = 0, len, round;
	uint8_t *b;

	(void)state;
	for (round = 0; round < 5; round++) {
		for (n = 0; (b = wan_buf(w)); n++) {
			put_be32(b, n);
			wan_send(w, round * 2000 * MS, 4200);
		}
		assert_in_range(n, 50, 62);
		for (uint32_t i = 0; i < n; i++) {
			const uint8_t *p = wan_pop(w, (round * 2000 + 1000) * MS, &len);

			assert_non_null(p);
			assert_int_equal(get_be32(p), i);
		}
		assert_null(wan_pop(w, (round * 2000 + 1000) * MS, &len));
	}
	wan_destroy(w);
}

static void only_roce(void **state)
{
	static const uint8_t udp4[] = {0,  0,	 0, 0, 0,  0, 0, 0, 0,	  0,  0,    0,	 8,
				       0,  0x45, 0, 0, 40, 0, 0, 0, 0,	  64, 17,   0,	 0,
				       10, 0,	 0, 1, 10, 0, 0, 2, 0xc0, 0,  0x12, 0xb7};
	struct wan_config c = {.loss = 1, .only_roce = true};
	struct wan *w = wan_create(&c);
	uint8_t f[80] = {0};

	(void)state;
	memcpy(f, udp4, sizeof(udp4));
	assert_true(wan_is_roce(f, 60));
	assert_false(wan_is_roce(f, 37));
	f[37]++;
	assert_false(wan_is_roce(f, 60));
	f[37]--;
	memmove(f + 16, f + 12, sizeof(udp4) - 12);
	put_be16(f + 12, 0x8100);
	assert_true(wan_is_roce(f, 64));
	memcpy(wan_buf(w), f, 64);
	wan_send(w, 0, 64);
	put(w, 0, 7, 64);
	assert_int_equal(take(w, 0), 7);
	assert_int_equal(take(w, 0), UINT32_MAX);
	wan_destroy(w);
}

static void pattern(void **state)
{
	uint64_t key = pattern_key(1, 2);
	uint8_t whole[1000], part[1000];

	(void)state;
	pattern_fill(whole, key, 0, sizeof(whole));
	for (uint32_t off = 0; off < 20; off++) {
		for (uint32_t n = 0; n < 300; n++) {
			memset(part, 0xee, sizeof(part));
			pattern_fill(part + 3, key, off, n);
			assert_memory_equal(part + 3, whole + off, n);
			assert_int_equal(part[3 + n], 0xee);
			assert_int_equal(pattern_check(part + 3, key, off, n), n);
			if (n) {
				part[3 + n / 2] ^= 0x40;
				assert_int_equal(pattern_check(part + 3, key, off, n), n / 2);
			}
		}
	}
	/* Misplaced, stale, another's. */
	assert_true(pattern_check(whole + 8, key, 0, 64) < 8);
	assert_true(pattern_check(whole + 256, key, 0, 64) < 8);
	assert_true(pattern_check(whole, pattern_key(1, 3), 0, 64) < 8);
	assert_true(pattern_check(whole, pattern_key(2, 2), 0, 64) < 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pattern),
		cmocka_unit_test(clean_is_clean),
		cmocka_unit_test(delay_and_rate),
		cmocka_unit_test(queue_drops_the_tail),
		cmocka_unit_test(routers),
		cmocka_unit_test(loss),
		cmocka_unit_test(burst_loss),
		cmocka_unit_test(loss_by_length),
		cmocka_unit_test(loss_swings),
		cmocka_unit_test(duplication),
		cmocka_unit_test(reordering),
		cmocka_unit_test(corruption),
		cmocka_unit_test(everything_at_once_is_repeatable),
		cmocka_unit_test(down),
		cmocka_unit_test(memory_is_bounded),
		cmocka_unit_test(only_roce),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
