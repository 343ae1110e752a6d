/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What an engine's memory says to the process that finds it (create.c).
 *
 * An engine goes on with the memory of another one only if both have the same layout. Its number
 * is made by the build (proxyd/layout.pl): a digest of the sizes, of the places, names and types
 * of members, and of the values of enumerations, of all types that the memory may hold, as the
 * compiler tells them. build/layout.txt has them in full, so a diff of two builds shows what has
 * changed. A comment, or code that does the same, changes nothing.
 *
 * The compiler does not see what a number means. Raise KEPT_MEANING by one with each change after
 * which memory that the former version wrote would be misread, though no type changes: another
 * unit, another base, another invariant that check.c or the code relies on, another meaning of a
 * bit in a #define. If in doubt raise it: the cost is that an upgrade has to deliver first what is
 * in custody, and that after a crash amid the upgrade queue pairs fail.
 *
 * A type that the memory holds stands in a header, or in proxyd/store/: layout.pl looks there.
 */
#ifndef LONGHAUL_ENGINE_KEPT_H
#define LONGHAUL_ENGINE_KEPT_H

#include "engine/core/state.h"

/* Numbers that are no type's, and are part of the layout. */
enum kept_number {
	KEPT_MEANING = 3,

	KEPT_ARENA_FIRST = ARENA_FIRST,
	KEPT_BLOCK = POOL_BLOCK,
	KEPT_WINDOW = WINDOW_SPAN,
	KEPT_TIMERS = TIMERS,
	KEPT_READS = READS_MAX,
	KEPT_MATCHES = MATCH_SLOTS,
};

/**
 * struct engine_root - the first thing in the arena.
 * @layout: LONGHAUL_LAYOUT of who made it
 * @undo:   offset of the log, 0: none
 * @engine: offset of struct engine; @kept: of what the caller keeps, @kept_bytes: its size
 * @ready:  READY once all is made
 * @crashes: the caller's
 */
struct engine_root {
	uint64_t layout, undo, engine, kept, kept_bytes, ready;
	uint32_t crashes;
};

#endif
