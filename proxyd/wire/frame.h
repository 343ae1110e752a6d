/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One RoCEv2 frame, Ethernet to ICRC: bounds-checked parsing into offsets. Nothing is copied; a
 * view is valid only as long as the bytes are. Offsets count from the first byte of the Ethernet
 * header.
 */
#ifndef LONGHAUL_WIRE_FRAME_H
#define LONGHAUL_WIRE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/bytes.h"
#include "wire/opcode.h"

#define ROCE_UDP_PORT	4791
#define ETH_HLEN_	14
#define MAC_LEN		6
#define BTH_LEN		12
#define ICRC_LEN	4
#define ETHERTYPE_CTAG	0x8100 /* a VLAN tag of VLAN_HLEN_ bytes */
#define VLAN_HLEN_	4
#define FRAME_VLAN_NONE 0xffffu
#define PAYLOAD_MAX	4096 /* the largest path MTU */
#define PATH_MTU_MIN	256  /* the smallest */
/*
 * Longest headers: Ethernet, two VLAN tags (the engine takes one; frames with two are bridged on
 * the same ports), IPv6, UDP, BTH, and behind it AtomicETH, or what parity between two appliances
 * has there. No accepted frame exceeds FRAME_MAX.
 */
#define FRAME_EXT_HOST	28
#define FRAME_EXT_MAX	48
#define FRAME_HDR_MAX	(14 + 8 + 40 + 8 + 12 + FRAME_EXT_MAX)
#define FRAME_MAX	(FRAME_HDR_MAX + PAYLOAD_MAX + ICRC_LEN)

/* MTU that a port needs for hosts of path MTU @p: their longest frame less Ethernet's header and
 * two tags. */
#define FRAME_MTU(p)                                                                               \
	(FRAME_HDR_MAX - FRAME_EXT_MAX + FRAME_EXT_HOST - ETH_HLEN_ - FRAME_TAGS + (p) + ICRC_LEN)
#define FRAME_TAGS 8

/** struct ip_addr - an IPv6 address, or an IPv4 one in its v4-mapped form ::ffff:a.b.c.d. */
struct ip_addr {
	uint8_t b[16];
};

enum frame_verdict {
	FRAME_OK = 0,
	FRAME_NOT_ROCE,	      /* not IP/UDP to port 4791, a fragment, IP options, a second tag or a
			       * service tag: passes by unaccelerated */
	FRAME_TRUNCATED,      /* shorter than its own headers or IP length say */
	FRAME_BAD_LENGTH,     /* UDP and IP length disagree, or the payload is too long */
	FRAME_BAD_PAD,	      /* pad count beyond the payload, or payload not a multiple of 4 */
	FRAME_BAD_VERSION,    /* BTH TVer is not 0 */
	FRAME_UNKNOWN_OPCODE, /* BTH fields are valid, offsets past it are not */
	FRAME_BAD_CHECKSUM,   /* IPv4 header checksum: the receiving host will drop it */
	FRAME_VERDICTS,
};

/**
 * struct frame - a parsed view.
 * @data:        first byte of the Ethernet header; not owned
 * @len:         bytes up to the end of the ICRC (Ethernet padding is cut off by the IP length)
 * @l3, @l4, @bth: offsets of the IP header, the UDP header, the BTH
 * @ext:         offset of the first extended header (bth + 12)
 * @reth, @aeth, @atomiceth, @atomicack, @immdt, @ieth, @deth: offsets, 0 when absent
 * @payload:     offset of the payload
 * @payload_len: bytes of payload without the pad
 * @icrc:        offset of the ICRC (len - 4)
 * @ip6:         IPv6
 * @vlan:        VLAN id, FRAME_VLAN_NONE without a tag, or with a priority tag (VLAN id 0): NICs
 *               may set that in one direction only
 * @src, @dst:   addresses, v4-mapped for IPv4
 * @sport:       UDP source port
 * @icrc_right:  the ICRC was checked, and need not be again
 * @seal:        seal that was XORed off the ICRC when the frame came in, 0: none
 */
struct frame {
	const uint8_t *data;
	uint32_t len;
	uint16_t l3, l4, bth, ext;
	uint16_t reth, aeth, atomiceth, atomicack, immdt, ieth, deth;
	uint16_t payload, icrc;
	uint32_t payload_len;
	const struct opcode_info *op;
	struct ip_addr src, dst;
	uint32_t dqpn, psn, seal;
	uint16_t vlan, sport, pkey;
	uint8_t opcode, pad;
	bool ip6, ackreq, fecn, becn, solicited, migreq, icrc_right;
};

