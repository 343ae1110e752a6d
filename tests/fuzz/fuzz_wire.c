// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The frame parser, the ICRC and the builders. 32 bytes of parameters, then a frame. Bits of the
 * first byte say how the frame is made:
 *
 *	0x03	 0: the bytes as they are. 1: the frame's IP and UDP lengths and its IPv4 checksum
 *	are made
 *		 right first, since hardly anything random gets past them. 2: its ICRC and UDP
 *		 checksum, too. 3: a packet built from the parameters, the bytes are its payload
 *
 * Besides that nothing crashes: every field and offset of an accepted frame equals what a plain
 * reading of its bytes says; what was parsed and is built again is the same frame; every prefix of
 * it is refused; the ICRC equals that of a slow reference, in all kernels, with and without the
 * copy; a patch by difference keeps right checksums right and wrong ones wrong.
 */
#include "tests/fuzz/input.h"
#include "tests/unit/wire_util.h"
#include "wire/bytes.h"
#include "wire/crc32.h"
#include "wire/icrc.h"
#include "wire/psn.h"

#define PARAMS 32

/* ---- references, as plain as can be ---- */

static uint32_t ref_crc(uint32_t reg, const uint8_t *p, size_t len)
{
	static uint32_t table[256];

	if (!table[1])
		for (uint32_t i = 0; i < 256; i++) {
			uint32_t r = i;

			for (int bit = 0; bit < 8; bit++)
				r = r & 1 ? r >> 1 ^ 0xedb88320u : r >> 1;
			table[i] = r;
		}
	while (len--)
		reg = reg >> 8 ^ table[(reg ^ *p++) & 0xff];
	return reg;
}

static uint32_t ref_icrc(const uint8_t *data, const struct frame *f)
{
	uint8_t head[8 + 40 + 8 + BTH_LEN];
	uint32_t n = f->bth + BTH_LEN - f->l3;
	uint8_t *ip = head + 8, *udp = ip + (f->l4 - f->l3);

	memset(head, 0xff, 8);
	memcpy(ip, data + f->l3, n);
	if (f->ip6) {
		ip[0] |= 0x0f;
		memset(ip + 1, 0xff, 3);
		ip[7] = 0xff;
	} else {
		ip[1] = 0xff;
		ip[8] = 0xff;
		memset(ip + 10, 0xff, 2);
	}
	memset(udp + 6, 0xff, 2);
	udp[8 + 4] = 0xff;
	return ~ref_crc(ref_crc(0xffffffff, head, 8 + n), data + f->ext, f->icrc - f->ext);
}

/* The ones' complement sum of 16-bit words, folded, with 0 for its two zeros. */
static uint32_t ref_sum(const uint8_t *p, uint32_t len)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < len; i++)
		sum += i & 1 ? p[i] : (uint32_t)p[i] << 8;
	return sum % 0xffff;
}

/* Of the UDP datagram with its pseudo header; 0 when a checksum in it is right. */
static uint32_t ref_udp_sum(const uint8_t *data, const struct frame *f)
{
	uint32_t from = f->l3 + (f->ip6 ? 8 : 12);

	return (ref_sum(data + from, f->len - from) + 17 + (f->len - f->l4)) % 0xffff;
}

/* Where the extended headers stand, by their order and sizes (not the parser's table of distances).
 * */
static void check_headers(const struct frame *f)
{
	const struct {
		uint16_t bit, size;
		uint32_t at;
	} h[] = {
		{HDR_DETH, 8, f->deth},
		{HDR_FETH, 4, 0},
		{HDR_RETH, 16, f->reth},
		{HDR_ATOMICETH, 28, f->atomiceth},
		{HDR_MASKS, 16, 0},
		{HDR_AETH, 4, f->aeth},
		{HDR_ATOMICACK, 8, f->atomicack},
		{HDR_IMMDT, 4, f->immdt},
		{HDR_IETH, 4, f->ieth},
		{HDR_CNPPAD, 16, 0},
		{HDR_PUSH, 16, 0},
		{HDR_PROOF, 8, 0},
		{HDR_MEMBERS, 48, 0},
	};
	uint32_t at = f->ext;

	for (size_t i = 0; i < sizeof(h) / sizeof(h[0]); i++) {
		if (!(h[i].bit &
		      (HDR_FETH | HDR_MASKS | HDR_CNPPAD | HDR_PUSH | HDR_PROOF | HDR_MEMBERS)))
			NEED(h[i].at == (f->op->headers & h[i].bit ? at : 0));
		if (f->op->headers & h[i].bit)
			at += h[i].size;
	}
	NEED(f->payload == at);
}

