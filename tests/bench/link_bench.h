/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the parts of bench_link share: link_share.c has links whose rate nobody has said or that
 * others use, link_single.c the same for one appliance alone, link_policy.c compares policies with
 * no appliance, link_ring.c all-reduce with and without, link_lanes.c has lanes that begin, small
 * packets, tails, and many lanes at once.
 */
#ifndef BENCH_LINK_BENCH_H
#define BENCH_LINK_BENCH_H

#include <string.h>

#include "tests/bench/bench_qp.h"
#include "tests/scenario/world.h"
#include "tests/scenario/world_priv.h"

/**
 * struct options
 * @only:    part of the name of the cells to be measured, NULL: all
 * @seconds: how long the cells of link_share.c are measured
 * @quick:   fewer seeds and shorter times
 * @unpaced: the cells of link_share.c also with appliances that have no limit at all
 * @ours:    nothing bare
 * @given_rate: the cells of link_lanes.c have the right wan-rate, not `auto`
 */
struct options {
	const char *only;
	double seconds;
	bool quick, unpaced, verbose, given_rate, ours;
};

/** struct last - the last line; NAN: not measured. */
struct last {
	int deaths;
	double unset, unset_short, twice, bytes, cross5, cubic_jain, pairs_jain, step_rtts, slices;
	double cm_ms, psn_ms, small, lan25, lan100, tail3, tail2, ping_ms, policy, ring;
	double burst, field, far3, far2, far_burst, far_field;
};

/** wanted - whether the cell @name shall be measured. */
static inline bool wanted(const struct options *o, const char *name)
{
	return !o->only || strstr(name, o->only);
}

/** link_qp - one that only counts what arrives. */
static inline struct rc_qp_config link_qp(void)
{
	struct rc_qp_config qc = bench_qp(4096);

	qc.depth = 128;
	qc.no_verify = qc.no_land = true;
	qc.shadow = false;
	return qc;
}

void link_share(const struct options *o, struct last *out);
void link_policy(const struct options *o, struct last *out);
void link_ring(const struct options *o, struct last *out);
void link_single(const struct options *o, struct last *out);
void link_lanes(const struct options *o, struct last *out);

#endif
