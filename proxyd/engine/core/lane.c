// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The life of a lane: how custody begins, what is retained and released, how it ends.
 *
 *	WATCH --open--> OPENING --peer accepts--> HELD --drain--> DRAIN --ledger empty--> WATCH
 *	  (single mode: straight to HELD)           \--custody lost--> FAULT --QP gone--> WATCH
 *
 * Opening. At the oldest packet that is not truly acknowledged, when a paired requester sends it or
 * goes back to it, that packet's PSN becomes the handover PSN (the genuine ACK below it has told
 * the MSN). A requester that always has something under way never does that unless it must resend;
 * there it is the first packet of a message, in order, of a calibrated lane. From it on packets are
 * retained and sent as a stream, but as long as the peer has not agreed the front moves only with
 * true ACKs, so a refusal costs nothing: forget what is retained, the hosts still have it. Before
 * the handover PSN everything passes as ever. A cumulative ACK at or above it would also
 * acknowledge what came before it and is not in custody, hence @start_acked: the front stays at the
 * handover PSN until the responder has truly acknowledged all before it. If what came before it
 * turns out to be lost (a sequence NAK below the handover PSN passes), the lane closes and opens
 * again at the PSN that the requester now goes back to: so a lossy WAN is repaired from the first
 * NAK on.
 *
 * Both appliances must agree, and an acceptor agrees only to a connection whose packets it has seen
 * in both directions: were they routed around it, the opener would keep custody of packets that
 * nobody repairs.
 *
 * Closing is abrupt where nothing was promised (OPENING), else through DRAIN: new requests are
 * dropped, which hosts repair by themselves, until the responder has acknowledged all that was
 * promised.
 */
#include "engine/reads/reads.h"

#define CLOSED_RETRY_NS (100 * NSEC_PER_MSEC)
#define RTO_MIN_LAN_US	4000u
#define RTO_MIN_WAN_US	10000u
#define RTO_FIRST_US	200000u
#define RTO_MAX_US	2000000u
/* What an opener may send before the peer has told its room. */
#define FIRST_ROOM	256u
/* What single mode may have on the WAN before the first true ACK. */
#define CWND_FIRST	64u

const char *lane_state_name(enum lane_state s)
{
	static const char *const names[LANE_STATES] = {"watch", "opening", "held", "drain",
						       "fault"};

	return s < LANE_STATES ? names[s] : "?";
}

const char *learn_source_name(enum learn_source s)
{
	static const char *const names[LEARN_SOURCES] = {"none", "cm", "psn", "immediate", "peer"};

	return s < LEARN_SOURCES ? names[s] : "?";
}

const char *lane_reason_name(enum lane_reason r)
{
	static const char *const names[REASONS] = {
		[REASON_NONE] = "none",
		[REASON_UNKNOWN] = "not-seen-by-peer",
		[REASON_ONE_WAY] = "one-direction-only",
		[REASON_MISMATCH] = "pair-mismatch",
		[REASON_NO_RULE] = "no-rule-at-peer",
		[REASON_NO_ROOM] = "no-room-at-peer",
		[REASON_IDLE] = "idle",
		[REASON_DISCONNECT] = "disconnected",
		[REASON_INCARNATION] = "new-incarnation",
		[REASON_NAK] = "responder-nak",
		[REASON_TIMEOUT] = "responder-timeout",
		[REASON_PEER_LOST] = "peer-lost",
		[REASON_PEER_RESTARTED] = "peer-restarted",
		[REASON_OPERATOR] = "operator",
		[REASON_PATH_MTU] = "path-mtu-unknown",
		[REASON_POOL_FULL] = "pool-full",
		[REASON_EARLIER_LOSS] = "loss-before-handover",
		[REASON_LONG_READ] = "read-too-long",
		[REASON_FAULT] = "connection-faulted",
		[REASON_ORPHAN] = "numbering-lost",
		[REASON_SOLO] = "other-than-foreseen",
	};

	return r < REASONS && names[r] ? names[r] : "?";
}

/* A lane that begins anew may still stand in lists of the engine: it stays there, and whoever takes
 * it out looks at what it is then. */
void lane_init(struct flow *fl)
{
	struct lane *l = &fl->lane, was = *l;

	memset(l, 0, sizeof(*l));
	l->ack_listed = was.ack_listed;
	l->next_ack = was.next_ack;
	l->report_listed = was.report_listed;
	l->next_report = was.next_report;
	l->run_listed = was.run_listed;
	l->next_run = was.next_run;
	l->room_listed = was.room_listed;
	l->next_room = was.next_room;
	l->state = LANE_WATCH;
	l->peer = PEER_NONE;
	l->credit = 0xff;
	l->epsn.psn = l->una.psn = PSN_NONE;
	l->holes = POOL_NONE;
	l->reads_page = POOL_NONE;
	for (int i = 0; i < LANE_PROBES; i++)
		l->probe[i].psn = PSN_NONE;
	window_init(&l->win);
	pool_log_init(&l->log);
	mq_list_init(&l->reads);
}

