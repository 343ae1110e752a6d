// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The frame parser. Theory of operation:
 *
 * Lengths count only if they agree: the frame must hold the length in the IP header (the rest is
 * Ethernet padding, and cut off), the UDP length must equal the IP payload, and the bytes between
 * the opcode's headers and the ICRC must be whole words, not less than the pad, not more than the
 * largest path MTU. After that no reader of the view needs a bounds check, and no accepted frame is
 * longer than FRAME_MAX.
 *
 * A frame is FRAME_NOT_ROCE unless its UDP port is that of RoCEv2; then it is RoCEv2, good or bad.
 * Every proper prefix of a good frame is FRAME_TRUNCATED.
 *
 * The IPv4 header checksum is verified in addition to the ICRC, since it covers the fields that the
 * ICRC masks. A frame that its receiver drops for a wrong checksum, however often it is
 * retransmitted, must never be taken into custody.
 *
 * One VLAN tag (0x8100) is understood, and is part of a connection's key. Frames with two, or with
 * a service tag (0x88a8), are FRAME_NOT_ROCE: the networks of two customers may have the same
 * addresses and queue pair numbers behind the same outer tag.
 *
 * This runs once per packet: one pass, offsets from the opcode's row, no loop.
 *
 * row: ENG-1
 */
#include "wire/frame.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "wire/icrc.h"

#define ETHERTYPE_IP4 0x0800
#define ETHERTYPE_IP6 0x86dd
#define IP4_HLEN      20
#define IP6_HLEN      40
#define UDP_HLEN      8
#define IPPROTO_UDP_  17

/* From the UDP header on, the same for both IP versions. @end: where the IP packet ends. */
static inline enum frame_verdict parse_udp(const uint8_t *data, uint32_t l4, uint32_t end,
					   struct frame *f)
{
	uint32_t bth = l4 + UDP_HLEN;
	const struct opcode_info *op;
	uint32_t payload, icrc, rest;
	const uint8_t *b;

	if (end < bth + BTH_LEN + ICRC_LEN)
		return FRAME_TRUNCATED;
	if (get_be16(data + l4 + 4) != end - l4)
		return FRAME_BAD_LENGTH;
	icrc = end - ICRC_LEN;
	if (icrc - bth > BTH_LEN + FRAME_EXT_MAX + PAYLOAD_MAX)
		return FRAME_BAD_LENGTH;

	b = data + bth;
	if (b[1] & 0x0f)
		return FRAME_BAD_VERSION;
	op = opcode_info(b[0]);
	f->data = data;
	f->len = end;
	f->l4 = (uint16_t)l4;
	f->bth = (uint16_t)bth;
	f->ext = (uint16_t)(bth + BTH_LEN);
	f->icrc = (uint16_t)icrc;
	f->op = op;
	f->sport = get_be16(data + l4);
	f->opcode = b[0];
	f->solicited = b[1] & 0x80;
	f->migreq = b[1] & 0x40;
	f->pad = b[1] >> 4 & 3;
	f->pkey = get_be16(b + 2);
	f->fecn = b[4] & 0x80;
	f->becn = b[4] & 0x40;
	f->dqpn = get_be32(b + 4) & 0xffffff;
	f->ackreq = b[8] & 0x80;
	f->psn = get_be32(b + 8) & 0xffffff;
	f->seal = f->icrc_right = 0;
	if (!op->name)
		return FRAME_UNKNOWN_OPCODE;

	f->reth = op->reth ? (uint16_t)(bth + op->reth) : 0;
	f->aeth = op->aeth ? (uint16_t)(bth + op->aeth) : 0;
	f->atomiceth = op->atomiceth ? (uint16_t)(bth + op->atomiceth) : 0;
	f->atomicack = op->atomicack ? (uint16_t)(bth + op->atomicack) : 0;
	f->immdt = op->immdt ? (uint16_t)(bth + op->immdt) : 0;
	f->ieth = op->ieth ? (uint16_t)(bth + op->ieth) : 0;
	f->deth = op->deth ? (uint16_t)(bth + op->deth) : 0;
	payload = bth + BTH_LEN + op->hdr_len;
	f->payload = (uint16_t)payload;
	if (icrc < payload)
		return FRAME_TRUNCATED;
	rest = icrc - payload;
	f->payload_len = rest - f->pad;
	if ((rest & 3) || rest < f->pad)
		return FRAME_BAD_PAD;
	if (rest && !(op->flags & OPF_PAYLOAD))
		return FRAME_BAD_LENGTH;
	/* Headers of other transports may count as payload; RC and UD must respect the path MTU. */
	if (f->payload_len > PAYLOAD_MAX && (op->flags & OPF_RC || op->deth))
		return FRAME_BAD_LENGTH;
	return FRAME_OK;
}

