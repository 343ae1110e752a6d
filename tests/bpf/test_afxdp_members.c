// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * CONV-10: several ports on the WAN side, on real interfaces (afxdp_rig.h): by which one a frame
 * leaves. wan0 and wan1 are in one bridge with lan0; what is sent is seen at their peers, host2 and
 * host3.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/if_ether.h>

#include "tests/bpf/afxdp_rig.h"

#define WAN0 STEER_PORT(STEER_WAN, 0)
#define WAN1 STEER_PORT(STEER_WAN, 1)

static const uint8_t here[6] = "\2LHm\0\1", there[6] = "\2LHm\0\2";
static int peer[2]; /* packet sockets on host2, host3 */

static struct afxdp_config members(void)
{
	struct afxdp_config c = config(AFXDP_AUTO);

	c.ifname[WAN1] = "wan1";
	return c;
}

static int up(void **state)
{
	if (links_up(state))
		return -1;
	sh("ip link add wan1 type veth peer name host3 && ip link add br0 type bridge stp_state 0 "
	   "mcast_snooping 0");
	sh("for d in wan1 host3 br0; do ip link set $d mtu 4500 addrgenmode none up; done");
	sh("for d in lan0 wan0 wan1; do ip link set $d master br0; done");
	peer[0] = host[STEER_WAN];
	peer[1] = packet_socket("host3");
	return 0;
}

static int down(void **state)
{
	close(peer[1]);
	return system("ip link del host3; ip link del br0") | links_down(state);
}

#define ON_MEMBERS(f) cmocka_unit_test_setup_teardown(f, up, down)

static void forget(void)
{
	uint8_t frame[BUF];

	for (int i = 0; i < 2; i++)
		while (recv(peer[i], frame, sizeof(frame), 0) > 0)
			;
}

/* VLAN of what comes and leaves. */
static uint32_t tag = NO_TAG;

/* A frame from there to here comes in by WAN port @i. */
static void comes(struct afxdp *x, int i)
{
	uint8_t frame[BUF];
	uint32_t len = make(frame, STEER_WAN, 100, 0, tag);
	struct seen s = {0};

	memcpy(frame, here, 6);
	memcpy(frame + 6, there, 6);
	assert_int_equal(send(peer[i], frame, len, 0), len);
	assert_int_equal(rx_wait(x, &s, 1), 1);
	assert_int_equal(s.side, STEER_WAN);
}

static bool v6;

static uint32_t to_there(uint8_t *frame, uint8_t flow)
{
	const struct steer_frame six = {
		.src = "fd00::1", .dst = "fd00::2", .vlan = {tag}, .len = 120};
	uint32_t len =
		v6 ? steer_frame_build(frame, &six, NULL) : make(frame, STEER_LAN, 100, 0, tag);

	memcpy(frame, there, 6);
	memcpy(frame + 6, here, 6);
	/* the last byte of the QPN */
	frame[ETH_HLEN + (tag == NO_TAG ? 0 : 4) + (v6 ? 40 : 20) + 8 + 7] = flow;
	return len;
}

/* Received are @n bytes of @back. The kernel takes tags out. */
static bool same(ssize_t n, const uint8_t *back, const uint8_t *frame, uint32_t len)
{
	return (n == (ssize_t)len || n == (ssize_t)len - 4) &&
	       !memcmp(back + n - 60, frame + len - 60, 60);
}

/* By which WAN port a frame of connection @flow leaves. */
static int leaves(struct afxdp *x, uint8_t flow)
{
	struct pollfd p[2] = {{.fd = peer[0], .events = POLLIN}, {.fd = peer[1], .events = POLLIN}};
	uint8_t frame[BUF], back[BUF];
	uint32_t len = to_there(frame, flow);

	forget();
	assert_int_equal(afxdp_tx(x, 0, STEER_WAN, frame, len, 0), 0);
	flush(x);
	for (;;) {
		assert_true(poll(p, 2, (int)(FOREVER / 1000000)) > 0);
		for (int i = 0; i < 2; i++)
			if (same(recv(peer[i], back, sizeof(back), 0), back, frame, len))
				return i;
	}
}

