// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sends RoCEv2-like frames of one length as fast as a packet socket goes, or at a given rate. Good
 * only for measuring what forwards them: there is no ICRC.
 *
 *	frame_blast [-n COUNT] [-t SECONDS] [-r PACKETS_PER_SECOND] IF LENGTH SRC DST
 *
 * Prints how many it sent. What arrives is for the other interface's counters to say.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "wire/bytes.h"

#define BATCH	32
#define L3	ETH_HLEN
#define L4	(L3 + 20)
#define BTH	(L4 + 8)
#define MIN_LEN (BTH + 12 + 4 + 4)
#define MAX_LEN 9000

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void make(uint8_t *f, uint32_t len, const char *src, const char *dst)
{
	uint32_t sum = 0, i;

	memcpy(f, "\x02\x4c\x48\x00\x00\x02\x02\x4c\x48\x00\x00\x01", 12);
	put_be16(f + 12, ETH_P_IP);
	f[L3] = 0x45;
	put_be16(f + L3 + 2, (uint16_t)(len - L3));
	put_be16(f + L3 + 6, 0x4000);
	f[L3 + 8] = 64;
	f[L3 + 9] = 17;
	if (inet_pton(AF_INET, src, f + L3 + 12) != 1 ||
	    inet_pton(AF_INET, dst, f + L3 + 16) != 1) {
		fprintf(stderr, "frame_blast: SRC and DST are IPv4 addresses\n");
		exit(2);
	}
	for (i = 0; i < 20; i += 2)
		sum += get_be16(f + L3 + i);
	sum = (sum & 0xffff) + (sum >> 16);
	put_be16(f + L3 + 10, (uint16_t) ~(sum + (sum >> 16)));
	put_be16(f + L4, 0xc000);
	put_be16(f + L4 + 2, 4791);
	put_be16(f + L4 + 4, (uint16_t)(len - L4));
	f[BTH] = 0x07; /* WRITE MIDDLE */
	put_be16(f + BTH + 2, 0xffff);
	put_be24(f + BTH + 5, 0x11);
}

int main(int argc, char **argv)
{
	static uint8_t frame[BATCH][MAX_LEN];
	static struct mmsghdr msg[BATCH];
	static struct iovec iov[BATCH];
	struct sockaddr_ll ll = {.sll_family = AF_PACKET, .sll_protocol = 0};
	uint64_t count = UINT64_MAX, sent = 0, t0, end = UINT64_MAX, t;
	double seconds = 0, rate = 0;
	uint32_t len, psn = 0;
	int fd, c, i, one = 1;

	while ((c = getopt(argc, argv, "n:t:r:")) != -1) {
		if (c == 'n')
			count = strtoull(optarg, NULL, 0);
		else if (c == 't')
			seconds = atof(optarg);
		else if (c == 'r')
			rate = atof(optarg);
		else
			return 2;
	}
	if (argc - optind != 4) {
		fprintf(stderr,
			"usage: frame_blast [-n COUNT] [-t SECONDS] [-r PACKETS_PER_SECOND] "
			"IF LENGTH SRC DST\n");
		return 2;
	}
	ll.sll_ifindex = (int)if_nametoindex(argv[optind]);
	len = (uint32_t)atoi(argv[optind + 1]);
	if (!ll.sll_ifindex || len < MIN_LEN || len > MAX_LEN) {
		fprintf(stderr, "frame_blast: no such interface, or LENGTH not in %d .. %d\n",
			MIN_LEN, MAX_LEN);
		return 2;
	}
	fd = socket(AF_PACKET, SOCK_RAW, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&ll, sizeof(ll)) < 0) {
		fprintf(stderr, "frame_blast: packet socket on %s: %s\n", argv[optind],
			strerror(errno));
		return 1;
	}
	setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one));
	for (i = 0; i < BATCH; i++) {
		make(frame[i], len, argv[optind + 2], argv[optind + 3]);
		iov[i] = (struct iovec){.iov_base = frame[i], .iov_len = len};
		msg[i].msg_hdr.msg_iov = &iov[i];
		msg[i].msg_hdr.msg_iovlen = 1;
	}

	t0 = now();
	if (seconds > 0)
		end = t0 + (uint64_t)(seconds * 1e9);
	while (sent < count && (t = now()) < end) {
		int n = count - sent < BATCH ? (int)(count - sent) : BATCH;

		if (rate > 0) {
			double due = (double)(t - t0) / 1e9 * rate - (double)sent;

			if (due < 1) {
				usleep(50);
				continue;
			}
			if (due < n)
				n = (int)due;
		}
		for (i = 0; i < n; i++)
			put_be24(frame[i] + BTH + 9, psn++ & 0xffffff);
		for (i = 0; i < n;) {
			c = sendmmsg(fd, msg + i, (unsigned int)(n - i), 0);
			if (c > 0) {
				i += c;
				sent += (uint64_t)c;
			} else if (errno == ENOBUFS) {
				i++; /* the device dropped it */
			} else if (errno != EAGAIN && errno != EINTR) {
				fprintf(stderr, "frame_blast: %s\n", strerror(errno));
				return 1;
			}
		}
	}
	printf("{\"sent\":%llu,\"seconds\":%.3f}\n", (unsigned long long)sent,
	       (double)(now() - t0) / 1e9);
	return 0;
}
