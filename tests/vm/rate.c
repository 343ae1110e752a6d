// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How fast data arrived at a host, from a capture of its LAN: payload that the host had not had
 * before (requests, READ and ATOMIC answers, also UC and UD), over the time from its first RoCE
 * frame to the last one with such payload.
 *
 * Nothing is taken from the tool that ran there: through the appliances a requester's completions
 * come early, and its own rate would be that of its LAN.
 */
#include <pcap/pcap.h>
#include <stdio.h>
#include <string.h>

#include "wire/frame.h"
#include "wire/psn.h"

#define FLOWS 256

/* Packets to one queue pair from one host, requests and answers apart. */
struct flow {
	struct ip_addr src;
	uint32_t dqpn, next;
	bool answers;
};

static struct flow flows[FLOWS];
static unsigned int nflows;

/* Whether @f is further than anything its flow has brought. */
static bool is_new(const struct frame *f, bool answer)
{
	struct flow *fl;

	for (fl = flows; fl < flows + nflows; fl++)
		if (fl->dqpn == f->dqpn && fl->answers == answer && ip_addr_eq(&fl->src, &f->src))
			break;
	if (fl == flows + nflows) {
		if (nflows == FLOWS)
			return false;
		*fl = (struct flow){
			.src = f->src, .dqpn = f->dqpn, .answers = answer, .next = f->psn};
		nflows++;
	}
	if (psn_before(f->psn, fl->next))
		return false;
	fl->next = psn_add(f->psn, 1);
	return true;
}

static uint32_t delivered(const struct frame *f)
{
	uint32_t bytes = f->payload_len;

	if (f->atomicack)
		bytes = 8;
	if (f->op->flags & OPF_RC)
		return is_new(f, f->op->flags & OPF_RESPONSE) ? bytes : 0;
	return bytes;
}

int main(int argc, char **argv)
{
	char err[PCAP_ERRBUF_SIZE];
	double first = -1, last = 0;
	struct pcap_pkthdr *h;
	uint64_t bytes = 0;
	struct ip_addr to;
	const u_char *data;
	struct frame f;
	pcap_t *p;

	if (argc != 3 || ip_addr_parse(argv[1], &to)) {
		fprintf(stderr, "usage: rate ADDRESS FILE\nprints bytes, seconds and MB/s of what "
				"arrived there\n");
		return 2;
	}
	p = pcap_open_offline(argv[2], err);
	if (!p) {
		fprintf(stderr, "rate: %s\n", err);
		return 1;
	}
	while (pcap_next_ex(p, &h, &data) == 1) {
		double t = (double)h->ts.tv_sec + (double)h->ts.tv_usec / 1e6;
		uint32_t n;

		/* queue pair 1 is the connection manager's */
		if (frame_parse(data, h->caplen, &f) != FRAME_OK || f.dqpn <= 1)
			continue;
		if (first < 0)
			first = t;
		if (!ip_addr_eq(&f.dst, &to))
			continue;
		n = delivered(&f);
		if (n)
			last = t;
		bytes += n;
	}
	pcap_close(p);
	printf("%llu %.6f %.6f\n", (unsigned long long)bytes, last > first ? last - first : 0,
	       last > first ? (double)bytes / (last - first) / 1e6 : 0);
	return 0;
}
