// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The engine's front door: where a frame goes, and what a tick does.
 *
 * Every frame takes one of three ways. What is no business of ours (other services, unpaired flows,
 * rules that do not want it, lanes in WATCH) passes to the other port unchanged, in the order of
 * arrival. What belongs to a held lane goes to the part that stands in on this side: requests from
 * the LAN to pseudo_responder.c, requests from the WAN to stream_rx.c, responses to
 * pseudo_requester.c or, where the peer does its work, to the bookkeeping of READ answers.
 *
 * Nothing is acknowledged or reported inside engine_rx(): marks move, flags are raised, and
 * engine_tick() at the end of a batch says it once, cumulatively.
 */
#include <stdlib.h>

#include "engine/link/order.h"
#include "engine/roles.h"

/* So much is looked at twice for next to nothing. */
#define SMALL_BYTES 256u
#define SWEEP_NS    (10 * NSEC_PER_MSEC)
#define SWEEP_FLOWS 256u

/* The connection of @fl was taken down, and here is a packet all the same. */
static void next_owner(struct engine *e, struct flow *fl)
{
	if (!conn_held(e, fl)) {
		fl->left = false;
		flow_unpair(e, fl);
	}
}

/* Whether the request @f passes by what the lane holds. One from below its start may be new to the
 * responder: on its way to the lane it was lost, or dropped here. In FAULT nothing passes. */
static bool unheld(const struct lane *l, const struct frame *f)
{
	return l->role == ROLE_NONE ||
	       (l->state == LANE_OPENING && !psn_is(wire_psn_of(f), l->epsn.psn)) ||
	       (l->state != LANE_FAULT && !l->start_acked && psn_before(wire_psn_of(f), l->start));
}

/* The peer has lost what it promised the requester of @fl, and with it the way to go on: the near
 * host sees it at once, for what it waits for may have been lost there. Returns whether it does. */
static bool cut_stranded(struct engine *e, struct flow *fl)
{
	struct flow *back = flow_partner(e, fl);

	if (!fl->stranded || fl->cut || fl->lane.role != ROLE_NONE || !back ||
	    !opener_gone(fl->lane.reason) || back->lane.state == LANE_FAULT)
		return false;
	flow_change(e, fl);
	fl->cut = true;
	fault_broken_promise(e, back, (struct far_psn){fl->lane.near.acked.psn.v & PSN_MASK});
	return true;
}

/* A request of flow @fl, arrived at its own side. */
static void rx_request(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;

	if (fl->left)
		next_owner(e, fl);
	if (cut_stranded(e, fl)) {
		fault_abandoned_again(e, fl, f);
		return;
	}
	if (fl->stranded && l->role == ROLE_NONE) {
		fl->stranded = false;
		fault_orphan(e, fl);
	}
	if (l->role == ROLE_NONE && l->waits_ms && fl->side == PORT_WAN &&
	    fault_abandoned(e, fl, f))
		return;
	if (e->ordered && l->state != LANE_FAULT && fl->rule >= 0 && e->rules[fl->rule].order &&
	    fl->side == PORT_LAN && pair_waits(e, &fl->key)) {
		COUNT(e, ORDER_DROPPED); /* its host has just lost what it was told to be done */
		return;
	}
	if (l->role == ROLE_NONE && fl->rule >= 0) {
		/* behind a gap no lane begins: its host will go back */
		bool may = !passing_gap(e, fl, f);

		learn_request(e, fl, f);
		/* of one that is not up it is not known whether it can */
		if (!seal_possible(e, &e->rules[fl->rule]) && e->peer_up[e->rules[fl->rule].peer])
			l->reason = REASON_UNSEALED;
		if (may && lane_may_open(e, fl, f))
			lane_open(e, fl, f);
		else if (may && solo_may_begin(e, fl, f))
			solo_begin(e, fl, f);
	}
	/* what no lane holds must not overtake what one does */
	if (e->ordered && fl->rule >= 0 && unheld(l, f) && !order_may_pass(e, fl))
		return;
	if (role_of(e, l)->request)
		role_of(e, l)->request(e, fl, f);
	else if (passing_may(e, fl, f)) {
		engine_pass(e, fl, fl->side, f);
		echo_passed(e, fl, f);
	}
}

