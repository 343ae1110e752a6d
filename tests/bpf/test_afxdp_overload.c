// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The AF_XDP port on real interfaces (afxdp_rig.h) that are given more than is read: what an
 * overload leaves behind. Nothing may: once it is over, each frame sent arrives once and unaltered,
 * and the kernel has all of the chunks.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>

#include "port/afxdp_priv.h"
#include "tests/bpf/afxdp_rig.h"

#define CHUNKS 512u /* the LAN port's, of the rig's 2048 */

/* Some frames need two chunks. */
static bool is_long(uint32_t seq)
{
	return seq % 5 == 0;
}

static uint32_t frame_of(uint8_t *out, uint32_t seq)
{
	uint32_t base = afxdp_multibuffer() ? 3900 : 3000;

	return make(out, STEER_LAN, is_long(seq) ? base + seq % 300 : 100 + seq % 97, seq, NO_TAG);
}

/* What was received must be frames that were sent, in order, none of them twice. */
struct order {
	struct afxdp *x;
	uint32_t next; /* the first that was not received yet */
	uint32_t n;
	bool forward;
};

static void in_order(void *ctx, enum steer_side side, uint8_t *data, uint32_t len)
{
	struct order *o = ctx;
	uint8_t frame[BUF];
	uint32_t seq;

	assert_int_equal(side, STEER_LAN);
	memcpy(&seq, data + len - sizeof(seq), sizeof(seq));
	if (seq < o->next)
		fail_msg("frame %u after frame %u", seq, o->next - 1);
	assert_int_equal(frame_of(frame, seq), len);
	assert_memory_equal(data, frame, len);
	o->next = seq + 1;
	o->n++;
	while (o->forward && afxdp_tx(o->x, 0, STEER_WAN, data, len, 0) == -EAGAIN)
		afxdp_flush(o->x, 0);
}

static void read_until(struct afxdp *x, struct order *o, uint32_t n)
{
	uint64_t end = now() + 5 * SECOND;
	struct pollfd p;

	assert_int_equal(afxdp_fds(x, &p.fd, 1), 1); /* the LAN port's only one */
	p.events = POLLIN;
	while (o->n < n && now() < end)
		if (!afxdp_rx(x, 0, 17, in_order, o))
			poll(&p, 1, 100);
	assert_int_equal(o->n, n);
}

static uint64_t kernel_dropped(struct afxdp *x)
{
	struct afxdp_counts st[STEER_SIDES];

	both_counts(x, st);
	return st[STEER_LAN].rx_dropped;
}

/* Frames that came to the port, whatever became of them then. */
static uint64_t taken(struct afxdp *x)
{
	struct afxdp_counts st[STEER_SIDES];

	both_counts(x, st);
	return st[STEER_LAN].steer[STEER_TAKEN];
}

/* Send @n short frames from number @seq on, no faster than the wire takes them; returns the number
 * that follows. */
static uint32_t send_short(struct afxdp *x, uint32_t seq, uint32_t n)
{
	uint64_t came = taken(x), end = now() + 5 * SECOND;
	uint8_t frame[BUF];
	uint32_t i = 0;

	for (; i < n; seq++) {
		if (is_long(seq))
			continue;
		host_send(STEER_LAN, frame, frame_of(frame, seq));
		if (++i % 64 && i < n)
			continue;
		while (taken(x) - came < i && now() < end)
			sched_yield();
		assert_int_equal(taken(x) - came, i);
	}
	return seq;
}

/* From frame @seq on: each arrives at the other host, once, in order, as it was sent. */
static uint32_t each_once(struct afxdp *x, struct order *o, uint32_t seq, uint32_t n)
{
	uint8_t frame[BUF], back[BUF];
	uint32_t end = seq + n, first, len;

	o->next = seq;
	o->forward = true;
	while (seq < end) {
		for (first = seq; seq < end && seq < first + 40; seq++) {
			len = frame_of(frame, seq);
			host_send(STEER_LAN, frame, len);
		}
		read_until(x, o, o->n + seq - first);
		assert_int_equal(o->next, seq);
		flush(x);
		for (; first < seq; first++) {
			len = frame_of(frame, first);
			assert_int_equal(host_recv(STEER_WAN, back), len);
			assert_memory_equal(back, frame, len);
		}
	}
	o->forward = false;
	return seq;
}

