// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/object.h"

#include <stdio.h>
#include <string.h>

/* As a table for operators, within 100 columns. */
static const struct column qp_columns[] = {
	{"lan-ip", "LAN-IP", COL_TEXT, COL_TABLE},
	{"lqpn", "LQPN", COL_HEX, COL_TABLE},
	{"wan-ip", "WAN-IP", COL_TEXT, COL_TABLE},
	{"rqpn", "RQPN", COL_HEX, COL_TABLE},
	{"vlan", "VLAN", COL_NUMBER, COL_PRESENT},
	{"state", "STATE", COL_TEXT, COL_TABLE},
	{"rate", "BIT/S", COL_RATE, COL_PRESENT},
	{"gain", "GAIN", COL_NUMBER, COL_PRESENT},
	{"rtt-us", "RTT", COL_US, COL_PRESENT},
	{"resent-ppm", "RESENT", COL_PPM, COL_PRESENT},
	{"custody-bytes", "CUSTODY", COL_BYTES, COL_TABLE},
	{"custody-oldest-ms", "OLDEST", COL_MS, COL_TABLE},
	{"note", "NOTE", COL_TEXT, COL_PRESENT},
	{"learned-by", "LEARNED-BY", COL_TEXT, COL_DETAIL},
	{"policy", "POLICY", COL_TEXT, COL_DETAIL},
	{"rule", "RULE", COL_TEXT, COL_DETAIL},
	{"peer", "PEER", COL_TEXT, COL_DETAIL},
	{"path-mtu", "PATH-MTU", COL_NUMBER, COL_DETAIL},
	{"requests", "REQUESTS", COL_NUMBER, COL_DETAIL},
	{"pseudo-acks", "PSEUDO-ACKS", COL_NUMBER, COL_DETAIL},
	{"true-acks", "TRUE-ACKS", COL_NUMBER, COL_DETAIL},
	{"dropped-duplicates", "DUPLICATES", COL_NUMBER, COL_DETAIL},
	{"retransmits", "RETRANSMITS", COL_NUMBER, COL_DETAIL},
	{"out-rate", "OUT-BIT/S", COL_RATE, COL_DETAIL},
	{"in-rate", "IN-BIT/S", COL_RATE, COL_DETAIL},
	{"message-rate", "MESSAGES/S", COL_NUMBER, COL_DETAIL},
	{"out-packets", NULL, COL_NUMBER, COL_DETAIL},
	{"out-bytes", NULL, COL_BYTES, COL_DETAIL},
	{"in-packets", NULL, COL_NUMBER, COL_DETAIL},
	{"in-bytes", NULL, COL_BYTES, COL_DETAIL},
	{"out-msn", NULL, COL_NUMBER, COL_DETAIL},
	{"in-msn", NULL, COL_NUMBER, COL_DETAIL},
	{"id", NULL, COL_NUMBER, COL_DETAIL},
	{"custody-messages", NULL, COL_NUMBER, COL_DETAIL},
	{"custody-packets", NULL, COL_NUMBER, COL_DETAIL},
	{"transit-messages", NULL, COL_NUMBER, COL_DETAIL},
	{"transit-packets", NULL, COL_NUMBER, COL_DETAIL},
	{"transit-bytes", NULL, COL_BYTES, COL_DETAIL},
	{"transit-oldest-ms", NULL, COL_MS, COL_DETAIL},
	{"idle-ms", NULL, COL_MS, COL_DETAIL},
	{"core", "CORE", COL_NUMBER, COL_PRESENT},
	{NULL, NULL, 0, 0},
};

