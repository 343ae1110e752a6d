// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "tests/bpf/afxdp_rig.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <bpf/libbpf.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <net/if.h>

int host[STEER_SIDES] = {-1, -1};
char err[256];
static uint64_t vlans[STEER_VLANS];
static struct afxdp_prefix near, far;

uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

void sh(const char *cmd)
{
	if (system(cmd))
		fail_msg("%s", cmd);
}

void both_counts(const struct afxdp *x, struct afxdp_counts out[STEER_SIDES])
{
	for (int side = 0; side < STEER_SIDES; side++)
		afxdp_side_counts(x, side, &out[side]);
}

int packet_socket(const char *ifname)
{
	struct sockaddr_ll ll = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETH_P_ALL));
	int one = 1, big = 64 << 20;

	assert_true(fd >= 0);
	ll.sll_ifindex = (int)if_nametoindex(ifname);
	assert_int_equal(bind(fd, (struct sockaddr *)&ll, sizeof(ll)), 0);
	assert_int_equal(setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &big, sizeof(big));
	return fd;
}

int links_up(void **state)
{
	(void)state;
	sh("ip link add lan0 type veth peer name host1 && ip link add wan0 type veth peer name "
	   "host2");
	sh("for d in lan0 host1 wan0 host2; do ip link set $d mtu 4500 addrgenmode none up; done");
	host[STEER_LAN] = packet_socket("host1");
	host[STEER_WAN] = packet_socket("host2");
	return 0;
}

int links_down(void **state)
{
	(void)state;
	close(host[STEER_LAN]);
	close(host[STEER_WAN]);
	return system("ip link del host1; ip link del host2");
}

int setup(void **state)
{
	(void)state;
	if (unshare(CLONE_NEWNET)) {
		perror("a network namespace is needed (root)");
		return -1;
	}
	near = (struct afxdp_prefix){.plen = 96 + 8, .rules = 1};
	memcpy(near.addr + 10, "\xff\xff\x0a", 3); /* 10.0.0.0/8 */
	far = near;
	far.addr[12] = 11; /* 11.0.0.0/8 */
	vlans[STEER_UNTAGGED] = vlans[100] = 1;
	return 0;
}

struct afxdp_config config(enum afxdp_mode mode)
{
	return (struct afxdp_config){
		.ifname = {[STEER_PORT(STEER_LAN, 0)] = "lan0",
			   [STEER_PORT(STEER_WAN, 0)] = "wan0"},
		.mode = mode,
		.near = &near,
		.far = &far,
		.nnear = 1,
		.nfar = 1,
		.vlan_rules = vlans,
		.frames = 2048,
		.stale_ns = 3600 * SECOND,
	};
}

struct afxdp *open_port(const struct afxdp_config *cfg)
{
	struct afxdp *x = afxdp_open(cfg, err, sizeof(err));

	if (!x)
		fail_msg("%s", err);
	afxdp_heartbeat(x, now());
	return x;
}

uint32_t make(uint8_t *out, enum steer_side side, uint32_t len, uint32_t seq, uint32_t tag)
{
	struct steer_frame f = {
		.src = side == STEER_LAN ? "10.0.0.1" : "11.0.0.1",
		.dst = side == STEER_LAN ? "11.0.0.1" : "10.0.0.1",
		.vlan = {tag},
		.len = len,
	};
	uint32_t n = steer_frame_build(out, &f, NULL);

	memcpy(out + n - sizeof(seq), &seq, sizeof(seq));
	return n;
}

void host_send(enum steer_side side, const uint8_t *frame, uint32_t len)
{
	struct pollfd p = {.fd = host[side], .events = POLLOUT};

	while (send(host[side], frame, len, 0) != (ssize_t)len) {
		assert_true(errno == EAGAIN || errno == ENOBUFS);
		poll(&p, 1, 10);
	}
}

uint32_t host_recv(enum steer_side side, uint8_t *out)
{
	struct pollfd p = {.fd = host[side], .events = POLLIN};
	ssize_t n;

	if (poll(&p, 1, FOREVER / 1000000) <= 0)
		return 0;
	n = recv(host[side], out, BUF, 0);
	if (n < 0 && errno == ENETDOWN) /* said once, of a link that was down for a while */
		n = recv(host[side], out, BUF, 0);
	assert_true(n > 0);
	return (uint32_t)n;
}

void keep(void *ctx, enum steer_side side, uint8_t *data, uint32_t len)
{
	struct seen *s = ctx;

	s->n++;
	s->side = side;
	s->len = len;
	memcpy(s->data, data, len);
}

uint32_t rx_wait(struct afxdp *x, struct seen *s, uint32_t n)
{
	uint64_t end = now() + FOREVER;
	struct pollfd p[STEER_SIDES * STEER_QUEUES];
	int fds[STEER_SIDES * STEER_QUEUES], k, i;

	k = afxdp_fds(x, fds, STEER_SIDES * STEER_QUEUES);
	for (i = 0; i < k; i++)
		p[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
	while (s->n < n && now() < end)
		if (!afxdp_rx(x, 0, 64, keep, s))
			poll(p, (nfds_t)k, 100);
	return s->n;
}

void flush(struct afxdp *x)
{
	uint64_t end = now() + FOREVER;

	while (afxdp_flush(x, 0))
		if (now() > end)
			fail_msg("frames stay in the ring");
}

uint64_t steered(struct afxdp *x, enum steer_side side, int fate, uint64_t n)
{
	uint64_t end = now() + FOREVER;
	struct afxdp_counts st[STEER_SIDES];

	do {
		both_counts(x, st);
	} while (st[side].steer[fate] < n && now() < end && !sched_yield());
	return st[side].steer[fate];
}

bool attached(const char *name)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, q);

	assert_int_equal(bpf_xdp_query((int)if_nametoindex(name), 0, &q), 0);
	return q.attach_mode != XDP_ATTACHED_NONE;
}

void expect_error(struct afxdp_config cfg, const char *part)
{
	struct afxdp *x;

	err[0] = '\0';
	x = afxdp_open(&cfg, err, sizeof(err));
	if (x)
		fail_msg("opened, instead of: %s", part);
	if (!strstr(err, part) || strchr(err, '\n'))
		fail_msg("\"%s\", not: %s", err, part);
	print_message("           %s\n", err);
}