/* A response that travels in flow @fl: it answers requests of the partner's lane. */
static void rx_response(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct flow *req;

	if (fl->left)
		next_owner(e, fl);
	req = flow_partner(e, fl);
	if (!req || req->lane.role == ROLE_NONE) {
		if (req && req->lane.waits_ms)
			fault_abandoned_ack(req, f);
		if (fl->rule >= 0)
			learn_response(e, fl, f);
		engine_pass(e, NULL, fl->side, f);
		return;
	}
	role_of(e, &req->lane)->response(e, req, f, fl->side);
}

/* A connection in fault: what comes from its near host is for fault/ to judge, and nothing reaches
 * that host from afar any more. Requests of the lane itself go their usual way. */
static bool rx_in_fault(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct flow *other = flow_partner(e, fl);

	if (fl->lane.state == LANE_FAULT && (f->op->flags & OPF_RESPONSE)) {
		fault_response(e, fl, f);
		return true;
	}
	if (other && other->lane.state == LANE_FAULT) {
		COUNT(e, FAULT_DROPPED);
		if (f->op->flags & OPF_REQUEST) {
			fault_abandoned_again(e, fl, f);
			fault_far_request(other, f);
		}
		return true;
	}
	return false;
}

/* ACCEPTOR: whether request @f may belong to a lane that replaces @l and starts at an earlier PSN,
 * because a packet before @l was lost. Then the responder has acknowledged nothing of @l. */
static bool of_next_lane(const struct lane *l, const struct frame *f)
{
	return l->role == ROLE_ACCEPTOR && (f->op->flags & OPF_REQUEST) &&
	       psn_is(l->una.psn, l->start) && psn_before(wire_psn_of(f), l->start);
}

/* Whether the ICRC of @f is looked at first. The copy of a held lane's large packet computes it. */
static bool check_now(struct engine *e, enum engine_port port, const struct flow *fl,
		      const struct frame *f)
{
	if (f->icrc_right || f->seal)
		return false;
	if (port == PORT_LAN && f->payload_len <= SMALL_BYTES)
		return true;
	if (fl && (f->op->flags & OPF_RESPONSE))
		fl = flow_partner(e, fl);
	return !fl || fl->lane.role == ROLE_NONE || of_next_lane(&fl->lane, f);
}

/* What may tell a host of changed memory at the other one: all requests but READs. */
static void signalled(struct engine *e, const struct frame *f)
{
	struct flow_key k = {.src = f->src, .dst = f->dst};

	if (!(f->op->flags & OPF_RESPONSE) && f->opcode != OP_READ_REQUEST && f->opcode != OP_CNP)
		++*pair_epoch(e, &k);
}

static void rx_begin(struct engine *e, enum engine_port port, uint64_t now_ns)
{
	batch_begin(e, now_ns);
	e->via = LINK_ALONE;
	e->counters[port == PORT_LAN ? EC_RX_LAN : EC_RX_WAN]++;
}

/* The frame @f belongs to the flow @fl: from here on it is known which link it uses. */
static void rx_by_link(struct engine *e, const struct flow *fl, const struct frame *f)
{
	e->via = (uint8_t)flow_link(e, fl);
	if (fl->side == PORT_WAN)
		meter_got(e, f);
}

/* A congestion notification. It is for a requester, from the responder: where an appliance stands
 * in for that, it is what should slow down. The host is told all the same. */
static void rx_cnp(struct engine *e, enum engine_port port, const struct frame *f)
{
	struct flow *fl = flow_find(e, f), *req = fl ? flow_partner(e, fl) : NULL;

	COUNT(e, CNP);
	if (!req || fl->side != (uint8_t)port || !role_of(e, &req->lane)->congested)
		return;
	if (icrc_ok(f))
		role_of(e, &req->lane)->congested(e, req);
	else
		COUNT(e, BAD_ICRC);
}

