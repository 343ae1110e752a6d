/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of the order between queue pairs share; order.c has the theory. */
#ifndef LONGHAUL_ENGINE_LINK_ORDER_PRIV_H
#define LONGHAUL_ENGINE_LINK_ORDER_PRIV_H

#include "engine/link/order.h"

/* Logs of one appliance. Pairs of hosts that share one are kept in order among each other, too. */
#define ORDER_LOGS    (SLICES << LOG_SLICE)
/* Records of all logs. */
#define ORDER_RECORDS 32768u
#define LOG_NONE      0xffffffffu

/**
 * struct order_lane - what order adds to a lane; stands beside it, for few lanes need it.
 * @want, @grant: OPENER, SINGLE: up to where the host could be told, and may be
 * @log:     index of its log
 * @birth:   names the lane through all that is agreed about it anew
 * @logged:  what was accepted before it is cleared by a record
 * @waited:  a record waits for the delivery of all before it
 * @wait_seq: number of the latest such record
 * @cleared: OPENER: the peer has carried out the records that clear all before it
 * @clear:   ACCEPTOR, SINGLE: before this no barrier stands
 * @next, @prev: OPENER, SINGLE: lanes of the log. ACCEPTOR: @next in the chain of @heads
 * @next_fresh: lanes that the next barrier must look at
 */
struct order_lane {
	struct host_mark want, grant;
	uint32_t log, birth;
	struct wire_psn logged, waited, cleared, clear;
	uint32_t wait_seq;
	uint32_t next, prev, next_fresh;
	bool fresh, resuming;
	uint32_t noted; /* number of the batch that it was noted in (lane_at()) */
};

/**
 * struct order_log - barriers of a pair of hosts: at the source, or as far as they have come.
 * @gen:     a log that begins anew gets another one
 * @base:    number of the first record in @records, the oldest that is not carried out
 * @have:    source: the peer has all before this; @have_id: element there
 * @send_id: source: the next to be sent, @send its number
 * @waits:   records in it that wait for a delivery
 * @step_us: how long the far host takes to acknowledge: closer barriers would add up
 * @alone:   the only lane of the latest barrier
 * @sent:    source: since when the peer may have answered for @have. Else: the latest answer
 * @again:   source: when all that the peer does not have was sent again
 * @quiet:   requests that no lane holds pass: until then the hosts are told only what is true
 */
struct order_log {
	int8_t peer;
	bool listed, known, broken, answer, gap;
	uint8_t backoff;
	uint32_t members, nmembers, fresh, nfresh, resuming;
	uint32_t gen, base, n, have, send, have_id, send_id;
	uint32_t waits, step_us, alone, next_due;
	struct mq_list records;
	uint64_t closed, sent, again, quiet;
	struct rtt rtt;
	uint32_t probe;
	uint32_t noted; /* number of the batch that it was noted in (log_ref()) */
	uint64_t probe_at;
};

struct order {
	struct order_lane *lanes; /* by flow */
	struct order_log *logs;	  /* our own, then ORDER_LOGS of each peer */
	uint32_t *heads;	  /* ACCEPTOR lanes by peer and the opener's number */
	struct mqueue *records;	  /* struct order_rec */
	struct {
		int64_t lanes, logs, heads, records;
	} at; /* of them, from here */
	uint32_t due;
	uint32_t noted;
};

/** order_change - @due is about to change. */
static inline void order_change(struct engine *e)
{
	undo_once(e->undo, &e->order->noted, &e->order->due, 2 * sizeof(uint32_t));
}

/** lane_at - what order knows of flow @i, to be changed. */
static inline struct order_lane *lane_at(const struct engine *e, uint32_t i)
{
	struct order_lane *o = &e->order->lanes[i];

	undo_once(e->undo, &o->noted, o, sizeof(*o));
	return o;
}

static inline struct order_lane *order_lane(const struct engine *e, const struct flow *fl)
{
	return lane_at(e, (uint32_t)(fl - e->flows));
}

/** log_ref - log @i, to be changed. */
static inline struct order_log *log_ref(const struct engine *e, uint32_t i)
{
	struct order_log *g = &e->order->logs[i];

	undo_once(e->undo, &g->noted, g, sizeof(*g));
	return g;
}

/** log_record - the record that is element @id, NULL where that is MQ_NONE. */
static inline struct order_rec *log_record(const struct engine *e, uint32_t id)
{
	return id == MQ_NONE ? NULL : mq_ptr(e->order->records, id);
}

static inline bool log_is_own(const struct engine *e, const struct order_log *g)
{
	return g < e->order->logs + ORDER_LOGS;
}

/* ---- order.c ---- */

/** order_log_of - the log of the two hosts of @k, in this direction. */
struct order_log *order_log_of(const struct engine *e, const struct flow_key *k);
/** order_due, order_due_at - the tick has to look at it, now or later. */
void order_due(struct engine *e, struct order_log *g);
void order_due_at(struct engine *e, struct order_log *g, uint64_t when);
/** order_log_resume - all that is not carried out is sent again, as another generation. */
void order_log_resume(struct engine *e, struct order_log *g);
/** order_log_broken - what a record waits for is lost, and with it all that stands behind. */
void order_log_broken(struct engine *e, struct order_log *g);

/* ---- order_barrier.c ---- */

/** order_barrier_at - not before this there may be another barrier. */
uint64_t order_barrier_at(const struct order_log *g);
/** order_barrier - a barrier, of the lanes that have news since the one before: at most @most of
 * them, those that wait longest. There must be room for two records of each. */
void order_barrier(struct engine *e, struct order_log *g, uint32_t most);

/* ---- order_tx.c ---- */

/** order_rx_answer - the peer tells what it has of our log, and what it has carried out. */
void order_rx_answer(struct engine *e, unsigned int peer, const struct report *r);

/* ---- order_rx.c ---- */

/** order_peer_waits - whether a barrier of the hosts of @fl, which the peer @peer has told of,
 * waits for a delivery on a lane here. A peer that is down cannot end it, and is not obeyed. */
bool order_peer_waits(struct engine *e, const struct flow *fl, unsigned int peer);
/** order_run - carry out what can be. */
void order_run(struct engine *e, struct order_log *g);
/** order_answer - tell the source; returns when to ask again. */
uint64_t order_answer(struct engine *e, struct order_log *g);

#endif