/* The kernel can receive as many frames as there are chunks, and no more. */
static uint32_t all_chunks(struct afxdp *x, struct order *o, uint32_t seq)
{
	uint64_t dropped = kernel_dropped(x);

	o->next = seq;
	seq = send_short(x, seq, CHUNKS + 100);
	assert_int_equal(kernel_dropped(x) - dropped, 100);
	read_until(x, o, o->n + CHUNKS);
	return seq;
}

static void nothing_bad(struct afxdp *x, const struct order *o)
{
	struct afxdp_counts st[STEER_SIDES];

	both_counts(x, st);
	assert_int_equal(st[STEER_LAN].rx, o->n);
	assert_int_equal(st[STEER_LAN].rx + st[STEER_LAN].rx_dropped,
			 st[STEER_LAN].steer[STEER_TAKEN]);
	assert_int_equal(st[STEER_LAN].rx_bad_chunk, 0);
	assert_int_equal(st[STEER_LAN].rx_too_long, 0);
	assert_int_equal(st[STEER_WAN].tx_bad_chunk, 0);
	assert_int_equal(st[STEER_WAN].tx_dropped + st[STEER_WAN].tx_full, 0);
}

/*
 * The kernel shows frames before it releases the slots that their chunks came from, and whoever
 * reads in that moment finds no room where he gives them back. The moment is some nanoseconds, or
 * an interrupt's time; here it is made certain: the port reads while it sees the fill ring's
 * consumer as it was before these frames.
 */
static uint32_t read_early(struct afxdp *x, struct order *o, uint32_t seq, uint32_t n)
{
	struct rxq *q = &x->port[STEER_LAN].q[0];
	uint32_t before = *q->fill.consumer, *consumer = q->fill.consumer;

	seq = send_short(x, seq, n);
	assert_int_equal(*q->rx.producer - *q->rx.consumer, n);
	q->fill.consumer = &before;
	read_until(x, o, o->n + n);
	q->fill.consumer = consumer;
	return seq;
}

static void late_release(void **state)
{
	struct afxdp_config cfg = config(AFXDP_AUTO);
	struct afxdp *x = open_port(&cfg);
	struct order o = {.x = x};
	uint32_t seq = 0, i;

	(void)state;
	for (i = 0; i < 200; i++)
		seq = read_early(x, &o, seq, 1 + i * 7 % 50);
	for (i = 0; i < 3; i++)
		seq = all_chunks(x, &o, seq);
	each_once(x, &o, seq, 5000);
	nothing_bad(x, &o);
	afxdp_close(x);
}

/* A host that sends as fast as it goes. */
struct flood {
	atomic_bool stop;
	atomic_uint sent;
};

static void *flood(void *arg)
{
	struct pollfd p = {.fd = host[STEER_LAN], .events = POLLOUT};
	struct flood *f = arg;
	uint8_t frame[BUF];

	while (!f->stop) {
		uint32_t len = frame_of(frame, f->sent);

		if (send(host[STEER_LAN], frame, len, 0) == (ssize_t)len)
			f->sent++;
		else if (errno == EAGAIN || errno == ENOBUFS)
			poll(&p, 1, 10);
		else
			break;
	}
	return NULL;
}

/* Read, do not read until the ring has overrun, read: several times, while the flood goes on. */
static void overrun(void **state)
{
	struct afxdp_config cfg = config(AFXDP_AUTO);
	struct afxdp *x = open_port(&cfg);
	struct order o = {.x = x};
	struct flood f = {0};
	uint64_t dropped;
	pthread_t thread;
	uint32_t seq;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, flood, &f), 0);
	for (int i = 0; i < 20; i++) {
		uint64_t end = now() + 10 * SECOND;

		dropped = kernel_dropped(x);
		while (kernel_dropped(x) - dropped < CHUNKS && now() < end)
			sched_yield();
		assert_true(kernel_dropped(x) - dropped >= CHUNKS);
		for (uint32_t until = o.n + 4 * CHUNKS; o.n < until && now() < end;)
			afxdp_rx(x, 0, 17, in_order, &o);
	}
	f.stop = true;
	pthread_join(thread, NULL);
	seq = f.sent;
	dropped = kernel_dropped(x);
	for (uint64_t end = now() + 5 * SECOND; o.n + dropped < taken(x) && now() < end;) {
		afxdp_rx(x, 0, 17, in_order, &o);
		dropped = kernel_dropped(x);
	}
	seq = all_chunks(x, &o, seq);
	each_once(x, &o, seq, 20000);
	nothing_bad(x, &o);
	print_message("           %u frames of the flood, %lu dropped\n", f.sent, dropped);
	afxdp_close(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_LINKS(late_release),
		ON_LINKS(overrun),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
