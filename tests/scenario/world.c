/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "tests/scenario/world.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/scenario/readers.h"
#include "wire/icrc.h"
#include "wire/psn.h"

#define MS 1000000ull
/* Ethernet, IPv4, UDP; header and tag of the datagram; header and fixed part of the message */
#define PROGRESS_BYTES (14 + 20 + 8 + 20 + 16 + 4 + 34)

static uint64_t min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

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

static void link_send(struct world *w, int link, const uint8_t *data, uint32_t len)
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

/* ---- what must hold at every moment ---- */

/* The lane of the requests of host @s, as its own appliance shows it. */
static bool lane_of(struct world_qp *q, int s, struct lane_info *out)
{
	struct world *w = q->w;
	const struct rc_qp_config *c = &q->cfg[s];
	struct conn_info ci;

	if (w->engine[s] && engine_conn_next(w->engine[s], q->side[s].conn, w->now, &ci) &&
	    ci.paired && ci.lqpn == c->lqpn && ci.rqpn == c->rqpn) {
		*out = ci.lane[LANE_OUT];
		return true;
	}
	if (!world_conn(w, s, q, &ci))
		return false;
	q->side[s].conn = ci.id;
	*out = ci.lane[LANE_OUT];
	return true;
}

/*
 * No frame of a request that is in custody goes over the WAN but the one that was retained. Hosts number their
 * IPv4 packets, so what a host sends again differs from what it sent first.
 */
static void check_forwarded(struct world *w, int side, const uint8_t *data, uint32_t len)
{
	struct world_seen *seen;
	struct world_qp *q;
	struct lane_info l;
	struct rc_qp *qp;
	struct frame f;
	uint32_t icrc;

	if (frame_parse(data, len, &f) != FRAME_OK || !(f.op->flags & OPF_REQUEST) ||
	    (f.op->flags & OPF_ANSWERED))
		return;
	qp = rc_qp_find(w->host[!side], f.dqpn);
	q = qp ? rc_qp_user(qp) : NULL;
	if (!q || !q->up || !q->side[side].seen || (w->cfg.lan.corrupt > 0 && !icrc_ok(&f)))
		return; /* a damaged frame may belong to nobody, and is the host's to judge */
	seen = &q->side[side].seen[f.psn % WORLD_SEEN];
	memcpy(&icrc, data + f.icrc, 4);
	if (seen->psn != f.psn || seen->gen != w->held_gen[side]) {
		*seen = (struct world_seen){f.psn, icrc, w->held_gen[side]};
		return;
	}
	if (seen->icrc == icrc || q->reused || !lane_of(q, side, &l) ||
	    (l.state != LANE_HELD && l.state != LANE_DRAIN) || !psn_in(f.psn, l.tack, l.epsn))
		return;
	w->violation = "a host's duplicate of what is in custody went over the WAN";
}

/* What host @s was told: is it executed, or does somebody answer for it? */
static const char *check_custody(struct world_qp *q, int s)
{
	struct rc_qp *req = q->side[s].qp, *resp = q->side[!s].qp;
	struct lane_info l;
	uint32_t una, epsn;

	if (!q->up)
		return NULL;
	una = rc_qp_una(req);
	epsn = rc_qp_epsn(resp);
	if (rc_qp_in_error(req) || rc_qp_in_error(resp) || q->side[s].lost || q->reused)
		return NULL;
	if (q->w->cfg.read_ahead) {
		/* the appliances may count in PSNs of their own: go by messages */
		if (q->side[s].ok_data <= rc_messages(resp))
			return NULL;
	} else if (!psn_after(una, epsn)) {
		return NULL;
	}
	if (!lane_of(q, s, &l) ||
	    (l.state != LANE_HELD && l.state != LANE_DRAIN && l.state != LANE_FAULT))
		return "1: acknowledged, not executed, and in nobody's custody";
	if (l.state == LANE_FAULT) {
		if (!q->side[s].fault_at) {
			q->side[s].fault_at = q->w->now;
			q->side[s].fault_una = una;
		} else if (q->w->now > q->side[s].fault_at + MS && una != q->side[s].fault_una) {
			return "5: success after a fault";
		}
		return NULL;
	}
	if (q->w->cfg.read_ahead)
		return l.custody.messages < q->side[s].ok_data - rc_messages(resp)
			       ? "1: acknowledged and not executed, and too little is in custody"
			       : NULL;
	if (psn_before(l.epsn, una))
		return "1: acknowledged beyond what is held";
	if (psn_after(l.tack, epsn))
		return "4: released before the responder had it";
	return NULL;
}

