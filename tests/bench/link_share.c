// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A link whose rate nobody has said, or that is shared.
 *
 * One queue pair with 64 KiB WRITEs, 128 outstanding, path MTU 4096, LANs of 25 Gb/s around a WAN
 * of 10 Gb/s and 20 ms with a drop-tail queue of 1 or 0.1 times what is under way (BDP). Reports
 * take their turn in the same queue. Each cell is measured with two appliances at `wan-rate =
 * auto`, with a wire in their place, and with --unpaced with two appliances that have no limit at
 * all. Goodput counts what the far host has executed, after WARM_NS.
 *
 *	unset	nothing is known of the link
 *	twice	a limit of 20 Gb/s is set, twice what the link carries
 *	noise	1 % of the packets are lost at random
 *	cross5	5 Gb/s of traffic that never slows down; 5 Gb/s are left
 *	cubic	one TCP connection with CUBIC (spec: RFC 9438), which has the link to itself before
 *		we start
 *	pairs	two pairs of appliances share the link, the second begins a second later
 *	slices	the receiver's process runs 1 ms in 5 and reads 10 Gb/s then, so 2 Gb/s;
 *		METERs, which come by a socket, are read sooner than the frames before them
 *	step	the link carries a quarter, and a second later as much as before: round trips until
 *		three in a row bring 90 % of what it carries, of both changes the slower one
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/link_bench.h"
#include "wire/bytes.h"

#define LINK_BPS   10000000000ull
#define RTT_NS	   (20 * MS)
#define BDP	   (LINK_BPS / 8 / 1000 * 20)
#define WARM_NS	   (1000 * MS)
#define SLICE_NS   (50000ull)
#define OTHER_LEN  1514u
#define MESSAGE	   65536u
#define PAYLOAD	   4096.0
#define HEADERS	   62.0
#define CUBIC_B	   0.7
#define CUBIC_C	   0.4
#define FLIGHT_MAX 65536u
#define ROUNDS_MAX 100u
/* What waits for a receiver's process: a daemon's ring by default. */
#define RING	   2048u
#define RUNS_NS	   (1 * MS)
#define EVERY_NS   (5 * MS)

static const struct options *opt;

struct waiting {
	uint32_t len;
	uint8_t data[4400];
};

/* What else is on the link; and the ring of a receiver that runs in slices, NULL: none. */
struct others {
	struct waiting *ring;
	uint32_t head, tail;
	int64_t may_read;
	struct engine_box box;
	uint64_t constant_bps; /* traffic that never slows down */
	uint64_t next;	       /* when its next packet leaves */
	bool cubic;
	uint64_t sent, got, got_before; /* bytes */
	/* CUBIC: the window in packets */
	double window, window_max, last_loss, heard;
	bool slow_start;
	uint32_t seq, seen;
	struct {
		uint64_t when;
		bool lost;
	} ack[FLIGHT_MAX]; /* by number; an ACK, or that its absence is noticed */
	uint32_t acked;
};

struct cell {
	const char *name;
	double queue_bdp, loss;
	uint64_t limit_bps;
	uint64_t cross_bps;
	bool cubic, step, pairs, slices;
};

enum way { AUTO, BARE, UNPACED };

struct result {
	double goodput, other, bytes;
	const char *bad;
	uint32_t rounds; /* step */
};

/* A frame comes to the receiver, whose process reads it in its next slice. */
static void ring_rx(struct world *w, struct others *o, const uint8_t *data, uint32_t len)
{
	struct waiting *x = &o->ring[o->head % RING];

	if (o->head - o->tail == RING || len > sizeof(x->data)) {
		o->box.overrun++;
	} else {
		memcpy(x->data, data, len);
		x->len = len;
		o->head++;
		o->box.unread += len;
	}
	w->box[1] = o->box;
}

/* What it reads until @until: nothing while it does not run. */
static void ring_read(struct world *w, struct others *o, uint64_t until)
{
	if (w->now % EVERY_NS >= RUNS_NS)
		return;
	o->may_read += (int64_t)(LINK_BPS / 8 * (until - w->now) / (1000 * MS));
	for (o->box.early = 0; o->tail != o->head && o->may_read > 0; o->tail++) {
		const struct waiting *x = &o->ring[o->tail % RING];

		o->may_read -= x->len;
		o->box.unread -= x->len;
		o->box.early += x->len;
		world_rx(w, 1, PORT_WAN, x->data, x->len);
	}
	o->may_read = o->may_read < 0 ? o->may_read : 0;
	w->box[1] = o->box;
}

