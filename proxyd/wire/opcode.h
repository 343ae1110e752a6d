/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The opcode table: what each BTH opcode means and which extended headers follow it (spec: IBTA
 * 9.2, table 38). Only the RC opcodes, UD SEND ONLY and the CNP are known in detail; UC, RD, XRC
 * are known by transport only, and pass by unchanged.
 *
 * row: ENG-1, ENG-17
 */
#ifndef LONGHAUL_WIRE_OPCODE_H
#define LONGHAUL_WIRE_OPCODE_H

#include <stdbool.h>
#include <stdint.h>

enum roce_opcode {
	OP_SEND_FIRST = 0x00,
	OP_SEND_MIDDLE = 0x01,
	OP_SEND_LAST = 0x02,
	OP_SEND_LAST_IMM = 0x03,
	OP_SEND_ONLY = 0x04,
	OP_SEND_ONLY_IMM = 0x05,
	OP_WRITE_FIRST = 0x06,
	OP_WRITE_MIDDLE = 0x07,
	OP_WRITE_LAST = 0x08,
	OP_WRITE_LAST_IMM = 0x09,
	OP_WRITE_ONLY = 0x0a,
	OP_WRITE_ONLY_IMM = 0x0b,
	OP_READ_REQUEST = 0x0c,
	OP_READ_RESPONSE_FIRST = 0x0d,
	OP_READ_RESPONSE_MIDDLE = 0x0e,
	OP_READ_RESPONSE_LAST = 0x0f,
	OP_READ_RESPONSE_ONLY = 0x10,
	OP_ACK = 0x11,
	OP_ATOMIC_ACK = 0x12,
	OP_CMP_SWAP = 0x13,
	OP_FETCH_ADD = 0x14,
	OP_SEND_LAST_INV = 0x16,
	OP_SEND_ONLY_INV = 0x17,
	OP_MASKED_CMP_SWAP = 0x18, /* mlx5's own, see opcode.c */
	OP_MASKED_FETCH_ADD = 0x19,
	OP_FLUSH = 0x1c,
	OP_ATOMIC_WRITE = 0x1d,
	OP_UD_SEND_ONLY = 0x64,
	OP_UD_SEND_ONLY_IMM = 0x65,
	OP_CNP = 0x81,
	OP_PUSH = 0xd0,	  /* our own, between two appliances: data that a READ will request */
	OP_PARITY = 0xd1, /* our own: to restore a lost PUSH */
	OP_PARITY_REQUESTS = 0xd2, /* our own: to restore a lost request */
	OP_PARITY_ANSWERS = 0xd3,  /* our own: to restore a lost response to a READ */
};

/* Extended headers, in their order after the BTH; only FETH precedes RETH. */
#define HDR_DETH      0x01u   /* 8 B: Q_Key, reserved, source QPN */
#define HDR_RETH      0x02u   /* 16 B: va, rkey, length */
#define HDR_ATOMICETH 0x04u   /* 28 B: va, rkey, swap or add, compare */
#define HDR_AETH      0x08u   /* 4 B: syndrome, MSN */
#define HDR_ATOMICACK 0x10u   /* 8 B: the original value */
#define HDR_IMMDT     0x20u   /* 4 B */
#define HDR_IETH      0x40u   /* 4 B: rkey to invalidate */
#define HDR_CNPPAD    0x80u   /* 16 zero bytes */
#define HDR_FETH      0x100u  /* 4 B: FLUSH type and level (then RETH) */
#define HDR_MASKS     0x200u  /* 16 B after AtomicETH: masks of swap and compare */
#define HDR_PUSH      0x400u  /* 16 B: command, packet, packets, tag (engine/announce/push.c) */
#define HDR_MEMBERS   0x1000u /* 48 B: which packets, and their sum (engine/link/stream_parity.c) */
#define HDR_PROOF     0x800u  /* 8 B: tags of others (engine/announce/parity.c) */

/* Roles and positions. */
#define OPF_RC	     0x0001u
#define OPF_REQUEST  0x0002u
#define OPF_RESPONSE 0x0004u
#define OPF_FIRST    0x0008u /* begins a message of several packets */
#define OPF_MIDDLE   0x0010u
#define OPF_LAST     0x0020u /* ends one */
#define OPF_ONLY     0x0040u
#define OPF_SEND     0x0080u
#define OPF_WRITE    0x0100u
#define OPF_READ     0x0200u /* READ request and READ responses */
#define OPF_ATOMIC   0x0400u /* CmpSwap, FetchAdd and ATOMIC ACK */
#define OPF_PAYLOAD  0x0800u /* may carry payload */
/* A request for data or a completion that only the responder can give: READ, ATOMIC, FLUSH, ATOMIC
 * WRITE. Neither it nor anything after it may be acknowledged before its response. */
#define OPF_ANSWERED 0x1000u

#define OPF_EOM (OPF_LAST | OPF_ONLY)

/**
 * struct opcode_info - one row of the table.
 * @name:    its usual name, e.g. "RC SEND FIRST"; NULL if the opcode is unknown
 * @headers: HDR_* present after the BTH
 * @flags:   OPF_*; other transports than RC have at most OPF_PAYLOAD
 * @hdr_len: bytes of all extended headers
 * @reth, @aeth, @atomiceth, @atomicack, @immdt, @ieth, @deth, @feth: offset from the first byte of
 *                                                                    the BTH, 0 when absent, so
 *                                                                    that the parser need only add
 */
struct opcode_info {
	const char *name;
	uint16_t headers;
	uint16_t flags;
	uint8_t hdr_len;
	uint8_t reth, aeth, atomiceth, atomicack, immdt, ieth, deth, feth;
};

extern const struct opcode_info opcode_table[256];

/** opcode_info - the row of @opcode; never NULL, an unknown opcode has name NULL and no flags. */
static inline const struct opcode_info *opcode_info(uint8_t opcode)
{
	return &opcode_table[opcode];
}

/** opcode_is_rc - whether @opcode, known or not, is in the range of the RC transport. */
static inline bool opcode_is_rc(uint8_t opcode)
{
	return opcode >> 5 == 0;
}

#endif
