// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * An RC endpoint in real time on one interface: the host model behind a packet socket. Two of them,
 * started with the same options but for --listen and swapped --ip/--peer-ip, need no other channel:
 * QPNs, PSNs and seeds follow from the options. One JSON line at the end tells what happened on
 * this side; SIGUSR1 gets what has happened so far, on stderr; after SIGUSR2 nothing more is
 * posted, and the endpoint ends when what is queued has completed.
 *
 * A test must not guess how long an endpoint takes: if both sides post, they end on a signal, which
 * the test sends after each has printed "all done" on stderr.
 *
 * The loop drains the receive ring, lets the host send, hands the batch to the kernel with one
 * system call, and sleeps in ppoll() until a frame or a deadline comes. It never spins.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/lab/model/cm_emit.h"
#include "cli/wanem/pkt_ring.h"
#include "cli/wanem/prng.h"
#include "tests/lab/model/rc_host.h"
#include "wire/bytes.h"
#include "wire/icrc.h"

#define SECOND	    1000000000ull
#define RX_BATCH    128
#define TX_BATCH    256
/* Fifteen tries: a peer may have to wait for a processor. */
#define CM_INTERVAL SECOND
#define DREQ_WAIT   (10 * SECOND)
/* --op flags: rounds that may be under way, and bytes of a credit. */
#define ROUNDS	    4u
#define CREDIT	    64u
/* The histogram of latencies: so many steps for each doubling, from 1 ns on. */
#define LAT_STEPS   32u
#define LAT_BINS    (64u * LAT_STEPS)

static const char *const ops_words[] = {"send", "write", "read", "atomic", "mix", "flags", NULL};
static const char *const personality_words[] = {"strict", "permissive", NULL};
static const char *const resend_words[] = {"timeout", "reads", "all", NULL};

enum op { OP_MODE_SEND, OP_MODE_WRITE, OP_MODE_READ, OP_MODE_ATOMIC, OP_MODE_MIX, OP_MODE_FLAGS };

static struct options {
	const char *ifname;
	struct ip_addr ip, peer_ip;
	uint8_t peer_mac[6];
	bool listen, bidir, cm, nvme, verify, no_verify, credits, visible, help;
	enum rc_personality personality;
	uint32_t qpn, peer_qpn, psn, peer_psn, psn_step, qps, mtu, size, depth, max_rd, vlan, tos;
	enum op op;
	uint64_t count, bytes, region, expect, seed, rate_mbps, linger_ms, recv_interval_us;
	double seconds, idle, rnr_p, start_timeout;
	uint32_t timeout_exp, retry, rnr_retry, recv_depth, ack_coalesce;
	enum rc_resend resend;
} opt = {.peer_mac = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	 .qps = 1,
	 .mtu = 1024,
	 .size = 65536,
	 .depth = 16,
	 .max_rd = 16,
	 .vlan = FRAME_VLAN_NONE,
	 .op = OP_MODE_WRITE,
	 .seed = 1,
	 .linger_ms = 300,
	 .timeout_exp = 14,
	 .retry = 7,
	 .rnr_retry = 7,
	 .recv_depth = 128,
	 .start_timeout = 60,
	 .qpn = 0x100,
	 .psn_step = 1000,
	 .peer_qpn = 0x100};

/**
 * struct flow - one queue pair.
 * @posted: requests, of @limit
 * @flags: received (--op flags)
 */
struct flow {
	struct rc_qp_config cfg;
	struct rc_qp *qp;
	struct rc_cm cm;
	uint64_t posted, limit, flags;
};

static struct endpoint {
	struct pkt_ring *ring;
	struct rc_host *host;
	struct flow *flows;
	struct prng prng;
	uint64_t rx_tos[256];
	uint64_t now, started, first_at, last_at, rx_at, stop_posting_at;
	uint64_t completed, errors, bytes, messages, rx_messages, rx_bytes, lat_sum, lat_max;
	uint32_t lat_bin[LAT_BINS];
	uint64_t gap_max; /* longest time from one completion to the next */
	uint64_t gap;	  /* the same since what was told last */
	enum rc_status first_error;
	uint64_t not_intact, credits, granted;
	bool said_done;
} ep;

static volatile sig_atomic_t stop, asked, enough;

