/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What daemon.c and the daemon_*.c share.
 */
#ifndef LONGHAUL_DAEMON_PRIV_H
#define LONGHAUL_DAEMON_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "config/resolver.h"
#include "control/capture.h"
#include "control/control.h"
#include "control/feed.h"
#include "control/health.h"
#include "control/operate.h"
#include "daemon/event_log.h"
#include "daemon/loop.h"
#include "engine/engine.h"
#include "peer/session.h"
#include "peer/socket.h"
#include "port/own.h"

enum phase {
	RUNNING,
	DRAINING, /* signalled once */
	FAILING,  /* time is over: queue pairs whose custody is lost are put into the error state */
	HUSHED,	  /* another process goes on as soon as hosts are silent */
	STOPPED,
};

#define STATE_PATH 160

/**
 * struct daemon
 * @state_fd:    file with what outlives this process, 0: none (daemon_state.c)
 * @adopted:     the engine was another process's; @hand_over: and shall be another's
 * @boots_known: what the engine was told of peers is noted there; @boot_told: that, 0: nothing
 * @opened, @metered: an OPEN, a METER was said in this round
 */
struct daemon {
	struct config *cfg;
	int state_fd;
	bool adopted, hand_over, boots_known;
	bool opened, metered;
	uint64_t boot_told[PEER_MAX];
	bool vlan_strip[STEER_SIDES]; /* the process before this one did not come to restore it */
	char state_path[STATE_PATH];
	unsigned int orphans; /* connections that a former process held and that are lost */
	struct engine *engine;
	struct engine_box box;
	uint64_t wan_read, overrun_at;
	struct afxdp *port;
	struct peer_socket *sock;
	struct session *session;
	struct control *control;
	struct loop *loop;
	struct view_source view;
	struct event_log events;
	enum phase phase;
	uint64_t hush_until; /* HUSHED */
	int exit_code;
	bool port_gone;
	uint8_t tx_waits;    /* rounds in a row in which something waited to leave */
	char ahead_off[256]; /* why prefetch is off although a rule wants it */
	struct health health;
	struct feed monitor;
	struct capture capture;
	struct operate operate;
	struct own own;
	int own_fd; /* 0: not open */
	bool stopping;
	bool fence_failed; /* the latest connection that was to be held could not */
	bool lingering;	   /* the port still takes what rules of before a reload wanted */
	uint32_t linger_conn;
	struct resolver *resolver; /* NULL: no peer is named by its host's name */
	uint64_t next_ask[PEER_MAX], quiet_names;
	uint32_t name_failed; /* latest look for a peer's name, bits by place */
	uint32_t leaving;     /* peers that are removed once nothing drains, bits by place */
	uint64_t now, started, next_house, next_second, drain_until;
	uint64_t uptime_ms, turns, reloads, reloads_refused;
	struct view_counter counters[8];
};

/* daemon.c: what the loop calls */
void daemon_on_control(void *ctx, int fd);
void daemon_on_alarm(void *ctx, unsigned int i, bool raised);
void daemon_on_stop(void *ctx, int signo);
/** daemon_clock - look at the clock; the engine is told where nobody did for long. */
void daemon_clock(struct daemon *d);

/** daemon_last_frames - nothing is taken any more; what was, leaves. */
void daemon_last_frames(struct daemon *d);

/* daemon_reload.c */
void daemon_on_reload(void *ctx, int signo);

/** daemon_reload - likewise; false with one line in @err when the configuration is not taken. */
bool daemon_reload(void *ctx, char *err, size_t errlen);

/** daemon_linger - let go of what only rules of before a reload wanted, once nothing needs it; with
 *  each housekeeping. */
void daemon_linger(struct daemon *d);

/** daemon_lingers - whether the process before this one was not done with that: rules of before its
 *  reload are on no record. */
bool daemon_lingers(struct daemon *d);

/** daemon_limits - pace and timeouts of @cfg, as the engine wants them. */
struct engine_config daemon_limits(const struct config *cfg);

/** daemon_set_rules - hand the rules of @d->cfg to the engine and the views. */
void daemon_set_rules(struct daemon *d);

/* daemon_peers.c */

