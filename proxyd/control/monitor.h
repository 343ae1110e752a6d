/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Events as objects, for those who follow them: what the log says in sentences. */
#ifndef LONGHAUL_CONTROL_MONITOR_H
#define LONGHAUL_CONTROL_MONITOR_H

#include "control/view.h"

/** monitor_event - of the engine. */
void monitor_event(const struct view_source *src, const struct engine_event *ev, uint64_t now_ns);

/** monitor_alarm - alarm @i was raised or is over. */
void monitor_alarm(const struct view_source *src, unsigned int i, bool raised);

/** monitor_peer - of a peer's session. */
void monitor_peer(const struct view_source *src, unsigned int peer, enum peer_event ev);

/** monitor_say - something of the daemon: @event, with one line of @text. */
void monitor_say(const struct view_source *src, const char *event, const char *text);

#endif
