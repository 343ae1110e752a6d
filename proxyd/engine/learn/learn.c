// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Learning: which two flows are one connection, and what its responder's MSN is.
 *
 * A request names only its destination QP. Three sources tell the other half:
 *
 * Connection manager datagrams name both QPNs in plain words: see cm.c.
 *
 * PSN matching (NTT-3): a packet that asks for an ACK, as the last of a message does, and its ACK
 * bear the same PSN. Between two hosts with many QPs that is a hint, not a proof: frameworks start
 * them all at PSN 0. So every such packet of an unpaired flow is noted under (hosts, VLAN, PSN);
 * two flows that note the same PSN within MATCH_NS spoil the note for both, until only one of them
 * has noted it for so long (the other is gone, and this one repeats). An ACK that finds an unspoilt
 * note speaks for the pair (requesting flow, answering flow). A pair is taken only after
 * MATCHES_NEEDED such ACKs with different PSNs, all for the same partner on both sides, with no ACK
 * in between that spoke for another; one contradiction starts the count again. Wrong pairing is
 * silent data loss, so in doubt the flows stay unpaired, which costs speed only. A sequence NAK is
 * noted likewise, and the flow that soon goes back to just the packet which it names speaks for the
 * pair: where a link loses much hardly anything else comes back. Who begins elsewhere and comes
 * past that packet says nothing.
 *
 * Immediate data (NTT-4), where the rule says that applications put the number of their own QP
 * there, in network byte order: a SEND or WRITE with immediate is noted under that number as well,
 * so QPs of one host pair that run in step do not spoil each other's notes. The immediate alone is
 * an assertion by an application, and may mean something else; it counts only together with the ACK
 * that bears the PSN of that very packet and goes to that very QP, as two ordinary matches. An
 * immediate that names another QP is a contradiction.
 *
 * Calibration: a pseudo-ACK needs the exact MSN. While a paired lane is watched, ends of messages
 * are counted, and up to LANE_PROBES packets remembered with the count there until a genuine ACK
 * with that very PSN tells the responder's MSN there. The answer to a READ or ATOMIC tells it too
 * where no later request has passed; else it may count some of those, and only the least of what
 * several say is believed. So it is with every answer to what the host may have sent before (to a
 * lane that is gone, say): what answers a repeat bears its PSN and the MSN of today. A gap in the
 * requests starts calibration again. A queue pair that
 * the CM has just made starts at MSN 0 and needs none of that (cm.c). The ACK that makes a pair
 * calibrates it as well, if the packet that it answers was counted since the latest gap.
 */
#include "engine/learn/learn.h"

#include <xxhash.h>

/* Answers to READs that must tell the same of the MSN. */
#define OFFSETS_AGREE	 4u
#define MATCH_NS	 (2 * NSEC_PER_SEC)
/* A NAK makes its requester go back at once; its own timer may do so at any time. */
#define NAK_NS		 (200 * NSEC_PER_MSEC)
#define MATCHES_NEEDED	 4
/* In place of a queue pair number: the note of a NAK. */
#define NAK_NOTE	 0xfffffffeu
/* What an ACK is worth that answers a packet whose immediate names the QP which the ACK goes to. */
#define IMMEDIATE_WEIGHT 2
/* Templates follow the sender; requests of a busy flow need not renew them each time. */
#define TEMPLATE_EVERY	 64

/* The path MTU shows in any packet that must be full. */
static void learn_mtu(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct flow *other;

	if (!(f->op->flags & (OPF_FIRST | OPF_MIDDLE)) || !f->payload_len ||
	    fl->path_mtu == f->payload_len)
		return;
	if (f->payload_len < 256 || f->payload_len > 4096 ||
	    (f->payload_len & (f->payload_len - 1)))
		return;
	other = flow_partner(e, fl);
	/* a held lane has promised by the MTU that it knew */
	if (fl->lane.role != ROLE_NONE || (other && other->lane.role != ROLE_NONE))
		if (fl->path_mtu)
			return;
	fl->path_mtu = (uint16_t)f->payload_len;
	if (other)
		other->path_mtu = fl->path_mtu;
}

