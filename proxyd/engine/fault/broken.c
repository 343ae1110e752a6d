// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The second remedy. An idle requester ignores NAKs. But its host is a responder too, and a
 * responder that gets an impossible request puts the QP into the error state (spec: IBTA
 * 9.9.3, class C). So it gets one in the name of its peer: a SEND MIDDLE while no message is open.
 *
 * The impossible request must never be executed as data, whatever the host is in the middle of, and
 * must bear the PSN that the host expects: with another it has no effect. Therefore:
 *
 *	- Requests from the far host are no longer let through, so what the host expects stands
 *	  still, and a message that it has begun to receive cannot end.
 *	- The probe carries no payload. A MIDDLE must carry exactly the path MTU, so where a SEND is
 *	  open it is refused for its length; where a WRITE or nothing is open, for its opcode. A
 *	  host that checks neither ACKs, and executes no bytes; the next probe is a WRITE MIDDLE.
 *	- Where the PSN is not known from what has passed, or turns out wrong, it is learned: one
 *	  ahead draws a sequence NAK with the PSN expected, one behind an ACK with the newest one
 *	  executed. Four probes a quarter of the circle apart are both, wherever the host stands. A
 *	  host that has NAKed its gap, and whose ACKs to duplicates are old, is found by trying on.
 *
 * A fatal NAK may come from anybody; that its QP is in error a host shows by silence. So it is
 * asked on, three times round the circle from the latest place that is known: a QP that lives is
 * broken there, or answers another of these probes, and the search goes on. (Once round is not
 * enough: a port that loses one answer makes it look silent.)
 *
 * The wait between probes doubles while there is silence. Enough silence means that the QP has
 * failed or is gone. It certainly has if its host answers meanwhile (core/host.c).
 */
#include "engine/fault/fault_priv.h"
#include "engine/owner/owner.h"

#define PROBE_FIRST_NS	(20 * NSEC_PER_MSEC)
#define PROBE_SHIFT_MAX 5
/* After an answer that says where to try. */
#define PROBE_NEXT_NS	(100 * NSEC_PER_USEC)
/* About 4 s in silence. */
#define SILENT_MAX	12
/* After a fatal NAK: three times round the circle, a quarter of a second. */
#define CONFIRM_MAX	12
/* From this many on its host is asked for a sign; it must give two before so many (2.5 s). */
#define ASK_HOST_FROM	4
#define GONE_MAX	8
#define PROBES_MAX	64
#define QUARTER		(1u << 22)

/* The next place to ask: round the circle in quarters, one further each time, unless it refused. */
static struct far_psn next_place(struct lane *l)
{
	uint32_t step = l->fault.step;

	l->fault.step = (uint16_t)(l->fault.refused && (step & 3) == 3 ? step - 3 : step + 1);
	return psn_add(l->fault.epsn, (step & 3) ? (step & 3) * QUARTER : step / 4);
}

static void probe(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	const struct flow *back = flow_partner(e, fl);
	const struct far_psn place = next_place(l);
	struct build_spec s = {
		.opcode = l->fault.write ? OP_WRITE_MIDDLE : OP_SEND_MIDDLE,
		.psn = place.v,
		.ackreq = true,
	};
	uint8_t buf[FRAME_MAX];
	uint32_t most = l->fault.refused ? 0 : PROBE_SHIFT_MAX;
	uint64_t wait = PROBE_FIRST_NS << (l->fault.silent < most ? l->fault.silent : most);

	if (back && back->tmpl.len) {
		s.t = &back->tmpl;
		s.dqpn = back->key.dqpn;
		engine_tx(e, fl, fl->side, buf, build_packet(buf, &s));
		COUNT(e, FAULT_PROBES);
	}
	l->fault.probe = place;
	l->fault.tries++;
	l->fault.silent++;
	fault_arm(e, fl, wait);
}

/* Its responder is in error, and with it the QP. */
static void broke(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	COUNT(e, FAULT_BROKEN);
	l->fault.broken = true;
	l->fault.alive = l->fault.other = false; /* what comes from now on is not its own */
	over_begin(e, fl);
}

