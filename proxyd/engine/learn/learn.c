// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Learning: which two flows are one connection, and what its responder's MSN is.
 *
 * A request names only its destination QP. Three sources tell the other half:
 *
 * Connection manager datagrams name both QPNs in plain words: see cm.c.
 *
 * PSN matching (row: NTT-3), and immediate data (row: NTT-4), where the rule says that applications
 * put the number of their own QP there: see match.c.
 *
 * Calibration: a pseudo-ACK needs the exact MSN. While a paired lane is watched, ends of messages
 * are counted, and up to LANE_PROBES packets remembered with the count there until a genuine ACK
 * with that very PSN tells the responder's MSN there. The answer to a READ or ATOMIC tells it too
 * where no later request has passed; else it may count some of those, and only the least of what
 * several say is believed. So it is with every answer to what the host may have sent before (to a
 * lane that is gone, say): what answers a repeat bears its PSN and the MSN of today. A gap in the
 * requests starts calibration again. A queue pair that the CM has just made starts at MSN 0 and
 * needs none of that (cm.c). The ACK that makes a pair calibrates it as well, if the packet that it
 * answers was counted since the latest gap; and so does the peer, which is near the responder: its
 * offer says what the MSN was at the PSN from which on requests have come in order. Where that is
 * so from the same PSN on here, it is now as many more as they have ended messages since.
 *
 * row: CONV-2
 */
#include "engine/learn/learn_priv.h"

/* Answers to READs that must tell the same of the MSN. */
#define OFFSETS_AGREE  4u
/* Templates follow the sender; requests of a busy flow need not renew them each time. */
#define TEMPLATE_EVERY 64

/*
 * Anybody can send a frame with a right ICRC, but who does not see a connection does not know where
 * it is. Whether @psn is where the request of @l is that comes next, or the oldest without an ACK.
 */
static bool request_in_place(const struct lane *l, struct wire_psn psn)
{
	struct wire_psn una = l->una.psn;

	if (l->role != ROLE_NONE)
		return psn_is(psn, l->epsn.psn);
	if (psn_known(una) && !psn_in(psn, una, psn_add(una, HOST_WINDOW)))
		return false;
	return psn_is(psn, una) || (psn_known(l->epsn.psn) && psn_is(psn, l->watch.went_on));
}

/* Whether @psn is of what the requester of the watched @l waits for, or may. */
static bool awaited(const struct lane *l, struct wire_psn psn)
{
	struct wire_psn from = l->una.psn, next = l->epsn.psn;

	if (psn_known(from) && !psn_in(psn, from, psn_add(from, HOST_WINDOW)))
		return false;
	if (psn_known(l->watch.asked) && psn_in(psn, l->watch.asked, l->watch.asked_end))
		return true;
	if (!psn_known(from))
		from = psn_sub(next, HOST_WINDOW);
	return psn_known(next) && !psn_before(psn, from) && psn_before(psn, next);
}

static bool in_place(struct engine *e, const struct flow *fl, const struct frame *f)
{
	const struct flow *req = flow_partner(e, fl);

	if (!(f->op->flags & OPF_RESPONSE))
		return request_in_place(&fl->lane, wire_psn_of(f));
	/* no pair has asked for it: has an unpaired flow, lately? */
	if (!req)
		return owner_asker(e, fl, f->psn);
	return req->lane.role == ROLE_NONE && awaited(&req->lane, wire_psn_of(f));
}

/* Whether a true ACK says what place that is: two frames in a row go on from each other as well. */
static bool place_acked(struct engine *e, const struct flow *fl, const struct frame *f)
{
	const struct flow *req = f->op->flags & OPF_RESPONSE ? flow_partner(e, fl) : fl;

	return req && psn_known(req->lane.una.psn);
}

/* Whether what is made for a lane is to bear the headers of @f. */
static bool shows_headers(struct engine *e, const struct flow *fl, const struct frame *f)
{
	/* nothing is made before there is a pair, and what makes the pair comes last */
	if (fl->partner == FLOW_NONE)
		return true;
	/* of an orphan's requests nobody keeps count, and what breaks it needs the headers */
	if (f->op->flags & OPF_REQUEST && !fl->tmpl.len && !psn_known(fl->lane.una.psn) &&
	    !psn_known(fl->lane.epsn.psn))
		return true;
	return in_place(e, fl, f) &&
	       (f->op->flags & OPF_RESPONSE || !fl->tmpl.len || place_acked(e, fl, f));
}

