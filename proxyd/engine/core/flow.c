// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Flows: their table, which rule wants one, which two are one connection (found by learn/learn.c).
 *
 * row: CONV-2
 */
#include "engine/core/core.h"

/* Where connections find no place, one without packets for so long gives its place up. */
#define WANTED_NS (10 * NSEC_PER_SEC)

void flow_key_of(struct flow_key *k, const struct frame *f)
{
	k->src = f->src;
	k->dst = f->dst;
	k->dqpn = f->dqpn;
	k->vlan = f->vlan;
	k->zero = 0;
}

struct flow *flow_at(struct engine *e, uint32_t index)
{
	return index == FLOW_NONE ? NULL : flow_ref(e, index);
}

struct flow *flow_by_key(struct engine *e, const struct flow_key *k)
{
	return flow_at(e, flow_table_find(e->table, k, e->flows, sizeof(struct flow)));
}

struct flow *flow_find(struct engine *e, const struct frame *f)
{
	struct flow_key k;

	flow_key_of(&k, f);
	return flow_by_key(e, &k);
}

void flow_headers(struct engine *e, struct flow *req, const struct frame *f)
{
	struct flow *fl = flow_partner(e, req);

	if (fl)
		template_learn(&fl->tmpl, f);
}

void flow_match_rule(struct engine *e, struct flow *fl)
{
	const struct flow_key *k = &fl->key;
	bool lan = fl->side == PORT_LAN;

	fl->rule = (int8_t)rule_match(e->rules, e->nrules, lan ? &k->src : &k->dst,
				      lan ? &k->dst : &k->src, k->vlan);
}

/** flow_read_depth - how many READs and ATOMICs the responder to the requests of @fl takes at a
 * time: what the rule says, or the connection manager; 0: not known. */
uint32_t flow_read_depth(const struct engine *e, const struct flow *fl)
{
	uint32_t ruled = fl->rule < 0 ? 0 : e->rules[fl->rule].read_depth;

	return ruled ? ruled : fl->read_depth;
}

/** flow_open_at - a lane of @fl may begin at @when, ns, and not before. */
void flow_open_at(struct flow *fl, uint64_t when)
{
	if (!fl->half) /* it has no partner yet, and no lane before that */
		fl->retry_open = when;
}

struct flow *flow_create(struct engine *e, const struct flow_key *key, enum engine_port side)
{
	struct flow *fl = flow_at(e, e->free_flow);

	if (!fl || flow_table_insert(e->table, key, flow_index(e, fl))) {
		COUNT(e, TABLE_FULL);
		e->wanted_at = e->now;
		return NULL;
	}
	e->free_flow = fl->next_free;
	e->used_flows++;
	if (flow_index(e, fl) >= e->flows_end)
		e->flows_end = flow_index(e, fl) + 1;
	memset(fl, 0, offsetof(struct flow, lane));
	memset((uint8_t *)fl + offsetof(struct flow, rare), 0,
	       sizeof(*fl) - offsetof(struct flow, rare));
	fl->used = true;
	fl->key = *key;
	fl->side = (uint8_t)side;
	fl->partner = fl->candidate = FLOW_NONE;
	fl->last_match_psn = PSN_NONE;
	fl->seen = fl->born = e->now;
	flow_match_rule(e, fl);
	if (fl->rule >= 0)
		fl->path_mtu = (uint16_t)e->rules[fl->rule].path_mtu;
	lane_init(fl);
	half_add(e, fl);
	return fl;
}

void flow_free(struct engine *e, struct flow *fl)
{
	uint32_t i = flow_index(e, fl);

	lane_reset(e, fl);
	flow_unpair(e, fl);
	half_del(e, fl);
	flow_table_remove(e->table, &fl->key, i);
	fl->used = false;
	fl->next_free = e->free_flow;
	e->free_flow = i;
	e->used_flows--;
}

void flow_forget(struct engine *e, struct flow *fl)
{
	struct flow *other = flow_partner(e, fl);

	flow_free(e, fl);
	if (other)
		flow_free(e, other);
}

