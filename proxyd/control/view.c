// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "control/view.h"

#include <stdio.h>
#include <string.h>

static const struct view views[] = {
	{"qp-show", view_qp},	      {"lane-show", view_lane},	    {"rule-show", view_rule},
	{"peer-show", view_peer},     {"port-show", view_port},	    {"stats-show", view_stats},
	{"status-show", view_health}, {"daemon-show", view_daemon}, {NULL, NULL},
};

const struct view *view_find(const char *cmd)
{
	for (const struct view *v = views; v->cmd; v++)
		if (!strcmp(v->cmd, cmd))
			return v;
	return NULL;
}

const char *view_rule_name(const struct view_source *src, int rule)
{
	return rule >= 0 && (unsigned int)rule < src->nrules ? src->rules[rule].name : NULL;
}

const char *view_peer_name(const struct view_source *src, int peer)
{
	return peer >= 0 && (unsigned int)peer < src->npeers ? src->peers[peer].name : NULL;
}

void view_put_str(json_t *o, const char *key, const char *text)
{
	json_object_set_new(o, key, text ? json_string(text) : json_null());
}

void view_put_int(json_t *o, const char *key, uint64_t v)
{
	json_object_set_new(o, key, json_integer((json_int_t)v));
}

void view_put_ip(json_t *o, const char *key, const struct ip_addr *a)
{
	char buf[IP_ADDR_STRLEN];

	view_put_str(o, key, ip_addr_str(a, buf));
}

void view_put_ledger(json_t *o, const char *prefix, const struct ledger *l)
{
	const struct {
		const char *suffix;
		uint64_t v;
	} part[] = {
		{"messages", l->messages},
		{"packets", l->packets},
		{"bytes", l->bytes},
		{"oldest-ms", l->oldest_ns / 1000000},
	};
	char key[48];

	for (size_t i = 0; i < sizeof(part) / sizeof(part[0]); i++) {
		snprintf(key, sizeof(key), "%s-%s", prefix, part[i].suffix);
		view_put_int(o, key, part[i].v);
	}
}

void view_add_ledger(struct ledger *sum, const struct ledger *l)
{
	sum->messages += l->messages;
	sum->packets += l->packets;
	sum->bytes += l->bytes;
	if (l->oldest_ns > sum->oldest_ns)
		sum->oldest_ns = l->oldest_ns;
}

void view_put_24(json_t *o, const char *key, uint32_t v)
{
	json_object_set_new(o, key, v > 0xffffff ? json_null() : json_integer(v));
}

void view_put_conn(json_t *o, const struct conn_info *ci)
{
	view_put_int(o, "id", ci->id);
	view_put_ip(o, "lan-ip", &ci->lan_ip);
	view_put_24(o, "lqpn", ci->lqpn);
	view_put_ip(o, "wan-ip", &ci->wan_ip);
	view_put_24(o, "rqpn", ci->rqpn);
	json_object_set_new(o, "vlan",
			    ci->vlan == FRAME_VLAN_NONE ? json_null() : json_integer(ci->vlan));
}