/* Its host answers, and it does not: it has failed before, or was destroyed. */
static void gone(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	COUNT(e, FAULT_SILENT);
	if (l->reason == REASON_DISCONNECT && !l->fault.gone)
		lane_lost(e, fl, l->fault.packets, l->fault.bytes, true);
	l->fault.gone = true;
	l->fault.alive = false;
	over_begin(e, fl);
}

/* Something was refused in the name of the host: if by the host, it is silent from now on. */
static void confirm(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	const struct flow *back = flow_partner(e, fl);

	if (l->fault.refused || l->fault.broken || !back || !back->tmpl.len)
		return; /* known, or it cannot be asked */
	l->fault.refused = l->fault.answered = true;
	l->fault.silent = 0;
	fault_lives(e, fl);
	if (l->fault.stage != STAGE_BREAK) {
		l->fault.stage = STAGE_BREAK;
		l->fault.tries = 0;
	}
	fault_arm(e, fl, PROBE_FIRST_NS);
}

/* The host expects @psn. */
static void try_at(struct engine *e, struct flow *fl, struct far_psn psn)
{
	struct lane *l = &fl->lane;

	l->fault.epsn = psn;
	l->fault.step = 0;
	fault_arm(e, fl, PROBE_NEXT_NS);
}

void fault_response(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	struct far_psn next = psn_add(far_psn_of(f), 1);
	bool others;
	uint8_t s;

	COUNT(e, FAULT_DROPPED);
	if (f->opcode != OP_ACK || !icrc_ok(f))
		return;
	/* it may be to what its peer has asked another queue pair */
	others = !psn_is(far_psn_of(f), l->fault.probe) && owner_asker(e, fl, f->psn);
	l->fault.other |= others;
	s = frame_aeth_syndrome(f);
	if (aeth_is_nak(s) && s != AETH_NAK_SEQ) {
		if (!others)
			confirm(e, fl);
		return;
	}
	if (l->fault.stage != STAGE_BREAK)
		return;
	/* what was on its way says nothing; a living one says it once, where it expects the next */
	if (l->fault.refused && !l->fault.silent) {
		if (s == AETH_NAK_SEQ) {
			l->fault.epsn = far_psn_of(f);
			l->fault.step = 0;
		}
		return;
	}
	if (!others) {
		l->fault.refused = false;
		l->fault.silent = 0;
		l->fault.answered = true;
		fault_lives(e, fl);
	}
	if (aeth_is_rnr(s) || s == AETH_NAK_SEQ) {
		try_at(e, fl, far_psn_of(f));
	} else if (aeth_is_ack(s) && !psn_is(next, l->fault.said)) {
		/* an ACK to a duplicate may be old: the same number again says nothing */
		l->fault.said = next;
		if (psn_is(far_psn_of(f), l->fault.probe))
			l->fault.write = !l->fault.write; /* it took it */
		try_at(e, fl, next);
	}
}

void break_begin(struct engine *e, struct flow *fl)
{
	fl->lane.fault.stage = STAGE_BREAK;
	probe(e, fl);
}

void break_again(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	l->fault.tries = l->fault.silent = l->present = 0;
	l->fault.alive = l->fault.answered = l->fault.other = false;
	l->fault.said = FAR_NONE;
	break_begin(e, fl);
}

void break_timer(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	if (l->fault.refused && l->fault.silent >= CONFIRM_MAX) {
		broke(e, fl);
	} else if (!l->fault.refused && l->fault.silent >= GONE_MAX && l->present == PRESENT_MAX) {
		gone(e, fl);
	} else if (l->fault.silent >= SILENT_MAX) {
		COUNT(e, FAULT_SILENT);
		fault_lost(e, fl);
		l->fault.alive = false;
		over_begin(e, fl);
	} else if (l->fault.tries >= PROBES_MAX) {
		COUNT(e, FAULT_UNBROKEN);
		l->fault.alive = true;
		over_begin(e, fl);
	} else {
		fault_untold(e, fl);
		probe(e, fl);
		if (!l->fault.refused && l->fault.silent > ASK_HOST_FROM)
			host_ask(e, fl);
	}
}
