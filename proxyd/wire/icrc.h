/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The invariant CRC of RoCEv2 (spec: IBTA A17.3.3): CRC-32, reflected, over 8 bytes of ones,
 * then the IP header to the end of the padded payload with the fields that routers change set to
 * ones. Stored little-endian.
 *
 * row: FAST-2
 */
#ifndef LONGHAUL_WIRE_ICRC_H
#define LONGHAUL_WIRE_ICRC_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/frame.h"

/** icrc_compute - the ICRC of a parsed frame, as the number that put_le32() stores. */
uint32_t icrc_compute(const struct frame *f);

/** icrc_ok - whether the frame's ICRC is the right one; not checked again if @f->icrc_right is set.
 */
bool icrc_ok(const struct frame *f);

/**
 * icrc_copy_ok - copy the whole frame (@f->len bytes) to @dst and check its ICRC, reading the
 * payload once; not checked again if @f->icrc_right is set. @dst: any alignment, 16 is fastest;
 * @f->len bytes of room.
 */
bool icrc_copy_ok(uint8_t *dst, const struct frame *f);

/**
 * icrc_print - a fingerprint of what the frame @f, whose ICRC is right, asks for: of its opcode and
 * PSN, and of all behind the BTH; not of the IP and UDP headers and AckReq, in which a repeat may
 * differ. It is derived from the ICRC; cost does not depend on the payload's length.
 */
uint32_t icrc_print(const struct frame *f);

/** icrc_fill - compute and store the ICRC of a frame that we originate. @data: from Ethernet on. */
void icrc_fill(uint8_t *data, const struct frame *f);

/**
 * icrc_of - the ICRC of a frame without a parsed view, for builders.
 * @l3, @end: offsets of the IP header and of the ICRC; IPv4 without options or IPv6 without
 * extension headers, told by the version nibble; UDP and BTH follow.
 */
uint32_t icrc_of(const uint8_t *data, uint32_t l3, uint32_t end);

/** ip4_csum - the Internet checksum of an IPv4 header of 20 bytes; 0 when it is already right. */
uint16_t ip4_csum(const uint8_t *ip);

/**
 * icrc_patch - change at most 24 covered header bytes and adjust the stored ICRC by the CRC of the
 * difference; damage to other bytes stays detectable. Also updates the checksums that cover the
 * bytes: the IPv4 header's, and a UDP checksum that is not 0.
 * @data: the frame @f was parsed from, writable; @off: first byte; @n: bytes; @bytes: their new
 * values. Cost does not depend on the payload's length. Must not be used for masked fields.
 */
void icrc_patch(uint8_t *data, const struct frame *f, uint32_t off, uint32_t n,
		const uint8_t *bytes);

/** icrc_with_ackreq - @f with AckReq set, in @out (FRAME_MAX bytes), where @f is from then on.
 * Returns @out. */
const uint8_t *icrc_with_ackreq(uint8_t *out, struct frame *f);

#endif
