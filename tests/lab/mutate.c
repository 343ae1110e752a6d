// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Damaged frames: those of captures, in the name of a host, each with one thing wrong: flipped
 * bits, cut off, lengths that lie, fragments, tags upon tags, extension headers, opcodes, sizes.
 * Three of four get a right ICRC (and IP checksum) afterwards, so that they are looked at more
 * closely than noise would be.
 *
 * With --qpn most of them are for that queue pair, with PSNs drawn from the whole circle, as from a
 * third party that knows the hosts but not the state of their connections.
 */
#include <getopt.h>
#include <inttypes.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/wanem/pkt_ring.h"
#include "cli/wanem/prng.h"
#include "wire/build.h"
#include "wire/icrc.h"
#include "wire/psn.h"

#define SECOND	  1000000000ull
#define CORPUS	  8192
#define ROOM	  PKT_RING_FRAME_MAX
#define QPN_COUNT 8 /* without --qpn: few, so that state is met again */

static const char help[] =
	"usage: mutate --if IF --from IP --to IP [--to-mac M] [--count N (1000)] [--rate N "
	"(3000)]\n"
	"              [--seed N (1)] [--qpn N] CAPTURE...\n"
	"Sends damaged copies of the captures' RoCEv2 frames and prints {\"sent\":N}.\n";

static struct {
	const char *ifname;
	struct ip_addr from, to;
	uint8_t to_mac[6];
	uint64_t count, rate, seed;
	uint32_t qpn;
} opt = {.to_mac = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	 .count = 1000,
	 .rate = 3000,
	 .seed = 1,
	 .qpn = UINT32_MAX};

static struct {
	uint8_t *data;
	uint32_t len;
} corpus[CORPUS];
static uint32_t corpus_len;
static struct prng prng;

/* A frame on its way to be sent; @l3 and @bth are where they were before the damage. */
struct victim {
	uint8_t *data;
	uint32_t len, l3, bth;
	bool ip6;
};

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

static uint32_t draw(uint32_t n)
{
	return prng_below(&prng, n);
}

static void load(const char *path)
{
	char err[PCAP_ERRBUF_SIZE];
	pcap_t *p = pcap_open_offline(path, err);
	struct pcap_pkthdr *h;
	const u_char *data;

	if (!p) {
		fprintf(stderr, "mutate: %s\n", err);
		exit(1);
	}
	while (corpus_len < CORPUS && pcap_next_ex(p, &h, &data) == 1) {
		struct frame f;

		if (h->caplen > ROOM - 64 || frame_parse(data, h->caplen, &f) != FRAME_OK ||
		    f.ip6 == ip_addr_is_v4(&opt.from))
			continue;
		corpus[corpus_len].data = malloc(h->caplen);
		if (!corpus[corpus_len].data)
			exit(1);
		memcpy(corpus[corpus_len].data, data, h->caplen);
		corpus[corpus_len++].len = f.len;
	}
	pcap_close(p);
}

/* A copy of a frame, for our hosts and queue pairs. */
static void choose(struct victim *v)
{
	uint32_t i = draw(corpus_len), qpn = 0x11 + draw(QPN_COUNT);
	struct frame f;

	memcpy(v->data, corpus[i].data, corpus[i].len);
	frame_parse(v->data, corpus[i].len, &f);
	v->len = f.len;
	v->l3 = f.l3;
	v->bth = f.bth;
	v->ip6 = f.ip6;
	memcpy(v->data, opt.to_mac, 6);
	memcpy(v->data + v->l3 + (v->ip6 ? 8 : 12), opt.from.b + (v->ip6 ? 0 : 12),
	       v->ip6 ? 16 : 4);
	memcpy(v->data + v->l3 + (v->ip6 ? 24 : 16), opt.to.b + (v->ip6 ? 0 : 12), v->ip6 ? 16 : 4);
	if (opt.qpn != UINT32_MAX && draw(8))
		qpn = opt.qpn;
	if (f.dqpn != 1) /* CM stays CM */
		put_be24(v->data + v->bth + 5, qpn);
	put_be24(v->data + v->bth + 9, draw(PSN_MASK + 1));
}

static void grow(struct victim *v, uint32_t n)
{
	for (; n && v->len < ROOM; n--)
		v->data[v->len++] = (uint8_t)draw(256);
}

static void insert(struct victim *v, uint32_t at, uint32_t n)
{
	if (v->len + n > ROOM)
		return;
	memmove(v->data + at + n, v->data + at, v->len - at);
	v->len += n;
}

static void tags(struct victim *v)
{
	for (uint32_t n = 1 + draw(3); n; n--) {
		insert(v, 12, 4);
		put_be16(v->data + 12, draw(2) ? 0x8100 : 0x88a8);
		put_be16(v->data + 14, (uint16_t)draw(65536));
		v->l3 += 4;
		v->bth += 4;
	}
}

static void extension_header(struct victim *v)
{
	static const uint8_t next[] = {0, 43, 44, 51, 59, 60, 135};

	if (!v->ip6)
		return;
	insert(v, v->l3 + 40, 8);
	v->data[v->l3 + 6] = next[draw(sizeof(next))];
	memset(v->data + v->l3 + 40, 0, 8);
	v->data[v->l3 + 40] = 17;
	v->bth += 8;
}

/* What the IP and UDP headers say of the length, made to fit it. */
static void fit_lengths(struct victim *v)
{
	uint32_t l4 = v->bth - 8;

	if (v->ip6)
		put_be16(v->data + v->l3 + 4, (uint16_t)(v->len - v->l3 - 40));
	else
		put_be16(v->data + v->l3 + 2, (uint16_t)(v->len - v->l3));
	put_be16(v->data + l4 + 4, (uint16_t)(v->len - l4));
}

