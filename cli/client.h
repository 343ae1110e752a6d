/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Asking the daemon through its control socket.
 */
#ifndef LONGHAUL_CLI_CLIENT_H
#define LONGHAUL_CLI_CLIENT_H

#include <jansson.h>
#include <stddef.h>

#define CLIENT_SOCKET "/run/longhaul/longhaul.sock"

/** client_fn - one object of the answer; the reference stays the caller's. */
typedef void (*client_fn)(void *ctx, json_t *object);

/**
 * client_request - send {"cmd": @cmd} to the daemon at socket @path and hand each object of the
 * answer to
 * @fn. 0, or -1 with one line in @err (cause and mend, no newline).
 */
int client_request(const char *path, const char *cmd, client_fn fn, void *ctx, char *err,
		   size_t errlen);

/** client_collect - the objects of the answer as an array (a new reference), NULL with @err. */
json_t *client_collect(const char *path, const char *cmd, char *err, size_t errlen);

#endif
