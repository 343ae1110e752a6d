// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Where the numbers of a sample come from. Connections are looked at SCAN_CONNS per tick and peers
 * one per tick, so that a tick does little.
 */
#include "control/health.h"

#include <stdio.h>
#include <string.h>

#include "peer/session.h"
#include "peer/socket.h"
#include "port/afxdp.h"

#define SECOND_NS  1000000000ull
#define SCAN_CONNS 64
#define SILENT_NS  (5 * SECOND_NS)
#define WAIT_NS	   (10 * SECOND_NS) /* to learn the connection and agree with the peer */
#define MINUTE_NS  (60 * SECOND_NS)
#define SIGN_NS	   (5 * SECOND_NS) /* a sign from the network counts for so long */
#define HEADERS	   60u		   /* of a WRITE over IPv4 */
#define ACTIVE_NS  (5 * SECOND_NS)

enum waiting {
	WAITS_HALF,
	WAITS_MTU,
	WAITS_REFUSED,
};

static void name_conn(const struct conn_info *ci, char *buf)
{
	char lan[IP_ADDR_STRLEN], wan[IP_ADDR_STRLEN];

	if (ci->paired)
		snprintf(buf, HEALTH_NAME, "%s qpn 0x%x and %s qpn 0x%x",
			 ip_addr_str(&ci->lan_ip, lan), ci->lqpn, ip_addr_str(&ci->wan_ip, wan),
			 ci->rqpn);
	else if (ci->lqpn > 0xffffff)
		snprintf(buf, HEALTH_NAME, "%s qpn 0x%x, asked by %s",
			 ip_addr_str(&ci->wan_ip, wan), ci->rqpn, ip_addr_str(&ci->lan_ip, lan));
	else
		snprintf(buf, HEALTH_NAME, "%s qpn 0x%x, asked by %s",
			 ip_addr_str(&ci->lan_ip, lan), ci->lqpn, ip_addr_str(&ci->wan_ip, wan));
}

/* Whether @ci has waited for @kind longer than WAIT_NS. The first call notes since when. */
static bool waits_long(struct health *h, uint32_t id, enum waiting kind, uint64_t now)
{
	for (unsigned int i = 0; i < h->nwaiting; i++) {
		struct health_waiting *w = &h->waiting[i];

		if (w->id != id)
			continue;
		w->seen = true;
		if (w->kind != kind) {
			w->kind = (uint8_t)kind;
			w->since = now;
		}
		return now - w->since >= WAIT_NS;
	}
	if (h->nwaiting < HEALTH_WAIT)
		h->waiting[h->nwaiting++] = (struct health_waiting){
			.id = id, .kind = (uint8_t)kind, .seen = true, .since = now};
	return false;
}

static void forget_waiting(struct health *h)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < h->nwaiting; i++) {
		if (!h->waiting[i].seen)
			continue;
		h->waiting[kept] = h->waiting[i];
		h->waiting[kept++].seen = false;
	}
	h->nwaiting = kept;
}

bool health_refusal(enum lane_reason r)
{
	return (r >= REASON_UNKNOWN && r <= REASON_NO_ROOM) || r == REASON_UNSEALED;
}

static void scan_waiting(struct health *h, const struct conn_info *ci, uint64_t now)
{
	struct health_scan *s = &h->scanned;
	enum lane_reason a = ci->lane[LANE_OUT].reason, b = ci->lane[LANE_IN].reason;

	if (!ci->paired) {
		if (waits_long(h, ci->id, WAITS_HALF, now) && !s->half++)
			name_conn(ci, s->half_name);
	} else if (!ci->path_mtu) {
		if (waits_long(h, ci->id, WAITS_MTU, now) && !s->no_mtu++)
			name_conn(ci, s->mtu_name);
	} else if (health_refusal(a) || health_refusal(b)) {
		if (waits_long(h, ci->id, WAITS_REFUSED, now) && !s->refused++) {
			name_conn(ci, s->refused_name);
			s->refusal = health_refusal(a) ? a : b;
		}
	}
}

/* Whether the rule @r could say announce = auto, and does not. */
static bool may_announce(const struct rule *r)
{
	return r->peer != PEER_NONE && !r->announce && !r->prefetch && !r->atomic && !r->order;
}

