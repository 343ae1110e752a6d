/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Faults that are planted into the films of a right world, and the rule that each breaks. */
#ifndef SCENARIO_PLANT_H
#define SCENARIO_PLANT_H

#include "tests/scenario/film.h"

/* The four films from the requester's side on. @near_mid, @far_mid: an index in the second half of
 * these. */
struct scene {
	struct film *near, *near_wan, *far_wan, *far;
	uint32_t near_mid, far_mid;
};

/** scene_of - the scene of the requests of host @side. */
struct scene scene_of(struct recorded *r, int side);

struct plant {
	const char *name;
	void (*fn)(struct scene *s);
	enum check_rule rule;
	bool near_only; /* found without the other captures too */
	bool prefetch;	/* found even where PSNs need not agree */
};

extern const struct plant plants[];
extern const unsigned int nplants;

#endif