static bool counted(struct world *w, int link, const uint8_t *data, uint32_t len)
{
	struct others *o = w->user;

	if (link == WORLD_WAN(0) && o->ring) {
		ring_rx(w, o, data, len);
		return false;
	}
	if (link != WORLD_WAN(0) || get_be16(data + 12) != WORLD_TYPE_OTHER)
		return true;
	o->got += len;
	if (o->cubic) {
		uint32_t seq = get_be32(data + 14);

		/* what was left out is lost: the link is a line */
		for (; o->seen != seq; o->seen++)
			o->ack[o->seen % FLIGHT_MAX].lost = true;
		o->seen = seq + 1;
		o->ack[seq % FLIGHT_MAX].when = w->now + RTT_NS / 2;
	}
	return false;
}

static void other_packet(struct world *w, struct others *o)
{
	uint8_t data[OTHER_LEN] = {0};

	put_be16(data + 12, WORLD_TYPE_OTHER);
	put_be32(data + 14, o->seq);
	o->ack[o->seq % FLIGHT_MAX].when = UINT64_MAX;
	o->ack[o->seq % FLIGHT_MAX].lost = false;
	o->seq++;
	o->sent += OTHER_LEN;
	world_link_send(w, WORLD_WAN(0), data, OTHER_LEN);
}

static void cubic_lost(struct others *o, uint64_t now)
{
	if ((double)now - o->last_loss < (double)RTT_NS * 1.5)
		return; /* of the same round */
	o->window_max = o->window;
	o->window *= CUBIC_B;
	o->last_loss = (double)now;
	o->slow_start = false;
}

static void cubic_acked(struct others *o, uint64_t now)
{
	double since = ((double)now - o->last_loss) / 1e9, rtt = (double)RTT_NS / 1e9;
	double k = cbrt(o->window_max * (1 - CUBIC_B) / CUBIC_C);
	double target = CUBIC_C * pow(since + rtt - k, 3) + o->window_max;
	double reno = o->window_max * CUBIC_B + 3 * (1 - CUBIC_B) / (1 + CUBIC_B) * (since / rtt);

	if (o->slow_start) {
		o->window++;
		return;
	}
	target = fmin(fmax(target, reno), 1.5 * o->window);
	if (target > o->window)
		o->window += (target - o->window) / o->window;
}

static void others_run(struct world *w, struct others *o)
{
	for (; o->constant_bps && o->next <= w->now;
	     o->next += OTHER_LEN * 8000000000ull / o->constant_bps)
		other_packet(w, o);
	if (!o->cubic)
		return;
	while (o->acked != o->seen && (o->ack[o->acked % FLIGHT_MAX].lost ||
				       o->ack[o->acked % FLIGHT_MAX].when <= w->now)) {
		if (o->ack[o->acked % FLIGHT_MAX].lost)
			cubic_lost(o, w->now);
		else
			cubic_acked(o, w->now);
		o->acked++;
		o->heard = (double)w->now;
	}
	/* nothing has come back for long: all is lost */
	if (o->seq != o->acked && (double)w->now - o->heard > 1e9) {
		cubic_lost(o, w->now);
		o->seen = o->acked = o->seq;
		o->heard = (double)w->now;
	}
	/* no more at once than would come of a sender that paces */
	for (int n = 0; n < 64 && (double)(o->seq - o->acked) < fmin(o->window, FLIGHT_MAX - 1);
	     n++)
		other_packet(w, o);
}

static uint64_t executed(const struct world_qp *q)
{
	return rc_qp_stats(q->side[1].qp)->rx_bytes;
}

static struct world *start(const struct cell *c, enum way way, bool guest, struct world_qp **q)
{
	struct world_config wc;
	struct rc_qp_config qc;
	struct world *w;

	world_defaults(&wc);
	wc.seed = 1 + guest;
	wc.appliance[0] = wc.appliance[1] = way != BARE;
	wc.wan.delay_ns = RTT_NS / 2;
	wc.wan.rate_bps = LINK_BPS;
	wc.wan.queue_bytes = (uint64_t)(c->queue_bdp * BDP);
	wc.wan.store_bytes = 4 * BDP + (64u << 20);
	wc.lan.rate_bps = 25000000000ull;
	wc.lan.store_bytes = 64 << 20;
	wc.reports_in_band = true;
	wc.engine.pool_bytes = 1ull << 30;
	wc.engine.wan_auto = way == AUTO;
	wc.engine.wan_rate = c->limit_bps / 8;
	wc.path_mtu = 4096;
	w = world_create(&wc);
	if (!w)
		return NULL;
	wc.wan.loss = c->loss;
	world_set_wan(w, 0, &wc.wan);
	qc = link_qp();
	if (guest) {
		ip_addr_parse("10.1.0.2", &qc.src);
		ip_addr_parse("10.2.0.2", &qc.dst);
	}
	*q = world_connect(w, &qc, RC_STRICT);
	return w;
}

