// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The AF_XDP port on real interfaces (afxdp_rig.h): what it does with frames.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>

#include "tests/bpf/afxdp_rig.h"
#include "wire/frame.h"

/* Frames of every interesting length cross both ways, bit for bit. */
static void lengths(const struct afxdp_config *cfg, bool native, uint32_t longest)
{
	static const uint32_t len[] = {62,   63,   1500, 3519, 3520, 3521, 3839,
				       3840, 3841, 4095, 4096, 4097, 4200, FRAME_MAX};
	struct afxdp *x = open_port(cfg);
	uint8_t frame[BUF], back[BUF];
	struct afxdp_counts st[STEER_SIDES];
	struct seen s = {0};
	uint32_t passed = 0;
	int side, other;
	size_t i;

	assert_int_equal(afxdp_native(x, STEER_LAN), native);
	assert_int_equal(afxdp_native(x, STEER_PORT(STEER_WAN, 0)), native);
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

			assert_int_equal(afxdp_tx(x, 0, other, s.data, s.len, 0), 0);
			flush(x);
			assert_int_equal(host_recv(other, back), len[i]);
			assert_memory_equal(back, frame, len[i]);
		}
	}
	/* frames of hosts only: not one that goes to the link and came from none */
	for (i = 0; i + 1 < sizeof(len) / sizeof(len[0]) && len[i + 1] <= longest; i++)
		;
	for (side = 0; side < STEER_SIDES; side++)
		assert_int_equal(afxdp_longest(x, (enum steer_side)side), len[i]);
	i = sizeof(len) / sizeof(len[0]);
	s.n = 0;
	assert_int_equal(afxdp_rx(x, 0, 64, keep, &s), 0);
	for (side = 0; side < STEER_SIDES; side++) {
		assert_int_equal(steered(x, side, STEER_TOO_LONG, passed / 2), passed / 2);
		both_counts(x, st);
		assert_int_equal(st[side].rx, i - passed / 2);
		assert_int_equal(st[side].tx, i - passed / 2);
		assert_int_equal(st[side].steer[STEER_TAKEN], i - passed / 2);
		assert_int_equal(st[side].rx_dropped + st[side].tx_dropped + st[side].tx_full, 0);
	}
	assert_int_equal(afxdp_tx(x, 0, STEER_WAN, s.data, s.len, 0), 0);
	flush(x);
	assert_int_equal(host_recv(STEER_WAN, back), s.len);
	assert_int_equal(afxdp_longest(x, STEER_WAN), 0);
	assert_int_equal(afxdp_tx(x, 0, STEER_LAN, frame, 13, 0), -EINVAL);
	assert_int_equal(afxdp_tx(x, 0, STEER_LAN, frame, FRAME_MAX + 1, 0), -EMSGSIZE);
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
/* veth has no zero copy: it says so, and works as without. vm/zerocopy has a driver that can. */
static void zero_copy(void **state)
{
	struct afxdp_config cfg = config(AFXDP_ZERO_COPY);
	struct afxdp *x = open_port(&cfg);

	(void)state;
	for (unsigned int port = 0; port < STEER_PORTS; port += STEER_MEMBERS) {
		assert_false(afxdp_zero_copy(x, port));
		assert_int_equal(afxdp_refused(x, port), EOPNOTSUPP);
	}
	afxdp_close(x);
	lengths(&cfg, true, FRAME_MAX);
}

static void single_buffer(void **state)
{
	struct afxdp_config cfg = config(AFXDP_GENERIC);
	uint8_t frame[BUF];
	struct afxdp_counts st[STEER_SIDES];
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
			afxdp_rx(x, 0, 64, keep, &s);
			both_counts(x, st);
		} while (!s.n && st[STEER_LAN].steer[STEER_TOO_LONG] == passed);
		if (s.n) {
			assert_int_equal(s.len, len);
			assert_memory_equal(s.data, frame, len);
			assert_true(len <= AFXDP_ONE_BUFFER);
		}
		passed = st[STEER_LAN].steer[STEER_TOO_LONG];
	}
	assert_true(st[STEER_LAN].rx > 50 && passed > 50);
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

