// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * longhaul top: queue pairs on a terminal, the busiest first, with the rates since the previous
 * query. Each query costs the daemon as much as `qp show`. Keys are in the bottom line.
 */
#include <ctype.h>
#include <curses.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/command.h"
#include "cli/filter.h"
#include "cli/rates.h"

/* The columns, and the key that sorts by each; 0: none. */
static const struct top_column {
	const char *key;
	int width;
	char sort;
} columns[] = {
	{"lan-ip", -15, 'l'},
	{"lqpn", 8, 0},
	{"wan-ip", -15, 'w'},
	{"rqpn", 8, 0},
	{"state", -7, 't'},
	{"out-rate", 9, 'o'},
	{"in-rate", 9, 'i'},
	{"message-rate", 10, 'm'},
	{"gain", 6, 'g'},
	{"custody-bytes", 8, 'c'},
	{"custody-oldest-ms", 7, 'a'},
	{"retransmits", 11, 'r'},
	{"core", 4, 0},
	{"rule", -10, 0},
	{"note", -20, 0},
};
#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

struct top {
	const struct options *opt;
	const struct object *qp;
	struct filter filter;
	struct rates rates;
	json_t *rows;
	const char *sort;
	bool backwards;
	char word[64]; /* show only rows with this in some column */
	char err[256];
};

static double number(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return json_is_number(v) ? json_number_value(v) : -1;
}

static const struct top *sorting; /* qsort() has no context argument */

static int compare(const void *pa, const void *pb)
{
	const json_t *a = *(json_t *const *)pa, *b = *(json_t *const *)pb;
	const char *x = json_string_value(json_object_get(a, sorting->sort));
	const char *y = json_string_value(json_object_get(b, sorting->sort));
	double d = number(b, sorting->sort) - number(a, sorting->sort);
	int c = x && y ? strcmp(x, y) : d > 0 ? 1 : d < 0 ? -1 : 0;

	if (!c) /* equal rows must keep their order */
		c = number(a, "id") < number(b, "id") ? -1 : 1;
	return sorting->backwards ? -c : c;
}

static bool has_word(const struct top *t, const json_t *o)
{
	char buf[COLUMN_TEXT];

	if (!*t->word)
		return true;
	for (size_t i = 0; i < COLUMNS; i++)
		if (strstr(column_text(column_find(t->qp, columns[i].key),
				       json_object_get(o, columns[i].key), buf),
			   t->word))
			return true;
	return false;
}

static void take(void *ctx, json_t *o)
{
	struct top *t = ctx;

	rates_add(&t->rates, o);
	if (filter_match(&t->filter, o) && has_word(t, o))
		json_array_append(t->rows, o);
}

static void look(struct top *t)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	json_array_clear(t->rows);
	rates_begin(&t->rates, (double)now.tv_sec + (double)now.tv_nsec / 1e9);
	t->err[0] = '\0';
	client_request(t->opt->socket, "qp-show", take, t, t->err, sizeof(t->err));
}

static double sum(const struct top *t, const char *key)
{
	double all = 0;
	json_t *o;
	size_t i;

	json_array_foreach (t->rows, i, o)
		all += number(o, key) > 0 ? number(o, key) : 0;
	return all;
}

static void put_head(const struct top *t)
{
	const struct column *rate = column_find(t->qp, "out-rate");
	const struct column *bytes = column_find(t->qp, "custody-bytes");
	char out[COLUMN_TEXT], in[COLUMN_TEXT], custody[COLUMN_TEXT];
	json_t *v[] = {json_integer((json_int_t)sum(t, "out-rate")),
		       json_integer((json_int_t)sum(t, "in-rate")),
		       json_integer((json_int_t)sum(t, "custody-bytes"))};

	mvprintw(0, 0, "%zu queue pairs, out %sbit/s, in %sbit/s, custody %s%s%s",
		 json_array_size(t->rows), column_text(rate, v[0], out),
		 column_text(rate, v[1], in), column_text(bytes, v[2], custody),
		 *t->word ? ", filter " : "", t->word);
	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++)
		json_decref(v[i]);
	if (t->err[0])
		mvprintw(1, 0, "%s", t->err);
}

static void put_cell(int line, int *x, int width, const char *text)
{
	int w = abs(width);

	if (*x < COLS)
		mvprintw(line, *x, width < 0 ? "%-*.*s" : "%*.*s", w, w, text);
	*x += w + 1;
}

