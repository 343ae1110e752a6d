// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* longhaul: look inside longhauld. */
#include <getopt.h>
#include <stdio.h>

#include "cli/client.h"
#include "cli/command.h"
#include "version.h"

static const struct option long_options[] = {
	{"json", no_argument, NULL, 'j'},
	{"pretty", no_argument, NULL, 'p'},
	{"details", no_argument, NULL, 'd'},
	{"socket", required_argument, NULL, 's'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

int main(int argc, char **argv)
{
	struct options opt = {.socket = CLIENT_SOCKET, .mode = RENDER_TABLE};
	const struct command *cmd;
	char err[256];
	int c, used;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "jpds:hV", long_options, NULL)) != -1) {
		switch (c) {
		case 'j':
			if (opt.mode != RENDER_PRETTY)
				opt.mode = RENDER_JSON;
			break;
		case 'p':
			opt.mode = RENDER_PRETTY;
			break;
		case 'd':
			if (opt.mode == RENDER_TABLE)
				opt.mode = RENDER_DETAILS;
			break;
		case 's':
			opt.socket = optarg;
			break;
		case 'h':
			command_help(stdout);
			return 0;
		case 'V':
			printf("longhaul %s\n", LONGHAUL_VERSION);
			return 0;
		default:
			return cli_error("unknown option or missing value '%s'; see longhaul help",
					 argv[optind - 1]);
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
