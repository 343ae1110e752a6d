// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The data path of the AF_XDP port: four rings a socket, no allocation, no lock (one thread owns a
 * port).
 *
 * Receive: descriptors are read in batches, each frame is handed over where it lies, and the
 * batch's chunks go back to the kernel after that. Frames of several descriptors are joined in a
 * buffer of the socket; a batch may end within one.
 *
 * Transmit: frames are copied into chunks and written to the ring at once, but shown to the kernel
 * by afxdp_flush() only, one store and, in the best case, one system call for the lot.
 *
 * Transmitted chunks come back through the completion ring. A chunk given back twice would be
 * filled with a second frame while the first is still on its way, and nothing downstream would
 * know; therefore the owner of every transmit chunk is on record and a completion that contradicts
 * it is not believed.
 */
#include <errno.h>
#include <linux/if_ether.h>
#include <string.h>
#include <sys/socket.h>

#include "port/afxdp_priv.h"

#define TX_CALLS_IDLE                                                                              \
	4 /* sendto() calls without visible progress before kick() gives up for now  \
			 */

/* One descriptor of a frame in several. Returns true when the frame is complete in q->join. */
static bool join(struct afxdp *x, struct rxq *q, const uint8_t *data, uint32_t len, bool last)
{
	if (!q->joining) {
		q->joining = true;
		q->skip = false;
		q->joined = 0;
	}
	if (len > sizeof(q->join) - q->joined)
		q->skip = true;
	if (!q->skip) {
		memcpy(q->join + q->joined, data, len);
		q->joined += len;
	}
	if (!last)
		return false;
	q->joining = false;
	if (q->skip)
		x->stats.rx_too_long[q->side]++;
	return !q->skip;
}

static unsigned int rx_queue(struct afxdp *x, struct rxq *q, unsigned int budget, port_rx_fn fn,
			     void *ctx)
{
	uint32_t n, idx, fill = 0, i;
	unsigned int frames = 0;

	n = xsk_ring_cons__peek(&q->rx, budget, &idx);
	if (!n)
		return 0;
	for (i = 0; i < n; i++) {
		const struct xdp_desc *d = xsk_ring_cons__rx_desc(&q->rx, idx + i);
		const uint8_t *data = x->area + d->addr;
		bool last = !(d->options & XDP_PKT_CONTD);
		uint32_t len = d->len;

		if (i + 1 < n)
			__builtin_prefetch(x->area +
					   xsk_ring_cons__rx_desc(&q->rx, idx + i + 1)->addr);
		if (!last || q->joining) {
			if (!join(x, q, data, len, last))
				continue;
			data = q->join;
			len = q->joined;
		}
		frames++;
		x->stats.rx_bytes[q->side] += len;
		fn(ctx, q->side, data, len);
	}
	x->stats.rx[q->side] += frames;

	/* Only now may the kernel write there again. The fill ring has room for all of the socket's
	 * chunks. */
	xsk_ring_prod__reserve(&q->fill, n, &fill);
	for (i = 0; i < n; i++)
		*xsk_ring_prod__fill_addr(&q->fill, fill + i) =
			xsk_ring_cons__rx_desc(&q->rx, idx + i)->addr &
			~(uint64_t)(AFXDP_CHUNK - 1);
	xsk_ring_prod__submit(&q->fill, n);
	xsk_ring_cons__release(&q->rx, n);
	return frames;
}

unsigned int afxdp_rx(struct afxdp *x, unsigned int budget, port_rx_fn fn, void *ctx)
{
	unsigned int i, n = 0;
	int side;

	for (side = 0; side < STEER_SIDES; side++)
		for (i = 0; i < x->port[side].nq; i++)
			n += rx_queue(x, &x->port[side].q[i], budget, fn, ctx);
	return n;
}

