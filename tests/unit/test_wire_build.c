// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Builders: what they make from a neighbour's headers must be what soft-RoCE made, byte for byte
 * (the IPv4 identification, a counter, is set in the template), and must carry nothing over from
 * the packet that the template was learned from.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/pcap_data.h"
#include "tests/unit/wire_util.h"
#include "wire/bytes.h"

/*
 * A template for packet @i: an earlier packet of the same host with the same entropy, of another
 * opcode if there is one, given the identification of packet @i. False when none came before.
 */
static bool template_before(const struct pcap_data *d, uint32_t i, struct template *t)
{
	bool found = false;
	struct frame f, g;

	assert_int_equal(frame_parse(d->pkt[i], d->len[i], &f), FRAME_OK);
	for (uint32_t j = 0; j < i; j++) {
		assert_int_equal(frame_parse(d->pkt[j], d->len[j], &g), FRAME_OK);
		if (!ip_addr_eq(&f.src, &g.src) || f.sport != g.sport)
			continue;
		template_learn(t, &g);
		found = true;
		if (g.opcode != f.opcode)
			break;
	}
	if (found && !f.ip6)
		memcpy(t->hdr + t->l3 + 4, f.data + f.l3 + 4, 2);
	return found;
}

static void real_acks(void **state)
{
	uint32_t n = 0;

	(void)state;
	for (size_t k = 0; k < PCAP_DATA_FILES; k++) {
		struct pcap_data d = pcap_data_load(pcap_data_all[k]);

		for (uint32_t i = 0; i < d.n; i++) {
			uint8_t out[BUILD_MAX];
			struct template t;
			struct frame f;
			uint32_t len;

			assert_int_equal(frame_parse(d.pkt[i], d.len[i], &f), FRAME_OK);
			if (f.opcode != OP_ACK || !template_before(&d, i, &t))
				continue;
			len = build_ack(out, &t, f.dqpn, f.psn, frame_aeth_syndrome(&f),
					frame_aeth_msn(&f));
			assert_int_equal(len, d.len[i]);
			assert_memory_equal(out, d.pkt[i], len);
			n++;
		}
		pcap_data_free(&d);
	}
	assert_int_equal(n, 98);
}

static void real_packets(void **state)
{
	uint32_t n = 0;

	(void)state;
	for (size_t k = 0; k < PCAP_DATA_FILES; k++) {
		struct pcap_data d = pcap_data_load(pcap_data_all[k]);

		for (uint32_t i = 0; i < d.n; i++) {
			uint8_t out[FRAME_MAX];
			struct build_spec s;
			struct template t;
			struct frame f;

			assert_int_equal(frame_parse(d.pkt[i], d.len[i], &f), FRAME_OK);
			if (!template_before(&d, i, &t))
				continue;
			s = wire_spec(&f, &t);
			assert_int_equal(build_packet(out, &s), d.len[i]);
			assert_memory_equal(out, d.pkt[i], d.len[i]);
			n++;
		}
		pcap_data_free(&d);
	}
	assert_true(n > 900);
}

/* Build, parse, take apart, build again: every opcode and shape. */
static void round_trip(void **state)
{
	uint8_t a[FRAME_MAX], b[FRAME_MAX];

	(void)state;
	for (int op = 0; op < 256; op++) {
		if (!opcode_info((uint8_t)op)->name)
			continue;
		for (int shape = 0; shape < SHAPES; shape++) {
			uint32_t len = wire_packet(a, (enum wire_shape)shape, (uint8_t)op,
						   wire_rand() % 4097);
			struct build_spec s;
			struct template t;
			struct frame f;

			assert_int_equal(frame_parse(a, len, &f), FRAME_OK);
			assert_true(icrc_ok(&f));
			template_learn(&t, &f);
			assert_int_equal(t.len, f.ext);
			s = wire_spec(&f, &t);
			assert_int_equal(build_packet(b, &s), len);
			assert_memory_equal(a, b, len);
		}
	}
}

