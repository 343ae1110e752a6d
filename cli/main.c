// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* longhaul: look inside longhauld. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/client.h"
#include "cli/command.h"
#include "version.h"

static const struct option long_options[] = {
	{"json", no_argument, NULL, 'j'},	  {"pretty", no_argument, NULL, 'p'},
	{"details", no_argument, NULL, 'd'},	  {"columns", required_argument, NULL, 'c'},
	{"watch", optional_argument, NULL, 'w'},  {"count", required_argument, NULL, 'n'},
	{"socket", required_argument, NULL, 's'}, {"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},	  {NULL, 0, NULL, 0},
};

/* "1", "0.5" into @out; 0.1 to a day. */
static bool seconds_of(const char *text, double *out)
{
	char *end;

	*out = strtod(text, &end);
	return end != text && !*end && *out >= 0.1 && *out <= 86400;
}

/* Process one option other than help; an exit code, or 0 to go on. */
static int take_option(int c, struct options *opt)
{
	char *end;

	switch (c) {
	case 'j':
		if (opt->mode != RENDER_PRETTY)
			opt->mode = RENDER_JSON;
		return 0;
	case 'p':
		opt->mode = RENDER_PRETTY;
		return 0;
	case 'd':
		if (opt->mode == RENDER_TABLE)
			opt->mode = RENDER_DETAILS;
		return 0;
	case 's':
		opt->socket = optarg;
		return 0;
	case 'c':
		opt->columns = optarg;
		return 0;
	case 'w':
		opt->watch = 1;
		if (optarg && !seconds_of(optarg, &opt->watch))
			return cli_error("-w takes 0.1 to 86400 seconds, not '%.40s'", optarg);
		return 0;
	case 'n':
		opt->count = strtol(optarg, &end, 10);
		if (end == optarg || *end || opt->count < 1)
			return cli_error("-n takes a number from 1 up, not '%.40s'", optarg);
		return 0;
	default:
		return 1;
	}
}

int main(int argc, char **argv)
{
	struct options opt = {.socket = CLIENT_SOCKET, .mode = RENDER_TABLE};
	const struct command *cmd;
	char err[256];
	int c, used;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "jpdc:s:w::n:hV", long_options, NULL)) != -1) {
		switch (c) {
		case 'h':
			command_help(stdout);
			return 0;
		case 'V':
			printf("longhaul %s\n", LONGHAUL_VERSION);
			return 0;
		case '?':
			return cli_error("unknown option or missing value '%s'; see longhaul help",
					 argv[optind - 1]);
		default:
			if (take_option(c, &opt))
				return 1;
		}
	}
	argc -= optind;
	argv += optind;
	if (!argc) {
		command_help(stdout);
		return 0;
	}
	cmd = command_find(argc, argv, &used, err, sizeof(err));
	if (!cmd)
		return cli_error("%s", err);
	return cmd->run(cmd, &opt, argc - used, argv + used);
}
