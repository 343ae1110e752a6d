// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The AF_XDP port in parts, one for each of several threads. Its two ports are the two ends of one
 * veth pair,
 *
 *	lan0 --- wan0
 *
 * so that what leaves by queue q of one comes in by queue q of the other. By which queue a frame
 * has come in, whoever sent it, veth itself tells in its statistics.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/bpf/afxdp_rig.h"

#define LAN0   STEER_PORT(STEER_LAN, 0)
#define WAN0   STEER_PORT(STEER_WAN, 0)
#define QUEUES 8 /* more than there are */

static const char *const ends[STEER_SIDES] = {[STEER_LAN] = "lan0", [STEER_WAN] = "wan0"};

static enum steer_side other(enum steer_side side)
{
	return side == STEER_LAN ? STEER_WAN : STEER_LAN;
}

/* The pair, with so many queues at each end. */
static void pair(int lan_rx, int lan_tx, int wan)
{
	char cmd[256];

	snprintf(cmd, sizeof(cmd),
		 "ip link add lan0 numrxqueues %d numtxqueues %d type veth peer name wan0 "
		 "numrxqueues %d numtxqueues %d",
		 lan_rx, lan_tx, wan, wan);
	sh(cmd);
	sh("for d in lan0 wan0; do ip link set $d mtu 4500 addrgenmode none up; done");
	host[STEER_LAN] = packet_socket("wan0"); /* what it sends comes in by lan0 */
	host[STEER_WAN] = packet_socket("lan0");
}

static int unpair(void **state)
{
	(void)state;
	close(host[STEER_LAN]);
	close(host[STEER_WAN]);
	return system("ip link del lan0");
}

static int two(void **state)
{
	(void)state;
	pair(2, 2, 2);
	return 0;
}

static int three(void **state)
{
	(void)state;
	pair(3, 3, 3);
	return 0;
}

static int none(void **state)
{
	(void)state;
	return 0;
}

#define ON(links, f) cmocka_unit_test_setup_teardown(f, links, unpair)

static struct afxdp *open_parts(unsigned int parts)
{
	/* in the driver, which knows the queue; it refuses where one end has less than the other */
	struct afxdp_config cfg = config(AFXDP_AUTO);

	cfg.parts = parts;
	return open_port(&cfg);
}

static void flush_part(struct afxdp *x, unsigned int k)
{
	uint64_t end = now() + FOREVER;

	while (afxdp_flush(x, k))
		if (now() > end)
			fail_msg("frames of part %u stay in the ring", k);
}

/* ---- how many there are ---- */

static unsigned int parts_for(unsigned int wanted)
{
	struct afxdp *x = open_parts(wanted);
	unsigned int n = afxdp_parts(x);

	afxdp_close(x);
	return n;
}

static void chosen(void **state)
{
	struct afxdp_config cfg = config(AFXDP_AUTO);
	struct afxdp *x;

	pair(4, 4, 3);
	assert_int_equal(parts_for(0), 1);
	assert_int_equal(parts_for(1), 1);
	assert_int_equal(parts_for(2), 2);
	assert_int_equal(parts_for(3), 3);
	assert_int_equal(parts_for(4), 3); /* wan0 has no more */

	/* two WAN ports: which one a frame leaves by is learned from all frames */
	sh("ip link add wan1 numrxqueues 4 numtxqueues 4 type veth peer name host3 && ip link set "
	   "host3 up && ip link set wan1 up mtu 4500");
	cfg.parts = 3;
	cfg.ifname[STEER_PORT(STEER_WAN, 1)] = "wan1";
	x = open_port(&cfg);
	assert_int_equal(afxdp_parts(x), 1);
	afxdp_close(x);
	sh("ip link del host3");

	unpair(state);
	pair(2, 2, 1);
	assert_int_equal(parts_for(2), 1);
	unpair(state);
	pair(3, 2, 3);
	assert_int_equal(parts_for(3), 2); /* the third would have no queue to transmit by */
	unpair(state);
	pair(2, 3, 3);
	assert_int_equal(parts_for(3), 2); /* or to receive by */
}

