// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the sessions are to find out of the links: whether they carry the longest packets that hosts
 * may send by the configuration and by the WAN port's MTU. Probes leave by the bridge, as hosts'
 * packets do, whatever way reports take.
 */
#include <string.h>

#include "daemon/daemon_priv.h"
#include "host/host.h"
#include "port/afxdp.h"

bool daemon_probe(void *ctx, unsigned int peer, const uint8_t *data, size_t len)
{
	struct daemon *d = ctx;

	return peer_socket_probe(d->sock, peer, d->bridge_index, data, len);
}

void daemon_path_open(struct daemon *d)
{
	d->bridge[0] = '\0';
	for (unsigned int p = STEER_PORT(STEER_WAN, 0); p < STEER_PORTS; p++)
		if (*d->cfg->ifname[p] && host_bridge(d->cfg->ifname[p], d->bridge))
			break;
	d->bridge_index = d->bridge[0] ? if_nametoindex(d->bridge) : 0;
}

/* The least of the WAN ports'. */
static unsigned int wan_mtu(const struct daemon *d)
{
	unsigned int least = 0, mtu;

	for (unsigned int p = STEER_PORT(STEER_WAN, 0); p < STEER_PORTS; p++) {
		mtu = afxdp_has(d->port, p) ? afxdp_mtu(d->port, p) : 0;
		least = mtu && (!least || mtu < least) ? mtu : least;
	}
	return least;
}

void daemon_path(struct daemon *d)
{
	unsigned int port = wan_mtu(d), own, line, want;
	const char *file;

	if (!d->session)
		return;
	want = host_path_mtu(d->cfg, port, &file, &line);
	want = want ? host_need_mtu(want) : 0;
	/* what this host cannot send tells nothing */
	own = d->bridge[0] ? peer_socket_mtu(d->sock, d->bridge) : 0;
	if (own && own < port)
		port = own;
	for (unsigned int i = 0; i < d->view.npeers; i++)
		session_path(d->session, i, (uint16_t)(want < port ? want : port),
			     health_longest(&d->health, i),
			     (uint16_t)peer_socket_overhead(d->sock, i));
}
