// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The sockets and the packet memory behind them.
 *
 * Theory of operation
 *
 * All sockets share one UMEM, an array of 4 KiB chunks, but no two of them share a chunk. It is cut
 * up once, in afxdp_open(), and a chunk never changes its owner:
 *
 *	half		receive: an equal share for each socket, one socket a port and receive queue
 *	half		transmit: an equal share for each port
 *
 * So neither direction nor port can starve another, whatever is stuck where. A receive share is as
 * large as its receive ring and half as large as its fill ring (afxdp_rx.c says why): there is
 * always room for a chunk, wherever on its way it is. A transmit share is as large as its transmit
 * ring and its completion ring; chunks that are free lie on a stack, so that the one used last,
 * still in the cache, is used next.
 *
 * Sockets are in copy mode. There the kernel transmits within our sendto(), a bounded number of
 * frames for each call, and a frame that the device refuses is gone; afxdp_tx.c deals with both.
 */
#include <errno.h>
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

#define RING_MIN 64u
#define RING_MAX 32768u
#define BUSY_MS	 1000 /* how long to wait for a queue that another socket holds */

static uint32_t pow2_floor(uint32_t v)
{
	return v ? 1u << (31 - __builtin_clz(v)) : 0;
}

/* Room for all of the port's chunks on their way. 0, or -1 and errno. */
static int tx_limits(int fd, const struct port *p)
{
	int budget = (int)p->nchunks;
	/* Every frame in flight is charged to the socket with its bookkeeping; the default limit is
	 * about 40 long frames. */
	int sndbuf = (int)(p->nchunks * 2 * AFXDP_CHUNK);

	/* How many frames one call sends. Older kernels do not know it, and need more calls. */
	(void)setsockopt(fd, SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &budget, sizeof(budget));
	return setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &sndbuf, sizeof(sndbuf));
}

