/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets that the appliance originates (ACK, NAK, CNP) and the template they clone: the headers of
 * the peer's own latest packet, so that addresses, VLAN tags, priority, TTL, entropy and P_Key are
 * the peer's.
 */
#ifndef LONGHAUL_WIRE_BUILD_H
#define LONGHAUL_WIRE_BUILD_H

#include <stdint.h>

#include "wire/frame.h"

/* Ethernet, two tags, IPv6, UDP, BTH */
#define TEMPLATE_MAX (14 + 8 + 40 + 8 + 12)
/* A generated packet without payload: template, AETH, AtomicAckETH or CNP pad, ICRC */
#define BUILD_MAX    (TEMPLATE_MAX + 28 + ICRC_LEN)

/**
 * struct template - headers of the latest packet in one direction, from Ethernet to BTH.
 * @len: bytes used, 0 when nothing was seen; @l3: offset of the IP header
 */
struct template
{
	uint8_t len;
	uint8_t l3;
	uint8_t hdr[TEMPLATE_MAX];
};

/** template_learn - take the headers of @f; ECN Congestion Experienced becomes ECT(0). */
void template_learn(struct template *t, const struct frame *f);

/** template_mirror - turn @t into the headers of an answer: exchange the addresses. */
void template_mirror(struct template *t);

/**
 * template_put - the headers of @t up to the BTH's to @out, as of a frame of @len bytes that has
 * the IPv4 identification @id and the UDP source port @sport. What follows, with the ICRC, is
 * there.
 */
void template_put(uint8_t *out, const struct template *t, uint16_t id, uint16_t sport,
		  uint32_t len);

/**
 * build_ack - an ACK, NAK or RNR NAK (opcode 0x11) to @dqpn from the template's sender.
 * @out: BUILD_MAX bytes. @psn, @msn: 24 bits. @syndrome: the AETH byte, credits included. Returns
 * the frame's length. IPv4 identification is the template's; lengths, header checksum and ICRC are
 * computed; the UDP checksum is 0 (for IPv6 too: RoCEv2 relies on the ICRC). FECN, BECN, SE, pad
 * and AckReq are cleared.
 */
uint32_t build_ack(uint8_t *out, const struct template *t, uint32_t dqpn, uint32_t psn,
		   uint8_t syndrome, uint32_t msn);

/** build_cnp - a congestion notification to @dqpn (spec: IBTA A17.9.4) as hardware NICs send it:
 *  DSCP 48 with ECT(0), UDP source port 0, MigReq 0. Returns the frame's length. */
uint32_t build_cnp(uint8_t *out, const struct template *t, uint32_t dqpn);

/**
 * struct build_spec - any RC or UD packet from scratch, for endpoints and tests.
 * @t:       headers to clone
 * @va, @rkey, @length: RETH, or AtomicETH (va, rkey) where the opcode has one
 * @swap_add, @compare: AtomicETH; @atomic_value: AtomicAckETH
 * @syndrome, @msn: AETH; @immdt: ImmDt, IETH or FETH; @qkey, @sqpn: DETH
 * @push:    the 16 bytes of PUSH, the 24 of PARITY, or the 48 of PARITY of a stream
 * @payload: @payload_len bytes, padded by the builder; may be NULL when 0
 */
struct build_spec {
	const struct template *t;
	uint8_t opcode;
	uint32_t dqpn, psn;
	bool ackreq, solicited;
	uint64_t va;
	uint32_t rkey, length;
	uint64_t swap_add, compare, atomic_value;
	uint8_t syndrome;
	uint32_t msn;
	uint32_t immdt;
	uint32_t qkey, sqpn;
	const uint8_t *push;
	const uint8_t *payload;
	uint32_t payload_len;
};

/** build_packet - the whole frame with ICRC into @out (FRAME_MAX bytes); returns its length. */
uint32_t build_packet(uint8_t *out, const struct build_spec *s);

/**
 * template_make - a template from addresses, for endpoints and tests (TTL or hop limit 64, DF,
 * P_Key 0xffff, M bit set).
 * @vlan: FRAME_VLAN_NONE for no tag.
 */
void template_make(struct template *t, const uint8_t smac[6], const uint8_t dmac[6], uint16_t vlan,
		   const struct ip_addr *src, const struct ip_addr *dst, uint16_t sport);

#endif
