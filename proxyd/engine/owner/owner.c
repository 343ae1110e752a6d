// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Which queue pair has the number? A queue pair number may get another owner at any time, at the
 * same PSNs, and without a message of the connection manager. What its requests look like proves
 * nothing (anybody can send them), but the true responder knows. Evidence comes in here (enum
 * owner_evidence), the lane's state changes (enum owner_state), and a verdict comes out, by the
 * table.
 *
 * A request from below the true ACK was acknowledged before; it passes to the responder. Either the
 * host has not got an ACK, or it is another owner. Until the responder has answered the lane is in
 * SUSPECT: what comes is sent on, and the requester hears only the responder. The answer decides:
 *
 *	ACK just below una, today's MSN	it has all that we know it to have, whoever asks
 *	a true ACK beyond una		likewise
 *	an MSN from before the request	the responder is another one, and what the former one has
 *	or an ACK to another requester	not taken is lost
 *
 * The last two may be forged, on the WAN as well as on the LAN, and what was acknowledged would be
 * dropped in silence. So an opener with such data in custody asks its peer, which hears the
 * responder on its own LAN, and whose answer is authentic: the lane ends when the peer has heard
 * the same (HEARD). A single appliance has no peer to ask: its lane fails, so that the host learns
 * it. An opener whose peer is too old to be asked ends the lane.
 *
 * Where such a request must not pass, because a barrier is open (link/order.c), the lane is in
 * SUSPECT as well: no responder is asked by it, but its sender would take an ACK of what follows
 * for an ACK of this, too. A true ACK beyond una ends the doubt, or a later repeat.
 *
 * Where responder and requester know other numbers (psn_map.c) nothing passes but a READ or ATOMIC
 * that is asked again, under the responder's number, and its answer ends the doubt if it counts as
 * we do; and only this lane makes the two understand each other, so that it is treated as one with
 * acknowledged data in custody. A request of unknown opcode passes without a place: its PSN does
 * not tell its answer.
 *
 * REQ and REP that name the number, without an RTU, may be forged. If nothing is on its way then,
 * no word of the responder ends the doubt. Where the new owner would ask from far away on (NAMED),
 * the host ends it: who repeats a READ or ATOMIC that is under way is the one that asked it.
 *
 * A responder that has been silent for STALL_NS, with something on its way to it, may be gone. Then
 * a request from below the true ACK may be the first of a new owner, and nothing of the old custody
 * must be sent before it is answered: the new owner would execute it.
 */
#include "engine/owner/notes.h"

/* How long nothing is sent that way. */
#define UNSURE_NS  (1 * NSEC_PER_SEC)
/* Not so many messages are completed while an ACK is on its way. */
#define MSN_RECENT 65536u

/* What is done besides the change of state. */
enum action {
	NOTHING,
	SURE,	/* what waited for the responder's word goes on */
	ASK,	/* ask the peer whether it has heard the same */
	HOLD,	/* send nothing before the responder has spoken */
	REFUSE, /* what is in custody is not for this responder: the host must learn that */
	FAIL,	/* the same, with an event */
	CLOSE,	/* the lane ends, and the peer is told */
	END, /* the lane ends as the peer has said; ASKED_PAIR: the two flows are no pair either */
};

/* States, as bits. */
enum {
	KNOWN = 1u << OWNER_KNOWN,
	PROVED = 1u << OWNER_PROVED,
	NAMED = 1u << OWNER_NAMED,
	SUSPECT = 1u << OWNER_SUSPECT,
	DOUBTED = NAMED | SUSPECT,
	ASKED = 1u << OWNER_ASKED,
	ASKED_PAIR = 1u << OWNER_ASKED_PAIR,
	WAITS = 1u << OWNER_WAITS,
	HEARD = 1u << OWNER_HEARD,
	ANY = (1u << OWNER_STATES) - 1,
};

/**
 * struct owner_rule - a row of the table.
 * @in:   the states that it is for, bits
 * @next: enum owner_state; OWNER_STAY: no change
 */
struct owner_rule {
	uint8_t evidence, in, verdict, next, action;
};

#define OWNER_STAY OWNER_STATES
#define ROW(what, in, verdict, next, action)                                                       \
	{                                                                                          \
		EVIDENCE_##what, in, VERDICT_##verdict, OWNER_##next, action                       \
	}

/* The first row of the evidence that has the lane's state is taken. Where there is none, nothing
 * changes: the verdict is UNSURE if the state is (owner_unsure()), else SAME. The packet scripts of
 * tests/scenario/scripts that show a row name its evidence: "# owner: REQUEST". */