static void show(struct world *w, const struct others *o)
{
	struct link_info k;

	if (!w->engine[0] || !engine_link_info(w->engine[0], 0, &k))
		return;
	printf("  %6" PRIu64 " ms %-6s %-5s pace %6.3f delivered %6.3f lost %6u noise %6u ppm queue"
	       " %6.2f ms cuts %" PRIu64 " window %.0f others %" PRIu64 "\n",
	       (uint64_t)(w->now / MS), k.phase, k.cause, (double)k.pace * 8e-9,
	       (double)k.delivered * 8e-9, k.lost_ppm, k.noise_ppm, (double)k.queue_ns / 1e6,
	       k.cuts, o->window, o->got);
}

static void run_to(struct world *w, struct others *o, uint64_t until)
{
	uint64_t shown = 0;

	while (!w->violation && w->now < until) {
		uint64_t next = w->now + SLICE_NS;

		if (opt->verbose && w->now >= shown + 50 * MS) {
			shown = w->now;
			show(w, o);
		}
		others_run(w, o);
		if (o->ring)
			ring_read(w, o, next);
		if (o->constant_bps)
			next = min64(next, o->next);
		world_run(w, min64(next, until));
	}
}

/* What the far host can get of a link of @bps. */
static double ceiling(double bps)
{
	return bps * PAYLOAD / (PAYLOAD + HEADERS);
}

/* The link gets another rate: round trips until three in a row bring 90 % of it. */
static uint32_t settle(struct world *w, struct others *o, struct world_qp *q, uint64_t bps)
{
	struct wan_config c = *wan_config(w->link[WORLD_WAN(0)]);
	double enough = 0.9 * ceiling((double)bps) * RTT_NS / 8e9;
	uint32_t n = 0, good = 0;

	c.rate_bps = bps;
	world_set_wan(w, 0, &c);
	while (good < 3 && n < ROUNDS_MAX && !w->violation) {
		uint64_t before = executed(q);

		run_to(w, o, w->now + RTT_NS);
		good = (double)(executed(q) - before) >= enough ? good + 1 : 0;
		n++;
	}
	return n < ROUNDS_MAX ? n - 3 : n;
}

static void measure(struct world *w, struct others *o, struct world_qp *const *q,
		    struct result *res)
{
	const struct wan_stats *link = wan_stats(w->link[WORLD_WAN(0)]);
	uint64_t from = w->now, bytes[2] = {0}, sent = link->sent_bytes - o->sent, all;

	for (int i = 0; i < 2 && q[i]; i++)
		bytes[i] = executed(q[i]);
	o->got_before = o->got;
	run_to(w, o, w->now + (uint64_t)(opt->seconds * 1e9) * (q[1] ? 2 : 1));
	for (int i = 0; i < 2 && q[i]; i++)
		bytes[i] = executed(q[i]) - bytes[i];
	all = bytes[0] + bytes[1];
	res->goodput = (double)bytes[0] * 8 / (double)(w->now - from);
	res->other = (double)(bytes[1] + o->got - o->got_before) * 8 / (double)(w->now - from);
	if (all)
		res->bytes = (double)(link->sent_bytes - o->sent - sent) /
			     ((double)all * (PAYLOAD + HEADERS) / PAYLOAD);
}

static struct others *others_new(const struct cell *c, enum way way, uint64_t now)
{
	struct others *o = calloc(1, sizeof(*o));

	o->ring = c->slices && way != BARE ? calloc(RING, sizeof(*o->ring)) : NULL;
	o->constant_bps = c->cross_bps;
	o->next = now;
	o->cubic = c->cubic;
	o->window = 10;
	o->slow_start = true;
	o->heard = (double)now;
	return o;
}

static struct result run(const struct cell *c, enum way way)
{
	struct work work = {
		.ops = 1u << RC_WRITE, .min = MESSAGE, .max = MESSAGE, .left = UINT64_MAX};
	struct result res = {0};
	struct world_qp *q[2] = {0};
	struct world *w = start(c, way, false, &q[0]), *guest = NULL;
	struct others *o;

	if (!w)
		return (struct result){.bad = "no memory"};
	o = others_new(c, way, w->now);
	w->user = o;
	w->filter = counted;
	if (c->pairs) {
		guest = start(c, way, true, &q[1]);
		world_join(w, guest);
	}
	if (c->cross_bps || c->cubic)
		run_to(w, o, w->now + 1000 * MS);
	world_work(q[0], 0, &work);
	run_to(w, o, w->now + WARM_NS);
	if (guest) {
		world_work(q[1], 0, &work);
		run_to(w, o, w->now + WARM_NS);
	}
	if (c->step) {
		uint32_t up;

		res.rounds = settle(w, o, q[0], LINK_BPS / 4);
		run_to(w, o, w->now + WARM_NS);
		up = settle(w, o, q[0], LINK_BPS);
		res.rounds = res.rounds > up ? res.rounds : up;
	}
	measure(w, o, q, &res);
	res.bad = w->violation ? w->violation : rc_qp_in_error(q[0]->side[0].qp) ? "died" : NULL;
	if (opt->verbose && way == AUTO)
		world_dump(w, stdout);
	if (guest)
		world_destroy(guest);
	world_destroy(w);
	free(o->ring);
	free(o);
	return res;
}

