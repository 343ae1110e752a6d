// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the connection manager's datagrams tell of queue pairs (spec: IBTA 12.9): which two
 * are one connection, that one comes in the place of another, that one goes.
 *
 * Their ICRC is no signature, so one datagram alone proves nothing. Each must be answered by the
 * other host, from the other side, with the communication ids that only the two know:
 *
 * REQ, REP: name both QPNs; the pair is certain, and taken where nothing is owed. Where a lane by
 * one of the numbers owes something it stays: the true responder may have all, and say so yet. But
 * it sends nothing for a while that the new queue pair would take for its own, and what comes from
 * now on is not acknowledged before the true responder has spoken. So it is where requests go on
 * after the REQ: those of the former queue pair are late, or the datagrams are not what they seem.
 *
 * Two REPs that differ: who answers has lost the first one's queue pair, and the hosts have one of
 * the two. Only the RTU tells which. A pair that was taken by the first is taken back where nothing
 * is owed, and acknowledges nothing until then where something is.
 *
 * RTU: the new queue pair exists at both ends. What the old one has not taken by now it will never
 * take: that is lost, counted and told as a fault.
 *
 * DREQ, DREP: both ends go. The DREQ must bear the ids of the handshake that was seen, for a host
 * answers any DREQ, also one that it knows nothing of. The lanes drain, and what the far queue pair
 * does not take soon is lost (lanes_gone()). A DREQ alone, or of a connection whose handshake
 * was not seen, ends nothing.
 */
#include "engine/learn/cm_table.h"
#include "engine/learn/learn_priv.h"
#include "wire/cm.h"

/* An RTU follows its REP within this. */
#define RTU_NS (2 * NSEC_PER_SEC)

/* True if the lane of @fl has told its host of something undelivered. If the peer has custody, or
 * was allowed to take it, assume so until the peer ends the lane or the hosts disconnect. */
static bool owes(struct engine *e, const struct flow *fl)
{
	const struct lane *l = &fl->lane;

	if (lane_keeps(l))
		return lane_owes(e, l);
	if (l->role == ROLE_ACCEPTOR && l->held.packets)
		return true;
	return !l->gone && !fl->left && (l->role == ROLE_ACCEPTOR || fl->pledged);
}

/* Whether that one does, or the one of the other direction: of a queue pair that gets another
 * partner it is the latter. */
static bool either_owes(struct engine *e, const struct flow *fl)
{
	const struct flow *other = fl ? flow_partner(e, fl) : NULL;

	return fl && (owes(e, fl) || (other && owes(e, other)));
}

/* An acceptor does not tell: its opener, which may know of no new queue pair yet, would ask for the
 * lane anew. It hears the same from the hosts. */
static void end_lane(struct engine *e, struct flow *fl)
{
	if (fl)
		lane_close(e, fl, REASON_INCARNATION, lane_keeps(&fl->lane));
}

static void end_flow(struct engine *e, struct flow *fl)
{
	if (!fl)
		return;
	end_lane(e, fl);
	end_lane(e, flow_partner(e, fl));
	flow_unpair(e, fl);
	flow_free(e, fl);
}

/* A flow for a QP that the connection manager has just named: whatever went before under this key
 * was another incarnation of the QP. */
static struct flow *fresh_flow(struct engine *e, const struct flow_key *k, enum engine_port side)
{
	end_flow(e, flow_by_key(e, k));
	return flow_create(e, k, side);
}

/* What leads to the end of the connection @p that the REP names, and what leads to the other. */
static struct flow_key to_passive(const struct cm_pending *p)
{
	return (struct flow_key){
		.src = p->key.src, .dst = p->key.dst, .dqpn = p->rep.qpn, .vlan = p->key.vlan};
}

static struct flow_key to_active(const struct cm_pending *p)
{
	return (struct flow_key){
		.src = p->key.dst, .dst = p->key.src, .dqpn = p->lqpn, .vlan = p->key.vlan};
}

/* The queue pair that @fl leads to is new: it expects @psn, has completed no message, and needs no
 * ACK to show that. It gives no credits. (Of one that does nobody knows how many it has.) */
static void begins_at(struct flow *fl, uint32_t psn)
{
	struct lane *l = &fl->lane;

	mark_una(l, &(struct wire_mark){.psn = {psn}});
	l->una_sure = l->begins = true;
	l->credit = AETH_ACK_UNLIMITED;
}

/* Whether an owner that begins at @psn may soon ask under the PSNs of what is asked on @l. */
static bool begins_near(struct engine *e, const struct lane *l, uint32_t psn)
{
	struct host_mark una = psn_to_host(e, l, &l->una);

	return psn_in((struct host_psn){psn}, psn_sub(una.psn, HOST_WINDOW), host_epsn(e, l).psn);
}

