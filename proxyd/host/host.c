// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Interfaces, addresses, folders: the checks of this host that take no time. */
#include "host/host.h"

#include <errno.h>
#include <libgen.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/magic.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "peer/key.h"

#ifndef BPF_FS_MAGIC
#define BPF_FS_MAGIC 0xcafe4a11
#endif

#define PINS_ENV "LONGHAUL_PINS"

const char *host_pins(void)
{
	const char *dir = getenv(PINS_ENV);

	return dir && *dir ? dir : AFXDP_PINS;
}

long host_number(const char *ifname, const char *file)
{
	char path[96];
	long v = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/net/%s/%s", ifname, file);
	f = fopen(path, "re");
	if (!f)
		return -1;
	/* the carrier of an interface that is down cannot be read */
	if (fscanf(f, "%li", &v) != 1)
		v = -1;
	fclose(f);
	return v;
}

static bool master_of(const char *ifname, char name[IF_NAMESIZE])
{
	char path[96], to[256];
	ssize_t n;

	snprintf(path, sizeof(path), "/sys/class/net/%s/master", ifname);
	n = readlink(path, to, sizeof(to) - 1);
	if (n < 0)
		return false;
	to[n] = '\0';
	snprintf(name, IF_NAMESIZE, "%.*s", IF_NAMESIZE - 1, basename(to));
	return true;
}

bool host_bridge(const char *ifname, char name[IF_NAMESIZE])
{
	char path[96];

	if (!master_of(ifname, name))
		return false;
	snprintf(path, sizeof(path), "/sys/class/net/%s/bonding", name);
	return access(path, F_OK) || master_of(name, name);
}

unsigned int host_need_mtu(unsigned int path_mtu)
{
	return FRAME_MTU(path_mtu);
}

unsigned int host_path_mtu(const struct config *c, unsigned int port_mtu, const char **file,
			   unsigned int *line)
{
	unsigned int p = c->max_path_mtu;

	*file = c->file;
	*line = config_line(c, "max-path-mtu");
	for (unsigned int i = 0; i < c->nrules; i++) {
		if (c->rules[i].path_mtu > p) {
			p = c->rules[i].path_mtu;
			*file = config_file(c, c->rule_src[i].file);
			*line = c->rule_src[i].mtu_line;
		}
	}
	if (p)
		return p;
	*line = 0;
	for (p = 4096; p >= 256; p /= 2)
		if (host_need_mtu(p) <= port_mtu)
			return p;
	return 0;
}

/* ---- the ports ---- */

static bool if_ioctl(const char *ifname, unsigned long request, struct ifreq *ifr)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool ok;

	snprintf(ifr->ifr_name, sizeof(ifr->ifr_name), "%s", ifname);
	ok = fd >= 0 && !ioctl(fd, request, ifr);
	if (fd >= 0)
		close(fd);
	return ok;
}

static bool is_up(const char *name)
{
	struct ifreq ifr = {0};

	return if_nametoindex(name) &&
	       (!if_ioctl(name, SIOCGIFFLAGS, &ifr) || ifr.ifr_flags & IFF_UP);
}

/* Whether port @port is there and up; if not, adds an error, and the other checks are skipped. Of
 * several on one side one must be. */
static bool check_port(const struct config *c, unsigned int port, struct config_errors *errs,
		       struct config_errors *warn)
{
	const char *name = c->ifname[port];
	unsigned int line = c->key_line[port / STEER_MEMBERS];
	if (!if_nametoindex(name)) {
		config_error(errs, c->file, line,
			     "interface '%s' does not exist; 'ip link' lists those that do", name);
		return false;
	}
	if (!is_up(name)) {
		config_error(errs, c->file, line, "interface '%s' is down; ip link set dev %s up",
			     name, name);
		return false;
	}
	if (host_number(name, "carrier") == 0)
		config_error(warn, c->file, line,
			     "interface '%s' has no carrier: nothing is connected, or the other "
			     "end is off; see 'ip link show %s'",
			     name, name);
	return true;
}

