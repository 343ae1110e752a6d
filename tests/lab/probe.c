// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sends numbered frames from one host to another, where a receiver counts how many were lost and
 * how many came twice. They are RoCEv2 to a queue pair that does not exist, so an appliance only
 * passes them, and any fault is one of its ports.
 *
 * The receiver says "ready" on standard error when it listens, and ends when the last number has
 * come, or nothing for --quiet-ms.
 */
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/wanem/pkt_ring.h"
#include "wire/build.h"
#include "wire/icrc.h"

#define SECOND	  1000000000ull
#define PROBE_QPN 0x777777u

static const char help[] =
	"usage: probe --send --if IF --from IP --to IP --to-mac M --count N [--rate PER-SECOND "
	"(2000)]\n"
	"       probe --receive --if IF --from IP --count N [--quiet-ms N (2000)] [--wait-s N "
	"(20)]\n"
	"The receiver prints {\"got\":N,\"lost\":N,\"doubled\":N,\"altered\":N}.\n";

static struct {
	bool send, receive;
	const char *ifname;
	struct ip_addr from, to;
	uint8_t to_mac[6];
	uint64_t count, rate, quiet_ms, wait_s;
} opt = {.rate = 2000, .quiet_ms = 2000, .wait_s = 20};

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

static void pause_ns(uint64_t ns)
{
	struct timespec ts = {.tv_nsec = (long)ns};

	nanosleep(&ts, NULL);
}

static int send_all(struct pkt_ring *ring)
{
	uint64_t t0 = clock_ns();
	struct template t;

	template_make(&t, pkt_ring_mac(ring), opt.to_mac, FRAME_VLAN_NONE, &opt.from, &opt.to,
		      0xc777);
	for (uint64_t i = 0; i < opt.count; i++) {
		uint8_t number[8];
		struct build_spec s = {.t = &t,
				       .opcode = OP_SEND_ONLY,
				       .dqpn = PROBE_QPN,
				       .psn = (uint32_t)i & 0xffffff,
				       .payload = number,
				       .payload_len = sizeof(number)};
		uint8_t *buf;

		put_be64(number, i);
		while (!(buf = pkt_ring_buf(ring)))
			pause_ns(100000);
		pkt_ring_queue(ring, build_packet(buf, &s));
		pkt_ring_flush(ring);
		while (clock_ns() - t0 < (i + 1) * SECOND / opt.rate)
			pause_ns(50000);
	}
	return 0;
}

/* The number of a probe, or UINT64_MAX; *@altered when the frame is one and its ICRC is wrong. */
static uint64_t number_of(const struct pkt_ring_frame *rf, bool *altered)
{
	struct frame f;

	if (frame_parse(rf->data, rf->len, &f) != FRAME_OK || f.dqpn != PROBE_QPN ||
	    f.payload_len != 8 || !ip_addr_eq(&f.src, &opt.from))
		return UINT64_MAX;
	*altered = !icrc_ok(&f);
	return get_be64(f.data + f.payload);
}

static int receive_all(struct pkt_ring *ring)
{
	uint8_t *seen = calloc(opt.count, 1);
	uint64_t got = 0, doubled = 0, wrong = 0, last = clock_ns() + opt.wait_s * SECOND;
	struct pollfd pfd = {.fd = pkt_ring_fd(ring), .events = POLLIN};

	if (!seen)
		return 1;
	fputs("ready\n", stderr);
	/* Also after the last number: a doubled one may come behind it. */
	while (clock_ns() < last) {
		struct pkt_ring_frame rf;

		poll(&pfd, 1, 20);
		while (pkt_ring_next(ring, &rf)) {
			bool altered = false;
			uint64_t n = number_of(&rf, &altered);

			if (n < opt.count) {
				wrong += altered;
				doubled += seen[n];
				got += !seen[n];
				seen[n] = 1;
				last = clock_ns() + opt.quiet_ms * (SECOND / 1000);
			}
			pkt_ring_release(ring);
		}
	}
	printf("{\"got\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"doubled\":%" PRIu64
	       ",\"altered\":%" PRIu64 ",\"dropped-here\":%" PRIu64 "}\n",
	       got, opt.count - got, doubled, wrong, pkt_ring_dropped(ring));
	free(seen);
	return 0;
}

static uint64_t number(const char *name, const char *text)
{
	char *end;
	uint64_t v = strtoull(text, &end, 0);

	if (end == text || *end || !v || v > UINT32_MAX) {
		fprintf(stderr, "probe: --%s %s: must be a number above 0\n", name, text);
		exit(2);
	}
	return v;
}

static void parse_options(int argc, char **argv)
{
	static const struct option longs[] = {
		{"send", 0, NULL, 's'},	 {"receive", 0, NULL, 'r'}, {"if", 1, NULL, 'i'},
		{"from", 1, NULL, 'f'},	 {"to", 1, NULL, 't'},	    {"to-mac", 1, NULL, 'm'},
		{"count", 1, NULL, 'n'}, {"rate", 1, NULL, 'p'},    {"quiet-ms", 1, NULL, 'q'},
		{"help", 0, NULL, 'h'},	 {"wait-s", 1, NULL, 'w'},  {0}};
	uint8_t *m = opt.to_mac;
	bool good = true;
	int c, which = 0;

	while ((c = getopt_long(argc, argv, "", longs, &which)) != -1) {
		if (c == 's')
			opt.send = true;
		else if (c == 'r')
			opt.receive = true;
		else if (c == 'i')
			opt.ifname = optarg;
		else if (c == 'f')
			good &= !ip_addr_parse(optarg, &opt.from);
		else if (c == 't')
			good &= !ip_addr_parse(optarg, &opt.to);
		else if (c == 'm')
			good &= sscanf(optarg, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", m, m + 1, m + 2,
				       m + 3, m + 4, m + 5) == 6;
		else if (c == 'n')
			opt.count = number("count", optarg);
		else if (c == 'p')
			opt.rate = number("rate", optarg);
		else if (c == 'q')
			opt.quiet_ms = number("quiet-ms", optarg);
		else if (c == 'w')
			opt.wait_s = number("wait-s", optarg);
		else if (c == 'h')
			exit(fputs(help, stdout) < 0);
		else
			exit(2);
	}
	if (!good || opt.send == opt.receive || !opt.ifname || !opt.count || optind != argc) {
		fputs(help, stderr);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct pkt_ring *ring;
	int status;

	parse_options(argc, argv);
	ring = pkt_ring_open(opt.ifname, 8192, 64, false, PKT_RING_FRAME_MAX);
	if (!ring)
		return 1;
	status = opt.send ? send_all(ring) : receive_all(ring);
	pkt_ring_close(ring);
	return status;
}