static void check_told(struct world *w, int side, const uint8_t *data, uint32_t len)
{
	struct rc_qp *qp;
	struct frame f;

	if (w->violation || frame_parse(data, len, &f) != FRAME_OK || !(f.op->flags & OPF_RESPONSE))
		return;
	qp = rc_qp_find(w->host[side], f.dqpn);
	if (qp)
		w->violation = check_custody(rc_qp_user(qp), side);
}

static int sink_tx(void *ctx, enum engine_port port, const uint8_t *data, uint32_t len)
{
	struct {
		struct world *w;
		int side;
	} *c = ctx;

	if (port == PORT_WAN && c->w->cfg.check_custody)
		check_forwarded(c->w, c->side, data, len);
	link_send(c->w, port == PORT_LAN ? WORLD_LAN_OUT(c->side) : WORLD_WAN(c->side), data, len);
	return 0;
}

static void sink_report(void *ctx, unsigned int peer, const struct report *r)
{
	struct {
		struct world *w;
		int side;
	} *c = ctx;
	uint8_t *b = peer ? NULL : wan_buf(c->w->reports[c->side]);

	if (!b)
		return; /* there is only peer 0; others exist in forged reports */
	memcpy(b, r, sizeof(*r));
	c->w->report_bytes[c->side] += PROGRESS_BYTES + 6ull * r->nholes;
	wan_send(c->w->reports[c->side], c->w->now, sizeof(*r));
}

static void sink_event(void *ctx, const struct engine_event *ev)
{
	struct {
		struct world *w;
		int side;
	} *c = ctx;

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
	default:
		break;
	}
}

static int sink_hold(void *ctx, const struct flow_key *requests, uint32_t lqpn, bool on)
{
	struct {
		struct world *w;
		int side;
	} *c = ctx;
	struct world *w = c->w;

	for (uint32_t i = 0; i < w->nqps; i++)
		if (w->qp[i].cfg[c->side].lqpn == lqpn)
			w->qp[i].side[c->side].numbered = on ? *requests : (struct flow_key){0};
	return 0;
}

static uint8_t *host_buf(void *ctx)
{
	struct {
		struct world *w;
		int side;
	} *c = ctx;

	return wan_buf(c->w->link[WORLD_LAN_IN(c->side)]);
}

static void host_tx(void *ctx, uint8_t *buf, uint32_t len)
{
	struct {
		struct world *w;
		int side;
	} *c = ctx;

	if (c->w->tap)
		c->w->tap(c->w, WORLD_LAN_IN(c->side), buf, len);
	wan_send(c->w->link[WORLD_LAN_IN(c->side)], c->w->now, len);
}

static void post_more(struct world_qp *q, int side);

static void host_complete(void *ctx, struct rc_qp *qp, const struct rc_completion *comp)
{
	struct {
		struct world *w;
		int side;
	} *c = ctx;
	struct world_qp *q = rc_qp_user(qp);
	bool data = comp->op < RC_READ;

	c->w->finished++;
	c->w->frames_at = c->w->frames;
	if (comp->status == RC_OK) {
		q->side[c->side].ok++;
		q->side[c->side].ok_data += data;
		if (data && q->up && !q->reused && c->w->cfg.check_custody && !q->side[c->side].lost &&
		    (c->w->cfg.policy != POLICY_EARLY || !c->w->engine[c->side]) &&
		    comp->number >= rc_messages(q->side[!c->side].qp))
			c->w->violation = "completed before it was executed, against the policy";
		q->side[c->side].bytes += comp->length;
		q->side[c->side].last_ok_at = c->w->now;
		if (comp->checked && !comp->intact)
			q->side[c->side].data_wrong = true;
	} else {
		if (!q->side[c->side].failed++)
			q->side[c->side].status = comp->status;
		return;
	}
	post_more(q, c->side);
}

static void host_receive(void *ctx, struct rc_qp *qp, const struct rc_message *m)
{
	struct {
		struct world *w;
		int side;
	} *c = ctx;

	if (!m->intact)
		c->w->violation = "a responder received bytes that were never sent like that";
	readers_received(rc_qp_user(qp), c->side, m->number);
}

