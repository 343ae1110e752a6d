// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "tests/scenario/scenario.h"

#include <string.h>

void scenario_qp(struct rc_qp_config *c, uint32_t n, uint32_t mtu, enum rc_personality p)
{
	rc_qp_defaults(c, p);
	c->lqpn = 0x100 + n;
	c->rqpn = 0x200 + n;
	c->sq_psn = 0x1000 * (n + 1);
	c->rq_psn = 0x777000 + 0x1000 * n;
	c->mtu = mtu;
	c->sport = (uint16_t)(0xc000 + n);
	c->tx_seed = 0x1000 + n;
	c->rx_seed = 0x2000 + n;
	c->mr_seed = 0x3000 + n;
	c->rmr_seed = 0x4000 + n;
	c->mr_va = c->rmr_va = 0x10000;
	c->mr_size = c->rmr_size = 1 << 20;
	c->mr_rkey = 0x55;
	c->rmr_rkey = 0x66;
	c->shadow = true;
	c->depth = 64;
	c->timeout_exp = 17; /* 0.5 s: a bare host must survive the WAN while lanes are learned */
}

static void judge(struct world *w, const char *bad)
{
	if (!bad)
		return;
	world_dump(w, stderr);
	fail_msg("seed %llu: %s", (unsigned long long)w->cfg.seed, bad);
}

void scenario_finish(struct world *w, uint64_t limit)
{
	bool done = world_run_done(w, w->now + limit);

	judge(w, world_verify(w, done));
	if (!done)
		judge(w, "not done in time");
	judge(w, world_verify(w, true));
}

void scenario_safe(struct world *w, uint64_t limit)
{
	world_run_done(w, w->now + limit);
	judge(w, world_verify(w, false));
}

void scenario_held(struct world *w, const struct world_qp *q, int side)
{
	struct conn_info ci;

	if (!world_conn(w, side, q, &ci) || ci.lane[LANE_OUT].state != LANE_HELD)
		judge(w, "the lane is not held");
}
