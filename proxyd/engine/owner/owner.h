/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whose queue pair number it is: evidence in, a verdict out. owner.c has the table. */
#ifndef LONGHAUL_ENGINE_OWNER_OWNER_H
#define LONGHAUL_ENGINE_OWNER_OWNER_H

#include "engine/core/core.h"

/* What is found on a lane. */
enum owner_evidence {
	EVIDENCE_REQUEST,  /* another owner may have sent a request: from below una, with other
			   * content than before, or when the connection manager named one */
	EVIDENCE_NAMED,	   /* the connection manager has named another owner, which begins at PSNs
			    * that are not in use here */
	EVIDENCE_ALIKE,	   /* a READ or ATOMIC that is under way was asked again, unchanged */
	EVIDENCE_DONE,	   /* the responder says of what passed to it that it has all below una */
	EVIDENCE_TOLD,	   /* what OWNER_PROVED allows is done */
	EVIDENCE_COUNTS,   /* the responder's MSN is the one that we expect */
	EVIDENCE_FEWER,	   /* it speaks after a silence, with fewer messages than before */
	EVIDENCE_REPLACED, /* its MSN is of long ago, or it answers another requester */
	EVIDENCE_SILENCE,  /* ACCEPTOR: the responder was given time to speak, and has not */

	/* EVIDENCE_REPLACED where another requester is answered: one with the lane's own number */
	EVIDENCE_REPLACED_PAIR,
	/* What EVIDENCE_REPLACED is for a lane: owner.c finds out. */
	EVIDENCE_REPLACED_LATE,	  /* acknowledged data is in custody, and the responder goes on; or
				   * the lane fails anyway, or is not agreed with the peer */
	EVIDENCE_REPLACED_FREE,	  /* no acknowledged data is in custody, or no peer can be asked */
	EVIDENCE_REPLACED_SINGLE, /* SINGLE: acknowledged data is in custody */
	EVIDENCE_REPLACED_OPENER, /* OPENER: likewise, and the peer can be asked */
	EVIDENCE_REPLACED_HEARD,  /* ACCEPTOR: the responder goes on, or has all */
	EVIDENCE_REPLACED_SILENT, /* ACCEPTOR: after a silence, with something on its way to it */

	EVIDENCE_PEER_HEARD, /* OPENER: the peer has heard another owner, too */
	EVIDENCE_PEER_ASKS,  /* ACCEPTOR: the peer asks whether another owner was heard here */
};

enum owner_verdict {
	VERDICT_SAME,	/* nothing shows another owner */
	VERDICT_OTHER,	/* another owner; owner_judge() has ended the lane, or it fails */
	VERDICT_UNSURE, /* maybe another owner */
};

/* owner.c */
enum owner_verdict owner_judge(struct engine *e, struct flow *fl, enum owner_evidence what);
void owner_doubt(struct engine *e, struct flow *fl);
void owner_passed(struct engine *e, struct flow *fl, struct wire_psn psn);
void owner_passed_unknown(struct engine *e, struct lane *l);
enum owner_verdict owner_strange(struct engine *e, struct flow *fl, const struct frame *f);
void owner_answered(struct engine *e, struct flow *fl, const struct frame *f);
void owner_counts(struct engine *e, struct flow *fl, uint32_t msn);
/** owner_asked - OPENER: the peer is asked whether it has heard another owner, too. */
static inline bool owner_asked(const struct lane *l)
{
	return l->owner.state == OWNER_ASKED || l->owner.state == OWNER_ASKED_PAIR;
}

/* asked.c */
bool lane_lately(const struct engine *e, const struct lane *l, uint32_t ms);
bool lane_asked(const struct engine *e, const struct lane *l);
bool lane_repeats(const struct engine *e, const struct lane *l, struct wire_psn psn);
bool lane_owes(struct engine *e, const struct lane *l);
bool lane_stalled(const struct engine *e, const struct lane *l);
bool lane_holds_other(struct engine *e, const struct lane *l, struct wire_psn psn);
bool lane_may_await(struct engine *e, const struct lane *l, struct wire_psn psn);

/* notes.c: which queue pairs bear the same PSNs */
/** owner_note - a repeat of the held @fl passes to the responder: who is answered? */
void owner_note(struct engine *e, struct flow *fl, uint32_t psn);
/** owner_asker - the unpaired flow that an ACK of @psn in the paired flow @ack answers, or NULL. */
struct flow *owner_asker(struct engine *e, const struct flow *ack, uint32_t psn);
/** owner_no_pair - @fl, whose lane has ended, and its partner are no pair: another one answers. */
void owner_no_pair(struct engine *e, struct flow *fl);

/* answers.c */
/**
 * owner_of_answer - the response @f, for which nothing on the lane of @fl waits, may come from the
 * responder of the lane (VERDICT_SAME). Else it has passed (VERDICT_OTHER).
 */
enum owner_verdict owner_of_answer(struct engine *e, struct flow *fl, const struct frame *f);

#endif