static void bounce(void *ctx, enum steer_side side, uint8_t *data, uint32_t len)
{
	struct bounce *b = ctx;

	b->n++;
	while (afxdp_tx(b->x, 0, side, data, len, 0) == -EAGAIN)
		afxdp_flush(b->x, 0);
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
	struct afxdp_counts st[STEER_SIDES];
	uint64_t end;

	(void)state;
	while (sent < total) {
		first = sent;
		for (i = 0; i < burst; i++, sent++) {
			len = make(frame, STEER_LAN, sent % 3 ? 100 + sent % 97 : base + sent % 400,
				   sent, NO_TAG);
			host_send(STEER_LAN, frame, len);
		}
		end = now() + FOREVER;
		while (b.n < sent && now() < end)
			afxdp_rx(x, 0, 17, bounce, &b); /* batches that end within a frame */
		assert_int_equal(b.n, sent);
		flush(x);
		for (i = first; i < sent; i++) {
			len = make(frame, STEER_LAN, i % 3 ? 100 + i % 97 : base + i % 400, i,
				   NO_TAG);
			assert_int_equal(host_recv(STEER_LAN, back), len);
			assert_memory_equal(back, frame, len);
		}
	}
	both_counts(x, st);
	assert_int_equal(st[STEER_LAN].rx, total);
	assert_int_equal(st[STEER_LAN].tx, total);
	assert_int_equal(st[STEER_LAN].rx_dropped, 0);
	assert_int_equal(st[STEER_LAN].tx_dropped, 0);
	afxdp_close(x);
}

/* A full ring says so, nothing is lost, and room comes back. */
static void full(void **state)
{
	struct afxdp_config cfg = config(AFXDP_AUTO);
	struct afxdp *x = open_port(&cfg);
	uint8_t frame[BUF], back[BUF];
	uint32_t len = make(frame, STEER_LAN, 100, 0, NO_TAG), n = 0, i, round;
	struct afxdp_counts st[STEER_SIDES];
	uint64_t end;

	(void)state;
	for (round = 1; round <= 3; round++) {
		for (n = 0; afxdp_tx(x, 0, STEER_WAN, frame, len, 0) == 0; n++)
			assert_true(n < 100000);
		assert_int_equal(n, 512); /* a quarter of the chunks */
		assert_int_equal(afxdp_tx(x, 0, STEER_LAN, frame, len, 0),
				 0); /* the other port has room */
		flush(x);
		for (i = 0; i < n; i++)
			assert_int_equal(host_recv(STEER_WAN, back), len);
		assert_int_equal(host_recv(STEER_LAN, back), len);
		both_counts(x, st);
		assert_int_equal(st[STEER_WAN].tx_full, round);
		assert_int_equal(st[STEER_WAN].tx, round * n);
		afxdp_flush(x, 0);
	}
	/* Not read: the kernel runs out of chunks, drops and counts; then it goes on. */
	for (i = 0; i < 1000; i++)
		host_send(STEER_LAN, frame, len);
	end = now() + FOREVER;
	do {
		both_counts(x, st);
	} while (st[STEER_LAN].rx_dropped < 1000 - 512 && now() < end);
	assert_int_equal(st[STEER_LAN].rx_dropped, 1000 - 512);
	{
		struct seen s = {0};

		assert_int_equal(rx_wait(x, &s, 512), 512);
		host_send(STEER_LAN, frame, len);
		assert_int_equal(rx_wait(x, &s, 513), 513);
	}
	afxdp_close(x);
}

/* The kernel tells of a carrier up to a second late. */
static int check(const struct afxdp *x, int until)
{
	unsigned int port;
	int rc = afxdp_check(x, &port);

	for (int i = 0; i < 3000 && rc != until; i++) {
		usleep(10000);
		rc = afxdp_check(x, &port);
	}
	return rc;
}

/* What is dropped does not leave, whether the kernel has seen it or not, and room comes back. */
static void dropped(void **state)
{
	struct afxdp_config cfg = config(AFXDP_AUTO);
	struct afxdp *x = open_port(&cfg);
	uint8_t frame[BUF], back[BUF];
	uint32_t len = make(frame, STEER_LAN, 4096, 0, NO_TAG), room = afxdp_room(x, 0, STEER_WAN);

	(void)state;
	assert_int_equal(afxdp_tx(x, 0, STEER_WAN, frame, len, 0), 0);
	sh("ip link set wan0 down");
	afxdp_flush(x, 0);
	assert_int_equal(afxdp_tx(x, 0, STEER_WAN, frame, len, 0), 0);
	afxdp_tx_drop(x, 0);
	sh("ip link set wan0 up");
	assert_int_equal(check(x, 0), 0);
	flush(x);
	len = make(frame, STEER_LAN, 100, 1, NO_TAG);
	assert_int_equal(afxdp_tx(x, 0, STEER_WAN, frame, len, 0), 0);
	flush(x);
	assert_int_equal(host_recv(STEER_WAN, back), len);
	assert_memory_equal(back, frame, len);
	assert_int_equal(afxdp_room(x, 0, STEER_WAN), room);
	afxdp_close(x);
}

