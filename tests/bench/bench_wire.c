// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Cost of the wire layer, in ns a call: parsing, the ICRC check with and without the copy, patches,
 * and the CRC kernels against memcpy() and isa-l. "hot": source and copy stay in the nearest
 * caches. "ring": the copies walk through 64 MiB, as packets do that the retention pool takes in.
 *
 * Every figure is the best of several rounds: the machine has other work, which only ever adds.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <isa-l/crc.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "wire/build.h"
#include "wire/crc32.h"
#include "wire/icrc.h"

#define ROUNDS 15
#define RING   (64u << 20)
#define SLOT   4352u /* a packet with path MTU 4096, in lines of 64 */

static uint8_t *ring;
static uint8_t frame[FRAME_MAX] __attribute__((aligned(64)));
static uint8_t hot[2 * SLOT] __attribute__((aligned(64)));
static volatile uint32_t sink;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Best of ROUNDS of @n times @body, which may use the counter i. */
#define BENCH(n, body)                                                                             \
	({                                                                                         \
		double best_ = 1e18;                                                               \
                                                                                                   \
		for (int r_ = 0; r_ < ROUNDS; r_++) {                                              \
			uint64_t t_ = now_ns();                                                    \
                                                                                                   \
			for (uint32_t i = 0; i < (n); i++) {                                       \
				body;                                                              \
			}                                                                          \
			double d_ = (double)(now_ns() - t_) / (n);                                 \
			best_ = d_ < best_ ? d_ : best_;                                           \
		}                                                                                  \
		best_;                                                                             \
	})

static uint8_t *slot(uint32_t i)
{
	return ring + (size_t)(i % (RING / SLOT)) * SLOT;
}

static uint32_t make(bool v6, uint8_t opcode, uint32_t payload_len)
{
	static const uint8_t mac[6] = {2};
	static uint8_t payload[PAYLOAD_MAX];
	struct ip_addr src, dst;
	struct template t;
	struct build_spec s = {
		.t = &t,
		.opcode = opcode,
		.payload = payload,
		.payload_len = payload_len,
	};

	for (size_t i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i * 37);
	ip_addr_parse(v6 ? "2001:db8::1" : "192.0.2.1", &src);
	ip_addr_parse(v6 ? "2001:db8::2" : "192.0.2.2", &dst);
	template_make(&t, mac, mac, FRAME_VLAN_NONE, &src, &dst, 50000);
	return build_packet(frame, &s);
}

static void bench_frames(void)
{
	static const struct {
		const char *name;
		bool v6;
		uint8_t opcode;
		uint32_t len;
	} rows[] = {
		{"RC ACK, IPv4", false, OP_ACK, 0},
		{"WRITE MIDDLE 1 KiB, IPv4", false, OP_WRITE_MIDDLE, 1024},
		{"WRITE FIRST 4 KiB, IPv4", false, OP_WRITE_FIRST, 4096},
		{"WRITE FIRST 4 KiB, IPv6", true, OP_WRITE_FIRST, 4096},
	};

	printf("%-28s %8s %8s %8s %8s %8s %8s\n", "frame (ns)", "parse", "icrc_ok", "copy hot",
	       "copy ring", "patch", "rebuild");
	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		uint32_t len = make(rows[k].v6, rows[k].opcode, rows[k].len), n = 20000;
		uint8_t psn[3] = {0};
		struct template t;
		struct frame f;

		if (frame_parse(frame, len, &f) != FRAME_OK || !icrc_ok(&f))
			abort();
		template_learn(&t, &f);
		printf("%-28s", rows[k].name);
		printf(" %8.1f", BENCH(n, {
			       __asm__ volatile("" ::: "memory");
			       sink += frame_parse(frame, len, &f) + f.psn;
		       }));
		printf(" %8.1f", BENCH(n, sink += icrc_ok(&f)));
		printf(" %8.1f", BENCH(n, sink += icrc_copy_ok(hot, &f)));
		printf(" %8.1f", BENCH(n, sink += icrc_copy_ok(slot(i), &f)));
		printf(" %8.1f", BENCH(n, {
			       psn[2] = (uint8_t)i;
			       icrc_patch(frame, &f, f.bth + 9u, 3, psn);
		       }));
		printf(" %8.1f\n", BENCH(n, sink += build_ack(hot, &t, i, i, 0, i)));
	}
}

