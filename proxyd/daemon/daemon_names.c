// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Peers with a host name as address. Another process (resolver.h) looks it up at the start, and
 * again while the peer is not up, since it may have moved.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/daemon_priv.h"
#include "host/log.h"

#define ASK_NS 5000000000ull /* between two looks for one peer */

/* Address family that our socket can reach. */
static int family(const struct config *cfg)
{
	static const uint8_t v4_head[12] = {[10] = 0xff, [11] = 0xff};
	static const struct ip_addr any;

	if (ip_addr_eq(&cfg->listen, &any))
		return AF_UNSPEC;
	return memcmp(cfg->listen.b, v4_head, sizeof(v4_head)) ? AF_INET6 : AF_INET;
}

bool daemon_names_wanted(const struct config *cfg)
{
	for (unsigned int i = 0; i < cfg->npeers; i++)
		if (cfg->peers[i].host[0])
			return true;
	return false;
}

void daemon_names(struct daemon *d)
{
	for (unsigned int i = 0; d->resolver && i < d->cfg->npeers; i++) {
		const char *host = d->cfg->peers[i].host;

		/* 0: a name that has not been looked up yet */
		if (!host[0] || d->now < d->next_ask[i] ||
		    (d->next_ask[i] && session_up(d->session, i)))
			continue;
		d->next_ask[i] = d->now + ASK_NS;
		resolver_ask(d->resolver, i, host, family(d->cfg));
	}
}

static void found(struct daemon *d, unsigned int i, const struct ip_addr *addr)
{
	struct config_peer *p = &d->cfg->peers[i];
	char text[IP_ADDR_STRLEN];
	int rc;

	d->name_failed &= ~(1u << i);
	if (ip_addr_eq(&p->addr, addr))
		return;
	rc = peer_socket_map(d->sock, i, addr, p->port);
	if (rc) {
		if (d->now >= d->quiet_names)
			log_line(LOG_WARNING, "peer %s: %s is %s, which cannot be its address: %s",
				 p->name, p->host, ip_addr_str(addr, text),
				 rc == -EEXIST ? "another peer has it" : strerror(-rc));
		d->quiet_names = d->now + 12 * ASK_NS;
		return;
	}
	p->addr = d->view.peers[i].addr = *addr;
	log_line(LOG_INFO, "peer %s: %s is %s", p->name, p->host, ip_addr_str(addr, text));
}

void daemon_on_name(void *ctx, int fd)
{
	struct daemon *d = ctx;
	struct resolver_answer a;
	int rc;

	d->now = loop_now();
	while (!(rc = resolver_next(d->resolver, &a))) {
		/* a reload may have put another one there meanwhile */
		if (a.tag >= d->cfg->npeers || strcmp(d->cfg->peers[a.tag].host, a.name) ||
		    !a.name[0])
			continue;
		if (!a.error[0]) {
			found(d, a.tag, &a.addr);
			continue;
		}
		if (!(d->name_failed & 1u << a.tag))
			log_line(LOG_WARNING,
				 "peer %s: its address is not known, for %s cannot be looked up: "
				 "%s; it is tried again",
				 d->cfg->peers[a.tag].name, a.name, a.error);
		d->name_failed |= 1u << a.tag;
	}
	if (rc == -EAGAIN)
		return;
	if (d->phase == RUNNING)
		log_line(LOG_ERR, "the process that looks up names of peers has ended; known "
				  "addresses stay, systemctl restart longhauld to look up again");
	loop_del_fd(d->loop, fd);
	resolver_stop(d->resolver);
	d->resolver = NULL;
}