/* A template from the worst neighbour: solicited, padded, marked, congested, asking, checksummed.
 */
static void nothing_is_carried_over(void **state)
{
	(void)state;
	for (int shape = 0; shape < SHAPES; shape++) {
		uint8_t buf[FRAME_MAX], out[BUILD_MAX];
		uint32_t len = wire_packet(buf, (enum wire_shape)shape, OP_WRITE_ONLY, 61);
		struct template t;
		struct frame f, g;

		assert_int_equal(frame_parse(buf, len, &f), FRAME_OK);
		buf[f.bth + 1] |= 0x80;
		buf[f.bth + 4] = 0xff;
		buf[f.bth + 8] = 0xff;
		put_be16(buf + f.l4 + 6, 0x1234);
		assert_int_equal(frame_parse(buf, len, &f), FRAME_OK);
		assert_true(f.solicited && f.fecn && f.becn && f.ackreq && f.pad == 3);
		template_learn(&t, &f);

		len = build_ack(out, &t, 0xff123456, 0xff654321, AETH_NAK_SEQ, 0xffabcdef);
		assert_true(len <= BUILD_MAX);
		assert_int_equal(frame_parse(out, len, &g), FRAME_OK);
		assert_int_equal(g.len, len);
		assert_true(icrc_ok(&g));
		assert_int_equal(g.opcode, OP_ACK);
		assert_int_equal(g.dqpn, 0x123456);
		assert_int_equal(g.psn, 0x654321);
		assert_int_equal(frame_aeth_syndrome(&g), AETH_NAK_SEQ);
		assert_int_equal(frame_aeth_msn(&g), 0xabcdef);
		assert_false(g.solicited || g.fecn || g.becn || g.ackreq || g.pad);
		assert_int_equal(out[g.bth + 4], 0);
		assert_int_equal(out[g.bth + 8], 0);
		assert_int_equal(get_be16(out + g.l4 + 6), 0);
		/* What has to be the neighbour's is. */
		assert_memory_equal(out, buf, f.l3);
		assert_true(ip_addr_eq(&f.src, &g.src) && ip_addr_eq(&f.dst, &g.dst));
		assert_int_equal(f.sport, g.sport);
		assert_int_equal(f.pkey, g.pkey);
		assert_int_equal(f.migreq, g.migreq);
		if (!f.ip6)
			assert_int_equal(ip4_csum(out + g.l3), 0);
	}
}

static void priority_and_ecn(void **state)
{
	uint8_t buf[FRAME_MAX], out[BUILD_MAX];

	(void)state;
	for (uint32_t tos = 0; tos < 256; tos++) {
		uint32_t want = (tos & 3) == 3 ? (tos & ~1u) : tos, len;
		struct template t;
		struct frame f;

		len = wire_packet(buf, SHAPE_V4_TAG, OP_SEND_ONLY, 4);
		buf[18 + 1] = (uint8_t)tos;
		put_be16(buf + 28, 0);
		put_be16(buf + 28, ip4_csum(buf + 18));
		assert_int_equal(frame_parse(buf, len, &f), FRAME_OK);
		template_learn(&t, &f);
		len = build_ack(out, &t, 1, 2, 3, 4);
		assert_int_equal(frame_parse(out, len, &f), FRAME_OK);
		assert_int_equal(out[19], want);
		assert_true(icrc_ok(&f));

		len = wire_packet(buf, SHAPE_V6_TAG, OP_SEND_ONLY, 4);
		put_be32(buf + 18, 6u << 28 | tos << 20 | 0xfedcb);
		assert_int_equal(frame_parse(buf, len, &f), FRAME_OK);
		template_learn(&t, &f);
		len = build_ack(out, &t, 1, 2, 3, 4);
		assert_int_equal(frame_parse(out, len, &f), FRAME_OK);
		assert_int_equal(get_be32(out + 18), 6u << 28 | want << 20 | 0xfedcb);
		assert_true(icrc_ok(&f));
	}
}

