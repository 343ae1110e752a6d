// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* longhaul: look inside longhauld. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/client.h"
#include "cli/command.h"
#include "version.h"

#define PLAN 256 /* and above: options of plan */

static const struct option long_options[] = {
	{"rate", required_argument, NULL, PLAN + PLAN_RATE},
	{"rtt", required_argument, NULL, PLAN + PLAN_RTT},
	{"loss", required_argument, NULL, PLAN + PLAN_LOSS},
	{"mtu", required_argument, NULL, PLAN + PLAN_MTU},
	{"outstanding", required_argument, NULL, PLAN + PLAN_OUTSTANDING},
	{"json", no_argument, NULL, 'j'},
	{"pretty", no_argument, NULL, 'p'},
	{"details", no_argument, NULL, 'd'},
	{"columns", required_argument, NULL, 'c'},
	{"watch", optional_argument, NULL, 'w'},
	{"count", required_argument, NULL, 'n'},
	{"socket", required_argument, NULL, 's'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
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
		if (c < PLAN)
			return 1;
		opt->plan[c - PLAN] = optarg;
		return 0;
	}
}

/* An option that @cmd would not heed must not look as if it did: an exit code, or 0. */
static int strange(const struct command *cmd, const struct options *opt)
{
	for (int i = 0; cmd->run != run_plan && i < PLAN_OPTIONS; i++)
		if (opt->plan[i])
			return cli_error("--rate, --rtt, --loss, --mtu and --outstanding belong to "
					 "longhaul plan; leave them out");
	for (const char *c = opt->given; *c; c++)
		if (!strchr(cmd->takes, *c))
			return cli_error("-%c means nothing to longhaul %s; leave it out", *c,
					 cmd->object ? cmd->object->name : cmd->name);
	if (cmd->object && opt->count && opt->watch <= 0)
		return cli_error("-n counts the looks of -w; write -w, too");
	return 0;
}

int main(int argc, char **argv)
{
	struct options opt = {.socket = CLIENT_SOCKET, .mode = RENDER_TABLE};
	const struct command *cmd;
	char err[256], given[8] = "";
	int c, used;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "jpdc:s:w::n:hV", long_options, NULL)) != -1) {
		switch (c) {
		case 'h':
			command_help(stdout);
			return cli_printed();
		case 'V':
			printf("longhaul %s\n", LONGHAUL_VERSION);
			return cli_printed();
		case '?':
			return cli_error("unknown option or missing value '%s'; see longhaul help",
					 argv[optind - 1]);
		default:
			if (take_option(c, &opt))
				return 1;
			if (c < PLAN && c != 's' && !strchr(given, c))
				given[strlen(given)] = (char)c;
		}
	}
	argc -= optind;
	argv += optind;
	opt.given = given;
	if (!argc) {
		command_help(stdout);
		return cli_printed();
	}
	cmd = command_find(argc, argv, &used, err, sizeof(err));
	if (!cmd)
		return cli_error("%s", err);
	if (strange(cmd, &opt))
		return 1;
	return cmd->run(cmd, &opt, argc - used, argv + used);
}
