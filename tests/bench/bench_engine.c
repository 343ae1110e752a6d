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

#include "engine/engine.h"
#include "wire/build.h"
#include "wire/icrc.h"
#include "wire/psn.h"

#define BATCH	32
#define MESSAGE 65536u

static struct template to_far, to_near;
static uint64_t tx[PORTS], reports;
static struct report last_report;

static int sink_tx(void *ctx, enum engine_port port, const uint8_t *data, uint32_t len,
		   uint32_t seal)
{
	(void)ctx;
	(void)data;
	(void)len;
	(void)seal;
	tx[port]++;
	return 0;
}

static void sink_report(void *ctx, unsigned int peer, const struct report *r)
{
	(void)ctx;
	(void)peer;
	last_report = *r;
	reports++;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static uint32_t build(uint8_t *out, uint32_t psn, uint32_t mtu, const uint8_t *payload)
{
	uint32_t per = MESSAGE / mtu, i = psn % per;
	struct build_spec s = {
		.t = &to_far,
		.dqpn = 0x22,
		.psn = psn,
		.payload = payload,
		.payload_len = mtu,
		.ackreq = i == per - 1,
		.rkey = 7,
		.length = MESSAGE,
	};

	s.opcode = per == 1	  ? OP_WRITE_ONLY
		   : i == 0	  ? OP_WRITE_FIRST
		   : i == per - 1 ? OP_WRITE_LAST
				  : OP_WRITE_MIDDLE;
	return build_packet(out, &s);
}

static void ack_from_far(struct engine *e, uint32_t psn, uint32_t msn, uint64_t now)
{
	uint8_t buf[BUILD_MAX];

	engine_rx(e, PORT_WAN, buf, build_ack(buf, &to_near, 0x11, psn, 0x1f, msn), now);
}

static struct engine *start(uint32_t mtu, uint64_t pool, bool undo)
{
	struct engine_config cfg = {.pool_bytes = pool, .max_conns = 16, .seed = 1, .undo = undo};
	struct engine_sink sink = {.tx = sink_tx, .report = sink_report};
	struct engine *e = engine_create(&cfg, &sink, 1000);
	struct rule r = {.nnear = 1,
			 .nfar = 1,
			 .vlan = RULE_ANY_VLAN,
			 .learn = LEARN_ALONE,
			 .peer = 0,
			 .path_mtu = mtu,
			 .policy = POLICY_EARLY,
			 .seal = true};

	engine_rules(e, &r, 1, 1000);
	engine_peer_features(e, 0, PEER_FEATURE_SEAL);
	engine_peer_event(e, 0, PEER_UP, 1000);
	return e;
}

static uint32_t into_custody(struct engine *e, uint32_t mtu, const uint8_t *payload)
{
	uint32_t per = MESSAGE / mtu, psn = 0, len;
	uint8_t frame[FRAME_MAX];

	/* learn: whole messages, each acknowledged by the true responder */
	for (uint32_t m = 1; m <= 8; m++) {
		for (uint32_t i = 0; i < per; i++, psn++) {
			len = build(frame, psn, mtu, payload);
			engine_rx(e, PORT_LAN, frame, len, 1000 + m);
		}
		engine_tick(e, 1000 + m);
		ack_from_far(e, psn - 1, m, 1000 + m);
		engine_tick(e, 1000 + m);
	}
	/* the peer agrees */
	engine_rx_report(e, 0,
			 &(struct report){.type = REPORT_ACCEPT,
					  .lane = last_report.lane,
					  .gen = last_report.gen},
			 2000);
	return psn;
}

static void far_report(struct engine *e, uint32_t psn, uint32_t msn, uint32_t seq, uint64_t now)
{
	struct report r = {
		.type = REPORT_PROGRESS,
		.lane = last_report.lane,
		.gen = last_report.gen,
		.seq = seq,
		.cum = psn,
		.hi = psn,
		.una = psn,
		.una_msn = msn,
		.una_ackable = true,
		.credit = 0x1f,
		.room = psn_add(psn, 100000),
	};

	engine_rx_report(e, 0, &r, now);
}

static int cmp(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void bench(uint32_t mtu, uint32_t custody_bytes, uint32_t batch, bool undo)
{
	static uint8_t ring[BATCH][FRAME_MAX + 64], payload[4096];
	struct engine *e = start(mtu, 1ull << 30, undo);
	uint32_t psn = into_custody(e, mtu, payload), per = MESSAGE / mtu;
	uint32_t lag = custody_bytes / mtu / per * per, seq = 0, acked = psn, rounds = 15;
	double ns[15];
	uint64_t tick = 3000;

	for (uint32_t r = 0; r < rounds; r++) {
		uint64_t packets = 0, spent = 0;

		while (packets < 60000) {
			uint32_t len[BATCH];
			uint64_t t0;

			for (uint32_t i = 0; i < batch; i++)
				len[i] = build(ring[i], psn_add(psn, i), mtu, payload);
			tick += 10000;
			t0 = now_ns();
			for (uint32_t i = 0; i < batch; i++)
				engine_rx(e, PORT_LAN, ring[i], len[i], tick);
			if (psn - acked > lag) {
				acked += batch > per ? batch : per;
				far_report(e, acked, acked / per, ++seq, tick);
			}
			engine_tick(e, tick);
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
	engine_destroy(e);
}

static void memory(uint32_t mtu)
{
	static uint8_t payload[4096];
	uint8_t frame[FRAME_MAX];
	struct engine *e = start(mtu, 256ull << 20, true);
	uint32_t psn = into_custody(e, mtu, payload), len = 0;
	struct engine_memory m;
	struct ledger l;

	for (uint32_t i = 0; i < 20000; i++, psn++) {
		len = build(frame, psn, mtu, payload);
		engine_rx(e, PORT_LAN, frame, len, 5000);
		engine_tick(e, 5000);
	}
	l = engine_custody(e, -1, 5000);
	engine_memory(e, &m);
	printf("memory: mtu=%u packets=%" PRIu64 " packet-bytes=%" PRIu64 " retained-bytes=%" PRIu64
	       " ratio=%.3f state-per-lane=%u\n",
	       mtu, l.packets, l.bytes, m.custody_used, (double)m.custody_used / (double)l.bytes,
	       m.lane_bytes);
	engine_destroy(e);
}

int main(void)
{
	struct ip_addr a, b;

	ip_addr_parse("10.1.0.1", &a);
	ip_addr_parse("10.2.0.1", &b);
	template_make(&to_far, (const uint8_t *)"\2\0\0\0\0\1", (const uint8_t *)"\2\0\0\0\0\2",
		      FRAME_VLAN_NONE, &a, &b, 0xc001);
	template_make(&to_near, (const uint8_t *)"\2\0\0\0\0\2", (const uint8_t *)"\2\0\0\0\0\1",
		      FRAME_VLAN_NONE, &b, &a, 0xc001);
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
