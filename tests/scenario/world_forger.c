// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The forger: what it does, and what its frames must not do.
 *
 * Two kinds of judgement. At once, when an appliance with custody of a lane was given a forged
 * frame: the lane's state and marks are the same as before, and nothing in custody is gone. And
 * later, when a forged frame comes out at a host, where an appliance with custody should have
 * stopped it: a responder must not execute it, a requester must not believe it. Frames that no
 * appliance with custody has seen are the hosts' own risk: if a bare host would have accepted the
 * frame, it is removed instead, as if the forger had had less luck.
 *
 * Luck, and how each kind keeps clear of it:
 *
 *	requests on the LAN	The very next PSN of the host is as good as the host's own, for
 *				appliances and for bare hosts. Never drawn.
 *	requests on the WAN	Of those a pair of appliances can tell which the far host sent, so
 *				any PSN will do.
 *	answers			Anything outstanding may be answered, so an answer with such a
 *				PSN is as good as the responder's. Never drawn, but on the WAN
 *				between two appliances: there they tell each other by reports what
 *				was answered, and need no ACK from anybody.
 *
 * The forger acts after every so many frames that move, so what it does follows from the seed.
 */
#include "tests/scenario/world_forge.h"

#include <stdlib.h>
#include <string.h>

#include "wire/icrc.h"
#include "wire/psn.h"

#define CNP_FLOOD 50
/* Nearer than this a jump may be the host's own, after a long outage. */
#define FAR_PSNS  (1u << 20)
/* A frame that would have taken in a host so often is the host's own luck: this world tells no
 * more. */
#define HITS_MAX  3

int world_forger_init(struct world *w)
{
	struct forger *f;

	if (!w->cfg.actors.forge)
		return 0;
	f = calloc(1, sizeof(*f));
	w->forger = f;
	if (!f)
		return -1;
	f->marks = calloc(FORGE_MARKS, sizeof(*f->marks));
	f->old = calloc(FORGE_OLD, sizeof(*f->old));
	prng_init(&f->rng, w->cfg.seed ^ 0xf0126e);
	f->due = 200;
	return f->marks && f->old ? 0 : -1;
}

void world_forger_exit(struct world *w)
{
	if (!w->forger)
		return;
	free(w->forger->marks);
	free(w->forger->old);
	free(w->forger);
}

/* ---- what was forged, and what was seen ---- */

/* Where the mark of a frame with @icrc is kept: a few places, so that the next one with the same
 * hash does not push it out while the frame is on its way. NULL: nowhere. */
static struct forge_mark *mark_at(struct forge_mark *marks, uint32_t icrc, uint32_t psn,
				  uint32_t dqpn)
{
	for (uint32_t i = 0; i < FORGE_PLACES; i++) {
		struct forge_mark *m = &marks[(icrc + i) % FORGE_MARKS];

		if (m->icrc == icrc && m->psn == psn && m->dqpn == dqpn)
			return m;
	}
	return NULL;
}

static struct forge_mark *mark_of(const struct world *w, const uint8_t *data, uint32_t len,
				  struct frame *v)
{
	enum frame_verdict verdict = frame_parse(data, len, v);
	uint32_t icrc;

	if (!w->forger || (verdict != FRAME_OK && verdict != FRAME_UNKNOWN_OPCODE))
		return NULL;
	memcpy(&icrc, data + len - ICRC_LEN, 4);
	return mark_at(w->forger->marks, icrc, v->psn, v->dqpn);
}

/* Whether the requester was told of something that the responder has not done. A lane without that
 * can begin again, which costs only a round trip. */
static bool promised(const struct lane_info *l)
{
	return psn_before(l->una, l->frontier);
}

/* Whether the hosts' numbers do not agree without it. */
static bool renumbered(const struct lane_info *l)
{
	return l->reads.shift || l->reads.shift_msn;
}

/* What is below una was sent, or asked for, past the lane or before there was one: where the
 * responder lacks it still, a host is as on its own as without an appliance. */
