// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The ICRC: every packet of the captures, what it covers and what not, and FAST-2: the check in the
 * same pass as the copy is a check of the copy. Patching by difference follows, with damage staying
 * visible.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>

#include "tests/unit/pcap_data.h"
#include "tests/unit/wire_kernel.h"
#include "tests/unit/wire_util.h"
#include "wire/bytes.h"

static void every_capture_verifies(void **state)
{
	use(state);
	for (size_t i = 0; i < PCAP_DATA_FILES; i++) {
		struct pcap_data d = pcap_data_load(pcap_data_all[i]);

		for (uint32_t j = 0; j < d.n; j++) {
			uint8_t *copy = malloc(d.len[j]);
			struct frame f, g;

			assert_int_equal(frame_parse(d.pkt[j], d.len[j], &f), FRAME_OK);
			assert_true(icrc_ok(&f));
			assert_int_equal(icrc_compute(&f), get_le32(f.data + f.icrc));
			assert_int_equal(icrc_of(f.data, f.l3, f.icrc), icrc_compute(&f));
			assert_true(icrc_copy_ok(copy, &f));
			assert_memory_equal(copy, d.pkt[j], d.len[j]);
			/* Made anew after it was wiped out. */
			memset(copy + f.icrc, 0, 4);
			assert_int_equal(frame_parse(copy, d.len[j], &g), FRAME_OK);
			assert_false(icrc_ok(&g));
			icrc_fill(copy, &g);
			assert_memory_equal(copy, d.pkt[j], d.len[j]);
			free(copy);
		}
		pcap_data_free(&d);
	}
}

/* Whether the ICRC covers each of the first bytes, from the IP header to the extended headers. */
static uint8_t covered_bits(const struct frame *f, uint32_t off)
{
	if (off < f->l3)
		return 0;
	if (f->ip6 && off == f->l3)
		return 0xf0;
	if (f->ip6 && ((off >= f->l3 + 1u && off <= f->l3 + 3u) || off == f->l3 + 7u))
		return 0;
	if (!f->ip6 &&
	    (off == f->l3 + 1u || off == f->l3 + 8u || off == f->l3 + 10u || off == f->l3 + 11u))
		return 0;
	if (off == f->l4 + 6u || off == f->l4 + 7u || off == f->bth + 4u)
		return 0;
	return 0xff;
}

/* Every single bit of a frame of each shape, with the view as it was parsed. */
static void every_bit_covered_or_masked(void **state)
{
	uint8_t buf[FRAME_MAX], dst[FRAME_MAX];

	use(state);
	for (int shape = 0; shape < SHAPES; shape++) {
		uint32_t len = wire_packet(buf, (enum wire_shape)shape, OP_WRITE_ONLY_IMM, 301);
		struct frame f;

		assert_int_equal(frame_parse(buf, len, &f), FRAME_OK);
		for (uint32_t bit = 0; bit < 8 * len; bit++) {
			uint32_t at = bit / 8;
			bool want = !(covered_bits(&f, at) & 1u << bit % 8);

			if (at == f.l3)
				continue; /* the version says which fields are masked */
			buf[at] ^= (uint8_t)(1u << bit % 8);
			assert_int_equal(icrc_ok(&f), want);
			assert_int_equal(icrc_copy_ok(dst, &f), want);
			assert_memory_equal(dst, buf, len);
			buf[at] ^= (uint8_t)(1u << bit % 8);
		}
	}
}

