// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What all engines of an appliance are told, by its session with the peer and by its operator, and
 * what they must agree about then. A process that dies may have had some of them commit it.
 */
#include "tests/scenario/world_priv.h"

#include <string.h>

#include "engine/core/state.h"

unsigned int world_cores(const struct world *w, int side)
{
	return w->cfg.cores[side] ? w->cfg.cores[side] : 1;
}

/* ---- the peer ---- */

static void tell_session(struct world *w, int side)
{
	uint32_t all = PEER_FEATURE_ORDER | PEER_FEATURE_SEAL | PEER_FEATURE_OFFER |
		       PEER_FEATURE_ANNOUNCE | PEER_FEATURE_PARITY | PEER_FEATURE_DISPUTE |
		       PEER_FEATURE_OWN | PEER_FEATURE_AHEAD | PEER_FEATURE_REPAIR |
		       PEER_FEATURE_SPREAD | PEER_FEATURE_SLICES;

	shards_peer_rtt(w->shards[side], 0, 2 * w->cfg.wan.delay_ns);
	shards_peer_features(w->shards[side], 0, w->cfg.actors.order == 3 ? 0 : all);
}

void world_peer(struct world *w, int side, enum peer_event ev)
{
	if (!w->shards[side] || w->still[side].since)
		return;
	if (ev == PEER_UP && w->peer[side].restarted)
		ev = PEER_RESTARTED;
	w->peer[side].up = ev != PEER_DOWN;
	w->peer[side].restarted |= ev == PEER_RESTARTED;
	if (w->peer[side].up)
		tell_session(w, side);
	shards_peer_event(w->shards[side], 0, ev, w->now);
	world_crash_soon(w, side);
}

/* As daemon_state_peers(). */
void world_tell_peer(struct world *w, int side)
{
	bool up = w->peer[side].up;

	if (up)
		tell_session(w, side);
	if (up && w->peer[side].restarted)
		shards_peer_event(w->shards[side], 0, PEER_RESTARTED, w->now);
	else
		shards_peer_settle(w->shards[side], 0, up, w->now);
}

/* ---- the operator ---- */

void world_rules(struct world *w, int side)
{
	shards_rules(w->shards[side], &w->rule, !w->unruled[side], w->now);
}

/* The next process reads the same configuration. */
void world_wish(struct world *w, int side, enum world_wish what, bool on)
{
	struct shards *s = w->shards[side];

	if (!s || w->still[side].since)
		return;
	if (what == WISH_NO_RULES) {
		w->unruled[side] = on;
		world_rules(w, side);
	} else if (what == WISH_LIMITS) {
		w->cfg.engine.wan_auto = !w->cfg.engine.wan_auto;
		shards_limits(s, &w->cfg.engine, w->now);
	} else {
		(void)shards_bypass(s, BYPASS_ALL, 0, on, w->now);
	}
	world_crash_soon(w, side);
}

/* It is stopped once more where a process that was killed has another one follow. */
void world_drain(struct world *w, int side)
{
	if (w->engine[side]->draining)
		return;
	shards_drain(w->shards[side], w->now);
	world_crash_soon(w, side);
}

/* ---- what they agree about ---- */

static bool agree(const struct engine *a, const struct engine *b)
{
	return !memcmp(a->peer_up, b->peer_up, sizeof(a->peer_up)) &&
	       !memcmp(a->peer_features, b->peer_features, sizeof(a->peer_features)) &&
	       a->nrules == b->nrules &&
	       !memcmp(a->rules, b->rules, a->nrules * sizeof(*a->rules)) &&
	       a->draining == b->draining && a->all_bypassed == b->all_bypassed &&
	       a->rules_bypassed == b->rules_bypassed && a->cfg.wan_auto == b->cfg.wan_auto;
}

const char *world_agree(const struct world *w, int side)
{
	for (unsigned int i = 1; i < world_cores(w, side); i++)
		if (!agree(w->engine[side], shards_engine(w->shards[side], i)))
			return "engines of one appliance differ about what all were told";
	return NULL;
}
