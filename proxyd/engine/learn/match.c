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
 * silent data loss, so in doubt the flows stay unpaired, which costs speed only. A sequence NAK is
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

#include <xxhash.h>

#define MATCH_NS	 (2 * NSEC_PER_SEC)
/* A NAK makes its requester go back at once; its own timer may do so at any time. */
#define NAK_NS		 (200 * NSEC_PER_MSEC)
#define MATCHES_NEEDED	 4
/* In place of a queue pair number: the note of a NAK. */
#define NAK_NOTE	 0xfffffffeu
/* What an ACK is worth that answers a packet whose immediate names the QP which the ACK goes to. */
#define IMMEDIATE_WEIGHT 2

/* @lqpn: what the immediate of the packet names, PSN_NONE where it does not count. */
static struct psn_match *match_slot(struct engine *e, const struct ip_addr *from,
				    const struct ip_addr *to, uint16_t vlan, uint32_t psn,
				    uint32_t lqpn, uint32_t *tag)
{
	struct {
		struct ip_addr from, to;
		uint32_t vlan, psn, lqpn, zero;
	} k = {*from, *to, vlan, psn, lqpn, 0};
	uint64_t h = XXH3_64bits_withSeed(&k, sizeof(k), e->cfg.seed);

	*tag = (uint32_t)(h >> 32);
	engine_change(e, &e->match[h % MATCH_SLOTS], sizeof(e->match[0]));
	return &e->match[h % MATCH_SLOTS];
}

static uint32_t match_ms(uint64_t ns)
{
	return (uint32_t)(ns / NSEC_PER_MSEC);
}

/* Whether the note @m is fresh, of @tag, and of one flow only. */
static bool match_tells(const struct engine *e, const struct psn_match *m, uint32_t tag)
{
	return m->tag == tag && m->when && e->now - m->when <= MATCH_NS &&
	       (int32_t)(m->shared_ms - match_ms(e->now)) <= 0;
}

/* Flow @i makes the note @m of @tag. */
static void match_write(const struct engine *e, struct psn_match *m, uint32_t tag, uint32_t i)
{
	if (m->tag != tag || !m->when || e->now - m->when >= MATCH_NS)
		m->shared_ms = match_ms(e->now);
	else if (m->flow != i)
		m->shared_ms = match_ms(m->when + MATCH_NS) + 1;
	m->flow = i;
	m->tag = tag;
	m->when = e->now;
	m->count = PSN_NONE;
}

/* A packet that will be acknowledged, of a flow that nothing is known to answer. */
void match_note(struct engine *e, struct flow *fl, uint32_t psn, uint32_t lqpn)
{
	uint32_t tag;
	struct psn_match *m =
		match_slot(e, &fl->key.src, &fl->key.dst, fl->key.vlan, psn, lqpn, &tag);

	match_write(e, m, tag, flow_index(e, fl));
}

/* The packet that was just noted is counted now: its ACK will tell the responder's MSN. */
void match_count(struct engine *e, struct flow *fl, uint32_t psn)
{
	uint32_t tag;
	struct psn_match *m =
		match_slot(e, &fl->key.src, &fl->key.dst, fl->key.vlan, psn, PSN_NONE, &tag);

	if (m->tag == tag && m->flow == flow_index(e, fl))
		m->count = fl->lane.epsn.msn;
}

static void match_contradicts(struct engine *e, struct flow *fl)
{
	COUNT(e, LEARN_CONTRADICTIONS);
	if (fl->contradictions < UINT16_MAX)
		fl->contradictions++;
	fl->candidate = FLOW_NONE;
	fl->matches = 0;
}

/* Nothing is kept for the requester of @fl, and it has nothing to be told. */
static bool only_watched(const struct flow *fl)
{
	return fl->lane.role == ROLE_NONE && !fl->lane.waits_us && !fl->stranded;
}

/* Whether other evidence may take @fl and its partner apart; true if it has none. */
static bool match_loose(struct engine *e, const struct flow *fl)
{
	const struct flow *other = flow_partner(e, fl);

	return !other || (only_watched(fl) && only_watched(other));
}

/*
 * No answer has shown that the partner of @fl, if it has one, is what answers it. Two forged
 * datagrams pair any two numbers, and a number may be given again: what truly answers shows itself.
 */
bool match_unanswered(struct engine *e, const struct flow *fl)
{
	return fl->partner == FLOW_NONE || (!fl->lane.calibrated && match_loose(e, fl));
}

/* Whose packet does the ACK @psn in @ack answer? */
static struct flow *match_find(struct engine *e, const struct flow *ack, uint32_t psn,
			       uint32_t lqpn)
{
	uint32_t tag;
	struct psn_match *m =
		match_slot(e, &ack->key.dst, &ack->key.src, ack->key.vlan, psn, lqpn, &tag);
	struct flow *req;

	if (!match_tells(e, m, tag))
		return NULL;
	req = flow_ref(e, m->flow);
	return req->used && m->when >= req->born && match_unanswered(e, req) &&
			       req->partner != flow_index(e, ack) && flow_reversed(req, ack)
		       ? req
		       : NULL;
}

void learn_passed(struct engine *e, struct flow *fl, uint32_t psn)
{
	match_note(e, fl, psn, PSN_NONE);
}

struct flow *learn_asker(struct engine *e, const struct flow *ack, uint32_t psn)
{
	return ack ? match_find(e, ack, psn, PSN_NONE) : NULL;
}

void learn_no_pair(struct engine *e, struct flow *fl)
{
	struct flow *back = flow_partner(e, fl);

	if (!back || back->lane.role != ROLE_NONE)
		return;
	match_contradicts(e, fl);
	match_contradicts(e, back);
	flow_unpair(e, fl);
}

