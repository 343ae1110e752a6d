// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The invariant CRC. Theory of operation:
 *
 * The covered bytes are 8 of ones, the IP header, UDP header and BTH with some fields set to ones,
 * and the rest unchanged. The first part is short and of two lengths only, so it is masked in a
 * small buffer; the rest is one run of bytes, read once.
 *
 * A check runs over the stored ICRC as well: a CRC that is appended complemented and little-endian
 * leaves the same register (CRC32_GOOD) after every message. So the copy, the check and the
 * compared value come from one pass, and nothing is read from the source twice.
 *
 * If a header byte must change (icrc_patch), the ICRC is not recomputed, because that would hide
 * earlier damage to the payload. CRC is linear: the register of (old xor new), shifted by the
 * remaining length, is the difference between the two CRCs; initial value and complement cancel.
 */
#include "wire/icrc.h"

#include <string.h>

#include "wire/bytes.h"
#include "wire/crc32.h"
#include "wire/must.h"

#define CRC32_GOOD 0xdebb20e3u
#define PATCH_MAX  24

uint16_t ip4_csum(const uint8_t *ip)
{
	uint64_t sum = 0;
	uint32_t w[5];

	memcpy(w, ip, sizeof(w));
	for (int i = 0; i < 5; i++)
		sum += w[i];
	sum = (sum >> 32) + (sum & 0xffffffff);
	sum = (sum >> 16) + (sum & 0xffff);
	sum = (sum >> 16) + (sum & 0xffff);
	sum = (sum >> 16) + (sum & 0xffff);
	/* The sum is in memory order. */
	w[0] = (uint16_t)~sum;
	return (uint16_t)(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
				  ? __builtin_bswap16((uint16_t)w[0])
				  : w[0]);
}

/*
 * The covered bytes before the extended headers, right-aligned in 64. The initial register turns
 * the first four bytes of ones to zeros, which need no room: so IPv6 fits exactly.
 */
#define LEAD	   64
#define IP4_TO_BTH (20 + 8 + 12)
#define IP6_TO_BTH (40 + 8 + 12)

static void make_lead(uint8_t *lead, const uint8_t *ip)
{
	/* The other four ones; TOS, TTL, header checksum; UDP checksum; BTH byte 4. */
	static const uint8_t ones4[LEAD] = {
		[20] = 0xff, [21] = 0xff, [22] = 0xff, [23] = 0xff, [25] = 0xff, [32] = 0xff,
		[34] = 0xff, [35] = 0xff, [50] = 0xff, [51] = 0xff, [56] = 0xff};
	/* The other four ones; traffic class and flow label; hop limit; UDP checksum; BTH byte 4.
	 */
	static const uint8_t ones6[LEAD] = {
		[0] = 0xff, [1] = 0xff, [2] = 0xff,  [3] = 0xff,  [4] = 0x0f,  [5] = 0xff,
		[6] = 0xff, [7] = 0xff, [11] = 0xff, [50] = 0xff, [51] = 0xff, [56] = 0xff};
	uint64_t v, ones;

	if (ip[0] >> 4 == 4) {
		memcpy(lead, ones4, LEAD - IP4_TO_BTH);
		for (int i = 0; i < IP4_TO_BTH; i += 8) {
			memcpy(&v, ip + i, 8);
			memcpy(&ones, ones4 + LEAD - IP4_TO_BTH + i, 8);
			v |= ones;
			memcpy(lead + LEAD - IP4_TO_BTH + i, &v, 8);
		}
	} else {
		memcpy(lead + LEAD - IP6_TO_BTH, ip, IP6_TO_BTH);
		memset(lead, 0, LEAD - IP6_TO_BTH);
		for (int i = 0; i < LEAD; i += 8) {
			memcpy(&v, lead + i, 8);
			memcpy(&ones, ones6 + i, 8);
			v |= ones;
			memcpy(lead + i, &v, 8);
		}
	}
}

uint32_t icrc_of(const uint8_t *data, uint32_t l3, uint32_t end)
{
	uint32_t ext = l3 + (data[l3] >> 4 == 4 ? IP4_TO_BTH : IP6_TO_BTH);
	uint8_t lead[LEAD];

	make_lead(lead, data + l3);
	return ~crc32_lead(lead, NULL, data + ext, end - ext);
}

