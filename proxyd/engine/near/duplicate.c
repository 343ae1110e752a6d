// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Requests that are not the next one (roles OPENER and SINGLE): repeats, and what is far away.
 *
 * A repeat of what is in custody is answered with an ACK of the frontier, and not sent on. A repeat
 * of what the responder has truly acknowledged goes to the responder, who knows whether it is a
 * repeat. A READ or ATOMIC gets its answer again where that is kept here. Where the answer is still
 * on its way, nothing is done. Else the responder is asked for it again.
 *
 * Where the responder knows other PSNs, nothing passes. There a repeat of a SEND or WRITE that was
 * truly acknowledged is known by its fingerprint, of which the latest are kept (struct lane_reads).
 * What has another one, or is older, gets no answer: it may be a new owner's first, which nobody
 * has executed. A host that lacks an ACK repeats what follows, too.
 *
 * A READ that is asked again after its answer had passed was lost between us and the requester.
 * ACKs past it would only make the requester start it again and again, at LAN speed, until its
 * retries are used up; so none is sent until the answer has passed once more.
 *
 * incarnation.c has what another owner of the number asks, unseen.c what a repeat tells of others.
 *
 * row: ENG-10
 */
#include "engine/announce/announce.h"
#include "engine/fault/fault.h"
#include "engine/owner/owner.h"
#include "engine/link/link.h"
#include "engine/link/order.h"
#include "engine/near/near_priv.h"
#include "engine/prefetch/prefetch.h"

/* A responder that was asked answers within this time and two round trips, if it is there. */
#define UNANSWERED_NS	     (500 * NSEC_PER_MSEC)
/* A duplicate READ is sent on when its answer is so much overdue, in eighths of a round trip. */
#define READ_OVERDUE_EIGHTHS 10u

/* Behind the end of its storage command the memory that @f asks for may not be offered any more. */
static bool may_ask_anew(struct engine *e, const struct flow *fl, const struct frame *f)
{
	struct read_range what = range_of(f);

	return announce_live(e, fl, &what);
}

/* Pass a repeated READ or ATOMIC on: the responder repeats the answer that is not kept here. */
static void ask_past(struct engine *e, struct flow *fl, const struct frame *f, bool moved)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	bool read = f->opcode == OP_READ_REQUEST, offered = read && may_ask_anew(e, fl, f);
	uint8_t out[FRAME_MAX];
	struct wire_psn wire;

	if (fl->lane.renumbered && read && !offered) {
		COUNT(e, DUP_READS);
		return;
	}
	if (x && x->guessed_ever && read && (!icrc_ok(f) || resp_renew(e, fl, f, offered))) {
		COUNT(e, DUP_READS);
		return;
	}
	/* after guesses the responder may have forgotten an ATOMIC, which is never asked anew */
	if (x && x->guessed_ever && !read && repeats_for_ever(e, fl, f, REASON_TIMEOUT))
		return;
	wire = x ? resp_wire_psn(e, fl, f) : psn_same_wire(host_psn_of(f));
	if (!psn_known(wire) || (moved && !icrc_ok(f))) {
		COUNT(e, DUP_READS);
		return;
	}
	COUNT(e, DUP_READS_PASSED);
	if (wire.v == f->psn)
		engine_tx(e, fl, other_port(fl->side), f->data, f->len);
	else
		engine_tx(e, fl, other_port(fl->side), out,
			  psn_map_frame(out, f, wire.v, PSN_NONE));
}

/* Whether @f, at a PSN of @r, asks for something else than @r. A READ may ask for a part of it. */
bool other_read(const struct flow *fl, const struct read_rec *r, const struct frame *f)
{
	if (r->opcode != f->opcode)
		return true;
	if (r->opcode == OP_READ_REQUEST)
		return !reads_part(fl, r, f);
	return !psn_is(host_psn_of(f), r->at.psn) || reads_digest(f) != r->digest;
}

/*
 * Whether @f bears the PSN of a packet in custody and is another request. The BTH may differ: a
 * requester that repeats may ask for an ACK where it did not at first. So may the payload of what
 * was not acknowledged yet: an application may change what it has not been told to be sent. Of what
 * was, another owner of the number would take the ACK for its own; where nothing was promised that
 * costs nothing.
 */
