// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Waiting for a port of each side (--wait): interfaces come late at boot, are created again, or are
 * down for a while. Without waiting, the service would fail and be restarted many times a second.
 */
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include "host/host.h"
#include "host/log.h"

#define LOOK_NS 20000000l
#define LOOKS	(60u * (1000000000u / LOOK_NS)) /* a minute, below what systemd gives a start */

/* Why @ifname is not ready, or NULL. */
static const char *lacks(const char *ifname)
{
	struct ifreq ifr = {0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool known;

	for (int i = 0; i < IF_NAMESIZE - 1 && ifname[i]; i++)
		ifr.ifr_name[i] = ifname[i];
	known = fd >= 0 && !ioctl(fd, SIOCGIFFLAGS, &ifr);
	if (fd >= 0)
		close(fd);
	return !if_nametoindex(ifname)		    ? "it does not exist"
	       : known && !(ifr.ifr_flags & IFF_UP) ? "it is down"
						    : NULL;
}

/* The first port of @side whose interface is not ready, STEER_PORTS: one is. */
static unsigned int waits_for(const struct config *c, unsigned int side, const char **why)
{
	unsigned int first = STEER_PORTS;

	for (unsigned int p = STEER_PORT(side, 0); p < STEER_PORT(side + 1, 0); p++) {
		const char *w = *c->ifname[p] ? lacks(c->ifname[p]) : NULL;

		if (*c->ifname[p] && !w)
			return STEER_PORTS;
		if (first == STEER_PORTS && w) {
			first = p;
			*why = w;
		}
	}
	return first;
}

void host_wait(const struct config *c)
{
	const struct timespec look = {.tv_nsec = LOOK_NS};
	const char *what = NULL, *now = NULL;

	for (unsigned int i = 0; i < LOOKS; i++) {
		unsigned int p = waits_for(c, STEER_LAN, &now);

		if (p == STEER_PORTS)
			p = waits_for(c, STEER_WAN, &now);
		if (p == STEER_PORTS)
			break;
		if (now != what) {
			log_line(LOG_WARNING, "waiting for interface %s: %s", c->ifname[p], now);
			sd_notifyf(0, "STATUS=waiting for interface %s: %s", c->ifname[p], now);
		}
		what = now;
		nanosleep(&look, NULL);
	}
}
