/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames built in place: headers from a prepared image, payload written by the caller straight into
 * the transmit buffer, the ICRC carried along as a running register so that nothing is read twice.
 */
#ifndef LAB_RC_FRAME_H
#define LAB_RC_FRAME_H

#include "wire/build.h"
#include "wire/bytes.h"
#include "wire/crc32.h"

/**
 * struct rc_header - Ethernet to UDP of one direction of a queue pair.
 * @len: bytes up to and including the UDP header. @ip_sum: sum of the constant IPv4 header words
 */
struct rc_header {
	uint8_t hdr[TEMPLATE_MAX];
	uint8_t len, l3;
	bool ip6, migreq;
	uint16_t ip_id;
	uint32_t ip_sum;
};

/** struct rc_frame_spec - BTH and extended headers of one frame; @ext is in wire order already. */
struct rc_frame_spec {
	uint8_t opcode;
	bool ackreq, solicited;
	uint32_t dqpn, psn, payload_len;
	uint32_t ext_len;
	uint8_t ext[28];
};

void rc_header_init(struct rc_header *h, const uint8_t smac[6], const uint8_t dmac[6],
		    uint16_t vlan, const struct ip_addr *src, const struct ip_addr *dst,
		    uint16_t sport);

/** rc_frame_head - write all headers to @out; returns the offset of the payload. @crc: the ICRC
 *  register after the headers. */
uint32_t rc_frame_head(uint8_t *out, struct rc_header *h, const struct rc_frame_spec *s,
		       uint32_t *crc);

/** rc_frame_tail - pad and ICRC after the payload at @off; @crc: the register after the payload.
 *  Returns the frame's length. */
uint32_t rc_frame_tail(uint8_t *out, uint32_t off, uint32_t payload_len, uint32_t crc);

#endif
