// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Does the link carry what the hosts send? Each peer is sent ICMP echo requests over the bridge of
 * the ports, short ones and some as long as the hosts' longest packets, with fragmentation
 * forbidden. If a peer answers only the short ones, the link's MTU is too small. No answer tells
 * nothing: the peer may be off, too far away, or ignore echo requests. The check is skipped if this
 * host may not send them, or its ports are in no Linux bridge.
 */
#include <errno.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "host/host.h"

#define SHORT  64 /* bytes of an IP packet */
#define COPIES 3  /* of each request: the link may lose some */

/**
 * struct probe - the probe of one peer.
 * @fd:    raw socket, -1: no probe
 * @v6:    an IPv6 peer
 * @heard: answered lengths, bits: 1 the short one, 2 the long one
 */
struct probe {
	int fd;
	bool v6;
	unsigned int heard;
};

static const uint8_t v4_head[12] = {[10] = 0xff, [11] = 0xff};

static uint16_t checksum(const uint8_t *p, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < len; i++)
		sum += (uint32_t)p[i] << (i & 1 ? 0 : 8);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* The ICMP part of an echo request whose IP packet has @len bytes: @seq tells the length. */
static bool send_echo(const struct probe *p, unsigned int len, uint8_t seq)
{
	uint8_t buf[FRAME_MAX] = {p->v6 ? ICMP6_ECHO_REQUEST : ICMP_ECHO};
	size_t n = len - (p->v6 ? sizeof(struct in6_addr) * 2 + 8 : sizeof(struct iphdr));
	uint16_t sum, id = (uint16_t)getpid();

	memcpy(buf + 4, &id, sizeof(id));
	buf[7] = seq;
	/* the kernel does it for ICMPv6 */
	sum = p->v6 ? 0 : checksum(buf, n);
	buf[2] = (uint8_t)(sum >> 8);
	buf[3] = (uint8_t)sum;
	return send(p->fd, buf, n, MSG_DONTWAIT) == (ssize_t)n;
}

static void take_answer(struct probe *p)
{
	uint8_t buf[FRAME_MAX];
	ssize_t n = recv(p->fd, buf, sizeof(buf), MSG_DONTWAIT);
	size_t at = p->v6 || n < (ssize_t)sizeof(struct iphdr) ? 0 : (size_t)(buf[0] & 15) * 4;
	uint16_t id = (uint16_t)getpid();

	if (n < (ssize_t)at + 8 || buf[at] != (p->v6 ? ICMP6_ECHO_REPLY : ICMP_ECHOREPLY) ||
	    memcmp(buf + at + 4, &id, sizeof(id)) || (buf[at + 7] != 1 && buf[at + 7] != 2))
		return;
	p->heard |= buf[at + 7];
}

static int open_probe(const struct config_peer *peer, const char *bridge, bool v6)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
	int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_RAW | SOCK_CLOEXEC,
			v6 ? (int)IPPROTO_ICMPV6 : (int)IPPROTO_ICMP);
	/* do not fragment, and ignore a learned path MTU */
	/* both constants have one value: NOLINTNEXTLINE(misc-redundant-expression) */
	int whole = v6 ? (int)IPV6_PMTUDISC_PROBE : (int)IP_PMTUDISC_PROBE;

	memcpy(&in.sin_addr, peer->addr.b + 12, 4);
	memcpy(&in6.sin6_addr, peer->addr.b, 16);
	if (fd < 0)
		return -1;
	if (!setsockopt(fd, v6 ? (int)IPPROTO_IPV6 : (int)IPPROTO_IP,
			v6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, &whole, sizeof(whole)) &&
	    !setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, bridge, (socklen_t)strlen(bridge)) &&
	    !connect(fd, v6 ? (struct sockaddr *)&in6 : (struct sockaddr *)&in,
		     v6 ? sizeof(in6) : sizeof(in)))
		return fd;
	close(fd);
	return -1;
}

static unsigned int left_ms(const struct timespec *start, unsigned int patience_ms)
{
	struct timespec now;
	long long ms;

	clock_gettime(CLOCK_MONOTONIC, &now);
	ms = (now.tv_sec - start->tv_sec) * 1000ll + (now.tv_nsec - start->tv_nsec) / 1000000;
	return ms < patience_ms ? patience_ms - (unsigned int)ms : 0;
}

/* Read answers until all peers have answered both lengths, or @patience_ms is over. */
static void listen_for(struct probe *probe, unsigned int n, unsigned int patience_ms)
{
	struct pollfd pfd[PEER_MAX];
	struct timespec start;
	unsigned int left;
	bool waiting;

	clock_gettime(CLOCK_MONOTONIC, &start);
	while ((left = left_ms(&start, patience_ms))) {
		waiting = false;
		for (unsigned int i = 0; i < n; i++) {
			bool open = probe[i].fd >= 0 && probe[i].heard != 3;

			pfd[i] = (struct pollfd){.fd = open ? probe[i].fd : -1, .events = POLLIN};
			waiting |= open;
		}
		if (!waiting || poll(pfd, n, (int)left) <= 0)
			return;
		for (unsigned int i = 0; i < n; i++)
			if (pfd[i].revents)
				take_answer(&probe[i]);
	}
}

void host_check_link(const struct config *c, unsigned int patience_ms, struct config_errors *warn)
{
	long mtu = host_number(c->ifname[STEER_PORT(STEER_WAN, 0)], "mtu");
	static const struct ip_addr unknown;
	struct probe probe[PEER_MAX];
	char bridge[IF_NAMESIZE];
	unsigned int line, path_mtu, need;
	const char *file;

	path_mtu = host_path_mtu(c, mtu > 0 ? (unsigned int)mtu : 0, &file, &line);
	need = host_need_mtu(path_mtu);
	if (!path_mtu || need > mtu || !host_bridge(c->ifname[STEER_PORT(STEER_WAN, 0)], bridge))
		return;
	for (unsigned int i = 0; i < c->npeers; i++) {
		struct probe *p = &probe[i];

		*p = (struct probe){.v6 = memcmp(c->peers[i].addr.b, v4_head, sizeof(v4_head)) !=
					  0};
		p->fd = ip_addr_eq(&c->peers[i].addr, &unknown)
				? -1
				: open_probe(&c->peers[i], bridge, p->v6);
		for (int k = 0; p->fd >= 0 && k < COPIES; k++)
			if (!send_echo(p, SHORT, 1) || !send_echo(p, need, 2))
				break;
	}
	listen_for(probe, c->npeers, patience_ms);
	for (unsigned int i = 0; i < c->npeers; i++) {
		if (probe[i].heard == 1)
			config_error(warn, line ? file : config_file(c, c->peers[i].file),
				     line ? line : c->peers[i].line,
				     "the link to peer '%s' does not carry packets of %u bytes, as "
				     "path MTU %u makes them: they vanish there; raise the MTU "
				     "along it, or lower that of the hosts and the ports",
				     c->peers[i].name, need, path_mtu);
		if (probe[i].fd >= 0)
			close(probe[i].fd);
	}
}
