// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * PSN matching (row: NTT-3): a packet that asks for an ACK, as the last of a message does, and its
 * ACK bear the same PSN. Between two hosts with many QPs that is a hint, not a proof: frameworks
 * start them all at PSN 0. So every such packet of an unpaired flow is noted under (hosts, VLAN,
 * PSN); two flows that note the same PSN within MATCH_NS spoil the note for both, until only one of
 * them has noted it for so long (the other is gone, and this one repeats). An ACK that finds an
 * unspoilt note speaks for the pair (requesting flow, answering flow). A pair is taken only after
 * MATCHES_NEEDED such ACKs with different PSNs, all for the same partner on both sides, with no ACK
 * in between that spoke for another; one contradiction starts the count again. Wrong pairing is
 * silent data loss, so in doubt the flows stay unpaired, which costs speed only. The pair is a hint
 * until echo.c has proved it, unless the rule says that PSNs are enough. A sequence NAK is
 * noted likewise, and the flow that soon goes back to just the packet which it names speaks for the
 * pair: where a link loses much hardly anything else comes back. Who begins elsewhere and comes
 * past that packet says nothing.
 *
 * A number may be given again while the pair that it was in is only watched. So the requests of
 * such a pair are noted as well while no ACK has calibrated it, and an answer in one of its flows
 * that its own requester cannot have asked for is looked up like that of an unpaired flow. Where
 * MATCHES_NEEDED of them speak for the same two flows, and nothing that a pair of either flow was
 * itself asked for is answered in between, those pairs are taken apart, and the count begins again.
 * A pair with a lane in custody is never taken apart here.
 *
 * Immediate data (row: NTT-4), where the rule says that applications put the number of their own QP
 * there, in network byte order: a SEND or WRITE with immediate is noted under that number as well,
 * so QPs of one host pair that run in step do not spoil each other's notes. The immediate alone is
 * an assertion by an application, and may mean something else; it counts only together with the ACK
 * that bears the PSN of that very packet and goes to that very QP, as two ordinary matches. An
 * immediate that names another QP is a contradiction.
 */
#include "engine/learn/learn_priv.h"

/* A NAK makes its requester go back at once; its own timer may do so at any time. */
#define NAK_NS		 (200 * NSEC_PER_MSEC)
/* In place of a queue pair number: the note of a NAK. */
#define NAK_NOTE	 0xfffffffeu
/* What an ACK is worth that answers a packet whose immediate names the QP which the ACK goes to. */
#define IMMEDIATE_WEIGHT 2

/* The ACK @psn with @msn has made a pair of @req and its answers: it may tell the MSN as well. */
static void match_calibrates(struct engine *e, struct flow *req, uint32_t psn, uint32_t msn)
{
	uint32_t tag;
	const struct psn_match *m =
		match_slot(e, &req->key.src, &req->key.dst, req->key.vlan, psn, PSN_NONE, &tag);
	struct lane *l = &req->lane;

	/* @opened: of a watched lane, when its requests were last found to have a gap */
	if (req->partner == FLOW_NONE || l->role != ROLE_NONE || !psn_known(l->epsn.psn) ||
	    !match_tells(e, m, tag) || m->flow != flow_index(e, req) || m->count == PSN_NONE ||
	    m->when <= l->opened)
		return;
	mark_epsn_msn(l, psn_add(msn, (l->epsn.msn - m->count) & PSN_MASK));
	l->calibrated = true;
	probes_clear(l);
}

/* The number of @fl or that of its partner has another owner: they are no pair any more. */
static void match_part(struct engine *e, struct flow *fl)
{
	struct flow *other = flow_partner(e, fl);

	if (!other)
		return;
	engine_event(e, EVENT_INCARNATION, fl, 0, 0);
	/* what the former partner has acknowledged the next one may not have */
	una_heard(&fl->lane, WIRE_NONE, 0, false);
	una_heard(&other->lane, WIRE_NONE, 0, false);
	flow_unpair(e, fl);
}

/* @ack answers what @req asked with @psn, both unpaired or loose; @weight: what that is worth.
 * Returns true when they are a pair now. */
