/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Health: alarms for what an operator should act on, with the reason and what to do.
 *
 * Once a second health_tick() takes a sample of all parts (struct health_sample), and
 * health_judge() judges it; it reads nothing but the sample. Each tick looks at some of the
 * connections only, since this runs in the thread that moves packets.
 *
 * Each alarm is judged good, bad, or between. It is raised when it was bad for its raise time
 * without a break, and cleared when it was good for its clear time; between counts as neither, so a
 * figure near its limit does not raise and clear an alarm again and again.
 */
#ifndef LONGHAUL_CONTROL_HEALTH_H
#define LONGHAUL_CONTROL_HEALTH_H

#include <net/if.h>

#include "control/mirror.h"
#include "control/peer_cause.h"
#include "control/view.h"
#include "port/port.h"

#define HEALTH_TEXT  256
#define HEALTH_PAST  10	 /* seconds over which rates are judged */
#define HEALTH_WAIT  64	 /* connections noted as not accelerated */
#define HEALTH_NAME  128 /* of a connection */
#define HEALTH_PORTS (STEER_MEMBERS * (IF_NAMESIZE + 2))

enum health_level {
	HEALTH_WARNING,
	HEALTH_CRITICAL,
};

/* The alarms, their level, seconds bad before it is raised, seconds good before it is over. */
#define HEALTH_ALARMS(X)                                                                           \
	X(FAULT, "fault", CRITICAL, 0, 600,                                                        \
	  "transfers of these queue pairs failed: look at the far hosts, and at the log for "      \
	  "FAULT")                                                                                 \
	X(PORT_DOWN, "port-down", CRITICAL, 0, 5,                                                  \
	  "look at the cables of both ports, and set both up: ip link set dev INTERFACE up")       \
	X(MEMBER_DOWN, "member-down", WARNING, 0, 5,                                               \
	  "look at the cable, and set it up: ip link set dev INTERFACE up")                        \
	X(PORT_ALONE, "port-alone", WARNING, 1, 2,                                                 \
	  "put it into the bridge of the other side: ip link set dev INTERFACE master BRIDGE")     \
	X(DOUBLED, "doubled-frames", CRITICAL, 0, 600,                                             \
	  "restart longhauld, and report this with the version of the kernel")                     \
	X(WAN_RATE, "wan-rate", WARNING, 5, 30,                                                    \
	  "set wan-rate to a little less than what the link carries")                              \
	X(LOSS, "loss", WARNING, 5, 30,                                                            \
	  "look at the link: counters of its interfaces, its optics; and at longhaul status of "   \
	  "the peer")                                                                              \
	X(SILENT, "responder-silent", WARNING, 0, 10,                                              \
	  "longhaul doctor at the appliance on whose LAN side these hosts are says whether it is " \
	  "the host, a route, an MTU or a firewall; at responder-timeout their transfers fail")    \
	X(POOL, "pool", WARNING, 10, 30, "raise 'pool', or wan-rate if the link carries more")     \
	X(DAEMON_LATE, "daemon-late", WARNING, 0, 30,                                              \
	  "give longhauld a processor of its own: CPUAffinity=, Nice= in its unit")                \
	X(RX_DROPPED, "rx-dropped", WARNING, 2, 30,                                                \
	  "the daemon cannot keep up: a faster processor, or less traffic through it; where "      \
	  "longhaul -d port shows dropped-rx-card, a longer ring: ethtool -G")                     \
	X(PORT_MTU, "port-mtu", WARNING, 0, 5, "raise the MTU of all ports and of the link")       \
	X(TX_DROPPED, "tx-dropped", WARNING, 0, 30, "look at ip -s link of that interface")        \
	X(READ_AHEAD, "read-ahead-off", WARNING, 0, 0,                                             \
	  "mount the BPF file system at /sys/fs/bpf, then systemctl reload longhauld")             \
	X(HALF_KNOWN, "half-known", WARNING, 0, 10,                                                \
	  "route both directions through here; have applications use the connection manager")      \
	X(PATH_MTU, "path-mtu", WARNING, 0, 10, "set path-mtu in the rule")                        \
	X(REFUSED, "refused", WARNING, 0, 10,                                                      \
	  "compare rules and routes of both appliances; longhaul qp state watch says why")         \
	X(MISSED, "path-bypass", WARNING, 2, 30,                                                   \
	  "every path between the two hosts must cross both appliances: look at ECMP, LAG and "    \
	  "routes, and for a firewall that drops UDP port 4791")                                   \
	X(TABLE_FULL, "table-full", WARNING, 0, 60, "raise max-connections, restart longhauld")    \
	X(BYPASS, "bypass", WARNING, 0, 0, "longhaul bypass off all, when it is no longer needed")

