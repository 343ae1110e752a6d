// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The sockets and the packet memory behind them.
 *
 * Theory of operation
 *
 * The packet memory is an array of 4 KiB chunks, a piece of it the UMEM of each port: the kernel
 * knows one mode only, with copies or without, for all sockets of a UMEM. No two sockets share a
 * chunk. It is cut up once, in afxdp_open(), and a chunk never changes its owner. Of a port's
 * piece are
 *
 *	receive		an equal share for each socket, one socket a receive queue
 *	transmit	an equal share for each part (struct part), by the socket of the queue that
 *			has the part's number; the sockets of queues above have no transmit ring
 *
 * and of all ports' memory receive and transmit are a half each.
 *
 * So neither direction nor port nor part can starve another, whatever is stuck where. A receive
 * share is as large as its receive ring and half as large as its fill ring (afxdp_rx.c says why):
 * there is always room for a chunk, wherever on its way it is. A transmit share is as large as its
 * transmit ring and its completion ring; chunks that are free lie on a stack, so that the one used
 * last, still in the cache, is used next.
 *
 * In copy mode the kernel transmits within our sendto(), a bounded number of frames for each call,
 * and a frame that the device refuses is gone; afxdp_tx.c deals with both. Without copies the
 * driver reads and writes chunks at any time. It is asked for that with frames of several chunks
 * first; without those only where the MTU allows no frame above one.
 */
#include <errno.h>
#include <linux/if_ether.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "port/afxdp_priv.h"

/* From newer kernels' headers than Debian 12 has. */
#ifndef XDP_MAX_TX_SKB_BUDGET
#define XDP_MAX_TX_SKB_BUDGET 9
#endif

#define RING_MIN       64u
#define RING_MAX       32768u
#define BUSY_MS	       1000 /* how long to wait for a queue that another socket holds */
#define BUSY_BUDGET    64   /* frames that the kernel takes from the device in one call */
#define TAGS	       8    /* bytes of two VLAN tags, which no MTU counts */
/* Layouts of this and former versions differ (area_map()), as do those for more parts than one. No
 * number of chunks is as large as the latter. */
#define CUT_BY_PORT    (1u << 16)
#define CUT_FOR(parts) (((parts)-1) << 20)

static uint32_t pow2_floor(uint32_t v)
{
	return v ? 1u << (31 - __builtin_clz(v)) : 0;
}

/* Room for all of the share's chunks on their way. 0, or -1 and errno. */
static int tx_limits(int fd, const struct txq *t)
{
	int budget = (int)t->nchunks;
	/* Every frame in flight is charged to the socket with its bookkeeping; the default limit is
	 * about 40 long frames. */
	int sndbuf = (int)(t->nchunks * 2 * AFXDP_CHUNK);

	/* How many frames one call sends. Older kernels do not know it, and need more calls. */
	(void)setsockopt(fd, SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &budget, sizeof(budget));
	return setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &sndbuf, sizeof(sndbuf));
}

/* Calls for frames look into the device's queue, which then raises fewer interrupts. 0, or -1 and
 * errno. */
static int poll_busily(int fd, uint32_t us)
{
	int time = (int)us, budget = BUSY_BUDGET, yes = 1;

	if (!us)
		return 0;
	if (setsockopt(fd, SOL_SOCKET, SO_BUSY_POLL, &time, sizeof(time)) < 0)
		return -1;
	/* since Linux 5.11; it goes without */
	(void)setsockopt(fd, SOL_SOCKET, SO_PREFER_BUSY_POLL, &yes, sizeof(yes));
	(void)setsockopt(fd, SOL_SOCKET, SO_BUSY_POLL_BUDGET, &budget, sizeof(budget));
	return 0;
}

