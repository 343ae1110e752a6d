// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The invariants of a lane as far as its state shows them. Slow; for tests and the scenario runner,
 * which checks the rest (what the hosts saw) from outside.
 */
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
	if (psn_diff(l->end, l->una.psn) > 1 << 22 && l->packets > 1)
		return "6: unacknowledged span above 2^22";
	return NULL;
}

static const char *check_front(struct engine *e, const struct lane *l)
{
	const struct read_rec *r = reads_waiting(e, l);
	const struct lane_reads *x = reads_of(e, l);

	if (psn_after(l->frontier.psn, x ? x->map.asked.psn : l->epsn.psn))
		return "2: front beyond what is received and retained";
	if (r && psn_after(l->frontier.psn, r->at.psn))
		return "2: front beyond an unanswered READ";
	if (!l->start_acked && l->frontier.psn != l->start)
		return "2: front moved before all below the handover was acknowledged";
	if (psn_after(l->acked.psn, l->frontier.psn))
		return "1: acknowledged beyond the front";
	return NULL;
}

/* Everything between the true ACK and the end is there, but for the holes of an acceptor. */
static const char *check_retained(struct engine *e, const struct flow *fl)
{
	const struct lane *l = &fl->lane;
	uint32_t psn = l->una.psn, packets = 0, messages = 0, lost = 0;
	uint64_t bytes = 0;

	while (psn_before(psn, l->end)) {
		uint32_t at;
		struct pkt *d = window_next(&l->win, e->pool, psn, l->end, &at);
		struct frame f;

		if (!d || at != psn) {
			if (lane_keeps(l))
				return "1: a packet in custody is missing";
			if (psn_before(psn, l->epsn.psn))
				return "a packet on its way to the responder is missing";
			if (!d)
				return "the end of a stream is missing";
		}
		if (frame_parse(lane_packet(e, d), d->len, &f) != FRAME_OK || f.psn != at)
			return "1: a retained packet is not what was received";
		if (f.dqpn != fl->key.dqpn)
			return "1: a retained packet belongs to another lane";
		packets++;
		bytes += d->len;
		messages += !!(d->flags & PKT_EOM);
		lost += !!(d->flags & PKT_LOST);
		psn = psn_add(at, d->span);
	}
	if (packets != l->packets || bytes != l->bytes || messages != l->messages ||
	    lost != l->lost)
		return "the ledger does not add up";
	return NULL;
}

const char *engine_check(struct engine *e)
{
	const char *bad;

	for (uint32_t i = 0; i < e->nflows; i++) {
		const struct flow *fl = &e->flows[i];
		const struct lane *l = &fl->lane;

		if (!fl->used)
			continue;
		if (fl->partner != FLOW_NONE && e->flows[fl->partner].partner != i)
			return "a pair is not mutual";
		if (l->role == ROLE_NONE || l->state == LANE_FAULT) {
			if (l->packets)
				return "a lane that holds nothing retains packets";
			continue;
		}
		bad = check_marks(l);
		if (!bad && lane_keeps(l))
			bad = check_front(e, l);
		if (!bad)
			bad = check_retained(e, fl);
		if (bad)
			return bad;
	}
	for (int c = 0; c < POOL_CLASSES; c++)
		if (pool_used(e->pool, c) > pool_cap(e->pool, c))
			return "7: the pool is above its cap";
	if (!pool_check(e->pool))
		return "the pool's books do not balance";
	return NULL;
}
