/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CRC-32 (the reflected 0x04c11db7) over memory, with and without a copy. Values are the plain
 * running register: start with CRC32_INIT, complement at the end.
 */
#ifndef LONGHAUL_WIRE_CRC32_H
#define LONGHAUL_WIRE_CRC32_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CRC32_INIT 0xffffffffu

/** crc32_update - the register after @len bytes at @p. */
uint32_t crc32_update(uint32_t reg, const void *p, size_t len);

/**
 * crc32_copy - as crc32_update(), and copies the bytes to @dst in the same pass: the result is
 * right for the bytes at @dst, even if the source changes meanwhile. The two may not overlap.
 */
uint32_t crc32_copy(uint32_t reg, void *dst, const void *src, size_t len);

/**
 * crc32_lead - the register, 0 at first, after the 64 bytes at @lead and @len bytes at @src, which
 * are copied to @dst as well unless that is NULL. Cheaper than two calls. A shorter lead must be
 * right-aligned, with zeros before it and the initial register added to its first four bytes.
 * @len: a multiple of 4.
 */
uint32_t crc32_lead(const uint8_t lead[64], void *dst, const void *src, size_t len);

/** crc32_shift - the register after @len zero bytes, in O(log len). For patches by difference. */
uint32_t crc32_shift(uint32_t reg, size_t len);

/** enum crc32_kernel - the better ones last. */
enum crc32_kernel {
	CRC32_LIBRARY, /* isa-l and memcpy() */
	CRC32_PCLMUL,
	CRC32_AVX2, /* with VPCLMULQDQ */
	CRC32_AVX512,
	CRC32_KERNELS,
};

/**
 * crc32_use - from now on use this kernel; for tests and benchmarks, the best is chosen at
 * start-up. Returns false when the processor lacks it (nothing changes then).
 */
bool crc32_use(enum crc32_kernel k);

#endif
