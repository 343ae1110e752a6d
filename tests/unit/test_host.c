// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * host_check(): what can be shown without interfaces of our own; tests/netns/test_check.sh has the
 * rest.
 */
#include <errno.h>
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

#include "host/host.h"
#include "peer/key.h"
#include "shards/shards.h"
#include "tests/unit/temp_dir.h"

#define RULE "[rule r]\nlan = 10.1.0.0/16\nwan = 10.2.0.0/16\npolicy = off\n"

static struct config cfg;
static struct config_errors errs, warn;

/* host_check() of such a file; @longhaul: lines of [longhaul], @rest: behind the rule. The loopback
 * interface is both ports of no bridge. */
static int check(const char *longhaul, const char *rest)
{
	char text[2048];
	FILE *f;

	snprintf(text, sizeof(text), "[longhaul]\nlan = lo\nwan = nosuchif0\n%s" RULE "%s",
		 longhaul, rest);
	f = fmemopen(text, strlen(text), "r");
	assert_non_null(f);
	if (config_parse(f, "t.conf", &cfg, &errs))
		fail_msg("%s", errs.text[0]);
	fclose(f);
	return host_check(&cfg, 1, &errs, &warn);
}

static bool said(const struct config_errors *e, const char *a, const char *b)
{
	for (unsigned int i = 0; i < e->n && i < CONFIG_ERRORS; i++)
		if (strstr(e->text[i], a) && strstr(e->text[i], b))
			return true;
	return false;
}

static void write_file(const char *path, const char *text, mode_t mode)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	assert_int_equal(chmod(path, mode), 0);
}

static void test_interfaces(void **state)
{
	(void)state;
	assert_int_equal(check("", ""), -EINVAL);
	assert_int_equal(errs.n, 1);
	assert_true(said(&errs, "t.conf:3: interface 'nosuchif0' does not exist", "ip link"));
}

static void test_key(void **state)
{
	char key[96], peer[256], k[PEER_KEY_TEXT];

	(void)state;
	snprintf(key, sizeof(key), "%s/key", dir);
	snprintf(peer, sizeof(peer), "[peer p]\naddress = 192.0.2.9\nkey-file = %s\n", key);
	check("", peer);
	assert_true(said(&errs, "t.conf:10: ", key)); /* it is not there */
	assert_non_null(key_generate(k));
	write_file(key, k, 0644);
	check("", peer);
	assert_true(said(&errs, "t.conf:10: ", "chmod 600")); /* readable by others */
	write_file(key, k, 0600);
	check("", peer);
	assert_int_equal(errs.n, 1);
	/* nothing to say of our own key, unless there is the daemon's user and we are root */
	assert_int_equal(said(&warn, "t.conf:10: ", "chown"), 0);
	unlink(key);
}

static void test_socket(void **state)
{
	char line[256], path[96];

	(void)state;
	snprintf(line, sizeof(line), "socket = %s/none/l.sock\n", dir);
	check(line, "");
	assert_true(said(&errs, "t.conf:4: the folder of socket", "make it"));
	snprintf(path, sizeof(path), "%s/file", dir);
	write_file(path, "", 0600);
	snprintf(line, sizeof(line), "socket = %s/l.sock\n", path);
	check(line, "");
	assert_true(said(&errs, "t.conf:4: the folder of socket", path));
	snprintf(line, sizeof(line), "socket = %s\n", path);
	check(line, "");
	assert_true(said(&errs, "no socket", "t.conf:4: "));
	unlink(path);
	check(line, "");
	assert_int_equal(errs.n, 1);
}

static void test_addresses(void **state)
{
	(void)state;
	check("listen = 192.0.2.77\n", "");
	assert_true(said(&errs, "t.conf:4: listen address 192.0.2.77", "ip address"));
	check("listen = 127.0.0.1\n", "");
	assert_int_equal(errs.n, 1);
	check("", "[peer p]\naddress = 127.0.0.1\nkey-file = /none\n");
	assert_true(said(&errs, "t.conf:8: the address 127.0.0.1 of peer 'p'", "own"));
}

static void test_memory(void **state)
{
	char line[64];
	uint64_t mib = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) >> 20;

	(void)state;
	if (mib > 60000)
		skip(); /* more than a pool can have */
	snprintf(line, sizeof(line), "pool = %lluM\n", (unsigned long long)mib + 1);
	check(line, "");
	assert_true(said(&errs, "t.conf:4: a pool of ", "lower 'pool'"));
	check("pool = 8M\n", "");
	assert_false(said(&errs, "a pool of ", ""));
}

static void quota(const char *group, const char *max)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s%s", dir, group);
	(void)mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s%s/cpu.max", dir, group);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(max, f);
	fclose(f);
}

static void no_quota(const char *group)
{
	char path[512];

	snprintf(path, sizeof(path), "%s%s/cpu.max", dir, group);
	unlink(path);
	snprintf(path, sizeof(path), "%s%s", dir, group);
	rmdir(path);
}

