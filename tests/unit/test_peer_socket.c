// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The peer socket over the loopback of a network namespace of its own; over the host's own loopback
 * where making one is not allowed.
 */
#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <linux/sock_diag.h>

#include <cmocka.h>

#include "rule/rule.h"
#include "peer/session.h"
#include "peer/socket.h"

static const struct ip_addr any;
static const struct ip_addr any4 = {{[10] = 0xff, [11] = 0xff}};
static const struct ip_addr lo4 = {{[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}};
static const struct ip_addr lo6 = {{[15] = 1}};

static struct {
	unsigned int n, peer;
	size_t len;
	uint8_t data[SESSION_PROBE_MAX];
	uint32_t sum;
	uint64_t waited_ns;
} got;

static void on_rx(void *ctx, unsigned int peer, const uint8_t *data, size_t len, uint64_t waited_ns)
{
	assert_ptr_equal(ctx, &got);
	got.n++;
	got.waited_ns = waited_ns;
	got.peer = peer;
	got.len = len;
	assert_true(len <= sizeof(got.data));
	memcpy(got.data, data, len);
	for (size_t i = 0; i < len; i++)
		got.sum += data[i];
}

static struct peer_socket *open_on(const struct ip_addr *a)
{
	char err[256] = "";
	struct peer_socket *ps = peer_socket_open(a, 0, err, sizeof(err));

	if (!ps)
		print_message("%s\n", err);
	return ps;
}

/* Wait until something is there, and take it. */
static int take(struct peer_socket *ps, unsigned int budget)
{
	struct pollfd p = {.fd = peer_socket_fd(ps), .events = POLLIN};

	assert_int_equal(poll(&p, 1, 30000), 1);
	return peer_socket_rx(ps, budget, on_rx, &got);
}

/* Memory of what waits in the socket. */
static uint32_t waiting(struct peer_socket *ps)
{
	uint32_t mem[SK_MEMINFO_VARS] = {0};
	socklen_t len = sizeof(mem);

	assert_int_equal(getsockopt(peer_socket_fd(ps), SOL_SOCKET, SO_MEMINFO, mem, &len), 0);
	return mem[SK_MEMINFO_RMEM_ALLOC];
}

/* Even a loopback delivers when the kernel comes to it: on a busy machine some time after the
 * sending. */
static void wait_until_waiting(struct peer_socket *ps, uint32_t mem)
{
	time_t end = time(NULL) + 30;

	while (waiting(ps) < mem && time(NULL) < end)
		sched_yield();
}

static void exchange(const struct ip_addr *listen_a, const struct ip_addr *listen_b,
		     const struct ip_addr *reach)
{
	struct peer_socket *a = open_on(listen_a), *b = open_on(listen_b);
	uint8_t data[SESSION_DATAGRAM_MAX];
	struct peer_socket_stats st;

	assert_non_null(a);
	assert_non_null(b);
	memset(&got, 0, sizeof(got));
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7);
	assert_true(peer_socket_port(a) != 0 && peer_socket_port(a) != peer_socket_port(b));
	assert_int_equal(peer_socket_map(a, 2, reach, peer_socket_port(b)), 0);
	assert_int_equal(peer_socket_map(b, 15, reach, peer_socket_port(a)), 0);
	assert_int_equal(peer_socket_rx(b, 0, on_rx, &got), 0);

	peer_socket_send(a, 2, data, sizeof(data));
	assert_int_equal(take(b, 0), 1);
	assert_int_equal(got.n, 1);
	assert_int_equal(got.peer, 15);
	assert_int_equal(got.len, sizeof(data));
	assert_memory_equal(got.data, data, sizeof(data));
	peer_socket_send(b, 15, data, 1);
	assert_int_equal(take(a, 0), 1);
	assert_int_equal(got.peer, 2);
	assert_int_equal(got.len, 1);

	peer_socket_stats(a, &st);
	assert_int_equal(st.tx, 1);
	assert_int_equal(st.rx, 1);
	assert_int_equal(st.unknown_source + st.oversize + st.tx_full + st.tx_errors + st.rx_errors,
			 0);
	peer_socket_close(a);
	peer_socket_close(b);
}

