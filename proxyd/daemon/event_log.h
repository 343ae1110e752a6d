/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events of the engine as text, for the log. Ten thousand connections that come up at once must not
 * flood the log nor delay packets: lines about single connections are rate-limited, except faults.
 */
#ifndef LONGHAUL_EVENT_LOG_H
#define LONGHAUL_EVENT_LOG_H

#include <stdint.h>

#include "control/view.h"

/** struct event_log - @tokens: lines that may be written; @left_out: lines that were not */
struct event_log {
	unsigned int tokens;
	uint64_t refilled_ns, left_out;
};

/** event_log_write - log @ev, with names from @src. */
void event_log_write(struct event_log *l, const struct view_source *src,
		     const struct engine_event *ev, uint64_t now_ns);

/** event_log_tick - refill the tokens, log how many lines were left out; a few times per second. */
void event_log_tick(struct event_log *l, uint64_t now_ns);

#endif
