/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Threads that work at the same time, for a while, on something that one thread has to itself
 * otherwise. The caller is the first of them. What was written before team_run() all of them see,
 * and what they wrote the caller sees after it.
 *
 * A member waits awake for a few microseconds, as long as a call of the kernel would take to wake
 * it, and then sleeps.
 */
#ifndef LONGHAUL_SHARDS_TEAM_H
#define LONGHAUL_SHARDS_TEAM_H

#include <stdint.h>

#define TEAM_MAX 16u

typedef void (*team_fn)(void *ctx, unsigned int member);

struct team;

/** team_start - @n members (1 .. TEAM_MAX), which inherit the caller's rights and take no signals.
 * NULL with errno. */
struct team *team_start(unsigned int n, team_fn fn, void *ctx);
void team_stop(struct team *t);

/** team_run - call @fn for each member of @mask (bits), each in a thread of its own; returns when
 * all have returned. The caller is the lowest of them. */
void team_run(struct team *t, uint32_t mask);

#endif
