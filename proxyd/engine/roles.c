// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The roles that a lane can have in this appliance, and which rooms are at work in each.
 *
 *	role		requests	toward the	link	toward the
 *			come from	requester		responder
 *	--------	---------	------------	-----	-------------------
 *	OPENER		LAN		near/		link/	(the peer's)
 *	ACCEPTOR	WAN		(the peer's)	link/	far/, over the LAN
 *	SINGLE		LAN		near/		call	far/, over the WAN
 *	SOLO		WAN		pass		none	pass, prefetch/solo.c
 *
 * row: NTT-2, NTT-10
 */
#include "engine/roles.h"

/* ---- opener ---- */

static bool opener_send_resp(struct engine *e, struct flow *fl, uint32_t quantum)
{
	bool moved = false, more = resp_deliver(e, fl, quantum, &moved);

	if (moved)
		prefetch_run(e, fl);
	return more;
}

static void opener_timer(struct engine *e, struct flow *fl, unsigned int which)
{
	if (which == TIMER_AUX && fl->lane.state == LANE_FAULT)
		fault_timer(e, fl);
	else if (which == TIMER_AUX && owner_asked(&fl->lane) && fl->lane.accepted &&
		 !fl->lane.reopen)
		lane_ask_owner(e, fl);
	else if (which == TIMER_AUX)
		handover_timer(e, fl);
	else if (which == TIMER_RESP)
		resp_overdue(e, fl);
	else if (which == TIMER_EASE)
		near_ease_timer(e, fl);
	else
		stream_tx_timeout(e, fl);
}

/* So long after the latest packet nobody asks for a lost answer any more. */
#define KEPT_NS (10 * NSEC_PER_SEC)

/* The peer could not be told anything meanwhile. */
static void opener_peer(struct engine *e, struct flow *fl, bool restarted)
{
	if (restarted) {
		stream_tx_restart(e, fl);
		return;
	}
	pace_run(e, fl);
	if (reads_of(e, &fl->lane))
		resp_report_due(e, fl, true);
}

/* A lane that drains may be let go when a barrier of its hosts, or a patience, is over. */
static void keeper_sweep(struct engine *e, struct flow *fl)
{
	if (lane_carries_on(&fl->lane) || lane_drained(&fl->lane))
		ack_list(e, fl);
}

static void opener_sweep(struct engine *e, struct flow *fl)
{
	keeper_sweep(e, fl);
	announce_settle(e, fl);
	resp_expire(e, fl);
	if (e->now - fl->seen > KEPT_NS) {
		resp_idle(e, fl);
		prefetch_idle(e, fl);
	}
}

static bool keeper_drain(struct engine *e, struct flow *fl, enum lane_reason why)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);

	if (why != REASON_OPERATOR || l->state != LANE_HELD || !psn_map_differs(e, l))
		return false;
	/* the two ends need us to understand each other: no guesses until lane_settled() */
	l->reason = (uint8_t)why;
	announce_stop(e, fl);
	x->stop = true;
	return true;
}

static bool keeper_owes(struct engine *e, const struct flow *fl)
{
	return fl->lane.held.packets || psn_map_differs(e, &fl->lane);
}

static void keeper_end(struct engine *e, struct flow *fl)
{
	announce_end(e, fl);
	reads_end(e, fl);
	order_leave(e, fl);
}

/* ---- acceptor ---- */

static void acceptor_response(struct engine *e, struct flow *fl, const struct frame *f,
			      enum engine_port from)
{
	fl->lane.present = 0; /* it is not silent */
	if (psn_before(wire_psn_of(f), fl->lane.start) && !announce_numbered(e, &fl->lane)) {
		/* from before the handover, or before we were asked to resume */
		engine_pass(e, fl, from, f);
		/* what was under way then is answered for the first time until una goes on */
		if (f->opcode == OP_ACK && psn_after(fl->lane.una.psn, fl->lane.start) &&
		    icrc_ok(f))
			owner_answered(e, fl, f);
	} else {
		far_response(e, fl, f, from);
	}
}

static void acceptor_timer(struct engine *e, struct flow *fl, unsigned int which)
{
	if (which == TIMER_AUX)
		far_rnr_over(e, fl);
	else if (which == TIMER_RESP)
		resp_tx_timeout(e, fl);
	else
		far_timeout(e, fl);
}

/* What asked the opener to let go may be lost. */
#define CLOSING_NS   (100 * NSEC_PER_MSEC)
/* What says that the opener has no such lane may be lost: an idle one is asked this often. */
#define IDLE_ASK_NS  (10 * NSEC_PER_SEC)
/* While others find no place here, that of an idle one is asked for this often. */
#define PLACE_ASK_NS NSEC_PER_SEC

static void acceptor_sweep(struct engine *e, struct flow *fl)
{
	uint64_t every = fl->lane.closing		       ? CLOSING_NS
			 : flow_unwanted(e, fl)		       ? PLACE_ASK_NS
			 : e->now - fl->seen >= e->cfg.idle_ns ? IDLE_ASK_NS
							       : UINT64_MAX;

	announce_go_on(e, fl);
	stream_rx_go_on(e, fl);
	if (e->now - fl->lane.acceptor.gaps.clock.last >= every)
		progress_due(e, fl, true);
}

