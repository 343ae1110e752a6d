// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * ENG-1: the table-driven parser, BTH to payload: every packet of every capture, every opcode in
 * every encapsulation, every length, and everything that must be refused or passed by.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/pcap_data.h"
#include "tests/unit/wire_util.h"
#include "wire/bytes.h"

/* Parse a copy of exactly @len bytes, so that a read beyond it is seen. The view's data is gone. */
static enum frame_verdict verdict(const uint8_t *p, uint32_t len)
{
	uint8_t *q = wire_dup(p, len);
	enum frame_verdict v;
	struct frame f;

	v = frame_parse(q, len, &f);
	free(q);
	return v;
}

static void every_capture_parses(void **state)
{
	uint32_t n = 0;

	(void)state;
	for (size_t i = 0; i < PCAP_DATA_FILES; i++) {
		struct pcap_data d = pcap_data_load(pcap_data_all[i]);

		for (uint32_t j = 0; j < d.n; j++) {
			struct frame f;

			assert_int_equal(frame_parse(d.pkt[j], d.len[j], &f), FRAME_OK);
			assert_int_equal(f.len, d.len[j]);
			assert_int_equal(f.icrc, f.len - 4);
			assert_int_equal(f.payload + f.payload_len + f.pad, f.icrc);
			assert_int_equal(f.payload, f.bth + 12 + f.op->hdr_len);
			assert_int_equal(f.sport, get_be16(f.data + f.l4));
			n++;
		}
		pcap_data_free(&d);
	}
	assert_int_equal(n, 947);
}

/* Read off with an independent dissector. */
static void golden_fields(void **state)
{
	struct pcap_data d = pcap_data_load("atomic");
	char text[IP_ADDR_STRLEN];
	struct frame f;

	(void)state;
	assert_int_equal(frame_parse(d.pkt[0], d.len[0], &f), FRAME_OK);
	assert_int_equal(f.opcode, OP_FETCH_ADD);
	assert_string_equal(f.op->name, "RC FetchAdd");
	assert_string_equal(ip_addr_str(&f.src, text), "10.98.0.1");
	assert_string_equal(ip_addr_str(&f.dst, text), "10.98.0.2");
	assert_int_equal(f.sport, 49593);
	assert_int_equal(f.dqpn, 0x15);
	assert_int_equal(f.psn, 3855160);
	assert_true(f.ackreq);
	assert_false(f.migreq || f.solicited || f.fecn || f.becn || f.ip6);
	assert_int_equal(f.pkey, 0xffff);
	assert_int_equal(f.vlan, FRAME_VLAN_NONE);
	assert_int_equal(get_be64(f.data + f.atomiceth), 0x000055e962455000ull);
	assert_int_equal(get_be32(f.data + f.atomiceth + 8), 0x627);
	assert_int_equal(f.payload_len, 0);
	assert_int_equal(f.reth | f.aeth | f.immdt | f.ieth | f.deth | f.atomicack, 0);
	pcap_data_free(&d);

	d = pcap_data_load("write-v6");
	assert_int_equal(frame_parse(d.pkt[0], d.len[0], &f), FRAME_OK);
	assert_int_equal(f.opcode, OP_WRITE_FIRST);
	assert_true(f.ip6);
	assert_string_equal(ip_addr_str(&f.src, text), "fe80::5054:ff:fe00:1");
	assert_int_equal(f.psn, 11255410);
	assert_int_equal(frame_reth_va(&f), 0x000055bd27a57000ull);
	assert_int_equal(frame_reth_rkey(&f), 0x2ac);
	assert_int_equal(frame_reth_length(&f), 16384);
	assert_int_equal(f.payload_len, 1024);
	assert_int_equal(frame_span(&f, 1024), 1);
	pcap_data_free(&d);

	d = pcap_data_load("read");
	assert_int_equal(frame_parse(d.pkt[0], d.len[0], &f), FRAME_OK);
	assert_int_equal(f.opcode, OP_READ_REQUEST);
	assert_int_equal(frame_reth_length(&f), 16384);
	assert_int_equal(frame_span(&f, 1024), 16);
	assert_int_equal(frame_parse(d.pkt[4], d.len[4], &f), FRAME_OK);
	assert_int_equal(f.opcode, OP_READ_RESPONSE_FIRST);
	assert_int_equal(frame_aeth_syndrome(&f), AETH_ACK_UNLIMITED);
	assert_int_equal(frame_aeth_msn(&f), 1);
	assert_int_equal(frame_parse(d.pkt[5], d.len[5], &f), FRAME_OK);
	assert_int_equal(f.opcode, OP_READ_RESPONSE_MIDDLE);
	assert_int_equal(f.aeth, 0);
	assert_int_equal(f.payload_len, 1024);
	pcap_data_free(&d);

	d = pcap_data_load("ud");
	assert_int_equal(frame_parse(d.pkt[0], d.len[0], &f), FRAME_OK);
	assert_int_equal(f.opcode, OP_UD_SEND_ONLY);
	assert_int_equal(f.op->flags & OPF_RC, 0);
	assert_int_equal(get_be32(f.data + f.deth), 0x11111111);
	assert_int_equal(get_be24(f.data + f.deth + 5), 0x1a);
	pcap_data_free(&d);
}