static uint64_t clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* It is told how long a datagram waited: since it arrived, which was after the socket was empty. */
static void waited(void **state)
{
	struct peer_socket *a = open_on(&lo4), *b = open_on(&lo4);
	uint64_t empty = clock_now(), arrived;

	(void)state;
	assert_int_equal(peer_socket_map(a, 2, &lo4, peer_socket_port(b)), 0);
	assert_int_equal(peer_socket_map(b, 15, &lo4, peer_socket_port(a)), 0);
	assert_int_equal(peer_socket_rx(b, 0, on_rx, &got), 0);
	peer_socket_send(a, 2, (const uint8_t *)"1", 1);
	wait_until_waiting(b, 1);
	arrived = clock_now();
	while (clock_now() - arrived < 5000000)
		sched_yield();
	assert_int_equal(take(b, 0), 1);
	assert_true(got.waited_ns >= 5000000);
	assert_true(got.waited_ns <= clock_now() - empty);
	peer_socket_close(a);
	peer_socket_close(b);
}

static bool have_ip6(void)
{
	struct peer_socket *ps = open_on(&lo6);

	peer_socket_close(ps);
	return ps != NULL;
}

static void ip4(void **state)
{
	(void)state;
	exchange(&lo4, &lo4, &lo4);
	exchange(&any4, &lo4, &lo4);
}

static void ip6(void **state)
{
	(void)state;
	if (!have_ip6())
		skip();
	exchange(&lo6, &lo6, &lo6);
	exchange(&any, &lo6, &lo6);
}

static void both_families(void **state)
{
	(void)state;
	exchange(&any, &any, &lo4);
	exchange(&any, &lo4, &lo4);
	if (have_ip6())
		exchange(&any, &any, &lo6);
}

/* More than one batch; a budget that ends in the middle of one. */
static void batches(void **state)
{
	struct peer_socket *a = open_on(&lo4), *b = open_on(&lo4);
	struct peer_socket_stats st;
	uint32_t sum = 0, one = 0;

	(void)state;
	assert_non_null(a);
	assert_non_null(b);
	memset(&got, 0, sizeof(got));
	peer_socket_map(a, 0, &lo4, peer_socket_port(b));
	peer_socket_map(b, 1, &lo4, peer_socket_port(a));
	for (unsigned int i = 0; i < 200; i++) {
		uint8_t data[64];

		memset(data, (int)i, sizeof(data));
		sum += 64 * i;
		peer_socket_send(a, 0, data, sizeof(data));
		if (!i) {
			wait_until_waiting(b, 1);
			one = waiting(b);
		}
	}
	wait_until_waiting(b, 200 * one);
	assert_int_equal(take(b, 10), 10);
	assert_int_equal(take(b, 33), 33);
	assert_int_equal(got.data[0], 42); /* in order */
	assert_int_equal(take(b, 0), 157);
	assert_int_equal(got.n, 200);
	assert_int_equal(got.sum, sum);
	peer_socket_stats(b, &st);
	assert_int_equal(st.rx, 200);
	assert_true(st.rcvbuf >= 100000);
	peer_socket_close(a);
	peer_socket_close(b);
}

