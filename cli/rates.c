// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/rates.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MSN_MASK 0xffffff

/* The rates, the counters that they are computed from, and the members that identify an object. */
static const struct {
	const char *object, *count, *rate;
	int factor;
} of[] = {
	{"qp", "out-bytes", "out-rate", 8},  {"qp", "in-bytes", "in-rate", 8},
	{"peer", "tx-bytes", "tx-rate", 8},  {"peer", "rx-bytes", "rx-rate", 8},
	{"port", "rx-bytes", "rx-rate", 8},  {"port", "tx-bytes", "tx-rate", 8},
	{"stats", "value", "per-second", 1},
};

static void name_of(const json_t *o, char *buf, size_t len)
{
	const char *group = json_string_value(json_object_get(o, "group"));
	const char *name = json_string_value(json_object_get(o, "name"));

	if (name)
		snprintf(buf, len, "%s %s", group ? group : "", name);
	else
		snprintf(buf, len, "%lld", (long long)json_integer_value(json_object_get(o, "id")));
}

static json_int_t number(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

/* Messages completed since, and the gain: how many of the near host's messages complete in one
 * round trip. A requester that waits for each would be so much slower without early ACKs. */
static void add_messages(const struct rates *r, json_t *o, const json_t *old)
{
	json_int_t out = (number(o, "out-msn") - number(old, "out-msn")) & MSN_MASK;
	json_int_t in = (number(o, "in-msn") - number(old, "in-msn")) & MSN_MASK;
	json_int_t rtt = number(o, "rtt-us");

	if (!json_is_integer(json_object_get(o, "out-msn")) ||
	    !json_is_integer(json_object_get(old, "out-msn")))
		return;
	/* half the circle in one interval is no growth: the connection was replaced */
	if (out > MSN_MASK / 2 || in > MSN_MASK / 2)
		return;
	json_object_set_new(o, "message-rate",
			    json_integer(llround((double)(out + in) / r->interval)));
	if (rtt > 0)
		json_object_set_new(
			o, "gain",
			json_real(round((double)out / r->interval * (double)rtt / 1e5) / 10));
}

static void compare(const struct rates *r, json_t *o, const json_t *old)
{
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		json_int_t grown = number(o, of[i].count) - number(old, of[i].count);

		if (strcmp(of[i].object, r->object->name) || grown < 0)
			continue;
		json_object_set_new(
			o, of[i].rate,
			json_integer(llround((double)grown * of[i].factor / r->interval)));
	}
	if (!strcmp(r->object->name, "qp")) {
		if (json_object_get(o, "out-rate") && json_object_get(o, "in-rate"))
			json_object_set_new(
				o, "rate",
				json_integer(number(o, "out-rate") + number(o, "in-rate")));
		add_messages(r, o, old);
	}
}

void rates_begin(struct rates *r, double now)
{
	json_decref(r->before);
	r->before = r->now;
	r->now = json_object();
	r->interval = now - r->at;
	r->at = now;
}

void rates_add(struct rates *r, json_t *o)
{
	char name[128];
	json_t *old;

	name_of(o, name, sizeof(name));
	old = json_object_get(r->before, name);
	if (old && r->interval > 0)
		compare(r, o, old);
	json_object_set(r->now, name, o);
}

void rates_end(struct rates *r)
{
	json_decref(r->before);
	json_decref(r->now);
	r->before = r->now = NULL;
}
