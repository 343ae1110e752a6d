/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "tests/scenario/world.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "wire/psn.h"

#define MS 1000000ull

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

	if (!b) {
		wan_no_room(w->link[link]);
		return;
	}
	memcpy(b, data, len);
	wan_send(w->link[link], w->now, len);
}

static int sink_tx(void *ctx, enum engine_port port, const uint8_t *data, uint32_t len)
{
	struct {
		struct world *w;
		int side;
	} *c = ctx;

	link_send(c->w, port == PORT_LAN ? WORLD_LAN_OUT(c->side) : WORLD_WAN(c->side), data, len);
	return 0;
}

static void sink_report(void *ctx, unsigned int peer, const struct report *r)
{
	struct {
		struct world *w;
		int side;
	} *c = ctx;
	uint8_t *b = wan_buf(c->w->reports[c->side]);

	(void)peer;
	if (!b)
		return;
	memcpy(b, r, sizeof(*r));
	wan_send(c->w->reports[c->side], c->w->now, sizeof(*r));
}

static void sink_event(void *ctx, const struct engine_event *ev)
{
	struct {
		struct world *w;
		int side;
	} *c = ctx;

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

	(void)buf;
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

	if (comp->status == RC_OK) {
		q->side[c->side].ok++;
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

	(void)qp;
	if (!m->intact)
		c->w->violation = "a responder received bytes that were never sent like that";
}

static struct engine *make_engine(struct world *w, int side)
{
	struct engine_sink sink = {
		.ctx = &w->ctx[side], .tx = sink_tx, .report = sink_report, .event = sink_event};
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
		.tx_buf = host_buf, .tx = host_tx, .complete = host_complete, .receive = host_receive};

	w->cfg = *cfg;
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
	free(w);
}

void world_peer(struct world *w, int side, enum peer_event ev)
{
	if (w->engine[side])
		engine_peer_event(w->engine[side], 0, ev, w->now);
}

void world_restart(struct world *w, int side)
{
	engine_destroy(w->engine[side]);
	w->engine[side] = make_engine(w, side);
	world_peer(w, !side, PEER_RESTARTED);
}

void world_redeem(struct world *w, int side)
{
	uint64_t until = w->now + 100000 * MS;

	engine_drain(w->engine[side], w->now);
	while (!w->violation && w->now < until && engine_custody(w->engine[side], -1, w->now).packets)
		world_run(w, w->now + MS);
	if (!engine_custody(w->engine[side], -1, w->now).packets)
		world_restart(w, side);
}

void world_set_wan(struct world *w, int from, const struct wan_config *c)
{
	wan_set(w->link[WORLD_WAN(from)], c);
}

struct world_qp *world_connect(struct world *w, struct rc_qp_config *a, enum rc_personality other)
{
	struct world_qp *q = &w->qp[w->nqps];
	struct rc_qp_config b;

	q->w = w;
	q->id = w->nqps++;
	if (!a->src.b[15]) {
		ip_addr_parse("10.1.0.1", &a->src);
		ip_addr_parse("10.2.0.1", &a->dst);
		memcpy(a->smac, "\x02\0\0\0\0\1", 6);
		memcpy(a->dmac, "\x02\0\0\0\0\2", 6);
	}
	rc_qp_mirror(&b, a);
	b.personality = other;
	for (int i = 0; i < 2; i++) {
		q->side[i].up = q;
		prng_init(&q->side[i].rng, w->cfg.seed * 1000 + q->id * 2 + (uint64_t)i);
		q->side[i].qp = rc_qp_create(w->host[i], i ? &b : a, q);
	}
	return q->side[0].qp && q->side[1].qp ? q : NULL;
}

static void post_more(struct world_qp *q, int side)
{
	struct work *k = &q->side[side].work;
	struct rc_qp *qp = q->side[side].qp;
	const struct rc_qp_config *c = rc_qp_config(qp);
	struct prng *rng = &q->side[side].rng;

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
		if (op >= RC_WRITE && op != RC_SEND_INV && c->rmr_size > wr.length)
			wr.va = c->rmr_va +
				(prng_next(rng) % (c->rmr_size - wr.length) & ~7ull);
		else
			wr.va = c->rmr_va;
		wr.imm = (uint32_t)prng_next(rng);
		if (rc_post(qp, q->w->now, &wr))
			break;
		k->left--;
	}
}

void world_work(struct world_qp *q, int side, const struct work *work)
{
	q->side[side].work = *work;
	post_more(q, side);
}

/* ---- time ---- */

static bool seen(struct world *w, int link, const uint8_t *data, uint32_t len)
{
	w->frames++;
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
			rc_host_rx(w->host[side], w->now, data, len);
		}
	}
}

static uint64_t next_event(struct world *w)
{
	uint64_t t = UINT64_MAX;

	for (int i = 0; i < 6; i++)
		t = min64(t, wan_next(w->link[i]));
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
	if (w->cfg.frames_max && w->frames > w->cfg.frames_max)
		w->violation = "frames without end";
	for (int i = 0; i < 6; i++)
		deliver_link(w, i);
	for (int i = 0; i < 2; i++) {
		const uint8_t *data;
		uint32_t len;

		while ((data = wan_pop(w->reports[i], w->now, &len))) {
			struct report r;

			memcpy(&r, data, sizeof(r));
			if (w->engine[!i])
				engine_rx_report(w->engine[!i], 0, &r, w->now);
		}
	}
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
	}
}

static bool done(struct world *w)
{
	for (uint32_t i = 0; i < w->nqps; i++)
		for (int s = 0; s < 2; s++) {
			struct rc_qp *qp = w->qp[i].side[s].qp;

			/* a permissive host asks a dead one for ever */
			if (!rc_qp_in_error(qp) && !rc_qp_in_error(w->qp[i].side[!s].qp) &&
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
			struct rc_qp *req = w->qp[i].side[s].qp, *resp = w->qp[i].side[!s].qp;

			if (w->qp[i].side[s].data_wrong)
				return "a READ or atomic brought wrong data";
			if (rc_check_prefix(req, resp))
				return "3: what was executed is not a prefix of what was posted";
			if (!complete)
				continue;
			if (w->qp[i].side[s].failed || rc_qp_in_error(req))
				return "a queue pair failed";
			if (rc_check_all(req, resp))
				return "something that was posted did not arrive";
			if (rc_qp_config(req)->shadow && rc_check_memory(req, resp) >= 0)
				return "the responder's memory is not what it must be";
		}
	return NULL;
}

bool world_conn(struct world *w, int side, const struct world_qp *q, struct conn_info *out)
{
	const struct rc_qp_config *c = rc_qp_config(q->side[side].qp);
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
			const struct rc_stats *st = rc_qp_stats(qp);

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
