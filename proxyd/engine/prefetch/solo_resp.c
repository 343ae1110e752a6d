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
	struct mark done;
	struct lane_reads *x = reads_of(e, l);
	bool skipped = false;

	x->map.asked = x->un.end;
	x->guesses = 0;
	x->guessed = 0;
	l->nreads = 0;
	for (uint32_t id = x->fetches.head; id != MQ_NONE; id = mq_next(e->reads, id)) {
		const struct solo_read *r = solo_at(e, id);

		if (solo_unmet(r)) {
			if (!x->guesses++) {
				x->map.asked = (struct mark){
					.psn = r->host,
					.msn = psn_sub(x->un.end.msn, x->un.seq - r->seq)};
			}
			x->guessed += r->what.length;
		} else if (r->state != READ_GONE) {
			skipped |= x->guesses != 0;
			l->nreads += r->next != psn_add(r->wire, r->span);
		}
	}
	if (!x->guesses) {
		x->un.left_early = 0;
		x->un.broken = x->un.beyond = false;
	}
	if (!skipped && !x->un.beyond)
		x->un.skipped = 0;
	else if (!x->un.skipped)
		x->un.skipped = e->now;
	done = l->epsn;
	mark_una(l, &done);
	mark_resend(l, &done);
	mark_frontier(l, &x->map.asked);
	l->acked = x->map.asked;
	mark_held(l, l->epsn.psn);
	mark_high(l, l->epsn.psn);
	while (mq_len(e->reads, &x->fetches) > KEPT) {
		const struct solo_read *r = solo_at(e, x->fetches.head);

		if (r->state != READ_GONE && (r->state != READ_ASKED || x->un.seq - r->seq < KEPT))
			break;
		mq_pop(e->reads, &x->fetches);
	}
	psn_map_trim(&x->map, psn_sub(l->epsn.psn, SEGMENTS_TRAIL));
}

bool solo_differ(const struct lane_reads *x, const struct lane *l)
{
	return x->map.nsegments || x->map.trimmed || x->map.asked.psn != l->epsn.psn;
}

/* What was meant for a host or from it under wire PSN @wire: false when no host knows that. */
bool solo_to_host(const struct lane_reads *x, uint32_t wire, uint32_t *psn, uint32_t *msn_shift)
{
	uint32_t i = x->map.nsegments;

	while (i > 0 && psn_after(x->map.segment[i - 1].wire, wire))
		i--;
	*psn = wire;
	*msn_shift = 0;
	if (i) {
		const struct segment *s = &x->map.segment[i - 1];

		*psn = psn_sub(wire, psn_sub(s->wire, s->host));
		*msn_shift = psn_sub(s->wire_msn, s->host_msn);
	} else if (x->map.trimmed) {
		return false;
	}
	/* between two segments lies what the host never asked for */
	return i == x->map.nsegments || psn_before(*psn, x->map.segment[i].host);
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

struct solo_read *solo_by_wire(struct engine *e, struct lane_reads *x, uint32_t psn)
{
	for (uint32_t id = x->fetches.head; id != MQ_NONE; id = mq_next(e->reads, id)) {
		struct solo_read *r = solo_at(e, id);

		if (psn_in(psn, r->wire, psn_add(r->wire, r->span)))
			return r;
	}
	return NULL;
}

/* ---- what the responder answers ---- */

static void resend(struct engine *e, struct flow *fl, uint32_t wire)
{
	struct lane_reads *x = reads_of(e, &fl->lane);

	for (uint32_t id = x->fetches.head; id != MQ_NONE; id = mq_next(e->reads, id)) {
		struct solo_read *r = solo_at(e, id);

		if (!psn_before(r->wire, wire) && r->state != READ_GONE) {
			fl->lane.retx++;
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
	uint32_t psn, shift, msn, up = aeth_is_ack(s);
	struct solo_read *r = solo_by_wire(e, x, f->psn);

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
	if (!solo_to_host(x, f->psn, &psn, &shift))
		psn = x->map.nsegments ? x->map.asked.psn : f->psn;
	msn = psn_sub(frame_aeth_msn(f), shift);
	/* of what the host has not asked for it must not hear */
	if (psn_after(psn_add(psn, up), x->map.asked.psn)) {
		psn = psn_sub(x->map.asked.psn, up);
		msn = psn_sub(msn, psn_sub(x->un.end.msn, x->map.asked.msn));
	}
	solo_pass(e, from, f, psn, msn);
}

/** solo_response - a response to the host, from @from. */
void solo_response(struct engine *e, struct flow *fl, const struct frame *f, enum engine_port from)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	const struct rule *rule = solo_rule(e, fl);
	uint32_t psn, shift;
	struct solo_read *r;

	if (!icrc_ok(f)) {
		COUNT(e, BAD_ICRC);
		return;
	}
	if (f->opcode == OP_ACK) {
		rx_ack(e, fl, f, from);
		return;
	}
	flow_headers(e, fl, f);
	r = solo_by_wire(e, x, f->psn);
	if (r && r->state == READ_EARLY) {
		if (r->epoch != *pair_epoch(e, &fl->key)) {
			x->info.flushed_signal++;
			solo_void(e, x);
		} else if (rule && rule->prefetch_max_age_ns &&
			   e->now - r->asked > rule->prefetch_max_age_ns) {
			x->info.flushed_age++;
			solo_void(e, x);
		} else if (f->psn != r->next ||
			   !reads_fit(OP_READ_REQUEST, psn_sub(f->psn, r->wire), r->span,
				      r->what.length, f, fl->path_mtu)) {
			solo_void(e, x); /* the host asks for the whole again, and judges */
		}
	}
	if ((r && (r->state == READ_VOID || r->state == READ_GONE || r->stale)) ||
	    !solo_to_host(x, f->psn, &psn, &shift)) {
		COUNT(e, STRAY_RESPONSE);
		return;
	}
	if (r && r->state == READ_EARLY)
		x->un.left_early = e->now;
	solo_pass(e, from, f, psn, f->aeth ? psn_sub(frame_aeth_msn(f), shift) : PSN_NONE);
	if (!r || f->psn != r->next)
		return;
	r->next = psn_add(r->next, 1);
	if (r->next != psn_add(r->wire, r->span))
		return;
	x->un.left[r->seq % SOLO_RING] = e->now;
	ranges_note(e, fl, &r->what);
	solo_run(e, fl);
}
