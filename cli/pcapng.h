/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A pcapng file of two Ethernet interfaces, with directions and comments. */
#ifndef LONGHAUL_CLI_PCAPNG_H
#define LONGHAUL_CLI_PCAPNG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/** pcapng_begin - headers: interfaces 0 "lan" and 1 "wan", times in ns. */
void pcapng_begin(FILE *f, uint32_t snap);

/** struct pcapng_packet - @len: on the wire; @kept: in @data; @in: it came in, else it left. */
struct pcapng_packet {
	uint32_t interface;
	bool in;
	uint64_t time_ns;
	const uint8_t *data;
	uint32_t kept, len;
	const char *comment;
};

void pcapng_packet(FILE *f, const struct pcapng_packet *p);

#endif
