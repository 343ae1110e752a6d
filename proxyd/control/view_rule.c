// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One object per rule, with its share of the ledger. The connections of each rule are added up
 * first, some per call, since packets wait meanwhile.
 */
#include "control/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define COUNT_PER_CALL 32

/* "10.1.0.0/16, 2001:db8::/32" */
static json_t *prefixes_text(const struct prefix *p, unsigned int n)
{
	char buf[RULE_PREFIXES * (PREFIX_STRLEN + 2)], one[PREFIX_STRLEN];
	size_t used = 0;

	buf[0] = '\0';
	for (unsigned int i = 0; i < n && i < RULE_PREFIXES; i++)
		used += snprintf(buf + used, sizeof(buf) - used, "%s%s", i ? ", " : "",
				 prefix_str(&p[i], one));
	return json_string(buf);
}

static json_t *vlan_text(uint16_t vlan)
{
	char buf[8];

	if (vlan == RULE_ANY_VLAN)
		return json_string("any");
	if (vlan == FRAME_VLAN_NONE)
		return json_string("none");
	snprintf(buf, sizeof(buf), "%u", vlan);
	return json_string(buf);
}

/* As the configuration has it; null when there are none. */
static json_t *ranges_text(const struct rule *r)
{
	char buf[RULE_READ_RANGES * 40];
	size_t used = 0;

	for (unsigned int i = 0; i < r->nread_ranges && i < RULE_READ_RANGES; i++)
		used += snprintf(buf + used, sizeof(buf) - used, "%s0x%" PRIx64 "-0x%" PRIx64,
				 i ? ", " : "", r->read_range[i].from, r->read_range[i].end);
	return used ? json_string(buf) : json_null();
}

static const char *learn_text(uint8_t learn)
{
	static const char *const text[] = {
		"none",
		"cm",
		"psn",
		"cm, psn",
		"immediate",
		"cm, immediate",
		"psn, immediate",
		"cm, psn, immediate",
		"psn-alone",
		"cm, psn-alone",
		"psn, psn-alone",
		"cm, psn, psn-alone",
		"immediate, psn-alone",
		"cm, immediate, psn-alone",
		"psn, immediate, psn-alone",
		"cm, psn, immediate, psn-alone",
	};

	return text[learn & (LEARN_CM | LEARN_MATCH | LEARN_IMMEDIATE)];
}

static json_t *rule_object(const struct view_source *src, unsigned int i,
			   const struct view_cursor *cur)
{
	const struct rule *r = &src->rules[i];
	json_t *o = json_object();

	view_put_str(o, "name", r->name);
	json_object_set_new(o, "lan", prefixes_text(r->near, r->nnear));
	json_object_set_new(o, "wan", prefixes_text(r->far, r->nfar));
	json_object_set_new(o, "vlan", vlan_text(r->vlan));
	view_put_str(o, "peer", view_peer_name(src, r->peer));
	view_put_str(o, "policy", ack_policy_name(r->policy));
	view_put_str(o, "order", order_mode_name(r->order));
	view_put_str(o, "class", traffic_class_name(r->traffic));
	/* null: as hosts have set it */
	json_object_set_new(o, "dscp", r->dscp ? json_integer(r->dscp & ~RULE_DSCP) : json_null());
	view_put_str(o, "learn", learn_text(r->learn));
	view_put_int(o, "path-mtu", r->path_mtu);
	view_put_int(o, "pool", r->cap);
	view_put_str(o, "atomic", atomic_mode_name(r->atomic));
	view_put_str(o, "prefetch", prefetch_name(r->prefetch));
	view_put_int(o, "prefetch-max-age-ms", r->prefetch_max_age_ns / 1000000);
	json_object_set_new(o, "prefetch-range", ranges_text(r));
	/* null: as seen in packets or told by CM */
	json_object_set_new(o, "read-depth",
			    r->read_depth ? json_integer(r->read_depth) : json_null());
	/* null: without a peer nothing is sealed */
	view_put_str(o, "seal", r->peer == PEER_NONE ? NULL : r->seal ? "on" : "off");
	view_put_int(o, "connections", cur->rule[i].conns);
	view_put_ledger(o, "custody", &cur->rule[i].custody);
	return o;
}

/* Add up some connections; true when all have been seen. */
static bool add_up(const struct view_source *src, struct view_cursor *cur, uint64_t now_ns)
{
	struct conn_info ci;

	for (unsigned int i = 0; i < COUNT_PER_CALL; i++) {
		if (!shards_conn_next(src->shards, cur->conn, now_ns, &ci))
			return true;
		cur->conn = ci.id + 1;
		if (!ci.paired || ci.rule < 0 || ci.rule >= RULE_MAX)
			continue;
		cur->rule[ci.rule].conns++;
		view_add_ledger(&cur->rule[ci.rule].custody, &ci.lane[LANE_OUT].custody);
		view_add_ledger(&cur->rule[ci.rule].custody, &ci.lane[LANE_IN].custody);
	}
	return false;
}

enum view_step view_rule(const struct view_source *src, struct view_cursor *cur, uint64_t now_ns,
			 json_t **out)
{
	if (!cur->sub) {
		cur->sub = add_up(src, cur, now_ns);
		return VIEW_AGAIN;
	}
	if (cur->index >= src->nrules)
		return VIEW_END;
	*out = rule_object(src, cur->index, cur);
	cur->index++;
	return VIEW_OBJECT;
}
