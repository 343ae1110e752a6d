/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames for the tests of the XDP program and the AF_XDP port. Written out by hand rather than with
 * the project's own builder, so that one mistake cannot cancel the other.
 */
#ifndef LONGHAUL_TESTS_STEER_FRAME_H
#define LONGHAUL_TESTS_STEER_FRAME_H

#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>

#define NO_TAG	 0
#define TAG(vid) ((vid) | 0x10000) /* so that VLAN id 0 is a tag, too */
#define BUF	 16384

/**
 * struct steer_frame - what to build.
 * @src, @dst: text, both of one family
 * @vlan:      tags, outermost first: TAG(vid) or NO_TAG
 * @tpid:      Ethernet type of the outermost tag, 0: 0x8100
 * @len:       of the whole frame, payload filled up; 0: an ACK's 62 bytes and what tags and IPv6
 *             add
 * @options:   IPv4 option words
 * @frag:      IPv4 fragment field, host order
 * @proto:     protocol or next header, 0: UDP
 * @dport:     0: 4791
 * @version:   IP version to write, 0: the right one
 * @ethertype: 0: the right one
 * @qpn:       destination QPN, 0: whatever the filling gives
 */
struct steer_frame {
	const char *src, *dst;
	uint32_t vlan[3];
	uint16_t tpid;
	uint32_t len;
	unsigned int options;
	uint16_t frag;
	uint8_t proto;
	uint16_t dport;
	uint8_t version;
	uint16_t ethertype;
	uint32_t qpn;
};

static inline uint8_t *steer_put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
	return p + 2;
}

/* Build @f into @out (BUF bytes). Returns the length; *@min is how much of it the program must see.
 */
static inline uint32_t steer_frame_build(uint8_t *out, const struct steer_frame *f, uint32_t *min)
{
	int v6 = strchr(f->src, ':') != NULL;
	uint8_t proto = f->proto ? f->proto : 17;
	uint32_t len, l3, i;
	uint8_t *p = out;

	for (i = 0; i < BUF; i++)
		out[i] = (uint8_t)(i * 7 + i / 256);
	memcpy(p, "\x02\x00\x00\x00\x00\x0b\x02\x00\x00\x00\x00\x0a", 12);
	p += 12;
	for (i = 0; i < 3 && f->vlan[i]; i++) {
		p = steer_put16(p, i == 0 && f->tpid ? f->tpid : 0x8100);
		p = steer_put16(p, f->vlan[i] & 0xffff);
	}
	p = steer_put16(p, f->ethertype ? f->ethertype : v6 ? 0x86dd : 0x0800);
	l3 = (uint32_t)(p - out);
	len = f->len ? f->len : l3 + (v6 ? 40 : 20 + 4 * f->options) + 8 + 12 + 4 + 4;
	if (v6) {
		memset(p, 0, 8);
		p[0] = (uint8_t)((f->version ? f->version : 6) << 4);
		steer_put16(p + 4, (uint16_t)(len - l3 - 40));
		p[6] = proto;
		p[7] = 64;
		inet_pton(AF_INET6, f->src, p + 8);
		inet_pton(AF_INET6, f->dst, p + 24);
		p += 40;
	} else {
		memset(p, 0, 20);
		p[0] = (uint8_t)((f->version ? f->version : 4) << 4 | (5 + f->options));
		steer_put16(p + 2, (uint16_t)(len - l3));
		steer_put16(p + 6, f->frag);
		p[8] = 64;
		p[9] = proto;
		inet_pton(AF_INET, f->src, p + 12);
		inet_pton(AF_INET, f->dst, p + 16);
		memset(p + 20, 1, 4 * f->options); /* no-operation options */
		p += 20 + 4 * f->options;
	}
	p = steer_put16(p, 0xc000);
	p = steer_put16(p, f->dport ? f->dport : 4791);
	p = steer_put16(p, (uint16_t)(out + len - (p - 4)));
	p = steer_put16(p, 0);
	if (f->qpn) {
		p[5] = (uint8_t)(f->qpn >> 16);
		steer_put16(p + 6, (uint16_t)f->qpn);
	}
	if (min)
		*min = (uint32_t)(p - out) + 12 + 4;
	return len;
}

#endif
