// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lab/model/crowd.h"
#include "wire/psn.h"

#define MTU	   1024u
#define PSN_STRIDE 1024u
#define OPENER_GEN 100u /* of lanes that the other side opens */
#define FAR_ROOM   100000u
#define LEARN_NS   1000u
#define AGREE_NS   100000u

static int sink_tx(void *ctx, enum engine_port port, const uint8_t *data, uint32_t len,
		   uint32_t seal)
{
	struct crowd *c = ctx;
	struct frame f;

	(void)seal;
	if ((c->refuse | c->impossible) & 1u << port) {
		c->refused++;
		return c->refuse & 1u << port ? -EAGAIN : -EMSGSIZE;
	}
	c->tx[port]++;
	if (c->sent && port != c->from && frame_parse(data, len, &f) == FRAME_OK &&
	    f.dqpn - CROWD_RQPN < c->n)
		c->sent(c, f.dqpn - CROWD_RQPN);
	if (port == PORT_LAN && len <= BUILD_MAX && frame_parse(data, len, &f) == FRAME_OK &&
	    f.aeth) {
		c->last.psn = f.psn;
		c->last.qpn = f.dqpn;
		c->last.msn = frame_aeth_msn(&f);
		c->last.syndrome = frame_aeth_syndrome(&f);
	}
	return 0;
}

static void sink_report(void *ctx, unsigned int peer, const struct report *r)
{
	struct crowd *c = ctx;
	uint32_t i = r->key.dqpn - CROWD_RQPN;

	(void)peer;
	c->reports++;
	c->asks_place += r->type == REPORT_PROGRESS && r->reason == REASON_IDLE;
	if (r->type == REPORT_OPEN && i < c->n) {
		c->lane[i].id = r->lane;
		c->lane[i].gen = r->gen;
	}
}

static void sink_event(void *ctx, const struct engine_event *ev)
{
	struct crowd *c = ctx;

	c->events[ev->type]++;
}

bool crowd_start(struct crowd *c, uint32_t n, uint64_t pool, enum engine_port from, int peer)
{
	return crowd_start_places(c, n, n < 16 ? 16 : n, pool, from, peer);
}

bool crowd_start_places(struct crowd *c, uint32_t n, uint32_t places, uint64_t pool,
			enum engine_port from, int peer)
{
	struct engine_config cfg = {.pool_bytes = pool, .max_conns = places, .seed = 1};
	struct engine_sink sink = {
		.ctx = c, .tx = sink_tx, .report = sink_report, .event = sink_event};
	struct rule r = {.nnear = 1,
			 .nfar = 1,
			 .vlan = RULE_ANY_VLAN,
			 .learn = LEARN_ALONE,
			 .peer = (int8_t)peer,
			 .path_mtu = MTU,
			 .policy = POLICY_EARLY};
	struct ip_addr near, far;
	static const uint8_t mac_near[6] = {2, 0, 0, 0, 0, 1}, mac_far[6] = {2, 0, 0, 0, 0, 2};

	memset(c, 0, sizeof(*c));
	c->n = n;
	c->from = from;
	c->payload = 64;
	c->now = 1000;
	c->lane = calloc(n, sizeof(*c->lane));
	c->e = engine_create(&cfg, &sink, c->now);
	if (!c->lane || !c->e)
		return false;
	ip_addr_parse("10.1.0.1", &near);
	ip_addr_parse("10.2.0.1", &far);
	template_make(&c->to_far, mac_near, mac_far, FRAME_VLAN_NONE, &near, &far, 0xc001);
	template_make(&c->to_near, mac_far, mac_near, FRAME_VLAN_NONE, &far, &near, 0xc001);
	for (uint32_t i = 0; i < n; i++)
		c->lane[i].psn = i * PSN_STRIDE & PSN_MASK;
	engine_rules(c->e, &r, 1, c->now);
	if (peer != PEER_NONE)
		engine_peer_event(c->e, 0, PEER_UP, c->now);
	return true;
}

void crowd_end(struct crowd *c)
{
	if (c->e)
		engine_destroy(c->e);
	free(c->lane);
	memset(c, 0, sizeof(*c));
}

void crowd_tick(struct crowd *c, uint64_t ns)
{
	c->now += ns;
	engine_tick(c->e, c->now);
}

/* The headers of lane @i, of its requests or of its answers. */
static struct template headers(const struct crowd *c, uint32_t i, bool request)
{
	static const uint8_t mac_near[6] = {2, 0, 0, 0, 0, 1}, mac_far[6] = {2, 0, 0, 0, 0, 2};
	bool far = (c->from == PORT_LAN) == request;
	struct template t;
	struct ip_addr a, b;

	if (!c->vlans)
		return far ? c->to_far : c->to_near;
	ip_addr_parse("10.1.0.1", &a);
	ip_addr_parse("10.2.0.1", &b);
	template_make(&t, far ? mac_near : mac_far, far ? mac_far : mac_near,
		      (uint16_t)(1 + i % c->vlans), far ? &a : &b, far ? &b : &a, 0xc001);
	return t;
}

uint32_t crowd_frame(struct crowd *c, uint32_t i, uint8_t *out)
{
	static const uint8_t payload[PAYLOAD_MAX];
	struct crowd_lane *l = &c->lane[i];
	struct template t = headers(c, i, true);
	struct build_spec s = {.t = &t,
			       .opcode = OP_SEND_ONLY,
			       .dqpn = CROWD_RQPN + i,
			       .psn = l->psn,
			       .ackreq = true,
			       .payload = payload,
			       .payload_len = c->payload};

	l->psn = psn_add(l->psn, 1);
	l->msn++;
	return build_packet(out, &s);
}