static void remember(struct forger *f, struct forge_target *t, const uint8_t *data, uint32_t len)
{
	const struct lane_info *l = forge_lane(t);
	bool request, below, unheld;
	struct forge_mark *m;
	struct frame v;
	uint32_t icrc;

	frame_parse(data, len, &v);
	request = v.op->flags & OPF_REQUEST;
	below = psn_before(v.psn, l->una);
	memcpy(&icrc, data + len - ICRC_LEN, 4);
	m = mark_at(f->marks, icrc, v.psn, v.dqpn);
	/* the same frame, past the lane: it may be on its way still */
	unheld = m && !m->held;
	for (uint32_t i = 0; i < FORGE_PLACES && !m; i++)
		if (!f->marks[(icrc + i) % FORGE_MARKS].dqpn)
			m = &f->marks[(icrc + i) % FORGE_MARKS];
	if (!m)
		m = &f->marks[(icrc + f->acts % FORGE_PLACES) % FORGE_MARKS];
	*m = (struct forge_mark){.icrc = icrc,
				 .psn = v.psn,
				 .dqpn = v.dqpn,
				 .held = t->held && !unheld &&
					 ((request && (renumbered(l) || !below)) ||
					  (!request && !below && l->state != LANE_OPENING)),
				 .inside = t->port == PORT_LAN && t->held && promised(l) &&
					   psn_in(v.psn, l->una, l->epsn)};
}

enum forged world_forged(const struct world *w, const uint8_t *data, uint32_t len)
{
	struct frame v;
	const struct forge_mark *m = mark_of(w, data, len, &v);

	return !m ? FORGED_NOT : m->inside ? FORGED_INSIDE : FORGED;
}

/* It leaves before the host has seen the probe. No lane holds what it answers: where it passes to
 * another queue pair, a bare host would have been taken in as well. */
static void refuse_probe(struct world *w, int side, const struct frame *v)
{
	struct rc_qp *qp = rc_qp_find(w->host[side], v->dqpn);
	struct forge_target t = {.s = !side, .at = side, .port = PORT_LAN};
	uint8_t out[FRAME_MAX];
	uint32_t len;

	if (!qp || !w->engine[side] || !prng_hit(&w->forger->rng, 0.7))
		return;
	t.q = rc_qp_user(qp);
	if (!t.q->up)
		return;
	len = forge_refusal(w->forger, &t, out, v->psn);
	remember(w->forger, &t, out, len);
	w->forged++;
	if (w->cfg.trace)
		trace_forged(w, side, true, out, len);
	world_link_send(w, side, out, len);
}

void world_forger_saw(struct world *w, int link, const uint8_t *data, uint32_t len)
{
	struct forger *f = w->forger;
	struct frame v;

	if (f && w->cfg.actors.forge & 1u << FORGE_PROBED && (link == 2 || link == 3) &&
	    frame_parse(data, len, &v) == FRAME_OK && !v.payload_len &&
	    (v.opcode == OP_SEND_MIDDLE || v.opcode == OP_WRITE_MIDDLE))
		refuse_probe(w, link & 1, &v);
	if (!f || !(w->cfg.actors.forge & 1u << FORGE_REPLAY) || link == 2 || link == 3 ||
	    !prng_hit(&f->rng, 0.05) || frame_parse(data, len, &v) != FRAME_OK ||
	    !(v.op->flags & OPF_RC) || !icrc_ok(&v) || mark_of(w, data, len, &v))
		return;
	f->old[f->nold % FORGE_OLD].link = link;
	f->old[f->nold % FORGE_OLD].len = len;
	memcpy(f->old[f->nold++ % FORGE_OLD].data, data, len);
}

void world_forger_forget(struct world *w)
{
	if (w->forger)
		w->forger->nold = 0;
}

/* ---- what a forged frame may do ---- */

static const char *lane_harm(const struct lane_info *before, const struct lane_info *after,
			     bool may_drain)
{
	bool bypass;

	if (before->state < LANE_OPENING || before->state == LANE_FAULT)
		return NULL;
	if (after->state == LANE_FAULT)
		return "a forged frame brought a lane to FAULT";
	if (after->state == LANE_WATCH && renumbered(before))
		return "a forged frame closed a lane that translates";
	if (after->state == LANE_WATCH && !promised(before))
		return NULL;
	if (after->state == LANE_WATCH && before->custody.packets)
		return "a forged frame made an appliance forget its custody";
	/* that costs speed, and no byte: core/seal.c */
	bypass = after->reason == REASON_BYPASS;
	if (after->state == LANE_WATCH && before->state != LANE_DRAIN && !bypass)
		return "a forged frame closed a lane";
	if (after->state == LANE_DRAIN && before->state != LANE_DRAIN && !may_drain && !bypass)
		return "a forged frame made a lane drain";
	if (after->state == LANE_WATCH)
		return NULL;
	if (after->custody.packets < before->custody.packets || after->una != before->una)
		return "a forged frame released custody";
	if (after->epsn != before->epsn)
		return "a forged request was taken for the host's";
	return NULL;
}

