// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Connection manager datagrams. The first byte says what the rest is: 0 mod 4 a frame as it is, 1
 * mod 4 the frame of a datagram whose MAD is the rest, 2 mod 4 the fields of one, 3 mod 4 those of
 * a DREQ of our own.
 *
 * What is decoded equals what the standard's tables of fields say, read bit by bit; whatever the
 * model hosts' builder writes is decoded to the same; nothing but a CM datagram of full length is
 * taken for one.
 */
#include "tests/fuzz/input.h"
#include "tests/lab/model/cm_emit.h"
#include "wire/bytes.h"
#include "wire/cm.h"
#include "wire/icrc.h"

#define MAD 256

/* Bits @bit to @bit + @n - 1 of the MAD, counted from the most significant of its first byte. */
static uint32_t bits(const uint8_t *mad, uint32_t bit, uint32_t n)
{
	uint32_t v = 0;

	for (; n; n--, bit++)
		v = v << 1 | (mad[bit / 8] >> (7 - bit % 8) & 1);
	return v;
}

static void check(const struct frame *f)
{
	static const struct cm none;
	const uint8_t *m = f->data + f->payload;
	struct cm c, want;
	enum cm_type type;

	memset(&c, 0xa5, sizeof(c));
	memset(&want, 0, sizeof(want));
	type = cm_parse(f, &c);
	NEED(type == c.type);
	if (type == CM_NONE) {
		NEED(memcmp(&c, &none, sizeof(c)) == 0);
		return;
	}
	NEED(f->opcode == OP_UD_SEND_ONLY && f->dqpn == 1 && f->payload_len >= MAD);
	NEED(get_be32(f->data + f->deth) == 0x80010000u);
	NEED(m[0] == 1 && m[1] == 7 && m[3] == 3 && bits(m, 128, 16) == (uint32_t)type);
	NEED(type >= CM_REQ && type <= CM_DREP);
	/* 24 bytes of MAD header, then fields as in spec: IBTA 12.6, in bits */
	want.type = type;
	want.transaction_id = (uint64_t)bits(m, 64, 32) << 32 | bits(m, 96, 32);
	want.local_id = bits(m, 192, 32);
	if (type != CM_REQ)
		want.remote_id = bits(m, 224, 32);
	if (type == CM_REQ) {
		uint32_t code = bits(m, 192 + 50 * 8, 4);

		want.lqpn = bits(m, 192 + 32 * 8, 24);
		want.responder_resources = (uint8_t)bits(m, 192 + 35 * 8, 8);
		want.initiator_depth = (uint8_t)bits(m, 192 + 39 * 8, 8);
		want.rc = bits(m, 192 + 43 * 8 + 5, 2) == 0;
		want.flow_control = bits(m, 192 + 43 * 8 + 7, 1);
		want.starting_psn = bits(m, 192 + 44 * 8, 24);
		want.retry_count = (uint8_t)bits(m, 192 + 47 * 8 + 5, 3);
		want.path_mtu = code >= 1 && code <= 5 ? 128u << code : 0;
		want.rnr_retry = (uint8_t)bits(m, 192 + 50 * 8 + 5, 3);
		want.ack_timeout = (uint8_t)bits(m, 192 + 95 * 8, 5);
	} else if (type == CM_REP) {
		want.lqpn = bits(m, 192 + 12 * 8, 24);
		want.starting_psn = bits(m, 192 + 20 * 8, 24);
		want.flow_control = bits(m, 192 + 26 * 8 + 7, 1);
		want.responder_resources = (uint8_t)bits(m, 192 + 24 * 8, 8);
		want.initiator_depth = (uint8_t)bits(m, 192 + 25 * 8, 8);
		want.rnr_retry = (uint8_t)bits(m, 192 + 27 * 8, 3);
	} else if (type == CM_DREQ) {
		want.rqpn = bits(m, 192 + 8 * 8, 24);
	}
	NEED(c.transaction_id == want.transaction_id && c.local_id == want.local_id);
	NEED(c.remote_id == want.remote_id && c.lqpn == want.lqpn && c.rqpn == want.rqpn);
	NEED(c.starting_psn == want.starting_psn && c.path_mtu == want.path_mtu);
	NEED(c.responder_resources == want.responder_resources);
	NEED(c.initiator_depth == want.initiator_depth && c.rc == want.rc);
	NEED(c.flow_control == want.flow_control);
	NEED(c.retry_count == want.retry_count && c.rnr_retry == want.rnr_retry);
	NEED(c.ack_timeout == want.ack_timeout);
}

static void check_bytes(const uint8_t *data, size_t len)
{
	uint8_t *d = block_of(data, len);
	struct frame f;

	if (frame_parse(d, (uint32_t)len, &f) == FRAME_OK)
		check(&f);
	free(d);
}

