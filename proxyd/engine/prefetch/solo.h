/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of solo.c share; the theory is there. */
#ifndef LONGHAUL_ENGINE_PREFETCH_SOLO_H
#define LONGHAUL_ENGINE_PREFETCH_SOLO_H

#include "engine/prefetch/prefetch.h"

#define US	       1000ull
/* What is too long between two READs of a stream. */
#define GAP_MAX_NS     NSEC_PER_SEC
#define MARGIN_NS      (2 * NSEC_PER_MSEC)
/* Records that are kept of READs that are done. */
#define KEPT	       (SOLO_RING / 2)
/* No host repeats a request, other than a READ, that is so far behind. */
#define SEGMENTS_TRAIL (1u << 18)

enum phase {
	PHASE_PASS,
	PHASE_STALL,
	PHASE_MEASURE,
	PHASE_GO,
};

enum solo_state {
	READ_ASKED, /* by the host, and went to the responder, by whomever */
	READ_HELD,  /* by the host, and waits here (STALL) */
	READ_EARLY, /* not yet; its response passes */
	READ_VOID,  /* not yet; its response must not pass */
	READ_GONE,  /* and never will be */
};

/**
 * struct solo_read - one READ, in the order of wire PSNs (in lane_reads.fetches)
 * @asked: when it went to the responder
 * @next:  wire PSN of the response packet to come
 * @seq:   counts the READs of the lane
 * @told:  to the predictor
 * @again: it went to the responder twice, so it is not known which response the host took
 * @stale: READ_EARLY: the host has thrown the response away; it may be asked for once more
 */
struct solo_read {
	struct read_range what;
	uint64_t asked;
	struct wire_psn wire, next;
	struct host_psn host;
	uint32_t span, seq, epoch;
	uint8_t state;
	bool guessed, told, stale, again;
};
_Static_assert(sizeof(struct solo_read) <= sizeof(struct fetch), "they share a pool");

static inline bool solo_unmet(const struct solo_read *r)
{
	return r->state == READ_EARLY || r->state == READ_VOID;
}

static inline uint64_t solo_round_trip(const struct lane *l)
{
	return l->rtt.srtt_us * US;
}

/* How late a request that was on its way may be, unless the WAN has become longer by half. */
static inline uint64_t solo_limit_ns(const struct lane *l)
{
	return (l->rtt.srtt_us + l->rtt.srtt_us / 2 + 4ull * l->rtt.rttvar_us) * US + MARGIN_NS;
}

/* solo_resp.c */
const struct rule *solo_rule(const struct engine *e, const struct flow *fl);
void solo_marks(struct engine *e, struct flow *fl);
void solo_pass(struct engine *e, enum engine_port from, const struct frame *f, uint32_t psn,
	       uint32_t msn);
void solo_fail(struct engine *e, struct flow *fl, const struct frame *f);

/* solo_ask.c */
void solo_stop(struct lane_reads *x);
void solo_forget(struct engine *e, struct lane_reads *x);
bool solo_pattern(struct engine *e, struct flow *fl);
void solo_void(struct engine *e, struct lane_reads *x);
void solo_stale(struct engine *e, struct lane_reads *x);
void solo_ask(struct engine *e, struct flow *fl, struct solo_read *r);
struct solo_read *solo_append(struct engine *e, struct flow *fl, const struct read_range *what,
			      uint32_t span, enum solo_state state);
void solo_run(struct engine *e, struct flow *fl);
void solo_measure(struct engine *e, struct flow *fl, uint32_t seq);
void solo_release(struct engine *e, struct flow *fl);
bool solo_stall(struct engine *e, struct flow *fl);
uint64_t solo_stall_ns(const struct lane_reads *x);
void solo_gap(struct engine *e, struct lane_reads *x);

#endif
