// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One unconnected UDP socket for all peers: every appliance sends from and listens on its one
 * configured port, which is also what keeps a firewall's state entry alive. Peers are told apart by
 * source address and port; datagrams from elsewhere are counted and dropped unread.
 *
 * If the send buffer is full, datagrams wait here, in order, so that reports of the engine are not
 * lost on this machine. If this queue is full, too, the newest is lost. Where another process may
 * adopt this one's memory, all datagrams of a batch wait for its commit (peer_socket_wait()):
 * reports of a batch that is undone would be false.
 *
 * Errors of the network or this host for a datagram (ICMP errors, no route, a firewall) are noted
 * for its peer, to explain why the peer does not come up.
 *
 * On an IPv6 socket an IPv4 address is its v4-mapped form, which is how struct ip_addr holds it
 * anyway. An IPv4 socket is made when the address to bind is IPv4, or when the kernel has no IPv6.
 */
#include "peer/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "rule/rule.h" /* PEER_MAX */
#include "peer/session.h"

#define BATCH	   32
/* Reports come in bursts; the receive buffer must hold them while the data path is busy. */
#define RCVBUF	   (4 << 20)
/* Entries of the error queue that are read at a time. */
#define TROUBLES   64
/* One byte more than the longest datagram, to recognise longer ones. */
#define SLOT	   (SESSION_PROBE_MAX + 1)
/* Datagrams that can wait for room in the send buffer; and for the end of a batch, which may report
 * on every connection. */
#define HELD	   128u
#define HELD_BATCH 4096u

/* The kernel's count of dropped datagrams, and the time of arrival. */
#define CONTROL (CMSG_SPACE(sizeof(uint32_t)) + CMSG_SPACE(sizeof(struct timespec)))

