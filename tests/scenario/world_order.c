// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Two promises between queue pairs.
 *
 * Order (rule `order = hosts`): a host that was told that a message is done may tell the other so
 * by another queue pair. So what it posts after that must not be executed before that message is.
 * Each host has a clock that counts what it was told; a message bears the reading when it was told
 * of, and the reading when it was posted. A message is wrong if it is executed before one whose
 * completion had been reported when it was posted: it has overtaken its cause. (Bare hosts cannot
 * get this wrong: a completed message is executed.)
 *
 * A packet that missed the appliance near its host is held back by the far one as soon as that has
 * heard of the barrier. Until then it may overtake (@missed_first), and that is no violation. So is
 * one that passed an appliance that stood still (@passed).
 *
 * Share: of the memory for custody no lane takes more than an equal part among those that have some
 * in use. One that had more when others came need not give it back at once, but it must not grow.
 */
#include "tests/scenario/world_priv.h"

#include <stdlib.h>

#define ORDER_RING 16384u

/* By the number of the message. */
struct order {
	uint64_t told_at[ORDER_RING], posted_at[ORDER_RING];
	uint64_t told_ns[ORDER_RING];
};

/* A report of a barrier is on its way for so long beyond the WAN's delay, and if reports get lost,
 * for some more tries. */
#define REPORT_NS 10000000ull
#define AGAIN_NS  1000000000ull

static struct order *order_of(struct world_qp *q, int side)
{
	if (!q->w->cfg.actors.order)
		return NULL;
	if (!q->side[side].order)
		q->side[side].order = calloc(1, sizeof(struct order));
	return q->side[side].order;
}

void world_order_exit(struct world_qp *q)
{
	for (int s = 0; s < 2; s++) {
		free(q->side[s].order);
		q->side[s].order = NULL;
	}
}

void world_order_posted(struct world_qp *q, int side, uint64_t number)
{
	struct order *o = order_of(q, side);

	if (o)
		o->posted_at[number % ORDER_RING] = q->w->told[side];
}

void world_order_told(struct world_qp *q, int side, const struct rc_completion *c)
{
	struct order *o = order_of(q, side);

	if (!o || c->op >= RC_READ)
		return;
	o->told_at[c->number % ORDER_RING] = ++q->w->told[side];
	o->told_ns[c->number % ORDER_RING] = q->w->now;
}

/* Whether host @side was told of something on @q by @clock that the other has not executed. */
static bool owed_since(struct world_qp *q, int side, uint64_t clock)
{
	struct order *o = order_of(q, side);
	struct rc_qp *req = q->side[side].qp, *resp = q->side[!side].qp;
	uint64_t done;

	/* the host of a failed queue pair knows that it cannot rely on it */
	if (!o || !q->up || q->side[side].lost || rc_qp_in_error(req) || rc_qp_in_error(resp))
		return false;
	done = rc_messages(resp);
	return done < q->side[side].ok_data && q->side[side].ok_data - done <= ORDER_RING &&
	       o->told_at[done % ORDER_RING] <= clock;
}

/* Whether the far appliance may not know yet that host @side was told what @q owes. While the near
 * one stands still, or has no session yet, it tells nothing again that was lost. */
static bool not_heard(struct world_qp *q, int side)
{
	const struct wan_config *c = wan_config(q->w->reports[side]);
	uint64_t done = rc_messages(q->side[!side].qp), within = c->delay_ns + REPORT_NS;
	uint64_t told = order_of(q, side)->told_ns[done % ORDER_RING];
	const struct still *s = &q->w->still[side];

	if (c->loss > 0)
		within += AGAIN_NS;
	if (s->since)
		return s->since - told < within;
	if (told < s->went_on)
		told = s->went_on;
	return s->back || q->w->now - told < within;
}

static void overtaken(const struct world_qp *by, struct world_qp *q, int side)
{
	uint32_t passed = by->side[side].passed;

	if (by->missed_both || passed == (MISS_FIRST | MISS_SECOND) ||
	    ((by->missed_first || passed == MISS_FIRST) &&
	     (q->w->cfg.single || not_heard(q, side))))
		q->w->path_overtaken = true;
	else
		world_wrong(q, "a message overtook one of another queue pair that "
			       "was told to be done before it was posted");
}

void world_order_received(struct world_qp *q, int side, uint64_t number)
{
	struct order *o = order_of(q, !side);
	struct world *w = q->w;

	for (uint32_t i = 0; o && i < w->nqps && !w->violation; i++)
		if (&w->qp[i] != q &&
		    owed_since(&w->qp[i], !side, o->posted_at[number % ORDER_RING]))
			overtaken(q, &w->qp[i], !side);
}

/* A lane goes on in the superblock that it has, whatever the others took since; and within a step
 * others may have come later: so what counts is what was free before it, if that was more. */
#define UNIT  65536ull
#define SLACK (4 * UNIT)

/* What one lane of an engine may have grown to: eight times what is free, but for the reserve. */
static uint64_t share_of(const struct engine *e)
{
	struct engine_memory m;
	uint64_t units, free;

	engine_memory(e, &m);
	units = m.custody_cap / UNIT;
	free = (units - (units + 15) / 16) * UNIT + SLACK;
	free = m.custody_used < free ? free - m.custody_used : 0;
	return 8 * free;
}

/* To look for a connection that is not known means to look at all flows: not after each event. */
#define ABSENT 32

const char *world_check_share(struct world *w)
{
	for (int s = 0; s < 2; s++) {
		uint64_t share, before = w->share[s];

		if (!w->engine[s] || !w->cfg.actors.share)
			continue;
		w->share[s] = share_of(w->engine[s]);
		share = w->share[s] > before ? w->share[s] : before;
		for (uint32_t i = 0; i < w->nqps; i++) {
			uint64_t *within = &w->qp[i].side[s].within_bytes, has = 0;
			struct lane_info l = {0};

			if (w->events < w->qp[i].side[s].absent)
				continue;
			if (world_lane(&w->qp[i], s, &l))
				has = l.custody.bytes;
			else
				w->qp[i].side[s].absent = w->events + ABSENT;
			/* requests for data are small, and always find room */
			if (l.reads_pending || has * 1000 <= share * w->cfg.actors.share)
				*within = has;
			else if (has > *within + UNIT)
				return "a lane grew beyond its share of the memory";
		}
	}
	return NULL;
}
