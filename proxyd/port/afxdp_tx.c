// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Transmit: frames are copied into chunks and written to the ring at once, but shown to the kernel
 * by afxdp_flush() only, one store and, in the best case, one system call for the lot.
 *
 * Transmitted chunks come back through the completion ring. A chunk given back twice would be
 * filled with a second frame while the first is still on its way, and nothing downstream would
 * know; therefore the owner of every transmit chunk is on record and a completion that contradicts
 * it is counted and not believed.
 *
 * What becomes of a frame: refused by afxdp_tx() for want of room (tx_full), which its caller is
 * told; dropped by the kernel or the device when it is their turn (tx_dropped), which nobody can
 * tell the caller any more; or sent.
 *
 * No allocation, no lock: one thread owns a part, and with it that part's transmit share of each
 * port.
 */
#include <errno.h>
#include <linux/if_ether.h>
#include <string.h>
#include <sys/socket.h>

#include "port/afxdp_priv.h"

/* sendto() calls without visible progress before kick() gives up for now */
#define TX_CALLS_IDLE 4

/* Address of no chunk: what tx_drop() puts into descriptors */
#define NOWHERE (UINT64_MAX - AFXDP_CHUNK + 1)

/* Take back the chunks that the kernel is done with. */
static void reap(struct txq *t)
{
	struct xsk_ring_cons *comp = &t->q->comp;
	uint32_t idx, i, n;

	n = xsk_ring_cons__peek(comp, t->nchunks, &idx);
	for (i = 0; i < n; i++) {
		uint64_t addr = *xsk_ring_cons__comp_addr(comp, idx + i);
		uint64_t c = (addr - t->base) / AFXDP_CHUNK;

		if (addr == NOWHERE) /* some kernels complete what they skip */
			continue;
		if (c >= t->nchunks || !t->busy[c]) {
			t->n.tx_bad_chunk++;
			continue;
		}
		t->busy[c] = 0;
		t->free[t->nfree++] = (uint32_t)c;
	}
	if (n)
		xsk_ring_cons__release(comp, n);
}

static uint32_t room(struct txq *t)
{
	uint32_t slots;

	reap(t);
	slots = xsk_prod_nb_free(&t->ring, t->nchunks);
	return slots < t->nfree ? slots : t->nfree;
}

uint32_t afxdp_room(struct afxdp *x, unsigned int part, enum steer_side side)
{
	uint32_t least = UINT32_MAX, n;

	port_each (x, p) {
		if (x->port[p].side != side || x->port[p].avoid)
			continue;
		n = room(&x->port[p].tx[part]);
		least = n < least ? n : least;
	}
	return least;
}

/* @n bytes of a frame of @len have been copied to @at, from @off on: XOR what of its ICRC is among
 * them. */
static void put_seal(uint8_t *at, uint32_t off, uint32_t n, uint32_t len, uint32_t seal)
{
	for (uint32_t i = 0; i < 4; i++, seal >>= 8)
		if (len - 4 + i >= off && len - 4 + i < off + n)
			at[len - 4 + i - off] ^= (uint8_t)seal;
}

int afxdp_tx(struct afxdp *x, unsigned int part, enum steer_side side, const uint8_t *data,
	     uint32_t len, uint32_t seal)
{
	struct port *p = &x->port[next_port(x, STEER_PORT(side, 0))];
	uint32_t need = (len + AFXDP_CHUNK - 1) / AFXDP_CHUNK, idx, off = 0;
	uint32_t *longest = &x->part[part].longest[side];
	struct txq *t;

	if (len < ETH_HLEN)
		return -EINVAL;
	if (x->fdb[side]) {
		p = &x->port[STEER_PORT(side, 0)];
		p += fdb_member(x->fdb[side], p, data, len);
	}
	t = &p->tx[part];
	if (len > p->max_tx) {
		t->n.tx_too_long++;
		return -EMSGSIZE;
	}
	if (t->nfree < need)
		reap(t);
	if (t->nfree < need || xsk_ring_prod__reserve(&t->ring, need, &idx) != need) {
		t->n.tx_full++;
		return -EAGAIN;
	}
	for (; off < len; off += AFXDP_CHUNK, idx++) {
		struct xdp_desc *d = xsk_ring_prod__tx_desc(&t->ring, idx);
		uint32_t c = t->free[--t->nfree], n = len - off;

		if (n > AFXDP_CHUNK)
			n = AFXDP_CHUNK;
		t->busy[c] = 1;
		d->addr = t->base + (uint64_t)c * AFXDP_CHUNK;
		d->len = n;
		d->options = off + n < len ? XDP_PKT_CONTD : 0;
		/* hide the bound of a chunk: for it gcc inlines `rep movs`, slower than memcpy() */
		__asm__("" : "+r"(n));
		memcpy(p->area + d->addr, data + off, n);
		if (seal)
			put_seal(p->area + d->addr, off, n, len, seal);
	}
	t->queued += need;
	if (side == STEER_LAN && len > *longest)
		*longest = len;
	t->n.tx++;
	t->n.tx_bytes += len;
	return 0;
}

