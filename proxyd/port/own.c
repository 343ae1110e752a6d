// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "port/own.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int own_open(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	return fd < 0 ? -errno : fd;
}

/* The address in the message @m of @left bytes: IFA_LOCAL, or, where that is missing, IFA_ADDRESS,
 * which is the far end's on a link between two. */
static void add(struct own *o, const struct ifaddrmsg *m, unsigned int left)
{
	const struct rtattr *a = IFA_RTA(m), *found = NULL;
	size_t len = m->ifa_family == AF_INET ? 4 : 16;

	for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (RTA_PAYLOAD(a) == len &&
		    (a->rta_type == IFA_LOCAL || (a->rta_type == IFA_ADDRESS && !found)))
			found = a;
	if (!found || (m->ifa_family != AF_INET && m->ifa_family != AF_INET6))
		return;
	if (o->n == OWN_MAX) {
		o->more = true;
		return;
	}
	if (len == 4)
		o->addr[o->n++] = ip_addr_v4(RTA_DATA(found));
	else
		memcpy(o->addr[o->n++].b, RTA_DATA(found), 16);
}

/* One datagram of the answer. 1 when more will come. */
static int take(struct own *o, const void *buf, int len, uint32_t seq)
{
	const struct nlmsghdr *h = buf;

	for (; NLMSG_OK(h, (unsigned int)len); h = NLMSG_NEXT(h, len)) {
		if (h->nlmsg_seq != seq)
			continue; /* of an earlier question */
		if (h->nlmsg_flags & NLM_F_DUMP_INTR)
			return -EAGAIN; /* they have changed meanwhile */
		if (h->nlmsg_type == NLMSG_DONE)
			return 0;
		if (h->nlmsg_type == NLMSG_ERROR)
			return -EIO;
		if (h->nlmsg_type == RTM_NEWADDR)
			add(o, NLMSG_DATA(h), (unsigned int)IFA_PAYLOAD(h));
	}
	return 1;
}

int own_read(int fd, struct own *o)
{
	static uint32_t seq;
	struct {
		struct nlmsghdr h;
		struct ifaddrmsg m;
	} ask = {.h = {.nlmsg_len = sizeof(ask),
		       .nlmsg_type = RTM_GETADDR,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		       .nlmsg_seq = ++seq}};
	_Alignas(struct nlmsghdr) char buf[32768];
	int r;

	memset(o, 0, sizeof(*o));
	if (send(fd, &ask, sizeof(ask), 0) < 0)
		return -errno;
	do {
		ssize_t n = recv(fd, buf, sizeof(buf), 0);

		if (n < 0)
			return -errno;
		r = take(o, buf, (int)n, seq);
	} while (r > 0);
	return r;
}

bool own_same(const struct own *a, const struct own *b)
{
	return a->n == b->n && a->more == b->more &&
	       !memcmp(a->addr, b->addr, a->n * sizeof(a->addr[0]));
}

static bool afar(const struct ip_addr *a)
{
	static const struct ip_addr loopback = {.b = {[15] = 1}};

	if (ip_addr_is_v4(a))
		return a->b[12] != 127;
	return !ip_addr_eq(a, &loopback) && !(a->b[0] == 0xfe && (a->b[1] & 0xc0) == 0x80);
}

static bool covers(const struct rule *r, const struct ip_addr *a)
{
	bool has = false;

	for (unsigned int i = 0; i < r->nnear; i++)
		has |= prefix_has(&r->near[i], a);
	for (unsigned int i = 0; i < r->nfar; i++)
		has |= prefix_has(&r->far[i], a);
	return has;
}

unsigned int own_ruled(const struct own *o, const struct rule *rules, unsigned int nrules,
		       char *buf, size_t size)
{
	char text[IP_ADDR_STRLEN];
	unsigned int found = 0;
	size_t at = 0;

	buf[0] = '\0';
	for (unsigned int i = 0; i < o->n; i++) {
		for (unsigned int k = 0; k < nrules && afar(&o->addr[i]); k++) {
			if (!covers(&rules[k], &o->addr[i]))
				continue;
			if (at < size)
				at += (size_t)snprintf(
					buf + at, size - at, "%s%s (rule %s)", found ? ", " : "",
					ip_addr_str(&o->addr[i], text), rules[k].name);
			found++;
			break;
		}
	}
	return found;
}
