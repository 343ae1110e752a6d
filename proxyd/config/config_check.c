// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Checks of the configuration as a whole: what is missing, what contradicts. host.c checks what
 * this host lacks.
 */
#include <string.h>

#include "config/config.h"
#include "config/config_value.h"
#include "wire/frame.h"

static void check_twice(const struct config *c, struct config_errors *errs)
{
	for (unsigned int i = 0; i < STEER_PORTS; i++)
		for (unsigned int j = i + 1; *c->ifname[i] && j < STEER_PORTS; j++)
			if (!strcmp(c->ifname[i], c->ifname[j]))
				config_error(errs, c->file, c->key_line[j / STEER_MEMBERS],
					     i / STEER_MEMBERS == j / STEER_MEMBERS
						     ? "interface '%s' is named twice; name it once"
						     : "lan and wan are the same interface '%s'; "
						       "name two",
					     c->ifname[i]);
}

/* There the appliances' datagrams would be taken for RoCEv2, here or by what is on the way. */
static void check_port(const struct config *c, uint8_t file, unsigned int line, uint16_t port,
		       struct config_errors *errs)
{
	if (port == ROCE_UDP_PORT)
		config_error(errs, config_file(c, file), line,
			     "port %u is that of RoCEv2 itself; write another one, such as 4797, "
			     "at both ends",
			     port);
}

static void check_longhaul(const struct config *c, struct config_errors *errs)
{
	if (!c->line)
		config_error(errs, c->file, 0,
			     "no [longhaul] section; add one that names the two interfaces, lan = "
			     "and wan =");
	check_twice(c, errs);
	check_port(c, 0, config_line(c, "port"), c->port, errs);
	if (c->socket[0] != '/')
		config_error(errs, c->file, config_line(c, "socket"),
			     "socket '%s' is no absolute path; write such as " CONFIG_SOCKET,
			     c->socket);
}

/* The name of file @of, for a message about @file; empty if both are the same. */
static const char *other(const struct config *c, uint8_t file, uint8_t of)
{
	return file == of ? "" : config_file(c, of);
}

static void check_peers(struct config *c, struct config_errors *errs)
{
	static const struct ip_addr none;

	for (unsigned int i = 0; i < c->npeers; i++) {
		struct config_peer *a = &c->peers[i];

		check_port(c, a->file, a->line, a->port, errs);
		if (!a->port)
			a->port = c->port;
		if (!a->host[0] && ip_addr_eq(&a->addr, &none))
			continue;
		for (unsigned int j = 0; j < i; j++) {
			const struct config_peer *b = &c->peers[j];

			if (!config_moved(a, b))
				config_error(errs, config_file(c, a->file), a->line,
					     "peer '%s' has the address and port of peer '%s' "
					     "(%s%sline %u); give each its own",
					     a->name, b->name, other(c, a->file, b->file),
					     a->file == b->file ? "" : ", ", b->line);
		}
	}
}

static void resolve_peer(struct config *c, unsigned int rule, struct config_errors *errs)
{
	const char *names[PEER_MAX + 1], *name = c->rule_src[rule].peer;
	char hint[64];
	unsigned int i;

	if (!*name)
		return;
	for (i = 0; i < c->npeers; i++) {
		names[i] = c->peers[i].name;
		if (!strcmp(names[i], name)) {
			c->rules[rule].peer = (int8_t)i;
			return;
		}
	}
	names[i] = NULL;
	value_suggestion(name, names, hint, sizeof(hint));
	config_error(errs, config_file(c, c->rule_src[rule].file), c->rule_src[rule].peer_line,
		     "no peer '%s'%s", name,
		     hint[0] ? hint : "; add a section [peer NAME] for it, or leave 'peer' out");
}

/* Errors for what does not go with announce. */
static void check_announce(struct config *c, unsigned int i, struct config_errors *errs)
{
	const struct config_rule_src *src = &c->rule_src[i];
	const char *file = config_file(c, src->file), *other_key = NULL;
	const struct rule *r = &c->rules[i];

	if (!r->announce)
		return;
	if (!*src->peer) {
		config_error(errs, file, src->announce_line,
			     "announce = %s in rule '%s', which has no peer: no appliance would "
			     "keep the data; add peer = NAME, or set announce = off",
			     announce_mode_name(r->announce), r->name);
		return;
	}
	if (r->prefetch)
		other_key = "prefetch = off";
	else if (r->atomic)
		other_key = "atomic = ordered";
	else if (r->order)
		other_key = "order = queue-pair";
	if (other_key)
		config_error(errs, file, src->announce_line,
			     "announce = %s in rule '%s' goes only with %s; set that, or announce "
			     "= off",
			     announce_mode_name(r->announce), r->name, other_key);
}