/* Tunnels of IP, such as WireGuard's, have no Ethernet header: no bridge takes them, and XDP would
 * read the IP header as one. */
static bool check_ethernet(const struct config *c, unsigned int port, struct config_errors *errs)
{
	long len = host_number(c->ifname[port], "addr_len");

	if (len < 0 || len == ETH_ALEN)
		return true;
	config_error(errs, c->file, c->key_line[port / STEER_MEMBERS],
		     "interface '%s' is no Ethernet interface; put a veth and a router before it, "
		     "see doc/topologies.md",
		     c->ifname[port]);
	return false;
}

/* The ports of @side; adds those that are up to @up. Whether there is one, and none is unfit. */
static bool check_side(const struct config *c, unsigned int side, struct config_errors *errs,
		       struct config_errors *warn, unsigned int *up)
{
	bool any = false, fit = true;

	for (unsigned int p = STEER_PORT(side, 0); p < STEER_PORT(side + 1, 0); p++) {
		any |= *c->ifname[p] && is_up(c->ifname[p]);
		fit &= !*c->ifname[p] || check_ethernet(c, p, errs);
	}
	for (unsigned int p = STEER_PORT(side, 0); p < STEER_PORT(side + 1, 0); p++)
		if (*c->ifname[p] && check_port(c, p, any ? warn : errs, warn))
			*up |= 1u << p;
	return any && fit;
}

static void check_bridge(const struct config *c, unsigned int up, struct config_errors *warn)
{
	char bridge[STEER_PORTS][IF_NAMESIZE] = {""};

	for (unsigned int p = 0; p < STEER_PORTS; p++)
		if (up >> p & 1 && !host_bridge(c->ifname[p], bridge[p])) {
			config_error(warn, c->file, c->key_line[p / STEER_MEMBERS],
				     "interface '%s' is in no bridge: traffic that longhaul does "
				     "not take is lost; put it into one with a port of the other "
				     "side, ip link set dev %s master BRIDGE",
				     c->ifname[p], c->ifname[p]);
			return;
		}
	/* several ports may be in several bridges, each with a port of the other side */
	for (unsigned int p = 0; p < STEER_PORTS; p++) {
		bool other = !(up >> p & 1);

		for (unsigned int q = 0; q < STEER_PORTS; q++)
			other |= up >> q & 1 && q / STEER_MEMBERS != p / STEER_MEMBERS &&
				 !strcmp(bridge[p], bridge[q]);
		if (other)
			continue;
		config_error(warn, c->file, c->key_line[p / STEER_MEMBERS],
			     "'%s' is in bridge '%s', which has no port of the other side: traffic "
			     "that longhaul does not take is lost there; put both into one",
			     c->ifname[p], bridge[p]);
		return;
	}
}

static void check_mtu(const struct config *c, unsigned int up, struct config_errors *warn)
{
	const char *low = NULL, *high = NULL;
	long least = 0, most = 0;
	unsigned int line, p, need;
	const char *file;

	for (unsigned int i = 0; i < STEER_PORTS; i++) {
		long mtu = up >> i & 1 ? host_number(c->ifname[i], "mtu") : -1;

		if (mtu < 0)
			continue;
		if (!low || mtu < least) {
			least = mtu;
			low = c->ifname[i];
		}
		if (!high || mtu > most) {
			most = mtu;
			high = c->ifname[i];
		}
	}
	if (!low)
		return;
	if (least != most)
		config_error(warn, c->file, c->key_line[STEER_WAN],
			     "'%s' has MTU %ld and '%s' %ld: the bridge drops longer packets "
			     "without a word; give all ports the same",
			     low, least, high, most);
	p = host_path_mtu(c, (unsigned int)least, &file, &line);
	need = host_need_mtu(p);
	if (line && need > least)
		config_error(warn, file, line,
			     "path MTU %u needs ports of MTU %u, '%s' has %ld; ip link set dev %s "
			     "mtu %u, along the whole link, or lower the path MTU",
			     p, need, low, least, low, need);
}