static void carrier_is(struct afxdp *x, int port, bool wanted)
{
	uint64_t end = now() + FOREVER;

	while (afxdp_down(x, (unsigned int)port) == wanted && now() < end)
		usleep(10000);
	assert_int_equal(afxdp_down(x, (unsigned int)port), !wanted);
	afxdp_carrier(x);
}

/* It leaves by the port by which the latest frame from there came in. */
static void learned(void **state)
{
	struct afxdp_config cfg = members();
	struct afxdp *x = open_port(&cfg);
	struct afxdp_counts n;

	(void)state;
	assert_true(afxdp_members(x) && afxdp_has(x, WAN1) && !afxdp_absent(x, WAN1));
	for (int i = 1; i >= 0; i--) {
		comes(x, i);
		for (uint8_t flow = 0; flow < 8; flow++)
			assert_int_equal(leaves(x, flow), i);
		usleep(100000); /* what was seen before that long does not count beside it */
	}
	for (unsigned int port = WAN0; port <= WAN1; port++) {
		afxdp_port_counts(x, port, &n);
		assert_int_equal(n.rx, 1);
		assert_int_equal(n.steer[STEER_TAKEN], 1);
		assert_int_equal(n.tx, 8);
	}
	afxdp_side_counts(x, STEER_WAN, &n);
	assert_int_equal(n.tx, 16);
	assert_int_equal(n.steer[STEER_TAKEN], 2);
	afxdp_close(x);
}

/* In each VLAN it may be behind another one. */
static void vlans_apart(void **state)
{
	struct afxdp_config cfg = members();
	struct afxdp *x = open_port(&cfg);

	(void)state;
	comes(x, 1);
	tag = 100;
	comes(x, 0);
	for (uint8_t flow = 0; flow < 8; flow++)
		assert_int_equal(leaves(x, flow), 0);
	tag = NO_TAG;
	for (uint8_t flow = 0; flow < 8; flow++)
		assert_int_equal(leaves(x, flow), 1);
	afxdp_close(x);
}

static void spreads(struct afxdp *x)
{
	int by[2] = {0};

	for (uint8_t flow = 0; flow < 64; flow++) {
		int first;

		comes(x, 0);
		comes(x, 1);
		first = leaves(x, flow);
		by[first]++;
		comes(x, 1);
		comes(x, 0);
		assert_int_equal(leaves(x, flow), first);
	}
	assert_true(by[0] > 8 && by[1] > 8);
}

/* A bond: it comes in by both. The connections spread, each keeps its port. */
static void spread(void **state)
{
	struct afxdp_config cfg = members();
	struct afxdp *x = open_port(&cfg);

	(void)state;
	for (int i = 0; i < 4; i++) {
		v6 = i & 1;
		tag = i & 2 ? 100 : NO_TAG;
		spreads(x);
	}
	v6 = false;
	tag = NO_TAG;
	afxdp_close(x);
}

/* A host has moved: first a frame of ours came in by one port, then one that is not ours, which the
 * bridge has learned from, by the other. */
static void bridged(void **state)
{
	struct afxdp_config cfg = members();
	struct afxdp *x;
	uint8_t frame[100] = {0};

	(void)state;
	sh("while bridge link show | grep -q 'state [^f]'; do sleep 0.1; done");
	x = open_port(&cfg);
	for (int i = 1; i >= 0; i--) {
		memset(frame, 0xff, 6);
		memcpy(frame + 6, there, 6);
		frame[12] = 0x88;
		frame[13] = 0xb5;
		comes(x, !i);
		assert_int_equal(send(peer[i], frame, sizeof(frame), 0), sizeof(frame));
		sh(i ? "until bridge fdb show br br0 | grep -q '02:4c:48:6d:00:02 dev wan1'; do :; "
		       "done"
		     : "until bridge fdb show br br0 | grep -q '02:4c:48:6d:00:02 dev wan0'; do :; "
		       "done");
		usleep(1100000); /* it is asked once a second */
		afxdp_rx(x, 0, 1, keep, &(struct seen){0});
		usleep(100000); /* the process is not let run between its clock and the question */
		for (uint8_t flow = 0; flow < 8; flow++)
			assert_int_equal(leaves(x, flow), i);
		tag = 100; /* this bridge looks at no tags */
		for (uint8_t flow = 0; flow < 8; flow++)
			assert_int_equal(leaves(x, flow), i);
		tag = NO_TAG;
	}
	afxdp_close(x);
}