static uint32_t library_copy(uint32_t reg, void *dst, const void *src, size_t len)
{
	memcpy(dst, src, len);
	return ~crc32_gzip_refl(~reg, dst, len);
}

static uint32_t library_in_pieces(uint32_t reg, void *dst, const void *src, size_t len)
{
	for (size_t at = 0, n; at < len; at += n) {
		n = len - at < 256 ? len - at : 256;
		memcpy((uint8_t *)dst + at, (const uint8_t *)src + at, n);
		reg = ~crc32_gzip_refl(~reg, (uint8_t *)dst + at, n);
	}
	return reg;
}

static uint32_t only_memcpy(uint32_t reg, void *dst, const void *src, size_t len)
{
	memcpy(dst, src, len);
	return reg;
}

#ifdef __x86_64__
/* Stores past the caches, then the CRC of the source: what such stores would gain at best. */
__attribute__((target("avx512f"))) static uint32_t non_temporal(uint32_t reg, void *dst,
								const void *src, size_t len)
{
	uint8_t *d = (uint8_t *)(((uintptr_t)dst + 63) & ~(uintptr_t)63);
	size_t at = 0;

	for (; at + 64 <= len; at += 64)
		_mm512_stream_si512((void *)(d + at),
				    _mm512_loadu_si512((const uint8_t *)src + at));
	memcpy(d + at, (const uint8_t *)src + at, len - at);
	return crc32_update(reg, src, len);
}
#endif

typedef uint32_t copy_fn(uint32_t, void *, const void *, size_t);

static void row(const char *name, copy_fn *fn)
{
	static const uint32_t sizes[] = {64, 256, 512, 1028, 2052, 4116, 4160};
	uint32_t n = 20000;

	printf("%-28s", name);
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++)
		printf(" %7.1f", BENCH(n, sink += fn(i, hot + 54, frame, sizes[k])));
	printf("  |");
	for (size_t k = 3; k < sizeof(sizes) / sizeof(sizes[0]); k++)
		printf(" %7.1f", BENCH(n, sink += fn(i, slot(i) + 54, frame, sizes[k])));
	printf("\n");
}

static uint32_t no_copy(uint32_t reg, void *dst, const void *src, size_t len)
{
	(void)dst;
	return crc32_update(reg, src, len);
}

int main(void)
{
	static const char *const names[] = {"isa-l", "PCLMUL", "AVX2", "AVX-512"};

	ring = mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
		    -1, 0);
	if (ring == MAP_FAILED)
		return 1;
	memset(ring, 1, RING);
	bench_frames();
	printf("\n%-28s %s\n", "copy and CRC (ns)",
	       "hot: 64, 256, 512, 1028, 2052, 4116, 4160 B | ring: 1028, 2052, 4116, 4160 B");
	row("memcpy() alone", only_memcpy);
	row("memcpy(), isa-l", library_copy);
	row("same, 256 B at a time", library_in_pieces);
	for (int k = 0; k < CRC32_KERNELS; k++) {
		char text[64];

		if (!crc32_use((enum crc32_kernel)k))
			continue;
		snprintf(text, sizeof(text), "crc32_copy %s", names[k]);
		row(text, crc32_copy);
		snprintf(text, sizeof(text), "crc32_update %s", names[k]);
		row(text, no_copy);
	}
#ifdef __x86_64__
	if (crc32_use(CRC32_AVX512))
		row("non-temporal stores", non_temporal);
#endif
	return 0;
}
