// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The length is found by halving: each step costs a round trip when it is answered, and TRIES times
 * WAIT_MS when it is not.
 */
#include "cli/ping.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define TRIES	2
#define WAIT_MS 250
#define SHORT	84u
#define MOST	9000u

/**
 * struct pinger
 * @head: of IP, bytes; @request, @answer: types of ICMP; @sequence: of the latest request
 */
struct pinger {
	int fd;
	struct sockaddr_storage to;
	socklen_t to_len;
	unsigned int head;
	uint8_t request, answer;
	uint16_t sequence;
};

static bool pinger_open(struct pinger *p, const char *address)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&p->to;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&p->to;
	int probe4 = IP_PMTUDISC_PROBE, probe6 = IPV6_PMTUDISC_PROBE;

	*p = (struct pinger){.fd = -1};
	if (inet_pton(AF_INET, address, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		p->to_len = sizeof(*v4);
		p->head = sizeof(struct ip);
		p->request = ICMP_ECHO;
		p->answer = ICMP_ECHOREPLY;
		p->fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
		return p->fd >= 0 &&
		       !setsockopt(p->fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe4, sizeof(probe4));
	}
	if (inet_pton(AF_INET6, address, &v6->sin6_addr) != 1)
		return false;
	v6->sin6_family = AF_INET6;
	p->to_len = sizeof(*v6);
	p->head = 40;
	p->request = ICMP6_ECHO_REQUEST;
	p->answer = ICMP6_ECHO_REPLY;
	p->fd = socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMPV6);
	return p->fd >= 0 &&
	       !setsockopt(p->fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &probe6, sizeof(probe6));
}

/* spec: RFC 1071. The kernel fills that of ICMPv6 in. */
static uint16_t checksum(const uint8_t *data, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < len; i++)
		sum += i % 2 ? data[i] : (uint32_t)data[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

static bool ask(struct pinger *p, unsigned int len)
{
	uint8_t data[MOST] = {0};
	struct icmphdr h = {.type = p->request};

	h.un.echo.id = htons((uint16_t)getpid());
	h.un.echo.sequence = htons(++p->sequence);
	memcpy(data, &h, sizeof(h));
	h.checksum = checksum(data, len - p->head);
	memcpy(data, &h, sizeof(h));
	return sendto(p->fd, data, len - p->head, 0, (struct sockaddr *)&p->to, p->to_len) > 0;
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Whether the answer to the latest request comes in time. A raw socket hears all of the machine's,
 * those over IPv4 with their IP header. */
static bool hear(const struct pinger *p)
{
	int64_t end = now_ms() + WAIT_MS, left;
	struct pollfd fd = {.fd = p->fd, .events = POLLIN};
	uint8_t data[MOST];
	struct icmphdr h;

	while ((left = end - now_ms()) > 0 && poll(&fd, 1, (int)left) > 0) {
		ssize_t n = recv(p->fd, data, sizeof(data), MSG_DONTWAIT);
		size_t at = p->to.ss_family == AF_INET && n > 0 ? (size_t)(data[0] & 15) * 4 : 0;

		if (n < (ssize_t)(at + sizeof(h)))
			continue;
		memcpy(&h, data + at, sizeof(h));
		if (h.type == p->answer && h.un.echo.id == htons((uint16_t)getpid()) &&
		    h.un.echo.sequence == htons(p->sequence))
			return true;
	}
	return false;
}

static bool answers(struct pinger *p, unsigned int len)
{
	for (int i = 0; i < TRIES; i++)
		if (ask(p, len) && hear(p))
			return true;
	return false;
}

bool ping_host(const char *address, unsigned int most, struct ping *out)
{
	unsigned int too_long;
	struct pinger p;
	bool able = pinger_open(&p, address);

	*out = (struct ping){0};
	most = most < SHORT ? SHORT : most > MOST ? MOST : most;
	errno = 0;
	if (able && answers(&p, SHORT)) {
		out->answers = true;
		out->carried = answers(&p, most) ? most : SHORT;
		for (too_long = most; too_long - out->carried > PING_CLOSE;) {
			unsigned int half = (out->carried + too_long) / 2;

			if (answers(&p, half))
				out->carried = half;
			else
				too_long = half;
		}
	}
	out->no_route = !out->answers && (errno == ENETUNREACH || errno == EHOSTUNREACH);
	if (p.fd >= 0)
		close(p.fd);
	return able;
}
