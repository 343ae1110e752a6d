// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * CRC-32 with carry-less multiplication, fused with a copy. Theory of operation:
 *
 * A 16-byte block V, as loaded, is a polynomial whose highest power is bit 0. Its halves L (bits
 * 0..63) and H (bits 64..127), each read the same way, give V = L x^64 + H. CLMUL of two such
 * halves A and B yields A B x, because bit 127 of the product stands for x^0 and its sum of indices
 * ends at 126. So, modulo P,
 *
 *	V x^T = L x^(T+64) + H x^T = clmul(L, x^(T+63) mod P) + clmul(H, x^(T-1) mod P)
 *
 * moves V ahead by T bits, to a later block of the message, where it is added (xor). A constant of
 * 32 bits occupies the upper half of its 64-bit operand (the lower powers). T = 0 is legal: x has
 * an inverse modulo P. "Folding" repeats that over the message with several accumulators, whose
 * chains of multiplications run side by side; in the end each is moved to the last block's place
 * and all are added.
 *
 * What is left is V, 128 bits, and the CRC is V x^32 mod P. With W = L x^96 + H x^32, reduced in
 * its first term by x^95 mod P to 96 bits, one Barrett step is exact (polynomials have no carries):
 *
 *	q = floor(floor(W / x^32) mu / x^63),  mu = floor(x^95 / P),  CRC = (W - q P) mod x^32
 *
 * Registers hold x^32 W, so that floor(W / x^32) is the lower half of one and needs no shift.
 *
 * Lengths that are no multiple of the block: zeros before a message do not change its CRC as long
 * as the register enters after them, so the first block, not the last, is the partial one, loaded
 * right-aligned.
 *
 * The value that is folded is the value that is stored: it is loaded once, and an empty asm keeps
 * the compiler from loading it again. So the CRC is that of the copy, even if the source changes
 * meanwhile.
 *
 * Why not memcpy() and the library's crc32_gzip_refl(): the library folds as wide as this does, but
 * reads the bytes twice, and short packets take slow paths. Measured (ns, EPYC with AVX-512, see
 * tests/bench/bench_wire.c), copy and CRC, source in cache; last column: the copies walk through 64
 * MiB.
 *
 *	bytes                            64   256  1028  4160   4160
 *	memcpy(), then isa-l              9    26    45   128    255
 *	this, AVX-512                     7    10    26    78    145
 *	this, PCLMUL (isa-l's CRC: 284)   7    19    74   284    290
 *
 * The same on an EPYC that has VPCLMULQDQ, but no AVX-512:
 *
 *	memcpy(), then isa-l             11    26    92   391    556
 *	this, AVX2                        8    20    48   168    278
 *	this, PCLMUL                      7    21    83   324    349
 *
 * 78 ns are two multiplications for each 64 bytes at this core's rate: the copy is free. Stores
 * past the caches (non-temporal) take 143 ns for 4 KiB with any size of pool: they gain where the
 * pool exceeds the last cache, lose as much where it does not, and need copies with ends aligned to
 * cache lines. Prefetching the destination gained nothing. So stores are ordinary.
 *
 * row: FAST-2
 */
#include "wire/crc32_priv.h"

#ifdef __x86_64__
#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define NARROW __attribute__((target("avx,pclmul")))
#define DOUBLE __attribute__((target("avx2,pclmul,vpclmulqdq")))
#define WIDE   __attribute__((target("avx,pclmul,avx512f,avx512bw,avx512vl,avx512dq,vpclmulqdq")))

INLINE NARROW uint32_t barrett(__m128i w)
{
	const __m128i mu = _mm_cvtsi64_si128((long long)crc32_consts.mu);
	/* P without x^32, times x^31: q P then lines up with x^32 W. */
	const uint64_t twice = (uint64_t)CRC32_POLY << 1;
	const __m128i p = _mm_cvtsi64_si128((long long)twice);
	__m128i q = _mm_clmulepi64_si128(w, mu, 0x00);

	w = _mm_xor_si128(w, _mm_clmulepi64_si128(q, p, 0x00));
	return (uint32_t)_mm_extract_epi32(w, 2);
}

INLINE NARROW uint32_t reduce(__m128i v)
{
	const __m128i k = _mm_cvtsi64_si128((long long)crc32_consts.k95);

	return barrett(_mm_xor_si128(_mm_clmulepi64_si128(v, k, 0x00), _mm_srli_si128(v, 8)));
}

NARROW uint32_t crc32_mul_pclmul(uint32_t a, uint32_t b)
{
	/* a and b x^31, so that the product is x^32 a b. */
	return barrett(_mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)((uint64_t)a << 32)),
					    _mm_cvtsi64_si128((long long)((uint64_t)b << 1)),
					    0x00));
}

