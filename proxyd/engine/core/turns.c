// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Turns and tokens: which lane may send next, and when.
 *
 * Lanes with something to send stand in lists for each peer, and in some for the LAN. Each turn a
 * lane sends what its part (stream_tx.c, pseudo_requester.c) wants to, up to QUANTUM bytes, and
 * goes to the back while it has more, so that lanes share the WAN evenly.
 *
 * A lane that had nothing to send until now stands in a list of its own and goes first, so that a
 * small message does not wait behind as many turns as there are bulk lanes (the idea of fq_codel,
 * spec: RFC 8290). After a turn in which it sent something it stands at the back of the others,
 * even with nothing more to send, and what it gets to send meanwhile waits for that place. So who
 * goes first has sent nothing for a whole round, and lanes that are fresh cannot keep the others
 * from their turns. A turn without anything to send leaves a lane fresh.
 *
 * Rules have a class: control goes before data, and data before bulk. Who waits behind higher
 * classes gets one turn after PASSED_MOST of theirs, so nothing stands still.
 *
 * The WAN is paced by a token bucket at the configured rate, and with `wan-rate = auto` each link
 * by one of its own at the pace that its controller has found (rate.c). A lane stops as soon as a
 * bucket is empty and the engine asks to be woken when it has QUANTUM bytes, or those of WAKE_NS,
 * again: small bursts, few wake-ups. The LAN is not paced: its link and the port's ring hold it
 * back. A port without room (-EAGAIN) ends the turns there; the lanes stay in the list until
 * engine_port_again().
 *
 * row: FAST-6, CONV-7, CONV-9
 */
#include "engine/core/roles.h"
#include "wire/must.h"

#define QUANTUM	       16384
#define TURNS_PER_TICK 4096u
/* Bytes that may leave at once; 1 ms of the rate where that is more. */
#define BURST_MIN      65536
#define PASSED_MOST    15u
/* A wake-up costs as much processor time as a few large packets. */
#define WAKE_NS	       (100 * NSEC_PER_USEC)

static const enum traffic_class by_rank[CLASSES] = {CLASS_CONTROL, CLASS_DATA, CLASS_BULK};

/* Whole tokens only, so that no fraction is lost at any call rate. */
static void refill(uint64_t now, uint64_t rate, int64_t most, uint64_t *at, int64_t *tokens)
{
	uint64_t dt = now - *at, got;

	if (!rate)
		return;
	dt = MIN(dt, NSEC_PER_SEC);
	got = rate * dt / NSEC_PER_SEC;
	if (!got)
		return;
	if (now - *at > NSEC_PER_SEC)
		*at = now;
	else
		*at += got * NSEC_PER_SEC / rate;
	*tokens += (int64_t)got;
	*tokens = MIN(*tokens, most);
}

static int64_t burst(const struct engine *e, uint64_t rate)
{
	int64_t most = (int64_t)(rate / 1000);

	if (e->cfg.wan_burst)
		return e->cfg.wan_burst;
	return most > BURST_MIN ? most : BURST_MIN;
}

static void queue_init(struct run_queue *q)
{
	memset(q, 0, sizeof(*q));
	for (unsigned int c = 0; c < CLASSES; c++) {
		q->of[c].fresh.head = q->of[c].fresh.tail = FLOW_NONE;
		q->of[c].rest.head = q->of[c].rest.tail = FLOW_NONE;
	}
}

void pace_init(struct engine *e)
{
	queue_init(&e->run_lan);
	for (unsigned int i = 0; i < LINKS; i++)
		queue_init(&link_at(e, i)->run);
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

	e->tokens = MIN(e->tokens, most);
	for (unsigned int i = 0; i < LINKS; i++) {
		struct wan_link *k = link_at(e, i);

		most = burst(e, rate_pace(&k->rate));
		k->tokens = MIN(k->tokens, most);
	}
	engine_wake_at(e, e->now);
}

static void refill_box(struct engine *e)
{
	refill(e->now, e->cfg.wan_rate, burst(e, e->cfg.wan_rate), &e->tokens_at, &e->tokens);
}

/* What came to the bucket of link @i since a lane last wanted something of it. */
static struct wan_link *refill_link(struct engine *e, unsigned int i)
{
	struct wan_link *k = link_at(e, i);
	uint64_t pace = link_pace(e, k);

