// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A WAN between two interfaces: relays every Ethernet frame both ways through the link model, in
 * real time.
 *
 * Each frame's delay counts from the kernel's time stamp of its arrival, so the loop may look at
 * the ring late without being late. It sleeps in ppoll() when nothing is under way; under load it
 * sleeps a short fixed time instead (--coalesce-us) and handles what has come meanwhile in one
 * batch, or a wake-up per frame would cost more than the frame.
 *
 * SIGUSR1 cuts the link, SIGUSR2 mends it. SIGTERM or --seconds ends; one JSON line tells what was
 * done.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include "cli/wanem/pkt_ring.h"
#include "cli/wanem/wan.h"

#define SECOND 1000000000ull
#define BATCH  256

/* From port to the other: a link, and what happened beside it. */
struct side {
	const char *ifname;
	struct pkt_ring *ring;
	struct wan_config cfg;
	struct wan *link; /* of what this port receives */
	uint64_t oversize, tx_full, late_max, late_sum;
};

static struct side sides[2];
static double seconds;
static bool visible;
static uint64_t coalesce_ns = 50000;
static uint64_t skew; /* CLOCK_REALTIME - CLOCK_MONOTONIC */
static volatile sig_atomic_t stop, cut;

static void on_signal(int sig)
{
	if (sig == SIGUSR1)
		cut = 1;
	else if (sig == SIGUSR2)
		cut = 0;
	else
		stop = 1;
}

