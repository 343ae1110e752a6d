// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The part of a new configuration that a running daemon can take over, and the places of peers.
 */
#include <errno.h>
#include <string.h>

#include "config/config.h"
#include "config/config_key.h"

const char *config_restart_needed(const struct config *a, const struct config *b)
{
	for (unsigned int i = 0; longhaul_keys[i].name; i++) {
		const struct key *k = &longhaul_keys[i];
		const char *x = (const char *)a + k->off, *y = (const char *)b + k->off;
		bool text = k->type == V_TEXT || k->type == V_NAME;

		if (key_live(k))
			continue;
		if (text ? strcmp(x, y) : memcmp(x, y, k->size))
			return k->name;
	}
	return NULL;
}

void config_take(struct config *to, const struct config *from)
{
	for (unsigned int i = 0; longhaul_keys[i].name; i++) {
		const struct key *k = &longhaul_keys[i];

		if (key_live(k))
			memcpy((char *)to + k->off, (const char *)from + k->off, k->size);
	}
	memcpy(to->rules, from->rules, sizeof(to->rules));
	memcpy(to->rule_src, from->rule_src, sizeof(to->rule_src));
	to->nrules = from->nrules;
}

/* Without @addr of a host name: it comes from a lookup, not from the file. */
bool config_moved(const struct config_peer *a, const struct config_peer *b)
{
	return a->port != b->port || strcmp(a->host, b->host) ||
	       (!a->host[0] && !ip_addr_eq(&a->addr, &b->addr));
}

/* The place of peer @p in @was, -1: none. @taken: places that must not be used. */
static int place_of(const struct config *was, const struct config_peer *p, bool by_name,
		    const bool *taken)
{
	for (unsigned int i = 0; i < was->npeers; i++) {
		const struct config_peer *q = &was->peers[i];

		if (!taken[i] && q->name[0] &&
		    (by_name ? !strcmp(p->name, q->name) : !config_moved(p, q)))
			return (int)i;
	}
	return -1;
}

static int free_place(const struct config *was, const bool *taken)
{
	for (unsigned int i = 0; i < PEER_MAX; i++)
		if (!taken[i] && (i >= was->npeers || !was->peers[i].name[0]))
			return (int)i;
	return -1;
}

int config_places(const struct config *was, struct config *c)
{
	struct config_peer at[PEER_MAX] = {0};
	bool taken[PEER_MAX] = {0};
	int to[PEER_MAX];
	unsigned int n = 0;

	memset(to, 0xff, sizeof(to));
	for (int pass = 0; pass < 3; pass++) {
		for (unsigned int i = 0; i < c->npeers; i++) {
			if (to[i] >= 0)
				continue;
			to[i] = pass < 2 ? place_of(was, &c->peers[i], !pass, taken)
					 : free_place(was, taken);
			if (to[i] < 0 && pass == 2)
				return -ENOSPC;
			if (to[i] >= 0)
				taken[to[i]] = true;
		}
	}
	for (unsigned int i = 0; i < c->npeers; i++) {
		at[to[i]] = c->peers[i];
		n = (unsigned int)to[i] >= n ? (unsigned int)to[i] + 1 : n;
	}
	for (unsigned int i = 0; i < c->nrules; i++)
		if (c->rules[i].peer != PEER_NONE)
			c->rules[i].peer = (int8_t)to[c->rules[i].peer];
	memcpy(c->peers, at, sizeof(at));
	c->npeers = n;
	return 0;
}