/* ---- timers' inputs ---- */

void rtt_sample(struct rtt *t, uint32_t us)
{
	uint32_t dev;

	us += !us;
	if (!t->srtt_us) {
		t->srtt_us = us;
		t->rttvar_us = us / 2;
	} else {
		dev = us > t->srtt_us ? us - t->srtt_us : t->srtt_us - us;
		t->rttvar_us += (dev >> 2) - (t->rttvar_us >> 2);
		t->srtt_us += (us >> 3) - (t->srtt_us >> 3);
	}
	if (!t->minrtt_us || us < t->minrtt_us)
		t->minrtt_us = us;
}

/* RFC 6298 with the floor that the port suggests, doubled with each timeout without progress. */
uint64_t lane_rto_ns(const struct lane *l)
{
	uint64_t us = RTO_FIRST_US,
		 floor = l->role == ROLE_ACCEPTOR ? RTO_MIN_LAN_US : RTO_MIN_WAN_US;

	if (l->rtt.srtt_us)
		us = l->rtt.srtt_us + 4ull * l->rtt.rttvar_us;
	else if (l->role == ROLE_ACCEPTOR)
		us = 20000;
	if (us < floor)
		us = floor;
	us <<= l->backoff;
	if (us > RTO_MAX_US && us > 2ull * l->rtt.srtt_us)
		us = RTO_MAX_US;
	return us * NSEC_PER_USEC;
}

/* ---- states ---- */

void lane_set_state(struct lane *l, enum lane_state s)
{
	l->state = (uint8_t)s;
}

/* Whether somebody else shall keep the lane's packets from passing should we be gone. False when
 * nobody can. */
bool lane_fence(struct engine *e, struct flow *fl, bool on)
{
	const struct flow *back = flow_partner(e, fl);

	if (on &&
	    (!back || (e->sink.hold && e->sink.hold(e->sink.ctx, &fl->key, back->key.dqpn, true))))
		return false;
	if (!on && e->sink.hold)
		e->sink.hold(e->sink.ctx, &fl->key, back ? back->key.dqpn : PSN_NONE, false);
	fl->lane.numbered = on;
	return true;
}

/* Back to WATCH with nothing retained; what is known of the requests' sequence stays. */
void lane_reset(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	uint32_t i = flow_index(e, fl);
	struct lane keep = *l;

	if (l->role != ROLE_NONE)
		lane_drop_all(e, fl);
	e->in_fault -= l->state == LANE_FAULT;
	if (l->numbered)
		lane_fence(e, fl, false);
	wheel_cancel(e->wheel, TIMER_ID(i, TIMER_LOSS));
	wheel_cancel(e->wheel, TIMER_ID(i, TIMER_AUX));
	lane_init(fl);
	l->reason = keep.reason;
	l->credit = keep.credit;
	l->requests = keep.requests;
	l->pseudo_acks = keep.pseudo_acks;
	l->true_acks = keep.true_acks;
	l->dup = keep.dup;
	l->retx = keep.retx;
	l->naks = keep.naks;
	l->timeouts = keep.timeouts;
	l->rnr = keep.rnr;
}

bool lane_may_open(struct engine *e, const struct flow *fl, const struct frame *f)
{
	const struct lane *l = &fl->lane;
	const struct rule *r = &e->rules[fl->rule];

	if (fl->side != PORT_LAN || fl->partner == FLOW_NONE || e->draining)
		return false;
	if (e->now < fl->retry_open || !fl->path_mtu)
		return false;
	if (r->peer != PEER_NONE && !e->peer_up[r->peer])
		return false;
	if (!e->flows[fl->partner].tmpl.len)
		return false;
	/* of what is answered with data only READs are begun with, and only where that gains
	 * anything */
	if ((f->op->flags & OPF_ANSWERED) &&
	    (f->opcode != OP_READ_REQUEST || r->peer == PEER_NONE) && !atomic_allowed(r, f))
		return false;
	/* the very first that is not truly acknowledged: the requester is idle or goes back to it
	 * */
	if (l->una.psn == f->psn && l->credit != 0xff)
		return true;
	/* the newest packet, as learn_request() has just counted it */
	return (f->op->flags & (OPF_FIRST | OPF_ONLY | OPF_READ)) && l->calibrated &&
	       l->epsn.psn == psn_add(f->psn, frame_span(f, fl->path_mtu));
}

