/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From the operator's rules to what the port's XDP program matches: prefixes of either side and VLANs, each
 * with the set of rules that name them.
 */
#ifndef LONGHAUL_STEERING_H
#define LONGHAUL_STEERING_H

#include "engine/rule.h"
#include "port/afxdp.h"

/** struct steering - @vlan: by VLAN id, STEER_UNTAGGED for untagged frames. */
struct steering {
	struct afxdp_prefix near[RULE_MAX * RULE_PREFIXES], far[RULE_MAX * RULE_PREFIXES];
	size_t nnear, nfar;
	uint64_t vlan[STEER_VLANS];
};

/** steering_init - the steering of @n rules. */
void steering_init(struct steering *s, const struct rule *rules, unsigned int n);

#endif
