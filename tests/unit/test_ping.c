// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Which length reaches a host: a network namespace of our own, whose loopback has a small MTU.
 * Without the right to make one there is nothing to look at.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "cli/ping.h"

#define MTU 1500

static bool apart;

/* The loopback interface: up or down, with MTU. */
static void loopback(bool up)
{
	struct ifreq r = {.ifr_name = "lo", .ifr_mtu = MTU};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(ioctl(fd, SIOCSIFMTU, &r), 0);
	r.ifr_flags = up ? IFF_UP | IFF_RUNNING : 0;
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &r), 0);
	close(fd);
}

static int setup(void **state)
{
	(void)state;
	apart = !unshare(CLONE_NEWNET);
	return 0;
}

static void which_length(const char *address)
{
	struct ping p;

	if (!apart)
		skip();
	loopback(true);
	assert_true(ping_host(address, 4156, &p));
	assert_true(p.answers);
	assert_in_range(p.carried, MTU - 8, MTU);
	assert_true(ping_host(address, 1400, &p));
	assert_int_equal(p.carried, 1400);
	loopback(false);
	assert_true(ping_host(address, 1400, &p));
	assert_false(p.answers);
	assert_int_equal(p.carried, 0);
}

static void test_ipv4(void **state)
{
	(void)state;
	which_length("127.0.0.1");
}

static void test_ipv6(void **state)
{
	(void)state;
	which_length("::1");
}

static void test_no_address(void **state)
{
	struct ping p;

	(void)state;
	assert_false(ping_host("edge-b", 1400, &p));
	assert_false(p.answers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ipv4),
		cmocka_unit_test(test_ipv6),
		cmocka_unit_test(test_no_address),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
