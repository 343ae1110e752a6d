// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A plain forwarder: RoCEv2 from the LAN port to the WAN port and back through AF_XDP, untouched.
 * What it moves is what the port layer and the kernel can do; the daemon is measured against it.
 *
 *	afxdp_forward [options] LAN WAN
 *
 * One line a second on standard error with -v, one JSON line on standard output at the end.
 */
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "port/afxdp.h"

#define SECOND	1000000000ull
#define FDS_MAX (STEER_SIDES * STEER_QUEUES)

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

static void forward(void *ctx, enum steer_side side, uint8_t *data, uint32_t len)
{
	/* no room: lost and counted (tx_full), as a plain forwarder does */
	afxdp_tx(ctx, 0, side == STEER_LAN ? STEER_WAN : STEER_LAN, data, len, 0);
}

static void count(const struct afxdp *x, struct afxdp_counts s[STEER_SIDES])
{
	for (int side = 0; side < STEER_SIDES; side++)
		afxdp_side_counts(x, side, &s[side]);
}

static void report(FILE *out, const struct afxdp_counts *s, const struct afxdp_counts *last,
		   double seconds)
{
	static const char *const name[] = {"lan", "wan"};
	int i;

	for (i = 0; i < STEER_SIDES; i++)
		fprintf(out, "%s: rx %.3f Mpps %.2f Gb/s, tx %.3f Mpps%s", name[i],
			(double)(s[i].rx - last[i].rx) / seconds / 1e6,
			(double)(s[i].rx_bytes - last[i].rx_bytes) * 8 / seconds / 1e9,
			(double)(s[i].tx - last[i].tx) / seconds / 1e6,
			i == STEER_LAN ? "; " : "\n");
}

static double cpu_seconds(const struct timeval *tv)
{
	return (double)tv->tv_sec + (double)tv->tv_usec / 1e6;
}

static void report_json(struct afxdp *x, const struct afxdp_counts *s, double seconds)
{
	static const char *const name[] = {"lan", "wan"};
	struct rusage u;
	int i;

	getrusage(RUSAGE_SELF, &u);
	printf("{\"seconds\":%.3f,\"user-seconds\":%.3f,\"system-seconds\":%.3f,\"max-frame\":%u",
	       seconds, cpu_seconds(&u.ru_utime), cpu_seconds(&u.ru_stime), afxdp_max_frame(x));
	for (i = 0; i < STEER_SIDES; i++) {
		printf(",\"%s\":{\"mode\":\"%s\",\"queues\":%u,\"rx\":%lu,\"rx-bytes\":%lu,"
		       "\"tx\":%lu,\"tx-bytes\":%lu,\"rx-dropped\":%lu,\"tx-dropped\":%lu,"
		       "\"tx-full\":%lu,\"passed\":%lu,\"no-rule\":%lu,\"too-long\":%lu}",
		       name[i], afxdp_native(x, STEER_PORT(i, 0)) ? "native" : "generic",
		       afxdp_queues(x, STEER_PORT(i, 0)), s[i].rx, s[i].rx_bytes, s[i].tx,
		       s[i].tx_bytes, s[i].rx_dropped, s[i].tx_dropped, s[i].tx_full,
		       s[i].steer[STEER_OTHER], s[i].steer[STEER_NO_RULE],
		       s[i].steer[STEER_TOO_LONG]);
	}
	printf("}\n");
}

static void usage(void)
{
	fprintf(stderr, "usage: afxdp_forward [options] LAN WAN\n"
			"  -m auto|native|generic   where the XDP program runs (auto)\n"
			"  -t SECONDS               stop after that time (0: at a signal)\n"
			"  -f FRAMES                packet buffers of 4 KiB (16384)\n"
			"  -l BYTES                 longest frame to take\n"
			"  -b FRAMES                frames a batch (64)\n"
			"  -1                       no multi-buffer\n"
			"  -s                       spin instead of sleeping in poll()\n"
			"  -v                       a line every second\n");
	exit(2);
}

int main(int argc, char **argv)
{
	static uint64_t vlans[STEER_VLANS];
	const struct afxdp_prefix all = {.plen = 0, .rules = 1};
	struct afxdp_config cfg = {
		.near = &all,
		.far = &all,
		.nnear = 1,
		.nfar = 1,
		.vlan_rules = vlans,
	};
	struct afxdp_counts s[STEER_SIDES], last[STEER_SIDES] = {0};
	struct pollfd p[FDS_MAX];
	unsigned int budget = 64;
	bool spin = false, verbose = false, waiting;
	uint64_t t0, t, tick, end, limit = 0;
	int fds[FDS_MAX], n, i, c;
	struct afxdp *x;
	char err[256];

	while ((c = getopt(argc, argv, "m:t:f:l:b:1sv")) != -1) {
		switch (c) {
		case 'm':
			cfg.mode = !strcmp(optarg, "native")	? AFXDP_NATIVE
				   : !strcmp(optarg, "generic") ? AFXDP_GENERIC
								: AFXDP_AUTO;
			break;
		case 't':
			limit = (uint64_t)(atof(optarg) * (double)SECOND);
			break;
		case 'f':
			cfg.frames = (uint32_t)atoi(optarg);
			break;
		case 'l':
			cfg.max_frame = (uint32_t)atoi(optarg);
			break;
		case 'b':
			budget = (unsigned int)atoi(optarg);
			break;
		case '1':
			cfg.single_buffer = true;
			break;
		case 's':
			spin = true;
			break;
		case 'v':
			verbose = true;
			break;
		default:
			usage();
		}
	}
	if (argc - optind != 2)
		usage();
	cfg.ifname[STEER_LAN] = argv[optind];
	cfg.ifname[STEER_PORT(STEER_WAN, 0)] = argv[optind + 1];
	for (i = 0; i < STEER_VLANS; i++)
		vlans[i] = 1;
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);

	x = afxdp_open(&cfg, err, sizeof(err));
	if (!x) {
		fprintf(stderr, "afxdp_forward: %s\n", err);
		return 1;
	}
	n = afxdp_fds(x, fds, FDS_MAX);
	for (i = 0; i < n; i++)
		p[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
	t0 = tick = now();
	end = limit ? t0 + limit : UINT64_MAX;
	afxdp_heartbeat(x, t0);
	fprintf(stderr, "afxdp_forward: ready\n");

	for (t = t0; !stop && t < end; t = now()) {
		afxdp_heartbeat(x, t);
		c = (int)afxdp_rx(x, 0, budget, forward, x);
		waiting = afxdp_flush(x, 0);
		if (!c && !spin && poll(p, (nfds_t)n, waiting ? 1 : 100) < 0)
			continue;
		if (verbose && t - tick >= SECOND) {
			count(x, s);
			report(stderr, s, last, (double)(t - tick) / (double)SECOND);
			memcpy(last, s, sizeof(last));
			tick = t;
		}
	}
	count(x, s);
	report_json(x, s, (double)(t - t0) / (double)SECOND);
	afxdp_close(x);
	return 0;
}
