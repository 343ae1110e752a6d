// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/command.h"

#include <stdarg.h>
#include <string.h>

#include "cli/client.h"
#include "cli/complete.h"
#include "cli/filter.h"

static int run_help(const struct command *cmd, const struct options *opt, int argc, char **argv)
{
	(void)cmd, (void)opt, (void)argc, (void)argv;
	command_help(stdout);
	return cli_printed();
}

static int run_complete(const struct command *cmd, const struct options *opt, int argc, char **argv)
{
	(void)cmd;
	command_complete(argc, argv, stdout);
	complete_values(opt->socket, argc, argv, stdout);
	return 0;
}

#define SHOW(i)                                                                                    \
	{                                                                                          \
		NULL, "show", "[KEY VALUE ...]", "jpdcwn", NULL, run_show, &objects[i], false      \
	}
static const struct command commands[] = {
	/* commands that show an object take its name and help */
	SHOW(0),
	SHOW(1),
	SHOW(2),
	SHOW(3),
	SHOW(4),
	SHOW(5),
	{NULL, "show", "[KEY VALUE ...]", "jpdwn", NULL, run_status, &objects[6], false},
	{"doctor", NULL, "[host ADDRESS]", "jp",
	 "the first thing that is wrong; or why one host is slow", run_doctor, NULL, false},
	{"top", NULL, "[KEY VALUE ...]", "wn", "queue pairs and their rates, live", run_top, NULL,
	 false},
	{"monitor", NULL, "", "jn", "events as they happen, a line of JSON each", run_monitor, NULL,
	 false},
	{"release", NULL, "all | KEY VALUE ...", "", "deliver custody, then release", run_release,
	 NULL, false},
	{"bypass", NULL, "on|off all | rule NAME | KEY VALUE ...", "",
	 "pass unaccelerated, as without longhauld", run_bypass, NULL, false},
	{"reload", NULL, "", "", "read the configuration again", run_reload, NULL, false},
	{"clear", NULL, "", "", "restart the counters of stats from 0", run_clear, NULL, false},
	{"capture", NULL, "FILE KEY VALUE ...", "n",
	 "frames of one queue pair, with what was decided", run_capture, NULL, false},
	{"bundle", NULL, "[FILE]", "", "all that a bug report needs, in one archive", run_bundle,
	 NULL, false},
	{"plan", NULL, "--rate RATE --rtt TIME", "jp", "what a link needs, and what it will carry",
	 run_plan, NULL, false},
	{"keygen", NULL, "[FILE]", "",
	 "make a key for a pair of appliances, in FILE or on standard output", run_keygen, NULL,
	 false},
	{"help", NULL, "", "", "this text", run_help, NULL, false},
	{"complete", NULL, "[WORD ...]", "", "words that may follow, for the shell", run_complete,
	 NULL, true},
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const char *name_of(const struct command *c)
{
	return c->object ? c->object->name : c->name;
}

static bool begins(const char *word, const char *prefix)
{
	return *prefix && !strncmp(word, prefix, strlen(prefix));
}

/* "qp, lane, ..." */
static void list_names(char *buf, size_t len)
{
	size_t used = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < COMMANDS && used < len; i++)
		if (!commands[i].hidden)
			used += snprintf(buf + used, len - used, "%s%s", i ? ", " : "",
					 name_of(&commands[i]));
}

const struct command *command_find(int argc, char **argv, int *used, char *err, size_t errlen)
{
	const struct command *found = NULL;
	char names[192];

	*used = 0;
	for (size_t i = 0; argc && i < COMMANDS; i++) {
		const struct command *c = &commands[i];

		if (!strcmp(name_of(c), argv[0])) {
			found = c;
			break;
		}
		if (c->hidden || !begins(name_of(c), argv[0]))
			continue;
		if (found) {
			snprintf(err, errlen, "'%.40s' may mean %s or %s; write more of it",
				 argv[0], name_of(found), name_of(c));
			return NULL;
		}
		found = c;
	}
	if (!found) {
		list_names(names, sizeof(names));
		snprintf(err, errlen, "unknown object '%.40s'; there are %s", argc ? argv[0] : "",
			 names);
		return NULL;
	}
	*used = 1;
	/* Else the next word is the first of a filter. */
	if (found->verb && argc > 1 && begins(found->verb, argv[1]))
		*used = 2;
	return found;
}

