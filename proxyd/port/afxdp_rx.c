// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Receive: descriptors are read in batches, each frame is handed over where it lies, and the
 * batch's chunks go back to the kernel after that. Frames of several descriptors are joined in a
 * buffer of the socket; a batch may end within one.
 *
 * No allocation, no lock: one thread owns a port.
 */
#include <string.h>

#include "port/afxdp_priv.h"

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
