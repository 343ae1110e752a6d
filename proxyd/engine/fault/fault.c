// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Custody is lost: an ACK told the application that data is safe, and it is not. The application
 * must see its QP fail, even if no request of it is outstanding and it will never send another.
 * Three remedies, in this order:
 *
 *	TELL	Every request that waits for an ACK, and every later one as long as the lane
 *		stands, gets a fatal NAK with the responder's own syndrome.
 *	BREAK	An idle requester ignores NAKs. But its host is a responder too, and a responder
 *		that gets an impossible request puts the QP into the error state (InfiniBand vol. 1,
 *		9.9.3, class C). So it gets one in the name of its peer: a SEND MIDDLE while no
 *		message is open.
 *	OVER	If the connection manager made the connection, the host gets a DREQ.
 *
 * The impossible request must never be executed as data, whatever the host is in the middle of, and
 * must bear the PSN that the host expects: with another PSN it is a duplicate or a gap and has no
 * effect. Therefore:
 *
 *	- Requests from the far host are no longer let through, so what the host expects stands
 *	  still, and a message that it has begun to receive cannot end.
 *	- The probe carries no payload. A MIDDLE must carry exactly the path MTU, so where a SEND is
 *	  open it is refused for its length; where a WRITE or nothing is open, for its opcode. A
 *	  host that checks neither executes no bytes and says so with an ACK; then the next probe is
 *	  a WRITE MIDDLE, which does not continue a SEND.
 *	- Where the PSN is not known from what has passed, or turns out wrong, it is learned: one
 *	  ahead draws a sequence NAK with the PSN expected, one behind an ACK with the newest one
 *	  executed. Four probes a quarter of the circle apart are both, wherever the host stands. A
 *	  host that has sent its one NAK for a gap already, and whose ACKs to duplicates are of an
 *	  older date, is found by trying the next few.
 *
 * Whatever the host replies ends here: the far host has asked nothing.
 *
 * A fatal NAK may come from anybody; that its QP is in error a host shows by silence. So it is
 * asked on, once in each quarter of the circle: one that lives answers one of these, and the search
 * goes on.
 *
 * The wait between probes doubles while there is silence. Enough silence means that the QP has
 * failed or is gone. A host that goes on answering without failing gets a round of probes now and
 * then for ever. The lane leaves FAULT when its QP has failed or answers no more, and nothing was
 * heard from it for FAULT_QUIET_NS.
 *
 * Its peer's number may have another partner meanwhile, of which nobody has told: requests come
 * under that number as before, for they name their destination only, and refusals and probes go to
 * a queue pair that is no more. But who asks can be asked: a queue pair that sends requests and
 * answers no probe in MUTE_MAX rounds is not the one that was told. Nor is it where the number gets
 * answers to what it has asked another queue pair, and none to a probe: there a round will do.
 * Then the lane ends. Where the numbers of the two ends differ what passed would mean another
 * request to the responder, so it ends only when more rounds were refused than any requester
 * repeats itself: whoever asks on is deaf to its refusals because they are not its own.
 *
 * A connection that a former engine held may be idle for hours: until its requester asks nobody
 * knows how to speak to it (*unheard*), and its silence says nothing. It stays in FAULT for as long
 * as that takes, for the first request would else pass in numbers that mean another one to the
 * responder. The far host, which may ask meanwhile, is not made to wait for that: its packets show
 * how to speak to its peer, which is broken; but silence still says nothing. A stop does not wait
 * for it: it stays fenced, and the next engine finds it again. One whose QP was seen to fail, and
 * of which nothing was heard for BROKEN_NS since, is fenced no more: it sends nothing that could be
 * mistaken, and the next engine would wait for ever to be asked by it.
 */
#include "engine/fault/fault.h"
#include "engine/learn/learn.h"
#include "wire/cm.h"

#define FAULT_QUIET_NS	(10 * NSEC_PER_SEC)
/* So long what was told may take effect before the QP is broken by force. */
#define TELL_NS		(500 * NSEC_PER_MSEC)
#define TELLS_MAX	3
/* Where an order is kept the host asks for nothing else meanwhile: as long as a timer takes that is
 * to tell it, and a little. */