/* The packet memory of a former process is not gone on with where it was cut for other parts. */
static void memory(void **state)
{
	struct afxdp_config cfg = config(AFXDP_NATIVE);
	off_t size[3];

	(void)state;
	cfg.file = memfd_create("parts", MFD_CLOEXEC);
	assert_true(cfg.file > 0);
	cfg.file_new = true;
	for (unsigned int i = 0; i < 3; i++) {
		struct stat st;
		struct afxdp *x;

		cfg.parts = 1 + i % 2;
		x = open_port(&cfg);
		assert_int_equal(afxdp_parts(x), cfg.parts);
		afxdp_close(x);
		assert_int_equal(fstat(cfg.file, &st), 0);
		size[i] = st.st_size;
	}
	assert_true(size[0] && size[1] && size[0] != size[1]);
	assert_int_equal(size[2], size[0]);
	close(cfg.file);
}

/* ---- whose frames are whose ---- */

/* Frames that have come in by each receive queue of that side's end. Returns their sum. */
static uint64_t by_queue(enum steer_side side, uint64_t n[QUEUES])
{
	char line[256];
	uint64_t sum = 0;
	FILE *f;

	memset(n, 0, QUEUES * sizeof(*n));
	snprintf(line, sizeof(line), "ethtool -S %s", ends[side]);
	f = popen(line, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		unsigned long packets;
		unsigned int q;

		if (sscanf(line, " rx_queue_%u_xdp_packets: %lu", &q, &packets) != 2)
			continue;
		assert_true(q < QUEUES);
		n[q] = packets;
		sum += packets;
	}
	assert_int_equal(pclose(f), 0);
	return sum;
}

/* By which queue the frame has come in that is the only one since @before was asked for. */
static unsigned int queue_of(enum steer_side side, const uint64_t before[QUEUES])
{
	uint64_t end = now() + FOREVER, n[QUEUES], sum = 0, was = 0;
	unsigned int q = 0;

	for (int i = 0; i < QUEUES; i++)
		was += before[i];
	do {
		sum = by_queue(side, n);
	} while (sum == was && now() < end);
	assert_int_equal(sum, was + 1);
	while (n[q] == before[q])
		q++;
	return q;
}

static unsigned int told[QUEUES];

/* @ctx: an entry of told */
static void tell(void *ctx, const uint8_t *data, uint32_t len)
{
	unsigned int *n = ctx;

	(void)len;
	*n += data != NULL;
}

/* One frame waits, at that side: it comes out of part @k, whole, and of no other one. */
static void comes_out(struct afxdp *x, unsigned int k, enum steer_side side, const uint8_t *frame,
		      uint32_t len)
{
	uint64_t end = now() + FOREVER;
	struct seen s = {0};

	while (!afxdp_waits(x, k, side) && now() < end)
		sched_yield();
	memset(told, 0, sizeof(told));
	for (unsigned int i = 0; i < afxdp_parts(x); i++) {
		if (i == k)
			continue;
		assert_false(afxdp_waits(x, i, side));
		assert_int_equal(afxdp_rx(x, i, 64, keep, &s), 0);
		assert_int_equal(told[i], 0);
	}
	assert_true(afxdp_waits(x, k, side));
	assert_false(afxdp_waits(x, k, other(side)));
	assert_int_equal(afxdp_unread(x, side), len);
	assert_int_equal(afxdp_rx(x, k, 64, keep, &s), 1);
	for (unsigned int i = 0; i < afxdp_parts(x); i++)
		assert_int_equal(told[i], i == k);
	assert_int_equal(s.side, side);
	assert_int_equal(s.len, len);
	assert_memory_equal(s.data, frame, len);
	assert_false(afxdp_waits(x, k, side));
}

static struct afxdp *open_told(void)
{
	struct afxdp *x = open_parts(2);

	assert_true(afxdp_native(x, LAN0) && afxdp_native(x, WAN0));
	assert_int_equal(afxdp_parts(x), 2);
	for (unsigned int k = 0; k < 2; k++)
		afxdp_soon(x, k, tell, &told[k]);
	return x;
}

/* What part k sends leaves by queue k, and only when that part says so. */
static void sent_by(void **state)
{
	struct afxdp *x = open_told();
	uint8_t frame[BUF];

	(void)state;
	for (uint32_t i = 0; i < 20; i++) {
		enum steer_side side = i / 2 % 2 ? STEER_LAN : STEER_WAN, at = other(side);
		unsigned int k = i % 2;
		uint32_t len = make(frame, at, 100 + i * 50, i, NO_TAG);
		uint64_t before[QUEUES];

		by_queue(at, before);
		assert_int_equal(afxdp_tx(x, k, side, frame, len, 0), 0);
		assert_false(afxdp_flush(x, !k));
		flush_part(x, k);
		assert_int_equal(queue_of(at, before), k);
		comes_out(x, k, at, frame, len);
	}
	afxdp_close(x);
}

