/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the tests that attack an invariant share: a world that must come to an end, single requests,
 * lanes that are held and quiet, rules that change.
 */
#ifndef SCENARIO_INVARIANT_RIG_H
#define SCENARIO_INVARIANT_RIG_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/scenario/scenario.h"

/* A loop without end must end the run, not hang it. */
#define WATCHDOG_S 240

static inline struct world *make(struct world_config *c)
{
	struct world *w = world_create(c);

	assert_non_null(w);
	alarm(WATCHDOG_S);
	return w;
}

static inline void finish(struct world *w)
{
	world_destroy(w);
	alarm(0);
}

/* Fail, and show the world, if @bad says what is wrong. */
static inline void judge(struct world *w, const char *bad)
{
	if (!bad)
		return;
	world_dump(w, stderr);
	fail_msg("seed %llu: %s", (unsigned long long)w->cfg.seed, bad);
}

static inline void post(struct world_qp *q, int side, enum rc_op op, uint32_t length)
{
	const struct rc_qp_config *c = rc_qp_config(q->side[side].qp);
	struct rc_wr wr = {.op = op, .length = length, .va = c->rmr_va};

	assert_int_equal(rc_post(q->side[side].qp, q->w->now, &wr), 0);
}

/* The lane of host 0's requests gets held, and everything is quiet then. */
static inline void get_held(struct world *w, struct world_qp *q)
{
	for (int i = 0; i < 40; i++) {
		post(q, 0, RC_WRITE, i ? 64 : 2 * rc_qp_config(q->side[0].qp)->mtu);
		world_run(w, w->now + 60 * MS);
	}
	scenario_finish(w, 20 * SEC);
	scenario_held(w, q, 0);
}

static inline uint8_t lane_state(struct world *w, int side, const struct world_qp *q)
{
	struct conn_info ci;

	return world_conn(w, side, q, &ci) ? ci.lane[LANE_OUT].state : LANE_WATCH;
}

/* Engine @side gets this rule for all, or none. */
static inline void rules(struct world *w, int side, bool any, uint32_t path_mtu)
{
	struct rule r = {.nnear = 1,
			 .nfar = 1,
			 .vlan = RULE_ANY_VLAN,
			 .learn = LEARN_CM | LEARN_ALONE,
			 .policy = (uint8_t)w->cfg.policy,
			 .path_mtu = path_mtu};

	engine_rules(w->engine[side], &r, any, w->now);
}

#endif
