// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Turns and tokens: which lane may send next, and when.
 *
 * Lanes with something to send stand in a list for each peer, and in one for the LAN. Each turn a
 * lane sends what its part (stream_tx.c, pseudo_requester.c) wants to, up to QUANTUM bytes, and
 * goes to the back while it has more, so that many lanes share the WAN evenly whatever their
 * message sizes.
 *
 * The WAN is paced by a token bucket at the configured rate, and with `wan-rate = auto` each link
 * by one of its own at the pace that its controller has found (rate.c). A lane stops as soon as a
 * bucket is empty and the engine asks to be woken when QUANTUM bytes are there again: small bursts,
 * few wake-ups. The LAN is not paced: its link and the port's ring hold it back. A port without
 * room (-EAGAIN) ends the turns there; the lanes stay in the list until engine_port_again().
 */
#include "engine/core/roles.h"

#define QUANTUM	       16384
#define TURNS_PER_TICK 4096u
/* Bytes that may leave at once; 1 ms of the rate where that is more. */
#define BURST_MIN      65536

/* Whole tokens only, so that no fraction is lost at any call rate. */
static void refill(uint64_t now, uint64_t rate, int64_t most, uint64_t *at, int64_t *tokens)
{
	uint64_t dt = now - *at, got;

	if (!rate)
		return;
	if (dt > NSEC_PER_SEC)
		dt = NSEC_PER_SEC;
	got = rate * dt / NSEC_PER_SEC;
	if (!got)
		return;
	if (now - *at > NSEC_PER_SEC)
		*at = now;
	else
		*at += got * NSEC_PER_SEC / rate;
	*tokens += (int64_t)got;
	if (*tokens > most)
		*tokens = most;
}

static int64_t burst(const struct engine *e, uint64_t rate)
{
	int64_t most = (int64_t)(rate / 1000);

	if (e->cfg.wan_burst)
		return e->cfg.wan_burst;
	return most > BURST_MIN ? most : BURST_MIN;
}

void pace_init(struct engine *e)
{
	e->tokens = burst(e, e->cfg.wan_rate);
	e->tokens_at = e->now;
}

/* The pace that was found for @k; 0 where none is looked for. */
static uint64_t link_pace(const struct engine *e, const struct wan_link *k)
{
	return e->cfg.wan_auto ? rate_pace(&k->rate) : 0;
}

/* A bucket that has more than it may hold now has the most; who waits for tokens looks again. */
void pace_limits(struct engine *e)
{
	int64_t most = burst(e, e->cfg.wan_rate);

	if (e->tokens > most)
		e->tokens = most;
	for (unsigned int i = 0; i < PEER_MAX; i++) {
		struct wan_link *k = link_at(e, i);

		most = burst(e, rate_pace(&k->rate));
		if (k->tokens > most)
			k->tokens = most;
	}
	engine_wake_at(e, e->now);
}

static void refill_all(struct engine *e)
{
	refill(e->now, e->cfg.wan_rate, burst(e, e->cfg.wan_rate), &e->tokens_at, &e->tokens);
	if (!e->cfg.wan_auto)
		return;
	for (unsigned int i = 0; i < PEER_MAX; i++) {
		struct wan_link *k = link_at(e, i);
		uint64_t pace = rate_pace(&k->rate);

		refill(e->now, pace, burst(e, pace), &k->tokens_at, &k->tokens);
	}
}

bool pace_may_send(struct engine *e)
{
	const struct wan_link *k = &e->link[e->via];

	return (!e->cfg.wan_rate || e->tokens > 0) && (!link_pace(e, k) || k->tokens > 0);
}

void pace_sent(struct engine *e, uint32_t len)
{
	struct wan_link *k = link_at(e, e->via);

	if (e->cfg.wan_rate)
		e->tokens -= len;
	if (link_pace(e, k))
		k->tokens -= len;
}

/* When there are tokens for a turn again. */
static uint64_t tokens_at(const struct engine *e, int64_t tokens, uint64_t rate)
{
	uint64_t missing = tokens > 0 ? 0 : (uint64_t)-tokens + QUANTUM;

	return rate ? e->now + missing * NSEC_PER_SEC / rate : e->now;
}

static struct run_list *list_of(struct engine *e, const struct flow *fl)
{
	return other_port(fl->side) == PORT_LAN ? &e->run_lan : &link_at(e, flow_link(e, fl))->run;
}

static void enqueue(struct engine *e, struct flow *fl)
{
	struct run_list *list = list_of(e, fl);
	uint32_t i = flow_index(e, fl);

	if (!fl->lane.run_listed) {
		flow_change(e, fl);
		fl->lane.run_listed = true;
		fl->lane.next_run = FLOW_NONE;
		if (list->tail == FLOW_NONE)
			list->head = i;
		else
			flow_ref(e, list->tail)->lane.next_run = i;
		list->tail = i;
	}
}

void pace_run(struct engine *e, struct flow *fl)
{
	enqueue(e, fl);
	engine_wake_at(e, e->now);
}

static struct flow *take_first(struct engine *e, struct run_list *list)
{
	struct flow *fl = flow_ref(e, list->head);

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

/* When the lanes of @list, which go over link @k of the WAN (NULL: the LAN), may have a turn. */
static uint64_t may_turn(const struct engine *e, const struct wan_link *k)
{
	uint64_t all, own;

	if (!k)
		return e->now;
	all = tokens_at(e, e->tokens, e->cfg.wan_rate);
	own = tokens_at(e, k->tokens, link_pace(e, k));
	return all > own ? all : own;
}

/* Give the lanes of one list their turns. Returns when the list wants to be looked at again. */
static uint64_t run_list(struct engine *e, struct run_list *list, const struct wan_link *k)
{
	enum engine_port port = k ? PORT_WAN : PORT_LAN;

	for (uint32_t n = 0; list->head != FLOW_NONE; n++) {
		uint64_t when = may_turn(e, k);
		struct flow *fl;
		bool more;

		if (when > e->now)
			return when;
		if (n == TURNS_PER_TICK)
			return e->now;
		fl = take_first(e, list);
		if (!fl->used)
			continue;
		if (list_of(e, fl) != list) {
			/* another flow than the one that stood here, or its rule has changed */
			pace_run(e, fl);
			continue;
		}
		e->wait[port].full = false;
		e->via = (uint8_t)flow_link(e, fl);
		more = turn(e, fl);
		if (more)
			enqueue(e, fl);
		if (e->wait[port].full)
			return list->head == FLOW_NONE ? UINT64_MAX : engine_port_again(e, port);
	}
	return UINT64_MAX;
}

void pace_tick(struct engine *e)
{
	uint64_t next;

	refill_all(e);
	next = run_list(e, &e->run_lan, NULL);
	for (unsigned int i = 0; i < LINKS; i++) {
		struct wan_link *k = link_at(e, (e->first_link + i) % LINKS);
		uint64_t when = run_list(e, &k->run, k);

		next = when < next ? when : next;
	}
	e->first_link = (uint8_t)((e->first_link + 1) % LINKS);
	/* pace_run() asked for this tick; from here on only what is still to be done counts */
	engine_wake_at(e, next);
}