/* What comes in by queue q comes out of part q % 2, whoever sent it. */
static void received_by(void **state)
{
	struct afxdp *x = open_told();
	unsigned int seen[STEER_SIDES][3] = {0};
	uint64_t end = now() + FOREVER;
	uint8_t frame[BUF];
	uint32_t least = 0;

	(void)state;
	assert_int_equal(afxdp_queues(x, LAN0), 3);
	assert_int_equal(afxdp_queues(x, WAN0), 3);
	/* the kernel spreads flows over the queues, until each had some */
	for (uint32_t i = 0; least < 3 && now() < end; i++) {
		enum steer_side side = i % 2 ? STEER_LAN : STEER_WAN;
		uint32_t len = make(frame, side, 200, i, NO_TAG);
		uint64_t before[QUEUES];
		unsigned int q;

		steer_put16(frame + 34, (uint16_t)(0xc000 + i));
		by_queue(side, before);
		host_send(side, frame, len);
		q = queue_of(side, before);
		comes_out(x, q % 2, side, frame, len);
		assert_true(q < 3);
		seen[side][q]++;
		least = UINT32_MAX;
		for (int j = 0; j < 6; j++)
			least = seen[j % 2][j / 2] < least ? seen[j % 2][j / 2] : least;
	}
	assert_true(least >= 3);
	afxdp_close(x);
}

/* ---- room and counts ---- */

static void receive(struct afxdp *x, unsigned int k, uint32_t n)
{
	uint64_t end = now() + FOREVER;
	struct seen s = {0};

	while (s.n < n && now() < end)
		afxdp_rx(x, k, 64, keep, &s);
	assert_int_equal(s.n, n);
}

/* One part that is full leaves the other its room; counts of both add up. */
static void counted(void **state)
{
	struct afxdp *x = open_parts(2);
	struct afxdp_counts n[STEER_SIDES];
	uint32_t room = afxdp_room(x, 0, STEER_WAN), len, sent = 0;
	uint8_t frame[BUF];

	(void)state;
	assert_int_equal(room, 2048 / 2 / 2 / 2); /* transmit, of a port, of a part */
	len = make(frame, STEER_LAN, 300, 0, NO_TAG);
	while (afxdp_tx(x, 0, STEER_WAN, frame, len, 0) == 0)
		sent++;
	assert_int_equal(sent, room);
	assert_int_equal(afxdp_room(x, 0, STEER_WAN), 0);
	assert_int_equal(afxdp_room(x, 0, STEER_LAN), room);
	assert_int_equal(afxdp_room(x, 1, STEER_WAN), room);
	len = make(frame, STEER_LAN, 400, 0, NO_TAG);
	for (uint32_t i = 0; i < 7; i++)
		assert_int_equal(afxdp_tx(x, 1, STEER_WAN, frame, len, 0), 0);
	assert_int_equal(afxdp_tx(x, 1, STEER_WAN, frame, FRAME_MAX + 1, 0), -EMSGSIZE);
	flush_part(x, 0);
	flush_part(x, 1);
	receive(x, 1, 7);
	receive(x, 0, sent);
	for (unsigned int k = 0; k < 2; k++) {
		len = make(frame, STEER_WAN, 200 - 50 * k, 0, NO_TAG);
		assert_int_equal(afxdp_tx(x, k, STEER_LAN, frame, len, 0), 0);
		flush_part(x, k);
		receive(x, k, 1);
	}
	both_counts(x, n);
	assert_int_equal(n[STEER_WAN].tx, sent + 7);
	assert_int_equal(n[STEER_WAN].tx_bytes, sent * 300 + 7 * 400);
	assert_int_equal(n[STEER_WAN].tx_full, 1);
	assert_int_equal(n[STEER_WAN].tx_too_long, 1);
	assert_int_equal(n[STEER_LAN].rx, sent + 7);
	assert_int_equal(n[STEER_LAN].rx_bytes, sent * 300 + 7 * 400);
	assert_int_equal(n[STEER_LAN].tx, 2);
	assert_int_equal(n[STEER_WAN].rx, 2);
	assert_int_equal(afxdp_wan_read(x), 200 + 150);
	for (unsigned int k = 0; k < 2; k++)
		assert_int_equal(afxdp_room(x, k, STEER_WAN), room);
	/* the longest of either, then none; what came in by the LAN is on its way to the WAN */
	assert_int_equal(afxdp_longest(x, STEER_WAN), 400);
	assert_int_equal(afxdp_longest(x, STEER_LAN), 200);
	assert_int_equal(afxdp_longest(x, STEER_WAN), 0);
	assert_int_equal(afxdp_bad_chunks(x), 0);
	afxdp_close(x);
}

