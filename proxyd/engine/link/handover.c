// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How custody begins at the requester's side (OPENER, SINGLE).
 *
 * A lane opens at the oldest packet that is not truly acknowledged, when a paired requester sends
 * that packet or goes back to it. The packet's PSN becomes the handover PSN (the genuine ACK below
 * it has told the MSN). A requester that always has something under way does that only when it must
 * send again; there the lane opens at the first packet of a message, in order, if the lane is
 * calibrated. From the handover PSN on packets are retained and sent as a stream, but as long as
 * the peer has not agreed the frontier moves only with true ACKs, so a refusal costs nothing: we
 * forget what is retained, the hosts still have it. Before it everything passes.
 *
 * A cumulative ACK at or above the handover PSN would also acknowledge what came before it and is
 * not in custody, hence @start_acked: the frontier stays at the handover PSN until the responder
 * has truly acknowledged all before it. The answer to a READ or ATOMIC from before may pass us
 * later than the peer's report that it is done. An ACK of what follows would have the host take it
 * for lost, so none goes out before the answer (@reasked_psn). If what came before turns out to be
 * lost (a sequence NAK below the handover PSN passes), the lane closes and opens again at the PSN
 * that the requester now goes back to: so a lossy WAN is repaired from the first NAK on.
 *
 * Where the peer has offered to agree (flow_offered()) the lane is held at once, and OPEN only
 * tells it so: what is accepted is acknowledged before the peer has said ACCEPT. If it refuses
 * after all, the lane is resumed.
 *
 * Both appliances must agree (agreement.c), and an acceptor agrees only to a connection whose
 * packets it has seen in both directions: what is routed around it no appliance repairs.
 */
#include "engine/fault/fault.h"
#include "engine/link/link.h"
#include "engine/reads/reads.h"

/* What an opener may send before the peer has told its room, packets: a part of our own pool, since
 * the peer's is likely to be alike; what finds no room there is sent again. */
#define FIRST_ROOM_MIN	256u
#define FIRST_ROOM_MAX	65536u
#define FIRST_ROOM_PART 8u
/* What single mode may have on the WAN before the first true ACK. */
#define CWND_FIRST	(64u * CWND_ONE)

/* Whether a lane may begin with the ATOMIC @f. */
static bool atomic_allowed(const struct rule *r, const struct frame *f)
{
	return atomic_is(f->opcode) &&
	       ((r->atomic == ATOMIC_DISCARD && r->policy == POLICY_EARLY) ||
		(r->atomic == ATOMIC_PREFETCH && r->peer != PEER_NONE));
}

/* Whether a lane may begin with @f without a known path MTU: a message of one packet needs none. */
static bool mtu_spared(const struct rule *r, const struct frame *f)
{
	return (f->op->flags & OPF_ONLY) && !(f->op->flags & OPF_ANSWERED) && !r->prefetch;
}

bool lane_may_open(struct engine *e, const struct flow *fl, const struct frame *f)
{
	const struct lane *l = &fl->lane;
	const struct rule *r = &e->rules[fl->rule];

	if (fl->side != PORT_LAN || fl->partner == FLOW_NONE || flow_let_go(e, fl) ||
	    !flow_proved(fl))
		return false;
	if (e->now < fl->retry_open || (!fl->path_mtu && !mtu_spared(r, f)))
		return false;
	if (r->peer != PEER_NONE && (!e->peer_up[r->peer] || !seal_possible(e, r)))
		return false;
	/* of requests answered with data only a READ begins a lane, and only in pair mode */
	if ((f->op->flags & OPF_ANSWERED) &&
	    (f->opcode != OP_READ_REQUEST || r->peer == PEER_NONE) && !atomic_allowed(r, f))
		return false;
	/* where it asked for an answer its ACK would be taken for that: it is of somebody else */
	if (!(f->op->flags & OPF_ANSWERED) && psn_known(l->watch.asked) &&
	    psn_in(wire_psn_of(f), l->watch.asked, l->watch.asked_end))
		return false;
	/* the oldest that is not truly acknowledged: the requester was idle, or goes back to it.
	 * The first of all is in no message's middle: what is was not sent by that requester */
	if (psn_is(l->una.psn, wire_psn_of(f)) && l->una_sure && l->credit != 0xff &&
	    (!l->begins || f->op->flags & (OPF_FIRST | OPF_ONLY | OPF_ANSWERED)))
		return true;
	/* the newest packet, as learn_request() has just counted it */
	return (f->op->flags & (OPF_FIRST | OPF_ONLY | OPF_READ)) && l->calibrated &&
	       psn_is(l->epsn.psn, psn_add(wire_psn_of(f), frame_span(f, flow_mtu(fl))));
}