static inline enum frame_verdict parse_ip4(const uint8_t *data, uint32_t len, uint32_t l3,
					   struct frame *f)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	const uint8_t *ip = data + l3;
	uint32_t l4 = l3 + IP4_HLEN;
	uint32_t end;

	if (len < l4)
		return FRAME_TRUNCATED;
	/* Version 4, no options; UDP; no fragment. */
	if (ip[0] != 0x45 || ip[9] != IPPROTO_UDP_ || (get_be16(ip + 6) & 0x3fff))
		return FRAME_NOT_ROCE;
	if (len < l4 + UDP_HLEN)
		return FRAME_TRUNCATED;
	if (get_be16(data + l4 + 2) != ROCE_UDP_PORT)
		return FRAME_NOT_ROCE;
	end = l3 + get_be16(ip + 2);
	if (len < end)
		return FRAME_TRUNCATED;
	if (ip4_csum(ip))
		return FRAME_BAD_CHECKSUM;
	f->ip6 = false;
	memcpy(f->src.b, mapped, 12);
	memcpy(f->src.b + 12, ip + 12, 4);
	memcpy(f->dst.b, mapped, 12);
	memcpy(f->dst.b + 12, ip + 16, 4);
	return parse_udp(data, l4, end, f);
}

static inline enum frame_verdict parse_ip6(const uint8_t *data, uint32_t len, uint32_t l3,
					   struct frame *f)
{
	const uint8_t *ip = data + l3;
	uint32_t l4 = l3 + IP6_HLEN;
	uint32_t end;

	if (len < l4)
		return FRAME_TRUNCATED;
	/* Next header is not UDP: an extension header, perhaps of a fragment. */
	if (ip[0] >> 4 != 6 || ip[6] != IPPROTO_UDP_)
		return FRAME_NOT_ROCE;
	if (len < l4 + UDP_HLEN)
		return FRAME_TRUNCATED;
	if (get_be16(data + l4 + 2) != ROCE_UDP_PORT)
		return FRAME_NOT_ROCE;
	end = l4 + get_be16(ip + 4);
	if (len < end)
		return FRAME_TRUNCATED;
	f->ip6 = true;
	memcpy(f->src.b, ip + 8, 16);
	memcpy(f->dst.b, ip + 24, 16);
	return parse_udp(data, l4, end, f);
}

enum frame_verdict frame_parse(const uint8_t *data, uint32_t len, struct frame *f)
{
	uint32_t l3 = ETH_HLEN_;
	uint16_t vlan = FRAME_VLAN_NONE;
	uint16_t type;

	if (len < ETH_HLEN_)
		return FRAME_TRUNCATED;
	type = get_be16(data + 12);
	if (__builtin_expect(type == ETHERTYPE_CTAG, 0)) {
		if (len < ETH_HLEN_ + VLAN_HLEN_)
			return FRAME_TRUNCATED;
		vlan = get_be16(data + 14) & 0xfff;
		type = get_be16(data + 16);
		l3 += VLAN_HLEN_;
		if (!vlan)
			vlan = FRAME_VLAN_NONE; /* a priority tag */
	}
	f->vlan = vlan;
	f->l3 = (uint16_t)l3;
	if (type == ETHERTYPE_IP4)
		return parse_ip4(data, len, l3, f);
	if (type == ETHERTYPE_IP6)
		return parse_ip6(data, len, l3, f);
	return FRAME_NOT_ROCE;
}

bool frame_hosts(const uint8_t *data, uint32_t len, struct ip_addr *src, struct ip_addr *dst)
{
	bool tagged = len >= ETH_HLEN_ && get_be16(data + 12) == ETHERTYPE_CTAG;
	uint32_t l3 = ETH_HLEN_ + (tagged ? VLAN_HLEN_ : 0);

	if (len >= l3 + IP4_HLEN && get_be16(data + l3 - 2) == ETHERTYPE_IP4) {
		*src = ip_addr_v4(data + l3 + 12);
		*dst = ip_addr_v4(data + l3 + 16);
		return true;
	}
	if (len < l3 + IP6_HLEN || get_be16(data + l3 - 2) != ETHERTYPE_IP6)
		return false;
	memcpy(src->b, data + l3 + 8, 16);
	memcpy(dst->b, data + l3 + 24, 16);
	return true;
}