#define UNTOLD_MS	1000u
/* A host that is not known gets so long to ask twice: what comes again is its oldest request, and
 * can be refused. */
#define ASK_TWICE_NS	(2 * NSEC_PER_SEC)
#define PROBE_FIRST_NS	(20 * NSEC_PER_MSEC)
#define PROBE_SHIFT_MAX 5
/* After an answer that says where to try. */
#define PROBE_NEXT_NS	(100 * NSEC_PER_USEC)
/* About 4 s in silence. */
#define SILENT_MAX	12
/* After a fatal NAK: a third of a second. */
#define CONFIRM_MAX	4
#define PROBES_MAX	64
#define QUARTER		(1u << 22)
#define MUTE_MAX	2
/* A requester repeats itself seven times at most (InfiniBand vol. 1, 9.7.5.2.5) when it hears
 * nothing, and each round takes ten seconds and more. */
#define MUTE_RENUMBERS	16
#define DREQS_MAX	2
/* Packets that were on their way when the QP failed have arrived. What comes later is another
 * incarnation. */
#define BROKEN_NS	(1 * NSEC_PER_SEC)

enum fault_stage {
	STAGE_TELL,
	STAGE_BREAK,
	STAGE_OVER,
};

static void arm(struct engine *e, struct flow *fl, uint64_t after)
{
	wheel_arm(e->wheel, TIMER_ID(flow_index(e, fl), TIMER_AUX), e->now + after);
}

/* The host of the lane is about to be told. */
static void untold(struct engine *e, const struct flow *fl)
{
	if (fl->rule >= 0 && e->rules[fl->rule].order)
		pair_untold(e, &fl->key, UNTOLD_MS);
}

/* What the far host's requests have reached, as far as it is known here. */
static uint32_t expected_psn(struct engine *e, const struct flow *fl)
{
	const struct lane *in = fl->partner == FLOW_NONE ? NULL : &e->flows[fl->partner].lane;

	if (!in)
		return 0;
	if (in->role == ROLE_ACCEPTOR)
		return in->high;
	if (in->epsn.psn != PSN_NONE)
		return in->epsn.psn;
	return in->una.psn != PSN_NONE ? in->una.psn : 0;
}

void lane_fault(struct engine *e, struct flow *fl, enum lane_reason why, uint8_t syndrome)
{
	struct lane *l = &fl->lane;
	struct flow *back = flow_partner(e, fl);
	uint32_t packets = l->packets;
	uint64_t bytes = l->bytes;
	bool renumbers;
	struct mark una;

	if (l->state == LANE_FAULT || !lane_keeps(l))
		return;
	una = psn_to_host(e, l, &l->una);
	renumbers = psn_map_differs(e, l);
	/* where the numbers differ the two ends cannot go on without us */
	if (l->gone || ((!l->start_acked || !psn_before(una.psn, l->frontier.psn)) && !renumbers)) {
		/* nobody is left to be told; or nothing was promised that is not true already, and
		 * the hosts find out by themselves */
		lane_close(e, fl, why, true);
		return;
	}
	l->reason = (uint8_t)why;
	l->refusal = syndrome;
	lane_send_close(e, fl);
	lane_set_state(l, LANE_FAULT);
	e->in_fault++;
	COUNT(e, FAULTS);
	e->counters[EC_LOST_PACKETS] += packets;
	e->counters[EC_LOST_BYTES] += bytes;
	lane_drop_all(e, fl);
	marks_drop(l);
	wheel_cancel(e->wheel, TIMER_ID(flow_index(e, fl), TIMER_LOSS));
	engine_event(e, EVENT_FAULT, fl, packets, bytes);
	untold(e, fl);

	memset(&l->fault, 0, sizeof(l->fault));
	l->fault.epsn = expected_psn(e, fl);
	l->fault.said = l->fault.begins = PSN_NONE;
	l->fault.renumbers = renumbers || l->numbered;
	/* the far host's requests find no responder any more: their custody is lost as well */
	if (back && back->lane.role == ROLE_ACCEPTOR)
		lane_refused(e, back, back->lane.una.psn, AETH_NAK_OPERATION, REASON_FAULT);
	if (psn_before(l->told, l->epsn.psn)) {
		l->fault.stage = STAGE_TELL;
		ack_schedule(e, fl); /* something waits for an answer: answer it with the fault */
		arm(e, fl, TELL_NS);
	} else {
		l->fault.stage = STAGE_BREAK;
		arm(e, fl, 0);
	}
}

