// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "rule/rule.h"

#include <string.h>

NAMES(ack_policy_name, enum ack_policy, POLICIES, "early", "honest", "off")
NAMES(atomic_mode_name, enum atomic_mode, ATOMIC_MODES, "ordered", "discard-result", "prefetch")
NAMES(order_mode_name, enum order_mode, ORDER_MODES, "queue-pair", "hosts")
NAMES(traffic_class_name, enum traffic_class, CLASSES, "data", "control", "bulk")
NAMES(prefetch_name, enum prefetch, PREFETCHES, "off", "on", "single", "responder")
NAMES(announce_mode_name, enum announce_mode, ANNOUNCE_MODES, "off", "auto", "nvme", "iser", "nfs")

/* Whether the first @bits bits agree. */
static bool same_bits(const struct ip_addr *a, const struct ip_addr *b, unsigned int bits)
{
	unsigned int whole = bits / 8, rest = bits % 8;

	if (memcmp(a->b, b->b, whole))
		return false;
	return !rest || !((a->b[whole] ^ b->b[whole]) >> (8 - rest));
}

const char *prefix_str(const struct prefix *p, char buf[PREFIX_STRLEN])
{
	unsigned int len = ip_addr_is_v4(&p->addr) && p->len >= 96 ? p->len - 96u : p->len;
	char *at = buf + strlen(ip_addr_str(&p->addr, buf));

	*at++ = '/';
	for (unsigned int unit = len > 99 ? 100 : len > 9 ? 10 : 1; unit; unit /= 10)
		*at++ = (char)('0' + len / unit % 10);
	*at = '\0';
	return buf;
}

bool prefix_has(const struct prefix *p, const struct ip_addr *a)
{
	return same_bits(&p->addr, a, p->len);
}

static bool any_has(const struct prefix *p, unsigned int n, const struct ip_addr *a)
{
	for (unsigned int i = 0; i < n; i++)
		if (prefix_has(&p[i], a))
			return true;
	return false;
}

static bool vlan_fits(uint16_t rule, uint16_t vlan)
{
	return rule == RULE_ANY_VLAN || rule == vlan;
}

int rule_match(const struct rule *rules, unsigned int n, const struct ip_addr *near,
	       const struct ip_addr *far, uint16_t vlan)
{
	for (unsigned int i = 0; i < n; i++)
		if (vlan_fits(rules[i].vlan, vlan) &&
		    any_has(rules[i].near, rules[i].nnear, near) &&
		    any_has(rules[i].far, rules[i].nfar, far))
			return (int)i;
	return -1;
}

bool prefixes_overlap(const struct prefix *a, const struct prefix *b)
{
	return same_bits(&a->addr, &b->addr, a->len < b->len ? a->len : b->len);
}

static bool any_overlap(const struct prefix *a, unsigned int na, const struct prefix *b,
			unsigned int nb)
{
	for (unsigned int i = 0; i < na; i++)
		for (unsigned int j = 0; j < nb; j++)
			if (prefixes_overlap(&a[i], &b[j]))
				return true;
	return false;
}

/* "any", and all hosts of IPv4. */
static bool all_hosts(const struct prefix *p)
{
	return !p->len || (p->len == 96 && ip_addr_is_v4(&p->addr));
}

const struct prefix *rule_both_sides(const struct rule *r)
{
	for (unsigned int i = 0; i < r->nfar; i++)
		for (unsigned int j = 0; j < r->nnear; j++)
			if (prefixes_overlap(&r->far[i], &r->near[j]) &&
			    all_hosts(&r->far[i]) == all_hosts(&r->near[j]))
				return &r->far[i];
	return NULL;
}

bool rules_overlap(const struct rule *a, const struct rule *b)
{
	if (a->vlan != b->vlan && a->vlan != RULE_ANY_VLAN && b->vlan != RULE_ANY_VLAN)
		return false;
	return any_overlap(a->near, a->nnear, b->near, b->nnear) &&
	       any_overlap(a->far, a->nfar, b->far, b->nfar);
}