/* A frame of another service than RC. */
static void rx_other(struct engine *e, enum engine_port port, const struct frame *f)
{
	if (f->opcode == OP_CNP)
		rx_cnp(e, port, f);
	else
		COUNT(e, NOT_RC);
	if (f->opcode == OP_UD_SEND_ONLY && f->dqpn == 1) {
		if (host_answered(e, port, f))
			return;
		if (icrc_ok(f))
			learn_cm(e, port, f);
		else
			COUNT(e, BAD_ICRC); /* whoever made it: nothing is learned */
	}
	engine_pass(e, NULL, port, f);
}

static void count_flow(struct flow *fl, uint32_t len)
{
	if (!fl)
		return;
	fl->meter.packets++;
	fl->meter.bytes += len;
}

/* What the peer READ ahead of a host. It is for us alone, and never passes. */
static void rx_push(struct engine *e, enum engine_port port, struct frame *f, uint8_t *data)
{
	struct flow *fl = flow_find(e, f), *req = fl ? flow_partner(e, fl) : NULL;

	if (port != PORT_WAN || !req || fl->side != PORT_WAN) {
		COUNT(e, PUSH_DROPPED);
		return;
	}
	count_flow(fl, f->len);
	rx_by_link(e, fl, f);
	if (f->opcode == OP_PARITY_REQUESTS)
		stream_parity_rx(e, fl, fl, f, data);
	else if (f->opcode == OP_PARITY_ANSWERS)
		stream_parity_rx(e, req, fl, f, data);
	else if (f->opcode == OP_PARITY)
		parity_rx(e, req, f);
	else
		push_rx(e, req, f);
}

/* How near to the requests of a watched lane a packet is one of them. */
#define UNKNOWN_NEAR 1024

static bool near_watched(const struct lane *l, const struct frame *f)
{
	return psn_known(l->epsn.psn) &&
	       abs(psn_diff(wire_psn_of(f), l->epsn.psn)) < UNKNOWN_NEAR && icrc_ok(f);
}

/* A frame that the parser did not accept: the hosts' NICs judge it, a bridge would not have looked.
 * A packet whose opcode has no row passes in WATCH, and the lane stays there for a while. */
static void rx_unknown(struct engine *e, enum engine_port port, const struct frame *f,
		       enum frame_verdict v)
{
	struct flow *fl = NULL, *other;
	struct lane *l;

	e->counters[v == FRAME_UNKNOWN_OPCODE ? EC_BAD_OPCODE : EC_BAD_FRAME]++;
	if (v == FRAME_UNKNOWN_OPCODE && opcode_is_rc(f->opcode))
		fl = flow_find(e, f);
	if (!fl || fl->side != (uint8_t)port) {
		engine_pass(e, NULL, port, f);
		return;
	}
	rx_by_link(e, fl, f);
	l = &fl->lane;
	other = flow_partner(e, fl);
	if (other && other->lane.state == LANE_FAULT) {
		COUNT(e, FAULT_DROPPED);
	} else if (role_of(e, l)->unknown) {
		role_of(e, l)->unknown(e, fl, f);
	} else {
		if (l->role == ROLE_NONE && near_watched(l, f))
			lane_stay_watched(e, fl, REASON_OPCODE);
		engine_pass(e, NULL, port, f);
	}
}

/* Whether the response @psn answers what @l has in custody, or has a number unknown to its host. */
static bool answers_lane(struct engine *e, const struct lane *l, struct wire_psn psn)
{
	const struct psn_map *map = map_of(e, l);

	if (l->role == ROLE_SOLO)
		return map && map->seg.n;
	return l->state != LANE_OPENING && (psn_map_differs(e, l) || announce_numbered(e, l) ||
					    psn_in(psn, l->una.psn, l->epsn.psn));
}

/*
 * A response whose syndrome is reserved. It says neither that something is done nor that it is
 * refused, so nothing is released and nothing is learned by it. What answers the requester itself
 * passes, for its NIC to judge. What answers a lane ends here: the responder is asked again, as
 * after any answer that was lost. It drains no lane, since anybody can send it; but none begins.
 */
