/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The control socket: an AF_UNIX stream, one JSON request line from the client ({"cmd":
 * "qp-show"}), JSON lines back, one object each, then {"end": true, "count": n}; or one line
 * {"error": "..."}. One request per connection. "monitor" and "capture" have no end: lines come as
 * things happen, until the client goes (feed.h).
 *
 * It runs in the thread that moves packets, so every call does a bounded amount of work and nothing
 * waits: a request has CONTROL_REQUEST_MAX bytes, an answer is made bit by bit as the client reads
 * it, and a client that neither sends nor reads for CONTROL_PATIENCE_NS is dropped.
 */
#ifndef LONGHAUL_CONTROL_CONTROL_H
#define LONGHAUL_CONTROL_CONTROL_H

#include <stddef.h>
#include <stdint.h>

#include "control/view.h"

#define CONTROL_CLIENTS	    16
#define CONTROL_REQUEST_MAX 4096
#define CONTROL_FOLLOWERS   8 /* of the clients, at most so many follow a feed */
#define CONTROL_IDLE_NS	    1000000000ull
#define CONTROL_PATIENCE_NS 10000000000ull

struct control;

/** struct control_stats */
struct control_stats {
	uint64_t requests; /* answered */
	uint64_t errors;   /* answered with an error */
	uint64_t refused;  /* clients beyond CONTROL_CLIENTS */
	uint64_t dropped;  /* clients that ran out of patience or went away in the middle */
};

/**
 * control_open - listen at @path, mode 0660. A socket that a dead daemon left there is replaced, a
 * live one is not. @src must outlive the result; its fields may change between calls. Replacing
 * @src->rules while an answer is under way is fine. NULL with one line in @err (cause and mend, no
 * newline).
 */
struct control *control_open(const char *path, const struct view_source *src, char *err,
			     size_t errlen);

/** control_close - drop all clients, remove the socket. NULL is fine. */
void control_close(struct control *c);

/** control_fd - readable whenever control_service() has something to do. */
int control_fd(const struct control *c);

/** control_service - serve clients that are ready, a bounded amount; never waits. */
void control_service(struct control *c, uint64_t now_ns);

/** control_tick - drop clients that ran out of patience; a few times per second. */
void control_tick(struct control *c, uint64_t now_ns);

const struct control_stats *control_stats(const struct control *c);

#endif