/* The lane by the number of the new queue pair, which begins at @psn, or that of the other
 * direction, owes something: it shall not send what the new one would execute, nor tell it that
 * anything is done. Without a lane, what the former responder has said is no start for one. */
static void hold_back(struct engine *e, struct flow *fl, uint32_t psn)
{
	if (fl->lane.role == ROLE_NONE) {
		mark_una(&fl->lane, &(struct wire_mark){.psn = WIRE_NONE});
		fl->lane.una_sure = false;
		return;
	}
	owner_judge(e, fl, begins_near(e, &fl->lane, psn) ? EVIDENCE_REQUEST : EVIDENCE_NAMED);
	if (psn_in((struct wire_psn){psn}, fl->lane.una.psn, fl->lane.end))
		lane_hold_back(e, fl, RTU_NS);
}

/* @to leads to one end of the new pair, @back to the other, which will ask from @psn on. The lane
 * by which the former owner of that number asks, be it another partner, is held back. */
static void hold_former(struct engine *e, struct flow *to, struct flow *back, uint32_t psn)
{
	struct flow *former = back ? flow_partner(e, back) : NULL;

	if (to)
		hold_back(e, to, psn);
	if (former && former != to && former->lane.role != ROLE_NONE)
		hold_back(e, former, psn);
}

/* Whether the queue pair that @back leads to has asked since the REQ that names it anew. */
static bool asks_still(struct engine *e, const struct flow *back, const struct cm_pending *p)
{
	const struct flow *former = back ? flow_partner(e, back) : NULL;

	return former && former->seen > p->when;
}

/* Whether the lane is of the new queue pair already. */
static bool opened_since(const struct flow *fl, const struct cm_pending *p)
{
	return fl->lane.role != ROLE_NONE && fl->lane.opened > p->when;
}

/* The lane of @fl is the former queue pair's, though that of the other direction is the new one's
 * already: it ends. @psn, @credits: see begins_at(). */
static void end_former(struct engine *e, struct flow *fl, const struct cm_pending *p, uint32_t psn,
		       bool credits)
{
	if (fl->lane.role == ROLE_NONE || opened_since(fl, p))
		return;
	end_lane(e, fl);
	if (!credits)
		begins_at(fl, psn);
}

/* Both ends of the connection @p are named. @certain: it exists at both ends. Where something is
 * owed under one of the numbers, or the former queue pair still asks, and it is not certain,
 * nothing changes yet. */
static void established(struct engine *e, struct cm_pending *p, bool certain)
{
	struct flow_key there = to_passive(p), back = to_active(p);
	struct flow *a = flow_by_key(e, &there), *b = flow_by_key(e, &back);
	bool same = a && b && a->partner == flow_index(e, b);

	/* a repeated REP changes nothing, however the pair was found: there may be custody */
	if (!p->made && certain && same && (opened_since(a, p) || opened_since(b, p))) {
		p->made = true;
		end_former(e, a, p, p->rep.psn, p->rep.credits);
		end_former(e, b, p, p->starting_psn, p->req_credits);
	}
	if (p->made || (same && (opened_since(a, p) || opened_since(b, p))))
		return;
	if (!certain && (either_owes(e, a) || either_owes(e, b) || asks_still(e, b, p))) {
		hold_former(e, a, b, p->rep.psn);
		hold_former(e, b, a, p->starting_psn);
		return;
	}
	p->made = true;
	a = fresh_flow(e, &there, p->side);
	b = fresh_flow(e, &back, other_port(p->side));
	if (!a || !b || a->rule < 0)
		return;
	if (p->path_mtu)
		a->path_mtu = b->path_mtu = (uint16_t)p->path_mtu;
	a->comm_id = p->key.id;
	b->comm_id = p->rep.id;
	/* each side tells how many it takes as a responder */
	a->read_depth = p->rep.depth;
	b->read_depth = p->read_depth;
	a->storage = b->storage = p->storage & 3;
	if (!(e->rules[a->rule].learn & LEARN_CM))
		return;
	if (p->offer_rqpn == p->rep.qpn)
		a->offered = p->offer;
	if (!p->rep.credits)
		begins_at(a, p->rep.psn);
	if (!p->req_credits)
		begins_at(b, p->starting_psn);
	flow_pair(e, a, b, LEARNED_CM);
}

/* The peer, whose side answers, has proved a pair (echo.c), which is at most a hint here. */
static void told_pair(struct engine *e, const struct report *r, struct flow *fl)
{
	const struct flow_key k = {
		.src = r->key.dst, .dst = r->key.src, .dqpn = r->lqpn, .vlan = r->key.vlan};
	struct flow *back = flow_by_key(e, &k);
	bool was;

	if (!back || (fl->partner == FLOW_NONE ? !pair_in_step(e, &k) : flow_proved(fl)))
		return;
	was = fl->partner == flow_index(e, back);
	if (!flow_pair(e, fl, back, LEARNED_PEER) || was)
		return;
	probes_forget(&fl->lane);
	probes_forget(&back->lane);
}