static void rx_unknown_answer(struct engine *e, enum engine_port port, const struct frame *f)
{
	struct flow *fl = flow_find(e, f), *req = fl ? flow_partner(e, fl) : NULL;

	COUNT(e, BAD_OPCODE);
	if (!req || fl->side != (uint8_t)port) {
		engine_pass(e, NULL, port, f);
		return;
	}
	rx_by_link(e, fl, f);
	if (req->lane.state == LANE_FAULT || fl->lane.state == LANE_FAULT) {
		COUNT(e, FAULT_DROPPED);
	} else if (req->lane.role == ROLE_NONE) {
		if (near_watched(&req->lane, f))
			lane_stay_watched(e, req, REASON_OPCODE);
		engine_pass(e, NULL, port, f);
	} else if (!answers_lane(e, &req->lane, wire_psn_of(f))) {
		engine_pass(e, NULL, port, f);
	}
}

/* The flow of @f, which is @fl, or a new one where that is NULL; NULL when there is no place. */
static struct flow *met(struct engine *e, enum engine_port port, const struct frame *f,
			struct flow *fl)
{
	struct flow_key key;

	if (!fl) {
		flow_key_of(&key, f);
		return half_meet(e, &key, port);
	}
	if (fl->half && (fl->side == (uint8_t)port || half_moves(e, fl, port)))
		half_seen(e, fl);
	return fl;
}

/* @f, of @fl, has a wrong ICRC. An OPEN of the peer may explain it: false when that is to be asked
 * for, and nothing is done (signalled() counts it again, which only makes answers that were READ
 * ahead too old). Else nothing may be learned from it; the host will drop it. */
static bool rx_damaged(struct engine *e, enum engine_port port, const struct flow *fl,
		       const struct frame *f, bool ask)
{
	const struct rule *rule = fl && fl->rule >= 0 ? &e->rules[fl->rule] : NULL;

	if (ask && port == PORT_WAN && fl && fl->side == PORT_WAN && rule && rule->seal &&
	    rule->peer >= 0 && e->peer_up[rule->peer]) {
		e->counters[EC_RX_WAN]--;
		return false;
	}
	COUNT(e, BAD_ICRC);
	engine_pass(e, NULL, port, f);
	return true;
}

/* False, and nothing is done, when the caller is to @ask for what may explain the frame first. */
static bool rx(struct engine *e, enum engine_port port, uint8_t *data, uint32_t len,
	       uint64_t now_ns, bool ask)
{
	struct frame f;
	enum frame_verdict v = frame_parse(data, len, &f);
	struct flow *fl;

	rx_begin(e, port, now_ns);
	if (v != FRAME_OK) {
		if (e->prefetch && v == FRAME_UNKNOWN_OPCODE)
			signalled(e, &f);
		f.data = data;
		f.len = len;
		rx_unknown(e, port, &f, v);
		return true;
	}
	if (f.op->headers & (HDR_PUSH | HDR_MEMBERS)) {
		rx_push(e, port, &f, data);
		return true;
	}
	if (e->prefetch)
		signalled(e, &f);
	if (!(f.op->flags & OPF_RC)) {
		rx_other(e, port, &f);
		return true;
	}
	if (!frame_understood(&f)) {
		rx_unknown_answer(e, port, &f);
		return true;
	}
	fl = flow_find(e, &f);
	if (port == PORT_WAN && fl && !seal_open(e, fl, &f, data))
		return true;
	if (check_now(e, port, fl, &f)) {
		f.icrc_right = icrc_ok(&f);
		if (!f.icrc_right)
			return rx_damaged(e, port, fl, &f, ask);
	}
	fl = met(e, port, &f, fl);
	count_flow(fl, len);
	if (fl && fl->side != (uint8_t)port && e->in_fault)
		fault_moved(e, fl, port);
	/* A flow that turns up on the wrong port is a loop or a moved host: hands off. */
	if (!fl || (fl->rule < 0 && !conn_held(e, fl)) || fl->side != (uint8_t)port) {
		if (fl && fl->rule < 0)
			COUNT(e, NO_RULE);
		engine_pass(e, NULL, port, &f);
		return true;
	}
	rx_by_link(e, fl, &f);
	if (port == PORT_LAN && fl->rule >= 0 && e->rules[fl->rule].dscp)
		frame_set_dscp(&f, data, e->rules[fl->rule].dscp & ~RULE_DSCP);
	learn_frame(e, fl, &f);
	if (e->in_fault && rx_in_fault(e, fl, &f))
		return true;
	if (f.op->flags & OPF_REQUEST)
		rx_request(e, fl, &f);
	else
		rx_response(e, fl, &f);
	return true;
}

