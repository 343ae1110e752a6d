// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the peer says about lanes: it opens one toward us, agrees to one of ours or refuses it,
 * closes one, reports progress. A report names its lane by number and generation. One that names no
 * lane of ours is counted, and a peer that still uses that lane is told to close it.
 */
#include "engine/fault/fault.h"
#include "engine/learn/learn.h"
#include "engine/link/link.h"
#include "engine/reads/reads.h"

/* An opener that says what it has so long after the latest PROGRESS may not have heard that. */
#define UNHEARD_NS (1 * NSEC_PER_SEC)
/* An RTU is on its way for no longer. */
#define RTU_WAY_NS (2 * NSEC_PER_SEC)

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

/* Whether @fl is a lane that we have accepted from @peer. */
static bool accepted_from(const struct flow *fl, unsigned int peer)
{
	return fl && fl->lane.role == ROLE_ACCEPTOR && fl->lane.peer == (int8_t)peer;
}

/* Whether OPEN brings nothing new about @fl; it is dealt with then. */
static bool open_again(struct engine *e, unsigned int peer, const struct report *r,
		       const struct flow *fl)
{
	if (!accepted_from(fl, peer))
		return false;
	if (fl->lane.gen == r->gen && fl->lane.acceptor.peer_lane == r->lane &&
	    seal_same(&fl->lane, r)) {
		accept_lane(e, peer, r); /* our answer was lost */
		return true;
	}
	if (fl->lane.state == LANE_HELD && (int32_t)(r->gen - fl->lane.gen) < 0) {
		/* generations only grow: a younger OPEN has overtaken this one */
		COUNT(e, BAD_REPORT);
		return true;
	}
	return false;
}

/* For a lane that is resumed: @fl, or one with @key that is on side @side. A half-known one that is
 * not is of frames that came from anybody, and its place is free. */
static struct flow *resumed_flow(struct engine *e, struct flow *fl, const struct flow_key *key,
				 enum engine_port side)
{
	if (fl && fl->half && fl->side != side && fl->lane.role == ROLE_NONE) {
		flow_free(e, fl);
		fl = NULL;
	}
	return fl ? fl : flow_create(e, key, side);
}

/* Why the peer may not open a lane of the requests in *@fl, answered in *@back; REASON_NONE if it
 * may. A resumption creates what is missing of the two. They are paired at the end. */
static enum lane_reason open_verdict(struct engine *e, unsigned int peer, const struct report *r,
				     const struct flow_key *back_key, struct flow **fl,
				     struct flow **back)
{
	if (*fl && *back && (flow_let_go(e, *fl) || flow_let_go(e, *back)) && !r->resume)
		return REASON_OPERATOR;
	if (e->draining && !r->resume) /* who resumes has custody: we must help it to release it */
		return REASON_OPERATOR;
	if (r->resume) {
		*fl = resumed_flow(e, *fl, &r->key, PORT_WAN);
		*back = resumed_flow(e, *back, back_key, PORT_LAN);
		if (!*fl || !*back)
			return REASON_NO_ROOM;
	}
	/* packets that no rule wants are not seen here, whatever way they take */
	if (rule_match(e->rules, e->nrules, &r->key.dst, &r->key.src, r->key.vlan) < 0)
		return REASON_NO_RULE;
	if (!*fl || !*back)
		return *fl || *back ? REASON_ONE_WAY : REASON_UNKNOWN;
	if ((*fl)->side != PORT_WAN || (*back)->side != PORT_LAN)
		return REASON_ONE_WAY;
	if ((*back)->lane.state == LANE_FAULT || (*fl)->lane.state == LANE_FAULT || (*fl)->stranded)
		return REASON_FAULT;
	if ((*fl)->rule < 0 || e->rules[(*fl)->rule].peer != (int8_t)peer)
		return REASON_NO_RULE;
	if (e->rules[(*fl)->rule].seal && !r->sealed)
		return REASON_UNSEALED;
	if (!flow_pair(e, *fl, *back, LEARNED_PEER))
		return REASON_MISMATCH;
	return REASON_NONE;
}

/*
 * The PSN before which requests have passed to the responder already; its ACKs may reach there.
 * What passed may be anybody's: further ahead than a host's window it was not the host's, and the
 * opener would not believe an ACK of that (stream_tx.c). A resumed lane may hold more.
 */
