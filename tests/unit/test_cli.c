// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The tool: words to commands and filters, completion, keys made.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/command.h"
#include "cli/filter.h"
#include "peer/key.h"
#include "tests/unit/temp_dir.h"

#define WORDS(...) ((char *[]){__VA_ARGS__, NULL})

/* Find the command of @words; "qp/2" is object qp named by two words, "!" an error with @err
 * filled. */
static const char *found(char **words, char *err, size_t errlen)
{
	static char buf[64];
	const struct command *c;
	int n = 0, used;

	while (words[n])
		n++;
	c = command_find(n, words, &used, err, errlen);
	if (!c)
		return "!";
	snprintf(buf, sizeof(buf), "%s/%d", c->object ? c->object->name : c->name, used);
	return buf;
}

static void test_words(void **state)
{
	char err[256];

	(void)state;
	assert_string_equal(found(WORDS("qp"), err, sizeof(err)), "qp/1");
	assert_string_equal(found(WORDS("qp", "show"), err, sizeof(err)), "qp/2");
	assert_string_equal(found(WORDS("q", "s"), err, sizeof(err)), "qp/2");
	assert_string_equal(found(WORDS("l"), err, sizeof(err)), "lane/1");
	assert_string_equal(found(WORDS("pee", "sho"), err, sizeof(err)), "peer/2");
	assert_string_equal(found(WORDS("ru"), err, sizeof(err)), "rule/1");
	assert_string_equal(found(WORDS("stats"), err, sizeof(err)), "stats/1");
	assert_string_equal(found(WORDS("statu"), err, sizeof(err)), "status/1");
	assert_string_equal(found(WORDS("stat"), err, sizeof(err)), "!");
	assert_string_equal(err, "'stat' may mean stats or status; write more of it");
	assert_string_equal(found(WORDS("k", "show"), err, sizeof(err)), "keygen/1");
	assert_string_equal(found(WORDS("help"), err, sizeof(err)), "help/1");
	/* a filter's first word is no verb */
	assert_string_equal(found(WORDS("qp", "lan-ip", "10.0.0.1"), err, sizeof(err)), "qp/1");
	assert_string_equal(found(WORDS("qp", ""), err, sizeof(err)), "qp/1");

	assert_string_equal(found(WORDS("x"), err, sizeof(err)), "!");
	assert_string_equal(
		err, "unknown object 'x'; there are qp, lane, peer, port, rule, stats, status, "
		     "doctor, top, "
		     "monitor, release, bypass, reload, clear, capture, bundle, plan, keygen, "
		     "help");
	assert_string_equal(found(WORDS(""), err, sizeof(err)), "!");
	assert_string_equal(found(WORDS("qps"), err, sizeof(err)), "!");
}

/* What stands in help and completion is the table; every object is there. */
static void test_help_and_completion(void **state)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	command_help(f);
	fflush(f);
	for (const struct object *o = objects; o->name; o++) {
		assert_non_null(strstr(text, o->name));
		assert_non_null(strstr(text, o->help));
	}
	assert_null(strstr(text, "complete"));
	rewind(f);
	command_complete(0, NULL, f);
	fputc('\0', f);
	fflush(f);
	assert_string_equal(
		text,
		"qp\nlane\npeer\nport\nrule\nstats\nstatus\ndoctor\ntop\nmonitor\nrelease\nbypass\n"
		"reload\nclear\ncapture\nbundle\nplan\nkeygen\nhelp\n");
	rewind(f);
	command_complete(1, WORDS("stats"), f);
	fputc('\0', f);
	fflush(f);
	assert_string_equal(text, "show\ngroup\nname\nvalue\nper-second\nhelp\n");
	rewind(f);
	command_complete(3, WORDS("stats", "show", "group"), f);
	fputc('\0', f);
	fflush(f);
	assert_string_equal(text, "");
	rewind(f);
	command_complete(2, WORDS("lane", "direction"), f);
	fputc('\0', f);
	fflush(f);
	assert_string_equal(text, "out\nin\n");
	rewind(f);
	command_complete(1, WORDS("bypass"), f);
	fputc('\0', f);
	fflush(f);
	assert_string_equal(text, "on\noff\n");
	rewind(f);
	command_complete(1, WORDS("doctor"), f);
	fputc('\0', f);
	fflush(f);
	assert_string_equal(text, "host\n");
	rewind(f);
	command_complete(2, WORDS("bypass", "on"), f);
	fputc('\0', f);
	fflush(f);
	assert_int_equal(strncmp(text, "all\nlan-ip\n", 11), 0);
	rewind(f);
	command_complete(3, WORDS("capture", "x.pcapng", "state"), f);
	fputc('\0', f);
	fflush(f);
	assert_string_equal(text, "watch\nopening\nheld\ndrain\nfault\n");
	fclose(f);
	free(text);
}

