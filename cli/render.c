// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/render.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 64
#define GAP	    2  /* blanks between two columns */
#define LAST_WELL   60 /* of the last text, while there are columns that matter less */
#define LAST_LEAST  12

/** struct layout - the columns of a table, and how wide each is. */
struct layout {
	const struct column *column[COLUMNS_MAX];
	int width[COLUMNS_MAX], n;
};

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
	bool all; /* also idle rows */
	int fit;  /* columns of the terminal, 0: no limit */
	const struct column *const *chosen;
	size_t count; /* objects so far */
	json_t *rows; /* the table needs all rows to compute its widths */
};

/* Text comes from the daemon: it must not control the terminal. */
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

/* The first @w columns of @text, the last of them a mark that there is more. */
static void cut(char *text, int w)
{
	int n = 0;

	for (; *text; text++) {
		if ((*text & 0xc0) == 0x80)
			continue;
		if (++n == w) {
			strcpy(text, "+");
			return;
		}
	}
}

/* The heading of @c: its own, or the member's name. */
static const char *head_of(const struct column *c, char *buf)
{
	snprintf(buf, COLUMN_TEXT, "%s", c->head ? c->head : c->key);
	for (char *p = buf; !c->head && *p; p++)
		*p = (char)toupper((unsigned char)*p);
	return buf;
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

/* Width of column @c over all rows, 0 if it is not shown. */
static int column_width(const struct render *r, const struct column *c)
{
	bool present = c->place == COL_TABLE || r->chosen;
	char buf[COLUMN_TEXT];
	int w = width(head_of(c, buf));
	json_t *row;
	size_t i;

	if (c->place == COL_DETAIL && !r->chosen)
		return 0;
	json_array_foreach (r->rows, i, row) {
		const json_t *v = json_object_get(row, c->key);
		int n = width(column_text(c, v, buf));

		present |= v && !json_is_null(v);
		w = n > w ? n : w;
	}
	return present ? w : 0;
}

/* One cell: text left-aligned, numbers right-aligned; no padding after the last column. */
static void put_cell(const struct render *r, const struct column *c, char *text, int w, bool first,
		     bool last)
{
	int fill = w - width(text);

	if (!first)
		fputs("  ", r->f);
	if (fill < 0)
		cut(text, w);
	if (c->format != COL_TEXT)
		pad(r->f, fill);
	put_text(r->f, text);
	if (c->format == COL_TEXT && !last)
		pad(r->f, fill);
}

static void table_row(const struct render *r, const struct layout *l, json_t *row)
{
	char buf[COLUMN_TEXT], text[COLUMN_TEXT];

	for (int i = 0; i < l->n; i++) {
		const struct column *c = l->column[i];

		snprintf(text, sizeof(text), "%s",
			 row ? column_text(c, json_object_get(row, c->key), buf) : head_of(c, buf));
		put_cell(r, c, text, l->width[i], !i, i == l->n - 1);
	}
	putc('\n', r->f);
}

static int total(const struct layout *l)
{
	int sum = -GAP;

	for (int i = 0; i < l->n; i++)
		sum += l->width[i] + GAP;
	return sum;
}

static void leave_out(struct layout *l, int i)
{
	l->n--;
	memmove(&l->column[i], &l->column[i + 1], (l->n - i) * sizeof(*l->column));
	memmove(&l->width[i], &l->width[i + 1], (l->n - i) * sizeof(*l->width));
}

/* Shorten the last text to @least at least, as far as that is needed. */
static void shorten(const struct render *r, struct layout *l, int least)
{
	int last = l->n - 1, over = total(l) - r->fit;

	if (over <= 0 || last < 0 || l->column[last]->format != COL_TEXT)
		return;
	least = l->width[last] < least ? l->width[last] : least;
	l->width[last] = l->width[last] - over > least ? l->width[last] - over : least;
}

/* Fit the table into @r->fit columns. First shorten the last text to what can well be read; then
 * leave out what matters less; then shorten it more, and leave out the last columns. None are left
 * out that were chosen. */
static void fit(const struct render *r, struct layout *l)
{
	/* in this order; names, addresses, numbers, states and rates last */
	static const char *const first[] = {
		"port",	       "node",	      "rx-reports",    "tx-reports", "since-ms",
		"role",	       "epsn",	      "frontier",      "una",	     "transit-bytes",
		"rule",	       "peer",	      "driver",	       "memory",     "queues",
		"pseudo-acks", "retransmits", "srtt-us",       "resent-ppm", "custody-oldest-ms",
		"rtt-us",      "gain",	      "custody-bytes",
	};
	int last, over;

	shorten(r, l, LAST_WELL);
	for (size_t k = 0; k < sizeof(first) / sizeof(first[0]) && !r->chosen; k++)
		for (int i = l->n - 1; i > 0 && total(l) > r->fit; i--)
			if (!strcmp(l->column[i]->key, first[k]))
				leave_out(l, i);
	shorten(r, l, LAST_LEAST);
	while (l->n > 1 && total(l) > r->fit && !r->chosen)
		leave_out(l, l->n - 1);
	/* give the remaining room to the last text */
	last = l->n - 1;
	if (last >= 0 && l->column[last]->format == COL_TEXT) {
		over = column_width(r, l->column[last]);
		l->width[last] += r->fit - total(l);
		if (l->width[last] > over)
			l->width[last] = over;
		if (l->width[last] < 1)
			l->width[last] = 1;
	}
}

static void table_end(struct render *r)
{
	struct layout l = {.n = 0};
	json_t *row;
	size_t i;

	for (int c = 0; c < COLUMNS_MAX; c++) {
		const struct column *col = r->chosen ? r->chosen[c] : &r->object->columns[c];

		if (!col || !col->key)
			break;
		l.column[l.n] = col;
		l.width[l.n] = column_width(r, col);
		l.n += l.width[l.n] > 0;
	}
	if (r->fit)
		fit(r, &l);
	table_row(r, &l, NULL);
	json_array_foreach (r->rows, i, row)
		table_row(r, &l, row);
}

static const struct writer table_writer = {table_add, table_end};

/* The name of a member, without its unit if the value is shown with one. A filter accepts that as
 * an abbreviation. */
static const char *label_of(const struct render *r, const char *key, char *buf)
{
	const struct column *c = column_find(r->object, key);
	size_t len = strlen(key);

	if (c && (c->format == COL_MS || c->format == COL_US) && len > 3 && key[len - 3] == '-')
		len -= 3;
	snprintf(buf, COLUMN_TEXT, "%.*s", (int)len, key);
	return buf;
}

static void details_add(struct render *r, json_t *object)
{
	char buf[COLUMN_TEXT];
	const char *key;
	int w = 0;
	json_t *v;

	if (r->count)
		putc('\n', r->f);
	json_object_foreach (object, key, v) {
		int n = width(label_of(r, key, buf));

		w = n > w ? n : w;
	}
	json_object_foreach (object, key, v) {
		put_text(r->f, label_of(r, key, buf));
		pad(r->f, w - width(buf) + 2);
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

void render_layout(struct render *r, int fit, const struct column *const *chosen)
{
	r->fit = fit;
	r->chosen = chosen;
	if (chosen && r->writer == &table_writer)
		r->all = true;
}

/* The chosen members of @object (a new reference); absent ones are null. */
static json_t *chosen_of(const struct render *r, json_t *object)
{
	json_t *some = json_object();

	for (int i = 0; r->chosen[i]; i++) {
		json_t *v = json_object_get(object, r->chosen[i]->key);

		json_object_set_new(some, r->chosen[i]->key, v ? json_incref(v) : json_null());
	}
	return some;
}

void render_add(struct render *r, json_t *object)
{
	json_t *some = r->chosen && r->writer != &table_writer ? chosen_of(r, object) : NULL;

	r->writer->add(r, some ? some : object);
	json_decref(some);
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