static struct wire_psn passed_before(const struct lane *l, const struct report *r)
{
	int32_t most = l->role == ROLE_NONE && !r->resume ? HOST_WINDOW : (int32_t)WINDOW_SPAN;
	struct wire_psn passed = l->high, start = {r->start_psn};

	if (l->role == ROLE_NONE)
		passed = lane_sent_before(l);
	else if (psn_after(l->overlap, passed))
		passed = l->overlap;
	if (!psn_known(passed) || psn_before(passed, start) || psn_diff(passed, start) > most)
		return start;
	return passed;
}

/* Begin the lane that the peer opens. Returns why that fails, or REASON_NONE. */
static enum lane_reason accept_begin(struct engine *e, unsigned int peer, const struct report *r,
				     struct flow *fl, struct flow *back)
{
	struct lane *l = &fl->lane;
	struct wire_mark m = {.psn = {r->start_psn}, .msn = r->start_msn};
	struct wire_psn passed = passed_before(l, r);

	if (l->role != ROLE_NONE) {
		/* an older generation of the same lane: the opener has given it up, or forgotten */
		if (!numbers_lost(l) || r->resume)
			l->reason = REASON_INCARNATION;
		lane_close(e, fl, (enum lane_reason)l->reason, false);
		flow_open_at(fl, 0);
		if (fl->stranded)
			return REASON_FAULT;
	}
	/* with two path MTUs the two ends would count the PSNs of a READ differently */
	if (r->path_mtu && fl->path_mtu && r->path_mtu != fl->path_mtu)
		return REASON_MISMATCH;
	if (r->path_mtu && !fl->path_mtu)
		fl->path_mtu = back->path_mtu = (uint16_t)r->path_mtu;
	l->role = ROLE_ACCEPTOR;
	lane_set_state(l, LANE_HELD);
	l->peer = (int8_t)peer;
	l->acceptor = (struct lane_acceptor){.peer_lane = r->lane,
					     .settled = m.psn,
					     .settling = m.psn,
					     .settle_us = now_us(e),
					     .gaps.holes = POOL_NONE};
	l->gen = r->gen;
	lane_accepted_add(e, fl);
	l->policy = r->policy;
	order_accept(e, fl, r);
	marks_begin(l, &m);
	seal_agree(l, r);
	l->overlap = passed;
	l->far = (struct lane_far){.ackreq_end = m.psn, .cut_us = now_us(e)};
	l->far.cwnd = UINT32_MAX >> 1; /* no loss was seen */
	l->start_acked = true;
	l->opened = l->progress = e->now;
	fl->seen = back->seen = e->now; /* who agrees to a lane does not find it idle next */
	l->acceptor.gaps.clock.last = e->now;
	/* what an older version adds does not show, nor what comes without a seal */
	l->ahead = r->own ||
		   (r->one_read && (!(e->peer_features[peer] & PEER_FEATURE_OWN) || !r->sealed));
	if (r->one_read) {
		struct lane_reads *x = reads_begin(e, fl);

		if (!x) {
			lane_close(e, fl, REASON_NO_ROOM, false);
			return REASON_NO_ROOM;
		}
		x->depth = 1;
	}
	lane_guard(e, fl);
	return REASON_NONE;
}

/* The peer will agree to a lane of requests that go to its side, when there is one. */
static void rx_offer(struct engine *e, unsigned int peer, const struct report *r)
{
	int rule = rule_match(e->rules, e->nrules, &r->key.src, &r->key.dst, r->key.vlan);

	if (rule >= 0 && e->rules[rule].peer == (int8_t)peer && (e->rules[rule].seal || !r->sealed))
		learn_offered(e, r);
}

/* Whether the peer resumes a lane of the queue pair that had the number of @fl before: the RTU of
 * the next one has passed here, and ended the lane, and is on its way to the peer. What the lane
 * holds must not come to the next one. Should it be another lane, then the peer asks again. */
static bool of_the_former(const struct engine *e, const struct report *r, const struct flow *fl)
{
	return r->resume && fl && fl->lane.role == ROLE_NONE && fl->learned == LEARNED_CM &&
	       e->now - fl->born < RTU_WAY_NS;
}

