/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An engine whose records of READs are used up, as many lanes do that to it. They are in no list
 * that engine_check() knows of: it is not to be called until they are given back.
 */
#ifndef LONGHAUL_TESTS_NO_RECORDS_H
#define LONGHAUL_TESTS_NO_RECORDS_H

#include "engine/core/core.h"
#include "tests/unit/engine_rig.h"

/** records_take - all that are left, into @l. */
static inline void records_take(struct rig *r, struct mq_list *l)
{
	undone_watch(NULL); /* so many fit into no log */
	while (mq_push(r->e->reads, l) != MQ_NONE)
		;
}

/** records_rx - @from sends a packet; nothing is checked. */
static inline __attribute__((format(printf, 3, 4))) void
records_rx(struct rig *r, enum rig_host from, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	rig_arrives(r, from, fmt, ap);
	va_end(ap);
}

#endif
