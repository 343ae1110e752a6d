// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the connection manager's datagrams tell of queue pairs (InfiniBand vol. 1, 12.9): which two
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
 * RTU: the new queue pair exists at both ends. What the old one has not taken by now it will never
 * take: that is lost, counted and told as a fault.
 *
 * DREQ, DREP: both ends go. The DREQ must bear the ids of the handshake that was seen, for a host
 * answers any DREQ, also one that it knows nothing of. The lanes drain, and what the far queue pair
 * does not take soon is a fault (lanes_gone()). A DREQ alone, or of a connection whose handshake
 * was not seen, ends nothing.
 */
#include "engine/learn/learn.h"
#include "wire/cm.h"

#define CM_PENDING_NS (60 * NSEC_PER_SEC)
/* An RTU follows its REP within this. */
#define RTU_NS	      (2 * NSEC_PER_SEC)

static struct cm_pending *find(struct engine *e, const struct ip_addr *src,
			       const struct ip_addr *dst, uint16_t vlan, uint32_t id, bool leaving)
{
	for (uint32_t i = 0; i < CM_SLOTS; i++) {
		struct cm_pending *p = &e->cm[i];

		if (p->when && e->now - p->when < CM_PENDING_NS && p->local_id == id &&
		    p->leaving == leaving && p->vlan == vlan && ip_addr_eq(&p->src, src) &&
		    ip_addr_eq(&p->dst, dst)) {
			engine_change(e, p, sizeof(*p));
			return p;
		}
	}
	return NULL;
}

/* The lower, the sooner another one takes its place: a handshake that is under way, and that both
 * hosts have a part in, stays longest. */
static unsigned int worth(const struct engine *e, const struct cm_pending *p)
{
	if (!p->when || e->now - p->when >= CM_PENDING_NS)
		return 0;
	return p->certain ? 1 : 2u + p->answered;
}

/*
 * A place for what @src has sent. Anybody can send a REQ, or a thousand: no host has more of the
 * places than its part for what was not answered, and a further one takes that of its oldest.
 */
static struct cm_pending *slot(struct engine *e, const struct ip_addr *src)
{
	struct cm_pending *best = &e->cm[0], *own = NULL;
	uint32_t mine = 0;

	for (uint32_t i = 0; i < CM_SLOTS; i++) {
		struct cm_pending *p = &e->cm[i];
		unsigned int w = worth(e, p), least = worth(e, best);

		if (w < least || (w == least && p->when < best->when))
			best = p;
		if (w != 2 || !ip_addr_eq(&p->src, src))
			continue;
		mine++;
		if (!own || p->when < own->when)
			own = p;
	}
	if (mine >= CM_SLOTS / 2)
		best = own;
	engine_change(e, best, sizeof(*best));
	return best;
}

/*
 * Whether a lane by this number owes its host something. Where the peer keeps, or may as soon as it
 * likes, since we have agreed beforehand, we cannot know: it lets go, or the hosts do.
 */
