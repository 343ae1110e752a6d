/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From the operator's rules to what the port's XDP program matches: prefixes of either side and
 * VLANs, each with the set of rules that name them.
 */
#ifndef LONGHAUL_STEERING_H
#define LONGHAUL_STEERING_H

#include "rule/rule.h"
#include "port/afxdp.h"

/** struct steering - @vlan: by VLAN id, STEER_UNTAGGED for untagged frames. */
struct steering {
	struct afxdp_prefix near[STEER_PREFIXES], far[STEER_PREFIXES];
	size_t nnear, nfar;
	uint64_t vlan[STEER_VLANS];
};

/** steering_init - the steering of @n rules. */
void steering_init(struct steering *s, const struct rule *rules, unsigned int n);

/**
 * steering_add - add @n further @rules, and perhaps more traffic, which does no harm: the engine
 * passes on what no rule wants. Once per struct steering.
 */
void steering_add(struct steering *s, const struct rule *rules, unsigned int n);

/** steering_own - take nothing to or from these @n addresses. Once per struct steering, the last.
 */
void steering_own(struct steering *s, const struct ip_addr *own, unsigned int n);

/** steering_add_all - take all RoCEv2. */
void steering_add_all(struct steering *s);

#endif
