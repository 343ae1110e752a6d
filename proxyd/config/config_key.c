// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "config/config_key.h"

#include <string.h>
#include <syslog.h>

#include "config/config_value.h"
#include "shards/shards.h"

#define US  1000ull
#define MS  (1000 * US)
#define SEC (1000 * MS)
#define GIB (1ull << 30)

#define FIELD(type, member) offsetof(type, member), sizeof(((type *)0)->member)

static const char *const mode_names[] = {"auto", "native", "generic", "zero-copy", NULL};
static const char *const policy_names[] = {"early", "honest", "off", NULL};
static const char *const ahead_names[] = {"off", "on", "single", "responder",
					  NULL}; /* enum prefetch */
static const char *const announce_names[] = {"off",  "auto", "nvme",
					     "iser", "nfs",  NULL}; /* enum announce_mode */
static const char *const parity_names[] = {"off", "auto", NULL};    /* rule.parity */
static const char *const atomic_names[] = {"ordered", "discard-result", "prefetch",
					   NULL};			/* enum atomic_mode */
static const char *const order_names[] = {"queue-pair", "hosts", NULL}; /* enum order_mode */
static const char *const share_names[] = {"fair", "most", "background", NULL}; /* enum rate_share */
static const char *const class_names[] = {"data", "control", "bulk", NULL}; /* enum traffic_class */
static const char *const learn_names[] = {"cm", "psn", "immediate", "psn-alone",
					  NULL}; /* LEARN_* */
static const char *const level_names[] = {"error", "warning", "info", "debug", NULL};
static const int levels[] = {LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG};

#define C(member)  FIELD(struct config, member)
/* The interfaces of a side. */
#define SIDE(side) offsetof(struct config, ifname[STEER_PORT(side, 0)]), STEER_MEMBERS *IF_NAMESIZE
const struct key longhaul_keys[] = {
	{"lan", V_PORTS, true, SIDE(STEER_LAN), 0, 0, NULL},
	{"wan", V_PORTS, true, SIDE(STEER_WAN), 0, 0, NULL},
	{"socket", V_TEXT, false, C(socket), 0, 0, NULL},
	{"pool", V_SIZE, false, C(pool_bytes), 8ull << 20, 64 * GIB, NULL},
	{"max-connections", V_NUMBER, false, C(max_conns), 1, 1u << 20, NULL},
	{"cores", V_AUTO_NUMBER, false, C(cores), 1, SHARDS_MAX, NULL},
	{"busy-poll", V_DURATION, false, C(busy_poll_ns), 0, 10 * MS, NULL},
	{"mode", V_CHOICE, false, C(mode), 0, 0, mode_names},
	{"wan-rate", V_PACE, false, C(wan_rate), 0, 0, NULL},
	{"share", V_CHOICE, false, C(share), 0, 0, share_names},
	{"wan-burst", V_SIZE, false, C(wan_burst), 16u << 10, 64u << 20, NULL},
	{"max-path-mtu", V_PATH_MTU, false, C(max_path_mtu), 1024, 0, NULL},
	{"listen", V_ADDRESS, false, C(listen), 0, 0, NULL},
	{"port", V_NUMBER, false, C(port), 1, 65535, NULL},
	{"node", V_NAME, false, C(node), 0, 0, NULL},
	{"peer-timeout", V_DURATION, false, C(peer_timeout_ns), SEC, 24 * 3600 * SEC, NULL},
	{"responder-timeout", V_DURATION, false, C(responder_timeout_ns), 100 * MS, 3600 * SEC,
	 NULL},
	{"rnr-timeout", V_DURATION, false, C(rnr_timeout_ns), SEC, 3600 * SEC, NULL},
	{"idle-timeout", V_DURATION, false, C(idle_ns), SEC, 24 * 3600 * SEC, NULL},
	{"drain-timeout", V_DURATION, false, C(drain_ns), 0, 3600 * SEC, NULL},
	{"log-level", V_LEVEL, false, C(log_level), 0, 0, NULL},
	{"sandbox", V_BOOL, false, C(sandbox), 0, 0, NULL},
	{"include", V_TEXT, false, C(include), 0, 0, NULL},
	{NULL, 0, false, 0, 0, 0, 0, NULL},
};