static void check_view(const uint8_t *d, uint32_t len, const struct frame *f)
{
	const uint8_t *bth = d + f->bth;

	NEED(f->data == d && f->len <= len && f->len <= UINT16_MAX);
	NEED(f->l3 == 14 || f->l3 == 18 || f->l3 == 22);
	NEED((f->vlan == FRAME_VLAN_NONE) ==
	     (f->l3 == 14 || (f->l3 == 18 && !(get_be16(d + 14) & 0xfff))));
	NEED(f->vlan == FRAME_VLAN_NONE || f->vlan < 4096);
	NEED(f->ip6 == (d[f->l3] >> 4 == 6));
	NEED(f->l4 == f->l3 + (f->ip6 ? 40 : 20) && f->bth == f->l4 + 8 && f->ext == f->bth + 12);
	NEED(f->icrc + 4u == f->len && f->payload + f->payload_len + f->pad == f->icrc);
	NEED(get_be16(d + f->l4 + 4) == f->len - f->l4 && get_be16(d + f->l4 + 2) == 4791);
	NEED(f->sport == get_be16(d + f->l4));
	NEED(ip_addr_is_v4(&f->src) >= !f->ip6 && ip_addr_is_v4(&f->dst) >= !f->ip6);
	NEED(!memcmp(f->src.b + (f->ip6 ? 0 : 12), d + f->l3 + (f->ip6 ? 8 : 12), f->ip6 ? 16 : 4));
	NEED(!memcmp(f->dst.b + (f->ip6 ? 0 : 12), d + f->l3 + (f->ip6 ? 24 : 16),
		     f->ip6 ? 16 : 4));
	if (!f->ip6)
		NEED(ref_sum(d + f->l3, 20) == 0);
	NEED(f->opcode == bth[0] && f->op == opcode_info(bth[0]) && f->op->name);
	NEED(f->solicited == !!(bth[1] & 0x80) && f->migreq == !!(bth[1] & 0x40));
	NEED(f->pad == (bth[1] >> 4 & 3) && !(bth[1] & 15));
	NEED(f->pkey == get_be16(bth + 2) && f->dqpn == get_be24(bth + 5));
	NEED(f->fecn == !!(bth[4] & 0x80) && f->becn == !!(bth[4] & 0x40));
	NEED(f->ackreq == !!(bth[8] & 0x80) && f->psn == get_be24(bth + 9));
	check_headers(f);
	if (f->op->flags & OPF_RC)
		NEED(f->payload_len <= PAYLOAD_MAX && f->len <= FRAME_MAX);
	if (!(f->op->flags & OPF_PAYLOAD))
		NEED(!f->payload_len && !f->pad);
	if (f->reth)
		NEED(frame_reth_va(f) == get_be64(d + f->reth) &&
		     frame_reth_rkey(f) == get_be32(d + f->reth + 8) &&
		     frame_reth_length(f) == get_be32(d + f->reth + 12));
	if (f->aeth) {
		uint8_t s = frame_aeth_syndrome(f);

		NEED(s == d[f->aeth] && frame_aeth_msn(f) == get_be24(d + f->aeth + 1));
		NEED(aeth_is_ack(s) + aeth_is_rnr(s) + aeth_is_nak(s) <= 1);
		NEED(aeth_rnr_ns(s) >= 10000 && aeth_rnr_ns(s) <= 655360000);
	}
	if (f->immdt)
		NEED(frame_immdt(f) == get_be32(d + f->immdt));
	for (uint32_t mtu = 256; mtu <= 4096; mtu *= 2) {
		uint64_t n = f->opcode == OP_READ_REQUEST ? frame_reth_length(f) : 0;

		NEED(frame_span(f, mtu) == (n > mtu ? (n + mtu - 1) / mtu : 1));
	}
}