/* The sockets that a part transmits by take all that its rings do. */
static void buffered(void **state)
{
	struct afxdp *x = open_parts(2);
	int fds[2], size[2];

	(void)state;
	assert_int_equal(afxdp_fds(x, fds, 2), 2);
	for (int i = 0; i < 2; i++) {
		socklen_t len = sizeof(size[i]);

		assert_int_equal(getsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &size[i], &len), 0);
		assert_true((uint32_t)size[i] >= afxdp_room(x, 0, STEER_LAN) * 2 * AFXDP_CHUNK);
	}
	afxdp_close(x);
}

/* Each socket polls its device for as long as it was told to. */
static void polled(void **state)
{
	int fds[QUEUES], n;

	(void)state;
	for (int us = 0; us <= 70; us += 70) {
		struct afxdp_config cfg = config(AFXDP_AUTO);
		struct afxdp *x;

		cfg.busy_poll_us = (uint32_t)us;
		x = open_port(&cfg);
		n = afxdp_fds(x, fds, QUEUES);
		assert_int_equal(n, 4);
		for (int i = 0; i < n; i++) {
			int time = -1;
			socklen_t len = sizeof(time);

			assert_int_equal(getsockopt(fds[i], SOL_SOCKET, SO_BUSY_POLL, &time, &len),
					 0);
			assert_int_equal(time, us);
		}
		afxdp_close(x);
	}
}

/* What was queued and not shown to the kernel yet leaves when the port closes, of each part. */
static void closed(void **state)
{
	struct afxdp *x = open_parts(2);
	uint8_t frame[BUF], back[BUF];
	uint32_t len;
	bool came[2] = {false, false};

	(void)state;
	for (uint32_t k = 0; k < 2; k++) {
		len = make(frame, STEER_LAN, 100 + k, k, NO_TAG);
		assert_int_equal(afxdp_tx(x, k, STEER_WAN, frame, len, 0), 0);
	}
	afxdp_close(x);
	for (int i = 0; i < 2; i++) {
		len = host_recv(STEER_WAN, back); /* at lan0 */
		assert_in_range(len, 100, 101);
		came[len - 100] = true;
	}
	assert_true(came[0] && came[1]);
}

/* ---- all parts at once ---- */

#define WINDOW 100u /* frames on their way; veth drops what is beyond 256 */

/* How the frames of one part and direction begin and end: the rest is of @n, too. */
struct mark {
	uint32_t part, n, sum;
};

/* A thread, with its part. @sent, @got: by the side where they arrive */
struct one {
	struct afxdp *x;
	unsigned int k;
	uint64_t end;
	uint8_t frame[STEER_SIDES][BUF];
	uint32_t sent[STEER_SIDES], got[STEER_SIDES];
	uint64_t bytes[STEER_SIDES];
	const char *wrong;
};

#define HEADERS (14u + 20 + 8 + 12)

static uint32_t sum_of(const uint8_t *data, uint32_t len)
{
	uint32_t a = 1, b = len;

	for (uint32_t i = 0; i < len; i++) {
		a = a * 31 + data[i];
		b ^= a >> 7;
	}
	return a ^ b;
}

/* Some frames need two chunks. */
static uint32_t length_of(uint32_t n)
{
	return n % 16 == 3 && afxdp_multibuffer() ? 3800 + n * 7 % 400 : 100 + n * 13 % 900;
}

static void mark(struct one *o, enum steer_side at, uint32_t n, uint32_t len)
{
	uint8_t *p = o->frame[at] + HEADERS;
	struct mark m = {.part = o->k, .n = n};

	memcpy(p, &m, sizeof(m));
	for (uint32_t i = HEADERS + sizeof(m); i < len; i += 61)
		o->frame[at][i] = (uint8_t)(n + i + o->k * 101);
	m.sum = sum_of(p, len - HEADERS);
	memcpy(p, &m, sizeof(m));
}

