// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The opcode table, all 256 rows of it. Lengths and offsets of the extended headers follow from the
 * set of headers by constant expressions, so that a row cannot contradict itself.
 *
 * Opcodes of other transports than RC have names, so that they count as known, but no role: they
 * are never taken into custody. RD and XRC have leading headers of their own (RDETH, XRCETH), which
 * are part of the payload here.
 *
 * PUSH and PARITY are from the range for manufacturers. A queue pair accepts packets of its own
 * transport only, so a network card that ever gets one drops it.
 *
 * Two opcodes of the RC range are in no standard, but sent by one vendor's network cards: the
 * masked ATOMICs. The masked CmpSwap is known from a capture: address and key as in AtomicETH, then
 * four fields of 8 bytes (swap, compare, and a mask of each). The masked FetchAdd is assumed: its
 * opcode is the next one, and its work request has two such fields (what to add, and where fields
 * end), as many as AtomicETH. If it has more on the wire, they count as payload here.
 */
#include "wire/opcode.h"

#include <stddef.h>

/* Offset of each header from the first byte of the BTH, if the set @h has it. */
#define HAS(h, bit, n)	(((h) & (bit)) ? (n) : 0)
#define AT_DETH(h)	12
#define AT_FETH(h)	(AT_DETH(h) + HAS(h, HDR_DETH, 8))
#define AT_RETH(h)	(AT_FETH(h) + HAS(h, HDR_FETH, 4))
#define AT_ATOMICETH(h) (AT_RETH(h) + HAS(h, HDR_RETH, 16))
#define AT_AETH(h)	(AT_ATOMICETH(h) + HAS(h, HDR_ATOMICETH, 28) + HAS(h, HDR_MASKS, 16))
#define AT_ATOMICACK(h) (AT_AETH(h) + HAS(h, HDR_AETH, 4))
#define AT_IMMDT(h)	(AT_ATOMICACK(h) + HAS(h, HDR_ATOMICACK, 8))
#define AT_IETH(h)	(AT_IMMDT(h) + HAS(h, HDR_IMMDT, 4))
#define AT_PUSH(h)	(AT_IETH(h) + HAS(h, HDR_IETH, 4) + HAS(h, HDR_CNPPAD, 16))
#define AT_END(h)                                                                                  \
	(AT_PUSH(h) + HAS(h, HDR_PUSH, 16) + HAS(h, HDR_PROOF, 8) + HAS(h, HDR_MEMBERS, 48))
#define OFF(h, name) HAS(h, HDR_##name, AT_##name(h))

#define ROW(op, text, h, f)                                                                        \
	[op] = {                                                                                   \
		.name = (text),                                                                    \
		.headers = (h),                                                                    \
		.flags = (f),                                                                      \
		.hdr_len = AT_END(h) - 12,                                                         \
		.reth = OFF(h, RETH),                                                              \
		.aeth = OFF(h, AETH),                                                              \
		.atomiceth = OFF(h, ATOMICETH),                                                    \
		.atomicack = OFF(h, ATOMICACK),                                                    \
		.immdt = OFF(h, IMMDT),                                                            \
		.ieth = OFF(h, IETH),                                                              \
		.deth = OFF(h, DETH),                                                              \
		.feth = OFF(h, FETH),                                                              \
	}

#define REQ   (OPF_RC | OPF_REQUEST)
#define RSP   (OPF_RC | OPF_RESPONSE)
#define SEND  (REQ | OPF_SEND | OPF_PAYLOAD)
#define WRITE (REQ | OPF_WRITE | OPF_PAYLOAD)
#define RDRSP (RSP | OPF_READ | OPF_PAYLOAD)