uint32_t icrc_compute(const struct frame *f)
{
	return icrc_of(f->data, f->l3, f->icrc);
}

bool icrc_ok(const struct frame *f)
{
	uint8_t lead[LEAD];

	if (f->icrc_right)
		return true;
	make_lead(lead, f->data + f->l3);
	return crc32_lead(lead, NULL, f->data + f->ext, f->len - f->ext) == CRC32_GOOD;
}

bool icrc_copy_ok(uint8_t *dst, const struct frame *f)
{
	uint8_t lead[LEAD];

	if (f->icrc_right) {
		memcpy(dst, f->data, f->len);
		return true;
	}
	memcpy(dst, f->data, f->ext);
	/* From here on the compiler must read the headers from the copy. */
	__asm__ volatile("" ::: "memory");
	make_lead(lead, dst + f->l3);
	return crc32_lead(lead, dst + f->ext, f->data + f->ext, f->len - f->ext) == CRC32_GOOD;
}

uint32_t icrc_print(const struct frame *f)
{
	uint32_t content = ~get_le32(f->data + f->icrc);
	uint8_t lead[LEAD];

	make_lead(lead, f->data + f->l3);
	content ^= crc32_shift(crc32_lead(lead, NULL, NULL, 0), f->icrc - f->ext);
	return content ^ f->psn ^ (uint32_t)f->opcode << 24;
}

void icrc_fill(uint8_t *data, const struct frame *f)
{
	put_le32(data + f->icrc, icrc_of(data, f->l3, f->icrc));
}

/* Update @sum for a change of one byte at an even or odd distance from the first covered one (spec:
 * RFC 1624). */
static uint32_t csum_follow(uint32_t sum, uint32_t odd, uint8_t was, uint8_t is)
{
	uint32_t shift = odd ? 0 : 8;

	return sum + (((uint32_t)(uint8_t)~was << shift) | (odd ? 0xff00u : 0xffu)) +
	       ((uint32_t)is << shift);
}

void icrc_patch(uint8_t *data, const struct frame *f, uint32_t off, uint32_t n,
		const uint8_t *bytes)
{
	uint16_t udp_csum = get_be16(data + f->l4 + 6);
	/* The UDP checksum covers the addresses, too. */
	uint32_t udp_from = f->l3 + (f->ip6 ? 8 : 12);
	uint32_t sum = (uint16_t)~udp_csum;
	uint32_t was = get_le32(data + f->icrc);
	uint8_t diff[PATCH_MAX];
	uint32_t is;

	must(n <= PATCH_MAX && off >= f->l3 && off + n <= f->icrc);
	for (uint32_t i = 0; i < n; i++) {
		diff[i] = data[off + i] ^ bytes[i];
		if (off + i >= udp_from)
			sum = csum_follow(sum, (off + i - udp_from) & 1, data[off + i], bytes[i]);
		data[off + i] = bytes[i];
	}
	is = was ^ crc32_shift(crc32_update(0, diff, n), f->icrc - off - n);
	put_le32(data + f->icrc, is);
	if (!f->ip6 && off < f->l4) {
		put_be16(data + f->l3 + 10, 0);
		put_be16(data + f->l3 + 10, ip4_csum(data + f->l3));
	}
	if (udp_csum) {
		for (uint32_t i = 0; i < ICRC_LEN; i++)
			sum = csum_follow(sum, (f->icrc + i - udp_from) & 1,
					  (uint8_t)(was >> 8 * i), (uint8_t)(is >> 8 * i));
		sum = (sum >> 16) + (sum & 0xffff);
		sum = (sum >> 16) + (sum & 0xffff);
		/* 0 would mean: no checksum. */
		put_be16(data + f->l4 + 6, sum == 0xffff ? 0xffff : (uint16_t)~sum);
	}
}

const uint8_t *icrc_with_ackreq(uint8_t *out, struct frame *f)
{
	uint8_t b = f->data[f->bth + 8u] | 0x80;

	if (f->data != out)
		memcpy(out, f->data, f->len);
	f->data = out;
	icrc_patch(out, f, f->bth + 8u, 1, &b);
	return out;
}