/* Whether @f, an answer with data to a held lane, is checked in the pass that copies it. */
static bool checked_later(struct engine *e, const struct flow *fl, const struct frame *f)
{
	const struct flow *req = flow_partner(e, fl);

	return (f->op->flags & OPF_RESPONSE) && f->opcode != OP_ACK && req &&
	       req->lane.role != ROLE_NONE;
}

void learn_frame(struct engine *e, struct flow *fl, struct frame *f)
{
	fl->seen = e->now;
	if (fl->tmpl.len && checked_later(e, fl, f))
		return;
	if ((f->op->flags & OPF_RESPONSE) || !fl->tmpl.len || ++fl->tmpl_age >= TEMPLATE_EVERY) {
		if (!icrc_ok(f))
			return;
		f->icrc_right = true;
		template_learn(&fl->tmpl, f);
		fl->tmpl_age = 0;
		learn_mtu(e, fl, f);
	} else if (!fl->path_mtu && icrc_ok(f)) {
		learn_mtu(e, fl, f);
	}
}

/* ---- PSN matching ---- */

static void probes_clear(struct lane *l)
{
	for (int i = 0; i < LANE_PROBES; i++)
		l->probe[i].psn = PSN_NONE;
}

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

/* A packet of an unpaired flow that will be acknowledged. */
static void match_note(struct engine *e, struct flow *fl, uint32_t psn, uint32_t lqpn)
{
	uint32_t tag;
	struct psn_match *m =
		match_slot(e, &fl->key.src, &fl->key.dst, fl->key.vlan, psn, lqpn, &tag);

	match_write(e, m, tag, flow_index(e, fl));
}

/* The packet that was just noted is counted now: its ACK will tell the responder's MSN. */
static void match_count(struct engine *e, struct flow *fl, uint32_t psn)
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

/*
 * Nobody answers what @fl asks: it has no partner, or one that a connection manager named and that
 * never spoke. Two forged datagrams pair any two numbers; what truly answers shows itself.
 */
static bool unanswered(struct engine *e, const struct flow *fl)
{
	const struct flow *back = flow_partner(e, fl);

	return fl->partner == FLOW_NONE ||
	       (fl->learned == LEARNED_CM && fl->lane.role == ROLE_NONE && back &&
		back->lane.role == ROLE_NONE && !back->tmpl.len);
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
	return req->used && m->when >= req->born && unanswered(e, req) && flow_reversed(req, ack)
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

/* The requester of the held @fl has another responder now. */
static void other_responder(struct engine *e, struct flow *fl)
{
	struct flow *back = flow_partner(e, fl);

	if (!lane_replaced(e, fl) || !back || back->lane.role != ROLE_NONE)
		return;
	match_contradicts(e, fl);
	match_contradicts(e, back);
	flow_unpair(e, fl);
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

	if (!req || !icrc_ok(f) || (inside && psn_map_differs(e, l)))
		return false;
	engine_pass(e, other_port(fl->side), f);
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
static void other_requester(struct engine *e, const struct flow *ack, uint32_t psn)
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

/* Everything below @psn is truly acknowledged; @sure: @msn is the count of messages just there. */
static void una_heard(struct lane *l, uint32_t psn, uint32_t msn, bool sure)
{
	mark_una(l, &(struct mark){.psn = psn, .msn = msn});
	l->begins = false;
	l->una_sure = sure;
}

/* @ack answers what @req asked with @psn, both unpaired; @weight: what that is worth. Returns true
 * when they are a pair now. */
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
	flow_pair(e, req, ack, weight > 1 ? LEARNED_IMMEDIATE : LEARNED_PSN);
	return true;
}

/* An ACK in unpaired flow @ack, with @msn. */
static void match_ack(struct engine *e, struct flow *ack, uint32_t psn, uint32_t msn)
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
	if (!req || req->partner != FLOW_NONE)
		return;
	if (match_pair(e, req, ack, psn, weight) && msn != PSN_NONE)
		match_calibrates(e, req, psn, msn);
}