static uint64_t limit(const char *lines)
{
	FILE *groups = fmemopen((void *)(uintptr_t)lines, strlen(lines), "r");
	uint64_t v;

	assert_non_null(groups);
	v = host_processor_limit(groups, dir);
	fclose(groups);
	return v;
}

/* The least quota of processor time of a group and those above it. */
static void test_quota(void **state)
{
	(void)state;
	quota("/slice", "max 100000\n");
	quota("/slice/unit", "250000 100000\n");
	assert_int_equal(limit("0::/slice/unit\n"), 2500);
	assert_int_equal(limit("1:name=systemd:/slice/unit\n"), 0);
	assert_int_equal(limit("0::/slice\n"), 0);
	quota("/slice", "50000 100000\n");
	assert_int_equal(limit("0::/slice/unit\n"), 500);
	quota("/slice", "900000 100000\n");
	assert_int_equal(limit("0::/slice/unit\n"), 2500);
	quota("/slice/unit", "nonsense 100000\n");
	assert_int_equal(limit("0::/slice/unit\n"), 9000);
	assert_int_equal(limit("0::/none\n"), 0);
	assert_int_equal(limit("garbage\n"), 0);
	no_quota("/slice/unit");
	no_quota("/slice");
}

/* ENG-21: the scarcest thing is what auto goes by; there is always one core. */
static void test_cores(void **state)
{
	static const struct {
		struct host_room room;
		unsigned int cores;
		const char *why;
	} cases[] = {
		{{2, 4, "l0", false, 1ull << 30}, 2, "the processors it may use"},
		{{4, 2, "l0", false, 1ull << 30}, 2, "the queues of l0"},
		{{4, 1, "w0", false, 1ull << 30}, 1, "the queues of w0"},
		{{8, 8, "l0", false, 256 << 20}, 4, "'pool', 64M for each"},
		{{8, 8, "l0", false, (128 << 20) - 1}, 1, "'pool', 64M for each"},
		{{8, 8, "l0", false, 8 << 20}, 1, "'pool', 64M for each"},
		{{8, 8, "l0", true, 1ull << 30}, 1, "several ports on a side"},
		{{1, 1, "l0", true, 1ull << 30}, 1, "several ports on a side"},
		{{64, 64, "l0", false, 64ull << 30}, SHARDS_MAX, "what longhauld can use"},
		{{0, 8, "l0", false, 1ull << 30}, 1, "the processors it may use"},
	};
	char why[HOST_WHY];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(host_cores_in(&cases[i].room, why), cases[i].cores);
		assert_string_equal(why, cases[i].why);
	}
	/* this host: the loopback interface has one queue */
	check("", "");
	cfg.cores = 0;
	assert_int_equal(host_cores(&cfg, why), 1);
	assert_true(*why);
	cfg.cores = 5;
	assert_int_equal(host_cores(&cfg, why), 5);
	assert_false(*why);
	warn.n = 0;
	host_check_cores(&cfg, &warn);
	assert_true(said(&warn, "cores = 5, and there is room for 1, limited by the queues of lo",
			 "ethtool -L PORT combined 5"));
	warn.n = 0;
	cfg.cores = 1;
	host_check_cores(&cfg, &warn);
	cfg.cores = 0;
	host_check_cores(&cfg, &warn);
	assert_int_equal(warn.n, 0);
}

static void test_pins(void **state)
{
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/pins", dir);
	setenv("LONGHAUL_PINS", path, 1);
	check("",
	      "[rule p]\nlan = 10.3.0.0/16\nwan = 10.4.0.0/16\npolicy = off\nprefetch = single\n");
	assert_true(said(&warn, "t.conf:8: rule 'p' wants prefetch", "mount -t bpf"));
	check("", "");
	assert_false(said(&warn, "prefetch", ""));
	unsetenv("LONGHAUL_PINS");
}

static void test_path_mtu(void **state)
{
	unsigned int line;
	const char *file;

	(void)state;
	check("", "");
	assert_int_equal(host_path_mtu(&cfg, 1500, &file, &line), 1024);
	assert_int_equal(line, 0);
	assert_ptr_equal(file, cfg.file);
	assert_int_equal(host_path_mtu(&cfg, 9000, &file, &line), 4096);
	assert_int_equal(host_path_mtu(&cfg, host_need_mtu(4096) - 1, &file, &line), 2048);
	assert_int_equal(host_path_mtu(&cfg, 100, &file, &line), 0);
	check("max-path-mtu = 2048\n", "");
	assert_int_equal(host_path_mtu(&cfg, 1500, &file, &line), 2048);
	assert_int_equal(line, 4);
	check("max-path-mtu = 4096\n",
	      "[rule m]\nlan = 10.3.0.0/16\nwan = 10.4.0.0/16\npolicy = off\npath-mtu = 2048\n");
	assert_int_equal(host_path_mtu(&cfg, 1500, &file, &line), 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_interfaces), cmocka_unit_test(test_key),
		cmocka_unit_test(test_socket),	   cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_memory),	   cmocka_unit_test(test_pins),
		cmocka_unit_test(test_path_mtu),   cmocka_unit_test(test_cores),
		cmocka_unit_test(test_quota),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
