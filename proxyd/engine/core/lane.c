// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The states of a lane, and the clocks of its timers.
 *
 *	WATCH --open--> OPENING --peer accepts--> HELD --drain--> DRAIN --ledger empty--> WATCH
 *	  (single mode: straight to HELD)           \--custody lost--> FAULT --QP gone--> WATCH
 *
 * How custody begins is told in link/handover.c, how a lane ends in close.c.
 */
#include "engine/core/core.h"

#define RTO_MIN_LAN_US 4000u
#define RTO_MIN_WAN_US 10000u
#define RTO_FIRST_US   200000u
#define RTO_MAX_US     2000000u

NAMES(lane_state_name, enum lane_state, LANE_STATES, "watch", "opening", "held", "drain", "fault")
NAMES(learn_source_name, enum learn_source, LEARN_SOURCES, "none", "cm", "psn", "immediate", "echo",
      "peer", "hint")

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
		[REASON_NOT_READY] = "responder-not-ready",
		[REASON_UNSEALED] = "not-sealed",
		[REASON_OPCODE] = "unknown-opcode",
		[REASON_DISPUTED] = "number-disputed",
		[REASON_BYPASS] = "path-bypass",
		[REASON_INVARIANT] = "invariant",
	};

	return r < REASONS && names[r] ? names[r] : "?";
}

/* A lane that begins again may still be in lists of the engine. It stays there. */
void lane_init(struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct lane_listed listed = l->listed;

	memset(l, 0, sizeof(*l));
	l->listed = listed;
	l->state = LANE_WATCH;
	l->peer = PEER_NONE;
	l->credit = 0xff;
	marks_lost(l);
	l->overlap = l->watch.asked = l->watch.went_on = l->watch.since = WIRE_NONE;
	l->reads_page = POOL_NONE;
	for (int i = 0; i < LANE_PROBES; i++)
		l->learn.probe[i].psn = WIRE_NONE;
	held_init(&l->held);
	mq_list_init(&l->reads);
}

/* ---- timers' inputs ---- */

