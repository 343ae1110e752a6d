// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * CRC-32: choice of a kernel, its constants, and portable code.
 *
 * Polynomials modulo P of up to 32 bits are kept as the register is: bit 31 is x^0. All constants
 * follow from powers of x. They are computed before main() starts (some 50 us), so that none can be
 * mistyped in the source. The processor's features decide on the kernel.
 */
#include "wire/crc32.h"

#include <isa-l/crc.h>
#include <string.h>

#include "wire/crc32_priv.h"

#define X0 0x80000000u
#define X1 0x40000000u

struct crc32_consts crc32_consts __attribute__((aligned(64)));

static crc32_kernel_fn library;
static crc32_kernel_fn *kernel = library;

/* a b mod P, bit by bit. */
static uint32_t mul_portable(uint32_t a, uint32_t b)
{
	uint32_t r = 0;

	for (int i = 0; i < 32; i++) {
		r ^= b & -(a >> 31);
		a <<= 1;
		b = b >> 1 ^ (CRC32_POLY & -(b & 1));
	}
	return r;
}

static uint32_t (*mul)(uint32_t, uint32_t) = mul_portable;

/* x^n mod P; n >= -1, and P = 1 + x (...), so x^-1 is the rest of P over x: (P - 1) / x. */
static uint32_t xpow(int n)
{
	uint32_t r = X0, sq = X1;

	if (n < 0)
		return CRC32_POLY << 1 | 1;
	for (; n; n >>= 1) {
		if (n & 1)
			r = mul_portable(r, sq);
		sq = mul_portable(sq, sq);
	}
	return r;
}

static struct crc32_fold fold_by(int bits)
{
	return (struct crc32_fold){(uint64_t)xpow(bits + 63) << 32, (uint64_t)xpow(bits - 1) << 32};
}

/* floor(x^95 / P) by long division; bit 0 is the quotient's x^63. */
static uint64_t divide_x95(void)
{
	uint32_t rest = CRC32_POLY; /* rest of x^32, with quotient 1 */
	uint64_t q = 1;

	for (int i = 1; i < 64; i++) {
		q |= (uint64_t)(rest & 1) << i;
		rest = rest >> 1 ^ (CRC32_POLY & -(rest & 1));
	}
	return q;
}

static void init_consts(void)
{
	struct crc32_consts *c = &crc32_consts;
	uint32_t x8 = xpow(8), x2048 = xpow(8 * 256);

	for (int i = 0; i < 4; i++)
		c->lane[i] = fold_by(128 * (3 - i));
	c->one512 = fold_by(512);
	c->step512 = fold_by(512 * CRC32_WIDE);
	c->step256 = fold_by(1024);
	c->step128 = fold_by(512);
	for (int i = 0; i < 2 * CRC32_WIDE - 1; i++)
		c->block512[i] = fold_by(512 * ((2 * CRC32_WIDE - 1 - i) % CRC32_WIDE));
	for (int i = 0; i < 3; i++) {
		c->block256[i] = fold_by(256 * (3 - i));
		c->block128[i] = fold_by(128 * (3 - i));
	}
	for (int i = 0; i < 16; i++)
		c->lead[i] = fold_by(32 * (i + 1));
	c->k95 = xpow(95);
	c->mu = divide_x95();
	c->shift[0][0] = X0;
	c->shift[1][0] = X0;
	for (int i = 1; i < 256; i++) {
		c->shift[0][i] = mul_portable(c->shift[0][i - 1], x8);
		c->shift[1][i] = mul_portable(c->shift[1][i - 1], x2048);
	}
	/* A byte in the register's first 8 powers, times x^8. */
	for (uint32_t i = 0; i < 256; i++)
		c->byte[i] = mul_portable(i, x8);
}

/* Without a kernel of ours: copy a piece that fits into the first-level cache, then isa-l reads the
 * copy. */
static uint32_t library(const uint8_t *lead, uint32_t reg, uint8_t *dst, const uint8_t *src,
			size_t len)
{
	if (lead)
		reg = ~crc32_gzip_refl(UINT32_MAX, lead, 64);
	if (!dst)
		return ~crc32_gzip_refl(~reg, src, len);
	for (size_t n; len; len -= n) {
		n = len < 4096 ? len : 4096;
		memcpy(dst, src, n);
		/* The CRC must be that of the copy: the compiler must not read the source again. */
		__asm__ volatile("" ::: "memory");
		reg = ~crc32_gzip_refl(~reg, dst, n);
		src += n;
		dst += n;
	}
	return reg;
}

bool crc32_use(enum crc32_kernel k)
{
#ifdef __x86_64__
	bool narrow = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("avx");

	mul = narrow ? crc32_mul_pclmul : mul_portable;
	if (k == CRC32_AVX512 && narrow && __builtin_cpu_supports("vpclmulqdq") &&
	    __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
		kernel = crc32_avx512;
		return true;
	}
	if (k == CRC32_AVX2 && narrow && __builtin_cpu_supports("vpclmulqdq") &&
	    __builtin_cpu_supports("avx2")) {
		kernel = crc32_avx2;
		return true;
	}
	if (k == CRC32_PCLMUL && narrow) {
		kernel = crc32_pclmul;
		return true;
	}
#endif
	if (k == CRC32_LIBRARY) {
		kernel = library;
		mul = mul_portable;
		return true;
	}
	return false;
}

__attribute__((constructor)) static void init(void)
{
#ifdef __x86_64__
	__builtin_cpu_init();
#endif
	init_consts();
	for (int k = CRC32_KERNELS; k-- && !crc32_use((enum crc32_kernel)k);)
		;
}

static uint32_t one_byte(uint32_t reg, uint8_t b)
{
	return reg >> 8 ^ crc32_consts.byte[(uint8_t)reg ^ b];
}

uint32_t crc32_update(uint32_t reg, const void *p, size_t len)
{
	const uint8_t *s = p;

	for (; len & 3; len--)
		reg = one_byte(reg, *s++);
	return len ? kernel(NULL, reg, NULL, s, len) : reg;
}

uint32_t crc32_copy(uint32_t reg, void *dst, const void *src, size_t len)
{
	const uint8_t *s = src;
	uint8_t *d = dst;

	for (; len & 3; len--) {
		uint8_t b = *(const volatile uint8_t *)s++;

		*d++ = b;
		reg = one_byte(reg, b);
	}
	return len ? kernel(NULL, reg, d, s, len) : reg;
}

uint32_t crc32_lead(const uint8_t lead[64], void *dst, const void *src, size_t len)
{
	if (!len)
		return kernel(NULL, 0, NULL, lead, 64);
	return kernel(lead, 0, dst, src, len);
}

uint32_t crc32_shift(uint32_t reg, size_t len)
{
	uint32_t sq;

	reg = mul(crc32_consts.shift[0][len & 0xff], reg);
	len >>= 8;
	if (len & 0xff)
		reg = mul(crc32_consts.shift[1][len & 0xff], reg);
	len >>= 8;
	/* The shift is longer than any packet. */
	if (!len)
		return reg;
	for (sq = xpow(8 * 65536); len; len >>= 1) {
		if (len & 1)
			reg = mul(sq, reg);
		sq = mul(sq, sq);
	}
	return reg;
}
