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
#include <cap-ng.h>
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

static void errors(void **state)
{
	struct afxdp_config cfg = config(AFXDP_AUTO), c;
	struct afxdp_prefix *many = calloc(STEER_PREFIXES + 1, sizeof(*many));
	struct afxdp *x;
	int status;
	pid_t child;

	(void)state;
	c = cfg;
	c.ifname[STEER_PORT(STEER_WAN, 0)] = "wan7";
	expect_error(c, "no interface \"wan7\"");
	c.ifname[STEER_PORT(STEER_WAN, 0)] = "lan0";
	expect_error(c, "both the LAN and the WAN");
	c.ifname[STEER_PORT(STEER_WAN, 0)] = "lo";
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
	c.ifname[STEER_PORT(STEER_WAN, 0)] = "lan0";
	x = open_port(&c);
	expect_error(cfg, "queue 0"); /* the sockets of the first */
	afxdp_close(x);
	c.ifname[STEER_PORT(STEER_WAN, 0)] = "lo"; /* generic there */
	x = open_port(&c);
	assert_true(afxdp_native(x, STEER_LAN));
	assert_false(afxdp_native(x, STEER_PORT(STEER_WAN, 0)));
	assert_int_equal(afxdp_native_error(x, STEER_LAN), 0);
	assert_int_equal(afxdp_native_error(x, STEER_PORT(STEER_WAN, 0)), EOPNOTSUPP);
	assert_string_equal(afxdp_name(x, STEER_LAN), "wan0");
	assert_string_equal(afxdp_driver(x, STEER_LAN), "veth");
	assert_string_equal(afxdp_driver(x, STEER_PORT(STEER_WAN, 0)), ""); /* it has none */
	assert_false(afxdp_zero_copy(x, STEER_LAN) || afxdp_zero_copy(x, STEER_PORT(STEER_WAN, 0)));
	assert_int_equal(afxdp_refused(x, STEER_LAN), 0);
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

	/* The kernel's check of the program refuses it then, as it does in an old kernel. */
	child = fork();
	if (child == 0) {
		capng_get_caps_process();
		capng_updatev(CAPNG_DROP, CAPNG_EFFECTIVE | CAPNG_PERMITTED, CAP_PERFMON,
			      CAP_SYS_ADMIN, -1);
		if (capng_apply(CAPNG_SELECT_CAPS))
			_exit(2);
		x = afxdp_open(&cfg, err, sizeof(err));
		_exit(x || !strstr(err, "no permission to load the XDP program"));
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

		ON_LINKS(errors),
		ON_LINKS(other_program),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