/* The peer wants to open the lane of requests that come from its side. */
static void rx_open(struct engine *e, unsigned int peer, const struct report *r)
{
	struct flow_key back_key = {
		.src = r->key.dst, .dst = r->key.src, .dqpn = r->lqpn, .vlan = r->key.vlan};
	struct flow *fl = flow_by_key(e, &r->key), *back = flow_by_key(e, &back_key);
	enum lane_reason why;

	if (open_again(e, peer, r, fl) || of_the_former(e, r, fl))
		return;
	why = open_verdict(e, peer, r, &back_key, &fl, &back);
	if (why == REASON_NONE)
		why = accept_begin(e, peer, r, fl, back);
	if (why != REASON_NONE) {
		refuse(e, peer, r, why);
		return;
	}
	COUNT(e, OPENS);
	accept_lane(e, peer, r);
	progress_due(e, fl, true);
	engine_event(e, EVENT_HELD, fl, 0, 0);
	if (flow_let_go(e, fl))
		lane_drain(e, fl, REASON_OPERATOR);
}

/* A report about a lane of ours that we no longer have: the peer should close it as well. */
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
	uint32_t i = lane_index(r->lane);
	struct flow *fl = i < e->nflows ? flow_ref(e, i) : NULL;

	if (fl && fl->used && fl->lane.role == ROLE_OPENER && fl->lane.gen == r->gen &&
	    fl->lane.peer == (int8_t)peer)
		return fl;
	return NULL;
}

/* By number and generation: the key is missing in an answer to a stale report. */
static struct flow *accepted_lane(struct engine *e, unsigned int peer, const struct report *r)
{
	return lane_accepted_find(e, (int8_t)peer, r->lane, r->gen);
}

/* The opener asks whether the number has another owner. Only what the responder has said here
 * counts. The opener may not have heard that the lane was closed for it. */
static void rx_disputed(struct engine *e, unsigned int peer, const struct report *r)
{
	struct flow *fl = accepted_lane(e, peer, r);
	struct report gone = {.type = REPORT_CLOSE,
			      .lane = r->lane,
			      .gen = r->gen,
			      .key = r->key,
			      .reason = REASON_INCARNATION};

	if (fl) {
		owner_judge(e, fl, EVIDENCE_PEER_ASKS);
		return;
	}
	fl = flow_by_key(e, &r->key);
	if (!fl || fl->lane.role != ROLE_NONE || fl->lane.reason != REASON_INCARNATION)
		gone.reason = REASON_NONE;
	e->sink.report(e->sink.ctx, peer, &gone);
}

static void rx_close(struct engine *e, unsigned int peer, const struct report *r)
{
	struct flow *fl;

	if (!r->by_opener) {
		fl = own_lane(e, peer, r);
		if (!fl || fl->lane.state == LANE_FAULT)
			return;
		if (r->reason == REASON_INCARNATION &&
		    owner_judge(e, fl, EVIDENCE_PEER_HEARD) == VERDICT_OTHER)
			return;
		/* the acceptor closed it: resume there if something is owed, else close here too */
		if (fl->lane.state == LANE_OPENING ||
		    (psn_is(fl->lane.una.psn, fl->lane.epsn.psn) && !psn_map_differs(e, &fl->lane)))
			lane_close(e, fl, r->reason, false);
		else
			stream_tx_restart(e, fl);
		return;
	}
	if (r->reason == REASON_DISPUTED) {
		rx_disputed(e, peer, r);
		return;
	}
	fl = accepted_lane(e, peer, r);
	if (!fl)
		return;
	if (!numbers_lost(&fl->lane))
		fl->lane.ahead = false; /* an opener that lives ends no lane whose numbers differ */
	/* it may have forgotten the lane (restart), or have closed it when nothing was owed: what
	 * has come in order is still delivered, unless it was refused */
	if ((r->reason == REASON_NONE || r->reason == REASON_PEER_RESTARTED) &&
	    !psn_is(fl->lane.una.psn, fl->lane.epsn.psn) && !fl->lane.refusal)
		lane_drain(e, fl, r->reason);
	else if (r->reason == REASON_OPERATOR || r->reason == REASON_BYPASS)
		stream_rx_let_go(e, fl);
	else
		lane_close(e, fl, r->reason, false);
}

