// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/command.h"
#include "cli/filter.h"
#include "cli/rates.h"

#define CHOSEN_MAX 32
#define RATES_S	   0.25 /* between the two looks that rates take */

struct show {
	struct filter filter;
	struct render *render;
	struct rates *rates;
	const struct column *chosen[CHOSEN_MAX + 1];
	size_t matched;
};

static void take(void *ctx, json_t *object)
{
	struct show *s = ctx;

	if (s->rates)
		rates_add(s->rates, object);
	if (!filter_match(&s->filter, object))
		return;
	s->matched++;
	render_add(s->render, object);
}

bool cli_sleep(double seconds)
{
	struct timespec t = {.tv_sec = (time_t)seconds,
			     .tv_nsec = (long)((seconds - floor(seconds)) * 1e9)};

	return !nanosleep(&t, NULL);
}

static double clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Width of the terminal that the output goes to, or COLUMNS; 0: no terminal. */
static int terminal_width(void)
{
	const char *set = getenv("COLUMNS");
	struct winsize size;
	int n = set ? atoi(set) : 0;

	if (n > 0)
		return n;
	return isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) ? size.ws_col : 0;
}

/* Whether the table is to have rates, though it is asked for once. */
static bool wants_rates(const struct command *cmd, const struct options *opt, const struct show *s)
{
	bool any = !s->chosen[0];

	for (int i = 0; s->chosen[i]; i++)
		any |= strstr(s->chosen[i]->key, "rate") || !strcmp(s->chosen[i]->key, "gain");
	return cmd->object->rates && opt->mode == RENDER_TABLE && any;
}

static void count_only(void *ctx, json_t *object)
{
	rates_add(ctx, object);
}

/* The first of the two looks. */
static int look_before(const struct command *cmd, const struct options *opt, struct rates *r,
		       char *err, size_t errlen)
{
	char request[64];

	snprintf(request, sizeof(request), "%s-%s", cmd->object->name, cmd->verb);
	rates_begin(r, clock_now());
	if (client_request(opt->socket, request, count_only, r, err, errlen))
		return -1;
	cli_sleep(RATES_S);
	return 0;
}

/* One query: the formatted answer, which the caller frees; NULL with @err. */
static char *look(const struct command *cmd, const struct options *opt, struct show *s, size_t *len,
		  char *err, size_t errlen)
{
	char request[64], *text = NULL;
	FILE *f = open_memstream(&text, len);
	int rc;

	s->matched = 0;
	s->render = f ? render_begin(cmd->object, opt->mode, f) : NULL;
	if (!s->render) {
		snprintf(err, errlen, "out of memory");
		return NULL;
	}
	render_layout(s->render, terminal_width(), s->chosen[0] ? s->chosen : NULL);
	if (s->rates)
		rates_begin(s->rates, clock_now());
	snprintf(request, sizeof(request), "%s-%s", cmd->object->name, cmd->verb);
	rc = client_request(opt->socket, request, take, s, err, errlen);
	if (render_end(s->render) && !rc) {
		rc = -1;
		snprintf(err, errlen, "out of memory");
	}
	fclose(f);
	/* an empty table is right only if the filter's value is possible */
	if (!rc && !s->matched)
		rc = filter_known(cmd->object, &s->filter, opt->socket, err, errlen);
	if (!rc)
		return text;
	free(text);
	return NULL;
}

static int put(const char *text, size_t len, bool clear)
{
	if (clear)
		fputs("\033[H\033[J", stdout);
	if (fwrite(text, 1, len, stdout) == len && !fflush(stdout))
		return 0;
	return cli_error("cannot write the answer: %m");
}

int run_show(const struct command *cmd, const struct options *opt, int argc, char **argv)
{
	/* Each answer is written only when it is complete: a part must not look like all of it. */
	struct rates rates = {.object = cmd->object};
	struct show s = {.rates = opt->watch > 0 ? &rates : NULL};
	bool terminal = opt->watch > 0 && isatty(STDOUT_FILENO);
	char err[1024] = "", *text;
	size_t len;
	int rc = 0;

	if (filter_parse(cmd->object, argc, argv, &s.filter, err, sizeof(err)) ||
	    filter_columns(cmd->object, opt->columns, s.chosen, CHOSEN_MAX, err, sizeof(err)))
		return cli_error("%s", err);
	if (wants_rates(cmd, opt, &s)) {
		s.rates = &rates;
		if (look_before(cmd, opt, &rates, err, sizeof(err)))
			rc = cli_error("%s", err);
	}
	for (long n = 1; !rc; n++) {
		text = look(cmd, opt, &s, &len, err, sizeof(err));
		rc = text ? put(text, len, terminal) : cli_error("%s", err);
		free(text);
		if (opt->watch <= 0 || (opt->count && n >= opt->count) || !cli_sleep(opt->watch))
			break;
		if (!terminal && opt->mode == RENDER_TABLE && !rc)
			putchar('\n');
	}
	rates_end(&rates);
	return rc;
}