/* Virtual ports pass our datagrams on without a checksum, for a network card to fill in. */
static void check_offload(const struct config *c, unsigned int port, struct config_errors *warn)
{
	struct ethtool_drvinfo drv = {.cmd = ETHTOOL_GDRVINFO};
	struct ethtool_value on = {.cmd = ETHTOOL_GTXCSUM};
	const char *wan = c->ifname[port];
	struct ifreq ifr = {.ifr_data = (void *)&drv};

	if (!c->npeers || !if_ioctl(wan, SIOCETHTOOL, &ifr))
		return;
	ifr.ifr_data = (void *)&on;
	if ((strcmp(drv.driver, "veth") && strcmp(drv.driver, "tun")) ||
	    !if_ioctl(wan, SIOCETHTOOL, &ifr) || !on.data)
		return;
	config_error(warn, c->file, c->key_line[STEER_WAN],
		     "'%s' is a %s with checksum offload: reports may reach the peer with a wrong "
		     "checksum and be dropped there; ethtool -K %s tx off",
		     wan, drv.driver, wan);
}

/* ---- addresses ---- */

static const uint8_t v4_head[12] = {[10] = 0xff, [11] = 0xff};

static bool is_any(const struct ip_addr *a)
{
	static const struct ip_addr any;

	return ip_addr_eq(a, &any);
}

/* Whether a socket can be bound to @a, which only an address of this host allows. */
static bool is_own(const struct ip_addr *a)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
	bool v4 = !memcmp(a->b, v4_head, sizeof(v4_head)), own;
	int fd = socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	memcpy(&in.sin_addr, a->b + 12, 4);
	memcpy(&in6.sin6_addr, a->b, 16);
	own = fd >= 0 && !bind(fd, v4 ? (struct sockaddr *)&in : (struct sockaddr *)&in6,
			       v4 ? sizeof(in) : sizeof(in6));
	if (fd >= 0)
		close(fd);
	return own;
}

static void check_addresses(const struct config *c, struct config_errors *errs)
{
	char text[IP_ADDR_STRLEN];

	if (!is_any(&c->listen) && !is_own(&c->listen))
		config_error(
			errs, c->file, config_line(c, "listen"),
			"listen address %s is not one of this host; 'ip address' lists its own, "
			"or leave 'listen' out",
			ip_addr_str(&c->listen, text));
	for (unsigned int i = 0; i < c->npeers; i++)
		if (!is_any(&c->peers[i].addr) && is_own(&c->peers[i].addr))
			config_error(errs, config_file(c, c->peers[i].file), c->peers[i].line,
				     "the address %s of peer '%s' is this host's own; write that "
				     "of the other appliance",
				     ip_addr_str(&c->peers[i].addr, text), c->peers[i].name);
}

/* ---- files ---- */

static void check_keys(const struct config *c, struct config_errors *errs,
		       struct config_errors *warn)
{
	uid_t owner = key_owner();

	for (unsigned int i = 0; i < c->npeers * SESSION_KEYS; i++) {
		const struct config_peer *p = &c->peers[i / SESSION_KEYS];
		const char *file = p->key_file[i % SESSION_KEYS];
		char why[CONFIG_ERROR_LEN];
		uint8_t key[PEER_KEY_LEN];
		struct stat st;

		if (i % SESSION_KEYS >= p->nkeys)
			continue;
		if (key_read(file, key, why, sizeof(why)))
			config_error(errs, config_file(c, p->file), p->key_line, "%s", why);
		else if (!stat(file, &st) && st.st_uid != owner && st.st_uid != geteuid())
			config_error(warn, config_file(c, p->file), p->key_line,
				     "%s belongs to user %u: as a service longhauld is user "
				     "'" PEER_KEY_USER "' and cannot read it; chown " PEER_KEY_USER
				     " %s",
				     file, (unsigned int)st.st_uid, file);
		explicit_bzero(key, sizeof(key));
	}
}

