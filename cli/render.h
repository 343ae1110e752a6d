/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Objects to text or JSON: one interface, several formats.
 */
#ifndef LONGHAUL_CLI_RENDER_H
#define LONGHAUL_CLI_RENDER_H

#include <jansson.h>
#include <stdio.h>

#include "cli/object.h"

enum render_mode {
	RENDER_TABLE,	/* aligned columns, one row per object */
	RENDER_DETAILS, /* every member, several lines per object */
	RENDER_JSON,	/* an array, one object per line */
	RENDER_PRETTY,	/* an array, indented */
};

struct render;

/** render_begin - write objects of kind @o to @f. NULL when memory is short. */
struct render *render_begin(const struct object *o, enum render_mode mode, FILE *f);

/**
 * render_layout - set, before the first object, how wide a table may be (0: any), and the columns:
 * @chosen, ended by a NULL, which must outlive @r; NULL: those of the object.
 */
void render_layout(struct render *r, int fit, const struct column *const *chosen);

/** render_add - write one object. The caller keeps the reference. */
void render_add(struct render *r, json_t *object);

/** render_end - write the rest and free @r. 0, or -1 when @f had an error. */
int render_end(struct render *r);

#endif