/* SEND and WRITE of a transport other than RC: headers where they are known, no role. */
#define OTHER_ROWS(base, t, reth, imm)                                                             \
	ROW((base) + OP_SEND_FIRST, t " SEND FIRST", 0, OPF_PAYLOAD),                              \
		ROW((base) + OP_SEND_MIDDLE, t " SEND MIDDLE", 0, OPF_PAYLOAD),                    \
		ROW((base) + OP_SEND_LAST, t " SEND LAST", 0, OPF_PAYLOAD),                        \
		ROW((base) + OP_SEND_LAST_IMM, t " SEND LAST with immediate", imm, OPF_PAYLOAD),   \
		ROW((base) + OP_SEND_ONLY, t " SEND ONLY", 0, OPF_PAYLOAD),                        \
		ROW((base) + OP_SEND_ONLY_IMM, t " SEND ONLY with immediate", imm, OPF_PAYLOAD),   \
		ROW((base) + OP_WRITE_FIRST, t " RDMA WRITE FIRST", reth, OPF_PAYLOAD),            \
		ROW((base) + OP_WRITE_MIDDLE, t " RDMA WRITE MIDDLE", 0, OPF_PAYLOAD),             \
		ROW((base) + OP_WRITE_LAST, t " RDMA WRITE LAST", 0, OPF_PAYLOAD),                 \
		ROW((base) + OP_WRITE_LAST_IMM, t " RDMA WRITE LAST with immediate", imm,          \
		    OPF_PAYLOAD),                                                                  \
		ROW((base) + OP_WRITE_ONLY, t " RDMA WRITE ONLY", reth, OPF_PAYLOAD),              \
		ROW((base) + OP_WRITE_ONLY_IMM, t " RDMA WRITE ONLY with immediate",               \
		    (reth) | (imm), OPF_PAYLOAD)

/* READ, ACK and ATOMIC of a transport with headers that are not decoded. */
#define OPAQUE_ROWS(base, t)                                                                       \
	ROW((base) + OP_READ_REQUEST, t " RDMA READ request", 0, OPF_PAYLOAD),                     \
		ROW((base) + OP_READ_RESPONSE_FIRST, t " RDMA READ response FIRST", 0,             \
		    OPF_PAYLOAD),                                                                  \
		ROW((base) + OP_READ_RESPONSE_MIDDLE, t " RDMA READ response MIDDLE", 0,           \
		    OPF_PAYLOAD),                                                                  \
		ROW((base) + OP_READ_RESPONSE_LAST, t " RDMA READ response LAST", 0, OPF_PAYLOAD), \
		ROW((base) + OP_READ_RESPONSE_ONLY, t " RDMA READ response ONLY", 0, OPF_PAYLOAD), \
		ROW((base) + OP_ACK, t " ACK", 0, OPF_PAYLOAD),                                    \
		ROW((base) + OP_ATOMIC_ACK, t " ATOMIC ACK", 0, OPF_PAYLOAD),                      \
		ROW((base) + OP_CMP_SWAP, t " CmpSwap", 0, OPF_PAYLOAD),                           \
		ROW((base) + OP_FETCH_ADD, t " FetchAdd", 0, OPF_PAYLOAD)