/* Returns the socket's descriptor to poll, or a negative errno. */
static int open_queue(struct afxdp *x, struct port *p, unsigned int queue, uint64_t rx_base,
		      char *err, size_t errlen)
{
	struct rxq *q = &p->q[queue];
	const struct xsk_socket_config cfg = {
		.rx_size = q->nchunks,
		.tx_size = p->nchunks,
		.libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
		.bind_flags = (uint16_t)(XDP_COPY | XDP_USE_NEED_WAKEUP |
					 (x->multibuffer ? XDP_USE_SG : 0)),
	};
	int tries = BUSY_MS, r;

	q->first = (uint32_t)(rx_base / AFXDP_CHUNK);
	q->owner = calloc(q->nchunks, sizeof(*q->owner));
	q->back = calloc(q->nchunks, sizeof(*q->back));
	if (!q->owner || !q->back)
		return port_fail(err, errlen, -ENOMEM, "out of memory");
	/* The kernel lets go of a closed socket's queue some time after the close: a daemon that
	 * starts anew at once has to wait for its forerunner's. */
	do {
		r = xsk_socket__create_shared(&q->xsk, p->nif.name, queue, x->umem, &q->rx,
					      queue ? NULL : &p->tx, &q->fill, &q->comp, &cfg);
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
	if (!queue && tx_limits(r, p) < 0)
		return port_fail(
			err, errlen, -errno,
			"no send buffer for the AF_XDP socket on %s (%s): " AFXDP_NEED_CAPS,
			p->nif.name, strerror(errno));
	for (q->nback = 0; q->nback < q->nchunks; q->nback++)
		q->back[q->nback] = q->nback;
	if (rxq_give_back(q))
		return port_fail(err, errlen, -ENOSPC,
				 "the fill ring of %s queue %u does not take %u chunks",
				 p->nif.name, queue, q->nchunks);
	return r;
}

static int open_umem(struct afxdp *x, uint32_t ring_rx, uint32_t ring_tx, char *err, size_t errlen)
{
	const struct xsk_umem_config cfg = {
		.fill_size = 2 * ring_rx,
		.comp_size = ring_tx,
		.frame_size = AFXDP_CHUNK,
	};
	const struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
	struct rxq *first = &x->port[STEER_LAN].q[0];
	int r;

	if (!x->area)
		return port_fail(err, errlen, -ENOMEM,
				 "no memory for %zu MiB of packet buffers: set fewer frames",
				 x->area_len >> 20);
	/* May be refused: where the UMEM counts against a limit that is too low its creation says
	 * so. */
	(void)setrlimit(RLIMIT_MEMLOCK, &unlimited);

	r = xsk_umem__create(&x->umem, x->area, x->area_len, &first->fill, &first->comp, &cfg);
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

static int prepare_port(struct port *p, uint32_t ring_tx, uint64_t base, char *err, size_t errlen)
{
	p->nq = p->nif.queues;
	p->q = calloc(p->nq, sizeof(*p->q));
	p->nchunks = ring_tx;
	p->free = calloc(ring_tx, sizeof(*p->free));
	p->busy = calloc(ring_tx, 1);
	if (!p->q || !p->free || !p->busy)
		return port_fail(err, errlen, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < ring_tx; i++)
		p->free[p->nfree++] = i;
	p->base = base;
	return 0;
}

int sockets_open(struct afxdp *x, const struct afxdp_config *cfg, char *err, size_t errlen)
{
	uint32_t nports = 0, nsock = 0;
	uint32_t frames = cfg->frames ? cfg->frames : AFXDP_FRAMES, ring_rx, ring_tx;
	uint64_t rx_base = 0, tx_base;
	int r;

	port_each (x, p) {
		nports++;
		nsock += x->port[p].nif.queues;
	}
	if (!nports || !nsock)
		return port_fail(err, errlen, -ENODEV, "no interface has a receive queue");
	if (frames > nports * 2 * RING_MAX)
		frames = nports * 2 * RING_MAX;
	ring_rx = pow2_floor(frames / 2 / nsock);
	ring_tx = pow2_floor(frames / 2 / nports);
	if (ring_rx < RING_MIN || ring_tx < RING_MIN)
		return port_fail(err, errlen, -EINVAL,
				 "%u frames are too few for %u receive queues: set %u or more",
				 frames, nsock, nsock * 2 * RING_MIN);
	x->area_len = ((size_t)nsock * ring_rx + (size_t)nports * ring_tx) * AFXDP_CHUNK;

	tx_base = (uint64_t)nsock * ring_rx * AFXDP_CHUNK;
	port_each (x, p) {
		r = prepare_port(&x->port[p], ring_tx, tx_base, err, errlen);
		if (r < 0)
			return r;
		tx_base += (uint64_t)ring_tx * AFXDP_CHUNK;
	}
	x->area = area_map(cfg->file, cfg->file_new, x->area_len, nsock);
	r = open_umem(x, ring_rx, ring_tx, err, errlen);
	if (r < 0)
		return r;
	port_each (x, p) {
		for (unsigned int queue = 0; queue < x->port[p].nq; queue++) {
			x->port[p].q[queue].nchunks = ring_rx;
			r = open_queue(x, &x->port[p], queue, rx_base, err, errlen);
			if (r < 0)
				return r;
			rx_base += (uint64_t)ring_rx * AFXDP_CHUNK;
			r = steer_prog_socket(&x->prog, p, queue, r);
			if (r < 0)
				return port_fail(err, errlen, r,
						 "socket of %s queue %u not accepted: %s",
						 x->port[p].nif.name, queue, strerror(-r));
		}
	}
	return 0;
}

void sockets_close(struct afxdp *x)
{
	port_each (x, p) {
		for (unsigned int i = 0; i < x->port[p].nq; i++) {
			struct rxq *q = x->port[p].q ? &x->port[p].q[i] : NULL;

			if (!q)
				continue;
			xsk_socket__delete(q->xsk);
			free(q->owner);
			free(q->back);
		}
	}
	if (x->umem)
		xsk_umem__delete(x->umem);
	if (x->area)
		munmap(x->area, x->area_len);
	port_each (x, p) {
		free(x->port[p].q);
		free(x->port[p].free);
		free(x->port[p].busy);
	}
}