static bool owes(struct engine *e, const struct flow *fl)
{
	const struct lane *l = &fl->lane;

	if (lane_keeps(l))
		return lane_owes(e, l);
	if (l->role == ROLE_ACCEPTOR && l->packets)
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

/* A flow for a QP that the connection manager has just named: whatever went before under this key
 * was another incarnation of the QP. */
static struct flow *fresh_flow(struct engine *e, const struct flow_key *k, enum engine_port side)
{
	struct flow *fl = flow_by_key(e, k);

	if (fl) {
		end_lane(e, fl);
		end_lane(e, flow_partner(e, fl));
		flow_unpair(e, fl);
		flow_free(e, fl);
	}
	return flow_create(e, k, side);
}

/*
 * The queue pair that @fl leads to is new: it expects @psn, has completed no message, and needs no
 * ACK to show that. It gives no credits. (Of one that does nobody knows how many it has.)
 */
static void begins_at(struct flow *fl, uint32_t psn)
{
	struct lane *l = &fl->lane;

	mark_una(l, &(struct mark){.psn = psn});
	l->una_sure = l->begins = true;
	l->credit = AETH_ACK_UNLIMITED;
}

/* The lane by the number of the new queue pair, which begins at @psn, or that of the other
 * direction, owes something: it shall not send what the new one would execute, nor tell it that
 * anything is done. Without a lane, what the former responder has said is no start for one. */
static void hold_back(struct engine *e, struct flow *fl, uint32_t psn)
{
	if (fl->lane.role == ROLE_NONE) {
		mark_una(&fl->lane, &(struct mark){.psn = PSN_NONE});
		fl->lane.una_sure = false;
		return;
	}
	fl->lane.suspect = lane_keeps(&fl->lane);
	if (psn_in(psn, fl->lane.una.psn, fl->lane.end))
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

/* Whether the queue pair that @back leads to, whoever its partner was, has asked since the REQ that
 * names it anew. */
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

/*
 * Both ends of the connection @p are named. @certain: it exists at both ends. Where something is
 * owed under one of the numbers, or the former queue pair still asks, and it is not certain,
 * nothing changes yet.
 */
static void established(struct engine *e, struct cm_pending *p, bool certain)
{
	struct flow_key to_passive = {
		.src = p->src, .dst = p->dst, .dqpn = p->rqpn, .vlan = p->vlan};
	struct flow_key to_active = {
		.src = p->dst, .dst = p->src, .dqpn = p->lqpn, .vlan = p->vlan};
	struct flow *a = flow_by_key(e, &to_passive), *b = flow_by_key(e, &to_active);
	bool same = a && b && a->partner == flow_index(e, b);

	/* a REP said again changes nothing, however the pair was found: there may be custody
	 * already */
	if (!p->made && certain && same && (opened_since(a, p) || opened_since(b, p))) {
		p->made = true;
		end_former(e, a, p, p->rep_psn, p->rep_credits);
		end_former(e, b, p, p->starting_psn, p->req_credits);
	}
	if (p->made || (same && (opened_since(a, p) || opened_since(b, p))))
		return;
	if (!certain && (either_owes(e, a) || either_owes(e, b) || asks_still(e, b, p))) {
		hold_former(e, a, b, p->rep_psn);
		hold_former(e, b, a, p->starting_psn);
		return;
	}
	p->made = true;
	a = fresh_flow(e, &to_passive, p->side);
	b = fresh_flow(e, &to_active, other_port(p->side));
	if (!a || !b || a->rule < 0)
		return;
	if (p->path_mtu)
		a->path_mtu = b->path_mtu = (uint16_t)p->path_mtu;
	a->comm_id = p->local_id;
	b->comm_id = p->remote_id;
	/* each side tells how many it takes as a responder; what its requester wants is its own
	 * business */
	a->read_depth = p->rep_depth;
	b->read_depth = p->read_depth;
	a->storage = b->storage = p->storage & 3;
	if (!(e->rules[a->rule].learn & LEARN_CM))
		return;
	if (p->offer_rqpn == p->rqpn)
		a->offered = p->offer;
	if (!p->rep_credits)
		begins_at(a, p->rep_psn);
	if (!p->req_credits)
		begins_at(b, p->starting_psn);
	flow_pair(e, a, b, LEARNED_CM);
}

/* It comes from the other side than the REP that it tells of, and may be here before that. */
void learn_offered(struct engine *e, const struct report *r)
{
	struct flow *fl = flow_by_key(e, &r->key);

	if (fl && fl->side == PORT_LAN)
		fl->offered = offer_of(r->lqpn, r->path_mtu);
	for (uint32_t i = 0; i < CM_SLOTS; i++) {
		struct cm_pending *p = &e->cm[i];

		if (p->when && !p->answered && !p->leaving && p->lqpn == r->lqpn &&
		    p->vlan == r->key.vlan && p->side == PORT_LAN &&
		    ip_addr_eq(&p->src, &r->key.src) && ip_addr_eq(&p->dst, &r->key.dst)) {
			p->offer_rqpn = r->key.dqpn;
			p->offer = offer_of(r->lqpn, r->path_mtu);
		}
	}
}

/*
 * The queue pair that the REQ @p names asks its former responder nothing more. Who gets the REQ may
 * have another one at the same number when its REP comes by, which says from which PSN on: until
 * then a responder that has fallen silent is sent nothing.
 */
static void doubt_former(struct engine *e, const struct cm_pending *p)
{
	struct flow_key to_active = {
		.src = p->dst, .dst = p->src, .dqpn = p->lqpn, .vlan = p->vlan};
	struct flow *back = flow_by_key(e, &to_active);
	struct flow *former = back ? flow_partner(e, back) : NULL;

	if (former && former->side == p->side && former->lane.role != ROLE_NONE)
		lane_doubt(e, former);
}

static void rx_req(struct engine *e, enum engine_port from, const struct frame *f,
		   const struct cm *cm)
{
	struct cm_pending *p = find(e, &f->src, &f->dst, f->vlan, cm->local_id, false);

	if (!cm->rc)
		return;
	if (!p)
		p = slot(e, &f->src);
	else if (p->lqpn == cm->lqpn && p->starting_psn == cm->starting_psn)
		return; /* said again */
	*p = (struct cm_pending){
		.src = f->src,
		.dst = f->dst,
		.local_id = cm->local_id,
		.lqpn = cm->lqpn,
		.starting_psn = cm->starting_psn,
		.path_mtu = cm->path_mtu,
		.read_depth = cm->responder_resources,
		.req_credits = cm->flow_control,
		.storage = (uint8_t)cm->storage,
		.vlan = f->vlan,
		.side = (uint8_t)from,
		.when = e->now,
	};
	doubt_former(e, p);
}

static void rx_rep(struct engine *e, enum engine_port from, const struct frame *f,
		   const struct cm *cm)
{
	struct cm_pending *p = find(e, &f->dst, &f->src, f->vlan, cm->remote_id, false);

	if (!p || p->side == (uint8_t)from || p->certain)
		return;
	p->answered = true;
	p->remote_id = cm->local_id;
	p->rqpn = cm->lqpn;
	p->rep_psn = cm->starting_psn;
	p->rep_depth = cm->responder_resources;
	p->rep_credits = cm->flow_control;
	established(e, p, false);
}

static void rx_rtu(struct engine *e, enum engine_port from, const struct frame *f,
		   const struct cm *cm)
{
	struct cm_pending *p = find(e, &f->src, &f->dst, f->vlan, cm->local_id, false);

	if (!p || p->side != (uint8_t)from || !p->answered || p->certain ||
	    p->remote_id != cm->remote_id)
		return;
	p->certain = true;
	established(e, p, true);
}

static void rx_dreq(struct engine *e, enum engine_port from, const struct frame *f,
		    const struct cm *cm)
{
	struct flow_key k = {.src = f->src, .dst = f->dst, .dqpn = cm->rqpn, .vlan = f->vlan};
	struct flow *fl = flow_by_key(e, &k), *other = fl ? flow_partner(e, fl) : NULL;
	struct cm_pending *p;

	if (!other || fl->side != (uint8_t)from || !fl->comm_id || fl->comm_id != cm->local_id ||
	    other->comm_id != cm->remote_id)
		return;
	p = find(e, &f->src, &f->dst, f->vlan, cm->local_id, true);
	if (!p)
		p = slot(e, &f->src);
	*p = (struct cm_pending){
		.src = f->src,
		.dst = f->dst,
		.local_id = cm->local_id,
		.remote_id = cm->remote_id,
		.rqpn = cm->rqpn,
		.vlan = f->vlan,
		.side = (uint8_t)from,
		.leaving = true,
		.when = e->now,
	};
}

static void rx_drep(struct engine *e, enum engine_port from, const struct frame *f,
		    const struct cm *cm)
{
	struct cm_pending *p = find(e, &f->dst, &f->src, f->vlan, cm->remote_id, true);
	struct flow_key k = {.src = f->dst, .dst = f->src, .vlan = f->vlan};
	struct flow *fl, *other;

	if (!p || p->side == (uint8_t)from || p->remote_id != cm->local_id)
		return;
	k.dqpn = p->rqpn;
	p->when = 0;
	fl = flow_by_key(e, &k);
	other = fl ? flow_partner(e, fl) : NULL;
	/* the number may have another owner by now */
	if (other && fl->comm_id == p->local_id && other->comm_id == p->remote_id)
		lanes_gone(e, fl, other);
}

void learn_cm(struct engine *e, enum engine_port from, const struct frame *f)
{
	struct cm cm;

	if (cm_parse(f, &cm) == CM_NONE)
		return;
	COUNT(e, CM);
	if (cm.type == CM_REQ)
		rx_req(e, from, f, &cm);
	else if (cm.type == CM_REP)
		rx_rep(e, from, f, &cm);
	else if (cm.type == CM_RTU)
		rx_rtu(e, from, f, &cm);
	else if (cm.type == CM_DREQ)
		rx_dreq(e, from, f, &cm);
	else if (cm.type == CM_DREP)
		rx_drep(e, from, f, &cm);
}