static bool find_conn(const struct forge_target *t, struct conn_info *ci)
{
	return world_conn(t->q->w, t->at, t->q, ci);
}

/* @mine: whether it is judged: a frame that was only repeated is not. */
static void inject(struct forger *f, struct forge_target *t, const uint8_t *data, uint32_t len,
		   bool mine, bool may_drain)
{
	struct world *w = t->q->w;
	struct conn_info after;
	const char *bad = NULL;
	uint8_t frame[WAN_FRAME_MAX];

	w->forged++;
	if (mine)
		remember(f, t, data, len);
	if (w->cfg.trace)
		trace_forged(w, t->at, t->port == PORT_LAN, data, len);
	if (w->still[t->at].since)
		return;
	if (!w->engine[t->at]) {
		world_link_send(w, t->port == PORT_LAN ? WORLD_WAN(t->at) : WORLD_LAN_OUT(t->at),
				data, len);
		return;
	}
	memcpy(frame, data, len);
	engine_rx(shards_engine(w->shards[t->at], shards_of_frame(w->shards[t->at], frame, len)),
		  t->port, frame, len, w->now);
	if (!mine || !t->known || w->violation)
		return;
	if (!find_conn(t, &after))
		memset(&after, 0, sizeof(after));
	for (int l = 0; l < 2 && !bad; l++)
		bad = lane_harm(&t->ci.lane[l], &after.lane[l], may_drain);
	if (bad)
		w->violation = bad;
	t->ci = after;
}

/* Whether this answer would change anything at the requester. */
static bool believed(const struct rc_qp *qp, const struct frame *v)
{
	if (rc_qp_in_error(qp) || !rc_qp_queued(qp))
		return false;
	if (rc_qp_config(qp)->personality == RC_STRICT)
		return psn_in(v->psn, rc_qp_una(qp), rc_qp_sent_end(qp));
	return !psn_before(v->psn, rc_qp_una(qp));
}

/* Whether a READ asks for what the responder has not opened to anybody. */
static bool out_of_range(const struct rc_qp *qp, const struct frame *v)
{
	const struct rc_qp_config *c = rc_qp_config(qp);
	uint64_t at = frame_reth_va(v) - c->mr_va, length = frame_reth_length(v);

	return frame_reth_rkey(v) != c->mr_rkey || length > c->mr_size || at > c->mr_size - length;
}

/* Whether the requests of host @side are an appliance's affair still. */
static bool held_now(struct world_qp *q, int side)
{
	struct lane_info l;

	return world_lane(q, side, &l) && l.state > LANE_OPENING;
}

bool world_forger_arrives(struct world *w, int side, const uint8_t *data, uint32_t len)
{
	struct frame v;
	struct forge_mark *m = mark_of(w, data, len, &v);
	struct rc_qp *qp = m ? rc_qp_find(w->host[side], v.dqpn) : NULL;

	if (!qp || frame_parse(data, len, &v) != FRAME_OK || !(v.op->flags & OPF_RC))
		return false;
	if (v.op->flags & OPF_REQUEST) {
		/* A repeat, for all that anybody can tell, of a READ that was answered: it passes,
		 * and a bare responder would refuse it as well. But of what READs ask for only an
		 * appliance's own are to be judged. */
		if (v.opcode == OP_READ_REQUEST && psn_before(v.psn, rc_qp_epsn(qp)) &&
		    out_of_range(qp, &v))
			return true;
		if (v.psn != rc_qp_epsn(qp) || rc_qp_in_error(qp))
			return false;
		if (m->held && !w->violation)
			w->violation = "a forged request was delivered";
	} else {
		if (!believed(qp, &v))
			return false;
		if (m->held && !w->violation && held_now(rc_qp_user(qp), side))
			w->violation = "a forged answer was passed to a host that believes it";
	}
	if (++m->hits >= HITS_MAX)
		w->excuse = EXCUSE_LUCK;
	return true;
}

/* ---- where, and which PSN ---- */