static const struct column lane_columns[] = {
	{"lan-ip", "LAN-IP", COL_TEXT, COL_TABLE},
	{"lqpn", "LQPN", COL_HEX, COL_TABLE},
	{"direction", "DIR", COL_TEXT, COL_TABLE},
	{"wan-ip", "WAN-IP", COL_TEXT, COL_TABLE},
	{"rqpn", "RQPN", COL_HEX, COL_TABLE},
	{"vlan", "VLAN", COL_NUMBER, COL_PRESENT},
	{"role", "ROLE", COL_TEXT, COL_TABLE},
	{"state", "STATE", COL_TEXT, COL_TABLE},
	{"reason", "REASON", COL_TEXT, COL_PRESENT},
	{"epsn", "EPSN", COL_HEX, COL_TABLE},
	{"frontier", "FRONTIER", COL_HEX, COL_TABLE},
	{"una", "UNA", COL_HEX, COL_TABLE},
	{"custody-bytes", "CUSTODY", COL_BYTES, COL_TABLE},
	{"custody-oldest-ms", "OLDEST", COL_MS, COL_TABLE},
	{"transit-bytes", "TRANSIT", COL_BYTES, COL_TABLE},
	{"pseudo-acks", "PSEUDO-ACKS", COL_NUMBER, COL_TABLE},
	{"retransmits", "RETRANSMITS", COL_NUMBER, COL_TABLE},
	{"srtt-us", "SRTT", COL_US, COL_TABLE},
	{"id", NULL, COL_NUMBER, COL_DETAIL},
	{"policy", NULL, COL_TEXT, COL_DETAIL},
	{"rule", NULL, COL_TEXT, COL_DETAIL},
	{"peer", NULL, COL_TEXT, COL_DETAIL},
	{"path-mtu", NULL, COL_NUMBER, COL_DETAIL},
	{"nxt", NULL, COL_HEX, COL_DETAIL},
	{"msn", NULL, COL_NUMBER, COL_DETAIL},
	{"custody-messages", NULL, COL_NUMBER, COL_DETAIL},
	{"custody-packets", NULL, COL_NUMBER, COL_DETAIL},
	{"transit-messages", NULL, COL_NUMBER, COL_DETAIL},
	{"transit-packets", NULL, COL_NUMBER, COL_DETAIL},
	{"transit-oldest-ms", NULL, COL_MS, COL_DETAIL},
	{"silent-ms", NULL, COL_MS, COL_DETAIL},
	{"seal", NULL, COL_TEXT, COL_DETAIL},
	{"seal-reason", NULL, COL_TEXT, COL_DETAIL},
	{"path-bypass", NULL, COL_TEXT, COL_DETAIL},
	{"reads-pending", NULL, COL_NUMBER, COL_DETAIL},
	{"ahead-hits", NULL, COL_NUMBER, COL_DETAIL},
	{"ahead-late-hits", NULL, COL_NUMBER, COL_DETAIL},
	{"ahead-misses", NULL, COL_NUMBER, COL_DETAIL},
	{"ahead-guesses", NULL, COL_NUMBER, COL_DETAIL},
	{"ahead-wasted-bytes", NULL, COL_BYTES, COL_DETAIL},
	{"ahead-flushed-pattern", NULL, COL_NUMBER, COL_DETAIL},
	{"ahead-flushed-signal", NULL, COL_NUMBER, COL_DETAIL},
	{"ahead-flushed-age", NULL, COL_NUMBER, COL_DETAIL},
	{"atomics-ahead", NULL, COL_NUMBER, COL_DETAIL},
	{"atomics-unasked", NULL, COL_NUMBER, COL_DETAIL},
	{"ahead-window-bytes", NULL, COL_BYTES, COL_DETAIL},
	{"ahead-bytes", NULL, COL_BYTES, COL_DETAIL},
	{"reads-held-bytes", NULL, COL_BYTES, COL_DETAIL},
	{"reads-answered-again", NULL, COL_NUMBER, COL_DETAIL},
	{"read-depth", NULL, COL_NUMBER, COL_DETAIL},
	{"psn-shift", NULL, COL_NUMBER, COL_DETAIL},
	{"msn-shift", NULL, COL_NUMBER, COL_DETAIL},
	{"announce", NULL, COL_TEXT, COL_DETAIL},
	{"announce-reason", NULL, COL_TEXT, COL_DETAIL},
	{"announce-commands", NULL, COL_NUMBER, COL_DETAIL},
	{"announce-bytes", NULL, COL_BYTES, COL_DETAIL},
	{"announce-unused-bytes", NULL, COL_BYTES, COL_DETAIL},
	{"announce-late-bytes", NULL, COL_BYTES, COL_DETAIL},
	{"announce-absorbed", NULL, COL_NUMBER, COL_DETAIL},
	{"announce-served", NULL, COL_NUMBER, COL_DETAIL},
	{"announce-native", NULL, COL_NUMBER, COL_DETAIL},
	{"announce-parity", NULL, COL_NUMBER, COL_DETAIL},
	{"announce-repaired", NULL, COL_NUMBER, COL_DETAIL},
	{"announce-mismatches", NULL, COL_NUMBER, COL_DETAIL},
	{"requests", NULL, COL_NUMBER, COL_DETAIL},
	{"true-acks", NULL, COL_NUMBER, COL_DETAIL},
	{"dropped-duplicates", NULL, COL_NUMBER, COL_DETAIL},
	{"naks-sent", NULL, COL_NUMBER, COL_DETAIL},
	{"timeouts", NULL, COL_NUMBER, COL_DETAIL},
	{"rnr", NULL, COL_NUMBER, COL_DETAIL},
	{NULL, NULL, 0, 0},
};