/* The link to the peer of @ci is down, or has just come back: that is why packets do not arrive. */
static bool conn_cut(const struct health *h, const struct conn_info *ci, uint64_t now)
{
	return ci->peer != PEER_NONE &&
	       (!(h->links >> ci->peer & 1) || now - h->changed_at < SILENT_NS);
}

/* Packets that miss an appliance. An idle connection without custody is skipped: what it shows is
 * old, and its path may have been corrected. */
static void scan_missed(struct health *h, const struct view_source *src, const struct conn_info *ci,
			uint64_t now)
{
	struct health_scan *s = &h->scanned;
	bool any = false;

	if (conn_cut(h, ci, now))
		return;
	for (int i = 0; i < 2; i++) {
		const struct lane_info *l = &ci->lane[i];
		char words[VIEW_MISSED];

		if (ci->idle_ns >= ACTIVE_NS && !l->custody.packets && !l->transit.packets)
			continue;
		if (!view_missed(src, ci, l, words))
			continue;
		any = true;
		/* a released lane does not tell any more which appliance they missed */
		if (!s->missed_name[0] || (l->bypassed && !s->missed_now))
			memcpy(s->missed_name, words, sizeof(words));
		s->missed_now |= l->bypassed != MISS_NONE;
	}
	s->missed += any;
}

static void scan_conn(struct health *h, const struct view_source *src, const struct conn_info *ci,
		      uint64_t now)
{
	struct health_scan *s = &h->scanned;
	bool held = false, active = ci->idle_ns < ACTIVE_NS;

	scan_missed(h, src, ci, now);
	s->bypassed += ci->paired && ci->bypassed;
	if (active && ci->peer != PEER_NONE && ci->path_mtu > s->path_mtu[ci->peer])
		s->path_mtu[ci->peer] = (uint16_t)ci->path_mtu;
	if (ci->storage && ci->rule >= 0 && may_announce(&src->rules[ci->rule]))
		s->storage[ci->storage]++;
	for (int i = 0; i < 2; i++) {
		const struct lane_info *l = &ci->lane[i];
		/* while the link is down, the answers of a far responder are not known */
		uint64_t wait = l->opener && conn_cut(h, ci, now) ? 0 : l->silent_ns;

		held |= l->state == LANE_HELD;
		/* both hosts may have disconnected: no fault yet (engine/fault/fault.c) */
		s->fault += l->state == LANE_FAULT && l->reason != REASON_DISCONNECT;
		if (l->state == LANE_FAULT || l->bypassed || wait < SILENT_NS)
			continue;
		if (wait > s->silent_ns)
			s->silent_ns = wait;
		if (!s->silent++)
			name_conn(ci, s->silent_name);
	}
	if (!held && ci->rule >= 0 && active && !ci->bypassed)
		scan_waiting(h, ci, now);
}

static void scan(struct health *h, const struct view_source *src, uint64_t now)
{
	struct conn_info ci;

	for (int i = 0; i < SCAN_CONNS; i++) {
		if (!shards_conn_next(src->shards, h->scan_conn, now, &ci)) {
			h->scan = h->scanned;
			h->scanned = (struct health_scan){0};
			h->scan_conn = 0;
			forget_waiting(h);
			return;
		}
		h->scan_conn = ci.id + 1;
		scan_conn(h, src, &ci, now);
	}
}

/* The longest silence of each peer since the previous sample; one peer a call. */
static void hear(struct health *h, const struct view_source *src, uint64_t now)
{
	struct session_info si;
	unsigned int i = h->next_peer;

	if (!src->session || !src->npeers)
		return;
	h->next_peer = (i + 1) % src->npeers;
	if (session_info(src->session, i, now, &si) && si.state == SESSION_UP &&
	    si.heard_ns > h->peer_late[i])
		h->peer_late[i] = si.heard_ns;
}

void health_peer_down(struct health *h, const struct view_source *src, unsigned int peer,
		      uint64_t now_ns)
{
	struct session_info si;

	if (!session_info(src->session, peer, now_ns, &si) || !si.heard)
		return;
	if (si.heard_ns > h->peer_late[peer])
		h->peer_late[peer] = si.heard_ns;
	h->next_sample = now_ns;
}