/* The path MTU shows in any packet that must be full. */
static void learn_mtu(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct flow *other;

	if (!(f->op->flags & (OPF_FIRST | OPF_MIDDLE)) || !f->payload_len ||
	    fl->path_mtu == f->payload_len)
		return;
	if (f->payload_len < 256 || f->payload_len > 4096 ||
	    (f->payload_len & (f->payload_len - 1)))
		return;
	other = flow_partner(e, fl);
	/* a held lane has promised by the MTU that it knew */
	if (fl->path_mtu && conn_held(e, fl))
		return;
	/* nor is another believed that the rule has told, or the connection manager, or a packet */
	if (!in_place(e, fl, f) || (fl->path_mtu && !place_acked(e, fl, f)))
		return;
	fl->path_mtu = (uint16_t)f->payload_len;
	if (other)
		other->path_mtu = fl->path_mtu;
}

/* Whether what is made for a held lane is made of the headers of @fl: those who know what a packet
 * must say judge it first, then they tell (flow_headers(), learn_held()). */
static bool judged_later(struct engine *e, const struct flow *fl)
{
	return fl->tmpl.len && conn_held(e, fl);
}

void learn_frame(struct engine *e, struct flow *fl, struct frame *f)
{
	bool due = (f->op->flags & OPF_RESPONSE) || !fl->tmpl.len;

	fl->seen = e->now;
	if (judged_later(e, fl)) {
		if (f->op->flags & OPF_RESPONSE)
			return;
		fl->tmpl_age += fl->tmpl_age < TEMPLATE_EVERY;
		if (!fl->path_mtu && icrc_ok(f))
			learn_mtu(e, fl, f);
		return;
	}
	if (!due) {
		fl->tmpl_age += fl->tmpl_age < TEMPLATE_EVERY;
		due = learn_due(fl);
	}
	if ((!due && fl->path_mtu) || !icrc_ok(f))
		return;
	f->icrc_right = true;
	if (due && shows_headers(e, fl, f)) {
		template_learn(&fl->tmpl, f);
		fl->tmpl_age = 0;
	}
	learn_mtu(e, fl, f);
}

bool learn_due(const struct flow *fl)
{
	return !fl->tmpl.len || fl->tmpl_age >= TEMPLATE_EVERY;
}

void learn_held(struct flow *fl, const struct frame *f)
{
	if (!learn_due(fl))
		return;
	template_learn(&fl->tmpl, f);
	fl->tmpl_age = 0;
}

static void probe_set(struct lane *l, struct wire_psn psn, uint32_t count)
{
	int slot = 0;

	for (int i = 0; i < LANE_PROBES; i++) {
		if (!psn_known(l->learn.probe[i].psn)) {
			slot = i;
			break;
		}
		/* replace the second newest: old ones may be answered soon */
		if (psn_after(l->learn.probe[i].psn, l->learn.probe[slot].psn))
			slot = i;
	}
	l->learn.probe[slot].psn = psn;
	l->learn.probe[slot].count = count;
}

/* Answered by a packet that bears its PSN and says what an ACK says. */
static bool answered_alike(const struct frame *f)
{
	return f->opcode == OP_READ_REQUEST || (f->op->flags & OPF_ATOMIC);
}

/* A READ or ATOMIC passes, and is to be answered. */
static void note_asked(struct lane *l, const struct flow *fl, const struct frame *f)
{
	struct wire_psn end = psn_add(wire_psn_of(f), frame_span(f, flow_mtu(fl)));

	if (!psn_known(l->watch.asked) ||
	    (psn_known(l->una.psn) && psn_before(l->watch.asked, l->una.psn)) ||
	    psn_before(wire_psn_of(f), l->watch.asked)) {
		l->watch.asked = wire_psn_of(f);
		l->watch.asked_end = end;
	} else if (psn_after(end, l->watch.asked_end)) {
		l->watch.asked_end = end;
	}
}

/* Note what will tell whose answer comes. */
static void note_request(struct engine *e, struct flow *fl, const struct frame *f)
{
	uint8_t learn = e->rules[fl->rule].learn;

	if (((f->op->flags & OPF_EOM) || f->ackreq || answered_alike(f)) &&
	    (!(f->op->flags & OPF_ANSWERED) || answered_alike(f)) && match_unanswered(e, fl) &&
	    learn & LEARN_MATCH)
		match_note(e, fl, f->psn, PSN_NONE);
	if (f->immdt && (learn & LEARN_IMMEDIATE))
		match_immediate(e, fl, f);
}

/* The request @f passes the watched @l. */
static void go_on(struct lane *l, const struct flow *fl, const struct frame *f)
{
	struct lane_watch *w = &l->watch;

	if (!psn_is(w->went_on, wire_psn_of(f))) {
		w->since = wire_psn_of(f);
		w->messages = 0;
	}
	w->messages += f->op->flags & (OPF_EOM | OPF_ANSWERED) ? 1 : 0;
	w->went_on = psn_add(wire_psn_of(f), frame_span(f, flow_mtu(fl)));
	/* how many PSNs it takes is not known, or one comes again after so many */
	if (psn_known(w->since) && ((!fl->path_mtu && frame_span(f, PATH_MTU_MIN) > 1) ||
				    psn_past(w->went_on, w->since) >= MARK_TRAIL))
		w->since = WIRE_NONE;
}

