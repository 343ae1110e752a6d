// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Queue pair numbers that get another owner again and again: when one has done a few requests, or
 * its queue pair has failed, both ends go, and after a while others come with the same QPNs,
 * addresses and other data. The pause is long enough for a bare network to have forgotten the first
 * owner's packets; the appliance must handle what it still has for it.
 */
#include "tests/scenario/world_priv.h"

#include "wire/psn.h"

bool world_reuser_busy(const struct world_qp *q)
{
	return q->reuse.back_at ||
	       (q->reuse.left && (!q->up || q->side[0].work.left || q->side[1].work.left));
}

static uint64_t ended(const struct world_qp *q)
{
	return q->side[0].ok + q->side[1].ok;
}

static void leave(struct world_qp *q)
{
	struct reuse *r = &q->reuse;

	r->left_off[0] = rc_qp_una(q->side[0].qp);
	r->left_off[1] = rc_qp_una(q->side[1].qp);
	world_disconnect(q, r->by_cm & REUSE_DREQ);
	r->left--;
	r->back_at = q->w->now + r->pause_ns;
}

static uint32_t next_psn(struct world_qp *q, uint32_t how, uint32_t first, uint32_t left_off)
{
	struct prng *p = &q->side[0].rng;

	switch (how) {
	case REUSE_SAME:
		return first;
	case REUSE_NEAR:
		return psn_add(psn_sub(left_off, 64), prng_below(p, 128));
	default:
		return psn_add(left_off, (1u << 22) + prng_below(p, 1u << 23));
	}
}

bool world_reuser_repeats(const struct world_qp *q, uint32_t psn0, uint32_t psn1)
{
	return q->w->cfg.atomic == ATOMIC_PREFETCH &&
	       (psn_before(psn0, q->reuse.left_off[0]) || psn_before(psn1, q->reuse.left_off[1]));
}

static void come_back(struct world_qp *q)
{
	struct reuse *r = &q->reuse;
	uint32_t how = r->psn, psn[2];

	if (how == REUSE_ANY)
		how = prng_below(&q->side[0].rng, REUSE_ANY);
	for (int s = 0; s < 2; s++)
		psn[s] = next_psn(q, how, r->first[s], r->left_off[s]);
	/* far from the numbers of other queue pairs */
	if (r->other & 1)
		q->cfg[0].lqpn += 0x1000;
	if (r->other & 2)
		q->cfg[0].rqpn += 0x1000;
	q->debt = !(r->by_cm & REUSE_REQ) &&
		  (world_owed(q) || world_reuser_repeats(q, psn[0], psn[1]));
	r->back_at = 0;
	r->came = q->w->now;
	r->ended = ended(q);
	q->w->reused++;
	world_reconnect(q, psn[0], psn[1], r->by_cm & REUSE_REQ);
}

/* Whether the handshake for it was in vain. */
static bool given_up(const struct world_qp *q)
{
	return q->cm[0].state == RC_CM_FAILED || q->cm[1].state == RC_CM_FAILED;
}

/* When its application has waited for too long, since an appliance stands still; never, if none
 * does. */
static uint64_t patience_ends(const struct world_qp *q)
{
	const struct world *w = q->w;
	uint64_t t = UINT64_MAX;

	for (int s = 0; s < 2; s++)
		if (w->still[s].since)
			t = min64(t, w->still[s].since);
	if (!w->cfg.actors.still_ms || t == UINT64_MAX)
		return UINT64_MAX;
	t = t > q->reuse.came ? t : q->reuse.came;
	for (int s = 0; s < 2; s++)
		t = t > q->side[s].last_ok_at ? t : q->side[s].last_ok_at;
	return t + w->cfg.actors.still_ms * MS;
}

void world_reuser_run(struct world *w)
{
	for (uint32_t i = 0; i < w->nqps; i++) {
		struct world_qp *q = &w->qp[i];
		struct reuse *r = &q->reuse;
		bool failed;

		if (r->back_at && w->now >= r->back_at) {
			come_back(q);
		} else if (r->left && !q->up && !q->shaking && !r->back_at && given_up(q)) {
			world_disconnect(q, false);
			r->back_at = w->now + r->pause_ns;
		} else if (r->left && q->up && !q->shaking && !r->back_at) {
			failed = rc_qp_in_error(q->side[0].qp) || rc_qp_in_error(q->side[1].qp);
			if (failed && r->must && !w->violation)
				w->violation = "a queue pair failed";
			if (failed || ended(q) >= r->ended + r->after || w->now >= patience_ends(q))
				leave(q);
		}
	}
}

uint64_t world_reuser_next(const struct world *w)
{
	uint64_t t = UINT64_MAX;

	for (uint32_t i = 0; i < w->nqps; i++) {
		const struct world_qp *q = &w->qp[i];

		if (q->reuse.back_at)
			t = min64(t, q->reuse.back_at);
		else if (q->reuse.left && q->up && !q->shaking)
			t = min64(t, patience_ends(q));
	}
	return t;
}
