/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * KEY VALUE words behind an object: which rows to show.
 */
#ifndef LONGHAUL_CLI_FILTER_H
#define LONGHAUL_CLI_FILTER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/object.h"

#define FILTER_MAX 16

/** struct filter - @n pairs that a row must all match; the values are the caller's words. */
struct filter {
	struct {
		const char *key, *value;
	} pair[FILTER_MAX];
	unsigned int n;
};

/** filter_is_name - whether @word, behind @o, is the name of one of them: no key is meant by it. */
bool filter_is_name(const struct object *o, const char *word);

/** filter_parse - pairs of words, and before them a name alone (`peer edge-b'); keys may be
 * shortened. 0, or -1 with one line in @err. */
int filter_parse(const struct object *o, int argc, char **argv, struct filter *f, char *err,
		 size_t errlen);

/** filter_columns - the columns that @list names, commas between, into @chosen, with a NULL behind
 * them; @max of them and the NULL have room. 0, or -1 with one line in @err. */
int filter_columns(const struct object *o, const char *list, const struct column **chosen,
		   unsigned int max, char *err, size_t errlen);

/** filter_prefix - "10.1.0.5", "10.1.0.0/16" or the like of IPv6: its family, up to 16 bytes, and
 * how many bits of them count. */
bool filter_prefix(const char *text, int *family, unsigned char *bytes, unsigned int *bits);

/** filter_match - numbers compare as numbers (decimal or 0x hexadecimal), addresses as addresses
 * or against a prefix (10.1.0.0/16), "-" with a value that is absent, all else as text. */
bool filter_match(const struct filter *f, const json_t *object);

/** filter_values - 0, or -1 with one line in @err: a value that its key can never have. */
int filter_values(const struct object *o, const struct filter *f, char *err, size_t errlen);

/** filter_choices - the values that key @key of @o can have, blanks between them; NULL when they
 * are not a list. */
const char *filter_choices(const struct object *o, const char *key);

/**
 * filter_known - after a look that found nothing: 0 when the values of @f could be there, -1 with
 * one line in @err when the daemon knows no such name (rule, peer, counter, alarm).
 */
int filter_known(const struct object *o, const struct filter *f, const char *socket, char *err,
		 size_t errlen);

#endif
