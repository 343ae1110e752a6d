// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Engines, hosts and links: made, joined to each other, and taken down. */
#include "tests/lab/model/undone.h"
#include "tests/scenario/world_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/owner/notes.h"
#include "tests/scenario/readers.h"
#include "tests/scenario/world_storage.h"
#include "wire/bytes.h"
#include "wire/psn.h"

/* Ethernet, IPv4, UDP; header and tag of the datagram; header and fixed part of the message */
#define PROGRESS_BYTES (14 + 20 + 8 + 20 + 16 + 4 + 34)

void world_defaults(struct world_config *c)
{
	memset(c, 0, sizeof(*c));
	c->seed = 1;
	c->appliance[0] = c->appliance[1] = true;
	c->wan.delay_ns = 10 * MS;
	c->wan.rate_bps = 10000000000ull;
	c->wan.store_bytes = 64 << 20;
	c->lan.delay_ns = 2000;
	c->lan.rate_bps = 25000000000ull;
	c->lan.store_bytes = 8 << 20;
	c->engine.pool_bytes = 64 << 20;
	c->engine.max_conns = 256;
	c->qps_max = WORLD_QPS;
}

/* ---- wiring ---- */

void world_link_send(struct world *w, int link, const uint8_t *data, uint32_t len)
{
	uint8_t *b = wan_buf(w->link[link]);

	if (w->tap)
		w->tap(w, link, data, len);
	if (!b) {
		wan_no_room(w->link[link]);
		return;
	}
	memcpy(b, data, len);
	wan_send(w->link[link], w->now, len);
}

static int sink_tx(void *ctx, enum engine_port port, const uint8_t *data, uint32_t len,
		   uint32_t seal)
{
	struct world_ctx *c = ctx;
	uint8_t sealed[WAN_FRAME_MAX];

	if (c->w->overload && c->w->now < c->w->overload->full_until[c->side][port])
		return -EAGAIN;
	if (port == PORT_LAN && c->w->cfg.lan_ring &&
	    wan_waiting(c->w->link[WORLD_LAN_OUT(c->side)], c->w->now) >= c->w->cfg.lan_ring)
		return -EAGAIN;
	if (world_crash_tx(c->w, c->side, port, data, len, seal))
		return 0;
	if (port == PORT_WAN && c->w->cfg.check_custody)
		world_check_forwarded(c->w, c->side, data, len);
	if (seal) {
		memcpy(sealed, data, len);
		put_le32(sealed + len - ICRC_LEN, get_le32(sealed + len - ICRC_LEN) ^ seal);
		data = sealed;
	}
	world_link_send(c->w, port == PORT_LAN ? WORLD_LAN_OUT(c->side) : WORLD_WAN(c->side), data,
			len);
	return 0;
}

static uint32_t report_bytes(const struct report *r)
{
	return PROGRESS_BYTES + 6u * r->nholes;
}

/* The frame bears the number of the report, and is as long as the datagram would be. */
static void send_in_band(struct world *w, int side, const struct report *r)
{
	uint8_t *b = wan_buf(w->link[WORLD_WAN(side)]);
	uint32_t n = w->nin_band[side]++ % WORLD_IN_BAND;

	if (!b)
		return;
	w->in_band[side][n] = *r;
	memset(b, 0, PROGRESS_BYTES);
	put_be16(b + 12, WORLD_TYPE_REPORT);
	put_be32(b + 14, n);
	b[18] = w->is_guest;
	wan_send(w->link[WORLD_WAN(side)], w->now, report_bytes(r));
}

struct wan *world_reports(const struct world *w, int side, const struct report *r)
{
	return r->type == REPORT_OPEN && w->opens[side] ? w->opens[side] : w->reports[side];
}

static void sink_report(void *ctx, unsigned int peer, const struct report *r)
{
	struct world_ctx *c = ctx;
	struct wan *to = world_reports(c->w, c->side, r);
	uint8_t *b;

	if (world_crash_report(c->w, c->side, peer, r))
		return;
	if (!peer && c->w->cfg.reports_in_band) {
		send_in_band(c->w, c->side, r);
		return;
	}
	b = peer || world_still_unheard(c->w, c->side) ? NULL : wan_buf(to);
	if (!b)
		return; /* there is only peer 0; others exist in forged reports */
	memcpy(b, r, sizeof(*r));
	c->w->report_bytes[c->side] += report_bytes(r);
	wan_send(to, c->w->now, sizeof(*r));
}

