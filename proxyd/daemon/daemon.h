/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The running daemon: engine, ports, peers, control socket and loop, wired together.
 */
#ifndef LONGHAUL_DAEMON_H
#define LONGHAUL_DAEMON_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"

struct daemon;

/**
 * daemon_start - open everything that @cfg asks for, then give up privileges. @cfg is taken over
 * and freed with the daemon, also on failure. NULL with one line in @err (cause and mend, no
 * newline).
 */
struct daemon *daemon_start(struct config *cfg, char *err, size_t errlen);

/** daemon_state_left - whether a former process left a state file. */
bool daemon_state_left(const struct config *cfg);

/** daemon_restart - one line into @what: what a restart into this program with @cfg does to the
 * connections of the longhauld that runs; false: none runs. */
bool daemon_restart(struct config *cfg, char *what, size_t len);

/**
 * daemon_hand_over - if this program with @cfg could go on with its state, tell longhauld process
 * @pid to hand over, and wait for its end. 0, or a negative errno and a line in @err: it was not
 * told.
 */
int daemon_hand_over(struct config *cfg, long pid, char *err, size_t errlen);

/** daemon_run - serve until a signal ends it. The exit code: 1 when custody could not be delivered
 * or an interface went away. */
int daemon_run(struct daemon *d);

/** daemon_stop - send BYE to peers, close everything: from then on the kernel bridges. NULL is
 * fine. */
void daemon_stop(struct daemon *d);

#endif
