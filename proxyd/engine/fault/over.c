// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The third remedy, and the end. If the connection manager made the connection, the host gets a
 * DREQ. Then the lane stays for as long as something is heard from its host.
 *
 * A host that goes on answering without failing gets a round of probes now and then for ever. The
 * lane leaves FAULT when its QP has failed or answers no more, and nothing was heard from it for
 * FAULT_QUIET_NS. But a host that answers no more may be out of reach, and its QP live on: where
 * the numbers of the two ends differ what it asks next would mean another request to the responder.
 * So there it takes UNREACHABLE_NS, unless its host answers (core/host.c). (Not for ever: most QPs
 * that say nothing have failed, and their numbers get new owners.)
 *
 * Its peer's number may have another partner meanwhile, of which nobody has told: requests come
 * under that number as before, for they name their destination only, and refusals and probes go to
 * a queue pair that is no more. But who asks can be asked: a queue pair that sends requests and
 * answers no probe in MUTE_MAX rounds is not the one that was told. Nor is it where the number gets
 * answers to what it has asked another queue pair, and none to a probe: there a round will do.
 * Then the lane ends. Where the numbers of the two ends differ what passed would mean another
 * request to the responder, so it ends only when more rounds were refused than any requester
 * repeats its request: one that still asks has not taken the refusals for its own. As long as
 * another queue pair is heard under the number, a new round follows.
 *
 * One whose QP was seen to fail, or to be gone, and of which nothing was heard for BROKEN_NS since,
 * is fenced no more: it sends nothing that could be mistaken.
 */
#include "engine/fault/fault_priv.h"
#include "wire/cm.h"

#define FAULT_QUIET_NS (10 * NSEC_PER_SEC)
/* What asks on has given up by then (spec: IBTA 9.7.6.1.3): 8 times up to 4 times 4.3 s. */
#define UNREACHABLE_NS (150 * NSEC_PER_SEC)
#define MUTE_MAX       2
/* A requester repeats itself seven times at most (spec: IBTA 9.7.5.2.5), in 10 s or more each. */
#define MUTE_RENUMBERS 16
#define DREQS_MAX      2

/* What was in custody of a lane that may have been abandoned (fault.c) is lost after all. */
void fault_lost(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	if (l->reason != REASON_DISCONNECT)
		return;
	l->reason = REASON_TIMEOUT;
	lane_lost(e, fl, l->fault.packets, l->fault.bytes, false);
}

void fault_lives(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	l->present = 0;
	fault_lost(e, fl);
	if (!l->fault.gone)
		return;
	l->fault.gone = false;
	if (l->numbered) /* it was, until the QP seemed to be gone */
		(void)lane_fence(e, fl);
	else
		lane_guard(e, fl);
}

/* It was seen to fail, or its host answers and it does not. */
static bool failed(const struct lane *l)
{
	return l->fault.broken || l->fault.gone;
}

/* The lane ends: no application is left that could be told. */
static void let_go(struct engine *e, struct flow *fl, enum lane_reason why)
{
	struct flow *back = flow_partner(e, fl);

	if (back && failed(&fl->lane)) /* its queue pair number may be used again */
		back->stranded = false;
	lane_close(e, fl, why, false);
	/* its opener may be gone, or it does not know yet */
	if (back && back->lane.role == ROLE_ACCEPTOR && back->lane.refusal)
		lane_close(e, back, REASON_FAULT, true);
}

void over_others(struct engine *e, struct flow *fl)
{
	engine_event(e, EVENT_INCARNATION, fl, 0, 0);
	let_go(e, fl, REASON_INCARNATION);
	flow_unpair(e, fl);
}

void over_begin(struct engine *e, struct flow *fl)
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
	fault_arm(e, fl, 0);
}

static void disconnect(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	const struct flow *back = flow_partner(e, fl);
	uint8_t buf[FRAME_MAX];

	if (!back || !back->tmpl.len || !back->comm_id || !fl->comm_id)
		return;
	/* the transaction is ours; what the host answers, its peer has not asked for and ignores */
	engine_tx(e, fl, fl->side, buf,
		  cm_build_dreq(buf, &back->tmpl, l->fault.dreqs,
				(uint64_t)l->gen << 32 | back->comm_id, back->comm_id, fl->comm_id,
				back->key.dqpn));
	COUNT(e, FAULT_DREQS);
}

/* Whether the queue pair that asks or answers under the far number is another than was told. */
static bool others_now(const struct lane *l)
{
	if (l->fault.unheard || !(l->fault.other || l->fault.alive))
		return false;
	if (l->fault.renumbers)
		return l->fault.mute >= MUTE_RENUMBERS;
	/* one that was seen to fail has answered the round in which it failed */
	return l->fault.mute >= (l->fault.other ? !l->fault.broken : MUTE_MAX);
}

static bool silent_since_broken(const struct lane *l)
{
	return failed(l) && !l->fault.alive;
}

/* Whether the host of a lane in FAULT may not have seen it yet. */
bool fault_pending(const struct lane *l)
{
	return l->state == LANE_FAULT && !l->fault.unheard &&
	       (l->fault.stage != STAGE_OVER || l->fault.dreqs < DREQS_MAX ||
		(l->fenced && silent_since_broken(l)));
}

/* How long nothing must have been heard of the host. */
static uint64_t quiet_ns(const struct lane *l)
{
	return l->fault.renumbers && !failed(l) ? UNREACHABLE_NS : FAULT_QUIET_NS;
}

bool over_timer(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	if (l->fault.dreqs < DREQS_MAX) {
		disconnect(e, fl);
		l->fault.dreqs++;
		fault_arm(e, fl, TELL_NS);
		return false;
	}
	if (silent_since_broken(l) && e->now - l->progress >= BROKEN_NS)
		lane_unfence(e, fl);
	if (others_now(l)) {
		over_others(e, fl);
	} else if (((l->fault.alive && !l->fault.broken) || l->fault.other) &&
		   e->now - l->progress >= FAULT_QUIET_NS) {
		return true;
	} else if ((!l->fault.unheard || failed(l)) && e->now - fl->seen >= quiet_ns(l) &&
		   e->now - l->progress >= FAULT_QUIET_NS) {
		let_go(e, fl, l->reason);
	} else {
		fault_arm(e, fl, FAULT_QUIET_NS / 10);
	}
	return false;
}