union sockaddr_any {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

struct endpoint {
	bool used;
	struct ip_addr addr;
	uint16_t port;
	union sockaddr_any sa;
	socklen_t sa_len;
	uint8_t tos;
	int trouble; /* errno of a datagram that was not sent or did not arrive; 0: none */
};

/* @to: the peer's address when it was queued: the peer may be removed before it leaves. */
struct held {
	union sockaddr_any to;
	socklen_t to_len;
	uint8_t tos;
	size_t len;
	uint8_t data[SESSION_DATAGRAM_MAX];
};

struct peer_socket {
	int fd;
	int family;
	bool v4_too; /* IPv4 addresses can be reached */
	uint16_t port;
	struct endpoint peer[PEER_MAX];
	struct peer_socket_stats stats;
	uint32_t drops; /* the kernel's counter of dropped datagrams, latest value */
	struct mmsghdr msg[BATCH];
	struct iovec iov[BATCH];
	union sockaddr_any from[BATCH];
	_Alignas(struct cmsghdr) char control[BATCH][CONTROL];
	uint8_t data[BATCH][SLOT];
	struct held *held; /* a ring of @max_held: @nheld from @first_held on */
	unsigned int first_held, nheld, max_held;
	/* ns: when the latest batch was read, by both clocks; when the socket was last empty */
	int64_t read_wall, read_at, empty_at;
	bool wait;	 /* nothing leaves before peer_socket_flush() */
	int discover[2]; /* what the kernel does about the path's MTU: of IPv4, of IPv6 */
};

static const uint8_t v4_head[12] = {[10] = 0xff, [11] = 0xff};

static bool is_v4(const struct ip_addr *a)
{
	return memcmp(a->b, v4_head, sizeof(v4_head)) == 0;
}

static bool is_any(const struct ip_addr *a)
{
	static const struct ip_addr any;

	return memcmp(a, &any, sizeof(any)) == 0;
}

static void addr_text(const struct ip_addr *a, char text[INET6_ADDRSTRLEN])
{
	if (is_v4(a))
		inet_ntop(AF_INET, a->b + 12, text, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, a->b, text, INET6_ADDRSTRLEN);
}

static socklen_t to_sockaddr(int family, const struct ip_addr *a, uint16_t port,
			     union sockaddr_any *sa)
{
	memset(sa, 0, sizeof(*sa));
	if (family == AF_INET) {
		sa->in.sin_family = AF_INET;
		sa->in.sin_port = htons(port);
		/* any address: stays all zero */
		memcpy(&sa->in.sin_addr, a->b + 12, 4);
		return sizeof(sa->in);
	}
	sa->in6.sin6_family = AF_INET6;
	sa->in6.sin6_port = htons(port);
	memcpy(&sa->in6.sin6_addr, a->b, 16);
	return sizeof(sa->in6);
}

static void from_sockaddr(const union sockaddr_any *sa, struct ip_addr *a, uint16_t *port)
{
	if (sa->sa.sa_family == AF_INET) {
		memcpy(a->b, v4_head, sizeof(v4_head));
		memcpy(a->b + 12, &sa->in.sin_addr, 4);
		*port = ntohs(sa->in.sin_port);
	} else {
		memcpy(a->b, &sa->in6.sin6_addr, 16);
		*port = ntohs(sa->in6.sin6_port);
	}
}

static void prepare(struct peer_socket *ps)
{
	int want = RCVBUF, on = 1;
	socklen_t len = sizeof(want);

	/* Root may exceed the system's limit; others get as much as it allows. */
	if (setsockopt(ps->fd, SOL_SOCKET, SO_RCVBUFFORCE, &want, sizeof(want)) < 0)
		setsockopt(ps->fd, SOL_SOCKET, SO_RCVBUF, &want, sizeof(want));
	if (getsockopt(ps->fd, SOL_SOCKET, SO_RCVBUF, &want, &len) == 0)
		ps->stats.rcvbuf = (uint32_t)want;
	setsockopt(ps->fd, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof(on));
	setsockopt(ps->fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on));
	/* on an IPv6 socket, IP_RECVERR is for IPv4 peers */
	setsockopt(ps->fd, IPPROTO_IP, IP_RECVERR, &on, sizeof(on));
	if (ps->family == AF_INET6)
		setsockopt(ps->fd, IPPROTO_IPV6, IPV6_RECVERR, &on, sizeof(on));

	len = sizeof(ps->discover[0]);
	getsockopt(ps->fd, IPPROTO_IP, IP_MTU_DISCOVER, &ps->discover[0], &len);
	if (ps->family == AF_INET6)
		getsockopt(ps->fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &ps->discover[1], &len);

	for (unsigned int i = 0; i < BATCH; i++) {
		ps->iov[i] = (struct iovec){.iov_base = ps->data[i], .iov_len = SLOT};
		ps->msg[i].msg_hdr.msg_iov = &ps->iov[i];
		ps->msg[i].msg_hdr.msg_iovlen = 1;
		ps->msg[i].msg_hdr.msg_name = &ps->from[i];
	}
}