/*
 * A former engine gave the packets of this lane numbers of its own, and is gone: neither end
 * understands the other any more. What its host expects and waits for is not known; it tells by
 * asking.
 */
static void strand(struct engine *e, struct flow *fl, enum lane_reason why)
{
	struct lane *l = &fl->lane;

	l->role = ROLE_OPENER;
	l->reason = (uint8_t)why;
	l->refusal = AETH_NAK_OPERATION;
	l->numbered = l->fenced = true;
	lane_set_state(l, LANE_FAULT);
	e->in_fault++;
	COUNT(e, FAULTS);
	engine_event(e, EVENT_FAULT, fl, 0, 0);
	memset(&l->fault, 0, sizeof(l->fault));
	l->fault.said = PSN_NONE;
	l->fault.strange = l->fault.renumbers = true;
	l->told = l->jump_psn = l->fault.begins = PSN_NONE;
	mark_epsn_psn(l, PSN_NONE);
	l->progress = fl->seen = e->now;
	l->fault.stage = STAGE_TELL;
	arm(e, fl, ASK_TWICE_NS);
}

void fault_orphan(struct engine *e, struct flow *fl)
{
	const struct flow *back = flow_partner(e, fl);

	strand(e, fl, REASON_ORPHAN);
	fl->lane.fault.unheard = !back || !back->tmpl.len;
}

/** fault_far_request - the far host asks @f of a queue pair whose own lane, of @fl, is in FAULT.
 * Nothing reaches that host any more, so it must not wait for that lane to be used. */
void fault_far_request(struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;

	if (!l->fault.unheard || l->fault.broken || !icrc_ok(f))
		return;
	if (l->fault.stage == STAGE_TELL)
		l->fault.epsn = f->psn;
	else if (l->fault.stage == STAGE_OVER)
		l->fault.alive = true;
}

bool fault_unheard(const struct lane *l)
{
	return l->state == LANE_FAULT && l->fault.unheard;
}

void fault_broken_promise(struct engine *e, struct flow *fl, uint32_t psn)
{
	lane_fault(e, fl, REASON_PEER_RESTARTED, AETH_NAK_OPERATION);
	if (fl->lane.state == LANE_FAULT)
		return;
	if (fl->lane.role != ROLE_NONE)
		lane_close(e, fl, REASON_PEER_RESTARTED, true);
	strand(e, fl, REASON_PEER_RESTARTED);
	fl->lane.numbered = fl->lane.fenced = false;
	/* which side it is on is known, and what it expects */
	fl->lane.fault.strange = fl->lane.fault.renumbers = false;
	fl->lane.fault.epsn = psn;
	fl->lane.fault.stage = STAGE_BREAK;
	arm(e, fl, 0);
}

/** fault_moved - a packet of @fl has come to port @port. Of a connection that a former engine held
 * that may be news. */
void fault_moved(struct engine *e, struct flow *fl, enum engine_port port)
{
	struct flow *other = flow_partner(e, fl);

	if (!other || !((fl->lane.state == LANE_FAULT && fl->lane.fault.strange) ||
			(other->lane.state == LANE_FAULT && other->lane.fault.strange)))
		return;
	fl->side = (uint8_t)port;
	other->side = (uint8_t)other_port(port);
	flow_match_rule(e, fl);
	flow_match_rule(e, other);
}

/* Headers toward the near host, whose peer is not heard any more: its own, the other way round. */
static void mirror_headers(struct flow *back, const struct frame *f)
{
	if (!back->tmpl.len) {
		template_learn(&back->tmpl, f);
		template_mirror(&back->tmpl);
	}
}

/* The lane ends: no application is left that could be told. */
static void let_go(struct engine *e, struct flow *fl, enum lane_reason why)
{
	struct flow *back = flow_partner(e, fl);

	lane_close(e, fl, why, false);
	/* its opener may be gone, or it does not know yet */
	if (back && back->lane.role == ROLE_ACCEPTOR && back->lane.refusal)
		lane_close(e, back, REASON_FAULT, true);
}

