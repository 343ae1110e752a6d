/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the operator asks for: which traffic, how it is acknowledged, through which peer.
 */
#ifndef LONGHAUL_RULE_RULE_H
#define LONGHAUL_RULE_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/frame.h"
#include "wire/names.h"

#define RULE_MAX	 64
#define RULE_PREFIXES	 32
#define RULE_NAME	 32
#define RULE_READ_RANGES 8
#define PEER_MAX	 16
#define PEER_NONE	 (-1) /* single mode */

/** enum ack_policy - when the near requester is told that its packets are safe. */
enum ack_policy {
	POLICY_EARLY,  /* as soon as they are retained */
	POLICY_HONEST, /* likewise, but a message's last packet waits for the true ACK */
	POLICY_OFF,    /* only true ACKs; the WAN is still repaired */
	POLICIES,
};

/** enum atomic_mode - what is done for ATOMICs besides passing them in order (atomic.c). */
enum atomic_mode {
	ATOMIC_ORDERED,	 /* nothing: they wait for the responder's own answer */
	ATOMIC_DISCARD,	 /* answered here; the responder's answer is thrown away */
	ATOMIC_PREFETCH, /* FetchAdds that repeat themselves are asked before the host does
			   (prefetch_atomic.c) */
	ATOMIC_MODES,
};

/** enum order_mode - what is in order when it is delivered. */
enum order_mode {
	ORDER_QUEUE_PAIR, /* the requests of each queue pair, as ever */
	ORDER_HOSTS, /* also what a host was told, and what it asks afterwards on any queue pair
			(link/order.c) */
	ORDER_MODES,
};

/** enum prefetch - who asks ahead of the host, if anybody. */
enum prefetch {
	PREFETCH_OFF,
	PREFETCH_ON,	    /* two appliances: answers wait near the host (prefetch.c) */
	PREFETCH_SINGLE,    /* one, near the responder: answers arrive just after the host has asked
			       (solo.c) */
	PREFETCH_RESPONDER, /* two, as with PREFETCH_ON; the one near the responder makes the
			       READs, from the first on in ranges that are named (link/ahead.c) */
	PREFETCHES,
};

/** enum traffic_class - whose turn it is first (core/turns.c). */
enum traffic_class {
	CLASS_DATA, /* when nothing is said */
	CLASS_CONTROL,
	CLASS_BULK,
	CLASSES,
};

/** enum announce_mode - which storage protocols tell what their target will READ (announce/). */
enum announce_mode {
	ANNOUNCE_MODE_OFF,
	ANNOUNCE_MODE_AUTO, /* those that show on the connection */
	ANNOUNCE_MODE_NVME,
	ANNOUNCE_MODE_ISER,
	ANNOUNCE_MODE_NFS,
	ANNOUNCE_MODES,
};

/* Ways of learning QP pairs that a rule allows. */
#define LEARN_CM	0x1u
#define LEARN_PSN	0x2u /* PSN matching, and proof by echo */
#define LEARN_IMMEDIATE 0x4u /* immediate data is the sender's QPN */
#define LEARN_ALONE	0x8u /* PSN matching alone */
#define LEARN_MATCH	(LEARN_PSN | LEARN_ALONE)

/** struct prefix - @len in bits of the v4-mapped form (IPv4 length + 96). */
struct prefix {
	struct ip_addr addr;
	uint8_t len;
};

/**
 * struct rule
 * @near, @far: prefixes of the hosts on the LAN side and beyond the WAN
 * @vlan:       VLAN id, FRAME_VLAN_NONE for untagged only, RULE_ANY_VLAN
 * @peer:       index of the peer at the far end, PEER_NONE for single mode
 * @learn:      LEARN_*
 * @order:      enum order_mode
 * @traffic:    enum traffic_class
 * @dscp:       RULE_DSCP and what packets bear on the WAN, 0: what their host has set
 * @announce:   enum announce_mode
 * @path_mtu:   bytes when the operator knows it, else 0: learned
 * @cap:        bytes of custody that this rule may hold, 0: no cap of its own
 * @atomic:     enum atomic_mode
 * @prefetch: READs may be asked for ahead of the host (enum prefetch)
 * @read_depth: READs that a responder takes at a time, 0: as many as its requester was seen to have
 * @prefetch_max_age_ns: answers asked for longer ago are not given, 0: no limit but the signals
 * @parity:     while the link loses packets, parity follows them (core/stream_parity.c)
 * @seal:       what crosses the WAN between two appliances is sealed (core/seal.c)
 * @read_range: addresses that may be read ahead although the host has not read them yet
 */
struct rule {
	char name[RULE_NAME];
	struct prefix near[RULE_PREFIXES], far[RULE_PREFIXES];
	unsigned int nnear, nfar;
	uint16_t vlan;
	int8_t peer;
	uint8_t policy, learn, atomic, order, traffic, dscp, announce;
	uint32_t path_mtu;
	uint64_t cap;
	uint8_t prefetch;
	uint32_t read_depth;
	uint64_t prefetch_max_age_ns;
	bool seal, parity;
	unsigned int nread_ranges;
	struct {
		uint64_t from, end;
	} read_range[RULE_READ_RANGES];
};
#define RULE_ANY_VLAN 0xfffeu
#define RULE_DSCP     0x40u

const char *ack_policy_name(enum ack_policy v);
const char *order_mode_name(enum order_mode v);
const char *traffic_class_name(enum traffic_class v);
const char *prefetch_name(enum prefetch v);
const char *announce_mode_name(enum announce_mode v);
const char *atomic_mode_name(enum atomic_mode v);

/** prefix_str - such as "10.1.0.0/16"; returns @buf. */
#define PREFIX_STRLEN (IP_ADDR_STRLEN + 4)
const char *prefix_str(const struct prefix *p, char buf[PREFIX_STRLEN]);

/** prefix_has - whether @a lies inside @p. */
bool prefix_has(const struct prefix *p, const struct ip_addr *a);

/** prefixes_overlap - whether some host is in both. */
bool prefixes_overlap(const struct prefix *a, const struct prefix *b);

/** rule_match - the first of @n rules that takes packets between @near and @far on @vlan, or -1. */
int rule_match(const struct rule *rules, unsigned int n, const struct ip_addr *near,
	       const struct ip_addr *far, uint16_t vlan);

/** rules_overlap - whether some packet could match both (the configuration refuses such pairs). */
bool rules_overlap(const struct rule *a, const struct rule *b);

/** rule_both_sides - a prefix of @r's far side that shares hosts with its near side, NULL when none
 *  does. A side that is all hosts means all others, so only two such sides share any. */
const struct prefix *rule_both_sides(const struct rule *r);

#endif
