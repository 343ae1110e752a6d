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

/** daemon_state_left - whether a process before this one left something to go on with. */
bool daemon_state_left(const struct config *cfg);

/** daemon_restart - what a restart into this program with @cfg does to the connections of the one
 * that runs, a line into @what; false: none runs. */
bool daemon_restart(struct config *cfg, char *what, size_t len);

/**
 * daemon_hand_over - tell the longhauld that is process @pid to end for another one to go on, if
 * this program could with @cfg, and wait for its end. 0, or a negative errno and a line in @err:
 * nothing was told to it.
 */
int daemon_hand_over(struct config *cfg, long pid, char *err, size_t errlen);

/** daemon_run - serve until a signal ends it. The exit code: 1 when custody could not be delivered
 * or an interface went away. */
int daemon_run(struct daemon *d);

/** daemon_stop - say goodbye to peers, close everything: from then on the kernel bridges. NULL is
 * fine. */
void daemon_stop(struct daemon *d);

#endif