static void sink_event(void *ctx, const struct engine_event *ev)
{
	struct world_ctx *c = ctx;

	if (world_crash_event(c->w, c->side, ev))
		return;
	c->w->held_gen[c->side]++;
	switch (ev->type) {
	case EVENT_HELD:
		c->w->opened[c->side]++;
		break;
	case EVENT_REFUSED:
		c->w->refused[c->side]++;
		break;
	case EVENT_FAULT:
		c->w->faults[c->side]++;
		break;
	case EVENT_CLOSED:
		c->w->closed[c->side]++;
		break;
	case EVENT_INVARIANT:
		world_broken(c->w, c->side, ev);
		break;
	default:
		break;
	}
}

static int sink_hold(void *ctx, const struct flow_key *requests, uint32_t lqpn,
		     const struct template *headers, bool on)
{
	struct world_ctx *c = ctx;
	struct world *w = c->w;

	int side = w->cfg.prefetch_single ? !c->side : c->side; /* of the requester */

	(void)headers;
	for (uint32_t i = 0; i < w->nqps; i++) {
		if (w->qp[i].cfg[side].lqpn == lqpn)
			w->qp[i].side[side].numbered = on ? *requests : (struct flow_key){0};
		else if (w->qp[i].cfg[!side].lqpn == lqpn) /* announce/ */
			w->qp[i].side[!side].numbered_far = on ? *requests : (struct flow_key){0};
	}
	return 0;
}

static uint8_t *host_buf(void *ctx)
{
	struct world_ctx *c = ctx;

	return wan_buf(c->w->link[WORLD_LAN_IN(c->side)]);
}

static void host_tx(void *ctx, uint8_t *buf, uint32_t len)
{
	struct world_ctx *c = ctx;

	/* one of two ports of a bond; the ICRC does not cover it */
	if (c->w->cfg.actors.lag & 1u << c->side && ++c->w->lag[c->side] & 1)
		buf[11] ^= 0x10;
	if (c->w->tap)
		c->w->tap(c->w, WORLD_LAN_IN(c->side), buf, len);
	wan_send(c->w->link[WORLD_LAN_IN(c->side)], c->w->now, len);
}

/* A requester of @q was told a number of its counter that is not above the last one. */
static void number_twice(struct world_qp *q)
{
	static const char bad[] = "a counter gave a number twice, or went back";

	if (world_astray(q))
		world_wrong(q, bad);
	else
		q->w->violation = bad;
}

static void host_complete(void *ctx, struct rc_qp *qp, const struct rc_completion *comp)
{
	struct world_ctx *c = ctx;
	struct world_qp *q = rc_qp_user(qp);
	bool data = comp->op<RC_READ, atomic = comp->op> RC_READ;
	bool early = c->w->cfg.policy == POLICY_EARLY && c->w->engine[c->side];

	c->w->finished++;
	c->w->frames_at = c->w->frames;
	if (comp->status == RC_OK) {
		q->side[c->side].ok++;
		q->side[c->side].ok_data += data;
		q->side[c->side].ok_atomics += atomic;
		if (atomic && c->w->cfg.atomic != ATOMIC_DISCARD)
			early = false;
		if ((data || atomic) && q->up && (!q->reused || q->reuse.after) &&
		    c->w->cfg.check_custody && !q->side[c->side].lost && !early &&
		    comp->number >= (data ? rc_messages : rc_atomics)(q->side[!c->side].qp))
			world_wrong(q, "completed before it was executed, against the policy");
		q->side[c->side].bytes += comp->length;
		q->side[c->side].last_ok_at = c->w->now;
		world_order_told(q, c->side, comp);
		if (comp->checked && !comp->intact)
			q->side[c->side].data_wrong = true;
		if (atomic && q->side[c->side].work.counter && comp->wr_id) {
			if (comp->value + 1 <= q->side[c->side].drawn)
				number_twice(q);
			q->side[c->side].drawn = comp->value + 1;
		}
	} else {
		if (!q->side[c->side].failed++)
			q->side[c->side].status = comp->status;
		return;
	}
	if (q->storage)
		storage_completed(q, c->side, comp);
	world_post_more(q, c->side);
}