static int bind_socket(struct peer_socket *ps, const struct ip_addr *addr, uint16_t port)
{
	union sockaddr_any sa;
	socklen_t len;
	int off = 0, e;

	ps->family = is_v4(addr) ? AF_INET : AF_INET6;
	ps->fd = socket(ps->family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (ps->fd < 0 && errno == EAFNOSUPPORT && is_any(addr)) {
		ps->family = AF_INET;
		ps->fd = socket(ps->family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	}
	if (ps->fd < 0)
		return -errno;
	if (ps->family == AF_INET6)
		setsockopt(ps->fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	ps->v4_too = ps->family == AF_INET || is_any(addr);
	len = to_sockaddr(ps->family, addr, port, &sa);
	if (bind(ps->fd, &sa.sa, len) == 0) {
		struct ip_addr bound;

		len = sizeof(sa);
		if (getsockname(ps->fd, &sa.sa, &len) == 0)
			from_sockaddr(&sa, &bound, &ps->port);
		return 0;
	}
	e = errno;
	close(ps->fd);
	return -e;
}

static const char *mend(int e)
{
	switch (e) {
	case EADDRINUSE:
		return "; is another longhauld running, or does another program use the port?";
	case EADDRNOTAVAIL:
		return "; no interface has this address: add it, or change listen";
	case EACCES:
		return "; ports below 1024 need CAP_NET_BIND_SERVICE";
	default:
		return "";
	}
}

/* To be called only while no datagram waits. */
static int hold_at_most(struct peer_socket *ps, unsigned int n)
{
	struct held *held = realloc(ps->held, n * sizeof(*held));

	if (!held)
		return -ENOMEM;
	ps->held = held;
	ps->max_held = n;
	return 0;
}

struct peer_socket *peer_socket_open(const struct ip_addr *addr, uint16_t port, char *err,
				     size_t err_len)
{
	struct peer_socket *ps = calloc(1, sizeof(*ps));
	char text[INET6_ADDRSTRLEN];
	int ret;

	if (!ps || hold_at_most(ps, HELD)) {
		free(ps);
		snprintf(err, err_len, "no memory for the peer socket");
		return NULL;
	}
	ret = bind_socket(ps, addr, port);
	if (ret < 0) {
		addr_text(addr, text);
		snprintf(err, err_len, "cannot listen for peers on %s, UDP port %u: %s%s", text,
			 port, strerror(-ret), mend(-ret));
		free(ps->held);
		free(ps);
		return NULL;
	}
	prepare(ps);
	return ps;
}

void peer_socket_close(struct peer_socket *ps)
{
	if (!ps)
		return;
	close(ps->fd);
	free(ps->held);
	free(ps);
}

int peer_socket_fd(const struct peer_socket *ps)
{
	return ps->fd;
}

uint16_t peer_socket_port(const struct peer_socket *ps)
{
	return ps->port;
}

/* The peer at this address, -1: none. At most 16 entries, all in the cache: a scan will do. */
static int find(const struct peer_socket *ps, const struct ip_addr *addr, uint16_t port)
{
	for (unsigned int i = 0; i < PEER_MAX; i++) {
		const struct endpoint *e = &ps->peer[i];

		if (e->used && e->port == port && memcmp(&e->addr, addr, sizeof(*addr)) == 0)
			return (int)i;
	}
	return -1;
}

bool peer_socket_reaches(const struct peer_socket *ps, const struct ip_addr *addr)
{
	return is_v4(addr) ? ps->v4_too : ps->family != AF_INET;
}

int peer_socket_map(struct peer_socket *ps, unsigned int peer, const struct ip_addr *addr,
		    uint16_t port)
{
	struct endpoint *e;
	int other;

	if (peer >= PEER_MAX || port == 0 || is_any(addr))
		return -EINVAL;
	if (!peer_socket_reaches(ps, addr))
		return -EINVAL;
	other = find(ps, addr, port);
	if (other >= 0 && (unsigned int)other != peer)
		return -EEXIST;
	e = &ps->peer[peer];
	e->used = true;
	e->addr = *addr;
	e->port = port;
	e->sa_len = to_sockaddr(ps->family, addr, port, &e->sa);
	return 0;
}

void peer_socket_class(struct peer_socket *ps, unsigned int peer, uint8_t tos)
{
	if (peer < PEER_MAX)
		ps->peer[peer].tos = tos;
}

void peer_socket_unmap(struct peer_socket *ps, unsigned int peer)
{
	if (peer < PEER_MAX)
		memset(&ps->peer[peer], 0, sizeof(ps->peer[peer]));
}

static void note_trouble(struct peer_socket *ps, const union sockaddr_any *to, int err)
{
	struct ip_addr addr;
	uint16_t port;
	int peer;

	from_sockaddr(to, &addr, &port);
	peer = find(ps, &addr, port);
	if (peer >= 0)
		ps->peer[peer].trouble = err;
}

void peer_socket_troubles(struct peer_socket *ps)
{
	_Alignas(struct cmsghdr) char control[256];
	union sockaddr_any to;
	char data[64];

	for (int i = 0; i < TROUBLES; i++) {
		struct iovec iov = {.iov_base = data, .iov_len = sizeof(data)};
		struct msghdr h = {.msg_name = &to,
				   .msg_namelen = sizeof(to),
				   .msg_iov = &iov,
				   .msg_iovlen = 1,
				   .msg_control = control,
				   .msg_controllen = sizeof(control)};

		if (recvmsg(ps->fd, &h, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
			return;
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&h); c; c = CMSG_NXTHDR(&h, c)) {
			struct sock_extended_err e;

			if (!(c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) &&
			    !(c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR))
				continue;
			memcpy(&e, CMSG_DATA(c), sizeof(e));
			if (h.msg_namelen)
				note_trouble(ps, &to, (int)e.ee_errno);
		}
	}
}

int peer_socket_trouble(struct peer_socket *ps, unsigned int peer)
{
	int err = peer < PEER_MAX ? ps->peer[peer].trouble : 0;

	if (err)
		ps->peer[peer].trouble = 0;
	return err;
}

static int64_t ts_ns(const struct timespec *t)
{
	return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

static int64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return ts_ns(&t);
}

/* Reads the control messages of a datagram. Returns how long it waited in the socket, ns. The
 * kernel's time stamp is of the wall clock, which may have been set since; but no datagram waited
 * longer than since the socket was last empty. */
static uint64_t read_control(struct peer_socket *ps, struct msghdr *h)
{
	int64_t waited = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		struct timespec came;
		uint32_t drops;

		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SO_RXQ_OVFL) {
			memcpy(&drops, CMSG_DATA(c), sizeof(drops));
			ps->stats.overrun += (uint32_t)(drops - ps->drops);
			ps->drops = drops;
		} else if (c->cmsg_type == SO_TIMESTAMPNS) {
			memcpy(&came, CMSG_DATA(c), sizeof(came));
			waited = ps->read_wall - ts_ns(&came);
		}
	}
	if (waited > ps->read_at - ps->empty_at)
		waited = ps->read_at - ps->empty_at;
	return waited > 0 ? (uint64_t)waited : 0;
}

static void deliver(struct peer_socket *ps, unsigned int i, peer_socket_fn fn, void *ctx)
{
	uint64_t waited = read_control(ps, &ps->msg[i].msg_hdr);
	struct peer_socket_stats *st = &ps->stats;
	struct ip_addr addr;
	uint16_t port;
	int peer;

	from_sockaddr(&ps->from[i], &addr, &port);
	peer = find(ps, &addr, port);
	if (peer < 0) {
		st->unknown_source++;
		st->unknown_addr = addr;
		st->unknown_port = port;
	} else if (ps->msg[i].msg_len > SESSION_PROBE_MAX) {
		st->oversize++;
	} else {
		st->rx++;
		ps->peer[peer].trouble = 0;
		fn(ctx, (unsigned int)peer, ps->data[i], ps->msg[i].msg_len, waited);
	}
}

/* Whether @err belongs not to this call but to an earlier datagram, to any peer. The kernel reports
 * that once, so the same call may be repeated. */
static bool came_back(struct peer_socket *ps, int err)
{
	if (err != ECONNREFUSED && err != EHOSTUNREACH && err != ENETUNREACH && err != EHOSTDOWN &&
	    err != ENOPROTOOPT && err != EOPNOTSUPP && err != EMSGSIZE && err != EPROTO &&
	    err != EACCES && err != ENONET)
		return false;
	peer_socket_troubles(ps);
	return true;
}

int peer_socket_rx(struct peer_socket *ps, unsigned int budget, peer_socket_fn fn, void *ctx)
{
	unsigned int total = 0;

	while (!budget || total < budget) {
		int64_t before = clock_ns(CLOCK_MONOTONIC);
		unsigned int want = budget && budget - total < BATCH ? budget - total : BATCH;
		int n;

		/* The kernel writes lengths back into these. */
		for (unsigned int i = 0; i < want; i++) {
			ps->msg[i].msg_hdr.msg_namelen = sizeof(ps->from[i]);
			ps->msg[i].msg_hdr.msg_control = ps->control[i];
			ps->msg[i].msg_hdr.msg_controllen = sizeof(ps->control[i]);
		}
		n = recvmmsg(ps->fd, ps->msg, want, MSG_DONTWAIT, NULL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			ps->empty_at = before;
			break;
		}
		if (n < 0 && came_back(ps, errno))
			break; /* the kernel wakes us again for waiting datagrams */
		if (n < 0) {
			int e = errno;

			ps->stats.rx_errors++;
			return total ? (int)total : -e;
		}
		ps->read_wall = clock_ns(CLOCK_REALTIME);
		ps->read_at = clock_ns(CLOCK_MONOTONIC);
		for (int i = 0; i < n; i++)
			deliver(ps, (unsigned int)i, fn, ctx);
		total += (unsigned int)n;
		if ((unsigned int)n < want) {
			ps->empty_at = before;
			break;
		}
	}
	return (int)total;
}

/* Control messages of a datagram. */
struct ask {
	_Alignas(struct cmsghdr) char buf[CMSG_SPACE(sizeof(struct in6_pktinfo)) +
					  CMSG_SPACE(sizeof(int))];
	size_t len;
};

static void ask_put(struct ask *a, int level, int type, const void *data, size_t len)
{
	struct cmsghdr *c = (struct cmsghdr *)(void *)(a->buf + a->len);

	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), data, len);
	a->len += CMSG_SPACE(len);
}

