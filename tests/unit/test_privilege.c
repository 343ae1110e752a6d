// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a daemon that somebody took over can still do: each attempt in a process of its own, which
 * has dropped its privileges. Under a sanitizer nothing is shown: its run-time makes calls of its
 * own.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/capability.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/privilege.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* What of it is done. */
#define SANDBOX	  1u
#define NET_ADMIN 2u

/* The errno of @attempt behind privilege_drop(@flags), 0 when it succeeds. */
static int errno_of(unsigned int what, bool (*attempt)(void))
{
	char err[256] = "";
	int status;
	pid_t pid;

	if (SANITIZED)
		skip();
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (privilege_drop(what & NET_ADMIN, err, sizeof(err)) ||
		    (what & SANDBOX && privilege_sandbox(err, sizeof(err))))
			_exit(254);
		errno = 0;
		_exit(attempt() ? 0 : errno & 0x7f);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_not_equal(WEXITSTATUS(status), 254);
	return WEXITSTATUS(status);
}

static bool bpf_load(void)
{
	union bpf_attr a = {.prog_type = BPF_PROG_TYPE_SOCKET_FILTER};

	return syscall(SYS_bpf, BPF_PROG_LOAD, &a, sizeof(a)) >= 0;
}

static bool bpf_map_create(void)
{
	union bpf_attr a = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};

	return syscall(SYS_bpf, BPF_MAP_CREATE, &a, sizeof(a)) >= 0;
}

/* Of a descriptor that is none: EBADF says that the kernel has looked at it. */
static bool bpf_map_update(void)
{
	union bpf_attr a = {.map_fd = 1000};

	return syscall(SYS_bpf, BPF_MAP_UPDATE_ELEM, &a, sizeof(a)) >= 0;
}

static int memory;

static bool memory_lent(void)
{
	const int keep = FALLOC_FL_KEEP_SIZE;

	return !fallocate(memory, keep, 0, 65536) &&
	       !fallocate(memory, keep | FALLOC_FL_PUNCH_HOLE, 0, 65536);
}

static bool memory_enlarged(void)
{
	return !fallocate(memory, 0, 0, 65536);
}

static bool map_executable(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
	       MAP_FAILED;
}

static bool map_writable(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p != MAP_FAILED && !mprotect(p, 4096, PROT_READ);
}

static bool make_executable(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p != MAP_FAILED && !mprotect(p, 4096, PROT_READ | PROT_EXEC);
}

static bool socket_of(int family, int type)
{
	return socket(family, type, 0) >= 0;
}

static bool socket_packet(void)
{
	return socket_of(AF_PACKET, SOCK_RAW);
}

static bool socket_xdp(void)
{
	return socket_of(AF_XDP, SOCK_RAW);
}

static bool socket_netlink(void)
{
	return socket_of(AF_NETLINK, SOCK_RAW);
}

static bool socket_raw(void)
{
	return socket_of(AF_INET, SOCK_RAW) || socket(AF_INET, SOCK_RAW, IPPROTO_UDP) >= 0;
}

static bool sockets_in_use(void)
{
	struct ifreq ifr = {.ifr_name = "lo"};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	return fd >= 0 && !ioctl(fd, SIOCGIFFLAGS, &ifr) && socket_of(AF_UNIX, SOCK_STREAM) &&
	       if_nametoindex("lo");
}

static bool rename_interface(void)
{
	struct ifreq ifr = {.ifr_name = "no-such"};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	return fd >= 0 && !ioctl(fd, SIOCSIFNAME, &ifr);
}

static bool run_program(void)
{
	execl("/bin/true", "true", NULL);
	return false;
}

static bool fork_child(void)
{
	return syscall(SYS_fork) >= 0;
}

static bool no_capability_but_bpf(void)
{
	for (int c = 0; c <= CAP_LAST_CAP; c++)
		if (c != CAP_BPF && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, c, 0, 0) == 1)
			return false;
	return true;
}

/* CapEff of /proc/self/status without CAP_BPF; ~0 when it cannot be read. */
static bool effective(uint64_t want)
{
	unsigned long long v = ~0ull;
	char line[128];
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "CapEff: %llx", &v) == 1)
			break;
	return (v & ~(1ull << CAP_BPF)) == want;
}

static bool effective_none(void)
{
	return effective(0);
}

static bool effective_net_admin(void)
{
	return effective(geteuid() ? 0 : 1ull << CAP_NET_ADMIN);
}

static void test_bpf(void **state)
{
	(void)state;
	assert_int_equal(errno_of(SANDBOX, bpf_load), EPERM);
	assert_int_equal(errno_of(SANDBOX, bpf_map_create), EPERM);
	/* only who may use BPF at all gets as far as the kernel's own answer */
	if (!geteuid())
		assert_int_equal(errno_of(SANDBOX, bpf_map_update), EBADF);
}

static void test_exec(void **state)
{
	(void)state;
	assert_int_equal(errno_of(SANDBOX, map_executable), EPERM);
	assert_int_equal(errno_of(SANDBOX, make_executable), EPERM);
	assert_int_equal(errno_of(SANDBOX, map_writable), 0);
	assert_int_equal(errno_of(SANDBOX, run_program), EPERM);
	assert_int_equal(errno_of(SANDBOX, fork_child), EPERM);
	/* it is the filter that refuses */
	assert_int_equal(errno_of(0, map_executable), 0);
}

static void test_memory(void **state)
{
	(void)state;
	memory = memfd_create("pool", MFD_CLOEXEC);
	assert_true(memory >= 0);
	assert_int_equal(errno_of(SANDBOX, memory_lent), 0);
	assert_int_equal(errno_of(SANDBOX, memory_enlarged), EPERM);
	close(memory);
}

static void test_sockets(void **state)
{
	(void)state;
	assert_int_equal(errno_of(SANDBOX, socket_packet), EPERM);
	assert_int_equal(errno_of(SANDBOX, socket_xdp), EPERM);
	assert_int_equal(errno_of(SANDBOX, socket_netlink), EPERM);
	assert_int_equal(errno_of(SANDBOX, socket_raw), EPERM);
	assert_int_equal(errno_of(SANDBOX, rename_interface), EPERM);
	assert_int_equal(errno_of(SANDBOX, sockets_in_use), 0);
}

static void test_capabilities(void **state)
{
	(void)state;
	assert_int_equal(errno_of(0, effective_none), 0);
	assert_int_equal(errno_of(0, no_capability_but_bpf), 0);
	assert_int_equal(errno_of(NET_ADMIN, effective_net_admin), 0);
	/* without CAP_NET_RAW, whatever the sandbox */
	assert_int_equal(errno_of(0, socket_packet), EPERM);
	assert_int_equal(errno_of(NET_ADMIN, socket_raw), EPERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bpf),	     cmocka_unit_test(test_exec),
		cmocka_unit_test(test_memory),	     cmocka_unit_test(test_sockets),
		cmocka_unit_test(test_capabilities),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