static bool pick_target(struct world *w, struct forge_target *t, bool answer)
{
	struct forger *f = w->forger;
	uint32_t places = w->cfg.actors.forge_at, bit;
	bool wan;

	do
		bit = prng_below(&f->rng, 4);
	while (!(places & 1u << bit));
	wan = bit >= 2;
	memset(t, 0, sizeof(*t));
	t->q = &w->qp[prng_below(&f->rng, w->nqps)];
	t->at = bit & 1;
	t->port = wan ? PORT_WAN : PORT_LAN;
	/* requests come from the LAN of their host, or over the WAN to the other */
	t->s = wan != answer ? !t->at : t->at;
	if (!t->q->up)
		return false;
	t->known = find_conn(t, &t->ci);
	t->held = t->known && forge_lane(t)->state >= LANE_OPENING;
	return true;
}

/* The PSNs that are outstanding or in custody anywhere: [from, end). */
static void zone(const struct forge_target *t, uint32_t *from, uint32_t *end)
{
	struct world *w = t->q->w;
	uint32_t more = world_renumbers(w) ? 1u << 16 : 0;
	struct rc_qp *req = t->q->side[t->s].qp;

	*from = rc_qp_una(req);
	*end = rc_qp_sent_end(req);
	for (int e = 0; e < 2; e++) {
		struct conn_info ci;
		struct lane_info *l = &ci.lane[e == t->s ? LANE_OUT : LANE_IN];

		if (!w->engine[e] || !world_conn(w, e, t->q, &ci) || l->state < LANE_OPENING)
			continue;
		if (psn_before(l->una, *from))
			*from = l->una;
		if (psn_after(l->epsn, *end))
			*end = l->epsn;
	}
	*from = psn_sub(*from, more);
	*end = psn_add(*end, more);
}

/*
 * The host's next request, or the next that the appliance is to see: the host's own may be on its
 * way to it. A lane that is not held may begin with the oldest without an ACK, or with the newest:
 * where the host's own is lost on its way, a bare responder would execute the forged one as well.
 */
static bool lucky(const struct forge_target *t, uint32_t psn)
{
	const struct lane_info *l = forge_lane((struct forge_target *)t);

	if (psn == rc_qp_sent_end(t->q->side[t->s].qp))
		return true;
	if (t->port != PORT_LAN || !t->known)
		return false;
	return psn == l->epsn || (!t->held && (psn == l->una || psn_add(psn, 1) == l->epsn));
}

static uint32_t blind(struct forger *f)
{
	return (uint32_t)prng_next(&f->rng) & PSN_MASK;
}

/* ---- acts ---- */

static void request_at(struct forger *f, struct forge_target *t, uint32_t psn)
{
	uint8_t out[FRAME_MAX];

	if (!lucky(t, psn))
		inject(f, t, out, forge_request(f, t, out, psn), true, false);
}

static void act_jump(struct forger *f, struct forge_target *t)
{
	uint32_t n = 3 + prng_below(&f->rng, 3), psn, step = prng_below(&f->rng, 2), from, end;
	struct world *w = t->q->w;
	uint8_t out[FRAME_MAX];

	zone(t, &from, &end);
	do
		psn = blind(f);
	while (psn_in(psn, psn_sub(from, FAR_PSNS), psn_add(end, FAR_PSNS)));
	for (uint32_t i = 0; i < n && !w->violation; i++)
		inject(f, t, out, forge_send_only(f, t, out, psn_add(psn, i * step)), true, false);
}

static void act_vendor(struct forger *f, struct forge_target *t)
{
	uint32_t from, end, psn = blind(f);
	uint8_t out[FRAME_MAX];

	zone(t, &from, &end);
	if (prng_hit(&f->rng, 0.5))
		psn = psn_add(from, prng_below(&f->rng, 64 + ((end - from) & PSN_MASK)));
	if (!lucky(t, psn))
		inject(f, t, out, forge_vendor(f, t, out, psn), true, true);
}

static void act_inside(struct forger *f, struct forge_target *t)
{
	struct lane_info *l = forge_lane(t);
	uint32_t from = t->held ? l->una : rc_qp_una(t->q->side[t->s].qp);
	uint32_t end = t->held ? l->epsn : rc_qp_sent_end(t->q->side[t->s].qp);

	from = psn_sub(from, 4);
	request_at(f, t, psn_add(from, prng_below(&f->rng, (end - from) & PSN_MASK)));
}

