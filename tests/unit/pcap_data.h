/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The captures of tests/data, read whole into memory. Every packet lies in a block of its own of
 * exactly its length, so that the address sanitizer sees a read beyond it. TEST_DATA names the
 * folder when the tests do not run from the top of the tree.
 */
#ifndef LONGHAUL_TESTS_PCAP_DATA_H
#define LONGHAUL_TESTS_PCAP_DATA_H

#include <pcap/pcap.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pcap_data {
	uint32_t n;
	uint32_t *len;
	uint8_t **pkt;
};

static const char *const pcap_data_all[] = {
	"atomic",	"bidir-2qp", "cm-rping", "rc-pingpong", "read",	    "read-v6",
	"send-mtu4096", "uc",	     "ud",	 "write",	"write-v6",
};
#define PCAP_DATA_FILES (sizeof(pcap_data_all) / sizeof(pcap_data_all[0]))

/* The capture "@name.pcap"; ends the test program when there is none. */
static inline struct pcap_data pcap_data_load(const char *name)
{
	const char *dir = getenv("TEST_DATA");
	char path[512], err[PCAP_ERRBUF_SIZE];
	struct pcap_data d = {0};
	struct pcap_pkthdr *h;
	const u_char *bytes;
	pcap_t *p;

	snprintf(path, sizeof(path), "%s/%s.pcap", dir ? dir : "tests/data", name);
	p = pcap_open_offline(path, err);
	if (!p) {
		fprintf(stderr, "%s: %s\n", path, err);
		exit(1);
	}
	while (pcap_next_ex(p, &h, &bytes) == 1) {
		d.len = realloc(d.len, (d.n + 1) * sizeof(*d.len));
		d.pkt = realloc(d.pkt, (d.n + 1) * sizeof(*d.pkt));
		d.len[d.n] = h->caplen;
		d.pkt[d.n] = malloc(h->caplen);
		memcpy(d.pkt[d.n], bytes, h->caplen);
		d.n++;
	}
	pcap_close(p);
	if (!d.n) {
		fprintf(stderr, "%s: empty\n", path);
		exit(1);
	}
	return d;
}

static inline void pcap_data_free(struct pcap_data *d)
{
	for (uint32_t i = 0; i < d->n; i++)
		free(d->pkt[i]);
	free(d->pkt);
	free(d->len);
	memset(d, 0, sizeof(*d));
}

#endif
