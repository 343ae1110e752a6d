/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One health object, and which alarms it has raised. */
#ifndef LONGHAUL_TESTS_HEALTH_RIG_H
#define LONGHAUL_TESTS_HEALTH_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "control/health.h"

#define SECOND 1000000000ull

static struct health h;

static inline bool is(unsigned int i)
{
	return h.alarm[i].raised;
}

/* Nothing but @i is raised; HEALTH_COUNT: nothing at all. */
static inline void only(unsigned int i)
{
	struct health_what w;

	for (unsigned int k = 0; k < HEALTH_COUNT; k++)
		if (is(k) != (k == i) && health_alarm_of(k, &w))
			fail_msg("alarm %s is %s", w.name, is(k) ? "raised" : "not raised");
}

#endif
