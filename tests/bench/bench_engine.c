// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the engine costs per packet: a WRITE packet in at the LAN port, verified, retained, out at
 * the WAN port and acknowledged. One QP, 64 KiB messages, a window of custody that the far side
 * acknowledges with a lag, everything in one process; the sinks count and drop. Also the memory
 * that a full lane takes, and the state per lane.
 *
 * The engine sees what it would see behind AF_XDP: frames in a ring of receive buffers that stay in
 * the cache, a batch of 32 per tick. Few frames per tick, as with a host that waits for each of its
 * messages, show what a batch costs by itself; and the same without the notes by which it can be
 * undone (store/undo.h) what these do.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/bench/opener.h"
#include "wire/psn.h"

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static int cmp(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void bench(uint32_t mtu, uint32_t custody_bytes, uint32_t batch, bool undo)
{
	static uint8_t ring[BATCH][FRAME_MAX + 64], payload[4096];
	uint32_t psn, per = MESSAGE / mtu, lag = custody_bytes / mtu / per * per;
	uint32_t seq = 0, acked, rounds = 15;
	struct opener o;
	double ns[15];
	uint64_t tick = 3000;

	opener_init(&o, 1, mtu, 1ull << 30, undo, NULL);
	psn = acked = opener_hold(&o, payload);
	for (uint32_t r = 0; r < rounds; r++) {
		uint64_t packets = 0, spent = 0;

		while (packets < 60000) {
			uint32_t len[BATCH];
			uint64_t t0;

			for (uint32_t i = 0; i < batch; i++)
				len[i] = opener_frame(&o, ring[i], psn_add(psn, i), payload);
			tick += 10000;
			t0 = now_ns();
			for (uint32_t i = 0; i < batch; i++)
				engine_rx(o.e, PORT_LAN, ring[i], len[i], tick);
			if (psn - acked > lag) {
				acked += batch > per ? batch : per;
				opener_progress(&o, acked, acked / per, ++seq, tick);
			}
			engine_tick(o.e, tick);
			spent += now_ns() - t0;
			psn += batch;
			packets += batch;
		}
		ns[r] = (double)spent / (double)packets;
		psn &= PSN_MASK;
	}
	qsort(ns, rounds, sizeof(ns[0]), cmp);
	printf("engine: mtu=%u custody=%u KiB batch=%u undo=%s ns-per-packet median=%.0f min=%.0f "
	       "max=%.0f\n",
	       mtu, custody_bytes >> 10, batch, undo ? "yes" : "no", ns[rounds / 2], ns[0],
	       ns[rounds - 1]);
	engine_destroy(o.e);
}

static void memory(uint32_t mtu)
{
	static uint8_t payload[4096];
	uint8_t frame[FRAME_MAX];
	struct engine_memory m;
	struct opener o;
	struct ledger l;
	uint32_t psn;

	opener_init(&o, 1, mtu, 256ull << 20, true, NULL);
	psn = opener_hold(&o, payload);
	for (uint32_t i = 0; i < 20000; i++, psn++) {
		uint32_t len = opener_frame(&o, frame, psn, payload);

		engine_rx(o.e, PORT_LAN, frame, len, 5000);
		engine_tick(o.e, 5000);
	}
	l = engine_custody(o.e, -1, 5000);
	engine_memory(o.e, &m);
	printf("memory: mtu=%u packets=%" PRIu64 " packet-bytes=%" PRIu64 " retained-bytes=%" PRIu64
	       " ratio=%.3f state-per-lane=%u\n",
	       mtu, l.packets, l.bytes, m.custody_used, (double)m.custody_used / (double)l.bytes,
	       m.lane_bytes);
	engine_destroy(o.e);
}

int main(void)
{
	bench(4096, 512 << 10, BATCH, true);
	bench(4096, 8 << 20, BATCH, true);
	bench(4096, 128 << 20, BATCH, true);
	bench(1024, 512 << 10, BATCH, true);
	bench(1024, 8 << 20, BATCH, true);
	bench(1024, 32 << 20, BATCH, true);
	for (uint32_t batch = 1; batch <= BATCH; batch *= 4) {
		bench(1024, 8 << 20, batch, false);
		bench(1024, 8 << 20, batch, true);
	}
	memory(4096);
	memory(1024);
	return 0;
}