static const struct column peer_columns[] = {
	{"name", "NAME", COL_TEXT, COL_TABLE},
	{"state", "STATE", COL_TEXT, COL_TABLE},
	{"address", "ADDRESS", COL_TEXT, COL_TABLE},
	{"port", "PORT", COL_NUMBER, COL_TABLE},
	{"node", "NODE", COL_TEXT, COL_TABLE},
	{"since-ms", "SINCE", COL_MS, COL_TABLE},
	{"heard-ms", "HEARD", COL_MS, COL_TABLE},
	{"srtt-us", "RTT", COL_US, COL_TABLE},
	{"tx-reports", "TX-REPORTS", COL_NUMBER, COL_TABLE},
	{"rx-reports", "RX-REPORTS", COL_NUMBER, COL_TABLE},
	{"tx-rate", "TX-BIT/S", COL_RATE, COL_PRESENT},
	{"rx-rate", "RX-BIT/S", COL_RATE, COL_PRESENT},
	{"note", "NOTE", COL_TEXT, COL_PRESENT},
	{"boot", NULL, COL_TEXT, COL_DETAIL},
	{"rtt-us", NULL, COL_US, COL_DETAIL},
	{"min-rtt-us", NULL, COL_US, COL_DETAIL},
	{"link-mtu", NULL, COL_NUMBER, COL_DETAIL},
	{"link-mtu-from", NULL, COL_NUMBER, COL_DETAIL},
	{"lan-mtu", NULL, COL_NUMBER, COL_DETAIL},
	{"wan-mtu", NULL, COL_NUMBER, COL_DETAIL},
	{"pace", NULL, COL_TEXT, COL_DETAIL},
	{"pace-bps", NULL, COL_RATE, COL_DETAIL},
	{"pace-cause", NULL, COL_TEXT, COL_DETAIL},
	{"share", NULL, COL_TEXT, COL_DETAIL},
	{"delivered-bps", NULL, COL_RATE, COL_DETAIL},
	{"lost-ppm", NULL, COL_NUMBER, COL_DETAIL},
	{"noise-ppm", NULL, COL_NUMBER, COL_DETAIL},
	{"queue-us", NULL, COL_US, COL_DETAIL},
	{"link-full", NULL, COL_NUMBER, COL_DETAIL},
	{"ecn-marked", NULL, COL_NUMBER, COL_DETAIL},
	{"jitter-us", NULL, COL_US, COL_DETAIL},
	{"delay-above-min-us", NULL, COL_US, COL_DETAIL},
	{"tx-bytes", NULL, COL_BYTES, COL_DETAIL},
	{"rx-bytes", NULL, COL_BYTES, COL_DETAIL},
	{NULL, NULL, 0, 0},
};