/* Without a carrier a port is not used while there is another; with it, it is again. */
static void carrier(void **state)
{
	struct afxdp_config cfg = members();
	struct afxdp *x = open_port(&cfg);

	(void)state;
	comes(x, 1);
	sh("ip link set host3 down");
	carrier_is(x, WAN1, false);
	for (uint8_t flow = 0; flow < 8; flow++)
		assert_int_equal(leaves(x, flow), 0);
	sh("ip link set host3 up");
	carrier_is(x, WAN1, true);
	comes(x, 1);
	assert_int_equal(leaves(x, 0), 1);
	afxdp_close(x);
}

/* What waited for a port that went down does not leave when it comes back. */
static void dropped(void **state)
{
	struct afxdp_config cfg = members();
	struct afxdp *x = open_port(&cfg);
	uint8_t frame[BUF];
	uint32_t len = to_there(frame, 0), room = afxdp_room(x, 0, STEER_WAN);
	struct afxdp_counts n;

	(void)state;
	comes(x, 1);
	sh("ip link set wan1 down");
	for (int i = 0; i < 10; i++)
		assert_int_equal(afxdp_tx(x, 0, STEER_WAN, frame, len, 0), 0);
	(void)afxdp_flush(x, 0);
	for (int i = 0; i < 5; i++) /* not shown to the kernel yet */
		assert_int_equal(afxdp_tx(x, 0, STEER_WAN, frame, len, 0), 0);
	carrier_is(x, WAN1, false);
	assert_int_equal(leaves(x, 0), 0);
	sh("ip link set wan1 up");
	carrier_is(x, WAN1, true);
	forget();
	comes(x, 1);
	(void)afxdp_flush(x, 0);
	assert_int_equal(leaves(x, 7), 1); /* as the first one there: another connection's */
	afxdp_port_counts(x, WAN1, &n);
	assert_int_equal(n.tx_dropped, 15);
	assert_int_equal(afxdp_room(x, 0, STEER_WAN), room);
	for (uint32_t i = 0; i < 2 * room; i++) /* and no chunk is lost or there twice */
		assert_int_equal(leaves(x, (uint8_t)i), 1);
	assert_int_equal(afxdp_bad_chunks(x), 0);
	afxdp_close(x);
}

/* A port that is down when the others are opened. */
static void absent(void **state)
{
	struct afxdp_config cfg = members();
	unsigned int port = 0;
	struct afxdp *x;

	(void)state;
	sh("ip link set wan1 down");
	x = open_port(&cfg);
	assert_true(afxdp_absent(x, WAN1) && !afxdp_has(x, WAN1) && !afxdp_members(x));
	assert_string_equal(afxdp_name(x, WAN1), "wan1");
	assert_int_equal(afxdp_check(x, &port), 0);
	assert_int_equal(leaves(x, 0), 0);
	sh("ip link set wan1 up");
	assert_int_equal(afxdp_check(x, &port), -ESTALE);
	assert_int_equal(port, WAN1);
	afxdp_close(x);
	x = open_port(&cfg);
	assert_true(afxdp_has(x, WAN1));
	afxdp_close(x);

	cfg.ifname[WAN0] = "wan7"; /* also when the first one is missing */
	x = open_port(&cfg);
	assert_true(afxdp_absent(x, WAN0) && afxdp_has(x, WAN1));
	comes(x, 1);
	assert_int_equal(leaves(x, 0), 1);
	afxdp_close(x);
	sh("ip link set wan1 down");
	expect_error(cfg, "no interface \"wan7\"");
	cfg = members();
	cfg.ifname[WAN1] = "wan0";
	expect_error(cfg, "named twice");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_MEMBERS(learned), ON_MEMBERS(vlans_apart), ON_MEMBERS(spread),
		ON_MEMBERS(bridged), ON_MEMBERS(carrier),     ON_MEMBERS(dropped),
		ON_MEMBERS(absent),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
