// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/filter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The key that @word names or abbreviates; NULL with a line in @err when there is none or several.
 */
static const char *find_key(const struct object *o, const char *word, char *err, size_t errlen)
{
	const char *found = NULL;
	size_t used;

	for (const struct column *c = o->columns; c->key; c++) {
		if (!strcmp(c->key, word))
			return c->key;
		if (!*word || strncmp(c->key, word, strlen(word)))
			continue;
		if (found) {
			snprintf(err, errlen, "'%.40s' may mean %s or %s; write more of it", word,
				 found, c->key);
			return NULL;
		}
		found = c->key;
	}
	if (found)
		return found;
	used = snprintf(err, errlen, "%s has no '%.40s'; it has", o->name, word);
	for (const struct column *c = o->columns; c->key && used < errlen; c++)
		used += snprintf(err + used, errlen - used, " %s", c->key);
	return NULL;
}

bool filter_is_name(const struct object *o, const char *word)
{
	char err[1024];

	return column_find(o, "name") && !find_key(o, word, err, sizeof(err));
}

int filter_parse(const struct object *o, int argc, char **argv, struct filter *f, char *err,
		 size_t errlen)
{
	f->n = 0;
	if (argc % 2 && filter_is_name(o, argv[0])) {
		f->pair[f->n].key = "name";
		f->pair[f->n++].value = argv[0];
		argc--, argv++;
	}
	for (int i = 0; i < argc; i += 2) {
		const char *key = find_key(o, argv[i], err, errlen);

		if (!key)
			return -1;
		if (i + 1 == argc) {
			snprintf(err, errlen, "no value after '%s'; write KEY VALUE", argv[i]);
			return -1;
		}
		if (f->n == FILTER_MAX) {
			snprintf(err, errlen, "more than %d pairs of KEY VALUE", FILTER_MAX);
			return -1;
		}
		f->pair[f->n].key = key;
		f->pair[f->n++].value = argv[i + 1];
	}
	return filter_values(o, f, err, errlen);
}

static bool same_number(json_int_t v, const char *text)
{
	char *end;
	long long n;

	errno = 0;
	n = strtoll(text, &end, 0);
	return end != text && !*end && !errno && n == v;
}

bool filter_address(const char *a, const char *text)
{
	unsigned char x[16], y[16];
	unsigned int bits, bytes;
	int family;

	if (!filter_prefix(text, &family, y, &bits) || inet_pton(family, a, x) != 1)
		return false;
	bytes = bits / 8;
	return !memcmp(x, y, bytes) &&
	       (bits % 8 == 0 || !((x[bytes] ^ y[bytes]) >> (8 - bits % 8)));
}

static bool same(const json_t *v, const char *text)
{
	if (json_is_string(v))
		return !strcmp(json_string_value(v), text) ||
		       filter_address(json_string_value(v), text);
	if (json_is_integer(v))
		return same_number(json_integer_value(v), text);
	return (!v || json_is_null(v)) && !strcmp(text, "-");
}

bool filter_match(const struct filter *f, const json_t *object)
{
	for (unsigned int i = 0; i < f->n; i++)
		if (!same(json_object_get(object, f->pair[i].key), f->pair[i].value))
			return false;
	return true;
}

int filter_columns(const struct object *o, const char *list, const struct column **chosen,
		   unsigned int max, char *err, size_t errlen)
{
	unsigned int n = 0;
	char word[64];

	chosen[0] = NULL;
	if (list && !*list) {
		snprintf(err, errlen, "-c takes members, commas between, such as lan-ip,rate");
		return -1;
	}
	while (list && *list) {
		size_t len = strcspn(list, ",");
		const char *key;

		snprintf(word, sizeof(word), "%.*s", (int)(len < sizeof(word) ? len : 63), list);
		list += len + (list[len] == ',');
		key = find_key(o, word, err, errlen);
		if (!key)
			return -1;
		if (n == max) {
			snprintf(err, errlen, "more than %u columns", max);
			return -1;
		}
		chosen[n++] = column_find(o, key);
		chosen[n] = NULL;
	}
	return 0;
}