static const struct column port_columns[] = {
	{"name", "NAME", COL_TEXT, COL_TABLE},
	{"side", "SIDE", COL_TEXT, COL_TABLE},
	{"state", "STATE", COL_TEXT, COL_TABLE},
	{"mtu", "MTU", COL_NUMBER, COL_TABLE},
	{"driver", "DRIVER", COL_TEXT, COL_TABLE},
	{"xdp", "XDP", COL_TEXT, COL_TABLE},
	{"memory", "MEMORY", COL_TEXT, COL_TABLE},
	{"queues", "QUEUES", COL_NUMBER, COL_TABLE},
	{"rx-packets", "RX", COL_NUMBER, COL_TABLE},
	{"tx-packets", "TX", COL_NUMBER, COL_TABLE},
	{"rx-rate", "RX-BIT/S", COL_RATE, COL_PRESENT},
	{"tx-rate", "TX-BIT/S", COL_RATE, COL_PRESENT},
	{"passed", "PASSED", COL_NUMBER, COL_TABLE},
	{"dropped", "DROPPED", COL_NUMBER, COL_TABLE},
	{"note", "NOTE", COL_TEXT, COL_PRESENT},
	{"rx-bytes", NULL, COL_BYTES, COL_DETAIL},
	{"tx-bytes", NULL, COL_BYTES, COL_DETAIL},
	{"bridged", NULL, COL_TEXT, COL_DETAIL},
	{"max-frame", NULL, COL_NUMBER, COL_DETAIL},
	{"xdp-reason", NULL, COL_TEXT, COL_DETAIL},
	{"memory-reason", NULL, COL_TEXT, COL_DETAIL},
	{"other", NULL, COL_NUMBER, COL_DETAIL},
	{"passed-no-rule", NULL, COL_NUMBER, COL_DETAIL},
	{"passed-no-daemon", NULL, COL_NUMBER, COL_DETAIL},
	{"passed-no-socket", NULL, COL_NUMBER, COL_DETAIL},
	{"passed-too-long", NULL, COL_NUMBER, COL_DETAIL},
	{"passed-tags", NULL, COL_NUMBER, COL_DETAIL},
	{"passed-fragment", NULL, COL_NUMBER, COL_DETAIL},
	{"unwanted-from", NULL, COL_TEXT, COL_DETAIL},
	{"unwanted-to", NULL, COL_TEXT, COL_DETAIL},
	{"unwanted-vlan", NULL, COL_NUMBER, COL_DETAIL},
	{"unwanted-ms", NULL, COL_MS, COL_DETAIL},
	{"dropped-rx-full", NULL, COL_NUMBER, COL_DETAIL},
	{"dropped-rx-card", NULL, COL_NUMBER, COL_DETAIL},
	{"dropped-rx-too-long", NULL, COL_NUMBER, COL_DETAIL},
	{"dropped-rx-chunk", NULL, COL_NUMBER, COL_DETAIL},
	{"dropped-held", NULL, COL_NUMBER, COL_DETAIL},
	{"dropped-tx-full", NULL, COL_NUMBER, COL_DETAIL},
	{"dropped-tx-too-long", NULL, COL_NUMBER, COL_DETAIL},
	{"dropped-tx", NULL, COL_NUMBER, COL_DETAIL},
	{NULL, NULL, 0, 0},
};

static const struct column rule_columns[] = {
	{"name", "NAME", COL_TEXT, COL_TABLE},
	{"lan", "LAN", COL_TEXT, COL_TABLE},
	{"wan", "WAN", COL_TEXT, COL_TABLE},
	{"vlan", "VLAN", COL_TEXT, COL_TABLE},
	{"peer", "PEER", COL_TEXT, COL_TABLE},
	{"policy", "POLICY", COL_TEXT, COL_TABLE},
	{"learn", "LEARN", COL_TEXT, COL_TABLE},
	{"connections", "CONNECTIONS", COL_NUMBER, COL_TABLE},
	{"custody-bytes", "CUSTODY", COL_BYTES, COL_TABLE},
	{"custody-oldest-ms", "OLDEST", COL_MS, COL_TABLE},
	{"path-mtu", NULL, COL_NUMBER, COL_DETAIL},
	{"pool", NULL, COL_BYTES, COL_DETAIL},
	{"order", NULL, COL_TEXT, COL_DETAIL},
	{"class", NULL, COL_TEXT, COL_DETAIL},
	{"dscp", NULL, COL_NUMBER, COL_DETAIL},
	{"atomic", NULL, COL_TEXT, COL_DETAIL},
	{"prefetch", NULL, COL_TEXT, COL_DETAIL},
	{"prefetch-max-age-ms", NULL, COL_MS, COL_DETAIL},
	{"prefetch-range", NULL, COL_TEXT, COL_DETAIL},
	{"read-depth", NULL, COL_NUMBER, COL_DETAIL},
	{"seal", NULL, COL_TEXT, COL_DETAIL},
	{"custody-messages", NULL, COL_NUMBER, COL_DETAIL},
	{"custody-packets", NULL, COL_NUMBER, COL_DETAIL},
	{NULL, NULL, 0, 0},
};

static const struct column stats_columns[] = {
	{"group", "GROUP", COL_TEXT, COL_TABLE},
	{"name", "NAME", COL_TEXT, COL_TABLE},
	{"value", "VALUE", COL_NUMBER, COL_TABLE},
	{"per-second", "PER-SECOND", COL_NUMBER, COL_PRESENT},
	{"help", "MEANING", COL_TEXT, COL_TABLE},
	{NULL, NULL, 0, 0},
};

static const struct column status_columns[] = {
	{"name", "ALARM", COL_TEXT, COL_TABLE},
	{"level", "LEVEL", COL_TEXT, COL_TABLE},
	{"state", "STATE", COL_TEXT, COL_TABLE},
	{"peer", "PEER", COL_TEXT, COL_PRESENT},
	{"since-ms", "SINCE", COL_MS, COL_TABLE},
	{"ended-ms", "ENDED", COL_MS, COL_PRESENT},
	{"raised-count", "RAISED", COL_NUMBER, COL_TABLE},
	{"reason", "REASON", COL_TEXT, COL_PRESENT},
	{"mend", NULL, COL_TEXT, COL_DETAIL},
	{NULL, NULL, 0, 0},
};

