/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is answered over HTTP: /metrics for Prometheus, / a page for people, /data.json what it
 * draws. Read only, no state of clients; whoever may connect may read, so listen where only those
 * can who should.
 */
#ifndef LONGHAUL_METRICS_HTTP_H
#define LONGHAUL_METRICS_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#define HTTP_CLIENTS 4000      /* connections at a time, as far as files may be open */
#define HTTP_MEMORY  (8 << 10) /* bytes for each */
#define HTTP_SECONDS 5	       /* a silent connection is closed after this */

/**
 * struct http_config
 * @socket: of longhauld
 * @page:   folder of the page's files
 * @chart:  the library that draws its charts
 * @each:   metrics of each connection, too
 */
struct http_config {
	const char *socket, *page, *chart;
	bool each;
};

struct http;

/** http_open - serve at @addr in a thread of its own; NULL with one line in @err. */
struct http *http_open(const struct http_config *cfg, const struct sockaddr *addr, char *err,
		       size_t errlen);

void http_close(struct http *h);

#endif
