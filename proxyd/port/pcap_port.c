// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A capture file as a source of frames.
 */
#include <errno.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <string.h>

#include "port/pcap_port.h"

static int fail(char *err, size_t errlen, int code, const char *path, const char *cause)
{
	snprintf(err, errlen, "%s: %s", path, cause);
	return code;
}

int pcap_port_replay(const char *path, pcap_port_fn fn, void *ctx, char *err, size_t errlen)
{
	char cause[PCAP_ERRBUF_SIZE] = "";
	struct pcap_pkthdr *h;
	const uint8_t *data;
	FILE *file;
	pcap_t *p;
	int r;

	/* Opened here, since libpcap does not tell "no such file" from "not a capture". */
	file = fopen(path, "rbe");
	if (!file) {
		r = -errno;
		return fail(err, errlen, r, path, strerror(-r));
	}
	p = pcap_fopen_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO, cause);
	if (!p) {
		fclose(file);
		return fail(err, errlen, -EINVAL, path, cause);
	}
	if (pcap_datalink(p) != DLT_EN10MB) {
		r = fail(
			err, errlen, -EPROTONOSUPPORT, path,
			"link type is not Ethernet: capture on an Ethernet interface, not \"any\"");
		pcap_close(p);
		return r;
	}
	while ((r = pcap_next_ex(p, &h, &data)) == 1)
		fn(ctx, (uint64_t)h->ts.tv_sec * 1000000000u + (uint64_t)h->ts.tv_usec, data,
		   h->caplen, h->len);
	if (r == PCAP_ERROR_BREAK) /* end of file */
		r = 0;
	else
		r = fail(err, errlen, -EBADMSG, path, pcap_geterr(p));
	pcap_close(p);
	return r;
}