/* The extended headers of each opcode by their lengths, written down apart from the table. */
static void opcode_rows(void **state)
{
	static const struct {
		uint8_t op, hdr_len;
		uint16_t headers;
		uint16_t flags;
	} rows[] = {
		{0x00, 0, 0, OPF_RC | OPF_REQUEST | OPF_SEND | OPF_FIRST | OPF_PAYLOAD},
		{0x01, 0, 0, OPF_RC | OPF_REQUEST | OPF_SEND | OPF_MIDDLE | OPF_PAYLOAD},
		{0x02, 0, 0, OPF_RC | OPF_REQUEST | OPF_SEND | OPF_LAST | OPF_PAYLOAD},
		{0x03, 4, HDR_IMMDT, OPF_RC | OPF_REQUEST | OPF_SEND | OPF_LAST | OPF_PAYLOAD},
		{0x04, 0, 0, OPF_RC | OPF_REQUEST | OPF_SEND | OPF_ONLY | OPF_PAYLOAD},
		{0x05, 4, HDR_IMMDT, OPF_RC | OPF_REQUEST | OPF_SEND | OPF_ONLY | OPF_PAYLOAD},
		{0x06, 16, HDR_RETH, OPF_RC | OPF_REQUEST | OPF_WRITE | OPF_FIRST | OPF_PAYLOAD},
		{0x07, 0, 0, OPF_RC | OPF_REQUEST | OPF_WRITE | OPF_MIDDLE | OPF_PAYLOAD},
		{0x08, 0, 0, OPF_RC | OPF_REQUEST | OPF_WRITE | OPF_LAST | OPF_PAYLOAD},
		{0x09, 4, HDR_IMMDT, OPF_RC | OPF_REQUEST | OPF_WRITE | OPF_LAST | OPF_PAYLOAD},
		{0x0a, 16, HDR_RETH, OPF_RC | OPF_REQUEST | OPF_WRITE | OPF_ONLY | OPF_PAYLOAD},
		{0x0b, 20, HDR_RETH | HDR_IMMDT,
		 OPF_RC | OPF_REQUEST | OPF_WRITE | OPF_ONLY | OPF_PAYLOAD},
		{0x0c, 16, HDR_RETH, OPF_RC | OPF_REQUEST | OPF_READ | OPF_ONLY | OPF_ANSWERED},
		{0x0d, 4, HDR_AETH, OPF_RC | OPF_RESPONSE | OPF_READ | OPF_FIRST | OPF_PAYLOAD},
		{0x0e, 0, 0, OPF_RC | OPF_RESPONSE | OPF_READ | OPF_MIDDLE | OPF_PAYLOAD},
		{0x0f, 4, HDR_AETH, OPF_RC | OPF_RESPONSE | OPF_READ | OPF_LAST | OPF_PAYLOAD},
		{0x10, 4, HDR_AETH, OPF_RC | OPF_RESPONSE | OPF_READ | OPF_ONLY | OPF_PAYLOAD},
		{0x11, 4, HDR_AETH, OPF_RC | OPF_RESPONSE},
		{0x12, 12, HDR_AETH | HDR_ATOMICACK, OPF_RC | OPF_RESPONSE | OPF_ATOMIC | OPF_ONLY},
		{0x13, 28, HDR_ATOMICETH,
		 OPF_RC | OPF_REQUEST | OPF_ATOMIC | OPF_ONLY | OPF_ANSWERED},
		{0x14, 28, HDR_ATOMICETH,
		 OPF_RC | OPF_REQUEST | OPF_ATOMIC | OPF_ONLY | OPF_ANSWERED},
		{0x16, 4, HDR_IETH, OPF_RC | OPF_REQUEST | OPF_SEND | OPF_LAST | OPF_PAYLOAD},
		{0x17, 4, HDR_IETH, OPF_RC | OPF_REQUEST | OPF_SEND | OPF_ONLY | OPF_PAYLOAD},
		{0x18, 44, HDR_ATOMICETH | HDR_MASKS,
		 OPF_RC | OPF_REQUEST | OPF_ATOMIC | OPF_ONLY | OPF_ANSWERED},
		{0x19, 28, HDR_ATOMICETH,
		 OPF_RC | OPF_REQUEST | OPF_ATOMIC | OPF_ONLY | OPF_ANSWERED | OPF_PAYLOAD},
		{0x1c, 20, HDR_FETH | HDR_RETH, OPF_RC | OPF_REQUEST | OPF_ONLY | OPF_ANSWERED},
		{0x1d, 16, HDR_RETH, OPF_RC | OPF_REQUEST | OPF_ONLY | OPF_ANSWERED | OPF_PAYLOAD},
		{0x2a, 16, HDR_RETH, OPF_PAYLOAD},
		{0x2b, 20, HDR_RETH | HDR_IMMDT, OPF_PAYLOAD},
		{0x64, 8, HDR_DETH, OPF_PAYLOAD},
		{0x65, 12, HDR_DETH | HDR_IMMDT, OPF_PAYLOAD},
		{0x81, 16, HDR_CNPPAD, 0},
	};
	size_t rc = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct opcode_info *o = opcode_info(rows[i].op);

		assert_non_null(o->name);
		assert_int_equal(o->hdr_len, rows[i].hdr_len);
		assert_int_equal(o->headers, rows[i].headers);
		assert_int_equal(o->flags, rows[i].flags);
	}
	/* No other opcode has an RC role, and an unknown one has nothing at all. */
	for (int op = 0; op < 256; op++) {
		const struct opcode_info *o = opcode_info((uint8_t)op);

		if (o->flags & OPF_RC)
			rc++;
		else
			assert_int_equal(o->flags & ~OPF_PAYLOAD, 0);
		if (!o->name)
			assert_int_equal(o->flags | o->headers | o->hdr_len, 0);
	}
	assert_int_equal(rc, 27);
	assert_null(opcode_info(0x15)->name);
	assert_null(opcode_info(0x80)->name);
	assert_null(opcode_info(0xff)->name);
	assert_non_null(opcode_info(0xa4)->name);
	/* Where two headers follow each other. */
	assert_int_equal(opcode_info(OP_WRITE_ONLY_IMM)->immdt, 28);
	assert_int_equal(opcode_info(OP_ATOMIC_ACK)->atomicack, 16);
	assert_int_equal(opcode_info(OP_FLUSH)->feth, 12);
	assert_int_equal(opcode_info(OP_FLUSH)->reth, 16);
	assert_int_equal(opcode_info(OP_UD_SEND_ONLY_IMM)->immdt, 20);
}

