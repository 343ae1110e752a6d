/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What daemon.c and the daemon_*.c share.
 */
#ifndef LONGHAUL_DAEMON_PRIV_H
#define LONGHAUL_DAEMON_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "config.h"
#include "control/capture.h"
#include "control/control.h"
#include "control/feed.h"
#include "control/health.h"
#include "control/operate.h"
#include "engine/engine.h"
#include "event_log.h"
#include "loop.h"
#include "mirror.h"
#include "peer/session.h"
#include "peer/socket.h"
#include "resolver.h"

enum phase {
	RUNNING,
	DRAINING, /* signalled once */
	FAILING,  /* time is over: queue pairs whose custody is lost are made to fail */
	STOPPED,
};

struct daemon {
	struct config *cfg;
	struct engine *engine;
	struct afxdp *port;
	struct peer_socket *sock;
	struct session *session;
	struct control *control;
	struct loop *loop;
	struct view_source view;
	struct event_log events;
	struct mirror mirror; /* anew with each reload */
	enum phase phase;
	int exit_code;
	bool port_down;
	uint8_t tx_waits;    /* rounds in a row in which something waited to leave */
	char ahead_off[256]; /* why prefetch is off although a rule wants it */
	struct health health;
	struct feed monitor;
	struct capture capture;
	struct operate operate;
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

/* daemon_reload.c */
void daemon_on_reload(void *ctx, int signo);

/** daemon_reload - likewise; false with one line in @err when the configuration is not taken. */
bool daemon_reload(void *ctx, char *err, size_t errlen);

/** daemon_linger - let go of what only rules of before a reload wanted, once nothing needs it; with
 *  each housekeeping. */
void daemon_linger(struct daemon *d);

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

/* daemon_names.c */

/** daemon_names_wanted - whether a peer of @cfg is named by its host's name. */
bool daemon_names_wanted(const struct config *cfg);

/** daemon_names - look for peers that are not up; each second. */
void daemon_names(struct daemon *d);
void daemon_on_name(void *ctx, int fd);

/* daemon_fence.c */

/** daemon_pins - the directory for what must outlive us. */
const char *daemon_pins(void);

/** daemon_fence - the engine's sink, see there. */
int daemon_fence(void *ctx, const struct flow_key *requests, uint32_t lqpn, bool on);

/** daemon_prefetch - prepare for it when a rule of @d->cfg wants it; turn it off there when that
 * is impossible, which is logged. */
void daemon_prefetch(struct daemon *d);

/** daemon_fail_orphans - tell the engine of connections that a former daemon left held. */
void daemon_fail_orphans(struct daemon *d);

/** daemon_release - at the end: hold no longer what can do without us, say what cannot. */
void daemon_release(struct daemon *d);

/** daemon_served - what peers are told of us: the hosts near us in rules that name a peer. @buf:
 * room for RULE_MAX * RULE_PREFIXES, must outlive @local. */
void daemon_served(const struct config *cfg, struct session_local *local, struct prefix *buf);

#endif
