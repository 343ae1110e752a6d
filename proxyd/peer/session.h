/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The sessions of one appliance with its peers: authentication, liveness, and reports to and from
 * them. Pure: no socket and no clock. Datagrams come in through session_rx() and leave through the
 * sink; the caller passes the time, CLOCK_MONOTONIC in ns, which never goes back. Randomness is
 * libsodium's unless the configuration has a function of its own.
 *
 * The caller knows which address belongs to which peer (peer/socket.h) and hands in the peer's
 * index, the one that rules name. One thread calls all of this. The sink's functions are called
 * from inside session_*() calls and may call session_report() and session_up(), nothing else of
 * this file.
 *
 * The order of calls in an event loop:
 *
 *	session_rx() for each datagram		-> sink: report, event
 *	engine_tick()				-> session_report()
 *	session_tick()				-> sink: event; heartbeats
 *	session_flush()				-> sink: send
 *	sleep until session_deadline()
 */
#ifndef LONGHAUL_PEER_SESSION_H
#define LONGHAUL_PEER_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h" /* enum peer_event */
#include "engine/report.h"
#include "rule/rule.h" /* PEER_MAX, struct prefix */
#include "peer/key.h"
#include "peer/proto.h"

#define SESSION_DATAGRAM_MAX 1472 /* bytes of UDP payload, sent or received */
#define SESSION_PROBE_MAX    4160 /* the same, of a probe */
#define SESSION_KEYS	     2	  /* keys that a peer may have at a time */
#define SESSION_DATAGRAM_MIN 1000 /* lowest limit that can be configured: the largest HELLO fits */

/* Counters of what is refused, dropped or suppressed; `longhaul peer show -d` lists them. */
#define SESSION_COUNTERS(X)                                                                        \
	X(FOREIGN, "foreign", "datagrams that are not of this protocol, or of no possible length") \
	X(BAD_VERSION, "bad-version", "datagrams of another protocol version")                     \
	X(BAD_AUTH, "bad-auth",                                                                    \
	  "datagrams that fail authentication: forged, damaged or other key")                      \
	X(REFLECTED, "reflected", "our own datagrams, sent back to us")                            \
	X(REPLAYED, "replayed", "datagrams of this session that had arrived already")              \
	X(TOO_OLD, "too-old", "datagrams so late that the replay window is past them")             \
	X(NO_SESSION, "no-session", "datagrams of a session that is not the current one")          \
	X(UNPROVEN, "unproven",                                                                    \
	  "HELLOs that do not echo our salt: first ones, late or replayed ones")                   \
	X(LIMITED, "limited", "HELLOs not answered because too many came")                         \
	X(MALFORMED, "malformed", "messages with a field out of range, refused as a whole")        \
	X(MISPLACED, "misplaced", "messages in a kind of datagram where they do not belong")       \
	X(UNKNOWN_TYPE, "unknown-type", "messages of a type not known here, skipped")              \
	X(NOT_UP, "not-up", "reports dropped because the peer was not up")                         \
	X(BAD_REPORT, "bad-report", "reports of our own engine out of range, dropped")             \
	X(SUPERSEDED, "superseded",                                                                \
	  "progress reports replaced by a newer one before they were sent")

enum session_counter {
#define X(id, name, help) SC_##id,
	SESSION_COUNTERS(X)
#undef X
		SC_COUNT
};

/** session_counter_name, session_counter_help - text of counter @c. */
const char *session_counter_name(enum session_counter c);
const char *session_counter_help(enum session_counter c);

/** enum session_state - of one peer. */
enum session_state {
	SESSION_UNUSED, /* no such peer; its datagrams are ignored */
	SESSION_DOWN,	/* seeking: a HELLO every hello_ns; no report goes either way */
	SESSION_UP,	/* proven alive under fresh keys; heartbeats, reports */
	SESSION_CLOSED, /* we said BYE: silent until the process ends */
	SESSION_STATES,
};
const char *session_state_name(enum session_state s);

/** enum session_end - how the latest session with a peer ended. */
enum session_end {
	SESSION_END_NONE,    /* there was none */
	SESSION_END_SILENT,  /* nothing came any more */
	SESSION_END_STOPPED, /* the peer said that it stops */
	SESSION_END_REMOVED, /* the peer said that this side is no peer of it any more */
	SESSION_END_KEY,     /* its key was taken out of our configuration */
};

/**
 * struct session_local - what peers are told of us.
 * @name:     1 to 63 of [A-Za-z0-9._-]
 * @features, @window, @prefix: see struct proto_hello; PROTO_FEATURES are always added
 * @nprefix:  may exceed PROTO_PREFIXES: the first ones are sent, with a mark that there are more
 */
struct session_local {
	const char *name;
	uint32_t features, window;
	const struct prefix *prefix;
	unsigned int nprefix;
};