/* Every known opcode in every encapsulation, sizes that need each pad; then every way to cut it. */
static void every_opcode_every_length(void **state)
{
	static const uint32_t sizes[] = {0, 1, 2, 3, 4, 63, 64, 1024};
	uint8_t buf[FRAME_MAX + 64];

	(void)state;
	for (int op = 0; op < 256; op++) {
		if (!opcode_info((uint8_t)op)->name)
			continue;
		for (int shape = 0; shape < SHAPES; shape++) {
			for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
				uint32_t len = wire_packet(buf, shape, (uint8_t)op, sizes[i]);
				struct frame f;

				assert_int_equal(frame_parse(buf, len, &f), FRAME_OK);
				assert_int_equal(f.opcode, op);
				assert_int_equal(f.ip6, shape >= SHAPE_V6);
				assert_int_equal(f.l3, shape % 3 ? 18 : 14);
				assert_int_equal(f.vlan, shape % 3 == 1 ? 0x123 : FRAME_VLAN_NONE);
				if (f.op->flags & OPF_PAYLOAD) {
					assert_int_equal(f.payload_len, sizes[i]);
					assert_int_equal(f.pad, -sizes[i] & 3);
				}
				/* Ethernet padding is cut off, */
				memset(buf + len, 0xee, 46);
				assert_int_equal(frame_parse(buf, len + 46, &f), FRAME_OK);
				assert_int_equal(f.len, len);
				/* and every prefix is refused. */
				if (sizes[i] > 64 || i % 3)
					continue;
				for (uint32_t n = 0; n < len; n++)
					assert_int_equal(verdict(buf, n), FRAME_TRUNCATED);
			}
		}
	}
}