const struct opcode_info opcode_table[256] = {
	ROW(OP_SEND_FIRST, "RC SEND FIRST", 0, SEND | OPF_FIRST),
	ROW(OP_SEND_MIDDLE, "RC SEND MIDDLE", 0, SEND | OPF_MIDDLE),
	ROW(OP_SEND_LAST, "RC SEND LAST", 0, SEND | OPF_LAST),
	ROW(OP_SEND_LAST_IMM, "RC SEND LAST with immediate", HDR_IMMDT, SEND | OPF_LAST),
	ROW(OP_SEND_ONLY, "RC SEND ONLY", 0, SEND | OPF_ONLY),
	ROW(OP_SEND_ONLY_IMM, "RC SEND ONLY with immediate", HDR_IMMDT, SEND | OPF_ONLY),
	ROW(OP_WRITE_FIRST, "RC RDMA WRITE FIRST", HDR_RETH, WRITE | OPF_FIRST),
	ROW(OP_WRITE_MIDDLE, "RC RDMA WRITE MIDDLE", 0, WRITE | OPF_MIDDLE),
	ROW(OP_WRITE_LAST, "RC RDMA WRITE LAST", 0, WRITE | OPF_LAST),
	ROW(OP_WRITE_LAST_IMM, "RC RDMA WRITE LAST with immediate", HDR_IMMDT, WRITE | OPF_LAST),
	ROW(OP_WRITE_ONLY, "RC RDMA WRITE ONLY", HDR_RETH, WRITE | OPF_ONLY),
	ROW(OP_WRITE_ONLY_IMM, "RC RDMA WRITE ONLY with immediate", HDR_RETH | HDR_IMMDT,
	    WRITE | OPF_ONLY),
	ROW(OP_READ_REQUEST, "RC RDMA READ request", HDR_RETH,
	    REQ | OPF_READ | OPF_ONLY | OPF_ANSWERED),
	ROW(OP_READ_RESPONSE_FIRST, "RC RDMA READ response FIRST", HDR_AETH, RDRSP | OPF_FIRST),
	ROW(OP_READ_RESPONSE_MIDDLE, "RC RDMA READ response MIDDLE", 0, RDRSP | OPF_MIDDLE),
	ROW(OP_READ_RESPONSE_LAST, "RC RDMA READ response LAST", HDR_AETH, RDRSP | OPF_LAST),
	ROW(OP_READ_RESPONSE_ONLY, "RC RDMA READ response ONLY", HDR_AETH, RDRSP | OPF_ONLY),
	ROW(OP_ACK, "RC ACK", HDR_AETH, RSP),
	ROW(OP_ATOMIC_ACK, "RC ATOMIC ACK", HDR_AETH | HDR_ATOMICACK, RSP | OPF_ATOMIC | OPF_ONLY),
	ROW(OP_CMP_SWAP, "RC CmpSwap", HDR_ATOMICETH, REQ | OPF_ATOMIC | OPF_ONLY | OPF_ANSWERED),
	ROW(OP_FETCH_ADD, "RC FetchAdd", HDR_ATOMICETH, REQ | OPF_ATOMIC | OPF_ONLY | OPF_ANSWERED),
	ROW(OP_SEND_LAST_INV, "RC SEND LAST with invalidate", HDR_IETH, SEND | OPF_LAST),
	ROW(OP_SEND_ONLY_INV, "RC SEND ONLY with invalidate", HDR_IETH, SEND | OPF_ONLY),
	ROW(OP_MASKED_CMP_SWAP, "RC masked CmpSwap", HDR_ATOMICETH | HDR_MASKS,
	    REQ | OPF_ATOMIC | OPF_ONLY | OPF_ANSWERED),
	ROW(OP_MASKED_FETCH_ADD, "RC masked FetchAdd", HDR_ATOMICETH,
	    REQ | OPF_ATOMIC | OPF_ONLY | OPF_PAYLOAD | OPF_ANSWERED),
	ROW(OP_FLUSH, "RC FLUSH", HDR_FETH | HDR_RETH, REQ | OPF_ONLY | OPF_ANSWERED),
	ROW(OP_ATOMIC_WRITE, "RC ATOMIC WRITE", HDR_RETH,
	    REQ | OPF_ONLY | OPF_PAYLOAD | OPF_ANSWERED),

	OTHER_ROWS(0x20, "UC", HDR_RETH, HDR_IMMDT),
	OTHER_ROWS(0x40, "RD", 0, 0),
	OPAQUE_ROWS(0x40, "RD"),
	ROW(OP_UD_SEND_ONLY, "UD SEND ONLY", HDR_DETH, OPF_PAYLOAD),
	ROW(OP_UD_SEND_ONLY_IMM, "UD SEND ONLY with immediate", HDR_DETH | HDR_IMMDT, OPF_PAYLOAD),
	ROW(OP_CNP, "CNP", HDR_CNPPAD, 0),
	ROW(OP_PUSH, "longhaul PUSH", HDR_PUSH, OPF_PAYLOAD),
	ROW(OP_PARITY, "longhaul PARITY", HDR_PUSH | HDR_PROOF, OPF_PAYLOAD),
	ROW(OP_PARITY_REQUESTS, "longhaul PARITY of requests", HDR_MEMBERS, OPF_PAYLOAD),
	ROW(OP_PARITY_ANSWERS, "longhaul PARITY of answers", HDR_MEMBERS, OPF_PAYLOAD),
	OTHER_ROWS(0xa0, "XRC", 0, 0),
	OPAQUE_ROWS(0xa0, "XRC"),
	ROW(0xa0 + OP_SEND_LAST_INV, "XRC SEND LAST with invalidate", 0, OPF_PAYLOAD),
	ROW(0xa0 + OP_SEND_ONLY_INV, "XRC SEND ONLY with invalidate", 0, OPF_PAYLOAD),
};