/* The opener says which answers it has. */
static void rx_resp(struct engine *e, unsigned int peer, const struct report *r)
{
	struct flow *fl = flow_by_key(e, &r->key);
	struct report gone = {.type = REPORT_CLOSE, .lane = r->lane, .gen = r->gen, .key = r->key};

	if (!fl || fl->lane.role != ROLE_ACCEPTOR || fl->lane.gen != r->gen ||
	    fl->lane.peer != (int8_t)peer || fl->lane.acceptor.peer_lane != r->lane) {
		COUNT(e, BAD_REPORT);
		/* an opener that waits for answers here must begin anew */
		if (!accepted_lane(e, peer, r))
			e->sink.report(e->sink.ctx, peer, &gone);
		return;
	}
	if (e->now - fl->lane.acceptor.gaps.clock.last >= UNHEARD_NS)
		progress_due(e, fl, true);
	resp_tx_progress(e, fl, r);
}

/* The opener tells of READs that its host is going to ask. Where the lane is not known they come as
 * packets, and draw what those draw. */
static void rx_ahead(struct engine *e, unsigned int peer, const struct report *r)
{
	struct flow *fl = accepted_lane(e, peer, r);

	if (fl && fl->lane.role == ROLE_ACCEPTOR)
		ahead_make(e, fl, &r->reads);
	else
		COUNT(e, BAD_REPORT);
}

/* The peer agrees to a lane of ours. */
static void rx_accept(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	bool first = !l->reopen;

	if (l->accepted && first)
		return;
	l->accepted = true;
	l->reopen = false;
	order_resumed(e, fl);
	l->opener.reported_us = now_us(e);
	if ((l->state == LANE_OPENING || (l->state == LANE_HELD && !l->report_heard)) &&
	    e->now - l->opened < OPEN_RETRY_NS) /* to the only OPEN */
		rtt_sample(e, &l->rtt, (uint32_t)((e->now - l->opened) / NSEC_PER_USEC));
	if (l->state == LANE_OPENING) {
		lane_set_state(l, LANE_HELD);
		lane_guard(e, fl);
		/* what the host repeated passed by until now: its arrival tells no round trip */
		psn_raise(&l->overlap, l->epsn.psn);
		engine_event(e, EVENT_HELD, fl, 0, 0);
	}
	if (first && handover_outrun(e, l)) {
		stream_tx_restart(e, fl); /* the peer came late: agree where the responder is */
		return;
	}
	ack_list(e, fl);
	pace_run(e, fl);
	if (reads_of(e, l))
		resp_report_due(e, fl, true);
}

/* The peer refuses a lane of ours. */
static void rx_refuse(struct engine *e, struct flow *fl, const struct report *r)
{
	COUNT(e, REFUSALS);
	fl->lane.reason = r->reason;
	if (fl->lane.state == LANE_OPENING) {
		engine_event(e, EVENT_REFUSED, fl, 0, 0);
		lane_send_rest(e, fl);
		lane_close(e, fl, r->reason, false);
		flow_open_at(fl, e->now + REFUSED_RETRY_NS);
	} else if (!fl->lane.accepted && !fl->lane.reopen) {
		fl->offered = 0; /* it had offered to agree, and there is custody */
		stream_tx_restart(e, fl);
	}
	/* else it refuses to resume a lane with custody: the timer asks until peer_timeout */
}

void agreement_rx(struct engine *e, unsigned int peer, const struct report *r)
{
	struct flow *fl;

	switch (r->type) {
	case REPORT_OPEN:
		if (r->offer)
			rx_offer(e, peer, r);
		else
			rx_open(e, peer, r);
		return;
	case REPORT_CLOSE:
		rx_close(e, peer, r);
		return;
	case REPORT_RESP:
		rx_resp(e, peer, r);
		return;
	case REPORT_ORDER:
		order_rx(e, peer, r);
		return;
	case REPORT_AHEAD:
		rx_ahead(e, peer, r);
		return;
	default:
		break;
	}
	/* the others are about a lane of ours */
	fl = own_lane(e, peer, r);
	if (!fl) {
		stale_lane(e, peer, r);
		return;
	}
	if (fl->lane.state == LANE_FAULT)
		return;
	switch (r->type) {
	case REPORT_ACCEPT:
		rx_accept(e, fl);
		return;
	case REPORT_REFUSE:
		rx_refuse(e, fl, r);
		return;
	case REPORT_PROGRESS:
		stream_tx_progress(e, fl, r);
		return;
	default:
		COUNT(e, BAD_REPORT);
	}
}