/* The service creates the folder of the default socket. */
static void check_socket(const struct config *c, struct config_errors *errs)
{
	char path[sizeof(c->socket)];
	struct stat st;
	const char *dir;

	if (!strcmp(c->socket, CONFIG_SOCKET))
		return;
	memcpy(path, c->socket, sizeof(path));
	dir = dirname(path);
	if (stat(dir, &st))
		config_error(errs, c->file, config_line(c, "socket"),
			     "the folder of socket '%s' cannot be used: %s; make it, or set "
			     "'socket' to such as " CONFIG_SOCKET,
			     c->socket, strerror(errno));
	else if (!S_ISDIR(st.st_mode) || access(dir, W_OK | X_OK))
		config_error(errs, c->file, config_line(c, "socket"),
			     "the folder of socket '%s' is no folder in which longhauld may write; "
			     "chown it, or set 'socket' to such as " CONFIG_SOCKET,
			     c->socket);
	else if (!lstat(c->socket, &st) && !S_ISSOCK(st.st_mode))
		config_error(errs, c->file, config_line(c, "socket"),
			     "'%s' is there and no socket; remove it, or set 'socket'", c->socket);
}

static bool is_bpffs(const char *path)
{
	struct statfs s;

	return !statfs(path, &s) && (uint64_t)s.f_type == BPF_FS_MAGIC;
}

static void check_pins(const struct config *c, struct config_errors *warn)
{
	char root[256], *parent = root;

	snprintf(root, sizeof(root), "%s", host_pins());
	if (access(root, F_OK)) {
		/* this user may not look into it: it may be all right */
		if (errno == EACCES)
			return;
		parent = dirname(root);
	}
	/* as root the daemon mounts that one */
	if (!strcmp(parent, "/sys/fs/bpf") && !geteuid())
		return;
	for (unsigned int i = 0; i < c->nrules; i++) {
		if (!config_wants_pins(c, i) || is_bpffs(parent))
			continue;
		config_error(warn, config_file(c, c->rule_src[i].file), c->rule_src[i].line,
			     "rule '%s' wants prefetch or announce, and there is no BPF file "
			     "system at %s to pin what must outlive longhauld: both would be off; "
			     "mount -t bpf bpf %s",
			     c->rules[i].name, parent, parent);
		return;
	}
}

/* For the checks of addresses and the link only; the running longhauld looks up names again. */
static void look_up(struct config *c, struct config_errors *warn)
{
	for (unsigned int i = 0; i < c->npeers; i++) {
		struct config_peer *p = &c->peers[i];
		const char *w = p->host[0] ? resolver_lookup(p->host, AF_UNSPEC, &p->addr) : NULL;

		if (w)
			config_error(warn, config_file(c, p->file), p->line,
				     "the address of peer '%s', %s, cannot be looked up: %s; "
				     "mend the name or the name service, or write its address",
				     p->name, p->host, w);
	}
}

int host_check(struct config *c, unsigned int patience_ms, struct config_errors *errs,
	       struct config_errors *warn)
{
	unsigned int up = 0;
	bool ports = true;

	errs->n = warn->n = 0;
	for (unsigned int side = 0; side < STEER_SIDES; side++)
		ports &= check_side(c, side, errs, warn, &up);
	check_keys(c, errs, warn);
	if (patience_ms >= HOST_NAMES_MS)
		look_up(c, warn);
	check_addresses(c, errs);
	check_socket(c, errs);
	host_check_memory(c, errs, warn);
	check_pins(c, warn);
	if (!ports)
		return -EINVAL;
	host_check_cores(c, warn);
	check_bridge(c, up, warn);
	check_mtu(c, up, warn);
	for (unsigned int p = STEER_PORT(STEER_WAN, 0); p < STEER_PORTS; p++)
		if (up >> p & 1)
			check_offload(c, p, warn);
	/* in this order: by the probe's packets the bridge learns behind which port the peers are
	 */
	if (!errs->n)
		host_check_link(c, patience_ms, warn);
	host_check_sides(c, warn);
	return errs->n ? -EINVAL : 0;
}
