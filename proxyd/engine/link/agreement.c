// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the peer says about lanes: it opens one toward us, agrees to one of ours or refuses it,
 * closes one, reports progress. Whatever a report names is looked up by number and generation; one
 * that fits nothing is counted, and a peer that believes in a lane that we do not have is told so.
 */
#include "engine/fault/fault.h"
#include "engine/link/link.h"
#include "engine/reads/reads.h"

static void refuse(struct engine *e, unsigned int peer, const struct report *r,
		   enum lane_reason why)
{
	struct report out = {
		.type = REPORT_REFUSE, .lane = r->lane, .gen = r->gen, .reason = (uint8_t)why};

	COUNT(e, REFUSALS);
	e->sink.report(e->sink.ctx, peer, &out);
}

static void accept_lane(struct engine *e, unsigned int peer, const struct report *r)
{
	struct report out = {.type = REPORT_ACCEPT, .lane = r->lane, .gen = r->gen};

	e->sink.report(e->sink.ctx, peer, &out);
}

/* The peer wants to open the lane of requests that come from its side. */
static void rx_open(struct engine *e, unsigned int peer, const struct report *r)
{
	struct flow_key back = {
		.src = r->key.dst, .dst = r->key.src, .dqpn = r->lqpn, .vlan = r->key.vlan};
	uint32_t a = flow_table_find(e->table, &r->key, e->flows, sizeof(struct flow));
	uint32_t b = flow_table_find(e->table, &back, e->flows, sizeof(struct flow));
	struct flow *fl = a == FLOW_NONE ? NULL : &e->flows[a];
	struct flow *other = b == FLOW_NONE ? NULL : &e->flows[b];
	struct lane *l;
	struct mark m = {.psn = r->start_psn, .msn = r->start_msn};
	uint32_t passed;

	if (fl && fl->lane.role == ROLE_ACCEPTOR && fl->lane.peer == (int8_t)peer &&
	    fl->lane.gen == r->gen && fl->lane.peer_lane == r->lane) {
		accept_lane(e, peer, r); /* our answer was lost */
		return;
	}
	if (fl && fl->lane.role == ROLE_ACCEPTOR && fl->lane.peer == (int8_t)peer &&
	    fl->lane.state == LANE_HELD && (int32_t)(r->gen - fl->lane.gen) < 0) {
		/* generations only grow: it was overtaken by the lane that we have */
		COUNT(e, BAD_REPORT);
		return;
	}
	if (e->draining &&
	    !r->resume) { /* who resumes has custody, and must be helped to be rid of it */
		refuse(e, peer, r, REASON_OPERATOR);
		return;
	}
	if (r->resume) {
		if (!fl)
			fl = flow_create(e, &r->key, PORT_WAN);
		if (!other)
			other = flow_create(e, &back, PORT_LAN);
		if (!fl || !other) {
			refuse(e, peer, r, REASON_NO_ROOM);
			return;
		}
	}
	if (!fl || !other) {
		refuse(e, peer, r, fl || other ? REASON_ONE_WAY : REASON_UNKNOWN);
		return;
	}
	if (fl->side != PORT_WAN || other->side != PORT_LAN) {
		refuse(e, peer, r, REASON_ONE_WAY);
		return;
	}
	if (other->lane.state == LANE_FAULT) {
		refuse(e, peer, r, REASON_FAULT);
		return;
	}
	if (fl->rule < 0 || e->rules[fl->rule].peer != (int8_t)peer) {
		refuse(e, peer, r, REASON_NO_RULE);
		return;
	}
	if (!flow_pair(e, fl, other, LEARNED_PEER)) {
		refuse(e, peer, r, REASON_MISMATCH);
		return;
	}
	l = &fl->lane;
	/* what has passed to the responder already, so that its ACKs are understood */
	passed = l->role == ROLE_NONE ? l->epsn.psn : l->high;
	if (passed == PSN_NONE || psn_before(passed, r->start_psn) ||
	    psn_diff(passed, r->start_psn) > (int32_t)WINDOW_SPAN)
		passed = r->start_psn;
	if (l->role != ROLE_NONE) {
		/* an older generation of the same lane: the opener has given it up */
		lane_close(e, fl, REASON_INCARNATION, false);
		fl->retry_open = 0;
	}
	if (r->path_mtu && fl->path_mtu && r->path_mtu != fl->path_mtu) {
		/* they would count the PSNs of a READ differently */
		refuse(e, peer, r, REASON_MISMATCH);
		return;
	}
	if (r->path_mtu && !fl->path_mtu)
		fl->path_mtu = other->path_mtu = (uint16_t)r->path_mtu;
	l->role = ROLE_ACCEPTOR;
	lane_set_state(l, LANE_HELD);
	l->peer = (int8_t)peer;
	l->peer_lane = r->lane;
	l->gen = r->gen;
	l->policy = r->policy;
	l->epsn = l->frontier = l->una = l->nxt = m;
	l->start = l->end = l->ackreq_end = r->start_psn;
	l->high = r->start_psn;
	l->overlap = passed;
	l->cwnd = UINT32_MAX >> 1; /* no loss was seen */
	l->cut_us = now_us(e);
	l->start_acked = true;
	l->opened = l->progress = e->now;
	l->clock.last = e->now;
	if (r->one_read) {
		struct lane_reads *x = reads_begin(e, fl);

		if (!x) {
			lane_close(e, fl, REASON_NO_ROOM, false);
			refuse(e, peer, r, REASON_NO_ROOM);
			return;
		}
		x->depth = 1;
	}
	COUNT(e, OPENS);
	accept_lane(e, peer, r);
	progress_due(e, fl, true);
	engine_event(e, EVENT_HELD, fl, 0, 0);
	if (e->draining)
		lane_drain(e, fl, REASON_OPERATOR);
}

