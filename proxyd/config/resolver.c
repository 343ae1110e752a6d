// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "config/resolver.h"

#include <cap-ng.h>
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

struct resolver {
	int fd;
};

struct question {
	uint32_t tag;
	int family;
	char name[RESOLVER_NAME];
};

const char *resolver_lookup(const char *name, int family, struct ip_addr *addr)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_family = family};
	char text[NI_MAXHOST];
	struct addrinfo *list;
	int e = getaddrinfo(name, NULL, &hints, &list);

	if (e)
		return e == EAI_SYSTEM ? strerror(errno) : gai_strerror(e);
	e = getnameinfo(list->ai_addr, list->ai_addrlen, text, sizeof(text), NULL, 0,
			NI_NUMERICHOST);
	freeaddrinfo(list);
	return e || ip_addr_parse(text, addr) ? "its address cannot be used" : NULL;
}

/* The resolver process: answer requests until the daemon ends. */
static void serve(int fd)
{
	struct resolver_answer a;
	struct question q;

	while (recv(fd, &q, sizeof(q), 0) == sizeof(q)) {
		const char *error;

		q.name[sizeof(q.name) - 1] = '\0';
		memset(&a, 0, sizeof(a));
		a.tag = q.tag;
		memcpy(a.name, q.name, sizeof(a.name));
		error = resolver_lookup(q.name, q.family, &a.addr);
		snprintf(a.error, sizeof(a.error), "%s", error ? error : "");
		if (send(fd, &a, sizeof(a), MSG_NOSIGNAL) != sizeof(a))
			break;
	}
}

static void be_nobody(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != parent)
		_exit(0);
	/* signals to the whole service are for the daemon; this process ends with it */
	signal(SIGTERM, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	prctl(PR_SET_NAME, "longhauld-names", 0, 0, 0);
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	capng_clear(CAPNG_SELECT_BOTH);
	capng_apply(CAPNG_SELECT_CAPS);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

struct resolver *resolver_start(void)
{
	struct resolver *r = malloc(sizeof(*r));
	pid_t self = getpid(), child;
	int pair[2];

	if (!r || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		free(r);
		return NULL;
	}
	child = fork();
	if (child == 0) {
		close(pair[0]);
		be_nobody(self);
		serve(pair[1]);
		_exit(0);
	}
	close(pair[1]);
	if (child < 0) {
		close(pair[0]);
		free(r);
		return NULL;
	}
	r->fd = pair[0];
	return r;
}

/* The process ends when its socket closes; it is not waited for. */
void resolver_stop(struct resolver *r)
{
	if (!r)
		return;
	close(r->fd);
	free(r);
}

int resolver_fd(const struct resolver *r)
{
	return r->fd;
}

bool resolver_ask(struct resolver *r, uint32_t tag, const char *name, int family)
{
	struct question q = {.tag = tag, .family = family};

	snprintf(q.name, sizeof(q.name), "%s", name);
	return send(r->fd, &q, sizeof(q), MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(q);
}

int resolver_next(struct resolver *r, struct resolver_answer *a)
{
	ssize_t n = recv(r->fd, a, sizeof(*a), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	return n == sizeof(*a) ? 0 : -EPIPE;
}
