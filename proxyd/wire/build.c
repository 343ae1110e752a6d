// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Building frames. Every builder clones a template, writes the BTH and what follows, and leaves
 * lengths, checksums and the ICRC to finish(), so that they are right whatever the template's
 * packet was.
 */
#include "wire/build.h"

#include <string.h>

#include "wire/bytes.h"
#include "wire/icrc.h"
#include "wire/psn.h"

#define BTH_MIGREQ   0x40
#define CNP_RESERVED 16
#define CNP_TOS	     0xc2 /* DSCP 48, ECT(0) */

static bool is_ip6(const uint8_t *ip)
{
	return ip[0] >> 4 == 6;
}

void template_learn(struct template *t, const struct frame *f)
{
	uint8_t *ip = t->hdr + f->l3;

	t->l3 = (uint8_t)f->l3;
	t->len = (uint8_t)f->ext;
	memcpy(t->hdr, f->data, f->ext);
	/*
	 * Congestion Experienced is about that packet only. A packet made from the template has met
	 * no congestion yet: it starts as ECT(0), as RoCEv2 senders do.
	 */
	if (is_ip6(ip)) {
		if ((ip[1] & 0x30) == 0x30)
			ip[1] &= 0xef;
	} else if ((ip[1] & 0x03) == 0x03) {
		ip[1] &= 0xfe;
	}
}

static void swap(uint8_t *a, uint8_t *b, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint8_t was = a[i];

		a[i] = b[i];
		b[i] = was;
	}
}

void template_mirror(struct template *t)
{
	uint8_t *ip = t->hdr + t->l3;

	swap(t->hdr, t->hdr + 6, 6);
	/* the IPv4 header checksum stays right: it does not depend on the order */
	if (is_ip6(ip))
		swap(ip + 8, ip + 24, 16);
	else
		swap(ip + 12, ip + 16, 4);
}

/* Copy the template and write the BTH; returns the first byte after it. */
static uint8_t *start(uint8_t *out, const struct template *t, uint8_t opcode, uint32_t dqpn,
		      uint32_t psn)
{
	uint8_t *bth = out + t->len - BTH_LEN;

	memcpy(out, t->hdr, t->len);
	bth[0] = opcode;
	bth[1] &= BTH_MIGREQ;
	/* The byte before the QPN has FECN, BECN and reserved bits; the byte before the PSN has
	 * AckReq.
	 */
	put_be32(bth + 4, dqpn & PSN_MASK);
	put_be32(bth + 8, psn & PSN_MASK);
	return bth + BTH_LEN;
}

/* The lengths and checksums of a frame of @len bytes. */
static void set_length(uint8_t *out, const struct template *t, uint32_t len)
{
	uint8_t *ip = out + t->l3;
	uint8_t *udp = out + t->len - BTH_LEN - 8;

	if (is_ip6(ip)) {
		put_be16(ip + 4, (uint16_t)(len - t->l3 - 40));
	} else {
		put_be16(ip + 2, (uint16_t)(len - t->l3));
		put_be16(ip + 10, 0);
		put_be16(ip + 10, ip4_csum(ip));
	}
	put_be16(udp + 4, (uint16_t)(out + len - udp));
	put_be16(udp + 6, 0);
}

/* @end: place of the ICRC. Returns the frame's length. */
static uint32_t finish(uint8_t *out, const struct template *t, uint8_t *end)
{
	uint32_t len = (uint32_t)(end - out) + ICRC_LEN;

	set_length(out, t, len);
	put_le32(end, icrc_of(out, t->l3, len - ICRC_LEN));
	return len;
}

void template_put(uint8_t *out, const struct template *t, uint16_t id, uint16_t sport, uint32_t len)
{
	memcpy(out, t->hdr, t->len - BTH_LEN);
	if (!is_ip6(out + t->l3))
		put_be16(out + t->l3 + 4, id);
	put_be16(out + t->len - BTH_LEN - 8, sport);
	set_length(out, t, len);
}

static uint8_t *put_aeth(uint8_t *p, uint8_t syndrome, uint32_t msn)
{
	put_be32(p, (uint32_t)syndrome << 24 | (msn & PSN_MASK));
	return p + 4;
}

uint32_t build_ack(uint8_t *out, const struct template *t, uint32_t dqpn, uint32_t psn,
		   uint8_t syndrome, uint32_t msn)
{
	uint8_t *p = start(out, t, OP_ACK, dqpn, psn);

	return finish(out, t, put_aeth(p, syndrome, msn));
}

