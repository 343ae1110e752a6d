// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * ATOMICs whose earlier content may be thrown away (roles OPENER and SINGLE, only where the rule
 * says `atomic = discard-result`): CmpSwap and FetchAdd are answered here, by a pseudo ATOMIC ACK
 * whose original value is 0, and the responder's own answer ends here.
 *
 * Such an ATOMIC is taken into custody like everything else, and what holds for a SEND holds for
 * it: it is told to be done when it is retained and verified, it is released by a true ACK (the
 * responder's answer is one), and a refusal or a loss of custody is a fault. Two things differ:
 *
 *	- It is no ACK that tells it but an answer, one for each, since an ACK must not bear its PSN
 *	  (ack_tx.c). An ATOMIC ACK acknowledges all before it, just as an ACK does. So it is made
 *	  when the frontier has come up to the ATOMIC, and no other limit holds it there.
 *	- A host that lost the answer asks for it, not for an ACK. As long as the ATOMIC is in
 *	  custody it gets the same answer again, and nothing goes out a second time. Later, like any
 *	  duplicate of what is truly done, it goes to the responder, which does not execute a PSN
 *	  twice but repeats its answer; the host gets that with the value 0.
 *
 * Where the true answer comes before one could be made, it passes in its turn, with the value 0
 * like all others: the host must not come to rely on what it gets now and then. Before the peer
 * agrees all passes.
 *
 * In pair mode the record of an ATOMIC goes when it is answered: custody is released by what the
 * acceptor reports. In single mode it stays for pseudo_requester.c, which must know what the
 * responder has not answered; lane.single.made tells where those begin that the host waits for.
 *
 * row: NTT-8
 */
#include "engine/fault/fault.h"
#include "engine/learn/learn.h"
#include "engine/near/near.h"
#include "engine/prefetch/prefetch.h"

/* A host that lost an answer asks again within this; the responder may forget it after guesses. */
#define KEPT_NS	      (1 * NSEC_PER_SEC)
#define KEPT_ALONE_NS (10 * NSEC_PER_SEC)

/* Returns false when the port has no room for it. */
static bool answer(struct engine *e, struct flow *fl, struct host_psn psn, uint32_t msn)
{
	struct lane *l = &fl->lane;
	const struct flow *back = flow_partner(e, fl);
	uint8_t out[FRAME_MAX];
	struct build_spec s = {
		.opcode = OP_ATOMIC_ACK,
		.psn = psn.v,
		.syndrome = lane_syndrome(l),
		.msn = msn,
	};

	if (!back || !back->tmpl.len)
		return true;
	s.t = &back->tmpl;
	s.dqpn = back->key.dqpn;
	if (engine_tx(e, fl, fl->side, out, build_packet(out, &s)))
		return false;
	l->count.pseudo_acks++;
	COUNT(e, ATOMICS_MADE);
	return true;
}

/* The ATOMIC that the frontier has come up to and may pass, or NULL. */
static struct read_rec *atomic_due(struct engine *e, struct lane *l)
{
	struct read_rec *r;

	/* what is not understood counts messages that we do not */
	if (!atomic_discards(l) || l->opaque || psn_known(l->keeper.reasked_psn))
		return NULL;
	r = reads_waiting(e, l);
	return r && atomic_is(r->opcode) && !r->done && frontier_may_pass(e, l, r) ? r : NULL;
}

/* Answer it, if there is one. */
bool atomic_make(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	struct read_rec *r = atomic_due(e, l);

	if (!r)
		return false;
	if (!answer(e, fl, r->at.psn, psn_add(r->at.msn, 1))) {
		ack_again_later(e, fl);
		return false;
	}
	if (r->at.ackable && psn_after(r->at.psn, l->near.acked.psn))
		l->near.acked = r->at; /* what may be said again */
	mark_frontier(
		l, &(struct host_mark){.psn = psn_add(r->at.psn, 1), .msn = psn_add(r->at.msn, 1)});
	psn_raise(&l->near.told, l->near.frontier.psn);
	r->made = true;
	if (l->role == ROLE_SINGLE) {
		l->single.made = l->single.made == MQ_NONE ? l->reads.head
							   : mq_next(e->reads, l->single.made);
		while (read_at(e, l->single.made) != r)
			l->single.made = mq_next(e->reads, l->single.made);
		return true;
	}
	r->done = r->empty = true;
	if (x) {
		fetch_cancel(e, fl, r->wire);
		resp_keep(e, fl, r);
	}
	reads_trim(e, l, NULL);
	return true;
}

/*
 * The responder stands only so many READs and ATOMICs at a time. A requester keeps to that by
 * itself as long as it waits for their answers; of ATOMICs that were answered here it does not
 * know. What the rule or the connection manager says counts, else what the host was seen to have.
 */
void atomic_asked(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	uint32_t n = 0;

	if (x) {
		prefetch_saw(e, l, x);
		prefetch_depth(e, fl, x);
		return;
	}
	for (uint32_t id = l->single.made == MQ_NONE ? l->reads.head
						     : mq_next(e->reads, l->single.made);
	     id != MQ_NONE && n < UINT8_MAX; id = mq_next(e->reads, id))
		n++;
	if (n > l->single.most)
		l->single.most = (uint8_t)n;
}

/* Whether the ATOMIC that @f repeats was answered here, and is known to be in custody or done. */
static bool was_made(struct engine *e, struct lane *l, const struct frame *f)
{
	struct lane_reads *x = reads_of(e, l);
	struct wire_psn wire = psn_to_wire(x ? &x->map : NULL, host_psn_of(f));
	const struct read_rec *r = reads_find(e, &l->reads, host_psn_of(f));
	const struct pkt *d;

	if (r)
		return r->made;
	if (!psn_before(host_psn_of(f), l->near.told))
		return false;
	if (psn_known(wire) && psn_in(wire, l->una.psn, l->epsn.psn)) {
		d = lane_pkt(e, l, wire);
		return d && (d->flags & PKT_ANSWERED);
	}
	r = x ? reads_find(e, &x->kept, host_psn_of(f)) : NULL;
	return r && r->made && r->opcode == f->opcode && r->digest == reads_digest(f) &&
	       e->now - r->asked <= (x->guessed_ever ? KEPT_ALONE_NS : KEPT_NS);
}

/* The host asks again. Returns true when that ended here. */
bool atomic_again(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;

	if (!atomic_is(f->opcode) || !atomic_discards(l) || !was_made(e, l, f))
		return false;
	if (icrc_wrong(e, f))
		return true;
	l->count.dup++;
	COUNT(e, DUP_READS);
	/* a READ before it is asked again: its answer comes first, then the host asks again */
	if (!psn_known(l->keeper.reasked_psn) || psn_before(host_psn_of(f), l->keeper.reasked_psn))
		answer(e, fl, host_psn_of(f),
		       l->near.frontier.msn); /* if it does not leave, it asks again */
	return true;
}