static void copy_of_every_size_and_alignment(void **state)
{
	uint8_t buf[FRAME_MAX];

	use(state);
	for (uint32_t n = 0; n <= 4096; n += n < 300 ? 1 : 97) {
		uint32_t len = wire_packet(buf, (enum wire_shape)(n % SHAPES), OP_SEND_ONLY_INV, n);
		uint8_t *src = wire_dup(buf, len), *dst = malloc(len + 128);
		uint32_t at = 1 + wire_rand() % 64, hit;
		struct frame f;

		assert_int_equal(frame_parse(src, len, &f), FRAME_OK);
		memset(dst, 0x5a, len + 128);
		assert_true(icrc_copy_ok(dst + at, &f));
		assert_memory_equal(dst + at, src, len);
		assert_int_equal(dst[at - 1], 0x5a);
		assert_int_equal(dst[at + len], 0x5a);
		/* FAST-2: what fails its check is known to, wherever the damage is. */
		hit = f.ext + wire_rand() % (len - f.ext);
		src[hit] ^= (uint8_t)(1u << wire_rand() % 8);
		assert_false(icrc_copy_ok(dst + at, &f));
		assert_memory_equal(dst + at, src, len);
		free(dst);
		free(src);
	}
}

struct flipper {
	volatile uint8_t *byte;
	volatile bool stop;
};

static void *flip(void *arg)
{
	struct flipper *p = arg;

	while (!p->stop)
		*p->byte ^= 0x10;
	return NULL;
}

/*
 * FAST-2: somebody changes the source while it is copied. Either verdict may come out, but it must
 * be that of the copy. A check that reads the source a second time fails this.
 */
static void verdict_is_the_copys(void **state)
{
	static uint8_t buf[FRAME_MAX], dst[FRAME_MAX];
	uint32_t len = wire_packet(buf, SHAPE_V4, OP_WRITE_FIRST, 4096);
	uint32_t seen[2] = {0}, tries = 0;
	bool ok, same;
	struct timespec t0, t;
	struct flipper p;
	struct frame f, g;
	pthread_t thread;

	use(state);
	assert_int_equal(frame_parse(buf, len, &f), FRAME_OK);
	p = (struct flipper){.byte = buf + f.payload + 2000};
	assert_int_equal(pthread_create(&thread, NULL, flip, &p), 0);
	clock_gettime(CLOCK_MONOTONIC, &t0);
	/* Until both verdicts were seen often, or for ten seconds on a machine that has one core.
	 */
	do {
		ok = icrc_copy_ok(dst, &f);
		assert_int_equal(frame_parse(dst, len, &g), FRAME_OK);
		same = icrc_ok(&g) == ok;
		seen[ok]++;
		tries++;
		clock_gettime(CLOCK_MONOTONIC, &t);
	} while (same && (seen[0] < 2000 || seen[1] < 2000 || tries < 50000) &&
		 t.tv_sec - t0.tv_sec < 10);
	p.stop = true;
	pthread_join(thread, NULL);
	assert_true(same);
	assert_true(seen[0] && seen[1]);
}

/* The UDP checksum by the book: pseudo header, header and everything behind it. */
static uint16_t udp_csum(const struct frame *f)
{
	uint32_t from = f->l3 + (f->ip6 ? 8 : 12), sum = 17 + (f->len - f->l4);

	for (uint32_t i = from; i < f->len; i += 2)
		if (i != f->l4 + 6u)
			sum += get_be16(f->data + i);
	while (sum >> 16)
		sum = (sum >> 16) + (sum & 0xffff);
	return sum == 0xffff ? 0xffff : (uint16_t)~sum;
}

/* What a caller may patch: covered, and not what the parser decides by (lengths, protocol,
 * version). */
static bool may_patch(const struct frame *f, uint32_t at)
{
	if (covered_bits(f, at) != 0xff)
		return false;
	if (at >= f->bth + 2u)
		return true;
	if (at >= f->l4)
		return at < f->l4 + 2u; /* the source port */
	if (f->ip6)
		return at >= f->l3 + 8u;				  /* addresses */
	return at >= f->l3 + 12u || at == f->l3 + 4u || at == f->l3 + 5u; /* or identification */
}

