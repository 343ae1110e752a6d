// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Queue pairs: made at once or by the connection manager, taken down, made again, and what they
 * work on. */
#include "tests/scenario/world_priv.h"

#include <stdlib.h>
#include <string.h>

#include "tests/scenario/readers.h"
#include "wire/icrc.h"

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
	rc_qp_port(&q->cfg[i]);
	q->side[i].qp = rc_qp_create(q->w->host[i], &q->cfg[i], q);
	q->up = q->side[0].qp && q->side[1].qp;
	return q->side[i].qp;
}

static void begin_work(struct world_qp *q, int i)
{
	struct work k = q->pending[i];

	if (k.left)
		world_work(q, i, &k);
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

struct world_qp *world_connect_cm(struct world *w, struct rc_qp_config *a,
				  enum rc_personality other)
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

void world_shake_run(struct world *w)
{
	uint8_t buf[CM_FRAME_MAX];

	for (uint32_t i = 0; i < w->nqps; i++) {
		struct world_qp *q = &w->qp[i];

		if (!q->shaking)
			continue;
		for (int s = 0; s < 2; s++) {
			uint32_t len = rc_cm_poll(&q->cm[s], w->now, buf);

			if (len)
				world_link_send(w, WORLD_LAN_IN(s), buf, len);
		}
		/* the passive end receives from its REP on */
		if (q->cm[1].state == RC_CM_REP_SENT && !q->side[1].qp)
			make_end(q, 1);
		if (q->cm[0].state == RC_CM_UP && q->side[1].qp && !q->side[0].qp) {
			make_end(q, 0);
			begin_work(q, 0);
		}
		/* and sends from the RTU on */
		if (q->cm[1].state == RC_CM_UP && q->up)
			begin_work(q, 1);
		if ((q->cm[0].state == RC_CM_UP && q->cm[1].state == RC_CM_UP) ||
		    (q->cm[0].state == RC_CM_DOWN && q->cm[1].state == RC_CM_DOWN) ||
		    q->cm[0].state == RC_CM_FAILED || q->cm[1].state == RC_CM_FAILED)
			shaken(q);
	}
}

uint64_t world_shake_next(const struct world *w)
{
	uint64_t t = UINT64_MAX;

	for (uint32_t i = 0; i < w->nqps; i++)
		for (int s = 0; s < 2; s++)
			if (w->qp[i].shaking)
				t = min64(t, rc_cm_next(&w->qp[i].cm[s]));
	return t;
}

void world_shake_rx(struct world *w, int side, const uint8_t *data, uint32_t len)
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
	if (bad)
		world_wrong(q, bad);
	/* it goes, so its hosts will never be told */
	if (q->wrong && !world_path_told(q) && !w->violation) {
		w->violation = q->wrong;
		if (world_astray(q))
			w->excuse = EXCUSE_SILENT;
	}
	q->missed_first = q->missed_both = false;
	q->wrong = NULL;
	readers_exit(q);
	world_order_exit(q);
	for (int s = 0; s < 2; s++) {
		q->pending[s] = q->up ? q->side[s].work : q->pending[s];
		memset(&q->side[s].work, 0, sizeof(q->side[s].work));
		if (q->side[s].qp)
			rc_qp_destroy(q->side[s].qp);
		q->side[s].qp = NULL;
		q->side[s].drawn = 0;
		q->side[s].passed = 0;
		q->side[s].ok_data = q->side[s].ok_atomics = q->side[s].failed = 0;
		q->side[s].fault_at = q->side[s].conn = 0;
		q->side[s].lost = q->side[s].holed = false;
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

	/* nobody has anything of the former owner any more, but an appliance */
	world_forger_forget(q->w);
	world_overload_forget(q->w);
	q->unseen = false;
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
	if (!make_end(q, 0) || !make_end(q, 1))
		return;
	begin_work(q, 0);
	begin_work(q, 1);
}

/* ---- work ---- */

void world_post_more(struct world_qp *q, int side)
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
		if (k->counter && !prng_hit(rng, 0.03))
			op = RC_FETCH_ADD;
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
		if (k->counter && op == RC_FETCH_ADD) {
			wr.va = c->rmr_va + 4096;
			wr.swap_add = 1;
			wr.compare = 0;
		}
		wr.imm = (uint32_t)prng_next(rng);
		wr.unsignaled = prng_hit(rng, k->unsignaled / 1000.0);
		if (op == RC_READ && k->streams)
			readers_read(q, side, &wr);
		readers_posting(q, side, &wr);
		if (op < RC_READ)
			world_order_posted(q, side, rc_messages_posted(qp));
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
	world_post_more(q, side);
}
