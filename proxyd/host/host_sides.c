// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Are the ports of the two sides exchanged? The kernel has a bridge port for each MAC address
 * (brforward), and the MAC addresses of its IP neighbours. Together they tell which IP addresses
 * are behind which port. A peer, or a host that a rule has beyond the WAN, belongs behind a WAN
 * port, a rule's near host behind a LAN port. If some are on the wrong side and none on the right
 * one, the ports are exchanged. If none is known yet, nothing is reported.
 */
#include <linux/if_bridge.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/host.h"

#define FDB_MAX 65536 /* entries of brforward that are read */

/**
 * struct sides - findings.
 * @fdb, @nfdb: content of brforward
 * @port:       numbers of our ports in the bridge, 0: not there
 * @right, @wrong: neighbours on their right side, and on the wrong one
 * @who:        text of the first wrong one; @where: the side that it is on
 */
struct sides {
	const struct config *c;
	struct __fdb_entry *fdb;
	size_t nfdb;
	long port[STEER_PORTS];
	unsigned int right, wrong;
	struct ip_addr who;
	int where;
};

static bool read_fdb(struct sides *s, const char *bridge)
{
	char path[96];
	FILE *f;

	s->fdb = malloc(FDB_MAX * sizeof(*s->fdb));
	if (!s->fdb)
		return false;
	snprintf(path, sizeof(path), "/sys/class/net/%s/brforward", bridge);
	f = fopen(path, "re");
	if (!f)
		return false;
	s->nfdb = fread(s->fdb, sizeof(*s->fdb), FDB_MAX, f);
	fclose(f);
	return true;
}

/* The side that @mac is behind, -1: none of ours, or unknown. */
static int behind(const struct sides *s, const uint8_t mac[6])
{
	for (size_t i = 0; i < s->nfdb; i++) {
		const struct __fdb_entry *e = &s->fdb[i];

		if (e->is_local || memcmp(e->mac_addr, mac, 6))
			continue;
		for (int port = 0; port < STEER_PORTS; port++)
			if (s->port[port] > 0 && (e->port_no | e->port_hi << 8) == s->port[port])
				return port / STEER_MEMBERS;
	}
	return -1;
}

static bool in_any(const struct prefix *p, unsigned int n, const struct ip_addr *a)
{
	/* a prefix of all addresses tells no side */
	for (unsigned int i = 0; i < n; i++)
		if (p[i].len && prefix_has(&p[i], a))
			return true;
	return false;
}

/* The side of @a by the configuration, -1 if it does not tell. */
static int belongs(const struct config *c, const struct ip_addr *a)
{
	bool near = false, far = false;

	for (unsigned int i = 0; i < c->npeers; i++)
		far |= ip_addr_eq(&c->peers[i].addr, a);
	for (unsigned int i = 0; i < c->nrules; i++) {
		near |= in_any(c->rules[i].near, c->rules[i].nnear, a);
		far |= in_any(c->rules[i].far, c->rules[i].nfar, a);
	}
	return near == far ? -1 : near ? STEER_LAN : STEER_WAN;
}

static void neighbour(struct sides *s, const struct ip_addr *a, const uint8_t mac[6])
{
	int want = belongs(s->c, a), is = want < 0 ? -1 : behind(s, mac);

	if (is < 0)
		return;
	if (is == want) {
		s->right++;
	} else if (!s->wrong++) {
		s->who = *a;
		s->where = is;
	}
}

static void take_neighbour(struct sides *s, const struct nlmsghdr *h)
{
	const struct ndmsg *nd = NLMSG_DATA(h);
	long left = (long)h->nlmsg_len - (long)NLMSG_LENGTH(sizeof(*nd));
	struct ip_addr a = {.b = {[10] = 0xff, [11] = 0xff}};
	const uint8_t *mac = NULL;
	bool known = false;

	if (left < 0 ||
	    !(nd->ndm_state & (NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT)))
		return;
	for (const struct rtattr *r = (const void *)(nd + 1); RTA_OK(r, left);
	     r = RTA_NEXT(r, left)) {
		size_t len = RTA_PAYLOAD(r);

		if (r->rta_type == NDA_LLADDR && len == 6)
			mac = RTA_DATA(r);
		if (r->rta_type == NDA_DST && (len == 4 || len == 16)) {
			memcpy(a.b + 16 - len, RTA_DATA(r), len);
			known = true;
		}
	}
	if (known && mac)
		neighbour(s, &a, mac);
}

static void ask_neighbours(struct sides *s)
{
	struct {
		struct nlmsghdr h;
		struct ndmsg nd;
	} ask = {.h = {.nlmsg_len = sizeof(ask),
		       .nlmsg_type = RTM_GETNEIGH,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};
	_Alignas(struct nlmsghdr) char buf[32768];
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	ssize_t n = fd < 0 ? -1 : send(fd, &ask, sizeof(ask), 0);

	while (n > 0 && (n = recv(fd, buf, sizeof(buf), 0)) > 0) {
		const struct nlmsghdr *h = (const void *)buf;
		size_t left = (size_t)n;

		for (; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
			if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR)
				n = 0;
			else if (h->nlmsg_type == RTM_NEWNEIGH)
				take_neighbour(s, h);
		}
	}
	if (fd >= 0)
		close(fd);
}

static bool in_bridge(const char *ifname, const char *bridge)
{
	char name[IF_NAMESIZE];

	return host_bridge(ifname, name) && !strcmp(name, bridge);
}

void host_check_sides(const struct config *c, struct config_errors *warn)
{
	struct sides s = {.c = c};
	char bridge[IF_NAMESIZE], text[IP_ADDR_STRLEN];

	if (!host_bridge(c->ifname[STEER_PORT(STEER_LAN, 0)], bridge))
		return;
	for (int port = 0; port < STEER_PORTS; port++)
		if (*c->ifname[port] && in_bridge(c->ifname[port], bridge))
			s.port[port] = host_number(c->ifname[port], "brport/port_no");
	if (s.port[STEER_PORT(STEER_LAN, 0)] > 0 && s.port[STEER_PORT(STEER_WAN, 0)] > 0 &&
	    read_fdb(&s, bridge))
		ask_neighbours(&s);
	if (s.wrong && !s.right)
		config_error(warn, c->file, c->key_line[STEER_LAN],
			     "the ports look exchanged: %s, which is %s, is behind '%s'; exchange "
			     "'lan' and 'wan' in [longhaul], or in the rules",
			     ip_addr_str(&s.who, text),
			     s.where == STEER_LAN ? "a peer or beyond the WAN" : "on the LAN side",
			     c->ifname[STEER_PORT(s.where, 0)]);
	free(s.fdb);
}
