/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion of what only the daemon knows: the values behind a key.
 */
#ifndef LONGHAUL_CLI_COMPLETE_H
#define LONGHAUL_CLI_COMPLETE_H

#include <stdio.h>

/**
 * complete_values - when @argv ends with a key of an object: the values that it has now in the rows
 * that the pairs before it select, one per line. Without a daemon at @socket there are none.
 */
void complete_values(const char *socket, int argc, char **argv, FILE *f);

#endif
