// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Answers that nothing on a lane waits for: another queue pair may have asked for them.
 */
#include "engine/owner/notes.h"

/* So long after its latest answer a responder may still answer what was sent to it twice. */
#define OWN_NS (2 * NSEC_PER_SEC)

/* The requester of the held @fl has another responder now. */
static void other_responder(struct engine *e, struct flow *fl)
{
	if (owner_judge(e, fl, EVIDENCE_REPLACED) == VERDICT_OTHER && fl->lane.role == ROLE_NONE)
		owner_no_pair(e, fl);
	else
		owner_judge(e, fl, EVIDENCE_REPLACED_PAIR);
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

/* Whether the responder of the lane itself may have sent an answer with @psn a moment ago: to a
 * packet that was sent twice. Queue pairs in step ask under the same PSNs. */
static bool may_be_own(const struct engine *e, const struct flow *fl, struct wire_psn psn)
{
	const struct lane *l = &fl->lane;

	return lane_asked_below(psn, l->una.psn) &&
	       (e->now - fl->seen < OWN_NS || e->now - l->progress < OWN_NS);
}

enum owner_verdict owner_of_answer(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct flow *back = flow_partner(e, fl), *req = owner_asker(e, back, f->psn);
	struct lane *l = &fl->lane;
	bool proved, inside = lane_keeps(l) && psn_in(wire_psn_of(f), l->una.psn, l->epsn.psn);

	if (!req || !icrc_ok(f) || lane_repeats(e, l, wire_psn_of(f)))
		return VERDICT_SAME;
	/* in numbers that the host does not know it would acknowledge what nobody has executed, if
	 * the lane's own responder says so, or has just said so and a port doubles it */
	if (psn_map_differs(e, l) &&
	    (inside || (lane_asked_below(wire_psn_of(f), l->una.psn) && !lane_stalled(e, l))))
		return VERDICT_SAME;
	/* a host that waits for an ACK under this PSN fails of a response to a READ */
	if (f->opcode != OP_ACK && lane_holds_other(e, l, wire_psn_of(f)))
		return VERDICT_SAME;
	engine_pass(e, fl, other_port(fl->side), f);
	if (l->role == ROLE_ACCEPTOR)
		progress_due(e, fl, true); /* an opener that has the lane no more says so */
	if (may_be_own(e, fl, wire_psn_of(f)))
		return VERDICT_OTHER;
	proved = match_other(e, req, back, f->psn);
	/* what the requester's own lane delivers was meant for the former queue pair of its number.
	 * An opener ends the lane; an acceptor waits until its opener has */
	if (proved && (back->lane.state == LANE_HELD || back->lane.state == LANE_DRAIN))
		owner_judge(e, back, EVIDENCE_REPLACED);
	/* what is in custody here may be answered with this PSN as well */
	if (proved || !inside)
		other_responder(e, fl);
	return VERDICT_OTHER;
}

/* An ACK in the unpaired flow @ack answers what a lane passed on: there is another requester. */
void match_other_requester(struct engine *e, const struct flow *ack, uint32_t psn)
{
	uint32_t tag;
	struct psn_match *m =
		match_slot(e, &ack->key.dst, &ack->key.src, ack->key.vlan, psn, PSN_NONE, &tag);
	struct flow *fl = match_tells(e, m, tag) ? flow_ref(e, m->flow) : NULL;

	if (fl && fl->used && m->when >= fl->born && fl->partner != FLOW_NONE &&
	    flow_reversed(fl, ack) && (owner_unsure(&fl->lane) || fl->lane.state == LANE_DRAIN))
		other_responder(e, fl);
}