static void congestion_notification(void **state)
{
	static const uint8_t zeros[16];

	(void)state;
	for (int shape = 0; shape < SHAPES; shape++) {
		uint8_t buf[FRAME_MAX], out[BUILD_MAX];
		uint32_t len = wire_packet(buf, (enum wire_shape)shape, OP_WRITE_ONLY, 3);
		struct template t;
		struct frame f;

		assert_int_equal(frame_parse(buf, len, &f), FRAME_OK);
		template_learn(&t, &f);
		len = build_cnp(out, &t, 0xabcdef);
		assert_true(len <= BUILD_MAX);
		assert_int_equal(frame_parse(out, len, &f), FRAME_OK);
		assert_int_equal(f.opcode, OP_CNP);
		assert_true(f.becn);
		/* as captures of hardware NICs have it */
		assert_false(f.fecn || f.ackreq || f.solicited || f.migreq);
		assert_int_equal(f.sport, 0);
		if (f.ip6)
			assert_int_equal(get_be32(out + f.l3) >> 20 & 0xff, 0xc2);
		else
			assert_int_equal(out[f.l3 + 1], 0xc2);
		assert_int_equal(f.dqpn, 0xabcdef);
		assert_int_equal(f.psn, 0);
		assert_int_equal(f.icrc - f.ext, 16);
		assert_memory_equal(out + f.ext, zeros, 16);
		assert_true(icrc_ok(&f));
	}
}

static void made_from_addresses(void **state)
{
	static const uint8_t smac[6] = {2, 0, 0, 0, 0, 1}, dmac[6] = {2, 0, 0, 0, 0, 2};
	struct ip_addr src, dst;
	uint8_t out[BUILD_MAX];
	struct template t;
	struct frame f;
	uint32_t len;

	(void)state;
	ip_addr_parse("10.0.0.1", &src);
	ip_addr_parse("10.0.0.2", &dst);
	template_make(&t, smac, dmac, 7, &src, &dst, 0xd00d);
	len = build_ack(out, &t, 1, 2, AETH_ACK_UNLIMITED, 3);
	assert_int_equal(frame_parse(out, len, &f), FRAME_OK);
	assert_true(icrc_ok(&f));
	assert_memory_equal(out, dmac, 6);
	assert_memory_equal(out + 6, smac, 6);
	assert_int_equal(f.vlan, 7);
	assert_true(ip_addr_eq(&f.src, &src) && ip_addr_eq(&f.dst, &dst));
	assert_int_equal(f.sport, 0xd00d);
	assert_int_equal(f.pkey, 0xffff);
	assert_true(f.migreq);
	assert_int_equal(out[f.l3 + 8], 64);
	assert_int_equal(get_be16(out + f.l3 + 6), 0x4000);

	ip_addr_parse("fe80::1", &src);
	ip_addr_parse("fe80::2", &dst);
	template_make(&t, smac, dmac, FRAME_VLAN_NONE, &src, &dst, 0xd00d);
	len = build_ack(out, &t, 1, 2, AETH_ACK_UNLIMITED, 3);
	assert_int_equal(frame_parse(out, len, &f), FRAME_OK);
	assert_true(icrc_ok(&f) && f.ip6);
	assert_int_equal(f.vlan, FRAME_VLAN_NONE);
	assert_true(ip_addr_eq(&f.src, &src) && ip_addr_eq(&f.dst, &dst));
	assert_int_equal(out[f.l3 + 7], 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(real_acks),	       cmocka_unit_test(real_packets),
		cmocka_unit_test(round_trip),	       cmocka_unit_test(nothing_is_carried_over),
		cmocka_unit_test(priority_and_ecn),    cmocka_unit_test(congestion_notification),
		cmocka_unit_test(made_from_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