void lane_send_open(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct report r = {
		.type = REPORT_OPEN,
		.lane = lane_number(e, fl),
		.gen = l->gen,
		.key = fl->key,
		.lqpn = e->flows[fl->partner].key.dqpn,
		.start_psn = l->reopen ? l->una.psn.v : l->start.v,
		.start_msn = l->una.msn,
		.path_mtu = fl->path_mtu,
		.policy = l->policy,
		.resume = l->reopen,
		.one_read = l->ahead || l->atomic,
		.own = l->numbered && e->peer_features[l->peer] & PEER_FEATURE_OWN,
	};

	seal_tell(l, &r);
	order_open(e, fl, &r);
	e->sink.report(e->sink.ctx, (unsigned int)l->peer, &r);
	timer_arm(e, fl, TIMER_AUX,
		  e->now + OPEN_RETRY_NS +
			  rtt_capped_us(&l->rtt, 2ull * l->rtt.srtt_us) * NSEC_PER_USEC);
}

static uint32_t first_room(const struct engine *e, const struct flow *fl)
{
	uint64_t n = e->cfg.pool_bytes / FIRST_ROOM_PART / (flow_mtu(fl) + 128u);

	return n < FIRST_ROOM_MIN   ? FIRST_ROOM_MIN
	       : n > FIRST_ROOM_MAX ? FIRST_ROOM_MAX
				    : (uint32_t)n;
}

/* What only an appliance has that sends on over the WAN by itself. */
static void single_begin(struct engine *e, struct lane *l)
{
	l->far = (struct lane_far){
		.ackreq_end = l->una.psn, .cwnd = CWND_FIRST, .cut_us = now_us(e)};
	l->single = (struct lane_single){.thresh = THRESH_NONE, .made = MQ_NONE};
}

/* The host may have sent what is below before the lane begins at @psn, if it is not far ahead. */
static struct wire_psn sent_before(const struct lane *l, struct wire_psn psn)
{
	struct wire_psn end = lane_may_repeat(l, l->epsn.psn) ? l->overlap : l->epsn.psn;

	return psn_known(end) && psn_in(end, psn, psn_add(psn, HOST_WINDOW)) ? end : psn;
}

/* And what only one that has a peer. */
static void opener_begin(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	l->held.lost_from = l->reached = l->una.psn;
	l->opener = (struct lane_opener){.rack_us = now_us(e), .reached_hi = l->una.psn};
	mark_room(l, psn_add(l->una.psn, first_room(e, fl)));
}

/* Answers to what passed before @f are awaited. If @f is a READ, its own comes after them. */
static void keeper_begin(struct engine *e, struct lane *l, const struct frame *f)
{
	const struct lane_watch *w = &l->watch;

	l->keeper = (struct lane_keeper){.guard.psn = WIRE_NONE, .reasked_psn = HOST_NONE};
	l->keeper.told_us = l->keeper.cnp_us = l->keeper.reasked_us = now_us(e);
	if ((f->op->flags & OPF_ANSWERED) || !psn_known(w->asked) ||
	    !psn_after(w->asked_end, l->una.psn) || psn_after(w->asked_end, wire_psn_of(f)))
		return;
	l->keeper.reasked_psn = psn_same_host(w->asked);
	l->keeper.reasked_end = psn_same_host(w->asked_end);
}