static void check_addresses(const struct frame *f)
{
	char text[IP_ADDR_STRLEN];
	struct ip_addr a;

	NEED(ip_addr_parse(ip_addr_str(&f->src, text), &a) == 0 && ip_addr_eq(&a, &f->src));
	NEED(ip_addr_parse(ip_addr_str(&f->dst, text), &a) == 0 && ip_addr_eq(&a, &f->dst));
}

static void check_prefix(const uint8_t *data, uint32_t len)
{
	uint8_t *cut = block_of(data, len);
	struct frame f;

	NEED(frame_parse(cut, len, &f) == FRAME_TRUNCATED);
	free(cut);
}

static void check_icrc(const uint8_t *data, const struct frame *f)
{
	uint32_t want = ref_icrc(data, f);
	bool right = get_le32(data + f->icrc) == want;
	uint8_t *copy = malloc(f->len), *all = block_of(data, f->len);
	struct frame again;

	NEED(copy);
	for (int k = CRC32_LIBRARY; k < CRC32_KERNELS; k++) {
		if (!crc32_use((enum crc32_kernel)k))
			continue;
		NEED(icrc_compute(f) == want && icrc_of(data, f->l3, f->icrc) == want);
		NEED(icrc_ok(f) == right);
		memset(copy, 0xa5, f->len);
		NEED(icrc_copy_ok(copy, f) == right);
		NEED(memcmp(copy, data, f->len) == 0);
	}
	/* filled in: right, and nothing else is touched */
	NEED(frame_parse(all, f->len, &again) == FRAME_OK);
	icrc_fill(all, &again);
	NEED(icrc_ok(&again) && memcmp(all, data, f->icrc) == 0);
	free(all);
	free(copy);
}

/* What a builder does not keep: reserved bits, checksums that it makes anew, congestion marks. */
static void normalize(uint8_t *d, const struct frame *f)
{
	uint8_t *ip = d + f->l3, *bth = d + f->bth;

	if (f->opcode == OP_CNP && f->ip6)
		put_be32(ip, (get_be32(ip) & 0xf00fffff) | 0xc2u << 20);
	else if (f->opcode == OP_CNP)
		ip[1] = 0xc2;
	if (f->ip6 && (ip[1] & 0x30) == 0x30)
		ip[1] &= 0xef;
	if (!f->ip6) {
		if ((ip[1] & 3) == 3)
			ip[1] &= 0xfe;
		put_be16(ip + 10, 0);
		put_be16(ip + 10, (uint16_t)~ref_sum(ip, 20));
	}
	put_be16(d + f->l4 + 6, 0);
	bth[4] = f->opcode == OP_CNP ? 0x40 : 0;
	bth[8] &= 0x80;
	if (f->deth)
		d[f->deth + 4] = 0;
	if (f->opcode == OP_CNP) {
		memset(d + f->ext, 0, 16);
		memset(bth + 8, 0, 4);
		bth[1] = 0;
		put_be16(bth - 8, 0);
	}
	memset(d + f->icrc - f->pad, 0, f->pad);
	put_le32(d + f->icrc, ref_icrc(d, f));
}

/* Parsed and built again, it is the same. */
static void check_rebuild(const uint8_t *data, const struct frame *f)
{
	uint8_t *want, *out;
	struct build_spec s;
	struct template t;
	uint32_t n;

	if (!(f->op->flags & OPF_RC) && !f->deth && f->opcode != OP_CNP)
		return; /* whose headers count as payload */
	template_learn(&t, f);
	want = block_of(data, f->len);
	out = malloc(f->len);
	NEED(out);
	normalize(want, f);
	s = wire_spec(f, &t);
	n = f->opcode == OP_CNP ? build_cnp(out, &t, f->dqpn) : build_packet(out, &s);
	NEED(n == f->len && memcmp(out, want, n) == 0);
	free(out);
	free(want);
}

