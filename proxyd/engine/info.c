// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What an operator may see of the engine: connections, lanes, ledgers, counters, memory.
 */
#include "engine/announce/announce.h"
#include "engine/reads/reads.h"

static const char *const counter_names[EC_COUNT] = {
#define X(id, name, help) [EC_##id] = name,
	ENGINE_COUNTERS(X)
#undef X
};

static const char *const counter_helps[EC_COUNT] = {
#define X(id, name, help) [EC_##id] = help,
	ENGINE_COUNTERS(X)
#undef X
};

const char *engine_counter_name(enum engine_counter c)
{
	return c < EC_COUNT ? counter_names[c] : "?";
}

const char *engine_counter_help(enum engine_counter c)
{
	return c < EC_COUNT ? counter_helps[c] : "?";
}

/* How old the oldest packet held is at least: whatever is said or sent meanwhile, it was the oldest
 * for so long; mostly it was sent once, and longer ago. */
static uint64_t oldest(struct engine *e, const struct lane *l, uint64_t now)
{
	uint64_t age = (ms_of(now) - l->waits_ms) * NSEC_PER_MSEC;
	struct wire_psn psn;
	const struct pkt *d = lane_pkt_next(e, l, l->una.psn, l->end, &psn);

	if (d && d->flags & PKT_SENT)
		age = MAX(age, ((uint32_t)(now / NSEC_PER_USEC) - d->xmit) * NSEC_PER_USEC);
	return l->held.packets ? age : 0;
}

/* How long the responder has not answered what it has. Of a far one the peer tells: what the WAN
 * has not brought yet it cannot answer, and since the peer's latest report it may have. */
static uint64_t silent(const struct lane *l, uint64_t now)
{
	uint32_t told = ms_of(l->progress);
	int32_t ms = MIN((int32_t)(told - l->waits_ms), (int32_t)(told - l->opener.had_ms));

	if (l->role == ROLE_OPENER)
		return (uint64_t)MAX(ms, 0) * NSEC_PER_MSEC;
	return psn_is(l->una.psn, l->high) || !l->held.packets ? 0 : now - l->progress;
}

static struct ledger ledger_of(struct engine *e, const struct lane *l, uint64_t now)
{
	return (struct ledger){
		.messages = l->messages,
		.packets = l->held.packets,
		.bytes = l->held.bytes,
		.oldest_ns = oldest(e, l, now),
	};
}

static void fill_reads(struct engine *e, const struct lane *l, struct lane_info *out)
{
	const struct lane_reads *x = reads_of(e, l);

	if (!x)
		return;
	out->reads = x->info;
	out->reads.window = x->window;
	out->reads.ahead = x->guessed;
	out->reads.held_bytes = x->held.bytes;
	out->reads.depth = x->depth;
	if (!lane_keeps(l) && l->role != ROLE_SOLO)
		return;
	out->epsn = x->map.asked.psn.v;
	out->reads.shift = psn_sub(l->epsn.psn.v, x->map.asked.psn.v);
	out->reads.shift_msn = psn_sub(l->epsn.msn, x->map.asked.msn);
}

/* Whether the lane's end needs packets that no rule may ask for: answers, or requests. */
static bool lingers(const struct engine *e, const struct flow *fl)
{
	const struct lane *l = &fl->lane;

	return l->role != ROLE_NONE &&
	       (l->state == LANE_DRAIN || l->state == LANE_FAULT || fl->rule < 0 ||
		(l->role == ROLE_ACCEPTOR && l->closing) || e->rules[fl->rule].peer != l->peer);
}

static void fill_announce(struct engine *e, const struct flow *fl, struct announce_info *out)
{
	const struct lane *l = &fl->lane;
	static const char *const phases[] = {[ANNOUNCE_PROVING] = "proving",
					     [ANNOUNCE_PROVEN] = "proven",
					     [ANNOUNCE_OFF] = "off"};
	const struct lane_announce *y = announce_of(e, l);

	if (y)
		*out = y->info;
	out->why = announce_why(e, fl);
	if (!y)
		return;
	out->phase =
		y->phase == ANNOUNCE_PROVEN && reads_of(e, l)->announce ? "on" : phases[y->phase];
	out->proofs = y->proofs;
	out->mismatches = y->misses;
}

static void fill_lane(struct engine *e, const struct flow *fl, uint64_t now, struct lane_info *out)
{
	const struct lane *l = &fl->lane;
	bool held = l->role != ROLE_NONE;

	*out = (struct lane_info){
		.state = l->state,
		.policy = held		  ? l->policy
			  : fl->rule >= 0 ? e->rules[fl->rule].policy
					  : POLICY_OFF,
		.reason = l->reason,
		.opener = lane_keeps(l),
		.lingers = lingers(e, fl),
		.epsn = l->epsn.psn.v,
		.frontier = held ? l->near.frontier.psn.v : PSN_NONE,
		.una = l->una.psn.v,
		.nxt = held ? l->nxt.psn.v : PSN_NONE,
		.msn = held ? l->near.frontier.msn : l->epsn.msn,
		.reads_pending = l->nreads,
		.sealed = l->role == ROLE_OPENER ? seal_sure(l) : l->sealed,
		.bypassed = (enum path_miss)l->bypassed,
		.requests = l->count.requests,
		.pseudo_acks = l->count.pseudo_acks,
		.true_acks = l->count.true_acks,
		.dropped_duplicates = l->count.dup,
		.retransmits = l->count.retx,
		.naks_sent = l->count.naks,
		.timeouts = l->count.timeouts,
		.rnr = l->count.rnr,
		.srtt_ns = l->rtt.srtt_us * NSEC_PER_USEC,
		.silent_ns = silent(l, now),
	};
	fill_reads(e, l, out);
	fill_announce(e, fl, &out->announce);
	*(lane_keeps(l) ? &out->custody : &out->transit) = ledger_of(e, l, now);
}

