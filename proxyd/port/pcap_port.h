/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A capture file as a source of frames (libpcap), for longhauld --replay.
 */
#ifndef LONGHAUL_PORT_PCAP_PORT_H
#define LONGHAUL_PORT_PCAP_PORT_H

#include <stddef.h>
#include <stdint.h>

/** pcap_port_fn - one frame: @ts_ns since the epoch; @data: @caplen bytes captured of @len. */
typedef void (*pcap_port_fn)(void *ctx, uint64_t ts_ns, const uint8_t *data, uint32_t caplen,
			     uint32_t len);

/**
 * pcap_port_replay - hand every frame of @path to @fn, in order. 0, or negative errno and a
 * one-line cause in @err (no such file, not a capture, not Ethernet, cut short). Frames before the
 * cut are handed over first.
 */
int pcap_port_replay(const char *path, pcap_port_fn fn, void *ctx, char *err, size_t errlen);

#endif
