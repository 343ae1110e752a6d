// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Every script of tests/scenario/scripts, one test each, in every world: at three places of the
 * circle of PSNs, two of which wrap on the way or become "before" where they were "after", and over
 * IPv4, IPv6 and in a VLAN. An argument or more: those files only. The folder open is left out:
 * what it says does not hold yet.
 */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/scenario/script.h"
#include "wire/frame.h"

#define DIRECTORY   "tests/scenario/scripts"
#define OPEN	    DIRECTORY "/open/"
#define SCRIPTS_MAX 1024
#define ERR_SIZE    4096

static const struct script_world worlds[] = {
	{"PSN 0x000100, MSN 0x000010, IPv4", 0x000100, 0x000010, false, FRAME_VLAN_NONE, true},
	{"PSN 0x000100, MSN 0x000010, IPv6", 0x000100, 0x000010, true, FRAME_VLAN_NONE, false},
	{"PSN 0x000100, MSN 0x000010, IPv4, VLAN 7", 0x000100, 0x000010, false, 0x6007, false},
	{"PSN 0x7ffff8, MSN 0x7ffffd, IPv4", 0x7ffff8, 0x7ffffd, false, FRAME_VLAN_NONE, false},
	{"PSN 0x7ffff8, MSN 0x7ffffd, IPv6", 0x7ffff8, 0x7ffffd, true, FRAME_VLAN_NONE, false},
	{"PSN 0x7ffff8, MSN 0x7ffffd, IPv4, VLAN 7", 0x7ffff8, 0x7ffffd, false, 0x6007, false},
	{"PSN 0xfffff8, MSN 0xfffffd, IPv4", 0xfffff8, 0xfffffd, false, FRAME_VLAN_NONE, false},
	{"PSN 0xfffff8, MSN 0xfffffd, IPv6", 0xfffff8, 0xfffffd, true, FRAME_VLAN_NONE, false},
	{"PSN 0xfffffe, MSN 0xfffffd, IPv6, VLAN 7", 0xfffffe, 0xfffffd, true, 0x6007, false},
};
#define WORLDS (sizeof(worlds) / sizeof(worlds[0]))

static const char *scripts[SCRIPTS_MAX];
static size_t nscripts;

static bool run_in_all_worlds(const char *path, char *err, size_t size)
{
	char *text = script_load(path);
	bool good = true;

	if (!text) {
		snprintf(err, size, "%s cannot be read", path);
		return false;
	}
	for (size_t i = 0; i < WORLDS && good; i++)
		good = script_run(path, text, &worlds[i], err, size);
	free(text);
	return good;
}

/* A script that is wrong must fail, with the line and both packets in the message: else all the
 * others prove nothing. */
