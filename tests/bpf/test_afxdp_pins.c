// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The AF_XDP port on real interfaces (afxdp_rig.h): pins, and what is held by them beyond the
 * port's end.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <net/if.h>

#include "tests/bpf/afxdp_rig.h"
#include "wire/frame.h"

#define PINS_MOUNT "/tmp"
#define PINS	   PINS_MOUNT "/longhaul"

/* A BPF file system that only this test sees; forgotten with the next one, and with the process. */
static void mount_pins(void)
{
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	assert_int_equal(mount("bpf", PINS_MOUNT, "bpf", 0, "mode=0700"), 0);
}

static struct flow_key held_key(void)
{
	struct flow_key k = {.dqpn = 0x1234, .vlan = FRAME_VLAN_NONE};

	memcpy(k.src.b + 10, "\xff\xff\x0a\0\0\1", 6);
	memcpy(k.dst.b + 10, "\xff\xff\x0b\0\0\1", 6);
	return k;
}

static void host_send_held(enum steer_side side)
{
	struct steer_frame f = {
		.src = side == STEER_LAN ? "10.0.0.1" : "11.0.0.1",
		.dst = side == STEER_LAN ? "11.0.0.1" : "10.0.0.1",
		.qpn = side == STEER_LAN ? 0x1234 : 0x5678,
	};
	uint8_t frame[BUF];

	host_send(side, frame, steer_frame_build(frame, &f, NULL));
}

