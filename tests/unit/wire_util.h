/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the tests of wire/ share: a seeded generator, exact-size copies, packets of any shape. */
#ifndef LONGHAUL_TESTS_WIRE_UTIL_H
#define LONGHAUL_TESTS_WIRE_UTIL_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/build.h"
#include "wire/bytes.h"
#include "wire/frame.h"
#include "wire/icrc.h"

static uint64_t wire_seed = 0x2545f4914f6cdd1dull;

static inline uint32_t wire_rand(void)
{
	wire_seed ^= wire_seed << 13;
	wire_seed ^= wire_seed >> 7;
	wire_seed ^= wire_seed << 17;
	return (uint32_t)(wire_seed >> 32);
}

static inline void wire_fill(uint8_t *p, uint32_t n)
{
	while (n--)
		*p++ = (uint8_t)wire_rand();
}

/* A block of exactly @n bytes, so that the address sanitizer sees the byte after it. */
static inline uint8_t *wire_dup(const uint8_t *p, uint32_t n)
{
	uint8_t *q = malloc(n ? n : 1);

	memcpy(q, p, n);
	return q;
}

enum wire_shape {
	SHAPE_V4,
	SHAPE_V4_TAG,
	SHAPE_V4_PRIO,
	SHAPE_V6,
	SHAPE_V6_TAG,
	SHAPE_V6_PRIO,
	SHAPES
};

static inline void wire_template(struct template *t, enum wire_shape shape)
{
	static const uint8_t smac[6] = {2, 0, 0, 0, 0, 1}, dmac[6] = {2, 0, 0, 0, 0, 2};
	struct ip_addr src, dst;

	ip_addr_parse(shape >= SHAPE_V6 ? "2001:db8::1" : "192.0.2.1", &src);
	ip_addr_parse(shape >= SHAPE_V6 ? "2001:db8::2" : "192.0.2.2", &dst);
	template_make(t, smac, dmac, shape % 3 ? 0x6123 : FRAME_VLAN_NONE, &src, &dst, 0xc123);
	if (shape % 3 == 2)
		put_be16(t->hdr + 14, 0x6000); /* a priority, and no VLAN */
}

/* Take a parsed packet apart into a specification. */
static inline struct build_spec wire_spec(const struct frame *f, const struct template *t)
{
	const uint8_t *d = f->data;
	struct build_spec s = {
		.t = t,
		.opcode = f->opcode,
		.dqpn = f->dqpn,
		.psn = f->psn,
		.ackreq = f->ackreq,
		.solicited = f->solicited,
		.payload = f->payload_len ? d + f->payload : NULL,
		.payload_len = f->payload_len,
	};

	if (f->reth) {
		s.va = frame_reth_va(f);
		s.rkey = frame_reth_rkey(f);
		s.length = frame_reth_length(f);
	}
	if (f->atomiceth) {
		s.va = get_be64(d + f->atomiceth);
		s.rkey = get_be32(d + f->atomiceth + 8);
		s.swap_add = get_be64(d + f->atomiceth + 12);
		s.compare = get_be64(d + f->atomiceth + 20);
	}
	if (f->aeth) {
		s.syndrome = frame_aeth_syndrome(f);
		s.msn = frame_aeth_msn(f);
	}
	if (f->atomicack)
		s.atomic_value = get_be64(d + f->atomicack);
	if (f->immdt)
		s.immdt = frame_immdt(f);
	if (f->ieth)
		s.immdt = get_be32(d + f->ieth);
	if (f->op->feth)
		s.immdt = get_be32(d + f->bth + f->op->feth);
	if (f->deth) {
		s.qkey = get_be32(d + f->deth);
		s.sqpn = get_be24(d + f->deth + 5);
	}
	return s;
}

/* A good frame of any known opcode, @n bytes of random payload (0 where the opcode has none). */
static inline uint32_t wire_packet(uint8_t *out, enum wire_shape shape, uint8_t opcode, uint32_t n)
{
	static uint8_t payload[PAYLOAD_MAX];
	struct template t;
	struct build_spec s = {
		.t = &t,
		.opcode = opcode,
		.dqpn = wire_rand() & 0xffffff,
		.psn = wire_rand() & 0xffffff,
		.ackreq = wire_rand() & 1,
		.solicited = wire_rand() & 1,
		.va = (uint64_t)wire_rand() << 32 | wire_rand(),
		.rkey = wire_rand(),
		.length = wire_rand(),
		.swap_add = wire_rand(),
		.compare = wire_rand(),
		.atomic_value = wire_rand(),
		.syndrome = (uint8_t)wire_rand(),
		.msn = wire_rand() & 0xffffff,
		.immdt = wire_rand(),
		.qkey = wire_rand(),
		.sqpn = wire_rand() & 0xffffff,
		.payload = payload,
		.payload_len = opcode_info(opcode)->flags & OPF_PAYLOAD ? n : 0,
	};

	wire_fill(payload, n);
	wire_template(&t, shape);
	return build_packet(out, &s);
}

#endif
