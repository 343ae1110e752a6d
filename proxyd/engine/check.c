// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The invariants of a lane that its state shows. Slow: for tests, and after an adoption.
 */
#include "engine/core/holes.h"
#include "engine/reads/reads.h"

static const char *check_marks(const struct lane *l)
{
	if (psn_after(l->una.psn, l->high))
		return "more is truly acknowledged than was sent";
	if (psn_after(l->nxt.psn, l->high) || psn_before(l->nxt.psn, l->una.psn))
		return "the next PSN to send lies outside una .. high";
	if (psn_after(l->high, l->epsn.psn))
		return "more was sent than accepted";
	if (psn_after(l->epsn.psn, l->end))
		return "more was accepted than is held";
	if (psn_diff(l->end, l->una.psn) > 1 << 22 && l->held.packets > 1)
		return "6: unacknowledged span above 2^22";
	return NULL;
}

static const char *check_front(struct engine *e, const struct lane *l)
{
	const struct read_rec *r = reads_waiting(e, l);

	if (psn_after(l->near.frontier.psn, host_epsn(e, l).psn))
		return "2: frontier beyond what is received and retained";
	if (r && psn_after(l->near.frontier.psn, r->at.psn))
		return "2: frontier beyond an unanswered READ";
	if (!l->start_acked && !psn_is(l->near.frontier.psn, psn_same_host(l->start)))
		return "2: frontier moved before all below the handover was acknowledged";
	if (psn_after(l->near.acked.psn, l->near.frontier.psn))
		return "1: acknowledged beyond the frontier";
	return NULL;
}

/* What the lane's books must say of its packets. */
struct books {
	uint32_t packets, messages, lost;
	uint64_t bytes;
};

static const char *check_packet(struct engine *e, const struct flow *fl, const struct pkt *d,
				struct wire_psn psn, struct books *b)
{
	struct frame f;

	if (frame_parse(lane_packet(e, d), d->len, &f) != FRAME_OK || !psn_is(wire_psn_of(&f), psn))
		return "1: a retained packet is not what was received";
	if (f.dqpn != fl->key.dqpn)
		return "1: a retained packet belongs to another lane";
	b->packets++;
	b->bytes += d->len;
	b->messages += !!(d->flags & PKT_EOM);
	b->lost += !!(d->flags & PKT_LOST);
	return NULL;
}

/* Everything between the true ACK and the end is there, but for the holes of an acceptor. */
static const char *check_retained(struct engine *e, const struct flow *fl)
{
	const struct lane *l = &fl->lane;
	const struct holes *hs =
		l->role == ROLE_ACCEPTOR ? holes_at(e->pool, l->acceptor.gaps.holes) : NULL;
	struct wire_psn psn = l->una.psn;
	struct books b = {0};
	const char *bad = NULL;

	while (!bad && psn_before(psn, l->end)) {
		struct wire_psn at;
		struct pkt *d = lane_pkt_next(e, l, psn, l->end, &at);

		if (!d || !psn_is(at, psn)) {
			if (lane_keeps(l))
				return "1: a packet in custody is missing";
			if (psn_before(psn, l->epsn.psn))
				return "a packet on its way to the responder is missing";
			if (!d)
				return "the end of a stream is missing";
		}
		if (holes_has(hs, at))
			return "a packet is held and missing";
		bad = check_packet(e, fl, d, at, &b);
		psn = psn_add(at, d->span);
	}
	if (!bad && (b.packets != l->held.packets || b.bytes != l->held.bytes ||
		     b.messages != l->messages || b.lost != l->held.lost))
		bad = "the ledger does not add up";
	return bad;
}

/* Responses are held for a request of the host, for a guess, or for one that may be asked again. */
static const char *check_responses(struct engine *e, const struct lane *l)
{
	const struct lane_reads *x = reads_of(e, l);

	if (x && l->role == ROLE_OPENER && x->held.packets && !l->nreads &&
	    x->kept.head == MQ_NONE && x->fetches.head == MQ_NONE)
		return "responses are held that nobody waits for";
	return NULL;
}

/* What is reserved for answers to the lane's guesses. */
static uint64_t reserved(struct engine *e, const struct lane *l)
{
	const struct lane_reads *x = l->role == ROLE_OPENER ? reads_of(e, l) : NULL;
	uint64_t sum = 0;

	if (x)
		mq_each (const struct fetch, g, e->reads, &x->fetches)
			sum += g->room;
	return sum;
}

/* owner/owner.c: who judges requests, who asks its peer, and who is asked. */
static const char *check_owner(const struct lane *l)
{
	bool fits = false;

	switch ((enum owner_state)l->owner.state) {
	case OWNER_KNOWN:
		return NULL;
	case OWNER_PROVED:
	case OWNER_NAMED:
	case OWNER_SUSPECT:
		fits = lane_keeps(l);
		break;
	case OWNER_ASKED:
	case OWNER_ASKED_PAIR:
		fits = l->role == ROLE_OPENER;
		break;
	case OWNER_WAITS:
	case OWNER_HEARD:
		fits = l->role == ROLE_ACCEPTOR;
		break;
	case OWNER_STATES:
		break;
	}
	return fits ? NULL : "what is known of the number's owner does not fit the role";
}

const char *engine_check(struct engine *e)
{
	uint32_t keepers = 0;
	uint64_t room = 0;
	bool held = false;
	const char *bad;

	for (uint32_t i = 0; i < e->nflows; i++) {
		const struct flow *fl = &e->flows[i];
		const struct lane *l = &fl->lane;

		if (!fl->used)
			continue;
		if (i >= e->flows_end)
			return "a flow is beyond the end of those in use";
		if (fl->partner != FLOW_NONE && e->flows[fl->partner].partner != i)
			return "a pair is not mutual";
		held |= l->role != ROLE_NONE;
		room += reserved(e, l);
		keepers += lane_keeps(l) && l->held.packets;
		if (l->role == ROLE_NONE || l->state == LANE_FAULT) {
			if (l->held.packets || (l->role == ROLE_NONE && l->reads_page != POOL_NONE))
				return "a lane that holds nothing retains packets";
			continue;
		}
		bad = check_marks(l);
		if (!bad && lane_keeps(l))
			bad = check_front(e, l);
		if (!bad)
			bad = check_retained(e, fl);
		if (!bad)
			bad = check_responses(e, l);
		if (!bad)
			bad = check_owner(l);
		if (bad)
			return bad;
	}
	if (e->counters[EC_NUMBERS_FULL])
		return "3: nobody knows any more which number a request has got";
	if (room != e->reserved)
		return "room is reserved that no guess needs";
	if (keepers != e->keepers)
		return "lanes with something in custody are not counted";
	for (int c = 0; c < POOL_CLASSES; c++)
		if (pool_used(e->pool, c) > pool_cap(e->pool, c))
			return "7: the pool is above its cap";
	/* what a batch has freed is held until its end */
	for (int c = 0; c < POOL_CLASSES && !held && !(e->undo && e->undo->used); c++)
		if (pool_used(e->pool, c))
			return "7: memory is held, and no lane holds it";
	if (!pool_check(e->pool))
		return "the pool's books do not balance";
	return NULL;
}