/* A sequence NAK of @psn in the unpaired flow @ack, with @msn. */
static void note_nak(struct engine *e, const struct flow *ack, uint32_t psn, uint32_t msn)
{
	uint32_t tag;
	struct psn_match *m =
		match_slot(e, &ack->key.dst, &ack->key.src, ack->key.vlan, psn, NAK_NOTE, &tag);

	match_write(e, m, tag, flow_index(e, ack));
	m->count = msn;
}

/* The unpaired @fl goes back, to @f. */
static void match_went_back(struct engine *e, struct flow *fl, const struct frame *f)
{
	uint32_t tag;
	const struct psn_match *m =
		match_slot(e, &fl->key.src, &fl->key.dst, fl->key.vlan, f->psn, NAK_NOTE, &tag);
	struct flow *ack;

	if (!match_tells(e, m, tag) || e->now - m->when > NAK_NS)
		return;
	ack = flow_ref(e, m->flow);
	if (!ack->used || m->when < ack->born || ack->partner != FLOW_NONE ||
	    !flow_reversed(fl, ack) || !icrc_ok(f))
		return;
	if (match_pair(e, fl, ack, f->psn, 1))
		una_heard(&fl->lane, f->psn, m->count, true);
}

/* A request with immediate data, which the rule says is the sender's QPN. */
static void immediate_note(struct engine *e, struct flow *fl, const struct frame *f)
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

/* ---- calibration of a watched lane ---- */

static void probe_set(struct lane *l, uint32_t psn, uint32_t count)
{
	int slot = 0;

	for (int i = 0; i < LANE_PROBES; i++) {
		if (l->probe[i].psn == PSN_NONE) {
			slot = i;
			break;
		}
		/* no free one: replace the second newest, keep old ones that may be answered soon
		 * */
		if (psn_after(l->probe[i].psn, l->probe[slot].psn))
			slot = i;
	}
	l->probe[slot].psn = psn;
	l->probe[slot].count = count;
}

/* Answered by a packet that bears its PSN and says what an ACK says. */
static bool answered_alike(const struct frame *f)
{
	return f->opcode == OP_READ_REQUEST || (f->op->flags & OPF_ATOMIC);
}

/* A READ or ATOMIC passes, and is to be answered. */
static void note_asked(struct lane *l, const struct flow *fl, const struct frame *f)
{
	uint32_t end = psn_add(f->psn, frame_span(f, flow_mtu(fl)));

	if (l->asked == PSN_NONE || (l->una.psn != PSN_NONE && psn_before(l->asked, l->una.psn)) ||
	    psn_before(f->psn, l->asked)) {
		l->asked = f->psn;
		l->asked_end = end;
	} else if (psn_after(end, l->asked_end)) {
		l->asked_end = end;
	}
}

/* Note what will tell whose answer comes. */
static void note_request(struct engine *e, struct flow *fl, const struct frame *f)
{
	uint8_t learn = e->rules[fl->rule].learn;

	if (((f->op->flags & OPF_EOM) || f->ackreq || answered_alike(f)) &&
	    (!(f->op->flags & OPF_ANSWERED) || answered_alike(f)) && unanswered(e, fl) &&
	    learn & LEARN_PSN)
		match_note(e, fl, f->psn, PSN_NONE);
	if (f->immdt && (learn & LEARN_IMMEDIATE))
		immediate_note(e, fl, f);
}

