/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Selecting connections for a command that changes them. */
#ifndef LONGHAUL_CLI_OPERATE_H
#define LONGHAUL_CLI_OPERATE_H

#include <jansson.h>

#include "cli/command.h"
#include "cli/filter.h"

/** operate_choose - the connections that KEY VALUE words select, at least one; NULL with @err. */
json_t *operate_choose(const struct options *opt, int argc, char **argv, char *err, size_t errlen);

/** operate_request - a request @cmd about queue pair @qp, of qp-show. */
json_t *operate_request(const char *cmd, const json_t *qp);

#endif
