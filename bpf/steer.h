/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The one header that the XDP program and user space share: map layouts and counters.
 */
#ifndef LONGHAUL_STEER_H
#define LONGHAUL_STEER_H

#include <linux/types.h>

#define STEER_RULES 64	     /* rules are bits of one word */
#define STEER_PREFIXES 4096  /* per side */
#define STEER_QUEUES 64
#define STEER_UNTAGGED 4095u /* index into the VLAN map for untagged frames (4095 is reserved) */
#define STEER_ROCE_PORT 4791

/* Which port the program instance is attached to; also index into config. */
enum steer_side {
	STEER_LAN,
	STEER_WAN,
	STEER_SIDES,
};

/**
 * struct steer_prefix - key of the two prefix tries (near and far), IPv4 as v4-mapped IPv6.
 * @plen: prefix length in bits, 96 more for IPv4
 */
struct steer_prefix {
	__u32 plen;
	__u8 addr[16];
};

/**
 * struct steer_config - one element, written by user space.
 * @heartbeat_ns:  CLOCK_MONOTONIC of the daemon's latest sign of life; older than @stale_ns: all pass up
 * @max_frame:     longer frames pass up (a kernel without multi-buffer cannot hand them over)
 */
struct steer_config {
	__u64 heartbeat_ns;
	__u64 stale_ns;
	__u32 max_frame;
	__u32 pad;
};

/* Counters, per CPU, per side: index = side * STEER_COUNTERS + counter. */
enum steer_counter {
	STEER_TAKEN,	    /* to the daemon */
	STEER_OTHER,	    /* not RoCEv2 */
	STEER_NO_RULE,	    /* RoCEv2 that no rule wants */
	STEER_FRAGMENT,	    /* IP fragments, IP options or extension headers: passed up */
	STEER_STALE,	    /* the daemon gives no sign of life: passed up */
	STEER_NO_SOCKET,    /* no socket on this queue: passed up */
	STEER_TOO_LONG,	    /* above max_frame: passed up */
	STEER_RUNT,	    /* too short to look at: passed up */
	STEER_COUNTERS,
};

#endif