/* Set IP and UDP lengths and the IPv4 checksum of an untagged frame to an IP packet that ends at
 * @len. */
static void relength(uint8_t *p, uint32_t len)
{
	if (p[14] >> 4 == 4) {
		put_be16(p + 16, (uint16_t)(len - 14));
		put_be16(p + 24, 0);
		put_be16(p + 24, ip4_csum(p + 14));
		put_be16(p + 38, (uint16_t)(len - 34));
	} else {
		put_be16(p + 18, (uint16_t)(len - 54));
		put_be16(p + 58, (uint16_t)(len - 54));
	}
}

static void refix(uint8_t *p)
{
	put_be16(p + 24, 0);
	put_be16(p + 24, ip4_csum(p + 14));
}

/* Lengths that agree with each other and contradict the opcode. */
static void shorter_and_longer_than_the_opcode(void **state)
{
	uint8_t buf[9000] = {0};

	(void)state;
	for (int shape = SHAPE_V4; shape < SHAPES; shape += SHAPE_V6) {
		uint32_t l4 = shape == SHAPE_V4 ? 34 : 54, len;

		/* An ACK whose AETH is missing; a datagram without room for a BTH. */
		len = wire_packet(buf, shape, OP_ACK, 0);
		relength(buf, len - 4);
		assert_int_equal(verdict(buf, len), FRAME_TRUNCATED);
		for (uint32_t end = l4 + 8; end < l4 + 8 + 16; end++) {
			relength(buf, end);
			assert_int_equal(verdict(buf, len), FRAME_TRUNCATED);
		}
		/* An ACK, a READ request and a CNP with payload. */
		len = wire_packet(buf, shape, OP_ACK, 0);
		relength(buf, len + 4);
		assert_int_equal(verdict(buf, len + 4), FRAME_BAD_LENGTH);
		len = wire_packet(buf, shape, OP_READ_REQUEST, 0);
		relength(buf, len + 64);
		assert_int_equal(verdict(buf, len + 64), FRAME_BAD_LENGTH);
		len = wire_packet(buf, shape, OP_CNP, 0);
		relength(buf, len + 4);
		assert_int_equal(verdict(buf, len + 4), FRAME_BAD_LENGTH);
		/* The largest path MTU and one word more; a jumbo frame. */
		len = wire_packet(buf, shape, OP_SEND_MIDDLE, 4096);
		assert_int_equal(verdict(buf, len), FRAME_OK);
		relength(buf, len + 4);
		assert_int_equal(verdict(buf, len + 4), FRAME_BAD_LENGTH);
		relength(buf, sizeof(buf) - 2);
		assert_int_equal(verdict(buf, sizeof(buf)), FRAME_BAD_LENGTH);
		/* No accepted frame exceeds FRAME_MAX, whatever the opcode. */
		for (int op = 0; op < 256; op++) {
			len = wire_packet(buf, shape, (uint8_t)op, 4096);
			for (uint32_t more = 0; more < 64; more += 4) {
				relength(buf, len + more);
				if (verdict(buf, len + more) == FRAME_OK)
					assert_true(len + more <= FRAME_MAX - 8);
			}
		}
		/* UDP length one off, both ways. */
		len = wire_packet(buf, shape, OP_SEND_ONLY, 64);
		put_be16(buf + l4 + 4, (uint16_t)(len - l4 - 1));
		assert_int_equal(verdict(buf, len), FRAME_BAD_LENGTH);
		put_be16(buf + l4 + 4, (uint16_t)(len - l4 + 1));
		assert_int_equal(verdict(buf, len), FRAME_BAD_LENGTH);
	}
}