static void fit_icrc(struct victim *v)
{
	/* a length that is no multiple of 4 leaves no room for an ICRC */
	if (v->len < v->bth + BTH_LEN + ICRC_LEN || (v->len - v->bth) % 4 ||
	    v->data[v->l3] >> 4 != (v->ip6 ? 6 : 4))
		return;
	if (!v->ip6 && v->data[v->l3] == 0x45) {
		put_be16(v->data + v->l3 + 10, 0);
		put_be16(v->data + v->l3 + 10, ip4_csum(v->data + v->l3));
	}
	put_le32(v->data + v->len - ICRC_LEN, icrc_of(v->data, v->l3, v->len - ICRC_LEN));
}

/* A length as no RETH should have it, of whatever opcode. */
static void reth_length(struct victim *v)
{
	static const uint32_t lengths[] = {0,	  1,	      3,	  4096,
					   65536, 0x7fffffff, 0x80000000, 0xffffffff};

	v->data[v->bth] = (uint8_t)draw(0x1e);
	if (v->bth + BTH_LEN + 16 <= v->len)
		put_be32(v->data + v->bth + BTH_LEN + 12, lengths[draw(8)]);
}

static void damage(struct victim *v)
{
	uint8_t *d = v->data;
	bool fits = false;

	switch (draw(14)) {
	case 0:
		for (uint32_t n = 1 + draw(8); n; n--)
			d[draw(v->len)] ^= (uint8_t)(1u << draw(8));
		break;
	case 1:
		v->len = 14 + draw(v->len - 14);
		break;
	case 2:
		grow(v, 1 + draw(200));
		fits = draw(2);
		break;
	case 3:
		put_be16(d + v->bth - 4, (uint16_t)draw(65536)); /* UDP length */
		break;
	case 4:
		put_be16(d + v->l3 + (v->ip6 ? 4 : 2), (uint16_t)draw(65536));
		break;
	case 5:
		d[v->l3] = (uint8_t)((d[v->l3] & 0xf0) | draw(16)); /* header length, class */
		break;
	case 6:
		put_be16(d + v->l3 + 6, (uint16_t)draw(65536)); /* fragment, next header */
		break;
	case 7:
		tags(v);
		break;
	case 8:
		extension_header(v);
		break;
	case 9:
		d[v->bth] = (uint8_t)draw(256); /* opcode */
		break;
	case 10:
		d[v->bth + 1] = (uint8_t)draw(256); /* pad count, version, MigReq */
		break;
	case 11:
		for (uint32_t i = v->bth + BTH_LEN; i < v->bth + BTH_LEN + 16 && i < v->len; i++)
			d[i] = (uint8_t)draw(256);
		break;
	case 12:
		v->len = v->bth + BTH_LEN + draw(16);
		grow(v, draw(4160));
		fits = true;
		break;
	default:
		reth_length(v);
		break;
	}
	if (fits)
		fit_lengths(v);
	if (draw(4))
		fit_icrc(v);
}

static int send_all(struct pkt_ring *ring)
{
	uint64_t t0 = clock_ns(), sent = 0;

	for (; sent < opt.count; sent++) {
		struct victim v;

		while (!(v.data = pkt_ring_buf(ring)) || clock_ns() - t0 < sent * SECOND / opt.rate)
			nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
		choose(&v);
		damage(&v);
		pkt_ring_queue(ring, v.len);
		pkt_ring_flush(ring);
	}
	printf("{\"sent\":%" PRIu64 "}\n", sent);
	return 0;
}

static void parse_options(int argc, char **argv)
{
	static const struct option longs[] = {{"if", 1, NULL, 'i'},    {"from", 1, NULL, 'f'},
					      {"to", 1, NULL, 't'},    {"to-mac", 1, NULL, 'm'},
					      {"count", 1, NULL, 'n'}, {"rate", 1, NULL, 'r'},
					      {"seed", 1, NULL, 's'},  {"qpn", 1, NULL, 'q'},
					      {"help", 0, NULL, 'h'},  {0}};
	uint8_t *m = opt.to_mac;
	bool from = false, to = false, good = true;
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 'i')
			opt.ifname = optarg;
		else if (c == 'f')
			from = !ip_addr_parse(optarg, &opt.from);
		else if (c == 't')
			to = !ip_addr_parse(optarg, &opt.to);
		else if (c == 'm')
			good &= sscanf(optarg, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", m, m + 1, m + 2,
				       m + 3, m + 4, m + 5) == 6;
		else if (c == 'n')
			good &= (opt.count = strtoull(optarg, NULL, 0)) > 0;
		else if (c == 'r')
			good &= (opt.rate = strtoull(optarg, NULL, 0)) > 0;
		else if (c == 's')
			opt.seed = strtoull(optarg, NULL, 0);
		else if (c == 'q')
			opt.qpn = (uint32_t)strtoul(optarg, NULL, 0) & PSN_MASK;
		else if (c == 'h')
			exit(fputs(help, stdout) < 0);
		else
			exit(2);
	}
	if (!good || !opt.ifname || !from || !to || optind == argc) {
		fputs(help, stderr);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct pkt_ring *ring;

	parse_options(argc, argv);
	prng_init(&prng, opt.seed);
	for (int i = optind; i < argc; i++)
		load(argv[i]);
	if (!corpus_len) {
		fputs("mutate: no RoCEv2 frame of that IP version in the captures\n", stderr);
		return 1;
	}
	ring = pkt_ring_open(opt.ifname, 32, 256, false, PKT_RING_FRAME_MAX);
	if (!ring)
		return 1;
	send_all(ring);
	pkt_ring_close(ring);
	for (uint32_t i = 0; i < corpus_len; i++)
		free(corpus[i].data);
	return 0;
}
