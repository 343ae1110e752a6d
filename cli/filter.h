/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * KEY VALUE words after an object: which rows to show.
 */
#ifndef LONGHAUL_CLI_FILTER_H
#define LONGHAUL_CLI_FILTER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/object.h"

#define FILTER_MAX 16

/** struct filter - @n pairs, all of which a row must match; the values point to the caller's words.
 */
struct filter {
	struct {
		const char *key, *value;
	} pair[FILTER_MAX];
	unsigned int n;
};

/** filter_is_name - whether @word, after @o, is the name of an object, not a key. */
bool filter_is_name(const struct object *o, const char *word);

/** filter_parse - pairs of words, optionally after a name (`peer edge-b'); keys may be shortened.
 * 0, or -1 with one line in @err. */
int filter_parse(const struct object *o, int argc, char **argv, struct filter *f, char *err,
		 size_t errlen);

/** filter_columns - the columns in @list, separated by commas, into @chosen, with a NULL after
 * them; there is room for @max and the NULL. 0, or -1 with one line in @err. */
int filter_columns(const struct object *o, const char *list, const struct column **chosen,
		   unsigned int max, char *err, size_t errlen);

/** filter_prefix - parse "10.1.0.5", "10.1.0.0/16" or the same of IPv6: its family, up to 16 bytes,
 * and how many bits of them count. */
bool filter_prefix(const char *text, int *family, unsigned char *bytes, unsigned int *bits);

/** filter_address - whether address @a lies in @text, an address or a prefix of the same family. */
bool filter_address(const char *a, const char *text);

/** filter_match - numbers compare as numbers (decimal or 0x hexadecimal), addresses as addresses or
 * against a prefix (10.1.0.0/16), "-" matches an absent value, all else compares as text. */
bool filter_match(const struct filter *f, const json_t *object);

/** filter_values - 0, or -1 with one line in @err: the key can never have the value. */
int filter_values(const struct object *o, const struct filter *f, char *err, size_t errlen);

/** filter_choices - the values that key @key of @o can have, separated by blanks; NULL without such
 * a list. */
const char *filter_choices(const struct object *o, const char *key);

/**
 * filter_known - if nothing matched: 0 when the values of @f are possible, -1 with one line in @err
 * when the daemon has no such name (rule, peer, counter, alarm).
 */
int filter_known(const struct object *o, const struct filter *f, const char *socket, char *err,
		 size_t errlen);

#endif
