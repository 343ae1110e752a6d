/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The commands: one table that drives parsing, help and completion. Words may be shortened as long
 * as they are unambiguous; without a verb an object is shown.
 */
#ifndef LONGHAUL_CLI_COMMAND_H
#define LONGHAUL_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "cli/object.h"
#include "cli/render.h"

/* What `plan' is told, by options of its own. */
enum plan_option {
	PLAN_RATE,
	PLAN_RTT,
	PLAN_LOSS,
	PLAN_MTU,
	PLAN_OUTSTANDING,
	PLAN_OPTIONS,
};
#define PLAN_NAMES                                                                                 \
	{                                                                                          \
		"rate", "rtt", "loss", "mtu", "outstanding"                                        \
	}

/** struct options - the options, before or between the words. */
struct options {
	const char *given; /* their letters, in any order */
	const char *socket;
	enum render_mode mode;
	double watch;	     /* seconds between two looks, 0: one look */
	long count;	     /* looks, 0: until interrupted */
	const char *columns; /* those to show, separated by commas; NULL: the usual ones */
	const char *plan[PLAN_OPTIONS]; /* NULL: not given */
};

struct command;

/**
 * command_fn - run @cmd with the words that follow its name.
 * Returns the exit code; on error one line has been written to stderr.
 */
typedef int (*command_fn)(const struct command *cmd, const struct options *opt, int argc,
			  char **argv);

/**
 * struct command
 * @name:   first word
 * @verb:   second word, NULL when the command is one word
 * @args:   arguments, for help
 * @takes:  letters of the options that it heeds, besides -s
 * @help:   one line
 * @object: the object to show, NULL for none
 * @hidden: not listed in help
 */
struct command {
	const char *name, *verb, *args, *takes, *help;
	command_fn run;
	const struct object *object;
	bool hidden;
};

/**
 * command_find - the command that @argv begins with.
 * @used: how many words name it. NULL with one line in @err.
 */
const struct command *command_find(int argc, char **argv, int *used, char *err, size_t errlen);

/** command_help - the list of commands and options. */
void command_help(FILE *f);

/** command_complete - print the words that may follow @argv, one per line. */
void command_complete(int argc, char **argv, FILE *f);

/* The commands, each in its own file. */
int run_show(const struct command *cmd, const struct options *opt, int argc, char **argv);
int run_status(const struct command *cmd, const struct options *opt, int argc, char **argv);
int run_doctor(const struct command *cmd, const struct options *opt, int argc, char **argv);
int run_release(const struct command *cmd, const struct options *opt, int argc, char **argv);
int run_bypass(const struct command *cmd, const struct options *opt, int argc, char **argv);
int run_reload(const struct command *cmd, const struct options *opt, int argc, char **argv);
int run_clear(const struct command *cmd, const struct options *opt, int argc, char **argv);
int run_monitor(const struct command *cmd, const struct options *opt, int argc, char **argv);
int run_capture(const struct command *cmd, const struct options *opt, int argc, char **argv);
int run_bundle(const struct command *cmd, const struct options *opt, int argc, char **argv);
int run_top(const struct command *cmd, const struct options *opt, int argc, char **argv);
int run_plan(const struct command *cmd, const struct options *opt, int argc, char **argv);
int run_keygen(const struct command *cmd, const struct options *opt, int argc, char **argv);

/** cli_sleep - for @seconds; false when interrupted. */
bool cli_sleep(double seconds);

/** cli_printed - whether all that was printed has been written: an exit code. */
int cli_printed(void);

/** cli_error - "longhaul: ..." on stderr; always 1, an exit code. */
int cli_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
