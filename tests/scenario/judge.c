// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How the end of a world is judged.
 *
 * A queue pair may fail if its plan gives a reason (@may_fail), or if packets of it missed both
 * appliances of a renumbered connection (world_path.c). Even then an exact prefix must have been
 * executed, and a host that got ACKs for more must see its queue pair fail. A wrong result that no
 * appliance can prevent is an excuse, counted by kind.
 */
#include "tests/scenario/judge.h"

#include "tests/scenario/scenario.h"
#include "tests/scenario/world_storage.h"

/* Whether the appliance of host @s takes its queue pair for failed. Then it must have failed, even
 * if a forger may have said so. */
static bool taken_for_failed(struct world_qp *q, int s)
{
	struct world *w = q->w;
	struct conn_info ci;

	return w->cfg.actors.forge >> FORGE_PROBED & 1 && w->engine[s] && !q->side[s].lost &&
	       world_conn(w, s, q, &ci) && ci.lane[LANE_OUT].state == LANE_WATCH;
}

bool judge_silent(struct world_qp *q, int s)
{
	struct rc_qp *req = q->side[s].qp, *resp = q->side[!s].qp;

	return q->up && !rc_qp_in_error(req) && !rc_qp_queued(req) && rc_check_all(req, resp) &&
	       (!rc_qp_in_error(resp) || taken_for_failed(q, s));
}

/*
 * Whether a requester that lost requests with an appliance's memory retransmits for ever. It cannot
 * know that this is in vain: a responder reports a gap once, that NAK may be lost, and the retries
 * of these requesters never end. All that can be demanded is that it did not succeed.
 */
static bool asks_in_vain(struct world *w)
{
	for (uint32_t i = 0; i < w->nqps; i++)
		for (int s = 0; s < 2; s++) {
			struct rc_qp *qp = w->qp[i].side[s].qp;

			if (w->qp[i].up &&
			    (w->qp[i].side[s].lost || w->qp[i].side[s].holed || w->qp[i].debt) &&
			    !rc_qp_in_error(qp) && rc_qp_queued(qp))
				return true;
		}
	return false;
}

/*
 * Whether only commands over queue pairs that may fail, and have failed, are unfinished. A target
 * got the ACK for its response, which was lost with an appliance's memory, and sends nothing more.
 * Its initiator has nothing outstanding that could fail; without appliances it would wait as long
 * for a target with a queue pair in error (real ones have keep-alives).
 */
static bool waits_for_failed(const struct world *w, const bool *may_fail)
{
	bool any = false;

	for (uint32_t i = 0; i < w->nqps; i++) {
		const struct world_qp *q = &w->qp[i];

		if (storage_done(q) && q->storage)
			continue;
		if (!q->storage || (!may_fail[i] && !world_astray(q)) ||
		    !(rc_qp_in_error(q->side[0].qp) || rc_qp_in_error(q->side[1].qp)))
			return false;
		any = true;
	}
	return any;
}

static bool waits(const struct world_qp *q)
{
	if (!q->up || rc_qp_in_error(q->side[0].qp) || rc_qp_in_error(q->side[1].qp))
		return false;
	for (int s = 0; s < 2; s++)
		if (q->side[s].work.left || rc_qp_queued(q->side[s].qp))
			return true;
	return !storage_done(q);
}

/* Notes which queue pairs with packets that missed both appliances wait for ever: a request that
 * looks like a duplicate is never answered. True if no other queue pair waits. */
static bool waits_astray(struct world *w)
{
	bool any = false;

	for (uint32_t i = 0; i < w->nqps; i++) {
		struct world_qp *q = &w->qp[i];

		if (!waits(q))
			continue;
		if (!world_astray(q))
			return false;
		q->wrong = q->wrong ? q->wrong : "something waits for ever";
		any = true;
	}
	return any;
}

static bool owes(struct world *w, int side)
{
	return w->engine[side] && shards_custody(w->shards[side], -1, w->now).packets;
}

/* What went wrong with @q since its packets missed both appliances, unless both hosts know that it
 * has failed. */
static const char *judge_astray(const bool *may_fail, const struct world_qp *q)
{
	if (!world_astray(q) || world_path_told(q))
		return NULL;
	if (q->wrong || may_fail[q->id])
		return q->wrong;
	if (q->up && (rc_qp_in_error(q->side[0].qp) || rc_qp_in_error(q->side[1].qp)))
		return "a queue pair failed at one end, and the other one was not told";
	return NULL;
}

static const char *judge_qp(struct world *w, const bool *may_fail, uint32_t n, int s, bool done)
{
	static const char lost[] = "1: acknowledged messages were lost in silence";
	struct world_qp *q = &w->qp[n];

	if (judge_silent(q, s) && (done || !owes(w, s))) {
		if (!world_astray(q))
			return lost;
		q->wrong = q->wrong ? q->wrong : lost;
	} else if (done && !may_fail[n] && !world_astray(q)) {
		return world_verify_qp(q, s, true);
	}
	return NULL;
}

const char *judge(struct world *w, const bool *may_fail, bool single, bool done)
{
	const char *bad = world_verify(w, false), *unseen = NULL;
	bool astray = w->path_overtaken;
	bool waited =
		!done && !asks_in_vain(w) && !waits_for_failed(w, may_fail) && !waits_astray(w);

	for (uint32_t i = 0; i < w->nqps && !bad; i++) {
		bad = judge_qp(w, may_fail, i, 0, done);
		if (!bad)
			bad = judge_qp(w, may_fail, i, 1, done);
		if (!unseen)
			unseen = judge_astray(may_fail, &w->qp[i]);
		astray |= world_astray(&w->qp[i]) && world_path_told(&w->qp[i]);
	}
	if (!bad && waited)
		bad = "something waits for ever";
	if (bad && single && w->frames - w->frames_at > w->cfg.frames_max)
		w->excuse = EXCUSE_CIRCLES;
	/* an excuse holds for its queue pair only */
	if (bad)
		return bad;
	if (unseen)
		w->excuse = EXCUSE_SILENT;
	else if (astray)
		w->excuse = EXCUSE_PATH;
	return unseen;
}

bool judge_died(const struct world_qp *q)
{
	return q->up && !world_astray(q) &&
	       (rc_qp_in_error(q->side[0].qp) || rc_qp_in_error(q->side[1].qp));
}