/* Returns the socket's descriptor to poll, or a negative errno. */
static int open_queue(const struct afxdp *x, struct port *p, unsigned int queue, uint16_t flags,
		      char *err, size_t errlen)
{
	struct rxq *q = &p->q[queue];
	struct txq *t = queue < p->ntx ? &p->tx[queue] : NULL;
	const struct xsk_socket_config cfg = {
		.rx_size = q->nchunks,
		.tx_size = p->tx[0].nchunks,
		.libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
		.bind_flags = flags,
	};
	int tries = BUSY_MS, r;

	/* The kernel lets go of a closed socket's queue some time after the close: a daemon that
	 * starts anew at once has to wait for its forerunner's. */
	do {
		r = xsk_socket__create_shared(&q->xsk, p->nif.name, queue, p->umem, &q->rx,
					      t ? &t->ring : NULL, &q->fill, &q->comp, &cfg);
	} while (r == -EBUSY && tries-- && usleep(1000) == 0);
	if (r == -EBUSY)
		return port_fail(err, errlen, r,
				 "another program has an AF_XDP socket on %s queue %u: stop it "
				 "(`ss --xdp -p` names it)",
				 p->nif.name, queue);
	if (r < 0)
		return port_fail(err, errlen, r, "no AF_XDP socket on %s queue %u: %s", p->nif.name,
				 queue, strerror(-r));
	r = xsk_socket__fd(q->xsk);
	if (t && tx_limits(r, t) < 0)
		return port_fail(
			err, errlen, -errno,
			"no send buffer for the AF_XDP socket on %s (%s): " AFXDP_NEED_CAPS,
			p->nif.name, strerror(errno));
	if (poll_busily(r, x->busy_poll_us) < 0)
		return port_fail(err, errlen, -errno,
				 "the kernel does not poll %s busily (%s): leave busy-poll out",
				 p->nif.name, strerror(errno));
	memset(q->owner, CHUNK_OURS, q->nchunks * sizeof(*q->owner));
	for (q->nback = 0; q->nback < q->nchunks; q->nback++)
		q->back[q->nback] = q->nback;
	if (rxq_give_back(q))
		return port_fail(err, errlen, -ENOSPC,
				 "the fill ring of %s queue %u does not take %u chunks",
				 p->nif.name, queue, q->nchunks);
	return r;
}

static int open_umem(const struct afxdp *x, struct port *p, char *err, size_t errlen)
{
	struct rxq *first = &p->q[0];
	const struct xsk_umem_config cfg = {
		.fill_size = 2 * first->nchunks,
		.comp_size = p->tx[0].nchunks,
		.frame_size = AFXDP_CHUNK,
	};
	int r = xsk_umem__create(&p->umem, p->area, p->area_len, &first->fill, &first->comp, &cfg);

	if (r == -EPERM)
		return port_fail(err, errlen, r,
				 "no permission to open an AF_XDP socket: " AFXDP_NEED_CAPS);
	if (r == -EAFNOSUPPORT)
		return port_fail(err, errlen, r,
				 "the kernel has no AF_XDP: use one with CONFIG_XDP_SOCKETS");
	if (r == -ENOBUFS || r == -ENOMEM)
		return port_fail(err, errlen, r,
				 "%zu MiB of packet buffers cannot be locked in memory: raise "
				 "LimitMEMLOCK (`ulimit -l unlimited`) or set fewer frames",
				 x->area_len >> 20);
	if (r < 0)
		return port_fail(err, errlen, r, "packet buffers cannot be registered: %s",
				 strerror(-r));
	return 0;
}

static void close_port(struct port *p)
{
	for (unsigned int i = 0; p->q && i < p->nq; i++) {
		xsk_socket__delete(p->q[i].xsk);
		p->q[i].xsk = NULL;
	}
	if (p->umem)
		xsk_umem__delete(p->umem);
	p->umem = NULL;
}

/* The UMEM and the sockets of port number @port, in the mode that @flags say. */
static int try_port(struct afxdp *x, unsigned int port, uint16_t flags, char *err, size_t errlen)
{
	struct port *p = &x->port[port];
	int r = open_umem(x, p, err, errlen);

	for (unsigned int queue = 0; r >= 0 && queue < p->nq; queue++) {
		r = open_queue(x, p, queue, flags, err, errlen);
		if (r < 0)
			break;
		r = steer_prog_socket(&x->prog, port, queue, r);
		if (r < 0)
			port_fail(err, errlen, r, "socket of %s queue %u not accepted: %s",
				  p->nif.name, queue, strerror(-r));
	}
	if (r < 0)
		close_port(p);
	return r;
}