/**
 * struct session_config - zero means default.
 * @local:        copied; the name must be given
 * @hello_ns:     between HELLOs while a peer is down, default 500 ms
 * @heartbeat_ns: between heartbeats while it is up, default 50 ms
 * @silent_ns:    a peer is down after so long without an authentic datagram, default 900 ms
 * @dead_ns:      the same for a peer of an older version, with rarer heartbeats, and before the
 *                first heartbeat under new keys; default 3 s
 * @datagram_max: bytes of UDP payload, SESSION_DATAGRAM_MIN .. SESSION_DATAGRAM_MAX, default 1,400
 * @boot:         boot epoch, default: a random one. Set it only if a restarted process shall pass
 *                for its predecessor
 * @memory:       session_size() bytes, zeroed, or as a former process left them: then we take its
 *                boot epoch, and its sessions go on with peers that are added with the same names
 *                and keys. NULL: allocated here
 * @random:       fills @buf; default randombytes_buf(). For tests
 */
struct session_config {
	struct session_local local;
	uint64_t hello_ns, heartbeat_ns, silent_ns, dead_ns;
	uint32_t datagram_max;
	uint64_t boot;
	void *memory;
	void (*random)(void *ctx, void *buf, size_t len);
	void *random_ctx;
};

/**
 * struct session_sink - where outputs go. All but @probe must be given.
 * @send:   a datagram for peer @peer; @data valid during the call only
 * @event:  PEER_UP; PEER_DOWN; PEER_RESTARTED: another process of the peer is up now (instead of
 *          PEER_UP; possible also while the peer is up); PEER_AGAIN: the same process, up all the
 *          time, may have lost sight of us
 * @report: an authentic, well-formed report, for engine_rx_report()
 * @probe:  a datagram that must not be fragmented; false when this host cannot send it. NULL: the
 *          link is not probed
 * @log:    one line without newline; @prio as in <syslog.h>. Rate-limited where strangers could
 *          cause it
 */
struct session_sink {
	void *ctx;
	void (*send)(void *ctx, unsigned int peer, const uint8_t *data, size_t len);
	void (*event)(void *ctx, unsigned int peer, enum peer_event ev, uint64_t now_ns);
	void (*report)(void *ctx, unsigned int peer, const struct report *r, uint64_t now_ns);
	void (*log)(void *ctx, unsigned int peer, int prio, const char *line);
	bool (*probe)(void *ctx, unsigned int peer, const uint8_t *data, size_t len);
};

struct session;

/** session_size - bytes for session_config.memory. */
size_t session_size(void);

/** session_create - no peers yet. NULL with errno EINVAL (configuration), ENOMEM, or EIO
 *  (libsodium). */
struct session *session_create(const struct session_config *cfg, const struct session_sink *sink,
			       uint64_t now_ns);

/** session_destroy - sends nothing (session_bye() does); wipes all keys. NULL is fine. */
void session_destroy(struct session *s);

/**
 * session_peer_add - peer @peer (0 .. PEER_MAX - 1) exists from now on, DOWN; the next
 * session_tick() sends a HELLO.
 * @name: for log lines, copied
 * 0, -EINVAL (index, no name), -EEXIST
 */
int session_peer_add(struct session *s, unsigned int peer, const char *name,
		     const uint8_t key[PEER_KEY_LEN], uint64_t now_ns);

/** session_peer_resume - go on with peer @peer of the former process, under the name and keys that
 * it had there. False: there was none. */
bool session_peer_resume(struct session *s, unsigned int peer, uint64_t now_ns);

/**
 * session_peer_keys - set the peer's @n keys, 1 .. SESSION_KEYS, the preferred one first (roll.c).
 * A session goes on: it is replaced by one under the first key if the peer knows that, and ends
 * (PEER_DOWN) if its own key is none of these. 0, -EINVAL, -ENOENT
 */
int session_peer_keys(struct session *s, unsigned int peer, const uint8_t (*keys)[PEER_KEY_LEN],
		      unsigned int n, uint64_t now_ns);

/** session_peer_rename - set the name in log lines and session_info(). */
void session_peer_rename(struct session *s, unsigned int peer, const char *name);

/** session_peer_remove - forget it; sends BYE if it is up. Raises no event. */
void session_peer_remove(struct session *s, unsigned int peer);

/** session_local - set what peers are told of us; tells those that are up. 0 or -EINVAL. */
int session_local(struct session *s, const struct session_local *local, uint64_t now_ns);

/** session_site - set what @peer is told of our ports and rules; tells it if that has changed. Bits
 * of @site->wanted beyond the length of a prefix mean nothing. */
void session_site(struct session *s, unsigned int peer, const struct proto_site *site);

/**
 * session_path - see whether packets of @want bytes, from the IP header on, arrive at @peer, from
 * now on (probe.c).
 * @longest:  that hosts send there now, 0: not known
 * @overhead: bytes of IP and UDP headers of a datagram to it
 */
