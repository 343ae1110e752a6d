// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The AF_XDP port on real interfaces: two veth pairs in a network namespace of the test's own,
 *
 *	host1 --- lan0 [the port under test] wan0 --- host2
 *
 * Packet sockets on host1 and host2 play the hosts. The namespace, and all in it, goes with the
 * process.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cmocka.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>

#include "port/afxdp.h"
#include "tests/bpf/steer_frame.h"
#include "wire/frame.h"

#define SECOND 1000000000ull

static uint64_t vlans[STEER_VLANS];
static struct afxdp_prefix near, far;
static int host[STEER_SIDES] = {-1, -1}; /* packet sockets on host1, host2 */
static char err[256];

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

static void sh(const char *cmd)
{
	if (system(cmd))
		fail_msg("%s", cmd);
}

static int packet_socket(const char *ifname)
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

static int links_up(void **state)
{
	(void)state;
	sh("ip link add lan0 type veth peer name host1 && ip link add wan0 type veth peer name "
	   "host2");
	sh("for d in lan0 host1 wan0 host2; do ip link set $d mtu 4500 addrgenmode none up; done");
	host[STEER_LAN] = packet_socket("host1");
	host[STEER_WAN] = packet_socket("host2");
	return 0;
}

static int links_down(void **state)
{
	(void)state;
	close(host[STEER_LAN]);
	close(host[STEER_WAN]);
	return system("ip link del host1; ip link del host2");
}

static int setup(void **state)
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