static int open_port(struct afxdp *x, unsigned int port, bool zero_copy, char *err, size_t errlen)
{
	struct port *p = &x->port[port];
	bool in_one = p->nif.mtu + ETH_HLEN + TAGS <= AFXDP_ONE_BUFFER;

	p->refused = zero_copy ? EOPNOTSUPP : 0; /* if nothing can be tried */
	for (int sg = x->multibuffer; zero_copy && sg >= !in_one; sg--) {
		int r = try_port(
			x, port,
			(uint16_t)(XDP_ZEROCOPY | XDP_USE_NEED_WAKEUP | (sg ? XDP_USE_SG : 0)), err,
			errlen);

		p->zero_copy = r >= 0;
		p->max_tx = sg ? FRAME_MAX : AFXDP_CHUNK;
		p->refused = r < 0 ? -r : 0;
		if (r >= 0 || r == -EBUSY)
			return r;
	}
	p->max_tx = x->multibuffer ? FRAME_MAX : AFXDP_CHUNK;
	return try_port(
		x, port,
		(uint16_t)(XDP_COPY | XDP_USE_NEED_WAKEUP | (x->multibuffer ? XDP_USE_SG : 0)), err,
		errlen);
}

/* Cut the piece of the packet memory at offset @at. Returns where it ends. */
static size_t cut_port(struct afxdp *x, struct port *p, uint32_t ring_rx, size_t at)
{
	p->area = x->area + at;
	for (unsigned int queue = 0; queue < p->nq; queue++) {
		p->q[queue].nchunks = ring_rx;
		p->q[queue].first = queue * ring_rx;
	}
	p->area_len = (size_t)p->nq * ring_rx * AFXDP_CHUNK;
	for (unsigned int k = 0; k < p->ntx; k++) {
		p->tx[k].base = p->area_len;
		p->area_len += (size_t)p->tx[k].nchunks * AFXDP_CHUNK;
	}
	return at + p->area_len;
}

/* What threads write to all the time: in no line of the cache that something else is in. */
static void *calloc_lines(size_t n, size_t size)
{
	size_t len = (n * size + PORT_LINE - 1) / PORT_LINE * PORT_LINE;
	void *p = aligned_alloc(PORT_LINE, len);

	return p ? memset(p, 0, len) : NULL;
}

static bool prepare_rx(struct rxq *q, uint32_t ring_rx)
{
	q->owner = calloc_lines(ring_rx, sizeof(*q->owner));
	q->back = calloc_lines(ring_rx, sizeof(*q->back));
	return q->owner && q->back;
}

static bool prepare_tx(struct txq *t, uint32_t ring_tx)
{
	t->nchunks = ring_tx;
	t->free = calloc_lines(ring_tx, sizeof(*t->free));
	t->busy = calloc_lines(ring_tx, sizeof(*t->busy));
	if (!t->free || !t->busy)
		return false;
	for (uint32_t i = 0; i < ring_tx; i++)
		t->free[t->nfree++] = i;
	return true;
}

static int prepare_port(struct afxdp *x, struct port *p, uint32_t ring_rx, uint32_t ring_tx,
			char *err, size_t errlen)
{
	bool ok;

	p->nq = p->nif.queues;
	p->q = calloc_lines(p->nq, sizeof(*p->q));
	p->tx = p->q ? calloc_lines(x->parts, sizeof(*p->tx)) : NULL;
	p->ntx = p->tx ? x->parts : 0;
	ok = p->tx;
	for (unsigned int k = 0; ok && k < p->ntx; k++) {
		p->tx[k].q = &p->q[k];
		ok = prepare_tx(&p->tx[k], ring_tx);
	}
	for (unsigned int i = 0; ok && i < p->nq; i++) {
		p->q[i].part = &x->part[i % x->parts];
		p->q[i].n = &p->tx[i % x->parts].n;
		ok = prepare_rx(&p->q[i], ring_rx);
	}
	if (ok)
		return 0;
	port_fail(err, errlen, -ENOMEM, "out of memory");
	return -ENOMEM;
}

