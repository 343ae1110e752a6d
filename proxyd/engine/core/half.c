// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Flows of which one direction only is known: somebody has sent a packet, and nobody whose answer
 * fits. A packet with a right ICRC can come from anyone, for any queue pair, so there may be any
 * number of them, while connections need their places for long.
 *
 * Therefore half-known flows have places of their own: at most @half_max of them, and of each
 * source host no more than a part (hosts that share a slot of the hash share that). They live for
 * seconds without packets. Two lists, oldest first: flows that were seen once, and those that came
 * again, as all do that learning has a use for. A new one takes the place of the oldest that was
 * seen once, and of one that came again only where these take most of the room; but of none that
 * was seen a moment ago. So a flood finds few places, and connections find some after a few tries.
 *
 * What the connection manager, a peer or a former engine names is paired at once, past the limits.
 */
#include "engine/core/core.h"

#include <xxhash.h>

#define HALF_MOST   4096u
#define HOST_LEAST  64u
#define LIFE_NS	    (10 * NSEC_PER_SEC)
/* One that was seen so lately keeps its place. */
#define YOUNG_NS    (100 * NSEC_PER_MSEC)
#define EXPIRE_MOST 256u
#define WARN_NS	    (10 * NSEC_PER_SEC)
/* A flow that is on the wrong side is believed to have moved after this. */
#define MOVED_NS    NSEC_PER_SEC

uint32_t half_most(const struct engine_config *cfg)
{
	return MIN(cfg->max_conns * 2, HALF_MOST);
}

static uint16_t *host_of(struct engine *e, const struct ip_addr *a)
{
	uint16_t *n = &e->half_host[XXH3_64bits_withSeed(a, sizeof(*a), e->cfg.seed) % HALF_HOSTS];

	engine_change(e, n, sizeof(*n));
	return n;
}

static void list_add(struct engine *e, struct flow *fl)
{
	struct half_list *h = &e->half[fl->again];
	uint32_t i = flow_index(e, fl);

	fl->next_half = FLOW_NONE;
	fl->prev_half = h->tail;
	if (h->tail == FLOW_NONE)
		h->head = i;
	else
		flow_ref(e, h->tail)->next_half = i;
	h->tail = i;
	h->n++;
}

static void list_del(struct engine *e, struct flow *fl)
{
	struct half_list *h = &e->half[fl->again];

	if (fl->next_half == FLOW_NONE)
		h->tail = fl->prev_half;
	else
		flow_ref(e, fl->next_half)->prev_half = fl->prev_half;
	if (fl->prev_half == FLOW_NONE)
		h->head = fl->next_half;
	else
		flow_ref(e, fl->prev_half)->next_half = fl->next_half;
	h->n--;
}

void half_add(struct engine *e, struct flow *fl)
{
	fl->half = true;
	fl->again = false;
	list_add(e, fl);
	++*host_of(e, &fl->key.src);
}

void half_del(struct engine *e, struct flow *fl)
{
	if (!fl->half)
		return;
	list_del(e, fl);
	fl->half = false;
	fl->retry_open = 0;
	--*host_of(e, &fl->key.src);
}

void half_seen(struct engine *e, struct flow *fl)
{
	list_del(e, fl);
	fl->again = true;
	fl->seen = e->now;
	list_add(e, fl);
}

/* The one whose place a new one may take; NULL when there is none. */
static struct flow *oldest(struct engine *e)
{
	struct half_list *once = &e->half[0], *again = &e->half[1];
	struct flow *fl =
		flow_at(e, again->n > e->half_max / 4 * 3 || once->head == FLOW_NONE ? again->head
										     : once->head);

	return fl && e->now - fl->seen >= YOUNG_NS ? fl : NULL;
}

static void warn(struct engine *e, const struct flow *fl)
{
	COUNT(e, TABLE_FULL);
	if (e->crowded_at && e->now - e->crowded_at < WARN_NS)
		return;
	e->crowded_at = e->now;
	if (fl)
		engine_event(e, EVENT_CROWDED, fl, e->half[0].n + e->half[1].n, 0);
}

struct flow *half_meet(struct engine *e, const struct flow_key *key, enum engine_port side)
{
	bool full = e->half[0].n + e->half[1].n >= e->half_max;
	struct flow *old = full ? oldest(e) : NULL;

	if (*host_of(e, &key->src) >= MAX(e->half_max / 4, HOST_LEAST) || (full && !old)) {
		warn(e, flow_at(e, e->half[e->half[0].head == FLOW_NONE].head));
		return NULL;
	}
	if (old)
		flow_free(e, old);
	return flow_create(e, key, side);
}

void half_expire(struct engine *e)
{
	for (int k = 0; k < 2; k++) {
		for (uint32_t n = 0; n < EXPIRE_MOST && e->half[k].head != FLOW_NONE; n++) {
			struct flow *fl = flow_ref(e, e->half[k].head);

			if (e->now - fl->seen < LIFE_NS)
				break;
			flow_free(e, fl);
		}
	}
}

/* A frame of @fl, half-known, has come by the other port. The first frame may have been forged, so
 * it does not settle the side: rules do, or else frames from the LAN, or after MOVED_NS the WAN. */
bool half_moves(struct engine *e, struct flow *fl, enum engine_port port)
{
	struct flow there = {.key = fl->key, .side = (uint8_t)port};

	flow_match_rule(e, &there);
	if (there.rule < 0 || (fl->rule >= 0 && port == PORT_WAN && e->now - fl->seen < MOVED_NS))
		return false;
	fl->side = (uint8_t)port;
	fl->rule = there.rule;
	fl->candidate = FLOW_NONE;
	fl->matches = 0;
	fl->last_match_psn = PSN_NONE;
	fl->path_mtu = (uint16_t)e->rules[fl->rule].path_mtu;
	fl->tmpl.len = 0;
	lane_init(fl);
	return true;
}