static void strangers(void **state)
{
	struct peer_socket *a = open_on(&lo4), *b = open_on(&lo4), *c = open_on(&lo4);
	uint8_t data[SESSION_PROBE_MAX + 1] = {1};
	struct peer_socket_stats st;

	(void)state;
	assert_non_null(a);
	assert_non_null(b);
	assert_non_null(c);
	memset(&got, 0, sizeof(got));
	peer_socket_map(a, 0, &lo4, peer_socket_port(b));
	peer_socket_map(b, 0, &lo4, peer_socket_port(a));
	peer_socket_map(c, 0, &lo4, peer_socket_port(b));

	peer_socket_send(c, 0, data, 10);
	assert_int_equal(take(b, 0), 1);
	assert_int_equal(got.n, 0);
	peer_socket_stats(b, &st);
	assert_int_equal(st.unknown_source, 1);
	assert_memory_equal(&st.unknown_addr, &lo4, sizeof(lo4));
	assert_int_equal(st.unknown_port, peer_socket_port(c));

	/* Too long by one; just right. */
	assert_true(peer_socket_probe(a, 0, 0, data, sizeof(data)));
	assert_int_equal(take(b, 0), 1);
	assert_int_equal(got.n, 0);
	assert_true(peer_socket_probe(a, 0, 0, data, sizeof(data) - 1));
	assert_int_equal(take(b, 0), 1);
	assert_int_equal(got.n, 1);
	peer_socket_stats(b, &st);
	assert_int_equal(st.oversize, 1);

	/* Nobody to send to; no longer known. */
	peer_socket_send(a, 1, data, 10);
	peer_socket_send(a, PEER_MAX, data, 10);
	peer_socket_unmap(b, 0);
	peer_socket_send(a, 0, data, 10);
	assert_int_equal(take(b, 0), 1);
	assert_int_equal(got.n, 1);
	peer_socket_stats(b, &st);
	assert_int_equal(st.unknown_source, 2);
	peer_socket_stats(a, &st);
	assert_int_equal(st.tx, 3);
	peer_socket_close(a);
	peer_socket_close(b);
	peer_socket_close(c);
}

static void addresses(void **state)
{
	static const struct ip_addr nowhere = {
		{[10] = 0xff, [11] = 0xff, [12] = 192, [14] = 2, [15] = 9}};
	struct peer_socket *a = open_on(&lo4), *b;
	char err[256] = "";

	(void)state;
	assert_non_null(a);
	assert_int_equal(peer_socket_map(a, PEER_MAX, &lo4, 1), -EINVAL);
	assert_int_equal(peer_socket_map(a, 0, &lo4, 0), -EINVAL);
	assert_int_equal(peer_socket_map(a, 0, &any, 1), -EINVAL);
	assert_int_equal(peer_socket_map(a, 0, &lo6, 1), -EINVAL);
	assert_int_equal(peer_socket_map(a, 0, &lo4, 1), 0);
	assert_int_equal(peer_socket_map(a, 1, &lo4, 1), -EEXIST);
	assert_int_equal(peer_socket_map(a, 1, &lo4, 2), 0);
	assert_int_equal(peer_socket_map(a, 0, &lo4, 3), 0); /* moved */
	assert_int_equal(peer_socket_map(a, 2, &lo4, 1), 0);
	if (have_ip6()) {
		b = open_on(&lo6);
		assert_int_equal(peer_socket_map(b, 0, &lo4, 1), -EINVAL);
		peer_socket_close(b);
	}

	assert_null(peer_socket_open(&lo4, peer_socket_port(a), err, sizeof(err)));
	assert_non_null(strstr(err, "127.0.0.1"));
	assert_non_null(strstr(err, "another longhauld"));
	assert_null(peer_socket_open(&nowhere, 0, err, sizeof(err)));
	assert_non_null(strstr(err, "192.0.2.9"));
	assert_null(strchr(err, '\n'));
	peer_socket_close(a);
	peer_socket_close(NULL);
}

/* The send buffer is full when @no_room says so: loopback's never is. */
static unsigned int no_room, sends;

ssize_t sendto(int fd, const void *buf, size_t n, int flags, const struct sockaddr *to,
	       socklen_t to_len)
{
	sends++;
	if (no_room) {
		no_room--;
		errno = EAGAIN;
		return -1;
	}
	return syscall(SYS_sendto, fd, buf, n, flags, to, to_len);
}

static void in_order(void *ctx, unsigned int peer, const uint8_t *data, size_t len,
		     uint64_t waited_ns)
{
	unsigned int *next = ctx;

	(void)waited_ns;
	assert_int_equal(peer, 0);
	assert_int_equal(len, 1);
	assert_int_equal(data[0], (*next)++);
}

