/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rates of what the daemon only counts: the growth from one look to the next.
 */
#ifndef LONGHAUL_CLI_RATES_H
#define LONGHAUL_CLI_RATES_H

#include <jansson.h>

#include "cli/object.h"

/** struct rates - the previous look at objects of @object. Zero but for that to begin with. */
struct rates {
	const struct object *object;
	json_t *before, *now; /* objects by what names them */
	double at, interval;  /* seconds */
};

/** rates_begin - a look at time @now (seconds of any clock that does not go back). */
void rates_begin(struct rates *r, double now);

/** rates_add - remember @o; add members for its rates when it was there at the previous look. */
void rates_add(struct rates *r, json_t *o);

/** rates_end - forget everything. */
void rates_end(struct rates *r);

#endif
