/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion of what only the daemon knows: the values of a key.
 */
#ifndef LONGHAUL_CLI_COMPLETE_H
#define LONGHAUL_CLI_COMPLETE_H

#include <stdio.h>

/**
 * complete_values - if @argv ends with a key of an object, print the values that it has now in the
 * rows that the pairs before it select, one per line. None without a daemon at @socket.
 */
void complete_values(const char *socket, int argc, char **argv, FILE *f);

#endif
