// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Blocks as in draft-ietf-opsawg-pcapng: Section Header, two Interface Descriptions, Enhanced
 * Packets. All in this machine's byte order, as the Section Header tells. libpcap reads this
 * format, but cannot write comments or directions.
 */
#include "cli/pcapng.h"

#include <string.h>

#define BLOCK_SECTION	0x0a0d0d0au
#define BLOCK_INTERFACE 1u
#define BLOCK_PACKET	6u
#define BYTE_ORDER_MARK 0x1a2b3c4du
#define LINK_ETHERNET	1
#define OPT_END		0
#define OPT_COMMENT	1
#define OPT_IF_NAME	2
#define OPT_IF_TSRESOL	9
#define OPT_EPB_FLAGS	2

static uint32_t padded(uint32_t n)
{
	return (n + 3) & ~3u;
}

static void put32(FILE *f, uint32_t v)
{
	fwrite(&v, sizeof(v), 1, f);
}

static void put16(FILE *f, uint16_t v)
{
	fwrite(&v, sizeof(v), 1, f);
}

static void put_bytes(FILE *f, const void *data, uint32_t n)
{
	static const char zero[4];

	fwrite(data, 1, n, f);
	fwrite(zero, 1, padded(n) - n, f);
}

static void put_option(FILE *f, uint16_t code, const void *data, uint32_t n)
{
	put16(f, code);
	put16(f, (uint16_t)n);
	put_bytes(f, data, n);
}

static void put_interface(FILE *f, const char *name, uint32_t snap)
{
	const uint8_t nanoseconds = 9;
	uint32_t len = (uint32_t)strlen(name);
	uint32_t total = 20 + 4 + padded(len) + 4 + 4 + 4;

	put32(f, BLOCK_INTERFACE);
	put32(f, total);
	put16(f, LINK_ETHERNET);
	put16(f, 0);
	put32(f, snap);
	put_option(f, OPT_IF_NAME, name, len);
	put_option(f, OPT_IF_TSRESOL, &nanoseconds, 1);
	put_option(f, OPT_END, "", 0);
	put32(f, total);
}

void pcapng_begin(FILE *f, uint32_t snap)
{
	put32(f, BLOCK_SECTION);
	put32(f, 28);
	put32(f, BYTE_ORDER_MARK);
	put16(f, 1);
	put16(f, 0);
	put32(f, UINT32_MAX); /* length of the section: unknown */
	put32(f, UINT32_MAX);
	put32(f, 28);
	put_interface(f, "lan", snap);
	put_interface(f, "wan", snap);
}

void pcapng_packet(FILE *f, const struct pcapng_packet *p)
{
	uint32_t flags = p->in ? 1 : 2, comment = (uint32_t)strlen(p->comment);
	uint32_t total = 32 + padded(p->kept) + 8 + 4 + padded(comment) + 4;

	put32(f, BLOCK_PACKET);
	put32(f, total);
	put32(f, p->interface);
	put32(f, (uint32_t)(p->time_ns >> 32));
	put32(f, (uint32_t)p->time_ns);
	put32(f, p->kept);
	put32(f, p->len);
	put_bytes(f, p->data, p->kept);
	put_option(f, OPT_EPB_FLAGS, &flags, 4);
	put_option(f, OPT_COMMENT, p->comment, comment);
	put_option(f, OPT_END, "", 0);
	put32(f, total);
}