static void host_atomic(void *ctx, struct rc_qp *qp, uint64_t number)
{
	struct {
		struct world *w;
		int side;
	} *c = ctx;

	readers_atomic(rc_qp_user(qp), c->side, number);
}

static bool host_read(void *ctx, struct rc_qp *qp, const struct rc_read_data *d)
{
	struct {
		struct world *w;
		int side;
	} *c = ctx;
	const char *bad = readers_check(rc_qp_user(qp), c->side, d);

	if (bad && !c->w->violation)
		c->w->violation = bad;
	return !bad;
}

static struct engine *make_engine(struct world *w, int side)
{
	struct engine_sink sink = {
		.ctx = &w->ctx[side], .tx = sink_tx, .report = sink_report, .event = sink_event, .hold = sink_hold};
	struct engine_config cfg = w->cfg.engine;
	struct rule r = {.nnear = 1, .nfar = 1, .vlan = RULE_ANY_VLAN, .learn = LEARN_CM | LEARN_PSN};
	struct engine *e;

	cfg.seed = splitmix64(w->cfg.seed * 2 + (uint64_t)side + w->now);
	e = engine_create(&cfg, &sink, w->now);
	if (!e)
		return NULL;
	snprintf(r.name, sizeof(r.name), "all");
	r.peer = w->cfg.single ? PEER_NONE : 0;
	r.policy = w->cfg.policy;
	r.read_ahead = w->cfg.read_ahead;
	r.read_max_age_ns = w->cfg.read_max_age_ns;
	r.path_mtu = w->cfg.path_mtu;
	engine_rules(e, &r, 1, w->now);
	if (!w->cfg.single)
		engine_peer_event(e, 0, PEER_UP, w->now);
	return e;
}

struct world *world_create(const struct world_config *cfg)
{
	struct world *w = calloc(1, sizeof(*w));
	struct rc_host_ops ops = {
		.tx_buf = host_buf, .tx = host_tx, .complete = host_complete, .receive = host_receive,
		.atomic = host_atomic, .read = host_read};

	w->cfg = *cfg;
	prng_init(&w->rng, cfg->seed ^ 0x7e9047);
	w->now = 1000 * MS;
	for (int i = 0; i < 6; i++) {
		struct wan_config c = i < 4 ? cfg->lan : cfg->wan;

		c.seed = splitmix64(cfg->seed + 100 + (uint64_t)i);
		w->link[i] = wan_create(&c);
	}
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
					.store_bytes = 16 << 20,
					.seed = splitmix64(cfg->seed + 200 + (uint64_t)i)};

		w->ctx[i].w = w;
		w->ctx[i].side = i;
		w->host[i] = rc_host_create(&hc, &ops, &w->ctx[i]);
		w->reports[i] = wan_create(&rc);
		if (cfg->appliance[i])
			w->engine[i] = make_engine(w, i);
	}
	return w;
}

void world_destroy(struct world *w)
{
	for (int i = 0; i < 2; i++) {
		rc_host_destroy(w->host[i]);
		engine_destroy(w->engine[i]);
		wan_destroy(w->reports[i]);
	}
	for (int i = 0; i < 6; i++)
		wan_destroy(w->link[i]);
	for (uint32_t i = 0; i < w->nqps; i++)
		for (int s = 0; s < 2; s++)
			free(w->qp[i].side[s].seen);
	for (uint32_t i = 0; i < w->nqps; i++)
		readers_exit(&w->qp[i]);
	for (int i = 0; i < 2; i++)
		versions_clock_exit(&w->changes[i]);
	free(w);
}

void world_peer(struct world *w, int side, enum peer_event ev)
{
	if (w->engine[side])
		engine_peer_event(w->engine[side], 0, ev, w->now);
}