static void pad_must_fit(void **state)
{
	uint8_t buf[FRAME_MAX];
	uint32_t len = wire_packet(buf, SHAPE_V4, OP_SEND_ONLY, 4);

	(void)state;
	for (uint8_t pad = 0; pad < 4; pad++) {
		buf[43] = (uint8_t)((buf[43] & ~0x30) | pad << 4);
		assert_int_equal(verdict(buf, len), FRAME_OK);
	}
	/* No payload, yet padded. */
	len = wire_packet(buf, SHAPE_V4, OP_SEND_ONLY, 0);
	for (uint8_t pad = 1; pad < 4; pad++) {
		buf[43] = (uint8_t)((buf[43] & ~0x30) | pad << 4);
		assert_int_equal(verdict(buf, len), FRAME_BAD_PAD);
	}
	/* Payload and pad are not whole words. */
	for (uint32_t less = 1; less < 4; less++) {
		len = wire_packet(buf, SHAPE_V4, OP_SEND_ONLY, 8);
		relength(buf, len - less);
		assert_int_equal(verdict(buf, len - less), FRAME_BAD_PAD);
	}
}

static void somebody_elses_frames(void **state)
{
	uint8_t good[FRAME_MAX], buf[FRAME_MAX];
	uint32_t len = wire_packet(good, SHAPE_V4, OP_SEND_ONLY, 64), n;

	(void)state;
#define BROKEN(want, ...)                                                                          \
	do {                                                                                       \
		memcpy(buf, good, len);                                                            \
		__VA_ARGS__;                                                                       \
		refix(buf);                                                                        \
		assert_int_equal(verdict(buf, len), want);                                         \
	} while (0)
	BROKEN(FRAME_OK, (void)0);
	BROKEN(FRAME_NOT_ROCE, put_be16(buf + 12, 0x0806));
	BROKEN(FRAME_NOT_ROCE, buf[14] = 0x46); /* options */
	BROKEN(FRAME_NOT_ROCE, buf[14] = 0x44); /* header too short */
	BROKEN(FRAME_NOT_ROCE, buf[14] = 0x65); /* version */
	BROKEN(FRAME_NOT_ROCE, buf[20] = 0x20); /* more fragments */
	BROKEN(FRAME_NOT_ROCE, buf[21] = 1);	/* a later fragment */
	BROKEN(FRAME_NOT_ROCE, buf[20] = 0x1f);
	BROKEN(FRAME_OK, buf[20] = 0);	     /* DF off */
	BROKEN(FRAME_NOT_ROCE, buf[23] = 6); /* TCP */
	BROKEN(FRAME_NOT_ROCE, put_be16(buf + 36, 4790));
	BROKEN(FRAME_BAD_VERSION, buf[43] |= 1);
	BROKEN(FRAME_BAD_VERSION, buf[43] |= 8);
	BROKEN(FRAME_TRUNCATED, put_be16(buf + 16, (uint16_t)(len - 13)));
	BROKEN(FRAME_TRUNCATED, put_be16(buf + 16, 19));
	BROKEN(FRAME_TRUNCATED, put_be16(buf + 16, 0));
#undef BROKEN
	/* The IPv4 checksum covers what the ICRC masks. */
	memcpy(buf, good, len);
	buf[22]--;
	assert_int_equal(verdict(buf, len), FRAME_BAD_CHECKSUM);

	/* A service tag, alone or outside of another one; two VLAN tags; a priority tag first. */
	for (int shape = SHAPE_V4_TAG; shape <= SHAPE_V4_PRIO; shape++) {
		n = wire_packet(buf, (enum wire_shape)shape, OP_SEND_ONLY, 64);
		assert_int_equal(verdict(buf, n), FRAME_OK);
		put_be16(buf + 12, 0x88a8);
		assert_int_equal(verdict(buf, n), FRAME_NOT_ROCE);
		n = wire_packet(buf, (enum wire_shape)shape, OP_SEND_ONLY, 64);
		memmove(buf + 16, buf + 12, n - 12);
		assert_int_equal(verdict(buf, n + 4), FRAME_NOT_ROCE);
		put_be16(buf + 12, 0x88a8);
		assert_int_equal(verdict(buf, n + 4), FRAME_NOT_ROCE);
	}

	n = wire_packet(buf, SHAPE_V6, OP_SEND_ONLY, 64);
	assert_int_equal(verdict(buf, n), FRAME_OK);
	for (int next = 0; next < 256; next++) {
		buf[20] = (uint8_t)next;
		assert_int_equal(verdict(buf, n), next == 17 ? FRAME_OK : FRAME_NOT_ROCE);
	}
	buf[20] = 17;
	put_be16(buf + 18, 0); /* a jumbogram */
	assert_int_equal(verdict(buf, n), FRAME_TRUNCATED);
	put_be16(buf + 18, (uint16_t)(n - 54));
	buf[14] = 0x45;
	assert_int_equal(verdict(buf, n), FRAME_NOT_ROCE);
}

