// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "daemon/event_log.h"

#include <stdio.h>

#include "host/log.h"

#define LINES_BURST	 100
#define LINES_PER_SECOND 20

static const int prios[] = {
	[EVENT_PAIRED] = LOG_INFO,    [EVENT_HELD] = LOG_INFO,	      [EVENT_REFUSED] = LOG_WARNING,
	[EVENT_CLOSED] = LOG_INFO,    [EVENT_INCARNATION] = LOG_INFO, [EVENT_FAULT] = LOG_ERR,
	[EVENT_ANNOUNCE] = LOG_INFO,  [EVENT_CROWDED] = LOG_WARNING,  [EVENT_ABANDONED] = LOG_INFO,
	[EVENT_BYPASS] = LOG_WARNING, [EVENT_INVARIANT] = LOG_ERR,
};

static const char *qpn_text(uint32_t qpn, char *buf, size_t len)
{
	if (qpn > 0xffffff)
		return "?";
	snprintf(buf, len, "0x%x", qpn);
	return buf;
}

/* "rule storage: 10.1.0.5 qpn 0x11 <-> 10.2.0.7 qpn 0x12" */
static void conn_text(const struct view_source *src, const struct conn_info *ci, char *buf,
		      size_t len)
{
	char lan[IP_ADDR_STRLEN], wan[IP_ADDR_STRLEN], lqpn[12], rqpn[12];
	const char *rule = view_rule_name(src, ci->rule);

	snprintf(buf, len, "rule %s: %s qpn %s <-> %s qpn %s", rule ? rule : "none",
		 ip_addr_str(&ci->lan_ip, lan), qpn_text(ci->lqpn, lqpn, sizeof(lqpn)),
		 ip_addr_str(&ci->wan_ip, wan), qpn_text(ci->rqpn, rqpn, sizeof(rqpn)));
}

static void write_must(const struct engine_event *ev, const char *conn)
{
	const struct engine_must *m = &ev->must;

	log_line(prios[ev->type],
		 "%s lane %s: INVARIANT broken at %s:%u: %s (0x%llx, 0x%llx); this is an error in "
		 "longhaul, please report it",
		 conn, ev->requests_from_lan ? "out" : "in", m->file, m->line, m->what,
		 (unsigned long long)m->x, (unsigned long long)m->y);
}

static void write_event(const struct view_source *src, const struct engine_event *ev,
			const char *conn, const struct conn_info *ci)
{
	const struct lane_info *lane = &ci->lane[ev->requests_from_lan ? LANE_OUT : LANE_IN];
	const char *dir = ev->requests_from_lan ? "out" : "in",
		   *peer = view_peer_name(src, ci->peer);
	const char *reason = lane_reason_name(ev->reason), *why = lane->announce.why;
	char missed[VIEW_MISSED] = "its packets miss one of the two appliances";
	int prio = prios[ev->type];

	switch (ev->type) {
	case EVENT_INVARIANT: /* write_must() */
	case EVENT_TYPES:
		break;
	case EVENT_CROWDED:
		log_line(
			prio,
			"%u queue pairs got packets but sent no answer: new ones pass "
			"unaccelerated until some are forgotten; are the packets forged? (last %s)",
			ev->packets, conn);
		break;
	case EVENT_PAIRED:
		log_line(prio, "%s learned by %s", conn, learn_source_name(ci->learned_by));
		break;
	case EVENT_HELD:
		log_line(prio, "%s lane %s held from PSN 0x%x, policy %s, %s %s%s%s", conn, dir,
			 lane->una, ack_policy_name(lane->policy), peer ? "peer" : "single mode",
			 peer ? peer : "", why ? "; announce not yet: " : "", why ? why : "");
		break;
	case EVENT_ANNOUNCE:
		log_line(prio, "%s lane %s announce %s%s%s", conn, dir,
			 lane->announce.phase ? lane->announce.phase : "off", why ? ": " : "",
			 why ? why : "");
		break;
	case EVENT_REFUSED:
		log_line(prio, "%s lane %s refused by peer %s: %s; it passes unaccelerated", conn,
			 dir, peer ? peer : "?", reason);
		break;
	case EVENT_CLOSED:
		log_line(prio, "%s lane %s released: %s", conn, dir, reason);
		break;
	case EVENT_INCARNATION:
		log_line(prio, "%s lane %s: QP reused or PSNs jumped, learning it again", conn,
			 dir);
		break;
	case EVENT_BYPASS:
		(void)view_missed(src, ci, lane, missed);
		log_line(prio, "%s lane %s: %s", conn, dir, missed);
		break;
	case EVENT_ABANDONED:
		log_line(prio,
			 "%s lane %s: both hosts have closed it with %u packets, %llu bytes in "
			 "custody, which are dropped: no queue pair waits for them",
			 conn, dir, ev->packets, (unsigned long long)ev->bytes);
		break;
	case EVENT_FAULT:
		log_line(prio,
			 "%s lane %s FAULT: %u packets, %llu bytes in custody cannot be delivered: "
			 "%s; its QP is put into the error state so that the application sees it",
			 conn, dir, ev->packets, (unsigned long long)ev->bytes, reason);
		break;
	}
}

void event_log_write(struct event_log *l, const struct view_source *src,
		     const struct engine_event *ev, uint64_t now_ns)
{
	struct conn_info ci;
	char conn[192];

	if (ev->type != EVENT_FAULT && ev->type != EVENT_INVARIANT) {
		if (!l->tokens) {
			l->left_out++;
			return;
		}
		l->tokens--;
	}
	if (!shards_conn(src->shards, ev->conn, now_ns, &ci)) {
		ci = (struct conn_info){
			.rule = -1, .peer = -1, .lqpn = UINT32_MAX, .rqpn = UINT32_MAX};
		snprintf(conn, sizeof(conn), "connection %u", ev->conn);
	} else {
		conn_text(src, &ci, conn, sizeof(conn));
	}
	if (ev->type == EVENT_INVARIANT)
		write_must(ev, conn);
	else
		write_event(src, ev, conn, &ci);
}

void event_log_tick(struct event_log *l, uint64_t now_ns)
{
	uint64_t add = (now_ns - l->refilled_ns) * LINES_PER_SECOND / 1000000000u;

	if (!l->refilled_ns)
		add = LINES_BURST;
	if (!add)
		return;
	l->refilled_ns = now_ns;
	l->tokens = l->tokens + add > LINES_BURST ? LINES_BURST : l->tokens + (unsigned int)add;
	if (l->left_out) {
		log_line(LOG_WARNING,
			 "%llu more events of connections not logged: too many at once",
			 (unsigned long long)l->left_out);
		l->left_out = 0;
	}
}