/* What finds no room in the send buffer leaves when there is some, and in its order. */
static void full_buffer(void **state)
{
	struct peer_socket *a = open_on(&lo4), *b = open_on(&lo4);
	struct pollfd p = {.fd = peer_socket_fd(b), .events = POLLIN};
	struct peer_socket_stats st;
	unsigned int next = 0;

	(void)state;
	assert_int_equal(peer_socket_map(a, 0, &lo4, peer_socket_port(b)), 0);
	assert_int_equal(peer_socket_map(b, 0, &lo4, peer_socket_port(a)), 0);
	for (uint8_t i = 0; i < 6; i++) {
		no_room = i < 2 ? 1 : 0; /* the third takes the first two along */
		peer_socket_send(a, 0, &i, 1);
		assert_int_equal(peer_socket_flush(a), false);
	}
	for (uint8_t i = 6; i < 10; i++) {
		no_room = UINT_MAX;
		peer_socket_send(a, 0, &i, 1);
		assert_int_equal(peer_socket_flush(a), true);
	}
	no_room = 0;
	assert_int_equal(peer_socket_flush(a), false);
	while (next < 10) {
		assert_int_equal(poll(&p, 1, 10000), 1);
		peer_socket_rx(b, 0, in_order, &next);
	}
	peer_socket_stats(a, &st);
	assert_int_equal(st.tx, 10);
	assert_int_equal(st.tx_full, 0);

	/* not without end */
	no_room = UINT_MAX;
	for (uint8_t i = 0; i < 200; i++)
		peer_socket_send(a, 0, &i, 1);
	no_room = 0;
	peer_socket_stats(a, &st);
	assert_true(st.tx_full > 0 && st.tx_full < 200);
	assert_int_equal(peer_socket_flush(a), false);
	peer_socket_close(a);
	peer_socket_close(b);
}

/* Of a batch nothing leaves before its end, however much it says: what is too much is lost. */
static void batch(void **state)
{
	struct peer_socket *a = open_on(&lo4);
	struct peer_socket_stats st;
	const unsigned int many = 6000;

	(void)state;
	assert_int_equal(peer_socket_map(a, 0, &lo4, peer_socket_port(a)), 0);
	assert_int_equal(peer_socket_wait(a), 0);
	for (unsigned int round = 1; round <= 3; round++) {
		sends = 0;
		for (unsigned int i = 0; i < many; i++)
			peer_socket_send(a, 0, (const uint8_t *)"", 1);
		assert_int_equal(sends, 0);
		assert_int_equal(peer_socket_flush(a), false);
		assert_true(sends > 1000 && sends < many);
		peer_socket_stats(a, &st);
		assert_int_equal(st.tx + st.tx_full, round * many);
	}
	peer_socket_close(a);
}

/* The last word to a peer that is forgotten before the batch ends goes where it was then. */
static void last_word(void **state)
{
	struct peer_socket *a = open_on(&lo4), *b = open_on(&lo4), *c = open_on(&lo4);

	(void)state;
	memset(&got, 0, sizeof(got));
	assert_int_equal(peer_socket_map(a, 0, &lo4, peer_socket_port(b)), 0);
	assert_int_equal(peer_socket_map(b, 1, &lo4, peer_socket_port(a)), 0);
	assert_int_equal(peer_socket_wait(a), 0);
	peer_socket_send(a, 0, (const uint8_t *)"1", 1);
	peer_socket_unmap(a, 0);
	peer_socket_send(a, 0, (const uint8_t *)"2", 1); /* to nobody */
	assert_int_equal(peer_socket_map(a, 0, &lo4, peer_socket_port(c)), 0);
	assert_int_equal(peer_socket_flush(a), false);
	assert_int_equal(take(b, 0), 1);
	assert_int_equal(got.data[0], '1');
	assert_int_equal(peer_socket_rx(c, 0, on_rx, &got), 0);
	peer_socket_close(a);
	peer_socket_close(b);
	peer_socket_close(c);
}

/* Two sessions over two true sockets, on a clock that the test moves. */
struct end {
	struct peer_socket *ps;
	struct session *s;
	uint64_t now;
	unsigned int up;
};

static void end_rx(void *ctx, unsigned int peer, const uint8_t *data, size_t len,
		   uint64_t waited_ns)
{
	struct end *e = ctx;

	(void)waited_ns;
	session_rx(e->s, peer, data, len, e->now);
}