/* The numbers have other owners. */
static void let_others(struct engine *e, struct flow *fl)
{
	engine_event(e, EVENT_INCARNATION, fl, 0, 0);
	let_go(e, fl, REASON_INCARNATION);
	flow_unpair(e, fl);
}

/* ---- the first remedy ---- */

/*
 * Whether a round of resending begins with the oldest request, @psn: after a silence, and nothing
 * older came in the two rounds before it. A NAK acknowledges what is before it: what a port
 * doubles, brings late or in another order, and a round whose first request was lost, must not move
 * it on, for the number may have a new owner, of whose requests nothing was executed.
 */
static bool oldest_again(const struct engine *e, struct lane *l, uint32_t psn)
{
	uint16_t now = (uint16_t)(e->now / NSEC_PER_MSEC);
	bool begins = (uint16_t)(now - l->jump_ms) >= ROUND_MS,
	     again = begins && psn == l->jump_psn && psn == l->fault.begins;

	l->jump_ms = now;
	if (begins)
		l->fault.begins = l->jump_psn;
	if (begins || psn_before(psn, l->jump_psn))
		l->jump_psn = psn;
	return again;
}

/* Whether @psn is where its host stood, and what came there would mean another request to the far
 * host: one that was only silent, while somebody refused a probe in its name, goes on there. */
static bool asked_there(const struct lane *l, uint32_t psn)
{
	int32_t ahead = psn_diff(psn, l->told);

	return l->fault.renumbers && ahead > -HOST_WINDOW && ahead < HOST_WINDOW;
}

/* A request to a lane whose custody is lost. The NAK must bear a PSN that the requester waits for:
 * the oldest that it does not know to be acknowledged. */
void fault_request(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	bool first = l->fault.strange, again;

	if (!icrc_ok(f))
		return;
	if (first) {
		l->fault.strange = l->fault.unheard = false;
		l->fault.unsure = l->reason == REASON_ORPHAN || l->reason == REASON_SOLO;
		l->told = l->jump_psn = l->fault.begins = f->psn;
		mark_epsn_psn(l, f->psn);
		mirror_headers(flow_partner(e, fl), f);
	}
	if (l->fault.broken && e->now - l->progress > BROKEN_NS) {
		if (first || !asked_there(l, f->psn)) {
			/* a QP in error sends nothing: this is another one of the same number */
			let_others(e, fl);
			learn_request(e, fl, f);
			engine_pass(e, fl->side, f);
			return;
		}
		l->fault.broken = false;
	}
	again = oldest_again(e, l, f->psn);
	if (again) {
		l->told = f->psn;
		l->fault.unsure &= first;
	}
	l->fault.below = !again && (l->fault.below || psn_before(f->psn, l->told));
	l->fault.alive = true;
	/* a NAK acknowledges what is before it, and that may have been lost with a former engine,
	 * or be another owner's */
	if (!l->fault.unsure && !l->fault.below)
		ack_schedule(e, fl);
}

/*
 * The host may have got, or may get, an answer to another request than it asked. @f: what it asks
 * now, when all before was seen, or NULL: it will tell by asking.
 */
void fault_solo(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;

	lane_drop_all(e, fl);
	marks_drop(l);
	wheel_cancel(e->wheel, TIMER_ID(flow_index(e, fl), TIMER_LOSS));
	strand(e, fl, REASON_SOLO);
	l->fault.epsn = expected_psn(e, fl);
	if (!f)
		return;
	fault_request(e, fl, f);
	l->fault.unsure = false;
	ack_schedule(e, fl);
}

void fault_answer(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	const struct flow *back = flow_partner(e, fl);
	uint8_t buf[BUILD_MAX];

	if (l->ack_due && back && back->tmpl.len) {
		uint32_t len = build_ack(buf, &back->tmpl, back->key.dqpn, l->told, l->refusal,
					 l->acked.msn);

		if (engine_tx(e, fl->side, buf, len)) {
			ack_again_later(e, fl);
			return;
		}
		COUNT(e, FATAL_NAKS);
	}
	l->ack_due = false;
}

/* ---- the second ---- */

