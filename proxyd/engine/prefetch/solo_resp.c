// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Numbers, and responses to READs, whether the host or the appliance asked them (solo.c). */
#include "engine/fault/fault.h"
#include "engine/learn/learn.h"
#include "engine/prefetch/solo.h"

/* ---- numbers ---- */

const struct rule *solo_rule(const struct engine *e, const struct flow *fl)
{
	const struct rule *r = fl->rule < 0 ? NULL : &e->rules[fl->rule];

	return r && r->prefetch == PREFETCH_SINGLE && r->peer == PEER_NONE ? r : NULL;
}

/* What was asked for here and what is in the lane's marks: there is nothing retained. */
void solo_marks(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct wire_mark done;
	struct lane_reads *x = reads_of(e, l);
	bool skipped = false;

	x->map.asked = x->solo.end;
	x->guesses = 0;
	x->guessed = 0;
	l->nreads = 0;
	mq_each (const struct solo_read, r, e->reads, &x->fetches) {
		if (solo_unmet(r)) {
			if (!x->guesses++) {
				x->map.asked = (struct host_mark){
					.psn = r->host,
					.msn = psn_sub(x->solo.end.msn, x->solo.seq - r->seq)};
			}
			x->guessed += r->what.length;
		} else if (r->state != READ_GONE) {
			skipped |= x->guesses != 0;
			l->nreads += !psn_is(r->next, psn_add(r->wire, r->span));
		}
	}
	if (!x->guesses) {
		x->solo.left_early = 0;
		x->solo.broken = x->solo.beyond = false;
	}
	if (!skipped && !x->solo.beyond)
		x->solo.skipped = 0;
	else if (!x->solo.skipped)
		x->solo.skipped = e->now;
	done = l->epsn;
	mark_una(l, &done);
	mark_resend(l, &done);
	mark_frontier(l, &x->map.asked);
	l->near.acked = x->map.asked;
	mark_held(l, l->epsn.psn);
	mark_high(l, l->epsn.psn);
	while (mq_len(e->reads, &x->fetches) > KEPT) {
		const struct solo_read *r = mq_at(e->reads, x->fetches.head);

		if (r->state != READ_GONE &&
		    (r->state != READ_ASKED || x->solo.seq - r->seq < KEPT))
			break;
		mq_pop(e->reads, &x->fetches);
	}
	psn_map_trim(&x->map, psn_sub(l->epsn.psn, SEGMENTS_TRAIL));
}

void solo_pass(struct engine *e, enum engine_port from, const struct frame *f, uint32_t psn,
	       uint32_t msn)
{
	uint8_t out[FRAME_MAX];

	if (psn == f->psn && (!f->aeth || msn == frame_aeth_msn(f)))
		engine_pass(e, NULL, from, f);
	else
		engine_tx(e, NULL, other_port(from), out,
			  psn_map_frame(out, f, psn, f->aeth ? msn : PSN_NONE));
}

void solo_fail(struct engine *e, struct flow *fl, const struct frame *f)
{
	COUNT(e, SOLO_FAULTS);
	fault_solo(e, fl, f);
}

static struct solo_read *by_wire(struct engine *e, struct lane_reads *x, struct wire_psn psn)
{
	mq_each (struct solo_read, r, e->reads, &x->fetches)
		if (psn_in(psn, r->wire, psn_add(r->wire, r->span)))
			return r;
	return NULL;
}

/* ---- what the responder answers ---- */

static void resend(struct engine *e, struct flow *fl, struct wire_psn wire)
{
	struct lane_reads *x = reads_of(e, &fl->lane);

	mq_each (struct solo_read, r, e->reads, &x->fetches) {
		if (!psn_before(r->wire, wire)) { /* READ_GONE, too: the responder waits for it */
			fl->lane.count.retx++;
			COUNT(e, RETX_LAN);
			r->next = r->wire;
			solo_ask(e, fl, r);
		}
	}
}

static void rx_ack(struct engine *e, struct flow *fl, const struct frame *f, enum engine_port from)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	uint8_t s = frame_aeth_syndrome(f);
	uint32_t shift, msn, up = aeth_is_ack(s);
	struct host_psn psn;
	struct solo_read *r = by_wire(e, x, wire_psn_of(f));

	if (!aeth_is_ack(s) && r && (r->guessed || r->state == READ_GONE)) {
		if (s == AETH_NAK_SEQ) {
			resend(e, fl, r->wire); /* ours was lost on the LAN */
			return;
		}
		if (!aeth_is_rnr(s) && r->state != READ_ASKED) {
			solo_fail(e, fl, NULL);
			return;
		}
	}
	if (!psn_map_asked(&x->map, wire_psn_of(f), &psn, &shift))
		psn = x->map.asked.psn;
	msn = psn_sub(frame_aeth_msn(f), shift);
	/* of what the host has not asked for it must not hear */
	if (psn_after(psn_add(psn, up), x->map.asked.psn)) {
		psn = psn_sub(x->map.asked.psn, up);
		msn = psn_sub(msn, psn_sub(x->solo.end.msn, x->map.asked.msn));
	}
	solo_pass(e, from, f, psn.v, msn);
}

/** solo_response - a response to the host, from @from. */
void solo_response(struct engine *e, struct flow *fl, const struct frame *f, enum engine_port from)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	const struct rule *rule = solo_rule(e, fl);
	struct host_psn psn;
	uint32_t shift;
	struct solo_read *r;

	if (icrc_wrong(e, f))
		return;
	if (f->opcode == OP_ACK) {
		rx_ack(e, fl, f, from);
		return;
	}
	flow_headers(e, fl, f);
	r = by_wire(e, x, wire_psn_of(f));
	if (r && r->state == READ_EARLY) {
		if (r->epoch != *pair_epoch(e, &fl->key)) {
			x->info.flushed_signal++;
			solo_void(e, x);
		} else if (rule && rule->prefetch_max_age_ns &&
			   e->now - r->asked > rule->prefetch_max_age_ns) {
			x->info.flushed_age++;
			solo_void(e, x);
		} else if (!psn_is(wire_psn_of(f), r->next) ||
			   !reads_fit(OP_READ_REQUEST, psn_past(wire_psn_of(f), r->wire), r->span,
				      r->what.length, f, fl->path_mtu)) {
			solo_void(e, x); /* the host asks for the whole again, and judges */
		}
	}
	if ((r && (r->state == READ_VOID || r->state == READ_GONE || r->stale)) ||
	    !psn_map_asked(&x->map, wire_psn_of(f), &psn, &shift)) {
		COUNT(e, STRAY_RESPONSE);
		return;
	}
	if (r && r->state == READ_EARLY)
		x->solo.left_early = e->now;
	solo_pass(e, from, f, psn.v, f->aeth ? psn_sub(frame_aeth_msn(f), shift) : PSN_NONE);
	if (!r || !psn_is(wire_psn_of(f), r->next))
		return;
	r->next = psn_add(r->next, 1);
	if (!psn_is(r->next, psn_add(r->wire, r->span)))
		return;
	x->solo.left[r->seq % SOLO_RING] = e->now;
	ranges_note(e, fl, &r->what);
	solo_run(e, fl);
}