/* What was found broken meanwhile. */
static void settle(struct engine *e)
{
	if (__builtin_expect(e->broken, 0))
		fault_broken(e);
}

void engine_rx(struct engine *e, enum engine_port port, uint8_t *data, uint32_t len,
	       uint64_t now_ns)
{
	(void)rx(e, port, data, len, now_ns, false);
	settle(e);
}

bool engine_rx_ask(struct engine *e, enum engine_port port, uint8_t *data, uint32_t len,
		   uint64_t now_ns)
{
	bool done = rx(e, port, data, len, now_ns, true);

	settle(e);
	return done;
}

void engine_box(struct engine *e, const struct engine_box *b)
{
	e->box = *b;
}

void engine_rx_report(struct engine *e, unsigned int peer, const struct report *r, uint64_t now_ns)
{
	batch_begin(e, now_ns);
	if (peer >= PEER_MAX)
		return;
	e->via = (uint8_t)peer;
	if (r->type == REPORT_METER)
		meter_rx(e, peer, r);
	else
		agreement_rx(e, peer, r);
	settle(e);
}

static void timer_fired(void *ctx, uint32_t id)
{
	struct engine *e = ctx;
	struct flow *fl = flow_ref(e, id / TIMERS);

	if (!fl->used)
		return;
	if (fl->lane.role == ROLE_NONE) {
		flow_leave(e, fl);
		return;
	}
	e->via = (uint8_t)flow_link(e, fl);
	if (id % TIMERS == TIMER_REPORT)
		report_list(e, fl);
	else
		role_of(e, &fl->lane)->timer(e, fl, id % TIMERS);
	settle(e);
}

/* Whether the connection of @fl must fail as soon as it is used: not to be forgotten before. */
static bool doomed(struct engine *e, const struct flow *fl)
{
	const struct flow *other = flow_partner(e, fl);

	return fl->stranded || fault_unheard(&fl->lane) ||
	       (other && (other->stranded || fault_unheard(&other->lane)));
}

static void sweep_flow(struct engine *e, struct flow *fl)
{
	const struct flow *other;

	if (role_of(e, &fl->lane)->sweep) {
		flow_change(e, fl);
		role_of(e, &fl->lane)->sweep(e, fl);
	}
	if (fl->used)
		(void)cut_stranded(e, fl);
	if (!fl->used || !flow_idle(e, fl) || doomed(e, fl))
		return;
	flow_change(e, fl);
	other = flow_partner(e, fl);
	if (fl->lane.role != ROLE_NONE) {
		if (fl->lane.state != LANE_FAULT && role_of(e, &fl->lane)->owes(e, fl))
			return;
		lane_close(e, fl, REASON_IDLE, true);
	}
	if ((!other || other->lane.role == ROLE_NONE) && !doomed(e, fl))
		flow_forget(e, fl);
}

/* Forget flows that nobody uses, a few at a time. */
static void sweep(struct engine *e)
{
	if (e->now < e->sweep_at)
		return;
	e->sweep_at = e->now + SWEEP_NS;
	half_expire(e);
	for (uint32_t i = 0; i < SWEEP_FLOWS; i++) {
		struct flow *fl = &e->flows[e->sweep];

		e->sweep = e->sweep + 1 < e->nflows ? e->sweep + 1 : 0;
		if (fl->used)
			sweep_flow(e, fl);
	}
}

void engine_tick(struct engine *e, uint64_t now_ns)
{
	batch_begin(e, now_ns);
	wheel_expire(e->wheel, now_ns, timer_fired, e);
	e->wake = UINT64_MAX;
	settle(e);
	pace_tick(e);
	near_room(e);
	settle(e);
	due_acks(e);
	order_tick(e);
	settle(e);
	due_acks(e); /* what a barrier allows to be told */
	settle(e);
	due_reports(e);
	if (!e->cfg.shared)
		meter_tick(e);
	echo_tick(e);
	sweep(e);
	settle(e);
	batch_end(e);
}

uint64_t engine_deadline(const struct engine *e)
{
	uint64_t t = wheel_next(e->wheel);

	t = MIN(t, e->wake);
	if (e->used_flows && e->sweep_at < t)
		t = e->sweep_at;
	return t;
}