INLINE NARROW __m128i fold128(__m128i v, __m128i k, __m128i next)
{
	return _mm_xor_si128(
		_mm_xor_si128(_mm_clmulepi64_si128(v, k, 0x00), _mm_clmulepi64_si128(v, k, 0x11)),
		next);
}

INLINE NARROW __m128i load128(const struct crc32_fold *k)
{
	return _mm_loadu_si128((const __m128i *)(const void *)k);
}

/* Load a block and, with @copy, store it at @dst. */
INLINE NARROW __m128i take128(uint8_t *dst, const uint8_t *src, bool copy)
{
	__m128i v = _mm_loadu_si128((const __m128i *)(const void *)src);

	__asm__("" : "+x"(v));
	if (copy)
		_mm_storeu_si128((__m128i *)(void *)dst, v);
	return v;
}

/* The first block, of @r bytes in the end of a block of zeros, with the register where no lead is
 * before it. */
INLINE NARROW __m128i first128(const uint8_t *lead, uint32_t reg, uint8_t *dst, const uint8_t *src,
			       size_t r, bool copy)
{
	uint8_t head[16] = {0};
	uint32_t first;
	__m128i v;

	if (r == 16) {
		v = take128(dst, src, copy);
		return lead ? v : _mm_xor_si128(v, _mm_cvtsi32_si128((int)reg));
	}
	for (size_t i = 0; i < r; i += 4)
		memcpy(head + 16 - r + i, src + i, 4);
	__asm__ volatile("" ::: "memory");
	if (copy)
		for (size_t i = 0; i < r; i += 4)
			memcpy(dst + i, head + 16 - r + i, 4);
	if (!lead) {
		memcpy(&first, head + 16 - r, 4);
		first ^= reg;
		memcpy(head + 16 - r, &first, 4);
	}
	return take128(NULL, head, false);
}

/* Fold the 64 bytes at @lead onto @v, the first block, of @r bytes. */
INLINE NARROW __m128i lead128(const uint8_t *lead, __m128i v, size_t r)
{
	const __m128i one = load128(&crc32_consts.block128[2]);
	__m128i l = take128(NULL, lead, false);

	for (int i = 1; i < 4; i++)
		l = fold128(l, one, take128(NULL, lead + 16 * i, false));
	return fold128(l, load128(&crc32_consts.lead[r / 4 - 1]), v);
}

/* Fold whole groups of 64 bytes with four accumulators; there are two groups at least. @v stands
 * for the block before, and takes the place of the first accumulator. Leaves less than one group.
 * */
INLINE NARROW __m128i groups128(__m128i v, uint8_t **to, const uint8_t **from, size_t *len,
				bool copy)
{
	const __m128i one = load128(&crc32_consts.block128[2]);
	const __m128i step = load128(&crc32_consts.step128);
	const uint8_t *src = *from;
	uint8_t *dst = *to;
	__m128i x1, x2, x3;

	v = fold128(v, one, take128(dst, src, copy));
	x1 = take128(dst + 16, src + 16, copy);
	x2 = take128(dst + 32, src + 32, copy);
	x3 = take128(dst + 48, src + 48, copy);
	for (;;) {
		src += 64;
		dst += 64;
		*len -= 64;
		if (*len < 64)
			break;
		v = fold128(v, step, take128(dst, src, copy));
		x1 = fold128(x1, step, take128(dst + 16, src + 16, copy));
		x2 = fold128(x2, step, take128(dst + 32, src + 32, copy));
		x3 = fold128(x3, step, take128(dst + 48, src + 48, copy));
	}
	v = fold128(v, load128(&crc32_consts.block128[0]), x3);
	v = fold128(x1, load128(&crc32_consts.block128[1]), v);
	*from = src;
	*to = dst;
	return fold128(x2, one, v);
}

/* The first block with all that is before it. Leaves whole blocks. */
INLINE NARROW __m128i begin128(const uint8_t *lead, uint32_t reg, uint8_t **dst,
			       const uint8_t **src, size_t *len, bool copy)
{
	size_t r = ((*len - 4) & 15) + 4;
	__m128i v = first128(lead, reg, *dst, *src, r, copy);

	*src += r;
	*dst += r;
	*len -= r;
	return lead ? lead128(lead, v, r) : v;
}