/* Send with DSCP and ECN @tos, by the interface @ifindex; 0: as the socket and the route say. */
static ssize_t send_as(struct peer_socket *ps, const union sockaddr_any *to, socklen_t to_len,
		       uint8_t tos, unsigned int ifindex, const uint8_t *data, size_t len)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = len};
	struct in_pktinfo in = {.ipi_ifindex = (int)ifindex};
	struct in6_pktinfo in6 = {.ipi6_ifindex = ifindex};
	struct ask ask = {.len = 0};
	struct msghdr h = {.msg_name = (void *)(uintptr_t)to,
			   .msg_namelen = to_len,
			   .msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = ask.buf};
	struct ip_addr addr;
	int class = tos;
	uint16_t port;

	from_sockaddr(to, &addr, &port);
	if (is_v4(&addr)) {
		if (tos)
			ask_put(&ask, IPPROTO_IP, IP_TOS, &class, sizeof(class));
		if (ifindex)
			ask_put(&ask, IPPROTO_IP, IP_PKTINFO, &in, sizeof(in));
	} else {
		if (tos)
			ask_put(&ask, IPPROTO_IPV6, IPV6_TCLASS, &class, sizeof(class));
		if (ifindex)
			ask_put(&ask, IPPROTO_IPV6, IPV6_PKTINFO, &in6, sizeof(in6));
	}
	h.msg_controllen = ask.len;
	return sendmsg(ps->fd, &h, MSG_DONTWAIT);
}