static void on_signal(int sig)
{
	if (sig == SIGUSR1)
		asked = 1;
	else if (sig == SIGUSR2)
		enough = 1;
	else
		stop = 1;
}

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

/* Requests */

static bool is_requester(void)
{
	return !opt.listen || opt.bidir;
}

/* One half of a memory region is written, the other one read: request by request from its start to
 * its end, and again. */
static uint64_t half_region(void)
{
	uint64_t least = (uint64_t)opt.depth * opt.size;

	return opt.region > least ? opt.region : least;
}

/* --op flags: rounds in which a flag has come on each queue pair. */
static uint64_t rounds(void)
{
	uint64_t n = UINT64_MAX;

	for (uint32_t i = 0; i < opt.qps; i++)
		n = ep.flows[i].flags < n ? ep.flows[i].flags : n;
	return n;
}

/* As in a ring of two: what is sent in a round depends on what came in the one before. */
static bool may_post(const struct flow *f)
{
	uint64_t round = f->posted / 2;

	return opt.op != OP_MODE_FLAGS || (round <= rounds() && round < ep.credits + ROUNDS);
}

static void give_credits(void)
{
	struct flow *f = &ep.flows[0];
	struct rc_wr wr = {
		.op = RC_WRITE, .length = CREDIT, .va = f->cfg.rmr_va + f->cfg.rmr_size - CREDIT};

	while (opt.op == OP_MODE_FLAGS && f->qp && ep.granted < rounds()) {
		if (rc_post(f->qp, ep.now, &wr))
			return;
		ep.granted++;
	}
}

static struct rc_wr next_request(const struct flow *f)
{
	static const enum rc_op fixed[] = {RC_SEND, RC_WRITE, RC_READ, RC_FETCH_ADD};
	uint64_t slot = f->posted % (half_region() / opt.size) * opt.size;
	struct rc_wr wr = {.wr_id = f->posted, .length = opt.size, .va = f->cfg.rmr_va};

	if (opt.op == OP_MODE_MIX) {
		wr.op = (enum rc_op)prng_below(&ep.prng, RC_OPS);
		wr.length = prng_below(&ep.prng, opt.size + 1);
	} else if (opt.op == OP_MODE_FLAGS) {
		wr.op = f->posted % 2 ? RC_WRITE_IMM : RC_WRITE;
		wr.length = f->posted % 2 ? 0 : opt.size;
	} else {
		wr.op = fixed[opt.op];
	}
	wr.imm = (uint32_t)(opt.op == OP_MODE_FLAGS ? f->posted / 2 : f->posted);
	switch (wr.op) {
	case RC_WRITE:
	case RC_WRITE_IMM:
		wr.va += slot;
		break;
	case RC_READ: /* from the half that is never written */
		wr.va += f->cfg.rmr_size / 2 + slot;
		break;
	case RC_CMP_SWAP:
	case RC_FETCH_ADD:
		wr.va += f->cfg.rmr_size - 64;
		wr.swap_add = wr.compare = f->posted + 1;
		break;
	default:
		break;
	}
	return wr;
}

static void post_more(struct flow *f)
{
	/* The passive side knows that its peer is there only when it gets a frame. */
	if (opt.listen && !ep.rx_at)
		return;
	give_credits();
	while (f->qp && f->posted < f->limit && rc_qp_room(f->qp) && may_post(f) &&
	       ep.now < ep.stop_posting_at && !stop) {
		struct rc_wr wr = next_request(f);

		if (rc_post(f->qp, ep.now, &wr))
			break;
		if (!ep.first_at)
			ep.first_at = ep.now;
		f->posted++;
	}
}

static unsigned int lat_bin(uint64_t ns)
{
	unsigned int log = 63 - (unsigned int)__builtin_clzll(ns | LAT_STEPS);

	return log * LAT_STEPS + (unsigned int)((ns | LAT_STEPS) >> (log - 5)) % LAT_STEPS;
}

/* The latency in us that @share of the completed requests did not exceed, to within a 32nd. */
static double lat_quantile(double share)
{
	uint64_t want = (uint64_t)(share * (double)ep.completed), seen = 0;

	for (unsigned int i = 0; i < LAT_BINS; i++) {
		seen += ep.lat_bin[i];
		if (seen > want)
			return (double)((LAT_STEPS + 1ull + i % LAT_STEPS) << (i / LAT_STEPS - 5)) /
			       1e3;
	}
	return (double)ep.lat_max / 1e3;
}