/* The alarms of each peer. */
#define HEALTH_PEER_ALARMS(X)                                                                      \
	X(PEER_DOWN, "peer-down", CRITICAL, 1, 2, "longhaul peer show says why")                   \
	X(PEER_UNREACHED, "peer-unreached", WARNING, 5, 0, "longhaul peer show says why")          \
	X(LINK_MTU, "link-mtu", CRITICAL, 0, 2, "raise the MTU along the link")                    \
	X(LINK_BLOCKED, "link-blocked", CRITICAL, 1, 5,                                            \
	  "open UDP port 4791 in all firewalls on the way; else look at ECMP, LAG and routes: "    \
	  "every path must cross both appliances")                                                 \
	X(RULE_MISSING, "rule-missing", WARNING, 0, 2, "compare the rules of both appliances")     \
	X(PEER_UNSEALED, "peer-version", WARNING, 0, 2,                                            \
	  "update longhaul there, or set seal = off at both ends (wan-check = off there)")         \
	X(PEER_LATE, "peer-late", WARNING, 0, 30,                                                  \
	  "look at the load of that machine, and at loss on the link")

enum health_kind {
#define X(id, name, level, raise, clear, mend) HEALTH_##id,
	HEALTH_ALARMS(X)
#undef X
		HEALTH_KINDS,
};

enum health_peer_kind {
#define X(id, name, level, raise, clear, mend) HEALTH_##id,
	HEALTH_PEER_ALARMS(X)
#undef X
		HEALTH_PEER_KINDS,
};

#define HEALTH_COUNT (HEALTH_KINDS + HEALTH_PEER_KINDS * PEER_MAX)

/** struct health_numbers - counters, judged by their growth over HEALTH_PAST seconds. */
struct health_numbers {
	uint64_t tx_wan, tx_wan_bytes, retx_wan, retx_spurious;
	uint64_t no_room, faults, lost_packets, table_full, stale, rx_dropped;
	uint64_t tx[STEER_SIDES], tx_dropped[STEER_SIDES], tx_full, tx_too_long;
	uint64_t unsealed;
};

/**
 * struct health_scan - what one scan of all connections found.
 * @silent:  connections with a responder that does not answer; @silent_ns: the longest time of
 *           these
 * @half:    requests pass, but the partner is not known; @no_mtu: paired, path MTU not known;
 *           @refused: the peer refuses the lane. All: for more than ten seconds, and in use
 * @missed:  connections with packets that miss an appliance, or with a lane released for that;
 *           @missed_now: at least one of the former
 * @path_mtu: by peer, the largest of connections in use
 * @names:   one connection of each kind, for the alarm's text; @refusal: why the peer refuses that
 *           one
 * @storage: by protocol, connections that would gain by announce, if their rule can have it
 */
struct health_scan {
	uint32_t fault, silent, half, no_mtu, refused, missed, bypassed;
	uint32_t storage[STORAGE_PROTOCOLS];
	uint16_t path_mtu[PEER_MAX];
	uint64_t silent_ns;
	enum lane_reason refusal;
	bool missed_now;
	char silent_name[HEALTH_NAME], half_name[HEALTH_NAME], mtu_name[HEALTH_NAME],
		refused_name[HEALTH_NAME], missed_name[VIEW_MISSED];
};

