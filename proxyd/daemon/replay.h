/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * longhauld --replay: show what the appliance would have learned from a capture file.
 */
#ifndef LONGHAUL_REPLAY_H
#define LONGHAUL_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/**
 * replay_run - read capture @path and write the QP table to @f, as JSON or text; a summary of the
 * capture to @note. 0, or a negative errno with one line in @err.
 */
int replay_run(const char *path, bool json, FILE *f, FILE *note, char *err, size_t errlen);

#endif
