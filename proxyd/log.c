// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LINE_LEN 1024

static int log_level = LOG_INFO;
static bool journal;

void log_init(int level)
{
	log_level = level;
	/* systemd sets it for a unit whose output goes to the journal, which reads "<6>" as a level. */
	journal = getenv("JOURNAL_STREAM") != NULL;
}

void log_line(int prio, const char *fmt, ...)
{
	char line[LINE_LEN];
	int used = 0, n;
	va_list ap;

	if (prio > log_level)
		return;
	if (journal)
		used = snprintf(line, sizeof(line), "<%d>", prio);
	va_start(ap, fmt);
	n = vsnprintf(line + used, sizeof(line) - used - 1, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	used += n;
	if (used > LINE_LEN - 2)
		used = LINE_LEN - 2;
	line[used++] = '\n';
	/* One write, so that lines stay whole. A log that cannot be written has nobody to tell. */
	(void)!write(STDERR_FILENO, line, used);
}
