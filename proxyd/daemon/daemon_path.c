// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the sessions are to find out of the links: whether they carry the longest packets that hosts
 * may send by the configuration and by the WAN port's MTU. Probes leave by the bridge, as hosts'
 * packets do, whatever way reports take.
 */
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
	if (host_bridge(d->cfg->ifname[STEER_WAN], d->bridge))
		d->bridge_index = if_nametoindex(d->bridge);
	else
		d->bridge[0] = '\0';
}

void daemon_path(struct daemon *d)
{
	unsigned int port = afxdp_mtu(d->port, STEER_WAN), own, line, want;
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
