// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Taking a capture with no more tools than libpcap: RoCEv2 of one interface, both directions, whole
 * frames.
 */
#include <errno.h>
#include <inttypes.h>
#include <pcap/pcap.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/lab/check/check.h"

#define BUFFER_BYTES (64 << 20)
#define RETIRE_MS    50 /* the kernel hands over a part-filled block after this time */

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static int fail(const char *ifname, const char *cause)
{
	fprintf(stderr, "pcapcheck: %s: %s\n", ifname, cause);
	return CHECK_CANNOT;
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t frames;

static void keep(u_char *to, const struct pcap_pkthdr *h, const u_char *data)
{
	frames++;
	pcap_dump(to, h, data);
}

static pcap_t *open_live(const char *ifname, char *cause)
{
	struct bpf_program prog;
	pcap_t *p = pcap_create(ifname, cause);

	if (!p)
		return NULL;
	pcap_set_snaplen(p, 65535);
	pcap_set_promisc(p, 1);
	pcap_set_timeout(p, RETIRE_MS);
	pcap_set_buffer_size(p, BUFFER_BYTES);
	pcap_set_tstamp_precision(p, PCAP_TSTAMP_PRECISION_NANO);
	if (pcap_activate(p) < 0 ||
	    pcap_compile(p, &prog, "udp dst port 4791 or (vlan and udp dst port 4791)", 1,
			 PCAP_NETMASK_UNKNOWN) ||
	    pcap_setfilter(p, &prog) || pcap_setnonblock(p, 1, cause)) {
		snprintf(cause, PCAP_ERRBUF_SIZE, "%s", pcap_geterr(p));
		pcap_close(p);
		return NULL;
	}
	pcap_freecode(&prog);
	return p;
}

int check_capture(const char *ifname, const char *path, double seconds)
{
	struct sigaction sa = {.sa_handler = on_signal};
	char cause[PCAP_ERRBUF_SIZE] = "";
	double end = seconds ? now_s() + seconds : 0, quiet = 0;
	pcap_t *p = open_live(ifname, cause);
	struct pcap_stat st = {0};
	struct pollfd pfd;
	pcap_dumper_t *d;
	int r;

	if (!p)
		return fail(ifname, cause);
	d = pcap_dump_open(p, path);
	if (!d)
		return fail(path, pcap_geterr(p));
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	pfd = (struct pollfd){.fd = pcap_get_selectable_fd(p), .events = POLLIN};
	fprintf(stderr, "capture: ready\n");
	/* After the end the last block is waited for. */
	while (!quiet || now_s() < quiet) {
		if (!quiet && (stop || (end && now_s() >= end)))
			quiet = now_s() + 4 * RETIRE_MS / 1e3;
		poll(&pfd, 1, RETIRE_MS);
		r = pcap_dispatch(p, -1, keep, (u_char *)d);
		if (r == PCAP_ERROR)
			return fail(ifname, pcap_geterr(p));
	}
	pcap_stats(p, &st);
	if (pcap_dump_flush(d))
		return fail(path, strerror(errno));
	pcap_dump_close(d);
	pcap_close(p);
	printf("capture: frames=%" PRIu64 " dropped=%u\n", frames, st.ps_drop);
	return st.ps_drop ? CHECK_VIOLATIONS : CHECK_RIGHT;
}
