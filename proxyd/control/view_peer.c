// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* One object per configured peer: its state, since when, its round trip, and what was refused from
 * it. */
#include "control/view.h"

#include <stdio.h>

#include "control/health.h"
#include "peer/session.h"

static void put_node(json_t *o, const struct session_info *si)
{
	char boot[20];

	if (!si->known) {
		view_put_str(o, "node", NULL);
		return;
	}
	snprintf(boot, sizeof(boot), "%016llx", (unsigned long long)si->boot);
	view_put_str(o, "node", si->node);
	view_put_str(o, "boot", boot);
	view_put_int(o, "version", si->version);
	view_put_int(o, "prefixes", si->nprefix);
}

static void put_delays(json_t *o, const struct session_info *si)
{
	if (!si->rtt_samples)
		return;
	view_put_int(o, "rtt-us", si->rtt_ns / 1000);
	view_put_int(o, "srtt-us", si->srtt_ns / 1000);
	view_put_int(o, "min-rtt-us", si->rtt_min_ns / 1000);
	view_put_int(o, "jitter-us", si->jitter_ns / 1000);
	view_put_int(o, "delay-above-min-us", si->owd_above_ns / 1000);
}

/* Of its ports, as it tells; absent where it is of an older version. */
static void put_site(json_t *o, const struct session_info *si)
{
	if (!si->site_known)
		return;
	view_put_int(o, "lan-mtu", si->site.mtu[STEER_LAN]);
	view_put_int(o, "wan-mtu", si->site.mtu[STEER_WAN]);
}

/* Longest packets that are known to cross the link, to it and from it; null when not known. */
static void put_reach(json_t *o, const struct session_info *si)
{
	static const char *const names[] = {"link-mtu", "link-mtu-from"};

	for (int i = 0; i < 2; i++)
		if (si->state == SESSION_UP && si->reach[i].carried)
			view_put_int(o, names[i], si->reach[i].carried);
		else
			view_put_str(o, names[i], NULL);
}

/* What is known of the link to the peer: rates in bits per second. */
static void put_link(json_t *o, const struct view_source *src, unsigned int i)
{
	struct link_info k;

	if (!shards_link_info(src->shards, i, &k))
		return;
	view_put_int(o, "ecn-marked", k.marked);
	view_put_str(o, "pace", k.phase);
	view_put_int(o, "pace-bps", k.pace * 8);
	view_put_str(o, "pace-cause", k.cause);
	view_put_str(o, "share", k.share);
	if (!k.rtt_ns)
		return;
	view_put_int(o, "delivered-bps", k.delivered * 8);
	view_put_int(o, "lost-ppm", k.lost_ppm);
	view_put_int(o, "noise-ppm", k.noise_ppm);
	view_put_int(o, "queue-us", k.queue_ns / 1000);
	view_put_int(o, "link-full", k.cuts);
}

static json_t *peer_object(const struct view_source *src, unsigned int i,
			   const struct session_info *si)
{
	static const struct ip_addr unknown;
	struct peer_cause cause;
	json_t *o = json_object();

	view_put_str(o, "name", si->name);
	view_put_str(o, "state", session_state_name(si->state));
	if (ip_addr_eq(&src->peers[i].addr, &unknown))
		view_put_str(o, "address", NULL);
	else
		view_put_ip(o, "address", &src->peers[i].addr);
	view_put_str(o, "host", src->peers[i].host);
	view_put_int(o, "port", src->peers[i].port);
	view_put_str(o, "key-file", si->key < 0 ? NULL : src->peers[i].key_file[si->key]);
	put_node(o, si);
	view_put_int(o, "since-ms", si->since_ns / 1000000);
	if (si->heard)
		view_put_int(o, "heard-ms", si->heard_ns / 1000000);
	put_delays(o, si);
	put_site(o, si);
	put_reach(o, si);
	put_link(o, src, i);
	view_put_int(o, "sessions", si->sessions);
	view_put_int(o, "restarts", si->restarts);
	view_put_int(o, "downs", si->downs);
	view_put_int(o, "tx-datagrams", si->tx_datagrams);
	view_put_int(o, "tx-bytes", si->tx_bytes);
	view_put_int(o, "tx-reports", si->tx_reports);
	view_put_int(o, "rx-datagrams", si->rx_datagrams);
	view_put_int(o, "rx-bytes", si->rx_bytes);
	view_put_int(o, "rx-reports", si->rx_reports);
	for (int c = 0; c < SC_COUNT; c++)
		view_put_int(o, session_counter_name(c), si->counter[c]);
	if (peer_cause(&src->peers[i], si, src->health ? &src->health->signs[i] : NULL, &cause))
		view_put_str(o, "note", cause.text);
	return o;
}

enum view_step view_peer(const struct view_source *src, struct view_cursor *cur, uint64_t now_ns,
			 json_t **out)
{
	struct session_info si;

	while (src->session && cur->index < src->npeers) {
		unsigned int i = cur->index++;

		if (!session_info(src->session, i, now_ns, &si))
			continue;
		*out = peer_object(src, i, &si);
		return VIEW_OBJECT;
	}
	return VIEW_END;
}