static void on_complete(void *ctx, struct rc_qp *qp, const struct rc_completion *c)
{
	uint64_t lat = c->completed_at - c->posted_at;

	(void)ctx;
	if (c->status == RC_OK) {
		ep.completed++;
		ep.bytes += c->length;
		if (ep.completed > 1 && ep.now - ep.last_at > ep.gap)
			ep.gap = ep.now - ep.last_at;
		if (ep.gap > ep.gap_max)
			ep.gap_max = ep.gap;
		ep.last_at = ep.now;
		ep.lat_sum += lat;
		ep.lat_max = lat > ep.lat_max ? lat : ep.lat_max;
		ep.lat_bin[lat_bin(lat)]++;
	} else {
		if (!ep.errors++)
			ep.first_error = c->status;
	}
	ep.not_intact += !c->intact;
	post_more(rc_qp_user(qp));
}

/* A flag is that of its round, so what it tells of is there; or a credit has come. */
static void on_flag(struct flow *f, const struct rc_message *m)
{
	if (m->has_imm)
		ep.not_intact += m->imm != f->flags++;
	else if (m->length == CREDIT)
		ep.credits++;
	else
		return;
	for (uint32_t i = 0; i < opt.qps; i++)
		post_more(&ep.flows[i]);
}

static void on_receive(void *ctx, struct rc_qp *qp, const struct rc_message *m)
{
	(void)ctx;
	ep.rx_messages++;
	ep.rx_bytes += m->length;
	ep.not_intact += !m->intact;
	if (!ep.first_at)
		ep.first_at = ep.now;
	ep.last_at = ep.now;
	if (opt.op == OP_MODE_FLAGS)
		on_flag(rc_qp_user(qp), m);
}

static uint8_t *get_buf(void *ctx)
{
	(void)ctx;
	return pkt_ring_buf(ep.ring);
}

/* The IP header of a frame of UDP, NULL: none. (When the other end is gone, its kernel may refuse
 * what still comes by ICMP.) */
static uint8_t *ip_of(uint8_t *data, uint32_t len)
{
	uint8_t *ip = data + (len > 18 && get_be16(data + 12) == 0x8100 ? 18 : 14);

	if (len < 38 || (len < 60 && *ip >> 4 != 4))
		return NULL;
	return ip[*ip >> 4 == 4 ? 9 : 6] == IPPROTO_UDP ? ip : NULL;
}

static uint8_t tos_of(const uint8_t *ip)
{
	return *ip >> 4 == 4 ? ip[1] : (uint8_t)(get_be16(ip) >> 4);
}

static void set_tos(uint8_t *ip)
{
	if (*ip >> 4 != 4) {
		put_be16(ip, (uint16_t)((get_be16(ip) & 0xf00f) | opt.tos << 4));
		return;
	}
	ip[1] = (uint8_t)opt.tos;
	put_be16(ip + 10, 0);
	put_be16(ip + 10, ip4_csum(ip));
}

static void send_buf(void *ctx, uint8_t *buf, uint32_t len)
{
	uint8_t *ip = opt.tos ? ip_of(buf, len) : NULL;

	(void)ctx;
	if (ip)
		set_tos(ip);
	pkt_ring_queue(ep.ring, len);
}

/* Set-up */