static void unknown_opcode_shows_the_bth(void **state)
{
	uint8_t buf[FRAME_MAX];
	uint32_t len = wire_packet(buf, SHAPE_V6, OP_SEND_ONLY, 64);
	uint32_t qpn = get_be24(buf + 14 + 40 + 8 + 5), psn = get_be24(buf + 14 + 40 + 8 + 9);
	uint32_t unknown = 0;
	struct frame f;

	(void)state;
	for (int op = 0; op < 256; op++) {
		buf[62] = (uint8_t)op;
		memset(&f, 0, sizeof(f));
		if (opcode_info((uint8_t)op)->name)
			continue;
		unknown++;
		assert_int_equal(frame_parse(buf, len, &f), FRAME_UNKNOWN_OPCODE);
		assert_int_equal(f.opcode, op);
		assert_int_equal(f.dqpn, qpn);
		assert_int_equal(f.psn, psn);
		assert_int_equal(f.len, len);
		assert_non_null(f.op);
	}
	assert_true(unknown > 100);
}

static void bth_bits(void **state)
{
	uint8_t buf[FRAME_MAX];
	uint32_t len = wire_packet(buf, SHAPE_V4, OP_SEND_ONLY, 64);
	struct frame f;

	(void)state;
	memcpy(buf + 42, "\x04\xc0\x80\x01\xc0\xab\xcd\xef\xff\x12\x34\x56", 12);
	assert_int_equal(frame_parse(buf, len, &f), FRAME_OK);
	assert_true(f.solicited && f.migreq && f.fecn && f.becn && f.ackreq);
	assert_int_equal(f.pkey, 0x8001);
	assert_int_equal(f.dqpn, 0xabcdef);
	assert_int_equal(f.psn, 0x123456);
	/* Reserved bits do not leak into the numbers or the flags. */
	memcpy(buf + 42, "\x04\x00\x80\x01\x3f\xab\xcd\xef\x7f\x12\x34\x56", 12);
	assert_int_equal(frame_parse(buf, len, &f), FRAME_OK);
	assert_false(f.solicited || f.migreq || f.fecn || f.becn || f.ackreq);
	assert_int_equal(f.dqpn, 0xabcdef);
	assert_int_equal(f.psn, 0x123456);
}

static void span_of_a_read(void **state)
{
	static const struct {
		uint32_t length, pmtu, span;
	} rows[] = {
		{0, 1024, 1},
		{1, 1024, 1},
		{1024, 1024, 1},
		{1025, 1024, 2},
		{16384, 4096, 4},
		{16385, 4096, 5},
		{0, 0, 1},
		{0x80000000, 256, 1 << 23},
		{0xffffffff, 4096, 1 << 20},
	};
	uint8_t buf[FRAME_MAX];
	uint32_t len = wire_packet(buf, SHAPE_V4, OP_READ_REQUEST, 0);
	struct frame f;

	(void)state;
	assert_int_equal(frame_parse(buf, len, &f), FRAME_OK);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put_be32(buf + f.reth + 12, rows[i].length);
		assert_int_equal(frame_span(&f, rows[i].pmtu), rows[i].span);
	}
	/* A WRITE's RETH length is that of the message, not of PSNs. */
	len = wire_packet(buf, SHAPE_V4, OP_WRITE_FIRST, 256);
	assert_int_equal(frame_parse(buf, len, &f), FRAME_OK);
	assert_int_equal(frame_span(&f, 256), 1);
}