static bool other_request(struct engine *e, const struct flow *fl, const struct lane_reads *x,
			  const struct frame *f)
{
	const struct lane *l = &fl->lane;
	struct wire_psn wire = psn_to_wire(x ? &x->map : NULL, host_psn_of(f));
	const struct pkt *d;
	struct frame g;

	if (!psn_known(wire) || !psn_in(wire, l->una.psn, l->epsn.psn))
		return false;
	d = lane_pkt(e, l, wire);
	if (!d || frame_parse(lane_packet(e, d), d->len, &g) != FRAME_OK)
		return false;
	if ((g.op->flags ^ f->op->flags) & OPF_ANSWERED ||
	    (g.op->flags & OPF_ANSWERED && g.opcode != f->opcode))
		return true;
	if ((g.op->flags & OPF_ANSWERED) && !(g.op->flags & f->op->flags & OPF_ATOMIC))
		return false; /* what READs ask for: other_read() */
	return g.opcode != f->opcode || g.payload_len != f->payload_len ||
	       g.payload - g.ext != f->payload - f->ext ||
	       memcmp(g.data + g.ext, f->data + f->ext, g.payload - g.ext) ||
	       ((psn_before(host_psn_of(f), l->near.told) || l->state == LANE_OPENING) &&
		memcmp(g.data + g.payload, f->data + f->payload, g.payload_len));
}

/* What a request with an older PSN is. */
enum verdict {
	REPEATS_DONE,	  /* the responder has acknowledged it, and the requester was told so, or
			   * is told nothing but by the responder (owner.c), or only that knows
			   * whose it is */
	REPEATS_HELD,	  /* a SEND or WRITE in custody, or done but not to be passed on */
	REPEATS_ANSWERED, /* a READ or ATOMIC, which needs its answer again */
	OTHER_REQUEST,	  /* not what was sent with this PSN before */
};

/* What @f is. @r: the READ or ATOMIC that it repeats; @moved: the responder knows other PSNs. */
static enum verdict classify(struct engine *e, const struct flow *fl, const struct frame *f,
			     const struct read_rec *r, bool moved)
{
	const struct lane *l = &fl->lane;
	const struct lane_reads *x = reads_of(e, l);
	bool answered = f->op->flags & OPF_ANSWERED;
	struct host_mark una = psn_to_host(e, l, &l->una);
	/* the requester has not been told, and nothing is kept that tells it from another owner */
	bool untold = psn_is(una.psn, psn_same_host(l->epsn.psn)) && !l->nreads;

	if (psn_before(host_psn_of(f), una.psn) &&
	    (psn_before(host_psn_of(f), l->near.told) || owner_unsure(l) || untold) && !answered &&
	    !moved)
		return REPEATS_DONE;
	if (moved && !answered && psn_before(host_psn_of(f), una.psn) && x && x->guessed_ever &&
	    !reads_has_print(x, f))
		return OTHER_REQUEST;
	if ((!r || r->made) && other_request(e, fl, x, f))
		return OTHER_REQUEST;
	return answered ? REPEATS_ANSWERED : REPEATS_HELD;
}

/* The ACK was lost, or this is another incarnation of the QP: the true responder knows. */
static void pass_done(struct engine *e, struct flow *fl, const struct frame *f)
{
	fl->lane.count.dup++;
	if (fl->lane.ordered && !order_may_pass(e, fl)) {
		owner_judge(e, fl, EVIDENCE_REQUEST); /* another owner's must not overtake either */
		return;
	}
	owner_passed(e, fl,
		     psn_same_wire(host_psn_of(f))); /* nothing passes where numbers differ */
	owner_note(e, fl, f->psn);
	COUNT(e, DUP_PASSED);
	engine_tx(e, fl, other_port(fl->side), f->data, f->len);
}

/* The requester resends @psn, but in this round not the READs before it: it has the answers. */
static void has_answers(const struct engine *e, struct lane *l, struct host_psn psn)
{
	if (!psn_known(l->keeper.reasked_psn) || psn_before(psn, l->keeper.reasked_psn) ||
	    now_us(e) - l->keeper.reasked_us <= 2 * l->rtt.srtt_us + AGAIN_US)
		return;
	l->keeper.reasked_psn = psn_add(psn, 1);
	if (!psn_before(l->keeper.reasked_psn, l->keeper.reasked_end))
		l->keeper.reasked_psn = HOST_NONE;
}

void near_spoken(struct engine *e, struct flow *fl)
{
	if (fl->lane.near.quiet && fl->lane.reads_page != POOL_NONE)
		pace_run(e, flow_partner(e, fl)); /* answers that waited for this */
	fl->lane.near.quiet = false;
}