#define P(member) FIELD(struct config_peer, member)
const struct key peer_keys[] = {
	{"address", V_HOST, true, P(addr), 0, 0, NULL},
	{"port", V_NUMBER, false, P(port), 1, 65535, NULL},
	{"key-file", V_FILES, true, P(key_file), 0, 0, NULL},
	{NULL, 0, false, 0, 0, 0, 0, NULL},
};

#define R(member) FIELD(struct rule, member)
const struct key rule_keys[] = {
	{"lan", V_NEAR, true, 0, 0, 0, 0, NULL},
	{"wan", V_FAR, true, 0, 0, 0, 0, NULL},
	{"vlan", V_VLAN, false, R(vlan), 0, 0, NULL},
	{"peer", V_PEER, false, 0, 0, 0, 0, NULL},
	{"policy", V_CHOICE, true, R(policy), 0, 0, policy_names},
	{"order", V_CHOICE, false, R(order), 0, 0, order_names},
	{"class", V_CHOICE, false, R(traffic), 0, 0, class_names},
	{"dscp", V_DSCP, false, R(dscp), 0, 0, NULL},
	{"learn", V_LEARN, false, R(learn), 0, 0, NULL},
	{"path-mtu", V_PATH_MTU, false, R(path_mtu), 256, 0, NULL},
	{"pool", V_SIZE, false, R(cap), 1ull << 20, 64 * GIB, NULL},
	{"atomic", V_CHOICE, false, R(atomic), 0, 0, atomic_names},
	{"announce", V_CHOICE, false, R(announce), 0, 0, announce_names},
	{"prefetch", V_CHOICE, false, R(prefetch), 0, 0, ahead_names},
	{"prefetch-max-age", V_DURATION, false, R(prefetch_max_age_ns), 0, 3600 * SEC, NULL},
	{"prefetch-range", V_RANGES, false, 0, 0, 0, 0, NULL},
	{"read-depth", V_AUTO_NUMBER, false, R(read_depth), 1, 255, NULL},
	{"parity", V_CHOICE, false, R(parity), 0, 0, parity_names},
	{"seal", V_BOOL, false, R(seal), 0, 0, NULL},
	{"wan-check", V_BOOL, false, R(seal), 0, 0, NULL}, /* its name before version 1.1 */
	{NULL, 0, false, 0, 0, 0, 0, NULL},
};

_Static_assert(sizeof(longhaul_keys) / sizeof(longhaul_keys[0]) == CONFIG_KEYS + 1,
	       "a line for each");

unsigned int config_line(const struct config *c, const char *name)
{
	for (size_t i = 0; i < CONFIG_KEYS; i++)
		if (!strcmp(longhaul_keys[i].name, name) && c->key_line[i])
			return c->key_line[i];
	return c->line;
}

bool key_live(const struct key *k)
{
	static const char *const names[] = {
		"wan-rate",	     "share",	    "wan-burst",    "node",	     "peer-timeout",
		"responder-timeout", "rnr-timeout", "idle-timeout", "drain-timeout", "log-level",
		"include",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(k->name, names[i]))
			return true;
	return false;
}

static void store(void *to, size_t size, uint64_t v)
{
	uint8_t v8 = v;
	uint16_t v16 = v;
	uint32_t v32 = v;

	switch (size) {
	case 1:
		memcpy(to, &v8, 1);
		break;
	case 2:
		memcpy(to, &v16, 2);
		break;
	case 4:
		memcpy(to, &v32, 4);
		break;
	default:
		memcpy(to, &v, 8);
	}
}

const char *key_mend(const struct key *k)
{
	/* If a completion does not mean what the operator expects, data is lost or stale. */
	if (k->names == policy_names)
		return ", and only you know what a completion must mean: add 'policy = honest' "
		       "(the far host has the data), 'policy = early' (this appliance has it: "
		       "fastest; longhaul.conf(5), POLICIES, says for whom it is exact) or "
		       "'policy = off'";
	return NULL;
}

