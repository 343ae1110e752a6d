// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What an operator may do to a running engine: let one connection go, or let it, a rule or all
 * pass as if nobody stood between. Both are a drain (core/close.c): what was acknowledged is
 * delivered first, so nothing of this can lose data. And other limits: pace and timeouts are read
 * where they matter, each time, so a new value holds for what is under way, too.
 */
#include "engine/core/core.h"

#include "engine/engine.h"
#include "engine/link/order.h"

static struct flow *conn_flow(struct engine *e, uint32_t conn)
{
	return conn < e->nflows && e->flows[conn].used ? flow_ref(e, conn) : NULL;
}

static void let_go(struct engine *e, struct flow *fl)
{
	if (fl->lane.role != ROLE_NONE)
		lane_drain(e, fl, REASON_OPERATOR);
}

static void mark(struct engine *e, struct flow *fl, bool on)
{
	struct flow *other = flow_partner(e, fl);

	fl->bypassed = on;
	if (other)
		other->bypassed = on;
}

/* Packets pass, or may be held, from now on: by what has changed. */
static void bypass_again(struct engine *e, bool none)
{
	flow_each (struct flow, fl, e) {
		flow_change(e, fl);
		if (none)
			fl->bypassed = false;
		flow_open_at(fl, 0);
		if (flow_let_go(e, fl))
			let_go(e, fl);
	}
}

bool engine_bypass(struct engine *e, enum bypass what, uint32_t index, bool on, uint64_t now_ns)
{
	struct flow *one = what == BYPASS_CONN ? conn_flow(e, index) : NULL;

	batch_begin(e, now_ns);
	if ((what == BYPASS_CONN && !one) || (what == BYPASS_RULE && index >= e->nrules))
		return false;
	if (what == BYPASS_CONN)
		mark(e, one, on);
	else if (what == BYPASS_ALL)
		e->all_bypassed = on;
	else
		e->rules_bypassed = (e->rules_bypassed & ~(1ull << index)) | (uint64_t)on << index;
	if (what == BYPASS_ALL && !on)
		e->rules_bypassed = 0;
	bypass_again(e, what == BYPASS_ALL && !on); /* and no single one either */
	return true;
}

uint32_t engine_bypassed(const struct engine *e)
{
	uint32_t n = 0;

	flow_each (const struct flow, fl, e)
		n += fl->side == PORT_LAN && fl->partner != FLOW_NONE && flow_let_go(e, fl) &&
		     !e->draining;
	return n;
}

void engine_bypass_rules(struct engine *e, uint64_t rules, uint64_t now_ns)
{
	if (!rules && !e->rules_bypassed)
		return;
	batch_begin(e, now_ns);
	e->rules_bypassed = rules;
	bypass_again(e, false);
}

bool engine_release(struct engine *e, uint32_t conn, uint64_t now_ns)
{
	struct flow *fl = conn_flow(e, conn), *other = fl ? flow_partner(e, fl) : NULL;

	batch_begin(e, now_ns);
	if (!fl || !conn_held(e, fl))
		return false;
	let_go(e, fl);
	if (other)
		let_go(e, other);
	return true;
}

static uint64_t or_default(uint64_t v, uint64_t def)
{
	return v ? v : def;
}

void engine_limits(struct engine *e, const struct engine_config *cfg, uint64_t now_ns)
{
	bool was_auto = e->cfg.wan_auto;

	batch_begin(e, now_ns);
	e->cfg.wan_rate = cfg->wan_rate;
	e->cfg.wan_auto = cfg->wan_auto;
	e->cfg.share = cfg->share;
	e->cfg.wan_burst = cfg->wan_burst;
	e->cfg.peer_timeout_ns = or_default(cfg->peer_timeout_ns, 60 * NSEC_PER_SEC);
	e->cfg.responder_timeout_ns = or_default(cfg->responder_timeout_ns, 30 * NSEC_PER_SEC);
	e->cfg.rnr_timeout_ns = or_default(cfg->rnr_timeout_ns, 300 * NSEC_PER_SEC);
	e->cfg.idle_ns = or_default(cfg->idle_ns, 600 * NSEC_PER_SEC);
	meter_limits(e, was_auto);
	pace_limits(e);
}

void engine_peer_forget(struct engine *e, unsigned int peer, uint64_t now_ns)
{
	if (peer >= PEER_MAX)
		return;
	engine_peer_event(e, peer, PEER_DOWN, now_ns);
	order_forget(e, peer);
	e->peer_features[peer] = 0;
	engine_peer_rtt(e, peer, 0);
	e->peer_new_at[peer] = 0;
	rate_init(link_rate(e, peer), e->cfg.wan_rate, e->cfg.share);
}