void health_bypass(struct health *h, const struct view_source *src, const char *bypass,
		   uint64_t now_ns)
{
	/* the scan under way has counted only some of the connections */
	h->scanned = (struct health_scan){0};
	h->scan_conn = 0;
	h->scan.bypassed = h->sample.scan.bypassed = shards_bypassed(src->shards);
	h->sample.bypass = bypass;
	h->sample.now = now_ns;
	health_judge_bypass(h);
}

void health_missed(struct health *h, const struct view_source *src, uint32_t conn, uint64_t now_ns)
{
	struct conn_info ci;

	if (!shards_conn(src->shards, conn, now_ns, &ci))
		return;
	for (int i = 0; i < 2; i++) {
		if (!ci.lane[i].bypassed)
			continue;
		(void)view_missed(src, &ci, &ci.lane[i], h->missed);
		h->missed_at = now_ns;
		h->missed_peer = ci.peer;
	}
}

/* Text of the latest event: for SIGN_NS, or as long as all that shows it is lanes released for it.
 * "" if the link to the peer changed since the event, and so may have caused it. */
static const char *missed_lately(const struct health *h, uint64_t now)
{
	bool up = h->missed_peer == PEER_NONE || (h->links >> h->missed_peer & 1);

	if (!h->missed_at || !up || h->changed_at > h->missed_at)
		return "";
	if (now - h->missed_at < SIGN_NS || (h->scan.missed && !h->scan.missed_now))
		return h->missed;
	return "";
}

/* Errors that the network returned for peers' datagrams, and datagrams from unknown senders, since
 * the previous sample. */
static void sample_signs(struct health *h, const struct view_source *src, uint64_t now)
{
	struct peer_socket_stats st;
	bool stranger;

	if (!src->sock)
		return;
	peer_socket_stats(src->sock, &st);
	if (st.unknown_source != h->strangers)
		h->stranger_at = now;
	h->strangers = st.unknown_source;
	stranger = h->stranger_at && now - h->stranger_at < SIGN_NS;
	for (unsigned int i = 0; i < PEER_MAX; i++) {
		int err = peer_socket_trouble(src->sock, i);
		bool old = now - h->trouble_at[i] >= SIGN_NS;

		if (err)
			h->trouble_at[i] = now;
		h->signs[i] = (struct peer_signs){.trouble = err   ? err
							     : old ? 0
								   : h->signs[i].trouble,
						  .stranger = stranger,
						  .addr = st.unknown_addr,
						  .port = st.unknown_port};
	}
}

uint64_t health_blocked(struct health_way *w, const struct link_count *c, uint64_t now)
{
	if (c->sent != w->sent) {
		w->grew_at = now;
		/* in a new session the count begins at 0 */
		w->before = c->sent < w->sent ? c->sent : w->sent;
		w->sent = c->sent;
	}
	if (c->got != w->base.got || c->sent < w->base.sent || now - w->grew_at >= MINUTE_NS)
		w->base = *c;
	return w->before > w->base.sent ? w->before - w->base.sent : 0;
}

static void sample_blocked(struct health *h, const struct view_source *src, unsigned int i,
			   uint64_t now)
{
	struct health_peer *p = &h->sample.peer[i];
	struct link_info k;

	if (!shards_link_info(src->shards, i, &k))
		return;
	p->blocked[0] = health_blocked(&h->way[i][0], &k.out, now);
	p->blocked[1] = health_blocked(&h->way[i][1], &k.in, now);
}