/* clang-format off */
static const struct owner_rule rules[] = {
	/*  evidence		in the states			verdict	next		action */
	ROW(COUNTS,		PROVED,				SAME,	STAY,		SURE),
	ROW(COUNTS,		ANY,				SAME,	KNOWN,		SURE),
	ROW(REQUEST,		KNOWN | PROVED | NAMED,		UNSURE,	SUSPECT,	NOTHING),
	ROW(NAMED,		KNOWN | PROVED,			UNSURE,	NAMED,		NOTHING),
	ROW(ALIKE,		NAMED,				SAME,	KNOWN,		SURE),
	ROW(DONE,		PROVED | DOUBTED | ASKED | ASKED_PAIR, SAME, PROVED,	SURE),
	ROW(DONE,		ANY,				SAME,	KNOWN,		SURE),
	ROW(TOLD,		PROVED,				SAME,	KNOWN,		NOTHING),
	ROW(FEWER,		ANY,				OTHER,	STAY,		REFUSE),
	ROW(REPLACED_LATE,	ANY,				UNSURE,	STAY,		NOTHING),
	ROW(REPLACED_FREE,	ANY,				OTHER,	STAY,		CLOSE),
	ROW(REPLACED_SINGLE,	ANY,				OTHER,	STAY,		FAIL),
	ROW(REPLACED_OPENER,	KNOWN | PROVED | DOUBTED,	UNSURE,	ASKED,		ASK),
	ROW(REPLACED_PAIR,	ASKED,				UNSURE,	ASKED_PAIR,	NOTHING),
	ROW(PEER_HEARD,		ASKED | ASKED_PAIR,		OTHER,	STAY,		END),
	ROW(REPLACED_HEARD,	KNOWN | HEARD,			UNSURE,	HEARD,		NOTHING),
	ROW(REPLACED_SILENT,	ANY,				UNSURE,	WAITS,		HOLD),
	ROW(PEER_ASKS,		HEARD | WAITS,			OTHER,	STAY,		CLOSE),
	ROW(SILENCE,		WAITS,				OTHER,	STAY,		REFUSE),
};
/* clang-format on */

static const struct owner_rule *rule_for(enum owner_evidence what, const struct lane *l)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (rules[i].evidence == what && rules[i].in & 1u << l->owner.state)
			return &rules[i];
	}
	return NULL;
}

/* Send nothing before the responder has spoken, or has had the time to: once for each silence, or
 * who repeats often enough would keep all in custody for ever. */
static void wait_for_word(struct engine *e, struct flow *fl)
{
	if (fl->lane.owner.held_once)
		return;
	fl->lane.owner.held_once = true;
	lane_hold_back(e, fl, UNSURE_NS);
}

/* The responder has all below una, and counts as we do. @was_unsure: before it said so. */
static void sure(struct engine *e, struct flow *fl, bool was_unsure)
{
	struct lane *l = &fl->lane;

	l->owner.held_once = false;
	if (!was_unsure)
		return;
	ack_list(e, fl);
	if (l->reads_page != POOL_NONE)
		pace_run(e, flow_partner(e, fl)); /* answers that waited for this */
	if (!l->owner.held_back)
		return;
	l->rnr_wait = l->owner.held_back = false;
	timer_cancel(e, fl, TIMER_AUX);
	pace_run(e, fl);
}

/* The number has another owner, and the lane is to end. */
static void end(struct engine *e, struct flow *fl, bool tell, bool no_pair)
{
	engine_event(e, EVENT_INCARNATION, fl, 0, 0);
	lane_close(e, fl, REASON_INCARNATION, tell);
	if (no_pair)
		owner_no_pair(e, fl);
}

static void act(struct engine *e, struct flow *fl, const struct owner_rule *r, enum owner_state was,
		bool was_unsure)
{
	switch ((enum action)r->action) {
	case NOTHING:
		break;
	case SURE:
		sure(e, fl, was_unsure);
		break;
	case ASK:
		lane_ask_owner(e, fl);
		break;
	case HOLD:
		wait_for_word(e, fl);
		break;
	case FAIL:
		engine_event(e, EVENT_INCARNATION, fl, 0, 0);
		/* fall through */
	case REFUSE:
		lane_refused(e, fl, fl->lane.una.psn, AETH_NAK_OPERATION, REASON_INCARNATION);
		break;
	case CLOSE:
		end(e, fl, true, false);
		break;
	case END:
		end(e, fl, false, was == OWNER_ASKED_PAIR);
		break;
	}
}

/*
 * What EVIDENCE_REPLACED is for this lane. One that has acknowledged data in custody believes it
 * only where the responder takes nothing more, now or later: an ACK that was late on its way looks
 * the same, and what was heard while the responder went on counts for nothing when it is silent
 * later; then it is asked again. Before the two agree there is other evidence.
 */
static enum owner_evidence replaced_as(struct engine *e, const struct lane *l)
{
	bool stalled = lane_stalled(e, l), owes = lane_owes(e, l);

