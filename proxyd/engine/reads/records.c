// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Requests that wait for a response with data: READ, ATOMIC, FLUSH, ATOMIC WRITE.
 *
 * Each has a record from the moment it was accepted until its response has passed whole. The
 * records of a lane form a queue in PSN order. The head's PSN bounds the frontier (an ACK past an
 * unanswered READ makes a requester start it anew) and, toward the responder, the release: an ACK
 * beyond an unanswered READ means that its response was lost.
 *
 * Toward the responder only responses in PSN order make progress; each must have the opcode that
 * its place in the range demands, and full length but for the last.
 *
 * row: ENG-8, POOL-7, POOL-8, CONV-3, CONV-4
 */
#include "engine/reads/reads.h"
#include "wire/crc32.h"

/* The page of a lane that is asked its first READ; NULL when there is none to have. */
struct lane_reads *reads_begin(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);

	if (x || l->role == ROLE_SINGLE)
		return x;
	/* READs are not to be blocked by WRITEs that have taken all room (row: POOL-4) */
	l->reads_page = pool_page_get_first(e->pool, lane_class(l));
	x = reads_of(e, l);
	if (!x)
		return NULL;
	held_init(&x->held);
	mq_list_init(&x->fetches);
	mq_list_init(&x->kept);
	x->hint = MQ_NONE;
	x->gaps.holes = x->announce_page = POOL_NONE;
	x->map.asked = mark_same_host(l->epsn); /* nothing was added before */
	x->una = x->nxt = x->end = x->held.lost_from = x->latest = x->probe = l->epsn.psn;
	x->map.proof = l->una.psn;
	x->rate_at = x->arrival = e->now;
	return x;
}

void reads_end(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);

	if (!x)
		return;
	if (lane_keeps(l)) {
		struct wire_mark epsn = mark_same_wire(x->map.asked);

		mq_each (const struct fetch, g, e->reads, &x->fetches) {
			e->counters[EC_ATOMICS_UNASKED] +=
				g->state == FETCH_GUESS && g->opcode != OP_READ_REQUEST;
			e->reserved -= g->room;
		}
		mark_epsn(l, &epsn); /* from here on only the host's numbers count */
	}
	/* all that is held lies within one window, wherever that is */
	for (uint32_t from = 0; from <= PSN_MASK; from += WINDOW_SPAN)
		held_drop(e, &x->held, from, psn_add(from, WINDOW_SPAN));
	mq_flush(e->reads, &x->fetches);
	mq_flush(e->reads, &x->kept);
	holes_drop(e->pool, &x->gaps.holes);
	timer_cancel(e, fl, TIMER_RESP);
	pool_page_put(e->pool, l->reads_page);
	l->reads_page = POOL_NONE;
}

/* The first that the near requester waits for. Alone, earlier ones may still be unanswered. */
struct read_rec *reads_waiting(struct engine *e, const struct lane *l)
{
	struct read_rec *r;
	uint32_t id;

	if (l->role != ROLE_SINGLE || l->single.made == MQ_NONE)
		return reads_head(e, l);
	id = mq_next(e->reads, l->single.made);
	while ((r = read_at(e, id)) && r->done)
		id = mq_next(e->reads, id);
	return r;
}

/* Of all that @f asks for, operands and payload. Two that are alike are not told apart. */
uint32_t reads_digest(const struct frame *f)
{
	return crc32_update(CRC32_INIT, f->data + f->ext, f->icrc - f->ext);
}

void reads_note_print(struct lane_reads *x, const struct frame *f)
{
	x->print[f->psn % PRINTS] = icrc_print(f);
}

bool reads_has_print(const struct lane_reads *x, const struct frame *f)
{
	return x->print[f->psn % PRINTS] == icrc_print(f) && icrc_ok(f);
}

bool reads_add(struct engine *e, struct flow *fl, const struct frame *f, uint32_t span,
	       const struct host_mark *at, struct wire_psn wire)
{
	struct lane *l = &fl->lane;
	const struct read_rec *last = reads_tail(e, l);
	struct host_psn end = last ? psn_add(last->at.psn, last->span) : at->psn;
	struct read_rec *r;

	if (!lane_must(e, l, !psn_before(at->psn, end), at->psn.v, end.v))
		return false;
	r = read_at(e, mq_push(e->reads, &l->reads));
	if (!r)
		return false;
	r->at = *at;
	r->span = span;
	r->asked = r->heard = e->now;
	r->opcode = f->opcode;
	r->wire = wire;
	if (f->opcode == OP_READ_REQUEST)
		r->what = range_of(f);
	else
		r->digest = reads_digest(f);
	l->nreads++;
	if (reads_of(e, l) && l->state != LANE_OPENING)
		reads_of(e, l)->since++; /* what passes while it opens is the host's own */
	return true;
}

/** reads_part - whether the READ @f, whose PSN is within those of @r, asks for some of what that
 * did, or all: a host that lacks packets of its answer may ask for just those. */
bool reads_part(const struct flow *fl, const struct read_rec *r, const struct frame *f)
{
	uint64_t skip = (uint64_t)psn_past(host_psn_of(f), r->at.psn) * flow_mtu(fl);
	uint32_t length = frame_reth_length(f);

	return r->opcode == OP_READ_REQUEST && f->opcode == r->opcode &&
	       frame_reth_rkey(f) == r->what.rkey && frame_reth_va(f) == r->what.va + skip &&
	       skip + length <= r->what.length && (length || !r->what.length);
}