/* Take back the chunks that the kernel is done with. */
static void reap(struct port *p)
{
	struct xsk_ring_cons *comp = &p->q[0].comp;
	uint32_t idx, i, n;

	n = xsk_ring_cons__peek(comp, p->nchunks, &idx);
	for (i = 0; i < n; i++) {
		uint64_t c = (*xsk_ring_cons__comp_addr(comp, idx + i) - p->base) / AFXDP_CHUNK;

		if (c >= p->nchunks || !p->busy[c])
			continue;
		p->busy[c] = 0;
		p->free[p->nfree++] = (uint32_t)c;
	}
	if (n)
		xsk_ring_cons__release(comp, n);
}

int afxdp_tx(struct afxdp *x, enum steer_side side, const uint8_t *data, uint32_t len)
{
	struct port *p = &x->port[side];
	uint32_t need = (len + AFXDP_CHUNK - 1) / AFXDP_CHUNK, idx, off = 0;

	if (len < ETH_HLEN)
		return -EINVAL;
	if (len > x->max_tx)
		return -EMSGSIZE;
	if (p->nfree < need)
		reap(p);
	if (p->nfree < need || xsk_ring_prod__reserve(&p->tx, need, &idx) != need) {
		x->stats.tx_full[side]++;
		return -EAGAIN;
	}
	for (; off < len; off += AFXDP_CHUNK, idx++) {
		struct xdp_desc *d = xsk_ring_prod__tx_desc(&p->tx, idx);
		uint32_t c = p->free[--p->nfree], n = len - off;

		if (n > AFXDP_CHUNK)
			n = AFXDP_CHUNK;
		p->busy[c] = 1;
		d->addr = p->base + (uint64_t)c * AFXDP_CHUNK;
		d->len = n;
		d->options = off + n < len ? XDP_PKT_CONTD : 0;
		memcpy(x->area + d->addr, data + off, n);
	}
	p->queued += need;
	x->stats.tx[side]++;
	x->stats.tx_bytes[side] += len;
	return 0;
}

static uint32_t tx_seen(const struct port *p)
{
	return __atomic_load_n(p->tx.consumer, __ATOMIC_ACQUIRE) +
	       __atomic_load_n(p->q[0].comp.producer, __ATOMIC_ACQUIRE);
}

/*
 * Have the kernel send what is in the ring. One call sends a bounded number of frames and says
 * EAGAIN when some are left, but also when it cannot go on (memory, no room for completions, a busy
 * device). Which of the two shows in the ring indices, though an older kernel updates them only now
 * and then: hence a few calls on trust. EBUSY means that the device dropped one frame.
 */
static void kick(struct afxdp *x, enum steer_side side)
{
	struct port *p = &x->port[side];
	int fd = xsk_socket__fd(p->q[0].xsk);
	uint32_t seen = tx_seen(p), left = p->nchunks + TX_CALLS_IDLE;
	int idle = 0;

	while (left-- && idle < TX_CALLS_IDLE) {
		if (sendto(fd, NULL, 0, MSG_DONTWAIT, NULL, 0) >= 0) {
			p->waiting = false;
			return;
		}
		if (errno == EBUSY) {
			x->stats.tx_dropped[side]++;
			continue;
		}
		if (errno != EAGAIN && errno != ENOBUFS && errno != EINTR)
			return; /* interface down or gone */
		idle++;
		if (tx_seen(p) != seen) {
			seen = tx_seen(p);
			idle = 0;
		}
	}
}

bool afxdp_flush(struct afxdp *x)
{
	bool waiting = false;
	int side;

	for (side = 0; side < STEER_SIDES; side++) {
		struct port *p = &x->port[side];

		if (!p->nq || !p->q[0].xsk)
			continue; /* afxdp_close() after a failed afxdp_open() */
		if (p->queued) {
			xsk_ring_prod__submit(&p->tx, p->queued);
			p->queued = 0;
			p->waiting = true;
		}
		if (p->waiting && xsk_ring_prod__needs_wakeup(&p->tx))
			kick(x, side);
		if (p->nfree < p->nchunks)
			reap(p);
		waiting |= p->waiting;
	}
	return waiting;
}
