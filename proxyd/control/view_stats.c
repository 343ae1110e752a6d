// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Every number that is not about one connection: one object each, {group, name, value, help}.
 * Groups: the engines' counters and memory, each port, what the XDP program did on it, the peers'
 * socket, the daemon, its cores.
 */
#include "control/view.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "control/operate.h"
#include "peer/socket.h"
#include "port/afxdp.h"

static json_t *entry(const char *group, const char *name, uint64_t value, const char *help)
{
	json_t *o = json_object();

	view_put_str(o, "group", group);
	view_put_str(o, "name", name);
	view_put_int(o, "value", value);
	view_put_str(o, "help", help);
	return o;
}

/* A member of a struct of numbers, shown under a name. */
struct field {
	const char *name;
	size_t off, size;
	const char *help;
};

static uint64_t field_value(const void *base, const struct field *f)
{
	const char *p = (const char *)base + f->off;

	return f->size == sizeof(uint32_t) ? *(const uint32_t *)p : *(const uint64_t *)p;
}

#define MEM(name, member, help)                                                                    \
	{                                                                                          \
		name, offsetof(struct engine_memory, member),                                      \
			sizeof(((struct engine_memory *)0)->member), help                          \
	}
static const struct field memory_fields[] = {
	MEM("pool-bytes", pool_bytes, "retention memory in all"),
	MEM("custody-used", custody_used, "bytes of it held for near requesters"),
	MEM("custody-cap", custody_cap, "bytes that custody may hold"),
	MEM("transit-used", transit_used, "bytes of it held on the way to near responders"),
	MEM("transit-cap", transit_cap, "bytes that transit may hold"),
	MEM("flows", flows, "flows known, one for each direction"),
	MEM("flows-max", flows_max, "flows that fit the table"),
	MEM("connections", conns, "learned pairs of queue pairs"),
	MEM("lane-bytes", lane_bytes, "state per lane besides packets"),
};

#define SOCK(name, member, help)                                                                   \
	{                                                                                          \
		name, offsetof(struct peer_socket_stats, member),                                  \
			sizeof(((struct peer_socket_stats *)0)->member), help                      \
	}
static const struct field socket_fields[] = {
	SOCK("rx", rx, "datagrams of peers received"),
	SOCK("tx", tx, "datagrams sent to peers"),
	SOCK("unknown-source", unknown_source, "datagrams from addresses of no peer, dropped"),
	SOCK("oversize", oversize, "datagrams longer than any of the protocol, dropped"),
	SOCK("overrun", overrun, "datagrams that the kernel dropped, receive buffer full"),
	SOCK("tx-full", tx_full, "datagrams not sent, send buffer full for long"),
	SOCK("tx-errors", tx_errors, "datagrams not sent for another reason"),
	SOCK("rx-errors", rx_errors, "errors of receiving"),
};

/* Of all ports of one side. */
#define PORT(name, member, help)                                                                   \
	{                                                                                          \
		name, offsetof(struct afxdp_counts, member), sizeof(uint64_t), help                \
	}
static const struct field port_fields[] = {
	PORT("rx", rx, "frames received"),
	PORT("rx-bytes", rx_bytes, "their bytes"),
	PORT("tx", tx, "frames sent"),
	PORT("tx-bytes", tx_bytes, "their bytes"),
	PORT("tx-full", tx_full, "frames refused because no room was left"),
	PORT("tx-too-long", tx_too_long, "frames longer than the kernel takes, refused"),
	PORT("tx-dropped", tx_dropped, "frames that the device or the kernel refused"),
	PORT("tx-errors", tx_errors, "calls to send that were refused as a whole: interface down"),
	PORT("rx-too-long", rx_too_long, "frames of too many chunks, dropped"),
	PORT("rx-dropped", rx_dropped, "frames that the kernel dropped, no chunk or ring full"),
	PORT("rx-missed", rx_missed, "frames that the network card dropped, its ring full"),
	PORT("rx-fill-full", rx_fill_full, "batches cut short, no room to give chunks back"),
	PORT("rx-bad-chunk", rx_bad_chunk,
	     "frames in chunks that the kernel did not have, dropped"),
	PORT("tx-bad-chunk", tx_bad_chunk,
	     "chunks given back that the kernel did not have, ignored"),
};

