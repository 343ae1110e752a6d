// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Names and units by the rules of Prometheus: longhaul_ first, base units (seconds, bytes) last but
 * for _total of counters. The two formats differ in the name after HELP and TYPE (OpenMetrics has
 * it without _total), in the unit and in the end mark. All samples of a name must stand together,
 * so what has a label is written name by name, not object by object.
 */
#include "cli/metrics/openmetrics.h"

#include <string.h>

#include "version.h"

#define NAME_MAX_LEN 96

struct out {
	FILE *f;
	bool open;
};

enum type {
	GAUGE,
	COUNTER,
};

static const char *text_of(const json_t *o, const char *key)
{
	const char *t = json_string_value(json_object_get(o, key));

	return t ? t : "";
}

static void put_escaped(FILE *f, const char *text, bool quote)
{
	for (; *text; text++) {
		if (*text == '\\')
			fputs("\\\\", f);
		else if (*text == '\n')
			fputs("\\n", f);
		else if (*text == '"' && quote)
			fputs("\\\"", f);
		else
			putc(*text, f);
	}
}

/* The lines before samples; @name without _total. */
static void head(const struct out *o, const char *name, enum type type, const char *help)
{
	const char *suffix = type == COUNTER && !o->open ? "_total" : "";
	const char *unit = strstr(name, "_seconds") ? "seconds"
			   : strstr(name, "_bytes") ? "bytes"
						    : NULL;

	fprintf(o->f, "# HELP %s%s ", name, suffix);
	put_escaped(o->f, help, o->open);
	fprintf(o->f, "\n# TYPE %s%s %s\n", name, suffix, type == COUNTER ? "counter" : "gauge");
	/* a unit must be the end of its name */
	if (o->open && unit && !strcmp(name + strlen(name) - strlen(unit), unit))
		fprintf(o->f, "# UNIT %s %s\n", name, unit);
}

/* One sample; labels are pairs of name and value up to NULL. */
static void sample(const struct out *o, const char *name, enum type type, const char *const *labels,
		   double v)
{
	fprintf(o->f, "%s%s", name, type == COUNTER ? "_total" : "");
	for (int i = 0; labels && labels[i]; i += 2) {
		fprintf(o->f, "%s%s=\"", i ? "," : "{", labels[i]);
		put_escaped(o->f, labels[i + 1], true);
		putc('"', o->f);
	}
	fprintf(o->f, "%s %.17g\n", labels && labels[0] ? "}" : "", v);
}

static void one(const struct out *o, const char *name, enum type type, const char *help, double v)
{
	head(o, name, type, help);
	sample(o, name, type, NULL, v);
}

/* ---- counters and memory of `stats show` ---- */

/* Where the unit is not in the daemon's own name, or is another one. */
static const struct {
	const char *group, *name, *metric;
	double factor;
} renamed[] = {
	{"memory", "custody-used", "memory_custody_bytes", 1},
	{"memory", "custody-cap", "memory_custody_limit_bytes", 1},
	{"memory", "transit-used", "memory_transit_bytes", 1},
	{"memory", "transit-cap", "memory_transit_limit_bytes", 1},
	{"memory", "flows-max", "memory_flows_limit", 1},
	{"daemon", "uptime-ms", "daemon_uptime_seconds", 1e-3},
};

static bool is_core(const json_t *o)
{
	return !strncmp(text_of(o, "group"), "core-", 5);
}

/* longhaul_engine_retx_wan; of groups port-lan, xdp-wan, core-0 and so on the part after the dash
 * is a label, @side. */
static double metric_name(const json_t *o, char *buf, const char **side)
{
	const char *group = text_of(o, "group"), *name = text_of(o, "name");
	const char *dash = strrchr(group, '-');

	*side = NULL;
	if (is_core(o) || (dash && (!strcmp(dash, "-lan") || !strcmp(dash, "-wan"))))
		*side = dash + 1;
	for (size_t i = 0; i < sizeof(renamed) / sizeof(renamed[0]); i++) {
		if (strcmp(renamed[i].group, group) || strcmp(renamed[i].name, name))
			continue;
		snprintf(buf, NAME_MAX_LEN, "longhaul_%s", renamed[i].metric);
		return renamed[i].factor;
	}
	snprintf(buf, NAME_MAX_LEN, "longhaul_%.*s_%s",
		 (int)(*side ? (size_t)(dash - group) : strlen(group)), group, name);
	for (char *p = buf; *p; p++)
		if (*p == '-')
			*p = '_';
	return 1;
}

