/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of unasked.c share; the theory is there. */
#ifndef LONGHAUL_ENGINE_UNASKED_H
#define LONGHAUL_ENGINE_UNASKED_H

#include "engine/answers.h"

#define US	       1000ull
/* What is too long between two READs of a stream. */
#define GAP_MAX_NS     NSEC_PER_SEC
#define MARGIN_NS      (2 * NSEC_PER_MSEC)
/* Records that are kept of READs that are done. */
#define KEPT	       (UNASKED_RING / 2)
/* So far behind nobody repeats what is no READ. */
#define SEGMENTS_TRAIL (1u << 18)

enum phase {
	PHASE_PASS,
	PHASE_STALL,
	PHASE_MEASURE,
	PHASE_GO,
};

enum unasked_state {
	READ_ASKED, /* by the host, and went to the responder, by whomever */
	READ_HELD,  /* by the host, and waits here (STALL) */
	READ_EARLY, /* not yet; its answer passes */
	READ_VOID,  /* not yet; its answer must not pass */
	READ_GONE,  /* and never will be */
};

/**
 * struct unasked - one READ, in the order of wire PSNs (in lane_reads.fetches)
 * @asked: when it went to the responder
 * @next:  wire PSN of the answer packet to come
 * @seq:   counts the READs of the lane
 * @told:  to the predictor
 * @again: it went to the responder twice, so that nobody knows which answer the host took
 * @stale: READ_EARLY: the host has thrown the answer away; it may be asked for once more
 */
struct unasked {
	struct read_range what;
	uint64_t asked;
	uint32_t wire, host, span, next, seq, epoch;
	uint8_t state;
	bool guessed, told, stale, again;
};
_Static_assert(sizeof(struct unasked) <= sizeof(struct fetch), "they share a pool");

static inline struct unasked *unasked_at(struct engine *e, uint32_t id)
{
	return id == MQ_NONE ? NULL : mq_ptr(e->reads, id);
}

static inline bool unasked_unmet(const struct unasked *r)
{
	return r->state == READ_EARLY || r->state == READ_VOID;
}

static inline uint32_t unasked_end(const struct unasked *r)
{
	return psn_add(r->host, r->span);
}

static inline uint64_t unasked_round_trip(const struct lane *l)
{
	return l->rtt.srtt_us * US;
}

/* No request that was on its way when something left is later than that, unless the WAN has become
 * longer by half. */
static inline uint64_t unasked_limit_ns(const struct lane *l)
{
	return (l->rtt.srtt_us + l->rtt.srtt_us / 2 + 4ull * l->rtt.rttvar_us) * US + MARGIN_NS;
}

static inline void unasked_arm(struct engine *e, struct flow *fl, uint64_t when)
{
	wheel_arm(e->wheel, TIMER_ID(flow_index(e, fl), TIMER_LOSS), when);
}

/* unasked_answer.c */
const struct rule *unasked_rule(const struct engine *e, const struct flow *fl);
void unasked_marks(struct engine *e, struct flow *fl);
bool unasked_differ(const struct lane_reads *x, const struct lane *l);
bool unasked_to_host(const struct lane_reads *x, uint32_t wire, uint32_t *psn, uint32_t *msn_shift);
void unasked_pass(struct engine *e, enum engine_port from, const struct frame *f, uint32_t psn,
		  uint32_t msn);
void unasked_fail(struct engine *e, struct flow *fl, const struct frame *f);
struct unasked *unasked_by_wire(struct engine *e, struct lane_reads *x, uint32_t psn);

/* unasked_ask.c */
void unasked_stop(struct lane_reads *x);
void unasked_forget(struct engine *e, struct lane_reads *x);
bool unasked_pattern(struct engine *e, struct flow *fl);
void unasked_void(struct engine *e, struct lane_reads *x);
void unasked_stale(struct engine *e, struct lane_reads *x);
void unasked_ask(struct engine *e, struct flow *fl, struct unasked *r);
struct unasked *unasked_append(struct engine *e, struct flow *fl, const struct read_range *what,
			       uint32_t span, enum unasked_state state);
void unasked_run(struct engine *e, struct flow *fl);
void unasked_measure(struct engine *e, struct flow *fl, uint32_t seq);
void unasked_release(struct engine *e, struct flow *fl);
bool unasked_stall(struct engine *e, struct flow *fl);
uint64_t unasked_stall_ns(const struct lane_reads *x);
void unasked_gap(struct engine *e, struct lane_reads *x);

#endif