void key_note_line(const struct key *k, struct config *c, unsigned int line)
{
	struct config_rule_src *src = &c->rule_src[c->nrules ? c->nrules - 1 : 0];

	if (k->type == V_PATH_MTU)
		src->mtu_line = line;
	else if (k->type == V_PEER)
		src->peer_line = line;
	else if (k->type == V_SIZE)
		src->pool_line = line;
	else if (k->names == ahead_names)
		src->ahead_line = line;
	else if (k->names == atomic_names)
		src->atomic_line = line;
	else if (k->names == announce_names)
		src->announce_line = line;
	else if (!strcmp(k->name, "seal") || !strcmp(k->name, "wan-check"))
		src->seal_line = line;
}

/* Read @text as a number for @k; NULL or what is wrong with it. */
static const char *number_of(const struct key *k, const char *text, uint64_t *v)
{
	unsigned int choice = 0;
	const char *w;

	switch (k->type) {
	case V_NUMBER:
		return value_number(text, k->min, k->max, v);
	case V_AUTO_NUMBER:
		return value_auto_number(text, k->min, k->max, v);
	case V_SIZE:
		return value_size(text, k->min, k->max, v);
	case V_PACE:
		return value_pace(text, v);
	case V_DURATION:
		return value_duration(text, k->min, k->max, v);
	case V_CHOICE:
		w = value_choice(text, k->names, &choice);
		*v = choice;
		return w;
	case V_LEARN:
		w = value_flags(text, learn_names, &choice);
		*v = choice;
		return w;
	case V_LEVEL:
		w = value_choice(text, level_names, &choice);
		*v = w ? 0 : levels[choice];
		return w;
	default:
		return "is no number"; /* key_apply() reads the other types */
	}
}

/* One key file, or two with a comma between. */
static const char *key_files(const char *text, struct config_peer *p)
{
	char one[CONFIG_FILE_NAME];
	const char *w = NULL;

	p->nkeys = 0;
	while (!w && text) {
		size_t len = strcspn(text, ","), room = sizeof(one) - 1;
		const char *next = text[len] ? text + len + 1 : NULL;

		text += strspn(text, " \t");
		len = strcspn(text, ",");
		while (len && (text[len - 1] == ' ' || text[len - 1] == '\t'))
			len--;
		if (p->nkeys == SESSION_KEYS)
			return "are too many; name the key file in use, and at most one other";
		snprintf(one, sizeof(one), "%.*s", (int)(len < room ? len : room), text);
		w = len > room ? "is too long; use a shorter path"
			       : value_text(one, p->key_file[p->nkeys], sizeof(*p->key_file));
		p->nkeys++;
		text = next;
	}
	return w;
}

const char *key_apply(const struct key *k, struct config *c, void *base, const char *text)
{
	void *to = (char *)base + k->off;
	struct rule *r = base;
	const char *w;
	uint64_t v = 0;

	switch (k->type) {
	case V_TEXT:
		return value_text(text, to, k->size);
	case V_PORTS:
		return value_ports(text, to, STEER_MEMBERS);
	case V_NAME:
		return value_name(text, to, k->size);
	case V_BOOL:
		return value_bool(text, to);
	case V_FILES:
		return key_files(text, base);
	case V_HOST:
		return value_host(text, to, ((struct config_peer *)base)->host, RESOLVER_NAME);
	case V_ADDRESS:
		return value_address(text, to);
	case V_VLAN:
		return value_vlan(text, to);
	case V_NEAR:
		return value_prefixes(text, r->near, RULE_PREFIXES, &r->nnear);
	case V_FAR:
		return value_prefixes(text, r->far, RULE_PREFIXES, &r->nfar);
	case V_PATH_MTU:
		return value_path_mtu(text, k->min, to);
	case V_DSCP:
		return value_dscp(text, to);
	case V_PEER:
		return value_name(text, c->rule_src[c->nrules - 1].peer, RULE_NAME);
	case V_RANGES:
		return value_read_ranges(text, r);
	default:
		w = number_of(k, text, &v);
		if (!w)
			store(to, k->size, v);
		return w;
	}
}
