// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * longhaul-probe: what RDMA between two hosts does, looked at from the hosts.
 *
 * For each operation, size and depth messages are posted for a while, and every byte is looked at
 * where it arrives. The rate is that of delivery: the clock stops when a word has come back that
 * the other side sends when it has everything, less the round trip of such a word.
 *
 * Bare hosts cannot have more than DEPTH messages under way in a round trip; that is said beside
 * what was reached. What is faster than that, or completes in less than half a round trip, was
 * answered by somebody nearer than the far host.
 */
#include <err.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/probe/link.h"
#include "version.h"

#define LIST	  8
#define PINGS	  12
#define SLOTS_MAX 256u

struct options {
	const char *host, *port, *listen;
	uint32_t size[LIST], depth[LIST];
	unsigned int nsizes, ndepths, ops;
	double seconds;
	bool json, once;
};

/** struct row - @latency: ns from post to completion, mean; @first: least. */
struct row {
	enum op op;
	uint32_t size, depth;
	uint64_t count, wrong;
	double ns, latency, least;
};

static const char *const op_names[OPS] = {"write", "send", "read"};

static int complain(const char *text)
{
	warnx("%s", text);
	return 1;
}

static int ask(struct probe_link *l, struct word_msg *w, char *err, size_t len)
{
	if (link_say(l, w)) {
		snprintf(err, len, "nothing can be sent");
		return -1;
	}
	return link_wait(l, w->word, w, err, len);
}

/* The least round trip of a word, ns. */
static int round_trip(struct probe_link *l, double *rtt, char *err, size_t len)
{
	*rtt = 1e18;
	for (int i = 0; i < PINGS; i++) {
		struct word_msg w = {.word = WORD_PING};
		uint64_t began = probe_now();
		double ns;

		if (ask(l, &w, err, len))
			return -1;
		ns = (double)(probe_now() - began);
		*rtt = ns < *rtt ? ns : *rtt;
	}
	return 0;
}

/* Post for a while, no more than @depth at a time; READs are looked at as they complete. */
static int run(struct probe_link *l, struct row *r, uint32_t slots, double seconds, char *err,
	       size_t len)
{
	uint64_t posted_at[DEPTH_MAX], began = probe_now(), posted = 0, done = 0, now = began;
	uint64_t end = began + (uint64_t)(seconds * 1e9), heard = began;
	double sum = 0;

	r->least = 1e18;
	while (done < posted || now < end || posted < r->depth) {
		while (posted - done < r->depth && (now < end || posted < r->depth)) {
			uint8_t *at = l->data + posted % r->depth * r->size;

			if (r->op != OP_READ)
				probe_fill(at, r->size, posted);
			posted_at[posted % r->depth] = probe_now();
			if (link_post(l, r->op, r->size, (uint32_t)(posted % slots), at)) {
				snprintf(err, len, "cannot be posted: %m");
				return -1;
			}
			posted++;
			now = probe_now();
		}
		for (int n = link_sent(l, r->depth, err, len), i = 0; i < n || n < 0; i++, done++) {
			/* @size <= DATA_BYTES: NOLINTNEXTLINE(clang-analyzer-core.DivideZero) */
			uint64_t slot = done % slots;
			double ns;

			if (n < 0)
				return -1;
			heard = probe_now();
			ns = (double)(heard - posted_at[done % r->depth]);
			sum += ns;
			r->least = ns < r->least ? ns : r->least;
			if (r->op == OP_READ)
				r->wrong += !probe_right(l->data + done % r->depth * r->size,
							 r->size, slot);
		}
		now = probe_now();
		if (done < posted)
			sched_yield();
		if (now - heard > SILENCE_NS) {
			snprintf(err, len, "nothing completed for two minutes");
			return -1;
		}
	}
	r->count = done;
	r->latency = sum / (double)done;
	r->ns = (double)(now - began);
	return 0;
}

static int measure(struct probe_link *l, struct row *r, const struct options *o, double rtt,
		   char *err, size_t len)
{
	uint32_t slots = DATA_BYTES / r->size < SLOTS_MAX ? DATA_BYTES / r->size : SLOTS_MAX;
	struct word_msg w = {.word = WORD_BEGIN, .op = r->op, .size = r->size, .slots = slots};
	uint64_t began;

	if (ask(l, &w, err, len))
		return -1;
	began = probe_now();
	if (run(l, r, slots, o->seconds, err, len))
		return -1;
	if (r->op == OP_READ)
		return 0;
	w = (struct word_msg){.word = WORD_CHECK, .count = r->count};
	if (ask(l, &w, err, len))
		return -1;
	r->ns = (double)(probe_now() - began) - rtt;
	if (r->ns < 1)
		r->ns = 1;
	if (link_wait(l, WORD_RESULT, &w, err, len))
		return -1;
	r->wrong += w.wrong;
	return 0;
}