static void act_ahead(struct forger *f, struct forge_target *t)
{
	uint32_t from = t->held ? forge_lane(t)->epsn : rc_qp_sent_end(t->q->side[t->s].qp);
	uint32_t far = 1u << prng_below(&f->rng, 19);

	request_at(f, t, psn_add(from, 1 + prng_below(&f->rng, far)));
}

static void act_answer(struct forger *f, struct forge_target *t, bool near)
{
	uint32_t from, end, psn;
	uint8_t out[FRAME_MAX];

	zone(t, &from, &end);
	/* when it gets to whom it concerns more may be outstanding than now */
	end = psn_add(end, 1u << 18);
	do
		psn = !near		       ? blind(f)
		      : prng_hit(&f->rng, 0.5) ? psn_sub(from, 1 + prng_below(&f->rng, 256))
					       : psn_add(end, prng_below(&f->rng, 256));
	while (psn_in(psn, from, end));
	inject(f, t, out, forge_answer(f, t, out, psn, true), true, false);
}

/* Between two appliances the WAN brings no ACK that counts. */
static void act_answer_wan(struct forger *f, struct forge_target *t)
{
	struct lane_info *l = forge_lane(t);
	uint8_t out[FRAME_MAX];

	if (t->port != PORT_WAN || t->q->w->cfg.single || !t->held || l->state != LANE_HELD ||
	    !psn_before(l->una, l->frontier))
		return;
	inject(f, t, out,
	       forge_answer(f, t, out,
			    psn_add(l->una, prng_below(&f->rng, (l->frontier - l->una) & PSN_MASK)),
			    false),
	       true, false);
}

/* The first PSN of what the host has never asked again. */
static uint32_t asked_once(struct forge_target *t)
{
	struct rc_qp *qp = t->q->side[t->s].qp;
	uint64_t n = rc_qp_stats(qp)->retransmits;

	if (n != t->q->side[t->s].repeated) {
		t->q->side[t->s].repeated = n;
		t->q->side[t->s].repeated_end = rc_qp_sent_end(qp);
	}
	return n ? t->q->side[t->s].repeated_end : rc_qp_una(qp);
}

/* Nor does it bring a response that the other appliance has not sent. (One to a READ that the host
 * asks again past the lane passes, as it does without us.) */
static void act_data_wan(struct forger *f, struct forge_target *t)
{
	struct lane_info *l = forge_lane(t);
	uint32_t from = asked_once(t), len;
	uint8_t out[FRAME_MAX];
	struct frame v;

	if (t->port != PORT_WAN || !t->held || l->state != LANE_HELD || !l->sealed ||
	    world_renumbers(t->q->w) || !psn_before(from, l->epsn))
		return;
	do
		len = forge_answer(f, t, out,
				   psn_add(from, prng_below(&f->rng, psn_sub(l->epsn, from))),
				   true);
	while (frame_parse(out, len, &v) != FRAME_OK || v.opcode == OP_ACK);
	inject(f, t, out, len, true, false);
}

static void act_replay(struct forger *f, struct forge_target *t)
{
	uint32_t n = f->nold < FORGE_OLD ? f->nold : FORGE_OLD;
	struct world *w = t->q->w;
	struct forge_old *o;
	uint8_t out[FRAME_MAX];
	struct rc_qp *to;
	struct frame v;
	bool changed;

	if (!n)
		return;
	o = &f->old[prng_below(&f->rng, n)];
	memcpy(out, o->data, o->len);
	changed = prng_hit(&f->rng, 0.7) && forge_change(f, out, o->len);
	frame_parse(out, o->len, &v);
	t->at = o->link < 2 ? o->link : !(o->link & 1);
	t->port = o->link < 2 ? PORT_LAN : PORT_WAN;
	if (!(w->cfg.actors.forge_at & (t->port == PORT_LAN ? FORGE_LAN(t->at) : FORGE_WAN(t->at))))
		return;
	to = rc_qp_find(w->host[o->link < 2 ? !o->link : t->at], v.dqpn);
	if (!to)
		return;
	t->q = rc_qp_user(to);
	t->s = o->link & 1;
	if (!t->q->up)
		return;
	t->known = find_conn(t, &t->ci);
	t->held = t->known && forge_lane(t)->state >= LANE_OPENING;
	if (!changed || !lucky(t, v.psn))
		inject(f, t, out, o->len, changed, false);
}