static void syndromes(void **state)
{
	(void)state;
	for (unsigned int s = 0; s < 256; s++) {
		assert_int_equal(aeth_is_ack((uint8_t)s), s < 0x20);
		assert_int_equal(aeth_is_rnr((uint8_t)s), s >= 0x20 && s < 0x40);
		assert_int_equal(aeth_is_nak((uint8_t)s), s >= 0x60 && s < 0x80);
		assert_int_equal(aeth_known(OP_ACK, (uint8_t)s),
				 s < 0x40 || (s >= 0x60 && s < 0x80));
		assert_int_equal(aeth_known(OP_READ_RESPONSE_LAST, (uint8_t)s), s < 0x20);
	}
	assert_int_equal(aeth_rnr_ns(0), 655360000);
	assert_int_equal(aeth_rnr_ns(1), 10000);
	assert_int_equal(aeth_rnr_ns(5), 60000);
	assert_int_equal(aeth_rnr_ns(12), 640000);
	assert_int_equal(aeth_rnr_ns(15), 1920000);
	assert_int_equal(aeth_rnr_ns(31), 491520000);
	/* The code only; the three bits above it are the syndrome's class. */
	assert_int_equal(aeth_rnr_ns(0x2c), aeth_rnr_ns(12));
	for (uint8_t t = 2; t < 32; t++)
		assert_true(aeth_rnr_ns(t) > aeth_rnr_ns(t - 1));
}

static void addresses(void **state)
{
	static const char *const same[] = {
		"0.0.0.0", "10.98.0.1", "255.255.255.255",   "::",
		"::1",	   "fe80::1",	"2001:db8::1:0:0:1", "2001:db8:1:2:3:4:5:6"};
	static const char *const bad[] = {"",	 "1.2.3",    "1.2.3.4.5", "256.0.0.1",
					  "::g", "1.2.3.4 ", ":::",	  "fe80::1%eth0"};
	struct ip_addr a, b;
	char text[IP_ADDR_STRLEN];

	(void)state;
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		assert_int_equal(ip_addr_parse(same[i], &a), 0);
		assert_string_equal(ip_addr_str(&a, text), same[i]);
		assert_int_equal(ip_addr_is_v4(&a), i < 3);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(ip_addr_parse(bad[i], &a), -EINVAL);
	assert_int_equal(ip_addr_parse("::ffff:10.0.0.1", &a), 0);
	b = ip_addr_v4((const uint8_t *)"\x0a\x00\x00\x01");
	assert_true(ip_addr_eq(&a, &b));
	b.b[15]++;
	assert_false(ip_addr_eq(&a, &b));
}

static void verdict_names(void **state)
{
	(void)state;
	for (int v = 0; v < FRAME_VERDICTS; v++)
		for (int w = 0; w < v; w++)
			assert_string_not_equal(frame_verdict_name((enum frame_verdict)v),
						frame_verdict_name((enum frame_verdict)w));
	assert_string_equal(frame_verdict_name(FRAME_BAD_PAD), "bad-pad");
	assert_string_equal(frame_verdict_name((enum frame_verdict)99), "invalid");
}

/* Random damage: any verdict, no read outside, and an accepted view stays inside the frame. */
static void random_damage_is_bounded(void **state)
{
	uint8_t buf[FRAME_MAX];

	(void)state;
	for (int i = 0; i < 200000; i++) {
		uint32_t len = wire_packet(buf, (enum wire_shape)(wire_rand() % SHAPES),
					   (uint8_t)wire_rand(), wire_rand() % 80);
		uint32_t cut = wire_rand() % 4 ? len : wire_rand() % (len + 1);
		uint8_t *q = wire_dup(buf, cut);
		struct frame f;

		for (uint32_t k = wire_rand() % 4; k && cut; k--)
			q[wire_rand() % (cut < 90 ? cut : 90)] = (uint8_t)wire_rand();
		if (frame_parse(q, cut, &f) == FRAME_OK) {
			assert_true(f.len <= cut && f.icrc + 4u == f.len);
			assert_true(f.payload + f.payload_len + f.pad == f.icrc);
			icrc_ok(&f);
		}
		free(q);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_capture_parses),
		cmocka_unit_test(golden_fields),
		cmocka_unit_test(opcode_rows),
		cmocka_unit_test(every_opcode_every_length),
		cmocka_unit_test(shorter_and_longer_than_the_opcode),
		cmocka_unit_test(pad_must_fit),
		cmocka_unit_test(somebody_elses_frames),
		cmocka_unit_test(unknown_opcode_shows_the_bth),
		cmocka_unit_test(bth_bits),
		cmocka_unit_test(span_of_a_read),
		cmocka_unit_test(syndromes),
		cmocka_unit_test(addresses),
		cmocka_unit_test(verdict_names),
		cmocka_unit_test(random_damage_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