/* The peer knows the MSN of the requests in @l where they begin to come in order. */
static void told_count(struct lane *l, const struct report *r)
{
	if (!r->counted || l->calibrated || !lane_in_order(l) ||
	    !psn_is(l->watch.since, (struct wire_psn){r->start_psn}))
		return;
	mark_epsn_msn(l, psn_add(r->start_msn, l->watch.messages));
	l->calibrated = true;
	probes_clear(l);
}

/* It comes from the other side than the REP that it tells of, and may be here before that. */
void learn_offered(struct engine *e, const struct report *r)
{
	struct cm_key k = {r->key.src, r->key.dst, r->key.vlan, r->lqpn};
	struct flow *fl = flow_by_key(e, &r->key);
	struct cm_pending *p;

	if (fl && fl->side == PORT_LAN) {
		told_pair(e, r, fl);
		fl->offered = offer_of(r->lqpn, r->path_mtu);
		if (flow_offered(e, fl))
			told_count(&fl->lane, r);
	}
	for (p = cm_find(e, &k, CM_BY_QPN); p; p = cm_next(e, p)) {
		if (p->side == PORT_LAN) {
			p->offer_rqpn = r->key.dqpn;
			p->offer = offer_of(r->lqpn, r->path_mtu);
		}
	}
}

/* The queue pair that the REQ @p names asks its former responder nothing more. Who gets the REQ may
 * have another one at the same number when its REP comes by, which says from which PSN on: until
 * then a responder that has fallen silent is sent nothing. */
static void doubt_former(struct engine *e, const struct cm_pending *p)
{
	struct flow_key k = to_active(p);
	struct flow *back = flow_by_key(e, &k);
	struct flow *former = back ? flow_partner(e, back) : NULL;

	if (former && former->side == p->side && former->lane.role != ROLE_NONE)
		owner_doubt(e, former);
}

/* @id: of the connection, as the sender of @f names it, or as the other one does (@answer). */
static struct cm_key key_of(const struct frame *f, bool answer, uint32_t id)
{
	return (struct cm_key){answer ? f->dst : f->src, answer ? f->src : f->dst, f->vlan, id};
}

static void rx_req(struct engine *e, enum engine_port from, const struct frame *f,
		   const struct cm *cm)
{
	struct cm_pending what = {
		.key = key_of(f, false, cm->local_id),
		.lqpn = cm->lqpn,
		.starting_psn = cm->starting_psn,
		.path_mtu = cm->path_mtu,
		.read_depth = cm->responder_resources,
		.req_credits = cm->flow_control,
		.storage = (uint8_t)cm->storage,
		.side = (uint8_t)from,
	};
	struct cm_pending *p = cm_find(e, &what.key, CM_BY_ID);

	if (!cm->rc)
		return;
	if (p && p->lqpn == cm->lqpn && p->starting_psn == cm->starting_psn) {
		if (!p->certain)
			cm_heard(e, p, 0); /* said again */
		return;
	}
	if (p)
		cm_forget(e, p);
	p = cm_begin(e, &what);
	if (p)
		doubt_former(e, p);
}

/* The handshake of the datagram @f from the side @from, which answers one of the other side. */
static struct cm_pending *answered_by(struct engine *e, enum engine_port from,
				      const struct frame *f, const struct cm *cm)
{
	struct cm_key k = key_of(f, true, cm->remote_id);
	struct cm_pending *p = cm_find(e, &k, CM_BY_ID);

	return p && p->side != (uint8_t)from && !p->certain ? p : NULL;
}

/* The lane of @fl, by a REP that another one has followed, is the hosts' or is not: it acknowledges
 * nothing, and none begins. */
static void await_rtu(struct engine *e, struct flow *fl)
{
	if (!fl)
		return;
	flow_open_at(fl, UINT64_MAX);
	hold_back(e, fl, fl->lane.una.psn.v);
}

/* The pair that was made by the REP of @p so far may be none. */
static void unmake(struct engine *e, struct cm_pending *p)
{
	struct flow_key there = to_passive(p), back = to_active(p);
	struct flow *a = flow_by_key(e, &there), *b = flow_by_key(e, &back);

	p->made = false;
	if (!a || !b || a->partner != flow_index(e, b) || a->comm_id != p->key.id ||
	    b->comm_id != p->rep.id)
		return;
	if (either_owes(e, a) || either_owes(e, b)) {
		await_rtu(e, a);
		await_rtu(e, b);
	} else {
		end_flow(e, b);
		end_flow(e, a);
	}
}

