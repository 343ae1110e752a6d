// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Receive.
 *
 * Theory of operation
 *
 * A chunk goes round: fill ring, kernel, receive ring, us, fill ring. Descriptors are read in
 * batches and each frame is handed over where it lies; when the batch is done its slots in the
 * receive ring are released, and then its chunks are given back. In this order a chunk that the
 * kernel has always has a slot to come back in.
 *
 * The kernel shows frames in the receive ring before it shows that it has taken their chunks from
 * the fill ring. Who answers at once finds these slots still occupied. A fill ring with as many
 * slots as chunks has no room then for a moment; ours has twice as many (afxdp_sock.c), which is
 * enough, for a chunk can stand there twice but not three times. Nothing is built on that: no more
 * descriptors are read than there is room to give back, the rest stay in the receive ring, and what
 * finds no room all the same waits in rxq.back for the next time.
 *
 * One chunk given away twice, or one that is lost, does no harm until an overload has the kernel
 * use all of them: then it writes two frames into one chunk, the first is lost, the second read
 * twice, and so on round after round. Therefore it is on record who has each chunk. The kernel is
 * given only what is ours, and a descriptor of a chunk that it did not have is counted and its
 * frame dropped; its chunk is left to whom the record says.
 *
 * A frame of several descriptors is made one run of bytes. The kernel fills a chunk to its end
 * before it goes on in the next one of the fill ring, and there it leaves headroom. Chunks go round
 * in their order, so the next one mostly lies behind the first, and then only the short rest of the
 * frame is moved, over the headroom. Otherwise, as when frames were dropped and the order is not
 * that of the addresses any more, the frame is copied to a buffer of the socket. So is the
 * beginning of a frame when the batch ends within it.
 *
 * No allocation, no lock: one thread owns a part, and with it each queue of that part.
 */
#include <string.h>
#include <sys/socket.h>

#include "port/afxdp_priv.h"

/* The first FETCH_BYTES of a frame are prefetched FETCH_AHEAD descriptors before it is read; the
 * hardware prefetcher finds the rest. More of either takes line fill buffers from the frame that
 * is being read (measured: 1 to 4 descriptors, 64 bytes to 4 KiB). */
#define FETCH_AHEAD 4u
#define FETCH_BYTES 1024u
#define LINE	    64u

uint32_t rxq_give_back(struct rxq *q)
{
	uint32_t n = q->nback, room, idx;

	if (!n)
		return 0;
	room = xsk_prod_nb_free(&q->fill, n);
	if (n > room)
		n = room;
	if (!n || xsk_ring_prod__reserve(&q->fill, n, &idx) != n)
		return q->nback;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t c = q->back[i];

		q->owner[c] = CHUNK_KERNEL;
		*xsk_ring_prod__fill_addr(&q->fill, idx + i) =
			(uint64_t)(q->first + c) * AFXDP_CHUNK;
	}
	xsk_ring_prod__submit(&q->fill, n);
	q->nback -= n;
	memmove(q->back, q->back + n, q->nback * sizeof(*q->back));
	return q->nback;
}

/*
 * Take over the chunk of @d, to be given back after the batch. False when the frame must not be
 * read: the kernel did not have that chunk, or the frame does not end in it.
 */
static bool take(struct rxq *q, const struct xdp_desc *d)
{
	uint64_t c = d->addr / AFXDP_CHUNK - q->first; /* huge when below */

	if (c >= q->nchunks || q->owner[c] != CHUNK_KERNEL)
		return false;
	q->owner[c] = CHUNK_OURS;
	q->back[q->nback++] = (uint32_t)c;
	return d->len <= AFXDP_CHUNK - d->addr % AFXDP_CHUNK;
}

/* Move what there is of a frame to the buffer: its chunks are given back, or hold it no further. */
static void to_buffer(struct rxq *q)
{
	if (q->at == q->join)
		return;
	memcpy(q->join, q->at, q->joined);
	q->at = q->join;
}

/* Add the bytes of @d to the frame. */
static void append(struct port *p, struct rxq *q, const struct xdp_desc *d)
{
	uint8_t *data = p->area + d->addr, *chunk = data - d->addr % AFXDP_CHUNK;

	if (!q->joined) {
		q->at = data;
	} else if (q->at != q->join && q->at + q->joined == chunk) {
		memmove(chunk, data, d->len);
	} else {
		to_buffer(q);
		memcpy(q->join + q->joined, data, d->len);
	}
	q->joined += d->len;
}

/*
 * One descriptor of a frame in several, or one that is @bad. Returns true when the frame is
 * complete, @q->joined bytes at @q->at.
 */
static bool join(struct port *p, struct rxq *q, const struct xdp_desc *d, bool bad)
{
	if (!q->joining) {
		q->joining = true;
		q->skip = false;
		q->joined = 0;
		q->at = q->join;
	}
	if (!q->skip && bad) {
		q->skip = true;
	} else if (!q->skip && d->len > sizeof(q->join) - q->joined) {
		q->skip = true;
		q->n->rx_too_long++;
	}
	if (!q->skip)
		append(p, q, d);
	q->joining = d->options & XDP_PKT_CONTD;
	return !q->joining && !q->skip;
}

void afxdp_soon(struct afxdp *x, unsigned int part, port_soon_fn fn, void *ctx)
{
	x->part[part].soon = fn;
	x->part[part].soon_ctx = ctx;
}