static void probe(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	const struct flow *back = flow_partner(e, fl);
	/* round the circle in quarters, and one further each time */
	uint32_t ahead =
		(l->fault.step & 3) * QUARTER + ((l->fault.step & 3) ? 0 : l->fault.step / 4);
	struct build_spec s = {
		.opcode = l->fault.write ? OP_WRITE_MIDDLE : OP_SEND_MIDDLE,
		.psn = psn_add(l->fault.epsn, ahead),
		.ackreq = true,
	};
	uint8_t buf[FRAME_MAX];
	uint64_t wait = PROBE_FIRST_NS
			<< (l->fault.silent < PROBE_SHIFT_MAX ? l->fault.silent : PROBE_SHIFT_MAX);

	if (back && back->tmpl.len) {
		s.t = &back->tmpl;
		s.dqpn = back->key.dqpn;
		engine_tx(e, fl->side, buf, build_packet(buf, &s));
		COUNT(e, FAULT_PROBES);
	}
	l->fault.probe = s.psn;
	l->fault.step++;
	l->fault.tries++;
	l->fault.silent++;
	arm(e, fl, wait);
}

static void over(struct engine *e, struct flow *fl)
{
	const struct flow *back = flow_partner(e, fl);

	if (fl->lane.fault.answered)
		fl->lane.fault.mute = 0;
	else if (fl->lane.fault.mute < MUTE_RENUMBERS && back && back->tmpl.len) /* it was asked */
		fl->lane.fault.mute++;
	fl->lane.fault.stage = STAGE_OVER;
	fl->lane.fault.refused = false;
	fl->lane.fault.dreqs = 0;
	fl->lane.progress = e->now;
	arm(e, fl, 0);
}

/* Nothing that the far host asks under other numbers can be done here any more. */
static void unstrand(struct engine *e, struct flow *fl)
{
	struct flow *back = flow_partner(e, fl);

	if (back) {
		flow_change(e, back);
		back->stranded = false;
	}
}

/* Its responder is in error, and with it the QP. */
static void broke(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	COUNT(e, FAULT_BROKEN);
	l->fault.broken = true;
	l->fault.alive = false;
	unstrand(e, fl);
	over(e, fl);
}

/* Something was refused in the name of the host: whatever it was, if it was the host it is silent
 * from now on. */
static void confirm(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	const struct flow *back = flow_partner(e, fl);

	if (l->fault.refused || l->fault.broken || !back || !back->tmpl.len)
		return; /* known, or it cannot be asked */
	l->fault.refused = l->fault.answered = true;
	l->fault.silent = 0;
	if (l->fault.stage != STAGE_BREAK) {
		l->fault.stage = STAGE_BREAK;
		l->fault.tries = 0;
	}
	arm(e, fl, PROBE_FIRST_NS);
}

/* The host expects @psn. */
static void try_at(struct engine *e, struct flow *fl, uint32_t psn)
{
	struct lane *l = &fl->lane;

	l->fault.epsn = psn;
	l->fault.step = 0;
	arm(e, fl, PROBE_NEXT_NS);
}

void fault_response(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	uint32_t next = psn_add(f->psn, 1);
	bool others;
	uint8_t s;

	COUNT(e, FAULT_DROPPED);
	if (f->opcode != OP_ACK || !icrc_ok(f))
		return;
	/* it may be to what its peer has asked another queue pair */
	others = f->psn != l->fault.probe && learn_asker(e, fl, f->psn);
	l->fault.other |= others;
	s = frame_aeth_syndrome(f);
	if (aeth_is_nak(s) && s != AETH_NAK_SEQ) {
		if (!others)
			confirm(e, fl);
		return;
	}
	/* what was on its way when it failed says nothing */
	if (l->fault.stage != STAGE_BREAK || (l->fault.refused && !l->fault.silent))
		return;
	if (!others) {
		l->fault.refused = false;
		l->fault.silent = 0;
		l->fault.answered = true;
	}
	if (aeth_is_rnr(s) || s == AETH_NAK_SEQ) {
		try_at(e, fl, f->psn);
	} else if (aeth_is_ack(s) && next != l->fault.said) {
		/* an ACK to a duplicate may be of an older date: one that says the same again says
		 * nothing */
		l->fault.said = next;
		if (f->psn == l->fault.probe)
			l->fault.write = !l->fault.write; /* it took it */
		try_at(e, fl, next);
	}
}