void session_path(struct session *s, unsigned int peer, uint16_t want, uint16_t longest,
		  uint16_t overhead);

/** session_rx - a datagram from the address of peer @peer. */
void session_rx(struct session *s, unsigned int peer, const uint8_t *data, size_t len,
		uint64_t now_ns);

/**
 * session_report - queue @r for @peer. It leaves with session_flush(), or at once when the datagram
 * is full. A PROGRESS that is still queued is replaced by a newer one of the same lane and
 * generation. 0, -ENOTCONN (not up), -EINVAL (a field out of range); both counted.
 */
int session_report(struct session *s, unsigned int peer, const struct report *r);

/** session_flush - send what is queued for all peers; at the end of a batch. */
void session_flush(struct session *s);

/** session_tick - HELLOs, heartbeats, peers that fell silent. Call it at session_deadline(); more
 * often does no harm. */
void session_tick(struct session *s, uint64_t now_ns);

/** session_deadline - when session_tick() wants to be called next, UINT64_MAX for never. */
uint64_t session_deadline(const struct session *s);

/** session_bye - sends what is queued and BYE to every peer that is up; all are SESSION_CLOSED
 *  afterwards. No event is raised. */
void session_bye(struct session *s, enum proto_bye_reason reason);

/** session_up - whether reports to @peer can be queued. */
bool session_up(const struct session *s, unsigned int peer);

/** session_rtt - the smoothed round trip to @peer, ns, at most a second; 0: not known. */
uint64_t session_rtt(const struct session *s, unsigned int peer);

/** session_boot - our own boot epoch. */
uint64_t session_boot(const struct session *s);

/**
 * struct session_reach - packets, in bytes from the IP header on, in one direction of the link.
 * @carried: longest that is known to arrive, 0: not known; @refused: shortest that is known to
 *           vanish, 0: none
 * @longest: that hosts send now, 0: not known
 */
struct session_reach {
	uint16_t carried, refused, longest;
};

/**
 * struct session_info - one peer, for people. Times in ns.
 * @state, @name:  as configured
 * @known:   false: it was never up, and @node .. @more mean nothing
 * @node, @version, @boot, @features, @window, @prefix, @nprefix, @more: from its latest HELLO
 * @site:    what it has told of its ports and rules in this session, if @site_known
 * @reach:   to it and from it, see struct session_reach
 * @since_ns: how long it has been in @state
 * @heard:   an authentic, fresh datagram ever came; @heard_ns: how long ago. HELLOs without proof
 *           do not count; @rx_datagrams > 0 with @heard false: its HELLOs arrive here, ours do not
 *           arrive there
 * @other_key, @other_version, @reflected: datagrams were refused for that since it went down, or
 *           since its keys were read again
 * @calls:   its HELLOs arrive, but without proof: ours do not arrive there
 * @end:     how its latest session ended
 * @beats:   it sends heartbeats each 50 ms (PROTO_F_BEATS), not each 250
 * @key:     which of its keys the session is under, -1 when there is none
 * @sessions: handshakes completed; @restarts: times it came back as another process; @downs: times
 *            it went down
 * @rtt_samples: 0: the delays below mean nothing. They belong to the current session
 * @rtt_ns, @srtt_ns, @rtt_min_ns: latest, smoothed, smallest round trip
 * @jitter_ns: smoothed difference of one-way delay between consecutive heartbeats that we got
 * @owd_above_ns: by how much the latest heartbeat took longer one way than the fastest of the last
 *                minute
 * @tx_reports, @rx_reports: reports; @tx_datagrams ...: all datagrams, @rx_ those that were
 *                           authentic
 */
struct session_info {
	enum session_state state;
	char name[RULE_NAME];
	bool known;
	char node[PROTO_NAME];
	uint8_t version;
	uint64_t boot;
	uint32_t features, window;
	struct prefix prefix[PROTO_PREFIXES];
	unsigned int nprefix;
	bool more, site_known;
	struct proto_site site;
	struct session_reach reach[2];
	uint64_t since_ns;
	bool heard, beats, other_key, other_version, reflected, calls;
	enum session_end end;
	uint64_t heard_ns;
	int key;
	uint64_t sessions, restarts, downs;
	uint64_t rtt_samples;
	uint64_t rtt_ns, srtt_ns, rtt_min_ns, jitter_ns, owd_above_ns;
	uint64_t tx_datagrams, tx_bytes, rx_datagrams, rx_bytes, tx_reports, rx_reports;
	uint64_t counter[SC_COUNT];
};

/** session_reach - to @peer and from it; false when there is no session. */
bool session_reach(const struct session *s, unsigned int peer, struct session_reach out[2]);

/** session_info - false when there is no such peer. */
bool session_info(const struct session *s, unsigned int peer, uint64_t now_ns,
		  struct session_info *out);

#endif