/* The last blocks, one by one. */
INLINE NARROW uint32_t end128(__m128i v, uint8_t *dst, const uint8_t *src, size_t len, bool copy)
{
	const __m128i one = load128(&crc32_consts.block128[2]);

	for (; len; len -= 16) {
		v = fold128(v, one, take128(dst, src, copy));
		src += 16;
		dst += 16;
	}
	return reduce(v);
}

INLINE NARROW uint32_t run128(const uint8_t *lead, uint32_t reg, uint8_t *dst, const uint8_t *src,
			      size_t len, bool copy)
{
	__m128i v = begin128(lead, reg, &dst, &src, &len, copy);

	if (len >= 128)
		v = groups128(v, &dst, &src, &len, copy);
	return end128(v, dst, src, len, copy);
}

NARROW uint32_t crc32_pclmul(const uint8_t *lead, uint32_t reg, uint8_t *dst, const uint8_t *src,
			     size_t len)
{
	return dst ? run128(lead, reg, dst, src, len, true)
		   : run128(lead, reg, (uint8_t *)(uintptr_t)src, src, len, false);
}

INLINE DOUBLE __m256i fold256(__m256i v, __m256i k, __m256i next)
{
	return _mm256_xor_si256(_mm256_xor_si256(_mm256_clmulepi64_epi128(v, k, 0x00),
						 _mm256_clmulepi64_epi128(v, k, 0x11)),
				next);
}

INLINE DOUBLE __m256i load256(const struct crc32_fold *k)
{
	return _mm256_broadcastsi128_si256(load128(k));
}

INLINE DOUBLE __m256i take256(uint8_t *dst, const uint8_t *src, bool copy)
{
	__m256i v = _mm256_loadu_si256((const __m256i *)(const void *)src);

	__asm__("" : "+x"(v));
	if (copy)
		_mm256_storeu_si256((__m256i *)(void *)dst, v);
	return v;
}

/* As groups128(), with groups of 128 bytes, and one at least. */
INLINE DOUBLE __m128i groups256(__m128i v, uint8_t **to, const uint8_t **from, size_t *len,
				bool copy)
{
	const __m128i one = load128(&crc32_consts.block128[2]);
	const __m256i step = load256(&crc32_consts.step256);
	const uint8_t *src = *from;
	uint8_t *dst = *to;
	__m256i x0, x1, x2, x3;

	v = fold128(v, one, _mm_setzero_si128());
	x0 = _mm256_xor_si256(take256(dst, src, copy), _mm256_zextsi128_si256(v));
	x1 = take256(dst + 32, src + 32, copy);
	x2 = take256(dst + 64, src + 64, copy);
	x3 = take256(dst + 96, src + 96, copy);
	for (;;) {
		src += 128;
		dst += 128;
		*len -= 128;
		if (*len < 128)
			break;
		x0 = fold256(x0, step, take256(dst, src, copy));
		x1 = fold256(x1, step, take256(dst + 32, src + 32, copy));
		x2 = fold256(x2, step, take256(dst + 64, src + 64, copy));
		x3 = fold256(x3, step, take256(dst + 96, src + 96, copy));
	}
	x3 = fold256(x0, load256(&crc32_consts.block256[0]), x3);
	x3 = fold256(x1, load256(&crc32_consts.block256[1]), x3);
	x3 = fold256(x2, load256(&crc32_consts.block256[2]), x3);
	*from = src;
	*to = dst;
	return fold128(_mm256_castsi256_si128(x3), one, _mm256_extracti128_si256(x3, 1));
}

INLINE DOUBLE uint32_t run256(const uint8_t *lead, uint32_t reg, uint8_t *dst, const uint8_t *src,
			      size_t len, bool copy)
{
	__m128i v = begin128(lead, reg, &dst, &src, &len, copy);

	if (len >= 128)
		v = groups256(v, &dst, &src, &len, copy);
	return end128(v, dst, src, len, copy);
}

DOUBLE uint32_t crc32_avx2(const uint8_t *lead, uint32_t reg, uint8_t *dst, const uint8_t *src,
			   size_t len)
{
	return dst ? run256(lead, reg, dst, src, len, true)
		   : run256(lead, reg, (uint8_t *)(uintptr_t)src, src, len, false);
}

INLINE WIDE __m512i fold512(__m512i v, __m512i k, __m512i next)
{
	return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(v, k, 0x00),
					 _mm512_clmulepi64_epi128(v, k, 0x11), next, 0x96);
}

INLINE WIDE __m512i load512(const struct crc32_fold *k)
{
	return _mm512_broadcast_i32x4(load128(k));
}