void lane_open(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	const struct rule *r = &e->rules[fl->rule];
	/* the packet itself comes again through near_request() */
	uint32_t msn =
		(f->op->flags & (OPF_EOM | OPF_ANSWERED)) ? psn_sub(l->epsn.msn, 1) : l->epsn.msn;
	struct wire_mark m = {.psn = wire_psn_of(f), .msn = msn, .ackable = 0};
	bool all_acked =
		psn_is(l->una.psn, wire_psn_of(f)); /* all before it, as the genuine ACKs told */
	struct wire_psn overlap = sent_before(l, m.psn);

	if (all_acked && l->una_sure)
		m.msn = l->una.msn; /* from the genuine ACK just below */

	keeper_begin(e, l, f);
	l->count.requests--;
	l->gen = ++e->gen;
	l->peer = r->peer;
	l->role = r->peer == PEER_NONE ? ROLE_SINGLE : ROLE_OPENER;
	l->ahead = r->prefetch;
	lane_set_state(l, l->role == ROLE_SINGLE ? LANE_HELD : LANE_OPENING);
	if (!e->flows[fl->partner].tmpl.len) {
		/* the responder has not been heard yet: our requester's headers, mirrored */
		e->flows[fl->partner].tmpl = fl->tmpl;
		template_mirror(&flow_ref(e, fl->partner)->tmpl);
	}
	l->policy = r->policy;
	l->no_mtu = !fl->path_mtu;
	l->atomic = r->atomic == ATOMIC_DISCARD && r->policy != POLICY_EARLY ? ATOMIC_ORDERED
									     : r->atomic;
	marks_begin(l, &m);
	if (l->role == ROLE_OPENER && r->seal)
		seal_begin(e, fl);
	l->near.honest_found = false;
	if (f->op->flags & (OPF_FIRST | OPF_ONLY | OPF_READ)) {
		l->near.msg = MSG_NONE;
	} else {
		l->near.msg = (f->op->flags & OPF_WRITE) ? MSG_WRITE : MSG_SEND;
		l->near.msg_left = MSG_LEFT_UNKNOWN;
	}
	l->near.told = host_psn_of(f);
	l->start_acked = all_acked;
	l->overlap = overlap;
	if (l->role == ROLE_SINGLE)
		single_begin(e, l);
	else
		opener_begin(e, fl);
	order_join(e, fl);
	if (l->role == ROLE_OPENER && !l->ordered && flow_offered(e, fl))
		lane_set_state(l, LANE_HELD);
	l->opened = l->progress = e->now;
	COUNT(e, OPENS);
	if (l->role == ROLE_OPENER)
		lane_send_open(e, fl);
	if (l->state == LANE_HELD) {
		lane_guard(e, fl);
		engine_event(e, EVENT_HELD, fl, 0, 0);
	}
}

bool handover_outrun(struct engine *e, const struct lane *l)
{
	const struct lane_reads *x = reads_of(e, l);

	return x && psn_after(x->map.proof, l->start);
}

void handover_timer(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	if (l->accepted && !l->reopen)
		return;
	if (l->state == LANE_OPENING && handover_outrun(e, l)) {
		/* the OPEN or its answer is lost. Nothing is owed: begin where the host is now */
		lane_close(e, fl, REASON_NONE, true);
		flow_open_at(fl, e->now);
		return;
	}
	if (l->state == LANE_HELD && !l->accepted && !l->reopen && handover_outrun(e, l)) {
		stream_tx_restart(e, fl); /* it was held at once */
		return;
	}
	if (l->state == LANE_OPENING && e->now - l->opened > REFUSED_RETRY_NS) {
		/* the peer's session is up but it does not answer: close, the hosts go on alone */
		lane_send_rest(e, fl);
		lane_close(e, fl, REASON_PEER_LOST, true);
		flow_open_at(fl, e->now + REFUSED_RETRY_NS);
		return;
	}
	if (l->state != LANE_OPENING && e->now - l->progress > e->cfg.peer_timeout_ns) {
		lane_fault(e, fl, REASON_PEER_LOST, AETH_NAK_OPERATION);
		return;
	}
	lane_send_open(e, fl);
}