/**
 * frame_parse - parse @len bytes at @data into @f.
 * Returns FRAME_OK or what is wrong. With FRAME_UNKNOWN_OPCODE everything up to and including the
 * BTH is valid; with any other verdict nothing in @f is. Reads nothing outside @data .. @data +
 * @len.
 */
enum frame_verdict frame_parse(const uint8_t *data, uint32_t len, struct frame *f);

/** frame_set_dscp - in the IP header of @f, whose bytes are at @data. ECN stays. The ICRC does not
 * cover it. */
void frame_set_dscp(const struct frame *f, uint8_t *data, uint8_t dscp);

/** frame_verdict_name - short kebab-case name of a verdict, for counters ("bad-pad"). */
const char *frame_verdict_name(enum frame_verdict v);

/* Fields of extended headers. The caller has checked that the header is there (offset not 0). */
static inline uint64_t frame_reth_va(const struct frame *f)
{
	return get_be64(f->data + f->reth);
}

static inline uint32_t frame_reth_rkey(const struct frame *f)
{
	return get_be32(f->data + f->reth + 8);
}

static inline uint32_t frame_reth_length(const struct frame *f)
{
	return get_be32(f->data + f->reth + 12);
}

static inline uint8_t frame_aeth_syndrome(const struct frame *f)
{
	return f->data[f->aeth];
}

static inline uint32_t frame_aeth_msn(const struct frame *f)
{
	return get_be24(f->data + f->aeth + 1);
}

static inline uint32_t frame_immdt(const struct frame *f)
{
	return get_be32(f->data + f->immdt);
}

/** frame_span - PSNs that this request consumes: for a READ max(1, ceil(length / @pmtu)), else 1.
 *  @pmtu in bytes, not 0 when the frame is a READ longer than 0. */
uint32_t frame_span(const struct frame *f, uint32_t pmtu);

/* AETH syndromes (spec: IBTA 9.7.5.1). */
#define AETH_ACK_UNLIMITED 0x1fu
#define AETH_RNR_NAK	   0x20u
#define AETH_NAK_SEQ	   0x60u
#define AETH_NAK_INVALID   0x61u
#define AETH_NAK_ACCESS	   0x62u
#define AETH_NAK_OPERATION 0x63u

static inline bool aeth_is_ack(uint8_t s)
{
	return (s & 0xe0) == 0;
}

static inline bool aeth_is_rnr(uint8_t s)
{
	return (s & 0xe0) == AETH_RNR_NAK;
}

static inline bool aeth_is_nak(uint8_t s)
{
	return (s & 0xe0) == 0x60;
}

/** aeth_known - whether a response with @opcode may bear the syndrome @s. All others are reserved
 * or vendor-specific. Only an acknowledgement without data can refuse a request. */
static inline bool aeth_known(uint8_t opcode, uint8_t s)
{
	return aeth_is_ack(s) || (opcode == OP_ACK && (aeth_is_rnr(s) || aeth_is_nak(s)));
}

/** frame_understood - whether @f has no AETH, or one without reserved codes. */
static inline bool frame_understood(const struct frame *f)
{
	return !f->aeth || aeth_known(f->opcode, frame_aeth_syndrome(f));
}

/** aeth_rnr_ns - the delay that RNR timer code @code (5 bits) asks for, in ns. */
uint64_t aeth_rnr_ns(uint8_t code);

/** frame_hosts - only the addresses, of any IP packet; false when there are none. */
bool frame_hosts(const uint8_t *data, uint32_t len, struct ip_addr *src, struct ip_addr *dst);

/* ip_addr helpers */
/** ip_pair_hash - of two hosts, the same whichever is first; no secret, and the same everywhere. */
uint64_t ip_pair_hash(const struct ip_addr *a, const struct ip_addr *b);
struct ip_addr ip_addr_v4(const uint8_t *be4);
bool ip_addr_is_v4(const struct ip_addr *a);
bool ip_addr_eq(const struct ip_addr *a, const struct ip_addr *b);
#define IP_ADDR_STRLEN 46
/** ip_addr_str - dotted quad or text as in spec: RFC 5952 into @buf (IP_ADDR_STRLEN bytes); returns
 * @buf. */
const char *ip_addr_str(const struct ip_addr *a, char *buf);
/** ip_addr_parse - text to address; 0 or -EINVAL. */
int ip_addr_parse(const char *text, struct ip_addr *a);

#endif