static bool match_pair(struct engine *e, struct flow *req, struct flow *ack, uint32_t psn,
		       uint16_t weight)
{
	uint32_t ireq = flow_index(e, req), iack = flow_index(e, ack);
	enum learn_source how = LEARNED_HINT;

	/* both sides must name each other and nobody else, ever since the count began */
	if ((req->candidate != FLOW_NONE && req->candidate != iack) ||
	    (ack->candidate != FLOW_NONE && ack->candidate != ireq)) {
		struct flow *third = flow_at(e, ack->candidate);

		if (third && third != req)
			match_contradicts(e, third);
		third = flow_at(e, req->candidate);
		if (third && third != ack)
			match_contradicts(e, third);
		match_contradicts(e, req);
		match_contradicts(e, ack);
		return false;
	}
	req->candidate = iack;
	ack->candidate = ireq;
	if (req->last_match_psn == psn)
		return false; /* an ACK said again is no new evidence */
	req->last_match_psn = psn;
	req->matches += weight;
	ack->matches = req->matches;
	if (req->matches < MATCHES_NEEDED)
		return false;
	if (req->partner != FLOW_NONE || ack->partner != FLOW_NONE) {
		match_part(e, req);
		match_part(e, ack);
		match_contradicts(e, req);
		match_contradicts(e, ack);
		return false;
	}
	if (weight > 1)
		how = LEARNED_IMMEDIATE;
	else if (e->rules[ack->rule >= 0 ? ack->rule : req->rule].learn & LEARN_ALONE)
		how = LEARNED_PSN;
	flow_pair(e, req, ack, how);
	return true;
}

/* What speaks for @fl and another flow than its partner is contradicted. */
static void match_forget(struct engine *e, struct flow *fl)
{
	struct flow *other = flow_at(e, fl->candidate);

	if (!other)
		return;
	match_contradicts(e, other);
	match_contradicts(e, fl);
}

bool match_foreign(struct engine *e, struct flow *ack, uint32_t psn)
{
	struct flow *req = flow_partner(e, ack);
	struct wire_psn next = req ? req->lane.epsn.psn : WIRE_NONE, at = {psn};

	if (!req)
		return true;
	if (!match_loose(e, ack))
		return false;
	/* an ACK may be of any packet, and late: in doubt it is the partner's that asks */
	if (e->now - req->seen > MATCH_NS ||
	    (psn_known(next) && !psn_in(at, psn_sub(next, HOST_WINDOW), next)))
		return true;
	match_forget(e, req);
	match_forget(e, ack);
	return false;
}

bool match_ack(struct engine *e, struct flow *ack, uint32_t psn, uint32_t msn)
{
	uint8_t learn = e->rules[ack->rule].learn;
	struct flow *req = NULL;
	uint16_t weight = IMMEDIATE_WEIGHT;

	if (learn & LEARN_IMMEDIATE)
		req = match_find(e, ack, psn, ack->key.dqpn);
	if (!req && (learn & LEARN_MATCH)) {
		req = match_find(e, ack, psn, PSN_NONE);
		weight = 1;
	}
	if (!req)
		return false;
	if (!match_pair(e, req, ack, psn, weight))
		return true;
	if (pair_in_step(e, &req->key))
		probes_forget(&req->lane);
	else if (msn != PSN_NONE)
		match_calibrates(e, req, psn, msn);
	return true;
}

/* A sequence NAK of @psn in the flow @ack, unpaired or loose, with @msn. */
void match_note_nak(struct engine *e, const struct flow *ack, uint32_t psn, uint32_t msn)
{
	uint32_t tag;
	struct psn_match *m =
		match_slot(e, &ack->key.dst, &ack->key.src, ack->key.vlan, psn, NAK_NOTE, &tag);

	match_write(e, m, tag, flow_index(e, ack));
	m->count = msn;
}

/* @fl, unpaired or unanswered, goes back, to @f, whose ICRC is right. */
void match_went_back(struct engine *e, struct flow *fl, const struct frame *f)
{
	uint32_t tag;
	const struct psn_match *m =
		match_slot(e, &fl->key.src, &fl->key.dst, fl->key.vlan, f->psn, NAK_NOTE, &tag);
	struct flow *ack;

	if (!match_tells(e, m, tag) || e->now - m->when > NAK_NS)
		return;
	ack = flow_ref(e, m->flow);
	if (!ack->used || m->when < ack->born || !match_loose(e, ack) ||
	    fl->partner == flow_index(e, ack) || !flow_reversed(fl, ack))
		return;
	if (match_pair(e, fl, ack, f->psn, 1))
		una_heard(&fl->lane, wire_psn_of(f), m->count, true);
}

/* A request with immediate data, which the rule says is the sender's QPN. */
void match_immediate(struct engine *e, struct flow *fl, const struct frame *f)
{
	uint32_t lqpn = frame_immdt(f);
	struct flow *back = flow_partner(e, fl), *candidate = flow_at(e, fl->candidate);

	if (back) {
		/* it was believed, and was meant otherwise; what is held keeps its promises */
		if (fl->learned == LEARNED_IMMEDIATE && back->key.dqpn != lqpn &&
		    fl->lane.role == ROLE_NONE && back->lane.role == ROLE_NONE) {
			flow_unpair(e, fl);
			match_contradicts(e, fl);
			match_contradicts(e, back);
		}
		return;
	}
	if (candidate && candidate->key.dqpn != lqpn) {
		match_contradicts(e, candidate);
		match_contradicts(e, fl);
	}
	/* 24 bits; 0 and 1 are not for connections */
	if (lqpn > 1 && lqpn <= PSN_MASK)
		match_note(e, fl, f->psn, lqpn);
}