void command_help(FILE *f)
{
	char usage[80];

	fputs("usage: longhaul [OPTIONS] OBJECT [VERB] [KEY VALUE ...]\n\n", f);
	for (size_t i = 0; i < COMMANDS; i++) {
		const struct command *c = &commands[i];

		if (c->hidden)
			continue;
		snprintf(usage, sizeof(usage), "%s%s%s%s%s", name_of(c), c->verb ? " " : "",
			 c->verb ? c->verb : "", *c->args ? " " : "", c->args);
		fprintf(f, "  %-28s  %s\n", usage, c->object ? c->object->help : c->help);
	}
	fprintf(f,
		"\nWords may be shortened; show may be left out. KEY VALUE shows only what "
		"matches, for\n"
		"instance: longhaul qp lan-ip 10.1.0.5 state held; a name alone will do: longhaul "
		"peer edge-b\n\n"
		"  -j, --json         JSON: an array of objects\n"
		"  -p, --pretty       JSON, indented\n"
		"  -d, --details      everything that is known, several lines per object\n"
		"  -c, --columns LIST only these members, commas between\n"
		"  -w, --watch[=SECONDS]  look again and again, with rates, each second or so\n"
		"  -n, --count N      end after N looks\n"
		"  -s, --socket PATH  of the daemon, default %s\n"
		"  --rate RATE, --rtt TIME, --loss SHARE, --mtu BYTES, --outstanding N  of plan\n"
		"  -h, --help         this text\n"
		"  -V, --version      the version\n",
		CLIENT_SOCKET);
}

static void complete_value(const struct object *o, const char *key, FILE *f)
{
	const char *p = filter_choices(o, key);

	for (; p && *p; p++)
		putc(*p == ' ' ? '\n' : *p, f);
	if (p)
		putc('\n', f);
}

/* Print what may follow in commands that select queue pairs; false for other commands. */
static bool complete_choice(const struct command *c, int argc, char **argv, FILE *f)
{
	const struct object *qp = object_find("qp");
	bool bypass = c->run == run_bypass, all = bypass || c->run == run_release;
	int before = bypass || c->run == run_capture; /* words before the first KEY */

	if (c->run == run_doctor && !argc)
		fputs("host\n", f);
	if (!all && c->run != run_capture && c->run != run_top)
		return false;
	if (bypass && !argc)
		fputs("on\noff\n", f);
	if (argc < before)
		return true;
	if ((argc - before) % 2) {
		complete_value(qp, argv[argc - 1], f);
		return true;
	}
	if (all && argc == before)
		fputs("all\n", f);
	for (const struct column *col = qp->columns; col->key; col++)
		fprintf(f, "%s\n", col->key);
	return true;
}

void command_complete(int argc, char **argv, FILE *f)
{
	const struct command *c;
	char err[256];
	int used;

	if (!argc) {
		for (size_t i = 0; i < COMMANDS; i++)
			if (!commands[i].hidden)
				fprintf(f, "%s\n", name_of(&commands[i]));
		return;
	}
	c = command_find(argc, argv, &used, err, sizeof(err));
	if (!c || complete_choice(c, argc - used, argv + used, f) || !c->object)
		return;
	if (argc == 1)
		fprintf(f, "%s\n", c->verb);
	if (argc > used && filter_is_name(c->object, argv[used]))
		used++;
	/* After a key comes its value, known here if there is a list of values. */
	if ((argc - used) % 2) {
		complete_value(c->object, argv[argc - 1], f);
		return;
	}
	for (const struct column *col = c->object->columns; col->key; col++)
		fprintf(f, "%s\n", col->key);
}

int cli_printed(void)
{
	return fflush(stdout) ? cli_error("cannot write the answer: %m") : 0;
}

int cli_error(const char *fmt, ...)
{
	va_list ap;

	fputs("longhaul: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	putc('\n', stderr);
	return 1;
}