static void sample_peers(struct health *h, const struct view_source *src, uint64_t now)
{
	struct health_sample *s = &h->sample;
	struct session_info si;
	uint32_t links = (uint32_t)s->port[STEER_LAN].down << PEER_MAX |
			 (uint32_t)s->port[STEER_WAN].down << (PEER_MAX + 1);

	sample_signs(h, src, now);
	s->npeers = src->session ? src->npeers : 0;
	for (unsigned int i = 0; i < s->npeers; i++) {
		struct health_peer *p = &s->peer[i];

		*p = (struct health_peer){.name = src->peers[i].name};
		if (!session_info(src->session, i, now, &si))
			continue;
		p->up = si.state == SESSION_UP;
		if (p->up) /* signs of before it came tell nothing of why it goes */
			h->signs[i].trouble = 0;
		p->met = si.heard;
		p->beats = si.beats;
		(void)peer_cause(&src->peers[i], &si, &h->signs[i], &p->cause);
		for (unsigned int k = 0; k < src->nrules; k++)
			p->unsealed |= mirror_unsealed(&src->rules[k], i, &si);
		(void)mirror_fault(src->rules, src->nrules, i, &si, &p->mirror);
		if (p->up)
			memcpy(p->reach, si.reach, sizeof(p->reach));
		sample_blocked(h, src, i, now);
		if (si.site_known) {
			memcpy(p->mtu, si.site.mtu, sizeof(p->mtu));
			p->longest = si.site.longest;
			p->lan_down = si.site.down[STEER_LAN];
		}
		links |= (uint32_t)p->up << i;
		links |= (uint32_t)(health_narrow(&p->reach[0]) || health_narrow(&p->reach[1]))
			 << (PEER_MAX + 2);
		if (si.rtt_samples) {
			p->owd_above_ns = si.owd_above_ns;
			p->rtt_min_ns = si.rtt_min_ns;
		}
		/* peer-late reports a short break when it is over; a longer one raises peer-down */
		p->late_ns = p->up ? h->peer_late[i] : 0;
		if (p->up || s->port[STEER_WAN].down ||
		    h->alarm[HEALTH_KINDS + i * HEALTH_PEER_KINDS + HEALTH_PEER_DOWN].raised)
			h->peer_late[i] = 0;
	}
	if (links != h->links)
		h->changed_at = now;
	h->links = links;
	s->calm_ns = now - h->changed_at;
}

/* The longest frame of the last minute: older ones must not keep the alarm raised. */
static uint32_t longest(struct health *h, struct afxdp *port, int side, uint64_t now)
{
	uint32_t len = afxdp_longest(port, side);

	if (len >= h->longest[side] || now - h->longest_at[side] >= MINUTE_NS) {
		h->longest[side] = len;
		h->longest_at[side] = now;
	}
	return h->longest[side];
}

static void add_name(char names[HEALTH_PORTS], const char *name)
{
	size_t at = strlen(names);

	snprintf(names + at, HEALTH_PORTS - at, "%s%s", at ? ", " : "", name);
}

static void sample_state(struct health_port *p, const struct afxdp *port, unsigned int side)
{
	unsigned int down = 0, all = 0;

	for (unsigned int i = STEER_PORT(side, 0); i < STEER_PORT(side + 1, 0); i++) {
		bool absent = afxdp_absent(port, i);
		uint32_t mtu;

		if (!absent && !afxdp_has(port, i))
			continue;
		all++;
		add_name(p->name, afxdp_name(port, i));
		if (absent || afxdp_down(port, i)) {
			down++;
			add_name(p->lost, afxdp_name(port, i));
		}
		if (!absent && afxdp_alone(port, i))
			snprintf(p->alone, sizeof(p->alone), "%s", afxdp_name(port, i));
		mtu = absent ? 0 : afxdp_mtu(port, i);
		if (mtu && (!p->mtu || mtu < p->mtu))
			p->mtu = mtu;
	}
	p->down = down == all;
	if (p->down)
		p->lost[0] = '\0';
}

static void sample_ports(struct health *h, struct afxdp *port, uint64_t now)
{
	struct health_sample *s = &h->sample;
	struct afxdp_counts c;

	if (!port)
		return;
	s->bad_chunks = afxdp_bad_chunks(port);
	for (unsigned int side = 0; side < STEER_SIDES; side++) {
		afxdp_side_counts(port, side, &c);
		if (side == STEER_WAN)
			s->n.tx_wan_bytes = c.tx_bytes;
		s->n.rx_dropped += c.rx_dropped + c.rx_missed;
		s->n.stale += c.steer[STEER_STALE];
		s->n.tx[side] = c.tx;
		s->n.tx_dropped[side] = c.tx_dropped + c.tx_too_long;
		s->n.tx_too_long += c.tx_too_long;
		s->n.tx_full += c.tx_full;
		sample_state(&s->port[side], port, side);
		s->port[side].longest = longest(h, port, side, now);
	}
}

