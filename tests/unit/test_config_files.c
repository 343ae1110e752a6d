// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The configuration in files: what cannot be read, what is included, and the sample.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/config_text.h"
#include "tests/unit/temp_dir.h"

static void test_files(void **state)
{
	(void)state;
	assert_int_not_equal(config_load("/nonexistent/longhaul.conf", &cfg, &errs), 0);
	assert_string_equal(
		errs.text[0],
		"/nonexistent/longhaul.conf: cannot be opened: No such file or directory; name the "
		"file with -c, or copy the sample longhaul.conf there");
	assert_int_not_equal(config_load("/", &cfg, &errs), 0);
	assert_non_null(strstr(errs.text[0], "Is a directory"));
}

static void write_file(const char *name, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int load(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return config_load(path, &cfg, &errs);
}

/* Another user's file is there, and a copy of the sample is no mend. */
static void test_no_access(void **state)
{
	char path[128];
	uid_t was = geteuid();

	(void)state;
	snprintf(path, sizeof(path), "%s/own.conf", dir);
	write_file("own.conf", "");
	assert_int_equal(chmod(path, 0), 0);
	assert_int_equal(was ? 0 : seteuid(65534), 0);
	assert_int_not_equal(load("own.conf"), 0);
	assert_int_equal(seteuid(was), 0);
	assert_non_null(strstr(errs.text[0], "Permission denied; run as root"));
	unlink(path);
}

/* The first message, without the folder. */
static const char *said(void)
{
	assert_int_equal(strncmp(errs.text[0], dir, strlen(dir)), 0);
	return errs.text[0] + strlen(dir) + 1;
}

#define EDGE_C "[peer c]\naddress = 192.0.2.3\nkey-file = /k\n"
#define TO_C   "[rule to-c]\nlan = 10.1.0.0/16\nwan = 10.3.0.0/16\npolicy = early\npeer = c\n"

/* Peers and rules in files of a folder beside, in the order of their names; each complaint names
 * the file that it is about. */
static void test_include(void **state)
{
	char sub[128];

	(void)state;
	snprintf(sub, sizeof(sub), "%s/conf.d", dir);
	assert_int_equal(mkdir(sub, 0700), 0);
	write_file("a.conf", HEAD "include = conf.d/*.conf\n" RULE);
	assert_int_equal(load("a.conf"), 0); /* an empty folder is fine */
	assert_int_equal(cfg.nrules, 1);
	/* the rule's peer stands in a later file */
	write_file("conf.d/1.conf", TO_C);
	write_file("conf.d/2.conf", EDGE_C);
	write_file("conf.d/2.conf.old", "nonsense");
	assert_int_equal(load("a.conf"), 0);
	assert_int_equal(cfg.nrules, 2);
	assert_string_equal(cfg.rules[1].name, "to-c");
	assert_int_equal(cfg.rules[1].peer, 0);
	assert_string_equal(cfg.peers[0].name, "c");

	write_file("conf.d/2.conf", EDGE_C "colour = blue\n");
	assert_int_not_equal(load("a.conf"), 0);
	assert_string_equal(said(), "conf.d/2.conf:4: unknown key 'colour' in [peer c]; "
				    "longhaul.conf(5) lists the keys");
	write_file("conf.d/2.conf", EDGE_C TO_C);
	assert_int_not_equal(load("a.conf"), 0);
	assert_non_null(strstr(said(), "conf.d/2.conf:4: second rule 'to-c', the first is at "));
	assert_non_null(strstr(said(), "conf.d/1.conf:1; rename or join them"));
	write_file("conf.d/2.conf", EDGE_C "[longhaul]\nwan-rate = 1G\n");
	assert_int_not_equal(load("a.conf"), 0);
	assert_non_null(strstr(said(), "conf.d/2.conf:4: [longhaul] in an included file"));
	/* what is known at the end only is said of the right file, too */
	write_file("conf.d/2.conf", "");
	assert_int_not_equal(load("a.conf"), 0);
	assert_string_equal(said(), "conf.d/1.conf:5: no peer 'c'; add a section [peer NAME] for "
				    "it, or leave 'peer' out");
	write_file("conf.d/2.conf", EDGE_C "[rule x]\nlan = 10.1.7.0/24\nwan = 10.2.7.0/24\n"
					   "policy = early\n");
	assert_int_not_equal(load("a.conf"), 0);
	assert_non_null(strstr(said(), "conf.d/2.conf:4: rule 'x' overlaps rule 'r' ("));
	assert_non_null(strstr(said(), "a.conf, line 5)"));
	write_file("conf.d/2.conf", EDGE_C "include = x\n");
	assert_int_not_equal(load("a.conf"), 0);

	/* a name without a pattern must be there */
	write_file("a.conf", HEAD "include = conf.d/3.conf\n" RULE);
	assert_int_not_equal(load("a.conf"), 0);
	assert_string_equal(said(), "a.conf:4: include 'conf.d/3.conf' names nothing that can be "
				    "read: there is no such file");
	/* a folder is no file */
	write_file("a.conf", HEAD "include = conf.d\n" RULE);
	assert_int_not_equal(load("a.conf"), 0);
	assert_string_equal(said(), "conf.d: cannot be read: it is no regular file");

	/* so many, and no more */
	write_file("a.conf", HEAD "include = conf.d/*.conf\n" RULE);
	write_file("conf.d/2.conf", EDGE_C);
	for (int i = 3; i <= CONFIG_FILES; i++) {
		snprintf(sub, sizeof(sub), "conf.d/x%d.conf", i);
		assert_int_equal(load("a.conf"), 0);
		write_file(sub, "");
	}
	assert_int_not_equal(load("a.conf"), 0);
	assert_string_equal(said(), "a.conf: more than 64 files are included; join some");

	for (int i = 1; i <= CONFIG_FILES; i++) {
		snprintf(sub, sizeof(sub), i < 3 ? "%s/conf.d/%d.conf" : "%s/conf.d/x%d.conf", dir,
			 i);
		assert_int_equal(unlink(sub), 0);
	}
	snprintf(sub, sizeof(sub), "%s/conf.d/2.conf.old", dir);
	assert_int_equal(unlink(sub), 0);
	snprintf(sub, sizeof(sub), "%s/conf.d", dir);
	assert_int_equal(rmdir(sub), 0);
	snprintf(sub, sizeof(sub), "%s/a.conf", dir);
	assert_int_equal(unlink(sub), 0);
}

static void test_sample(void **state)
{
	(void)state;
	if (config_load("conf/longhaul.conf", &cfg, &errs))
		fail_msg("%s", errs.text[0]);
	assert_int_equal(cfg.nrules, 1);
	assert_int_equal(cfg.rules[0].peer, 0);
	assert_int_equal(cfg.rules[0].policy, POLICY_EARLY);
}

/* The commented-out lines of the sample are right, too, and show the defaults. */
static void test_sample_defaults(void **state)
{
	static struct config plain;
	FILE *in = fopen("conf/longhaul.conf", "r"), *out = tmpfile();
	char line[256];

	(void)state;
	assert_non_null(in);
	assert_non_null(out);
	assert_int_equal(config_load("conf/longhaul.conf", &plain, &errs), 0);
	while (fgets(line, sizeof(line), in)) {
		/* "# key = value" with nothing else before the '=' */
		size_t key = strspn(line, "# "), end = key + strcspn(line + key, " ");

		if (line[0] == '#' && key == 2 && !strncmp(line + end, " = ", 3) &&
		    strncmp(line + key, "wan-", 4) && strncmp(line + key, "node", 4) &&
		    strncmp(line + key, "pool = 128M", 11) &&
		    strncmp(line + key, "prefetch-range", 14))
			fputs(line + key, out);
		else
			fputs(line, out);
	}
	fclose(in);
	rewind(out);
	if (config_parse(out, "sample", &cfg, &errs))
		fail_msg("%s", errs.text[0]);
	fclose(out);
	assert_null(config_restart_needed(&plain, &cfg));
	assert_int_equal(cfg.log_level, plain.log_level);
	assert_int_equal(cfg.drain_ns, plain.drain_ns);
	assert_memory_equal(cfg.rules, plain.rules, sizeof(cfg.rules));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),		cmocka_unit_test(test_no_access),
		cmocka_unit_test(test_include),		cmocka_unit_test(test_sample),
		cmocka_unit_test(test_sample_defaults),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
