// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Turns and tokens: which lane may send next, and when.
 *
 * Lanes with something to send stand in one circular list. Each turn a lane sends what its part
 * (stream_tx.c, pseudo_requester.c) wants to, up to QUANTUM bytes, and goes to the back while it
 * has more, so that many lanes share the WAN evenly whatever their message sizes.
 *
 * The WAN is paced by a token bucket at the configured rate. A lane stops as soon as the bucket is
 * empty and the engine asks to be woken when QUANTUM bytes are there again: small bursts, few
 * wake-ups. The LAN is not paced: its link and the port's ring hold it back. A port without room
 * (-EAGAIN) ends the turn; the lane stays in the list and tries again after RETRY_NS.
 */
#include "engine/core/roles.h"

#define QUANTUM	       16384
#define RETRY_NS       (50 * NSEC_PER_USEC)
#define TURNS_PER_TICK 4096u

static void refill(struct engine *e)
{
	uint64_t dt = e->now - e->tokens_at;

	if (!e->cfg.wan_rate)
		return;
	/* whole tokens only, so that no fraction is lost at any call rate */
	if (dt > NSEC_PER_SEC)
		dt = NSEC_PER_SEC;
	uint64_t got = e->cfg.wan_rate * dt / NSEC_PER_SEC;

	if (!got)
		return;
	if (e->now - e->tokens_at > NSEC_PER_SEC)
		e->tokens_at = e->now;
	else
		e->tokens_at += got * NSEC_PER_SEC / e->cfg.wan_rate;
	e->tokens += (int64_t)got;
	if (e->tokens > (int64_t)e->cfg.wan_burst)
		e->tokens = e->cfg.wan_burst;
}

bool pace_may_send(struct engine *e)
{
	return !e->cfg.wan_rate || e->tokens > 0;
}

void pace_sent(struct engine *e, uint32_t len)
{
	if (e->cfg.wan_rate)
		e->tokens -= len;
}

static enum engine_port run_port(const struct flow *fl)
{
	return other_port(fl->side);
}

void pace_run(struct engine *e, struct flow *fl)
{
	struct run_list *list = &e->run[run_port(fl)];
	uint32_t i = flow_index(e, fl);

	if (!fl->lane.run_listed) {
		fl->lane.run_listed = true;
		fl->lane.next_run = FLOW_NONE;
		if (list->tail == FLOW_NONE)
			list->head = i;
		else
			e->flows[list->tail].lane.next_run = i;
		list->tail = i;
	}
	engine_wake_at(e, e->now);
}

static struct flow *take_first(struct engine *e, struct run_list *list)
{
	struct flow *fl = &e->flows[list->head];

	list->head = fl->lane.next_run;
	if (list->head == FLOW_NONE)
		list->tail = FLOW_NONE;
	fl->lane.run_listed = false;
	return fl;
}

/*
 * What travels in the direction of @fl: its own requests, and the responses to those of its
 * partner. Returns true when there is more.
 */
static bool turn(struct engine *e, struct flow *fl)
{
	struct flow *back = flow_partner(e, fl);
	const struct role_ops *role = role_of(e, &fl->lane);
	bool more = false;

	if (back && role_of(e, &back->lane)->send_resp)
		more = role_of(e, &back->lane)->send_resp(e, back, QUANTUM);
	if (role->send)
		more |= role->send(e, fl, QUANTUM);
	return more;
}

/* Give the lanes of one port their turns. Returns when the port wants to be looked at again. */
static uint64_t run_list(struct engine *e, enum engine_port port)
{
	struct run_list *list = &e->run[port];

	for (uint32_t n = 0; list->head != FLOW_NONE; n++) {
		struct flow *fl;
		bool more;

		if (port == PORT_WAN && !pace_may_send(e))
			return e->now +
			       ((uint64_t)-e->tokens + QUANTUM) * NSEC_PER_SEC / e->cfg.wan_rate;
		if (n == TURNS_PER_TICK)
			return e->now;
		fl = take_first(e, list);
		if (!fl->used)
			continue;
		if (run_port(fl) != port) {
			/* it is another flow than the one that stood here */
			pace_run(e, fl);
			continue;
		}
		e->port_full = false;
		more = turn(e, fl);
		if (more)
			pace_run(e, fl);
		if (e->port_full)
			return e->now + RETRY_NS;
	}
	return UINT64_MAX;
}

void pace_tick(struct engine *e)
{
	uint64_t lan, wan;

	refill(e);
	lan = run_list(e, PORT_LAN);
	wan = run_list(e, PORT_WAN);
	/* pace_run() asked for this tick; from here on only what is still to be done counts */
	engine_wake_at(e, lan < wan ? lan : wan);
}
