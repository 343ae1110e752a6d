// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * longhaul status: one line of verdict, and for each alarm its reason and what to do. The exit
 * status is that of monitoring plugins: 0 OK, 1 warning, 2 critical, 3 unknown.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/command.h"
#include "cli/filter.h"

#define STATUS_UNKNOWN 3

static const char *text_of(const json_t *o, const char *key)
{
	const char *t = json_string_value(json_object_get(o, key));

	return t ? t : "";
}

static long long number_of(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

static bool raised(const json_t *alarm)
{
	return !strcmp(text_of(alarm, "state"), "raised");
}

/* The worst level of the raised alarms: 0, 1 or 2. */
static int verdict(const json_t *alarms)
{
	json_t *a;
	size_t i;
	int worst = 0;

	json_array_foreach (alarms, i, a) {
		int level = !raised(a) ? 0 : strcmp(text_of(a, "level"), "critical") ? 1 : 2;

		worst = level > worst ? level : worst;
	}
	return worst;
}

/* Whether a peer is missing, perhaps not yet for long enough for an alarm. */
static bool incomplete(const json_t *daemon)
{
	return number_of(daemon, "peers-up") < number_of(daemon, "peers");
}

/* @calm: no alarm is raised */
static void print_headline(int worst, bool calm, const json_t *daemon)
{
	static const char *const words[] = {"OK", "WARNING", "CRITICAL"};
	bool starts = worst == 1 && calm && !strcmp(text_of(daemon, "state"), "starting");

	long long conns = number_of(daemon, "connections"), rules = number_of(daemon, "rules");
	long long peers = number_of(daemon, "peers");

	printf("%s: longhauld is %s, %lld connection%s, %lld held, %lld of %lld peer%s up, %lld "
	       "rule%s\n",
	       starts ? "STARTING" : words[worst], text_of(daemon, "state"), conns,
	       conns == 1 ? "" : "s", number_of(daemon, "held"), number_of(daemon, "peers-up"),
	       peers, peers == 1 ? "" : "s", rules, rules == 1 ? "" : "s");
}

static void print_alarms(const struct object *o, const json_t *alarms, int level)
{
	static const char *const names[] = {"", "warning", "critical"};
	char since[COLUMN_TEXT], ended[COLUMN_TEXT];
	json_t *a;
	size_t i;

	json_array_foreach (alarms, i, a) {
		const json_t *end = json_object_get(a, "ended-ms");

		if (!raised(a) || strcmp(text_of(a, "level"), names[level]))
			continue;
		column_text(column_find(o, "since-ms"), json_object_get(a, "since-ms"), since);
		column_text(column_find(o, "ended-ms"), end, ended);
		printf("  %s %s, for %s%s%s%s: %s\n      mend: %s\n", names[level],
		       text_of(a, "name"), since, json_is_integer(end) ? ", ended " : "",
		       json_is_integer(end) ? ended : "", json_is_integer(end) ? " ago" : "",
		       text_of(a, "reason"), text_of(a, "mend"));
	}
}

/* Hints: no faults, but what could be better. */
static void print_hints(const json_t *daemon)
{
	const char *gain = text_of(daemon, "announce-would-gain"),
		   *own = text_of(daemon, "own-in-rules");

	if (*gain)
		printf("  hint: writes of storage connections (%s) take two round trips, and one "
		       "with announce = auto\n      in their rule; safe only if every path between "
		       "the hosts crosses both appliances, see longhaul.conf(5)\n",
		       gain);
	if (*own)
		printf("  hint: RDMA to and from addresses of this host is never taken, though a "
		       "rule covers them: %s\n",
		       own);
}

/* As data: every alarm that matches the filter. */
static int print_data(const struct command *cmd, const struct options *opt,
		      const struct filter *filter, json_t *alarms)
{
	struct render *r = render_begin(cmd->object, opt->mode, stdout);
	json_t *a;
	size_t i;

	if (!r)
		return -1;
	json_array_foreach (alarms, i, a)
		if (filter_match(filter, a))
			render_add(r, a);
	return render_end(r);
}

static int status_once(const struct command *cmd, const struct options *opt, int argc, char **argv)
{
	json_t *alarms, *daemon = NULL;
	struct filter filter;
	char err[1024];
	int worst, rc = 0;
	bool calm;

	/* a wrong name must not look like an alarm that is not raised */
	if (filter_parse(cmd->object, argc, argv, &filter, err, sizeof(err)) ||
	    filter_known(cmd->object, &filter, opt->socket, err, sizeof(err))) {
		cli_error("%s", err);
		return STATUS_UNKNOWN;
	}
	alarms = client_collect(opt->socket, "status-show", err, sizeof(err));
	if (alarms)
		daemon = client_collect(opt->socket, "daemon-show", err, sizeof(err));
	if (!daemon) {
		json_decref(alarms);
		cli_error("%s", err);
		return STATUS_UNKNOWN;
	}
	worst = verdict(alarms);
	calm = !worst;
	if (calm && incomplete(json_array_get(daemon, 0)))
		worst = 1;
	if (opt->mode == RENDER_TABLE && !argc) {
		print_headline(worst, calm, json_array_get(daemon, 0));
		print_alarms(cmd->object, alarms, 2);
		print_alarms(cmd->object, alarms, 1);
		print_hints(json_array_get(daemon, 0));
	} else {
		rc = print_data(cmd, opt, &filter, alarms);
	}
	if (rc || fflush(stdout)) {
		cli_error("cannot write the answer: %m");
		worst = STATUS_UNKNOWN;
	}
	json_decref(alarms);
	json_decref(daemon);
	return worst;
}

int run_status(const struct command *cmd, const struct options *opt, int argc, char **argv)
{
	bool terminal = opt->watch > 0 && isatty(STDOUT_FILENO);
	int rc;

	for (long n = 1;; n++) {
		if (terminal)
			fputs("\033[H\033[J", stdout);
		rc = status_once(cmd, opt, argc, argv);
		if (opt->watch <= 0 || rc == STATUS_UNKNOWN || (opt->count && n >= opt->count) ||
		    !cli_sleep(opt->watch))
			return rc;
	}
}
