/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For tests of the configuration file: a text is parsed into cfg, what is wrong in it is in errs.
 */
#ifndef TESTS_UNIT_CONFIG_TEXT_H
#define TESTS_UNIT_CONFIG_TEXT_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include <cmocka.h>

#include "config/config.h"

#define SEC 1000000000ull

static struct config cfg;
static struct config_errors errs;

static inline int parse_bytes(const void *text, size_t len)
{
	FILE *f = tmpfile();
	int rc;

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	rewind(f);
	rc = config_parse(f, "t.conf", &cfg, &errs);
	fclose(f);
	return rc;
}

static inline int parse(const char *text)
{
	return parse_bytes(text, strlen(text));
}

/* Lines 1 to 3 of most cases, and a rule (lines 4 to 7) of others; its lines but for the policy. */
#define HEAD "[longhaul]\nlan = l0\nwan = w0\n"
#define BARE "[rule r]\nlan = 10.1.0.0/16\nwan = 10.2.0.0/16\n"
#define RULE BARE "policy = early\n"

#define PAIR	  RULE "peer = p\n"
#define BARE_PAIR BARE "peer = p\n"
#define PEER	  "[peer p]\naddress = ::1\nkey-file = /k\n"

#endif