	refill(e->now, pace, burst(e, pace), &k->tokens_at, &k->tokens);
	return k;
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
	uint64_t some = rate * WAKE_NS / NSEC_PER_SEC;

	if (!rate || tokens > 0)
		return e->now;
	some = MIN(some, (uint64_t)burst(e, rate) / 2);
	some = MAX(some, QUANTUM);
	return e->now + ((uint64_t)-tokens + some) * NSEC_PER_SEC / rate;
}

/* ---- who is next ---- */

static struct run_queue *queue_of(struct engine *e, const struct flow *fl)
{
	return other_port(fl->side) == PORT_LAN ? &e->run_lan : &link_at(e, flow_link(e, fl))->run;
}

static unsigned int class_of(const struct engine *e, const struct flow *fl)
{
	return fl->rule >= 0 ? e->rules[fl->rule].traffic : CLASS_DATA;
}

static void enqueue(struct engine *e, struct run_list *list, struct flow *fl)
{
	uint32_t i = flow_index(e, fl);

	fl->lane.listed.run = true;
	fl->lane.listed.next_run = FLOW_NONE;
	if (list->tail == FLOW_NONE)
		list->head = i;
	else
		flow_ref(e, list->tail)->lane.listed.next_run = i;
	list->tail = i;
}

void pace_run(struct engine *e, struct flow *fl)
{
	if (!fl->lane.listed.run)
		enqueue(e, &queue_of(e, fl)->of[class_of(e, fl)].fresh, fl);
	engine_wake_at(e, e->now);
}

static struct flow *take_first(struct engine *e, struct run_list *list)
{
	struct flow *fl;

	must(list->head < e->nflows);
	fl = flow_ref(e, list->head);
	must(fl->lane.listed.run);
	list->head = fl->lane.listed.next_run;
	if (list->head == FLOW_NONE)
		list->tail = FLOW_NONE;
	fl->lane.listed.run = false;
	return fl;
}

static bool class_waits(const struct run_queue *q, unsigned int c)
{
	return q->of[c].fresh.head != FLOW_NONE || q->of[c].rest.head != FLOW_NONE;
}

static bool someone_waits(const struct run_queue *q)
{
	return class_waits(q, CLASS_CONTROL) || class_waits(q, CLASS_DATA) ||
	       class_waits(q, CLASS_BULK);
}

/* The class whose turn it is, when someone waits. */
static unsigned int next_class(struct run_queue *q)
{
	unsigned int best = CLASSES;

	for (unsigned int i = 0; i < CLASSES; i++) {
		unsigned int c = by_rank[i];

		if (!class_waits(q, c))
			q->of[c].passed = 0;
		else if (best == CLASSES || q->of[c].passed >= PASSED_MOST)
			best = c;
	}
	for (unsigned int c = 0; c < CLASSES; c++)
		q->of[c].passed += class_waits(q, c);
	q->of[best].passed = 0;
	return best;
}

/* What travels in the direction of @fl: its own requests, and the responses to those of its
 * partner. They go first by turns, or one would take all tokens. True when there is more. */
