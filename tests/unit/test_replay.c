// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * longhauld --replay: the right pairs out of captures, and plain words about files that are none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "daemon/replay.h"

static const char *data_path(const char *name)
{
	static char path[512];
	const char *dir = getenv("TEST_DATA");

	snprintf(path, sizeof(path), "%s/%s", dir ? dir : "tests/data", name);
	return path;
}

static json_t *replay(const char *name, char **note)
{
	char *text = NULL, err[256];
	size_t len, note_len;
	FILE *f = open_memstream(&text, &len), *n = open_memstream(note, &note_len);
	json_t *all;

	if (replay_run(data_path(name), true, f, n, err, sizeof(err)))
		fail_msg("%s", err);
	fclose(f);
	fclose(n);
	all = json_loads(text, 0, NULL);
	assert_true(json_is_array(all));
	free(text);
	return all;
}

static const struct {
	const char *file, *lan, *wan, *learned, *note;
	unsigned int lqpn, rqpn, path_mtu, pairs;
} pairs[] = {
	{"bidir-2qp.pcap", "10.98.0.1", "10.98.0.2", "psn", "200 frames, 200 of them RoCEv2\n",
	 0x16, 0x16, 1024, 2},
	{"cm-rping.pcap", "10.98.0.1", "10.98.0.2", "cm", "41 frames, 41 of them RoCEv2\n", 0x18,
	 0x18, 4096, 1},
	{"write.pcap", "10.98.0.1", "10.98.0.2", "psn", "170 frames, 170 of them RoCEv2\n", 0x12,
	 0x12, 1024, 1},
	{"write-v6.pcap", "fe80::5054:ff:fe00:1", "fe80::5054:ff:fe00:2", "psn",
	 "85 frames, 85 of them RoCEv2\n", 0x11, 0x11, 1024, 1},
	{"send-mtu4096.pcap", "10.98.0.1", "10.98.0.2", "psn", "50 frames, 50 of them RoCEv2\n",
	 0x14, 0x14, 4096, 1},
};

static void test_pairs(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		char *note = NULL;
		json_t *all = replay(pairs[i].file, &note), *o = json_array_get(all, 0);

		assert_int_equal(json_array_size(all), pairs[i].pairs);
		assert_string_equal(json_string_value(json_object_get(o, "lan-ip")), pairs[i].lan);
		assert_string_equal(json_string_value(json_object_get(o, "wan-ip")), pairs[i].wan);
		assert_string_equal(json_string_value(json_object_get(o, "learned-by")),
				    pairs[i].learned);
		assert_string_equal(json_string_value(json_object_get(o, "state")), "watch");
		assert_int_equal(json_integer_value(json_object_get(o, "lqpn")), pairs[i].lqpn);
		assert_int_equal(json_integer_value(json_object_get(o, "rqpn")), pairs[i].rqpn);
		assert_int_equal(json_integer_value(json_object_get(o, "path-mtu")),
				 pairs[i].path_mtu);
		assert_true(json_integer_value(json_object_get(o, "requests")) > 0);
		assert_null(json_object_get(o, "note"));
		assert_string_equal(note, pairs[i].note);
		json_decref(all);
		free(note);
	}
}

/* Services without a connection leave the table empty. */
static void test_others(void **state)
{
	char *note = NULL;

	(void)state;
	for (int i = 0; i < 2; i++) {
		json_t *all = replay(i ? "ud.pcap" : "uc.pcap", &note);

		assert_int_equal(json_array_size(all), 0);
		json_decref(all);
		free(note);
	}
}

/* READs and the beginnings of their answers bear the same PSN, too. */
static void test_reads(void **state)
{
	char *note = NULL;
	json_t *all = replay("read.pcap", &note), *o;
	size_t i;

	(void)state;
	assert_int_equal(json_array_size(all), 1);
	json_array_foreach (all, i, o) {
		assert_string_equal(json_string_value(json_object_get(o, "learned-by")), "psn");
	}
	json_decref(all);
	free(note);
}

static void test_text(void **state)
{
	char *text = NULL, err[256];
	FILE *null = fopen("/dev/null", "w"), *f;
	size_t len;

	(void)state;
	f = open_memstream(&text, &len);
	assert_int_equal(replay_run(data_path("cm-rping.pcap"), false, f, null, err, sizeof(err)),
			 0);
	fclose(f);
	fclose(null);
	assert_int_equal(
		strncmp(text,
			"LAN-IP     LQPN  WAN-IP     RQPN  LEARNED-BY  STATE  PATH-MTU  REQUESTS\n"
			"10.98.0.1  0x18  10.98.0.2  0x18  cm          watch      4096 ",
			131),
		0);
	free(text);
}

static void test_bad_files(void **state)
{
	static const char *const bad[] = {"/nonexistent.pcap", "/dev/null", "Makefile", "/"};
	FILE *null = fopen("/dev/null", "w");
	char err[256];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		err[0] = '\0';
		assert_true(replay_run(bad[i], true, null, null, err, sizeof(err)) < 0);
		assert_non_null(strstr(err, bad[i]));
		assert_null(strchr(err, '\n'));
	}
	fclose(null);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pairs),	  cmocka_unit_test(test_others),
		cmocka_unit_test(test_reads),	  cmocka_unit_test(test_text),
		cmocka_unit_test(test_bad_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