void frame_set_dscp(const struct frame *f, uint8_t *data, uint8_t dscp)
{
	uint8_t *ip = data + f->l3;
	uint32_t v6 = get_be32(ip);

	if (f->ip6) {
		put_be32(ip, (v6 & 0xf03fffff) | (uint32_t)dscp << 22);
		return;
	}
	ip[1] = (uint8_t)(dscp << 2 | (ip[1] & 3));
	put_be16(ip + 10, 0);
	put_be16(ip + 10, ip4_csum(ip));
}

const char *frame_verdict_name(enum frame_verdict v)
{
	static const char *const names[FRAME_VERDICTS] = {
		[FRAME_OK] = "ok",
		[FRAME_NOT_ROCE] = "not-roce",
		[FRAME_TRUNCATED] = "truncated",
		[FRAME_BAD_LENGTH] = "bad-length",
		[FRAME_BAD_PAD] = "bad-pad",
		[FRAME_BAD_VERSION] = "bad-version",
		[FRAME_UNKNOWN_OPCODE] = "unknown-opcode",
		[FRAME_BAD_CHECKSUM] = "bad-checksum",
	};

	return (unsigned int)v < FRAME_VERDICTS ? names[v] : "invalid";
}

uint32_t frame_span(const struct frame *f, uint32_t pmtu)
{
	uint32_t length;

	if (f->opcode != OP_READ_REQUEST)
		return 1;
	length = frame_reth_length(f);
	/* Not (length + pmtu - 1) / pmtu: the sender chooses the length, which may be close to
	 * 2^32. */
	return length ? (length - 1) / pmtu + 1 : 1;
}

uint64_t aeth_rnr_ns(uint8_t code)
{
	/* In units of 10 us; code 0 is the longest. */
	static const uint32_t delay[32] = {
		65536, 1,    2,	   3,	 4,    6,     8,     12,    16,	   24,	  32,
		48,    64,   96,   128,	 192,  256,   384,   512,   768,   1024,  1536,
		2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
	};

	return delay[code & 31] * 10000ull;
}

static uint64_t ip_hash(const struct ip_addr *a)
{
	uint64_t h = get_be64(a->b) * 0xc2b2ae3d27d4eb4fu ^ get_be64(a->b + 8);

	h = (h ^ h >> 32) * 0x9e3779b97f4a7c15u;
	return (h ^ h >> 29) * 0xc2b2ae3d27d4eb4fu;
}

/* Each address is mixed first: sites number their hosts alike, and the exclusive or of .1.5 with
 * .2.5 is that of .1.6 with .2.6. */
uint64_t ip_pair_hash(const struct ip_addr *a, const struct ip_addr *b)
{
	uint64_t h = ip_hash(a) + ip_hash(b);

	return (h ^ h >> 32) * 0x9e3779b97f4a7c15u;
}

struct ip_addr ip_addr_v4(const uint8_t *be4)
{
	struct ip_addr a = {.b = {[10] = 0xff, [11] = 0xff}};

	memcpy(a.b + 12, be4, 4);
	return a;
}

bool ip_addr_is_v4(const struct ip_addr *a)
{
	return get_be64(a->b) == 0 && get_be32(a->b + 8) == 0xffff;
}

bool ip_addr_eq(const struct ip_addr *a, const struct ip_addr *b)
{
	return !memcmp(a->b, b->b, sizeof(a->b));
}

const char *ip_addr_str(const struct ip_addr *a, char *buf)
{
	/* Cannot fail: both families are known and the buffer holds the longest text. */
	if (ip_addr_is_v4(a))
		inet_ntop(AF_INET, a->b + 12, buf, IP_ADDR_STRLEN);
	else
		inet_ntop(AF_INET6, a->b, buf, IP_ADDR_STRLEN);
	return buf;
}

int ip_addr_parse(const char *text, struct ip_addr *a)
{
	uint8_t v4[4];

	if (inet_pton(AF_INET, text, v4) == 1) {
		*a = ip_addr_v4(v4);
		return 0;
	}
	return inet_pton(AF_INET6, text, a->b) == 1 ? 0 : -EINVAL;
}