static bool wrong_scripts_fail(char *out, size_t size)
{
	static const struct {
		const char *text, *err;
	} wrong[] = {
		{"+0 host> SEND_ONLY psn 0 ackreq\n+0 wan< SEND_ONLY psn 0\n+0 host< ACK psn 0 msn "
		 "2\n",
		 "planted.pkt:3: expected host< ACK psn 0 msn 2 credit 31, not ACK psn 0 msn 1 "
		 "credit 31"},
		{"+0 host> SEND_ONLY psn 0 ackreq\n+0 wan< SEND_ONLY psn 1\n",
		 "planted.pkt:2: expected wan< SEND_ONLY psn 1, not SEND_ONLY psn 0"},
		{"# three lines\n+0 host> SEND_ONLY psn 0 ackreq\n+0 wan< SEND_ONLY psn 0\n",
		 "planted.pkt:3: nobody expected: 0.000000 host< ACK psn 0 msn 1"},
		{"+0 host> SEND_ONLY psn 0 ackreq\n+0 wan< SEND_ONLY psn 0 data 1\n",
		 "planted.pkt:2: wan< SEND_ONLY psn 0 len 64 ackreq, but byte"},
		{"+0 host> SEND_FIRST psn 0\n+0 wan< SEND_FIRST psn 0\n+0 host< ACK psn 0 msn 0\n",
		 "planted.pkt:3: expected host< ACK psn 0 msn 0 credit 31, and nothing was sent "
		 "there"},
		{"+0 host> SEND_FIRST psn 0\n+0 wan< SEND_FIRST psn 0\n+1s wan< SEND_FIRST psn 0\n",
		 "planted.pkt:3: too early"},
		{"+0 host> SEND_FIRST psn 0\n+0 wan< SEND_FIRST psn 0\n+0 lane custody 0\n",
		 "planted.pkt:3: custody is 1"},
		{"+0 host> SEND_FIRST psn 0\n+0 wan< SEND_FIRST psn 0\n+0 stat passed 1\n",
		 "planted.pkt:3: passed has grown by 0"},
		{"+0 do drain\n+0 lane state watch\n", "nobody expected: 0.000000 peer< CLOSE"},
		{"+0 do drain\n+0 peer< CLOSE reason idle\n",
		 "expected another report than CLOSE reason operator"},
		{"+0 host> SEND_TWICE psn 0\n", "planted.pkt:1: no packet is named \"SEND_TWICE\""},
		{"+0 event fault\n", "planted.pkt:1: expected event fault"},
		{"sides both\n", "planted.pkt:1: \"sides\" is no setting"},
		{"# nothing\n", "planted.pkt:1: nothing happens"},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		for (size_t k = 0; k < WORLDS; k++) {
			char err[ERR_SIZE] = "";

			if (script_run("planted.pkt", wrong[i].text, &worlds[k], err,
				       sizeof(err))) {
				snprintf(out, size, "it did not fail:\n%s", wrong[i].text);
				return false;
			}
			if (!strstr(err, wrong[i].err) || !strstr(err, worlds[k].name)) {
				snprintf(out, size,
					 "the message must say\n%s\n%s\nand says\n%.2000s",
					 wrong[i].err, worlds[k].name, err);
				return false;
			}
		}
	}
	return true;
}

static void add(const char *path)
{
	if (nscripts == SCRIPTS_MAX) {
		fprintf(stderr, "more than %d scripts\n", SCRIPTS_MAX);
		exit(1);
	}
	scripts[nscripts++] = strdup(path);
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	const char *dot = strrchr(path, '.');

	(void)st;
	(void)ftw;
	if (type == FTW_F && dot && !strcmp(dot, ".pkt") && strncmp(path, OPEN, sizeof(OPEN) - 1))
		add(path);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* One line of TAP, and what went wrong as comments below it. */
static bool tap(size_t number, const char *name, bool good, char *err)
{
	char *save = NULL;

	printf("%sok %zu - %s\n", good ? "" : "not ", number, name);
	for (char *p = good ? NULL : strtok_r(err, "\n", &save); p; p = strtok_r(NULL, "\n", &save))
		printf("# %s\n", p);
	fflush(stdout);
	return good;
}

int main(int argc, char **argv)
{
	char err[ERR_SIZE];
	bool good = true;

	for (int i = 1; i < argc; i++)
		add(argv[i]);
	if (argc == 1) {
		nftw(DIRECTORY, visit, 8, FTW_PHYS);
		qsort(scripts, nscripts, sizeof(scripts[0]), by_name);
		if (!nscripts) {
			fprintf(stderr,
				"no scripts in " DIRECTORY "; start this in the top directory\n");
			return 1;
		}
	}
	printf("1..%zu\n", nscripts + 1);
	good &= tap(1, "scripts with a mistake fail", wrong_scripts_fail(err, sizeof(err)), err);
	for (size_t i = 0; i < nscripts; i++) {
		const char *name = strstr(scripts[i], DIRECTORY "/");

		good &= tap(i + 2, name ? name + sizeof(DIRECTORY) : scripts[i],
			    run_in_all_worlds(scripts[i], err, sizeof(err)), err);
	}
	return !good;
}
