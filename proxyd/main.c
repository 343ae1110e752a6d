// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* longhauld: options, then the daemon, a check of its configuration, or the replay of a capture. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/client.h"
#include "config/config.h"
#include "config/config_value.h"
#include "daemon/daemon.h"
#include "daemon/replay.h"
#include "host/host.h"
#include "host/log.h"
#include "version.h"

#define ERR_LEN 1024

enum long_only {
	OPT_CHECK = 256,
	OPT_OFFLINE,
	OPT_REPLAY,
	OPT_RELOAD,
	OPT_HAND_OVER,
	OPT_WAIT,
	OPT_VERSION,
};

static const struct option long_options[] = {
	{"config", required_argument, NULL, 'c'},
	{"check-config", no_argument, NULL, OPT_CHECK},
	{"offline", no_argument, NULL, OPT_OFFLINE},
	{"reload", no_argument, NULL, OPT_RELOAD},
	{"replay", required_argument, NULL, OPT_REPLAY},
	{"hand-over", required_argument, NULL, OPT_HAND_OVER},
	{"wait", no_argument, NULL, OPT_WAIT},
	{"json", no_argument, NULL, 'j'},
	{"foreground", no_argument, NULL, 'f'},
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, OPT_VERSION},
	{NULL, 0, NULL, 0},
};

static const char help[] =
	"usage: longhauld [-c FILE] [-v] [--wait] [--check-config [--offline] | --reload | "
	"--replay CAPTURE "
	"[-j]]\n"
	"\n"
	"  -c, --config FILE    configuration, default " CONFIG_PATH "\n"
	"      --check-config   check it, with this host's interfaces and key files, and end\n"
	"      --offline        check the file alone\n"
	"      --reload         have the running daemon read it again; fails when that refuses\n"
	"      --replay CAPTURE show which queue pairs the packets of a capture file tell of\n"
	"      --hand-over PID  tell that longhauld to end for this version to go on, if it can\n"
	"      --wait           wait for ports that do not exist or are down, for a minute\n"
	"  -j, --json           the replay's table as JSON\n"
	"  -v, --verbose        log more\n"
	"  -f, --foreground     accepted; longhauld never leaves the foreground\n"
	"  -h, --help           this text\n"
	"      --version        the version\n"
	"\n"
	"Without longhauld, packets of connections with prefetch are dropped until it runs "
	"again; to\n"
	"give them up: rm -r " AFXDP_PINS "\n";

static int fail(const char *text)
{
	fprintf(stderr, "longhauld: %s\n", text);
	return 1;
}

/* How long peers have to answer a probe of the link. A start must not wait for a peer that is off.
 */
#define PATIENCE_CHECK_MS 1500
#define PATIENCE_START_MS 400

static int print_errors(const struct config_errors *errs)
{
	for (unsigned int i = 0; i < errs->n && i < CONFIG_ERRORS; i++)
		fprintf(stderr, "%s\n", errs->text[i]);
	if (errs->n > CONFIG_ERRORS)
		fprintf(stderr, "... and %u more\n", errs->n - CONFIG_ERRORS);
	return 1;
}

/* Whether to check this host. A start that adopts the state of a former process skips the check,
 * because hosts wait meanwhile. */
static bool looks(const struct config *cfg, unsigned int patience_ms)
{
	return patience_ms && (patience_ms != PATIENCE_START_MS || !daemon_state_left(cfg));
}

/* Read and check @path; NULL on an error, which has been reported. @patience_ms: as above, 0: this
 * host is not checked. @warn: warnings about the file and this host. */
static struct config *load(const char *path, unsigned int patience_ms, struct config_errors *warn)
{
	struct config_errors *errs = malloc(sizeof(*errs));
	struct config *cfg = malloc(sizeof(*cfg));
	bool ok = false;

	warn->n = 0;
	if (!errs || !cfg)
		fail("out of memory");
	else if (config_load(path, cfg, errs) ||
		 (looks(cfg, patience_ms) && host_check(cfg, patience_ms, errs, warn)))
		print_errors(errs);
	else
		ok = true;
	free(errs);
	if (ok)
		return cfg;
	free(cfg);
	return NULL;
}

