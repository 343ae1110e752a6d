// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Prefetch makes connections depend on the daemon: their packets have other numbers on the WAN than
 * on the LAN, and must not pass while it is away. The port drops them then (port/afxdp_fence.c).
 * This file tells the port which connections to hold, and the engine which ones a former daemon
 * held.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon_priv.h"
#include "host/log.h"
#include "port/afxdp.h"

int daemon_fence(struct daemon *d, const struct flow_key *requests, uint32_t lqpn,
		 const struct template *headers, bool on)
{
	int rc = d->port ? afxdp_fence(d->port, requests, lqpn, on) : -ENOTCONN;

	if (rc >= 0)
		afxdp_headers_keep(d->port, requests, on ? headers : NULL);
	if (rc < 0 && on && !d->fence_failed)
		log_line(LOG_ERR,
			 "no prefetch for the queue pair %#x, nor for others until one succeeds: "
			 "it cannot be held while longhauld is away (%s)",
			 requests->dqpn, strerror(-rc));
	if (rc < 0 && !on && d->port)
		log_line(LOG_ERR,
			 "the queue pair %#x cannot be released (%s): its packets are dropped "
			 "whenever longhauld is away, until `rm -r %s`",
			 requests->dqpn, strerror(-rc), afxdp_pins(d->port));
	if (on)
		d->fence_failed = rc < 0;
	return rc;
}

void daemon_prefetch(struct daemon *d)
{
	char err[256];
	bool wanted = false;
	int rc;

	for (unsigned int i = 0; i < d->cfg->nrules; i++) {
		const struct rule *r = &d->cfg->rules[i];

		wanted |= config_wants_pins(d->cfg, i);
		if (r->prefetch == PREFETCH_SINGLE)
			log_line(LOG_WARNING,
				 "rule %s: prefetch = single may give a host another READ's data "
				 "for a moment before its queue pair is put into the error state, "
				 "and unnoticed where a lost request was its last; see "
				 "longhaul.conf(5)",
				 r->name);
	}
	d->ahead_off[0] = '\0';
	rc = afxdp_pin(d->port, wanted || d->state_fd, err, sizeof(err));
	if (!rc)
		return;
	if (!wanted) {
		log_line(
			LOG_WARNING,
			"%s; should longhauld be killed, packets of connections in custody pass by "
			"until it runs again",
			err);
		return;
	}
	log_line(LOG_ERR,
		 "prefetch and announce are off: what they need to outlive longhauld cannot be "
		 "pinned: %s; then reload",
		 err);
	snprintf(d->ahead_off, sizeof(d->ahead_off), "%s", err);
	for (unsigned int i = 0; i < d->cfg->nrules; i++) {
		d->cfg->rules[i].prefetch = PREFETCH_OFF;
		d->cfg->rules[i].announce = ANNOUNCE_MODE_OFF;
		if (d->cfg->rules[i].atomic == ATOMIC_PREFETCH)
			d->cfg->rules[i].atomic = ATOMIC_ORDERED;
	}
}

bool daemon_release(struct daemon *d)
{
	struct conn_info ci;
	int n;

	if (afxdp_fenced(d->port, NULL, NULL) == 0)
		return true;
	if (shards_may_stop(d->shards)) {
		/* The two hosts' numbers agree again, except where a queue pair is about to fail.
		 */
		for (uint32_t id = 0; shards_conn_next(d->shards, id, d->now, &ci);
		     id = ci.id + 1) {
			struct flow_key out = {.src = ci.lan_ip,
					       .dst = ci.wan_ip,
					       .dqpn = ci.rqpn,
					       .vlan = ci.vlan};
			struct flow_key in = {.src = ci.wan_ip,
					      .dst = ci.lan_ip,
					      .dqpn = ci.lqpn,
					      .vlan = ci.vlan};

			if (ci.paired && ci.lane[LANE_OUT].state != LANE_FAULT)
				afxdp_fence(d->port, &out, ci.lqpn, false);
			if (ci.paired && ci.lane[LANE_IN].state != LANE_FAULT)
				afxdp_fence(d->port, &in, ci.rqpn, false);
		}
	}
	n = afxdp_fenced(d->port, NULL, NULL);
	if (n)
		log_line(LOG_WARNING,
			 "%d connection%s cannot go on without longhauld: %s packets "
			 "are dropped until it runs again and %s, or until `rm -r %s`",
			 n, n == 1 ? "" : "s", n == 1 ? "its" : "their",
			 d->state_fd ? "goes on with them" : "makes them fail",
			 afxdp_pins(d->port));
	return n == 0;
}