	if (l->role == ROLE_ACCEPTOR) {
		if (stalled && l->state == LANE_DRAIN)
			return EVIDENCE_REPLACED_FREE;
		return stalled && !psn_is(l->una.psn, l->high) ? EVIDENCE_REPLACED_SILENT
							       : EVIDENCE_REPLACED_HEARD;
	}
	if (l->refusal || ((owes || psn_map_differs(e, l)) && !stalled))
		return EVIDENCE_REPLACED_LATE;
	if (owes && l->role == ROLE_SINGLE)
		return EVIDENCE_REPLACED_SINGLE;
	if (!owes || !(e->peer_features[l->peer] & PEER_FEATURE_DISPUTE))
		return EVIDENCE_REPLACED_FREE;
	return l->accepted && !l->reopen ? EVIDENCE_REPLACED_OPENER : EVIDENCE_REPLACED_LATE;
}

/** owner_judge - @what is found on the lane of @fl: has its number another owner? */
enum owner_verdict owner_judge(struct engine *e, struct flow *fl, enum owner_evidence what)
{
	struct lane *l = &fl->lane;
	enum owner_state was = l->owner.state;
	bool was_unsure = owner_unsure(l);
	const struct owner_rule *r;

	/* an acceptor does not judge requests: its opener does */
	if ((what == EVIDENCE_REQUEST || what == EVIDENCE_NAMED) && !lane_keeps(l))
		return VERDICT_SAME;
	r = rule_for(what == EVIDENCE_REPLACED ? replaced_as(e, l) : what, l);
	if (!r)
		return was_unsure ? VERDICT_UNSURE : VERDICT_SAME;
	if (r->next != OWNER_STAY)
		l->owner.state = r->next;
	act(e, fl, r, was, was_unsure);
	return r->verdict;
}

/** owner_doubt - the responder may be another one from now on: a silent one must speak first. */
void owner_doubt(struct engine *e, struct flow *fl)
{
	/* nxt goes back to what is sent again */
	if (!psn_is(fl->lane.una.psn, fl->lane.high) && lane_stalled(e, &fl->lane))
		wait_for_word(e, fl);
}

/** owner_passed - a request of the host, @psn from below una, passes to the responder. */
void owner_passed(struct engine *e, struct flow *fl, struct wire_psn psn)
{
	struct lane *l = &fl->lane;
	bool first = !lane_asked(e, l) || !psn_known(l->owner.passed_from);

	if (first)
		l->owner.passed_msn = l->una.msn;
	if (first || psn_before(psn, l->owner.passed_from))
		l->owner.passed_from = psn;
	l->owner.passed_ms = some_ms(e);
	owner_judge(e, fl, EVIDENCE_REQUEST);
	owner_doubt(e, fl);
}

/** owner_passed_unknown - a request passes of which it is not known what answers it. */
void owner_passed_unknown(struct engine *e, struct lane *l)
{
	if (!lane_asked(e, l))
		l->owner.passed_from = WIRE_NONE;
	l->owner.passed_ms = some_ms(e);
}

/** owner_strange - whether the ACK, NAK or answer @f, to what is in custody, comes from another
 * queue pair than before: silent for long, and fewer messages done. Then the lane is refused. */
enum owner_verdict owner_strange(struct engine *e, struct flow *fl, const struct frame *f)
{
	const struct lane *l = &fl->lane;
	uint32_t behind = psn_sub(l->una.msn, frame_aeth_msn(f));

	if (l->opaque || !behind || behind > PSN_MASK / 2 || !lane_stalled(e, l))
		return VERDICT_SAME;
	return owner_judge(e, fl, EVIDENCE_FEWER);
}

/** owner_answered - the responder answers @f, below una, to what has passed. */
void owner_answered(struct engine *e, struct flow *fl, const struct frame *f)
{
	const struct lane *l = &fl->lane;
	uint32_t msn = frame_aeth_msn(f), behind = psn_sub(l->una.msn, msn);

	if (l->opaque || psn_map_differs(e, l) || !lane_asked(e, l) ||
	    !psn_known(l->owner.passed_from) || psn_before(wire_psn_of(f), l->owner.passed_from))
		return;
	if (psn_sub(msn, l->una.msn) <= psn_sub(l->epsn.msn, l->una.msn)) {
		if (psn_is(psn_add(wire_psn_of(f), 1), l->una.psn) &&
		    aeth_is_ack(frame_aeth_syndrome(f)))
			owner_judge(e, fl, EVIDENCE_DONE);
	} else if (behind > psn_sub(l->una.msn, l->owner.passed_msn) &&
		   (behind < MSN_RECENT ||
		    msn <= psn_past(wire_psn_of(f), l->owner.passed_from) + 1)) {
		owner_judge(e, fl, EVIDENCE_REPLACED);
	}
}

/** owner_counts - a READ or ATOMIC of the host that passed the lane under the responder's number
 * (reads/) is answered with @msn: where that is what we know, the responder is the one we know. */
void owner_counts(struct engine *e, struct flow *fl, uint32_t msn)
{
	const struct lane *l = &fl->lane;

	if (!l->opaque && psn_sub(msn, l->una.msn) <= psn_sub(l->epsn.msn, l->una.msn))
		owner_judge(e, fl, EVIDENCE_COUNTS);
}