static void set_tos(uint8_t *ip, uint8_t tos)
{
	if (is_ip6(ip))
		put_be32(ip, (get_be32(ip) & 0xf00fffff) | (uint32_t)tos << 20);
	else
		ip[1] = tos;
}

uint32_t build_cnp(uint8_t *out, const struct template *t, uint32_t dqpn)
{
	uint8_t *p = start(out, t, OP_CNP, dqpn, 0), *bth = p - BTH_LEN;

	set_tos(out + t->l3, CNP_TOS);
	put_be16(bth - 8, 0); /* UDP source port */
	bth[1] = 0;
	bth[4] = 0x40; /* BECN */
	memset(p, 0, CNP_RESERVED);
	return finish(out, t, p + CNP_RESERVED);
}

uint32_t build_packet(uint8_t *out, const struct build_spec *s)
{
	const struct opcode_info *op = opcode_info(s->opcode);
	uint32_t pad = -s->payload_len & 3;
	uint8_t *p = start(out, s->t, s->opcode, s->dqpn, s->psn);
	uint8_t *bth = p - BTH_LEN;

	bth[1] |= (uint8_t)((s->solicited ? 0x80 : 0) | pad << 4);
	bth[8] = s->ackreq ? 0x80 : 0;
	memset(p, 0, op->hdr_len);
	if (op->deth) {
		put_be32(bth + op->deth, s->qkey);
		put_be32(bth + op->deth + 4, s->sqpn & PSN_MASK);
	}
	if (op->feth)
		put_be32(bth + op->feth, s->immdt);
	if (op->reth) {
		put_be64(bth + op->reth, s->va);
		put_be32(bth + op->reth + 8, s->rkey);
		put_be32(bth + op->reth + 12, s->length);
	}
	if (op->atomiceth) {
		put_be64(bth + op->atomiceth, s->va);
		put_be32(bth + op->atomiceth + 8, s->rkey);
		put_be64(bth + op->atomiceth + 12, s->swap_add);
		put_be64(bth + op->atomiceth + 20, s->compare);
	}
	if (op->aeth)
		put_aeth(bth + op->aeth, s->syndrome, s->msn);
	if (op->atomicack)
		put_be64(bth + op->atomicack, s->atomic_value);
	if (op->immdt)
		put_be32(bth + op->immdt, s->immdt);
	if (op->ieth)
		put_be32(bth + op->ieth, s->immdt);
	if (op->headers & (HDR_PUSH | HDR_MEMBERS) && s->push)
		memcpy(p, s->push, op->hdr_len);
	p += op->hdr_len;
	if (s->payload_len)
		memcpy(p, s->payload, s->payload_len);
	memset(p + s->payload_len, 0, pad);
	return finish(out, s->t, p + s->payload_len + pad);
}

void template_make(struct template *t, const uint8_t smac[6], const uint8_t dmac[6], uint16_t vlan,
		   const struct ip_addr *src, const struct ip_addr *dst, uint16_t sport)
{
	bool v4 = ip_addr_is_v4(dst);
	uint8_t *p = t->hdr;

	memset(t, 0, sizeof(*t));
	memcpy(p, dmac, 6);
	memcpy(p + 6, smac, 6);
	p += 12;
	if (vlan != FRAME_VLAN_NONE) {
		put_be16(p, 0x8100);
		put_be16(p + 2, vlan);
		p += 4;
	}
	put_be16(p, v4 ? 0x0800 : 0x86dd);
	p += 2;
	t->l3 = (uint8_t)(p - t->hdr);
	if (v4) {
		p[0] = 0x45;
		put_be16(p + 6, 0x4000); /* DF */
		p[8] = 64;
		p[9] = 17;
		memcpy(p + 12, src->b + 12, 4);
		memcpy(p + 16, dst->b + 12, 4);
		p += 20;
	} else {
		p[0] = 0x60;
		p[6] = 17;
		p[7] = 64;
		memcpy(p + 8, src->b, 16);
		memcpy(p + 24, dst->b, 16);
		p += 40;
	}
	put_be16(p, sport);
	put_be16(p + 2, ROCE_UDP_PORT);
	p += 8;
	p[1] = BTH_MIGREQ;
	put_be16(p + 2, 0xffff);
	t->len = (uint8_t)(p + BTH_LEN - t->hdr);
}
