// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Capabilities that stay: CAP_NET_ADMIN, to give VLAN stripping back to the interfaces at the end,
 * and CAP_BPF, to change the steering maps and what is pinned where unprivileged BPF is off. The
 * sockets and the XDP program are open by now and need none. The daemon keeps its user id: without
 * CAP_DAC_OVERRIDE root reads only what root owns, and a reload has to read the configuration
 * again.
 *
 * System calls: those of the data path (sendto, epoll, timerfd), of the two sockets, of a reload
 * and of memory that libraries ask for. Whatever else is tried fails with EPERM; the list is for
 * those who would use a fault of this program, not for its own errors.
 */
#include "privilege.h"

#include <cap-ng.h>
#include <errno.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

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
	SCMP_SYS(socket),
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
	SCMP_SYS(bpf),
	SCMP_SYS(ioctl),
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
	/* memory, locks, signals, the end */
	SCMP_SYS(brk),
	SCMP_SYS(mmap),
	SCMP_SYS(munmap),
	SCMP_SYS(mremap),
	SCMP_SYS(madvise),
	SCMP_SYS(mprotect),
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

static int drop_capabilities(char *err, size_t errlen)
{
	static const int keep[] = {CAP_NET_ADMIN, CAP_BPF};

	capng_get_caps_process();
	for (size_t i = 0; i <= CAP_LAST_CAP; i++) {
		bool kept = false;

		for (size_t k = 0; k < sizeof(keep) / sizeof(keep[0]); k++)
			kept |= keep[k] == (int)i;
		if (kept)
			continue;
		capng_update(CAPNG_DROP, CAPNG_EFFECTIVE | CAPNG_PERMITTED | CAPNG_INHERITABLE, i);
	}
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

static int restrict_syscalls(char *err, size_t errlen)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int rc = ctx ? 0 : -ENOMEM;

	/* Looking the filter up costs on every call, and there is one for each batch: search, not
	 * scan. */
	if (!rc)
		rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	for (size_t i = 0; !rc && i < sizeof(allowed) / sizeof(allowed[0]); i++)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed[i], 0);
	if (!rc)
		rc = seccomp_load(ctx);
	seccomp_release(ctx);
	if (rc)
		snprintf(err, errlen,
			 "system calls cannot be restricted: %s; set sandbox = off to run without",
			 strerror(-rc));
	return rc;
}

int privilege_drop(bool sandbox, char *err, size_t errlen)
{
	int rc = drop_capabilities(err, errlen);

	if (!rc && sandbox)
		rc = restrict_syscalls(err, errlen);
	return rc;
}
