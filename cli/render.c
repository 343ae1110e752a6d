// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/render.h"

#include <stdlib.h>
#include <string.h>

/* A back end: called for each object and at the end. */
struct writer {
	void (*add)(struct render *r, json_t *object);
	void (*end)(struct render *r);
};

struct render {
	const struct object *object;
	const struct writer *writer;
	size_t json_flags;
	FILE *f;
	bool all;     /* rows that say nothing too */
	size_t count; /* objects so far */
	json_t *rows; /* the table needs all of them to know its widths */
};

/* Text comes from the daemon; nothing in it may move a terminal's cursor. */
static void put_text(FILE *f, const char *text)
{
	for (; *text; text++)
		putc((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text, f);
}

/* Columns of a terminal that UTF-8 @text takes, about. */
static int width(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

static void pad(FILE *f, int n)
{
	while (n-- > 0)
		putc(' ', f);
}

static void table_add(struct render *r, json_t *object)
{
	const char *idle = r->object->idle;

	if (!r->all && idle && !json_integer_value(json_object_get(object, idle)))
		return;
	json_array_append(r->rows, object);
}

/* Width of column @c over all rows, 0 when it is not to be shown. */
static int column_width(const struct render *r, const struct column *c)
{
	char buf[COLUMN_TEXT];
	bool present = c->place == COL_TABLE;
	int w = c->head ? width(c->head) : 0;
	json_t *row;
	size_t i;

	if (c->place == COL_DETAIL)
		return 0;
	json_array_foreach (r->rows, i, row) {
		const json_t *v = json_object_get(row, c->key);
		int n = width(column_text(c, v, buf));

		present |= v && !json_is_null(v);
		w = n > w ? n : w;
	}
	return present ? w : 0;
}

/* One cell; text stands left, numbers right; nothing is padded behind the last column. */
static void put_cell(const struct render *r, const struct column *c, const char *text, int w,
		     bool first, bool last)
{
	int fill = w - width(text);

	if (!first)
		fputs("  ", r->f);
	if (c->format != COL_TEXT)
		pad(r->f, fill);
	put_text(r->f, text);
	if (c->format == COL_TEXT && !last)
		pad(r->f, fill);
}

static void table_row(const struct render *r, const int *w, int last, json_t *row)
{
	const struct column *c = r->object->columns;
	char buf[COLUMN_TEXT];
	bool first = true;

	for (int i = 0; c[i].key; i++) {
		if (!w[i])
			continue;
		put_cell(r, &c[i],
			 row ? column_text(&c[i], json_object_get(row, c[i].key), buf) : c[i].head,
			 w[i], first, i == last);
		first = false;
	}
	putc('\n', r->f);
}

#define COLUMNS_MAX 64

static void table_end(struct render *r)
{
	int w[COLUMNS_MAX] = {0}, last = 0;
	json_t *row;
	size_t i;

	for (int c = 0; r->object->columns[c].key && c < COLUMNS_MAX; c++) {
		w[c] = column_width(r, &r->object->columns[c]);
		if (w[c])
			last = c;
	}
	table_row(r, w, last, NULL);
	json_array_foreach (r->rows, i, row)
		table_row(r, w, last, row);
}

static const struct writer table_writer = {table_add, table_end};

static void details_add(struct render *r, json_t *object)
{
	char buf[COLUMN_TEXT];
	const char *key;
	int w = 0;
	json_t *v;

	if (r->count)
		putc('\n', r->f);
	json_object_foreach (object, key, v)
		w = width(key) > w ? width(key) : w;
	json_object_foreach (object, key, v) {
		put_text(r->f, key);
		pad(r->f, w - width(key) + 2);
		put_text(r->f, column_text(column_find(r->object, key), v, buf));
		putc('\n', r->f);
	}
}

static void details_end(struct render *r)
{
	(void)r;
}

static const struct writer details_writer = {details_add, details_end};

static void json_add(struct render *r, json_t *object)
{
	fputs(r->count ? ",\n" : "[\n", r->f);
	json_dumpf(object, r->f, r->json_flags);
}

static void json_end(struct render *r)
{
	fputs(r->count ? "\n]\n" : "[]\n", r->f);
}

static const struct writer json_writer = {json_add, json_end};

struct render *render_begin(const struct object *o, enum render_mode mode, FILE *f)
{
	struct render *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->object = o;
	r->f = f;
	r->rows = json_array();
	r->writer = mode == RENDER_JSON || mode == RENDER_PRETTY ? &json_writer
		    : mode == RENDER_DETAILS && !o->flat	 ? &details_writer
								 : &table_writer;
	r->all = mode == RENDER_DETAILS;
	r->json_flags = mode == RENDER_PRETTY ? JSON_INDENT(2) : JSON_COMPACT;
	return r;
}

void render_add(struct render *r, json_t *object)
{
	r->writer->add(r, object);
	r->count++;
}

int render_end(struct render *r)
{
	int rc;

	r->writer->end(r);
	rc = fflush(r->f) || ferror(r->f) ? -1 : 0;
	json_decref(r->rows);
	free(r);
	return rc;
}
