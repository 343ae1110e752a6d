// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "tests/bench/opener.h"

#include <stdlib.h>

#include "wire/psn.h"

static int sink_tx(void *ctx, enum engine_port port, const uint8_t *data, uint32_t len,
		   uint32_t seal)
{
	struct opener *o = ctx;

	(void)data;
	(void)len;
	(void)seal;
	o->tx[port]++;
	return 0;
}

static void sink_report(void *ctx, unsigned int peer, const struct report *r)
{
	struct opener *o = ctx;

	(void)peer;
	o->last = *r;
}

struct engine *bench_engine_create(const struct engine_config *cfg, const struct engine_sink *sink,
				   uint32_t mtu)
{
	struct engine *e = engine_create(cfg, sink, 1000);
	struct rule r = {.nnear = 1,
			 .nfar = 1,
			 .vlan = RULE_ANY_VLAN,
			 .learn = LEARN_ALONE,
			 .peer = 0,
			 .path_mtu = mtu,
			 .policy = POLICY_EARLY,
			 .seal = true};

	if (!e)
		abort();
	engine_rules(e, &r, 1, 1000);
	engine_peer_features(e, 0, PEER_FEATURE_SEAL);
	engine_peer_event(e, 0, PEER_UP, 1000);
	return e;
}

void opener_init(struct opener *o, uint8_t host, uint32_t mtu, uint64_t pool, bool undo,
		 const struct engine_sink *sink)
{
	struct engine_config cfg = {.pool_bytes = pool, .max_conns = 16, .seed = 1, .undo = undo};
	struct engine_sink own = {.ctx = o, .tx = sink_tx, .report = sink_report};
	struct ip_addr a, b;

	ip_addr_parse("10.1.0.0", &a);
	ip_addr_parse("10.2.0.0", &b);
	a.b[15] = b.b[15] = host;
	*o = (struct opener){.mtu = mtu};
	template_make(&o->to_far, (const uint8_t *)"\2\0\0\0\0\1", (const uint8_t *)"\2\0\0\0\0\2",
		      FRAME_VLAN_NONE, &a, &b, 0xc001);
	template_make(&o->to_near, (const uint8_t *)"\2\0\0\0\0\2", (const uint8_t *)"\2\0\0\0\0\1",
		      FRAME_VLAN_NONE, &b, &a, 0xc001);
	o->e = bench_engine_create(&cfg, sink ? sink : &own, mtu);
}

uint32_t opener_frame(const struct opener *o, uint8_t *out, uint32_t psn, const uint8_t *payload)
{
	uint32_t per = MESSAGE / o->mtu, i = psn % per;
	struct build_spec s = {
		.t = &o->to_far,
		.dqpn = RQPN,
		.psn = psn,
		.payload = payload,
		.payload_len = o->mtu,
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

static void ack_from_far(struct opener *o, uint32_t psn, uint32_t msn, uint64_t now)
{
	uint8_t buf[BUILD_MAX];

	engine_rx(o->e, PORT_WAN, buf, build_ack(buf, &o->to_near, LQPN, psn, 0x1f, msn), now);
}

uint32_t opener_hold(struct opener *o, const uint8_t *payload)
{
	uint32_t per = MESSAGE / o->mtu, psn = 0, len;
	uint8_t frame[FRAME_MAX];

	/* learn: whole messages, each acknowledged by the true responder */
	for (uint32_t m = 1; m <= 8; m++) {
		for (uint32_t i = 0; i < per; i++, psn++) {
			len = opener_frame(o, frame, psn, payload);
			engine_rx(o->e, PORT_LAN, frame, len, 1000 + m);
		}
		engine_tick(o->e, 1000 + m);
		ack_from_far(o, psn - 1, m, 1000 + m);
		engine_tick(o->e, 1000 + m);
	}
	/* the peer agrees */
	engine_rx_report(
		o->e, 0,
		&(struct report){.type = REPORT_ACCEPT, .lane = o->last.lane, .gen = o->last.gen},
		2000);
	return psn;
}

void opener_progress(struct opener *o, uint32_t psn, uint32_t msn, uint32_t seq, uint64_t now)
{
	struct report r = {
		.type = REPORT_PROGRESS,
		.lane = o->last.lane,
		.gen = o->last.gen,
		.seq = seq,
		.cum = psn,
		.hi = psn,
		.una = psn,
		.una_msn = msn,
		.una_ackable = true,
		.credit = 0x1f,
		.room = psn_add(psn, 100000),
	};

	engine_rx_report(o->e, 0, &r, now);
}