struct read_rec *reads_find(struct engine *e, const struct mq_list *list, struct host_psn psn)
{
	mq_each (struct read_rec, r, e->reads, list)
		if (psn_in(psn, r->at.psn, psn_add(r->at.psn, r->span)))
			return r;
	return NULL;
}

struct read_rec *reads_find_wire(struct engine *e, const struct mq_list *list, struct wire_psn psn)
{
	mq_each (struct read_rec, r, e->reads, list)
		if (psn_in(psn, r->wire, psn_add(r->wire, r->span)))
			return r;
	return NULL;
}

/* Those behind @psn; what is not understood has a record, too, and is none of them. */
static uint32_t count_after(struct engine *e, const struct mq_list *list, struct host_psn psn)
{
	uint32_t n = 0;

	mq_each (const struct read_rec, r, e->reads, list)
		n += psn_after(r->at.psn, psn) && (opcode_info(r->opcode)->flags & OPF_ANSWERED);
	return n;
}

/* Whether the host has asked so many after the one at @psn that it cannot wait for that any more:
 * it has no more outstanding than the two hosts have agreed upon. */
bool reads_outran(struct engine *e, const struct flow *fl, struct host_psn psn)
{
	const struct lane_reads *x = reads_of(e, &fl->lane);
	uint32_t n;

	if (!fl->read_depth)
		return false;
	n = count_after(e, &fl->lane.reads, psn);
	return n + (x ? count_after(e, &x->kept, psn) : 0) >= fl->read_depth;
}

static void pop(struct engine *e, struct lane *l)
{
	const struct read_rec *r = reads_head(e, l);
	struct lane_reads *x = reads_of(e, l);

	(void)lane_must(e, l, l->nreads == mq_len(e->reads, &l->reads), l->nreads, l->reads.head);
	if (l->role == ROLE_SINGLE && l->single.made == l->reads.head)
		l->single.made = MQ_NONE;
	/* its host goes on without what is held of the answer: that has gone past the appliance */
	if (l->role == ROLE_OPENER && x)
		resp_drop(e, x, r->wire, psn_add(r->wire, r->span));
	mq_pop(e->reads, &l->reads);
	l->nreads--;
}

static struct flow *flow_of(struct lane *l)
{
	return (struct flow *)((uint8_t *)l - offsetof(struct flow, lane));
}

/* Forget the answered ones at the head; @end, when not NULL, moves behind each. What is behind them
 * may have its response here already, which waited for its turn. */
void reads_trim(struct engine *e, struct lane *l, struct wire_mark *end)
{
	uint32_t before = l->nreads;
	struct read_rec *r;

	while ((r = reads_head(e, l)) && r->done) {
		/* one that was answered here says nothing of what is before it */
		if (end && r->absorbed && !psn_is(r->wire, end->psn))
			break;
		if (end)
			*end = (struct wire_mark){.psn = psn_add(r->wire, r->span),
						  .msn = r->at.msn + 1};
		pop(e, l);
	}
	if (l->nreads && l->nreads != before && l->role == ROLE_OPENER && reads_of(e, l))
		pace_run(e, flow_partner(e, flow_of(l)));
}

/* Those of them that end at @psn or before. */
void reads_trim_to(struct engine *e, struct lane *l, struct wire_psn psn)
{
	struct read_rec *r;

	while ((r = reads_head(e, l)) && r->done && !psn_after(psn_add(r->wire, r->span), psn))
		pop(e, l);
}

/* What packet @i of the response to such a request must be. */
bool reads_fit(uint8_t opcode, uint32_t i, uint32_t span, uint32_t length, const struct frame *f,
	       uint32_t mtu)
{
	if (opcode_info(opcode)->flags & OPF_ATOMIC)
		return f->opcode == OP_ATOMIC_ACK;
	if (opcode != OP_READ_REQUEST)
		return f->opcode == OP_READ_RESPONSE_ONLY;
	if (f->opcode != resp_opcode(i, span)) {
		/* a READ asked again from its middle is answered with a FIRST or ONLY of its own */
		bool again = i && (f->opcode == OP_READ_RESPONSE_FIRST ||
				   f->opcode == OP_READ_RESPONSE_ONLY);

		if (!again || (f->opcode == OP_READ_RESPONSE_ONLY) != (i + 1 == span))
			return false;
	}
	if (span > 1 && !mtu)
		return true;
	return f->payload_len == (i + 1 < span ? mtu : length - (span - 1) * mtu);
}

enum read_verdict reads_response(struct engine *e, struct lane *l, const struct frame *f,
				 struct read_rec **rec)
{
	struct read_rec *r = reads_find_wire(e, &l->reads, wire_psn_of(f));
	const struct flow *fl = flow_of(l);
	uint32_t i = r ? psn_past(wire_psn_of(f), r->wire) : 0;

	/* the record of what is not understood waits for an ACK */
	if (r && !(opcode_info(r->opcode)->flags & OPF_ANSWERED))
		r = NULL;
	*rec = r;
	if (!r || !reads_fit(r->opcode, i, r->span, r->what.length, f, fl->path_mtu))
		return READ_STRAY;
	if (i < r->got)
		return READ_AGAIN;
	if (i != r->got) {
		r->gap = true;
		return READ_GAP;
	}
	r->gap = false;
	if (++r->got != r->span)
		return READ_IN_ORDER;
	r->done = true;
	return READ_COMPLETE;
}
