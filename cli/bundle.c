// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * longhaul bundle: what a bug report needs, in one archive. Each part is a file; if a part cannot
 * be had, the file says why. The archive has no keys: the configuration only names their files.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/command.h"
#include "version.h"

/* Objects that the daemon is asked for. */
static const char *const views[] = {"qp",    "lane",   "peer",	 "port", "rule",
				    "stats", "status", "daemon", NULL};

#define CONFIG "/etc/longhaul/longhaul.conf"

/* Prints the files that the configuration includes, with their names; patterns are relative to its
 * folder. */
static const char included[] =
	"cd \"${1%/*}\" && for f in $(sed -n 's/^[[:space:]]*include[[:space:]]*=[[:space:]]*//p' "
	"\"$1\"); do echo \"# $f\"; cat \"$f\"; done";

/* Commands that show the machine's state. */
static const struct {
	const char *file;
	const char *argv[8];
} commands[] = {
	{"uname.txt", {"uname", "-a"}},
	{"os-release.txt", {"cat", "/etc/os-release"}},
	{"cpu.txt", {"lscpu"}},
	{"memory.txt", {"cat", "/proc/meminfo"}},
	{"link.txt", {"ip", "-d", "-s", "link"}},
	{"address.txt", {"ip", "address"}},
	{"bridge.txt", {"bridge", "-d", "link"}},
	{"config.txt", {"cat", CONFIG}},
	{"included.txt", {"sh", "-c", included, "sh", CONFIG}},
	{"unit.txt", {"systemctl", "status", "--no-pager", "longhauld"}},
	{"log.txt", {"journalctl", "-u", "longhauld", "-n", "5000", "--no-pager"}},
};

static FILE *open_part(const char *dir, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return fopen(path, "w");
}

/* False if the daemon was silent: it is not asked for other views, for each would take as long. */
static bool put_view(const struct options *opt, const char *dir, const char *view, bool speaks)
{
	char name[64], err[512] = "longhauld was silent before";
	time_t from = time(NULL);
	json_t *all = NULL;
	FILE *f;

	snprintf(name, sizeof(name), "%s.json", view);
	f = open_part(dir, name);
	if (!f)
		return speaks;
	snprintf(name, sizeof(name), "%s-show", view);
	if (speaks)
		all = client_collect(opt->socket, name, err, sizeof(err));
	if (all)
		json_dumpf(all, f, JSON_INDENT(1));
	else
		fprintf(f, "%s\n", err);
	speaks = speaks && (all || time(NULL) - from < client_patience_s);
	json_decref(all);
	fclose(f);
	return speaks;
}

/* Run @argv with its output and errors going to @f; its exit status, -1 when it cannot run. */
static int run(const char *const *argv, FILE *f)
{
	int status = -1;
	pid_t child = fork();

	if (!child) {
		dup2(fileno(f), STDOUT_FILENO);
		dup2(fileno(f), STDERR_FILENO);
		execvp(argv[0], (char *const *)argv);
		dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void put_parts(const struct options *opt, const char *dir)
{
	FILE *f = open_part(dir, "version.txt");
	bool speaks = true;

	if (f) {
		fprintf(f, "longhaul %s\n", LONGHAUL_VERSION);
		fclose(f);
	}
	for (const char *const *v = views; *v; v++)
		speaks = put_view(opt, dir, *v, speaks);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		f = open_part(dir, commands[i].file);
		if (!f)
			continue;
		run(commands[i].argv, f);
		fclose(f);
	}
}

static void remove_parts(const char *dir)
{
	const char *const argv[] = {"rm", "-rf", dir, NULL};

	run(argv, stderr);
}

int run_bundle(const struct command *cmd, const struct options *opt, int argc, char **argv)
{
	char dir[] = "/tmp/longhaul-bundle.XXXXXX", file[128];
	const char *name = file;
	time_t now = time(NULL);
	int rc, fd;

	(void)cmd;
	if (argc > 1)
		return cli_error("bundle takes one file; write longhaul bundle [FILE]");
	strftime(file, sizeof(file), "longhaul-%Y%m%d-%H%M%S.tar.gz", localtime(&now));
	if (argc)
		name = argv[0];
	/* only this user may read addresses and traffic of hosts */
	fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 && errno == EEXIST)
		return cli_error("%s exists already and is left as it is; name another file", name);
	if (fd < 0)
		return cli_error("cannot write %s: %m", name);
	close(fd);
	rc = mkdtemp(dir) ? 0 : cli_error("cannot make %s: %m", dir);
	if (!rc) {
		put_parts(opt, dir);
		if (run((const char *const[]){"tar", "-C", dir, "-czf", name, ".", NULL}, stderr))
			rc = cli_error("cannot write %s", name);
		remove_parts(dir);
	}
	if (rc) {
		unlink(name);
		return rc;
	}
	printf("%s\n", name);
	return 0;
}
