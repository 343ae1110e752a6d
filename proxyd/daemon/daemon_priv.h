/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What daemon.c and the daemon_*.c share.
 */
#ifndef LONGHAUL_DAEMON_PRIV_H
#define LONGHAUL_DAEMON_PRIV_H

#include <net/if.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "config/resolver.h"
#include "control/capture.h"
#include "control/control.h"
#include "control/feed.h"
#include "control/health.h"
#include "control/operate.h"
#include "daemon/ask.h"
#include "daemon/event_log.h"
#include "daemon/loop.h"
#include "engine/engine.h"
#include "peer/session.h"
#include "peer/socket.h"
#include "port/own.h"
#include "shards/inbox.h"
#include "shards/shards.h"
#include "shards/team.h"

enum phase {
	RUNNING,
	DRAINING, /* signalled once */
	FAILING,  /* time is over: queue pairs that lost custody are put into the error state */
	HUSHED,	  /* hands over to another process as soon as hosts are silent */
	STOPPED,
};

#define STATE_PATH 160

/**
 * struct core - a part of the ports and of the shards (daemon_cores.c).
 * @ask:    [core] -> whether what came by it waits for datagrams; its own: from the ports
 * @from:   [core] -> frames that came there and are ours; NULL where there is one core only
 * @opened: an OPEN waits to leave before the frames of this round; @waiting: some could not leave
 * @moved:  frames that came by it this round, @given: that its shards got; of all rounds: @frames,
 *          @handed to another core, @dropped since that had no room
 */
struct core {
	_Alignas(64) struct daemon *d;
	unsigned int index;
	struct ask ask[SHARDS_MAX];
	struct inbox *from[SHARDS_MAX];
	bool opened, waiting;
	unsigned int moved, given;
	uint64_t frames, handed, dropped;
};

/**
 * struct daemon
 * @state_fd:    file that outlives this process, 0: none (daemon_state.c)
 * @adopted:     a former process made the engine; @hand_over: another one goes on with it
 * @boots_known: the file has the peers' epochs that the engine was told; @boot_told: these, 0: none
 * @shard_fd:    [shard] -> its file, that of the first is @state_fd
 * @lacking:     some of the pool has no memory, which the log has told
 * @sockets:     of a core, at most; @says: taken by engines that say something, while cores work
 * @look_at:     when to look for datagrams, unless the loop tells of some before, @sock_told
 * @busy_until:  there were frames lately, and more are looked for without sleeping
 * @frames:      that came in this turn; @shared: cores have threads of their own in this round
 */
struct daemon {
	struct config *cfg;
	int state_fd;
	bool adopted, hand_over, boots_known, sock_told, lacking, shared;
	uint64_t boot_told[PEER_MAX];
	bool vlan_strip[STEER_PORTS]; /* the former process did not restore it */
	char state_path[STATE_PATH];
	unsigned int orphans; /* connections of a former process with lost custody */
	unsigned int lost;    /* held, and in no engine */
	struct shards *shards;
	int shard_fd[SHARDS_MAX];
	struct core core[SHARDS_MAX];
	unsigned int ncores, sockets;
	struct team *team;
	pthread_mutex_t says;
	struct engine_box box;
	uint64_t wan_read, overrun_at, look_at, busy_until;
	struct afxdp *port;
	struct peer_socket *sock;
	struct session *session;
	struct control *control;
	struct loop *loop;
	unsigned int frames;
	struct view_source view;
	struct event_log events;
	enum phase phase;
	uint64_t hush_until; /* HUSHED */
	int exit_code;
	bool port_gone;
	uint8_t tx_waits;    /* rounds in a row with output that had to wait */
	char ahead_off[256]; /* why prefetch is off though a rule wants it */
	struct health health;
	struct feed monitor;
	struct capture capture;
	struct operate operate;
	struct own own;
	int own_fd;		  /* 0: not open */
	char bridge[IF_NAMESIZE]; /* of the ports, "": none; its index */
	unsigned int bridge_index;
	bool stopping;
	bool fence_failed; /* the latest attempt to hold a connection failed */
	bool lingering;	   /* the port still takes what the rules before a reload wanted */
	uint32_t linger_conn;
	struct resolver *resolver; /* NULL: no peer has a host name */
	uint64_t next_ask[PEER_MAX], quiet_names;
	uint32_t name_failed; /* the latest lookup failed, bits by place */
	uint32_t leaving;     /* peers that are removed once nothing drains, bits by place */
	bool stood_long;      /* longer than what came before may wait */
	uint64_t now, started, next_house, next_second, drain_until;
	uint64_t uptime_ms, turns, reloads, reloads_refused;
	struct view_counter counters[8];
};

