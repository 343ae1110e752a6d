/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One line per event on standard error; for the journal, each line has its level.
 */
#ifndef LONGHAUL_LOG_H
#define LONGHAUL_LOG_H

#include <syslog.h>

/** log_init - @level: LOG_ERR .. LOG_DEBUG; less important lines are not written. */
void log_init(int level);

/** log_line - a printf of one line without newline. */
void log_line(int prio, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
