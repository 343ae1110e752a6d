// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Judges one sample against those of the last HEALTH_PAST seconds. Uses nothing but samples, so
 * tests make them by hand.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "control/health.h"

#define SECOND_NS 1000000000ull
#define MS_NS	  1000000ull

/* Loss: share of packets sent again over the WAN, of at least so many sent. */
#define LOSS_PACKETS	1000u
#define LOSS_MUCH	0.05   /* more than a bad link loses: it is overrun, if the rate was high */
#define LOSS_ABOVE	0.005  /* above the usual, and three times as much */
#define USUAL_STEP	0.0017 /* per second: ten minutes */
#define DELAY_ABOVE_NS	(5 * MS_NS)
/* Pool: shares of what custody or transit may hold. */
#define POOL_HIGH	0.70
#define POOL_LOW	0.55
/* Frames that a port refused: so many in HEALTH_PAST seconds, and such a share. */
#define DROPPED_MANY	10u
#define DROPPED_SHARE	0.001
/* The table is full when it has so many, since some places are kept for half-known flows. */
#define TABLE_HIGH	0.85
/* Packets without a seal in HEALTH_PAST seconds: a few may have been under way as a lane ended. */
#define UNSEALED_MANY	10u
/* Bytes. A few lost packets that their host does not send again are less. */
#define BLOCKED_MANY	512u
/* Silence: heartbeats are 50 ms apart, those of older versions 250 ms. */
#define PEER_LATE_NS	(600 * MS_NS)
#define PEER_ON_TIME_NS (400 * MS_NS)
#define SLOW_LATE_NS	(1000 * MS_NS)
#define SLOW_ON_TIME_NS (600 * MS_NS)
#define SELF_LATE_NS	(200 * MS_NS)
#define SELF_ON_TIME_NS (100 * MS_NS)

enum verdict {
	GOOD,
	BETWEEN,
	BAD,
	FOLLOWS, /* if bad, then because of something that has its own alarm */
};

