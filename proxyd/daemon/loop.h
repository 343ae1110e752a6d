/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The event loop as the rest of the daemon sees it: descriptors that become ready, one deadline of
 * nanosecond resolution, signals, and a work function that runs once per turn. loop.c is the only
 * file that knows which library does it.
 */
#ifndef LONGHAUL_LOOP_H
#define LONGHAUL_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#define LOOP_NEVER UINT64_MAX

struct loop;

typedef void (*loop_fd_fn)(void *ctx, int fd);
typedef void (*loop_signal_fn)(void *ctx, int signo);

/**
 * loop_work_fn - called once per turn, after the callbacks of everything that was ready.
 * Returns when it wants to be called next if nothing happens before: CLOCK_MONOTONIC ns, a time
 * that has come (0) for at once, LOOP_NEVER.
 */
typedef uint64_t (*loop_work_fn)(void *ctx);

/** loop_create - NULL when the system has no descriptors or memory left. */
struct loop *loop_create(void);
void loop_destroy(struct loop *l);

/** loop_add_fd - call @fn whenever @fd is readable; @fn may be NULL if a turn of the loop is
 * enough. 0 or negative errno. */
int loop_add_fd(struct loop *l, int fd, loop_fd_fn fn, void *ctx);
void loop_del_fd(struct loop *l, int fd);

/** loop_on_signal - call @fn from the loop (not from the handler) when @signo arrives. */
int loop_on_signal(struct loop *l, int signo, loop_signal_fn fn, void *ctx);

/** loop_run - turn until loop_stop(). */
void loop_run(struct loop *l, loop_work_fn work, void *ctx);
void loop_stop(struct loop *l);

/** loop_rest - from work: sleep @ns before the next turn, whatever becomes ready meanwhile, but not
 * beyond what work returns. */
void loop_rest(struct loop *l, uint64_t ns);

/** loop_now - CLOCK_MONOTONIC in ns. */
uint64_t loop_now(void);

#endif
