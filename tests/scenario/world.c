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

static int sink_tx(void *ctx, unsigned int shard, enum engine_port port, const uint8_t *data,
		   uint32_t len, uint32_t seal)
{
	struct world_ctx *c = ctx;
	uint8_t sealed[WAN_FRAME_MAX];

	if (c->w->overload && c->w->now < c->w->overload->full_until[c->side][port])
		return -EAGAIN;
	if (port == PORT_LAN && c->w->cfg.lan_ring &&
	    wan_waiting(c->w->link[WORLD_LAN_OUT(c->side)], c->w->now) >= c->w->cfg.lan_ring)
		return -EAGAIN;
	if (world_crash_tx(c->w, c->side, shard, port, data, len, seal))
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

static void sink_report(void *ctx, unsigned int shard, unsigned int peer, const struct report *r)
{
	struct world_ctx *c = ctx;
	struct wan *to = world_reports(c->w, c->side, r);
	uint8_t *b;

	if (world_crash_report(c->w, c->side, shard, peer, r))
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

static void sink_event(void *ctx, unsigned int shard, const struct engine_event *ev)
{
	struct world_ctx *c = ctx;

	if (world_crash_event(c->w, c->side, shard, ev))
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

static int sink_hold(void *ctx, unsigned int shard, const struct flow_key *requests, uint32_t lqpn,
		     const struct template *headers, bool on)
{
	struct world_ctx *c = ctx;
	struct world *w = c->w;

	int side = w->cfg.prefetch_single ? !c->side : c->side; /* of the requester */

	(void)shard;
	world_port_hold(w, c->side, requests, lqpn, headers, on);
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
		(void)sink_tx(&w->ctx[side], 0, (enum engine_port)port, data, len - 4,
			      get_le32((const uint8_t *)data + len - 4));
	} else if (kind == 1) {
		memcpy(&r, data, sizeof(r));
		sink_report(&w->ctx[side], 0, port, &r);
	} else {
		memcpy(&ev, data, sizeof(ev));
		sink_event(&w->ctx[side], 0, &ev);
	}
}

/* The engines of @side without memory. */
static struct shards *new_shards(struct world *w, int side)
{
	const struct shards_sink sink = {.ctx = &w->ctx[side],
					 .tx = sink_tx,
					 .report = sink_report,
					 .event = sink_event,
					 .hold = sink_hold};

	return shards_new(world_cores(w, side), &sink);
}

static void have(struct world *w, int side, struct shards *s)
{
	w->shards[side] = s;
	w->engine[side] = s ? shards_engine(s, 0) : NULL;
}

void world_end(struct world *w, int side)
{
	shards_destroy(w->shards[side]);
	have(w, side, NULL);
}

/* The order is the daemon's (daemon/daemon_open.c). */
const char *world_adopt(struct world *w, int side, const int *files)
{
	struct shards *s = new_shards(w, side);
	const char *why = NULL;

	if (!shards_adopt(s, &w->cfg.engine, files, w->now, &why)) {
		shards_destroy(s);
		return why;
	}
	have(w, side, s);
	world_rules(w, side);
	world_tell_peer(w, side);
	world_rules(w, side);
	/* as the daemon does with the table of what is held */
	for (uint32_t i = 0; i < w->nqps; i++) {
		struct flow_key *k = &w->qp[i].side[side].numbered;

		if (k->dqpn && !shards_holds(s, k))
			*k = (struct flow_key){0};
		k = &w->qp[i].side[!side].numbered_far;
		if (k->dqpn && !shards_holds(s, k))
			*k = (struct flow_key){0};
	}
	world_heirs_found(w, side, true);
	shards_go_on(s, w->now);
	return NULL;
}

/* The rule of all appliances. */
static struct rule rule_of(const struct world *w)
{
	struct rule r = {.nnear = 1, .nfar = 1, .vlan = RULE_ANY_VLAN, .learn = LEARN_CM};

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
	return r;
}

static void make_engines(struct world *w, int side, const int *files)
{
	struct engine_config cfg = w->cfg.engine;
	struct shards *s = new_shards(w, side);

	cfg.seed = splitmix64(w->cfg.seed * 2 + (uint64_t)side + w->now);
	world_heirs_expect(w, side, s);
	if (!shards_create(s, &cfg, files, w->now)) {
		shards_destroy(s);
		return;
	}
	have(w, side, s);
	world_rules(w, side);
	w->peer[side].up = !w->cfg.single;
	w->peer[side].restarted = false;
	world_tell_peer(w, side);
}

/* And they have ended a batch, before which nobody can go on with them. */
static void begin_engines(struct world *w, int side)
{
	make_engines(w, side, world_crash_files(w, side));
	if (w->crash && !w->heirs)
		shards_tick(w->shards[side], w->now);
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
	w->rule = rule_of(w);
	world_heirs_init(w);
	if (world_port_init(w))
		abort();
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
			begin_engines(w, i);
	}
	if (world_forger_init(w) || world_overload_init(w) || world_late_init(w) ||
	    world_queues_init(w)) {
		world_destroy(w);
		return NULL;
	}
	return w;
}

void world_destroy(struct world *w)
{
	for (int i = 0; i < 2; i++) {
		rc_host_destroy(w->host[i]);
		world_end(w, i);
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
	world_heirs_exit(w);
	world_port_exit(w);
	world_forger_exit(w);
	world_overload_exit(w);
	world_late_exit(w);
	world_queues_exit(w);
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
	undone_cancel(); /* this is not noted (engine_stood_still()) */
	shards_stood_still(w->shards[side], w->now, w->now - (ns < MATCH_NS ? MATCH_NS - ns : 0));
}

void world_replace(struct world *w, int side, const int *files)
{
	make_engines(w, side, files);
	begins_blind(w, side);
	world_heirs_found(w, side, false);
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
	world_queues_drop(w, side);
	w->unruled[side] = false;
	undone_cancel(); /* another engine may come to lie where this one is */
	world_end(w, side);
	begin_engines(w, side);
	begins_blind(w, side);
	for (uint32_t i = 0; i < w->nqps; i++) {
		struct world_qp *q = &w->qp[i];
		int from = w->cfg.prefetch_single ? !side : side;

		if (q->side[from].numbered.dqpn) {
			q->side[from].stranded = true;
			shards_fail_orphan(w->shards[side], &q->side[from].numbered,
					   q->cfg[from].lqpn, NULL, w->now);
		}
		if (q->side[!side].numbered_far.dqpn)
			shards_fail_orphan(w->shards[side], &q->side[!side].numbered_far,
					   q->cfg[!side].lqpn, NULL, w->now);
	}
	world_heirs_found(w, side, false);
	world_crash_soon(w, side);
	world_peer(w, !side, PEER_RESTARTED);
}

void world_redeem(struct world *w, int side)
{
	uint64_t until = w->now + 100000 * MS;

	shards_drain(w->shards[side], w->now);
	while (!w->violation && w->now < until && !shards_may_stop(w->shards[side]))
		world_run(w, w->now + MS);
	if (shards_may_stop(w->shards[side]))
		world_restart(w, side);
}

void world_set_wan(struct world *w, int from, const struct wan_config *c)
{
	wan_set(w->link[WORLD_WAN(from)], c);
}