/* The next one of this part and direction, and no other. */
static void arrived(void *ctx, enum steer_side side, uint8_t *data, uint32_t len)
{
	struct one *o = ctx;
	struct mark m;
	uint32_t sum;

	if (len < HEADERS + sizeof(m)) {
		o->wrong = "a frame too short to be one of ours";
		return;
	}
	memcpy(&m, data + HEADERS, sizeof(m));
	sum = m.sum;
	m.sum = 0;
	memcpy(data + HEADERS, &m, sizeof(m));
	if (sum_of(data + HEADERS, len - HEADERS) != sum)
		o->wrong = "a frame was altered";
	else if (m.part != o->k)
		o->wrong = "a frame of the other part";
	else if (m.n != o->got[side])
		o->wrong = "a frame was lost, or came twice, or late";
	else if (len != length_of(m.n))
		o->wrong = "a frame's length is not what was sent";
	o->got[side]++;
	o->bytes[side] += len;
}

/* As many frames as the window has room for, that arrive at side @at. */
static void send_some(struct one *o, enum steer_side at)
{
	while (o->sent[at] - o->got[at] < WINDOW) {
		uint32_t len = length_of(o->sent[at]);
		int r;

		mark(o, at, o->sent[at], len);
		r = afxdp_tx(o->x, o->k, other(at), o->frame[at], len, 0);
		if (r) {
			o->wrong = r == -EAGAIN ? o->wrong : "a frame was refused";
			return;
		}
		o->sent[at]++;
	}
}

static bool on_their_way(const struct one *o)
{
	return o->sent[STEER_LAN] != o->got[STEER_LAN] || o->sent[STEER_WAN] != o->got[STEER_WAN];
}

static void *run(void *arg)
{
	struct one *o = arg;
	uint64_t give_up = o->end + FOREVER;

	for (uint64_t t = now(); !o->wrong && t < give_up; t = now()) {
		if (t < o->end) {
			send_some(o, STEER_LAN);
			send_some(o, STEER_WAN);
		} else if (!on_their_way(o)) {
			break;
		}
		afxdp_flush(o->x, o->k);
		afxdp_rx(o->x, o->k, 17, arrived, o); /* batches that end within a frame */
	}
	return NULL;
}

/* Both parts send and receive in both directions, each in a thread of its own, for a second. */
static void at_once(void **state)
{
	static struct one one[2];
	struct afxdp *x = open_parts(2);
	struct afxdp_counts n[STEER_SIDES];
	uint64_t end = now() + SECOND;
	pthread_t thread[2];

	(void)state;
	assert_int_equal(afxdp_parts(x), 2);
	memset(one, 0, sizeof(one));
	for (unsigned int k = 0; k < 2; k++) {
		one[k].x = x;
		one[k].k = k;
		one[k].end = end;
		for (int at = 0; at < STEER_SIDES; at++)
			make(one[k].frame[at], at, 4400, 0, NO_TAG);
		assert_int_equal(pthread_create(&thread[k], NULL, run, &one[k]), 0);
	}
	for (; now() < end; usleep(10000))
		afxdp_heartbeat(x, now());
	for (unsigned int k = 0; k < 2; k++)
		pthread_join(thread[k], NULL);
	both_counts(x, n);
	for (unsigned int k = 0; k < 2; k++) {
		print_message("           part %u: %u and %u frames\n", k, one[k].got[0],
			      one[k].got[1]);
		if (one[k].wrong)
			fail_msg("part %u: %s", k, one[k].wrong);
		for (int at = 0; at < STEER_SIDES; at++) {
			assert_int_equal(one[k].got[at], one[k].sent[at]);
			assert_true(one[k].got[at] > 2 * WINDOW);
		}
	}
	for (int at = 0; at < STEER_SIDES; at++) {
		uint64_t frames = (uint64_t)one[0].got[at] + one[1].got[at];
		uint64_t bytes = one[0].bytes[at] + one[1].bytes[at];

		assert_int_equal(n[at].rx, frames);
		assert_int_equal(n[at].rx_bytes, bytes);
		assert_int_equal(n[at].steer[STEER_TAKEN], frames);
		assert_int_equal(n[other(at)].tx, frames);
		assert_int_equal(n[other(at)].tx_bytes, bytes);
		assert_int_equal(n[at].rx_dropped + n[at].tx_dropped, 0);
		assert_int_equal(n[at].rx_bad_chunk + n[at].tx_bad_chunk + n[at].rx_too_long, 0);
	}
	afxdp_close(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON(none, chosen),	ON(two, memory),  ON(two, sent_by),
		ON(three, received_by), ON(two, counted), ON(two, buffered),
		ON(two, polled),	ON(two, closed),  ON(two, at_once),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