/* The requester repeats a SEND or WRITE because it lacks an ACK: it gets that of the frontier. */
static void ack_again(struct engine *e, struct flow *fl, const struct frame *f, bool moved)
{
	struct lane *l = &fl->lane;

	l->count.dup++;
	COUNT(e, DUP_REQUESTS);
	if (moved && psn_before(host_psn_of(f), l->near.told) &&
	    repeats_for_ever(e, fl, f, REASON_INCARNATION))
		return;
	near_spoken(e, fl);
	rounds_forget(e, l);
	near_ease_one(e, fl);
	has_answers(e, l, host_psn_of(f));
	l->near.ack_repeat = true;
	ack_list(e, fl);
}

/* Whether the request of @r, or its answer, is still on its way. */
static bool answer_comes(const struct engine *e, const struct lane *l, const struct read_rec *r)
{
	if (!psn_before(r->wire, l->una.psn))
		return true;
	return !r->gap &&
	       e->now - r->asked < l->rtt.srtt_us * NSEC_PER_USEC * READ_OVERDUE_EIGHTHS / 8;
}

/* The answer to @f has passed, and was lost: no ACK goes past it until it has passed again. Where
 * the responder does not give it in some rounds, somebody else may have asked (REASKED_MOST). */
static void note_reasked(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	struct host_psn end = psn_add(host_psn_of(f), frame_span(f, flow_mtu(fl)));

	if (!psn_known(l->keeper.reasked_psn) || now_us(e) - l->keeper.reasked_us > AGAIN_US) {
		l->keeper.reasked += l->keeper.reasked <= REASKED_MOST;
		l->keeper.reasked_us = now_us(e);
	}
	if (!psn_known(l->keeper.reasked_psn) || psn_before(host_psn_of(f), l->keeper.reasked_psn))
		l->keeper.reasked_psn = host_psn_of(f);
	if (psn_is(l->keeper.reasked_psn, host_psn_of(f)) || psn_after(end, l->keeper.reasked_end))
		l->keeper.reasked_end = end;
	if (!reasked_waits(l))
		ack_list(e, fl);
}

/* Whether the READ or ATOMIC @f, of which there is no record, was never asked before: somebody else
 * sent it, or another owner of the number. The true ACK is never inside of a READ, and what was
 * accepted ends with one; and an OPENER that has no page yet has never held any. */
static bool never_asked(struct engine *e, const struct flow *fl, const struct frame *f)
{
	const struct lane *l = &fl->lane;
	uint32_t span = frame_span(f, flow_mtu(fl));
	struct host_mark una = psn_to_host(e, l, &l->una);

	if (span > SPAN_MAX || (l->role == ROLE_OPENER && l->reads_page == POOL_NONE &&
				!psn_before(psn_same_wire(host_psn_of(f)), l->start)))
		return true;
	return psn_after(psn_add(host_psn_of(f), span),
			 psn_before(host_psn_of(f), una.psn) ? una.psn : host_epsn(e, l).psn);
}

/* The answer to the READ or ATOMIC @f is not kept here: wait for it, or ask the responder again. */
static void await_answer(struct engine *e, struct flow *fl, const struct frame *f,
			 struct read_rec *r, bool moved)
{
	struct lane *l = &fl->lane;

	/* without a record its answer has gone to the host, even if no true ACK has said so yet */
	if (!r) {
		note_reasked(e, fl, f);
	} else if (answer_comes(e, l, r)) {
		/* what has passed was lost: it is to be asked for as well (far/) */
		if (l->role == ROLE_SINGLE && !r->done &&
		    psn_past(host_psn_of(f), r->at.psn) < r->got)
			r->got = psn_past(host_psn_of(f), r->at.psn);
		l->count.dup++;
		COUNT(e, DUP_READS);
		return;
	} else {
		r->asked = e->now;
		r->gap = false;
	}
	ask_past(e, fl, f, moved);
}

