// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Content, seen by the hosts themselves: a program on libibverbs for both guests, which moves
 * messages with known content over one queue pair and looks at every byte where it arrives.
 *
 *	vcheck [OPTION...] OPS			the responder
 *	vcheck [OPTION...] OPS ADDRESS		the requester
 *
 * With -r 1 the responder has one receive posted at a time, so it must say RNR. With -u FILE the
 * requester has all letters done again and again until FILE is there, at least once.
 *
 * OPS are letters, done in this order with COUNT messages each:
 *
 *	w	WRITEs, each to a place of its own, and a SEND after them: whoever has the SEND has
 *	them all
 *	i	WRITEs with immediate: the immediate says which, in order
 *	s	SENDs
 *	r	READs of what the responder wrote there
 *	a	FetchAdds on one word: each must bring the number of those before it
 *
 * Content is a function of the round, the letter, the message's number and the place in it, so that
 * a message twice, a missing one and one in another's place are seen too. Queue pair numbers travel
 * over TCP. After each letter both sides meet there.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PORT  "18600"
#define DEPTH 64u
/* One PSN space for both; soft-RoCE gives neither side more. */
#define READS 16u

struct side {
	uint32_t qpn, psn, rkey;
	uint64_t va;
	union ibv_gid gid;
};

static uint32_t count = 64, size = 65536, depth = 16, receives = DEPTH, gid_index = 1, mtu = 1024;
static const char *device = "rxe0", *host, *until;
static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static uint8_t *buf;
static struct side me, peer;
static int sock;
static uint64_t wrong;
static uint32_t rounds;
static int seconds = 60;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "vcheck: %s: %s\n", what, errno ? strerror(errno) : "failed");
	exit(1);
}

/* Content */

static uint64_t word_of(char op, uint32_t n, uint32_t at)
{
	uint64_t x =
		((uint64_t)(uint8_t)op << 56) ^ ((uint64_t)rounds << 44) ^ ((uint64_t)n << 24) ^ at;

	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static void fill(uint8_t *to, char op, uint32_t n)
{
	for (uint32_t at = 0; at < size; at += 8) {
		uint64_t w = word_of(op, n, at);

		memcpy(to + at, &w, size - at < 8 ? size - at : 8);
	}
}

static void look(const uint8_t *at, char op, uint32_t n)
{
	for (uint32_t i = 0; i < size; i += 8) {
		uint64_t w = word_of(op, n, i);

		if (!memcmp(at + i, &w, size - i < 8 ? size - i : 8))
			continue;
		if (!wrong++)
			fprintf(stderr, "vcheck: %c: message %u is wrong from byte %u on\n", op, n,
				i);
		return;
	}
}

/* The other side */

static void put(const void *data, size_t len)
{
	if (write(sock, data, len) != (ssize_t)len)
		die("write to the other side");
}

static void get(void *data, size_t len)
{
	uint8_t *to = data;

	while (len) {
		ssize_t n = read(sock, to, len);

		if (n <= 0)
			die("read from the other side");
		to += n;
		len -= (size_t)n;
	}
}

static void meet(char word)
{
	char other;

	put(&word, 1);
	get(&other, 1);
	if (other != word) {
		fprintf(stderr, "vcheck: the other side says '%c' to '%c'\n", other, word);
		exit(1);
	}
}

static void connect_sides(void)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct addrinfo *ai;
	int one = 1, s;

	hints.ai_flags = host ? 0 : AI_PASSIVE;
	hints.ai_family = host ? AF_UNSPEC : AF_INET6; /* takes IPv4 as well */
	if (getaddrinfo(host, PORT, &hints, &ai))
		die("address");
	s = socket(ai->ai_family, SOCK_STREAM, 0);
	if (s < 0)
		die("socket");
	if (host) {
		if (connect(s, ai->ai_addr, ai->ai_addrlen))
			die(host);
		sock = s;
	} else {
		setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (bind(s, ai->ai_addr, ai->ai_addrlen) || listen(s, 1))
			die("listen");
		sock = accept(s, NULL, NULL);
		if (sock < 0)
			die("accept");
		close(s);
	}
	freeaddrinfo(ai);
}

/* The queue pair */

static void open_device(void)
{
	int n;
	struct ibv_device **list = ibv_get_device_list(&n);

	for (int i = 0; list && i < n; i++)
		if (!strcmp(ibv_get_device_name(list[i]), device))
			ctx = ibv_open_device(list[i]);
	if (!ctx)
		die(device);
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 4 * DEPTH, NULL, NULL, 0);
	buf = aligned_alloc(4096, ((size_t)count * size + 8191) & ~(size_t)4095);
	if (!pd || !cq || !buf)
		die("resources");
	mr = ibv_reg_mr(pd, buf, ((size_t)count * size + 8191) & ~(size_t)4095,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				IBV_ACCESS_REMOTE_ATOMIC);
	if (!mr)
		die("memory region");
}