static const struct {
	const char *name, *help;
} steer_names[STEER_COUNTERS] = {
	[STEER_TAKEN] = {"taken", "frames given to the daemon"},
	[STEER_OTHER] = {"other", "frames that are not RoCEv2, to the kernel"},
	[STEER_NO_RULE] = {"no-rule",
			   "RoCEv2 that no rule wants, or of an own address, to the kernel"},
	[STEER_FRAGMENT] = {"fragment", "IP fragments, options, extension headers, to the kernel"},
	[STEER_STALE] = {"stale", "frames bridged because the daemon sent no heartbeat"},
	[STEER_NO_SOCKET] = {"no-socket", "frames of a queue without a socket, to the kernel"},
	[STEER_TOO_LONG] = {"too-long", "frames longer than can be handed over, to the kernel"},
	[STEER_RUNT] = {"runt", "frames too short to look at, to the kernel"},
	[STEER_TAGS] = {"tags", "frames with two VLAN tags or a service tag, to the kernel"},
	[STEER_FENCED] =
		{"held",
		 "frames dropped because only the daemon can translate them, and did not get them"},
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Object @i of the fields of @base; NULL when there are fewer. */
static json_t *fields_entry(const char *group, const void *base, const struct field *f, size_t n,
			    size_t i)
{
	return i < n ? entry(group, f[i].name, field_value(base, &f[i]), f[i].help) : NULL;
}

static json_t *engine_entry(const struct view_source *src, size_t i)
{
	if (i >= EC_COUNT)
		return NULL;
	return entry("engine", engine_counter_name(i), shards_counter(src->shards, i),
		     engine_counter_help(i));
}

static json_t *memory_entry(const struct view_source *src, size_t i)
{
	struct engine_memory m;

	shards_memory(src->shards, &m);
	return fields_entry("memory", &m, memory_fields, COUNT(memory_fields), i);
}

static json_t *socket_entry(const struct view_source *src, size_t i)
{
	struct peer_socket_stats st;

	if (!src->sock)
		return NULL;
	peer_socket_stats(src->sock, &st);
	return fields_entry("peer-socket", &st, socket_fields, COUNT(socket_fields), i);
}

static json_t *port_entry(const struct view_source *src, size_t i)
{
	static const char *const groups[STEER_SIDES] = {"port-lan", "port-wan"};
	size_t side = i / COUNT(port_fields);
	struct afxdp_counts n;

	if (!src->port || side >= STEER_SIDES)
		return NULL;
	afxdp_side_counts(src->port, side, &n);
	return fields_entry(groups[side], &n, port_fields, COUNT(port_fields),
			    i % COUNT(port_fields));
}

static json_t *steer_entry(const struct view_source *src, size_t i)
{
	static const char *const groups[STEER_SIDES] = {"xdp-lan", "xdp-wan"};
	size_t side = i / STEER_COUNTERS, c = i % STEER_COUNTERS;
	struct afxdp_counts n;

	if (!src->port || side >= STEER_SIDES)
		return NULL;
	afxdp_side_counts(src->port, side, &n);
	return entry(groups[side], steer_names[c].name, n.steer[c], steer_names[c].help);
}

static json_t *daemon_entry(const struct view_source *src, size_t i)
{
	if (i >= src->ndaemon)
		return NULL;
	return entry("daemon", src->daemon[i].name, *src->daemon[i].value, src->daemon[i].help);
}

/* With one core it would say what the ports say. */
static json_t *core_entry(const struct view_source *src, size_t i)
{
	static const struct {
		const char *name, *help;
	} what[] = {
		{"frames", "frames that came by its queues, or from other cores"},
		{"handed", "frames of its queues for other cores, which count them, too"},
		{"dropped", "frames of these that were dropped, as the other had no room"},
	};
	const struct view_core *c = &src->core[i / COUNT(what)];
	char group[16];

	if (src->ncores < 2 || i / COUNT(what) >= src->ncores)
		return NULL;
	snprintf(group, sizeof(group), "core-%zu", i / COUNT(what));
	i %= COUNT(what);
	return entry(group, what[i].name,
		     *(i == 0	? c->frames
		       : i == 1 ? c->handed
				: c->dropped),
		     what[i].help);
}

/* Counters are shown since they were cleared; @at: index among all. The total stands beside it, for
 * programs that plot it. */
static void count_from(const struct view_source *src, json_t *o, uint32_t at, bool counter)
{
	json_int_t total = json_integer_value(json_object_get(o, "value"));
	const char *name = json_string_value(json_object_get(o, "name"));

	if (!counter || !strcmp(name, "uptime-ms"))
		return;
	view_put_int(o, "total", (uint64_t)total);
	if (src->operate && at < OPERATE_COUNTERS)
		view_put_int(o, "value", (uint64_t)total - src->operate->base[at]);
}

enum view_step view_stats(const struct view_source *src, struct view_cursor *cur, uint64_t now_ns,
			  json_t **out)
{
	static json_t *(*const groups[])(const struct view_source *, size_t) = {
		engine_entry, memory_entry, port_entry, steer_entry,
		socket_entry, daemon_entry, core_entry,
	};

	(void)now_ns;
	if (cur->sub >= COUNT(groups))
		return VIEW_END;
	*out = groups[cur->sub](src, cur->index++);
	if (*out) {
		count_from(src, *out, cur->conn++, groups[cur->sub] != memory_entry);
		return VIEW_OBJECT;
	}
	cur->sub++;
	cur->index = 0;
	return VIEW_AGAIN;
}
