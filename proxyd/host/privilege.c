// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Capabilities that stay: CAP_BPF, to change the steering maps and pins if unprivileged BPF is off;
 * and CAP_NET_ADMIN if an interface gets its VLAN stripping back at the end. CAP_NET_RAW is needed
 * only to open AF_XDP sockets, and goes. The user id stays: the unit starts the daemon as a user of
 * its own with ambient capabilities. A daemon started as root can still access root's files, but
 * has no capability for those of others.
 *
 * System calls: those of the data path (sendto, epoll, timerfd), of the two sockets, of a reload
 *	and of memory for libraries. If a call is needed for one purpose only, its argument is
 *	checked, too: bpf on maps and pins that are there; no program or map is loaded mmap,
 *	mprotect nothing becomes executable socket local ones, UDP; no AF_XDP, AF_PACKET, AF_NETLINK
 *	ioctl questions about interfaces, and their VLAN stripping
 * Any other call fails with EPERM: the list is against attackers who exploit an error in this
 * program.
 */
#include "host/privilege.h"

#include <asm/termbits.h>
#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/sockios.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#ifndef CAP_BPF
#define CAP_BPF 39
#endif

static const int allowed[] = {
	/* the loop */
	SCMP_SYS(epoll_wait),
	SCMP_SYS(epoll_pwait),
	SCMP_SYS(epoll_ctl),
	SCMP_SYS(epoll_create1),
	SCMP_SYS(timerfd_create),
	SCMP_SYS(timerfd_settime),
	SCMP_SYS(eventfd2),
	SCMP_SYS(pipe2),
	SCMP_SYS(poll),
	SCMP_SYS(ppoll),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(clock_nanosleep),
	SCMP_SYS(gettimeofday),
	SCMP_SYS(time),
	/* sockets: ports, peers, control, service manager, questions about interfaces */
	SCMP_SYS(connect),
	SCMP_SYS(accept4),
	SCMP_SYS(sendto),
	SCMP_SYS(sendmsg),
	SCMP_SYS(sendmmsg),
	SCMP_SYS(recvfrom),
	SCMP_SYS(recvmsg),
	SCMP_SYS(recvmmsg),
	SCMP_SYS(setsockopt),
	SCMP_SYS(getsockopt),
	SCMP_SYS(getsockname),
	SCMP_SYS(shutdown),
	/* files: log, reload, socket path */
	SCMP_SYS(read),
	SCMP_SYS(readv),
	SCMP_SYS(write),
	SCMP_SYS(writev),
	SCMP_SYS(close),
	SCMP_SYS(openat),
	SCMP_SYS(fstat),
	SCMP_SYS(newfstatat),
	SCMP_SYS(lseek),
	SCMP_SYS(fcntl),
	SCMP_SYS(unlink),
	SCMP_SYS(unlinkat),
	SCMP_SYS(mkdirat),
	SCMP_SYS(statfs),
	SCMP_SYS(getdents64),
	SCMP_SYS(readlink),
	SCMP_SYS(uname),
	/* owner of a key file */
	SCMP_SYS(geteuid),
	/* memory, locks, signals, the end */
	SCMP_SYS(brk),
	SCMP_SYS(munmap),
	SCMP_SYS(mremap),
	SCMP_SYS(madvise),
	SCMP_SYS(futex),
	SCMP_SYS(getrandom),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(restart_syscall),
	SCMP_SYS(getpid),
	SCMP_SYS(gettid),
	SCMP_SYS(tgkill),
	SCMP_SYS(sched_yield),
	SCMP_SYS(rseq),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
};

/**
 * struct allowed_if - one value of an argument for which a system call is allowed.
 * @call, @arg: the call, and index of the argument
 * @mask, @value: allowed when (argument & @mask) == @value
 */
struct allowed_if {
	int call;
	unsigned int arg;
	uint64_t mask, value;
};

#define IS(c, a, v)                                                                                \
	{                                                                                          \
		SCMP_SYS(c), a, UINT32_MAX, v                                                      \
	}
#define LACKS(c, a, v)                                                                             \
	{                                                                                          \
		SCMP_SYS(c), a, v, 0                                                               \
	}

static const struct allowed_if allowed_if[] = {
	/* steering maps, the table of held connections and its pins */
	IS(bpf, 0, BPF_MAP_LOOKUP_ELEM),
	IS(bpf, 0, BPF_MAP_UPDATE_ELEM),
	IS(bpf, 0, BPF_MAP_DELETE_ELEM),
	IS(bpf, 0, BPF_MAP_GET_NEXT_KEY),
	IS(bpf, 0, BPF_OBJ_PIN),
	IS(bpf, 0, BPF_OBJ_GET_INFO_BY_FD),
	IS(bpf, 0, BPF_LINK_DETACH),
	/* memory of the pool, lent by one core to another (store/arena.c) */
	IS(fallocate, 1, FALLOC_FL_KEEP_SIZE),
	IS(fallocate, 1, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE),
	LACKS(mmap, 2, PROT_EXEC),
	LACKS(mprotect, 2, PROT_EXEC),
	IS(socket, 0, AF_UNIX),
	IS(socket, 0, AF_INET),
	IS(socket, 0, AF_INET6),
	/* whether the interface is there, and up; its VLAN stripping */
	IS(ioctl, 1, SIOCGIFINDEX),
	IS(ioctl, 1, SIOCGIFFLAGS),
	IS(ioctl, 1, SIOCGIFMTU),
	IS(ioctl, 1, SIOCETHTOOL),
	/* stdio asks whether the log is a terminal */
	IS(ioctl, 1, TCGETS),
};

static bool kept(size_t cap, bool net_admin)
{
	return cap == CAP_BPF || (cap == CAP_NET_ADMIN && net_admin);
}

int privilege_drop(bool net_admin, char *err, size_t errlen)
{
	capng_get_caps_process();
	for (size_t i = 0; i <= CAP_LAST_CAP; i++)
		if (!kept(i, net_admin))
			capng_update(CAPNG_DROP,
				     CAPNG_EFFECTIVE | CAPNG_PERMITTED | CAPNG_INHERITABLE, i);
	/* from the unit; else a child would inherit what we keep */
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (capng_apply(CAPNG_SELECT_CAPS)) {
		snprintf(err, errlen, "capabilities cannot be dropped: %s", strerror(errno));
		return -EPERM;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
		snprintf(err, errlen, "no-new-privileges cannot be set: %s", strerror(errno));
		return -errno;
	}
	return 0;
}

int privilege_sandbox(char *err, size_t errlen)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int rc = ctx ? 0 : -ENOMEM;

	/* The filter runs on every call, and each batch makes one: a search tree, not a scan. */
	if (!rc)
		rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (!rc)
		rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);
	for (size_t i = 0; !rc && i < sizeof(allowed) / sizeof(allowed[0]); i++)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed[i], 0);
	for (size_t i = 0; !rc && i < sizeof(allowed_if) / sizeof(allowed_if[0]); i++) {
		const struct allowed_if *a = &allowed_if[i];

		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, a->call, 1,
				      SCMP_CMP(a->arg, SCMP_CMP_MASKED_EQ, a->mask, a->value));
	}
	if (!rc)
		rc = seccomp_load(ctx);
	seccomp_release(ctx);
	if (rc)
		snprintf(err, errlen,
			 "system calls cannot be restricted: %s; set sandbox = off to run without",
			 strerror(-rc));
	return rc;
}