static bool same_rep(const struct cm_rep *a, const struct cm_rep *b)
{
	return a->id == b->id && a->qpn == b->qpn && a->psn == b->psn;
}

static void rx_rep(struct engine *e, enum engine_port from, const struct frame *f,
		   const struct cm *cm)
{
	struct cm_pending *p = answered_by(e, from, f, cm);
	struct cm_rep rep = {
		.id = cm->local_id,
		.qpn = cm->lqpn,
		.psn = cm->starting_psn,
		.depth = cm->responder_resources,
		.credits = cm->flow_control,
	};

	if (!p || !rep.qpn)
		return;
	if (p->rep.qpn && !same_rep(&p->rep, &rep)) {
		if (p->made)
			unmake(e, p);
		p->other = p->rep;
	}
	p->rep = rep;
	cm_heard(e, p, 0);
	if (!p->other.qpn)
		established(e, p, false);
}

/* Who gets the REQ, or the REP, asks for patience. */
static void rx_mra(struct engine *e, enum engine_port from, const struct frame *f,
		   const struct cm *cm)
{
	struct cm_pending *p = answered_by(e, from, f, cm);
	struct cm_key k = key_of(f, false, cm->local_id);

	if (!p)
		p = cm_find(e, &k, CM_BY_ID);
	if (p && !p->certain && (p->side != (uint8_t)from || p->rep.id == cm->remote_id))
		cm_heard(e, p, 4096ull << cm->service_time);
}

static void rx_rtu(struct engine *e, enum engine_port from, const struct frame *f,
		   const struct cm *cm)
{
	struct cm_key k = key_of(f, false, cm->local_id);
	struct cm_pending *p = cm_find(e, &k, CM_BY_ID);

	if (!p || p->side != (uint8_t)from || !p->rep.qpn || p->certain)
		return;
	if (p->rep.id != cm->remote_id && p->other.qpn && p->other.id == cm->remote_id)
		p->rep = p->other;
	if (p->rep.id != cm->remote_id)
		return;
	p->certain = true;
	cm_over(e, p);
	established(e, p, true);
}

static void rx_dreq(struct engine *e, enum engine_port from, const struct frame *f,
		    const struct cm *cm)
{
	struct flow_key k = {.src = f->src, .dst = f->dst, .dqpn = cm->rqpn, .vlan = f->vlan};
	struct flow *fl = flow_by_key(e, &k), *other = fl ? flow_partner(e, fl) : NULL;
	struct cm_pending *p, what = {
				      .key = key_of(f, false, cm->local_id),
				      .rep = {.id = cm->remote_id, .qpn = cm->rqpn},
				      .side = (uint8_t)from,
				      .leaving = true,
			      };

	if (!other || fl->side != (uint8_t)from || !fl->comm_id || fl->comm_id != cm->local_id ||
	    other->comm_id != cm->remote_id)
		return;
	p = cm_find(e, &what.key, CM_BY_LEAVING_ID);
	if (p)
		cm_forget(e, p);
	cm_begin(e, &what);
}

static void rx_drep(struct engine *e, enum engine_port from, const struct frame *f,
		    const struct cm *cm)
{
	struct cm_key k = key_of(f, true, cm->remote_id), own = key_of(f, false, cm->local_id);
	struct cm_pending *p = cm_find(e, &k, CM_BY_LEAVING_ID);
	struct flow_key to;
	struct flow *fl, *other;
	const struct cm_pending *back;
	unsigned int asked;

	if (!p || p->side == (uint8_t)from || p->rep.id != cm->local_id)
		return;
	asked = 1u << p->side;
	back = cm_find(e, &own, CM_BY_LEAVING_ID);
	if (back && back->side == (uint8_t)from && back->rep.id == cm->remote_id)
		asked |= 1u << back->side; /* their requests have crossed */
	to = to_passive(p);
	cm_forget(e, p);
	fl = flow_by_key(e, &to);
	other = fl ? flow_partner(e, fl) : NULL;
	/* the number may have another owner by now */
	if (other && fl->comm_id == p->key.id && other->comm_id == p->rep.id)
		lanes_gone(e, fl, other, asked);
}

void learn_cm(struct engine *e, enum engine_port from, const struct frame *f)
{
	struct cm cm;

	if (cm_parse(f, &cm) == CM_NONE)
		return;
	COUNT(e, CM);
	if (cm.type == CM_REQ)
		rx_req(e, from, f, &cm);
	else if (cm.type == CM_MRA)
		rx_mra(e, from, f, &cm);
	else if (cm.type == CM_REP)
		rx_rep(e, from, f, &cm);
	else if (cm.type == CM_RTU)
		rx_rtu(e, from, f, &cm);
	else if (cm.type == CM_DREQ)
		rx_dreq(e, from, f, &cm);
	else if (cm.type == CM_DREP)
		rx_drep(e, from, f, &cm);
}
