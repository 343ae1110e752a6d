/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Hierarchical timer wheel: arm, cancel and expire in O(1), for a fixed number of timers known by
 * number (index links inside the arena, no pointers). Resolution 2^14 ns (16.4 us), four levels of
 * 256 slots: range over 19 hours; a timer farther away is placed several times and still fires on
 * time. A timer never fires early; it may fire one tick late.
 *
 * row: ENG-7, ENG-15
 */
#ifndef LONGHAUL_STORE_WHEEL_H
#define LONGHAUL_STORE_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#include "store/arena.h"

#define NSEC_PER_USEC 1000ull
#define NSEC_PER_MSEC 1000000ull
#define NSEC_PER_SEC  1000000000ull

#define WHEEL_TICK_SHIFT 14
#define WHEEL_NEVER	 UINT64_MAX

struct wheel;

/** wheel_create - @timers timers, none of them armed; @now_ns: a clock that never goes back. NULL
 *  when the arena is too small. */
struct wheel *wheel_create(struct arena *a, uint32_t timers, uint64_t now_ns);
uint64_t wheel_arena_size(uint32_t timers);

/** wheel_undo_by - note changes in @u from here on (undo.h). */
struct undo;
void wheel_undo_by(struct wheel *w, struct undo *u);

/** wheel_arm - have timer @id fire at @when_ns; moves it if armed already. WHEEL_NEVER cancels it.
 */
void wheel_arm(struct wheel *w, uint32_t id, uint64_t when_ns);
void wheel_cancel(struct wheel *w, uint32_t id);
bool wheel_armed(const struct wheel *w, uint32_t id);

/** wheel_soon - prefetch timer @id, which will be armed or cancelled soon. */
void wheel_soon(const struct wheel *w, uint32_t id);

/** wheel_expire - call @fire for each timer that is due at @now_ns, each disarmed first: timers
 * armed for the past in the order of arming, then the others in the order of their ticks. @fire may
 * arm and cancel any timer; a timer that it arms for the past fires at the next call. */
void wheel_expire(struct wheel *w, uint64_t now_ns, void (*fire)(void *ctx, uint32_t id),
		  void *ctx);

/** wheel_next - when to call wheel_expire() next: at or before the next expiry (rounded up to its
 *  tick), and after the latest wheel_expire() unless a timer has been armed for the past since.
 *  WHEEL_NEVER when no timer is armed. */
uint64_t wheel_next(const struct wheel *w);

#endif