static void stats_sample(const struct out *o, const json_t *s, const char *name, const char *side,
			 double factor)
{
	const char *const labels[] = {is_core(s) ? "core" : "port", side, NULL};
	const json_t *total = json_object_get(s, "total");
	const json_t *v = total ? total : json_object_get(s, "value");

	sample(o, name, total ? COUNTER : GAUGE, side ? labels : NULL,
	       (double)json_integer_value(v) * factor);
}

static void put_stats(const struct out *o, const json_t *stats)
{
	char name[NAME_MAX_LEN], other[NAME_MAX_LEN];
	const char *side, *side2;
	json_t *s, *t;
	size_t i, k;

	json_array_foreach (stats, i, s) {
		double factor = metric_name(s, name, &side);

		/* both sides, and all cores, are written with the first */
		if (side && strcmp(side, "lan") != 0 && strcmp(side, "0") != 0)
			continue;
		head(o, name, json_object_get(s, "total") ? COUNTER : GAUGE, text_of(s, "help"));
		stats_sample(o, s, name, side, factor);
		if (!side)
			continue;
		json_array_foreach (stats, k, t) {
			metric_name(t, other, &side2);
			if (k != i && side2 && !strcmp(other, name))
				stats_sample(o, t, name, side2, factor);
		}
	}
}

/* ---- objects with labels ---- */

/* A member of each object of a view. */
struct member {
	const char *key, *metric, *help;
	enum type type;
	double factor;
};

/* @labels: keys of the object's members, up to NULL; the label is the key, or "peer" and "rule" for
 * their own names. */
static void put_members(const struct out *o, const json_t *objects, const char *what,
			const char *const *labels, const struct member *m, size_t n)
{
	const char *pair[9];
	json_t *x;
	size_t i, k;

	for (k = 0; k < n; k++) {
		if (!json_array_size(objects))
			return;
		head(o, m[k].metric, m[k].type, m[k].help);
		json_array_foreach (objects, i, x) {
			const json_t *v = json_object_get(x, m[k].key);
			int used = 0;

			if (!json_is_number(v))
				continue;
			for (int l = 0; labels[l] && used < 8; l++) {
				pair[used++] = strcmp(labels[l], "name") ? labels[l] : what;
				pair[used++] = text_of(x, labels[l]);
			}
			pair[used] = NULL;
			sample(o, m[k].metric, m[k].type, pair, json_number_value(v) * m[k].factor);
		}
	}
}

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct member peer_members[] = {
	{"srtt-us", "longhaul_peer_round_trip_seconds", "smoothed round trip to the peer", GAUGE,
	 1e-6},
	{"min-rtt-us", "longhaul_peer_round_trip_min_seconds", "least round trip to the peer",
	 GAUGE, 1e-6},
	{"jitter-us", "longhaul_peer_jitter_seconds", "differences of one-way delay, smoothed",
	 GAUGE, 1e-6},
	{"heard-ms", "longhaul_peer_silence_seconds", "since the peer was last heard", GAUGE, 1e-3},
	{"tx-bytes", "longhaul_peer_transmitted_bytes", "of datagrams sent to the peer", COUNTER,
	 1},
	{"rx-bytes", "longhaul_peer_received_bytes", "of authentic datagrams of the peer", COUNTER,
	 1},
	{"downs", "longhaul_peer_downs", "times that the peer was lost", COUNTER, 1},
	{"restarts", "longhaul_peer_restarts", "times that it came back as another process",
	 COUNTER, 1},
	{"bad-auth", "longhaul_peer_bad_auth", "datagrams that failed authentication", COUNTER, 1},
};

static const struct member rule_members[] = {
	{"connections", "longhaul_rule_connections", "connections that the rule wants", GAUGE, 1},
	{"custody-bytes", "longhaul_rule_custody_bytes", "held for requesters", GAUGE, 1},
	{"custody-oldest-ms", "longhaul_rule_custody_oldest_seconds",
	 "so old the oldest of it is at least", GAUGE, 1e-3},
};

static const struct member qp_members[] = {
	{"out-bytes", "longhaul_connection_out_bytes", "frames from the LAN", COUNTER, 1},
	{"in-bytes", "longhaul_connection_in_bytes", "frames from the WAN", COUNTER, 1},
	{"custody-bytes", "longhaul_connection_custody_bytes", "held for its requesters", GAUGE, 1},
	{"custody-oldest-ms", "longhaul_connection_custody_oldest_seconds",
	 "so old the oldest of it is at least", GAUGE, 1e-3},
	{"retransmits", "longhaul_connection_retransmits", "packets sent again", COUNTER, 1},
};