void learn_request(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	bool known = psn_known(l->epsn.psn), anew,
	     goes_on = psn_is(l->watch.went_on, wire_psn_of(f));
	struct wire_mark m;

	if (fl->rule < 0)
		return; /* its lane has ended, and no rule wants another */
	l->count.requests++;
	if (l->role == ROLE_NONE)
		go_on(l, fl, f);
	l->atomics |= (f->op->flags & OPF_ATOMIC) != 0;
	if (f->op->flags & OPF_ANSWERED)
		note_asked(l, fl, f);
	note_request(e, fl, f);
	/* acknowledged before, wherever others may have jumped since: who knows what the responder
	 * has of it, if the number has another owner? Its next ACK tells */
	anew = psn_known(l->una.psn) && psn_before(wire_psn_of(f), l->una.psn);
	if (anew)
		una_heard(l, WIRE_NONE, 0, false);
	if (known && psn_before(wire_psn_of(f), l->epsn.psn) &&
	    psn_diff(l->epsn.psn, wire_psn_of(f)) < (int32_t)WINDOW_SPAN) {
		l->overlap = lane_sent_before(l);
		if (!goes_on && match_unanswered(e, fl) && e->rules[fl->rule].learn & LEARN_MATCH)
			match_went_back(e, fl, f);
		if (!anew)
			return; /* said before */
		known = false;
	}
	if (!known || !psn_is(wire_psn_of(f), l->epsn.psn)) {
		/* first packet, gap or jump: what was counted so far is worth nothing */
		probes_clear(l);
		l->calibrated = false;
		l->learn.offset_run = 0;
		l->opened = e->now;
		l->near.msg = MSG_SEND; /* unknown: until a message begins */
	}
	if (!fl->path_mtu && frame_span(f, PATH_MTU_MIN) > 1) {
		mark_epsn_psn(l, WIRE_NONE); /* how many PSNs it takes is not known */
		return;
	}
	m = l->epsn;
	m.psn = psn_add(wire_psn_of(f), frame_span(f, flow_mtu(fl)));
	m.ackable = !(f->op->flags & OPF_ANSWERED);
	if (f->op->flags & OPF_EOM || f->op->flags & OPF_ANSWERED) {
		l->near.msg = MSG_NONE;
		m.msn = psn_add(m.msn, 1);
	} else {
		l->near.msg = MSG_SEND;
	}
	mark_epsn(l, &m);
	if (fl->partner == FLOW_NONE && !(f->op->flags & OPF_ANSWERED))
		match_count(e, fl, f->psn);
	if (l->calibrated)
		return;
	if (answered_alike(f) ||
	    (((f->op->flags & OPF_EOM) || f->ackreq) && !(f->op->flags & OPF_ANSWERED)))
		probe_set(l, wire_psn_of(f), l->epsn.msn);
}

/* What answers the request that was message @count says @msn. Unless that is @exact it may count
 * later ones: the least that answers say must be said by several. Always so for the answer to a
 * repeat, even a plain ACK: it bears the PSN of then and the MSN of today. */
static bool calibrates(struct lane *l, uint32_t count, uint32_t msn, bool exact)
{
	uint32_t offset = psn_sub(msn, count);

	if (!exact) {
		if (!l->learn.offset_run || psn_before(offset, l->learn.offset)) {
			l->learn.offset = offset;
			l->learn.offset_run = 0;
		}
		l->learn.offset_run += offset == l->learn.offset;
		if (l->learn.offset_run < OFFSETS_AGREE)
			return false;
	}
	mark_epsn_msn(l, psn_add(l->epsn.msn, offset));
	return true;
}

/* Whether an answer with @psn may be to a repeat, and something later may have been sent. */
static bool may_count_later(const struct lane *l, struct wire_psn psn)
{
	struct wire_psn next = psn_add(psn, 1);

	return lane_may_repeat(l, psn) && (!psn_is(l->epsn.psn, next) || lane_may_repeat(l, next));
}

/* The answer to a READ or ATOMIC says what an ACK says: who sent the request of this PSN, what is
 * acknowledged, how many messages there have been. But its MSN may count later requests. */
