/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SipHash-2-4 of whole 64-bit words (Aumasson and Bernstein, 2012): who does not know the key
 * cannot tell the hash of words that he has not seen.
 */
#ifndef LONGHAUL_WIRE_SIPHASH_H
#define LONGHAUL_WIRE_SIPHASH_H

#include <stdint.h>

/** siphash - of @n words at @m, which count as 8 bytes each, the least significant first. */
uint64_t siphash(const uint64_t key[2], const uint64_t *m, uint32_t n);

#endif
