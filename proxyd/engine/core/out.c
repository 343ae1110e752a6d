// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What leaves the engine: frames to a port, events, the wish to be woken. Everything here goes
 * through the sink's callbacks and nothing else does, but for reports to a peer.
 */
#include <errno.h>

#include "engine/core/core.h"

/* A port that has no room is tried again after this, and twice that, and so on, so many times. */
#define RETRY_NS	(50 * NSEC_PER_USEC)
#define RETRY_DOUBLINGS 5u

/* The port takes nothing now: it is tried again at engine_port_again(). */
static void full(struct engine *e, enum engine_port port)
{
	struct port_wait *w = &e->wait[port];

	w->full = true;
	if (e->now < w->again)
		return;
	w->again = e->now + (RETRY_NS << w->tries);
	w->tries += w->tries < RETRY_DOUBLINGS;
}

static int tx(struct engine *e, enum engine_port port, const uint8_t *data, uint32_t len,
	      uint32_t seal)
{
	int err = e->sink.tx(e->sink.ctx, port, data, len, seal);
	struct port_wait *w = &e->wait[port];

	if (err == -EMSGSIZE || err == -EINVAL) {
		COUNT(e, TX_IMPOSSIBLE);
		return 0;
	}
	if (err) {
		full(e, port);
		COUNT(e, TX_FULL);
		return -EAGAIN;
	}
	w->tries = 0;
	e->counters[port == PORT_LAN ? EC_TX_LAN : EC_TX_WAN]++;
	if (port == PORT_WAN)
		link_at(e, e->via)->sent += len;
	return 0;
}

/*
 * Send a frame of the lane of @fl, sealed where that is due (seal.c); @fl NULL: as it is.
 *
 * Returns 0, or -EAGAIN when the port has no room. Who has something that must leave keeps it then
 * and tries again at engine_port_again(). What the port can never take is counted and as good as
 * lost on the way: whoever waits for it will find that out, and it is not tried for ever.
 */
int engine_tx(struct engine *e, const struct flow *fl, enum engine_port port, const uint8_t *data,
	      uint32_t len)
{
	bool sealed = port == PORT_WAN && fl && fl->lane.sealed;

	return tx(e, port, data, len, sealed ? seal_of(e, &fl->lane, data) : 0);
}

int engine_tx_own(struct engine *e, const struct flow *fl, const uint8_t *data, uint32_t len)
{
	const struct lane *l = &fl->lane;
	bool own = l->sealed && e->peer_features[l->peer] & PEER_FEATURE_OWN;

	return own ? tx(e, PORT_WAN, data, len, seal_of(e, l, data) ^ SEAL_OWN)
		   : engine_tx(e, fl, PORT_WAN, data, len);
}

int engine_tx_parity(struct engine *e, const struct flow *fl, const uint8_t *data, uint32_t len)
{
	uint32_t seal = seal_of(e, &fl->lane, data);

	return seal ? tx(e, PORT_WAN, data, len, seal ^ SEAL_PARITY) : 0;
}

/* The same for what is kept until it has left: with the MAC addresses of today (flow_macs()). It
 * stays here while hosts are to fall silent. */
int engine_tx_kept(struct engine *e, const struct flow *fl, enum engine_port port,
		   const uint8_t *data, uint32_t len)
{
	const struct flow *way = fl;
	uint8_t out[FRAME_MAX];

	if (e->hushed && port == PORT_LAN) {
		full(e, port);
		return -EAGAIN;
	}
	if (fl && port == fl->side)
		way = fl->partner == FLOW_NONE ? NULL : &e->flows[fl->partner];
	if (!way || !way->tmpl.len || !memcmp(way->tmpl.hdr, data, 2 * MAC_LEN))
		return engine_tx(e, fl, port, data, len);
	memcpy(out, way->tmpl.hdr, 2 * MAC_LEN);
	memcpy(out + 2 * MAC_LEN, data + 2 * MAC_LEN, len - 2 * MAC_LEN);
	return engine_tx(e, fl, port, out, len);
}

/* When to try again what @port had no room for. */
uint64_t engine_port_again(const struct engine *e, enum engine_port port)
{
	return e->wait[port].again > e->now ? e->wait[port].again : e->now;
}

void engine_pass(struct engine *e, const struct flow *fl, enum engine_port from,
		 const struct frame *f)
{
	COUNT(e, PASSED);
	engine_tx(e, fl, other_port(from), f->data, f->len);
}

void engine_pass_as_came(struct engine *e, enum engine_port from, const struct frame *f)
{
	COUNT(e, PASSED);
	tx(e, other_port(from), f->data, f->len, f->seal);
}

void engine_wake_at(struct engine *e, uint64_t when)
{
	e->wake = MIN(e->wake, when);
}

/* Say @ev of the lane of @fl. */
static void tell(struct engine *e, const struct flow *fl, struct engine_event *ev)
{
	/* connections go by their LAN side's flow */
	ev->conn =
		fl->side != PORT_LAN && fl->partner != FLOW_NONE ? fl->partner : flow_index(e, fl);
	ev->requests_from_lan = fl->side == PORT_LAN;
	if (e->sink.event)
		e->sink.event(e->sink.ctx, ev);
}

void engine_event(struct engine *e, enum engine_event_type type, const struct flow *fl,
		  uint32_t packets, uint64_t bytes)
{
	tell(e, fl,
	     &(struct engine_event){
		     .type = type, .reason = fl->lane.reason, .packets = packets, .bytes = bytes});
}

void engine_event_must(struct engine *e, const struct flow *fl, const struct engine_must *m)
{
	tell(e, fl,
	     &(struct engine_event){
		     .type = EVENT_INVARIANT, .reason = REASON_INVARIANT, .must = *m});
}

/* Returns false when the port has no room for it. */
bool ack_send(struct engine *e, struct flow *fl, struct host_psn psn, uint8_t syndrome,
	      uint32_t msn)
{
	struct flow *back = flow_partner(e, fl);
	uint8_t buf[BUILD_MAX];
	uint32_t len;

	if (!back || !back->tmpl.len)
		return true;
	len = build_ack(buf, &back->tmpl, back->key.dqpn, psn.v, syndrome, msn);
	return !engine_tx_kept(e, fl, fl->side, buf, len);
}