const struct object objects[] = {
	{"qp", "learned pairs of queue pairs, and what is held for them", qp_columns, false, NULL,
	 true},
	{"lane", "each requester direction of the connections", lane_columns, false, NULL, false},
	{"peer", "the appliances at the other ends", peer_columns, false, NULL, false},
	{"port", "the interfaces: state, mode, frames, what passed or was dropped, and why",
	 port_columns, false, NULL, true},
	{"rule", "which traffic is wanted, and what is held for it", rule_columns, false, NULL,
	 false},
	{"stats", "counters; those that are not 0, or all with -d", stats_columns, true, "value",
	 false},
	{"status", "is all well, and if not, what to do; see the exit status", status_columns, true,
	 NULL, false},
	{NULL, NULL, NULL, false, NULL, false},
};

const struct object *object_find(const char *name)
{
	for (const struct object *o = objects; o->name; o++)
		if (!strcmp(o->name, name))
			return o;
	return NULL;
}

const struct column *column_find(const struct object *o, const char *key)
{
	for (const struct column *c = o->columns; c->key; c++)
		if (!strcmp(c->key, key))
			return c;
	return NULL;
}

/* Three digits and the first of @unit with which the number is below @step. */
static void scaled(double v, double step, const char *const *unit, char *buf)
{
	const char *first = *unit;

	while (v >= step && unit[1]) {
		v /= step;
		unit++;
	}
	if (*unit == first || v >= 100)
		snprintf(buf, COLUMN_TEXT, "%.0f%s", v, *unit);
	else
		snprintf(buf, COLUMN_TEXT, "%.1f%s", v, *unit);
}

/* @v in units of @small[0], of which @per_s make a second. */
static void duration(double v, double per_s, const char *const *small, char *buf)
{
	unsigned long long s = v / per_s;

	if (s < 60)
		scaled(v, 1000, small, buf);
	else if (s < 3600)
		snprintf(buf, COLUMN_TEXT, "%llum%02llus", s / 60, s % 60);
	else if (s < 86400)
		snprintf(buf, COLUMN_TEXT, "%lluh%02llum", s / 3600, s / 60 % 60);
	else
		snprintf(buf, COLUMN_TEXT, "%llud%02lluh", s / 86400, s / 3600 % 24);
}

/* A share in millionths as a percentage. */
static void percentage(json_int_t ppm, char *buf)
{
	if (ppm < 100)
		snprintf(buf, COLUMN_TEXT, "<0.01%%");
	else
		snprintf(buf, COLUMN_TEXT, "%.*f%%", ppm < 100000 ? 2 : 0, (double)ppm / 1e4);
}

static void integer_text(enum column_format f, json_int_t v, char *buf)
{
	static const char *const bytes[] = {"B", "K", "M", "G", "T", NULL};
	static const char *const rates[] = {"", "k", "M", "G", "T", NULL};
	static const char *const times[] = {"us", "ms", "s", NULL};

	if (!v && f != COL_HEX)
		f = COL_NUMBER;
	switch (f) {
	case COL_HEX:
		snprintf(buf, COLUMN_TEXT, "0x%llx", (unsigned long long)v);
		break;
	case COL_BYTES:
		scaled(v, 1024, bytes, buf);
		break;
	case COL_RATE:
		scaled(v, 1000, rates, buf);
		break;
	case COL_PPM:
		percentage(v, buf);
		break;
	case COL_MS:
		duration(v, 1e3, times + 1, buf);
		break;
	case COL_US:
		duration(v, 1e6, times, buf);
		break;
	default:
		snprintf(buf, COLUMN_TEXT, "%lld", (long long)v);
	}
}

const char *column_text(const struct column *c, const json_t *v, char *buf)
{
	if (json_is_string(v))
		snprintf(buf, COLUMN_TEXT, "%s", json_string_value(v));
	else if (json_is_integer(v))
		integer_text(c ? c->format : COL_NUMBER, json_integer_value(v), buf);
	else if (json_is_real(v))
		snprintf(buf, COLUMN_TEXT, "%g", json_real_value(v));
	else if (json_is_boolean(v))
		snprintf(buf, COLUMN_TEXT, "%s", json_is_true(v) ? "yes" : "no");
	else
		snprintf(buf, COLUMN_TEXT, "-");
	return buf;
}
