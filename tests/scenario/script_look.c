// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Scripts: what the engine shows of itself - events, lanes, counters - and what an operator or the
 * peer's session does to it. */
#include "tests/scenario/script_run.h"

void line_event(struct script *s, struct tokens *t, const struct window *w)
{
	int type = token_choice(s, t, event_names, EVENTS, "event");

	while (!s->r->events[type]) {
		if (s->r->now >= w->to)
			script_fail(s, "expected event %s", event_names[type]);
		script_leftovers(s);
		script_step(s, w->to);
	}
	script_check_time(s, w, s->r->now);
	s->r->events[type]--;
	while (tokens_left(t)) {
		bool reason = token_is(t, "reason");
		const struct engine_event *ev = &s->r->last;

		if (ev->type != (enum engine_event_type)type)
			script_fail(s,
				    "of several events at a time only the last can be looked into");
		if (reason) {
			enum lane_reason want = lane_reason_by_name(s, token_next(s, t, "reason"));

			if (ev->reason != want)
				script_fail(s, "the reason is %s", lane_reason_name(ev->reason));
		} else if (token_is(t, "packets")) {
			if (ev->packets != token_number(s, t, "packets"))
				script_fail(s, "packets: %u", ev->packets);
		} else {
			script_fail(s, "an event has no \"%s\"", t->word[t->at]);
		}
	}
}

/* The first pair, or where there is none the first half of one. */
static struct conn_info connection(struct script *s, unsigned int *pairs)
{
	struct conn_info ci, first = {0};
	bool any = false;

	*pairs = 0;
	for (uint32_t from = 0; engine_conn_next(s->r->e, from, s->r->now, &ci); from = ci.id + 1) {
		if (!any || (ci.paired && !first.paired))
			first = ci;
		any = true;
		*pairs += ci.paired;
	}
	return first;
}

void line_lane(struct script *s, struct tokens *t)
{
	unsigned int pairs;
	struct conn_info ci = connection(s, &pairs);
	const struct lane_info *l = &ci.lane[s->responder ? LANE_IN : LANE_OUT];
	uint32_t base = s->w->psn_base;
	const struct {
		const char *name;
		int64_t value;
	} numbers[] = {
		{"custody", (int64_t)l->custody.packets},
		{"messages", (int64_t)l->custody.messages},
		{"transit", (int64_t)l->transit.packets},
		{"reads", l->reads_pending},
		{"epsn", psn_diff(l->epsn, base)},
		{"frontier", psn_diff(l->frontier, base)},
		{"una", psn_diff(l->una, base)},
		{"nxt", psn_diff(l->nxt, base)},
		{"msn", psn_diff(l->msn, s->w->msn_base)},
		{"retransmits", (int64_t)l->retransmits},
		{"pairs", pairs},
		{"mtu", ci.path_mtu},
		{"lqpn", ci.lqpn},
		{"rqpn", ci.rqpn},
	};
	const struct {
		const char *name, *value;
	} texts[] = {
		{"state", lane_state_name(l->state)},
		{"reason", lane_reason_name(l->reason)},
		{"learned-by", learn_source_name(ci.learned_by)},
	};

	while (tokens_left(t)) {
		const char *field = token_next(s, t, "a field");
		bool known = false;

		for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
			if (strcmp(field, texts[i].name))
				continue;
			known = true;
			if (strcmp(token_next(s, t, field), texts[i].value))
				script_fail(s, "%s is %s", field, texts[i].value);
		}
		for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
			if (strcmp(field, numbers[i].name))
				continue;
			known = true;
			if (token_number(s, t, field) != numbers[i].value)
				script_fail(s, "%s is %lld", field, (long long)numbers[i].value);
		}
		if (!known)
			script_fail(s, "a lane has no \"%s\"", field);
	}
}

static enum engine_counter counter(struct script *s, struct tokens *t)
{
	const char *name = token_next(s, t, "a counter");

	for (int i = 0; i < EC_COUNT; i++)
		if (!strcmp(engine_counter_name((enum engine_counter)i), name))
			return (enum engine_counter)i;
	script_fail(s, "no counter is named \"%s\"", name);
}

void line_counter(struct script *s, struct tokens *t)
{
	while (tokens_left(t)) {
		enum engine_counter c = counter(s, t);
		uint64_t v = engine_counter(s->r->e, c) - s->before[c];

		if ((uint64_t)token_number(s, t, "a number") != v)
			script_fail(s, "%s has grown by %llu", engine_counter_name(c),
				    (unsigned long long)v);
	}
}

/* The next process cannot read what this one leaves: it knows only which connections were held. */
static void lose_memory(struct script *s)
{
	struct rig *r = s->r;

	undone_watch(NULL);
	engine_destroy(r->e);
	s->cfg.seed++; /* other generations */
	rig_engine(r, &s->cfg, &s->rule);
	if (!s->w->undone)
		undone_watch(NULL);
	engine_peer_features(r->e, 0, s->features);
	for (unsigned int i = 0; i < RIG_HELD; i++) {
		struct rig_held *h = &r->held[i];

		if (h->used && !engine_fail_orphan(r->e, &h->requests, h->lqpn,
						   h->headers.len ? &h->headers : NULL, r->now))
			h->used = false;
	}
	memset(s->before, 0, sizeof(s->before));
}

void line_act(struct script *s, struct tokens *t)
{
	struct rig *r = s->r;

	if (token_is(t, "stand-still")) {
		uint64_t since = r->now;

		r->now += token_duration(s, t, "how long");
		undone_cancel(); /* of this nothing is noted, for it makes no difference */
		engine_stood_still(r->e, since, r->now);
		return; /* what came meanwhile is looked at before the timers */
	}
	if (token_is(t, "peer-down")) {
		engine_peer_event(r->e, 0, PEER_DOWN, r->now);
	} else if (token_is(t, "peer-up")) {
		engine_peer_event(r->e, 0, PEER_UP, r->now);
	} else if (token_is(t, "peer-again")) {
		engine_peer_event(r->e, 0, PEER_AGAIN, r->now);
	} else if (token_is(t, "peer-restart")) {
		engine_peer_event(r->e, 0, PEER_RESTARTED, r->now);
	} else if (token_is(t, "peer-rtt")) {
		engine_peer_rtt(r->e, 0, token_duration(s, t, "how long"));
	} else if (token_is(t, "drain")) {
		engine_drain(r->e, r->now);
	} else if (token_is(t, "lan-full")) {
		r->full[PORT_LAN] = true;
	} else if (token_is(t, "lan-free")) {
		r->full[PORT_LAN] = false;
	} else if (token_is(t, "lose-memory")) {
		lose_memory(s);
	} else if (token_is(t, "remove-rule")) {
		engine_rules(r->e, &s->rule, 0, r->now);
	} else if (token_is(t, "restore-rule")) {
		engine_rules(r->e, &s->rule, 1, r->now);
	} else {
		script_fail(s, "\"%s\" is nothing that can be done",
			    token_next(s, t, "what to do"));
	}
	script_after(s);
	script_tick(s);
}