/**
 * struct health_peer
 * @up, @met: there is a session, there ever was one
 * @beats:    it sends heartbeats each 50 ms, not each 250
 * @late_ns:  longest silence since the previous sample
 * @cause:    why it is not up; @unsealed: it is up, but cannot seal, and a rule wants that
 * @mirror:   what its rules lack, or ours; "" if nothing
 * @reach:   packets that the link carries, to it and from it
 * @blocked: bytes of hosts sent to it, and from it, since any of them has come, but for the latest
 * @mtu, @longest, @lan_down: of its ports, see struct proto_site; 0: not known
 */
struct health_peer {
	const char *name;
	bool up, met, beats, unsealed;
	uint64_t late_ns, owd_above_ns, rtt_min_ns;
	struct peer_cause cause;
	struct mirror_fault mirror;
	struct session_reach reach[2];
	uint64_t blocked[2];
	uint16_t mtu[2], longest;
	bool lan_down;
};

/**
 * struct health_port - our port on one side, or all ports there.
 * @name:    of all of them; @lost: of those that are down while others serve, "": none; @alone: of
 *           one that is in no bridge, "": none
 * @down:    none serves
 * @longest: frame of hosts on the way there in the last minute, bytes; @mtu: the least, 0 when not
 *           known
 */
struct health_port {
	char name[HEALTH_PORTS], lost[HEALTH_PORTS], alone[IF_NAMESIZE];
	bool down;
	uint32_t mtu, longest;
};

/**
 * struct health_sample - all that alarms are judged by.
 * @late_ns:  longest time between two looks at the ports since the previous sample
 * @calm_ns:  time since a port or peer last went up or down, or a link became narrow or wide
 * @missed:   text of the latest event of packets that miss an appliance; "" when it is long ago
 * @wan_rate: bytes per second, 0: not paced; @wan_auto: the rate is found, at most @wan_rate
 * @custody_full, @transit_full: shares of what they may hold; @sharded: of the fullest of several
 *            cores' shares, since each pair of hosts has that of its own only
 * @ahead_off: why the daemon has turned prefetch off, NULL when it has not
 * @bypass:   what is bypassed besides single connections; NULL for nothing
 */
struct health_sample {
	uint64_t now, late_ns, calm_ns, wan_rate, bad_chunks;
	double custody_full, transit_full;
	bool wan_auto, sharded;
	const char *ahead_off, *bypass, *missed;
	struct health_port port[STEER_SIDES];
	struct health_numbers n;
	struct engine_memory mem;
	struct health_scan scan;
	struct health_peer peer[PEER_MAX];
	unsigned int npeers;
};

/**
 * struct health_alarm
 * @since: when it was raised or cleared; @count: times raised
 * @text:  the reason when it was last bad; @mend: what to do in this case, "": the alarm's usual
 *         mend
 */
struct health_alarm {
	bool raised, bad, good;
	uint64_t since, bad_since, good_since, count;
	char text[HEALTH_TEXT], mend[HEALTH_TEXT];
};

/** health_fn - alarm @i was raised (@raised) or cleared. */
typedef void (*health_fn)(void *ctx, unsigned int i, bool raised);

struct health_waiting {
	uint32_t id;
	uint8_t kind;
	bool seen;
	uint64_t since;
};

/**
 * struct health_way - one direction of a link.
 * @base:    when the latest bytes came, or none had been sent for long
 * @sent:    bytes by the latest METER; @before: by one before it. Packets may come a little later
 *           than the METER that knows of them, so only the next one shows that they are missing.
 * @grew_at: when @sent grew
 */
struct health_way {
	struct link_count base;
	uint64_t sent, before, grew_at;
};

