/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For engines whose frames, reports and events nobody looks at. */
#ifndef LONGHAUL_TESTS_NO_SINK_H
#define LONGHAUL_TESTS_NO_SINK_H

#include "engine/engine.h"

static inline int no_tx(void *ctx, enum engine_port port, const uint8_t *data, uint32_t len,
			uint32_t seal)
{
	(void)ctx, (void)port, (void)data, (void)len, (void)seal;
	return 0;
}

static inline void no_report(void *ctx, unsigned int peer, const struct report *r)
{
	(void)ctx, (void)peer, (void)r;
}

static inline void no_event(void *ctx, const struct engine_event *ev)
{
	(void)ctx, (void)ev;
}

static const struct engine_sink no_sink = {.tx = no_tx, .report = no_report, .event = no_event};

#endif