void rtt_sample(const struct engine *e, struct rtt *t, uint32_t us)
{
	uint32_t dev;

	if (e->stood && e->now < e->stood + us * NSEC_PER_USEC)
		return;
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

uint64_t rtt_capped_us(const struct rtt *t, uint64_t us)
{
	uint64_t most = 2ull * t->minrtt_us;

	most = MAX(most, RTO_MAX_US);
	return us < most ? us : most;
}

/* What a round trip may last longer than the mean. A window that grows makes a queue, which no
 * round trip before has seen; and in single mode an early timer resends all that is on its way. */
static uint64_t rtt_margin_us(const struct lane *l)
{
	uint64_t us = 4ull * l->rtt.rttvar_us;

	if (l->role == ROLE_SINGLE && us < l->rtt.srtt_us / 2)
		us = l->rtt.srtt_us / 2;
	return us;
}

/* spec: RFC 6298, with the port's floor, doubled with each timeout without progress. */
uint64_t lane_rto_ns(const struct lane *l)
{
	uint64_t us = RTO_FIRST_US,
		 floor = l->role == ROLE_ACCEPTOR ? RTO_MIN_LAN_US : RTO_MIN_WAN_US;

	if (l->rtt.srtt_us)
		us = l->rtt.srtt_us + rtt_margin_us(l);
	else if (l->role == ROLE_ACCEPTOR)
		us = 20000;
	us = MAX(us, floor);
	us <<= l->backoff;
	/* alone, all that is on its way is sent again: not before it can have been answered, and
	 * a timeout says that a round trip takes longer than was thought */
	if (l->role == ROLE_SINGLE)
		us = MIN(us, MAX(RTO_MAX_US, 2ull * l->rtt.srtt_us));
	else
		us = rtt_capped_us(&l->rtt, us);
	return us * NSEC_PER_USEC;
}

/* A responder without credits (with a shared receive queue, say) says AETH_ACK_UNLIMITED in its
 * ACKs, and a requester that is told so once may never look at credits again. So only an ACK
 * changes between the two kinds: some responders do not give credits in answers. */
bool lane_credit(struct lane *l, uint8_t syndrome, bool answer)
{
	uint8_t was = l->credit;

	if (!aeth_is_ack(syndrome) ||
	    (answer && was != 0xff &&
	     (syndrome == AETH_ACK_UNLIMITED || was == AETH_ACK_UNLIMITED)))
		return false;
	l->credit = syndrome;
	return !was && syndrome;
}

/* ---- states ---- */

void lane_set_state(struct lane *l, enum lane_state s)
{
	l->state = (uint8_t)s;
}

static bool hold(struct engine *e, struct flow *fl, bool on)
{
	const struct flow *back = flow_partner(e, fl);
	struct template t = fl->tmpl;

	if (on && !back)
		return false;
	if (back && back->tmpl.len)
		t = back->tmpl;
	else if (t.len)
		template_mirror(&t);
	if (e->sink.hold &&
	    e->sink.hold(e->sink.ctx, &fl->key, back ? back->key.dqpn : PSN_NONE, &t, on) && on)
		return false;
	fl->lane.fenced = on;
	return true;
}

/* The lane is to get numbers that its host does not know. False when nothing can fence it. */
bool lane_fence(struct engine *e, struct flow *fl)
{
	if (!fl->lane.fenced && !hold(e, fl, true))
		return false;
	fl->lane.numbered = true;
	return true;
}

/* The lane is held from here on. What passes while we are gone would only disturb who comes next:
 * a responder that has gone on without its appliance may not have the answers any more that this
 * one missed. But where nobody can keep it from passing that is no reason not to hold the lane. */
void lane_guard(struct engine *e, struct flow *fl)
{
	if (e->cfg.fence && !fl->lane.fenced)
		(void)hold(e, fl, true);
}

bool engine_holds(struct engine *e, const struct flow_key *requests)
{
	const struct flow *fl = flow_by_key(e, requests);

	return fl && fl->lane.fenced;
}

void lane_guard_again(struct engine *e, struct flow *fl)
{
	if (fl->lane.fenced)
		(void)hold(e, fl, true);
}

/** lane_unfence - nothing of the lane does harm any more, should we be gone. */
void lane_unfence(struct engine *e, struct flow *fl)
{
	if (fl->lane.fenced)
		(void)hold(e, fl, false);
}

/* ---- lanes that peers have opened, by their numbers ---- */

static uint32_t *accepted_head(struct engine *e, int8_t peer, uint32_t number)
{
	uint64_t h = ((uint64_t)(uint8_t)peer << 32 | number) * 0x9e3779b97f4a7c15u;

	engine_change(e, &e->accepted[h >> 32 & e->accepted_mask], sizeof(e->accepted[0]));
	return &e->accepted[h >> 32 & e->accepted_mask];
}

void lane_accepted_add(struct engine *e, struct flow *fl)
{
	uint32_t *head = accepted_head(e, fl->lane.peer, fl->lane.acceptor.peer_lane);

	fl->lane.acceptor.next_accepted = *head;
	*head = flow_index(e, fl);
}

static void accepted_del(struct engine *e, const struct flow *fl)
{
	uint32_t *at = accepted_head(e, fl->lane.peer, fl->lane.acceptor.peer_lane);

	while (*at != flow_index(e, fl))
		at = &flow_ref(e, *at)->lane.acceptor.next_accepted;
	*at = fl->lane.acceptor.next_accepted;
}

struct flow *lane_accepted_find(struct engine *e, int8_t peer, uint32_t number, uint32_t gen)
{
	uint32_t i = *accepted_head(e, peer, number);

	for (; i != FLOW_NONE; i = e->flows[i].lane.acceptor.next_accepted) {
		const struct lane *l = &e->flows[i].lane;

		if (l->peer == peer && l->acceptor.peer_lane == number && l->gen == gen)
			return flow_ref(e, i);
	}
	return NULL;
}

/** lane_may_repeat - whether the host may have sent @psn to a lane that is gone. */
bool lane_may_repeat(const struct lane *l, struct wire_psn psn)
{
	return psn_known(l->overlap) && psn_before(psn, l->overlap) &&
	       psn_diff(l->overlap, psn) <= (int32_t)WINDOW_SPAN;
}

/** lane_sent_before - below this the host is known to have sent, PSN_NONE if that is not known. */
struct wire_psn lane_sent_before(const struct lane *l)
{
	return !psn_known(l->overlap) || psn_after(l->epsn.psn, l->overlap) ? l->epsn.psn
									    : l->overlap;
}

/* Back to WATCH with nothing retained; what is known of the requests' sequence stays. */
void lane_reset(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct wire_psn sent;
	struct lane keep = *l;

	if (l->role != ROLE_NONE)
		lane_drop_all(e, fl);
	sent = lane_sent_before(l); /* host and wire number alike again: reads_end() */
	if (l->role == ROLE_ACCEPTOR)
		accepted_del(e, fl);
	e->in_fault -= l->state == LANE_FAULT;
	lane_unfence(e, fl);
	for (uint32_t which = 0; which < TIMERS; which++)
		timer_cancel(e, fl, which);
	lane_init(fl);
	l->overlap = sent;
	l->reason = keep.reason;
	l->credit = keep.credit;
	l->count = keep.count;
	if (keep.role == ROLE_ACCEPTOR && opener_gone(keep.reason)) {
		/* nobody keeps what its opener had promised beyond (fault/abandoned.c) */
		l->near.acked = mark_same_host(keep.una);
		if (keep.policy != POLICY_OFF)
			l->waits_ms = MAX(ms_of(e->now), 1);
	}
}