/* The requester of the held @fl has another responder now. */
static void other_responder(struct engine *e, struct flow *fl)
{
	if (lane_replaced(e, fl))
		learn_no_pair(e, fl);
	else
		fl->lane.other_pair = fl->lane.disputed;
}

/* What was asked by @req, unpaired, with @psn is answered in the paired flow @ack. Returns true
 * when so much of it was that the two would be taken for a pair. */
static bool match_other(struct engine *e, struct flow *req, const struct flow *ack, uint32_t psn)
{
	uint32_t i = flow_index(e, ack);

	if (req->candidate != FLOW_NONE && req->candidate != i) {
		match_contradicts(e, req);
		return false;
	}
	req->candidate = i;
	if (req->last_match_psn != psn && req->matches < MATCHES_NEEDED)
		req->matches++;
	req->last_match_psn = psn;
	return req->matches >= MATCHES_NEEDED;
}

/*
 * What the requester's own lane @back brings to it was meant for the queue pair that had its number
 * before: so says what the number is answered now. The opener lets go; an acceptor waits for that.
 */
static void own_lane_replaced(struct engine *e, struct flow *back)
{
	if (back->lane.state == LANE_HELD || back->lane.state == LANE_DRAIN)
		lane_replaced(e, back);
}

bool learn_answers_other(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct flow *back = flow_partner(e, fl), *req = learn_asker(e, back, f->psn);
	struct lane *l = &fl->lane;
	bool proved, inside = lane_keeps(l) && psn_in(f->psn, l->una.psn, l->epsn.psn);

	if (!req || !icrc_ok(f) || lane_repeats(e, l, f->psn))
		return false;
	/* in numbers that the host does not know it would acknowledge what nobody has executed, if
	 * the lane's own responder says so, or has just said so and a port doubles it */
	if (psn_map_differs(e, l) &&
	    (inside || (lane_asked_below(f->psn, l->una.psn) && !lane_stalled(e, l))))
		return false;
	/* a host that waits for an ACK under this PSN fails of a response to a READ */
	if (f->opcode != OP_ACK && lane_holds_other(e, l, f->psn))
		return false;
	engine_pass(e, fl, other_port(fl->side), f);
	proved = match_other(e, req, back, f->psn);
	if (proved)
		own_lane_replaced(e, back);
	/* what is in custody here may be answered with this PSN as well */
	if (proved || !inside)
		other_responder(e, fl);
	return true;
}

/* An ACK in the unpaired flow @ack answers what a held lane has passed on: the responder's number
 * has another requester. */
void match_other_requester(struct engine *e, const struct flow *ack, uint32_t psn)
{
	uint32_t tag;
	struct psn_match *m =
		match_slot(e, &ack->key.dst, &ack->key.src, ack->key.vlan, psn, PSN_NONE, &tag);
	struct flow *fl = match_tells(e, m, tag) ? flow_ref(e, m->flow) : NULL;

	if (fl && fl->used && m->when >= fl->born && fl->partner != FLOW_NONE &&
	    flow_reversed(fl, ack) && (fl->lane.suspect || fl->lane.state == LANE_DRAIN))
		other_responder(e, fl);
}

/* The ACK @psn with @msn has made a pair of @req and its answers: it may tell the MSN as well. */
static void match_calibrates(struct engine *e, struct flow *req, uint32_t psn, uint32_t msn)
{
	uint32_t tag;
	const struct psn_match *m =
		match_slot(e, &req->key.src, &req->key.dst, req->key.vlan, psn, PSN_NONE, &tag);
	struct lane *l = &req->lane;

	/* @opened: of a watched lane, when its requests were last found to have a gap */
	if (req->partner == FLOW_NONE || l->role != ROLE_NONE || l->epsn.psn == PSN_NONE ||
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
	una_heard(&fl->lane, PSN_NONE, 0, false);
	una_heard(&other->lane, PSN_NONE, 0, false);
	flow_unpair(e, fl);
}

/* @ack answers what @req asked with @psn, both unpaired or loose; @weight: what that is worth.
 * Returns true when they are a pair now. */
static bool match_pair(struct engine *e, struct flow *req, struct flow *ack, uint32_t psn,
		       uint16_t weight)
{
	uint32_t ireq = flow_index(e, req), iack = flow_index(e, ack);

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
	flow_pair(e, req, ack, weight > 1 ? LEARNED_IMMEDIATE : LEARNED_PSN);
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
	uint32_t next = req ? req->lane.epsn.psn : PSN_NONE;

	if (!req)
		return true;
	if (!match_loose(e, ack))
		return false;
	/* an ACK may be of any packet, and late: in doubt it is the partner's that asks */
	if (e->now - req->seen > MATCH_NS ||
	    (next != PSN_NONE && !psn_in(psn, psn_sub(next, HOST_WINDOW), next)))
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
	if (!req && (learn & LEARN_PSN)) {
		req = match_find(e, ack, psn, PSN_NONE);
		weight = 1;
	}
	if (!req)
		return false;
	if (match_pair(e, req, ack, psn, weight) && msn != PSN_NONE)
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

/* @fl, unpaired or unanswered, goes back, to @f. */
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
	    fl->partner == flow_index(e, ack) || !flow_reversed(fl, ack) || !icrc_ok(f))
		return;
	if (match_pair(e, fl, ack, f->psn, 1))
		una_heard(&fl->lane, f->psn, m->count, true);
}

/* A request with immediate data, which the rule says is the sender's QPN. */
void match_immediate(struct engine *e, struct flow *fl, const struct frame *f)
{
	uint32_t lqpn = frame_immdt(f);
	struct flow *back = flow_partner(e, fl), *candidate = flow_at(e, fl->candidate);

	if (back) {
		/* it was believed, and was meant otherwise; what is held already keeps its promises
		 * */
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