void lane_send_open(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct report r = {
		.type = REPORT_OPEN,
		.lane = flow_index(e, fl),
		.gen = l->gen,
		.key = fl->key,
		.lqpn = e->flows[fl->partner].key.dqpn,
		.start_psn = l->reopen ? l->una.psn : l->start,
		.start_msn = l->una.msn,
		.path_mtu = fl->path_mtu,
		.policy = l->policy,
		.resume = l->reopen,
		.one_read = l->ahead || l->atomic,
	};

	e->sink.report(e->sink.ctx, (unsigned int)l->peer, &r);
	wheel_arm(e->wheel, TIMER_ID(flow_index(e, fl), TIMER_AUX),
		  e->now + OPEN_RETRY_NS + 2ull * l->rtt.srtt_us * NSEC_PER_USEC);
}

void lane_open(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	const struct rule *r = &e->rules[fl->rule];
	/* the packet itself comes again through near_request() */
	uint32_t msn =
		(f->op->flags & (OPF_EOM | OPF_ANSWERED)) ? psn_sub(l->epsn.msn, 1) : l->epsn.msn;
	struct mark m = {.psn = f->psn, .msn = msn, .ackable = 0};
	bool all_acked = l->una.psn == f->psn; /* as watched */
	uint32_t passed = l->epsn.psn;

	if (all_acked)
		m.msn = l->una.msn; /* from the genuine ACK just below */

	l->requests--;
	l->gen = ++e->gen;
	l->peer = r->peer;
	l->role = r->peer == PEER_NONE ? ROLE_SINGLE : ROLE_OPENER;
	l->ahead = r->prefetch;
	lane_set_state(l, l->role == ROLE_SINGLE ? LANE_HELD : LANE_OPENING);
	l->policy = r->policy;
	l->atomic = r->atomic == ATOMIC_DISCARD && r->policy != POLICY_EARLY ? ATOMIC_ORDERED
									     : r->atomic;
	l->epsn = l->frontier = l->una = l->nxt = l->honest = l->acked = m;
	l->honest_found = false;
	if (f->op->flags & (OPF_FIRST | OPF_ONLY | OPF_READ)) {
		l->msg = MSG_NONE;
	} else {
		l->msg = (f->op->flags & OPF_WRITE) ? MSG_WRITE : MSG_SEND;
		l->msg_left = MSG_LEFT_UNKNOWN;
	}
	l->start = l->end = l->told = l->high = f->psn;
	l->start_acked = all_acked;
	l->room = psn_add(f->psn, FIRST_ROOM);
	l->overlap = passed != PSN_NONE && psn_after(passed, f->psn) ? passed : f->psn;
	l->lost_from = l->reached = l->reached_hi = f->psn;
	l->rack_us = l->trickle_us = l->cnp_us = now_us(e);
	if (l->role == ROLE_SINGLE) {
		l->cwnd = CWND_FIRST;
		l->cut_us = now_us(e);
		l->made = MQ_NONE;
	}
	l->guard.psn = l->reasked_psn = PSN_NONE;
	l->opened = l->progress = e->now;
	COUNT(e, OPENS);
	if (l->role == ROLE_OPENER)
		lane_send_open(e, fl);
	else
		engine_event(e, EVENT_HELD, fl, 0, 0);
}

/*
 * A response to a request from before the handover, for the requester itself: pass it on and learn
 * from it.
 */
void lane_old_response(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	uint8_t s = f->aeth ? frame_aeth_syndrome(f) : 0;
	struct mark m = {.psn = f->psn, .msn = f->aeth ? frame_aeth_msn(f) : 0};

	if (psn_map_strange(reads_of(e, l), l))
		return; /* it bears numbers that the host does not know */
	engine_pass(e, other_port(fl->side), f);
	if (lane_keeps(l) && f->opcode != OP_ACK)
		near_resp_repeated(e, fl, f);
	if (!lane_keeps(l) || f->opcode != OP_ACK || !icrc_ok(f))
		return;
	if (aeth_is_ack(s) && !psn_before(psn_add(f->psn, 1), l->start)) {
		if (psn_after(psn_add(f->psn, 1), l->told))
			l->told = psn_add(f->psn, 1);
		l->start_acked = true;
		frontier_advance(e, fl);
	} else if (s == AETH_NAK_SEQ && !l->start_acked && psn_before(f->psn, l->start)) {
		uint8_t credit = l->credit;

		lane_close(e, fl, REASON_EARLIER_LOSS, true);
		fl->retry_open = e->now;
		l->una = m;
		l->credit = credit;
	}
}