static int check(const char *path, bool offline)
{
	struct config_errors *warn = calloc(1, sizeof(*warn));
	struct config *cfg = warn ? load(path, offline ? 0 : PATIENCE_CHECK_MS, warn) : NULL;
	char restart[ERR_LEN];

	for (unsigned int i = 0; cfg && i < warn->n && i < CONFIG_ERRORS; i++)
		fprintf(stderr, "warning: %s\n", warn->text[i]);
	if (cfg)
		printf("%s: %u rule%s, %u peer%s; no errors, %u warning%s\n", path, cfg->nrules,
		       cfg->nrules == 1 ? "" : "s", cfg->npeers, cfg->npeers == 1 ? "" : "s",
		       warn->n, warn->n == 1 ? "" : "s");
	if (cfg && !offline && daemon_restart(cfg, restart, sizeof(restart)))
		printf("a restart: %s\n", restart);
	free(warn);
	free(cfg);
	return cfg ? 0 : 1;
}

static void ignore(void *ctx, json_t *object)
{
	(void)ctx, (void)object;
}

/* The daemon is told to reload only if the file has no errors. */
static int reload(const char *path)
{
	struct config_errors *warn = calloc(1, sizeof(*warn));
	struct config *cfg = warn ? load(path, 0, warn) : NULL;
	char err[ERR_LEN];
	int rc = 1;

	if (cfg && client_request(cfg->socket, "reload", ignore, NULL, err, sizeof(err)))
		fail(err);
	else if (cfg)
		rc = 0;
	free(warn);
	free(cfg);
	return rc;
}

static int replay(const char *path, bool json)
{
	char err[ERR_LEN];

	return replay_run(path, json, stdout, stderr, err, sizeof(err)) ? fail(err) : 0;
}

static int hand_over(const char *path, const char *pid)
{
	struct config_errors *warn;
	struct config *cfg;
	char err[ERR_LEN], *end;
	long number = strtol(pid, &end, 10);
	int rc;

	if (*end || number <= 1) {
		snprintf(err, sizeof(err),
			 "'%.20s' is no process; write the number of the longhauld that runs", pid);
		return fail(err);
	}
	warn = calloc(1, sizeof(*warn));
	cfg = warn ? load(path, 0, warn) : NULL;
	rc = cfg ? daemon_hand_over(cfg, number, err, sizeof(err)) : 0;
	free(warn);
	if (!cfg)
		return 1;
	free(cfg);
	return rc ? fail(err) : 0;
}

/* Errors in the file are ignored here: load() reports them. */
static void wait_for_ports(const char *path)
{
	struct config_errors *errs = calloc(1, sizeof(*errs));
	struct config *cfg = calloc(1, sizeof(*cfg));

	if (errs && cfg && !config_load(path, cfg, errs)) {
		log_init(cfg->log_level);
		host_wait(cfg);
	}
	free(errs);
	free(cfg);
}

static int serve(const char *path, bool verbose, bool waits)
{
	struct config_errors *warn = calloc(1, sizeof(*warn));
	struct config *cfg;
	struct daemon *d;
	char err[ERR_LEN];
	int rc;

	if (waits)
		wait_for_ports(path);
	cfg = warn ? load(path, PATIENCE_START_MS, warn) : NULL;
	if (cfg)
		log_init(verbose ? LOG_DEBUG : cfg->log_level);
	for (unsigned int i = 0; cfg && i < warn->n && i < CONFIG_ERRORS; i++)
		log_line(LOG_WARNING, "%s", warn->text[i]);
	free(warn);
	if (!cfg)
		return 1;
	d = daemon_start(cfg, err, sizeof(err));
	if (!d) {
		log_line(LOG_ERR, "longhauld: %s", err);
		return 1;
	}
	rc = daemon_run(d);
	daemon_stop(d);
	return rc;
}

/* What to do, and the option that says so. */
enum what {
	SERVE,
	CHECK,
	RELOAD,
	REPLAY,
	HAND_OVER,
};
static const char *const whats[] = {NULL, "--check-config", "--reload", "--replay", "--hand-over"};

/* The option that @word may have been meant for, or NULL. */
static const char *meant(const char *word)
{
	const char *names[sizeof(long_options) / sizeof(long_options[0])] = {NULL};

	for (unsigned int i = 0; long_options[i].name; i++)
		names[i] = long_options[i].name;
	return value_nearest(word, names);
}