/* A lane in FAULT, and one whose peer has lost what it promised, has a host to tell. */
static bool must_tell(const struct lane *l)
{
	return l->state == LANE_FAULT || (l->role == ROLE_NONE && l->waits_ms);
}

bool flow_unwanted(const struct engine *e, const struct flow *fl)
{
	const struct flow *other = fl->partner == FLOW_NONE ? NULL : &e->flows[fl->partner];

	return e->wanted_at && e->now - e->wanted_at < WANTED_NS && other &&
	       e->now - fl->seen >= WANTED_NS && e->now - other->seen >= WANTED_NS &&
	       !must_tell(&fl->lane) && !must_tell(&other->lane);
}

bool flow_idle(const struct engine *e, const struct flow *fl)
{
	uint64_t ns = e->cfg.idle_ns;

	return flow_unwanted(e, fl) ||
	       (e->now - fl->seen >= ns &&
		(fl->partner == FLOW_NONE || e->now - e->flows[fl->partner].seen >= ns));
}

bool flow_reversed(const struct flow *a, const struct flow *b)
{
	return ip_addr_eq(&a->key.src, &b->key.dst) && ip_addr_eq(&a->key.dst, &b->key.src) &&
	       a->key.vlan == b->key.vlan && a->side != b->side;
}

/* Both directions of a connection are known: tell the peer that we shall agree when it opens a lane
 * of the requests that come from there. It may have custody then before it has asked. */
static void offer(struct engine *e, struct flow *fl, const struct flow *back)
{
	const struct rule *r = fl->rule >= 0 ? &e->rules[fl->rule] : NULL;
	const struct lane *l = &fl->lane;
	struct report out = {
		.type = REPORT_OPEN,
		.key = fl->key,
		.lqpn = back->key.dqpn,
		.path_mtu = fl->path_mtu,
		.offer = true,
	};

	if (fl->side != PORT_WAN || !r || r->peer == PEER_NONE || !e->peer_up[r->peer] ||
	    !flow_proved(fl) || !(e->peer_features[r->peer] & PEER_FEATURE_OFFER) ||
	    !seal_possible(e, r) || flow_let_go(e, fl))
		return;
	out.sealed = r->seal;
	out.counted = lane_in_order(l) && l->calibrated;
	if (out.counted) {
		out.start_psn = l->watch.since.v;
		out.start_msn = psn_sub(l->epsn.msn, l->watch.messages) & PSN_MASK;
	}
	fl->pledged = true;
	e->sink.report(e->sink.ctx, (unsigned int)r->peer, &out);
}

bool flow_offered(struct engine *e, const struct flow *fl)
{
	const struct flow *back = flow_partner(e, fl);

	return back && fl->offered == offer_of(back->key.dqpn, fl->path_mtu);
}

/* The pair of @fl, if it has one, was a hint only: better evidence speaks for another. */
static void hint_gives_way(struct engine *e, struct flow *fl)
{
	const struct flow *other = flow_partner(e, fl);

	if (other && !flow_proved(fl) && fl->lane.role == ROLE_NONE &&
	    other->lane.role == ROLE_NONE)
		flow_unpair(e, fl);
}

bool flow_pair(struct engine *e, struct flow *a, struct flow *b, enum learn_source how)
{
	uint32_t ia = flow_index(e, a), ib = flow_index(e, b);
	bool hint;

	if (!flow_reversed(a, b))
		return false;
	if (a->partner == ib && b->partner == ia) {
		hint = !flow_proved(a) && how < LEARNED_PEER;
		if (how < a->learned || a->learned == LEARNED_NOT)
			a->learned = b->learned = (uint8_t)how;
		if (hint) {
			offer(e, a, b);
			offer(e, b, a);
		}
		return true;
	}
	if (how != LEARNED_HINT) {
		hint_gives_way(e, a);
		hint_gives_way(e, b);
	}
	if (a->partner != FLOW_NONE || b->partner != FLOW_NONE)
		return false;
	if (e->conns == e->cfg.max_conns) {
		COUNT(e, TABLE_FULL);
		e->wanted_at = e->now;
		return false;
	}
	half_del(e, a);
	half_del(e, b);
	a->partner = ib;
	b->partner = ia;
	a->candidate = b->candidate = FLOW_NONE;
	a->matches = b->matches = 0;
	a->learned = b->learned = (uint8_t)how;
	if (!a->path_mtu)
		a->path_mtu = b->path_mtu;
	b->path_mtu = a->path_mtu;
	e->conns++;
	engine_event(e, EVENT_PAIRED, a, 0, 0);
	if (how != LEARNED_PEER) {
		offer(e, a, b);
		offer(e, b, a);
	}
	return true;
}