void lane_send_close(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct report r = {
		.type = REPORT_CLOSE,
		.lane = l->role == ROLE_ACCEPTOR ? l->peer_lane : flow_index(e, fl),
		.gen = l->gen,
		.key = fl->key,
		.by_opener = l->role == ROLE_OPENER,
		.reason = l->reason,
	};

	if (l->peer != PEER_NONE)
		e->sink.report(e->sink.ctx, (unsigned int)l->peer, &r);
}

/*
 * End it now. What was promised and not truly acknowledged is lost thereby; callers do this when
 * there is nobody left to be told (the QP was taken down or reused), and it is counted and logged
 * as a fault.
 */
void lane_close(struct engine *e, struct flow *fl, enum lane_reason why, bool tell)
{
	struct lane *l = &fl->lane;

	if (l->role == ROLE_NONE)
		return;
	l->reason = (uint8_t)why;
	if (tell)
		lane_send_close(e, fl);
	if (lane_keeps(l) && l->state != LANE_FAULT &&
	    psn_before(psn_to_host(e, l, &l->una).psn, l->frontier.psn)) {
		COUNT(e, FAULTS);
		e->counters[EC_LOST_PACKETS] += l->packets;
		e->counters[EC_LOST_BYTES] += l->bytes;
		engine_event(e, EVENT_FAULT, fl, l->packets, l->bytes);
	}
	engine_event(e, EVENT_CLOSED, fl, 0, 0);
	lane_reset(e, fl);
	flow_match_rule(e, fl); /* the rules may have changed while it was held */
	fl->retry_open = e->now + CLOSED_RETRY_NS;
}

/* Finish what is owed, then WATCH. */
void lane_drain(struct engine *e, struct flow *fl, enum lane_reason why)
{
	struct lane *l = &fl->lane;

	if (l->role == ROLE_NONE || l->state == LANE_DRAIN || l->state == LANE_FAULT)
		return;
	if (l->role == ROLE_SOLO) {
		solo_drain(e, fl, why);
		return;
	}
	l->reason = (uint8_t)why;
	if (l->state == LANE_OPENING) {
		lane_close(e, fl, why, true); /* nothing was promised */
		return;
	}
	if (l->role == ROLE_ACCEPTOR && (why == REASON_OPERATOR || why == REASON_DISCONNECT)) {
		/* The opener has custody: it is for the opener to drain, and we serve it until
		 * then. Of what the responder acknowledged just before it disconnected nobody else
		 * knows. */
		l->closing = true;
		stream_rx_report_due(e, fl, true);
		return;
	}
	if (lane_keeps(l) && why == REASON_OPERATOR && psn_map_differs(reads_of(e, l), l)) {
		/* without us the two ends would not understand each other any more: it stays, but
		 * guesses no more */
		reads_of(e, l)->stop = true;
		return; /* see lane_settled() */
	}
	lane_set_state(l, LANE_DRAIN);
	lane_check_drained(e, fl);
}

/* The host has asked for all that was guessed, so that both numberings are the same again: it may
 * drain. */
void lane_settled(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	if (e->draining && lane_keeps(l) && l->state == LANE_HELD &&
	    !psn_map_differs(reads_of(e, l), l))
		lane_drain(e, fl, REASON_OPERATOR);
}

void lane_check_drained(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	if (l->state != LANE_DRAIN)
		return;
	if (lane_keeps(l)) {
		if (l->packets || l->una.psn != l->epsn.psn)
			return;
		ack_flush(e, fl);
	} else if (l->una.psn != l->epsn.psn) {
		return; /* an acceptor still delivers what it holds in order */
	}
	lane_close(e, fl, l->reason, true);
}

void lane_aux_timer(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	if (l->state == LANE_FAULT) {
		fault_timer(e, fl);
		return;
	}
	if (l->role != ROLE_OPENER) {
		far_rnr_over(e, fl);
		return;
	}
	if (l->accepted && !l->reopen)
		return;
	if (l->state == LANE_OPENING && e->now - l->opened > REFUSED_RETRY_NS) {
		/* the peer's session is up but it does not answer: step back */
		lane_close(e, fl, REASON_PEER_LOST, true);
		fl->retry_open = e->now + REFUSED_RETRY_NS;
		return;
	}
	if (l->reopen && e->now - l->progress > e->cfg.peer_timeout_ns) {
		lane_fault(e, fl, REASON_PEER_LOST, AETH_NAK_OPERATION);
		return;
	}
	lane_send_open(e, fl);
}
