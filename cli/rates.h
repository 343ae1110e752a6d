/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rates of the daemon's counters: the growth between two queries.
 */
#ifndef LONGHAUL_CLI_RATES_H
#define LONGHAUL_CLI_RATES_H

#include <jansson.h>

#include "cli/object.h"

/** struct rates - the previous query of objects of @object. All else zero at first. */
struct rates {
	const struct object *object;
	json_t *before, *now; /* objects by their identity */
	double at, interval;  /* seconds */
};

/** rates_begin - begin a query at time @now (seconds of a clock that never goes back). */
void rates_begin(struct rates *r, double now);

/** rates_add - keep @o; add members for its rates if the previous query had it. */
void rates_add(struct rates *r, json_t *o);

/** rates_end - forget everything. */
void rates_end(struct rates *r);

#endif
