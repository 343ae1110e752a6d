// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The AF_XDP port on real interfaces (afxdp_rig.h): how it begins, what stops it, and what is
 * attached after its end, in order or by a kill.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>
#include <net/if.h>

#include "tests/bpf/afxdp_rig.h"

/* Nothing is taken before the first heartbeat, nor after it grows old, nor once closed or killed.
 */
static void lets_go(void **state)
{
	struct afxdp_config cfg = config(AFXDP_AUTO);
	uint8_t frame[BUF];
	uint32_t len = make(frame, STEER_LAN, 100, 0, NO_TAG);
	int pipefd[2], status;
	struct seen s = {0};
	struct afxdp *x;
	uint64_t end;
	pid_t child;
	char c;

	(void)state;
	x = afxdp_open(&cfg, err, sizeof(err));
	assert_non_null(x);
	assert_true(attached("lan0") && attached("wan0"));
	host_send(STEER_LAN, frame, len);
	assert_int_equal(steered(x, STEER_LAN, STEER_STALE, 1), 1);
	afxdp_heartbeat(x, now() - cfg.stale_ns - SECOND);
	host_send(STEER_LAN, frame, len);
	assert_int_equal(steered(x, STEER_LAN, STEER_STALE, 2), 2);
	afxdp_heartbeat(x, now());
	host_send(STEER_LAN, frame, len);
	assert_int_equal(rx_wait(x, &s, 1), 1);
	afxdp_close(x);
	assert_false(attached("lan0") || attached("wan0"));

	assert_int_equal(pipe(pipefd), 0);
	child = fork();
	if (child == 0) {
		x = afxdp_open(&cfg, err, sizeof(err));
		(void)!write(pipefd[1], x ? "y" : "n", 1);
		for (;;)
			pause();
	}
	assert_int_equal(read(pipefd[0], &c, 1), 1);
	assert_int_equal(c, 'y');
	assert_true(attached("lan0") && attached("wan0"));
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	end = now() + FOREVER;
	while ((attached("lan0") || attached("wan0")) && now() < end)
		sched_yield();
	assert_false(attached("lan0") || attached("wan0"));
	x = open_port(&cfg);
	afxdp_close(x);
	close(pipefd[0]);
	close(pipefd[1]);
}

/* A new process takes over the links of a dead one; links that are of no use are replaced. */
static void takes_over(void **state)
{
	struct afxdp_config cfg = config(AFXDP_NATIVE);
	uint8_t frame[BUF];
	uint32_t len = make(frame, STEER_LAN, 100, 0, NO_TAG);
	int links[STEER_SIDES], other[STEER_SIDES], sv[2], status;
	char control[CMSG_SPACE(sizeof(links))] = {0};
	struct iovec iov = {.iov_base = control, .iov_len = 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     .msg_controllen = sizeof(control)};
	struct cmsghdr *cm = CMSG_FIRSTHDR(&msg);
	struct seen s = {0};
	struct afxdp *x;
	pid_t child;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, sv), 0);
	child = fork();
	if (child == 0) {
		x = afxdp_open(&cfg, err, sizeof(err));
		if (!x)
			_exit(1);
		links[STEER_LAN] = afxdp_link(x, STEER_LAN);
		links[STEER_WAN] = afxdp_link(x, STEER_WAN);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(sizeof(links));
		memcpy(CMSG_DATA(cm), links, sizeof(links));
		sendmsg(sv[1], &msg, 0);
		raise(SIGKILL);
	}
	assert_int_equal(recvmsg(sv[0], &msg, 0), 1);
	memcpy(links, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(links));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(attached("lan0") && attached("wan0"));

	cfg.links = links;
	x = open_port(&cfg);
	assert_true(afxdp_native(x, STEER_LAN) && afxdp_native(x, STEER_WAN));
	host_send(STEER_LAN, frame, len);
	assert_int_equal(rx_wait(x, &s, 1), 1);
	afxdp_close(x); /* although we hold links */
	assert_false(attached("lan0") || attached("wan0"));

	x = open_port(&cfg); /* they lead nowhere by now */
	assert_true(attached("lan0") && attached("wan0"));
	other[STEER_LAN] = dup(afxdp_link(x, STEER_LAN));
	other[STEER_WAN] = host[0]; /* no link at all */
	afxdp_close(x);
	cfg.links = other;
	cfg.mode = AFXDP_GENERIC;
	x = open_port(&cfg);
	assert_false(afxdp_native(x, STEER_LAN) || afxdp_native(x, STEER_WAN));
	afxdp_close(x);
	close(other[STEER_LAN]);
	close(links[STEER_LAN]);
	close(links[STEER_WAN]);
	close(sv[0]);
	close(sv[1]);
}

