/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames handed from one thread to another: a ring with one producer and one consumer.
 *
 * Each side keeps its own place and its latest look at the other's in a line of its own, and looks
 * again only when the ring seems full or empty. A batch is published by one store.
 */
#ifndef BENCH_HANDOFF_H
#define BENCH_HANDOFF_H

#include <stdatomic.h>
#include <stdint.h>

#define HANDOFF_SLOTS 1024u
#define HANDOFF_LINE  128u /* two lines: processors fetch pairs */

/** struct handed - a frame: where it is, and its length. */
struct handed {
	const uint8_t *data;
	uint64_t len;
};

struct handoff {
	_Alignas(HANDOFF_LINE) _Atomic uint32_t put;
	uint32_t got_seen;
	_Alignas(HANDOFF_LINE) _Atomic uint32_t got;
	uint32_t put_seen;
	_Alignas(HANDOFF_LINE) struct handed slot[HANDOFF_SLOTS];
};

/** handoff_put - all @n, or none: returns how many. */
static inline uint32_t handoff_put(struct handoff *h, const struct handed *what, uint32_t n)
{
	uint32_t put = atomic_load_explicit(&h->put, memory_order_relaxed);

	if (HANDOFF_SLOTS - (put - h->got_seen) < n) {
		h->got_seen = atomic_load_explicit(&h->got, memory_order_acquire);
		if (HANDOFF_SLOTS - (put - h->got_seen) < n)
			return 0;
	}
	for (uint32_t i = 0; i < n; i++)
		h->slot[(put + i) % HANDOFF_SLOTS] = what[i];
	atomic_store_explicit(&h->put, put + n, memory_order_release);
	return n;
}

/** handoff_get - at most @n. Returns how many. */
static inline uint32_t handoff_get(struct handoff *h, struct handed *what, uint32_t n)
{
	uint32_t got = atomic_load_explicit(&h->got, memory_order_relaxed);

	if (h->put_seen == got)
		h->put_seen = atomic_load_explicit(&h->put, memory_order_acquire);
	n = h->put_seen - got < n ? h->put_seen - got : n;
	for (uint32_t i = 0; i < n; i++)
		what[i] = h->slot[(got + i) % HANDOFF_SLOTS];
	if (n)
		atomic_store_explicit(&h->got, got + n, memory_order_release);
	return n;
}

#endif