/* ---- the third ---- */

static void disconnect(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	const struct flow *back = flow_partner(e, fl);
	uint8_t buf[FRAME_MAX];

	if (!back || !back->tmpl.len || !back->comm_id || !fl->comm_id)
		return;
	/* the transaction is ours; what the host answers, its peer has not asked for and ignores */
	engine_tx(e, fl->side, buf,
		  cm_build_dreq(buf, &back->tmpl, l->fault.dreqs,
				(uint64_t)l->gen << 32 | back->comm_id, back->comm_id, fl->comm_id,
				back->key.dqpn));
	COUNT(e, FAULT_DREQS);
}

/* Whether who asks under the number of the far queue pair, or is answered by it, is another than
 * who was told. */
static bool others_now(const struct lane *l)
{
	if (l->fault.unheard || !l->fault.mute)
		return false;
	if (l->fault.renumbers)
		return l->fault.alive && l->fault.mute >= MUTE_RENUMBERS;
	return l->fault.other || (l->fault.alive && l->fault.mute >= MUTE_MAX);
}

/* Whether nobody knows how to speak to the host: neither it nor its peer was heard. */
static bool dumb(struct engine *e, const struct flow *fl)
{
	const struct flow *back = flow_partner(e, fl);

	return fl->lane.fault.unheard && !(back && back->tmpl.len);
}

static bool silent_since_broken(const struct lane *l)
{
	return l->fault.broken && !l->fault.alive;
}

/* Whether the host of a lane in FAULT may not have seen it yet. */
bool fault_pending(const struct lane *l)
{
	return l->state == LANE_FAULT && !l->fault.unheard &&
	       (l->fault.stage != STAGE_OVER || l->fault.dreqs < DREQS_MAX ||
		(l->fenced && silent_since_broken(l)));
}

/* It was told all, or is silent. */
static void told_timer(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	if (l->fault.dreqs < DREQS_MAX) {
		disconnect(e, fl);
		l->fault.dreqs++;
		arm(e, fl, TELL_NS);
		return;
	}
	if (silent_since_broken(l) && e->now - l->progress >= BROKEN_NS)
		lane_unfence(e, fl);
	if (others_now(l)) {
		let_others(e, fl);
	} else if (l->fault.alive && !l->fault.broken && e->now - l->progress >= FAULT_QUIET_NS) {
		/* it lives on: another round */
		l->fault.alive = false;
		l->fault.stage = STAGE_BREAK;
		l->fault.tries = l->fault.silent = 0;
		l->fault.answered = false;
		l->fault.said = PSN_NONE;
		probe(e, fl);
	} else if ((!l->fault.unheard || l->fault.broken) && e->now - fl->seen >= FAULT_QUIET_NS &&
		   e->now - l->progress >= FAULT_QUIET_NS) {
		let_go(e, fl, l->reason);
	} else {
		arm(e, fl, FAULT_QUIET_NS / 10);
	}
}

void fault_timer(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	switch (l->fault.stage) {
	case STAGE_TELL:
		if (dumb(e, fl)) {
			arm(e, fl, ASK_TWICE_NS);
			return;
		}
		untold(e, fl);
		/* still asking: the NAK may have been lost, and this one too */
		if (l->fault.alive && ++l->fault.tells < TELLS_MAX) {
			l->fault.alive = false;
			arm(e, fl, TELL_NS);
			return;
		}
		l->fault.stage = STAGE_BREAK;
		probe(e, fl);
		return;
	case STAGE_BREAK:
		if (l->fault.refused && l->fault.silent >= CONFIRM_MAX) {
			broke(e, fl);
		} else if (l->fault.silent >= SILENT_MAX) {
			COUNT(e, FAULT_SILENT);
			l->fault.alive = false;
			over(e, fl);
		} else if (l->fault.tries >= PROBES_MAX) {
			COUNT(e, FAULT_UNBROKEN);
			l->fault.alive = true;
			over(e, fl);
		} else {
			untold(e, fl);
			probe(e, fl);
		}
		return;
	default:
		told_timer(e, fl);
	}
}
