/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Host names, looked up by another process: a name server may take seconds, and the daemon's thread
 * moves packets. The process has no privileges, and ends with the daemon.
 */
#ifndef LONGHAUL_RESOLVER_H
#define LONGHAUL_RESOLVER_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/frame.h" /* struct ip_addr */

#define RESOLVER_NAME 254

struct resolver;

/** resolver_start - fork the process. To be called before large memory exists, which would be
 * copied. NULL with errno. */
struct resolver *resolver_start(void);

/** resolver_stop - NULL is fine. */
void resolver_stop(struct resolver *r);

/** resolver_fd - readable when there is an answer. */
int resolver_fd(const struct resolver *r);

/** resolver_ask - false when it is busy or gone: ask again later. The answer has @tag;
 *  @family: AF_INET, AF_INET6 or AF_UNSPEC. */
bool resolver_ask(struct resolver *r, uint32_t tag, const char *name, int family);

/**
 * struct resolver_answer
 * @error: 0, or text why there is no @addr
 */
struct resolver_answer {
	uint32_t tag;
	char name[RESOLVER_NAME];
	struct ip_addr addr;
	char error[96];
};

/** resolver_next - the next answer, 0; -EAGAIN: none yet; -EPIPE: it has ended. Never waits. */
int resolver_next(struct resolver *r, struct resolver_answer *a);

/** resolver_lookup - look up at once, waiting: the first address of @name. NULL, or why there is
 * none. */
const char *resolver_lookup(const char *name, int family, struct ip_addr *addr);

#endif