/* In a child that is killed: open, pin, hold. */
static void die_holding(const struct afxdp_config *cfg, bool hold)
{
	struct flow_key k = held_key();
	struct afxdp *x;
	int status;
	pid_t child = fork();

	if (child == 0) {
		x = afxdp_open(cfg, err, sizeof(err));
		if (!x || afxdp_pin(x, true, err, sizeof(err)) ||
		    (hold && afxdp_fence(x, &k, 0x5678, true))) {
			fprintf(stderr, "%s\n", err);
			_exit(1);
		}
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
}

static uint64_t held_frames(struct afxdp *x, enum steer_side side)
{
	struct afxdp_counts st[STEER_SIDES];

	both_counts(x, st);
	return st[side].steer[STEER_FENCED];
}

static unsigned int found;
static struct flow_key found_key;
static uint32_t found_lqpn;

static void on_found(void *ctx, const struct flow_key *requests, uint32_t lqpn)
{
	(void)ctx;
	found++;
	found_key = *requests;
	found_lqpn = lqpn;
}

static void both_dropped(struct afxdp *x)
{
	uint64_t lan = held_frames(x, STEER_LAN), wan = held_frames(x, STEER_WAN);

	host_send_held(STEER_LAN);
	host_send_held(STEER_WAN);
	assert_int_equal(steered(x, STEER_LAN, STEER_FENCED, lan + 1), lan + 1);
	assert_int_equal(steered(x, STEER_WAN, STEER_FENCED, wan + 1), wan + 1);
}

/* The kernel detaches some time after the last name of a link is gone. */
static bool detached_soon(const char *lan)
{
	uint64_t end = now() + FOREVER;

	while ((attached(lan) || attached("wan0")) && now() < end)
		sched_yield();
	return !attached(lan) && !attached("wan0");
}

/* What is held outlives the port, however that ends, until it is let go of. */
static void outlives(void **state)
{
	struct afxdp_config cfg = config(AFXDP_NATIVE), bad;
	struct flow_key k = held_key();
	struct seen s = {0};
	struct afxdp *x;

	(void)state;
	mount_pins();
	cfg.pins = PINS;

	/* pinned and killed with nothing held: the program stays, and passes all */
	die_holding(&cfg, false);
	assert_true(attached("lan0") && attached("wan0"));
	x = open_port(&cfg);
	assert_int_equal(afxdp_fenced(x, NULL, NULL), 0);
	assert_int_equal(afxdp_pin(x, false, err, sizeof(err)), 0);
	assert_int_equal(access(PINS, F_OK), -1);
	assert_int_equal(afxdp_fence(x, &k, 0x5678, true), -ENOTCONN); /* not pinned */
	afxdp_close(x);
	assert_false(attached("lan0") || attached("wan0"));

	die_holding(&cfg, true);
	assert_true(attached("lan0") && attached("wan0"));
	/* who cannot begin changes nothing */
	bad = cfg;
	bad.frames = 100;
	expect_error(bad, "100 frames are too few");
	assert_true(attached("lan0") && attached("wan0"));
	/* nor does a wish for another mode take the program away for a moment */
	cfg.mode = AFXDP_GENERIC;
	x = afxdp_open(&cfg, err, sizeof(err));
	if (!x)
		fail_msg("%s", err);
	assert_true(afxdp_native(x, STEER_LAN) && afxdp_native(x, STEER_PORT(STEER_WAN, 0)));
	assert_int_equal(afxdp_fenced(x, on_found, NULL), 1);
	assert_int_equal(found, 1);
	assert_memory_equal(&found_key, &k, sizeof(k));
	assert_int_equal(found_lqpn, 0x5678);
	both_dropped(x); /* no heartbeat yet */
	afxdp_heartbeat(x, now());
	host_send_held(STEER_LAN);
	host_send_held(STEER_WAN);
	assert_int_equal(rx_wait(x, &s, 2), 2);
	bad.frames = 0;
	expect_error(bad, "queue 0"); /* a second one beside us */
	assert_int_equal(afxdp_fenced(x, NULL, NULL), 1);
	/* not wanted any more, but held: it stays, also when closed in order */
	assert_int_equal(afxdp_pin(x, false, err, sizeof(err)), 0);
	afxdp_close(x);
	assert_true(attached("lan0") && attached("wan0"));

	/* another interface of that name */
	sh("ip link del wan0 && ip link add wan0 mtu 4500 type veth peer name host2 mtu 4500 && ip "
	   "link set wan0 up && ip link set host2 up");
	close(host[STEER_WAN]);
	host[STEER_WAN] = packet_socket("host2");
	cfg.mode = AFXDP_AUTO;
	x = afxdp_open(&cfg, err, sizeof(err));
	if (!x)
		fail_msg("%s", err);
	both_dropped(x);
	afxdp_close(x);
	assert_true(attached("lan0") && attached("wan0")); /* the new pin */
	x = open_port(&cfg);
	assert_int_equal(afxdp_fenced(x, NULL, NULL), 1);
	assert_int_equal(afxdp_fence(x, &k, 0x5678, false), 0);
	assert_int_equal(access(PINS, F_OK), -1); /* the last one, and not wanted */
	afxdp_close(x);
	assert_false(attached("lan0") || attached("wan0"));

	/* an operator's way out */
	die_holding(&cfg, true);
	assert_true(attached("lan0") && attached("wan0"));
	sh("rm -r " PINS);
	assert_true(detached_soon("lan0"));
	umount(PINS_MOUNT);
}

static void pins_refused(void **state)
{
	struct afxdp_config cfg = config(AFXDP_AUTO);
	struct flow_key k = held_key();
	struct afxdp *x;
	int map;

	(void)state;
	x = open_port(&cfg);
	assert_int_equal(afxdp_pin(x, true, err, sizeof(err)), -ENODEV); /* no place given */
	assert_int_equal(afxdp_fence(x, &k, 1, true), -ENOTCONN);
	afxdp_close(x);
	cfg.pins = "/proc/longhaul";
	x = open_port(&cfg);
	assert_int_equal(afxdp_pin(x, true, err, sizeof(err)), -ENODEV);
	assert_non_null(strstr(err, "no BPF file system at /proc: `mount -t bpf"));
	assert_int_equal(afxdp_pin(x, false, err, sizeof(err)), 0);
	afxdp_close(x);

	/* interfaces of these names in another network namespace are not ours */
	mount_pins();
	cfg.pins = PINS;
	die_holding(&cfg, true);
	sh("ip link set lan0 name x0 && ip link set wan0 name lan0 && ip link set x0 name wan0");
	expect_error(cfg, "pins of other interfaces of these names");
	assert_true(attached("lan0") && attached("wan0"));
	sh("ip link set lan0 name x0 && ip link set wan0 name lan0 && ip link set x0 name wan0");
	/* a dot in a name */
	sh("rm -r " PINS);
	assert_true(detached_soon("lan0"));
	sh("ip link set lan0 name lan.7");
	cfg.ifname[STEER_LAN] = "lan.7";
	die_holding(&cfg, true);
	assert_int_equal(access(PINS "/lan_7-wan0/held", F_OK), 0);
	/* of a version that wrote something else there */
	assert_int_equal(unlink(PINS "/lan_7-wan0/held"), 0);
	map = bpf_map_create(BPF_MAP_TYPE_HASH, "old", 4, 4, 4, NULL);
	assert_int_equal(bpf_obj_pin(map, PINS "/lan_7-wan0/held"), 0);
	close(map);
	expect_error(cfg, "written by another version");
	sh("rm -r " PINS);
	assert_true(detached_soon("lan.7"));
	umount(PINS_MOUNT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_LINKS(outlives),
		ON_LINKS(pins_refused),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
