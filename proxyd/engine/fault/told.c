// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The first remedy. Every request that waits for an ACK, and every later one as long as the lane
 * stands, gets a fatal NAK with the responder's own syndrome.
 *
 * A NAK acknowledges what is before it. So it may name only the oldest request that its host does
 * not know to be done, and which one that is shows by where the host goes back to.
 *
 * row: CONV-8
 */
#include "engine/fault/fault_priv.h"
#include "engine/learn/learn.h"

#define TELLS_MAX 3
/* The requests of an ordered host wait so long, and longer while it is being told. */
#define UNTOLD_MS 1000u

void fault_untold(struct engine *e, const struct flow *fl)
{
	if (!fl->lane.fault.done && fl->rule >= 0 && e->rules[fl->rule].order)
		pair_untold(e, &fl->key, UNTOLD_MS);
}

/* Headers toward the near host, whose peer is not heard any more: its own, the other way round. */
static void mirror_headers(struct flow *back, const struct frame *f)
{
	if (!back->tmpl.len) {
		template_learn(&back->tmpl, f);
		template_mirror(&back->tmpl);
	}
}

/*
 * Whether a round of resending begins with the oldest request, @psn: after a silence, and nothing
 * older came in the two rounds before it. What a port doubles, brings late or in another order, and
 * a round whose first request was lost, must not move it on: the number may have a new owner.
 */
static bool oldest_again(const struct engine *e, struct lane *l, struct host_psn psn)
{
	uint16_t now = (uint16_t)(e->now / NSEC_PER_MSEC);
	bool begins = (uint16_t)(now - l->rounds.ms) >= ROUND_MS,
	     again = begins && psn_is(psn, l->rounds.psn) && psn_is(psn, l->fault.begins);

	l->rounds.ms = now;
	if (begins)
		l->fault.begins = l->rounds.psn;
	if (begins || psn_before(psn, l->rounds.psn))
		l->rounds.psn = psn;
	return again;
}

/* Whether @psn is where its host stood, and what came there would mean another request to the far
 * host: one that was only silent, while somebody refused a probe in its name, goes on there. */
static bool asked_there(const struct lane *l, struct host_psn psn)
{
	int32_t ahead = psn_diff(psn, l->near.told);

	return l->fault.renumbers && ahead > -HOST_WINDOW && ahead < HOST_WINDOW;
}

/* A request to a lane whose custody is lost. The NAK bears a PSN that the requester waits for. */
void fault_request(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	bool first = l->fault.strange, again;

	if (!icrc_ok(f))
		return;
	if (first) {
		l->fault.strange = l->fault.unheard = false;
		l->fault.unsure = l->reason == REASON_ORPHAN || l->reason == REASON_SOLO;
		l->near.told = l->rounds.psn = l->fault.begins = host_psn_of(f);
		mark_epsn_psn(l, psn_same_wire(host_psn_of(f)));
		mirror_headers(flow_partner(e, fl), f);
	}
	if (l->fault.broken && e->now - l->progress > BROKEN_NS) {
		if (first || !asked_there(l, host_psn_of(f))) {
			/* a QP in error sends nothing: this is another one of the same number */
			over_others(e, fl);
			learn_request(e, fl, f);
			engine_pass(e, fl, fl->side, f);
			return;
		}
		l->fault.broken = false;
		(void)lane_fence(e, fl); /* it was, until the QP seemed to have failed */
	}
	again = oldest_again(e, l, host_psn_of(f));
	if (again) {
		l->near.told = host_psn_of(f);
		l->fault.unsure &= first;
	}
	l->fault.below = !again && (l->fault.below || psn_before(host_psn_of(f), l->near.told));
	l->fault.alive = true;
	fault_lives(e, fl);
	/* a NAK acknowledges what is before it, which may be lost, or another owner's */
	if (!l->fault.unsure && !l->fault.below)
		ack_schedule(e, fl);
}

void fault_answer(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	const struct flow *back = flow_partner(e, fl);
	uint8_t buf[BUILD_MAX];

	if (l->near.ack_due && back && back->tmpl.len) {
		uint32_t len = build_ack(buf, &back->tmpl, back->key.dqpn, l->near.told.v,
					 l->refusal, l->near.acked.msn);

		if (engine_tx(e, fl, fl->side, buf, len)) {
			ack_again_later(e, fl);
			return;
		}
		COUNT(e, FATAL_NAKS);
	}
	l->near.ack_due = false;
}

/* Whether nobody knows how to speak to the host: neither it nor its peer was heard. */
static bool dumb(struct engine *e, const struct flow *fl)
{
	const struct flow *back = flow_partner(e, fl);

	return fl->lane.fault.unheard && !(back && back->tmpl.len);
}

bool tell_timer(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	if (dumb(e, fl)) {
		fault_arm(e, fl, ASK_TWICE_NS);
		return false;
	}
	fault_untold(e, fl);
	/* still asking: the NAK may have been lost, and this one too */
	if (l->fault.alive && ++l->fault.tells < TELLS_MAX) {
		l->fault.alive = false;
		fault_arm(e, fl, TELL_NS);
		return false;
	}
	return true;
}
