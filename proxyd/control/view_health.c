// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* One object per alarm, raised or not; and the daemon's state, for the headline. */
#include "control/health.h"
#include "peer/session.h"

#include <stdio.h>

#include "port/own.h"
#include "wire/storage.h"

#define COUNT_PER_CALL 32

static json_t *alarm_object(const struct view_source *src, const struct health_what *w,
			    unsigned int i, uint64_t now_ns)
{
	const struct health_alarm *a = &src->health->alarm[i];
	json_t *o = json_object();

	view_put_str(o, "name", w->name);
	view_put_str(o, "level", health_level_name(w->level));
	view_put_str(o, "state", a->raised ? "raised" : "ok");
	view_put_str(o, "peer", view_peer_name(src, w->peer));
	json_object_set_new(o, "since-ms",
			    a->since ? json_integer((json_int_t)((now_ns - a->since) / 1000000))
				     : json_null());
	/* it stays raised for a while, lest it comes and goes */
	json_object_set_new(o, "ended-ms",
			    a->raised && a->good
				    ? json_integer((json_int_t)((now_ns - a->good_since) / 1000000))
				    : json_null());
	view_put_int(o, "raised-count", a->count);
	view_put_str(o, "reason", a->raised ? a->text : NULL);
	view_put_str(o, "mend", a->raised ? health_mend(src->health, i) : NULL);
	return o;
}

enum view_step view_health(const struct view_source *src, struct view_cursor *cur, uint64_t now_ns,
			   json_t **out)
{
	const struct health *h = src->health;
	struct health_what w;

	while (h && health_alarm_of(cur->index, &w)) {
		unsigned int i = cur->index++;

		if (w.peer != PEER_NONE && !view_peer_name(src, w.peer))
			continue;
		*out = alarm_object(src, &w, i, now_ns);
		return VIEW_OBJECT;
	}
	return VIEW_END;
}

/* "nvme 3, nfs 1": connections that would gain by announce = auto; NULL without any. */
static const char *would_gain(const struct health_scan *s, char *buf, size_t size)
{
	size_t n = 0;

	for (int p = STORAGE_UNKNOWN + 1; p < STORAGE_PROTOCOLS; p++)
		if (s->storage[p])
			n += (size_t)snprintf(buf + n, size - n, "%s%s %u", n ? ", " : "",
					      storage_name(p), s->storage[p]);
	return n ? buf : NULL;
}

/* Count some connections, all and held, as they are now: the effect of a command just given must
 * show. True when all have been seen. */
static bool count(const struct view_source *src, struct view_cursor *cur, uint64_t now_ns)
{
	struct conn_info ci;

	for (unsigned int i = 0; i < COUNT_PER_CALL; i++) {
		if (!shards_conn_next(src->shards, cur->conn, now_ns, &ci))
			return true;
		cur->conn = ci.id + 1;
		cur->rule[0].conns += ci.paired;
		cur->rule[1].conns +=
			ci.lane[LANE_OUT].state == LANE_HELD || ci.lane[LANE_IN].state == LANE_HELD;
	}
	return false;
}

/* Whether some peer was never up, but may still come, and how many are up. */
static bool starts(const struct view_source *src, uint64_t now_ns, unsigned int *up)
{
	struct session_info si;
	bool yes = false;

	for (unsigned int i = 0; src->session && i < src->npeers; i++) {
		unsigned int alarm = HEALTH_KINDS + i * HEALTH_PEER_KINDS + HEALTH_PEER_UNREACHED;

		if (!session_info(src->session, i, now_ns, &si))
			continue;
		*up += si.state == SESSION_UP;
		yes |= si.state == SESSION_DOWN && !si.heard && src->health &&
		       !src->health->alarm[alarm].raised;
	}
	return yes;
}

enum view_step view_daemon(const struct view_source *src, struct view_cursor *cur, uint64_t now_ns,
			   json_t **out)
{
	const struct health *h = src->health;
	unsigned int up = 0, peers = 0;
	char gain[64], own[256];
	json_t *o;

	if (cur->index)
		return VIEW_END;
	if (!count(src, cur, now_ns))
		return VIEW_AGAIN;
	cur->index++;
	o = json_object();
	view_put_str(o, "state",
		     src->stopping && *src->stopping ? "stopping"
		     : starts(src, now_ns, &up)	     ? "starting"
						     : "running");
	view_put_int(o, "connections", cur->rule[0].conns);
	view_put_int(o, "held", cur->rule[1].conns);
	for (int i = 0; i < PEER_MAX; i++)
		peers += view_peer_name(src, i) != NULL;
	view_put_int(o, "peers", peers);
	view_put_int(o, "peers-up", up);
	view_put_int(o, "rules", src->nrules);
	view_put_int(o, "wan-rate", h ? h->sample.wan_rate * 8 : 0);
	view_put_str(o, "announce-would-gain", h ? would_gain(&h->scan, gain, sizeof(gain)) : NULL);
	view_put_str(o, "own-in-rules",
		     src->own && own_ruled(src->own, src->rules, src->nrules, own, sizeof(own))
			     ? own
			     : NULL);
	*out = o;
	return VIEW_OBJECT;
}
