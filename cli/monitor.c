// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* longhaul monitor: events as they happen, a line of JSON each. */
#include <stdio.h>
#include <string.h>

#include "cli/client.h"
#include "cli/command.h"

struct monitor {
	long left; /* lines, -1: for ever */
	bool broken;
};

static bool take(void *ctx, json_t *o)
{
	struct monitor *m = ctx;

	if (json_dumpf(o, stdout, JSON_COMPACT) || putchar('\n') == EOF || fflush(stdout)) {
		m->broken = true;
		return false;
	}
	return m->left < 0 || m->left-- > 0;
}

int run_monitor(const struct command *cmd, const struct options *opt, int argc, char **argv)
{
	struct monitor m = {.left = opt->count ? opt->count : -1};
	char err[512];

	(void)cmd, (void)argv;
	if (argc)
		return cli_error("monitor takes no words; -n COUNT ends it after so many events");
	if (client_follow(opt->socket, json_pack("{s:s}", "cmd", "monitor"), take, &m, err,
			  sizeof(err)))
		return cli_error("%s", err);
	return m.broken ? cli_error("cannot write: %m") : 0;
}