/* daemon.c: what the loop calls */
void daemon_on_control(void *ctx, int fd);
void daemon_on_datagrams(void *ctx, int fd);
void daemon_on_alarm(void *ctx, unsigned int i, bool raised);
void daemon_on_stop(void *ctx, int signo);
/** daemon_clock - read the clock; tell the engine if this process did not run for long. */
void daemon_clock(struct daemon *d);

/** daemon_last_frames - stop taking frames; process and send those that were taken. */
void daemon_last_frames(struct daemon *d);

/** daemon_datagrams - read what peers have sent; how many. */
int daemon_datagrams(struct daemon *d);

/* daemon_cores.c */

/** cores_sink - of the shards; its context is the daemon. */
extern const struct shards_sink cores_sink;

/** cores_open - one core, before there is anything; cores_begin - as many as the port has parts,
 * after capabilities were dropped and before system calls are restricted. 0 or negative errno. */
void cores_open(struct daemon *d);
int cores_begin(struct daemon *d);
void cores_close(struct daemon *d);

/** cores_run - all cores move frames once; how many. cores_flush - send what had to wait for
 * reports; whether something could not leave. */
unsigned int cores_run(struct daemon *d);
bool cores_flush(struct daemon *d);

/** cores_have_frames - whether frames wait: under way between cores, of which nothing else tells,
 * and, where some have @moved, in the ports' rings, which wake the loop otherwise. */
bool cores_have_frames(const struct daemon *d, bool moved);

/** cores_unread - bytes from the WAN that are under way between cores. */
uint64_t cores_unread(const struct daemon *d);

/* What waited so long for this process is dropped. */
#define OLD_NS 1000000000ull
/** cores_drop - drop all frames that wait, in and out; how many came in. */
unsigned int cores_drop(struct daemon *d);
/** cores_last_frames - process those that wait. */
void cores_last_frames(struct daemon *d);

/* daemon_reload.c */
void daemon_on_reload(void *ctx, int signo);

/** daemon_reload - likewise; false with one line in @err when the configuration is not taken. */
bool daemon_reload(void *ctx, char *err, size_t errlen);

/** daemon_linger - stop taking what only the rules before a reload wanted, once no lane needs it;
 * called with each housekeeping. */
void daemon_linger(struct daemon *d);

/** daemon_lingers - whether lanes from before a reload of the former process still drain: its old
 * rules are not recorded. */
bool daemon_lingers(struct daemon *d);

/** daemon_limits - pace and timeouts of @cfg, as the engine wants them. */
struct engine_config daemon_limits(const struct config *cfg);

/** daemon_set_rules - hand the rules of @d->cfg to the engine and the views. */
void daemon_set_rules(struct daemon *d);

/* daemon_peers.c */

/** struct peer_keys - one peer's keys, from its key files. */
struct peer_keys {
	uint8_t key[SESSION_KEYS][PEER_KEY_LEN];
	unsigned int n;
};

/** daemon_add_peers - add the peers of @d->cfg, at the start. 0, or a negative errno with @err. */
int daemon_add_peers(struct daemon *d, char *err, size_t errlen);

/** daemon_peers_plan - whether the peers of @new can be taken over; @errs tells why not. Sorts the
 * peers of @new to their places and reads their keys into @keys (PEER_MAX); changes nothing else.
 */
bool daemon_peers_plan(struct daemon *d, struct config *new, struct peer_keys *keys,
		       struct config_errors *errs);

/** daemon_peers_take - take over what was planned. */
void daemon_peers_take(struct daemon *d, struct config *new, const struct peer_keys *keys);

