/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests that wait for an answer with data: READ, ATOMIC, FLUSH, ATOMIC WRITE.
 *
 * Each has a record from the moment it was accepted until its answer has passed whole. The records of a
 * lane form a queue in PSN order. The head's PSN bounds the front (an ACK past an unanswered READ makes a
 * requester start it anew) and, toward the responder, the release: an ACK beyond an unanswered READ means
 * that its answer was lost.
 *
 * Only responses in PSN order make progress; each must have the opcode that its place in the range
 * demands, and full length but for the last.
 */
#include "engine/internal.h"

struct read_rec *reads_head(struct engine *e, const struct lane *l)
{
	return read_at(e, l->reads.head);
}

bool reads_add(struct engine *e, struct flow *fl, const struct frame *f, uint32_t span,
	       const struct mark *at)
{
	struct lane *l = &fl->lane;
	struct read_rec *r = read_at(e, mq_push(e->reads, &l->reads));

	if (!r)
		return false;
	r->at = *at;
	r->span = span;
	r->resp_next = at->psn;
	r->asked = e->now;
	r->opcode = f->opcode;
	r->length = f->opcode == OP_READ_REQUEST ? frame_reth_length(f) : 0;
	l->nreads++;
	return true;
}

struct read_rec *reads_find(struct engine *e, struct lane *l, uint32_t psn)
{
	for (uint32_t id = l->reads.head; id != MQ_NONE; id = mq_next(e->reads, id)) {
		struct read_rec *r = read_at(e, id);

		if (psn_in(psn, r->at.psn, psn_add(r->at.psn, r->span)))
			return r;
	}
	return NULL;
}

/* Forget the answered ones at the head; @end, when not NULL, moves behind each. */
void reads_trim(struct engine *e, struct lane *l, struct mark *end)
{
	struct read_rec *r;

	while ((r = reads_head(e, l)) && r->done) {
		if (end)
			*end = (struct mark){.psn = psn_add(r->at.psn, r->span),
					     .msn = r->at.msn + 1};
		mq_pop(e->reads, &l->reads);
		l->nreads--;
	}
}

/* What the packet at @psn of an answer must be. */
static bool fits(const struct read_rec *r, const struct frame *f, uint32_t mtu)
{
	uint32_t i = (f->psn - r->at.psn) & PSN_MASK;
	uint8_t want;

	if (r->opcode == OP_CMP_SWAP || r->opcode == OP_FETCH_ADD)
		return f->opcode == OP_ATOMIC_ACK;
	if (r->span == 1)
		want = OP_READ_RESPONSE_ONLY;
	else if (i == 0)
		want = OP_READ_RESPONSE_FIRST;
	else if (i + 1 == r->span)
		want = OP_READ_RESPONSE_LAST;
	else
		want = OP_READ_RESPONSE_MIDDLE;
	if (r->opcode != OP_READ_REQUEST)
		return f->opcode == OP_READ_RESPONSE_ONLY;
	if (f->opcode != want) {
		/* a READ asked again from its middle is answered with a FIRST or ONLY of its own */
		bool again = i && (f->opcode == OP_READ_RESPONSE_FIRST ||
				   f->opcode == OP_READ_RESPONSE_ONLY);

		if (!again || (f->opcode == OP_READ_RESPONSE_ONLY) != (i + 1 == r->span))
			return false;
	}
	if (i + 1 < r->span)
		return !mtu || f->payload_len == mtu;
	return !mtu || f->payload_len == r->length - (r->span - 1) * mtu;
}

enum read_verdict reads_response(struct engine *e, struct lane *l, const struct frame *f,
				 struct read_rec **rec)
{
	struct read_rec *r = reads_find(e, l, f->psn);
	struct flow *fl = (struct flow *)((uint8_t *)l - offsetof(struct flow, lane));

	*rec = r;
	if (!r || !fits(r, f, fl->path_mtu))
		return READ_STRAY;
	if (psn_before(f->psn, r->resp_next))
		return READ_AGAIN;
	if (f->psn != r->resp_next) {
		r->gap = true;
		return READ_AHEAD;
	}
	r->gap = false;
	r->resp_next = psn_add(r->resp_next, 1);
	if (r->resp_next != psn_add(r->at.psn, r->span))
		return READ_IN_ORDER;
	r->done = true;
	return READ_COMPLETE;
}
