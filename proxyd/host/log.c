// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "host/log.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINE_LEN 1024

static int log_level = LOG_INFO;
static bool journal;

/*
 * One write, so that lines stay whole, and without waiting: a log that is not read must not delay
 * packets. A pipe that polls as writable takes a line of this length at once. Lost lines are
 * counted, and the count is logged when there is room again.
 */
static void put(const char *line, int len)
{
	static unsigned int lost;
	struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
	char note[64];
	ssize_t n;

	if (poll(&p, 1, 0) <= 0 || !(p.revents & POLLOUT)) {
		lost++;
		return;
	}
	if (lost) {
		n = snprintf(note, sizeof(note), "%s%u log lines lost\n", journal ? "<4>" : "",
			     lost);
		lost = write(STDERR_FILENO, note, n) == n ? 0 : lost;
	}
	n = send(STDERR_FILENO, line, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0 && errno == ENOTSOCK)
		n = write(STDERR_FILENO, line, len);
	lost += n != len;
}

void log_init(int level)
{
	log_level = level;
	/* systemd sets it if the output goes to the journal, which reads "<6>" as a level. */
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
	put(line, used);
}
