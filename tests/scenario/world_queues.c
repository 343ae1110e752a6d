// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Ports with several receive queues. A network card chooses the queue of a packet by a hash of its
 * addresses and UDP ports. Packets of one flow keep their order; those of two queue pairs do not,
 * nor those of a queue pair and of the connection manager, nor requests and ACKs: the card tells of
 * each queue by an interrupt of its own, the process reads one after the other, and with several
 * cores it hands frames from one to the other. So what comes into a queue when nothing waits there
 * is read at once or some time later, and with it all that has come by then.
 */
#include "tests/scenario/world_priv.h"

#include <stdlib.h>
#include <string.h>

#include "wire/bytes.h"
#include "wire/frame.h"

#define RING_BYTES (4u << 20)

struct queues {
	struct prng rng;
	uint64_t hash;
	struct queue {
		struct wan *ring;
		uint64_t read_at;	/* what waits in it */
	} queue[2 * PORTS][QUEUES_MAX]; /* of each port of each appliance */
};

/* Each queue of both ports of appliance @s. */
#define queue_each(w, s, q)                                                                        \
	for (struct queue *q = w->queues->queue[PORTS * (s)], *end_ = q + PORTS * QUEUES_MAX;      \
	     q < end_; q++)

int world_queues_init(struct world *w)
{
	const struct wan_config as_is = {.store_bytes = RING_BYTES};
	uint64_t seed = splitmix64(w->cfg.seed ^ 0x90e0e5);

	if (!w->cfg.actors.queues)
		return 0;
	w->queues = calloc(1, sizeof(*w->queues));
	if (!w->queues)
		return -1;
	prng_init(&w->queues->rng, seed);
	w->queues->hash = splitmix64(seed);
	for (int s = 0; s < 2; s++)
		queue_each(w, s, q) q->ring = wan_create(&as_is);
	return 0;
}

void world_queues_exit(struct world *w)
{
	if (!w->queues)
		return;
	for (int s = 0; s < 2; s++)
		queue_each(w, s, q) wan_destroy(q->ring);
	free(w->queues);
	w->queues = NULL;
}

void world_queues_drop(struct world *w, int side)
{
	uint32_t len;

	if (!w->queues)
		return;
	queue_each(w, side, q) while (wan_pop(q->ring, w->now, &len));
}

/* As a card does; the manager's packets have a UDP port of their own. */
static uint32_t queue_of(const struct world *w, const uint8_t *data, uint32_t len)
{
	uint64_t flow = w->queues->hash;
	struct frame f;

	if (frame_parse(data, len, &f) != FRAME_OK)
		return 0;
	flow = splitmix64(flow ^ f.sport ^ (uint64_t)(f.dqpn == 1) << 16);
	flow = splitmix64(flow ^ get_be64(f.src.b + 8));
	return (uint32_t)(splitmix64(flow ^ get_be64(f.dst.b + 8)) % w->cfg.actors.queues);
}

bool world_queues_put(struct world *w, int side, enum engine_port port, const uint8_t *data,
		      uint32_t len)
{
	struct queue *q;
	uint8_t *b;

	if (!w->queues)
		return false;
	q = &w->queues->queue[PORTS * side + port][queue_of(w, data, len)];
	if (wan_next(q->ring) == WAN_NEVER) {
		q->read_at = w->now;
		if (prng_hit(&w->queues->rng, 0.5))
			q->read_at +=
				prng_below(&w->queues->rng, w->cfg.actors.queue_us * 1000 + 1);
	}
	b = wan_buf(q->ring);
	if (!b) {
		wan_no_room(q->ring);
		return true;
	}
	memcpy(b, data, len);
	wan_send(q->ring, w->now, len);
	return true;
}

static bool reads(const struct world *w, int side)
{
	return w->queues && w->engine[side] && !w->still[side].since && !world_late_waits(w, side);
}

static void read_queue(struct world *w, int side, enum engine_port port, struct queue *q)
{
	const uint8_t *data;
	uint32_t len;

	while (reads(w, side) && w->now >= q->read_at && (data = wan_pop(q->ring, w->now, &len)))
		world_late_rx(w, side, port, data, len);
}

void world_queues_run(struct world *w)
{
	for (uint32_t i = 0; w->queues && i < 2 * PORTS * QUEUES_MAX; i++)
		read_queue(w, (int)(i / QUEUES_MAX / PORTS),
			   (enum engine_port)(i / QUEUES_MAX % PORTS),
			   &w->queues->queue[i / QUEUES_MAX][i % QUEUES_MAX]);
}

uint64_t world_queues_next(const struct world *w)
{
	uint64_t t = UINT64_MAX;

	for (int s = 0; s < 2; s++) {
		if (!reads(w, s))
			continue;
		queue_each(w, s, q) if (wan_next(q->ring) != WAN_NEVER) t = min64(t, q->read_at);
	}
	return t;
}
