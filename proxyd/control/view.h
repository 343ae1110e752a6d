/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Views: what an operator may ask for, as JSON objects. The daemon gives data; wording, units and
 * columns are the tool's business. Keys are kebab-case, numbers are numbers, times carry their unit
 * in the key.
 *
 * A view hands out its objects one by one and does a bounded amount of work per call, since it runs
 * in the thread that moves packets.
 */
#ifndef LONGHAUL_CONTROL_VIEW_H
#define LONGHAUL_CONTROL_VIEW_H

#include <jansson.h>
#include <stdint.h>

#include "engine/engine.h"
#include "rule/rule.h"
#include "shards/shards.h"

struct afxdp;
struct health;
struct feed;
struct capture;
struct operate;
struct session;
struct peer_socket;

/** struct view_peer - a peer as configured; without @name: no peer has this index now. @host: the
 * name that was looked up for @addr, NULL if the file has an address; @addr is all zero until it is
 * found. */
struct view_peer {
	const char *name;
	struct ip_addr addr;
	uint16_t port;
	const char *host;
	const char *key_file[2];
};

/** struct view_counter - a counter that another part owns. */
struct view_counter {
	const char *name, *help;
	const uint64_t *value;
};

/** struct view_core - what a core has done: frames that it moved, that it gave to another core, and
 * for which that had no room. */
struct view_core {
	const uint64_t *frames, *handed, *dropped;
};

/**
 * struct view_source - what views read; nothing is owned.
 * @port:       NULL when there is none (replay); @session, @sock: NULL without peers
 * @peers:      by peer index
 * @health:     NULL when there is none; @stopping: whether the daemon stops, NULL when it never
 *              does
 * @monitor, @capture, @operate: what clients may follow and operate, NULL when they may not
 * @reload:     read the configuration again: false with one line in @err; NULL when that is
 *              impossible
 * @own:        addresses of this host; NULL when they are not known
 * @daemon:     the daemon's own counters: @ndaemon of them
 * @core:       counters of each of the @ncores cores; none in a replay
 */
struct view_source {
	struct shards *shards;
	struct afxdp *port;
	struct session *session;
	struct peer_socket *sock;
	const struct rule *rules;
	unsigned int nrules;
	struct view_peer peers[PEER_MAX];
	unsigned int npeers;
	struct feed *monitor;
	struct capture *capture;
	struct operate *operate;
	const struct health *health;
	const bool *stopping;
	bool (*reload)(void *ctx, char *err, size_t errlen);
	void *reload_ctx;
	const struct own *own;
	const struct view_counter *daemon;
	unsigned int ndaemon;
	struct view_core core[SHARDS_MAX];
	unsigned int ncores;
};

/** struct view_cursor - how far a view has come; all zero at first. */
struct view_cursor {
	uint32_t conn;
	uint32_t index;
	uint32_t sub;
	struct {
		uint32_t conns;
		struct ledger custody;
	} rule[RULE_MAX];
};

enum view_step {
	VIEW_OBJECT, /* one object was made */
	VIEW_AGAIN,  /* work was done, call again */
	VIEW_END,
};

/**
 * struct view
 * @cmd:  name of the request
 * @next: next object into @out (a new reference)
 */
struct view {
	const char *cmd;
	enum view_step (*next)(const struct view_source *src, struct view_cursor *cur,
			       uint64_t now_ns, json_t **out);
};

/** view_find - the view that answers request @cmd, NULL when there is none. */
const struct view *view_find(const char *cmd);

/* The views; each in its own file. */
enum view_step view_qp(const struct view_source *src, struct view_cursor *cur, uint64_t now_ns,
		       json_t **out);
enum view_step view_lane(const struct view_source *src, struct view_cursor *cur, uint64_t now_ns,
			 json_t **out);
enum view_step view_rule(const struct view_source *src, struct view_cursor *cur, uint64_t now_ns,
			 json_t **out);
enum view_step view_peer(const struct view_source *src, struct view_cursor *cur, uint64_t now_ns,
			 json_t **out);
enum view_step view_port(const struct view_source *src, struct view_cursor *cur, uint64_t now_ns,
			 json_t **out);
enum view_step view_stats(const struct view_source *src, struct view_cursor *cur, uint64_t now_ns,
			  json_t **out);
enum view_step view_health(const struct view_source *src, struct view_cursor *cur, uint64_t now_ns,
			   json_t **out);
enum view_step view_daemon(const struct view_source *src, struct view_cursor *cur, uint64_t now_ns,
			   json_t **out);

/* For the views themselves. */

/** view_rule_name, view_peer_name - name of an index as the engine reports it, NULL for none. */
const char *view_rule_name(const struct view_source *src, int rule);
const char *view_peer_name(const struct view_source *src, int peer);

/** view_reason - why a lane is in its state, as the rest of a sentence; NULL: no text. */
const char *view_reason(enum lane_reason r);

/** view_missed - text on packets of lane @l of @ci that miss an appliance, into @buf: from which
 * host to which, and which appliance. False when none do. */
#define VIEW_MISSED 192
bool view_missed(const struct view_source *src, const struct conn_info *ci,
		 const struct lane_info *l, char buf[VIEW_MISSED]);

/** view_put_ledger - members @prefix-messages, -packets, -bytes, -oldest-ms. */
void view_put_ledger(json_t *o, const char *prefix, const struct ledger *l);

/** view_put_reads - what became of a lane's READs. */
void view_put_reads(json_t *o, const struct prefetch_info *r);
void view_put_announce(json_t *o, const struct announce_info *a);

/** view_put_seal - whether lane @l of @ci is sealed, why not, and whether its packets miss an
 * appliance. */
void view_put_seal(json_t *o, const struct view_source *src, const struct conn_info *ci,
		   const struct lane_info *l);

/** view_put_ip - member @key with the text of @a. */
void view_put_ip(json_t *o, const char *key, const struct ip_addr *a);

/** view_put_str - member @key with @text, null when @text is NULL. */
void view_put_str(json_t *o, const char *key, const char *text);

/** view_put_int - member @key with a number. */
void view_put_int(json_t *o, const char *key, uint64_t v);

/** view_put_24 - member @key with a QPN or PSN, null when it is none (they have 24 bits). */
void view_put_24(json_t *o, const char *key, uint32_t v);

/** view_add_ledger - add @l to @sum; the older age counts. */
void view_add_ledger(struct ledger *sum, const struct ledger *l);

/** view_put_conn - what names a connection: addresses, QPNs (null when unknown), VLAN (null:
 * untagged). */
void view_put_conn(json_t *o, const struct conn_info *ci);

#endif
