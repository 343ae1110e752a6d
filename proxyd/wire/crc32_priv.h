/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Between crc32.c (choice, constants, portable code) and crc32_x86.c (kernels). */
#ifndef LONGHAUL_WIRE_CRC32_PRIV_H
#define LONGHAUL_WIRE_CRC32_PRIV_H

#include <stddef.h>
#include <stdint.h>

#define CRC32_POLY 0xedb88320u /* x^32 left out; bit 31 is x^0, as everywhere here */

/* Accumulators of the wide kernel; see crc32_x86.c. */
#define CRC32_WIDE 8

/**
 * struct crc32_fold - multiply 128 bits by x^T: @lo the first 64 of them, @hi the others.
 */
struct crc32_fold {
	uint64_t lo, hi;
};

/**
 * struct crc32_consts - all factors of the kernels, computed once at start-up.
 * @step512, @step256, @step128: over all accumulators of the kernel of that width
 * @block512: by 64 B times (CRC32_WIDE - 1 - index) modulo CRC32_WIDE
 * @lane: lane i of four to the place of lane 3
 * @block256: by 96, 64, 32 B; @block128: by 48, 32, 16 B
 * @lead: by 4 * (index + 1) B
 * @k95: x^95 mod P
 * @mu: floor(x^95 / P)
 * @byte: register after one byte, the table of the textbook
 * @shift: x^(8 i), x^(8 * 256 i)
 */
struct crc32_consts {
	struct crc32_fold lane[4];
	struct crc32_fold step512, one512, step256, step128;
	struct crc32_fold block512[2 * CRC32_WIDE - 1];
	struct crc32_fold block256[3], block128[3];
	struct crc32_fold lead[16];
	uint64_t k95, mu;
	uint32_t byte[256];
	uint32_t shift[2][256];
};

extern struct crc32_consts crc32_consts;

/**
 * A kernel. The register after @lead (64 bytes entered with register 0; NULL: the register is @reg)
 * and
 * @len bytes at @src, which are copied to @dst as well unless that is NULL.
 * @len: a multiple of 4, not 0.
 */
typedef uint32_t crc32_kernel_fn(const uint8_t *lead, uint32_t reg, uint8_t *dst,
				 const uint8_t *src, size_t len);

#ifdef __x86_64__
crc32_kernel_fn crc32_avx512;
crc32_kernel_fn crc32_avx2;
crc32_kernel_fn crc32_pclmul;
uint32_t crc32_mul_pclmul(uint32_t a, uint32_t b);
#endif

#endif
