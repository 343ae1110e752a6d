// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Requests that the appliance adds at the end of a lane (role OPENER): READs and FetchAdds that the
 * host has not asked for, and READs under a new PSN for what is lost for good. They are in custody
 * like the host's own, and make the two numberings differ (number/psn_map.c).
 */
#include "engine/reads/reads.h"

int read_ask(struct engine *e, struct flow *fl, uint32_t psn, const struct read_range *what,
	     uint32_t skip)
{
	struct build_spec s = {
		.t = &fl->tmpl,
		.opcode = OP_READ_REQUEST,
		.dqpn = fl->key.dqpn,
		.psn = psn_add(psn, skip),
		.ackreq = true,
		.va = what->va + (uint64_t)skip * flow_mtu(fl),
		.rkey = what->rkey,
		.length = what->length - skip * flow_mtu(fl),
	};
	uint8_t out[FRAME_MAX];

	return engine_tx(e, fl, other_port(fl->side), out, build_packet(out, &s));
}

/* A request of our own at the end of the lane: a READ, or a FetchAdd of @add. */
bool own_request_add(struct engine *e, struct flow *fl, struct lane_reads *x,
		     const struct read_range *r, uint8_t opcode, uint64_t add,
		     enum fetch_state state)
{
	struct lane *l = &fl->lane;
	struct build_spec s = {
		.t = &fl->tmpl,
		.opcode = opcode,
		.dqpn = fl->key.dqpn,
		.psn = l->epsn.psn.v,
		.ackreq = true,
		.va = r->va,
		.rkey = r->rkey,
		.length = r->length,
		.swap_add = add,
	};
	const struct fetch *oldest = fetch_at(e, x->fetches.head);
	uint8_t out[FRAME_MAX];
	struct frame f;
	struct pkt *d;
	uint32_t span;
	int32_t most;
	bool bad;

	/* the host has sent packets of these numbers past us; or may have to, when it READs */
	if (psn_before(l->epsn.psn, l->overlap) || l->no_mtu)
		return false;
	if (!l->numbered && !lane_fence(e, fl)) {
		x->stop = true;
		return false;
	}
	if (frame_parse(out, build_packet(out, &s), &f) != FRAME_OK)
		return false;
	span = frame_span(&f, flow_mtu(fl));
	/* requests and responses must fit their windows; guesses leave room for what is awaited */
	most = state == FETCH_GUESS ? WINDOW_SPAN / 2 : WINDOW_SPAN - WINDOW_SPAN / 8;
	if (psn_diff(psn_add(l->epsn.psn, span), l->una.psn) > most ||
	    (oldest && psn_diff(psn_add(l->epsn.psn, span), oldest->psn) > most) ||
	    (state == FETCH_GUESS && !fetch_fits(e, fl, span)))
		return false;
	d = fetch_room(e, fl, l->epsn.psn, span) ? lane_retain(e, fl, &f, span, l->epsn.psn, &bad)
						 : NULL;
	if (!d)
		return false;
	d->flags |= PKT_OWN;
	if (!fetch_add(e, fl, r, opcode, l->epsn.psn, span, state)) {
		lane_forget(e, fl, d, l->epsn.psn);
		return false;
	}
	if (psn_is(l->una.psn, l->epsn.psn))
		l->progress = e->now;
	mark_accepted(l, span, true, false);
	mark_held(l, l->epsn.psn);
	x->guessed_ever = true;
	if (state == FETCH_GUESS) {
		x->guesses++;
		x->guessed += r->length;
		x->info.guesses += opcode == OP_READ_REQUEST;
	}
	return true;
}

/* The host waits for @r, the responder has executed it, and the response is lost for good: a READ
 * for the same under a new PSN, @wire. What it brings is younger than what was lost, which is what
 * a READ that is repeated may bring anyway (spec: IBTA 9.7.5.1.1). None while the lane drains. */
bool own_request_anew(struct engine *e, struct flow *fl, const struct read_range *r,
		      struct wire_psn *wire)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);

	*wire = l->epsn.psn;
	if (l->state != LANE_HELD || !l->start_acked || !l->accepted || l->reopen || l->opaque ||
	    l->refusal || l->near.msg != MSG_NONE || segments_full(&x->map.seg, 1) ||
	    mq_free_count(e->reads) < 2)
		return false;
	if (!own_request_add(e, fl, x, r, OP_READ_REQUEST, 0, FETCH_ASKED)) {
		fetch_drop_guesses(e, fl, &x->info.flushed_pattern); /* guesses are in the way */
		return false;
	}
	pace_run(e, fl);
	return true;
}