static void end_send(void *ctx, unsigned int peer, const uint8_t *data, size_t len)
{
	peer_socket_send(((struct end *)ctx)->ps, peer, data, len);
}

static void end_event(void *ctx, unsigned int peer, enum peer_event ev, uint64_t now)
{
	(void)peer;
	(void)now;
	assert_int_equal(ev, PEER_UP);
	((struct end *)ctx)->up++;
}

static void end_report(void *ctx, unsigned int peer, const struct report *r, uint64_t now)
{
	(void)ctx;
	(void)peer;
	(void)r;
	(void)now;
}

static void end_log(void *ctx, unsigned int peer, int prio, const char *line)
{
	(void)ctx;
	(void)peer;
	(void)prio;
	print_message("%s\n", line);
}

static void sessions(void **state)
{
	static const uint8_t key[PEER_KEY_LEN] = {1, 2, 3};
	struct end e[2] = {{.now = 1}, {.now = 1000000000}};

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct session_config cfg = {.local = {.name = i ? "b" : "a"}};
		struct session_sink sink = {&e[i], end_send, end_event, end_report, end_log, NULL};

		e[i].ps = open_on(&lo4);
		assert_non_null(e[i].ps);
		e[i].s = session_create(&cfg, &sink, e[i].now);
		assert_non_null(e[i].s);
		assert_int_equal(session_peer_add(e[i].s, 0, "other", key, e[i].now), 0);
	}
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(peer_socket_map(e[i].ps, 0, &lo4, peer_socket_port(e[!i].ps)), 0);
	for (unsigned int round = 0; round < 200 && !(e[0].up && e[1].up); round++) {
		struct pollfd p[2] = {{.fd = peer_socket_fd(e[0].ps), .events = POLLIN},
				      {.fd = peer_socket_fd(e[1].ps), .events = POLLIN}};

		/* What was sent may take its time, but not more of it than passes here. */
		poll(p, 2, 10);
		for (unsigned int i = 0; i < 2; i++) {
			e[i].now += 10000000;
			peer_socket_rx(e[i].ps, 0, end_rx, &e[i]);
			session_tick(e[i].s, e[i].now);
			session_flush(e[i].s);
		}
	}
	assert_int_equal(e[0].up, 1);
	assert_int_equal(e[1].up, 1);
	for (unsigned int i = 0; i < 2; i++) {
		session_destroy(e[i].s);
		peer_socket_close(e[i].ps);
	}
}

/* A datagram was refused, and the error was told to another call than those that read. The kernel
 * wakes whoever waits for the socket until it is read from the queue. */
static void refused(void **state)
{
	struct peer_socket *ps = open_on(&lo4);
	struct pollfd p = {.fd = peer_socket_fd(ps), .events = POLLIN};
	socklen_t len = sizeof(int);
	int err = 0;

	(void)state;
	assert_int_equal(peer_socket_map(ps, 0, &lo4, 9), 0);
	peer_socket_send(ps, 0, (const uint8_t *)"x", 1);
	assert_int_equal(poll(&p, 1, 30000), 1);
	assert_int_equal(getsockopt(p.fd, SOL_SOCKET, SO_ERROR, &err, &len), 0);
	assert_int_equal(err, ECONNREFUSED);
	assert_int_equal(peer_socket_rx(ps, 0, on_rx, &got), 0);
	assert_int_equal(poll(&p, 1, 0), 1);
	peer_socket_troubles(ps);
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(peer_socket_trouble(ps, 0), ECONNREFUSED);
	peer_socket_close(ps);
}

/* Away from the host's own network, if that can be had. */
static int set_up(void **state)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	int fd;

	(void)state;
	if (unshare(CLONE_NEWNET) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return 0;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo) < 0)
		return -1;
	return close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ip4),		 cmocka_unit_test(ip6),
		cmocka_unit_test(both_families), cmocka_unit_test(batches),
		cmocka_unit_test(strangers),	 cmocka_unit_test(addresses),
		cmocka_unit_test(sessions),	 cmocka_unit_test(full_buffer),
		cmocka_unit_test(batch),	 cmocka_unit_test(waited),
		cmocka_unit_test(last_word),	 cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