/* With one core no row has one. */
static bool shown(const char *key, json_t **row, size_t n)
{
	return strcmp(key, "core") != 0 || (n && json_is_integer(json_object_get(row[0], key)));
}

static void put_rows(const struct top *t, json_t **row, size_t n)
{
	char buf[COLUMN_TEXT];
	int x = 0;

	attron(A_REVERSE);
	for (size_t c = 0; c < COLUMNS; c++)
		if (shown(columns[c].key, row, n))
			put_cell(2, &x, columns[c].width, column_find(t->qp, columns[c].key)->head);
	attroff(A_REVERSE);
	for (size_t i = 0; i < n && (int)i < LINES - 4; i++) {
		x = 0;
		for (size_t c = 0; c < COLUMNS; c++) {
			const char *key = columns[c].key;

			if (shown(key, row, n))
				put_cell(3 + (int)i, &x, columns[c].width,
					 column_text(column_find(t->qp, key),
						     json_object_get(row[i], key), buf));
		}
	}
}

static void draw(struct top *t)
{
	size_t n = json_array_size(t->rows);
	json_t **row = calloc(n + 1, sizeof(*row));

	if (!row)
		return;
	for (size_t i = 0; i < n; i++)
		row[i] = json_array_get(t->rows, i);
	sorting = t;
	qsort(row, n, sizeof(*row), compare);
	erase();
	put_head(t);
	put_rows(t, row, n);
	mvprintw(LINES - 1, 0,
		 "q quit  / filter  R reverse  sort by: o out i in m messages g gain c custody "
		 "a age r retransmits l lan w wan t state   now %s",
		 t->sort);
	refresh();
	free(row);
}

static void ask_word(struct top *t)
{
	timeout(-1);
	echo();
	mvprintw(LINES - 1, 0, "show only rows with: ");
	clrtoeol();
	if (getnstr(t->word, sizeof(t->word) - 1) == ERR)
		t->word[0] = '\0';
	noecho();
}

/* Process a key: false to end. */
static bool key(struct top *t, int k)
{
	if (k == 'q' || k == 'Q')
		return false;
	if (k == '/')
		ask_word(t);
	if (k == 'R')
		t->backwards = !t->backwards;
	for (size_t i = 0; i < COLUMNS; i++)
		if (columns[i].sort && columns[i].sort == k)
			t->sort = columns[i].key;
	return true;
}

static void loop(struct top *t)
{
	bool on = true;

	for (long n = 1; on; n++) {
		struct timespec now, end;
		double wait = t->opt->watch > 0 ? t->opt->watch : 1;

		look(t);
		draw(t);
		if (t->opt->count && n >= t->opt->count)
			return;
		clock_gettime(CLOCK_MONOTONIC, &end);
		do {
			int k;

			clock_gettime(CLOCK_MONOTONIC, &now);
			wait -= (double)(now.tv_sec - end.tv_sec) +
				(double)(now.tv_nsec - end.tv_nsec) / 1e9;
			end = now;
			timeout(wait > 0 ? (int)(wait * 1000) : 0);
			k = getch();
			on = key(t, k);
			if (k != ERR)
				draw(t);
		} while (on && wait > 0);
	}
}

int run_top(const struct command *cmd, const struct options *opt, int argc, char **argv)
{
	struct top t = {.opt = opt, .qp = object_find("qp"), .sort = "out-rate"};
	char err[1024];
	SCREEN *screen;

	(void)cmd;
	t.rates.object = t.qp;
	if (filter_parse(t.qp, argc, argv, &t.filter, err, sizeof(err)))
		return cli_error("%s", err);
	if (client_request(opt->socket, "daemon-show", NULL, NULL, err, sizeof(err)))
		return cli_error("%s", err);
	if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
		return cli_error("top needs a terminal; write longhaul -w qp instead");
	screen = newterm(NULL, stdout, stdin);
	if (!screen)
		return cli_error("top cannot use this terminal; set TERM, or write longhaul -w qp");
	t.rows = json_array();
	cbreak();
	noecho();
	curs_set(0);
	loop(&t);
	endwin();
	delscreen(screen);
	json_decref(t.rows);
	rates_end(&t.rates);
	return t.err[0] ? cli_error("%s", t.err) : 0;
}
