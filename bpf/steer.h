/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The one header that the XDP program and user space share: map layouts and counters.
 */
#ifndef LONGHAUL_STEER_H
#define LONGHAUL_STEER_H

#include <linux/types.h>

#define STEER_RULES	64   /* rules are bits of one word */
#define STEER_PREFIXES	5120 /* per side */
#define STEER_QUEUES	64   /* per port */
#define STEER_VLANS	4096
#define STEER_UNTAGGED	4095u /* index into the VLAN map for untagged frames (4095 is reserved) */
#define STEER_ROCE_PORT 4791
#define STEER_HELD_MAX	32768 /* entries, two a connection, when user space sets no other number */

/* Which side the program instance is for. */
enum steer_side {
	STEER_LAN,
	STEER_WAN,
	STEER_SIDES,
};

/*
 * Each side has up to STEER_MEMBERS interfaces. Ports are numbered through: those of the LAN side
 * from 0 on, those of the WAN side from STEER_MEMBERS on.
 */
#define STEER_MEMBERS		 4
#define STEER_PORTS		 (STEER_SIDES * STEER_MEMBERS)
#define STEER_PORT(side, member) ((side)*STEER_MEMBERS + (member))

/* Index into the side's map of sockets. */
#define STEER_SOCKET(member, queue) ((member)*STEER_QUEUES + (queue))

/*
 * Rules are kept twice, as set 0 and set 1. The program reads the set named in config; user space
 * fills the other one and switches, so that no packet meets a mix of old and new rules.
 */
#define STEER_SETS     2
#define STEER_SET_BITS 32

/**
 * struct steer_prefix - key of the two prefix tries (near and far), IPv4 as v4-mapped IPv6.
 * @plen: prefix length in bits, STEER_SET_BITS for @set included, 96 more for IPv4
 * @set:  0 or 1; always matched in full
 *
 * The value is a 64-bit mask of rules. A trie gives the longest match only, so the mask of a prefix
 * must also have the rules of every shorter prefix that covers it. An address of the appliance
 * itself has the mask 0, so that nothing to or from it is taken.
 */
struct steer_prefix {
	__u32 plen;
	__u32 set;
	__u8 addr[16];
};

/* Index into the VLAN map: a mask of rules for each set and VLAN (STEER_UNTAGGED without a tag). */
#define STEER_VLAN_INDEX(set, vid) ((set)*STEER_VLANS + (vid))

/**
 * struct steer_held - key of the map of held flows: packets to one queue pair that only the daemon
 * can translate. While it is away they are dropped, on either port.
 * @src, @dst: IPv4 as v4-mapped IPv6
 * @dqpn: host order
 * @vid: VLAN id, STEER_UNTAGGED without a tag or with a priority tag
 */
struct steer_held {
	__u8 src[16], dst[16];
	__u32 dqpn;
	__u32 vid;
};

/* Which packets of a held connection these are; both, if both directions are held. */
#define STEER_REQUESTS 0x1u /* requests, and all else that that host sends to that queue pair */
#define STEER_ANSWERS  0x2u /* all packets in the other direction */

/**
 * struct steer_hold - value of the map of held flows. A daemon that adopts the map after a crash
 * reads it.
 * @other: QPN at the other end, the dqpn of the opposite direction's entry
 * @what:  STEER_REQUESTS, STEER_ANSWERS
 */
struct steer_hold {
	__u32 other;
	__u32 what;
};

/**
 * struct steer_config - one element, written by user space through a mapping of the map.
 * @heartbeat_ns:  CLOCK_MONOTONIC of the daemon's latest heartbeat; 0, or older than @stale_ns: all
 *                 pass up
 * @max_frame:     longer frames pass up (a kernel without multi-buffer cannot hand them over)
 * @set:           which set of rules is in force
 * @linear_only:   not 0: frames that lie in several buffers pass up, because the kernel would hand
 *                 over their first buffer only
 * @held:          connections in the map of held flows: the map is not read while there is none
 * @text:          digest of the program, for a daemon that adopts it
 * @ifindex:       [port] -> its interface, 0: no such port
 */
struct steer_config {
	__u64 heartbeat_ns;
	__u64 stale_ns;
	__u32 max_frame;
	__u32 set;
	__u32 linear_only;
	__u32 held;
	__u64 text;
	__u32 ifindex[STEER_PORTS];
};

/**
 * struct steer_unwanted - per CPU and side: a recent RoCEv2 packet that no rule wanted, so that an
 * operator learns whose they are. One in STEER_UNWANTED_EACH is kept.
 * @src, @dst, @vid: as in struct steer_held
 * @at_ns: CLOCK_MONOTONIC, 0: none
 */
struct steer_unwanted {
	__u8 src[16], dst[16];
	__u32 vid;
	__u32 count;
	__u64 at_ns;
};
#define STEER_UNWANTED_EACH 64

/* Counters, per CPU, per port: index = port * STEER_COUNTERS + counter. */
enum steer_counter {
	STEER_TAKEN,	 /* to the daemon */
	STEER_OTHER,	 /* not RoCEv2 */
	STEER_NO_RULE,	 /* RoCEv2 that no rule wants */
	STEER_FRAGMENT,	 /* IP fragments, IP options or extension headers: passed up */
	STEER_STALE,	 /* no heartbeat of the daemon: passed up */
	STEER_NO_SOCKET, /* no socket on this queue: passed up */
	STEER_TOO_LONG,	 /* above max_frame: passed up */
	STEER_RUNT,	 /* too short to look at: passed up */
	STEER_TAGS,	 /* two VLAN tags, or a service tag: passed up */
	STEER_FENCED,	 /* dropped: would be passed up, but only the daemon can translate it */
	STEER_COUNTERS,
};

#endif