#define X(id, name, level, raise, clear, mend)                                                     \
	{name, mend, HEALTH_##level, raise * SECOND_NS, clear * SECOND_NS},
static const struct kind {
	const char *name, *mend;
	enum health_level level;
	uint64_t raise_ns, clear_ns;
} kinds[] = {HEALTH_ALARMS(X) HEALTH_PEER_ALARMS(X)};
#undef X

static const struct kind *kind_of(unsigned int i)
{
	return &kinds[i < HEALTH_KINDS ? i : HEALTH_KINDS + (i - HEALTH_KINDS) % HEALTH_PEER_KINDS];
}

bool health_alarm_of(unsigned int i, struct health_what *out)
{
	const struct kind *k = kind_of(i);

	if (i >= HEALTH_COUNT)
		return false;
	*out = (struct health_what){
		.name = k->name,
		.mend = k->mend,
		.level = k->level,
		.peer = i < HEALTH_KINDS ? PEER_NONE : (int)(i - HEALTH_KINDS) / HEALTH_PEER_KINDS};
	return true;
}

const char *health_mend(const struct health *h, unsigned int i)
{
	return h->alarm[i].mend[0] ? h->alarm[i].mend : kind_of(i)->mend;
}

const char *health_level_name(enum health_level l)
{
	return l == HEALTH_CRITICAL ? "critical" : "warning";
}

/* Update the alarm's state by verdict @v; @text is why it is bad. */
static void settle(struct health *h, unsigned int i, enum verdict v, const char *text)
{
	const struct kind *k = kind_of(i);
	struct health_alarm *a = &h->alarm[i];
	uint64_t now = h->sample.now;

	if (v == BAD && !a->bad)
		a->bad_since = now;
	if (v == GOOD && !a->good)
		a->good_since = now;
	a->bad = v == BAD;
	a->good = v == GOOD;
	if (v == BAD)
		snprintf(a->text, sizeof(a->text), "%s", text);
	if (!a->raised && a->bad && now - a->bad_since >= k->raise_ns) {
		a->raised = true;
		a->count++;
	} else if (a->raised && (v == FOLLOWS || (a->good && now - a->good_since >= k->clear_ns))) {
		a->raised = false;
	} else {
		return;
	}
	a->since = now;
	if (h->say)
		h->say(h->ctx, i, a->raised);
}

static void __attribute__((format(printf, 4, 5)))
judge(struct health *h, unsigned int i, enum verdict v, const char *fmt, ...)
{
	char text[HEALTH_TEXT];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	settle(h, i, v, text);
}

/* Set the mend of alarm @i for this case; to be called before it is judged. */
static void __attribute__((format(printf, 3, 4)))
advise(struct health *h, unsigned int i, const char *fmt, ...)
{
	struct health_alarm *a = &h->alarm[i];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(a->mend, sizeof(a->mend), fmt, ap);
	va_end(ap);
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static enum verdict bad_if(bool bad)
{
	return bad ? BAD : GOOD;
}

static double share(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

/* Growth since the oldest sample that is kept. */
struct window {
	struct health_numbers d;
	double seconds;
};

static struct window window_of(const struct health *h)
{
	const struct health_sample *s = &h->sample;
	const struct health_numbers *p = &h->past[h->oldest];
	struct window w = {.seconds = 0};

	if (!h->npast)
		return w;
	w.seconds = (double)(s->now - h->past_at[h->oldest]) / SECOND_NS;
#define D(m) .m = s->n.m - p->m
	w.d = (struct health_numbers){
		D(tx_wan),	D(tx_wan_bytes), D(retx_wan),	   D(retx_spurious), D(no_room),
		D(faults),	D(lost_packets), D(table_full),	   D(stale),	     D(rx_dropped),
		D(tx[0]),	D(tx[1]),	 D(tx_dropped[0]), D(tx_dropped[1]), D(tx_full),
		D(tx_too_long), D(unsealed)};
#undef D
	return w;
}

static void remember(struct health *h)
{
	unsigned int at;

	if (h->npast < HEALTH_PAST) {
		at = (h->oldest + h->npast++) % HEALTH_PAST;
	} else {
		at = h->oldest;
		h->oldest = (h->oldest + 1) % HEALTH_PAST;
	}
	h->past[at] = h->sample.n;
	h->past_at[at] = h->sample.now;
}

/* Whether packets wait before the bottleneck: an overrun link delays before it drops. */
static bool queue_grows(const struct health_sample *s)
{
	for (unsigned int i = 0; i < s->npeers; i++) {
		const struct health_peer *p = &s->peer[i];

		if (p->up && p->owd_above_ns > DELAY_ABOVE_NS &&
		    p->owd_above_ns > p->rtt_min_ns / 4)
			return true;
	}
	return false;
}

struct losses {
	double loss, usual, rate; /* shares of packets; bytes per second sent */
	bool much, fast;	  /* enough to judge by; the link may be overrun */
};

static struct losses losses_of(const struct health *h, const struct window *w)
{
	const struct health_sample *s = &h->sample;
	uint64_t lost = w->d.retx_wan > w->d.retx_spurious ? w->d.retx_wan - w->d.retx_spurious : 0;
	struct losses l = {
		.loss = share(lost, w->d.tx_wan),
		.usual = h->usual_loss < 0 ? 0 : h->usual_loss,
		.rate = w->seconds > 0 ? (double)w->d.tx_wan_bytes / w->seconds : 0,
		.much = w->d.tx_wan >= LOSS_PACKETS,
	};

	l.fast = s->wan_rate ? l.rate > 0.7 * (double)s->wan_rate : l.loss >= 2 * LOSS_MUCH;
	l.fast |= queue_grows(s);
	l.fast &= !s->wan_auto;
	return l;
}

static bool ports_down(const struct health_sample *s)
{
	return s->port[STEER_LAN].down || s->port[STEER_WAN].down;
}

/* Whether losses of the last HEALTH_PAST seconds do not tell the link's quality: a port or a peer
 * went up or down meanwhile, or no peer is up. */
static bool link_cut(const struct health_sample *s)
{
	bool up = !s->npeers;

	for (unsigned int i = 0; i < s->npeers; i++)
		up |= s->peer[i].up;
	return !up || ports_down(s) || s->calm_ns < HEALTH_PAST * SECOND_NS;
}

/* Whether a link is known to drop what hosts send. */
static bool link_narrow(const struct health *h)
{
	for (unsigned int i = 0; i < h->sample.npeers; i++)
		if (h->alarm[HEALTH_KINDS + i * HEALTH_PEER_KINDS + HEALTH_LINK_MTU].raised)
			return true;
	return false;
}

/*
 * Loss has two causes with different mends: the link cannot carry what is sent, or it damages what
 * it could carry. The first is likely when much is lost while we send at the rate that was set, or
 * while delay grows. A link with a deep queue delays packets instead of losing them: if they wait
 * although we send less than the rate that was set, that rate is too high. A rate that the
 * appliance finds is never too high for long.
 */
static void judge_loss(struct health *h, const struct window *w)
{
	const struct health_sample *s = &h->sample;
	struct losses l = losses_of(h, w);
	bool fixed = s->wan_rate && !s->wan_auto;
	bool waits = l.much && fixed && queue_grows(s) && l.rate < 0.9 * (double)s->wan_rate;
	bool cut = link_cut(s) || link_narrow(h);
	char set[48] = "no wan-rate is set", why[64];

	if (s->wan_rate)
		snprintf(set, sizeof(set), "wan-rate is %.0f Mbit/s",
			 (double)s->wan_rate * 8 / 1e6);
	if (l.loss >= LOSS_MUCH || !waits)
		snprintf(why, sizeof(why), "%.1f %% of packets had to be sent again", l.loss * 100);
	else
		snprintf(why, sizeof(why), "packets wait before the link");
	judge(h, HEALTH_WAN_RATE,
	      cut						   ? FOLLOWS
	      : (l.loss >= LOSS_MUCH && l.much && l.fast) || waits ? BAD
	      : !l.much || s->wan_auto || l.loss < LOSS_MUCH / 2   ? GOOD
								   : BETWEEN,
	      "%s at %.0f Mbit/s, and %s", why, l.rate * 8 / 1e6, set);
	h->alarm[HEALTH_LOSS].mend[0] = '\0';
	if (fixed)
		advise(h, HEALTH_LOSS,
		       "if the link carries less than wan-rate, lower it or set auto; else "
		       "look at the link, its interfaces and optics, and at longhaul status of the "
		       "peer");
	judge(h, HEALTH_LOSS,
	      cut							    ? FOLLOWS
	      : !l.much || (l.fast && l.loss >= LOSS_MUCH / 2)		    ? GOOD
	      : l.loss > l.usual + LOSS_ABOVE && l.loss > 3 * l.usual	    ? BAD
	      : l.loss < l.usual + LOSS_ABOVE / 2 || l.loss < 1.5 * l.usual ? GOOD
									    : BETWEEN,
	      "%.2f %% of packets had to be sent again, %.2f %% is usual%s%s", l.loss * 100,
	      l.usual * 100, fixed ? "; " : "", fixed ? set : "");
	if (!l.much || cut)
		return;
	/* a first value counts only if it is small: the link may be bad from the start */
	if (h->usual_loss < 0)
		h->usual_loss = l.loss < LOSS_ABOVE ? l.loss : 0;
	h->usual_loss += (l.loss - h->usual_loss) * USUAL_STEP;
}

static void judge_pool(struct health *h, const struct window *w)
{
	const struct health_sample *s = &h->sample;
	double most = s->custody_full > s->transit_full ? s->custody_full : s->transit_full;
	char room[80] = "";

	/* between two samples it may have been full, and be empty again */
	if (w->d.no_room)
		snprintf(room, sizeof(room), "%" PRIu64 " packet%s found no room in %.0f s; ",
			 w->d.no_room, plural(w->d.no_room), w->seconds);
	judge(h, HEALTH_POOL,
	      most > POOL_HIGH || w->d.no_room ? BAD
	      : most < POOL_LOW		       ? GOOD
					       : BETWEEN,
	      "%scustody fills %.0f %% of its share of the pool%s now, transit %.0f %%", room,
	      s->custody_full * 100, s->sharded ? " at one core" : "", s->transit_full * 100);
}

static bool rule_missing(const struct health *h)
{
	for (unsigned int i = 0; i < h->sample.npeers; i++)
		if (h->sample.peer[i].mirror.text[0])
			return true;
	return false;
}

/* Whether a peer cannot seal, and has its own alarm for that. */
static bool peer_unsealed(const struct health *h)
{
	for (unsigned int i = 0; i < h->sample.npeers; i++)
		if (h->sample.peer[i].unsealed)
			return true;
	return false;
}

/* Packets that miss an appliance: as lanes, an event or a counter show it. */
static void judge_missed(struct health *h, const struct window *w, bool narrow)
{
	const struct health_sample *s = &h->sample;
	const struct health_scan *c = &s->scan;
	uint64_t n = w->d.unsealed;

	bool event = s->missed && *s->missed;

	if (narrow)
		judge(h, HEALTH_MISSED, FOLLOWS, "packets are too long for the link");
	else if (c->missed || event)
		judge(h, HEALTH_MISSED, BAD, "%s (%u connection%s)",
		      event && !c->missed_now ? s->missed : c->missed_name,
		      c->missed ? c->missed : 1, plural(c->missed ? c->missed : 1));
	else
		judge(h, HEALTH_MISSED,
		      link_cut(s)	   ? FOLLOWS
		      : n >= UNSEALED_MANY ? BAD
		      : n		   ? BETWEEN
					   : GOOD,
		      "%" PRIu64 " packets of held connections came without a seal in %.0f s: they "
		      "missed the appliance of the peer, or are forged",
		      n, w->seconds);
}

/* Whether the LAN port drops what hosts should answer: that has an alarm of its own. */
static bool lan_drops(const struct health *h, const struct window *w)
{
	return h->alarm[HEALTH_TX_DROPPED].raised && w->d.tx_dropped[STEER_LAN] >= DROPPED_MANY;
}

/* New flows found no place: in the table, or among those whose partner is not known. */
static void judge_table(struct health *h, const struct window *w)
{
	const struct engine_memory *m = &h->sample.mem;
	uint64_t n = w->d.table_full;

	if (share(m->flows, m->flows_max) >= TABLE_HIGH || !m->flows_max) {
		advise(h, HEALTH_TABLE_FULL, "raise max-connections, restart longhauld");
		judge(h, HEALTH_TABLE_FULL, bad_if(n),
		      "%" PRIu64 " new flow%s found the table of %u full in %.0f s", n, plural(n),
		      m->flows_max, w->seconds);
		return;
	}
	advise(h, HEALTH_TABLE_FULL,
	       "wait, if many connections have just begun; else see half-known, or have "
	       "applications use the connection manager");
	judge(h, HEALTH_TABLE_FULL, bad_if(n),
	      "%" PRIu64
	      " packet%s of new flows passed in %.0f s, for too many queue pairs of their "
	      "host have no known partner yet (%u of %u places are taken)",
	      n, plural(n), w->seconds, m->flows, m->flows_max);
}

static void judge_conns(struct health *h, const struct window *w)
{
	const char *why =
		health_refusal(h->sample.scan.refusal) ? view_reason(h->sample.scan.refusal) : NULL;
	const struct health_scan *c = &h->sample.scan;
	const struct health_sample *s = &h->sample;
	/* answers are missing for a reason with its own alarm */
	bool narrow = h->alarm[HEALTH_PORT_MTU].raised || link_narrow(h);
	bool blocked = link_cut(s) || narrow || rule_missing(h);

	judge(h, HEALTH_FAULT, bad_if(c->fault || w->d.faults),
	      "%" PRIu64 " transfer%s could not be delivered, %" PRIu64 " packet%s lost",
	      s->n.faults, plural(s->n.faults), s->n.lost_packets, plural(s->n.lost_packets));
	judge(h, HEALTH_SILENT,
	      ports_down(s) || narrow || lan_drops(h, w) ? FOLLOWS : bad_if(c->silent),
	      "the responders of %u connection%s have not answered for up to %.0f s, such as %s",
	      c->silent, plural(c->silent), (double)c->silent_ns / SECOND_NS, c->silent_name);
	judge(h, HEALTH_HALF_KNOWN, blocked ? FOLLOWS : bad_if(c->half),
	      "the partner of %u queue pair%s in use is not known, such as %s", c->half,
	      plural(c->half), c->half_name);
	judge(h, HEALTH_PATH_MTU, narrow ? FOLLOWS : bad_if(c->no_mtu),
	      "the path MTU of %u connection%s is not known, such as %s", c->no_mtu,
	      plural(c->no_mtu), c->mtu_name);
	judge(h, HEALTH_REFUSED,
	      (c->refusal == REASON_NO_RULE && rule_missing(h)) ||
			      (c->refusal == REASON_UNSEALED && peer_unsealed(h))
		      ? FOLLOWS
		      : bad_if(c->refused),
	      "the peer refuses %u connection%s, such as %s: %s", c->refused, plural(c->refused),
	      c->refused_name, why ? why + sizeof("peer refused: ") - 1 : "");
	judge_missed(h, w, narrow);
	judge_table(h, w);
}

/* @own_ns: for how long we did not listen */
static enum verdict lateness(const struct health_peer *p, uint64_t own_ns)
{
	if (!p->up)
		return p->name ? BETWEEN : GOOD;
	if (p->late_ns >= own_ns + (p->beats ? PEER_LATE_NS : SLOW_LATE_NS))
		return BAD;
	if (p->late_ns < (p->beats ? PEER_ON_TIME_NS : SLOW_ON_TIME_NS))
		return GOOD;
	return BETWEEN;
}

/* The largest path MTU whose packets have @len bytes at most. */
static unsigned int path_mtu_in(unsigned int len)
{
	unsigned int p = PAYLOAD_MAX;

	while (p > 256 && FRAME_MTU(p) > len)
		p /= 2;
	return p;
}

/* The link drops what hosts send, in one direction at least. Each end knows what arrives of its own
 * side's packets, and tells the other. A port that is too small has its own alarm. */
static void judge_reach(struct health *h, unsigned int i, const struct health_peer *p)
{
	const struct session_reach *to = &p->reach[0], *r = to, *from = to + 1;
	bool out = health_narrow(to), in = health_narrow(from);

	if (!out)
		r = from;
	if (out || in)
		advise(h, i,
		       "raise the MTU of all networks along the link to %u, or lower the path MTU "
		       "of the hosts to %u",
		       FRAME_MTU(health_path_mtu(r->longest)), path_mtu_in(r->carried));
	judge(h, i, h->alarm[HEALTH_PORT_MTU].raised ? FOLLOWS : bad_if(out || in),
	      "the link %s peer %s carries packets of at most %u bytes, and hosts send %u (path "
	      "MTU %u): they vanish on it",
	      out && in ? "to and from"
	      : out	? "to"
			: "from",
	      p->name ? p->name : "", r->carried, r->longest, health_path_mtu(r->longest));
}

/* Nothing of what hosts send crosses the link, although what the appliances send does. */
static void judge_blocked(struct health *h, unsigned int i, const struct health_peer *p)
{
	bool in = p->blocked[1] >= BLOCKED_MANY, out = p->blocked[0] >= BLOCKED_MANY;
	const char *name = p->name ? p->name : "";

	judge(h, i,
	      link_narrow(h) || h->alarm[HEALTH_PORT_MTU].raised || p->mirror.text[0] ||
			      link_cut(&h->sample)
		      ? FOLLOWS
		      : bad_if(p->up && (in || out)),
	      "of %" PRIu64 " bytes that hosts have sent %s peer %s none came (UDP port 4791), "
	      "although the datagrams of longhauld do: a firewall drops them, or they take a way "
	      "past an appliance",
	      p->blocked[out ? 0 : 1], out ? "to" : "from", name);
}

/* Without a name the peer was removed by a reload: its alarms clear. */
static void judge_peer(struct health *h, unsigned int base, const struct health_peer *p)
{
	const struct health_sample *s = &h->sample;
	const char *name = p->name ? p->name : "";
	bool down = p->name && !p->up, cut = down && s->port[STEER_WAN].down;
	struct health_alarm *gone = &h->alarm[base + HEALTH_PEER_DOWN];

	if (down) {
		advise(h, base + HEALTH_PEER_DOWN, "%s", p->cause.mend);
		advise(h, base + HEALTH_PEER_UNREACHED, "%s", p->cause.mend);
	}
	judge(h, base + HEALTH_PEER_DOWN, cut ? FOLLOWS : bad_if(down && p->met),
	      "peer %s is down: %s", name, p->cause.text);
	judge(h, base + HEALTH_PEER_UNREACHED, cut ? FOLLOWS : bad_if(down && !p->met),
	      "peer %s was never reached: %s", name, p->cause.text);
	judge_reach(h, base + HEALTH_LINK_MTU, p);
	judge_blocked(h, base + HEALTH_LINK_BLOCKED, p);
	if (p->mirror.text[0])
		advise(h, base + HEALTH_RULE_MISSING, "%s", p->mirror.mend);
	judge(h, base + HEALTH_RULE_MISSING, bad_if(p->mirror.text[0]), "%s", p->mirror.text);
	judge(h, base + HEALTH_PEER_UNSEALED, bad_if(p->up && p->unsealed),
	      "peer %s is of an older version that does not seal: its connections pass "
	      "unaccelerated",
	      name);
	judge(h, base + HEALTH_PEER_LATE, cut || gone->raised ? FOLLOWS : lateness(p, s->late_ns),
	      "nothing came from peer %s for %.1f s, although it sends each %s s", name,
	      (double)p->late_ns / SECOND_NS, p->beats ? "0.05" : "0.25");
}

static void judge_peers(struct health *h)
{
	static const struct health_peer none;
	const struct health_sample *s = &h->sample;

	for (unsigned int i = 0; i < PEER_MAX; i++)
		judge_peer(h, HEALTH_KINDS + i * HEALTH_PEER_KINDS,
			   i < s->npeers ? &s->peer[i] : &none);
}

static void judge_ports(struct health *h)
{
	const struct health_port *lan = &h->sample.port[STEER_LAN], *wan = lan + 1;
	const struct health_port *one = wan->down ? wan : lan, *some = *wan->lost ? wan : lan;
	const char *alone = *wan->alone ? wan->alone : lan->alone;

	if (*some->lost)
		advise(h, HEALTH_MEMBER_DOWN,
		       "look at the cable, and set it up: ip link set dev %s up", some->lost);
	if (*alone)
		advise(h, HEALTH_PORT_ALONE,
		       "put it into the bridge of the other side: ip link set dev %s master BRIDGE",
		       alone);
	judge(h, HEALTH_PORT_ALONE, bad_if(*alone),
	      "%s is in no bridge: what longhaul does not take, ARP among it, is lost", alone);
	judge(h, HEALTH_MEMBER_DOWN, bad_if(*some->lost),
	      "%s is down or has no carrier; the rest of %s goes on", some->lost, some->name);
	if (lan->down && wan->down) {
		advise(h, HEALTH_PORT_DOWN,
		       "look at the cables, and set both up: ip link set dev INTERFACE up");
		judge(h, HEALTH_PORT_DOWN, BAD, "%s and %s are down or have no carrier", lan->name,
		      wan->name);
		return;
	}
	if (one->down)
		advise(h, HEALTH_PORT_DOWN,
		       "look at the cable, and set it up: ip link set dev %s up", one->name);
	judge(h, HEALTH_PORT_DOWN, bad_if(one->down), "%s %s down or %s no carrier", one->name,
	      strchr(one->name, ',') ? "are" : "is", strchr(one->name, ',') ? "have" : "has");
}

unsigned int health_path_mtu(unsigned int len)
{
	unsigned int p = PAYLOAD_MAX;

	while (p > 256 && p >= len)
		p /= 2;
	return p;
}

/*
 * A port, ours or a peer's, with an MTU below the length of hosts' packets. Each end tells the
 * other the MTU of its ports and the length of its hosts' packets. VLAN tags may count in it or
 * not.
 */
static bool narrow(const struct health_sample *s, char *where, size_t len, unsigned int *longest,
		   unsigned int *mtu)
{
	unsigned int ours;

	for (int side = STEER_WAN; side >= STEER_LAN; side--) {
		const struct health_port *p = &s->port[side];

		*longest = p->longest > ETH_HLEN_ ? p->longest - ETH_HLEN_ : 0;
		for (unsigned int i = 0; i < s->npeers; i++)
			if (s->peer[i].up && s->peer[i].longest > *longest)
				*longest = s->peer[i].longest;
		*mtu = p->mtu;
		snprintf(where, len, "%s", p->name);
		if (p->mtu && *longest > p->mtu + FRAME_TAGS)
			return true;
	}
	ours = s->port[STEER_WAN].longest;
	ours -= ours > ETH_HLEN_ ? ETH_HLEN_ : ours;
	for (unsigned int i = 0; i < s->npeers; i++) {
		const struct health_peer *p = &s->peer[i];

		*longest = p->longest > ours ? p->longest : ours;
		for (int side = STEER_WAN; side >= STEER_LAN; side--) {
			*mtu = p->mtu[side];
			snprintf(where, len, "the %s port of peer %s",
				 side == STEER_WAN ? "WAN" : "LAN", p->name);
			if (p->up && *mtu && *longest > *mtu + FRAME_TAGS)
				return true;
		}
	}
	return false;
}

static void judge_mtu(struct health *h)
{
	unsigned int longest, mtu, p;
	char where[64];
	bool bad = narrow(&h->sample, where, sizeof(where), &longest, &mtu);

	p = health_path_mtu(longest);
	if (bad)
		advise(h, HEALTH_PORT_MTU,
		       "raise the MTU of %s to %u, and that of all ports and of the link, or lower "
		       "the path MTU of the hosts",
		       where, FRAME_MTU(p));
	judge(h, HEALTH_PORT_MTU, bad_if(bad),
	      "hosts send packets of %u bytes (path MTU %u), and %s has MTU %u: it drops them",
	      longest, p, where, mtu);
}

/* Whether alarm @i, which tells what was lost with a port, was raised within the window. */
static bool lately(const struct health *h, unsigned int i)
{
	const struct health_alarm *a = &h->alarm[i];

	return a->raised || (a->count && h->sample.now - a->since < HEALTH_PAST * SECOND_NS);
}

/* Frames that a port did not take from us. A few among very many are no fault. */
static void judge_dropped(struct health *h, const struct window *w)
{
	const struct health_sample *s = &h->sample;
	int side = w->d.tx_dropped[STEER_WAN] >= w->d.tx_dropped[STEER_LAN] ? STEER_WAN : STEER_LAN;
	const char *name = s->port[side].name;
	uint64_t n = w->d.tx_dropped[side];
	bool much = n >= DROPPED_MANY && share(n, w->d.tx[side]) >= DROPPED_SHARE;

	if (w->d.tx_too_long)
		advise(h, HEALTH_TX_DROPPED,
		       "set max-path-mtu to what the kernel can, and the path MTU of the hosts");
	else if (n)
		advise(h, HEALTH_TX_DROPPED,
		       "look at ip -s link of %s and at what is behind; a longer transmit queue, "
		       "or a lower wan-rate",
		       name);
	judge(h, HEALTH_TX_DROPPED,
	      lately(h, HEALTH_PORT_DOWN) || lately(h, HEALTH_MEMBER_DOWN) ||
			      h->alarm[HEALTH_PORT_MTU].raised ||
			      (side == STEER_WAN && link_narrow(h))
		      ? FOLLOWS
	      : much ? BAD
	      : !n   ? GOOD
		     : BETWEEN,
	      "%s did not take %" PRIu64 " of %" PRIu64 " frames in %.0f s: %s", name, n,
	      w->d.tx[side], w->seconds,
	      w->d.tx_too_long ? "they are longer than the kernel takes"
	      : w->d.tx_full   ? "its ring is full"
			       : "the interface or what is behind it dropped them");
}

static void judge_host(struct health *h, const struct window *w)
{
	const struct health_sample *s = &h->sample;
	bool late = s->late_ns >= SELF_LATE_NS || w->d.stale;

	/* frames that passed by tell of it for longer than the sample that has the time */
	if (!h->alarm[HEALTH_DAEMON_LATE].bad || s->late_ns > h->worst_ns)
		h->worst_ns = s->late_ns;
	judge_dropped(h, w);
	judge(h, HEALTH_DOUBLED, bad_if(s->bad_chunks),
	      "the kernel returned %" PRIu64
	      " packet buffer%s that it did not have; their frames are dropped",
	      s->bad_chunks, plural(s->bad_chunks));
	judge(h, HEALTH_DAEMON_LATE,
	      late			     ? BAD
	      : s->late_ns < SELF_ON_TIME_NS ? GOOD
					     : BETWEEN,
	      "the daemon did not look at its ports for %.0f ms; %" PRIu64
	      " frame%s passed by it meanwhile",
	      (double)h->worst_ns / MS_NS, w->d.stale, plural(w->d.stale));
	judge(h, HEALTH_RX_DROPPED, bad_if(w->d.rx_dropped),
	      "the kernel or a network card dropped %" PRIu64
	      " frame%s in %.0f s before the daemon could read them",
	      w->d.rx_dropped, plural(w->d.rx_dropped), w->seconds);
	judge(h, HEALTH_READ_AHEAD, bad_if(s->ahead_off),
	      "a rule wants prefetch or announce, which is off: %s",
	      s->ahead_off ? s->ahead_off : "");
}

void health_judge_bypass(struct health *h)
{
	const struct health_sample *s = &h->sample;
	bool rule = s->bypass && !strncmp(s->bypass, "rule ", 5);
	uint32_t n = s->scan.bypassed;

	advise(h, HEALTH_BYPASS, "longhaul bypass off %s, when it is no longer needed",
	       rule ? s->bypass : "all");
	if (s->bypass)
		judge(h, HEALTH_BYPASS, BAD,
		      "an operator has bypassed %s: %u connection%s pass%s unaccelerated",
		      s->bypass, n, plural(n), n == 1 ? "es" : "");
	else
		judge(h, HEALTH_BYPASS, bad_if(n),
		      "an operator has bypassed %u connection%s, so %s unaccelerated", n, plural(n),
		      n == 1 ? "it passes" : "they pass");
}

void health_judge(struct health *h)
{
	struct window w = window_of(h);

	/* causes before what may follow from them */
	judge_ports(h);
	judge_mtu(h);
	judge_peers(h);
	judge_host(h, &w);
	health_judge_bypass(h);
	judge_loss(h, &w);
	judge_pool(h, &w);
	judge_conns(h, &w);
	remember(h);
}
