// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Whether a filter can match at all: a wrong value must not look like "nothing there". The form of
 * values is checked before the daemon is asked, names afterwards.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/client.h"
#include "cli/filter.h"

#define LANE_STATES "watch opening held drain fault"
#define POLICIES    "early honest off"
#define CLASSES_OF  "control data bulk"
#define LEARNED	    "none cm psn immediate peer echo"

/* Keys with a list of possible values. */
static const struct {
	const char *object, *key, *values;
} lists[] = {
	{"qp", "state", LANE_STATES},
	{"lane", "state", LANE_STATES},
	{"qp", "policy", POLICIES},
	{"lane", "policy", POLICIES},
	{"rule", "policy", POLICIES},
	{"rule", "class", CLASSES_OF},
	{"qp", "learned-by", LEARNED},
	{"lane", "direction", "out in"},
	{"lane", "role", "opener acceptor single"},
	{"peer", "state", "down up closed"},
	{"port", "state", "up backup down"},
	{"port", "side", "lan wan"},
	{"port", "xdp", "native generic"},
	{"port", "memory", "copy zero-copy"},
	{"status", "level", "warning critical"},
	{"status", "state", "raised ok"},
};

/* Keys with names as values. The names are in member @member of object @of. */
static const struct {
	const char *object, *key, *of, *member;
} names[] = {
	{"qp", "rule", "rule", "name"},	      {"lane", "rule", "rule", "name"},
	{"qp", "peer", "peer", "name"},	      {"lane", "peer", "peer", "name"},
	{"rule", "peer", "peer", "name"},     {"rule", "name", "rule", "name"},
	{"peer", "name", "peer", "name"},     {"port", "name", "port", "name"},
	{"stats", "group", "stats", "group"}, {"stats", "name", "stats", "name"},
	{"status", "name", "status", "name"},
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

bool filter_prefix(const char *text, int *family, unsigned char *bytes, unsigned int *bits)
{
	char addr[INET6_ADDRSTRLEN];
	const char *slash = strchr(text, '/');
	size_t len = slash ? (size_t)(slash - text) : strlen(text);
	unsigned int most;
	char *end;

	if (len >= sizeof(addr))
		return false;
	memcpy(addr, text, len);
	addr[len] = '\0';
	*family = strchr(addr, ':') ? AF_INET6 : AF_INET;
	*bits = most = *family == AF_INET6 ? 128 : 32;
	if (inet_pton(*family, addr, bytes) != 1)
		return false;
	if (!slash)
		return true;
	*bits = (unsigned int)strtoul(slash + 1, &end, 10);
	return end != slash + 1 && !*end && slash[1] != '-' && *bits <= most;
}

static bool is_address(const char *key)
{
	return !strcmp(key, "lan-ip") || !strcmp(key, "wan-ip") || !strcmp(key, "address");
}

/* What the names of @o are names of. */
static const char *kind_of(const struct object *o)
{
	if (!strcmp(o->name, "stats"))
		return "counter";
	return strcmp(o->name, "status") ? o->name : "alarm";
}

static bool is_number(const char *text)
{
	char *end;

	errno = 0;
	strtoll(text, &end, 0);
	return end != text && !*end && !errno;
}

static bool in_list(const char *values, const char *word)
{
	size_t len = strlen(word);

	for (const char *p = values; *p; p += strcspn(p, " "), p += *p == ' ')
		if (strcspn(p, " ") == len && !strncmp(p, word, len))
			return true;
	return false;
}

const char *filter_choices(const struct object *o, const char *key)
{
	for (size_t i = 0; i < COUNT(lists); i++)
		if (!strcmp(lists[i].object, o->name) && !strcmp(lists[i].key, key))
			return lists[i].values;
	return NULL;
}

int filter_values(const struct object *o, const struct filter *f, char *err, size_t errlen)
{
	for (unsigned int i = 0; i < f->n; i++) {
		const char *key = f->pair[i].key, *value = f->pair[i].value;
		const char *choices = filter_choices(o, key);
		const struct column *c = column_find(o, key);
		unsigned char bytes[16];
		unsigned int bits;
		int family;

		if (!strcmp(value, "-"))
			continue;
		if (choices && !in_list(choices, value))
			snprintf(err, errlen, "%s is one of: %s; not '%.40s'", key, choices, value);
		else if (is_address(key) && !filter_prefix(value, &family, bytes, &bits))
			snprintf(err, errlen,
				 "%s is an address or a prefix such as 10.1.0.0/16, not '%.40s'",
				 key, value);
		else if (c && c->format != COL_TEXT && !is_number(value))
			snprintf(err, errlen,
				 "%s is a number, decimal or hexadecimal with 0x, not '%.40s'", key,
				 value);
		else
			continue;
		return -1;
	}
	return 0;
}

/* Add @word to the list in @buf, once. */
static void add_word(char *buf, size_t len, const char *word)
{
	size_t used = strlen(buf);

	if (!in_list(buf, word) && used + strlen(word) + 2 < len)
		snprintf(buf + used, len - used, "%s%s", used ? " " : "", word);
}

/* Whether some object of @all has @value as its @member; if not, @list gets the values that there
 * are. */
static bool anybody(const json_t *all, const char *member, const char *value, char *list,
		    size_t len)
{
	json_t *o;
	size_t i;

	list[0] = '\0';
	json_array_foreach (all, i, o) {
		const char *name = json_string_value(json_object_get(o, member));

		if (name && !strcmp(name, value))
			return true;
		if (name)
			add_word(list, len, name);
	}
	return false;
}

int filter_known(const struct object *o, const struct filter *f, const char *socket, char *err,
		 size_t errlen)
{
	char request[32], list[400];
	int rc = 0;

	for (unsigned int i = 0; i < f->n && !rc; i++) {
		const char *key = f->pair[i].key, *value = f->pair[i].value;

		for (size_t k = 0; k < COUNT(names) && !rc; k++) {
			json_t *all;

			if (strcmp(names[k].object, o->name) || strcmp(names[k].key, key) ||
			    !strcmp(value, "-"))
				continue;
			snprintf(request, sizeof(request), "%s-show", names[k].of);
			all = client_collect(socket, request, err, errlen);
			if (!all)
				return -1;
			if (!anybody(all, names[k].member, value, list, sizeof(list))) {
				snprintf(err, errlen, "there is no %s '%.40s'; there are: %s",
					 strcmp(key, "name") ? key : kind_of(o), value,
					 *list ? list : "none");
				rc = -1;
			}
			json_decref(all);
		}
	}
	return rc;
}