static double jain(double a, double b)
{
	return (a + b) * (a + b) / (2 * (a * a + b * b) + 1e-9);
}

static double worse(double a, double b)
{
	return isnan(a) || b > a ? b : a;
}

/* What of the last line the cell @c tells. */
static void sum_up(const struct cell *c, const struct result *r, struct last *out)
{
	double part = 100 * r->goodput * 1e9 / ceiling((double)LINK_BPS);

	if (c->slices) {
		out->slices = part * EVERY_NS / RUNS_NS;
		return;
	}
	if (!strcmp(c->name, "unset-1bdp"))
		out->unset = part;
	else if (!strcmp(c->name, "unset-0.1bdp"))
		out->unset_short = part;
	else if (!strcmp(c->name, "twice-1bdp"))
		out->twice = part;
	else if (!strcmp(c->name, "cross5-1bdp"))
		out->cross5 = r->goodput;
	else if (!strcmp(c->name, "cubic-1bdp"))
		out->cubic_jain = jain(r->goodput, r->other);
	else if (!strcmp(c->name, "pairs-1bdp"))
		out->pairs_jain = jain(r->goodput, r->other);
	else if (c->step)
		out->step_rtts = r->rounds;
	if (!c->loss && !c->cross_bps && !c->cubic && !c->step)
		out->bytes = worse(out->bytes, r->bytes);
}

/* What is left for us in the cell @c, Gb/s. */
static double limit(const struct cell *c)
{
	double bps = c->cubic || c->pairs ? LINK_BPS / 2.0 : (double)(LINK_BPS - c->cross_bps);

	if (c->slices)
		bps *= (double)RUNS_NS / EVERY_NS;

	return ceiling(bps) * (1 - c->loss) / 1e9;
}

static void cell(const struct cell *c, struct last *out)
{
	printf("%-14s", c->name);
	for (enum way way = AUTO; way <= (opt->unpaced ? UNPACED : BARE); way++) {
		struct result r;

		if (way == BARE && opt->ours)
			continue;
		r = run(c, way);

		printf("  %6.3f %6.3f %6.3f", r.goodput, r.other, r.bytes);
		if (c->cubic || c->pairs)
			printf(" jain=%.2f", jain(r.goodput, r.other));
		if (c->step)
			printf(" rtts=%-3u", r.rounds);
		if (r.bad)
			printf(" %s", r.bad);
		if (way == AUTO) {
			out->deaths += r.bad != NULL;
			sum_up(c, &r, out);
		}
		fflush(stdout);
	}
	printf("  %6.3f\n", limit(c));
}

void link_share(const struct options *o, struct last *out)
{
	static const struct cell cells[] = {
		{.name = "unset-1bdp", .queue_bdp = 1},
		{.name = "unset-0.1bdp", .queue_bdp = 0.1},
		{.name = "twice-1bdp", .queue_bdp = 1, .limit_bps = 2 * LINK_BPS},
		{.name = "twice-0.1bdp", .queue_bdp = 0.1, .limit_bps = 2 * LINK_BPS},
		{.name = "noise-1bdp", .queue_bdp = 1, .loss = 0.01},
		{.name = "noise-0.1bdp", .queue_bdp = 0.1, .loss = 0.01},
		{.name = "cross5-1bdp", .queue_bdp = 1, .cross_bps = LINK_BPS / 2},
		{.name = "cross5-0.1bdp", .queue_bdp = 0.1, .cross_bps = LINK_BPS / 2},
		{.name = "cubic-1bdp", .queue_bdp = 1, .cubic = true},
		{.name = "cubic-0.1bdp", .queue_bdp = 0.1, .cubic = true},
		{.name = "pairs-1bdp", .queue_bdp = 1, .pairs = true},
		{.name = "pairs-0.1bdp", .queue_bdp = 0.1, .pairs = true},
		{.name = "step-1bdp", .queue_bdp = 1, .step = true},
		{.name = "slices-1bdp", .queue_bdp = 1, .slices = true},
	};
	bool any = false;

	opt = o;
	for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
		if (!wanted(o, cells[i].name))
			continue;
		if (!any)
			printf("%-14s  %20s  %20s%s   limit\n%-14s  %6s %6s %6s  %6s %6s %6s\n", "",
			       "auto", "bare", o->unpaced ? "               unpaced" : "", "Gb/s",
			       "ours", "others", "bytes", "ours", "others", "bytes");
		any = true;
		cell(&cells[i], out);
	}
}