static bool turn(struct engine *e, struct flow *fl)
{
	struct flow *back = flow_partner(e, fl);
	const struct role_ops *role = role_of(e, &fl->lane);
	const struct role_ops *answers = back ? role_of(e, &back->lane) : NULL;
	bool more = false, first = fl->answered_last;

	fl->answered_last = !first;
	if (first && answers && answers->send_resp)
		more = answers->send_resp(e, back, QUANTUM);
	/* @e->roles is never NULL: NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
	if (role->send)
		more |= role->send(e, fl, QUANTUM);
	if (!first && answers && answers->send_resp)
		more |= answers->send_resp(e, back, QUANTUM);
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

/* The first of @list again: it had its turn, but the port had no room. */
static void put_back(struct run_list *list, struct engine *e, struct flow *fl)
{
	fl->lane.listed.run = true;
	fl->lane.listed.next_run = list->head;
	list->head = flow_index(e, fl);
	if (list->tail == FLOW_NONE)
		list->tail = list->head;
}

static void one_turn(struct engine *e, struct run_queue *q, enum engine_port port)
{
	uint64_t *sent = &e->counters[port == PORT_LAN ? EC_TX_LAN : EC_TX_WAN], before = *sent;
	unsigned int c = next_class(q);
	struct run_list *fresh = &q->of[c].fresh, *rest = &q->of[c].rest;
	bool is_fresh = fresh->head != FLOW_NONE, more;
	struct flow *fl = take_first(e, is_fresh ? fresh : rest);

	e->wait[port].full = false;
	if (!fl->used)
		return;
	if (queue_of(e, fl) != q || class_of(e, fl) != c) {
		/* another flow than the one that stood here, or its rule has changed */
		pace_run(e, fl);
		return;
	}
	e->via = (uint8_t)flow_link(e, fl);
	more = turn(e, fl);
	if (fl->lane.listed.run)
		return;
	if (more && is_fresh && e->wait[port].full && *sent == before)
		put_back(fresh, e, fl);
	else if (more || (*sent != before && rest->head != FLOW_NONE))
		enqueue(e, rest, fl);
}

/* Give the lanes of one queue their turns. Returns when it wants to be looked at again. */
static uint64_t give_turns(struct engine *e, struct run_queue *q, const struct wan_link *k)
{
	enum engine_port port = k ? PORT_WAN : PORT_LAN;

	for (uint32_t n = 0; someone_waits(q); n++) {
		uint64_t when = may_turn(e, k);

		if (when > e->now)
			return when;
		if (n == TURNS_PER_TICK)
			return e->now;
		one_turn(e, q, port);
		if (e->wait[port].full)
			return someone_waits(q) ? engine_port_again(e, port) : UINT64_MAX;
	}
	return UINT64_MAX;
}

/* What was carried may be more than may be sent: unpaced packets heed no limit. */
static uint64_t passing_rate(const struct engine *e, const struct wan_link *k)
{
	uint64_t rate = rate_carried(&k->rate), pace = link_pace(e, k);
	uint64_t limit = e->cfg.wan_rate ? e->cfg.wan_rate : UINT64_MAX;

	if (someone_waits(&k->run))
		return (pace && pace < rate ? pace : rate) / 2;
	return rate < limit ? rate : limit;
}

void passing_sent(struct engine *e, uint32_t len)
{
	const struct wan_link *k = refill_link(e, e->via);
	int64_t most = burst(e, link_pace(e, k));

	refill_box(e);
	/* no more debts than a burst: who is paced has to pay them */
	if (k->tokens > -most && e->tokens > -most)
		pace_sent(e, len);
}

int64_t passing_tokens(struct engine *e, struct wan_link *k)
{
	uint64_t rate = passing_rate(e, k);

	refill(e->now, rate, burst(e, rate), &k->passing_at, &k->passing);
	return k->passing;
}

/* What @n buckets have together, each gets an equal part of: those that are empty wait for the next
 * time. Only that of the first one fills up. */
static void pool(int64_t *const *tokens, unsigned int n)
{
	int64_t sum = 0;

	for (unsigned int i = 0; i < n; i++)
		sum += *tokens[i];
	for (unsigned int i = 0; i < n; i++)
		*tokens[i] = sum / n + (i ? 0 : sum % n);
}

void pace_pool(struct engine *const *e, unsigned int n, unsigned int link)
{
	int64_t *box[ENGINES_MAX], *own[ENGINES_MAX];

	(void)refill_link(e[0], link);
	refill_box(e[0]);
	for (unsigned int i = 0; i < n; i++) {
		struct wan_link *k = link_at(e[i], link);

		own[i] = &k->tokens;
		box[i] = &e[i]->tokens;
		k->tokens_at = e[i]->tokens_at = e[i]->now;
	}
	pool(own, n);
	pool(box, n);
}

bool pace_waits(const struct engine *e, unsigned int link)
{
	return someone_waits(&e->link[link].run);
}

void pace_tick(struct engine *e)
{
	uint64_t next;

	refill_box(e);
	next = give_turns(e, &e->run_lan, NULL);
	for (unsigned int n = 0; n < LINKS; n++) {
		unsigned int i = (e->first_link + n) % LINKS;
		struct wan_link *k;
		uint64_t when;

		if (!someone_waits(&e->link[i].run))
			continue; /* nothing changes, so nothing is noted */
		k = refill_link(e, i);
		when = give_turns(e, &k->run, k);
		next = when < next ? when : next;
	}
	e->first_link = (uint8_t)((e->first_link + 1) % LINKS);
	/* pace_run() asked for this tick; from here on only what is still to be done counts */
	engine_wake_at(e, next);
}