static void read_response(struct engine *e, struct flow *fl, struct flow *req,
			  const struct frame *f)
{
	bool begins = f->op->flags & (OPF_FIRST | OPF_ONLY),
	     ends = f->op->flags & (OPF_LAST | OPF_ONLY);
	struct wire_psn next = psn_add(wire_psn_of(f), ends);
	struct lane *l;
	bool again;

	if (begins && (e->rules[fl->rule].learn & LEARN_MATCH) && match_foreign(e, fl, f->psn) &&
	    match_ack(e, fl, f->psn, PSN_NONE))
		return;
	if (!req || !f->aeth)
		return;
	l = &req->lane;
	lane_credit(l, frame_aeth_syndrome(f), true);
	again = may_count_later(l, wire_psn_of(f));
	if (ends && (!psn_known(l->una.psn) || psn_after(next, l->una.psn) ||
		     psn_diff(l->una.psn, next) > (int32_t)WINDOW_SPAN))
		una_heard(l, next, frame_aeth_msn(f), !again && psn_is(l->epsn.psn, next));
	if (!begins || l->calibrated || !psn_known(l->epsn.psn))
		return;
	for (int i = 0; i < LANE_PROBES; i++) {
		if (!psn_is(l->learn.probe[i].psn, wire_psn_of(f))) {
			/* answers come in order: this one's has passed unrecognized */
			if (psn_known(l->learn.probe[i].psn) &&
			    psn_before(l->learn.probe[i].psn, wire_psn_of(f)))
				l->learn.probe[i].psn = WIRE_NONE;
			continue;
		}
		l->learn.probe[i].psn = WIRE_NONE;
		l->calibrated = calibrates(l, l->learn.probe[i].count, frame_aeth_msn(f),
					   !again && l->learn.probe[i].count == l->epsn.msn);
		if (l->calibrated)
			probes_clear(l);
		return;
	}
}

/* The ACK or NAK @f in @fl answers no partner's request. Returns true if it is known whose. */
static bool foreign_ack(struct engine *e, struct flow *fl, const struct frame *f, uint8_t syndrome)
{
	uint8_t learn = e->rules[fl->rule].learn;

	if (syndrome == AETH_NAK_SEQ && (learn & LEARN_MATCH))
		match_note_nak(e, fl, f->psn, frame_aeth_msn(f));
	if (!aeth_is_ack(syndrome))
		return false;
	match_other_requester(e, fl, f->psn);
	return (learn & (LEARN_MATCH | LEARN_IMMEDIATE)) &&
	       match_ack(e, fl, f->psn, frame_aeth_msn(f));
}

void learn_response(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct flow *req = flow_partner(e, fl);
	struct lane *l;
	uint8_t s;
	struct wire_psn next;
	bool again;

	if (f->op->flags & (OPF_READ | OPF_ATOMIC)) {
		read_response(e, fl, req, f);
		return;
	}
	if (f->opcode != OP_ACK)
		return;
	s = frame_aeth_syndrome(f);
	if (aeth_is_ack(s))
		echo_heard(e, fl, f->psn);
	req = flow_partner(e, fl);
	if (match_foreign(e, fl, f->psn) && foreign_ack(e, fl, f, s))
		return;
	if (!req)
		return;
	l = &req->lane;
	again = may_count_later(l, wire_psn_of(f));
	/* sequence and RNR NAKs acknowledge what is before them */
	if (!aeth_is_ack(s) && !aeth_is_rnr(s) && s != AETH_NAK_SEQ)
		return;
	next = psn_add(wire_psn_of(f), aeth_is_ack(s));
	if (!psn_known(l->una.psn) || psn_after(next, l->una.psn) ||
	    psn_diff(l->una.psn, next) > (int32_t)WINDOW_SPAN)
		una_heard(l, next, frame_aeth_msn(f), !aeth_is_ack(s) || !again);
	if (!aeth_is_ack(s))
		return;
	l->credit = s;
	/* of all that was sent: nothing later can be counted */
	if (!l->calibrated && !again && psn_is(next, l->epsn.psn))
		l->calibrated = calibrates(l, l->epsn.msn, frame_aeth_msn(f), true);
	for (int i = 0; i < LANE_PROBES && !l->calibrated; i++) {
		if (!psn_known(l->learn.probe[i].psn) || !psn_known(l->epsn.psn))
			continue;
		if (psn_is(l->learn.probe[i].psn, wire_psn_of(f))) {
			l->learn.probe[i].psn = WIRE_NONE;
			l->calibrated =
				calibrates(l, l->learn.probe[i].count, frame_aeth_msn(f), !again);
		} else if (psn_after(wire_psn_of(f), l->learn.probe[i].psn)) {
			l->learn.probe[i].psn = WIRE_NONE; /* passed over by a cumulative ACK */
		}
	}
	if (l->calibrated)
		probes_clear(l);
}
