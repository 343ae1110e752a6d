// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What is due. Nothing is acknowledged, reported or sent on where it is found out that it should
 * be: a lane is put into a list, and the tick goes through the lists from above, once, and calls
 * what the lane's role has to do. So no room calls one above it, and what a batch of frames brings
 * is said once. A report that is due later is in the timer wheel, and costs a tick nothing.
 */
#include "engine/core/roles.h"
#include "wire/must.h"

/* Reports that are not urgent wait, longer under load. What a host waits for is urgent. */
#define REPORT_NS	 (200 * NSEC_PER_USEC)
#define REPORT_BULK_NS	 (500 * NSEC_PER_USEC)
#define FEW		 8u
#define REPORT_PACKETS	 128u
/* While something is missing they are repeated after this, doubled each time, so many times. */
#define REPEAT_NS	 (500 * NSEC_PER_USEC)
#define REPEAT_DOUBLINGS 7u

/* Flow @i, which is in a list. */
static struct flow *listed(struct engine *e, uint32_t i)
{
	must(i < e->nflows);
	return flow_ref(e, i);
}

void ack_list(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	if (l->listed.ack)
		return;
	l->listed.ack = true;
	l->listed.next_ack = e->ack_head;
	e->ack_head = flow_index(e, fl);
	engine_wake_at(e, e->now);
}

void ack_schedule(struct engine *e, struct flow *fl)
{
	fl->lane.near.ack_due = true;
	ack_list(e, fl);
}

/* The port had no room for what the lane has to say: it is said again when there may be some. */
void ack_again_later(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct port_wait *w = &e->wait[fl->side];

	if (l->listed.ack)
		return;
	l->listed.ack = true;
	l->listed.next_ack = w->acks;
	w->acks = flow_index(e, fl);
}

/* What a port refused before is due again. */
static void refused_acks(struct engine *e, struct port_wait *w)
{
	uint32_t i;

	while (e->now >= w->again && (i = w->acks) != FLOW_NONE) {
		struct flow *fl = listed(e, i);

		must(fl->lane.listed.ack);
		w->acks = fl->lane.listed.next_ack;
		fl->lane.listed.ack = false;
		ack_list(e, fl);
	}
}

void due_acks(struct engine *e)
{
	for (int p = 0; p < PORTS; p++)
		refused_acks(e, &e->wait[p]);
	while (e->ack_head != FLOW_NONE) {
		struct flow *fl = listed(e, e->ack_head);
		const struct role_ops *role = role_of(e, &fl->lane);

		must(fl->lane.listed.ack);
		e->ack_head = fl->lane.listed.next_ack;
		fl->lane.listed.ack = false;
		e->via = (uint8_t)flow_link(e, fl);
		if (role->tell)
			role->tell(e, fl);
	}
	for (int p = 0; p < PORTS; p++)
		if (e->wait[p].acks != FLOW_NONE)
			engine_wake_at(e, engine_port_again(e, p));
}

void report_list(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;

	if (l->listed.report)
		return;
	l->listed.report = true;
	l->listed.next_report = e->report_head;
	e->report_head = flow_index(e, fl);
}

void report_schedule(struct engine *e, struct flow *fl, struct gaps *g, bool urgent)
{
	struct report_clock *c = &g->clock;

	c->due = true;
	c->urgent |= urgent;
	c->count += c->count < UINT8_MAX;
	c->repeats = 0;
	report_list(e, fl);
	engine_wake_at(e, e->now);
}

void progress_due(struct engine *e, struct flow *fl, bool urgent)
{
	report_schedule(e, fl, &fl->lane.acceptor.gaps, urgent);
}

static uint64_t repeat_at(const struct report_clock *c)
{
	return c->last + (REPEAT_NS << c->repeats);
}

static uint64_t wait_ns(const struct report_clock *c)
{
	return c->count < FEW ? REPORT_NS : REPORT_BULK_NS;
}

bool report_now(const struct engine *e, struct gaps *g)
{
	struct report_clock *c = &g->clock;

	if (c->due)
		return c->urgent || c->count >= REPORT_PACKETS || e->now - c->last >= wait_ns(c);
	if (g->holes == POOL_NONE || e->now < repeat_at(c))
		return false;
	c->repeats += c->repeats < REPEAT_DOUBLINGS;
	return true;
}

uint64_t report_next(const struct gaps *g)
{
	if (g->clock.due)
		return g->clock.last + wait_ns(&g->clock);
	return g->holes != POOL_NONE ? repeat_at(&g->clock) : 0;
}

void due_reports(struct engine *e)
{
	while (e->report_head != FLOW_NONE) {
		struct flow *fl = listed(e, e->report_head);
		const struct role_ops *role = role_of(e, &fl->lane);
		uint64_t at;

		must(fl->lane.listed.report);
		e->report_head = fl->lane.listed.next_report;
		fl->lane.listed.report = false;
		at = role->report ? role->report(e, fl) : 0;
		if (at)
			timer_arm(e, fl, TIMER_REPORT, at);
	}
	e->nrefused = 0; /* of lanes that are no more */
}
