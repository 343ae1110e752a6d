/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Several engines that look like one, so that several processors can move packets.
 *
 * Theory of operation
 *
 * What ties connections together is the pair of hosts: order between queue pairs, the connection
 * manager, the matching of PSNs. So each pair of hosts belongs to one shard, by the hash of the two
 * addresses (report.h, SLICES), and each shard has an engine of its own: flow table, pool, timers.
 * Engines share nothing. One busy pair of hosts stays on one processor.
 *
 * The caller works in rounds of two phases. In one, a thread for each shard gives it its frames and
 * its tick. In the other, one thread uses all shards: for reports, for the operator, for peers that
 * come and go. So only the functions of the sink need a lock.
 *
 *	shards_report() ...		reports that have come
 *	shards_begin()			count and share the links (engine_follow())
 *	engine_rx(), shard_tick()	of each shard in a thread
 *	shards_end()			tell the peers of the links (engine_meter())
 *
 * The link to a peer is one, so the first engine measures it and finds its pace for all. A report
 * is of a lane, whose number has the slice; an offer has addresses; a METER is for the first one.
 *
 * A connection's number here is the engine's times the number of shards, plus the shard. With one
 * shard everything is as the engine alone has it.
 *
 * The pool is divided evenly at first; between rounds, shards that are short get memory of those
 * that can do without, so one busy pair of hosts can have most of it. Tables are divided for good.
 *
 * row: ENG-21
 */
#ifndef LONGHAUL_SHARDS_SHARDS_H
#define LONGHAUL_SHARDS_SHARDS_H

#include "engine/engine.h"

#define SHARDS_MAX ENGINES_MAX

/**
 * struct shards_sink - as struct engine_sink; @shard: whose it is. In a thread of that shard, or in
 * the one that has all.
 */
struct shards_sink {
	void *ctx;
	int (*tx)(void *ctx, unsigned int shard, enum engine_port port, const uint8_t *data,
		  uint32_t len, uint32_t seal);
	void (*report)(void *ctx, unsigned int shard, unsigned int peer, const struct report *r);
	void (*event)(void *ctx, unsigned int shard, const struct engine_event *ev);
	int (*hold)(void *ctx, unsigned int shard, const struct flow_key *requests, uint32_t lqpn,
		    const struct template *headers, bool on);
};

struct shards;

/** shards_new - @n shards (1 .. SHARDS_MAX) without engines. NULL: no memory. */
struct shards *shards_new(unsigned int n, const struct shards_sink *sink);

/** shards_expect - a former process held the connection with @requests: the engines that
 * shards_create() makes are to have a place for it, however few connections are configured. */
void shards_expect(struct shards *s, const struct flow_key *requests);

/** shards_create, shards_adopt - make the engine of each shard: as engine_create() and
 * engine_adopt(). @cfg: of all together, its pool and connections are divided; @cfg->file is not
 * looked at. @files: one for each, or NULL. What only one can have (@kept_bytes) the first has. If
 * it fails there are no engines. */
bool shards_create(struct shards *s, const struct engine_config *cfg, const int *files,
		   uint64_t now_ns);
bool shards_adopt(struct shards *s, const struct engine_config *cfg, const int *files,
		  uint64_t now_ns, const char **why);
/** shards_over - one shard over an engine of the caller's, who destroys it; for views of it. */
struct shards *shards_over(struct engine *e);
/** shards_bytes - the memory that all engines take. */
uint64_t shards_bytes(const struct engine_config *cfg, unsigned int n);
/** shards_destroy - with the engines. NULL is fine. */
void shards_destroy(struct shards *s);

unsigned int shards_n(const struct shards *s);

/** shards_of_frame - whose frame that is; what has no two hosts is the first one's. */
unsigned int shards_of_frame(const struct shards *s, const uint8_t *data, uint32_t len);

/** shards_of_conn - whose connection that is. */
unsigned int shards_of_conn(const struct shards *s, uint32_t conn);