static void errors(void **state)
{
	struct afxdp_config cfg = config(AFXDP_AUTO), c;
	struct afxdp_prefix *many = calloc(STEER_PREFIXES + 1, sizeof(*many));
	struct afxdp *x;
	int status;
	pid_t child;

	(void)state;
	c = cfg;
	c.ifname[STEER_WAN] = "wan7";
	expect_error(c, "no interface \"wan7\"");
	c.ifname[STEER_WAN] = "lan0";
	expect_error(c, "both the LAN and the WAN");
	c.ifname[STEER_WAN] = "lo";
	c.mode = AFXDP_NATIVE;
	sh("ip link set lo up");
	expect_error(c, "the driver of lo has no native XDP");
	sh("ip link set wan0 down");
	expect_error(cfg, "wan0 is down: `ip link set dev wan0 up`");
	sh("ip link set wan0 up");
	c = cfg;
	c.frames = 100;
	expect_error(c, "100 frames are too few");
	c = cfg;
	c.near = many;
	c.nnear = STEER_PREFIXES + 1;
	expect_error(c, "more than 5120 prefixes");

	c = cfg;
	c.ifname[STEER_LAN] = "wan0";
	c.ifname[STEER_WAN] = "lan0";
	x = open_port(&c);
	expect_error(cfg, "queue 0"); /* the sockets of the first */
	afxdp_close(x);
	c.ifname[STEER_WAN] = "lo"; /* generic there */
	x = open_port(&c);
	assert_true(afxdp_native(x, STEER_LAN));
	assert_false(afxdp_native(x, STEER_WAN));
	assert_int_equal(afxdp_native_error(x, STEER_LAN), 0);
	assert_int_equal(afxdp_native_error(x, STEER_WAN), EOPNOTSUPP);
	assert_string_equal(afxdp_name(x, STEER_LAN), "wan0");
	assert_string_equal(afxdp_driver(x, STEER_LAN), "veth");
	assert_string_equal(afxdp_driver(x, STEER_WAN), ""); /* it has none */
	assert_false(afxdp_zero_copy(x, STEER_LAN) || afxdp_zero_copy(x, STEER_WAN));
	afxdp_close(x);

	child = fork();
	if (child == 0) {
		if (setgid(65534) || setuid(65534))
			_exit(2);
		x = afxdp_open(&cfg, err, sizeof(err));
		_exit(x || !strstr(err, "no permission to ") || !strstr(err, ": run as root"));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);

	/* none of the failures left anything behind */
	assert_false(attached("lan0") || attached("wan0"));
	x = open_port(&cfg);
	afxdp_close(x);
	free(many);
}

/* Another program's XDP program is left alone. */
static void other_program(void **state)
{
	struct afxdp_config cfg = config(AFXDP_AUTO);
	/* return XDP_PASS */
	struct bpf_insn pass[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 2},
		{.code = BPF_JMP | BPF_EXIT},
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "other", "GPL", pass, 2, NULL);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(bpf_xdp_attach((int)if_nametoindex("wan0"), fd, XDP_FLAGS_SKB_MODE, NULL),
			 0);
	expect_error(
		cfg,
		"is attached to wan0: stop what attached it, or `ip link set dev wan0 xdp off`");
	assert_true(attached("wan0"));
	assert_false(attached("lan0"));
	assert_int_equal(bpf_xdp_detach((int)if_nametoindex("wan0"), XDP_FLAGS_SKB_MODE, NULL), 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_LINKS(lets_go),
		ON_LINKS(takes_over),
		ON_LINKS(errors),
		ON_LINKS(other_program),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
