// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* One object per lane of the connections of which both queue pairs are known. */
#include "control/view.h"

/* What this appliance is to the lane; NULL when it only watches. */
static const char *role(const struct conn_info *ci, const struct lane_info *l)
{
	if (l->state == LANE_WATCH)
		return NULL;
	if (ci->peer == PEER_NONE)
		return "single";
	return l->opener ? "opener" : "acceptor";
}

void view_put_reads(json_t *o, const struct prefetch_info *r)
{
	view_put_int(o, "ahead-hits", r->hits);
	view_put_int(o, "ahead-late-hits", r->late);
	view_put_int(o, "ahead-misses", r->misses);
	view_put_int(o, "ahead-guesses", r->guesses);
	view_put_int(o, "ahead-wasted-bytes", r->wasted_bytes);
	view_put_int(o, "ahead-flushed-pattern", r->flushed_pattern);
	view_put_int(o, "ahead-flushed-signal", r->flushed_signal);
	view_put_int(o, "ahead-flushed-age", r->flushed_age);
	view_put_int(o, "atomics-ahead", r->atomics_ahead);
	view_put_int(o, "atomics-unasked", r->atomics_unasked);
	view_put_int(o, "ahead-window-bytes", r->window);
	view_put_int(o, "ahead-bytes", r->ahead);
	view_put_int(o, "reads-held-bytes", r->held_bytes);
	view_put_int(o, "reads-answered-again", r->answered_again);
	view_put_int(o, "read-depth", r->depth);
	view_put_int(o, "psn-shift", r->shift);
	view_put_int(o, "msn-shift", r->shift_msn);
}

void view_put_announce(json_t *o, const struct announce_info *a)
{
	view_put_str(o, "announce", a->phase);
	view_put_str(o, "announce-reason", a->why);
	view_put_int(o, "announce-commands", a->commands);
	view_put_int(o, "announce-bytes", a->bytes);
	view_put_int(o, "announce-unused-bytes", a->unused);
	view_put_int(o, "announce-late-bytes", a->late);
	view_put_int(o, "announce-absorbed", a->absorbed);
	view_put_int(o, "announce-served", a->served);
	view_put_int(o, "announce-native", a->native);
	view_put_int(o, "announce-parity", a->parity);
	view_put_int(o, "announce-repaired", a->repaired);
	view_put_int(o, "announce-mismatches", a->mismatches);
}

/* Why the lane @l between two appliances is not sealed; NULL where it is. */
static const char *unsealed_because(const struct view_source *src, const struct conn_info *ci,
				    const struct lane_info *l)
{
	if (l->sealed)
		return NULL;
	if (ci->rule >= 0 && !src->rules[ci->rule].seal)
		return "the rule has seal = off";
	if (l->state == LANE_OPENING)
		return "the peer has not agreed yet";
	if (l->opener)
		return "it began with seal = off, or its peer must agree to it again";
	return "it began with seal = off";
}

void view_put_seal(json_t *o, const struct view_source *src, const struct conn_info *ci,
		   const struct lane_info *l)
{
	bool pair = l->state != LANE_WATCH && ci->peer != PEER_NONE;

	/* null: there is no pair of appliances that seals */
	view_put_str(o, "seal", !pair ? NULL : l->sealed ? "on" : "off");
	view_put_str(o, "seal-reason", pair ? unsealed_because(src, ci, l) : NULL);
	view_put_str(o, "path-bypass",
		     l->bypassed == MISS_US	? "past-this-appliance"
		     : l->bypassed == MISS_FROM ? "comes-past-the-peer"
		     : l->bypassed == MISS_TO	? "does-not-reach-the-peer"
		     : l->bypassed == MISS_PAST ? "comes-past-this-appliance"
						: NULL);
}

static json_t *lane_object(const struct view_source *src, const struct conn_info *ci,
			   unsigned int dir)
{
	const struct lane_info *l = &ci->lane[dir];
	json_t *o = json_object();

	view_put_conn(o, ci);
	view_put_str(o, "direction", dir == LANE_OUT ? "out" : "in");
	view_put_str(o, "role", role(ci, l));
	view_put_str(o, "state", lane_state_name(l->state));
	view_put_str(o, "reason", l->reason == REASON_NONE ? NULL : lane_reason_name(l->reason));
	view_put_str(o, "policy", ack_policy_name(l->policy));
	view_put_str(o, "rule", view_rule_name(src, ci->rule));
	view_put_str(o, "peer", view_peer_name(src, ci->peer));
	view_put_int(o, "path-mtu", ci->path_mtu);
	view_put_24(o, "epsn", l->epsn);
	view_put_24(o, "frontier", l->opener ? l->frontier : UINT32_MAX);
	view_put_24(o, "una", l->una);
	view_put_24(o, "nxt", l->nxt);
	view_put_int(o, "msn", l->msn);
	view_put_ledger(o, "custody", &l->custody);
	view_put_ledger(o, "transit", &l->transit);
	view_put_int(o, "silent-ms", l->silent_ns / 1000000);
	view_put_seal(o, src, ci, l);
	view_put_int(o, "reads-pending", l->reads_pending);
	view_put_reads(o, &l->reads);
	view_put_announce(o, &l->announce);
	view_put_int(o, "requests", l->requests);
	view_put_int(o, "pseudo-acks", l->pseudo_acks);
	view_put_int(o, "true-acks", l->true_acks);
	view_put_int(o, "dropped-duplicates", l->dropped_duplicates);
	view_put_int(o, "retransmits", l->retransmits);
	view_put_int(o, "naks-sent", l->naks_sent);
	view_put_int(o, "timeouts", l->timeouts);
	view_put_int(o, "rnr", l->rnr);
	view_put_int(o, "srtt-us", l->srtt_ns / 1000);
	return o;
}

enum view_step view_lane(const struct view_source *src, struct view_cursor *cur, uint64_t now_ns,
			 json_t **out)
{
	struct conn_info ci;

	if (!shards_conn_next(src->shards, cur->conn, now_ns, &ci))
		return VIEW_END;
	if (ci.id != cur->conn) {
		cur->conn = ci.id;
		cur->sub = 0;
	}
	if (!ci.paired) {
		cur->conn++;
		return VIEW_AGAIN;
	}
	*out = lane_object(src, &ci, cur->sub ? LANE_IN : LANE_OUT);
	if (cur->sub)
		cur->conn++;
	cur->sub = !cur->sub;
	return VIEW_OBJECT;
}