static void configure(struct flow *f, uint32_t i)
{
	struct rc_qp_config *c = &f->cfg;
	uint64_t half = half_region();
	uint64_t own = splitmix64(opt.seed * 2 + opt.listen) + i,
		 peer = splitmix64(opt.seed * 2 + !opt.listen) + i;

	rc_qp_defaults(c, opt.personality);
	c->lqpn = (opt.qpn + i) & 0xffffff;
	c->rqpn = (opt.peer_qpn + i) & 0xffffff;
	c->sq_psn = (opt.psn + i * opt.psn_step) & 0xffffff;
	c->rq_psn = (opt.peer_psn + i * opt.psn_step) & 0xffffff;
	c->mtu = opt.mtu;
	memcpy(c->smac, pkt_ring_mac(ep.ring), 6);
	memcpy(c->dmac, opt.peer_mac, 6);
	c->vlan = (uint16_t)opt.vlan;
	c->sport = (uint16_t)(0xc000 | (opt.qpn * 7 + opt.peer_qpn * 7 + i));
	c->src = opt.ip;
	c->dst = opt.peer_ip;
	c->depth = 1;
	while (c->depth < opt.depth)
		c->depth *= 2;
	c->max_rd = c->resp_rd = opt.max_rd;
	c->timeout_exp = (uint8_t)opt.timeout_exp;
	c->retry_cnt = (uint8_t)opt.retry;
	c->rnr_retry = (uint8_t)opt.rnr_retry;
	c->resend = opt.resend;
	c->recv_auto = !opt.recv_interval_us;
	c->recv_depth = opt.recv_depth;
	c->recv_interval = opt.recv_interval_us * 1000;
	c->rnr_p = opt.rnr_p;
	c->credits = c->honor_credits = opt.credits;
	c->ack_coalesce = opt.ack_coalesce;
	c->ack_delay = opt.ack_coalesce > 1 ? 50000 : 0;
	c->mr_size = c->rmr_size = 2 * half + 4096;
	c->tx_seed = own;
	c->rx_seed = peer;
	c->mr_seed = own ^ 1;
	c->rmr_seed = peer ^ 1;
	c->shadow = opt.op == OP_MODE_ATOMIC || opt.op == OP_MODE_MIX;
	c->no_verify = opt.no_verify;
	c->journal = 64;
	f->limit = opt.count ? opt.count / opt.qps + (i < opt.count % opt.qps) : UINT64_MAX;
	if (!is_requester())
		f->limit = 0;
}

static void bring_up(struct flow *f)
{
	f->qp = rc_qp_create(ep.host, &f->cfg, f);
	if (!f->qp) {
		fprintf(stderr, "endpoint: cannot make queue pair 0x%x\n", f->cfg.lqpn);
		exit(1);
	}
	post_more(f);
}

/* The kernel would answer RoCE to its own address with ICMP port unreachable. A socket that takes
 * nothing keeps it quiet. */
static int hush(void)
{
	struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog prog = {.len = 1, .filter = &drop};
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(ROCE_UDP_PORT)};
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&any, sizeof(any)) < 0)
		fprintf(stderr, "endpoint: UDP 4791 is taken (%s); the kernel may answer for us\n",
			strerror(errno));
	return fd;
}

/* CM */

static bool cm_frame(const struct pkt_ring_frame *in)
{
	struct frame f;

	if (frame_parse(in->data, in->len, &f) != FRAME_OK || f.opcode != OP_UD_SEND_ONLY)
		return false;
	/* First those that know the peer's id; an idle one takes a new REQ. */
	for (int idle = 0; idle < 2; idle++)
		for (uint32_t i = 0; i < opt.qps; i++)
			if ((ep.flows[i].cm.state == RC_CM_IDLE) == idle &&
			    rc_cm_rx(&ep.flows[i].cm, ep.now, &f))
				return true;
	return true;
}

static void cm_turn(void)
{
	for (uint32_t i = 0; i < opt.qps; i++) {
		struct flow *f = &ep.flows[i];
		uint8_t *buf;
		uint32_t len;

		if (!f->qp && (f->cm.state == RC_CM_UP || f->cm.state == RC_CM_REP_SENT))
			bring_up(f);
		if (f->cm.state == RC_CM_FAILED) {
			fprintf(stderr, "endpoint: no connection for queue pair 0x%x\n",
				f->cfg.lqpn);
			stop = 1;
		}
		if (rc_cm_next(&f->cm) > ep.now || !(buf = pkt_ring_buf(ep.ring)))
			continue;
		len = rc_cm_poll(&f->cm, ep.now, buf);
		if (len)
			pkt_ring_queue(ep.ring, len);
	}
}

/* The loop */

static bool requests_done(void)
{
	for (uint32_t i = 0; i < opt.qps; i++) {
		const struct flow *f = &ep.flows[i];

		if (!f->qp) {
			if (f->limit)
				return false;
			continue;
		}
		if (rc_qp_queued(f->qp))
			return false;
		if (f->posted < f->limit && ep.now < ep.stop_posting_at && !rc_qp_in_error(f->qp))
			return false;
	}
	return true;
}

