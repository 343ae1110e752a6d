// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "daemon/steering.h"

#include <string.h>

#include "port/own.h"

_Static_assert(RULE_MAX <= STEER_RULES, "a rule is a bit of one word");
_Static_assert(2 * RULE_MAX * RULE_PREFIXES + OWN_MAX <= STEER_PREFIXES, "all prefixes fit");

static void add_prefixes(struct afxdp_prefix *to, size_t *count, const struct prefix *from,
			 unsigned int n, uint64_t bit)
{
	for (unsigned int i = 0; i < n; i++) {
		struct afxdp_prefix *p = &to[(*count)++];

		memcpy(p->addr, from[i].addr.b, sizeof(p->addr));
		p->plen = from[i].len;
		p->rules = bit;
	}
}

static void add_vlan(uint64_t *vlan, uint16_t id, uint64_t bit)
{
	if (id == FRAME_VLAN_NONE) {
		vlan[STEER_UNTAGGED] |= bit;
	} else if (id == RULE_ANY_VLAN) {
		for (unsigned int i = 0; i < STEER_VLANS; i++)
			vlan[i] |= bit;
	} else if (id < STEER_UNTAGGED) {
		vlan[id] |= bit;
	}
}

static void add_rule(struct steering *s, const struct rule *r, uint64_t bit)
{
	add_prefixes(s->near, &s->nnear, r->near, r->nnear, bit);
	add_prefixes(s->far, &s->nfar, r->far, r->nfar, bit);
	add_vlan(s->vlan, r->vlan, bit);
}

void steering_init(struct steering *s, const struct rule *rules, unsigned int n)
{
	memset(s, 0, sizeof(*s));
	for (unsigned int i = 0; i < n && i < RULE_MAX; i++)
		add_rule(s, &rules[i], 1ull << i);
}

/* They all share the last bit with the rule that has it. */
void steering_add(struct steering *s, const struct rule *rules, unsigned int n)
{
	for (unsigned int i = 0; i < n && i < RULE_MAX; i++)
		add_rule(s, &rules[i], 1ull << (STEER_RULES - 1));
}

void steering_own(struct steering *s, const struct ip_addr *own, unsigned int n)
{
	struct prefix p = {.len = 128};

	for (unsigned int i = 0; i < n && i < OWN_MAX; i++) {
		p.addr = own[i];
		add_prefixes(s->near, &s->nnear, &p, 1, 0);
		add_prefixes(s->far, &s->nfar, &p, 1, 0);
	}
}

void steering_add_all(struct steering *s)
{
	const struct rule all = {.nnear = 1, .nfar = 1, .vlan = RULE_ANY_VLAN};

	add_rule(s, &all, 1ull << (STEER_RULES - 1));
}