static void act_cnp(struct forger *f, struct forge_target *t)
{
	uint8_t out[FRAME_MAX];

	for (int i = 0; i < CNP_FLOOD && !t->q->w->violation; i++)
		inject(f, t, out, forge_cnp(f, t, out, false), true, false);
}

static void act_cm(struct forger *f, struct forge_target *t, bool ids)
{
	int from = t->port == PORT_LAN ? t->at : !t->at;
	uint8_t out[FRAME_MAX];

	inject(f, t, out, forge_cm(f, t, out, from, ids), true, false);
}

static void act_cm_pair(struct forger *f, struct forge_target *t)
{
	const uint32_t id[2] = {(uint32_t)prng_next(&f->rng) | 1u << 31,
				(uint32_t)prng_next(&f->rng) | 1u << 31};
	int from = t->port == PORT_LAN ? t->at : !t->at;
	bool first = prng_hit(&f->rng, 0.5);
	uint8_t out[FRAME_MAX];

	inject(f, t, out, forge_cm_pair(f, t, out, from, CM_REQ, id, first), true, false);
	if (t->q->w->violation)
		return;
	t->port = t->port == PORT_LAN ? PORT_WAN : PORT_LAN;
	inject(f, t, out, forge_cm_pair(f, t, out, !from, CM_REP, id, !first), true, false);
}

static void act(struct world *w, enum forge_kind kind)
{
	struct forger *f = w->forger;
	struct forge_target t;
	bool answer = kind == FORGE_ANSWER || kind == FORGE_ANSWER_NEAR ||
		      kind == FORGE_ANSWER_WAN || kind == FORGE_DATA_WAN || kind == FORGE_CNP;

	if (!pick_target(w, &t, answer))
		return;
	switch (kind) {
	case FORGE_REQUEST:
		request_at(f, &t, blind(f));
		break;
	case FORGE_ANSWER:
	case FORGE_ANSWER_NEAR:
		act_answer(f, &t, kind == FORGE_ANSWER_NEAR);
		break;
	case FORGE_ANSWER_WAN:
		act_answer_wan(f, &t);
		break;
	case FORGE_DATA_WAN:
		act_data_wan(f, &t);
		break;
	case FORGE_JUMP:
		act_jump(f, &t);
		break;
	case FORGE_VENDOR:
		act_vendor(f, &t);
		break;
	case FORGE_INSIDE:
		act_inside(f, &t);
		break;
	case FORGE_AHEAD:
		act_ahead(f, &t);
		break;
	case FORGE_REPLAY:
		act_replay(f, &t);
		break;
	case FORGE_CNP:
		act_cnp(f, &t);
		break;
	case FORGE_CM_PAIR:
		act_cm_pair(f, &t);
		break;
	default:
		act_cm(f, &t, kind == FORGE_CM_ICRC);
		break;
	}
}

void world_forger_silent(struct world *w, int side)
{
	struct forger *f = w->forger;
	uint8_t out[FRAME_MAX];

	if (!f || !(w->cfg.actors.forge & 1u << FORGE_SILENT))
		return;
	for (uint32_t i = 0; i < w->nqps && !w->violation; i++) {
		struct forge_target t = {.q = &w->qp[i], .s = !side, .at = side, .port = PORT_LAN};
		uint32_t from, end;

		if (!t.q->up || !find_conn(&t, &t.ci))
			continue;
		t.known = true;
		t.held = forge_lane(&t)->state >= LANE_OPENING;
		zone(&t, &from, &end);
		from = psn_sub(from, 1 + prng_below(&f->rng, 16));
		inject(f, &t, out, forge_nak(f, &t, out, from), true, false);
	}
}

void world_forger_run(struct world *w)
{
	const struct actors_config *c = &w->cfg.actors;
	struct forger *f = w->forger;
	/* worlds that were kept before there was the last kind stay what they were */
	uint32_t kinds = c->forge >> FORGE_CM_PAIR & 1 ? FORGE_KINDS : FORGE_CM_PAIR, kind;

	while (f && c->forge & ((1u << FORGE_KINDS) - 1) && !w->violation && w->frames >= f->due &&
	       f->acts < c->forge_max) {
		f->due += 1 + prng_below(&f->rng, 2 * c->forge_every + 1);
		if (f->due < w->frames)
			f->due = w->frames;
		f->acts++;
		do
			kind = prng_below(&f->rng, kinds);
		while (!(c->forge & 1u << kind));
		act(w, kind);
	}
}
