// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One object per connection, or per half of one that has not found its partner. Figures of its two
 * lanes are added up; `lane-show` has them apart.
 */
#include "control/mirror.h"
#include "control/view.h"

#include <stdio.h>

#include "peer/session.h"

/* The connection's state: of its two lanes' states, the one that matters more to an operator. */
static enum lane_state conn_state(const struct conn_info *ci)
{
	static const int weight[LANE_STATES] = {
		[LANE_WATCH] = 0, [LANE_OPENING] = 1, [LANE_HELD] = 2,
		[LANE_DRAIN] = 3, [LANE_FAULT] = 4,
	};
	enum lane_state a = ci->lane[LANE_OUT].state, b = ci->lane[LANE_IN].state;

	return weight[b] > weight[a] ? b : a;
}

const char *view_reason(enum lane_reason r)
{
	switch (r) {
	case REASON_UNKNOWN:
		return "peer refused: it has seen no packet of it (asymmetric routing?)";
	case REASON_ONE_WAY:
		return "peer refused: it sees one direction only (asymmetric routing)";
	case REASON_MISMATCH:
		return "peer refused: it learned another pair of QPs";
	case REASON_NO_RULE:
		return "peer refused: it has no rule for this connection";
	case REASON_NO_ROOM:
		return "peer refused: its tables are full";
	case REASON_UNSEALED:
		return "peer refused: only one of the two ends seals what crosses the link";
	case REASON_BYPASS:
		return "released: its packets miss one of the two appliances";
	case REASON_IDLE:
		return "released: idle";
	case REASON_DISCONNECT:
		return "released: the hosts disconnected";
	case REASON_INCARNATION:
		return "released: the QP was reused or its PSNs jumped";
	case REASON_NAK:
		return "the responder refused what was already acknowledged";
	case REASON_TIMEOUT:
		return "the responder stopped answering";
	case REASON_NOT_READY:
		return "the responder said for too long that it is not ready (RNR)";
	case REASON_PEER_LOST:
		return "the peer stopped answering";
	case REASON_PEER_RESTARTED:
		return "the peer restarted and lost what it held";
	case REASON_OPERATOR:
		return "released: by a command, another rule or a stop, here or at the peer";
	case REASON_PATH_MTU:
		return "released: path MTU not known, a READ cannot be followed";
	case REASON_POOL_FULL:
		return "released: its share of custody was full when it began";
	case REASON_EARLIER_LOSS:
		return "released: a packet from before the handover is lost; it begins again";
	case REASON_LONG_READ:
		return "released: a READ that is too long to be followed";
	case REASON_FAULT:
		return "the other direction lost its custody, so the connection fails";
	case REASON_ORPHAN:
		return "a former daemon ended with custody of it, and its state is lost; the QP is "
		       "put into the error state";
	case REASON_OPCODE:
		return "released: a request has an opcode that is not known here";
	case REASON_SOLO:
		return "a READ was answered before the host asked, and it may have asked for "
		       "something else";
	case REASON_INVARIANT:
		return "an error in longhaul ended it: see the log";
	case REASON_DISPUTED: /* only a question to the peer; no lane ends with it */
		return "the peer was asked whether the QP was reused";
	case REASON_NONE:
	case REASONS:
		break;
	}
	return NULL;
}

bool view_missed(const struct view_source *src, const struct conn_info *ci,
		 const struct lane_info *l, char buf[VIEW_MISSED])
{
	char lan[IP_ADDR_STRLEN], wan[IP_ADDR_STRLEN];
	const char *peer = view_peer_name(src, ci->peer), *name = peer ? peer : "?";

	ip_addr_str(&ci->lan_ip, lan);
	ip_addr_str(&ci->wan_ip, wan);
	switch (l->bypassed) {
	case MISS_US:
		snprintf(buf, VIEW_MISSED, "packets from %s to %s miss this appliance", lan, wan);
		break;
	case MISS_PAST:
		snprintf(buf, VIEW_MISSED, "packets from %s to %s miss this appliance", wan, lan);
		break;
	case MISS_FROM:
		snprintf(buf, VIEW_MISSED, "packets from %s to %s miss the appliance of peer %s",
			 wan, lan, name);
		break;
	case MISS_TO:
		snprintf(buf, VIEW_MISSED, "packets from %s to %s miss the appliance of peer %s",
			 lan, wan, name);
		break;
	case MISS_NONE:
		/* the lane was released for that, and measures nothing any more */
		if (l->reason != REASON_BYPASS || l->state == LANE_HELD)
			return false;
		snprintf(buf, VIEW_MISSED,
			 "packets between %s and %s missed one of the two appliances", lan, wan);
		break;
	}
	return true;
}

/* Whether its rule wants seals and its peer cannot seal. */
static bool not_sealing(const struct view_source *src, const struct conn_info *ci, uint64_t now_ns)
{
	struct session_info si;

	return ci->peer != PEER_NONE && src->session &&
	       session_info(src->session, (unsigned int)ci->peer, now_ns, &si) &&
	       mirror_unsealed(&src->rules[ci->rule], (unsigned int)ci->peer, &si);
}

