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

/** filter_parse - pairs of words; keys may be shortened. 0, or -1 with one line in @err. */
int filter_parse(const struct object *o, int argc, char **argv, struct filter *f, char *err,
		 size_t errlen);

/** filter_match - numbers compare as numbers (decimal or 0x hexadecimal), addresses as addresses,
 * "-" with a value that is absent, all else as text. */
bool filter_match(const struct filter *f, const json_t *object);

#endif