/* A host on both sides would be expected at the wrong port, or at both. */
static void check_sides(struct config *c, unsigned int i, struct config_errors *errs)
{
	const struct config_rule_src *src = &c->rule_src[i];
	const struct prefix *p = rule_both_sides(&c->rules[i]);
	char text[PREFIX_STRLEN];

	if (!p)
		return;
	config_error(errs, config_file(c, src->file), src->line,
		     "wan of rule '%s' has hosts that its lan has, too (%s): a host is on one "
		     "side of the link; name other prefixes, or 'any' for all other hosts",
		     c->rules[i].name, prefix_str(p, text));
}

bool config_wants_pins(const struct config *c, unsigned int i)
{
	const struct rule *r = &c->rules[i];

	return r->prefetch || r->atomic == ATOMIC_PREFETCH || r->announce;
}

/* If an appliance renumbers packets, one that misses the other appliance must not be executed. */
static void check_seal(struct config *c, unsigned int i, struct config_errors *errs)
{
	const struct config_rule_src *src = &c->rule_src[i];
	const struct rule *r = &c->rules[i];
	const char *what = r->announce	 ? "announce"
			   : r->prefetch ? "prefetch"
					 : "atomic = prefetch";

	if (r->seal || !*src->peer || !config_wants_pins(c, i))
		return;
	config_error(
		errs, config_file(c, src->file), src->seal_line,
		"seal = off in rule '%s', which has %s; packets that take another way would be "
		"executed under wrong numbers; set seal = on, or %s",
		r->name, what,
		r->announce   ? "announce = off"
		: r->prefetch ? "prefetch = off"
			      : "atomic = ordered");
}

static void check_rule(struct config *c, unsigned int i, struct config_errors *errs)
{
	const struct config_rule_src *src = &c->rule_src[i];
	const struct rule *r = &c->rules[i];
	const char *file = config_file(c, src->file);

	resolve_peer(c, i, errs);
	if (r->cap > c->pool_bytes)
		config_error(
			errs, file, src->pool_line,
			"pool of rule '%s' is above the pool of [longhaul]; lower it or raise that",
			r->name);
	if (c->max_path_mtu && r->path_mtu > c->max_path_mtu)
		config_error(errs, file, src->mtu_line,
			     "path-mtu of rule '%s' is above max-path-mtu of [longhaul]; lower it "
			     "or raise that",
			     r->name);
	check_sides(c, i, errs);
	/* an unknown peer's name has its own error */
	if ((r->prefetch == PREFETCH_ON || r->prefetch == PREFETCH_RESPONDER) && !*src->peer)
		config_error(errs, file, src->ahead_line,
			     "prefetch = %s in rule '%s', which has no peer: an appliance alone "
			     "cannot keep answers near the host; add peer = NAME, or set "
			     "prefetch = off (or single, see longhaul.conf(5))",
			     prefetch_name(r->prefetch), r->name);
	if (r->prefetch == PREFETCH_SINGLE && *src->peer)
		config_error(errs, file, src->ahead_line,
			     "prefetch = single in rule '%s', which has a peer: that is for one "
			     "appliance alone; set prefetch = on",
			     r->name);
	check_announce(c, i, errs);
	if (r->atomic == ATOMIC_DISCARD && r->policy != POLICY_EARLY)
		config_error(
			errs, file, src->atomic_line,
			"atomic = discard-result in rule '%s', whose policy is %s: it tells that "
			"something is done before it is; set policy = early, or atomic = ordered",
			r->name, ack_policy_name(r->policy));
	if (r->atomic == ATOMIC_DISCARD && r->order == ORDER_HOSTS)
		config_error(errs, file, src->atomic_line,
			     "atomic = discard-result in rule '%s', whose order is hosts: ATOMICs "
			     "that are answered here keep no order with other queue pairs; set "
			     "atomic = ordered, or order = queue-pair",
			     r->name);
	if (r->atomic == ATOMIC_PREFETCH && !*src->peer)
		config_error(errs, file, src->atomic_line,
			     "atomic = prefetch in rule '%s', which has no peer: an appliance "
			     "alone cannot "
			     "keep answers near the host; add peer = NAME, or set atomic = ordered",
			     r->name);
	check_seal(c, i, errs);
	for (unsigned int j = 0; j < i; j++)
		if (rules_overlap(r, &c->rules[j]))
			config_error(
				errs, file, src->line,
				"rule '%s' overlaps rule '%s' (%s%sline %u): some packets "
				"match both; make their prefixes or VLANs disjoint",
				r->name, c->rules[j].name, other(c, src->file, c->rule_src[j].file),
				src->file == c->rule_src[j].file ? "" : ", ", c->rule_src[j].line);
}

void config_check(struct config *c, struct config_errors *errs)
{
	check_longhaul(c, errs);
	/* Only without other errors: rules may be there, but wrong. */
	if (!c->nrules && !errs->n)
		config_error(errs, c->file, 0,
			     "no [rule NAME] section, so no traffic is wanted; add one with lan = "
			     "and wan =");
	check_peers(c, errs);
	for (unsigned int i = 0; i < c->nrules; i++)
		check_rule(c, i, errs);
}