/** daemon_peers_left - nothing drains any more: forget removed peers. */
void daemon_peers_left(struct daemon *d);

/** daemon_steer - have the port take what the rules want, except own addresses. */
int daemon_steer(struct daemon *d);

/* daemon_own.c */

/** daemon_own_open - read own addresses for the first time; daemon_own - each second. */
void daemon_own_open(struct daemon *d);
void daemon_own(struct daemon *d);

/* daemon_path.c */

/** daemon_path - have sessions see whether the link carries what hosts send; each second. */
void daemon_path(struct daemon *d);

/** daemon_path_open - while /sys may be read. */
void daemon_path_open(struct daemon *d);

/** daemon_probe - struct session_sink's probe. */
bool daemon_probe(void *ctx, unsigned int peer, const uint8_t *data, size_t len);

/* daemon_names.c */

/** daemon_names_wanted - whether a peer of @cfg has a host name. */
bool daemon_names_wanted(const struct config *cfg);

/** daemon_names - look up names of peers that are not up; each second. */
void daemon_names(struct daemon *d);
void daemon_on_name(void *ctx, int fd);

/* daemon_fence.c */

/** daemon_fence - struct engine_sink's hold. */
int daemon_fence(struct daemon *d, const struct flow_key *requests, uint32_t lqpn,
		 const struct template *headers, bool on);

/** daemon_prefetch - prepare for prefetch if a rule of @d->cfg wants it; if that is impossible,
 * turn it off there and log why. */
void daemon_prefetch(struct daemon *d);

/** daemon_release - at the end: stop holding connections that work without us, log those that do
 * not; false if there are some. */
bool daemon_release(struct daemon *d);

/* daemon_state.c */

/** daemon_state_open - open and lock the file; 0 also if no file can be used. */
int daemon_state_open(struct daemon *d, char *err, size_t errlen);

/** daemon_engines - set @d->shards: the former process's, or new ones; NULL: memory is short. */
void daemon_engines(struct daemon *d, struct engine_config *ec);

/** daemon_fits - whether several engines can work with the peer of @features. */
bool daemon_fits(const struct daemon *d, uint32_t features);

/** daemon_session_memory - for session_config.memory. */
void *daemon_session_memory(const struct daemon *d);
uint32_t daemon_kept_bytes(void);

/** daemon_state_peers - tell an adopted engine how peers have changed. */
void daemon_state_peers(struct daemon *d);

/** daemon_state_site - note the peers, which a reload may have changed. */
void daemon_state_site(struct daemon *d);

/** daemon_state_ports - note the VLAN stripping of the opened port. */
void daemon_state_ports(struct daemon *d);

/** daemon_state_event - event for the engine from @ev of the session with @peer. The caller tells
 * the engine at once. */
enum peer_event daemon_state_event(struct daemon *d, unsigned int peer, enum peer_event ev);

/** daemon_state_told - the engines have committed the peers' epochs that they were told. */
void daemon_state_told(struct daemon *d);

/** daemon_orphans - connections that a former daemon left held: the engine goes on with them, or
 * fails them. 0, or a negative errno with @err: some would pass, so this process must not run. */
int daemon_orphans(struct daemon *d, char *err, size_t errlen);

void daemon_on_hand_over(void *ctx, int signo);
/** daemon_hushed - when to check again whether hosts are silent, 0: they are. */
uint64_t daemon_hushed(const struct daemon *d);

/** daemon_last_words - before a hand-over: finish the engine's batch and send its output. */
void daemon_last_words(struct daemon *d);

/** daemon_frames - a file for the port's packet buffers, for the caller to close; 0: none. */
int daemon_frames(const struct daemon *d);

/** daemon_state_close - @gone: remove it, nothing is left to go on with. */
void daemon_state_close(struct daemon *d, bool gone);

/** daemon_served - fill @local with what peers are told: the hosts near us in rules that name a
 * peer. @buf: room for RULE_MAX * RULE_PREFIXES, must outlive @local. */
void daemon_served(const struct config *cfg, struct session_local *local, struct prefix *buf);

#endif