static void addresses(struct ip_addr a[2], bool v4)
{
	memset(a, 0, 2 * sizeof(*a));
	for (int i = 0; i < 2; i++) {
		if (v4)
			a[i] = ip_addr_v4((const uint8_t *)"\x0a\0\0\1");
		a[i].b[15] = (uint8_t)(i + 1);
	}
}

static const uint8_t mac[6] = {2};

/* A datagram with any MAD of any length. */
static void mad_frame(struct input *in)
{
	uint8_t out[FRAME_MAX], b = next8(in);
	struct ip_addr a[2];
	struct template t;
	struct build_spec s = {
		.t = &t, .opcode = OP_UD_SEND_ONLY, .dqpn = 1, .qkey = 0x80010000u, .sqpn = 1};
	size_t len;

	addresses(a, b & 1);
	template_make(&t, mac, mac, b & 2 ? 9 : FRAME_VLAN_NONE, &a[0], &a[1], 0xc000);
	if (b & 4)
		s.dqpn = next24(in);
	if (b & 8)
		s.qkey = next32(in);
	if (b & 16)
		s.opcode = next8(in);
	len = in->left > PAYLOAD_MAX ? PAYLOAD_MAX : in->left;
	if (!(opcode_info(s.opcode)->flags & OPF_PAYLOAD))
		len = 0;
	s.payload = next_bytes(in, &len);
	s.payload_len = (uint32_t)len;
	check_bytes(out, build_packet(out, &s));
}

/* What the model hosts write about a connection is what is understood. */
static void emitted(struct input *in)
{
	uint8_t out[CM_FRAME_MAX], b = next8(in);
	struct cm c = {.type = (enum cm_type)(CM_REQ + next8(in) % 7)}, got;
	struct rc_header h;
	struct ip_addr a[2];
	struct frame f;
	uint32_t n;

	c.transaction_id = next64(in);
	c.local_id = next32(in);
	if (c.type != CM_REQ)
		c.remote_id = next32(in);
	if (c.type == CM_REQ || c.type == CM_REP) {
		c.lqpn = next24(in);
		c.starting_psn = next24(in);
		c.responder_resources = next8(in);
		c.initiator_depth = next8(in);
		c.rnr_retry = next8(in) & 7;
	}
	if (c.type == CM_REQ) {
		c.path_mtu = 256u << next8(in) % 5;
		c.retry_count = next8(in) & 7;
		c.ack_timeout = next8(in) & 31;
		c.rc = next8(in) & 1;
	}
	if (c.type == CM_DREQ)
		c.rqpn = next24(in);
	addresses(a, b & 1);
	rc_header_init(&h, mac, mac, b & 2 ? 9 : FRAME_VLAN_NONE, &a[0], &a[1], 0xc000);
	n = cm_emit(out, &h, &a[0], &a[1], &c, next24(in));
	NEED(n <= sizeof(out) && frame_parse(out, n, &f) == FRAME_OK && icrc_ok(&f));
	NEED(cm_parse(&f, &got) == c.type);
	NEED(got.transaction_id == c.transaction_id && got.local_id == c.local_id);
	NEED(got.remote_id == c.remote_id && got.lqpn == c.lqpn && got.rqpn == c.rqpn);
	NEED(got.starting_psn == c.starting_psn && got.path_mtu == c.path_mtu && got.rc == c.rc);
	NEED(got.responder_resources == c.responder_resources);
	NEED(got.initiator_depth == c.initiator_depth && got.retry_count == c.retry_count);
	NEED(got.rnr_retry == c.rnr_retry && got.ack_timeout == c.ack_timeout);
	check_bytes(out, n);
}

static void own_dreq(struct input *in)
{
	uint8_t out[FRAME_MAX], b = next8(in);
	struct ip_addr a[2];
	uint32_t psn = next24(in), local = next32(in), remote = next32(in), rqpn = next24(in), n;
	uint64_t tid = next64(in);
	struct template t;
	struct frame f;
	struct cm c;

	addresses(a, b & 1);
	template_make(&t, mac, mac, b & 2 ? 9 : FRAME_VLAN_NONE, &a[0], &a[1], 0xc000);
	n = cm_build_dreq(out, &t, psn, tid, local, remote, rqpn);
	NEED(frame_parse(out, n, &f) == FRAME_OK && icrc_ok(&f) && f.psn == psn);
	NEED(cm_parse(&f, &c) == CM_DREQ && c.transaction_id == tid && c.local_id == local &&
	     c.remote_id == remote && c.rqpn == rqpn);
	check(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};

	switch (next8(&in) % 4) {
	case 0:
		check_bytes(in.p, in.left > UINT16_MAX ? UINT16_MAX : in.left);
		break;
	case 1:
		mad_frame(&in);
		break;
	case 2:
		emitted(&in);
		break;
	case 3:
		own_dreq(&in);
		break;
	}
	return 0;
}