void learn_request(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	bool known = l->epsn.psn != PSN_NONE, anew, goes_on = l->went_on == f->psn;
	uint32_t span;
	struct mark m;

	l->requests++;
	if (l->role == ROLE_NONE)
		l->went_on = psn_add(f->psn, frame_span(f, flow_mtu(fl)));
	l->atomics |= (f->op->flags & OPF_ATOMIC) != 0;
	if (f->op->flags & OPF_ANSWERED)
		note_asked(l, fl, f);
	note_request(e, fl, f);
	/* acknowledged before, wherever others may have jumped since: who knows what the responder
	 * has of it, if the number has another owner? Its next ACK tells */
	anew = l->una.psn != PSN_NONE && psn_before(f->psn, l->una.psn);
	if (anew)
		una_heard(l, PSN_NONE, 0, false);
	if (known && psn_before(f->psn, l->epsn.psn) &&
	    psn_diff(l->epsn.psn, f->psn) < (int32_t)WINDOW_SPAN) {
		l->overlap = lane_sent_before(l);
		if (!goes_on && fl->partner == FLOW_NONE && e->rules[fl->rule].learn & LEARN_PSN)
			match_went_back(e, fl, f);
		if (!anew)
			return; /* said before */
		known = false;
	}
	if (!known || f->psn != l->epsn.psn) {
		/* first packet, gap or jump: what was counted so far is worth nothing */
		probes_clear(l);
		l->calibrated = false;
		l->offset_run = 0;
		l->opened = e->now;
		l->msg = MSG_SEND; /* unknown: until a message begins */
	}
	if ((f->op->flags & OPF_READ) && !fl->path_mtu && frame_reth_length(f) > 256) {
		mark_epsn_psn(l, PSN_NONE); /* how many PSNs it takes is not known */
		return;
	}
	m = l->epsn;
	span = (f->op->flags & OPF_READ) ? frame_span(f, fl->path_mtu ? fl->path_mtu : 4096) : 1;
	m.psn = psn_add(f->psn, span);
	m.ackable = !(f->op->flags & OPF_ANSWERED);
	if (f->op->flags & OPF_EOM || f->op->flags & OPF_ANSWERED) {
		l->msg = MSG_NONE;
		m.msn = psn_add(m.msn, 1);
	} else {
		l->msg = MSG_SEND;
	}
	mark_epsn(l, &m);
	if (fl->partner == FLOW_NONE && !(f->op->flags & OPF_ANSWERED))
		match_count(e, fl, f->psn);
	if (l->calibrated)
		return;
	if (answered_alike(f) ||
	    (((f->op->flags & OPF_EOM) || f->ackreq) && !(f->op->flags & OPF_ANSWERED)))
		probe_set(l, f->psn, l->epsn.msn);
}

/*
 * What answers the request that was message @count says @msn. Unless that is @exact it may count
 * later ones: the least that answers say must be said by several. Always so for the answer to a
 * repeat, even a plain ACK: it bears the PSN of then and the MSN of today.
 */
static bool calibrates(struct lane *l, uint32_t count, uint32_t msn, bool exact)
{
	uint32_t offset = psn_sub(msn, count);

	if (!exact) {
		if (!l->offset_run || psn_before(offset, l->offset)) {
			l->offset = offset;
			l->offset_run = 0;
		}
		l->offset_run += offset == l->offset;
		if (l->offset_run < OFFSETS_AGREE)
			return false;
	}
	mark_epsn_msn(l, psn_add(l->epsn.msn, offset));
	return true;
}

/* Whether an answer with @psn may be to a repeat, and something later may have been sent. */
static bool may_count_later(const struct lane *l, uint32_t psn)
{
	uint32_t next = psn_add(psn, 1);

	return lane_may_repeat(l, psn) && (l->epsn.psn != next || lane_may_repeat(l, next));
}

/*
 * The answer to a READ or ATOMIC says what an ACK says: who sent the request of this PSN, what is
 * acknowledged, how many messages there have been. But its MSN may count requests that came after
 * the READ.
 */