static double rate_of(const struct row *r)
{
	return (double)r->count * r->size / r->ns * 1000;
}

/* What hosts alone can reach at most: so much is under way in a round trip. */
static double bare_of(const struct row *r, double rtt)
{
	return (double)r->depth * r->size / rtt * 1000;
}

static bool nearer(const struct row *r, double rtt)
{
	return r->least < rtt / 2 || rate_of(r) > 1.5 * bare_of(r, rtt);
}

static void put_row(const struct row *r, double rtt, bool json, bool first)
{
	double rate = rate_of(r), bare = bare_of(r, rtt);

	if (json)
		printf("%s{\"op\":\"%s\",\"size\":%u,\"depth\":%u,\"messages\":%llu,\"MBps\":%.3f,"
		       "\"latency-us\":%.1f,\"least-latency-us\":%.1f,\"bare-MBps\":%.3f,"
		       "\"wrong\":%llu,\"accelerated\":%s}",
		       first ? "" : ",\n", op_names[r->op], r->size, r->depth,
		       (unsigned long long)r->count, rate, r->latency / 1000, r->least / 1000, bare,
		       (unsigned long long)r->wrong, nearer(r, rtt) ? "true" : "false");
	else
		printf("%-5s  %8u  %5u  %9llu  %9.2f  %9.2f ms  %9.2f  %6.1f  %-5s  %s\n",
		       op_names[r->op], r->size, r->depth, (unsigned long long)r->count, rate,
		       r->latency / NSEC_PER_MS, bare, rate / bare, nearer(r, rtt) ? "yes" : "no",
		       r->wrong ? "WRONG" : "right");
	fflush(stdout);
}

static int probe_all(struct probe_link *l, const struct options *o, char *err, size_t len)
{
	bool wrong = false, fast = false, first = true;
	double rtt;

	if (round_trip(l, &rtt, err, len))
		return -1;
	if (o->json)
		printf("{\"round-trip-us\":%.1f,\"rows\":[\n", rtt / 1000);
	else
		printf("round trip %.2f ms; BARE: what DEPTH messages in a round trip come to\n\n"
		       "%-5s  %8s  %5s  %9s  %9s  %12s  %9s  %6s  %-5s  %s\n",
		       rtt / NSEC_PER_MS, "OP", "SIZE", "DEPTH", "MESSAGES", "MB/S", "COMPLETED",
		       "BARE", "GAIN", "EARLY", "DATA");
	for (unsigned int i = 0; i < OPS * o->nsizes * o->ndepths; i++) {
		struct row r = {.op = i / (o->nsizes * o->ndepths),
				.size = o->size[i / o->ndepths % o->nsizes],
				.depth = o->depth[i % o->ndepths]};

		if (!(o->ops & 1u << r.op))
			continue;
		if (r.depth > DATA_BYTES / r.size)
			r.depth = DATA_BYTES / r.size;
		if (measure(l, &r, o, rtt, err, len))
			return -1;
		put_row(&r, rtt, o->json, first);
		first = false;
		wrong |= r.wrong;
		fast |= nearer(&r, rtt);
	}
	if (o->json)
		printf("\n],\"accelerated\":%s,\"intact\":%s}\n", fast ? "true" : "false",
		       wrong ? "false" : "true");
	else
		printf("\n%s\n%s\n",
		       fast ? "accelerated: somebody nearer than the far host answers"
			    : "not accelerated: nothing was faster than the distance allows",
		       wrong ? "WRONG DATA ARRIVED" : "every byte was right");
	(void)link_say(l, &(struct word_msg){.word = WORD_BYE});
	return wrong ? 1 : 0;
}

/* "4K,64K" into @out; bytes with K and M. 0 when something is wrong. */
static unsigned int list_of(const char *text, uint32_t max, uint32_t out[LIST])
{
	unsigned int n = 0;
	char *end;

	do {
		unsigned long long v = strtoull(text, &end, 10);

		if (end == text || n == LIST)
			return 0;
		if (*end == 'K' || *end == 'M')
			v <<= *end++ == 'K' ? 10 : 20;
		if (!v || v > max || (*end && *end != ','))
			return 0;
		out[n++] = (uint32_t)v;
		text = end + 1;
	} while (*end);
	return n;
}

