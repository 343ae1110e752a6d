// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Notes of which flow asked last under a PSN. A packet that asks for an ACK is noted under (hosts,
 * VLAN, PSN), and its ACK, which bears the same PSN, finds the note. Two flows that note the same
 * PSN within MATCH_NS spoil the note for both, until only one of them has noted it for so long.
 * What was asked while this process looked at nothing (engine_stood_still()) has no note, and its
 * answer may still come: for MATCH_NS after that no note tells anything.
 *
 * learn/match.c makes pairs by that, answers.c finds the queue pair that an answer is for.
 */
#include "engine/owner/notes.h"

#include <xxhash.h>

/* @lqpn: what the immediate of the packet names, PSN_NONE where it does not count. */
struct psn_match *match_slot(struct engine *e, const struct ip_addr *from, const struct ip_addr *to,
			     uint16_t vlan, uint32_t psn, uint32_t lqpn, uint32_t *tag)
{
	struct {
		struct ip_addr from, to;
		uint32_t vlan, psn, lqpn, zero;
	} k = {*from, *to, vlan, psn, lqpn, 0};
	uint64_t h = XXH3_64bits_withSeed(&k, sizeof(k), e->cfg.seed);

	*tag = (uint32_t)(h >> 32);
	engine_change(e, &e->match[h % MATCH_SLOTS], sizeof(e->match[0]));
	return &e->match[h % MATCH_SLOTS];
}

/* Whether the note @m is fresh, of @tag, and of one flow only. */
bool match_tells(const struct engine *e, const struct psn_match *m, uint32_t tag)
{
	if (e->stood && e->now - e->stood < MATCH_NS)
		return false;
	return m->tag == tag && m->when && e->now - m->when <= MATCH_NS &&
	       (int32_t)(m->shared_ms - ms_of(e->now)) <= 0;
}

/* Flow @i makes the note @m of @tag. */
void match_write(const struct engine *e, struct psn_match *m, uint32_t tag, uint32_t i)
{
	if (m->tag != tag || !m->when || e->now - m->when >= MATCH_NS)
		m->shared_ms = ms_of(e->now);
	else if (m->flow != i)
		m->shared_ms = ms_of(m->when + MATCH_NS) + 1;
	m->flow = i;
	m->tag = tag;
	m->when = e->now;
	m->count = PSN_NONE;
}

/* A packet that will be acknowledged, of a flow that nothing is known to answer. */
void match_note(struct engine *e, struct flow *fl, uint32_t psn, uint32_t lqpn)
{
	uint32_t tag;
	struct psn_match *m =
		match_slot(e, &fl->key.src, &fl->key.dst, fl->key.vlan, psn, lqpn, &tag);

	match_write(e, m, tag, flow_index(e, fl));
	if (lqpn == PSN_NONE && (int32_t)(m->shared_ms - ms_of(e->now)) > 0)
		pair_steps(e, &fl->key, MATCH_NS);
}

bool match_noted(struct engine *e, const struct flow *ack, uint32_t psn)
{
	uint32_t tag;
	const struct psn_match *m =
		match_slot(e, &ack->key.dst, &ack->key.src, ack->key.vlan, psn, PSN_NONE, &tag);

	return m->tag == tag && m->when && e->now - m->when <= MATCH_NS;
}

/* The packet that was just noted is counted now: its ACK will tell the responder's MSN. */
void match_count(struct engine *e, struct flow *fl, uint32_t psn)
{
	uint32_t tag;
	struct psn_match *m =
		match_slot(e, &fl->key.src, &fl->key.dst, fl->key.vlan, psn, PSN_NONE, &tag);

	if (m->tag == tag && m->flow == flow_index(e, fl))
		m->count = fl->lane.epsn.msn;
}

/* Nothing is kept for the requester of @fl, and it has nothing to be told. */
static bool only_watched(const struct flow *fl)
{
	return fl->lane.role == ROLE_NONE && !fl->lane.waits_ms && !fl->stranded;
}

/* Whether other evidence may take @fl and its partner apart; true if it has none. */
bool match_loose(struct engine *e, const struct flow *fl)
{
	const struct flow *other = flow_partner(e, fl);

	return !other || (only_watched(fl) && only_watched(other));
}

/*
 * No answer has shown that the partner of @fl, if it has one, is what answers it. Two forged
 * datagrams pair any two numbers, and a number may be given again: what truly answers shows itself.
 */
bool match_unanswered(struct engine *e, const struct flow *fl)
{
	return fl->partner == FLOW_NONE || (!fl->lane.calibrated && match_loose(e, fl));
}

/* Whose packet does the ACK @psn in @ack answer? */
struct flow *match_find(struct engine *e, const struct flow *ack, uint32_t psn, uint32_t lqpn)
{
	uint32_t tag;
	struct psn_match *m =
		match_slot(e, &ack->key.dst, &ack->key.src, ack->key.vlan, psn, lqpn, &tag);
	struct flow *req;

	if (!match_tells(e, m, tag))
		return NULL;
	req = flow_ref(e, m->flow);
	return req->used && m->when >= req->born && match_unanswered(e, req) &&
			       req->partner != flow_index(e, ack) && flow_reversed(req, ack)
		       ? req
		       : NULL;
}

void owner_note(struct engine *e, struct flow *fl, uint32_t psn)
{
	match_note(e, fl, psn, PSN_NONE);
}

struct flow *owner_asker(struct engine *e, const struct flow *ack, uint32_t psn)
{
	return ack ? match_find(e, ack, psn, PSN_NONE) : NULL;
}

void match_contradicts(struct engine *e, struct flow *fl)
{
	COUNT(e, LEARN_CONTRADICTIONS);
	if (fl->contradictions < UINT16_MAX)
		fl->contradictions++;
	fl->candidate = FLOW_NONE;
	fl->matches = 0;
}

void owner_no_pair(struct engine *e, struct flow *fl)
{
	struct flow *back = flow_partner(e, fl);

	if (!back || back->lane.role != ROLE_NONE)
		return;
	match_contradicts(e, fl);
	flow_unpair(e, fl);
}
