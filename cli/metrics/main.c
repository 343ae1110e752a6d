// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* longhaul-metrics: what longhauld says on its control socket, over HTTP. */
#include <arpa/inet.h>
#include <cap-ng.h>
#include <err.h>
#include <getopt.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <systemd/sd-daemon.h>

#include "cli/client.h"
#include "cli/metrics/http.h"
#include "version.h"

#define PAGE  "/usr/share/longhaul/page"
#define CHART "/usr/share/javascript/chart.js/chart.min.js"

static int error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static int error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vwarnx(fmt, ap);
	va_end(ap);
	return 1;
}

static void help(void)
{
	printf("usage: longhaul-metrics [OPTIONS]\n\n"
	       "  -l, --listen ADDRESS:PORT  default 127.0.0.1:9747; [::1]:9747\n"
	       "  -s, --socket PATH          of longhauld, default %s\n"
	       "  -e, --each                 metrics of each connection, too\n"
	       "  -p, --page DIRECTORY       files of the page, default " PAGE "\n"
	       "  -c, --chart FILE           Chart.js, default " CHART "\n"
	       "  -h, --help                 this text\n"
	       "  -V, --version              the version\n",
	       CLIENT_SOCKET);
}

/* "127.0.0.1:9747", "[::1]:9747" */
static bool parse_listen(const char *text, struct sockaddr_storage *out)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)out;
	struct sockaddr_in *four = (struct sockaddr_in *)out;
	char addr[INET6_ADDRSTRLEN + 2], *end;
	const char *colon = strrchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : sizeof(addr);
	unsigned long port;

	memset(out, 0, sizeof(*out));
	if (len >= sizeof(addr) || len < 2)
		return false;
	memcpy(addr, text, len);
	addr[len] = '\0';
	port = strtoul(colon + 1, &end, 10);
	if (end == colon + 1 || *end || !port || port > 65535)
		return false;
	if (addr[0] == '[' && addr[len - 1] == ']') {
		addr[len - 1] = '\0';
		six->sin6_family = AF_INET6;
		six->sin6_port = htons((uint16_t)port);
		return inet_pton(AF_INET6, addr + 1, &six->sin6_addr) == 1;
	}
	four->sin_family = AF_INET;
	four->sin_port = htons((uint16_t)port);
	return inet_pton(AF_INET, addr, &four->sin_addr) == 1;
}

/* Whoever started it: it needs no right but to connect to the daemon's socket. As a service it has
 * none, and may not even make the call that gives them up. */
static bool drop_rights(void)
{
	capng_get_caps_process();
	if (capng_have_capabilities(CAPNG_SELECT_CAPS) > CAPNG_NONE) {
		capng_clear(CAPNG_SELECT_BOTH);
		if (capng_apply(CAPNG_SELECT_CAPS))
			return false;
	}
	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

static int serve(const struct http_config *cfg, const char *listen)
{
	struct sockaddr_storage addr;
	struct http *h;
	char err[256];
	sigset_t ends;
	int signo;

	if (!parse_listen(listen, &addr))
		return error("--listen takes ADDRESS:PORT such as 127.0.0.1:9747, not '%.60s'",
			     listen);
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	pthread_sigmask(SIG_BLOCK, &ends, NULL);
	signal(SIGPIPE, SIG_IGN);
	if (!drop_rights())
		return error("capabilities cannot be dropped: %m");
	h = http_open(cfg, (struct sockaddr *)&addr, err, sizeof(err));
	if (!h)
		return error("%s: %s", listen, err);
	sd_notify(0, "READY=1");
	sigwait(&ends, &signo);
	http_close(h);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"listen", required_argument, NULL, 'l'}, {"socket", required_argument, NULL, 's'},
		{"each", no_argument, NULL, 'e'},	  {"page", required_argument, NULL, 'p'},
		{"chart", required_argument, NULL, 'c'},  {"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},	  {NULL, 0, NULL, 0},
	};
	struct http_config cfg = {.socket = CLIENT_SOCKET, .page = PAGE, .chart = CHART};
	const char *listen = "127.0.0.1:9747";
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "l:s:ep:c:hV", options, NULL)) != -1) {
		switch (c) {
		case 'l':
			listen = optarg;
			break;
		case 's':
			cfg.socket = optarg;
			break;
		case 'e':
			cfg.each = true;
			break;
		case 'p':
			cfg.page = optarg;
			break;
		case 'c':
			cfg.chart = optarg;
			break;
		case 'h':
			help();
			return 0;
		case 'V':
			printf("longhaul-metrics %s\n", LONGHAUL_VERSION);
			return 0;
		default:
			return error("unknown option or missing value '%s'; see --help",
				     argv[optind - 1]);
		}
	}
	if (optind < argc)
		return error("'%.60s' is too much; see --help", argv[optind]);
	return serve(&cfg, listen);
}