/* False when the send buffer has no room; true when it was sent, or cannot ever be sent. */
static bool try_send(struct peer_socket *ps, const union sockaddr_any *to, socklen_t to_len,
		     uint8_t tos, const uint8_t *data, size_t len)
{
	int err, tries = 2;
	ssize_t n;

	do {
		n = tos ? send_as(ps, to, to_len, tos, 0, data, len)
			: sendto(ps->fd, data, len, MSG_DONTWAIT, &to->sa, to_len);
		err = errno;
	} while (n < 0 && (err == EINTR || (tries-- && came_back(ps, err))));
	if (n >= 0) {
		ps->stats.tx++;
	} else if (err == EAGAIN || err == EWOULDBLOCK) {
		return false;
	} else {
		/* ENOBUFS: the queue of the interface was full, or it is down */
		ps->stats.tx_errors++;
		ps->stats.tx_errno = err;
		note_trouble(ps, to, err);
	}
	return true;
}

bool peer_socket_flush(struct peer_socket *ps)
{
	while (ps->nheld) {
		const struct held *h = &ps->held[ps->first_held];

		if (!try_send(ps, &h->to, h->to_len, h->tos, h->data, h->len))
			return true;
		ps->first_held = (ps->first_held + 1) % ps->max_held;
		ps->nheld--;
	}
	ps->first_held = 0; /* reuse the entries that are in the cache */
	return false;
}