INLINE WIDE __m512i take512(uint8_t *dst, const uint8_t *src, size_t i, bool copy)
{
	__m512i v = _mm512_loadu_si512(src + 64 * i);

	__asm__("" : "+v"(v));
	if (copy)
		_mm512_storeu_si512(dst + 64 * i, v);
	return v;
}

/* The first block, of @r bytes in the end of a block of zeros; what is before it, the 64 bytes at
 * @lead or else the register, is added. */
INLINE WIDE __m512i first512(const uint8_t *lead, uint32_t reg, uint8_t *dst, const uint8_t *src,
			     size_t r, bool copy)
{
	size_t back = 64 - r;
	__mmask16 mask = (__mmask16)(0xffffu << back / 4);
	__m512i v = _mm512_maskz_loadu_epi32(mask, src - back);

	__asm__("" : "+v"(v));
	if (copy)
		_mm512_mask_storeu_epi32(dst - back, mask, v);
	if (lead)
		return fold512(_mm512_loadu_si512(lead), load512(&crc32_consts.lead[r / 4 - 1]), v);
	return _mm512_xor_si512(v, _mm512_maskz_set1_epi32((__mmask16)(1u << back / 4), (int)reg));
}

/* Fold @n blocks, CRC32_WIDE at least, onto @v with as many accumulators. */
INLINE WIDE __m512i blocks512(__m512i v, uint8_t *dst, const uint8_t *src, size_t n, bool copy)
{
	const __m512i step = load512(&crc32_consts.step512);
	const struct crc32_fold *k;
	__m512i x0, x1, x2, x3, x4, x5, x6, x7;

/* Spelt out, because compilers keep an array in memory. */
#define OPEN(i) x##i = take512(dst, src, i, copy)
#define STEP(i) x##i = fold512(x##i, step, take512(dst, src, i, copy))
#define LAST(i) v = fold512(x##i, load512(k + i), v)
	x0 = fold512(v, load512(&crc32_consts.one512), take512(dst, src, 0, copy));
	OPEN(1), OPEN(2), OPEN(3), OPEN(4), OPEN(5), OPEN(6), OPEN(7);
	for (;;) {
		src += 64 * CRC32_WIDE;
		dst += 64 * CRC32_WIDE;
		n -= CRC32_WIDE;
		if (n < CRC32_WIDE)
			break;
		STEP(0), STEP(1), STEP(2), STEP(3), STEP(4), STEP(5), STEP(6), STEP(7);
	}
	/* The rest begins one more round and leaves the accumulators in rotated order. */
	switch (n) {
	case 7:
		STEP(6);
		/* fall through */
	case 6:
		STEP(5);
		/* fall through */
	case 5:
		STEP(4);
		/* fall through */
	case 4:
		STEP(3);
		/* fall through */
	case 3:
		STEP(2);
		/* fall through */
	case 2:
		STEP(1);
		/* fall through */
	case 1:
		STEP(0);
	}
	k = crc32_consts.block512 + (-n & (CRC32_WIDE - 1));
	v = _mm512_setzero_si512();
	LAST(0), LAST(1), LAST(2), LAST(3), LAST(4), LAST(5), LAST(6), LAST(7);
	return v;
}

INLINE WIDE uint32_t run512(const uint8_t *lead, uint32_t reg, uint8_t *dst, const uint8_t *src,
			    size_t len, bool copy)
{
	size_t r = ((len - 4) & 63) + 4, n = (len - r) / 64;
	__m512i v = first512(lead, reg, dst, src, r, copy);
	__m128i lo;

	src += r;
	dst += r;
	if (n >= CRC32_WIDE)
		v = blocks512(v, dst, src, n, copy);
	else
		for (size_t i = 0; i < n; i++)
			v = fold512(v, load512(&crc32_consts.one512), take512(dst, src, i, copy));
	v = fold512(v, _mm512_loadu_si512(crc32_consts.lane), _mm512_setzero_si512());
	lo = _mm_xor_si128(
		_mm_xor_si128(_mm512_castsi512_si128(v), _mm512_extracti32x4_epi32(v, 1)),
		_mm_xor_si128(_mm512_extracti32x4_epi32(v, 2), _mm512_extracti32x4_epi32(v, 3)));
	return reduce(lo);
}

WIDE uint32_t crc32_avx512(const uint8_t *lead, uint32_t reg, uint8_t *dst, const uint8_t *src,
			   size_t len)
{
	return dst ? run512(lead, reg, dst, src, len, true)
		   : run512(lead, reg, (uint8_t *)(uintptr_t)src, src, len, false);
}

#endif