/* The test waits for this line before it ends the endpoint. */
static void say_done(void)
{
	if (!ep.said_done && (opt.listen || opt.bidir))
		fprintf(stderr, "endpoint: all done\n");
	ep.said_done = true;
}

static bool finished(void)
{
	uint64_t quiet = ep.now - (ep.rx_at ? ep.rx_at : ep.started);

	if (stop)
		return true;
	if (ep.errors && requests_done())
		return true;
	if (!ep.rx_at)
		return quiet > (uint64_t)(opt.start_timeout * 1e9);
	if (opt.idle > 0 && quiet > (uint64_t)(opt.idle * 1e9))
		return true;
	if (opt.listen && !opt.expect && !opt.bidir)
		return false; /* until idle or told to */
	if (!requests_done() || ep.rx_messages < opt.expect)
		return false;
	say_done();
	/* A last acknowledgement may have been lost: stay a little for the peer's retry. */
	return (opt.listen || opt.bidir) ? quiet > opt.linger_ms * 1000000 : true;
}

static uint64_t next_deadline(void)
{
	uint64_t at = rc_host_next(ep.host);

	if (opt.cm) {
		for (uint32_t i = 0; i < opt.qps; i++) {
			uint64_t c = rc_cm_next(&ep.flows[i].cm);

			at = c < at ? c : at;
		}
	}
	return at;
}

static void wait_for_work(bool tx_full)
{
	struct pollfd p = {.fd = pkt_ring_fd(ep.ring),
			   .events = (short)(POLLIN | (tx_full ? POLLOUT : 0))};
	uint64_t at = next_deadline(), most = ep.now + SECOND / 20;
	struct timespec ts;

	at = at < most ? at : most;
	if (at <= ep.now)
		return;
	ts.tv_sec = (time_t)((at - ep.now) / SECOND);
	ts.tv_nsec = (long)((at - ep.now) % SECOND);
	ppoll(&p, 1, &ts, NULL);
}

static void receive(void)
{
	bool first = !ep.rx_at;
	struct pkt_ring_frame f;

	for (int i = 0; i < RX_BATCH && pkt_ring_next(ep.ring, &f); i++) {
		uint8_t *ip = ip_of(f.data, f.len);

		ep.rx_at = ep.now;
		if (ip)
			ep.rx_tos[tos_of(ip)]++;
		if (!opt.cm || !cm_frame(&f))
			rc_host_rx(ep.host, ep.now, f.data, f.len);
		pkt_ring_release(ep.ring);
	}
	for (uint32_t i = 0; first && ep.rx_at && i < opt.qps; i++)
		post_more(&ep.flows[i]);
}