static struct afxdp_config config(enum afxdp_mode mode)
{
	return (struct afxdp_config){
		.ifname = {"lan0", "wan0"},
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

static struct afxdp *open_port(const struct afxdp_config *cfg)
{
	struct afxdp *x = afxdp_open(cfg, err, sizeof(err));

	if (!x)
		fail_msg("%s", err);
	afxdp_heartbeat(x, now());
	return x;
}

/* The frame number @seq from @side's host to the other: its content says which it is. */
static uint32_t make(uint8_t *out, enum steer_side side, uint32_t len, uint32_t seq, uint32_t tag)
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

static void host_send(enum steer_side side, const uint8_t *frame, uint32_t len)
{
	struct pollfd p = {.fd = host[side], .events = POLLOUT};

	while (send(host[side], frame, len, 0) != (ssize_t)len) {
		assert_true(errno == EAGAIN || errno == ENOBUFS);
		poll(&p, 1, 10);
	}
}

/* What a host receives next, within two seconds; 0 when nothing comes. */
static uint32_t host_recv(enum steer_side side, uint8_t *out)
{
	struct pollfd p = {.fd = host[side], .events = POLLIN};
	ssize_t n;

	if (poll(&p, 1, 2000) <= 0)
		return 0;
	n = recv(host[side], out, BUF, 0);
	if (n < 0 && errno == ENETDOWN) /* said once, of a link that was down for a while */
		n = recv(host[side], out, BUF, 0);
	assert_true(n > 0);
	return (uint32_t)n;
}

struct seen {
	uint32_t n, len;
	enum steer_side side;
	uint8_t data[BUF];
};

static void keep(void *ctx, enum steer_side side, const uint8_t *data, uint32_t len)
{
	struct seen *s = ctx;

	s->n++;
	s->side = side;
	s->len = len;
	memcpy(s->data, data, len);
}

/* Read until @n frames came, or two seconds passed. */
static uint32_t rx_wait(struct afxdp *x, struct seen *s, uint32_t n)
{
	uint64_t end = now() + 2 * SECOND;
	struct pollfd p[STEER_SIDES * STEER_QUEUES];
	int fds[STEER_SIDES * STEER_QUEUES], k, i;

	k = afxdp_fds(x, fds, STEER_SIDES * STEER_QUEUES);
	for (i = 0; i < k; i++)
		p[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
	while (s->n < n && now() < end)
		if (!afxdp_rx(x, 64, keep, s))
			poll(p, (nfds_t)k, 100);
	return s->n;
}

static void flush(struct afxdp *x)
{
	uint64_t end = now() + 2 * SECOND;

	while (afxdp_flush(x))
		if (now() > end)
			fail_msg("frames stay in the ring");
}

/* Frames of every interesting length cross both ways, bit for bit. */
static void lengths(const struct afxdp_config *cfg, bool native, uint32_t longest)
{
	static const uint32_t len[] = {62,   63,   1500, 3519, 3520, 3521, 3839,
				       3840, 3841, 4095, 4096, 4097, 4200, FRAME_MAX};
	struct afxdp *x = open_port(cfg);
	uint8_t frame[BUF], back[BUF];
	struct afxdp_stats st;
	struct seen s = {0};
	uint32_t passed = 0;
	int side, other;
	size_t i;

	assert_int_equal(afxdp_native(x, STEER_LAN), native);
	assert_int_equal(afxdp_native(x, STEER_WAN), native);
	assert_int_equal(afxdp_max_frame(x), longest);
	for (i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
		for (side = 0; side < STEER_SIDES; side++) {
			other = !side;
			make(frame, side, len[i], (uint32_t)i, NO_TAG);
			host_send(side, frame, len[i]);
			if (len[i] > longest) {
				passed++;
				continue;
			}
			s.n = 0;
			if (rx_wait(x, &s, 1) != 1)
				fail_msg("%u bytes: nothing came", len[i]);
			assert_int_equal(s.side, side);
			assert_int_equal(s.len, len[i]);
			assert_memory_equal(s.data, frame, len[i]);

			assert_int_equal(afxdp_tx(x, other, s.data, s.len), 0);
			flush(x);
			assert_int_equal(host_recv(other, back), len[i]);
			assert_memory_equal(back, frame, len[i]);
		}
	}
	s.n = 0;
	assert_int_equal(afxdp_rx(x, 64, keep, &s), 0);
	afxdp_stats(x, &st);
	for (side = 0; side < STEER_SIDES; side++) {
		assert_int_equal(st.rx[side], i - passed / 2);
		assert_int_equal(st.tx[side], i - passed / 2);
		assert_int_equal(st.steer[side][STEER_TAKEN], i - passed / 2);
		assert_int_equal(st.steer[side][STEER_TOO_LONG], passed / 2);
		assert_int_equal(st.rx_dropped[side] + st.tx_dropped[side] + st.tx_full[side], 0);
	}
	assert_int_equal(afxdp_tx(x, STEER_LAN, frame, 13), -EINVAL);
	assert_int_equal(afxdp_tx(x, STEER_LAN, frame, FRAME_MAX + 1), -EMSGSIZE);
	afxdp_close(x);
}

static void native(void **state)
{
	struct afxdp_config cfg = config(AFXDP_NATIVE);

	(void)state;
	if (!afxdp_multibuffer())
		cfg.max_frame = 1500; /* see single_buffer */
	lengths(&cfg, true, afxdp_multibuffer() ? FRAME_MAX : 1500);
}

static void generic(void **state)
{
	struct afxdp_config cfg = config(AFXDP_GENERIC);

	(void)state;
	lengths(&cfg, false, afxdp_multibuffer() ? FRAME_MAX : AFXDP_ONE_BUFFER);
}

/* As on a kernel without multi-buffer. Frames that veth's driver puts into two buffers pass up too.
 */
static void single_buffer(void **state)
{
	struct afxdp_config cfg = config(AFXDP_GENERIC);
	uint8_t frame[BUF];
	struct afxdp_stats st;
	struct seen s = {0};
	uint64_t passed = 0;
	struct afxdp *x;
	uint32_t len;

	(void)state;
	cfg.single_buffer = true;
	cfg.max_frame = 1500;
	lengths(&cfg, false, 1500);
	cfg.mode = AFXDP_NATIVE;
	lengths(&cfg, true, 1500);
	/* where exactly the second buffer begins is the driver's business: whole or not at all */
	cfg.max_frame = AFXDP_ONE_BUFFER;
	x = open_port(&cfg);
	for (len = 3000; len < 4200; len += 7) {
		make(frame, STEER_LAN, len, len, NO_TAG);
		host_send(STEER_LAN, frame, len);
		s.n = 0;
		do {
			afxdp_rx(x, 64, keep, &s);
			afxdp_stats(x, &st);
		} while (!s.n && st.steer[STEER_LAN][STEER_TOO_LONG] == passed);
		if (s.n) {
			assert_int_equal(s.len, len);
			assert_memory_equal(s.data, frame, len);
			assert_true(len <= AFXDP_ONE_BUFFER);
		}
		passed = st.steer[STEER_LAN][STEER_TOO_LONG];
	}
	assert_true(st.rx[STEER_LAN] > 50 && passed > 50);
	afxdp_close(x);
	cfg.max_frame = 4200;
	assert_null(afxdp_open(&cfg, err, sizeof(err)));
	assert_non_null(strstr(err, "4200 bytes need multi-buffer"));
	cfg.single_buffer = false;
	x = afxdp_open(&cfg, err, sizeof(err));
	if (afxdp_multibuffer())
		assert_non_null(x);
	else
		assert_non_null(strstr(err, "4200 bytes need AF_XDP multi-buffer, which Linux"));
	afxdp_close(x);
}

/*
 * Many times more frames than there are chunks, of one and two descriptors, bounced back to the
 * host that sent them: none lost, none twice, none altered, in order.
 */
struct bounce {
	struct afxdp *x;
	uint32_t n;
};

static void bounce(void *ctx, enum steer_side side, const uint8_t *data, uint32_t len)
{
	struct bounce *b = ctx;

	b->n++;
	while (afxdp_tx(b->x, side, data, len) == -EAGAIN)
		afxdp_flush(b->x);
}

static void many_frames(void **state)
{
	struct afxdp_config cfg = config(AFXDP_AUTO);
	struct afxdp *x = open_port(&cfg);
	uint8_t frame[BUF], back[BUF];
	struct bounce b = {.x = x};
	const uint32_t total = 20000, burst = 40;
	uint32_t base = afxdp_multibuffer() ? 3800 : 3000; /* long ones: base to base + 400 */
	uint32_t sent = 0, i, len, first;
	struct afxdp_stats st;
	uint64_t end;

	(void)state;
	while (sent < total) {
		first = sent;
		for (i = 0; i < burst; i++, sent++) {
			len = make(frame, STEER_LAN, sent % 3 ? 100 + sent % 97 : base + sent % 400,
				   sent, NO_TAG);
			host_send(STEER_LAN, frame, len);
		}
		end = now() + 2 * SECOND;
		while (b.n < sent && now() < end)
			afxdp_rx(x, 17, bounce, &b); /* batches that end within a frame */
		assert_int_equal(b.n, sent);
		flush(x);
		for (i = first; i < sent; i++) {
			len = make(frame, STEER_LAN, i % 3 ? 100 + i % 97 : base + i % 400, i,
				   NO_TAG);
			assert_int_equal(host_recv(STEER_LAN, back), len);
			assert_memory_equal(back, frame, len);
		}
	}
	afxdp_stats(x, &st);
	assert_int_equal(st.rx[STEER_LAN], total);
	assert_int_equal(st.tx[STEER_LAN], total);
	assert_int_equal(st.rx_dropped[STEER_LAN], 0);
	assert_int_equal(st.tx_dropped[STEER_LAN], 0);
	afxdp_close(x);
}

/* A full ring says so, nothing is lost, and room comes back. */
static void full(void **state)
{
	struct afxdp_config cfg = config(AFXDP_AUTO);
	struct afxdp *x = open_port(&cfg);
	uint8_t frame[BUF], back[BUF];
	uint32_t len = make(frame, STEER_LAN, 100, 0, NO_TAG), n = 0, i, round;
	struct afxdp_stats st;

	(void)state;
	for (round = 1; round <= 3; round++) {
		for (n = 0; afxdp_tx(x, STEER_WAN, frame, len) == 0; n++)
			assert_true(n < 100000);
		assert_int_equal(n, 512); /* a quarter of the chunks */
		assert_int_equal(afxdp_tx(x, STEER_LAN, frame, len),
				 0); /* the other port has room */
		flush(x);
		for (i = 0; i < n; i++)
			assert_int_equal(host_recv(STEER_WAN, back), len);
		assert_int_equal(host_recv(STEER_LAN, back), len);
		afxdp_stats(x, &st);
		assert_int_equal(st.tx_full[STEER_WAN], round);
		assert_int_equal(st.tx[STEER_WAN], round * n);
		afxdp_flush(x);
	}
	/* Not read: the kernel runs out of chunks, drops and counts; then it goes on. */
	for (i = 0; i < 1000; i++)
		host_send(STEER_LAN, frame, len);
	afxdp_stats(x, &st);
	assert_int_equal(st.rx_dropped[STEER_LAN], 1000 - 512);
	{
		struct seen s = {0};

		assert_int_equal(rx_wait(x, &s, 512), 512);
		host_send(STEER_LAN, frame, len);
		assert_int_equal(rx_wait(x, &s, 513), 513);
	}
	afxdp_close(x);
}

/* A device that refuses frames is counted; one that is down keeps them. */
static void refused(void **state)
{
	struct afxdp_config cfg = config(AFXDP_AUTO);
	struct afxdp *x = open_port(&cfg);
	uint8_t frame[BUF], back[BUF];
	uint32_t len = make(frame, STEER_LAN, 100, 0, NO_TAG), i;
	struct afxdp_stats st;

	(void)state;
	sh("ip link set host2 down");
	for (i = 0; i < 100; i++)
		assert_int_equal(afxdp_tx(x, STEER_WAN, frame, len), 0);
	flush(x);
	afxdp_stats(x, &st);
	assert_int_equal(st.tx_dropped[STEER_WAN], 100);
	assert_int_equal(afxdp_check(x), 0);
	sh("ip link set host2 up");

	sh("ip link set wan0 down");
	assert_int_equal(afxdp_check(x), -ENETDOWN);
	assert_int_equal(afxdp_tx(x, STEER_WAN, frame, len), 0);
	assert_true(afxdp_flush(x));
	sh("ip link set wan0 up");
	assert_int_equal(afxdp_check(x), 0);
	flush(x);
	assert_int_equal(host_recv(STEER_WAN, back), len);

	sh("ip link del wan0 && ip link add wan0 type veth peer name host2 && ip link set wan0 up");
	assert_int_equal(afxdp_check(x), -ENODEV); /* same name, another interface */
	assert_int_equal(afxdp_tx(x, STEER_WAN, frame, len), 0);
	afxdp_flush(x);
	afxdp_rx(x, 64, keep, &(struct seen){0});
	afxdp_stats(x, &st);
	afxdp_close(x);
}

/* Tags stay in the frames. */
static void tags(void **state)
{
	struct afxdp_config cfg = config(AFXDP_AUTO);
	struct afxdp *x = open_port(&cfg);
	uint8_t frame[BUF];
	uint32_t len = make(frame, STEER_LAN, 500, 0, TAG(100 | 0x6000));
	struct afxdp_stats st;
	struct seen s = {0};

	(void)state;
	host_send(STEER_LAN, frame, len);
	assert_int_equal(rx_wait(x, &s, 1), 1);
	assert_int_equal(s.len, len);
	assert_memory_equal(s.data, frame, len);
	len = make(frame, STEER_LAN, 500, 0, TAG(101));
	host_send(STEER_LAN, frame, len);
	afxdp_stats(x, &st);
	assert_int_equal(st.steer[STEER_LAN][STEER_NO_RULE], 1);
	afxdp_close(x);
}

static bool strips(const char *name)
{
	struct ethtool_value v = {.cmd = ETHTOOL_GFLAGS};
	struct ifreq ifr = {.ifr_data = (void *)&v};

	strcpy(ifr.ifr_name, name);
	assert_int_equal(ioctl(host[0], SIOCETHTOOL, &ifr), 0);
	return v.data & ETH_FLAG_RXVLAN;
}

static void vlan_stripping(void **state)
{
	struct afxdp_config cfg = config(AFXDP_AUTO);
	struct afxdp *x;

	(void)state;
	sh("ethtool -K wan0 rxvlan off");
	assert_true(strips("lan0"));
	x = open_port(&cfg);
	assert_false(strips("lan0"));
	assert_false(strips("wan0"));
	afxdp_close(x);
	assert_true(strips("lan0"));
	assert_false(strips("wan0"));
}

static void several_queues(void **state)
{
	struct afxdp_config cfg = config(AFXDP_NATIVE);
	uint8_t frame[BUF];
	struct seen s = {0};
	struct afxdp *x;
	uint32_t i, len;
	int fds[8];

	(void)state;
	sh("ip link del lan0 && ip link add lan0 numrxqueues 4 numtxqueues 4 type veth peer name "
	   "host1 "
	   "numrxqueues 4 numtxqueues 4 && ip link set lan0 up mtu 4500 && ip link set host1 up "
	   "mtu "
	   "4500");
	close(host[STEER_LAN]);
	host[STEER_LAN] = packet_socket("host1");
	x = open_port(&cfg);
	assert_int_equal(afxdp_queues(x, STEER_LAN), 4);
	assert_int_equal(afxdp_queues(x, STEER_WAN), 1);
	assert_int_equal(afxdp_fds(x, fds, 8), 5);
	assert_int_equal(afxdp_fds(x, fds, 3), 3);
	for (i = 0; i < 64; i++) {
		len = make(frame, STEER_LAN, 200, i, NO_TAG);
		steer_put16(frame + 34, (uint16_t)(0xc000 + i)); /* flows, spread over queues */
		host_send(STEER_LAN, frame, len);
	}
	assert_int_equal(rx_wait(x, &s, 64), 64);
	afxdp_close(x);

	cfg.frames = 640;
	x = afxdp_open(&cfg, err, sizeof(err));
	assert_non_null(x);
	afxdp_close(x);
	cfg.frames = 639;
	assert_null(afxdp_open(&cfg, err, sizeof(err)));
	assert_non_null(strstr(err, "set 640 or more"));
}

static bool attached(const char *name)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, q);

	assert_int_equal(bpf_xdp_query((int)if_nametoindex(name), 0, &q), 0);
	return q.attach_mode != XDP_ATTACHED_NONE;
}

/* Nothing is taken before the first heartbeat, nor after it grows old, nor once closed or killed.
 */
static void lets_go(void **state)
{
	struct afxdp_config cfg = config(AFXDP_AUTO);
	struct afxdp_stats st;
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
	afxdp_stats(x, &st);
	assert_int_equal(st.steer[STEER_LAN][STEER_STALE], 1);
	afxdp_heartbeat(x, now() - cfg.stale_ns - SECOND);
	host_send(STEER_LAN, frame, len);
	afxdp_stats(x, &st);
	assert_int_equal(st.steer[STEER_LAN][STEER_STALE], 2);
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
	end = now() + 2 * SECOND;
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

static void expect_error(struct afxdp_config cfg, const char *part);

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
		if (!x || afxdp_pin(x, true, err, sizeof(err)) || (hold && afxdp_hold(x, &k, 0x5678, true))) {
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
	struct afxdp_stats st;

	afxdp_stats(x, &st);
	return st.steer[side][STEER_HELD];
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
	assert_int_equal(held_frames(x, STEER_LAN), lan + 1);
	assert_int_equal(held_frames(x, STEER_WAN), wan + 1);
}

/* The kernel detaches some time after the last name of a link is gone. */
static bool detached_soon(const char *lan)
{
	uint64_t end = now() + 2 * SECOND;

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
	assert_int_equal(afxdp_held(x, NULL, NULL), 0);
	assert_int_equal(afxdp_pin(x, false, err, sizeof(err)), 0);
	assert_int_equal(access(PINS, F_OK), -1);
	assert_int_equal(afxdp_hold(x, &k, 0x5678, true), -ENOTCONN); /* not pinned */
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
	assert_true(afxdp_native(x, STEER_LAN) && afxdp_native(x, STEER_WAN));
	assert_int_equal(afxdp_held(x, on_found, NULL), 1);
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
	assert_int_equal(afxdp_held(x, NULL, NULL), 1);
	/* not wanted any more, but held: it stays, also when closed in order */
	assert_int_equal(afxdp_pin(x, false, err, sizeof(err)), 0);
	afxdp_close(x);
	assert_true(attached("lan0") && attached("wan0"));

	/* another interface of that name */
	sh("ip link del wan0 && ip link add wan0 mtu 4500 type veth peer name host2 mtu 4500 && "
	   "ip link set wan0 up && ip link set host2 up");
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
	assert_int_equal(afxdp_held(x, NULL, NULL), 1);
	assert_int_equal(afxdp_hold(x, &k, 0x5678, false), 0);
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
	assert_int_equal(afxdp_hold(x, &k, 1, true), -ENOTCONN);
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

static void expect_error(struct afxdp_config cfg, const char *part)
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
	expect_error(c, "more than 4096 prefixes");

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
	expect_error(cfg,
		     "is attached to wan0: stop what attached it, or `ip link set dev wan0 xdp "
		     "off`");
	assert_true(attached("wan0"));
	assert_false(attached("lan0"));
	assert_int_equal(bpf_xdp_detach((int)if_nametoindex("wan0"), XDP_FLAGS_SKB_MODE, NULL), 0);
	close(fd);
}

#define ON_LINKS(f) cmocka_unit_test_setup_teardown(f, links_up, links_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_LINKS(native),	 ON_LINKS(generic),	   ON_LINKS(single_buffer),
		ON_LINKS(many_frames),	 ON_LINKS(full),	   ON_LINKS(refused),
		ON_LINKS(tags),		 ON_LINKS(vlan_stripping), ON_LINKS(several_queues),
		ON_LINKS(lets_go),	 ON_LINKS(takes_over),	   ON_LINKS(errors),
		ON_LINKS(other_program), ON_LINKS(outlives),	   ON_LINKS(pins_refused),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