static uint64_t clock_of(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

/* The relay */

/* What the port has received, into its link. Returns how many. */
static int take_in(struct side *s, uint64_t now)
{
	struct pkt_ring_frame f;
	int n = 0;

	for (; n < BATCH && pkt_ring_next(s->ring, &f); n++) {
		uint64_t at = f.ts_ns - skew;
		uint8_t *buf;

		if (at > now)
			at = now; /* the clock was set */
		if (!f.whole) {
			s->oversize++; /* a sender with segmentation offload on */
		} else if (!(buf = wan_buf(s->link))) {
			wan_no_room(s->link);
		} else {
			if (f.csum_missing)
				pkt_fix_checksum(f.data, f.len);
			memcpy(buf, f.data, f.len);
			wan_send(s->link, at, f.len);
		}
		pkt_ring_release(s->ring);
	}
	return n;
}

/* What has arrived at the other end. Returns how many. */
static int let_out(struct side *s, struct side *to, uint64_t now)
{
	const uint8_t *data;
	uint32_t len;
	int n = 0;

	while (n < BATCH) {
		uint64_t due = wan_next(s->link);
		uint8_t *buf;

		if (due > now)
			break;
		buf = pkt_ring_buf(to->ring);
		if (!buf) {
			s->tx_full++;
			break;
		}
		data = wan_pop(s->link, now, &len);
		if (!data)
			break;
		memcpy(buf, data, len);
		pkt_ring_queue(to->ring, len);
		s->late_sum += now - due;
		if (now - due > s->late_max)
			s->late_max = now - due;
		n++;
	}
	pkt_ring_flush(to->ring);
	return n;
}

static void apply_cut(void)
{
	static bool now_cut;

	if (now_cut == (bool)cut)
		return;
	now_cut = cut;
	for (int i = 0; i < 2; i++) {
		struct wan_config c = sides[i].cfg;

		c.down = c.down || now_cut;
		wan_set(sides[i].link, &c);
	}
}

static void wait_for_work(uint64_t now, uint64_t end, bool busy)
{
	struct pollfd p[2] = {{.fd = pkt_ring_fd(sides[0].ring), .events = POLLIN},
			      {.fd = pkt_ring_fd(sides[1].ring), .events = POLLIN}};
	uint64_t a = wan_next(sides[0].link), b = wan_next(sides[1].link);
	uint64_t at = a < b ? a : b, most = now + SECOND / 10;
	struct timespec ts;

	if (at > most)
		at = most;
	if (at > end)
		at = end;
	if (busy && coalesce_ns) {
		uint64_t tick = now + coalesce_ns;

		/* A little late on purpose: several frames fall due in one such sleep. */
		ts.tv_sec = 0;
		ts.tv_nsec = (long)(tick - now);
		clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
		return;
	}
	if (at <= now)
		return;
	ts.tv_sec = (time_t)((at - now) / SECOND);
	ts.tv_nsec = (long)((at - now) % SECOND);
	ppoll(p, 2, &ts, NULL);
}

static void relay(void)
{
	uint64_t start = clock_of(CLOCK_MONOTONIC);
	uint64_t end = seconds > 0 ? start + (uint64_t)(seconds * 1e9) : UINT64_MAX;
	uint64_t window = start;
	int recent = 0;

	while (!stop) {
		uint64_t now = clock_of(CLOCK_MONOTONIC);
		int n;

		if (now >= end)
			break;
		skew = clock_of(CLOCK_REALTIME) - now;
		apply_cut();
		n = take_in(&sides[0], now) + take_in(&sides[1], now);
		now = clock_of(CLOCK_MONOTONIC);
		n += let_out(&sides[0], &sides[1], now) + let_out(&sides[1], &sides[0], now);
		/* Busy: more than twenty frames this millisecond, or forty in the last. */
		if (now - window > 1000000) {
			window = now;
			recent = recent > 40 ? 21 : 0;
		}
		recent += n;
		if (n < BATCH)
			wait_for_work(clock_of(CLOCK_MONOTONIC), end, recent > 20);
	}
}

static void report_side(const char *name, struct side *s, const struct side *to)
{
	const struct wan_stats *w = wan_stats(s->link);

	printf("\"%s\":{\"sent\":%" PRIu64 ",\"sent-bytes\":%" PRIu64 ",\"delivered\":%" PRIu64
	       ",\"delivered-bytes\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"lost-burst\":%" PRIu64
	       ",\"lost-queue\":%" PRIu64 ",\"lost-down\":%" PRIu64 ",\"lost-mtu\":%" PRIu64
	       ",\"no-room\":%" PRIu64 ",\"duplicated\":%" PRIu64 ",\"reordered\":%" PRIu64
	       ",\"corrupted\":%" PRIu64 ",\"marked\":%" PRIu64 ",\"queue-peak\":%" PRIu64
	       ",\"store-peak\":%" PRIu64 ",\"oversize\":%" PRIu64 ",\"tx-full\":%" PRIu64
	       ",\"tx-refused\":%" PRIu64 ",\"ring-drops\":%" PRIu64
	       ",\"late-us\":%.1f,\"late-max-us\":%.1f}",
	       name, w->sent, w->sent_bytes, w->delivered, w->delivered_bytes, w->lost,
	       w->lost_burst, w->lost_queue, w->lost_down, w->lost_mtu, w->no_room, w->duplicated,
	       w->reordered, w->corrupted, w->marked, w->queue_peak_bytes, w->store_peak_bytes,
	       s->oversize, s->tx_full, pkt_ring_refused(to->ring), pkt_ring_dropped(s->ring),
	       w->delivered ? (double)s->late_sum / (double)w->delivered / 1e3 : 0,
	       (double)s->late_max / 1e3);
}

static void report(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	printf("{");
	report_side("a-to-b", &sides[0], &sides[1]);
	printf(",");
	report_side("b-to-a", &sides[1], &sides[0]);
	printf(",\"cpu-seconds\":%.3f}\n",
	       (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
		       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6);
	fflush(stdout);
}

/* Options */

static const char help[] =
	"usage: wanem --a IF --b IF [option ...]\n"
	"  --ab, --ba, --both       what follows is for one direction, for both (default)\n"
	"  --delay-ms N --rate-mbps N --queue-kb N\n"
	"  --loss P --dup P --reorder P --reorder-ms N (1) --corrupt P\n"
	"  --burst-start P --burst-end P --burst-loss P     Gilbert-Elliott\n"
	"  --mtu N                  drop longer IP packets    --bleach      DSCP becomes 0\n"
	"  --mark P                 ECN: congestion experienced, where packets know ECN\n"
	"  --only-roce              impair RoCEv2 only; delay, rate and mtu are for all frames\n"
	"  --down                   start with the link cut (SIGUSR2 mends it, SIGUSR1 cuts it)\n"
	"  --store-mb N (32)        memory for frames under way, each direction\n"
	"  --coalesce-us N (50)     sleep between batches under load; 0: wake for each frame\n"
	"  --visible                captures on either interface see both directions; slower\n"
	"  --seed N --seconds S     0: until SIGTERM\n";

enum scale { PLAIN, COUNT, MS, US, MBPS, KB, MB, FLAG, GLOBAL };

/* Where each option of a direction goes. */
static const struct row {
	const char *name;
	enum scale scale;
	size_t offset;
} rows[] = {
	{"delay-ms", MS, offsetof(struct wan_config, delay_ns)},
	{"rate-mbps", MBPS, offsetof(struct wan_config, rate_bps)},
	{"queue-kb", KB, offsetof(struct wan_config, queue_bytes)},
	{"store-mb", MB, offsetof(struct wan_config, store_bytes)},
	{"reorder-ms", MS, offsetof(struct wan_config, reorder_ns)},
	{"loss", PLAIN, offsetof(struct wan_config, loss)},
	{"dup", PLAIN, offsetof(struct wan_config, dup)},
	{"reorder", PLAIN, offsetof(struct wan_config, reorder)},
	{"corrupt", PLAIN, offsetof(struct wan_config, corrupt)},
	{"burst-start", PLAIN, offsetof(struct wan_config, burst_start)},
	{"burst-end", PLAIN, offsetof(struct wan_config, burst_end)},
	{"burst-loss", PLAIN, offsetof(struct wan_config, burst_loss)},
	{"mtu", COUNT, offsetof(struct wan_config, mtu)},
	{"mark", PLAIN, offsetof(struct wan_config, mark)},
	{"bleach", FLAG, offsetof(struct wan_config, bleach)},
	{"only-roce", FLAG, offsetof(struct wan_config, only_roce)},
	{"down", FLAG, offsetof(struct wan_config, down)},
	{"a", GLOBAL, 0},
	{"b", GLOBAL, 0},
	{"seed", GLOBAL, 0},
	{"seconds", GLOBAL, 0},
	{"coalesce-us", GLOBAL, 0},
	{"visible", GLOBAL, 1},
	{"ab", GLOBAL, 1},
	{"ba", GLOBAL, 1},
	{"both", GLOBAL, 1},
	{"help", GLOBAL, 1},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static double number(const char *name, const char *text)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end || !(v >= 0)) {
		fprintf(stderr, "wanem: --%s: bad value '%s'\n", name, text);
		exit(2);
	}
	return v;
}

static void set_config(struct wan_config *c, const struct row *r, double v)
{
	static const double factor[] = {
		[COUNT] = 1, [MS] = 1e6, [US] = 1e3, [MBPS] = 1e6, [KB] = 1024, [MB] = 1 << 20};
	char *where = (char *)c + r->offset;

	if (r->scale == PLAIN)
		memcpy(where, &v, sizeof(v));
	else if (r->scale == FLAG)
		*(bool *)where = true;
	else
		*(uint64_t *)(void *)where = (uint64_t)(v * factor[r->scale]);
}

static void set_global(const char *name, int *first, int *last)
{
	if (!strcmp(name, "a")) {
		sides[0].ifname = optarg;
	} else if (!strcmp(name, "b")) {
		sides[1].ifname = optarg;
	} else if (!strcmp(name, "seed")) {
		sides[0].cfg.seed = (uint64_t)number(name, optarg);
		sides[1].cfg.seed = ~sides[0].cfg.seed;
	} else if (!strcmp(name, "seconds")) {
		seconds = number(name, optarg);
	} else if (!strcmp(name, "coalesce-us")) {
		coalesce_ns = (uint64_t)(number(name, optarg) * 1000);
	} else if (!strcmp(name, "visible")) {
		visible = true;
	} else if (!strcmp(name, "help")) {
		fputs(help, stdout);
		exit(0);
	} else {
		*first = !strcmp(name, "ba");
		*last = strcmp(name, "ab") != 0;
	}
}

static void parse_options(int argc, char **argv)
{
	struct option longs[ROWS + 1] = {0};
	int o, which = 0, first = 0, last = 1;

	for (size_t i = 0; i < ROWS; i++) {
		bool arg = rows[i].scale == GLOBAL ? !rows[i].offset : rows[i].scale != FLAG;

		longs[i] = (struct option){rows[i].name, arg, NULL, 1};
	}
	sides[0].cfg.reorder_ns = sides[1].cfg.reorder_ns = 1000000;
	sides[1].cfg.seed = 1;
	while ((o = getopt_long(argc, argv, "", longs, &which)) != -1) {
		const struct row *r = &rows[which];

		if (o != 1) {
			fputs(help, stderr);
			exit(2);
		}
		if (r->scale == GLOBAL) {
			set_global(r->name, &first, &last);
			continue;
		}
		for (int i = first; i <= last; i++)
			set_config(&sides[i].cfg, r, optarg ? number(r->name, optarg) : 0);
	}
	if (!sides[0].ifname || !sides[1].ifname || optind != argc) {
		fputs(help, stderr);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = on_signal};
	int rc = 1;

	parse_options(argc, argv);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGUSR2, &sa, NULL);
	prctl(PR_SET_TIMERSLACK, 1000UL);
	/* A link is not slowed by busy hosts; where this is not permitted, it is a little. */
	setpriority(PRIO_PROCESS, 0, -10);
	for (int i = 0; i < 2; i++) {
		sides[i].ring = pkt_ring_open(sides[i].ifname, 4096, 1024, true);
		sides[i].link = wan_create(&sides[i].cfg);
		if (!sides[i].ring || !sides[i].link ||
		    (visible && pkt_ring_visible(sides[i].ring) < 0))
			goto out;
	}
	relay();
	report();
	rc = 0;
out:
	for (int i = 0; i < 2; i++) {
		pkt_ring_close(sides[i].ring);
		wan_destroy(sides[i].link);
	}
	return rc;
}
