// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Backpressure on the near requester (roles OPENER and SINGLE), in this order: a CNP slows down a
 * host that knows congestion notifications; then ACKs are withheld (ack_tx.c); then packets that
 * find no room are dropped, and the requester is asked for them by a sequence NAK when there is
 * room again.
 */
#include "engine/near/near.h"

/* A requester is asked to slow down at most once in this time (what NICs themselves keep to). */
#define CNP_US	   50u
/* Room that must be there before a requester is asked to try again. */
#define ROOM_AGAIN (256u << 10)

/* The first step of backpressure: hosts that know congestion notifications slow down before
 * anything is withheld from them. */
void send_cnp(struct engine *e, struct flow *fl)
{
	const struct flow *back = flow_partner(e, fl);
	uint8_t buf[BUILD_MAX];

	if (now_us(e) - fl->lane.cnp_us < CNP_US || !back || !back->tmpl.len)
		return;
	if (engine_tx(e, fl->side, buf, build_cnp(buf, &back->tmpl, back->key.dqpn)))
		return; /* the next request brings another */
	fl->lane.cnp_us = now_us(e);
	COUNT(e, CNP_SENT);
}

/* A request was dropped for want of room: near_room() asks the requester for it again. */
void wait_for_room(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	COUNT(e, NO_ROOM);
	if (l->room_wait)
		return;
	l->room_wait = true;
	if (l->room_listed)
		return;
	l->room_listed = true;
	l->next_room = e->room_head;
	e->room_head = flow_index(e, fl);
}

bool over_rule_cap(const struct engine *e, const struct flow *fl, uint32_t len)
{
	uint64_t cap = fl->rule < 0 ? 0 : e->rules[fl->rule].cap;

	return cap && e->rule_bytes[fl->rule] + len > cap;
}

/*
 * Whether the rule's own cap, the span of the lane, or the records of READs, still keep the lane
 * from accepting a packet.
 */
static bool short_of_more(const struct engine *e, const struct flow *fl)
{
	uint64_t want = fl->rule < 0 ? 0 : e->rules[fl->rule].cap / 8;

	want = want < ROOM_AGAIN ? want : ROOM_AGAIN;
	if (want < fl->path_mtu + 128u)
		want = fl->path_mtu + 128u;
	return over_rule_cap(e, fl, (uint32_t)want) || mq_free_count(e->reads) < 2 ||
	       span_pressed(e, &fl->lane);
}

/*
 * Ask for what was dropped for want of room, when there is some. A requester that is asked too
 * early goes back in vain, and a few of those use up its retries.
 */
void near_room(struct engine *e)
{
	uint32_t later = FLOW_NONE, i;

	while ((i = e->room_head) != FLOW_NONE) {
		struct flow *fl = &e->flows[i];
		struct lane *l = &fl->lane;
		uint64_t want = pool_cap(e->pool, POOL_CUSTODY) / 8;

		if (pool_log_room(e->pool, POOL_CUSTODY, &l->log) <
		    (want < ROOM_AGAIN ? want : ROOM_AGAIN))
			break;
		e->room_head = l->next_room;
		if (fl->used && lane_keeps(l) && l->room_wait && l->state != LANE_FAULT &&
		    short_of_more(e, fl)) {
			l->next_room = later;
			later = i;
			continue;
		}
		l->room_listed = false;
		if (!fl->used || !lane_keeps(l) || !l->room_wait || l->state == LANE_FAULT)
			continue;
		l->room_wait = false;
		nak_send(e, fl);
	}
	while ((i = later) != FLOW_NONE) {
		later = e->flows[i].lane.next_room;
		e->flows[i].lane.next_room = e->room_head;
		e->room_head = i;
	}
}
