// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the port must know of a network interface, and the one thing that it changes there: receive
 * VLAN stripping. A NIC that strips tags hands them to the stack beside the packet, where neither
 * an XDP program nor an AF_XDP socket sees them: a tagged frame would look untagged, match the
 * wrong rule and leave the other port without its tag.
 *
 * On a veth the same is done by the sender: behind a VLAN device of its peer, tags are in the
 * frames only after `ethtool -K PEER txvlan off` there, which is beyond our reach.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "port/afxdp_priv.h"

int port_fail(char *err, size_t errlen, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, errlen, fmt, ap);
	va_end(ap);
	return code;
}

static int if_ioctl(const char *name, unsigned long request, struct ifreq *ifr)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int r;

	if (fd < 0)
		return -errno;
	strncpy(ifr->ifr_name, name, IF_NAMESIZE - 1);
	ifr->ifr_name[IF_NAMESIZE - 1] = '\0';
	r = ioctl(fd, request, ifr) < 0 ? -errno : 0;
	close(fd);
	return r;
}

static int if_ethtool(const char *name, void *cmd)
{
	struct ifreq ifr = {.ifr_data = cmd};

	return if_ioctl(name, SIOCETHTOOL, &ifr);
}

/* Drivers without "channels" (tap, for one) show their queues in sysfs. @kind: "rx-" or "tx-" */
static unsigned int sysfs_queues(const char *name, const char *kind)
{
	unsigned int n = 0;
	char path[64];
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "/sys/class/net/%s/queues", name);
	d = opendir(path);
	if (!d)
		return 1;
	while ((e = readdir(d)))
		n += strncmp(e->d_name, kind, 3) == 0;
	closedir(d);
	return n ? n : 1;
}

/* Receive and transmit queues of a driver that has a notion of channels. */
static bool channels(const char *name, unsigned int *rx, unsigned int *tx)
{
	struct ethtool_channels ch = {.cmd = ETHTOOL_GCHANNELS};

	if (if_ethtool(name, &ch) < 0)
		return false;
	*rx = ch.rx_count + ch.combined_count ? ch.rx_count + ch.combined_count : 1;
	*tx = ch.tx_count + ch.combined_count ? ch.tx_count + ch.combined_count : 1;
	return true;
}

static void count_queues(struct netif *nif)
{
	if (channels(nif->name, &nif->queues, &nif->tx_queues))
		return;
	nif->queues = sysfs_queues(nif->name, "rx-");
	nif->tx_queues = sysfs_queues(nif->name, "tx-");
}

unsigned int afxdp_most_parts(const char *ifname)
{
	struct netif nif;

	snprintf(nif.name, sizeof(nif.name), "%s", ifname);
	count_queues(&nif);
	return nif.queues < nif.tx_queues ? nif.queues : nif.tx_queues;
}

static void driver_of(const char *name, char *buf, size_t len)
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};

	if (if_ethtool(name, &info) < 0)
		info.driver[0] = '\0';
	snprintf(buf, len, "%.31s", info.driver);
}

/* Returns whether the device stripped tags before. */
static int set_vlan_strip(const char *name, bool on)
{
	struct ethtool_value v = {.cmd = ETHTOOL_GFLAGS};
	bool was;
	int r;

	if (if_ethtool(name, &v) < 0)
		return 0; /* no such notion, nothing stripped */
	was = v.data & ETH_FLAG_RXVLAN;
	if (was == on)
		return was;
	v.cmd = ETHTOOL_SFLAGS;
	v.data ^= ETH_FLAG_RXVLAN;
	r = if_ethtool(name, &v);
	return r < 0 ? r : was;
}

int netif_open(struct netif *nif, const char *name, char *err, size_t errlen)
{
	struct ifreq ifr = {0};
	int r;

	memset(nif, 0, sizeof(*nif));
	nif->index = name && *name ? if_nametoindex(name) : 0;
	if (!nif->index)
		return port_fail(err, errlen, -ENODEV,
				 "no interface \"%s\": choose one that `ip link` lists",
				 name ? name : "");
	snprintf(nif->name, sizeof(nif->name), "%s", name);

	r = if_ioctl(name, SIOCGIFFLAGS, &ifr);
	if (r == 0 && !(ifr.ifr_flags & IFF_UP))
		return port_fail(err, errlen, -ENETDOWN,
				 "interface %s is down: `ip link set dev %s up`", name, name);
	if (r == 0)
		r = if_ioctl(name, SIOCGIFMTU, &ifr);
	if (r < 0)
		return port_fail(err, errlen, r, "interface %s cannot be queried: %s", name,
				 strerror(-r));
	nif->mtu = (unsigned int)ifr.ifr_mtu;
	driver_of(name, nif->driver, sizeof(nif->driver));

	count_queues(nif);
	if (nif->queues > STEER_QUEUES)
		return port_fail(err, errlen, -E2BIG,
				 "%s has %u receive queues, more than the %d that can be served: "
				 "`ethtool -L %s combined %d`",
				 name, nif->queues, STEER_QUEUES, name, STEER_QUEUES);

	r = set_vlan_strip(name, false);
	if (r == -EPERM)
		return port_fail(err, errlen, r, "no permission to configure %s: " AFXDP_NEED_CAPS,
				 name);
	if (r < 0)
		return port_fail(err, errlen, r,
				 "%s strips VLAN tags and would not stop (%s): try `ethtool -K %s "
				 "rxvlan off`",
				 name, strerror(-r), name);
	nif->vlan_strip = r;
	nif->missed = netif_missed(nif);
	return 0;
}

void netif_close(struct netif *nif)
{
	if (nif->vlan_strip && netif_check(nif) != -ENODEV)
		set_vlan_strip(nif->name, true);
	nif->vlan_strip = false;
}

uint64_t netif_missed(const struct netif *nif)
{
	char path[80];
	uint64_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/net/%s/statistics/rx_missed_errors", nif->name);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%" SCNu64, &n) != 1)
		n = 0;
	fclose(f);
	return n;
}

unsigned int netif_mtu(const struct netif *nif)
{
	struct ifreq ifr = {0};

	return if_ioctl(nif->name, SIOCGIFMTU, &ifr) ? 0 : (unsigned int)ifr.ifr_mtu;
}

bool netif_is_up(const char *name)
{
	struct ifreq ifr = {0};

	return !if_ioctl(name, SIOCGIFFLAGS, &ifr) && ifr.ifr_flags & IFF_UP;
}

int netif_check(const struct netif *nif)
{
	const short serves = IFF_UP | IFF_RUNNING; /* the latter: something is at its other end */
	struct ifreq ifr = {0};
	unsigned int rx, tx;

	if (if_nametoindex(nif->name) != nif->index)
		return -ENODEV;
	if (channels(nif->name, &rx, &tx) && rx != nif->queues)
		return -ESTALE;
	if (if_ioctl(nif->name, SIOCGIFFLAGS, &ifr) == 0 && (ifr.ifr_flags & serves) != serves)
		return -ENETDOWN;
	return 0;
}