static void make_qp(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	};

	qp = ibv_create_qp(pd, &init);
	if (!qp ||
	    ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		die("queue pair");
	if (ibv_query_gid(ctx, 1, (int)gid_index, &me.gid))
		die("gid");
	me.qpn = qp->qp_num;
	me.psn = (uint32_t)(word_of('p', (uint32_t)getpid(), (uint32_t)time(NULL)) & 0xffffff);
	me.rkey = mr->rkey;
	me.va = (uintptr_t)buf;
}

static void start_qp(void)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu == 4096	  ? IBV_MTU_4096
			    : mtu == 2048 ? IBV_MTU_2048
					  : IBV_MTU_1024,
		.dest_qp_num = peer.qpn,
		.rq_psn = peer.psn,
		.max_dest_rd_atomic = READS,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = peer.gid,
				    .sgid_index = (uint8_t)gid_index,
				    .hop_limit = 64}},
	};

	if (ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		die("queue pair to RTR");
	a.qp_state = IBV_QPS_RTS;
	a.sq_psn = me.psn;
	a.timeout = 17; /* 0.5 s */
	a.retry_cnt = 7;
	a.rnr_retry = 7;
	a.max_rd_atomic = READS;
	if (ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				  IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC))
		die("queue pair to RTS");
}

static uint8_t *place(uint32_t n)
{
	return buf + (size_t)n * size;
}

static void post_recv(uint32_t n)
{
	struct ibv_sge sge = {(uintptr_t)place(n), size, mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = n, .sg_list = &sge, .num_sge = 1}, *bad;

	errno = ibv_post_recv(qp, &wr, &bad);
	if (errno)
		die("post receive");
}

static void post(enum ibv_wr_opcode opcode, uint32_t n)
{
	struct ibv_sge sge = {(uintptr_t)place(n), size, mr->lkey};
	struct ibv_send_wr wr =
				   {
					   .wr_id = n,
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = opcode,
					   .send_flags = IBV_SEND_SIGNALED,
					   .imm_data = htonl(n),
				   },
			   *bad;

	wr.wr.rdma.remote_addr = peer.va + (uint64_t)n * size;
	wr.wr.rdma.rkey = peer.rkey;
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		sge.addr = (uintptr_t)buf + 8 * (n + 1);
		sge.length = 8;
		wr.wr.atomic.remote_addr = peer.va;
		wr.wr.atomic.rkey = peer.rkey;
		wr.wr.atomic.compare_add = 1;
	}
	errno = ibv_post_send(qp, &wr, &bad);
	if (errno)
		die("post send");
}

/* The next completion. Waits for @seconds at most. */
static struct ibv_wc next_completion(void)
{
	time_t end = time(NULL) + seconds;
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc))) {
		/* the driver needs the only processor */
		usleep(200);
		if (time(NULL) > end) {
			errno = ETIMEDOUT;
			die("completion");
		}
	}
	if (n < 0)
		die("poll");
	if (wc.status != IBV_WC_SUCCESS) {
		fprintf(stderr, "vcheck: completion of %u: %s\n", (unsigned int)wc.wr_id,
			ibv_wc_status_str(wc.status));
		exit(1);
	}
	return wc;
}

/* Post @total of them, @depth at a time; each must complete in its turn. */
static void requests(enum ibv_wr_opcode opcode, uint32_t total)
{
	uint32_t most =
		opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? READS : DEPTH;
	uint32_t posted = 0, done = 0;

	if (depth < most)
		most = depth;
	while (done < total) {
		while (posted < total && posted - done < most)
			post(opcode, posted++);
		if (next_completion().wr_id != done++) {
			errno = 0;
			die("order of completions");
		}
	}
}

/* SENDs or WRITEs with immediate arrive in their order. */
static void receive(char op, uint32_t total)
{
	for (uint32_t n = 0; n < total; n++) {
		struct ibv_wc wc = next_completion();

		if (wc.wr_id != n || (op == 'i' && ntohl(wc.imm_data) != n)) {
			errno = 0;
			die("order of messages");
		}
		if (op == 's' && wc.byte_len != size) {
			errno = 0;
			die("length of a message");
		}
		look(place(n), op, n);
		if (n + receives < total)
			post_recv(n + receives);
	}
}

static void look_at_counter(void)
{
	uint64_t v;

	memcpy(&v, buf, 8);
	if (v != count && !wrong++)
		fprintf(stderr, "vcheck: a: %llu FetchAdds were counted\n", (unsigned long long)v);
}

