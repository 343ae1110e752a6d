// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/complete.h"

#include <string.h>

#include "cli/client.h"
#include "cli/command.h"
#include "cli/filter.h"

#define VALUES_MAX 500 /* longer lists are of no use */

/**
 * struct values - values found so far.
 * @filter: pairs before the key
 * @key:    the values' key
 * @seen:   an object with each value as a key
 */
struct values {
	struct filter filter;
	const char *key;
	json_t *seen;
	FILE *f;
};

/* As a filter accepts it: numbers unscaled, "-" for none. */
static void value_word(const json_t *v, char *buf, size_t len)
{
	if (json_is_string(v))
		snprintf(buf, len, "%s", json_string_value(v));
	else if (json_is_integer(v))
		snprintf(buf, len, "%lld", (long long)json_integer_value(v));
	else
		snprintf(buf, len, "-");
}

/* The shell splits at blanks, so a text with blanks cannot be offered. */
static bool is_word(const char *s)
{
	if (!*s)
		return false;
	for (; *s; s++)
		if ((unsigned char)*s <= ' ' || *s == 0x7f)
			return false;
	return true;
}

static void take(void *ctx, json_t *object)
{
	struct values *v = ctx;
	char word[128];

	if (json_object_size(v->seen) >= VALUES_MAX || !filter_match(&v->filter, object))
		return;
	value_word(json_object_get(object, v->key), word, sizeof(word));
	if (!is_word(word) || json_object_get(v->seen, word))
		return;
	json_object_set_new(v->seen, word, json_true());
	fprintf(v->f, "%s\n", word);
}

void complete_values(const char *socket, int argc, char **argv, FILE *f)
{
	struct values v = {.f = f};
	char err[1024], request[64];
	const struct command *c;
	struct filter last;
	bool named, bare;
	int used;

	if (argc == 2 && !strcmp(argv[1], "host") &&
	    (c = command_find(1, argv, &used, err, sizeof(err))) && c->run == run_doctor) {
		complete_values(socket, 2, (char *[]){"qp", "lan-ip"}, f);
		return;
	}
	c = argc ? command_find(argc, argv, &used, err, sizeof(err)) : NULL;
	if (!c || !c->object)
		return;
	/* the first word may be a name, with the pairs after it */
	named = argc > used && filter_is_name(c->object, argv[used]);
	bare = argc == used && column_find(c->object, "name");
	if (!bare && (argc - used - named) % 2 == 0)
		return;
	/* a filter needs a value after each key; the last key is only looked up */
	if (filter_parse(c->object, bare ? 0 : argc - used - 1, argv + used, &v.filter, err,
			 sizeof(err)) ||
	    filter_parse(c->object, 2, (char *[]){bare ? "name" : argv[argc - 1], "-"}, &last, err,
			 sizeof(err)))
		return;
	v.key = last.pair[0].key;
	v.seen = json_object();
	snprintf(request, sizeof(request), "%s-%s", c->object->name, c->verb);
	if (v.seen)
		(void)client_request(socket, request, take, &v, err, sizeof(err));
	json_decref(v.seen);
}
