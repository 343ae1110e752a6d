// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One object per port: how it is attached, what came and left by it, and, by cause, frames that
 * passed to the kernel (unaccelerated) or were dropped.
 */
#include "control/view.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "port/afxdp.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* A cause: its counter is @off into struct afxdp_counts. */
struct cause {
	const char *key, *note;
	size_t off;
};

#define STEER(key, counter, note)                                                                  \
	{                                                                                          \
		key, note, offsetof(struct afxdp_counts, steer[STEER_##counter])                   \
	}
#define PORT(key, member, note)                                                                    \
	{                                                                                          \
		key, note, offsetof(struct afxdp_counts, member)                                   \
	}

static const struct cause passed[] = {
	STEER("passed-no-rule", NO_RULE, "passed: RoCEv2 that no rule wants"),
	STEER("passed-no-daemon", STALE, "passed: the daemon was late"),
	STEER("passed-no-socket", NO_SOCKET, "passed: came by a queue without a socket"),
	STEER("passed-too-long", TOO_LONG, "passed: longer than max-frame"),
	STEER("passed-tags", TAGS, "passed: two VLAN tags, or a service tag"),
	STEER("passed-fragment", FRAGMENT, "passed: IP fragments, options or extension headers"),
};

static const struct cause dropped[] = {
	PORT("dropped-rx-full", rx_dropped, "dropped: came faster than the daemon reads"),
	PORT("dropped-rx-card", rx_missed, "dropped: the network card's ring was full"),
	PORT("dropped-rx-too-long", rx_too_long, "dropped: came in too many pieces"),
	PORT("dropped-rx-chunk", rx_bad_chunk, "dropped: came in memory that is not the port's"),
	STEER("dropped-held", FENCED, "dropped: only the daemon may pass them on, and was late"),
	PORT("dropped-tx-full", tx_full, "not sent: no room, custody is tried again"),
	PORT("dropped-tx-too-long", tx_too_long, "not sent: longer than the kernel takes"),
	PORT("dropped-tx", tx_dropped, "not sent: the interface refused them"),
};

static uint64_t cause_count(const struct afxdp_counts *n, const struct cause *c)
{
	return *(const uint64_t *)((const char *)n + c->off);
}

/* The causes one by one, and their sum; @most: the most frequent one in words, if there is any. */
static void put_causes(json_t *o, const struct afxdp_counts *counts, const struct cause *c,
		       size_t n, const char *sum, const char **most)
{
	uint64_t all = 0, highest = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t v = cause_count(counts, &c[i]);

		view_put_int(o, c[i].key, v);
		all += v;
		if (v <= highest)
			continue;
		highest = v;
		*most = c[i].note;
	}
	view_put_int(o, sum, all);
}

static void put_mode(json_t *o, const struct afxdp *x, unsigned int port)
{
	bool native = afxdp_native(x, port), zero = afxdp_zero_copy(x, port);
	int e = afxdp_native_error(x, port), refused = afxdp_refused(x, port);
	char why[128];

	snprintf(why, sizeof(why), "the driver refused native XDP: %s", e ? strerror(e) : "");
	view_put_str(o, "xdp", native ? "native" : "generic");
	view_put_str(o, "xdp-reason",
		     native ? NULL
		     : e    ? why
			    : "the configuration has mode = generic");
	view_put_str(o, "memory", zero ? "zero-copy" : "copy");
	snprintf(why, sizeof(why), "the driver refused zero-copy: %s", strerror(refused));
	view_put_str(o, "memory-reason",
		     zero      ? NULL
		     : !native ? "generic XDP copies each frame"
		     : refused ? why
			       : "the configuration does not have mode = zero-copy");
}

/* Whose packets no rule wants; null when there were none. */
static void put_unwanted(json_t *o, const struct afxdp *x, enum steer_side side, uint64_t now_ns)
{
	struct afxdp_unwanted u;

	if (!afxdp_unwanted(x, side, &u)) {
		view_put_str(o, "unwanted-from", NULL);
		return;
	}
	view_put_ip(o, "unwanted-from", &u.src);
	view_put_ip(o, "unwanted-to", &u.dst);
	json_object_set_new(o, "unwanted-vlan",
			    u.vlan == FRAME_VLAN_NONE ? json_null() : json_integer(u.vlan));
	view_put_int(o, "unwanted-ms", now_ns > u.at_ns ? (now_ns - u.at_ns) / 1000000 : 0);
}

static json_t *port_object(const struct afxdp *x, unsigned int port, uint64_t now_ns)
{
	enum steer_side side = port / STEER_MEMBERS;
	const char *driver = afxdp_driver(x, port), *note = NULL;
	bool absent = afxdp_absent(x, port), alone = !absent && afxdp_alone(x, port);
	json_t *o = json_object();
	struct afxdp_counts n;

	afxdp_port_counts(x, port, &n);
	view_put_str(o, "name", afxdp_name(x, port));
	view_put_str(o, "side", side == STEER_LAN ? "lan" : "wan");
	view_put_str(o, "state",
		     absent || afxdp_down(x, port) ? "down"
		     : afxdp_backup(x, port)	   ? "backup"
						   : "up");
	view_put_int(o, "mtu", afxdp_mtu(x, port));
	view_put_str(o, "driver", *driver ? driver : NULL);
	put_mode(o, x, port);
	view_put_str(o, "bridged", absent ? NULL : alone ? "no" : "yes");
	view_put_int(o, "queues", afxdp_queues(x, port));
	view_put_int(o, "max-frame", afxdp_max_frame(x));
	view_put_int(o, "rx-packets", n.rx);
	view_put_int(o, "rx-bytes", n.rx_bytes);
	view_put_int(o, "tx-packets", n.tx);
	view_put_int(o, "tx-bytes", n.tx_bytes);
	view_put_int(o, "other", n.steer[STEER_OTHER]);
	put_causes(o, &n, passed, COUNT(passed), "passed", &note);
	put_causes(o, &n, dropped, COUNT(dropped), "dropped", &note);
	put_unwanted(o, x, side, now_ns);
	if (absent)
		note = "missing or down when longhauld started: used again when it is up";
	if (!note && afxdp_backup(x, port))
		note = "its bond uses another one now";
	if (!note && alone)
		note = "in no bridge: what longhaul does not take is lost";
	view_put_str(o, "note", note);
	return o;
}

enum view_step view_port(const struct view_source *src, struct view_cursor *cur, uint64_t now_ns,
			 json_t **out)
{
	while (src->port && cur->index < STEER_PORTS && !afxdp_has(src->port, cur->index) &&
	       !afxdp_absent(src->port, cur->index))
		cur->index++;
	if (!src->port || cur->index >= STEER_PORTS)
		return VIEW_END;
	*out = port_object(src->port, cur->index++, now_ns);
	return VIEW_OBJECT;
}