static void report(FILE *out)
{
	struct rc_stats s = rc_host_totals(ep.host);
	const struct rc_host_stats *h = rc_host_stats(ep.host);
	double sec = ep.last_at > ep.first_at ? (double)(ep.last_at - ep.first_at) / 1e9 : 0;
	uint64_t bytes = ep.bytes + ep.rx_bytes;

	fprintf(out,
		"{\"role\":\"%s\",\"op\":\"%s\",\"messages\":%" PRIu64 ",\"bytes\":%" PRIu64
		",\"rx-messages\":%" PRIu64 ",\"rx-bytes\":%" PRIu64 ",\"first-ns\":%" PRIu64
		",\"last-ns\":%" PRIu64
		",\"seconds\":%.6f,\"MBps\":%.3f,\"latency-us\":%.1f,\"latency-p50-us\":%.1f,"
		"\"latency-p99-us\":%.1f,\"latency-max-us\":%.1f,\"gap-max-ms\":%.1f,\"gap-ms\":%."
		"1f,",
		opt.listen ? "listen" : "client", ops_words[opt.op], ep.completed, ep.bytes,
		ep.rx_messages, ep.rx_bytes, ep.first_at, ep.last_at, sec,
		sec > 0 ? (double)bytes / sec / 1e6 : 0,
		ep.completed ? (double)ep.lat_sum / (double)ep.completed / 1e3 : 0,
		lat_quantile(0.5), lat_quantile(0.99), (double)ep.lat_max / 1e3,
		(double)ep.gap_max / 1e6, (double)ep.gap / 1e6);
	ep.gap = 0;
	fprintf(out,
		"\"retransmits\":%" PRIu64 ",\"timeouts\":%" PRIu64 ",\"hw-resends\":%" PRIu64
		",\"seq-naks\":%" PRIu64 ",\"rnr\":%" PRIu64 ",\"naks-sent\":%" PRIu64
		",\"rnr-sent\":%" PRIu64 ",\"fatal-naks-sent\":%" PRIu64 ",\"duplicates\":%" PRIu64
		",\"read-packets-sent\":%" PRIu64 ",",
		s.retransmits, s.timeouts, s.hw_resends, s.rx_seq_naks, s.rx_rnr, s.tx_seq_naks,
		s.tx_rnr, s.tx_fatal_naks, s.duplicates, s.tx_read_packets);
	fprintf(out,
		"\"bad-icrc\":%" PRIu64 ",\"malformed\":%" PRIu64 ",\"no-qp\":%" PRIu64
		",\"cnp\":%" PRIu64 ",\"ring-drops\":%" PRIu64 ",\"tx-frames\":%" PRIu64
		",\"rx-frames\":%" PRIu64 ",",
		h->rx_bad_icrc, h->rx_malformed, h->rx_no_qp, h->rx_cnp, pkt_ring_dropped(ep.ring),
		h->tx_frames, h->rx_frames);
	fprintf(out, "\"rx-tos\":{");
	for (unsigned int i = 0, n = 0; i < 256; i++)
		if (ep.rx_tos[i])
			fprintf(out, "%s\"%u\":%" PRIu64, n++ ? "," : "", i, ep.rx_tos[i]);
	fprintf(out, "},\"errors\":%" PRIu64 ",\"first-error\":\"%s\",\"intact\":%s}\n", ep.errors,
		rc_status_name(ep.first_error), ep.not_intact ? "false" : "true");
	fflush(out);
}

static void run(void)
{
	while (!finished()) {
		bool tx_full;

		if (asked) {
			asked = 0;
			report(stderr);
		}
		ep.now = clock_ns();
		if (enough && ep.now < ep.stop_posting_at)
			ep.stop_posting_at = ep.now;
		receive();
		if (opt.cm)
			cm_turn();
		rc_host_poll(ep.host, ep.now, TX_BATCH);
		pkt_ring_flush(ep.ring);
		tx_full = !pkt_ring_buf(ep.ring);
		ep.now = clock_ns();
		wait_for_work(tx_full);
	}
	if (opt.cm && !opt.listen) {
		for (uint32_t i = 0; i < opt.qps; i++)
			rc_cm_disconnect(&ep.flows[i].cm);
		for (uint64_t end = clock_ns() + DREQ_WAIT; clock_ns() < end;) {
			bool down = true;

			ep.now = clock_ns();
			receive();
			cm_turn();
			pkt_ring_flush(ep.ring);
			for (uint32_t i = 0; i < opt.qps; i++)
				down = down && ep.flows[i].cm.state >= RC_CM_DOWN;
			if (down)
				break;
			wait_for_work(false);
		}
	}
}

/* Options */

static const char help[] =
	"usage: endpoint --if IF --ip A --peer-ip B [option ...]\n"
	"  --listen                    passive side (default: active, posts requests)\n"
	"  --bidir                     both sides post requests\n"
	"  --peer-mac M                (broadcast)          --vlan V --tos N (0: DSCP and ECN)\n"
	"  --qpn N --peer-qpn N        (0x100)              --psn P --peer-psn P  (0)\n"
	"  --psn-step N                from one queue pair to the next (1000)\n"
	"  --qps K                     QPNs count up from --qpn\n"
	"  --mtu N                     path MTU (1024)      --size BYTES[K|M] (64K)  --depth N "
	"(16)\n"
	"  --op send|write|read|atomic|mix|flags            --max-rd N (16)\n"
	"                              flags: in rounds, on each queue pair a WRITE and behind it "
	"a\n"
	"                              WRITE with immediate of 0 bytes; credits come back by "
	"WRITE\n"
	"  --region BYTES              memory that WRITEs and READs walk through (depth x size)\n"
	"  --count N | --bytes N | --seconds S              requester: when to end\n"
	"  --expect-messages N, --idle-seconds S, --linger-ms N (300), --start-seconds S (60)\n"
	"  --personality strict|permissive                  --resend timeout|reads|all\n"
	"  --timeout-exp N (14) --retry N (7; up to 255) --rnr-retry N (7)\n"
	"  --rnr-p P --recv-interval-us N --recv-depth N    receiver not ready\n"
	"  --credits --ack-coalesce N --rate-mbps N --seed N --no-verify\n"
	"  --visible             captures on the interface see what is sent, too; slower\n"
	"  --cm                        make the connections through the connection manager\n"
	"  --nvme                      ... and say that they speak NVMe over RDMA\n"
	"Give both sides the same --op, --size, --depth, --region, --mtu, --qps and --seed.\n";