/* Tell of frame @i of @n that wait from @idx on. */
static void tell_soon(const struct port *p, const struct rxq *q, uint32_t idx, uint32_t i,
		      uint32_t n)
{
	const struct part *part = q->part;
	const struct xdp_desc *d;

	if (!part->soon)
		return;
	if (i >= n) {
		part->soon(part->soon_ctx, NULL, 0);
		return;
	}
	d = xsk_ring_cons__rx_desc(&q->rx, idx + i);
	if (d->addr < p->area_len && d->len <= p->area_len - d->addr)
		part->soon(part->soon_ctx, p->area + d->addr, d->len);
}

/* Prefetch the frame of descriptor @i of @n: the kernel wrote it on another processor, or so long
 * ago that it has left the cache. */
static void fetch(const struct port *p, const struct rxq *q, uint32_t idx, uint32_t i, uint32_t n)
{
	const struct xdp_desc *d;

	if (i >= n)
		return;
	d = xsk_ring_cons__rx_desc(&q->rx, idx + i);
	if (d->addr >= p->area_len)
		return;
	for (uint32_t at = 0; at < d->len && at < FETCH_BYTES; at += LINE)
		__builtin_prefetch(p->area + d->addr + at);
}

/* A driver that writes frames to the chunks itself may have run out of them and wait to be told of
 * new ones; else the kernel needs no such call, unless it is to @poll the driver in it. */
static void fill_wake(struct rxq *q, bool poll)
{
	if (poll || xsk_ring_prod__needs_wakeup(&q->fill))
		(void)recvfrom(xsk_socket__fd(q->xsk), NULL, 0, MSG_DONTWAIT, NULL, NULL);
}

static unsigned int rx_queue(struct afxdp *x, struct port *p, struct rxq *q, unsigned int budget,
			     port_rx_fn fn, void *ctx)
{
	struct fdb *fdb = x->fdb[p->side];
	unsigned int member = (unsigned int)(p - x->port) % STEER_MEMBERS;
	uint32_t waiting = rxq_give_back(q), room, n, idx, i;
	unsigned int frames = 0;

	room = xsk_prod_nb_free(&q->fill, budget + waiting);
	room = room > waiting ? room - waiting : 0;
	if (room < budget) {
		q->n->rx_fill_full += room < q->nchunks;
		budget = room;
	}
	n = xsk_ring_cons__peek(&q->rx, budget, &idx);
	if (!n) {
		fill_wake(q, x->busy_poll_us);
		return 0;
	}
	for (i = 0; i < PORT_SOON && i < n; i++)
		tell_soon(p, q, idx, i, n);
	for (i = 0; i < FETCH_AHEAD; i++)
		fetch(p, q, idx, i, n);
	for (i = 0; i < n; i++) {
		const struct xdp_desc *d = xsk_ring_cons__rx_desc(&q->rx, idx + i);
		uint8_t *data = p->area + d->addr;
		uint32_t len = d->len;
		bool bad = !take(q, d);

		tell_soon(p, q, idx, i + PORT_SOON, n);
		fetch(p, q, idx, i + FETCH_AHEAD, n);
		if (bad)
			q->n->rx_bad_chunk++;
		if (bad || q->joining || d->options & XDP_PKT_CONTD) {
			if (!join(p, q, d, bad))
				continue;
			data = q->at;
			len = q->joined;
		}
		frames++;
		q->n->rx_bytes += len;
		if (p->side == STEER_LAN && len > q->part->longest[STEER_WAN])
			q->part->longest[STEER_WAN] = len;
		if (fdb)
			fdb_learn(fdb, member, data, len);
		fn(ctx, p->side, data, len);
	}
	q->n->rx += frames;
	if (q->joining)
		to_buffer(q);
	xsk_ring_cons__release(&q->rx, n);
	rxq_give_back(q);
	fill_wake(q, false);
	return frames;
}

/* How many descriptors wait in this ring. */
static uint32_t waiting(const struct xsk_ring_cons *r)
{
	return __atomic_load_n(r->producer, __ATOMIC_ACQUIRE) - *r->consumer;
}

uint32_t afxdp_waits(const struct afxdp *x, unsigned int part, enum steer_side side)
{
	uint32_t n = 0;

	port_each (x, p)
		for (unsigned int i = part; x->port[p].side == side && i < x->port[p].nq;
		     i += x->parts)
			n += waiting(&x->port[p].q[i].rx);
	return n;
}

static uint64_t bytes_waiting(const struct xsk_ring_cons *r)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0, n = waiting(r); i < n && i < r->size; i++)
		bytes += xsk_ring_cons__rx_desc(r, *r->consumer + i)->len;
	return bytes;
}

uint64_t afxdp_unread(const struct afxdp *x, enum steer_side side)
{
	uint64_t bytes = 0;

	port_each (x, p) {
		for (unsigned int i = 0; x->port[p].side == side && i < x->port[p].nq; i++)
			bytes += bytes_waiting(&x->port[p].q[i].rx);
	}
	return bytes;
}

uint64_t afxdp_wan_read(const struct afxdp *x)
{
	uint64_t n = 0;

	port_each (x, p)
		for (unsigned int k = 0; x->port[p].side == STEER_WAN && k < x->port[p].ntx; k++)
			n += x->port[p].tx[k].n.rx_bytes;
	return n;
}

unsigned int afxdp_rx(struct afxdp *x, unsigned int part, unsigned int budget, port_rx_fn fn,
		      void *ctx)
{
	unsigned int n = 0;

	for (int side = 0; side < STEER_SIDES; side++)
		if (x->fdb[side])
			fdb_clock(x->fdb[side]);
	port_each (x, p)
		for (unsigned int i = part; i < x->port[p].nq; i += x->parts)
			n += rx_queue(x, &x->port[p], &x->port[p].q[i], budget, fn, ctx);
	return n;
}