/** struct peer_keys - of one peer, as its key files have them. */
struct peer_keys {
	uint8_t key[SESSION_KEYS][PEER_KEY_LEN];
	unsigned int n;
};

/** daemon_add_peers - those of @d->cfg, at the start. 0, or a negative errno with @err. */
int daemon_add_peers(struct daemon *d, char *err, size_t errlen);

/** daemon_peers_plan - whether the peers of @new can be taken over: @errs says why not. @new has
 * them at their places then, and @keys, of PEER_MAX, their keys. Nothing is changed. */
bool daemon_peers_plan(struct daemon *d, struct config *new, struct peer_keys *keys,
		       struct config_errors *errs);

/** daemon_peers_take - what was planned. */
void daemon_peers_take(struct daemon *d, struct config *new, const struct peer_keys *keys);

/** daemon_peers_left - nothing drains any more: peers that were removed are forgotten. */
void daemon_peers_left(struct daemon *d);

/** daemon_steer - the port shall take what the rules want, own addresses being what they are. */
int daemon_steer(struct daemon *d);

/* daemon_own.c */

/** daemon_own_open - look at own addresses for the first time; daemon_own - each second. */
void daemon_own_open(struct daemon *d);
void daemon_own(struct daemon *d);

/* daemon_names.c */

/** daemon_names_wanted - whether a peer of @cfg is named by its host's name. */
bool daemon_names_wanted(const struct config *cfg);

/** daemon_names - look for peers that are not up; each second. */
void daemon_names(struct daemon *d);
void daemon_on_name(void *ctx, int fd);

/* daemon_fence.c */

/** daemon_fence - the engine's sink, see there. */
int daemon_fence(void *ctx, const struct flow_key *requests, uint32_t lqpn,
		 const struct template *headers, bool on);

/** daemon_prefetch - prepare for it when a rule of @d->cfg wants it; turn it off there when that
 * is impossible, which is logged. */
void daemon_prefetch(struct daemon *d);

/** daemon_release - at the end: hold no longer what can do without us, say what cannot; false when
 * there is such. */
bool daemon_release(struct daemon *d);

/* daemon_state.c */

/** daemon_state_open - the file, locked; without one that can be used all is well, too. */
int daemon_state_open(struct daemon *d, char *err, size_t errlen);

/** daemon_engine - the engine of the process before this one, or a new one; NULL when memory is
 * short. */
void daemon_engine(struct daemon *d, struct engine_config *ec, const struct engine_sink *sink);

/** daemon_session_memory - for session_config.memory. */
void *daemon_session_memory(const struct daemon *d);
uint32_t daemon_kept_bytes(void);

/** daemon_state_peers - tell an adopted engine what has changed with the peers. */
void daemon_state_peers(struct daemon *d);

/** daemon_state_site - peers may be others after a reload. */
void daemon_state_site(struct daemon *d);

/** daemon_state_ports - the port has been opened. */
void daemon_state_ports(struct daemon *d);

/** daemon_state_event - what @ev of the session with @peer is to the engine, which will be told of
 *  it now. */
enum peer_event daemon_state_event(struct daemon *d, unsigned int peer, enum peer_event ev);

/** daemon_state_told - the engine has been told, and will not forget, which peers are there. */
void daemon_state_told(struct daemon *d);

/** daemon_orphans - connections that a former daemon left held: the engine has them, or fails them.
 */
void daemon_orphans(struct daemon *d);

void daemon_on_hand_over(void *ctx, int signo);
/** daemon_hushed - returns when to look again whether hosts are silent, 0: now they are. */
uint64_t daemon_hushed(const struct daemon *d);

/** daemon_last_words - before it is left to another process the engine is whole, and what it has
 * said leaves. */
void daemon_last_words(struct daemon *d);

/** daemon_frames - a file for the port's packet buffers, for the caller to close; 0: none. */
int daemon_frames(const struct daemon *d);

/** daemon_state_close - @gone: there is nothing to go on with. */
void daemon_state_close(struct daemon *d, bool gone);

/** daemon_served - what peers are told of us: the hosts near us in rules that name a peer. @buf:
 * room for RULE_MAX * RULE_PREFIXES, must outlive @local. */
void daemon_served(const struct config *cfg, struct session_local *local, struct prefix *buf);

#endif