static bool matches(const char *object, const char *key, const char *value)
{
	json_t *o = json_loads(object, 0, NULL);
	struct filter f;
	char err[512];
	bool yes;

	assert_non_null(o);
	assert_int_equal(filter_parse(object_find("qp"), 2, WORDS((char *)key, (char *)value), &f,
				      err, sizeof(err)),
			 0);
	yes = filter_match(&f, o);
	json_decref(o);
	return yes;
}

static void test_filter(void **state)
{
	static const char qp[] = "{\"lan-ip\":\"10.1.0.5\",\"wan-ip\":\"2001:db8::7\",\"lqpn\":17,"
				 "\"vlan\":null,\"state\":\"held\"}";
	struct filter f;
	char err[1024];
	json_t *o;

	(void)state;
	assert_true(matches(qp, "lan-ip", "10.1.0.5"));
	assert_false(matches(qp, "lan-ip", "10.1.0.50"));
	assert_true(matches(qp, "wan", "2001:DB8:0::7"));
	assert_true(matches(qp, "lqpn", "17"));
	assert_true(matches(qp, "lq", "0x11"));
	assert_true(matches(qp, "lan-ip", "10.1.0.0/16"));
	assert_true(matches(qp, "lan-ip", "10.1.0.4/31"));
	assert_false(matches(qp, "lan-ip", "10.1.0.6/31"));
	assert_true(matches(qp, "wan-ip", "2001:db8::/33"));
	assert_false(matches(qp, "wan-ip", "10.0.0.0/0"));
	assert_true(matches(qp, "wan-ip", "::/0"));
	assert_true(matches(qp, "vlan", "-"));
	assert_true(matches(qp, "note", "-"));
	assert_false(matches(qp, "state", "-"));
	assert_true(matches(qp, "state", "held"));

	o = json_loads(qp, 0, NULL);
	assert_int_equal(filter_parse(object_find("qp"), 4, WORDS("state", "held", "lqpn", "18"),
				      &f, err, sizeof(err)),
			 0);
	assert_false(filter_match(&f, o));
	assert_int_equal(filter_parse(object_find("qp"), 0, NULL, &f, err, sizeof(err)), 0);
	assert_true(filter_match(&f, o));
	json_decref(o);

	assert_int_equal(filter_parse(object_find("qp"), 1, WORDS("state"), &f, err, sizeof(err)),
			 -1);
	assert_string_equal(err, "no value after 'state'; write KEY VALUE");
	/* a name alone, before pairs; what may be a key is none */
	assert_int_equal(
		filter_parse(object_find("peer"), 1, WORDS("edge-b"), &f, err, sizeof(err)), 0);
	assert_int_equal(f.n, 1);
	assert_string_equal(f.pair[0].key, "name");
	assert_string_equal(f.pair[0].value, "edge-b");
	assert_int_equal(filter_parse(object_find("rule"), 3, WORDS("storage", "policy", "early"),
				      &f, err, sizeof(err)),
			 0);
	assert_int_equal(f.n, 2);
	assert_string_equal(f.pair[1].key, "policy");
	assert_int_equal(filter_parse(object_find("peer"), 1, WORDS("state"), &f, err, sizeof(err)),
			 -1);
	assert_string_equal(err, "no value after 'state'; write KEY VALUE");
	assert_int_equal(filter_parse(object_find("qp"), 1, WORDS("edge-b"), &f, err, sizeof(err)),
			 -1);
	assert_int_equal(
		filter_parse(object_find("peer"), 2, WORDS("edge-b", "up"), &f, err, sizeof(err)),
		-1);
	assert_int_equal(
		filter_parse(object_find("qp"), 2, WORDS("foo", "1"), &f, err, sizeof(err)), -1);
	assert_non_null(strstr(err, "qp has no 'foo'; it has lan-ip lqpn"));
	assert_int_equal(filter_parse(object_find("qp"), 2, WORDS("p", "1"), &f, err, sizeof(err)),
			 -1);
	assert_string_equal(err, "'p' may mean policy or peer; write more of it");
}

