// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * By which of several ports of one side a frame leaves.
 *
 * Theory of operation
 *
 * As a bridge does it: a frame leaves by the port that its destination MAC address is behind. That
 * is the port by which the latest frame from this address came in, of those that we take; or what
 * the kernel's bridge above the ports knows, for it sees all other frames, ARP among them. The
 * later sighting counts.
 *
 * A bond or a LAG is one link of several wires: frames from one address come in by all of them,
 * spread by the hash of the other end. So an address can be behind several ports at a time: all
 * where it was seen in the latest SPREAD_MS. Then the hash of the connection selects the port, such
 * that the frames of one connection keep their order. When it was seen by none of them so lately,
 * the latest sighting alone counts, for a host may have moved since; the kernel's bridge gives one
 * for all members of a bond.
 *
 * A port without a carrier is not used while another one has one. The same is true for one that its
 * bond holds as a backup, and for one outside of the bond's aggregate: the other end would learn to
 * answer there, where the network card may take no foreign address, and the bond takes nothing at
 * all. Until the bond has noticed that its active port lost the carrier, the backup serves.
 *
 * Where an address has been seen by none of the ports with a carrier, or by none at all, the hash
 * selects among all with a carrier: right behind a bond or two switches of one network; elsewhere
 * the frame is lost, as it would be without longhaul, until the network has found another way.
 *
 * The table has places for ADDRESSES addresses of a side; of those that meet in one bucket the one
 * not seen for the longest time makes room.
 *
 * row: CONV-10
 */
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "port/afxdp_priv.h"
#include "wire/bytes.h"

#define ADDRESSES 4096u
#define WAYS	  4u
#define SPREAD_MS 50u
#define ASK_MS	  1000u /* since it was seen, and since the bridge was asked */
#define USER_MS	  10u	/* of the kernel's clock_t */
#define CLOCKS_MS 20u	/* the kernel's ages and our clock are inexact by less */
#define BACKUP	  1u	/* BOND_STATE_BACKUP of linux/if_bonding.h, which net/if.h excludes */

/**
 * struct station - one MAC address in one VLAN.
 * @vid:   0 for untagged frames
 * @seen:  [member] -> when a frame from it came in there, ms, 0: never
 * @asked: when the bridge was asked, ms
 */
struct station {
	uint8_t mac[ETH_ALEN];
	uint16_t vid;
	uint64_t seen[STEER_MEMBERS], asked;
};

/**
 * struct fdb - of one side.
 * @nl:  netlink socket
 * @now: ms
 */
struct fdb {
	int nl;
	uint32_t seq;
	uint64_t now;
	struct station station[ADDRESSES];
};

struct fdb *fdb_open(void)
{
	struct fdb *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->nl = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (f->nl < 0) {
		free(f);
		return NULL;
	}
	fdb_clock(f);
	return f;
}

void fdb_close(struct fdb *f)
{
	if (f)
		close(f->nl);
	free(f);
}

