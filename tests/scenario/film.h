/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Films: all frames of a world as captures at the four places of a real run would have them, to be
 * altered and written as such.
 */
#ifndef SCENARIO_FILM_H
#define SCENARIO_FILM_H

#include "tests/lab/check/check.h"
#include "tests/scenario/scenario.h"

struct shot {
	uint64_t t;
	uint32_t len;
	uint8_t *data;
};

struct film {
	struct shot *shot;
	uint32_t n, cap;
};

struct recorded {
	struct film film[PLACES];
};

/* What kind of world to film; 0: what is usual. */
struct film_kind {
	const char *name;
	uint32_t ops;
	uint32_t qps, mtu, max, messages;
	double loss, reorder, dup, corrupt, lan_loss, rnr;
	enum ack_policy policy;
	uint32_t psn;
	bool both_ways, single, permissive, no_custody, bare, unchecked;
	int side; /* whose requests, unless both_ways */
	uint64_t pool;
};

static inline int lan_of(int side)
{
	return side ? PLACE_LAN_B : PLACE_LAN_A;
}

static inline int wan_of(int side)
{
	return side ? PLACE_WAN_B : PLACE_WAN_A;
}

/* What a frame is, for film_find(). */
enum shot_kind {
	DATA,	/* a SEND or WRITE */
	MIDDLE, /* of a WRITE */
	READ,	/* a READ request */
	ACK,
	ANSWER, /* the middle of a READ's answer */
};

#define KEEP_IT 0xffffffffu

/** film_world - run a world of kind @k to its end, in which all must go well, and film it. */
void film_world(const struct film_kind *k, uint64_t seed, struct recorded *r);
void film_free(struct recorded *r);
void film_write(const struct film *f, const char *to);

void film_insert(struct film *f, uint32_t at, uint64_t t, const uint8_t *data, uint32_t len);
void film_cut(struct film *f, uint32_t at);

/** film_find - the first such frame from @from on; there must be one. */
uint32_t film_find(const struct film *f, uint32_t from, enum shot_kind what);

struct frame shot_view(const struct shot *x);

/** shot_renumber - other numbers (or KEEP_IT), and a right ICRC. */
void shot_renumber(struct shot *x, uint32_t psn, uint32_t msn, uint32_t syndrome);

/** shot_alter - another byte of payload, and a right ICRC. */
void shot_alter(struct shot *x);

#endif
