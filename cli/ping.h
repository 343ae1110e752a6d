/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Find the longest packet that reaches a host, by ICMP echo requests with fragmentation forbidden.
 */
#ifndef LONGHAUL_CLI_PING_H
#define LONGHAUL_CLI_PING_H

#include <stdbool.h>

/* How closely the length is found, bytes. */
#define PING_CLOSE 8

/**
 * struct ping - lengths in bytes, from the IP header on.
 * @answers: the host answers a short one; @carried: the longest that it answers, up to what was
 *           asked for; @no_route: this machine has no way to it
 */
struct ping {
	bool answers, no_route;
	unsigned int carried;
};

/** ping_host - ask @address, written in numbers, with packets of up to @most bytes; takes some
 * seconds where answers are missing. False when this process may not, or with no such address. */
bool ping_host(const char *address, unsigned int most, struct ping *out);

#endif