/* A value that no row can have is an error, not an empty table. */
static void test_filter_values(void **state)
{
	static const struct {
		const char *object, *key, *value, *error;
	} bad[] = {
		{"qp", "lqpn", "17x",
		 "lqpn is a number, decimal or hexadecimal with 0x, not '17x'"},
		{"qp", "lqpn", "", "lqpn is a number"},
		{"qp", "lan-ip", "10.1.0", "lan-ip is an address or a prefix"},
		{"qp", "lan-ip", "10.1.0.0/33", "lan-ip is an address or a prefix"},
		{"qp", "lan-ip", "10.1.0.0/-1", "lan-ip is an address or a prefix"},
		{"qp", "wan-ip", "2001:db8::/129", "wan-ip is an address or a prefix"},
		{"qp", "state", "helt",
		 "state is one of: watch opening held drain fault; not 'helt'"},
		{"qp", "state", "", "state is one of"},
		{"qp", "policy", "fast", "policy is one of: early honest off"},
		{"rule", "class", "fast", "class is one of: control data bulk"},
		{"lane", "direction", "up", "direction is one of: out in"},
		{"peer", "state", "gone", "state is one of: down up closed"},
		{"status", "level", "bad", "level is one of: warning critical"},
		{"stats", "value", "many", "value is a number"},
	};
	struct filter f;
	char err[512];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(filter_parse(object_find(bad[i].object), 2,
					      WORDS((char *)bad[i].key, (char *)bad[i].value), &f,
					      err, sizeof(err)),
				 -1);
		if (!strstr(err, bad[i].error))
			fail_msg("expected \"%s\" in \"%s\"", bad[i].error, err);
	}
	assert_int_equal(
		filter_parse(object_find("qp"), 2, WORDS("vlan", "-"), &f, err, sizeof(err)), 0);
}

static void test_keygen(void **state)
{
	uint8_t key[PEER_KEY_LEN], again[PEER_KEY_LEN];
	struct options opt = {0};
	char path[64], err[256];
	struct stat st;

	(void)state;
	snprintf(path, sizeof(path), "%s/key", dir);
	assert_int_equal(run_keygen(NULL, &opt, 1, WORDS(path)), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(key_read(path, key, err, sizeof(err)), 0);
	/* never overwritten */
	assert_int_equal(run_keygen(NULL, &opt, 1, WORDS(path)), 1);
	assert_int_equal(key_read(path, again, err, sizeof(err)), 0);
	assert_memory_equal(key, again, sizeof(key));
	unlink(path);
	assert_int_equal(run_keygen(NULL, &opt, 1, WORDS("/nonexistent/key")), 1);
	assert_int_equal(run_keygen(NULL, &opt, 2, WORDS(path, path)), 1);
	assert_int_equal(stat(path, &st), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),  cmocka_unit_test(test_help_and_completion),
		cmocka_unit_test(test_filter), cmocka_unit_test(test_filter_values),
		cmocka_unit_test(test_keygen),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