void flow_unpair(struct engine *e, struct flow *fl)
{
	struct flow *other = flow_partner(e, fl);

	if (!other)
		return;
	/* the answers to a lane's requests travel in the other flow: without it there is no lane */
	lane_close(e, fl, REASON_INCARNATION, true);
	lane_close(e, other, REASON_INCARNATION, true);
	for (int i = 0; i < 2; i++) {
		struct flow *x = i ? other : fl;

		x->partner = x->candidate = FLOW_NONE;
		x->matches = 0;
		x->learned = LEARNED_NOT;
		x->left = x->pledged = false;
		x->storage = STORAGE_UNKNOWN;
		x->offered = 0;
		x->lane.calibrated = false;
		half_add(e, x);
	}
	e->conns--;
	/* once enough places are free, those that are idle keep theirs again */
	if (e->conns + e->cfg.max_conns / 16 < e->cfg.max_conns)
		e->wanted_at = 0;
}

static uint32_t pair_of(const struct flow_key *k)
{
	return ip_pair_hash(&k->src, &k->dst) >> 48 & (PAIR_SLOTS - 1);
}

/** pair_epoch - of the two hosts of @k. Hosts that share a slot flush each other's guesses. */
uint32_t *pair_epoch(struct engine *e, const struct flow_key *k)
{
	struct host_pair *p = &e->pair[pair_of(k)];

	engine_change(e, p, sizeof(*p));
	return &p->epoch;
}

/** pair_untold - something is lost that a host of @k was told to be done, and for the next @ms it
 * may not know; @k: of requests, where the rule keeps an order. pair_waits - so it is now. */
void pair_untold(struct engine *e, const struct flow_key *k, uint32_t ms)
{
	struct host_pair *p = &e->pair[pair_of(k)];

	engine_change(e, p, sizeof(*p));
	p->untold = e->now + ms * NSEC_PER_MSEC;
}

/** flow_macs - the request @f of the held lane of @fl comes from its host if its ICRC is right:
 * what is made or kept for the connection goes by the MAC addresses of today, since routers fail
 * over and are replaced. No answer that shows them may come (near/). A router to which answers
 * went under the MAC under which it sent is known by its new one; a virtual MAC stays. */
void flow_macs(struct engine *e, struct flow *fl, const struct frame *f)
{
	uint8_t *way = fl->tmpl.hdr;
	struct flow *back;

	if (!fl->tmpl.len || !memcmp(way, f->data, 2 * MAC_LEN) || !icrc_ok(f))
		return;
	back = flow_partner(e, fl);
	if (back && back->tmpl.len && !memcmp(back->tmpl.hdr, way + MAC_LEN, MAC_LEN))
		memcpy(back->tmpl.hdr, f->data + MAC_LEN, MAC_LEN);
	memcpy(way, f->data, 2 * MAC_LEN);
}

/** pair_steps - two flows between the hosts of @k have just asked under the same PSN, so PSNs tell
 * them not apart for @ns; pair_in_step - so it is now. */
void pair_steps(struct engine *e, const struct flow_key *k, uint64_t ns)
{
	struct host_pair *p = &e->pair[pair_of(k)];

	engine_change(e, p, sizeof(*p));
	p->in_step = e->now + ns;
}

bool pair_in_step(const struct engine *e, const struct flow_key *k)
{
	return e->now < e->pair[pair_of(k)].in_step;
}

bool pair_waits(const struct engine *e, const struct flow_key *k)
{
	return e->now < e->pair[pair_of(k)].untold;
}