/* The requester repeats the READ or ATOMIC of @r, or one that has no record any more. */
static void answer_again(struct engine *e, struct flow *fl, const struct frame *f,
			 struct read_rec *r, bool moved)
{
	/* of a damaged one it is not known what is asked, nor up to where (note_reasked()) */
	if (icrc_wrong(e, f))
		return;
	if (r)
		r->heard = e->now;
	/* what is kept is a former owner's, if that is what it is: the responder is asked */
	if ((r ? other_read(fl, r, f) : never_asked(e, fl, f) || resp_other(e, fl, f)) ||
	    reads_outran(e, fl, host_psn_of(f))) {
		incarnation_refuse(e, fl, f);
		return;
	}
	near_spoken(e, fl);
	if (r && owner_unsure(&fl->lane) && owner_judge(e, fl, EVIDENCE_ALIKE) == VERDICT_SAME) {
		fl->lane.count.dup++;
		COUNT(e, DUP_READS);
		return; /* what is held of its answer is given in its turn */
	}
	if (owner_unsure(&fl->lane) ||
	    (!atomic_again(e, fl, f) && !(reads_of(e, &fl->lane) && resp_repeat(e, fl, f))))
		await_answer(e, fl, f, r, moved);
}

/*
 * What is not in custody yet is the requester's own business. But the peer may have agreed already,
 * and would take whatever passes for a packet of the stream: of what is retained here our own copy
 * goes out instead. It must be a copy of just that: whoever asks for something else may be another
 * owner of the number, and gets the lane out of the way where it owes nothing.
 */
static void while_opening(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	const struct read_rec *r;
	const struct pkt *d;
	const struct wire_psn at = psn_same_wire(host_psn_of(f)); /* nothing was added yet */

	if (!psn_in(at, l->una.psn, l->epsn.psn)) {
		if (l->start_acked && psn_before(at, l->una.psn))
			owner_passed(e, fl, at); /* it was truly acknowledged */
		engine_pass(e, fl, fl->side, f);
		return;
	}
	d = lane_pkt(e, l, at);
	r = reads_find(e, &l->reads, host_psn_of(f));
	if ((r && other_read(fl, r, f)) || (d && other_request(e, fl, reads_of(e, l), f))) {
		COUNT(e, FOREIGN);
		if (!lane_owes(e, l) && icrc_ok(f))
			incarnation_gone(e, fl); /* and asks again */
	} else if (d) {
		engine_tx(e, fl, other_port(fl->side), lane_packet(e, d), d->len);
	} else if (r) {
		engine_pass(e, fl, fl->side, f); /* the rest of a READ */
	} else {
		COUNT(e, FOREIGN);
	}
}

/* Nobody has said for long that all before the lane was done, so its requester was told nothing.
 * When requests from before it come that late, its responder may be gone and the number another
 * owner's, in whose name what is held would be executed. Nothing is owed: let go of it. */
static bool long_unanswered(struct engine *e, const struct lane *l)
{
	return !psn_map_differs(e, l) &&
	       e->now - l->opened > UNANSWERED_NS + 2ull * l->rtt.srtt_us * NSEC_PER_USEC;
}

/* The host repeats what was taken into custody, perhaps since no answer comes to it. */
static void repeated(struct engine *e, struct flow *fl, const struct frame *f)
{
	flow_macs(e, fl, f);
	stream_tx_repeated(e, fl);
}

void duplicate_request(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	const struct lane_reads *x = reads_of(e, l);
	/* where the responder knows other numbers, nothing passes by */
	bool moved = l->renumbered || (x && psn_map_moved(&x->map, l));
	struct read_rec *r;

	if (l->state == LANE_OPENING ||
	    (!l->start_acked && psn_before(psn_same_wire(host_psn_of(f)), l->start))) {
		if (l->state == LANE_HELD && long_unanswered(e, l) && icrc_ok(f))
			incarnation_next(e, fl, f);
		else
			while_opening(e, fl, f);
		return;
	}
	if (unseen_told(e, fl, f, moved)) {
		pass_done(e, fl, f);
		return;
	}
	r = (f->op->flags & OPF_ANSWERED) ? reads_find(e, &l->reads, host_psn_of(f)) : NULL;
	switch (classify(e, fl, f, r, moved)) {
	case REPEATS_DONE:
		pass_done(e, fl, f);
		break;
	case REPEATS_HELD:
		repeated(e, fl, f);
		ack_again(e, fl, f, moved);
		break;
	case REPEATS_ANSWERED:
		repeated(e, fl, f);
		answer_again(e, fl, f, r, moved);
		break;
	case OTHER_REQUEST:
		incarnation_refuse(e, fl, f);
		break;
	}
}

/* @f goes to the responder without being counted: the responder will have used its PSNs. */
void duplicate_passes(struct flow *fl, const struct frame *f)
{
	struct host_psn passed = psn_add(host_psn_of(f), frame_span(f, flow_mtu(fl)));
	struct wire_psn end = psn_same_wire(passed); /* while the lane opens */

	psn_raise(&fl->lane.overlap, end);
}