/* An option that getopt_long() does not take, for the reason @c; @opt: its short name, or not. */
static int refuse(int c, int opt, const char *word)
{
	bool named = !strncmp(word, "--", 2);
	const char *near = named && !opt ? meant(word + 2) : NULL;
	char brief[3] = {'-', (char)opt, '\0'}, text[192];

	if (!named && opt > ' ' && opt < OPT_CHECK)
		word = brief;
	if (c == ':')
		snprintf(text, sizeof(text), "'%.60s' lacks its value; see longhauld --help", word);
	else if (named && opt)
		snprintf(text, sizeof(text), "'%.60s' has a value and takes none; leave it out",
			 word);
	else if (near)
		snprintf(text, sizeof(text), "unknown option '%.60s'; did you mean '--%s'?", word,
			 near);
	else
		snprintf(text, sizeof(text), "unknown option '%.60s'; see longhauld --help", word);
	return fail(text);
}

/* What was asked for with @given, an option that means something to @of only. */
static bool strange(bool given, const char *option, enum what of, enum what what)
{
	char text[128];

	if (!given || what == of)
		return false;
	if (what == SERVE)
		snprintf(text, sizeof(text), "%s belongs to %s; add that, or leave it out", option,
			 whats[of]);
	else
		snprintf(text, sizeof(text), "%s means nothing to %s; leave it out", option,
			 whats[what]);
	fail(text);
	return true;
}

/* As the options say. */
struct orders {
	const char *path, *capture, *pid;
	bool offline, json, verbose, waits;
	enum what what;
};

static bool take_what(struct orders *o, enum what what)
{
	char text[128];

	if (o->what != SERVE && o->what != what) {
		snprintf(text, sizeof(text), "%s and %s are two things to do; leave one out",
			 whats[o->what], whats[what]);
		fail(text);
		return false;
	}
	o->what = what;
	return true;
}

/* Process one option; an exit code, or -1 to go on. */
static int take_option(int c, struct orders *o, const char *word)
{
	switch (c) {
	case 'c':
		o->path = optarg;
		return -1;
	case OPT_CHECK:
		return take_what(o, CHECK) ? -1 : 1;
	case OPT_OFFLINE:
		o->offline = true;
		return -1;
	case OPT_RELOAD:
		return take_what(o, RELOAD) ? -1 : 1;
	case OPT_REPLAY:
		o->capture = optarg;
		return take_what(o, REPLAY) ? -1 : 1;
	case OPT_WAIT:
		o->waits = true;
		return -1;
	case OPT_HAND_OVER:
		o->pid = optarg;
		return take_what(o, HAND_OVER) ? -1 : 1;
	case 'j':
		o->json = true;
		return -1;
	case 'f':
		return -1;
	case 'v':
		o->verbose = true;
		return -1;
	case 'h':
		fputs(help, stdout);
		return 0;
	case OPT_VERSION:
		printf("longhauld %s\n", LONGHAUL_VERSION);
		return 0;
	default:
		return refuse(c, optopt, word);
	}
}

int main(int argc, char **argv)
{
	struct orders o = {.path = NULL};
	char text[128];
	int c, rc;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":c:jfvh", long_options, NULL)) != -1) {
		rc = take_option(c, &o, argv[optind - 1]);
		if (rc >= 0)
			return rc;
	}
	if (optind < argc) {
		snprintf(text, sizeof(text), "'%.60s' is not expected; see longhauld --help",
			 argv[optind]);
		return fail(text);
	}
	if (strange(o.offline, "--offline", CHECK, o.what) ||
	    strange(o.json, "--json", REPLAY, o.what) ||
	    strange(o.waits, "--wait", SERVE, o.what) ||
	    strange(o.verbose, "--verbose", SERVE, o.what) ||
	    strange(o.path && o.what == REPLAY, "--config", SERVE, o.what))
		return 1;
	if (!o.path)
		o.path = CONFIG_PATH;
	switch (o.what) {
	case CHECK:
		return check(o.path, o.offline);
	case RELOAD:
		return reload(o.path);
	case REPLAY:
		return replay(o.capture, o.json);
	case HAND_OVER:
		return hand_over(o.path, o.pid);
	default:
		return serve(o.path, o.verbose, o.waits);
	}
}