/* With several peers the port's longest packet may be of another one's hosts. */
uint16_t health_longest(const struct health *h, unsigned int peer)
{
	uint32_t port = h->sample.port[STEER_WAN].longest, p = h->scan.path_mtu[peer];

	port -= port > ETH_HLEN_ ? ETH_HLEN_ : port;
	if (h->sample.npeers == 1 || port < p || (p && health_path_mtu(port) == p))
		return (uint16_t)port;
	return p ? (uint16_t)(p + HEADERS) : 0;
}

void health_site(const struct health *h, struct proto_site *out)
{
	uint32_t len = h->sample.port[STEER_WAN].longest;

	for (int side = 0; side < STEER_SIDES; side++) {
		const struct health_port *p = &h->sample.port[side];

		out->mtu[side] = p->mtu > UINT16_MAX ? UINT16_MAX : (uint16_t)p->mtu;
		out->down[side] = p->down;
	}
	out->longest = len > ETH_HLEN_ ? (uint16_t)(len - ETH_HLEN_) : 0;
}

static double more_of(double most, uint64_t part, uint64_t whole)
{
	double share = whole ? (double)part / (double)whole : 0;

	return share > most ? share : most;
}

static void sample_memory(struct health_sample *s, const struct shards *e)
{
	struct engine_memory m;

	shards_memory(e, &s->mem);
	s->sharded = shards_n(e) > 1;
	for (unsigned int i = 0; i < shards_n(e); i++) {
		engine_memory(shards_engine(e, i), &m);
		s->custody_full = more_of(s->custody_full, m.custody_used, m.custody_cap);
		s->transit_full = more_of(s->transit_full, m.transit_used, m.transit_cap);
	}
}

static void sample(struct health *h, const struct view_source *src,
		   const struct health_source *more, uint64_t now)
{
	const struct shards *e = src->shards;

	h->sample = (struct health_sample){
		.now = now,
		.late_ns = h->late_ns,
		.wan_rate = more->wan_rate,
		.wan_auto = more->wan_auto,
		.ahead_off = more->ahead_off,
		.bypass = more->bypass,
		.scan = h->scan,
		.n = {.tx_wan = shards_counter(e, EC_TX_WAN),
		      .retx_wan = shards_counter(e, EC_RETX_WAN),
		      .retx_spurious = shards_counter(e, EC_RETX_SPURIOUS),
		      .no_room = shards_counter(e, EC_NO_ROOM),
		      .faults = shards_counter(e, EC_FAULTS),
		      .lost_packets = shards_counter(e, EC_LOST_PACKETS),
		      .table_full = shards_counter(e, EC_TABLE_FULL),
		      .unsealed = shards_counter(e, EC_UNSEALED)},
	};
	sample_memory(&h->sample, e);
	sample_ports(h, src->port, now);
	sample_peers(h, src, now);
	h->sample.missed = missed_lately(h, now);
	h->late_ns = 0;
}

/* Whether a session has found out that a link has another limit. */
static bool link_changed(const struct health *h, const struct view_source *src)
{
	struct session_reach reach[2];

	for (unsigned int i = 0; src->session && i < h->sample.npeers; i++)
		if (session_reach(src->session, i, reach) &&
		    memcmp(reach, h->sample.peer[i].reach, sizeof(reach)))
			return true;
	return false;
}

void health_tick(struct health *h, const struct view_source *src, const struct health_source *more,
		 uint64_t now_ns)
{
	if (!h->last_tick) {
		h->usual_loss = -1;
		h->next_sample = now_ns + SECOND_NS;
	} else if (now_ns - h->last_tick > h->late_ns) {
		h->late_ns = now_ns - h->last_tick;
	}
	h->last_tick = now_ns;
	scan(h, src, now_ns);
	hear(h, src, now_ns);
	if (now_ns < h->next_sample && !link_changed(h, src))
		return;
	h->next_sample = now_ns + SECOND_NS;
	sample(h, src, more, now_ns);
	health_judge(h);
}