/* How many parts there can be: each has queues of every port, and the socket of one to transmit by;
 * by which of several members a frame leaves is learned in one place. */
static unsigned int parts_of(const struct afxdp *x, unsigned int wanted)
{
	unsigned int n = wanted && !afxdp_members(x) ? wanted : 1;

	port_each (x, p) {
		const struct netif *nif = &x->port[p].nif;

		n = nif->queues < n ? nif->queues : n;
		n = nif->tx_queues < n ? nif->tx_queues : n;
	}
	return n ? n : 1;
}

/* Cut up the packet memory: chunks in each receive and in each transmit share, @nsock sockets. */
static int cut(struct afxdp *x, const struct afxdp_config *cfg, uint32_t nsock, uint32_t *ring_rx,
	       uint32_t *ring_tx, char *err, size_t errlen)
{
	uint32_t frames = cfg->frames ? cfg->frames : AFXDP_FRAMES;
	uint32_t nports = (uint32_t)__builtin_popcount(x->have);

	if (!nports || !nsock)
		return port_fail(err, errlen, -ENODEV, "no interface has a receive queue");
	if (frames > nports * 2 * RING_MAX)
		frames = nports * 2 * RING_MAX;
	*ring_rx = pow2_floor(frames / 2 / nsock);
	x->parts = parts_of(x, cfg->parts);
	*ring_tx = pow2_floor(frames / 2 / nports / x->parts);
	if (*ring_rx < RING_MIN || *ring_tx < RING_MIN)
		return port_fail(err, errlen, -EINVAL,
				 "%u frames are too few for %u receive queues: set %u or more",
				 frames, nsock, nsock * 2 * RING_MIN);
	x->area_len =
		((size_t)nsock * *ring_rx + (size_t)nports * x->parts * *ring_tx) * AFXDP_CHUNK;
	x->area = area_map(cfg->file, cfg->file_new, x->area_len,
			   nsock | CUT_BY_PORT | CUT_FOR(x->parts));
	x->part = calloc_lines(x->parts, sizeof(*x->part));
	if (!x->area || !x->part)
		return port_fail(err, errlen, -ENOMEM,
				 "no memory for %zu MiB of packet buffers: set fewer frames",
				 x->area_len >> 20);
	return 0;
}

int sockets_open(struct afxdp *x, const struct afxdp_config *cfg, char *err, size_t errlen)
{
	const struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
	uint32_t nsock = 0, ring_rx = 0, ring_tx = 0;
	size_t at = 0;
	int r;

	x->busy_poll_us = cfg->busy_poll_us;
	port_each (x, p)
		nsock += x->port[p].nif.queues;
	r = cut(x, cfg, nsock, &ring_rx, &ring_tx, err, errlen);
	if (r < 0)
		return r;
	/* May be refused: where a UMEM counts against a limit that is too low its creation says
	 * so. */
	(void)setrlimit(RLIMIT_MEMLOCK, &unlimited);
	port_each (x, p) {
		r = prepare_port(x, &x->port[p], ring_rx, ring_tx, err, errlen);
		if (r < 0)
			return r;
		at = cut_port(x, &x->port[p], ring_rx, at);
		r = open_port(x, p, cfg->mode == AFXDP_ZERO_COPY, err, errlen);
		if (r < 0)
			return r;
	}
	return 0;
}

void sockets_close(struct afxdp *x)
{
	port_each (x, p) {
		struct port *port = &x->port[p];

		close_port(port);
		for (unsigned int i = 0; port->q && i < port->nq; i++) {
			free(port->q[i].owner);
			free(port->q[i].back);
		}
		for (unsigned int k = 0; k < port->ntx; k++) {
			free(port->tx[k].free);
			free(port->tx[k].busy);
		}
		free(port->q);
		free(port->tx);
	}
	free(x->part);
	if (x->area)
		munmap(x->area, x->area_len);
}
