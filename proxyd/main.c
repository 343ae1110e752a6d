// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* longhauld: options, then the daemon, a check of its configuration, or the replay of a capture. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/client.h"
#include "config/config.h"
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
	struct config_errors *warn = calloc(1, sizeof(*warn));
	struct config *cfg = warn ? load(path, 0, warn) : NULL;
	char err[ERR_LEN];
	int rc = cfg ? daemon_hand_over(cfg, strtol(pid, NULL, 10), err, sizeof(err)) : 0;

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

enum what {
	SERVE,
	CHECK,
	RELOAD,
	REPLAY,
};

static int unknown(const char *option)
{
	char text[128];

	snprintf(text, sizeof(text),
		 "unknown option or missing value '%.60s'; see longhauld --help", option);
	return fail(text);
}

int main(int argc, char **argv)
{
	const char *path = CONFIG_PATH, *capture = NULL, *pid = NULL;
	bool offline = false, json = false, verbose = false, waits = false;
	enum what what = SERVE;
	char text[128];
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "c:jfvh", long_options, NULL)) != -1) {
		switch (c) {
		case 'c':
			path = optarg;
			break;
		case OPT_CHECK:
			what = CHECK;
			break;
		case OPT_OFFLINE:
			offline = true;
			break;
		case OPT_RELOAD:
			what = RELOAD;
			break;
		case OPT_REPLAY:
			capture = optarg;
			what = REPLAY;
			break;
		case OPT_WAIT:
			waits = true;
			break;
		case OPT_HAND_OVER:
			pid = optarg;
			break;
		case 'j':
			json = true;
			break;
		case 'f':
			break;
		case 'v':
			verbose = true;
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		case OPT_VERSION:
			printf("longhauld %s\n", LONGHAUL_VERSION);
			return 0;
		default:
			return unknown(argv[optind - 1]);
		}
	}
	if (optind < argc) {
		snprintf(text, sizeof(text), "'%.60s' is not expected; see longhauld --help",
			 argv[optind]);
		return fail(text);
	}
	if (pid)
		return hand_over(path, pid);
	return what == REPLAY	? replay(capture, json)
	       : what == CHECK	? check(path, offline)
	       : what == RELOAD ? reload(path)
				: serve(path, verbose, waits);
}