bool engine_may_stop(struct engine *e)
{
	flow_each (const struct flow, fl, e) {
		const struct lane *l = &fl->lane;

		if (lane_keeps(l) &&
		    (l->held.packets || fault_pending(l) || (l->numbered && psn_map_differs(e, l))))
			return false;
		if (solo_owes(e, fl))
			return false;
		/* its opener is gone, takes what only we deliver, or may have agreed to numbers */
		if (l->role == ROLE_ACCEPTOR &&
		    (l->state == LANE_DRAIN ||
		     (l->closing && (e->peer_up[l->peer] || announce_of(e, l)))))
			return false;
	}
	return true;
}

uint32_t engine_give_up(struct engine *e, uint64_t now_ns)
{
	uint32_t failing = 0;

	batch_begin(e, now_ns);
	flow_each (struct flow, fl, e) {
		flow_change(e, fl);
		if (lane_keeps(&fl->lane) && fl->lane.held.packets)
			lane_fault(e, fl, REASON_OPERATOR, AETH_NAK_OPERATION);
		failing += fault_pending(&fl->lane);
	}
	return failing;
}

/* Whose requests a former engine held: of a host on the LAN, or of one beyond the WAN that it read
 * ahead for (solo.c). Those of an acceptor's lane have their custody elsewhere. */
static bool orphan_side(const struct engine *e, const struct flow_key *k, enum engine_port *side)
{
	int near = rule_match(e->rules, e->nrules, &k->src, &k->dst, k->vlan);
	int far = rule_match(e->rules, e->nrules, &k->dst, &k->src, k->vlan);
	bool solo =
		far >= 0 && (e->rules[far].prefetch == PREFETCH_SINGLE || e->rules[far].announce);

	*side = far >= 0 && (near < 0 || solo) ? PORT_WAN : PORT_LAN;
	return *side == PORT_LAN || solo || !e->cfg.fence;
}

bool engine_fail_orphan(struct engine *e, const struct flow_key *requests, uint32_t lqpn,
			const struct template *headers, uint64_t now_ns)
{
	struct flow_key back = {
		.src = requests->dst, .dst = requests->src, .dqpn = lqpn, .vlan = requests->vlan};
	struct flow *fl, *other;
	enum engine_port side;

	if (!orphan_side(e, requests, &side))
		return false;
	batch_begin(e, now_ns);
	fl = flow_by_key(e, requests);
	fl = fl ? fl : flow_create(e, requests, side);
	other = flow_by_key(e, &back);
	other = other ? other : flow_create(e, &back, other_port(side));
	if (!fl || !other || !flow_pair(e, fl, other, LEARNED_PEER))
		return true;
	/* where both directions were held the near host lost custody: it is told */
	if (fl->lane.role != ROLE_NONE || (other->lane.role != ROLE_NONE && side == PORT_WAN))
		return fl->lane.role != ROLE_NONE;
	lane_close(e, other, REASON_ORPHAN, false);
	if (headers && !other->tmpl.len)
		other->tmpl = *headers;
	fault_orphan(e, fl);
	return true;
}

void engine_rules(struct engine *e, const struct rule *rules, unsigned int n, uint64_t now_ns)
{
	batch_begin(e, now_ns);
	e->nrules = n > RULE_MAX ? RULE_MAX : n;
	for (unsigned int i = 0; i < RULE_MAX; i++)
		engine_change(e, &e->rules[i], sizeof(e->rules[i]));
	memcpy(e->rules, rules, e->nrules * sizeof(*rules));
	memset(e->rule_bytes, 0, sizeof(e->rule_bytes));
	e->prefetch = e->ordered = false;
	for (unsigned int i = 0; i < e->nrules; i++) {
		e->ordered |= e->rules[i].order == ORDER_HOSTS;
		e->prefetch |= e->rules[i].prefetch || e->rules[i].atomic == ATOMIC_PREFETCH;
	}
	flow_each (struct flow, fl, e) {
		flow_change(e, fl);
		flow_match_rule(e, fl);
		flow_open_at(fl, 0);
		if (fl->lane.role == ROLE_NONE)
			continue;
		if (fl->rule < 0) {
			/* what is held must still be delivered */
			lane_drain(e, fl, REASON_OPERATOR);
			continue;
		}
		if (lane_keeps(&fl->lane))
			e->rule_bytes[fl->rule] += fl->lane.held.bytes;
		if (e->rules[fl->rule].peer != fl->lane.peer) {
			lane_drain(e, fl, REASON_OPERATOR);
		} else if (lane_keeps(&fl->lane)) {
			fl->lane.policy = e->rules[fl->rule].policy;
			if (e->rules[fl->rule].order && !fl->lane.ordered &&
			    fl->lane.policy == POLICY_EARLY)
				fl->lane.policy = POLICY_HONEST; /* until it begins anew */
			if (fl->lane.policy == POLICY_EARLY)
				fl->lane.near.within = (uint32_t)(fl->lane.held.bytes / WITHIN);
			else
				fl->lane.near.honest = fl->lane.una;
			fl->lane.near.honest_found = false;
		}
	}
}