/* A device that refuses frames is counted; one that is down keeps them. */
static void refused(void **state)
{
	struct afxdp_config cfg = config(AFXDP_AUTO);
	struct afxdp *x = open_port(&cfg);
	uint8_t frame[BUF], back[BUF];
	uint32_t len = make(frame, STEER_LAN, 100, 0, NO_TAG), i;
	struct afxdp_counts st[STEER_SIDES];

	(void)state;
	sh("ip link set host2 down");
	for (i = 0; i < 100; i++)
		assert_int_equal(afxdp_tx(x, 0, STEER_WAN, frame, len, 0), 0);
	flush(x);
	both_counts(x, st);
	assert_int_equal(st[STEER_WAN].tx_dropped, 100);
	assert_int_equal(check(x, -ENETDOWN), -ENETDOWN);
	sh("ip link set host2 up");
	assert_int_equal(check(x, 0), 0);

	sh("ip link set wan0 down");
	assert_int_equal(check(x, -ENETDOWN), -ENETDOWN);
	assert_int_equal(afxdp_tx(x, 0, STEER_WAN, frame, len, 0), 0);
	assert_true(afxdp_flush(x, 0));
	sh("ip link set wan0 up");
	assert_int_equal(check(x, 0), 0);
	flush(x);
	assert_int_equal(host_recv(STEER_WAN, back), len);

	sh("ip link del wan0 && ip link add wan0 type veth peer name host2 && ip link set wan0 up");
	assert_int_equal(check(x, -ENODEV), -ENODEV); /* same name, another interface */
	assert_int_equal(afxdp_tx(x, 0, STEER_WAN, frame, len, 0), 0);
	afxdp_flush(x, 0);
	afxdp_rx(x, 0, 64, keep, &(struct seen){0});
	both_counts(x, st);
	afxdp_close(x);
}

/* Tags stay in the frames. */
static void tags(void **state)
{
	struct afxdp_config cfg = config(AFXDP_AUTO);
	struct afxdp *x = open_port(&cfg);
	uint8_t frame[BUF];
	uint32_t len = make(frame, STEER_LAN, 500, 0, TAG(100 | 0x6000));
	struct seen s = {0};

	(void)state;
	host_send(STEER_LAN, frame, len);
	assert_int_equal(rx_wait(x, &s, 1), 1);
	assert_int_equal(s.len, len);
	assert_memory_equal(s.data, frame, len);
	len = make(frame, STEER_LAN, 500, 0, TAG(101));
	host_send(STEER_LAN, frame, len);
	assert_int_equal(steered(x, STEER_LAN, STEER_NO_RULE, 1), 1);
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
	   "host1 numrxqueues 4 numtxqueues 4 && ip link set lan0 up mtu 4500 && ip link set host1 "
	   "up mtu 4500");
	close(host[STEER_LAN]);
	host[STEER_LAN] = packet_socket("host1");
	x = open_port(&cfg);
	assert_int_equal(afxdp_queues(x, STEER_LAN), 4);
	assert_int_equal(afxdp_queues(x, STEER_PORT(STEER_WAN, 0)), 1);
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

static void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* Frames that the network card had no room for count from the start of the port on. No card is
 * here: its counter is a file of ours. */
static void missed(void **state)
{
	const char *counter = "/sys/class/net/lan0/statistics/rx_missed_errors";
	struct afxdp_config cfg = config(AFXDP_AUTO);
	char path[] = "/tmp/test_afxdp.XXXXXX";
	struct afxdp_counts st[STEER_SIDES];
	int fd = mkstemp(path);
	struct afxdp *x;

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	assert_int_equal(mount("sysfs", "/sys", "sysfs", 0, NULL), 0);
	x = open_port(&cfg);
	both_counts(x, st);
	assert_int_equal(st[STEER_LAN].rx_missed, 0);
	afxdp_close(x);
	write_text(path, "1000\n");
	assert_int_equal(mount(path, counter, NULL, MS_BIND, NULL), 0);
	x = open_port(&cfg);
	both_counts(x, st);
	assert_int_equal(st[STEER_LAN].rx_missed, 0);
	write_text(path, "1042\n");
	both_counts(x, st);
	assert_int_equal(st[STEER_LAN].rx_missed, 42);
	assert_int_equal(st[STEER_WAN].rx_missed, 0);
	write_text(path, "7\n"); /* the driver begins anew */
	both_counts(x, st);
	assert_int_equal(st[STEER_LAN].rx_missed, 7);
	afxdp_close(x);
	assert_int_equal(umount(counter), 0);
	assert_int_equal(umount2("/sys", MNT_DETACH), 0);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_LINKS(native),	  ON_LINKS(generic),	 ON_LINKS(single_buffer),
		ON_LINKS(zero_copy),	  ON_LINKS(many_frames), ON_LINKS(full),
		ON_LINKS(refused),	  ON_LINKS(tags),	 ON_LINKS(vlan_stripping),
		ON_LINKS(several_queues), ON_LINKS(dropped),	 ON_LINKS(missed),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