static void fill_meter(struct engine *e, const struct flow *fl, struct conn_info *out)
{
	typeof(out->from_lan) *from = fl->side == PORT_LAN ? &out->from_lan : &out->from_wan;

	from->packets = fl->meter.packets;
	from->bytes = fl->meter.bytes;
	out->bypassed |= flow_let_go(e, fl) && !e->draining;
}

/* A connection is shown once, under its LAN side's flow; a flow without partner under itself. */
bool engine_conn_next(struct engine *e, uint32_t from, uint64_t now_ns, struct conn_info *out)
{
	for (uint32_t i = from; i < e->flows_end; i++) {
		const struct flow *fl = &e->flows[i];
		const struct flow *other = flow_partner(e, fl);
		bool lan = fl->side == PORT_LAN;

		if (!fl->used || (other && !lan))
			continue;
		if (!out)
			return true;
		*out = (struct conn_info){
			.id = i,
			.paired = other != NULL,
			.lan_ip = lan ? fl->key.src : fl->key.dst,
			.wan_ip = lan ? fl->key.dst : fl->key.src,
			.lqpn = lan ? PSN_NONE : fl->key.dqpn,
			.rqpn = lan ? fl->key.dqpn : PSN_NONE,
			.vlan = fl->key.vlan,
			.learned_by = fl->learned,
			.rule = fl->rule,
			.peer = fl->rule >= 0 ? e->rules[fl->rule].peer : PEER_NONE,
			.path_mtu = fl->path_mtu,
			.candidates = fl->matches,
			.contradictions = fl->contradictions,
			.idle_ns = now_ns - fl->seen,
			.storage = fl->left ? STORAGE_UNKNOWN : fl->storage,
		};
		fill_meter(e, fl, out);
		fill_lane(e, fl, now_ns, &out->lane[lan ? LANE_OUT : LANE_IN]);
		if (other) {
			out->lqpn = other->key.dqpn;
			fill_meter(e, other, out);
			out->idle_ns = MIN(out->idle_ns, now_ns - other->seen);
			fill_lane(e, other, now_ns, &out->lane[LANE_IN]);
		}
		return true;
	}
	return false;
}

struct ledger engine_custody(struct engine *e, int rule, uint64_t now_ns)
{
	struct ledger sum = {0};

	flow_each (const struct flow, fl, e) {
		struct ledger one;

		if (!lane_keeps(&fl->lane) || (rule >= 0 && fl->rule != rule))
			continue;
		one = ledger_of(e, &fl->lane, now_ns);
		sum.messages += one.messages;
		sum.packets += one.packets;
		sum.bytes += one.bytes;
		sum.oldest_ns = MAX(sum.oldest_ns, one.oldest_ns);
	}
	return sum;
}

void engine_memory(const struct engine *e, struct engine_memory *out)
{
	*out = (struct engine_memory){
		.pool_bytes = pool_size(e->pool),
		.pool_most = e->cfg.pool_most,
		.pool_spare = pool_spare(e->pool),
		.pool_short = pool_short(e->pool),
		.custody_used = pool_used(e->pool, POOL_CUSTODY),
		.custody_cap = pool_cap_now(e->pool, POOL_CUSTODY),
		.transit_used = pool_used(e->pool, POOL_TRANSIT),
		.transit_cap = pool_cap_now(e->pool, POOL_TRANSIT),
		.flows = e->used_flows,
		.flows_max = e->nflows,
		.conns = e->conns,
		.lane_bytes = sizeof(struct flow),
	};
}

static uint32_t ppm(double share)
{
	return (uint32_t)(share * 1e6);
}

bool engine_link_info(const struct engine *e, unsigned int peer, struct link_info *out)
{
	const struct wan_link *k;

	if (peer >= PEER_MAX)
		return false;
	k = &e->link[peer];
	*out = (struct link_info){
		.sent = k->sent,
		.got = k->got,
		.marked = k->marked,
		.out = k->out,
		.in = {k->heard.echo_sent, k->heard.got},
		.pace = e->cfg.wan_auto ? rate_pace(&k->rate) : e->cfg.wan_rate,
		.delivered = (uint64_t)k->rate.delivered,
		.queue_ns = rate_queue_ns(&k->rate),
		.rtt_ns = k->rate.rtt,
		.cuts = k->rate.cuts,
		.lost_ppm = ppm(k->rate.lost),
		.noise_ppm = ppm(k->rate.noise),
		.phase = e->cfg.wan_auto ? rate_phase_name(k->rate.phase) : "fixed",
		.cause = rate_cause_name(k->rate.cause),
		.share = e->cfg.wan_auto ? rate_share_name(k->rate.share) : NULL,
	};
	return true;
}
