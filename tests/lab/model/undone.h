/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Would undoing a batch restore every byte? That finds each store that was not noted before
 * (store/undo.h).
 *
 * The memory of the engine is write-protected. The first write to a page is a fault, whose handler
 * keeps a copy of the page. At the end of the batch the log is applied to copies of these pages,
 * and the result compared.
 */
#ifndef LONGHAUL_TESTS_UNDONE_H
#define LONGHAUL_TESTS_UNDONE_H

#include "engine/engine.h"

/** undone_begin - look at what @e writes from here on. False: another engine is being looked at. */
bool undone_begin(struct engine *e);

/** undone_looks - whether @e is being looked at. */
bool undone_looks(const struct engine *e);

/** undone_end - what undoing would not restore of what @e has written. NULL: nothing. */
const char *undone_end(struct engine *e);

/** undone_cancel - look no more; the memory may be gone after that. */
void undone_cancel(void);

/** undone_watch - look at each batch of @e after the present one; NULL: at none any more. */
void undone_watch(struct engine *e);

/** undone_bad - what undoing one of these batches would not have restored, NULL: nothing. */
const char *undone_bad(void);

#endif
