/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Events as JSON objects for clients that follow them; the log has the same as text. */
#ifndef LONGHAUL_CONTROL_MONITOR_H
#define LONGHAUL_CONTROL_MONITOR_H

#include "control/view.h"

/** monitor_event - event @ev of the engine. */
void monitor_event(const struct view_source *src, const struct engine_event *ev, uint64_t now_ns);

/** monitor_alarm - alarm @i was raised or cleared. */
void monitor_alarm(const struct view_source *src, unsigned int i, bool raised);

/** monitor_peer - event @ev of the session with @peer. */
void monitor_peer(const struct view_source *src, unsigned int peer, enum peer_event ev);

/** monitor_say - event @event of the daemon, with one line of @text. */
void monitor_say(const struct view_source *src, const char *event, const char *text);

#endif
