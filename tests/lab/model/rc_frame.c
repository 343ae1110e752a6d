// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <string.h>

#include "tests/lab/model/rc_frame.h"

void rc_header_init(struct rc_header *h, const uint8_t smac[6], const uint8_t dmac[6],
		    uint16_t vlan, const struct ip_addr *src, const struct ip_addr *dst,
		    uint16_t sport)
{
	uint8_t *p = h->hdr;
	uint8_t *ip;

	memset(h, 0, sizeof(*h));
	memcpy(p, dmac, 6);
	memcpy(p + 6, smac, 6);
	p += 12;
	if (vlan != FRAME_VLAN_NONE) {
		put_be16(p, 0x8100);
		put_be16(p + 2, vlan);
		p += 4;
	}
	h->ip6 = !ip_addr_is_v4(src);
	put_be16(p, h->ip6 ? 0x86dd : 0x0800);
	p += 2;
	h->l3 = (uint8_t)(p - h->hdr);
	ip = p;
	if (h->ip6) {
		ip[0] = 0x60;
		ip[6] = 17;
		ip[7] = 64;
		memcpy(ip + 8, src->b, 16);
		memcpy(ip + 24, dst->b, 16);
		p += 40;
	} else {
		ip[0] = 0x45;
		ip[6] = 0x40; /* DF */
		ip[8] = 64;
		ip[9] = 17;
		memcpy(ip + 12, src->b + 12, 4);
		memcpy(ip + 16, dst->b + 12, 4);
		for (int i = 0; i < 20; i += 2)
			h->ip_sum += get_be16(ip + i);
		p += 20;
	}
	put_be16(p, sport);
	put_be16(p + 2, ROCE_UDP_PORT);
	p += 8;
	h->len = (uint8_t)(p - h->hdr);
}

static void finish_ipv4(struct rc_header *h, uint8_t *ip, uint32_t total)
{
	uint32_t sum = h->ip_sum + total + h->ip_id;

	put_be16(ip + 2, (uint16_t)total);
	put_be16(ip + 4, h->ip_id++);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	put_be16(ip + 10, (uint16_t)~sum);
}

uint32_t rc_frame_head(uint8_t *out, struct rc_header *h, const struct rc_frame_spec *s,
		       uint32_t *crc)
{
	uint32_t pad = -s->payload_len & 3;
	uint32_t udp_len = 8 + BTH_LEN + s->ext_len + s->payload_len + pad + ICRC_LEN;
	uint32_t l4 = h->len - 8u, off = h->len + BTH_LEN + s->ext_len;
	uint8_t *ip = out + h->l3, *udp = out + l4, *bth = out + h->len;
	uint8_t masked[8 + 40 + 8 + BTH_LEN + 28];
	uint32_t n = 8 + off - h->l3;

	memcpy(out, h->hdr, h->len);
	if (h->ip6)
		put_be16(ip + 4, (uint16_t)udp_len);
	else
		finish_ipv4(h, ip, 20 + udp_len);
	put_be16(udp + 4, (uint16_t)udp_len);

	bth[0] = s->opcode;
	bth[1] = (uint8_t)(pad << 4 | (s->solicited ? 0x80 : 0) | (h->migreq ? 0x40 : 0));
	put_be16(bth + 2, 0xffff);
	put_be32(bth + 4, s->dqpn);
	put_be32(bth + 8, s->psn | (s->ackreq ? 0x80000000u : 0));
	memcpy(bth + BTH_LEN, s->ext, s->ext_len);

	/* The same headers with what routers may change set to ones. */
	memset(masked, 0xff, 8);
	memcpy(masked + 8, ip, n - 8);
	if (h->ip6) {
		masked[8] |= 0x0f;
		masked[9] = masked[10] = masked[11] = 0xff;
		masked[8 + 7] = 0xff;
	} else {
		masked[8 + 1] = masked[8 + 8] = masked[8 + 10] = masked[8 + 11] = 0xff;
	}
	masked[8 + l4 - h->l3 + 6] = masked[8 + l4 - h->l3 + 7] = 0xff;
	masked[8 + h->len - h->l3 + 4] = 0xff;
	*crc = crc32_update(CRC32_INIT, masked, n);
	return off;
}

uint32_t rc_frame_tail(uint8_t *out, uint32_t off, uint32_t payload_len, uint32_t crc)
{
	uint32_t pad = -payload_len & 3;
	uint8_t *end = out + off + payload_len;

	if (pad) {
		memset(end, 0, pad);
		crc = crc32_update(crc, end, pad);
	}
	put_le32(end + pad, ~crc);
	return off + payload_len + pad + ICRC_LEN;
}