void engine_hush(struct engine *e, uint64_t now_ns)
{
	batch_begin(e, now_ns);
	e->taken_at = now_ns;
	e->hushed = true;
}

uint64_t engine_taken_at(const struct engine *e)
{
	return e->taken_at;
}

void engine_go_on(struct engine *e, uint64_t now_ns)
{
	batch_begin(e, now_ns);
	flow_each (struct flow, fl, e) {
		struct lane *l = &fl->lane;

		if (l->role == ROLE_NONE)
			continue;
		flow_change(e, fl);
		lane_guard_again(e, fl);
		if (lane_keeps(l))
			near_tell_again(e, fl);
		if (l->peer != PEER_NONE && e->peer_up[l->peer] && role_of(e, l)->peer)
			role_of(e, l)->peer(e, fl, false);
	}
}

void engine_peer_features(struct engine *e, unsigned int peer, uint32_t features)
{
	batch_begin(e, e->now);
	if (peer < PEER_MAX)
		e->peer_features[peer] = features;
}

void engine_peer_rtt(struct engine *e, unsigned int peer, uint64_t rtt_ns)
{
	batch_begin(e, e->now);
	if (peer < PEER_MAX)
		link_at(e, peer)->rtt_us = (uint32_t)(rtt_ns / NSEC_PER_USEC);
}

void engine_peer_event(struct engine *e, unsigned int peer, enum peer_event ev, uint64_t now_ns)
{
	batch_begin(e, now_ns);
	if (peer >= PEER_MAX)
		return;
	if (ev == PEER_RESTARTED || !e->peer_new_at[peer])
		e->peer_new_at[peer] = now_ns;
	e->peer_up[peer] = ev != PEER_DOWN;
	if (ev != PEER_AGAIN)
		meter_forget(e, peer);
	e->peer_since[peer] = e->now;
	if (ev == PEER_DOWN)
		return;
	if (ev == PEER_RESTARTED)
		order_forget(e, peer);
	flow_each (struct flow, fl, e) {
		struct lane *l = &fl->lane;

		if (ev == PEER_RESTARTED && fl->offered && fl->rule >= 0 &&
		    e->rules[fl->rule].peer == (int8_t)peer) {
			flow_change(e, fl);
			fl->offered = 0;
		}
		if (l->peer != (int8_t)peer)
			continue;
		flow_change(e, fl);
		flow_open_at(fl, 0);
		if (role_of(e, l)->peer)
			role_of(e, l)->peer(e, fl, ev == PEER_RESTARTED);
	}
}

bool engine_peer_is_up(const struct engine *e, unsigned int peer)
{
	return peer < PEER_MAX && e->peer_up[peer];
}

void engine_drain(struct engine *e, uint64_t now_ns)
{
	batch_begin(e, now_ns);
	e->draining = true;
	for (uint32_t i = 0; i < e->nflows; i++)
		if (e->flows[i].used && e->flows[i].lane.role != ROLE_NONE)
			lane_drain(e, flow_ref(e, i), REASON_OPERATOR);
}

uint64_t engine_counter(const struct engine *e, enum engine_counter c)
{
	return c < EC_COUNT ? e->counters[c] : 0;
}