static void put_states(const struct out *o, const json_t *qps)
{
	static const char *const states[] = {"watch", "opening", "held", "drain", "fault"};
	json_t *q;
	size_t i;

	head(o, "longhaul_connections", GAUGE, "learned pairs of queue pairs by state");
	for (size_t s = 0; s < COUNT(states); s++) {
		const char *const labels[] = {"state", states[s], NULL};
		unsigned int n = 0;

		json_array_foreach (qps, i, q)
			n += !strcmp(text_of(q, "state"), states[s]) &&
			     json_is_integer(json_object_get(q, "lqpn")) &&
			     json_is_integer(json_object_get(q, "rqpn"));
		sample(o, "longhaul_connections", GAUGE, labels, n);
	}
}

static void put_alarms(const struct out *o, const json_t *alarms)
{
	json_t *a;
	size_t i;

	head(o, "longhaul_alarm", GAUGE, "1 while the alarm is raised");
	json_array_foreach (alarms, i, a) {
		const char *const labels[] = {
			"alarm", text_of(a, "name"), "level", text_of(a, "level"),
			"peer",	 text_of(a, "peer"), NULL};

		sample(o, "longhaul_alarm", GAUGE, labels, !strcmp(text_of(a, "state"), "raised"));
	}
	head(o, "longhaul_alarm_raised", COUNTER, "times that the alarm was raised");
	json_array_foreach (alarms, i, a) {
		const char *const labels[] = {"alarm", text_of(a, "name"), "peer",
					      text_of(a, "peer"), NULL};

		sample(o, "longhaul_alarm_raised", COUNTER, labels,
		       (double)json_integer_value(json_object_get(a, "raised-count")));
	}
}

static void put_peers_up(const struct out *o, const json_t *peers)
{
	json_t *p;
	size_t i;

	if (json_array_size(peers))
		head(o, "longhaul_peer_up", GAUGE, "1 while there is a session with the peer");
	json_array_foreach (peers, i, p) {
		const char *const labels[] = {"peer", text_of(p, "name"), NULL};

		sample(o, "longhaul_peer_up", GAUGE, labels, !strcmp(text_of(p, "state"), "up"));
	}
}

/* QPNs are no text in JSON, and labels are text. */
static json_t *with_text(const json_t *qps)
{
	json_t *all = json_array(), *q, *copy;
	char text[16];
	size_t i;

	json_array_foreach (qps, i, q) {
		static const char *const keys[] = {"lqpn", "rqpn"};

		if (!json_is_integer(json_object_get(q, "lqpn")) ||
		    !json_is_integer(json_object_get(q, "rqpn")))
			continue;
		copy = json_copy(q);
		for (int k = 0; k < 2; k++) {
			snprintf(text, sizeof(text), "0x%llx",
				 (long long)json_integer_value(json_object_get(q, keys[k])));
			json_object_set_new(copy, keys[k], json_string(text));
		}
		for (int k = 0; k < 2; k++) /* names of labels have no dash */
			json_object_set(copy, k ? "wan_ip" : "lan_ip",
					json_object_get(q, k ? "wan-ip" : "lan-ip"));
		json_array_append_new(all, copy);
	}
	return all;
}

static void put_daemon(const struct out *o, const struct snapshot *s)
{
	const json_t *d = json_array_get(s->daemon, 0);

	one(o, "longhaul_wan_rate_bytes_per_second", GAUGE,
	    "what is sent over the link at most, 0: not limited",
	    (double)json_integer_value(json_object_get(d, "wan-rate")) / 8);
	put_stats(o, s->stats);
	put_states(o, s->qps);
	put_alarms(o, s->alarms);
	put_peers_up(o, s->peers);
}

void openmetrics_write(FILE *f, const struct snapshot *s, bool open, bool each)
{
	static const char *const named[] = {"name", NULL};
	static const char *const conn[] = {"lan_ip", "lqpn", "wan_ip", "rqpn", NULL};
	static const char *const version[] = {"version", LONGHAUL_VERSION, NULL};
	const struct out o = {.f = f, .open = open};
	json_t *qps;

	head(&o, "longhaul_build_info", GAUGE, "1, with the version of this exporter");
	sample(&o, "longhaul_build_info", GAUGE, version, 1);
	one(&o, "longhaul_up", GAUGE, "1 while longhauld answers", s->qps != NULL);
	if (s->qps) {
		put_daemon(&o, s);
		put_members(&o, s->peers, "peer", named, peer_members, COUNT(peer_members));
		put_members(&o, s->rules, "rule", named, rule_members, COUNT(rule_members));
		if (each) {
			qps = with_text(s->qps);
			put_members(&o, qps, "", conn, qp_members, COUNT(qp_members));
			json_decref(qps);
		}
	}
	if (open)
		fputs("# EOF\n", f);
}