static void read_response(struct engine *e, struct flow *fl, struct flow *req,
			  const struct frame *f)
{
	bool begins = f->op->flags & (OPF_FIRST | OPF_ONLY),
	     ends = f->op->flags & (OPF_LAST | OPF_ONLY);
	uint32_t next = psn_add(f->psn, ends);
	struct lane *l;
	bool again;

	if (!req) {
		if (begins && (e->rules[fl->rule].learn & LEARN_PSN))
			match_ack(e, fl, f->psn, PSN_NONE);
		return;
	}
	l = &req->lane;
	if (!f->aeth)
		return;
	lane_credit(l, frame_aeth_syndrome(f), true);
	again = may_count_later(l, f->psn);
	if (ends && (l->una.psn == PSN_NONE || psn_after(next, l->una.psn) ||
		     psn_diff(l->una.psn, next) > (int32_t)WINDOW_SPAN))
		una_heard(l, next, frame_aeth_msn(f), !again && l->epsn.psn == next);
	if (!begins || l->calibrated || l->epsn.psn == PSN_NONE)
		return;
	for (int i = 0; i < LANE_PROBES; i++) {
		if (l->probe[i].psn != f->psn) {
			/* answers come in order: this one's has passed when nobody knew whose it
			 * was */
			if (l->probe[i].psn != PSN_NONE && psn_before(l->probe[i].psn, f->psn))
				l->probe[i].psn = PSN_NONE;
			continue;
		}
		l->probe[i].psn = PSN_NONE;
		l->calibrated = calibrates(l, l->probe[i].count, frame_aeth_msn(f),
					   !again && l->probe[i].count == l->epsn.msn);
		if (l->calibrated)
			probes_clear(l);
		return;
	}
}

void learn_response(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct flow *req = flow_partner(e, fl);
	struct lane *l;
	uint8_t s;
	uint32_t next;
	bool again;

	if (f->op->flags & (OPF_READ | OPF_ATOMIC)) {
		read_response(e, fl, req, f);
		return;
	}
	if (f->opcode != OP_ACK)
		return;
	s = frame_aeth_syndrome(f);
	if (!req) {
		if (aeth_is_ack(s))
			other_requester(e, fl, f->psn);
		if (aeth_is_ack(s) && (e->rules[fl->rule].learn & (LEARN_PSN | LEARN_IMMEDIATE)))
			match_ack(e, fl, f->psn, frame_aeth_msn(f));
		if (s == AETH_NAK_SEQ && (e->rules[fl->rule].learn & LEARN_PSN))
			note_nak(e, fl, f->psn, frame_aeth_msn(f));
		return;
	}
	l = &req->lane;
	again = may_count_later(l, f->psn);
	/* sequence and RNR NAKs acknowledge what is before them */
	if (!aeth_is_ack(s) && !aeth_is_rnr(s) && s != AETH_NAK_SEQ)
		return;
	next = aeth_is_ack(s) ? psn_add(f->psn, 1) : f->psn;
	if (l->una.psn == PSN_NONE || psn_after(next, l->una.psn) ||
	    psn_diff(l->una.psn, next) > (int32_t)WINDOW_SPAN)
		una_heard(l, next, frame_aeth_msn(f), !aeth_is_ack(s) || !again);
	if (!aeth_is_ack(s))
		return;
	l->credit = s;
	for (int i = 0; i < LANE_PROBES && !l->calibrated; i++) {
		if (l->probe[i].psn == PSN_NONE || l->epsn.psn == PSN_NONE)
			continue;
		if (l->probe[i].psn == f->psn) {
			l->probe[i].psn = PSN_NONE;
			l->calibrated = calibrates(l, l->probe[i].count, frame_aeth_msn(f), !again);
		} else if (psn_after(f->psn, l->probe[i].psn)) {
			l->probe[i].psn = PSN_NONE; /* passed over by a cumulative ACK */
		}
	}
	if (l->calibrated)
		probes_clear(l);
}