void fdb_clock(struct fdb *f)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	f->now = (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static uint64_t latest(const struct station *s)
{
	uint64_t t = 0;

	for (unsigned int m = 0; m < STEER_MEMBERS; m++)
		t = s->seen[m] > t ? s->seen[m] : t;
	return t;
}

/* Where the IP header begins; @vid: 0 for an untagged frame. */
static uint32_t ip_at(const uint8_t *data, uint32_t len, uint16_t *vid)
{
	*vid = 0;
	if (len < ETH_HLEN + 4 || get_be16(data + 12) != ETH_P_8021Q)
		return ETH_HLEN;
	*vid = get_be16(data + ETH_HLEN) & 0xfff;
	return ETH_HLEN + 4;
}

/* The place of @mac in @vid, perhaps a new one. */
static struct station *find(struct fdb *f, const uint8_t *mac, uint16_t vid)
{
	uint64_t h = XXH3_64bits_withSeed(mac, ETH_ALEN, vid);
	struct station *bucket = &f->station[h % (ADDRESSES / WAYS) * WAYS];
	struct station *oldest = bucket;

	for (unsigned int i = 0; i < WAYS; i++) {
		if (!memcmp(bucket[i].mac, mac, ETH_ALEN) && bucket[i].vid == vid)
			return &bucket[i];
		if (latest(&bucket[i]) < latest(oldest))
			oldest = &bucket[i];
	}
	memset(oldest, 0, sizeof(*oldest));
	memcpy(oldest->mac, mac, ETH_ALEN);
	oldest->vid = vid;
	return oldest;
}

void fdb_learn(struct fdb *f, unsigned int member, const uint8_t *data, uint32_t len)
{
	uint16_t vid;

	if (len < ETH_HLEN)
		return;
	(void)ip_at(data, len, &vid);
	find(f, data + ETH_ALEN, vid)->seen[member] = f->now;
}

/* ---- what the kernel knows ---- */

union answer {
	struct nlmsghdr h;
	char buf[8192];
};

/* Send @h; the kernel has answered when that returns. NULL: no answer of type @type. */
static const void *ask(struct fdb *f, struct nlmsghdr *h, uint16_t type, union answer *a,
		       long *left)
{
	ssize_t n;

	h->nlmsg_flags = NLM_F_REQUEST;
	h->nlmsg_seq = ++f->seq;
	if (send(f->nl, h, h->nlmsg_len, 0) < 0)
		return NULL;
	do {
		n = recv(f->nl, a, sizeof(*a), 0);
		if (n < (ssize_t)sizeof(a->h))
			return NULL;
	} while (a->h.nlmsg_seq != f->seq);
	if (!NLMSG_OK(&a->h, (size_t)n) || a->h.nlmsg_type != type)
		return NULL;
	*left = (long)a->h.nlmsg_len - (long)NLMSG_HDRLEN;
	return NLMSG_DATA(&a->h);
}

/**
 * struct link_state - of an interface.
 * @master: interface index of what it belongs to, 0: nothing; @bridge: it is a bridge itself,
 * @vswitch: of Open vSwitch
 * @backup: its bond does not use it
 */
struct link_state {
	bool serves, bridge, vswitch, backup;
	unsigned int master;
};

static bool is_text(const struct rtattr *r, const char *text)
{
	return RTA_PAYLOAD(r) >= strlen(text) && !memcmp(RTA_DATA(r), text, strlen(text));
}

static bool is_backup(const struct rtattr *bond_slave)
{
	long left = (long)RTA_PAYLOAD(bond_slave);

	for (const struct rtattr *r = RTA_DATA(bond_slave); RTA_OK(r, left); r = RTA_NEXT(r, left))
		if (r->rta_type == IFLA_BOND_SLAVE_STATE && RTA_PAYLOAD(r) >= 1)
			return *(const uint8_t *)RTA_DATA(r) == BACKUP;
	return false;
}

static void take_kind(struct link_state *l, const struct rtattr *info)
{
	long left = (long)RTA_PAYLOAD(info);
	bool bond = false;

	for (const struct rtattr *r = RTA_DATA(info); RTA_OK(r, left); r = RTA_NEXT(r, left)) {
		if (r->rta_type == IFLA_INFO_KIND) {
			l->bridge = is_text(r, "bridge");
			l->vswitch = is_text(r, "openvswitch");
		} else if (r->rta_type == IFLA_INFO_SLAVE_KIND) {
			bond = is_text(r, "bond");
		} else if (r->rta_type == IFLA_INFO_SLAVE_DATA && bond) {
			l->backup = is_backup(r);
		}
	}
}

static bool link_get(struct fdb *f, unsigned int index, struct link_state *l)
{
	const unsigned int serves = IFF_UP | IFF_RUNNING;
	struct {
		struct nlmsghdr h;
		struct ifinfomsg m;
		struct rtattr mask;
		uint32_t value;
	} q = {.h = {.nlmsg_len = sizeof(q), .nlmsg_type = RTM_GETLINK},
	       .m = {.ifi_index = (int)index},
	       .mask = {.rta_len = RTA_LENGTH(4), .rta_type = IFLA_EXT_MASK},
	       .value = RTEXT_FILTER_SKIP_STATS};
	union answer a;
	long left;
	const struct ifinfomsg *m = ask(f, &q.h, RTM_NEWLINK, &a, &left);

	*l = (struct link_state){.serves = false};
	if (!m)
		return false;
	l->serves = (m->ifi_flags & serves) == serves;
	left -= (long)NLMSG_ALIGN(sizeof(*m));
	for (const struct rtattr *r = IFLA_RTA(m); RTA_OK(r, left); r = RTA_NEXT(r, left)) {
		if (r->rta_type == IFLA_MASTER && RTA_PAYLOAD(r) == sizeof(l->master))
			memcpy(&l->master, RTA_DATA(r), sizeof(l->master));
		else if (r->rta_type == IFLA_LINKINFO)
			take_kind(l, r);
	}
	return true;
}

enum port_carrier fdb_look(struct fdb *f, struct port *p)
{
	struct link_state own, l;

	p->bridge = 0;
	p->bridge_port = p->nif.index;
	if (!link_get(f, p->nif.index, &own))
		return CARRIER_NONE;
	/* the bond, if there is one, and the bridge */
	l = own;
	for (int up = 0; up < 2 && l.master; up++) {
		unsigned int above = l.master;

		if (!link_get(f, above, &l))
			break;
		if (l.bridge) {
			p->bridge = above;
			break;
		}
		p->bridge_port = above;
	}
	return !own.serves ? CARRIER_NONE : own.backup ? CARRIER_BACKUP : CARRIER_SERVES;
}

bool fdb_alone(struct fdb *f, unsigned int index)
{
	struct link_state l;

	if (!link_get(f, index, &l))
		return false;
	/* the bond, if there is one, and the bridge */
	for (int up = 0; up < 2 && l.master; up++)
		if (!link_get(f, l.master, &l) || l.bridge || l.vswitch)
			return false;
	return true;
}

/* The address @s in the table of @bridge and VLAN @vid (0: one without VLANs). False: not there. */
static bool ask_bridge(struct fdb *f, const struct port *ports, struct station *s,
		       unsigned int bridge, uint16_t vid)
{
	struct {
		struct nlmsghdr h;
		struct ndmsg m;
		struct rtattr of_mac;
		uint8_t mac[8];
		struct rtattr of_master;
		uint32_t master;
		struct rtattr of_vid;
		uint16_t vid, none;
	} q = {.h = {.nlmsg_len = sizeof(q), .nlmsg_type = RTM_GETNEIGH},
	       .m = {.ndm_family = AF_BRIDGE},
	       .of_mac = {.rta_len = RTA_LENGTH(ETH_ALEN), .rta_type = NDA_LLADDR},
	       .of_master = {.rta_len = RTA_LENGTH(4), .rta_type = NDA_MASTER},
	       .master = bridge,
	       .of_vid = {.rta_len = RTA_LENGTH(2), .rta_type = NDA_VLAN},
	       .vid = vid};
	const struct ndmsg *m;
	union answer a;
	uint64_t at = f->now, age;
	long left;

	memcpy(q.mac, s->mac, ETH_ALEN);
	if (!vid)
		q.h.nlmsg_len = offsetof(__typeof__(q), of_vid);
	m = ask(f, &q.h, RTM_NEWNEIGH, &a, &left);
	if (!m)
		return false;
	left -= (long)NLMSG_ALIGN(sizeof(*m));
	for (const struct rtattr *r = (const void *)(m + 1); RTA_OK(r, left);
	     r = RTA_NEXT(r, left)) {
		struct nda_cacheinfo c;

		if (r->rta_type != NDA_CACHEINFO || RTA_PAYLOAD(r) < sizeof(c))
			continue;
		memcpy(&c, RTA_DATA(r), sizeof(c));
		/* As late as it can have been (the clock is read after the answer): a host that
		 * has moved says so there, and where the clocks do not tell what was first, the
		 * bridge is right. */
		fdb_clock(f);
		age = (uint64_t)c.ndm_updated * USER_MS;
		at = age > CLOCKS_MS ? f->now - (age - CLOCKS_MS) : f->now;
	}
	for (unsigned int i = 0; i < STEER_MEMBERS; i++)
		if (ports[i].nif.index && ports[i].bridge_port == (unsigned int)m->ndm_ifindex &&
		    at > s->seen[i])
			s->seen[i] = at;
	return true;
}

/* Its members may be ports of different bridges. */
static void ask_bridges(struct fdb *f, const struct port *ports, struct station *s)
{
	s->asked = f->now;
	for (unsigned int i = 0; i < STEER_MEMBERS; i++) {
		bool first = ports[i].bridge;

		for (unsigned int k = 0; k < i; k++)
			first &= ports[k].bridge != ports[i].bridge;
		/* a bridge that filters no VLANs has all in 0; in one that does, untagged frames
		 * have a VLAN of their own, mostly 1 */
		if (first && !ask_bridge(f, ports, s, ports[i].bridge, s->vid))
			(void)ask_bridge(f, ports, s, ports[i].bridge, s->vid ? 0 : 1);
	}
}

/* ---- the choice ---- */

/* Of the addresses, the UDP source port and the queue pair: the same for all frames of one
 * direction of a connection. */
static uint64_t flow_hash(const uint8_t *data, uint32_t len, uint32_t ip)
{
	bool v6 = ip < len && data[ip] >> 4 == 6;
	uint32_t addr = ip + (v6 ? 8 : 12), naddr = v6 ? 32 : 8, udp = ip + (v6 ? 40 : 20);
	uint8_t key[32 + 2 + 3];

	if (len < udp + 16)
		return 0;
	memcpy(key, data + addr, naddr);
	memcpy(key + naddr, data + udp, 2);
	memcpy(key + naddr + 2, data + udp + 8 + 5, 3);
	return XXH3_64bits(key, naddr + 5);
}

/* Those of the @usable ports that @s is behind, as bits. */
static unsigned int behind(const struct fdb *f, const struct station *s, unsigned int usable)
{
	unsigned int lately = 0, last = 0;
	uint64_t at = 0;

	for (unsigned int m = 0; m < STEER_MEMBERS; m++) {
		uint64_t seen = usable >> m & 1 ? s->seen[m] : 0;

		if (!seen)
			continue;
		if (f->now - seen <= SPREAD_MS)
			lately |= 1u << m;
		if (seen > at)
			last = 0;
		if (seen >= at)
			last |= 1u << m;
		at = seen > at ? seen : at;
	}
	return lately ? lately : last ? last : usable;
}

unsigned int fdb_member(struct fdb *f, const struct port *ports, const uint8_t *data, uint32_t len)
{
	uint16_t vid;
	uint32_t ip = ip_at(data, len, &vid);
	struct station *s = find(f, data, vid);
	unsigned int by = 0, n;

	if (f->now - latest(s) > ASK_MS && f->now - s->asked > ASK_MS)
		ask_bridges(f, ports, s);
	for (unsigned int m = 0; m < STEER_MEMBERS; m++)
		by |= (unsigned int)(ports[m].nif.index && !ports[m].avoid) << m;
	by = behind(f, s, by);
	if (by & (by - 1)) {
		n = (unsigned int)(flow_hash(data, len, ip) % (unsigned int)__builtin_popcount(by));
		while (n--)
			by &= by - 1;
	}
	return (unsigned int)__builtin_ctz(by);
}