static void check_ack(const struct frame *f, const uint8_t *param)
{
	uint32_t dqpn = get_be24(param), psn = get_be24(param + 3), msn = get_be24(param + 6), n;
	uint8_t *out = malloc(BUILD_MAX);
	struct template t;
	struct frame a;

	NEED(out);
	template_learn(&t, f);
	n = build_ack(out, &t, dqpn, psn, param[9], msn);
	NEED(n <= BUILD_MAX && frame_parse(out, n, &a) == FRAME_OK && a.len == n);
	NEED(a.opcode == OP_ACK && a.dqpn == dqpn && a.psn == psn && a.pkey == f->pkey);
	NEED(frame_aeth_syndrome(&a) == param[9] && frame_aeth_msn(&a) == msn);
	NEED(ip_addr_eq(&a.src, &f->src) && ip_addr_eq(&a.dst, &f->dst) && a.vlan == f->vlan);
	NEED(a.sport == f->sport && a.migreq == f->migreq);
	NEED(!a.ackreq && !a.solicited && !a.fecn && !a.becn && !a.pad);
	NEED(get_le32(out + a.icrc) == ref_icrc(out, &a) && memcmp(out, f->data, f->l3) == 0);
	free(out);
}

static void check_patch(const uint8_t *data, const struct frame *f, const uint8_t *param)
{
	/* fields that a translation would touch: addresses, port, P_Key, QPN, PSN, then what
	 * follows */
	const struct {
		uint32_t off, n;
	} field[] = {
		{f->l3 + (f->ip6 ? 8u : 12u), f->ip6 ? 16 : 4},
		{f->l3 + (f->ip6 ? 24u : 16u), f->ip6 ? 16 : 4},
		{f->l4, 2},
		{f->bth + 2u, 2},
		{f->bth + 5u, 3},
		{f->bth + 9u, 3},
		{f->bth + 5u, 7},
		{f->ext, f->icrc - f->ext},
	};
	uint32_t which = param[0] % 8, off = field[which].off, n = field[which].n;
	uint8_t *d = block_of(data, f->len), fresh[24];
	uint32_t wrong = get_le32(data + f->icrc) ^ ref_icrc(data, f), sum = ref_udp_sum(data, f);
	struct frame g;

	if (which == 7 && n) {
		off += get_be16(param + 1) % n;
		n = f->icrc - off;
	}
	if (n > 24)
		n = 24;
	for (uint32_t i = 0; i < n; i++)
		fresh[i] = (uint8_t)(param[3 + i % 8] + i);
	NEED(frame_parse(d, f->len, &g) == FRAME_OK);
	icrc_patch(d, &g, off, n, fresh);
	NEED(memcmp(d + off, fresh, n) == 0);
	NEED((get_le32(d + f->icrc) ^ ref_icrc(d, f)) == wrong);
	if (get_be16(data + f->l4 + 6)) {
		NEED(get_be16(d + f->l4 + 6) && ref_udp_sum(d, f) == sum);
	} else {
		NEED(!get_be16(d + f->l4 + 6));
	}
	if (!f->ip6)
		NEED(ref_sum(d + f->l3, 20) == 0);
	/* nothing but checksums and the bytes themselves */
	memcpy(d + off, data + off, n);
	memcpy(d + f->icrc, data + f->icrc, 4);
	memcpy(d + f->l4 + 6, data + f->l4 + 6, 2);
	if (!f->ip6)
		memcpy(d + f->l3 + 10, data + f->l3 + 10, 2);
	NEED(memcmp(d, data, f->len) == 0);
	free(d);
}

static void check_psn(const uint8_t *param)
{
	uint32_t a = get_be24(param), b = get_be24(param + 3), c = get_be24(param + 6);
	int64_t d = (int64_t)((a - b) & PSN_MASK);

	if (d >= 1 << 23)
		d -= 1 << 24;
	NEED(psn_diff(a, b) == d && psn_before(a, b) == (d < 0) && psn_after(a, b) == (d > 0));
	NEED(psn_add(psn_sub(a, b), b) == a && psn_add(b, (uint32_t)d) == a);
	NEED(psn_in(a, b, c) == (((a - b) & PSN_MASK) < ((c - b) & PSN_MASK)));
}

/* ---- making frames ---- */