static uint32_t tx_seen(const struct txq *t)
{
	return __atomic_load_n(t->ring.consumer, __ATOMIC_ACQUIRE) +
	       __atomic_load_n(t->q->comp.producer, __ATOMIC_ACQUIRE);
}

static bool tx_left(const struct txq *t)
{
	return __atomic_load_n(t->ring.consumer, __ATOMIC_ACQUIRE) != *t->ring.producer;
}

/*
 * Have the kernel send what is in the ring. One call sends a bounded number of frames and says
 * EAGAIN when some are left, but also when it cannot go on (memory, no room for completions, a busy
 * device). Which of the two shows in the ring indices, though an older kernel updates them only now
 * and then: hence a few calls on trust. EBUSY means that the device dropped one frame.
 */
static void kick(struct txq *t)
{
	int fd = xsk_socket__fd(t->q->xsk);
	uint32_t seen = tx_seen(t), left = t->nchunks + TX_CALLS_IDLE;
	int idle = 0;

	while (left-- && idle < TX_CALLS_IDLE) {
		if (sendto(fd, NULL, 0, MSG_DONTWAIT, NULL, 0) >= 0) {
			/* all, unless the device has lost its queue */
			t->waiting = tx_left(t);
			return;
		}
		if (errno == EBUSY) {
			t->n.tx_dropped++;
			continue;
		}
		if (errno != EAGAIN && errno != ENOBUFS && errno != EINTR) {
			t->n.tx_errors++; /* interface down or gone */
			return;
		}
		idle++;
		if (tx_seen(t) != seen) {
			seen = tx_seen(t);
			idle = 0;
		}
	}
}

/*
 * What waits for a port that went down would leave when it comes back, long after it has left by
 * another one. Its descriptors are made such that the kernel skips them (it counts them as
 * invalid), for it may have read the ring's end already. It reads descriptors within our sendto()
 * only. A frame that it has begun is left to it. A driver without copies reads them at any time: it
 * is left all of them.
 */
void tx_drop(struct txq *t, bool zero_copy)
{
	uint32_t at, end;

	if (t->queued) {
		xsk_ring_prod__submit(&t->ring, t->queued);
		t->queued = 0;
		t->waiting = true;
	}
	if (zero_copy)
		return;
	at = __atomic_load_n(t->ring.consumer, __ATOMIC_ACQUIRE);
	end = *t->ring.producer;
	while (at != end && xsk_ring_prod__tx_desc(&t->ring, at - 1)->options & XDP_PKT_CONTD)
		at++;
	for (; at != end; at++) {
		struct xdp_desc *d = xsk_ring_prod__tx_desc(&t->ring, at);
		uint64_t c = (d->addr - t->base) / AFXDP_CHUNK;

		if (c >= t->nchunks || !t->busy[c])
			continue;
		t->busy[c] = 0;
		t->free[t->nfree++] = (uint32_t)c;
		*d = (struct xdp_desc){.addr = NOWHERE, .len = 1};
	}
	t->waiting = false;
}

static bool flush(struct txq *t)
{
	if (!t->q || !t->q->xsk)
		return false; /* afxdp_close() after a failed afxdp_open() */
	if (t->queued) {
		xsk_ring_prod__submit(&t->ring, t->queued);
		t->queued = 0;
		t->waiting = true;
	}
	if (t->waiting && xsk_ring_prod__needs_wakeup(&t->ring))
		kick(t);
	else if (t->waiting)
		t->waiting = tx_left(t);
	if (t->nfree < t->nchunks)
		reap(t);
	return t->waiting;
}

void afxdp_tx_drop(struct afxdp *x, unsigned int part)
{
	port_each (x, p) {
		struct txq *t = part < x->port[p].ntx ? &x->port[p].tx[part] : NULL;

		if (!t || !t->q || !t->q->xsk)
			continue;
		tx_drop(t, x->port[p].zero_copy);
		t->waiting = !x->port[p].avoid; /* for what was dropped */
	}
}

bool afxdp_flush(struct afxdp *x, unsigned int part)
{
	bool waiting = false;

	port_each (x, p)
		if (part < x->port[p].ntx) /* as above */
			waiting |= flush(&x->port[p].tx[part]);
	return waiting;
}
