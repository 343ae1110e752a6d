// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Worlds that the soak once found wrong, shrunk, one test each: tests/scenario/worlds, each file
 * with the bug that it showed; many are of READs whose responses were lost (ENG-8). (Which frames
 * meet is a matter of chance in each, and another chance after each change of the engine: where it
 * is known what exactly went wrong there is a packet script, too.)
 *
 *	test_worlds [DIRECTORY]
 */
#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "tests/scenario/plan.h"

#define WORLDS "tests/scenario/worlds"

static const char *run(const char *path)
{
	FILE *f = fopen(path, "r");
	struct plan_result r;
	static char err[64];
	struct plan p;
	uint32_t bad;

	if (!f)
		return "cannot be read";
	bad = plan_read(&p, f);
	fclose(f);
	if (bad) {
		snprintf(err, sizeof(err), "line %u: not understood", bad);
		return err;
	}
	plan_run(&p, &r, NULL, NULL);
	return r.violation ? r.violation : r.packets ? NULL : "nothing happened";
}

int main(int argc, char **argv)
{
	const char *dir = argc > 1 ? argv[1] : WORLDS;
	unsigned int failed = 0;
	char pattern[4096];
	glob_t g;

	snprintf(pattern, sizeof(pattern), "%s/*.world", dir);
	if (glob(pattern, 0, NULL, &g)) {
		fprintf(stderr, "test_worlds: no %s: run it at the top of the source tree\n",
			pattern);
		return 2;
	}
	printf("1..%zu\n", g.gl_pathc);
	for (size_t i = 0; i < g.gl_pathc; i++) {
		const char *why = run(g.gl_pathv[i]);

		printf("%s %zu - %s\n", why ? "not ok" : "ok", i + 1,
		       strrchr(g.gl_pathv[i], '/') + 1);
		if (why)
			printf("# %s\n", why);
		failed += why != NULL;
		fflush(stdout);
	}
	globfree(&g);
	return failed != 0;
}
