/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The command line of longhaul-wanem. */
#ifndef LONGHAUL_CLI_WANEM_OPTIONS_H
#define LONGHAUL_CLI_WANEM_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/wanem/wan.h"

/**
 * struct options
 * @ifname:      the two ports, --a and --b
 * @link:        of what each of them receives
 * @seconds:     0: until a signal
 * @coalesce_ns: how long to sleep between batches under load; 0: wake for each frame
 * @visible:     captures on the ports see what is sent there
 */
struct options {
	const char *ifname[2];
	struct wan_config link[2];
	double seconds;
	uint64_t coalesce_ns;
	bool visible;
};

/** options_parse - 0: go on; else an exit status and one more: the text that was asked for, or what
 *  is wrong, has been printed. */
int options_parse(int argc, char **argv, struct options *o);

#endif
