/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The input of fuzz_engine: SETUP bytes, then records. A record begins with a byte whose low half
 * is an enum rec, and
 *
 *	0x30	the connection, 0 to 3: two in IPv4, one in IPv6, one on VLAN 5
 *	0x40	which host: of the LAN side, or beyond the WAN
 *	0x80	no tick after it
 *
 * followed by as many bytes as rec_size[] says; those with a length (big-endian, 16 bits) as their
 * last two bytes have so many more behind them.
 */
#ifndef LONGHAUL_TESTS_FUZZ_ENGINE_RECORD_H
#define LONGHAUL_TESTS_FUZZ_ENGINE_RECORD_H

#include <stddef.h>
#include <stdint.h>

#define SETUP 4

/* Bits of the setup: byte 0 */
#define SETUP_SINGLE   0x01
#define SETUP_POLICY   0x06
#define SETUP_MTU      0x18 /* 0, 256, 1024, 4096 */
#define SETUP_SMALL    0x20 /* a pool of few superblocks */
#define SETUP_PACED    0x40
#define SETUP_WRAP     0x80 /* PSNs begin just below 2^24 */
/* byte 1: what to begin with */
#define SETUP_LEARNED  0x01 /* connection 0 is known, both ways */
#define SETUP_HELD     0x02 /* its lane from the LAN is in custody */
#define SETUP_ACCEPTOR 0x04 /* its lane from beyond the WAN is accepted */
#define SETUP_SECOND   0x08 /* the same for connection 1 */
#define SETUP_NO_CM    0x10
#define SETUP_NO_PSN   0x20
#define SETUP_PREFETCH 0x40
#define SETUP_CHECKED  0x80 /* wan-check = on */

enum rec {
	/* mark, opcode, offset, length, two bytes of arguments, bits: a frame near a mark of the
	 * lane */
	REC_NEAR_FRAME,
	/* bits, opcode, PSN (3), payload length (2), argument (4): a frame by numbers */
	REC_FRAME,
	/* count, kind, length: the requester goes on in order */
	REC_REQUESTS,
	/* mark, offset, syndrome, MSN offset: the responder answers */
	REC_ACK,
	/* length: any bytes as a frame */
	REC_RAW,
	/* which, change, position (2): an earlier frame again, altered or not */
	REC_AGAIN,
	/* which: something that the engine has sent comes back */
	REC_ECHO,
	/* type, bits, mark and offset of cum, una, hi; room, MSN offset, reason or syndrome */
	REC_REPORT,
	/* bits, length: a report as the peer protocol encodes it */
	REC_REPORT_RAW,
	/* what: peer up, down, restarted, drain */
	REC_PEER,
	/* time (2) */
	REC_TIME,
	/* which rules */
	REC_RULES,
	/* which ports take nothing more */
	REC_FULL,
	/* type, bits, argument: the connection manager */
	REC_CM,
	/* learn the connection */
	REC_LEARN,
	/* count: until the engine's next deadlines */
	REC_WAIT,
	RECS,
};

#define REC_CONN(b) ((b) >> 4 & 3)
#define REC_FAR	    0x40
#define REC_QUIET   0x80

static const uint8_t rec_size[RECS] = {
	[REC_NEAR_FRAME] = 7, [REC_FRAME] = 11, [REC_REQUESTS] = 3, [REC_ACK] = 4,
	[REC_RAW] = 2,	      [REC_AGAIN] = 4,	[REC_ECHO] = 1,	    [REC_REPORT] = 11,
	[REC_REPORT_RAW] = 3, [REC_PEER] = 1,	[REC_TIME] = 2,	    [REC_RULES] = 1,
	[REC_FULL] = 1,	      [REC_CM] = 3,	[REC_LEARN] = 1,    [REC_WAIT] = 1,
};

/* Bits of REC_FRAME and of REC_NEAR_FRAME's last byte */
#define FRAME_ACKREQ	0x01
#define FRAME_SOLICITED 0x02
#define FRAME_DAMAGED	0x04 /* a wrong ICRC */
#define FRAME_ASIDE	0x08 /* arrives at the other port than it should */
#define FRAME_FECN	0x10
#define FRAME_PADDED	0x20 /* Ethernet padding behind it */

/* Bits of REC_REPORT_RAW: lane and generation are the engine's own for that connection and host;
 * the peer's key and QPN are those of the connection */
#define REPORT_OWN 0x01
#define REPORT_KEY 0x02

/* REC_TIME: the upper four bits are a power of four, the lower twelve count; units of 64 ns. */
static inline uint64_t rec_time(uint16_t t)
{
	uint64_t ns = (uint64_t)(t & 0xfff) << (6 + 2 * (t >> 12));

	return ns < 700000000000ull ? ns : 700000000000ull;
}

/** rec_len - bytes of the record at @p, at most @left. */
static inline size_t rec_len(const uint8_t *p, size_t left)
{
	uint8_t op = p[0] & 15;
	size_t n = 1u + rec_size[op];

	if (n < left && (op == REC_RAW || op == REC_REPORT_RAW))
		n += (size_t)p[n - 2] << 8 | p[n - 1];
	return n < left ? n : left;
}

#endif