/* A range of at most 24 bytes that may be patched, as often in the IP header as behind it. */
static uint32_t random_range(const struct frame *f, uint32_t *off)
{
	for (;;) {
		bool ip = wire_rand() & 1;
		uint32_t end = ip ? f->l4 + 2u : f->payload + 16u, n = 1 + wire_rand() % 24, i;

		*off = f->l3 + wire_rand() % (end - f->l3);
		for (i = *off; i < *off + n && i < f->icrc && may_patch(f, i); i++)
			;
		if (i > *off)
			return i - *off;
	}
}

static void patch_equals_recompute(void **state)
{
	uint8_t buf[FRAME_MAX], want[FRAME_MAX], bytes[24];
	uint32_t ip_patches = 0;

	use(state);
	for (int i = 0; i < 20000; i++) {
		static const uint8_t ops[] = {OP_SEND_ONLY, OP_WRITE_FIRST,
					      OP_ACK,	    OP_READ_REQUEST,
					      OP_CMP_SWAP,  OP_READ_RESPONSE_MIDDLE};
		uint32_t len = wire_packet(buf, (enum wire_shape)(wire_rand() % SHAPES),
					   ops[wire_rand() % 6], wire_rand() % 200);
		bool checksummed = wire_rand() & 1;
		uint32_t off, n;
		struct frame f, g;

		assert_int_equal(frame_parse(buf, len, &f), FRAME_OK);
		if (checksummed)
			put_be16(buf + f.l4 + 6, udp_csum(&f));
		n = random_range(&f, &off);
		ip_patches += off < f.l4;
		wire_fill(bytes, n);
		/* By hand: the bytes, then everything that is computed from them. */
		memcpy(want, buf, len);
		memcpy(want + off, bytes, n);
		if (!f.ip6) {
			put_be16(want + f.l3 + 10, 0);
			put_be16(want + f.l3 + 10, ip4_csum(want + f.l3));
		}
		g = f;
		g.data = want;
		icrc_fill(want, &g);
		if (checksummed)
			put_be16(want + f.l4 + 6, udp_csum(&g));

		icrc_patch(buf, &f, off, n, bytes);
		assert_memory_equal(buf, want, len);
		assert_true(icrc_ok(&f));
	}
	assert_true(ip_patches > 1000);
}

