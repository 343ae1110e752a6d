/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CRC-32 (the reflected 0x04c11db7) over memory, with and without a copy. Values are the plain running
 * register: start with CRC32_INIT, complement at the end.
 */
#ifndef LONGHAUL_WIRE_CRC32_H
#define LONGHAUL_WIRE_CRC32_H

#include <stddef.h>
#include <stdint.h>

#define CRC32_INIT 0xffffffffu

/** crc32_update - the register after @len bytes at @p. Uses isa-l. */
uint32_t crc32_update(uint32_t reg, const void *p, size_t len);

/** crc32_copy - as crc32_update(), and copies the same bytes to @dst in the same pass. */
uint32_t crc32_copy(uint32_t reg, void *dst, const void *src, size_t len);

/** crc32_shift - the register after @len zero bytes, in O(log len). For patches by difference. */
uint32_t crc32_shift(uint32_t reg, size_t len);

#endif