void world_restart(struct world *w, int side)
{
	for (uint32_t i = 0; i < w->nqps; i++) {
		struct rc_qp *req = w->qp[i].side[side].qp, *resp = w->qp[i].side[!side].qp;
		struct lane_info l;

		if (!w->qp[i].up)
			continue;
		/* also what is told on the way to the host */
		if (lane_of(&w->qp[i], side, &l) && l.custody.packets && psn_after(l.frontier, rc_qp_una(req)))
			w->qp[i].side[side].lost = true;
		if (w->cfg.read_ahead ? w->qp[i].side[side].ok_data > rc_messages(resp)
				      : psn_after(rc_qp_una(req), rc_qp_epsn(resp)))
			w->qp[i].side[side].lost = true;
	}
	engine_destroy(w->engine[side]);
	w->engine[side] = make_engine(w, side);
	for (uint32_t i = 0; i < w->nqps; i++) {
		struct world_qp *q = &w->qp[i];

		if (!q->side[side].numbered.dqpn)
			continue;
		q->side[side].stranded = true;
		engine_strand(w->engine[side], &q->side[side].numbered, q->cfg[side].lqpn, w->now);
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

static struct world_qp *new_qp(struct world *w, struct rc_qp_config *a, enum rc_personality other)
{
	struct world_qp *q = &w->qp[w->nqps];

	q->w = w;
	q->id = w->nqps++;
	if (!a->src.b[15]) {
		ip_addr_parse("10.1.0.1", &a->src);
		ip_addr_parse("10.2.0.1", &a->dst);
	}
	if (!a->smac[0]) {
		memcpy(a->smac, "\x02\0\0\0\0\1", 6);
		memcpy(a->dmac, "\x02\0\0\0\0\2", 6);
	}
	q->cfg[0] = *a;
	rc_qp_mirror(&q->cfg[1], a);
	q->cfg[1].personality = other;
	for (int i = 0; i < 2; i++) {
		q->side[i].up = q;
		prng_init(&q->side[i].rng, w->cfg.seed * 1000 + q->id * 2 + (uint64_t)i);
		if (w->cfg.check_custody)
			q->side[i].seen = calloc(WORLD_SEEN, sizeof(struct world_seen));
	}
	return q;
}

/* One end; the other may exist already. */
static bool make_end(struct world_qp *q, int i)
{
	q->side[i].qp = rc_qp_create(q->w->host[i], &q->cfg[i], q);
	q->up = q->side[0].qp && q->side[1].qp;
	return q->side[i].qp;
}

static void begin_work(struct world_qp *q)
{
	struct work k;

	for (int i = 0; i < 2; i++)
		if (q->pending[i].left) {
			k = q->pending[i];
			world_work(q, i, &k);
		}
}

struct world_qp *world_connect(struct world *w, struct rc_qp_config *a, enum rc_personality other)
{
	struct world_qp *q = new_qp(w, a, other);

	return make_end(q, 0) && make_end(q, 1) ? q : NULL;
}

/* ---- by the connection manager ---- */

static void shake(struct world_qp *q)
{
	uint64_t interval = 20 * MS + 4 * q->w->cfg.wan.delay_ns;
	uint32_t id = ++q->incarnation << 8 | q->id << 1;

	rc_cm_connect(&q->cm[0], &q->cfg[0], id, interval);
	rc_cm_listen(&q->cm[1], &q->cfg[1], id | 1, interval);
	q->w->shaking += !q->shaking;
	q->shaking = true;
}

struct world_qp *world_connect_cm(struct world *w, struct rc_qp_config *a, enum rc_personality other)
{
	struct world_qp *q = new_qp(w, a, other);

	shake(q);
	return q;
}

static void shaken(struct world_qp *q)
{
	q->shaking = false;
	q->w->shaking--;
}

static void shake_run(struct world *w)
{
	uint8_t buf[CM_FRAME_MAX];

	for (uint32_t i = 0; i < w->nqps; i++) {
		struct world_qp *q = &w->qp[i];

		if (!q->shaking)
			continue;
		for (int s = 0; s < 2; s++) {
			uint32_t len = rc_cm_poll(&q->cm[s], w->now, buf);

			if (len)
				link_send(w, WORLD_LAN_IN(s), buf, len);
		}
		/* the passive end receives from its REP on */
		if (q->cm[1].state == RC_CM_REP_SENT && !q->side[1].qp)
			make_end(q, 1);
		if (q->cm[0].state == RC_CM_UP && q->side[1].qp && !q->side[0].qp) {
			make_end(q, 0);
			begin_work(q);
		}
		if ((q->cm[0].state == RC_CM_UP && q->cm[1].state == RC_CM_UP) ||
		    (q->cm[0].state == RC_CM_DOWN && q->cm[1].state == RC_CM_DOWN) ||
		    q->cm[0].state == RC_CM_FAILED || q->cm[1].state == RC_CM_FAILED)
			shaken(q);
	}
}

static uint64_t shake_next(const struct world *w)
{
	uint64_t t = UINT64_MAX;

	for (uint32_t i = 0; i < w->nqps; i++)
		for (int s = 0; s < 2; s++)
			if (w->qp[i].shaking)
				t = min64(t, rc_cm_next(&w->qp[i].cm[s]));
	return t;
}

static void shake_rx(struct world *w, int side, const uint8_t *data, uint32_t len)
{
	struct frame f;
	struct cm in;

	if (frame_parse(data, len, &f) != FRAME_OK || f.opcode != OP_UD_SEND_ONLY || !icrc_ok(&f))
		return;
	if (cm_parse(&f, &in) == CM_NONE)
		return;
	for (uint32_t i = 0; i < w->nqps; i++) {
		struct world_qp *q = &w->qp[i];

		/* the one that listens for it */
		if (q->shaking && (in.type != CM_REQ || in.local_id == q->cm[!side].out.local_id))
			rc_cm_rx(&q->cm[side], w->now, &f);
	}
}

void world_disconnect(struct world_qp *q, bool tell)
{
	struct world *w = q->w;
	const char *bad = NULL;

	for (int s = 0; s < 2 && !bad; s++)
		bad = world_verify_qp(q, s, false);
	if (bad && !w->violation)
		w->violation = bad;
	readers_exit(q);
	for (int s = 0; s < 2; s++) {
		q->pending[s] = q->up ? q->side[s].work : q->pending[s];
		memset(&q->side[s].work, 0, sizeof(q->side[s].work));
		if (q->side[s].qp)
			rc_qp_destroy(q->side[s].qp);
		q->side[s].qp = NULL;
		q->side[s].ok_data = q->side[s].failed = 0;
		q->side[s].fault_at = q->side[s].conn = 0;
		q->side[s].lost = false;
		if (q->side[s].seen)
			memset(q->side[s].seen, 0, WORLD_SEEN * sizeof(struct world_seen));
	}
	q->up = false;
	if (q->shaking)
		shaken(q);
	if (!tell || q->cm[0].state != RC_CM_UP || q->cm[1].state != RC_CM_UP)
		return;
	rc_cm_disconnect(&q->cm[0]);
	q->shaking = true;
	w->shaking++;
}

void world_reconnect(struct world_qp *q, uint32_t sq_psn, uint32_t rq_psn, bool by_cm)
{
	struct rc_qp_config *a = &q->cfg[0];
	enum rc_personality other = q->cfg[1].personality;

	a->sq_psn = sq_psn;
	a->rq_psn = rq_psn;
	a->tx_seed += 0x100000;
	a->rx_seed += 0x100000;
	rc_qp_mirror(&q->cfg[1], a);
	q->cfg[1].personality = other;
	if (by_cm) {
		shake(q);
		return;
	}
	q->incarnation++;
	q->reused = true;
	memset(q->cm, 0, sizeof(q->cm));
	if (make_end(q, 0) && make_end(q, 1))
		begin_work(q);
}

static void post_more(struct world_qp *q, int side)
{
	struct work *k = &q->side[side].work;
	struct rc_qp *qp = q->side[side].qp;
	const struct rc_qp_config *c = rc_qp_config(qp);
	struct prng *rng = &q->side[side].rng;
	uint64_t size = c->rmr_fixed ? c->rmr_fixed : c->rmr_size;

	while (k->left && rc_qp_room(qp) &&
	       (!k->outstanding || rc_qp_queued(qp) < k->outstanding)) {
		struct rc_wr wr = {.wr_id = k->left};
		uint32_t op;

		do
			op = prng_below(rng, RC_OPS);
		while (!(k->ops & 1u << op));
		wr.op = op;
		wr.length = k->min + (k->max > k->min ? prng_below(rng, k->max - k->min + 1) : 0);
		if (op == RC_CMP_SWAP || op == RC_FETCH_ADD) {
			wr.length = 8;
			wr.swap_add = prng_next(rng);
			wr.compare = prng_next(rng);
		}
		if (op >= RC_WRITE && op != RC_SEND_INV && size > wr.length)
			wr.va = c->rmr_va + (prng_next(rng) % (size - wr.length) & ~7ull);
		else
			wr.va = c->rmr_va;
		wr.imm = (uint32_t)prng_next(rng);
		if (op == RC_READ && k->streams)
			readers_read(q, side, &wr);
		readers_posting(q, side, &wr);
		if (rc_post(qp, q->w->now, &wr))
			break;
		k->left--;
	}
}

void world_work(struct world_qp *q, int side, const struct work *work)
{
	if (!q->up) {
		q->pending[side] = *work;
		return;
	}
	memset(&q->pending[side], 0, sizeof(q->pending[side]));
	q->side[side].work = *work;
	if (q->change_ns[!side] && work->changing)
		readers_start(q, !side, q->change_ns[!side]);
	post_more(q, side);
}

/* ---- time ---- */

static bool seen(struct world *w, int link, const uint8_t *data, uint32_t len)
{
	w->frames++;
	w->packets += link < 2;
	if (w->cfg.trace)
		trace_frame(w, link, data, len);
	return !w->filter || w->filter(w, link, data, len);
}

static void deliver_link(struct world *w, int i)
{
	const uint8_t *data;
	uint32_t len;

	while ((data = wan_pop(w->link[i], w->now, &len))) {
		int side = i & 1;

		if (!seen(w, i, data, len))
			continue;
		if (i >= 4) { /* from side's WAN port to the other appliance */
			if (w->engine[!side])
				engine_rx(w->engine[!side], PORT_WAN, data, len, w->now);
			else
				link_send(w, WORLD_LAN_OUT(!side), data, len);
		} else if (i < 2) {
			if (w->engine[side])
				engine_rx(w->engine[side], PORT_LAN, data, len, w->now);
			else
				link_send(w, WORLD_WAN(side), data, len);
		} else {
			if (w->shaking)
				shake_rx(w, side, data, len);
			rc_host_rx(w->host[side], w->now, data, len);
			if (w->cfg.check_custody)
				check_told(w, side, data, len);
		}
	}
}

/* The same report as somebody may have made it who knows the form, but not what is going on. */
static void forge(struct world *w, int from, struct report r)
{
	struct prng *p = &w->rng;
	unsigned int peer = 0;

	switch (prng_below(p, 5)) {
	case 0:
		r.gen += 1 + prng_below(p, UINT32_MAX);
		break;
	case 1:
		r.lane = prng_hit(p, 0.5) ? prng_below(p, 16) : (uint32_t)prng_next(p);
		r.gen += 1 + prng_below(p, UINT32_MAX);
		break;
	case 2:
		r.type = (uint8_t)prng_below(p, 256);
		r.gen += 1 + prng_below(p, UINT32_MAX);
		break;
	case 3:
		peer = 1 + prng_below(p, PEER_MAX);
		break;
	default:
		r.seq++;
		r.cum = (uint32_t)prng_next(p) & PSN_MASK;
		r.hi = (uint32_t)prng_next(p) & PSN_MASK;
		r.tack = (uint32_t)prng_next(p) & PSN_MASK;
		r.room = (uint32_t)prng_next(p) & PSN_MASK;
		r.start_psn = (uint32_t)prng_next(p) & PSN_MASK;
		r.key.dqpn = (uint32_t)prng_next(p) & PSN_MASK;
		r.nholes = (uint8_t)prng_below(p, REPORT_HOLES + 1);
		for (uint8_t i = 0; i < r.nholes; i++)
			r.hole[i] = (struct psn_range){(uint32_t)prng_next(p) & PSN_MASK,
						       (uint32_t)prng_next(p) & PSN_MASK};
	}
	engine_rx_report(w->engine[!from], peer, &r, w->now);
}

static void deliver_reports(struct world *w, int from)
{
	const uint8_t *data;
	uint32_t len;

	while ((data = wan_pop(w->reports[from], w->now, &len))) {
		struct report r;

		memcpy(&r, data, sizeof(r));
		if (!w->engine[!from])
			continue;
		if (w->cfg.trace)
			trace_report(w, from, &r);
		engine_rx_report(w->engine[!from], 0, &r, w->now);
		if (prng_hit(&w->rng, w->cfg.report_replay) && w->npast[from])
			engine_rx_report(w->engine[!from], 0,
					 &w->past[from][prng_below(&w->rng, w->npast[from] < 64 ? w->npast[from] : 64)],
					 w->now);
		if (w->cfg.report_replay > 0 && prng_hit(&w->rng, 0.1))
			w->past[from][w->npast[from]++ % 64] = r;
		if (prng_hit(&w->rng, w->cfg.report_forge))
			forge(w, from, r);
	}
}

static uint64_t next_event(struct world *w)
{
	uint64_t t = w->changes[0].when || w->changes[1].when ? readers_next(w) : UINT64_MAX;

	for (int i = 0; i < 6; i++)
		t = min64(t, wan_next(w->link[i]));
	if (w->shaking)
		t = min64(t, shake_next(w));
	for (int i = 0; i < 2; i++) {
		t = min64(t, rc_host_next(w->host[i]));
		t = min64(t, wan_next(w->reports[i]));
		if (w->engine[i])
			t = min64(t, engine_deadline(w->engine[i]));
	}
	return t;
}

static void step(struct world *w)
{
	w->events++;
	if (w->cfg.frames_max && w->frames - w->frames_at > w->cfg.frames_max)
		w->violation = "frames without end";
	if (w->changes[0].when || w->changes[1].when)
		readers_run(w);
	for (int i = 0; i < 6; i++)
		deliver_link(w, i);
	for (int i = 0; i < 2; i++)
		deliver_reports(w, i);
	if (w->shaking)
		shake_run(w);
	for (int i = 0; i < 2; i++) {
		if (w->engine[i])
			engine_tick(w->engine[i], w->now);
		rc_host_poll(w->host[i], w->now, 64);
	}
	if (w->cfg.check_every && w->events % w->cfg.check_every == 0)
		for (int i = 0; i < 2; i++)
			if (w->engine[i] && !w->violation)
				w->violation = engine_check(w->engine[i]);
}

void world_run(struct world *w, uint64_t until)
{
	while (!w->violation) {
		uint64_t t = next_event(w);

		if (t > until) {
			w->now = until;
			return;
		}
		if (t > w->now)
			w->now = t;
		step(w);
		if (w->pause_at && w->finished >= w->pause_at)
			return;
	}
}

static bool done(struct world *w)
{
	for (uint32_t i = 0; i < w->nqps; i++)
		for (int s = 0; s < 2; s++) {
			struct rc_qp *qp = w->qp[i].side[s].qp;

			if (w->qp[i].shaking)
				return false;
			if (!w->qp[i].up)
				continue;
			/* a permissive host asks a dead one, or for what nobody has any more, for ever */
			if (!rc_qp_in_error(qp) && !rc_qp_in_error(w->qp[i].side[!s].qp) &&
			    !w->qp[i].side[s].lost &&
			    (w->qp[i].side[s].work.left || rc_qp_queued(qp)))
				return false;
		}
	for (int s = 0; s < 2; s++)
		if (w->engine[s] && engine_custody(w->engine[s], -1, w->now).packets)
			return false;
	return true;
}

bool world_run_done(struct world *w, uint64_t until)
{
	while (!w->violation && w->now < until) {
		if (done(w))
			return true;
		for (int i = 0; i < 1000 && !w->violation; i++) {
			uint64_t t = next_event(w);

			if (t > until) {
				w->now = until;
				break;
			}
			/* after the end there is nothing but idle timers: look often then */
			if (t > w->now + MS)
				i += 500;
			if (t > w->now)
				w->now = t;
			step(w);
		}
	}
	return done(w) && !w->violation;
}

const char *world_verify_qp(struct world_qp *q, int s, bool complete)
{
	struct rc_qp *req = q->side[s].qp, *resp = q->side[!s].qp;

	if (!q->up)
		return NULL;
	if (q->w->cfg.check_range && rc_qp_stats(resp)->reads_out_of_range)
		return "a READ went outside of the responder's region";
	if (q->side[s].data_wrong)
		return "a READ or atomic brought wrong data";
	if (rc_check_prefix(req, resp))
		return "3: what was executed is not a prefix of what was posted";
	if (!complete)
		return NULL;
	if (q->side[s].failed || rc_qp_in_error(req))
		return "a queue pair failed";
	if (rc_check_all(req, resp))
		return "something that was posted did not arrive";
	if (rc_qp_config(req)->shadow && rc_check_memory(req, resp) >= 0)
		return "the responder's memory is not what it must be";
	return NULL;
}

const char *world_verify(struct world *w, bool complete)
{
	if (w->violation)
		return w->violation;
	for (int s = 0; s < 2; s++)
		if (w->engine[s]) {
			const char *bad = engine_check(w->engine[s]);

			if (bad)
				return bad;
		}
	for (uint32_t i = 0; i < w->nqps; i++)
		for (int s = 0; s < 2; s++) {
			const char *bad = world_verify_qp(&w->qp[i], s, complete);

			if (bad)
				return bad;
		}
	return NULL;
}

bool world_conn(struct world *w, int side, const struct world_qp *q, struct conn_info *out)
{
	const struct rc_qp_config *c = &q->cfg[side];
	uint32_t from = 0;

	while (w->engine[side] && engine_conn_next(w->engine[side], from, w->now, out)) {
		from = out->id + 1;
		if (out->paired && out->lqpn == c->lqpn && out->rqpn == c->rqpn)
			return true;
	}
	return false;
}

void world_dump(struct world *w, FILE *out)
{
	fprintf(out, "seed %" PRIu64 " now %.3f ms events %" PRIu64 " frames %" PRIu64 "\n",
		w->cfg.seed, (double)w->now / 1e6, w->events, w->frames);
	for (int s = 0; s < 2; s++) {
		struct conn_info ci;
		uint32_t from = 0;

		if (!w->engine[s])
			continue;
		while (engine_conn_next(w->engine[s], from, w->now, &ci)) {
			from = ci.id + 1;
			fprintf(out, "engine %d: lqpn %06x rqpn %06x paired %d learned %s mtu %u rule %d\n", s,
				ci.lqpn, ci.rqpn, ci.paired, learn_source_name(ci.learned_by),
				ci.path_mtu, ci.rule);
			for (int l = 0; l < 2; l++) {
				struct lane_info *i = &ci.lane[l];

				fprintf(out,
					"  %s %s%s epsn %06x front %06x tack %06x sent %06x msn %u custody %" PRIu64
					" transit %" PRIu64 " reads %u req %" PRIu64 " packs %" PRIu64
					" tacks %" PRIu64 " dup %" PRIu64 " retx %" PRIu64 " naks %" PRIu64
					" to %" PRIu64 " rnr %" PRIu64 " srtt %.2f ms reason %s\n",
					l ? "in " : "out", lane_state_name(i->state),
					i->opener ? " opener" : "", i->epsn, i->frontier, i->tack, i->sent,
					i->msn, i->custody.packets, i->transit.packets, i->reads_pending,
					i->requests, i->pseudo_acks, i->true_acks, i->dropped_duplicates,
					i->retransmits, i->naks_sent, i->timeouts, i->rnr,
					(double)i->srtt_ns / 1e6, lane_reason_name(i->reason));
			}
		}
		for (int c = 0; c < EC_COUNT; c++)
			if (engine_counter(w->engine[s], c))
				fprintf(out, "  %s=%" PRIu64, engine_counter_name(c),
					engine_counter(w->engine[s], c));
		fprintf(out, "\n");
	}
	for (uint32_t i = 0; i < w->nqps; i++)
		for (int s = 0; s < 2; s++) {
			struct rc_qp *qp = w->qp[i].side[s].qp;
			const struct rc_stats *st;

			if (!qp) {
				fprintf(out, "qp %u side %d: none\n", i, s);
				continue;
			}
			st = rc_qp_stats(qp);
			fprintf(out,
				"qp %u side %d: ok %" PRIu64 " failed %" PRIu64 " (%s) queued %u una %06x end %06x epsn %06x"
				" msn %u retx %" PRIu64 " timeouts %" PRIu64 " naks %" PRIu64 " rnr %" PRIu64
				" rx msgs %" PRIu64 " dups %" PRIu64 " oos %" PRIu64 "%s\n",
				i, s, w->qp[i].side[s].ok, w->qp[i].side[s].failed,
				rc_status_name(w->qp[i].side[s].status), rc_qp_queued(qp), rc_qp_una(qp),
				rc_qp_sent_end(qp), rc_qp_epsn(qp), rc_qp_msn(qp), st->retransmits,
				st->timeouts, st->rx_seq_naks, st->rx_rnr, st->rx_messages, st->duplicates,
				st->out_of_seq, rc_qp_in_error(qp) ? " ERROR" : "");
		}
}