/* A UDP checksum that comes out as 0 is written as all ones: 0 would say that there is none. */
static void patched_checksum_is_never_zero(void **state)
{
	uint8_t orig[BUILD_MAX], buf[BUILD_MAX];
	uint32_t len = wire_packet(orig, SHAPE_V6, OP_ACK, 0), ones = 0;
	struct frame f;

	use(state);
	assert_int_equal(frame_parse(orig, len, &f), FRAME_OK);
	put_be16(orig + f.l4 + 6, udp_csum(&f));
	f.data = buf;
	/* The new ICRC is in the sum, too, so that any value comes up now and then. */
	for (uint32_t i = 0; i < 1000000 && ones < 3; i++) {
		uint8_t psn[3] = {(uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i};

		memcpy(buf, orig, len);
		icrc_patch(buf, &f, f.bth + 9u, 3, psn);
		if (get_be16(buf + f.l4 + 6) == 0xffff) {
			assert_int_equal(udp_csum(&f), 0xffff);
			ones++;
		}
		assert_int_not_equal(get_be16(buf + f.l4 + 6), 0);
	}
	assert_int_equal(ones, 3);
}

/* Largest packets: the difference is shifted over the whole payload. */
static void patch_before_a_long_payload(void **state)
{
	uint8_t buf[FRAME_MAX];

	use(state);
	for (uint32_t n = 0; n <= 4096; n += 113) {
		uint32_t len = wire_packet(buf, (enum wire_shape)(n % SHAPES), OP_WRITE_FIRST, n);
		uint8_t psn[3] = {0xff, 0xff, (uint8_t)n};
		struct frame f;

		assert_int_equal(frame_parse(buf, len, &f), FRAME_OK);
		icrc_patch(buf, &f, f.bth + 9u, 3, psn);
		assert_true(icrc_ok(&f));
		assert_int_equal(icrc_compute(&f), get_le32(buf + f.icrc));
		assert_int_equal(frame_parse(buf, len, &f), FRAME_OK);
		assert_int_equal(f.psn, 0xffff00 | (n & 0xff));
	}
}

/* ENG-10: a request that is repeated has the same fingerprint, also if the headers before it are
 * others; another request has another one. */
static void print_of_what_is_asked(void **state)
{
	use(state);
	for (uint32_t n = 0; n <= 4096; n += 64) {
		uint8_t buf[FRAME_MAX], b[3];
		uint32_t len = wire_packet(buf, (enum wire_shape)(n % SHAPES), OP_WRITE_FIRST, n);
		struct frame f;
		uint32_t print;

		assert_int_equal(frame_parse(buf, len, &f), FRAME_OK);
		print = icrc_print(&f);
		wire_fill(b, sizeof(b));
		icrc_patch(buf, &f, f.l4, 2, b); /* source port */
		icrc_patch(buf, &f, f.bth + 8u, 1, &(uint8_t){buf[f.bth + 8] ^ 0x80});
		if (!f.ip6)
			icrc_patch(buf, &f, f.l3 + 4u, 2, b); /* identification */
		assert_int_equal(frame_parse(buf, len, &f), FRAME_OK);
		assert_true(icrc_ok(&f));
		assert_int_equal(icrc_print(&f), print);

		for (uint32_t at = f.ext; at < f.icrc; at += 1 + (f.icrc - f.ext) / 8) {
			buf[at] ^= 1;
			icrc_fill(buf, &f);
			assert_int_not_equal(icrc_print(&f), print);
			buf[at] ^= 1;
			icrc_fill(buf, &f);
		}
		put_be24(b, (f.psn + 0x100) & 0xffffff);
		icrc_patch(buf, &f, f.bth + 9u, 3, b);
		assert_int_equal(frame_parse(buf, len, &f), FRAME_OK);
		assert_int_not_equal(icrc_print(&f), print);
	}
}

static void damage_survives_a_patch(void **state)
{
	uint8_t buf[FRAME_MAX];

	use(state);
	for (int i = 0; i < 2000; i++) {
		uint32_t len = wire_packet(buf, (enum wire_shape)(wire_rand() % SHAPES),
					   OP_WRITE_FIRST, 1 + wire_rand() % 1024);
		uint8_t psn[3], bit = (uint8_t)(1u << wire_rand() % 8);
		struct frame f;
		uint32_t hit;

		assert_int_equal(frame_parse(buf, len, &f), FRAME_OK);
		hit = f.payload + wire_rand() % f.payload_len;
		buf[hit] ^= bit;
		wire_fill(psn, 3);
		icrc_patch(buf, &f, f.bth + 9u, 3, psn);
		assert_false(icrc_ok(&f));
		/* It is that damage and nothing else. */
		buf[hit] ^= bit;
		assert_true(icrc_ok(&f));
	}
}

static void patch_of_nothing(void **state)
{
	uint8_t buf[FRAME_MAX], was[FRAME_MAX];
	uint32_t len = wire_packet(buf, SHAPE_V6, OP_ACK, 0);
	struct frame f;

	use(state);
	assert_int_equal(frame_parse(buf, len, &f), FRAME_OK);
	memcpy(was, buf, len);
	icrc_patch(buf, &f, f.bth, 0, NULL);
	icrc_patch(buf, &f, f.bth + 9u, 3, was + f.bth + 9);
	assert_memory_equal(buf, was, len);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(every_capture_verifies),		EACH(every_bit_covered_or_masked),
		EACH(copy_of_every_size_and_alignment), EACH(verdict_is_the_copys),
		EACH(patch_equals_recompute),		EACH(patched_checksum_is_never_zero),
		EACH(patch_before_a_long_payload),	EACH(print_of_what_is_asked),
		EACH(damage_survives_a_patch),		EACH(patch_of_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