/** shards_engine - for what only its own thread calls: engine_rx(), engine_rx_ask(),
 * engine_rx_soon(), engine_deadline(). */
struct engine *shards_engine(const struct shards *s, unsigned int shard);
/** shard_tick - engine_tick() of one shard, in its own thread. After the commit the port is told
 * which connections it holds no longer. */
void shard_tick(struct shards *s, unsigned int shard, uint64_t now_ns);

/* What one thread calls, and no other at the same time. */

void shards_begin(struct shards *s, uint64_t now_ns);
void shards_end(struct shards *s, uint64_t now_ns);
/** shards_report - as engine_rx_report(); @box: see there. */
void shards_report(struct shards *s, unsigned int peer, const struct report *r,
		   const struct engine_box *box, uint64_t now_ns);
/** shards_tick - each after the other; shards_deadline - the first one's that wants to. */
void shards_tick(struct shards *s, uint64_t now_ns);
uint64_t shards_deadline(const struct shards *s);

/** shards_conn_next - as engine_conn_next(). shards_conn - that connection or false; looks at
 * nothing of other shards, so that its own thread may call it. */
bool shards_conn_next(struct shards *s, uint32_t from, uint64_t now_ns, struct conn_info *out);
bool shards_conn(struct shards *s, uint32_t conn, uint64_t now_ns, struct conn_info *out);

/* As engine_*(), for all shards, or for that whose connection or key it is. */
int shards_lock(const struct shards *s);
void shards_huge(const struct shards *s);
void *shards_kept(const struct shards *s);
void shards_stood_still(struct shards *s, uint64_t since, uint64_t now_ns);
uint64_t shards_left_at(const struct shards *s);
bool shards_holds(struct shards *s, const struct flow_key *requests);
void shards_hush(struct shards *s, uint64_t now_ns);
uint64_t shards_taken_at(const struct shards *s);
void shards_go_on(struct shards *s, uint64_t now_ns);
void shards_rules(struct shards *s, const struct rule *rules, unsigned int n, uint64_t now_ns);
void shards_limits(struct shards *s, const struct engine_config *cfg, uint64_t now_ns);
void shards_peer_features(struct shards *s, unsigned int peer, uint32_t features);
void shards_peer_rtt(struct shards *s, unsigned int peer, uint64_t rtt_ns);
void shards_peer_event(struct shards *s, unsigned int peer, enum peer_event ev, uint64_t now_ns);
/** shards_peer_settle - tell the engines that think otherwise that the peer is @up, or not: a crash
 * may have come when some had committed the event and others had not. */
void shards_peer_settle(struct shards *s, unsigned int peer, bool up, uint64_t now_ns);
void shards_peer_forget(struct shards *s, unsigned int peer, uint64_t now_ns);
bool shards_peer_is_up(const struct shards *s, unsigned int peer);
void shards_drain(struct shards *s, uint64_t now_ns);
uint32_t shards_give_up(struct shards *s, uint64_t now_ns);
bool shards_may_stop(struct shards *s);
bool shards_bypass(struct shards *s, enum bypass what, uint32_t index, bool on, uint64_t now_ns);
uint32_t shards_bypassed(const struct shards *s);
void shards_bypass_rules(struct shards *s, uint64_t rules, uint64_t now_ns);
bool shards_release(struct shards *s, uint32_t conn, uint64_t now_ns);
bool shards_fail_orphan(struct shards *s, const struct flow_key *requests, uint32_t lqpn,
			const struct template *headers, uint64_t now_ns);
struct ledger shards_custody(struct shards *s, int rule, uint64_t now_ns);
/** shards_lacking - bytes of the pool that no shard has: the system refused them, or a process was
 * killed while one lent them to another. */
uint64_t shards_lacking(const struct shards *s);
uint64_t shards_counter(const struct shards *s, enum engine_counter c);
void shards_memory(const struct shards *s, struct engine_memory *out);
bool shards_link_info(const struct shards *s, unsigned int peer, struct link_info *out);
const char *shards_check(struct shards *s);

#endif