static unsigned int ops_of(const char *text)
{
	unsigned int ops = 0;

	while (*text) {
		size_t len = strcspn(text, ",");
		unsigned int i;

		for (i = 0; i < OPS; i++)
			if (strlen(op_names[i]) == len && !strncmp(text, op_names[i], len))
				break;
		if (i == OPS)
			return 0;
		ops |= 1u << i;
		text += len + (text[len] == ',');
	}
	return ops;
}

static void usage(void)
{
	puts("usage: longhaul-probe [-l ADDRESS] [-p PORT] [-1]      the side that is probed\n"
	     "       longhaul-probe [OPTIONS] HOST                   the side that probes\n"
	     "\n"
	     "  -o, --ops LIST      of write, send, read; all\n"
	     "  -s, --sizes LIST    bytes of a message, with K and M, up to 1M; 4K,64K,1M\n"
	     "  -d, --depths LIST   messages outstanding, up to 512; 1,16,128\n"
	     "  -t, --seconds N     posting time of each row; 1\n"
	     "  -j, --json          JSON\n"
	     "  -p, --port PORT     of the connection manager, " PROBE_PORT "\n"
	     "  -l, --listen ADDR   serve there only\n"
	     "  -1, --once          serve one prober, then end\n"
	     "  -h, --help          this text\n"
	     "  -V, --version       the version");
}

/* 0: go on; else an exit status and one more. */
static int take_option(int c, struct options *o)
{
	char *end;

	switch (c) {
	case 'o':
		o->ops = ops_of(optarg);
		return o->ops ? 0 : 1 + complain("-o takes a list of write, send, read");
	case 's':
		o->nsizes = list_of(optarg, SIZE_MAX_, o->size);
		return o->nsizes ? 0 : 1 + complain("-s takes up to 8 sizes of 1 to 1M bytes");
	case 'd':
		o->ndepths = list_of(optarg, DEPTH_MAX, o->depth);
		return o->ndepths ? 0 : 1 + complain("-d takes up to 8 depths of 1 to 512");
	case 't':
		o->seconds = strtod(optarg, &end);
		return end != optarg && !*end && o->seconds >= 0.01 && o->seconds <= 3600
			       ? 0
			       : 1 + complain("-t takes 0.01 to 3600 seconds");
	case 'p':
		o->port = optarg;
		return 0;
	case 'l':
		o->listen = optarg;
		return 0;
	case 'j':
		o->json = true;
		return 0;
	case '1':
		o->once = true;
		return 0;
	case 'h':
		usage();
		return 1;
	case 'V':
		printf("longhaul-probe %s\n", LONGHAUL_VERSION);
		return 1;
	default:
		return 1 + complain("unknown option or missing value; see --help");
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"ops", required_argument, NULL, 'o'},
		{"sizes", required_argument, NULL, 's'},
		{"depths", required_argument, NULL, 'd'},
		{"seconds", required_argument, NULL, 't'},
		{"json", no_argument, NULL, 'j'},
		{"port", required_argument, NULL, 'p'},
		{"listen", required_argument, NULL, 'l'},
		{"once", no_argument, NULL, '1'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	struct options o = {.port = PROBE_PORT, .ops = (1u << OPS) - 1, .seconds = 1};
	struct probe_link l;
	char err[256] = "";
	int c, rc;

	o.nsizes = list_of("4K,64K,1M", SIZE_MAX_, o.size);
	o.ndepths = list_of("1,16,128", DEPTH_MAX, o.depth);
	opterr = 0;
	while ((c = getopt_long(argc, argv, "o:s:d:t:jp:l:1hV", options, NULL)) != -1) {
		rc = take_option(c, &o);
		if (rc)
			return rc - 1;
	}
	if (argc - optind > 1)
		return complain("one host, please; see --help");
	if (argc == optind)
		return probe_serve(o.listen, o.port, o.once);
	rc = link_connect(&l, argv[optind], o.port, err, sizeof(err));
	if (!rc)
		rc = probe_all(&l, &o, err, sizeof(err));
	link_close(&l);
	return rc < 0 ? complain(err) : rc;
}
