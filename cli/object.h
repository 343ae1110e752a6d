/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The objects that longhaul shows, and the format of each of their members in tables. Members that
 * are not listed here still appear in details and in JSON.
 */
#ifndef LONGHAUL_CLI_OBJECT_H
#define LONGHAUL_CLI_OBJECT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum column_format {
	COL_TEXT,
	COL_NUMBER,
	COL_HEX,   /* QPN, PSN */
	COL_BYTES, /* with K, M, G */
	COL_MS,	   /* milliseconds */
	COL_US,	   /* microseconds */
	COL_RATE,  /* bit/s, with k, M, G of 1000 */
	COL_PPM,   /* a share in millionths, as a percentage */
};

enum column_place {
	COL_TABLE,   /* always a column of the table */
	COL_PRESENT, /* a column if some row has a value */
	COL_DETAIL,  /* in details only */
};

/** struct column - @key: member of the object; @head: the table's heading. */
struct column {
	const char *key, *head;
	enum column_format format;
	enum column_place place;
};

/**
 * struct object
 * @name:    as on the command line
 * @help:    one line
 * @columns: ended by one without a key
 * @flat:    rows are small: details show a table with all rows
 * @idle:    member: the table leaves out rows in which it is 0; NULL: shows all
 * @rates:   the table has rates: it takes two looks
 */
struct object {
	const char *name, *help;
	const struct column *columns;
	bool flat;
	const char *idle;
	bool rates;
};

extern const struct object objects[];

/** object_find - the object called @name in full, NULL when there is none. */
const struct object *object_find(const char *name);

/** column_find - the column of @o for member @key, NULL when none is listed. */
const struct column *column_find(const struct object *o, const char *key);

#define COLUMN_TEXT 512
/** column_text - @v formatted for people (@buf of COLUMN_TEXT bytes); "-" when there is no value.
 */
const char *column_text(const struct column *c, const json_t *v, char *buf);

#endif