static void host_receive(void *ctx, struct rc_qp *qp, const struct rc_message *m)
{
	struct world_ctx *c = ctx;
	struct world_qp *q = rc_qp_user(qp);

	if (q->storage)
		storage_received(q, c->side, m);
	else if (!m->intact)
		world_wrong(q, "a responder received bytes that were never sent like that");
	world_order_received(rc_qp_user(qp), c->side, m->number);
	readers_received(rc_qp_user(qp), c->side, m->number);
	if (c->w->received)
		c->w->received(c->w, rc_qp_user(qp), c->side);
}

static void host_atomic(void *ctx, struct rc_qp *qp, uint64_t number)
{
	struct world_ctx *c = ctx;

	readers_atomic(rc_qp_user(qp), c->side, number);
}

static bool host_read(void *ctx, struct rc_qp *qp, const struct rc_read_data *d)
{
	struct world_ctx *c = ctx;
	struct world_qp *q = rc_qp_user(qp);
	const char *bad;

	if (q->storage)
		return storage_read(q, c->side, d);
	bad = readers_check(q, c->side, d);

	if (bad)
		world_wrong(rc_qp_user(qp), bad);
	return !bad;
}

static bool host_offered(void *ctx, struct rc_qp *qp, uint32_t rkey, uint64_t va, uint32_t len)
{
	struct world_ctx *c = ctx;
	struct world_qp *q = rc_qp_user(qp);

	if (!q->storage)
		return rkey == rc_qp_config(qp)->mr_rkey;
	return storage_offered(q, c->side, rkey, va, len);
}

void world_said(struct world *w, int side, int kind, uint32_t port, const void *data, uint32_t len)
{
	struct report r;
	struct engine_event ev;

	if (kind == 0) {
		(void)sink_tx(&w->ctx[side], (enum engine_port)port, data, len - 4,
			      get_le32((const uint8_t *)data + len - 4));
	} else if (kind == 1) {
		memcpy(&r, data, sizeof(r));
		sink_report(&w->ctx[side], port, &r);
	} else {
		memcpy(&ev, data, sizeof(ev));
		sink_event(&w->ctx[side], &ev);
	}
}

static struct engine_sink sink_of(struct world *w, int side)
{
	return (struct engine_sink){.ctx = &w->ctx[side],
				    .tx = sink_tx,
				    .report = sink_report,
				    .event = sink_event,
				    .hold = sink_hold};
}

struct engine *world_adopt(struct world *w, int side, int fd, const char **why)
{
	struct engine_sink sink = sink_of(w, side);
	struct engine_config cfg = w->cfg.engine;
	struct engine *e;

	cfg.file = fd;
	e = engine_adopt(fd, &cfg, &sink, w->now, why);
	if (!e)
		return NULL;
	engine_rules(e, &w->rule, 1, w->now);
	/* as the daemon does with the table of what is held */
	for (uint32_t i = 0; i < w->nqps; i++) {
		struct flow_key *k = &w->qp[i].side[side].numbered;

		if (k->dqpn && !engine_holds(e, k))
			*k = (struct flow_key){0};
		k = &w->qp[i].side[!side].numbered_far;
		if (k->dqpn && !engine_holds(e, k))
			*k = (struct flow_key){0};
	}
	engine_go_on(e, w->now);
	return e;
}

static struct engine *make_engine(struct world *w, int side)
{
	struct engine_sink sink = sink_of(w, side);
	struct engine_config cfg = w->cfg.engine;
	struct rule r = {.nnear = 1, .nfar = 1, .vlan = RULE_ANY_VLAN, .learn = LEARN_CM};
	struct engine *e;