static void responder(char op)
{
	uint32_t total = op == 's' || op == 'i' ? count : 0;

	memset(buf, 0, (size_t)count * size);
	for (uint32_t n = 0; op == 'r' && n < count; n++)
		fill(place(n), op, n);
	if (op == 'w') {
		/* its place is beyond the WRITEs' */
		struct ibv_sge sge = {(uintptr_t)buf + (size_t)count * size, 8, mr->lkey};
		struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

		errno = ibv_post_recv(qp, &wr, &bad);
		if (errno)
			die("post receive");
	}
	for (uint32_t n = 0; n < total && n < receives; n++)
		post_recv(n);
	meet(op);
	if (op == 'w') {
		next_completion();
		for (uint32_t n = 0; n < count; n++)
			look(place(n), op, n);
	} else {
		receive(op, total);
	}
	meet('.');
	if (op == 'a')
		look_at_counter();
}

static void requester(char op)
{
	struct ibv_sge none = {(uintptr_t)buf, 8, mr->lkey};
	struct ibv_send_wr end = {.sg_list = &none,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	for (uint32_t n = 0; n < count; n++)
		fill(place(n), op, n);
	meet(op);
	switch (op) {
	case 'w':
		requests(IBV_WR_RDMA_WRITE, count);
		errno = ibv_post_send(qp, &end, &bad);
		if (errno)
			die("post send");
		next_completion();
		break;
	case 'i':
		requests(IBV_WR_RDMA_WRITE_WITH_IMM, count);
		break;
	case 's':
		requests(IBV_WR_SEND, count);
		break;
	case 'r':
		memset(buf, 0, (size_t)count * size);
		requests(IBV_WR_RDMA_READ, count);
		for (uint32_t n = 0; n < count; n++)
			look(place(n), op, n);
		break;
	case 'a':
		requests(IBV_WR_ATOMIC_FETCH_AND_ADD, count);
		for (uint32_t n = 0; n < count; n++) {
			uint64_t v;

			memcpy(&v, buf + 8 * (n + 1), 8);
			if (v != n && !wrong++)
				fprintf(stderr, "vcheck: a: FetchAdd %u brought %llu\n", n,
					(unsigned long long)v);
		}
		break;
	default:
		errno = EINVAL;
		die("OPS");
	}
	meet('.');
}

/* The requester decides whether there is another round. */
static bool again(void)
{
	char word = until && access(until, F_OK) ? 'g' : 'e';

	if (host)
		put(&word, 1);
	else
		get(&word, 1);
	return word == 'g';
}

int main(int argc, char **argv)
{
	const char *ops;
	char other;
	int o;

	while ((o = getopt(argc, argv, "n:s:q:r:x:m:d:t:u:")) != -1) {
		switch (o) {
		case 'n':
			count = (uint32_t)atoi(optarg);
			break;
		case 's':
			size = (uint32_t)atoi(optarg);
			break;
		case 'q':
			depth = (uint32_t)atoi(optarg);
			break;
		case 'r':
			receives = (uint32_t)atoi(optarg);
			break;
		case 'x':
			gid_index = (uint32_t)atoi(optarg);
			break;
		case 'm':
			mtu = (uint32_t)atoi(optarg);
			break;
		case 'd':
			device = optarg;
			break;
		case 't':
			seconds = atoi(optarg);
			break;
		case 'u':
			until = optarg;
			break;
		default:
			optind = argc + 1;
		}
	}
	if (optind + 1 > argc || optind + 2 < argc || !count || size < 16 || !depth || !receives ||
	    receives > DEPTH) {
		fprintf(stderr,
			"usage: vcheck [-n COUNT] [-s SIZE] [-q OUTSTANDING] [-r RECEIVES] [-x "
			"GID-INDEX] [-m PATH-MTU] [-d DEVICE] [-t SECONDS] [-u FILE] OPS "
			"[ADDRESS]\n");
		return 2;
	}
	ops = argv[optind];
	host = argv[optind + 1];
	open_device();
	make_qp();
	connect_sides();
	put(&me, sizeof(me));
	get(&peer, sizeof(peer));
	start_qp();
	meet('+');
	do {
		for (const char *op = ops; *op; op++) {
			if (host)
				requester(*op);
			else
				responder(*op);
		}
		rounds++;
	} while (again());
	/* each says how it judges; both must agree that all was right */
	other = wrong ? 'n' : 'y';
	put(&other, 1);
	get(&other, 1);
	ibv_destroy_qp(qp);
	if (wrong || other != 'y') {
		fprintf(stderr, "vcheck: %llu wrong here, the other side %s\n",
			(unsigned long long)wrong, other == 'y' ? "has none" : "has some");
		return 1;
	}
	printf("vcheck: %s: %u messages of %u bytes each, rounds: %u, all right\n", ops, count,
	       size, rounds);
	return 0;
}