enum kind { FLAG, TEXT, U32, U64, DECIMAL, CHOICE, IP, MAC };

/* One row per option; @where is in @opt. */
static const struct row {
	const char *name;
	enum kind kind;
	void *where;
	const char *const *words;
} rows[] = {
	{"if", TEXT, &opt.ifname, NULL},
	{"ip", IP, &opt.ip, NULL},
	{"peer-ip", IP, &opt.peer_ip, NULL},
	{"peer-mac", MAC, opt.peer_mac, NULL},
	{"vlan", U32, &opt.vlan, NULL},
	{"tos", U32, &opt.tos, NULL},
	{"qpn", U32, &opt.qpn, NULL},
	{"peer-qpn", U32, &opt.peer_qpn, NULL},
	{"psn", U32, &opt.psn, NULL},
	{"peer-psn", U32, &opt.peer_psn, NULL},
	{"psn-step", U32, &opt.psn_step, NULL},
	{"qps", U32, &opt.qps, NULL},
	{"mtu", U32, &opt.mtu, NULL},
	{"size", U32, &opt.size, NULL},
	{"depth", U32, &opt.depth, NULL},
	{"op", CHOICE, &opt.op, ops_words},
	{"max-rd", U32, &opt.max_rd, NULL},
	{"count", U64, &opt.count, NULL},
	{"bytes", U64, &opt.bytes, NULL},
	{"region", U64, &opt.region, NULL},
	{"seconds", DECIMAL, &opt.seconds, NULL},
	{"expect-messages", U64, &opt.expect, NULL},
	{"idle-seconds", DECIMAL, &opt.idle, NULL},
	{"linger-ms", U64, &opt.linger_ms, NULL},
	{"start-seconds", DECIMAL, &opt.start_timeout, NULL},
	{"personality", CHOICE, &opt.personality, personality_words},
	{"resend", CHOICE, &opt.resend, resend_words},
	{"timeout-exp", U32, &opt.timeout_exp, NULL},
	{"retry", U32, &opt.retry, NULL},
	{"rnr-retry", U32, &opt.rnr_retry, NULL},
	{"rnr-p", DECIMAL, &opt.rnr_p, NULL},
	{"recv-interval-us", U64, &opt.recv_interval_us, NULL},
	{"recv-depth", U32, &opt.recv_depth, NULL},
	{"ack-coalesce", U32, &opt.ack_coalesce, NULL},
	{"rate-mbps", U64, &opt.rate_mbps, NULL},
	{"seed", U64, &opt.seed, NULL},
	{"listen", FLAG, &opt.listen, NULL},
	{"bidir", FLAG, &opt.bidir, NULL},
	{"cm", FLAG, &opt.cm, NULL},
	{"nvme", FLAG, &opt.nvme, NULL},
	{"credits", FLAG, &opt.credits, NULL},
	{"verify", FLAG, &opt.verify, NULL},
	{"no-verify", FLAG, &opt.no_verify, NULL},
	{"visible", FLAG, &opt.visible, NULL},
	{"help", FLAG, &opt.help, NULL},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static bool parse_number(const char *text, uint64_t *v)
{
	char *end;

	*v = strtoull(text, &end, 0);
	if (end == text)
		return false;
	if (*end && strchr("KMG", *end)) {
		*v <<= *end == 'K' ? 10 : *end == 'M' ? 20 : 30;
		end++;
	}
	return !*end;
}

static bool parse_choice(const struct row *r, const char *text)
{
	for (int i = 0; r->words[i]; i++) {
		if (!strcmp(text, r->words[i])) {
			*(int *)r->where = i;
			return true;
		}
	}
	return false;
}

static bool parse_value(const struct row *r, const char *text)
{
	uint8_t *m = r->where;
	uint64_t v;
	char *end;

	switch (r->kind) {
	case FLAG:
		*(bool *)r->where = true;
		return true;
	case U32:
		if (!parse_number(text, &v) || v > UINT32_MAX)
			return false;
		*(uint32_t *)r->where = (uint32_t)v;
		return true;
	case U64:
		return parse_number(text, r->where);
	case DECIMAL:
		*(double *)r->where = strtod(text, &end);
		return end != text && !*end && *(double *)r->where >= 0;
	case TEXT:
		*(const char **)r->where = text;
		return true;
	case CHOICE:
		return parse_choice(r, text);
	case IP:
		return !ip_addr_parse(text, r->where);
	case MAC:
		return sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", m, m + 1, m + 2, m + 3, m + 4,
			      m + 5) == 6;
	}
	return false;
}

