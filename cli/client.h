/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Asking the daemon through its control socket.
 */
#ifndef LONGHAUL_CLI_CLIENT_H
#define LONGHAUL_CLI_CLIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define CLIENT_SOCKET "/run/longhaul/longhaul.sock"

/* How long a daemon may say nothing before it counts as silent; tests are less patient. */
extern int client_patience_s;

/** client_fn - called with each object of the answer; the caller keeps the reference. */
typedef void (*client_fn)(void *ctx, json_t *object);

/**
 * client_request - send {"cmd": @cmd} to the daemon at socket @path and hand each object of the
 * answer to
 * @fn. 0, or -1 with one line in @err (cause and mend, no newline).
 */
int client_request(const char *path, const char *cmd, client_fn fn, void *ctx, char *err,
		   size_t errlen);

/** client_ask - the same for a request with members, @req, whose reference is taken over. */
int client_ask(const char *path, json_t *req, client_fn fn, void *ctx, char *err, size_t errlen);

/** client_follow - likewise, but lines come as things happen, until the daemon ends (-1 with @err)
 * or @fn returns false (0). */
typedef bool (*client_follow_fn)(void *ctx, json_t *object);
int client_follow(const char *path, json_t *req, client_follow_fn fn, void *ctx, char *err,
		  size_t errlen);

/** client_collect - the objects of the answer as an array (a new reference), NULL with @err. */
json_t *client_collect(const char *path, const char *cmd, char *err, size_t errlen);

#endif