/* The peer missed what was said. If it forgot the lane, what came in order is delivered. */
static void acceptor_peer(struct engine *e, struct flow *fl, bool restarted)
{
	if (restarted)
		lane_drain(e, fl, REASON_PEER_RESTARTED);
	else
		progress_due(e, fl, true);
}

/* The opener has custody: it is for the opener to drain, and we serve it until then. Of what the
 * responder acknowledged just before it disconnected nobody else knows. */
static bool acceptor_drain(struct engine *e, struct flow *fl, enum lane_reason why)
{
	if ((opener_gone(why) || why == REASON_NONE) && fl->lane.ordered &&
	    order_held(e, fl, psn_sub(fl->lane.epsn.psn, 1))) {
		/* nobody is left to say what must be delivered before it */
		lane_close(e, fl, why, true);
		return true;
	}
	if (why != REASON_OPERATOR && why != REASON_DISCONNECT)
		return false;
	fl->lane.reason = (uint8_t)why;
	fl->lane.closing = true;
	progress_due(e, fl, true);
	return true;
}

static bool acceptor_owes(struct engine *e, const struct flow *fl)
{
	const struct lane *l = &fl->lane;

	/* only the opener knows whether numbers differ: it must let go, as long as it is there */
	return l->held.packets || announce_numbered(e, l) || l->ahead ||
	       (l->peer != PEER_NONE && e->peer_up[l->peer]);
}

static bool acceptor_strands(struct engine *e, const struct flow *fl)
{
	return announce_differs(e, &fl->lane) || numbers_lost(&fl->lane);
}

static bool acceptor_send_resp(struct engine *e, struct flow *fl, uint32_t quantum)
{
	bool more = resp_tx_run(e, fl, quantum);

	return push_run(e, fl, quantum) || more;
}

static void acceptor_end(struct engine *e, struct flow *fl)
{
	announce_end(e, fl);
	reads_end(e, fl);
	holes_drop(e->pool, &fl->lane.acceptor.gaps.holes);
	order_end(e, fl);
}

/* ---- single ---- */

static void single_response(struct engine *e, struct flow *fl, const struct frame *f,
			    enum engine_port from)
{
	fl->lane.present = 0; /* it is not silent */
	if (lane_asked_below(wire_psn_of(f), fl->lane.start))
		near_old_response(e, fl, f);
	else if (far_response(e, fl, f, from))
		resp_repeated(e, fl, psn_same_host(wire_psn_of(f)));
}

static void single_timer(struct engine *e, struct flow *fl, unsigned int which)
{
	if (which == TIMER_AUX && fl->lane.state == LANE_FAULT)
		fault_timer(e, fl);
	else if (which == TIMER_AUX)
		far_rnr_over(e, fl);
	else if (which == TIMER_LOSS)
		far_timeout(e, fl);
	else if (which == TIMER_PACE)
		pace_run(e, fl);
	else if (which == TIMER_EASE)
		near_ease_timer(e, fl);
}

/* ---- solo ---- */

static void solo_sweep(struct engine *e, struct flow *fl)
{
	if (fl->lane.reason == REASON_DISCONNECT && e->now - fl->seen > KEPT_NS)
		lane_close(e, fl, REASON_DISCONNECT, false);
}

const struct role_ops engine_roles[ROLES] = {
	[ROLE_OPENER] =
		{
			.request = near_request,
			.unknown = near_unknown,
			.response = near_response,
			.timer = opener_timer,
			.send = stream_tx_run,
			.send_resp = opener_send_resp,
			.report = resp_report,
			.tell = near_tell,
			.sweep = opener_sweep,
			.peer = opener_peer,
			.drain = keeper_drain,
			.owes = keeper_owes,
			.end = keeper_end,
		},
	[ROLE_ACCEPTOR] =
		{
			.request = stream_rx_request,
			.unknown = stream_rx_unknown,
			.response = acceptor_response,
			.congested = far_congested,
			.timer = acceptor_timer,
			.send = far_run,
			.send_resp = acceptor_send_resp,
			.report = stream_rx_report,
			.sweep = acceptor_sweep,
			.peer = acceptor_peer,
			.drain = acceptor_drain,
			.owes = acceptor_owes,
			.strands = acceptor_strands,
			.end = acceptor_end,
		},
	[ROLE_SINGLE] =
		{
			.request = near_request,
			.unknown = near_unknown,
			.response = single_response,
			.congested = far_congested,
			.timer = single_timer,
			.send = far_run,
			.tell = near_tell,
			.sweep = keeper_sweep,
			.drain = keeper_drain,
			.owes = keeper_owes,
			.end = keeper_end,
		},
	[ROLE_SOLO] =
		{
			.request = solo_request,
			.response = solo_response,
			.timer = solo_timer,
			.send = far_run,
			.sweep = solo_sweep,
			.drain = solo_drain,
			.owes = solo_owes,
			.end = reads_end,
		},
};