/* Lengths and checksums of a frame that is nearly one. */
static void make_right(uint8_t *d, uint32_t len, bool crc)
{
	uint32_t l3 = 14, l4;
	struct frame f;

	while (l3 <= 18 && len > l3 + 2 &&
	       (get_be16(d + l3 - 2) == 0x8100 || get_be16(d + l3 - 2) == 0x88a8))
		l3 += 4;
	if (len < l3 + 48 || len - l3 > UINT16_MAX)
		return;
	l4 = l3 + (d[l3] >> 4 == 6 ? 40 : 20);
	put_be16(d + l4 + 2, 4791);
	put_be16(d + l4 + 4, (uint16_t)(len - l4));
	if (l4 == l3 + 40) {
		put_be16(d + l3 + 4, (uint16_t)(len - l4));
	} else {
		put_be16(d + l3 + 2, (uint16_t)(len - l3));
		put_be16(d + l3 + 10, 0);
		put_be16(d + l3 + 10, (uint16_t)~ref_sum(d + l3, 20));
	}
	if (!crc || frame_parse(d, len, &f) != FRAME_OK)
		return;
	put_le32(d + f.icrc, ref_icrc(d, &f));
	if (get_be16(d + f.l4 + 6)) {
		uint32_t sum;

		put_be16(d + f.l4 + 6, 0);
		sum = 0xffff - ref_udp_sum(d, &f);
		put_be16(d + f.l4 + 6, (uint16_t)sum);
	}
}

static uint32_t build(uint8_t *out, struct input *in, const uint8_t *payload, size_t len)
{
	static const uint8_t mac[6] = {2};
	struct ip_addr a[2];
	struct template t;
	struct build_spec s = {.t = &t, .payload_len = (uint32_t)len};
	uint8_t bits;

	s.opcode = next8(in);
	bits = next8(in);
	s.dqpn = next24(in);
	s.psn = next24(in);
	s.va = next64(in);
	s.rkey = next32(in);
	s.length = next32(in);
	s.swap_add = s.compare = s.atomic_value = s.va + s.rkey;
	s.syndrome = (uint8_t)s.length;
	s.msn = s.qkey = s.immdt = s.sqpn = s.length;
	s.ackreq = bits & 1;
	s.solicited = bits & 2;
	memset(a, 0, sizeof(a));
	for (int i = 0; i < 2; i++) {
		if (bits & 4)
			a[i] = ip_addr_v4((const uint8_t *)"\x0a\0\0\1");
		a[i].b[15] = (uint8_t)(i + 1);
	}
	template_make(&t, mac, mac, bits & 8 ? 7 : FRAME_VLAN_NONE, &a[0], &a[1], 0xc000);
	if (s.payload_len > PAYLOAD_MAX || !(opcode_info(s.opcode)->flags & OPF_PAYLOAD))
		s.payload_len = 0;
	s.payload = s.payload_len ? payload : NULL;
	return build_packet(out, &s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t param[PARAMS] = {0}, *d;
	struct input in = {param + 1, PARAMS - 1};
	enum frame_verdict v;
	struct frame f;
	uint32_t len;

	memcpy(param, data, size < PARAMS ? size : PARAMS);
	data += size < PARAMS ? size : PARAMS;
	size -= size < PARAMS ? size : PARAMS;
	if (size > UINT16_MAX)
		return 0;
	if ((param[0] & 3) == 3) {
		uint8_t *out = malloc(FRAME_MAX);

		NEED(out);
		len = build(out, &in, data, size);
		d = block_of(out, len);
		free(out);
		v = frame_parse(d, len, &f);
		if (v == FRAME_OK)
			NEED(get_le32(d + f.icrc) == ref_icrc(d, &f) && f.len == len);
		else
			NEED(v == FRAME_UNKNOWN_OPCODE);
	} else {
		len = (uint32_t)size;
		d = block_of(data, size);
		if (param[0] & 3)
			make_right(d, len, (param[0] & 3) == 2);
		v = frame_parse(d, len, &f);
	}
	NEED((unsigned int)v < FRAME_VERDICTS && strcmp(frame_verdict_name(v), "invalid"));
	check_psn(param + 1);
	if (v == FRAME_OK) {
		struct frame g;

		check_view(d, len, &f);
		check_addresses(&f);
		check_prefix(d, f.len - 1);
		check_prefix(d, get_be16(param + 1) % f.len);
		NEED(frame_parse(d, f.len, &g) == FRAME_OK && g.len == f.len);
		check_icrc(d, &f);
		check_rebuild(d, &f);
		check_ack(&f, param + 1);
		check_patch(d, &f, param + 12);
	} else if (v == FRAME_UNKNOWN_OPCODE) {
		NEED(!opcode_info(d[f.bth])->name && f.psn == get_be24(d + f.bth + 9) &&
		     f.dqpn == get_be24(d + f.bth + 5));
	}
	free(d);
	return 0;
}