int peer_socket_wait(struct peer_socket *ps)
{
	int rc = hold_at_most(ps, HELD_BATCH);

	ps->wait = !rc;
	return rc;
}

void peer_socket_send(void *ctx, unsigned int peer, const uint8_t *data, size_t len)
{
	struct peer_socket *ps = ctx;
	const struct endpoint *e;
	struct held *h;

	if (peer >= PEER_MAX || !ps->peer[peer].used)
		return;
	e = &ps->peer[peer];
	if (!ps->wait && !peer_socket_flush(ps) &&
	    try_send(ps, &e->sa, e->sa_len, e->tos, data, len))
		return;
	/* in a batch it is lost rather than sent early: every message is repeated */
	if (ps->nheld == ps->max_held || len > sizeof(h->data)) {
		ps->stats.tx_full++;
		return;
	}
	h = &ps->held[(ps->first_held + ps->nheld++) % ps->max_held];
	h->to = e->sa;
	h->to_len = e->sa_len;
	h->tos = e->tos;
	h->len = len;
	memcpy(h->data, data, len);
}

unsigned int peer_socket_overhead(const struct peer_socket *ps, unsigned int peer)
{
	return peer < PEER_MAX && ps->peer[peer].used && is_v4(&ps->peer[peer].addr) ? 20 + 8
										     : 40 + 8;
}

unsigned int peer_socket_mtu(const struct peer_socket *ps, const char *name)
{
	struct ifreq ifr = {0};

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	return ioctl(ps->fd, SIOCGIFMTU, &ifr) ? 0 : (unsigned int)ifr.ifr_mtu;
}

/* Have datagrams leave in one piece, @on, or as at first. */
static void unfragmented(const struct peer_socket *ps, bool v4, bool on)
{
	/* both constants have one value: NOLINTNEXTLINE(misc-redundant-expression) */
	int whole = v4 ? (int)IP_PMTUDISC_PROBE : (int)IPV6_PMTUDISC_PROBE;
	int v = on ? whole : ps->discover[!v4];

	setsockopt(ps->fd, v4 ? (int)IPPROTO_IP : (int)IPPROTO_IPV6,
		   v4 ? IP_MTU_DISCOVER : IPV6_MTU_DISCOVER, &v, sizeof(v));
	v = on;
	if (!v4)
		setsockopt(ps->fd, IPPROTO_IPV6, IPV6_DONTFRAG, &v, sizeof(v));
}

bool peer_socket_probe(struct peer_socket *ps, unsigned int peer, unsigned int ifindex,
		       const uint8_t *data, size_t len)
{
	const struct endpoint *e = &ps->peer[peer < PEER_MAX ? peer : 0];
	int tries = 2;
	ssize_t n;

	if (peer >= PEER_MAX || !e->used)
		return false;
	unfragmented(ps, is_v4(&e->addr), true);
	do
		n = send_as(ps, &e->sa, e->sa_len, e->tos, ifindex, data, len);
	while (n < 0 && tries-- && came_back(ps, errno));
	unfragmented(ps, is_v4(&e->addr), false);
	ps->stats.tx += n >= 0;
	return n >= 0;
}

void peer_socket_stats(const struct peer_socket *ps, struct peer_socket_stats *out)
{
	*out = ps->stats;
}