/** struct health - all zero but @say at first. */
struct health {
	health_fn say;
	void *ctx;
	struct health_alarm alarm[HEALTH_COUNT];
	struct health_sample sample; /* the latest */
	struct health_numbers past[HEALTH_PAST];
	uint64_t past_at[HEALTH_PAST];
	unsigned int npast, oldest;
	double usual_loss; /* share of packets, -1: not known yet */
	uint64_t worst_ns; /* longest lateness of the daemon since it has been bad */
	/* for the next sample */
	struct health_scan scan, scanned;
	uint32_t scan_conn;
	struct health_waiting waiting[HEALTH_WAIT];
	unsigned int nwaiting, next_peer;
	uint64_t late_ns, last_tick, next_sample, peer_late[PEER_MAX];
	/* what happened to the link, and when */
	struct peer_signs signs[PEER_MAX];
	struct health_way way[PEER_MAX][2];
	uint64_t trouble_at[PEER_MAX], stranger_at, strangers, changed_at;
	uint32_t longest[STEER_SIDES];
	uint64_t longest_at[STEER_SIDES];
	/* the latest event of packets that miss an appliance */
	char missed[VIEW_MISSED];
	uint64_t missed_at;
	int missed_peer;
	uint32_t links; /* bits: peers that are up, ports that are down, links that are narrow */
};

/** struct health_source - what the daemon knows besides @src. */
struct health_source {
	uint64_t wan_rate;
	bool wan_auto;
	const char *ahead_off, *bypass;
};

/** health_tick - scan, take samples, judge; called some times per second. */
void health_tick(struct health *h, const struct view_source *src, const struct health_source *more,
		 uint64_t now_ns);

/** health_bypass - an operator has begun or ended a bypass: judged at once.
 *  @bypass: see struct health_sample */
void health_bypass(struct health *h, const struct view_source *src, const char *bypass,
		   uint64_t now_ns);

/** health_missed - packets of connection @conn have begun to miss an appliance. This may be over
 * before the scan of all connections comes to it. */
void health_missed(struct health *h, const struct view_source *src, uint32_t conn, uint64_t now_ns);

/** health_peer_down - @peer has gone down: the next tick judges how long it was silent before. */
void health_peer_down(struct health *h, const struct view_source *src, unsigned int peer,
		      uint64_t now_ns);

/** health_longest - packet that hosts send to @peer now, bytes from the IP header on; 0: not known.
 */
uint16_t health_longest(const struct health *h, unsigned int peer);

/** health_blocked - bytes that were sent that way since any have come, by @c, the latest comparison
 * of both ends. When nothing is sent any more that is over, too. */
uint64_t health_blocked(struct health_way *w, const struct link_count *c, uint64_t now_ns);

/** health_narrow - whether that direction of a link drops what hosts send. */
static inline bool health_narrow(const struct session_reach *r)
{
	return r->refused && r->longest >= r->refused;
}

/** health_path_mtu - the path MTU that makes packets of @len bytes. */
unsigned int health_path_mtu(unsigned int len);

/** health_site - what peers are told of our ports. */
void health_site(const struct health *h, struct proto_site *out);

/** health_judge - judge h->sample, raise and clear alarms; health_judge_bypass(): only the bypass
 * alarm. */
void health_judge(struct health *h);
void health_judge_bypass(struct health *h);

/** health_mend - what to do about alarm @i. */
const char *health_mend(const struct health *h, unsigned int i);

/** health_alarm_of - name, mend, level and peer (or PEER_NONE) of alarm @i; false when there is no
 * such alarm. */
struct health_what {
	const char *name, *mend;
	enum health_level level;
	int peer;
};
bool health_alarm_of(unsigned int i, struct health_what *out);

/** health_refusal - whether @r is a reason of the peer to refuse a lane. */
bool health_refusal(enum lane_reason r);

const char *health_level_name(enum health_level l);

#endif
