// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "control/monitor.h"

#include <time.h>

#include "control/feed.h"
#include "control/health.h"

static json_t *begin(const char *event)
{
	json_t *o = json_object();
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	json_object_set_new(o, "time-ms",
			    json_integer((json_int_t)t.tv_sec * 1000 + t.tv_nsec / 1000000));
	view_put_str(o, "event", event);
	return o;
}

void monitor_event(const struct view_source *src, const struct engine_event *ev, uint64_t now_ns)
{
	static const char *const names[] = {
		[EVENT_PAIRED] = "learned",	 [EVENT_HELD] = "held",
		[EVENT_REFUSED] = "refused",	 [EVENT_CLOSED] = "released",
		[EVENT_FAULT] = "fault",	 [EVENT_INCARNATION] = "incarnation",
		[EVENT_ANNOUNCE] = "announce",	 [EVENT_CROWDED] = "crowded",
		[EVENT_ABANDONED] = "abandoned", [EVENT_BYPASS] = "path-bypass",
		[EVENT_INVARIANT] = "invariant",
	};
	struct conn_info ci = {.id = UINT32_MAX};
	json_t *o;

	if (!feed_wanted(src->monitor))
		return;
	o = begin(names[ev->type]);
	if (shards_conn(src->shards, ev->conn, now_ns, &ci)) {
		view_put_conn(o, &ci);
		view_put_str(o, "rule", view_rule_name(src, ci.rule));
		view_put_str(o, "peer", view_peer_name(src, ci.peer));
		view_put_str(o, "learned-by", learn_source_name(ci.learned_by));
	} else {
		view_put_int(o, "id", ev->conn);
	}
	if (ev->type != EVENT_PAIRED)
		view_put_str(o, "direction", ev->requests_from_lan ? "out" : "in");
	if (ev->reason != REASON_NONE)
		view_put_str(o, "reason", lane_reason_name(ev->reason));
	if (ev->type == EVENT_ANNOUNCE && ci.id == ev->conn) {
		const struct announce_info *a = &ci.lane[!ev->requests_from_lan].announce;

		view_put_str(o, "announce", a->phase);
		view_put_str(o, "announce-reason", a->why);
	}
	if (ev->type == EVENT_FAULT || ev->type == EVENT_ABANDONED) {
		view_put_int(o, "lost-packets", ev->packets);
		view_put_int(o, "lost-bytes", ev->bytes);
	}
	if (ev->type == EVENT_INVARIANT) {
		view_put_str(o, "file", ev->must.file);
		view_put_int(o, "line", ev->must.line);
		view_put_str(o, "condition", ev->must.what);
		view_put_int(o, "x", ev->must.x);
		view_put_int(o, "y", ev->must.y);
	}
	feed_put(src->monitor, o);
}

void monitor_alarm(const struct view_source *src, unsigned int i, bool raised)
{
	struct health_what w;
	json_t *o;

	if (!feed_wanted(src->monitor) || !health_alarm_of(i, &w))
		return;
	o = begin(raised ? "alarm" : "alarm-over");
	view_put_str(o, "name", w.name);
	view_put_str(o, "level", health_level_name(w.level));
	view_put_str(o, "peer", view_peer_name(src, w.peer));
	view_put_str(o, "reason", src->health->alarm[i].text);
	view_put_str(o, "mend", w.mend);
	feed_put(src->monitor, o);
}

void monitor_peer(const struct view_source *src, unsigned int peer, enum peer_event ev)
{
	static const char *const names[] = {
		[PEER_UP] = "peer-up",
		[PEER_DOWN] = "peer-down",
		[PEER_RESTARTED] = "peer-restarted",
	};
	json_t *o;

	if (!feed_wanted(src->monitor))
		return;
	o = begin(names[ev]);
	view_put_str(o, "peer", view_peer_name(src, (int)peer));
	feed_put(src->monitor, o);
}

void monitor_say(const struct view_source *src, const char *event, const char *text)
{
	json_t *o;

	if (!feed_wanted(src->monitor))
		return;
	o = begin(event);
	view_put_str(o, "text", text);
	feed_put(src->monitor, o);
}
