/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The arithmetic of `longhaul plan': what a link needs, and what it will carry. doc/sizing.md has
 * the formulas, and how far each was off.
 *
 * Rates are in bytes per second, those of links with headers, goodput without. All is computed in
 * floating point: no input overflows.
 */
#ifndef LONGHAUL_CLI_PLAN_MODEL_H
#define LONGHAUL_CLI_PLAN_MODEL_H

#include <stdint.h>

#define PLAN_POOL_DEFAULT (256.0 * (1 << 20))
#define PLAN_POOL_MOST	  (64.0 * (1 << 30))
#define PLAN_HEADERS	  58.0 /* of each packet: Ethernet, IPv4, UDP, BTH, ICRC */

/**
 * struct plan_link - what is given.
 * @rate:        of the link; above 0
 * @rtt:         round trip, seconds
 * @loss:        share of the packets that is lost, 0 .. 1
 * @mtu:         path MTU of the hosts
 * @outstanding: messages of one queue pair
 */
struct plan_link {
	double rate, rtt, loss;
	uint32_t mtu, outstanding;
};

/** enum plan_limit - what limits the goodput through longhaul with `policy = early'. One queue pair
 * never fills the largest pool. */
enum plan_limit {
	PLAN_BY_LINK,
	PLAN_BY_CORE,	/* the one thread */
	PLAN_BY_SPAN,	/* packets of one queue pair */
	PLAN_BY_ANSWER, /* messages outstanding, answered by the appliance */
	PLAN_LIMITS,
};

/** struct plan_goodput - of messages of one size: no appliance, policy = honest, early. */
struct plan_goodput {
	double bare, honest, early;
	enum plan_limit limit;
};

/** plan_bdp - bytes that are on their way. */
double plan_bdp(const struct plan_link *l);

/** plan_rounds - how often in a row a packet gets lost, now and then: once in 20 round trips. */
unsigned int plan_rounds(const struct plan_link *l);

/** plan_pool_least - pool that fills the link as long as nothing is lost. */
double plan_pool_least(const struct plan_link *l);

/** plan_want - pool with which the link stays full while lost packets come again. */
double plan_want(const struct plan_link *l);

/** plan_pool - pool to set: the same as a multiple of 64M, from the default to the most. */
double plan_pool(const struct plan_link *l);

/**
 * plan_packet_ns - what one packet costs the thread of longhauld.
 * @copy_ns, @crc_ns: of a byte of this machine: copied; copied with its CRC
 */
double plan_packet_ns(uint32_t mtu, double copy_ns, double crc_ns);

/** plan_ceiling - goodput that the link can carry, in messages of @size bytes. */
double plan_ceiling(const struct plan_link *l, double size);

/** plan_goodput - in messages of @size bytes, with plan_pool() and @packet_ns for each packet. */
struct plan_goodput plan_goodput(const struct plan_link *l, double size, double packet_ns);

#endif