	cfg.seed = splitmix64(w->cfg.seed * 2 + (uint64_t)side + w->now);
	cfg.file = world_crash_file(w, side);
	e = engine_create(&cfg, &sink, w->now);
	if (!e)
		return NULL;
	snprintf(r.name, sizeof(r.name), "all");
	r.peer = w->cfg.single ? PEER_NONE : 0;
	r.policy = w->cfg.policy;
	r.atomic = (uint8_t)w->cfg.atomic;
	r.prefetch = w->cfg.prefetch_single	 ? PREFETCH_SINGLE
		     : w->cfg.prefetch_responder ? PREFETCH_RESPONDER
						 : w->cfg.prefetch;
	r.read_depth = w->cfg.read_depth;
	r.announce = w->cfg.announce ? ANNOUNCE_MODE_AUTO : ANNOUNCE_MODE_OFF;
	r.order = w->cfg.actors.order % 2 ? ORDER_HOSTS : ORDER_QUEUE_PAIR;
	r.prefetch_max_age_ns = w->cfg.prefetch_max_age_ns;
	if (w->cfg.read_end) {
		r.nread_ranges = 1;
		r.read_range[0].from = w->cfg.read_from;
		r.read_range[0].end = w->cfg.read_end;
	}
	r.path_mtu = w->cfg.path_mtu;
	r.seal = !w->cfg.unsealed;
	r.parity = true;
	r.learn |= w->cfg.proved ? LEARN_PSN : LEARN_ALONE;
	w->rule = r;
	engine_rules(e, &r, 1, w->now);
	engine_peer_features(e, 0,
			     w->cfg.actors.order == 3
				     ? 0
				     : PEER_FEATURE_ORDER | PEER_FEATURE_SEAL | PEER_FEATURE_OFFER |
					       PEER_FEATURE_ANNOUNCE | PEER_FEATURE_PARITY |
					       PEER_FEATURE_DISPUTE | PEER_FEATURE_OWN |
					       PEER_FEATURE_AHEAD | PEER_FEATURE_REPAIR |
					       PEER_FEATURE_SLICES);
	engine_peer_rtt(e, 0, 2 * w->cfg.wan.delay_ns);
	if (!w->cfg.single)
		engine_peer_event(e, 0, PEER_UP, w->now);
	return e;
}

struct world *world_create(const struct world_config *cfg)
{
	struct world *w = calloc(1, sizeof(*w));
	struct rc_host_ops ops = {.tx_buf = host_buf,
				  .tx = host_tx,
				  .complete = host_complete,
				  .receive = host_receive,
				  .atomic = host_atomic,
				  .read = host_read};

	if (cfg->storage)
		ops.offered = host_offered;
	w->cfg = *cfg;
	prng_init(&w->rng, cfg->seed ^ 0x7e9047);
	w->now = 1000 * MS;
	world_crash_init(w);
	for (int i = 0; i < 6; i++) {
		struct wan_config c = i < 4 ? cfg->lan : cfg->wan;

		c.seed = splitmix64(cfg->seed + 100 + (uint64_t)i);
		w->link[i] = wan_create(&c);
	}
	for (int i = 0; i < 2; i++)
		if (cfg->reports_in_band)
			w->in_band[i] = calloc(WORLD_IN_BAND, sizeof(struct report));
	for (int i = 0; i < 2; i++) {
		struct rc_host_config hc = {
			.seed = splitmix64(cfg->seed + 10 + (uint64_t)i),
			.qps_max = cfg->qps_max,
			.link_bps = cfg->lan.rate_bps,
		};
		struct wan_config rc = {.delay_ns = cfg->wan.delay_ns,
					.loss = cfg->report_loss,
					.reorder = cfg->report_reorder,
					.reorder_ns = cfg->wan.delay_ns,
					.store_bytes = 32 << 20,
					.seed = splitmix64(cfg->seed + 200 + (uint64_t)i)};

		w->ctx[i].w = w;
		w->ctx[i].side = i;
		w->host[i] = rc_host_create(&hc, &ops, &w->ctx[i]);
		if (cfg->reports_in_band && cfg->actors.late)
			rc.loss = rc.reorder = 0;
		w->reports[i] = wan_create(&rc);
		rc.seed = splitmix64(cfg->seed + 300 + (uint64_t)i);
		if (cfg->actors.late & LATE_OPEN)
			w->opens[i] = wan_create(&rc);
		if (cfg->appliance[i])
			w->engine[i] = make_engine(w, i);
	}
	if (world_forger_init(w) || world_overload_init(w) || world_late_init(w)) {
		world_destroy(w);
		return NULL;
	}
	return w;
}