static void parse_options(int argc, char **argv)
{
	static const struct ip_addr none;
	struct option longs[ROWS + 1] = {0};
	int o, which = 0;

	for (size_t i = 0; i < ROWS; i++)
		longs[i] = (struct option){rows[i].name, rows[i].kind != FLAG, NULL, 1};
	while ((o = getopt_long(argc, argv, "", longs, &which)) != -1) {
		if (o != 1) {
			fputs(help, stderr);
			exit(2);
		}
		if (!parse_value(&rows[which], optarg)) {
			fprintf(stderr, "endpoint: --%s: bad value '%s'\n", rows[which].name,
				optarg);
			exit(2);
		}
	}
	if (opt.help) {
		fputs(help, stdout);
		exit(0);
	}
	if (!opt.ifname || !memcmp(&opt.ip, &none, sizeof(none)) ||
	    !memcmp(&opt.peer_ip, &none, sizeof(none)) || optind != argc || !opt.qps ||
	    !opt.depth || !opt.size) {
		fputs(help, stderr);
		exit(2);
	}
	if (opt.bytes)
		opt.count = (opt.bytes + opt.size - 1) / opt.size;
	if (is_requester() && !opt.count && !(opt.seconds > 0)) {
		fprintf(stderr, "endpoint: how long? --count, --bytes or --seconds\n");
		exit(2);
	}
}

int main(int argc, char **argv)
{
	static const struct rc_host_ops ops = {
		.tx_buf = get_buf, .tx = send_buf, .complete = on_complete, .receive = on_receive};
	struct rc_host_config host = {0};

	parse_options(argc, argv);
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	signal(SIGUSR1, on_signal);
	signal(SIGUSR2, on_signal);
	prctl(PR_SET_TIMERSLACK, 1000UL);
	ep.ring = pkt_ring_open(opt.ifname, 4096, 1024, false, PKT_RING_FRAME_MAX);
	if (!ep.ring || (opt.visible && pkt_ring_visible(ep.ring) < 0) || hush() < 0)
		return 1;
	host.link_bps = opt.rate_mbps * 1000000;
	host.qps_max = opt.qps;
	host.seed = opt.seed;
	ep.host = rc_host_create(&host, &ops, NULL);
	ep.flows = calloc(opt.qps, sizeof(*ep.flows));
	if (!ep.host || !ep.flows)
		return 1;
	prng_init(&ep.prng, opt.seed + opt.listen);
	ep.now = ep.started = clock_ns();
	ep.stop_posting_at = opt.seconds > 0 ? ep.now + (uint64_t)(opt.seconds * 1e9) : UINT64_MAX;
	for (uint32_t i = 0; i < opt.qps; i++) {
		struct flow *f = &ep.flows[i];

		configure(f, i);
		if (!opt.cm)
			bring_up(f);
		else if (opt.listen)
			rc_cm_listen(&f->cm, &f->cfg, opt.qpn * 1000 + i + 1, CM_INTERVAL);
		else
			rc_cm_connect(&f->cm, &f->cfg, opt.qpn * 2000 + i + 1, CM_INTERVAL);
		f->cm.out.storage = opt.nvme ? STORAGE_NVME : STORAGE_UNKNOWN;
	}
	run();
	report(stdout);
	fflush(stdout);
	rc_host_destroy(ep.host);
	free(ep.flows);
	pkt_ring_close(ep.ring);
	return ep.errors || ep.not_intact ? 3 : 0;
}