/* In plain words why the connection is not accelerated; false when it is. */
static bool note(const struct view_source *src, const struct conn_info *ci, enum lane_state state,
		 uint64_t now_ns, char *buf, size_t len)
{
	const char *text = NULL;

	if (state == LANE_HELD)
		return false;
	if (ci->bypassed && state == LANE_WATCH) {
		text = "bypassed by an operator; longhaul bypass off";
	} else if (ci->rule < 0) {
		text = "no rule wants it";
	} else if (!ci->paired) {
		int used = snprintf(buf, len, "looking for its partner: %u match%s", ci->candidates,
				    ci->candidates == 1 ? "" : "es");

		if (ci->contradictions && used > 0 && (size_t)used < len)
			snprintf(buf + used, len - used, ", %u against", ci->contradictions);
		return true;
	} else if (state == LANE_WATCH && src->session && ci->peer >= 0 &&
		   !session_up(src->session, ci->peer)) {
		snprintf(buf, len, "peer %s is down", view_peer_name(src, ci->peer));
		return true;
	} else if (state == LANE_WATCH && not_sealing(src, ci, now_ns)) {
		snprintf(
			buf, len,
			"peer %s is of an older version that does not seal: update longhaul there, "
			"or set seal = off at both ends",
			view_peer_name(src, ci->peer));
		return true;
	} else {
		for (int i = 0; i < 2 && !text; i++)
			if (ci->lane[i].state == state)
				text = state == LANE_FAULT && ci->lane[i].reason == REASON_OPERATOR
					       ? "a stop ran out of time before all was delivered"
					       : view_reason(ci->lane[i].reason);
	}
	if (!text && state == LANE_OPENING)
		text = "waits for the peer's consent";
	if (!text && state == LANE_DRAIN)
		text = "delivers its custody, and takes nothing new";
	if (!text && state == LANE_WATCH && ci->learned_by == LEARNED_HINT)
		text = "has a likely partner by its PSNs; the proof takes WRITEs or SENDs";
	if (!text && state == LANE_WATCH)
		text = "waits for a first acknowledged message";
	snprintf(buf, len, "%s", text ? text : "");
	return buf[0];
}

/* Packets sent again by this appliance, in millionths of all that it sent. */
static uint64_t resent(const struct lane_info *a, const struct lane_info *b)
{
	uint64_t again = a->retransmits + b->retransmits;

	return again * 1000000 / (again + a->requests + b->requests);
}

static json_t *qp_object(const struct view_source *src, const struct conn_info *ci, uint64_t now_ns)
{
	const struct lane_info *a = &ci->lane[LANE_OUT], *b = &ci->lane[LANE_IN];
	struct ledger custody = a->custody, transit = a->transit;
	enum lane_state state = conn_state(ci);
	json_t *o = json_object();
	char text[192];

	view_add_ledger(&custody, &b->custody);
	view_add_ledger(&transit, &b->transit);
	view_put_conn(o, ci);
	view_put_str(o, "state", lane_state_name(state));
	view_put_str(o, "learned-by", learn_source_name(ci->learned_by));
	view_put_str(o, "policy", ci->rule < 0 ? NULL : ack_policy_name(a->policy));
	view_put_str(o, "rule", view_rule_name(src, ci->rule));
	view_put_str(o, "peer", view_peer_name(src, ci->peer));
	view_put_int(o, "path-mtu", ci->path_mtu);
	view_put_ledger(o, "custody", &custody);
	view_put_ledger(o, "transit", &transit);
	view_put_int(o, "requests", a->requests + b->requests);
	view_put_int(o, "pseudo-acks", a->pseudo_acks + b->pseudo_acks);
	view_put_int(o, "true-acks", a->true_acks + b->true_acks);
	view_put_int(o, "dropped-duplicates", a->dropped_duplicates + b->dropped_duplicates);
	view_put_int(o, "retransmits", a->retransmits + b->retransmits);
	json_object_set_new(o, "resent-ppm",
			    a->requests + b->requests ? json_integer((json_int_t)resent(a, b))
						      : json_null());
	view_put_int(o, "out-packets", ci->from_lan.packets);
	view_put_int(o, "out-bytes", ci->from_lan.bytes);
	view_put_int(o, "in-packets", ci->from_wan.packets);
	view_put_int(o, "in-bytes", ci->from_wan.bytes);
	view_put_24(o, "out-msn", ci->paired ? a->msn : UINT32_MAX);
	view_put_24(o, "in-msn", ci->paired ? b->msn : UINT32_MAX);
	/* of the link: the other lane measures the LAN */
	json_object_set_new(o, "rtt-us",
			    a->opener && a->srtt_ns ? json_integer((json_int_t)(a->srtt_ns / 1000))
						    : json_null());
	view_put_int(o, "idle-ms", ci->idle_ns / 1000000);
	if (src->ncores > 1)
		view_put_int(o, "core", shards_of_conn(src->shards, ci->id) % src->ncores);
	if (note(src, ci, state, now_ns, text, sizeof(text)))
		view_put_str(o, "note", text);
	return o;
}

enum view_step view_qp(const struct view_source *src, struct view_cursor *cur, uint64_t now_ns,
		       json_t **out)
{
	struct conn_info ci;

	if (!shards_conn_next(src->shards, cur->conn, now_ns, &ci))
		return VIEW_END;
	cur->conn = ci.id + 1;
	*out = qp_object(src, &ci, now_ns);
	return VIEW_OBJECT;
}