void world_destroy(struct world *w)
{
	for (int i = 0; i < 2; i++) {
		rc_host_destroy(w->host[i]);
		engine_destroy(w->engine[i]);
		wan_destroy(w->reports[i]);
		wan_destroy(w->opens[i]);
		free(w->in_band[i]);
	}
	for (int i = 0; i < (w->is_guest ? 4 : 6); i++)
		wan_destroy(w->link[i]);
	for (uint32_t i = 0; i < w->nqps; i++)
		for (int s = 0; s < 2; s++)
			free(w->qp[i].side[s].seen);
	for (uint32_t i = 0; i < w->nqps; i++)
		readers_exit(&w->qp[i]);
	for (uint32_t i = 0; i < w->nqps; i++)
		storage_exit(&w->qp[i]);
	for (uint32_t i = 0; i < w->nqps; i++)
		world_order_exit(&w->qp[i]);
	world_crash_exit(w);
	world_forger_exit(w);
	world_overload_exit(w);
	world_late_exit(w);
	for (int i = 0; i < 2; i++)
		versions_clock_exit(&w->changes[i]);
	free(w);
}

void world_join(struct world *w, struct world *guest)
{
	for (int i = 0; i < 2; i++) {
		wan_destroy(guest->link[WORLD_WAN(i)]);
		guest->link[WORLD_WAN(i)] = w->link[WORLD_WAN(i)];
	}
	guest->is_guest = true;
	w->guest = guest;
}

void world_peer(struct world *w, int side, enum peer_event ev)
{
	if (w->engine[side] && !w->still[side].since)
		engine_peer_event(w->engine[side], 0, ev, w->now);
}

/* The new engine of @side has not seen what is under way, but learns sooner than others do: its
 * answers are here within a few round trips. */
static void begins_blind(struct world *w, int side)
{
	uint64_t ns = 100 * MS;

	for (int i = 0; i < 2; i++) {
		const struct wan_config *c = wan_config(w->link[WORLD_WAN(i)]);

		ns += 4 * (c->delay_ns + c->reorder_ns);
		if (c->rate_bps)
			ns += 4 * (c->queue_bytes * 8 * 1000 * MS / c->rate_bps);
	}
	engine_stood_still(w->engine[side], w->now, w->now - (ns < MATCH_NS ? MATCH_NS - ns : 0));
}

void world_restart(struct world *w, int side)
{
	for (uint32_t i = 0; i < w->nqps; i++) {
		struct rc_qp *req = w->qp[i].side[side].qp, *resp = w->qp[i].side[!side].qp;
		struct lane_info l;

		if (!w->qp[i].up)
			continue;
		w->qp[i].side[side].holed |= world_lane(&w->qp[i], side, &l) && l.custody.packets;
		/* also what is told on the way to the host */
		if (world_lane(&w->qp[i], side, &l) && l.custody.packets &&
		    psn_after(l.frontier, rc_qp_una(req)))
			w->qp[i].side[side].lost = true;
		if (world_renumbers(w) ? w->qp[i].side[side].ok_data > rc_messages(resp) ||
						 w->qp[i].side[side].ok_atomics > rc_atomics(resp)
				       : psn_after(rc_qp_una(req), rc_qp_epsn(resp)))
			w->qp[i].side[side].lost = true;
	}
	world_late_drop(w, side);
	undone_cancel(); /* another engine may come to lie where this one is */
	engine_destroy(w->engine[side]);
	w->engine[side] = make_engine(w, side);
	begins_blind(w, side);
	for (uint32_t i = 0; i < w->nqps; i++) {
		struct world_qp *q = &w->qp[i];
		int from = w->cfg.prefetch_single ? !side : side;

		if (q->side[from].numbered.dqpn) {
			q->side[from].stranded = true;
			engine_fail_orphan(w->engine[side], &q->side[from].numbered,
					   q->cfg[from].lqpn, NULL, w->now);
		}
		if (q->side[!side].numbered_far.dqpn)
			engine_fail_orphan(w->engine[side], &q->side[!side].numbered_far,
					   q->cfg[!side].lqpn, NULL, w->now);
	}
	world_peer(w, !side, PEER_RESTARTED);
}

void world_redeem(struct world *w, int side)
{
	uint64_t until = w->now + 100000 * MS;

	engine_drain(w->engine[side], w->now);
	while (!w->violation && w->now < until && !engine_may_stop(w->engine[side]))
		world_run(w, w->now + MS);
	if (engine_may_stop(w->engine[side]))
		world_restart(w, side);
}

void world_set_wan(struct world *w, int from, const struct wan_config *c)
{
	wan_set(w->link[WORLD_WAN(from)], c);
}