void crowd_request(struct crowd *c, uint32_t i, uint32_t skip)
{
	uint8_t frame[FRAME_MAX];
	uint32_t len;

	c->lane[i].psn = psn_add(c->lane[i].psn, skip);
	c->lane[i].msn += skip;
	len = crowd_frame(c, i, frame);
	engine_rx(c->e, c->from, frame, len, c->now);
}

/* PSN @number of a lane, counted from its first request */
static uint32_t psn_of(const struct crowd *c, uint32_t i, uint32_t number)
{
	return psn_add(c->lane[i].psn, number - c->lane[i].msn);
}

void crowd_answer(struct crowd *c, uint32_t i, uint32_t psn, uint8_t syndrome, uint32_t msn)
{
	struct template t = headers(c, i, false);
	enum engine_port port = c->from == PORT_LAN ? PORT_WAN : PORT_LAN;
	uint8_t ack[BUILD_MAX];

	engine_rx(c->e, port, ack,
		  build_ack(ack, &t, CROWD_LQPN + i, psn_of(c, i, psn), syndrome, msn), c->now);
}

void crowd_learn(struct crowd *c, uint32_t i)
{
	for (uint32_t k = 0; k < CROWD_LEARN; k++) {
		crowd_request(c, i, 0);
		crowd_answer(c, i, c->lane[i].msn - 1, AETH_ACK_UNLIMITED, c->lane[i].msn);
	}
	crowd_tick(c, LEARN_NS);
}

/* The lane's report to begin with; counts are of PSNs below them. */
static struct report about(const struct crowd *c, uint32_t i, uint8_t type)
{
	const struct crowd_lane *l = &c->lane[i];

	return (struct report){.type = type, .lane = l->id, .gen = l->gen};
}

static void opened_by_peer(struct crowd *c, uint32_t i)
{
	struct crowd_lane *l = &c->lane[i];
	struct report r;

	l->id = i;
	l->gen = OPENER_GEN + i;
	r = about(c, i, REPORT_OPEN);
	ip_addr_parse("10.2.0.1", &r.key.src);
	ip_addr_parse("10.1.0.1", &r.key.dst);
	r.key.dqpn = CROWD_RQPN + i;
	r.key.vlan = FRAME_VLAN_NONE;
	r.lqpn = CROWD_LQPN + i;
	r.start_psn = l->psn;
	r.start_msn = l->msn;
	r.path_mtu = MTU;
	engine_rx_report(c->e, 0, &r, c->now);
	crowd_tick(c, LEARN_NS);
}

void crowd_hold(struct crowd *c, uint32_t i)
{
	struct report r;

	if (c->from == PORT_WAN) {
		opened_by_peer(c, i);
		return;
	}
	crowd_request(c, i, 0);
	crowd_tick(c, LEARN_NS);
	if (!c->reports)
		return; /* alone */
	r = about(c, i, REPORT_ACCEPT);
	crowd_tick(c, AGREE_NS);
	engine_rx_report(c->e, 0, &r, c->now);
	crowd_tick(c, LEARN_NS);
}

static void progress(struct crowd *c, uint32_t i, uint32_t missing_from, uint32_t missing_end,
		     uint32_t room, uint8_t reason)
{
	struct crowd_lane *l = &c->lane[i];
	struct report r = about(c, i, REPORT_PROGRESS);

	r.reason = reason;
	r.seq = ++l->seq;
	r.cum = psn_of(c, i, missing_from);
	r.hi = missing_end == missing_from ? r.cum : l->psn;
	r.una = r.cum;
	r.una_msn = missing_from;
	r.una_ackable = true;
	r.credit = AETH_ACK_UNLIMITED;
	r.room = psn_add(l->psn, room);
	if (missing_end != missing_from) {
		r.nholes = 1;
		r.hole[0].from = r.cum;
		r.hole[0].end = psn_of(c, i, missing_end);
	}
	engine_rx_report(c->e, 0, &r, c->now);
}

void crowd_progress(struct crowd *c, uint32_t i)
{
	progress(c, i, c->lane[i].msn, c->lane[i].msn, FAR_ROOM, REASON_NONE);
}

void crowd_place(struct crowd *c, uint32_t i)
{
	progress(c, i, c->lane[i].msn, c->lane[i].msn, FAR_ROOM, REASON_IDLE);
}

bool crowd_hold_all(struct crowd *c)
{
	for (uint32_t i = 0; i < c->n; i++) {
		crowd_learn(c, i);
		crowd_hold(c, i);
		if (c->from == PORT_LAN)
			crowd_progress(c, i);
	}
	crowd_tick(c, 1000);
	return c->events[EVENT_HELD] == c->n;
}

void crowd_room(struct crowd *c, uint32_t i, uint32_t arrived, uint32_t packets)
{
	progress(c, i, arrived, arrived, packets, REASON_NONE);
}

void crowd_report_hole(struct crowd *c, uint32_t i, uint32_t have)
{
	progress(c, i, CROWD_LEARN + 1, c->lane[i].msn - have, FAR_ROOM, REASON_NONE);
}

void crowd_close(struct crowd *c, uint32_t i)
{
	struct report r = about(c, i, REPORT_CLOSE);

	r.by_opener = true;
	r.reason = REASON_IDLE;
	engine_rx_report(c->e, 0, &r, c->now);
}