/* An answer to a lane of ours that we no longer have: the peer should let go as well. */
static void stale_lane(struct engine *e, unsigned int peer, const struct report *r)
{
	struct report out = {.type = REPORT_CLOSE,
			     .lane = r->lane,
			     .gen = r->gen,
			     .by_opener = true,
			     .reason = REASON_NONE};

	COUNT(e, BAD_REPORT);
	if (r->type == REPORT_PROGRESS || r->type == REPORT_ACCEPT)
		e->sink.report(e->sink.ctx, peer, &out);
}

static struct flow *own_lane(struct engine *e, unsigned int peer, const struct report *r)
{
	struct flow *fl = r->lane < e->nflows ? &e->flows[r->lane] : NULL;

	if (fl && fl->used && fl->lane.role == ROLE_OPENER && fl->lane.gen == r->gen &&
	    fl->lane.peer == (int8_t)peer)
		return fl;
	return NULL;
}

/* By number and generation: the key is missing in an answer to a stale report. */
static struct flow *accepted_lane(struct engine *e, unsigned int peer, const struct report *r)
{
	for (uint32_t i = 0; i < e->nflows; i++) {
		struct flow *fl = &e->flows[i];

		if (fl->used && fl->lane.role == ROLE_ACCEPTOR && fl->lane.gen == r->gen &&
		    fl->lane.peer == (int8_t)peer && fl->lane.peer_lane == r->lane)
			return fl;
	}
	return NULL;
}

static void rx_close(struct engine *e, unsigned int peer, const struct report *r)
{
	struct flow *fl;

	if (!r->by_opener) {
		fl = own_lane(e, peer, r);
		if (!fl || fl->lane.state == LANE_FAULT)
			return;
		/* the acceptor let go: resume there if something is owed, else step back too */
		if (fl->lane.state == LANE_OPENING ||
		    (fl->lane.una.psn == fl->lane.epsn.psn && !psn_map_differs(e, &fl->lane)))
			lane_close(e, fl, r->reason, false);
		else
			stream_tx_restart(e, fl);
		return;
	}
	fl = accepted_lane(e, peer, r);
	if (!fl)
		return;
	/* it may have forgotten the lane (restart): what has come in order is still delivered */
	if ((r->reason == REASON_NONE || r->reason == REASON_PEER_RESTARTED) &&
	    fl->lane.una.psn != fl->lane.epsn.psn)
		lane_drain(e, fl, REASON_PEER_RESTARTED);
	else
		lane_close(e, fl, r->reason, false);
}

/* The opener says which answers it has. */
static void rx_resp(struct engine *e, unsigned int peer, const struct report *r)
{
	uint32_t i = flow_table_find(e->table, &r->key, e->flows, sizeof(struct flow));
	struct flow *fl = i == FLOW_NONE ? NULL : &e->flows[i];
	struct report gone = {.type = REPORT_CLOSE, .lane = r->lane, .gen = r->gen, .key = r->key};

	if (!fl || fl->lane.role != ROLE_ACCEPTOR || fl->lane.gen != r->gen ||
	    fl->lane.peer != (int8_t)peer || fl->lane.peer_lane != r->lane) {
		COUNT(e, BAD_REPORT);
		/* an opener that waits for answers here must begin anew */
		if (!accepted_lane(e, peer, r))
			e->sink.report(e->sink.ctx, peer, &gone);
		return;
	}
	resp_tx_progress(e, fl, r);
}

void agreement_rx(struct engine *e, unsigned int peer, const struct report *r)
{
	struct flow *fl;

	if (peer >= PEER_MAX)
		return;
	if (r->type == REPORT_OPEN) {
		rx_open(e, peer, r);
		return;
	}
	if (r->type == REPORT_CLOSE) {
		rx_close(e, peer, r);
		return;
	}
	if (r->type == REPORT_RESP) {
		rx_resp(e, peer, r);
		return;
	}
	fl = own_lane(e, peer, r);
	if (!fl) {
		stale_lane(e, peer, r);
		return;
	}
	if (fl->lane.state == LANE_FAULT)
		return;
	switch (r->type) {
	case REPORT_ACCEPT:
		if (fl->lane.accepted && !fl->lane.reopen)
			return;
		fl->lane.accepted = true;
		fl->lane.reopen = false;
		fl->lane.last_report = e->now;
		if (fl->lane.state == LANE_OPENING) {
			lane_set_state(&fl->lane, LANE_HELD);
			/* until now, what the host sent again passed by: when that arrived says
			 * nothing */
			if (psn_after(fl->lane.epsn.psn, fl->lane.overlap))
				fl->lane.overlap = fl->lane.epsn.psn;
			if (e->now - fl->lane.opened < OPEN_RETRY_NS) /* to the only OPEN */
				rtt_sample(&fl->lane.rtt,
					   (uint32_t)((e->now - fl->lane.opened) / NSEC_PER_USEC));
			engine_event(e, EVENT_HELD, fl, 0, 0);
		}
		ack_list(e, fl);
		pace_run(e, fl);
		if (reads_of(e, &fl->lane))
			resp_report_due(e, fl, true);
		return;
	case REPORT_REFUSE:
		COUNT(e, REFUSALS);
		fl->lane.reason = r->reason;
		if (fl->lane.state == LANE_OPENING) {
			engine_event(e, EVENT_REFUSED, fl, 0, 0);
			lane_close(e, fl, r->reason, false);
			fl->retry_open = e->now + REFUSED_RETRY_NS;
		}
		/* a refused resume is asked again until peer_timeout: custody is not given up
		 * lightly */
		return;
	case REPORT_PROGRESS:
		stream_tx_progress(e, fl, r);
		return;
	default:
		COUNT(e, BAD_REPORT);
	}
}
